/* The search for what nobody said: dynamic programming along chains, a beam where values branch.
 *
 * Ops are decided in graph order. A state is the layouts of the values that later ops still read; of two states that
 * agree in them the slower one is dropped (unless it saves memory that is scarce). On a chain that is exact; over
 * branches the number of states is bounded by the beam. Costs are weft_cost_of's. Axes are searched in groups of three,
 * the larger layouts of the first group being fixed before the next. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define BEAM 128
#define AXES_AT_ONCE 3
/* States that agree in all layouts but trade time for memory. */
#define TRADES 4

typedef struct table {
  weft_assignment *items;
  uint64_t count, capacity;
} table;

typedef struct state {
  double seconds, bytes;
  uint32_t parent; /* state of the step before */
  uint32_t choice; /* in the op's table */
  uint32_t order;  /* the place it was made in: decides ties */
  uint32_t live_count;
  const uint32_t *live; /* choices of the live ops */
  bool over;            /* more than a chip's memory */
} state;

typedef struct search {
  weft_partitioner *p;
  weft_arena *arena;
  uint32_t axes; /* bit set searched now */
  table *tables; /* by op */
  state **steps; /* by op */
  uint64_t *step_counts;
  uint64_t step_capacity;
  uint32_t *last_use; /* by op: the last op that reads it, or itself */
  uint32_t *live;     /* the live ops */
  uint32_t live_count;
  const weft_assignment **plan; /* scratch: what the op at hand may look up */
} search;

bool weft_is_choice(const weft_partitioner *p, uint32_t op) {
  const weft_graph_op *node = &p->graph->ops[op];
  if (node->kind == WEFT_GRAPH_MATMUL) return true;
  for (uint32_t i = 0; i < node->in_count; i++)
    if (p->graph->values[node->ins[i]].producer != WEFT_NONE) return false;
  return true;
}

static bool may_cut(const weft_partitioner *p, uint32_t op, uint8_t factor, bool fixed) {
  const weft_graph_op *node = &p->graph->ops[op];
  if (node->factors[factor].extent <= 1 || (fixed && p->claims[op].factor_by[factor])) return false;
  if (weft_factor_is_fixed(p->graph, node, factor)) return false;
  if (!node->factors[factor].reduce) return true;
  return !weft_reduce_is_chain(p->graph, node) && weft_reduce_segments(p->graph, node) > 1;
}

static void add_axis(weft_assignment *assignment, const weft_graph_op *node, const weft_graph *graph, uint8_t factor,
                     uint32_t axis) {
  weft_cut *cut = &assignment->cuts[factor];
  if (node->factors[factor].reduce) cut->segments = weft_reduce_segments(graph, node);
  cut->axes[cut->axis_count++] = (uint8_t)axis;
}

uint64_t weft_alternatives(const weft_partitioner *p, uint32_t op, const weft_assignment *base, uint32_t free,
                           bool fixed, weft_assignment **all) {
  const weft_graph_op *node = &p->graph->ops[op];
  uint64_t count = 1, capacity = 1;
  *all = WEFT_NEW_ARRAY(p->arena, weft_assignment, 1);
  if (!*all) return 0;
  **all = *base;
  for (uint32_t a = 0; a < p->mesh->axis_count; a++) {
    if (!(free >> a & 1) || p->mesh->extents[a] == 1) continue;
    for (uint64_t i = 0, before = count; i < before; i++)
      for (uint8_t f = 0; f < node->factor_count; f++) {
        if (!may_cut(p, op, f, fixed)) continue;
        if (!weft_arena_grow(p->arena, all, count, &capacity, sizeof **all)) return 0;
        (*all)[count] = (*all)[i];
        add_axis(&(*all)[count++], node, p->graph, f, a);
      }
  }
  return count;
}

void weft_follow(const weft_partitioner *p, uint32_t op, const weft_assignment *const *plan,
                 weft_assignment *assignment) {
  const weft_assignment *base = &p->plan[op];
  memset(assignment, 0, sizeof *assignment);
  for (uint32_t a = 0; a < WEFT_MAX_AXES; a++) {
    bool claimed = p->claims[op].axis_by[a] != NULL;
    assignment->pins[a] = claimed ? base->pins[a] : WEFT_NO_PIN;
    if (claimed) assignment->decided |= 1u << a;
  }
  for (uint8_t f = 0; f < WEFT_MAX_FACTORS; f++) {
    const weft_cut *cut = &base->cuts[f];
    for (uint8_t i = 0; i < cut->axis_count; i++)
      if (p->claims[op].factor_by[f] || p->claims[op].axis_by[cut->axes[i]])
        assignment->cuts[f].axes[assignment->cuts[f].axis_count++] = cut->axes[i];
    assignment->cuts[f].segments = assignment->cuts[f].axis_count ? cut->segments : 0;
  }
  weft_propagate_forward(p, op, plan, assignment);
}

