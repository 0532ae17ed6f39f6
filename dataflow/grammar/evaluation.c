/* Values of a postcondition's expressions, operands from left to right. An expression without a value (an index out of
 * range, a member that is not there) ends the evaluation of its statement: it is neither true nor false. */
#include "evaluation_private.h"

#include <inttypes.h>
#include <stdio.h>

bool evaluation_fault(evaluation *e, position at, const char *hint, const char *format, ...) {
  if (e->failed || e->status) return false;
  e->failed = true;
  e->fault_at = at;
  e->fault_hint = hint;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(e->fault, sizeof e->fault, format, arguments);
  va_end(arguments);
  return false;
}

bool evaluation_no_memory(evaluation *e) {
  if (!e->status) e->status = weft_error_memory(e->diag);
  return false;
}

bool evaluation_step(evaluation *e, position at, uint64_t amount) {
  e->steps += amount;
  return e->steps <= e->step_limit || evaluation_fault(e, at, "a larger number of steps can be allowed",
                                                       "more than %" PRIu64 " steps of evaluation", e->step_limit);
}

bool evaluation_need(evaluation *e, position at, const value *v, uint8_t kind) {
  return v->kind == kind ||
         evaluation_fault(e, at, v->kind == VALUE_MAYBE_OP ? "ask first whether it `matches some($name)`" : NULL,
                          "%s is needed here, and this is %s", evaluation_kind_name(kind),
                          evaluation_kind_name(v->kind));
}

static value truth(bool holds) { return (value){.kind = VALUE_BOOL, .truth = holds}; }

bool evaluation_truth(evaluation *e, const node *n, bool *result) {
  value v;
  if (!evaluation_value(e, n, &v) || !evaluation_need(e, n->at, &v, VALUE_BOOL)) return false;
  *result = v.truth;
  return true;
}

bool evaluation_elements(evaluation *e, const node *n, value *result) {
  if (!evaluation_value(e, n, result)) return false;
  return result->kind == VALUE_SEQUENCE || result->kind == VALUE_SET ||
         evaluation_fault(e, n->at, NULL, "%s has no elements", evaluation_kind_name(result->kind));
}

static bool evaluate_integer(evaluation *e, const node *n, int64_t *result) {
  value v;
  if (!evaluation_value(e, n, &v) || !evaluation_need(e, n->at, &v, VALUE_INTEGER)) return false;
  *result = v.as.integer;
  return true;
}

/* ---- numbers -------------------------------------------------------------------------------------------------- */

static bool integer(value *result, int64_t number) {
  *result = (value){.kind = VALUE_INTEGER, .as.integer = number};
  return true;
}

static bool evaluate_sum(evaluation *e, const node *n, value *result) {
  value elements;
  int64_t total = 0;
  if (!evaluation_elements(e, n->parts[0], &elements) || !evaluation_step(e, n->at, elements.count)) return false;
  for (uint64_t i = 0; i < elements.count; i++) {
    value one = evaluation_at(&elements, i);
    if (!evaluation_need(e, n->at, &one, VALUE_INTEGER)) return false;
    if (__builtin_add_overflow(total, one.as.integer, &total))
      return evaluation_fault(e, n->at, NULL, "the sum does not fit in 64 bits");
  }
  return integer(result, total);
}

static bool evaluate_arithmetic(evaluation *e, const node *n, value *result) {
  int64_t a, b, number;
  if (!evaluate_integer(e, n->parts[0], &a) || !evaluate_integer(e, n->parts[1], &b)) return false;
  bool left = n->kind == NODE_ADD ? __builtin_add_overflow(a, b, &number) : __builtin_sub_overflow(a, b, &number);
  if (left) return evaluation_fault(e, n->at, NULL, "the result does not fit in 64 bits");
  return integer(result, number);
}

/* ---- elements ------------------------------------------------------------------------------------------------- */

