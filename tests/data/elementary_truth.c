#include "elementary_truth.h"

#include "elementary_loops.h"
#include "weft/arithmetic.h"
#include "weft/format.h"

#include <math.h>
#include <mpfr.h>

bool same_number(float a, float b) { return isnan(a) ? isnan(b) != 0 : weft_bits_of_f32(a) == weft_bits_of_f32(b); }

/* ---- steps ----------------------------------------------------------------------------------------------------------
 * 100 bits are enough for quotients and square roots of fp32 numbers: they are a tie of fp32 exactly, or further from
 * one than 2^-50 of their size. 300 bits hold every sum of two fp32 numbers. */

static bool decides(double value, float *rounded) {
  *rounded = (float)value;
  return isnan(value) || (float)(value * (1 - 0x1p-52)) == (float)(value * (1 + 0x1p-52));
}

static float of_two(int (*operation)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t), float a, float b,
                    questions *asked) {
  MPFR_DECL_INIT(left, 24);
  MPFR_DECL_INIT(right, 24);
  MPFR_DECL_INIT(result, 300);
  mpfr_set_flt(left, a, MPFR_RNDN);
  mpfr_set_flt(right, b, MPFR_RNDN);
  operation(result, left, right, MPFR_RNDN);
  asked->mpfr++;
  return mpfr_get_flt(result, MPFR_RNDN);
}

float divided(float a, float b, questions *asked) {
  float rounded;
  return !asked->always && decides((double)a / (double)b, &rounded) ? rounded : of_two(mpfr_div, a, b, asked);
}

static float added(float a, float b, questions *asked) {
  double sum = (double)a + (double)b;
  float rounded = (float)sum;
  /* The sum less its greater operand is exact (Dekker): where both differences agree, the sum was, too. */
  bool is_exact = sum - (double)a == (double)b && sum - (double)b == (double)a;
  if (!asked->always && (is_exact || decides(sum, &rounded))) return rounded;
  return of_two(mpfr_add, a, b, asked);
}

static float rooted(float x, questions *asked) {
  float rounded;
  if (!asked->always && decides(sqrt((double)x), &rounded)) return rounded;
  MPFR_DECL_INIT(argument, 24);
  MPFR_DECL_INIT(result, 100);
  mpfr_set_flt(argument, x, MPFR_RNDN);
  mpfr_sqrt(result, argument, MPFR_RNDN);
  asked->mpfr++;
  return mpfr_get_flt(result, MPFR_RNDN);
}

/* ---- definitions ---- */

static float defined_recip(float x, questions *asked) { return divided(1, x, asked); }

static float defined_rsqrt(float x, questions *asked) {
  /* x / 1 and its sum with +0 are x, but for -0, which becomes +0. */
  return divided(1, rooted(x == 0 ? 0.0f : x, asked), asked);
}

static float defined_rsqrt_mean(float x, questions *asked) {
  float sum = added(divided(x, ELEMENTARY_OVER, asked), 1e-5f, asked);
  return divided(1, rooted(sum, asked), asked);
}

/* exp is the arithmetic's own: it is tested beside this. */
static float defined_silu(float x, questions *asked) { return divided(x, added(1, weft_expf(-x), asked), asked); }