/* ---- states
 * ----------------------------------------------------------------------------------------------------------- */

/* Where the assignment is in the op's table, added when new; UINT32_MAX without memory. */
static uint32_t interned(search *s, uint32_t op, const weft_assignment *assignment) {
  table *known = &s->tables[op];
  for (uint64_t i = 0; i < known->count; i++)
    if (weft_assignment_equal(&known->items[i], assignment)) return (uint32_t)i;
  if (!weft_arena_grow(s->arena, &known->items, known->count, &known->capacity, sizeof *known->items))
    return UINT32_MAX;
  known->items[known->count] = *assignment;
  return (uint32_t)known->count++;
}

/* The choices still live after `op`, for a state that comes from `from` and chose `choice`. */
static const uint32_t *live_after(search *s, uint32_t op, const state *from, uint32_t choice, uint32_t *count) {
  uint32_t *live = WEFT_NEW_ARRAY(s->arena, uint32_t, s->live_count + 1);
  *count = 0;
  if (!live) return NULL;
  for (uint32_t k = 0; k < s->live_count; k++)
    if (s->last_use[s->live[k]] > op) live[(*count)++] = from->live[k];
  if (s->last_use[op] > op) live[(*count)++] = choice;
  return live;
}

static bool add_state(search *s, uint32_t op, uint32_t parent, uint32_t choice) {
  const state *from = op ? &s->steps[op - 1][parent] : &(state){0};
  state **step = &s->steps[op];
  uint64_t *count = &s->step_counts[op];
  weft_cost cost;
  weft_cost_of(s->p, op, s->plan, &s->tables[op].items[choice], &cost);
  if (choice == UINT32_MAX || !weft_arena_grow(s->arena, step, *count, &s->step_capacity, sizeof **step)) return false;
  state made = {.seconds = from->seconds + weft_cost_seconds(&cost),
                .bytes = from->bytes + cost.bytes,
                .parent = parent,
                .choice = choice,
                .order = (uint32_t)*count};
  made.live = live_after(s, op, from, choice, &made.live_count);
  made.over = s->p->target->chip_bytes > 0 && made.bytes > (double)s->p->target->chip_bytes;
  (*step)[(*count)++] = made;
  return made.live != NULL;
}

/* All states that follow one: a choice tries its alternatives, any other op has one assignment. */
static bool expand(search *s, uint32_t op, uint32_t parent, uint64_t alternatives) {
  if (op > 0)
    for (uint32_t k = 0; k < s->live_count; k++)
      s->plan[s->live[k]] = &s->tables[s->live[k]].items[s->steps[op - 1][parent].live[k]];
  if (!weft_is_choice(s->p, op) || weft_product_is_pinned(s->p, op, s->plan)) {
    weft_assignment assignment;
    weft_follow(s->p, op, s->plan, &assignment);
    uint32_t choice = interned(s, op, &assignment);
    return choice != UINT32_MAX && add_state(s, op, parent, choice);
  }
  for (uint64_t c = 0; c < alternatives; c++)
    if (!add_state(s, op, parent, (uint32_t)c)) return false;
  return true;
}

static int compare_number(double a, double b) { return a < b ? -1 : a > b; }

static int by_layout(const void *a, const void *b) {
  const state *x = a, *y = b;
  int order = memcmp(x->live, y->live, x->live_count * sizeof *x->live);
  if (order == 0) order = compare_number(x->seconds, y->seconds);
  if (order == 0) order = compare_number(x->bytes, y->bytes);
  return order ? order : x->order < y->order ? -1 : 1;
}

static int by_time(const void *a, const void *b) {
  const state *x = a, *y = b;
  if (x->over != y->over) return x->over ? 1 : -1;
  int order = x->over ? compare_number(x->bytes, y->bytes) : compare_number(x->seconds, y->seconds);
  return order ? order : x->order < y->order ? -1 : 1;
}

/* Keeps the best of the states with equal layouts, then the best of all. */
static void prune(search *s, uint32_t op) {
  state *step = s->steps[op];
  uint64_t kept = 0, same = 0;
  qsort(step, s->step_counts[op], sizeof *step, by_layout);
  for (uint64_t i = 0; i < s->step_counts[op]; i++) {
    const state *last = kept ? &step[kept - 1] : NULL;
    bool equal = last && memcmp(last->live, step[i].live, step[i].live_count * sizeof *step[i].live) == 0;
    if (equal && (s->p->target->chip_bytes == 0 || step[i].bytes >= last->bytes || same == TRADES)) continue;
    same = equal ? same + 1 : 1;
    step[kept++] = step[i];
  }
  qsort(step, kept, sizeof *step, by_time);
  s->step_counts[op] = weft_min_u64(kept, BEAM);
}

