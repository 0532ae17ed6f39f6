/* One evaluation of a postcondition: values, the memory they live in, what is known about the two modules. */
#ifndef WEFT_EVALUATION_PRIVATE_H
#define WEFT_EVALUATION_PRIVATE_H

#include "postcondition_private.h"
#include "weft/mlir.h"

/* ---- values --------------------------------------------------------------------------------------------------- */

typedef enum value_kind {
  VALUE_BOOL,
  VALUE_INTEGER,
  VALUE_TEXT,
  VALUE_OP,
  VALUE_SSA, /**< a result or a block argument */
  VALUE_TYPE,
  VALUE_SYMBOL,    /**< a symbol attribute */
  VALUE_ATTRIBUTE, /**< of any other kind that has no value here */
  VALUE_MAYBE_OP,  /**< `op` may be NULL */
  VALUE_SEQUENCE,
  VALUE_SET,
  VALUE_SIDE,
} value_kind;

/** What the elements of a sequence are in memory. */
typedef enum sequence_shape {
  SHAPE_VALUES,   /**< const value[] */
  SHAPE_OPS,      /**< weft_mlir_op *[] */
  SHAPE_OPERANDS, /**< weft_mlir_value *[] */
  SHAPE_RESULTS,  /**< weft_mlir_value[] */
} sequence_shape;

typedef struct value value;
typedef struct set_table set_table;
typedef struct side side;

struct value {
  uint8_t kind;   /**< value_kind */
  uint8_t shape;  /**< of SEQUENCE */
  bool truth;     /**< of BOOL */
  uint64_t count; /**< elements of SEQUENCE and SET, bytes of TEXT */
  union {
    int64_t integer;
    const char *text;
    weft_mlir_op *op;
    weft_mlir_value *ssa;
    const weft_mlir_type *type;
    const weft_mlir_attribute *attribute;
    const void *elements;
    const set_table *set;
    const side *side;
  } as;
};

/** The elements of a set in the order in which they were first met, and their places by hash. */
struct set_table {
  value *items;
  uint32_t *slots; /**< numbers plus 1 */
  uint64_t count, slot_count;
};

const char *evaluation_kind_name(uint8_t kind);
value evaluation_at(const value *sequence, uint64_t index);
/** Equality that never fails: values of different kinds differ, but for symbols and texts. */
bool evaluation_equal(const value *a, const value *b);
uint64_t evaluation_hash(const value *v);
bool evaluation_set_holds(const set_table *set, const value *v);
/** Whether `sequence`, which may be a set, holds the value. */
bool evaluation_in(const value *sequence, const value *v);

/* ---- memory --------------------------------------------------------------------------------------------------- */

/** A stack of bytes: what an element of a quantifier needed is given back when the next one begins. */
typedef struct pool_chunk {
  struct pool_chunk *below;
  size_t used, capacity;
} pool_chunk;

typedef struct pool {
  pool_chunk *top;
  uint64_t reserved;
} pool;

typedef struct pool_mark {
  pool_chunk *chunk;
  size_t used;
} pool_mark;

/** Most bytes that values may take. */
#define POOL_MOST (UINT64_C(1) << 31)

void *evaluation_pool_array(pool *p, uint64_t count, size_t size);
pool_mark evaluation_pool_now(const pool *p);
void evaluation_pool_release(pool *p, pool_mark mark);

/* ---- the modules ---------------------------------------------------------------------------------------------- */

struct side {
  weft_mlir_op *module;
  const char *file;
  weft_mlir_op **ops; /**< in pre-order, the module first */
  uint64_t op_count;
  name_table symbols;     /**< of ops directly inside the module */
  uint64_t *symbol_start; /**< of each symbol, and one more: where its ops begin */
  weft_mlir_op **symbol_ops;
};

/** An element that a join found a key for, in the order of the source. */
typedef struct join_entry {
  value key, element;
  uint64_t next; /**< entry of the same bucket plus 1 */
} join_entry;

typedef struct join_table {
  enum { JOIN_UNBUILT, JOIN_READY, JOIN_UNUSABLE } state;
  join_entry *entries;
  uint64_t count;
  uint64_t *buckets; /**< first entry plus 1 */
  uint64_t bucket_count;
} join_table;

typedef struct evaluation {
  const weft_postcondition *post;
  weft_mlir_context *context;
  weft_arena *arena; /**< for the whole evaluation */
  pool pool;
  weft_diag *diag;
  side sides[2];        /**< input, output */
  weft_mlir_op **users; /**< the op of every use, by value mark */
  uint64_t *first_user; /**< of each value mark, and one more */
  value *slots;
  const weft_mlir_type **types; /**< the type constants */
  join_table *joins;
  bool unindexed;
  uint64_t steps, step_limit;
  bool failed;        /**< an expression had no value */
  weft_status status; /**< the machine failed */
  /* the message about it, until it is known how much it matters */
  position fault_at;
  char fault[256];
  const char *fault_hint;
} evaluation;

/** Numbers the values, lists ops and uses of both sides. */
bool evaluation_read_sides(evaluation *e);
/** Records that the expression at `at` has no value; returns false. */
bool evaluation_fault(evaluation *e, position at, const char *hint, const char *format, ...) WEFT_PRINTF(4, 5);
bool evaluation_no_memory(evaluation *e);
bool evaluation_step(evaluation *e, position at, uint64_t amount);

bool evaluation_value(evaluation *e, const node *n, value *result);
bool evaluation_truth(evaluation *e, const node *n, bool *result);
/** Something with elements. */
bool evaluation_elements(evaluation *e, const node *n, value *result);
bool evaluation_need(evaluation *e, position at, const value *v, uint8_t kind);
bool evaluation_quantifier(evaluation *e, const node *n, bool *result);
bool evaluation_comprehension(evaluation *e, const node *n, value *result);

/* members and methods of what an MLIR module holds */
bool evaluation_member(evaluation *e, const node *n, const value *of, value *result);
bool evaluation_attribute(evaluation *e, const node *n, const value *of, const value *name, value *result);
bool evaluation_has_attribute(evaluation *e, const node *n, const value *of, const value *name, value *result);
bool evaluation_segment(evaluation *e, const node *n, const value *of, const value *name, const value *number,
                        value *result);
bool evaluation_resolve(evaluation *e, const node *n, const value *of, const value *symbol, value *result);
bool evaluation_contains(evaluation *e, const node *n, const value *outer, const value *inner, bool *result);

#endif
