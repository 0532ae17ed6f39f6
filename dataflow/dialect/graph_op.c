/* dataflow.graph, its return and its launch. */
#include "dialect_private.h"

/* ---- graph ---------------------------------------------------------------------------------------------------- */

/* Without segments in the text every input and result is a value. */
static bool default_segments(weft_mlir_parser *p, weft_mlir_state *state, const weft_mlir_signature *s) {
  weft_mlir_context *context = weft_mlir_parser_context(p);
  int64_t inputs[] = {s->argument_count - 1, 0, 0}, results[] = {s->result_count, 0, 0};
  if (!weft_mlir_has_attribute(state, "input_segments") &&
      !weft_mlir_add_attribute(p, state, "input_segments", weft_mlir_dense_array(context, 32, inputs, 3)))
    return false;
  return weft_mlir_has_attribute(state, "result_segments") ||
         weft_mlir_add_attribute(p, state, "result_segments", weft_mlir_dense_array(context, 32, results, 3));
}

bool dialect_parse_graph(weft_mlir_parser *p, weft_mlir_state *state) {
  weft_mlir_signature s;
  if (!weft_mlir_parse_symbol_head(p, state) || !weft_mlir_parse_signature(p, &s)) return false;
  if (!s.argument_count || s.arguments[0].type != weft_mlir_none(weft_mlir_parser_context(p)))
    return weft_mlir_fail(p, "a graph's first argument must be its start, of type none");
  for (uint32_t i = 0; i < s.argument_count; i++)
    if (s.arguments[i].name.name == UINT32_MAX) return weft_mlir_fail(p, "argument %u has no name", i);
  return weft_mlir_add_signature(p, state, &s, 1, s.argument_count) && weft_mlir_parse_attr_dict_keyword(p, state) &&
         default_segments(p, state, &s) && weft_mlir_parse_region(p, state, s.arguments, s.argument_count);
}

void dialect_print_graph(weft_mlir_printer *p, const weft_mlir_op *op) {
  weft_mlir_put_symbol_head(p, op);
  weft_mlir_put_arguments(p, op, 0, weft_mlir_op_region(op, 0)->first->argument_count, 1);
  weft_mlir_put_function_results(p, op, true);
  weft_mlir_put_attr_dict(p, op, "sym_name sym_visibility function_type arg_attrs res_attrs", true);
  weft_mlir_put(p, " ");
  weft_mlir_put_region(p, weft_mlir_op_region(op, 0), false, true);
}

/* Three sizes that add up to `count`, the last of them for memrefs only. */
static bool segments_ok(const weft_mlir_op *op, const char *name, const weft_mlir_type *const *types, uint32_t count,
                        const char *file, weft_diag *diag) {
  const weft_mlir_attribute *a = weft_mlir_attribute_of(op, name);
  if (!a || a->kind != WEFT_MLIR_DENSE_ARRAY || !weft_mlir_is_integer(a->type, 32) || a->as.dense.elements != 3)
    return dialect_wrong(op, file, diag, NULL, "%s = array<i32: values, streams, memories> is needed", name);
  uint32_t values = dialect_segment(op, name, 0), streams = dialect_segment(op, name, 1),
           memories = dialect_segment(op, name, 2);
  if ((uint64_t)values + streams + memories != count)
    return dialect_wrong(op, file, diag, NULL, "%s adds up to %llu for %u types", name,
                         (unsigned long long)values + streams + memories, count);
  for (uint32_t i = 0; i < count; i++)
    if ((types[i]->kind == WEFT_MLIR_MEMREF_TYPE) != (i >= values + streams))
      return dialect_wrong(op, file, diag, "memories come last, and only they are memrefs",
                           "%s does not fit type %u of the function type", name, i);
  return true;
}

