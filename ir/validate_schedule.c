/* 14. Schedule: one program an engine; stores write; accumulators and pages balance, for every count of a trip. */
#include "validate_private.h"

#include <stdlib.h>

/* ---- engines ---- */

typedef struct engine_key {
  uint64_t site, engine, index;
} engine_key;

static int compare_engines(const void *a, const void *b) {
  const engine_key *x = a;
  const engine_key *y = b;
  if (x->site != y->site) return x->site < y->site ? -1 : 1;
  if (x->engine != y->engine) return x->engine < y->engine ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

static bool check_engines(check *c) {
  const weft_schedule *sch = c->program->schedule;
  engine_key *keys = weft_check_array(c, sch->program_count, sizeof *keys);
  uint8_t *again = weft_check_array(c, sch->program_count, 1);
  if (!keys || !again) return false;
  for (uint64_t i = 0; i < sch->program_count; i++) {
    const weft_engine_program *ep = &sch->programs[i];
    uint64_t which = ep->engine.compute ? UINT64_MAX : ep->engine.movement;
    keys[i] = (engine_key){.site = site_key(ep->site), .engine = which, .index = i};
  }
  qsort(keys, sch->program_count, sizeof *keys, compare_engines);
  for (uint64_t i = 1; i < sch->program_count; i++)
    if (keys[i].site == keys[i - 1].site && keys[i].engine == keys[i - 1].engine) again[keys[i].index] = 1;
  for (uint64_t i = 0; i < sch->program_count; i++) {
    const weft_engine_program *ep = &sch->programs[i];
    if (again[i] && !REPORT(c, DUPLICATE_ENGINE_PROGRAM, site(ep->site), engine(ep->engine))) return false;
  }
  return true;
}

/* ---- stores ---- */

typedef struct written {
  uint8_t *stages;
  uint64_t count;
} written;

static bool note_write(void *context, const weft_op *op, const weft_op_visit *visit) {
  (void)visit;
  written *w = context;
  if (op->kind == WEFT_OP_WRITE_TILES && op->stage < w->count) w->stages[op->stage] = 1;
  return true;
}

void weft_validate_programs(check *c) {
  const weft_program *p = c->program;
  if (!p->schedule || !check_engines(c)) return;
  written w = {.stages = weft_check_array(c, p->stage_count, 1), .count = p->stage_count};
  if (!w.stages) return;
  for (uint64_t i = 0; i < p->schedule->program_count; i++) {
    const weft_engine_program *ep = &p->schedule->programs[i];
    weft_check_walk(ep->ops, ep->op_count, note_write, &w);
  }
  for (uint64_t s = 0; s < p->stage_count; s++)
    if (p->stages[s].kind == WEFT_STAGE_STORE && !w.stages[s] &&
        !REPORT(c, STAGE_NOT_SCHEDULED, stage(s), text("WriteTiles")))
      return;
}

/* ---- accumulators and pages ---- */

typedef struct pages {
  uint64_t reserved, pushed, popped;
} pages;

static bool balanced(const pages *moved) { return moved->reserved == moved->pushed && moved->pushed == moved->popped; }

/* What an op moves is added to its buffer's pages; false when a sum leaves 64 bits. */
static bool add_pages(pages *moved, const weft_op *op, uint64_t times) {
  uint64_t amount;
  if (weft_mul_overflow(times, op->page.pages, &amount)) return false;
  uint64_t *sum = op->kind == WEFT_OP_RESERVE ? &moved->reserved
                  : op->kind == WEFT_OP_PUSH  ? &moved->pushed
                                              : &moved->popped;
  return !weft_add_overflow(*sum, amount, sum);
}

static bool moves_pages(const weft_op *op) {
  return op->kind == WEFT_OP_RESERVE || op->kind == WEFT_OP_PUSH || op->kind == WEFT_OP_POP;
}

typedef struct counts {
  check *c;
  pages *moved; /* by buffer */
  uint64_t acquires, releases, most_acquired;
  bool too_many, computed, packed_uncomputed, overflow;
} counts;

static bool count_op(void *context, const weft_op *op, const weft_op_visit *visit) {
  counts *n = context;
  const weft_program *p = n->c->program;
  uint64_t times = visit->times;
  bool counted = true;
  if (moves_pages(op)) {
    if (op->page.buf < p->buffer_count && !add_pages(&n->moved[op->page.buf], op, times)) n->overflow = true;
  } else if (op->kind == WEFT_OP_ACQUIRE_ACC) {
    n->computed = false;
    n->overflow |= weft_add_overflow(n->acquires, times, &n->acquires);
    if (op->acquire_tiles > weft_max_u64(1, p->acc_tiles_used)) {
      n->too_many = true;
      n->most_acquired = op->acquire_tiles;
    }
  } else if (op->kind == WEFT_OP_RELEASE_ACC) {
    n->overflow |= weft_add_overflow(n->releases, times, &n->releases);
  } else {
    counted = false;
    n->computed |= op->kind == WEFT_OP_COMPUTE;
    n->packed_uncomputed |= op->kind == WEFT_OP_PACK_ACC && !n->computed;
  }
  n->overflow |= counted && visit->overflow;
  return true;
}

static bool check_program(check *c, const weft_engine_program *ep, pages *moved) {
  counts n = {.c = c, .moved = moved, .computed = true};
  weft_check_walk(ep->ops, ep->op_count, count_op, &n);
  if (n.overflow) {
    const fact first = ep->stage_count ? stage(ep->stages[0]) : site(ep->site);
    REPORT(c, SIZE_OVERFLOW, text("the loop counts times pages of its program"), first);
    return false;
  }
  if (n.acquires != n.releases &&
      !REPORT(c, ACC_IMBALANCE, site(ep->site), number(n.acquires), number(n.releases), engine(ep->engine)))
    return false;
  if (n.packed_uncomputed && !REPORT(c, ACCUMULATOR_NEVER_COMPUTED, site(ep->site), engine(ep->engine))) return false;
  if (!n.too_many) return true;
  uint64_t first = ep->stage_count ? ep->stages[0] : 0;
  return REPORT(c, ACC_TILES_EXCEEDED, stage(first), number(n.most_acquired), number(c->program->acc_tiles_used));
}

static bool report_pages(check *c, uint64_t b, const pages *m) {
  return REPORT(c, COUNTING_IMBALANCE, buffer(b), number(m->reserved), number(m->pushed), number(m->popped));
}

void weft_validate_counts(check *c) {
  const weft_program *p = c->program;
  if (!p->schedule) return;
  pages *moved = weft_check_array(c, p->buffer_count, sizeof *moved);
  if (!moved) return;
  for (uint64_t i = 0; i < p->schedule->program_count; i++)
    if (!check_program(c, &p->schedule->programs[i], moved)) return;
  for (uint64_t b = 0; b < p->buffer_count; b++)
    if (p->buffers[b].space != WEFT_MEM_ACC && !balanced(&moved[b]) && !report_pages(c, b, &moved[b])) return;
}

/* ---- one round of a trip ----
 *
 * A total is a constant plus a multiple of each trip's count, so it balances at every count when it balances at the
 * greatest and each trip's multiple balances too. */

typedef struct round_key {
  uint32_t buffer, trip;
} round_key;

typedef struct rounds {
  check *c;
  const weft_engine_program *program;
  weft_tally slots; /* (buffer, trip) -> position in `keys` and `moved`, plus one */
  round_key *keys;
  pages *moved;
  uint64_t count, key_capacity, moved_capacity;
  pages *accumulators; /* by trip, of the program being walked: reserved are acquires, pushed releases */
  uint8_t *touched;    /* by trip: its accumulators are in `trips` */
  uint32_t *trips;
  uint64_t trip_count;
  bool overflow, missing;
} rounds;

static pages *round_of(rounds *r, uint32_t b, uint32_t t) {
  uint64_t slot = weft_tally_get(&r->slots, b, t);
  if (slot) return &r->moved[slot - 1];
  if (!weft_arena_grow(r->c->arena, &r->keys, r->count, &r->key_capacity, sizeof *r->keys) ||
      !weft_arena_grow(r->c->arena, &r->moved, r->count, &r->moved_capacity, sizeof *r->moved))
    return NULL;
  weft_tally_add(&r->slots, b, t, r->count + 1);
  r->keys[r->count] = (round_key){.buffer = b, .trip = t};
  r->moved[r->count] = (pages){0};
  return r->slots.failed ? NULL : &r->moved[r->count++];
}

static void count_accumulator(rounds *r, const weft_op *op, const weft_op_visit *visit) {
  pages *acc = &r->accumulators[visit->trip];
  if (!r->touched[visit->trip]) r->trips[r->trip_count++] = visit->trip;
  r->touched[visit->trip] = 1;
  uint64_t *sum = op->kind == WEFT_OP_ACQUIRE_ACC ? &acc->reserved : &acc->pushed;
  r->overflow |= visit->overflow || weft_add_overflow(*sum, visit->rounds, sum);
}

static bool count_round(void *context, const weft_op *op, const weft_op_visit *visit) {
  rounds *r = context;
  if (visit->trip == WEFT_NONE) return true;
  if (op->kind == WEFT_OP_ACQUIRE_ACC || op->kind == WEFT_OP_RELEASE_ACC) count_accumulator(r, op, visit);
  if (!moves_pages(op)) return true;
  if (op->page.buf >= r->c->program->buffer_count) {
    REPORT(r->c, PAGE_BUFFER_MISSING, buffer(op->page.buf), site(r->program->site), engine(r->program->engine));
    r->missing = true;
    return false;
  }
  pages *moved = round_of(r, op->page.buf, visit->trip);
  if (!moved) return weft_check_out_of_memory(r->c);
  r->overflow |= visit->overflow || !add_pages(moved, op, visit->rounds);
  return true;
}

static int compare_trips(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a;
  uint32_t y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* The accumulators of the program that was walked, trip by trip; they are cleared for the next. */
static bool check_accumulators(rounds *r) {
  bool go_on = true;
  if (r->trip_count) qsort(r->trips, r->trip_count, sizeof *r->trips, compare_trips);
  for (uint64_t i = 0; i < r->trip_count; i++) {
    pages acc = r->accumulators[r->trips[i]];
    r->accumulators[r->trips[i]] = (pages){0};
    r->touched[r->trips[i]] = 0;
    if (go_on && acc.reserved != acc.pushed)
      go_on = REPORT(r->c, ACC_IMBALANCE, site(r->program->site), number(acc.reserved), number(acc.pushed),
                     engine(r->program->engine));
  }
  r->trip_count = 0;
  return go_on;
}

/* Whether the program's walk found nothing that stops the check. */
static bool check_rounds(rounds *r) {
  const weft_engine_program *ep = r->program;
  weft_check_walk(ep->ops, ep->op_count, count_round, r);
  if (r->overflow) REPORT(r->c, SIZE_OVERFLOW, text("the loop counts times pages of one round"), site(ep->site));
  if (r->overflow || r->missing || r->c->stop) return false;
  return check_accumulators(r);
}

typedef struct ordered_round {
  round_key key;
  uint64_t position;
} ordered_round;

static int compare_rounds(const void *a, const void *b) {
  const ordered_round *x = a;
  const ordered_round *y = b;
  if (x->key.buffer != y->key.buffer) return x->key.buffer < y->key.buffer ? -1 : 1;
  return (x->key.trip > y->key.trip) - (x->key.trip < y->key.trip);
}

static void report_rounds(rounds *r) {
  const weft_program *p = r->c->program;
  ordered_round *ordered = weft_check_array(r->c, r->count, sizeof *ordered);
  if (!ordered) return;
  for (uint64_t i = 0; i < r->count; i++) ordered[i] = (ordered_round){.key = r->keys[i], .position = i};
  qsort(ordered, r->count, sizeof *ordered, compare_rounds);
  for (uint64_t i = 0; i < r->count; i++) {
    const pages *moved = &r->moved[ordered[i].position];
    uint32_t b = ordered[i].key.buffer;
    if (p->buffers[b].space != WEFT_MEM_ACC && !balanced(moved) && !report_pages(r->c, b, moved)) return;
  }
}

void weft_validate_rounds(check *c) {
  const weft_program *p = c->program;
  if (!p->schedule || !p->trip_count || c->trips_broken) return;
  rounds r = {.c = c};
  r.accumulators = weft_check_array(c, p->trip_count, sizeof *r.accumulators);
  r.touched = weft_check_array(c, p->trip_count, sizeof *r.touched);
  r.trips = weft_check_array(c, p->trip_count, sizeof *r.trips);
  if (c->stop) return;
  bool whole = true;
  for (uint64_t i = 0; i < p->schedule->program_count && whole; i++) {
    r.program = &p->schedule->programs[i];
    whole = check_rounds(&r);
  }
  if (whole) report_rounds(&r);
  weft_tally_free(&r.slots);
}
