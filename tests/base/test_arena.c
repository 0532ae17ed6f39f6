/* Arenas, checked sizes, hashes and random numbers. */
#include "weft/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static bool all_zero(const char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++)
    if (bytes[i]) return false;
  return true;
}

/* Many sizes around the chunk limits: aligned, zeroed, apart from each other, kept. */
static void allocations_are_aligned_zeroed_and_apart(void **state) {
  (void)state;
  weft_arena *arena = weft_arena_new();
  assert_non_null(arena);
  enum { COUNT = 400 };
  char *blocks[COUNT];
  size_t sizes[COUNT];
  uint64_t random = 7;
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < COUNT; i++) {
      sizes[i] = weft_random_next(&random) % (i % 50 == 0 ? 3000000 : 700);
      blocks[i] = weft_arena_alloc(arena, sizes[i]);
      assert_non_null(blocks[i]);
      assert_int_equal((uintptr_t)blocks[i] % 16, 0);
      assert_true(all_zero(blocks[i], sizes[i]));
      memset(blocks[i], i % 255 + 1, sizes[i]);
    }
    for (int i = 0; i < COUNT; i++)
      for (size_t j = 0; j < sizes[i]; j += 97) assert_int_equal((unsigned char)blocks[i][j], i % 255 + 1);
    weft_arena_reset(arena);
  }
  assert_false(weft_arena_failed(arena));
  weft_arena_free(arena);
}

static void reset_keeps_the_memory(void **state) {
  (void)state;
  weft_arena *arena = weft_arena_new();
  assert_int_equal(weft_arena_bytes(arena), 0);
  for (int i = 0; i < 1000; i++) assert_non_null(weft_arena_alloc(arena, 1000));
  size_t before = weft_arena_bytes(arena);
  assert_true(before >= 1000 * 1000);
  for (int round = 0; round < 10; round++) {
    weft_arena_reset(arena);
    for (int i = 0; i < 1000; i++) assert_non_null(weft_arena_alloc(arena, 1000));
  }
  assert_true(weft_arena_bytes(arena) <= before + before / 2);
  weft_arena_free(arena);
}

static void size_zero_is_a_pointer_of_its_own(void **state) {
  (void)state;
  weft_arena *arena = weft_arena_new();
  char *a = weft_arena_alloc(arena, 0), *b = weft_arena_alloc(arena, 0);
  assert_non_null(a);
  assert_non_null(b);
  assert_ptr_not_equal(a, b);
  assert_non_null(WEFT_NEW_ARRAY(arena, int, 0));
  weft_arena_free(arena);
  weft_arena_free(NULL);
}

