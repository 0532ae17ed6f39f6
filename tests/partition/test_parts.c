/* Parts of transformers over meshes: the same bits from the graph of one chip, the machine graph, and the planned and
 * proven schedule of the whole machine; splits that are sound and proven.
 *
 * Each case is made from a seed; a failure prints the command that repeats only it. */
#include "support.h"

#include "weft/plan.h"

#include <stdio.h>
#include <stdlib.h>

#define CASES 40

static uint64_t pick(uint64_t *state, uint64_t count) { return weft_random_next(state) % count; }

#define STEPS 3

static weft_graph *random_part(uint64_t *state, weft_diag *diag) {
  static const uint64_t rows[] = {1, 2, 5, 33, 70}, cols[] = {1, 7, 32, 100, 130, 300, 1030}, sizes[] = {2, 6, 32, 70};
  static const weft_format formats[] = {WEFT_FP32, WEFT_FP32, WEFT_BF16};
  weft_sample_kind kind = (weft_sample_kind)pick(state, WEFT_SAMPLE_COUNT);
  weft_sample_options options = {.rows = rows[pick(state, 5)],
                                 .cols = cols[pick(state, 7)],
                                 .hidden = cols[pick(state, 6)],
                                 .kv_heads = 1 + pick(state, 3),
                                 .eps_nano = 10000,
                                 .dtype = formats[pick(state, 3)]};
  options.heads = options.kv_heads * (1 + pick(state, 2));
  if (kind == WEFT_SAMPLE_rope || kind == WEFT_SAMPLE_attention) options.cols = options.heads * sizes[pick(state, 4)];
  if (kind == WEFT_SAMPLE_conv) {
    options.rows = 1;
    options.hidden = 2 + pick(state, 4);
  }
  weft_graph *graph;
  if (weft_graph_new_sample(kind, &options, &graph, diag) != WEFT_OK) fail_msg("%s", messages_of(diag));
  return graph;
}

static weft_status interpret_steps(const weft_graph *graph, const weft_array_set *in, weft_array_set *out,
                                   weft_diag *diag) {
  return weft_graph_interpret_steps(graph, STEPS, NULL, in, out, diag);
}

static weft_status evaluate_machine(const weft_program *whole, const weft_target *target, const weft_array_set *in,
                                    weft_array_set *out, weft_diag *diag) {
  weft_program *planned = weft_program_clone(whole);
  const weft_options options = {0};
  weft_status status = weft_plan(planned, target, &options, diag);
  if (status == WEFT_OK) status = weft_evaluate(planned, &(weft_evaluate_options){.steps = STEPS}, in, out, diag);
  weft_program_free(planned);
  return status;
}

static weft_status prove_chips(weft_program **programs, uint32_t chips, const weft_target *target, weft_diag *diag) {
  const weft_options options = {0};
  weft_status status = weft_split_check((const weft_program *const *)programs, chips, diag);
  for (uint32_t c = 0; c < chips && status == WEFT_OK; c++)
    if (programs[c]->stage_count) status = weft_plan(programs[c], target, &options, diag);
  return status;
}

static bool machine_is_right(const weft_graph *machine, const weft_array_set *in, const weft_array_set *expected) {
  weft_diag *diag = weft_diag_new();
  weft_target target;
  weft_array_set interpreted = {0}, evaluated = {0};
  weft_program *whole = NULL, **programs = calloc(machine->chips, sizeof *programs);
  weft_status status = weft_target_load("cpu", &target, diag);
  if (status == WEFT_OK) status = interpret_steps(machine, in, &interpreted, diag);
  if (status == WEFT_OK) status = weft_graph_lower(machine, &whole, diag);
  if (status == WEFT_OK) status = evaluate_machine(whole, &target, in, &evaluated, diag);
  if (status == WEFT_OK) status = weft_split(whole, machine->chips, programs, diag);
  if (status == WEFT_OK) status = prove_chips(programs, machine->chips, &target, diag);
  if (status != WEFT_OK) print_message("%s", messages_of(diag));
  bool right = status == WEFT_OK && same_arrays(expected, &interpreted) && same_arrays(expected, &evaluated);
  for (uint32_t c = 0; c < machine->chips; c++) weft_program_free(programs[c]);
  free(programs);
  weft_program_free(whole);
  weft_array_set_free(&interpreted);
  weft_array_set_free(&evaluated);
  weft_diag_free(diag);
  return right;
}

static void check_part(uint64_t seed) {
  static const char *const meshes[] = {"x=1", "x=2", "x=3", "x=4", "x=8"};
  static const char *const splits[] = {NULL, "columns", "batch", "column-row"};
  uint64_t state = seed;
  weft_diag *diag = weft_diag_new();
  weft_graph *graph = random_part(&state, diag);
  weft_array_set in = {0}, expected = {0};
  fill_inputs(graph, seed, &in);
  if (interpret_steps(graph, &in, &expected, diag) != WEFT_OK) fail_msg("%s", messages_of(diag));
  for (uint32_t i = 0; i < 3; i++) {
    const char *mesh = meshes[pick(&state, 5)], *split = splits[pick(&state, 4)];
    weft_graph *machine = partitioned(graph, mesh, split, NULL);
    if (!machine_is_right(machine, &in, &expected))
      fail_msg("%s, %s over %s; to repeat only this case: test_partition_parts %llu", graph->name,
               split ? split : "search", mesh, (unsigned long long)seed);
    weft_graph_free(machine);
  }
  weft_array_set_free(&in);
  weft_array_set_free(&expected);
  weft_graph_free(graph);
  weft_diag_free(diag);
}

static uint64_t only_seed;

static void test_random_parts(void **state) {
  (void)state;
  if (only_seed) check_part(only_seed);
  for (uint64_t seed = 1; seed <= CASES && !only_seed; seed++) check_part(seed);
}

int main(int argc, char **argv) {
  if (argc > 1) only_seed = strtoull(argv[1], NULL, 10);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_parts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
