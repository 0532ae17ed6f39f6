/* dataflow.thread and its yield; loom.spatial_region and its yield. */
#include "dialect_private.h"

/* [visibility] @name [domain(#attribute)] (arguments) [ctrl (%c: none)] [iv (%i: index, ...)] [attributes {...}] { ...
 * } */
static bool parse_clause(weft_mlir_parser *p, weft_mlir_signature *all) {
  weft_arena *scratch = weft_mlir_parser_scratch(p);
  weft_mlir_signature more;
  if (!weft_mlir_parse_signature(p, &more)) return false;
  if (more.result_count) return weft_mlir_fail(p, "no results belong here");
  uint32_t count = all->argument_count + more.argument_count;
  weft_mlir_argument *arguments = WEFT_NEW_ARRAY(scratch, weft_mlir_argument, count);
  if (!arguments) return weft_mlir_fail(p, "out of memory");
  if (all->argument_count) memcpy(arguments, all->arguments, all->argument_count * sizeof *arguments);
  if (more.argument_count)
    memcpy(arguments + all->argument_count, more.arguments, more.argument_count * sizeof *arguments);
  all->arguments = arguments;
  all->argument_count = count;
  return true;
}

bool dialect_parse_thread(weft_mlir_parser *p, weft_mlir_state *state) {
  weft_mlir_signature s;
  const weft_mlir_attribute *domain;
  if (!weft_mlir_parse_symbol_head(p, state)) return false;
  if (weft_mlir_try(p, "domain") && (!weft_mlir_expect(p, "(") || !weft_mlir_parse_attribute(p, NULL, &domain) ||
                                     !weft_mlir_expect(p, ")") || !weft_mlir_add_attribute(p, state, "domain", domain)))
    return false;
  if (!weft_mlir_parse_signature(p, &s)) return false;
  if (s.result_count) return weft_mlir_fail(p, "a thread has no results");
  if (!weft_mlir_add_signature(p, state, &s, 0, s.argument_count)) return false;
  if (weft_mlir_try(p, "ctrl") && !parse_clause(p, &s)) return false;
  if (weft_mlir_try(p, "iv") && !parse_clause(p, &s)) return false;
  for (uint32_t i = 0; i < s.argument_count; i++)
    if (s.arguments[i].name.name == UINT32_MAX) return weft_mlir_fail(p, "argument %u has no name", i);
  static weft_mlir_argument none;
  return weft_mlir_parse_attr_dict_keyword(p, state) &&
         weft_mlir_parse_region(p, state, s.arguments ? s.arguments : &none, s.argument_count);
}

void dialect_print_thread(weft_mlir_printer *p, const weft_mlir_op *op) {
  const weft_mlir_attribute *domain = weft_mlir_attribute_of(op, "domain");
  uint32_t inputs = weft_mlir_function_type(op)->input_count, all = weft_mlir_op_region(op, 0)->first->argument_count;
  weft_mlir_put_symbol_head(p, op);
  if (domain) {
    weft_mlir_put(p, " domain(");
    weft_mlir_put_attribute(p, domain);
    weft_mlir_put(p, ")");
  }
  weft_mlir_put_arguments(p, op, 0, inputs, 0);
  if (all > inputs) {
    weft_mlir_put(p, " ctrl ");
    weft_mlir_put_arguments(p, op, inputs, 1, UINT32_MAX);
  }
  if (all > inputs + 1) {
    weft_mlir_put(p, " iv ");
    weft_mlir_put_arguments(p, op, inputs + 1, all - inputs - 1, UINT32_MAX);
  }
  weft_mlir_put_attr_dict(p, op, "sym_name sym_visibility function_type domain arg_attrs res_attrs", true);
  weft_mlir_put(p, " ");
  weft_mlir_put_region(p, weft_mlir_op_region(op, 0), false, true);
}

bool dialect_verify_thread(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  const weft_mlir_type *type = weft_mlir_function_type(op);
  const weft_mlir_block *body = weft_mlir_op_block(op, 0);
  if (!type || !body || !*weft_mlir_symbol_name(op))
    return dialect_wrong(op, file, diag, NULL, "a name, a function type and one block are needed");
  if (body->argument_count < type->input_count + 1 ||
      body->arguments[type->input_count].type->kind != WEFT_MLIR_NONE_TYPE)
    return dialect_wrong(op, file, diag, "add ctrl (%start: none)",
                         "the data arguments must be followed by a control argument of type none");
  for (uint32_t i = 0; i < body->argument_count; i++) {
    const weft_mlir_type *is = body->arguments[i].type;
    if (i < type->input_count ? is != type->inputs[i] : i > type->input_count && is->kind != WEFT_MLIR_INDEX_TYPE)
      return dialect_wrong(op, file, diag, NULL, "argument %u has the wrong type", i);
  }
  if (!body->last || weft_mlir_code(body->last) != WEFT_DATAFLOW_THREAD_YIELD)
    return dialect_wrong(op, file, diag, NULL, "the body must end in dataflow.thread.yield");
  for (uint32_t i = 0; i < body->last->operand_count; i++)
    if (body->last->operands[i]->type->kind != WEFT_MLIR_NONE_TYPE)
      return dialect_wrong(body->last, file, diag, NULL, "only tokens of type none are yielded");
  return true;
}

