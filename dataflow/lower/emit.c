/* Emitting ops of the new graph. */
#include "lower_private.h"

bool lower_memory(lowering *l) {
  if (l->status == WEFT_OK) l->status = weft_error_memory(l->diag);
  return false;
}

/* Stands in for an op there was no memory for, so that building can go on to its end. */
static weft_mlir_op *none(lowering *l) {
  lower_memory(l);
  return NULL;
}

weft_mlir_op *lower_emit(lowering *l, const weft_mlir_op_name *name, weft_mlir_value *const *operands,
                         uint32_t operand_count, const weft_mlir_type *const *results, uint32_t result_count,
                         const weft_mlir_attribute *properties) {
  weft_mlir_op_parts parts = {.name = name,
                              .operands = operands,
                              .result_types = results,
                              .properties = properties,
                              .operand_count = operand_count,
                              .result_count = result_count,
                              .line = l->line ? l->line->line : 0,
                              .column = l->line ? l->line->column : 0};
  for (uint32_t i = 0; i < operand_count; i++)
    if (!operands[i]) return none(l);
  weft_mlir_op *op = weft_mlir_op_new(l->arena, &parts);
  if (!op) return none(l);
  weft_mlir_insert(l->target, op, NULL);
  return op;
}

static weft_mlir_value *result(weft_mlir_op *op, uint32_t index) { return op ? &op->results[index] : NULL; }

weft_mlir_value *lower_sync(lowering *l, weft_mlir_value *const *tokens, uint32_t count, weft_mlir_op **op) {
  const weft_mlir_type *few[8], **types = count <= 8 ? few : WEFT_NEW_ARRAY(l->scratch, const weft_mlir_type *, count);
  if (!types) return result(none(l), 0);
  for (uint32_t i = 0; i < count; i++) types[i] = tokens[i] ? tokens[i]->type : l->none;
  weft_mlir_op *made = lower_emit(l, l->names.sync, tokens, count, types, count, NULL);
  if (op) *op = made;
  return result(made, 0);
}

weft_mlir_op *lower_demux(lowering *l, weft_mlir_value *selector, weft_mlir_value *value, uint32_t lanes) {
  const weft_mlir_type *few[8], **types = lanes <= 8 ? few : WEFT_NEW_ARRAY(l->scratch, const weft_mlir_type *, lanes);
  if (!types || !value) return none(l);
  for (uint32_t i = 0; i < lanes; i++) types[i] = value->type;
  return lower_emit(l, l->names.demux, (weft_mlir_value *[]){selector, value}, 2, types, lanes, NULL);
}

weft_mlir_value *lower_mux(lowering *l, weft_mlir_value *selector, weft_mlir_value *const *lanes, uint32_t count) {
  weft_mlir_value **operands = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, count + 1);
  if (!operands || !lanes[0]) return result(none(l), 0);
  operands[0] = selector;
  memcpy(operands + 1, lanes, count * sizeof *lanes);
  return result(lower_emit(l, l->names.mux, operands, count + 1, &lanes[0]->type, 1, NULL), 0);
}

weft_mlir_op *lower_carry(lowering *l, weft_mlir_value *condition, weft_mlir_value *init) {
  if (!init) return none(l);
  return lower_emit(l, l->names.carry, (weft_mlir_value *[]){condition, init, init}, 3, &init->type, 1, NULL);
}

weft_mlir_value *lower_invariant(lowering *l, weft_mlir_value *condition, weft_mlir_value *init) {
  if (!init) return result(none(l), 0);
  return result(lower_emit(l, l->names.invariant, (weft_mlir_value *[]){condition, init}, 2, &init->type, 1, NULL), 0);
}

weft_mlir_op *lower_gate(lowering *l, weft_mlir_value *condition, weft_mlir_value *value) {
  if (!value) return none(l);
  return lower_emit(l, l->names.gate, (weft_mlir_value *[]){condition, value}, 2,
                    (const weft_mlir_type *[]){l->i1, value->type}, 2, NULL);
}

weft_mlir_value *lower_binary(lowering *l, const weft_mlir_op_name *name, weft_mlir_value *a, weft_mlir_value *b) {
  if (!a) return result(none(l), 0);
  return result(lower_emit(l, name, (weft_mlir_value *[]){a, b}, 2, &a->type, 1, NULL), 0);
}

static const weft_mlir_attribute *one_member(lowering *l, const char *name, const weft_mlir_attribute *value) {
  weft_mlir_named member = {weft_mlir_intern(l->context, name, strlen(name)), value};
  const weft_mlir_attribute *dictionary = member.name && value ? weft_mlir_dictionary(l->context, &member, 1) : NULL;
  if (!dictionary) lower_memory(l);
  return dictionary;
}

weft_mlir_value *lower_compare(lowering *l, weft_mlir_cmpi predicate, weft_mlir_value *a, weft_mlir_value *b) {
  const weft_mlir_attribute *number = weft_mlir_integer_attribute(l->context, l->i64, predicate);
  return result(
      lower_emit(l, l->names.cmpi, (weft_mlir_value *[]){a, b}, 2, &l->i1, 1, one_member(l, "predicate", number)), 0);
}

weft_mlir_value *lower_select(lowering *l, weft_mlir_value *condition, weft_mlir_value *yes, weft_mlir_value *no) {
  if (!yes) return result(none(l), 0);
  return result(lower_emit(l, l->names.select, (weft_mlir_value *[]){condition, yes, no}, 3, &yes->type, 1, NULL), 0);
}

weft_mlir_value *lower_cast(lowering *l, const weft_mlir_op_name *name, weft_mlir_value *value,
                            const weft_mlir_type *type) {
  return result(lower_emit(l, name, &value, 1, &type, 1, NULL), 0);
}

weft_mlir_value *lower_constant(lowering *l, const weft_mlir_attribute *value) {
  if (!value) return result(none(l), 0);
  if (l->top)
    return result(lower_emit(l, l->names.constant, NULL, 0, &value->type, 1, one_member(l, "value", value)), 0);
  return result(lower_emit(l, l->names.token, &l->entry, 1, &value->type, 1, one_member(l, "const_value", value)), 0);
}

weft_mlir_value *lower_number(lowering *l, const weft_mlir_type *type, int64_t value) {
  return lower_constant(l, weft_mlir_integer_attribute(l->context, type, value));
}
