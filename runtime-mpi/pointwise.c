/* weft_pointwise: a body of nodes over blocks of elements, node by node, so that each node is one plain loop. */
#include "epilogue_private.h"

#include "weft/arithmetic.h"
#include "weft/ir.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 256, MAX_NODES = 1024 };

static const uint8_t arity[] = {
#define ROW(identifier, name, operands) operands,
    WEFT_BODY_NODES(ROW)
#undef ROW
};

typedef struct body_work {
  weft_chip *chip;
  const weft_abi_pointwise *pointwise;
  weft_slot *out;
  weft_epilogue store; /* without ops: stores, and says what does not fit */
  bool integral;
  unsigned char *scratch;
  uint64_t scratch_bytes, parts;
} body_work;

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

static bool is_integral(const body_work *work) {
  if (weft_format_is_float(work->out->format)) return false;
  for (uint32_t i = 0; i < work->pointwise->operand_count; i++)
    if (weft_format_is_float(work->chip->slots[work->pointwise->operands[i].tensor].format)) return false;
  for (uint32_t i = 0; i < work->pointwise->node_count; i++)
    if (!integral_node(&work->pointwise->nodes[i])) return false;
  return true;
}

/* ---- where a block's elements are ---- */

typedef struct block {
  const body_work *work;
  uint64_t row, col;
  uint32_t count;
  bool *doubtful; /* set where a node would fault, which only counts if its value is chosen; NULL: report */
} block;

static const weft_slot *operand_at(const block *at, uint64_t number, uint64_t *index, uint64_t *step) {
  const weft_abi_operand *operand = &at->work->pointwise->operands[number];
  *index =
      (uint64_t)(operand->offset + (int64_t)at->row * operand->row_stride + (int64_t)at->col * operand->col_stride);
  *step = (uint64_t)operand->col_stride;
  return &at->work->chip->slots[operand->tensor];
}

static void node_fault(const block *at, uint32_t i, const char *what) {
  if (at->doubtful) {
    *at->doubtful = true;
    return;
  }
  weft_chip_fault_element(at->work->chip, at->work->pointwise->out, at->row, at->col + i, what);
}

/* ---- 64-bit integers ---- */

static int64_t floor_div(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

static void divide_i64(const block *at, const int64_t *a, const int64_t *b, int64_t *out) {
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

static void arithmetic_i64(const block *at, int kind, const int64_t *a, const int64_t *b, int64_t *out) {
  for (uint32_t i = 0; i < at->count; i++) {
    bool wrong = kind == WEFT_BODY_ADD   ? __builtin_add_overflow(a[i], b[i], &out[i])
                 : kind == WEFT_BODY_SUB ? __builtin_sub_overflow(a[i], b[i], &out[i])
                                         : __builtin_mul_overflow(a[i], b[i], &out[i]);
    if (wrong) node_fault(at, i, "a value does not fit 64 bits");
  }
}

static void load_i64(const block *at, uint64_t number, int64_t *out) {
  uint64_t index, step;
  const weft_slot *slot = operand_at(at, number, &index, &step);
  for (uint32_t i = 0; i < at->count; i++) out[i] = weft_load_i64(slot->format, slot->data, index + i * step);
}

static void node_i64(const block *at, const weft_abi_node *node, int64_t (*values)[BLOCK], int64_t *out) {
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
  default: arithmetic_i64(at, node->kind, a, b, out);
  }
}

/* ---- fp32 ---- */

static float double_bits_f32(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return (float)value;
}

static void load_f32(const block *at, uint64_t number, float *out) {
  uint64_t index, step;
  const weft_slot *slot = operand_at(at, number, &index, &step);
  if (weft_format_is_float(slot->format))
    for (uint32_t i = 0; i < at->count; i++) out[i] = weft_load_f32(slot->format, slot->data, index + i * step);
  else
    for (uint32_t i = 0; i < at->count; i++) out[i] = (float)weft_load_i64(slot->format, slot->data, index + i * step);
}

static float unary_f32(const weft_abi_node *node, float x) {
  switch (node->sfpu) {
  case WEFT_SFPU_EXP: return weft_expf(x);
  case WEFT_SFPU_RECIP: return 1.0f / x;
  case WEFT_SFPU_RSQRT: return 1.0f / sqrtf(x / (float)node->over + (float)((double)node->eps_nano / 1e9));
  case WEFT_SFPU_SILU: return x / (1.0f + weft_expf(-x));
  case WEFT_SFPU_RELU: return weft_inline_maximum_f32(x, 0.0f);
  case WEFT_SFPU_LN: return weft_logf(x);
  case WEFT_SFPU_TANH: return weft_tanhf(x);
  default: return weft_erff(x);
  }
}

static void node_f32(const block *at, const weft_abi_node *node, float (*values)[BLOCK], float *out) {
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
  default:
    for (uint32_t i = 0; i < count; i++) out[i] = unary_f32(node, a[i]);
  }
}

