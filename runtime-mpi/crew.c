/* The threads of a chip.
 *
 * They are one OpenMP team that lives as long as the chip runs: its first thread runs the steps, the others help. Work
 * is a number of tasks that whoever comes takes one by one; the first thread works too and waits only for tasks that
 * somebody has begun. So a helper that the system lets sleep costs nothing but its help, where a barrier would wait for
 * it.
 *
 * One word announces a job: its number, its tasks, and how many of them are taken. A helper reads what the job is and
 * then takes a task by comparing and swapping the whole word: when that succeeds, what it read belongs to this job,
 * because the next one is only made when all tasks of this one are done. */
#include "crew_private.h"

#include "weft/base.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#if defined(__x86_64__)
#define RELAX() __builtin_ia32_pause()
#else
#define RELAX() __asm__ volatile("" ::: "memory")
#endif

enum { IDLE_SPINS = 20000, BUSY_SPINS = 1000, TASK_BITS = 18, MOST_TASKS = (1 << TASK_BITS) - 1 };

static inline uint64_t word_of(uint64_t job, uint64_t count) { return job << 2 * TASK_BITS | count << TASK_BITS; }
static inline uint64_t job_of(uint64_t word) { return word >> 2 * TASK_BITS; }
static inline uint64_t count_of(uint64_t word) { return word >> TASK_BITS & MOST_TASKS; }
static inline uint64_t taken_of(uint64_t word) { return word & MOST_TASKS; }

struct weft_crew {
  _Alignas(64) atomic_uint_fast64_t next; /* the job, its tasks, those taken */
  _Alignas(64) atomic_uint_fast64_t left; /* tasks not done */
  _Atomic(weft_crew_body) body;
  _Atomic(void *) context;
  atomic_uint_fast64_t first; /* index of task 0 */
  atomic_int first_core;      /* where the first thread was when it made the job */
  atomic_int sleepers;
  atomic_bool over;
  uint64_t job;
  int idle_spins;
  pthread_mutex_t lock;
  pthread_cond_t wakes;
};

weft_crew *weft_crew_new(bool spins) {
  weft_crew *crew = aligned_alloc(64, (sizeof *crew + 63) / 64 * 64);
  if (!crew) return NULL;
  *crew = (weft_crew){.idle_spins = spins ? IDLE_SPINS : 0};
  pthread_mutex_init(&crew->lock, NULL);
  pthread_cond_init(&crew->wakes, NULL);
  return crew;
}

void weft_crew_free(weft_crew *crew) {
  if (!crew) return;
  pthread_cond_destroy(&crew->wakes);
  pthread_mutex_destroy(&crew->lock);
  free(crew);
}

/* Takes and does tasks of the job in `seen` until there are none. */
static void work(weft_crew *crew, uint64_t seen, uint32_t thread) {
  weft_crew_body body = atomic_load_explicit(&crew->body, memory_order_relaxed);
  void *context = atomic_load_explicit(&crew->context, memory_order_relaxed);
  uint64_t first = atomic_load_explicit(&crew->first, memory_order_relaxed), job = job_of(seen);
  while (job_of(seen) == job && taken_of(seen) < count_of(seen)) {
    if (!atomic_compare_exchange_weak_explicit(&crew->next, &seen, seen + 1, memory_order_acq_rel,
                                               memory_order_acquire))
      continue;
    body(context, first + taken_of(seen), thread);
    atomic_fetch_sub_explicit(&crew->left, 1, memory_order_acq_rel);
    seen++;
  }
}

static void sleep_until(weft_crew *crew, uint64_t job) {
  pthread_mutex_lock(&crew->lock);
  atomic_fetch_add(&crew->sleepers, 1);
  while (job_of(atomic_load(&crew->next)) == job && !atomic_load(&crew->over))
    pthread_cond_wait(&crew->wakes, &crew->lock);
  atomic_fetch_sub(&crew->sleepers, 1);
  pthread_mutex_unlock(&crew->lock);
}

static void wake(weft_crew *crew) {
  if (atomic_load(&crew->sleepers) == 0) return;
  pthread_mutex_lock(&crew->lock);
  pthread_cond_broadcast(&crew->wakes);
  pthread_mutex_unlock(&crew->lock);
}

/* A system that wakes a helper may put it on the core of the first thread, which does not give it up, and leave it
 * there while another core idles. The helper then leaves by itself: for a moment that core is forbidden to it. */
static void leave_first_core(weft_crew *crew) {
  int core = sched_getcpu();
  if (core < 0 || core >= CPU_SETSIZE || core != atomic_load_explicit(&crew->first_core, memory_order_relaxed)) return;
  cpu_set_t allowed, others;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  others = allowed;
  CPU_CLR(core, &others);
  if (sched_setaffinity(0, sizeof others, &others) == 0) sched_setaffinity(0, sizeof allowed, &allowed);
}

/* Looks out for another job than `job`: as long as that one is not done, and some time more. */
static uint64_t look_out(weft_crew *crew, uint64_t job) {
  uint64_t seen = atomic_load_explicit(&crew->next, memory_order_acquire);
  for (int i = 0; job_of(seen) == job && i < crew->idle_spins; i++) {
    RELAX();
    if (atomic_load_explicit(&crew->left, memory_order_relaxed) > 0) i = 0;
    seen = atomic_load_explicit(&crew->next, memory_order_acquire);
  }
  return seen;
}

static void help(weft_crew *crew, uint32_t thread) {
  uint64_t job = 0;
  while (!atomic_load_explicit(&crew->over, memory_order_acquire)) {
    uint64_t seen = look_out(crew, job);
    if (job_of(seen) == job) {
      sleep_until(crew, job);
      continue;
    }
    job = job_of(seen);
    if (crew->idle_spins) leave_first_core(crew);
    work(crew, seen, thread);
  }
}

static void do_job(weft_crew *crew, uint64_t first, uint64_t count, weft_crew_body body, void *context) {
  crew->job = job_of(word_of(crew->job + 1, 0));
  atomic_store_explicit(&crew->body, body, memory_order_relaxed);
  atomic_store_explicit(&crew->context, context, memory_order_relaxed);
  atomic_store_explicit(&crew->first, first, memory_order_relaxed);
  atomic_store_explicit(&crew->left, count, memory_order_relaxed);
  if (crew->idle_spins) atomic_store_explicit(&crew->first_core, sched_getcpu(), memory_order_relaxed);
  atomic_store(&crew->next, word_of(crew->job, count));
  wake(crew);
  work(crew, word_of(crew->job, count), 0);
  for (uint64_t spins = 0; atomic_load_explicit(&crew->left, memory_order_acquire) > 0; spins++) {
    RELAX();
    if (spins > BUSY_SPINS) sched_yield();
  }
}

void weft_crew_do(weft_crew *crew, uint64_t count, weft_crew_body body, void *context) {
  for (uint64_t first = 0; first < count; first += MOST_TASKS)
    do_job(crew, first, weft_min_u64(MOST_TASKS, count - first), body, context);
}

void weft_crew_run(weft_crew *crew, int threads, void (*first)(void *context), void *context) {
#pragma omp parallel num_threads(threads)
  {
    if (omp_get_thread_num() == 0) {
      first(context);
      atomic_store(&crew->over, true);
      wake(crew);
    } else {
      help(crew, (uint32_t)omp_get_thread_num());
    }
  }
}
