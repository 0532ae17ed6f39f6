/* 12. Memory: every buffer has a place, and none shares bytes with another of its phase. */
#include "validate_private.h"

#include <stdlib.h>

typedef struct extent {
  uint64_t phase, site; /* phase 0: in no section; else one more than the phase's number */
  weft_site where;
  weft_mem_space space;
  uint32_t begin, end, buffer;
} extent;

static int compare_extents(const void *a, const void *b) {
  const extent *x = a;
  const extent *y = b;
  const uint64_t keys[2][6] = {{x->phase, x->site, x->space, x->begin, x->end, x->buffer},
                               {y->phase, y->site, y->space, y->begin, y->end, y->buffer}};
  for (unsigned i = 0; i < 6; i++)
    if (keys[0][i] != keys[1][i]) return keys[0][i] < keys[1][i] ? -1 : 1;
  return 0;
}

/* The buffers that have bytes of their own; false after exhausted memory. */
static bool find_extents(check *c, extent *extents, uint64_t *count) {
  const weft_program *p = c->program;
  const uint64_t *phases = weft_section_phases(p, c->arena);
  if (!phases) return weft_check_out_of_memory(c);
  for (uint64_t b = 0; b < p->buffer_count; b++) {
    const weft_buffer_at *at = &p->memory->buffer_at[b];
    if (p->buffers[b].alias_of != WEFT_NONE || p->buffers[b].space == WEFT_MEM_ACC) continue;
    uint64_t k = p->section_count ? weft_section_of_buffer(p, (uint32_t)b) : UINT64_MAX;
    uint64_t end = (uint64_t)at->offset_bytes + at->bytes;
    if (end > UINT32_MAX) {
      if (!REPORT(c, SIZE_OVERFLOW, text("the end of its place"), buffer(b))) return false;
      continue;
    }
    extents[(*count)++] = (extent){.phase = k == UINT64_MAX ? 0 : phases[k] + 1,
                                   .site = site_key(at->site),
                                   .where = at->site,
                                   .space = at->space,
                                   .begin = at->offset_bytes,
                                   .end = (uint32_t)end,
                                   .buffer = (uint32_t)b};
  }
  return true;
}

void weft_validate_memory(check *c) {
  const weft_program *p = c->program;
  if (!p->memory) return;
  if (p->memory->buffer_at_count != p->buffer_count) {
    REPORT(c, MEMORY_UNMAPPED, buffer(p->memory->buffer_at_count));
    return;
  }
  extent *extents = weft_check_array(c, p->buffer_count, sizeof *extents);
  uint64_t count = 0;
  if (!extents || !find_extents(c, extents, &count)) return;
  qsort(extents, count, sizeof *extents, compare_extents);
  for (uint64_t i = 1; i < count; i++) {
    const extent *a = &extents[i - 1];
    const extent *b = &extents[i];
    if (a->phase != b->phase || a->site != b->site || a->space != b->space || b->begin >= a->end) continue;
    if (!REPORT(c, MEMORY_OVERLAP, site(b->where), buffer(a->buffer), buffer(b->buffer))) return;
  }
}
