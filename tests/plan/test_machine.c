/* Networks over any number of chips: the planned machine program, run op by op, gives the bits of the graph's
 * interpreter. */
#include "support.h"
#include "weft/graph.h"
#include "weft/partition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_cases = 10, first_seed = 1;

typedef struct network {
  uint64_t layers[5];
  uint32_t count;
  uint64_t batch;
  weft_format dtype;
  uint32_t segments;
} network;

static weft_graph *make_network(const network *n) {
  weft_diag *diag = graph_diag;
  weft_mlp_options options = {.layers = n->layers,
                              .layer_count = n->count,
                              .batch = n->batch,
                              .dtype = n->dtype,
                              .bias = true,
                              .relu = true,
                              .segments = n->segments};
  weft_graph *graph = NULL;
  weft_status status = weft_graph_new_mlp(&options, "y", &graph, diag);
  if (status) print_error("%s\n", first_message(diag));
  assert_int_equal(status, WEFT_OK);
  return graph;
}

static void inputs_of_graph(const weft_graph *graph, uint64_t seed, weft_array_set *set) {
  uint64_t state = seed;
  for (uint64_t v = 0; v < graph->value_count; v++) {
    const weft_value *value = &graph->values[v];
    if (value->role != WEFT_ROLE_INPUT && value->role != WEFT_ROLE_PARAM) continue;
    weft_array *array = weft_array_set_add(set, value->name, value->dtype, value->rank, value->extents);
    for (uint64_t i = 0; i < weft_array_elements(array); i++) {
      uint64_t bits = weft_random_next(&state);
      if (weft_format_is_float(value->dtype))
        weft_store_f32(value->dtype, array->data, i, (float)(bits >> 40) / 8388608.0f - 1.0f);
      else if (value->has_range)
        weft_store_i64(value->dtype, array->data, i,
                       value->range.low + (int64_t)(bits % (uint64_t)(value->range.high - value->range.low + 1)));
      else
        weft_store_i64(value->dtype, array->data, i, (int64_t)(bits % 201) - 100);
    }
  }
}

static weft_program *machine_program(const weft_graph *graph, const char *mesh, const char *split) {
  weft_diag *diag = graph_diag;
  weft_target target;
  weft_graph *machine = NULL;
  weft_program *program = NULL;
  weft_partition_options options = {.split = split};
  weft_status status = weft_target_load("cpu", &target, diag);
  if (!status) status = weft_mesh_parse(mesh, &options.mesh, diag);
  if (!status) status = weft_partition(graph, &options, &target, &machine, NULL, diag);
  if (!status) status = weft_graph_lower(machine, &program, diag);
  if (status) print_error("%s %s: %s\n", mesh, split, first_message(diag));
  assert_int_equal(status, WEFT_OK);
  weft_graph_free(machine);
  return program;
}

static void check(const weft_graph *graph, const weft_array_set *in, const weft_array_set *want,
                  weft_program *program) {
  (void)graph;
  weft_array_set out = {0};
  plan_for(program, "cpu", NULL);
  evaluate(program, in, &out);
  assert_same_sets(want, &out);
  weft_array_set_free(&out);
  weft_diag *diag = weft_diag_new();
  weft_status status = run_program(program, in, true, 5, &out, diag);
  if (status) print_error("%s\n", first_message(diag));
  assert_int_equal(status, WEFT_OK);
  assert_same_sets(want, &out);
  weft_array_set_free(&out);
  weft_diag_free(diag);
}

static void check_network(const network *n) {
  weft_graph *graph = make_network(n);
  weft_array_set in = {0}, want = {0};
  inputs_of_graph(graph, 3, &in);
  weft_diag *diag = weft_diag_new();
  weft_status status = weft_graph_interpret(graph, &in, &want, diag);
  if (status) print_error("%s\n", first_message(diag));
  assert_int_equal(status, WEFT_OK);
  weft_program *program = NULL;
  assert_int_equal(weft_graph_lower(graph, &program, diag), WEFT_OK);
  check(graph, &in, &want, program);
  weft_program_free(program);
  static const char *const cases[][2] = {{"x=2", "columns"}, {"x=3", "rows"},       {"x=4", "rows"},
                                         {"x=2", "batch"},   {"x=4", "column-row"}, {"x=2,y=2", "x=batch,y=columns"},
                                         {"x=3", "columns"}, {"x=2", "pipeline"},   {"x=64", "columns"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    program = machine_program(graph, cases[i][0], cases[i][1]);
    check(graph, &in, &want, program);
    weft_program_free(program);
  }
  weft_array_set_free(&in);
  weft_array_set_free(&want);
  weft_diag_free(diag);
  weft_graph_free(graph);
}

static void test_networks(void **state) {
  (void)state;
  static const network networks[] = {
      {{33, 65, 7}, 3, 5, WEFT_FP32, 0},        {{1, 1}, 2, 1, WEFT_FP32, 0},
      {{200, 40, 33, 10}, 4, 40, WEFT_FP32, 0}, {{65, 34, 9}, 3, 70, WEFT_BF16, 2},
      {{50, 40, 10}, 3, 12, WEFT_INT8, 0},      {{130, 70, 5}, 3, 33, WEFT_FP32, 4},
      {{300, 257, 10}, 3, 100, WEFT_FP32, 0},
  };
  for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) check_network(&networks[i]);
}

