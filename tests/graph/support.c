#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t draw(chance *c, uint64_t below) { return weft_random_next(&c->state) % below; }
bool toss(chance *c) { return draw(c, 2); }

static void print_messages(const weft_diag *diag) {
  for (uint64_t i = 0; i < weft_diag_count(diag); i++) print_error("  %s\n", weft_diag_message(diag, i)->text);
}

void expect_ok(weft_status status, const weft_diag *diag) {
  if (status == WEFT_OK) return;
  print_messages(diag);
  fail_msg("status %d", (int)status);
}

void expect_message(const weft_diag *diag, const char *text) {
  for (uint64_t i = 0; i < weft_diag_count(diag); i++)
    if (strstr(weft_diag_message(diag, i)->text, text)) return;
  print_messages(diag);
  fail_msg("no message says \"%s\"", text);
}

/* ---- random graphs ------------------------------------------------------------------------------------------------
 */

typedef struct maker {
  chance *c;
  weft_graph *graph;
  const random_graph_options *options;
  uint32_t pool[256]; /**< values that may be read */
  uint32_t pool_count, named;
} maker;

static uint64_t any_extent(maker *m) {
  static const uint64_t all[] = {0, 1, 2, 10, 17, 31, 32, 33, 40, 63, 64, 65, 97}, small[] = {0, 1, 2, 3, 5, 7, 10};
  if (!m->options->small) return all[draw(m->c, sizeof all / sizeof *all)];
  return draw(m->c, 12) ? small[draw(m->c, sizeof small / sizeof *small)] : toss(m->c) ? 40 : 130;
}

static uint64_t nonzero_extent(maker *m) {
  for (;;) {
    uint64_t extent = any_extent(m);
    if (extent || draw(m->c, 8) == 0) return extent;
  }
}

static const char *fresh(maker *m, const char *prefix) {
  return weft_arena_printf(m->graph->arena, "%s%u", prefix, m->named++);
}

static weft_format float_format(maker *m) {
  static const weft_format formats[] = {WEFT_FP32, WEFT_FP32, WEFT_FP32, WEFT_BF16, WEFT_FP16};
  return formats[draw(m->c, 5)];
}

static uint32_t new_param(maker *m, weft_format dtype, uint32_t rank, const uint64_t *extents) {
  uint32_t value = weft_graph_param(m->graph, fresh(m, "p"), dtype, rank, extents);
  if (dtype == WEFT_INT32) weft_graph_range(m->graph, value, -1000, 1000);
  return value;
}

static const weft_value *value_of(const maker *m, uint32_t v) { return &m->graph->values[v]; }

static uint32_t matmul(maker *m, uint32_t x) {
  const uint64_t extents[] = {value_of(m, x)->extents[1], nonzero_extent(m)};
  uint32_t y = weft_graph_matmul(m->graph, fresh(m, "matmul"), x, new_param(m, value_of(m, x)->dtype, 2, extents));
  if (y != WEFT_NONE && weft_format_is_float(value_of(m, y)->dtype) && toss(m->c))
    m->graph->ops[value_of(m, y)->producer].segments = 1 + (uint32_t)draw(m->c, 8);
  return y;
}

static uint32_t bias(maker *m, uint32_t x) {
  const weft_value *v = value_of(m, x);
  const uint64_t row[] = {1, v->extents[v->rank - 1]};
  weft_format dtype = weft_format_is_float(v->dtype) ? float_format(m) : WEFT_INT32;
  uint32_t b = toss(m->c) ? new_param(m, dtype, 1, row + 1) : new_param(m, dtype, 2, row);
  if (v->dtype == WEFT_INT8) { // a plain copy would be lifted as part of the bias
    weft_body_node widen[] = {
        {.kind = WEFT_BODY_OPERAND}, {.kind = WEFT_BODY_CONST}, {.kind = WEFT_BODY_ADD, .child = {0, 1}}};
    x = weft_graph_pointwise(m->graph, fresh(m, "widen"), &x, 1, &(weft_body){widen, m->options->tidy ? 3 : 1},
                             WEFT_INT32);
  }
  return weft_graph_bias(m->graph, fresh(m, "bias"), x, b);
}

static uint64_t bits_of(double d) {
  uint64_t bits;
  memcpy(&bits, &d, sizeof bits);
  return bits;
}

