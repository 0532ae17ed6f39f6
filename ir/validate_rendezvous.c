/* 15. Rendezvous: every engine passes every boundary between sections at the boundary.
 *
 * An op of section s need only follow the release wait of the last boundary before s and precede the arrival at the
 * first boundary from s on, once each program's arrivals and release waits follow one another; so one pass over each
 * program does. Positions are those of a program's outermost ops. */
#include "validate_private.h"

#include <string.h>

#define ABSENT UINT64_MAX

/* Where one program passes a boundary. */
typedef struct passage {
  uint64_t stamp; /* the program's number plus one: others' entries are stale */
  uint64_t arrive, gather, first_post, last_post, release;
} passage;

typedef struct root {
  bool present;
  weft_site site;
  weft_engine engine;
} root;

typedef struct boundaries {
  check *c;
  const weft_engine_program *program;
  uint64_t *closing;  /* by semaphore: the section it closes, or ABSENT */
  uint64_t *sections; /* the closing sections, ascending */
  uint64_t count;
  uint64_t *next, *previous; /* by section: the closing section from it on, and the last before it; ABSENT: none */
  root *roots;               /* by section */
  passage *passages;         /* by section */
  uint64_t stamp;
} boundaries;

/* ---- which semaphores close which section ---- */

static bool is_half(const weft_program *p, uint32_t id, weft_barrier_phase phase, const weft_span *owned) {
  if (id >= p->semaphore_count || id < owned->begin || id >= owned->end) return false;
  return p->semaphores[id].role == WEFT_SEM_BARRIER && p->semaphores[id].phase == phase;
}

static bool find_closings(boundaries *b) {
  const weft_program *p = b->c->program;
  for (uint64_t k = 0; k < p->section_count; k++) {
    const weft_section *sp = &p->sections[k];
    if (!sp->has_barrier_after) continue;
    if (!is_half(p, sp->gather, WEFT_BARRIER_GATHER, &sp->semaphores) ||
        !is_half(p, sp->release, WEFT_BARRIER_RELEASE, &sp->semaphores)) {
      REPORT(b->c, SECTION_SPAN_MALFORMED, section(k), text("its rendezvous is not a gather and a release of its own"));
      return false;
    }
    b->closing[sp->gather] = b->closing[sp->release] = k;
    b->sections[b->count++] = k;
  }
  for (uint64_t i = 0; i < p->semaphore_count; i++) {
    if (p->semaphores[i].role != WEFT_SEM_BARRIER || b->closing[i] != ABSENT) continue;
    uint64_t k = p->section_count ? weft_ir_section_holding(p, weft_ir_semaphores_of, i) : 0;
    REPORT(b->c, SECTION_SPAN_MALFORMED, section(k == ABSENT ? 0 : k), text("a barrier semaphore closes no section"));
    return false;
  }
  return true;
}

static void find_neighbours(boundaries *b) {
  uint64_t sections = b->c->program->section_count;
  uint64_t last = ABSENT;
  for (uint64_t k = 0; k < sections; k++) {
    b->previous[k] = last;
    if (b->c->program->sections[k].has_barrier_after) last = k;
  }
  uint64_t following = ABSENT;
  for (uint64_t k = sections; k-- > 0;) {
    if (b->c->program->sections[k].has_barrier_after) following = k;
    b->next[k] = following;
  }
}

/* The section whose rendezvous the op belongs to, or ABSENT. */
static uint64_t boundary_of(const boundaries *b, const weft_op *op) {
  uint32_t id = op->kind == WEFT_OP_SEM_INC    ? op->sem_inc.sem
                : op->kind == WEFT_OP_SEM_WAIT ? op->sem_wait.sem
                                               : WEFT_NONE;
  return id < b->c->program->semaphore_count ? b->closing[id] : ABSENT;
}

static weft_barrier_phase half_of(const boundaries *b, const weft_op *op) {
  uint32_t id = op->kind == WEFT_OP_SEM_INC ? op->sem_inc.sem : op->sem_wait.sem;
  return b->c->program->semaphores[id].phase;
}

/* The root of a boundary is the program that waits on its gather: the last one, should there be several. */
static void find_roots(boundaries *b) {
  const weft_schedule *sch = b->c->program->schedule;
  for (uint64_t i = 0; i < sch->program_count; i++) {
    const weft_engine_program *ep = &sch->programs[i];
    for (uint64_t k = 0; k < ep->op_count; k++) {
      uint64_t at = boundary_of(b, &ep->ops[k]);
      if (at == ABSENT || ep->ops[k].kind != WEFT_OP_SEM_WAIT || half_of(b, &ep->ops[k]) != WEFT_BARRIER_GATHER)
        continue;
      b->roots[at] = (root){.present = true, .site = ep->site, .engine = ep->engine};
    }
  }
}

/* ---- one program ---- */

static bool misplaced(boundaries *b, uint64_t k, const char *what) {
  REPORT(b->c, SECTION_BARRIER_MISPLACED, section(k), site(b->program->site), engine(b->program->engine), text(what));
  return false;
}

typedef struct nested {
  const boundaries *b;
  uint64_t found;
} nested;

