/* Sample graphs for `weft new`. */
#include "graph_private.h"

#include <math.h>
#include <string.h>

typedef struct mlp {
  const weft_mlp_options *options;
  const char *output_name;
  weft_graph *graph;
  weft_arena *names;
} mlp;

static uint32_t layer_total(const weft_mlp_options *options) { return options->layer_count - 1; }

static weft_status check_options(const weft_mlp_options *o, weft_diag *diag) {
  if (o->layer_count < 2)
    return weft_error(diag, WEFT_INVALID, "e.g. 784,256,10", "a network needs at least two widths");
  if (o->dtype != WEFT_FP32 && o->dtype != WEFT_BF16 && o->dtype != WEFT_INT8)
    return weft_error(diag, WEFT_INVALID, "Fp32, Bf16 and Int8 are possible", "a network of %s",
                      weft_format_name(o->dtype));
  if (o->segments > WEFT_MAX_SEGMENTS)
    return weft_error(diag, WEFT_INVALID, NULL, "%u segments; at most %d are possible", o->segments, WEFT_MAX_SEGMENTS);
  if (o->dtype != WEFT_INT8 && (o->requant_count || o->range_count))
    return weft_error(diag, WEFT_INVALID, "use Int8", "requant and ranges are for integers, not for %s",
                      weft_format_name(o->dtype));
  uint32_t layers = layer_total(o);
  if (o->requant_count && o->requant_count != layers && o->requant_count != layers - 1)
    return weft_error(diag, WEFT_INVALID, "give one a layer; the last layer may do without",
                      "%u requants for %u layers", o->requant_count, layers);
  for (uint32_t i = 0; i < o->requant_count; i++)
    if (o->requant_s[i] > 63)
      return weft_error(diag, WEFT_INVALID, NULL, "a requant shift of %u; at most 63 is possible", o->requant_s[i]);
  return WEFT_OK;
}

/** "w2"; never NULL, the arena remembers a failure. */
static const char *numbered(const mlp *m, const char *prefix, uint32_t layer) {
  const char *name = weft_arena_printf(m->names, "%s%u", prefix, layer + 1);
  return name ? name : prefix;
}

static void declare_range(const mlp *m, uint32_t value, int64_t low, int64_t high) {
  if (value == WEFT_NONE) return;
  for (uint32_t i = 0; i < m->options->range_count; i++)
    if (strcmp(m->options->ranges[i].name, m->graph->values[value].name) == 0) {
      low = m->options->ranges[i].low;
      high = m->options->ranges[i].high;
    }
  weft_graph_range(m->graph, value, low, high);
}

static uint32_t add_source(const mlp *m, bool input, const char *name, weft_format dtype, uint32_t rank,
                           const uint64_t *extents) {
  uint32_t value = input ? weft_graph_input(m->graph, name, dtype, rank, extents)
                         : weft_graph_param(m->graph, name, dtype, rank, extents);
  if (dtype == WEFT_INT8) declare_range(m, value, -128, 127);
  if (dtype == WEFT_INT32) declare_range(m, value, -65536, 65536);
  return value;
}

/** m / 2^s that brings sums of the size to be expected of independent factors to the range of Int8. */
static void choose_requant(const mlp *m, uint32_t x, uint32_t w, uint32_t bias, int64_t *multiplier, uint32_t *shift) {
  const weft_graph *graph = m->graph;
  const uint32_t values[] = {x, w, bias};
  double largest[3] = {0};
  for (int i = 0; i < 3; i++) {
    if (values[i] == WEFT_NONE) continue;
    weft_range range = weft_value_range(graph, values[i]);
    largest[i] = fmax(fabs((double)range.low), fabs((double)range.high));
  }
  double k = (double)graph->values[w].extents[0];
  double size = fmax(largest[0] * largest[1] * ceil(sqrt(k)) + largest[2], 1);
  double scale = 127 / size;
  *shift = 0;
  while (scale < 16384 && *shift < 62) {
    scale *= 2;
    ++*shift;
  }
  *multiplier = (int64_t)scale;
}

static bool is_last(const mlp *m, uint32_t layer) { return layer + 1 == layer_total(m->options); }
static bool has_relu(const mlp *m, uint32_t layer) {
  return is_last(m, layer) ? m->options->relu_last : m->options->relu;
}

