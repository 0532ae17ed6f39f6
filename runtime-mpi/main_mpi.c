/* out/run: one MPI rank a chip. */
#include "mpi_transport_private.h"
#include "run_private.h"

#include <stdio.h>
#include <unistd.h>

enum { FINALIZE_SECONDS = 5 };

static void execute(weft_run *run) { weft_chip_run(&run->chips[0], run->options.steps); }

static weft_endpoint *connect_chip(void *context, uint32_t chip) {
  (void)chip;
  return weft_mpi_net_end(context);
}

static weft_status check_ranks(const weft_abi_program *program, const char *command, int ranks, weft_diag *diag) {
  if ((uint32_t)ranks == program->chips) return WEFT_OK;
  weft_text hint = {0};
  weft_text_printf(&hint, "mpirun -n %u %s --in tensors.h5 --out result.h5, or run-local, which needs no mpirun",
                   program->chips, command);
  weft_status status =
      weft_error(diag, WEFT_INVALID, hint.data, "'%s' is a program for %u chips and needs %u ranks; it has %d",
                 program->name, program->chips, program->chips, ranks);
  weft_text_free(&hint);
  return status;
}

static int run_program(const weft_abi_program *program, const weft_run_options *options, weft_diag *diag) {
  const weft_mpi_net_options net_options = {.message_limit = options->message_limit,
                                            .host_ranks = (uint32_t)options->host_ranks,
                                            .timeout = options->timeout};
  weft_mpi_net *net = weft_mpi_net_new(MPI_COMM_WORLD, &net_options, diag);
  if (!net) {
    weft_run_print(diag);
    return weft_status_exit_code(WEFT_UNAVAILABLE);
  }
  weft_process *process = weft_mpi_net_process(net);
  int code = weft_run_main(&(weft_run_job){.program = program,
                                           .options = *options,
                                           .process = process,
                                           .first = process->rank,
                                           .count = 1,
                                           .connect = connect_chip,
                                           .context = net,
                                           .execute = execute,
                                           .to_terminal = process->rank == 0 && isatty(STDERR_FILENO)});
  if (weft_mpi_net_lost(net)) MPI_Abort(MPI_COMM_WORLD, code);
  weft_mpi_net_free(net);
  return code;
}

/* What only concerns the command line is said by rank 0. */
static int run_arguments(const weft_abi_program *program, int argc, char **argv, weft_diag *diag) {
  weft_run_options options;
  weft_run_question asked;
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  weft_status status = weft_run_options_read(argc, argv, &options, &asked, diag);
  if (status == WEFT_OK && asked) {
    weft_text text = {0};
    weft_run_options_answer(&text, program, asked, true);
    if (rank == 0) status = weft_run_say(&text, diag);
    weft_text_free(&text);
    weft_run_print(diag);
    return weft_status_exit_code(status);
  }
  if (status == WEFT_OK) status = check_ranks(program, argc > 0 ? argv[0] : "out/run", ranks, diag);
  if (status == WEFT_OK) return run_program(program, &options, diag);
  if (rank == 0) weft_run_print(diag);
  return weft_status_exit_code(status);
}

int weft_main_mpi(const weft_abi_program *program, int argc, char **argv) {
  int provided;
  if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
    fputs("weft: MPI could not be started\n", stderr);
    return weft_status_exit_code(WEFT_UNAVAILABLE);
  }
  weft_diag *diag = weft_diag_new();
  int code = run_arguments(program, argc, argv, diag);
  weft_diag_free(diag);
  fflush(stdout);
  fflush(stderr);
  /* After a failure messages may be under way that nobody takes; ending must not depend on them. */
  if (code) weft_signals_end_within(FINALIZE_SECONDS, code);
  MPI_Finalize();
  return code;
}
