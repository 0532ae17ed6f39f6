/* The explanation: each tensor's layout, what it costs, and the next best. */
#include "internal.h"

#include <string.h>

/* ---- what a plan with one choice changed would cost
 * -------------------------------------------------------------------- */

typedef struct what_if {
  weft_partitioner *p;
  const weft_assignment **plan; /* by op: the plan itself */
  double *seconds;              /* by op, under the plan */
  double total;
  const weft_assignment **other;
  weft_assignment *followed; /* by op: room for what follows a change */
} what_if;

static double op_seconds(const weft_partitioner *p, uint32_t op, const weft_assignment *const *plan) {
  weft_cost cost;
  weft_cost_of(p, op, plan, plan[op], &cost);
  return weft_cost_seconds(&cost);
}

static bool reads_changed(const what_if *w, uint32_t op) {
  const weft_graph_op *node = &w->p->graph->ops[op];
  for (uint32_t i = 0; i < node->in_count; i++) {
    uint32_t producer = w->p->graph->values[node->ins[i]].producer;
    if (producer != WEFT_NONE && w->other[producer] != w->plan[producer]) return true;
  }
  return false;
}

/* Seconds of the plan with `op` done as `assignment`; what follows the op is followed anew. */
static double seconds_with(what_if *w, uint32_t op, const weft_assignment *assignment) {
  uint64_t count = w->p->graph->op_count;
  memcpy(w->other, w->plan, count * sizeof *w->plan);
  w->other[op] = assignment;
  double total = w->total - w->seconds[op] + op_seconds(w->p, op, w->other);
  for (uint32_t o = op + 1; o < count; o++) {
    if (!reads_changed(w, o)) continue;
    if (!weft_is_choice(w->p, o)) {
      weft_follow(w->p, o, w->other, &w->followed[o]);
      if (!weft_assignment_equal(&w->followed[o], w->plan[o])) w->other[o] = &w->followed[o];
    }
    total += op_seconds(w->p, o, w->other) - w->seconds[o];
  }
  return total;
}

/* The best plan that does `op` otherwise; false when there is no other way. */
static bool runner_up(what_if *w, uint32_t op, weft_assignment *best, double *seconds) {
  weft_partitioner *p = w->p;
  weft_assignment base = *w->plan[op], *all;
  memset(base.cuts, 0, sizeof base.cuts);
  uint32_t pinned = 0;
  for (uint32_t a = 0; a < p->mesh->axis_count; a++)
    if (base.pins[a] != WEFT_NO_PIN) pinned |= 1u << a;
  uint64_t count = weft_alternatives(p, op, &base, p->all_axes & ~pinned, false, &all);
  bool found = false;
  for (uint64_t i = 0; i < count; i++) {
    if (weft_assignment_equal(&all[i], w->plan[op])) continue;
    double other = seconds_with(w, op, &all[i]);
    if (found && other >= *seconds) continue;
    found = true;
    *seconds = other;
    *best = all[i];
  }
  return found;
}

/* ---- texts
 * ---------------------------------------------------------------------------------------------------------------- */

static void print_axes(const weft_partitioner *p, weft_text *text, const weft_cut *cut) {
  for (uint32_t i = 0; i < cut->axis_count; i++)
    weft_text_printf(text, "%s%s", i ? "+" : "@", p->mesh->names[cut->axes[i]]);
}

static const char *dimension_name(uint32_t rank, uint32_t dimension, char number[16]) {
  if (dimension + 1 == rank) return "cols";
  if (rank == 2) return "rows";
  number[0] = (char)('0' + dimension);
  number[1] = 0;
  return number;
}

static void print_layout(const weft_partitioner *p, weft_text *text, const weft_assignment *assignment,
                         const weft_value *value, const uint8_t *factors) {
  char number[16];
  uint32_t cut_dimensions = 0;
  for (uint32_t d = 0; d < value->rank; d++) {
    const weft_cut *cut = factors[d] == WEFT_NO_FACTOR ? NULL : &assignment->cuts[factors[d]];
    if (!cut || cut->axis_count == 0) continue;
    weft_text_printf(text, "%s%s", cut_dimensions++ ? "," : "", dimension_name(value->rank, d, number));
    print_axes(p, text, cut);
  }
  uint32_t pins = 0;
  for (uint32_t a = 0; a < p->mesh->axis_count; a++)
    if (assignment->pins[a] != WEFT_NO_PIN)
      weft_text_printf(text, "%sat %s=%u", cut_dimensions + pins++ ? " " : "", p->mesh->names[a], assignment->pins[a]);
  if (cut_dimensions + pins == 0) weft_text_puts(text, "replicated");
}

static const char *factor_name(const weft_partitioner *p, const weft_graph_op *node, uint8_t factor, char number[16]) {
  uint32_t rank = p->graph->values[node->out].rank, d = 0;
  if (node->factors[factor].reduce) return "K";
  while (d < rank && node->out_factors[d] != factor) d++;
  if (node->kind != WEFT_GRAPH_MATMUL) return dimension_name(rank, d, number);
  return d + 1 == rank ? "N" : rank == 2 ? "M" : dimension_name(rank, d, number);
}

