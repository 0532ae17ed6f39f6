/* Pictures of token graphs in Graphviz's language: loops and branches as boxes, lanes as labels, order as dashes, the
 * way round a ring as thick lines. */
#include "picture_private.h"

#include <stdio.h>

/* ---- words --------------------------------------------------------------------------------------------------------
 */

static const char *short_name(const weft_mlir_op *op) {
  const char *dot = strrchr(op->name->text, '.');
  return dot ? dot + 1 : op->name->text;
}

static void put_value_of(weft_text *out, const weft_mlir_op *op) {
  const weft_mlir_attribute *value = weft_mlir_attribute_of(op, "const_value");
  if (!value) value = weft_mlir_attribute_of(op, "value");
  if (!value) return;
  weft_text text = {0};
  weft_mlir_attribute_print(value, &text);
  weft_text_puts(out, " ");
  weft_text_dot(out, text.data ? text.data : "");
  weft_text_free(&text);
}

static void put_label(weft_text *out, const weft_mlir_op *op) {
  weft_text_dot(out, short_name(op));
  put_value_of(out, op);
  for (uint32_t i = 0; i < op->operand_count; i++) {
    const weft_mlir_value *value = op->operands[i];
    if (value->type->kind == WEFT_MLIR_MEMREF_TYPE && value->is_argument)
      weft_text_printf(out, "\\nmemory %u", value->index - 1);
    else if (value->type->kind == WEFT_MLIR_MEMREF_TYPE)
      weft_text_printf(out, "\\nline %u", ((const weft_mlir_op *)value->owner)->line);
  }
}

static const char *style_of(const weft_mlir_op *op) {
  switch (weft_mlir_code(op)) {
  case WEFT_DATAFLOW_MUX: return "shape=trapezium, fillcolor=\"#dde8f7\"";
  case WEFT_DATAFLOW_DEMUX: return "shape=invtrapezium, fillcolor=\"#dde8f7\"";
  case WEFT_DATAFLOW_CARRY: return "shape=house, fillcolor=\"#fbe3c4\"";
  case WEFT_DATAFLOW_INVARIANT:
  case WEFT_DATAFLOW_GATE: return "shape=house, fillcolor=\"#fdf2de\"";
  case WEFT_DATAFLOW_STREAM: return "shape=cds, fillcolor=\"#fbe3c4\"";
  case WEFT_DATAFLOW_LOAD:
  case WEFT_DATAFLOW_STORE:
  case WEFT_OP_MEMREF_ALLOC:
  case WEFT_OP_MEMREF_CAST: return "shape=cylinder, fillcolor=\"#dff0dc\"";
  case WEFT_DATAFLOW_SYNC: return "shape=point, width=0.12";
  case WEFT_DATAFLOW_GRAPH_RETURN: return "shape=box, peripheries=2, fillcolor=white";
  default: return "shape=box, fillcolor=white";
  }
}

/* ---- nodes, box by box --------------------------------------------------------------------------------------------
 */

static void indent(weft_text *out, uint32_t depth) {
  for (uint32_t i = 0; i <= depth; i++) weft_text_puts(out, "  ");
}

static void put_members(const picture *p, const picture_box *box, uint32_t depth, weft_text *out) {
  for (uint32_t i = 0; i < box->member_count; i++) {
    const weft_mlir_op *op = p->ops[box->members[i]];
    indent(out, depth);
    weft_text_printf(out, "n%u [label=\"", box->members[i]);
    put_label(out, op);
    weft_text_printf(out, "\", tooltip=\"line %u\", %s];\n", op->line, style_of(op));
  }
}

/* Boxes nest as deeply as the program's loops and branches, so they are walked without recursion. */
static void put_boxes(const picture *p, weft_text *out) {
  const picture_box *box = &p->root;
  uint32_t depth = 0;
  put_members(p, box, depth, out);
  while (box) {
    const picture_box *next = box->first_inner;
    while (box && !next) {
      next = box->next;
      if (box->outer) {
        indent(out, --depth);
        weft_text_puts(out, "}\n");
      }
      box = box->outer;
    }
    if (!next) return;
    box = next;
    indent(out, depth++);
    weft_text_printf(out, "subgraph cluster_%u {\n", box->number);
    indent(out, depth);
    weft_text_printf(out, "label=\"%s\"; style=\"rounded%s\"; color=\"%s\";\n", box->title, box->lane ? ",dashed" : "",
                     box->lane ? "#5b7db1" : "#c9831d");
    put_members(p, box, depth, out);
  }
}

/* ---- edges --------------------------------------------------------------------------------------------------------
 */

static bool is_order(const weft_mlir_value *value) { return value->type->kind == WEFT_MLIR_NONE_TYPE; }

static bool selects(const weft_mlir_op *op, uint32_t operand) {
  uint32_t code = weft_mlir_code(op);
  return operand == 0 && code >= WEFT_DATAFLOW_MUX && code <= WEFT_DATAFLOW_GATE;
}

