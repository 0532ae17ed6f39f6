/* epilogue_private.h: what happens to folded values between the fold and the store. */
#ifndef WEFT_EPILOGUE_PRIVATE_H
#define WEFT_EPILOGUE_PRIVATE_H

#include "chip_private.h"

#define WEFT_MAX_EPILOGUE 16

typedef struct weft_epilogue_op {
  int kind;                /**< weft_abi_epilogue_kind */
  const float *bias_f32;   /**< by column, widened; of a fold in floats */
  const int64_t *bias_i64; /**< of a fold in integers */
  int64_t m, low, high;
  uint32_t shift;
  float low_f32, high_f32;
  bool narrow; /**< integers fit 32 bits after it */
} weft_epilogue_op;

/** The epilogue of one call and where its values go. */
typedef struct weft_epilogue {
  weft_chip *chip;
  int64_t slot;
  weft_format format;
  void *out;
  uint64_t stride; /**< elements between rows of out */
  bool narrow;     /**< integers fit 32 bits before the first op */
  uint32_t count;
  weft_epilogue_op ops[WEFT_MAX_EPILOGUE];
} weft_epilogue;

/** Resolves an epilogue over `cols` columns; `floats`: of a fold in fp32, else in integers. False after a fault. */
bool weft_epilogue_prepare(weft_chip *chip, const weft_abi_epilogue *ops, uint32_t count, bool floats, int64_t out,
                           uint64_t cols, weft_epilogue *epilogue);
/** Applies it to the values of (row, col) .. (row, col + count - 1), which it may change, and stores them. */
void weft_epilogue_row_f32(const weft_epilogue *epilogue, uint64_t row, uint64_t col, uint64_t count, float *values);
void weft_epilogue_row_i64(const weft_epilogue *epilogue, uint64_t row, uint64_t col, uint64_t count, int64_t *values);
/** Records that a value does not fit where it is to be stored. */
void weft_epilogue_misfit(const weft_epilogue *epilogue, uint64_t row, uint64_t col, int64_t value, weft_format format);
/** Records that an addition left 64 bits. */
void weft_epilogue_overflow(const weft_epilogue *epilogue, uint64_t row, uint64_t col);

#endif
