/* Generics: iteration spaces, access maps, reductions; scalar bodies. */
#include "evaluate_private.h"

#include <math.h>
#include <string.h>

#define MAX_AXES 8

typedef struct generic_run {
  machine *m;
  engine *e;
  const weft_op *op;
  const weft_generic *generic;
  accumulator *acc;
  plane *planes;
  body_value *operands, *nodes;
  body_value *line[MAX_AXES]; /**< the values of a reduced axis */
  uint32_t vars[MAX_AXES];
  uint64_t at[MAX_AXES];
  bool integer;      /**< the body's mode */
  bool index_valued; /**< the result is an ArgMax */
  step_result result;
} generic_run;

/* ---- planes ---- */

static step_result acc_plane(generic_run *g, plane *p, weft_format format) {
  machine *m = g->m;
  uint64_t elements = g->acc->tiles * machine_tile_elements(m);
  bool floats = weft_format_is_float(format);
  if (!g->acc->computed) return machine_fault(m, g->e, g->op, "reads an accumulator that nothing was computed into");
  if (floats != (g->acc->kind == FOLD_FLOAT))
    return machine_fault(m, g->e, g->op, "reads an accumulator of another kind than its buffer's");
  float *copy = WEFT_NEW_ARRAY(m->arena, float, floats ? elements : 0);
  int64_t *integers = WEFT_NEW_ARRAY(m->arena, int64_t, floats ? 0 : elements);
  if (!copy || !integers) return machine_no_memory(m);
  if (floats)
    memcpy(copy, g->acc->values[0], elements * sizeof *copy);
  else
    memcpy(integers, g->acc->integers, elements * sizeof *integers);
  *p = (plane){.format = format, .floats = floats ? copy : NULL, .integers = floats ? NULL : integers};
  p->faults = g->acc->more.faults;
  p->cols = g->acc->tiles * m->program->tile_cols;
  return STEP_DONE;
}

static step_result make_planes(generic_run *g) {
  machine *m = g->m;
  for (uint64_t i = 0; i < g->op->compute.in_count; i++) {
    uint32_t buffer = g->op->compute.ins[i];
    plane *p = &g->planes[i];
    weft_format format = m->program->buffers[buffer].dtype;
    if (plan_buffer_is_acc(m->program, buffer)) {
      step_result result = acc_plane(g, p, format);
      if (result != STEP_DONE) return result;
    } else {
      const page *front = ring_front_page(m, g->e, g->op, buffer);
      if (!front) return STEP_FAULT;
      *p = (plane){.source = front, .format = format, .faults = front->more.faults};
      p->cols = front->tiles * m->program->tile_cols;
    }
    p->rows = m->program->tile_rows;
  }
  return STEP_DONE;
}

/** Where element `offset` of a plane lies in its tiles; false outside the plane. */
static bool locate(const machine *m, uint64_t rows, uint64_t cols, int64_t offset, uint64_t *index) {
  if (offset < 0 || cols == 0 || (uint64_t)offset / cols >= rows) return false;
  uint64_t row = (uint64_t)offset / cols, col = (uint64_t)offset % cols, width = m->program->tile_cols;
  *index = col / width * machine_tile_elements(m) + row * width + col % width;
  return true;
}

/** The value of a plane at an offset, in both kinds; outside it is 0. */
static body_value read_plane(const generic_run *g, const plane *p, int64_t offset) {
  body_value v = {0};
  uint64_t index;
  if (!locate(g->m, p->rows, p->cols, offset, &index)) return v;
  if (weft_format_is_float(p->format)) {
    v.f = p->floats ? p->floats[index] : weft_load_f32(p->format, p->source->data, index);
    if (fabsf(v.f) < 0x1p62f) v.i = (int64_t)v.f;
  } else {
    v.i = p->integers ? p->integers[index] : weft_load_i64(p->format, p->source->data, index);
    v.f = (float)v.i;
  }
  if (p->faults) v.fault = p->faults[index];
  return v;
}

/* ---- maps ---- */

static int64_t affine(const generic_run *g, const weft_elem_access *map) {
  uint64_t offset = (uint64_t)map->base;
  for (uint64_t i = 0; i < map->term_count; i++)
    for (uint64_t a = 0; a < g->generic->iter_count; a++)
      if (g->vars[a] == map->terms[i].var) offset += g->at[a] * (uint64_t)map->terms[i].stride;
  return (int64_t)offset;
}

