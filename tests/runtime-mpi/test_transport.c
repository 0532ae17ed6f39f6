/* The thread transport by itself: order, whichever side posts first, views, and the ends of waits. */
#include "../../runtime-mpi/thread_transport_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHIPS = 5, ROUNDS = 200, WORDS = 64 };

typedef struct chatter {
  weft_thread_net *net;
  uint32_t chip;
  bool wrong;
} chatter;

static void nap(uint64_t *random) {
  if (weft_random_next(random) % 8 == 0)
    nanosleep(&(struct timespec){.tv_nsec = (long)(weft_random_next(random) % 200000)}, NULL);
}

/* The words of message `round` from one chip to another. */
static void fill(uint64_t *words, uint64_t count, uint32_t from, uint32_t to, uint32_t round) {
  for (uint64_t i = 0; i < count; i++)
    words[i] = ((uint64_t)from << 48) + ((uint64_t)to << 32) + ((uint64_t)round << 8) + i % 251;
}

/* Every chip sends to every other, each round, messages of a size that depends on the round, posted in a random order
 * of peers; receives are posted before or after, as copies or as views. */
static void *talk(void *context) {
  chatter *self = context;
  weft_endpoint *end = weft_thread_net_end(self->net, self->chip);
  const weft_transport *transport = end->transport;
  uint64_t random = self->chip + 77;
  static const int scratch_words = WORDS;
  uint64_t(*out)[WORDS] = calloc(CHIPS, sizeof *out), (*in)[WORDS] = calloc(CHIPS, sizeof *in);
  for (uint32_t round = 0; round < ROUNDS; round++) {
    uint64_t count = round % (uint64_t)scratch_words, bytes = count * sizeof(uint64_t);
    weft_transfer *sends[CHIPS], *receives[CHIPS];
    bool first = weft_random_next(&random) % 2;
    for (int phase = 0; phase < 2; phase++)
      for (uint32_t i = 1; i < CHIPS; i++) {
        uint32_t peer = (self->chip + i) % CHIPS;
        nap(&random);
        if ((phase == 0) == first) {
          fill(out[peer], count, self->chip, peer, round);
          sends[peer] = transport->send(end, peer, out[peer], bytes, weft_random_next(&random) % 2);
        } else {
          receives[peer] = weft_random_next(&random) % 2 ? transport->view(end, peer, in[peer], bytes)
                                                         : transport->receive(end, peer, in[peer], bytes);
        }
      }
    for (uint32_t i = 1; i < CHIPS; i++) {
      uint32_t peer = (self->chip + i) % CHIPS;
      uint64_t want[WORDS];
      fill(want, count, peer, self->chip, round);
      self->wrong |= transport->wait(end, receives[peer]) != WEFT_WAIT_DONE;
      self->wrong |= memcmp(receives[peer]->data, want, bytes) != 0;
      transport->finish(end, receives[peer]);
    }
    for (uint32_t i = 1; i < CHIPS; i++) {
      uint32_t peer = (self->chip + i) % CHIPS;
      self->wrong |= transport->wait(end, sends[peer]) != WEFT_WAIT_DONE;
      transport->finish(end, sends[peer]);
    }
  }
  free(out);
  free(in);
  return NULL;
}

static void messages_keep_their_order(void **state) {
  (void)state;
  weft_thread_net *net = weft_thread_net_new(CHIPS);
  chatter chatters[CHIPS];
  pthread_t threads[CHIPS];
  for (uint32_t c = 0; c < CHIPS; c++) {
    chatters[c] = (chatter){.net = net, .chip = c};
    assert_int_equal(pthread_create(&threads[c], NULL, talk, &chatters[c]), 0);
  }
  for (uint32_t c = 0; c < CHIPS; c++) {
    pthread_join(threads[c], NULL);
    assert_false(chatters[c].wrong);
  }
  weft_thread_net_free(net);
}

