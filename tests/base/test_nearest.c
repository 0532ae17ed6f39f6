#include "weft/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

/* The definition, by recursion on the ends of the names. */
static uint32_t defined_distance(const char *a, size_t i, const char *b, size_t j) {
  if (i == 0 || j == 0) return (uint32_t)(i + j);
  uint32_t best = defined_distance(a, i - 1, b, j - 1) + (a[i - 1] != b[j - 1]);
  uint32_t other = defined_distance(a, i - 1, b, j) + 1;
  if (other < best) best = other;
  other = defined_distance(a, i, b, j - 1) + 1;
  if (other < best) best = other;
  if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
    other = defined_distance(a, i - 2, b, j - 2) + 1;
    if (other < best) best = other;
  }
  return best;
}

static void distance_is_the_defined_one(void **state) {
  (void)state;
  uint64_t random = 3;
  for (int round = 0; round < 2000; round++) {
    char a[7] = {0}, b[7] = {0};
    for (uint64_t i = 0, n = weft_random_next(&random) % 7; i < n; i++) a[i] = "abc"[weft_random_next(&random) % 3];
    for (uint64_t i = 0, n = weft_random_next(&random) % 7; i < n; i++) b[i] = "abc"[weft_random_next(&random) % 3];
    assert_int_equal(weft_edit_distance(a, b), defined_distance(a, strlen(a), b, strlen(b)));
  }
}

static void likely_slips_are_alike(void **state) {
  (void)state;
  assert_int_equal(weft_edit_distance("chips", "chpis"), 1);
  assert_true(weft_names_alike("chips", "chpis"));
  assert_true(weft_names_alike("logits", "logit"));
  assert_true(weft_names_alike("w1", "w2"));
  assert_false(weft_names_alike("compile", "diff"));
  assert_false(weft_names_alike("x", "layer"));
}

static void only_the_first_bytes_of_long_names_count(void **state) {
  (void)state;
  char a[200], b[200];
  memset(a, 'a', sizeof a);
  memset(b, 'a', sizeof b);
  a[199] = b[199] = 0;
  b[100] = 'b';
  assert_int_equal(weft_edit_distance(a, b), 0);
  b[62] = 'b';
  assert_int_equal(weft_edit_distance(a, b), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(distance_is_the_defined_one),
      cmocka_unit_test(likely_slips_are_alike),
      cmocka_unit_test(only_the_first_bytes_of_long_names_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
