/* The builder: each call computes the result's extents and format, then appends a value and an op. */
#include "graph_private.h"

#include <string.h>

/** The operands exist and no earlier call has failed with them. */
static bool operands_exist(weft_graph *graph, weft_graph_op_kind kind, const uint32_t *ins, uint32_t in_count) {
  for (uint32_t i = 0; i < in_count; i++) {
    if (ins[i] == WEFT_NONE && graph->failed) return false;
    if (ins[i] >= graph->value_count) {
      weft_graph_error(graph, NULL, "%s: operand %u is no value of graph '%s'", weft_graph_op_name(kind), i,
                       graph->name);
      return false;
    }
  }
  return true;
}

/** Appends the result, shaped by `shape`, and its op; fills names, section and chip. */
static uint32_t append(weft_graph *graph, const char *name, weft_graph_op *op, const weft_value *shape) {
  if (!graph->section_count) weft_graph_section(graph, "main");
  if (!graph->section_count) return WEFT_NONE;
  char *made = NULL;
  if (!name) {
    made = weft_arena_printf(graph->arena, "%s%llu", weft_graph_op_name(op->kind), (unsigned long long)graph->op_count);
    if (!made) {
      graph->failed = graph->out_of_memory = true;
      weft_error_memory(graph->diag);
      return WEFT_NONE;
    }
  }
  weft_value value = *shape;
  value.name = name ? name : made;
  value.role = shape->updates ? WEFT_ROLE_STATE : WEFT_ROLE_ACTIVATION;
  value.init = (weft_init){.kind = WEFT_INIT_ZERO};
  uint32_t out = weft_graph_add_value(graph, &value);
  if (out == WEFT_NONE) return WEFT_NONE;
  op->name = value.name;
  op->section = graph->section_count - 1;
  op->chip = value.chip;
  op->out = out;
  if (weft_graph_add_op(graph, op) != WEFT_NONE) return out;
  graph->value_count--;
  return WEFT_NONE;
}

/** A result on the operand's chip with its extents. */
static weft_value like(const weft_value *x, weft_format dtype) {
  weft_value value = {.dtype = dtype, .rank = x->rank, .chip = x->chip};
  memcpy(value.extents, x->extents, sizeof value.extents);
  return value;
}

static uint32_t source(weft_graph *graph, const char *name, weft_tensor_role role, weft_format dtype, uint32_t rank,
                       const uint64_t *extents) {
  weft_value value = {.name = name, .role = role, .dtype = dtype, .rank = rank, .init = {.kind = WEFT_INIT_EXTERNAL}};
  if (rank <= WEFT_MAX_RANK && rank) memcpy(value.extents, extents, rank * sizeof *extents);
  return weft_graph_add_value(graph, &value);
}

uint32_t weft_graph_input(weft_graph *graph, const char *name, weft_format dtype, uint32_t rank,
                          const uint64_t *extents) {
  return source(graph, name, WEFT_ROLE_INPUT, dtype, rank, extents);
}

uint32_t weft_graph_param(weft_graph *graph, const char *name, weft_format dtype, uint32_t rank,
                          const uint64_t *extents) {
  return source(graph, name, WEFT_ROLE_PARAM, dtype, rank, extents);
}

void weft_graph_range(weft_graph *graph, uint32_t value, int64_t low, int64_t high) {
  if (value >= graph->value_count) {
    if (!graph->failed) weft_graph_error(graph, NULL, "a range for a value that does not exist");
    return;
  }
  weft_value *v = &graph->values[value];
  if (weft_format_is_float(v->dtype)) {
    weft_graph_error(graph, NULL, "value '%s' is %s: only integers have a range", v->name, weft_format_name(v->dtype));
  } else if (low > high) {
    weft_graph_error(graph, NULL, "value '%s': its range %lld..%lld is empty", v->name, (long long)low,
                     (long long)high);
  } else if (low < weft_format_min(v->dtype) || high > weft_format_max(v->dtype)) {
    weft_graph_error(graph, NULL, "value '%s' is %s: it cannot hold its range %lld..%lld", v->name,
                     weft_format_name(v->dtype), (long long)low, (long long)high);
  } else {
    v->has_range = true;
    v->range = (weft_range){low, high};
  }
}

