/* A grammar as it was read: rules with alternatives, alternatives with items, expressions over integers and texts. */
#ifndef WEFT_GRAMMAR_PRIVATE_H
#define WEFT_GRAMMAR_PRIVATE_H

#include "lexer.h"
#include "weft/grammar.h"

typedef enum expression_kind {
  EXPRESSION_INTEGER,
  EXPRESSION_TEXT,
  EXPRESSION_VARIABLE,
  EXPRESSION_NEGATE,
  EXPRESSION_NOT,
  EXPRESSION_STR,
  EXPRESSION_RANDINT,
  EXPRESSION_CHOICE,
  EXPRESSION_ADD,
  EXPRESSION_SUBTRACT,
  EXPRESSION_MULTIPLY,
  EXPRESSION_EQUAL,
  EXPRESSION_UNEQUAL,
  EXPRESSION_LESS,
  EXPRESSION_AT_MOST,
  EXPRESSION_GREATER,
  EXPRESSION_AT_LEAST,
  EXPRESSION_AND,
  EXPRESSION_OR,
} expression_kind;

typedef struct expression expression;
struct expression {
  expression_kind kind;
  position at;
  uint32_t variable;        /**< VARIABLE */
  uint32_t count;           /**< operands */
  uint32_t depth;           /**< levels below, itself among them: what evaluating recurses */
  const expression **parts; /**< operands, in order */
  int64_t integer;          /**< INTEGER */
  const char *text;         /**< TEXT */
  size_t length;
};

typedef enum item_kind { ITEM_TEXT, ITEM_RULE, ITEM_PRINT, ITEM_NEW, ITEM_ADD } item_kind;

typedef struct item {
  item_kind kind;
  position at;
  uint32_t number;         /**< the rule, or the variable of NEW and ADD */
  const expression *value; /**< PRINT, NEW, ADD */
  const char *text;        /**< TEXT */
  size_t length;
} item;

typedef struct alternative {
  const expression *guard; /**< NULL: always open */
  const item *items;
  uint64_t item_count;
  uint64_t cost; /**< rules that have to be expanded, itself among them, until its shortest text ends */
  uint32_t rule;
  position at;
} alternative;

#define COST_NEVER UINT64_MAX
/** Where costs stop growing. */
#define COST_MOST (UINT64_C(1) << 62)

typedef struct rule {
  uint64_t first, count; /**< its alternatives; none: it is only mentioned */
  uint64_t cost;
  position at; /**< its definition, or its first mention */
  bool reachable;
} rule;

struct weft_grammar {
  weft_arena *arena;
  const char *file;
  rule *rules;
  uint64_t rule_capacity;
  alternative *alternatives;
  uint64_t alternative_count, alternative_capacity;
  name_table rule_names, variable_names; /**< numbers of rules and variables */
  bool *bound;                           /**< of each variable: some `new` binds it */
  position *used;                        /**< of each variable: its first mention */
  uint64_t bound_capacity, used_capacity;
};

/** The parser's part: everything but costs and reachability. */
typedef struct grammar_parser {
  lexer x;
  weft_grammar *grammar;
} grammar_parser;

bool grammar_parse_expression(grammar_parser *p, const expression **result);
/** The number of a variable that is mentioned at the current place. */
bool grammar_variable(grammar_parser *p, const char *name, position at, uint32_t *number);
/** Fills in costs and reachability and reports what is wrong with the rules as a whole. */
weft_status grammar_check(weft_grammar *grammar, weft_diag *diag);

#endif
