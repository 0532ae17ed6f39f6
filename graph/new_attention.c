/* Heads: rotations, attention of one key, and moving heads between columns and rows. */
#include "new_private.h"

#include <math.h>

uint32_t new_assemble(weft_graph *graph, const char *name, const new_block *blocks, uint32_t count, uint64_t rows,
                      uint64_t cols) {
  uint64_t(*starts)[WEFT_MAX_RANK] = weft_arena_array(graph->arena, count, sizeof *starts);
  uint32_t *ins = WEFT_NEW_ARRAY(graph->arena, uint32_t, count);
  if (!starts || !ins) return WEFT_NONE;
  for (uint32_t i = 0; i < count; i++) {
    const new_block *b = &blocks[i];
    const weft_value *value = b->value < graph->value_count ? &graph->values[b->value] : NULL;
    const uint64_t at[] = {b->row, b->col}, extents[] = {b->rows, b->cols};
    bool whole = value && value->rank == 2 && value->extents[0] == b->rows && value->extents[1] == b->cols;
    const char *part = weft_arena_printf(graph->arena, "%s.part%u", name, i);
    ins[i] = whole ? b->value : weft_graph_slice(graph, part, b->value, at, extents);
    starts[i][0] = b->to_row;
    starts[i][1] = b->to_col;
  }
  const uint64_t extents[] = {rows, cols};
  return weft_graph_assemble(graph, name, ins, count, (const uint64_t(*)[WEFT_MAX_RANK])starts, 2, extents);
}

new_rotation new_rotation_of(weft_graph *graph, const char *prefix, uint32_t cos, uint32_t sin, uint64_t tokens,
                             uint64_t size, uint64_t heads) {
  uint64_t half = size / 2;
  uint32_t minus = new_pointwise(graph, new_name(graph, prefix, "minus_sin"), &sin, 1, "$0 -1 mul");
  new_block *blocks = WEFT_NEW_ARRAY(graph->arena, new_block, 4 * heads);
  if (!blocks) return (new_rotation){WEFT_NONE, WEFT_NONE};
  for (uint64_t i = 0; i < 2 * heads; i++) {
    blocks[i] = (new_block){cos, 0, 0, tokens, half, 0, i * half};
    blocks[2 * heads + i] = (new_block){i % 2 ? sin : minus, 0, 0, tokens, half, 0, i * half};
  }
  uint32_t count = (uint32_t)(2 * heads);
  uint32_t both = new_assemble(graph, new_name(graph, prefix, "cos"), blocks, count, tokens, heads * size);
  uint32_t signed_sin =
      new_assemble(graph, new_name(graph, prefix, "sin"), blocks + count, count, tokens, heads * size);
  return (new_rotation){both, signed_sin};
}

uint32_t new_rotated(weft_graph *graph, const char *prefix, uint32_t x, uint64_t tokens, uint64_t size, uint64_t heads,
                     new_rotation rotation) {
  const uint64_t half = size / 2;
  new_block *swapped = WEFT_NEW_ARRAY(graph->arena, new_block, 2 * heads);
  if (!swapped) return WEFT_NONE;
  for (uint64_t i = 0; i < 2 * heads; i++) swapped[i] = (new_block){x, 0, (i ^ 1) * half, tokens, half, 0, i * half};
  uint32_t other =
      new_assemble(graph, new_name(graph, prefix, "swapped"), swapped, (uint32_t)(2 * heads), tokens, heads * size);
  const uint32_t ins[] = {x, other, rotation.cos, rotation.sin};
  return new_pointwise(graph, new_name(graph, prefix, "rotated"), ins, 4, "$0 $2 mul $1 $3 mul add");
}

uint32_t new_queries(weft_graph *graph, const char *prefix, uint32_t q, const new_heads *shape, uint64_t key) {
  const uint64_t t = shape->tokens, size = shape->size, group = shape->heads / shape->kv_heads;
  new_block *blocks = WEFT_NEW_ARRAY(graph->arena, new_block, group);
  if (!blocks) return WEFT_NONE;
  for (uint64_t i = 0; i < group; i++) blocks[i] = (new_block){q, 0, (key * group + i) * size, t, size, i * t, 0};
  return new_assemble(graph, new_name(graph, prefix, "queries"), blocks, (uint32_t)group, group * t, size);
}

uint32_t new_attention(weft_graph *graph, const char *prefix, uint32_t queries, uint32_t keys, uint32_t values,
                       uint32_t bounds, uint32_t up_to, uint64_t size) {
  uint32_t scores = weft_graph_matmul(graph, new_name(graph, prefix, "scores"), queries, keys);
  const char *body =
      weft_arena_printf(graph->arena, "$0 %.17g mul -inf collt:$1", 1.0 / sqrt((double)(size ? size : 1)));
  const uint32_t bounded[] = {scores, bounds};
  uint32_t masked = new_pointwise(graph, new_name(graph, prefix, "masked"), bounded, 2, body ? body : "");
  weft_format dtype = values < graph->value_count ? graph->values[values].dtype : WEFT_FP32;
  uint32_t weights = new_as(graph, new_softmax(graph, prefix, masked), dtype);
  const char *name = new_name(graph, prefix, "mixed");
  return up_to == WEFT_NONE ? weft_graph_matmul(graph, name, weights, values)
                            : weft_graph_matmul_up_to(graph, name, weights, values, up_to);
}

uint32_t new_concat_heads(weft_graph *graph, const char *name, const uint32_t *by_key, const new_heads *shape) {
  const uint64_t group = shape->kv_heads ? shape->heads / shape->kv_heads : 0, t = shape->tokens, size = shape->size;
  new_block *blocks = WEFT_NEW_ARRAY(graph->arena, new_block, shape->heads);
  if (!blocks || !group) return WEFT_NONE;
  for (uint64_t h = 0; h < shape->heads; h++)
    blocks[h] = (new_block){by_key[h / group], h % group * t, 0, t, size, 0, h * size};
  return new_assemble(graph, name, blocks, (uint32_t)shape->heads, t, shape->heads * size);
}
