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

/* `then` where condition is 1, `otherwise` where it is 0. A mask and not a branch: compilers may not evaluate both
 * sides of a branch over floats, whose operations may trap. */
static inline uint32_t weft_inline_select(int condition, uint32_t then, uint32_t otherwise) {
  uint32_t mask = 0u - (uint32_t)condition;
  return (then & mask) | (otherwise & ~mask);
}

static inline float weft_inline_select_f32(int condition, float then, float otherwise) {
  return weft_f32_of_bits(weft_inline_select(condition, weft_bits_of_f32(then), weft_bits_of_f32(otherwise)));
}

/* ---- formats ------------------------------------------------------------------------------------------------------
 */

static inline float weft_inline_bf16_to_f32(uint16_t bits) { return weft_f32_of_bits((uint32_t)bits << 16); }

static inline uint16_t weft_inline_f32_to_bf16(float value) {
  uint32_t bits = weft_bits_of_f32(value);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  uint32_t nan = bits >> 16 | 0x0040; /* quiet, sign and upper payload kept */
  return (uint16_t)weft_inline_select((bits & 0x7fffffff) > 0x7f800000, nan, rounded);
}

static inline float weft_inline_fp16_to_f32(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
  uint32_t magnitude = bits & 0x7fff;
  /* Exponent and fraction moved into place denote the value times 2^-112, denormals included: the product is exact. */
  float finite = weft_f32_of_bits(magnitude << 13) * 0x1p112f;
  uint32_t special = 0x7f800000 | magnitude << 13;
  return weft_f32_of_bits(sign | weft_inline_select(magnitude >= 0x7c00, special, weft_bits_of_f32(finite)));
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
  uint32_t finite = weft_inline_select(magnitude < 0x38800000, denormal, normal);
  uint32_t number = weft_inline_select(magnitude >= 0x47800000, 0x7c00, finite);
  return (uint16_t)(sign | weft_inline_select(magnitude > 0x7f800000, nan, number));
}

static inline float weft_inline_fp8_to_f32(uint8_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x80) << 24;
  uint32_t magnitude = bits & 0x7f;
  float finite = weft_f32_of_bits(magnitude << 20) * 0x1p120f;
  return weft_f32_of_bits(sign | weft_inline_select(magnitude == 0x7f, 0x7fc00000, weft_bits_of_f32(finite)));
}

static inline uint8_t weft_inline_f32_to_fp8(float value) {
  uint32_t bits = weft_bits_of_f32(value);
  uint32_t sign = bits >> 24 & 0x80;
  uint32_t magnitude = bits & 0x7fffffff;
  uint32_t normal = (magnitude - 0x3c000000 + 0x7ffff + (magnitude >> 20 & 1)) >> 20;
  /* Denormal results are multiples of 2^-9, the last place of 2^14. */
  uint32_t denormal = weft_bits_of_f32(weft_f32_of_bits(magnitude) + 0x1p14f) - 0x46800000;
  uint32_t finite = weft_inline_select(magnitude < 0x3c800000, denormal, normal);
  /* 464 is halfway between 448 and the first value that does not exist; the tie goes to 448. */
  return (uint8_t)(sign | weft_inline_select(magnitude > 0x43e80000, 0x7f, finite));
}

/* ---- maximum and minimum --------------------------------------------------------------------------------------------
 */

static inline float weft_inline_maximum_f32(float a, float b) {
  float both_zero = weft_f32_of_bits(weft_bits_of_f32(a) & weft_bits_of_f32(b));
  float number = weft_inline_select_f32(a > b, a, weft_inline_select_f32(a == b, both_zero, b));
  return weft_inline_select_f32(a != a, a, weft_inline_select_f32(b != b, b, number));
}

static inline float weft_inline_minimum_f32(float a, float b) {
  float both_zero = weft_f32_of_bits(weft_bits_of_f32(a) | weft_bits_of_f32(b));
  float number = weft_inline_select_f32(a < b, a, weft_inline_select_f32(a == b, both_zero, b));
  return weft_inline_select_f32(a != a, a, weft_inline_select_f32(b != b, b, number));
}

