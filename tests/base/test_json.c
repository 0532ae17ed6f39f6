#include "weft/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

typedef struct fixture {
  weft_arena *arena;
  weft_diag *diag;
} fixture;

static int set_up(void **state) {
  static fixture f;
  f = (fixture){weft_arena_new(), weft_diag_new()};
  *state = &f;
  return f.arena && f.diag ? 0 : -1;
}

static int tear_down(void **state) {
  fixture *f = *state;
  weft_arena_free(f->arena);
  weft_diag_free(f->diag);
  return 0;
}

static const weft_json *parse(fixture *f, const char *text) {
  const weft_json *root;
  assert_int_equal(weft_json_parse(f->arena, "case.json", text, strlen(text), &root, f->diag), WEFT_OK);
  assert_int_equal(weft_diag_count(f->diag), 0);
  return root;
}

static void values_of_every_type(void **state) {
  const weft_json *root =
      parse(*state, "{ \"a\": [null, true, false, -12.5e+3, \"t\\u00e9xt\"],\n\t\"b\": {}, \"\": []}\r\n");
  assert_int_equal(root->type, WEFT_JSON_OBJECT);
  assert_int_equal(root->count, 3);
  assert_null(root->key);
  const weft_json *a = weft_json_get(root, "a");
  assert_ptr_equal(a, &root->items[0]);
  assert_string_equal(a->key, "a");
  assert_int_equal(a->type, WEFT_JSON_ARRAY);
  assert_int_equal(a->count, 5);
  assert_int_equal(a->items[0].type, WEFT_JSON_NULL);
  assert_true(a->items[1].type == WEFT_JSON_BOOL && a->items[1].boolean);
  assert_true(a->items[2].type == WEFT_JSON_BOOL && !a->items[2].boolean);
  assert_string_equal(a->items[3].text, "-12.5e+3");
  assert_string_equal(a->items[4].text, "t\xc3\xa9xt");
  assert_int_equal(a->items[4].length, 5);
  assert_null(a->items[4].key);
  assert_int_equal(weft_json_get(root, "b")->count, 0);
  assert_int_equal(weft_json_get(root, "")->type, WEFT_JSON_ARRAY);
  assert_null(weft_json_get(root, "c"));
  assert_null(weft_json_get(a, "a"));
  assert_null(weft_json_get(NULL, "a"));
  assert_int_equal(weft_json_get(root, "b")->place.line, 2);
  assert_int_equal(weft_json_get(root, "b")->place.column, 7);
  assert_string_equal(a->place.file, "case.json");
}

static void strings_unescape(void **state) {
  const weft_json *s = parse(*state, "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\uD83E\\uddf5\xf0\x9f\xa7\xb5\x7f\"");
  assert_string_equal(s->text, "\"\\/\b\f\n\r\tA\xf0\x9f\xa7\xb5\xf0\x9f\xa7\xb5\x7f");
}

static void numbers_keep_all_their_bits(void **state) {
  const weft_json *root = parse(*state, "[18446744073709551615, 18446744073709551616, -9223372036854775808, "
                                        "-9223372036854775809, 0, -0, 1.0, 1e2, 0.1, 1e999, 9223372036854775808, -1]");
  const weft_json *n = root->items;
  uint64_t u = 77;
  int64_t i = 77;
  double d = 77;
  assert_true(weft_json_u64(&n[0], &u) && u == UINT64_MAX);
  assert_false(weft_json_i64(&n[0], &i));
  assert_false(weft_json_u64(&n[1], &u));
  assert_true(weft_json_i64(&n[2], &i) && i == INT64_MIN);
  assert_false(weft_json_i64(&n[3], &i));
  assert_true(weft_json_u64(&n[4], &u) && u == 0);
  assert_true(weft_json_i64(&n[5], &i) && i == 0);
  assert_false(weft_json_u64(&n[5], &u));
  assert_false(weft_json_u64(&n[6], &u));
  assert_false(weft_json_i64(&n[7], &i));
  assert_true(weft_json_double(&n[7], &d) && d == 100);
  assert_true(weft_json_double(&n[8], &d) && d == 0.1);
  assert_false(weft_json_double(&n[9], &d));
  assert_true(d == 0.1);
  assert_false(weft_json_i64(&n[10], &i));
  assert_true(weft_json_i64(&n[11], &i) && i == -1);
  assert_false(weft_json_u64(&n[11], &u));
  assert_false(weft_json_u64(root, &u));
  assert_false(weft_json_double(NULL, &d));
}

typedef struct bad_case {
  const char *text;
  uint64_t line, column;
  const char *words;
} bad_case;