/** Adds the indirect term: the operand's value here times the stride, taken modulo the modulus (never negative). */
static int64_t map_offset(const generic_run *g, const weft_elem_access *map, uint32_t *fault) {
  int64_t offset = affine(g, map);
  const weft_indirect_term *term = map->indirect;
  if (!term) return offset;
  if (term->operand >= g->op->compute.in_count || term->modulus == 0) {
    *fault = machine_element_fault(g->m, g->op, "an index from an operand that does not exist");
    return offset;
  }
  const plane *p = &g->planes[term->operand];
  body_value v = read_plane(g, p, affine(g, &g->generic->ins[term->operand]));
  if (v.fault)
    *fault = v.fault;
  else if (weft_format_is_float(p->format) && (float)v.i != v.f)
    *fault = machine_element_fault(g->m, g->op, "an index that is no whole number");
  __int128 product = (__int128)v.i * term->stride % (__int128)term->modulus;
  if (product < 0) product += (__int128)term->modulus;
  return (int64_t)((uint64_t)offset + (uint64_t)product);
}

/* ---- folds ---- */

static body_value fold_start(weft_pool pool, bool integer) {
  body_value v = {0};
  if (pool == WEFT_POOL_MAX) v = (body_value){.f = -INFINITY, .i = INT64_MIN};
  if (pool == WEFT_POOL_MIN) v = (body_value){.f = INFINITY, .i = INT64_MAX};
  if (pool == WEFT_POOL_AND) v = (body_value){.f = 1.0f, .i = -1};
  (void)integer;
  return v;
}

static body_value fold_two(const generic_run *g, weft_pool pool, body_value a, body_value b) {
  body_value r = {.fault = a.fault ? a.fault : b.fault};
  switch (pool) {
  case WEFT_POOL_SUM:
    r.f = a.f + b.f;
    if (g->integer && __builtin_add_overflow(a.i, b.i, &r.i) && !r.fault)
      r.fault = machine_element_fault(g->m, g->op, "a sum that leaves 64 bits");
    break;
  case WEFT_POOL_MAX:
    r.f = weft_maximum_f32(a.f, b.f);
    r.i = a.i > b.i ? a.i : b.i;
    break;
  case WEFT_POOL_MIN:
    r.f = weft_minimum_f32(a.f, b.f);
    r.i = a.i < b.i ? a.i : b.i;
    break;
  case WEFT_POOL_AND:
    r.f = a.f != 0.0f && b.f != 0.0f;
    r.i = a.i & b.i;
    break;
  default:
    r.f = a.f != 0.0f || b.f != 0.0f;
    r.i = a.i | b.i;
    break;
  }
  return r;
}

/** The tree over n values that splits at the largest power of two below n. */
static body_value fold_tree(const generic_run *g, const body_value *values, uint64_t n) {
  if (n == 1) return values[0];
  uint64_t half = 1;
  while (half * 2 < n) half *= 2;
  return fold_two(g, WEFT_POOL_SUM, fold_tree(g, values, half), fold_tree(g, values + half, n - half));
}

#define LANES 16

/** One segment of a row sum: lanes of every sixteenth element, ascending, then the tree over the lanes that have any.
 */
static body_value sum_segment(const generic_run *g, const body_value *values, uint64_t n) {
  body_value lanes[LANES];
  uint64_t used = weft_min_u64(n, LANES);
  for (uint64_t l = 0; l < used; l++) {
    lanes[l] = (body_value){0};
    for (uint64_t i = l; i < n; i += LANES) lanes[l] = fold_two(g, WEFT_POOL_SUM, lanes[l], values[i]);
  }
  return fold_tree(g, lanes, used);
}

static body_value sum_segments(const generic_run *g, const body_value *values, uint64_t n, uint32_t segments) {
  uint32_t count = weft_segments_effective(n, segments);
  body_value *results = WEFT_NEW_ARRAY(g->m->arena, body_value, count);
  if (!results || n == 0) return (body_value){0};
  for (uint32_t s = 0; s < count; s++) {
    uint64_t begin = weft_segment_begin(n, count, s), end = weft_segment_begin(n, count, s + 1);
    results[s] = sum_segment(g, values + begin, end - begin);
  }
  return fold_tree(g, results, count);
}

