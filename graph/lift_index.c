/* Computes that move by index, and transposes, as ops of a graph: gathers and updates exactly as lowering spells them.
 */
#include "lift_private.h"

#include <string.h>

/* ---- states -------------------------------------------------------------------------------------------------------
 */

uint32_t weft_lift_next_state(weft_lift *l, uint32_t tensor) {
  weft_value value = l->graph->values[tensor];
  const char *name = weft_arena_printf(l->graph->arena, "%s.next", value.name);
  value.name = name ? name : value.name;
  value.init = (weft_init){.kind = WEFT_INIT_ZERO};
  value.has_shard = false;
  value.updates = tensor + 1;
  return l->next[tensor] = weft_graph_add_value(l->graph, &value);
}

/* ---- patterns -----------------------------------------------------------------------------------------------------
 */

/** One tile a sub-block (or as many rows and columns of tiles as said), at `base` and moving as said. */
static bool walks_tiles(const weft_geometry *g, const weft_walk *walk, uint64_t down, uint64_t across) {
  return walk->base == 0 && walk->block_h == 1 && walk->block_w == 1 && !walk->k &&
         (g->sub_rows <= 1 || walk->sub_h == down) && (g->sub_cols <= 1 || walk->sub_w == across);
}

/** The affine part of a pattern. */
static bool affine_walk(const weft_access_pattern *pattern, weft_walk *walk) {
  weft_access_pattern affine = *pattern;
  affine.origin.indirect = NULL;
  return weft_walk_of(&affine, walk);
}

static bool is_term(const weft_indirect_term *term, uint64_t operand, int64_t stride, uint64_t modulus) {
  return term && term->operand == operand && term->stride == stride && term->modulus == modulus;
}

/** The map without its data-dependent term. */
static bool affine_map_is(const weft_elem_access *map, int64_t row, int64_t col) {
  weft_elem_access affine = *map;
  affine.indirect = NULL;
  return weft_map_is(&affine, 0, row, col);
}

/** Whether the Generic runs over `rows` x `cols` positions, nothing folded. */
static bool runs_over(const weft_generic *generic, uint64_t rows, uint64_t cols) {
  const weft_iter *iters = generic->iters;
  return generic->iter_count == 2 && iters[0].var == WEFT_VAR_GEN_ROW && iters[1].var == WEFT_VAR_GEN_COL &&
         !iters[0].reduce && !iters[1].reduce && iters[0].extent == rows && iters[1].extent == cols;
}

static const weft_stage *stage_of(const weft_lift *l, uint32_t buffer) {
  return l->writer[buffer] == WEFT_NONE ? NULL : &l->program->stages[l->writer[buffer]];
}

/* ---- transposes ---------------------------------------------------------------------------------------------------
 */

bool weft_lift_is_transpose(const weft_lift *l, uint32_t id) {
  const weft_stage *stage = &l->program->stages[id];
  const weft_generic *generic = &stage->compute->generic;
  const weft_geometry *g = l->geometry[id];
  return g->block_h == 1 && g->block_w == 1 && stage->in_count == 1 && generic->in_count == 1 &&
         runs_over(generic, WEFT_GRAPH_TILE, WEFT_GRAPH_TILE) && weft_map_is(&generic->ins[0], 0, 1, WEFT_GRAPH_TILE) &&
         weft_map_is(&generic->out, 0, WEFT_GRAPH_TILE, 1) && generic->body.node_count == 1;
}

weft_status weft_lift_transpose(weft_lift *l, uint32_t id) {
  const weft_stage *stage = &l->program->stages[id];
  const weft_geometry *g = l->geometry[id];
  weft_lift_source x;
  weft_status status = weft_lift_find(l, id, stage->ins[0], &x);
  if (status != WEFT_OK) return status;
  bool whole = x.load && x.tensor->elems.rows == g->plane.cols && x.tensor->elems.cols == g->plane.rows &&
               weft_stores_whole(g) && walks_tiles(g, &x.walk, 1, x.tensor->tiles.cols_t);
  if (!whole) return weft_lift_refuse(l, id, "it transposes the tiles of what is no transposed tensor");
  return weft_lift_append(l, id, &(weft_graph_op){.kind = WEFT_GRAPH_TRANSPOSE, .ins = &x.value, .in_count = 1});
}