/** Whether every sum of k products of the operands fits 32 bits. */
static bool sum_fits_int32(const weft_graph *graph, uint32_t a, uint32_t b, uint64_t k) {
  weft_range x = weft_value_range(graph, a), y = weft_value_range(graph, b);
  const int64_t ends[2][2] = {{x.low, x.high}, {y.low, y.high}};
  for (int i = 0; i < 4; i++) {
    int64_t product;
    if (__builtin_mul_overflow(ends[0][i & 1], ends[1][i >> 1], &product)) return false;
    uint64_t magnitude = product < 0 ? 0 - (uint64_t)product : (uint64_t)product, sum;
    if (weft_mul_overflow(magnitude, k, &sum) || sum > INT32_MAX) return false;
  }
  return true;
}

uint32_t weft_graph_matmul(weft_graph *graph, const char *name, uint32_t a, uint32_t b) {
  const uint32_t ins[] = {a, b};
  if (!operands_exist(graph, WEFT_GRAPH_MATMUL, ins, 2)) return WEFT_NONE;
  const weft_value *x = &graph->values[a], *w = &graph->values[b];
  if (!x->rank || w->rank != 2) {
    weft_graph_error(graph, "a is [.., M, K], b is [K, N]", "matmul '%s': '%s' is %s and '%s' is %s", name ? name : "",
                     x->name, weft_extents_print(x->rank, x->extents).text, w->name,
                     weft_extents_print(w->rank, w->extents).text);
    return WEFT_NONE;
  }
  uint64_t k = x->extents[x->rank - 1];
  weft_graph_op op = {.kind = WEFT_GRAPH_MATMUL, .ins = ins, .in_count = 2, .segments = 1};
  weft_value out = like(x, WEFT_FP32);
  out.extents[x->rank - 1] = w->extents[1];
  if (weft_format_is_float(x->dtype)) {
    op.acc = WEFT_ACC_F32;
    op.segments = weft_segments_for(k);
  } else {
    bool narrow = !weft_format_is_float(w->dtype) && sum_fits_int32(graph, a, b, k);
    op.acc = narrow ? WEFT_ACC_I32 : WEFT_ACC_I64;
    out.dtype = narrow ? WEFT_INT32 : WEFT_INT64;
  }
  return append(graph, name, &op, &out);
}

uint32_t weft_graph_matmul_up_to(weft_graph *graph, const char *name, uint32_t a, uint32_t b, uint32_t position) {
  const uint32_t ins[] = {a, b, position};
  if (!operands_exist(graph, WEFT_GRAPH_MATMUL, ins, 3)) return WEFT_NONE;
  const weft_value *x = &graph->values[a], *w = &graph->values[b];
  weft_value out = like(x, WEFT_FP32);
  if (x->rank && w->rank == 2) out.extents[x->rank - 1] = w->extents[1];
  return append(
      graph, name,
      &(weft_graph_op){.kind = WEFT_GRAPH_MATMUL, .ins = ins, .in_count = 3, .segments = 1, .acc = WEFT_ACC_F32}, &out);
}

uint32_t weft_graph_bias(weft_graph *graph, const char *name, uint32_t x, uint32_t bias) {
  const uint32_t ins[] = {x, bias};
  if (!operands_exist(graph, WEFT_GRAPH_BIAS, ins, 2)) return WEFT_NONE;
  weft_value out = like(&graph->values[x], graph->values[x].dtype);
  return append(graph, name, &(weft_graph_op){.kind = WEFT_GRAPH_BIAS, .ins = ins, .in_count = 2}, &out);
}

uint32_t weft_graph_relu(weft_graph *graph, const char *name, uint32_t x) {
  if (!operands_exist(graph, WEFT_GRAPH_RELU, &x, 1)) return WEFT_NONE;
  weft_value out = like(&graph->values[x], graph->values[x].dtype);
  return append(graph, name, &(weft_graph_op){.kind = WEFT_GRAPH_RELU, .ins = &x, .in_count = 1}, &out);
}

