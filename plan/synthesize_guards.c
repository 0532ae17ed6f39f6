/* Guards of buffers that share memory (alias_of): between the last page that one of them gives back and the first that
 * the next one takes, a counter that the first one's reader posts and the next one's filler waits for.
 *
 * Buffers that share memory take turns: all pages of one, then all of the next. The turns are taken in the innermost
 * loop that holds all they do on every engine, once a round of it; a last guard, open at first, leads from the end of
 * one round to the beginning of the next. What stands in that loop (or outside all loops) are the items that a guard is
 * put between. A turn order is possible when no item that a guard holds back has to be over before the guard opens. */
#include "synthesize.h"

#include <stdlib.h>
#include <string.h>

#define NOWHERE UINT64_MAX

/** An op of the site, outer loops before what they hold. */
typedef struct node {
  const weft_op *op;
  uint64_t parent, end;   /**< the loop around it, NOWHERE outside; one past the last op inside */
  uint64_t next_page;     /**< the next page op on the same buffer */
  uint64_t before, after; /**< guards there: one more than the first; 0: none */
  uint32_t engine;
} node;

typedef struct guard {
  uint64_t next; /**< one more than the next at the same place; 0: none */
  uint32_t semaphore, stage;
} guard;

/** A buffer that shares memory. */
typedef struct sharer {
  weft_site site;
  uint64_t phase;
  uint32_t root, buffer;
  uint64_t reserve, pop; /**< first and last op that takes and gives back a page; NOWHERE: unused */
  bool placed;
} sharer;

typedef struct guarder {
  synthesizer *s;
  sharer *sharers;
  uint64_t sharer_count;
  node *nodes;
  uint64_t node_count, node_capacity;
  uint64_t *first_page;              /**< by buffer: its first page op at the site */
  uint64_t *context;                 /**< by engine: the loop whose items are looked at, NOWHERE: all it does */
  uint64_t *inner;                   /**< by engine: the loop to go into */
  uint32_t trip;                     /**< that a loop they take turns in runs to, or WEFT_NONE */
  bool *known;                       /**< by engine: has such a loop */
  uint32_t first_engine, end_engine; /**< of the site */
  uint64_t *stack, *reached, reach;  /**< of a walk; by node: the last walk that came by */
  guard *guards;
  uint64_t guard_count, guard_capacity;
  weft_semaphore *semaphores;
  uint64_t semaphore_count, semaphore_capacity;
} guarder;

/* ---- what a site does ---- */

static bool is_page_op(const weft_op *op) {
  return op->kind == WEFT_OP_RESERVE || op->kind == WEFT_OP_PUSH || op->kind == WEFT_OP_WAIT || op->kind == WEFT_OP_POP;
}

static bool list_nodes(guarder *g, const weft_op *ops, uint64_t count, uint32_t engine, uint64_t parent) {
  for (uint64_t i = 0; i < count; i++) {
    uint64_t n = g->node_count;
    if (!weft_arena_grow(g->s->scratch, &g->nodes, n, &g->node_capacity, sizeof *g->nodes)) return false;
    g->nodes[n] = (node){.op = &ops[i], .parent = parent, .next_page = NOWHERE, .engine = engine};
    g->node_count++;
    if (ops[i].kind == WEFT_OP_LOOP && !list_nodes(g, ops[i].loop.body, ops[i].loop.body_count, engine, n))
      return false;
    g->nodes[n].end = g->node_count;
  }
  return true;
}

