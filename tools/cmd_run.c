/* weft run: a program in MLIR text, compiled to C and run. */
#include "dataflow_tool.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct run_options {
  const char *path, *graph, *case_path, *output;
  weft_tool_inputs inputs;
  bool machines;
} run_options;

static void print_results(const weft_mlir_op *entry, const weft_df_entry *compiled, const uint64_t *results) {
  const weft_mlir_type *type = weft_mlir_function_type(entry);
  for (uint32_t i = 0; i < compiled->results && i < type->result_count; i++) {
    weft_text text = {0};
    weft_word_to_text(type->results[i], results[i], &text);
    printf("result %" PRIu32 ": %s\n", i, text.data ? text.data : "");
    weft_text_free(&text);
  }
}

static weft_status run_entry(const run_options *o, const weft_mlir_op *entry, const weft_df_program *program,
                             weft_tool_bindings *b, weft_diag *diag) {
  const weft_df_entry *compiled = weft_df_find(program, weft_mlir_symbol_name(entry));
  if (!compiled) return weft_error(diag, WEFT_INVALID, NULL, "the entry was not compiled");
  weft_channel **outputs = WEFT_NEW_ARRAY(b->arena, weft_channel *, b->output_count);
  uint64_t *results = WEFT_NEW_ARRAY(b->arena, uint64_t, compiled->results);
  if (!outputs || !results) return weft_error_memory(diag);
  for (uint64_t i = 0; i < b->output_count; i++) outputs[i] = &b->outputs[i];
  weft_df_launch launch = {.entry = compiled, .inputs = b->items, .outputs = outputs, .results = results};
  weft_df_outcome outcome;
  weft_status status = weft_df_run(&launch, 1, NULL, &outcome, diag);
  if (status == WEFT_OK && !outcome.done) status = weft_error(diag, WEFT_INVALID, NULL, "%s", outcome.text);
  if (status != WEFT_OK) return status;
  printf("as %s\n", compiled->form);
  print_results(entry, compiled, results);
  return weft_tool_print_bindings(entry, b, o->output, diag);
}

static weft_status run(const run_options *o, weft_diag *diag) {
  weft_tool_module module = {0};
  weft_tool_bindings bindings = {0};
  weft_mlir_op *entry = NULL;
  weft_df_program program = {0};
  void *library = NULL;
  weft_status status = weft_tool_module_read(&module, o->path, diag);
  if (status == WEFT_OK && !o->case_path) status = weft_tool_entry(&module, o->graph, &entry, diag);
  if (status == WEFT_OK && entry) status = weft_tool_bind(entry, &o->inputs, &bindings, diag);
  if (status == WEFT_OK) status = weft_tool_dataflow_load(&module, o->machines, &library, &program, diag);
  if (status == WEFT_OK && entry) status = run_entry(o, entry, &program, &bindings, diag);
  if (status == WEFT_OK && o->case_path) {
    weft_case_options options = {.mode = WEFT_CASE_COMPILED, .program = &program};
    status = weft_tool_case(&module, o->case_path, &options, diag);
  }
  weft_tool_dataflow_unload(library);
  weft_tool_bindings_free(&bindings);
  weft_tool_module_free(&module);
  return status;
}

int weft_cmd_run(int argc, char **argv) {
  run_options o = {.machines = false};
  const weft_option options[] = {
      WEFT_TOOL_ENTRY_OPTIONS(o, "the graph, function or thread to run (default: the only one)",
                              "the tokens waiting in channel I, as --mem",
                              "run the launches of a case file and compare; its threads run at the same time"),
      {.name = "machines",
       .kind = WEFT_OPTION_FLAG,
       .target = &o.machines,
       .help = "token graphs as machines of queues even where loops are possible"},
      WEFT_TOOL_MEMORIES_OPTION(o),
      {0}};
  const weft_usage usage = {
      .synopsis = "run FILE [--graph NAME] [--arg I=VALUE]... [--mem I=WHAT]... [--case JSON]",
      .about =
          "Compiles the graphs, functions and threads of MLIR text to C and runs one of them: structured bodies and\n"
          "lowered graphs as loops, other token graphs as machines of queues. `weft codegen` writes that C.",
      .example = "echo 'func.func @at(%i: index, %m: memref<4xi32>) -> i32 {\n"
                 "  %x = memref.load %m[%i] : memref<4xi32> return %x : i32 }' > at.mlir\n"
                 "weft run at.mlir --arg 0=2 --mem '1=[1, 2, 3, 4]'",
      .options = options,
      .least = 1,
      .most = 1};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) {
    weft_tool_inputs_free(&o.inputs);
    return exit_code;
  }
  o.path = arguments.items[0];
  weft_diag *diag = weft_diag_new();
  weft_status status = diag ? run(&o, diag) : WEFT_UNAVAILABLE;
  weft_tool_inputs_free(&o.inputs);
  return weft_tool_finish(status, diag, &arguments);
}