/** The lowest index of the greatest; a NaN first is never replaced, a NaN later never replaces. */
static body_value arg_max(const generic_run *g, const body_value *values, uint64_t n) {
  if (n == 0) return (body_value){.fault = machine_element_fault(g->m, g->op, "the greatest of nothing")};
  uint64_t best = 0;
  uint32_t fault = values[0].fault;
  for (uint64_t i = 1; i < n; i++) {
    if (values[i].fault && !fault) fault = values[i].fault;
    bool greater = g->integer ? values[i].i > values[best].i : values[i].f > values[best].f;
    if (greater) best = i;
  }
  return (body_value){.f = (float)best, .i = (int64_t)best, .fault = fault};
}

static body_value fold_line(const generic_run *g, const weft_iter *axis, const body_value *values) {
  if (axis->pool == WEFT_POOL_ARG_MAX) return arg_max(g, values, axis->extent);
  if (axis->pool == WEFT_POOL_SUM && axis->segments && !g->integer)
    return sum_segments(g, values, axis->extent, axis->segments);
  body_value sum = fold_start(axis->pool, g->integer);
  for (uint64_t i = 0; i < axis->extent; i++) sum = fold_two(g, axis->pool, sum, values[i]);
  return sum;
}

/* ---- points ---- */

static body_value evaluate_point(generic_run *g) {
  const weft_generic *generic = g->generic;
  for (uint64_t i = 0; i < generic->in_count; i++) {
    uint32_t fault = 0;
    g->operands[i] = read_plane(g, &g->planes[i], map_offset(g, &generic->ins[i], &fault));
    if (fault) g->operands[i].fault = fault;
  }
  body_point point = {.operands = g->operands,
                      .operand_count = generic->in_count,
                      .vars = g->vars,
                      .at = g->at,
                      .var_count = generic->iter_count};
  return body_evaluate(g->m, g->op, &generic->body, g->integer, &point, g->nodes);
}

/** The value at the point of the parallel axes: folded over the reduced ones from `axis` on. */
static body_value evaluate_folded(generic_run *g, uint64_t axis) {
  const weft_generic *generic = g->generic;
  while (axis < generic->iter_count && !generic->iters[axis].reduce) axis++;
  if (axis == generic->iter_count) return evaluate_point(g);
  const weft_iter *iter = &generic->iters[axis];
  for (g->at[axis] = 0; g->at[axis] < iter->extent; g->at[axis]++)
    g->line[axis][g->at[axis]] = evaluate_folded(g, axis + 1);
  g->at[axis] = 0;
  return fold_line(g, iter, g->line[axis]);
}

static bool write_point(generic_run *g, body_value v) {
  machine *m = g->m;
  accumulator *acc = g->acc;
  uint32_t fault = v.fault;
  uint64_t index, elements = acc->tiles * machine_tile_elements(m);
  int64_t offset = map_offset(g, &g->generic->out, &fault);
  if (!locate(m, m->program->tile_rows, acc->tiles * m->program->tile_cols, offset, &index)) {
    g->result = machine_fault(m, g->e, g->op, "the output map leaves its page at offset %lld", (long long)offset);
    return false;
  }
  if (acc->kind == FOLD_FLOAT)
    acc->values[0][index] = v.f;
  else
    acc->integers[index] = v.i;
  if (acc->more.written) acc->more.written[index] = 1;
  if (fault && !extra_faults(m, &acc->more, elements)) {
    g->result = machine_no_memory(m);
    return false;
  }
  if (acc->more.faults) acc->more.faults[index] = fault;
  return true;
}

static bool walk_parallel(generic_run *g, uint64_t axis) {
  const weft_generic *generic = g->generic;
  while (axis < generic->iter_count && generic->iters[axis].reduce) axis++;
  if (axis == generic->iter_count) return write_point(g, evaluate_folded(g, 0));
  for (uint64_t i = 0; i < generic->iters[axis].extent; i++) {
    g->at[axis] = i;
    if (!walk_parallel(g, axis + 1)) return false;
  }
  return true;
}

/* ---- the op ---- */