/** The requantised and clamped form of an integer layer; a last layer without requant stays as it is. */
static uint32_t finish_integers(const mlp *m, uint32_t layer, uint32_t acc, uint32_t x, uint32_t w, uint32_t bias) {
  const weft_mlp_options *o = m->options;
  if (is_last(m, layer) && o->requant_count < layer_total(o))
    return has_relu(m, layer) ? weft_graph_relu(m->graph, numbered(m, "relu", layer), acc) : acc;
  int64_t multiplier = 0;
  uint32_t shift = 0;
  if (o->requant_count) {
    multiplier = o->requant_m[layer];
    shift = o->requant_s[layer];
  } else if (acc != WEFT_NONE) {
    choose_requant(m, x, w, bias, &multiplier, &shift);
  }
  uint32_t scaled = weft_graph_requant(m->graph, numbered(m, "requant", layer), acc, multiplier, shift);
  return weft_graph_clamp(m->graph, numbered(m, "clamp", layer), scaled, has_relu(m, layer) ? 0 : -128, 127, WEFT_INT8);
}

static uint32_t finish_floats(const mlp *m, uint32_t layer, uint32_t y) {
  if (has_relu(m, layer)) y = weft_graph_relu(m->graph, numbered(m, "relu", layer), y);
  if (m->options->dtype == WEFT_BF16 && !is_last(m, layer)) weft_graph_store_as(m->graph, y, WEFT_BF16);
  return y;
}

static uint32_t add_layer(const mlp *m, uint32_t layer, uint32_t x) {
  const weft_mlp_options *o = m->options;
  weft_graph *graph = m->graph;
  const uint64_t extents[] = {o->layers[layer], o->layers[layer + 1]};
  uint32_t w = add_source(m, false, numbered(m, "w", layer), o->dtype, 2, extents), bias = WEFT_NONE;
  if (o->bias)
    bias =
        add_source(m, false, numbered(m, "b", layer), o->dtype == WEFT_INT8 ? WEFT_INT32 : WEFT_FP32, 1, &extents[1]);
  uint32_t y = weft_graph_matmul(graph, numbered(m, "matmul", layer), x, w);
  if (y != WEFT_NONE && o->segments && o->dtype != WEFT_INT8)
    graph->ops[graph->values[y].producer].segments = o->segments;
  if (o->bias) y = weft_graph_bias(graph, numbered(m, "bias", layer), y, bias);
  y = o->dtype == WEFT_INT8 ? finish_integers(m, layer, y, x, w, bias) : finish_floats(m, layer, y);
  if (y != WEFT_NONE) graph->values[y].name = weft_arena_printf(graph->arena, "h%u", layer + 1);
  return y;
}

static weft_status check_ranges(const mlp *m) {
  for (uint32_t i = 0; i < m->options->range_count; i++) {
    bool found = false;
    for (uint64_t v = 0; v < m->graph->value_count && !found; v++)
      found = m->graph->values[v].producer == WEFT_NONE &&
              strcmp(m->graph->values[v].name, m->options->ranges[i].name) == 0;
    if (!found)
      return weft_graph_error(m->graph, "datasets are x, w1.., b1..",
                              "a range for '%s', which the network does not read", m->options->ranges[i].name);
  }
  return WEFT_OK;
}

static weft_status build_mlp(const mlp *m) {
  const weft_mlp_options *o = m->options;
  const uint64_t extents[] = {o->batch, o->layers[0]};
  uint32_t value = add_source(m, true, o->input_name ? o->input_name : "x", o->dtype, 2, extents);
  for (uint32_t layer = 0; layer < layer_total(o); layer++) {
    weft_graph_section(m->graph, numbered(m, "layer", layer));
    value = add_layer(m, layer, value);
  }
  weft_graph_output(m->graph, value, m->output_name);
  if (weft_arena_failed(m->names) || weft_arena_failed(m->graph->arena)) return weft_error_memory(m->graph->diag);
  if (m->graph->failed) return weft_graph_failure(m->graph);
  weft_status status = check_ranges(m);
  return status == WEFT_OK ? weft_graph_check(m->graph, m->graph->diag) : status;
}

weft_status weft_graph_new_mlp(const weft_mlp_options *options, const char *output_name, weft_graph **graph,
                               weft_diag *diag) {
  *graph = NULL;
  weft_status status = check_options(options, diag);
  if (status != WEFT_OK) return status;
  mlp m = {.options = options, .output_name = output_name, .names = weft_arena_new()};
  m.graph = weft_graph_new(options->name ? options->name : "mlp", diag);
  status = m.names && m.graph ? build_mlp(&m) : weft_error_memory(diag);
  if (m.names) weft_arena_free(m.names);
  if (status == WEFT_OK) {
    *graph = m.graph;
  } else {
    weft_graph_free(m.graph);
  }
  return status;
}