/** Int32 where the ranges prove that x * m >> s fits, else Int64. */
static weft_format requant_format(const weft_graph *graph, uint32_t x, int64_t m, uint32_t s) {
  if (weft_format_is_float(graph->values[x].dtype) || s > 63) return WEFT_INT64;
  weft_range range = weft_value_range(graph, x);
  int64_t a, b;
  if (__builtin_mul_overflow(range.low, m, &a) || __builtin_mul_overflow(range.high, m, &b)) return WEFT_INT64;
  a >>= s;
  b >>= s;
  return a >= INT32_MIN && a <= INT32_MAX && b >= INT32_MIN && b <= INT32_MAX ? WEFT_INT32 : WEFT_INT64;
}

uint32_t weft_graph_requant(weft_graph *graph, const char *name, uint32_t x, int64_t m, uint32_t s) {
  if (!operands_exist(graph, WEFT_GRAPH_REQUANT, &x, 1)) return WEFT_NONE;
  weft_value out = like(&graph->values[x], requant_format(graph, x, m, s));
  weft_graph_op op = {.kind = WEFT_GRAPH_REQUANT, .ins = &x, .in_count = 1, .m = m, .s = s};
  return append(graph, name, &op, &out);
}

uint32_t weft_graph_clamp(weft_graph *graph, const char *name, uint32_t x, int64_t low, int64_t high,
                          weft_format dtype) {
  if (!operands_exist(graph, WEFT_GRAPH_CLAMP, &x, 1)) return WEFT_NONE;
  weft_value out = like(&graph->values[x], dtype);
  weft_graph_op op = {.kind = WEFT_GRAPH_CLAMP, .ins = &x, .in_count = 1, .low = low, .high = high};
  return append(graph, name, &op, &out);
}

/** The extents that all operands broadcast to, aligned at their last dimensions. */
static bool broadcast_extents(const weft_graph *graph, const uint32_t *ins, uint32_t in_count, weft_value *out) {
  for (uint32_t i = 0; i < in_count; i++)
    if (graph->values[ins[i]].rank > out->rank) out->rank = graph->values[ins[i]].rank;
  for (uint32_t d = 0; d < out->rank; d++) out->extents[d] = 1;
  for (uint32_t i = 0; i < in_count; i++) {
    const weft_value *in = &graph->values[ins[i]];
    for (uint32_t d = 0; d < in->rank; d++) {
      uint64_t *extent = &out->extents[out->rank - in->rank + d];
      if (in->extents[d] == 1 || in->extents[d] == *extent) continue;
      if (*extent != 1) return false;
      *extent = in->extents[d];
    }
  }
  return true;
}

uint32_t weft_graph_pointwise(weft_graph *graph, const char *name, const uint32_t *ins, uint32_t in_count,
                              const weft_body *body, weft_format dtype) {
  if (!in_count || !operands_exist(graph, WEFT_GRAPH_POINTWISE, ins, in_count)) {
    if (!in_count) weft_graph_error(graph, NULL, "pointwise '%s' has no operands", name ? name : "");
    return WEFT_NONE;
  }
  weft_value out = {.dtype = dtype, .chip = graph->values[ins[0]].chip};
  if (!broadcast_extents(graph, ins, in_count, &out)) {
    weft_graph_error(graph, "extents must be equal or 1", "pointwise '%s': its operands do not broadcast",
                     name ? name : "");
    return WEFT_NONE;
  }
  weft_graph_op op = {.kind = WEFT_GRAPH_POINTWISE, .ins = ins, .in_count = in_count, .body = *body};
  return append(graph, name, &op, &out);
}

