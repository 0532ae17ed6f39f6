/* A recursive reader over bytes, bounded in depth. Children of open arrays and objects wait on one stack and are copied
 * to their final place when the container closes. */
#include "weft/json.h"

#include <stdlib.h>
#include <string.h>

typedef struct parser {
  weft_arena *arena;
  weft_diag *diag;
  const char *file;
  const char *at;
  const char *end;
  const char *line_start;
  uint64_t line;
  unsigned depth;
  weft_json *stack;
  uint64_t stacked;
  uint64_t stack_capacity;
  weft_text scratch;
} parser;

static weft_status parse_value(parser *p, const char *key, weft_json *value);

static weft_place place_of(const parser *p, const char *at) {
  return (weft_place){.file = p->file, .line = p->line, .column = (uint64_t)(at - p->line_start) + 1};
}

static weft_status fault(parser *p, const char *at, const char *text) {
  return weft_error_at(p->diag, WEFT_INVALID, place_of(p, at), NULL, "%s", text);
}

static void skip_space(parser *p) {
  for (; p->at < p->end; p->at++) {
    if (*p->at == '\n') {
      p->line++;
      p->line_start = p->at + 1;
    } else if (*p->at != ' ' && *p->at != '\t' && *p->at != '\r') {
      return;
    }
  }
}

static bool next_is(const parser *p, char byte) { return p->at < p->end && *p->at == byte; }

/* ---- strings ---- */

