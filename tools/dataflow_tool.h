/* What the commands over MLIR text share: reading modules, choosing an entry, binding its inputs, printing what came
 * out. */
#ifndef WEFT_TOOLS_DATAFLOW_TOOL_H
#define WEFT_TOOLS_DATAFLOW_TOOL_H

#include "options.h"
#include "weft/dataflow_run.h"

/** A text that was read, with the context it lives in. Starts zeroed; freed by weft_tool_module_free. */
typedef struct weft_tool_module {
  weft_mlir_context *context;
  weft_mlir_file *file;
} weft_tool_module;
weft_status weft_tool_module_read(weft_tool_module *module, const char *path, weft_diag *diag);
void weft_tool_module_free(weft_tool_module *module);
/** Prints all modules of the file to `path`. */
weft_status weft_tool_module_write(const weft_tool_module *module, const char *path, bool generic, weft_diag *diag);
/** The entry called `name`, or, when it is NULL, the only graph, thread or function of all modules. */
weft_status weft_tool_entry(const weft_tool_module *module, const char *name, weft_mlir_op **entry, weft_diag *diag);

/** What a user says about inputs: --arg 0=5, --mem 1=FILE.h5:/x, --mem 1=[1,2,3], --mem 2=@1, --stream 0=[1,2]. */
typedef struct weft_tool_inputs {
  weft_option_list args, memories, streams;
} weft_tool_inputs;
/** Rows of the options by which a command chooses an entry, binds its inputs or takes a case; what they say of the
 * entry, of waiting tokens and of the case is the command's. `o` has graph, inputs and case_path. */
#define WEFT_TOOL_ENTRY_OPTIONS(o, graph_help, stream_help, case_help)                                                 \
  {.name = "graph", .kind = WEFT_OPTION_TEXT, .target = &(o).graph, .argument = "NAME", .help = graph_help},           \
      {.name = "arg",                                                                                                  \
       .kind = WEFT_OPTION_LIST,                                                                                       \
       .target = &(o).inputs.args,                                                                                     \
       .argument = "I=VALUE",                                                                                          \
       .help = "the value of input I, the start not counted"},                                                         \
      {.name = "mem",                                                                                                  \
       .kind = WEFT_OPTION_LIST,                                                                                       \
       .target = &(o).inputs.memories,                                                                                 \
       .argument = "I=WHAT",                                                                                           \
       .help = "the memory of input I: [1, 2], a JSON file, FILE.h5:/x, or @J for that of input J"},                   \
      {.name = "stream",                                                                                               \
       .kind = WEFT_OPTION_LIST,                                                                                       \
       .target = &(o).inputs.streams,                                                                                  \
       .argument = "I=WHAT",                                                                                           \
       .help = stream_help},                                                                                           \
  {                                                                                                                    \
    .name = "case", .kind = WEFT_OPTION_TEXT, .target = &(o).case_path, .argument = "JSON", .help = case_help          \
  }
/** Where the memories go after the run. `o` has output. */
#define WEFT_TOOL_MEMORIES_OPTION(o)                                                                                   \
  {                                                                                                                    \
    .name = "output", .letter = 'o', .kind = WEFT_OPTION_TEXT, .target = &(o).output, .argument = "FILE.h5",           \
    .help = "write the memories to HDF5"                                                                               \
  }
void weft_tool_inputs_free(weft_tool_inputs *inputs);

/** One binding an input of the entry's function type, with what the bindings own. Starts zeroed. */
typedef struct weft_tool_bindings {
  weft_arena *arena;
  weft_binding *items;
  uint64_t count;
  weft_memory *buffers; /**< of input i, when it owns one */
  weft_channel *channels;
  weft_channel *outputs; /**< of stream results */
  uint64_t output_count;
  uint32_t *places; /* of input i as it is numbered outside: among the entry's inputs */
} weft_tool_bindings;
weft_status weft_tool_bind(const weft_mlir_op *entry, const weft_tool_inputs *inputs, weft_tool_bindings *bindings,
                           weft_diag *diag);
void weft_tool_bindings_free(weft_tool_bindings *bindings);
/** Prints memories and streams after a run; `output` not NULL: memories go to an HDF5 file, one dataset "memI" an
 * input. */
weft_status weft_tool_print_bindings(const weft_mlir_op *entry, const weft_tool_bindings *bindings, const char *output,
                                     weft_diag *diag);

/** Prints what entries the file has and what they consist of, or, with `dot`, a picture of one graph (NULL: the only
 * one). */
weft_status weft_tool_dataflow_show(const char *path, const char *graph, bool dot, bool cells, weft_diag *diag);
/** Whether a path is that of MLIR text. */
bool weft_tool_is_mlir(const char *path);
/** Writes C for the module of a file of MLIR text, with main programs and build.ninja. */
weft_status weft_tool_dataflow_write(const char *path, const char *directory, bool machines, weft_diag *diag);
/** Compiles a module and loads it; `*library` is closed by weft_tool_dataflow_unload. */
weft_status weft_tool_dataflow_load(weft_tool_module *module, bool machines, void **library, weft_df_program *program,
                                    weft_diag *diag);
void weft_tool_dataflow_unload(void *library);

/** Runs a case file and prints how it went; a failed case is WEFT_INVALID. */
weft_status weft_tool_case(weft_tool_module *module, const char *case_path, const weft_case_options *options,
                           weft_diag *diag);
/** Reports how a run ended. */
weft_status weft_tool_ended(weft_run_state state, const weft_report *report, const char *file, weft_diag *diag);

/** Evaluates the shipped postcondition `name` ("while.spct") and prints the verdict; one that fails is WEFT_INVALID. */
weft_status weft_tool_shipped_postcondition(const char *name, weft_tool_module *module, weft_mlir_op *input,
                                            weft_mlir_op *output, weft_diag *diag);

#endif
