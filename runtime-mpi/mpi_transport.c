/* The net of MPI ranks: communicators, and how ranks stop together.
 *
 * A second communicator carries one kind of message: "stop". A rank that fails sends it to all; every wait looks for
 * it. So the ranks end together, with one message and without MPI_Abort. */
#include "mpi_net_private.h"

#include "chip_private.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FREE_SPINS = 4096, LOOK_EVERY = 64 };
static const uint64_t default_limit = UINT64_C(1) << 30;
static const double grace = 10; /* seconds that ranks may take to come together after a failure */
/* Seconds of waiting after which a rank sleeps between looks. Whoever sleeps wakes at once for a signal, where whoever
 * spins waits for its turn on a crowded host: mpirun kills what has not ended some milliseconds after its SIGTERM. */
static const double patience = 0.25;

/* ---- waiting politely ---- */

bool weft_mpi_look_for_stop(weft_mpi_net *net) {
  int arrived = 0;
  if (!net->stopped && net->notice != MPI_REQUEST_NULL) {
    MPI_Test(&net->notice, &arrived, MPI_STATUS_IGNORE);
    if (arrived) net->stopped = true;
  }
  return net->stopped;
}

void weft_mpi_pause(const weft_mpi_net *net, uint64_t spins, double waited) {
  static const struct timespec nap = {.tv_nsec = 200000};
  if (waited > patience)
    nanosleep(&nap, NULL);
  else if (spins > (uint64_t)net->free_spins)
    sched_yield();
}

/* ---- the process ---- */