/** A random body over `count` operands in post-order. */
static uint32_t grow_body(maker *m, weft_body_node *nodes, uint32_t *n, uint32_t count, uint32_t depth,
                          uint32_t *next_operand) {
  bool integers = m->options->integers;
  if (depth == 0 || draw(m->c, 4) == 0) {
    if (*next_operand < count || toss(m->c)) {
      nodes[*n] = (weft_body_node){.kind = WEFT_BODY_OPERAND,
                                   .value = *next_operand < count ? (*next_operand)++ : draw(m->c, count)};
    } else {
      nodes[*n] = (weft_body_node){
          .kind = WEFT_BODY_CONST,
          .value = bits_of(integers ? (double)draw(m->c, 21) - 10 : ((double)draw(m->c, 2001) - 1000) / 64)};
    }
    return (*n)++;
  }
  static const weft_body_kind kinds[] = {WEFT_BODY_ADD, WEFT_BODY_SUB,   WEFT_BODY_MUL,          WEFT_BODY_MIN,
                                         WEFT_BODY_MAX, WEFT_BODY_SHR,   WEFT_BODY_VALUE_SELECT, WEFT_BODY_UNARY,
                                         WEFT_BODY_DIV, WEFT_BODY_SELECT};
  weft_body_node node = {.kind = kinds[draw(m->c, integers ? 7 : 9)]};
  uint32_t children = node.kind == WEFT_BODY_VALUE_SELECT                          ? 3
                      : node.kind == WEFT_BODY_SHR || node.kind == WEFT_BODY_UNARY ? 1
                                                                                   : 2;
  if (node.kind == WEFT_BODY_MUL && integers) node.kind = WEFT_BODY_ADD;
  if (node.kind == WEFT_BODY_SHR) node.value = draw(m->c, 5);
  if (node.kind == WEFT_BODY_UNARY) {
    static const weft_sfpu_kind exact[] = {WEFT_SFPU_RECIP, WEFT_SFPU_RSQRT, WEFT_SFPU_RELU};
    node.sfpu = m->options->small ? exact[draw(m->c, 3)] : (weft_sfpu_kind)draw(m->c, WEFT_SFPU_COUNT);
    node.eps_nano = 1000;
    node.over = 7;
  }
  for (uint32_t i = 0; i < children; i++) node.child[i] = grow_body(m, nodes, n, count, depth - 1, next_operand);
  nodes[*n] = node;
  return (*n)++;
}

static uint32_t pointwise(maker *m, uint32_t x, bool same_extents) {
  const weft_value *v = value_of(m, x);
  const uint64_t rows = v->extents[0], cols = v->extents[1];
  const uint64_t shapes[][2] = {{rows, cols}, {1, cols}, {rows, 1}, {1, 1}};
  uint32_t ins[4] = {x}, count = 1 + (uint32_t)draw(m->c, 4), position = (uint32_t)draw(m->c, count);
  bool integers = m->options->integers;
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t *shape = shapes[same_extents ? 0 : draw(m->c, 4)];
    weft_format dtype = integers ? WEFT_INT8 : float_format(m);
    if (i == position)
      ins[i] = x;
    else
      ins[i] = !same_extents && draw(m->c, 4) == 0 ? new_param(m, dtype, 1, &cols) : new_param(m, dtype, 2, shape);
  }
  weft_body_node nodes[512];
  uint32_t n = 0, next = 0;
  grow_body(m, nodes, &n, count, 3, &next);
  if (n == 1) { // no plain copies: before a bias they are lifted as part of it
    nodes[1] = (weft_body_node){.kind = WEFT_BODY_CONST, .value = bits_of(1)};
    nodes[2] = (weft_body_node){.kind = WEFT_BODY_ADD, .child = {0, 1}};
    n = 3;
  }
  weft_format out = integers ? WEFT_INT32 : WEFT_FP32;
  return weft_graph_pointwise(m->graph, fresh(m, "pointwise"), ins, count, &(weft_body){nodes, n}, out);
}

static uint32_t add_block_op(maker *m, weft_graph_op *op, const weft_value *out) {
  weft_value v = *out;
  v.name = op->name = fresh(m, weft_graph_op_name(op->kind));
  v.role = WEFT_ROLE_ACTIVATION;
  op->section = m->graph->section_count - 1;
  op->out = weft_graph_add_value(m->graph, &v);
  return weft_graph_add_op(m->graph, op) == WEFT_NONE ? WEFT_NONE : op->out;
}

