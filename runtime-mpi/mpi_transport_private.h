/* mpi_transport_private.h: one rank a chip. With mpi_transport.c and the files that start runs over MPI the only place
 * that includes mpi.h. */
#ifndef WEFT_MPI_TRANSPORT_PRIVATE_H
#define WEFT_MPI_TRANSPORT_PRIVATE_H

#include "transport_private.h"

#include <mpi.h>

typedef struct weft_mpi_net weft_mpi_net;

/** A net over the ranks of `comm`, which is duplicated: collective. `message_limit`: bytes of the largest single
 * message, 0: 1 GiB. NULL, with a message, when MPI or memory fails. */
weft_mpi_net *weft_mpi_net_new(MPI_Comm comm, uint64_t message_limit, double timeout, weft_diag *diag);
/** Frees it: collective unless the run failed. */
void weft_mpi_net_free(weft_mpi_net *net);
weft_endpoint *weft_mpi_net_end(weft_mpi_net *net);
weft_process *weft_mpi_net_process(weft_mpi_net *net);
/** Whether some rank could not be reached when all were asked. */
bool weft_mpi_net_lost(const weft_mpi_net *net);

#endif
