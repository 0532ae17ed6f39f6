/* The stages, buffers and edges of one unit, spelled as docs/lowering.md says. */
#include "lower_private.h"

#include <string.h>

/** A Load that some compute of the unit reads. */
typedef struct load {
  uint32_t value;
  weft_access_pattern pattern;
  uint64_t num_blocks, depth;
} load;

/** One input of a compute: a load, or what the compute before it left. */
typedef struct input {
  bool previous;
  load load;
} input;

typedef struct compute {
  const char *name, *out_name;
  weft_format out_dtype; /**< of the value it leaves */
  bool all_reduce;
  weft_pool pool;
  weft_compute_op op; /**< a bias buffer is filled in when it is written */
  input *ins;
  uint32_t in_count;
} compute;

/** A unit ready to be written. */
typedef struct plan {
  weft_lowering *l;
  uint16_t chip;
  uint32_t out;           /**< the value stored */
  weft_plane plane;       /**< of it */
  uint64_t row_t, rows_t; /**< tile rows it covers */
  bool rows;              /**< a row unit: sub-blocks are tile rows; else single tiles */
  compute *computes;      /**< room for every op and a copy */
  uint32_t compute_count;
} plan;

/* ---- small makers -------------------------------------------------------------------------------------------------
 */

static const char *text_of(weft_lowering *l, const char *name) {
  return weft_arena_string(l->program->arena, name, strlen(name));
}

static weft_tile_addr address(weft_lowering *l, uint64_t base, const weft_step *steps, uint64_t count) {
  weft_step *copy = WEFT_NEW_ARRAY(l->program->arena, weft_step, count);
  if (copy && count) memcpy(copy, steps, count * sizeof *copy);
  return (weft_tile_addr){.base = base, .steps = copy, .step_count = copy ? count : 0};
}

static weft_access_pattern block(weft_tile_addr origin, uint64_t h, uint64_t w, uint64_t stride_h) {
  return (weft_access_pattern){.origin = origin, .block_h = h, .block_w = w, .stride_w = 1, .stride_h = stride_h};
}

static weft_elem_access map(weft_lowering *l, int64_t base, int64_t row, int64_t col) {
  weft_term *terms = WEFT_NEW_ARRAY(l->program->arena, weft_term, 2);
  uint64_t count = 0;
  if (!terms) return (weft_elem_access){0};
  if (row) terms[count++] = (weft_term){WEFT_VAR_GEN_ROW, row};
  if (col) terms[count++] = (weft_term){WEFT_VAR_GEN_COL, col};
  return (weft_elem_access){.base = base, .terms = terms, .term_count = count};
}

/** Tiles of a sub-block, which is a page of the result. */
static uint64_t page_tiles(const plan *p) { return p->rows ? p->plane.cols_t : 1; }
static int64_t page_width(const plan *p) { return (int64_t)(page_tiles(p) * WEFT_GRAPH_TILE); }

/** How the result is walked: also the pattern of an operand that is walked tile for tile with it. */
static weft_access_pattern result_pattern(const plan *p) {
  uint64_t cols_t = p->plane.cols_t;
  if (p->rows) {
    const weft_step steps[] = {{WEFT_VAR_SUB_H, cols_t}};
    return block(address(p->l, p->row_t * cols_t, steps, 1), 1, cols_t, cols_t);
  }
  const weft_step steps[] = {{WEFT_VAR_ITEM_Y, p->plane.rows_t * cols_t},
                             {WEFT_VAR_ITEM_X, cols_t},
                             {WEFT_VAR_SUB_H, cols_t},
                             {WEFT_VAR_SUB_W, 1}};
  return block(address(p->l, 0, steps, 4), 1, 1, cols_t);
}

static input loaded(uint32_t value, weft_access_pattern pattern) {
  return (input){.load = {.value = value, .pattern = pattern, .num_blocks = 1, .depth = 2}};
}

