/* Heads and epilogues of units. */
#include "unit_private.h"

#include <string.h>

/* ---- heads --------------------------------------------------------------------------------------------------------
 */

/** The trip that counts the K blocks, of one tile, up to the element that `value` says; one a tensor and K. WEFT_NONE
 * without memory. */
static uint32_t trip_up_to(unit_plan *p, uint32_t value, uint64_t k) {
  weft_program *program = p->l->program;
  const weft_trip made = {
      .tensor = p->l->tensor_of[value], .admit = {0, (int64_t)k - 1}, .bias = 1, .per = WEFT_GRAPH_TILE};
  for (uint64_t t = 0; t < program->trip_count; t++)
    if (program->trips[t].tensor == made.tensor && program->trips[t].admit.high == made.admit.high) return (uint32_t)t;
  if (!weft_arena_grow(program->arena, &program->trips, program->trip_count, &p->l->trip_capacity, sizeof made))
    return WEFT_NONE;
  program->trips[program->trip_count] = made;
  return (uint32_t)program->trip_count++;
}

static weft_status plan_matmul(unit_plan *p, const weft_graph_op *op) {
  const weft_value *a = &p->l->graph->values[op->ins[0]], *out = &p->l->graph->values[op->out];
  const uint64_t rows_t = p->plane.rows_t, cols_t = p->plane.cols_t, k_t = weft_value_plane(a).cols_t;
  unit_compute *c = unit_add_compute(p, op->name, out->name, out->dtype, 2);
  if (!c) return weft_error_memory(p->l->diag);
  const weft_step steps_a[] = {{WEFT_VAR_ITEM_Y, rows_t * k_t}, {WEFT_VAR_K_BLOCK, 1}};
  const weft_step steps_b[] = {{WEFT_VAR_K_BLOCK, cols_t}, {WEFT_VAR_ITEM_X, cols_t}};
  c->ins[0] = unit_loaded(op->ins[0], unit_block(unit_address(p->l, 0, steps_a, 2), rows_t, 1, k_t));
  c->ins[1] = unit_loaded(op->ins[1], unit_block(unit_address(p->l, 0, steps_b, 2), 1, cols_t, cols_t));
  c->ins[0].load.num_blocks = c->ins[1].load.num_blocks = k_t;
  c->op.kind = WEFT_COMPUTE_MATMUL_TILES;
  c->op.matmul = (weft_matmul_tiles){.block = {1, 1, 1},
                                     .sub_blocks = {rows_t, cols_t},
                                     .num_blocks = k_t,
                                     .operand = a->dtype,
                                     .acc = op->acc,
                                     .dataflow = WEFT_DATAFLOW_OUTPUT_STATIONARY,
                                     .interm = WEFT_NONE,
                                     .trip = WEFT_NONE,
                                     .granularity = WEFT_GRANULARITY_PER_SUB_BLOCK,
                                     .segments = op->segments};
  if (op->in_count < 3) return WEFT_OK;
  c->op.matmul.trip = trip_up_to(p, op->ins[2], a->extents[a->rank - 1]);
  return c->op.matmul.trip == WEFT_NONE ? weft_error_memory(p->l->diag) : WEFT_OK;
}

static weft_status plan_pointwise(unit_plan *p, const weft_graph_op *op) {
  weft_lowering *l = p->l;
  const weft_value *out = &l->graph->values[op->out];
  unit_compute *c = unit_add_compute(p, op->name, out->name, out->dtype, op->in_count);
  weft_elem_access *maps = WEFT_NEW_ARRAY(l->program->arena, weft_elem_access, op->in_count);
  if (!c || !maps) return weft_error_memory(l->diag);
  for (uint32_t i = 0; i < op->in_count; i++)
    if (!unit_broadcast_operand(p, &p->plane, op->ins[i], &c->ins[i], &maps[i])) return unit_refuse_broadcast(p, op, i);
  for (uint64_t i = 0; i < op->body.node_count; i++)
    if (op->body.nodes[i].kind == WEFT_BODY_SELECT && op->body.nodes[i].pred.var == WEFT_VAR_GEN_ROW &&
        p->plane.rows_t > 1)
      return weft_error(l->diag, WEFT_INVALID, "at most 32 rows can be told apart",
                        "pointwise '%s' selects by row over %llu rows", op->name, (unsigned long long)p->plane.rows);
  c->op = unit_generic(p, maps, op->in_count, weft_body_copy(l->program->arena, &op->body));
  return WEFT_OK;
}

static weft_status check_clamp_bounds(unit_plan *p, const weft_graph_op *op) {
  if (op->low > -WEFT_EXACT_CONSTANT && op->high < WEFT_EXACT_CONSTANT) return WEFT_OK;
  return weft_error(p->l->diag, WEFT_INVALID, "bounds below 2^53 can be written as constants", "clamp '%s': %lld..%lld",
                    op->name, (long long)op->low, (long long)op->high);
}

/** What a clamp is at the head of a unit; as an epilogue its operand stays where it is. */
static weft_status plan_clamp(unit_plan *p, const weft_graph_op *op) {
  const weft_value *out = &p->l->graph->values[op->out];
  weft_status status = check_clamp_bounds(p, op);
  unit_compute *c = unit_add_compute(p, op->name, out->name, out->dtype, 1);
  if (status != WEFT_OK) return status;
  if (!c) return weft_error_memory(p->l->diag);
  c->ins[0] = unit_loaded(op->ins[0], unit_result_pattern(p));
  c->op = unit_identity_generic(p, 1, weft_body_clamp(p->l->program->arena, op->low, op->high));
  return WEFT_OK;
}

