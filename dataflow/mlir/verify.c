/* What must hold of any module, whatever its dialects. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct verifier {
  const char *file;
  weft_diag *diag;
  bool failed;
  const weft_mlir_op *asked; /* the op that last told whether its order means something, */
  bool ordered;              /* and what it said */
} verifier;

static WEFT_PRINTF(4, 5) void complain(verifier *v, const weft_mlir_op *op, const char *hint, const char *format, ...) {
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  v->failed = true;
  weft_error_at(v->diag, WEFT_INVALID, weft_mlir_place(v->file, op), hint, "%s: %s", op->name->text, message);
}

static bool trait(const weft_mlir_op *op, uint32_t which) { return op->name->spec && op->name->spec->traits & which; }

/* Ops whose regions may use a value above its definition: those that say so and those nobody registered. */
static bool graph_like(verifier *v, const weft_mlir_op *op) {
  const weft_mlir_op_spec *spec = op->name->spec;
  if (!spec) return true;
  if (!trait(op, WEFT_MLIR_GRAPH)) return false;
  if (!spec->ordered) return true;
  if (v->asked != op) v->ordered = spec->ordered(op);
  v->asked = op;
  return !v->ordered;
}

/* Marks number the ops of a block in order. */
/* Whether `value` may be used by `op`: defined in a block that holds `op` at some depth, before it unless that region's
 * order means nothing, with no isolated region between. Regions of several blocks are taken to be in order of
 * dominance. */
static void check_operand(verifier *v, const weft_mlir_op *op, uint32_t index) {
  const weft_mlir_value *value = op->operands[index];
  const weft_mlir_region *home = weft_mlir_value_block(value)->region;
  const weft_mlir_op *at = op;
  for (; at->block; at = at->block->region->op) {
    const weft_mlir_region *region = at->block->region;
    if (region == home) break;
    if (trait(region->op, WEFT_MLIR_ISOLATED)) {
      complain(v, op, "pass it in as an operand", "operand %u is defined outside an isolated region", index);
      return;
    }
  }
  if (!at->block) {
    complain(v, op, NULL, "operand %u is not visible here", index);
    return;
  }
  const weft_mlir_op *definition = weft_mlir_defining_op(value);
  if (!definition || home->first != home->last) return;
  if (definition->mark >= at->mark && !graph_like(v, home->op))
    complain(v, op, "move the definition up", "operand %u is used before it is defined in line %u", index,
             definition->line);
}

static int64_t segment_sum(const weft_mlir_attribute *a) {
  int64_t sum = 0;
  for (uint64_t i = 0; i < a->as.dense.elements; i++) {
    int64_t size = weft_mlir_dense_integer(a, i);
    if (size < 0 || size > INT32_MAX) return -1;
    sum += size;
  }
  return sum;
}

static void check_segments(verifier *v, const weft_mlir_op *op, const char *name, uint32_t count) {
  const weft_mlir_attribute *a = weft_mlir_attribute_of(op, name);
  if (!a || a->kind != WEFT_MLIR_DENSE_ARRAY || !weft_mlir_is_integer(a->type, 32))
    complain(v, op, NULL, "the property %s = array<i32: ...> is missing", name);
  else if (segment_sum(a) != (int64_t)count)
    complain(v, op, NULL, "%s adds up to %lld, but there are %u", name, (long long)segment_sum(a), count);
}

static void check_region(verifier *v, const weft_mlir_op *op, const weft_mlir_region *region);

static void check_op(verifier *v, weft_mlir_op *op) {
  bool failed_before = v->failed;
  v->failed = false;
  for (uint32_t i = 0; i < op->operand_count; i++) check_operand(v, op, i);
  if (op->successor_count && op->next) complain(v, op, NULL, "an op with successors must end its block");
  if (trait(op, WEFT_MLIR_TERMINATOR) && op->next)
    complain(v, op, NULL, "a terminator must be the last op of its block");
  if (trait(op, WEFT_MLIR_OPERAND_SEGMENTS)) check_segments(v, op, "operandSegmentSizes", op->operand_count);
  if (trait(op, WEFT_MLIR_RESULT_SEGMENTS)) check_segments(v, op, "resultSegmentSizes", op->result_count);
  const op_name *name = mlir_op_name_of(op);
  if (!v->failed && name->format && !mlir_format_verify(name->format, op, v->file, v->diag)) v->failed = true;
  /* What is inside may rely on the op, and the dialect's own check on both. */
  for (uint32_t i = 0; i < op->region_count && !v->failed; i++) check_region(v, op, &op->extra->regions[i]);
  if (!v->failed && op->name->spec && op->name->spec->verify && !op->name->spec->verify(op, v->file, v->diag))
    v->failed = true;
  v->failed |= failed_before;
}

/* Symbols of a module must differ. Sorted copies keep this linear but for the sort. */
static int by_symbol(const void *a, const void *b) {
  const weft_mlir_op *x = *(const weft_mlir_op *const *)a, *y = *(const weft_mlir_op *const *)b;
  int order = strcmp(weft_mlir_symbol_name(x), weft_mlir_symbol_name(y));
  return order ? order : (x->mark > y->mark) - (x->mark < y->mark);
}

static void check_symbols(verifier *v, const weft_mlir_block *block) {
  uint64_t count = 0;
  for (const weft_mlir_op *op = block->first; op; op = op->next) count += *weft_mlir_symbol_name(op) != '\0';
  const weft_mlir_op **ops = count > 1 ? malloc(count * sizeof *ops) : NULL;
  if (!ops) return;
  count = 0;
  for (const weft_mlir_op *op = block->first; op; op = op->next)
    if (*weft_mlir_symbol_name(op)) ops[count++] = op;
  qsort(ops, count, sizeof *ops, by_symbol);
  for (uint64_t i = 1; i < count; i++)
    if (strcmp(weft_mlir_symbol_name(ops[i - 1]), weft_mlir_symbol_name(ops[i])) == 0)
      complain(v, ops[i], "rename one of them", "the symbol @%s is already defined in line %u",
               weft_mlir_symbol_name(ops[i]), ops[i - 1]->line);
  free(ops);
}

static void check_region(verifier *v, const weft_mlir_op *op, const weft_mlir_region *region) {
  for (weft_mlir_block *b = region->first; b; b = b->next) {
    uint32_t order = 0;
    for (weft_mlir_op *inner = b->first; inner; inner = inner->next) inner->mark = order++;
    for (weft_mlir_op *inner = b->first; inner; inner = inner->next) check_op(v, inner);
    if (trait(op, WEFT_MLIR_IMPLICIT_END) && !(b->last && trait(b->last, WEFT_MLIR_TERMINATOR)))
      complain(v, op, NULL, "a block has no terminator; %s is expected", op->name->spec->implicit);
  }
  if (region->first && region->first == region->last && strcmp(op->name->text, "builtin.module") == 0)
    check_symbols(v, region->first);
}

weft_status weft_mlir_verify(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  verifier v = {.file = file, .diag = diag};
  check_op(&v, (weft_mlir_op *)op);
  return v.failed ? WEFT_INVALID : WEFT_OK;
}
