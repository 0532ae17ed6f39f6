/* The tables of the dataflow and loom dialects, and the token ops' own rules. */
#include "dialect_private.h"

#include <stdarg.h>
#include <stdio.h>

bool dialect_wrong(const weft_mlir_op *op, const char *file, weft_diag *diag, const char *hint, const char *format,
                   ...) {
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  weft_error_at(diag, WEFT_INVALID, weft_mlir_place(file, op), hint, "%s: %s", op->name->text, message);
  return false;
}

uint32_t dialect_segment(const weft_mlir_op *op, const char *name, uint32_t index) {
  const weft_mlir_attribute *a = weft_mlir_attribute_of(op, name);
  if (!a || a->kind != WEFT_MLIR_DENSE_ARRAY || index >= a->as.dense.elements) return 0;
  int64_t size = weft_mlir_dense_integer(a, index);
  return size > 0 ? (uint32_t)size : 0;
}

bool dialect_add_operands(weft_mlir_parser *p, weft_mlir_state *state, const weft_mlir_operand *operands,
                          const weft_mlir_type *const *types, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!weft_mlir_add_operand(p, state, operands[i], types[i])) return false;
  return true;
}

bool dialect_is_channel(const weft_mlir_type *type) {
  return type->kind == WEFT_MLIR_DIALECT_TYPE && strcmp(type->name, "dataflow.channel") == 0 &&
         type->parameter_count == 1 && type->parameters[0]->kind == WEFT_MLIR_TYPE;
}

/* ---- token ops ------------------------------------------------------------------------------------------------ */

static bool verify_sync(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  bool same = op->operand_count == op->result_count && op->operand_count;
  for (uint32_t i = 0; same && i < op->operand_count; i++) same = op->operands[i]->type == op->results[i].type;
  return same || dialect_wrong(op, file, diag, NULL, "results must be as many as operands, and of the same types");
}

/* A selector of `lanes` lanes: i1 for two, index for more. */
static bool verify_selector(const weft_mlir_op *op, uint32_t lanes, const char *file, weft_diag *diag) {
  if (lanes < 2) return dialect_wrong(op, file, diag, NULL, "two lanes or more are needed");
  const weft_mlir_type *type = op->operands[0]->type;
  bool good = lanes == 2 ? weft_mlir_is_integer(type, 1) : type->kind == WEFT_MLIR_INDEX_TYPE;
  return good ||
         dialect_wrong(op, file, diag, NULL, "the selector of %u lanes must be %s", lanes, lanes == 2 ? "i1" : "index");
}

static bool verify_mux(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  if (op->operand_count < 3 || op->result_count != 1)
    return dialect_wrong(op, file, diag, NULL, "a selector, two lanes or more and one result are needed");
  for (uint32_t i = 1; i < op->operand_count; i++)
    if (op->operands[i]->type != op->results[0].type)
      return dialect_wrong(op, file, diag, NULL, "lane %u does not have the result's type", i - 1);
  return verify_selector(op, op->operand_count - 1, file, diag);
}

static bool verify_demux(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  if (op->operand_count != 2 || op->result_count < 2)
    return dialect_wrong(op, file, diag, NULL, "a selector, a value and two lanes or more are needed");
  for (uint32_t i = 0; i < op->result_count; i++)
    if (op->operands[1]->type != op->results[i].type)
      return dialect_wrong(op, file, diag, NULL, "lane %u does not have the value's type", i);
  return verify_selector(op, op->result_count, file, diag);
}

static bool verify_constant(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  const weft_mlir_attribute *value = weft_mlir_attribute_of(op, "const_value");
  return (value && value->type == op->results[0].type) ||
         dialect_wrong(op, file, diag, NULL, "const_value must have the result's type");
}

/* An address counts the elements row by row. */
static bool is_linear_memref(const weft_mlir_type *type) {
  if (type->kind != WEFT_MLIR_MEMREF_TYPE || type->unranked || type->layout) return false;
  for (uint32_t i = 1; i < type->rank; i++)
    if (type->extents[i] < 0) return false;
  return true;
}

static bool verify_access(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  return is_linear_memref(op->operands[0]->type) ||
         dialect_wrong(op, file, diag, "only the first extent may be dynamic",
                       "the first operand must be a memref that is stored row by row");
}