/** The next compute of the unit; its inputs are the caller's to fill. NULL without memory. */
static compute *add_compute(plan *p, const char *name, const char *out_name, weft_format dtype, uint32_t in_count) {
  compute *c = &p->computes[p->compute_count++];
  *c = (compute){.name = name,
                 .out_name = out_name,
                 .out_dtype = dtype,
                 .in_count = in_count,
                 .ins = WEFT_NEW_ARRAY(p->l->scratch, input, in_count)};
  return c->ins ? c : NULL;
}

/** A Generic over the page, its input maps the caller's. */
static weft_compute_op generic(plan *p, weft_elem_access *maps, uint64_t in_count, weft_body body) {
  weft_iter *iters = WEFT_NEW_ARRAY(p->l->program->arena, weft_iter, 2);
  if (!iters) return (weft_compute_op){0};
  iters[0] = (weft_iter){.var = WEFT_VAR_GEN_ROW, .extent = WEFT_GRAPH_TILE, .segments = 1};
  iters[1] = (weft_iter){.var = WEFT_VAR_GEN_COL, .extent = (uint64_t)page_width(p), .segments = 1};
  weft_compute_op op = {.kind = WEFT_COMPUTE_GENERIC};
  op.generic = (weft_generic){.iters = iters,
                              .iter_count = 2,
                              .ins = maps,
                              .in_count = in_count,
                              .out = map(p->l, 0, page_width(p), 1),
                              .body = body};
  return op;
}

/** A Generic whose operands all have the result's extents. */
static weft_compute_op identity_generic(plan *p, uint64_t in_count, weft_body body) {
  weft_elem_access *maps = WEFT_NEW_ARRAY(p->l->program->arena, weft_elem_access, in_count);
  for (uint64_t i = 0; maps && i < in_count; i++) maps[i] = map(p->l, 0, page_width(p), 1);
  return maps ? generic(p, maps, in_count, body) : (weft_compute_op){0};
}

static weft_body operand_body(plan *p) {
  const weft_body_node node = {.kind = WEFT_BODY_OPERAND};
  return weft_body_copy(p->l->program->arena, &(weft_body){&node, 1});
}

/* ---- heads --------------------------------------------------------------------------------------------------------
 */

static weft_status plan_matmul(plan *p, const weft_graph_op *op) {
  const weft_value *a = &p->l->graph->values[op->ins[0]], *out = &p->l->graph->values[op->out];
  const uint64_t rows_t = p->plane.rows_t, cols_t = p->plane.cols_t, k_t = weft_value_plane(a).cols_t;
  compute *c = add_compute(p, op->name, out->name, out->dtype, 2);
  if (!c) return weft_error_memory(p->l->diag);
  const weft_step steps_a[] = {{WEFT_VAR_ITEM_Y, rows_t * k_t}, {WEFT_VAR_K_BLOCK, 1}};
  const weft_step steps_b[] = {{WEFT_VAR_K_BLOCK, cols_t}, {WEFT_VAR_ITEM_X, cols_t}};
  c->ins[0] = loaded(op->ins[0], block(address(p->l, 0, steps_a, 2), rows_t, 1, k_t));
  c->ins[1] = loaded(op->ins[1], block(address(p->l, 0, steps_b, 2), 1, cols_t, cols_t));
  c->ins[0].load.num_blocks = c->ins[1].load.num_blocks = k_t;
  c->op.kind = WEFT_COMPUTE_MATMUL_TILES;
  c->op.matmul = (weft_matmul_tiles){.block = {1, 1, 1},
                                     .sub_blocks = {rows_t, cols_t},
                                     .num_blocks = k_t,
                                     .operand = a->dtype,
                                     .acc = op->acc,
                                     .dataflow = WEFT_DATAFLOW_OUTPUT_STATIONARY,
                                     .interm = WEFT_NONE,
                                     .granularity = WEFT_GRANULARITY_PER_SUB_BLOCK,
                                     .segments = op->segments};
  return WEFT_OK;
}

