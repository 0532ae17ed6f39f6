/* Levels: the order of the work, the same on all chips. Each level becomes a section of the machine graph.
 *
 * A section of the source starts a new level. What crosses chips is read a level after it was made; slices, then
 * assemblies, have levels of their own, placed when their first reader comes; a cut fold takes two, the nodes and the
 * all-reduce; whatever follows it on the same block joins it there. */
#include "machine_private.h"

#include <stdlib.h>

typedef struct ordering {
  machine *m;
  schedule *s;
  uint32_t *made; /* by source value: the level its maker finishes in */
  uint32_t *read; /* by source value, a state: the level after the last that reads it as the step finds it */
  uint32_t first; /* the least level of the section at hand */
  uint32_t last;  /* the greatest level used */
  bool any;
} ordering;

static bool add_item(ordering *o, item made) {
  schedule *s = o->s;
  if (!weft_arena_grow(o->m->arena, &s->items, s->count, &s->capacity, sizeof *s->items)) {
    o->m->failed = true;
    return false;
  }
  s->items[s->count++] = made;
  if (!o->any || made.level > o->last) o->last = made.level;
  o->any = true;
  return true;
}

static uint32_t later(uint32_t a, uint32_t b) { return a > b ? a : b; }

static bool is_open(const machine *m, uint32_t r, record_kind kind) {
  return m->records[r].kind == kind && m->records[r].level == NO_LEVEL;
}

/* ---- what one operand of one op needs on all chips
 * --------------------------------------------------------------------- */

typedef struct reading {
  uint32_t value;
  uint32_t op; /* the reader, WEFT_NONE for outputs */
  const uint32_t *records;
  uint64_t count;
} reading;

static uint32_t value_level(const ordering *o, uint32_t value) {
  bool made = o->m->p->graph->values[value].producer != WEFT_NONE;
  return made ? later(o->made[value] + 1, o->first) : o->first;
}

typedef struct slice_need {
  uint32_t distance; /* of the reader after the owner, modulo chips */
  uint32_t slice;
} slice_need;

static int by_distance(const void *a, const void *b) {
  const slice_need *x = a, *y = b;
  if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
  return x->slice < y->slice ? -1 : x->slice > y->slice;
}

static void need_slice(const ordering *o, uint32_t reader, uint32_t slice, slice_need *needs, uint64_t *count) {
  uint32_t chips = o->m->p->chips;
  if (is_open(o->m, slice, RECORD_SLICE))
    needs[(*count)++] = (slice_need){(reader + chips - o->m->records[slice].chip) % chips, slice};
}

/* Slices of the value that this reader is the first to need, here or on the chips it reads from. A chip makes them in
 * the order of their readers after it, so that equal chips work alike. */
static void level_slices(ordering *o, const reading *r) {
  uint32_t level = value_level(o, r->value);
  uint64_t most = 0, count = 0;
  for (uint64_t i = 0; i < r->count; i++) most += 1 + o->m->records[r->records[i]].piece_count;
  slice_need *needs = WEFT_NEW_ARRAY(o->m->arena, slice_need, most);
  o->m->failed |= !needs;
  for (uint64_t i = 0; needs && i < r->count; i++) {
    const record *read = &o->m->records[r->records[i]];
    need_slice(o, read->chip, r->records[i], needs, &count);
    for (uint32_t k = 0; k < read->piece_count; k++) need_slice(o, read->chip, read->pieces[k], needs, &count);
  }
  if (count) qsort(needs, count, sizeof *needs, by_distance);
  for (uint64_t i = 0; i < count; i++) {
    record *slice = &o->m->records[needs[i].slice];
    if (slice->level != NO_LEVEL) continue;
    slice->level = level;
    add_item(o, (item){ITEM_SLICE, level, slice->chip, r->op, needs[i].slice});
  }
}

/* The level from which all pieces of a record may be read by another chip. */
static uint32_t pieces_level(const ordering *o, const record *r) {
  uint32_t level = value_level(o, r->value);
  for (uint32_t k = 0; k < r->piece_count; k++) {
    const record *piece = &o->m->records[r->pieces[k]];
    if (piece->kind == RECORD_SLICE) level = later(level, piece->level + 1);
  }
  return level;
}

static void level_gathers(ordering *o, const reading *r) {
  uint32_t level = 0;
  for (uint64_t i = 0; i < r->count; i++)
    if (is_open(o->m, r->records[i], RECORD_GATHER))
      level = later(level, pieces_level(o, &o->m->records[r->records[i]]));
  for (uint64_t i = 0; i < r->count; i++) {
    if (!is_open(o->m, r->records[i], RECORD_GATHER)) continue;
    o->m->records[r->records[i]].level = level;
    add_item(o, (item){ITEM_GATHER, level, o->m->records[r->records[i]].chip, r->op, r->records[i]});
  }
}

/* The level from which the reader may run. */
static uint32_t ready_level(const ordering *o, const reading *r) {
  uint32_t level = o->first;
  for (uint64_t i = 0; i < r->count; i++) {
    const record *read = &o->m->records[r->records[i]];
    if (read->kind == RECORD_HAVE) level = later(level, o->made[r->value]);
    if (read->kind == RECORD_FOREIGN) level = later(level, pieces_level(o, read));
    if (read->kind == RECORD_SLICE || read->kind == RECORD_GATHER) level = later(level, read->level + 1);
  }
  return level;
}

