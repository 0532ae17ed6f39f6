/* Norms, softmax and the gated network, which sample graphs are built of. */
#include "new_private.h"

const char *new_name(weft_graph *graph, const char *prefix, const char *name) {
  const char *made =
      *prefix ? weft_arena_printf(graph->arena, "%s.%s", prefix, name) : weft_arena_printf(graph->arena, "%s", name);
  return made ? made : name;
}

uint32_t new_pointwise(weft_graph *graph, const char *name, const uint32_t *ins, uint32_t in_count, const char *body) {
  weft_body nodes = weft_body_write(graph->arena, body);
  return weft_graph_pointwise(graph, name, ins, in_count, &nodes, WEFT_FP32);
}

uint32_t new_reduce(weft_graph *graph, const char *name, const uint32_t *ins, uint32_t in_count, const char *body,
                    weft_pool pool) {
  weft_body nodes = weft_body_write(graph->arena, body);
  weft_format dtype = pool == WEFT_POOL_ARG_MAX ? WEFT_INT32 : WEFT_FP32;
  return weft_graph_reduce(graph, name, ins, in_count, &nodes, pool, dtype);
}

uint32_t new_as(weft_graph *graph, uint32_t value, weft_format dtype) {
  if (value != WEFT_NONE && dtype != WEFT_FP32) weft_graph_store_as(graph, value, dtype);
  return value;
}

/** The last extent of a value; 1 when there is none. */
static uint64_t width_of(const weft_graph *graph, uint32_t value) {
  if (value >= graph->value_count || !graph->values[value].rank) return 1;
  return graph->values[value].extents[graph->values[value].rank - 1];
}

static const char *rsqrt_body(weft_graph *graph, const char *format, uint64_t eps_nano, uint64_t over) {
  const char *body =
      weft_arena_printf(graph->arena, format, (unsigned long long)eps_nano, (unsigned long long)(over ? over : 1));
  return body ? body : "";
}

uint32_t new_rms_norm(weft_graph *graph, const char *prefix, uint32_t x, uint32_t gain, uint64_t eps_nano) {
  uint32_t squares = new_reduce(graph, new_name(graph, prefix, "squares"), &x, 1, "$0 $0 mul", WEFT_POOL_SUM);
  const char *body = rsqrt_body(graph, "$0 $1 rsqrt:%llu:%llu mul $2 mul", eps_nano, width_of(graph, x));
  return new_pointwise(graph, new_name(graph, prefix, "norm"), (const uint32_t[]){x, squares, gain}, 3, body);
}

uint32_t new_layer_norm(weft_graph *graph, const char *prefix, uint32_t x, uint32_t gain, uint32_t shift,
                        uint64_t eps_nano) {
  uint64_t width = width_of(graph, x);
  uint32_t sum = new_reduce(graph, new_name(graph, prefix, "sum"), &x, 1, "$0", WEFT_POOL_SUM);
  const char *mean = weft_arena_printf(graph->arena, "$0 $1 %llu div sub", (unsigned long long)(width ? width : 1));
  const uint32_t centred[] = {x, sum};
  uint32_t y = new_pointwise(graph, new_name(graph, prefix, "centred"), centred, 2, mean ? mean : "");
  uint32_t squares = new_reduce(graph, new_name(graph, prefix, "squares"), &y, 1, "$0 $0 mul", WEFT_POOL_SUM);
  const char *body = rsqrt_body(graph, "$0 $1 rsqrt:%llu:%llu mul $2 mul $3 add", eps_nano, width);
  return new_pointwise(graph, new_name(graph, prefix, "norm"), (const uint32_t[]){y, squares, gain, shift}, 4, body);
}

uint32_t new_softmax(weft_graph *graph, const char *prefix, uint32_t x) {
  uint32_t most = new_reduce(graph, new_name(graph, prefix, "max"), &x, 1, "$0", WEFT_POOL_MAX);
  const uint32_t shifted[] = {x, most};
  uint32_t power = new_pointwise(graph, new_name(graph, prefix, "exp"), shifted, 2, "$0 $1 sub exp");
  uint32_t sum = new_reduce(graph, new_name(graph, prefix, "sum"), &power, 1, "$0", WEFT_POOL_SUM);
  return new_pointwise(graph, new_name(graph, prefix, "softmax"), (const uint32_t[]){power, sum}, 2, "$0 $1 div");
}

uint32_t new_gated_mlp(weft_graph *graph, const char *prefix, uint32_t x, uint32_t gate, uint32_t up, uint32_t down) {
  uint32_t g = weft_graph_matmul(graph, new_name(graph, prefix, "gate"), x, gate);
  uint32_t u = weft_graph_matmul(graph, new_name(graph, prefix, "up"), x, up);
  uint32_t h = new_pointwise(graph, new_name(graph, prefix, "hidden"), (const uint32_t[]){g, u}, 2, "$0 silu $1 mul");
  h = new_as(graph, h, down < graph->value_count ? graph->values[down].dtype : WEFT_FP32);
  return weft_graph_matmul(graph, new_name(graph, prefix, "down"), h, down);
}
