/* Messages of the MPI transport. Between hosts they are MPI's, of one tag, so that a pair's order is MPI's own, and
 * large ones are cut. Within a host they go through the shared window: the receiver copies the bytes from where the
 * sender has them, or reads them there; few bytes lie in the ring itself. Many bytes that are not in the window go by
 * MPI also within a host; the ring says so, which keeps the order. */
#include "mpi_net_private.h"

#include "chip_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_EVERY = 64, PROGRESS_EVERY = 16 };

/* ---- pieces: what MPI moves ---- */

static uint64_t pieces_of(const weft_mpi_net *net, uint64_t bytes) {
  return weft_max_u64(1, weft_ceil_div(bytes, net->limit));
}

static int piece_bytes(const weft_mpi_net *net, const weft_mpi_transfer *transfer, uint64_t piece) {
  return (int)weft_min_u64(net->limit, transfer->base.bytes - piece * net->limit);
}

static void post_pieces(weft_mpi_net *net, weft_mpi_transfer *transfer) {
  uint64_t pieces = pieces_of(net, transfer->base.bytes);
  transfer->requests = pieces > 1 ? malloc(pieces * sizeof *transfer->requests) : &transfer->request;
  if (!transfer->requests) {
    transfer->requests = &transfer->request;
    transfer->error = MPI_ERR_NO_MEM;
    return;
  }
  transfer->piece_count = pieces;
  for (uint64_t i = 0; i < pieces; i++) {
    char *at = (char *)transfer->base.data + i * net->limit;
    int count = piece_bytes(net, transfer, i), peer = (int)transfer->base.peer;
    MPI_Request *request = &transfer->requests[i];
    *request = MPI_REQUEST_NULL;
    int error = transfer->receives ? MPI_Irecv(at, count, MPI_BYTE, peer, WEFT_MPI_TAG, net->data, request)
                                   : MPI_Isend(at, count, MPI_BYTE, peer, WEFT_MPI_TAG, net->data, request);
    if (error != MPI_SUCCESS) transfer->error = error;
  }
}

static weft_wait failed(weft_mpi_end *end, int error) {
  int length, class;
  MPI_Error_class(error, &class);
  if (MPI_Error_string(error, end->reason, &length) != MPI_SUCCESS) snprintf(end->reason, sizeof end->reason, "?");
  return class == MPI_ERR_TRUNCATE ? WEFT_WAIT_MISMATCH : WEFT_WAIT_FAILED;
}

/* Pieces are tested in order: their messages keep it. */
static weft_wait test_pieces(weft_mpi_end *end, weft_mpi_transfer *transfer) {
  if (transfer->error != MPI_SUCCESS) return failed(end, transfer->error);
  while (transfer->pieces_done < transfer->piece_count) {
    int arrived, count;
    MPI_Status status;
    int error = MPI_Test(&transfer->requests[transfer->pieces_done], &arrived, &status);
    if (error != MPI_SUCCESS) {
      transfer->error = error;
      return failed(end, error);
    }
    if (!arrived) return WEFT_WAIT_PENDING;
    if (transfer->receives) {
      MPI_Get_count(&status, MPI_BYTE, &count);
      if (count != piece_bytes(end->net, transfer, transfer->pieces_done)) return WEFT_WAIT_MISMATCH;
    }
    transfer->pieces_done++;
  }
  return WEFT_WAIT_DONE;
}

/* ---- the ring ---- */

static bool is_taken(const weft_mpi_transfer *transfer, uint64_t number) {
  return atomic_load_explicit(transfer->taken, memory_order_acquire) == number + 1;
}

/* Puts a send into its entry as soon as the message that had it before is taken. */
static void try_post(weft_mpi_transfer *send) {
  if (send->number >= WEFT_RING && !is_taken(send, send->number - WEFT_RING)) return;
  weft_ring_entry *entry = send->entry;
  bool within = send->offset == WEFT_OFFSET_ENTRY;
  if (within && send->base.bytes) memcpy(entry->data, send->base.data, send->base.bytes);
  entry->offset = send->offset;
  entry->bytes = send->base.bytes;
  entry->flag = send->flag;
  atomic_store_explicit(&entry->word, send->number + 1, memory_order_release);
  send->stage = within ? WEFT_STAGE_DONE : WEFT_STAGE_RINGING;
}

/* Tells the sender that its bytes are free. */
static void set_flag(weft_mpi_net *net, const weft_mpi_transfer *receive) {
  weft_window_flag *flag = weft_window_flag_at(net->window, net->host_rank[receive->base.peer], receive->flag - 1);
  atomic_store_explicit(&flag->set, 1, memory_order_release);
}

static bool flag_is_set(const weft_mpi_net *net, const weft_mpi_transfer *send) {
  weft_window_flag *flag = weft_window_flag_at(net->window, net->own_host_rank, send->flag - 1);
  return atomic_load_explicit(&flag->set, memory_order_acquire) != 0;
}

