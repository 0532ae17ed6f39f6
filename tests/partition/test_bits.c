/* The same bits on any number of chips: machine graphs interpreted against the graph of one chip, and their splits
 * checked.
 *
 * Each case is made from a seed; a failure prints the command that repeats only it. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>

#define CASES 20
#define BRANCHED 80

static const char *const one_axis[] = {"columns", "rows", "batch", "column-row", "pipeline", NULL};
static const uint32_t chip_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 64};
static const struct {
  const char *mesh, *split;
} more_axes[] = {
    {"x=2,y=2", "x=batch,y=columns"},
    {"x=2,y=2", "x=columns,y=rows"},
    {"x=2,y=3", "x=rows,y=columns"},
    {"x=2,y=3", "x=rows,y=rows"},
    {"x=3,y=2", "x=columns,y=columns"},
    {"x=2,y=3", "x=pipeline,y=column-row"},
    {"x=3,y=2", "x=batch,y=pipeline"},
    {"x=2,y=2", NULL},
    {"x=2,y=3", NULL},
    {"x=2,y=2,z=2", NULL},
    {"x=2,y=2,z=2", "x=batch,y=rows,z=pipeline"},
    {"x=2,y=2", "x=rows"},
    {"x=1,y=4", "x=columns,y=rows"},
};

static uint64_t pick(uint64_t *state, uint64_t count) { return weft_random_next(state) % count; }

static mlp random_mlp(uint64_t seed) {
  static const uint64_t extents[] = {1, 7, 10, 33, 65, 128, 784}, batches[] = {1, 2, 5, 7, 33};
  static const weft_format formats[] = {WEFT_FP32, WEFT_FP32, WEFT_BF16, WEFT_INT8};
  static const uint32_t segments[] = {0, 0, 2, 4, 8};
  uint64_t state = seed;
  mlp shape = {.layers = 1 + (uint32_t)pick(&state, 4)};
  for (uint32_t i = 0; i <= shape.layers; i++) shape.widths[i] = extents[pick(&state, i == 0 ? 7 : 6)];
  shape.batch = batches[pick(&state, 5)];
  shape.dtype = formats[pick(&state, 4)];
  shape.bias = pick(&state, 4) > 0;
  shape.relu = pick(&state, 4) > 0;
  shape.segments = segments[pick(&state, 5)];
  return shape;
}

/* ---- one machine graph
 * ------------------------------------------------------------------------------------------------ */

static bool split_is_sound(const weft_graph *machine, uint32_t chips) {
  weft_diag *diag = weft_diag_new();
  weft_program *whole = NULL, **programs = calloc(chips, sizeof *programs);
  weft_status status = weft_graph_lower(machine, &whole, diag);
  if (status == WEFT_OK) status = weft_split(whole, chips, programs, diag);
  for (uint32_t c = 0; c < chips && status == WEFT_OK; c++) status = weft_program_validate(programs[c], 1, NULL, diag);
  if (status == WEFT_OK) status = weft_split_check((const weft_program *const *)programs, chips, diag);
  if (status != WEFT_OK) print_message("%s", messages_of(diag));
  for (uint32_t c = 0; c < chips; c++) weft_program_free(programs[c]);
  free(programs);
  weft_program_free(whole);
  weft_diag_free(diag);
  return status == WEFT_OK;
}

static void check_machine(const weft_graph *graph, const char *mesh, const char *split, const char *requests,
                          uint64_t seed, const weft_array_set *in, const weft_array_set *expected) {
  weft_graph *machine = partitioned(graph, mesh, split, requests);
  weft_array_set got = {0};
  interpret(machine, in, &got);
  bool fine = same_arrays(expected, &got) && split_is_sound(machine, machine->chips);
  weft_array_set_free(&got);
  weft_graph_free(machine);
  if (!fine)
    fail_msg("%s over %s, %s; to repeat only this case: test_partition_bits %llu", split ? split : "search", mesh,
             requests ? requests : "no requests", (unsigned long long)seed);
}

static void check_case(uint64_t seed) {
  mlp shape = random_mlp(seed);
  weft_diag *diag = weft_diag_new();
  weft_graph *graph = build_mlp(&shape, diag);
  weft_array_set in = {0}, expected = {0};
  fill_inputs(graph, seed, &in);
  interpret(graph, &in, &expected);
  char mesh[32];
  for (size_t s = 0; s < sizeof one_axis / sizeof *one_axis; s++)
    for (size_t c = 0; c < sizeof chip_counts / sizeof *chip_counts; c++) {
      snprintf(mesh, sizeof mesh, "x=%u", chip_counts[c]);
      check_machine(graph, mesh, one_axis[s], NULL, seed, &in, &expected);
    }
  for (size_t s = 0; s < sizeof more_axes / sizeof *more_axes; s++)
    check_machine(graph, more_axes[s].mesh, more_axes[s].split, NULL, seed, &in, &expected);
  weft_array_set_free(&in);
  weft_array_set_free(&expected);
  weft_graph_free(graph);
  weft_diag_free(diag);
}

/* ---- graphs with branches
 * ------------------------------------------------------------------------------------------------ */

#define POOL 12