static uint32_t level_reading(ordering *o, const reading *r) {
  level_slices(o, r);
  level_gathers(o, r);
  return ready_level(o, r);
}

/* ---- ops
 * ----------------------------------------------------------------------------------------------------------------- */

/* The records of operand `operand` on all chips, a node at a time. */
static reading operand_reading(ordering *o, uint32_t op, uint32_t operand, bool cut) {
  machine *m = o->m;
  const weft_graph_op *source = &m->p->graph->ops[op];
  node nodes[MAX_NODES];
  uint64_t count = 0, capacity = 0;
  uint32_t *records = NULL;
  for (uint32_t chip = 0; chip < m->p->chips; chip++) {
    const uint32_t *wanted = m->wanted[at_chip(m, op, chip)];
    uint32_t each = !wanted ? 0 : cut ? machine_nodes(m, op, chip, nodes) : 1;
    for (uint32_t n = 0; n < each; n++) {
      if (wanted[n * source->in_count + operand] == WEFT_NONE) continue;
      if (!weft_arena_grow(m->arena, &records, count, &capacity, sizeof *records)) {
        m->failed = true;
        return (reading){.value = source->ins[operand], .op = op};
      }
      records[count++] = wanted[n * source->in_count + operand];
    }
  }
  return (reading){source->ins[operand], op, records, count};
}

static void level_op(ordering *o, uint32_t op) {
  machine *m = o->m;
  const weft_graph_op *source = &m->p->graph->ops[op];
  bool cut = weft_reduce_cut(m->p, source, &m->p->plan[op]) != NULL;
  uint32_t level = o->first;
  for (uint32_t i = 0; i < source->in_count && !m->failed; i++) {
    reading r = operand_reading(o, op, i, cut);
    level = later(level, level_reading(o, &r));
  }
  uint32_t updates = m->p->graph->values[source->out].updates;
  if (updates) level = later(level, o->read[updates - 1]);
  for (uint32_t i = 0; i < source->in_count; i++)
    if (is_state(m, source->ins[i]) && source->ins[i] + 1 != updates)
      o->read[source->ins[i]] = later(o->read[source->ins[i]], level + 1);
  for (uint32_t chip = 0; chip < m->p->chips; chip++)
    if (m->wanted[at_chip(m, op, chip)]) add_item(o, (item){cut ? ITEM_NODES : ITEM_OP, level, chip, op, WEFT_NONE});
  o->made[source->out] = level + cut;
  for (uint32_t chip = 0; cut && chip < m->p->chips; chip++)
    if (m->final[at_chip(m, op, chip)]) add_item(o, (item){ITEM_REDUCE, level + 1, chip, op, WEFT_NONE});
}

/* Output blocks that no chip's op makes as they are wanted. */
static void level_output(ordering *o, uint32_t value) {
  machine *m = o->m;
  uint32_t *records = WEFT_NEW_ARRAY(m->arena, uint32_t, m->p->chips);
  uint64_t count = 0;
  m->failed |= !records;
  for (uint32_t chip = 0; chip < m->p->chips && !m->failed; chip++)
    for (uint32_t r = m->heads[at_chip(m, value, chip)]; r != WEFT_NONE; r = m->records[r].next)
      if (m->records[r].output && count < m->p->chips) records[count++] = r;
  reading r = {value, WEFT_NONE, records, count};
  if (!m->failed) level_reading(o, &r);
}

static int by_level(const void *a, const void *b) {
  const item *x = *(const item *const *)a, *y = *(const item *const *)b;
  if (x->level != y->level) return x->level < y->level ? -1 : 1;
  return x < y ? -1 : x > y;
}

/* Sorts the items by level, keeping their order within one. */
static bool sort_items(machine *m, schedule *s) {
  const item **order = WEFT_NEW_ARRAY(m->arena, const item *, s->count);
  item *sorted = WEFT_NEW_ARRAY(m->arena, item, s->count);
  if (!order || !sorted) return false;
  for (uint64_t i = 0; i < s->count; i++) order[i] = &s->items[i];
  qsort(order, s->count, sizeof *order, by_level);
  for (uint64_t i = 0; i < s->count; i++) sorted[i] = *order[i];
  s->items = sorted;
  return true;
}

weft_status machine_levels(machine *m, schedule *s) {
  const weft_graph *graph = m->p->graph;
  ordering o = {.m = m,
                .s = s,
                .made = WEFT_NEW_ARRAY(m->arena, uint32_t, graph->value_count),
                .read = WEFT_NEW_ARRAY(m->arena, uint32_t, graph->value_count)};
  if (!o.made || !o.read) return weft_error_memory(m->p->diag);
  for (uint32_t op = 0; op < graph->op_count && !m->failed; op++) {
    bool new_section = op == 0 || graph->ops[op].section != graph->ops[op - 1].section;
    if (new_section) o.first = o.any ? o.last + 1 : 0;
    level_op(&o, op);
  }
  o.first = o.any ? o.last + 1 : 0;
  for (uint32_t v = 0; v < graph->value_count && !m->failed; v++)
    if (graph->values[v].role == WEFT_ROLE_OUTPUT && graph->values[v].producer != WEFT_NONE) level_output(&o, v);
  s->level_count = o.any ? o.last + 1 : 0;
  return m->failed || !sort_items(m, s) ? weft_error_memory(m->p->diag) : WEFT_OK;
}
