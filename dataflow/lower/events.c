/* Channels: each binding is one sequence of events. A region with a site has a stream of events, per activation one
 * true an event and then one false, and a lane selector, one token an event. Rings are carries whose next value is the
 * true lane of a demux by "goes on", so that their end leaves no token. Source: design "Lowering rules in full",
 * channels; graph-launch seed on the fixed ordinal schedule. */
#include "lower_private.h"

static weft_mlir_value *result(const weft_mlir_op *op, uint32_t index) {
  return op ? (weft_mlir_value *)&op->results[index] : NULL;
}

static void set_operand(weft_mlir_op *op, uint32_t index, weft_mlir_value *value) {
  if (op && value) op->operands[index] = value;
}

/* What passes: the true lane. */
static weft_mlir_value *passed(lowering *l, weft_mlir_value *condition, weft_mlir_value *value) {
  return result(lower_demux(l, condition, value, 2), 1);
}

/* One token of a constant for each of `trigger`. */
static weft_mlir_value *constant_on(lowering *l, weft_mlir_value *trigger, const weft_mlir_attribute *value) {
  weft_mlir_value *entry = l->entry;
  bool top = l->top;
  l->entry = trigger;
  l->top = false;
  weft_mlir_value *made = lower_constant(l, value);
  l->entry = entry;
  l->top = top;
  return made;
}

static const weft_mlir_attribute *zero_of(lowering *l, const weft_mlir_type *type) {
  if (type->kind == WEFT_MLIR_FLOAT_TYPE) return weft_mlir_float_bits(l->context, type, 0);
  return weft_mlir_integer_attribute(l->context, type, 0);
}

weft_mlir_value *lower_never(lowering *l, const weft_mlir_type *type) {
  return passed(l, lower_constant(l, weft_mlir_bool(l->context, false)), lower_constant(l, zero_of(l, type)));
}

/* A constant that a ring needs once a turn: latched while it goes on. The condition is set when it is known. */
static weft_mlir_op *ring_constant(lowering *l, const weft_mlir_type *type, int64_t value) {
  weft_mlir_value *init = lower_number(l, type, value);
  weft_mlir_value *latched = lower_invariant(l, init, init);
  return latched ? weft_mlir_defining_op(latched) : NULL;
}

/* ---- sites ---------------------------------------------------------------------------------------------------- */

/* true, false: the phase of a stream of one round. */
static weft_mlir_value *one_event(lowering *l) {
  weft_mlir_value *zero = lower_number(l, l->i64, 0), *one = lower_number(l, l->i64, 1);
  weft_mlir_op *stream = lower_emit(l, l->names.stream, (weft_mlir_value *[]){zero, one, one}, 3,
                                    (const weft_mlir_type *[]){l->i64, l->i1}, 2, NULL);
  return result(stream, 1);
}

bool lower_receive(lowering *l, const weft_mlir_op *op, event_port *port) {
  weft_mlir_op *sync;
  lower_sync(l, (weft_mlir_value *[]){l->execution, port->in}, 2, &sync);
  if (!sync) return false;
  l->map[op->results[0].mark] = &sync->results[1];
  lower_set_execution(l, &sync->results[0]);
  if (port->wants_events) port->events = one_event(l);
  return l->status == WEFT_OK;
}

/* join(E, all R): repeats dropped, and E where a frontier comes after it. */
static weft_mlir_value *join_everything(lowering *l) {
  weft_mlir_value **tokens = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, l->partition_count + 1);
  uint32_t count = 1;
  bool after = false;
  if (!tokens) {
    lower_memory(l);
    return NULL;
  }
  tokens[0] = l->execution;
  for (uint32_t p = 0; p < l->partition_count; p++) {
    const frontier *f = &l->frontiers[p];
    bool repeated = false;
    for (uint32_t i = 0; i < count && !repeated; i++) repeated = tokens[i] == f->read;
    if (!repeated) tokens[count++] = f->read;
    after |= !repeated && f->read_after == l->number;
  }
  if (after) tokens[0] = tokens[--count];
  return count == 1 ? tokens[0] : lower_sync(l, tokens, count, NULL);
}

