#include "programs.h"

#include "weft/ir.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a section function runs: its parameter holds the address of one of these. */
typedef struct test_section {
  const weft_abi_product *products;
  uint32_t product_count;
  const weft_abi_pointwise *pointwise;
  const weft_abi_copy *copies;
  uint32_t copy_count;
} test_section;

enum { SECTION_PARAMETERS = 4, MAX_TENSORS = 128, MAX_STEPS = 16, MAX_PARAMETERS = 4096 };

static void run_section(weft_chip *chip, int64_t address) {
  const test_section *section = (const test_section *)(uintptr_t)address;
  for (uint32_t i = 0; i < section->product_count; i++) weft_product(chip, &section->products[i]);
  if (section->pointwise) weft_pointwise(chip, section->pointwise);
  if (section->copy_count) weft_copy(chip, section->copies, section->copy_count);
}
static void section_0(weft_chip *chip, const int64_t *p, const int64_t *s) {
  (void)s;
  run_section(chip, p[0]);
}
static void section_1(weft_chip *chip, const int64_t *p, const int64_t *s) {
  (void)s;
  run_section(chip, p[1]);
}
static void section_2(weft_chip *chip, const int64_t *p, const int64_t *s) {
  (void)s;
  run_section(chip, p[2]);
}
static void (*const sections[])(weft_chip *, const int64_t *, const int64_t *) = {section_0, section_1, section_2};

/* One class under construction: one chip each, so that nothing is shared between chips by accident. */
typedef struct builder {
  weft_arena *arena;
  weft_abi_class *class;
  weft_abi_tensor *tensors;
  weft_abi_step *steps;
  int64_t *parameters;
} builder;

static bool builder_begin(builder *b, weft_arena *arena, uint16_t chip) {
  *b = (builder){.arena = arena, .class = WEFT_NEW(arena, weft_abi_class)};
  b->tensors = WEFT_NEW_ARRAY(arena, weft_abi_tensor, MAX_TENSORS);
  b->steps = WEFT_NEW_ARRAY(arena, weft_abi_step, MAX_STEPS);
  b->parameters = WEFT_NEW_ARRAY(arena, int64_t, MAX_PARAMETERS);
  uint16_t *chips = WEFT_NEW(arena, uint16_t);
  if (weft_arena_failed(arena)) return false;
  *chips = chip;
  *b->class = (weft_abi_class){.hash = 7919u * (uint64_t)(chip + 1),
                               .tensors = b->tensors,
                               .steps = b->steps,
                               .parameters = b->parameters,
                               .parameter_count = SECTION_PARAMETERS,
                               .chip_count = 1,
                               .chips = chips};
  return true;
}

static int64_t add_parameter(builder *b, int64_t value) {
  b->parameters[b->class->parameter_count] = value;
  return b->class->parameter_count++;
}

static int64_t add_tensor(builder *b, const char *name, int role, weft_format format, uint64_t rows, uint64_t cols) {
  b->tensors[b->class->tensor_count] =
      (weft_abi_tensor){.name = name, .format = (int)format, .role = role, .rows = rows, .cols = cols, .place = -1};
  return b->class->tensor_count++;
}

/* Makes the newest tensor a block of a dataset. */
static void in_dataset(builder *b, uint64_t rows, uint64_t cols, uint64_t row0, uint64_t col0, bool writer) {
  weft_abi_tensor *tensor = &b->tensors[b->class->tensor_count - 1];
  tensor->dataset = tensor->name;
  tensor->rank = 2;
  tensor->extents[0] = rows;
  tensor->extents[1] = cols;
  tensor->place = add_parameter(b, (int64_t)row0);
  add_parameter(b, (int64_t)col0);
  add_parameter(b, writer);
}

static const int64_t *slot_list(builder *b, uint32_t count, const int64_t *slots) {
  int64_t *list = WEFT_NEW_ARRAY(b->arena, int64_t, count + 1u);
  if (!list) return NULL;
  if (count) memcpy(list, slots, count * sizeof *list);
  list[count] = -1;
  return list;
}

static weft_abi_step *add_step(builder *b, int kind, const char *name, uint32_t read_count, const int64_t *reads,
                               uint32_t write_count, const int64_t *writes) {
  weft_abi_step *step = &b->steps[b->class->step_count++];
  *step = (weft_abi_step){.kind = kind, .name = name};
  step->reads = slot_list(b, read_count, reads);
  step->writes = slot_list(b, write_count, writes);
  return step;
}

