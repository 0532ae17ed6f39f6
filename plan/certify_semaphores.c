/* Semaphores of the token run (C12): every set is ordered against every other access; a wait is met by increments since
 * the last set and by nothing older; an Equals wait by all of them, and none comes before the reset. Rendezvous are
 * counted only: their places are checked by the validator. */
#include "certify_private.h"

#include <string.h>

static uint32_t number_of(const token_machine *m, const token_engine *e) { return (uint32_t)(e - m->engines); }

static bool is_rendezvous(const token_machine *m, uint32_t semaphore) {
  return m->program->semaphores[semaphore].role == WEFT_SEM_BARRIER;
}

/* ---- making ---- */

static bool find_members(token_machine *m) {
  const weft_program *program = m->program;
  uint64_t groups = program->placement->group_count;
  m->groups = WEFT_NEW_ARRAY(m->arena, token_group, groups + 1);
  if (!m->groups) return false;
  for (uint64_t g = 0; g < groups; g++) m->groups[g].waiters = WEFT_NONE;
  for (uint64_t s = 0; s < program->stage_count; s++) {
    const weft_stage *stage = &program->stages[s];
    uint32_t g = stage->kind == WEFT_STAGE_LOAD   ? stage->load.multicast
                 : stage->kind == WEFT_STAGE_RECV ? stage->recv.group
                                                  : WEFT_NONE;
    if (g >= groups || stage->out_count == 0) continue;
    token_group *group = &m->groups[g];
    if (!weft_arena_grow(m->arena, &group->members, group->member_count, &group->member_capacity, sizeof(uint32_t)))
      return false;
    group->members[group->member_count++] = stage->outs[0];
  }
  return true;
}

static void count_barriers(token_machine *m, const weft_op *ops, uint64_t count, uint32_t *seen, uint32_t mark) {
  for (uint64_t i = 0; i < count; i++) {
    if (ops[i].kind == WEFT_OP_LOOP) count_barriers(m, ops[i].loop.body, ops[i].loop.body_count, seen, mark);
    if (ops[i].kind != WEFT_OP_BARRIER || seen[ops[i].barrier_group] == mark) continue;
    seen[ops[i].barrier_group] = mark;
    m->groups[ops[i].barrier_group].participants++;
  }
}

bool token_semaphores_make(token_machine *m) {
  const weft_program *program = m->program;
  m->semaphores = WEFT_NEW_ARRAY(m->arena, token_semaphore *, program->semaphore_count + 1);
  uint32_t *seen = WEFT_NEW_ARRAY(m->arena, uint32_t, program->placement->group_count + 1);
  if (!m->semaphores || !seen || !find_members(m)) return false;
  for (uint64_t s = 0; s < program->semaphore_count; s++) {
    const weft_semaphore *semaphore = &program->semaphores[s];
    m->semaphores[s] = WEFT_NEW_ARRAY(m->arena, token_semaphore, semaphore->site_count);
    if (!m->semaphores[s]) return false;
    for (uint64_t i = 0; i < semaphore->site_count; i++) {
      token_semaphore *made = &m->semaphores[s][i];
      made->value = made->low = semaphore->init;
      made->set_engine = made->before_engine = made->waiters = WEFT_NONE;
    }
  }
  for (uint32_t e = 0; e < m->engine_count; e++)
    count_barriers(m, m->engines[e].program->ops, m->engines[e].program->op_count, seen, e + 1);
  return true;
}

/* ---- accesses ---- */

static token_semaphore *instance(token_machine *m, uint32_t semaphore, weft_site site) {
  const weft_semaphore *s = &m->program->semaphores[semaphore];
  for (uint64_t i = 0; i < s->site_count; i++)
    if (weft_site_equal(s->sites[i], site)) return &m->semaphores[semaphore][i];
  return NULL;
}

static bool make_clocks(token_machine *m, const token_engine *e, token_semaphore *s) {
  if (s->accesses) return true;
  s->set_clock = clock_new(m, e->component);
  s->inc_clock = clock_new(m, e->component);
  s->accesses = clock_new(m, e->component);
  return s->set_clock && s->inc_clock && s->accesses;
}

static void wake_waiters(token_machine *m, uint32_t *waiters) {
  while (*waiters != WEFT_NONE) {
    uint32_t e = *waiters;
    *waiters = m->engines[e].next_waiter;
    m->engines[e].listed = false;
    token_wake(m, e);
  }
}

static void wait_here(token_machine *m, token_engine *e, uint32_t *waiters) {
  if (e->listed) return;
  e->listed = true;
  e->next_waiter = *waiters;
  *waiters = number_of(m, e);
}

static bool knows(const token_machine *m, const token_engine *e, uint32_t engine, uint32_t time) {
  return engine == WEFT_NONE || engine == number_of(m, e) ||
         (m->engines[engine].component == e->component && e->clock[m->engines[engine].index] >= time);
}

