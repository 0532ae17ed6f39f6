/* The program of one chip: its part of everything with dense ids, then the tensors and links that cross.
 *
 * The program is first written over the whole machine's storage, then copied. */
#include "split_private.h"

#include <string.h>

typedef struct chip_build {
  split *s;
  uint32_t chip;
  weft_program *made;
  uint64_t *last_section; /* by local section: the machine's */
  uint32_t *new_trip;     /* by the machine's trip: the chip's, or WEFT_NONE */
} chip_build;

#define NEW_ARRAY(b, type, count) WEFT_NEW_ARRAY((b)->s->arena, type, count)

/* ---- tensors
 * ---------------------------------------------------------------------------------------------------------- */

static void add_own_tensor(chip_build *b, const tensor_use *use) {
  weft_tensor *made = &b->made->tensors[b->made->tensor_count];
  *made = b->s->machine->tensors[use->tensor];
  if (use->stores && !use->loads && use->sent && made->role != WEFT_ROLE_OUTPUT && made->role != WEFT_ROLE_STATE) {
    made->role = WEFT_ROLE_OUTPUT;
    made->has_shard = true;
    made->shard = (weft_shard){.of = made->name, .rows = made->elems.rows, .cols = made->elems.cols};
  }
  made->id = b->s->local[use->tensor] = (uint32_t)b->made->tensor_count++;
}

static void add_received_tensor(chip_build *b, crossing *c) {
  weft_tensor *made = &b->made->tensors[b->made->tensor_count];
  *made = b->s->machine->tensors[c->tensor];
  made->role = WEFT_ROLE_INPUT;
  made->init = (weft_init){.kind = WEFT_INIT_EXTERNAL};
  if (made->has_shard) made->shape = NULL, made->shape_count = 0; /* the whole dataset's */
  made->has_shard = false;
  made->chip = c->owner;
  made->id = c->local = b->s->local[c->tensor] = (uint32_t)b->made->tensor_count++;
}

static bool add_tensors(chip_build *b) {
  split *s = b->s;
  uint64_t most = s->use_begin[b->chip + 1] - s->use_begin[b->chip];
  b->made->tensors = NEW_ARRAY(b, weft_tensor, most);
  if (!b->made->tensors) return false;
  for (uint64_t i = s->use_begin[b->chip]; i < s->use_begin[b->chip + 1]; i++) s->local[s->uses[i].tensor] = WEFT_NONE;
  for (uint64_t i = s->received_begin[b->chip]; i < s->received_begin[b->chip + 1]; i++)
    s->local[s->received[i].tensor] = 0;
  for (uint64_t i = s->use_begin[b->chip]; i < s->use_begin[b->chip + 1]; i++)
    if (s->local[s->uses[i].tensor] == WEFT_NONE) add_own_tensor(b, &s->uses[i]);
  for (uint64_t i = s->received_begin[b->chip]; i < s->received_begin[b->chip + 1]; i++)
    add_received_tensor(b, &s->received[i]);
  return true;
}

/* ---- stages
 * ------------------------------------------------------------------------------------------------------------- */

static const uint32_t *mapped(chip_build *b, const uint32_t *ids, uint64_t count, const uint32_t *map) {
  uint32_t *made = NEW_ARRAY(b, uint32_t, count);
  for (uint64_t i = 0; made && i < count; i++) made[i] = map[ids[i]];
  return made;
}

static void map_address(chip_build *b, weft_tile_addr *address) {
  if (!address->indirect) return;
  weft_indirect_tile *made = WEFT_NEW(b->s->arena, weft_indirect_tile);
  if (!made) return;
  *made = *address->indirect;
  made->index = b->s->new_buffer[made->index];
  address->indirect = made;
}

/* The chip's trip, made where its first product needs it. */
static uint32_t map_trip(chip_build *b, uint32_t old) {
  if (b->new_trip[old] == WEFT_NONE) {
    b->made->trips[b->made->trip_count] = b->s->machine->trips[old];
    b->made->trips[b->made->trip_count].tensor = b->s->local[b->s->machine->trips[old].tensor];
    b->new_trip[old] = (uint32_t)b->made->trip_count++;
  }
  return b->new_trip[old];
}

