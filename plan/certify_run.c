/* The token run: engines go on until they wait; who is waited for wakes them. */
#include "certify_private.h"

#include <string.h>

void token_wake(token_machine *m, uint32_t engine) {
  if (engine == WEFT_NONE) return;
  token_engine *e = &m->engines[engine];
  if (e->queued || e->finished) return;
  e->queued = true;
  m->queue[(m->queue_begin + m->queue_count++) % m->engine_count] = engine;
}

uint64_t token_variable(const token_machine *m, const token_engine *e, uint32_t var, bool *bound) {
  *bound = true;
  for (uint64_t i = e->frame_count; i > 1; i--) {
    const token_frame *f = &e->frames[i - 1];
    if (f->items && var == WEFT_VAR_ITEM_X) return m->program->work.items[f->items[f->turn]].coord.second;
    if (f->var != var) continue;
    return f->items ? m->program->work.items[f->items[f->turn]].coord.first : f->turn;
  }
  *bound = false;
  return 0;
}

const weft_op *token_next_op(token_engine *e) {
  while (e->frame_count) {
    token_frame *f = &e->frames[e->frame_count - 1];
    if (f->next < f->count) return &f->ops[f->next];
    f->next = 0;
    if (++f->turn < f->turns) continue;
    e->frame_count--;
  }
  return NULL;
}

/* ---- loops ---- */

static bool push_frame(token_machine *m, token_engine *e, token_frame frame) {
  if (!weft_arena_grow(m->arena, &e->frames, e->frame_count, &e->frame_capacity, sizeof *e->frames)) return false;
  e->frames[e->frame_count++] = frame;
  return true;
}

/** The items of the site in the stage's section, when the loop has a turn for each. */
static const uint32_t *items_of_loop(const token_machine *m, const token_engine *e, const weft_op *op) {
  const weft_program *program = m->program;
  if (op->loop.var != WEFT_VAR_ITEM_Y) return NULL;
  weft_span span = plan_section_items(program, m->section_of[op->stage]);
  for (uint64_t i = 0; i < program->placement->items_of_site_count; i++) {
    const weft_site_items *site = &program->placement->items_of_site[i];
    if (!weft_site_equal(site->site, e->program->site)) continue;
    uint64_t first = 0;
    while (first < site->item_count && (site->items[first] < span.begin || site->items[first] >= span.end)) first++;
    uint64_t end = first;
    while (end < site->item_count && site->items[end] >= span.begin && site->items[end] < span.end) end++;
    return end - first == op->loop.count ? site->items + first : NULL;
  }
  return NULL;
}

static token_step enter_loop(token_machine *m, token_engine *e, const weft_op *op) {
  uint64_t turns = op->loop.trip == WEFT_NONE ? op->loop.count : m->trip_counts[op->loop.trip];
  if (turns == 0 || op->loop.body_count == 0) return TOKEN_DONE;
  token_frame frame = {.ops = op->loop.body, .count = op->loop.body_count, .var = op->loop.var, .turns = turns};
  frame.items = items_of_loop(m, e, op);
  return push_frame(m, e, frame) ? TOKEN_DONE : token_no_memory(m);
}

/* ---- steps ---- */

static token_step run_op(token_machine *m, token_engine *e, const weft_op *op) {
  switch (op->kind) {
  case WEFT_OP_RESERVE:
  case WEFT_OP_PUSH:
  case WEFT_OP_WAIT:
  case WEFT_OP_POP: return token_page_op(m, e, op);
  case WEFT_OP_READ_TILES: return token_read_tiles(m, e, op);
  case WEFT_OP_READ_BARRIER: return token_read_barrier(m, e, op);
  case WEFT_OP_WRITE_TILES: return token_write_tiles(m, e, op);
  case WEFT_OP_WRITE_BARRIER: return token_write_barrier(m, e, op);
  case WEFT_OP_MCAST_SEND:
  case WEFT_OP_MCAST_SET_VALID: return token_multicast(m, e, op);
  case WEFT_OP_SEM_SET:
  case WEFT_OP_SEM_INC:
  case WEFT_OP_SEM_WAIT: return token_semaphore_op(m, e, op);
  case WEFT_OP_ACQUIRE_ACC: return token_acquire(m, e, op);
  case WEFT_OP_RELEASE_ACC: return token_release(m, e, op);
  case WEFT_OP_COMPUTE: return token_compute(m, e, op);
  case WEFT_OP_PACK_ACC: return token_pack(m, e, op);
  case WEFT_OP_BARRIER: return token_group_barrier(m, e, op);
  case WEFT_OP_LOOP: return enter_loop(m, e, op);
  default: return TOKEN_DONE; /* Flush */
  }
}

/** Runs an engine until it waits or ends. */
static token_step run_engine(token_machine *m, token_engine *e) {
  for (;;) {
    const weft_op *op = token_next_op(e);
    if (!op) {
      e->finished = true;
      return TOKEN_DONE;
    }
    uint64_t depth = e->frame_count - 1;
    e->clock[e->index] = ++e->time;
    token_step step = run_op(m, e, op);
    if (step != TOKEN_DONE) return step;
    e->frames[depth].next++;
    if (++m->steps >= STEP_LIMIT) return token_refuse(m, e, op, "the schedule takes more than %d steps", STEP_LIMIT);
  }
}

/** Nothing may be left over at the end. */
static weft_status check_end(token_machine *m) {
  for (uint64_t i = 0; i < m->engine_count; i++) {
    const token_engine *e = &m->engines[i];
    const char *left = e->acc.acquired                   ? "holds its accumulator"
                       : e->read_count || e->write_count ? "has a transfer that no barrier waits for"
                                                         : NULL;
    if (!left) continue;
    weft_text text = {0};
    plan_describe_engine(&text, e->program->site, e->program->engine);
    weft_status status =
        weft_error(m->diag, WEFT_INVALID, NULL, "%s ends and still %s", text.data ? text.data : "?", left);
    weft_text_free(&text);
    return status;
  }
  for (uint64_t b = 0; b < m->program->buffer_count; b++)
    if (m->rings[b].pushed != m->rings[b].popped || m->rings[b].reserved)
      return weft_error(m->diag, WEFT_INVALID, NULL, "the schedule ends with pages left in buffer `%s`",
                        m->program->buffers[b].name);
  return WEFT_OK;
}

weft_status token_run(token_machine *m) {
  for (uint32_t i = 0; i < m->engine_count; i++) {
    token_engine *e = &m->engines[i];
    token_frame whole = {.ops = e->program->ops, .count = e->program->op_count, .var = WEFT_NONE, .turns = 1};
    if (!push_frame(m, e, whole)) return weft_error_memory(m->diag);
    token_wake(m, i);
  }
  while (m->queue_count) {
    uint32_t i = m->queue[m->queue_begin];
    m->queue_begin = (m->queue_begin + 1) % m->engine_count;
    m->queue_count--;
    m->engines[i].queued = false;
    if (run_engine(m, &m->engines[i]) == TOKEN_REFUSED) return m->status;
  }
  for (uint64_t i = 0; i < m->engine_count; i++)
    if (!m->engines[i].finished) return token_deadlock(m);
  weft_status status = check_end(m);
  return status ? status : tensors_complete(m);
}
