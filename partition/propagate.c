/* Propagation: cuts follow values from op to op, forward to their readers, then back to their makers, until nothing
 * changes.
 *
 * Source: Shardy's propagation over factors (openxla/shardy), without its priorities: forward first, because a layout
 * that is carried on costs nothing until a reader wants another one, and then the value is at its smallest. */
#include "internal.h"

#include <string.h>

static bool extends(const weft_cut *cut, const weft_cut *mine, uint32_t segments) {
  return mine->axis_count < cut->axis_count && memcmp(cut->axes, mine->axes, mine->axis_count) == 0 &&
         (mine->axis_count == 0 || mine->segments == segments);
}

/* Lets factor `factor` of an op take over the axes of `cut` that it lacks and the op has not placed. */
static bool extend(const weft_partitioner *p, uint32_t op, uint8_t factor, const weft_cut *cut,
                   weft_assignment *assignment) {
  if (factor == WEFT_NO_FACTOR || p->claims[op].factor_by[factor]) return false;
  const weft_graph_op *node = &p->graph->ops[op];
  if (weft_factor_is_fixed(p->graph, node, factor)) return false;
  weft_cut *mine = &assignment->cuts[factor];
  uint32_t segments = cut->segments;
  if (node->factors[factor].reduce) {
    if (weft_reduce_is_chain(p->graph, node)) return false;
    segments = weft_reduce_segments(p->graph, node);
    if (segments == 1) return false;
  }
  if (!extends(cut, mine, segments)) return false;
  bool changed = false;
  for (uint8_t i = mine->axis_count; i < cut->axis_count; i++) {
    uint8_t axis = cut->axes[i];
    if (weft_assignment_uses(assignment, axis) || (assignment->decided >> axis & 1)) break;
    mine->axes[mine->axis_count++] = axis;
    mine->segments = segments;
    assignment->decided |= 1u << axis;
    changed = true;
  }
  return changed;
}

/* ---- pins ----------------------------------------------------------------------------------------------------------
 */

static bool is_open(const weft_assignment *assignment, uint32_t axis) {
  return !(assignment->decided >> axis & 1) && !weft_assignment_uses(assignment, axis);
}

static bool pin(weft_assignment *assignment, uint32_t axis, uint16_t coordinate) {
  if (coordinate == WEFT_NO_PIN || !is_open(assignment, axis)) return false;
  assignment->pins[axis] = coordinate;
  assignment->decided |= 1u << axis;
  return true;
}

static const weft_assignment *maker_plan(const weft_partitioner *p, uint32_t value,
                                         const weft_assignment *const *plan) {
  uint32_t producer = p->graph->values[value].producer;
  return producer == WEFT_NONE ? NULL : plan[producer];
}

static bool is_empty(const weft_value *value) {
  for (uint32_t d = 0; d < value->rank; d++)
    if (value->extents[d] == 0) return true;
  return false;
}

/* An op that follows runs where its first produced operand is made when that is pinned. */
static bool follow_first(const weft_partitioner *p, uint32_t op, const weft_assignment *const *plan,
                         weft_assignment *assignment) {
  const weft_graph_op *node = &p->graph->ops[op];
  for (uint32_t i = 0; i < node->in_count; i++) {
    const weft_assignment *made = maker_plan(p, node->ins[i], plan);
    if (!made) continue;
    bool changed = false;
    for (uint32_t a = 0; a < p->mesh->axis_count; a++) changed |= pin(assignment, a, made->pins[a]);
    return changed;
  }
  return false;
}

