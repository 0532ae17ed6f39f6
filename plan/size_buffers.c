/* size_buffers
 * requires     a Placed program
 * establishes  every section but the last is closed by a rendezvous of all engine programs; every buffer has its bytes
 *              of its site's memory; buffers of one phase of sections share none; members of a group lie alike
 * breaks       nothing
 * source       spatial-ir seed, "MemoryMap", "validate_memory" */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64

typedef struct entry {
  uint64_t phase, section;
  uint64_t slot; /**< number of its phase, site and space */
  weft_site site;
  weft_mem_space space;
  uint32_t buffer;
} entry;

static int compare_entries(const void *a, const void *b) {
  const entry *s = a, *t = b;
  if (s->phase != t->phase) return s->phase < t->phase ? -1 : 1;
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

typedef struct layout {
  const weft_program *program;
  const weft_target *target;
  const entry *entries;
  uint64_t *ends;     /**< by slot: bytes taken so far */
  uint64_t *first;    /**< by group: one more than the first of its members' entries; 0: none */
  uint64_t *next;     /**< by entry: one more than the group's next; 0: none */
  uint32_t *group_of; /**< by buffer; WEFT_NONE: no member */
  weft_buffer_at *at;
  weft_diag *diag;
} layout;

static void number_slots(entry *entries, uint64_t count) {
  for (uint64_t i = 1; i < count; i++) {
    const entry *last = &entries[i - 1];
    bool same = last->phase == entries[i].phase && weft_site_equal(last->site, entries[i].site) &&
                last->space == entries[i].space;
    entries[i].slot = last->slot + !same;
  }
}

static bool in_no_room(const layout *l, const entry *e) {
  return e->space == WEFT_MEM_ACC || l->program->buffers[e->buffer].alias_of != WEFT_NONE;
}

static weft_status put(const layout *l, const entry *e, uint64_t begin) {
  const bool roomless = in_no_room(l, e);
  uint64_t bytes = weft_buffer_bytes(l->program, &l->program->buffers[e->buffer]), stop;
  uint64_t limit = roomless ? UINT32_MAX : weft_min_u64(l->target->local_bytes, UINT32_MAX);
  if (roomless) begin = 0;
  if (weft_add_overflow(begin, bytes, &stop) || stop > limit)
    return too_large(l->program, l->target, e, bytes == UINT64_MAX ? bytes : begin + bytes, limit, l->diag);
  l->at[e->buffer] = (weft_buffer_at){e->site, e->space, (uint32_t)begin, (uint32_t)bytes};
  if (!roomless) l->ends[e->slot] = (stop + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return WEFT_OK;
}

/** The members of every group, in the order of their entries. */
static void list_members(layout *l) {
  const weft_program *program = l->program;
  const uint64_t groups = program->placement->group_count;
  memset(l->group_of, 0xff, (program->buffer_count + 1) * sizeof *l->group_of);
  for (uint64_t s = 0; s < program->stage_count; s++) {
    const weft_stage *stage = &program->stages[s];
    uint32_t group = stage->kind == WEFT_STAGE_LOAD   ? stage->load.multicast
                     : stage->kind == WEFT_STAGE_RECV ? stage->recv.group
                                                      : WEFT_NONE;
    if (group < groups && stage->out_count) l->group_of[stage->outs[0]] = group;
  }
  for (uint64_t i = program->buffer_count; i-- > 0;) {
    uint32_t group = l->group_of[l->entries[i].buffer];
    if (group == WEFT_NONE) continue;
    l->next[i] = l->first[group];
    l->first[group] = i + 1;
  }
}

/** A multicast lands at one address: the members of a group lie where all their sites have room. */
static weft_status lay_out_group(const layout *l, uint64_t group) {
  uint64_t begin = 0;
  for (uint64_t m = l->first[group]; m; m = l->next[m - 1])
    begin = weft_max_u64(begin, l->ends[l->entries[m - 1].slot]);
  for (uint64_t m = l->first[group]; m; m = l->next[m - 1]) {
    weft_status status = put(l, &l->entries[m - 1], begin);
    if (status) return status;
  }
  return WEFT_OK;
}

/** Groups first, then each site's other buffers, one behind the other. */
static weft_status lay_out(layout *l) {
  weft_status status = WEFT_OK;
  list_members(l);
  for (uint64_t g = 0; !status && g < l->program->placement->group_count; g++) status = lay_out_group(l, g);
  for (uint64_t i = 0; !status && i < l->program->buffer_count; i++) {
    const entry *e = &l->entries[i];
    if (l->group_of[e->buffer] == WEFT_NONE) status = put(l, e, l->ends[e->slot]);
  }
  return status;
}

/** An alias lies where its root lies. */
static weft_status place_aliases(const weft_program *program, weft_buffer_at *at, weft_diag *diag) {
  for (uint64_t b = 0; b < program->buffer_count; b++) {
    uint32_t root = plan_alias_root(program, (uint32_t)b);
    if (root == WEFT_NONE)
      return weft_error(diag, WEFT_INVALID, NULL, "buffer `%s` is an alias of itself", program->buffers[b].name);
    if (root == b) continue;
    if (!weft_site_equal(at[b].site, at[root].site) || at[b].space != at[root].space)
      return weft_error(diag, WEFT_INVALID, "give the buffer memory of its own (no alias_of)",
                        "buffer `%s` of site (%u, %u) chip %u shares the memory of `%s`, which is elsewhere",
                        program->buffers[b].name, at[b].site.x, at[b].site.y, at[b].site.chip,
                        program->buffers[root].name);
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

static bool prepare(layout *l, weft_arena *scratch, entry *entries) {
  const uint64_t count = l->program->buffer_count;
  l->entries = entries;
  l->ends = WEFT_NEW_ARRAY(scratch, uint64_t, count + 1);
  l->next = WEFT_NEW_ARRAY(scratch, uint64_t, count + 1);
  l->first = WEFT_NEW_ARRAY(scratch, uint64_t, l->program->placement->group_count + 1);
  l->group_of = WEFT_NEW_ARRAY(scratch, uint32_t, count + 1);
  return entries && l->ends && l->next && l->first && l->group_of && l->at;
}

static weft_status size(weft_program *program, const weft_target *target, weft_arena *scratch, weft_diag *diag) {
  weft_memory_map *memory = WEFT_NEW(program->arena, weft_memory_map);
  layout l = {.program = program, .target = target, .diag = diag};
  l.at = WEFT_NEW_ARRAY(program->arena, weft_buffer_at, program->buffer_count);
  entry *entries = WEFT_NEW_ARRAY(scratch, entry, program->buffer_count + 1);
  if (!memory || !prepare(&l, scratch, entries)) return weft_error_memory(diag);
  weft_status status = plan_close_sections(program, scratch, diag);
  const uint64_t *phases = status ? NULL : weft_section_phases(program, scratch);
  if (!status && !phases) status = weft_error_memory(diag);
  if (status) return status;
  list_entries(program, phases, entries);
  qsort(entries, program->buffer_count, sizeof *entries, compare_entries);
  number_slots(entries, program->buffer_count);
  status = lay_out(&l);
  if (!status) status = place_aliases(program, l.at, diag);
  if (status) return status;
  *memory = (weft_memory_map){l.at, program->buffer_count};
  program->memory = memory;
  return WEFT_OK;
}

weft_status weft_pass_size_buffers(weft_program *program, const weft_target *target, const weft_options *options,
                                   weft_diag *diag) {
  (void)options;
  weft_arena *scratch = weft_arena_new();
  weft_status status = scratch ? size(program, target, scratch, diag) : weft_error_memory(diag);
  if (scratch) weft_arena_free(scratch);
  return status;
}
