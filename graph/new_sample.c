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

/* ---- heads and positions ------------------------------------------------------------------------------------------
 */

static uint32_t as_operand(const sample *s, uint32_t value) { return new_as(s->graph, value, s->options->dtype); }

static uint64_t head_size(const sample *s) { return s->options->heads ? s->options->cols / s->options->heads : 0; }

static new_heads heads_of(const sample *s) {
  const weft_sample_options *o = s->options;
  return (new_heads){o->heads, o->kv_heads, head_size(s), o->rows, o->rows};
}

static uint32_t table(const sample *s, const char *name) {
  const uint64_t extents[] = {s->options->rows, head_size(s) / 2};
  return weft_graph_param(s->graph, name, WEFT_FP32, 2, extents);
}

static new_rotation rotation(const sample *s, const char *prefix, uint32_t cos, uint32_t sin, uint64_t heads) {
  return new_rotation_of(s->graph, prefix, cos, sin, s->options->rows, head_size(s), heads);
}

static uint32_t make_rope(const sample *s) {
  const uint64_t heads = s->options->heads;
  new_rotation turn = rotation(s, "rotation", table(s, "cos"), table(s, "sin"), heads);
  return new_rotated(s->graph, "x", s->x, s->options->rows, head_size(s), heads, turn);
}

/** Keys that row r sees: 1 + r. */
static uint32_t causal_bounds(const sample *s, uint64_t group) {
  const uint64_t extents[] = {s->options->rows, 1};
  uint32_t bound = weft_graph_param(s->graph, "bound", WEFT_INT32, 2, extents);
  if (bound == WEFT_NONE) return bound;
  s->graph->values[bound].init =
      (weft_init){.kind = WEFT_INIT_PATTERN, .pattern = {(int64_t)(s->options->rows ? s->options->rows : 1), 1}};
  new_block *blocks = WEFT_NEW_ARRAY(s->graph->arena, new_block, group);
  for (uint64_t i = 0; blocks && i < group; i++)
    blocks[i] = (new_block){bound, 0, 0, s->options->rows, 1, i * s->options->rows, 0};
  return blocks ? new_assemble(s->graph, "bounds", blocks, (uint32_t)group, group * s->options->rows, 1) : WEFT_NONE;
}

static uint32_t attend(const sample *s, uint64_t key, uint32_t q, uint32_t k, uint32_t v, uint32_t bounds) {
  weft_graph *graph = s->graph;
  const new_heads shape = heads_of(s);
  const char *prefix = weft_arena_printf(graph->arena, "head%llu", (unsigned long long)key);
  const uint64_t at[] = {0, key * shape.size}, extents[] = {shape.tokens, shape.size};
  if (!prefix) return WEFT_NONE;
  uint32_t queries = new_queries(graph, prefix, q, &shape, key);
  uint32_t rows = weft_graph_slice(graph, new_name(graph, prefix, "k"), k, at, extents);
  uint32_t keys = weft_graph_transpose(graph, new_name(graph, prefix, "keys"), rows);
  uint32_t values = weft_graph_slice(graph, new_name(graph, prefix, "values"), v, at, extents);
  return as_operand(s, new_attention(graph, prefix, queries, keys, values, bounds, WEFT_NONE, shape.size));
}

static uint32_t make_attention(const sample *s) {
  weft_graph *graph = s->graph;
  const uint64_t cols = s->options->cols, rows = s->options->rows;
  const new_heads shape = heads_of(s);
  uint32_t *by_key = WEFT_NEW_ARRAY(graph->arena, uint32_t, shape.kv_heads);
  uint32_t wq = param(s, "wq", cols, cols), wk = param(s, "wk", cols, shape.kv_heads * shape.size);
  uint32_t wv = param(s, "wv", cols, shape.kv_heads * shape.size), wo = param(s, "wo", cols, cols);
  uint32_t q = weft_graph_matmul(graph, "q", s->x, wq), k = weft_graph_matmul(graph, "k", s->x, wk);
  uint32_t v = as_operand(s, weft_graph_matmul(graph, "v", s->x, wv)), cos = table(s, "cos"), sin = table(s, "sin");
  weft_graph_section(graph, "heads");
  const new_rotation turns[] = {rotation(s, "rotation.q", cos, sin, shape.heads),
                                rotation(s, "rotation.k", cos, sin, shape.kv_heads)};
  q = as_operand(s, new_rotated(graph, "q", q, rows, shape.size, shape.heads, turns[0]));
  k = as_operand(s, new_rotated(graph, "k", k, rows, shape.size, shape.kv_heads, turns[1]));
  uint32_t bounds = causal_bounds(s, shape.heads / shape.kv_heads);
  for (uint64_t key = 0; by_key && key < shape.kv_heads; key++) by_key[key] = attend(s, key, q, k, v, bounds);
  weft_graph_section(graph, "out");
  return by_key ? weft_graph_matmul(graph, "out", new_concat_heads(graph, "mixed", by_key, &shape), wo) : WEFT_NONE;
}

/* ---- choices by index ---------------------------------------------------------------------------------------------
 */

static uint32_t make_embedding(const sample *s) {
  const uint64_t extents[] = {s->options->rows, 1};
  uint32_t rows = param(s, "table", s->options->hidden, s->options->cols);
  uint32_t ids = weft_graph_input(s->graph, "ids", WEFT_INT32, 2, extents);
  weft_graph_range(s->graph, ids, 0, (int64_t)s->options->hidden - 1);
  return weft_graph_gather(s->graph, "rows", rows, ids);
}