/* A slice that lies in one part of its source is taken there. Of several axes the outer ones may be enough. */
static bool follow_slice(const weft_partitioner *p, uint32_t op, const weft_assignment *const *plan,
                         weft_assignment *assignment) {
  const weft_graph_op *node = &p->graph->ops[op];
  const weft_value *source = &p->graph->values[node->ins[0]], *out = &p->graph->values[node->out];
  const weft_assignment *made = maker_plan(p, node->ins[0], plan);
  bool changed = false;
  for (uint32_t d = 0; made && d < source->rank; d++) {
    const weft_graph_op *maker = &p->graph->ops[source->producer];
    uint8_t factor = maker->out_factors[d];
    if (node->in_factors[0][d] != WEFT_NO_FACTOR || factor == WEFT_NO_FACTOR || !out->extents[d]) continue;
    const weft_cut *cut = &made->cuts[factor];
    uint64_t extent = maker->factors[factor].extent, start = node->starts[0][d];
    uint32_t parts = weft_cut_parts(p, cut), stride = parts;
    uint32_t first = weft_cut_part_of(cut, extent, parts, start);
    uint32_t last = weft_cut_part_of(cut, extent, parts, start + out->extents[d] - 1);
    for (uint8_t i = 0; i < cut->axis_count; i++) {
      stride /= p->mesh->extents[cut->axes[i]];
      if (first / stride != last / stride) break;
      changed |= pin(assignment, cut->axes[i], (uint16_t)(first / stride % p->mesh->extents[cut->axes[i]]));
    }
  }
  return follow_first(p, op, plan, assignment) || changed;
}

/* Where the pieces of an assemble are pinned along an axis: at one coordinate; at several, which gives `*differ`. */
static uint16_t pin_of_pieces(const weft_partitioner *p, const weft_graph_op *node, uint32_t axis,
                              const weft_assignment *const *plan, bool *differ) {
  uint16_t at = WEFT_NO_PIN;
  *differ = false;
  for (uint32_t i = 0; i < node->in_count; i++) {
    if (is_empty(&p->graph->values[node->ins[i]])) continue;
    const weft_assignment *made = maker_plan(p, node->ins[i], plan);
    if (!made || made->pins[axis] == WEFT_NO_PIN) return WEFT_NO_PIN;
    *differ |= at != WEFT_NO_PIN && at != made->pins[axis];
    at = made->pins[axis];
  }
  return at;
}

/* Cuts a dimension of an assemble along an axis if every piece then lies where it is made. */
static bool cut_at_pieces(const weft_partitioner *p, uint32_t op, uint32_t dimension, uint32_t axis,
                          const weft_assignment *const *plan, weft_assignment *assignment) {
  const weft_graph_op *node = &p->graph->ops[op];
  uint8_t factor = node->out_factors[dimension];
  if (factor == WEFT_NO_FACTOR || p->claims[op].factor_by[factor]) return false;
  uint64_t extent = node->factors[factor].extent;
  weft_cut cut = assignment->cuts[factor];
  cut.axes[cut.axis_count++] = (uint8_t)axis;
  uint32_t parts = weft_cut_parts(p, &cut), along = p->mesh->extents[axis];
  for (uint32_t i = 0; i < node->in_count; i++) {
    const weft_value *piece = &p->graph->values[node->ins[i]];
    if (is_empty(piece)) continue;
    uint64_t start = node->starts[i][dimension];
    uint32_t first = weft_cut_part_of(&cut, extent, parts, start);
    uint32_t last = weft_cut_part_of(&cut, extent, parts, start + piece->extents[dimension] - 1);
    if (first != last || first % along != maker_plan(p, node->ins[i], plan)->pins[axis]) return false;
  }
  assignment->cuts[factor] = cut;
  assignment->decided |= 1u << axis;
  return true;
}

/* An assemble is made where all its pieces are; or it is cut so that each piece stays where it is. */
static bool follow_assemble(const weft_partitioner *p, uint32_t op, const weft_assignment *const *plan,
                            weft_assignment *assignment) {
  const weft_graph_op *node = &p->graph->ops[op];
  bool changed = false;
  for (uint32_t a = 0; a < p->mesh->axis_count; a++) {
    bool differ, cut = false;
    uint16_t at = pin_of_pieces(p, node, a, plan, &differ);
    if (at == WEFT_NO_PIN || !is_open(assignment, a)) continue;
    if (!differ) changed |= pin(assignment, a, at);
    for (uint32_t d = 0; differ && !cut && d < p->graph->values[node->out].rank; d++)
      cut = cut_at_pieces(p, op, d, a, plan, assignment);
    changed |= cut;
  }
  return changed;
}

