/* One compute stage of a Template as one op of a graph. */
#include "lift_private.h"

#include <string.h>

static weft_status check_page(weft_lift *l, uint32_t stage, uint32_t buffer, uint64_t tiles) {
  const weft_buffer *b = &l->program->buffers[buffer];
  if (b->page_tiles == tiles) return WEFT_OK;
  return weft_lift_refuse(l, stage, "a page of buffer '%s' has %llu tiles, expected %llu", b->name,
                          (unsigned long long)b->page_tiles, (unsigned long long)tiles);
}

weft_status weft_lift_find(weft_lift *l, uint32_t stage, uint32_t buffer, weft_lift_source *s) {
  const weft_program *program = l->program;
  *s = (weft_lift_source){.load = weft_lift_load(l, buffer), .value = l->value_of_buffer[buffer]};
  if (!s->load) {
    if (s->value == WEFT_NONE)
      return weft_lift_refuse(l, stage, "buffer '%s' has no producer", program->buffers[buffer].name);
    return WEFT_OK;
  }
  s->tensor = &program->tensors[s->load->load.tensor];
  s->value = l->current[s->load->load.tensor];
  const weft_value *value = &l->graph->values[s->value];
  if (!weft_value_is_given(value) && value->producer == WEFT_NONE)
    return weft_lift_refuse(l, s->load->id, "'%s' is not stored by an earlier section", s->tensor->name);
  if (!weft_walk_of(&s->load->load.pattern, &s->walk))
    return weft_lift_refuse(l, s->load->id, "its address depends on more than sub-block and K block");
  if (program->buffers[buffer].dtype != s->tensor->dtype)
    return weft_lift_refuse(l, s->load->id, "it converts while it loads");
  uint64_t tiles;
  if (weft_mul_overflow(s->walk.block_h, s->walk.block_w, &tiles)) tiles = UINT64_MAX;
  return check_page(l, s->load->id, buffer, tiles);
}

/** The value that the stage's result is: the stored tensor's, or one that stays in a buffer. */
static weft_status result_value(weft_lift *l, uint32_t stage, uint32_t *value) {
  const weft_program *program = l->program;
  const weft_geometry *g = l->geometry[stage];
  const uint32_t buffer = program->stages[stage].outs[0];
  const weft_buffer *b = &program->buffers[buffer];
  const weft_tensor *tensor = &program->tensors[g->tensor];
  weft_status status = check_page(l, stage, buffer, g->block_h * g->block_w);
  if (status != WEFT_OK) return status;
  if (l->reader[buffer] == g->store) {
    if (b->dtype != tensor->dtype) return weft_lift_refuse(l, g->store, "it converts while it stores");
    if (l->graph->values[g->tensor].producer != WEFT_NONE || l->next[g->tensor] != WEFT_NONE)
      return weft_lift_refuse(l, g->store, "'%s' is stored twice", tensor->name);
    *value = tensor->role == WEFT_ROLE_STATE ? weft_lift_next_state(l, g->tensor) : g->tensor;
  } else {
    if (b->kind == WEFT_BUFFER_ACCUMULATOR && b->dtype != WEFT_FP32 && b->dtype != WEFT_INT32 && b->dtype != WEFT_INT64)
      return weft_lift_refuse(l, stage, "accumulator '%s' is %s", b->name, weft_format_name(b->dtype));
    const weft_value *stored = &l->graph->values[g->tensor];
    weft_value v = {.name = b->name,
                    .role = WEFT_ROLE_ACTIVATION,
                    .dtype = b->dtype,
                    .rank = stored->rank,
                    .init = {.kind = WEFT_INIT_ZERO},
                    .chip = weft_lift_chip(l, stage)};
    memcpy(v.extents, stored->extents, sizeof v.extents);
    *value = weft_graph_add_value(l->graph, &v);
  }
  if (*value == WEFT_NONE) return weft_graph_failure(l->graph);
  l->value_of_buffer[buffer] = *value;
  return WEFT_OK;
}

weft_status weft_lift_append(weft_lift *l, uint32_t stage, weft_graph_op *op) {
  op->name = l->program->stages[stage].name;
  op->section = l->section;
  op->chip = weft_lift_chip(l, stage);
  weft_status status = result_value(l, stage, &op->out);
  if (status != WEFT_OK) return status;
  return weft_graph_add_op(l->graph, op) == WEFT_NONE ? weft_graph_failure(l->graph) : WEFT_OK;
}