static uint32_t slice(maker *m, uint32_t x) {
  const weft_value v = *value_of(m, x);
  weft_value out = {.dtype = v.dtype, .rank = 2};
  if (v.extents[0] <= 1 && v.extents[1] <= 1)
    return weft_graph_relu(m->graph, fresh(m, "relu"), x); // nothing to cut off
  uint64_t starts[1][WEFT_MAX_RANK] = {{0}};
  do
    for (int d = 0; d < 2; d++) {
      starts[0][d] = draw(m->c, v.extents[d] + 1);
      out.extents[d] = draw(m->c, v.extents[d] - starts[0][d] + 1);
    }
  while (v.extents[0] && v.extents[1] &&
         (!out.extents[0] || !out.extents[1] ||
          (v.extents[0] + v.extents[1] > 2 && out.extents[0] == v.extents[0] && out.extents[1] == v.extents[1])));
  return add_block_op(
      m,
      &(weft_graph_op){
          .kind = WEFT_GRAPH_SLICE, .ins = &x, .in_count = 1, .starts = (const uint64_t(*)[WEFT_MAX_RANK])starts},
      &out);
}

/** Sorted random borders 0 = b[0] < .. < b[n] = extent. */
static uint32_t random_borders(maker *m, uint64_t extent, uint64_t *b) {
  uint32_t n = 0;
  b[0] = 0;
  while (b[n] < extent && n < 7) {
    b[n + 1] = b[n] + 1 + draw(m->c, toss(m->c) ? 12 : 40);
    if (b[n + 1] > extent) b[n + 1] = extent;
    n++;
  }
  b[n] = extent;
  return n;
}

/** x beside or above pieces that are parameters: a grid, or bands each cut in its own way. */
static uint32_t assemble(maker *m, uint32_t x) {
  const weft_value v = *value_of(m, x);
  if (!v.extents[0] || !v.extents[1]) return weft_graph_relu(m->graph, fresh(m, "relu"), x);
  uint64_t rows[9], cols[9], starts[64][WEFT_MAX_RANK] = {{0}};
  uint32_t ins[64] = {x}, count = 1;
  uint64_t extra = 1 + draw(m->c, 70);
  weft_value out = {.dtype = v.dtype, .rank = 2, .extents = {v.extents[0] + extra, v.extents[1]}};
  bool beside = toss(m->c), above = toss(m->c), own = toss(m->c);
  if (beside) {
    out.extents[0] = v.extents[0];
    out.extents[1] = v.extents[1] + extra;
  }
  const uint64_t height = beside ? v.extents[0] : extra, width = beside ? extra : v.extents[1];
  uint64_t row0 = beside ? 0 : v.extents[0], col0 = beside ? v.extents[1] : 0;
  if (above) { // x comes last
    starts[0][0] = beside ? 0 : extra;
    starts[0][1] = beside ? extra : 0;
    row0 = col0 = 0;
  }
  uint32_t row_count = random_borders(m, height, rows), col_count = random_borders(m, width, cols);
  for (uint32_t i = 0; i < row_count; i++) {
    if (own) col_count = random_borders(m, width, cols);
    for (uint32_t j = 0; j < col_count; j++) {
      const uint64_t extents[] = {rows[i + 1] - rows[i], cols[j + 1] - cols[j]};
      ins[count] = new_param(m, v.dtype, 2, extents);
      starts[count][0] = row0 + rows[i];
      starts[count][1] = col0 + cols[j];
      count++;
    }
  }
  return add_block_op(m,
                      &(weft_graph_op){.kind = WEFT_GRAPH_ASSEMBLE,
                                       .ins = ins,
                                       .in_count = count,
                                       .starts = (const uint64_t(*)[WEFT_MAX_RANK])starts},
                      &out);
}

static bool small(const maker *m, uint32_t x) {
  return value_of(m, x)->dtype == WEFT_INT8 || weft_format_is_float(value_of(m, x)->dtype);
}

static uint32_t head(maker *m, uint32_t x) {
  switch (draw(m->c, 8)) {
  case 0:
  case 1: return small(m, x) ? matmul(m, x) : pointwise(m, x, false);
  case 2: return pointwise(m, x, false);
  case 3: return bias(m, x);
  case 4: return weft_graph_relu(m->graph, fresh(m, "relu"), x);
  case 5: return slice(m, x);
  case 6: return assemble(m, x);
  default:
    return m->options->integers ? weft_graph_clamp(m->graph, fresh(m, "clamp"), x, -100, 50, WEFT_INT8)
                                : pointwise(m, x, true);
  }
}

