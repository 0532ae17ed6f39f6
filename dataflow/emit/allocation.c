/* The allocations of token graphs: one buffer a launch each. */
#include "emit_private.h"

/* An extent is a value input or a constant of the graph. */
static bool put_extent(emitter *e, const weft_mlir_op *alloc, const weft_mlir_value *value) {
  if (value->is_argument && value->index) {
    emit_line(e,
              "  if ((int64_t)values[%u] < 0 || __builtin_mul_overflow(count, values[%u], &count)) count = UINT64_MAX;",
              value->index - 1, value->index - 1);
    return true;
  }
  const weft_mlir_op *definition = weft_mlir_defining_op(value);
  const weft_mlir_attribute *constant = definition && weft_mlir_code(definition) == WEFT_OP_ARITH_CONSTANT
                                            ? weft_mlir_attribute_of(definition, "value")
                                            : NULL;
  c_type c;
  weft_text text = {0};
  if (!constant || !emit_type(value->type, &c))
    return emit_refuse(e, alloc, "use a static shape, or a size that is a value input or a constant",
                       "the size is not known");
  emit_constant_text(constant, &c, &text);
  emit_line(e, "  if (%s < 0 || __builtin_mul_overflow(count, (uint64_t)%s, &count)) count = UINT64_MAX;",
            text.data ? text.data : "0", text.data ? text.data : "0");
  weft_text_free(&text);
  return true;
}

bool emit_count(emitter *e, const weft_mlir_op *alloc, emit_extent *extent) {
  const weft_mlir_type *type = alloc->results[0].type;
  uint32_t dynamic = 0;
  emit_line(e, "  uint64_t count = 1;");
  for (uint32_t i = 0; i < type->rank; i++) {
    if (type->extents[i] >= 0)
      emit_line(e, "  if (__builtin_mul_overflow(count, UINT64_C(%llu), &count)) count = UINT64_MAX;",
                (unsigned long long)type->extents[i]);
    else if (dynamic >= alloc->operand_count || !extent(e, alloc, alloc->operands[dynamic++]))
      return false;
  }
  return true;
}

static bool make(emitter *e, const weft_mlir_op *op) {
  const weft_mlir_type *type = op->results[0].type;
  const char *why;
  uint64_t row;
  c_type c;
  uint32_t mark = op->results[0].mark;
  if (!weft_memref_rows(type, &row, &why)) return emit_refuse(e, op, NULL, why);
  if (!emit_type(type->element, &c) || !c.name) return emit_refuse(e, op, NULL, "the element type has no C type");
  emit_line(e, "{");
  if (!emit_count(e, op, put_extent)) return false;
  emit_line(e, "  if (count > %d) %s;", WEFT_MOST_ALLOCATED, emit_fault(e, op, weft_fault_text(WEFT_FAULT_SIZE)));
  emit_line(e, "  a%u = (weft_df_memory){calloc(count + 1, sizeof(%s)), count, calloc(count + 1, 1)};", mark, c.name);
  emit_line(e, "  if (!a%u.data || !a%u.written) %s;", mark, mark, emit_fault(e, op, weft_fault_text(WEFT_FAULT_SIZE)));
  emit_line(e, "}");
  return true;
}

bool emit_allocations(emitter *e, const weft_mlir_op *graph) {
  const weft_mlir_block *body = weft_mlir_op_block(graph, 0);
  for (const weft_mlir_op *op = body->first; op; op = op->next)
    if (weft_mlir_code(op) == WEFT_OP_MEMREF_ALLOC) emit_line(e, "weft_df_memory a%u = {0};", op->results[0].mark);
  for (const weft_mlir_op *op = body->first; op; op = op->next)
    if (weft_mlir_code(op) == WEFT_OP_MEMREF_ALLOC && !make(e, op)) return false;
  return true;
}
