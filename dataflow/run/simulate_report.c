/* What the simulator says when nothing can fire: who waits and for what, and what was left behind. */
#include "simulate_private.h"

enum { LINES_MOST = 12 };

static bool is_first(const weft_simulator *s, uint32_t index) { return s->actors[index].state == 0; }

/* Whether an actor is in the middle of something. */
static bool involved(const weft_simulator *s, const actor *a) {
  if (a->kind == ACTOR_SOURCE) return weft_channel_waiting(s->sources[a->detail].feed) > 0;
  if (a->state) return true;
  for (uint32_t i = 0; i < a->in_count; i++)
    if (s->queues[s->inputs[a->in + i]].count) return true;
  return false;
}

static bool needs(const weft_simulator *s, const actor *a, uint32_t i) {
  const queue *first = a->in_count ? &s->queues[s->inputs[a->in]] : NULL;
  uint64_t lane = first && first->count ? first->words[first->head] : 0;
  switch (a->kind) {
  case ACTOR_MUX: return i == 0 || (first->count && i == lane + 1);
  case ACTOR_CARRY: return a->state ? i == 0 || (i == 2 && first->count && lane) : i == 1;
  case ACTOR_INVARIANT: return i == (a->state ? 0u : 1u);
  case ACTOR_STREAM: return !a->state;
  case ACTOR_SOURCE:
  case ACTOR_COMPUTE:
  case ACTOR_CONSTANT:
  case ACTOR_SYNC:
  case ACTOR_DEMUX:
  case ACTOR_GATE:
  case ACTOR_LOAD:
  case ACTOR_STORE:
  case ACTOR_SINK: break;
  }
  return true;
}

/* Input i of the actor is which operand of its op: memories have no queue. */
static uint32_t operand_of(const actor *a, uint32_t i) {
  return a->kind == ACTOR_LOAD || a->kind == ACTOR_STORE ? i + 1 : i;
}

static void describe(weft_simulator *s, const actor *a) {
  weft_text *t = &s->text;
  weft_text_printf(t, "\n  line %u: %s", a->op->line, a->kind == ACTOR_SOURCE ? "an input" : a->op->name->text);
  bool waits = false;
  for (uint32_t i = 0; i < a->in_count; i++)
    if (needs(s, a, i) && !s->queues[s->inputs[a->in + i]].count) {
      const actor *from = &s->actors[s->queues[s->inputs[a->in + i]].producer];
      weft_text_printf(t, waits ? ", operand %u" : " waits for operand %u", operand_of(a, i));
      if (from->kind != ACTOR_SOURCE) weft_text_printf(t, " (%s in line %u)", from->op->name->text, from->op->line);
      waits = true;
    }
  if (!waits) weft_text_puts(t, " has no room for its results");
}

weft_run_state simulate_stuck(weft_simulator *s, bool waiting) {
  s->text.length = 0;
  weft_text_puts(&s->text, waiting ? "the graph waits for tokens of a stream"
                                   : "nothing can fire, and the graph is not complete");
  uint32_t lines = 0;
  for (uint32_t i = 0; i < s->actor_count; i++) {
    const actor *a = &s->actors[i];
    if (a->kind == ACTOR_SINK || !involved(s, a)) continue;
    if (!s->report.op && a->kind != ACTOR_SOURCE) s->report.op = a->op;
    if (lines++ < LINES_MOST) describe(s, a);
  }
  if (lines > LINES_MOST) weft_text_printf(&s->text, "\n  and %u more", lines - LINES_MOST);
  s->report.text = s->text.data;
  return waiting ? WEFT_RUN_WAITING : WEFT_RUN_STUCK;
}

static void leftover(weft_simulator *s, const weft_mlir_op *op, const char *what, uint32_t *lines) {
  if (!s->report.op) s->report.op = op;
  if ((*lines)++ < LINES_MOST) weft_text_printf(&s->text, "\n  line %u: %s %s", op->line, op->name->text, what);
}

weft_run_state simulate_leftovers(weft_simulator *s) {
  uint32_t lines = 0;
  s->text.length = 0;
  weft_text_puts(&s->text, weft_fault_text(WEFT_FAULT_LEFTOVER));
  for (uint32_t q = 0; q < s->queue_count; q++) {
    const actor *from = &s->actors[s->queues[q].producer];
    bool input = from->kind == ACTOR_SOURCE && s->sources[from->detail].kind != SOURCE_CONSTANT;
    if (s->queues[q].count && !input) leftover(s, s->actors[s->queues[q].consumer].op, "did not take a token", &lines);
  }
  for (uint32_t i = 0; i < s->actor_count; i++)
    if (!is_first(s, i)) leftover(s, s->actors[i].op, "is not in its first state", &lines);
  for (uint32_t i = 0; i < s->sink_count; i++)
    if (s->sinks[i].kind != SINK_STREAM && s->sinks[i].came > 1)
      leftover(s, s->graph, "returned more than one token", &lines);
  if (!lines) return WEFT_RUN_DONE;
  s->report.fault = WEFT_FAULT_LEFTOVER;
  s->report.text = s->text.data;
  return WEFT_RUN_FAULT;
}
