/* scf.for and scf.while: carry rings for E, the carried values and the touched frontiers; captures by invariant and
 * gate. */
#include "lower_private.h"

/* One ring: c = carry(selector, init, next); demux(selector, what came round) = (exit, body). */
typedef struct ring {
  weft_mlir_op *carry;
  weft_mlir_op *lanes;
} ring;

typedef struct frontier_rings {
  ring write, read;
} frontier_rings;

static void set_operand(weft_mlir_op *op, uint32_t index, weft_mlir_value *value) {
  if (op && value) op->operands[index] = value;
}

static weft_mlir_value *result(const weft_mlir_op *op, uint32_t index) {
  return op ? (weft_mlir_value *)&op->results[index] : NULL;
}

/* Remembers what stands for the captures of a region outside of it. */
static weft_mlir_value **values_outside(lowering *l, const region_facts *facts) {
  weft_mlir_value **outside = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, facts->capture_count);
  for (uint32_t i = 0; outside && i < facts->capture_count; i++) outside[i] = lower_value(l, facts->captures[i]);
  return outside;
}

/* ---- for ------------------------------------------------------------------------------------------------------ */

static ring for_ring(lowering *l, weft_mlir_value *phase, weft_mlir_value *init) {
  ring r = {.carry = lower_carry(l, phase, init)};
  r.lanes = lower_demux(l, phase, result(r.carry, 0), 2);
  return r;
}

/* index bounds run as i64; the induction value has its own type again. */
static weft_mlir_op *counting_stream(lowering *l, const weft_mlir_op *op, weft_mlir_value **induction) {
  const weft_mlir_type *type = op->operands[0]->type;
  bool index = type->kind == WEFT_MLIR_INDEX_TYPE, wide = weft_mlir_attribute_of(op, "unsignedCmp") != NULL;
  weft_mlir_value *bounds[3];
  for (int i = 0; i < 3; i++) {
    bounds[i] = lower_value(l, op->operands[i]);
    if (index) bounds[i] = lower_cast(l, l->names.index_cast, bounds[i], l->i64);
  }
  const weft_mlir_type *counted = index ? l->i64 : type;
  weft_mlir_named member = {weft_mlir_intern(l->context, "cont_cond", 9), weft_mlir_string(l->context, "ult", 3)};
  const weft_mlir_attribute *properties = wide ? weft_mlir_dictionary(l->context, &member, 1) : NULL;
  weft_mlir_op *stream =
      lower_emit(l, l->names.stream, bounds, 3, (const weft_mlir_type *[]){counted, l->i1}, 2, properties);
  *induction = result(stream, 0);
  if (index) *induction = lower_cast(l, l->names.index_cast, *induction, l->index);
  return stream;
}

static bool for_rings(lowering *l, const region_facts *facts, weft_mlir_value *phase, ring *execution,
                      frontier_rings *frontiers) {
  *execution = for_ring(l, phase, l->execution);
  for (uint32_t i = 0; i < facts->touched_count; i++) {
    const frontier *f = &l->frontiers[facts->touched[i]];
    frontiers[i].write = for_ring(l, phase, f->write);
    frontiers[i].read = for_ring(l, phase, f->read);
  }
  for (uint32_t i = 0; i < facts->touched_count; i++)
    lower_set_frontier(l, facts->touched[i], result(frontiers[i].write.lanes, 1), result(frontiers[i].read.lanes, 1));
  return l->status == WEFT_OK;
}

/* Hands what the body ends with round the rings, and what they let out on. */
static void close_for(lowering *l, const region_facts *facts, const ring *execution, const frontier_rings *frontiers) {
  set_operand(execution->carry, 2, l->execution);
  lower_set_execution(l, result(execution->lanes, 0));
  for (uint32_t i = 0; i < facts->touched_count; i++) {
    uint32_t p = facts->touched[i];
    set_operand(frontiers[i].write.carry, 2, l->frontiers[p].write);
    set_operand(frontiers[i].read.carry, 2, l->frontiers[p].read);
    lower_set_frontier(l, p, result(frontiers[i].write.lanes, 0), result(frontiers[i].read.lanes, 0));
  }
}