static void add_section(builder *b, int number, const test_section *section, const char *name, uint32_t read_count,
                        const int64_t *reads, uint32_t write_count, const int64_t *writes) {
  test_section *copy = WEFT_NEW(b->arena, test_section);
  if (!copy) return;
  *copy = *section;
  b->parameters[number] = (int64_t)(uintptr_t)copy;
  add_step(b, WEFT_STEP_SECTION, name, read_count, reads, write_count, writes)->section = sections[number];
}

static const void *keep(weft_arena *arena, const void *bytes, size_t size) {
  void *copy = weft_arena_alloc(arena, size);
  return copy ? memcpy(copy, bytes, size) : NULL;
}

/* ---- formats of a shape ---- */

static bool floats(const test_shape *shape) { return weft_format_is_float(shape->format); }
static weft_format result_format(const test_shape *shape) {
  return floats(shape) ? WEFT_FP32 : shape->clamp ? WEFT_INT8 : WEFT_INT32;
}
static weft_format bias_format(const test_shape *shape) { return floats(shape) ? WEFT_FP32 : WEFT_INT32; }
static int acc_of(const test_shape *shape) { return floats(shape) ? WEFT_ACC_F32 : WEFT_ACC_I32; }

uint32_t test_shape_segments(const test_shape *shape) {
  return shape->segments ? shape->segments : weft_segments_for(shape->k);
}

static uint32_t fill_epilogue(const test_shape *shape, int64_t bias, weft_abi_epilogue *ops) {
  uint32_t count = 0;
  if (shape->bias) ops[count++] = (weft_abi_epilogue){.kind = WEFT_EPILOGUE_BIAS, .operand = bias};
  if (shape->clamp && !floats(shape)) {
    ops[count++] = (weft_abi_epilogue){.kind = WEFT_EPILOGUE_REQUANT, .m = 3, .s = 9};
    ops[count++] = (weft_abi_epilogue){.kind = WEFT_EPILOGUE_CLAMP, .m = -128, .s = 127};
  }
  if (shape->relu) ops[count++] = (weft_abi_epilogue){.kind = WEFT_EPILOGUE_RELU};
  return count;
}

static uint64_t cut(uint64_t extent, uint32_t parts, uint32_t index) { return extent * index / parts; }

/* ---- columns and batch ---- */

static void build_gemm(builder *b, const test_shape *shape, uint32_t chip) {
  bool columns = shape->kind == TEST_GEMM;
  uint64_t n0 = columns ? cut(shape->n, shape->chips, chip) : 0;
  uint64_t n1 = columns ? cut(shape->n, shape->chips, chip + 1) : shape->n;
  uint64_t m0 = columns ? 0 : cut(shape->m, shape->chips, chip);
  uint64_t m1 = columns ? shape->m : cut(shape->m, shape->chips, chip + 1);
  uint64_t m = m1 - m0, n = n1 - n0;
  int64_t x = add_tensor(b, "x", WEFT_ROLE_INPUT, shape->format, m, shape->k);
  in_dataset(b, shape->m, shape->k, m0, 0, false);
  int64_t w = add_tensor(b, "w", WEFT_ROLE_PARAM, shape->format, shape->k, n);
  in_dataset(b, shape->k, shape->n, 0, n0, false);
  int64_t bias = add_tensor(b, "b", WEFT_ROLE_PARAM, bias_format(shape), 1, n);
  in_dataset(b, 1, shape->n, 0, n0, false);
  int64_t y = add_tensor(b, "y", WEFT_ROLE_OUTPUT, result_format(shape), m, n);
  in_dataset(b, shape->m, shape->n, m0, n0, true);
  weft_abi_epilogue ops[4];
  uint32_t count = fill_epilogue(shape, bias, ops);
  weft_abi_product product = {.a = x, .b = w, .out = y, .m = m, .n = n, .k = shape->k, .acc = acc_of(shape)};
  product.segments = test_shape_segments(shape);
  product.epilogue_count = count;
  product.epilogue = keep(b->arena, ops, sizeof ops);
  test_section section = {.products = keep(b->arena, &product, sizeof product), .product_count = 1};
  add_section(b, 0, &section, "layer", 3, (int64_t[]){x, w, bias}, 1, &y);
  b->steps[b->class->step_count - 1].flops = 2.0 * (double)m * (double)n * (double)shape->k;
}

/* ---- K split ---- */

typedef struct node {
  uint32_t chip, first, count;
} node;