static float defined_relu(float x, questions *asked) {
  (void)asked; /* nothing to round */
  uint32_t bits = weft_bits_of_f32(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return x;
  return bits >> 31 ? 0.0f : x;
}

/* ---- values that are no numbers, and their neighbours ---- */

static float special_exp(float x) { return x == 0 ? 1.0f : x > 0 ? INFINITY : 0.0f; }
static float special_ln(float x) { return x == 0 ? -INFINITY : x > 0 ? INFINITY : NAN; }
static float special_odd(float x) { return x == 0 ? x : copysignf(1, x); } /* tanh and erf */
static float special_recip(float x) { return x == 0 ? copysignf(INFINITY, x) : copysignf(0, x); }
static float special_rsqrt(float x) { return x == 0 ? INFINITY : x > 0 ? 0.0f : NAN; }
static float special_mean(float x) { return x == 0 ? 0x1.3c3a50p+8f : x > 0 ? 0.0f : NAN; } /* 1 / sqrt(1e-5) */
static float special_silu(float x) { return x == 0 || x > 0 ? x : NAN; }                    /* -inf / inf */
static float special_relu(float x) { return x > 0 ? x : 0.0f; }

/* ---- real functions ---- */

static double real_rsqrt(double x) { return 1 / sqrt(x); }
static double real_silu(double x) { return x / (1 + exp(-x)); }

static int exact_exp(void *result, const void *x) { return mpfr_exp(result, x, MPFR_RNDN); }
static int exact_ln(void *result, const void *x) { return mpfr_log(result, x, MPFR_RNDN); }
static int exact_tanh(void *result, const void *x) { return mpfr_tanh(result, x, MPFR_RNDN); }
static int exact_erf(void *result, const void *x) { return mpfr_erf(result, x, MPFR_RNDN); }
static int exact_rsqrt(void *result, const void *x) { return mpfr_rec_sqrt(result, x, MPFR_RNDN); }
static int exact_silu(void *result, const void *x) {
  MPFR_DECL_INIT(sum, 200);
  mpfr_neg(sum, x, MPFR_RNDN);
  mpfr_exp(sum, sum, MPFR_RNDN);
  mpfr_add_ui(sum, sum, 1, MPFR_RNDN);
  return mpfr_div(result, x, sum, MPFR_RNDN);
}

static float rsqrt(float x) { return weft_rsqrtf(x, 1, 0); }
static float rsqrt_of_a_mean(float x) { return weft_rsqrtf(x, ELEMENTARY_OVER, ELEMENTARY_EPS_NANO); }

/* The bounds are those of docs/arithmetic.md. Below SILU_LEAST 1 + exp(-x) overflows and the definition gives -0. */
#define SILU_LEAST -0x1.62e42ep6f
const elementary elementary_functions[ELEMENTARY_FUNCTIONS] = {
    {"exp", weft_expf, NULL, special_exp, false, exp, exact_exp, 0.77, -INFINITY},
    {"ln", weft_logf, NULL, special_ln, true, log, exact_ln, 0.84, 0},
    {"tanh", weft_tanhf, NULL, special_odd, false, tanh, exact_tanh, 0.76, -INFINITY},
    {"erf", weft_erff, NULL, special_odd, false, erf, exact_erf, 0.74, -INFINITY},
    {"recip", weft_recipf, defined_recip, special_recip, false, NULL, NULL, 0, 0},
    {"rsqrt", rsqrt, defined_rsqrt, special_rsqrt, true, real_rsqrt, exact_rsqrt, 1.5, 0},
    {"silu", weft_siluf, defined_silu, special_silu, false, real_silu, exact_silu, 2.38, SILU_LEAST},
    {"relu", weft_reluf, defined_relu, special_relu, false, NULL, NULL, 0, 0},
    {"rsqrt of a mean", rsqrt_of_a_mean, defined_rsqrt_mean, special_mean, false, NULL, NULL, 0, 0},
};

static double mpfr_value(const elementary *f, float x, questions *asked) {
  MPFR_DECL_INIT(argument, 24);
  MPFR_DECL_INIT(result, 100);
  mpfr_set_flt(argument, x, MPFR_RNDN);
  f->mpfr(result, argument);
  asked->mpfr++;
  return mpfr_get_d(result, MPFR_RNDN);
}

/* The distance of `value` from `exact`, in the units of the last place that fp32 has at the size of `exact`. */
static double ulp_error(float value, double exact) {
  uint64_t bits;
  memcpy(&bits, &exact, sizeof bits);
  uint64_t exponent = bits >> 52 & 0x7ff; /* biased by 1023; -126 is the least of fp32's normal numbers */
  if (exponent < 1023 - 126) exponent = 1023 - 126;
  uint64_t inverse_bits = (2046 + 23 - exponent) << 52; /* 2^(23 - exponent) */
  double inverse;
  memcpy(&inverse, &inverse_bits, sizeof inverse);
  return fabs((double)value - exact) * inverse;
}

/* What rounds past the greatest fp32 number is an infinity. */
static bool overflows(double exact) { return fabs(exact) >= 0x1.ffffffp127; }

static bool is_near(const elementary *f, float x, float value, questions *asked, double *error) {
  double exact = f->real((double)x);
  *error = ulp_error(value, exact);
  bool at_border = fabs(fabs(exact) / 0x1.ffffffp127 - 1) < 2 * DOUBLE_ERROR;
  /* 2^-24 of the value is at most one unit: the error's own error is below 2^-20. */
  if (asked->always || at_border || (*error > f->bound - 0x1p-8 && !overflows(exact))) {
    double truth = mpfr_value(f, x, asked);
    bool is_comparable = !overflows(truth) && fabs(truth) >= 0x1p-1022;
    if (is_comparable && fabs(truth - exact) > DOUBLE_ERROR * fabs(truth)) asked->double_failed = true;
    exact = truth;
    *error = ulp_error(value, exact);
  }
  if (overflows(exact)) {
    *error = 0;
    return value == copysign(INFINITY, exact);
  }
  return *error <= f->bound && !signbit(value) == !signbit(exact);
}

bool is_right(const elementary *f, float x, float value, questions *asked, double *error) {
  *error = 0;
  if (isnan(x)) return isnan(value) != 0;
  if (x == 0 || isinf(x) || (x < 0 && f->not_below_zero)) return same_number(value, f->special(x));
  if (f->defined && !same_number(value, f->defined(x, asked))) return false;
  return !f->real || x < f->least || is_near(f, x, value, asked, error);
}
