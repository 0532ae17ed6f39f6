/* weft sim: a token graph run by the rules of its actors. */
#include "dataflow_tool.h"
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sim_options {
  const char *path, *graph, *case_path, *output, *order, *capacity;
  weft_tool_inputs inputs;
  uint64_t steps, seed;
  bool trace;
} sim_options;

static void print_firing(void *context, const weft_mlir_op *op, uint64_t firing) {
  (void)context;
  printf("%8" PRIu64 "  line %u  %s\n", firing, op->line, op->name->text);
}

static weft_status machine_options(const sim_options *o, weft_simulator_options *options, weft_diag *diag) {
  options->order = strcmp(o->order, "random") == 0 ? WEFT_ORDER_RANDOM : WEFT_ORDER_PROGRAM;
  options->seed = o->seed;
  if (o->trace) options->trace = print_firing;
  if (!o->capacity) return WEFT_OK;
  char *end;
  options->capacity = strtoull(o->capacity, &end, 10);
  if (strcmp(o->capacity, "unbounded") == 0)
    options->capacity = UINT64_MAX;
  else if (*end || !options->capacity)
    return weft_error(diag, WEFT_USAGE, "give --capacity 2, or leave it out",
                      "--capacity %s: a number of tokens from 1 or the word unbounded is expected", o->capacity);
  return WEFT_OK;
}

static weft_status print_results(const weft_mlir_op *entry, weft_simulator *machine) {
  const weft_mlir_type *type = weft_mlir_function_type(entry);
  uint64_t word, values = (uint64_t)weft_mlir_dense_integer(weft_mlir_attribute_of(entry, "result_segments"), 0);
  for (uint64_t i = 0; i < values; i++) {
    if (!weft_simulator_result(machine, i, &word)) continue;
    weft_text text = {0};
    weft_word_to_text(type->results[i], word, &text);
    printf("result %" PRIu64 ": %s\n", i, text.data ? text.data : "");
    weft_text_free(&text);
  }
  return WEFT_OK;
}

static weft_status run_entry(const sim_options *o, const weft_simulator_options *options, weft_mlir_op *entry,
                             const char *file, weft_tool_bindings *b, weft_diag *diag) {
  weft_simulator *machine = NULL;
  weft_channel **outputs = WEFT_NEW_ARRAY(b->arena, weft_channel *, b->output_count);
  if (!outputs) return weft_error_memory(diag);
  for (uint64_t i = 0; i < b->output_count; i++) outputs[i] = &b->outputs[i];
  weft_status status = weft_simulator_new(entry, file, options, &machine, diag);
  if (status == WEFT_OK) status = weft_simulator_start(machine, b->items, b->count, outputs, b->output_count, diag);
  if (status == WEFT_OK) {
    weft_tool_step("simulating");
    weft_run_state state = weft_simulator_run(machine, o->steps);
    weft_tool_step_end();
    const weft_report *report = weft_simulator_report(machine);
    status = weft_tool_ended(state, report, file, diag);
    printf("%" PRIu64 " firings\n", report->steps);
    for (uint64_t i = 0; i < b->count; i++)
      if (b->items[i].channel && weft_simulator_left(machine, i))
        printf("left in stream %" PRIu64 ": %" PRIu64 "\n", i, weft_simulator_left(machine, i));
    print_results(entry, machine);
    weft_status printed = weft_tool_print_bindings(entry, b, o->output, diag);
    if (status == WEFT_OK) status = printed;
  }
  weft_simulator_free(machine);
  return status;
}

static weft_status run(const sim_options *o, weft_diag *diag) {
  weft_tool_module module = {0};
  weft_tool_bindings bindings = {0};
  weft_simulator_options options = {0};
  weft_mlir_op *entry = NULL;
  weft_status status = machine_options(o, &options, diag);
  if (status == WEFT_OK) status = weft_tool_module_read(&module, o->path, diag);
  if (status == WEFT_OK && o->case_path) {
    weft_case_options all = {.mode = WEFT_CASE_SIMULATE, .simulator = options, .steps = o->steps};
    status = weft_tool_case(&module, o->case_path, &all, diag);
  } else if (status == WEFT_OK) {
    status = weft_tool_entry(&module, o->graph, &entry, diag);
    if (status == WEFT_OK) options.strict = weft_mlir_attribute_of(entry, "weft.lowered") != NULL;
    if (status == WEFT_OK) status = weft_tool_bind(entry, &o->inputs, &bindings, diag);
    if (status == WEFT_OK) status = run_entry(o, &options, entry, module.file->name, &bindings, diag);
  }
  weft_tool_bindings_free(&bindings);
  weft_tool_module_free(&module);
  return status;
}

int weft_cmd_sim(int argc, char **argv) {
  sim_options o = {.steps = UINT64_C(1) << 40, .order = "program"};
  const weft_option options[] = {
      WEFT_TOOL_ENTRY_OPTIONS(o, "the graph to simulate (default: the only one)",
                              "the tokens waiting at stream input I, as --mem",
                              "run the launches of a case file and compare; structured entries are lowered first"),
      {.name = "capacity",
       .kind = WEFT_OPTION_TEXT,
       .target = &o.capacity,
       .argument = "N",
       .help = "tokens a queue holds (default 2), or unbounded"},
      {.name = "order",
       .kind = WEFT_OPTION_CHOICE,
       .target = &o.order,
       .choices = "program|random",
       .help = "which actor fires next"},
      {.name = "seed", .kind = WEFT_OPTION_COUNT, .target = &o.seed, .argument = "N", .help = "of the random order"},
      {.name = "trace", .kind = WEFT_OPTION_FLAG, .target = &o.trace, .help = "print every firing"},
      {.name = "steps",
       .kind = WEFT_OPTION_COUNT,
       .target = &o.steps,
       .argument = "N",
       .help = "most firings (default 2^40)"},
      WEFT_TOOL_MEMORIES_OPTION(o),
      {0}};
  const weft_usage usage = {
      .synopsis =
          "sim FILE [--graph NAME] [--arg I=VALUE]... [--mem I=WHAT]... [--capacity N] [--order random --seed N]",
      .about =
          "Simulates a graph of token ops: prints firings, memories and streams; where nothing can fire, the ops that\n"
          "wait and what for.",
      .example = "echo 'func.func @at(%i: index, %m: memref<4xi32>) -> i32 {\n"
                 "  %x = memref.load %m[%i] : memref<4xi32> return %x : i32 }' > at.mlir\n"
                 "weft lower at.mlir -o at.df.mlir\n"
                 "weft sim at.df.mlir --arg 0=2 --mem '1=[1, 2, 3, 4]' --order random --seed 7",
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
