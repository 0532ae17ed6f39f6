/* Semaphores of the evaluator: one value a site that holds an instance; groups and who belongs to them. */
#include "evaluate_private.h"

#include <string.h>

/** Sender and receivers of every group, by the first buffer each fills. */
static bool find_members(machine *m) {
  const weft_program *program = m->program;
  uint64_t groups = program->placement->group_count;
  m->groups = WEFT_NEW_ARRAY(m->arena, group_state, groups + 1);
  m->members = WEFT_NEW_ARRAY(m->arena, uint32_t *, groups + 1);
  m->member_counts = WEFT_NEW_ARRAY(m->arena, uint64_t, groups + 1);
  uint64_t *capacity = WEFT_NEW_ARRAY(m->arena, uint64_t, groups + 1);
  if (!m->groups || !m->members || !m->member_counts || !capacity) return false;
  for (uint64_t s = 0; s < program->stage_count; s++) {
    const weft_stage *stage = &program->stages[s];
    uint32_t g = stage->kind == WEFT_STAGE_LOAD   ? stage->load.multicast
                 : stage->kind == WEFT_STAGE_RECV ? stage->recv.group
                                                  : WEFT_NONE;
    if (g >= groups || stage->out_count == 0) continue;
    if (!weft_arena_grow(m->arena, &m->members[g], m->member_counts[g], &capacity[g], sizeof **m->members))
      return false;
    m->members[g][m->member_counts[g]++] = stage->outs[0];
  }
  return true;
}

static void count_barriers(machine *m, const weft_op *ops, uint64_t count, uint64_t *seen, uint64_t mark) {
  for (uint64_t i = 0; i < count; i++) {
    if (ops[i].kind == WEFT_OP_LOOP) count_barriers(m, ops[i].loop.body, ops[i].loop.body_count, seen, mark);
    if (ops[i].kind != WEFT_OP_BARRIER || ops[i].barrier_group >= m->program->placement->group_count) continue;
    if (seen[ops[i].barrier_group] == mark) continue;
    seen[ops[i].barrier_group] = mark;
    m->groups[ops[i].barrier_group].participants++;
  }
}

bool semaphores_make(machine *m) {
  const weft_program *program = m->program;
  m->semaphores = WEFT_NEW_ARRAY(m->arena, uint64_t *, program->semaphore_count + 1);
  if (!m->semaphores || !find_members(m)) return false;
  for (uint64_t i = 0; i < program->semaphore_count; i++) {
    m->semaphores[i] = WEFT_NEW_ARRAY(m->arena, uint64_t, program->semaphores[i].site_count);
    if (!m->semaphores[i]) return false;
  }
  uint64_t *seen = WEFT_NEW_ARRAY(m->arena, uint64_t, program->placement->group_count + 1);
  if (!seen) return false;
  for (uint64_t i = 0; i < m->engine_count; i++)
    count_barriers(m, m->engines[i].program->ops, m->engines[i].program->op_count, seen, i + 1);
  return true;
}

void semaphores_reset(machine *m) {
  for (uint64_t i = 0; i < m->program->semaphore_count; i++)
    for (uint64_t s = 0; s < m->program->semaphores[i].site_count; s++)
      m->semaphores[i][s] = m->program->semaphores[i].init;
  for (uint64_t g = 0; g < m->program->placement->group_count; g++) m->groups[g].arrived = 0;
  for (uint64_t i = 0; i < m->engine_count; i++) {
    m->engines[i].at_barrier = false;
    if (m->engines[i].rounds)
      memset(m->engines[i].rounds, 0, m->program->placement->group_count * sizeof *m->engines[i].rounds);
  }
}

static uint64_t *instance(machine *m, uint32_t semaphore, weft_site site) {
  const weft_semaphore *s = &m->program->semaphores[semaphore];
  for (uint64_t i = 0; i < s->site_count; i++)
    if (weft_site_equal(s->sites[i], site)) return &m->semaphores[semaphore][i];
  return NULL;
}

step_result step_semaphore(machine *m, engine *e, const weft_op *op) {
  uint32_t id = op->kind == WEFT_OP_SEM_SET   ? op->sem_set.sem
                : op->kind == WEFT_OP_SEM_INC ? op->sem_inc.sem
                                              : op->sem_wait.sem;
  weft_site site = op->kind == WEFT_OP_SEM_INC ? op->sem_inc.at : e->program->site;
  if (id >= m->program->semaphore_count) return machine_fault(m, e, op, "there is no semaphore %u", id);
  uint64_t *value = instance(m, id, site);
  if (!value)
    return machine_fault(m, e, op, "semaphore %u has no instance at site (%u, %u) chip %u", id, site.x, site.y,
                         site.chip);
  if (op->kind == WEFT_OP_SEM_INC) {
    *value += op->sem_inc.by;
    return STEP_DONE;
  }
  if (op->kind == WEFT_OP_SEM_SET) {
    *value = op->sem_set.value == WEFT_SEM_COUNT ? op->sem_set.count : op->sem_set.value == WEFT_SEM_VALID;
    return STEP_DONE;
  }
  bool holds = op->sem_wait.at_least ? *value >= op->sem_wait.count : *value == op->sem_wait.count;
  return holds ? STEP_DONE : STEP_BLOCKED;
}

step_result step_group_barrier(machine *m, engine *e, const weft_op *op) {
  uint32_t g = op->barrier_group;
  if (g >= m->program->placement->group_count) return machine_fault(m, e, op, "there is no group %u", g);
  if (!e->rounds) e->rounds = WEFT_NEW_ARRAY(m->arena, uint64_t, m->program->placement->group_count);
  if (!e->rounds) return machine_no_memory(m);
  if (!e->at_barrier) {
    e->at_barrier = true;
    e->rounds[g]++;
    m->groups[g].arrived++;
  }
  if (m->groups[g].arrived < e->rounds[g] * m->groups[g].participants) return STEP_BLOCKED;
  e->at_barrier = false;
  return STEP_DONE;
}
