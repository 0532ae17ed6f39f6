/* What a function of one fp32 value has to give. Two kinds of truth, of which a function has one or both:
 * its definition, step by step, each step correctly rounded: the bits must be equal;
 * the exact value of the real function: the result lies within a bound of it, in units of the last place.
 *
 * Doubles answer first, and MPFR wherever they might be wrong. One step (divide, square root, add) in doubles has a
 * relative error of at most 2^-53: it decides when 2^-52 to either side rounds to the same fp32 number. For the real
 * functions glibc documents at most 2 units of a double's last place, 2^-51; DOUBLE_ERROR is 128 times that. */
#ifndef WEFT_TESTS_ELEMENTARY_TRUTH_H
#define WEFT_TESTS_ELEMENTARY_TRUTH_H

#include <stdbool.h>
#include <stdint.h>

#define DOUBLE_ERROR 0x1p-44

typedef struct questions {
  bool always;        /* every question goes to MPFR, none to doubles */
  uint64_t mpfr;      /* questions that MPFR answered */
  bool double_failed; /* a double was further from MPFR's value than DOUBLE_ERROR */
} questions;

typedef struct elementary {
  const char *name; /* of its loop, too */
  float (*ours)(float);
  float (*defined)(float x, questions *asked); /* may be NULL */
  float (*special)(float x);                   /* exact, at zeros and infinities; of a negative number a NaN ... */
  bool not_below_zero;                         /* ... where this is set */
  double (*real)(double);                      /* NULL: no real function to compare with */
  int (*mpfr)(void *result, const void *x);
  double bound; /* units of the last place, where the exact value is an fp32 number */
  float least;  /* the bound holds from this x on */
} elementary;

enum { ELEMENTARY_FUNCTIONS = 9 };
extern const elementary elementary_functions[ELEMENTARY_FUNCTIONS];

/* a / b rounded to fp32. */
float divided(float a, float b, questions *asked);

/* Whether f may give `value` at x. *error is the distance from the exact value in units of the last place, 0 where
 * there is no such value or nothing to compare with. */
bool is_right(const elementary *f, float x, float value, questions *asked, double *error);

bool same_number(float a, float b); /* the same bits, or two NaNs */

#endif
