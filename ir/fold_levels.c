/* Where each stage runs in its item's fold over K blocks (spatial-ir seed, fold_levels): the least solution of the
 * rules, by following each buffer once.
 *
 * Body: a load that steps along the K blocks, a receive, a carry's update, what reads a body stage's result, and what
 * reads a carry to make something a body stage reads. Epilogue: what else reads a carry, or an epilogue stage's result.
 * A carry is nobody's result here: it has a value before, during and after the blocks. */
#include "ir_private.h"

enum { PROLOGUE, BODY, EPILOGUE };

typedef struct levels {
  const weft_program *program;
  weft_ir_ports ins, outs;
  weft_ir_users readers, writers;
  const uint32_t *updater; /* by buffer */
  uint8_t *level;          /* by stage */
  uint8_t *reads_carry;    /* by stage */
  uint8_t *passed_down;    /* by buffer: its readers were visited */
  uint8_t *passed_up;      /* by buffer: its writers were visited */
  uint32_t *queue;
  uint64_t queued;
} levels;

static bool is_carry(const levels *l, uint32_t buffer) { return l->updater[buffer] != WEFT_NONE; }
static bool exists(const levels *l, uint32_t buffer) { return buffer < l->program->buffer_count; }

static void raise(levels *l, uint32_t stage, uint8_t level) {
  if (l->level[stage] != PROLOGUE) return;
  l->level[stage] = level;
  l->queue[l->queued++] = stage;
}

static bool moves_with_the_blocks(const weft_stage *stage) {
  if (stage->kind == WEFT_STAGE_RECV) return true;
  if (stage->kind != WEFT_STAGE_LOAD) return false;
  const weft_tile_addr *origin = &stage->load.pattern.origin;
  for (uint64_t i = 0; i < origin->step_count; i++)
    if (origin->steps[i].var == WEFT_VAR_K_BLOCK) return true;
  return false;
}

/* What reads a result of `stage` has at least its level. */
static void pass_down(levels *l, uint32_t stage, uint8_t level) {
  for (uint64_t i = l->outs.begin[stage]; i < l->outs.begin[stage + 1]; i++) {
    uint32_t buffer = l->outs.sorted[i];
    if (!exists(l, buffer) || is_carry(l, buffer) || l->passed_down[buffer]) continue;
    l->passed_down[buffer] = 1;
    for (uint64_t r = l->readers.begin[buffer]; r < l->readers.begin[buffer + 1]; r++)
      raise(l, l->readers.stages[r], level);
  }
}

/* What reads a carry for the sake of a body stage is in the body. */
static void pass_up(levels *l, uint32_t stage) {
  for (uint64_t i = l->ins.begin[stage]; i < l->ins.begin[stage + 1]; i++) {
    uint32_t buffer = l->ins.sorted[i];
    if (!exists(l, buffer) || is_carry(l, buffer) || l->passed_up[buffer]) continue;
    l->passed_up[buffer] = 1;
    for (uint64_t w = l->writers.begin[buffer]; w < l->writers.begin[buffer + 1]; w++)
      if (l->reads_carry[l->writers.stages[w]]) raise(l, l->writers.stages[w], BODY);
  }
}

static void find_body(levels *l) {
  const weft_program *p = l->program;
  for (uint32_t s = 0; s < p->stage_count; s++) {
    for (uint64_t i = l->ins.begin[s]; i < l->ins.begin[s + 1]; i++)
      if (exists(l, l->ins.sorted[i]) && is_carry(l, l->ins.sorted[i])) l->reads_carry[s] = 1;
    if (moves_with_the_blocks(&p->stages[s])) raise(l, s, BODY);
  }
  for (uint32_t b = 0; b < p->buffer_count; b++)
    if (is_carry(l, b)) raise(l, l->updater[b], BODY);
  for (uint64_t next = 0; next < l->queued; next++) {
    pass_down(l, l->queue[next], BODY);
    pass_up(l, l->queue[next]);
  }
}

static void find_epilogue(levels *l) {
  l->queued = 0;
  for (uint32_t s = 0; s < l->program->stage_count; s++)
    if (l->reads_carry[s]) raise(l, s, EPILOGUE);
  for (uint64_t next = 0; next < l->queued; next++) pass_down(l, l->queue[next], EPILOGUE);
}

static bool prepare(levels *l, weft_arena *scratch) {
  const weft_program *p = l->program;
  if (!weft_ir_ports_in(p, scratch, &l->ins) || !weft_ir_ports_out(p, scratch, &l->outs)) return false;
  if (!weft_ir_users_of(p, &l->ins, scratch, &l->readers)) return false;
  if (!weft_ir_users_of(p, &l->outs, scratch, &l->writers)) return false;
  l->updater = weft_ir_carries(p, &l->ins, &l->outs, scratch);
  l->reads_carry = WEFT_NEW_ARRAY(scratch, uint8_t, p->stage_count);
  l->passed_down = WEFT_NEW_ARRAY(scratch, uint8_t, p->buffer_count);
  l->passed_up = WEFT_NEW_ARRAY(scratch, uint8_t, p->buffer_count);
  l->queue = WEFT_NEW_ARRAY(scratch, uint32_t, p->stage_count);
  return !weft_arena_failed(scratch);
}

uint8_t *weft_fold_levels(const weft_program *program, weft_arena *arena) {
  levels l = {.program = program, .level = WEFT_NEW_ARRAY(arena, uint8_t, program->stage_count)};
  weft_arena *scratch = weft_arena_new();
  bool ready = scratch && l.level && prepare(&l, scratch);
  if (ready) {
    find_body(&l);
    find_epilogue(&l);
  }
  weft_arena_free(scratch);
  return ready ? l.level : NULL;
}
