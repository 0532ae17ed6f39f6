/* Tokens of the two languages, and messages about them. */
#include "lexer.h"

#include <stdio.h>
#include <string.h>

weft_place language_place(const char *file, position at) {
  return (weft_place){.file = file, .line = at.line, .column = at.column};
}

bool language_fail(lexer *x, position at, const char *hint, const char *format, ...) {
  if (x->status) return false;
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  x->status = weft_error_at(x->diag, WEFT_INVALID, language_place(x->file, at), hint, "%s", message);
  return false;
}

bool language_no_memory(lexer *x) {
  if (!x->status) x->status = weft_error_memory(x->diag);
  return false;
}

bool language_expected(lexer *x, const char *what) {
  const token *t = &x->token;
  if (t->kind == TOKEN_END) return language_fail(x, t->at, NULL, "expected %s, found the end of the text", what);
  size_t whole = t->length + (t->kind == TOKEN_DOLLAR);
  int shown = whole > 40 ? 40 : (int)whole;
  const char *start = t->start - (t->kind == TOKEN_DOLLAR);
  return language_fail(x, t->at, NULL, "expected %s, found `%.*s`%s", what, shown, start, whole > 40 ? "..." : "");
}

bool language_enter(lexer *x) {
  if (x->depth >= LEXER_MAX_DEPTH)
    return language_fail(x, x->token.at, NULL, "more than %d levels inside each other", LEXER_MAX_DEPTH);
  x->depth++;
  return true;
}

void language_leave(lexer *x) { x->depth--; }

/* ---- tokens --------------------------------------------------------------------------------------------------- */

static position here(const lexer *x) {
  return (position){.line = x->line, .column = (uint32_t)(x->at - x->line_start) + 1};
}