static uint32_t make_route(const sample *s) {
  const uint64_t cols = s->options->cols, experts = s->options->hidden, extents[] = {experts, cols};
  uint32_t logits = weft_graph_matmul(s->graph, "logits", s->x, param(s, "router", cols, experts));
  uint32_t expert = new_reduce(s->graph, "chosen", &logits, 1, "$0", WEFT_POOL_ARG_MAX);
  uint32_t gain =
      weft_graph_gather(s->graph, "gains", weft_graph_param(s->graph, "gain", WEFT_FP32, 2, extents), expert);
  uint32_t shift =
      weft_graph_gather(s->graph, "shifts", weft_graph_param(s->graph, "shift", WEFT_FP32, 2, extents), expert);
  weft_graph_output(s->graph, expert, "expert");
  return new_pointwise(s->graph, "routed", (const uint32_t[]){s->x, gain, shift}, 3, "$0 $1 mul $2 add");
}

/** The rows before, as a state, then x: y = sum of w[k] * row k, oldest first; the state moves up by one. */
static uint32_t make_conv(const sample *s) {
  weft_graph *graph = s->graph;
  const uint64_t cols = s->options->cols, taps = s->options->hidden, ring_extents[] = {taps - 1, cols},
                 row[] = {1, cols};
  uint32_t weights = param(s, "weights", taps, cols);
  uint32_t ring = weft_graph_state(graph, "ring", s->options->dtype, 2, ring_extents), y = WEFT_NONE;
  for (uint64_t k = 0; k < taps; k++) {
    const uint64_t at[] = {k, 0};
    const char *prefix = weft_arena_printf(graph->arena, "tap%llu", (unsigned long long)k);
    if (!prefix) return WEFT_NONE;
    uint32_t w = weft_graph_slice(graph, new_name(graph, prefix, "weight"), weights, at, row);
    uint32_t x = k + 1 < taps ? weft_graph_slice(graph, new_name(graph, prefix, "row"), ring, at, row) : s->x;
    const uint32_t ins[] = {x, w, y};
    y = new_pointwise(graph, new_name(graph, prefix, "sum"), ins, k ? 3 : 2, k ? "$0 $1 mul $2 add" : "$0 $1 mul");
  }
  const new_block moved[] = {{ring, 1, 0, taps - 2, cols, 0, 0}, {s->x, 0, 0, 1, cols, taps - 2, 0}};
  const new_block *blocks = taps > 2 ? moved : moved + 1;
  uint32_t next = new_assemble(graph, "moved", blocks, taps > 2 ? 2 : 1, taps - 1, cols);
  weft_graph_set_state(graph, ring, next);
  return y;
}

static const struct {
  const char *name;
  uint32_t (*make)(const sample *s);
} makers[] = {
#define ROW(id, name, help) {name, make_##id},
    WEFT_SAMPLES(ROW)
#undef ROW
};

static weft_status check_sample(weft_sample_kind kind, const weft_sample_options *o, weft_diag *diag) {
  const char *name = makers[kind].name;
  bool heads = kind == WEFT_SAMPLE_rope || kind == WEFT_SAMPLE_attention;
  if (!weft_format_is_float(o->dtype))
    return weft_error(diag, WEFT_INVALID, "Fp32, Bf16, Fp16 and Fp8 are possible", "a %s of %s", name,
                      weft_format_name(o->dtype));
  if (heads && (!o->heads || o->cols % o->heads || o->cols / o->heads % 2 || !o->kv_heads || o->heads % o->kv_heads))
    return weft_error(diag, WEFT_INVALID, "heads divide the columns into even parts, keys divide the heads",
                      "%llu columns, %llu heads, %llu keys", (unsigned long long)o->cols, (unsigned long long)o->heads,
                      (unsigned long long)o->kv_heads);
  if ((kind == WEFT_SAMPLE_embedding || kind == WEFT_SAMPLE_route) && !o->hidden)
    return weft_error(diag, WEFT_INVALID, "give hidden", "a %s of nothing", name);
  if (kind == WEFT_SAMPLE_conv && o->hidden < 2)
    return weft_error(diag, WEFT_INVALID, "give hidden", "a %s of %llu taps keeps nothing", name,
                      (unsigned long long)o->hidden);
  return WEFT_OK;
}

weft_status weft_graph_new_sample(weft_sample_kind kind, const weft_sample_options *options, weft_graph **graph,
                                  weft_diag *diag) {
  *graph = NULL;
  weft_status status = check_sample(kind, options, diag);
  if (status != WEFT_OK) return status;
  sample s = {.options = options, .graph = weft_graph_new(options->name ? options->name : makers[kind].name, diag)};
  if (!s.graph) return weft_error_memory(diag);
  const uint64_t extents[] = {kind == WEFT_SAMPLE_conv ? 1 : options->rows, options->cols};
  weft_graph_section(s.graph, makers[kind].name);
  if (kind != WEFT_SAMPLE_embedding) s.x = weft_graph_input(s.graph, "x", options->dtype, 2, extents);
  uint32_t out = makers[kind].make(&s);
  weft_graph_output(s.graph, out, "y");
  status = weft_arena_failed(s.graph->arena) ? weft_error_memory(diag) : weft_graph_check(s.graph, diag);
  if (status == WEFT_OK)
    *graph = s.graph;
  else
    weft_graph_free(s.graph);
  return status;
}
