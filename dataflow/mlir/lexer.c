/* Tokens of MLIR text. The text ends with a NUL at `end`; a NUL before it is a bad character. */
#include "internal.h"

enum { LETTER = 1, DIGIT = 2, ID = 4, HEX = 8, SPACE = 16 };

/* LETTER: a-z A-Z _; ID: what may follow in a word ($ .) or, with -, in a name after a sigil. */
static const unsigned char classes[256] = {
    [' '] = SPACE,     ['\t'] = SPACE,    ['\r'] = SPACE,    ['\n'] = SPACE,
#define DIGITS(c) [c] = DIGIT | HEX
    DIGITS('0'),       DIGITS('1'),       DIGITS('2'),       DIGITS('3'),       DIGITS('4'),       DIGITS('5'),
    DIGITS('6'),       DIGITS('7'),       DIGITS('8'),       DIGITS('9'),
#undef DIGITS
#define HEXES(l, u) [l] = LETTER | HEX, [u] = LETTER | HEX
    HEXES('a', 'A'),   HEXES('b', 'B'),   HEXES('c', 'C'),   HEXES('d', 'D'),   HEXES('e', 'E'),   HEXES('f', 'F'),
#undef HEXES
#define LETTERS(l, u) [l] = LETTER, [u] = LETTER
    LETTERS('g', 'G'), LETTERS('h', 'H'), LETTERS('i', 'I'), LETTERS('j', 'J'), LETTERS('k', 'K'), LETTERS('l', 'L'),
    LETTERS('m', 'M'), LETTERS('n', 'N'), LETTERS('o', 'O'), LETTERS('p', 'P'), LETTERS('q', 'Q'), LETTERS('r', 'R'),
    LETTERS('s', 'S'), LETTERS('t', 'T'), LETTERS('u', 'U'), LETTERS('v', 'V'), LETTERS('w', 'W'), LETTERS('x', 'X'),
    LETTERS('y', 'Y'), LETTERS('z', 'Z'),
#undef LETTERS
    ['_'] = LETTER,    ['$'] = ID,        ['.'] = ID,        ['-'] = 0,
};

static inline unsigned char class_of(char c) { return classes[(unsigned char)c]; }

/* Skips spaces and comments. A line `// -----` stays: it ends a module. */
static void skip(lexer *l) {
  for (;;) {
    char c = *l->at;
    if (c == '\n') {
      l->line++;
      l->line_start = ++l->at;
    } else if (class_of(c) & SPACE) {
      l->at++;
    } else if (c == '/' && l->at[1] == '/') {
      if (l->at == l->line_start && strncmp(l->at, "// -----", 8) == 0) return;
      const char *end = memchr(l->at, '\n', (size_t)(l->end - l->at));
      l->at = end ? end : l->end;
    } else {
      return;
    }
  }
}

static const char *number_end(const char *p, token_kind *kind) {
  *kind = TOKEN_INTEGER;
  if (p[0] == '0' && p[1] == 'x' && class_of(p[2]) & HEX) {
    p += 2;
    while (class_of(*p) & HEX) p++;
    return p;
  }
  while (class_of(*p) & DIGIT) p++;
  if (*p != '.') return p;
  *kind = TOKEN_FLOAT;
  p++;
  while (class_of(*p) & DIGIT) p++;
  if (*p != 'e' && *p != 'E') return p;
  const char *exponent = p + 1;
  if (*exponent == '+' || *exponent == '-') exponent++;
  if (!(class_of(*exponent) & DIGIT)) return p;
  while (class_of(*exponent) & DIGIT) exponent++;
  return exponent;
}

static inline const char *suffix_end(const char *p) {
  if (class_of(*p) & DIGIT) {
    while (class_of(*p) & DIGIT) p++;
    return p;
  }
  while (class_of(*p) & (LETTER | DIGIT | ID) || (*p == '-' && p[1] != '>')) p++;
  return p;
}

static void bad(token *t, const char *problem) {
  t->kind = TOKEN_BAD;
  t->problem = problem;
}

/* The text after a quote up to and with the closing one; NULL when the line or the text ends before. */
static const char *string_end(const lexer *l, const char *p) {
  for (; p < l->end && *p != '\n'; p++) {
    if (*p == '"') return p + 1;
    if (*p == '\\' && p + 1 < l->end && p[1] != '\n') p++;
  }
  return NULL;
}