/* %lower, %upper, %step step add while slt : type; the words may be left out. */
static bool parse_stream(weft_mlir_parser *p, weft_mlir_state *state) {
  weft_mlir_context *context = weft_mlir_parser_context(p);
  weft_mlir_operand operands[3];
  const weft_mlir_type *type;
  const char *word;
  for (int i = 0; i < 3; i++)
    if ((i && !weft_mlir_expect(p, ",")) || !weft_mlir_parse_operand(p, &operands[i])) return false;
  if (weft_mlir_try(p, "step") && !weft_mlir_expect(p, "add")) return false;
  if (weft_mlir_try(p, "while")) {
    if (!weft_mlir_parse_word(p, &word)) return false;
    if (strcmp(word, "slt") != 0 && strcmp(word, "ult") != 0)
      return weft_mlir_fail(p, "a stream runs while slt or ult holds, not %s", word);
    if (strcmp(word, "ult") == 0 && !weft_mlir_add_attribute(p, state, "cont_cond", weft_mlir_string(context, word, 3)))
      return false;
  }
  if (!weft_mlir_parse_attr_dict(p, state) || !weft_mlir_expect(p, ":") || !weft_mlir_parse_type(p, &type))
    return false;
  return dialect_add_operands(p, state, operands, (const weft_mlir_type *[]){type, type, type}, 3) &&
         weft_mlir_add_result(p, state, type) &&
         weft_mlir_add_result(p, state, weft_mlir_integer(context, 1, WEFT_MLIR_SIGNLESS));
}

static void print_stream(weft_mlir_printer *p, const weft_mlir_op *op) {
  weft_mlir_put(p, " ");
  weft_mlir_put_operands(p, op, 0, 3);
  weft_mlir_putf(p, " step add while %s", weft_mlir_attribute_text(op, "cont_cond", "slt"));
  weft_mlir_put_attr_dict(p, op, "cont_cond", false);
  weft_mlir_put(p, " : ");
  weft_mlir_put_type(p, op->results[0].type);
}

static bool verify_stream(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  if (op->operand_count != 3 || op->result_count != 2 || !weft_mlir_is_integer(op->results[1].type, 1))
    return dialect_wrong(op, file, diag, NULL, "three bounds and two results, the second i1, are needed");
  const weft_mlir_type *type = op->results[0].type;
  bool good = type->kind == WEFT_MLIR_INTEGER_TYPE || type->kind == WEFT_MLIR_INDEX_TYPE;
  for (int i = 0; i < 3; i++) good = good && op->operands[i]->type == type;
  if (!good) return dialect_wrong(op, file, diag, NULL, "bounds and first result must have one integer type");
  const char *condition = weft_mlir_attribute_text(op, "cont_cond", "slt"),
             *step = weft_mlir_attribute_text(op, "step_op", "add");
  return (strcmp(step, "add") == 0 && (strcmp(condition, "slt") == 0 || strcmp(condition, "ult") == 0)) ||
         dialect_wrong(op, file, diag, NULL, "only step add while slt or ult is supported");
}

/* ---- the tables ----------------------------------------------------------------------------------------------- */

enum {
  LIKE_FUNCTION = WEFT_MLIR_ISOLATED,
  OPERANDS = WEFT_MLIR_OPERAND_SEGMENTS,
  BOTH = WEFT_MLIR_OPERAND_SEGMENTS | WEFT_MLIR_RESULT_SEGMENTS
};

