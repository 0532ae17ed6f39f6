/* A picture of a machine for Graphviz: a column a chip, a box for what a section does there, and the tensors that go
 * from box to box; thick where they cross from chip to chip. */
#include "ir_private.h"

#include <inttypes.h>
#include <stdlib.h>

/** What a section does on a chip: the box it is drawn as. */
typedef struct place {
  uint32_t chip, section, stage;
} place;

typedef struct picture {
  const weft_program *program;
  weft_text *out;
  place *places;     /* of all stages, by chip, section, stage */
  uint32_t *chip_of; /* by stage */
  uint32_t *box_of;  /* by stage: the first of its places */
  uint32_t *writer;  /* by tensor: the box that stores it; WEFT_NONE: none */
  uint32_t *last;    /* by tensor: the last box found to read it; WEFT_NONE: none */
  uint32_t *sent;    /* by tensor: boxes of other chips that read it */
} picture;

static const weft_tensor *tensor_of(const weft_program *p, const weft_stage *stage) {
  uint32_t t = stage->kind == WEFT_STAGE_LOAD    ? stage->load.tensor
               : stage->kind == WEFT_STAGE_STORE ? stage->store.tensor
                                                 : WEFT_NONE;
  return t < p->tensor_count ? &p->tensors[t] : NULL;
}

/** The chip of a stage without a site: where its results are used, or its tensor lies. Readers stand behind writers. */
static void find_chips(const picture *pic, uint32_t *reader) {
  const weft_program *p = pic->program;
  for (uint64_t b = 0; b < p->buffer_count; b++) reader[b] = WEFT_NONE;
  for (uint64_t s = p->stage_count; s-- > 0;) {
    const weft_stage *stage = &p->stages[s];
    const weft_tensor *tensor = tensor_of(p, stage);
    uint32_t chip = stage->site.present ? stage->site.site.chip : WEFT_NONE;
    if (chip == WEFT_NONE && tensor && stage->kind == WEFT_STAGE_STORE) chip = tensor->chip;
    for (uint64_t i = 0; chip == WEFT_NONE && i < stage->out_count; i++)
      if (stage->outs[i] < p->buffer_count && reader[stage->outs[i]] != WEFT_NONE)
        chip = pic->chip_of[reader[stage->outs[i]]];
    if (chip == WEFT_NONE && tensor) chip = tensor->chip;
    pic->chip_of[s] = chip == WEFT_NONE ? 0 : chip;
    for (uint64_t i = 0; i < stage->in_count; i++)
      if (stage->ins[i] < p->buffer_count) reader[stage->ins[i]] = (uint32_t)s;
  }
}

static int by_place(const void *left, const void *right) {
  const place *a = left, *b = right;
  if (a->chip != b->chip) return a->chip < b->chip ? -1 : 1;
  if (a->section != b->section) return a->section < b->section ? -1 : 1;
  return a->stage < b->stage ? -1 : a->stage > b->stage;
}

static bool same_box(const place *a, const place *b) { return a->chip == b->chip && a->section == b->section; }

static void find_boxes(const picture *pic) {
  const weft_program *p = pic->program;
  for (uint64_t s = 0; s < p->stage_count; s++) pic->places[s] = (place){pic->chip_of[s], WEFT_NONE, (uint32_t)s};
  for (uint64_t k = 0; k < p->section_count; k++)
    for (uint64_t s = p->sections[k].stages.begin; s < p->sections[k].stages.end && s < p->stage_count; s++)
      pic->places[s].section = (uint32_t)k;
  qsort(pic->places, p->stage_count, sizeof *pic->places, by_place);
  for (uint64_t t = 0; t < p->tensor_count; t++) pic->writer[t] = pic->last[t] = WEFT_NONE;
  uint32_t box = 0;
  for (uint64_t i = 0; i < p->stage_count; i++) {
    if (!same_box(&pic->places[box], &pic->places[i])) box = (uint32_t)i;
    const weft_stage *stage = &p->stages[pic->places[i].stage];
    pic->box_of[pic->places[i].stage] = box;
    if (stage->kind == WEFT_STAGE_STORE && tensor_of(p, stage)) pic->writer[stage->store.tensor] = box;
  }
}

static void put_size(weft_text *out, const weft_tensor *tensor) {
  uint64_t bytes = weft_tensor_bytes(tensor);
  unsigned shift = bytes < 10240 ? 0 : bytes < UINT64_C(10) << 20 ? 10 : 20;
  weft_text_printf(out, "%" PRIu64 " x %" PRIu64 " %s, %" PRIu64 " %s", tensor->elems.rows, tensor->elems.cols,
                   weft_ir_format_name(tensor->dtype), bytes >> shift,
                   shift == 0    ? "B"
                   : shift == 10 ? "KiB"
                                 : "MiB");
}

/** Whether the stage is its box's first to load a tensor that another box stores; `from` and `to` are the boxes then.
 */
static bool is_arrow(const picture *pic, uint32_t s, uint32_t *from, uint32_t *to) {
  const weft_stage *stage = &pic->program->stages[s];
  if (stage->kind != WEFT_STAGE_LOAD || !tensor_of(pic->program, stage)) return false;
  uint32_t t = stage->load.tensor;
  *from = pic->writer[t];
  *to = pic->box_of[s];
  if (*from == WEFT_NONE || pic->last[t] == *to) return false;
  pic->last[t] = *to;
  return true;
}

static bool crosses(const picture *pic, uint32_t from, uint32_t to) {
  return pic->places[from].chip != pic->places[to].chip;
}

