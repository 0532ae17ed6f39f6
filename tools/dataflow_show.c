/* What is in a file of MLIR text: a summary of its entries, or a picture of one graph. */
#include "dataflow_tool.h"
#include "weft/scalar_body.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool weft_tool_is_mlir(const char *path) {
  size_t length = strlen(path);
  return length > 5 && strcmp(path + length - 5, ".mlir") == 0;
}

/* How often each op occurs, in order of first occurrence. */
typedef struct op_count {
  const weft_mlir_op_name *name;
  uint64_t count;
} op_count;

static weft_status count_ops(weft_arena *arena, const weft_mlir_op *entry, op_count **counts, uint64_t *kinds,
                             weft_diag *diag) {
  uint64_t capacity = 0;
  *counts = NULL;
  *kinds = 0;
  for (const weft_mlir_op *op = weft_mlir_next(entry, entry); op; op = weft_mlir_next(entry, op)) {
    uint64_t k = 0;
    while (k < *kinds && (*counts)[k].name != op->name) k++;
    if (k == *kinds) {
      if (!weft_arena_grow(arena, counts, *kinds, &capacity, sizeof **counts)) return weft_error_memory(diag);
      (*counts)[(*kinds)++] = (op_count){.name = op->name};
    }
    (*counts)[k].count++;
  }
  return WEFT_OK;
}

static weft_status show_entry(weft_arena *arena, const weft_mlir_op *entry, weft_diag *diag) {
  op_count *counts;
  uint64_t kinds, ops = 0;
  weft_text type = {0};
  weft_status status = count_ops(arena, entry, &counts, &kinds, diag);
  if (status != WEFT_OK) return status;
  weft_mlir_type_text(weft_mlir_function_type(entry), &type);
  for (uint64_t i = 0; i < kinds; i++) ops += counts[i].count;
  weft_text line = {0};
  weft_text_printf(&line, "%s @%s : %s\n  %" PRIu64 " ops:", entry->name->text, weft_mlir_symbol_name(entry),
                   type.data ? type.data : "", ops);
  for (uint64_t i = 0; i < kinds; i++)
    weft_text_printf(&line, "%s %s %" PRIu64, i ? "," : "", counts[i].name->text, counts[i].count);
  weft_text_puts(&line, "\n");
  weft_tool_print(stdout, &line);
  weft_text_free(&line);
  weft_text_free(&type);
  return WEFT_OK;
}

static weft_status show_all(const weft_tool_module *module, weft_diag *diag) {
  weft_arena *arena = weft_arena_new();
  if (!arena) return weft_error_memory(diag);
  weft_status status = WEFT_OK;
  for (uint64_t i = 0; i < module->file->module_count; i++)
    for (const weft_mlir_op *op = weft_mlir_op_block(module->file->modules[i], 0)->first; op && status == WEFT_OK;
         op = op->next) {
      uint32_t code = weft_mlir_code(op);
      bool entry = code == WEFT_DATAFLOW_GRAPH || code == WEFT_DATAFLOW_THREAD || code == WEFT_OP_FUNC_FUNC;
      if (entry && weft_mlir_op_block(op, 0)) status = show_entry(arena, op, diag);
    }
  weft_arena_free(arena);
  return status;
}

static weft_status draw(const weft_tool_module *module, const char *graph, weft_diag *diag) {
  weft_mlir_op *entry;
  weft_text text = {0};
  weft_status status = weft_tool_entry(module, graph, &entry, diag);
  if (status == WEFT_OK) status = weft_dataflow_dot(module->context, entry, module->file->name, &text, diag);
  if (status == WEFT_OK) fwrite(text.data, 1, text.length, stdout);
  weft_text_free(&text);
  return status;
}

static weft_status print_cells(const weft_tool_module *module, const char *graph, weft_diag *diag) {
  weft_mlir_op *entry;
  weft_scalar_body body;
  weft_text text = {0};
  weft_arena *arena = weft_arena_new();
  if (!arena) return weft_error_memory(diag);
  weft_status status = weft_tool_entry(module, graph, &entry, diag);
  if (status == WEFT_OK) status = weft_scalar_body_of(entry, module->file->name, arena, &body, diag);
  if (status == WEFT_OK) weft_scalar_body_to_text(&body, &text);
  if (status == WEFT_OK && text.failed) status = weft_error_memory(diag);
  if (status == WEFT_OK) fwrite(text.data, 1, text.length, stdout);
  weft_text_free(&text);
  weft_arena_free(arena);
  return status;
}

weft_status weft_tool_dataflow_show(const char *path, const char *graph, bool dot, bool cells, weft_diag *diag) {
  weft_tool_module module = {0};
  weft_status status = weft_tool_module_read(&module, path, diag);
  if (status == WEFT_OK)
    status = dot ? draw(&module, graph, diag) : cells ? print_cells(&module, graph, diag) : show_all(&module, diag);
  weft_tool_module_free(&module);
  return status;
}
