/* Pointwise bodies, one position at a time. A branch that is not chosen is not run: it cannot fault. */
#include "interpret_private.h"

#include <math.h>
#include <string.h>

static double constant_of(const weft_body_node *node) {
  double value;
  memcpy(&value, &node->value, sizeof value);
  return value;
}

/* ---- integers -----------------------------------------------------------------------------------------------------
 */

typedef struct integer_run {
  const weft_body_node *nodes;
  const int64_t *operands;
  uint64_t position[2];
  const char **fault;
} integer_run;

static int64_t integer_fault(const integer_run *run, const char *what) {
  if (!*run->fault) *run->fault = what;
  return 0;
}

static int64_t floor_divide(const integer_run *run, int64_t a, int64_t b) {
  if (b == 0) return integer_fault(run, "a division by zero");
  if (a == INT64_MIN && b == -1) return integer_fault(run, "a quotient that leaves 64 bits");
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t integer_at(const integer_run *run, uint32_t index);

static bool integer_pred(const integer_run *run, const weft_pred *pred) {
  uint64_t at = run->position[pred->var == WEFT_VAR_GEN_COL];
  bool less = pred->operand_bound ? run->operands[pred->bound] > 0 && at < (uint64_t)run->operands[pred->bound]
                                  : at < pred->bound;
  return less != pred->ge;
}

static int64_t integer_binary(const integer_run *run, const weft_body_node *node) {
  int64_t a = integer_at(run, node->child[0]), b = integer_at(run, node->child[1]), result = 0;
  bool left = false;
  switch (node->kind) {
  case WEFT_BODY_ADD: left = __builtin_add_overflow(a, b, &result); break;
  case WEFT_BODY_SUB: left = __builtin_sub_overflow(a, b, &result); break;
  case WEFT_BODY_MUL: left = __builtin_mul_overflow(a, b, &result); break;
  case WEFT_BODY_MIN: return a < b ? a : b;
  case WEFT_BODY_MAX: return a > b ? a : b;
  case WEFT_BODY_FLOOR_DIV: return floor_divide(run, a, b);
  default: return integer_fault(run, "a node that integers do not have");
  }
  return left ? integer_fault(run, "an intermediate value that leaves 64 bits") : result;
}

static int64_t integer_at(const integer_run *run, uint32_t index) {
  const weft_body_node *node = &run->nodes[index];
  switch (node->kind) {
  case WEFT_BODY_OPERAND: return run->operands[node->value];
  case WEFT_BODY_CONST: return (int64_t)constant_of(node);
  case WEFT_BODY_SHR: return integer_at(run, node->child[0]) >> node->value;
  case WEFT_BODY_SELECT: return integer_at(run, node->child[integer_pred(run, &node->pred) ? 0 : 1]);
  case WEFT_BODY_VALUE_SELECT: return integer_at(run, node->child[integer_at(run, node->child[0]) != 0 ? 1 : 2]);
  default: return integer_binary(run, node);
  }
}

int64_t weft_body_integer(const weft_body *body, const int64_t *operands, uint64_t row, uint64_t col,
                          const char **fault) {
  const integer_run run = {body->nodes, operands, {row, col}, fault};
  return integer_at(&run, (uint32_t)body->node_count - 1);
}

/* ---- floats -------------------------------------------------------------------------------------------------------
 */

typedef struct float_run {
  const weft_body_node *nodes;
  const float *operands;
  uint64_t position[2];
  const char **fault;
} float_run;

static float float_at(const float_run *run, uint32_t index);

static bool float_pred(const float_run *run, const weft_pred *pred) {
  double at = (double)run->position[pred->var == WEFT_VAR_GEN_COL];
  if (!pred->operand_bound) return (run->position[pred->var == WEFT_VAR_GEN_COL] < pred->bound) != pred->ge;
  double bound = (double)run->operands[pred->bound];
  return pred->ge ? at >= bound : at < bound;
}

static float unary(const weft_body_node *node, float x) {
  switch (node->sfpu) {
  case WEFT_SFPU_EXP: return weft_expf(x);
  case WEFT_SFPU_RECIP: return weft_recipf(x);
  case WEFT_SFPU_RSQRT: return weft_rsqrtf(x, node->over, node->eps_nano);
  case WEFT_SFPU_SILU: return weft_siluf(x);
  case WEFT_SFPU_RELU: return weft_reluf(x);
  case WEFT_SFPU_LN: return weft_logf(x);
  case WEFT_SFPU_TANH: return weft_tanhf(x);
  case WEFT_SFPU_ERF: return weft_erff(x);
  default: return x;
  }
}

static float float_floor_divide(const float_run *run, float a, float b) {
  if (b == 0.0f) {
    if (!*run->fault) *run->fault = "a division by zero";
    return 0.0f;
  }
  float quotient = a / b;
  return floorf(quotient);
}

static float float_binary(const float_run *run, const weft_body_node *node) {
  float a = float_at(run, node->child[0]), b = float_at(run, node->child[1]);
  switch (node->kind) {
  case WEFT_BODY_ADD: return a + b;
  case WEFT_BODY_SUB: return a - b;
  case WEFT_BODY_MUL: return a * b;
  case WEFT_BODY_DIV: return a / b;
  case WEFT_BODY_MIN: return weft_minimum_f32(a, b);
  case WEFT_BODY_MAX: return weft_maximum_f32(a, b);
  default: return float_floor_divide(run, a, b);
  }
}

static float float_at(const float_run *run, uint32_t index) {
  const weft_body_node *node = &run->nodes[index];
  switch (node->kind) {
  case WEFT_BODY_OPERAND: return run->operands[node->value];
  case WEFT_BODY_CONST: return (float)constant_of(node);
  case WEFT_BODY_SHR: {
    int by = node->value > 4000 ? 4000 : (int)node->value;
    float scaled = ldexpf(float_at(run, node->child[0]), -by);
    return floorf(scaled);
  }
  case WEFT_BODY_UNARY: return unary(node, float_at(run, node->child[0]));
  case WEFT_BODY_SELECT: return float_at(run, node->child[float_pred(run, &node->pred) ? 0 : 1]);
  case WEFT_BODY_VALUE_SELECT: return float_at(run, node->child[float_at(run, node->child[0]) != 0.0f ? 1 : 2]);
  default: return float_binary(run, node);
  }
}

float weft_body_float(const weft_body *body, const float *operands, uint64_t row, uint64_t col, const char **fault) {
  const float_run run = {body->nodes, operands, {row, col}, fault};
  return float_at(&run, (uint32_t)body->node_count - 1);
}