/* ---- elementary functions ------------------------------------------------------------------------------------------
 * The polynomials are minimax fits with fp32 coefficients (Brisebarre and Chevillard, "Efficient polynomial
 * L-infinity approximations", 2007); sums that matter keep their rounding error (Dekker's fast two-sum). */

/* ln 2 in two parts: the first has 15 bits, so that its product with an exponent is exact. */
#define WEFT_LN2_HIGH 0x1.62e4p-1f
#define WEFT_LN2_LOW 0x1.7f7d1cp-20f

/* exp(x + x_low) = 2^n * (1 + r + low), |r| <= ln 2 / 2 and a little. */
typedef struct weft_exp_parts {
  int32_t n;
  float r, low;
} weft_exp_parts;

/* |x| < 2^22 * ln 2, or NaN: then r is NaN and n any number. */
static inline weft_exp_parts weft_inline_exp_parts(float x, float x_low) {
  const float shift = 0x1.8p23f; /* adding it rounds to an integer, which stands in the low bits of the sum */
  float shifted = fmaf(x, 0x1.715476p0f, shift);
  float n = shifted - shift;
  float first = fmaf(n, -WEFT_LN2_HIGH, x); /* exact */
  float r = fmaf(n, -WEFT_LN2_LOW, first);
  float rest = fmaf(n, -WEFT_LN2_LOW, first - r) + x_low;
  float q = 0x1.a2741p-13f;
  q = fmaf(q, r, 0x1.6d5156p-10f);
  q = fmaf(q, r, 0x1.110feep-7f);
  q = fmaf(q, r, 0x1.5554e4p-5f);
  q = fmaf(q, r, 0x1.555556p-3f);
  q = fmaf(q, r, 0.5f);
  weft_exp_parts parts = {(int32_t)(weft_bits_of_f32(shifted) - 0x4b400000), r, fmaf(r * r, q, rest)};
  return parts;
}

/* 2^n for -126 <= n <= 127; any float for other n. */
static inline float weft_inline_power_of_two(int32_t n) { return weft_f32_of_bits((uint32_t)(n + 127) << 23); }

static inline float weft_inline_exp_of_parts(weft_exp_parts parts) {
  float sum = 1.0f + parts.r;
  float value = sum + ((1.0f - sum) + parts.r + parts.low);
  /* Two factors, each in range: only the second product rounds, and only where the result is denormal. */
  int32_t half = parts.n >> 1;
  return value * weft_inline_power_of_two(half) * weft_inline_power_of_two(parts.n - half);
}

static inline float weft_inline_expf(float x) {
  float above = weft_inline_select_f32(x < -110.0f, -110.0f, x);
  float inside = weft_inline_select_f32(above > 89.0f, 89.0f, above);
  return weft_inline_exp_of_parts(weft_inline_exp_parts(inside, 0.0f));
}

static inline float weft_inline_logf(float x) {
  uint32_t bits = weft_bits_of_f32(x);
  int denormal = bits < 0x00800000;
  bits = weft_inline_select(denormal, weft_bits_of_f32(x * 0x1p23f), bits);
  /* x = 2^n * (1 + f) with 1 + f in [2/3, 4/3). */
  int32_t exponent = (int32_t)(bits - 0x3f2aaaab) >> 23;
  float f = weft_f32_of_bits(bits - ((uint32_t)exponent << 23)) - 1.0f;
  float n = (float)(exponent - 23 * denormal);
  float q = 0x1.db5f84p-4f;
  q = fmaf(q, f, -0x1.fd0638p-4f);
  q = fmaf(q, f, 0x1.bc6c48p-4f);
  q = fmaf(q, f, -0x1.f74e0cp-4f);
  q = fmaf(q, f, 0x1.24cd4p-3f);
  q = fmaf(q, f, -0x1.55787ep-3f);
  q = fmaf(q, f, 0x1.999896p-3f);
  q = fmaf(q, f, -0x1.ffffb4p-3f);
  q = fmaf(q, f, 0x1.555556p-2f);
  q = fmaf(q, f, -0.5f);
  float sum = fmaf(n, WEFT_LN2_HIGH, f);
  float rest = f - fmaf(n, -WEFT_LN2_HIGH, sum);
  float value = sum + fmaf(f * f, q, fmaf(n, WEFT_LN2_LOW, rest));
  float positive = weft_inline_select_f32(x < INFINITY, value, x);
  return weft_inline_select_f32(x > 0.0f, positive, weft_inline_select_f32(x == 0.0f, -INFINITY, NAN));
}

