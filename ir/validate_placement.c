/* 11. Placement: every stage on an engine of its kind at its site; edges and multicast groups between the right sites.
 */
#include "validate_private.h"

#include <stdlib.h>

/* ---- stages and edges ---- */

static weft_site_role role_of(weft_stage_kind kind) {
  bool moves = kind == WEFT_STAGE_LOAD || kind == WEFT_STAGE_STORE || kind == WEFT_STAGE_RECV;
  return moves ? WEFT_SITE_MOVEMENT : WEFT_SITE_COMPUTE;
}

static bool check_stage(check *c, uint64_t s) {
  const weft_stage *st = &c->program->stages[s];
  const weft_placement *pl = c->program->placement;
  if (!st->site.present) return REPORT(c, STAGE_UNPLACED, stage(s));
  weft_site at = st->site.site;
  bool agree = weft_site_equal(pl->site_of[s], at) && weft_site_equal(pl->engine_of[s].site, at);
  if (!agree && !REPORT(c, ENGINE_SITE_MISMATCH, stage(s))) return false;
  bool right_engine = pl->engine_of[s].engine.compute == (st->role == WEFT_SITE_COMPUTE);
  return (right_engine && st->role == role_of(st->kind)) || REPORT(c, ENGINE_ROLE_MISMATCH, stage(s));
}

static bool same_site(const weft_optional_site *a, const weft_optional_site *b) {
  return a->present == b->present && (!a->present || weft_site_equal(a->site, b->site));
}

static bool check_edge(check *c, uint64_t e) {
  const weft_program *p = c->program;
  const weft_edge *ed = &p->edges[e];
  bool local = ed->handshake == WEFT_HANDSHAKE_FIFO || ed->handshake == WEFT_HANDSHAKE_VALID_READY;
  for (uint64_t i = 0; i < ed->to_count; i++) {
    bool same = same_site(&p->stages[ed->from].site, &p->stages[ed->to[i]].site);
    if (local && !same) return REPORT(c, CROSS_SITE_LOCAL_EDGE, edge(e));
    if (!local && same && ed->handshake != WEFT_HANDSHAKE_BARRIER) return REPORT(c, LOCAL_CROSS_SITE_EDGE, edge(e));
  }
  return true;
}

void weft_validate_placement(check *c) {
  const weft_program *p = c->program;
  const weft_placement *pl = p->placement;
  if (!pl) return;
  if (pl->site_of_count != p->stage_count || pl->engine_of_count != p->stage_count) {
    REPORT(c, STAGE_UNPLACED, stage(weft_min_u64(pl->site_of_count, pl->engine_of_count)));
    c->halt = true;
    return;
  }
  for (uint64_t s = 0; s < p->stage_count; s++)
    if (!check_stage(c, s)) return;
  for (uint64_t e = 0; e < p->edge_count; e++)
    if (!check_edge(c, e)) return;
}

/* ---- groups ---- */

/* A stage that sends to or receives from a group at a site. */
typedef struct member {
  uint64_t group, site, stage;
} member;

typedef struct members {
  member *sorted; /* by group, site, stage */
  uint64_t count;
} members;

static int compare_members(const void *a, const void *b) {
  const member *x = a;
  const member *y = b;
  if (x->group != y->group) return x->group < y->group ? -1 : 1;
  if (x->site != y->site) return x->site < y->site ? -1 : 1;
  return (x->stage > y->stage) - (x->stage < y->stage);
}

static uint32_t group_of(const weft_stage *st) {
  if (st->kind == WEFT_STAGE_LOAD) return st->load.multicast;
  return st->kind == WEFT_STAGE_RECV ? st->recv.group : WEFT_NONE;
}

static bool find_members(check *c, members *m) {
  const weft_program *p = c->program;
  m->sorted = weft_check_array(c, p->stage_count, sizeof *m->sorted);
  if (!m->sorted) return false;
  for (uint64_t s = 0; s < p->stage_count; s++) {
    const weft_stage *st = &p->stages[s];
    uint32_t id = group_of(st);
    if (id != WEFT_NONE && st->site.present)
      m->sorted[m->count++] = (member){.group = id, .site = site_key(st->site.site), .stage = s};
  }
  qsort(m->sorted, m->count, sizeof *m->sorted, compare_members);
  return true;
}

