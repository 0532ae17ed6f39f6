/* A decoder-only transformer that makes one token a step, its keys and values kept as states. */
#include "new_private.h"

#include <string.h>

typedef struct decoder {
  const weft_decoder_options *o;
  weft_graph *graph;
  new_heads heads;
  uint32_t pos;   /**< of the step's token: a state or an input */
  uint32_t bound; /**< position + 1: keys there are */
  new_rotation turn_q, turn_k;
} decoder;

static weft_status check_options(const weft_decoder_options *o, weft_diag *diag) {
  if (!o->layers || !o->width || !o->heads || !o->kv_heads || !o->hidden || !o->vocabulary || !o->context || !o->prompt)
    return weft_error(diag, WEFT_INVALID, NULL,
                      "a decoder needs layers, widths, heads, a vocabulary, a context and a prompt");
  if (o->heads % o->kv_heads)
    return weft_error(diag, WEFT_INVALID, NULL, "%llu heads cannot share %llu keys evenly",
                      (unsigned long long)o->heads, (unsigned long long)o->kv_heads);
  if (!o->head_size && o->width % o->heads)
    return weft_error(diag, WEFT_INVALID, "give the size of a head", "a width of %llu is no multiple of %llu heads",
                      (unsigned long long)o->width, (unsigned long long)o->heads);
  uint64_t size = o->head_size ? o->head_size : o->width / o->heads;
  if (size % 2)
    return weft_error(diag, WEFT_INVALID, NULL, "heads of %llu cannot be rotated", (unsigned long long)size);
  if (o->vocabulary >= (uint64_t)WEFT_EXACT_FLOAT || o->context >= (uint64_t)WEFT_EXACT_FLOAT || o->prompt > o->context)
    return weft_error(diag, WEFT_INVALID, NULL, "a vocabulary or context that large, or a prompt beyond the context");
  if (!weft_format_is_float(o->dtype))
    return weft_error(diag, WEFT_INVALID, "Fp32, Bf16, Fp16 and Fp8 are possible", "a decoder of %s",
                      weft_format_name(o->dtype));
  return WEFT_OK;
}

static const char *layer_name(const decoder *d, uint64_t layer, const char *name) {
  const char *made = weft_arena_printf(d->graph->arena, "layers.%llu.%s", (unsigned long long)layer, name);
  return made ? made : name;
}

static uint32_t matrix(const decoder *d, const char *name, uint64_t rows, uint64_t cols) {
  const uint64_t extents[] = {rows, cols};
  return weft_graph_param(d->graph, name, d->o->dtype, 2, extents);
}

static uint32_t gain(const decoder *d, const char *name) {
  return weft_graph_param(d->graph, name, WEFT_FP32, 1, &d->o->width);
}

static uint32_t as_operand(const decoder *d, uint32_t value) { return new_as(d->graph, value, d->o->dtype); }

static uint32_t integers(const decoder *d, const char *name, const uint32_t *ins, uint32_t count, const char *body) {
  weft_body nodes = weft_body_write(d->graph->arena, body);
  return weft_graph_pointwise(d->graph, name, ins, count, &nodes, WEFT_INT32);
}

/* ---- which token, and where ------------------------------------------------------------------------------------- */

static uint32_t one_state(const decoder *d, const char *name, uint64_t most) {
  static const uint64_t one[] = {1, 1};
  uint32_t state = weft_graph_state(d->graph, name, WEFT_INT32, 2, one);
  weft_graph_range(d->graph, state, 0, (int64_t)most);
  return state;
}

/** Where the step's token stands: a state, or, where loops run up to it, an input. */
static uint32_t position(const decoder *d) {
  static const uint64_t one[] = {1, 1};
  if (!d->o->trip) return one_state(d, "pos", d->o->context);
  uint32_t input = weft_graph_input(d->graph, "pos", WEFT_INT32, 2, one);
  weft_graph_range(d->graph, input, 0, (int64_t)d->o->context - 1);
  if (input != WEFT_NONE) d->graph->values[input].init.kind = WEFT_INIT_ZERO; // the first step, where nothing is said
  return input;
}