/* After a failure a rank may not come: then the others do not wait for it for ever. */
static bool gather_all(weft_process *process, const uint64_t *words, uint32_t count, uint64_t *all) {
  weft_mpi_net *net = (weft_mpi_net *)process;
  MPI_Request request;
  if (net->lost || MPI_Iallgather(words, (int)count, MPI_UINT64_T, all, (int)count, MPI_UINT64_T, net->control,
                                  &request) != MPI_SUCCESS)
    return false;
  double begun = weft_seconds(), waited = 0;
  for (uint64_t spins = 1;; spins++) {
    int arrived;
    if (MPI_Test(&request, &arrived, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
    if (arrived) return true;
    if (spins % LOOK_EVERY == 0) {
      const double timeout = net->end.base.timeout;
      waited = weft_seconds() - begun;
      if (weft_mpi_look_for_stop(net) && waited > grace) break;
      if (timeout > 0 && waited > timeout + grace) break;
    }
    weft_mpi_pause(net, spins, waited);
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
    if (r != process->rank) MPI_Isend(&word, 1, MPI_INT, (int)r, WEFT_MPI_TAG, net->control, &net->notices[r]);
}

static bool is_stopped(weft_process *process) { return weft_mpi_look_for_stop((weft_mpi_net *)process); }

/* Ranks of one host, or of one of the equal parts a host is to be seen as. */
static bool split_hosts(weft_mpi_net *net, uint32_t host_ranks) {
  int rank = (int)net->process.rank;
  if (MPI_Comm_split_type(net->control, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &net->host) != MPI_SUCCESS)
    return false;
  if (host_ranks) {
    MPI_Comm whole = net->host;
    int at;
    MPI_Comm_rank(whole, &at);
    bool split = MPI_Comm_split(whole, at / (int)host_ranks, rank, &net->host) == MPI_SUCCESS;
    MPI_Comm_free(&whole);
    if (!split) return false;
  }
  MPI_Comm_set_errhandler(net->host, MPI_ERRORS_RETURN);
  return true;
}

static bool number_hosts(weft_mpi_net *net) {
  uint32_t ranks = net->process.ranks;
  int host_size, own;
  MPI_Comm_size(net->host, &host_size);
  MPI_Comm_rank(net->host, &own);
  net->process.host_ranks = (uint32_t)host_size;
  net->own_host_rank = (uint32_t)own;
  net->host_rank = malloc(ranks * sizeof *net->host_rank);
  net->sent = calloc((size_t)host_size, sizeof *net->sent);
  net->received = calloc((size_t)host_size, sizeof *net->received);
  int *there = malloc((size_t)host_size * sizeof *there), mine = (int)net->process.rank;
  bool ok = net->host_rank && net->sent && net->received && there &&
            MPI_Allgather(&mine, 1, MPI_INT, there, 1, MPI_INT, net->host) == MPI_SUCCESS;
  for (uint32_t r = 0; ok && r < ranks; r++) net->host_rank[r] = WEFT_NO_HOST_RANK;
  for (int r = 0; ok && r < host_size; r++) net->host_rank[there[r]] = (uint32_t)r;
  free(there);
  return ok;
}

static bool make_communicators(weft_mpi_net *net, MPI_Comm comm, uint32_t host_ranks) {
  if (MPI_Comm_dup(comm, &net->data) != MPI_SUCCESS || MPI_Comm_dup(comm, &net->control) != MPI_SUCCESS) return false;
  MPI_Comm_set_errhandler(net->data, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(net->control, MPI_ERRORS_RETURN);
  int rank, size;
  MPI_Comm_rank(net->control, &rank);
  MPI_Comm_size(net->control, &size);
  net->process = (weft_process){.rank = (uint32_t)rank, .ranks = (uint32_t)size};
  if (!split_hosts(net, host_ranks) || !number_hosts(net)) return false;
  return MPI_Irecv(&net->word, 1, MPI_INT, MPI_ANY_SOURCE, WEFT_MPI_TAG, net->control, &net->notice) == MPI_SUCCESS;
}

weft_mpi_net *weft_mpi_net_new(MPI_Comm comm, const weft_mpi_net_options *options, weft_diag *diag) {
  weft_mpi_net *net = calloc(1, sizeof *net);
  if (!net) {
    weft_error_memory(diag);
    return NULL;
  }
  net->limit = options->message_limit ? weft_min_u64(options->message_limit, default_limit) : default_limit;
  net->notice = MPI_REQUEST_NULL;
  net->data = net->control = net->host = MPI_COMM_NULL;
  if (!make_communicators(net, comm, options->host_ranks)) {
    weft_error(diag, WEFT_UNAVAILABLE, NULL, "MPI could not make the communicators of a run");
    free(net);
    return NULL;
  }
  if (gethostname(net->host_name, sizeof net->host_name - 1) != 0) strcpy(net->host_name, "localhost");
  net->process.host = net->host_name;
  net->process.gather = gather_all;
  net->process.stop = stop_all;
  net->process.stopped = is_stopped;
  net->end.base =
      (weft_endpoint){.transport = &weft_mpi_transport, .chip = net->process.rank, .timeout = options->timeout};
  net->end.net = net;
  int host_size; /* the whole host's, however it is seen */
  MPI_Comm_size(net->host, &host_size);
  bool cores = sysconf(_SC_NPROCESSORS_ONLN) >= (long)(options->host_ranks ? net->process.ranks : (uint32_t)host_size);
  net->free_spins = cores ? FREE_SPINS : 16;
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
}

void weft_mpi_net_free(weft_mpi_net *net) {
  if (!net) return;
  free_requests(net);
  if (!net->lost) { /* all ranks come here */
    weft_window_free(net->window);
    MPI_Comm_free(&net->host);
    MPI_Comm_free(&net->control);
    MPI_Comm_free(&net->data);
  }
  weft_mpi_free_transfers(&net->end);
  free(net->host_rank);
  free(net->sent);
  free(net->received);
  free(net);
}

weft_endpoint *weft_mpi_net_end(weft_mpi_net *net) { return &net->end.base; }
weft_process *weft_mpi_net_process(weft_mpi_net *net) { return &net->process; }
bool weft_mpi_net_lost(const weft_mpi_net *net) { return net->lost; }
