/* weft/dataflow.h: structured programs and token graphs: the dataflow and loom dialects, the structured interpreter,
 * the token simulator, the lowering from one to the other and the publication of graphs.
 *
 * Values are 64-bit words: integers and index sign-extended (i1 as 0 and 1), floats as the bits of their format,
 * zero-extended; `none` is 0. Source: the graph-launch and while-lowering seeds; design "The dataflow front end". */
#ifndef WEFT_DATAFLOW_H
#define WEFT_DATAFLOW_H

#include "weft/mlir_standard.h"

/* ---- the dialects --------------------------------------------------------------------------------------------- */

/** Rows: identifier, name. Token ops first: what a lowered graph consists of, besides arith and math. */
#define WEFT_DATAFLOW_OPS(ROW)                                                                                         \
  ROW(CONSTANT, "dataflow.constant")                                                                                   \
  ROW(SYNC, "dataflow.sync")                                                                                           \
  ROW(MUX, "dataflow.mux")                                                                                             \
  ROW(DEMUX, "dataflow.demux")                                                                                         \
  ROW(CARRY, "dataflow.carry")                                                                                         \
  ROW(INVARIANT, "dataflow.invariant")                                                                                 \
  ROW(GATE, "dataflow.gate")                                                                                           \
  ROW(STREAM, "dataflow.stream")                                                                                       \
  ROW(LOAD, "dataflow.load")                                                                                           \
  ROW(STORE, "dataflow.store")                                                                                         \
  ROW(GRAPH, "dataflow.graph")                                                                                         \
  ROW(GRAPH_RETURN, "dataflow.graph.return")                                                                           \
  ROW(GRAPH_LAUNCH, "dataflow.graph.launch")                                                                           \
  ROW(THREAD, "dataflow.thread")                                                                                       \
  ROW(THREAD_YIELD, "dataflow.thread.yield")                                                                           \
  ROW(THREAD_LAUNCH, "dataflow.thread.launch")                                                                         \
  ROW(THREAD_WAIT, "dataflow.thread.wait")                                                                             \
  ROW(CHANNEL_SEND, "dataflow.channel.send")                                                                           \
  ROW(CHANNEL_RECEIVE, "dataflow.channel.receive")                                                                     \
  ROW(SPATIAL_REGION, "loom.spatial_region")                                                                           \
  ROW(SPATIAL_YIELD, "loom.spatial_yield")

typedef enum weft_dataflow_op {
  WEFT_DATAFLOW_FIRST_ = WEFT_MLIR_FIRST_CODE - 1,
#define WEFT_ROW(identifier, name) WEFT_DATAFLOW_##identifier,
  WEFT_DATAFLOW_OPS(WEFT_ROW)
#undef WEFT_ROW
} weft_dataflow_op;

/** Registers the dialects dataflow and loom; the standard ones are registered by weft_mlir_register_standard. */
weft_status weft_dataflow_register(weft_mlir_context *context, weft_diag *diag);

/* ---- what programs run on ------------------------------------------------------------------------------------- */

/** Rows: identifier, what the message says. */
#define WEFT_FAULTS(ROW)                                                                                               \
  ROW(NONE, "no fault")                                                                                                \
  ROW(DIVISION, "division by zero")                                                                                    \
  ROW(OVERFLOW, "the result does not fit")                                                                             \
  ROW(SHIFT, "shift by the width or more")                                                                             \
  ROW(BOUNDS, "index out of bounds")                                                                                   \
  ROW(STEP, "the step of a loop is not positive")                                                                      \
  ROW(LANE, "the selector is beyond the last lane")                                                                    \
  ROW(UNWRITTEN, "a place that was never written is read")                                                             \
  ROW(SIZE, "the buffer is too large or has no size")                                                                  \
  ROW(LEFTOVER, "tokens or states are left behind")

typedef enum weft_fault {
#define WEFT_ROW(identifier, text) WEFT_FAULT_##identifier,
  WEFT_FAULTS(WEFT_ROW)
#undef WEFT_ROW
      WEFT_FAULT_COUNT,
} weft_fault;
const char *weft_fault_text(weft_fault fault);

