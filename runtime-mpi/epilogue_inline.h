/* epilogue_inline.h: the loops of epilogues and of folds, included by each kernel file so that they are compiled for
 * its registers.
 */
#ifndef WEFT_EPILOGUE_INLINE_H
#define WEFT_EPILOGUE_INLINE_H

#include "epilogue_private.h"

#include "weft/arithmetic.h"
#include "weft/ir.h"

#include <string.h>

static inline void inline_op_f32(const weft_epilogue_op *op, uint64_t col, uint64_t count, float *restrict values) {
  const float *restrict bias = op->bias_f32;
  switch (op->kind) {
  case WEFT_EPILOGUE_BIAS:
    for (uint64_t j = 0; j < count; j++) values[j] = values[j] + bias[col + j];
    break;
  case WEFT_EPILOGUE_RELU: /* maximum(x, +0): only what is not below or equal to 0 stays, NaN with it */
    for (uint64_t j = 0; j < count; j++)
      values[j] = weft_f32_of_bits(weft_bits_of_f32(values[j]) & -(uint32_t) !(values[j] <= 0));
    break;
  default:
    for (uint64_t j = 0; j < count; j++)
      values[j] = weft_inline_minimum_f32(weft_inline_maximum_f32(values[j], op->low_f32), op->high_f32);
  }
}

static inline void inline_store_f32(weft_format format, void *out, uint64_t index, uint64_t count,
                                    const float *restrict values) {
  switch (format) {
  case WEFT_FP32: memcpy((float *)out + index, values, count * sizeof *values); break;
  case WEFT_BF16:
    for (uint64_t j = 0; j < count; j++) ((uint16_t *)out)[index + j] = weft_inline_f32_to_bf16(values[j]);
    break;
  case WEFT_FP16:
    for (uint64_t j = 0; j < count; j++) ((uint16_t *)out)[index + j] = weft_inline_f32_to_fp16(values[j]);
    break;
  default:
    for (uint64_t j = 0; j < count; j++) ((uint8_t *)out)[index + j] = weft_inline_f32_to_fp8(values[j]);
  }
}

static inline void inline_row_f32(const weft_epilogue *epilogue, uint64_t row, uint64_t col, uint64_t count,
                                  float *values) {
  for (uint32_t i = 0; i < epilogue->count; i++) inline_op_f32(&epilogue->ops[i], col, count, values);
  inline_store_f32(epilogue->format, epilogue->out, row * epilogue->stride + col, count, values);
}

static inline void inline_bias_i64(const weft_epilogue *epilogue, const weft_epilogue_op *op, uint64_t row,
                                   uint64_t col, uint64_t count, int64_t *restrict values) {
  int64_t wrong = 0; /* the sign bit: an operand pair of one sign gave a sum of the other */
  for (uint64_t j = 0; j < count; j++) {
    int64_t bias = op->bias_i64[col + j], sum = (int64_t)((uint64_t)values[j] + (uint64_t)bias);
    wrong |= (sum ^ values[j]) & (sum ^ bias);
    values[j] = sum;
  }
  for (uint64_t j = 0; wrong < 0 && j < count; j++) {
    int64_t before, sum;
    before = (int64_t)((uint64_t)values[j] - (uint64_t)op->bias_i64[col + j]);
    if (__builtin_add_overflow(before, op->bias_i64[col + j], &sum)) weft_epilogue_overflow(epilogue, row, col + j);
  }
}

/** Integers that stay in an accumulator of 32 bits. */
static inline void inline_check_32(const weft_epilogue *epilogue, uint64_t row, uint64_t col, uint64_t count,
                                   const int64_t *restrict values) {
  bool misfits = false;
  for (uint64_t j = 0; j < count; j++) misfits |= (values[j] < INT32_MIN) | (values[j] > INT32_MAX);
  for (uint64_t j = 0; misfits && j < count; j++)
    if (values[j] < INT32_MIN || values[j] > INT32_MAX)
      weft_epilogue_misfit(epilogue, row, col + j, values[j], WEFT_INT32);
}

