/* One run of a grammar: the bindings of its variables and the source of its numbers. */
#ifndef WEFT_GRAMMAR_SAMPLE_PRIVATE_H
#define WEFT_GRAMMAR_SAMPLE_PRIVATE_H

#include "grammar_private.h"

/** Most bytes of one text value, and of all that one run makes. */
#define TEXT_VALUE_MOST (UINT64_C(1) << 16)
#define TEXT_VALUES_MOST (UINT64_C(1) << 28)

/** What an expression gives: an integer, or a text when `text` is not NULL. */
typedef struct scalar {
  int64_t integer;
  const char *text;
  size_t length;
} scalar;

/** A value of a variable, over the one that it hides. */
typedef struct binding {
  scalar value;
  uint32_t variable;
  uint64_t hidden; /**< number of the binding below plus 1; 0: none */
} binding;

typedef struct frame {
  const alternative *taken;
  uint64_t next;  /**< item */
  uint64_t bound; /**< bindings when it began */
} frame;

typedef struct sampler {
  const weft_grammar *grammar;
  weft_grammar_options options;
  weft_arena *arena;
  weft_diag *diag;
  weft_text *text;
  uint64_t random;
  frame *frames;
  uint64_t depth, frame_capacity;
  binding *bindings;
  uint64_t bound, binding_capacity;
  uint64_t *current;      /**< of each variable: number of its binding plus 1; 0: none */
  const int64_t **pinned; /**< of each variable; NULL: free */
  uint64_t text_bytes;    /**< of text values made */
  uint64_t work, expansions;
  size_t text_start;        /**< what `text` held before */
  const alternative **open; /**< room for the alternatives of one choice */
  uint64_t open_capacity;
  weft_status status;
} sampler;

bool sampler_fail(sampler *s, position at, const char *hint, const char *format, ...) WEFT_PRINTF(4, 5);
bool sampler_no_memory(sampler *s);
/** Counts steps, and fails at the last that is allowed. */
bool sampler_work(sampler *s, position at, uint64_t amount);
/** A number below `count`, each equally likely; `count` 0 stands for 2^64. */
uint64_t sampler_draw(sampler *s, uint64_t count);
bool sampler_evaluate(sampler *s, const expression *e, scalar *result);
/** Whether a guard is open. */
bool sampler_test(sampler *s, const expression *e, bool *result);
/** a + b, of two integers or two texts. */
bool sampler_add(sampler *s, position at, scalar a, scalar b, scalar *result);

#endif
