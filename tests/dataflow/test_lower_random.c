/* Random programs: the interpreter's memories and results are those of the lowered graph under several orders of firing
 * and capacities, and where the interpreter faults the simulator does. Arguments: how many programs, and the first
 * seed; test_lower_random 1 SEED repeats one. */
#include "df_support.h"
#include "program_generator.h"

#include "weft/base.h"

static uint64_t programs = 300, first_seed = 1;

typedef struct outcome {
  weft_run_state state;
  uint64_t result;
  memories memory;
  char text[600];
} outcome;

enum { STEPS = 400000 };

static void bind(weft_binding *inputs, memories *m, uint64_t seed, const int *which) {
  inputs[0].word = (uint64_t)(int64_t)(seed % 7) - 3;
  inputs[1].word = seed / 7 % 5;
  inputs[2].word = seed / 35 % 6;
  for (int i = 0; i < MEMORIES; i++) inputs[3 + i].buffer = &m->buffers[which[i]];
}

static void interpret(world *w, weft_mlir_op *module, uint64_t seed, const int *which, outcome *o) {
  weft_interpreter *machine;
  weft_binding inputs[6] = {{0}};
  memories_fill(&o->memory, weft_mlir_integer(w->context, 32, WEFT_MLIR_SIGNLESS), seed);
  bind(inputs, &o->memory, seed, which);
  assert_int_equal(weft_interpreter_new(weft_mlir_lookup(module, "entry"), "test.mlir", &machine, w->diag), WEFT_OK);
  for (int launch = 0; launch < 2; launch++) {
    assert_int_equal(weft_interpreter_start(machine, inputs, 6, w->diag), WEFT_OK);
    o->state = weft_interpreter_run(machine, STEPS);
    if (o->state != WEFT_RUN_DONE) break;
  }
  if (o->state == WEFT_RUN_DONE) o->result = weft_interpreter_result(machine, 0);
  weft_interpreter_free(machine);
}

static void simulate(world *w, weft_mlir_op *module, uint64_t seed, const int *which,
                     const weft_simulator_options *options, outcome *o) {
  weft_simulator *machine;
  weft_binding inputs[6] = {{0}};
  memories_fill(&o->memory, weft_mlir_integer(w->context, 32, WEFT_MLIR_SIGNLESS), seed);
  bind(inputs, &o->memory, seed, which);
  assert_int_equal(weft_simulator_new(weft_mlir_lookup(module, "entry"), "test.mlir", options, &machine, w->diag),
                   WEFT_OK);
  for (int launch = 0; launch < 2; launch++) {
    assert_int_equal(weft_simulator_start(machine, inputs, 6, NULL, 0, w->diag), WEFT_OK);
    o->state = weft_simulator_run(machine, 20u * STEPS);
    if (o->state != WEFT_RUN_DONE) break;
  }
  const char *text = weft_simulator_report(machine)->text;
  snprintf(o->text, sizeof o->text, "%s", text ? text : "");
  if (o->state == WEFT_RUN_DONE && !weft_simulator_result(machine, 0, &o->result)) o->state = WEFT_RUN_STUCK;
  weft_simulator_free(machine);
}

static const char *compare(const outcome *a, const outcome *b) {
  if (a->state == WEFT_RUN_FAULT)
    return b->state == WEFT_RUN_FAULT ? "" : "the interpreter faults, the simulator does not";
  if (b->state != WEFT_RUN_DONE) return b->text[0] ? b->text : "the simulator did not end";
  if (a->result != b->result) return "the results differ";
  return memories_differ(&a->memory, &b->memory, true);
}

static void check_program(uint64_t seed, uint64_t *ran, uint64_t *faulted) {
  program_options options = {.seed = seed,
                             .depth = 1 + (int)(seed % 5),
                             .statements = 12 + (int)(seed % 40),
                             .no_alias = seed % 4 == 0,
                             .faults = seed % 5 == 0};
  static const int apart[] = {0, 1, 2}, shared[] = {0, 0, 1}, one[] = {2, 2, 2};
  const int *which = options.no_alias || seed % 3 == 0 ? apart : seed % 3 == 1 ? shared : one;
  weft_text text = {0};
  generate_program(&options, &text);
  world w = world_new();
  weft_mlir_file *file = world_must_parse(&w, text.data);
  outcome expected, got;
  interpret(&w, file->modules[0], seed, which, &expected);
  if (weft_lower(w.context, file->arena, file->modules[0], "test.mlir", w.diag) != WEFT_OK)
    fail_msg("seed %llu: %s", (unsigned long long)seed, world_message(&w));
  if (weft_mlir_verify(file->modules[0], "test.mlir", w.diag) != WEFT_OK)
    fail_msg("seed %llu: %s", (unsigned long long)seed, world_message(&w));
  *ran += expected.state == WEFT_RUN_DONE;
  *faulted += expected.state == WEFT_RUN_FAULT;
  static const uint64_t capacities[] = {2, 2, 3, 7, UINT64_MAX, 2};
  for (uint64_t k = 0; k < 6 && expected.state != WEFT_RUN_LIMIT; k++) {
    weft_simulator_options simulator = {.capacity = capacities[k],
                                        .order = k ? WEFT_ORDER_RANDOM : WEFT_ORDER_PROGRAM,
                                        .seed = seed * 17 + k,
                                        .strict = true};
    simulate(&w, file->modules[0], seed, which, &simulator, &got);
    const char *difference = compare(&expected, &got);
    if (*difference)
      fail_msg("order %llu, capacity %llu: %s\nrepeat with: test_lower_random 1 %llu\n%s", (unsigned long long)k,
               (unsigned long long)capacities[k], difference, (unsigned long long)seed, text.data);
  }
  weft_mlir_file_free(file);
  weft_text_free(&text);
  world_free(&w);
}

static void test_programs(void **state) {
  (void)state;
  uint64_t ran = 0, faulted = 0;
  for (uint64_t i = 0; i < programs; i++) check_program(first_seed + i, &ran, &faulted);
  print_message("%llu programs: %llu ended, %llu faulted\n", (unsigned long long)programs, (unsigned long long)ran,
                (unsigned long long)faulted);
  if (programs >= 300) assert_true(ran > programs / 2 && faulted > 0);
}

int main(int argc, char **argv) {
  if (argc > 1) programs = strtoull(argv[1], NULL, 10);
  if (argc > 2) first_seed = strtoull(argv[2], NULL, 10);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
