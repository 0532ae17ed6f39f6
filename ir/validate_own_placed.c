/* 18. What the seed does not look at, in a program on sites: the plans of sections, the mesh, interconnects, origins,
 * the counts and sites of ready counters; and the claim. */
#include "validate_private.h"

/* ---- plans of sections ---- */

static const char *plan_fault(const weft_block_plan *plan, uint64_t k_tiles) {
  const weft_block_shape *block = &plan->block;
  if (!block->osh || !block->osw || !block->ibw) return "a sub-block or a K block has no tiles";
  if (plan->per_site_m % block->osh || plan->per_site_n % block->osw) return "sub-blocks do not divide a site's block";
  if (k_tiles % block->ibw) return "K blocks do not divide its K";
  if (plan->num_blocks != k_tiles / block->ibw || plan->block_k_tiles != block->ibw)
    return "it has another number of K blocks than its K gives";
  return NULL;
}

static bool check_section_plans(check *c) {
  for (uint64_t k = 0; k < c->program->section_count; k++) {
    const weft_section *sec = &c->program->sections[k];
    const char *reason = sec->has_plan ? plan_fault(&sec->plan, sec->k_tiles) : NULL;
    if (reason && !REPORT(c, SECTION_PLAN_MALFORMED, section(k), text(reason))) return false;
  }
  return true;
}

/* ---- sites ---- */

static bool check_mesh(check *c) {
  const weft_placement *pl = c->program->placement;
  for (uint64_t s = 0; s < pl->site_of_count; s++) {
    weft_site at = pl->site_of[s];
    bool inside = at.x < pl->mesh_cols && at.y < pl->mesh_rows;
    if (!inside && !REPORT(c, SITE_OUTSIDE_MESH, site(at), stage(s), pair((weft_pair){pl->mesh_cols, pl->mesh_rows})))
      return false;
  }
  return true;
}

/** The kinds of way a program uses must be among those it says it needs. */
static bool check_way(check *c, weft_interconnect kind, fact by) {
  if (c->program->requires_interconnect >> kind & 1) return true;
  return REPORT(c, INTERCONNECT_NOT_REQUIRED, text(weft_interconnect_name(kind)), by);
}

static bool crosses_chips(const weft_placement *pl, const weft_edge *e) {
  if (e->from >= pl->site_of_count) return false;
  for (uint64_t i = 0; i < e->to_count; i++)
    if (e->to[i] < pl->site_of_count && pl->site_of[e->to[i]].chip != pl->site_of[e->from].chip) return true;
  return false;
}

static bool check_ways(check *c) {
  const weft_program *p = c->program;
  const weft_placement *pl = p->placement;
  for (uint64_t g = 0; g < pl->group_count; g++) {
    bool row = pl->groups[g].direction == WEFT_DIRECTION_ROW;
    if (!check_way(c, row ? WEFT_INTERCONNECT_ROW_MULTICAST : WEFT_INTERCONNECT_COL_MULTICAST, group(g))) return false;
  }
  for (uint64_t e = 0; e < p->edge_count; e++)
    if (crosses_chips(pl, &p->edges[e]) && !check_way(c, WEFT_INTERCONNECT_CHIP_LINK, edge(e))) return false;
  for (uint64_t l = 0; l < p->link_count && p->schedule; l++)
    if (!check_way(c, WEFT_INTERCONNECT_CHIP_LINK, link_point(l))) return false;
  return true;
}

/* ---- origins ---- */

/** What copies of one stage have in common: a Load and the Recvs that a multicast makes of its copies are alike. */
static unsigned sort_of(const weft_stage *st) {
  if (st->kind == WEFT_STAGE_RECV) return WEFT_STAGE_LOAD;
  if (st->kind == WEFT_STAGE_COMPUTE) return 16 + (unsigned)st->compute->kind;
  return (unsigned)st->kind;
}

/** Copies say which stage of the Template they were. Ids of that Template are not known here; that its copies are alike
 * is. */