/** The operand has the result's extents and is walked with it. */
static weft_status check_identity(weft_lift *l, uint32_t stage, const weft_lift_source *s) {
  const weft_geometry *g = l->geometry[stage];
  if (!s->load) return WEFT_OK;
  if (s->tensor->elems.rows == g->plane.rows && s->tensor->elems.cols == g->plane.cols && weft_walks_like(g, &s->walk))
    return WEFT_OK;
  return weft_lift_refuse(l, s->load->id, "it does not walk '%s' as '%s' is stored", s->tensor->name,
                          l->program->tensors[g->tensor].name);
}

/* ---- matmul -------------------------------------------------------------------------------------------------------
 */

/** One operand of a product: rows x cols tiles, whole along the result's axis, a K block at a time along the other. */
static bool walks_operand(const weft_walk *walk, uint64_t block_h, uint64_t block_w, uint64_t cols_t, uint64_t k_stride,
                          uint64_t num_blocks) {
  return walk->base == 0 && !walk->sub_h && !walk->sub_w && walk->block_h == block_h && walk->block_w == block_w &&
         (block_w <= 1 || walk->stride_w == 1) && (block_h <= 1 || walk->stride_h == cols_t) &&
         (num_blocks <= 1 || walk->k == k_stride);
}

/** The tensor whose element 0 is the position up to which the product goes; WEFT_NONE when its trip counts something
 * else. */
static uint32_t position_of_trip(const weft_lift *l, const weft_matmul_tiles *m, uint64_t k) {
  const weft_trip *trip = &l->program->trips[m->trip];
  bool counts = trip->elem == 0 && trip->bias == 1 && trip->per == WEFT_GRAPH_TILE && m->block.ibw == 1 &&
                trip->admit.low == 0 && trip->admit.high >= 0 && (uint64_t)trip->admit.high == k - 1;
  return counts ? trip->tensor : WEFT_NONE;
}

static weft_status lift_matmul(weft_lift *l, uint32_t id) {
  const weft_stage *stage = &l->program->stages[id];
  const weft_matmul_tiles *m = &stage->compute->matmul;
  const weft_geometry *g = l->geometry[id];
  weft_lift_source a, b;
  if (stage->in_count != 2)
    return weft_lift_refuse(l, id, "a product of %llu operands", (unsigned long long)stage->in_count);
  weft_status status = weft_lift_find(l, id, stage->ins[0], &a);
  if (status == WEFT_OK) status = weft_lift_find(l, id, stage->ins[1], &b);
  if (status != WEFT_OK) return status;
  if (!a.load || !b.load) return weft_lift_refuse(l, id, "an operand is no tensor");
  if (m->interm != WEFT_NONE) return weft_lift_refuse(l, id, "it spills");
  if (m->block.osh != g->block_h || m->block.osw != g->block_w || m->sub_blocks.first != g->sub_rows ||
      m->sub_blocks.second != g->sub_cols || !weft_stores_whole(g))
    return weft_lift_refuse(l, id, "its sub-blocks are not those of its store");
  const uint64_t k_t = a.tensor->tiles.cols_t, ibw = m->block.ibw;
  uint64_t blocks, k_stride;
  bool walks = !weft_mul_overflow(m->num_blocks, ibw, &blocks) && !weft_mul_overflow(ibw, g->plane.cols_t, &k_stride) &&
               blocks == k_t && a.load->load.num_blocks == m->num_blocks && b.load->load.num_blocks == m->num_blocks &&
               walks_operand(&a.walk, g->plane.rows_t, ibw, k_t, ibw, m->num_blocks) &&
               walks_operand(&b.walk, ibw, g->plane.cols_t, g->plane.cols_t, k_stride, m->num_blocks);
  bool empty = !g->plane.rows_t || !g->plane.cols_t;
  if (!walks && !empty) return weft_lift_refuse(l, id, "its loads do not walk whole operands K block by K block");
  if (l->reader[stage->outs[0]] != g->store && l->program->buffers[stage->outs[0]].dtype != weft_acc_format(m->acc))
    return weft_lift_refuse(l, id, "buffer '%s' is not as wide as its accumulator",
                            l->program->buffers[stage->outs[0]].name);
  uint32_t position = m->trip == WEFT_NONE ? WEFT_NONE : position_of_trip(l, m, a.tensor->elems.cols);
  if (m->trip != WEFT_NONE && position == WEFT_NONE)
    return weft_lift_refuse(l, id, "its K blocks run to a count that is no position in K");
  const uint32_t ins[] = {a.value, b.value, position};
  return weft_lift_append(l, id,
                          &(weft_graph_op){.kind = WEFT_GRAPH_MATMUL,
                                           .ins = ins,
                                           .in_count = m->trip == WEFT_NONE ? 2 : 3,
                                           .acc = m->acc,
                                           .segments = m->segments ? m->segments : 1});
}

