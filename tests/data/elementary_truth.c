#include "elementary_truth.h"

#include "weft/format.h"

#include <math.h>
#include <mpfr.h>

static int exact_exp(void *result, const void *x) { return mpfr_exp(result, x, MPFR_RNDN); }
static int exact_log(void *result, const void *x) { return mpfr_log(result, x, MPFR_RNDN); }
static int exact_tanh(void *result, const void *x) { return mpfr_tanh(result, x, MPFR_RNDN); }
static int exact_erf(void *result, const void *x) { return mpfr_erf(result, x, MPFR_RNDN); }

const elementary elementary_functions[4] = {
    {"exp", weft_expf, exp, exact_exp},
    {"log", weft_logf, log, exact_log},
    {"tanh", weft_tanhf, tanh, exact_tanh},
    {"erf", weft_erff, erf, exact_erf},
};

double exact_value(const elementary *f, float x) {
  mpfr_t argument, result;
  mpfr_init2(argument, 24);
  mpfr_init2(result, 100);
  mpfr_set_flt(argument, x, MPFR_RNDN);
  f->mpfr(result, argument);
  double value = mpfr_get_d(result, MPFR_RNDN);
  mpfr_clear(argument);
  mpfr_clear(result);
  return value;
}

double ulp_error(float result, double exact) {
  int exponent;
  (void)frexp(exact, &exponent);
  if (exact == 0 || exponent < -125) exponent = -125;
  return fabs((double)result - exact) / ldexp(1, exponent - 24);
}

bool special_is_right(float result, double exact, bool *is_special) {
  *is_special = true;
  if (isnan(exact)) return isnan(result);
  /* Half a unit past the greatest fp32 number. */
  if (fabs(exact) >= 0x1.ffffffp127) return result == copysign(INFINITY, exact);
  *is_special = false;
  return true;
}