uint32_t weft_graph_reduce(weft_graph *graph, const char *name, const uint32_t *ins, uint32_t in_count,
                           const weft_body *body, weft_pool pool, weft_format dtype) {
  if (!in_count || !operands_exist(graph, WEFT_GRAPH_REDUCE, ins, in_count)) {
    if (!in_count) weft_graph_error(graph, NULL, "reduce '%s' has no operands", name ? name : "");
    return WEFT_NONE;
  }
  weft_value out = {.dtype = dtype, .chip = graph->values[ins[0]].chip};
  if (!broadcast_extents(graph, ins, in_count, &out) || !out.rank) {
    weft_graph_error(graph, "extents must be equal or 1", "reduce '%s': its operands do not broadcast",
                     name ? name : "");
    return WEFT_NONE;
  }
  weft_graph_op op = {.kind = WEFT_GRAPH_REDUCE, .ins = ins, .in_count = in_count, .body = *body, .pool = pool};
  if (pool == WEFT_POOL_SUM && weft_format_is_float(dtype)) op.segments = weft_segments_for(out.extents[out.rank - 1]);
  out.extents[out.rank - 1] = 1;
  return append(graph, name, &op, &out);
}

static const weft_graph_op *first_reader(const weft_graph *graph, uint32_t value) {
  for (uint64_t i = 0; i < graph->op_count; i++)
    for (uint32_t j = 0; j < graph->ops[i].in_count; j++)
      if (graph->ops[i].ins[j] == value) return &graph->ops[i];
  return NULL;
}

uint32_t weft_graph_transpose(weft_graph *graph, const char *name, uint32_t x) {
  if (!operands_exist(graph, WEFT_GRAPH_TRANSPOSE, &x, 1)) return WEFT_NONE;
  weft_value out = like(&graph->values[x], graph->values[x].dtype);
  out.extents[0] = graph->values[x].extents[1];
  out.extents[1] = graph->values[x].extents[0];
  return append(graph, name, &(weft_graph_op){.kind = WEFT_GRAPH_TRANSPOSE, .ins = &x, .in_count = 1}, &out);
}

uint32_t weft_graph_gather(weft_graph *graph, const char *name, uint32_t table, uint32_t ids) {
  const uint32_t ins[] = {table, ids};
  if (!operands_exist(graph, WEFT_GRAPH_GATHER, ins, 2)) return WEFT_NONE;
  const weft_value *rows = &graph->values[table];
  weft_value out = like(&graph->values[ids], rows->dtype);
  if (out.rank && rows->rank == 2) out.extents[out.rank - 1] = rows->extents[1];
  weft_graph_op op = {.kind = WEFT_GRAPH_GATHER, .ins = ins, .in_count = 2, .high = (int64_t)rows->extents[0] - 1};
  return append(graph, name, &op, &out);
}

uint32_t weft_graph_slice(weft_graph *graph, const char *name, uint32_t x, const uint64_t *starts,
                          const uint64_t *extents) {
  if (!operands_exist(graph, WEFT_GRAPH_SLICE, &x, 1)) return WEFT_NONE;
  weft_value out = like(&graph->values[x], graph->values[x].dtype);
  uint64_t rows[1][WEFT_MAX_RANK] = {0};
  for (uint32_t d = 0; d < out.rank; d++) {
    out.extents[d] = extents[d];
    rows[0][d] = starts[d];
  }
  weft_graph_op op = {
      .kind = WEFT_GRAPH_SLICE, .ins = &x, .in_count = 1, .starts = (const uint64_t(*)[WEFT_MAX_RANK])rows};
  return append(graph, name, &op, &out);
}

uint32_t weft_graph_assemble(weft_graph *graph, const char *name, const uint32_t *ins, uint32_t in_count,
                             const uint64_t (*starts)[WEFT_MAX_RANK], uint32_t rank, const uint64_t *extents) {
  if (!in_count || rank > WEFT_MAX_RANK || !operands_exist(graph, WEFT_GRAPH_ASSEMBLE, ins, in_count)) {
    if (!in_count) weft_graph_error(graph, NULL, "assemble '%s' has no operands", name ? name : "");
    return WEFT_NONE;
  }
  weft_value out = {.dtype = graph->values[ins[0]].dtype, .rank = rank, .chip = graph->values[ins[0]].chip};
  if (rank) memcpy(out.extents, extents, rank * sizeof *extents);
  weft_graph_op op = {.kind = WEFT_GRAPH_ASSEMBLE, .ins = ins, .in_count = in_count, .starts = starts};
  return append(graph, name, &op, &out);
}

/* ---- states -------------------------------------------------------------------------------------------------------
 */

