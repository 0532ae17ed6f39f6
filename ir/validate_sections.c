/* 2. Sections: they part every id space in order, and keep to their own buffers. */
#include "validate_private.h"

/* The spans of one id space follow one another from 0 to `total`. False when they do not. */
static bool check_spans(check *c, const char *what, weft_ir_span_of span_of, uint64_t total) {
  const weft_program *p = c->program;
  uint64_t cursor = 0;
  for (uint64_t k = 0; k < p->section_count; k++) {
    const weft_span *span = span_of(&p->sections[k]);
    if (span->begin != cursor || span->end < span->begin) {
      REPORT(c, SECTION_SPAN_MALFORMED, section(k), text(what));
      return false;
    }
    cursor = span->end;
  }
  if (cursor == total) return true;
  REPORT(c, SECTION_SPAN_MALFORMED, section(p->section_count - 1), text(what));
  return false;
}

static bool check_ports(check *c, uint64_t k, uint64_t s, const uint32_t *ports, uint64_t count) {
  const weft_program *p = c->program;
  const weft_span *own = &p->sections[k].buffers;
  for (uint64_t i = 0; i < count; i++) {
    if (ports[i] >= own->begin && ports[i] < own->end) continue;
    uint64_t holder = weft_section_of_buffer(p, ports[i]);
    if (!REPORT(c, SECTION_BUFFER_ESCAPE, stage(s), buffer(ports[i]), number(k), number(holder))) return false;
  }
  return true;
}

void weft_validate_sections(check *c) {
  const weft_program *p = c->program;
  if (!p->section_count) return;
  const struct {
    const char *what;
    weft_ir_span_of span_of;
    uint64_t total;
  } spaces[] = {
      {"stages", weft_ir_stages_of, p->stage_count},   {"buffers", weft_ir_buffers_of, p->buffer_count},
      {"edges", weft_ir_edges_of, p->edge_count},      {"semaphores", weft_ir_semaphores_of, p->semaphore_count},
      {"items", weft_ir_items_of, p->work.item_count},
  };
  bool parted = true;
  for (size_t i = 0; i < sizeof spaces / sizeof *spaces && !c->stop; i++)
    parted &= check_spans(c, spaces[i].what, spaces[i].span_of, spaces[i].total);
  if (!parted) return;
  for (uint64_t k = 0; k < p->section_count; k++)
    for (uint64_t s = p->sections[k].stages.begin; s < p->sections[k].stages.end; s++) {
      const weft_stage *st = &p->stages[s];
      if (!check_ports(c, k, s, st->ins, st->in_count) || !check_ports(c, k, s, st->outs, st->out_count)) return;
    }
}