static const char *value_end(const lexer *l, token *t) {
  const char *p = suffix_end(l->at + 1);
  t->number = UINT32_MAX;
  t->length = (uint32_t)(p - t->start);
  if (p == l->at + 1) {
    bad(t, "a value name must follow %");
  } else if (*p == '#' && class_of(p[1]) & DIGIT) {
    uint64_t number = 0;
    for (p++; class_of(*p) & DIGIT; p++) number = number < UINT32_MAX ? number * 10 + (uint64_t)(*p - '0') : number;
    t->number = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX - 1;
  }
  return p;
}

static const char *sigil_end(const lexer *l, token *t) {
  t->kind = *l->at == '#' ? TOKEN_HASH : *l->at == '!' ? TOKEN_BANG : *l->at == '@' ? TOKEN_AT : TOKEN_CARET;
  const char *p;
  if (t->kind == TOKEN_AT && l->at[1] == '"') {
    p = string_end(l, l->at + 2);
    if (!p) bad(t, "the quoted symbol name has no end on its line");
    return p ? p : l->at + 1;
  }
  p = suffix_end(l->at + 1);
  if (p == l->at + 1) bad(t, "a name must follow this character");
  return p;
}

static const char *punctuation_end(const lexer *l, token *t) {
  const char *p = l->at;
  t->kind = TOKEN_PUNCTUATION;
  t->punctuation = *p;
  if (*p == '-' && p[1] == '>') {
    t->punctuation = '>';
    t->pair = true;
    return p + 2;
  }
  if (*p == ':' && p[1] == ':') {
    t->pair = true;
    return p + 2;
  }
  if (*p == '.' && p[1] == '.' && p[2] == '.') return p + 3;
  if (!strchr("(){}[]<>,:=?*+-/|", *p)) bad(t, "this character means nothing here");
  return p + 1;
}

void lexer_next(lexer *l, token *t) {
  skip(l);
  const char *p = l->at;
  t->start = p;
  t->line = l->line;
  t->pair = false;
  char c = *p;
  unsigned char class = class_of(c);
  if (class & LETTER) {
    t->kind = TOKEN_WORD;
    while (class_of(*p) & (LETTER | DIGIT | ID)) p++;
  } else if (c == '%') {
    t->kind = TOKEN_VALUE;
    l->at = value_end(l, t);
    return;
  } else if (class & DIGIT) {
    p = number_end(p, &t->kind);
  } else if (c == '"') {
    t->kind = TOKEN_STRING;
    p = string_end(l, p + 1);
    if (!p) {
      bad(t, "the string has no end on its line");
      p = l->at + 1;
    }
  } else if (c == '\0') {
    if (p < l->end) {
      bad(t, "the text holds a NUL byte");
      p++;
    } else {
      t->kind = TOKEN_END;
    }
  } else if (c == '#' || c == '!' || c == '@' || c == '^') {
    p = sigil_end(l, t);
  } else if (c == '/' && p[1] == '/') {
    t->kind = TOKEN_END; /* the line that splits modules */
  } else {
    p = punctuation_end(l, t);
  }
  t->length = (uint32_t)(p - t->start);
  l->at = p;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

const char *lexer_string(weft_arena *arena, const token *t, uint64_t *length, const char **problem) {
  const char *p = t->start, *end = t->start + t->length - 1;
  while (*p != '"') p++; /* of @"name" */
  p++;
  char *text = weft_arena_alloc(arena, (size_t)(end - p) + 1), *out = text;
  *problem = "out of memory";
  if (!text) return NULL;
  while (p < end) {
    if (*p != '\\') {
      *out++ = *p++;
      continue;
    }
    char c = p[1];
    int high = hex_digit(c), low = high >= 0 ? hex_digit(p[2]) : -1;
    if (c == 'n' || c == 't' || c == '"' || c == '\\') {
      *out++ = c == 'n' ? '\n' : c == 't' ? '\t' : c;
      p += 2;
    } else if (low >= 0) {
      *out++ = (char)(high * 16 + low);
      p += 3;
    } else {
      *problem = "an escape in the string is none of \\n \\t \\\" \\\\ and two hexadecimal digits";
      return NULL;
    }
  }
  *length = (uint64_t)(out - text);
  return text;
}
