/* Comparing two modules. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct comparer {
  weft_arena *arena;
  const char **why;
  uint32_t next; /* number given to corresponding values and blocks of both sides */
} comparer;

static WEFT_PRINTF(3, 4) bool differ(comparer *c, const weft_mlir_op *op, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (c->why) *c->why = weft_arena_printf(c->arena, "%s in line %u: %s", op->name->text, op->line, text);
  return false;
}

static bool pair_values(comparer *c, const weft_mlir_op *op, weft_mlir_value *a, weft_mlir_value *b, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (a[i].type != b[i].type) return differ(c, op, "value %u has another type", i);
    a[i].mark = b[i].mark = ++c->next;
  }
  return true;
}

/* Numbers both sides in pre-order, checking shapes and types; operands follow in a second pass, for uses above
 * definitions. */
static bool pair_ops(comparer *c, weft_mlir_op *a, weft_mlir_op *b);

static bool pair_blocks(comparer *c, const weft_mlir_op *op, weft_mlir_block *a, weft_mlir_block *b) {
  if (a->argument_count != b->argument_count)
    return differ(c, op, "a block has %u arguments against %u", a->argument_count, b->argument_count);
  a->mark = b->mark = ++c->next;
  if (!pair_values(c, op, a->arguments, b->arguments, a->argument_count)) return false;
  weft_mlir_op *x = a->first, *y = b->first;
  for (; x && y; x = x->next, y = y->next)
    if (!pair_ops(c, x, y)) return false;
  if (x || y) return differ(c, x ? x : y, "only one side has this op");
  return true;
}

static bool pair_ops(comparer *c, weft_mlir_op *a, weft_mlir_op *b) {
  if (a->name != b->name) return differ(c, a, "the other side has %s in line %u", b->name->text, b->line);
  if (a->operand_count != b->operand_count || a->result_count != b->result_count ||
      a->region_count != b->region_count || a->successor_count != b->successor_count)
    return differ(c, a, "the counts of operands, results, regions or successors differ (line %u)", b->line);
  if (!pair_values(c, a, a->results, b->results, a->result_count)) return false;
  for (uint32_t i = 0; i < a->region_count; i++) {
    weft_mlir_block *x = a->extra->regions[i].first, *y = b->extra->regions[i].first;
    for (; x && y; x = x->next, y = y->next)
      if (!pair_blocks(c, a, x, y)) return false;
    if (x || y) return differ(c, a, "region %u has more blocks on one side", i);
  }
  return true;
}

static const weft_mlir_attribute *value_or_default(const weft_mlir_op *op, const char *name) {
  const weft_mlir_attribute *value = weft_mlir_attribute_of(op, name);
  const op_name *known = mlir_op_name_of(op);
  for (uint32_t i = 0; !value && i < known->inherent_count; i++)
    if (strcmp(known->inherents[i].name, name) == 0) value = known->inherents[i].otherwise;
  return value;
}

static bool same_members(comparer *c, const weft_mlir_op *a, const weft_mlir_op *b,
                         const weft_mlir_attribute *dictionary) {
  for (uint32_t i = 0; dictionary && i < dictionary->count; i++) {
    const char *name = dictionary->as.members[i].name;
    if (value_or_default(a, name) == value_or_default(b, name)) continue;
    return differ(c, a, "the attribute %s differs (line %u)", name, b->line);
  }
  return true;
}

static bool same_op(comparer *c, const weft_mlir_op *a, const weft_mlir_op *b) {
  for (uint32_t i = 0; i < a->operand_count; i++)
    if (a->operands[i]->mark != b->operands[i]->mark)
      return differ(c, a, "operand %u is another value (line %u)", i, b->line);
  for (uint32_t i = 0; i < a->successor_count; i++)
    if (a->extra->successors[i]->mark != b->extra->successors[i]->mark)
      return differ(c, a, "successor %u is another block", i);
  return same_members(c, a, b, a->properties) && same_members(c, a, b, a->attributes) &&
         same_members(c, a, b, b->properties) && same_members(c, a, b, b->attributes);
}

bool weft_mlir_equal(weft_mlir_op *a, weft_mlir_op *b, weft_arena *arena, const char **why) {
  comparer c = {.arena = arena, .why = why};
  if (!pair_ops(&c, a, b)) return false;
  weft_mlir_op *x = weft_mlir_next(a, NULL), *y = weft_mlir_next(b, NULL);
  for (; x && y; x = weft_mlir_next(a, x), y = weft_mlir_next(b, y))
    if (!same_op(&c, x, y)) return false;
  return true;
}