/* weft.input_order: for each input of the function that the graph was, where it is now. */
static bool order_ok(const weft_mlir_op *op, const weft_mlir_type *type, const char *file, weft_diag *diag) {
  const weft_mlir_attribute *order = weft_mlir_attribute_of(op, "weft.input_order");
  if (!order) return true;
  bool good = order->kind == WEFT_MLIR_DENSE_ARRAY && weft_mlir_is_integer(order->type, 64) &&
              order->as.dense.elements == type->input_count;
  for (uint32_t i = 0; good && i < type->input_count; i++)
    good = weft_mlir_dense_integer(order, i) >= 0 && weft_mlir_dense_integer(order, i) < type->input_count;
  return good || dialect_wrong(op, file, diag, NULL, "weft.input_order must hold the place of each input");
}

/* Token ops, whose order means nothing, and ops that nobody knows. */
static bool is_token_op(const weft_mlir_op *op) {
  uint32_t code = weft_mlir_code(op);
  return code == WEFT_MLIR_NO_CODE || (code >= WEFT_DATAFLOW_CONSTANT && code <= WEFT_DATAFLOW_STORE);
}

/* Rings are made of token ops. A body without any is a program: it is run from top to bottom. */
bool dialect_graph_is_ordered(const weft_mlir_op *graph) {
  for (const weft_mlir_op *op = weft_mlir_op_block(graph, 0)->first; op; op = op->next)
    if (is_token_op(op)) return false;
  return true;
}

bool dialect_verify_graph(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  const weft_mlir_type *type = weft_mlir_function_type(op);
  const weft_mlir_block *body = weft_mlir_op_block(op, 0);
  if (!type || !body || !*weft_mlir_symbol_name(op))
    return dialect_wrong(op, file, diag, NULL, "a name, a function type and one block are needed");
  bool good = body->argument_count == type->input_count + 1 && body->arguments[0].type->kind == WEFT_MLIR_NONE_TYPE;
  for (uint32_t i = 0; good && i < type->input_count; i++) good = body->arguments[i + 1].type == type->inputs[i];
  if (!good)
    return dialect_wrong(op, file, diag, NULL,
                         "the block's arguments must be the start, of type none, and the function type's inputs");
  if (!body->last || weft_mlir_code(body->last) != WEFT_DATAFLOW_GRAPH_RETURN)
    return dialect_wrong(op, file, diag, NULL, "the body must end in dataflow.graph.return");
  return segments_ok(op, "input_segments", type->inputs, type->input_count, file, diag) &&
         segments_ok(op, "result_segments", type->results, type->result_count, file, diag) &&
         order_ok(op, type, file, diag);
}

/* ---- return --------------------------------------------------------------------------------------------------- */

/* Segments in the op: values, streams, memories, complete. */
enum { VALUES, STREAMS, MEMORIES, COMPLETE, SEGMENTS };

static bool add_segments(weft_mlir_parser *p, weft_mlir_state *state, const char *name, const int64_t *sizes,
                         uint32_t count) {
  return weft_mlir_add_attribute(p, state, name, weft_mlir_dense_array(weft_mlir_parser_context(p), 32, sizes, count));
}

/* word(%a, %b : types) */
static bool parse_return_segment(weft_mlir_parser *p, weft_mlir_state *state, const char *word, int64_t *size) {
  weft_mlir_operand *operands;
  const weft_mlir_type **types = NULL;
  uint32_t count, type_count = 0;
  if (!weft_mlir_expect(p, word) || !weft_mlir_expect(p, "(") || !weft_mlir_parse_operands(p, &operands, &count))
    return false;
  if (count && (!weft_mlir_expect(p, ":") || !weft_mlir_parse_types(p, &types, &type_count))) return false;
  if (count != type_count) return weft_mlir_fail(p, "%u types for %u operands", type_count, count);
  *size = count;
  return weft_mlir_expect(p, ")") && dialect_add_operands(p, state, operands, types, count);
}

