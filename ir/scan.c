#include "scan_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- messages ---- */

bool scan_fail(scanner *s, const char *wrong, const char *format, ...) {
  if (s->wrong) return false;
  s->wrong = wrong;
  va_list arguments;
  va_start(arguments, format);
  weft_text_vprintf(&s->message, format, arguments);
  va_end(arguments);
  return false;
}

static bool is_token_byte(char byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '-' ||
         byte == '+' || byte == '.';
}

/* The token at the cursor, in words. */
static void describe(scanner *s, weft_text *text) {
  enum { SHOWN_MOST = 40 };
  size_t room = weft_min_u64((size_t)(s->end - s->at), SHOWN_MOST);
  if (!room) {
    weft_text_puts(text, "the end of the text");
    return;
  }
  size_t length = 1;
  const char *quote = *s->at == '"' ? memchr(s->at + 1, '"', room - 1) : NULL;
  if (*s->at == '{' || *s->at == '[' || (*s->at == '"' && !quote)) {
    weft_text_puts(text, *s->at == '{' ? "an object" : *s->at == '[' ? "an array" : "a string");
    return;
  }
  if (quote)
    length = (size_t)(quote - s->at) + 1;
  else
    while (length < room && is_token_byte(*s->at) && is_token_byte(s->at[length])) length++;
  for (size_t i = 0; i < length; i++) {
    unsigned char byte = (unsigned char)s->at[i];
    if (byte < ' ' || byte >= 127)
      weft_text_printf(text, "\\x%02x", byte);
    else
      weft_text_append(text, s->at + i, 1);
  }
}

bool scan_expected(scanner *s, const char *what) {
  if (s->wrong) return false;
  scan_fail(s, s->at, "expected %s, found ", what);
  describe(s, &s->message);
  return false;
}

/* The path is built from its end while the calls return, so that reading keeps no path: reversed, then turned. */
static void add_reversed(scanner *s, const char *bytes, size_t length) {
  enum { PATH_MOST = 2000 };
  if (s->path.length + length > PATH_MOST) return;
  for (size_t i = length; i-- > 0;) weft_text_append(&s->path, bytes + i, 1);
}

bool scan_in_field(scanner *s, const char *name, size_t length) {
  add_reversed(s, name, length);
  add_reversed(s, ".", 1);
  return false;
}

bool scan_in_element(scanner *s, uint64_t index) {
  char part[24];
  int length = snprintf(part, sizeof part, "[%" PRIu64 "]", index);
  add_reversed(s, part, (size_t)length);
  return false;
}

void scan_free(scanner *s) {
  weft_text_free(&s->message);
  weft_text_free(&s->hint);
  weft_text_free(&s->path);
  weft_text_free(&s->decoded);
}

/* ---- structure ---- */