/** The ops of a site's engines, and the page ops of every buffer in their order. */
static bool list_site(guarder *g, weft_site site) {
  const plan_engines *engines = &g->s->engines;
  g->node_count = 0;
  g->first_engine = g->end_engine;
  while (g->first_engine < engines->count && plan_site_order(engines->items[g->first_engine].site, site) < 0)
    g->first_engine++;
  for (g->end_engine = g->first_engine;
       g->end_engine < engines->count && weft_site_equal(engines->items[g->end_engine].site, site); g->end_engine++)
    for (const op_block *block = g->s->ops[g->end_engine].first; block; block = block->next)
      if (!list_nodes(g, block->ops, block->count, g->end_engine, NOWHERE)) return false;
  for (uint64_t n = g->node_count; n-- > 0;) {
    if (!is_page_op(g->nodes[n].op)) continue;
    g->nodes[n].next_page = g->first_page[g->nodes[n].op->page.buf];
    g->first_page[g->nodes[n].op->page.buf] = n;
  }
  g->stack = WEFT_NEW_ARRAY(g->s->scratch, uint64_t, g->node_count + 1);
  g->reached = WEFT_NEW_ARRAY(g->s->scratch, uint64_t, g->node_count + 1);
  return g->stack && g->reached;
}

static void leave_site(guarder *g) {
  for (uint64_t n = 0; n < g->node_count; n++)
    if (is_page_op(g->nodes[n].op)) g->first_page[g->nodes[n].op->page.buf] = NOWHERE;
}

static void find_turn(guarder *g, sharer *m) {
  m->reserve = m->pop = NOWHERE;
  for (uint64_t n = g->first_page[m->buffer]; n != NOWHERE; n = g->nodes[n].next_page) {
    if (g->nodes[n].op->kind == WEFT_OP_RESERVE && m->reserve == NOWHERE) m->reserve = n;
    if (g->nodes[n].op->kind == WEFT_OP_POP) m->pop = n;
  }
}

/* ---- the loop in which they take turns ---- */

/** The item of its engine that an op is or lies in; NOWHERE when it is outside the loop. */
static uint64_t item_of(const guarder *g, uint64_t n) {
  const uint32_t engine = g->nodes[n].engine;
  if (!g->known[engine]) return NOWHERE;
  while (n != NOWHERE && g->nodes[n].parent != g->context[engine]) n = g->nodes[n].parent;
  return n;
}

static uint32_t unit_of(const guarder *g, uint64_t n) { return g->s->units.unit_of_stage[g->nodes[n].op->stage]; }

/** Whether two loops of one unit walk the same rounds. */
static bool same_rounds(const guarder *g, uint64_t a, uint64_t b) {
  const weft_op *x = g->nodes[a].op, *y = g->nodes[b].op;
  return x->kind == WEFT_OP_LOOP && y->kind == WEFT_OP_LOOP && x->loop.trip == y->loop.trip &&
         x->loop.var == y->loop.var && x->loop.count == y->loop.count && unit_of(g, a) == unit_of(g, b);
}

/** Pages that the ops of a kind move in one round of the item they lie in. */
static uint64_t pages_a_round(const guarder *g, uint32_t buffer, weft_choreo_kind kind) {
  uint64_t pages = 0;
  for (uint64_t n = g->first_page[buffer]; n != NOWHERE; n = g->nodes[n].next_page) {
    if (g->nodes[n].op->kind != kind) continue;
    uint64_t times = g->nodes[n].op->page.pages, item = item_of(g, n);
    for (uint64_t up = g->nodes[n].parent; up != NOWHERE && up != item; up = g->nodes[up].parent)
      times *= g->nodes[up].op->loop.count;
    pages += times;
  }
  return pages;
}

/** Finds, for every engine that is at the buffers, the one item that holds all it does with them; one item of all. */
static bool find_inner(guarder *g, const sharer *members, uint64_t count, uint64_t *like) {
  *like = NOWHERE;
  for (uint32_t e = g->first_engine; e < g->end_engine; e++) g->inner[e] = NOWHERE;
  for (uint64_t m = 0; m < count; m++)
    for (uint64_t n = g->first_page[members[m].buffer]; n != NOWHERE; n = g->nodes[n].next_page) {
      uint64_t item = item_of(g, n), *inner = &g->inner[g->nodes[n].engine];
      if (item == NOWHERE || (*inner != NOWHERE && *inner != item)) return false;
      *inner = item;
      if (*like == NOWHERE) *like = item;
      if (!same_rounds(g, *like, item)) return false;
    }
  for (uint64_t m = 0; m < count; m++)
    if (pages_a_round(g, members[m].buffer, WEFT_OP_RESERVE) != pages_a_round(g, members[m].buffer, WEFT_OP_POP))
      return false;
  return *like != NOWHERE;
}

