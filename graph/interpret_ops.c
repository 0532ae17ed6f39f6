/* The ops of a graph over dense row-major arrays. */
#include "interpret_private.h"

#include <stdlib.h>
#include <string.h>

typedef weft_wide wide;

static const weft_value *operand(const weft_evaluation *e, uint32_t i) { return &e->graph->values[e->op->ins[i]]; }
static const weft_value *result(const weft_evaluation *e) { return &e->graph->values[e->op->out]; }
static bool in_floats(const weft_evaluation *e) { return weft_format_is_float(operand(e, 0)->dtype); }

/* ---- storing and faults -------------------------------------------------------------------------------------------
 */

/** "[3, 5]" for element `index` of the result. */
static weft_extents_text position_of(const weft_value *value, uint64_t index) {
  uint64_t at[WEFT_MAX_RANK] = {0};
  for (uint32_t d = value->rank; d-- > 0;) {
    at[d] = index % value->extents[d];
    index /= value->extents[d];
  }
  return weft_extents_print(value->rank, at);
}

weft_status weft_evaluate_fault(const weft_evaluation *e, uint64_t index, const char *what) {
  return weft_error(e->diag, WEFT_INVALID, NULL, "%s '%s': %s at %s of '%s'", weft_graph_op_name(e->op->kind),
                    e->op->name, what, position_of(result(e), index).text, result(e)->name);
}

weft_status weft_evaluate_store(const weft_evaluation *e, uint64_t index, wide value) {
  const weft_value *out = result(e);
  if (value >= INT64_MIN && value <= INT64_MAX && weft_store_i64(out->dtype, e->out, index, (int64_t)value))
    return WEFT_OK;
  if (value < INT64_MIN || value > INT64_MAX) return weft_evaluate_fault(e, index, "a value that leaves 64 bits");
  return weft_error(e->diag, WEFT_INVALID, "clamp it, or use a wider format",
                    "%s '%s': %lld does not fit %s, at %s of '%s'", weft_graph_op_name(e->op->kind), e->op->name,
                    (long long)value, weft_format_name(out->dtype), position_of(out, index).text, out->name);
}

/* ---- matmul -------------------------------------------------------------------------------------------------------
 */

/** A product of planes; each row of the result is a task. */
typedef struct product {
  const weft_evaluation *e;
  uint64_t m, k, n;
  uint64_t end;       /**< elements of k that take part */
  const float *a, *b; /**< widened; b transposed: n rows of k */
  wide *sums;         /**< of integers: m x n */
} product;

static void float_row(void *context, uint64_t row) {
  const product *p = context;
  const weft_value *out = result(p->e);
  for (uint64_t j = 0; j < p->n; j++)
    weft_store_f32(out->dtype, p->e->out, row * p->n + j,
                   weft_dot_f32(p->a + row * p->k, 1, p->b + j * p->k, 1, p->end, p->e->op->segments));
}

static void integer_row(void *context, uint64_t row) {
  const product *p = context;
  const weft_format format = operand(p->e, 0)->dtype;
  for (uint64_t j = 0; j < p->n; j++) {
    wide sum = 0;
    // A sum that leaves 128 bits fits no accumulator; what follows need not be added.
    for (uint64_t i = 0; i < p->k; i++) {
      wide term =
          (wide)weft_load_i64(format, p->e->ins[0], row * p->k + i) * weft_load_i64(format, p->e->ins[1], i * p->n + j);
      if (__builtin_add_overflow(sum, term, &sum)) {
        sum = (wide)1 << 100;
        break;
      }
    }
    p->sums[row * p->n + j] = sum;
  }
}

static float *widened(weft_format format, const void *data, uint64_t rows, uint64_t cols, bool transposed) {
  float *out = calloc(rows * cols + 1, sizeof *out);
  for (uint64_t i = 0; out && i < rows; i++)
    for (uint64_t j = 0; j < cols; j++)
      out[transposed ? j * rows + i : i * cols + j] = weft_load_f32(format, data, i * cols + j);
  return out;
}

