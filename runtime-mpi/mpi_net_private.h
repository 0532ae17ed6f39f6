/* mpi_net_private.h: the parts of the MPI transport: the net (mpi_transport.c) and its messages (mpi_messages.c). */
#ifndef WEFT_MPI_NET_PRIVATE_H
#define WEFT_MPI_NET_PRIVATE_H

#include "mpi_transport_private.h"
#include "mpi_window_private.h"

enum { WEFT_MPI_TAG = 0 };
#define WEFT_NO_HOST_RANK UINT32_MAX

/** How far a transfer is. */
typedef enum weft_mpi_stage {
  WEFT_STAGE_BY_MPI,   /**< its pieces are MPI's */
  WEFT_STAGE_UNPOSTED, /**< a send whose ring entry still holds an older message */
  WEFT_STAGE_RINGING,  /**< a send that is in the ring; a receive that waits for its entry */
  WEFT_STAGE_SHOWN,    /**< a view of the sender's memory */
  WEFT_STAGE_DONE,
} weft_mpi_stage;

typedef struct weft_mpi_transfer {
  weft_transfer base;
  struct weft_mpi_transfer *next_free, *next_made;
  struct weft_mpi_transfer *next_active; /**< receives that wait for their entry, sends that wait to be posted */
  weft_mpi_stage stage;
  bool receives, views, active;
  int error;
  uint64_t piece_count, pieces_done;
  MPI_Request request;   /**< the only piece */
  MPI_Request *requests; /**< of several pieces: allocated; else &request */
  weft_ring_entry *entry;
  atomic_uint_fast64_t *taken; /**< of the entry */
  uint64_t number;             /**< of the message among those of its pair */
  uint32_t flag;               /**< 1 + the sender's flag of bytes that may be read in place; 0: none */
  uint64_t offset;
} weft_mpi_transfer;

typedef struct weft_mpi_end {
  weft_endpoint base;
  weft_mpi_net *net;
  weft_mpi_transfer *free, *made, *active;
  char reason[MPI_MAX_ERROR_STRING];
} weft_mpi_end;

struct weft_mpi_net {
  weft_process process;
  weft_mpi_end end;
  MPI_Comm data, control, host;
  uint64_t limit;
  weft_window *window;       /**< NULL: all messages are MPI's */
  uint32_t *host_rank;       /**< by rank; WEFT_NO_HOST_RANK: on another host */
  uint64_t *sent, *received; /**< messages by host rank, through the window */
  uint32_t own_host_rank;
  int word; /**< of a stop that arrives */
  MPI_Request notice;
  MPI_Request *notices; /**< stops sent */
  bool stopped, lost;
  int free_spins; /**< before a wait lets others have the core */
  char host_name[256];
};

extern const weft_transport weft_mpi_transport;

/** Whether some rank has failed. */
bool weft_mpi_look_for_stop(weft_mpi_net *net);
/** Called between two looks at something that is not there yet. */
void weft_mpi_pause(const weft_mpi_net *net, uint64_t spins, double waited);
void weft_mpi_free_transfers(weft_mpi_end *end);

#endif