/* A random op over values of the pool; returns its result. */
static uint32_t random_op(weft_graph *graph, uint64_t *state, const uint32_t *pool, uint32_t count, uint32_t number) {
  static const uint64_t widths[] = {1, 5, 33, 64, 130, 256};
  const weft_body_node nodes[] = {{.kind = WEFT_BODY_OPERAND, .value = 0},
                                  {.kind = WEFT_BODY_OPERAND, .value = 1},
                                  {.kind = pick(state, 2) ? WEFT_BODY_ADD : WEFT_BODY_MUL, .child = {0, 1}}};
  char name[24], param[24];
  snprintf(name, sizeof name, "v%u", number);
  snprintf(param, sizeof param, "p%u", number);
  uint32_t x = pool[pick(state, count)], other = pool[pick(state, count)];
  uint64_t rows = graph->values[x].extents[0], cols = graph->values[x].extents[1];
  switch (pick(state, 5)) {
  case 0: return weft_graph_relu(graph, name, x);
  case 1: return weft_graph_bias(graph, name, x, weft_graph_param(graph, param, WEFT_FP32, 1, &cols));
  case 2: {
    bool same = graph->values[other].extents[1] == cols;
    uint64_t broadcast[2] = {pick(state, 2) ? rows : 1, pick(state, 2) ? cols : 1};
    uint32_t ins[2] = {x, same ? other : weft_graph_param(graph, param, WEFT_FP32, 2, broadcast)};
    return weft_graph_pointwise(graph, name, ins, 2, &(weft_body){nodes, 3}, WEFT_FP32);
  }
  default: {
    weft_graph_section(graph, name);
    uint64_t extents[2] = {cols, widths[pick(state, 6)]};
    uint32_t out = weft_graph_matmul(graph, name, x, weft_graph_param(graph, param, WEFT_FP32, 2, extents));
    if (pick(state, 2)) graph->ops[graph->values[out].producer].segments = 1 + (uint32_t)pick(state, 8);
    return out;
  }
  }
}

/* Values read by several ops, skip connections, outputs that are read again. */
static weft_graph *random_graph(uint64_t seed, weft_diag *diag) {
  uint64_t state = seed;
  weft_graph *graph = weft_graph_new("branches", diag);
  uint64_t extents[2] = {1 + pick(&state, 9), 1 + pick(&state, 300)};
  uint32_t pool[POOL + 1] = {weft_graph_input(graph, "x", WEFT_FP32, 2, extents)}, count = 1;
  weft_graph_section(graph, "first");
  for (; count <= POOL; count++) pool[count] = random_op(graph, &state, pool, count, count);
  for (uint32_t i = 1; i <= POOL; i++) {
    char name[24];
    snprintf(name, sizeof name, "out%u", i);
    if (i == POOL || pick(&state, 5) == 0) weft_graph_output(graph, pool[i], name);
  }
  return graph;
}

/* A random request on some tensor; contradictions it leads to are the user's. */
static const char *random_request(const weft_graph *graph, uint64_t *state, char *text, size_t size) {
  static const char *const specs[] = {"cols@x",        "rows@x",   "cols@y",    "rows@y",
                                      "rows@x,cols@y", "cols@y+x", "replicated"};
  const weft_value *value = &graph->values[pick(state, graph->value_count)];
  if (value->rank != 2) return NULL;
  snprintf(text, size, "%s=%s", value->name, specs[pick(state, 7)]);
  return text;
}

static void check_branches(uint64_t seed) {
  static const char *const splits[] = {NULL,         "x=columns",          "x=rows,y=batch", "x=column-row,y=rows",
                                       "y=pipeline", "x=columns,y=columns"};
  weft_diag *diag = weft_diag_new();
  weft_graph *graph = random_graph(seed, diag);
  if (weft_graph_check(graph, diag) != WEFT_OK) fail_msg("seed %llu: %s", (unsigned long long)seed, messages_of(diag));
  weft_array_set in = {0}, expected = {0};
  fill_inputs(graph, seed, &in);
  interpret(graph, &in, &expected);
  uint64_t state = seed;
  for (uint32_t i = 0; i < 12; i++) {
    char mesh[32], request[64];
    snprintf(mesh, sizeof mesh, "x=%u,y=%u", 1 + (uint32_t)pick(&state, 4), 1 + (uint32_t)pick(&state, 4));
    const char *split = splits[pick(&state, 6)], *asked = random_request(graph, &state, request, sizeof request);
    weft_graph *machine = NULL;
    weft_status status = partition_as(graph, mesh, split, asked, &machine, NULL, diag);
    if (status == WEFT_INVALID)
      weft_diag_clear(diag);
    else
      check_machine(graph, mesh, split, asked, seed, &in, &expected);
    weft_graph_free(machine);
  }
  weft_array_set_free(&in);
  weft_array_set_free(&expected);
  weft_graph_free(graph);
  weft_diag_free(diag);
}

static uint64_t only_seed;

static void test_graphs_with_branches(void **state) {
  (void)state;
  if (only_seed) check_branches(only_seed);
  for (uint64_t seed = 1; seed <= BRANCHED && !only_seed; seed++) check_branches(seed);
}

static void test_generated_networks(void **state) {
  (void)state;
  if (only_seed) check_case(only_seed);
  for (uint64_t seed = 1; seed <= CASES && !only_seed; seed++) check_case(seed);
}

int main(int argc, char **argv) {
  if (argc > 1) only_seed = strtoull(argv[1], NULL, 10);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_generated_networks),
                                     cmocka_unit_test(test_graphs_with_branches)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
