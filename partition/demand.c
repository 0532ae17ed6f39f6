/* Demand: which ops each chip runs and which blocks of which values it needs, found backwards from the outputs. */
#include "machine_private.h"

#include <stdlib.h>

/* Pieces of all gathers together: half a gigabyte of machine graph. */
#define MOST_PIECES ((uint64_t)1 << 22)

static uint32_t request(machine *m, uint32_t value, const weft_block *block, uint32_t chip);
static uint32_t request_state_copy(machine *m, uint32_t value, const weft_block *block, uint32_t chip);

/* The op whose result lies on the chips as the value does. */
static uint32_t maker_of(const machine *m, uint32_t value) {
  return is_state(m, value) ? m->updater[value] : m->p->graph->values[value].producer;
}

static uint32_t add_record(machine *m, record made) {
  if (m->record_count >= WEFT_NONE ||
      !weft_arena_grow(m->arena, &m->records, m->record_count, &m->record_capacity, sizeof *m->records)) {
    m->failed = true;
    return WEFT_NONE;
  }
  uint32_t *head = &m->heads[at_chip(m, made.value, made.chip)];
  made.next = *head;
  made.level = NO_LEVEL;
  made.id = WEFT_NONE;
  m->records[m->record_count] = made;
  return *head = (uint32_t)m->record_count++;
}

/* ---- pieces ---------------------------------------------------------------------------------------------------------
 */

/* The chip nearest to `chip` at the coordinates an op is pinned to. */
static uint32_t pinned_chip(const weft_partitioner *p, const weft_assignment *assignment, uint32_t chip) {
  for (uint32_t a = 0; a < p->mesh->axis_count; a++)
    if (assignment->pins[a] != WEFT_NO_PIN)
      chip = chip - weft_mesh_coordinate(p->mesh, chip, a) * p->strides[a] + assignment->pins[a] * p->strides[a];
  return chip;
}

/* The parts of each dimension that a needed block meets. */
typedef struct part_range {
  const weft_cut *cut; /* NULL: not cut */
  uint32_t parts, first, last;
} part_range;

static part_range parts_met(const machine *m, uint32_t op, uint32_t dimension, const weft_block *block) {
  const weft_partitioner *p = m->p;
  const weft_graph_op *maker = &p->graph->ops[op];
  uint8_t factor = maker->out_factors[dimension];
  part_range range = {.parts = 1};
  if (factor == WEFT_NO_FACTOR || p->plan[op].cuts[factor].axis_count == 0) return range;
  range.cut = &p->plan[op].cuts[factor];
  range.parts = weft_cut_parts(p, range.cut);
  if (block->end[dimension] == block->begin[dimension]) return range;
  uint64_t extent = maker->factors[factor].extent;
  range.first = weft_cut_part_of(range.cut, extent, range.parts, block->begin[dimension]);
  range.last = weft_cut_part_of(range.cut, extent, range.parts, block->end[dimension] - 1);
  return range;
}

typedef struct piece {
  uint32_t distance, record;
} piece;

static int by_distance(const void *a, const void *b) {
  const piece *x = a, *y = b;
  return x->distance < y->distance ? -1 : x->distance > y->distance;
}

static void intersect(const weft_block *a, weft_block *b) {
  for (uint32_t d = 0; d < a->rank; d++) {
    b->begin[d] = weft_max_u64(a->begin[d], b->begin[d]);
    b->end[d] = weft_min_u64(a->end[d], b->end[d]);
  }
}

/* Asks the owner of one combination of parts for what it has of the block. Returns false where those parts are empty.
 */
static bool request_piece(machine *m, uint32_t value, uint32_t op, const weft_block *block, const part_range *ranges,
                          const uint32_t *parts, uint32_t chip, piece *found) {
  const weft_partitioner *p = m->p;
  uint32_t owner = pinned_chip(p, &p->plan[op], chip);
  for (uint32_t d = 0; d < block->rank; d++)
    if (ranges[d].cut) owner = weft_cut_chip(p, ranges[d].cut, parts[d], owner);
  weft_block have;
  if (!weft_result_block(p, &p->graph->ops[op], &p->plan[op], owner, &have)) return false;
  intersect(block, &have);
  found->distance = (owner + p->chips - chip) % p->chips;
  found->record = is_state(m, value) ? request_state_copy(m, value, &have, owner) : request(m, value, &have, owner);
  return true;
}

