/* Members and methods: what a postcondition can ask of operations, values, types and programs. */
#include "evaluation_private.h"

#include <inttypes.h>
#include <string.h>

static value text_value(const char *text) {
  return (value){.kind = VALUE_TEXT, .as.text = text, .count = strlen(text)};
}

static value sequence(sequence_shape shape, const void *elements, uint64_t count) {
  return (value){.kind = VALUE_SEQUENCE, .shape = (uint8_t)shape, .as.elements = elements, .count = count};
}

/* ---- members -------------------------------------------------------------------------------------------------- */

static const char *kind_of_type(evaluation *e, const weft_mlir_type *type) {
  switch (type->kind) {
  case WEFT_MLIR_INTEGER_TYPE: return "integer";
  case WEFT_MLIR_INDEX_TYPE: return "index";
  case WEFT_MLIR_FLOAT_TYPE: return "float";
  case WEFT_MLIR_NONE_TYPE: return "none";
  case WEFT_MLIR_FUNCTION_TYPE: return "function";
  case WEFT_MLIR_MEMREF_TYPE: return "memref";
  case WEFT_MLIR_TENSOR_TYPE: return "tensor";
  case WEFT_MLIR_VECTOR_TYPE: return "vector";
  case WEFT_MLIR_COMPLEX_TYPE: return "complex";
  case WEFT_MLIR_TUPLE_TYPE: return "tuple";
  case WEFT_MLIR_DIALECT_TYPE: break;
  }
  size_t length = strlen(type->name);
  char *text = evaluation_pool_array(&e->pool, length + 2, 1);
  if (!text) return NULL;
  text[0] = '!';
  memcpy(text + 1, type->name, length + 1);
  return text;
}

static bool op_member(const weft_mlir_op *op, member which, value *result) {
  if (which == MEMBER_NAME) return *result = text_value(op->name->text), true;
  if (which == MEMBER_OPERANDS) return *result = sequence(SHAPE_OPERANDS, op->operands, op->operand_count), true;
  if (which == MEMBER_RESULTS) return *result = sequence(SHAPE_RESULTS, op->results, op->result_count), true;
  return false;
}

static bool ssa_member(evaluation *e, weft_mlir_value *ssa, member which, value *result) {
  if (which == MEMBER_TYPE) return *result = (value){.kind = VALUE_TYPE, .as.type = ssa->type}, true;
  if (which == MEMBER_USES) {
    const uint64_t *bounds = e->first_user + ssa->mark;
    return *result = sequence(SHAPE_OPS, e->users + bounds[0], bounds[1] - bounds[0]), true;
  }
  if (which == MEMBER_DEFINING_OPERATION)
    return *result = (value){.kind = VALUE_MAYBE_OP, .as.op = weft_mlir_defining_op(ssa)}, true;
  return false;
}

bool evaluation_member(evaluation *e, const node *n, const value *of, value *result) {
  member which = (member)n->integer;
  if (of->kind == VALUE_OP && op_member(of->as.op, which, result)) return true;
  if (of->kind == VALUE_SSA && ssa_member(e, of->as.ssa, which, result)) return true;
  if (of->kind == VALUE_SIDE && which == MEMBER_OPERATIONS)
    return *result = sequence(SHAPE_OPS, of->as.side->ops, of->as.side->op_count), true;
  if (of->kind == VALUE_TYPE && which == MEMBER_KIND) {
    const char *kind = kind_of_type(e, of->as.type);
    return kind ? (*result = text_value(kind), true) : evaluation_no_memory(e);
  }
  const char *hint = of->kind == VALUE_MAYBE_OP ? "ask first whether it `matches some($name)`" : NULL;
  return evaluation_fault(e, n->at, hint, "%s has no `%s`", evaluation_kind_name(of->kind),
                          postcondition_member_name(which));
}

/* ---- attributes ----------------------------------------------------------------------------------------------- */

static bool attribute_value(evaluation *e, const weft_mlir_attribute *a, value *result);

