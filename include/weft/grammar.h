/* weft/grammar.h: grammars that write programs (.pg) and statements about programs before and after a pass (.spct).
 * Both languages are described in docs/grammars.md.
 *
 * Reading is bounded in depth and size and ends, for any bytes, in an object or in messages with line and column. A
 * grammar and a postcondition are constant once read; several threads may use one at the same time, each with its own
 * diag.
 */
#ifndef WEFT_GRAMMAR_H
#define WEFT_GRAMMAR_H

#include "weft/base.h"

struct weft_mlir_op;
struct weft_mlir_context;

/* ---- grammars ------------------------------------------------------------------------------------------------- */

typedef struct weft_grammar weft_grammar;

/** Reads a grammar. Refused: a rule that is missing or defined twice, a rule no expansion of which can end, a name that
 * no `new` binds, an empty grammar. Warned about: a rule that the root never reaches. `name` stands in messages. */
weft_status weft_grammar_parse(const char *name, const char *text, size_t length, weft_grammar **grammar,
                               weft_diag *diag);
/** weft_read_file and weft_grammar_parse. */
weft_status weft_grammar_read(const char *path, weft_grammar **grammar, weft_diag *diag);
void weft_grammar_free(weft_grammar *grammar);

/** A variable whose every `new` binds `value` whatever its expression says. The expression is evaluated all the same,
 * so that all other decisions of a seed stay as they were. */
typedef struct weft_grammar_pin {
  const char *name;
  int64_t value;
} weft_grammar_pin;

/** From this depth of rules, and after this many of them, a choice takes only its cheapest open alternatives. */
#define WEFT_GRAMMAR_SOFT_DEPTH 100
#define WEFT_GRAMMAR_SOFT_SIZE 10000
/** Past these a sample is an error: its guards never let it end. */
#define WEFT_GRAMMAR_MAX_DEPTH 1000000
#define WEFT_GRAMMAR_MAX_WORK (UINT64_C(1) << 28) /**< items, alternatives looked at and parts of expressions */
#define WEFT_GRAMMAR_MAX_BYTES (UINT64_C(1) << 30)

typedef struct weft_grammar_options {
  uint64_t seed;
  const char *start;   /**< the root; NULL is "start" */
  uint64_t soft_depth; /**< 0: WEFT_GRAMMAR_SOFT_DEPTH */
  uint64_t soft_size;  /**< 0: WEFT_GRAMMAR_SOFT_SIZE */
  const weft_grammar_pin *pins;
  uint64_t pin_count;
  uint64_t *hits; /**< weft_grammar_alternatives counters, one added each time an alternative is taken; may be NULL */
} weft_grammar_options;

/** Appends one program to `text`. The same grammar and options give the same text on every machine: the numbers come
 * from splitmix64 started at the seed. WEFT_INVALID, with the place in the grammar, when no guard is true, a variable
 * is not bound, an expression has no value, or a bound above is passed; WEFT_USAGE when `start` or a pin is not of the
 * grammar. */
weft_status weft_grammar_sample(const weft_grammar *grammar, const weft_grammar_options *options, weft_text *text,
                                weft_diag *diag);

/** Alternatives of all rules together, numbered in the order of the text. */
uint64_t weft_grammar_alternatives(const weft_grammar *grammar);

typedef struct weft_grammar_alternative {
  const char *rule;
  uint32_t index;   /**< among those of its rule, from 0 */
  bool reachable;   /**< from "start", guards aside */
  weft_place place; /**< its first item or guard */
} weft_grammar_alternative;

weft_grammar_alternative weft_grammar_alternative_at(const weft_grammar *grammar, uint64_t number);

/* ---- postconditions ------------------------------------------------------------------------------------------- */

typedef struct weft_postcondition weft_postcondition;

weft_status weft_postcondition_parse(const char *name, const char *text, size_t length,
                                     weft_postcondition **postcondition, weft_diag *diag);
weft_status weft_postcondition_read(const char *path, weft_postcondition **postcondition, weft_diag *diag);
void weft_postcondition_free(weft_postcondition *postcondition);
const char *weft_postcondition_name(const weft_postcondition *postcondition);
/** Whether it says anything about the program before the pass. */
bool weft_postcondition_uses_input(const weft_postcondition *postcondition);

typedef enum weft_verdict {
  WEFT_VERDICT_HOLDS,
  WEFT_VERDICT_FAILS, /**< one error a clause and element that fail, at the element's op, naming clause and place of the
                         part */
  WEFT_VERDICT_ERROR, /**< an expression has no value (an index out of range), or the step limit was reached */
} weft_verdict;

/** One side of the claim: a module and the file name for messages. */
typedef struct weft_postcondition_side {
  struct weft_mlir_op *module;
  const char *file;
} weft_postcondition_side;

typedef struct weft_postcondition_options {
  uint64_t steps;    /**< most expressions evaluated; 0: WEFT_POSTCONDITION_STEPS */
  uint64_t failures; /**< most failing clauses reported; 0: 20 */
  bool unindexed;    /**< evaluate quantifiers element by element: the same verdict, slower; for tests */
} weft_postcondition_options;

#define WEFT_POSTCONDITION_STEPS (UINT64_C(1) << 33)

/** Evaluates over two modules of one context, whose value marks it uses. `input.module` may be NULL when
 * weft_postcondition_uses_input is false, and may be `output.module`. `options` may be NULL. The status is WEFT_OK for
 * any verdict. */
weft_status weft_postcondition_evaluate(const weft_postcondition *postcondition, struct weft_mlir_context *context,
                                        weft_postcondition_side input, weft_postcondition_side output,
                                        const weft_postcondition_options *options, weft_verdict *verdict,
                                        weft_diag *diag);

#endif
