#include "dataflow_tool.h"
#include "weft/grammar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

weft_status weft_tool_module_read(weft_tool_module *module, const char *path, weft_diag *diag) {
  module->context = weft_mlir_context_new();
  if (!module->context) return weft_error_memory(diag);
  weft_status status = weft_mlir_register_standard(module->context, diag);
  if (status == WEFT_OK) status = weft_dataflow_register(module->context, diag);
  return status == WEFT_OK ? weft_mlir_read(module->context, path, &module->file, diag) : status;
}

void weft_tool_module_free(weft_tool_module *module) {
  weft_mlir_file_free(module->file);
  weft_mlir_context_free(module->context);
}

weft_status weft_tool_module_write(const weft_tool_module *module, const char *path, bool generic, weft_diag *diag) {
  weft_text text = {0};
  weft_mlir_print_file(module->file, (weft_mlir_print_options){.generic = generic}, &text);
  weft_status status =
      text.failed ? weft_error_memory(diag) : weft_write_file(path, text.data, text.length, false, diag);
  weft_text_free(&text);
  return status;
}

static bool is_entry(const weft_mlir_op *op) {
  uint32_t code = weft_mlir_code(op);
  return (code == WEFT_DATAFLOW_GRAPH || code == WEFT_DATAFLOW_THREAD || code == WEFT_OP_FUNC_FUNC) &&
         weft_mlir_op_block(op, 0);
}

weft_status weft_tool_entry(const weft_tool_module *module, const char *name, weft_mlir_op **entry, weft_diag *diag) {
  uint64_t found = 0;
  for (uint64_t i = 0; i < module->file->module_count; i++)
    for (weft_mlir_op *op = weft_mlir_op_block(module->file->modules[i], 0)->first; op; op = op->next) {
      if (!is_entry(op) || (name && strcmp(weft_mlir_symbol_name(op), name) != 0)) continue;
      *entry = op;
      found++;
    }
  if (found == 1) return WEFT_OK;
  if (name)
    return weft_error(diag, WEFT_INVALID, NULL, "%s has %s called @%s", module->file->name,
                      found ? "several entries" : "no graph, thread or function", name);
  return weft_error(diag, WEFT_INVALID, "name one with --graph NAME",
                    "%s has %" PRIu64 " graphs, threads and functions", module->file->name, found);
}

weft_status weft_tool_case(weft_tool_module *module, const char *case_path, const weft_case_options *options,
                           weft_diag *diag) {
  weft_case_result result;
  weft_status status =
      weft_case_run(module->context, module->file->modules[0], module->file->name, case_path, options, &result, diag);
  if (status != WEFT_OK) return status;
  printf("%s: %" PRIu64 " launches, %" PRIu64 " differences, %" PRIu64 " %s\n", case_path, result.launches,
         result.failures, result.steps, options->mode == WEFT_CASE_SIMULATE ? "firings" : "steps");
  return result.failures ? WEFT_INVALID : WEFT_OK;
}

weft_status weft_tool_ended(weft_run_state state, const weft_report *report, const char *file, weft_diag *diag) {
  switch (state) {
  case WEFT_RUN_DONE: return WEFT_OK;
  case WEFT_RUN_FAILED: return weft_error_memory(diag);
  case WEFT_RUN_LIMIT:
    return weft_error(diag, WEFT_INVALID, "allow more with --steps", "%s: no end after %" PRIu64 " steps", file,
                      report->steps);
  case WEFT_RUN_WAITING:
  case WEFT_RUN_STUCK:
  case WEFT_RUN_FAULT: break;
  }
  weft_place place = {.file = file, .line = report->op ? report->op->line : 0};
  return weft_error_at(diag, WEFT_INVALID, place, NULL, "%s",
                       report->text ? report->text : weft_fault_text(report->fault));
}

/* ---- shipped postconditions ------------------------------------------------------------------------------------ */

weft_status weft_tool_shipped_postcondition(const char *name, weft_tool_module *module, weft_mlir_op *input,
                                            weft_mlir_op *output, weft_diag *diag) {
  char path[4096];
  if (!weft_shipped_grammar(name, path, sizeof path))
    return weft_error(diag, WEFT_INVALID, "set WEFT_GRAMMARS to the folder that holds it", "%s is not installed", name);
  weft_postcondition *post = NULL;
  weft_verdict verdict = WEFT_VERDICT_ERROR;
  weft_status status = weft_postcondition_read(path, &post, diag);
  weft_postcondition_side before = {.module = input, .file = module->file->name},
                          after = {.module = output, .file = module->file->name};
  if (status == WEFT_OK)
    status = weft_postcondition_evaluate(post, module->context, before, after, NULL, &verdict, diag);
  if (status == WEFT_OK)
    fprintf(stderr, "%s %s\n", weft_postcondition_name(post), verdict == WEFT_VERDICT_HOLDS ? "holds" : "fails");
  weft_postcondition_free(post);
  return status == WEFT_OK && verdict != WEFT_VERDICT_HOLDS ? WEFT_INVALID : status;
}