bool lower_send(lowering *l, const weft_mlir_op *op, event_port *port) {
  weft_mlir_op *sync;
  weft_mlir_value *before = join_everything(l);
  lower_sync(l, (weft_mlir_value *[]){before, lower_value(l, op->operands[1])}, 2, &sync);
  if (!sync) return false;
  port->out = &sync->results[1];
  lower_set_execution(l, &sync->results[0]);
  for (uint32_t p = 0; p < l->partition_count; p++) lower_set_frontier(l, p, l->execution, l->execution);
  if (port->wants_events) port->events = one_event(l);
  return l->status == WEFT_OK;
}

/* ---- blocks --------------------------------------------------------------------------------------------------- */

typedef struct block_port {
  event_port *port;
  uint32_t items, next;
  weft_mlir_op *demux;      /* of an input with several items; its selector is set at the end */
  weft_mlir_value **events; /* of each item */
  weft_mlir_value **outs;
} block_port;

struct block_events {
  block_port *ports;
  uint32_t count;
};

static block_port *port_of(block_events *events, uint32_t binding) {
  for (uint32_t i = 0; i < events->count; i++)
    if (events->ports[i].port->binding == binding) return &events->ports[i];
  return NULL;
}

static bool count_items(lowering *l, block_events *events, const weft_mlir_block *block) {
  for (const weft_mlir_op *op = block->first; op; op = op->next) {
    const uint32_t *sites;
    uint32_t count;
    if (!lower_op_sites(l, op, &sites, &count)) return false;
    for (uint32_t i = 0; i < count; i++) port_of(events, sites[i])->items++;
  }
  return true;
}

block_events *lower_events_begin(lowering *l, const weft_mlir_block *block) {
  block_events *events = WEFT_NEW(l->scratch, block_events);
  if (events) events->ports = WEFT_NEW_ARRAY(l->scratch, block_port, l->port_count);
  if (!events || !events->ports) {
    lower_memory(l);
    return NULL;
  }
  events->count = l->port_count;
  for (uint32_t i = 0; i < events->count; i++) events->ports[i].port = &l->ports[i];
  if (!count_items(l, events, block)) return NULL;
  for (uint32_t i = 0; i < events->count; i++) {
    block_port *b = &events->ports[i];
    b->events = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, b->items);
    b->outs = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, b->items);
    if (b->items > 1 && b->port->in) b->demux = lower_demux(l, b->port->in, b->port->in, b->items);
  }
  if (weft_arena_failed(l->scratch)) lower_memory(l);
  return l->status == WEFT_OK ? events : NULL;
}

event_port *lower_events_item(lowering *l, block_events *events, const uint32_t *sites, uint32_t count) {
  event_port *ports = WEFT_NEW_ARRAY(l->scratch, event_port, count);
  if (!ports) {
    lower_memory(l);
    return NULL;
  }
  for (uint32_t i = 0; i < count; i++) {
    const block_port *b = port_of(events, sites[i]);
    ports[i] = (event_port){.binding = sites[i], .wants_events = b->items > 1 || b->port->wants_events};
    ports[i].in = b->demux ? &b->demux->results[b->next] : b->port->in;
  }
  return ports;
}

void lower_events_done(lowering *l, block_events *events, const event_port *item, uint32_t count) {
  (void)l;
  for (uint32_t i = 0; i < count; i++) {
    block_port *b = port_of(events, item[i].binding);
    b->events[b->next] = item[i].events;
    b->outs[b->next++] = item[i].out;
  }
}

/* The ring of a block: which item is next, whether this token passes, whether the ring goes on. */
typedef struct block_ring {
  weft_mlir_value *item, *token, *passes, *goes_on, *next;
} block_ring;

