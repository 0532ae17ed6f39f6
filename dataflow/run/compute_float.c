/* Float arithmetic. f16 and bf16 are computed in fp32 and rounded back, which for + - * / and sqrt is one rounding in
 * effect; f64 has no elementary functions, as none of ours gives its bits on every machine. */
#include "compute.h"
#include "weft/format.h"

#include <math.h>
#include <string.h>

static float read_single(const compute *c, uint64_t bits) {
  if (c->width != 32) return (float)weft_mlir_float_value(c->in_type, bits);
  uint32_t word = (uint32_t)bits;
  float value;
  memcpy(&value, &word, sizeof value);
  return value;
}

static uint64_t write_single(const compute *c, float value) {
  uint64_t bits = 0;
  uint32_t word;
  memcpy(&word, &value, sizeof word);
  if (c->width == 32) return word;
  weft_mlir_float_round(c->in_type, (double)value, &bits);
  return bits;
}

static double read_double(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint64_t write_double(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* Each function twice: over fp32 in a, b, d, and over fp64. */
#define FLOAT_SINGLE(name, expression, third)                                                                          \
  static weft_fault name##_single(const compute *c, const uint64_t *in, uint64_t *out) {                               \
    float a = read_single(c, in[0]), b = (third) > 1 ? read_single(c, in[1]) : 0,                                      \
          d = (third) > 2 ? read_single(c, in[2]) : 0;                                                                 \
    (void)b, (void)d;                                                                                                  \
    *out = write_single(c, expression);                                                                                \
    return WEFT_FAULT_NONE;                                                                                            \
  }
#define FLOAT_DOUBLE(name, expression, third)                                                                          \
  static weft_fault name##_double(const compute *c, const uint64_t *in, uint64_t *out) {                               \
    double a = read_double(in[0]), b = (third) > 1 ? read_double(in[1]) : 0, d = (third) > 2 ? read_double(in[2]) : 0; \
    (void)b, (void)d, (void)c;                                                                                         \
    *out = write_double(expression);                                                                                   \
    return WEFT_FAULT_NONE;                                                                                            \
  }

static double maximum_double(double a, double b) {
  if (isnan(a) || isnan(b)) return (double)NAN;
  if (a == b) return signbit(a) ? b : a;
  return a > b ? a : b;
}
static double minimum_double(double a, double b) { return -maximum_double(-a, -b); }
static float maxnum_single(float a, float b) { return isnan(a) ? b : isnan(b) ? a : weft_maximum_f32(a, b); }
static float minnum_single(float a, float b) { return isnan(a) ? b : isnan(b) ? a : weft_minimum_f32(a, b); }
static double maxnum_double(double a, double b) { return isnan(a) ? b : isnan(b) ? a : maximum_double(a, b); }
static double minnum_double(double a, double b) { return isnan(a) ? b : isnan(b) ? a : minimum_double(a, b); }

/* Rows: op, name, operands, fp32 expression, fp64 expression. */
#define FLOAT_FUNCTIONS(ROW)                                                                                           \
  ROW(ARITH_ADDF, addf, 2, a + b, a + b)                                                                               \
  ROW(ARITH_SUBF, subf, 2, a - b, a - b)                                                                               \
  ROW(ARITH_MULF, mulf, 2, a *b, a *b)                                                                                 \
  ROW(ARITH_DIVF, divf, 2, a / b, a / b)                                                                               \
  ROW(ARITH_REMF, remf, 2, fmodf(a, b), fmod(a, b))                                                                    \
  ROW(ARITH_MAXIMUMF, maximumf, 2, weft_maximum_f32(a, b), maximum_double(a, b))                                       \
  ROW(ARITH_MINIMUMF, minimumf, 2, weft_minimum_f32(a, b), minimum_double(a, b))                                       \
  ROW(ARITH_MAXNUMF, maxnumf, 2, maxnum_single(a, b), maxnum_double(a, b))                                             \
  ROW(ARITH_MINNUMF, minnumf, 2, minnum_single(a, b), minnum_double(a, b))                                             \
  ROW(ARITH_NEGF, negf, 1, -a, -a)                                                                                     \
  ROW(MATH_ABSF, absf, 1, fabsf(a), fabs(a))                                                                           \
  ROW(MATH_CEIL, ceil, 1, ceilf(a), ceil(a))                                                                           \
  ROW(MATH_COPYSIGN, copysign, 2, copysignf(a, b), copysign(a, b))                                                     \
  ROW(MATH_FLOOR, floor, 1, floorf(a), floor(a))                                                                       \
  ROW(MATH_FMA, fma, 3, fmaf(a, b, d), fma(a, b, d))                                                                   \
  ROW(MATH_ROUND, round, 1, roundf(a), round(a))                                                                       \
  ROW(MATH_ROUNDEVEN, roundeven, 1, nearbyintf(a), nearbyint(a))                                                       \
  ROW(MATH_RSQRT, rsqrt, 1, 1.0f / sqrtf(a), 1.0 / sqrt(a))                                                            \
  ROW(MATH_SQRT, sqrt, 1, sqrtf(a), sqrt(a))                                                                           \
  ROW(MATH_TRUNC, trunc, 1, truncf(a), trunc(a))

#define ROW(identifier, name, count, single, wide)                                                                     \
  FLOAT_SINGLE(of_##name, single, count) FLOAT_DOUBLE(of_##name, wide, count)
FLOAT_FUNCTIONS(ROW)
#undef ROW
FLOAT_SINGLE(of_exp, weft_expf(a), 1)
FLOAT_SINGLE(of_log, weft_logf(a), 1)
FLOAT_SINGLE(of_tanh, weft_tanhf(a), 1)
FLOAT_SINGLE(of_erf, weft_erff(a), 1)

/* The bits of cmpf's predicates: less, equal, greater, unordered, each from the position of its predicate in the table.
 */
static weft_fault cmpf(const compute *c, const uint64_t *in, uint64_t *out) {
  double a = weft_mlir_float_value(c->in_type, in[0]), b = weft_mlir_float_value(c->in_type, in[1]);
  bool less = a<b, equal = a == b, greater = a> b, unordered = isnan(a) || isnan(b);
  const bool results[] = {false,
                          equal,
                          greater,
                          greater || equal,
                          less,
                          less || equal,
                          less || greater,
                          !unordered,
                          unordered || equal,
                          unordered || greater,
                          unordered || greater || equal,
                          unordered || less,
                          unordered || less || equal,
                          unordered || less || greater,
                          unordered,
                          true};
  *out = results[c->predicate];
  return WEFT_FAULT_NONE;
}

compute_function compute_float_function(uint32_t code, bool wide) {
  switch (code) {
#define ROW(identifier, name, count, single, double_)                                                                  \
  case WEFT_OP_##identifier: return wide ? of_##name##_double : of_##name##_single;
    FLOAT_FUNCTIONS(ROW)
#undef ROW
  case WEFT_OP_ARITH_CMPF: return cmpf;
  case WEFT_OP_MATH_EXP: return wide ? NULL : of_exp_single;
  case WEFT_OP_MATH_LOG: return wide ? NULL : of_log_single;
  case WEFT_OP_MATH_TANH: return wide ? NULL : of_tanh_single;
  case WEFT_OP_MATH_ERF: return wide ? NULL : of_erf_single;
  default: return NULL;
  }
}