/* The maximal aligned blocks of segments each chip holds. */
static uint32_t list_nodes(const test_shape *shape, uint32_t of, node *nodes) {
  uint32_t count = 0;
  for (uint32_t c = 0; c < shape->chips; c++) {
    uint32_t at = of * c / shape->chips, end = of * (c + 1) / shape->chips;
    while (at < end) {
      uint32_t size = 1;
      while (at % (2 * size) == 0 && at + 2 * size <= end) size *= 2;
      nodes[count++] = (node){c, at, size};
      at += size;
    }
  }
  return count;
}

static bool reads_result(const test_shape *shape, uint32_t chip) {
  return shape->readers == 0 || chip >= shape->chips - shape->readers;
}

static void build_rows(builder *b, const test_shape *shape, uint32_t chip) {
  uint32_t segments = test_shape_segments(shape), of = weft_segments_effective(shape->k, segments);
  node nodes[512];
  uint32_t node_count = list_nodes(shape, of, nodes), held = 0;
  weft_format partial = floats(shape) ? WEFT_FP32 : WEFT_INT32;
  weft_abi_product products[64];
  int64_t reads[130], writes[64], slots[512];
  uint32_t read_count = 0;
  for (uint32_t i = 0; i < node_count; i++) {
    slots[i] = -1;
    if (nodes[i].chip != chip) continue;
    uint64_t k0 = weft_segment_begin(shape->k, segments, nodes[i].first);
    uint64_t k = weft_segment_begin(shape->k, segments, nodes[i].first + nodes[i].count) - k0;
    int64_t x = add_tensor(b, "x", WEFT_ROLE_INPUT, shape->format, shape->m, k);
    in_dataset(b, shape->m, shape->k, 0, k0, false);
    int64_t w = add_tensor(b, "w", WEFT_ROLE_PARAM, shape->format, k, shape->n);
    in_dataset(b, shape->k, shape->n, k0, 0, false);
    slots[i] = add_tensor(b, "partial", WEFT_ROLE_ACTIVATION, partial, shape->m, shape->n);
    products[held] = (weft_abi_product){.a = x, .b = w, .out = slots[i], .m = shape->m, .n = shape->n, .k = k};
    products[held].acc = acc_of(shape);
    products[held].segments = nodes[i].count;
    reads[read_count++] = x;
    reads[read_count++] = w;
    writes[held++] = slots[i];
  }
  if (held) {
    test_section section = {.products = keep(b->arena, products, sizeof products), .product_count = held};
    add_section(b, 0, &section, "part", read_count, reads, held, writes);
  }
  bool reader = reads_result(shape, chip);
  if (!reader && !held) return;
  weft_abi_all_reduce reduce = {.out = -1, .pool = WEFT_POOL_SUM, .format = (int)partial, .rows = shape->m};
  int64_t bias = 0;
  if (reader) {
    bias = add_tensor(b, "b", WEFT_ROLE_PARAM, bias_format(shape), 1, shape->n);
    in_dataset(b, 1, shape->n, 0, 0, false);
    reduce.out = add_tensor(b, "y", WEFT_ROLE_OUTPUT, result_format(shape), shape->m, shape->n);
    in_dataset(b, shape->m, shape->n, 0, 0, chip + 1 == shape->chips);
    weft_abi_epilogue ops[4];
    reduce.epilogue_count = fill_epilogue(shape, bias, ops);
    reduce.epilogue = keep(b->arena, ops, sizeof ops);
  }
  reduce.cols = shape->n;
  reduce.of = of;
  reduce.node_count = node_count;
  uint32_t *first = WEFT_NEW_ARRAY(b->arena, uint32_t, node_count),
           *count = WEFT_NEW_ARRAY(b->arena, uint32_t, node_count);
  reduce.node_chip = b->class->parameter_count;
  for (uint32_t i = 0; i < node_count; i++) {
    first[i] = nodes[i].first;
    count[i] = nodes[i].count;
    add_parameter(b, nodes[i].chip);
  }
  reduce.first = first;
  reduce.count = count;
  reduce.node_slot = b->class->parameter_count;
  for (uint32_t i = 0; i < node_count; i++) add_parameter(b, slots[i]);
  reduce.reader_chip = b->class->parameter_count;
  for (uint32_t c = 0; c < shape->chips; c++)
    if (reads_result(shape, c)) {
      add_parameter(b, c);
      reduce.reader_count++;
    }
  weft_abi_step *step = add_step(b, WEFT_STEP_ALL_REDUCE, "fold", held, writes, reader, &reduce.out);
  step->all_reduce = keep(b->arena, &reduce, sizeof reduce);
}

/* ---- a random tree ---- */

static uint32_t reduce_leaves(const test_shape *shape) { return shape->segments ? shape->segments : 8; }

