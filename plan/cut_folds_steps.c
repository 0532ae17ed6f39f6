/* The steps that a fold in column blocks is made of. */
#include "cut_folds.h"

#include <string.h>

/* ---- new parts ---- */

void *cut_copy(cutter *c, const void *items, uint64_t count, size_t size) {
  void *copy = weft_arena_array(c->program->arena, count, size);
  if (!copy) c->failed = true;
  if (copy && count) memcpy(copy, items, count * size);
  return copy;
}

static bool starts_with_element(const fold *f) { return f->pool != WEFT_POOL_SUM; }

/** Whether a map moves down with the rows: one row for all does not. */
static bool has_rows(const weft_elem_access *map) {
  for (uint64_t i = 0; i < map->term_count; i++)
    if (map->terms[i].var == WEFT_VAR_GEN_ROW && map->terms[i].stride) return true;
  return false;
}

/** A ring beside the fold's result. */
static uint32_t add_buffer(cutter *c, const fold *f, const char *name, weft_buffer_kind kind, uint64_t depth,
                           uint64_t tiles, weft_format dtype) {
  const weft_optional_site site = c->program->buffers[c->program->stages[f->stage].outs[0]].site;
  if (!weft_arena_grow(c->scratch, &c->buffers, c->buffer_count, &c->buffer_capacity, sizeof *c->buffers)) {
    c->failed = true;
    return 0;
  }
  weft_buffer *buffer = &c->buffers[c->buffer_count];
  *buffer = (weft_buffer){.id = (uint32_t)(c->program->buffer_count + c->buffer_count),
                          .name = name,
                          .kind = kind,
                          .depth_pages = depth,
                          .page_tiles = tiles,
                          .dtype = dtype,
                          .space = WEFT_MEM_LOCAL,
                          .site = site,
                          .origin = WEFT_NONE,
                          .alias_of = WEFT_NONE};
  c->buffer_count++;
  return buffer->id;
}

/** A stage like the fold's in everything but what it does. */
static weft_stage *add_stage(cutter *c, const fold *f, const char *suffix, const uint32_t *ins, uint64_t in_count,
                             uint32_t out) {
  if (!weft_arena_grow(c->scratch, &c->stages, c->stage_count, &c->stage_capacity, sizeof *c->stages)) {
    c->failed = true;
    return NULL;
  }
  weft_stage *stage = &c->stages[c->stage_count];
  *stage = c->program->stages[f->stage];
  stage->id = (uint32_t)(c->program->stage_count + c->stage_count);
  stage->name = weft_arena_printf(c->program->arena, "%s.%s", stage->name, suffix);
  stage->ins = cut_copy(c, ins, in_count, sizeof *ins);
  stage->in_count = in_count;
  stage->outs = cut_copy(c, &out, 1, sizeof out);
  stage->out_count = 1;
  c->stage_count++;
  if (!stage->name) c->failed = true;
  return c->failed ? NULL : stage;
}

static void add_edge(cutter *c, uint32_t from, uint32_t buffer, const uint32_t *to, uint64_t to_count) {
  if (!weft_arena_grow(c->scratch, &c->edges, c->edge_count, &c->edge_capacity, sizeof *c->edges)) {
    c->failed = true;
    return;
  }
  c->edges[c->edge_count++] = (weft_edge){.from = from,
                                          .buffer = buffer,
                                          .to = cut_copy(c, to, to_count, sizeof *to),
                                          .to_count = to_count,
                                          .handshake = WEFT_HANDSHAKE_FIFO};
}

/** Which columns of the operands a set of Loads brings. */
typedef enum columns { FIRST, BLOCKS, TAIL } columns;

static weft_access_pattern pattern_of(cutter *c, const fold *f, const weft_access_pattern *whole, columns which) {
  weft_access_pattern p = *whole;
  weft_step *steps = WEFT_NEW_ARRAY(c->program->arena, weft_step, p.origin.step_count + 1);
  if (!steps) {
    c->failed = true;
    return p;
  }
  if (p.origin.step_count) memcpy(steps, p.origin.steps, p.origin.step_count * sizeof *steps);
  p.block_w = which == FIRST ? 1 : which == BLOCKS ? f->block : f->tail;
  if (which == TAIL) p.origin.base += f->blocks * f->block;
  if (which == BLOCKS) steps[p.origin.step_count++] = (weft_step){WEFT_VAR_K_BLOCK, f->block};
  p.origin.steps = steps;
  return p;
}

