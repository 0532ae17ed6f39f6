/* The MPI transport: one rank a chip, nonblocking messages of one tag, so that a pair's order is MPI's own; large
 * messages cut.
 *
 * A second communicator carries one kind of message: "stop". A rank that fails sends it to all; every wait looks for
 * it. So the ranks end together, with one message and without MPI_Abort. */
#include "mpi_transport_private.h"

#include "chip_private.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG = 0, FREE_SPINS = 4096, LOOK_EVERY = 64 };
static const uint64_t default_limit = UINT64_C(1) << 30;
static const double grace = 10; /* seconds that ranks may take to come together after a failure */

typedef struct mpi_transfer {
  weft_transfer base;
  struct mpi_transfer *next;
  bool receives;
  int error;
  uint64_t piece_count;
  MPI_Request request;   /* the only piece */
  MPI_Request *requests; /* of several pieces: allocated; else &request */
  uint64_t done;         /* pieces */
} mpi_transfer;

typedef struct mpi_end {
  weft_endpoint base;
  weft_mpi_net *net;
  mpi_transfer *free;
  char reason[MPI_MAX_ERROR_STRING];
} mpi_end;

struct weft_mpi_net {
  weft_process process;
  mpi_end end;
  MPI_Comm data, control, host;
  uint64_t limit;
  int word; /* of a stop that arrives */
  MPI_Request notice;
  MPI_Request *notices; /* stops sent */
  bool stopped, lost;
  int free_spins; /* before a wait lets others have the core */
  char host_name[256];
};

/* ---- waiting politely ---- */

static bool look_for_stop(weft_mpi_net *net) {
  int arrived = 0;
  if (!net->stopped && net->notice != MPI_REQUEST_NULL) {
    MPI_Test(&net->notice, &arrived, MPI_STATUS_IGNORE);
    if (arrived) net->stopped = true;
  }
  return net->stopped;
}

static void pause_between(const weft_mpi_net *net, uint64_t spins) {
  if (spins > (uint64_t)net->free_spins) sched_yield();
}

/* ---- transfers ---- */

static mpi_transfer *transfer_new(mpi_end *end, uint32_t peer, void *data, uint64_t bytes) {
  mpi_transfer *transfer = end->free;
  if (transfer)
    end->free = transfer->next;
  else
    transfer = malloc(sizeof *transfer);
  if (!transfer) return NULL;
  uint64_t pieces = weft_max_u64(1, weft_ceil_div(bytes, end->net->limit));
  *transfer = (mpi_transfer){.base = {.peer = peer, .data = data, .bytes = bytes}, .piece_count = pieces};
  transfer->request = MPI_REQUEST_NULL;
  transfer->requests = &transfer->request;
  if (pieces == 1) return transfer;
  transfer->requests = malloc(pieces * sizeof *transfer->requests);
  if (transfer->requests) return transfer;
  transfer->next = end->free;
  end->free = transfer;
  return NULL;
}

static int piece_bytes(const mpi_end *end, const mpi_transfer *transfer, uint64_t piece) {
  return (int)weft_min_u64(end->net->limit, transfer->base.bytes - piece * end->net->limit);
}

static weft_transfer *post(weft_endpoint *base, uint32_t peer, void *data, uint64_t bytes, bool receives) {
  mpi_end *end = (mpi_end *)base;
  mpi_transfer *transfer = transfer_new(end, peer, data, bytes);
  if (!transfer) return NULL;
  transfer->receives = receives;
  for (uint64_t i = 0; i < transfer->piece_count; i++) {
    char *at = (char *)data + i * end->net->limit;
    int count = piece_bytes(end, transfer, i);
    transfer->requests[i] = MPI_REQUEST_NULL;
    int error = receives ? MPI_Irecv(at, count, MPI_BYTE, (int)peer, TAG, end->net->data, &transfer->requests[i])
                         : MPI_Isend(at, count, MPI_BYTE, (int)peer, TAG, end->net->data, &transfer->requests[i]);
    if (error != MPI_SUCCESS) transfer->error = error;
  }
  return &transfer->base;
}

static weft_transfer *mpi_send(weft_endpoint *end, uint32_t peer, const void *data, uint64_t bytes, bool stable) {
  (void)stable;
  return post(end, peer, (void *)(uintptr_t)data, bytes, false);
}