static bool add_trips(chip_build *b) {
  uint64_t count = b->s->machine->trip_count;
  b->made->trip_count = 0;
  b->made->trips = NEW_ARRAY(b, weft_trip, count);
  b->new_trip = NEW_ARRAY(b, uint32_t, count);
  for (uint64_t t = 0; b->new_trip && t < count; t++) b->new_trip[t] = WEFT_NONE;
  return b->made->trips && b->new_trip;
}

static const weft_compute_op *map_compute(chip_build *b, const weft_compute_op *op) {
  bool product = op->kind == WEFT_COMPUTE_MATMUL_TILES;
  bool spills = product && op->matmul.interm != WEFT_NONE, counts = product && op->matmul.trip != WEFT_NONE;
  if (!spills && !counts && op->kind != WEFT_COMPUTE_BIAS) return op;
  weft_compute_op *made = WEFT_NEW(b->s->arena, weft_compute_op);
  if (!made) return NULL;
  *made = *op;
  if (spills) made->matmul.interm = b->s->new_buffer[op->matmul.interm];
  if (counts) made->matmul.trip = map_trip(b, op->matmul.trip);
  if (!product) made->bias = b->s->new_buffer[op->bias];
  return made;
}

static void add_stage(chip_build *b, uint32_t old) {
  split *s = b->s;
  weft_stage *made = &b->made->stages[b->made->stage_count];
  *made = s->machine->stages[old];
  made->id = (uint32_t)b->made->stage_count++;
  made->origin = WEFT_NONE;
  made->ins = mapped(b, made->ins, made->in_count, s->new_buffer);
  made->outs = mapped(b, made->outs, made->out_count, s->new_buffer);
  if (made->item != WEFT_NONE) made->item = s->new_item[made->item];
  if (made->kind == WEFT_STAGE_LOAD) {
    made->load.tensor = s->local[made->load.tensor];
    map_address(b, &made->load.pattern.origin);
  } else if (made->kind == WEFT_STAGE_STORE) {
    made->store.tensor = s->local[made->store.tensor];
    map_address(b, &made->store.pattern.origin);
  } else if (made->kind == WEFT_STAGE_ALL_REDUCE) {
    made->all_reduce.tensor = s->local[made->all_reduce.tensor];
  } else if (made->kind == WEFT_STAGE_COMPUTE) {
    made->compute = map_compute(b, made->compute);
  }
}

static void add_edge(chip_build *b, uint32_t old) {
  split *s = b->s;
  weft_edge *made = &b->made->edges[b->made->edge_count];
  *made = s->machine->edges[old];
  made->id = (uint32_t)b->made->edge_count++;
  made->from = s->new_stage[made->from];
  made->buffer = s->new_buffer[made->buffer];
  made->to = mapped(b, made->to, made->to_count, s->new_stage);
}

static void add_buffer(chip_build *b, uint32_t old) {
  weft_buffer *made = &b->made->buffers[b->made->buffer_count];
  *made = b->s->machine->buffers[old];
  made->id = (uint32_t)b->made->buffer_count++;
  made->origin = WEFT_NONE;
  if (made->alias_of != WEFT_NONE) made->alias_of = b->s->new_buffer[made->alias_of];
}

static void add_item(chip_build *b, uint32_t old) {
  weft_work_item *made = &b->made->work.items[b->made->work.item_count];
  *made = b->s->machine->work.items[old];
  made->id = (uint32_t)b->made->work.item_count++;
}

/* New ids of a chip's entries, in their order; its first is 0. */
static void number(const chip_lists *lists, uint32_t chip, uint32_t *new_id) {
  for (uint64_t i = lists->begin[chip]; i < lists->begin[chip + 1]; i++)
    new_id[lists->ids[i]] = (uint32_t)(i - lists->begin[chip]);
}

