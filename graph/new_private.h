/* Parts that the sample graphs are built of. Every call returns a value, WEFT_NONE after a message. */
#ifndef WEFT_NEW_PRIVATE_H
#define WEFT_NEW_PRIVATE_H

#include "graph_private.h"

/** A pointwise op, or a reduce, over a body written in postfix order (weft_body_write). */
uint32_t new_pointwise(weft_graph *graph, const char *name, const uint32_t *ins, uint32_t in_count, const char *body);
uint32_t new_reduce(weft_graph *graph, const char *name, const uint32_t *ins, uint32_t in_count, const char *body,
                    weft_pool pool);
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

#endif