static bool array_value(evaluation *e, const weft_mlir_attribute *a, value *result) {
  bool dense = a->kind == WEFT_MLIR_DENSE_ARRAY;
  uint64_t count = dense ? a->as.dense.elements : a->count;
  value *items = evaluation_pool_array(&e->pool, count, sizeof *items);
  if (!items) return evaluation_no_memory(e);
  for (uint64_t i = 0; i < count; i++) {
    if (dense)
      items[i] = (value){.kind = VALUE_INTEGER, .as.integer = weft_mlir_dense_integer(a, i)};
    else if (!attribute_value(e, a->as.items[i], &items[i]))
      return false;
  }
  *result = sequence(SHAPE_VALUES, items, count);
  return true;
}

/* Attributes that the language has values for become these; the others are compared as they are. */
static bool attribute_value(evaluation *e, const weft_mlir_attribute *a, value *result) {
  *result = (value){.kind = VALUE_ATTRIBUTE, .as.attribute = a};
  switch (a->kind) {
  case WEFT_MLIR_UNIT: *result = (value){.kind = VALUE_BOOL, .truth = true}; break;
  case WEFT_MLIR_INTEGER:
    if (weft_mlir_is_integer(a->type, 1))
      *result = (value){.kind = VALUE_BOOL, .truth = a->as.integer != 0};
    else
      *result = (value){.kind = VALUE_INTEGER, .as.integer = a->as.integer};
    break;
  case WEFT_MLIR_STRING:
    *result = (value){.kind = VALUE_TEXT, .as.text = a->as.string.data, .count = a->as.string.length};
    break;
  case WEFT_MLIR_TYPE: *result = (value){.kind = VALUE_TYPE, .as.type = a->as.type_value}; break;
  case WEFT_MLIR_SYMBOL: result->kind = VALUE_SYMBOL; break;
  case WEFT_MLIR_ARRAY: return array_value(e, a, result);
  case WEFT_MLIR_DENSE_ARRAY:
    if (a->type->kind == WEFT_MLIR_INTEGER_TYPE) return array_value(e, a, result);
    break;
  default: break;
  }
  return true;
}

static bool find_attribute(evaluation *e, const node *n, const value *of, const value *name,
                           const weft_mlir_attribute **found) {
  if (!evaluation_need(e, n->at, of, VALUE_OP) || !evaluation_need(e, n->at, name, VALUE_TEXT)) return false;
  *found = weft_mlir_attribute_of(of->as.op, weft_mlir_intern(e->context, name->as.text, name->count));
  return true;
}

bool evaluation_attribute(evaluation *e, const node *n, const value *of, const value *name, value *result) {
  const weft_mlir_attribute *found;
  if (!find_attribute(e, n, of, name, &found)) return false;
  if (!found)
    return evaluation_fault(e, n->at, "ask first whether it .has_attribute(...)", "%s has no attribute `%.*s`",
                            of->as.op->name->text, (int)weft_min_u64(name->count, 60), name->as.text);
  return attribute_value(e, found, result);
}

bool evaluation_has_attribute(evaluation *e, const node *n, const value *of, const value *name, value *result) {
  const weft_mlir_attribute *found;
  if (!find_attribute(e, n, of, name, &found)) return false;
  *result = (value){.kind = VALUE_BOOL, .truth = found != NULL};
  return true;
}

/* ---- segments ------------------------------------------------------------------------------------------------- */

static bool text_is(const value *text, const char *other) {
  return text->count == strlen(other) && memcmp(text->as.text, other, text->count) == 0;
}

/* The operands or results that the sizes before number `number` leave out and its own size takes. */
static bool cut(evaluation *e, const node *n, const value *whole, const value *sizes, uint64_t number, value *result) {
  uint64_t begin = 0, size = 0;
  for (uint64_t i = 0; i <= number; i++) {
    value one = evaluation_at(sizes, i);
    if (!evaluation_need(e, n->at, &one, VALUE_INTEGER)) return false;
    begin += size;
    size = (uint64_t)one.as.integer;
    if (one.as.integer < 0 || size > whole->count - begin)
      return evaluation_fault(e, n->at, NULL, "the segments take more than the %" PRIu64 " there are", whole->count);
  }
  *result = *whole;
  result->count = size;
  if (whole->shape == SHAPE_OPERANDS)
    result->as.elements = (weft_mlir_value *const *)whole->as.elements + begin;
  else
    result->as.elements = (const weft_mlir_value *)whole->as.elements + begin;
  return true;
}