static const bad_case bad_cases[] = {
    {"", 1, 1, "found the end"},
    {" \n ", 2, 2, "found the end"},
    {"{} x", 1, 4, "expected the end"},
    {"[1,]", 1, 4, "another value after ,"},
    {"{\"a\":1,}", 1, 8, "another value after ,"},
    {"[1 2]", 1, 4, "expected , or ]"},
    {"{\"a\":1 \"b\":2}", 1, 8, "expected , or }"},
    {"[1", 1, 3, "expected , or ]"},
    {"[", 1, 2, "found the end"},
    {"{", 1, 2, "expected a key"},
    {"{a:1}", 1, 2, "expected a key"},
    {"{\"a\" 1}", 1, 6, "expected :"},
    {"{\"a\":}", 1, 6, "expected a value"},
    {"{\"a\":1,\n\"b\":2,\n\"a\":3}", 3, 5, "\"a\" is given twice, first in line 1"},
    {"{\"a\":1,\"\\u0061\":2}", 1, 17, "given twice"},
    {"nul", 1, 1, "expected a value"},
    {"True", 1, 1, "expected a value"},
    {"NaN", 1, 1, "expected a value"},
    {"'a'", 1, 1, "expected a value"},
    {"01", 1, 1, "must not begin with 0"},
    {"-", 1, 1, "expected a digit after -"},
    {"-a", 1, 1, "expected a digit after -"},
    {"1.", 1, 1, "after the point"},
    {"1.e3", 1, 1, "after the point"},
    {"1e", 1, 1, "in the exponent"},
    {"1e+", 1, 1, "in the exponent"},
    {"+1", 1, 1, "expected a value"},
    {".5", 1, 1, "expected a value"},
    {"\"abc", 1, 1, "does not end"},
    {"\"abc\\", 1, 5, "expected an escape"},
    {"\"\\x\"", 1, 2, "expected an escape"},
    {"\"\\u12\"", 1, 2, "four hexadecimal"},
    {"\"\\u123g\"", 1, 2, "four hexadecimal"},
    {"\"\\u0000\"", 1, 2, "U+0000"},
    {"\"\\ud800\"", 1, 2, "high surrogate"},
    {"\"\\ud800\\u0041\"", 1, 2, "high surrogate"},
    {"\"\\udc00\"", 1, 2, "low surrogate"},
    {"\"a\nb\"", 1, 3, "control character"},
    {"\"\xff\"", 1, 2, "not UTF-8"},
    {"\"\xed\xa0\x80\"", 1, 2, "not UTF-8"},
    {"\"\xc0\x80\"", 1, 2, "not UTF-8"},
    {"\xef\xbb\xbf{}", 1, 1, "expected a value"},
    {"// no\n1", 1, 1, "expected a value"},
};

static void faults_have_a_place(void **state) {
  fixture *f = *state;
  for (size_t i = 0; i < sizeof bad_cases / sizeof *bad_cases; i++) {
    const bad_case *c = &bad_cases[i];
    const weft_json *root;
    weft_diag_clear(f->diag);
    assert_int_equal(weft_json_parse(f->arena, "bad.json", c->text, strlen(c->text), &root, f->diag), WEFT_INVALID);
    assert_null(root);
    assert_int_equal(weft_diag_count(f->diag), 1);
    const weft_message *message = weft_diag_message(f->diag, 0);
    if (!strstr(message->text, c->words)) print_message("%s: %s\n", c->text, message->text);
    assert_non_null(strstr(message->text, c->words));
    assert_string_equal(message->place.file, "bad.json");
    assert_int_equal(message->place.line, c->line);
    assert_int_equal(message->place.column, c->column);
  }
}

static void a_nul_byte_is_not_a_value(void **state) {
  fixture *f = *state;
  const weft_json *root;
  assert_int_equal(weft_json_parse(f->arena, "f", "1\0", 2, &root, f->diag), WEFT_INVALID);
  assert_int_equal(weft_json_parse(f->arena, "f", "\"\0\"", 3, &root, f->diag), WEFT_INVALID);
  assert_int_equal(weft_json_parse(f->arena, "f", "\"\\\0\"", 4, &root, f->diag), WEFT_INVALID);
}

