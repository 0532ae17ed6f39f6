/* What weft prints in generic form, mlir-opt reads; what mlir-opt prints of it, weft reads as the same module: all
 * cases as given, lowered and published, random programs and samples of the grammars that come with weft. Arguments:
 * how many random programs, how many samples of each grammar, the first seed. */
#include "df_support.h"
#include "program_generator.h"

#include "weft/grammar.h"

#include <dirent.h>
#include <unistd.h>

static uint64_t programs = 40, samples = 20, first_seed = 1;

static const char *const tools[] = {WEFT_MLIR_OPTS};

/* Modules that make the way together, one text. */
enum { BATCH = 400, STEPS = 3 };
typedef struct batch {
  weft_mlir_file *files[BATCH];
  uint32_t count;
  weft_text text;
} batch;

static void add(batch *b, weft_mlir_file *file) {
  assert_true(b->count < BATCH);
  if (b->count) weft_text_puts(&b->text, "// -----\n");
  weft_mlir_print_to_text(file->modules[0], (weft_mlir_print_options){.generic = true}, &b->text);
  b->files[b->count++] = file;
}

static void check_tool(world *w, const batch *b, const char *tool) {
  char folder[] = "/tmp/weft-mlir-opt-XXXXXX", path[64], command[512];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/ours.mlir", folder);
  assert_int_equal(weft_write_file(path, b->text.data, b->text.length, false, w->diag), WEFT_OK);
  snprintf(command, sizeof command,
           "%s --allow-unregistered-dialect --mlir-print-op-generic --split-input-file %s/ours.mlir -o %s/theirs.mlir",
           tool, folder, folder);
  if (system(command) != 0) fail_msg("%s does not read what weft printed: %s", tool, path);
  snprintf(path, sizeof path, "%s/theirs.mlir", folder);
  weft_mlir_file *theirs = NULL;
  if (weft_mlir_read(w->context, path, &theirs, w->diag) != WEFT_OK)
    fail_msg("%s, line %llu: %s", path, (unsigned long long)weft_diag_message(w->diag, 0)->place.line,
             world_message(w));
  assert_int_equal(theirs->module_count, b->count);
  for (uint32_t i = 0; i < b->count; i++) {
    const char *why = NULL;
    if (weft_mlir_equal(b->files[i]->modules[0], theirs->modules[i], theirs->arena, &why)) continue;
    char *ours = print_module(b->files[i]->modules[0], true);
    fail_msg("%s changed a module: %s\n%s", tool, why, ours);
  }
  weft_mlir_file_free(theirs);
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

static void check_batch(world *w, batch *b) {
  assert_false(b->text.failed);
  for (size_t i = 0; b->count && i < sizeof tools / sizeof *tools; i++) check_tool(w, b, tools[i]);
  for (uint32_t i = 0; i < b->count; i++) weft_mlir_file_free(b->files[i]);
  weft_text_free(&b->text);
  *b = (batch){.count = 0};
}

/* The text as given, lowered and published, as far as it can be. */
static void add_steps(world *w, batch *b, const char *path, const char *text) {
  if (b->count + STEPS > BATCH) check_batch(w, b);
  for (int step = 0; step < STEPS; step++) {
    weft_mlir_file *file = text ? world_must_parse(w, text) : NULL;
    if (!text && weft_mlir_read(w->context, path, &file, w->diag) != WEFT_OK) fail_msg("%s", world_message(w));
    weft_status status = step == 1   ? weft_lower(w->context, file->arena, file->modules[0], path, w->diag)
                         : step == 2 ? weft_publish(w->context, file->arena, file->modules[0], path, w->diag)
                                     : WEFT_OK;
    if (status == WEFT_OK)
      add(b, file);
    else
      weft_mlir_file_free(file);
  }
  weft_diag_clear(w->diag);
}

static int is_text(const struct dirent *entry) {
  const char *dot = strrchr(entry->d_name, '.');
  return dot && strcmp(dot, ".mlir") == 0;
}

static void test_cases(void **state) {
  (void)state;
  static const char *const folders[] = {"", "/seeds"};
  world w = world_new();
  batch b = {.count = 0};
  for (int f = 0; f < 2; f++) {
    char folder[512], path[1024];
    struct dirent **names;
    snprintf(folder, sizeof folder, WEFT_SOURCE_DIR "/tests/cases/dataflow%s", folders[f]);
    int count = scandir(folder, &names, is_text, alphasort);
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
      snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
      add_steps(&w, &b, path, NULL);
      free(names[i]);
    }
    free(names);
  }
  assert_true(b.count > 40);
  check_batch(&w, &b);
  world_free(&w);
}

static void test_random(void **state) {
  (void)state;
  world w = world_new();
  batch b = {.count = 0};
  for (uint64_t seed = first_seed; seed < first_seed + programs; seed++) {
    weft_text text = {0};
    program_options options = {.seed = seed,
                               .depth = 1 + (int)(seed % 5),
                               .statements = 12 + (int)(seed % 30),
                               .channels = seed % 2 == 0,
                               .no_alias = seed % 4 == 1,
                               .faults = seed % 5 == 0};
    generate_program(&options, &text);
    add_steps(&w, &b, "test.mlir", text.data);
    weft_text_free(&text);
  }
  check_batch(&w, &b);
  world_free(&w);
}

static void test_samples(void **state) {
  (void)state;
  static const char *const grammars[] = {"while.pg", "graph-launch.pg", "nested.pg"};
  for (size_t k = 0; k < sizeof grammars / sizeof *grammars; k++) {
    char path[512];
    weft_grammar *grammar;
    world w = world_new();
    batch b = {.count = 0};
    snprintf(path, sizeof path, WEFT_SOURCE_DIR "/data/samples/grammars/%s", grammars[k]);
    assert_int_equal(weft_grammar_read(path, &grammar, w.diag), WEFT_OK);
    for (uint64_t seed = first_seed; seed < first_seed + samples; seed++) {
      weft_text text = {0};
      assert_int_equal(weft_grammar_sample(grammar, &(weft_grammar_options){.seed = seed}, &text, w.diag), WEFT_OK);
      weft_text_puts(&text, "");
      add_steps(&w, &b, grammars[k], text.data);
      weft_text_free(&text);
    }
    check_batch(&w, &b);
    weft_grammar_free(grammar);
    world_free(&w);
  }
}

int main(int argc, char **argv) {
  if (argc > 1) programs = strtoull(argv[1], NULL, 10);
  if (argc > 2) samples = strtoull(argv[2], NULL, 10);
  if (argc > 3) first_seed = strtoull(argv[3], NULL, 10);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_random),
                                     cmocka_unit_test(test_samples)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
