/* weft/arithmetic.h: the arithmetic of weft/format.h as inline functions, for loops that are to vectorise.
 *
 * Each weft_inline_X is the definition of weft_X and gives the same bits. They are free of branches and tables, and
 * every operation is a correctly rounded fp32 operation, an explicit fma, or an integer one: a compiler may evaluate
 * many elements at once, at any vector width, without changing a bit, as long as it neither contracts nor reassociates
 * (-ffp-contract=off, no fast-math) and keeps denormals.
 * Error bounds are those measured over all inputs by tests/data/test_elementary_all.c, in units of the last place of
 * the exact result. */
#ifndef WEFT_ARITHMETIC_H
#define WEFT_ARITHMETIC_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t weft_bits_of_f32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static inline float weft_f32_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* ---- formats ------------------------------------------------------------------------------------------------------
 */

static inline float weft_inline_bf16_to_f32(uint16_t bits) { return weft_f32_of_bits((uint32_t)bits << 16); }

static inline uint16_t weft_inline_f32_to_bf16(float value) {
  uint32_t bits = weft_bits_of_f32(value);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  uint32_t nan = bits >> 16 | 0x0040; /* quiet, sign and upper payload kept */
  return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

static inline float weft_inline_fp16_to_f32(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
  uint32_t magnitude = bits & 0x7fff;
  /* Exponent and fraction moved into place denote the value times 2^-112, denormals included: the product is exact. */
  float finite = weft_f32_of_bits(magnitude << 13) * 0x1p112f;
  uint32_t special = 0x7f800000 | magnitude << 13;
  return weft_f32_of_bits(sign | (magnitude >= 0x7c00 ? special : weft_bits_of_f32(finite)));
}

static inline uint16_t weft_inline_f32_to_fp16(float value) {
  uint32_t bits = weft_bits_of_f32(value);
  uint32_t sign = bits >> 16 & 0x8000;
  uint32_t magnitude = bits & 0x7fffffff;
  /* Normal results: rebias, round the 13 dropped bits; a carry runs into the exponent, and past it into infinity. */
  uint32_t normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
  /* Denormal results are multiples of 2^-24: added to 0.5, whose last place that is, they are rounded by the addition.
   */
  uint32_t denormal = weft_bits_of_f32(weft_f32_of_bits(magnitude) + 0.5f) - 0x3f000000;
  uint32_t nan = 0x7e00 | (magnitude >> 13 & 0x3ff);
  uint32_t finite = magnitude < 0x38800000 ? denormal : normal;
  uint32_t number = magnitude >= 0x47800000 ? 0x7c00 : finite;
  return (uint16_t)(sign | (magnitude > 0x7f800000 ? nan : number));
}

static inline float weft_inline_fp8_to_f32(uint8_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x80) << 24;
  uint32_t magnitude = bits & 0x7f;
  float finite = weft_f32_of_bits(magnitude << 20) * 0x1p120f;
  return weft_f32_of_bits(sign | (magnitude == 0x7f ? 0x7fc00000 : weft_bits_of_f32(finite)));
}

static inline uint8_t weft_inline_f32_to_fp8(float value) {
  uint32_t bits = weft_bits_of_f32(value);
  uint32_t sign = bits >> 24 & 0x80;
  uint32_t magnitude = bits & 0x7fffffff;
  uint32_t normal = (magnitude - 0x3c000000 + 0x7ffff + (magnitude >> 20 & 1)) >> 20;
  /* Denormal results are multiples of 2^-9, the last place of 2^14. */
  uint32_t denormal = weft_bits_of_f32(weft_f32_of_bits(magnitude) + 0x1p14f) - 0x46800000;
  uint32_t finite = magnitude < 0x3c800000 ? denormal : normal;
  /* 464 is halfway between 448 and the first value that does not exist; the tie goes to 448. */
  return (uint8_t)(sign | (magnitude > 0x43e80000 ? 0x7f : finite));
}

/* ---- maximum and minimum --------------------------------------------------------------------------------------------
 */

static inline float weft_inline_maximum_f32(float a, float b) {
  float both_zero = weft_f32_of_bits(weft_bits_of_f32(a) & weft_bits_of_f32(b));
  float number = a > b ? a : a == b ? both_zero : b;
  return a != a ? a : b != b ? b : number;
}

static inline float weft_inline_minimum_f32(float a, float b) {
  float both_zero = weft_f32_of_bits(weft_bits_of_f32(a) | weft_bits_of_f32(b));
  float number = a < b ? a : a == b ? both_zero : b;
  return a != a ? a : b != b ? b : number;
}

#endif
