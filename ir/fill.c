/* The values that a tensor's declared fill gives it. */
#include "weft/ir.h"

#include <string.h>

static bool store_integer(weft_format dtype, void *array, uint64_t index, int64_t value) {
  if (!weft_format_is_float(dtype)) return weft_store_i64(dtype, array, index, value);
  weft_store_f32(dtype, array, index, (float)value);
  return true;
}

static bool store_double(weft_format dtype, void *array, uint64_t index, uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  if (weft_format_is_float(dtype)) {
    weft_store_f32(dtype, array, index, (float)value);
    return true;
  }
  bool whole = value >= -0x1p63 && value < 0x1p63 && (double)(int64_t)value == value;
  return whole && weft_store_i64(dtype, array, index, (int64_t)value);
}

bool weft_init_store(const weft_init *init, uint64_t position, weft_format dtype, void *array, uint64_t index) {
  int64_t value = 0;
  switch (init->kind) {
  case WEFT_INIT_ZERO: return store_integer(dtype, array, index, 0);
  case WEFT_INIT_PATTERN:
    if (init->pattern.modulus <= 0) return false;
    value = (int64_t)(position % (uint64_t)init->pattern.modulus);
    if (__builtin_add_overflow(value, init->pattern.shift, &value)) return false;
    return store_integer(dtype, array, index, value);
  case WEFT_INIT_VALUES:
    return position < init->values.count && store_integer(dtype, array, index, init->values.items[position]);
  case WEFT_INIT_FLOAT_VALUES:
    return position < init->float_values.count && store_double(dtype, array, index, init->float_values.items[position]);
  case WEFT_INIT_CONST_F: return store_double(dtype, array, index, init->const_f);
  case WEFT_INIT_RANDOM_BF16:
    if (!weft_format_is_float(dtype)) return false;
    weft_store_f32(dtype, array, index, weft_random_bf16(init->random.seed, init->random.shift_milli, position));
    return true;
  case WEFT_INIT_EXTERNAL: return false;
  }
  return false;
}
