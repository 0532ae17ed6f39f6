/* The option parser, as a subcommand sees it. Messages go to standard error; what is checked is the outcome. */
#include "../../tools/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

typedef struct values {
  bool flag, other, has_count;
  const char *text, *choice;
  weft_option_list list;
  uint64_t count;
  int64_t integer;
  double number;
  weft_arguments arguments;
} values;

/* Parses the words, which end with NULL; -1 to go on, else the exit status. */
static int parse(values *v, const char *const *words) {
  static char storage[32][64];
  static char *argv[32];
  int argc = 0;
  for (; words[argc]; argc++) argv[argc] = strncpy(storage[argc], words[argc], sizeof storage[0] - 1);
  *v = (values){.text = "default", .choice = "a", .number = 0.5};
  const weft_option options[] = {
      {.name = "flag", .letter = 'f', .kind = WEFT_OPTION_FLAG, .target = &v->flag},
      {.name = "other", .letter = 'g', .kind = WEFT_OPTION_FLAG, .target = &v->other},
      {.name = "output", .letter = 'o', .kind = WEFT_OPTION_TEXT, .target = &v->text},
      {.name = "list", .kind = WEFT_OPTION_LIST, .target = &v->list},
      {.name = "count", .letter = 'j', .kind = WEFT_OPTION_COUNT, .target = &v->count, .given = &v->has_count},
      {.name = "integer", .kind = WEFT_OPTION_INTEGER, .target = &v->integer},
      {.name = "number", .kind = WEFT_OPTION_NUMBER, .target = &v->number},
      {.name = "choice", .kind = WEFT_OPTION_CHOICE, .target = &v->choice, .choices = "a|bc|d"},
      {0}};
  const weft_usage usage = {.synopsis = "test FILE", .about = "A test.", .options = options, .least = 1, .most = 2};
  int exit_code;
  return weft_options_parse(&usage, argc, argv, &v->arguments, &exit_code) ? -1 : exit_code;
}
#define PARSE(v, ...) parse(v, (const char *const[]){"test", __VA_ARGS__, NULL})

static void arguments_and_options_mix(void **state) {
  (void)state;
  values v;
  assert_int_equal(PARSE(&v, "in", "-f", "--output", "x", "--count=7", "more"), -1);
  assert_true(v.flag && !v.other && v.has_count && v.count == 7);
  assert_string_equal(v.text, "x");
  assert_int_equal(v.arguments.count, 2);
  assert_string_equal(v.arguments.items[0], "in");
  assert_string_equal(v.arguments.items[1], "more");
  assert_false(v.arguments.verbose);
}

static void defaults_stay(void **state) {
  (void)state;
  values v;
  assert_int_equal(PARSE(&v, "-"), -1);
  assert_string_equal(v.arguments.items[0], "-");
  assert_string_equal(v.text, "default");
  assert_true(v.number == 0.5 && !v.has_count);
}

static void letters_join(void **state) {
  (void)state;
  values v;
  assert_int_equal(PARSE(&v, "in", "-fgvoout"), -1);
  assert_true(v.flag && v.other && v.arguments.verbose);
  assert_string_equal(v.text, "out");
  assert_int_equal(PARSE(&v, "in", "-j4"), -1);
  assert_int_equal(v.count, 4);
  assert_int_equal(PARSE(&v, "in", "-o", "-"), -1);
  assert_string_equal(v.text, "-");
}

static void two_dashes_end_options(void **state) {
  (void)state;
  values v;
  assert_int_equal(PARSE(&v, "--", "--flag", "-f"), -1);
  assert_false(v.flag);
  assert_int_equal(v.arguments.count, 2);
  assert_string_equal(v.arguments.items[1], "-f");
}

static void lists_keep_their_order(void **state) {
  (void)state;
  values v;
  assert_int_equal(PARSE(&v, "in", "--list", "one", "--list=two", "--list", "three"), -1);
  assert_int_equal(v.list.count, 3);
  assert_string_equal(v.list.items[0], "one");
  assert_string_equal(v.list.items[2], "three");
  weft_option_list_free(&v.list);
}

static void flags_can_be_taken_back(void **state) {
  (void)state;
  values v;
  assert_int_equal(PARSE(&v, "in", "--flag", "--no-flag"), -1);
  assert_false(v.flag);
}

static void values_are_checked(void **state) {
  (void)state;
  values v;
  assert_int_equal(PARSE(&v, "in", "--count", "18446744073709551615"), -1);
  assert_true(v.count == UINT64_MAX);
  assert_int_equal(PARSE(&v, "in", "--integer", "-9223372036854775808"), -1);
  assert_true(v.integer == INT64_MIN);
  assert_int_equal(PARSE(&v, "in", "--number", "5e-5", "--choice", "bc"), -1);
  assert_true(v.number == 5e-5);
  assert_string_equal(v.choice, "bc");
  const char *const wrong[][2] = {{"--count", "18446744073709551616"},
                                  {"--count", "-1"},
                                  {"--count", "1x"},
                                  {"--count", ""},
                                  {"--count", " 1"},
                                  {"--integer", "1.5"},
                                  {"--integer", "9223372036854775808"},
                                  {"--number", "-1"},
                                  {"--number", "nan"},
                                  {"--number", "inf"},
                                  {"--number", ""},
                                  {"--choice", "b"},
                                  {"--choice", "a|bc"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal(PARSE(&v, "in", wrong[i][0], wrong[i][1]), 2);
}

static void mistakes_have_status_two(void **state) {
  (void)state;
  values v;
  assert_int_equal(PARSE(&v, "in", "--flga"), 2);
  assert_int_equal(PARSE(&v, "in", "-x"), 2);
  assert_int_equal(PARSE(&v, "in", "--flag=yes"), 2);
  assert_int_equal(PARSE(&v, "in", "--no-output"), 2);
  assert_int_equal(PARSE(&v, "in", "--output"), 2);
  assert_int_equal(PARSE(&v, "-f"), 2);
  assert_int_equal(PARSE(&v, "one", "two", "three"), 2);
  assert_int_equal(PARSE(&v, "in", "-o", ""), 2);
  assert_int_equal(PARSE(&v, "in", "--list="), 2);
  assert_int_equal(PARSE(&v, ""), 2);
  assert_int_equal(PARSE(&v, "one", ""), 2);
  assert_int_equal(PARSE(&v, "--help"), 0);
  assert_int_equal(PARSE(&v, "-fh"), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arguments_and_options_mix),
      cmocka_unit_test(defaults_stay),
      cmocka_unit_test(letters_join),
      cmocka_unit_test(two_dashes_end_options),
      cmocka_unit_test(lists_keep_their_order),
      cmocka_unit_test(flags_can_be_taken_back),
      cmocka_unit_test(values_are_checked),
      cmocka_unit_test(mistakes_have_status_two),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