/** Loads of all operands; `buffers` receives theirs and `loads` their stages. */
static void add_loads(cutter *c, const fold *f, columns which, uint32_t *buffers, uint32_t *loads) {
  static const char *const suffix[] = {"first", "block", "rest"};
  const weft_stage *stage = &c->program->stages[f->stage];
  for (uint64_t i = 0; i < stage->in_count && !c->failed; i++) {
    const weft_buffer *whole = &c->program->buffers[stage->ins[i]];
    const weft_stage *load = &c->program->stages[plan_only_producer(c->ports, stage->ins[i])];
    bool along;
    cut_is_row_map(&stage->compute->generic.ins[i], &along);
    uint64_t tiles = !along ? whole->page_tiles : which == FIRST ? 1 : which == BLOCKS ? f->block : f->tail;
    weft_buffer_kind kind = which == BLOCKS && cut_carries_index(f) ? WEFT_BUFFER_INTERM : WEFT_BUFFER_FIFO;
    buffers[i] = add_buffer(c, f, whole->name, kind, along && which == BLOCKS ? 2 : 1, tiles, whole->dtype);
    weft_stage *added = add_stage(c, f, suffix[which], NULL, 0, buffers[i]);
    if (!added) return;
    loads[i] = added->id;
    added->name = weft_arena_printf(c->program->arena, "%s.%s", load->name, suffix[which]);
    added->kind = WEFT_STAGE_LOAD;
    added->role = load->role;
    added->load = load->load;
    if (!along) continue;
    added->load.pattern = pattern_of(c, f, &load->load.pattern, which);
    if (which == BLOCKS) added->load.num_blocks = f->blocks;
  }
}

/* ---- bodies and maps ---- */

static weft_elem_access map_of(cutter *c, int64_t base, int64_t row, int64_t col) {
  weft_term *terms = WEFT_NEW_ARRAY(c->program->arena, weft_term, 2);
  weft_elem_access map = {.base = base, .terms = terms};
  if (!terms) {
    c->failed = true;
    return map;
  }
  if (row) terms[map.term_count++] = (weft_term){WEFT_VAR_GEN_ROW, row};
  if (col) terms[map.term_count++] = (weft_term){WEFT_VAR_GEN_COL, col};
  return map;
}

/** Elements of a row of the page that operand `i` has, among the columns `which`. */
static int64_t row_width(const cutter *c, const fold *f, columns which) {
  uint64_t tiles = which == FIRST ? 1 : which == BLOCKS ? f->block : f->tail;
  return (int64_t)(tiles * c->program->tile_cols);
}

/** The maps of the fold's operands over pages of the columns `which`, `shift` to the left, into maps[0..]. */
static void map_operands(cutter *c, const fold *f, columns which, int64_t shift, weft_elem_access *maps) {
  const weft_generic *g = &c->program->stages[f->stage].compute->generic;
  for (uint64_t i = 0; i < g->in_count; i++) {
    bool along;
    cut_is_row_map(&g->ins[i], &along);
    maps[i] = along ? map_of(c, -shift, has_rows(&g->ins[i]) ? row_width(c, f, which) : 0, 1) : g->ins[i];
  }
}

static uint32_t add_node(weft_body *body, const weft_body_node *node) {
  ((weft_body_node *)body->nodes)[body->node_count] = *node;
  return (uint32_t)body->node_count++;
}

static uint32_t operand_node(weft_body *body, uint64_t operand) {
  return add_node(body, &(weft_body_node){.kind = WEFT_BODY_OPERAND, .value = operand});
}

static uint32_t constant_node(weft_body *body, double value) {
  weft_body_node node = {.kind = WEFT_BODY_CONST};
  memcpy(&node.value, &value, sizeof value);
  return add_node(body, &node);
}

static uint32_t binary_node(weft_body *body, weft_body_kind kind, uint32_t a, uint32_t b) {
  return add_node(body, &(weft_body_node){.kind = kind, .child = {a, b}});
}

/** The nodes of the fold's own body; its root. */
static uint32_t fold_nodes(const cutter *c, const fold *f, weft_body *body) {
  const weft_body *own = &c->program->stages[f->stage].compute->generic.body;
  uint32_t first = (uint32_t)body->node_count, root = first;
  for (uint64_t i = 0; i < own->node_count; i++) {
    weft_body_node node = own->nodes[i];
    bool leaf = node.kind == WEFT_BODY_OPERAND || node.kind == WEFT_BODY_CONST;
    int children = leaf                                                         ? 0
                   : node.kind == WEFT_BODY_SHR || node.kind == WEFT_BODY_UNARY ? 1
                   : node.kind == WEFT_BODY_VALUE_SELECT                        ? 3
                                                                                : 2;
    for (int k = 0; k < children; k++) node.child[k] += first;
    root = add_node(body, &node);
  }
  return root;
}