static uint32_t grow_tree(uint64_t *state, uint32_t chips, uint32_t first, uint32_t count, node *nodes, uint32_t used) {
  if (count == 1 || weft_random_next(state) % 3 == 0) {
    nodes[used] = (node){(uint32_t)(weft_random_next(state) % chips), first, count};
    return used + 1;
  }
  uint32_t left = 1;
  while (left * 2 < count) left *= 2;
  used = grow_tree(state, chips, first, left, nodes, used);
  return grow_tree(state, chips, first + left, count - left, nodes, used);
}

/* The nodes, and which chips read: a bit set that is not empty. */
static uint32_t random_tree(const test_shape *shape, node *nodes, uint64_t *readers) {
  uint64_t state = shape->k;
  uint32_t count = grow_tree(&state, shape->chips, 0, reduce_leaves(shape), nodes, 0);
  uint64_t all = shape->chips < 64 ? (UINT64_C(1) << shape->chips) - 1 : UINT64_MAX;
  *readers = weft_random_next(&state) & all;
  if (!*readers || shape->k % 2) *readers = all;
  return count;
}

static weft_format reduce_format(const test_shape *shape) { return floats(shape) ? WEFT_FP32 : shape->format; }

static void build_reduce(builder *b, const test_shape *shape, uint32_t chip) {
  node nodes[512];
  uint64_t readers;
  uint32_t node_count = random_tree(shape, nodes, &readers), held = 0;
  int64_t slots[512], reads[513];
  for (uint32_t i = 0; i < node_count; i++) {
    slots[i] = -1;
    if (nodes[i].chip != chip) continue;
    const char *name = weft_arena_printf(b->arena, "p%u", i);
    slots[i] = add_tensor(b, name, WEFT_ROLE_INPUT, reduce_format(shape), shape->m, shape->n);
    in_dataset(b, shape->m, shape->n, 0, 0, false);
    reads[held++] = slots[i];
  }
  bool reader = readers >> chip & 1;
  if (!reader && !held) return;
  weft_abi_all_reduce reduce = {.out = -1, .pool = shape->pool, .format = (int)reduce_format(shape), .rows = shape->m};
  if (reader) {
    /* Every reader writes a dataset of its own, so that all are compared. */
    reduce.out = add_tensor(b, weft_arena_printf(b->arena, "y%u", chip), WEFT_ROLE_OUTPUT, reduce_format(shape),
                            shape->m, shape->n);
    in_dataset(b, shape->m, shape->n, 0, 0, true);
  }
  reduce.cols = shape->n;
  reduce.of = reduce_leaves(shape);
  reduce.node_count = node_count;
  uint32_t *first = WEFT_NEW_ARRAY(b->arena, uint32_t, node_count),
           *count = WEFT_NEW_ARRAY(b->arena, uint32_t, node_count);
  reduce.node_chip = b->class->parameter_count;
  for (uint32_t i = 0; i < node_count; i++) {
    first[i] = nodes[i].first;
    count[i] = nodes[i].count;
    add_parameter(b, nodes[i].chip);
  }
  reduce.first = first;
  reduce.count = count;
  reduce.node_slot = b->class->parameter_count;
  for (uint32_t i = 0; i < node_count; i++) add_parameter(b, slots[i]);
  reduce.reader_chip = b->class->parameter_count;
  for (uint32_t c = 0; c < shape->chips; c++)
    if (readers >> c & 1) {
      add_parameter(b, c);
      reduce.reader_count++;
    }
  add_step(b, WEFT_STEP_ALL_REDUCE, "fold", held, reads, reader, &reduce.out)->all_reduce =
      keep(b->arena, &reduce, sizeof reduce);
}

/* ---- pipeline ---- */

static const weft_abi_crossing *crossing(builder *b, int64_t tensor, uint32_t peer) {
  weft_abi_crossing one = {.tensor = tensor, .peer = add_parameter(b, peer)};
  return keep(b->arena, &one, sizeof one);
}

