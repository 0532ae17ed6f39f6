/* Random threads with spatial regions and channels as C: with their regions in place, and published with their graphs
 * as token machines, they do to memory and channels what the interpreter says. Arguments: how many programs, the first
 * seed. */
#include "df_compile.h"
#include "program_generator.h"

static uint64_t programs = 12, first_seed = 1;

enum { STEPS = 300000, TOKENS = 400 };

typedef struct outcome {
  weft_run_state state;
  memories memory;
  weft_channel in, out;
} outcome;

typedef struct thread_case {
  uint64_t seed;
  weft_text text;
  weft_mlir_file *file;
  outcome expected;
} thread_case;

static void begin(world *w, uint64_t seed, outcome *o, weft_binding *inputs) {
  const weft_mlir_type *i32 = weft_mlir_integer(w->context, 32, WEFT_MLIR_SIGNLESS);
  memset(o, 0, sizeof *o);
  memories_fill(&o->memory, i32, seed);
  o->in = (weft_channel){.name = "in", .element = i32};
  o->out = (weft_channel){.name = "out", .element = i32};
  uint64_t random = seed;
  for (int i = 0; i < TOKENS; i++) assert_true(weft_channel_push(&o->in, weft_random_next(&random) % 19));
  memset(inputs, 0, 8 * sizeof *inputs);
  inputs[0].word = seed % 5;
  inputs[1].word = seed / 5 % 5;
  inputs[2].word = seed / 25 % 4;
  for (int i = 0; i < MEMORIES; i++) inputs[3 + i].buffer = &o->memory.buffers[seed % 3 == 0 ? 0 : i];
  inputs[6].channel = &o->in;
  inputs[7].channel = &o->out;
}

static void end(outcome *o) {
  weft_channel_free(&o->in);
  weft_channel_free(&o->out);
}

static void interpret(world *w, thread_case *t) {
  weft_interpreter *machine;
  weft_binding inputs[8];
  begin(w, t->seed, &t->expected, inputs);
  assert_int_equal(weft_interpreter_new(weft_mlir_lookup(t->file->modules[0], "entry"), "test.mlir", &machine, w->diag),
                   WEFT_OK);
  assert_int_equal(weft_interpreter_start(machine, inputs, 8, w->diag), WEFT_OK);
  t->expected.state = weft_interpreter_run(machine, STEPS);
  weft_interpreter_free(machine);
}

static bool same_tokens(const weft_channel *a, const weft_channel *b) {
  uint64_t count = weft_channel_waiting(a);
  return count == weft_channel_waiting(b) &&
         (!count || memcmp(a->words + a->begin, b->words + b->begin, count * sizeof *a->words) == 0);
}

static void check_compiled(world *w, const thread_case *t, const weft_df_entry *entry, const char *how) {
  outcome got;
  weft_binding inputs[8];
  weft_df_outcome ended;
  if (t->expected.state != WEFT_RUN_DONE && t->expected.state != WEFT_RUN_FAULT) return;
  begin(w, t->seed, &got, inputs);
  weft_df_launch launch = {.entry = entry, .inputs = inputs};
  assert_int_equal(weft_df_run(&launch, 1, NULL, &ended, w->diag), WEFT_OK);
  const char *difference = ended.done == (t->expected.state == WEFT_RUN_DONE) ? "" : "it ended otherwise";
  if (ended.done && !*difference) difference = memories_differ(&t->expected.memory, &got.memory, false);
  if (ended.done && !*difference && !same_tokens(&t->expected.in, &got.in)) difference = "other tokens are left";
  if (ended.done && !*difference && !same_tokens(&t->expected.out, &got.out)) difference = "other tokens were sent";
  if (*difference)
    fail_msg("%s: %s (%s)\nrepeat with: test_emit_threads 1 %llu\n%s", how, difference, ended.text,
             (unsigned long long)t->seed, t->text.data);
  end(&got);
}

/* A module a program, since published graphs have names of their own; one C file each. */
static void check_program(uint64_t seed, uint64_t *ran) {
  world w = world_new();
  thread_case t = {.seed = seed};
  weft_df_program compiled;
  program_options options = {
      .seed = seed, .depth = 1 + (int)(seed % 4), .statements = 10 + (int)(seed % 30), .channels = true};
  generate_program(&options, &t.text);
  t.file = world_must_parse(&w, t.text.data);
  interpret(&w, &t);
  *ran += t.expected.state == WEFT_RUN_DONE;
  void *library = compile_module(&w, t.file->modules[0], false, &compiled);
  check_compiled(&w, &t, weft_df_find(&compiled, "entry"), "regions in place");
  compiled_free(library);
  if (weft_publish(w.context, t.file->arena, t.file->modules[0], "test.mlir", w.diag) != WEFT_OK)
    fail_msg("seed %llu: %s", (unsigned long long)seed, world_message(&w));
  library = compile_module(&w, t.file->modules[0], seed % 3 == 0, &compiled);
  check_compiled(&w, &t, weft_df_find(&compiled, "entry"), "published");
  compiled_free(library);
  end(&t.expected);
  weft_mlir_file_free(t.file);
  weft_text_free(&t.text);
  world_free(&w);
}

static void test_threads(void **state) {
  (void)state;
  uint64_t ran = 0;
  for (uint64_t i = 0; i < programs; i++) check_program(first_seed + i, &ran);
  print_message("%llu programs: %llu ended\n", (unsigned long long)programs, (unsigned long long)ran);
}

int main(int argc, char **argv) {
  if (argc > 1) programs = strtoull(argv[1], NULL, 10);
  if (argc > 2) first_seed = strtoull(argv[2], NULL, 10);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
