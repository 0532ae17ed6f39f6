/* synthesize_handshakes
 * requires     a Sized program
 * establishes  one program of ops an engine: local hand-offs as Reserve, fill, Push and Wait, use, Pop; multicasts
 *              behind a ready counter and a valid flag an operand; between buffers that share memory a guard; between
 *              sections the rendezvous of all engines
 * breaks       nothing
 * source       spatial-ir seed, "ChoreoOp", "Rendezvous"; a centralised barrier: Mellor-Crummey and Scott 1991, 3 */
#include "synthesize.h"

#include <string.h>

/* ---- op lists ---- */

enum { BLOCK_LEAST = 8, BLOCK_MOST = 2048 };

/* The block that the next op goes into, or NULL. */
static op_block *block_with_room(synthesizer *s, op_list *list) {
  op_block *last = list->last;
  if (last && last->count < last->capacity) return last;
  uint64_t capacity = last ? weft_min_u64(2 * last->capacity, BLOCK_MOST) : BLOCK_LEAST;
  op_block *block =
      weft_arena_alloc(list->lasting ? s->scratch : s->passing, sizeof *block + (size_t)capacity * sizeof *block->ops);
  if (!block) return NULL;
  block->capacity = capacity;
  if (last)
    last->next = block;
  else
    list->first = block;
  list->last = block;
  return block;
}

weft_op *synth_add(synthesizer *s, op_list *list, uint32_t stage, weft_choreo_kind kind) {
  op_block *block = block_with_room(s, list);
  if (!block) {
    s->failed = true;
    static _Thread_local weft_op nowhere;
    return &nowhere;
  }
  weft_op *op = &block->ops[block->count++];
  list->count++;
  *op = (weft_op){.stage = stage, .kind = kind};
  return op;
}

void synth_append(synthesizer *s, op_list *list, const op_list *from) {
  for (const op_block *block = from->first; block; block = block->next)
    for (uint64_t i = 0; i < block->count; i++) *synth_add(s, list, WEFT_NONE, WEFT_OP_FLUSH) = block->ops[i];
}

const weft_op *synth_in_program(synthesizer *s, const op_list *list) {
  weft_op *ops = WEFT_NEW_ARRAY(s->arena, weft_op, list->count);
  if (!ops) {
    s->failed = true;
    return NULL;
  }
  uint64_t count = 0;
  for (const op_block *block = list->first; block; block = block->next) {
    memcpy(ops + count, block->ops, block->count * sizeof *ops);
    count += block->count;
  }
  return ops;
}

void synth_page(synthesizer *s, op_list *list, uint32_t stage, weft_choreo_kind kind, uint32_t buffer) {
  weft_op *op = synth_add(s, list, stage, kind);
  op->page.buf = buffer;
  op->page.pages = 1;
}

void synth_loop(synthesizer *s, op_list *list, uint32_t stage, uint32_t var, uint64_t count, const op_list *body) {
  if (body->count == 0) return;
  weft_op *op = synth_add(s, list, stage, WEFT_OP_LOOP);
  op->loop.var = var;
  op->loop.trip = WEFT_NONE;
  op->loop.count = count;
  op->loop.body = synth_in_program(s, body);
  op->loop.body_count = body->count;
}

void synth_k_loop(synthesizer *s, op_list *list, uint32_t stage, const weft_matmul_tiles *product, uint64_t count,
                  const op_list *body) {
  uint32_t trip = product && product->trip != WEFT_NONE ? product->trip : s->program->work.k_trip;
  if (body->count == 0) return;
  if (trip == WEFT_NONE && count == 1) {
    synth_append(s, list, body);
    return;
  }
  synth_loop(s, list, stage, WEFT_VAR_K_BLOCK, count, body);
  if (!s->failed) list->last->ops[list->last->count - 1].loop.trip = trip;
}

/* ---- section boundaries ---- */

static void emit_wait(synthesizer *s, op_list *list, uint32_t stage, uint32_t semaphore, uint64_t count) {
  weft_op *op = synth_add(s, list, stage, WEFT_OP_SEM_WAIT);
  op->sem_wait.sem = semaphore;
  op->sem_wait.at_least = true;
  op->sem_wait.count = count;
}

static void emit_post(synthesizer *s, op_list *list, uint32_t stage, uint32_t semaphore, weft_site at) {
  weft_op *op = synth_add(s, list, stage, WEFT_OP_SEM_INC);
  op->sem_inc.sem = semaphore;
  op->sem_inc.at = at;
  op->sem_inc.by = 1;
}

/** The stage that a rendezvous op of the engine is tagged with: its last so far, else its first. */
static uint32_t tag_of(synthesizer *s, uint64_t e, uint64_t section_end) {
  const plan_engine *engine = &s->engines.items[e];
  uint64_t *tag = &s->tags[e];
  while (*tag + 1 < engine->stage_count && engine->stages[*tag + 1] < section_end) ++*tag;
  return engine->stages[*tag];
}

