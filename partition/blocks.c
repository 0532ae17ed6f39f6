/* Blocks: what a chip needs of an operand and holds of a result. */
#include "internal.h"

/* One dimension walking `factor`. Returns whether the chip's part is there. */
static bool dimension_range(const weft_partitioner *p, const weft_graph_op *op, const weft_assignment *assignment,
                            uint8_t factor, uint64_t extent, uint32_t chip, uint64_t *begin, uint64_t *end) {
  *begin = 0;
  *end = extent;
  if (factor == WEFT_NO_FACTOR) return true;
  const weft_cut *cut = &assignment->cuts[factor];
  if (cut->axis_count == 0) return true;
  return weft_cut_range(cut, op->factors[factor].extent, weft_cut_parts(p, cut), weft_cut_part(p, cut, chip), begin,
                        end);
}

/* What a slice or an assemble moves to the chip's block of the result: nothing of a piece that lies elsewhere. */
static void moved_block(const weft_partitioner *p, const weft_graph_op *op, const weft_assignment *assignment,
                        uint32_t operand, uint32_t chip, weft_block *block) {
  const weft_value *value = &p->graph->values[op->ins[operand]];
  weft_block result;
  weft_result_block(p, op, assignment, chip, &result);
  for (uint32_t d = 0; d < value->rank; d++) {
    uint64_t start = op->starts[operand][d];
    if (op->kind == WEFT_GRAPH_SLICE) {
      block->begin[d] = start + result.begin[d];
      block->end[d] = start + result.end[d];
      continue;
    }
    uint64_t begin = weft_max_u64(start, result.begin[d]);
    uint64_t end = weft_min_u64(start + value->extents[d], result.end[d]);
    block->begin[d] = begin - start;
    block->end[d] = end > begin ? end - start : begin - start;
  }
}

void weft_operand_block(const weft_partitioner *p, const weft_graph_op *op, const weft_assignment *assignment,
                        uint32_t operand, uint32_t chip, weft_block *block) {
  const weft_value *value = &p->graph->values[op->ins[operand]];
  block->rank = value->rank;
  if (op->kind == WEFT_GRAPH_SLICE || op->kind == WEFT_GRAPH_ASSEMBLE) {
    moved_block(p, op, assignment, operand, chip, block);
    return;
  }
  for (uint32_t d = 0; d < value->rank; d++)
    dimension_range(p, op, assignment, op->in_factors[operand][d], value->extents[d], chip, &block->begin[d],
                    &block->end[d]);
}

bool weft_result_block(const weft_partitioner *p, const weft_graph_op *op, const weft_assignment *assignment,
                       uint32_t chip, weft_block *block) {
  const weft_value *value = &p->graph->values[op->out];
  bool here = weft_assignment_pinned_here(p, assignment, chip);
  block->rank = value->rank;
  for (uint32_t d = 0; d < value->rank; d++)
    if (!dimension_range(p, op, assignment, op->out_factors[d], value->extents[d], chip, &block->begin[d],
                         &block->end[d]))
      here = false;
  return here;
}

bool weft_block_equal(const weft_block *a, const weft_block *b) {
  if (a->rank != b->rank) return false;
  for (uint32_t d = 0; d < a->rank; d++)
    if (a->begin[d] != b->begin[d] || a->end[d] != b->end[d]) return false;
  return true;
}

bool weft_block_inside(const weft_block *inner, const weft_block *outer) {
  for (uint32_t d = 0; d < inner->rank; d++)
    if (inner->begin[d] < outer->begin[d] || inner->end[d] > outer->end[d]) return false;
  return true;
}

uint64_t weft_block_volume(const weft_block *block) {
  uint64_t volume = 1;
  for (uint32_t d = 0; d < block->rank; d++)
    if (weft_mul_overflow(volume, block->end[d] - block->begin[d], &volume)) return UINT64_MAX;
  return volume;
}

uint64_t weft_block_shared(const weft_block *a, const weft_block *b) {
  uint64_t volume = 1;
  for (uint32_t d = 0; d < a->rank; d++) {
    uint64_t begin = weft_max_u64(a->begin[d], b->begin[d]), end = weft_min_u64(a->end[d], b->end[d]);
    if (end <= begin) return 0;
    if (weft_mul_overflow(volume, end - begin, &volume)) return UINT64_MAX;
  }
  return volume;
}

void weft_block_whole(const weft_value *value, weft_block *block) {
  block->rank = value->rank;
  for (uint32_t d = 0; d < value->rank; d++) block->begin[d] = 0, block->end[d] = value->extents[d];
}

/* A plane folds all dimensions but the last into rows, so rows are a rectangle when the dimensions before the first
 * real range are single indices and those after it are whole. */
void weft_block_to_plane(const weft_value *value, weft_block *block) {
  uint32_t rows = value->rank ? value->rank - 1 : 0, d = 0;
  while (d < rows && block->end[d] - block->begin[d] == 1) d++;
  for (d++; d < rows; d++) block->begin[d] = 0, block->end[d] = value->extents[d];
}