static void build_pipeline(builder *b, const test_shape *shape, uint32_t chip) {
  bool first = chip == 0, last = chip + 1 == shape->chips;
  const char *weight = weft_arena_printf(b->arena, "w%u", chip);
  int64_t x = add_tensor(b, first ? "x" : "received", first ? WEFT_ROLE_INPUT : WEFT_ROLE_ACTIVATION, WEFT_FP32,
                         shape->m, shape->k);
  if (first) in_dataset(b, shape->m, shape->k, 0, 0, false);
  int64_t w = add_tensor(b, weight, WEFT_ROLE_PARAM, WEFT_FP32, shape->k, shape->k);
  in_dataset(b, shape->k, shape->k, 0, 0, false);
  int64_t y =
      add_tensor(b, last ? "y" : "sent", last ? WEFT_ROLE_OUTPUT : WEFT_ROLE_ACTIVATION, WEFT_FP32, shape->m, shape->k);
  if (last) in_dataset(b, shape->m, shape->k, 0, 0, true);
  if (!first) {
    weft_abi_link link = {.receives = crossing(b, x, chip - 1), .receive_count = 1};
    add_step(b, WEFT_STEP_LINK, "link", 0, NULL, 1, &x)->link = keep(b->arena, &link, sizeof link);
  }
  weft_abi_product product = {
      .a = x, .b = w, .out = y, .m = shape->m, .n = shape->k, .k = shape->k, .acc = WEFT_ACC_F32};
  product.segments = test_shape_segments(shape);
  test_section section = {.products = keep(b->arena, &product, sizeof product), .product_count = 1};
  add_section(b, 0, &section, "layer", 2, (int64_t[]){x, w}, 1, &y);
  if (!last) {
    weft_abi_link link = {.sends = crossing(b, y, chip + 1), .send_count = 1};
    add_step(b, WEFT_STEP_LINK, "link", 1, &y, 0, NULL)->link = keep(b->arena, &link, sizeof link);
  }
}

/* ---- ring ---- */

enum { MAX_PIECES = 48 };

static uint32_t ring_pieces(const test_shape *shape) { return shape->n ? (uint32_t)shape->n : 2; }

/* Pieces of different sizes, so that their order matters. */
static uint64_t piece_begin(const test_shape *shape, uint32_t piece) {
  uint64_t pieces = ring_pieces(shape);
  return shape->m * piece * (piece + 1) / (pieces * (pieces + 1));
}

/* all = what came; y = all + state; state = y. */
static void build_ring(builder *b, const test_shape *shape, uint32_t chip) {
  uint32_t next = (chip + 1) % shape->chips, previous = (chip + shape->chips - 1) % shape->chips;
  uint32_t pieces = ring_pieces(shape);
  int64_t x[MAX_PIECES], came[MAX_PIECES], to = add_parameter(b, next), from = add_parameter(b, previous);
  weft_abi_crossing sends[MAX_PIECES], receives[MAX_PIECES];
  weft_abi_copy copies[MAX_PIECES];
  for (uint32_t i = 0; i < pieces; i++) {
    uint64_t row0 = piece_begin(shape, i), rows = piece_begin(shape, i + 1) - row0;
    x[i] = add_tensor(b, "x", WEFT_ROLE_INPUT, WEFT_INT32, rows, shape->k);
    in_dataset(b, shape->m * shape->chips, shape->k, shape->m * chip + row0, 0, false);
    came[i] = add_tensor(b, "came", WEFT_ROLE_ACTIVATION, WEFT_INT32, rows, shape->k);
    sends[i] = (weft_abi_crossing){.tensor = x[i], .peer = to};
    receives[i] = (weft_abi_crossing){.tensor = came[i], .peer = from};
    copies[i] = (weft_abi_copy){.from = came[i], .to_row = row0, .rows = rows, .cols = shape->k};
  }
  int64_t state = add_tensor(b, "state", WEFT_ROLE_STATE, WEFT_INT32, shape->m, shape->k);
  in_dataset(b, shape->m * shape->chips, shape->k, shape->m * chip, 0, true);
  int64_t all = add_tensor(b, "all", WEFT_ROLE_ACTIVATION, WEFT_INT32, shape->m, shape->k);
  int64_t y = add_tensor(b, "y", WEFT_ROLE_OUTPUT, WEFT_INT32, shape->m, shape->k);
  in_dataset(b, shape->m * shape->chips, shape->k, shape->m * chip, 0, true);
  weft_abi_link link = {keep(b->arena, sends, sizeof sends), pieces, keep(b->arena, receives, sizeof receives), pieces};
  add_step(b, WEFT_STEP_LINK, "ring", pieces, x, pieces, came)->link = keep(b->arena, &link, sizeof link);
  for (uint32_t i = 0; i < pieces; i++) copies[i].to = all;
  test_section gather = {.copies = keep(b->arena, copies, sizeof copies), .copy_count = pieces};
  add_section(b, 0, &gather, "gather", pieces, came, 1, &all);
  int64_t width = (int64_t)shape->k;
  weft_abi_operand operands[2] = {{.tensor = all, .row_stride = width, .col_stride = 1},
                                  {.tensor = state, .row_stride = width, .col_stride = 1}};
  weft_abi_node nodes[3] = {{.kind = WEFT_BODY_OPERAND, .value = 0},
                            {.kind = WEFT_BODY_OPERAND, .value = 1},
                            {.kind = WEFT_BODY_ADD, .child = {0, 1}}};
  weft_abi_pointwise add = {.out = y, .operand_count = 2, .operands = keep(b->arena, operands, sizeof operands)};
  add.node_count = 3;
  add.nodes = keep(b->arena, nodes, sizeof nodes);
  test_section sum = {.pointwise = keep(b->arena, &add, sizeof add)};
  add_section(b, 1, &sum, "add", 2, (int64_t[]){all, state}, 1, &y);
  weft_abi_copy chain = {.from = y, .to = state, .rows = shape->m, .cols = shape->k};
  test_section kept = {.copies = keep(b->arena, &chain, sizeof chain), .copy_count = 1};
  add_section(b, 2, &kept, "keep", 1, &y, 1, &state);
}