/* The pieces of a block that other chips hold, nearest chip after `chip` first, so that equal chips read alike. */
static uint32_t request_pieces(machine *m, uint32_t value, const weft_block *block, uint32_t chip, uint32_t **records) {
  uint32_t op = maker_of(m, value);
  part_range ranges[WEFT_MAX_RANK];
  uint32_t parts[WEFT_MAX_RANK];
  uint64_t most = 1, count = 0;
  for (uint32_t d = 0; d < block->rank; d++) {
    ranges[d] = parts_met(m, op, d, block);
    parts[d] = ranges[d].first;
    most *= ranges[d].last - ranges[d].first + 1;
  }
  m->piece_count += most;
  if (m->piece_count > MOST_PIECES) {
    if (!m->failed)
      weft_error(m->p->diag, WEFT_INVALID, "use a mesh of several axes, so that fewer chips exchange a value",
                 "'%s' would be gathered piece by piece from too many chips: more than %llu pieces",
                 m->p->graph->values[value].name, (unsigned long long)MOST_PIECES);
    m->failed = true;
    return 0;
  }
  piece *pieces = WEFT_NEW_ARRAY(m->arena, piece, most);
  *records = WEFT_NEW_ARRAY(m->arena, uint32_t, most);
  m->failed |= !pieces || !*records;
  for (bool more = !m->failed; more;) {
    count += request_piece(m, value, op, block, ranges, parts, chip, &pieces[count]);
    more = false;
    for (uint32_t d = block->rank; d-- > 0 && !more;) {
      more = parts[d] < ranges[d].last;
      parts[d] = more ? parts[d] + 1 : ranges[d].first;
    }
  }
  if (m->failed) return 0;
  qsort(pieces, count, sizeof *pieces, by_distance);
  for (uint64_t i = 0; i < count; i++) (*records)[i] = pieces[i].record;
  return (uint32_t)count;
}

/* ---- requests
 * --------------------------------------------------------------------------------------------------------- */

/* Files give rectangles of the plane; fills that are a function of the position are made whole. */
static uint32_t request_shard(machine *m, uint32_t value, const weft_block *block, uint32_t chip) {
  const weft_value *source = &m->p->graph->values[value];
  weft_block plane = *block;
  weft_init_kind fill = source->init.kind;
  if (fill == WEFT_INIT_EXTERNAL || fill == WEFT_INIT_ZERO || fill == WEFT_INIT_CONST_F)
    weft_block_to_plane(source, &plane);
  else
    weft_block_whole(source, &plane);
  record made = {.kind = RECORD_SHARD, .value = value, .chip = chip, .block = *block};
  if (!weft_block_equal(block, &plane)) {
    made.kind = RECORD_SLICE;
    made.source = request(m, value, &plane, chip);
  }
  return add_record(m, made);
}

static uint32_t find_record(const machine *m, uint32_t value, const weft_block *block, uint32_t chip,
                            record_kind kind) {
  for (uint32_t r = m->heads[at_chip(m, value, chip)]; r != WEFT_NONE; r = m->records[r].next)
    if (m->records[r].kind == kind && weft_block_equal(&m->records[r].block, block)) return r;
  return WEFT_NONE;
}

/* ---- states
 * ------------------------------------------------------------------------------------------------------------- */

/* The block of a state that a chip holds: that of what updates it, all of one that nothing updates. */
static bool state_block(const machine *m, uint32_t value, uint32_t chip, weft_block *have) {
  uint32_t op = m->updater[value];
  if (op != WEFT_NONE) return weft_result_block(m->p, &m->p->graph->ops[op], &m->p->plan[op], chip, have);
  weft_block_whole(&m->p->graph->values[value], have);
  return true;
}

