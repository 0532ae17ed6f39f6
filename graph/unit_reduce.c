/* Units that fold the rows of what a body gives. */
#include "unit_private.h"

/** The Generic over one tile row: 32 rows in parallel, the true extent of the columns folded away. */
static weft_compute_op fold_generic(unit_plan *p, const weft_graph_op *op, weft_elem_access *maps, uint64_t cols) {
  weft_compute_op compute = unit_generic(p, maps, op->in_count, weft_body_copy(p->l->program->arena, &op->body));
  weft_iter *iters = (weft_iter *)compute.generic.iters;
  if (!iters) return compute;
  iters[1] =
      (weft_iter){.var = WEFT_VAR_GEN_COL, .extent = cols, .reduce = true, .pool = op->pool, .segments = op->segments};
  compute.generic.out = unit_map(p->l, 0, unit_page_width(p), 0);
  return compute;
}

weft_status unit_plan_reduce(unit_plan *p, const weft_graph_op *op) {
  weft_lowering *l = p->l;
  const weft_value *out = &l->graph->values[op->out];
  weft_plane space = p->plane;
  space.cols = weft_reduce_extent(l->graph, op);
  unit_compute *c = unit_add_compute(p, op->name, out->name, out->dtype, op->in_count);
  weft_elem_access *maps = WEFT_NEW_ARRAY(l->program->arena, weft_elem_access, op->in_count);
  if (!c || !maps) return weft_error_memory(l->diag);
  for (uint32_t i = 0; i < op->in_count; i++)
    if (!unit_broadcast_operand(p, &space, op->ins[i], &c->ins[i], &maps[i])) return unit_refuse_broadcast(p, op, i);
  c->op = fold_generic(p, op, maps, space.cols);
  return weft_lower_memory(l);
}