const weft_abi_program *test_program_new(weft_arena *arena, const test_shape *shape) {
  weft_abi_program *program = WEFT_NEW(arena, weft_abi_program);
  const weft_abi_class **classes = WEFT_NEW_ARRAY(arena, const weft_abi_class *, shape->chips);
  if (!program || !classes) return NULL;
  for (uint32_t c = 0; c < shape->chips; c++) {
    builder b;
    if (!builder_begin(&b, arena, (uint16_t)c)) return NULL;
    switch (shape->kind) {
    case TEST_ROWS: build_rows(&b, shape, c); break;
    case TEST_PIPELINE: build_pipeline(&b, shape, c); break;
    case TEST_RING: build_ring(&b, shape, c); break;
    case TEST_REDUCE: build_reduce(&b, shape, c); break;
    default: build_gemm(&b, shape, c);
    }
    classes[c] = b.class;
  }
  *program = (weft_abi_program){.abi_version = WEFT_ABI_VERSION,
                                .arithmetic = WEFT_ARITHMETIC_VERSION,
                                .name = "test",
                                .chips = shape->chips,
                                .class_count = shape->chips,
                                .classes = classes};
  return weft_arena_failed(arena) ? NULL : program;
}

/* ---- inputs ---- */

static bool add_random(weft_array_set *set, const char *name, weft_format format, uint64_t rows, uint64_t cols,
                       uint64_t *state) {
  weft_array *array = weft_array_set_add(set, name, format, 2, (uint64_t[]){rows, cols});
  for (uint64_t i = 0; array && i < rows * cols; i++) {
    uint64_t bits = weft_random_next(state);
    if (weft_format_is_float(format))
      weft_store_f32(format, array->data, i, (float)((double)(bits >> 11) * 0x1p-52 - 1.0));
    else
      weft_store_i64(format, array->data, i,
                     format == WEFT_INT8 ? (int64_t)(int8_t)bits : (int64_t)(bits % 20001) - 10000);
  }
  return array != NULL;
}

static bool reduce_inputs(const test_shape *shape, uint64_t *state, weft_array_set *set) {
  node nodes[512];
  uint64_t readers;
  uint32_t count = random_tree(shape, nodes, &readers);
  bool ok = true;
  for (uint32_t i = 0; ok && i < count; i++) {
    char name[16];
    snprintf(name, sizeof name, "p%u", i);
    ok = add_random(set, name, reduce_format(shape), shape->m, shape->n, state);
    float *values = weft_array_set_find(set, name)->data;
    /* What an unordered or careless fold gets wrong: zeros of both signs, a NaN. */
    for (uint64_t e = 0; ok && floats(shape) && e < shape->m * shape->n; e += 7)
      values[e] = weft_random_next(state) % 40 == 0 ? NAN : weft_random_next(state) % 2 ? 0.0f : -0.0f;
  }
  return ok;
}

bool test_inputs(const test_shape *shape, uint64_t seed, weft_array_set *set) {
  uint64_t state = seed;
  bool ok = true;
  switch (shape->kind) {
  case TEST_PIPELINE:
    ok = add_random(set, "x", WEFT_FP32, shape->m, shape->k, &state);
    for (uint32_t c = 0; ok && c < shape->chips; c++) {
      char name[16];
      snprintf(name, sizeof name, "w%u", c);
      ok = add_random(set, name, WEFT_FP32, shape->k, shape->k, &state);
    }
    return ok;
  case TEST_RING:
    return add_random(set, "x", WEFT_INT32, shape->m * shape->chips, shape->k, &state) &&
           weft_array_set_add(set, "state", WEFT_INT32, 2, (uint64_t[]){shape->m * shape->chips, shape->k});
  case TEST_REDUCE: return reduce_inputs(shape, &state, set);
  default:
    return add_random(set, "x", shape->format, shape->m, shape->k, &state) &&
           add_random(set, "w", shape->format, shape->k, shape->n, &state) &&
           add_random(set, "b", bias_format(shape), 1, shape->n, &state);
  }
}

