#include "weft/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

typedef struct escape_case {
  const char *name, *expected;
} escape_case;

static void check_escapes(void (*escape)(weft_text *, const char *), const escape_case *cases, size_t count) {
  for (size_t i = 0; i < count; i++) {
    weft_text text = {0};
    weft_text_puts(&text, "<");
    escape(&text, cases[i].name);
    weft_text_puts(&text, ">");
    assert_false(text.failed);
    assert_int_equal(text.length, strlen(text.data));
    text.data[text.length - 1] = 0;
    assert_string_equal(text.data + 1, cases[i].expected);
    weft_text_free(&text);
  }
}
#define CHECK_ESCAPES(escape, cases) check_escapes(escape, cases, sizeof cases / sizeof *(cases))

static void appending_grows(void **state) {
  (void)state;
  weft_text text = {0};
  weft_text_append(&text, NULL, 0);
  assert_string_equal(text.data, "");
  for (int i = 0; i < 10000; i++) weft_text_printf(&text, "%d,", i % 10);
  assert_int_equal(text.length, 20000);
  assert_int_equal(strlen(text.data), 20000);
  assert_memory_equal(text.data, "0,1,2,3,4,5,6,7,8,9,0,", 22);
  weft_text_printf(&text, "%5000s", "end");
  assert_int_equal(text.length, 25000);
  assert_string_equal(text.data + 24997, "end");
  weft_text_free(&text);
  assert_null(text.data);
  assert_int_equal(text.length, 0);
}

static void integers(void **state) {
  (void)state;
  weft_text text = {0};
  weft_text_u64(&text, 0);
  weft_text_puts(&text, " ");
  weft_text_u64(&text, UINT64_MAX);
  weft_text_puts(&text, " ");
  weft_text_i64(&text, INT64_MIN);
  weft_text_puts(&text, " ");
  weft_text_i64(&text, -1);
  weft_text_puts(&text, " ");
  weft_text_i64(&text, INT64_MAX);
  assert_string_equal(text.data, "0 18446744073709551615 -9223372036854775808 -1 9223372036854775807");
  weft_text_free(&text);
}

static void exhausted_text_stays_as_it_was(void **state) {
  (void)state;
  weft_text text = {0};
  weft_text_puts(&text, "kept");
  weft_text_append(&text, "x", SIZE_MAX - 2);
  assert_true(text.failed);
  weft_text_puts(&text, "more");
  weft_text_printf(&text, "%d", 1);
  assert_string_equal(text.data, "kept");
  assert_int_equal(text.length, 4);
  weft_text_free(&text);
}

static void c_strings(void **state) {
  (void)state;
  static const escape_case cases[] = {
      {"weights", "weights"},
      {"", ""},
      {"a \"b\"", "a \\\"b\\\""},
      {"C:\\n", "C:\\134n"},
      {"ends in \\", "ends in \\134"},
      {"what?\?/", "what\\?\\?/"},
      {"\?\?=", "\\?\\?="},
      {"*/", "*\\057"},
      {"/*", "\\057*"},
      {"/*/", "\\057*\\057"},
      {"a/b * c", "a/b * c"},
      {"a\nb\tc\rd", "a\\nb\\tc\\015d"},
      {"\x01"
       "7",
       "\\0017"},
      {"\x7f", "\\177"},
      {"\xc3\xa9", "\\303\\251"},
      {"\xe2\x80\xae", "\\342\\200\\256"},
      {"\xff", "\\377"},
  };
  CHECK_ESCAPES(weft_text_c_string, cases);
}

static void c_identifiers(void **state) {
  (void)state;
  static const escape_case cases[] = {
      {"w1", "w1"}, {"layer.0/w", "layer_0_w"}, {"1", "1"}, {"_a_", "_a_"}, {"\xc3\xa9", "__"},
      {"", ""},     {"a-B z", "a_B_z"},
  };
  CHECK_ESCAPES(weft_text_c_identifier, cases);
}

static void dot_strings(void **state) {
  (void)state;
  static const escape_case cases[] = {
      {"plain", "plain"},
      {"say \"x\\y\"", "say \\\"x\\\\y\\\""},
      {"a\nb\x01"
       "c\x7f",
       "abc"},
      {"a&lt;b", "a&amp;lt;b"},
      {"\xc3\xa9t\xc3\xa9", "\xc3\xa9t\xc3\xa9"},
      {"\xc3(", "\xef\xbf\xbd("},
      {"ends \xe2\x82", "ends \xef\xbf\xbd\xef\xbf\xbd"},
  };
  CHECK_ESCAPES(weft_text_dot, cases);
}

static void json_strings(void **state) {
  (void)state;
  static const escape_case cases[] = {
      {"", "\"\""},
      {"x / y", "\"x / y\""},
      {"\"\\", "\"\\\"\\\\\""},
      {"\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\""},
      {"\x01\x1f\x7f", "\"\\u0001\\u001f\x7f\""},
      {"\xf0\x9f\xa7\xb5", "\"\xf0\x9f\xa7\xb5\""},
      {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
  };
  CHECK_ESCAPES(weft_text_json_string, cases);
}

static void safe_texts(void **state) {
  (void)state;
  static const escape_case cases[] = {
      {"", ""},
      {"plain\ttext\n", "plain\ttext\n"},
      {"red \x1b[31m\x07\r\x7f", "red \\x1b[31m\\x07\\x0d\\x7f"},
      {"\xc2\x9b"
       "31m \xc3\xa9 \xc2\xa0",
       "\\x9b"
       "31m \xc3\xa9 \xc2\xa0"},
      {"\xc2", "\xc2"},
  };
  CHECK_ESCAPES(weft_text_safe, cases);
}

/* Every code point encodes and is recognised; the neighbours of each bound are not. */
static void utf8(void **state) {
  (void)state;
  for (uint32_t code = 0; code < 0x110000; code++) {
    char bytes[4];
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    uint32_t rest = code;
    for (size_t i = length; i-- > 1; rest >>= 6) bytes[i] = (char)(0x80 + rest % 64);
    bytes[0] = (char)(length == 1 ? rest : length == 2 ? 0xc0 + rest : length == 3 ? 0xe0 + rest : 0xf0 + rest);
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    assert_int_equal(weft_utf8_length(bytes, 4 < length ? 4 : length), surrogate ? 0 : length);
    if (length > 1) assert_int_equal(weft_utf8_length(bytes, length - 1), 0);
  }
  static const char *const bad[] = {"\x80",     "\xc0\x80", "\xc1\xbf",         "\xe0\x9f\xbf",     "\xf0\x8f\xbf\xbf",
                                    "\xc3\x28", "\xfe",     "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82\x28"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_int_equal(weft_utf8_length(bad[i], strlen(bad[i])), 0);
  assert_int_equal(weft_utf8_length("", 0), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(appending_grows),
      cmocka_unit_test(integers),
      cmocka_unit_test(exhausted_text_stays_as_it_was),
      cmocka_unit_test(c_strings),
      cmocka_unit_test(c_identifiers),
      cmocka_unit_test(dot_strings),
      cmocka_unit_test(json_strings),
      cmocka_unit_test(safe_texts),
      cmocka_unit_test(utf8),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
