/* 14. Schedule, semaphores: rendezvous count by site, ready counters are reset, valid flags are cleared. */
#include "validate_private.h"

/* What the schedule does to the semaphores. */
typedef struct traffic {
  check *c;
  const weft_engine_program *program;
  uint64_t *incs, *waits, *wait_ops, *resets, *sets; /* by semaphore */
  uint8_t *odd_wait;      /* by semaphore: a rendezvous wait for another count, or at a site it is not held at */
  weft_tally held;        /* (semaphore, site): how often a rendezvous lists the site */
  weft_tally posts;       /* (semaphore, site): a rendezvous' posts */
  weft_tally valid_sets;  /* (semaphore, site of the sender) */
  weft_tally valid_waits; /* (semaphore, site of the waiting program) */
  weft_tally cleared;     /* (semaphore, site of the program): sets to Invalid */
  bool overflow, missing;
} traffic;

static bool check_exists(traffic *t, uint32_t id) {
  if (id < t->c->program->semaphore_count) return true;
  REPORT(t->c, SEMAPHORE_MISSING, semaphore(id), site(t->program->site), engine(t->program->engine));
  t->missing = true;
  return false;
}

static void add(traffic *t, uint64_t *sum, uint64_t amount) { t->overflow |= weft_add_overflow(*sum, amount, sum); }

static void add_product(traffic *t, uint64_t *sum, uint64_t a, uint64_t b) {
  uint64_t product = 0;
  t->overflow |= weft_mul_overflow(a, b, &product);
  add(t, sum, product);
}

static bool count_inc(traffic *t, const weft_op *op, uint64_t times) {
  uint32_t id = op->sem_inc.sem;
  if (!check_exists(t, id)) return false;
  uint64_t before = t->incs[id];
  add_product(t, &t->incs[id], times, op->sem_inc.by);
  if (t->c->program->semaphores[id].role == WEFT_SEM_BARRIER)
    weft_tally_add(&t->posts, id, site_key(op->sem_inc.at), t->incs[id] - before);
  return true;
}

static bool count_wait(traffic *t, const weft_op *op, uint64_t times) {
  uint32_t id = op->sem_wait.sem;
  if (!check_exists(t, id)) return false;
  const weft_semaphore *sem = &t->c->program->semaphores[id];
  uint64_t here = site_key(t->program->site);
  if (sem->role == WEFT_SEM_VALID_FLAG) {
    weft_tally_add(&t->valid_waits, id, here, times);
    return true;
  }
  add_product(t, &t->waits[id], times, op->sem_wait.count);
  add(t, &t->wait_ops[id], times);
  if (sem->role == WEFT_SEM_BARRIER) {
    uint64_t awaited = sem->phase == WEFT_BARRIER_GATHER ? sem->count : 1;
    bool usual = op->sem_wait.at_least && op->sem_wait.count == awaited && weft_tally_has(&t->held, id, here);
    if (!usual) t->odd_wait[id] = 1;
  }
  return true;
}

static void count_set(traffic *t, const weft_op *op, uint64_t times) {
  uint32_t id = op->sem_set.sem;
  if (op->sem_set.value == WEFT_SEM_INVALID) weft_tally_add(&t->cleared, id, site_key(t->program->site), times);
  bool reset = op->sem_set.value == WEFT_SEM_COUNT && op->sem_set.count == 0;
  if (reset && id < t->c->program->semaphore_count) add(t, &t->resets[id], times);
}

static bool count_op(void *context, const weft_op *op, const weft_op_visit *visit) {
  traffic *t = context;
  bool counted = true;
  bool go_on = true;
  switch (op->kind) {
  case WEFT_OP_SEM_INC: go_on = count_inc(t, op, visit->times); break;
  case WEFT_OP_SEM_WAIT: go_on = count_wait(t, op, visit->times); break;
  case WEFT_OP_SEM_SET: count_set(t, op, visit->times); break;
  case WEFT_OP_MCAST_SET_VALID: {
    uint32_t id = op->mcast_set_valid.sem;
    weft_tally_add(&t->valid_sets, id, site_key(t->program->site), visit->times);
    if (id < t->c->program->semaphore_count) add(t, &t->sets[id], visit->times);
    break;
  }
  default: counted = false; break;
  }
  t->overflow |= counted && visit->overflow;
  return go_on;
}

