/* Prints random graphs with their inputs and what the interpreter makes of them, one JSON object a line, for oracle.py.
 *
 * usage: graph_cases SEED COUNT */
#include "support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_array(const weft_array *a) {
  printf("[");
  for (uint64_t i = 0; i < weft_array_elements(a); i++) {
    if (i) printf(",");
    if (!weft_format_is_float(a->dtype)) {
      printf("%" PRId64, weft_load_i64(a->dtype, a->data, i));
    } else {
      float value = weft_load_f32(a->dtype, a->data, i);
      uint32_t bits;
      memcpy(&bits, &value, sizeof bits);
      printf("%" PRIu32, bits); // widened: every format is exact in fp32
    }
  }
  printf("]");
}

static void print_numbers(uint32_t count, const uint64_t *numbers) {
  printf("[");
  for (uint32_t i = 0; i < count; i++) printf("%s%" PRIu64, i ? "," : "", numbers[i]);
  printf("]");
}

static void print_value(const weft_value *v, const weft_array_set *in) {
  printf("{\"name\":\"%s\",\"dtype\":\"%s\",\"extents\":", v->name, weft_format_name(v->dtype));
  print_numbers(v->rank, v->extents);
  if (v->producer == WEFT_NONE) {
    printf(",\"data\":");
    print_array(weft_array_set_find(in, v->name));
  }
  printf("}");
}

static void print_node(const weft_body_node *n) {
  static const char *const kinds[] = {
#define ROW(id, name, arity) name,
    WEFT_BODY_NODES(ROW)
#undef ROW
  };
  static const char *const functions[] = {
#define ROW(id, name) name,
    WEFT_SFPU_KINDS(ROW)
#undef ROW
  };
  printf("{\"kind\":\"%s\",\"child\":[%u,%u,%u],\"value\":%" PRIu64 ",\"function\":\"%s\",\"eps\":%" PRIu64
         ",\"over\":%" PRIu64 "}",
         kinds[n->kind], n->child[0], n->child[1], n->child[2], n->value,
         n->kind == WEFT_BODY_UNARY ? functions[n->sfpu] : "", n->eps_nano, n->over);
}

static void print_op(const weft_graph *g, const weft_graph_op *op) {
  printf("{\"kind\":\"%s\",\"out\":%u,\"segments\":%u,\"m\":%" PRId64 ",\"s\":%u,\"low\":%" PRId64 ",\"high\":%" PRId64
         ",\"ins\":[",
         weft_graph_op_name(op->kind), op->out, op->segments, op->m, op->s, op->low, op->high);
  for (uint32_t i = 0; i < op->in_count; i++) printf("%s%u", i ? "," : "", op->ins[i]);
  printf("],\"starts\":[");
  uint32_t rows = op->kind == WEFT_GRAPH_SLICE ? 1 : op->kind == WEFT_GRAPH_ASSEMBLE ? op->in_count : 0;
  for (uint32_t i = 0; i < rows; i++) {
    if (i) printf(",");
    print_numbers(g->values[op->out].rank, op->starts[i]);
  }
  printf("],\"body\":[");
  for (uint64_t i = 0; op->kind == WEFT_GRAPH_POINTWISE && i < op->body.node_count; i++) {
    if (i) printf(",");
    print_node(&op->body.nodes[i]);
  }
  printf("]}");
}

static void print_case(uint64_t seed, const weft_graph *g, const weft_array_set *in, const weft_array_set *out) {
  printf("{\"seed\":%" PRIu64 ",\"values\":[", seed);
  for (uint64_t v = 0; v < g->value_count; v++) {
    if (v) printf(",");
    print_value(&g->values[v], in);
  }
  printf("],\"ops\":[");
  for (uint64_t i = 0; i < g->op_count; i++) {
    if (i) printf(",");
    print_op(g, &g->ops[i]);
  }
  printf("],\"results\":{");
  for (uint64_t i = 0; i < out->count; i++) {
    printf("%s\"%s\":", i ? "," : "", out->items[i].name);
    print_array(&out->items[i]);
  }
  printf("}}\n");
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  const uint64_t first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
  for (uint64_t seed = first; seed < first + count; seed++) {
    chance c = {seed * 0x9E3779B97F4A7C15u + 12345};
    const random_graph_options options = {.integers = seed & 1, .tidy = seed & 2, .small = true};
    weft_diag *diag = weft_diag_new();
    weft_graph *graph = random_graph(&c, &options, diag);
    weft_array_set in = {0}, out = {0};
    random_inputs(&c, graph, &in);
    expect_ok(weft_graph_interpret(graph, &in, &out, diag), diag);
    print_case(seed, graph, &in, &out);
    weft_array_set_free(&in);
    weft_array_set_free(&out);
    weft_graph_free(graph);
    weft_diag_free(diag);
  }
  return 0;
}
