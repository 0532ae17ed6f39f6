/* weft_reduce: the rows of what a body gives, folded with a pool. */
#include "body_private.h"

#include "weft/arithmetic.h"
#include "weft/ir.h"

#include <math.h>
#include <string.h>

typedef struct reduce_work {
  weft_body_work body;
  const weft_abi_reduce *reduce;
  weft_slot *out;
  unsigned char *scratch; /* a part's: the body's, then the values of a row */
  uint64_t scratch_bytes, body_bytes, parts;
} reduce_work;

/* ---- folds of one row ---- */

static float fold_f32(const weft_abi_reduce *reduce, const float *values) {
  if (reduce->pool == WEFT_POOL_SUM && reduce->segments) return weft_sum_f32(values, 1, reduce->cols, reduce->segments);
  float value = reduce->pool == WEFT_POOL_MAX ? -INFINITY : reduce->pool == WEFT_POOL_MIN ? INFINITY : 0;
  switch (reduce->pool) {
  case WEFT_POOL_MAX:
    for (uint64_t c = 0; c < reduce->cols; c++) value = weft_inline_maximum_f32(value, values[c]);
    return value;
  case WEFT_POOL_MIN:
    for (uint64_t c = 0; c < reduce->cols; c++) value = weft_inline_minimum_f32(value, values[c]);
    return value;
  default:
    for (uint64_t c = 0; c < reduce->cols; c++) value += values[c];
    return value;
  }
}

static bool fold_i64(const weft_abi_reduce *reduce, const int64_t *values, int64_t *result) {
  int64_t value = reduce->pool == WEFT_POOL_MAX ? INT64_MIN : reduce->pool == WEFT_POOL_MIN ? INT64_MAX : 0;
  bool fits = true;
  for (uint64_t c = 0; c < reduce->cols; c++) {
    if (reduce->pool == WEFT_POOL_MAX)
      value = values[c] > value ? values[c] : value;
    else if (reduce->pool == WEFT_POOL_MIN)
      value = values[c] < value ? values[c] : value;
    else
      fits = !__builtin_add_overflow(value, values[c], &value) && fits;
  }
  *result = value;
  return fits;
}

/* The lowest index of the greatest; a NaN first is never replaced, a NaN later never replaces. */
static int64_t greatest_f32(const float *values, uint64_t count) {
  uint64_t best = 0;
  for (uint64_t c = 1; c < count; c++)
    if (values[c] > values[best]) best = c;
  return (int64_t)best;
}

static int64_t greatest_i64(const int64_t *values, uint64_t count) {
  uint64_t best = 0;
  for (uint64_t c = 1; c < count; c++)
    if (values[c] > values[best]) best = c;
  return (int64_t)best;
}

/* ---- rows ---- */

static void store_i64(const reduce_work *work, uint64_t row, int64_t value, bool fits) {
  if (fits && weft_store_i64(work->out->format, work->out->data, row, value)) return;
  weft_chip_fault_element(work->body.chip, work->body.out, row, 0,
                          fits ? "the result of a fold does not fit its format" : "a sum does not fit 64 bits");
}

static void fold_row(const reduce_work *work, uint64_t row, const void *values) {
  const weft_abi_reduce *reduce = work->reduce;
  int64_t integer = 0;
  bool fits = true;
  if (reduce->pool == WEFT_POOL_ARG_MAX) {
    integer = work->body.integral ? greatest_i64(values, reduce->cols) : greatest_f32(values, reduce->cols);
  } else if (work->body.integral) {
    fits = fold_i64(reduce, values, &integer);
  } else {
    weft_store_f32(work->out->format, work->out->data, row, fold_f32(reduce, values));
    return;
  }
  store_i64(work, row, integer, fits);
}

static void run_part(void *context, uint64_t part) {
  const reduce_work *work = context;
  unsigned char *scratch = work->scratch + part * work->scratch_bytes, *values = scratch + work->body_bytes;
  size_t bytes = work->body.integral ? sizeof(int64_t) : sizeof(float);
  uint64_t rows = work->out->tensor->rows, cols = work->reduce->cols;
  for (uint64_t row = rows * part / work->parts; row < rows * (part + 1) / work->parts; row++) {
    for (uint64_t col = 0; col < cols; col += WEFT_BODY_BLOCK) {
      weft_body_run at = {.work = &work->body, .row = row, .col = col};
      at.count = (uint32_t)weft_min_u64(WEFT_BODY_BLOCK, cols - col);
      memcpy(values + col * bytes, weft_body_compute(&at, scratch), at.count * bytes);
    }
    fold_row(work, row, values);
  }
}

/* ---- the call ---- */

static bool check_fold(const reduce_work *work) {
  const weft_abi_reduce *reduce = work->reduce;
  bool index = reduce->pool == WEFT_POOL_ARG_MAX, floats = weft_format_is_float(work->out->format);
  bool known = index || reduce->pool == WEFT_POOL_SUM || reduce->pool == WEFT_POOL_MAX || reduce->pool == WEFT_POOL_MIN;
  bool gives = index ? !floats && reduce->cols > 0 : floats || work->body.integral;
  if (known && gives && work->out->tensor->cols == 1 && reduce->segments <= WEFT_MAX_SEGMENTS) return true;
  weft_chip_fault(work->body.chip, WEFT_INVALID, "generate the program again", "'%s' cannot be what it folds",
                  work->out->tensor->name);
  return false;
}

void weft_reduce(weft_chip *chip, const weft_abi_reduce *reduce) {
  reduce_work work = {.reduce = reduce,
                      .body = {.chip = chip,
                               .out = reduce->out,
                               .folded = true,
                               .operand_count = reduce->operand_count,
                               .operands = reduce->operands,
                               .node_count = reduce->node_count,
                               .nodes = reduce->nodes}};
  work.out = weft_chip_slot(chip, reduce->out, "reduce");
  if (!work.out) return;
  uint64_t rows = work.out->tensor->rows;
  if (!weft_body_prepare(&work.body, rows, reduce->cols)) return;
  if (reduce->pool != WEFT_POOL_ARG_MAX && weft_format_is_float(work.out->format)) work.body.integral = false;
  if (!check_fold(&work) || rows == 0) return;
  work.parts = weft_max_u64(1, weft_min_u64(weft_min_u64((uint64_t)chip->threads, rows), rows * reduce->cols / 4096));
  work.body_bytes = weft_body_scratch(&work.body);
  work.scratch_bytes = work.body_bytes + (reduce->cols + 8) / 8 * 8 * sizeof(int64_t);
  work.scratch = weft_chip_scratch(chip, WEFT_SCRATCH_THREADS, work.parts * work.scratch_bytes);
  if (work.scratch) weft_chip_for(chip, work.parts, run_part, &work);
}
