/* memref.copy as loops of one load and one store, so that the lowering has a single kind of access to order. */
#include "lower_private.h"

typedef struct expander {
  weft_mlir_context *context;
  weft_arena *arena;
  weft_mlir_op *copy; /* the op being replaced */
  weft_mlir_block *block;
  weft_mlir_op *before;
  bool failed;
} expander;

static weft_mlir_op *make(expander *e, const char *name, weft_mlir_value *const *operands, uint32_t operand_count,
                          const weft_mlir_type *type, const weft_mlir_attribute *properties, uint32_t regions) {
  weft_mlir_op_parts parts = {.name = weft_mlir_name(e->context, name, strlen(name)),
                              .operands = operands,
                              .result_types = &type,
                              .properties = properties,
                              .operand_count = operand_count,
                              .result_count = type != NULL,
                              .region_count = regions,
                              .line = e->copy->line,
                              .column = e->copy->column};
  weft_mlir_op *op = parts.name ? weft_mlir_op_new(e->arena, &parts) : NULL;
  if (op)
    weft_mlir_insert(e->block, op, e->before);
  else
    e->failed = true;
  return op;
}

static weft_mlir_value *number(expander *e, int64_t value) {
  const weft_mlir_type *index = weft_mlir_index(e->context);
  weft_mlir_named member = {weft_mlir_intern(e->context, "value", 5),
                            weft_mlir_integer_attribute(e->context, index, value)};
  const weft_mlir_attribute *properties =
      member.name && member.value ? weft_mlir_dictionary(e->context, &member, 1) : NULL;
  weft_mlir_op *op = properties ? make(e, "arith.constant", NULL, 0, index, properties, 0) : NULL;
  if (!op) e->failed = true;
  return op ? &op->results[0] : NULL;
}

/* A loop around what follows: from 0 to `extent` by 1. */
static weft_mlir_value *open_loop(expander *e, int64_t extent) {
  weft_mlir_value *bounds[] = {number(e, 0), number(e, extent), number(e, 1)};
  if (e->failed) return NULL;
  const weft_mlir_type *index = weft_mlir_index(e->context);
  weft_mlir_op *loop = make(e, "scf.for", bounds, 3, NULL, NULL, 1);
  weft_mlir_block *body = loop ? weft_mlir_block_new(e->arena, weft_mlir_op_region(loop, 0), &index, 1) : NULL;
  if (!body) {
    e->failed = true;
    return NULL;
  }
  e->block = body;
  e->before = NULL;
  weft_mlir_op *yield = make(e, "scf.yield", NULL, 0, NULL, NULL, 0);
  e->before = yield;
  return &body->arguments[0];
}

static bool expand(expander *e) {
  weft_mlir_value *from = e->copy->operands[0], *to = e->copy->operands[1], *operands[WEFT_MOST_RANK + 2];
  uint64_t ignored;
  const weft_mlir_type *shape = weft_mlir_elements(from->type, &ignored) ? from->type : to->type;
  weft_mlir_block *block = e->copy->block;
  e->block = block;
  e->before = e->copy;
  for (uint32_t i = 0; i < shape->rank && !e->failed; i++) operands[i + 2] = open_loop(e, shape->extents[i]);
  if (e->failed) return false;
  operands[1] = from;
  weft_mlir_op *load = make(e, "memref.load", operands + 1, shape->rank + 1, from->type->element, NULL, 0);
  if (!load) return false;
  operands[0] = &load->results[0];
  operands[1] = to;
  if (!make(e, "memref.store", operands, shape->rank + 2, NULL, NULL, 0)) return false;
  weft_mlir_remove(e->copy);
  return true;
}

bool lower_has_copies(const weft_mlir_op *graph) {
  for (const weft_mlir_op *op = weft_mlir_next(graph, NULL); op; op = weft_mlir_next(graph, op))
    if (weft_mlir_code(op) == WEFT_OP_MEMREF_COPY) return true;
  return false;
}

bool lower_expand_copies(weft_mlir_context *context, weft_arena *arena, weft_mlir_op *graph) {
  for (weft_mlir_op *op = weft_mlir_next(graph, NULL); op;) {
    weft_mlir_op *next = weft_mlir_next(graph, op);
    expander e = {.context = context, .arena = arena, .copy = op};
    if (weft_mlir_code(op) == WEFT_OP_MEMREF_COPY && !expand(&e)) return false;
    op = next;
  }
  return true;
}
