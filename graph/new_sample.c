/* Small sample graphs for `weft new`: one transformer part each. */
#include "new_private.h"

#include <string.h>

typedef struct sample {
  const weft_sample_options *options;
  weft_graph *graph;
  uint32_t x;
} sample;

static uint32_t param(const sample *s, const char *name, uint64_t rows, uint64_t cols) {
  const uint64_t extents[] = {rows, cols};
  return rows ? weft_graph_param(s->graph, name, s->options->dtype, 2, extents)
              : weft_graph_param(s->graph, name, WEFT_FP32, 1, &cols);
}

static uint32_t make_rmsnorm(const sample *s) {
  return new_rms_norm(s->graph, "", s->x, param(s, "gain", 0, s->options->cols), s->options->eps_nano);
}

static uint32_t make_layernorm(const sample *s) {
  uint32_t gain = param(s, "gain", 0, s->options->cols), shift = param(s, "shift", 0, s->options->cols);
  return new_layer_norm(s->graph, "", s->x, gain, shift, s->options->eps_nano);
}

static uint32_t make_softmax(const sample *s) { return new_softmax(s->graph, "", s->x); }

static uint32_t make_gated_mlp(const sample *s) {
  uint64_t cols = s->options->cols, hidden = s->options->hidden;
  uint32_t gate = param(s, "w_gate", cols, hidden), up = param(s, "w_up", cols, hidden);
  return new_gated_mlp(s->graph, "", s->x, gate, up, param(s, "w_down", hidden, cols));
}

static const struct {
  const char *name;
  uint32_t (*make)(const sample *s);
} makers[] = {
#define ROW(id, name, help) {name, make_##id},
    WEFT_SAMPLES(ROW)
#undef ROW
};

weft_status weft_graph_new_sample(weft_sample_kind kind, const weft_sample_options *options, weft_graph **graph,
                                  weft_diag *diag) {
  *graph = NULL;
  if (!weft_format_is_float(options->dtype))
    return weft_error(diag, WEFT_INVALID, "Fp32, Bf16, Fp16 and Fp8 are possible", "a %s of %s", makers[kind].name,
                      weft_format_name(options->dtype));
  sample s = {.options = options, .graph = weft_graph_new(options->name ? options->name : makers[kind].name, diag)};
  if (!s.graph) return weft_error_memory(diag);
  const uint64_t extents[] = {options->rows, options->cols};
  weft_graph_section(s.graph, makers[kind].name);
  s.x = weft_graph_input(s.graph, "x", options->dtype, 2, extents);
  uint32_t out = makers[kind].make(&s);
  weft_graph_output(s.graph, out, "y");
  weft_status status = weft_arena_failed(s.graph->arena) ? weft_error_memory(diag) : weft_graph_check(s.graph, diag);
  if (status == WEFT_OK)
    *graph = s.graph;
  else
    weft_graph_free(s.graph);
  return status;
}
