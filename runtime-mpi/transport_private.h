/* transport_private.h: how bytes move between chips: a few functions, implemented once for threads and once for MPI.
 *
 * Sends and receives are posted and never block; whoever posts second moves the bytes (threads), or the library does
 * while either side is inside any call (MPI). Messages between two chips keep their order. A `view` is a receive that
 * may give the sender's own memory instead of a copy: it is read until `finish`, and only then the send counts as done.
 */
#ifndef WEFT_TRANSPORT_PRIVATE_H
#define WEFT_TRANSPORT_PRIVATE_H

#include "weft/base.h"

/** One posted message. The transport owns it; it goes back with `finish`. */
typedef struct weft_transfer {
  uint32_t peer;
  void *data; /**< of a view that is done: where the bytes are */
  uint64_t bytes;
} weft_transfer;

typedef enum weft_wait {
  WEFT_WAIT_PENDING, /**< not yet: only from `test` */
  WEFT_WAIT_DONE,
  WEFT_WAIT_STOPPED,  /**< another chip failed */
  WEFT_WAIT_TIMEOUT,  /**< the peer was silent for longer than allowed */
  WEFT_WAIT_MISMATCH, /**< the peer sent another number of bytes */
  WEFT_WAIT_FAILED,   /**< the transport itself: see `reason` */
} weft_wait;

typedef struct weft_transport weft_transport;

/** One chip's end; the first member of each transport's own struct. */
typedef struct weft_endpoint {
  const weft_transport *transport;
  uint32_t chip;
  double timeout; /**< seconds a wait may last; 0: for ever */
} weft_endpoint;

struct weft_transport {
  const char *name;
  /** Posts. NULL without memory. `stable`: the bytes stay as they are until the send is done, so a view may show them.
   */
  weft_transfer *(*send)(weft_endpoint *end, uint32_t peer, const void *data, uint64_t bytes, bool stable);
  weft_transfer *(*receive)(weft_endpoint *end, uint32_t peer, void *data, uint64_t bytes);
  /** As `receive`; `scratch` takes the bytes where the sender's memory cannot be shown. */
  weft_transfer *(*view)(weft_endpoint *end, uint32_t peer, void *scratch, uint64_t bytes);
  weft_wait (*test)(weft_endpoint *end, weft_transfer *transfer);
  weft_wait (*wait)(weft_endpoint *end, weft_transfer *transfer);
  /** After DONE, or after a failure once the run is over. */
  void (*finish)(weft_endpoint *end, weft_transfer *transfer);
  /** Prepares memory that peers can see, `bytes` of this process: every process calls it once, before tensors are made.
   * NULL: there is nothing to prepare. Without such memory messages still get through. */
  void (*share)(weft_endpoint *end, uint64_t bytes);
  /** Some of it, zeroed and aligned to 64; NULL: use plain memory. Lives as long as the endpoint. */
  void *(*shared_memory)(weft_endpoint *end, uint64_t bytes);
  /** The transport's own words for WEFT_WAIT_FAILED, or "". */
  const char *(*reason)(weft_endpoint *end);
};

/** The process among those of a run: one of a single process for threads, one rank for MPI. */
typedef struct weft_process weft_process;
struct weft_process {
  uint32_t rank, ranks;
  uint32_t host_ranks; /**< ranks on this host */
  const char *host;
  /** all[r * count + i] = words[i] of rank r. Every rank calls it. False when a rank cannot be reached. */
  bool (*gather)(weft_process *process, const uint64_t *words, uint32_t count, uint64_t *all);
  /** Makes every wait on every rank end with WEFT_WAIT_STOPPED. */
  void (*stop)(weft_process *process);
  bool (*stopped)(weft_process *process);
};

#endif
