#include "validate_private.h"

static bool walk(const weft_op *ops, uint64_t count, const weft_op_visit *outer, weft_op_visitor *visit,
                 void *context) {
  for (uint64_t i = 0; i < count; i++) {
    const weft_op *op = &ops[i];
    if (!visit(context, op, outer)) return false;
    if (op->kind != WEFT_OP_LOOP) continue;
    weft_op_visit inner = *outer;
    inner.nested = true;
    inner.overflow |= weft_mul_overflow(outer->times, op->loop.count, &inner.times);
    bool to_trip = has_id(op->loop.trip, op->loop.max_ids, WEFT_MAX_TRIP);
    if (to_trip)
      inner.trip = op->loop.trip;
    else
      inner.overflow |= weft_mul_overflow(outer->rounds, op->loop.count, &inner.rounds);
    if (!walk(op->loop.body, op->loop.body_count, &inner, visit, context)) return false;
  }
  return true;
}

bool weft_check_walk(const weft_op *ops, uint64_t count, weft_op_visitor *visit, void *context) {
  const weft_op_visit outermost = {.times = 1, .rounds = 1, .trip = WEFT_NONE};
  return walk(ops, count, &outermost, visit, context);
}