static uint64_t length(const chip_lists *lists, uint32_t chip) { return lists->begin[chip + 1] - lists->begin[chip]; }

enum { STAGES_AHEAD = 8 };

static bool add_parts(chip_build *b) {
  split *s = b->s;
  weft_program *made = b->made;
  number(&s->stages, b->chip, s->new_stage);
  number(&s->buffers, b->chip, s->new_buffer);
  number(&s->items, b->chip, s->new_item);
  made->stages = NEW_ARRAY(b, weft_stage, length(&s->stages, b->chip));
  made->buffers = NEW_ARRAY(b, weft_buffer, length(&s->buffers, b->chip));
  made->edges = NEW_ARRAY(b, weft_edge, length(&s->edges, b->chip));
  made->work.items = NEW_ARRAY(b, weft_work_item, length(&s->items, b->chip));
  if (!made->stages || !made->buffers || !made->edges || !made->work.items) return false;
  for (uint64_t i = s->stages.begin[b->chip]; i < s->stages.begin[b->chip + 1]; i++) {
    if (i + STAGES_AHEAD < s->stages.begin[b->chip + 1])
      weft_stage_fetch(&s->machine->stages[s->stages.ids[i + STAGES_AHEAD]]);
    add_stage(b, s->stages.ids[i]);
  }
  for (uint64_t i = s->buffers.begin[b->chip]; i < s->buffers.begin[b->chip + 1]; i++) add_buffer(b, s->buffers.ids[i]);
  for (uint64_t i = s->edges.begin[b->chip]; i < s->edges.begin[b->chip + 1]; i++) add_edge(b, s->edges.ids[i]);
  for (uint64_t i = s->items.begin[b->chip]; i < s->items.begin[b->chip + 1]; i++) add_item(b, s->items.ids[i]);
  return true;
}

/* ---- sections
 * ------------------------------------------------------------------------------------------------------------- */

/* How many of a chip's entries, from `at` on, lie before `end` in the whole program. */
static uint64_t run(const chip_lists *lists, uint32_t chip, uint64_t at, uint64_t end) {
  uint64_t first = lists->begin[chip] + at, i = first;
  while (i < lists->begin[chip + 1] && lists->ids[i] < end) i++;
  return i - first;
}

static weft_span extend(weft_span *last, uint64_t by) {
  *last = (weft_span){last->end, last->end + by};
  return *last;
}

/* The first tensor that the section's stages store, and its greatest K in tiles: none where K is empty, 1 without a
 * product. */
static void describe_section(const weft_program *made, weft_section *section) {
  bool product = false;
  section->output = WEFT_NONE;
  section->k_tiles = 0;
  for (uint64_t i = section->stages.begin; i < section->stages.end; i++) {
    const weft_stage *stage = &made->stages[i];
    if (stage->kind == WEFT_STAGE_STORE && section->output == WEFT_NONE) section->output = stage->store.tensor;
    if (stage->kind != WEFT_STAGE_COMPUTE || stage->compute->kind != WEFT_COMPUTE_MATMUL_TILES) continue;
    const weft_matmul_tiles *matmul = &stage->compute->matmul;
    section->k_tiles = weft_max_u64(section->k_tiles, matmul->num_blocks * matmul->block.ibw);
    product = true;
  }
  if (!product) section->k_tiles = 1;
}

static bool add_sections(chip_build *b) {
  const split *s = b->s;
  weft_program *made = b->made;
  made->sections = NEW_ARRAY(b, weft_section, s->machine->section_count);
  b->last_section = NEW_ARRAY(b, uint64_t, s->machine->section_count);
  if (!made->sections || !b->last_section) return false;
  weft_span stages = {0}, buffers = {0}, edges = {0}, items = {0};
  for (uint64_t i = 0; i < s->machine->section_count; i++) {
    const weft_section *whole = &s->machine->sections[i];
    uint64_t count = run(&s->stages, b->chip, stages.end, whole->stages.end);
    if (count == 0) continue;
    weft_section *section = &made->sections[made->section_count];
    *section = *whole;
    section->stages = extend(&stages, count);
    section->buffers = extend(&buffers, run(&s->buffers, b->chip, buffers.end, whole->buffers.end));
    section->edges = extend(&edges, run(&s->edges, b->chip, edges.end, whole->edges.end));
    section->items = extend(&items, run(&s->items, b->chip, items.end, whole->items.end));
    describe_section(made, section);
    b->last_section[made->section_count++] = i;
  }
  if (made->section_count) made->work.k_tiles = made->sections[made->section_count - 1].k_tiles;
  return true;
}

