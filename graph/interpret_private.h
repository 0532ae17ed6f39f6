/* The interpreter in three files: interpret.c moves datasets and walks the ops, interpret_ops.c computes them,
 * interpret_body.c runs pointwise bodies. Plain and slow: it is what everything else is compared with. */
#ifndef WEFT_INTERPRET_PRIVATE_H
#define WEFT_INTERPRET_PRIVATE_H

#include "graph_private.h"

/** Wide enough for a product of two integers, and for sums of them. */
__extension__ typedef __int128 weft_wide;

/** One op with the data of its operands and its result. */
typedef struct weft_evaluation {
  const weft_graph *graph;
  const weft_graph_op *op;
  const void **ins;
  void *out;
  weft_diag *diag;
} weft_evaluation;

/** Elements of operand `i` between neighbours along each dimension of the result; 0 where it is broadcast. */
void weft_broadcast_strides(const weft_evaluation *e, uint32_t i, uint64_t strides[WEFT_MAX_RANK]);
/** Stores into element `index` of the result, or says why it cannot. */
weft_status weft_evaluate_store(const weft_evaluation *e, uint64_t index, weft_wide value);
weft_status weft_evaluate_fault(const weft_evaluation *e, uint64_t index, const char *what);
weft_status weft_evaluate_reduce(const weft_evaluation *e);
/** Transposes, gathers, updates. */
weft_status weft_evaluate_moves(const weft_evaluation *e);

/** Computes the op. WEFT_INVALID with op and element where an integer does not fit or a body faults. */
weft_status weft_evaluate_op(const weft_evaluation *e);

/** Runs a body at (row, col) of the result's plane. `fault` becomes what went wrong, if anything. */
int64_t weft_body_integer(const weft_body *body, const int64_t *operands, uint64_t row, uint64_t col,
                          const char **fault);
float weft_body_float(const weft_body *body, const float *operands, uint64_t row, uint64_t col, const char **fault);

#endif
