/* The reader's text: a cursor, white space, strings, integers, and the one message a bad text gives. */
#ifndef WEFT_IR_SCAN_PRIVATE_H
#define WEFT_IR_SCAN_PRIVATE_H

#include "weft/base.h"

#define SCAN_DEPTH 127
#define SCAN_NAME_MOST 64

typedef struct scanner {
  const char *at;
  const char *begin;
  const char *end;
  unsigned depth; /* arrays and objects open here */
  bool out_of_memory;
  const char *wrong; /* where the text is wrong; NULL while it is not */
  weft_text message;
  weft_text hint;
  weft_text path;    /* of the value that is wrong, its last part first, each part reversed */
  weft_text decoded; /* scratch of one string */
} scanner;

/* Everything below returns false after a failure and leaves the message in the scanner. */

/* Says that the text is wrong at `wrong`. */
bool scan_fail(scanner *s, const char *wrong, const char *format, ...) WEFT_PRINTF(3, 4);
/* The same, ending in ", found ..." for what is at the cursor. */
bool scan_expected(scanner *s, const char *what);
/* Adds to the front of the path, after a failure inside the part: ".name" or "[index]". Returns false. */
bool scan_in_field(scanner *s, const char *name, size_t length);
bool scan_in_element(scanner *s, uint64_t index);

void scan_more_space(scanner *s);
static inline void scan_space(scanner *s) {
  if (s->at < s->end && (unsigned char)*s->at <= ' ') scan_more_space(s);
}
static inline bool scan_is(const scanner *s, char byte) { return s->at < s->end && *s->at == byte; }

/* An opening bracket or brace, one level deeper; `what` it should have been. */
bool scan_open(scanner *s, char bracket, const char *what);
/* After an element: true at the closing bracket (consumed), else a comma is consumed and `*more` is set. */
bool scan_next(scanner *s, char closing, bool *more);
/* Whether the container that was just opened is empty; its closing bracket is then consumed. */
bool scan_empty(scanner *s, char closing);

/* A string's contents, decoded; U+0000 as C0 80. They live in the text or in the scanner until the next string. */
bool scan_string(scanner *s, const char *what, const char **contents, size_t *length);
/* "null" */
bool scan_null(scanner *s);
/* An unsigned integer up to `most`. */
bool scan_unsigned(scanner *s, uint64_t most, uint64_t *value);
/* A signed integer between -most - 1 and most. */
bool scan_signed(scanner *s, uint64_t most, int64_t *value);
bool scan_bool(scanner *s, bool *value);

void scan_free(scanner *s);

#endif
