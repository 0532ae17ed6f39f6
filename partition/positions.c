/* Bodies that look at positions: a Select's predicate compares a row or a column of the whole plane with a bound. On a
 * block the bound moves by the block's origin; where it cannot move, the factor is not cut. */
#include "internal.h"

static bool looks_at(const weft_graph_op *op, uint32_t var, bool operand_bound_only) {
  for (uint64_t n = 0; op->kind == WEFT_GRAPH_POINTWISE && n < op->body.node_count; n++) {
    const weft_body_node *node = &op->body.nodes[n];
    if (node->kind == WEFT_BODY_SELECT && node->pred.var == var && (node->pred.operand_bound || !operand_bound_only))
      return true;
  }
  return false;
}

bool weft_factor_is_fixed(const weft_graph *graph, const weft_graph_op *op, uint8_t factor) {
  if (op->kind == WEFT_GRAPH_UPDATE && factor == op->axis) return true; // the place is read
  if (op->factors[factor].reduce) return op->factors[factor].pool == WEFT_POOL_ARG_MAX;
  const weft_value *out = &graph->values[op->out];
  for (uint32_t d = 0; d < out->rank; d++) {
    if (op->out_factors[d] != factor) continue;
    if (d + 1 == out->rank) return looks_at(op, WEFT_VAR_GEN_COL, true);
    return looks_at(op, WEFT_VAR_GEN_ROW, out->rank == 2);
  }
  return false;
}

/* The bound seen from a block that begins at `origin`: positions before it are below any bound left of it. */
static uint64_t moved_bound(uint64_t bound, uint64_t origin) { return bound > origin ? bound - origin : 0; }

weft_body weft_body_at(weft_arena *arena, const weft_body *body, const weft_block *block) {
  weft_body moved = {.node_count = body->node_count};
  weft_body_node *nodes = WEFT_NEW_ARRAY(arena, weft_body_node, body->node_count);
  if (!nodes) return moved;
  for (uint64_t n = 0; n < body->node_count; n++) {
    nodes[n] = body->nodes[n];
    weft_pred *pred = &nodes[n].pred;
    if (nodes[n].kind != WEFT_BODY_SELECT || pred->operand_bound) continue;
    if (pred->var == WEFT_VAR_GEN_COL && block->rank > 0)
      pred->bound = moved_bound(pred->bound, block->begin[block->rank - 1]);
    if (pred->var == WEFT_VAR_GEN_ROW && block->rank == 2) pred->bound = moved_bound(pred->bound, block->begin[0]);
  }
  moved.nodes = nodes;
  return moved;
}
