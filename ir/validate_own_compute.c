/* 18. What the seed does not look at: bodies, scalar bodies, segments, biases, reductions, and the ids of scheduled
 * ops. */
#include "validate_private.h"

/* ---- compute ops ---- */

static const char *body_fault(const weft_body *body) {
#define WEFT_ROW(id, name, arity) arity,
  static const uint8_t arities[] = {WEFT_BODY_NODES(WEFT_ROW)};
#undef WEFT_ROW
  if (!body->node_count) return "it has no node";
  for (uint64_t i = 0; i < body->node_count; i++) {
    const weft_body_node *node = &body->nodes[i];
    if (node->kind >= WEFT_BODY_KIND_COUNT) return "a node of no known kind";
    for (unsigned k = 0; k < arities[node->kind]; k++)
      if (node->child[k] >= i) return "a node comes before its child";
  }
  return NULL;
}

static bool source_exists(const weft_scalar_body *body, const weft_src *src, uint64_t cells) {
  if (src->kind == WEFT_SRC_INPUT) return src->index < body->n_in;
  return src->kind == WEFT_SRC_CONST || src->index < cells;
}

static const char *scalar_fault(const weft_scalar_body *body) {
  for (uint64_t i = 0; i < body->cell_count; i++) {
    const weft_cell *cell = &body->cells[i];
    bool known = source_exists(body, &cell->a, i) && source_exists(body, &cell->b, i);
    if (!known || (cell->has_c && !source_exists(body, &cell->c, i))) return "a cell reads what is not there yet";
  }
  return source_exists(body, &body->result, body->cell_count) ? NULL : "its result is not there";
}

static bool check_scalar(check *c, uint64_t s, const weft_scalar_body *body) {
  const char *reason = scalar_fault(body);
  return !reason || REPORT(c, SCALAR_MALFORMED, stage(s), text(reason));
}

static bool check_segments(check *c, uint64_t s, uint32_t segments, bool sums) {
  if (segments == 1 || (segments && segments <= WEFT_MAX_SEGMENTS && sums)) return true;
  return REPORT(c, SEGMENTS_MALFORMED, stage(s), number(segments));
}

static bool check_generic(check *c, uint64_t s, const weft_generic *g) {
  const char *reason = body_fault(&g->body);
  if (reason && !REPORT(c, BODY_MALFORMED, stage(s), text(reason))) return false;
  for (uint64_t i = 0; i < g->iter_count; i++) {
    const weft_iter *axis = &g->iters[i];
    if (!axis->reduce || !axis->segments) continue;
    if (!check_segments(c, s, axis->segments, axis->pool == WEFT_POOL_SUM)) return false;
  }
  return true;
}

/** A product whose K blocks run to a trip folds one chain, of which the trip is never more than the whole. */
static bool check_product(check *c, uint64_t s, const weft_matmul_tiles *m) {
  if (!check_segments(c, s, m->segments, true)) return false;
  if (!has_id(m->trip, m->max_ids, WEFT_MAX_TRIP)) return true;
  const weft_trip *trip = m->trip < c->program->trip_count ? &c->program->trips[m->trip] : NULL;
  const char *reason = !trip              ? "its K blocks run to a trip that does not exist"
                       : m->segments != 1 ? "its K blocks run to a trip and are cut into segments"
                       : trip->per == 0 || weft_trip_count(trip, trip->admit.high) > m->num_blocks
                           ? "its trip counts more K blocks than it has"
                           : NULL;
  return !reason || REPORT(c, STAGE_TRIP_MALFORMED, stage(s), text(reason));
}

static bool check_op(check *c, uint64_t s, const weft_compute_op *op) {
  switch (op->kind) {
  case WEFT_COMPUTE_MATMUL_TILES: return check_product(c, s, &op->matmul);
  case WEFT_COMPUTE_GENERIC: return check_generic(c, s, &op->generic);
  case WEFT_COMPUTE_SCALAR: return check_scalar(c, s, &op->scalar);
  default: return true;
  }
}

static bool check_all_reduce(check *c, const weft_stage *st) {
  if (st->all_reduce.tensor >= c->program->tensor_count &&
      !REPORT(c, ALL_REDUCE_TENSOR_MISSING, stage(st->id), tensor(st->all_reduce.tensor)))
    return false;
  const weft_compute_op *combine = st->all_reduce.combine;
  if (combine->kind != WEFT_COMPUTE_GENERIC)
    return REPORT(c, ALL_REDUCE_COMBINE, stage(st->id), text("its combine is not a Generic"));
  if (combine->generic.in_count != st->in_count)
    return REPORT(c, ALL_REDUCE_COMBINE, stage(st->id), text("its combine does not have a map for each of the ins"));
  return check_op(c, st->id, combine);
}

