/* Planes, blocks and factors: how the dimensions of values map to each other. */
#include "graph_private.h"

#include <stdio.h>
#include <string.h>

weft_plane weft_graph_plane(uint32_t rank, const uint64_t *extents) {
  weft_plane plane = {0};
  weft_plane_extents(rank, extents, &plane.rows, &plane.cols);
  plane.rows_t = weft_ceil_div(plane.rows, WEFT_GRAPH_TILE);
  plane.cols_t = weft_ceil_div(plane.cols, WEFT_GRAPH_TILE);
  return plane;
}

weft_plane weft_value_plane(const weft_value *value) { return weft_graph_plane(value->rank, value->extents); }

uint64_t weft_value_elements(const weft_value *value) {
  uint64_t elements = 1;
  for (uint32_t d = 0; d < value->rank; d++) elements *= value->extents[d];
  return elements;
}

bool weft_extents_fit(uint32_t rank, const uint64_t *extents) {
  // Empty dimensions count as a tile: tile counts and strides are products too.
  const uint64_t limit = (uint64_t)1 << 59;
  uint64_t product = 1;
  for (uint32_t d = 0; d < rank; d++) {
    uint64_t extent = extents[d] ? extents[d] : 1;
    if (weft_mul_overflow(product, extent, &product) || product > limit) return false;
  }
  uint64_t rows = 1;
  for (uint32_t d = 0; d + 1 < rank; d++) rows *= extents[d] ? extents[d] : 1;
  uint64_t cols = rank && extents[rank - 1] ? extents[rank - 1] : 1;
  uint64_t padded;
  return !weft_mul_overflow((rows + 31) / 32 * 32, (cols + 31) / 32 * 32, &padded) && padded <= limit;
}

bool weft_same_extents(const weft_value *a, const weft_value *b) {
  return a->rank == b->rank && memcmp(a->extents, b->extents, a->rank * sizeof a->extents[0]) == 0;
}

weft_extents_text weft_extents_print(uint32_t rank, const uint64_t *extents) {
  weft_extents_text result = {{0}};
  size_t at = 0;
  result.text[at++] = '[';
  for (uint32_t d = 0; d < rank && d < WEFT_MAX_RANK; d++)
    at += (size_t)snprintf(result.text + at, sizeof result.text - at, d ? ", %llu" : "%llu",
                           (unsigned long long)extents[d]);
  result.text[at] = ']';
  return result;
}

bool weft_block_in_plane(uint32_t rank, const uint64_t *whole, const uint64_t *starts, const uint64_t *extents,
                         uint64_t *row0, uint64_t *col0) {
  *row0 = 0;
  *col0 = rank ? starts[rank - 1] : 0;
  if (rank < 2) return true;
  // Rows are contiguous when, from the last folded dimension up, whole ones come first, then one that is cut, then ones
  // of 1.
  bool cut = false;
  uint64_t stride = 1;
  for (uint32_t d = rank - 1; d-- > 0;) {
    if (cut && extents[d] != 1) return false;
    if (extents[d] != whole[d]) cut = true;
    *row0 += starts[d] * stride;
    stride *= whole[d];
  }
  return true;
}

/* ---- factors ------------------------------------------------------------------------------------------------------
 */

static void parallel_factors(weft_graph_op *op, const weft_value *out) {
  op->factor_count = (uint8_t)out->rank;
  for (uint32_t d = 0; d < out->rank; d++) {
    op->factors[d] = (weft_factor){.extent = out->extents[d]};
    op->out_factors[d] = (uint8_t)d;
  }
}

static void matmul_factors(const weft_graph *graph, weft_graph_op *op, uint8_t (*maps)[WEFT_MAX_RANK]) {
  const weft_value *a = &graph->values[op->ins[0]], *out = &graph->values[op->out];
  parallel_factors(op, out);
  uint8_t n = (uint8_t)(out->rank - 1), k = op->factor_count++;
  op->factors[k] = (weft_factor){.extent = a->extents[a->rank - 1], .reduce = true, .pool = WEFT_POOL_SUM};
  for (uint32_t d = 0; d + 1 < a->rank; d++) maps[0][d] = (uint8_t)d;
  maps[0][a->rank - 1] = k;
  maps[1][0] = k;
  maps[1][1] = n;
}

/** Operands aligned at their last dimensions; an extent of 1 against a larger one is a broadcast. */
static void aligned_factors(const weft_graph *graph, weft_graph_op *op, uint8_t (*maps)[WEFT_MAX_RANK]) {
  const weft_value *out = &graph->values[op->out];
  parallel_factors(op, out);
  for (uint32_t i = 0; i < op->in_count; i++) {
    const weft_value *in = &graph->values[op->ins[i]];
    for (uint32_t d = 0; d < in->rank; d++) {
      uint32_t at = out->rank - in->rank + d;
      maps[i][d] = in->extents[d] == out->extents[at] ? (uint8_t)at : WEFT_NO_FACTOR;
    }
  }
}