/* Two items: q is false, then true. Passes: t or q. Goes on: t or not q. Next: q or not t. */
static void pair_ring(lowering *l, block_ring *r) {
  r->passes = lower_binary(l, l->names.ori, r->token, r->item);
  r->goes_on = lower_compare(l, WEFT_CMPI_uge, r->token, r->item);
  r->next = lower_compare(l, WEFT_CMPI_uge, r->item, r->token);
}

static void counted_ring(lowering *l, block_ring *r, uint32_t items) {
  weft_mlir_op *last = ring_constant(l, l->index, items - 1), *one = ring_constant(l, l->index, 1);
  weft_mlir_value *at_last = lower_compare(l, WEFT_CMPI_eq, r->item, result(last, 0));
  r->passes = lower_binary(l, l->names.ori, r->token, at_last);
  r->goes_on = lower_binary(l, l->names.ori, r->token, lower_compare(l, WEFT_CMPI_ne, r->item, result(last, 0)));
  r->next = lower_select(l, r->token, r->item, lower_binary(l, l->names.addi, r->item, result(one, 0)));
  set_operand(last, 0, r->goes_on);
  set_operand(one, 0, r->goes_on);
}

static bool close_block(lowering *l, block_port *b) {
  if (b->items == 1) {
    b->port->events = b->events[0];
    b->port->out = b->outs[0];
    return true;
  }
  const weft_mlir_type *type = b->items == 2 ? l->i1 : l->index;
  weft_mlir_value *first = lower_number(l, type, 0);
  weft_mlir_op *carry = lower_carry(l, first, first);
  block_ring r = {.item = result(carry, 0)};
  r.token = lower_mux(l, r.item, b->events, b->items);
  if (b->items == 2)
    pair_ring(l, &r);
  else
    counted_ring(l, &r, b->items);
  set_operand(carry, 0, r.goes_on);
  set_operand(carry, 2, passed(l, r.goes_on, r.next));
  weft_mlir_value *lane = passed(l, r.token, r.item);
  set_operand(b->demux, 0, lane);
  if (b->outs[0]) b->port->out = lower_mux(l, lane, b->outs, b->items);
  if (b->port->wants_events) b->port->events = passed(l, r.passes, r.token);
  return l->status == WEFT_OK;
}

bool lower_events_end(lowering *l, block_events *events) {
  for (uint32_t i = 0; i < events->count; i++)
    if (!close_block(l, &events->ports[i])) return false;
  return true;
}

/* ---- regions of one op ---------------------------------------------------------------------------------------- */

static event_port *part(const split_ports *s, uint32_t region, uint32_t port) {
  return &s->parts[region * s->count + port];
}

static uint32_t find_port(const split_ports *s, uint32_t binding) {
  uint32_t i = 0;
  while (s->outer[i].binding != binding) i++;
  return i;
}

split_ports *lower_split(lowering *l, const weft_mlir_op *op, event_port *ports) {
  const uint32_t *sites;
  split_ports *s = WEFT_NEW(l->scratch, split_ports);
  if (!s || !lower_op_sites(l, op, &sites, &s->count)) return NULL;
  s->outer = ports;
  s->regions = op->region_count;
  s->parts = WEFT_NEW_ARRAY(l->scratch, event_port, (uint64_t)s->regions * s->count);
  s->has = WEFT_NEW_ARRAY(l->scratch, bool, (uint64_t)s->regions * s->count);
  s->sharers = WEFT_NEW_ARRAY(l->scratch, uint32_t, s->count);
  s->demuxes = WEFT_NEW_ARRAY(l->scratch, weft_mlir_op *, s->count);
  if (weft_arena_failed(l->scratch)) return NULL;
  for (uint32_t r = 0; r < s->regions; r++)
    for (uint32_t i = 0; i < lower_facts(l, op, r)->site_count; i++) {
      uint32_t j = find_port(s, lower_facts(l, op, r)->sites[i]);
      s->has[r * s->count + j] = true;
      s->sharers[j]++;
    }
  uint32_t lanes = s->regions > 1 ? s->regions : 2;
  for (uint32_t j = 0; j < s->count; j++)
    if (s->sharers[j] > 1 && ports[j].in) s->demuxes[j] = lower_demux(l, ports[j].in, ports[j].in, lanes);
  return l->status == WEFT_OK ? s : NULL;
}

