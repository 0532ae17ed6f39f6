/* Bodies of nodes over runs of elements. */
#include "body_private.h"

#include "weft/arithmetic.h"
#include "weft/ir.h"

#include <math.h>
#include <string.h>

enum { BLOCK = WEFT_BODY_BLOCK, MAX_NODES = 1024 };

static const uint8_t arity[] = {
#define ROW(identifier, name, operands) operands,
    WEFT_BODY_NODES(ROW)
#undef ROW
};

/* ---- the domain ---- */

static bool integral_constant(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value == floor(value) && fabs(value) < 0x1p53;
}

static bool integral_node(const weft_abi_node *node) {
  switch (node->kind) {
  case WEFT_BODY_CONST: return integral_constant(node->value);
  case WEFT_BODY_SHR: return node->value <= 63;
  case WEFT_BODY_UNARY:
  case WEFT_BODY_DIV: return false;
  default: return true;
  }
}

static bool is_integral(const weft_body_work *work) {
  for (uint32_t i = 0; i < work->operand_count; i++)
    if (weft_format_is_float(work->chip->slots[work->operands[i].tensor].format)) return false;
  for (uint32_t i = 0; i < work->node_count; i++)
    if (!integral_node(&work->nodes[i])) return false;
  return true;
}

/* ---- where a block's elements are ---- */

static const weft_slot *operand_at(const weft_body_run *at, uint64_t number, uint64_t *index, uint64_t *step) {
  const weft_abi_operand *operand = &at->work->operands[number];
  *index =
      (uint64_t)(operand->offset + (int64_t)at->row * operand->row_stride + (int64_t)at->col * operand->col_stride);
  *step = (uint64_t)operand->col_stride;
  return &at->work->chip->slots[operand->tensor];
}

static void node_fault(const weft_body_run *at, uint32_t i, const char *what) {
  if (at->doubtful) {
    *at->doubtful = true;
    return;
  }
  uint64_t col = at->work->folded ? 0 : at->col + i;
  weft_chip_fault_element(at->work->chip, at->work->out, at->row, col, what);
}

/* ---- positions ---- */

/* Whether the element is on the side of the bound that a Select's first value is for. */
static bool selects(const weft_body_run *at, const weft_abi_node *node, uint32_t i) {
  uint64_t position = node->var == WEFT_VAR_GEN_ROW ? at->row : at->col + i;
  if (!node->operand_bound) return (position < node->value) != (node->ge != 0);
  uint64_t index, step;
  const weft_slot *slot = operand_at(at, node->value, &index, &step);
  index += i * step;
  if (at->work->integral) {
    int64_t bound = weft_load_i64(slot->format, slot->data, index);
    return (bound > 0 && position < (uint64_t)bound) != (node->ge != 0);
  }
  float bound = weft_format_is_float(slot->format) ? weft_load_f32(slot->format, slot->data, index)
                                                   : (float)weft_load_i64(slot->format, slot->data, index);
  return node->ge ? (double)position >= (double)bound : (double)position < (double)bound;
}

/* ---- 64-bit integers ---- */