/** The loop of an engine that is not at the buffers, which walks the same rounds. */
static uint64_t find_beside(const guarder *g, uint32_t engine, uint64_t like) {
  if (!g->known[engine]) return NOWHERE;
  for (uint64_t n = 0; n < g->node_count; n++)
    if (g->nodes[n].engine == engine && g->nodes[n].parent == g->context[engine] && same_rounds(g, like, n)) return n;
  return NOWHERE;
}

/** Sets the loop in which the members take turns; whether it is a loop. */
static bool find_context(guarder *g, const sharer *members, uint64_t count) {
  uint64_t like;
  bool loop = false;
  g->trip = WEFT_NONE;
  for (uint32_t e = g->first_engine; e < g->end_engine; e++) {
    g->context[e] = NOWHERE;
    g->known[e] = true;
  }
  while (find_inner(g, members, count, &like)) {
    loop = true;
    if (g->nodes[like].op->loop.trip != WEFT_NONE) g->trip = g->nodes[like].op->loop.trip;
    for (uint32_t e = g->first_engine; e < g->end_engine; e++) {
      uint64_t inner = g->inner[e] != NOWHERE ? g->inner[e] : find_beside(g, e, like);
      g->known[e] = inner != NOWHERE;
      g->context[e] = inner;
    }
  }
  return loop;
}

/* ---- which may come first ---- */

static void reach(guarder *g, uint64_t *top, uint64_t item) {
  if (item == NOWHERE || g->reached[item] == g->reach) return;
  g->reached[item] = g->reach;
  g->stack[(*top)++] = item;
}

/** Marks what cannot begin before `item` has: what its engine does after it, and what waits on another for a page of
 * that. (A page that an engine hands to itself, if not to what it does after it, is for the next round.) */
static void walk_from(guarder *g, uint64_t item) {
  uint64_t top = 0;
  g->reach++;
  reach(g, &top, item);
  while (top) {
    uint64_t at = g->stack[--top], next = g->nodes[at].end;
    if (next < g->node_count && g->nodes[next].engine == g->nodes[at].engine &&
        g->nodes[next].parent == g->nodes[at].parent)
      reach(g, &top, next);
    for (uint64_t n = at; n < g->nodes[at].end; n++) {
      if (g->nodes[n].op->kind != WEFT_OP_PUSH) continue;
      for (uint64_t w = g->first_page[g->nodes[n].op->page.buf]; w != NOWHERE; w = g->nodes[w].next_page)
        if (g->nodes[w].op->kind == WEFT_OP_WAIT && g->nodes[w].engine != g->nodes[n].engine)
          reach(g, &top, item_of(g, w));
    }
  }
}

/** Whether `a` can be over before `b` begins. */
static bool may_precede(guarder *g, const sharer *a, const sharer *b) {
  walk_from(g, item_of(g, b->reserve));
  return g->reached[item_of(g, a->pop)] != g->reach;
}

static weft_status overlapping(const guarder *g, const sharer *a, const sharer *b) {
  const weft_program *program = g->s->program;
  const uint32_t filler = g->nodes[b->reserve].op->stage, reader = g->nodes[a->pop].op->stage;
  uint64_t section = weft_section_of_stage(program, filler);
  return weft_error(g->s->diag, WEFT_INVALID,
                    "give one of them memory of its own (no alias_of), or let its last reader come earlier",
                    "section `%s`: buffers `%s` and `%s` share the memory of site (%u, %u) chip %u, and no guard can "
                    "keep them apart: "
                    "stage `%s` fills `%s` before stage `%s` is done with `%s`",
                    plan_section_name(program, section == UINT64_MAX ? 0 : section), program->buffers[a->buffer].name,
                    program->buffers[b->buffer].name, a->site.x, a->site.y, a->site.chip, program->stages[filler].name,
                    program->buffers[b->buffer].name, program->stages[reader].name, program->buffers[a->buffer].name);
}