/** Every engine arrives at the root; that one, having counted them, releases every site. */
static void emit_rendezvous(synthesizer *s, const weft_section *section) {
  const weft_semaphore *gather = &s->program->semaphores[section->gather];
  const weft_semaphore *release = &s->program->semaphores[section->release];
  bool rooted = false;
  for (uint64_t e = 0; e < s->engines.count && !s->failed; e++) {
    uint32_t tag = tag_of(s, e, section->stages.end);
    op_list *ops = &s->ops[e];
    emit_post(s, ops, tag, section->gather, gather->sites[0]);
    if (!rooted && weft_site_equal(s->engines.items[e].site, gather->sites[0])) {
      rooted = true;
      emit_wait(s, ops, tag, section->gather, gather->count);
      for (uint64_t i = 0; i < release->site_count; i++) emit_post(s, ops, tag, section->release, release->sites[i]);
    }
    emit_wait(s, ops, tag, section->release, 1);
  }
}

/* ---- the pass ---- */

static weft_status refuse(synthesizer *s, const char *what) {
  return weft_error(s->diag, WEFT_INVALID, "start from the Template and let weft plan it for `cpu`", "%s", what);
}

static weft_status check_forms(synthesizer *s) {
  const weft_program *program = s->program;
  for (uint64_t i = 0; i < program->semaphore_count; i++)
    if (program->semaphores[i].role != WEFT_SEM_BARRIER)
      return refuse(s, "the program has semaphores of its own before it has a schedule");
  return WEFT_OK;
}

static weft_status emit_sections(synthesizer *s) {
  uint64_t u = 0;
  for (uint64_t k = 0; k < plan_section_count(s->program); k++) {
    for (; u < s->units.count && s->units.items[u].section == k; u++) {
      weft_arena_reset(s->passing);
      weft_status status = synth_unit(s, &s->units.items[u]);
      if (status) return status;
    }
    if (s->program->section_count && s->program->sections[k].has_barrier_after)
      emit_rendezvous(s, &s->program->sections[k]);
  }
  return s->failed ? weft_error_memory(s->diag) : WEFT_OK;
}

static bool make_schedule(synthesizer *s) {
  weft_schedule *schedule = WEFT_NEW(s->arena, weft_schedule);
  weft_engine_program *programs = WEFT_NEW_ARRAY(s->arena, weft_engine_program, s->engines.count);
  if (!schedule || !programs) return false;
  for (uint64_t e = 0; e < s->engines.count; e++) {
    const plan_engine *engine = &s->engines.items[e];
    programs[e] = (weft_engine_program){.site = engine->site,
                                        .engine = engine->engine,
                                        .stages = engine->stages,
                                        .stage_count = engine->stage_count,
                                        .ops = synth_in_program(s, &s->ops[e]),
                                        .op_count = s->ops[e].count};
  }
  *schedule = (weft_schedule){programs, s->engines.count};
  s->program->schedule = schedule;
  return !s->failed;
}

static bool prepare(synthesizer *s) {
  s->ports = plan_ports_find(s->program, s->scratch);
  s->levels = weft_fold_levels(s->program, s->scratch);
  s->done = WEFT_NEW_ARRAY(s->scratch, bool, s->program->stage_count + 1);
  if (!s->ports || !s->levels || !s->done || !plan_engines_find(s->program, s->arena, s->scratch, &s->engines))
    return false;
  s->ops = WEFT_NEW_ARRAY(s->scratch, op_list, s->engines.count + 1);
  s->tags = WEFT_NEW_ARRAY(s->scratch, uint64_t, s->engines.count + 1);
  if (!s->ops || !s->tags) return false;
  for (uint64_t e = 0; e < s->engines.count; e++) s->ops[e].lasting = true;
  return true;
}

weft_status weft_pass_synthesize_handshakes(weft_program *program, const weft_target *target,
                                            const weft_options *options, weft_diag *diag) {
  (void)options;
  synthesizer s = {.program = program, .target = target, .diag = diag, .arena = program->arena};
  weft_status status = check_forms(&s);
  if (status) return status;
  s.scratch = weft_arena_new();
  s.passing = weft_arena_new();
  status = s.scratch && s.passing ? WEFT_OK : weft_error_memory(diag);
  if (!status) status = plan_units_find(program, s.scratch, &s.units, diag);
  if (!status && !prepare(&s)) status = weft_error_memory(diag);
  if (!status) status = synth_semaphores(&s);
  if (!status) status = emit_sections(&s);
  if (!status) status = synth_guards(&s);
  if (!status && !make_schedule(&s)) status = weft_error_memory(diag);
  weft_arena_free(s.passing);
  weft_arena_free(s.scratch);
  return status;
}