static void nesting_is_bounded(void **state) {
  fixture *f = *state;
  weft_text text = {0};
  const weft_json *root;
  for (int i = 0; i < WEFT_JSON_DEPTH; i++) weft_text_puts(&text, "[");
  for (int i = 0; i < WEFT_JSON_DEPTH; i++) weft_text_puts(&text, "]");
  assert_int_equal(weft_json_parse(f->arena, "f", text.data, text.length, &root, f->diag), WEFT_OK);
  text.length = 0;
  for (int i = 0; i < 1000000; i++) weft_text_puts(&text, "[");
  assert_int_equal(weft_json_parse(f->arena, "f", text.data, text.length, &root, f->diag), WEFT_INVALID);
  assert_non_null(strstr(weft_diag_message(f->diag, 0)->text, "nested too deeply"));
  weft_text_free(&text);
}

/* A wide object with arrays inside: order kept, no square in the duplicate check. */
static void many_members(void **state) {
  fixture *f = *state;
  weft_text text = {0};
  weft_text_puts(&text, "{");
  for (int i = 0; i < 50000; i++)
    weft_text_printf(&text, "%s\"key%d\":[%d,[%d]]", i ? "," : "", i * 7919 % 50000, i, i + 1);
  weft_text_puts(&text, "}");
  const weft_json *root = parse(f, text.data);
  assert_int_equal(root->count, 50000);
  for (uint64_t i = 0; i < root->count; i++) {
    uint64_t first, second;
    assert_true(weft_json_u64(&root->items[i].items[0], &first) && first == i);
    assert_true(weft_json_u64(&root->items[i].items[1].items[0], &second) && second == i + 1);
  }
  weft_text_free(&text);
}

static void fields(void **state) {
  fixture *f = *state;
  const weft_json *root = parse(f, "{\"n\": 4, \"d\": 1.5, \"s\": \"cpu\", \"b\": true, \"neg\": -3, \"o\": {}}");
  uint64_t u = 9;
  int64_t i = 9;
  double d = 9;
  bool b = false;
  const char *s = "unset";
  const weft_json *o = NULL;
  assert_int_equal(weft_json_field_u64(root, "n", WEFT_JSON_REQUIRED, &u, f->diag), WEFT_OK);
  assert_int_equal(weft_json_field_i64(root, "neg", WEFT_JSON_REQUIRED, &i, f->diag), WEFT_OK);
  assert_int_equal(weft_json_field_double(root, "d", WEFT_JSON_REQUIRED, &d, f->diag), WEFT_OK);
  assert_int_equal(weft_json_field_bool(root, "b", WEFT_JSON_REQUIRED, &b, f->diag), WEFT_OK);
  assert_int_equal(weft_json_field_string(root, "s", WEFT_JSON_REQUIRED, &s, f->diag), WEFT_OK);
  assert_int_equal(weft_json_field(root, "o", WEFT_JSON_REQUIRED, WEFT_JSON_OBJECT, &o, f->diag), WEFT_OK);
  assert_true(u == 4 && i == -3 && d == 1.5 && b && o && strcmp(s, "cpu") == 0);
  assert_int_equal(weft_json_field_u64(root, "none", WEFT_JSON_OPTIONAL, &u, f->diag), WEFT_OK);
  assert_int_equal(u, 4);
  assert_int_equal(weft_diag_count(f->diag), 0);
  assert_int_equal(weft_json_field_u64(root, "none", WEFT_JSON_REQUIRED, &u, f->diag), WEFT_INVALID);
  assert_int_equal(weft_json_field_u64(root, "neg", WEFT_JSON_OPTIONAL, &u, f->diag), WEFT_INVALID);
  assert_int_equal(weft_json_field_i64(root, "d", WEFT_JSON_OPTIONAL, &i, f->diag), WEFT_INVALID);
  assert_int_equal(weft_json_field_string(root, "n", WEFT_JSON_OPTIONAL, &s, f->diag), WEFT_INVALID);
  assert_int_equal(weft_json_field_bool(weft_json_get(root, "n"), "x", WEFT_JSON_OPTIONAL, &b, f->diag), WEFT_INVALID);
  static const char *const expected[] = {
      "\"none\" is missing: expected a number", "\"neg\" must be an integer from 0 to 18446744073709551615, found -3",
      "\"d\" must be an integer of 64 bits, found 1.5", "\"n\" must be a string, found a number",
      "expected an object with \"x\", found a number"};
  assert_int_equal(weft_diag_count(f->diag), 5);
  for (uint64_t m = 0; m < 5; m++) assert_string_equal(weft_diag_message(f->diag, m)->text, expected[m]);
  assert_true(u == 4 && i == -3 && strcmp(s, "cpu") == 0);
}

