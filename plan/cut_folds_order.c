/* Puts the appended parts of cut folds where they belong, with new ids. */
#include "cut_folds.h"

/** The fold's Loads go, and what they filled. */
static bool is_dropped(const order *o, uint32_t stage) {
  const replacement *cut = &o->cuts[o->units->unit_of_stage[stage]];
  const weft_stage *st = &o->c->program->stages[stage];
  return cut->cut && st->kind == WEFT_STAGE_LOAD && plan_only_reader(o->c->ports, st->outs[0]) == cut->fold;
}

static void put_stage(order *o, const weft_stage *stage) {
  o->stage_map[stage->id] = (uint32_t)o->stage_count;
  o->stages[o->stage_count] = *stage;
  o->stages[o->stage_count].id = (uint32_t)o->stage_count;
  o->stage_count++;
}

static void put_buffer(order *o, const weft_buffer *buffer) {
  o->buffer_map[buffer->id] = (uint32_t)o->buffer_count;
  o->buffers[o->buffer_count] = *buffer;
  o->buffers[o->buffer_count].id = (uint32_t)o->buffer_count;
  o->buffer_count++;
}

static void put_edge(order *o, const weft_edge *edge) {
  o->edges[o->edge_count] = *edge;
  o->edges[o->edge_count].id = (uint32_t)o->edge_count;
  o->edge_count++;
}

/** The appended parts stand before what the fold leaves. */
static void put_section(order *o, weft_span stages, weft_span buffers, weft_span edges) {
  const weft_program *program = o->c->program;
  for (uint64_t s = stages.begin; s < stages.end; s++) {
    const replacement *cut = &o->cuts[o->units->unit_of_stage[s]];
    if (is_dropped(o, (uint32_t)s)) continue;
    if (!cut->cut || cut->fold != s) {
      put_stage(o, &program->stages[s]);
      continue;
    }
    for (uint64_t i = cut->stages.begin; i < cut->stages.end; i++) put_stage(o, &o->c->stages[i]);
    put_stage(o, &cut->result);
    for (uint64_t i = cut->buffers.begin; i < cut->buffers.end; i++) put_buffer(o, &o->c->buffers[i]);
    for (uint64_t i = cut->edges.begin; i < cut->edges.end; i++) put_edge(o, &o->c->edges[i]);
  }
  for (uint64_t b = buffers.begin; b < buffers.end; b++) {
    uint32_t producer = plan_only_producer(o->c->ports, (uint32_t)b);
    if (producer == WEFT_NONE || !is_dropped(o, producer)) put_buffer(o, &program->buffers[b]);
  }
  for (uint64_t e = edges.begin; e < edges.end; e++)
    if (!is_dropped(o, program->edges[e].from)) put_edge(o, &program->edges[e]);
}

static const uint32_t *map_ids(order *o, const uint32_t *ids, uint64_t count, const uint32_t *map) {
  uint32_t *mapped = cut_copy(o->c, ids, count, sizeof *ids);
  for (uint64_t i = 0; mapped && i < count; i++) mapped[i] = map[ids[i]];
  return mapped;
}

/** The buffers a stage names beside its ports. */
static void map_inner(order *o, weft_stage *stage) {
  weft_access_pattern *pattern = stage->kind == WEFT_STAGE_LOAD    ? &stage->load.pattern
                                 : stage->kind == WEFT_STAGE_STORE ? &stage->store.pattern
                                                                   : NULL;
  if (pattern && pattern->origin.indirect) {
    weft_indirect_tile *indirect = cut_copy(o->c, pattern->origin.indirect, 1, sizeof *indirect);
    if (indirect) indirect->index = o->buffer_map[indirect->index];
    pattern->origin.indirect = indirect;
  }
  if (stage->kind != WEFT_STAGE_COMPUTE) return;
  const weft_compute_op *before = stage->compute;
  bool spills = before->kind == WEFT_COMPUTE_MATMUL_TILES && before->matmul.interm != WEFT_NONE;
  if (!spills && before->kind != WEFT_COMPUTE_BIAS) return;
  weft_compute_op *op = cut_copy(o->c, before, 1, sizeof *op);
  if (!op) return;
  if (spills)
    op->matmul.interm = o->buffer_map[op->matmul.interm];
  else
    op->bias = o->buffer_map[op->bias];
  stage->compute = op;
}

static void map_all(order *o) {
  for (uint64_t s = 0; s < o->stage_count; s++) {
    weft_stage *stage = &o->stages[s];
    stage->ins = map_ids(o, stage->ins, stage->in_count, o->buffer_map);
    stage->outs = map_ids(o, stage->outs, stage->out_count, o->buffer_map);
    map_inner(o, stage);
  }
  for (uint64_t b = 0; b < o->buffer_count; b++)
    if (o->buffers[b].alias_of != WEFT_NONE) o->buffers[b].alias_of = o->buffer_map[o->buffers[b].alias_of];
  for (uint64_t e = 0; e < o->edge_count; e++) {
    weft_edge *edge = &o->edges[e];
    edge->from = o->stage_map[edge->from];
    edge->buffer = o->buffer_map[edge->buffer];
    edge->to = map_ids(o, edge->to, edge->to_count, o->stage_map);
  }
}

static bool make_room(order *o) {
  const cutter *c = o->c;
  weft_arena *keep = c->program->arena;
  uint64_t stages = c->program->stage_count + c->stage_count, buffers = c->program->buffer_count + c->buffer_count;
  o->stages = WEFT_NEW_ARRAY(keep, weft_stage, stages);
  o->buffers = WEFT_NEW_ARRAY(keep, weft_buffer, buffers);
  o->edges = WEFT_NEW_ARRAY(keep, weft_edge, c->program->edge_count + c->edge_count);
  o->stage_map = WEFT_NEW_ARRAY(c->scratch, uint32_t, stages);
  o->buffer_map = WEFT_NEW_ARRAY(c->scratch, uint32_t, buffers);
  return o->stages && o->buffers && o->edges && o->stage_map && o->buffer_map;
}

weft_status cut_put_in_order(order *o, weft_diag *diag) {
  weft_program *program = o->c->program;
  weft_section *sections = cut_copy(o->c, program->sections, program->section_count, sizeof *sections);
  if (!sections || !make_room(o)) return weft_error_memory(diag);
  for (uint64_t k = 0; k < plan_section_count(program); k++) {
    weft_span edges = program->section_count ? program->sections[k].edges : (weft_span){0, program->edge_count};
    weft_span at = {o->stage_count, o->buffer_count}, edges_at = {o->edge_count, 0};
    put_section(o, plan_section_stages(program, k), plan_section_buffers(program, k), edges);
    if (!program->section_count) continue;
    sections[k].stages = (weft_span){at.begin, o->stage_count};
    sections[k].buffers = (weft_span){at.end, o->buffer_count};
    sections[k].edges = (weft_span){edges_at.begin, o->edge_count};
  }
  map_all(o);
  if (o->c->failed) return weft_error_memory(diag);
  program->stages = o->stages;
  program->buffers = o->buffers;
  program->edges = o->edges;
  program->stage_count = o->stage_count;
  program->buffer_count = o->buffer_count;
  program->edge_count = o->edge_count;
  if (program->section_count) program->sections = sections;
  return WEFT_OK;
}