static int64_t floor_div(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

static void divide_i64(const weft_body_run *at, const int64_t *a, const int64_t *b, int64_t *out) {
  for (uint32_t i = 0; i < at->count; i++) {
    out[i] = 0;
    if (b[i] == 0)
      node_fault(at, i, "a division by zero");
    else if (a[i] == INT64_MIN && b[i] == -1)
      node_fault(at, i, "a quotient does not fit 64 bits");
    else
      out[i] = floor_div(a[i], b[i]);
  }
}

static void arithmetic_i64(const weft_body_run *at, int kind, const int64_t *a, const int64_t *b, int64_t *out) {
  for (uint32_t i = 0; i < at->count; i++) {
    bool wrong = kind == WEFT_BODY_ADD   ? __builtin_add_overflow(a[i], b[i], &out[i])
                 : kind == WEFT_BODY_SUB ? __builtin_sub_overflow(a[i], b[i], &out[i])
                                         : __builtin_mul_overflow(a[i], b[i], &out[i]);
    if (wrong) node_fault(at, i, "a value does not fit 64 bits");
  }
}

static void load_i64(const weft_body_run *at, uint64_t number, int64_t *out) {
  uint64_t index, step;
  const weft_slot *slot = operand_at(at, number, &index, &step);
  for (uint32_t i = 0; i < at->count; i++) out[i] = weft_load_i64(slot->format, slot->data, index + i * step);
}

static void node_i64(const weft_body_run *at, const weft_abi_node *node, int64_t (*values)[BLOCK], int64_t *out) {
  const int64_t *a = values[node->child[0]], *b = values[node->child[1]], *c = values[node->child[2]];
  double constant;
  switch (node->kind) {
  case WEFT_BODY_OPERAND: load_i64(at, node->value, out); break;
  case WEFT_BODY_CONST:
    memcpy(&constant, &node->value, sizeof constant);
    for (uint32_t i = 0; i < at->count; i++) out[i] = (int64_t)constant;
    break;
  case WEFT_BODY_MIN:
    for (uint32_t i = 0; i < at->count; i++) out[i] = a[i] < b[i] ? a[i] : b[i];
    break;
  case WEFT_BODY_MAX:
    for (uint32_t i = 0; i < at->count; i++) out[i] = a[i] > b[i] ? a[i] : b[i];
    break;
  case WEFT_BODY_SHR:
    for (uint32_t i = 0; i < at->count; i++) out[i] = a[i] >> node->value;
    break;
  case WEFT_BODY_FLOOR_DIV: divide_i64(at, a, b, out); break;
  case WEFT_BODY_VALUE_SELECT:
    for (uint32_t i = 0; i < at->count; i++) out[i] = a[i] ? b[i] : c[i];
    break;
  case WEFT_BODY_SELECT:
    for (uint32_t i = 0; i < at->count; i++) out[i] = selects(at, node, i) ? a[i] : b[i];
    break;
  default: arithmetic_i64(at, node->kind, a, b, out);
  }
}

/* ---- fp32 ---- */

static float double_bits_f32(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return (float)value;
}

static void load_f32(const weft_body_run *at, uint64_t number, float *out) {
  uint64_t index, step;
  const weft_slot *slot = operand_at(at, number, &index, &step);
  if (slot->format == WEFT_FP32 && step == 1)
    memcpy(out, (const float *)(const void *)slot->data + index, at->count * sizeof *out);
  else if (weft_format_is_float(slot->format))
    for (uint32_t i = 0; i < at->count; i++) out[i] = weft_load_f32(slot->format, slot->data, index + i * step);
  else
    for (uint32_t i = 0; i < at->count; i++) out[i] = (float)weft_load_i64(slot->format, slot->data, index + i * step);
}

static float unary_f32(const weft_abi_node *node, float x) {
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

static void node_f32(const weft_body_run *at, const weft_abi_node *node, float (*values)[BLOCK], float *out) {
  const float *a = values[node->child[0]], *b = values[node->child[1]], *c = values[node->child[2]];
  float constant = double_bits_f32(node->value);
  uint32_t count = at->count;
  switch (node->kind) {
  case WEFT_BODY_OPERAND: load_f32(at, node->value, out); break;
  case WEFT_BODY_CONST:
    for (uint32_t i = 0; i < count; i++) out[i] = constant;
    break;
  case WEFT_BODY_ADD:
    for (uint32_t i = 0; i < count; i++) out[i] = a[i] + b[i];
    break;
  case WEFT_BODY_SUB:
    for (uint32_t i = 0; i < count; i++) out[i] = a[i] - b[i];
    break;
  case WEFT_BODY_MUL:
    for (uint32_t i = 0; i < count; i++) out[i] = a[i] * b[i];
    break;
  case WEFT_BODY_DIV:
    for (uint32_t i = 0; i < count; i++) out[i] = a[i] / b[i];
    break;
  case WEFT_BODY_MIN:
    for (uint32_t i = 0; i < count; i++) out[i] = weft_inline_minimum_f32(a[i], b[i]);
    break;
  case WEFT_BODY_MAX:
    for (uint32_t i = 0; i < count; i++) out[i] = weft_inline_maximum_f32(a[i], b[i]);
    break;
  case WEFT_BODY_FLOOR_DIV:
    for (uint32_t i = 0; i < count; i++) {
      if (b[i] == 0) node_fault(at, i, "a division by zero");
      out[i] = b[i] == 0 ? 0 : floorf(a[i] / b[i]);
    }
    break;
  case WEFT_BODY_SHR:
    for (uint32_t i = 0; i < count; i++) out[i] = floorf(ldexpf(a[i], -(int)weft_min_u64(node->value, 1000)));
    break;
  case WEFT_BODY_VALUE_SELECT:
    for (uint32_t i = 0; i < count; i++) out[i] = a[i] != 0 ? b[i] : c[i];
    break;
  case WEFT_BODY_SELECT:
    for (uint32_t i = 0; i < count; i++) out[i] = selects(at, node, i) ? a[i] : b[i];
    break;
  default:
    for (uint32_t i = 0; i < count; i++) out[i] = unary_f32(node, a[i]);
  }
}

/* ---- runs ---- */

static void run_node(const weft_body_run *at, uint32_t n, unsigned char *scratch) {
  const weft_abi_node *node = &at->work->nodes[n];
  if (at->work->integral)
    node_i64(at, node, (int64_t(*)[BLOCK])(void *)scratch, ((int64_t(*)[BLOCK])(void *)scratch)[n]);
  else
    node_f32(at, node, (float(*)[BLOCK])(void *)scratch, ((float(*)[BLOCK])(void *)scratch)[n]);
}

static bool chooses(const weft_body_run *at, uint32_t n, const unsigned char *scratch) {
  return at->work->integral ? ((const int64_t(*)[BLOCK])(const void *)scratch)[n][0] != 0
                            : ((const float(*)[BLOCK])(const void *)scratch)[n][0] != 0;
}

/* One element, only what its value depends on: a branch that is not chosen cannot fault. */
static void run_chosen(const weft_body_run *at, uint32_t n, unsigned char *scratch) {
  const weft_abi_node *node = &at->work->nodes[n];
  uint32_t first = 0, end = arity[node->kind];
  if (node->kind == WEFT_BODY_VALUE_SELECT) {
    run_chosen(at, node->child[0], scratch);
    first = chooses(at, node->child[0], scratch) ? 1 : 2;
    end = first + 1;
  } else if (node->kind == WEFT_BODY_SELECT) {
    first = selects(at, node, 0) ? 0 : 1;
    end = first + 1;
  }
  for (uint32_t i = first; i < end; i++) run_chosen(at, node->child[i], scratch);
  run_node(at, n, scratch);
}

/* Where the values of the last node are. */
static unsigned char *result_of(const weft_body_work *work, unsigned char *scratch) {
  size_t bytes = work->integral ? sizeof(int64_t) : sizeof(float);
  return scratch + (uint64_t)(work->node_count - 1) * BLOCK * bytes;
}

/* Element by element, which only takes what is chosen. */
static void compute_singly(const weft_body_run *run, unsigned char *scratch) {
  const weft_body_work *work = run->work;
  unsigned char *result = result_of(work, scratch);
  unsigned char *values = scratch + (uint64_t)work->node_count * BLOCK * sizeof(int64_t);
  size_t bytes = work->integral ? sizeof(int64_t) : sizeof(float);
  for (uint32_t i = 0; i < run->count; i++) {
    weft_body_run one = {.work = work, .row = run->row, .col = run->col + i, .count = 1};
    run_chosen(&one, work->node_count - 1, scratch);
    memcpy(values + i * bytes, result, bytes);
  }
  memcpy(result, values, run->count * bytes);
}

uint64_t weft_body_scratch(const weft_body_work *work) {
  return ((uint64_t)work->node_count + 1) * BLOCK * sizeof(int64_t);
}

void *weft_body_compute(weft_body_run *run, unsigned char *scratch) {
  bool doubtful = false;
  run->doubtful = &doubtful;
  for (uint32_t n = 0; n < run->work->node_count; n++) run_node(run, n, scratch);
  run->doubtful = NULL;
  if (doubtful) compute_singly(run, scratch);
  return result_of(run->work, scratch);
}

/* ---- checks ---- */

static bool right_node(const weft_body_work *work, uint32_t n) {
  const weft_abi_node *node = &work->nodes[n];
  bool right = node->kind >= 0 && node->kind < WEFT_BODY_KIND_COUNT;
  if (right && node->kind == WEFT_BODY_SELECT)
    right = (node->var == WEFT_VAR_GEN_ROW || node->var == WEFT_VAR_GEN_COL) &&
            (!node->operand_bound || node->value < work->operand_count);
  if (right && node->kind == WEFT_BODY_OPERAND) right = node->value < work->operand_count;
  for (uint32_t i = 0; right && i < arity[node->kind]; i++) right = node->child[i] < n;
  return right;
}

static bool check_nodes(const weft_body_work *work) {
  bool right = work->node_count > 0 && work->node_count <= MAX_NODES;
  for (uint32_t n = 0; right && n < work->node_count; n++) right = right_node(work, n);
  if (!right)
    weft_chip_fault(work->chip, WEFT_INVALID, "generate the program again",
                    "a body has a node that cannot be run here");
  return right;
}

/* Whether every element an operand reads is in its tensor. */
static bool check_operand(weft_chip *chip, const weft_abi_operand *operand, uint64_t rows, uint64_t cols) {
  const weft_slot *slot = weft_chip_slot(chip, operand->tensor, "body");
  if (!slot) return false;
  if (rows == 0 || cols == 0) return true;
  __int128 reach = operand->offset, least = reach, most = reach;
  __int128 row = (__int128)operand->row_stride * (int64_t)(rows - 1);
  __int128 col = (__int128)operand->col_stride * (int64_t)(cols - 1);
  least += (row < 0 ? row : 0) + (col < 0 ? col : 0);
  most += (row > 0 ? row : 0) + (col > 0 ? col : 0);
  if (least >= 0 && most < (__int128)slot->tensor->rows * slot->tensor->cols) return true;
  weft_chip_fault(chip, WEFT_INVALID, "generate the program again", "an access map leaves '%s'", slot->tensor->name);
  return false;
}

bool weft_body_prepare(weft_body_work *work, uint64_t rows, uint64_t cols) {
  if (!check_nodes(work)) return false;
  for (uint32_t i = 0; i < work->operand_count; i++)
    if (!check_operand(work->chip, &work->operands[i], rows, cols)) return false;
  work->integral = is_integral(work);
  return true;
}