/* ---- results ---- */

static float plain_f32(const test_shape *shape, const weft_array_set *in, uint64_t row, uint64_t col) {
  const weft_array *x = weft_array_set_find(in, "x"), *w = weft_array_set_find(in, "w");
  float *a = malloc((2 * shape->k + 1) * sizeof *a), *b = a + shape->k;
  for (uint64_t i = 0; i < shape->k; i++) {
    a[i] = weft_load_f32(shape->format, x->data, row * shape->k + i);
    b[i] = weft_load_f32(shape->format, w->data, i * shape->n + col);
  }
  float value = weft_dot_f32(a, 1, b, 1, shape->k, test_shape_segments(shape));
  free(a);
  if (shape->bias) value += ((const float *)weft_array_set_find(in, "b")->data)[col];
  if (shape->relu) value = weft_maximum_f32(value, 0.0f);
  return value;
}

static int64_t plain_i64(const test_shape *shape, const weft_array_set *in, uint64_t row, uint64_t col) {
  const weft_array *x = weft_array_set_find(in, "x"), *w = weft_array_set_find(in, "w");
  int64_t value = 0;
  for (uint64_t i = 0; i < shape->k; i++)
    value += weft_load_i64(shape->format, x->data, row * shape->k + i) *
             weft_load_i64(shape->format, w->data, i * shape->n + col);
  if (shape->bias) value += ((const int32_t *)weft_array_set_find(in, "b")->data)[col];
  if (shape->clamp) {
    value = weft_requant(value, 3, 9);
    value = value < -128 ? -128 : value > 127 ? 127 : value;
  }
  if (shape->relu && value < 0) value = 0;
  return value;
}

static bool pipeline_results(const test_shape *shape, const weft_array_set *in, weft_array_set *out) {
  uint64_t k = shape->k, elements = shape->m * k;
  weft_array *y = weft_array_set_add(out, "y", WEFT_FP32, 2, (uint64_t[]){shape->m, k});
  float *values = malloc((elements + 1) * sizeof *values);
  if (!y || !values) return false;
  memcpy(values, weft_array_set_find(in, "x")->data, elements * sizeof *values);
  for (uint32_t c = 0; c < shape->chips; c++) {
    char name[16];
    snprintf(name, sizeof name, "w%u", c);
    const float *w = weft_array_set_find(in, name)->data;
    for (uint64_t i = 0; i < elements; i++)
      ((float *)y->data)[i] = weft_dot_f32(values + i / k * k, 1, w + i % k, k, k, test_shape_segments(shape));
    memcpy(values, y->data, elements * sizeof *values);
  }
  free(values);
  return true;
}

static bool ring_results(const test_shape *shape, const weft_array_set *in, uint64_t runs, weft_array_set *out) {
  uint64_t rows = shape->m * shape->chips, part = shape->m * shape->k;
  weft_array *y = weft_array_set_add(out, "y", WEFT_INT32, 2, (uint64_t[]){rows, shape->k});
  weft_array *state = y ? weft_array_set_add(out, "state", WEFT_INT32, 2, (uint64_t[]){rows, shape->k}) : NULL;
  if (!state) return false;
  y = weft_array_set_find(out, "y");
  const int32_t *x = weft_array_set_find(in, "x")->data;
  for (uint32_t c = 0; c < shape->chips; c++)
    for (uint64_t i = 0; i < part; i++) {
      int32_t value = (int32_t)((int64_t)runs * x[(c + shape->chips - 1) % shape->chips * part + i]);
      ((int32_t *)y->data)[c * part + i] = value;
      ((int32_t *)state->data)[c * part + i] = value;
    }
  return true;
}

