/* Chips as MPI processes. One thread of each talks to MPI: it takes what the others have sent, hands on what has come,
 * and agrees with the other processes in rounds on when all have ended: when nobody can move and every message that was
 * sent has come, twice in a row (the four counters of Mattern, "Algorithms for distributed termination detection"). */
#include "launch_private.h"

#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MESSAGE_WORDS = 1 << 20, SPINS = 2000, SLEEP_NANOSECONDS = 50000, ROUND_NANOSECONDS = 5000000 };

typedef struct mpi_chips {
  weft_df_chips chips;
  MPI_Comm comm;
} mpi_chips;

/* What processes add up in a round. */
typedef struct round_sums {
  uint64_t sent, received, moving, live, failed;
} round_sums;
enum { SUMS = sizeof(round_sums) / sizeof(uint64_t) };

/* A message under way: its words are kept until it has been sent. */
typedef struct message message;
struct message {
  message *next;
  word_list list;
  MPI_Request request;
};

typedef struct server {
  mpi_chips *mpi;
  weft_df_queues *queues;
  message *sending, *spare;
  uint64_t sent, received;
  word_list incoming;
  MPI_Request round;
  bool in_round, stopped, failed;
  round_sums mine, sums, last;
  bool was_quiet;
  struct timespec round_end;
  uint32_t spins;
} server;

/* ---- messages --------------------------------------------------------------------------------------------------- */

static message *new_message(server *s) {
  message *m = s->spare;
  if (m)
    s->spare = m->next;
  else
    m = calloc(1, sizeof *m);
  return m;
}

static bool send_outgoing(server *s) {
  bool moved = false;
  for (uint32_t i = 0; i < s->queues->count; i++) {
    if (s->queues->items[i].home == s->queues->rank) continue;
    message *m = new_message(s);
    if (!m) {
      s->failed = true;
      return moved;
    }
    bool any = queues_take_outgoing(s->queues, i, &m->list);
    if (!any) {
      m->next = s->spare;
      s->spare = m;
      continue;
    }
    uint64_t words = word_list_length(&m->list), rest = words > MESSAGE_WORDS ? words - MESSAGE_WORDS : 0;
    if (rest && !queues_put_back(s->queues, i, word_list_first(&m->list) + MESSAGE_WORDS, rest)) s->failed = true;
    if (MPI_Isend(word_list_first(&m->list), (int)(words - rest), MPI_UINT64_T, (int)s->queues->items[i].home, (int)i,
                  s->mpi->comm, &m->request) != MPI_SUCCESS)
      s->failed = true;
    m->next = s->sending;
    s->sending = m;
    s->sent++;
    moved = true;
  }
  return moved;
}

static void finish_sent(server *s) {
  for (message **at = &s->sending; *at;) {
    message *m = *at;
    int done = 0;
    if (MPI_Test(&m->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) s->failed = true;
    if (!done) {
      at = &m->next;
      continue;
    }
    *at = m->next;
    m->next = s->spare;
    s->spare = m;
  }
}

static bool take_incoming(server *s) {
  bool moved = false;
  for (;;) {
    MPI_Status status;
    int there = 0, words = 0;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, s->mpi->comm, &there, &status) != MPI_SUCCESS) s->failed = true;
    if (!there || s->failed) return moved;
    MPI_Get_count(&status, MPI_UINT64_T, &words);
    if (!s->incoming.words) s->incoming.words = malloc(MESSAGE_WORDS * sizeof(uint64_t));
    if (!s->incoming.words || words < 0 || words > MESSAGE_WORDS || (uint32_t)status.MPI_TAG >= s->queues->count ||
        MPI_Recv(s->incoming.words, words, MPI_UINT64_T, status.MPI_SOURCE, status.MPI_TAG, s->mpi->comm,
                 MPI_STATUS_IGNORE) != MPI_SUCCESS) {
      s->failed = true;
      return moved;
    }
    s->received++;
    if (!queues_put(s->queues, (uint32_t)status.MPI_TAG, s->incoming.words, (uint64_t)words)) s->failed = true;
    moved = true;
  }
}

/* ---- rounds ----------------------------------------------------------------------------------------------------- */

static bool long_ago(const struct timespec *then) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (now.tv_sec - then->tv_sec) * 1000000000L + (now.tv_nsec - then->tv_nsec) > ROUND_NANOSECONDS;
}