/** A memory: `count` words, of which those with written[i] == 0 must not be read; `written` NULL: all may be. */
typedef struct weft_memory {
  const char *name; /**< for messages; may be NULL */
  const weft_mlir_type *element;
  uint64_t count;
  uint64_t *words;
  uint8_t *written;
  uint64_t loads, stores; /**< counted while running */
} weft_memory;

/** Tokens in order, without bound: what a stream of a graph or a channel of a thread is bound to. Starts zeroed but for
 * the element; freed by weft_channel_free. */
typedef struct weft_channel {
  const char *name;
  const weft_mlir_type *element;
  uint64_t *words;
  uint64_t begin, end, capacity; /**< tokens waiting are words[begin] to words[end - 1] */
} weft_channel;

/** False when memory is exhausted. */
bool weft_channel_push(weft_channel *channel, uint64_t word);
static inline uint64_t weft_channel_waiting(const weft_channel *channel) { return channel->end - channel->begin; }
/** The first token that waits; NULL when there never was one. */
static inline const uint64_t *weft_channel_first(const weft_channel *channel) {
  return channel->words ? channel->words + channel->begin : NULL;
}
void weft_channel_free(weft_channel *channel);

/** What an input of a graph, function or thread is bound to: by its type a word, a buffer or a channel. */
typedef struct weft_binding {
  uint64_t word;
  weft_memory *buffer;
  weft_channel *channel;
} weft_binding;

typedef enum weft_run_state {
  WEFT_RUN_DONE,
  WEFT_RUN_WAITING, /**< for a token of a channel: fill it and go on */
  WEFT_RUN_STUCK,   /**< nothing can ever happen again, and the end was not reached */
  WEFT_RUN_FAULT,
  WEFT_RUN_LIMIT, /**< the steps allowed were used up */
  WEFT_RUN_FAILED /**< out of memory */
} weft_run_state;

/** How a run ended. */
typedef struct weft_report {
  weft_fault fault;
  const weft_mlir_op *op; /**< where, or NULL */
  const char *text;       /**< a sentence or several lines; owned by the machine, valid until it goes on */
  uint64_t steps;         /**< instructions or firings since the start */
} weft_report;

/** The word of a value in JSON or on a command line as its type holds it ("-3", "1.5", "true"); false when it is none.
 */
bool weft_word_from_text(const weft_mlir_type *type, const char *text, uint64_t *word);
/** Appends a word of this type: an integer, or a float with all its digits. */
void weft_word_to_text(const weft_mlir_type *type, uint64_t word, weft_text *text);

/** Memories are addressed row by row. Takes how many elements one step of the first index is; false, with the reason in
 * `*why`, for a memref that has no such address: too many dimensions or elements, one but the first dynamic, a layout.
 */
enum { WEFT_MOST_RANK = 8 };
/** Most elements of a memory, bounded by what 64 bits address as words, and of one memref.alloc. */
#define WEFT_MOST_ELEMENTS ((uint64_t)PTRDIFF_MAX / sizeof(uint64_t))
enum { WEFT_MOST_ALLOCATED = 1 << 28 };
/** Whether a memory of this type can be: its static extents leave at most WEFT_MOST_ELEMENTS. */
bool weft_memref_exists(const weft_mlir_type *type);
bool weft_memref_rows(const weft_mlir_type *type, uint64_t *row, const char **why);
/** What the first index of a memref of several dimensions, when it is dynamic, cannot reach; below it no address of an
 * element wraps. 0: the memref holds nothing. */
static inline uint64_t weft_memref_limit(uint64_t row) { return row ? (UINT64_C(1) << 62) / row : 0; }

typedef enum weft_order { WEFT_ORDER_PROGRAM, WEFT_ORDER_RANDOM } weft_order;

/* ---- the structured interpreter ------------------------------------------------------------------------------- */

