/* The engines of a placed program, and the rendezvous that close its sections. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

int plan_site_order(weft_site a, weft_site b) {
  if (a.chip != b.chip) return a.chip < b.chip ? -1 : 1;
  if (a.y != b.y) return a.y < b.y ? -1 : 1;
  return a.x != b.x ? (a.x < b.x ? -1 : 1) : 0;
}

static int compare_engines(const void *a, const void *b) {
  const plan_engine *s = a, *t = b;
  int sites = plan_site_order(s->site, t->site);
  if (sites) return sites;
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

/** Finds engines while they are met: open addressing, of twice as many places as there are stages. */
typedef struct meeting {
  weft_arena *scratch;
  plan_engines *engines;
  uint64_t capacity;
  uint32_t *places; /**< index of an engine and 1, or 0 */
  uint64_t places_mask;
} meeting;

static uint64_t place_of(const meeting *m, const plan_engine *engine) {
  const uint64_t key[2] = {(uint64_t)engine->site.chip << 32 | (uint64_t)engine->site.y << 16 | engine->site.x,
                           engine->order};
  uint64_t place = weft_hash_bytes(0, key, sizeof key) & m->places_mask;
  while (m->places[place] && compare_engines(&m->engines->items[m->places[place] - 1], engine))
    place = (place + 1) & m->places_mask;
  return place;
}

/** Index of the engine, which is new when none was met before. false without memory. */
static bool meet(meeting *m, const plan_engine *engine, uint32_t *index) {
  plan_engines *engines = m->engines;
  uint64_t place = place_of(m, engine);
  if (!m->places[place]) {
    if (!weft_arena_grow(m->scratch, &engines->items, engines->count, &m->capacity, sizeof *engines->items))
      return false;
    engines->items[engines->count++] = *engine;
    m->places[place] = (uint32_t)engines->count;
  }
  *index = m->places[place] - 1;
  engines->items[*index].stage_count++;
  return true;
}

/** Engines of all stages, in the order they are met; `of_stage` filled. */
static bool meet_all(const weft_program *program, weft_arena *scratch, plan_engines *engines) {
  uint64_t n = program->stage_count, places = 2;
  while (places < 2 * n) places *= 2;
  meeting m = {.scratch = scratch, .engines = engines, .places = WEFT_NEW_ARRAY(scratch, uint32_t, places)};
  if (!m.places) return false;
  m.places_mask = places - 1;
  plan_engine last = {0};
  for (uint64_t i = 0; i < n; i++) {
    plan_engine engine = engine_of(program, i);
    if (i && compare_engines(&engine, &last) == 0) {
      engines->of_stage[i] = engines->of_stage[i - 1];
      engines->items[engines->of_stage[i]].stage_count++;
    } else if (!meet(&m, &engine, &engines->of_stage[i])) {
      return false;
    }
    last = engine;
  }
  return true;
}

/** Sorts the engines; `of_stage` follows. */
static bool sort_engines(uint64_t stage_count, weft_arena *scratch, plan_engines *engines) {
  uint32_t *sorted = WEFT_NEW_ARRAY(scratch, uint32_t, engines->count);
  if (!sorted) return false;
  for (uint64_t e = 0; e < engines->count; e++) engines->items[e].met = (uint32_t)e;
  if (engines->count) qsort(engines->items, engines->count, sizeof *engines->items, compare_engines);
  for (uint64_t e = 0; e < engines->count; e++) sorted[engines->items[e].met] = (uint32_t)e;
  for (uint64_t i = 0; i < stage_count; i++) engines->of_stage[i] = sorted[engines->of_stage[i]];
  return true;
}

bool plan_engines_find(const weft_program *program, weft_arena *keep, weft_arena *scratch, plan_engines *engines) {
  uint64_t n = program->stage_count;
  uint32_t *stages = WEFT_NEW_ARRAY(keep, uint32_t, n);
  *engines = (plan_engines){.of_stage = WEFT_NEW_ARRAY(scratch, uint32_t, n + 1)};
  if (!stages || !engines->of_stage || !meet_all(program, scratch, engines) || !sort_engines(n, scratch, engines))
    return false;
  for (uint64_t e = 0; e < engines->count; e++) {
    plan_engine *engine = &engines->items[e];
    engine->stages = stages;
    stages += engine->stage_count;
    engine->stage_count = 0;
  }
  for (uint64_t i = 0; i < n; i++) {
    plan_engine *engine = &engines->items[engines->of_stage[i]];
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