/* ---- indices ------------------------------------------------------------------------------------------------------
 */

bool weft_lift_is_index(const weft_lift *l, uint32_t id) {
  const weft_stage *stage = &l->program->stages[id];
  if (stage->kind != WEFT_STAGE_COMPUTE || stage->out_count != 1) return false;
  uint32_t reader = l->reader[stage->outs[0]];
  if (reader == WEFT_NONE) return false;
  const weft_stage *user = &l->program->stages[reader];
  if (user->kind == WEFT_STAGE_LOAD) return true;
  return user->kind == WEFT_STAGE_STORE && user->in_count > 1 && user->ins[0] != stage->outs[0];
}

bool weft_lift_is_indexed(const weft_lift *l, uint32_t id) {
  const weft_stage *stage = &l->program->stages[id];
  const weft_generic *generic = &stage->compute->generic;
  if (generic->out.indirect) return true;
  for (uint64_t i = 0; i < generic->in_count; i++)
    if (generic->ins[i].indirect) return true;
  for (uint64_t i = 0; i < stage->in_count; i++) {
    const weft_stage *load = weft_lift_load(l, stage->ins[i]);
    if (load && load->load.pattern.origin.indirect) return true;
  }
  return l->program->stages[l->geometry[id]->store].store.pattern.origin.indirect != NULL;
}

/** The ids behind an index buffer: loaded, perhaps through a Generic whose body `*body` becomes (else no nodes). */
static weft_status find_ids(weft_lift *l, uint32_t id, const weft_indirect_tile *term, uint64_t row,
                            weft_lift_source *ids, weft_body *body) {
  const weft_stage *shift = stage_of(l, term->index);
  *body = (weft_body){0};
  if (!shift) return weft_lift_refuse(l, id, "an index comes from nowhere");
  if (shift->kind == WEFT_STAGE_LOAD) return weft_lift_find(l, id, term->index, ids);
  const weft_generic *generic = shift->kind == WEFT_STAGE_COMPUTE && shift->compute->kind == WEFT_COMPUTE_GENERIC
                                    ? &shift->compute->generic
                                    : NULL;
  bool shifts = generic && shift->in_count == 1 && generic->in_count == 1 &&
                runs_over(generic, WEFT_GRAPH_TILE, WEFT_GRAPH_TILE) &&
                weft_map_is(&generic->ins[0], (int64_t)(row * WEFT_GRAPH_TILE), WEFT_GRAPH_TILE, 1) &&
                weft_map_is(&generic->out, 0, WEFT_GRAPH_TILE, 1);
  if (!shifts) return weft_lift_refuse(l, shift->id, "it does not bring an index to the front");
  *body = generic->body;
  return weft_lift_find(l, id, shift->ins[0], ids);
}

/** Ids by row: a column that moves down with the result. */
static bool is_id_column(const weft_geometry *g, const weft_lift_source *ids) {
  return ids->load && ids->tensor->elems.cols == 1 && ids->tensor->elems.rows == g->plane.rows &&
         walks_tiles(g, &ids->walk, 1, 0) && (g->sub_cols <= 1 || !ids->walk.sub_w);
}

/* ---- gathers ------------------------------------------------------------------------------------------------------
 */

