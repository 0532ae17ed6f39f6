/* What a command is busy with, on a terminal, when it takes long. */
#include "progress.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { QUIET_SECONDS = 2 };

typedef struct progress {
  pthread_mutex_t lock;
  pthread_cond_t wake;
  pthread_t thread;
  const char *step;
  bool runs, ends;
} progress;

static progress it = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *tell(void *unused) {
  (void)unused;
  struct timespec begin, next;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  next = begin;
  next.tv_sec += QUIET_SECONDS;
  bool shown = false;
  pthread_mutex_lock(&it.lock);
  while (!it.ends) {
    if (pthread_cond_timedwait(&it.wake, &it.lock, &next) == 0) continue;
    fprintf(stderr, "\r%s, %lld s\033[K", it.step, (long long)(next.tv_sec - begin.tv_sec));
    shown = true;
    next.tv_sec++;
  }
  pthread_mutex_unlock(&it.lock);
  if (shown) fputs("\r\033[K", stderr);
  return NULL;
}

/** False: nobody is told, and that is all. */
static bool start(void) {
  pthread_condattr_t attributes;
  if (!isatty(STDERR_FILENO) || pthread_condattr_init(&attributes)) return false;
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  bool good = pthread_cond_init(&it.wake, &attributes) == 0;
  pthread_condattr_destroy(&attributes);
  return good && pthread_create(&it.thread, NULL, tell, NULL) == 0;
}

void weft_tool_step(const char *step) {
  pthread_mutex_lock(&it.lock);
  it.step = step;
  if (!it.runs) it.runs = start();
  pthread_mutex_unlock(&it.lock);
}

void weft_tool_step_end(void) {
  pthread_mutex_lock(&it.lock);
  bool runs = it.runs;
  it.ends = runs;
  if (runs) pthread_cond_signal(&it.wake);
  pthread_mutex_unlock(&it.lock);
  if (runs) {
    pthread_join(it.thread, NULL);
    pthread_cond_destroy(&it.wake);
  }
  it.runs = it.ends = false;
}