static bool word_starts(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool word_goes_on(char c) { return word_starts(c) || is_digit(c); }

static void skip_space(lexer *x) {
  while (x->at < x->end) {
    char c = *x->at;
    if (c == '\n') {
      x->at++;
      x->line++;
      x->line_start = x->at;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      x->at++;
    } else if (c == '/' && x->end - x->at > 1 && x->at[1] == '/') {
      while (x->at < x->end && *x->at != '\n') x->at++;
    } else {
      return;
    }
  }
}

static void take_word(lexer *x, token_kind kind) {
  const char *start = x->at;
  while (x->at < x->end && word_goes_on(*x->at)) x->at++;
  x->token.kind = kind;
  x->token.start = start;
  x->token.length = (size_t)(x->at - start);
}

static bool take_integer(lexer *x) {
  const char *start = x->at;
  int64_t value = 0;
  bool fits = true;
  for (; x->at < x->end && is_digit(*x->at); x->at++)
    fits = fits && !__builtin_mul_overflow(value, 10, &value) && !__builtin_add_overflow(value, *x->at - '0', &value);
  if (!fits) return language_fail(x, x->token.at, NULL, "this number does not fit in 64 bits");
  if (x->at < x->end && word_starts(*x->at)) return language_fail(x, here(x), NULL, "a letter follows a number");
  x->token.kind = TOKEN_INTEGER;
  x->token.integer = value;
  x->token.start = start;
  x->token.length = (size_t)(x->at - start);
  return true;
}

/* The byte that an escape stands for; -1 when there is no such escape. */
static int escaped(char letter, char quote) {
  if (letter == 'n') return '\n';
  if (letter == 't') return '\t';
  return letter == '\\' || letter == quote ? letter : -1;
}

/* What stands between the quotes, without its escapes. */
static bool decode_text(lexer *x, const char *start) {
  char *text = weft_arena_alloc(x->arena, (size_t)(x->at - start));
  if (!text) return language_no_memory(x);
  size_t length = 0;
  for (const char *c = start + 1; c < x->at; c++) {
    int byte = *c == '\\' ? escaped(*++c, x->quote) : (unsigned char)*c;
    position at = {.line = x->line, .column = (uint32_t)(c - x->line_start) + 1};
    if (byte < 0) return language_fail(x, at, NULL, "expected n, t, \\ or %c after \\", x->quote);
    if (byte == 0) return language_fail(x, at, NULL, "a text may not hold the byte 0");
    text[length++] = (char)byte;
  }
  x->token.text = text;
  x->token.text_length = length;
  return true;
}

static bool take_text(lexer *x) {
  const char *start = x->at++;
  while (x->at < x->end && *x->at != x->quote && *x->at != '\n') x->at += *x->at == '\\' && x->end - x->at > 1 ? 2 : 1;
  if (x->at >= x->end || *x->at == '\n')
    return language_fail(x, x->token.at, "a line break inside a text is written \\n", "this text has no closing %c",
                         x->quote);
  if (!x->skims && !decode_text(x, start)) return false;
  x->at++;
  x->token.kind = TOKEN_TEXT;
  x->token.start = start;
  x->token.length = (size_t)(x->at - start);
  return true;
}

static bool take_mark(lexer *x) {
  for (const char *const *mark = x->marks; *mark; mark++) {
    size_t length = strlen(*mark);
    if ((size_t)(x->end - x->at) < length || memcmp(x->at, *mark, length) != 0) continue;
    x->token.kind = TOKEN_MARK;
    x->token.start = x->at;
    x->token.length = length;
    x->at += length;
    return true;
  }
  unsigned char byte = (unsigned char)*x->at;
  if (byte > ' ' && byte < 0x7f) return language_fail(x, x->token.at, NULL, "unexpected character `%c`", byte);
  return language_fail(x, x->token.at, NULL, "unexpected byte 0x%02x", byte);
}

bool language_next(lexer *x) {
  if (x->status) return false;
  skip_space(x);
  x->token = (token){.kind = TOKEN_END, .at = here(x), .start = x->at};
  if (x->at >= x->end) return true;
  char c = *x->at;
  if (word_starts(c)) return take_word(x, TOKEN_WORD), true;
  if (is_digit(c)) return take_integer(x);
  if (c == x->quote) return take_text(x);
  if (c != '$' || x->end - x->at < 2 || !word_starts(x->at[1])) return take_mark(x);
  x->at++;
  take_word(x, TOKEN_DOLLAR);
  return true;
}

bool language_start(lexer *x, const char *text, size_t length) {
  x->at = x->line_start = text;
  x->end = text + length;
  x->line = 1;
  if (length > LEXER_MAX_BYTES)
    return language_fail(x, (position){0}, NULL, "the text has %zu bytes; at most %llu are read", length,
                         (unsigned long long)LEXER_MAX_BYTES);
  return language_next(x);
}

bool language_at(const lexer *x, const char *spelling) {
  const token *t = &x->token;
  return (t->kind == TOKEN_WORD || t->kind == TOKEN_MARK) && strlen(spelling) == t->length &&
         memcmp(t->start, spelling, t->length) == 0;
}

bool language_try(lexer *x, const char *spelling) { return language_at(x, spelling) && language_next(x); }

bool language_expect(lexer *x, const char *spelling, const char *where) {
  if (language_at(x, spelling)) return language_next(x);
  char what[120];
  snprintf(what, sizeof what, "`%s`%s%s", spelling, where ? " " : "", where ? where : "");
  return language_expected(x, what);
}

bool language_word(lexer *x, const char *what, const char **word) {
  if (x->token.kind != TOKEN_WORD) return language_expected(x, what);
  *word = weft_arena_string(x->arena, x->token.start, x->token.length);
  return *word ? language_next(x) : language_no_memory(x);
}

bool language_integer(lexer *x, const char *what, int64_t *value) {
  if (x->token.kind != TOKEN_INTEGER) return language_expected(x, what);
  *value = x->token.integer;
  return language_next(x);
}
