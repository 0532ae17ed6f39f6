#include "weft/tensor_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void planes_fold_leading_dimensions(void **state) {
  (void)state;
  uint64_t rows, cols;
  weft_plane_extents(0, NULL, &rows, &cols);
  assert_true(rows == 1 && cols == 1);
  weft_plane_extents(1, (const uint64_t[]){7}, &rows, &cols);
  assert_true(rows == 1 && cols == 7);
  weft_plane_extents(4, (const uint64_t[]){2, 3, 5, 7}, &rows, &cols);
  assert_true(rows == 30 && cols == 7);
  weft_plane_extents(3, (const uint64_t[]){2, 0, 7}, &rows, &cols);
  assert_true(rows == 0 && cols == 7);
  assert_true(weft_array_elements(&(weft_array){.rank = 0}) == 1);
  assert_true(weft_array_elements(&(weft_array){.rank = 3, .extents = {1u << 31, 1u << 31, 8}}) == UINT64_MAX);
  assert_true(weft_array_elements(&(weft_array){.rank = 4, .extents = {1u << 31, 1u << 31, 8, 0}}) == 0);
}

static void sets_find_and_replace(void **state) {
  (void)state;
  weft_array_set set = {0};
  assert_null(weft_array_set_find(&set, "a"));
  char name[16];
  for (int i = 0; i < 100; i++) {
    snprintf(name, sizeof name, "t%d", i * 37 % 100);
    weft_array *array = weft_array_set_add(&set, name, WEFT_INT32, 1, (const uint64_t[]){2});
    assert_non_null(array);
    assert_true(((int32_t *)array->data)[0] == 0 && ((int32_t *)array->data)[1] == 0);
    ((int32_t *)array->data)[1] = i * 37 % 100;
  }
  for (uint64_t i = 1; i < set.count; i++) assert_true(strcmp(set.items[i - 1].name, set.items[i].name) < 0);
  for (int i = 0; i < 100; i++) {
    snprintf(name, sizeof name, "t%d", i);
    assert_int_equal(((int32_t *)weft_array_set_find(&set, name)->data)[1], i);
  }
  assert_non_null(weft_array_set_add(&set, "t5", WEFT_FP32, 0, NULL));
  assert_int_equal(set.count, 100);
  assert_int_equal(weft_array_set_find(&set, "t5")->dtype, WEFT_FP32);
  assert_non_null(weft_array_set_add(&set, "empty", WEFT_FP32, 2, (const uint64_t[]){0, 3})->data);
  assert_null(weft_array_set_add(&set, "big", WEFT_INT64, 1, (const uint64_t[]){UINT64_C(1) << 61}));
  assert_null(weft_array_set_add(&set, "wide", WEFT_INT8, 9, (const uint64_t[9]){1, 1, 1, 1, 1, 1, 1, 1, 1}));
  assert_int_equal(set.count, 101);
  weft_array_set_free(&set);
  assert_int_equal(set.count, 0);
}

static weft_difference difference_of(weft_format dtype, uint64_t count, void *a, void *b) {
  const weft_array x = {.name = "x", .dtype = dtype, .rank = 1, .extents = {count}, .data = a};
  const weft_array y = {.name = "y", .dtype = dtype, .rank = 1, .extents = {count}, .data = b};
  weft_difference difference;
  assert_int_equal(weft_array_compare(&x, &y, &difference, NULL), WEFT_OK);
  return difference;
}

static void equal_arrays_do_not_differ(void **state) {
  (void)state;
  float a[] = {1, NAN, -0.0f, INFINITY}, b[] = {1, -NAN, -0.0f, INFINITY};
  weft_difference d = difference_of(WEFT_FP32, 4, a, b);
  assert_true(d.differing == 0 && d.max_abs == 0 && d.max_ulp == 0 && d.max_rel == 0);
}

static void differences_are_measured(void **state) {
  (void)state;
  float a[] = {4, 1, 0x1.000002p0f, -2}, b[] = {4, 1, 1, -2.5f};
  weft_difference d = difference_of(WEFT_FP32, 4, a, b);
  assert_true(d.differing == 2 && d.first_index == 2 && d.max_abs == 0.5 && d.max_rel == 0.125);
  assert_true(d.max_ulp == 1u << 21);
  float zero[] = {0.0f}, minus[] = {-0.0f}, tiny[] = {-0x1p-149f};
  d = difference_of(WEFT_FP32, 1, zero, minus);
  assert_true(d.differing == 1 && d.max_ulp == 1 && d.max_abs == 0 && d.max_rel == 0);
  assert_true(difference_of(WEFT_FP32, 1, tiny, minus).max_ulp == 1);
  float nan[] = {NAN}, infinite[] = {INFINITY}, largest[] = {0x1.fffffep127f};
  d = difference_of(WEFT_FP32, 1, nan, zero);
  assert_true(d.differing == 1 && d.max_ulp == UINT64_MAX && isinf(d.max_abs) && isinf(d.max_rel));
  d = difference_of(WEFT_FP32, 1, infinite, largest);
  assert_true(d.max_ulp == 1 && isinf(d.max_abs) && isinf(d.max_rel));
}

static void every_format_compares(void **state) {
  (void)state;
  uint8_t fp8_a[] = {0x38, 0x7f}, fp8_b[] = {0x3a, 0xff};
  assert_true(difference_of(WEFT_FP8, 2, fp8_a, fp8_b).max_ulp == 2);
  assert_true(difference_of(WEFT_FP8, 2, fp8_a, fp8_b).max_abs == 0.25);
  uint16_t half_a[] = {0x3c00}, half_b[] = {0x3c05};
  assert_true(difference_of(WEFT_FP16, 1, half_a, half_b).max_ulp == 5);
  assert_true(difference_of(WEFT_BF16, 1, half_a, half_b).max_ulp == 5);
  int8_t small_a[] = {-128}, small_b[] = {127};
  assert_true(difference_of(WEFT_INT8, 1, small_a, small_b).max_ulp == 255);
  int64_t a[] = {INT64_MIN}, b[] = {INT64_MAX};
  weft_difference d = difference_of(WEFT_INT64, 1, a, b);
  assert_true(d.max_ulp == UINT64_MAX && d.max_abs == 0x1p64 && d.max_rel == 2);
}

static void only_like_is_compared(void **state) {
  (void)state;
  float data[6] = {0};
  const weft_array a = {.name = "x", .dtype = WEFT_FP32, .rank = 2, .extents = {2, 3}, .data = data};
  weft_array b = a;
  b.extents[0] = 3;
  b.extents[1] = 2;
  weft_difference difference;
  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_array_compare(&a, &b, &difference, diag), WEFT_INVALID);
  assert_string_equal(weft_diag_message(diag, 0)->text,
                      "tensors `x` and `x` differ in kind: Fp32 [2, 3] and Fp32 [3, 2]");
  b = a;
  b.dtype = WEFT_INT32;
  assert_int_equal(weft_array_compare(&a, &b, &difference, diag), WEFT_INVALID);
  weft_diag_free(diag);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(planes_fold_leading_dimensions), cmocka_unit_test(sets_find_and_replace),
      cmocka_unit_test(equal_arrays_do_not_differ),     cmocka_unit_test(differences_are_measured),
      cmocka_unit_test(every_format_compares),          cmocka_unit_test(only_like_is_compared),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