/** The copy into an accumulator that bias, relu and requant begin with when their operand is a tensor. */
static weft_status plan_copy_head(unit_plan *p, const weft_graph_op *op) {
  const weft_value *x = &p->l->graph->values[op->ins[0]];
  weft_format dtype = weft_format_is_float(x->dtype) ? WEFT_FP32 : x->dtype == WEFT_INT64 ? WEFT_INT64 : WEFT_INT32;
  const char *name = weft_arena_printf(p->l->scratch, "%s.copy", op->name);
  unit_compute *c = unit_add_compute(p, name, x->name, dtype, 1);
  if (!c || !name) return weft_error_memory(p->l->diag);
  c->ins[0] = unit_loaded(op->ins[0], unit_result_pattern(p));
  c->op = unit_identity_generic(p, 1, unit_operand_body(p));
  return WEFT_OK;
}

static weft_status plan_all_reduce(unit_plan *p, const weft_graph_op *op) {
  weft_lowering *l = p->l;
  const weft_value *out = &l->graph->values[op->out];
  unit_compute *c = unit_add_compute(p, op->name, out->name, out->dtype, op->in_count);
  uint32_t *counts = WEFT_NEW_ARRAY(l->scratch, uint32_t, op->in_count);
  if (!c || !counts) return weft_error_memory(l->diag);
  for (uint32_t i = 0; i < op->in_count; i++) {
    counts[i] = l->graph->values[op->ins[i]].partial.count;
    c->ins[i] = unit_loaded(op->ins[i], unit_result_pattern(p));
  }
  // Exact and selecting folds need no particular tree; a chain of them would nest too deeply.
  if (!weft_nodes_are_subtrees(counts, op->in_count))
    for (uint32_t i = 0; i < op->in_count; i++) counts[i] = 1;
  c->all_reduce = true;
  c->pool = op->pool;
  c->op = unit_identity_generic(p, op->in_count, weft_body_tree(l->program->arena, op->pool, counts, op->in_count));
  return WEFT_OK;
}

/* ---- epilogues ----------------------------------------------------------------------------------------------------
 */

static weft_status plan_bias(unit_plan *p, unit_compute *c, const weft_graph_op *op) {
  const uint64_t cols_t = p->plane.cols_t;
  const weft_step steps[] = {{WEFT_VAR_ITEM_X, cols_t}};
  c->ins[1] = unit_loaded(op->ins[1], unit_block(unit_address(p->l, 0, steps, p->rows ? 0 : 1), 1, cols_t, cols_t));
  c->ins[1].load.depth = 1;
  c->op.kind = WEFT_COMPUTE_BIAS;
  return WEFT_OK;
}

weft_status unit_plan_epilogue(unit_plan *p, const weft_graph_op *op, uint32_t chained) {
  const weft_value *out = &p->l->graph->values[op->out];
  unit_compute *c = unit_add_compute(p, op->name, out->name, out->dtype, op->in_count);
  if (!c) return weft_error_memory(p->l->diag);
  for (uint32_t i = 0; i < op->in_count; i++)
    c->ins[i] = i == chained ? unit_previous() : unit_loaded(op->ins[i], unit_result_pattern(p));
  switch (op->kind) {
  case WEFT_GRAPH_BIAS: return plan_bias(p, c, op);
  case WEFT_GRAPH_RELU: c->op.kind = WEFT_COMPUTE_RELU; return WEFT_OK;
  case WEFT_GRAPH_REQUANT:
    c->op.kind = WEFT_COMPUTE_REQUANT;
    c->op.requant.m = op->m;
    c->op.requant.s = op->s;
    return WEFT_OK;
  case WEFT_GRAPH_CLAMP:
    c->op = unit_identity_generic(p, 1, weft_body_clamp(p->l->program->arena, op->low, op->high));
    return check_clamp_bounds(p, op);
  default:
    c->op = unit_identity_generic(p, op->in_count, weft_body_copy(p->l->program->arena, &op->body));
    return WEFT_OK;
  }
}

/* ---- any head -----------------------------------------------------------------------------------------------------
 */

weft_status unit_plan_head(unit_plan *p, const weft_graph_op *op) {
  switch (op->kind) {
  case WEFT_GRAPH_MATMUL: return plan_matmul(p, op);
  case WEFT_GRAPH_ALL_REDUCE: return plan_all_reduce(p, op);
  case WEFT_GRAPH_CLAMP: return plan_clamp(p, op);
  case WEFT_GRAPH_POINTWISE: return plan_pointwise(p, op);
  case WEFT_GRAPH_REDUCE: return unit_plan_reduce(p, op);
  case WEFT_GRAPH_TRANSPOSE: return unit_plan_transpose(p, op);
  case WEFT_GRAPH_GATHER: return unit_plan_gather(p, op);
  case WEFT_GRAPH_UPDATE: return unit_plan_update(p, op);
  default: break;
  }
  weft_status status = plan_copy_head(p, op);
  return status == WEFT_OK ? unit_plan_epilogue(p, op, 0) : status;
}