static uint32_t epilogue(maker *m, uint32_t x) {
  switch (draw(m->c, m->options->integers ? 5 : 3)) {
  case 0: return value_of(m, x)->dtype == WEFT_INT8 ? x : bias(m, x);
  case 1: return weft_graph_relu(m->graph, fresh(m, "relu"), x);
  case 2: return pointwise(m, x, true);
  case 3:
    return weft_graph_requant(m->graph, fresh(m, "requant"), x, (int64_t)draw(m->c, 4001) - 2000,
                              9 + (uint32_t)draw(m->c, 6));
  default: return weft_graph_clamp(m->graph, fresh(m, "clamp"), x, -90, 80, WEFT_INT16);
  }
}

/** Whether the value is produced in the current section: a tidy section does not read it again. */
static bool is_new(const maker *m, uint32_t v) {
  return value_of(m, v)->producer != WEFT_NONE &&
         m->graph->ops[value_of(m, v)->producer].section == m->graph->section_count - 1;
}

static uint32_t pick(maker *m) {
  for (int tries = 0; tries < 50; tries++) {
    uint32_t v = m->pool[draw(m->c, m->pool_count)];
    if (!m->options->tidy || !is_new(m, v)) return v;
  }
  return m->pool[0];
}

/** Whether lowering would put the op behind `x` into one unit with it, when `x` has no other reader. */
static bool chains(const maker *m, uint32_t x) {
  const weft_value *v = value_of(m, x);
  if (v->producer == WEFT_NONE) return false;
  weft_graph_op_kind kind = m->graph->ops[v->producer].kind;
  return kind != WEFT_GRAPH_SLICE && kind != WEFT_GRAPH_ASSEMBLE &&
         (v->dtype == WEFT_FP32 || v->dtype == WEFT_INT32 || v->dtype == WEFT_INT64);
}

static uint32_t tamed(maker *m, uint32_t y) {
  weft_format dtype = value_of(m, y)->dtype;
  if (m->options->integers)
    return dtype == WEFT_INT8 || (m->options->tidy && !chains(m, y))
               ? y
               : weft_graph_clamp(m->graph, fresh(m, "clamp"), y, -128, 127, WEFT_INT8);
  if (dtype == WEFT_FP32 && chains(m, y) && toss(m->c)) weft_graph_store_as(m->graph, y, float_format(m));
  return y;
}

static void add_unit(maker *m) {
  uint32_t y = head(m, pick(m));
  for (uint64_t n = draw(m->c, 4); n > 0 && y != WEFT_NONE; n--)
    if (!m->options->tidy || chains(m, y)) y = epilogue(m, y);
  if (y == WEFT_NONE) return;
  y = tamed(m, y);
  if (value_of(m, y)->producer != WEFT_NONE && m->pool_count < 250) m->pool[m->pool_count++] = y;
}

static void name_outputs(maker *m) {
  for (uint32_t v = 0; v < m->graph->value_count; v++) {
    bool read = false;
    for (uint64_t i = 0; i < m->graph->op_count; i++)
      for (uint32_t j = 0; j < m->graph->ops[i].in_count; j++) read = read || m->graph->ops[i].ins[j] == v;
    bool wanted = !read || (!m->options->tidy && draw(m->c, 10) == 0);
    if (value_of(m, v)->producer != WEFT_NONE && wanted) weft_graph_output(m->graph, v, fresh(m, "y"));
  }
}

weft_graph *random_graph(chance *c, const random_graph_options *options, weft_diag *diag) {
  maker m = {.c = c, .graph = weft_graph_new("random", diag), .options = options};
  assert_non_null(m.graph);
  for (uint64_t n = 1 + draw(c, 2); n > 0; n--) {
    const uint64_t extents[] = {nonzero_extent(&m), nonzero_extent(&m)};
    m.pool[m.pool_count++] =
        weft_graph_input(m.graph, fresh(&m, "x"), options->integers ? WEFT_INT8 : float_format(&m), 2, extents);
  }
  for (uint64_t n = 1 + draw(c, 4); n > 0; n--) {
    weft_graph_section(m.graph, fresh(&m, "section"));
    for (uint64_t u = 1 + draw(c, 3); u > 0; u--) add_unit(&m);
  }
  name_outputs(&m);
  expect_ok(weft_graph_check(m.graph, diag), diag);
  return m.graph;
}

