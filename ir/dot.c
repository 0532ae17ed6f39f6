/* A picture of a program for Graphviz: sections as boxes, stages and the buffers between them, and the tensors that are
 * loaded and stored. */
#include "ir_private.h"

#include <inttypes.h>

static const char *const kind_names[] = {"load", "store", "receive", "all-reduce", "compute", "scalar"};

static void put_stage(weft_text *out, const weft_program *p, uint64_t s, const char *indent) {
  weft_text_printf(out, "%ss%" PRIu64 " [shape=box, label=\"", indent, s);
  weft_text_dot(out, p->stages[s].name);
  weft_text_printf(out, "\\n%s\"];\n", kind_names[p->stages[s].kind]);
}

static void put_buffer(weft_text *out, const weft_program *p, uint64_t b, const char *indent) {
  const weft_buffer *bf = &p->buffers[b];
  weft_text_printf(out, "%sb%" PRIu64 " [shape=ellipse, label=\"", indent, b);
  weft_text_dot(out, bf->name);
  weft_text_printf(out, "\\n%" PRIu64 " x %" PRIu64 "\"];\n", bf->depth_pages, bf->page_tiles);
}

static void put_nodes(weft_text *out, const weft_program *p, weft_span stages, weft_span buffers, const char *indent) {
  for (uint64_t s = stages.begin; s < stages.end && s < p->stage_count; s++) put_stage(out, p, s, indent);
  for (uint64_t b = buffers.begin; b < buffers.end && b < p->buffer_count; b++) put_buffer(out, p, b, indent);
}

static void put_section(weft_text *out, const weft_program *p, uint64_t k) {
  const weft_section *section = &p->sections[k];
  weft_text_printf(out, "  subgraph cluster_%" PRIu64 " {\n    label=\"", k);
  weft_text_dot(out, section->name);
  weft_text_puts(out, "\";\n");
  put_nodes(out, p, section->stages, section->buffers, "    ");
  weft_text_puts(out, "  }\n");
}

static void put_tensor(weft_text *out, const weft_program *p, uint64_t t) {
  weft_text_printf(out, "  t%" PRIu64 " [shape=cylinder, label=\"", t);
  weft_text_dot(out, p->tensors[t].name);
  weft_text_printf(out, "\\n%" PRIu64 " x %" PRIu64 "\"];\n", p->tensors[t].elems.rows, p->tensors[t].elems.cols);
}

static void put_arrows(weft_text *out, const weft_program *p, uint64_t s) {
  const weft_stage *st = &p->stages[s];
  for (uint64_t i = 0; i < st->in_count; i++)
    weft_text_printf(out, "  b%u -> s%" PRIu64 ";\n", (unsigned)st->ins[i], s);
  for (uint64_t i = 0; i < st->out_count; i++)
    weft_text_printf(out, "  s%" PRIu64 " -> b%u;\n", s, (unsigned)st->outs[i]);
  if (st->kind == WEFT_STAGE_LOAD) weft_text_printf(out, "  t%u -> s%" PRIu64 ";\n", (unsigned)st->load.tensor, s);
  if (st->kind == WEFT_STAGE_STORE) weft_text_printf(out, "  s%" PRIu64 " -> t%u;\n", s, (unsigned)st->store.tensor);
}

/* Edges between sites: the readers have buffers of their own. */
static void put_crossing(weft_text *out, const weft_program *p, uint64_t e) {
  const weft_edge *edge = &p->edges[e];
  if (edge->handshake == WEFT_HANDSHAKE_FIFO || edge->handshake == WEFT_HANDSHAKE_VALID_READY) return;
  for (uint64_t i = 0; i < edge->to_count; i++)
    weft_text_printf(out, "  s%u -> s%u [style=dashed, label=\"%s\"];\n", (unsigned)edge->from, (unsigned)edge->to[i],
                     weft_handshake_kind_name(edge->handshake));
}

void weft_program_dot(const weft_program *program, weft_text *text) {
  weft_text_puts(text, "digraph \"");
  weft_text_dot(text, program->name);
  weft_text_puts(text, "\" {\n  rankdir=LR;\n");
  for (uint64_t t = 0; t < program->tensor_count; t++) put_tensor(text, program, t);
  for (uint64_t k = 0; k < program->section_count; k++) put_section(text, program, k);
  if (!program->section_count)
    put_nodes(text, program, (weft_span){0, program->stage_count}, (weft_span){0, program->buffer_count}, "  ");
  for (uint64_t s = 0; s < program->stage_count; s++) put_arrows(text, program, s);
  for (uint64_t e = 0; e < program->edge_count; e++) put_crossing(text, program, e);
  weft_text_puts(text, "}\n");
}
