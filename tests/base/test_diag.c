#include "weft/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void messages_are_copied_in_order(void **state) {
  (void)state;
  weft_diag *diag = weft_diag_new();
  char file[] = "program.json", hint[] = "give it a width", name[] = "w1";
  weft_diag_add(diag, WEFT_WARNING, (weft_place){file, 12, 3}, hint, "tensor %s has %d columns", name, 0);
  assert_int_equal(weft_error(diag, WEFT_USAGE, NULL, "no pass called %s", "tyle"), WEFT_USAGE);
  assert_int_equal(weft_error_at(diag, WEFT_INVALID, (weft_place){file, 1, 0}, NULL, "bad"), WEFT_INVALID);
  memset(file, 'x', strlen(file));
  memset(hint, 'x', strlen(hint));
  memset(name, 'x', strlen(name));

  assert_int_equal(weft_diag_count(diag), 3);
  assert_int_equal(weft_diag_errors(diag), 2);
  const weft_message *first = weft_diag_message(diag, 0);
  assert_int_equal(first->severity, WEFT_WARNING);
  assert_string_equal(first->text, "tensor w1 has 0 columns");
  assert_string_equal(first->hint, "give it a width");
  assert_string_equal(first->place.file, "program.json");
  assert_int_equal(first->place.line, 12);
  assert_int_equal(first->place.column, 3);
  const weft_message *second = weft_diag_message(diag, 1);
  assert_int_equal(second->severity, WEFT_ERROR);
  assert_string_equal(second->text, "no pass called tyle");
  assert_null(second->hint);
  assert_null(second->place.file);
  assert_null(weft_diag_message(diag, 3));
  weft_diag_free(diag);
}

static void messages_without_a_place_are_about_a_file(void **state) {
  (void)state;
  weft_diag *diag = weft_diag_new();
  char file[] = "program.json";
  weft_diag_about(diag, file);
  memset(file, 'x', strlen(file));
  weft_error(diag, WEFT_INVALID, NULL, "the file's fault");
  weft_error(diag, WEFT_USAGE, NULL, "the command line's");
  weft_error(diag, WEFT_UNAVAILABLE, NULL, "the machine's");
  weft_diag_add(diag, WEFT_WARNING, (weft_place){0}, NULL, "about the file");
  weft_error_at(diag, WEFT_INVALID, (weft_place){"other.h5", 2, 1}, NULL, "another file's");
  weft_diag_about(diag, NULL);
  weft_error(diag, WEFT_INVALID, NULL, "nobody's");
  static const char *const files[] = {"program.json", NULL, NULL, "program.json", "other.h5", NULL};
  for (uint64_t i = 0; i < sizeof files / sizeof *files; i++) {
    const char *named = weft_diag_message(diag, i)->place.file;
    if (files[i])
      assert_string_equal(named, files[i]);
    else
      assert_null(named);
  }
  weft_diag_about(diag, "program.json");
  weft_diag_clear(diag);
  weft_error(diag, WEFT_INVALID, NULL, "anew");
  assert_null(weft_diag_message(diag, 0)->place.file);
  weft_diag_about(NULL, "dropped");
  weft_diag_free(diag);
}

static void errors_are_bounded_but_counted(void **state) {
  (void)state;
  weft_diag *diag = weft_diag_new();
  for (int i = 0; i < WEFT_DIAG_LIMIT + 500; i++) weft_error(diag, WEFT_INVALID, NULL, "error %d", i);
  assert_int_equal(weft_diag_errors(diag), WEFT_DIAG_LIMIT + 500);
  assert_int_equal(weft_diag_count(diag), WEFT_DIAG_LIMIT);
  assert_string_equal(weft_diag_message(diag, WEFT_DIAG_LIMIT - 1)->text, "error 999");
  weft_diag_free(diag);
}

static void warnings_never_crowd_out_errors(void **state) {
  (void)state;
  weft_diag *diag = weft_diag_new();
  for (int i = 0; i < 3 * WEFT_DIAG_LIMIT; i++) weft_diag_add(diag, WEFT_WARNING, (weft_place){0}, NULL, "warning");
  weft_error(diag, WEFT_INVALID, NULL, "the error");
  assert_int_equal(weft_diag_count(diag), WEFT_DIAG_LIMIT + 1);
  assert_string_equal(weft_diag_message(diag, WEFT_DIAG_LIMIT)->text, "the error");
  weft_diag_free(diag);
}

