/* Bodies of Generics at one position. Every node is computed; a branch that is not chosen cannot fault, because a fault
 * travels with its value. */
#include "evaluate_private.h"

#include <math.h>
#include <string.h>

static double constant_of(const weft_body_node *node) {
  double value;
  memcpy(&value, &node->value, sizeof value);
  return value;
}

bool body_is_integral(const weft_body *body) {
  for (uint64_t i = 0; i < body->node_count; i++) {
    const weft_body_node *node = &body->nodes[i];
    if (node->kind == WEFT_BODY_UNARY || node->kind == WEFT_BODY_DIV) return false;
    if (node->kind == WEFT_BODY_SHR && node->value > 63) return false;
    if (node->kind != WEFT_BODY_CONST) continue;
    double value = constant_of(node);
    if (!(fabs(value) < 0x1p53) || value != trunc(value)) return false;
  }
  return true;
}

typedef struct body_run {
  machine *m;
  const weft_op *op;
  const body_point *point;
  bool integer;
  body_value *values;
} body_run;

static uint32_t fault_of(const body_run *run, const char *what) { return machine_element_fault(run->m, run->op, what); }

/* ---- predicates ---- */

static uint64_t position_of(const body_point *point, uint32_t var) {
  for (uint64_t i = 0; i < point->var_count; i++)
    if (point->vars[i] == var) return point->at[i];
  return 0;
}

static bool holds(const body_run *run, const weft_pred *pred, uint32_t *fault) {
  uint64_t at = position_of(run->point, pred->var);
  if (!pred->operand_bound) return (at < pred->bound) != pred->ge;
  if (pred->bound >= run->point->operand_count) {
    *fault = fault_of(run, "a predicate on an operand that does not exist");
    return false;
  }
  const body_value *bound = &run->point->operands[pred->bound];
  *fault = bound->fault;
  if (run->integer) return (bound->i > 0 && at < (uint64_t)bound->i) != pred->ge;
  double limit = (double)bound->f;
  return pred->ge ? (double)at >= limit : (double)at < limit;
}

/* ---- integers ---- */

static body_value whole(int64_t i) { return (body_value){.i = i}; }

static body_value floor_divide(const body_run *run, int64_t a, int64_t b) {
  if (b == 0) return (body_value){.fault = fault_of(run, "a division by zero")};
  if (a == INT64_MIN && b == -1) return (body_value){.fault = fault_of(run, "a quotient that leaves 64 bits")};
  return whole(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}

static body_value integer_node(const body_run *run, const weft_body_node *node, const body_value *a,
                               const body_value *b) {
  body_value result = {0};
  bool overflow = false;
  switch (node->kind) {
  case WEFT_BODY_CONST: return whole((int64_t)constant_of(node));
  case WEFT_BODY_SHR: return whole(a->i >> node->value);
  case WEFT_BODY_MIN: return whole(a->i < b->i ? a->i : b->i);
  case WEFT_BODY_MAX: return whole(a->i > b->i ? a->i : b->i);
  case WEFT_BODY_FLOOR_DIV: return floor_divide(run, a->i, b->i);
  case WEFT_BODY_ADD: overflow = __builtin_add_overflow(a->i, b->i, &result.i); break;
  case WEFT_BODY_SUB: overflow = __builtin_sub_overflow(a->i, b->i, &result.i); break;
  case WEFT_BODY_MUL: overflow = __builtin_mul_overflow(a->i, b->i, &result.i); break;
  default: break;
  }
  if (overflow) result.fault = fault_of(run, "an intermediate value that leaves 64 bits");
  return result;
}

/* ---- floats ---- */

static body_value real(float f) { return (body_value){.f = f}; }

static float unary(const weft_body_node *node, float x) {
  switch (node->sfpu) {
  case WEFT_SFPU_EXP: return weft_expf(x);
  case WEFT_SFPU_RECIP: return weft_recipf(x);
  case WEFT_SFPU_RSQRT: return weft_rsqrtf(x, node->over, node->eps_nano);
  case WEFT_SFPU_SILU: return weft_siluf(x);
  case WEFT_SFPU_RELU: return weft_reluf(x);
  case WEFT_SFPU_LN: return weft_logf(x);
  case WEFT_SFPU_TANH: return weft_tanhf(x);
  default: return weft_erff(x);
  }
}

static body_value shift_down(const body_value *a, uint64_t by) {
  float scaled = ldexpf(a->f, by > 4000 ? -4000 : -(int)by);
  return real(floorf(scaled));
}

static body_value float_node(const body_run *run, const weft_body_node *node, const body_value *a,
                             const body_value *b) {
  switch (node->kind) {
  case WEFT_BODY_CONST: return real((float)constant_of(node));
  case WEFT_BODY_SHR: return shift_down(a, node->value);
  case WEFT_BODY_UNARY: return real(unary(node, a->f));
  case WEFT_BODY_ADD: return real(a->f + b->f);
  case WEFT_BODY_SUB: return real(a->f - b->f);
  case WEFT_BODY_MUL: return real(a->f * b->f);
  case WEFT_BODY_DIV: return real(a->f / b->f);
  case WEFT_BODY_MIN: return real(weft_minimum_f32(a->f, b->f));
  case WEFT_BODY_MAX: return real(weft_maximum_f32(a->f, b->f));
  default: break;
  }
  if (b->f == 0.0f) return (body_value){.fault = fault_of(run, "a division by zero")};
  float quotient = a->f / b->f;
  return real(floorf(quotient));
}

/* ---- one node after the other ---- */

static body_value choose(const body_run *run, const weft_body_node *node) {
  uint32_t fault = 0;
  bool first;
  uint32_t then = node->child[0], otherwise = node->child[1];
  if (node->kind == WEFT_BODY_SELECT) {
    first = holds(run, &node->pred, &fault);
  } else {
    const body_value *condition = &run->values[node->child[0]];
    fault = condition->fault;
    first = run->integer ? condition->i != 0 : condition->f != 0.0f;
    then = node->child[1];
    otherwise = node->child[2];
  }
  body_value chosen = run->values[first ? then : otherwise];
  if (fault) chosen.fault = fault;
  return chosen;
}

static body_value operand(const body_run *run, const weft_body_node *node) {
  if (node->value < run->point->operand_count) return run->point->operands[node->value];
  return (body_value){.fault = fault_of(run, "an operand that does not exist")};
}

body_value body_evaluate(machine *m, const weft_op *op, const weft_body *body, bool integer, const body_point *point,
                         body_value *values) {
  body_run run = {m, op, point, integer, values};
  static const body_value nothing = {0};
  for (uint64_t i = 0; i < body->node_count; i++) {
    const weft_body_node *node = &body->nodes[i];
    bool binary = node->kind != WEFT_BODY_SHR && node->kind != WEFT_BODY_UNARY && node->kind != WEFT_BODY_CONST;
    if (node->kind == WEFT_BODY_OPERAND) {
      values[i] = operand(&run, node);
      continue;
    }
    if (node->kind == WEFT_BODY_SELECT || node->kind == WEFT_BODY_VALUE_SELECT) {
      values[i] = choose(&run, node);
      continue;
    }
    const body_value *a = node->kind == WEFT_BODY_CONST ? &nothing : &values[node->child[0]];
    const body_value *b = binary ? &values[node->child[1]] : &nothing;
    values[i] = integer ? integer_node(&run, node, a, b) : float_node(&run, node, a, b);
    if (a->fault)
      values[i].fault = a->fault;
    else if (b->fault)
      values[i].fault = b->fault;
  }
  return body->node_count ? values[body->node_count - 1] : nothing;
}