/** The load and the map of a pointwise operand by how it is broadcast; false when it is along some folded rows only. */
static bool pointwise_operand(plan *p, uint32_t value, input *in, weft_elem_access *access) {
  weft_plane plane = weft_value_plane(&p->l->graph->values[value]);
  bool rows = plane.rows == p->plane.rows, cols = plane.cols == p->plane.cols;
  if ((!rows && plane.rows != 1) || (!cols && plane.cols != 1)) return false;
  const weft_step down[] = {{WEFT_VAR_SUB_H, plane.cols_t}};
  weft_tile_addr origin = address(p->l, rows ? p->row_t * plane.cols_t : 0, down, rows ? 1 : 0);
  *in = loaded(value, block(origin, 1, plane.cols_t, plane.cols_t));
  *access = map(p->l, 0, rows ? (int64_t)(plane.cols_t * WEFT_GRAPH_TILE) : 0, cols ? 1 : 0);
  return true;
}

static weft_status plan_pointwise(plan *p, const weft_graph_op *op) {
  weft_lowering *l = p->l;
  const weft_value *out = &l->graph->values[op->out];
  compute *c = add_compute(p, op->name, out->name, out->dtype, op->in_count);
  weft_elem_access *maps = WEFT_NEW_ARRAY(l->program->arena, weft_elem_access, op->in_count);
  if (!c || !maps) return weft_error_memory(l->diag);
  for (uint32_t i = 0; i < op->in_count; i++)
    if (!pointwise_operand(p, op->ins[i], &c->ins[i], &maps[i]))
      return weft_error(
          l->diag, WEFT_INVALID, "reshape it, or broadcast all leading dimensions",
          "pointwise '%s': '%s' %s is broadcast along some of the leading dimensions of %s and not along others",
          op->name, l->graph->values[op->ins[i]].name,
          weft_extents_print(l->graph->values[op->ins[i]].rank, l->graph->values[op->ins[i]].extents).text,
          weft_extents_print(out->rank, out->extents).text);
  for (uint64_t i = 0; i < op->body.node_count; i++)
    if (op->body.nodes[i].kind == WEFT_BODY_SELECT && op->body.nodes[i].pred.var == WEFT_VAR_GEN_ROW &&
        p->plane.rows_t > 1)
      return weft_error(l->diag, WEFT_INVALID, "at most 32 rows can be told apart",
                        "pointwise '%s' selects by row over %llu rows", op->name, (unsigned long long)p->plane.rows);
  c->op = generic(p, maps, op->in_count, weft_body_copy(l->program->arena, &op->body));
  return WEFT_OK;
}

static weft_status check_clamp_bounds(plan *p, const weft_graph_op *op) {
  if (op->low > -WEFT_EXACT_CONSTANT && op->high < WEFT_EXACT_CONSTANT) return WEFT_OK;
  return weft_error(p->l->diag, WEFT_INVALID, "bounds below 2^53 can be written as constants", "clamp '%s': %lld..%lld",
                    op->name, (long long)op->low, (long long)op->high);
}

/** What a clamp is at the head of a unit; as an epilogue its operand stays where it is. */
static weft_status plan_clamp(plan *p, const weft_graph_op *op) {
  const weft_value *out = &p->l->graph->values[op->out];
  weft_status status = check_clamp_bounds(p, op);
  compute *c = add_compute(p, op->name, out->name, out->dtype, 1);
  if (status != WEFT_OK) return status;
  if (!c) return weft_error_memory(p->l->diag);
  c->ins[0] = loaded(op->ins[0], result_pattern(p));
  c->op = identity_generic(p, 1, weft_body_clamp(p->l->program->arena, op->low, op->high));
  return WEFT_OK;
}

