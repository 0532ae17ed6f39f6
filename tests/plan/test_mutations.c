/* Schedules with one op changed: refused, or still right; never certified and wrong.
 *
 * Usage: test_plan_mutations [CASES [SEED]]; a failure prints the seed that repeats it. */
#include "mutate.h"
#include "support.h"
#include "weft/graph.h"
#include "weft/partition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t cases = 40, first_seed = 1;

typedef struct counts {
  uint64_t refused, harmless;
} counts;

/** Runs a certified mutant under several orders and compares with the original. */
static bool still_right(const weft_program *mutant, const weft_array_set *in, const weft_array_set *want) {
  for (uint64_t seed = 0; seed < 4; seed++) {
    weft_array_set out = {0};
    weft_diag *diag = weft_diag_new();
    weft_status status = run_program(mutant, in, seed != 0, seed, &out, diag);
    bool same = status == WEFT_OK && same_sets(want, &out);
    if (status) print_error("%s\n", first_message(diag));
    weft_diag_free(diag);
    weft_array_set_free(&out);
    if (!same) return false;
  }
  return true;
}

static void mutate_program(const char *name, const weft_program *program, counts *c) {
  weft_array_set in = {0}, want = {0};
  make_inputs(program, 21, &in);
  weft_array *pos = weft_array_set_find(&in, "pos");
  if (pos) ((int32_t *)pos->data)[0] = 70;
  evaluate(program, &in, &want);
  for (uint64_t i = 0; i < cases; i++) {
    uint64_t seed = first_seed + i, random = seed * 7919;
    char text[128] = "";
    weft_program *mutant = copy_program(program);
    if (mutate_schedule(mutant, &random, text, sizeof text)) {
      weft_certificate certificate;
      weft_diag *diag = weft_diag_new();
      weft_status status = weft_certify(mutant, &certificate, diag);
      if (status) {
        assert_int_equal(status, WEFT_INVALID);
        assert_true(strlen(first_message(diag)) > 0);
        c->refused++;
      } else {
        if (!still_right(mutant, &in, &want)) {
          print_error("%s: certified and wrong: %s; repeat with: test_plan_mutations 1 %llu\n", name, text,
                      (unsigned long long)seed);
          fail();
        }
        c->harmless++;
      }
      weft_diag_free(diag);
    }
    weft_program_free(mutant);
  }
  weft_array_set_free(&in);
  weft_array_set_free(&want);
}

static void test_scheduled(void **state) {
  (void)state;
  static const char *const names[] = {"allreduce-2chips",
                                      "carry-fold",
                                      "chain",
                                      "elementwise-2sites",
                                      "gather",
                                      "gemm-1site",
                                      "gemm-2x2-multicast",
                                      "gemm-int64-spill",
                                      "gemm-pack-accumulate",
                                      "gemm-spill",
                                      "items",
                                      "row-multicast",
                                      "scalar",
                                      "sections-unrolled",
                                      "softmax",
                                      "state-append",
                                      "state-scatter",
                                      "state-two-sections",
                                      "store-parts",
                                      "trip-fold",
                                      "two-sections"};
  counts c = {0};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char name[64];
    snprintf(name, sizeof name, "scheduled-%s", names[i]);
    weft_program *program = read_case(name);
    mutate_program(name, program, &c);
    weft_program_free(program);
  }
  print_message("mutants: %llu refused, %llu harmless\n", (unsigned long long)c.refused,
                (unsigned long long)c.harmless);
}

static void test_planned(void **state) {
  (void)state;
  static const char *const names[] = {"template-gemm-ragged", "template-elementwise", "template-softmax",
                                      "template-sections", "template-allreduce"};
  counts c = {0};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    weft_program *program = read_case(names[i]);
    plan_for(program, "cpu", "synthesize_handshakes");
    mutate_program(names[i], program, &c);
    weft_program_free(program);
  }
  print_message("mutants: %llu refused, %llu harmless\n", (unsigned long long)c.refused,
                (unsigned long long)c.harmless);
}

