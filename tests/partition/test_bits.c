/* The same bits on any number of chips: machine graphs interpreted against the graph of one chip, and their splits
 * checked.
 *
 * Each case is made from a seed; a failure prints the command that repeats only it. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>

#define CASES 48

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

static void check_machine(const weft_graph *graph, const char *mesh, const char *split, uint64_t seed,
                          const weft_array_set *in, const weft_array_set *expected) {
  weft_graph *machine = partitioned(graph, mesh, split, NULL);
  weft_array_set got = {0};
  interpret(machine, in, &got);
  bool fine = same_arrays(expected, &got) && split_is_sound(machine, machine->chips);
  weft_array_set_free(&got);
  weft_graph_free(machine);
  if (!fine)
    fail_msg("%s over %s; to repeat only this case: test_partition_bits %llu", split ? split : "search", mesh,
             (unsigned long long)seed);
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
      check_machine(graph, mesh, one_axis[s], seed, &in, &expected);
    }
  for (size_t s = 0; s < sizeof more_axes / sizeof *more_axes; s++)
    check_machine(graph, more_axes[s].mesh, more_axes[s].split, seed, &in, &expected);
  weft_array_set_free(&in);
  weft_array_set_free(&expected);
  weft_graph_free(graph);
  weft_diag_free(diag);
}

static uint64_t only_seed;

static void test_generated_networks(void **state) {
  (void)state;
  if (only_seed) check_case(only_seed);
  for (uint64_t seed = 1; seed <= CASES && !only_seed; seed++) check_case(seed);
}

int main(int argc, char **argv) {
  if (argc > 1) only_seed = strtoull(argv[1], NULL, 10);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_generated_networks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
