#include "elementary_truth.h"
#include "weft/arithmetic.h"
#include "weft/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

static void check(const elementary *f, float x) {
  float result = f->ours(x);
  double exact = exact_value(f, x);
  bool is_special;
  if (!special_is_right(result, exact, &is_special)) fail_msg("%s(%a) = %a, exact %a", f->name, x, result, exact);
  if (is_special) return;
  if (ulp_error(result, exact) > 1)
    fail_msg("%s(%a) = %a, exact %a: %f ulp", f->name, x, result, exact, ulp_error(result, exact));
  if (!signbit(result) != !signbit(exact)) fail_msg("%s(%a) = %a has the wrong sign", f->name, x, result);
}

/* Every exponent and sign, with random fractions. */
static void within_one_ulp_of_mpfr(void **state) {
  (void)state;
  uint64_t random = 11;
  for (size_t f = 0; f < 4; f++)
    for (uint32_t exponent = 0; exponent < 512; exponent++)
      for (int i = 0; i < 100; i++) {
        uint32_t fraction = (uint32_t)(weft_random_next(&random) >> 41);
        check(&elementary_functions[f], weft_f32_of_bits(exponent << 23 | fraction));
      }
}

/* Around the places where the functions change their formula, overflow, underflow or saturate. */
static void borders(void **state) {
  (void)state;
  const float places[] = {0,         1,           0.75f,         2.0f / 3, 4.0f / 3,        10,          3.95f,
                          9.01f,     0x1p-126f,   88.722839f,    89,       -87.336544f,     -103.97208f, -104,
                          -110,      0.34657359f, 0x1.62e42ep0f, 3.8318f,  0x1.fffffep127f, 0x1p-149f,   2,
                          3.9192059f};
  for (size_t f = 0; f < 4; f++)
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
      for (int sign = -1; sign <= 1; sign += 2) {
        float up = (float)sign * places[i], down = up;
        for (int step = 0; step < 200; step++) {
          check(&elementary_functions[f], up);
          check(&elementary_functions[f], down);
          up = nextafterf(up, INFINITY);
          down = nextafterf(down, -INFINITY);
        }
      }
}

static void exact_points(void **state) {
  (void)state;
  assert_true(weft_inline_expf(0.0f) == 1 && weft_inline_expf(-0.0f) == 1);
  assert_true(weft_inline_expf(INFINITY) == INFINITY && weft_inline_expf(-INFINITY) == 0);
  assert_true(weft_inline_logf(1) == 0 && !signbit(weft_inline_logf(1)));
  assert_true(weft_inline_logf(0.0f) == -INFINITY && weft_inline_logf(-0.0f) == -INFINITY);
  assert_true(weft_inline_logf(INFINITY) == INFINITY && isnan(weft_inline_logf(-1)));
  assert_true(weft_inline_tanhf(INFINITY) == 1 && weft_inline_tanhf(-INFINITY) == -1);
  assert_true(weft_inline_erff(INFINITY) == 1 && weft_inline_erff(-INFINITY) == -1);
  assert_true(signbit(weft_inline_tanhf(-0.0f)) && signbit(weft_inline_erff(-0.0f)));
  const uint32_t nans[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff};
  for (size_t f = 0; f < 4; f++)
    for (size_t i = 0; i < 4; i++) assert_true(isnan(elementary_functions[f].ours(weft_f32_of_bits(nans[i]))));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(within_one_ulp_of_mpfr), cmocka_unit_test(borders),
                                     cmocka_unit_test(exact_points)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