/** One operand of a gather: the tile of the table that row `row`'s id leads to. */
static weft_status check_slot(weft_lift *l, uint32_t id, uint64_t row, uint32_t ids_value, uint32_t *table,
                              weft_body *index_body) {
  const weft_stage *stage = &l->program->stages[id];
  const weft_geometry *g = l->geometry[id];
  const weft_stage *load = weft_lift_load(l, stage->ins[1 + row]);
  const weft_elem_access *map = &stage->compute->generic.ins[1 + row];
  weft_walk walk;
  if (!load || !load->load.pattern.origin.indirect || !affine_walk(&load->load.pattern, &walk))
    return weft_lift_refuse(l, id, "operand %llu is no indexed load", (unsigned long long)(1 + row));
  const weft_indirect_tile *term = load->load.pattern.origin.indirect;
  const weft_tensor *tensor = &l->program->tensors[load->load.tensor];
  bool right = walks_tiles(g, &walk, 0, 1) && (g->sub_rows <= 1 || !walk.sub_h) && load->load.num_blocks == 1 &&
               term->tile_stride == tensor->tiles.cols_t && term->elems_per_tile == WEFT_GRAPH_TILE &&
               term->bound.first == 0 && term->bound.second + 1 == weft_max_u64(tensor->elems.rows, 1) &&
               tensor->elems.cols == g->plane.cols && l->program->buffers[load->outs[0]].dtype == tensor->dtype &&
               l->program->buffers[load->outs[0]].page_tiles == 1 && affine_map_is(map, 0, 1) &&
               is_term(map->indirect, 0, WEFT_GRAPH_TILE, WEFT_GRAPH_TILE * WEFT_GRAPH_TILE);
  if (!right) return weft_lift_refuse(l, load->id, "it does not take rows of '%s' by their ids", tensor->name);
  weft_lift_source ids;
  weft_status status = find_ids(l, id, term, row, &ids, index_body);
  if (status != WEFT_OK) return status;
  if (!is_id_column(g, &ids) || ids.value != ids_value || !index_body->node_count)
    return weft_lift_refuse(l, load->id, "its index is not that of row %llu", (unsigned long long)row);
  if (row && *table != l->current[load->load.tensor])
    return weft_lift_refuse(l, load->id, "rows are taken of several tensors");
  *table = l->current[load->load.tensor];
  return WEFT_OK;
}

/** The constant that node `index` of the body is. */
static int64_t constant_at(const weft_body *body, uint64_t index) {
  double value;
  memcpy(&value, &body->nodes[index].value, sizeof value);
  return (int64_t)value;
}

/** Ids of a whole table are used as they are; of a part, the body says which ids there are and which it has. */
static void find_ids_bounds(const weft_lift *l, const weft_body *body, weft_graph_op *op) {
  op->low = 0;
  op->high = (int64_t)l->graph->values[op->ins[0]].extents[0] - 1;
  if (body->node_count <= 12) return;
  op->high = constant_at(body, 1);
  op->low = constant_at(body, 11);
}

/** Lowers the op again, alone, and compares bodies: what is lifted must be spelled as it would be. */
static bool spelled_alike(weft_lift *l, uint32_t id, const weft_graph_op *op, const weft_body *index) {
  const weft_body *pick = &l->program->stages[id].compute->generic.body;
  weft_body expected_index, expected_pick;
  uint64_t slots = l->program->stages[id].in_count - 1;
  return weft_gather_bodies(l->scratch, l->graph, op, slots, &expected_index, &expected_pick) &&
         weft_body_equal(index, &expected_index) && weft_body_equal(pick, &expected_pick);
}

static weft_status lift_gather(weft_lift *l, uint32_t id) {
  const weft_stage *stage = &l->program->stages[id];
  const weft_generic *generic = &stage->compute->generic;
  const weft_geometry *g = l->geometry[id];
  uint64_t slots = weft_max_u64(1, weft_min_u64(WEFT_GRAPH_TILE, g->plane.rows));
  weft_lift_source ids;
  if (stage->in_count != slots + 1 || generic->in_count != slots + 1 || g->block_h != 1 || g->block_w != 1 ||
      !weft_stores_whole(g) || !runs_over(generic, WEFT_GRAPH_TILE, WEFT_GRAPH_TILE) ||
      !weft_map_is(&generic->out, 0, WEFT_GRAPH_TILE, 1) || !weft_map_is(&generic->ins[0], 0, WEFT_GRAPH_TILE, 0))
    return weft_lift_refuse(l, id, "it takes rows by index otherwise than one an operand");
  weft_status status = weft_lift_find(l, id, stage->ins[0], &ids);
  if (status == WEFT_OK && !is_id_column(g, &ids)) status = weft_lift_refuse(l, id, "its ids are no column");
  uint32_t ins[] = {WEFT_NONE, ids.value};
  weft_body index = {0};
  for (uint64_t row = 0; row < slots && status == WEFT_OK; row++) {
    weft_body body;
    status = check_slot(l, id, row, ids.value, &ins[0], &body);
    if (status == WEFT_OK && row && !weft_body_equal(&index, &body))
      status = weft_lift_refuse(l, id, "its rows are found in different ways");
    index = body;
  }
  if (status != WEFT_OK) return status;
  weft_graph_op op = {.kind = WEFT_GRAPH_GATHER, .ins = ins, .in_count = 2};
  find_ids_bounds(l, &index, &op);
  if (!spelled_alike(l, id, &op, &index)) return weft_lift_refuse(l, id, "it takes rows by index in another way");
  return weft_lift_append(l, id, &op);
}