static float random_float(chance *c) {
  static const float specials[] = {0.0f, -0.0f, 1e-40f, -1e-42f, INFINITY, -INFINITY, NAN, 3e38f};
  if (draw(c, 200) == 0) return specials[draw(c, 8)];
  return ldexpf((float)((int64_t)draw(c, 1 << 20) - (1 << 19)), -(int)(16 + draw(c, 6)));
}

void random_inputs(chance *c, const weft_graph *graph, weft_array_set *set) {
  for (uint64_t v = 0; v < graph->value_count; v++) {
    const weft_value *value = &graph->values[v];
    if (value->producer != WEFT_NONE) continue;
    weft_array *array = weft_array_set_add(set, value->name, value->dtype, value->rank, value->extents);
    assert_non_null(array);
    bool floats = weft_format_is_float(value->dtype);
    int64_t low = value->has_range ? value->range.low : floats ? 0 : weft_format_min(value->dtype);
    int64_t high = value->has_range ? value->range.high : floats ? 0 : weft_format_max(value->dtype);
    for (uint64_t i = 0; i < weft_array_elements(array); i++) {
      if (floats)
        weft_store_f32(value->dtype, array->data, i, random_float(c));
      else
        assert_true(weft_store_i64(value->dtype, array->data, i, low + (int64_t)draw(c, (uint64_t)(high - low) + 1)));
    }
  }
}

/* ---- machine graphs -----------------------------------------------------------------------------------------------
 */

typedef struct scatter {
  chance *c;
  const weft_graph *from;
  weft_graph *to;
  uint32_t *map; /**< values */
  uint32_t chips, named;
} scatter;

static uint32_t copy_value(scatter *s, uint32_t v, uint16_t chip) {
  weft_value value = s->from->values[v];
  value.chip = chip;
  return weft_graph_add_value(s->to, &value);
}

static uint32_t add_part(scatter *s, uint32_t whole, uint64_t axis, uint64_t begin, uint64_t end, uint16_t chip,
                         uint32_t section) {
  weft_value value = s->to->values[whole];
  value.name = weft_arena_printf(s->to->arena, "part%u", s->named++);
  value.role = WEFT_ROLE_ACTIVATION;
  value.has_range = false;
  value.chip = chip;
  uint64_t starts[1][WEFT_MAX_RANK] = {{0}};
  starts[0][axis] = begin;
  value.extents[axis] = end - begin;
  weft_graph_op op = {.kind = WEFT_GRAPH_SLICE,
                      .name = value.name,
                      .section = section,
                      .chip = chip,
                      .ins = &whole,
                      .in_count = 1,
                      .starts = (const uint64_t(*)[WEFT_MAX_RANK])starts};
  op.out = weft_graph_add_value(s->to, &value);
  weft_graph_add_op(s->to, &op);
  return op.out;
}

static void add_node(scatter *s, const weft_graph_op *op, uint32_t first, uint32_t count, uint32_t of, uint32_t *nodes,
                     uint32_t *node_count) {
  uint32_t left = 1;
  while (left * 2 < count) left *= 2;
  if (count > 1 && (count == of || toss(s->c))) {
    add_node(s, op, first, left, of, nodes, node_count);
    add_node(s, op, first + left, count - left, of, nodes, node_count);
    return;
  }
  const weft_value *a = &s->from->values[op->ins[0]];
  uint64_t k = a->extents[a->rank - 1], begin = weft_segment_begin(k, op->segments, first),
           end = weft_segment_begin(k, op->segments, first + count);
  uint16_t chip = (uint16_t)draw(s->c, s->chips);
  uint32_t ins[] = {add_part(s, s->map[op->ins[0]], a->rank - 1, begin, end, chip, op->section),
                    add_part(s, s->map[op->ins[1]], 0, begin, end, chip, op->section)};
  weft_value value = s->from->values[op->out];
  value.name = weft_arena_printf(s->to->arena, "node%u", s->named++);
  value.role = WEFT_ROLE_ACTIVATION;
  value.dtype = WEFT_FP32;
  value.chip = chip;
  value.has_partial = true;
  value.partial = (weft_partial){WEFT_POOL_SUM, first, count, of};
  weft_graph_op part = *op;
  part.name = value.name;
  part.chip = chip;
  part.ins = ins;
  part.segments = count;
  part.factor_count = 0;
  part.out = weft_graph_add_value(s->to, &value);
  weft_graph_add_op(s->to, &part);
  nodes[(*node_count)++] = part.out;
}