static bool may_be_next(guarder *g, const sharer *members, uint64_t count, uint64_t next, uint64_t *against) {
  for (uint64_t m = 0; m < count; m++) {
    if (m == next || members[m].placed || may_precede(g, &members[next], &members[m])) continue;
    *against = m;
    return false;
  }
  return true;
}

/** Orders the members, each of which is over before the next begins: of those that may come first, the one whose filler
 * is the earlier stage. */
static weft_status order_members(guarder *g, sharer *members, uint64_t count, uint64_t *order) {
  for (uint64_t place = 0; place < count; place++) {
    uint64_t best = NOWHERE, blocked = 0, against = 0;
    for (uint64_t m = 0; m < count; m++) {
      if (members[m].placed) continue;
      bool earlier =
          best == NOWHERE || g->nodes[members[m].reserve].op->stage < g->nodes[members[best].reserve].op->stage;
      if (!earlier) continue;
      if (may_be_next(g, members, count, m, &against))
        best = m;
      else
        blocked = m;
    }
    if (best == NOWHERE) return overlapping(g, &members[blocked], &members[against]);
    members[best].placed = true;
    order[place] = best;
  }
  return WEFT_OK;
}

/* ---- guards ---- */

static bool add_place(guarder *g, uint64_t *place, uint32_t semaphore, uint32_t stage) {
  if (!weft_arena_grow(g->s->scratch, &g->guards, g->guard_count, &g->guard_capacity, sizeof *g->guards)) return false;
  g->guards[g->guard_count] = (guard){.next = *place, .semaphore = semaphore, .stage = stage};
  *place = ++g->guard_count;
  return true;
}

/** A guard from the end of `a` to the beginning of `b`; none where one engine does both, in this order. */
static weft_status add_guard(guarder *g, const sharer *a, const sharer *b, bool open) {
  const node *pop = &g->nodes[a->pop], *reserve = &g->nodes[b->reserve];
  if (pop->engine == reserve->engine) return WEFT_OK;
  if (g->trip != WEFT_NONE)
    return weft_error(g->s->diag, WEFT_INVALID, "give one of them memory of its own (no alias_of)",
                      "buffers `%s` and `%s` share the memory of site (%u, %u) chip %u in a loop that runs to trip %u, "
                      "which holds no semaphore: no guard can keep them apart",
                      g->s->program->buffers[a->buffer].name, g->s->program->buffers[b->buffer].name, a->site.x,
                      a->site.y, a->site.chip, g->trip);
  if (!(g->s->target->handshakes >> WEFT_HANDSHAKE_SEMAPHORE & 1))
    return weft_error(g->s->diag, WEFT_INVALID, "use a target with semaphores, or give the buffers memory of their own",
                      "buffers `%s` and `%s` share memory; the guard between them is a semaphore, which target `%s` "
                      "does not have",
                      g->s->program->buffers[a->buffer].name, g->s->program->buffers[b->buffer].name,
                      g->s->target->name);
  weft_site *site = WEFT_NEW(g->s->arena, weft_site);
  if (!site ||
      !weft_arena_grow(g->s->arena, &g->semaphores, g->semaphore_count, &g->semaphore_capacity, sizeof *g->semaphores))
    return weft_error_memory(g->s->diag);
  *site = a->site;
  const uint32_t id = (uint32_t)g->semaphore_count;
  g->semaphores[g->semaphore_count++] = (weft_semaphore){
      .id = id, .init = open, .role = WEFT_SEM_READY_COUNTER, .count = 1, .sites = site, .site_count = 1};
  if (!add_place(g, &g->nodes[item_of(g, a->pop)].after, id, pop->op->stage) ||
      !add_place(g, &g->nodes[item_of(g, b->reserve)].before, id, reserve->op->stage))
    return weft_error_memory(g->s->diag);
  return WEFT_OK;
}

