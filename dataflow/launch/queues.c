/* Queues between threads. A thread takes all that waits at once and hands on what it sends in batches, at the latest
 * before it waits; so the one lock is rarely held. */
#include "queues_private.h"

#include <stdlib.h>
#include <string.h>

bool word_list_append(word_list *list, const uint64_t *words, uint64_t count) {
  if (list->begin == list->end) list->begin = list->end = 0;
  if (count > list->capacity - list->end) {
    uint64_t length = word_list_length(list), wanted = list->capacity ? list->capacity : BATCH_WORDS;
    while (wanted - wanted / 4 < length + count)
      if (wanted > UINT64_MAX / 16)
        return false;
      else
        wanted *= 2;
    uint64_t *grown = malloc(wanted * sizeof *grown);
    if (!grown) return false;
    if (length) memcpy(grown, list->words + list->begin, length * sizeof *grown);
    free(list->words);
    *list = (word_list){.words = grown, .end = length, .capacity = wanted};
  }
  if (count) memcpy(list->words + list->end, words, count * sizeof *words);
  list->end += count;
  return true;
}

static void swap_lists(word_list *a, word_list *b) {
  word_list held = *a;
  *a = *b;
  *b = held;
}

/* ---- under the lock ------------------------------------------------------------------------------------------- */

static void wake(weft_df_queues *all, queue_thread *thread) {
  if (!thread->waiting) return;
  thread->waiting = false;
  all->waiting--;
  pthread_cond_signal(&thread->woken);
}

static void stop(weft_df_queues *all) {
  atomic_store(&all->stopped, true);
  for (uint32_t i = 0; i < all->count; i++)
    if (all->items[i].waiter) wake(all, all->items[i].waiter);
}

static void put(weft_df_queues *all, queue *q, const uint64_t *words, uint64_t count) {
  if (!word_list_append(&q->list, words, count)) {
    all->failed = true;
    stop(all);
  }
  if (q->waiter) wake(all, q->waiter);
}

/* Without other processes, threads that all wait will wait for ever. */
static void check_end(weft_df_queues *all) {
  if (!all->remote && all->live && all->waiting == all->live) stop(all);
}

static void hand_on(queue_thread *thread, uint32_t index) {
  queue_port *port = &thread->ports[index];
  put(thread->all, &thread->all->items[index], word_list_first(&port->out), word_list_length(&port->out));
  port->out.begin = port->out.end = 0;
}

static void hand_on_all(queue_thread *thread) {
  for (uint32_t i = 0; i < thread->all->count; i++)
    if (word_list_length(&thread->ports[i].out)) hand_on(thread, i);
}

/* Takes what waits in queue `index`; false when that is nothing. */
static bool take(queue_thread *thread, uint32_t index) {
  queue_port *port = &thread->ports[index];
  if (word_list_length(&port->in)) return true;
  queue *q = &thread->all->items[index];
  port->in.begin = port->in.end = 0;
  if (word_list_length(&q->list)) swap_lists(&q->list, &port->in);
  return word_list_length(&port->in) > 0;
}

static bool take_one_of(queue_thread *thread, const uint32_t *indices, uint32_t count) {
  bool any = false;
  for (uint32_t i = 0; i < count; i++) any |= take(thread, indices[i]);
  return any;
}

static void register_waiter(queue_thread *thread, const uint32_t *indices, uint32_t count, bool waits) {
  for (uint32_t i = 0; i < count; i++) {
    queue *q = &thread->all->items[indices[i]];
    q->waiter = waits ? thread : NULL;
    atomic_store(&q->hungry, waits);
  }
}

/* ---- what emitted code calls ---------------------------------------------------------------------------------- */

static int wait_for(weft_df_env *env, const uint32_t *indices, uint32_t count) {
  queue_thread *thread = env->context;
  weft_df_queues *all = thread->all;
  pthread_mutex_lock(&all->lock);
  thread->waits_for = count ? indices[0] : 0;
  hand_on_all(thread);
  bool came = take_one_of(thread, indices, count);
  if (!came) register_waiter(thread, indices, count, true);
  while (!came && !atomic_load(&all->stopped)) {
    thread->waiting = true;
    all->waiting++;
    check_end(all);
    while (thread->waiting) pthread_cond_wait(&thread->woken, &all->lock);
    came = take_one_of(thread, indices, count);
  }
  register_waiter(thread, indices, count, false);
  if (!came) thread->echo = true;
  pthread_mutex_unlock(&all->lock);
  return !came;
}

