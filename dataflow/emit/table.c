/* The table of a module's entries: their names, functions and ports. */
#include "emit_private.h"
#include "weft/dataflow_abi.h"

static bool is_channel(const weft_mlir_type *type) { return type->kind == WEFT_MLIR_DIALECT_TYPE; }

static uint32_t segment(const weft_mlir_op *op, const char *name, uint32_t index) {
  return (uint32_t)weft_mlir_dense_integer(weft_mlir_attribute_of(op, name), index);
}

/* ---- what channels are used for --------------------------------------------------------------------------------- */

/* The thread's own channel behind an argument of a region. */
static const weft_mlir_value *root_of(const weft_mlir_value *channel) {
  while (channel->is_argument &&
         weft_mlir_code(weft_mlir_value_block(channel)->region->op) == WEFT_DATAFLOW_SPATIAL_REGION)
    channel = weft_mlir_value_block(channel)->region->op->operands[channel->index];
  return channel;
}

static bool is_used(const weft_mlir_op *op, uint32_t first, uint32_t count, const weft_mlir_value *channel) {
  for (uint32_t i = first; i < first + count; i++)
    if (is_channel(op->operands[i]->type) && root_of(op->operands[i]) == channel) return true;
  return false;
}

static uint32_t channel_use(const weft_mlir_op *entry, const weft_mlir_value *channel) {
  bool receives = false, sends = false;
  for (const weft_mlir_op *op = weft_mlir_next(entry, NULL); op; op = weft_mlir_next(entry, op)) {
    uint32_t code = weft_mlir_code(op);
    receives |= code == WEFT_DATAFLOW_CHANNEL_RECEIVE && is_used(op, 0, 1, channel);
    sends |= code == WEFT_DATAFLOW_CHANNEL_SEND && is_used(op, 0, 1, channel);
    if (code != WEFT_DATAFLOW_GRAPH_LAUNCH) continue;
    uint32_t begin = 0;
    for (uint32_t i = 0; i < 5; i++) {
      uint32_t size = segment(op, "operandSegmentSizes", i);
      receives |= i == 2 && is_used(op, begin, size, channel);
      sends |= i == 4 && is_used(op, begin, size, channel);
      begin += size;
    }
  }
  return receives && sends ? WEFT_DF_RECEIVE_AND_SEND
         : receives        ? WEFT_DF_RECEIVE
         : sends           ? WEFT_DF_SEND
                           : WEFT_DF_UNUSED;
}

/* ---- ports ------------------------------------------------------------------------------------------------------ */

static void put_port(emitter *e, const weft_mlir_type *type, uint32_t use, uint32_t given) {
  weft_text text = {0}, quoted = {0};
  weft_mlir_type_text(is_channel(type) && type->parameter_count ? type->parameters[0]->as.type_value : type, &text);
  weft_text_c_string(&quoted, text.data ? text.data : "");
  weft_text_printf(e->out, "    {\"%s\", %u, %u},\n", quoted.data ? quoted.data : "", use, given);
  e->out->failed |= text.failed | quoted.failed;
  weft_text_free(&text);
  weft_text_free(&quoted);
}

/* The given place of input `index` where lowering has moved inputs. */
static uint32_t given_place(const weft_mlir_op *entry, uint32_t index, uint32_t count) {
  const weft_mlir_attribute *order = weft_mlir_attribute_of(entry, "weft.input_order");
  for (uint32_t i = 0; order && i < count; i++)
    if (weft_mlir_dense_integer(order, i) == index) return i;
  return index;
}

static uint32_t input_use(const weft_mlir_op *entry, const weft_mlir_value *argument, uint32_t index) {
  if (argument->type->kind == WEFT_MLIR_NONE_TYPE) return WEFT_DF_TOKEN;
  if (argument->type->kind == WEFT_MLIR_MEMREF_TYPE) return WEFT_DF_MEMORY;
  if (is_channel(argument->type)) return channel_use(entry, argument);
  if (weft_mlir_code(entry) != WEFT_DATAFLOW_GRAPH) return WEFT_DF_VALUE;
  uint32_t values = segment(entry, "input_segments", 0), streams = segment(entry, "input_segments", 1);
  return index >= values && index < values + streams ? WEFT_DF_RECEIVE : WEFT_DF_VALUE;
}

