/* mpi_transport_private.h: one rank a chip. With mpi_transport.c and the files that start runs over MPI the only place
 * that includes mpi.h. */
#ifndef WEFT_MPI_TRANSPORT_PRIVATE_H
#define WEFT_MPI_TRANSPORT_PRIVATE_H

#include "transport_private.h"

#include <mpi.h>

typedef struct weft_mpi_net weft_mpi_net;

typedef struct weft_mpi_net_options {
  uint64_t message_limit; /**< bytes of the largest single message; 0: 1 GiB */
  uint32_t host_ranks;    /**< so many consecutive ranks of a host are seen as one host; 0: all */
  double timeout;         /**< seconds; 0: none */
} weft_mpi_net_options;

/** A net over the ranks of `comm`, which is duplicated: collective. NULL, with a message, when MPI or memory fails. */
weft_mpi_net *weft_mpi_net_new(MPI_Comm comm, const weft_mpi_net_options *options, weft_diag *diag);
/** Frees it: collective unless a rank was lost. */
void weft_mpi_net_free(weft_mpi_net *net);
weft_endpoint *weft_mpi_net_end(weft_mpi_net *net);
weft_process *weft_mpi_net_process(weft_mpi_net *net);
/** Whether some rank could not be reached when all were asked. */
bool weft_mpi_net_lost(const weft_mpi_net *net);

#endif