static void advance_live(search *s, uint32_t op) {
  uint32_t kept = 0;
  for (uint32_t k = 0; k < s->live_count; k++)
    if (s->last_use[s->live[k]] > op) s->live[kept++] = s->live[k];
  if (s->last_use[op] > op) s->live[kept++] = op;
  s->live_count = kept;
}

static bool fill_choices(search *s, uint32_t op) {
  weft_partitioner *p = s->p;
  if (!weft_is_choice(p, op)) return true;
  table *known = &s->tables[op];
  known->count = known->capacity =
      weft_alternatives(p, op, &p->plan[op], s->axes & ~p->plan[op].decided, true, &known->items);
  return known->count > 0;
}

static bool step_over(search *s, uint32_t op) {
  if (!fill_choices(s, op)) return false;
  s->step_capacity = 0;
  uint64_t parents = op ? s->step_counts[op - 1] : 1, alternatives = s->tables[op].count;
  for (uint32_t parent = 0; parent < parents; parent++)
    if (!expand(s, op, parent, alternatives)) return false;
  prune(s, op);
  advance_live(s, op);
  return true;
}

/* ---- one group of axes
 * ---------------------------------------------------------------------------------------------------- */

static bool search_prepare(search *s) {
  uint64_t count = s->p->graph->op_count;
  s->tables = WEFT_NEW_ARRAY(s->arena, table, count);
  s->steps = WEFT_NEW_ARRAY(s->arena, state *, count);
  s->step_counts = WEFT_NEW_ARRAY(s->arena, uint64_t, count);
  s->last_use = WEFT_NEW_ARRAY(s->arena, uint32_t, count);
  s->live = WEFT_NEW_ARRAY(s->arena, uint32_t, count + 1);
  s->plan = WEFT_NEW_ARRAY(s->arena, const weft_assignment *, count);
  if (weft_arena_failed(s->arena)) return false;
  for (uint32_t o = 0; o < count; o++) {
    uint32_t out = s->p->graph->ops[o].out;
    s->last_use[o] = o;
    for (uint64_t u = s->p->use_begin[out]; u < s->p->use_begin[out + 1]; u++)
      if (s->p->uses[u].op > s->last_use[o]) s->last_use[o] = s->p->uses[u].op;
  }
  return true;
}

static void read_plan(const search *s, uint32_t final, weft_assignment *plan) {
  for (uint32_t o = (uint32_t)s->p->graph->op_count, at = final; o-- > 0;) {
    const state *chosen = &s->steps[o][at];
    plan[o] = s->tables[o].items[chosen->choice];
    at = chosen->parent;
  }
}

static weft_status search_axes(weft_partitioner *p, weft_arena *arena, uint32_t axes, uint64_t limit,
                               weft_assignment **plans, uint64_t *plan_count) {
  uint64_t count = p->graph->op_count;
  search s = {.p = p, .arena = arena, .axes = axes};
  if (!search_prepare(&s)) return weft_error_memory(p->diag);
  for (uint32_t o = 0; o < count; o++)
    if (!step_over(&s, o)) return weft_error_memory(p->diag);
  *plan_count = count ? weft_min_u64(limit, s.step_counts[count - 1]) : 1;
  for (uint32_t i = 0; i < *plan_count; i++) {
    plans[i] = WEFT_NEW_ARRAY(p->arena, weft_assignment, count);
    if (!plans[i]) return weft_error_memory(p->diag);
    read_plan(&s, i, plans[i]);
  }
  return WEFT_OK;
}

/* Up to AXES_AT_ONCE axes after those in `done`. */
static uint32_t next_axes(const weft_partitioner *p, uint32_t done) {
  uint32_t axes = 0, taken = 0;
  for (uint32_t a = 0; a < p->mesh->axis_count && taken < AXES_AT_ONCE; a++)
    if (!(done >> a & 1) && p->mesh->extents[a] > 1) axes |= 1u << a, taken++;
  return axes;
}

weft_status weft_search(weft_partitioner *p, uint64_t limit, weft_assignment **plans, uint64_t *plan_count) {
  weft_status status = WEFT_OK;
  uint32_t done = 0;
  do {
    uint32_t axes = next_axes(p, done);
    done |= axes;
    weft_arena *arena = weft_arena_new();
    if (!arena) return weft_error_memory(p->diag);
    status = search_axes(p, arena, axes, limit, plans, plan_count);
    weft_arena_free(arena);
    if (status != WEFT_OK) return status;
    for (uint64_t o = 0; o < p->graph->op_count; o++) {
      uint32_t decided = p->plan[o].decided | axes;
      p->plan[o] = plans[0][o];
      if (weft_is_choice(p, (uint32_t)o)) p->plan[o].decided = decided;
    }
  } while (next_axes(p, done));
  return status;
}
