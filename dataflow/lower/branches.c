/* scf.if and scf.index_switch: demux E, the captures and the touched frontiers by the selector, lower each lane, mux.
 */
#include "lower_private.h"

/* One op with a region for each lane; a lane without a block is the identity. */
typedef struct branching {
  lowering *l;
  const weft_mlir_op *op;
  weft_mlir_value *selector;
  uint32_t lanes;
  const uint32_t *region;     /* of each lane */
  weft_mlir_value *execution; /* before */
  weft_mlir_op *enter;        /* demux of E */
  weft_mlir_value **captures; /* the union of the lanes' captures, of the source */
  weft_mlir_op **capture_enter;
  uint32_t capture_count;
  uint32_t *touched; /* the union of the lanes' partitions */
  weft_mlir_op **write_enter, **read_enter;
  uint32_t touched_count;
  weft_mlir_value **ends;   /* E of each lane */
  weft_mlir_value **writes; /* [k * lanes + lane] for touched partition k */
  weft_mlir_value **reads;
  weft_mlir_value **results; /* [result * lanes + lane] */
  split_ports *split;
} branching;

/* The union in order of first use: the lanes' lists one after the other, in the order of the text. */
static bool unite(branching *b) {
  lowering *l = b->l;
  uint64_t captures = 0, touched = 0;
  for (uint32_t r = 0; r < b->op->region_count; r++) {
    captures += lower_facts(l, b->op, r)->capture_count;
    touched += lower_facts(l, b->op, r)->touched_count;
  }
  b->captures = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, captures);
  b->touched = WEFT_NEW_ARRAY(l->scratch, uint32_t, touched);
  if (!b->captures || !b->touched) return lower_memory(l);
  l->stamp++;
  for (uint32_t r = 0; r < b->op->region_count; r++) {
    const region_facts *facts = lower_facts(l, b->op, r);
    for (uint32_t i = 0; i < facts->capture_count; i++)
      if (l->value_stamps[facts->captures[i]->mark] != l->stamp) {
        l->value_stamps[facts->captures[i]->mark] = l->stamp;
        b->captures[b->capture_count++] = facts->captures[i];
      }
    for (uint32_t i = 0; i < facts->touched_count; i++)
      if (l->partition_stamps[facts->touched[i]] != l->stamp) {
        l->partition_stamps[facts->touched[i]] = l->stamp;
        b->touched[b->touched_count++] = facts->touched[i];
      }
  }
  return true;
}

static bool enter(branching *b) {
  lowering *l = b->l;
  b->execution = l->execution;
  b->enter = lower_demux(l, b->selector, l->execution, b->lanes);
  b->capture_enter = WEFT_NEW_ARRAY(l->scratch, weft_mlir_op *, b->capture_count);
  b->write_enter = WEFT_NEW_ARRAY(l->scratch, weft_mlir_op *, b->touched_count);
  b->read_enter = WEFT_NEW_ARRAY(l->scratch, weft_mlir_op *, b->touched_count);
  b->ends = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, b->lanes);
  b->writes = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, (uint64_t)b->lanes * b->touched_count);
  b->reads = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, (uint64_t)b->lanes * b->touched_count);
  b->results = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, (uint64_t)b->lanes * b->op->result_count);
  if (weft_arena_failed(l->scratch)) return lower_memory(l);
  for (uint32_t i = 0; i < b->capture_count; i++)
    b->capture_enter[i] = lower_demux(l, b->selector, lower_value(l, b->captures[i]), b->lanes);
  for (uint32_t i = 0; i < b->touched_count; i++) {
    const frontier *f = &l->frontiers[b->touched[i]];
    b->write_enter[i] = lower_demux(l, b->selector, f->write, b->lanes);
    b->read_enter[i] = lower_demux(l, b->selector, f->read, b->lanes);
  }
  return l->status == WEFT_OK;
}

/* The lane's values of the captures of its region. */
static weft_mlir_value **lane_captures(branching *b, uint32_t lane, const region_facts *facts) {
  lowering *l = b->l;
  weft_mlir_value **values = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, facts->capture_count);
  if (!values) return NULL;
  for (uint32_t i = 0; i < b->capture_count; i++) l->numbers[b->captures[i]->mark] = i;
  for (uint32_t i = 0; i < facts->capture_count; i++)
    values[i] = &b->capture_enter[l->numbers[facts->captures[i]->mark]]->results[lane];
  return values;
}