/** The copy into an accumulator that bias, relu and requant begin with when their operand is a tensor. */
static weft_status plan_copy_head(plan *p, const weft_graph_op *op) {
  const weft_value *x = &p->l->graph->values[op->ins[0]];
  weft_format dtype = weft_format_is_float(x->dtype) ? WEFT_FP32 : x->dtype == WEFT_INT64 ? WEFT_INT64 : WEFT_INT32;
  const char *name = weft_arena_printf(p->l->scratch, "%s.copy", op->name);
  compute *c = add_compute(p, name, x->name, dtype, 1);
  if (!c || !name) return weft_error_memory(p->l->diag);
  c->ins[0] = loaded(op->ins[0], result_pattern(p));
  c->op = identity_generic(p, 1, operand_body(p));
  return WEFT_OK;
}

static weft_status plan_all_reduce(plan *p, const weft_graph_op *op) {
  weft_lowering *l = p->l;
  const weft_value *out = &l->graph->values[op->out];
  compute *c = add_compute(p, op->name, out->name, out->dtype, op->in_count);
  uint32_t *counts = WEFT_NEW_ARRAY(l->scratch, uint32_t, op->in_count);
  if (!c || !counts) return weft_error_memory(l->diag);
  for (uint32_t i = 0; i < op->in_count; i++) {
    counts[i] = l->graph->values[op->ins[i]].partial.count;
    c->ins[i] = loaded(op->ins[i], result_pattern(p));
  }
  // Exact and selecting folds need no particular tree; a chain of them would nest too deeply.
  if (!weft_nodes_are_subtrees(counts, op->in_count))
    for (uint32_t i = 0; i < op->in_count; i++) counts[i] = 1;
  c->all_reduce = true;
  c->pool = op->pool;
  c->op = identity_generic(p, op->in_count, weft_body_tree(l->program->arena, op->pool, counts, op->in_count));
  return WEFT_OK;
}

/* ---- epilogues ----------------------------------------------------------------------------------------------------
 */

static input previous_input(void) { return (input){.previous = true}; }

static weft_status plan_bias(plan *p, compute *c, const weft_graph_op *op) {
  const uint64_t cols_t = p->plane.cols_t;
  const weft_step steps[] = {{WEFT_VAR_ITEM_X, cols_t}};
  c->ins[1] = loaded(op->ins[1], block(address(p->l, 0, steps, p->rows ? 0 : 1), 1, cols_t, cols_t));
  c->ins[1].load.depth = 1;
  c->op.kind = WEFT_COMPUTE_BIAS;
  return WEFT_OK;
}

static weft_status plan_epilogue(plan *p, const weft_graph_op *op, uint32_t chained) {
  const weft_value *out = &p->l->graph->values[op->out];
  compute *c = add_compute(p, op->name, out->name, out->dtype, op->in_count);
  if (!c) return weft_error_memory(p->l->diag);
  for (uint32_t i = 0; i < op->in_count; i++)
    c->ins[i] = i == chained ? previous_input() : loaded(op->ins[i], result_pattern(p));
  switch (op->kind) {
  case WEFT_GRAPH_BIAS: return plan_bias(p, c, op);
  case WEFT_GRAPH_RELU: c->op.kind = WEFT_COMPUTE_RELU; return WEFT_OK;
  case WEFT_GRAPH_REQUANT:
    c->op.kind = WEFT_COMPUTE_REQUANT;
    c->op.requant.m = op->m;
    c->op.requant.s = op->s;
    return WEFT_OK;
  case WEFT_GRAPH_CLAMP:
    c->op = identity_generic(p, 1, weft_body_clamp(p->l->program->arena, op->low, op->high));
    return check_clamp_bounds(p, op);
  default: c->op = identity_generic(p, op->in_count, weft_body_copy(p->l->program->arena, &op->body)); return WEFT_OK;
  }
}

/* ---- writing ------------------------------------------------------------------------------------------------------
 */