/** Two layers over two chips, K split: partial sums, AllReduces, all-gathers; without and with multicast. */
static void test_machine(void **state) {
  (void)state;
  uint64_t layers[] = {100, 40, 10};
  weft_mlp_options options = {
      .layers = layers, .layer_count = 3, .batch = 40, .dtype = WEFT_FP32, .bias = true, .relu = true, .segments = 2};
  counts c = {0};
  static const char *const splits[] = {"rows", "columns"};
  for (int i = 0; i < 4; i++) {
    weft_target target;
    weft_graph *graph, *machine;
    weft_program *program = NULL;
    weft_partition_options sharding = {.split = splits[i % 2]};
    assert_int_equal(weft_target_load("cpu", &target, graph_diag), WEFT_OK);
    assert_int_equal(weft_mesh_parse("x=2", &sharding.mesh, graph_diag), WEFT_OK);
    assert_int_equal(weft_graph_new_mlp(&options, "y", &graph, graph_diag), WEFT_OK);
    assert_int_equal(weft_partition(graph, &sharding, &target, &machine, NULL, graph_diag), WEFT_OK);
    assert_int_equal(weft_graph_lower(machine, &program, graph_diag), WEFT_OK);
    if (i < 2)
      plan_for(program, "cpu", "synthesize_handshakes");
    else
      plan_with_multicast(program);
    assert_int_equal(program->placement->group_count > 0, i >= 2);
    mutate_program(splits[i % 2], program, &c);
    weft_program_free(program);
    weft_graph_free(machine);
    weft_graph_free(graph);
  }
  print_message("mutants: %llu refused, %llu harmless\n", (unsigned long long)c.refused,
                (unsigned long long)c.harmless);
}

/** A product up to a position that is read, with its weights: loops that run to a trip. */
static void test_trip(void **state) {
  (void)state;
  const uint64_t x[] = {3, 100}, w[] = {100, 70}, one[] = {1, 1};
  counts c = {0};
  weft_graph *graph = weft_graph_new("trip", graph_diag);
  weft_graph_section(graph, "product");
  uint32_t pos = weft_graph_input(graph, "pos", WEFT_INT32, 2, one);
  weft_graph_range(graph, pos, 0, 99);
  uint32_t y = weft_graph_matmul_up_to(graph, "y", weft_graph_input(graph, "x", WEFT_FP32, 2, x),
                                       weft_graph_param(graph, "w", WEFT_FP32, 2, w), pos);
  weft_graph_output(graph, y, "y");
  weft_program *program = NULL;
  assert_int_equal(weft_graph_lower(graph, &program, graph_diag), WEFT_OK);
  plan_for(program, "cpu", "synthesize_handshakes");
  mutate_program("trip", program, &c);
  weft_program_free(program);
  weft_graph_free(graph);
  print_message("mutants: %llu refused, %llu harmless\n", (unsigned long long)c.refused,
                (unsigned long long)c.harmless);
}

/** Carries and a trip: attention whose maximum, sum and result are folded block by block. */
static void test_flash(void **state) {
  (void)state;
  counts c = {0};
  weft_program *program = NULL;
  assert_int_equal(weft_program_read_file(WEFT_SOURCE_DIR "/data/samples/flash-attention.json", &program, graph_diag),
                   WEFT_OK);
  plan_for(program, "cpu", "synthesize_handshakes");
  mutate_program("flash", program, &c);
  weft_program_free(program);
  print_message("mutants: %llu refused, %llu harmless\n", (unsigned long long)c.refused,
                (unsigned long long)c.harmless);
}

static void test_multicast(void **state) {
  (void)state;
  static const char *const names[] = {"template-gemm", "template-gemm-ragged", "placed-gemm-2x2-multicast"};
  counts c = {0};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    weft_program *program = read_case(names[i]);
    plan_with_multicast(program);
    assert_true(program->placement->group_count >= 2);
    mutate_program(names[i], program, &c);
    weft_program_free(program);
  }
  print_message("mutants: %llu refused, %llu harmless\n", (unsigned long long)c.refused,
                (unsigned long long)c.harmless);
}

/** Buffers that share memory: their guards are mutated like all else. */
static void test_shared_memory(void **state) {
  (void)state;
  static const uint32_t pairs[][2] = {{0, 7}, {0, 3}, {0, 1}};
  counts c = {0};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    weft_program *program = read_case("template-softmax");
    const weft_options options = {.stop_after = "synthesize_handshakes", .validate_between = true};
    weft_target target;
    assert_int_equal(weft_target_load("cpu", &target, graph_diag), WEFT_OK);
    target.mesh_cols = target.mesh_rows = 1;
    program->buffers[pairs[i][1]].alias_of = pairs[i][0];
    if (weft_plan(program, &target, &options, graph_diag)) fail_msg("%s", first_message(graph_diag));
    mutate_program("softmax in shared memory", program, &c);
    weft_program_free(program);
  }
  print_message("mutants: %llu refused, %llu harmless\n", (unsigned long long)c.refused,
                (unsigned long long)c.harmless);
}

int main(int argc, char **argv) {
  if (argc > 1) cases = strtoull(argv[1], NULL, 10);
  if (argc > 2) first_seed = strtoull(argv[2], NULL, 10);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scheduled),     cmocka_unit_test(test_planned),   cmocka_unit_test(test_trip),
      cmocka_unit_test(test_flash),         cmocka_unit_test(test_multicast), cmocka_unit_test(test_machine),
      cmocka_unit_test(test_shared_memory),
  };
  return cmocka_run_group_tests(tests, make_graph_diag, free_graph_diag);
}
