#include "weft/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

enum { MOST = 5000 };

typedef struct calls {
  uint64_t results[MOST];
  uint32_t times[MOST];
} calls;

static void body(void *context, uint64_t index) {
  calls *c = context;
  uint64_t random = index;
  for (uint64_t i = 0; i < index % 50; i++) weft_random_next(&random);
  c->results[index] = random;
  c->times[index]++;
}

/* Every index exactly once, and the same results from any number of threads. */
static void every_index_once_on_any_number_of_threads(void **state) {
  (void)state;
  static calls plain, threaded;
  const uint64_t counts[] = {0, 1, 2, 3, 17, MOST};
  const int threads[] = {0, 1, 2, 3, 8};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    memset(&plain, 0, sizeof plain);
    for (uint64_t index = 0; index < counts[i]; index++) body(&plain, index);
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
      memset(&threaded, 0, sizeof threaded);
      weft_parallel_for(counts[i], threads[t], body, &threaded);
      assert_memory_equal(&plain, &threaded, sizeof plain);
    }
  }
}

static void in_order(void *context, uint64_t index) {
  uint64_t *next = context;
  assert_int_equal(*next, index);
  *next = index + 1;
}

static void one_thread_is_a_plain_loop(void **state) {
  (void)state;
  uint64_t next = 0;
  weft_parallel_for(1000, 1, in_order, &next);
  assert_int_equal(next, 1000);
}

static void outer(void *context, uint64_t index) {
  calls *all = context;
  weft_parallel_for(100, 2, body, &all[index]);
}

static void loops_nest(void **state) {
  (void)state;
  static calls all[4];
  weft_parallel_for(4, 2, outer, all);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 100; j++) assert_int_equal(all[i].times[j], 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_index_once_on_any_number_of_threads),
      cmocka_unit_test(one_thread_is_a_plain_loop),
      cmocka_unit_test(loops_nest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
