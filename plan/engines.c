/* The engines of a placed program, and the rendezvous that close its sections. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static int compare_engines(const void *a, const void *b) {
  const plan_engine *s = a, *t = b;
  if (s->site.chip != t->site.chip) return s->site.chip < t->site.chip ? -1 : 1;
  if (s->site.y != t->site.y) return s->site.y < t->site.y ? -1 : 1;
  if (s->site.x != t->site.x) return s->site.x < t->site.x ? -1 : 1;
  return (s->order > t->order) - (s->order < t->order);
}

/** Movement 0, Compute, Movement 1, ... */
static uint32_t engine_order(weft_engine engine) {
  return engine.compute ? 1 : engine.movement == 0 ? 0 : engine.movement + 1u;
}

static plan_engine engine_of(const weft_program *program, uint64_t stage) {
  weft_engine_slot slot = program->placement->engine_of[stage];
  return (plan_engine){.site = slot.site, .engine = slot.engine, .order = engine_order(slot.engine)};
}

bool plan_engines_find(const weft_program *program, weft_arena *keep, weft_arena *scratch, plan_engines *engines) {
  uint64_t n = program->stage_count;
  plan_engine *all = WEFT_NEW_ARRAY(scratch, plan_engine, n + 1);
  uint32_t *stages = WEFT_NEW_ARRAY(keep, uint32_t, n);
  *engines = (plan_engines){.items = all, .of_stage = WEFT_NEW_ARRAY(scratch, uint32_t, n + 1)};
  if (!all || !stages || !engines->of_stage) return false;
  for (uint64_t i = 0; i < n; i++) all[i] = engine_of(program, i);
  qsort(all, n, sizeof *all, compare_engines);
  for (uint64_t i = 0; i < n; i++)
    if (i == 0 || compare_engines(&all[engines->count - 1], &all[i])) all[engines->count++] = all[i];
  for (uint64_t i = 0; i < n; i++) {
    plan_engine key = engine_of(program, i);
    plan_engine *found = bsearch(&key, all, engines->count, sizeof *all, compare_engines);
    engines->of_stage[i] = (uint32_t)(found - all);
    found->stage_count++;
  }
  for (uint64_t e = 0; e < engines->count; e++) {
    all[e].stages = stages;
    stages += all[e].stage_count;
    all[e].stage_count = 0;
  }
  for (uint64_t i = 0; i < n; i++) {
    plan_engine *engine = &all[engines->of_stage[i]];
    engine->stages[engine->stage_count++] = (uint32_t)i;
  }
  return true;
}

/* ---- boundaries ---- */

typedef struct closer {
  weft_semaphore *semaphores;
  uint64_t count;
  const weft_site *sites;
  uint64_t site_count, engine_count;
} closer;

static uint32_t add_semaphore(closer *c, weft_barrier_phase phase) {
  weft_semaphore *semaphore = &c->semaphores[c->count];
  *semaphore = (weft_semaphore){
      .id = (uint32_t)c->count, .role = WEFT_SEM_BARRIER, .count = c->engine_count, .phase = phase, .sites = c->sites};
  semaphore->site_count = phase == WEFT_BARRIER_GATHER ? 1 : c->site_count;
  return (uint32_t)c->count++;
}

/** Keeps the section's semaphores, with new numbers, and adds a pair when the section is to be closed. */
static void close_section(closer *c, const weft_program *program, weft_section *section, bool last) {
  weft_span old = section->semaphores;
  section->semaphores.begin = c->count;
  for (uint64_t i = old.begin; i < old.end; i++) {
    c->semaphores[c->count] = program->semaphores[i];
    c->semaphores[c->count].id = (uint32_t)c->count;
    c->count++;
  }
  if (section->has_barrier_after) {
    section->gather += (uint32_t)(section->semaphores.begin - old.begin);
    section->release += (uint32_t)(section->semaphores.begin - old.begin);
  } else if (!last && c->engine_count) {
    section->has_barrier_after = true;
    section->gather = add_semaphore(c, WEFT_BARRIER_GATHER);
    section->release = add_semaphore(c, WEFT_BARRIER_RELEASE);
  }
  section->semaphores.end = c->count;
}

/** Whether the numbers of semaphores may change: nothing but sections and edges names them before there is a schedule.
 */
static bool edges_name_semaphores(const weft_program *program) {
  for (uint64_t e = 0; e < program->edge_count; e++)
    if (program->edges[e].handshake == WEFT_HANDSHAKE_SEMAPHORE) return true;
  return false;
}

weft_status plan_close_sections(weft_program *program, weft_arena *scratch, weft_diag *diag) {
  uint64_t n = program->section_count;
  if (n < 2) return WEFT_OK;
  if (edges_name_semaphores(program))
    return weft_error(diag, WEFT_INVALID, "start from the Template",
                      "program `%s` has several sections and semaphores between sites", program->name);
  plan_engines engines;
  weft_section *sections = WEFT_NEW_ARRAY(program->arena, weft_section, n);
  closer c = {.semaphores = WEFT_NEW_ARRAY(program->arena, weft_semaphore, program->semaphore_count + 2 * n)};
  if (!sections || !c.semaphores || !plan_engines_find(program, scratch, scratch, &engines))
    return weft_error_memory(diag);
  weft_site *sites = WEFT_NEW_ARRAY(program->arena, weft_site, engines.count);
  if (!sites) return weft_error_memory(diag);
  for (uint64_t e = 0; e < engines.count; e++)
    if (c.site_count == 0 || !weft_site_equal(sites[c.site_count - 1], engines.items[e].site))
      sites[c.site_count++] = engines.items[e].site;
  c.sites = sites;
  c.engine_count = engines.count;
  memcpy(sections, program->sections, n * sizeof *sections);
  for (uint64_t k = 0; k < n; k++) close_section(&c, program, &sections[k], k + 1 == n);
  program->sections = sections;
  program->semaphores = c.semaphores;
  program->semaphore_count = c.count;
  return WEFT_OK;
}