static uint16_t pin_of_product(const weft_partitioner *p, const weft_graph_op *node, uint32_t axis,
                               const weft_assignment *const *plan) {
  const weft_assignment *a = maker_plan(p, node->ins[0], plan), *b = maker_plan(p, node->ins[1], plan);
  return a && b && a->pins[axis] == b->pins[axis] ? a->pins[axis] : WEFT_NO_PIN;
}

bool weft_product_is_pinned(const weft_partitioner *p, uint32_t op, const weft_assignment *const *plan) {
  const weft_graph_op *node = &p->graph->ops[op];
  for (uint32_t a = 0; node->kind == WEFT_GRAPH_MATMUL && a < p->mesh->axis_count; a++)
    if (!p->claims[op].axis_by[a] && pin_of_product(p, node, a, plan) != WEFT_NO_PIN) return true;
  return false;
}

static bool follow_pins(const weft_partitioner *p, uint32_t op, const weft_assignment *const *plan,
                        weft_assignment *assignment) {
  const weft_graph_op *node = &p->graph->ops[op];
  if (node->kind == WEFT_GRAPH_SLICE) return follow_slice(p, op, plan, assignment);
  if (node->kind == WEFT_GRAPH_ASSEMBLE) return follow_assemble(p, op, plan, assignment);
  if (!weft_is_choice(p, op)) return follow_first(p, op, plan, assignment);
  bool changed = false;
  for (uint32_t a = 0; node->kind == WEFT_GRAPH_MATMUL && a < p->mesh->axis_count; a++)
    changed |= pin(assignment, a, pin_of_product(p, node, a, plan));
  return changed;
}

bool weft_propagate_forward(const weft_partitioner *p, uint32_t op, const weft_assignment *const *plan,
                            weft_assignment *assignment) {
  const weft_graph_op *node = &p->graph->ops[op];
  bool changed = false;
  for (uint32_t i = 0; i < node->in_count; i++) {
    uint32_t value = node->ins[i], producer = p->graph->values[value].producer;
    if (producer == WEFT_NONE || !plan[producer]) continue;
    for (uint32_t d = 0; d < p->graph->values[value].rank; d++) {
      uint8_t made = p->graph->ops[producer].out_factors[d];
      if (made != WEFT_NO_FACTOR)
        changed |= extend(p, op, node->in_factors[i][d], &plan[producer]->cuts[made], assignment);
    }
  }
  return follow_pins(p, op, plan, assignment) || changed;
}

static bool propagate_back(weft_partitioner *p, uint32_t op) {
  const weft_graph_op *node = &p->graph->ops[op];
  bool changed = false;
  for (uint64_t u = p->use_begin[node->out]; u < p->use_begin[node->out + 1]; u++) {
    weft_use use = p->uses[u];
    for (uint32_t d = 0; d < p->graph->values[node->out].rank; d++) {
      uint8_t read = p->graph->ops[use.op].in_factors[use.operand][d];
      if (read != WEFT_NO_FACTOR)
        changed |= extend(p, op, node->out_factors[d], &p->plan[use.op].cuts[read], &p->plan[op]);
    }
  }
  return changed;
}

void weft_propagate(weft_partitioner *p) {
  const weft_assignment **plan = WEFT_NEW_ARRAY(p->arena, const weft_assignment *, p->graph->op_count);
  if (!plan) return; /* the arena remembers; the driver reports it */
  for (uint64_t o = 0; o < p->graph->op_count; o++) plan[o] = &p->plan[o];
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t o = 0; o < p->graph->op_count; o++) changed |= weft_propagate_forward(p, o, plan, &p->plan[o]);
    for (uint32_t o = (uint32_t)p->graph->op_count; o-- > 0;) changed |= propagate_back(p, o);
  }
}
