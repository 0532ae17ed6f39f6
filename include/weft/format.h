/* weft/format.h: element formats and the arithmetic over them (version WEFT_ARITHMETIC_VERSION, docs/arithmetic.md).
 *
 * Source: design "Arithmetic"; formats after the seed's `Precision` (spatial-ir, use of target::Precision). */
#ifndef WEFT_FORMAT_H
#define WEFT_FORMAT_H

#include "weft/base.h"

/** One row a format: identifier, dump name, bytes, is float. Order is the dump's declaration order. */
#define WEFT_FORMATS(ROW)                                                                                              \
  ROW(INT8, "Int8", 1, false)                                                                                          \
  ROW(INT16, "Int16", 2, false)                                                                                        \
  ROW(INT32, "Int32", 4, false)                                                                                        \
  ROW(INT64, "Int64", 8, false)                                                                                        \
  ROW(FP8, "Fp8", 1, true)                                                                                             \
  ROW(BF16, "Bf16", 2, true)                                                                                           \
  ROW(FP16, "Fp16", 2, true)                                                                                           \
  ROW(FP32, "Fp32", 4, true)

typedef enum weft_format {
#define WEFT_ROW(identifier, name, bytes, is_float) WEFT_##identifier,
  WEFT_FORMATS(WEFT_ROW)
#undef WEFT_ROW
      WEFT_FORMAT_COUNT
} weft_format;

/** "Fp32". */
const char *weft_format_name(weft_format format);
/** Bytes of one element. */
size_t weft_format_bytes(weft_format format);
bool weft_format_is_float(weft_format format);
/** The format called `name` in dumps ("Fp32") or on the command line ("fp32"); WEFT_FORMAT_COUNT when there is none. */
weft_format weft_format_by_name(const char *name);
/** The least and greatest value of an integer format. */
int64_t weft_format_min(weft_format format);
int64_t weft_format_max(weft_format format);

/* Bits to value and back. Widening is exact. Narrowing rounds once, to nearest even, after IEEE 754; Fp8 is E4M3FN (no
 * infinities: what rounds past 448 becomes NaN). */
float weft_bf16_to_f32(uint16_t bits);
uint16_t weft_f32_to_bf16(float value);
float weft_fp16_to_f32(uint16_t bits);
uint16_t weft_f32_to_fp16(float value);
float weft_fp8_to_f32(uint8_t bits);
uint8_t weft_f32_to_fp8(float value);

/** Element `index` of an array in a float format, widened exactly. */
float weft_load_f32(weft_format format, const void *array, uint64_t index);
/** Stores `value` into element `index` of an array in a float format, rounded once. */
void weft_store_f32(weft_format format, void *array, uint64_t index, float value);
/** Element `index` of an array in an integer format. */
int64_t weft_load_i64(weft_format format, const void *array, uint64_t index);
/** Stores into an integer format; false, storing nothing, when the value does not fit. */
bool weft_store_i64(weft_format format, void *array, uint64_t index, int64_t value);

/** How a contraction of K elements is cut: segments are runs of whole 32-element units. */
#define WEFT_UNIT 32
#define WEFT_MAX_SEGMENTS 32

/** The canonical number of segments for K: the largest power of two at most 32 and at most max(1, floor(K / 64)). */
uint32_t weft_segments_for(uint64_t k);
/** The segments that have elements: min(segments, max(1, ceil(k / 32))). An empty segment takes no part in a fold. */
uint32_t weft_segments_effective(uint64_t k, uint32_t segments);
/** First element of segment `index` when K elements are cut into `segments` (any number from 1; index == segments gives
 * K). U = ceil(K / 32) units; every segment has floor(U / segments) units and the first U mod segments one more. */
uint64_t weft_segment_begin(uint64_t k, uint32_t segments, uint32_t index);

/** The tree fold of an ascending-fma dot product: the arithmetic of MatmulTiles, one output element.
 * a[i * a_stride], b[i * b_stride], i below k, already widened to fp32. In each segment that has elements, from +0, k
 * ascending, acc = fma(a, b, acc); the results of the n effective segments are folded by the tree that splits n leaves
 * at the largest power of two below n (balanced when n is a power of two), left + right. k == 0 gives +0. This plain
 * version is the definition. */
float weft_dot_f32(const float *a, uint64_t a_stride, const float *b, uint64_t b_stride, uint64_t k, uint32_t segments);

/** A row sum with `segments`: the cut and the tree of weft_dot_f32; in a segment, lane l of 16 adds the elements l, l +
 * 16, l + 32... in this order from +0, and the lanes that have elements are folded by the same tree. k == 0 gives +0.
 * This plain version is the definition; a sum without `segments` is one ascending chain from +0 instead. */
float weft_sum_f32(const float *x, uint64_t stride, uint64_t k, uint32_t segments);

/** IEEE 754-2019 maximum and minimum: a NaN wins, -0 is below +0. */
float weft_maximum_f32(float a, float b);
float weft_minimum_f32(float a, float b);

/** A requantised integer: floor(value * m / 2^s) with the product in 64 bits, two's complement wrap in the product. */
int64_t weft_requant(int64_t value, int64_t m, uint32_t s);

/** Element `index` of a RandomBf16 fill, a value of Bf16: u + shift_milli / 1000 in fp32, rounded to Bf16, where u is
 * the upper 24 bits of the index-th number after the first of a splitmix64 generator started at `seed`, scaled to [-1,
 * 1). */
float weft_random_bf16(uint32_t seed, int32_t shift_milli, uint64_t index);

/* Elementary functions over fp32: plain fp32 arithmetic with explicit fma, at most 1 ulp, the same at any vector width.
 */
float weft_expf(float x);
float weft_logf(float x);
float weft_tanhf(float x);
float weft_erff(float x);
/** 1 / x, 1 / sqrt(x / over + eps_nano / 1e9), x / (1 + exp(-x)), maximum(x, +0): each operation rounds. */
float weft_recipf(float x);
float weft_rsqrtf(float x, uint64_t over, uint64_t eps_nano);
float weft_siluf(float x);
float weft_reluf(float x);

#endif
