/* Small float formats by their definition: sign, exponent, fraction as doubles. Slow, and shares nothing with data/. */
#ifndef WEFT_TESTS_FORMAT_ORACLE_H
#define WEFT_TESTS_FORMAT_ORACLE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct oracle_format {
  const char *name;
  int exponent_bits, fraction_bits;
  bool has_infinity; /* false: E4M3FN, whose only special is all exponent and fraction bits set, a NaN */
} oracle_format;

static const oracle_format oracle_bf16 = {"bf16", 8, 7, true};
static const oracle_format oracle_fp16 = {"fp16", 5, 10, true};
static const oracle_format oracle_fp8 = {"fp8", 4, 3, false};

static inline double oracle_value(const oracle_format *f, uint32_t bits) {
  int bias = (1 << (f->exponent_bits - 1)) - 1;
  uint32_t fraction = bits & ((1u << f->fraction_bits) - 1);
  uint32_t exponent = bits >> f->fraction_bits & ((1u << f->exponent_bits) - 1);
  bool negative = bits >> (f->exponent_bits + f->fraction_bits) & 1;
  uint32_t top_exponent = (1u << f->exponent_bits) - 1, top_fraction = (1u << f->fraction_bits) - 1;
  double magnitude;
  if (f->has_infinity && exponent == top_exponent)
    magnitude = fraction ? NAN : INFINITY;
  else if (!f->has_infinity && exponent == top_exponent && fraction == top_fraction)
    magnitude = NAN;
  else if (exponent == 0)
    magnitude = ldexp(fraction, 1 - bias - f->fraction_bits);
  else
    magnitude = ldexp(1 + ldexp(fraction, -f->fraction_bits), (int)exponent - bias);
  return copysign(magnitude, negative ? -1.0 : 1.0);
}

/* The greatest finite value. */
static inline double oracle_greatest(const oracle_format *f) {
  int bias = (1 << (f->exponent_bits - 1)) - 1;
  int top = (1 << f->exponent_bits) - 1 - (f->has_infinity ? 1 : 0) - bias;
  double ulp = ldexp(1, top - f->fraction_bits);
  return ldexp(1, top + 1) - (f->has_infinity ? ulp : 2 * ulp);
}

/* `value`, which a double holds exactly, rounded to nearest even; past the greatest value infinity or NaN. */
static inline double oracle_round(const oracle_format *f, double value) {
  if (isnan(value)) return NAN;
  int bias = (1 << (f->exponent_bits - 1)) - 1, exponent;
  if (isinf(value)) return f->has_infinity ? value : NAN;
  (void)frexp(value, &exponent);
  if (value == 0 || exponent - 1 < 1 - bias) exponent = 2 - bias;
  double quantum = ldexp(1, exponent - 1 - f->fraction_bits);
  double rounded = nearbyint(value / quantum) * quantum; /* ties to even: the default rounding */
  if (fabs(rounded) <= oracle_greatest(f)) return copysign(rounded, value);
  return f->has_infinity ? copysign(INFINITY, value) : NAN;
}

#endif