/* ---- rendezvous ---- */

static void list_rendezvous_sites(traffic *t) {
  const weft_program *p = t->c->program;
  for (uint64_t i = 0; i < p->semaphore_count; i++) {
    if (p->semaphores[i].role != WEFT_SEM_BARRIER) continue;
    for (uint64_t k = 0; k < p->semaphores[i].site_count; k++)
      weft_tally_add(&t->held, i, site_key(p->semaphores[i].sites[k]), 1);
  }
}

/* Whether the sites are distinct and each is posted to `each` times. */
static bool posts_are_right(const traffic *t, const weft_semaphore *sem, uint64_t each) {
  uint64_t total;
  if (weft_mul_overflow(each, sem->site_count, &total) || t->incs[sem->id] != total) return false;
  for (uint64_t i = 0; i < sem->site_count; i++) {
    uint64_t where = site_key(sem->sites[i]);
    if (weft_tally_get(&t->held, sem->id, where) != 1 || weft_tally_get(&t->posts, sem->id, where) != each)
      return false;
  }
  return true;
}

static bool check_rendezvous(traffic *t, const weft_semaphore *sem) {
  bool gathers = sem->phase == WEFT_BARRIER_GATHER;
  bool shape = sem->site_count && (!gathers || sem->site_count == 1);
  bool waits = t->wait_ops[sem->id] == (gathers ? 1 : sem->count) && !t->odd_wait[sem->id];
  if (shape && waits && posts_are_right(t, sem, gathers ? sem->count : 1)) return true;
  return REPORT(t->c, SECTION_BARRIER_UNBALANCED, semaphore(sem->id), number(sem->count), number(sem->site_count),
                number(t->incs[sem->id]), number(t->wait_ops[sem->id]));
}

/* ---- ready counters and valid flags ---- */

static bool check_ready_counter(traffic *t, const weft_semaphore *sem) {
  uint64_t incs = t->incs[sem->id];
  uint64_t waits = t->waits[sem->id];
  if (incs != waits) return REPORT(t->c, SEMAPHORE_IMBALANCE, semaphore(sem->id), number(incs), number(waits));
  uint64_t ops = t->wait_ops[sem->id];
  uint64_t resets = t->resets[sem->id];
  return ops == resets || REPORT(t->c, SEMAPHORE_NOT_RESET, semaphore(sem->id), number(ops), number(resets));
}

/* The first groups that hold a site, by operand: one more than the group. */
typedef struct holders {
  weft_tally here;     /* (operand, site): on the site's chip */
  weft_tally anywhere; /* (operand, x and y): on any chip, as the seed looks for them */
} holders;

static void index_group(weft_tally *first, uint32_t operand, weft_site where, uint64_t group) {
  if (!weft_tally_has(first, operand, site_key(where))) weft_tally_add(first, operand, site_key(where), group + 1);
}

static void index_groups(const check *c, holders *first) {
  const weft_placement *pl = c->program->placement;
  for (uint64_t i = 0; pl && i < pl->group_count; i++) {
    const weft_group *g = &pl->groups[i];
    for (uint32_t y = g->rect.y0; y <= g->rect.y1; y++)
      for (uint32_t x = g->rect.x0; x <= g->rect.x1; x++) {
        index_group(&first->here, g->operand, (weft_site){(uint16_t)x, (uint16_t)y, g->sender.chip}, i);
        index_group(&first->anywhere, g->operand, (weft_site){(uint16_t)x, (uint16_t)y, 0}, i);
      }
  }
}

