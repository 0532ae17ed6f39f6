/* 3. References: every id that a stage, an edge or a buffer names exists. */
#include "validate_private.h"

static bool check_buffer(check *c, fact holder, fact by, uint32_t id) {
  return id < c->program->buffer_count || REPORT(c, DANGLING_BUFFER, holder, buffer(id), by);
}

static bool check_buffers(check *c, uint64_t s, const uint32_t *ids, uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    if (!check_buffer(c, stage(s), stage(s), ids[i])) return false;
  return true;
}

static bool check_tensor(check *c, uint64_t s, uint32_t id) {
  return id < c->program->tensor_count || REPORT(c, DANGLING_TENSOR, stage(s), tensor(id));
}

static bool check_group(check *c, uint64_t s, uint32_t id) {
  uint64_t groups = c->program->placement ? c->program->placement->group_count : 0;
  return id < groups || REPORT(c, DANGLING_GROUP, stage(s), group(id));
}

static bool check_op(check *c, uint64_t s, const weft_compute_op *op) {
  if (op->kind == WEFT_COMPUTE_BIAS) return check_buffer(c, stage(s), stage(s), op->bias);
  if (op->kind != WEFT_COMPUTE_MATMUL_TILES) return true;
  const weft_matmul_tiles *m = &op->matmul;
  return !has_id(m->interm, m->max_ids, WEFT_MAX_INTERM) || check_buffer(c, stage(s), stage(s), m->interm);
}

static bool check_kind(check *c, uint64_t s, const weft_stage *st) {
  switch (st->kind) {
  case WEFT_STAGE_LOAD: {
    bool multicasts = has_id(st->load.multicast, st->max_ids, WEFT_MAX_MULTICAST);
    return check_tensor(c, s, st->load.tensor) && (!multicasts || check_group(c, s, st->load.multicast));
  }
  case WEFT_STAGE_STORE: return check_tensor(c, s, st->store.tensor);
  case WEFT_STAGE_RECV: return check_group(c, s, st->recv.group);
  case WEFT_STAGE_COMPUTE: return check_op(c, s, st->compute);
  default: return true;
  }
}

static bool check_stage(check *c, uint64_t s) {
  const weft_stage *st = &c->program->stages[s];
  if (!check_buffers(c, s, st->ins, st->in_count) || !check_buffers(c, s, st->outs, st->out_count)) return false;
  if (!check_kind(c, s, st)) return false;
  bool exists = !has_id(st->item, st->max_ids, WEFT_MAX_ITEM) || st->item < c->program->work.item_count;
  return exists || REPORT(c, DANGLING_ITEM, stage(s), item(st->item));
}

static bool check_edge(check *c, uint64_t e) {
  const weft_program *p = c->program;
  const weft_edge *ed = &p->edges[e];
  if (ed->from >= p->stage_count && !REPORT(c, DANGLING_STAGE, edge(e), stage(ed->from))) return false;
  for (uint64_t i = 0; i < ed->to_count; i++)
    if (ed->to[i] >= p->stage_count && !REPORT(c, DANGLING_STAGE, edge(e), stage(ed->to[i]))) return false;
  if (!check_buffer(c, nothing(), edge(e), ed->buffer)) return false;
  if (ed->handshake != WEFT_HANDSHAKE_SEMAPHORE) return true;
  const uint32_t semaphores[] = {ed->ready, ed->valid};
  for (unsigned i = 0; i < 2; i++)
    if (semaphores[i] >= p->semaphore_count && !REPORT(c, DANGLING_SEMAPHORE, semaphore(semaphores[i]), edge(e)))
      return false;
  return true;
}

void weft_validate_references(check *c) {
  const weft_program *p = c->program;
  for (uint64_t s = 0; s < p->stage_count; s++)
    if (!check_stage(c, s)) return;
  for (uint64_t e = 0; e < p->edge_count; e++)
    if (!check_edge(c, e)) return;
  for (uint64_t b = 0; b < p->buffer_count; b++) {
    const weft_buffer *bf = &p->buffers[b];
    if (has_id(bf->alias_of, bf->max_ids, WEFT_MAX_ALIAS) && !check_buffer(c, nothing(), buffer(b), bf->alias_of))
      return;
  }
}
