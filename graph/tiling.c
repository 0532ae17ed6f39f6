/* Whether the pieces of an assemble overlap.
 *
 * A set of boxes tiles a box exactly when their signed corners add up to its signed corners: mixed differences of the
 * sum of their indicator functions and of its indicator agree, and a function is determined by them. */
#include "graph_private.h"

#include <stdlib.h>
#include <string.h>

/** A corner: a coordinate a dimension that is cut, and how often it counts. */
typedef struct corner {
  uint64_t at[WEFT_MAX_RANK];
  int64_t sign;
} corner;

static int by_position(const void *a, const void *b) {
  const corner *x = a, *y = b;
  for (uint32_t d = 0; d < WEFT_MAX_RANK; d++)
    if (x->at[d] != y->at[d]) return x->at[d] < y->at[d] ? -1 : 1;
  return 0;
}

/** Appends the corners of a box over the dimensions `cut`. */
static void add_corners(corner *corners, uint64_t *count, const uint64_t *starts, const uint64_t *extents,
                        const uint32_t *cut, uint32_t cut_count, int64_t sign) {
  for (uint32_t bits = 0; bits < 1u << cut_count; bits++) {
    corner *c = &corners[(*count)++];
    *c = (corner){.sign = sign};
    for (uint32_t d = 0; d < cut_count; d++) {
      bool end = bits >> d & 1;
      c->at[d] = starts[cut[d]] + (end ? extents[cut[d]] : 0);
      if (end) c->sign = -c->sign;
    }
  }
}

static bool cancel(corner *corners, uint64_t count) {
  qsort(corners, count, sizeof *corners, by_position);
  for (uint64_t i = 0; i < count;) {
    int64_t sum = 0;
    uint64_t j = i;
    for (; j < count && by_position(&corners[i], &corners[j]) == 0; j++) sum += corners[j].sign;
    if (sum) return false;
    i = j;
  }
  return true;
}

static bool overlap(const weft_graph *graph, const weft_graph_op *op, uint32_t i, uint32_t j) {
  const weft_value *a = &graph->values[op->ins[i]], *b = &graph->values[op->ins[j]];
  if (!weft_value_elements(a) || !weft_value_elements(b)) return false;
  for (uint32_t d = 0; d < a->rank; d++)
    if (op->starts[i][d] + a->extents[d] <= op->starts[j][d] || op->starts[j][d] + b->extents[d] <= op->starts[i][d])
      return false;
  return true;
}

/** The dimensions that some piece does not span. */
static uint32_t cut_dimensions(const weft_graph *graph, const weft_graph_op *op, uint32_t *cut) {
  const weft_value *out = &graph->values[op->out];
  uint32_t count = 0;
  for (uint32_t d = 0; d < out->rank; d++) {
    bool cuts = false;
    for (uint32_t i = 0; i < op->in_count && !cuts; i++) cuts = graph->values[op->ins[i]].extents[d] != out->extents[d];
    if (cuts) cut[count++] = d;
  }
  return count;
}

weft_status weft_pieces_overlap(const weft_graph *graph, const weft_graph_op *op, uint32_t *first, uint32_t *second,
                                weft_diag *diag) {
  *first = *second = 0;
  const weft_value *out = &graph->values[op->out];
  uint32_t cut[WEFT_MAX_RANK], cut_count = cut_dimensions(graph, op, cut);
  corner *corners = calloc(((size_t)op->in_count + 1) << cut_count, sizeof *corners);
  if (!corners) return weft_error_memory(diag);
  uint64_t count = 0;
  static const uint64_t origin[WEFT_MAX_RANK];
  if (weft_value_elements(out)) add_corners(corners, &count, origin, out->extents, cut, cut_count, -1);
  for (uint32_t i = 0; i < op->in_count; i++) {
    const weft_value *in = &graph->values[op->ins[i]];
    if (weft_value_elements(in)) add_corners(corners, &count, op->starts[i], in->extents, cut, cut_count, 1);
  }
  bool tiles = cancel(corners, count);
  free(corners);
  for (uint32_t i = 0; i < op->in_count && !tiles; i++)
    for (uint32_t j = 0; j < i && *first == *second; j++)
      if (overlap(graph, op, i, j)) {
        *first = j;
        *second = i;
      }
  return WEFT_OK;
}