static void begin_round(server *s) {
  uint32_t live;
  bool idle = queues_idle(s->queues, &live);
  bool ended = atomic_load(&s->queues->stopped) || s->failed;
  if (!idle && !(ended && !s->stopped) && !long_ago(&s->round_end)) return;
  s->mine = (round_sums){.sent = s->sent, .received = s->received, .moving = !idle, .live = live, .failed = ended};
  s->in_round = true;
  if (MPI_Iallreduce(&s->mine, &s->sums, SUMS, MPI_UINT64_T, MPI_SUM, s->mpi->comm, &s->round) != MPI_SUCCESS)
    s->failed = true;
}

/* After a round: whether all is over. Every process sees the same sums and decides the same. */
static bool end_round(server *s) {
  clock_gettime(CLOCK_MONOTONIC, &s->round_end);
  s->in_round = false;
  bool quiet = !s->sums.moving && s->sums.sent == s->sums.received;
  bool twice = quiet && s->was_quiet && s->sums.sent == s->last.sent && s->sums.received == s->last.received;
  s->was_quiet = quiet;
  s->last = s->sums;
  if (twice && !s->sums.live) return true;
  if ((twice || s->sums.failed) && !s->stopped) {
    s->stopped = true;
    s->was_quiet = false;
    queues_stop(s->queues);
  }
  return false;
}

static void rest(server *s, bool moved) {
  if (moved) s->spins = 0;
  if (moved || s->spins++ < SPINS) {
    if (!moved) sched_yield();
    return;
  }
  nanosleep(&(struct timespec){.tv_nsec = SLEEP_NANOSECONDS}, NULL);
}

static bool serve(weft_df_chips *chips, weft_df_queues *queues) {
  server s = {.mpi = (mpi_chips *)chips, .queues = queues};
  clock_gettime(CLOCK_MONOTONIC, &s.round_end);
  for (bool over = false; !over;) {
    bool moved = send_outgoing(&s);
    moved |= take_incoming(&s);
    finish_sent(&s);
    if (!s.in_round) begin_round(&s);
    int done = 0;
    if (s.in_round && MPI_Test(&s.round, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
    if (done) over = end_round(&s);
    rest(&s, moved || done);
  }
  while (s.sending) finish_sent(&s);
  for (message *m = s.spare, *next; m; m = next) {
    next = m->next;
    free(m->list.words);
    free(m);
  }
  free(s.incoming.words);
  return !s.failed;
}

/* ---- the rest --------------------------------------------------------------------------------------------------- */

static bool share(weft_df_chips *chips, uint32_t root, void *data, uint64_t bytes) {
  enum { PIECE = 1 << 30 };
  mpi_chips *mpi = (mpi_chips *)chips;
  for (uint64_t at = 0; at < bytes; at += PIECE) {
    int piece = (int)(bytes - at < PIECE ? bytes - at : PIECE);
    if (MPI_Bcast((char *)data + at, piece, MPI_BYTE, (int)root, mpi->comm) != MPI_SUCCESS) return false;
  }
  return true;
}

static bool least(weft_df_chips *chips, uint64_t *word) {
  return MPI_Allreduce(MPI_IN_PLACE, word, 1, MPI_UINT64_T, MPI_MIN, ((mpi_chips *)chips)->comm) == MPI_SUCCESS;
}

/* All have the same results; one tells, before any ends. mpirun ends all processes as soon as one has failed, so that
 * one fails. */
static int run_and_tell(const weft_df_program *program, mpi_chips *mpi, int argc, char **argv, weft_df_say say) {
  char *said = NULL;
  int code = launch_main(program, &mpi->chips, argc, argv, &said), worst = code;
  MPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MAX, mpi->comm);
  bool tells = mpi->chips.rank == 0;
  if (tells && !code && worst) say("weft: another process failed\n", true);
  if (tells && said && (code || !worst)) say(said, code != 0);
  free(said);
  return tells ? worst : 0;
}

int weft_df_main_mpi(const weft_df_program *program, int argc, char **argv, weft_df_say say) {
  int provided, rank, ranks, code = weft_status_exit_code(WEFT_UNAVAILABLE);
  mpi_chips mpi = {.chips = {.serve = serve, .share = share, .least = least}};
  if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
    say("weft: MPI could not be started\n", true);
    return code;
  }
  if (provided < MPI_THREAD_FUNNELED) {
    say("weft: this MPI does not work with threads\n", true);
  } else if (MPI_Comm_dup(MPI_COMM_WORLD, &mpi.comm) == MPI_SUCCESS) {
    MPI_Comm_rank(mpi.comm, &rank);
    MPI_Comm_size(mpi.comm, &ranks);
    mpi.chips.rank = (uint32_t)rank;
    mpi.chips.ranks = (uint32_t)ranks;
    code = run_and_tell(program, &mpi, argc, argv, say);
    MPI_Comm_free(&mpi.comm);
  }
  MPI_Finalize();
  return code;
}