static weft_body new_body(cutter *c, const fold *f) {
  uint64_t most = c->program->stages[f->stage].compute->generic.body.node_count + 16;
  weft_body body = {.nodes = WEFT_NEW_ARRAY(c->program->arena, weft_body_node, most)};
  if (!body.nodes) c->failed = true;
  return body;
}

/** Makes the stage a Generic over 32 rows and `cols` columns, folded with the fold's pool where `reduce`. */
static void set_generic(cutter *c, const fold *f, weft_stage *stage, uint64_t cols, bool reduce, weft_elem_access *maps,
                        weft_body body) {
  weft_compute_op *op = WEFT_NEW(c->program->arena, weft_compute_op);
  weft_iter *iters = WEFT_NEW_ARRAY(c->program->arena, weft_iter, 2);
  if (!op || !iters || c->failed) {
    c->failed = true;
    return;
  }
  iters[0] = c->program->stages[f->stage].compute->generic.iters[0];
  iters[1] = (weft_iter){.var = WEFT_VAR_GEN_COL, .extent = cols, .reduce = reduce, .pool = reduce ? f->pool : 0};
  op->kind = WEFT_COMPUTE_GENERIC;
  op->generic = (weft_generic){.iters = iters,
                               .iter_count = 2,
                               .ins = maps,
                               .in_count = stage->in_count,
                               .out = map_of(c, 0, (int64_t)c->program->tile_cols, 0),
                               .body = body};
  stage->compute = op;
}

/* ---- the steps of a fold ---- */

typedef struct steps {
  cutter *c;
  const fold *f;
  uint64_t operands;
  uint32_t *buffers[3], *loads[3]; /**< by columns */
  uint32_t carry, index;           /**< rings: what is folded so far, where it is from */
  uint32_t block_at, rest_at;      /**< pages: where in the block the greatest is, plus 1; 0: before it */
  uint32_t init, index_init, find, step, index_step, find_rest;
} steps;

static uint32_t *ins_of(steps *s, columns which, uint32_t first, uint32_t last) {
  uint32_t *ins = WEFT_NEW_ARRAY(s->c->scratch, uint32_t, s->operands + 2);
  if (!ins) {
    s->c->failed = true;
    return NULL;
  }
  uint64_t at = 0;
  if (first != WEFT_NONE) ins[at++] = first;
  for (uint64_t i = 0; i < s->operands; i++) ins[at++] = s->buffers[which][i];
  if (last != WEFT_NONE) ins[at++] = last;
  return ins;
}

static weft_elem_access *maps_of(steps *s) {
  weft_elem_access *maps = WEFT_NEW_ARRAY(s->c->program->arena, weft_elem_access, s->operands + 2);
  if (!maps) s->c->failed = true;
  return maps;
}

static weft_elem_access column_map(steps *s) { return map_of(s->c, 0, (int64_t)s->c->program->tile_cols, 0); }

/** The value of the body at the first column, or 0 for a sum. */
static void add_init(steps *s) {
  cutter *c = s->c;
  weft_body body = new_body(c, s->f);
  weft_elem_access *maps = maps_of(s);
  bool element = starts_with_element(s->f);
  uint32_t *ins = ins_of(s, FIRST, WEFT_NONE, WEFT_NONE);
  if (c->failed) return;
  weft_stage *stage = add_stage(c, s->f, "init", ins, element ? s->operands : 0, s->carry);
  if (!stage) return;
  s->init = stage->id;
  if (element) {
    map_operands(c, s->f, FIRST, 0, maps);
    fold_nodes(c, s->f, &body);
  } else {
    constant_node(&body, 0);
  }
  set_generic(c, s->f, stage, 1, false, maps, body);
}