static bool evaluate_index(evaluation *e, const node *n, value *result) {
  value elements;
  int64_t index;
  if (!evaluation_elements(e, n->parts[0], &elements) || !evaluate_integer(e, n->parts[1], &index)) return false;
  if (index < 0 || (uint64_t)index >= elements.count)
    return evaluation_fault(e, n->at, NULL, "index %" PRId64 " is out of range: there are %" PRIu64, index,
                            elements.count);
  *result = evaluation_at(&elements, (uint64_t)index);
  return true;
}

static const void *element_address(const value *sequence, uint64_t index) {
  switch ((sequence_shape)sequence->shape) {
  case SHAPE_OPS: return (weft_mlir_op *const *)sequence->as.elements + index;
  case SHAPE_OPERANDS: return (weft_mlir_value *const *)sequence->as.elements + index;
  case SHAPE_RESULTS: return (const weft_mlir_value *)sequence->as.elements + index;
  case SHAPE_VALUES: break;
  }
  return (const value *)sequence->as.elements + index;
}

static bool evaluate_drop(evaluation *e, const node *n, value *result) {
  value elements;
  int64_t dropped;
  if (!evaluation_elements(e, n->parts[0], &elements) || !evaluation_need(e, n->at, &elements, VALUE_SEQUENCE) ||
      !evaluate_integer(e, n->parts[1], &dropped))
    return false;
  if (dropped < 0 || (uint64_t)dropped > elements.count)
    return evaluation_fault(e, n->at, NULL, "%" PRId64 " cannot be dropped: there are %" PRIu64, dropped,
                            elements.count);
  *result = elements;
  result->count -= (uint64_t)dropped;
  if (dropped) result->as.elements = element_address(&elements, (uint64_t)dropped);
  return true;
}

/* ---- comparisons ---------------------------------------------------------------------------------------------- */

static bool comparable(const value *a, const value *b) {
  return a->kind == b->kind || (a->kind == VALUE_TEXT && b->kind == VALUE_SYMBOL) ||
         (a->kind == VALUE_SYMBOL && b->kind == VALUE_TEXT);
}

static bool compare(evaluation *e, const node *n, const value *a, const value *b, bool *result) {
  if (n->kind == NODE_EQUAL || n->kind == NODE_UNEQUAL) {
    if (!comparable(a, b))
      return evaluation_fault(e, n->at, NULL, "%s cannot equal %s", evaluation_kind_name(a->kind),
                              evaluation_kind_name(b->kind));
    *result = evaluation_equal(a, b) == (n->kind == NODE_EQUAL);
    return true;
  }
  if (!evaluation_need(e, n->at, a, VALUE_INTEGER) || !evaluation_need(e, n->at, b, VALUE_INTEGER)) return false;
  int64_t x = a->as.integer, y = b->as.integer;
  *result = n->kind == NODE_LESS ? x < y : n->kind == NODE_AT_MOST ? x <= y : n->kind == NODE_GREATER ? x > y : x >= y;
  return true;
}

static bool evaluate_comparison(evaluation *e, const node *n, value *result) {
  value a, b;
  bool holds;
  if (!evaluation_value(e, n->parts[0], &a) || !evaluation_value(e, n->parts[1], &b)) return false;
  if (n->kind == NODE_IN) {
    if (b.kind != VALUE_SEQUENCE && b.kind != VALUE_SET)
      return evaluation_fault(e, n->parts[1]->at, NULL, "%s has no elements", evaluation_kind_name(b.kind));
    if (!evaluation_step(e, n->at, b.kind == VALUE_SEQUENCE ? b.count : 1)) return false;
    holds = evaluation_in(&b, &a);
  } else if (n->kind == NODE_CONTAINS) {
    if (!evaluation_contains(e, n, &a, &b, &holds)) return false;
  } else if (!compare(e, n, &a, &b, &holds)) {
    return false;
  }
  *result = truth(holds);
  return true;
}

/* ---- logic ---------------------------------------------------------------------------------------------------- */

static bool evaluate_logic(evaluation *e, const node *n, value *result) {
  bool first, second;
  if (!evaluation_truth(e, n->parts[0], &first)) return false;
  bool decided = n->kind == NODE_OR ? first : !first; /* the second operand cannot change it */
  if (decided) return *result = truth(n->kind != NODE_AND), true;
  if (!evaluation_truth(e, n->parts[1], &second)) return false;
  *result = truth(second);
  return true;
}

