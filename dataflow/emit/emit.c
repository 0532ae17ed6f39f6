/* C for the graphs, functions and threads of a module. */
#include "emit_private.h"

#include <stdio.h>

static bool is_entry(const weft_mlir_op *op) {
  uint32_t code = weft_mlir_code(op);
  return (code == WEFT_DATAFLOW_GRAPH || code == WEFT_DATAFLOW_THREAD || code == WEFT_OP_FUNC_FUNC) &&
         weft_mlir_op_block(op, 0);
}

entry_shape emit_shape(const weft_mlir_op *entry) {
  entry_shape s = {0};
  const weft_mlir_block *body = weft_mlir_op_block(entry, 0);
  const weft_mlir_type *type = weft_mlir_function_type(entry);
  for (uint32_t i = 0; i < body->argument_count; i++) {
    const weft_mlir_type *t = body->arguments[i].type;
    s.memories += t->kind == WEFT_MLIR_MEMREF_TYPE;
    s.channels += t->kind == WEFT_MLIR_DIALECT_TYPE;
    s.values += t->kind != WEFT_MLIR_MEMREF_TYPE && t->kind != WEFT_MLIR_DIALECT_TYPE && t->kind != WEFT_MLIR_NONE_TYPE;
  }
  s.results = type->result_count;
  if (weft_mlir_code(entry) != WEFT_DATAFLOW_GRAPH) return s;
  const weft_mlir_attribute *in = weft_mlir_attribute_of(entry, "input_segments"),
                            *out = weft_mlir_attribute_of(entry, "result_segments");
  uint32_t streams = (uint32_t)weft_mlir_dense_integer(in, 1);
  s.values -= streams;
  s.channels += streams + (uint32_t)weft_mlir_dense_integer(out, 1);
  s.results = (uint32_t)weft_mlir_dense_integer(out, 0);
  return s;
}

void emit_head(emitter *e, const weft_mlir_op *entry, uint32_t number) {
  weft_text name = {0};
  weft_text_c_string(&name, weft_mlir_symbol_name(entry));
  weft_text_printf(e->out, "/* %s */\n", name.data ? name.data : "");
  weft_text_free(&name);
  weft_text_printf(e->out,
                   "static int entry_%u(weft_df_env *env, const uint64_t *values, weft_df_memory *const *memories, "
                   "const uint32_t *channels,\n"
                   "                    uint64_t *results) {\n",
                   number);
}

static bool holds_tokens(const weft_mlir_op *graph) {
  if (weft_mlir_code(graph) != WEFT_DATAFLOW_GRAPH) return false;
  bool structure = false, tokens = false;
  for (const weft_mlir_op *op = weft_mlir_op_block(graph, 0)->first; op; op = op->next) {
    uint32_t code = weft_mlir_code(op);
    tokens |= code >= WEFT_DATAFLOW_CONSTANT && code <= WEFT_DATAFLOW_STORE;
    structure |= op->region_count || strncmp(op->name->text, "memref.", 7) == 0;
  }
  bool streams = weft_mlir_dense_integer(weft_mlir_attribute_of(graph, "input_segments"), 1) > 0;
  return tokens || streams || !structure;
}

static bool emit_entry(emitter *e, const weft_mlir_op *entry, uint32_t number, const weft_emit_options *options,
                       const char **form) {
  bool possible = !options->machines;
  if (!holds_tokens(entry)) {
    *form = weft_mlir_code(entry) == WEFT_DATAFLOW_THREAD ? "thread" : "loops";
    return emit_structured(e, entry, number);
  }
  size_t before = e->out->length;
  *form = "loops";
  if (possible && emit_loops(e, entry, number, &possible)) return true;
  if (e->status != WEFT_OK) return false;
  e->out->length = before;
  *form = "machine";
  return emit_machine(e, entry, number);
}

weft_status weft_emit_c(weft_mlir_context *context, weft_mlir_op *module, const char *file,
                        const weft_emit_options *options, weft_text *out, weft_diag *diag) {
  static const weft_emit_options plain = {.machines = false};
  emitter e = {
      .context = context, .scratch = weft_arena_new(), .out = out, .diag = diag, .file = file, .module = module};
  if (!e.scratch) return weft_error_memory(diag);
  uint64_t count = 0;
  for (weft_mlir_op *op = weft_mlir_op_block(module, 0)->first; op; op = op->next) count += is_entry(op);
  const weft_mlir_op **entries = WEFT_NEW_ARRAY(e.scratch, const weft_mlir_op *, count);
  const char **forms = WEFT_NEW_ARRAY(e.scratch, const char *, count);
  if (!entries || !forms) e.status = weft_error_memory(diag);
  count = 0;
  weft_text_puts(out,
                 "/* Emitted by weft " WEFT_VERSION " from a dataflow module. */\n#include \"weft/dataflow_abi.h\"\n\n"
                 "/* A program may leave unused what it computes. */\n"
                 "#pragma GCC diagnostic ignored \"-Wunused-variable\"\n"
                 "#pragma GCC diagnostic ignored \"-Wunused-but-set-variable\"\n\n");
  for (weft_mlir_op *op = weft_mlir_op_block(module, 0)->first; op && e.status == WEFT_OK; op = op->next)
    if (is_entry(op)) {
      op->mark = (uint32_t)count; /* the number that launches call it by */
      weft_text_printf(out,
                       "static int entry_%llu(weft_df_env *, const uint64_t *, weft_df_memory *const *, const uint32_t "
                       "*, uint64_t *);\n",
                       (unsigned long long)count);
      entries[count++] = op;
    }
  weft_text_puts(out, "\n");
  for (uint64_t i = 0; i < count && e.status == WEFT_OK; i++) {
    uint32_t mark = entries[i]->mark;
    if (!emit_entry(&e, entries[i], (uint32_t)i, options ? options : &plain, &forms[i]) && e.status == WEFT_OK)
      e.status = weft_error_memory(diag);
    ((weft_mlir_op *)entries[i])->mark = mark;
  }
  if (e.status == WEFT_OK) emit_table(&e, entries, forms, count);
  if (e.status == WEFT_OK && out->failed) e.status = weft_error_memory(diag);
  weft_arena_free(e.scratch);
  return e.status;
}
