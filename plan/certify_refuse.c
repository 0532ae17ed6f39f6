/* Refusals of the certificate: where, what, and for a deadlock who waits for whom. */
#include "certify_private.h"

#include <string.h>

static void describe_here(weft_text *text, const token_machine *m, const token_engine *e, const weft_op *op) {
  plan_describe_engine(text, e->program->site, e->program->engine);
  weft_text_printf(text, ", %s of ", plan_op_name(op->kind));
  plan_describe_stage(text, m->program, op->stage);
  if (m->program->section_count && op->stage < m->program->stage_count)
    weft_text_printf(text, ", section `%s`", m->program->sections[m->section_of[op->stage]].name);
}

token_step token_refuse(token_machine *m, const token_engine *e, const weft_op *op, const char *format, ...) {
  weft_text text = {0};
  describe_here(&text, m, e, op);
  weft_text_puts(&text, ": ");
  va_list arguments;
  va_start(arguments, format);
  weft_text_vprintf(&text, format, arguments);
  va_end(arguments);
  m->status = text.failed ? weft_error_memory(m->diag) : weft_error(m->diag, WEFT_INVALID, NULL, "%s", text.data);
  weft_text_free(&text);
  return TOKEN_REFUSED;
}

token_step token_no_memory(token_machine *m) {
  m->status = weft_error_memory(m->diag);
  return TOKEN_REFUSED;
}

/* ---- deadlocks ---- */

static bool ops_touch(const weft_op *ops, uint64_t count, const weft_op *wait, weft_site site) {
  for (uint64_t i = 0; i < count; i++) {
    const weft_op *op = &ops[i];
    if (op->kind == WEFT_OP_LOOP && ops_touch(op->loop.body, op->loop.body_count, wait, site)) return true;
    if (wait->kind == WEFT_OP_BARRIER && op->kind == WEFT_OP_BARRIER && op->barrier_group == wait->barrier_group)
      return true;
    if (wait->kind != WEFT_OP_SEM_WAIT) continue;
    if (op->kind == WEFT_OP_SEM_INC && op->sem_inc.sem == wait->sem_wait.sem && weft_site_equal(op->sem_inc.at, site))
      return true;
    if (op->kind == WEFT_OP_MCAST_SET_VALID && op->mcast_set_valid.sem == wait->sem_wait.sem) return true;
  }
  return false;
}

/** An engine that has not ended and could give a flag or barrier what it waits for; a waiting one first, it closes a
 * cycle. */
static uint32_t giver_of(const token_machine *m, uint32_t waiter, const weft_op *wait) {
  uint32_t found = WEFT_NONE;
  for (uint32_t e = 0; e < m->engine_count; e++) {
    const token_engine *other = &m->engines[e];
    if (e == waiter || other->finished) continue;
    if (wait->kind == WEFT_OP_BARRIER && other->at_barrier) continue;
    if (!ops_touch(other->program->ops, other->program->op_count, wait, m->engines[waiter].program->site)) continue;
    found = e;
    break;
  }
  return found;
}

static uint32_t stage_engine(const token_machine *m, const uint32_t *stages, uint64_t begin, uint64_t end) {
  for (uint64_t i = begin; i < end; i++)
    if (m->engine_of_stage[stages[i]] != WEFT_NONE) return m->engine_of_stage[stages[i]];
  return WEFT_NONE;
}

/** What an engine waits for, in words, and the engine that has to give it; WEFT_NONE when none does. */
static uint32_t explain(const token_machine *m, uint32_t waiter, const weft_op *op, weft_text *text) {
  const plan_ports *ports = m->ports;
  if (op->kind == WEFT_OP_RESERVE || op->kind == WEFT_OP_WAIT) {
    uint32_t b = op->page.buf;
    const token_ring *r = &m->rings[b];
    bool room = op->kind == WEFT_OP_RESERVE;
    weft_text_printf(text, " waits for %s `%s`", room ? "room in" : "a page of", m->program->buffers[b].name);
    uint32_t known = room ? r->consumer : r->producer;
    if (known != WEFT_NONE) return known;
    return room ? stage_engine(m, ports->readers, ports->reader_begin[b], ports->reader_begin[b + 1])
                : stage_engine(m, ports->producers, ports->producer_begin[b], ports->producer_begin[b + 1]);
  }
  if (op->kind == WEFT_OP_SEM_WAIT)
    weft_text_printf(text, " waits for semaphore %u", op->sem_wait.sem);
  else
    weft_text_printf(text, " waits at the barrier of group %u", op->barrier_group);
  return giver_of(m, waiter, op);
}

weft_status token_deadlock(token_machine *m) {
  weft_text text = {0};
  bool *seen = WEFT_NEW_ARRAY(m->arena, bool, m->engine_count + 1);
  uint32_t at = 0;
  while (at + 1 < m->engine_count && m->engines[at].finished) at++;
  weft_text_puts(&text, "deadlock: ");
  uint64_t shown = 0;
  while (seen && !seen[at]) {
    seen[at] = true;
    const weft_op *op = token_next_op(&m->engines[at]);
    if (shown++) weft_text_puts(&text, "; ");
    describe_here(&text, m, &m->engines[at], op);
    uint32_t giver = explain(m, at, op, &text);
    if (giver == WEFT_NONE || m->engines[giver].finished) {
      weft_text_puts(&text, giver == WEFT_NONE ? ", which no engine gives" : ", but ");
      if (giver != WEFT_NONE) {
        plan_describe_engine(&text, m->engines[giver].program->site, m->engines[giver].program->engine);
        weft_text_puts(&text, " has ended");
      }
      break;
    }
    weft_text_puts(&text, " from ");
    plan_describe_engine(&text, m->engines[giver].program->site, m->engines[giver].program->engine);
    at = giver;
    if (seen[at]) weft_text_puts(&text, ": a cycle");
  }
  weft_status status =
      text.failed || !seen ? weft_error_memory(m->diag) : weft_error(m->diag, WEFT_INVALID, NULL, "%s", text.data);
  weft_text_free(&text);
  return status;
}
