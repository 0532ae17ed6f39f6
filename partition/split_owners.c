/* Which chip each stage, buffer, edge and work item of a whole-machine program is on. */
#include "split_private.h"

static weft_status refuse(split *s, const weft_stage *stage, const char *what) {
  return weft_error(s->diag, WEFT_INVALID,
                    "let chips meet in tensors only: store on one, load on the other in a later section",
                    "stage '%s' cannot be split: %s", stage->name, what);
}

/* A stage is where its buffers are, and those that they alias. */
static weft_status join_buffer(split *s, const weft_stage *stage, uint32_t id) {
  uint32_t *chip = &s->stage_chip[stage->id];
  while (id != WEFT_NONE) {
    const weft_buffer *buffer = &s->machine->buffers[id];
    uint32_t site = buffer->site.present ? buffer->site.site.chip : 0;
    if (*chip != WEFT_NONE && *chip != site) return refuse(s, stage, "its buffers are on several chips");
    *chip = site;
    if (s->buffer_chip[id] == site) return WEFT_OK; /* been here: aliases may lead in a circle */
    s->buffer_chip[id] = site;
    id = buffer->alias_of;
  }
  return WEFT_OK;
}

static const weft_indirect_tile *indirect_of(const weft_stage *stage) {
  if (stage->kind == WEFT_STAGE_LOAD) return stage->load.pattern.origin.indirect;
  return stage->kind == WEFT_STAGE_STORE ? stage->store.pattern.origin.indirect : NULL;
}

static weft_status join_buffers(split *s, const weft_stage *stage) {
  weft_status status = WEFT_OK;
  for (uint64_t i = 0; i < stage->in_count && status == WEFT_OK; i++) status = join_buffer(s, stage, stage->ins[i]);
  for (uint64_t i = 0; i < stage->out_count && status == WEFT_OK; i++) status = join_buffer(s, stage, stage->outs[i]);
  if (status == WEFT_OK && stage->kind == WEFT_STAGE_COMPUTE && stage->compute->kind == WEFT_COMPUTE_MATMUL_TILES)
    status = join_buffer(s, stage, stage->compute->matmul.interm);
  if (status == WEFT_OK && indirect_of(stage)) status = join_buffer(s, stage, indirect_of(stage)->index);
  return status;
}

static weft_status own_item(split *s, const weft_stage *stage) {
  if (stage->item == WEFT_NONE) return WEFT_OK;
  uint32_t *item = &s->item_chip[stage->item];
  if (*item != WEFT_NONE && *item != s->stage_chip[stage->id])
    return refuse(s, stage, "its work item is shared with another chip");
  *item = s->stage_chip[stage->id];
  return WEFT_OK;
}

