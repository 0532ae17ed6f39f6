#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const weft_target test_target = {
    .name = "test",
    .mesh_cols = 1,
    .mesh_rows = 1,
    .tile_rows = 32,
    .tile_cols = 32,
    .flops_per_second = {1e11, 1e11, 1e11, 1e11, 1e11, 1e11, 1e11, 1e11},
    .dram_bytes_per_second = 1e10,
    .link_bytes_per_second = 5e9,
    .link_latency_seconds = 1e-6,
    .op_seconds = 1e-6,
};

/* ---- graphs ---------------------------------------------------------------------------------------------------------
 */

static uint32_t add_layer(weft_graph *graph, const mlp *shape, uint32_t layer, uint32_t x) {
  char name[32];
  bool last = layer + 1 == shape->layers, integer = !weft_format_is_float(shape->dtype);
  snprintf(name, sizeof name, "fc%u", layer + 1);
  weft_graph_section(graph, name);
  snprintf(name, sizeof name, "w%u", layer + 1);
  uint32_t w =
      weft_graph_param(graph, name, shape->dtype, 2, (uint64_t[]){shape->widths[layer], shape->widths[layer + 1]});
  snprintf(name, sizeof name, "h%u", layer + 1);
  uint32_t out = weft_graph_matmul(graph, name, x, w);
  if (out == WEFT_NONE) return WEFT_NONE;
  if (shape->segments && !integer) graph->ops[graph->values[out].producer].segments = shape->segments;
  if (shape->bias) {
    snprintf(name, sizeof name, "b%u", layer + 1);
    uint32_t b = weft_graph_param(graph, name, graph->values[out].dtype, 1, &shape->widths[layer + 1]);
    if (integer) weft_graph_range(graph, b, -1000, 1000);
    snprintf(name, sizeof name, "biased%u", layer + 1);
    out = weft_graph_bias(graph, name, out, b);
  }
  if (shape->relu && !last) {
    snprintf(name, sizeof name, "relu%u", layer + 1);
    out = weft_graph_relu(graph, name, out);
  }
  if (integer && !last) {
    snprintf(name, sizeof name, "requant%u", layer + 1);
    out = weft_graph_requant(graph, name, out, 77, 14);
    snprintf(name, sizeof name, "clamp%u", layer + 1);
    out = weft_graph_clamp(graph, name, out, -128, 127, WEFT_INT8);
  } else if (!last && shape->dtype != WEFT_FP32) {
    weft_graph_store_as(graph, out, shape->dtype);
  }
  return out;
}

weft_graph *build_mlp(const mlp *shape, weft_diag *diag) {
  weft_graph *graph = weft_graph_new("mlp", diag);
  assert_non_null(graph);
  uint32_t x = weft_graph_input(graph, "x", shape->dtype, 2, (uint64_t[]){shape->batch, shape->widths[0]});
  for (uint32_t layer = 0; layer < shape->layers; layer++) x = add_layer(graph, shape, layer, x);
  weft_graph_output(graph, x, "y");
  if (weft_graph_check(graph, diag) != WEFT_OK) {
    char *text = messages_of(diag);
    fail_msg("the test's graph is wrong: %s", text);
  }
  return graph;
}

weft_graph *build_digits(uint64_t batch, weft_diag *diag) {
  return build_mlp(
      &(mlp){
          .layers = 3, .widths = {784, 256, 256, 10}, .batch = batch, .dtype = WEFT_FP32, .bias = true, .relu = true},
      diag);
}

/* ---- inputs ---------------------------------------------------------------------------------------------------------
 */

static float random_float(uint64_t *state) {
  uint64_t bits = weft_random_next(state);
  if (bits % 17 == 0) return -0.0f;
  float value = (float)(bits >> 40) / (float)(1 << 23) - 1.0f;
  return bits % 13 == 0 ? value * 1e6f : value;
}

static void fill(const weft_value *value, weft_array *array, uint64_t *state) {
  int64_t low = value->has_range ? value->range.low : -100, high = value->has_range ? value->range.high : 100;
  for (uint64_t i = 0; i < weft_array_elements(array); i++) {
    if (weft_format_is_float(value->dtype))
      weft_store_f32(value->dtype, array->data, i, random_float(state));
    else
      weft_store_i64(value->dtype, array->data, i,
                     low + (int64_t)(weft_random_next(state) % (uint64_t)(high - low + 1)));
  }
}