/* A float result stored in an integer format must be an integer that fits. */
static void store_f32_as_i64(const block *at, const float *values) {
  int64_t integers[BLOCK];
  for (uint32_t i = 0; i < at->count; i++) {
    bool fits = values[i] >= -0x1p63f && values[i] < 0x1p63f && values[i] == floorf(values[i]);
    if (!fits) node_fault(at, i, "a float that is no 64-bit integer is to be stored as one");
    integers[i] = fits ? (int64_t)values[i] : 0;
  }
  weft_epilogue_row_i64(&at->work->store, at->row, at->col, at->count, integers);
}

/* ---- blocks ---- */

static void run_node(const block *at, uint32_t n, unsigned char *scratch) {
  const weft_abi_node *node = &at->work->pointwise->nodes[n];
  if (at->work->integral)
    node_i64(at, node, (int64_t(*)[BLOCK])(void *)scratch, ((int64_t(*)[BLOCK])(void *)scratch)[n]);
  else
    node_f32(at, node, (float(*)[BLOCK])(void *)scratch, ((float(*)[BLOCK])(void *)scratch)[n]);
}

static bool chooses(const block *at, uint32_t n, const unsigned char *scratch) {
  return at->work->integral ? ((const int64_t(*)[BLOCK])(const void *)scratch)[n][0] != 0
                            : ((const float(*)[BLOCK])(const void *)scratch)[n][0] != 0;
}

/* One element, only what its value depends on: a branch that is not chosen cannot fault. */
static void run_chosen(const block *at, uint32_t n, unsigned char *scratch) {
  const weft_abi_node *node = &at->work->pointwise->nodes[n];
  uint32_t first = 0, end = arity[node->kind];
  if (node->kind == WEFT_BODY_VALUE_SELECT) {
    run_chosen(at, node->child[0], scratch);
    first = chooses(at, node->child[0], scratch) ? 1 : 2;
    end = first + 1;
  }
  for (uint32_t i = first; i < end; i++) run_chosen(at, node->child[i], scratch);
  run_node(at, n, scratch);
}

static void store_block(const block *at, unsigned char *scratch) {
  uint32_t last = at->work->pointwise->node_count - 1;
  if (at->work->integral)
    weft_epilogue_row_i64(&at->work->store, at->row, at->col, at->count, ((int64_t(*)[BLOCK])(void *)scratch)[last]);
  else if (weft_format_is_float(at->work->out->format))
    weft_epilogue_row_f32(&at->work->store, at->row, at->col, at->count, ((float(*)[BLOCK])(void *)scratch)[last]);
  else
    store_f32_as_i64(at, ((float(*)[BLOCK])(void *)scratch)[last]);
}

static void run_block(block *at, unsigned char *scratch) {
  bool doubtful = false;
  at->doubtful = &doubtful;
  for (uint32_t n = 0; n < at->work->pointwise->node_count; n++) run_node(at, n, scratch);
  at->doubtful = NULL;
  if (!doubtful) {
    store_block(at, scratch);
    return;
  }
  for (uint32_t i = 0; i < at->count; i++) {
    block one = {.work = at->work, .row = at->row, .col = at->col + i, .count = 1};
    run_chosen(&one, at->work->pointwise->node_count - 1, scratch);
    store_block(&one, scratch);
  }
}