/* %complete, %values... : none, types... */
static bool parse_compact_return(weft_mlir_parser *p, weft_mlir_state *state, int64_t *sizes) {
  weft_mlir_operand *operands;
  const weft_mlir_type **types;
  uint32_t count, type_count;
  if (!weft_mlir_parse_operands(p, &operands, &count) || !weft_mlir_parse_attr_dict(p, state) ||
      !weft_mlir_expect(p, ":") || !weft_mlir_parse_types(p, &types, &type_count))
    return false;
  if (count != type_count || !count) return weft_mlir_fail(p, "%u types for %u operands", type_count, count);
  sizes[VALUES] = count - 1;
  sizes[COMPLETE] = 1;
  return dialect_add_operands(p, state, operands + 1, types + 1, count - 1) &&
         dialect_add_operands(p, state, operands, types, 1);
}

bool dialect_parse_graph_return(weft_mlir_parser *p, weft_mlir_state *state) {
  int64_t sizes[SEGMENTS] = {0};
  bool full = !weft_mlir_at_operand(p);
  if (full ? !parse_return_segment(p, state, "values", &sizes[VALUES]) ||
                 !parse_return_segment(p, state, "streams", &sizes[STREAMS]) ||
                 !parse_return_segment(p, state, "memories", &sizes[MEMORIES]) ||
                 !parse_return_segment(p, state, "complete", &sizes[COMPLETE]) || !weft_mlir_parse_attr_dict(p, state)
           : !parse_compact_return(p, state, sizes))
    return false;
  return add_segments(p, state, "operandSegmentSizes", sizes, SEGMENTS);
}

static void put_segment(weft_mlir_printer *p, const weft_mlir_op *op, const char *word, uint32_t begin, uint32_t count,
                        bool types) {
  weft_mlir_putf(p, " %s(", word);
  weft_mlir_put_operands(p, op, begin, begin + count);
  if (count && types) {
    weft_mlir_put(p, " : ");
    weft_mlir_put_operand_types(p, op, begin, begin + count);
  }
  weft_mlir_put(p, ")");
}

void dialect_print_graph_return(weft_mlir_printer *p, const weft_mlir_op *op) {
  static const char *const words[SEGMENTS] = {"values", "streams", "memories", "complete"};
  uint32_t sizes[SEGMENTS], begin = 0;
  for (uint32_t i = 0; i < SEGMENTS; i++) sizes[i] = dialect_segment(op, "operandSegmentSizes", i);
  if (!sizes[STREAMS] && !sizes[MEMORIES] && sizes[COMPLETE] == 1) {
    uint32_t values = sizes[VALUES];
    weft_mlir_put(p, " ");
    weft_mlir_put_value(p, op->operands[values]);
    if (values) weft_mlir_put(p, ", ");
    weft_mlir_put_operands(p, op, 0, values);
    weft_mlir_put_attr_dict(p, op, "operandSegmentSizes", false);
    weft_mlir_put(p, values ? " : none, " : " : none");
    weft_mlir_put_operand_types(p, op, 0, values);
    return;
  }
  for (uint32_t i = 0; i < SEGMENTS; i++) {
    put_segment(p, op, words[i], begin, sizes[i], true);
    begin += sizes[i];
  }
  weft_mlir_put_attr_dict(p, op, "operandSegmentSizes", false);
}

bool dialect_verify_graph_return(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  const weft_mlir_op *graph = weft_mlir_parent(op);
  const weft_mlir_type *type =
      graph && weft_mlir_code(graph) == WEFT_DATAFLOW_GRAPH ? weft_mlir_function_type(graph) : NULL;
  if (!type) return dialect_wrong(op, file, diag, NULL, "it belongs into a dataflow.graph");
  uint32_t complete = dialect_segment(op, "operandSegmentSizes", COMPLETE);
  if (!complete || op->operand_count - complete != type->result_count)
    return dialect_wrong(op, file, diag, NULL, "the graph's %u results and one completion or more must be returned",
                         type->result_count);
  for (uint32_t i = 0; i < SEGMENTS - 1; i++)
    if (dialect_segment(op, "operandSegmentSizes", i) != dialect_segment(graph, "result_segments", i))
      return dialect_wrong(op, file, diag, NULL,
                           "values, streams and memories returned differ from the graph's result_segments");
  for (uint32_t i = 0; i < op->operand_count; i++) {
    bool good = i < type->result_count ? op->operands[i]->type == type->results[i]
                                       : op->operands[i]->type->kind == WEFT_MLIR_NONE_TYPE;
    if (!good) return dialect_wrong(op, file, diag, NULL, "operand %u has the wrong type", i);
  }
  return true;
}