/** Folds the carried value and the columns `which` into `out`; `stage` NULL: a new one. Gives its id. */
static uint32_t add_fold(steps *s, const char *suffix, columns which, uint64_t cols, uint32_t out, weft_stage *stage) {
  cutter *c = s->c;
  weft_body body = new_body(c, s->f);
  weft_elem_access *maps = maps_of(s);
  uint32_t *ins = ins_of(s, which, WEFT_NONE, s->carry);
  if (c->failed) return 0;
  if (!stage) {
    stage = add_stage(c, s->f, suffix, ins, s->operands + 1, out);
  } else {
    stage->ins = cut_copy(c, ins, s->operands + 1, sizeof *ins);
    stage->in_count = s->operands + 1;
  }
  if (!stage) return 0;
  map_operands(c, s->f, which, 1, maps);
  maps[s->operands] = column_map(s);
  uint32_t carried = operand_node(&body, s->operands), value = fold_nodes(c, s->f, &body);
  add_node(&body, &(weft_body_node){.kind = WEFT_BODY_SELECT,
                                    .child = {carried, value},
                                    .pred = {.var = WEFT_VAR_GEN_COL, .bound = 1}});
  set_generic(c, s->f, stage, cols + 1, true, maps, body);
  return stage->id;
}

/** The greatest so far: the element of the block that was found, or the carried one. */
static void add_value_step(steps *s) {
  cutter *c = s->c;
  weft_body body = new_body(c, s->f);
  weft_elem_access *maps = maps_of(s);
  uint32_t *ins = ins_of(s, BLOCKS, WEFT_NONE, WEFT_NONE);
  if (c->failed) return;
  ins[s->operands] = s->block_at;
  ins[s->operands + 1] = s->carry;
  weft_stage *stage = add_stage(c, s->f, "value", ins, s->operands + 2, s->carry);
  if (!stage) return;
  s->step = stage->id;
  map_operands(c, s->f, BLOCKS, 1, maps);
  for (uint64_t i = 0; i < s->operands; i++) {
    bool along;
    cut_is_row_map(&c->program->stages[s->f->stage].compute->generic.ins[i], &along);
    weft_indirect_term *term = WEFT_NEW(c->program->arena, weft_indirect_term);
    if (!term) c->failed = true;
    if (!along || !term) continue;
    *term = (weft_indirect_term){s->operands, 1, (uint64_t)row_width(c, s->f, BLOCKS) + 1};
    maps[i].indirect = term;
  }
  maps[s->operands] = maps[s->operands + 1] = column_map(s);
  uint32_t found = operand_node(&body, s->operands), value = fold_nodes(c, s->f, &body),
           carried = operand_node(&body, s->operands + 1);
  add_node(&body, &(weft_body_node){.kind = WEFT_BODY_VALUE_SELECT, .child = {found, value, carried}});
  set_generic(c, s->f, stage, 1, false, maps, body);
}

/** found != 0 ? found - 1 + offset : Max(index + shift, least). */
static weft_body index_body(steps *s, double offset, double shift, double least) {
  weft_body body = new_body(s->c, s->f);
  if (s->c->failed) return body;
  uint32_t found = operand_node(&body, 0), again = operand_node(&body, 0), by = constant_node(&body, offset - 1);
  uint32_t there = binary_node(&body, WEFT_BODY_ADD, again, by), before = operand_node(&body, 1);
  by = constant_node(&body, shift);
  before = binary_node(&body, WEFT_BODY_ADD, before, by);
  by = constant_node(&body, least);
  before = binary_node(&body, WEFT_BODY_MAX, before, by);
  add_node(&body, &(weft_body_node){.kind = WEFT_BODY_VALUE_SELECT, .child = {found, there, before}});
  return body;
}

static void add_index_steps(steps *s) {
  cutter *c = s->c;
  const double width = (double)row_width(c, s->f, BLOCKS), all = width * (double)s->f->blocks;
  weft_elem_access *maps = maps_of(s), *none = maps_of(s);
  const uint32_t ins[] = {s->block_at, s->index};
  weft_body start = new_body(c, s->f), step = index_body(s, 0, -width, -all);
  if (c->failed) return;
  weft_stage *stage = add_stage(c, s->f, "index.init", NULL, 0, s->index);
  if (!stage) return;
  s->index_init = stage->id;
  constant_node(&start, width);
  set_generic(c, s->f, stage, 1, false, none, start);
  stage = add_stage(c, s->f, "index", ins, 2, s->index);
  if (!stage) return;
  s->index_step = stage->id;
  maps[0] = maps[1] = column_map(s);
  set_generic(c, s->f, stage, 1, false, maps, step);
}

