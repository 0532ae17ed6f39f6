/* The arithmetic of arith and math on 64-bit words, shared by the interpreter and the simulator. */
#ifndef WEFT_DATAFLOW_RUN_COMPUTE_H
#define WEFT_DATAFLOW_RUN_COMPUTE_H

#include "weft/dataflow.h"

typedef enum scalar_kind { SCALAR_NONE, SCALAR_INTEGER, SCALAR_FLOAT } scalar_kind;

/* A type that a token can have. */
typedef struct scalar {
  scalar_kind kind;
  uint32_t width; /* index is 64 */
  const weft_mlir_type *type;
} scalar;

/* Whether values of this type can be computed with: none, index, integers up to 64 bits, f16 bf16 f32 f64. */
bool scalar_of(const weft_mlir_type *type, scalar *result);

/* The integer as its type holds it: sign-extended, i1 as 0 or 1. */
static inline uint64_t scalar_wrap(uint32_t width, uint64_t bits) {
  if (width >= 64) return bits;
  if (width == 1) return bits & 1;
  return (uint64_t)((int64_t)(bits << (64 - width)) >> (64 - width));
}
/* The word as a signed number: i1 true is -1. */
static inline int64_t scalar_signed(uint32_t width, uint64_t word) {
  return width == 1 ? -(int64_t)(word & 1) : (int64_t)word;
}
/* The word as an unsigned number. */
static inline uint64_t scalar_unsigned(uint32_t width, uint64_t word) {
  return width >= 64 ? word : word & (((uint64_t)1 << width) - 1);
}

typedef struct compute compute;
typedef weft_fault (*compute_function)(const compute *c, const uint64_t *in, uint64_t *out);

/* One op made ready: its function and what that needs to know. */
struct compute {
  compute_function apply;
  uint32_t width;     /* of the operands (the second one of select) */
  uint32_t out_width; /* of the result */
  uint32_t predicate;
  const weft_mlir_type *in_type, *out_type; /* of floats */
};

/* Makes ready an arith or math op other than constant; false with a message when it or its types are not supported. */
bool compute_prepare(const weft_mlir_op *op, const char *file, compute *c, weft_diag *diag);
/* Whether the op is one of arith or math, constant aside. */
bool compute_is(const weft_mlir_op *op);
/* The word of a constant attribute; false when it is none of one scalar. */
bool compute_constant(const weft_mlir_attribute *value, uint64_t *word);

/* Before the first launch of a simulator. */
void simulate_set_order(weft_simulator *simulator, weft_order order, uint64_t seed);
/* Puts a token back in front of those that wait; false without memory. */
bool channel_give_back(weft_channel *channel, uint64_t word);

/* The float functions, by code (compute_float.c); NULL when there is none. */
compute_function compute_float_function(uint32_t code, bool wide);

#endif