/* ---- launch --------------------------------------------------------------------------------------------------- */

enum { LAUNCH_SEGMENTS = 5, LAUNCH_RESULTS = 3, STREAM_INPUTS = 2 };
static const char *const launch_words[LAUNCH_SEGMENTS] = {"deps", "values", "stream_inputs", "memories",
                                                          "stream_outputs"};

typedef struct launch {
  weft_mlir_operand *operands;
  uint64_t count, capacity;
  const weft_mlir_attribute **maps;
  uint64_t map_count, map_capacity;
  int64_t sizes[LAUNCH_SEGMENTS];
} launch;

/* word(%a, %b), each stream input followed by `source_map` and its map. */
static bool parse_launch_segment(weft_mlir_parser *p, launch *l, uint32_t segment) {
  weft_arena *scratch = weft_mlir_parser_scratch(p);
  if (!weft_mlir_expect(p, launch_words[segment]) || !weft_mlir_expect(p, "(")) return false;
  if (weft_mlir_try(p, ")")) return true;
  do {
    if (!weft_arena_grow(scratch, &l->operands, l->count, &l->capacity, sizeof *l->operands) ||
        !weft_arena_grow(scratch, &l->maps, l->map_count, &l->map_capacity, sizeof *l->maps))
      return weft_mlir_fail(p, "out of memory");
    if (!weft_mlir_parse_operand(p, &l->operands[l->count++])) return false;
    l->sizes[segment]++;
    if (segment == STREAM_INPUTS &&
        (!weft_mlir_expect(p, "source_map") || !weft_mlir_parse_attribute(p, NULL, &l->maps[l->map_count++])))
      return false;
  } while (weft_mlir_try(p, ","));
  return weft_mlir_expect(p, ")");
}

bool dialect_parse_graph_launch(weft_mlir_parser *p, weft_mlir_state *state) {
  weft_mlir_context *context = weft_mlir_parser_context(p);
  launch l = {.count = 0};
  const char *callee;
  const weft_mlir_type **inputs, **results;
  uint32_t input_count, result_count, memories = 0;
  if (!weft_mlir_parse_symbol(p, &callee)) return false;
  for (uint32_t i = 0; i < LAUNCH_SEGMENTS; i++)
    if (!parse_launch_segment(p, &l, i)) return false;
  if (!weft_mlir_parse_attr_dict(p, state) || !weft_mlir_expect(p, ":") ||
      !weft_mlir_parse_functional(p, &inputs, &input_count, &results, &result_count))
    return false;
  if (input_count != l.count || !result_count)
    return weft_mlir_fail(p, "%u types for %u operands, %u results", input_count, (uint32_t)l.count, result_count);
  while (memories + 1 < result_count && results[result_count - 2 - memories]->kind == WEFT_MLIR_MEMREF_TYPE) memories++;
  for (uint32_t i = 0; i < result_count; i++)
    if (!weft_mlir_add_result(p, state, results[i])) return false;
  int64_t result_sizes[LAUNCH_RESULTS] = {result_count - 1 - memories, memories, 1};
  return dialect_add_operands(p, state, l.operands, inputs, input_count) &&
         weft_mlir_add_attribute(p, state, "callee", weft_mlir_symbol(context, callee)) &&
         weft_mlir_add_attribute(p, state, "source_maps", weft_mlir_array(context, l.maps, (uint32_t)l.map_count)) &&
         add_segments(p, state, "operandSegmentSizes", l.sizes, LAUNCH_SEGMENTS) &&
         add_segments(p, state, "resultSegmentSizes", result_sizes, LAUNCH_RESULTS);
}

