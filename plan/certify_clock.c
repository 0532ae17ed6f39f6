/* Which engine knows what: vector clocks, kept small.
 *
 * Engines that never hand each other a page, a flag or a barrier between two rendezvous are in different components,
 * and nothing orders what they do in one phase. Inside a component a clock has one entry an engine. Phases order
 * everything else (C2). */
#include "certify_private.h"

#include <string.h>

static uint32_t root_of(uint32_t *parent, uint32_t e) {
  while (parent[e] != e) e = parent[e] = parent[parent[e]];
  return e;
}

typedef struct joiner {
  const token_machine *m;
  uint32_t *parent;
  uint32_t *first_at_buffer, *first_at_group;
  uint32_t **first_at_semaphore; /**< by semaphore and site */
} joiner;

static void join_at(joiner *j, uint32_t *first, uint32_t engine) {
  if (*first == WEFT_NONE) {
    *first = engine;
    return;
  }
  uint32_t a = root_of(j->parent, *first), b = root_of(j->parent, engine);
  if (a < b)
    j->parent[b] = a;
  else
    j->parent[a] = b;
}

static void join_instance(joiner *j, uint32_t semaphore, weft_site site, uint32_t engine) {
  const weft_program *program = j->m->program;
  if (semaphore >= program->semaphore_count || !j->first_at_semaphore[semaphore]) return;
  const weft_semaphore *s = &program->semaphores[semaphore];
  for (uint64_t i = 0; i < s->site_count; i++)
    if (weft_site_equal(s->sites[i], site)) join_at(j, &j->first_at_semaphore[semaphore][i], engine);
}

static void join_group_sites(joiner *j, uint32_t semaphore, uint32_t group, uint32_t engine) {
  const weft_program *program = j->m->program;
  if (group >= program->placement->group_count) return;
  const weft_group *g = &program->placement->groups[group];
  for (uint32_t y = g->rect.y0; y <= g->rect.y1; y++)
    for (uint32_t x = g->rect.x0; x <= g->rect.x1; x++)
      join_instance(j, semaphore, (weft_site){(uint16_t)x, (uint16_t)y, g->sender.chip}, engine);
}

static void join_op(joiner *j, const weft_op *op, uint32_t engine) {
  const weft_program *program = j->m->program;
  weft_site site = j->m->engines[engine].program->site;
  switch (op->kind) {
  case WEFT_OP_RESERVE:
  case WEFT_OP_PUSH:
  case WEFT_OP_WAIT:
  case WEFT_OP_POP:
    if (op->page.buf < program->buffer_count) join_at(j, &j->first_at_buffer[op->page.buf], engine);
    break;
  case WEFT_OP_SEM_SET: join_instance(j, op->sem_set.sem, site, engine); break;
  case WEFT_OP_SEM_WAIT: join_instance(j, op->sem_wait.sem, site, engine); break;
  case WEFT_OP_SEM_INC: join_instance(j, op->sem_inc.sem, op->sem_inc.at, engine); break;
  case WEFT_OP_MCAST_SET_VALID: join_group_sites(j, op->mcast_set_valid.sem, op->mcast_set_valid.group, engine); break;
  case WEFT_OP_MCAST_SEND:
    for (uint64_t i = 0;
         op->mcast_send.group < program->placement->group_count && i < j->m->groups[op->mcast_send.group].member_count;
         i++)
      join_at(j, &j->first_at_buffer[j->m->groups[op->mcast_send.group].members[i]], engine);
    break;
  case WEFT_OP_BARRIER:
    if (op->barrier_group < program->placement->group_count) join_at(j, &j->first_at_group[op->barrier_group], engine);
    break;
  default: break;
  }
}

static void join_ops(joiner *j, const weft_op *ops, uint64_t count, uint32_t engine) {
  for (uint64_t i = 0; i < count; i++) {
    if (ops[i].kind == WEFT_OP_LOOP)
      join_ops(j, ops[i].loop.body, ops[i].loop.body_count, engine);
    else
      join_op(j, &ops[i], engine);
  }
}

static uint32_t *new_firsts(weft_arena *arena, uint64_t count) {
  uint32_t *first = WEFT_NEW_ARRAY(arena, uint32_t, count + 1);
  if (first) memset(first, 0xff, (count + 1) * sizeof *first);
  return first;
}

static bool make_joiner(joiner *j, weft_arena *scratch) {
  const weft_program *program = j->m->program;
  j->parent = new_firsts(scratch, j->m->engine_count);
  j->first_at_buffer = new_firsts(scratch, program->buffer_count);
  j->first_at_group = new_firsts(scratch, program->placement->group_count);
  j->first_at_semaphore = WEFT_NEW_ARRAY(scratch, uint32_t *, program->semaphore_count + 1);
  if (!j->parent || !j->first_at_buffer || !j->first_at_group || !j->first_at_semaphore) return false;
  for (uint32_t e = 0; e < j->m->engine_count; e++) j->parent[e] = e;
  for (uint64_t s = 0; s < program->semaphore_count; s++) {
    if (program->semaphores[s].role == WEFT_SEM_BARRIER) continue;
    j->first_at_semaphore[s] = new_firsts(scratch, program->semaphores[s].site_count);
    if (!j->first_at_semaphore[s]) return false;
  }
  return true;
}

bool clocks_make(token_machine *m) {
  weft_arena *scratch = weft_arena_new();
  if (!scratch) return false;
  joiner j = {.m = m};
  bool made = make_joiner(&j, scratch);
  for (uint32_t e = 0; made && e < m->engine_count; e++)
    join_ops(&j, m->engines[e].program->ops, m->engines[e].program->op_count, e);
  m->component_size = WEFT_NEW_ARRAY(m->arena, uint32_t, m->engine_count + 1);
  made = made && m->component_size;
  for (uint32_t e = 0; made && e < m->engine_count; e++) {
    m->engines[e].component = root_of(j.parent, e);
    m->engines[e].index = m->component_size[m->engines[e].component]++;
  }
  for (uint32_t e = 0; made && e < m->engine_count; e++) {
    m->engines[e].clock = clock_new(m, m->engines[e].component);
    made = m->engines[e].clock != NULL;
  }
  weft_arena_free(scratch);
  return made;
}

clock_vector clock_new(token_machine *m, uint32_t component) {
  return WEFT_NEW_ARRAY(m->arena, uint32_t, m->component_size[component]);
}

void clock_join(const token_machine *m, token_engine *e, const uint32_t *other) {
  for (uint32_t i = 0; other && i < m->component_size[e->component]; i++)
    if (other[i] > e->clock[i]) e->clock[i] = other[i];
}

void clock_copy(const token_machine *m, const token_engine *e, uint32_t *to) {
  memcpy(to, e->clock, m->component_size[e->component] * sizeof *to);
}

void clock_merge(const token_machine *m, const token_engine *e, uint32_t *into) {
  for (uint32_t i = 0; i < m->component_size[e->component]; i++)
    if (e->clock[i] > into[i]) into[i] = e->clock[i];
}

bool happened_before(const token_machine *m, const token_engine *e, uint32_t by, uint32_t time, uint32_t phase) {
  if (time == NEVER) return false;
  if (phase != e->phase) return phase < e->phase;
  const token_engine *other = &m->engines[by];
  if (other == e) return true;
  return other->component == e->component && e->clock[other->index] >= time;
}
