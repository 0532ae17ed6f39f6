/* What an assignment costs on the target: the largest part's work, the bytes a chip lacks, the all-reduce. */
#include "internal.h"

/* Chips looked at for the bytes that must move: enough to meet every kind of neighbour on a mesh. */
#define SAMPLED_CHIPS 32

static uint64_t largest_part(const weft_partitioner *p, const weft_graph_op *op, const weft_assignment *assignment,
                             uint8_t factor, uint64_t extent) {
  if (factor == WEFT_NO_FACTOR) return extent;
  const weft_cut *cut = &assignment->cuts[factor];
  return cut->axis_count ? weft_cut_largest(cut, op->factors[factor].extent, weft_cut_parts(p, cut)) : extent;
}

static double largest_block_bytes(const weft_partitioner *p, const weft_graph_op *op, const weft_assignment *assignment,
                                  const weft_value *value, const uint8_t *factors) {
  double bytes = (double)weft_format_bytes(value->dtype);
  for (uint32_t d = 0; d < value->rank; d++)
    bytes *= (double)largest_part(p, op, assignment, factors[d], value->extents[d]);
  return bytes;
}

static double rate(double per_second) { return per_second > 0 ? per_second : 1e9; }

/* Ops that are pinned because their operands are come in groups, one for each place (heads): the others work meanwhile.
 */
static double work_meanwhile(const weft_partitioner *p, uint32_t op, const weft_assignment *assignment) {
  double places = 1;
  for (uint32_t a = 0; a < p->mesh->axis_count; a++)
    if (assignment->pins[a] != WEFT_NO_PIN && !p->claims[op].axis_by[a]) places *= p->mesh->extents[a];
  return places;
}

/* An op that follows another is its epilogue: it costs arithmetic, and no pass over memory or section of its own. */
static void cost_compute(const weft_partitioner *p, uint32_t op, const weft_assignment *assignment, weft_cost *cost) {
  const weft_graph_op *node = &p->graph->ops[op];
  const weft_value *values = p->graph->values;
  bool gathers = node->kind == WEFT_GRAPH_GATHER; // reads as many rows as it gives, not the table
  double flops = node->kind == WEFT_GRAPH_MATMUL ? 2 : 1, bytes = 0;
  for (uint8_t f = 0; f < node->factor_count; f++)
    if (!gathers || !node->factors[f].reduce)
      flops *= (double)largest_part(p, node, assignment, f, node->factors[f].extent);
  for (uint32_t i = 0; i < node->in_count; i++) {
    double operand = largest_block_bytes(p, node, assignment, &values[node->ins[i]], node->in_factors[i]);
    if (values[node->ins[i]].producer == WEFT_NONE) cost->bytes += operand;
    if (!gathers || i) bytes += operand;
  }
  double result = largest_block_bytes(p, node, assignment, &values[node->out], node->out_factors);
  cost->bytes += result;
  double work = flops / rate(p->target->flops_per_second[values[node->ins[0]].dtype]);
  double traffic = (bytes + result) / rate(p->target->dram_bytes_per_second);
  bool own_section = weft_is_choice(p, op);
  cost->compute = own_section ? (work > traffic ? work : traffic) + p->target->op_seconds : work;
  cost->compute /= work_meanwhile(p, op, assignment);
}

static bool runs_at(const weft_partitioner *p, const weft_graph_op *op, const weft_assignment *assignment,
                    uint32_t chip) {
  weft_block block;
  if (!weft_result_block(p, op, assignment, chip, &block)) return false;
  const weft_cut *reduce = weft_reduce_cut(p, op, assignment);
  if (!reduce) return true;
  uint64_t begin, end;
  return weft_cut_range(reduce, op->factors[weft_reduce_factor(op)].extent, weft_cut_parts(p, reduce),
                        weft_cut_part(p, reduce, chip), &begin, &end);
}

/* What the worst sampled chip lacks of an operand. */
typedef struct shortage {
  uint64_t elements; /* that it must receive */
  uint64_t pieces;   /* in so many messages */
  bool cuts;         /* some chip cuts its block out of what it holds */
} shortage;