event_port *lower_split_region(lowering *l, split_ports *s, const weft_mlir_op *op, uint32_t index, uint32_t lane) {
  const region_facts *facts = lower_facts(l, op, index);
  event_port *ports = WEFT_NEW_ARRAY(l->scratch, event_port, facts->site_count);
  for (uint32_t i = 0; ports && i < facts->site_count; i++) {
    uint32_t j = find_port(s, facts->sites[i]);
    ports[i] = (event_port){.binding = facts->sites[i], .wants_events = s->sharers[j] > 1 || s->outer[j].wants_events};
    ports[i].in = s->demuxes[j] ? &s->demuxes[j]->results[lane] : s->outer[j].in;
  }
  return ports;
}

bool lower_split_take(lowering *l, split_ports *s, const weft_mlir_op *op, uint32_t index, const event_port *ports,
                      weft_mlir_value *execution) {
  const region_facts *facts = lower_facts(l, op, index);
  for (uint32_t i = 0; i < facts->site_count; i++) *part(s, index, find_port(s, facts->sites[i])) = ports[i];
  for (uint32_t j = 0; j < s->count; j++)
    if (!s->has[index * s->count + j] && (s->sharers[j] > 1 || s->outer[j].wants_events))
      part(s, index, j)->events = constant_on(l, execution, weft_mlir_bool(l->context, false));
  return l->status == WEFT_OK;
}

/* The one region that has a site of port j. */
static uint32_t only_region(const split_ports *s, uint32_t j) {
  uint32_t r = 0;
  while (!s->has[r * s->count + j]) r++;
  return r;
}

/* A lane's output that never comes, for a lane without a site: both inputs of its demux are used up each activation. */
static weft_mlir_value *silent_lane(lowering *l, weft_mlir_value *execution, weft_mlir_value *no_event,
                                    const weft_mlir_type *type) {
  return passed(l, no_event, constant_on(l, execution, zero_of(l, type)));
}

/* s = invariant(P, selector); P = mux(s, the lanes' events); the lane is s at each true of P. */
static bool join_port(lowering *l, split_ports *s, uint32_t j, weft_mlir_value *selector, uint32_t lanes,
                      const uint32_t *lane_region, weft_mlir_op *execution_lanes) {
  event_port *outer = &s->outer[j];
  if (s->sharers[j] == 1) outer->out = part(s, only_region(s, j), j)->out;
  if (s->sharers[j] == 1 && !outer->wants_events) return true;
  weft_mlir_value **events = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, lanes),
                  **outs = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, lanes);
  if (!events || !outs) return lower_memory(l);
  for (uint32_t lane = 0; lane < lanes; lane++) events[lane] = part(s, lane_region[lane], j)->events;
  weft_mlir_value *chosen = lower_invariant(l, selector, selector), *all = lower_mux(l, chosen, events, lanes);
  if (!all) return false;
  set_operand(weft_mlir_defining_op(chosen), 0, all);
  if (outer->wants_events) outer->events = all;
  if (s->sharers[j] == 1) return true;
  weft_mlir_value *lane_of = passed(l, all, chosen);
  set_operand(s->demuxes[j], 0, lane_of);
  if (!l->bindings[outer->binding].output) return l->status == WEFT_OK;
  for (uint32_t lane = 0; lane < lanes; lane++) {
    bool has = s->has[lane_region[lane] * s->count + j];
    outs[lane] =
        has ? part(s, lane_region[lane], j)->out
            : silent_lane(l, &execution_lanes->results[lane], events[lane], l->bindings[outer->binding].element);
  }
  outer->out = lower_mux(l, lane_of, outs, lanes);
  return l->status == WEFT_OK;
}