static int send(weft_df_env *env, uint32_t index, uint64_t word) {
  queue_thread *thread = env->context;
  weft_df_queues *all = thread->all;
  queue_port *port = &thread->ports[index];
  if (atomic_load_explicit(&all->stopped, memory_order_relaxed)) {
    thread->echo = true;
    return 1;
  }
  if (!word_list_append(&port->out, &word, 1)) return 1;
  if (word_list_length(&port->out) < BATCH_WORDS &&
      !atomic_load_explicit(&all->items[index].hungry, memory_order_relaxed))
    return 0;
  pthread_mutex_lock(&all->lock);
  hand_on(thread, index);
  pthread_mutex_unlock(&all->lock);
  return 0;
}

static int peek(weft_df_env *env, uint32_t index, uint64_t *word) {
  queue_thread *thread = env->context;
  queue_port *port = &thread->ports[index];
  if (!word_list_length(&port->in)) {
    pthread_mutex_lock(&thread->all->lock);
    bool came = take(thread, index);
    pthread_mutex_unlock(&thread->all->lock);
    if (!came) return 1;
  }
  *word = port->in.words[port->in.begin];
  return 0;
}

static int receive(weft_df_env *env, uint32_t index, uint64_t *word) {
  queue_thread *thread = env->context;
  queue_port *port = &thread->ports[index];
  if (!word_list_length(&port->in) && wait_for(env, &index, 1)) return 1;
  *word = port->in.words[port->in.begin++];
  return 0;
}

/* ---- threads -------------------------------------------------------------------------------------------------- */

bool queue_thread_open(queue_thread *thread, weft_df_queues *all) {
  *thread = (queue_thread){.all = all, .ports = calloc((size_t)all->count + 1, sizeof(queue_port))};
  if (!thread->ports || pthread_cond_init(&thread->woken, NULL)) {
    free(thread->ports);
    thread->ports = NULL;
    return false;
  }
  thread->env = (weft_df_env){.send = send, .receive = receive, .peek = peek, .wait = wait_for, .context = thread};
  pthread_mutex_lock(&all->lock);
  all->live++;
  pthread_mutex_unlock(&all->lock);
  return true;
}

void queue_thread_close(queue_thread *thread) {
  weft_df_queues *all = thread->all;
  pthread_mutex_lock(&all->lock);
  hand_on_all(thread);
  for (uint32_t i = 0; i < all->count; i++) {
    word_list *in = &thread->ports[i].in, *list = &all->items[i].list;
    if (!word_list_length(in)) continue;
    if (!word_list_append(in, word_list_first(list), word_list_length(list))) all->failed = true;
    swap_lists(in, list);
  }
  all->live--;
  check_end(all);
  pthread_mutex_unlock(&all->lock);
}

void queue_thread_free(queue_thread *thread) {
  if (!thread->ports) return;
  for (uint32_t i = 0; i < thread->all->count; i++) {
    free(thread->ports[i].in.words);
    free(thread->ports[i].out.words);
  }
  free(thread->ports);
  pthread_cond_destroy(&thread->woken);
}

/* ---- for who serves ------------------------------------------------------------------------------------------- */

bool queues_put(weft_df_queues *all, uint32_t index, const uint64_t *words, uint64_t count) {
  pthread_mutex_lock(&all->lock);
  put(all, &all->items[index], words, count);
  bool good = !all->failed;
  pthread_mutex_unlock(&all->lock);
  return good;
}

void queues_stop(weft_df_queues *all) {
  pthread_mutex_lock(&all->lock);
  stop(all);
  pthread_mutex_unlock(&all->lock);
}

bool queues_idle(weft_df_queues *all, uint32_t *live) {
  pthread_mutex_lock(&all->lock);
  bool idle = all->waiting == all->live;
  for (uint32_t i = 0; idle && i < all->count; i++)
    idle = all->items[i].home == all->rank || !word_list_length(&all->items[i].list);
  *live = all->live;
  pthread_mutex_unlock(&all->lock);
  return idle;
}

bool queues_put_back(weft_df_queues *all, uint32_t index, const uint64_t *words, uint64_t count) {
  word_list *list = &all->items[index].list, joined = {0};
  pthread_mutex_lock(&all->lock);
  bool good = word_list_append(&joined, words, count) &&
              word_list_append(&joined, word_list_first(list), word_list_length(list));
  if (good) swap_lists(&joined, list);
  pthread_mutex_unlock(&all->lock);
  free(joined.words);
  return good;
}

bool queues_take_outgoing(weft_df_queues *all, uint32_t index, word_list *into) {
  queue *q = &all->items[index];
  into->begin = into->end = 0;
  pthread_mutex_lock(&all->lock);
  bool any = word_list_length(&q->list) > 0;
  if (any) swap_lists(&q->list, into);
  pthread_mutex_unlock(&all->lock);
  atomic_store_explicit(&q->hungry, !any, memory_order_relaxed);
  return any;
}