/* ---- epilogues ----------------------------------------------------------------------------------------------------
 */

static weft_status lift_unary(weft_lift *l, uint32_t id, weft_graph_op *op) {
  const weft_stage *stage = &l->program->stages[id];
  weft_lift_source x;
  if (stage->in_count != 1) return weft_lift_refuse(l, id, "it has %llu operands", (unsigned long long)stage->in_count);
  weft_status status = weft_lift_find(l, id, stage->ins[0], &x);
  if (status == WEFT_OK) status = check_identity(l, id, &x);
  if (status != WEFT_OK) return status;
  op->ins = &x.value;
  op->in_count = 1;
  return weft_lift_append(l, id, op);
}

/** A bias vector is loaded whole, or the tiles of the sub-block's columns. */
static bool walks_bias(const weft_geometry *g, const weft_lift_source *bias) {
  const weft_walk *walk = &bias->walk;
  if (bias->tensor->elems.rows != 1 || bias->tensor->elems.cols != g->plane.cols) return false;
  if (walk->base || walk->block_h != 1 || walk->k || walk->sub_h) return false;
  if (walk->block_w > 1 && walk->stride_w != 1) return false;
  return walk->block_w == g->plane.cols_t ? walk->sub_w == 0 || g->sub_cols <= 1
                                          : walk->block_w == g->block_w && walk->sub_w == g->block_w;
}

static weft_status lift_bias(weft_lift *l, uint32_t id) {
  const weft_stage *stage = &l->program->stages[id];
  weft_lift_source x, bias;
  if (stage->in_count != 2 || stage->ins[1] != stage->compute->bias)
    return weft_lift_refuse(l, id, "its second operand is not its bias");
  weft_status status = weft_lift_find(l, id, stage->ins[0], &x);
  if (status == WEFT_OK) status = weft_lift_find(l, id, stage->ins[1], &bias);
  if (status == WEFT_OK) status = check_identity(l, id, &x);
  if (status != WEFT_OK) return status;
  if (!bias.load || !walks_bias(l->geometry[id], &bias))
    return weft_lift_refuse(l, id, "its bias is no row of its columns");
  const uint32_t ins[] = {x.value, bias.value};
  return weft_lift_append(l, id, &(weft_graph_op){.kind = WEFT_GRAPH_BIAS, .ins = ins, .in_count = 2});
}

/* ---- Generic ------------------------------------------------------------------------------------------------------
 */

/** Whether an operand is read as one of the four classes of docs/lowering.md. */
static bool is_broadcast(const weft_geometry *g, const weft_lift_source *s, const weft_elem_access *map) {
  const weft_plane *plane = &g->plane;
  const int64_t width = (int64_t)weft_page_width(g);
  if (!s->load) return weft_map_is(map, 0, width, 1);
  const weft_elem_shape elems = s->tensor->elems;
  const weft_walk *walk = &s->walk;
  if (elems.rows == plane->rows && elems.cols == plane->cols && weft_map_is(map, 0, width, 1))
    return weft_walks_like(g, walk);
  if (g->block_h != 1 || walk->block_h != 1 || walk->k || (walk->block_w > 1 && walk->stride_w != 1)) return false;
  bool still = walk->base == 0 && (walk->sub_h == 0 || g->sub_rows <= 1);
  bool down = walk->base == g->row_t && (walk->sub_h == 1 || g->sub_rows <= 1);
  if (elems.rows == 1 && elems.cols == plane->cols)
    return still && walk->block_w == g->block_w && (walk->sub_w == g->block_w || g->sub_cols <= 1) &&
           weft_map_is(map, 0, 0, 1);
  if (elems.cols != 1 || walk->block_w != 1 || (walk->sub_w && g->sub_cols > 1)) return false;
  if (elems.rows == plane->rows && weft_map_is(map, 0, WEFT_GRAPH_TILE, 0)) return down;
  return elems.rows == 1 && still && weft_map_is(map, 0, 0, 0);
}

