/* The exact values of the elementary functions, from MPFR, and the error of an fp32 result in units of its last place.
 */
#ifndef WEFT_TESTS_ELEMENTARY_TRUTH_H
#define WEFT_TESTS_ELEMENTARY_TRUTH_H

#include <stdbool.h>

typedef struct elementary {
  const char *name;
  float (*ours)(float);
  double (*libm)(double);
  int (*mpfr)(void *result, const void *x); /* of mpfr_t at 100 bits */
} elementary;

extern const elementary elementary_functions[4];

/* Units of the last place that fp32 has at the size of `exact`. */
double ulp_error(float result, double exact);
/* The exact value of function f at x, as the nearest double. */
double exact_value(const elementary *f, float x);
/* Whether `result` is right where the exact value is not a finite fp32 number: NaN, infinities and what overflows to
 * them. *is_special says whether it is such a place. */
bool special_is_right(float result, double exact, bool *is_special);

#endif