static step_result check_generic(machine *m, engine *e, const weft_op *op, const weft_generic *generic) {
  if (generic->iter_count > MAX_AXES) return machine_fault(m, e, op, "has more than %d axes", MAX_AXES);
  if (generic->in_count != op->compute.in_count)
    return machine_fault(m, e, op, "has %llu maps for %llu operands", (unsigned long long)generic->in_count,
                         (unsigned long long)op->compute.in_count);
  for (uint64_t i = 0; i < generic->body.node_count; i++)
    for (int c = 0; c < 3; c++)
      if (generic->body.nodes[i].child[c] >= i && generic->body.nodes[i].child[c])
        return machine_fault(m, e, op, "has a body that is not in post-order");
  return STEP_DONE;
}

static bool is_integer_mode(const machine *m, const weft_op *op, const weft_generic *generic) {
  const weft_stage *stage = &m->program->stages[op->stage];
  if (!body_is_integral(&generic->body)) return false;
  for (uint64_t i = 0; i < op->compute.in_count; i++)
    if (weft_format_is_float(m->program->buffers[op->compute.ins[i]].dtype)) return false;
  return stage->out_count && !weft_format_is_float(m->program->buffers[stage->outs[0]].dtype);
}

static bool make_lines(generic_run *g) {
  const weft_generic *generic = g->generic;
  for (uint64_t a = 0; a < generic->iter_count; a++) {
    g->vars[a] = generic->iters[a].var;
    if (!generic->iters[a].reduce) continue;
    g->line[a] = WEFT_NEW_ARRAY(g->m->arena, body_value, generic->iters[a].extent);
    if (!g->line[a]) return false;
    if (generic->iters[a].pool == WEFT_POOL_ARG_MAX) g->index_valued = true;
  }
  return true;
}

static void clear_acc(generic_run *g) {
  accumulator *acc = g->acc;
  uint64_t elements = acc->tiles * machine_tile_elements(g->m);
  memset(acc->values[0], 0, elements * sizeof(float));
  memset(acc->integers, 0, elements * sizeof(int64_t));
  acc->kind = g->integer || g->index_valued ? FOLD_INTEGER : FOLD_FLOAT;
  acc->more = (extra){0};
  acc->computed = true;
}

step_result compute_generic(machine *m, engine *e, const weft_op *op, const weft_generic *generic) {
  step_result result = check_generic(m, e, op, generic);
  if (result != STEP_DONE) return result;
  weft_arena *whole = m->arena;
  weft_arena *scratch = weft_arena_new();
  if (!scratch) return machine_no_memory(m);
  generic_run g = {.m = m, .e = e, .op = op, .generic = generic, .acc = &e->acc, .result = STEP_DONE};
  g.planes = WEFT_NEW_ARRAY(scratch, plane, op->compute.in_count + 1);
  g.operands = WEFT_NEW_ARRAY(scratch, body_value, op->compute.in_count + 1);
  g.nodes = WEFT_NEW_ARRAY(scratch, body_value, generic->body.node_count + 1);
  g.integer = is_integer_mode(m, op, generic);
  m->arena = scratch;
  bool made = g.planes && g.operands && g.nodes && make_lines(&g);
  result = made ? make_planes(&g) : machine_no_memory(m);
  m->arena = whole;
  if (result == STEP_DONE) {
    clear_acc(&g);
    uint64_t elements = e->acc.tiles * machine_tile_elements(m);
    if (generic->out.indirect && !extra_written(m, &e->acc.more, elements))
      result = machine_no_memory(m);
    else if (!walk_parallel(&g, 0))
      result = g.result;
  }
  weft_arena_free(scratch);
  return result;
}

/* ---- scalar bodies ---- */

static int64_t source_of(const weft_src *src, const int64_t *inputs, const int64_t *cells) {
  if (src->kind == WEFT_SRC_CONST) return src->constant;
  return src->kind == WEFT_SRC_INPUT ? inputs[src->index] : cells[src->index];
}

/** A cell of the integer datapath: 64 bits, wrapping. */
static int64_t run_cell(const weft_cell *cell, int64_t a, int64_t b, int64_t c) {
  uint64_t x = (uint64_t)a, y = (uint64_t)b;
  switch (cell->op) {
  case WEFT_CELL_ADD: return (int64_t)(x + y);
  case WEFT_CELL_SUB: return (int64_t)(x - y);
  case WEFT_CELL_MUL: return (int64_t)(x * y);
  case WEFT_CELL_AND: return (int64_t)(x & y);
  case WEFT_CELL_OR: return (int64_t)(x | y);
  case WEFT_CELL_XOR: return (int64_t)(x ^ y);
  case WEFT_CELL_SHL: return (int64_t)(x << (y & 63));
  case WEFT_CELL_ASHR: return a >> (y & 63);
  case WEFT_CELL_LSHR: return (int64_t)(x >> (y & 63));
  case WEFT_CELL_MIN: return a < b ? a : b;
  case WEFT_CELL_MAX: return a > b ? a : b;
  case WEFT_CELL_LT: return a < b;
  case WEFT_CELL_EQ: return a == b;
  case WEFT_CELL_SELECT: return a ? b : c;
  default: return a;
  }
}

