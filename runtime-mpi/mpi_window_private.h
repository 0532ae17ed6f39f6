/* mpi_window_private.h: memory that the ranks of one host share, and mailboxes in it.
 *
 * Tensors that chips exchange are put there, so a message within a host is one entry in a ring: where the bytes are.
 * The receiver copies them, or reads them where they lie. Few bytes are in the entry itself, and free again as soon as
 * it is posted. For each ordered pair of ranks there is a ring in the receiver's part; message k of the pair uses entry
 * k % WEFT_RING. An entry's word says which message it holds, and the word `taken` beside it which message was last
 * taken out of it: the sender posts k when k - WEFT_RING is taken. These words lie together, apart from the entries: a
 * sender finds several at once, and none in a line that the receiver is writing. */
#ifndef WEFT_MPI_WINDOW_PRIVATE_H
#define WEFT_MPI_WINDOW_PRIVATE_H

#include "weft/base.h"

#include <mpi.h>
#include <stdatomic.h>

enum { WEFT_RING = 32, WEFT_FLAGS = 512, WEFT_RING_BYTES = 1024 };
#define WEFT_OFFSET_MPI UINT64_MAX         /**< the bytes come as an MPI message */
#define WEFT_OFFSET_ENTRY (UINT64_MAX - 1) /**< they are in the entry */

/** One message of a pair. */
typedef struct weft_ring_entry {
  _Alignas(64) atomic_uint_fast64_t word; /**< 1 + the message it holds */
  uint64_t offset;                        /**< of the bytes in the sender's part, or one of the above */
  uint64_t bytes;
  uint32_t flag; /**< 1 + the sender's flag that frees bytes which may be read in place; 0: copy them at once */
  _Alignas(64) unsigned char data[WEFT_RING_BYTES];
} weft_ring_entry;

/** The messages from one rank to another. */
typedef struct weft_ring {
  _Alignas(64) atomic_uint_fast64_t taken[WEFT_RING]; /**< by entry: 1 + the message last taken; 0: none */
  weft_ring_entry entries[WEFT_RING];
} weft_ring;

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
/** The ring from one host rank to another. */
weft_ring *weft_window_ring(const weft_window *window, uint32_t from, uint32_t to);

/** A flag of a host rank. */
weft_window_flag *weft_window_flag_at(const weft_window *window, uint32_t host_rank, uint32_t index);
/** An unset flag of this rank, and back; WEFT_FLAGS: all are in use. */
uint32_t weft_window_flag_take(weft_window *window);
void weft_window_flag_return(weft_window *window, uint32_t index);

#endif