static weft_status check_iterators(weft_lift *l, uint32_t id, const weft_generic *generic) {
  const weft_geometry *g = l->geometry[id];
  const weft_iter *iters = generic->iters;
  for (uint64_t i = 0; i < generic->iter_count; i++)
    if (iters[i].reduce) return weft_lift_refuse(l, id, "it reduces along an axis");
  bool page = generic->iter_count == 2 && iters[0].var == WEFT_VAR_GEN_ROW && iters[0].extent == WEFT_GRAPH_TILE &&
              iters[1].var == WEFT_VAR_GEN_COL && iters[1].extent == weft_page_width(g) &&
              weft_map_is(&generic->out, 0, (int64_t)weft_page_width(g), 1);
  if (!page) return weft_lift_refuse(l, id, "it does not iterate over the page it fills");
  const char *wrong = weft_body_check(&generic->body, (uint32_t)generic->in_count);
  return wrong ? weft_lift_refuse(l, id, "its body %s", wrong) : WEFT_OK;
}

static weft_status check_selections(weft_lift *l, uint32_t id, const weft_body *body) {
  const weft_geometry *g = l->geometry[id];
  for (uint64_t i = 0; i < body->node_count; i++) {
    if (body->nodes[i].kind != WEFT_BODY_SELECT) continue;
    if (body->nodes[i].pred.var == WEFT_VAR_GEN_ROW && g->plane.rows_t > 1)
      return weft_lift_refuse(l, id, "it selects by the row of a tile");
    if (g->sub_cols > 1 || g->block_h > 1) return weft_lift_refuse(l, id, "it selects by the column of a block");
  }
  return WEFT_OK;
}

/** A copy into an accumulator of the operand's own width that bias, relu or requant begins with: no op of its own. */
static bool is_copy_head(const weft_lift *l, const weft_stage *stage, const weft_lift_source *x) {
  const weft_program *program = l->program;
  const weft_generic *generic = &stage->compute->generic;
  const weft_buffer *out = &program->buffers[stage->outs[0]];
  if (!x->load || generic->body.node_count != 1 || out->kind != WEFT_BUFFER_ACCUMULATOR) return false;
  if (x->tensor->elems.rows != l->geometry[stage->id]->plane.rows ||
      x->tensor->elems.cols != l->geometry[stage->id]->plane.cols)
    return false;
  weft_format dtype = x->tensor->dtype;
  weft_format wide = weft_format_is_float(dtype) ? WEFT_FP32 : dtype == WEFT_INT64 ? WEFT_INT64 : WEFT_INT32;
  const weft_stage *next = &program->stages[l->reader[stage->outs[0]]];
  if (out->dtype != wide || next->kind != WEFT_STAGE_COMPUTE || next->ins[0] != stage->outs[0]) return false;
  weft_compute_kind kind = next->compute->kind;
  return kind == WEFT_COMPUTE_BIAS || kind == WEFT_COMPUTE_RELU || kind == WEFT_COMPUTE_REQUANT;
}

/** A clamp of integers whose bounds fit the result; fills them in. */
static bool becomes_clamp(const weft_lift *l, const weft_stage *stage, uint32_t x, weft_graph_op *op) {
  const weft_value *value = &l->graph->values[x];
  const weft_geometry *g = l->geometry[stage->id];
  const weft_format out = l->program->buffers[stage->outs[0]].dtype;
  const weft_plane plane = weft_value_plane(value);
  return !weft_format_is_float(value->dtype) && !weft_format_is_float(out) && plane.rows == g->plane.rows &&
         plane.cols == g->plane.cols && weft_body_is_clamp(&op->body, &op->low, &op->high) &&
         op->low >= weft_format_min(out) && op->high <= weft_format_max(out);
}

