/* A postcondition as it was read: statements over expressions whose names are numbered slots. */
#ifndef WEFT_POSTCONDITION_PRIVATE_H
#define WEFT_POSTCONDITION_PRIVATE_H

#include "lexer.h"
#include "weft/grammar.h"

typedef enum node_kind {
  NODE_INTEGER,
  NODE_TEXT,
  NODE_BOOL,
  NODE_TYPE,     /**< alias::name; `integer` is its number among the type constants */
  NODE_VARIABLE, /**< `slot` */
  NODE_SIDE,     /**< input or output: `integer` 0 or 1 */
  NODE_MEMBER,   /**< `integer` is a member */
  NODE_INDEX,    /**< a[b] */
  NODE_DROP,
  NODE_ATTRIBUTE,
  NODE_HAS_ATTRIBUTE,
  NODE_SEGMENT,
  NODE_CARDINALITY,
  NODE_SUM,
  NODE_RESOLVE,
  NODE_SEQ, /**< parts: source, element, condition; `slot` */
  NODE_SET,
  NODE_EXISTS, /**< parts: source, condition; `slot` */
  NODE_NONE,
  NODE_NOT,
  NODE_AND,
  NODE_OR,
  NODE_IMPLIES,
  NODE_EQUAL,
  NODE_UNEQUAL,
  NODE_LESS,
  NODE_AT_MOST,
  NODE_GREATER,
  NODE_AT_LEAST,
  NODE_IN,
  NODE_CONTAINS,
  NODE_MATCHES_SOME, /**< binds `slot` */
  NODE_MATCHES_NONE,
  NODE_ADD,
  NODE_SUBTRACT,
} node_kind;

/* MEMBER(identifier, "name") of the values that have it; see postcondition_access.c. */
#define MEMBERS(MEMBER)                                                                                                \
  MEMBER(NAME, "name")                                                                                                 \
  MEMBER(OPERANDS, "operands")                                                                                         \
  MEMBER(RESULTS, "results")                                                                                           \
  MEMBER(TYPE, "type")                                                                                                 \
  MEMBER(USES, "uses")                                                                                                 \
  MEMBER(DEFINING_OPERATION, "defining_operation")                                                                     \
  MEMBER(KIND, "kind")                                                                                                 \
  MEMBER(OPERATIONS, "operations")

typedef enum member {
#define MEMBER(identifier, name) MEMBER_##identifier,
  MEMBERS(MEMBER)
#undef MEMBER
      MEMBER_COUNT
} member;

/** A join: the elements of a quantifier's source by the value of an expression, so that a lookup replaces the walk. The
 * condition is a conjunction; its parts before the key depend on the element alone. */
typedef struct join_plan {
  const struct node **before; /**< conditions on the element alone */
  uint32_t before_count;
  const struct node *key;    /**< of the element alone */
  const struct node *wanted; /**< what the key must equal: free of the element */
  const struct node **after; /**< what is left of the conjunction */
  uint32_t after_count;
  uint32_t number; /**< among the joins of the postcondition */
} join_plan;

typedef struct node node;
struct node {
  node_kind kind;
  position at;
  uint32_t slot;
  uint32_t count; /**< parts */
  uint32_t depth; /**< levels below, itself among them */
  const node **parts;
  int64_t integer;
  const char *text; /**< TEXT */
  size_t length;
  const char *source; /**< of a part of a conjunction: as it stands in the text */
  size_t source_length;
  const join_plan *join; /**< EXISTS, NONE; NULL: element by element */
};

typedef enum statement_kind { STATEMENT_LET, STATEMENT_ASSERT, STATEMENT_FORALL } statement_kind;

typedef struct statement statement;
struct statement {
  statement_kind kind;
  position at;
  const char *name;      /**< of the variable, or the label */
  uint32_t slot;         /**< LET, FORALL */
  const node *value;     /**< LET, ASSERT; the source of FORALL */
  const node *where;     /**< FORALL; may be NULL */
  const statement *body; /**< FORALL */
  uint64_t body_count;
};

typedef struct type_constant {
  const char *name; /**< "none", "i32" */
  position at;
} type_constant;

struct weft_postcondition {
  weft_arena *arena;
  const char *file;
  const char *name;
  const statement *statements;
  uint64_t statement_count;
  type_constant *types;
  uint64_t type_count, type_capacity;
  uint32_t slot_count, join_count;
  bool uses_input;
};

typedef struct scope_entry {
  const char *name;
  uint32_t slot;
  bool open; /**< false: hidden for now, as a comprehension's variable is in its source */
} scope_entry;

typedef struct postcondition_parser {
  lexer x;
  weft_postcondition *result;
  scope_entry *scope;
  uint64_t scope_count, scope_capacity;
  bool *global; /**< of each slot: a `let` outside every forall bound it */
  uint64_t global_capacity;
  uint32_t *inside; /**< of each slot: the last walk that met its binder */
  uint64_t inside_capacity;
  uint32_t walk;
  const char **aliases; /**< of vocabularies */
  uint64_t alias_count, alias_capacity;
} postcondition_parser;

bool postcondition_parse_expression(postcondition_parser *p, node **result);
/** The source of a quantifier: what may stand before `where`, `{` and `}`. */
bool postcondition_parse_operand(postcondition_parser *p, node **result);
/** A new slot for a name that is visible from here on. */
bool postcondition_bind(postcondition_parser *p, const char *name, position at, bool global, uint32_t *slot);
/** Plans the join of an EXISTS or NONE node where its condition allows one. */
bool postcondition_plan_join(postcondition_parser *p, node *quantifier);
const char *postcondition_member_name(member which);

#endif