static weft_status integer_product(product *p) {
  p->sums = calloc(p->m * p->n + 1, sizeof *p->sums);
  if (!p->sums) return weft_error_memory(p->e->diag);
  weft_parallel_for(p->m, 0, integer_row, p);
  weft_status status = WEFT_OK;
  const weft_format accumulator = weft_acc_format(p->e->op->acc);
  for (uint64_t i = 0; i < p->m * p->n && status == WEFT_OK; i++) {
    wide sum = p->sums[i];
    if (sum < weft_format_min(accumulator) || sum > weft_format_max(accumulator)) {
      status = weft_evaluate_fault(p->e, i,
                                   accumulator == WEFT_INT32 ? "a sum that leaves the 32-bit accumulator"
                                                             : "a sum that leaves the 64-bit accumulator");
    } else {
      status = weft_evaluate_store(p->e, i, sum);
    }
  }
  free(p->sums);
  return status;
}

/** Where the K of a product ends that goes up to a position. */
static weft_status find_end(const weft_evaluation *e, product *p) {
  p->end = p->k;
  if (e->op->in_count < 3) return WEFT_OK;
  const weft_value *at = operand(e, 2);
  int64_t position = weft_load_i64(at->dtype, e->ins[2], 0);
  if (position < 0 || (uint64_t)position >= p->k)
    return weft_error(e->diag, WEFT_INVALID, NULL, "element 0 of `%s` is %lld; the program admits 0 to %llu", at->name,
                      (long long)position, (unsigned long long)p->k - 1);
  p->end = weft_min_u64(p->k, ((uint64_t)position / WEFT_GRAPH_TILE + 1) * WEFT_GRAPH_TILE);
  return WEFT_OK;
}

static weft_status evaluate_matmul(const weft_evaluation *e) {
  weft_plane a = weft_value_plane(operand(e, 0)), out = weft_value_plane(result(e));
  product p = {.e = e, .m = a.rows, .k = a.cols, .n = out.cols};
  if (!in_floats(e)) return integer_product(&p);
  weft_status status = find_end(e, &p);
  if (status != WEFT_OK) return status;
  float *wide_a = widened(operand(e, 0)->dtype, e->ins[0], p.m, p.k, false);
  float *wide_b = widened(operand(e, 1)->dtype, e->ins[1], p.k, p.n, true);
  p.a = wide_a;
  p.b = wide_b;
  if (wide_a && wide_b) weft_parallel_for(p.m, 0, float_row, &p);
  bool done = wide_a && wide_b;
  free(wide_a);
  free(wide_b);
  return done ? WEFT_OK : weft_error_memory(e->diag);
}

/* ---- element by element -------------------------------------------------------------------------------------------
 */

static wide integer_element(const weft_evaluation *e, uint64_t i, uint64_t cols) {
  const weft_graph_op *op = e->op;
  int64_t x = weft_load_i64(operand(e, 0)->dtype, e->ins[0], i);
  switch (op->kind) {
  case WEFT_GRAPH_BIAS: return (wide)x + weft_load_i64(operand(e, 1)->dtype, e->ins[1], i % cols);
  case WEFT_GRAPH_RELU: return x > 0 ? x : 0;
  case WEFT_GRAPH_REQUANT: return weft_requant(x, op->m, op->s);
  default: return x < op->low ? op->low : x > op->high ? op->high : x;
  }
}

static float float_element(const weft_evaluation *e, uint64_t i, uint64_t cols) {
  float x = weft_load_f32(operand(e, 0)->dtype, e->ins[0], i);
  if (e->op->kind == WEFT_GRAPH_RELU) return weft_maximum_f32(x, 0.0f);
  return x + weft_load_f32(operand(e, 1)->dtype, e->ins[1], i % cols);
}