static void sizes_that_overflow_are_refused(void **state) {
  (void)state;
  const struct {
    uint64_t count;
    size_t size;
  } cases[] = {{UINT64_MAX, 2}, {UINT64_C(1) << 62, 4}, {UINT64_C(1) << 63, 2}, {1, SIZE_MAX}, {UINT64_MAX, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    weft_arena *arena = weft_arena_new();
    assert_null(weft_arena_array(arena, cases[i].count, cases[i].size));
    assert_true(weft_arena_failed(arena));
    weft_arena_reset(arena);
    assert_non_null(weft_arena_alloc(arena, 8));
    assert_true(weft_arena_failed(arena));
    weft_arena_free(arena);
  }
}

static void grow_keeps_elements_and_doubles(void **state) {
  (void)state;
  weft_arena *arena = weft_arena_new();
  uint32_t *numbers = NULL;
  uint64_t capacity = 0;
  for (uint64_t i = 0; i < 100000; i++) {
    uint64_t before = capacity;
    assert_true(weft_arena_grow(arena, &numbers, i, &capacity, sizeof *numbers));
    assert_true(capacity > i);
    assert_true(capacity == before || before == 0 || capacity == before * 2);
    numbers[i] = (uint32_t)(i * 2654435761u);
    if (i % 1000 == 0) assert_non_null(weft_arena_alloc(arena, 24));
  }
  for (uint64_t i = 0; i < 100000; i++) assert_int_equal(numbers[i], (uint32_t)(i * 2654435761u));
  weft_arena_free(arena);
}

/* Two arrays growing in turn never share bytes; a lone one leaves little behind. */
static void growing_arrays_do_not_touch(void **state) {
  (void)state;
  weft_arena *arena = weft_arena_new();
  uint64_t *a = NULL, *b = NULL, a_capacity = 0, b_capacity = 0;
  for (uint64_t i = 0; i < 5000; i++) {
    assert_true(weft_arena_grow(arena, &a, i, &a_capacity, sizeof *a));
    a[i] = i;
    if (i % 3) continue;
    assert_true(weft_arena_grow(arena, &b, i / 3, &b_capacity, sizeof *b));
    b[i / 3] = ~i;
  }
  for (uint64_t i = 0; i < 5000; i++) {
    assert_int_equal(a[i], i);
    if (i % 3 == 0) assert_int_equal(b[i / 3], ~i);
  }
  weft_arena_free(arena);
}

static void grow_refuses_a_capacity_beyond_64_bits(void **state) {
  (void)state;
  weft_arena *arena = weft_arena_new();
  char *items = NULL;
  uint64_t capacity = UINT64_C(1) << 63;
  assert_false(weft_arena_grow(arena, &items, capacity, &capacity, 1));
  assert_int_equal(capacity, UINT64_C(1) << 63);
  capacity = UINT64_C(1) << 60;
  assert_false(weft_arena_grow(arena, &items, capacity, &capacity, 64));
  assert_true(weft_arena_failed(arena));
  weft_arena_free(arena);
}

static void strings_are_copied_and_ended(void **state) {
  (void)state;
  weft_arena *arena = weft_arena_new();
  char source[] = "tensor name";
  char *copy = weft_arena_string(arena, source, 6);
  source[0] = 'X';
  assert_string_equal(copy, "tensor");
  assert_string_equal(weft_arena_string(arena, NULL, 0), "");
  assert_null(weft_arena_string(arena, source, SIZE_MAX));
  assert_string_equal(weft_arena_printf(arena, "%s-%d", "chip", 12), "chip-12");
  char *wide = weft_arena_printf(arena, "%100000d", 1);
  assert_int_equal(strlen(wide), 100000);
  assert_int_equal(wide[99999], '1');
  weft_arena_free(arena);
}

static void checked_sizes(void **state) {
  (void)state;
  uint64_t result;
  assert_false(weft_mul_overflow(UINT64_MAX, 1, &result));
  assert_int_equal(result, UINT64_MAX);
  assert_true(weft_mul_overflow(UINT64_C(1) << 32, UINT64_C(1) << 32, &result));
  assert_false(weft_add_overflow(UINT64_MAX - 1, 1, &result));
  assert_true(weft_add_overflow(UINT64_MAX, 1, &result));
  assert_int_equal(weft_ceil_div(0, 32), 0);
  assert_int_equal(weft_ceil_div(32, 32), 1);
  assert_int_equal(weft_ceil_div(33, 32), 2);
  assert_int_equal(weft_ceil_div(UINT64_MAX, 2), UINT64_C(1) << 63);
}

/* Published values: the FNV test vectors, and the sequence splitmix64 gives from 1234567. */
static void hashes_and_random_numbers_are_the_published_ones(void **state) {
  (void)state;
  assert_int_equal(weft_hash_bytes(0, "", 0), UINT64_C(0xcbf29ce484222325));
  assert_int_equal(weft_hash_bytes(0, "a", 1), UINT64_C(0xaf63dc4c8601ec8c));
  assert_int_equal(weft_hash_bytes(0, "foobar", 6), UINT64_C(0x85944171f73967e8));
  assert_int_equal(weft_hash_bytes(weft_hash_bytes(0, "foo", 3), "bar", 3), UINT64_C(0x85944171f73967e8));
  uint64_t random = 1234567;
  const uint64_t expected[] = {UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                               UINT64_C(9817491932198370423), UINT64_C(4593380528125082431),
                               UINT64_C(16408922859458223821)};
  for (int i = 0; i < 5; i++) assert_int_equal(weft_random_next(&random), expected[i]);
}

static void exit_codes(void **state) {
  (void)state;
  assert_int_equal(weft_status_exit_code(WEFT_OK), 0);
  assert_int_equal(weft_status_exit_code(WEFT_INVALID), 1);
  assert_int_equal(weft_status_exit_code(WEFT_USAGE), 2);
  assert_int_equal(weft_status_exit_code(WEFT_UNAVAILABLE), 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(allocations_are_aligned_zeroed_and_apart),
      cmocka_unit_test(reset_keeps_the_memory),
      cmocka_unit_test(size_zero_is_a_pointer_of_its_own),
      cmocka_unit_test(sizes_that_overflow_are_refused),
      cmocka_unit_test(grow_keeps_elements_and_doubles),
      cmocka_unit_test(growing_arrays_do_not_touch),
      cmocka_unit_test(grow_refuses_a_capacity_beyond_64_bits),
      cmocka_unit_test(strings_are_copied_and_ended),
      cmocka_unit_test(checked_sizes),
      cmocka_unit_test(hashes_and_random_numbers_are_the_published_ones),
      cmocka_unit_test(exit_codes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