/** Runs scf, arith, math, memref and channel ops in their order: the meaning of a structured program. The entry is a
 * dataflow.graph, func.func or dataflow.thread; a thread's graph launches run to their end, graphs of token ops through
 * the simulator. A memref.alloc is one buffer a launch. */
typedef struct weft_interpreter weft_interpreter;

/** WEFT_INVALID, by name, for what it cannot run. `file` names the text in messages. */
weft_status weft_interpreter_new(const weft_mlir_op *entry, const char *file, weft_interpreter **interpreter,
                                 weft_diag *diag);
void weft_interpreter_free(weft_interpreter *interpreter);
/** The order of firing in the graphs that it launches. */
void weft_interpreter_set_order(weft_interpreter *interpreter, weft_order order, uint64_t seed);
/** Begins a launch: one binding an input, without the start and control tokens; a thread's grid indices come last. */
weft_status weft_interpreter_start(weft_interpreter *interpreter, const weft_binding *inputs, uint64_t count,
                                   weft_diag *diag);
/** Goes on, for at most `steps` instructions. */
weft_run_state weft_interpreter_run(weft_interpreter *interpreter, uint64_t steps);
/** Runs several started machines that share channels, in turns: DONE when all are, WAITING when those that are not all
 * wait for tokens that nobody will send. `*which` is the machine that faulted, or the first that waits. */
weft_run_state weft_interpreters_run(weft_interpreter *const *machines, uint64_t count, uint64_t steps,
                                     uint64_t *which);
const weft_report *weft_interpreter_report(const weft_interpreter *interpreter);
/** Value result `index` after WEFT_RUN_DONE. */
uint64_t weft_interpreter_result(const weft_interpreter *interpreter, uint64_t index);
uint64_t weft_interpreter_result_count(const weft_interpreter *interpreter);

/* ---- the token simulator -------------------------------------------------------------------------------------- */

typedef struct weft_simulator_options {
  uint64_t capacity; /**< of every queue; 0: 2, the smallest at which loops run; UINT64_MAX: unbounded */
  weft_order order;
  uint64_t seed;
  bool strict; /**< leftovers are faults: for graphs that the lowering made */
  /** Called at each firing with the op and its results' words; may be NULL. */
  void (*trace)(void *context, const weft_mlir_op *op, uint64_t firing);
  void *trace_context;
} weft_simulator_options;

typedef struct weft_simulator weft_simulator;

/** Prepares a dataflow.graph of token ops; WEFT_INVALID, by name, for other ops. Queues and states last over launches.
 */
weft_status weft_simulator_new(const weft_mlir_op *graph, const char *file, const weft_simulator_options *options,
                               weft_simulator **simulator, weft_diag *diag);
void weft_simulator_free(weft_simulator *simulator);
/** Begins a launch: one binding an input after the start, and one channel a stream result. */
weft_status weft_simulator_start(weft_simulator *simulator, const weft_binding *inputs, uint64_t count,
                                 weft_channel *const *outputs, uint64_t output_count, weft_diag *diag);
/** Fires until nothing can fire, or `steps` firings. WAITING: a stream input has run dry before completion. */
weft_run_state weft_simulator_run(weft_simulator *simulator, uint64_t steps);
const weft_report *weft_simulator_report(const weft_simulator *simulator);
/** After a run: whether the completion came; a value result and whether it came. */
bool weft_simulator_complete(const weft_simulator *simulator);
bool weft_simulator_result(const weft_simulator *simulator, uint64_t index, uint64_t *word);
/** Tokens of input `index` (a stream) that the slowest use has not taken. */
uint64_t weft_simulator_left(const weft_simulator *simulator, uint64_t index);

/* ---- lowering -------------------------------------------------------------------------------------------------- */

/** loom-lower-graph-memory: replaces the structured body of every dataflow.graph of `module`, and every func.func that
 * accesses memory, by a graph of token ops, which gets the attribute weft.lowered. Graphs of token ops stay as they
 * are. A function's inputs are put in the order values, memories; where that moves one, weft.input_order tells the new
 * positions. All or nothing: refused, by name and with one message, before anything is changed. New ops live in
 * `arena`. */