/** The index in the whole row, in place of the fold: what was found in the rest, or else before it. */
static void add_index_result(steps *s, weft_stage *stage) {
  cutter *c = s->c;
  const double width = (double)row_width(c, s->f, BLOCKS), all = width * (double)s->f->blocks;
  weft_elem_access *maps = maps_of(s);
  const uint32_t ins[] = {s->rest_at, s->index};
  weft_body body = index_body(s, all, all - width, 0);
  if (c->failed) return;
  uint32_t index = (uint32_t)body.node_count - 1, last = constant_node(&body, (double)(s->f->cols - 1));
  binary_node(&body, WEFT_BODY_MIN, index, last);
  stage->ins = cut_copy(c, ins, 2, sizeof *ins);
  stage->in_count = 2;
  maps[0] = maps[1] = column_map(s);
  set_generic(c, s->f, stage, 1, false, maps, body);
}

/* ---- one fold ---- */

static void add_load_edges(steps *s, columns which, const uint32_t *to, uint64_t to_count) {
  for (uint64_t i = 0; i < s->operands && !s->c->failed; i++)
    add_edge(s->c, s->loads[which][i], s->buffers[which][i], to, to_count);
}

static void add_edges(steps *s) {
  const uint32_t result = s->f->stage;
  const bool index = cut_carries_index(s->f);
  if (starts_with_element(s->f)) add_load_edges(s, FIRST, &s->init, 1);
  if (!index) {
    const uint32_t readers[] = {s->step, result};
    add_load_edges(s, BLOCKS, &s->step, 1);
    add_load_edges(s, TAIL, &result, 1);
    add_edge(s->c, s->init, s->carry, readers, 2);
    add_edge(s->c, s->step, s->carry, &result, 1);
    return;
  }
  const uint32_t block_readers[] = {s->find, s->step}, carry_readers[] = {s->find, s->step, s->find_rest},
                 after[] = {s->find, s->find_rest}, found[] = {s->step, s->index_step},
                 index_readers[] = {s->index_step, result};
  add_load_edges(s, BLOCKS, block_readers, 2);
  add_load_edges(s, TAIL, &s->find_rest, 1);
  add_edge(s->c, s->init, s->carry, carry_readers, 3);
  add_edge(s->c, s->find, s->block_at, found, 2);
  add_edge(s->c, s->step, s->carry, after, 2);
  add_edge(s->c, s->index_init, s->index, index_readers, 2);
  add_edge(s->c, s->index_step, s->index, &result, 1);
  add_edge(s->c, s->find_rest, s->rest_at, &result, 1);
}

static bool make_steps(steps *s) {
  s->operands = s->c->program->stages[s->f->stage].in_count;
  for (columns which = FIRST; which <= TAIL; which++) {
    s->buffers[which] = WEFT_NEW_ARRAY(s->c->scratch, uint32_t, s->operands);
    s->loads[which] = WEFT_NEW_ARRAY(s->c->scratch, uint32_t, s->operands);
    if (!s->buffers[which] || !s->loads[which]) return false;
  }
  return true;
}

bool cut_fold(cutter *c, const fold *f, weft_stage *result) {
  steps s = {.c = c, .f = f};
  if (!make_steps(&s)) return false;
  const char *name = c->program->buffers[result->outs[0]].name;
  const uint64_t width = (uint64_t)row_width(c, f, BLOCKS), rest = f->cols - f->blocks * width;
  if (starts_with_element(f)) add_loads(c, f, FIRST, s.buffers[FIRST], s.loads[FIRST]);
  add_loads(c, f, TAIL, s.buffers[TAIL], s.loads[TAIL]);
  add_loads(c, f, BLOCKS, s.buffers[BLOCKS], s.loads[BLOCKS]);
  s.carry = add_buffer(c, f, name, WEFT_BUFFER_INTERM, 2, 1, cut_carry_format(c, f));
  add_init(&s);
  if (!cut_carries_index(f)) {
    s.step = add_fold(&s, "step", BLOCKS, width, s.carry, NULL);
    add_fold(&s, NULL, TAIL, rest, 0, result);
  } else {
    weft_format format = f->cols < INT32_MAX ? WEFT_INT32 : WEFT_INT64;
    s.index = add_buffer(c, f, name, WEFT_BUFFER_INTERM, 2, 1, format);
    s.block_at = add_buffer(c, f, name, WEFT_BUFFER_INTERM, 1, 1, format);
    s.rest_at = add_buffer(c, f, name, WEFT_BUFFER_FIFO, 1, 1, format);
    s.find = add_fold(&s, "find", BLOCKS, width, s.block_at, NULL);
    add_value_step(&s);
    add_index_steps(&s);
    s.find_rest = add_fold(&s, "find.rest", TAIL, rest, s.rest_at, NULL);
    add_index_result(&s, result);
  }
  add_edges(&s);
  return !c->failed;
}