/** The buffers of one phase and site that share memory. */
static weft_status guard_members(guarder *g, sharer *all, uint64_t most) {
  uint64_t count = 0;
  for (uint64_t m = 0; m < most; m++) {
    find_turn(g, &all[m]);
    if (all[m].reserve != NOWHERE && all[m].pop != NOWHERE) all[count++] = all[m];
  }
  if (count < 2) return WEFT_OK;
  uint64_t *order = WEFT_NEW_ARRAY(g->s->scratch, uint64_t, count);
  if (!order) return weft_error_memory(g->s->diag);
  bool rounds = find_context(g, all, count);
  weft_status status = order_members(g, all, count, order);
  for (uint64_t i = 0; !status && i + 1 < count; i++) status = add_guard(g, &all[order[i]], &all[order[i + 1]], false);
  if (!status && rounds) status = add_guard(g, &all[order[count - 1]], &all[order[0]], true);
  return status;
}

/* ---- putting them in ---- */

static void emit_wait(synthesizer *s, op_list *list, const guard *at) {
  weft_op *op = synth_add(s, list, at->stage, WEFT_OP_SEM_WAIT);
  op->sem_wait.sem = at->semaphore;
  op->sem_wait.count = 1;
  op = synth_add(s, list, at->stage, WEFT_OP_SEM_SET);
  op->sem_set.sem = at->semaphore;
  op->sem_set.value = WEFT_SEM_COUNT;
}

static void emit_post(synthesizer *s, op_list *list, const guard *at, weft_site site) {
  weft_op *op = synth_add(s, list, at->stage, WEFT_OP_SEM_INC);
  op->sem_inc.sem = at->semaphore;
  op->sem_inc.at = site;
  op->sem_inc.by = 1;
}

/** The ops from node `n` to `end`, with the guards that stand between them. */
static op_list put_in(guarder *g, uint64_t n, uint64_t end, weft_site site) {
  op_list list = {.lasting = true};
  for (; n < end && !g->s->failed; n = g->nodes[n].end) {
    const node *at = &g->nodes[n];
    for (uint64_t i = at->before; i; i = g->guards[i - 1].next) emit_wait(g->s, &list, &g->guards[i - 1]);
    weft_op op = *at->op;
    if (op.kind == WEFT_OP_LOOP) {
      op_list body = put_in(g, n + 1, at->end, site);
      op.loop.body = synth_in_program(g->s, &body);
      op.loop.body_count = body.count;
    }
    *synth_add(g->s, &list, op.stage, op.kind) = op;
    for (uint64_t i = at->after; i; i = g->guards[i - 1].next) emit_post(g->s, &list, &g->guards[i - 1], site);
  }
  return list;
}

static void put_in_site(guarder *g, weft_site site) {
  for (uint64_t n = 0; n < g->node_count && !g->s->failed;) {
    uint64_t end = n;
    while (end < g->node_count && g->nodes[end].engine == g->nodes[n].engine) end = g->nodes[end].end;
    g->s->ops[g->nodes[n].engine] = put_in(g, n, end, site);
    n = end;
  }
}

/* ---- who shares memory ---- */

static int compare_sharers(const void *a, const void *b) {
  const sharer *s = a, *t = b;
  int order = plan_site_order(s->site, t->site);
  if (order) return order;
  if (s->phase != t->phase) return s->phase < t->phase ? -1 : 1;
  if (s->root != t->root) return s->root < t->root ? -1 : 1;
  return s->buffer < t->buffer ? -1 : s->buffer > t->buffer;
}

/** The buffers that are aliases or have some. */
static weft_status list_sharers(guarder *g, bool *any) {
  const weft_program *program = g->s->program;
  bool *shared = WEFT_NEW_ARRAY(g->s->scratch, bool, program->buffer_count + 1);
  g->sharers = WEFT_NEW_ARRAY(g->s->scratch, sharer, program->buffer_count + 1);
  const uint64_t *phases = weft_section_phases(program, g->s->scratch);
  if (!shared || !g->sharers || !phases) return weft_error_memory(g->s->diag);
  *any = false;
  for (uint64_t b = 0; b < program->buffer_count; b++) {
    if (program->buffers[b].alias_of == WEFT_NONE) continue;
    uint32_t root = plan_alias_root(program, (uint32_t)b);
    if (root == WEFT_NONE)
      return weft_error(g->s->diag, WEFT_INVALID, NULL, "buffer `%s` is an alias of itself", program->buffers[b].name);
    shared[b] = shared[root] = *any = true;
  }
  for (uint64_t k = 0; *any && k < plan_section_count(program); k++) {
    weft_span buffers = plan_section_buffers(program, k);
    for (uint64_t b = buffers.begin; b < buffers.end; b++)
      if (shared[b])
        g->sharers[g->sharer_count++] = (sharer){.site = program->buffers[b].site.site,
                                                 .phase = program->section_count ? phases[k] : 0,
                                                 .root = plan_alias_root(program, (uint32_t)b),
                                                 .buffer = (uint32_t)b};
  }
  qsort(g->sharers, g->sharer_count, sizeof *g->sharers, compare_sharers);
  return WEFT_OK;
}