static void put_edge(const weft_mlir_op *op, uint32_t operand, weft_text *out) {
  const weft_mlir_value *value = op->operands[operand];
  const weft_mlir_op *from = value->is_argument ? NULL : value->owner;
  uint32_t code = weft_mlir_code(op);
  if (from)
    weft_text_printf(out, "  n%u -> n%u [", from->mark, op->mark);
  else
    weft_text_printf(out, "  i%u -> n%u [", value->index, op->mark);
  if (selects(op, operand))
    weft_text_puts(out, "color=\"#5b7db1\", arrowhead=odot");
  else if (code == WEFT_DATAFLOW_CARRY && operand == 2)
    weft_text_puts(out, "color=\"#c9831d\", penwidth=2.5");
  else
    weft_text_puts(out, "color=black");
  if (is_order(value)) weft_text_puts(out, ", style=dashed");
  if (from && weft_mlir_code(from) == WEFT_DATAFLOW_DEMUX) weft_text_printf(out, ", taillabel=\"%u\"", value->index);
  if (code == WEFT_DATAFLOW_MUX && operand) weft_text_printf(out, ", headlabel=\"%u\"", operand - 1);
  weft_text_puts(out, "];\n");
}

static void put_inputs(const picture *p, weft_text *out) {
  const weft_mlir_block *body = weft_mlir_op_block(p->graph, 0);
  for (uint32_t i = 0; i < body->argument_count; i++) {
    if (body->arguments[i].type->kind == WEFT_MLIR_MEMREF_TYPE) continue;
    if (i == 0)
      weft_text_puts(out, "  i0 [label=\"start\", shape=ellipse, fillcolor=white];\n");
    else
      weft_text_printf(out, "  i%u [label=\"input %u\", shape=ellipse, fillcolor=white];\n", i, i - 1);
  }
}

static void put_edges(const picture *p, weft_text *out) {
  for (uint32_t i = 0; i < p->op_count; i++) {
    const weft_mlir_op *op = p->ops[i];
    for (uint32_t k = 0; k < op->operand_count; k++)
      if (op->operands[k]->type->kind != WEFT_MLIR_MEMREF_TYPE) put_edge(op, k, out);
  }
}

/* ---- the whole ----------------------------------------------------------------------------------------------------
 */

static bool list_members(picture *p) {
  for (uint32_t i = 0; i < p->op_count; i++) p->boxes[i]->member_count++;
  uint32_t *all = WEFT_NEW_ARRAY(p->arena, uint32_t, p->op_count);
  uint32_t used = 0;
  for (uint32_t i = 0; all && i < p->op_count; i++) {
    picture_box *box = p->boxes[i];
    if (!box->members) {
      box->members = all + used;
      used += box->member_count;
      box->member_count = 0;
    }
    box->members[box->member_count++] = i;
  }
  return all != NULL;
}

static bool find_boxes(picture *p, weft_mlir_context *context, const char *file) {
  emitter e = {.context = context, .scratch = p->arena, .file = file};
  frames f = {.e = &e, .graph = p->graph};
  bool found = frames_find(&f);
  if (weft_arena_failed(p->arena)) return false;
  p->op_count = f.op_count;
  p->ops = f.ops;
  p->boxes = WEFT_NEW_ARRAY(p->arena, picture_box *, f.op_count);
  if (!p->boxes) return false;
  for (uint32_t i = 0; i < p->op_count; i++) p->boxes[i] = &p->root;
  return found ? picture_box_frames(p, &f) : picture_box_rings(p);
}

static const weft_mlir_op *structured_op(const weft_mlir_op *graph) {
  for (const weft_mlir_op *op = weft_mlir_op_block(graph, 0)->first; op; op = op->next)
    if (op->region_count || strncmp(op->name->text, "scf.", 4) == 0) return op;
  return NULL;
}

weft_status weft_dataflow_dot(weft_mlir_context *context, weft_mlir_op *graph, const char *file, weft_text *out,
                              weft_diag *diag) {
  if (weft_mlir_code(graph) != WEFT_DATAFLOW_GRAPH)
    return weft_error_at(diag, WEFT_INVALID, weft_mlir_place(file, graph), "give a dataflow.graph",
                         "only graphs have pictures");
  const weft_mlir_op *structure = structured_op(graph);
  if (structure)
    return weft_error_at(diag, WEFT_INVALID, weft_mlir_place(file, structure), "lower the graph first: weft lower",
                         "%s is no token op", structure->name->text);
  picture p = {.arena = weft_arena_new(), .graph = graph};
  if (!p.arena) return weft_error_memory(diag);
  bool good = find_boxes(&p, context, file) && list_members(&p);
  if (good) {
    weft_text_puts(out, "digraph \"");
    weft_text_dot(out, weft_mlir_symbol_name(graph));
    weft_text_puts(out, "\" {\n  node [style=filled, fontname=\"Helvetica\", fontsize=10];\n"
                        "  edge [fontname=\"Helvetica\", fontsize=8];\n  fontname=\"Helvetica\"; fontsize=10;\n");
    put_inputs(&p, out);
    put_boxes(&p, out);
    put_edges(&p, out);
    weft_text_puts(out, "}\n");
  }
  weft_arena_free(p.arena);
  return good && !out->failed ? WEFT_OK : weft_error_memory(diag);
}