static weft_transfer *mpi_receive(weft_endpoint *end, uint32_t peer, void *data, uint64_t bytes) {
  return post(end, peer, data, bytes, true);
}

static weft_wait failed(mpi_end *end, int error) {
  int length, class;
  MPI_Error_class(error, &class);
  if (MPI_Error_string(error, end->reason, &length) != MPI_SUCCESS) snprintf(end->reason, sizeof end->reason, "?");
  return class == MPI_ERR_TRUNCATE ? WEFT_WAIT_MISMATCH : WEFT_WAIT_FAILED;
}

/* Pieces are tested in order: their messages keep it. */
static weft_wait mpi_test(weft_endpoint *base, weft_transfer *generic) {
  mpi_end *end = (mpi_end *)base;
  mpi_transfer *transfer = (mpi_transfer *)generic;
  if (transfer->error != MPI_SUCCESS) return failed(end, transfer->error);
  while (transfer->done < transfer->piece_count) {
    int arrived, count;
    MPI_Status status;
    int error = MPI_Test(&transfer->requests[transfer->done], &arrived, &status);
    if (error != MPI_SUCCESS) {
      transfer->error = error;
      return failed(end, error);
    }
    if (!arrived) return WEFT_WAIT_PENDING;
    if (transfer->receives) {
      MPI_Get_count(&status, MPI_BYTE, &count);
      if (count != piece_bytes(end, transfer, transfer->done)) return WEFT_WAIT_MISMATCH;
    }
    transfer->done++;
  }
  return WEFT_WAIT_DONE;
}

static weft_wait mpi_wait(weft_endpoint *base, weft_transfer *transfer) {
  weft_mpi_net *net = ((mpi_end *)base)->net;
  double begun = 0;
  for (uint64_t spins = 1;; spins++) {
    weft_wait result = mpi_test(base, transfer);
    if (result != WEFT_WAIT_PENDING) return result;
    if (spins % LOOK_EVERY == 0) {
      if (look_for_stop(net)) return WEFT_WAIT_STOPPED;
      double now = weft_seconds();
      if (begun == 0) begun = now;
      if (base->timeout > 0 && now - begun > base->timeout) return WEFT_WAIT_TIMEOUT;
    }
    pause_between(net, spins);
  }
}

static void mpi_finish(weft_endpoint *base, weft_transfer *generic) {
  mpi_end *end = (mpi_end *)base;
  mpi_transfer *transfer = (mpi_transfer *)generic;
  for (uint64_t i = transfer->done; i < transfer->piece_count; i++) { /* only after a failure */
    if (transfer->requests[i] == MPI_REQUEST_NULL) continue;
    if (transfer->receives) MPI_Cancel(&transfer->requests[i]);
    MPI_Request_free(&transfer->requests[i]);
  }
  if (transfer->requests != &transfer->request) free(transfer->requests);
  transfer->next = end->free;
  end->free = transfer;
}

static const char *mpi_reason(weft_endpoint *end) { return ((mpi_end *)end)->reason; }

static const weft_transport mpi_transport = {
    .name = "MPI",
    .send = mpi_send,
    .receive = mpi_receive,
    .view = mpi_receive,
    .test = mpi_test,
    .wait = mpi_wait,
    .finish = mpi_finish,
    .reason = mpi_reason,
};

/* ---- the process ---- */