static const weft_mlir_op_spec dataflow_ops[] = {
    {.name = "dataflow.constant",
     .code = WEFT_DATAFLOW_CONSTANT,
     .inherent = "const_value",
     .format = "%0 attr-dict : T | none -> T",
     .verify = verify_constant},
    {.name = "dataflow.sync", .code = WEFT_DATAFLOW_SYNC, .format = "%0... attr-dict : fn", .verify = verify_sync},
    {.name = "dataflow.mux", .code = WEFT_DATAFLOW_MUX, .format = "%0... attr-dict : fn", .verify = verify_mux},
    {.name = "dataflow.demux", .code = WEFT_DATAFLOW_DEMUX, .format = "%0... attr-dict : fn", .verify = verify_demux},
    {.name = "dataflow.carry", .code = WEFT_DATAFLOW_CARRY, .format = "%0, %1, %2 attr-dict : T | i1 T T -> T"},
    {.name = "dataflow.invariant", .code = WEFT_DATAFLOW_INVARIANT, .format = "%0, %1 attr-dict : T | i1 T -> T"},
    {.name = "dataflow.gate", .code = WEFT_DATAFLOW_GATE, .format = "%0, %1 attr-dict : T | i1 T -> i1 T"},
    {.name = "dataflow.stream",
     .code = WEFT_DATAFLOW_STREAM,
     .inherent = "step_op=\"add\" cont_cond=\"slt\"",
     .parse = parse_stream,
     .print = print_stream,
     .verify = verify_stream},
    {.name = "dataflow.load",
     .code = WEFT_DATAFLOW_LOAD,
     .format = "%0 [ %1 ] %2 attr-dict : T | T index none -> elem(T) none",
     .verify = verify_access},
    {.name = "dataflow.store",
     .code = WEFT_DATAFLOW_STORE,
     .format = "%0 [ %1 ] %2 %3 attr-dict : T | T index elem(T) none -> none",
     .verify = verify_access},
    {.name = "dataflow.graph",
     .code = WEFT_DATAFLOW_GRAPH,
     .traits = WEFT_MLIR_ISOLATED | WEFT_MLIR_GRAPH,
     .inherent = "sym_name sym_visibility function_type input_segments result_segments arg_attrs res_attrs",
     .parse = dialect_parse_graph,
     .print = dialect_print_graph,
     .verify = dialect_verify_graph,
     .ordered = dialect_graph_is_ordered},
    {.name = "dataflow.graph.return",
     .code = WEFT_DATAFLOW_GRAPH_RETURN,
     .traits = WEFT_MLIR_TERMINATOR | OPERANDS,
     .inherent = "operandSegmentSizes",
     .parse = dialect_parse_graph_return,
     .print = dialect_print_graph_return,
     .verify = dialect_verify_graph_return},
    {.name = "dataflow.graph.launch",
     .code = WEFT_DATAFLOW_GRAPH_LAUNCH,
     .traits = BOTH,
     .inherent = "callee source_maps operandSegmentSizes resultSegmentSizes",
     .parse = dialect_parse_graph_launch,
     .print = dialect_print_graph_launch,
     .verify = dialect_verify_graph_launch},
    {.name = "dataflow.thread",
     .code = WEFT_DATAFLOW_THREAD,
     .traits = LIKE_FUNCTION | WEFT_MLIR_IMPLICIT_END,
     .inherent = "sym_name sym_visibility function_type domain arg_attrs res_attrs",
     .implicit = "dataflow.thread.yield",
     .parse = dialect_parse_thread,
     .print = dialect_print_thread,
     .verify = dialect_verify_thread},
    {.name = "dataflow.thread.yield",
     .code = WEFT_DATAFLOW_THREAD_YIELD,
     .traits = WEFT_MLIR_TERMINATOR,
     .parse = dialect_parse_thread_yield,
     .print = dialect_print_thread_yield},
    {.name = "dataflow.thread.launch",
     .code = WEFT_DATAFLOW_THREAD_LAUNCH,
     .traits = OPERANDS,
     .inherent = "callee operandSegmentSizes"},
    {.name = "dataflow.thread.wait", .code = WEFT_DATAFLOW_THREAD_WAIT},
    {.name = "dataflow.channel.send",
     .code = WEFT_DATAFLOW_CHANNEL_SEND,
     .format = "%0, %1 attr-dict : T | T param(T) ->"},
    {.name = "dataflow.channel.receive",
     .code = WEFT_DATAFLOW_CHANNEL_RECEIVE,
     .format = "%0 attr-dict : T | T -> param(T)"},
};

static const weft_mlir_op_spec loom_ops[] = {
    {.name = "loom.spatial_region",
     .code = WEFT_DATAFLOW_SPATIAL_REGION,
     .traits = WEFT_MLIR_ISOLATED | BOTH,
     .inherent = "operandSegmentSizes resultSegmentSizes source_maps graph_name",
     .verify = dialect_verify_spatial_region},
    {.name = "loom.spatial_yield",
     .code = WEFT_DATAFLOW_SPATIAL_YIELD,
     .traits = WEFT_MLIR_TERMINATOR | OPERANDS,
     .inherent = "operandSegmentSizes",
     .verify = dialect_verify_spatial_yield},
};

static const weft_mlir_type_spec dataflow_types[] = {
    {.name = "dataflow.channel", .parameters = 1},
    {.name = "dataflow.thread_token", .parameters = 0},
};

static const weft_mlir_attribute_spec dataflow_attributes[] = {{.name = "dataflow.thread_domain"}};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const weft_mlir_dialect dataflow_dialect = {.name = "dataflow",
                                                   .ops = dataflow_ops,
                                                   .op_count = COUNT(dataflow_ops),
                                                   .types = dataflow_types,
                                                   .type_count = COUNT(dataflow_types),
                                                   .attributes = dataflow_attributes,
                                                   .attribute_count = COUNT(dataflow_attributes)};
static const weft_mlir_dialect loom_dialect = {.name = "loom", .ops = loom_ops, .op_count = COUNT(loom_ops)};

weft_status weft_dataflow_register(weft_mlir_context *context, weft_diag *diag) {
  weft_status status = weft_mlir_register(context, &dataflow_dialect, diag);
  return status == WEFT_OK ? weft_mlir_register(context, &loom_dialect, diag) : status;
}