static bool find_nested(void *context, const weft_op *op, const weft_op_visit *visit) {
  nested *n = context;
  if (visit->nested) n->found = boundary_of(n->b, op);
  return n->found == ABSENT;
}

static bool check_nesting(boundaries *b) {
  nested n = {.b = b, .found = ABSENT};
  weft_check_walk(b->program->ops, b->program->op_count, find_nested, &n);
  return n.found == ABSENT || misplaced(b, n.found, "a rendezvous op is inside a loop");
}

static passage *passage_at(boundaries *b, uint64_t k) {
  passage *at = &b->passages[k];
  if (at->stamp != b->stamp) *at = (passage){b->stamp, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT};
  return at;
}

static bool find_passages(boundaries *b) {
  for (uint64_t i = 0; i < b->program->op_count; i++) {
    const weft_op *op = &b->program->ops[i];
    uint64_t k = boundary_of(b, op);
    if (k == ABSENT) continue;
    passage *at = passage_at(b, k);
    bool gathers = half_of(b, op) == WEFT_BARRIER_GATHER;
    if (op->kind == WEFT_OP_SEM_INC && !gathers) {
      if (at->first_post == ABSENT) at->first_post = i;
      at->last_post = i;
      continue;
    }
    uint64_t *slot = op->kind == WEFT_OP_SEM_INC ? &at->arrive : gathers ? &at->gather : &at->release;
    if (*slot != ABSENT) return misplaced(b, k, "the program passes it twice");
    *slot = i;
  }
  return true;
}

static bool is_root(const boundaries *b, uint64_t k) {
  const root *r = &b->roots[k];
  const weft_engine *e = &b->program->engine;
  bool same_engine = r->engine.compute == e->compute && (e->compute || r->engine.movement == e->movement);
  return r->present && weft_site_equal(r->site, b->program->site) && same_engine;
}

static const char *passage_fault(const boundaries *b, uint64_t k, const passage *at, uint64_t previous_release) {
  if (at->arrive == ABSENT || at->release == ABSENT)
    return "the program does not arrive, or does not wait for the release";
  if (at->arrive > at->release) return "the program waits for the release before it arrives";
  if (previous_release != ABSENT && previous_release > at->arrive) return "the program arrives before the last release";
  bool gathers = at->gather != ABSENT;
  bool posts = at->first_post != ABSENT;
  if (!is_root(b, k)) return gathers || posts ? "a program that is not the root gathers or releases" : NULL;
  if (!gathers || !posts) return "the root gathers without releasing";
  bool ordered = at->arrive < at->gather && at->gather < at->first_post && at->last_post < at->release;
  return ordered ? NULL : "the root does not arrive, gather, release and wait in this order";
}

static bool check_passages(boundaries *b) {
  uint64_t previous_release = ABSENT;
  for (uint64_t i = 0; i < b->count; i++) {
    uint64_t k = b->sections[i];
    const passage *at = passage_at(b, k);
    const char *what = passage_fault(b, k, at, previous_release);
    if (what) return misplaced(b, k, what);
    previous_release = at->release;
  }
  return true;
}

static bool check_ops(boundaries *b) {
  const weft_program *p = b->c->program;
  for (uint64_t i = 0; i < b->program->op_count; i++) {
    const weft_op *op = &b->program->ops[i];
    if (boundary_of(b, op) != ABSENT || op->stage >= p->stage_count) continue;
    uint64_t k = weft_section_of_stage(p, op->stage);
    if (k == ABSENT) continue;
    if (b->next[k] != ABSENT && i > passage_at(b, b->next[k])->arrive)
      return misplaced(b, k, "an op of the section comes after the arrival that closes it");
    if (b->previous[k] != ABSENT && i < passage_at(b, b->previous[k])->release)
      return misplaced(b, k, "an op of the section comes before the release that opens it");
  }
  return true;
}

/* ---- all ---- */

static bool prepare(boundaries *b) {
  const weft_program *p = b->c->program;
  b->closing = weft_check_array(b->c, p->semaphore_count, sizeof *b->closing);
  b->sections = weft_check_array(b->c, p->section_count, sizeof *b->sections);
  b->next = weft_check_array(b->c, p->section_count, sizeof *b->next);
  b->previous = weft_check_array(b->c, p->section_count, sizeof *b->previous);
  b->roots = weft_check_array(b->c, p->section_count, sizeof *b->roots);
  b->passages = weft_check_array(b->c, p->section_count, sizeof *b->passages);
  if (b->c->stop) return false;
  memset(b->closing, 0xff, p->semaphore_count * sizeof *b->closing);
  return true;
}

void weft_validate_rendezvous(check *c) {
  const weft_schedule *sch = c->program->schedule;
  boundaries b = {.c = c};
  if (!sch || !prepare(&b) || !find_closings(&b) || !b.count) return;
  find_neighbours(&b);
  find_roots(&b);
  for (uint64_t i = 0; i < sch->program_count && !c->stop; i++) {
    b.program = &sch->programs[i];
    b.stamp = i + 1;
    if (check_nesting(&b) && find_passages(&b) && check_passages(&b)) check_ops(&b);
  }
}