/* The bytes of a message that is in the ring. */
static void take_bytes(weft_mpi_net *net, weft_mpi_transfer *receive) {
  const weft_ring_entry *entry = receive->entry;
  uint64_t offset = entry->offset, bytes = entry->bytes;
  receive->flag = entry->flag;
  receive->stage = WEFT_STAGE_DONE;
  if (bytes != receive->base.bytes) {
    receive->error = MPI_ERR_TRUNCATE;
  } else if (offset == WEFT_OFFSET_MPI) {
    receive->stage = WEFT_STAGE_BY_MPI;
    post_pieces(net, receive);
  } else if (offset == WEFT_OFFSET_ENTRY) {
    if (bytes) memcpy(receive->base.data, entry->data, bytes);
  } else {
    void *from = weft_window_at(net->window, net->host_rank[receive->base.peer], offset);
    if (receive->views && receive->flag) {
      receive->base.data = from;
      receive->stage = WEFT_STAGE_SHOWN;
      return;
    }
    memcpy(receive->base.data, from, bytes);
    if (receive->flag) set_flag(net, receive);
  }
}

/* Takes what has been posted for a receive, if it has. */
static void try_take(weft_mpi_net *net, weft_mpi_transfer *receive) {
  if (atomic_load_explicit(&receive->entry->word, memory_order_acquire) != receive->number + 1) return;
  take_bytes(net, receive);
  atomic_store_explicit(receive->taken, receive->number + 1, memory_order_release);
}

static void advance(weft_mpi_net *net, weft_mpi_transfer *transfer) {
  if (transfer->stage == WEFT_STAGE_UNPOSTED) try_post(transfer);
  if (transfer->stage == WEFT_STAGE_RINGING && transfer->receives) try_take(net, transfer);
}

static bool is_waiting(const weft_mpi_transfer *transfer) {
  return transfer->stage == WEFT_STAGE_UNPOSTED || (transfer->stage == WEFT_STAGE_RINGING && transfer->receives);
}

/* Whatever this chip waits for, its other messages get on: nobody waits for it in vain. */
static void progress(weft_mpi_end *end) {
  for (weft_mpi_transfer **at = &end->active; *at;) {
    weft_mpi_transfer *transfer = *at;
    advance(end->net, transfer);
    if (is_waiting(transfer)) {
      at = &transfer->next_active;
    } else {
      *at = transfer->next_active;
      transfer->active = false;
    }
  }
}

/* ---- the transport's functions ---- */

static weft_mpi_transfer *transfer_new(weft_mpi_end *end) {
  weft_mpi_transfer *transfer = end->free, *made;
  if (transfer) {
    end->free = transfer->next_free;
    made = transfer->next_made;
  } else {
    transfer = malloc(sizeof *transfer);
    if (!transfer) return NULL;
    made = end->made;
    end->made = transfer;
  }
  *transfer = (weft_mpi_transfer){.next_made = made, .request = MPI_REQUEST_NULL};
  transfer->requests = &transfer->request;
  return transfer;
}

/* Where the bytes are, and whether they may be read there: when flags run out they are copied. */
static void prepare_send(weft_mpi_net *net, weft_mpi_transfer *send, bool stable) {
  send->offset = WEFT_OFFSET_ENTRY;
  if (send->base.bytes <= WEFT_RING_BYTES) return;
  send->offset = weft_window_offset(net->window, send->base.data, send->base.bytes);
  if (send->offset == WEFT_OFFSET_MPI) {
    post_pieces(net, send);
  } else if (stable) {
    uint32_t flag = weft_window_flag_take(net->window);
    send->flag = flag < WEFT_FLAGS ? flag + 1 : 0;
  }
}

static weft_transfer *post(weft_endpoint *base, weft_transfer message, bool receives, bool in_place) {
  weft_mpi_end *end = (weft_mpi_end *)base;
  weft_mpi_net *net = end->net;
  weft_mpi_transfer *transfer = transfer_new(end);
  if (!transfer) return NULL;
  transfer->base = message;
  transfer->receives = receives;
  transfer->views = receives && in_place;
  uint32_t there = net->window ? net->host_rank[message.peer] : WEFT_NO_HOST_RANK, here = net->own_host_rank;
  if (there == WEFT_NO_HOST_RANK) {
    post_pieces(net, transfer);
    return &transfer->base;
  }
  transfer->number = receives ? net->received[there]++ : net->sent[there]++;
  weft_ring *ring = receives ? weft_window_ring(net->window, there, here) : weft_window_ring(net->window, here, there);
  transfer->entry = &ring->entries[transfer->number % WEFT_RING];
  transfer->taken = &ring->taken[transfer->number % WEFT_RING];
  transfer->stage = receives ? WEFT_STAGE_RINGING : WEFT_STAGE_UNPOSTED;
  if (!receives) prepare_send(net, transfer, in_place);
  advance(net, transfer);
  if (is_waiting(transfer)) {
    transfer->active = true;
    transfer->next_active = end->active;
    end->active = transfer;
  }
  return &transfer->base;
}