/* tanh(x) = u / (u + 2) with u = exp(2 |x|) - 1 in two parts, so that small x keep their accuracy. */
static inline float weft_inline_tanhf(float x) {
  float magnitude = fabsf(x);
  float inside = weft_inline_select_f32(magnitude > 10.0f, 10.0f, magnitude);
  weft_exp_parts parts = weft_inline_exp_parts(inside + inside, 0.0f);
  float scale = weft_inline_power_of_two(parts.n);
  float whole = scale - 1.0f, part = scale * parts.r;
  float sum = whole + part;
  float sum_low = (part - (sum - whole)) + scale * parts.low;
  float u = sum + sum_low;
  float u_low = sum_low - (u - sum);
  float d = u + 2.0f;
  float from_u = d - 2.0f;
  float d_low = (u - from_u) + (2.0f - (d - from_u)) + u_low;
  float inverse = 1.0f / d;
  float quotient = u * inverse;
  float rest = fmaf(-quotient, d, u) + fmaf(-quotient, d_low, u_low);
  return copysignf(fmaf(rest, inverse, quotient), x);
}

/* x + x p(x^2) below 3/4, 1 - exp(c + w q(w)) with w = |x| - 1 from there. */
static inline float weft_inline_erff(float x) {
  float magnitude = fabsf(x);
  float square = x * x;
  float p = -0x1.63836p-11f;
  p = fmaf(p, square, 0x1.4f79aap-8f);
  p = fmaf(p, square, -0x1.b7b2a2p-6f);
  p = fmaf(p, square, 0x1.ce2b54p-4f);
  p = fmaf(p, square, -0x1.81273cp-2f);
  p = fmaf(p, square, 0x1.06eba8p-3f);
  float small = fmaf(magnitude, p, magnitude);

  float inside = weft_inline_select_f32(magnitude > 3.95f, 3.95f, magnitude);
  float w = inside - 1.0f;
  float q = 0x1.9a4dbap-24f;
  q = fmaf(q, w, 0x1.a4b64cp-22f);
  q = fmaf(q, w, -0x1.b7ec72p-16f);
  q = fmaf(q, w, 0x1.3b4db4p-12f);
  q = fmaf(q, w, -0x1.08fb78p-9f);
  q = fmaf(q, w, 0x1.49341ap-7f);
  q = fmaf(q, w, -0x1.5474fcp-5f);
  q = fmaf(q, w, -0x1.afabe6p-1f);
  q = fmaf(q, w, -0x1.51c9bp1f);
  const float c = -0x1.d97fcp0f, c_low = 0x1.b0abacp-25f;
  float sum = fmaf(q, w, c);
  float rest = fmaf(q, w, c - sum) + c_low; /* exact up to its last rounding while |q w| <= |c| */
  weft_exp_parts parts = weft_inline_exp_parts(sum, rest);
  float scale = weft_inline_power_of_two(parts.n);
  float whole = 1.0f - scale, part = scale * parts.r;
  float difference = whole - part;
  float large = difference + (((whole - difference) - part) - scale * parts.low);
  return copysignf(weft_inline_select_f32(magnitude >= 0.75f, large, small), x);
}

/* ---- functions made of others: every operation rounds --------------------------------------------------------------
 */

static inline float weft_inline_recipf(float x) { return 1.0f / x; }

/* 1 / sqrt(x / over + eps_nano / 1e9), the last quotient a constant that is rounded first. */
static inline float weft_inline_rsqrtf(float x, uint64_t over, uint64_t eps_nano) {
  float quotient = x / (float)over;
  float sum = quotient + (float)((double)eps_nano / 1e9);
  float root = sqrtf(sum);
  return 1.0f / root;
}

static inline float weft_inline_siluf(float x) {
  float denominator = 1.0f + weft_inline_expf(-x);
  return x / denominator;
}

static inline float weft_inline_reluf(float x) { return weft_inline_maximum_f32(x, 0.0f); }

#endif