static void scatter_op(scatter *s, const weft_graph_op *op) {
  uint16_t chip = (uint16_t)draw(s->c, s->chips);
  weft_graph_op copy = *op;
  uint32_t nodes[64], node_count = 0, *ins = calloc(op->in_count + 1u, sizeof *ins);
  assert_non_null(ins);
  const weft_value *a = &s->from->values[op->ins[0]];
  uint32_t of = op->kind == WEFT_GRAPH_MATMUL ? weft_segments_effective(a->extents[a->rank - 1], op->segments) : 1;
  for (uint32_t i = 0; i < op->in_count; i++) ins[i] = s->map[op->ins[i]];
  copy.ins = ins;
  if (op->kind == WEFT_GRAPH_MATMUL && op->acc == WEFT_ACC_F32 && of > 1 && draw(s->c, 4)) {
    add_node(s, op, 0, of, of, nodes, &node_count);
    copy = (weft_graph_op){
        .kind = WEFT_GRAPH_ALL_REDUCE, .name = op->name, .section = op->section, .ins = nodes, .in_count = node_count};
  }
  copy.chip = chip;
  copy.out = s->map[op->out] = copy_value(s, op->out, chip);
  weft_graph_add_op(s->to, &copy);
  free(ins);
}

weft_graph *scatter_graph(chance *c, const weft_graph *graph, uint32_t chips, weft_diag *diag) {
  scatter s = {.c = c,
               .from = graph,
               .to = weft_graph_new(graph->name, diag),
               .map = calloc(graph->value_count + 1, sizeof *s.map),
               .chips = chips};
  assert_non_null(s.to);
  s.to->chips = chips;
  for (uint32_t i = 0; i < graph->section_count; i++) weft_graph_section(s.to, graph->section_names[i]);
  for (uint32_t v = 0; v < graph->value_count; v++)
    if (graph->values[v].producer == WEFT_NONE) s.map[v] = copy_value(&s, v, (uint16_t)draw(c, chips));
  for (uint64_t i = 0; i < graph->op_count; i++) scatter_op(&s, &graph->ops[i]);
  free(s.map);
  expect_ok(weft_graph_check(s.to, diag), diag);
  return s.to;
}

/* ---- equality -----------------------------------------------------------------------------------------------------
 */

static uint64_t hash_text(uint64_t seed, const char *text) { return weft_hash_bytes(seed, text, strlen(text) + 1); }
static uint64_t hash_number(uint64_t seed, uint64_t number) { return weft_hash_bytes(seed, &number, sizeof number); }

static uint64_t hash_body(uint64_t h, const weft_body *body) {
  for (uint64_t i = 0; i < body->node_count; i++) {
    const weft_body_node *n = &body->nodes[i];
    h = hash_number(hash_number(hash_number(h, n->kind), n->kind == WEFT_BODY_UNARY ? n->sfpu : 0), n->value);
    for (int c = 0; c < 3; c++) h = hash_number(h, n->child[c]);
    if (n->kind == WEFT_BODY_UNARY && n->sfpu == WEFT_SFPU_RSQRT) h = hash_number(hash_number(h, n->eps_nano), n->over);
    if (n->kind == WEFT_BODY_SELECT)
      h = hash_number(hash_number(hash_number(hash_number(h, n->pred.ge), n->pred.operand_bound), n->pred.var),
                      n->pred.bound);
  }
  return h;
}

