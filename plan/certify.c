/* The certificate: what is proved about a schedule, by which argument, is in docs/certificate.md. */
#include "certify_private.h"

#include <string.h>

/** Page tables of rings deeper than this are not made. */
#define DEPTH_LIMIT 65536

typedef struct certifier {
  const weft_program *program;
  weft_diag *diag;
  weft_arena *arena;
  plan_ports *ports;
  uint32_t *section_of;
  uint64_t *phase_of_section;
  uint32_t *engine_of_stage;
  const uint8_t *levels;
  uint64_t *fold_blocks; /**< by stage: K blocks that the Loads of its unit walk, ANY when none does */
} certifier;

/* ---- the token machine ---- */

/** A carry's ring and who updates it: the stage that reads and writes it. */
static void find_carry(const token_machine *m, const uint64_t *fold_blocks, uint32_t buffer, token_ring *ring) {
  const plan_ports *ports = m->ports;
  ring->updater = WEFT_NONE;
  for (uint64_t i = ports->producer_begin[buffer]; i < ports->producer_begin[buffer + 1]; i++)
    for (uint64_t j = ports->reader_begin[buffer]; j < ports->reader_begin[buffer + 1]; j++)
      if (ports->producers[i] == ports->readers[j]) {
        ring->carry = true;
        ring->updater = ports->producers[i];
        ring->all_blocks = fold_blocks[ring->updater];
      }
}

/** An alias lies inside the memory of the buffer it names in the end, which a validator does not look at. */
static weft_status find_alias(token_machine *m, uint32_t buffer) {
  const weft_program *program = m->program;
  const weft_buffer *buffers = program->buffers;
  uint32_t root = plan_alias_root(program, buffer);
  if (root == buffer) return WEFT_OK;
  if (root == WEFT_NONE)
    return weft_error(m->diag, WEFT_INVALID, NULL, "buffer `%s` is an alias of itself", buffers[buffer].name);
  if (buffers[buffer].space == WEFT_MEM_ACC || buffers[root].space == WEFT_MEM_ACC)
    return weft_error(m->diag, WEFT_INVALID, "give the buffer memory of its own",
                      "buffer `%s` shares the accumulator with `%s`", buffers[buffer].name, buffers[root].name);
  const weft_buffer_at *at = &program->memory->buffer_at[buffer], *in = &program->memory->buffer_at[root];
  if (!weft_site_equal(at->site, in->site) || at->space != in->space || at->offset_bytes < in->offset_bytes ||
      (uint64_t)at->offset_bytes + at->bytes > (uint64_t)in->offset_bytes + in->bytes)
    return weft_error(m->diag, WEFT_INVALID, "place the alias inside the memory it shares",
                      "buffer `%s` does not lie inside `%s`, whose memory it shares", buffers[buffer].name,
                      buffers[root].name);
  m->rings[buffer].next_alias = m->rings[root].next_alias;
  m->rings[root].next_alias = buffer;
  return WEFT_OK;
}

static weft_status make_rings(token_machine *m, const uint64_t *fold_blocks) {
  const weft_program *program = m->program;
  m->rings = WEFT_NEW_ARRAY(m->arena, token_ring, program->buffer_count + 1);
  if (!m->rings) return weft_error_memory(m->diag);
  for (uint64_t b = 0; b < program->buffer_count; b++) {
    const weft_buffer *buffer = &program->buffers[b];
    token_ring *ring = &m->rings[b];
    if (buffer->depth_pages > DEPTH_LIMIT)
      return weft_error(m->diag, WEFT_INVALID, NULL, "buffer `%s` has more than %d pages", buffer->name, DEPTH_LIMIT);
    ring->next_alias = (uint32_t)b;
    ring->depth = buffer->depth_pages;
    ring->producer = ring->consumer = ring->waiting_producer = ring->waiting_consumer = WEFT_NONE;
    ring->pages = WEFT_NEW_ARRAY(m->arena, token_page, ring->depth);
    if (!ring->pages) return weft_error_memory(m->diag);
    find_carry(m, fold_blocks, (uint32_t)b, ring);
  }
  weft_status status = WEFT_OK;
  for (uint32_t b = 0; b < program->buffer_count && status == WEFT_OK; b++) status = find_alias(m, b);
  return status ? status : certify_memory(program, m->arena, m->diag);
}

