/* Random threads with spatial regions and channels: what the thread does with its regions in place is what it does once
 * they are published as graphs, on memory and on channels, also under random orders of firing. Arguments as
 * test_lower_random. */
#include "df_support.h"
#include "program_generator.h"

static uint64_t programs = 200, first_seed = 1;

enum { STEPS = 300000, TOKENS = 400 };

typedef struct outcome {
  weft_run_state state;
  memories memory;
  weft_channel in, out;
  char text[800];
} outcome;

static void execute(world *w, weft_mlir_op *module, uint64_t seed, uint64_t order, outcome *o) {
  const weft_mlir_type *i32 = weft_mlir_integer(w->context, 32, WEFT_MLIR_SIGNLESS);
  weft_interpreter *machine;
  weft_binding inputs[8] = {{0}};
  memset(o, 0, sizeof *o);
  memories_fill(&o->memory, i32, seed);
  o->in = (weft_channel){.name = "in", .element = i32};
  o->out = (weft_channel){.name = "out", .element = i32};
  uint64_t random = seed;
  for (int i = 0; i < TOKENS; i++) assert_true(weft_channel_push(&o->in, weft_random_next(&random) % 19));
  inputs[0].word = seed % 5;
  inputs[1].word = seed / 5 % 5;
  inputs[2].word = seed / 25 % 4;
  for (int i = 0; i < MEMORIES; i++) inputs[3 + i].buffer = &o->memory.buffers[seed % 3 == 0 ? 0 : i];
  inputs[6].channel = &o->in;
  inputs[7].channel = &o->out;
  assert_int_equal(weft_interpreter_new(weft_mlir_lookup(module, "entry"), "test.mlir", &machine, w->diag), WEFT_OK);
  if (order) weft_interpreter_set_order(machine, WEFT_ORDER_RANDOM, seed * 31 + order);
  assert_int_equal(weft_interpreter_start(machine, inputs, 8, w->diag), WEFT_OK);
  o->state = weft_interpreter_run(machine, STEPS);
  const char *text = weft_interpreter_report(machine)->text;
  snprintf(o->text, sizeof o->text, "%s", text ? text : "");
  weft_interpreter_free(machine);
}

static const char *channels_differ(const weft_channel *a, const weft_channel *b) {
  if (weft_channel_waiting(a) != weft_channel_waiting(b)) return "the channels hold different numbers of tokens";
  for (uint64_t i = 0; i < weft_channel_waiting(a); i++)
    if (a->words[a->begin + i] != b->words[b->begin + i]) return "the channels hold different tokens";
  return "";
}

static const char *compare(const outcome *a, const outcome *b) {
  if (a->state == WEFT_RUN_FAULT)
    return b->state == WEFT_RUN_FAULT ? "" : "the thread faults, the published one does not";
  if (a->state != WEFT_RUN_DONE) return "";
  if (b->state != WEFT_RUN_DONE) return b->text[0] ? b->text : "the published thread did not end";
  const char *difference = memories_differ(&a->memory, &b->memory, true);
  if (!*difference) difference = channels_differ(&a->in, &b->in);
  return *difference ? difference : channels_differ(&a->out, &b->out);
}

static void check_program(uint64_t seed, uint64_t *ran) {
  program_options options = {
      .seed = seed, .depth = 1 + (int)(seed % 4), .statements = 10 + (int)(seed % 30), .channels = true};
  weft_text text = {0};
  generate_program(&options, &text);
  world w = world_new();
  weft_mlir_file *file = world_must_parse(&w, text.data);
  outcome expected, got;
  execute(&w, file->modules[0], seed, 0, &expected);
  if (weft_publish(w.context, file->arena, file->modules[0], "test.mlir", w.diag) != WEFT_OK ||
      weft_mlir_verify(file->modules[0], "test.mlir", w.diag) != WEFT_OK)
    fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, world_message(&w), text.data);
  *ran += expected.state == WEFT_RUN_DONE;
  for (uint64_t order = 0; order < 5; order++) {
    execute(&w, file->modules[0], seed, order, &got);
    const char *difference = compare(&expected, &got);
    if (*difference)
      fail_msg("order %llu: %s\nrepeat with: test_publish_random 1 %llu\n%s", (unsigned long long)order, difference,
               (unsigned long long)seed, text.data);
    weft_channel_free(&got.in);
    weft_channel_free(&got.out);
  }
  weft_channel_free(&expected.in);
  weft_channel_free(&expected.out);
  weft_mlir_file_free(file);
  weft_text_free(&text);
  world_free(&w);
}

static void test_programs(void **state) {
  (void)state;
  uint64_t ran = 0;
  for (uint64_t i = 0; i < programs; i++) check_program(first_seed + i, &ran);
  print_message("%llu programs: %llu ended\n", (unsigned long long)programs, (unsigned long long)ran);
  if (programs >= 200) assert_true(ran > programs / 2);
}

int main(int argc, char **argv) {
  if (argc > 1) programs = strtoull(argv[1], NULL, 10);
  if (argc > 2) first_seed = strtoull(argv[2], NULL, 10);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