/** The last set must be known to whoever touches the instance next. */
static bool after_set(const token_semaphore *s, const token_machine *m, const token_engine *e) {
  return knows(m, e, s->set_engine, s->set_time);
}

/** A wait that holds now could not have held before the last set: either that set is known, or the one before it is,
 * and no value between the two would do. */
static bool waits_for_round(const token_semaphore *s, const token_machine *m, const token_engine *e,
                            const weft_op *op) {
  if (after_set(s, m, e)) return true;
  uint64_t n = op->sem_wait.count;
  bool did_not_hold = s->before_high < n || (!op->sem_wait.at_least && s->before_low > n);
  return did_not_hold && knows(m, e, s->before_engine, s->before_time);
}

/** Every access since the last set must be known to a new one. */
static bool after_accesses(const token_semaphore *s, const token_machine *m, const token_engine *e) {
  for (uint32_t i = 0; i < m->component_size[e->component]; i++)
    if (i != e->index && s->accesses[i] > e->clock[i]) return false;
  return true;
}

static token_step set_value(token_machine *m, token_engine *e, const weft_op *op, uint32_t id, token_semaphore *s,
                            uint64_t new_value) {
  if (!make_clocks(m, e, s)) return token_no_memory(m);
  if (!after_set(s, m, e) || !after_accesses(s, m, e))
    return token_refuse(m, e, op, "sets semaphore %u while another engine may still be at it", id);
  s->before_engine = s->set_engine;
  s->before_time = s->set_time;
  s->before_low = s->low;
  s->before_high = s->value;
  s->value = s->low = new_value;
  s->set_engine = number_of(m, e);
  s->set_time = e->time;
  s->matched = s->reached = false;
  clock_copy(m, e, s->set_clock);
  size_t bytes = m->component_size[e->component] * sizeof(uint32_t);
  memset(s->accesses, 0, bytes);
  memset(s->inc_clock, 0, bytes);
  wake_waiters(m, &s->waiters);
  return TOKEN_DONE;
}

static token_step increment(token_machine *m, token_engine *e, const weft_op *op, token_semaphore *s) {
  uint32_t id = op->sem_inc.sem;
  if (!make_clocks(m, e, s)) return token_no_memory(m);
  if (s->matched || !after_set(s, m, e) || (s->reached && !after_accesses(s, m, e)))
    return token_refuse(m, e, op, "increments semaphore %u, which may not have been reset since it was last waited for",
                        id);
  s->value += op->sem_inc.by;
  s->accesses[e->index] = e->time;
  clock_merge(m, e, s->inc_clock);
  wake_waiters(m, &s->waiters);
  return TOKEN_DONE;
}

static token_step wait_value(token_machine *m, token_engine *e, const weft_op *op, token_semaphore *s) {
  uint32_t id = op->sem_wait.sem;
  if (!make_clocks(m, e, s)) return token_no_memory(m);
  bool holds = op->sem_wait.at_least ? s->value >= op->sem_wait.count : s->value == op->sem_wait.count;
  if (!holds) {
    if (!op->sem_wait.at_least && s->value > op->sem_wait.count && s->waiters == WEFT_NONE)
      return token_refuse(m, e, op, "waits for semaphore %u to be %llu, but it may be %llu first", id,
                          (unsigned long long)op->sem_wait.count, (unsigned long long)s->value);
    wait_here(m, e, &s->waiters);
    return TOKEN_BLOCKED;
  }
  if (!waits_for_round(s, m, e, op))
    return token_refuse(m, e, op, "waits for semaphore %u, which may not have been reset yet", id);
  // set and increments are known by the wait having held; beyond n, which of them came first is not
  if (s->set_engine != WEFT_NONE && m->engines[s->set_engine].component == e->component) clock_join(m, e, s->set_clock);
  if (s->value == op->sem_wait.count) clock_join(m, e, s->inc_clock);
  s->accesses[e->index] = e->time;
  s->matched |= !op->sem_wait.at_least;
  s->reached |= s->value == op->sem_wait.count;
  return TOKEN_DONE;
}

/* ---- rendezvous ---- */

static token_step rendezvous_op(token_machine *m, token_engine *e, const weft_op *op, token_semaphore *s) {
  if (op->kind == WEFT_OP_SEM_SET) return token_refuse(m, e, op, "sets a rendezvous");
  if (op->kind == WEFT_OP_SEM_INC) {
    s->value += op->sem_inc.by;
    wake_waiters(m, &s->waiters);
    return TOKEN_DONE;
  }
  if (s->value < op->sem_wait.count) {
    wait_here(m, e, &s->waiters);
    return TOKEN_BLOCKED;
  }
  if (m->program->semaphores[op->sem_wait.sem].phase == WEFT_BARRIER_RELEASE) e->phase++;
  return TOKEN_DONE;
}