/* A chip that holds a block of a state keeps it up to date. */
static uint32_t hold_state(machine *m, uint32_t value, const weft_block *have, uint32_t chip) {
  uint32_t op = m->updater[value], found = find_record(m, value, have, chip, RECORD_SHARD);
  if (op != WEFT_NONE && !m->final[at_chip(m, op, chip)]) {
    m->final[at_chip(m, op, chip)] = true;
    m->again = true;
  }
  if (found != WEFT_NONE) return found;
  return add_record(m, (record){.kind = RECORD_SHARD, .value = value, .chip = chip, .block = *have});
}

/* Other chips read a copy: the state itself may be replaced before it has been sent. */
static uint32_t request_state_copy(machine *m, uint32_t value, const weft_block *block, uint32_t chip) {
  uint32_t found = find_record(m, value, block, chip, RECORD_SLICE);
  if (found != WEFT_NONE || m->failed) return found;
  weft_block have;
  state_block(m, value, chip, &have);
  record made = {.kind = RECORD_SLICE, .value = value, .chip = chip, .block = *block};
  made.source = hold_state(m, value, &have, chip);
  return add_record(m, made);
}

static uint32_t request_state(machine *m, uint32_t value, const weft_block *block, uint32_t chip) {
  weft_block have;
  if (state_block(m, value, chip, &have) && weft_block_inside(block, &have))
    return weft_block_equal(block, &have) ? hold_state(m, value, &have, chip)
                                          : request_state_copy(m, value, block, chip);
  for (uint32_t r = m->heads[at_chip(m, value, chip)]; r != WEFT_NONE; r = m->records[r].next)
    if (weft_block_equal(&m->records[r].block, block)) return r;
  if (m->failed) return WEFT_NONE;
  uint32_t *pieces = NULL;
  record made = {.kind = RECORD_HAVE, .value = value, .chip = chip, .block = *block};
  made.piece_count = request_pieces(m, value, block, chip, &pieces);
  made.pieces = pieces;
  made.kind = made.piece_count == 1 ? RECORD_FOREIGN : RECORD_GATHER;
  return add_record(m, made);
}

static uint32_t request_produced(machine *m, uint32_t value, const weft_block *block, uint32_t chip) {
  uint32_t op = m->p->graph->values[value].producer;
  record made = {.kind = RECORD_HAVE, .value = value, .chip = chip, .block = *block};
  weft_block have;
  if (weft_result_block(m->p, &m->p->graph->ops[op], &m->p->plan[op], chip, &have) && weft_block_inside(block, &have)) {
    m->final[at_chip(m, op, chip)] = true;
    if (!weft_block_equal(block, &have)) {
      made.kind = RECORD_SLICE;
      made.source = request(m, value, &have, chip);
    }
    return add_record(m, made);
  }
  uint32_t *pieces = NULL;
  made.piece_count = request_pieces(m, value, block, chip, &pieces);
  made.pieces = pieces;
  made.kind = made.piece_count == 1 ? RECORD_FOREIGN : RECORD_GATHER;
  return add_record(m, made);
}

/* The record of a chip's block of a value, made when it is new. */
static uint32_t request(machine *m, uint32_t value, const weft_block *block, uint32_t chip) {
  if (is_state(m, value)) return request_state(m, value, block, chip);
  for (uint32_t r = m->heads[at_chip(m, value, chip)]; r != WEFT_NONE; r = m->records[r].next)
    if (weft_block_equal(&m->records[r].block, block)) return r;
  if (m->failed) return WEFT_NONE;
  return m->p->graph->values[value].producer == WEFT_NONE ? request_shard(m, value, block, chip)
                                                          : request_produced(m, value, block, chip);
}

/* ---- ops
 * -------------------------------------------------------------------------------------------------------------- */