/* ---- links
 * ----------------------------------------------------------------------------------------------------------------- */

/* The chip's last section before a boundary. */
static uint64_t section_before(const chip_build *b, uint64_t boundary) {
  uint64_t local = UINT64_MAX;
  for (uint64_t i = 0; i < b->made->section_count && b->last_section[i] < boundary; i++) local = i;
  return local;
}

static uint64_t count_at(const crossing *from, const crossing *end, uint64_t boundary) {
  uint64_t count = 0;
  while (from + count < end && from[count].boundary == boundary) count++;
  return count;
}

static bool add_link(chip_build *b, uint64_t boundary, const crossing *sends, uint64_t send_count,
                     const crossing *receives, uint64_t receive_count) {
  uint32_t *sent = NEW_ARRAY(b, uint32_t, send_count), *received = NEW_ARRAY(b, uint32_t, receive_count);
  uint16_t *to = NEW_ARRAY(b, uint16_t, send_count), *from = NEW_ARRAY(b, uint16_t, receive_count);
  if (!sent || !received || !to || !from) return false;
  for (uint64_t i = 0; i < send_count; i++) {
    sent[i] = b->s->local[sends[i].tensor];
    to[i] = (uint16_t)sends[i].reader;
  }
  for (uint64_t i = 0; i < receive_count; i++) {
    received[i] = receives[i].local;
    from[i] = (uint16_t)receives[i].owner;
  }
  b->made->links[b->made->link_count++] = (weft_link_point){.after = section_before(b, boundary),
                                                            .sends = sent,
                                                            .send_count = send_count,
                                                            .receives = received,
                                                            .receive_count = receive_count,
                                                            .send_peers = to,
                                                            .receive_peers = from};
  return true;
}

static bool add_links(chip_build *b) {
  const split *s = b->s;
  const crossing *out = s->sent + s->sent_begin[b->chip], *out_end = s->sent + s->sent_begin[b->chip + 1];
  const crossing *in = s->received + s->received_begin[b->chip], *in_end = s->received + s->received_begin[b->chip + 1];
  b->made->links = NEW_ARRAY(b, weft_link_point, (uint64_t)(out_end - out) + (uint64_t)(in_end - in));
  if (!b->made->links) return false;
  while (out < out_end || in < in_end) {
    uint64_t boundary =
        weft_min_u64(out < out_end ? out->boundary : UINT64_MAX, in < in_end ? in->boundary : UINT64_MAX);
    uint64_t sends = count_at(out, out_end, boundary), receives = count_at(in, in_end, boundary);
    if (!add_link(b, boundary, out, sends, in, receives)) return false;
    out += sends;
    in += receives;
  }
  return true;
}

/* ---- the program
 * -------------------------------------------------------------------------------------------------------------- */

weft_status split_chip(split *s, uint32_t chip, weft_program **program) {
  weft_program made = *s->machine;
  chip_build b = {.s = s, .chip = chip, .made = &made};
  made.tensor_count = made.stage_count = made.buffer_count = made.edge_count = made.section_count = made.link_count = 0;
  made.work.item_count = 0;
  made.chip = chip;
  made.chips = s->chips;
  bool fine = add_tensors(&b) && add_trips(&b) && add_parts(&b) && add_sections(&b) && add_links(&b) &&
              !weft_arena_failed(s->arena);
  *program = fine ? weft_program_clone(&made) : NULL;
  return *program ? WEFT_OK : weft_error_memory(s->diag);
}
