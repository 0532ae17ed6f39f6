/* The bodies of a gather: what makes a row of an id, and the choice of a page's rows. */
#include "graph_private.h"

/** Whether the table holds the rows of all ids there are. */
static bool is_whole_table(const weft_graph *graph, const weft_graph_op *op) {
  return op->low == 0 && (uint64_t)op->high + 1 == graph->values[op->ins[0]].extents[0];
}

/** What makes a table's row of an id: itself; in a part of a table the nearest row there is, and a fault where the id
 * is none at all. */
static weft_body index_body(weft_arena *arena, const weft_graph *graph, const weft_graph_op *op) {
  const char *text = "$0";
  if (!is_whole_table(graph, op))
    text =
        weft_arena_printf(arena, "$0 %lld min 0 max $0 sub 1 0 floordiv $0 %lld sub 0 max %lld min if",
                          (long long)op->high, (long long)op->low, (long long)graph->values[op->ins[0]].extents[0] - 1);
  return text ? weft_body_write(arena, text) : (weft_body){0};
}

typedef struct picker {
  weft_body_node *nodes;
  uint64_t count;
} picker;

static uint32_t pick_node(picker *b, weft_body_node node) {
  b->nodes[b->count] = node;
  return (uint32_t)b->count++;
}

/** Chooses operand 1 + row for every row of [begin, end). */
static uint32_t pick_row(picker *b, uint64_t begin, uint64_t end) {
  if (end - begin == 1) return pick_node(b, (weft_body_node){.kind = WEFT_BODY_OPERAND, .value = 1 + begin});
  uint64_t middle = begin + (end - begin) / 2;
  uint32_t then = pick_row(b, begin, middle), otherwise = pick_row(b, middle, end);
  weft_pred pred = {.var = WEFT_VAR_GEN_ROW, .bound = middle};
  return pick_node(b, (weft_body_node){.kind = WEFT_BODY_SELECT, .child = {then, otherwise}, .pred = pred});
}

/** The row's operand, or -0 where the table is a part that lacks the id: id - clamp(id) is then not 0. */
static weft_body pick_body(weft_arena *arena, const weft_graph *graph, const weft_graph_op *op, uint64_t rows) {
  weft_body frame = {0};
  if (!is_whole_table(graph, op)) {
    long long last = op->low + (long long)graph->values[op->ins[0]].extents[0] - 1;
    const char *text = weft_arena_printf(arena, "$0 %lld max %lld min $0 sub -0.0 $1 if", (long long)op->low, last);
    frame = weft_body_write(arena, text ? text : "");
  }
  picker b = {.nodes = WEFT_NEW_ARRAY(arena, weft_body_node, 2 * rows + frame.node_count)};
  if (!b.nodes) return (weft_body){0};
  // All of the frame but its last two nodes, the row in place of the last operand, and the choice.
  for (uint64_t i = 0; i + 2 < frame.node_count; i++) pick_node(&b, frame.nodes[i]);
  uint32_t row = pick_row(&b, 0, rows);
  if (frame.node_count) {
    weft_body_node choice = frame.nodes[frame.node_count - 1];
    choice.child[2] = row;
    pick_node(&b, choice);
  }
  return (weft_body){b.nodes, b.count};
}

bool weft_gather_bodies(weft_arena *arena, const weft_graph *graph, const weft_graph_op *op, uint64_t rows,
                        weft_body *index, weft_body *pick) {
  *index = index_body(arena, graph, op);
  *pick = pick_body(arena, graph, op, rows);
  return index->node_count && pick->node_count;
}
