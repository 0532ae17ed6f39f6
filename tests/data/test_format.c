#include "format_oracle.h"
#include "weft/arithmetic.h"
#include "weft/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static float widen(const oracle_format *f, uint32_t bits) {
  if (f == &oracle_bf16) return weft_bf16_to_f32((uint16_t)bits);
  return f == &oracle_fp16 ? weft_fp16_to_f32((uint16_t)bits) : weft_fp8_to_f32((uint8_t)bits);
}

static uint32_t narrow(const oracle_format *f, float value) {
  if (f == &oracle_bf16) return weft_f32_to_bf16(value);
  return f == &oracle_fp16 ? weft_f32_to_fp16(value) : weft_f32_to_fp8(value);
}

static uint32_t patterns(const oracle_format *f) { return 2u << (f->exponent_bits + f->fraction_bits); }

static void assert_same(const oracle_format *f, float from, double is, double wanted) {
  bool same = isnan(wanted) ? isnan(is) : is == wanted && !signbit(is) == !signbit(wanted);
  if (!same) fail_msg("%s of %a is %a, wanted %a", f->name, from, is, wanted);
}

static void check_widening(const oracle_format *f) {
  for (uint32_t bits = 0; bits < patterns(f); bits++) {
    double wanted = oracle_value(f, bits);
    assert_same(f, (float)bits, widen(f, bits), wanted);
    if (!isnan(wanted)) assert_int_equal(narrow(f, (float)wanted), bits);
  }
}

static void check_narrowing_of(const oracle_format *f, float value) {
  assert_same(f, value, oracle_value(f, narrow(f, value)), oracle_round(f, value));
  assert_same(f, -value, oracle_value(f, narrow(f, -value)), oracle_round(f, -(double)value));
}

/* Around every value and every border between two values. */
static void check_narrowing(const oracle_format *f) {
  for (uint32_t bits = 0; bits < patterns(f) / 2; bits++) {
    double low = oracle_value(f, bits), high = oracle_value(f, bits + 1);
    if (!isfinite(low)) continue;
    float border = isfinite(high) ? (float)((low + high) / 2) : (float)low;
    const float near[] = {(float)low, border, nextafterf(border, INFINITY), nextafterf(border, 0)};
    for (size_t i = 0; i < 4; i++) check_narrowing_of(f, near[i]);
  }
  uint64_t state = 1;
  for (int i = 0; i < 1000000; i++) check_narrowing_of(f, weft_f32_of_bits((uint32_t)weft_random_next(&state)));
  const float ends[] = {0,   INFINITY,      NAN, 0x1.fffffep127f, 0x1p-149f,  448,
                        464, 0x1.d00002p8f, 480, 65504,           65519.996f, 65520};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) check_narrowing_of(f, ends[i]);
}

static void bf16_is_exact(void **state) {
  (void)state;
  check_widening(&oracle_bf16);
  check_narrowing(&oracle_bf16);
}

static void fp16_is_exact(void **state) {
  (void)state;
  check_widening(&oracle_fp16);
  check_narrowing(&oracle_fp16);
}

static void fp8_is_exact(void **state) {
  (void)state;
  check_widening(&oracle_fp8);
  check_narrowing(&oracle_fp8);
}

/* E4M3FN as its definition spells it out (OCP 8-bit floating point, table 1). */
static void fp8_is_e4m3fn(void **state) {
  (void)state;
  assert_true(weft_fp8_to_f32(0x7e) == 448.0f);
  assert_true(weft_fp8_to_f32(0x08) == 0x1p-6f);
  assert_true(weft_fp8_to_f32(0x07) == 0x1.cp-7f);
  assert_true(weft_fp8_to_f32(0x01) == 0x1p-9f);
  assert_true(weft_fp8_to_f32(0x38) == 1.0f);
  assert_true(weft_fp8_to_f32(0xf6) == -224.0f);
  assert_true(isnan(weft_fp8_to_f32(0x7f)) && isnan(weft_fp8_to_f32(0xff)));
  assert_int_equal(weft_f32_to_fp8(INFINITY), 0x7f);
  assert_int_equal(weft_f32_to_fp8(-INFINITY), 0xff);
  assert_int_equal(weft_f32_to_fp8(464.0f), 0x7e);
  assert_int_equal(weft_f32_to_fp8(nextafterf(464.0f, 500.0f)), 0x7f);
}