static float reduce_f32(const test_shape *shape, const weft_array_set *in, const node *nodes, uint32_t node_count,
                        uint64_t element, uint32_t first, uint32_t count) {
  for (uint32_t i = 0; i < node_count; i++) {
    char name[16];
    snprintf(name, sizeof name, "p%u", i);
    if (nodes[i].first == first && nodes[i].count == count)
      return ((const float *)weft_array_set_find(in, name)->data)[element];
  }
  uint32_t left = 1;
  while (left * 2 < count) left *= 2;
  float a = reduce_f32(shape, in, nodes, node_count, element, first, left);
  float b = reduce_f32(shape, in, nodes, node_count, element, first + left, count - left);
  if (shape->pool == WEFT_POOL_SUM) return a + b;
  if (a != a || b != b) return NAN;
  bool a_first = a == b ? (signbit(a) != 0) : a < b; /* in the order -0, +0 */
  return (shape->pool == WEFT_POOL_MIN) == a_first ? a : b;
}

static int64_t reduce_i64(const test_shape *shape, const weft_array_set *in, uint32_t node_count, uint64_t element) {
  int64_t total = 0;
  for (uint32_t i = 0; i < node_count; i++) {
    char name[16];
    snprintf(name, sizeof name, "p%u", i);
    int64_t value = weft_load_i64(shape->format, weft_array_set_find(in, name)->data, element);
    if (shape->pool == WEFT_POOL_SUM)
      total += value;
    else if (i == 0 || (shape->pool == WEFT_POOL_MAX ? value > total : value < total))
      total = value;
  }
  return total;
}

static bool reduce_results(const test_shape *shape, const weft_array_set *in, weft_array_set *out) {
  node nodes[512];
  uint64_t readers;
  uint32_t count = random_tree(shape, nodes, &readers);
  for (uint32_t c = 0; c < shape->chips; c++) {
    if (!(readers >> c & 1)) continue;
    char name[16];
    snprintf(name, sizeof name, "y%u", c);
    weft_array *y = weft_array_set_add(out, name, reduce_format(shape), 2, (uint64_t[]){shape->m, shape->n});
    for (uint64_t e = 0; y && e < shape->m * shape->n; e++) {
      if (floats(shape))
        ((float *)y->data)[e] = reduce_f32(shape, in, nodes, count, e, 0, reduce_leaves(shape));
      else
        weft_store_i64(shape->format, y->data, e, reduce_i64(shape, in, count, e));
    }
    if (!y) return false;
  }
  return true;
}

bool test_results(const test_shape *shape, const weft_array_set *in, uint64_t runs, weft_array_set *out) {
  if (shape->kind == TEST_PIPELINE) return pipeline_results(shape, in, out);
  if (shape->kind == TEST_RING) return ring_results(shape, in, runs, out);
  if (shape->kind == TEST_REDUCE) return reduce_results(shape, in, out);
  weft_format format = result_format(shape);
  weft_array *y = weft_array_set_add(out, "y", format, 2, (uint64_t[]){shape->m, shape->n});
  for (uint64_t i = 0; y && i < shape->m * shape->n; i++) {
    if (floats(shape))
      weft_store_f32(format, y->data, i, plain_f32(shape, in, i / shape->n, i % shape->n));
    else if (!weft_store_i64(format, y->data, i, plain_i64(shape, in, i / shape->n, i % shape->n)))
      return false;
  }
  return y != NULL;
}

/* ---- text ---- */

static const char *const kinds[] = {"gemm", "batch", "rows", "pipeline", "ring", "reduce"};

void test_shape_print(const test_shape *shape, char *text, size_t size) {
  snprintf(text, size, "%s,%u,%llu,%llu,%llu,%s,%u,%u,%d,%s%s%s-", kinds[shape->kind], shape->chips,
           (unsigned long long)shape->m, (unsigned long long)shape->k, (unsigned long long)shape->n,
           weft_format_name(shape->format), shape->segments, shape->readers, shape->pool, shape->bias ? "bias+" : "",
           shape->relu ? "relu+" : "", shape->clamp ? "clamp+" : "");
}

bool test_shape_read(const char *text, test_shape *shape) {
  char kind[16], format[16], flags[32] = "";
  unsigned long long m, k, n;
  *shape = (test_shape){0};
  if (sscanf(text, "%15[a-z],%u,%llu,%llu,%llu,%15[A-Za-z0-9],%u,%u,%d,%31s", kind, &shape->chips, &m, &k, &n, format,
             &shape->segments, &shape->readers, &shape->pool, flags) < 9)
    return false;
  shape->m = m;
  shape->k = k;
  shape->n = n;
  shape->format = weft_format_by_name(format);
  shape->bias = strstr(flags, "bias") != NULL;
  shape->relu = strstr(flags, "relu") != NULL;
  shape->clamp = strstr(flags, "clamp") != NULL;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kinds[i], kind) == 0) {
      shape->kind = (test_kind)i;
      return shape->chips > 0 && shape->format != WEFT_FORMAT_COUNT;
    }
  return false;
}