static uint32_t add_buffer(plan *p, const char *name, weft_buffer_kind kind, uint64_t depth, uint64_t tiles,
                           weft_format dtype) {
  weft_lowering *l = p->l;
  weft_program *program = l->program;
  if (!weft_arena_grow(program->arena, &program->buffers, program->buffer_count, &l->buffer_capacity,
                       sizeof *program->buffers))
    return 0;
  weft_buffer buffer = {.id = (uint32_t)program->buffer_count,
                        .name = text_of(l, name),
                        .kind = kind,
                        .depth_pages = depth,
                        .page_tiles = tiles,
                        .dtype = dtype,
                        .origin = WEFT_NONE,
                        .alias_of = WEFT_NONE};
  buffer.space = kind == WEFT_BUFFER_ACCUMULATOR ? WEFT_MEM_ACC : WEFT_MEM_LOCAL;
  if (l->graph->chips > 1) buffer.site = (weft_optional_site){true, {0, 0, p->chip}};
  program->buffers[program->buffer_count++] = buffer;
  return buffer.id;
}

static void add_edge(plan *p, uint32_t from, uint32_t buffer, uint32_t to, weft_handshake_kind handshake) {
  weft_lowering *l = p->l;
  weft_program *program = l->program;
  uint32_t *readers = WEFT_NEW_ARRAY(program->arena, uint32_t, 1);
  if (!readers ||
      !weft_arena_grow(program->arena, &program->edges, program->edge_count, &l->edge_capacity, sizeof *program->edges))
    return;
  *readers = to;
  program->requires_handshakes |= 1u << handshake;
  program->edges[program->edge_count] = (weft_edge){.id = (uint32_t)program->edge_count,
                                                    .from = from,
                                                    .buffer = buffer,
                                                    .to = readers,
                                                    .to_count = 1,
                                                    .handshake = handshake};
  program->edge_count++;
}

/** Appends a stage with room for its buffers; NULL without memory. */
static weft_stage *add_stage(plan *p, const char *name, weft_stage_kind kind, uint32_t item, uint32_t in_count,
                             const uint32_t *ins, uint32_t out) {
  weft_lowering *l = p->l;
  weft_program *program = l->program;
  uint32_t *in_copy = WEFT_NEW_ARRAY(program->arena, uint32_t, in_count);
  uint32_t *out_copy = WEFT_NEW_ARRAY(program->arena, uint32_t, 1);
  if (!in_copy || !out_copy ||
      !weft_arena_grow(program->arena, &program->stages, program->stage_count, &l->stage_capacity,
                       sizeof *program->stages))
    return NULL;
  if (in_count) memcpy(in_copy, ins, in_count * sizeof *ins);
  *out_copy = out;
  weft_stage *stage = &program->stages[program->stage_count];
  *stage = (weft_stage){.id = (uint32_t)program->stage_count,
                        .name = text_of(l, name),
                        .kind = kind,
                        .ins = in_copy,
                        .in_count = in_count,
                        .outs = out_copy,
                        .out_count = out == WEFT_NONE ? 0 : 1,
                        .item = item,
                        .origin = WEFT_NONE};
  stage->role = kind == WEFT_STAGE_LOAD || kind == WEFT_STAGE_STORE ? WEFT_SITE_MOVEMENT : WEFT_SITE_COMPUTE;
  program->stage_count++;
  return stage;
}

static uint32_t add_item(plan *p) {
  weft_work_list *work = &p->l->program->work;
  if (!weft_arena_grow(p->l->program->arena, &work->items, work->item_count, &p->l->item_capacity, sizeof *work->items))
    return 0;
  uint32_t id = (uint32_t)work->item_count++;
  work->items[id] = (weft_work_item){.id = id, .row0_t = p->row_t, .h_t = p->rows_t, .w_t = p->plane.cols_t};
  return id;
}

static uint64_t pattern_tiles(const weft_access_pattern *pattern) { return pattern->block_h * pattern->block_w; }

