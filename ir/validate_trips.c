/* 13. Trips: each is read from an element of an input and counts at least one round; the loops run to it are simple. */
#include "validate_private.h"

static const char *trip_fault(const weft_program *p, const weft_trip *t, bool *overflow) {
  if (t->tensor >= p->tensor_count) return "it is read from a tensor that does not exist";
  const weft_tensor *tn = &p->tensors[t->tensor];
  if (tn->role != WEFT_ROLE_INPUT) return "it is read from a tensor that is not an Input";
  uint64_t elements;
  *overflow = weft_mul_overflow(tn->elems.rows, tn->elems.cols, &elements);
  if (*overflow) return NULL;
  if (t->elem >= elements) return "it is read from an element past its tensor";
  if (t->per == 0) return "it counts per 0 elements";
  if (t->admit.low > t->admit.high) return "it admits no value";
  return weft_trip_count(t, t->admit.low) ? NULL : "its least count is 0";
}

static bool check_trip(check *c, uint64_t i) {
  bool overflow = false;
  const char *reason = trip_fault(c->program, &c->program->trips[i], &overflow);
  if (overflow) return REPORT(c, SIZE_OVERFLOW, text("the number of elements of its tensor"), trip(i));
  return !reason || REPORT(c, TRIP_MALFORMED, trip(i), text(reason));
}

/* ---- loops ---- */

typedef struct loops {
  check *c;
  const weft_engine_program *program;
  uint8_t *used; /* by trip */
} loops;

typedef struct contents {
  bool foreign, stores;
} contents;

static bool note_contents(void *context, const weft_op *op, const weft_op_visit *visit) {
  (void)visit;
  contents *found = context;
  switch (op->kind) {
  case WEFT_OP_SEM_SET:
  case WEFT_OP_SEM_INC:
  case WEFT_OP_SEM_WAIT:
  case WEFT_OP_MCAST_SEND:
  case WEFT_OP_MCAST_SET_VALID:
  case WEFT_OP_BARRIER: found->foreign = true; break;
  case WEFT_OP_WRITE_TILES: found->stores = true; break;
  default: break;
  }
  return true;
}

static const char *loop_fault(loops *l, const weft_op *op, bool inside) {
  const weft_program *p = l->c->program;
  if (op->loop.trip >= p->trip_count) return "a loop runs to a trip that does not exist";
  if (inside) return "a loop run to a trip is inside another";
  const weft_trip *t = &p->trips[op->loop.trip];
  if (op->loop.count != weft_trip_count(t, t->admit.high)) return "a loop's max is not its trip's greatest count";
  contents found = {0};
  weft_check_walk(op->loop.body, op->loop.body_count, note_contents, &found);
  if (found.foreign) return "a semaphore, multicast or barrier op is inside a loop run to a trip";
  return found.stores ? "a WriteTiles is inside a loop run to a trip: the data would decide what is written" : NULL;
}

static bool check_loops(loops *l, const weft_op *ops, uint64_t count, bool inside) {
  for (uint64_t i = 0; i < count; i++) {
    const weft_op *op = &ops[i];
    if (op->kind != WEFT_OP_LOOP) continue;
    bool to_trip = has_id(op->loop.trip, op->loop.max_ids, WEFT_MAX_TRIP);
    const char *reason = to_trip ? loop_fault(l, op, inside) : NULL;
    if (reason) {
      l->c->trips_broken = true;
      if (!REPORT(l->c, TRIP_LOOP_MALFORMED, text(reason), site(l->program->site), engine(l->program->engine)))
        return false;
      continue;
    }
    if (to_trip) l->used[op->loop.trip] = 1;
    if (!check_loops(l, op->loop.body, op->loop.body_count, inside || to_trip)) return false;
  }
  return true;
}

void weft_validate_trips(check *c) {
  const weft_program *p = c->program;
  uint64_t before = c->found;
  for (uint64_t i = 0; i < p->trip_count; i++)
    if (!check_trip(c, i)) return;
  c->trips_broken |= c->found > before;
  if (!p->schedule) return;
  loops l = {.c = c, .used = weft_check_array(c, p->trip_count, 1)};
  if (!l.used) return;
  for (uint64_t i = 0; i < p->schedule->program_count; i++) {
    l.program = &p->schedule->programs[i];
    if (!check_loops(&l, l.program->ops, l.program->op_count, false)) return;
  }
  for (uint64_t i = 0; i < p->trip_count && !c->trips_broken; i++)
    if (!l.used[i] && !REPORT(c, TRIP_MALFORMED, trip(i), text("no loop runs to it"))) return;
}