/* After a failure a rank may not come: then the others do not wait for it for ever. */
static bool gather_all(weft_process *process, const uint64_t *words, uint32_t count, uint64_t *all) {
  weft_mpi_net *net = (weft_mpi_net *)process;
  MPI_Request request;
  if (net->lost || MPI_Iallgather(words, (int)count, MPI_UINT64_T, all, (int)count, MPI_UINT64_T, net->control,
                                  &request) != MPI_SUCCESS)
    return false;
  double begun = weft_seconds();
  for (uint64_t spins = 1;; spins++) {
    int arrived;
    if (MPI_Test(&request, &arrived, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
    if (arrived) return true;
    if (spins % LOOK_EVERY == 0) {
      double waited = weft_seconds() - begun, timeout = net->end.base.timeout;
      if (look_for_stop(net) && waited > grace) break;
      if (timeout > 0 && waited > timeout + grace) break;
    }
    pause_between(net, spins);
  }
  net->lost = true;
  return false;
}

static void stop_all(weft_process *process) {
  weft_mpi_net *net = (weft_mpi_net *)process;
  static const int word = 1;
  if (net->notices) return;
  net->stopped = true;
  net->notices = malloc(process->ranks * sizeof *net->notices);
  for (uint32_t r = 0; net->notices && r < process->ranks; r++)
    if (r != process->rank) MPI_Isend(&word, 1, MPI_INT, (int)r, TAG, net->control, &net->notices[r]);
}

static bool is_stopped(weft_process *process) { return look_for_stop((weft_mpi_net *)process); }

static bool make_communicators(weft_mpi_net *net, MPI_Comm comm) {
  if (MPI_Comm_dup(comm, &net->data) != MPI_SUCCESS || MPI_Comm_dup(comm, &net->control) != MPI_SUCCESS) return false;
  MPI_Comm_set_errhandler(net->data, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(net->control, MPI_ERRORS_RETURN);
  int rank, size, host_size;
  MPI_Comm_rank(net->control, &rank);
  MPI_Comm_size(net->control, &size);
  if (MPI_Comm_split_type(net->control, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &net->host) != MPI_SUCCESS)
    return false;
  MPI_Comm_set_errhandler(net->host, MPI_ERRORS_RETURN);
  MPI_Comm_size(net->host, &host_size);
  net->process = (weft_process){.rank = (uint32_t)rank, .ranks = (uint32_t)size, .host_ranks = (uint32_t)host_size};
  return MPI_Irecv(&net->word, 1, MPI_INT, MPI_ANY_SOURCE, TAG, net->control, &net->notice) == MPI_SUCCESS;
}

weft_mpi_net *weft_mpi_net_new(MPI_Comm comm, uint64_t message_limit, double timeout, weft_diag *diag) {
  weft_mpi_net *net = calloc(1, sizeof *net);
  if (!net) {
    weft_error_memory(diag);
    return NULL;
  }
  net->limit = message_limit ? weft_min_u64(message_limit, default_limit) : default_limit;
  net->notice = MPI_REQUEST_NULL;
  net->data = net->control = net->host = MPI_COMM_NULL;
  if (!make_communicators(net, comm)) {
    weft_error(diag, WEFT_UNAVAILABLE, NULL, "MPI could not make the communicators of a run");
    free(net);
    return NULL;
  }
  if (gethostname(net->host_name, sizeof net->host_name - 1) != 0) strcpy(net->host_name, "localhost");
  net->process.host = net->host_name;
  net->process.gather = gather_all;
  net->process.stop = stop_all;
  net->process.stopped = is_stopped;
  net->end.base = (weft_endpoint){.transport = &mpi_transport, .chip = net->process.rank, .timeout = timeout};
  net->end.net = net;
  net->free_spins = sysconf(_SC_NPROCESSORS_ONLN) >= (long)net->process.host_ranks ? FREE_SPINS : 16;
  return net;
}

static void free_requests(weft_mpi_net *net) {
  if (net->notice != MPI_REQUEST_NULL) {
    MPI_Cancel(&net->notice);
    MPI_Request_free(&net->notice);
  }
  for (uint32_t r = 0; net->notices && r < net->process.ranks; r++)
    if (r != net->process.rank && net->notices[r] != MPI_REQUEST_NULL) MPI_Request_free(&net->notices[r]);
  free(net->notices);
  while (net->end.free) {
    mpi_transfer *next = net->end.free->next;
    free(net->end.free);
    net->end.free = next;
  }
}

void weft_mpi_net_free(weft_mpi_net *net) {
  if (!net) return;
  free_requests(net);
  if (!net->stopped) { /* after a failure messages may be left in them */
    MPI_Comm_free(&net->host);
    MPI_Comm_free(&net->control);
    MPI_Comm_free(&net->data);
  }
  free(net);
}

weft_endpoint *weft_mpi_net_end(weft_mpi_net *net) { return &net->end.base; }
weft_process *weft_mpi_net_process(weft_mpi_net *net) { return &net->process; }
bool weft_mpi_net_lost(const weft_mpi_net *net) { return net->lost; }
