#include "weft/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- how K is cut ---------------------------------------------------------------------------------------------------
 */

static void canonical_segments(void **state) {
  (void)state;
  const struct {
    uint64_t k;
    uint32_t segments;
  } cases[] = {{0, 1},          {1, 1},     {64, 1},    {127, 1},   {128, 2},
               {255, 2},        {256, 4},   {511, 4},   {512, 8},   {784, 8},
               {1023, 8},       {1024, 16}, {2047, 16}, {2048, 32}, {UINT64_C(1) << 40, 32},
               {UINT64_MAX, 32}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(weft_segments_for(cases[i].k), cases[i].segments);
}

/* Deals the units out one at a time, as the rule says it in words. */
static void check_cut(uint64_t k, uint32_t segments) {
  uint64_t units = (k + 31) / 32, begin = 0;
  uint32_t with_elements = 0;
  for (uint32_t s = 0; s < segments; s++) {
    assert_int_equal(weft_segment_begin(k, segments, s), begin);
    uint64_t own = units / segments + (s < units % segments ? 1 : 0);
    uint64_t end = begin + own * 32 < k ? begin + own * 32 : k;
    with_elements += end > begin;
    begin = end;
  }
  assert_int_equal(begin, k);
  assert_int_equal(weft_segment_begin(k, segments, segments), k);
  assert_int_equal(weft_segments_effective(k, segments), with_elements ? with_elements : 1);
}

static void segments_are_whole_units(void **state) {
  (void)state;
  for (uint64_t k = 0; k < 700; k++)
    for (uint32_t segments = 1; segments < 40; segments++) check_cut(k, segments);
}

/* Chip i of n holds segments [S i / n, S (i + 1) / n); cut by the same rule, its own K reproduces the global borders,
 * subtree by subtree. */
static void subtrees_reproduce_global_borders(void **state) {
  (void)state;
  for (uint64_t k = 1; k < 5000; k += 7) {
    uint32_t segments = weft_segments_for(k);
    for (uint32_t size = 1; size <= segments; size *= 2)
      for (uint32_t first = 0; first < segments; first += size) {
        uint64_t begin = weft_segment_begin(k, segments, first);
        uint64_t own = weft_segment_begin(k, segments, first + size) - begin;
        for (uint32_t s = 0; s <= size; s++)
          assert_int_equal(begin + weft_segment_begin(own, size, s), weft_segment_begin(k, segments, first + s));
      }
  }
}

/* ---- dot products ---------------------------------------------------------------------------------------------------
 */

/* The tree over leaves, by its definition on arrays. */
static float tree_of(const float *leaves, size_t count) {
  if (count == 1) return leaves[0];
  size_t power = 1;
  while (power * 2 < count) power *= 2;
  return tree_of(leaves, power) + tree_of(leaves + power, count - power);
}

static float dot_by_definition(const float *a, const float *b, uint64_t k, uint32_t segments) {
  float leaves[64];
  size_t count = 0;
  uint64_t units = (k + 31) / 32, at = 0;
  for (uint32_t s = 0; s < segments; s++) {
    uint64_t own = (units / segments + (s < units % segments ? 1 : 0)) * 32;
    if (own == 0) continue;
    float acc = 0;
    for (; own && at < k; own--, at++) acc = fmaf(a[at], b[at], acc);
    leaves[count++] = acc;
  }
  return count ? tree_of(leaves, count) : 0.0f;
}

static void dots_follow_the_definition(void **state) {
  (void)state;
  enum { MOST = 300 };
  float a[MOST * 3], b[MOST * 2], dense_a[MOST], dense_b[MOST];
  uint64_t random = 7;
  for (size_t i = 0; i < MOST * 3; i++) a[i] = (float)(weft_random_next(&random) >> 40) * 0x1p-20f - 8;
  for (size_t i = 0; i < MOST * 2; i++) b[i] = (float)(weft_random_next(&random) >> 40) * 0x1p-20f - 8;
  for (uint64_t k = 0; k <= MOST; k++)
    for (uint32_t segments = 1; segments <= 40; segments += segments < 9 ? 1 : 5) {
      for (size_t i = 0; i < k; i++) {
        dense_a[i] = a[i * 3];
        dense_b[i] = b[i * 2];
      }
      float is = weft_dot_f32(a, 3, b, 2, k, segments), wanted = dot_by_definition(dense_a, dense_b, k, segments);
      if (memcmp(&is, &wanted, sizeof is) != 0)
        fail_msg("k %" PRIu64 " segments %" PRIu32 ": %a, wanted %a", k, segments, is, wanted);
    }
}

static float sum_by_definition(const float *x, uint64_t k, uint32_t segments) {
  float leaves[64];
  size_t count = 0;
  uint64_t units = (k + 31) / 32, at = 0;
  for (uint32_t s = 0; s < segments; s++) {
    uint64_t own = (units / segments + (s < units % segments ? 1 : 0)) * 32;
    uint64_t end = at + own < k ? at + own : k;
    if (own == 0) continue;
    float lanes[16];
    size_t used = 0;
    for (uint64_t lane = at; lane < end && lane < at + 16; lane++) {
      float acc = 0;
      for (uint64_t i = lane; i < end; i += 16) acc = acc + x[i];
      lanes[used++] = acc;
    }
    leaves[count++] = tree_of(lanes, used);
    at = end;
  }
  return count ? tree_of(leaves, count) : 0.0f;
}

static void sums_follow_the_definition(void **state) {
  (void)state;
  enum { MOST = 300 };
  float x[MOST * 2], dense[MOST];
  uint64_t random = 9;
  for (size_t i = 0; i < MOST * 2; i++) x[i] = (float)(weft_random_next(&random) >> 40) * 0x1p-20f - 8;
  for (size_t i = 0; i < MOST; i++) dense[i] = x[i * 2];
  for (uint64_t k = 0; k <= MOST; k++)
    for (uint32_t segments = 1; segments <= 40; segments += segments < 9 ? 1 : 5) {
      float is = weft_sum_f32(x, 2, k, segments), wanted = sum_by_definition(dense, k, segments);
      if (memcmp(&is, &wanted, sizeof is) != 0)
        fail_msg("k %" PRIu64 " segments %" PRIu32 ": %a, wanted %a", k, segments, (double)is, (double)wanted);
    }
  float one[17] = {0x1p24f};
  for (int i = 1; i < 17; i++) one[i] = 1;
  /* Lane 0 loses its second 1, its pair with lane 1 another; the others are kept: 2 + 4 + 8. */
  assert_true(weft_sum_f32(one, 1, 17, 1) == 0x1p24f + 14);
}

/* Values by hand: with 2^24 in front, the ones behind it are lost in one chain and kept in a segment of their own. */
static void the_cut_decides_the_bits(void **state) {
  (void)state;
  float a[64], ones[64];
  for (int i = 0; i < 64; i++) a[i] = ones[i] = 1;
  a[0] = 0x1p24f;
  assert_true(weft_dot_f32(a, 1, ones, 1, 64, 1) == 0x1p24f);
  assert_true(weft_dot_f32(a, 1, ones, 1, 64, 2) == 0x1p24f + 32);
  /* One rounding a step: 1 - (1 + 2^-12)(1 - 2^-12) = 2^-24 exactly, 0 if the product were rounded. */
  const float x[] = {1, 1 + 0x1p-12f}, y[] = {-1, 1 - 0x1p-12f};
  assert_true(weft_dot_f32(x, 1, y, 1, 2, 1) == -0x1p-24f);
  /* Three leaves fold as (0 + 1) + 2. */
  float c[96] = {0};
  c[0] = 0x1p24f;
  c[32] = -0x1p24f;
  c[64] = 0.5f;
  for (int i = 0; i < 64; i++) ones[i] = 1;
  assert_true(weft_dot_f32(c, 1, (const float[96]){[0] = 1, [32] = 1, [64] = 1}, 1, 96, 3) == 0.5f);
}

static void empty_dots_are_plus_zero(void **state) {
  (void)state;
  float one = 1, none = weft_dot_f32(&one, 1, &one, 1, 0, 4);
  assert_true(none == 0 && !signbit(none));
  /* From +0: a single -0 product gives +0. */
  float minus = -0.0f, sum = weft_dot_f32(&minus, 1, &one, 1, 1, 1);
  assert_true(sum == 0 && !signbit(sum));
}

/* ---- the rest -------------------------------------------------------------------------------------------------------
 */

static void maximum_and_minimum(void **state) {
  (void)state;
  const float order[] = {-INFINITY, -1, -0x1p-149f, -0.0f, 0.0f, 0x1p-149f, 1, INFINITY};
  for (size_t i = 0; i < 8; i++)
    for (size_t j = 0; j < 8; j++) {
      float greatest = weft_maximum_f32(order[i], order[j]), least = weft_minimum_f32(order[i], order[j]);
      assert_memory_equal(&greatest, &order[i > j ? i : j], sizeof greatest);
      assert_memory_equal(&least, &order[i < j ? i : j], sizeof least);
    }
  for (size_t i = 0; i < 8; i++) {
    assert_true(isnan(weft_maximum_f32(NAN, order[i])) && isnan(weft_maximum_f32(order[i], NAN)));
    assert_true(isnan(weft_minimum_f32(NAN, order[i])) && isnan(weft_minimum_f32(order[i], NAN)));
  }
}

/* Floor of a product within 64 bits, in 128. */
static void requant_floors(void **state) {
  (void)state;
  assert_true(weft_requant(7, 3, 2) == 5);
  assert_true(weft_requant(-7, 3, 2) == -6);
  assert_true(weft_requant(-1, 1, 63) == -1 && weft_requant(1, 1, 63) == 0 && weft_requant(-1, 1, 200) == -1);
  uint64_t random = 3;
  for (int i = 0; i < 100000; i++) {
    int64_t value = (int32_t)weft_random_next(&random), m = (int32_t)weft_random_next(&random);
    uint32_t s = (uint32_t)(weft_random_next(&random) % 63);
    __int128 product = (__int128)value * m, divisor = (__int128)1 << s;
    __int128 floor = product / divisor - (product % divisor < 0);
    assert_true(weft_requant(value, m, s) == (int64_t)floor);
  }
  /* The product wraps in 64 bits. */
  assert_true(weft_requant(INT64_MAX, 2, 0) == -2);
}

static void random_bf16_is_fixed(void **state) {
  (void)state;
  double sum = 0;
  for (uint64_t i = 0; i < 100000; i++) {
    float value = weft_random_bf16(5, 250, i);
    assert_true(value >= -0.75f && value <= 1.25f);
    assert_true(weft_bf16_to_f32(weft_f32_to_bf16(value)) == value);
    sum += value;
  }
  assert_true(fabs(sum / 100000 - 0.25) < 0.01);
  /* By hand, in integers. */
  assert_true(weft_random_bf16(0, 0, 0) == weft_bf16_to_f32(0x3e9c));
  assert_true(weft_random_bf16(0, 0, 1) == weft_bf16_to_f32(0x3ece));
  assert_true(weft_random_bf16(7, 500, 3) == weft_bf16_to_f32(0x3f35));
  assert_true(weft_random_bf16(7, -1500, 123456789012) == weft_bf16_to_f32(0xc007));
  assert_true(weft_random_bf16(1, 0, 0) != weft_random_bf16(2, 0, 0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(canonical_segments),
      cmocka_unit_test(segments_are_whole_units),
      cmocka_unit_test(subtrees_reproduce_global_borders),
      cmocka_unit_test(dots_follow_the_definition),
      cmocka_unit_test(sums_follow_the_definition),
      cmocka_unit_test(the_cut_decides_the_bits),
      cmocka_unit_test(empty_dots_are_plus_zero),
      cmocka_unit_test(maximum_and_minimum),
      cmocka_unit_test(requant_floors),
      cmocka_unit_test(random_bf16_is_fixed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
