/* Compiled entries: every case file again, as loops, as machines and as threads with channels between them. */
#include "df_compile.h"

typedef enum stage { GIVEN, LOWERED, PUBLISHED } stage;

static void case_path(char *path, size_t size, const char *name, const char *ending) {
  snprintf(path, size, WEFT_SOURCE_DIR "/tests/cases/dataflow/%s.%s", name, ending);
}

static weft_mlir_file *read_module(world *w, const char *name, stage how) {
  char path[512];
  weft_mlir_file *file = NULL;
  case_path(path, sizeof path, name, "mlir");
  if (weft_mlir_read(w->context, path, &file, w->diag) != WEFT_OK) fail_msg("%s: %s", name, world_message(w));
  weft_status status = how == LOWERED     ? weft_lower(w->context, file->arena, file->modules[0], path, w->diag)
                       : how == PUBLISHED ? weft_publish(w->context, file->arena, file->modules[0], path, w->diag)
                                          : WEFT_OK;
  if (status != WEFT_OK) fail_msg("%s: %s", name, world_message(w));
  return file;
}

static void check_case(const char *name, stage how, bool machines) {
  world w = world_new();
  char path[512];
  weft_df_program program;
  weft_case_result result;
  weft_mlir_file *file = read_module(&w, name, how);
  void *library = compile_module(&w, file->modules[0], machines, &program);
  case_path(path, sizeof path, name, "json");
  weft_case_options options = {.mode = WEFT_CASE_COMPILED, .program = &program};
  if (weft_case_run(w.context, NULL, path, path, &options, &result, w.diag) != WEFT_OK || result.failures)
    fail_msg("%s (%s%s): %s", name,
             how == GIVEN     ? "as given"
             : how == LOWERED ? "lowered"
                              : "published",
             machines ? ", machines" : "", world_message(&w));
  assert_true(result.launches > 0);
  compiled_free(library);
  weft_mlir_file_free(file);
  world_free(&w);
}

static const char *const structured[] = {
    "001-zero-trip-for",          "003-store-after-load",        "004-two-arrays-may-alias",
    "005-if-in-while-unequal",    "007-carried-values-swapped",  "009-index-wraps",
    "011-dynamic-triangular",     "013-unused-results",          "014-store-only-in-last-round",
    "018-one-predicate-two-ifs",  "020-counting-down",           "022-branches-with-memory",
    "025-stores-in-both-regions", "027-floats-and-wide-counter", "028-value-used-in-one-branch",
    "030-reverse-in-place",       "032-value-result-of-graph",   "101-ranks-and-copies",
    "102-memory-before-values"};
static const char *const tokens[] = {"040-tokens-carry", "042-tokens-gate", "044-tokens-loop-with-memory",
                                     "104-tokens-kept"};

static void test_structured(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof structured / sizeof *structured; i++) check_case(structured[i], GIVEN, false);
}

static void test_lowered(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof structured / sizeof *structured; i++) {
    check_case(structured[i], LOWERED, false);
    check_case(structured[i], LOWERED, true);
  }
}

static void test_tokens(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) check_case(tokens[i], GIVEN, false);
}

static void test_threads(void **state) {
  (void)state;
  check_case("103-threads", GIVEN, false);
  check_case("103-threads", PUBLISHED, false);
  check_case("103-threads", PUBLISHED, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_structured),
      cmocka_unit_test(test_lowered),
      cmocka_unit_test(test_tokens),
      cmocka_unit_test(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
