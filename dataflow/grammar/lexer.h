/* The tokens that grammars and postconditions have in common: words, $words, integers, quoted texts and marks, with //
 * comments. The first fault stops the reading: everything returns false from then on. */
#ifndef WEFT_GRAMMAR_LEXER_H
#define WEFT_GRAMMAR_LEXER_H

#include "weft/base.h"

/** Most bytes of a grammar or postcondition. */
#define LEXER_MAX_BYTES (UINT64_C(1) << 22)
/** Most levels of expressions and blocks inside each other. */
#define LEXER_MAX_DEPTH 200

typedef enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_DOLLAR, TOKEN_INTEGER, TOKEN_TEXT, TOKEN_MARK } token_kind;

/** A place in the text that was read. */
typedef struct position {
  uint32_t line, column;
} position;

typedef struct token {
  token_kind kind;
  position at;
  const char *start; /**< in the text: the token, without the $ of a TOKEN_DOLLAR */
  size_t length;
  int64_t integer;  /**< of TOKEN_INTEGER */
  const char *text; /**< contents of TOKEN_TEXT, NUL-terminated */
  size_t text_length;
} token;

typedef struct lexer {
  weft_arena *arena; /**< owns decoded texts */
  weft_diag *diag;
  const char *file;
  const char *at, *end, *line_start;
  uint32_t line;
  char quote;               /**< what begins and ends a text */
  const char *const *marks; /**< longest first, NULL at the end */
  token token;              /**< the next one */
  bool skims;               /**< looking ahead: texts are not decoded */
  unsigned depth;
  weft_status status;
} lexer;

/** Reads the first token. */
bool language_start(lexer *x, const char *text, size_t length);
/** Goes past the current token. */
bool language_next(lexer *x);
/** Whether the current token is this word or mark. */
bool language_at(const lexer *x, const char *spelling);
/** Goes past it if it is there. */
bool language_try(lexer *x, const char *spelling);
/** Goes past it, or fails: "expected `;` after an alternative, found `|`". `where` may be NULL. */
bool language_expect(lexer *x, const char *spelling, const char *where);
/** A word's own copy; fails with "expected WHAT, found ...". */
bool language_word(lexer *x, const char *what, const char **word);
bool language_integer(lexer *x, const char *what, int64_t *value);

/** Fails with "expected WHAT, found ..." at the current token. */
bool language_expected(lexer *x, const char *what);
/** Records the first fault and returns false. */
bool language_fail(lexer *x, position at, const char *hint, const char *format, ...) WEFT_PRINTF(4, 5);
bool language_no_memory(lexer *x);
/** One level deeper, or a fault at the current token; left by language_leave. */
bool language_enter(lexer *x);
void language_leave(lexer *x);

weft_place language_place(const char *file, position at);

/* Names numbered from 0 in the order in which they were added. */
typedef struct name_table {
  weft_arena *arena;
  const char **names;
  uint64_t count, capacity;
  uint32_t *slots; /* numbers plus 1; 0 is empty */
  uint64_t slot_count;
} name_table;

#define NAME_NONE UINT32_MAX

/** The number of a name, added when it is new; NAME_NONE when memory is exhausted. */
uint32_t language_names_add(name_table *table, const char *name, size_t length);
/** NAME_NONE when it is not there. */
uint32_t language_names_find(const name_table *table, const char *name, size_t length);
/** "did you mean `X`?" in the arena for the nearest of `count` names, or NULL. Names that are NULL are skipped. */
const char *language_nearest_hint(weft_arena *arena, const char *name, const char *const *names, uint64_t count);

#endif