static bool make_engines(token_machine *m) {
  const weft_schedule *schedule = m->program->schedule;
  m->engine_count = schedule->program_count;
  m->engines = WEFT_NEW_ARRAY(m->arena, token_engine, m->engine_count + 1);
  m->queue = WEFT_NEW_ARRAY(m->arena, uint32_t, m->engine_count + 1);
  m->load_counts = WEFT_NEW_ARRAY(m->arena, uint64_t, m->program->stage_count + 1);
  if (!m->engines || !m->queue || !m->load_counts) return false;
  for (uint64_t i = 0; i < m->engine_count; i++) {
    m->engines[i].program = &schedule->programs[i];
    m->engines[i].next_waiter = WEFT_NONE;
  }
  return true;
}

/** One run, every trip at the given counts. */
static weft_status run_once(const certifier *c, uint64_t *trip_counts, weft_certificate *certificate) {
  token_machine m = {.program = c->program,
                     .diag = c->diag,
                     .arena = weft_arena_new(),
                     .ports = c->ports,
                     .section_of = c->section_of,
                     .phase_of_section = c->phase_of_section,
                     .engine_of_stage = c->engine_of_stage,
                     .levels = c->levels,
                     .trip_counts = trip_counts};
  if (!m.arena) return weft_error_memory(c->diag);
  weft_status status = make_rings(&m, c->fold_blocks);
  if (!status && (!make_engines(&m) || !token_semaphores_make(&m) || !clocks_make(&m)))
    status = weft_error_memory(c->diag);
  if (!status && !tensors_prepare(&m)) status = m.status;
  if (!status) status = token_run(&m);
  certificate->steps += m.steps;
  certificate->tiles_written = weft_max_u64(certificate->tiles_written, m.tiles_written);
  weft_arena_free(m.arena);
  return status;
}

/* ---- trips ---- */

static uint64_t least_count(const weft_trip *trip) { return weft_trip_count(trip, trip->admit.low); }
static uint64_t greatest_count(const weft_trip *trip) { return weft_trip_count(trip, trip->admit.high); }

/** Runs at the least counts, at a window of counts above them that fills every ring, and at the greatest (C11). */
static weft_status run_trips(const certifier *c, weft_certificate *certificate) {
  const weft_program *program = c->program;
  uint64_t *counts = WEFT_NEW_ARRAY(c->arena, uint64_t, program->trip_count + 1);
  if (!counts) return weft_error_memory(c->diag);
  if (program->trip_count == 0) return run_once(c, counts, certificate);
  uint64_t window = 1;
  for (uint64_t b = 0; b < program->buffer_count; b++)
    window = weft_max_u64(window, program->buffers[b].depth_pages + 1);
  weft_status status = WEFT_OK;
  bool greatest = false;
  for (uint64_t i = 0; i <= window && !status && !greatest; i++) {
    greatest = true;
    for (uint64_t t = 0; t < program->trip_count; t++) {
      uint64_t most = greatest_count(&program->trips[t]);
      counts[t] = weft_min_u64(least_count(&program->trips[t]) + i, most);
      greatest = greatest && counts[t] == most;
    }
    status = run_once(c, counts, certificate);
  }
  for (uint64_t t = 0; t < program->trip_count; t++) counts[t] = greatest_count(&program->trips[t]);
  return status || greatest ? status : run_once(c, counts, certificate);
}

/* ---- before the runs ---- */

/** K blocks by unit. */
static weft_status find_blocks(certifier *c) {
  const weft_program *program = c->program;
  plan_units units;
  weft_status status = plan_units_find(program, c->arena, &units, c->diag);
  if (status) return status;
  for (uint64_t u = 0; u < units.count; u++) {
    const plan_unit *unit = &units.items[u];
    uint64_t blocks = ANY;
    for (uint64_t i = 0; i < unit->stage_count; i++) {
      const weft_stage *stage = &program->stages[unit->stages[i]];
      if (stage->kind == WEFT_STAGE_LOAD && plan_step_of(&stage->load.pattern.origin, WEFT_VAR_K_BLOCK))
        blocks = stage->load.num_blocks;
    }
    for (uint64_t i = 0; i < unit->stage_count; i++) c->fold_blocks[unit->stages[i]] = blocks;
  }
  return WEFT_OK;
}