static weft_status evaluate_elements(const weft_evaluation *e) {
  const weft_value *out = result(e);
  const uint64_t count = weft_value_elements(out), cols = weft_value_plane(out).cols;
  for (uint64_t i = 0; i < count; i++) {
    if (in_floats(e)) {
      weft_store_f32(out->dtype, e->out, i, float_element(e, i, cols));
      continue;
    }
    weft_status status = weft_evaluate_store(e, i, integer_element(e, i, cols));
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}

void weft_broadcast_strides(const weft_evaluation *e, uint32_t i, uint64_t strides[WEFT_MAX_RANK]) {
  const weft_value *in = operand(e, i), *out = result(e);
  uint64_t stride = 1;
  memset(strides, 0, WEFT_MAX_RANK * sizeof *strides);
  for (uint32_t d = in->rank; d-- > 0;) {
    if (in->extents[d] != 1) strides[out->rank - in->rank + d] = stride;
    stride *= in->extents[d];
  }
}

static weft_status pointwise_element(const weft_evaluation *e, const uint64_t *offsets, uint64_t index) {
  const weft_graph_op *op = e->op;
  const weft_value *out = result(e);
  const uint64_t cols = weft_value_plane(out).cols;
  const char *wrong = NULL;
  int64_t integers[16];
  float floats[16];
  bool integer = weft_op_is_integer(e->graph, op);
  for (uint32_t i = 0; i < op->in_count; i++) {
    weft_format format = operand(e, i)->dtype;
    if (!weft_format_is_float(format)) integers[i] = weft_load_i64(format, e->ins[i], offsets[i]);
    if (!integer)
      floats[i] = weft_format_is_float(format) ? weft_load_f32(format, e->ins[i], offsets[i]) : (float)integers[i];
  }
  if (!integer) {
    float value = weft_body_float(&op->body, floats, index / cols, index % cols, &wrong);
    weft_store_f32(out->dtype, e->out, index, value);
    return wrong ? weft_evaluate_fault(e, index, wrong) : WEFT_OK;
  }
  int64_t value = weft_body_integer(&op->body, integers, index / cols, index % cols, &wrong);
  return wrong ? weft_evaluate_fault(e, index, wrong) : weft_evaluate_store(e, index, value);
}

static weft_status evaluate_pointwise(const weft_evaluation *e) {
  const weft_value *out = result(e);
  uint64_t strides[16][WEFT_MAX_RANK], offsets[16] = {0}, at[WEFT_MAX_RANK] = {0};
  for (uint32_t i = 0; i < e->op->in_count; i++) weft_broadcast_strides(e, i, strides[i]);
  const uint64_t count = weft_value_elements(out);
  for (uint64_t index = 0; index < count; index++) {
    weft_status status = pointwise_element(e, offsets, index);
    if (status != WEFT_OK) return status;
    for (uint32_t d = out->rank; d-- > 0;) {
      for (uint32_t i = 0; i < e->op->in_count; i++) offsets[i] += strides[i][d];
      if (++at[d] < out->extents[d]) break;
      for (uint32_t i = 0; i < e->op->in_count; i++) offsets[i] -= strides[i][d] * out->extents[d];
      at[d] = 0;
    }
  }
  return WEFT_OK;
}

/* ---- all-reduce ---------------------------------------------------------------------------------------------------
 */

static float combined(weft_pool pool, float a, float b) {
  return pool == WEFT_POOL_MAX ? weft_maximum_f32(a, b) : pool == WEFT_POOL_MIN ? weft_minimum_f32(a, b) : a + b;
}

/** The fold of segments first..first+count of element `index`: a node's own value, or its two halves'. */
static float fold_segments(const weft_evaluation *e, uint64_t index, uint32_t first, uint32_t count) {
  for (uint32_t i = 0; i < e->op->in_count; i++) {
    const weft_partial *node = &operand(e, i)->partial;
    if (node->first == first && node->count == count) return weft_load_f32(operand(e, i)->dtype, e->ins[i], index);
  }
  uint32_t left = 1;
  while (left < count - left) left *= 2;
  return combined(e->op->pool, fold_segments(e, index, first, left),
                  fold_segments(e, index, first + left, count - left));
}

static wide fold_integers(const weft_evaluation *e, uint64_t index) {
  wide total = weft_load_i64(operand(e, 0)->dtype, e->ins[0], index);
  for (uint32_t i = 1; i < e->op->in_count; i++) {
    int64_t x = weft_load_i64(operand(e, i)->dtype, e->ins[i], index);
    if (e->op->pool == WEFT_POOL_SUM) {
      total += x;
    } else if (e->op->pool == WEFT_POOL_MAX ? x > total : x < total) {
      total = x;
    }
  }
  return total;
}

static float fold_ordered(const weft_evaluation *e, uint64_t index) {
  float total = weft_load_f32(operand(e, 0)->dtype, e->ins[0], index);
  for (uint32_t i = 1; i < e->op->in_count; i++)
    total = combined(e->op->pool, total, weft_load_f32(operand(e, i)->dtype, e->ins[i], index));
  return total;
}

static weft_status evaluate_all_reduce(const weft_evaluation *e) {
  const weft_value *out = result(e);
  const uint64_t count = weft_value_elements(out);
  for (uint64_t i = 0; i < count; i++) {
    if (in_floats(e)) {
      bool sum = e->op->pool == WEFT_POOL_SUM;
      weft_store_f32(out->dtype, e->out, i,
                     sum ? fold_segments(e, i, 0, operand(e, 0)->partial.of) : fold_ordered(e, i));
      continue;
    }
    weft_status status = weft_evaluate_store(e, i, fold_integers(e, i));
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}

/* ---- blocks -------------------------------------------------------------------------------------------------------
 */

static uint64_t offset_of(uint32_t rank, const uint64_t *extents, const uint64_t *at) {
  uint64_t offset = 0;
  for (uint32_t d = 0; d < rank; d++) offset = offset * extents[d] + at[d];
  return offset;
}

/** Copies a block of `extents` from `from` in a value of from_extents to `to` in one of to_extents, row by row. */
static void copy_block(const weft_value *shape, const void *in, const uint64_t *in_extents, const uint64_t *in_start,
                       void *out, const uint64_t *out_extents, const uint64_t *out_start) {
  const size_t bytes = weft_format_bytes(shape->dtype);
  const uint32_t rank = shape->rank;
  const uint64_t length = rank ? shape->extents[rank - 1] : 1, count = weft_value_elements(shape);
  uint64_t in_at[WEFT_MAX_RANK], out_at[WEFT_MAX_RANK], at[WEFT_MAX_RANK] = {0};
  for (uint64_t done = 0; done < count; done += length) {
    for (uint32_t d = 0; d < rank; d++) {
      in_at[d] = in_start[d] + at[d];
      out_at[d] = out_start[d] + at[d];
    }
    memcpy((char *)out + offset_of(rank, out_extents, out_at) * bytes,
           (const char *)in + offset_of(rank, in_extents, in_at) * bytes, length * bytes);
    for (uint32_t d = rank ? rank - 1 : 0; d-- > 0;) {
      if (++at[d] < shape->extents[d]) break;
      at[d] = 0;
    }
  }
}

static weft_status evaluate_blocks(const weft_evaluation *e) {
  static const uint64_t origin[WEFT_MAX_RANK];
  const weft_value *out = result(e);
  if (e->op->kind == WEFT_GRAPH_SLICE) {
    copy_block(out, e->ins[0], operand(e, 0)->extents, e->op->starts[0], e->out, out->extents, origin);
    return WEFT_OK;
  }
  for (uint32_t i = 0; i < e->op->in_count; i++)
    copy_block(operand(e, i), e->ins[i], operand(e, i)->extents, origin, e->out, out->extents, e->op->starts[i]);
  return WEFT_OK;
}

weft_status weft_evaluate_op(const weft_evaluation *e) {
  switch (e->op->kind) {
  case WEFT_GRAPH_MATMUL: return evaluate_matmul(e);
  case WEFT_GRAPH_POINTWISE: return evaluate_pointwise(e);
  case WEFT_GRAPH_ALL_REDUCE: return evaluate_all_reduce(e);
  case WEFT_GRAPH_REDUCE: return weft_evaluate_reduce(e);
  case WEFT_GRAPH_TRANSPOSE:
  case WEFT_GRAPH_GATHER:
  case WEFT_GRAPH_UPDATE: return weft_evaluate_moves(e);
  case WEFT_GRAPH_SLICE:
  case WEFT_GRAPH_ASSEMBLE: return evaluate_blocks(e);
  default: return evaluate_elements(e);
  }
}
