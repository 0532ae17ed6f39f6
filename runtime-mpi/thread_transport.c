/* The thread transport: a mailbox a chip, rendezvous, one copy at most.
 *
 * A mailbox holds what was posted to its chip and what the chip asked for, as long as it has no partner. Whoever posts
 * second finds the partner and moves the bytes itself, outside the lock, from the sender's memory into the receiver's;
 * a view takes the sender's address instead. So a message needs nobody to wait for it to get through. */
#include "thread_transport_private.h"

#include "chip_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct thread_end thread_end;

typedef struct thread_transfer {
  weft_transfer base;
  thread_end *owner;
  struct thread_transfer *next;
  struct thread_transfer *shown; /* of a view that shows the sender's memory: the send */
  bool stable, views;
  atomic_int state; /* a weft_wait */
} thread_transfer;

typedef struct mailbox {
  thread_transfer *first, *last;
} mailbox;

struct thread_end {
  weft_endpoint base;
  weft_thread_net *net;
  pthread_mutex_t lock; /* of the mailbox and of completions of this end's transfers */
  pthread_cond_t changed;
  mailbox sends;    /* posted to this chip */
  mailbox receives; /* posted by this chip */
  thread_transfer *free;
  thread_transfer **blocks; /* all that was allocated */
  uint32_t block_count;
};

struct weft_thread_net {
  weft_process process;
  uint32_t chips;
  thread_end *ends;
  atomic_bool stopped;
  int spins;
  char host[256];
};

enum { BLOCK = 32 };

static thread_transfer *transfer_new(thread_end *end) {
  if (!end->free) {
    thread_transfer *block = calloc(BLOCK, sizeof *block);
    thread_transfer **blocks = block ? realloc(end->blocks, (end->block_count + 1) * sizeof(thread_transfer *)) : NULL;
    if (!blocks) {
      free(block);
      return NULL;
    }
    end->blocks = blocks;
    end->blocks[end->block_count++] = block;
    for (int i = 0; i < BLOCK; i++) {
      block[i].next = end->free;
      end->free = &block[i];
    }
  }
  thread_transfer *transfer = end->free;
  end->free = transfer->next;
  transfer->owner = end;
  transfer->next = NULL;
  transfer->shown = NULL;
  transfer->stable = transfer->views = false;
  atomic_init(&transfer->state, WEFT_WAIT_PENDING);
  return transfer;
}

static void enqueue(mailbox *queue, thread_transfer *transfer) {
  if (queue->last)
    queue->last->next = transfer;
  else
    queue->first = transfer;
  queue->last = transfer;
}

/* Takes the oldest entry whose owner (sends) or peer (receives) is `chip`. */
static thread_transfer *take(mailbox *queue, uint32_t chip, bool by_owner) {
  thread_transfer *before = NULL;
  for (thread_transfer *at = queue->first; at; before = at, at = at->next) {
    if ((by_owner ? at->owner->base.chip : at->base.peer) != chip) continue;
    if (before)
      before->next = at->next;
    else
      queue->first = at->next;
    if (queue->last == at) queue->last = before;
    at->next = NULL;
    return at;
  }
  return NULL;
}

static void complete(thread_transfer *transfer, weft_wait state) {
  thread_end *owner = transfer->owner;
  pthread_mutex_lock(&owner->lock);
  atomic_store_explicit(&transfer->state, state, memory_order_release);
  pthread_cond_broadcast(&owner->changed);
  pthread_mutex_unlock(&owner->lock);
}

static void deliver(thread_transfer *send, thread_transfer *receive) {
  if (send->base.bytes != receive->base.bytes) {
    complete(send, WEFT_WAIT_MISMATCH);
    complete(receive, WEFT_WAIT_MISMATCH);
  } else if (receive->views && send->stable) {
    receive->base.data = send->base.data;
    receive->shown = send;
    complete(receive, WEFT_WAIT_DONE);
  } else {
    if (send->base.bytes) memcpy(receive->base.data, send->base.data, send->base.bytes);
    complete(receive, WEFT_WAIT_DONE);
    complete(send, WEFT_WAIT_DONE);
  }
}

static weft_transfer *thread_send(weft_endpoint *base, uint32_t peer, const void *data, uint64_t bytes, bool stable) {
  thread_end *end = (thread_end *)base, *to = &end->net->ends[peer];
  thread_transfer *send = transfer_new(end);
  if (!send) return NULL;
  send->base = (weft_transfer){.peer = peer, .data = (void *)(uintptr_t)data, .bytes = bytes};
  send->stable = stable;
  pthread_mutex_lock(&to->lock);
  thread_transfer *receive = take(&to->receives, base->chip, false);
  if (!receive) enqueue(&to->sends, send);
  pthread_mutex_unlock(&to->lock);
  if (receive) deliver(send, receive);
  return &send->base;
}

static weft_transfer *post_receive(weft_endpoint *base, uint32_t peer, void *data, uint64_t bytes, bool views) {
  thread_end *end = (thread_end *)base;
  thread_transfer *receive = transfer_new(end);
  if (!receive) return NULL;
  receive->base = (weft_transfer){.peer = peer, .data = data, .bytes = bytes};
  receive->views = views;
  pthread_mutex_lock(&end->lock);
  thread_transfer *send = take(&end->sends, peer, true);
  if (!send) enqueue(&end->receives, receive);
  pthread_mutex_unlock(&end->lock);
  if (send) deliver(send, receive);
  return &receive->base;
}

static weft_transfer *thread_receive(weft_endpoint *end, uint32_t peer, void *data, uint64_t bytes) {
  return post_receive(end, peer, data, bytes, false);
}

