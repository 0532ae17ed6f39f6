/* Random graphs: lowering, lifting and the interpreter against the Template as its stages say it, bit for bit.
 *
 * usage: test_graph_random [SEED [COUNT]]: COUNT graphs from SEED on. A failure prints the command that repeats it. */
#include "support.h"
#include "template_run.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t first_seed = 1, seed_count = 400;

static void interpret(const weft_graph *graph, const weft_array_set *in, weft_array_set *out, weft_diag *diag) {
  expect_ok(weft_graph_interpret(graph, in, out, diag), diag);
}

static weft_program *lower(const weft_graph *graph, weft_diag *diag) {
  weft_program *program;
  expect_ok(weft_graph_lower(graph, &program, diag), diag);
  return program;
}

/** Writes the program, reads it back: nothing may be lost. */
static weft_program *reread(const weft_program *program, weft_diag *diag) {
  weft_text text = {0}, again = {0};
  weft_program *copy;
  weft_program_write(program, &text);
  expect_ok(weft_program_read("random", text.data, text.length, &copy, diag), diag);
  expect_ok(weft_program_validate(copy, 1, NULL, diag), diag);
  weft_program_write(copy, &again);
  assert_string_equal(text.data, again.data);
  weft_text_free(&text);
  weft_text_free(&again);
  return copy;
}

static void check_program(const weft_graph *graph, const weft_array_set *in, const weft_array_set *expected, bool lifts,
                          bool tidy, weft_diag *diag) {
  weft_program *program = lower(graph, diag), *copy = reread(program, diag);
  weft_array_set out = {0};
  template_run(copy, in, &out);
  expect_equal_sets(expected, &out);
  weft_array_set_free(&out);
  if (lifts) {
    weft_graph *lifted;
    weft_array_set again = {0};
    expect_ok(weft_graph_lift(copy, &lifted, diag), diag);
    if (tidy) expect_equal_graphs(graph, lifted);
    interpret(lifted, in, &again, diag);
    expect_equal_sets(expected, &again);
    weft_array_set_free(&again);
    weft_graph_free(lifted);
  }
  weft_program_free(program);
  weft_program_free(copy);
}

static bool has_empty_copy(const weft_graph *graph) {
  for (uint64_t i = 0; i < graph->op_count; i++) {
    const weft_value *out = &graph->values[graph->ops[i].out];
    bool copies = graph->ops[i].kind == WEFT_GRAPH_SLICE || graph->ops[i].kind == WEFT_GRAPH_ASSEMBLE;
    if (copies && (!out->extents[0] || !out->extents[1])) return true;
  }
  return false;
}

static void check_seed(uint64_t number) {
  chance c = {number * 0x9E3779B97F4A7C15u};
  const random_graph_options options = {.integers = number & 1, .tidy = number & 2};
  weft_diag *diag = weft_diag_new();
  weft_graph *graph = random_graph(&c, &options, diag);
  weft_array_set in = {0}, out = {0}, scattered = {0};
  random_inputs(&c, graph, &in);
  interpret(graph, &in, &out, diag);
  check_program(graph, &in, &out, !has_empty_copy(graph), options.tidy, diag);
  weft_graph *machine = scatter_graph(&c, graph, 1 + (uint32_t)draw(&c, 4), diag);
  interpret(machine, &in, &scattered, diag);
  expect_equal_sets(&out, &scattered);
  check_program(machine, &in, &out, !has_empty_copy(machine), false, diag);
  weft_graph_free(machine);
  weft_graph_free(graph);
  weft_array_set_free(&in);
  weft_array_set_free(&out);
  weft_array_set_free(&scattered);
  weft_diag_free(diag);
}

static uint64_t seed;

static void all_agree(void **state) {
  (void)state;
  for (seed = first_seed; seed < first_seed + seed_count; seed++) check_seed(seed);
}

int main(int argc, char **argv) {
  if (argc > 1) first_seed = strtoull(argv[1], NULL, 10);
  if (argc > 2) seed_count = strtoull(argv[2], NULL, 10);
  if (argc == 2) seed_count = 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_agree)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  if (failed) fprintf(stderr, "repeat with: %s %llu\n", argv[0], (unsigned long long)seed);
  return failed;
}
