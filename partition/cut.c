/* Cuts: how a factor's elements are dealt out to the chips along its axes. */
#include "internal.h"

#include <string.h>

uint32_t weft_cut_parts(const weft_partitioner *p, const weft_cut *cut) {
  uint32_t parts = 1;
  for (uint32_t i = 0; i < cut->axis_count; i++) parts *= p->mesh->extents[cut->axes[i]];
  return parts;
}

static uint32_t coordinate(const weft_partitioner *p, uint32_t chip, uint32_t axis) {
  return chip / p->strides[axis] % p->mesh->extents[axis];
}

uint32_t weft_cut_part(const weft_partitioner *p, const weft_cut *cut, uint32_t chip) {
  uint32_t part = 0;
  for (uint32_t i = 0; i < cut->axis_count; i++)
    part = part * p->mesh->extents[cut->axes[i]] + coordinate(p, chip, cut->axes[i]);
  return part;
}

uint32_t weft_cut_chip(const weft_partitioner *p, const weft_cut *cut, uint32_t part, uint32_t chip) {
  for (uint32_t i = cut->axis_count; i-- > 0;) {
    uint32_t axis = cut->axes[i], extent = p->mesh->extents[axis];
    chip = chip - coordinate(p, chip, axis) * p->strides[axis] + part % extent * p->strides[axis];
    part /= extent;
  }
  return chip;
}

bool weft_cut_range(const weft_cut *cut, uint64_t extent, uint32_t parts, uint32_t part, uint64_t *begin,
                    uint64_t *end) {
  if (cut->segments) {
    uint32_t first = (uint32_t)((uint64_t)cut->segments * part / parts);
    uint32_t last = (uint32_t)((uint64_t)cut->segments * (part + 1) / parts);
    *begin = weft_segment_begin(extent, cut->segments, first);
    *end = weft_segment_begin(extent, cut->segments, last);
    return last > first;
  }
  uint64_t size = weft_ceil_div(extent, parts);
  *begin = weft_min_u64(extent, size * part);
  *end = weft_min_u64(extent, *begin + size);
  return *end > *begin || (extent == 0 && part == 0);
}

uint64_t weft_cut_largest(const weft_cut *cut, uint64_t extent, uint32_t parts) {
  if (!cut->segments) return weft_ceil_div(extent, parts);
  uint64_t units = weft_ceil_div(extent, WEFT_UNIT);
  uint64_t segments = weft_ceil_div(cut->segments, parts);
  return weft_min_u64(extent, segments * weft_ceil_div(units, cut->segments) * WEFT_UNIT);
}

uint32_t weft_cut_part_of(const weft_cut *cut, uint64_t extent, uint32_t parts, uint64_t index) {
  if (!cut->segments) return (uint32_t)(index / weft_ceil_div(extent, parts));
  uint32_t low = 0, high = parts;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    uint64_t begin, end;
    weft_cut_range(cut, extent, parts, middle, &begin, &end);
    if (begin <= index)
      low = middle;
    else
      high = middle;
  }
  return low;
}

bool weft_cut_equal(const weft_cut *a, const weft_cut *b) {
  return a->axis_count == b->axis_count && a->segments == b->segments && memcmp(a->axes, b->axes, a->axis_count) == 0;
}

bool weft_assignment_uses(const weft_assignment *assignment, uint32_t axis) {
  if (assignment->pins[axis] != WEFT_NO_PIN) return true;
  for (uint32_t f = 0; f < WEFT_MAX_FACTORS; f++)
    if (memchr(assignment->cuts[f].axes, (int)axis, assignment->cuts[f].axis_count)) return true;
  return false;
}

bool weft_assignment_equal(const weft_assignment *a, const weft_assignment *b) {
  for (uint32_t f = 0; f < WEFT_MAX_FACTORS; f++)
    if (!weft_cut_equal(&a->cuts[f], &b->cuts[f])) return false;
  return memcmp(a->pins, b->pins, sizeof a->pins) == 0;
}

bool weft_assignment_pinned_here(const weft_partitioner *p, const weft_assignment *assignment, uint32_t chip) {
  for (uint32_t a = 0; a < p->mesh->axis_count; a++)
    if (assignment->pins[a] != WEFT_NO_PIN && coordinate(p, chip, a) != assignment->pins[a]) return false;
  return true;
}

uint8_t weft_reduce_factor(const weft_graph_op *op) {
  for (uint8_t f = 0; f < op->factor_count; f++)
    if (op->factors[f].reduce) return f;
  return WEFT_NO_FACTOR;
}

/* Whether the order of the fold matters: a sum of floats. */
static bool folds_floats(const weft_graph *graph, const weft_graph_op *op) {
  if (op->kind == WEFT_GRAPH_GATHER) return false; // one of the terms is a number, the others are -0
  if (op->kind == WEFT_GRAPH_REDUCE)
    return op->pool == WEFT_POOL_SUM && weft_format_is_float(graph->values[op->out].dtype);
  return weft_format_is_float(graph->values[op->ins[0]].dtype);
}

weft_format weft_partial_format(const weft_graph *graph, const weft_graph_op *op) {
  if (op->kind == WEFT_GRAPH_MATMUL) return weft_acc_format(op->acc);
  return weft_format_is_float(graph->values[op->out].dtype) ? WEFT_FP32 : WEFT_INT64;
}

uint32_t weft_reduce_segments(const weft_graph *graph, const weft_graph_op *op) {
  uint64_t extent = op->factors[weft_reduce_factor(op)].extent;
  uint32_t segments = folds_floats(graph, op) ? op->segments : WEFT_MAX_SEGMENTS;
  return weft_segments_effective(extent, segments ? segments : 1);
}

bool weft_reduce_is_chain(const weft_graph *graph, const weft_graph_op *op) {
  if (op->kind == WEFT_GRAPH_MATMUL && op->in_count > 2) return true; // where K ends is not known yet
  // A row sum in one segment is no chain: it adds in lanes.
  bool whole = op->kind == WEFT_GRAPH_REDUCE ? op->segments == 0 : op->segments <= 1;
  return folds_floats(graph, op) && whole && weft_segments_for(op->factors[weft_reduce_factor(op)].extent) > 1;
}

const weft_cut *weft_reduce_cut(const weft_partitioner *p, const weft_graph_op *op, const weft_assignment *assignment) {
  uint8_t factor = weft_reduce_factor(op);
  if (factor == WEFT_NO_FACTOR) return NULL;
  const weft_cut *cut = &assignment->cuts[factor];
  return weft_cut_parts(p, cut) > 1 ? cut : NULL;
}