bool lower_for(lowering *l, const weft_mlir_op *op, event_port *ports) {
  const region_facts *facts = lower_facts(l, op, 0);
  const weft_mlir_block *body = weft_mlir_op_block(op, 0);
  ring execution, *carried = WEFT_NEW_ARRAY(l->scratch, ring, op->result_count);
  frontier_rings *frontiers = WEFT_NEW_ARRAY(l->scratch, frontier_rings, facts->touched_count);
  weft_mlir_value **captures = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, facts->capture_count),
                  **outside = values_outside(l, facts);
  split_ports *split = ports ? lower_split(l, op, ports) : NULL;
  if (!carried || !frontiers || !captures || !outside || (ports && !split)) return lower_memory(l);
  weft_mlir_value *induction;
  weft_mlir_value *phase = result(counting_stream(l, op, &induction), 1);
  if (!for_rings(l, facts, phase, &execution, frontiers)) return false;
  l->map[body->arguments[0].mark] = induction;
  for (uint32_t i = 0; i < op->result_count; i++) {
    carried[i] = for_ring(l, phase, lower_value(l, op->operands[3 + i]));
    l->map[body->arguments[1 + i].mark] = result(carried[i].lanes, 1);
  }
  for (uint32_t i = 0; i < facts->capture_count; i++)
    captures[i] = result(lower_gate(l, phase, lower_invariant(l, phase, outside[i])), 1);
  event_port *inner = split ? lower_split_region(l, split, op, 0, 0) : NULL;
  inner_region region = {
      .block = body, .facts = facts, .execution = result(execution.lanes, 1), .captures = captures, .ports = inner};
  if (l->status != WEFT_OK || !lower_region(l, &region)) return false;
  for (uint32_t i = 0; i < op->result_count; i++) {
    set_operand(carried[i].carry, 2, lower_value(l, body->last->operands[i]));
    l->map[op->results[i].mark] = result(carried[i].lanes, 0);
  }
  lower_restore(l, facts, outside);
  l->line = (weft_mlir_op *)op;
  close_for(l, facts, &execution, frontiers);
  if (!split) return l->status == WEFT_OK;
  return lower_split_take(l, split, op, 0, inner, NULL) && lower_join_for(l, split, phase);
}

/* ---- while ---------------------------------------------------------------------------------------------------- */

/* The parts of one while. Rings are built with an open selector, which `before` computes; closed by close_selector. */
typedef struct looping {
  lowering *l;
  const weft_mlir_op *op;
  const region_facts *before, *after;
  uint32_t *touched, touched_count; /* of both */
  weft_mlir_value *entered;         /* E before the loop */
  weft_mlir_op *execution;          /* carries */
  weft_mlir_op **inits, **invariants, **writes, **reads;
  weft_mlir_value **outside_before, **outside_after;
  weft_mlir_value *selector, **arguments; /* of scf.condition */
  weft_mlir_op *exit, *gate;              /* of E after `before` */
  weft_mlir_value **closes;
  uint32_t close_count;
  weft_mlir_op **write_lanes, **read_lanes, **argument_lanes;
} looping;

static bool unite_touched(looping *w) {
  lowering *l = w->l;
  w->touched = WEFT_NEW_ARRAY(l->scratch, uint32_t, w->before->touched_count + w->after->touched_count);
  if (!w->touched) return lower_memory(l);
  l->stamp++;
  const region_facts *both[] = {w->before, w->after};
  for (int r = 0; r < 2; r++)
    for (uint32_t i = 0; i < both[r]->touched_count; i++)
      if (l->partition_stamps[both[r]->touched[i]] != l->stamp) {
        l->partition_stamps[both[r]->touched[i]] = l->stamp;
        w->touched[w->touched_count++] = both[r]->touched[i];
      }
  return true;
}

/* Stands for the selector until it is known: an operand that exists and has any type. */
static weft_mlir_value *open_selector(const looping *w) { return w->entered; }