/** The operands of a Generic; `broadcast` becomes whether each is read as one of the four classes over `space`. */
static weft_status find_operands(weft_lift *l, uint32_t id, const weft_geometry *space, weft_lift_source **sources,
                                 uint32_t **ins, bool *broadcast) {
  const weft_stage *stage = &l->program->stages[id];
  const weft_generic *generic = &stage->compute->generic;
  if (!stage->in_count || stage->in_count != generic->in_count) return weft_lift_refuse(l, id, "it has no operands");
  *sources = WEFT_NEW_ARRAY(l->scratch, weft_lift_source, stage->in_count);
  *ins = WEFT_NEW_ARRAY(l->scratch, uint32_t, stage->in_count);
  if (!*sources || !*ins) return weft_error_memory(l->diag);
  *broadcast = true;
  for (uint64_t i = 0; i < stage->in_count; i++) {
    weft_lift_source *s = &(*sources)[i];
    weft_status status = weft_lift_find(l, id, stage->ins[i], s);
    if (status != WEFT_OK) return status;
    (*ins)[i] = s->value;
    *broadcast = *broadcast && is_broadcast(space, s, &generic->ins[i]);
  }
  return WEFT_OK;
}

/** A fold of the columns of tile rows; `iters` are rows and the folded axis. */
static weft_status lift_reduce(weft_lift *l, uint32_t id) {
  const weft_stage *stage = &l->program->stages[id];
  const weft_generic *generic = &stage->compute->generic;
  const weft_geometry *g = l->geometry[id];
  const weft_iter *iters = generic->iters;
  bool row = generic->iter_count == 2 && iters[0].var == WEFT_VAR_GEN_ROW && !iters[0].reduce &&
             iters[0].extent == WEFT_GRAPH_TILE && iters[1].var == WEFT_VAR_GEN_COL && g->block_h == 1 &&
             g->block_w == 1 && g->plane.cols == 1 && weft_map_is(&generic->out, 0, WEFT_GRAPH_TILE, 0);
  if (!row) return weft_lift_refuse(l, id, "it reduces otherwise than along the columns of a row of tiles");
  const char *wrong = weft_body_check(&generic->body, (uint32_t)generic->in_count);
  if (wrong) return weft_lift_refuse(l, id, "its body %s", wrong);
  weft_geometry space = *g;
  space.plane.cols = iters[1].extent;
  space.plane.cols_t = space.block_w = weft_ceil_div(iters[1].extent, WEFT_GRAPH_TILE);
  weft_lift_source *sources;
  uint32_t *ins;
  bool broadcast;
  weft_status status = find_operands(l, id, &space, &sources, &ins, &broadcast);
  if (status != WEFT_OK) return status;
  for (uint64_t i = 0; i < stage->in_count; i++)
    if (!sources[i].load) return weft_lift_refuse(l, id, "it reduces what is no tensor");
  if (!broadcast || !weft_stores_whole(g))
    return weft_lift_refuse(l, id, "an operand is read neither whole nor as a row, a column or one element");
  weft_graph_op op = {.kind = WEFT_GRAPH_REDUCE,
                      .ins = ins,
                      .in_count = (uint32_t)stage->in_count,
                      .body = generic->body,
                      .pool = iters[1].pool,
                      .segments = iters[1].segments};
  if (weft_reduce_extent(l->graph, &op) != iters[1].extent)
    return weft_lift_refuse(l, id, "it reduces a row of which no operand has all columns");
  return weft_lift_append(l, id, &op);
}

static bool reduces(const weft_generic *generic) {
  for (uint64_t i = 0; i < generic->iter_count; i++)
    if (generic->iters[i].reduce) return true;
  return false;
}

static weft_status lift_generic(weft_lift *l, uint32_t id) {
  const weft_stage *stage = &l->program->stages[id];
  const weft_generic *generic = &stage->compute->generic;
  const weft_geometry *g = l->geometry[id];
  if (reduces(generic)) return lift_reduce(l, id);
  if (weft_lift_is_indexed(l, id)) return weft_lift_indexed(l, id);
  if (weft_lift_is_transpose(l, id)) return weft_lift_transpose(l, id);
  weft_status status = check_iterators(l, id, generic);
  weft_lift_source *sources;
  uint32_t *ins;
  bool broadcast;
  if (status == WEFT_OK) status = find_operands(l, id, g, &sources, &ins, &broadcast);
  if (status != WEFT_OK) return status;
  bool whole = weft_stores_whole(g);
  if ((!broadcast || !whole) && weft_generic_is_copy(generic)) return weft_lift_copy(l, id);
  if (!broadcast || !whole)
    return weft_lift_refuse(l, id, "an operand is read neither whole nor as a row, a column or one element");
  if (is_copy_head(l, stage, &sources[0])) {
    l->value_of_buffer[stage->outs[0]] = ins[0];
    return check_page(l, id, stage->outs[0], g->block_h * g->block_w);
  }
  status = check_selections(l, id, &generic->body);
  if (status != WEFT_OK) return status;
  weft_graph_op op = {
      .kind = WEFT_GRAPH_POINTWISE, .ins = ins, .in_count = (uint32_t)stage->in_count, .body = generic->body};
  if (stage->in_count == 1 && becomes_clamp(l, stage, ins[0], &op)) op.kind = WEFT_GRAPH_CLAMP;
  return weft_lift_append(l, id, &op);
}

