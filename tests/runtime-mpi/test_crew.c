/* The crew of a chip: every task of every job is done once, whoever helps, and jobs follow each other. */
#include "../../runtime-mpi/crew_private.h"

#include "weft/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 600000, JOBS = 3000, THREADS = 4 };

typedef struct jobs {
  weft_crew *crew;
  atomic_uchar *done; /* by task */
  uint64_t sum[THREADS][8];
  bool wrong;
  bool naps;
} jobs;

static void mark(void *context, uint64_t index, uint32_t thread) {
  jobs *all = context;
  atomic_fetch_add(&all->done[index], 1);
  all->sum[thread % THREADS][0] += index; /* a thread's own */
}

static void check(jobs *all, uint64_t count) {
  weft_crew_do(all->crew, count, mark, all);
  for (uint64_t i = 0; i < count; i++) {
    if (atomic_load(&all->done[i]) != 1) all->wrong = true;
    atomic_store(&all->done[i], 0);
  }
}

static void run_jobs(void *context) {
  jobs *all = context;
  uint64_t random = 5;
  for (int j = 0; j < JOBS; j++) {
    check(all, weft_random_next(&random) % 40);
    if (all->naps && j % 100 == 0) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* helpers go to sleep */
  }
  check(all, MOST); /* more than one announcement holds */
}

static void every_task_once(void **state) {
  (void)state;
  for (int mode = 0; mode < 4; mode++) {
    jobs all = {.crew = weft_crew_new(mode & 1), .done = calloc(MOST, sizeof(atomic_uchar)), .naps = mode & 2};
    assert_true(all.crew && all.done);
    weft_crew_run(all.crew, THREADS, run_jobs, &all);
    assert_false(all.wrong);
    weft_crew_free(all.crew);
    free(all.done);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_task_once)};
  return cmocka_run_group_tests_name("crew", tests, NULL, NULL);
}
