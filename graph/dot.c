/* A Graphviz picture of a graph: chips as clusters, stored values as boxes, ops as ellipses. */
#include "graph_private.h"

static void node_label(weft_text *text, const char *name, const char *detail) {
  weft_text_puts(text, " [label=\"");
  weft_text_dot(text, name);
  weft_text_printf(text, "\\n%s\"", detail);
}

static void draw_value(const weft_value *value, uint64_t id, weft_text *text) {
  weft_text detail = {0};
  weft_text_printf(&detail, "%s %s", weft_format_name(value->dtype),
                   weft_extents_print(value->rank, value->extents).text);
  if (value->has_partial)
    weft_text_printf(&detail, "\\npart %u..%u of %u", value->partial.first, value->partial.first + value->partial.count,
                     value->partial.of);
  weft_text_printf(text, "    v%llu", (unsigned long long)id);
  node_label(text, value->name, detail.data ? detail.data : "");
  weft_text_printf(text, ", shape=box, style=%s];\n", value->role == WEFT_ROLE_ACTIVATION ? "dashed" : "solid");
  weft_text_free(&detail);
}

static void draw_chip(const weft_graph *graph, uint32_t chip, weft_text *text) {
  if (graph->chips > 1) weft_text_printf(text, "  subgraph cluster_%u {\n    label=\"chip %u\";\n", chip, chip);
  for (uint64_t v = 0; v < graph->value_count; v++)
    if (graph->values[v].chip == chip) draw_value(&graph->values[v], v, text);
  for (uint64_t i = 0; i < graph->op_count; i++) {
    if (graph->ops[i].chip != chip) continue;
    weft_text_printf(text, "    o%llu", (unsigned long long)i);
    node_label(text, graph->ops[i].name, weft_graph_op_name(graph->ops[i].kind));
    weft_text_puts(text, "];\n");
  }
  if (graph->chips > 1) weft_text_puts(text, "  }\n");
}

void weft_graph_dot(const weft_graph *graph, weft_text *text) {
  weft_text_puts(text, "digraph \"");
  weft_text_dot(text, graph->name);
  weft_text_puts(text, "\" {\n");
  for (uint32_t chip = 0; chip < graph->chips; chip++) draw_chip(graph, chip, text);
  for (uint64_t i = 0; i < graph->op_count; i++) {
    const weft_graph_op *op = &graph->ops[i];
    for (uint32_t j = 0; j < op->in_count; j++)
      weft_text_printf(text, "  v%u -> o%llu;\n", op->ins[j], (unsigned long long)i);
    weft_text_printf(text, "  o%llu -> v%u;\n", (unsigned long long)i, op->out);
  }
  weft_text_puts(text, "}\n");
}