uint32_t weft_graph_state(weft_graph *graph, const char *name, weft_format dtype, uint32_t rank,
                          const uint64_t *extents) {
  uint32_t value = source(graph, name, WEFT_ROLE_STATE, dtype, rank, extents);
  if (value != WEFT_NONE) graph->values[value].init = (weft_init){.kind = WEFT_INIT_ZERO};
  return value;
}

/** Appends an op that gives what the step leaves of a state. */
static uint32_t append_update(weft_graph *graph, const char *name, weft_graph_op *op, uint32_t state) {
  weft_value out = like(&graph->values[state], graph->values[state].dtype);
  out.updates = state + 1;
  return append(graph, name, op, &out);
}

uint32_t weft_graph_update(weft_graph *graph, const char *name, uint32_t state, uint32_t x, uint32_t at, uint8_t axis) {
  const uint32_t ins[] = {state, x, at};
  if (!operands_exist(graph, WEFT_GRAPH_UPDATE, ins, 3)) return WEFT_NONE;
  weft_graph_op op = {.kind = WEFT_GRAPH_UPDATE, .ins = ins, .in_count = 3, .axis = axis};
  return append_update(graph, name, &op, state);
}

uint32_t weft_graph_set_state(weft_graph *graph, uint32_t state, uint32_t value) {
  const uint32_t both[] = {state, value};
  if (!operands_exist(graph, WEFT_GRAPH_POINTWISE, both, 2)) return WEFT_NONE;
  const weft_body_node node = {.kind = WEFT_BODY_OPERAND};
  weft_graph_op op = {.kind = WEFT_GRAPH_POINTWISE, .ins = &value, .in_count = 1, .body = {&node, 1}};
  const char *name = weft_arena_printf(graph->arena, "%s.next", graph->values[state].name);
  return append_update(graph, name, &op, state);
}

/* ---- what is stored -----------------------------------------------------------------------------------------------
 */

void weft_graph_store_as(weft_graph *graph, uint32_t value, weft_format dtype) {
  if (value >= graph->value_count) {
    if (!graph->failed) weft_graph_error(graph, NULL, "a format for a value that does not exist");
    return;
  }
  weft_value *v = &graph->values[value];
  const weft_graph_op *reader = first_reader(graph, value);
  if (v->producer == WEFT_NONE) {
    weft_graph_error(graph, NULL, "'%s' is a source: its format is that of its dataset", v->name);
  } else if (!weft_format_is_float(v->dtype) || !weft_format_is_float(dtype)) {
    weft_graph_error(graph, "clamp integers", "'%s' is %s and cannot be stored as %s", v->name,
                     weft_format_name(v->dtype), weft_format_name(dtype));
  } else if (reader) {
    weft_graph_error(graph, "set the format before the value is read", "'%s' is already read by '%s'", v->name,
                     reader->name);
  } else if (v->has_partial) {
    weft_graph_error(graph, NULL, "the partial result '%s' stays Fp32", v->name);
  } else {
    weft_format before = v->dtype;
    v->dtype = dtype;
    if (weft_op_check(graph, &graph->ops[v->producer], graph->diag) == WEFT_OK) return;
    v->dtype = before;
    graph->failed = true;
  }
}

void weft_graph_output(weft_graph *graph, uint32_t value, const char *name) {
  if (value >= graph->value_count) {
    if (!graph->failed) weft_graph_error(graph, NULL, "output '%s' is a value that does not exist", name);
    return;
  }
  weft_value *v = &graph->values[value];
  if (v->producer == WEFT_NONE) {
    weft_graph_error(graph, "copy it with a pointwise op", "'%s' is a source and cannot be output '%s'", v->name, name);
  } else if (v->has_partial) {
    weft_graph_error(graph, "reduce it first", "the partial result '%s' cannot be an output", v->name);
  } else {
    char *copy = weft_arena_string(graph->arena, name, strlen(name));
    if (!copy) {
      graph->failed = graph->out_of_memory = true;
      weft_error_memory(graph->diag);
      return;
    }
    v->name = copy;
    v->role = WEFT_ROLE_OUTPUT;
  }
}