static bool evaluate_not(evaluation *e, const node *n, value *result) {
  bool inner;
  if (!evaluation_truth(e, n->parts[0], &inner)) return false;
  *result = truth(!inner);
  return true;
}

static bool evaluate_matches(evaluation *e, const node *n, value *result) {
  value v;
  if (!evaluation_value(e, n->parts[0], &v) || !evaluation_need(e, n->at, &v, VALUE_MAYBE_OP)) return false;
  bool present = v.as.op != NULL;
  if (n->kind == NODE_MATCHES_SOME && present) e->slots[n->slot] = (value){.kind = VALUE_OP, .as.op = v.as.op};
  *result = truth(present == (n->kind == NODE_MATCHES_SOME));
  return true;
}

static bool evaluate_quantified(evaluation *e, const node *n, value *result) {
  bool holds;
  if (!evaluation_quantifier(e, n, &holds)) return false;
  *result = truth(holds);
  return true;
}

/* ---- the rest ------------------------------------------------------------------------------------------------- */

static bool evaluate_access(evaluation *e, const node *n, value *result) {
  value parts[3];
  for (uint32_t i = 0; i < n->count; i++)
    if (!evaluation_value(e, n->parts[i], &parts[i])) return false;
  switch (n->kind) {
  case NODE_MEMBER: return evaluation_member(e, n, &parts[0], result);
  case NODE_ATTRIBUTE: return evaluation_attribute(e, n, &parts[0], &parts[1], result);
  case NODE_HAS_ATTRIBUTE: return evaluation_has_attribute(e, n, &parts[0], &parts[1], result);
  case NODE_SEGMENT: return evaluation_segment(e, n, &parts[0], &parts[1], &parts[2], result);
  default: return evaluation_resolve(e, n, &parts[0], &parts[1], result);
  }
}

static bool evaluate_cardinality(evaluation *e, const node *n, value *result) {
  value elements;
  return evaluation_elements(e, n->parts[0], &elements) && integer(result, (int64_t)elements.count);
}

bool evaluation_value(evaluation *e, const node *n, value *result) {
  if (!evaluation_step(e, n->at, 1)) return false;
  switch (n->kind) {
  case NODE_INTEGER: return integer(result, n->integer);
  case NODE_TEXT: *result = (value){.kind = VALUE_TEXT, .as.text = n->text, .count = n->length}; return true;
  case NODE_BOOL: *result = truth(n->integer != 0); return true;
  case NODE_TYPE: *result = (value){.kind = VALUE_TYPE, .as.type = e->types[n->integer]}; return true;
  case NODE_VARIABLE: *result = e->slots[n->slot]; return true;
  case NODE_SIDE: *result = (value){.kind = VALUE_SIDE, .as.side = &e->sides[n->integer]}; return true;
  case NODE_MEMBER:
  case NODE_ATTRIBUTE:
  case NODE_HAS_ATTRIBUTE:
  case NODE_SEGMENT:
  case NODE_RESOLVE: return evaluate_access(e, n, result);
  case NODE_INDEX: return evaluate_index(e, n, result);
  case NODE_DROP: return evaluate_drop(e, n, result);
  case NODE_CARDINALITY: return evaluate_cardinality(e, n, result);
  case NODE_SUM: return evaluate_sum(e, n, result);
  case NODE_SEQ:
  case NODE_SET: return evaluation_comprehension(e, n, result);
  case NODE_EXISTS:
  case NODE_NONE: return evaluate_quantified(e, n, result);
  case NODE_NOT: return evaluate_not(e, n, result);
  case NODE_AND:
  case NODE_OR:
  case NODE_IMPLIES: return evaluate_logic(e, n, result);
  case NODE_MATCHES_SOME:
  case NODE_MATCHES_NONE: return evaluate_matches(e, n, result);
  case NODE_ADD:
  case NODE_SUBTRACT: return evaluate_arithmetic(e, n, result);
  default: return evaluate_comparison(e, n, result);
  }
}
