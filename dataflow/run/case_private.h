/* A case file while it runs: shared by case.c and case_threads.c. */
#ifndef WEFT_DATAFLOW_RUN_CASE_PRIVATE_H
#define WEFT_DATAFLOW_RUN_CASE_PRIVATE_H

#include "compute.h"
#include "weft/dataflow_run.h"
#include "weft/json.h"

/* Everything of one case file. Names are those of the JSON. */
typedef struct named_buffer {
  const char *name;
  weft_memory buffer;
} named_buffer;

typedef struct named_channel {
  const char *name;
  weft_channel channel;
} named_channel;

/* An entry as a case sees it: types of inputs and results, and the input that argument i is for. */
typedef struct case_entry {
  const char *name;
  const weft_mlir_op *op; /* NULL: compiled */
  const weft_df_entry *compiled;
  const weft_mlir_type *const *inputs, *const *results; /* value results, then stream results */
  uint32_t input_count, value_count, stream_count;
  uint32_t *places;
} case_entry;

/* A thread with its interpreter, made at its first launch and kept; or its compiled entry. */
typedef struct named_machine {
  const char *name;
  case_entry entry;
  weft_interpreter *machine;
  void **kept;
} named_machine;

typedef struct case_run {
  weft_mlir_context *context;
  weft_arena *arena;
  const weft_case_options *options;
  weft_case_result *result;
  weft_diag *diag;
  bool has_entry;
  case_entry entry;
  const char *file;
  weft_interpreter *interpreter;
  weft_simulator *simulator;
  named_buffer *buffers;
  uint64_t buffer_count;
  named_channel *channels;
  uint64_t channel_count;
  weft_channel *outputs; /* of stream results */
  uint32_t output_count;
  uint64_t *results; /* of a compiled entry */
  void **kept;
  weft_mlir_op *module;
  named_machine *machines; /* of threads */
  uint64_t machine_count, machine_capacity;
} case_run;

/* Counts a difference and says where; WEFT_OK. */
weft_status case_difference(case_run *r, const weft_json *at, const char *format, ...) WEFT_PRINTF(3, 4);
/* The case file itself is wrong. */
weft_status case_wrong(case_run *r, const weft_json *at, const char *text);
/* Binds a thread's or graph's inputs to the items of args. */
weft_status case_bind(case_run *r, const case_entry *entry, const weft_json *args, weft_binding *inputs);
weft_status case_compare_words(case_run *r, const weft_json *expected, const char *what, const weft_mlir_type *type,
                               const uint64_t *words, uint64_t count);
/* What compiled machines keep; freed by case_drop_kept. */
void **case_new_kept(case_run *r);
void case_drop_kept(const case_run *r, void **kept);
/* The entry called so. */
weft_status case_find_entry(case_run *r, const weft_json *at, const char *name, case_entry *entry);
/* Runs launches of compiled entries and counts their failure; `*done` is whether there was none (case_compiled.c). */
weft_status case_run_compiled(case_run *r, const weft_json *at, const weft_df_launch *launches, uint64_t count,
                              bool failure_expected, bool *done);
weft_channel *case_channel(const case_run *r, const char *name);
uint64_t case_steps(const case_run *r);
/* Runs the threads of one launch together (case_threads.c). */
weft_status case_run_threads(case_run *r, const weft_json *threads);
void case_drop_threads(case_run *r);

#endif
