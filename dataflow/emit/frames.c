/* Finding loops and branches in a token graph. A stream makes a for of everything that its phase selects; a carry with
 * any other condition makes a while of everything that this condition selects; a demux by anything else opens a branch,
 * and the mux by the same selector closes it. Whatever does not fit is no such graph. */
#include "frames.h"

static value_facts *facts(const frames *f, const weft_mlir_value *value) { return &f->values[value->mark]; }

const weft_mlir_value *frames_alias(const frames *f, const weft_mlir_value *value) {
  while (facts(f, value)->alias) value = facts(f, value)->alias;
  return value;
}

static bool is_memory(const weft_mlir_value *value) { return value->type->kind == WEFT_MLIR_MEMREF_TYPE; }

/* ---- numbering ------------------------------------------------------------------------------------------------ */

static bool number(frames *f) {
  weft_arena *scratch = f->e->scratch;
  const weft_mlir_block *body = weft_mlir_op_block(f->graph, 0);
  uint32_t ops = 0, values = 0;
  for (uint32_t i = 0; i < body->argument_count; i++) body->arguments[i].mark = values++;
  for (weft_mlir_op *op = body->first; op; op = op->next) {
    op->mark = ops++;
    for (uint32_t i = 0; i < op->result_count; i++) op->results[i].mark = values++;
  }
  f->op_count = ops;
  f->value_count = values;
  f->ops = WEFT_NEW_ARRAY(scratch, weft_mlir_op *, ops);
  f->values = WEFT_NEW_ARRAY(scratch, value_facts, values);
  f->op_frames = WEFT_NEW_ARRAY(scratch, frame *, ops);
  f->op_lanes = WEFT_NEW_ARRAY(scratch, lane *, ops);
  f->list = WEFT_NEW_ARRAY(scratch, frame *, ops + 1);
  f->lanes = WEFT_NEW_ARRAY(scratch, lane *, values);
  if (weft_arena_failed(scratch)) return false;
  for (weft_mlir_op *op = body->first; op; op = op->next) f->ops[op->mark] = op;
  return true;
}

static frame *add_frame(frames *f, frame_kind kind) {
  frame *made = WEFT_NEW(f->e->scratch, frame);
  if (!made) return NULL;
  made->kind = kind;
  made->number = f->frame_count;
  f->list[f->frame_count++] = made;
  return made;
}

static bool is_phase(const weft_mlir_value *value) {
  return !value->is_argument && weft_mlir_code(value->owner) == WEFT_DATAFLOW_STREAM && value->index == 1;
}

/* The frame that a selector value drives, or NULL: of a stream, by its op's number; of a while, by the selector's mark.
 */
typedef struct drivers {
  frame **by_value; /* by mark of the selector or phase */
} drivers;

static bool find_frames(frames *f, drivers *d) {
  d->by_value = WEFT_NEW_ARRAY(f->e->scratch, frame *, f->value_count);
  frame *root = add_frame(f, FRAME_ROOT);
  if (!d->by_value || !root) return false;
  root->placed = true;
  for (uint32_t i = 0; i < f->op_count; i++) {
    const weft_mlir_op *op = f->ops[i];
    uint32_t code = weft_mlir_code(op);
    const weft_mlir_value *driver = code == WEFT_DATAFLOW_STREAM  ? &op->results[1]
                                    : code == WEFT_DATAFLOW_CARRY ? op->operands[0]
                                                                  : NULL;
    if (!driver || d->by_value[driver->mark]) continue;
    bool counted = is_phase(driver);
    frame *made = add_frame(f, counted ? FRAME_FOR : FRAME_WHILE);
    if (!made) return false;
    made->stream = counted ? driver->owner : NULL;
    made->selector = counted ? NULL : driver;
    d->by_value[driver->mark] = made;
  }
  return true;
}

/* ---- places --------------------------------------------------------------------------------------------------- */