void fill_inputs(const weft_graph *graph, uint64_t seed, weft_array_set *in) {
  for (uint64_t v = 0; v < graph->value_count; v++) {
    const weft_value *value = &graph->values[v];
    if (value->role != WEFT_ROLE_INPUT && value->role != WEFT_ROLE_PARAM) continue;
    weft_array *array = weft_array_set_add(in, value->name, value->dtype, value->rank, value->extents);
    assert_non_null(array);
    fill(value, array, &seed);
  }
}

/* ---- partitioning ---------------------------------------------------------------------------------------------------
 */

weft_status partition_as(const weft_graph *graph, const char *mesh, const char *split, const char *requests,
                         weft_graph **machine, weft_text *report, weft_diag *diag) {
  weft_shard_request shards[16];
  weft_partition_options options = {.split = split, .shards = shards, .explain = report != NULL};
  char *copy = strdup(requests ? requests : "");
  for (char *at = strtok(copy, " "); at; at = strtok(NULL, " ")) {
    char *equals = strchr(at, '=');
    *equals = 0;
    shards[options.shard_count++] = (weft_shard_request){at, equals + 1};
  }
  weft_status status = weft_mesh_parse(mesh, &options.mesh, diag);
  if (status == WEFT_OK) status = weft_partition(graph, &options, &test_target, machine, report, diag);
  free(copy);
  return status;
}

weft_graph *partitioned(const weft_graph *graph, const char *mesh, const char *split, const char *requests) {
  weft_diag *diag = weft_diag_new();
  weft_graph *machine = NULL;
  weft_status status = partition_as(graph, mesh, split, requests, &machine, NULL, diag);
  if (status == WEFT_OK) status = weft_graph_check(machine, diag);
  if (status != WEFT_OK) {
    char *text = messages_of(diag);
    fail_msg("%s over %s, %s: %s", split ? split : "search", mesh, requests ? requests : "", text);
  }
  machine->diag = NULL;
  weft_diag_free(diag);
  return machine;
}

/* ---- comparing ------------------------------------------------------------------------------------------------------
 */

void interpret(const weft_graph *graph, const weft_array_set *in, weft_array_set *out) {
  weft_diag *diag = weft_diag_new();
  if (weft_graph_interpret(graph, in, out, diag) != WEFT_OK) fail_msg("%s", messages_of(diag));
  weft_diag_free(diag);
}

bool same_arrays(const weft_array_set *expected, const weft_array_set *got) {
  for (uint64_t i = 0; i < expected->count; i++) {
    const weft_array *a = &expected->items[i], *b = weft_array_set_find(got, a->name);
    weft_difference difference;
    if (!b || weft_array_compare(a, b, &difference, NULL) != WEFT_OK) {
      print_message("output '%s' is missing or of another shape\n", a->name);
      return false;
    }
    if (difference.differing == 0) continue;
    print_message("output '%s': %llu elements differ, the first at %llu, by %g\n", a->name,
                  (unsigned long long)difference.differing, (unsigned long long)difference.first_index,
                  difference.max_abs);
    return false;
  }
  return expected->count == got->count;
}

bool same_results(const weft_graph *graph, const weft_graph *machine, uint64_t seed) {
  weft_array_set in = {0}, expected = {0}, got = {0};
  fill_inputs(graph, seed, &in);
  interpret(graph, &in, &expected);
  interpret(machine, &in, &got);
  bool same = same_arrays(&expected, &got);
  weft_array_set_free(&in);
  weft_array_set_free(&expected);
  weft_array_set_free(&got);
  return same;
}

char *messages_of(const weft_diag *diag) {
  weft_text text = {0};
  for (uint64_t i = 0; i < weft_diag_count(diag); i++) {
    const weft_message *message = weft_diag_message(diag, i);
    weft_text_printf(&text, "%s (hint: %s)\n", message->text, message->hint ? message->hint : "none");
  }
  weft_text_puts(&text, "");
  return text.data ? text.data : strdup("");
}

void assert_messages_have(const weft_diag *diag, ...) {
  char *text = messages_of(diag);
  va_list words;
  va_start(words, diag);
  for (const char *word = va_arg(words, const char *); word; word = va_arg(words, const char *))
    if (!strstr(text, word)) fail_msg("'%s' is not in: %s", word, text);
  va_end(words);
  free(text);
}

uint64_t count_ops(const weft_graph *graph, weft_graph_op_kind kind, int chip) {
  uint64_t count = 0;
  for (uint64_t o = 0; o < graph->op_count; o++)
    count += graph->ops[o].kind == kind && (chip < 0 || graph->ops[o].chip == chip);
  return count;
}

const weft_value *find_value(const weft_graph *graph, const char *name) {
  for (uint64_t v = 0; v < graph->value_count; v++)
    if (strcmp(graph->values[v].name, name) == 0) return &graph->values[v];
  return NULL;
}