static bool prepare(guarder *g) {
  synthesizer *s = g->s;
  const weft_program *program = s->program;
  g->first_page = WEFT_NEW_ARRAY(s->scratch, uint64_t, program->buffer_count + 1);
  g->context = WEFT_NEW_ARRAY(s->scratch, uint64_t, s->engines.count + 1);
  g->inner = WEFT_NEW_ARRAY(s->scratch, uint64_t, s->engines.count + 1);
  g->known = WEFT_NEW_ARRAY(s->scratch, bool, s->engines.count + 1);
  if (!g->first_page || !g->context || !g->inner || !g->known) return false;
  memset(g->first_page, 0xff, (program->buffer_count + 1) * sizeof *g->first_page);
  for (uint64_t i = 0; i < program->semaphore_count; i++) {
    if (!weft_arena_grow(s->arena, &g->semaphores, i, &g->semaphore_capacity, sizeof *g->semaphores)) return false;
    g->semaphores[g->semaphore_count++] = program->semaphores[i];
  }
  return true;
}

/** The sharers [begin, end) of one site. */
static weft_status guard_site(guarder *g, uint64_t begin, uint64_t end) {
  const weft_site site = g->sharers[begin].site;
  weft_status status = list_site(g, site) ? WEFT_OK : weft_error_memory(g->s->diag);
  g->reach = g->guard_count = 0;
  while (!status && begin < end) {
    uint64_t next = begin;
    while (next < end && g->sharers[next].phase == g->sharers[begin].phase &&
           g->sharers[next].root == g->sharers[begin].root)
      next++;
    status = guard_members(g, &g->sharers[begin], next - begin);
    begin = next;
  }
  if (status) return status;
  if (g->guard_count) put_in_site(g, site);
  leave_site(g);
  return g->s->failed ? weft_error_memory(g->s->diag) : WEFT_OK;
}

/** The guards' semaphores are the last section's. */
static weft_status keep_semaphores(guarder *g) {
  weft_program *program = g->s->program;
  if (g->semaphore_count == program->semaphore_count) return WEFT_OK;
  program->semaphores = g->semaphores;
  program->semaphore_count = g->semaphore_count;
  program->requires_handshakes |= 1u << WEFT_HANDSHAKE_SEMAPHORE;
  if (!program->section_count) return WEFT_OK;
  weft_section *sections = WEFT_NEW_ARRAY(g->s->arena, weft_section, program->section_count);
  if (!sections) return weft_error_memory(g->s->diag);
  memcpy(sections, program->sections, program->section_count * sizeof *sections);
  sections[program->section_count - 1].semaphores.end = g->semaphore_count;
  program->sections = sections;
  return WEFT_OK;
}

weft_status synth_guards(synthesizer *s) {
  guarder g = {.s = s};
  bool any = false;
  weft_status status = list_sharers(&g, &any);
  if (status || !any) return status;
  if (!prepare(&g)) return weft_error_memory(s->diag);
  for (uint64_t begin = 0; !status && begin < g.sharer_count;) {
    uint64_t end = begin;
    while (end < g.sharer_count && weft_site_equal(g.sharers[end].site, g.sharers[begin].site)) end++;
    status = guard_site(&g, begin, end);
    begin = end;
  }
  return status ? status : keep_semaphores(&g);
}