/* The lane of a selector inside another lane; lanes of one selector are few. */
static lane *find_lane(frames *f, lane *outer, const weft_mlir_value *selector, uint32_t number) {
  lane **list = &f->lanes[selector->mark];
  for (lane *l = *list; l; l = l->next)
    if (l->outer == outer && l->number == number) return l;
  lane *made = WEFT_NEW(f->e->scratch, lane);
  if (!made) return NULL;
  *made = (lane){.outer = outer, .next = *list, .selector = selector, .number = number};
  return *list = made;
}

typedef enum progress { WAITING, KNOWN, WRONG } progress;

static progress give(frames *f, const weft_mlir_value *value, rate at_rate, frame *in, lane *under,
                     const weft_mlir_value *alias) {
  *facts(f, value) = (value_facts){.rate = at_rate, .frame = in, .lane = under, .alias = alias};
  return KNOWN;
}

static void put_op(frames *f, const weft_mlir_op *op, frame *in, lane *under) {
  f->op_frames[op->mark] = in;
  f->op_lanes[op->mark] = under;
}

/* The one place that all token operands from `first` on have; none at all is the root. */
static progress common_place(const frames *f, const weft_mlir_op *op, uint32_t first, value_facts *place) {
  bool any = false;
  *place = (value_facts){.rate = RATE_PLACE, .frame = f->list[0]};
  for (uint32_t i = first; i < op->operand_count; i++) {
    if (is_memory(op->operands[i])) continue;
    const value_facts *v = facts(f, op->operands[i]);
    if (v->rate == RATE_UNKNOWN) return WAITING;
    if (any && (v->rate != place->rate || v->frame != place->frame || v->lane != place->lane)) return WRONG;
    *place = *v;
    any = true;
  }
  return KNOWN;
}

/* Ops that take one token of each operand and give one of each result, all in one place. */
static progress place_plain(frames *f, const weft_mlir_op *op, bool shares) {
  value_facts place;
  progress p = common_place(f, op, 0, &place);
  if (p != KNOWN) return p;
  if (place.rate == RATE_PHASE) return WRONG;
  put_op(f, op, place.frame, place.lane);
  for (uint32_t i = 0; i < op->result_count; i++)
    if (!is_memory(&op->results[i]))
      give(f, &op->results[i], place.rate, place.frame, place.lane, shares ? op->operands[i] : NULL);
  return KNOWN;
}

static progress place_stream(frames *f, const drivers *d, const weft_mlir_op *op) {
  value_facts place;
  progress p = common_place(f, op, 0, &place);
  if (p != KNOWN || place.rate != RATE_PLACE) return p == KNOWN ? WRONG : p;
  frame *loop = d->by_value[op->results[1].mark];
  loop->parent = place.frame;
  loop->guard = place.lane;
  loop->placed = true;
  put_op(f, op, loop, NULL);
  give(f, &op->results[0], RATE_PLACE, loop, NULL, NULL);
  return give(f, &op->results[1], RATE_PHASE, loop, NULL, NULL);
}

/* carry and invariant: the initial value stands where the loop stands. */
static progress place_ring(frames *f, const drivers *d, const weft_mlir_op *op) {
  frame *loop = d->by_value[op->operands[0]->mark];
  const value_facts *init = facts(f, op->operands[1]);
  if (!loop) return WRONG;
  if (init->rate == RATE_UNKNOWN) return WAITING;
  if (init->rate != RATE_PLACE) return WRONG;
  if (!loop->placed) {
    if (loop->kind == FRAME_FOR) return WAITING;
    loop->parent = init->frame;
    loop->guard = init->lane;
    loop->placed = true;
  }
  if (loop->parent != init->frame || loop->guard != init->lane) return WRONG;
  put_op(f, op, loop, NULL);
  bool invariant = weft_mlir_code(op) == WEFT_DATAFLOW_INVARIANT;
  return give(f, &op->results[0], loop->kind == FRAME_FOR ? RATE_PHASE : RATE_PLACE, loop, NULL,
              invariant ? op->operands[1] : NULL);
}