static bool open_rings(looping *w) {
  lowering *l = w->l;
  w->inits = WEFT_NEW_ARRAY(l->scratch, weft_mlir_op *, w->op->operand_count);
  w->invariants = WEFT_NEW_ARRAY(l->scratch, weft_mlir_op *, w->before->capture_count);
  w->writes = WEFT_NEW_ARRAY(l->scratch, weft_mlir_op *, w->touched_count);
  w->reads = WEFT_NEW_ARRAY(l->scratch, weft_mlir_op *, w->touched_count);
  if (weft_arena_failed(l->scratch)) return lower_memory(l);
  w->execution = lower_carry(l, open_selector(w), l->execution);
  for (uint32_t i = 0; i < w->op->operand_count; i++)
    w->inits[i] = lower_carry(l, open_selector(w), lower_value(l, w->op->operands[i]));
  for (uint32_t i = 0; i < w->before->capture_count; i++) {
    weft_mlir_value *latched = lower_invariant(l, open_selector(w), w->outside_before[i]);
    w->invariants[i] = latched ? weft_mlir_defining_op(latched) : NULL;
  }
  for (uint32_t i = 0; i < w->touched_count; i++) {
    const frontier *f = &l->frontiers[w->touched[i]];
    w->writes[i] = lower_carry(l, open_selector(w), f->write);
    w->reads[i] = lower_carry(l, open_selector(w), f->read);
  }
  return l->status == WEFT_OK;
}

static void close_selector(looping *w) {
  set_operand(w->execution, 0, w->selector);
  for (uint32_t i = 0; i < w->op->operand_count; i++) set_operand(w->inits[i], 0, w->selector);
  for (uint32_t i = 0; i < w->before->capture_count; i++) set_operand(w->invariants[i], 0, w->selector);
  for (uint32_t i = 0; i < w->touched_count; i++) {
    set_operand(w->writes[i], 0, w->selector);
    set_operand(w->reads[i], 0, w->selector);
  }
}

static bool lower_before(looping *w, event_port *ports) {
  lowering *l = w->l;
  const weft_mlir_block *block = weft_mlir_op_block(w->op, 0);
  weft_mlir_value **captures = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, w->before->capture_count);
  w->arguments = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, w->op->result_count);
  if (!captures || !w->arguments) return lower_memory(l);
  for (uint32_t i = 0; i < w->before->capture_count; i++) captures[i] = result(w->invariants[i], 0);
  for (uint32_t i = 0; i < w->op->operand_count; i++) l->map[block->arguments[i].mark] = result(w->inits[i], 0);
  for (uint32_t i = 0; i < w->touched_count; i++)
    lower_set_frontier(l, w->touched[i], result(w->writes[i], 0), result(w->reads[i], 0));
  inner_region region = {
      .block = block, .facts = w->before, .execution = result(w->execution, 0), .captures = captures, .ports = ports};
  if (!lower_region(l, &region)) return false;
  w->selector = lower_value(l, block->last->operands[0]);
  for (uint32_t i = 0; i < w->op->result_count; i++) w->arguments[i] = lower_value(l, block->last->operands[1 + i]);
  lower_restore(l, w->before, w->outside_before);
  l->line = (weft_mlir_op *)w->op;
  close_selector(w);
  return l->status == WEFT_OK;
}

/* A gate by the selector, and the token that closes it. */
static weft_mlir_op *gate_with_close(looping *w, weft_mlir_value *value) {
  lowering *l = w->l;
  weft_mlir_op *gate = lower_gate(l, w->selector, value);
  weft_mlir_op *close = gate ? lower_demux(l, &gate->results[0], &gate->results[1], 2) : NULL;
  w->closes[w->close_count++] = result(close, 0);
  return gate;
}

/* Splits what `before` ended with: false lanes leave, true lanes enter `after`. */
static bool split_lanes(looping *w, weft_mlir_value **captures) {
  lowering *l = w->l;
  w->closes = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, w->after->capture_count + 2);
  w->write_lanes = WEFT_NEW_ARRAY(l->scratch, weft_mlir_op *, w->touched_count);
  w->read_lanes = WEFT_NEW_ARRAY(l->scratch, weft_mlir_op *, w->touched_count);
  w->argument_lanes = WEFT_NEW_ARRAY(l->scratch, weft_mlir_op *, w->op->result_count);
  if (weft_arena_failed(l->scratch)) return lower_memory(l);
  w->close_count = 1; /* the first is the last execution, known later */
  w->exit = lower_demux(l, w->selector, l->execution, 2);
  w->gate = gate_with_close(w, l->execution);
  for (uint32_t i = 0; i < w->touched_count; i++) {
    const frontier *f = &l->frontiers[w->touched[i]];
    w->write_lanes[i] = lower_demux(l, w->selector, f->write, 2);
    w->read_lanes[i] = lower_demux(l, w->selector, f->read, 2);
  }
  for (uint32_t i = 0; i < w->op->result_count; i++)
    w->argument_lanes[i] = lower_demux(l, w->selector, w->arguments[i], 2);
  for (uint32_t i = 0; i < w->after->capture_count; i++)
    captures[i] = result(gate_with_close(w, lower_invariant(l, w->selector, w->outside_after[i])), 1);
  return l->status == WEFT_OK;
}