bool evaluation_segment(evaluation *e, const node *n, const value *of, const value *name, const value *number,
                        value *result) {
  value sizes, whole;
  if (!evaluation_attribute(e, n, of, name, &sizes) || !evaluation_need(e, n->at, &sizes, VALUE_SEQUENCE) ||
      !evaluation_need(e, n->at, number, VALUE_INTEGER))
    return false;
  if (text_is(name, "operandSegmentSizes"))
    op_member(of->as.op, MEMBER_OPERANDS, &whole);
  else if (text_is(name, "resultSegmentSizes"))
    op_member(of->as.op, MEMBER_RESULTS, &whole);
  else
    return evaluation_fault(e, n->at, "operandSegmentSizes or resultSegmentSizes", "there are no such segments");
  if (number->as.integer < 0 || (uint64_t)number->as.integer >= sizes.count)
    return evaluation_fault(e, n->at, NULL, "segment %" PRId64 " is out of range: there are %" PRIu64,
                            number->as.integer, sizes.count);
  return cut(e, n, &whole, &sizes, (uint64_t)number->as.integer, result);
}

/* ---- symbols and nesting -------------------------------------------------------------------------------------- */

/* The ops called `name` directly inside any op of `outer`. */
static bool resolve_inside(evaluation *e, const node *n, const value *outer, const char *name, value *result) {
  uint64_t count = 0;
  for (int pass = 0; pass < 2; pass++) {
    weft_mlir_op **found = pass ? evaluation_pool_array(&e->pool, count, sizeof *found) : NULL;
    if (pass && !found) return evaluation_no_memory(e);
    count = 0;
    for (uint64_t i = 0; i < outer->count; i++) {
      weft_mlir_op *op = evaluation_at(outer, i).as.op;
      weft_mlir_block *block = op->region_count ? weft_mlir_op_region(op, 0)->first : NULL;
      for (op = block ? block->first : NULL; op; op = op->next) {
        if (!evaluation_step(e, n->at, 1)) return false;
        if (strcmp(weft_mlir_symbol_name(op), name) != 0) continue;
        if (pass) found[count] = op;
        count++;
      }
    }
    *result = sequence(SHAPE_OPS, found, count);
  }
  return true;
}

static value resolve_root(const side *s, const char *name, size_t length) {
  uint32_t number = length ? language_names_find(&s->symbols, name, length) : NAME_NONE;
  if (number == NAME_NONE) return sequence(SHAPE_OPS, NULL, 0);
  uint64_t begin = s->symbol_start[number];
  return sequence(SHAPE_OPS, s->symbol_ops + begin, s->symbol_start[number + 1] - begin);
}

bool evaluation_resolve(evaluation *e, const node *n, const value *of, const value *symbol, value *result) {
  if (!evaluation_need(e, n->at, of, VALUE_SIDE)) return false;
  if (symbol->kind == VALUE_TEXT) {
    *result = resolve_root(of->as.side, symbol->as.text, symbol->count);
    return true;
  }
  if (!evaluation_need(e, n->at, symbol, VALUE_SYMBOL)) return false;
  const weft_mlir_attribute *path = symbol->as.attribute;
  *result = resolve_root(of->as.side, path->as.path[0], strlen(path->as.path[0]));
  for (uint32_t i = 1; i < path->count; i++) {
    value outer = *result;
    if (!resolve_inside(e, n, &outer, path->as.path[i], result)) return false;
  }
  return true;
}

bool evaluation_contains(evaluation *e, const node *n, const value *outer, const value *inner, bool *result) {
  if (!evaluation_need(e, n->at, outer, VALUE_OP) || !evaluation_need(e, n->at, inner, VALUE_OP)) return false;
  *result = false;
  for (weft_mlir_op *op = weft_mlir_parent(inner->as.op); op && !*result; op = weft_mlir_parent(op)) {
    if (!evaluation_step(e, n->at, 1)) return false;
    *result = op == outer->as.op;
  }
  return true;
}