/** Writes the loads of the unit; `buffers` receives their buffers in order. */
static bool write_loads(plan *p, uint32_t item, uint32_t *buffers) {
  const weft_graph *graph = p->l->graph;
  uint32_t at = 0;
  for (uint32_t i = 0; i < p->compute_count; i++)
    for (uint32_t j = 0; j < p->computes[i].in_count; j++) {
      const input *in = &p->computes[i].ins[j];
      if (in->previous) continue;
      const weft_value *value = &graph->values[in->load.value];
      char *name = weft_arena_printf(p->l->scratch, "%s.load%u", p->computes[i].name, j);
      if (!name) return false;
      buffers[at] =
          add_buffer(p, value->name, WEFT_BUFFER_FIFO, in->load.depth, pattern_tiles(&in->load.pattern), value->dtype);
      weft_stage *stage = add_stage(p, name, WEFT_STAGE_LOAD, item, 0, NULL, buffers[at++]);
      if (!stage) return false;
      stage->load.tensor = p->l->tensor_of[in->load.value];
      stage->load.pattern = in->load.pattern;
      stage->load.num_blocks = in->load.num_blocks;
      stage->load.multicast = WEFT_NONE;
    }
  return true;
}

/** The buffer that compute `i` leaves its result in. */
static uint32_t result_buffer(plan *p, uint32_t i) {
  const compute *c = &p->computes[i];
  if (i + 1 < p->compute_count)
    return add_buffer(p, c->out_name, WEFT_BUFFER_ACCUMULATOR, 1, page_tiles(p), c->out_dtype);
  return add_buffer(p, c->out_name, WEFT_BUFFER_FIFO, 2, page_tiles(p), c->out_dtype);
}

static bool write_compute(plan *p, uint32_t i, uint32_t item, const uint32_t *loads, uint32_t *next_load,
                          uint32_t previous, uint32_t out) {
  compute *c = &p->computes[i];
  weft_arena *arena = p->l->program->arena;
  uint32_t *ins = WEFT_NEW_ARRAY(p->l->scratch, uint32_t, c->in_count);
  weft_compute_op *op = WEFT_NEW(arena, weft_compute_op);
  if (!ins || !op) return false;
  for (uint32_t j = 0; j < c->in_count; j++) ins[j] = c->ins[j].previous ? previous : loads[(*next_load)++];
  *op = c->op;
  if (op->kind == WEFT_COMPUTE_BIAS) op->bias = ins[1];
  weft_stage *stage =
      add_stage(p, c->name, c->all_reduce ? WEFT_STAGE_ALL_REDUCE : WEFT_STAGE_COMPUTE, item, c->in_count, ins, out);
  if (!stage) return false;
  if (c->all_reduce) {
    stage->all_reduce.pool = c->pool;
    stage->all_reduce.tensor = p->l->tensor_of[p->out];
    stage->all_reduce.combine = op;
  } else {
    stage->compute = op;
  }
  return true;
}

static bool write_store(plan *p, uint32_t item, uint32_t buffer) {
  char *name = weft_arena_printf(p->l->scratch, "%s.store", p->computes[p->compute_count - 1].name);
  weft_stage *stage = name ? add_stage(p, name, WEFT_STAGE_STORE, item, 1, &buffer, WEFT_NONE) : NULL;
  if (!stage) return false;
  stage->store.tensor = p->l->tensor_of[p->out];
  stage->store.pattern = result_pattern(p);
  stage->store.sub_blocks = p->rows ? (weft_pair){p->rows_t, 1} : (weft_pair){p->plane.rows_t, p->plane.cols_t};
  return true;
}