/* The members of a group at a site: how many, and the first. */
static uint64_t members_at(const members *m, uint64_t id, weft_site where, uint64_t *first) {
  const member wanted = {.group = id, .site = site_key(where)};
  uint64_t low = 0;
  uint64_t high = m->count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (compare_members(&m->sorted[middle], &wanted) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  uint64_t count = 0;
  while (low + count < m->count && m->sorted[low + count].group == id && m->sorted[low + count].site == wanted.site)
    count++;
  if (count) *first = m->sorted[low].stage;
  return count;
}

/* What a group's first member has and the others must have too. */
typedef struct likeness {
  const weft_buffer *buffer;
  const weft_buffer_at *place;
} likeness;

static bool same_ring(const weft_buffer *a, const weft_buffer *b) {
  bool depth = a->kind == WEFT_BUFFER_ACCUMULATOR || a->depth_pages == b->depth_pages;
  return a->kind == b->kind && depth && a->page_tiles == b->page_tiles && a->dtype == b->dtype;
}

/* False after a fault. */
static bool check_output(check *c, const weft_group *g, weft_site where, const weft_stage *st, likeness *like) {
  const weft_program *p = c->program;
  uint32_t out = st->outs[0];
  const weft_buffer *b = &p->buffers[out];
  if (!like->buffer) like->buffer = b;
  if (!same_ring(like->buffer, b)) {
    REPORT(c, GROUP_MEMBER_MISMATCH, group(g->id), site(where), text("its buffer has another kind or format"));
    return false;
  }
  if (!p->memory) return true;
  if (out >= p->memory->buffer_at_count) {
    REPORT(c, MEMORY_UNMAPPED, buffer(out));
    return false;
  }
  const weft_buffer_at *place = &p->memory->buffer_at[out];
  if (!like->place) like->place = place;
  if (like->place->offset_bytes == place->offset_bytes) return true;
  REPORT(c, GROUP_MEMBER_MISMATCH, group(g->id), site(where), text("its buffer is at another offset"));
  return false;
}

static const char *member_fault(const weft_group *g, weft_site where, const weft_stage *st) {
  bool sender = weft_site_equal(where, g->sender);
  if (st->kind != (sender ? WEFT_STAGE_LOAD : WEFT_STAGE_RECV))
    return "a sender must be a multicasting load, a receiver a receive";
  return st->out_count ? NULL : "its member has no output buffer";
}

/* False after a fault. */
static bool check_member(check *c, const members *m, const weft_group *g, weft_site where, likeness *like) {
  const weft_program *p = c->program;
  uint64_t s = 0;
  if (members_at(m, g->id, where, &s) != 1) {
    REPORT(c, GROUP_MEMBER_MISMATCH, group(g->id), site(where), text("not exactly one member"));
    return false;
  }
  const weft_stage *st = &p->stages[s];
  const char *reason = member_fault(g, where, st);
  if (reason) {
    REPORT(c, GROUP_MEMBER_MISMATCH, group(g->id), site(where), text(reason));
    return false;
  }
  if (!check_output(c, g, where, st, like)) return false;
  uint64_t k = p->section_count ? weft_section_of_stage(p, (uint32_t)s) : UINT64_MAX;
  if (weft_check_items_at(c, k, where).count == weft_check_items_at(c, k, g->sender).count) return true;
  REPORT(c, ITEM_COUNT_MISMATCH, group(g->id));
  return false;
}

static const char *shape_fault(const weft_group *g) {
  const weft_rect *r = &g->rect;
  bool inside = g->sender.x >= r->x0 && g->sender.x <= r->x1 && g->sender.y >= r->y0 && g->sender.y <= r->y1;
  if (!inside) return "its sender is outside its rectangle";
  if (g->direction == WEFT_DIRECTION_ROW && (r->y0 != r->y1 || g->sender.x != r->x0))
    return "a row group must be one row, sent from its left end";
  if (g->direction == WEFT_DIRECTION_COL && (r->x0 != r->x1 || g->sender.y != r->y0))
    return "a column group must be one column, sent from its top";
  return r->x0 == r->x1 && r->y0 == r->y1 ? "it has no receiver" : NULL;
}

/* Whether one of the rectangle's sides has 65,536 sites, which 16 bits do not count. */
static bool too_wide(const weft_rect *r) {
  return (r->x0 == 0 && r->x1 == UINT16_MAX) || (r->y0 == 0 && r->y1 == UINT16_MAX);
}

/* A group is on its sender's chip where its sender is there. Otherwise it is looked for on chip 0, as the seed does
 * with every group. */
static uint16_t chip_of(const check *c, const members *m, const weft_group *g) {
  uint64_t s = 0;
  bool there = members_at(m, g->id, g->sender, &s) && c->program->stages[s].kind == WEFT_STAGE_LOAD;
  return there ? g->sender.chip : 0;
}

/* False after a fault. Every site has a member of its own, so the walk ends after as many sites as there are stages. */
static bool check_group(check *c, const members *m, const weft_group *g) {
  const char *reason = shape_fault(g);
  if (reason) {
    REPORT(c, GROUP_MALFORMED, group(g->id), text(reason));
    return false;
  }
  if (too_wide(&g->rect)) {
    REPORT(c, SIZE_OVERFLOW, text("the side of its rectangle"), group(g->id));
    return false;
  }
  likeness like = {0};
  const uint16_t chip = chip_of(c, m, g);
  for (uint32_t y = g->rect.y0; y <= g->rect.y1; y++)
    for (uint32_t x = g->rect.x0; x <= g->rect.x1; x++) {
      weft_site where = {(uint16_t)x, (uint16_t)y, chip};
      if (!check_member(c, m, g, where, &like)) return false;
    }
  return true;
}

void weft_validate_groups(check *c) {
  const weft_placement *pl = c->program->placement;
  if (!pl || !pl->group_count) return;
  members m = {0};
  if (!find_members(c, &m) || !weft_check_site_items(c)) return;
  for (uint64_t i = 0; i < pl->group_count && !c->stop; i++)
    if (!check_group(c, &m, &pl->groups[i])) c->groups_broken = true;
}
