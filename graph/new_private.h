/* Parts that the sample graphs are built of. Every call returns a value, WEFT_NONE after a message. */
#ifndef WEFT_NEW_PRIVATE_H
#define WEFT_NEW_PRIVATE_H

#include "graph_private.h"

/** A pointwise op, or a reduce, over a body written in postfix order (weft_body_write). */
uint32_t new_pointwise(weft_graph *graph, const char *name, const uint32_t *ins, uint32_t in_count, const char *body);
uint32_t new_reduce(weft_graph *graph, const char *name, const uint32_t *ins, uint32_t in_count, const char *body,
                    weft_pool pool);
/** The value in the float format of what it is to be multiplied with: rounded once where it is made. */
uint32_t new_as(weft_graph *graph, uint32_t value, weft_format dtype);
/** "prefix.name" in the graph's arena; never NULL, the arena remembers a failure. */
const char *new_name(weft_graph *graph, const char *prefix, const char *name);

/** x / sqrt(mean(x * x) + eps) * gain over the last axis; gain is a row. */
uint32_t new_rms_norm(weft_graph *graph, const char *prefix, uint32_t x, uint32_t gain, uint64_t eps_nano);
/** (x - mean) / sqrt(variance + eps) * gain + shift. */
uint32_t new_layer_norm(weft_graph *graph, const char *prefix, uint32_t x, uint32_t gain, uint32_t shift,
                        uint64_t eps_nano);
/** exp(x - max) / sum over the last axis. */
uint32_t new_softmax(weft_graph *graph, const char *prefix, uint32_t x);
/** (silu(x @ gate) * (x @ up)) @ down. */
uint32_t new_gated_mlp(weft_graph *graph, const char *prefix, uint32_t x, uint32_t gate, uint32_t up, uint32_t down);

/** A block of a matrix and where it goes in another. */
typedef struct new_block {
  uint32_t value;
  uint64_t row, col, rows, cols, to_row, to_col;
} new_block;
/** The rows x cols matrix that the blocks tile. */
uint32_t new_assemble(weft_graph *graph, const char *name, const new_block *blocks, uint32_t count, uint64_t rows,
                      uint64_t cols);

/** How queries, keys and values lie side by side: heads of `size` columns, heads / kv_heads queries to a key. */
typedef struct new_heads {
  uint64_t heads, kv_heads, size;
  uint64_t tokens;  /**< rows of queries */
  uint64_t context; /**< keys there are: columns of scores */
} new_heads;
/** Rotations by position, for heads side by side: cos twice, and -sin beside sin, for each. */
typedef struct new_rotation {
  uint32_t cos, sin;
} new_rotation;
new_rotation new_rotation_of(weft_graph *graph, const char *prefix, uint32_t cos, uint32_t sin, uint64_t tokens,
                             uint64_t size, uint64_t heads);
/** x with each head rotated. */
uint32_t new_rotated(weft_graph *graph, const char *prefix, uint32_t x, uint64_t tokens, uint64_t size, uint64_t heads,
                     new_rotation rotation);
/** The queries of one key below each other: heads / kv_heads * tokens rows. */
uint32_t new_queries(weft_graph *graph, const char *prefix, uint32_t q, const new_heads *shape, uint64_t key);
/** The attention of one key and its queries: softmax(queries @ keys / sqrt(size)) @ values, of the first bounds[row]
 * keys only. queries [rows, size], keys [size, context], values [context, size]. */
uint32_t new_attention(weft_graph *graph, const char *prefix, uint32_t queries, uint32_t keys, uint32_t values,
                       uint32_t bounds, uint32_t up_to, uint64_t size);
/** What the queries of every key give (by key: group rows of tokens), side by side again. */
uint32_t new_concat_heads(weft_graph *graph, const char *name, const uint32_t *by_key, const new_heads *shape);

#endif