/* The segments of a chip, cut into the largest aligned powers of two: each is a complete subtree of the fold. */
uint32_t machine_nodes(const machine *m, uint32_t op, uint32_t chip, node *nodes) {
  const weft_partitioner *p = m->p;
  const weft_cut *cut = weft_reduce_cut(p, &p->graph->ops[op], &p->plan[op]);
  uint64_t part = weft_cut_part(p, cut, chip), parts = weft_cut_parts(p, cut);
  uint32_t at = (uint32_t)(cut->segments * part / parts), end = (uint32_t)(cut->segments * (part + 1) / parts);
  uint32_t count = 0;
  while (at < end && count < MAX_NODES) {
    uint32_t size = 1;
    while (at % (2 * size) == 0 && at + 2 * size <= end) size *= 2;
    nodes[count++] = (node){at, size};
    at += size;
  }
  return count;
}

static uint32_t *new_wanted(machine *m, uint32_t op, uint32_t chip, uint32_t count) {
  uint32_t *wanted = WEFT_NEW_ARRAY(m->arena, uint32_t, count);
  m->wanted[at_chip(m, op, chip)] = wanted;
  m->failed |= !wanted;
  return wanted;
}

static void demand_whole(machine *m, uint32_t op, uint32_t chip) {
  const weft_graph_op *source = &m->p->graph->ops[op];
  uint32_t *wanted = new_wanted(m, op, chip, source->in_count);
  bool any = false;
  for (uint32_t i = 0; wanted && i < source->in_count; i++) {
    weft_block block;
    weft_operand_block(m->p, source, &m->p->plan[op], i, chip, &block);
    bool elsewhere = source->kind == WEFT_GRAPH_ASSEMBLE && weft_block_volume(&block) == 0;
    wanted[i] = elsewhere && (any || i + 1 < source->in_count) ? WEFT_NONE : request(m, source->ins[i], &block, chip);
    any |= wanted[i] != WEFT_NONE;
  }
  uint32_t updates = m->p->graph->values[source->out].updates;
  weft_block block;
  if (updates && weft_result_block(m->p, source, &m->p->plan[op], chip, &block)) request(m, updates - 1, &block, chip);
}

static void demand_nodes(machine *m, uint32_t op, uint32_t chip) {
  const weft_graph_op *source = &m->p->graph->ops[op];
  uint8_t reduce = weft_reduce_factor(source);
  uint64_t extent = source->factors[reduce].extent;
  uint32_t segments = m->p->plan[op].cuts[reduce].segments;
  node nodes[MAX_NODES];
  uint32_t count = machine_nodes(m, op, chip, nodes);
  uint32_t *wanted = new_wanted(m, op, chip, count * source->in_count);
  for (uint32_t n = 0; wanted && n < count; n++)
    for (uint32_t i = 0; i < source->in_count; i++) {
      uint32_t value = source->ins[i];
      weft_block block;
      weft_operand_block(m->p, source, &m->p->plan[op], i, chip, &block);
      for (uint32_t d = 0; d < block.rank; d++)
        if (source->in_factors[i][d] == reduce) {
          block.begin[d] = weft_segment_begin(extent, segments, nodes[n].first);
          block.end[d] = weft_segment_begin(extent, segments, nodes[n].first + nodes[n].count);
        }
      wanted[n * source->in_count + i] = request(m, value, &block, chip);
    }
}

/* Every chip that holds segments for the result on `chip` must compute its nodes. The chips of one group share them. */
static void demand_group(machine *m, uint32_t op, uint32_t chip) {
  const weft_partitioner *p = m->p;
  const weft_cut *cut = weft_reduce_cut(p, &p->graph->ops[op], &p->plan[op]);
  uint32_t parts = weft_cut_parts(p, cut);
  for (uint64_t part = 0; part < parts; part++) {
    if (cut->segments * part / parts == cut->segments * (part + 1) / parts) continue;
    bool *needed = &m->partial[at_chip(m, op, weft_cut_chip(p, cut, (uint32_t)part, chip))];
    if (*needed) return;
    *needed = true;
  }
}

