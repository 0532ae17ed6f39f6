/* Random graphs, of one chip or over several, planned for every target: certified, they give the interpreter's bits in
 * the fixed order of engines and in random ones.
 *
 * usage: test_plan_random [SEED [COUNT [ORDERS]]]: COUNT programs from SEED on, each in ORDERS random orders. A failure
 * prints the command that repeats it. */
#include "../graph/support.h"
#include "weft/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t first_seed = 1, seed_count = 300, orders = 20, seed;

static const char *const target_names[] = {"cpu", "cpu", "mesh-8x8", "rdu"};
enum { TARGET_COUNT = sizeof target_names / sizeof *target_names };

typedef struct tally {
  uint64_t certified, multicast, machines, refused, faulting;
} tally;
static tally counts;

/** Where a target has not what a program needs, planning says so by name; nothing else stops it. */
static weft_program *planned(const weft_graph *graph, const char *target_name, bool spread, weft_diag *diag) {
  weft_program *program;
  weft_target target;
  expect_ok(weft_graph_lower(graph, &program, diag), diag);
  expect_ok(weft_target_load(target_name, &target, diag), diag);
  if (spread) target.op_seconds = 1e-15; /* small blocks on many sites, which then read together */
  const weft_options options = {.validate_between = true};
  weft_diag *planning = weft_diag_new();
  weft_status status = weft_plan(program, &target, &options, planning);
  if (status != WEFT_OK) {
    const char *text = weft_diag_message(planning, 0)->text;
    if (status != WEFT_INVALID || !strstr(text, target_name)) fail_msg("planning failed: %s", text);
    counts.refused++;
    weft_program_free(program);
    program = NULL;
  }
  weft_diag_free(planning);
  return program;
}

/** `expected` NULL: a value of the graph does not fit its format, which every order must find. */
static void check_graph(const weft_graph *graph, const weft_array_set *in, const weft_array_set *expected,
                        const char *target, bool spread, weft_diag *diag) {
  weft_program *program = planned(graph, target, spread, diag);
  if (!program) return;
  assert_int_equal(weft_program_phase(program), WEFT_PHASE_VERIFIED);
  counts.certified++;
  counts.multicast += program->placement->group_count > 0;
  counts.machines += graph->chips > 1;
  for (uint64_t order = 0; order <= orders; order++) {
    const weft_evaluate_options options = {.random = order != 0, .seed = seed * 1000 + order, .steps = 1};
    weft_array_set out = {0};
    if (expected) {
      expect_ok(weft_evaluate(program, &options, in, &out, diag), diag);
      expect_equal_sets(expected, &out);
    } else {
      assert_int_equal(weft_evaluate(program, &options, in, &out, diag), WEFT_INVALID);
    }
    weft_array_set_free(&out);
  }
  weft_program_free(program);
}

static void check_seed(void) {
  chance c = {seed * 0xD1342543DE82EF95u};
  const random_graph_options options = {.integers = seed & 1, .tidy = seed & 2};
  weft_diag *diag = weft_diag_new();
  weft_graph *graph = random_graph(&c, &options, diag);
  weft_array_set in = {0}, out = {0};
  random_inputs(&c, graph, &in);
  weft_diag *faults = weft_diag_new();
  weft_status status = weft_graph_interpret(graph, &in, &out, faults);
  if (status != WEFT_INVALID) expect_ok(status, faults);
  weft_diag_free(faults);
  const weft_array_set *expected = status == WEFT_OK ? &out : NULL;
  counts.faulting += !expected;
  const char *target = target_names[draw(&c, TARGET_COUNT)];
  const bool spread = toss(&c);
  if (draw(&c, 2)) {
    weft_graph *machine = scatter_graph(&c, graph, 2 + (uint32_t)draw(&c, 3), diag);
    check_graph(machine, &in, expected, target, spread, diag);
    weft_graph_free(machine);
  } else {
    check_graph(graph, &in, expected, target, spread, diag);
  }
  weft_graph_free(graph);
  weft_array_set_free(&in);
  weft_array_set_free(&out);
  weft_diag_free(diag);
}

static void all_agree(void **state) {
  (void)state;
  for (seed = first_seed; seed < first_seed + seed_count; seed++) check_seed();
  print_message("programs: %llu certified (%llu over several chips, %llu with multicast), %llu refused by target; "
                "values of %llu do not fit\n",
                (unsigned long long)counts.certified, (unsigned long long)counts.machines,
                (unsigned long long)counts.multicast, (unsigned long long)counts.refused,
                (unsigned long long)counts.faulting);
}

int main(int argc, char **argv) {
  if (argc > 1) first_seed = strtoull(argv[1], NULL, 10);
  if (argc > 2) seed_count = strtoull(argv[2], NULL, 10);
  if (argc > 3) orders = strtoull(argv[3], NULL, 10);
  if (argc == 2) seed_count = 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_agree)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  if (failed) fprintf(stderr, "repeat with: %s %llu\n", argv[0], (unsigned long long)seed);
  return failed;
}