static bool source_exists(const weft_src *src, uint64_t inputs, uint64_t cells) {
  return src->kind == WEFT_SRC_CONST || src->index < (src->kind == WEFT_SRC_INPUT ? inputs : cells);
}

static step_result check_scalar(machine *m, engine *e, const weft_op *op, const weft_scalar_body *body) {
  if (body->n_in != op->compute.in_count)
    return machine_fault(m, e, op, "a body of %llu inputs has %llu operands", (unsigned long long)body->n_in,
                         (unsigned long long)op->compute.in_count);
  bool fits = source_exists(&body->result, body->n_in, body->cell_count);
  for (uint64_t c = 0; c < body->cell_count && fits; c++) {
    const weft_cell *cell = &body->cells[c];
    fits = source_exists(&cell->a, body->n_in, c) && source_exists(&cell->b, body->n_in, c) &&
           (!cell->has_c || source_exists(&cell->c, body->n_in, c)) && (cell->op != WEFT_CELL_SELECT || cell->has_c);
  }
  return fits ? STEP_DONE : machine_fault(m, e, op, "a cell reads what is not computed before it");
}

static step_result scalar_pages(machine *m, engine *e, const weft_op *op, const page **pages) {
  for (uint64_t i = 0; i < op->compute.in_count; i++) {
    pages[i] = ring_front_page(m, e, op, op->compute.ins[i]);
    if (!pages[i]) return STEP_FAULT;
    if (weft_format_is_float(m->program->buffers[op->compute.ins[i]].dtype))
      return machine_fault(m, e, op, "a scalar body computes on integers");
    if (pages[i]->tiles < e->acc.tiles) return machine_fault(m, e, op, "an operand has fewer tiles than the result");
  }
  return STEP_DONE;
}

step_result compute_scalar(machine *m, engine *e, const weft_op *op, const weft_scalar_body *body) {
  accumulator *acc = &e->acc;
  step_result result = check_scalar(m, e, op, body);
  if (result != STEP_DONE) return result;
  weft_arena *scratch = weft_arena_new();
  const page **pages = scratch ? WEFT_NEW_ARRAY(scratch, const page *, op->compute.in_count + 1) : NULL;
  int64_t *inputs = scratch ? WEFT_NEW_ARRAY(scratch, int64_t, op->compute.in_count + 1) : NULL;
  int64_t *cells = scratch ? WEFT_NEW_ARRAY(scratch, int64_t, body->cell_count + 1) : NULL;
  result = pages && inputs && cells ? scalar_pages(m, e, op, pages) : machine_no_memory(m);
  acc->kind = FOLD_INTEGER;
  acc->computed = true;
  for (uint64_t i = 0; result == STEP_DONE && i < acc->tiles * machine_tile_elements(m); i++) {
    uint32_t fault = 0;
    for (uint64_t n = 0; n < op->compute.in_count; n++) {
      inputs[n] = weft_load_i64(m->program->buffers[op->compute.ins[n]].dtype, pages[n]->data, i);
      if (pages[n]->more.faults && pages[n]->more.faults[i]) fault = pages[n]->more.faults[i];
    }
    for (uint64_t c = 0; c < body->cell_count; c++) {
      const weft_cell *cell = &body->cells[c];
      int64_t third = cell->has_c ? source_of(&cell->c, inputs, cells) : 0;
      cells[c] = run_cell(cell, source_of(&cell->a, inputs, cells), source_of(&cell->b, inputs, cells), third);
    }
    acc->integers[i] = source_of(&body->result, inputs, cells);
    if (!fault) continue;
    if (!extra_faults(m, &acc->more, acc->tiles * machine_tile_elements(m)))
      result = machine_no_memory(m);
    else
      acc->more.faults[i] = fault;
  }
  if (scratch) weft_arena_free(scratch);
  return result;
}