static void count_sent(const picture *pic) {
  uint32_t from, to;
  for (uint64_t i = 0; i < pic->program->stage_count; i++)
    if (is_arrow(pic, pic->places[i].stage, &from, &to) && crosses(pic, from, to))
      pic->sent[pic->program->stages[pic->places[i].stage].load.tensor]++;
  for (uint64_t t = 0; t < pic->program->tensor_count; t++) pic->last[t] = WEFT_NONE;
}

/** What a stage adds to its box: a tensor read from or written to the host or sent to chips, or work. */
static void put_line(const picture *pic, const weft_stage *stage) {
  const weft_tensor *tensor = tensor_of(pic->program, stage);
  weft_text *out = pic->out;
  if (tensor) {
    const uint32_t t = (uint32_t)(tensor - pic->program->tensors), sent = pic->sent[t];
    const bool loads = stage->kind == WEFT_STAGE_LOAD;
    if (loads ? pic->writer[t] != WEFT_NONE : tensor->role == WEFT_ROLE_ACTIVATION && !sent) return;
    weft_text_puts(out, loads ? "reads " : tensor->role == WEFT_ROLE_ACTIVATION ? "sends " : "writes ");
    weft_text_dot(out, tensor->name);
    weft_text_puts(out, " ");
    put_size(out, tensor);
    if (!loads && sent) weft_text_printf(out, " to %" PRIu32 " elsewhere", sent);
  } else {
    weft_text_dot(out, stage->name);
  }
  weft_text_puts(out, "\\l");
}

/** The boxes of a chip, one under the other. Returns the first place behind them. */
static uint64_t put_chip(const picture *pic, uint64_t begin) {
  const weft_program *p = pic->program;
  weft_text *out = pic->out;
  const uint32_t chip = pic->places[begin].chip;
  uint64_t end = begin, before = begin;
  weft_text_printf(out, "  subgraph cluster_chip%" PRIu32 " {\n    label=\"chip %" PRIu32 "\"; color=gray60;\n", chip,
                   chip);
  while (end < p->stage_count && pic->places[end].chip == chip) {
    uint64_t box = end;
    weft_text_printf(out, "    n%" PRIu64 " [label=\"", box);
    weft_text_dot(out, pic->places[box].section == WEFT_NONE ? p->name : p->sections[pic->places[box].section].name);
    weft_text_puts(out, "\\n");
    for (; end < p->stage_count && same_box(&pic->places[box], &pic->places[end]); end++)
      put_line(pic, &p->stages[pic->places[end].stage]);
    weft_text_puts(out, "\"];\n");
    if (before != box)
      weft_text_printf(out, "    n%" PRIu64 " -> n%" PRIu64 " [style=invis, weight=20];\n", before, box);
    before = box;
  }
  weft_text_puts(out, "  }\n");
  return end;
}

/** An arrow for each tensor and box that reads it; what crosses is named where it is sent. */
static void put_arrow(const picture *pic, uint32_t s) {
  uint32_t from, to;
  if (!is_arrow(pic, s, &from, &to)) return;
  weft_text_printf(pic->out, "  n%" PRIu32 " -> n%" PRIu32 " [", from, to);
  if (crosses(pic, from, to)) {
    weft_text_puts(pic->out, "color=\"#1f5fbf\", penwidth=1.5, constraint=false];\n");
    return;
  }
  const weft_tensor *tensor = tensor_of(pic->program, &pic->program->stages[s]);
  weft_text_puts(pic->out, "label=\"");
  weft_text_dot(pic->out, tensor->name);
  weft_text_puts(pic->out, "\\n");
  put_size(pic->out, tensor);
  weft_text_puts(pic->out, "\"];\n");
}

static void put_picture(const picture *pic) {
  weft_text_puts(pic->out, "digraph \"");
  weft_text_dot(pic->out, pic->program->name);
  weft_text_puts(pic->out, "\" {\n  node [shape=box, fontsize=10]; edge [fontsize=9]; ranksep=0.9; splines=line;\n");
  for (uint64_t i = 0; i < pic->program->stage_count;) i = put_chip(pic, i);
  for (uint64_t i = 0; i < pic->program->stage_count; i++) put_arrow(pic, pic->places[i].stage);
  weft_text_puts(pic->out, "}\n");
}

void weft_program_dot_chips(const weft_program *program, weft_text *text) {
  const uint64_t stages = program->stage_count + 1, tensors = program->tensor_count + 1;
  picture pic = {.program = program,
                 .out = text,
                 .places = calloc(stages, sizeof *pic.places),
                 .chip_of = calloc(stages, sizeof *pic.chip_of),
                 .box_of = calloc(stages, sizeof *pic.box_of),
                 .writer = calloc(tensors, sizeof *pic.writer),
                 .last = calloc(tensors, sizeof *pic.last),
                 .sent = calloc(tensors, sizeof *pic.sent)};
  uint32_t *reader = calloc(program->buffer_count + 1, sizeof *reader);
  if (pic.places && pic.chip_of && pic.box_of && pic.writer && pic.last && pic.sent && reader) {
    find_chips(&pic, reader);
    find_boxes(&pic);
    count_sent(&pic);
    put_picture(&pic);
  } else {
    text->failed = true;
  }
  free(pic.places);
  free(pic.chip_of);
  free(pic.box_of);
  free(pic.writer);
  free(pic.last);
  free(pic.sent);
  free(reader);
}