static inline void inline_op_i64(const weft_epilogue *epilogue, const weft_epilogue_op *op, uint64_t row, uint64_t col,
                                 uint64_t count, int64_t *restrict values) {
  switch (op->kind) {
  case WEFT_EPILOGUE_BIAS: inline_bias_i64(epilogue, op, row, col, count, values); break;
  case WEFT_EPILOGUE_RELU:
    for (uint64_t j = 0; j < count; j++) values[j] = values[j] > 0 ? values[j] : 0;
    break;
  case WEFT_EPILOGUE_REQUANT:
    for (uint64_t j = 0; j < count; j++) values[j] = (int64_t)((uint64_t)values[j] * (uint64_t)op->m) >> op->shift;
    break;
  default:
    for (uint64_t j = 0; j < count; j++) {
      int64_t least = values[j] < op->low ? op->low : values[j];
      values[j] = least > op->high ? op->high : least;
    }
  }
}

static inline void inline_store_i64(const weft_epilogue *epilogue, uint64_t row, uint64_t col, uint64_t count,
                                    const int64_t *restrict values, int64_t low, int64_t high) {
  uint64_t index = row * epilogue->stride + col;
  bool misfits = false;
  for (uint64_t j = 0; j < count; j++) misfits |= (values[j] < low) | (values[j] > high);
  for (uint64_t j = 0; misfits && j < count; j++)
    if (values[j] < low || values[j] > high) {
      weft_epilogue_misfit(epilogue, row, col + j, values[j], epilogue->format);
      return;
    }
  switch (epilogue->format) {
  case WEFT_INT8:
    for (uint64_t j = 0; j < count; j++) ((int8_t *)epilogue->out)[index + j] = (int8_t)values[j];
    break;
  case WEFT_INT16:
    for (uint64_t j = 0; j < count; j++) ((int16_t *)epilogue->out)[index + j] = (int16_t)values[j];
    break;
  case WEFT_INT32:
    for (uint64_t j = 0; j < count; j++) ((int32_t *)epilogue->out)[index + j] = (int32_t)values[j];
    break;
  default: memcpy((int64_t *)epilogue->out + index, values, count * sizeof *values);
  }
}

static inline void inline_row_i64(const weft_epilogue *epilogue, uint64_t row, uint64_t col, uint64_t count,
                                  int64_t *values) {
  if (epilogue->narrow) inline_check_32(epilogue, row, col, count, values);
  for (uint32_t i = 0; i < epilogue->count; i++) {
    inline_op_i64(epilogue, &epilogue->ops[i], row, col, count, values);
    if (epilogue->ops[i].narrow) inline_check_32(epilogue, row, col, count, values);
  }
  switch (epilogue->format) {
  case WEFT_INT8: inline_store_i64(epilogue, row, col, count, values, INT8_MIN, INT8_MAX); break;
  case WEFT_INT16: inline_store_i64(epilogue, row, col, count, values, INT16_MIN, INT16_MAX); break;
  case WEFT_INT32: inline_store_i64(epilogue, row, col, count, values, INT32_MIN, INT32_MAX); break;
  case WEFT_INT64: inline_store_i64(epilogue, row, col, count, values, INT64_MIN, INT64_MAX); break;
  default:
    for (uint64_t j = 0; j < count; j++) {
      float value = (float)values[j];
      inline_store_f32(epilogue->format, epilogue->out, row * epilogue->stride + col + j, 1, &value);
    }
  }
}

/* ---- folds of whole tensors ---- */

static inline void inline_combine(weft_pool pool, uint64_t count, const float *left, const float *right, float *out) {
  switch (pool) {
  case WEFT_POOL_SUM:
    for (uint64_t i = 0; i < count; i++) out[i] = left[i] + right[i];
    break;
  case WEFT_POOL_MAX:
    for (uint64_t i = 0; i < count; i++) out[i] = weft_inline_maximum_f32(left[i], right[i]);
    break;
  default:
    for (uint64_t i = 0; i < count; i++) out[i] = weft_inline_minimum_f32(left[i], right[i]);
  }
}

#endif