static bool prepare(certifier *c) {
  const weft_program *program = c->program;
  c->levels = weft_fold_levels(program, c->arena);
  c->fold_blocks = WEFT_NEW_ARRAY(c->arena, uint64_t, program->stage_count + 1);
  if (!c->levels || !c->fold_blocks) return false;
  c->ports = plan_ports_find(program, c->arena);
  c->section_of = WEFT_NEW_ARRAY(c->arena, uint32_t, program->stage_count + 1);
  c->engine_of_stage = WEFT_NEW_ARRAY(c->arena, uint32_t, program->stage_count + 1);
  c->phase_of_section = weft_section_phases(program, c->arena);
  if (!c->ports || !c->section_of || !c->engine_of_stage || !c->phase_of_section) return false;
  for (uint64_t k = 0; k < program->section_count; k++)
    for (uint64_t s = program->sections[k].stages.begin; s < program->sections[k].stages.end; s++)
      c->section_of[s] = (uint32_t)k;
  memset(c->engine_of_stage, 0xff, (program->stage_count + 1) * sizeof *c->engine_of_stage);
  for (uint64_t e = 0; e < program->schedule->program_count; e++) {
    const weft_engine_program *engine = &program->schedule->programs[e];
    for (uint64_t i = 0; i < engine->stage_count; i++)
      if (engine->stages[i] < program->stage_count) c->engine_of_stage[engine->stages[i]] = (uint32_t)e;
  }
  return true;
}

static weft_status check_program(const weft_program *program, weft_diag *diag) {
  if (!program->schedule)
    return weft_error(diag, WEFT_INVALID, "`weft plan` makes a schedule", "program `%s` has no schedule to prove",
                      program->name);
  weft_status status = weft_program_validate(program, 1, NULL, diag);
  for (uint64_t s = 0; s < program->semaphore_count && !status; s++)
    if (program->semaphores[s].role == WEFT_SEM_BARRIER && program->semaphores[s].init)
      status = weft_error(diag, WEFT_INVALID, NULL, "semaphore %llu of a rendezvous does not start at 0",
                          (unsigned long long)s);
  return status;
}

/** No byte of local memory is owned twice in a phase (C13): the validator compares places; here, that every place is
 * large enough. */
static weft_status check_memory(const weft_program *program, weft_diag *diag) {
  for (uint64_t b = 0; b < program->buffer_count; b++) {
    const weft_buffer *buffer = &program->buffers[b];
    const weft_buffer_at *at = &program->memory->buffer_at[b];
    if (buffer->space == WEFT_MEM_ACC || plan_buffer_is_acc(program, (uint32_t)b)) continue;
    if (at->bytes < weft_buffer_bytes(program, buffer))
      return weft_error(diag, WEFT_INVALID, NULL, "buffer `%s` has %u bytes of memory and needs %llu", buffer->name,
                        at->bytes, (unsigned long long)weft_buffer_bytes(program, buffer));
    if (at->space != buffer->space || (buffer->site.present && !weft_site_equal(at->site, buffer->site.site)))
      return weft_error(diag, WEFT_INVALID, NULL, "buffer `%s` lies in another memory than its own", buffer->name);
  }
  return WEFT_OK;
}

weft_status weft_certify(const weft_program *program, weft_certificate *certificate, weft_diag *diag) {
  *certificate = (weft_certificate){0};
  weft_status status = check_program(program, diag);
  if (status) return status;
  certifier c = {.program = program, .diag = diag, .arena = weft_arena_new()};
  if (!c.arena) return weft_error_memory(diag);
  if (!prepare(&c)) status = weft_error_memory(diag);
  if (!status) status = find_blocks(&c);
  if (!status) status = check_memory(program, diag);
  if (!status) status = certify_ops(program, c.ports, &certificate->ops, diag);
  if (!status) status = certify_partials(program, c.ports, c.section_of, &certificate->partial_proved, diag);
  if (!status) status = run_trips(&c, certificate);
  if (!status) status = certify_ranges(program, c.ports, diag);
  certificate->programs = program->schedule->program_count;
  certificate->sections = plan_section_count(program);
  certificate->buffers = program->buffer_count;
  certificate->semaphores = program->semaphore_count;
  weft_arena_free(c.arena);
  return status;
}