static void clear_starts_anew(void **state) {
  (void)state;
  weft_diag *diag = weft_diag_new();
  for (int i = 0; i < 10; i++) weft_error(diag, WEFT_INVALID, NULL, "old %d", i);
  weft_error_memory(diag);
  weft_diag_clear(diag);
  assert_int_equal(weft_diag_count(diag), 0);
  assert_int_equal(weft_diag_errors(diag), 0);
  weft_error(diag, WEFT_INVALID, "hint", "new");
  assert_string_equal(weft_diag_message(diag, 0)->text, "new");
  weft_diag_free(diag);
}

static void exhausted_memory_is_the_last_message(void **state) {
  (void)state;
  weft_diag *diag = weft_diag_new();
  weft_error(diag, WEFT_INVALID, NULL, "first");
  assert_int_equal(weft_error_memory(diag), WEFT_UNAVAILABLE);
  weft_error_memory(diag);
  assert_int_equal(weft_diag_count(diag), 2);
  assert_int_equal(weft_diag_errors(diag), 3);
  assert_string_equal(weft_diag_message(diag, 0)->text, "first");
  assert_string_equal(weft_diag_message(diag, 1)->text, "out of memory");
  assert_non_null(weft_diag_message(diag, 1)->hint);
  weft_diag_free(diag);
}

static void no_diag_drops_messages(void **state) {
  (void)state;
  weft_diag_add(NULL, WEFT_ERROR, (weft_place){0}, NULL, "dropped");
  assert_int_equal(weft_error(NULL, WEFT_INVALID, "hint", "dropped"), WEFT_INVALID);
  assert_int_equal(weft_error_memory(NULL), WEFT_UNAVAILABLE);
  assert_int_equal(weft_diag_count(NULL), 0);
  assert_int_equal(weft_diag_errors(NULL), 0);
  assert_null(weft_diag_message(NULL, 0));
  weft_diag_clear(NULL);
  weft_diag_free(NULL);
}

static void empty_and_long_texts(void **state) {
  (void)state;
  weft_diag *diag = weft_diag_new();
  weft_error(diag, WEFT_INVALID, "", "%s", "");
  assert_string_equal(weft_diag_message(diag, 0)->text, "");
  assert_string_equal(weft_diag_message(diag, 0)->hint, "");
  weft_error(diag, WEFT_INVALID, NULL, "%0200000d", 7);
  assert_int_equal(strlen(weft_diag_message(diag, 1)->text), 200000);
  weft_diag_free(diag);
}

static void messages_as_printed(void **state) {
  (void)state;
  static const struct {
    weft_message message;
    const char *printed;
  } cases[] = {
      {{WEFT_ERROR, {0}, "bad", NULL}, "weft: bad\n"},
      {{WEFT_ERROR, {"a\x1b.json", 3, 4}, "bad", "good"}, "weft: a\\x1b.json:3:4: bad\nhint: good\n"},
      {{WEFT_WARNING, {"a", 3, 0}, "slow\r", NULL}, "weft: a:3: warning: slow\\x0d\n"},
      {{WEFT_NOTE, {"a", 0, 7}, "so", "do\a"}, "weft: a: note: so\nhint: do\\x07\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    weft_text text = {0};
    weft_message_put(&cases[i].message, &text);
    assert_string_equal(text.data, cases[i].printed);
    weft_text_free(&text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(messages_are_copied_in_order),
      cmocka_unit_test(messages_without_a_place_are_about_a_file),
      cmocka_unit_test(errors_are_bounded_but_counted),
      cmocka_unit_test(warnings_never_crowd_out_errors),
      cmocka_unit_test(clear_starts_anew),
      cmocka_unit_test(exhausted_memory_is_the_last_message),
      cmocka_unit_test(no_diag_drops_messages),
      cmocka_unit_test(empty_and_long_texts),
      cmocka_unit_test(messages_as_printed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