static weft_transfer *thread_view(weft_endpoint *end, uint32_t peer, void *scratch, uint64_t bytes) {
  return post_receive(end, peer, scratch, bytes, true);
}

static weft_wait state_of(const thread_transfer *transfer) {
  return (weft_wait)atomic_load_explicit(&transfer->state, memory_order_acquire);
}

static weft_wait thread_test(weft_endpoint *end, weft_transfer *transfer) {
  weft_wait state = state_of((thread_transfer *)transfer);
  if (state == WEFT_WAIT_PENDING && atomic_load(&((thread_end *)end)->net->stopped)) return WEFT_WAIT_STOPPED;
  return state;
}

static struct timespec deadline_after(double seconds) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  double whole = (double)(int64_t)seconds;
  now.tv_sec += (time_t)whole;
  now.tv_nsec += (long)((seconds - whole) * 1e9);
  if (now.tv_nsec >= 1000000000) {
    now.tv_nsec -= 1000000000;
    now.tv_sec++;
  }
  return now;
}

static weft_wait thread_wait(weft_endpoint *base, weft_transfer *transfer) {
  thread_end *end = (thread_end *)base;
  for (int i = 0; i < end->net->spins; i++) {
    weft_wait state = thread_test(base, transfer);
    if (state != WEFT_WAIT_PENDING) return state;
  }
  struct timespec deadline = deadline_after(base->timeout);
  int error = 0;
  weft_wait state;
  pthread_mutex_lock(&end->lock);
  while ((state = thread_test(base, transfer)) == WEFT_WAIT_PENDING && error != ETIMEDOUT) {
    if (base->timeout > 0)
      error = pthread_cond_timedwait(&end->changed, &end->lock, &deadline);
    else
      pthread_cond_wait(&end->changed, &end->lock);
  }
  pthread_mutex_unlock(&end->lock);
  return state == WEFT_WAIT_PENDING ? WEFT_WAIT_TIMEOUT : state;
}

static void thread_finish(weft_endpoint *base, weft_transfer *transfer) {
  thread_end *end = (thread_end *)base;
  thread_transfer *done = (thread_transfer *)transfer;
  if (state_of(done) == WEFT_WAIT_PENDING) return; /* after a failure: it may still be in a mailbox */
  if (done->shown) complete(done->shown, WEFT_WAIT_DONE);
  done->shown = NULL;
  done->next = end->free;
  end->free = done;
}

static const char *thread_reason(weft_endpoint *end) {
  (void)end;
  return "";
}

static const weft_transport thread_transport = {
    .name = "threads",
    .send = thread_send,
    .receive = thread_receive,
    .view = thread_view,
    .test = thread_test,
    .wait = thread_wait,
    .finish = thread_finish,
    .reason = thread_reason,
};

/* ---- the process ---- */

static bool gather_one(weft_process *process, const uint64_t *words, uint32_t count, uint64_t *all) {
  (void)process;
  memcpy(all, words, count * sizeof *all);
  return true;
}

static void net_stop(weft_process *process) {
  weft_thread_net *net = (weft_thread_net *)process;
  atomic_store(&net->stopped, true);
  for (uint32_t c = 0; c < net->chips; c++) {
    pthread_mutex_lock(&net->ends[c].lock);
    pthread_cond_broadcast(&net->ends[c].changed);
    pthread_mutex_unlock(&net->ends[c].lock);
  }
}

static bool net_stopped(weft_process *process) { return atomic_load(&((weft_thread_net *)process)->stopped); }

weft_thread_net *weft_thread_net_new(uint32_t chips) {
  weft_thread_net *net = calloc(1, sizeof *net);
  if (!net) return NULL;
  net->ends = calloc((size_t)chips + 1, sizeof *net->ends);
  if (!net->ends) {
    free(net);
    return NULL;
  }
  net->chips = chips;
  /* Spinning pays only where every chip has a core of its own. */
  net->spins = sysconf(_SC_NPROCESSORS_ONLN) >= (long)chips ? 2000 : 0;
  if (gethostname(net->host, sizeof net->host - 1) != 0) strcpy(net->host, "localhost");
  net->process = (weft_process){.ranks = 1, .host_ranks = 1, .host = net->host};
  net->process.gather = gather_one;
  net->process.stop = net_stop;
  net->process.stopped = net_stopped;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  for (uint32_t c = 0; c < chips; c++) {
    net->ends[c].base = (weft_endpoint){.transport = &thread_transport, .chip = c};
    net->ends[c].net = net;
    pthread_mutex_init(&net->ends[c].lock, NULL);
    pthread_cond_init(&net->ends[c].changed, &monotonic);
  }
  pthread_condattr_destroy(&monotonic);
  return net;
}

void weft_thread_net_free(weft_thread_net *net) {
  if (!net) return;
  for (uint32_t c = 0; c < net->chips; c++) {
    thread_end *end = &net->ends[c];
    for (uint32_t b = 0; b < end->block_count; b++) free(end->blocks[b]);
    free(end->blocks);
    pthread_cond_destroy(&end->changed);
    pthread_mutex_destroy(&end->lock);
  }
  free(net->ends);
  free(net);
}

void weft_thread_net_timeout(weft_thread_net *net, double seconds) {
  for (uint32_t c = 0; c < net->chips; c++) net->ends[c].base.timeout = seconds;
}

weft_endpoint *weft_thread_net_end(weft_thread_net *net, uint32_t chip) { return &net->ends[chip].base; }

weft_process *weft_thread_net_process(weft_thread_net *net) { return &net->process; }