static bool check_origins(check *c) {
  const weft_program *p = c->program;
  uint32_t most = 0;
  for (uint64_t s = 0; s < p->stage_count; s++)
    if (p->stages[s].origin != WEFT_NONE && p->stages[s].origin < p->stage_count && p->stages[s].origin > most)
      most = p->stages[s].origin;
  uint32_t *first = weft_check_array(c, (uint64_t)most + 1, sizeof *first); /* 1 + the first copy of each */
  if (!first) return false;
  for (uint64_t s = 0; s < p->stage_count; s++) {
    uint32_t origin = p->stages[s].origin;
    if (origin == WEFT_NONE || origin > most) continue;
    if (!first[origin])
      first[origin] = (uint32_t)s + 1;
    else if (sort_of(&p->stages[s]) != sort_of(&p->stages[first[origin] - 1]) &&
             !REPORT(c, ORIGIN_MIXED, stage(s), stage(first[origin] - 1), number(origin)))
      return false;
  }
  return true;
}

/* ---- ready counters ---- */

static bool check_ready(check *c) {
  const weft_program *p = c->program;
  for (uint64_t e = 0; e < p->edge_count; e++) {
    const weft_edge *ed = &p->edges[e];
    if (ed->handshake != WEFT_HANDSHAKE_SEMAPHORE || ed->ready >= p->semaphore_count || ed->valid >= p->semaphore_count)
      continue;
    const weft_semaphore *ready = &p->semaphores[ed->ready];
    const char *reason = ready->role != WEFT_SEM_READY_COUNTER                  ? "its ready is no ready counter"
                         : p->semaphores[ed->valid].role != WEFT_SEM_VALID_FLAG ? "its valid is no valid flag"
                         : ready->count != ed->ready_count ? "its ready_count is not what its ready counter expects"
                                                           : NULL;
    if (reason && !REPORT(c, READY_MISMATCH, edge(e), text(reason))) return false;
  }
  return true;
}

typedef struct counters {
  check *c;
  const weft_engine_program *program;
} counters;

static bool is_listed(const weft_semaphore *sem, weft_site at) {
  for (uint64_t i = 0; i < sem->site_count; i++)
    if (weft_site_equal(sem->sites[i], at)) return true;
  return false;
}

/** A ready counter is where its sender waits for it, at one of the sites that it lists. */
static bool check_counter_site(void *context, const weft_op *op, const weft_op_visit *visit) {
  (void)visit;
  const counters *o = context;
  const weft_program *p = o->c->program;
  if (op->kind != WEFT_OP_SEM_INC && op->kind != WEFT_OP_SEM_WAIT) return true;
  uint32_t id = op->kind == WEFT_OP_SEM_INC ? op->sem_inc.sem : op->sem_wait.sem;
  if (id >= p->semaphore_count || p->semaphores[id].role != WEFT_SEM_READY_COUNTER) return true;
  weft_site at = op->kind == WEFT_OP_SEM_INC ? op->sem_inc.at : o->program->site;
  if (is_listed(&p->semaphores[id], at)) return true;
  return REPORT(o->c, READY_SITE_MISSING, semaphore(id), site(at), site(o->program->site), engine(o->program->engine));
}

void weft_validate_own_placed(check *c) {
  const weft_program *p = c->program;
  if (p->claim_reason && !*p->claim_reason && !REPORT(c, CLAIM_WITHOUT_REASON, text(""))) return;
  if (!check_section_plans(c) || !p->placement) return;
  if (!check_mesh(c) || !check_ways(c) || !check_origins(c) || !check_ready(c)) return;
  for (uint64_t i = 0; p->schedule && i < p->schedule->program_count && !c->stop; i++) {
    counters o = {.c = c, .program = &p->schedule->programs[i]};
    weft_check_walk(o.program->ops, o.program->op_count, check_counter_site, &o);
  }
}