static int ascending(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static uint64_t hash_op(const weft_graph *g, const weft_graph_op *op, const uint64_t *hashes) {
  uint64_t h = hash_text(hash_text(hash_number(0, op->kind), op->name), g->section_names[op->section]);
  h = hash_number(h, op->kind == WEFT_GRAPH_MATMUL ? op->acc * 100u + op->segments : 0);
  h = hash_number(hash_number(h, (uint64_t)op->m), op->s);
  if (op->kind == WEFT_GRAPH_CLAMP) h = hash_number(hash_number(h, (uint64_t)op->low), (uint64_t)op->high);
  if (op->kind == WEFT_GRAPH_POINTWISE || op->kind == WEFT_GRAPH_REDUCE) h = hash_body(h, &op->body);
  if (op->kind == WEFT_GRAPH_GATHER) h = hash_number(hash_number(h, (uint64_t)op->low), (uint64_t)op->high);
  if (op->kind == WEFT_GRAPH_UPDATE) h = hash_number(h, op->axis);
  if (op->kind == WEFT_GRAPH_REDUCE) h = hash_number(hash_number(h, op->pool), op->segments);
  uint64_t *ins = calloc(op->in_count + 1u, sizeof *ins);
  assert_non_null(ins);
  for (uint32_t i = 0; i < op->in_count; i++) {
    ins[i] = hashes[op->ins[i]];
    for (uint32_t d = 0; op->starts && d < g->values[op->out].rank; d++) ins[i] = hash_number(ins[i], op->starts[i][d]);
  }
  if (op->kind == WEFT_GRAPH_ASSEMBLE) qsort(ins, op->in_count, sizeof *ins, ascending);
  for (uint32_t i = 0; i < op->in_count; i++) h = hash_number(h, ins[i]);
  free(ins);
  return h;
}

static uint64_t hash_value(const weft_value *v, uint64_t producer) {
  uint64_t h = hash_number(hash_number(hash_text(producer, v->name), v->role), v->dtype);
  h = hash_number(h, v->rank);
  for (uint32_t d = 0; d < v->rank; d++) h = hash_number(h, v->extents[d]);
  h = hash_number(h, v->has_range);
  if (v->has_range) h = hash_number(hash_number(h, (uint64_t)v->range.low), (uint64_t)v->range.high);
  return hash_number(h, v->init.kind);
}

static uint64_t *graph_hashes(const weft_graph *g) {
  uint64_t *hashes = calloc(g->value_count + 1, sizeof *hashes);
  assert_non_null(hashes);
  for (uint64_t v = 0; v < g->value_count; v++)
    if (g->values[v].producer == WEFT_NONE) hashes[v] = hash_value(&g->values[v], 0);
  for (uint64_t i = 0; i < g->op_count; i++)
    hashes[g->ops[i].out] = hash_value(&g->values[g->ops[i].out], hash_op(g, &g->ops[i], hashes));
  qsort(hashes, g->value_count, sizeof *hashes, ascending);
  return hashes;
}

static void print_graph(const weft_graph *g) {
  weft_text text = {0};
  weft_graph_dot(g, &text);
  for (uint64_t i = 0; i < g->op_count; i++) {
    weft_text_printf(&text, "# %s in %s:", g->ops[i].name, g->section_names[g->ops[i].section]);
    for (uint32_t j = 0; j < g->ops[i].in_count; j++) weft_text_printf(&text, " %s", g->values[g->ops[i].ins[j]].name);
    weft_text_printf(&text, " -> %s\n", g->values[g->ops[i].out].name);
  }
  fprintf(stderr, "%s\n", text.data);
  weft_text_free(&text);
}

void expect_equal_graphs(const weft_graph *a, const weft_graph *b) {
  uint64_t *x = graph_hashes(a), *y = graph_hashes(b);
  bool equal =
      a->value_count == b->value_count && a->op_count == b->op_count && memcmp(x, y, a->value_count * sizeof *x) == 0;
  free(x);
  free(y);
  if (equal) return;
  print_graph(a);
  print_graph(b);
  fail_msg("the graphs differ: %llu and %llu values", (unsigned long long)a->value_count,
           (unsigned long long)b->value_count);
}

static void expect_equal_arrays(const weft_array *a, const weft_array *b) {
  weft_difference difference;
  weft_diag *diag = weft_diag_new();
  weft_array x = *a;
  if (x.rank != b->rank) { // seen as planes
    weft_plane_extents(a->rank, a->extents, &x.extents[0], &x.extents[1]);
    x.rank = 2;
  }
  expect_ok(weft_array_compare(&x, b, &difference, diag), diag);
  weft_diag_free(diag);
  if (difference.differing)
    fail_msg("'%s' differs at %llu elements, first %llu", a->name, (unsigned long long)difference.differing,
             (unsigned long long)difference.first_index);
}

void expect_equal_sets(const weft_array_set *a, const weft_array_set *b) {
  assert_int_equal(a->count, b->count);
  for (uint64_t i = 0; i < a->count; i++) {
    const weft_array *other = weft_array_set_find(b, a->items[i].name);
    assert_non_null(other);
    expect_equal_arrays(&a->items[i], other);
  }
}
