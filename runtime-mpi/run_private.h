/* run_private.h: a run of a program by one process: its local chips, where their tensors come from and go to. */
#ifndef WEFT_RUN_PRIVATE_H
#define WEFT_RUN_PRIVATE_H

#include "chip_private.h"

#include "weft/tensor_file.h"

typedef struct weft_run_options {
  const char *in, *out;
  uint64_t steps;
  const char *advance; /**< dataset of an Input of integers that is one greater at every step; NULL: none */
  bool dry_run, map, stats, kernel_strict;
  double timeout;         /**< seconds; 0: wait for ever */
  const char *kernel;     /**< kernel set by name; NULL: the best this host has */
  uint64_t message_limit; /**< bytes of the largest single message; 0: the transport's own */
  uint64_t host_ranks;    /**< ranks that are seen as one host; 0: as it is */
  uint64_t threads;       /**< a chip; 0: OMP_NUM_THREADS / local chips */
} weft_run_options;

typedef struct weft_run {
  const weft_abi_program *program;
  weft_run_options options;
  weft_process *process;
  weft_chip *chips; /**< of this process, ascending */
  uint32_t chip_count;
  uint32_t *class_of; /**< by chip of the program: its class, and its row there */
  uint32_t *row_of;
  const struct weft_kernel_set *kernels;
  int threads; /**< a chip */
  double started;
  bool to_terminal; /**< progress may be shown */
} weft_run;

/** Where tensors come from: a file or the arrays of a host application. */
typedef struct weft_source {
  weft_tensor_file *file;
  const weft_array_set *arrays;
  const char *name; /**< for messages */
} weft_source;

/** What a command line asks for beside running the program. */
typedef enum weft_run_question { WEFT_ASKED_NOTHING, WEFT_ASKED_HELP, WEFT_ASKED_VERSION } weft_run_question;
/** Reads the command line. WEFT_USAGE with a message. */
weft_status weft_run_options_read(int argc, char **argv, weft_run_options *options, weft_run_question *asked,
                                  weft_diag *diag);
void weft_run_options_answer(weft_text *text, const weft_abi_program *program, weft_run_question asked, bool mpi);

/** Checks versions, classes, parameters, all-reduces, links: a program that another generator made wrongly is refused.
 */
weft_status weft_run_check(const weft_abi_program *program, weft_diag *diag);
/** The hash that all ranks must share. */
uint64_t weft_run_hash(const weft_abi_program *program);

/** What a process brings to a run. */
typedef struct weft_run_job {
  const weft_abi_program *program;
  weft_run_options options;
  weft_process *process;
  uint32_t first, count; /**< its chips */
  weft_endpoint *(*connect)(void *context, uint32_t chip);
  void *context;
  const weft_array_set *inputs;          /**< NULL: options.in */
  weft_array_set *outputs;               /**< NULL: options.out */
  void (*execute)(struct weft_run *run); /**< runs all local chips */
  bool to_terminal;
} weft_run_job;

/** Makes the run and its chips, without tensors. */
weft_status weft_run_open(weft_run *run, const weft_run_job *job, weft_diag *diag);
void weft_run_close(weft_run *run);

/** Compares status between all ranks: the same answer everywhere. `speaks` on the one rank whose messages count: the
 * first that failed and is not `silent`. */
weft_status weft_run_agree(weft_run *run, weft_status status, bool silent, bool *speaks);
/** Cores this process may run on. */
int weft_allowed_cores(void);
/** Compares program, versions and kernels of all ranks. */
weft_status weft_run_compare(weft_run *run, weft_diag *diag);

/** Opens the input as far as this process needs one. */
weft_status weft_source_open(weft_source *source, const weft_run *run, weft_diag *diag);
void weft_source_close(weft_source *source);
/** Checks every dataset that the local chips read: there, of the right format and extents. Adds a message for each. */
weft_status weft_source_check(const weft_source *source, const weft_run *run, weft_diag *diag);
/** Reads the blocks of the local chips. */
weft_status weft_source_load(const weft_source *source, weft_run *run, weft_diag *diag);

/** Whether the tensor is read before the first step, or written after the last. */
bool weft_tensor_is_read(const weft_abi_tensor *tensor);
bool weft_tensor_is_written(const weft_abi_tensor *tensor);
/** Whether the tensor is the Input that --advance names. */
bool weft_tensor_advances(const weft_run *run, const weft_abi_tensor *tensor);
/** A chip's block of a dataset. */
typedef struct weft_block {
  uint64_t row0, col0;
  bool writer;
} weft_block;
weft_block weft_tensor_block(const weft_abi_tensor *tensor, const int64_t *parameters);

/** Where results go: a file written by rank 0, or arrays of rank 0. */
typedef struct weft_sink {
  const char *path;
  weft_array_set *arrays;
} weft_sink;
/** Whether a run of the program leaves anything to keep. */
bool weft_results_exist(const weft_abi_program *program);
/** Collects every block that some chip writes on rank 0 and writes them whole. All ranks call it; the answer is agreed.
 */
weft_status weft_results_write(weft_run *run, const weft_sink *sink, bool *speaks, weft_diag *diag);

/** Collects the times of all chips on rank 0 and appends the table there. */
weft_status weft_stats_report(weft_run *run, double seconds, weft_text *text, weft_diag *diag);
/** Looks where all ranks are: appends one line a rank to `map` (rank, host, chips, threads, cores) unless it is NULL,
 * and warns on rank 0 when a host has more threads than cores. */
weft_status weft_hosts_report(weft_run *run, weft_text *map, weft_diag *diag);

/** The whole way from options to results; both mains and the library call end here. Prints messages. Returns the exit
 * status. */
int weft_run_main(const weft_run_job *job);

/** Shows progress on a terminal when the run is old enough; called by the first local chip between steps. */
void weft_progress_show(weft_chip *chip, uint64_t runs);
void weft_progress_end(const weft_run *run);

/** Installs the SIGTERM and SIGINT handlers that say what each local chip was doing. */
void weft_signals_install(weft_run *run);
/** From here a signal ends the process without a word, with this status. */
void weft_signals_quiet(int status);
/** Ends the process with this status when it is still there after so many seconds. */
void weft_signals_end_within(unsigned seconds, int status);
void weft_signals_remove(void);

/** Prints messages on standard error as the commands do, and forgets them. */
void weft_run_print(weft_diag *diag);
/** Writes to standard output and frees. An error when that cannot be written. */
weft_status weft_run_say(weft_text *text, weft_diag *diag);

#endif
