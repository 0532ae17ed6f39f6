/* chip_private.h: one chip of a run as the operations see it: tensors, scratch memory, messages in flight, faults. */
#ifndef WEFT_CHIP_PRIVATE_H
#define WEFT_CHIP_PRIVATE_H

#include "transport_private.h"

#include "weft/format.h"
#include "weft/program_abi.h"

#include <pthread.h>
#include <stdatomic.h>

struct weft_crew;
struct weft_kernel_set;
struct weft_run;

#define WEFT_NO_STEP UINT32_MAX

/** A tensor of the chip. */
typedef struct weft_slot {
  const weft_abi_tensor *tensor;
  weft_format format;
  uint64_t bytes;
  unsigned char *data; /**< where operations find the elements now: `own`, or a view of the sender's memory */
  unsigned char *own;
  bool borrowed;       /**< `own` is another chip's: equal parameters of one process */
  bool shared;         /**< `own` is the transport's */
  bool exchanged;      /**< it is sent, or part of an all-reduce: peers may read it in place */
  bool read_elsewhere; /**< it is not only read after it was received */
  uint32_t received_at, last_read;
  int64_t last_write; /**< the last step that writes it; -1: none */
  uint32_t
      release_at; /**< a received tensor that is read in place: the last step that does; WEFT_NO_STEP: it is copied */
  weft_transfer *shown; /**< the view `data` points into */
} weft_slot;

/** Scratch buffers that operations keep between calls. */
typedef enum weft_scratch_kind {
  WEFT_SCRATCH_PACKED_B, /**< product: shared by the chip's threads */
  WEFT_SCRATCH_THREADS,  /**< product: one part a thread */
  WEFT_SCRATCH_PLAN,     /**< product: runs and levels */
  WEFT_SCRATCH_BIAS,     /**< epilogues: widened biases */
  WEFT_SCRATCH_PARTIALS, /**< all-reduce: slices that arrive */
  WEFT_SCRATCH_TABLES,   /**< all-reduce: the tree and the transfers */
  WEFT_SCRATCH_COUNT
} weft_scratch_kind;
typedef struct weft_scratch {
  void *data;
  uint64_t bytes;
} weft_scratch;

/** A message in flight and the slot it reads or fills. */
typedef enum weft_pending_kind { WEFT_PENDING_SEND, WEFT_PENDING_RECEIVE, WEFT_PENDING_VIEW } weft_pending_kind;
typedef struct weft_pending {
  weft_transfer *transfer;
  int64_t slot;
  weft_pending_kind kind;
} weft_pending;

/** What a chip that waits is waiting for, read by the signal handler. */
#define WEFT_WAITING_PEERS 16
typedef struct weft_waiting {
  volatile uint32_t count; /**< peers in all; the first WEFT_WAITING_PEERS are listed */
  volatile uint32_t peers[WEFT_WAITING_PEERS];
} weft_waiting;

/** The first fault of a chip; of the faults of one operation the one at the lowest element. */
typedef struct weft_fault {
  pthread_mutex_t lock;
  atomic_bool set;
  weft_status status;
  uint64_t row, col;
  bool has_place;
  bool silent; /**< another chip failed first and says why */
  char text[512];
  char hint[256];
} weft_fault;

/** Seconds and bytes of one step, summed over runs, for --stats. */
typedef struct weft_step_time {
  double seconds, waited;
  uint64_t bytes; /**< that this chip sent */
} weft_step_time;

struct weft_chip {
  struct weft_run *run;
  uint32_t index;
  uint32_t row; /**< among the chips of its class */
  const weft_abi_class *class;
  const int64_t *parameters;
  weft_abi_tensor *tensors; /**< the class's, with this chip's sizes */
  weft_slot *slots;
  weft_endpoint *end;
  const struct weft_kernel_set *kernels;
  int threads;
  struct weft_crew *crew; /**< while it runs with more than one thread */
  bool unlisted;          /**< a step does not say what it reads and writes */
  bool strict;            /**< a product that no fast kernel covers is a fault */
  weft_scratch scratch[WEFT_SCRATCH_COUNT];
  weft_pending *pending;
  uint64_t pending_count, pending_capacity;
  uint32_t shown_count; /**< slots whose data is a view */
  weft_fault fault;
  weft_waiting waiting;
  volatile uint64_t run_number; /**< of --steps, from 0 */
  volatile uint32_t step;       /**< of class->steps */
  weft_step_time *times;        /**< by step; NULL without --stats */
  double waited;                /**< in the step that runs */
  uint64_t sent;
};

