/* Folds along the last axis: the body's values of a row, then the pool. */
#include "interpret_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct row_fold {
  const weft_evaluation *e;
  uint64_t cols;
  bool integer;
  float *floats; /**< of the row at hand, by mode */
  int64_t *integers;
} row_fold;

/** Fills the row from the operands, whose elements begin at `offsets`. */
static weft_status evaluate_row(const row_fold *f, uint64_t row, const uint64_t *offsets) {
  const weft_evaluation *e = f->e;
  const weft_graph_op *op = e->op;
  for (uint64_t c = 0; c < f->cols; c++) {
    int64_t integers[16];
    float floats[16];
    const char *wrong = NULL;
    for (uint32_t i = 0; i < op->in_count; i++) {
      const weft_value *in = &e->graph->values[op->ins[i]];
      uint64_t at = offsets[i] + (in->rank && in->extents[in->rank - 1] != 1 ? c : 0);
      bool is_float = weft_format_is_float(in->dtype);
      if (!is_float) integers[i] = weft_load_i64(in->dtype, e->ins[i], at);
      if (!f->integer) floats[i] = is_float ? weft_load_f32(in->dtype, e->ins[i], at) : (float)integers[i];
    }
    if (f->integer)
      f->integers[c] = weft_body_integer(&op->body, integers, row, c, &wrong);
    else
      f->floats[c] = weft_body_float(&op->body, floats, row, c, &wrong);
    if (wrong) return weft_evaluate_fault(e, row, wrong);
  }
  return WEFT_OK;
}

static int64_t index_of_greatest(const row_fold *f) {
  uint64_t best = 0;
  for (uint64_t c = 1; c < f->cols; c++)
    if (f->integer ? f->integers[c] > f->integers[best] : f->floats[c] > f->floats[best]) best = c;
  return (int64_t)best;
}

static float fold_floats(const row_fold *f) {
  const weft_graph_op *op = f->e->op;
  if (op->pool == WEFT_POOL_SUM && op->segments) return weft_sum_f32(f->floats, 1, f->cols, op->segments);
  float value = op->pool == WEFT_POOL_MAX ? -INFINITY : op->pool == WEFT_POOL_MIN ? INFINITY : 0.0f;
  for (uint64_t c = 0; c < f->cols; c++)
    value = op->pool == WEFT_POOL_MAX   ? weft_maximum_f32(value, f->floats[c])
            : op->pool == WEFT_POOL_MIN ? weft_minimum_f32(value, f->floats[c])
                                        : value + f->floats[c];
  return value;
}

static weft_wide fold_integers(const row_fold *f) {
  weft_wide sum = 0;
  int64_t least = INT64_MAX, greatest = INT64_MIN;
  for (uint64_t c = 0; c < f->cols; c++) {
    int64_t x = f->integers[c];
    sum += x;
    if (x < least) least = x;
    if (x > greatest) greatest = x;
  }
  return f->e->op->pool == WEFT_POOL_MAX ? greatest : f->e->op->pool == WEFT_POOL_MIN ? least : sum;
}

static weft_status fold_row(const row_fold *f, uint64_t row) {
  const weft_value *out = &f->e->graph->values[f->e->op->out];
  if (f->e->op->pool == WEFT_POOL_ARG_MAX) return weft_evaluate_store(f->e, row, index_of_greatest(f));
  if (f->integer) return weft_evaluate_store(f->e, row, fold_integers(f));
  weft_store_f32(out->dtype, f->e->out, row, fold_floats(f));
  return WEFT_OK;
}

static weft_status fold_rows(const row_fold *f) {
  const weft_evaluation *e = f->e;
  const weft_value *out = &e->graph->values[e->op->out];
  uint64_t strides[16][WEFT_MAX_RANK], offsets[16] = {0}, at[WEFT_MAX_RANK] = {0};
  for (uint32_t i = 0; i < e->op->in_count; i++) weft_broadcast_strides(e, i, strides[i]);
  const uint64_t rows = weft_value_elements(out);
  for (uint64_t row = 0; row < rows; row++) {
    weft_status status = evaluate_row(f, row, offsets);
    if (status == WEFT_OK) status = fold_row(f, row);
    if (status != WEFT_OK) return status;
    for (uint32_t d = out->rank - 1; d-- > 0;) {
      for (uint32_t i = 0; i < e->op->in_count; i++) offsets[i] += strides[i][d];
      if (++at[d] < out->extents[d]) break;
      for (uint32_t i = 0; i < e->op->in_count; i++) offsets[i] -= strides[i][d] * out->extents[d];
      at[d] = 0;
    }
  }
  return WEFT_OK;
}

weft_status weft_evaluate_reduce(const weft_evaluation *e) {
  row_fold f = {.e = e, .cols = weft_reduce_extent(e->graph, e->op), .integer = weft_op_is_integer(e->graph, e->op)};
  f.floats = calloc(f.cols + 1, sizeof *f.floats);
  f.integers = calloc(f.cols + 1, sizeof *f.integers);
  weft_status status = f.floats && f.integers ? fold_rows(&f) : weft_error_memory(e->diag);
  free(f.floats);
  free(f.integers);
  return status;
}
