/* Element formats: names, sizes, and access to arrays of them. */
#include "weft/format.h"

#include "weft/arithmetic.h"

#include <assert.h>
#include <strings.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "arrays and files are little-endian");

static const struct {
  const char *name;
  size_t bytes;
  bool is_float;
} formats[WEFT_FORMAT_COUNT] = {
#define ROW(identifier, dump_name, size, floating) [WEFT_##identifier] = {dump_name, size, floating},
    WEFT_FORMATS(ROW)
#undef ROW
};

const char *weft_format_name(weft_format format) { return format < WEFT_FORMAT_COUNT ? formats[format].name : "?"; }

size_t weft_format_bytes(weft_format format) { return format < WEFT_FORMAT_COUNT ? formats[format].bytes : 0; }

bool weft_format_is_float(weft_format format) { return format < WEFT_FORMAT_COUNT && formats[format].is_float; }

weft_format weft_format_by_name(const char *name) {
  for (weft_format format = 0; format < WEFT_FORMAT_COUNT; format++)
    if (strcasecmp(name, formats[format].name) == 0) return format;
  return WEFT_FORMAT_COUNT;
}

int64_t weft_format_max(weft_format format) {
  assert(!weft_format_is_float(format));
  return INT64_MAX >> (64 - 8 * weft_format_bytes(format));
}

int64_t weft_format_min(weft_format format) { return -weft_format_max(format) - 1; }

float weft_bf16_to_f32(uint16_t bits) { return weft_inline_bf16_to_f32(bits); }
uint16_t weft_f32_to_bf16(float value) { return weft_inline_f32_to_bf16(value); }
float weft_fp16_to_f32(uint16_t bits) { return weft_inline_fp16_to_f32(bits); }
uint16_t weft_f32_to_fp16(float value) { return weft_inline_f32_to_fp16(value); }
float weft_fp8_to_f32(uint8_t bits) { return weft_inline_fp8_to_f32(bits); }
uint8_t weft_f32_to_fp8(float value) { return weft_inline_f32_to_fp8(value); }

float weft_load_f32(weft_format format, const void *array, uint64_t index) {
  switch (format) {
  case WEFT_FP8: return weft_inline_fp8_to_f32(((const uint8_t *)array)[index]);
  case WEFT_BF16: return weft_inline_bf16_to_f32(((const uint16_t *)array)[index]);
  case WEFT_FP16: return weft_inline_fp16_to_f32(((const uint16_t *)array)[index]);
  default: assert(format == WEFT_FP32); return ((const float *)array)[index];
  }
}

void weft_store_f32(weft_format format, void *array, uint64_t index, float value) {
  switch (format) {
  case WEFT_FP8: ((uint8_t *)array)[index] = weft_inline_f32_to_fp8(value); break;
  case WEFT_BF16: ((uint16_t *)array)[index] = weft_inline_f32_to_bf16(value); break;
  case WEFT_FP16: ((uint16_t *)array)[index] = weft_inline_f32_to_fp16(value); break;
  default: assert(format == WEFT_FP32); ((float *)array)[index] = value;
  }
}

int64_t weft_load_i64(weft_format format, const void *array, uint64_t index) {
  switch (format) {
  case WEFT_INT8: return ((const int8_t *)array)[index];
  case WEFT_INT16: return ((const int16_t *)array)[index];
  case WEFT_INT32: return ((const int32_t *)array)[index];
  default: assert(format == WEFT_INT64); return ((const int64_t *)array)[index];
  }
}

bool weft_store_i64(weft_format format, void *array, uint64_t index, int64_t value) {
  if (value < weft_format_min(format) || value > weft_format_max(format)) return false;
  switch (format) {
  case WEFT_INT8: ((int8_t *)array)[index] = (int8_t)value; break;
  case WEFT_INT16: ((int16_t *)array)[index] = (int16_t)value; break;
  case WEFT_INT32: ((int32_t *)array)[index] = (int32_t)value; break;
  default: ((int64_t *)array)[index] = value;
  }
  return true;
}