/* "M@x,N@y" of an op. */
static void print_assignment(const weft_partitioner *p, weft_text *text, uint32_t op,
                             const weft_assignment *assignment) {
  const weft_graph_op *node = &p->graph->ops[op];
  char number[16];
  uint32_t printed = 0;
  for (uint8_t f = 0; f < node->factor_count; f++) {
    if (assignment->cuts[f].axis_count == 0) continue;
    weft_text_printf(text, "%s%s", printed++ ? "," : "", factor_name(p, node, f, number));
    print_axes(p, text, &assignment->cuts[f]);
  }
  for (uint32_t a = 0; a < p->mesh->axis_count; a++)
    if (assignment->pins[a] != WEFT_NO_PIN)
      weft_text_printf(text, "%sat %s=%u", printed++ ? " " : "", p->mesh->names[a], assignment->pins[a]);
  if (printed == 0) weft_text_puts(text, "replicated");
}

/* Who decided an op, when it was the user. */
static const char *decided_by(const weft_partitioner *p, uint32_t op) {
  for (uint32_t a = 0; a < p->mesh->axis_count; a++)
    if (p->claims[op].axis_by[a]) return p->claims[op].axis_by[a];
  for (uint32_t f = 0; f < WEFT_MAX_FACTORS; f++)
    if (p->claims[op].factor_by[f]) return p->claims[op].factor_by[f];
  return NULL;
}

static void explain_op(what_if *w, uint32_t op, weft_text *report) {
  weft_partitioner *p = w->p;
  const weft_graph_op *node = &p->graph->ops[op];
  weft_cost cost;
  weft_cost_of(p, op, w->plan, w->plan[op], &cost);
  weft_text_printf(report, "  %s %s: ", weft_graph_op_name(node->kind), node->name);
  print_assignment(p, report, op, w->plan[op]);
  weft_text_printf(report, "  %.3g us (compute %.3g, gather %.3g, reduce %.3g)", weft_cost_seconds(&cost) * 1e6,
                   cost.compute * 1e6, cost.gather * 1e6, cost.reduce * 1e6);
  const char *by = decided_by(p, op);
  if (by) weft_text_printf(report, ", asked by %s", by);
  weft_assignment best;
  double seconds = 0;
  if (weft_is_choice(p, op) && runner_up(w, op, &best, &seconds)) {
    double more = (seconds - w->total) * 1e6;
    bool less = more <= -1e-6; /* the user asked for another way, or the beam of the search did not keep this one */
    weft_text_puts(report, less ? "; quicker would be " : "; runner-up ");
    print_assignment(p, report, op, &best);
    weft_text_printf(report, less ? ", by %.3g us" : " +%.3g us", less ? -more : more < 1e-6 ? 0.0 : more);
  }
  weft_text_puts(report, "\n");
}

static void explain_tensor(what_if *w, const weft_value *value, weft_text *report) {
  const weft_partitioner *p = w->p;
  uint32_t id = (uint32_t)(value - p->graph->values);
  weft_text_printf(report, "    %s %s ", weft_tensor_role_name(value->role), value->name);
  if (value->producer != WEFT_NONE) {
    print_layout(p, report, w->plan[value->producer], value, p->graph->ops[value->producer].out_factors);
  } else {
    for (uint64_t u = p->use_begin[id]; u < p->use_begin[id + 1]; u++) {
      weft_use use = p->uses[u];
      if (u > p->use_begin[id]) weft_text_puts(report, " | ");
      print_layout(p, report, w->plan[use.op], value, p->graph->ops[use.op].in_factors[use.operand]);
    }
  }
  weft_text_puts(report, "\n");
}

void weft_explain(weft_partitioner *p, weft_text *report) {
  uint64_t count = p->graph->op_count;
  what_if w = {.p = p,
               .plan = WEFT_NEW_ARRAY(p->arena, const weft_assignment *, count),
               .seconds = WEFT_NEW_ARRAY(p->arena, double, count),
               .other = WEFT_NEW_ARRAY(p->arena, const weft_assignment *, count),
               .followed = WEFT_NEW_ARRAY(p->arena, weft_assignment, count)};
  if (!w.plan || !w.seconds || !w.other || !w.followed) return;
  for (uint64_t o = 0; o < count; o++) w.plan[o] = &p->plan[o];
  for (uint32_t o = 0; o < count; o++) w.total += w.seconds[o] = op_seconds(p, o, w.plan);
  weft_text_printf(report, "mesh %s, target %s: predicted %.4g us a step\n", weft_mesh_text(p->mesh, p->arena),
                   p->target->name, w.total * 1e6);
  for (uint32_t o = 0; o < count; o++) {
    const weft_graph_op *op = &p->graph->ops[o];
    explain_op(&w, o, report);
    for (uint32_t i = 0; i < op->in_count; i++)
      if (p->graph->values[op->ins[i]].producer == WEFT_NONE) explain_tensor(&w, &p->graph->values[op->ins[i]], report);
    explain_tensor(&w, &p->graph->values[op->out], report);
  }
}
