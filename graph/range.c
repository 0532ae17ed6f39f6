/* Ranges of integer values by interval arithmetic: what the builder chooses accumulators from. */
#include "graph_private.h"

__extension__ typedef __int128 wide;

/** Deeper chains are judged by their formats: a value without a clamp has long left them. */
#define RANGE_DEPTH 12

static weft_range format_range(weft_format format) {
  return (weft_range){weft_format_min(format), weft_format_max(format)};
}

static bool inside(weft_range range, weft_range outer) { return range.low >= outer.low && range.high <= outer.high; }

/** The range when both ends fit 64 bits and the format, else the format's. */
static weft_range narrowed(wide low, wide high, weft_format format) {
  weft_range limits = format_range(format);
  if (low < limits.low || high > limits.high) return limits;
  return (weft_range){(int64_t)low, (int64_t)high};
}

static void product(weft_range a, weft_range b, wide *low, wide *high) {
  const wide ends[] = {(wide)a.low * b.low, (wide)a.low * b.high, (wide)a.high * b.low, (wide)a.high * b.high};
  *low = *high = ends[0];
  for (int i = 1; i < 4; i++) {
    if (ends[i] < *low) *low = ends[i];
    if (ends[i] > *high) *high = ends[i];
  }
}

static weft_range range_at(const weft_graph *graph, uint32_t id, int depth);

static weft_range matmul_range(const weft_graph *graph, const weft_graph_op *op, weft_format format, int depth) {
  const weft_value *a = &graph->values[op->ins[0]];
  wide low, high;
  product(range_at(graph, op->ins[0], depth), range_at(graph, op->ins[1], depth), &low, &high);
  uint64_t k = a->extents[a->rank - 1];
  // |low|, |high| <= 2^126: K past 2^32 would not fit, and neither would any format.
  if (k > UINT32_MAX && (low || high)) return format_range(format);
  const wide limit = (wide)1 << 64;
  if (low < -limit || high > limit) return format_range(format);
  return narrowed(low * (wide)k, high * (wide)k, format);
}

static weft_range requant_range(weft_range x, const weft_graph_op *op, weft_format format) {
  wide low, high;
  product(x, (weft_range){op->m, op->m}, &low, &high);
  if (low < INT64_MIN || high > INT64_MAX) return format_range(format);
  return narrowed(low >> op->s, high >> op->s, format);
}

static weft_range range_at(const weft_graph *graph, uint32_t id, int depth) {
  const weft_value *value = &graph->values[id];
  weft_range limits = format_range(value->dtype);
  if (value->has_range && inside(value->range, limits)) return value->range;
  if (value->producer == WEFT_NONE || depth == 0) return limits;
  const weft_graph_op *op = &graph->ops[value->producer];
  bool indices = op->kind == WEFT_GRAPH_REDUCE && op->pool == WEFT_POOL_ARG_MAX;
  if (weft_format_is_float(graph->values[op->ins[0]].dtype) && !indices) return limits;
  if (op->kind == WEFT_GRAPH_MATMUL) return matmul_range(graph, op, value->dtype, depth - 1);
  weft_range x = range_at(graph, op->ins[0], depth - 1);
  switch (op->kind) {
  case WEFT_GRAPH_BIAS: {
    weft_range b = range_at(graph, op->ins[1], depth - 1);
    return narrowed((wide)x.low + b.low, (wide)x.high + b.high, value->dtype);
  }
  case WEFT_GRAPH_RELU: return narrowed(x.low > 0 ? x.low : 0, x.high > 0 ? x.high : 0, value->dtype);
  case WEFT_GRAPH_REQUANT: return requant_range(x, op, value->dtype);
  case WEFT_GRAPH_CLAMP: {
    int64_t low = x.low < op->low ? op->low : x.low > op->high ? op->high : x.low;
    int64_t high = x.high < op->low ? op->low : x.high > op->high ? op->high : x.high;
    return narrowed(low, high, value->dtype);
  }
  case WEFT_GRAPH_SLICE: return narrowed(x.low, x.high, value->dtype);
  case WEFT_GRAPH_REDUCE: {
    uint64_t extent = weft_reduce_extent(graph, op);
    if (op->pool != WEFT_POOL_ARG_MAX || !extent) return limits;
    return narrowed(0, (wide)extent - 1, value->dtype);
  }
  default: return limits;
  }
}

weft_range weft_value_range(const weft_graph *graph, uint32_t value) { return range_at(graph, value, RANGE_DEPTH); }
