/* weft/dataflow_run.h: running the compiled entries of dataflow modules: threads of one process or of several, with the
 * channels between them. */
#ifndef WEFT_DATAFLOW_RUN_H
#define WEFT_DATAFLOW_RUN_H

#include "weft/dataflow.h"
#include "weft/dataflow_abi.h"

/** The entries of a compiled module: weft_df_entries and weft_df_entry_count of its C file. */
typedef struct weft_df_program {
  const weft_df_entry *entries;
  uint32_t count;
} weft_df_program;
/** The entry called so, or NULL. */
const weft_df_entry *weft_df_find(const weft_df_program *program, const char *name);

/** One entry to run. */
typedef struct weft_df_launch {
  const weft_df_entry *entry;
  const weft_binding *inputs;   /**< one an input */
  weft_channel *const *outputs; /**< one a stream result */
  uint64_t *results;            /**< takes the value results */
  void **machines;              /**< weft_df_env.machines */
  uint32_t chip;                /**< the process that runs it, modulo their number */
} weft_df_launch;

/** What became of launches that ran together. */
typedef struct weft_df_outcome {
  bool done;
  uint64_t launch; /**< when not: which one failed, and why */
  char text[1024];
} weft_df_outcome;

/** Several processes that run the same launches, each those of its own chip. One call runs at a time. */
typedef struct weft_df_chips weft_df_chips;
struct weft_df_chips {
  uint32_t rank, ranks;
  /** Moves tokens between the processes until all threads of all of them have ended. */
  bool (*serve)(weft_df_chips *chips, struct weft_df_queues *queues);
  /** Gives every process the bytes of `root`. */
  bool (*share)(weft_df_chips *chips, uint32_t root, void *data, uint64_t bytes);
  /** The least of all processes' words. */
  bool (*least)(weft_df_chips *chips, uint64_t *word);
};

/** Runs launches together until all have ended or one has failed. Memories, channels and results are those of every
 * process afterwards. `chips` NULL: each launch is a thread of this process. WEFT_INVALID, by name, for bindings that
 * cannot be: a memory used on two processes, a channel that two launches receive from. */
weft_status weft_df_run(const weft_df_launch *launches, uint64_t count, weft_df_chips *chips, weft_df_outcome *outcome,
                        weft_diag *diag);

/** Takes what a main program has to say; `failed`: it belongs on standard error. */
typedef void (*weft_df_say)(const char *text, bool failed);
/** The main program of a compiled module: runs the case files of the command line and gives the exit status. */
__attribute__((visibility("default"))) int weft_df_main_local(const weft_df_program *program, int argc, char **argv,
                                                              weft_df_say say);
/** The same with one process a chip, started by mpirun; one of them says it, while all still run: mpirun may lose what
 * a process writes as its last act. Of weft_dataflow_mpi. */
__attribute__((visibility("default"))) int weft_df_main_mpi(const weft_df_program *program, int argc, char **argv,
                                                            weft_df_say say);

#endif