static void run_part(void *context, uint64_t part) {
  const body_work *work = context;
  unsigned char *scratch = work->scratch + part * work->scratch_bytes;
  uint64_t cols = work->out->tensor->cols, blocks = weft_ceil_div(cols, BLOCK);
  uint64_t all = work->out->tensor->rows * blocks;
  for (uint64_t i = all * part / work->parts; i < all * (part + 1) / work->parts; i++) {
    block at = {.work = work, .row = i / blocks, .col = i % blocks * BLOCK};
    at.count = (uint32_t)weft_min_u64(BLOCK, cols - at.col);
    run_block(&at, scratch);
  }
}

/* ---- checks ---- */

static bool check_nodes(weft_chip *chip, const weft_abi_pointwise *pointwise) {
  bool right = pointwise->node_count > 0 && pointwise->node_count <= MAX_NODES;
  for (uint32_t n = 0; right && n < pointwise->node_count; n++) {
    const weft_abi_node *node = &pointwise->nodes[n];
    right = node->kind >= 0 && node->kind < WEFT_BODY_KIND_COUNT && node->kind != WEFT_BODY_SELECT &&
            (node->kind != WEFT_BODY_OPERAND || node->value < pointwise->operand_count);
    for (uint32_t i = 0; right && i < arity[node->kind]; i++) right = node->child[i] < n;
  }
  if (!right)
    weft_chip_fault(chip, WEFT_INVALID, "generate the program again", "a body has a node that cannot be run here");
  return right;
}

/* Whether every element an operand reads is in its tensor. */
static bool check_operand(weft_chip *chip, const weft_abi_operand *operand, const weft_slot *out) {
  const weft_slot *slot = weft_chip_slot(chip, operand->tensor, "pointwise");
  if (!slot) return false;
  if (out->tensor->rows == 0 || out->tensor->cols == 0) return true;
  __int128 reach = operand->offset, least = reach, most = reach;
  __int128 row = (__int128)operand->row_stride * (int64_t)(out->tensor->rows - 1);
  __int128 col = (__int128)operand->col_stride * (int64_t)(out->tensor->cols - 1);
  least += (row < 0 ? row : 0) + (col < 0 ? col : 0);
  most += (row > 0 ? row : 0) + (col > 0 ? col : 0);
  if (least >= 0 && most < (__int128)slot->tensor->rows * slot->tensor->cols) return true;
  weft_chip_fault(chip, WEFT_INVALID, "generate the program again", "an access map leaves '%s'", slot->tensor->name);
  return false;
}

void weft_pointwise(weft_chip *chip, const weft_abi_pointwise *pointwise) {
  body_work work = {.chip = chip, .pointwise = pointwise};
  work.out = weft_chip_slot(chip, pointwise->out, "pointwise");
  if (!work.out || !check_nodes(chip, pointwise)) return;
  for (uint32_t i = 0; i < pointwise->operand_count; i++)
    if (!check_operand(chip, &pointwise->operands[i], work.out)) return;
  const weft_abi_tensor *out = work.out->tensor;
  if (out->rows == 0 || out->cols == 0) return;
  work.integral = is_integral(&work);
  bool floats = weft_format_is_float(work.out->format);
  if (!weft_epilogue_prepare(chip, NULL, 0, floats, pointwise->out, out->cols, &work.store)) return;
  work.parts = weft_max_u64(1, weft_min_u64((uint64_t)chip->threads, out->rows * out->cols / 4096));
  work.scratch_bytes = pointwise->node_count * BLOCK * sizeof(int64_t);
  work.scratch = weft_chip_scratch(chip, WEFT_SCRATCH_THREADS, work.parts * work.scratch_bytes);
  if (work.scratch) weft_parallel_for(work.parts, chip->threads, run_part, &work);
}