/* Whoever posts second moves the bytes: nobody has to wait for that. */
static void posting_second_completes_both(void **state) {
  (void)state;
  weft_thread_net *net = weft_thread_net_new(2);
  weft_endpoint *a = weft_thread_net_end(net, 0), *b = weft_thread_net_end(net, 1);
  const weft_transport *transport = a->transport;
  int value = 7, got = 0;
  weft_transfer *send = transport->send(a, 1, &value, sizeof value, false);
  assert_int_equal(transport->test(a, send), WEFT_WAIT_PENDING);
  weft_transfer *receive = transport->receive(b, 0, &got, sizeof got);
  assert_int_equal(transport->test(a, send), WEFT_WAIT_DONE);
  assert_int_equal(transport->test(b, receive), WEFT_WAIT_DONE);
  assert_int_equal(got, 7);
  transport->finish(a, send);
  transport->finish(b, receive);
  receive = transport->receive(a, 1, &got, sizeof got);
  value = 9;
  send = transport->send(b, 0, &value, sizeof value, false);
  assert_int_equal(transport->test(a, receive), WEFT_WAIT_DONE);
  assert_int_equal(got, 9);
  transport->finish(a, receive);
  transport->finish(b, send);
  weft_thread_net_free(net);
}

/* A view of stable bytes is the sender's memory, and the send is done when the view ends; other bytes are copied. */
static void views_show_the_sender(void **state) {
  (void)state;
  weft_thread_net *net = weft_thread_net_new(2);
  weft_endpoint *a = weft_thread_net_end(net, 0), *b = weft_thread_net_end(net, 1);
  const weft_transport *transport = a->transport;
  int value = 7, scratch = 0;
  weft_transfer *send = transport->send(a, 1, &value, sizeof value, true);
  weft_transfer *view = transport->view(b, 0, &scratch, sizeof scratch);
  assert_int_equal(transport->wait(b, view), WEFT_WAIT_DONE);
  assert_ptr_equal(view->data, &value);
  assert_int_equal(transport->test(a, send), WEFT_WAIT_PENDING);
  transport->finish(b, view);
  assert_int_equal(transport->test(a, send), WEFT_WAIT_DONE);
  transport->finish(a, send);
  send = transport->send(a, 1, &value, sizeof value, false);
  view = transport->view(b, 0, &scratch, sizeof scratch);
  assert_int_equal(transport->wait(b, view), WEFT_WAIT_DONE);
  assert_ptr_equal(view->data, &scratch);
  assert_int_equal(scratch, 7);
  transport->finish(b, view);
  transport->finish(a, send);
  weft_thread_net_free(net);
}

static void waits_end(void **state) {
  (void)state;
  weft_thread_net *net = weft_thread_net_new(2);
  weft_thread_net_timeout(net, 0.05);
  weft_endpoint *a = weft_thread_net_end(net, 0), *b = weft_thread_net_end(net, 1);
  const weft_transport *transport = a->transport;
  int64_t value = 7, got = 0;
  weft_transfer *silent = transport->receive(a, 1, &got, sizeof got);
  assert_int_equal(transport->wait(a, silent), WEFT_WAIT_TIMEOUT);
  weft_transfer *send = transport->send(b, 0, &value, 4, false); /* another size than is asked for */
  assert_int_equal(transport->wait(a, silent), WEFT_WAIT_MISMATCH);
  assert_int_equal(transport->wait(b, send), WEFT_WAIT_MISMATCH);
  weft_transfer *never = transport->receive(b, 0, &got, sizeof got);
  weft_process *process = weft_thread_net_process(net);
  process->stop(process);
  assert_int_equal(transport->wait(b, never), WEFT_WAIT_STOPPED);
  assert_true(process->stopped(process));
  weft_thread_net_free(net);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(messages_keep_their_order),
      cmocka_unit_test(posting_second_completes_both),
      cmocka_unit_test(views_show_the_sender),
      cmocka_unit_test(waits_end),
  };
  return cmocka_run_group_tests_name("thread transport", tests, NULL, NULL);
}