weft_status weft_lower(weft_mlir_context *context, weft_arena *arena, weft_mlir_op *module, const char *file,
                       weft_diag *diag);

/** loom-lower-for-to-graph: publishes every loom.spatial_region of `module`: its body becomes a private dataflow.graph
 * of token ops at the end of the module, a dataflow.graph.launch takes its place, and completion is handed through the
 * ops around it to dataflow.thread.yield. All or nothing, as weft_lower. */
weft_status weft_publish(weft_mlir_context *context, weft_arena *arena, weft_mlir_op *module, const char *file,
                         weft_diag *diag);

/** What holds of every lowered and published module: it verifies, no structured op and no region is left in it, and
 * every load and store is waited for by its graph's completion. Uses the marks of ops and values. */
weft_status weft_lowering_check(weft_mlir_op *module, const char *file, weft_diag *diag);
/** Whether a module to be lowered lies in the domain of the postcondition of whiles (data/samples/grammars/while.spct):
 * graphs of one scf.while each that load from one memory and store to another, all lanes used. */
bool weft_lowering_in_while_domain(const weft_mlir_op *module);

/** The path of a grammar or postcondition that comes with weft ("while.spct"): in $WEFT_GRAMMARS, the source tree or
 * the installation; false when it is in none. */
bool weft_shipped_grammar(const char *name, char *path, size_t size);

/* ---- C --------------------------------------------------------------------------------------------------------- */

typedef struct weft_emit_options {
  bool machines; /**< token graphs become token machines even where loops are possible */
} weft_emit_options;

/** Appends one C file for all graphs, functions and threads of a module (weft/dataflow_abi.h): structured bodies and
 * token graphs that came from structured control become loops, other token graphs machines of queues. WEFT_INVALID, by
 * name, for what has no C. Uses marks of ops and values. */
weft_status weft_emit_c(weft_mlir_context *context, weft_mlir_op *module, const char *file,
                        const weft_emit_options *options, weft_text *out, weft_diag *diag);

/* ---- pictures -------------------------------------------------------------------------------------------------- */

/** Appends a Graphviz picture of a graph of token ops: loops and branches as nested boxes (rings of ops where the graph
 * did not come from structured control), lanes as labels, tokens of order dashed, the way round a ring thick. Uses
 * marks of ops and values. */
weft_status weft_dataflow_dot(weft_mlir_context *context, weft_mlir_op *graph, const char *file, weft_text *out,
                              weft_diag *diag);

/* ---- cases ---------------------------------------------------------------------------------------------------- */

typedef enum weft_case_mode {
  WEFT_CASE_INTERPRET, /**< the entry as it stands */
  WEFT_CASE_SIMULATE,  /**< a structured entry is lowered first, a graph of token ops is taken as it stands */
  WEFT_CASE_COMPILED   /**< entries of a compiled program; there need be no module */
} weft_case_mode;

struct weft_df_program;
struct weft_df_chips;
struct weft_df_queues;

typedef struct weft_case_options {
  weft_case_mode mode;
  weft_simulator_options simulator; /**< `strict` is set for what was lowered */
  uint64_t steps;                   /**< most of one launch; 0: 2^32 */
  /** For WEFT_CASE_COMPILED (weft/dataflow_run.h); NULL otherwise. */
  const struct weft_df_program *program;
  struct weft_df_chips *chips;
} weft_case_options;

/** What became of a case file. */
typedef struct weft_case_result {
  uint64_t launches, failures;
  uint64_t steps; /**< instructions or firings in all */
} weft_case_result;

/** Runs every launch of a case file (docs/dataflow.md, "Case files") on an entry of `module` and compares what comes
 * out. Each difference is one error in `diag` and counts as a failure; the status is WEFT_OK then, too. */
weft_status weft_case_run(weft_mlir_context *context, weft_mlir_op *module, const char *file, const char *case_path,
                          const weft_case_options *options, weft_case_result *result, weft_diag *diag);

#endif