/* A NaN stays one whatever its payload, also where the payload's kept bits are zero. */
static void nan_stays_nan(void **state) {
  (void)state;
  const uint32_t nans[] = {0x7f800001, 0xff800001, 0x7fc00000, 0x7fffffff, 0xffffffff, 0x7f80ffff};
  for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
    float nan = weft_f32_of_bits(nans[i]);
    assert_true(isnan(weft_bf16_to_f32(weft_f32_to_bf16(nan))));
    assert_true(isnan(weft_fp16_to_f32(weft_f32_to_fp16(nan))));
    assert_true(isnan(weft_fp8_to_f32(weft_f32_to_fp8(nan))));
  }
}

static void names_and_sizes(void **state) {
  (void)state;
  assert_string_equal(weft_format_name(WEFT_FP32), "Fp32");
  assert_string_equal(weft_format_name(WEFT_INT8), "Int8");
  assert_int_equal(weft_format_by_name("Bf16"), WEFT_BF16);
  assert_int_equal(weft_format_by_name("bf16"), WEFT_BF16);
  assert_int_equal(weft_format_by_name("float"), WEFT_FORMAT_COUNT);
  assert_int_equal(weft_format_by_name(""), WEFT_FORMAT_COUNT);
  const size_t bytes[WEFT_FORMAT_COUNT] = {1, 2, 4, 8, 1, 2, 2, 4};
  for (weft_format f = 0; f < WEFT_FORMAT_COUNT; f++) {
    assert_int_equal(weft_format_bytes(f), bytes[f]);
    assert_int_equal(weft_format_is_float(f), f >= WEFT_FP8);
    assert_int_equal(weft_format_by_name(weft_format_name(f)), f);
  }
}

static void integers_fit_or_are_refused(void **state) {
  (void)state;
  const int64_t least[] = {-128, -32768, INT32_MIN, INT64_MIN}, greatest[] = {127, 32767, INT32_MAX, INT64_MAX};
  for (weft_format f = WEFT_INT8; f <= WEFT_INT64; f++) {
    int64_t array[3] = {0, 0, 0};
    assert_true(weft_format_min(f) == least[f] && weft_format_max(f) == greatest[f]);
    assert_true(weft_store_i64(f, array, 0, least[f]) && weft_store_i64(f, array, 1, greatest[f]));
    assert_true(weft_load_i64(f, array, 0) == least[f] && weft_load_i64(f, array, 1) == greatest[f]);
    assert_true(weft_load_i64(f, array, 2) == 0);
    if (f == WEFT_INT64) continue;
    assert_false(weft_store_i64(f, array, 1, greatest[f] + 1));
    assert_false(weft_store_i64(f, array, 1, least[f] - 1));
    assert_true(weft_load_i64(f, array, 1) == greatest[f]);
  }
}

static void floats_are_stored_rounded(void **state) {
  (void)state;
  const weft_format formats[] = {WEFT_FP8, WEFT_BF16, WEFT_FP16, WEFT_FP32};
  const float rounded[] = {1.125f, 1.1015625f, 1.099609375f, 1.1f};
  for (size_t i = 0; i < 4; i++) {
    float array[4] = {0};
    weft_store_f32(formats[i], array, 1, 1.1f);
    assert_true(weft_load_f32(formats[i], array, 1) == rounded[i]);
    assert_true(weft_load_f32(formats[i], array, 0) == 0 && weft_load_f32(formats[i], array, 2) == 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bf16_is_exact),
      cmocka_unit_test(fp16_is_exact),
      cmocka_unit_test(fp8_is_exact),
      cmocka_unit_test(fp8_is_e4m3fn),
      cmocka_unit_test(nan_stays_nan),
      cmocka_unit_test(names_and_sizes),
      cmocka_unit_test(integers_fit_or_are_refused),
      cmocka_unit_test(floats_are_stored_rounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