static inline bool is_space(char byte) { return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r'; }

void scan_more_space(scanner *s) {
  const char *at = s->at;
  const char *end = s->end;
  while (at < end && is_space(*at)) {
    at++;
    /* Indentation: whole words of blanks. */
    while (end - at >= 8) {
      uint64_t word;
      memcpy(&word, at, sizeof word);
      if (word != UINT64_C(0x2020202020202020)) break;
      at += 8;
    }
  }
  s->at = at;
}

bool scan_open(scanner *s, char bracket, const char *what) {
  if (!scan_is(s, bracket)) return scan_expected(s, what);
  if (s->depth == SCAN_DEPTH)
    return scan_fail(s, s->at, "expected at most %d nested arrays and objects, found one more", SCAN_DEPTH);
  s->depth++;
  s->at++;
  scan_space(s);
  return true;
}

bool scan_empty(scanner *s, char closing) {
  if (!scan_is(s, closing)) return false;
  s->at++;
  s->depth--;
  return true;
}

bool scan_next(scanner *s, char closing, bool *more) {
  scan_space(s);
  *more = scan_is(s, ',');
  if (*more) {
    s->at++;
    scan_space(s);
    return true;
  }
  if (!scan_is(s, closing)) return scan_expected(s, closing == ']' ? "a comma or ]" : "a comma or }");
  s->at++;
  s->depth--;
  return true;
}

static bool scan_word(scanner *s, const char *word, size_t length) {
  if ((size_t)(s->end - s->at) < length || memcmp(s->at, word, length) != 0) return false;
  s->at += length;
  return true;
}

bool scan_null(scanner *s) { return scan_is(s, 'n') && scan_word(s, "null", 4); }

bool scan_bool(scanner *s, bool *value) {
  *value = scan_is(s, 't');
  if (scan_word(s, "true", 4) || scan_word(s, "false", 5)) return true;
  return scan_expected(s, "true or false");
}

/* ---- integers ---- */

static inline bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

/* The digits at `digits`; false when there is no integer up to `most`. */
static bool digits_value(scanner *s, const char *digits, uint64_t most, uint64_t *value) {
  const char *at = digits;
  uint64_t sum = 0;
  bool fits = true;
  for (; at < s->end && is_digit(*at); at++) {
    uint64_t digit = (uint64_t)(*at - '0');
    if (__builtin_expect(at - digits >= 19, 0))
      fits = fits && !__builtin_mul_overflow(sum, UINT64_C(10), &sum) && !__builtin_add_overflow(sum, digit, &sum);
    else
      sum = sum * 10 + digit;
  }
  bool leading_zero = at - digits > 1 && *digits == '0';
  bool fraction = at < s->end && (*at == '.' || *at == 'e' || *at == 'E');
  if (at == digits || leading_zero || fraction || !fits || sum > most) return false;
  s->at = at;
  *value = sum;
  return true;
}

bool scan_unsigned(scanner *s, uint64_t most, uint64_t *value) {
  if (digits_value(s, s->at, most, value)) return true;
  char what[64];
  snprintf(what, sizeof what, "an integer from 0 to %" PRIu64, most);
  return scan_expected(s, what);
}

bool scan_signed(scanner *s, uint64_t most, int64_t *value) {
  const char *start = s->at;
  bool negative = scan_is(s, '-');
  uint64_t magnitude;
  if (digits_value(s, start + negative, negative ? most + 1 : most, &magnitude) && !(negative && !magnitude)) {
    *value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
  }
  s->at = start;
  char what[80];
  snprintf(what, sizeof what, "an integer from -%" PRIu64 " to %" PRIu64, most + 1, most);
  return scan_expected(s, what);
}

/* ---- strings ---- */

/* Four hexadecimal digits at `at`, or -1. */
static int32_t hex4(const char *at, const char *end) {
  if (end - at < 4) return -1;
  int32_t value = 0;
  for (int i = 0; i < 4; i++) {
    char c = at[i];
    int digit = is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

/* UTF-8; U+0000 takes two bytes, as it cannot take one in a C string. */
static void append_code(weft_text *text, uint32_t code) {
  char bytes[4];
  size_t length = code == 0 ? 2 : code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  static const unsigned char leads[5] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (size_t i = length; i-- > 1; code >>= 6) bytes[i] = (char)(0x80 | (code & 0x3f));
  bytes[0] = (char)(leads[length] | code);
  weft_text_append(text, bytes, length);
}

/* The escape \uXXXX whose digits are at the cursor; two of them for a pair of surrogates. */
static bool unicode_escape(scanner *s) {
  const char *start = s->at - 2;
  int32_t code = hex4(s->at, s->end);
  if (code < 0) return scan_fail(s, start, "expected four hexadecimal digits after \\u");
  s->at += 4;
  if (code >= 0xdc00 && code <= 0xdfff) return scan_fail(s, start, "an unpaired surrogate in a string");
  if (code >= 0xd800 && code <= 0xdbff) {
    bool escape = s->end - s->at >= 2 && s->at[0] == '\\' && s->at[1] == 'u';
    int32_t low = escape ? hex4(s->at + 2, s->end) : -1;
    if (low < 0xdc00 || low > 0xdfff) return scan_fail(s, start, "an unpaired surrogate in a string");
    s->at += 6;
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  append_code(&s->decoded, (uint32_t)code);
  return true;
}

static bool escape(scanner *s) {
  static const char letters[] = "\"\\/bfnrt";
  static const char meanings[] = "\"\\/\b\f\n\r\t";
  const char *start = s->at++;
  char letter = s->at < s->end ? *s->at : 0;
  s->at++;
  if (letter == 'u') return unicode_escape(s);
  const char *found = letter ? strchr(letters, letter) : NULL;
  if (!found) return scan_fail(s, start, "expected an escape: \\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u");
  weft_text_append(&s->decoded, &meanings[found - letters], 1);
  return true;
}

/* Moves over characters that stand for themselves, checking UTF-8. */
static bool plain_run(scanner *s) {
  const char *at = s->at;
  while (at < s->end) {
    unsigned char byte = (unsigned char)*at;
    if (byte == '"' || byte == '\\') break;
    if (byte < ' ') return scan_fail(s, at, "a control character in a string must be escaped");
    if (byte < 0x80) {
      at++;
      continue;
    }
    size_t length = weft_utf8_length(at, (size_t)(s->end - at));
    if (!length) return scan_fail(s, at, "this byte is not UTF-8");
    at += length;
  }
  if (at == s->end) return scan_fail(s, at, "expected the end of a string, found the end of the text");
  s->at = at;
  return true;
}

bool scan_string(scanner *s, const char *what, const char **contents, size_t *length) {
  if (!scan_is(s, '"')) return scan_expected(s, what);
  const char *begin = ++s->at;
  if (!plain_run(s)) return false;
  if (*s->at == '"') {
    *contents = begin;
    *length = (size_t)(s->at++ - begin);
    return true;
  }
  s->decoded.length = 0;
  weft_text_append(&s->decoded, begin, (size_t)(s->at - begin));
  while (*s->at != '"') {
    if (!escape(s)) return false;
    const char *run = s->at;
    if (!plain_run(s)) return false;
    weft_text_append(&s->decoded, run, (size_t)(s->at - run));
  }
  s->at++;
  s->out_of_memory |= s->decoded.failed;
  *contents = s->decoded.data;
  *length = s->decoded.length;
  return !s->decoded.failed;
}