static bool check_stage(check *c, const weft_stage *st) {
  if (st->kind == WEFT_STAGE_ALL_REDUCE) return check_all_reduce(c, st);
  if (st->kind == WEFT_STAGE_SCALAR) return check_scalar(c, st->id, &st->scalar);
  if (st->kind != WEFT_STAGE_COMPUTE) return true;
  if (st->compute->kind == WEFT_COMPUTE_BIAS && !weft_ir_has_port(&c->ins, st->id, st->compute->bias) &&
      !REPORT(c, BIAS_NOT_AN_OPERAND, stage(st->id), buffer(st->compute->bias)))
    return false;
  return check_op(c, st->id, st->compute);
}

void weft_validate_own_compute(check *c) {
  for (uint64_t s = 0; s < c->program->stage_count; s++)
    if (!check_stage(c, &c->program->stages[s])) return;
}

/* ---- scheduled ops ---- */

typedef struct ops {
  check *c;
  const weft_engine_program *program;
} ops;

static bool missing(const ops *o, weft_violation violation, fact id) {
  const fact facts[] = {id, site(o->program->site), engine(o->program->engine)};
  return weft_check_report(o->c, violation, facts, 3);
}

static bool check_buffer(const ops *o, uint32_t id) {
  return id < o->c->program->buffer_count || missing(o, VIOLATION_OP_BUFFER_MISSING, buffer(id));
}

static bool check_group(const ops *o, uint32_t id) {
  const weft_placement *pl = o->c->program->placement;
  return (pl && id < pl->group_count) || missing(o, VIOLATION_OP_GROUP_MISSING, group(id));
}

static bool check_semaphore(const ops *o, uint32_t id) {
  return id < o->c->program->semaphore_count || missing(o, VIOLATION_SEMAPHORE_MISSING, semaphore(id));
}

static bool check_address(const ops *o, const weft_op *op) {
  const weft_indirect_tile *indirect = op->tiles.at.indirect;
  if (op->tiles.tensor >= o->c->program->tensor_count &&
      !missing(o, VIOLATION_OP_TENSOR_MISSING, tensor(op->tiles.tensor)))
    return false;
  return check_buffer(o, op->tiles.buf) && (!indirect || check_buffer(o, indirect->index));
}

static bool check_compute(const ops *o, const weft_op *op) {
  const weft_compute_op *inner = op->compute.op;
  for (uint64_t i = 0; i < op->compute.in_count; i++)
    if (!check_buffer(o, op->compute.ins[i])) return false;
  bool reloads = has_id(op->compute.acc_reload, op->compute.max_ids, WEFT_MAX_RELOAD);
  if (reloads && !check_buffer(o, op->compute.acc_reload)) return false;
  if (inner->kind == WEFT_COMPUTE_BIAS && !check_buffer(o, inner->bias)) return false;
  bool spills =
      inner->kind == WEFT_COMPUTE_MATMUL_TILES && has_id(inner->matmul.interm, inner->matmul.max_ids, WEFT_MAX_INTERM);
  if (spills && !check_buffer(o, inner->matmul.interm)) return false;
  return check_op(o->c, op->stage, inner);
}

static bool check_ids(void *context, const weft_op *op, const weft_op_visit *visit) {
  (void)visit;
  const ops *o = context;
  if (op->stage >= o->c->program->stage_count && !missing(o, VIOLATION_OP_STAGE_MISSING, stage(op->stage)))
    return false;
  switch (op->kind) {
  case WEFT_OP_RESERVE:
  case WEFT_OP_PUSH:
  case WEFT_OP_WAIT:
  case WEFT_OP_POP: return check_buffer(o, op->page.buf);
  case WEFT_OP_READ_TILES:
  case WEFT_OP_WRITE_TILES: return check_address(o, op);
  case WEFT_OP_MCAST_SEND: return check_buffer(o, op->mcast_send.buf) && check_group(o, op->mcast_send.group);
  case WEFT_OP_MCAST_SET_VALID:
    return check_semaphore(o, op->mcast_set_valid.sem) && check_group(o, op->mcast_set_valid.group);
  case WEFT_OP_SEM_SET: return check_semaphore(o, op->sem_set.sem);
  case WEFT_OP_COMPUTE: return check_compute(o, op);
  case WEFT_OP_PACK_ACC: return check_buffer(o, op->pack.to);
  case WEFT_OP_BARRIER: return check_group(o, op->barrier_group);
  default: return true;
  }
}

void weft_validate_own_schedule(check *c) {
  const weft_schedule *sch = c->program->schedule;
  for (uint64_t i = 0; sch && i < sch->program_count && !c->stop; i++) {
    ops o = {.c = c, .program = &sch->programs[i]};
    for (uint64_t k = 0; k < o.program->stage_count; k++)
      if (o.program->stages[k] >= c->program->stage_count &&
          !missing(&o, VIOLATION_OP_STAGE_MISSING, stage(o.program->stages[k])))
        return;
    weft_check_walk(o.program->ops, o.program->op_count, check_ids, &o);
  }
}
