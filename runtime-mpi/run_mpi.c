/* weft_program_run_mpi: a run on a host application's communicator, from arrays to arrays. */
#include "weft/program_run.h"

#include "mpi_transport_private.h"
#include "run_private.h"

static void execute(weft_run *run) { weft_chip_run(&run->chips[0], run->options.steps); }

static weft_endpoint *connect_chip(void *context, uint32_t chip) {
  (void)chip;
  return weft_mpi_net_end(context);
}

static int run_on(const weft_abi_program *program, MPI_Comm comm, uint64_t steps, const weft_array_set *inputs,
                  weft_array_set *outputs, weft_diag *diag) {
  int rank, ranks;
  if (MPI_Comm_rank(comm, &rank) != MPI_SUCCESS || MPI_Comm_size(comm, &ranks) != MPI_SUCCESS)
    return weft_status_exit_code(WEFT_UNAVAILABLE);
  if ((uint32_t)ranks != program->chips) {
    weft_error(diag, WEFT_INVALID, "pass a communicator with one rank a chip",
               "'%s' is a program for %u chips; the communicator has %d ranks", program->name, program->chips, ranks);
    if (rank == 0) weft_run_print(diag);
    return weft_status_exit_code(WEFT_INVALID);
  }
  weft_mpi_net *net = weft_mpi_net_new(comm, &(weft_mpi_net_options){0}, diag);
  if (!net) {
    weft_run_print(diag);
    return weft_status_exit_code(WEFT_UNAVAILABLE);
  }
  int code = weft_run_main(&(weft_run_job){.program = program,
                                           .options = {.steps = steps},
                                           .process = weft_mpi_net_process(net),
                                           .first = (uint32_t)rank,
                                           .count = 1,
                                           .connect = connect_chip,
                                           .context = net,
                                           .inputs = inputs,
                                           .outputs = outputs,
                                           .execute = execute});
  weft_mpi_net_free(net);
  return code;
}

int weft_program_run_steps_mpi(const weft_abi_program *program, MPI_Comm comm, uint64_t steps,
                               const weft_array_set *inputs, weft_array_set *outputs) {
  weft_diag *diag = weft_diag_new();
  int code = run_on(program, comm, steps, inputs, outputs, diag);
  weft_diag_free(diag);
  return code;
}

int weft_program_run_mpi(const weft_abi_program *program, MPI_Comm comm, const weft_array_set *inputs,
                         weft_array_set *outputs) {
  return weft_program_run_steps_mpi(program, comm, 1, inputs, outputs);
}