/* ---- all-reduce ---------------------------------------------------------------------------------------------------
 */

/** The combine of an all-reduce is the tree over its nodes: a foreign one of another shape would give other bits. */
static bool is_tree(weft_lift *l, const weft_stage *stage, const uint32_t *ins) {
  const weft_body *body = &stage->all_reduce.combine->generic.body;
  uint32_t *counts = WEFT_NEW_ARRAY(l->scratch, uint32_t, stage->in_count), count = (uint32_t)stage->in_count;
  if (!counts) return false;
  for (uint32_t i = 0; i < count; i++) counts[i] = l->graph->values[ins[i]].partial.count;
  if (!weft_nodes_are_subtrees(counts, count))
    for (uint32_t i = 0; i < count; i++) counts[i] = 1;
  weft_body tree = weft_body_tree(l->scratch, stage->all_reduce.pool, counts, count);
  return weft_body_equal(body, &tree);
}

static weft_status lift_all_reduce(weft_lift *l, uint32_t id) {
  const weft_stage *stage = &l->program->stages[id];
  const weft_compute_op *combine = stage->all_reduce.combine;
  const weft_geometry *g = l->geometry[id];
  if (combine->kind != WEFT_COMPUTE_GENERIC || !stage->in_count || stage->in_count != combine->generic.in_count)
    return weft_lift_refuse(l, id, "its combine does not match its operands");
  if (stage->in_count > WEFT_MAX_NODES) return weft_lift_refuse(l, id, "it has more than %d operands", WEFT_MAX_NODES);
  if (!weft_stores_whole(g)) return weft_lift_refuse(l, id, "it reduces a part of its result");
  weft_status status = check_iterators(l, id, &combine->generic);
  uint32_t ins[WEFT_MAX_NODES];
  for (uint32_t i = 0; i < stage->in_count && status == WEFT_OK; i++) {
    weft_lift_source s;
    status = weft_lift_find(l, id, stage->ins[i], &s);
    if (status != WEFT_OK) return status;
    if (!s.load || !s.tensor->has_partial) return weft_lift_refuse(l, id, "operand %u is no partial tensor", i);
    if (!weft_map_is(&combine->generic.ins[i], 0, (int64_t)weft_page_width(g), 1))
      return weft_lift_refuse(l, id, "operand %u is shifted", i);
    status = check_identity(l, id, &s);
    ins[i] = s.value;
  }
  if (status != WEFT_OK) return status;
  if (!is_tree(l, stage, ins)) return weft_lift_refuse(l, id, "its combine is not the tree over its operands");
  return weft_lift_append(l, id,
                          &(weft_graph_op){.kind = WEFT_GRAPH_ALL_REDUCE,
                                           .ins = ins,
                                           .in_count = (uint32_t)stage->in_count,
                                           .pool = stage->all_reduce.pool});
}

weft_status weft_lift_compute(weft_lift *l, uint32_t stage) {
  if (l->program->stages[stage].kind == WEFT_STAGE_ALL_REDUCE) return lift_all_reduce(l, stage);
  const weft_compute_op *compute = l->program->stages[stage].compute;
  switch (compute->kind) {
  case WEFT_COMPUTE_MATMUL_TILES: return lift_matmul(l, stage);
  case WEFT_COMPUTE_BIAS: return lift_bias(l, stage);
  case WEFT_COMPUTE_RELU: return lift_unary(l, stage, &(weft_graph_op){.kind = WEFT_GRAPH_RELU});
  case WEFT_COMPUTE_REQUANT:
    return lift_unary(l, stage,
                      &(weft_graph_op){.kind = WEFT_GRAPH_REQUANT, .m = compute->requant.m, .s = compute->requant.s});
  case WEFT_COMPUTE_GENERIC: return lift_generic(l, stage);
  default: return weft_lift_refuse(l, stage, "a scalar body has no counterpart in a graph");
  }
}
