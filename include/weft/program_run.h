/* weft/program_run.h: an emitted program as a library, for a host application that keeps its tensors in memory.
 *
 * Link with weft_runtime_mpi (and, for programs with sections that are walked, weft_runtime_walk). */
#ifndef WEFT_PROGRAM_RUN_H
#define WEFT_PROGRAM_RUN_H

#include "weft/program_abi.h"
#include "weft/tensor_file.h"

#include <mpi.h>

/** Runs the program once on the ranks of `comm`, one a chip, rank r being chip r: collective. `comm` is duplicated, no
 * message of the application can be mistaken for one of the run. MPI must be initialised with MPI_THREAD_FUNNELED, and
 * the caller be the thread that did it. `inputs`: by dataset name the whole tensor, or only the block this rank's chip
 * reads. Nothing is changed in them. `outputs`: on rank 0 gets every result and state, whole, by dataset name; on other
 * ranks nothing is added. Returns weft's exit status, the same on every rank: 0 done, 1 the input is wrong (missing
 * tensor, format, extents, a value that does not fit, another number of ranks), 3 the machine failed. One rank says why
 * on standard error. */
int weft_program_run_mpi(const weft_abi_program *program, MPI_Comm comm, const weft_array_set *inputs,
                         weft_array_set *outputs);

/** The same for `steps` runs that chain their states. */
int weft_program_run_steps_mpi(const weft_abi_program *program, MPI_Comm comm, uint64_t steps,
                               const weft_array_set *inputs, weft_array_set *outputs);

#endif