static void demand_op(machine *m, uint32_t op) {
  bool cut = weft_reduce_cut(m->p, &m->p->graph->ops[op], &m->p->plan[op]) != NULL;
  for (uint32_t chip = 0; chip < m->p->chips && !m->failed; chip++) {
    if (!m->final[at_chip(m, op, chip)]) continue;
    if (cut)
      demand_group(m, op, chip);
    else if (!m->wanted[at_chip(m, op, chip)])
      demand_whole(m, op, chip);
  }
  for (uint32_t chip = 0; cut && chip < m->p->chips && !m->failed; chip++)
    if (m->partial[at_chip(m, op, chip)] && !m->wanted[at_chip(m, op, chip)]) demand_nodes(m, op, chip);
}

/* Backwards, so that what reads comes before what makes; states make demands the other way, and then once more. */
static void demand_ops(machine *m) {
  do {
    m->again = false;
    for (uint32_t op = (uint32_t)m->p->graph->op_count; op-- > 0;) demand_op(m, op);
  } while (m->again && !m->failed);
}

/* ---- outputs
 * ---------------------------------------------------------------------------------------------------------- */

typedef struct holder {
  weft_block block;
  uint32_t chip;
  bool idle; /* the block would have to be made here for the output alone */
} holder;

/* Whether a chip takes part in an op by its own cut: chips without segments of a fold, and what follows it there, do
 * not. */
static bool natural(const machine *m, uint32_t op, uint32_t chip) {
  const weft_graph *graph = m->p->graph;
  for (;;) {
    const weft_graph_op *source = &graph->ops[op];
    const weft_cut *cut = weft_reduce_cut(m->p, source, &m->p->plan[op]);
    if (cut) {
      uint64_t part = weft_cut_part(m->p, cut, chip), parts = weft_cut_parts(m->p, cut);
      return cut->segments * part / parts < cut->segments * (part + 1) / parts;
    }
    uint32_t before = WEFT_NONE;
    for (uint32_t i = 0; i < source->in_count && before == WEFT_NONE; i++)
      before = graph->values[source->ins[i]].producer;
    if (weft_is_choice(m->p, op) || before == WEFT_NONE) return true;
    op = before;
  }
}

static int by_block(const void *a, const void *b) {
  const holder *x = a, *y = b;
  for (uint32_t d = 0; d < x->block.rank; d++) {
    if (x->block.begin[d] != y->block.begin[d]) return x->block.begin[d] < y->block.begin[d] ? -1 : 1;
    if (x->block.end[d] != y->block.end[d]) return x->block.end[d] < y->block.end[d] ? -1 : 1;
  }
  if (x->idle != y->idle) return x->idle ? 1 : -1;
  return x->chip < y->chip ? -1 : x->chip > y->chip;
}

static bool busy(const machine *m, uint32_t chip) {
  for (uint64_t op = 0; op < m->p->graph->op_count; op++)
    if (m->final[at_chip(m, op, chip)] || m->partial[at_chip(m, op, chip)]) return true;
  return false;
}

/* The lowest chip that takes part in a block of an output writes it; others that are busy anyway hold replicas. */
static void demand_output(machine *m, uint32_t value, holder *holders, const bool *takes_part) {
  const weft_value *output = &m->p->graph->values[value];
  const weft_graph_op *maker = &m->p->graph->ops[output->producer];
  uint64_t count = 0;
  for (uint32_t chip = 0; chip < m->p->chips; chip++) {
    holder *held = &holders[count];
    if (!weft_result_block(m->p, maker, &m->p->plan[output->producer], chip, &held->block)) continue;
    weft_block_to_plane(output, &held->block);
    held->chip = chip;
    held->idle = !natural(m, output->producer, chip);
    count++;
  }
  qsort(holders, count, sizeof *holders, by_block);
  bool bound = false; /* asked to be replicated, or cut, by name */
  for (uint32_t d = 0; d < output->rank; d++)
    bound |= maker->out_factors[d] != WEFT_NO_FACTOR &&
             m->p->claims[output->producer].factor_by[maker->out_factors[d]] != NULL;
  for (uint64_t i = 0; i < count && !m->failed; i++) {
    bool first = i == 0 || !weft_block_equal(&holders[i].block, &holders[i - 1].block);
    if (!first && !bound && !(takes_part && takes_part[holders[i].chip])) continue;
    uint32_t asked = request(m, value, &holders[i].block, holders[i].chip);
    if (asked == WEFT_NONE) return;
    m->records[asked].output = true;
    m->records[asked].writer = first;
  }
}

