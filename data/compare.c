/* Comparing arrays. A float's place in the order of all floats of its format is an integer; the difference of two such
 * places is their distance in units of the last place. -0 comes just below +0, so they are one unit apart. */
#include "weft/tensor_file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static uint64_t raw_bits(weft_format format, const void *data, uint64_t index) {
  switch (weft_format_bytes(format)) {
  case 1: return ((const uint8_t *)data)[index];
  case 2: return ((const uint16_t *)data)[index];
  default: return ((const uint32_t *)data)[index];
  }
}

static int64_t float_place(weft_format format, const void *data, uint64_t index) {
  uint64_t sign_bit = UINT64_C(1) << (8 * weft_format_bytes(format) - 1);
  uint64_t bits = raw_bits(format, data, index);
  int64_t magnitude = (int64_t)(bits & (sign_bit - 1));
  return bits & sign_bit ? -1 - magnitude : magnitude;
}

static void count_difference(weft_difference *difference, uint64_t index) {
  if (difference->differing++ == 0) difference->first_index = index;
}

static void take_ulp(weft_difference *difference, uint64_t ulp) {
  difference->max_ulp = weft_max_u64(difference->max_ulp, ulp);
}

static void compare_float(const weft_array *a, const weft_array *b, uint64_t index, weft_difference *difference) {
  float x = weft_load_f32(a->dtype, a->data, index), y = weft_load_f32(b->dtype, b->data, index);
  if (isnan(x) && isnan(y)) return;
  if (isnan(x) || isnan(y)) {
    count_difference(difference, index);
    take_ulp(difference, UINT64_MAX);
    difference->max_abs = INFINITY;
    return;
  }
  int64_t distance = float_place(a->dtype, a->data, index) - float_place(b->dtype, b->data, index);
  if (distance == 0) return;
  count_difference(difference, index);
  take_ulp(difference, (uint64_t)(distance < 0 ? -distance : distance));
  difference->max_abs = fmax(difference->max_abs, fabs((double)x - (double)y));
}

static void compare_integer(const weft_array *a, const weft_array *b, uint64_t index, weft_difference *difference) {
  int64_t x = weft_load_i64(a->dtype, a->data, index), y = weft_load_i64(b->dtype, b->data, index);
  if (x == y) return;
  uint64_t distance = x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x;
  count_difference(difference, index);
  take_ulp(difference, distance);
  difference->max_abs = fmax(difference->max_abs, (double)distance);
}

/* The largest magnitude among the finite elements. */
static double greatest_magnitude(const weft_array *array, uint64_t elements) {
  double greatest = 0;
  bool is_float = weft_format_is_float(array->dtype);
  for (uint64_t i = 0; i < elements; i++) {
    double value = is_float ? (double)weft_load_f32(array->dtype, array->data, i)
                            : (double)weft_load_i64(array->dtype, array->data, i);
    if (isfinite(value)) greatest = fmax(greatest, fabs(value));
  }
  return greatest;
}

static void put_shape(weft_text *text, const weft_array *array) {
  weft_text_printf(text, "%s [", weft_format_name(array->dtype));
  for (uint32_t i = 0; i < array->rank; i++) weft_text_printf(text, "%s%" PRIu64, i ? ", " : "", array->extents[i]);
  weft_text_puts(text, "]");
}

static weft_status refuse_shapes(const weft_array *a, const weft_array *b, weft_diag *diag) {
  weft_text first = {0}, second = {0};
  put_shape(&first, a);
  put_shape(&second, b);
  weft_status status = weft_error(diag, WEFT_INVALID, "only tensors of one type and one shape can be compared",
                                  "tensors `%s` and `%s` differ in kind: %s and %s", a->name, b->name,
                                  first.data ? first.data : "", second.data ? second.data : "");
  weft_text_free(&first);
  weft_text_free(&second);
  return status;
}

weft_status weft_array_compare(const weft_array *a, const weft_array *b, weft_difference *difference, weft_diag *diag) {
  *difference = (weft_difference){0};
  bool same = a->dtype == b->dtype && a->rank == b->rank;
  if (!same || memcmp(a->extents, b->extents, a->rank * sizeof *a->extents) != 0) return refuse_shapes(a, b, diag);
  uint64_t elements = weft_array_elements(a);
  void (*compare)(const weft_array *, const weft_array *, uint64_t, weft_difference *) =
      weft_format_is_float(a->dtype) ? compare_float : compare_integer;
  if (memcmp(a->data, b->data, elements * weft_format_bytes(a->dtype)) == 0) return WEFT_OK;
  for (uint64_t i = 0; i < elements; i++) compare(a, b, i, difference);
  if (difference->max_abs > 0) difference->max_rel = difference->max_abs / greatest_magnitude(b, elements);
  return WEFT_OK;
}