/* The chips that hold parts of a block. */
static uint64_t pieces_of(const weft_partitioner *p, const weft_graph_op *maker, const weft_assignment *made,
                          const weft_block *block) {
  uint64_t pieces = 1;
  for (uint32_t d = 0; d < block->rank; d++) {
    uint8_t factor = maker->out_factors[d];
    if (factor == WEFT_NO_FACTOR || made->cuts[factor].axis_count == 0 || block->end[d] == block->begin[d]) continue;
    uint64_t extent = maker->factors[factor].extent;
    uint32_t parts = weft_cut_parts(p, &made->cuts[factor]);
    pieces *= weft_cut_part_of(&made->cuts[factor], extent, parts, block->end[d] - 1) -
              weft_cut_part_of(&made->cuts[factor], extent, parts, block->begin[d]) + 1;
  }
  return pieces;
}

static shortage worst_shortage(const weft_partitioner *p, uint32_t op, uint32_t operand, const weft_assignment *made,
                               const weft_assignment *assignment) {
  const weft_graph_op *node = &p->graph->ops[op];
  const weft_graph_op *maker = &p->graph->ops[p->graph->values[node->ins[operand]].producer];
  uint32_t samples = (uint32_t)weft_min_u64(p->chips, SAMPLED_CHIPS);
  shortage worst = {0};
  for (uint32_t s = 0; s < samples; s++) {
    uint32_t chip = (uint32_t)((uint64_t)p->chips * s / samples);
    if (!runs_at(p, node, assignment, chip)) continue;
    weft_block need, have;
    weft_operand_block(p, node, assignment, operand, chip, &need);
    bool here = weft_result_block(p, maker, made, chip, &have);
    uint64_t shared = here ? weft_block_shared(&need, &have) : 0, missing = weft_block_volume(&need) - shared;
    worst.elements = weft_max_u64(worst.elements, missing);
    if (missing > 0) worst.pieces = weft_max_u64(worst.pieces, pieces_of(p, maker, made, &need) - (shared > 0));
    worst.cuts |= here && missing == 0 && !weft_block_equal(&need, &have);
  }
  return worst;
}

static void cost_gather(const weft_partitioner *p, uint32_t op, uint32_t operand, const weft_assignment *made,
                        const weft_assignment *assignment, weft_cost *cost) {
  const weft_graph_op *node = &p->graph->ops[op];
  const weft_value *value = &p->graph->values[node->ins[operand]];
  shortage worst = worst_shortage(p, op, operand, made, assignment);
  double block = largest_block_bytes(p, node, assignment, value, node->in_factors[operand]);
  if (worst.elements > 0)
    cost->gather +=
        (double)worst.elements * (double)weft_format_bytes(value->dtype) / rate(p->target->link_bytes_per_second) +
        (double)worst.pieces * p->target->link_latency_seconds + p->target->op_seconds;
  else if (worst.cuts && node->kind != WEFT_GRAPH_SLICE)
    cost->gather += 2 * block / rate(p->target->dram_bytes_per_second) + p->target->op_seconds;
  if (worst.elements > 0 || (worst.cuts && node->kind != WEFT_GRAPH_SLICE)) cost->bytes += block;
}

/* Every holder exchanges slices with every other, folds its own and hands it back. */
static void cost_reduce(const weft_partitioner *p, const weft_graph_op *op, const weft_assignment *assignment,
                        weft_cost *cost) {
  const weft_cut *cut = weft_reduce_cut(p, op, assignment);
  if (!cut) return;
  const weft_value *out = &p->graph->values[op->out];
  double holders = (double)weft_min_u64(cut->segments, weft_cut_parts(p, cut));
  double bytes = largest_block_bytes(p, op, assignment, out, op->out_factors) / (double)weft_format_bytes(out->dtype) *
                 (double)weft_format_bytes(weft_partial_format(p->graph, op));
  cost->reduce = 2 * (holders - 1) / holders * bytes / rate(p->target->link_bytes_per_second) +
                 2 * (holders - 1) * p->target->link_latency_seconds + bytes / rate(p->target->dram_bytes_per_second) +
                 p->target->op_seconds;
  cost->bytes += bytes;
}

void weft_cost_of(const weft_partitioner *p, uint32_t op, const weft_assignment *const *plan,
                  const weft_assignment *assignment, weft_cost *cost) {
  const weft_graph_op *node = &p->graph->ops[op];
  *cost = (weft_cost){0};
  cost_compute(p, op, assignment, cost);
  for (uint32_t i = 0; i < node->in_count; i++) {
    uint32_t producer = p->graph->values[node->ins[i]].producer;
    if (producer != WEFT_NONE && plan[producer]) cost_gather(p, op, i, plan[producer], assignment, cost);
  }
  cost_reduce(p, node, assignment, cost);
}
