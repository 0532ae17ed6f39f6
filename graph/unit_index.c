/* Units that move elements: transposes tile by tile, gathers and updates by index. */
#include "unit_private.h"

/** One tile a sub-block, walked as the result is walked but for the strides. */
static weft_access_pattern tile_walk(unit_plan *p, uint64_t down, uint64_t across, uint64_t cols_t) {
  const weft_step steps[] = {{WEFT_VAR_SUB_H, down}, {WEFT_VAR_SUB_W, across}};
  const weft_step *first = down ? steps : steps + 1;
  return unit_block(unit_address(p->l, 0, first, (down ? 1u : 0u) + (across ? 1u : 0u)), 1, 1, cols_t);
}

weft_status unit_plan_transpose(unit_plan *p, const weft_graph_op *op) {
  weft_lowering *l = p->l;
  const weft_value *x = &l->graph->values[op->ins[0]], *out = &l->graph->values[op->out];
  unit_compute *c = unit_add_compute(p, op->name, out->name, out->dtype, 1);
  weft_elem_access *maps = WEFT_NEW_ARRAY(l->program->arena, weft_elem_access, 1);
  if (!c || !maps) return weft_error_memory(l->diag);
  const uint64_t cols_t = weft_value_plane(x).cols_t;
  c->ins[0] = unit_loaded(op->ins[0], tile_walk(p, 1, cols_t, cols_t));
  maps[0] = unit_map(l, 0, 1, WEFT_GRAPH_TILE);
  c->op = unit_generic(p, maps, 1, unit_operand_body(p));
  return weft_lower_memory(l);
}

/* ---- gathers ------------------------------------------------------------------------------------------------------
 */

static const weft_indirect_term *row_in_tile(unit_plan *p) {
  weft_indirect_term *term = WEFT_NEW(p->l->program->arena, weft_indirect_term);
  if (term)
    *term = (weft_indirect_term){.operand = 0, .stride = WEFT_GRAPH_TILE, .modulus = WEFT_GRAPH_TILE * WEFT_GRAPH_TILE};
  return term;
}

weft_status unit_plan_gather(unit_plan *p, const weft_graph_op *op) {
  weft_lowering *l = p->l;
  const weft_value *table = &l->graph->values[op->ins[0]], *out = &l->graph->values[op->out];
  const weft_plane rows = weft_value_plane(table);
  const uint32_t slots = (uint32_t)weft_max_u64(1, weft_min_u64(WEFT_GRAPH_TILE, p->plane.rows));
  unit_compute *c = unit_add_compute(p, op->name, out->name, out->dtype, 1 + slots);
  weft_elem_access *maps = WEFT_NEW_ARRAY(l->program->arena, weft_elem_access, 1 + slots);
  unit_index *indices = WEFT_NEW_ARRAY(l->scratch, unit_index, slots);
  weft_body *body = WEFT_NEW(l->scratch, weft_body);
  const weft_indirect_term *in_tile = row_in_tile(p);
  weft_body pick;
  if (!c || !maps || !indices || !body || !in_tile ||
      !weft_gather_bodies(l->program->arena, l->graph, op, slots, body, &pick))
    return weft_error_memory(l->diag);
  c->ins[0] = unit_loaded(op->ins[1], tile_walk(p, 1, 0, 1));
  maps[0] = unit_map(l, 0, WEFT_GRAPH_TILE, 0);
  for (uint32_t i = 0; i < slots; i++) {
    indices[i] = (unit_index){.value = op->ins[1],
                              .pattern = tile_walk(p, 1, 0, 1),
                              .row = i,
                              .body = body,
                              .tile_stride = rows.cols_t,
                              .last = rows.rows ? rows.rows - 1 : 0};
    c->ins[1 + i] = unit_loaded(op->ins[0], tile_walk(p, 0, 1, rows.cols_t));
    c->ins[1 + i].load.index = &indices[i];
    maps[1 + i] = unit_map(l, 0, 0, 1);
    maps[1 + i].indirect = in_tile;
  }
  c->op = unit_generic(p, maps, 1 + slots, pick);
  return weft_lower_memory(l);
}

/* ---- updates ------------------------------------------------------------------------------------------------------
 */

/** The one row of a page, or its one column, at the place that operand 1 says. */
static weft_compute_op update_op(unit_plan *p, const weft_graph_op *op) {
  weft_lowering *l = p->l;
  const int64_t width = unit_page_width(p);
  weft_elem_access *maps = WEFT_NEW_ARRAY(l->program->arena, weft_elem_access, 2);
  weft_indirect_term *place = WEFT_NEW(l->program->arena, weft_indirect_term);
  if (!maps || !place) return (weft_compute_op){0};
  maps[0] = op->axis ? unit_map(l, 0, 1, 0) : unit_map(l, 0, 0, 1);
  maps[1] = unit_map(l, 0, 0, 0);
  weft_compute_op compute = unit_generic(p, maps, 2, unit_operand_body(p));
  weft_iter *iters = (weft_iter *)compute.generic.iters;
  if (!iters) return compute;
  iters[op->axis ? 1 : 0].extent = 1;
  *place = op->axis ? (weft_indirect_term){1, 1, WEFT_GRAPH_TILE}
                    : (weft_indirect_term){1, width, (uint64_t)width * WEFT_GRAPH_TILE};
  compute.generic.out = op->axis ? unit_map(l, 0, width, 0) : unit_map(l, 0, 0, 1);
  compute.generic.out.indirect = place;
  return compute;
}

weft_status unit_plan_update(unit_plan *p, const weft_graph_op *op) {
  weft_lowering *l = p->l;
  const weft_value *state = &l->graph->values[op->ins[0]], *out = &l->graph->values[op->out];
  const uint64_t cols_t = p->plane.cols_t;
  const weft_access_pattern element = tile_walk(p, 0, 0, 1);
  unit_index *index = WEFT_NEW(l->scratch, unit_index);
  p->rows = !op->axis;
  p->rows_t = op->axis ? p->plane.rows_t : 1;
  p->cols_t = op->axis ? 1 : cols_t;
  p->page_t = unit_part(p->cols_t);
  unit_compute *c = unit_add_compute(p, op->name, out->name, out->dtype, 2);
  if (!c || !index) return weft_error_memory(l->diag);
  *index = (unit_index){.value = op->ins[2],
                        .pattern = element,
                        .tile_stride = op->axis ? 1 : cols_t,
                        .last = state->extents[op->axis] - 1};
  p->store_index = index;
  if (op->axis) {
    p->store_pattern = tile_walk(p, cols_t, 0, cols_t);
    c->ins[0] = unit_loaded(op->ins[1], tile_walk(p, 1, 0, weft_value_plane(&l->graph->values[op->ins[1]]).cols_t));
  } else {
    const weft_step along[] = {{WEFT_VAR_SUB_W, p->page_t}};
    p->store_pattern = unit_block(unit_address(l, 0, along, p->page_t != cols_t), 1, p->page_t, cols_t);
    c->ins[0] = unit_loaded(op->ins[1], p->store_pattern);
  }
  c->ins[1] = unit_loaded(op->ins[2], element);
  c->op = update_op(p, op);
  return weft_lower_memory(l);
}
