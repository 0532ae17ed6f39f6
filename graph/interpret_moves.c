/* Ops that move elements by position or by index. */
#include "interpret_private.h"

#include <string.h>

static const weft_value *operand(const weft_evaluation *e, uint32_t i) { return &e->graph->values[e->op->ins[i]]; }

static weft_status transpose(const weft_evaluation *e) {
  const weft_value *x = operand(e, 0);
  const size_t bytes = weft_format_bytes(x->dtype);
  const uint64_t rows = x->extents[0], cols = x->extents[1];
  for (uint64_t r = 0; r < rows; r++)
    for (uint64_t c = 0; c < cols; c++)
      memcpy((char *)e->out + (c * rows + r) * bytes, (const char *)e->ins[0] + (r * cols + c) * bytes, bytes);
  return WEFT_OK;
}

/** Element `index` of the result: widened, as partial results are, or as it stands. */
static void gather_element(const weft_evaluation *e, uint64_t index, uint64_t from, bool there) {
  const weft_value *table = operand(e, 0), *out = &e->graph->values[e->op->out];
  if (weft_format_is_float(table->dtype))
    weft_store_f32(out->dtype, e->out, index, there ? weft_load_f32(table->dtype, e->ins[0], from) : -0.0f);
  else
    weft_store_i64(out->dtype, e->out, index, there ? weft_load_i64(table->dtype, e->ins[0], from) : 0);
}

static weft_status gather(const weft_evaluation *e) {
  const weft_value *table = operand(e, 0), *ids = operand(e, 1);
  const uint64_t rows = weft_value_elements(ids), cols = table->extents[1];
  for (uint64_t r = 0; r < rows; r++) {
    int64_t id = weft_load_i64(ids->dtype, e->ins[1], r);
    if (id < 0 || id > e->op->high)
      return weft_error(e->diag, WEFT_INVALID, NULL, "gather '%s': row %llu of '%s' is %lld, outside 0 to %lld",
                        e->op->name, (unsigned long long)r, ids->name, (long long)id, (long long)e->op->high);
    bool there = id >= e->op->low && (uint64_t)(id - e->op->low) < table->extents[0];
    uint64_t row = there ? (uint64_t)(id - e->op->low) : 0;
    for (uint64_t c = 0; c < cols; c++) gather_element(e, r * cols + c, row * cols + c, there);
  }
  return WEFT_OK;
}

static weft_status update(const weft_evaluation *e) {
  const weft_value *state = operand(e, 0), *at = operand(e, 2);
  const size_t bytes = weft_format_bytes(state->dtype);
  const uint64_t rows = state->extents[0], cols = state->extents[1], last = state->extents[e->op->axis] - 1;
  int64_t place = weft_load_i64(at->dtype, e->ins[2], 0);
  if (place < 0 || (uint64_t)place > last)
    return weft_error(e->diag, WEFT_INVALID, NULL, "update '%s': '%s' is %lld, outside 0 to %llu", e->op->name,
                      at->name, (long long)place, (unsigned long long)last);
  memcpy(e->out, e->ins[0], rows * cols * bytes);
  if (e->op->axis == 0) {
    memcpy((char *)e->out + (uint64_t)place * cols * bytes, e->ins[1], cols * bytes);
    return WEFT_OK;
  }
  for (uint64_t r = 0; r < rows; r++)
    memcpy((char *)e->out + (r * cols + (uint64_t)place) * bytes, (const char *)e->ins[1] + r * bytes, bytes);
  return WEFT_OK;
}

weft_status weft_evaluate_moves(const weft_evaluation *e) {
  switch (e->op->kind) {
  case WEFT_GRAPH_TRANSPOSE: return transpose(e);
  case WEFT_GRAPH_GATHER: return gather(e);
  default: return update(e);
  }
}