/** Every chip's program of a split is planned and certified by itself, also where chips have nothing to do. */
static void check_split(const network *n, const char *split) {
  weft_graph *graph = make_network(n);
  weft_program *machine = machine_program(graph, "x=4", split);
  weft_program *programs[4] = {0};
  weft_status status = weft_split(machine, 4, programs, graph_diag);
  if (status) print_error("%s\n", first_message(graph_diag));
  assert_int_equal(status, WEFT_OK);
  for (int c = 0; c < 4; c++) {
    plan_for(programs[c], "cpu", NULL);
    assert_int_equal(weft_program_phase(programs[c]), WEFT_PHASE_VERIFIED);
    weft_program_free(programs[c]);
  }
  weft_program_free(machine);
  weft_graph_free(graph);
}

static void test_split_programs(void **state) {
  (void)state;
  static const network networks[] = {{{96, 64, 40, 10}, 4, 33, WEFT_FP32, 4},
                                     {{33, 65, 7}, 3, 5, WEFT_FP32, 0},
                                     {{1, 1}, 2, 1, WEFT_FP32, 0},
                                     {{64, 40, 10}, 3, 2, WEFT_INT8, 0}};
  static const char *const splits[] = {"columns", "rows", "batch", "column-row"};
  for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
    for (size_t s = 0; s < 4; s++) check_split(&networks[i], splits[s]);
}

static uint64_t below(uint64_t *random, uint64_t n) { return weft_random_next(random) % n; }

/** An extent that is often at the edge of a tile. */
static uint64_t random_extent(uint64_t *random, uint64_t most) {
  static const uint64_t edges[] = {1, 31, 32, 33, 63, 64, 65, 96, 97};
  return below(random, 2) ? 1 + below(random, most) : edges[below(random, sizeof edges / sizeof *edges)];
}

/** A random network over random chips: certified, and the interpreter's bits in the fixed order and in random ones. */
static void check_random(uint64_t seed) {
  uint64_t random = seed * 1000003;
  static const weft_format formats[] = {WEFT_FP32, WEFT_FP32, WEFT_BF16, WEFT_INT8};
  static const char *const splits[] = {"columns", "rows", "batch", "column-row"};
  network n = {.count = 2 + (uint32_t)below(&random, 3), .batch = random_extent(&random, 80)};
  n.dtype = formats[below(&random, 4)];
  for (uint32_t i = 0; i < n.count; i++) n.layers[i] = random_extent(&random, 150);
  if (below(&random, 2)) n.segments = 2u << below(&random, 3);
  char mesh[16];
  snprintf(mesh, sizeof mesh, "x=%d", (int)(1 + below(&random, 9)));
  weft_graph *graph = make_network(&n);
  weft_program *program = machine_program(graph, mesh, splits[below(&random, 4)]);
  weft_array_set in = {0}, want = {0};
  inputs_of_graph(graph, seed, &in);
  assert_int_equal(weft_graph_interpret(graph, &in, &want, graph_diag), WEFT_OK);
  plan_for(program, "cpu", NULL);
  for (uint64_t order = 0; order < 4; order++) {
    weft_array_set out = {0};
    weft_status status = run_program(program, &in, order != 0, order, &out, graph_diag);
    if (status || !same_sets(&want, &out))
      print_error("order %d: %s; repeat with: test_plan_machine 1 %llu\n", (int)order, first_message(graph_diag),
                  (unsigned long long)seed);
    assert_int_equal(status, WEFT_OK);
    assert_true(same_sets(&want, &out));
    weft_array_set_free(&out);
  }
  weft_array_set_free(&in);
  weft_array_set_free(&want);
  weft_program_free(program);
  weft_graph_free(graph);
}

static void test_random_networks(void **state) {
  (void)state;
  for (uint64_t i = 0; i < random_cases; i++) check_random(first_seed + i);
}

int main(int argc, char **argv) {
  if (argc > 1) random_cases = strtoull(argv[1], NULL, 10);
  if (argc > 2) first_seed = strtoull(argv[2], NULL, 10);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_networks),
      cmocka_unit_test(test_random_networks),
      cmocka_unit_test(test_split_programs),
  };
  return cmocka_run_group_tests(tests, make_graph_diag, free_graph_diag);
}
