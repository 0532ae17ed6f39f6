/* Every case of tests/cases/spatial: read, written back byte for byte, validated with the expected first fault. */
#include "case_support.h"

#include "../../ir/violations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads `text`, checks that the dump and the dump of a clone are `expected`, and gives the program. */
static weft_program *round_trip(const char *name, const char *text, size_t length, const char *expected,
                                size_t expected_length) {
  weft_diag *diag = weft_diag_new();
  weft_program *program;
  if (weft_program_read(name, text, length, &program, diag))
    fail_msg("%s, line %d: %s", name, (int)weft_diag_message(diag, 0)->place.line, weft_diag_message(diag, 0)->text);
  weft_diag_free(diag);
  weft_text dump = case_dump(program);
  if (dump.length != expected_length || memcmp(dump.data, expected, expected_length) != 0)
    fail_msg("%s is written back as another text", name);
  weft_program *clone = weft_program_clone(program);
  weft_program_free(program);
  weft_text again = case_dump(clone);
  assert_int_equal(again.length, dump.length);
  assert_memory_equal(again.data, dump.data, dump.length);
  weft_text_free(&again);
  weft_text_free(&dump);
  return clone;
}

static void valid_programs(void **state) {
  (void)state;
  size_t count;
  char **names = case_names(CASES "/valid", ".json", &count);
  assert_true(count >= 50);
  for (size_t i = 0; i < count; i++) {
    char path[512];
    snprintf(path, sizeof path, CASES "/valid/%s.json", names[i]);
    size_t length;
    char *text = case_read(path, &length);
    weft_program *program = round_trip(path, text, length, text, length);
    weft_text faults = case_faults(program, 0);
    if (faults.length) fail_msg("%s should be valid: %s", names[i], faults.data);
    weft_text_free(&faults);
    weft_program_free(program);
    free(text);
  }
  case_free_names(names, count);
}

static void reread_programs(void **state) {
  (void)state;
  size_t count;
  char **names = case_names(CASES "/reread", ".json", &count);
  assert_true(count >= 8);
  for (size_t i = 0; i < count; i++) {
    char path[512];
    snprintf(path, sizeof path, CASES "/reread/%s.json", names[i]);
    size_t length, expected_length;
    char *text = case_read(path, &length);
    *strrchr(names[i], '.') = 0;
    char expected_path[512];
    snprintf(expected_path, sizeof expected_path, CASES "/valid/%s.json", names[i]);
    char *expected = case_read(expected_path, &expected_length);
    weft_program_free(round_trip(path, text, length, expected, expected_length));
    free(text);
    free(expected);
  }
  case_free_names(names, count);
}

static void check_fault(const char *name, const weft_program *program, const char *expected, size_t length) {
  weft_arena *arena = weft_arena_new();
  weft_text faults = case_faults(program, 1);
  if (!faults.length) fail_msg("%s should not be valid", name);
  const weft_json *want, *have;
  assert_int_equal(weft_json_parse(arena, name, expected, length, &want, NULL), WEFT_OK);
  assert_int_equal(weft_json_parse(arena, name, faults.data, faults.length, &have, NULL), WEFT_OK);
  if (!case_same_fault(want, have)) fail_msg("%s: found %sexpected %s", name, faults.data, expected);
  weft_text all = case_faults(program, 0);
  assert_true(all.length >= faults.length);
  assert_memory_equal(all.data, faults.data, faults.length);
  weft_text_free(&all);
  weft_text_free(&faults);
  weft_arena_free(arena);
}

static void broken_programs(void **state) {
  (void)state;
  size_t count;
  char **names = case_names(CASES "/broken", ".expected.json", &count);
  assert_true(count >= 100);
  for (size_t i = 0; i < count; i++) {
    char path[512];
    snprintf(path, sizeof path, CASES "/broken/%s.json", names[i]);
    size_t length, expected_length;
    char *text = case_read(path, &length);
    char expected_path[512];
    snprintf(expected_path, sizeof expected_path, CASES "/broken/%s.expected.json", names[i]);
    char *expected = case_read(expected_path, &expected_length);
    weft_program *program = round_trip(path, text, length, text, length);
    check_fault(names[i], program, expected, expected_length);
    weft_program_free(program);
    free(text);
    free(expected);
  }
  case_free_names(names, count);
}

/* Every fault of the seed has a case that provokes it. */
static void every_fault_has_a_case(void **state) {
  (void)state;
#define NAME(identifier, name, keys, message, remedy, manual) name,
  static const char *const faults[] = {WEFT_VIOLATIONS(NAME)};
#undef NAME
  size_t count;
  char **names = case_names(CASES "/broken", ".expected.json", &count);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    bool found = false;
    size_t length = strlen(faults[i]);
    for (size_t k = 0; k < count && !found; k++)
      found = strncmp(names[k], faults[i], length) == 0 && (!names[k][length] || names[k][length] == '.');
    if (!found) fail_msg("no case in tests/cases/spatial/broken provokes %s", faults[i]);
  }
  case_free_names(names, count);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(valid_programs),
      cmocka_unit_test(reread_programs),
      cmocka_unit_test(broken_programs),
      cmocka_unit_test(every_fault_has_a_case),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