static bool lower_after(looping *w, weft_mlir_value *const *captures, event_port *ports) {
  lowering *l = w->l;
  const weft_mlir_block *block = weft_mlir_op_block(w->op, 1);
  for (uint32_t i = 0; i < w->op->result_count; i++) l->map[block->arguments[i].mark] = result(w->argument_lanes[i], 1);
  for (uint32_t i = 0; i < w->touched_count; i++)
    lower_set_frontier(l, w->touched[i], result(w->write_lanes[i], 1), result(w->read_lanes[i], 1));
  inner_region region = {
      .block = block, .facts = w->after, .execution = result(w->gate, 1), .captures = captures, .ports = ports};
  if (!lower_region(l, &region)) return false;
  for (uint32_t i = 0; i < w->op->operand_count; i++)
    set_operand(w->inits[i], 2, lower_value(l, block->last->operands[i]));
  lower_restore(l, w->after, w->outside_after);
  l->line = (weft_mlir_op *)w->op;
  set_operand(w->execution, 2, l->execution);
  for (uint32_t i = 0; i < w->touched_count; i++) {
    set_operand(w->writes[i], 2, l->frontiers[w->touched[i]].write);
    set_operand(w->reads[i], 2, l->frontiers[w->touched[i]].read);
  }
  return l->status == WEFT_OK;
}

/* Retirement: completion waits until every gate has closed. */
static bool retire(looping *w) {
  lowering *l = w->l;
  weft_mlir_value *phase = result(w->gate, 0);
  weft_mlir_op *last = lower_demux(l, phase, l->execution, 2);
  w->closes[0] = result(last, 0);
  weft_mlir_value *closed = lower_sync(l, w->closes, w->close_count, NULL);
  weft_mlir_value *round = lower_mux(l, phase, (weft_mlir_value *[]){closed, result(last, 1)}, 2);
  weft_mlir_op *retirement = lower_carry(l, w->selector, w->entered);
  set_operand(retirement, 2, round);
  weft_mlir_op *retired = lower_demux(l, w->selector, result(retirement, 0), 2);
  lower_set_execution(l, lower_sync(l, (weft_mlir_value *[]){result(w->exit, 0), result(retired, 0)}, 2, NULL));
  for (uint32_t i = 0; i < w->touched_count; i++)
    lower_set_frontier(l, w->touched[i], result(w->write_lanes[i], 0), result(w->read_lanes[i], 0));
  for (uint32_t i = 0; i < w->op->result_count; i++) l->map[w->op->results[i].mark] = result(w->argument_lanes[i], 0);
  return l->status == WEFT_OK;
}

bool lower_while(lowering *l, const weft_mlir_op *op, event_port *ports) {
  looping w = {
      .l = l, .op = op, .before = lower_facts(l, op, 0), .after = lower_facts(l, op, 1), .entered = l->execution};
  split_ports *split = ports ? lower_split(l, op, ports) : NULL;
  weft_mlir_value **captures = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, w.after->capture_count);
  w.outside_before = values_outside(l, w.before);
  w.outside_after = values_outside(l, w.after);
  if (!captures || !w.outside_before || !w.outside_after || (ports && !split)) return lower_memory(l);
  if (!unite_touched(&w) || !open_rings(&w)) return false;
  event_port *inner = split ? lower_split_region(l, split, op, 0, 0) : NULL;
  if (!lower_before(&w, inner) || !split_lanes(&w, captures)) return false;
  if (split && !lower_split_take(l, split, op, 0, inner, result(w.execution, 0))) return false;
  inner = split ? lower_split_region(l, split, op, 1, 1) : NULL;
  if (!lower_after(&w, captures, inner)) return false;
  if (split && !lower_split_take(l, split, op, 1, inner, result(w.gate, 1))) return false;
  if (!retire(&w)) return false;
  return !split || lower_join_while(l, split, w.selector);
}
