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

/* An op that follows runs where its first produced operand is made when that is pinned. */
static bool follow_pins(const weft_partitioner *p, uint32_t op, const weft_assignment *const *plan,
                        weft_assignment *assignment) {
  const weft_graph_op *node = &p->graph->ops[op];
  bool changed = false;
  for (uint32_t i = 0; i < node->in_count; i++) {
    uint32_t producer = p->graph->values[node->ins[i]].producer;
    if (producer == WEFT_NONE || !plan[producer]) continue;
    for (uint32_t a = 0; a < p->mesh->axis_count; a++) {
      if (plan[producer]->pins[a] == WEFT_NO_PIN || (assignment->decided >> a & 1) ||
          weft_assignment_uses(assignment, a))
        continue;
      assignment->pins[a] = plan[producer]->pins[a];
      assignment->decided |= 1u << a;
      changed = true;
    }
    break;
  }
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
  if (!weft_is_choice(p, op)) changed |= follow_pins(p, op, plan, assignment);
  return changed;
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
