/* Random programs as C: what the emitted functions do to memory and return is what the interpreter says, from
 * structured bodies, from lowered graphs, and as token machines. Programs are compiled many a file. Arguments: how many
 * programs, the first seed, and how many of them also as machines. */
#include "df_compile.h"
#include "program_generator.h"

static uint64_t programs = 60, first_seed = 1, machines = 20;

enum { BATCH = 40, STEPS = 400000 };

typedef struct program {
  uint64_t seed;
  const int *which;
  weft_text text;
  weft_mlir_file *file;
  weft_run_state state;
  uint64_t result;
  memories expected;
} program;

static const int apart[] = {0, 1, 2}, shared[] = {0, 0, 1}, one[] = {2, 2, 2};

static void input_words(uint64_t seed, uint64_t *words) {
  words[0] = (uint64_t)(int64_t)(seed % 7) - 3;
  words[1] = seed / 7 % 5;
  words[2] = seed / 35 % 6;
}

static void interpret(world *w, program *p) {
  weft_interpreter *machine;
  weft_binding inputs[6] = {{0}};
  uint64_t words[3];
  input_words(p->seed, words);
  memories_fill(&p->expected, weft_mlir_integer(w->context, 32, WEFT_MLIR_SIGNLESS), p->seed);
  for (int i = 0; i < 3; i++) inputs[i].word = words[i];
  for (int i = 0; i < MEMORIES; i++) inputs[3 + i].buffer = &p->expected.buffers[p->which[i]];
  assert_int_equal(weft_interpreter_new(weft_mlir_lookup(p->file->modules[0], "entry"), "test.mlir", &machine, w->diag),
                   WEFT_OK);
  assert_int_equal(weft_interpreter_start(machine, inputs, 6, w->diag), WEFT_OK);
  p->state = weft_interpreter_run(machine, STEPS);
  if (p->state == WEFT_RUN_DONE) p->result = weft_interpreter_result(machine, 0);
  weft_interpreter_free(machine);
}

/* Moves the entries of all programs into one module, each under a name of its own. */
static weft_mlir_op *gather(world *w, program *list, uint64_t count) {
  weft_mlir_op *module = weft_mlir_module_new(w->context, list[0].file->arena);
  for (uint64_t i = 0; i < count; i++) {
    char name[32];
    weft_mlir_op *entry = weft_mlir_lookup(list[i].file->modules[0], "entry");
    snprintf(name, sizeof name, "entry_%llu", (unsigned long long)i);
    weft_mlir_remove(entry);
    weft_mlir_set(w->context, entry, "sym_name", weft_mlir_string(w->context, name, strlen(name)));
    weft_mlir_insert(weft_mlir_op_block(module, 0), entry, NULL);
  }
  return module;
}

static void run_compiled(const weft_df_entry *entry, const program *p, const char *how) {
  memories start;
  int32_t words[MEMORIES][MEMORY_WORDS];
  weft_df_memory held[MEMORIES], *given[MEMORIES];
  uint64_t values[3], results[1] = {0};
  weft_df_env env = {0};
  memories_fill(&start, NULL, p->seed);
  for (int i = 0; i < MEMORIES; i++) {
    for (int k = 0; k < MEMORY_WORDS; k++) words[i][k] = (int32_t)start.words[i][k];
    held[i] = (weft_df_memory){.data = words[i], .count = MEMORY_WORDS};
    given[i] = &held[p->which[i]];
  }
  input_words(p->seed, values);
  int status = entry->run(&env, values, given, NULL, results);
  bool good = p->state == WEFT_RUN_FAULT ? status != 0 : status == 0 && results[0] == p->result;
  for (int i = 0; good && p->state == WEFT_RUN_DONE && i < MEMORIES; i++)
    for (int k = 0; good && k < MEMORY_WORDS; k++) good = (uint64_t)(int64_t)words[i][k] == p->expected.words[i][k];
  if (!good)
    fail_msg("%s (%s): status %d (%s, line %u), result %lld against %lld\nrepeat with: test_emit_random 1 %llu 1\n%s",
             how, entry->form, status, env.text ? env.text : "", env.line, (long long)results[0], (long long)p->result,
             (unsigned long long)p->seed, p->text.data);
}

static void run_all(world *w, weft_mlir_op *module, const program *list, uint64_t count, bool as_machines,
                    const char *how, uint64_t *loops) {
  weft_df_program compiled;
  void *library = compile_module(w, module, as_machines, &compiled);
  const weft_df_entry *entries = compiled.entries;
  for (uint64_t i = 0; i < count; i++) {
    if (list[i].state != WEFT_RUN_LIMIT) run_compiled(&entries[i], &list[i], how);
    *loops += strcmp(entries[i].form, "loops") == 0;
  }
  compiled_free(library);
}

static void check_batch(uint64_t seed, uint64_t count, uint64_t *loops, uint64_t *lowered) {
  world w = world_new();
  program list[BATCH];
  memset(list, 0, sizeof list);
  for (uint64_t i = 0; i < count; i++) {
    program *p = &list[i];
    p->seed = seed + i;
    program_options options = {.seed = p->seed,
                               .depth = 1 + (int)(p->seed % 5),
                               .statements = 12 + (int)(p->seed % 40),
                               .no_alias = p->seed % 4 == 0,
                               .faults = p->seed % 5 == 0};
    p->which = options.no_alias || p->seed % 3 == 0 ? apart : p->seed % 3 == 1 ? shared : one;
    generate_program(&options, &p->text);
    p->file = world_must_parse(&w, p->text.data);
    interpret(&w, p);
  }
  uint64_t ignored = 0;
  weft_mlir_op *module = gather(&w, list, count);
  run_all(&w, module, list, count, false, "structured", &ignored);
  if (weft_lower(w.context, list[0].file->arena, module, "test.mlir", w.diag) != WEFT_OK)
    fail_msg("%s", world_message(&w));
  run_all(&w, module, list, count, false, "lowered", loops);
  *lowered += count;
  if (seed - first_seed < machines) run_all(&w, module, list, count, true, "machine", &ignored);
  for (uint64_t i = 0; i < count; i++) {
    weft_mlir_file_free(list[i].file);
    weft_text_free(&list[i].text);
  }
  world_free(&w);
}

static void test_programs(void **state) {
  (void)state;
  uint64_t loops = 0, lowered = 0;
  for (uint64_t done = 0; done < programs;) {
    uint64_t count = programs - done < BATCH ? programs - done : BATCH;
    check_batch(first_seed + done, count, &loops, &lowered);
    done += count;
  }
  print_message("%llu lowered graphs, %llu of them as loops\n", (unsigned long long)lowered, (unsigned long long)loops);
}

int main(int argc, char **argv) {
  if (argc > 1) programs = strtoull(argv[1], NULL, 10);
  if (argc > 2) first_seed = strtoull(argv[2], NULL, 10);
  if (argc > 3) machines = strtoull(argv[3], NULL, 10);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
