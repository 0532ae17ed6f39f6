/* weft lower and weft publish: structured bodies to token graphs, spatial regions to graphs and launches. */
#include "dataflow_tool.h"

#include <stdio.h>

typedef struct lower_options {
  const char *path, *output;
  bool generic, check, publish;
} lower_options;

/* Only the words of a verdict outside of the postcondition's domain; weft's own checks hold everywhere. */
static weft_status check_module(const lower_options *o, weft_tool_module *module, weft_mlir_op *before,
                                weft_mlir_op *after, weft_diag *diag) {
  weft_status status = o->publish ? weft_mlir_verify(after, module->file->name, diag)
                                  : weft_lowering_check(after, module->file->name, diag);
  if (status == WEFT_OK && o->publish)
    status = weft_tool_shipped_postcondition("graph-launch.spct", module, before, after, diag);
  if (status != WEFT_OK || o->publish) return status;
  if (weft_lowering_in_while_domain(before))
    return weft_tool_shipped_postcondition("while.spct", module, before, after, diag);
  fprintf(
      stderr,
      "%s: outside the domain of the postcondition of whiles; every access is waited for, no structured op is left\n",
      module->file->name);
  return WEFT_OK;
}

static weft_status run(const lower_options *o, weft_diag *diag) {
  weft_tool_module module = {0};
  weft_status status = weft_tool_module_read(&module, o->path, diag);
  for (uint64_t i = 0; status == WEFT_OK && i < module.file->module_count; i++) {
    weft_mlir_op *given = module.file->modules[i],
                 *made = o->check ? weft_mlir_clone(module.file->arena, given) : given;
    if (!made) status = weft_error_memory(diag);
    if (status == WEFT_OK)
      status = o->publish ? weft_publish(module.context, module.file->arena, made, module.file->name, diag)
                          : weft_lower(module.context, module.file->arena, made, module.file->name, diag);
    if (status == WEFT_OK && o->check) status = check_module(o, &module, given, made, diag);
    module.file->modules[i] = made;
  }
  if (status == WEFT_OK) status = weft_tool_module_write(&module, o->output, o->generic, diag);
  weft_tool_module_free(&module);
  return status;
}

static int command(int argc, char **argv, lower_options *o, weft_usage usage) {
  o->output = "-";
  const weft_option options[] = {
      {.name = "output",
       .letter = 'o',
       .kind = WEFT_OPTION_TEXT,
       .target = &o->output,
       .argument = "FILE",
       .help = "where it goes (default: standard output)"},
      {.name = "generic",
       .kind = WEFT_OPTION_FLAG,
       .target = &o->generic,
       .help = "print the generic form, which mlir-opt --allow-unregistered-dialect reads"},
      {.name = "check",
       .kind = WEFT_OPTION_FLAG,
       .target = &o->check,
       .help = "evaluate what must hold of the result, and the shipped postcondition in its domain"},
      {0}};
  usage.options = options;
  usage.least = usage.most = 1;
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  o->path = arguments.items[0];
  weft_diag *diag = weft_diag_new();
  weft_status status = diag ? run(o, diag) : WEFT_UNAVAILABLE;
  return weft_tool_finish(status, diag, &arguments);
}

int weft_cmd_lower(int argc, char **argv) {
  lower_options o = {.publish = false};
  return command(
      argc, argv, &o,
      (weft_usage){
          .synopsis = "lower FILE [--check] [--generic] [-o FILE]",
          .about =
              "Lowers the structured bodies of dataflow.graphs (and of functions that access memory) to graphs of "
              "token\n"
              "ops: scf.if, for, while and index_switch to any depth. What cannot be lowered is refused by name, with\n"
              "nothing written.",
          .example = "echo 'func.func @at(%i: index, %m: memref<4xi32>) -> i32 {\n"
                     "  %x = memref.load %m[%i] : memref<4xi32> return %x : i32 }' > at.mlir\n"
                     "weft lower at.mlir -o at.df.mlir\n"
                     "weft sim at.df.mlir --arg 0=2 --mem '1=[1, 2, 3, 4]'"});
}

int weft_cmd_publish(int argc, char **argv) {
  lower_options o = {.publish = true};
  return command(
      argc, argv, &o,
      (weft_usage){
          .synopsis = "publish FILE [--check] [--generic] [-o FILE]",
          .about = "Publishes the loom.spatial_regions of all threads: each body becomes a private dataflow.graph of "
                   "token ops,\n"
                   "a dataflow.graph.launch takes its place, and completion is handed on to dataflow.thread.yield. All "
                   "or nothing.",
          .example = "echo 'dataflow.thread private @put domain(#dataflow.thread_domain<dense>)(%v: i32, %m: "
                     "memref<4xi32>) ctrl (%s: none) {\n"
                     "  \"loom.spatial_region\"(%v, %m)\n"
                     "    <{operandSegmentSizes = array<i32: 1, 0, 1, 0>, resultSegmentSizes = array<i32: 0, 0>}> ({ "
                     "^bb0(%x: i32, %to: memref<4xi32>):\n"
                     "      %c0 = arith.constant 0 : index memref.store %x, %to[%c0] : memref<4xi32>\n"
                     "      \"loom.spatial_yield\"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()\n"
                     "    }) {graph_name = \"store\", source_maps = []} : (i32, memref<4xi32>) -> ()\n"
                     "  dataflow.thread.yield }' > put.mlir\n"
                     "weft publish put.mlir -o published.mlir"});
}
