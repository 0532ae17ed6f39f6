/* The parts that units are made of. */
#include "unit_private.h"

#include <string.h>

weft_tile_addr unit_address(weft_lowering *l, uint64_t base, const weft_step *steps, uint64_t count) {
  weft_step *copy = WEFT_NEW_ARRAY(l->program->arena, weft_step, count);
  if (copy && count) memcpy(copy, steps, count * sizeof *copy);
  return (weft_tile_addr){.base = base, .steps = copy, .step_count = copy ? count : 0};
}

weft_access_pattern unit_block(weft_tile_addr origin, uint64_t h, uint64_t w, uint64_t stride_h) {
  return (weft_access_pattern){.origin = origin, .block_h = h, .block_w = w, .stride_w = 1, .stride_h = stride_h};
}

weft_elem_access unit_map(weft_lowering *l, int64_t base, int64_t row, int64_t col) {
  weft_term *terms = WEFT_NEW_ARRAY(l->program->arena, weft_term, 2);
  uint64_t count = 0;
  if (!terms) return (weft_elem_access){0};
  if (row) terms[count++] = (weft_term){WEFT_VAR_GEN_ROW, row};
  if (col) terms[count++] = (weft_term){WEFT_VAR_GEN_COL, col};
  return (weft_elem_access){.base = base, .terms = terms, .term_count = count};
}

uint64_t unit_part(uint64_t tiles) {
  uint64_t part = weft_min_u64(tiles, WEFT_PART_TILES);
  while (part && tiles % part) part--;
  return part;
}

int64_t unit_page_width(const unit_plan *p) { return (int64_t)(p->page_t * WEFT_GRAPH_TILE); }

weft_access_pattern unit_result_pattern(const unit_plan *p) {
  uint64_t cols_t = p->plane.cols_t;
  if (p->rows) {
    const weft_step steps[] = {{WEFT_VAR_SUB_H, cols_t}, {WEFT_VAR_SUB_W, p->page_t}};
    weft_tile_addr origin = unit_address(p->l, p->row_t * cols_t + p->col_t, steps, p->page_t == p->cols_t ? 1 : 2);
    return unit_block(origin, 1, p->page_t, cols_t);
  }
  const weft_step steps[] = {{WEFT_VAR_ITEM_Y, p->plane.rows_t * cols_t},
                             {WEFT_VAR_ITEM_X, cols_t},
                             {WEFT_VAR_SUB_H, cols_t},
                             {WEFT_VAR_SUB_W, 1}};
  return unit_block(unit_address(p->l, 0, steps, 4), 1, 1, cols_t);
}

unit_input unit_previous(void) { return (unit_input){.previous = true}; }

unit_input unit_loaded(uint32_t value, weft_access_pattern pattern) {
  return (unit_input){.load = {.value = value, .pattern = pattern, .num_blocks = 1, .depth = 2}};
}

unit_compute *unit_add_compute(unit_plan *p, const char *name, const char *out_name, weft_format dtype,
                               uint32_t in_count) {
  unit_compute *c = &p->computes[p->compute_count++];
  *c = (unit_compute){.name = name,
                      .out_name = out_name,
                      .out_dtype = dtype,
                      .in_count = in_count,
                      .ins = WEFT_NEW_ARRAY(p->l->scratch, unit_input, in_count)};
  return c->ins ? c : NULL;
}

weft_compute_op unit_generic(unit_plan *p, weft_elem_access *maps, uint64_t in_count, weft_body body) {
  weft_iter *iters = WEFT_NEW_ARRAY(p->l->program->arena, weft_iter, 2);
  if (!iters) return (weft_compute_op){0};
  iters[0] = (weft_iter){.var = WEFT_VAR_GEN_ROW, .extent = WEFT_GRAPH_TILE};
  iters[1] = (weft_iter){.var = WEFT_VAR_GEN_COL, .extent = (uint64_t)unit_page_width(p)};
  weft_compute_op op = {.kind = WEFT_COMPUTE_GENERIC};
  op.generic = (weft_generic){.iters = iters,
                              .iter_count = 2,
                              .ins = maps,
                              .in_count = in_count,
                              .out = unit_map(p->l, 0, unit_page_width(p), 1),
                              .body = body};
  return op;
}

weft_compute_op unit_identity_generic(unit_plan *p, uint64_t in_count, weft_body body) {
  weft_elem_access *maps = WEFT_NEW_ARRAY(p->l->program->arena, weft_elem_access, in_count);
  for (uint64_t i = 0; maps && i < in_count; i++) maps[i] = unit_map(p->l, 0, unit_page_width(p), 1);
  return maps ? unit_generic(p, maps, in_count, body) : (weft_compute_op){0};
}

weft_body unit_operand_body(unit_plan *p) {
  const weft_body_node node = {.kind = WEFT_BODY_OPERAND};
  return weft_body_copy(p->l->program->arena, &(weft_body){&node, 1});
}

bool unit_broadcast_operand(unit_plan *p, const weft_plane *space, uint32_t value, unit_input *in,
                            weft_elem_access *access) {
  weft_plane plane = weft_value_plane(&p->l->graph->values[value]);
  bool rows = plane.rows == space->rows, cols = plane.cols == space->cols;
  if ((!rows && plane.rows != 1) || (!cols && plane.cols != 1)) return false;
  // In parts of rows, an operand with columns moves across with the result.
  bool parts = space == &p->plane && cols && p->page_t != plane.cols_t;
  const uint64_t page_t = parts ? p->page_t : plane.cols_t;
  weft_step steps[2];
  uint64_t count = 0;
  if (rows) steps[count++] = (weft_step){WEFT_VAR_SUB_H, plane.cols_t};
  if (parts) steps[count++] = (weft_step){WEFT_VAR_SUB_W, page_t};
  weft_tile_addr origin = unit_address(p->l, rows ? p->row_t * plane.cols_t : 0, steps, count);
  *in = unit_loaded(value, unit_block(origin, 1, page_t, plane.cols_t));
  *access = unit_map(p->l, 0, rows ? (int64_t)(page_t * WEFT_GRAPH_TILE) : 0, cols ? 1 : 0);
  return true;
}

weft_status unit_refuse_broadcast(unit_plan *p, const weft_graph_op *op, uint32_t operand) {
  const weft_value *in = &p->l->graph->values[op->ins[operand]], *out = &p->l->graph->values[op->out];
  return weft_error(p->l->diag, WEFT_INVALID, "reshape it, or broadcast all leading dimensions",
                    "%s '%s': '%s' %s is broadcast along some of the leading dimensions of %s and not along others",
                    weft_graph_op_name(op->kind), op->name, in->name, weft_extents_print(in->rank, in->extents).text,
                    weft_extents_print(out->rank, out->extents).text);
}