void dialect_print_graph_launch(weft_mlir_printer *p, const weft_mlir_op *op) {
  const weft_mlir_attribute *maps = weft_mlir_attribute_of(op, "source_maps");
  weft_mlir_put(p, " ");
  weft_mlir_put_symbol(p, weft_mlir_attribute_text(op, "callee", ""));
  for (uint32_t i = 0, begin = 0; i < LAUNCH_SEGMENTS; i++) {
    uint32_t size = dialect_segment(op, "operandSegmentSizes", i);
    weft_mlir_putf(p, " %s(", launch_words[i]);
    for (uint32_t k = 0; k < size; k++) {
      if (k) weft_mlir_put(p, ", ");
      weft_mlir_put_value(p, op->operands[begin + k]);
      if (i != STREAM_INPUTS) continue;
      weft_mlir_put(p, " source_map ");
      weft_mlir_put_attribute(p, maps->as.items[k]);
    }
    weft_mlir_put(p, ")");
    begin += size;
  }
  weft_mlir_put_attr_dict(p, op, "callee source_maps operandSegmentSizes resultSegmentSizes", false);
  weft_mlir_put(p, " : ");
  weft_mlir_put_functional(p, op);
}

/* Types of a segment of operands: `none`, channels, memrefs, or anything but channels. */
static bool operand_ok(uint32_t segment, const weft_mlir_type *type) {
  switch (segment) {
  case 0: return type->kind == WEFT_MLIR_NONE_TYPE;
  case 2:
  case 4: return dialect_is_channel(type);
  case 3: return type->kind == WEFT_MLIR_MEMREF_TYPE;
  default: return !dialect_is_channel(type) && type->kind != WEFT_MLIR_MEMREF_TYPE;
  }
}

bool dialect_verify_graph_launch(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  const weft_mlir_attribute *maps = weft_mlir_attribute_of(op, "source_maps"),
                            *callee = weft_mlir_attribute_of(op, "callee");
  const weft_mlir_attribute *operands = weft_mlir_attribute_of(op, "operandSegmentSizes"),
                            *results = weft_mlir_attribute_of(op, "resultSegmentSizes");
  if (!callee || callee->kind != WEFT_MLIR_SYMBOL) return dialect_wrong(op, file, diag, NULL, "the callee is missing");
  if (operands->as.dense.elements != LAUNCH_SEGMENTS || results->as.dense.elements != LAUNCH_RESULTS ||
      weft_mlir_dense_integer(results, 2) != 1)
    return dialect_wrong(op, file, diag, NULL,
                         "five operand segments and three result segments, the last of one, are needed");
  if (!maps || maps->kind != WEFT_MLIR_ARRAY ||
      maps->count != dialect_segment(op, "operandSegmentSizes", STREAM_INPUTS))
    return dialect_wrong(op, file, diag, NULL, "each stream input needs one source map");
  for (uint32_t i = 0; i < maps->count; i++)
    if (maps->as.items[i]->kind != WEFT_MLIR_AFFINE_MAP || maps->as.items[i]->as.map->symbols)
      return dialect_wrong(op, file, diag, NULL, "source map %u must be an affine map without symbols", i);
  for (uint32_t i = 0, begin = 0; i < LAUNCH_SEGMENTS; i++)
    for (uint32_t k = 0, size = dialect_segment(op, "operandSegmentSizes", i); k < size; k++, begin++)
      if (!operand_ok(i, op->operands[begin]->type))
        return dialect_wrong(op, file, diag, NULL, "operand %u does not belong into the segment %s", begin,
                             launch_words[i]);
  return op->results[op->result_count - 1].type->kind == WEFT_MLIR_NONE_TYPE ||
         dialect_wrong(op, file, diag, NULL, "the last result must be none");
}