static void unknown_keys_are_named(void **state) {
  fixture *f = *state;
  const weft_json *root = parse(f, "{\"mesh\": 1,\n\"tyle\": 2,\n\"banks\": 3,\n\"x\": 4}");
  static const char *const keys[] = {"mesh", "tile", "banks"};
  assert_int_equal(weft_json_known_keys(root, keys, 3, f->diag), WEFT_INVALID);
  assert_int_equal(weft_diag_count(f->diag), 2);
  assert_string_equal(weft_diag_message(f->diag, 0)->text, "unknown key \"tyle\"");
  assert_string_equal(weft_diag_message(f->diag, 0)->hint, "known here: mesh, tile, banks");
  assert_int_equal(weft_diag_message(f->diag, 0)->place.line, 2);
  assert_string_equal(weft_diag_message(f->diag, 1)->text, "unknown key \"x\"");
  static const char *const all[] = {"mesh", "tyle", "banks", "x", "more"};
  assert_int_equal(weft_json_known_keys(root, all, 5, f->diag), WEFT_OK);
}

static void a_missing_file_is_named(void **state) {
  fixture *f = *state;
  const weft_json *root;
  assert_int_equal(weft_json_read(f->arena, "/no/such/file.json", &root, f->diag), WEFT_INVALID);
  assert_null(root);
  assert_string_equal(weft_diag_message(f->diag, 0)->place.file, "/no/such/file.json");
}

/* Writes a value back as JSON: the tree holds what the text said. */
static void print(weft_text *text, const weft_json *value) {
  static const char *const words[] = {"null", "false", "true"};
  if (value->key) {
    weft_text_json_string(text, value->key);
    weft_text_puts(text, ":");
  }
  if (value->type <= WEFT_JSON_BOOL)
    weft_text_puts(text, words[value->type == WEFT_JSON_NULL ? 0 : 1 + value->boolean]);
  if (value->type == WEFT_JSON_NUMBER) weft_text_puts(text, value->text);
  if (value->type == WEFT_JSON_STRING) weft_text_json_string(text, value->text);
  if (value->type < WEFT_JSON_ARRAY) return;
  weft_text_puts(text, value->type == WEFT_JSON_ARRAY ? "[" : "{");
  for (uint64_t i = 0; i < value->count; i++) {
    if (i) weft_text_puts(text, ",");
    print(text, &value->items[i]);
  }
  weft_text_puts(text, value->type == WEFT_JSON_ARRAY ? "]" : "}");
}

/* Random byte changes of a good text: a message or a tree that prints and parses to itself, never anything else. */
static void changed_bytes_are_read_or_refused(void **state) {
  fixture *f = *state;
  static const char good[] = "{\"mesh\":{\"cols\":8,\"rows\":8},\"links\":[{\"from\":0,\"to\":1,\"latency\":1.5e-6}],"
                             "\"name\":\"a\\u00e9\\n\xc3\xa9\",\"flags\":[true,false,null,-0,12345678901234567890]}";
  static const char alphabet[] = "{}[]\",:\\u0123456789aebtrflsn-+.E \n\x80\xc3\xed\xff";
  uint64_t random = 11, refused = 0, read = 0;
  for (int round = 0; round < 20000; round++) {
    char text[sizeof good];
    memcpy(text, good, sizeof good);
    for (uint64_t changes = 1 + weft_random_next(&random) % 3; changes; changes--)
      text[weft_random_next(&random) % (sizeof good - 1)] = alphabet[weft_random_next(&random) % (sizeof alphabet - 1)];
    const weft_json *root;
    weft_arena_reset(f->arena);
    weft_diag_clear(f->diag);
    weft_status status = weft_json_parse(f->arena, "f", text, sizeof good - 1, &root, f->diag);
    assert_int_equal(weft_diag_count(f->diag), status == WEFT_OK ? 0 : 1);
    refused += status != WEFT_OK;
    read += status == WEFT_OK;
    if (status) continue;
    weft_text once = {0}, twice = {0};
    print(&once, root);
    print(&twice, parse(f, once.data));
    assert_string_equal(once.data, twice.data);
    weft_text_free(&once);
    weft_text_free(&twice);
  }
  assert_true(refused > 1000 && read > 1000);
}

#define FIXED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      FIXED(values_of_every_type),
      FIXED(strings_unescape),
      FIXED(numbers_keep_all_their_bits),
      FIXED(faults_have_a_place),
      FIXED(a_nul_byte_is_not_a_value),
      FIXED(nesting_is_bounded),
      FIXED(many_members),
      FIXED(fields),
      FIXED(unknown_keys_are_named),
      FIXED(a_missing_file_is_named),
      FIXED(changed_bytes_are_read_or_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
