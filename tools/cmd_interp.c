/* weft interp: a structured program run directly. */
#include "dataflow_tool.h"
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct interp_options {
  const char *path, *graph, *case_path, *output;
  weft_tool_inputs inputs;
  uint64_t steps;
} interp_options;

static weft_status run_entry(const interp_options *o, weft_mlir_op *entry, const char *file, weft_tool_bindings *b,
                             weft_diag *diag) {
  weft_interpreter *machine = NULL;
  weft_status status = weft_interpreter_new(entry, file, &machine, diag);
  if (status == WEFT_OK) status = weft_interpreter_start(machine, b->items, b->count, diag);
  if (status == WEFT_OK) {
    weft_tool_step("interpreting");
    weft_run_state state = weft_interpreter_run(machine, o->steps);
    weft_tool_step_end();
    const weft_report *report = weft_interpreter_report(machine);
    status = weft_tool_ended(state, report, file, diag);
    printf("%" PRIu64 " steps\n", report->steps);
    const weft_mlir_type *type = weft_mlir_function_type(entry);
    for (uint64_t i = 0; status == WEFT_OK && i < weft_interpreter_result_count(machine); i++) {
      weft_text text = {0};
      weft_word_to_text(type->results[i], weft_interpreter_result(machine, i), &text);
      printf("result %" PRIu64 ": %s\n", i, text.data ? text.data : "");
      weft_text_free(&text);
    }
    if (status == WEFT_OK) status = weft_tool_print_bindings(entry, b, o->output, diag);
  }
  weft_interpreter_free(machine);
  return status;
}

static weft_status run(const interp_options *o, weft_diag *diag) {
  weft_tool_module module = {0};
  weft_tool_bindings bindings = {0};
  weft_mlir_op *entry = NULL;
  weft_status status = weft_tool_module_read(&module, o->path, diag);
  if (status == WEFT_OK && o->case_path) {
    weft_case_options options = {.mode = WEFT_CASE_INTERPRET, .steps = o->steps};
    status = weft_tool_case(&module, o->case_path, &options, diag);
  } else if (status == WEFT_OK) {
    status = weft_tool_entry(&module, o->graph, &entry, diag);
    if (status == WEFT_OK) status = weft_tool_bind(entry, &o->inputs, &bindings, diag);
    if (status == WEFT_OK) status = run_entry(o, entry, module.file->name, &bindings, diag);
  }
  weft_tool_bindings_free(&bindings);
  weft_tool_module_free(&module);
  return status;
}

int weft_cmd_interp(int argc, char **argv) {
  interp_options o = {.steps = UINT64_C(1) << 32};
  const weft_option options[] = {WEFT_TOOL_ENTRY_OPTIONS(o,
                                                         "the graph, function or thread to run (default: the only one)",
                                                         "the tokens waiting in channel I, as --mem",
                                                         "run the launches of a case file and compare"),
                                 {.name = "steps",
                                  .kind = WEFT_OPTION_COUNT,
                                  .target = &o.steps,
                                  .argument = "N",
                                  .help = "most instructions (default 2^32)"},
                                 WEFT_TOOL_MEMORIES_OPTION(o),
                                 {0}};
  const weft_usage usage = {
      .synopsis = "interp FILE [--graph NAME] [--arg I=VALUE]... [--mem I=WHAT]... [--case JSON]",
      .about =
          "Runs a structured program (scf, arith, memref in MLIR text) op by op: what it means. Threads run their\n"
          "published graphs through the simulator.",
      .example = "echo 'func.func @at(%i: index, %m: memref<4xi32>) -> i32 {\n"
                 "  %x = memref.load %m[%i] : memref<4xi32> return %x : i32 }' > at.mlir\n"
                 "weft interp at.mlir --arg 0=2 --mem '1=[1, 2, 3, 4]'",
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