/* The argument of the body that is no input: a graph's start, a thread's control; UINT32_MAX for functions. */
static uint32_t control_argument(const weft_mlir_op *entry) {
  uint32_t code = weft_mlir_code(entry);
  return code == WEFT_DATAFLOW_GRAPH    ? 0
         : code == WEFT_DATAFLOW_THREAD ? weft_mlir_function_type(entry)->input_count
                                        : UINT32_MAX;
}

static uint32_t input_count(const weft_mlir_op *entry) {
  return weft_mlir_op_block(entry, 0)->argument_count - (control_argument(entry) != UINT32_MAX);
}

static void put_ports(emitter *e, const weft_mlir_op *entry, uint64_t number) {
  const weft_mlir_type *type = weft_mlir_function_type(entry);
  const weft_mlir_block *body = weft_mlir_op_block(entry, 0);
  uint32_t inputs = input_count(entry), control = control_argument(entry), at = 0;
  entry_shape s = emit_shape(entry);
  if (!inputs && !type->result_count) return;
  weft_text_printf(e->out, "static const weft_df_port ports_%llu[] = {\n", (unsigned long long)number);
  for (uint32_t i = 0; i < body->argument_count; i++) {
    const weft_mlir_value *argument = &body->arguments[i];
    if (i == control) continue;
    put_port(e, argument->type, input_use(entry, argument, at), given_place(entry, at, inputs));
    at++;
  }
  for (uint32_t i = 0; i < type->result_count; i++) {
    uint32_t use = type->results[i]->kind == WEFT_MLIR_MEMREF_TYPE ? WEFT_DF_MEMORY
                   : i < s.results                                 ? WEFT_DF_VALUE
                                                                   : WEFT_DF_SEND;
    put_port(e, type->results[i], use, i);
  }
  weft_text_puts(e->out, "};\n");
}

static void put_row(emitter *e, const weft_mlir_op *entry, const char *form, uint64_t number) {
  const weft_mlir_type *type = weft_mlir_function_type(entry);
  uint32_t streams = weft_mlir_code(entry) == WEFT_DATAFLOW_GRAPH ? segment(entry, "result_segments", 1) : 0;
  entry_shape s = emit_shape(entry);
  weft_text name = {0};
  weft_text_c_string(&name, weft_mlir_symbol_name(entry));
  weft_text_printf(e->out, "    {\"%s\", entry_%llu, %u, %u, %u, %u, \"%s\", ", name.data ? name.data : "",
                   (unsigned long long)number, s.values, s.memories, s.channels, s.results, form);
  if (input_count(entry) || type->result_count)
    weft_text_printf(e->out, "ports_%llu", (unsigned long long)number);
  else
    weft_text_puts(e->out, "0");
  weft_text_printf(e->out, ", %u, %u, %d, \"", input_count(entry), streams,
                   (int)weft_mlir_attribute_integer(entry, "weft.chip", -1));
  weft_text_c_string(e->out, e->file ? e->file : "");
  weft_text_puts(e->out, "\"},\n");
  weft_text_free(&name);
}

void emit_table(emitter *e, const weft_mlir_op *const *entries, const char *const *forms, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) put_ports(e, entries[i], i);
  weft_text_puts(e->out, "__attribute__((visibility(\"default\"))) const weft_df_entry weft_df_entries[] = {\n");
  for (uint64_t i = 0; i < count; i++) put_row(e, entries[i], forms[i], i);
  weft_text_printf(e->out,
                   "    {0}};\n__attribute__((visibility(\"default\"))) const uint32_t weft_df_entry_count = %llu;\n",
                   (unsigned long long)count);
}