static weft_status write_plan(plan *p) {
  weft_lowering *l = p->l;
  uint32_t load_count = 0;
  for (uint32_t i = 0; i < p->compute_count; i++)
    for (uint32_t j = 0; j < p->computes[i].in_count; j++) load_count += !p->computes[i].ins[j].previous;
  uint32_t first = (uint32_t)l->program->stage_count, item = add_item(p);
  uint32_t *loads = WEFT_NEW_ARRAY(l->scratch, uint32_t, load_count);
  if (!loads || !write_loads(p, item, loads)) return weft_error_memory(l->diag);
  uint32_t next_load = 0, previous = WEFT_NONE;
  for (uint32_t i = 0; i < p->compute_count; i++) {
    uint32_t stage = first + load_count + i;
    for (uint32_t j = 0, at = next_load; j < p->computes[i].in_count; j++)
      if (!p->computes[i].ins[j].previous) {
        add_edge(p, first + at, loads[at], stage, WEFT_HANDSHAKE_FIFO);
        at++;
      }
    if (i) add_edge(p, stage - 1, previous, stage, WEFT_HANDSHAKE_VALID_READY);
    uint32_t out = result_buffer(p, i);
    if (!write_compute(p, i, item, loads, &next_load, previous, out)) return weft_error_memory(l->diag);
    previous = out;
  }
  uint32_t last = first + load_count + p->compute_count - 1;
  add_edge(p, last, previous, last + 1, WEFT_HANDSHAKE_FIFO);
  if (!write_store(p, item, previous)) return weft_error_memory(l->diag);
  if (l->program->stage_count >= WEFT_NONE || l->program->buffer_count >= WEFT_NONE)
    return weft_error(l->diag, WEFT_INVALID, NULL, "the program has more stages than ids");
  return weft_lower_memory(l);
}

/* ---- copies -------------------------------------------------------------------------------------------------------
 */

/** The pieces of a slice or an assemble as rectangles of planes, without empty ones. */
static weft_status copy_pieces(plan *p, const weft_graph_op *op, weft_copy_piece *pieces, uint32_t *count) {
  const weft_graph *graph = p->l->graph;
  const weft_value *out = &graph->values[op->out];
  bool slice = op->kind == WEFT_GRAPH_SLICE;
  *count = 0;
  for (uint32_t i = 0; i < op->in_count; i++) {
    const weft_value *in = &graph->values[op->ins[i]], *whole = slice ? in : out, *part = slice ? out : in;
    weft_plane plane = weft_value_plane(part);
    if (!plane.rows || !plane.cols) continue;
    weft_copy_piece piece = {.value = op->ins[i], .rows = plane.rows, .cols = plane.cols};
    uint64_t row0, col0;
    if (!weft_block_in_plane(whole->rank, whole->extents, op->starts[i], part->extents, &row0, &col0))
      return weft_error(p->l->diag, WEFT_INVALID, "cut along one leading dimension at a time",
                        "%s '%s': the block %s of '%s' %s is no rectangle of its plane", weft_graph_op_name(op->kind),
                        op->name, weft_extents_print(part->rank, part->extents).text, whole->name,
                        weft_extents_print(whole->rank, whole->extents).text);
    if (slice) {
      piece.source_row = row0;
      piece.source_col = col0;
    } else {
      piece.row0 = row0;
      piece.col0 = col0;
    }
    pieces[(*count)++] = piece;
  }
  return WEFT_OK;
}

static weft_status write_run(plan *p, const weft_graph_op *op, const weft_copy_run *run, weft_body body) {
  weft_lowering *l = p->l;
  const weft_value *out = &l->graph->values[op->out];
  p->compute_count = 0;
  p->row_t = run->begin;
  p->rows_t = run->end - run->begin;
  compute *c = add_compute(p, op->name, out->name, out->dtype, run->part_count);
  weft_elem_access *maps = WEFT_NEW_ARRAY(l->program->arena, weft_elem_access, run->part_count);
  if (!c || !maps) return weft_error_memory(l->diag);
  for (uint32_t i = 0; i < run->part_count; i++) {
    const weft_copy_part *part = &run->parts[i];
    uint64_t stride = weft_value_plane(&l->graph->values[part->value]).cols_t;
    const weft_step down[] = {{WEFT_VAR_SUB_H, stride}};
    weft_tile_addr origin = address(l, part->tile_row * stride + part->tile_col, down, 1);
    int64_t width = (int64_t)(part->tiles * WEFT_GRAPH_TILE);
    c->ins[i] = loaded(part->value, block(origin, 1, part->tiles, stride));
    maps[i] = map(l, part->row_shift * width + part->col_shift, width, 1);
  }
  weft_status status = weft_lower_memory(l);
  if (status != WEFT_OK) return status;
  if (!body.node_count)
    return weft_error(l->diag, WEFT_INVALID, "assemble it in steps",
                      "%s '%s': choosing between its %u pieces nests too deeply", weft_graph_op_name(op->kind),
                      op->name, run->part_count);
  c->op = generic(p, maps, run->part_count, body);
  return write_plan(p);
}