/* How often the site's flag is set: by its sender, or by all when it has none. */
static uint64_t sets_for(const traffic *t, const holders *first, const weft_semaphore *sem, weft_site where) {
  uint64_t holder = sem->has_operand ? weft_tally_get(&first->here, sem->operand, site_key(where)) : 0;
  where.chip = 0;
  if (!holder && sem->has_operand) holder = weft_tally_get(&first->anywhere, sem->operand, site_key(where));
  if (!holder) return t->sets[sem->id];
  const weft_group *g = &t->c->program->placement->groups[holder - 1];
  return weft_tally_get(&t->valid_sets, sem->id, site_key(g->sender));
}

static bool check_valid_flag(traffic *t, const holders *first_group, const weft_semaphore *sem) {
  for (uint64_t i = 0; i < sem->site_count; i++) {
    uint64_t where = site_key(sem->sites[i]);
    uint64_t waits = weft_tally_get(&t->valid_waits, sem->id, where);
    if (!waits) continue;
    uint64_t sets = sets_for(t, first_group, sem, sem->sites[i]);
    if (waits != sets) return REPORT(t->c, SEMAPHORE_IMBALANCE, semaphore(sem->id), number(sets), number(waits));
    uint64_t cleared = weft_tally_get(&t->cleared, sem->id, where);
    if (cleared != waits) return REPORT(t->c, SEMAPHORE_NOT_RESET, semaphore(sem->id), number(waits), number(cleared));
  }
  return true;
}

/* ---- all ---- */

static void check_semaphores(traffic *t) {
  const weft_program *p = t->c->program;
  holders first_group = {0};
  if (!t->c->groups_broken) index_groups(t->c, &first_group);
  for (uint64_t i = 0; i < p->semaphore_count && !t->c->stop; i++) {
    const weft_semaphore *sem = &p->semaphores[i];
    if (sem->role == WEFT_SEM_BARRIER)
      check_rendezvous(t, sem);
    else if (sem->role == WEFT_SEM_READY_COUNTER)
      check_ready_counter(t, sem);
    else if (!t->c->groups_broken)
      check_valid_flag(t, &first_group, sem);
  }
  if (first_group.here.failed || first_group.anywhere.failed) weft_check_out_of_memory(t->c);
  weft_tally_free(&first_group.here);
  weft_tally_free(&first_group.anywhere);
}

/* Adds up the schedule; whether the sums can be looked at. */
static bool count_traffic(traffic *t) {
  const weft_schedule *sch = t->c->program->schedule;
  list_rendezvous_sites(t);
  for (uint64_t i = 0; i < sch->program_count && !t->missing; i++) {
    t->program = &sch->programs[i];
    weft_check_walk(t->program->ops, t->program->op_count, count_op, t);
  }
  weft_tally *tallies[] = {&t->held, &t->posts, &t->valid_sets, &t->valid_waits, &t->cleared};
  for (size_t i = 0; i < sizeof tallies / sizeof *tallies; i++) {
    if (tallies[i]->failed) weft_check_out_of_memory(t->c);
    t->overflow |= tallies[i]->overflow;
  }
  if (t->overflow) REPORT(t->c, SIZE_OVERFLOW, text("the loop counts times increments or waits"), text("the schedule"));
  return !t->overflow && !t->missing && !t->c->stop;
}

void weft_validate_semaphores(check *c) {
  const weft_program *p = c->program;
  if (!p->schedule) return;
  traffic t = {.c = c};
  uint64_t **sums[] = {&t.incs, &t.waits, &t.wait_ops, &t.resets, &t.sets};
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
    *sums[i] = weft_check_array(c, p->semaphore_count, sizeof **sums[i]);
    if (!*sums[i]) return;
  }
  t.odd_wait = weft_check_array(c, p->semaphore_count, 1);
  if (t.odd_wait && count_traffic(&t)) check_semaphores(&t);
  weft_tally_free(&t.held);
  weft_tally_free(&t.posts);
  weft_tally_free(&t.valid_sets);
  weft_tally_free(&t.valid_waits);
  weft_tally_free(&t.cleared);
}