static bool lower_lane(branching *b, uint32_t lane) {
  lowering *l = b->l;
  uint32_t index = b->region[lane];
  const region_facts *facts = lower_facts(l, b->op, index);
  const weft_mlir_block *block = weft_mlir_op_region(b->op, index)->first;
  for (uint32_t i = 0; i < b->touched_count; i++)
    lower_set_frontier(l, b->touched[i], &b->write_enter[i]->results[lane], &b->read_enter[i]->results[lane]);
  lower_set_execution(l, &b->enter->results[lane]);
  event_port *ports = b->split ? lower_split_region(l, b->split, b->op, index, lane) : NULL;
  if (b->split && !ports) return lower_memory(l);
  weft_mlir_value **outside = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, facts->capture_count),
                  **captures = lane_captures(b, lane, facts);
  if (!outside || !captures) return lower_memory(l);
  for (uint32_t i = 0; i < facts->capture_count; i++) outside[i] = lower_value(l, facts->captures[i]);
  if (block) {
    inner_region region = {
        .block = block, .facts = facts, .execution = l->execution, .captures = captures, .ports = ports};
    if (!lower_region(l, &region)) return false;
    for (uint32_t i = 0; i < b->op->result_count; i++)
      b->results[(uint64_t)i * b->lanes + lane] = lower_value(l, block->last->operands[i]);
    lower_restore(l, facts, outside);
  }
  b->ends[lane] = l->execution;
  for (uint32_t i = 0; i < b->touched_count; i++) {
    b->writes[(uint64_t)i * b->lanes + lane] = l->frontiers[b->touched[i]].write;
    b->reads[(uint64_t)i * b->lanes + lane] = l->frontiers[b->touched[i]].read;
  }
  return !b->split || lower_split_take(l, b->split, b->op, index, ports, &b->enter->results[lane]);
}

static bool leave(branching *b) {
  lowering *l = b->l;
  l->line = (weft_mlir_op *)b->op;
  lower_set_execution(l, lower_mux(l, b->selector, b->ends, b->lanes));
  for (uint32_t i = 0; i < b->touched_count; i++) {
    weft_mlir_value *write = lower_mux(l, b->selector, b->writes + (uint64_t)i * b->lanes, b->lanes);
    lower_set_frontier(l, b->touched[i], write, lower_mux(l, b->selector, b->reads + (uint64_t)i * b->lanes, b->lanes));
  }
  for (uint32_t i = 0; i < b->op->result_count; i++)
    l->map[b->op->results[i].mark] = lower_mux(l, b->selector, b->results + (uint64_t)i * b->lanes, b->lanes);
  if (b->split && !lower_join_lanes(l, b->split, b->selector, b->lanes, b->region, b->enter)) return false;
  return l->status == WEFT_OK;
}

static bool branch(lowering *l, const weft_mlir_op *op, weft_mlir_value *selector, uint32_t lanes,
                   const uint32_t *region, event_port *ports) {
  branching b = {.l = l, .op = op, .selector = selector, .lanes = lanes, .region = region};
  if (ports) b.split = lower_split(l, op, ports);
  if ((ports && !b.split) || !unite(&b) || !enter(&b)) return false;
  for (uint32_t lane = 0; lane < lanes; lane++)
    if (!lower_lane(&b, lane)) return false;
  return leave(&b);
}

bool lower_if(lowering *l, const weft_mlir_op *op, event_port *ports) {
  static const uint32_t region[] = {1, 0}; /* lane 0 is false */
  return branch(l, op, lower_value(l, op->operands[0]), 2, region, ports);
}

/* Only a default: its region takes the place of the op. */
static bool inline_default(lowering *l, const weft_mlir_op *op, event_port *ports) {
  const weft_mlir_block *block = weft_mlir_op_block(op, 0);
  event_port *outer = l->ports;
  uint32_t count = l->port_count;
  l->ports = ports;
  l->port_count = ports ? lower_facts(l, op, 0)->site_count : 0;
  bool good = lower_block(l, block);
  l->ports = outer;
  l->port_count = count;
  for (uint32_t i = 0; good && i < op->result_count; i++)
    l->map[op->results[i].mark] = lower_value(l, block->last->operands[i]);
  return good;
}

bool lower_index_switch(lowering *l, const weft_mlir_op *op, event_port *ports) {
  const weft_mlir_attribute *cases = weft_mlir_attribute_of(op, "cases");
  uint32_t count = op->region_count - 1;
  if (!count) return inline_default(l, op, ports);
  uint32_t *region = WEFT_NEW_ARRAY(l->scratch, uint32_t, count + 1);
  if (!region) return lower_memory(l);
  weft_mlir_value *argument = lower_value(l, op->operands[0]);
  if (count == 1) {
    weft_mlir_value *is =
        lower_compare(l, WEFT_CMPI_eq, argument, lower_number(l, l->index, weft_mlir_dense_integer(cases, 0)));
    region[0] = 0;
    region[1] = 1;
    return branch(l, op, is, 2, region, ports);
  }
  /* Lane k is the k-th case, the last lane the default. */
  weft_mlir_value *selector = lower_number(l, l->index, count);
  for (uint32_t k = count; k-- > 0;) {
    weft_mlir_value *is =
        lower_compare(l, WEFT_CMPI_eq, argument, lower_number(l, l->index, weft_mlir_dense_integer(cases, k)));
    selector = lower_select(l, is, lower_number(l, l->index, k), selector);
    region[k] = k + 1;
  }
  region[count] = 0;
  return branch(l, op, selector, count + 1, region, ports);
}