/* ---- updates ------------------------------------------------------------------------------------------------------
 */

static weft_status lift_update(weft_lift *l, uint32_t id) {
  const weft_stage *stage = &l->program->stages[id];
  const weft_generic *generic = &stage->compute->generic;
  const weft_geometry *g = l->geometry[id];
  const weft_stage *store = &l->program->stages[g->store];
  const weft_tensor *state = &l->program->tensors[g->tensor];
  const weft_indirect_tile *term = store->store.pattern.origin.indirect;
  const int64_t width = (int64_t)weft_page_width(g);
  uint64_t stored;
  bool row = term && term->tile_stride == state->tiles.cols_t && !weft_mul_overflow(g->block_w, g->sub_cols, &stored) &&
             stored == state->tiles.cols_t && g->sub_rows == 1 && runs_over(generic, 1, (uint64_t)width) &&
             affine_map_is(&generic->out, 0, 1);
  bool column = !row && term && term->tile_stride == 1 && g->block_w == 1 && g->sub_cols == 1 &&
                g->sub_rows == state->tiles.rows_t && runs_over(generic, WEFT_GRAPH_TILE, 1) &&
                affine_map_is(&generic->out, width, 0);
  weft_lift_source x, at, ids;
  weft_body index;
  if (state->role != WEFT_ROLE_STATE || (!row && !column) || stage->in_count != 2 || generic->in_count != 2 ||
      l->reader[stage->outs[0]] != g->store || generic->body.node_count != 1 || generic->body.nodes[0].value != 0 ||
      generic->body.nodes[0].kind != WEFT_BODY_OPERAND)
    return weft_lift_refuse(l, id, "it stores by index otherwise than a row or a column of a state");
  weft_status status = weft_lift_find(l, id, stage->ins[0], &x);
  if (status == WEFT_OK) status = weft_lift_find(l, id, stage->ins[1], &at);
  if (status == WEFT_OK) status = find_ids(l, id, term, 0, &ids, &index);
  if (status != WEFT_OK) return status;
  const uint64_t extent = row ? state->elems.rows : state->elems.cols;
  bool moves = row ? x.load && x.walk.base == 0 && x.walk.block_h == 1 && x.walk.block_w == g->block_w &&
                         (g->sub_cols <= 1 || x.walk.sub_w == g->block_w) && weft_map_is(&generic->ins[0], 0, 0, 1)
                   : x.load && walks_tiles(g, &x.walk, 1, 0) && weft_map_is(&generic->ins[0], 0, 1, 0);
  bool one = at.load && at.value == ids.value && !index.node_count && walks_tiles(g, &at.walk, at.walk.sub_h, 0) &&
             !at.walk.sub_h && !ids.walk.sub_h && (g->sub_cols <= 1 || !ids.walk.sub_w) && ids.walk.base == 0 &&
             weft_map_is(&generic->ins[1], 0, 0, 0) && term->elems_per_tile == WEFT_GRAPH_TILE &&
             term->bound.first == 0 && term->bound.second + 1 == extent &&
             (row ? is_term(generic->out.indirect, 1, width, (uint64_t)width * WEFT_GRAPH_TILE)
                  : is_term(generic->out.indirect, 1, 1, WEFT_GRAPH_TILE));
  if (!moves || !one) return weft_lift_refuse(l, id, "it stores by index otherwise than a row or a column of a state");
  const uint32_t ins[] = {g->tensor, x.value, at.value};
  return weft_lift_append(l, id,
                          &(weft_graph_op){.kind = WEFT_GRAPH_UPDATE, .ins = ins, .in_count = 3, .axis = row ? 0 : 1});
}

weft_status weft_lift_indexed(weft_lift *l, uint32_t id) {
  return l->program->stages[id].compute->generic.out.indirect ? lift_update(l, id) : lift_gather(l, id);
}