static progress place_gate(frames *f, const drivers *d, const weft_mlir_op *op) {
  frame *loop = d->by_value[op->operands[0]->mark];
  const value_facts *value = facts(f, op->operands[1]);
  if (!loop) return WRONG;
  if (value->rate == RATE_UNKNOWN || !loop->placed) return WAITING;
  bool counted = loop->kind == FRAME_FOR;
  if (value->frame != loop || value->lane || value->rate != (counted ? RATE_PHASE : RATE_PLACE)) return WRONG;
  lane *after = counted ? NULL : find_lane(f, NULL, loop->selector, 1);
  if (!counted && !after) return WRONG;
  put_op(f, op, loop, NULL);
  give(f, &op->results[0], RATE_RETIRE, loop, NULL, NULL);
  return give(f, &op->results[1], RATE_PLACE, loop, after, op->operands[1]);
}

static progress place_demux(frames *f, const drivers *d, const weft_mlir_op *op) {
  const weft_mlir_value *selector = op->operands[0], *value = op->operands[1];
  const value_facts *s = facts(f, selector), *v = facts(f, value);
  frame *loop = d->by_value[selector->mark];
  if (s->rate == RATE_UNKNOWN || v->rate == RATE_UNKNOWN) return WAITING;
  if (s->rate == RATE_RETIRE) { /* closes and the last round: order only */
    put_op(f, op, s->frame, NULL);
    for (uint32_t i = 0; i < op->result_count; i++) give(f, &op->results[i], RATE_RETIRE, s->frame, NULL, NULL);
    return KNOWN;
  }
  if (loop && loop->kind == FRAME_FOR) {
    if (v->rate != RATE_PHASE || v->frame != loop) return WRONG;
    put_op(f, op, loop, NULL);
    give(f, &op->results[0], RATE_PLACE, loop->parent, loop->guard, value);
    return give(f, &op->results[1], RATE_PLACE, loop, NULL, value);
  }
  if (s->rate != RATE_PLACE || v->rate != RATE_PLACE || s->frame != v->frame || s->lane != v->lane) return WRONG;
  put_op(f, op, v->frame, v->lane);
  bool leaves = loop && v->frame == loop && !v->lane;
  if (loop && !leaves) return WRONG; /* a while's selector that is a branch's, too */
  for (uint32_t i = 0; i < op->result_count; i++) {
    lane *taken = leaves && i == 0 ? NULL : find_lane(f, v->lane, selector, i);
    if (!taken && !(leaves && i == 0)) return WRONG;
    give(f, &op->results[i], RATE_PLACE, leaves && i == 0 ? loop->parent : v->frame,
         leaves && i == 0 ? loop->guard : taken, value);
  }
  return KNOWN;
}

static progress place_mux(frames *f, const drivers *d, const weft_mlir_op *op) {
  const weft_mlir_value *selector = op->operands[0];
  const value_facts *s = facts(f, selector);
  if (s->rate == RATE_UNKNOWN) return WAITING;
  if (s->rate == RATE_RETIRE) {
    put_op(f, op, s->frame, NULL);
    return give(f, &op->results[0], RATE_RETIRE, s->frame, NULL, NULL);
  }
  if (s->rate != RATE_PLACE || d->by_value[selector->mark]) return WRONG;
  for (uint32_t i = 1; i < op->operand_count; i++) {
    const value_facts *v = facts(f, op->operands[i]);
    if (v->rate == RATE_UNKNOWN) return WAITING;
    lane *wanted = find_lane(f, s->lane, selector, i - 1);
    if (v->rate != RATE_PLACE || v->frame != s->frame || v->lane != wanted) return WRONG;
  }
  put_op(f, op, s->frame, s->lane);
  return give(f, &op->results[0], RATE_PLACE, s->frame, s->lane, NULL);
}

