/* The functions of one fp32 value on samples, where MPFR answers every question: see elementary_truth.h. */
#include "elementary_truth.h"
#include "weft/arithmetic.h"
#include "weft/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>

static void check(const elementary *f, float x) {
  questions asked = {.always = true};
  float value = f->ours(x);
  double error;
  if (!is_right(f, x, value, &asked, &error)) fail_msg("%s(%a) = %a: %f ulp", f->name, x, value, error);
  if (asked.double_failed) fail_msg("the double %s of %a is wrong", f->name, x);
}

/* Every STRIDE-th fp32 number: a prime, so that all exponents and all low bits of fractions occur. */
static void every_stride(void **state) {
  (void)state;
  enum { STRIDE = 20011 };
  for (size_t f = 0; f < ELEMENTARY_FUNCTIONS; f++)
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STRIDE)
      check(&elementary_functions[f], weft_f32_of_bits((uint32_t)bits));
}

/* Every exponent and sign, with random fractions. */
static void every_exponent(void **state) {
  (void)state;
  uint64_t random = 11;
  for (size_t f = 0; f < ELEMENTARY_FUNCTIONS; f++)
    for (uint32_t exponent = 0; exponent < 512; exponent++)
      for (int i = 0; i < 20; i++) {
        uint32_t fraction = (uint32_t)(weft_random_next(&random) >> 41);
        check(&elementary_functions[f], weft_f32_of_bits(exponent << 23 | fraction));
      }
}

/* Around the places where the functions change their formula, overflow, underflow or saturate. */
static void borders(void **state) {
  (void)state;
  const float places[] = {0,          1,           0.75f,         2.0f / 3, 4.0f / 3,        10,          3.95f,
                          9.01f,      0x1p-126f,   88.722839f,    89,       -87.336544f,     -103.97208f, -104,
                          -110,       0.34657359f, 0x1.62e42ep0f, 3.8318f,  0x1.fffffep127f, 0x1p-149f,   2,
                          3.9192059f, 0x1p-128f,   0x1p126f,      0x1p23f,  0.0512f};
  for (size_t f = 0; f < ELEMENTARY_FUNCTIONS; f++)
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
  assert_true(weft_inline_recipf(0.0f) == INFINITY && weft_inline_recipf(-0.0f) == -INFINITY);
  assert_true(weft_inline_rsqrtf(-0.0f, 1, 0) == INFINITY && isnan(weft_inline_rsqrtf(-1, 1, 0)));
  assert_true(weft_inline_rsqrtf(8, 2, 0) == 0.5f && weft_inline_rsqrtf(0, 1, 250000000) == 2);
  assert_true(weft_inline_siluf(INFINITY) == INFINITY && isnan(weft_inline_siluf(-INFINITY)));
  assert_true(weft_inline_siluf(-89) == 0 && signbit(weft_inline_siluf(-89)));
  assert_true(!signbit(weft_inline_reluf(-0.0f)) && weft_inline_reluf(-INFINITY) == 0);
  const uint32_t nans[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff};
  for (size_t f = 0; f < ELEMENTARY_FUNCTIONS; f++)
    for (size_t i = 0; i < 4; i++) assert_true(isnan(elementary_functions[f].ours(weft_f32_of_bits(nans[i]))));
}

static void check_quotient(float a, float b) {
  questions asked = {.always = true};
  volatile float left = a, right = b;
  float value = left / right, wanted = divided(a, b, &asked);
  if (!same_number(value, wanted)) fail_msg("%a / %a = %a, not %a", a, b, value, wanted);
}

/* Div is C's division of two fp32 numbers, rounded correctly: all pairs of special values, then random pairs, every
 * second of any size and every second near each other, so that quotients are normal numbers. */
static void division_rounds_correctly(void **state) {
  (void)state;
  const float special[] = {0,
                           NAN,
                           INFINITY,
                           FLT_MAX,
                           FLT_MIN,
                           0x1p-149f,
                           0x1.8p-148f,
                           0x1.fffffcp-127f,
                           0x1p-127f,
                           1,
                           0x1.fffffep-1f,
                           0x1.000002p0f,
                           2,
                           3,
                           7,
                           10,
                           0x1p23f,
                           0x1.fffffep23f};
  enum { SPECIAL = sizeof special / sizeof *special, RANDOM = 3000000 };
  for (int i = 0; i < 2 * SPECIAL; i++)
    for (int j = 0; j < 2 * SPECIAL; j++)
      check_quotient(i % 2 ? -special[i / 2] : special[i / 2], j % 2 ? -special[j / 2] : special[j / 2]);
  uint64_t random = 23;
  for (int i = 0; i < RANDOM; i++) {
    uint64_t both = weft_random_next(&random);
    uint32_t a = (uint32_t)both, b = (uint32_t)(both >> 32);
    if (i % 2) b = (b & 0x87ffffff) | (a & 0x78000000);
    check_quotient(weft_f32_of_bits(a), weft_f32_of_bits(b));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_stride), cmocka_unit_test(every_exponent),
                                     cmocka_unit_test(borders), cmocka_unit_test(exact_points),
                                     cmocka_unit_test(division_rounds_correctly)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