static weft_transfer *mpi_send(weft_endpoint *end, uint32_t peer, const void *data, uint64_t bytes, bool stable) {
  return post(end, (weft_transfer){peer, (void *)(uintptr_t)data, bytes}, false, stable);
}

static weft_transfer *mpi_receive(weft_endpoint *end, uint32_t peer, void *data, uint64_t bytes) {
  return post(end, (weft_transfer){peer, data, bytes}, true, false);
}

static weft_transfer *mpi_view(weft_endpoint *end, uint32_t peer, void *scratch, uint64_t bytes) {
  return post(end, (weft_transfer){peer, scratch, bytes}, true, true);
}

static weft_wait mpi_test(weft_endpoint *base, weft_transfer *generic) {
  weft_mpi_end *end = (weft_mpi_end *)base;
  weft_mpi_transfer *transfer = (weft_mpi_transfer *)generic;
  advance(end->net, transfer);
  weft_wait pieces = test_pieces(end, transfer);
  if (pieces != WEFT_WAIT_DONE) return pieces;
  if (transfer->stage == WEFT_STAGE_RINGING && !transfer->receives) {
    bool free = transfer->flag ? flag_is_set(end->net, transfer)
                               : atomic_load_explicit(transfer->taken, memory_order_acquire) > transfer->number;
    if (free) transfer->stage = WEFT_STAGE_DONE;
  }
  bool waits = transfer->stage == WEFT_STAGE_UNPOSTED || transfer->stage == WEFT_STAGE_RINGING;
  return waits ? WEFT_WAIT_PENDING : WEFT_WAIT_DONE;
}

static weft_wait mpi_wait(weft_endpoint *base, weft_transfer *transfer) {
  weft_mpi_end *end = (weft_mpi_end *)base;
  double begun = 0, waited = 0;
  for (uint64_t spins = 1;; spins++) {
    weft_wait result = mpi_test(base, transfer);
    if (result != WEFT_WAIT_PENDING) return result;
    if (spins % PROGRESS_EVERY == 0) progress(end);
    if (spins % LOOK_EVERY == 0) {
      if (weft_mpi_look_for_stop(end->net)) return WEFT_WAIT_STOPPED;
      double now = weft_seconds();
      if (begun == 0) begun = now;
      waited = now - begun;
      if (base->timeout > 0 && waited > base->timeout) return WEFT_WAIT_TIMEOUT;
    }
    weft_mpi_pause(end->net, spins, waited);
  }
}

static void remove_active(weft_mpi_end *end, weft_mpi_transfer *transfer) {
  weft_mpi_transfer **at = &end->active;
  while (*at != transfer) at = &(*at)->next_active;
  *at = transfer->next_active;
  transfer->active = false;
}

static void mpi_finish(weft_endpoint *base, weft_transfer *generic) {
  weft_mpi_end *end = (weft_mpi_end *)base;
  weft_mpi_transfer *transfer = (weft_mpi_transfer *)generic;
  if (transfer->stage == WEFT_STAGE_SHOWN) set_flag(end->net, transfer);
  if (!transfer->receives && transfer->flag && transfer->stage == WEFT_STAGE_DONE)
    weft_window_flag_return(end->net->window, transfer->flag - 1);
  if (transfer->active) remove_active(end, transfer);
  for (uint64_t i = transfer->pieces_done; i < transfer->piece_count; i++) { /* only after a failure */
    if (transfer->requests[i] == MPI_REQUEST_NULL) continue;
    if (transfer->receives) MPI_Cancel(&transfer->requests[i]);
    MPI_Request_free(&transfer->requests[i]);
  }
  if (transfer->requests != &transfer->request) free(transfer->requests);
  transfer->requests = &transfer->request;
  transfer->next_free = end->free;
  end->free = transfer;
}

void weft_mpi_free_transfers(weft_mpi_end *end) {
  while (end->made) {
    weft_mpi_transfer *next = end->made->next_made;
    free(end->made);
    end->made = next;
  }
}

static const char *mpi_reason(weft_endpoint *end) { return ((weft_mpi_end *)end)->reason; }

static void mpi_share(weft_endpoint *end, uint64_t bytes) {
  weft_mpi_net *net = ((weft_mpi_end *)end)->net;
  if (!net->window) net->window = weft_window_new(net->host, bytes);
}

static void *mpi_shared_memory(weft_endpoint *end, uint64_t bytes) {
  weft_mpi_net *net = ((weft_mpi_end *)end)->net;
  return net->window ? weft_window_take(net->window, bytes) : NULL;
}

const weft_transport weft_mpi_transport = {
    .name = "MPI",
    .send = mpi_send,
    .receive = mpi_receive,
    .view = mpi_view,
    .test = mpi_test,
    .wait = mpi_wait,
    .finish = mpi_finish,
    .share = mpi_share,
    .shared_memory = mpi_shared_memory,
    .reason = mpi_reason,
};