/* Four hexadecimal digits at `at`, or -1. */
static int32_t hex4(const char *at, const char *end) {
  if (end - at < 4) return -1;
  int32_t value = 0;
  for (int i = 0; i < 4; i++) {
    char c = at[i];
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

static void append_code_point(weft_text *text, uint32_t code) {
  char bytes[4];
  size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  static const unsigned char leads[5] = {0, 0, 0xc0, 0xe0, 0xf0};
  for (size_t i = length; i-- > 1; code >>= 6) bytes[i] = (char)(0x80 | (code & 0x3f));
  bytes[0] = (char)(leads[length] | code);
  weft_text_append(text, bytes, length);
}

/* The \u escape whose u is at p->at; a surrogate pair is one character. */
static weft_status parse_unicode_escape(parser *p) {
  const char *start = p->at - 1;
  int32_t code = hex4(p->at + 1, p->end);
  if (code < 0) return fault(p, start, "expected four hexadecimal digits after \\u");
  p->at += 5;
  if (code == 0) return fault(p, start, "the character U+0000 is not allowed in a string");
  if (code >= 0xdc00 && code <= 0xdfff) return fault(p, start, "a low surrogate without a high one before it");
  if (code >= 0xd800 && code <= 0xdbff) {
    int32_t low = p->end - p->at >= 2 && p->at[0] == '\\' && p->at[1] == 'u' ? hex4(p->at + 2, p->end) : -1;
    if (low < 0xdc00 || low > 0xdfff) return fault(p, start, "a high surrogate without a low one after it");
    p->at += 6;
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  append_code_point(&p->scratch, (uint32_t)code);
  return WEFT_OK;
}

static weft_status parse_escape(parser *p) {
  static const char letters[] = "\"\\/bfnrt";
  static const char meanings[] = "\"\\/\b\f\n\r\t";
  p->at++;
  if (next_is(p, 'u')) return parse_unicode_escape(p);
  const char *letter = p->at < p->end && *p->at ? strchr(letters, *p->at) : NULL;
  if (!letter) return fault(p, p->at - 1, "expected an escape: \\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u");
  weft_text_append(&p->scratch, &meanings[letter - letters], 1);
  p->at++;
  return WEFT_OK;
}

/* One piece of a string's inside: an escape or a character. */
static weft_status parse_character(parser *p) {
  if (*p->at == '\\') return parse_escape(p);
  if ((unsigned char)*p->at < 0x20) return fault(p, p->at, "a control character in a string must be escaped");
  size_t length = weft_utf8_length(p->at, (size_t)(p->end - p->at));
  if (!length) return fault(p, p->at, "this byte is not UTF-8");
  weft_text_append(&p->scratch, p->at, length);
  p->at += length;
  return WEFT_OK;
}

static weft_status parse_string(parser *p, const char **text, size_t *length) {
  const char *start = p->at++;
  p->scratch.length = 0;
  while (p->at < p->end && *p->at != '"') {
    weft_status status = parse_character(p);
    if (status) return status;
  }
  if (p->at == p->end) return fault(p, start, "this string does not end");
  p->at++;
  if (p->scratch.failed) return weft_error_memory(p->diag);
  *length = p->scratch.length;
  *text = weft_arena_string(p->arena, p->scratch.data, p->scratch.length);
  return *text ? WEFT_OK : weft_error_memory(p->diag);
}

/* ---- numbers and words ---- */

static bool skip_digits(parser *p) {
  const char *start = p->at;
  while (p->at < p->end && *p->at >= '0' && *p->at <= '9') p->at++;
  return p->at > start;
}

/* What stands before the point. */
static weft_status parse_whole_part(parser *p, const char *start) {
  if (next_is(p, '-')) p->at++;
  bool zero = next_is(p, '0');
  const char *digits = p->at;
  if (!skip_digits(p)) return fault(p, start, "expected a digit after -");
  if (zero && p->at > digits + 1) return fault(p, start, "a number must not begin with 0");
  return WEFT_OK;
}

static weft_status parse_number(parser *p, weft_json *value) {
  const char *start = p->at;
  weft_status status = parse_whole_part(p, start);
  if (status) return status;
  if (next_is(p, '.')) {
    p->at++;
    if (!skip_digits(p)) return fault(p, start, "expected a digit after the point");
  }
  if (next_is(p, 'e') || next_is(p, 'E')) {
    p->at++;
    if (next_is(p, '+') || next_is(p, '-')) p->at++;
    if (!skip_digits(p)) return fault(p, start, "expected a digit in the exponent");
  }
  value->type = WEFT_JSON_NUMBER;
  value->length = (size_t)(p->at - start);
  value->text = weft_arena_string(p->arena, start, value->length);
  return value->text ? WEFT_OK : weft_error_memory(p->diag);
}

static bool skip_word(parser *p, const char *word) {
  size_t length = strlen(word);
  if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length)) return false;
  p->at += length;
  return true;
}

static weft_status parse_word(parser *p, weft_json *value) {
  value->type = WEFT_JSON_BOOL;
  if (skip_word(p, "false")) return WEFT_OK;
  value->boolean = true;
  if (skip_word(p, "true")) return WEFT_OK;
  value->type = WEFT_JSON_NULL;
  value->boolean = false;
  if (skip_word(p, "null")) return WEFT_OK;
  return fault(p, p->at, p->at == p->end ? "expected a value, found the end" : "expected a value");
}

/* ---- arrays and objects ---- */

static weft_status push(parser *p, const weft_json *value) {
  if (!weft_arena_grow(p->arena, &p->stack, p->stacked, &p->stack_capacity, sizeof *p->stack))
    return weft_error_memory(p->diag);
  p->stack[p->stacked++] = *value;
  return WEFT_OK;
}

/* Moves what was stacked since `base` into `value`. */
static weft_status close_container(parser *p, uint64_t base, weft_json *value) {
  uint64_t count = p->stacked - base;
  weft_json *items = WEFT_NEW_ARRAY(p->arena, weft_json, count);
  if (!items) return weft_error_memory(p->diag);
  if (count) memcpy(items, p->stack + base, count * sizeof *items);
  p->stacked = base;
  value->items = items;
  value->count = count;
  return WEFT_OK;
}

static int compare_keys(const void *a, const void *b) {
  const weft_json *x = *(const weft_json *const *)a, *y = *(const weft_json *const *)b;
  int order = strcmp(x->key, y->key);
  return order ? order : (x > y) - (x < y);
}

/* Members sorted by key, then by order in the file: a duplicate follows its first. */
static weft_status refuse_duplicates(parser *p, const weft_json *object) {
  if (object->count < 2) return WEFT_OK;
  const weft_json **sorted = WEFT_NEW_ARRAY(p->arena, const weft_json *, object->count);
  if (!sorted) return weft_error_memory(p->diag);
  for (uint64_t i = 0; i < object->count; i++) sorted[i] = &object->items[i];
  qsort(sorted, object->count, sizeof *sorted, compare_keys);
  for (uint64_t i = 1; i < object->count; i++) {
    if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
      return weft_error_at(p->diag, WEFT_INVALID, sorted[i]->place, "keep one of them",
                           "the key \"%s\" is given twice, first in line %llu", sorted[i]->key,
                           (unsigned long long)sorted[i - 1]->place.line);
  }
  return WEFT_OK;
}

static weft_status parse_key(parser *p, const char **key) {
  size_t length;
  if (!next_is(p, '"')) return fault(p, p->at, "expected a key in quotes");
  weft_status status = parse_string(p, key, &length);
  if (status) return status;
  skip_space(p);
  if (!next_is(p, ':')) return fault(p, p->at, "expected : after a key");
  p->at++;
  return WEFT_OK;
}

/* One element or member, and what follows it up to the next one. */
static weft_status parse_item(parser *p, bool keyed, char closing) {
  const char *key = NULL;
  weft_json item;
  skip_space(p);
  weft_status status = keyed ? parse_key(p, &key) : WEFT_OK;
  if (!status) status = parse_value(p, key, &item);
  if (!status) status = push(p, &item);
  if (status) return status;
  skip_space(p);
  if (next_is(p, ',')) {
    p->at++;
    skip_space(p);
    return next_is(p, closing) ? fault(p, p->at, "expected another value after ,") : WEFT_OK;
  }
  if (!next_is(p, closing)) return fault(p, p->at, closing == ']' ? "expected , or ]" : "expected , or }");
  return WEFT_OK;
}

static weft_status parse_container(parser *p, weft_json *value) {
  bool keyed = *p->at == '{';
  char closing = keyed ? '}' : ']';
  if (p->depth == WEFT_JSON_DEPTH) return fault(p, p->at, "nested too deeply");
  value->type = keyed ? WEFT_JSON_OBJECT : WEFT_JSON_ARRAY;
  uint64_t base = p->stacked;
  p->depth++;
  p->at++;
  skip_space(p);
  while (!next_is(p, closing)) {
    weft_status status = parse_item(p, keyed, closing);
    if (status) return status;
  }
  p->at++;
  p->depth--;
  weft_status status = close_container(p, base, value);
  return status || !keyed ? status : refuse_duplicates(p, value);
}

static weft_status parse_value(parser *p, const char *key, weft_json *value) {
  skip_space(p);
  *value = (weft_json){.key = key, .place = place_of(p, p->at)};
  char first = p->at < p->end ? *p->at : 0;
  if (first == '{' || first == '[') return parse_container(p, value);
  if (first == '-' || (first >= '0' && first <= '9')) return parse_number(p, value);
  if (first != '"') return parse_word(p, value);
  value->type = WEFT_JSON_STRING;
  return parse_string(p, &value->text, &value->length);
}

weft_status weft_json_parse(weft_arena *arena, const char *file, const char *bytes, size_t length,
                            const weft_json **root, weft_diag *diag) {
  *root = NULL;
  parser p = {.arena = arena, .diag = diag, .at = bytes, .end = bytes + length, .line_start = bytes, .line = 1};
  p.file = weft_arena_string(arena, file, strlen(file));
  weft_json *value = WEFT_NEW(arena, weft_json);
  if (!p.file || !value) return weft_error_memory(diag);
  weft_status status = parse_value(&p, NULL, value);
  weft_text_free(&p.scratch);
  if (status) return status;
  skip_space(&p);
  if (p.at < p.end) return fault(&p, p.at, "expected the end of the file after the value");
  *root = value;
  return WEFT_OK;
}

weft_status weft_json_read(weft_arena *arena, const char *path, const weft_json **root, weft_diag *diag) {
  char *bytes;
  size_t length;
  *root = NULL;
  weft_status status = weft_read_file(path, &bytes, &length, diag);
  if (status) return status;
  status = weft_json_parse(arena, path, bytes, length, root, diag);
  free(bytes);
  return status;
}
