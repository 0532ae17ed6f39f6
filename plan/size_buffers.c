/* size_buffers
 * requires     a Placed program
 * establishes  every section but the last is closed by a rendezvous of all engine programs; every buffer has its bytes
 *              of its site's memory; buffers of one phase of sections share none; members of a group lie alike
 * breaks       nothing
 * source       spatial-ir seed, "MemoryMap", "validate_memory" */
#include "internal.h"

#include <stdlib.h>

#define ALIGNMENT 64

typedef struct entry {
  uint64_t phase, section;
  uint64_t ordinal; /**< among the buffers of its phase, site and space */
  weft_site site;
  weft_mem_space space;
  uint32_t buffer;
} entry;

static int compare_entries(const void *a, const void *b) {
  const entry *s = a, *t = b;
  if (s->phase != t->phase) return s->phase < t->phase ? -1 : 1;
  if (s->site.chip != t->site.chip) return s->site.chip < t->site.chip ? -1 : 1;
  int order = weft_site_compare(s->site, t->site);
  if (order) return order;
  if (s->space != t->space) return s->space < t->space ? -1 : 1;
  return s->buffer < t->buffer ? -1 : s->buffer > t->buffer;
}

static weft_status too_large(const weft_program *program, const weft_target *target, const entry *e, uint64_t bytes,
                             uint64_t limit, weft_diag *diag) {
  return weft_error(diag, WEFT_INVALID, "use a target with more local memory, more sites or smaller blocks",
                    "section `%s`: buffer `%s` ends %llu bytes into the memory of site (%u, %u) chip %u; target `%s` "
                    "has %llu",
                    plan_section_name(program, e->section), program->buffers[e->buffer].name, (unsigned long long)bytes,
                    e->site.x, e->site.y, e->site.chip, target->name, (unsigned long long)limit);
}

/** Numbers the entries of every phase and site. */
static void number_entries(entry *entries, uint64_t count) {
  for (uint64_t i = 1; i < count; i++)
    if (entries[i - 1].phase == entries[i].phase && weft_site_equal(entries[i - 1].site, entries[i].site))
      entries[i].ordinal = entries[i - 1].ordinal + 1;
}

/** Whether entry `i` is the first of its phase and chip. */
static bool begins_chip(const entry *entries, uint64_t i) {
  return i && (entries[i - 1].phase != entries[i].phase || entries[i - 1].site.chip != entries[i].site.chip);
}

/** The bytes that the n-th buffer of any site of a chip takes in a phase at most, at index (first entry of the phase
 * and chip) + n: with groups all sites of a chip are laid out alike. */
static void find_most(const weft_program *program, const entry *entries, uint64_t *most) {
  uint64_t begin = 0;
  for (uint64_t i = 0; i < program->buffer_count; i++) {
    if (begins_chip(entries, i)) begin = i;
    uint64_t bytes = weft_buffer_bytes(program, &program->buffers[entries[i].buffer]);
    uint64_t *slot = &most[begin + entries[i].ordinal];
    *slot = weft_max_u64(*slot, bytes);
  }
}

/** By chip: whether it has groups. NULL without memory. */
static bool *find_grouped(const weft_program *program, weft_arena *scratch) {
  bool *grouped = WEFT_NEW_ARRAY(scratch, bool, UINT16_MAX + 1);
  for (uint64_t g = 0; grouped && g < program->placement->group_count; g++)
    grouped[program->placement->groups[g].sender.chip] = true;
  return grouped;
}