bool lower_join_lanes(lowering *l, split_ports *s, weft_mlir_value *selector, uint32_t lanes,
                      const uint32_t *lane_region, weft_mlir_op *execution_lanes) {
  for (uint32_t j = 0; j < s->count; j++)
    if (!join_port(l, s, j, selector, lanes, lane_region, execution_lanes)) return false;
  return true;
}

/* z is false where the phase is next, true inside a round; a token passes when it equals z. */
bool lower_join_for(lowering *l, split_ports *s, weft_mlir_value *phase) {
  for (uint32_t j = 0; j < s->count; j++) {
    event_port *outer = &s->outer[j];
    outer->out = part(s, 0, j)->out;
    if (!outer->wants_events) continue;
    weft_mlir_value *first = lower_number(l, l->i1, 0);
    weft_mlir_op *carry = lower_carry(l, first, first);
    weft_mlir_value *z = result(carry, 0);
    weft_mlir_value *token = lower_mux(l, z, (weft_mlir_value *[]){phase, part(s, 0, j)->events}, 2);
    weft_mlir_value *goes_on = lower_binary(l, l->names.ori, z, token);
    set_operand(carry, 0, goes_on);
    set_operand(carry, 2, passed(l, goes_on, token));
    outer->events = passed(l, lower_compare(l, WEFT_CMPI_eq, z, token), token);
  }
  return l->status == WEFT_OK;
}

/* q is 0 in `before`, 1 at the condition, 2 in `after`:
 * (0,T) passes and stays, (0,F) to 1, (1,T) to 2, (1,F) passes and ends, (2,T) passes and stays, (2,F) to 0. */
static bool while_port(lowering *l, split_ports *s, uint32_t j, weft_mlir_value *selector) {
  event_port *outer = &s->outer[j];
  if (s->sharers[j] == 1) outer->out = part(s, only_region(s, j), j)->out;
  if (s->sharers[j] == 1 && !outer->wants_events) return true;
  weft_mlir_value *first = lower_number(l, l->index, 0);
  weft_mlir_op *carry = lower_carry(l, first, first), *constants[3];
  for (int i = 0; i < 3; i++) constants[i] = ring_constant(l, l->index, i);
  weft_mlir_value *q = result(carry, 0), *zero = result(constants[0], 0), *one = result(constants[1], 0),
                  *two = result(constants[2], 0);
  weft_mlir_value *token =
      lower_mux(l, q, (weft_mlir_value *[]){part(s, 0, j)->events, selector, part(s, 1, j)->events}, 3);
  weft_mlir_value *at_condition = lower_compare(l, WEFT_CMPI_eq, q, one);
  weft_mlir_value *passes = lower_binary(l, l->names.xori, token, at_condition);
  weft_mlir_value *goes_on = lower_binary(l, l->names.ori, token, lower_compare(l, WEFT_CMPI_ne, q, one));
  weft_mlir_value *after_true = lower_select(l, at_condition, two, q);
  weft_mlir_value *after_false = lower_select(l, lower_compare(l, WEFT_CMPI_eq, q, zero), one, zero);
  set_operand(carry, 0, goes_on);
  for (int i = 0; i < 3; i++) set_operand(constants[i], 0, goes_on);
  set_operand(carry, 2, passed(l, goes_on, lower_select(l, token, after_true, after_false)));
  if (outer->wants_events) outer->events = passed(l, passes, token);
  if (s->sharers[j] == 1) return l->status == WEFT_OK;
  weft_mlir_value *event = lower_binary(l, l->names.andi, passes, token);
  weft_mlir_value *lane = passed(l, event, lower_compare(l, WEFT_CMPI_eq, q, two));
  set_operand(s->demuxes[j], 0, lane);
  if (l->bindings[outer->binding].output)
    outer->out = lower_mux(l, lane, (weft_mlir_value *[]){part(s, 0, j)->out, part(s, 1, j)->out}, 2);
  return l->status == WEFT_OK;
}

bool lower_join_while(lowering *l, split_ports *s, weft_mlir_value *selector) {
  for (uint32_t j = 0; j < s->count; j++)
    if (!while_port(l, s, j, selector)) return false;
  return true;
}
