/* Making programs, and the small questions every room asks of one. */
#include "ir_private.h"

#include <string.h>

weft_program *weft_program_new(const char *name) {
  weft_arena *arena = weft_arena_new();
  if (!arena) return NULL;
  weft_program *program = WEFT_NEW(arena, weft_program);
  char *copy = weft_arena_string(arena, name, strlen(name));
  if (!program || !copy) {
    weft_arena_free(arena);
    return NULL;
  }
  *program = (weft_program){.arena = arena,
                            .name = copy,
                            .tile_rows = 32,
                            .tile_cols = 32,
                            .work.k_trip = WEFT_NONE,
                            .mem_banks = 1,
                            .chip = WEFT_NONE};
  return program;
}

void weft_program_free(weft_program *program) {
  if (program) weft_arena_free(program->arena);
}

weft_phase weft_program_phase(const weft_program *program) {
  if (program->verified) return WEFT_PHASE_VERIFIED;
  if (program->schedule) return WEFT_PHASE_SCHEDULED;
  if (program->memory) return WEFT_PHASE_SIZED;
  if (program->placement) return WEFT_PHASE_PLACED;
  return program->work.has_plan ? WEFT_PHASE_TILED : WEFT_PHASE_TEMPLATE;
}

uint64_t weft_ir_format_bytes(weft_format format) {
#define FORMAT_BYTES(id, name, bytes, is_float) bytes,
  static const uint8_t sizes[] = {WEFT_FORMATS(FORMAT_BYTES)};
  return format < WEFT_FORMAT_COUNT ? sizes[format] : 0;
}

uint64_t weft_buffer_bytes(const weft_program *program, const weft_buffer *buffer) {
  uint64_t bytes = weft_ir_format_bytes(buffer->dtype);
  const uint64_t factors[] = {buffer->depth_pages, buffer->page_tiles, program->tile_rows, program->tile_cols};
  for (unsigned i = 0; i < 4; i++)
    if (factors[i] == 0) return 0;
  for (unsigned i = 0; i < 4; i++)
    if (weft_mul_overflow(bytes, factors[i], &bytes)) return UINT64_MAX;
  return bytes;
}

/* ---- sections ---- */

/* The spans partition an id space in order, so the holder is the first section whose span ends past the id. Where they
 * do not (a program that does not validate), the answer is the first section that holds it. */
uint64_t weft_ir_section_holding(const weft_program *program, weft_ir_span_of span_of, uint64_t id) {
  uint64_t low = 0;
  uint64_t high = program->section_count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (span_of(&program->sections[middle])->end <= id)
      low = middle + 1;
    else
      high = middle;
  }
  if (low < program->section_count && span_of(&program->sections[low])->begin <= id) return low;
  for (uint64_t k = 0; k < program->section_count; k++) {
    const weft_span *span = span_of(&program->sections[k]);
    if (span->begin <= id && id < span->end) return k;
  }
  return UINT64_MAX;
}

const weft_span *weft_ir_stages_of(const weft_section *section) { return &section->stages; }
const weft_span *weft_ir_buffers_of(const weft_section *section) { return &section->buffers; }
const weft_span *weft_ir_edges_of(const weft_section *section) { return &section->edges; }
const weft_span *weft_ir_semaphores_of(const weft_section *section) { return &section->semaphores; }
const weft_span *weft_ir_items_of(const weft_section *section) { return &section->items; }

uint64_t weft_section_of_stage(const weft_program *program, uint32_t stage) {
  return weft_ir_section_holding(program, weft_ir_stages_of, stage);
}
uint64_t weft_section_of_buffer(const weft_program *program, uint32_t buffer) {
  return weft_ir_section_holding(program, weft_ir_buffers_of, buffer);
}
uint64_t weft_section_of_item(const weft_program *program, uint32_t item) {
  return weft_ir_section_holding(program, weft_ir_items_of, item);
}

uint64_t *weft_section_phases(const weft_program *program, weft_arena *arena) {
  uint64_t *phases = WEFT_NEW_ARRAY(arena, uint64_t, program->section_count);
  uint64_t phase = 0;
  for (uint64_t k = 0; phases && k < program->section_count; k++) {
    phases[k] = phase;
    phase += program->sections[k].has_barrier_after;
  }
  return phases;
}

/* ---- trips ---- */

uint64_t weft_trip_count(const weft_trip *trip, int64_t v) {
  if (trip->per == 0) return 0;
  __int128 sum = (__int128)v + trip->bias;
  if (sum <= 0) return 0;
  __int128 count = (sum + trip->per - 1) / trip->per;
  return (uint64_t)count;
}
