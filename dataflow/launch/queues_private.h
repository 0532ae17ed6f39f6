/* The channels of running threads: queues without bound, filled and emptied in batches. */
#ifndef WEFT_DATAFLOW_LAUNCH_QUEUES_PRIVATE_H
#define WEFT_DATAFLOW_LAUNCH_QUEUES_PRIVATE_H

#include "weft/dataflow_run.h"

#include <pthread.h>
#include <stdatomic.h>

enum { BATCH_WORDS = 1024 };

/* Words in order; `words` grows. */
typedef struct word_list {
  uint64_t *words;
  uint64_t begin, end, capacity;
} word_list;
bool word_list_append(word_list *list, const uint64_t *words, uint64_t count);
static inline uint64_t word_list_length(const word_list *list) { return list->end - list->begin; }
/* The first word; NULL when there never was one. */
static inline uint64_t *word_list_first(const word_list *list) {
  return list->words ? list->words + list->begin : NULL;
}

typedef struct queue_thread queue_thread;

/* What was sent and not yet taken, under the lock of all queues. */
typedef struct queue {
  word_list list;
  queue_thread *waiter; /* of this process */
  atomic_bool hungry;   /* senders hand on what they hold at once */
  uint32_t home;        /* the process that receives */
} queue;

/* One thread's hold on a queue: what it has taken, and what it has not handed on. */
typedef struct queue_port {
  word_list in, out;
} queue_port;

struct queue_thread {
  struct weft_df_queues *all;
  queue_port *ports; /* one a queue */
  weft_df_env env;
  pthread_cond_t woken;
  bool waiting;
  bool echo;          /* it ended because another had failed, or because nobody was left to send */
  uint32_t waits_for; /* a queue, of the last wait */
};

typedef struct weft_df_queues {
  pthread_mutex_t lock;
  queue *items;
  uint32_t count;
  uint32_t rank;
  bool remote;            /* other processes may send: only they and this one together know when nothing comes */
  uint32_t live, waiting; /* threads of this process that have not ended; those that wait for a token */
  atomic_bool stopped;
  bool failed; /* memory */
} weft_df_queues;

/* Puts words into a queue and wakes who waits for them. */
bool queues_put(weft_df_queues *all, uint32_t index, const uint64_t *words, uint64_t count);
/* Every wait ends. */
void queues_stop(weft_df_queues *all);
/* Whether nothing can move before a message comes, and how many threads are left. */
bool queues_idle(weft_df_queues *all, uint32_t *live);
/* Takes all words for another process, leaving `*into`'s storage; false when there are none. */
bool queues_take_outgoing(weft_df_queues *all, uint32_t index, word_list *into);

/* Puts words back in front of a queue. */
bool queues_put_back(weft_df_queues *all, uint32_t index, const uint64_t *words, uint64_t count);

/* A thread's env and ports; it counts as live from now on. */
bool queue_thread_open(queue_thread *thread, weft_df_queues *all);
/* Hands on what it holds; it is not live any more. What it took and did not use goes back. */
void queue_thread_close(queue_thread *thread);
void queue_thread_free(queue_thread *thread);

#endif