token_step token_semaphore_op(token_machine *m, token_engine *e, const weft_op *op) {
  uint32_t id = op->kind == WEFT_OP_SEM_SET   ? op->sem_set.sem
                : op->kind == WEFT_OP_SEM_INC ? op->sem_inc.sem
                                              : op->sem_wait.sem;
  weft_site site = op->kind == WEFT_OP_SEM_INC ? op->sem_inc.at : e->program->site;
  token_semaphore *s = instance(m, id, site);
  if (!s)
    return token_refuse(m, e, op, "semaphore %u has no instance at site (%u, %u) chip %u", id, site.x, site.y,
                        site.chip);
  if (is_rendezvous(m, id)) return rendezvous_op(m, e, op, s);
  if (op->kind == WEFT_OP_SEM_INC) return increment(m, e, op, s);
  if (op->kind == WEFT_OP_SEM_WAIT) return wait_value(m, e, op, s);
  uint64_t new_value = op->sem_set.value == WEFT_SEM_COUNT ? op->sem_set.count : op->sem_set.value == WEFT_SEM_VALID;
  return set_value(m, e, op, id, s, new_value);
}

/* ---- multicasts and group barriers ---- */

static token_step send_to(token_machine *m, token_engine *e, const weft_op *op, const token_page *from,
                          uint32_t buffer) {
  token_ring *to = &m->rings[buffer];
  const char *name = m->program->buffers[buffer].name;
  if (to->producer == WEFT_NONE || to->filled >= to->reserved)
    return token_refuse(m, e, op, "sends to buffer `%s`, whose receiver has reserved no page", name);
  if (!happened_before(m, e, to->producer, to->reserve_time, e->phase))
    return token_refuse(m, e, op, "sends to buffer `%s`, whose receiver may not have reserved a page yet", name);
  token_page *page = &to->pages[(to->pushed + to->filled) % to->depth];
  *page = *from;
  page->fill_engine = number_of(m, e);
  page->fill_time = e->time;
  to->filled++;
  return TOKEN_DONE;
}

static token_step send(token_machine *m, token_engine *e, const weft_op *op) {
  uint32_t buffer = op->mcast_send.buf;
  token_ring *r = &m->rings[buffer];
  const token_group *group = &m->groups[op->mcast_send.group];
  if (op->mcast_send.pages != 1 || r->filled < 1 || r->producer != number_of(m, e))
    return token_refuse(m, e, op, "sends anything but the one page of `%s` that it has filled",
                        m->program->buffers[buffer].name);
  const token_page *from = &r->pages[r->pushed % r->depth];
  if (r->filled != 1 || from->reading)
    return token_refuse(m, e, op, "sends a page of `%s` whose read has not passed a barrier",
                        m->program->buffers[buffer].name);
  for (uint64_t i = 0; i < group->member_count; i++) {
    if (group->members[i] == buffer) continue;
    token_step step = send_to(m, e, op, from, group->members[i]);
    if (step != TOKEN_DONE) return step;
  }
  return TOKEN_DONE;
}

static token_step set_valid(token_machine *m, token_engine *e, const weft_op *op) {
  uint32_t id = op->mcast_set_valid.sem;
  const weft_group *group = &m->program->placement->groups[op->mcast_set_valid.group];
  for (uint32_t y = group->rect.y0; y <= group->rect.y1; y++)
    for (uint32_t x = group->rect.x0; x <= group->rect.x1; x++) {
      weft_site site = {(uint16_t)x, (uint16_t)y, group->sender.chip};
      if (weft_site_equal(site, group->sender)) continue;
      token_semaphore *s = instance(m, id, site);
      if (!s) return token_refuse(m, e, op, "semaphore %u has no instance at site (%u, %u)", id, x, y);
      token_step step = set_value(m, e, op, id, s, 1);
      if (step != TOKEN_DONE) return step;
    }
  return TOKEN_DONE;
}

token_step token_multicast(token_machine *m, token_engine *e, const weft_op *op) {
  return op->kind == WEFT_OP_MCAST_SEND ? send(m, e, op) : set_valid(m, e, op);
}

token_step token_group_barrier(token_machine *m, token_engine *e, const weft_op *op) {
  uint32_t g = op->barrier_group;
  token_group *group = &m->groups[g];
  if (!e->rounds) e->rounds = WEFT_NEW_ARRAY(m->arena, uint64_t, m->program->placement->group_count);
  if (!group->gathering) {
    group->gathering = clock_new(m, e->component);
    group->done = clock_new(m, e->component);
  }
  if (!e->rounds || !group->gathering || !group->done) return token_no_memory(m);
  if (!e->at_barrier) {
    e->at_barrier = true;
    e->rounds[g]++;
    clock_merge(m, e, group->gathering);
    if (++group->arrived % group->participants == 0) {
      memcpy(group->done, group->gathering, m->component_size[e->component] * sizeof(uint32_t));
      wake_waiters(m, &group->waiters);
    }
  }
  if (group->arrived < e->rounds[g] * group->participants) {
    wait_here(m, e, &group->waiters);
    return TOKEN_BLOCKED;
  }
  clock_join(m, e, group->done);
  e->at_barrier = false;
  return TOKEN_DONE;
}