bool dialect_parse_thread_yield(weft_mlir_parser *p, weft_mlir_state *state) {
  weft_mlir_operand *operands;
  const weft_mlir_type **types = NULL;
  uint32_t count, type_count = 0;
  if (!weft_mlir_parse_operands(p, &operands, &count) ||
      (count && (!weft_mlir_expect(p, ":") || !weft_mlir_parse_types(p, &types, &type_count))))
    return false;
  if (count != type_count) return weft_mlir_fail(p, "%u types for %u operands", type_count, count);
  return dialect_add_operands(p, state, operands, types, count) && weft_mlir_parse_attr_dict(p, state);
}

void dialect_print_thread_yield(weft_mlir_printer *p, const weft_mlir_op *op) {
  if (op->operand_count) weft_mlir_put(p, " ");
  weft_mlir_put_operands(p, op, 0, op->operand_count);
  if (op->operand_count) weft_mlir_put(p, " : ");
  weft_mlir_put_operand_types(p, op, 0, op->operand_count);
  weft_mlir_put_attr_dict(p, op, NULL, false);
}

/* ---- spatial regions ------------------------------------------------------------------------------------------ */

bool dialect_verify_spatial_region(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  const weft_mlir_block *body = weft_mlir_op_block(op, 0);
  const weft_mlir_attribute *maps = weft_mlir_attribute_of(op, "source_maps"),
                            *operands = weft_mlir_attribute_of(op, "operandSegmentSizes");
  const weft_mlir_attribute *results = weft_mlir_attribute_of(op, "resultSegmentSizes");
  if (!body || body->argument_count != op->operand_count)
    return dialect_wrong(op, file, diag, NULL, "one block with an argument for each operand is needed");
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (body->arguments[i].type != op->operands[i]->type)
      return dialect_wrong(op, file, diag, NULL, "argument %u does not have its operand's type", i);
  if (operands->as.dense.elements != 4 || results->as.dense.elements != 2)
    return dialect_wrong(op, file, diag, NULL, "four operand segments and two result segments are needed");
  if (!maps || maps->kind != WEFT_MLIR_ARRAY || maps->count != dialect_segment(op, "operandSegmentSizes", 1))
    return dialect_wrong(op, file, diag, NULL, "source_maps must hold one affine map for each stream input");
  for (uint32_t i = 0; i < maps->count; i++)
    if (maps->as.items[i]->kind != WEFT_MLIR_AFFINE_MAP || maps->as.items[i]->as.map->symbols)
      return dialect_wrong(op, file, diag, NULL, "source map %u must be an affine map without symbols", i);
  for (uint32_t segment = 0, i = 0; segment < 4; segment++)
    for (uint32_t k = 0, size = dialect_segment(op, "operandSegmentSizes", segment); k < size; k++, i++) {
      const weft_mlir_type *type = op->operands[i]->type;
      bool channel = dialect_is_channel(type), memory = type->kind == WEFT_MLIR_MEMREF_TYPE;
      if (channel != (segment % 2 == 1) || memory != (segment == 2))
        return dialect_wrong(op, file, diag, "the order is values, stream inputs, memories, stream outputs",
                             "operand %u is in the wrong segment", i);
    }
  return (body->last && weft_mlir_code(body->last) == WEFT_DATAFLOW_SPATIAL_YIELD) ||
         dialect_wrong(op, file, diag, NULL, "the body must end in loom.spatial_yield");
}

bool dialect_verify_spatial_yield(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  const weft_mlir_op *region = weft_mlir_parent(op);
  if (!region || weft_mlir_code(region) != WEFT_DATAFLOW_SPATIAL_REGION)
    return dialect_wrong(op, file, diag, NULL, "it belongs into a loom.spatial_region");
  const weft_mlir_attribute *sizes = weft_mlir_attribute_of(op, "operandSegmentSizes");
  if (sizes->as.dense.elements != 2)
    return dialect_wrong(op, file, diag, NULL, "two operand segments, values and memories, are needed");
  bool same = op->operand_count == region->result_count &&
              dialect_segment(op, "operandSegmentSizes", 0) == dialect_segment(region, "resultSegmentSizes", 0);
  for (uint32_t i = 0; same && i < op->operand_count; i++) same = op->operands[i]->type == region->results[i].type;
  return same || dialect_wrong(op, file, diag, NULL, "what is yielded does not fit the region's results");
}