uint64_t weft_reduce_extent(const weft_graph *graph, const weft_graph_op *op) {
  for (uint32_t i = 0; i < op->in_count; i++) {
    const weft_value *in = &graph->values[op->ins[i]];
    if (in->rank && in->extents[in->rank - 1] != 1) return in->extents[in->rank - 1];
  }
  return 1;
}

/** As aligned_factors, but that the last dimension of the operands walks the factor that is folded. */
static void reduce_factors(const weft_graph *graph, weft_graph_op *op, uint8_t (*maps)[WEFT_MAX_RANK]) {
  const weft_value *out = &graph->values[op->out];
  uint8_t last = (uint8_t)(out->rank - 1);
  parallel_factors(op, out);
  op->out_factors[last] = WEFT_NO_FACTOR;
  op->factors[last] = (weft_factor){.extent = weft_reduce_extent(graph, op), .reduce = true, .pool = op->pool};
  for (uint32_t i = 0; i < op->in_count; i++) {
    const weft_value *in = &graph->values[op->ins[i]];
    for (uint32_t d = 0; d < in->rank; d++) {
      uint32_t at = out->rank - in->rank + d;
      maps[i][d] = in->extents[d] == op->factors[at].extent ? (uint8_t)at : WEFT_NO_FACTOR;
    }
  }
}

static void transpose_factors(const weft_graph *graph, weft_graph_op *op, uint8_t (*maps)[WEFT_MAX_RANK]) {
  parallel_factors(op, &graph->values[op->out]);
  maps[0][0] = 1;
  maps[0][1] = 0;
}

/** The rows of the table are walked by a factor that is folded: every id is in one of its parts. */
static void gather_factors(const weft_graph *graph, weft_graph_op *op, uint8_t (*maps)[WEFT_MAX_RANK]) {
  const weft_value *out = &graph->values[op->out], *table = &graph->values[op->ins[0]];
  parallel_factors(op, out);
  uint8_t row = op->factor_count++;
  op->factors[row] = (weft_factor){.extent = table->extents[0], .reduce = true, .pool = WEFT_POOL_SUM};
  maps[0][0] = row;
  maps[0][1] = (uint8_t)(out->rank - 1);
  for (uint32_t d = 0; d + 1 < out->rank; d++) maps[1][d] = (uint8_t)d;
}

static void update_factors(const weft_graph *graph, weft_graph_op *op, uint8_t (*maps)[WEFT_MAX_RANK]) {
  parallel_factors(op, &graph->values[op->out]);
  maps[0][0] = 0;
  maps[0][1] = 1;
  maps[1][1] = op->axis ? 0 : 1;
}

/** Dimensions that a slice or an assemble leaves whole walk a factor; those it cuts walk none. */
static void block_factors(const weft_graph *graph, weft_graph_op *op, uint8_t (*maps)[WEFT_MAX_RANK]) {
  const weft_value *out = &graph->values[op->out];
  parallel_factors(op, out);
  for (uint32_t i = 0; i < op->in_count; i++) {
    const weft_value *in = &graph->values[op->ins[i]];
    for (uint32_t d = 0; d < out->rank; d++)
      maps[i][d] = in->extents[d] == out->extents[d] ? (uint8_t)d : WEFT_NO_FACTOR;
  }
}

bool weft_graph_factors(weft_graph *graph, weft_graph_op *op) {
  uint8_t(*maps)[WEFT_MAX_RANK] = weft_arena_array(graph->arena, op->in_count, sizeof *maps);
  if (!maps) return false;
  memset(maps, WEFT_NO_FACTOR, op->in_count * sizeof *maps);
  memset(op->out_factors, WEFT_NO_FACTOR, sizeof op->out_factors);
  op->in_factors = (const uint8_t(*)[WEFT_MAX_RANK])maps;
  if (op->kind == WEFT_GRAPH_MATMUL) {
    matmul_factors(graph, op, maps);
  } else if (op->kind == WEFT_GRAPH_REDUCE) {
    reduce_factors(graph, op, maps);
  } else if (op->kind == WEFT_GRAPH_TRANSPOSE) {
    transpose_factors(graph, op, maps);
  } else if (op->kind == WEFT_GRAPH_GATHER) {
    gather_factors(graph, op, maps);
  } else if (op->kind == WEFT_GRAPH_UPDATE) {
    update_factors(graph, op, maps);
  } else if (op->kind == WEFT_GRAPH_SLICE || op->kind == WEFT_GRAPH_ASSEMBLE) {
    block_factors(graph, op, maps);
  } else {
    aligned_factors(graph, op, maps);
  }
  return true;
}