/** The prompt's token while there is one, then the one that the last step chose. */
static uint32_t token_of_step(decoder *d, uint32_t last) {
  weft_graph *graph = d->graph;
  uint32_t prompt = weft_graph_input(graph, "prompt", WEFT_INT32, 1, &d->o->prompt);
  weft_graph_range(graph, prompt, 0, (int64_t)d->o->vocabulary - 1);
  uint32_t here =
      integers(d, "prompt.here", (const uint32_t[]){prompt, d->pos, d->bound}, 3, "0 $0 0 collt:$2 collt:$1");
  weft_body all = weft_body_write(graph->arena, "$0");
  uint32_t given = weft_graph_reduce(graph, "prompt.token", &here, 1, &all, WEFT_POOL_SUM, WEFT_INT32);
  const char *body = weft_arena_printf(graph->arena, "%llu $2 sub 0 max $0 $1 if", (unsigned long long)d->o->prompt);
  return integers(d, "token.now", (const uint32_t[]){given, last, d->pos}, 3, body ? body : "");
}

/* ---- layers -------------------------------------------------------------------------------------------------------
 */

/** What one key and its queries give. */
static uint32_t attend_key(const decoder *d, uint64_t layer, uint64_t key, uint32_t q, uint32_t k, uint32_t v) {
  weft_graph *graph = d->graph;
  const uint64_t size = d->heads.size, context = d->o->context;
  const char *prefix =
      weft_arena_printf(graph->arena, "layers.%llu.%llu", (unsigned long long)layer, (unsigned long long)key);
  if (!prefix) return WEFT_NONE;
  const uint64_t k_at[] = {key * size, 0}, k_extents[] = {size, context}, v_at[] = {0, key * size},
                 v_extents[] = {context, size};
  uint32_t queries = new_queries(graph, prefix, q, &d->heads, key);
  uint32_t keys = weft_graph_slice(graph, new_name(graph, prefix, "keys"), k, k_at, k_extents);
  uint32_t values = weft_graph_slice(graph, new_name(graph, prefix, "values"), v, v_at, v_extents);
  uint32_t up_to = d->o->trip ? d->pos : WEFT_NONE;
  return as_operand(d, new_attention(graph, prefix, queries, keys, values, d->bound, up_to, size));
}

/** The heads of one layer side by side. Its keys are kept as columns, by head; its values as rows. */
static uint32_t attend(const decoder *d, uint64_t layer, uint32_t q, uint32_t k, uint32_t v) {
  weft_graph *graph = d->graph;
  const new_heads *h = &d->heads;
  const uint64_t kv = h->kv_heads * h->size, keys[] = {kv, d->o->context}, values[] = {d->o->context, kv};
  uint32_t k_state = weft_graph_state(graph, layer_name(d, layer, "keys"), d->o->dtype, 2, keys);
  uint32_t v_state = weft_graph_state(graph, layer_name(d, layer, "values"), d->o->dtype, 2, values);
  q = as_operand(d, new_rotated(graph, layer_name(d, layer, "q"), q, 1, h->size, h->heads, d->turn_q));
  k = as_operand(d, new_rotated(graph, layer_name(d, layer, "k"), k, 1, h->size, h->kv_heads, d->turn_k));
  k = weft_graph_update(graph, layer_name(d, layer, "keys.next"), k_state, k, d->pos, 1);
  v = weft_graph_update(graph, layer_name(d, layer, "values.next"), v_state, v, d->pos, 0);
  uint32_t *by_key = WEFT_NEW_ARRAY(graph->arena, uint32_t, h->kv_heads);
  for (uint64_t key = 0; by_key && key < h->kv_heads; key++) by_key[key] = attend_key(d, layer, key, q, k, v);
  return by_key ? new_concat_heads(graph, layer_name(d, layer, "heads"), by_key, h) : WEFT_NONE;
}

static uint32_t attention(const decoder *d, uint64_t layer, uint32_t x) {
  weft_graph *graph = d->graph;
  const uint64_t width = d->o->width, inner = d->heads.heads * d->heads.size, kv = d->heads.kv_heads * d->heads.size;
  const char *prefix = layer_name(d, layer, "attention");
  uint32_t y =
      as_operand(d, new_rms_norm(graph, prefix, x, gain(d, layer_name(d, layer, "attn_norm")), d->o->eps_nano));
  uint32_t wq = matrix(d, layer_name(d, layer, "wq"), width, inner),
           wk = matrix(d, layer_name(d, layer, "wk"), width, kv);
  uint32_t wv = matrix(d, layer_name(d, layer, "wv"), width, kv),
           wo = matrix(d, layer_name(d, layer, "wo"), inner, width);
  uint32_t q = weft_graph_matmul(graph, layer_name(d, layer, "q"), y, wq);
  uint32_t k = weft_graph_matmul(graph, layer_name(d, layer, "k"), y, wk);
  uint32_t v = as_operand(d, weft_graph_matmul(graph, layer_name(d, layer, "v"), y, wv));
  uint32_t out = weft_graph_matmul(graph, layer_name(d, layer, "attended"), attend(d, layer, q, k, v), wo);
  return new_pointwise(graph, layer_name(d, layer, "x"), (const uint32_t[]){x, out}, 2, "$0 $1 add");
}