/* Every block of a state is held somewhere. Of the chips that hold it as their work wants it, or the lowest that may,
 * the lowest writes it. Returns whether one had to be chosen. */
static bool demand_state(machine *m, uint32_t value, holder *holders) {
  uint64_t count = 0;
  bool chosen = false;
  for (uint32_t chip = 0; chip < m->p->chips; chip++) {
    if (!state_block(m, value, chip, &holders[count].block)) continue;
    holders[count].chip = chip;
    holders[count].idle = find_record(m, value, &holders[count].block, chip, RECORD_SHARD) == WEFT_NONE;
    count++;
  }
  qsort(holders, count, sizeof *holders, by_block);
  for (uint64_t i = 0; i < count && !m->failed; i++) {
    if (i && weft_block_equal(&holders[i].block, &holders[i - 1].block)) continue;
    uint32_t held = hold_state(m, value, &holders[i].block, holders[i].chip);
    if (held == WEFT_NONE) return chosen;
    m->records[held].writer = true;
    chosen |= holders[i].idle;
  }
  return chosen;
}

static void demand_states(machine *m, holder *holders) {
  bool chosen = false;
  for (uint32_t v = 0; v < m->p->graph->value_count && !m->failed; v++)
    if (is_state(m, v)) chosen |= demand_state(m, v, holders);
  if (chosen) demand_ops(m);
}

static void demand_outputs(machine *m, holder *holders, const bool *takes_part) {
  for (uint32_t v = 0; v < m->p->graph->value_count; v++)
    if (m->p->graph->values[v].role == WEFT_ROLE_OUTPUT && m->p->graph->values[v].producer != WEFT_NONE)
      demand_output(m, v, holders, takes_part);
  demand_ops(m);
}

weft_status machine_demand(machine *m) {
  uint64_t ops = m->p->graph->op_count, chips = m->p->chips, values = m->p->graph->value_count;
  m->heads = WEFT_NEW_ARRAY(m->arena, uint32_t, values * chips);
  m->final = WEFT_NEW_ARRAY(m->arena, bool, ops *chips);
  m->partial = WEFT_NEW_ARRAY(m->arena, bool, ops *chips);
  m->wanted = WEFT_NEW_ARRAY(m->arena, uint32_t *, ops * chips);
  m->updater = WEFT_NEW_ARRAY(m->arena, uint32_t, values);
  holder *holders = WEFT_NEW_ARRAY(m->arena, holder, chips);
  bool *takes_part = WEFT_NEW_ARRAY(m->arena, bool, chips);
  if (weft_arena_failed(m->arena)) return weft_error_memory(m->p->diag);
  for (uint64_t i = 0; i < values * chips; i++) m->heads[i] = WEFT_NONE;
  for (uint64_t v = 0; v < values; v++) m->updater[v] = WEFT_NONE;
  for (uint32_t o = 0; o < ops; o++) {
    uint32_t updates = m->p->graph->values[m->p->graph->ops[o].out].updates;
    if (updates) m->updater[updates - 1] = o;
  }
  demand_outputs(m, holders, NULL);
  for (uint32_t chip = 0; chip < chips; chip++) takes_part[chip] = busy(m, chip);
  if (!m->failed) demand_outputs(m, holders, takes_part);
  if (!m->failed) demand_states(m, holders);
  if (!m->failed) return WEFT_OK;
  return m->piece_count > MOST_PIECES ? WEFT_INVALID : weft_error_memory(m->p->diag);
}