static weft_status own_stages(split *s) {
  for (uint64_t i = 0; i < s->machine->stage_count; i++) {
    const weft_stage *stage = &s->machine->stages[i];
    weft_stage_fetch_ahead(s->machine, i);
    s->stage_chip[i] = stage->site.present ? stage->site.site.chip : WEFT_NONE;
    weft_status status = join_buffers(s, stage);
    if (s->stage_chip[i] == WEFT_NONE) s->stage_chip[i] = 0;
    if (status == WEFT_OK && s->stage_chip[i] >= s->chips)
      status = refuse(s, stage, "its chip is not one of the machine's");
    if (status == WEFT_OK) status = own_item(s, stage);
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}

/* Items that no stage names are for all stages of their section: those must be on one chip. */
static weft_status own_items(split *s, weft_span stages, weft_span items) {
  for (uint64_t i = items.begin; i < items.end; i++) {
    if (s->item_chip[i] != WEFT_NONE || stages.begin == stages.end) continue;
    for (uint64_t k = stages.begin; k < stages.end; k++)
      if (s->stage_chip[k] != s->stage_chip[stages.begin])
        return weft_error(s->diag, WEFT_INVALID, "give every stage its item",
                          "work item %llu is of no stage, and stages of several chips could be meant",
                          (unsigned long long)i);
    s->item_chip[i] = s->stage_chip[stages.begin];
  }
  return WEFT_OK;
}

static weft_status own_sections(split *s) {
  const weft_program *machine = s->machine;
  weft_status status = WEFT_OK;
  if (machine->section_count == 0)
    return own_items(s, (weft_span){0, machine->stage_count}, (weft_span){0, machine->work.item_count});
  for (uint64_t i = 0; i < machine->section_count && status == WEFT_OK; i++) {
    for (uint64_t k = machine->sections[i].stages.begin; k < machine->sections[i].stages.end; k++)
      s->stage_section[k] = i;
    status = own_items(s, machine->sections[i].stages, machine->sections[i].items);
  }
  return status;
}

/* Groups 0 .. count by chip; chips out of range are dropped. */
static bool group(split *s, const uint32_t *chip_of, uint64_t count, chip_lists *lists) {
  lists->begin = WEFT_NEW_ARRAY(s->arena, uint64_t, (uint64_t)s->chips + 2);
  lists->ids = WEFT_NEW_ARRAY(s->arena, uint32_t, count);
  if (!lists->begin || !lists->ids) return false;
  for (uint64_t i = 0; i < count; i++)
    if (chip_of[i] < s->chips) lists->begin[chip_of[i] + 2]++;
  for (uint32_t c = 0; c < s->chips; c++) lists->begin[c + 2] += lists->begin[c + 1];
  for (uint64_t i = 0; i < count; i++)
    if (chip_of[i] < s->chips) lists->ids[lists->begin[chip_of[i] + 1]++] = (uint32_t)i;
  return true;
}

static weft_status own_edges(split *s) {
  const weft_program *machine = s->machine;
  uint32_t *chip_of = WEFT_NEW_ARRAY(s->arena, uint32_t, machine->edge_count);
  if (!chip_of) return weft_error_memory(s->diag);
  for (uint64_t i = 0; i < machine->edge_count; i++) {
    const weft_edge *edge = &machine->edges[i];
    chip_of[i] = s->stage_chip[edge->from];
    if (edge->handshake == WEFT_HANDSHAKE_SEMAPHORE || edge->handshake == WEFT_HANDSHAKE_BARRIER)
      return refuse(s, &machine->stages[edge->from], "it hands over by a semaphore");
    for (uint64_t t = 0; t < edge->to_count; t++)
      if (s->stage_chip[edge->to[t]] != chip_of[i])
        return refuse(s, &machine->stages[edge->from], "an edge leads from it to another chip");
  }
  return group(s, chip_of, machine->edge_count, &s->edges) ? WEFT_OK : weft_error_memory(s->diag);
}

weft_status split_owners(split *s) {
  const weft_program *machine = s->machine;
  s->stage_chip = WEFT_NEW_ARRAY(s->arena, uint32_t, machine->stage_count);
  s->buffer_chip = WEFT_NEW_ARRAY(s->arena, uint32_t, machine->buffer_count);
  s->item_chip = WEFT_NEW_ARRAY(s->arena, uint32_t, machine->work.item_count);
  s->stage_section = WEFT_NEW_ARRAY(s->arena, uint64_t, machine->stage_count);
  s->new_stage = WEFT_NEW_ARRAY(s->arena, uint32_t, machine->stage_count);
  s->new_buffer = WEFT_NEW_ARRAY(s->arena, uint32_t, machine->buffer_count);
  s->new_item = WEFT_NEW_ARRAY(s->arena, uint32_t, machine->work.item_count);
  if (weft_arena_failed(s->arena)) return weft_error_memory(s->diag);
  for (uint64_t i = 0; i < machine->work.item_count; i++) s->item_chip[i] = WEFT_NONE;
  for (uint64_t i = 0; i < machine->buffer_count; i++) s->buffer_chip[i] = WEFT_NONE; /* of no stage: left out */
  weft_status status = own_stages(s);
  if (status == WEFT_OK) status = own_sections(s);
  if (status != WEFT_OK) return status;
  if (!group(s, s->stage_chip, machine->stage_count, &s->stages) ||
      !group(s, s->buffer_chip, machine->buffer_count, &s->buffers) ||
      !group(s, s->item_chip, machine->work.item_count, &s->items))
    return weft_error_memory(s->diag);
  return own_edges(s);
}