static uint32_t network(const decoder *d, uint64_t layer, uint32_t x) {
  weft_graph *graph = d->graph;
  const uint64_t width = d->o->width, hidden = d->o->hidden;
  const char *prefix = layer_name(d, layer, "mlp");
  uint32_t y = as_operand(d, new_rms_norm(graph, prefix, x, gain(d, layer_name(d, layer, "mlp_norm")), d->o->eps_nano));
  uint32_t gate = matrix(d, layer_name(d, layer, "w_gate"), width, hidden),
           up = matrix(d, layer_name(d, layer, "w_up"), width, hidden);
  uint32_t out = new_gated_mlp(graph, prefix, y, gate, up, matrix(d, layer_name(d, layer, "w_down"), hidden, width));
  return new_pointwise(graph, layer_name(d, layer, "y"), (const uint32_t[]){x, out}, 2, "$0 $1 add");
}

/* ---- the whole ------------------------------------------------------------------------------------------------------
 */

static void choose_token(const decoder *d, uint32_t x, uint32_t last, uint32_t text) {
  weft_graph *graph = d->graph;
  weft_graph_section(graph, "head");
  uint32_t y = as_operand(d, new_rms_norm(graph, "head", x, gain(d, "final_norm"), d->o->eps_nano));
  uint32_t logits = weft_graph_matmul(graph, "head.logits", y, matrix(d, "lm_head", d->o->width, d->o->vocabulary));
  uint32_t next = new_reduce(graph, "head.next", &logits, 1, "$0", WEFT_POOL_ARG_MAX);
  weft_graph_output(graph, logits, "logits");
  weft_graph_section(graph, "states");
  weft_graph_update(graph, "text.next", text, next, d->pos, 1);
  weft_graph_set_state(graph, last, next);
  if (!d->o->trip) weft_graph_set_state(graph, d->pos, d->bound);
}

static void build(decoder *d) {
  weft_graph *graph = d->graph;
  const uint64_t text_extents[] = {1, d->o->context}, table[] = {d->o->context, d->heads.size / 2};
  weft_graph_section(graph, "token");
  d->pos = position(d);
  uint32_t last = one_state(d, "token", d->o->vocabulary - 1);
  uint32_t text = weft_graph_state(graph, "text", WEFT_INT32, 2, text_extents);
  d->bound = integers(d, "pos.bound", &d->pos, 1, "$0 1 add");
  uint32_t token = token_of_step(d, last);
  uint32_t x = weft_graph_gather(graph, "embedded", matrix(d, "tok_embed", d->o->vocabulary, d->o->width), token);
  uint32_t cos = weft_graph_gather(graph, "cos", weft_graph_param(graph, "rope_cos", WEFT_FP32, 2, table), d->pos);
  uint32_t sin = weft_graph_gather(graph, "sin", weft_graph_param(graph, "rope_sin", WEFT_FP32, 2, table), d->pos);
  d->turn_q = new_rotation_of(graph, "rotation.q", cos, sin, 1, d->heads.size, d->heads.heads);
  d->turn_k = new_rotation_of(graph, "rotation.k", cos, sin, 1, d->heads.size, d->heads.kv_heads);
  for (uint64_t layer = 0; layer < d->o->layers && !graph->failed; layer++) {
    weft_graph_section(graph, layer_name(d, layer, "attention"));
    x = attention(d, layer, x);
    weft_graph_section(graph, layer_name(d, layer, "mlp"));
    x = network(d, layer, x);
  }
  choose_token(d, x, last, text);
}

weft_status weft_graph_new_decoder(const weft_decoder_options *options, weft_graph **graph, weft_diag *diag) {
  *graph = NULL;
  weft_status status = check_options(options, diag);
  if (status != WEFT_OK) return status;
  uint64_t size = options->head_size ? options->head_size : options->width / options->heads;
  decoder d = {.o = options,
               .graph = weft_graph_new(options->name ? options->name : "decoder", diag),
               .heads = {options->heads, options->kv_heads, size, 1, options->context}};
  if (!d.graph) return weft_error_memory(diag);
  build(&d);
  status = weft_arena_failed(d.graph->arena) ? weft_error_memory(diag) : weft_graph_check(d.graph, diag);
  if (status == WEFT_OK)
    *graph = d.graph;
  else
    weft_graph_free(d.graph);
  return status;
}
