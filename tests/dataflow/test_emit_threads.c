/* Random threads with spatial regions and channels as C: with their regions in place, and published with their graphs
 * as token machines, they do to memory and channels what the interpreter says. Arguments: how many programs, the first
 * seed. */
#include "df_compile.h"
#include "program_generator.h"

static uint64_t programs = 12, first_seed = 1;

enum { STEPS = 300000 };

typedef struct thread_case {
  uint64_t seed;
  weft_text text;
  weft_mlir_file *file;
  thread_run expected;
} thread_case;

static void check_compiled(world *w, const thread_case *t, const weft_df_entry *entry, const char *how) {
  thread_run got;
  weft_df_outcome ended;
  if (t->expected.state != WEFT_RUN_DONE && t->expected.state != WEFT_RUN_FAULT) return;
  thread_begin(w, t->seed, &got);
  weft_df_launch launch = {.entry = entry, .inputs = got.inputs};
  assert_int_equal(weft_df_run(&launch, 1, NULL, &ended, w->diag), WEFT_OK);
  const char *difference = ended.done == (t->expected.state == WEFT_RUN_DONE) ? "" : "it ended otherwise";
  if (ended.done && !*difference) difference = thread_runs_differ(&t->expected, &got, false);
  if (*difference)
    fail_msg("%s: %s (%s)\nrepeat with: test_emit_threads 1 %llu\n%s", how, difference, ended.text,
             (unsigned long long)t->seed, t->text.data);
  thread_end(&got);
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
  thread_execute(&w, t.file->modules[0], seed, 0, STEPS, &t.expected);
  *ran += t.expected.state == WEFT_RUN_DONE;
  void *library = compile_module(&w, t.file->modules[0], false, &compiled);
  check_compiled(&w, &t, weft_df_find(&compiled, "entry"), "regions in place");
  compiled_free(library);
  if (weft_publish(w.context, t.file->arena, t.file->modules[0], "test.mlir", w.diag) != WEFT_OK)
    fail_msg("seed %llu: %s", (unsigned long long)seed, world_message(&w));
  library = compile_module(&w, t.file->modules[0], seed % 3 == 0, &compiled);
  check_compiled(&w, &t, weft_df_find(&compiled, "entry"), "published");
  compiled_free(library);
  thread_end(&t.expected);
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