/** A result without elements still has its loads, of no tiles. */
static weft_status write_empty_copy(plan *p, const weft_graph_op *op) {
  weft_copy_run run = {.end = p->plane.rows_t,
                       .parts = WEFT_NEW_ARRAY(p->l->scratch, weft_copy_part, op->in_count),
                       .part_count = op->in_count};
  if (!run.parts) return weft_error_memory(p->l->diag);
  for (uint32_t i = 0; i < op->in_count; i++) run.parts[i].value = op->ins[i];
  return write_run(p, op, &run, operand_body(p));
}

static weft_status write_copy(plan *p, const weft_graph_op *op) {
  weft_lowering *l = p->l;
  weft_copy_piece *pieces = WEFT_NEW_ARRAY(l->scratch, weft_copy_piece, op->in_count);
  if (!pieces) return weft_error_memory(l->diag);
  if (!p->plane.rows || !p->plane.cols) return write_empty_copy(p, op);
  uint32_t piece_count, run_count;
  weft_copy_run *runs;
  weft_status status = copy_pieces(p, op, pieces, &piece_count);
  if (status != WEFT_OK) return status;
  if (!weft_copy_plan(l->scratch, &p->plane, pieces, piece_count, &runs, &run_count)) return weft_error_memory(l->diag);
  for (uint32_t i = 0; i < run_count && status == WEFT_OK; i++)
    status = write_run(p, op, &runs[i], weft_copy_body(l->program->arena, &runs[i], p->plane.cols));
  return status;
}

/* ---- a unit -------------------------------------------------------------------------------------------------------
 */

static weft_status plan_head(plan *p, const weft_graph_op *op) {
  switch (op->kind) {
  case WEFT_GRAPH_MATMUL: return plan_matmul(p, op);
  case WEFT_GRAPH_ALL_REDUCE: return plan_all_reduce(p, op);
  case WEFT_GRAPH_CLAMP: return plan_clamp(p, op);
  case WEFT_GRAPH_POINTWISE: return plan_pointwise(p, op);
  default: break;
  }
  weft_status status = plan_copy_head(p, op);
  return status == WEFT_OK ? plan_epilogue(p, op, 0) : status;
}

weft_status weft_lower_unit(weft_lowering *l, const weft_unit *unit) {
  const weft_graph *graph = l->graph;
  const weft_graph_op *head = &graph->ops[unit->ops[0]];
  plan p = {.l = l,
            .chip = head->chip,
            .out = graph->ops[unit->ops[unit->op_count - 1]].out,
            .computes = WEFT_NEW_ARRAY(l->scratch, compute, (uint64_t)unit->op_count + 1)};
  if (!p.computes) return weft_error_memory(l->diag);
  p.plane = weft_value_plane(&graph->values[p.out]);
  p.rows_t = p.plane.rows_t;
  p.rows = head->kind != WEFT_GRAPH_MATMUL;
  if (head->kind == WEFT_GRAPH_SLICE || head->kind == WEFT_GRAPH_ASSEMBLE) return write_copy(&p, head);
  weft_status status = plan_head(&p, head);
  for (uint32_t i = 1; i < unit->op_count && status == WEFT_OK; i++)
    status = plan_epilogue(&p, &graph->ops[unit->ops[i]], l->chained[unit->ops[i]] - 1u);
  return status == WEFT_OK ? write_plan(&p) : status;
}