static progress place_op(frames *f, const drivers *d, const weft_mlir_op *op) {
  switch (weft_mlir_code(op)) {
  case WEFT_DATAFLOW_STREAM: return place_stream(f, d, op);
  case WEFT_DATAFLOW_CARRY:
  case WEFT_DATAFLOW_INVARIANT: return place_ring(f, d, op);
  case WEFT_DATAFLOW_GATE: return place_gate(f, d, op);
  case WEFT_DATAFLOW_DEMUX: return place_demux(f, d, op);
  case WEFT_DATAFLOW_MUX: return place_mux(f, d, op);
  case WEFT_DATAFLOW_SYNC: return place_plain(f, op, true);
  case WEFT_OP_MEMREF_ALLOC:
  case WEFT_OP_MEMREF_CAST: put_op(f, op, f->list[0], NULL); return KNOWN;
  default: return place_plain(f, op, false);
  }
}

static bool place_all(frames *f, const drivers *d) {
  const weft_mlir_block *body = weft_mlir_op_block(f->graph, 0);
  for (uint32_t i = 0; i < body->argument_count; i++) give(f, &body->arguments[i], RATE_PLACE, f->list[0], NULL, NULL);
  for (uint32_t left = f->op_count, before = left + 1; left && left < before;) {
    before = left;
    left = 0;
    for (uint32_t i = 0; i < f->op_count; i++) {
      if (f->op_frames[i]) continue;
      progress p = place_op(f, d, f->ops[i]);
      if (p == WRONG) return false;
      left += p == WAITING;
    }
  }
  for (uint32_t i = 0; i < f->op_count; i++)
    if (!f->op_frames[i]) return false;
  return true;
}

/* Rings close in their own loop, a while's selector is computed in it, and what is returned is the root's. */
static bool check(frames *f) {
  for (uint32_t i = 1; i < f->frame_count; i++) {
    const frame *loop = f->list[i];
    if (!loop->placed) return false;
    if (loop->kind == FRAME_FOR) continue;
    const value_facts *s = facts(f, loop->selector);
    if (s->rate != RATE_PLACE || s->frame != loop || s->lane) return false;
  }
  for (uint32_t i = 0; i < f->op_count; i++) {
    const weft_mlir_op *op = f->ops[i];
    if (weft_mlir_code(op) == WEFT_DATAFLOW_GRAPH_RETURN && (f->op_frames[i] != f->list[0] || f->op_lanes[i]))
      return false;
    if (weft_mlir_code(op) != WEFT_DATAFLOW_CARRY) continue;
    const value_facts *next = facts(f, op->operands[2]);
    const frame *loop = f->op_frames[i];
    if (next->frame != loop || (next->rate != RATE_PLACE && next->rate != RATE_RETIRE)) return false;
    const lane *wanted = loop->kind == FRAME_WHILE ? find_lane(f, NULL, loop->selector, 1) : NULL;
    if (next->rate == RATE_PLACE && next->lane != wanted) return false;
  }
  return true;
}

static uint32_t depth_of(frame *loop) {
  if (loop->kind == FRAME_ROOT || loop->depth) return loop->depth;
  return loop->depth = depth_of(loop->parent) + 1;
}

static bool list_members(frames *f) {
  uint32_t *counts = WEFT_NEW_ARRAY(f->e->scratch, uint32_t, f->frame_count);
  if (!counts) return false;
  for (uint32_t i = 0; i < f->op_count; i++) counts[f->op_frames[i]->number]++;
  for (uint32_t i = 0; i < f->frame_count; i++) {
    frame *loop = f->list[i];
    loop->members = WEFT_NEW_ARRAY(f->e->scratch, uint32_t, counts[i]);
    if (!loop->members) return false;
    depth_of(loop);
    if (!i) continue;
    loop->sibling = loop->parent->first_child;
    loop->parent->first_child = loop;
  }
  for (uint32_t i = 0; i < f->op_count; i++) {
    frame *loop = f->op_frames[i];
    loop->members[loop->member_count++] = i;
  }
  return true;
}

bool frames_find(frames *f) {
  drivers d;
  return number(f) && find_frames(f, &d) && place_all(f, &d) && check(f) && list_members(f);
}
