/* mpi_window_private.h: memory that the ranks of one host share, and mailboxes in it.
 *
 * Tensors that chips exchange are put there, so a message within a host is one entry in a ring: where the bytes are.
 * The receiver copies them, or reads them where they lie. For each ordered pair of ranks there is a ring in the
 * receiver's part; message k of the pair uses entry k % WEFT_RING. An entry's word says which message it holds and how
 * far it is, so it needs no other synchronisation: the sender posts k when k - WEFT_RING is done, and nothing but
 * `done` tells it that the bytes are free. */
#ifndef WEFT_MPI_WINDOW_PRIVATE_H
#define WEFT_MPI_WINDOW_PRIVATE_H

#include "weft/base.h"

#include <mpi.h>
#include <stdatomic.h>

enum { WEFT_RING = 32, WEFT_FLAGS = 512 };

/** One message of a pair. */
typedef struct weft_ring_entry {
  _Alignas(64) atomic_uint_fast64_t word;
  uint64_t offset; /**< of the bytes in the sender's part; UINT64_MAX: they come as an MPI message */
  uint64_t bytes;
  uint32_t flag; /**< 1 + the sender's flag that frees bytes which may be read in place; 0: copy them at once */
} weft_ring_entry;

typedef struct weft_window_flag {
  _Alignas(64) atomic_uint set;
} weft_window_flag;

typedef struct weft_window weft_window;

/** The window of `host`'s ranks, with room for `bytes` of tensors on this one: collective over host. NULL on all ranks
 * when the memory is not there, or when there is but one rank. */
weft_window *weft_window_new(MPI_Comm host, uint64_t bytes);
/** Collective over host. NULL is allowed. */
void weft_window_free(weft_window *window);
/** Zeroed memory of this rank's part, aligned to 64; NULL when it is used up. */
void *weft_window_take(weft_window *window, uint64_t bytes);
/** Where `data` lies in this rank's part; UINT64_MAX: nowhere. */
uint64_t weft_window_offset(const weft_window *window, const void *data, uint64_t bytes);
/** The bytes at an offset of another rank's part. */
void *weft_window_at(const weft_window *window, uint32_t host_rank, uint64_t offset);
/** Entry of message k from one host rank to another. */
weft_ring_entry *weft_window_entry(const weft_window *window, uint32_t from, uint32_t to, uint64_t k);

/** A flag of a host rank. */
weft_window_flag *weft_window_flag_at(const weft_window *window, uint32_t host_rank, uint32_t index);
/** An unset flag of this rank, and back; WEFT_FLAGS: all are in use. */
uint32_t weft_window_flag_take(weft_window *window);
void weft_window_flag_return(weft_window *window, uint32_t index);

/* States of message k in its entry. */
static inline uint64_t weft_ring_posted(uint64_t k) { return (k + 1) * 4 + 1; }
static inline uint64_t weft_ring_taken(uint64_t k) { return (k + 1) * 4 + 2; }

#endif