static weft_status lay_out(const weft_program *program, const weft_target *target, const entry *entries,
                           const uint64_t *most, const bool *grouped, weft_buffer_at *at, weft_diag *diag) {
  uint64_t end = 0, chip_begin = 0;
  for (uint64_t i = 0; i < program->buffer_count; i++) {
    const entry *e = &entries[i];
    const bool alike = grouped[e->site.chip];
    if (begins_chip(entries, i)) chip_begin = i;
    if (e->ordinal == 0 || (!alike && entries[i - 1].space != e->space)) end = 0;
    const weft_buffer *buffer = &program->buffers[e->buffer];
    uint64_t bytes = weft_buffer_bytes(program, buffer), room = alike ? most[chip_begin + e->ordinal] : bytes;
    bool acc = e->space == WEFT_MEM_ACC, alias = buffer->alias_of != WEFT_NONE;
    uint64_t limit = acc || alias ? UINT32_MAX : weft_min_u64(target->local_bytes, UINT32_MAX);
    uint64_t begin = acc || alias ? 0 : end, stop;
    if (weft_add_overflow(begin, bytes, &stop) || stop > limit)
      return too_large(program, target, e, bytes == UINT64_MAX ? bytes : begin + bytes, limit, diag);
    at[e->buffer] = (weft_buffer_at){e->site, e->space, (uint32_t)begin, (uint32_t)bytes};
    if (!acc && !alias) end = (begin + room + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
  return WEFT_OK;
}

/** An alias lies where its root lies. */
static weft_status place_aliases(const weft_program *program, weft_buffer_at *at, weft_diag *diag) {
  for (uint64_t b = 0; b < program->buffer_count; b++) {
    uint32_t root = plan_alias_root(program, (uint32_t)b);
    if (root == WEFT_NONE)
      return weft_error(diag, WEFT_INVALID, NULL, "buffer `%s` is an alias of itself", program->buffers[b].name);
    if (root == b) continue;
    if (at[b].bytes > at[root].bytes)
      return weft_error(diag, WEFT_INVALID, "give the aliased buffer more pages",
                        "buffer `%s` is larger than `%s`, whose memory it shares", program->buffers[b].name,
                        program->buffers[root].name);
    at[b].offset_bytes = at[root].offset_bytes;
  }
  return WEFT_OK;
}

static void list_entries(const weft_program *program, const uint64_t *phases, entry *entries) {
  uint64_t count = plan_section_count(program);
  for (uint64_t k = 0; k < count; k++) {
    weft_span buffers = plan_section_buffers(program, k);
    for (uint64_t b = buffers.begin; b < buffers.end; b++) {
      const weft_buffer *buffer = &program->buffers[b];
      entries[b] = (entry){program->section_count ? phases[k] : 0, k, 0, buffer->site.site, buffer->space, (uint32_t)b};
    }
  }
}

weft_status weft_pass_size_buffers(weft_program *program, const weft_target *target, const weft_options *options,
                                   weft_diag *diag) {
  (void)options;
  weft_arena *scratch = weft_arena_new();
  weft_memory_map *memory = WEFT_NEW(program->arena, weft_memory_map);
  weft_buffer_at *at = WEFT_NEW_ARRAY(program->arena, weft_buffer_at, program->buffer_count);
  entry *entries = scratch ? WEFT_NEW_ARRAY(scratch, entry, program->buffer_count) : NULL;
  uint64_t *most = scratch ? WEFT_NEW_ARRAY(scratch, uint64_t, program->buffer_count + 1) : NULL;
  const bool *grouped = scratch ? find_grouped(program, scratch) : NULL;
  weft_status status = WEFT_OK;
  if (!memory || !at || !entries || !most || !grouped) status = weft_error_memory(diag);
  if (!status) status = plan_close_sections(program, scratch, diag);
  const uint64_t *phases = status ? NULL : weft_section_phases(program, scratch);
  if (!status && !phases) status = weft_error_memory(diag);
  if (!status) {
    list_entries(program, phases, entries);
    qsort(entries, program->buffer_count, sizeof *entries, compare_entries);
    number_entries(entries, program->buffer_count);
    find_most(program, entries, most);
    status = lay_out(program, target, entries, most, grouped, at, diag);
  }
  if (!status) status = place_aliases(program, at, diag);
  if (!status) {
    *memory = (weft_memory_map){at, program->buffer_count};
    program->memory = memory;
  }
  if (scratch) weft_arena_free(scratch);
  return status;
}