/** Makes the slots, without memory, from what the steps do with them. Needs class and parameters. */
weft_status weft_chip_survey(weft_chip *chip, weft_diag *diag);
/** Bytes of the tensors that peers may read in place. */
uint64_t weft_chip_exchanged_bytes(const weft_chip *chip);
/** Gives the slots zeroed memory and applies fills. */
weft_status weft_chip_open(weft_chip *chip, weft_diag *diag);
void weft_chip_close(weft_chip *chip);
/** Bytes of all tensors of a surveyed chip. UINT64_MAX when that leaves 64 bits. */
uint64_t weft_chip_bytes(const weft_chip *chip);
/** A tensor of a class with the sizes of the chip that has these parameters. */
weft_abi_tensor weft_tensor_of_chip(const weft_abi_tensor *tensor, const int64_t *parameters);
/** Number i of a series (weft/program_abi.h). */
int64_t weft_series_at(const int64_t *series, bool ring, uint64_t i);

/** Zeroed memory aligned to 64, large pieces in huge pages that nobody has touched; never NULL for 0 bytes. */
void *weft_memory_new(uint64_t bytes);
/** Gives it back; `bytes` as it was asked for. */
void weft_memory_free(void *data, uint64_t bytes);

/** At least `bytes` bytes aligned to 64, kept for the next call of the same kind; NULL after a fault about memory. */
void *weft_chip_scratch(weft_chip *chip, weft_scratch_kind kind, uint64_t bytes);

void weft_chip_scratch_free(weft_chip *chip);

/** The step that runs, as messages name it. */
const char *weft_chip_step_name(const weft_chip *chip);
static inline bool weft_chip_failed(const weft_chip *chip) {
  return atomic_load_explicit(&chip->fault.set, memory_order_relaxed);
}
/** Records a fault unless there is one. `hint` may be NULL. */
void weft_chip_fault(weft_chip *chip, weft_status status, const char *hint, const char *format, ...) WEFT_PRINTF(4, 5);
/** Records that element (row, col) of the tensor in `slot` cannot be stored: `what` says why. Of several the lowest
 * stays. */
void weft_chip_fault_element(weft_chip *chip, int64_t slot, uint64_t row, uint64_t col, const char *what);

/** The slot, or NULL after a fault when the number is none. */
weft_slot *weft_chip_slot(weft_chip *chip, int64_t slot, const char *operation);

/** The crossings that one entry of a link stands for. */
static inline uint32_t weft_crossing_count(const weft_abi_crossing *crossing) {
  return crossing->count ? crossing->count : 1;
}
static inline int64_t weft_crossing_tensor(const weft_abi_crossing *crossing, uint32_t i) {
  return crossing->tensor + (crossing->step ? (int64_t)i : 0);
}

/* ---- messages in flight (exchange.c) ---- */

/** Waits for `transfer`; false after a fault. Counts the time as waiting. */
bool weft_chip_wait(weft_chip *chip, weft_transfer *transfer);
/** Remembers a posted message until its slot is needed. */
bool weft_chip_keep(weft_chip *chip, weft_transfer *transfer, int64_t slot, weft_pending_kind kind);
/** Waits for what stands between the chip and reading (writing: also overwriting) a slot; -1: every slot. */
bool weft_chip_settle(weft_chip *chip, int64_t slot, bool writing);
/** Ends a slot's view of its sender's memory, if it is one. */
void weft_chip_release(weft_chip *chip, weft_slot *slot);
/** Forgets what is in flight after a failure. */
void weft_chip_drop(weft_chip *chip);

/* ---- threads (parallel.c) ---- */

/** Calls body(context, index, thread) for every index below count on the chip's threads, numbered 0 .. threads - 1; at
 * most `threads` at a time. Bodies write only what belongs to their index or thread. */
void weft_chip_parallel(weft_chip *chip, uint64_t count, int threads,
                        void (*body)(void *context, uint64_t index, uint32_t thread), void *context);
/** The same for bodies that do not ask who runs them. */
void weft_chip_for(weft_chip *chip, uint64_t count, void (*body)(void *context, uint64_t index), void *context);

void weft_link(weft_chip *chip, const weft_abi_link *link);
void weft_all_reduce(weft_chip *chip, const weft_abi_all_reduce *reduce);
/** Whether the nodes of a reduce are complete subtrees that cover 0 .. of once. */
bool weft_all_reduce_valid(const weft_abi_all_reduce *reduce);

/** Runs every step `runs` times. The chip's fault says how it ended. */
void weft_chip_run(weft_chip *chip, uint64_t runs);

double weft_seconds(void);

#endif
