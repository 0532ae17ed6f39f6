/* Memory shared over phases (C13): an alias of a buffer of another phase of sections is apart from everything else that
 * its own phase has at the site. Within a phase an alias lies inside what it names, and the validator keeps those
 * apart. */
#include "certify_private.h"

#include <stdlib.h>

typedef struct owner {
  uint64_t phase;
  const weft_buffer_at *at;
  uint32_t root, buffer;
} owner;

static int compare_owners(const void *a, const void *b) {
  const owner *s = a, *t = b;
  if (s->phase != t->phase) return s->phase < t->phase ? -1 : 1;
  int order = weft_site_compare(s->at->site, t->at->site);
  if (order) return order;
  if (s->at->space != t->at->space) return s->at->space < t->at->space ? -1 : 1;
  if (s->at->offset_bytes != t->at->offset_bytes) return s->at->offset_bytes < t->at->offset_bytes ? -1 : 1;
  return s->buffer < t->buffer ? -1 : s->buffer > t->buffer;
}

static uint64_t end_of(const owner *o) { return (uint64_t)o->at->offset_bytes + o->at->bytes; }

/** Lists what owns memory in its phase; whether an alias of another phase's buffer is among it. */
static bool list_owners(const weft_program *program, const uint64_t *phases, uint64_t *phase_of, owner *owners,
                        uint64_t *count) {
  bool any = false;
  for (uint64_t k = 0; k < program->section_count; k++)
    for (uint64_t b = program->sections[k].buffers.begin; b < program->sections[k].buffers.end; b++)
      phase_of[b] = phases[k];
  for (uint64_t b = 0; b < program->buffer_count; b++) {
    uint32_t root = plan_alias_root(program, (uint32_t)b);
    if (program->buffers[b].space == WEFT_MEM_ACC || (root != b && phase_of[root] == phase_of[b])) continue;
    any |= root != b;
    owners[(*count)++] = (owner){phase_of[b], &program->memory->buffer_at[b], root, (uint32_t)b};
  }
  return any;
}

static weft_status refuse(const weft_program *program, const owner *a, const owner *b, weft_diag *diag) {
  const owner *alias = a->root != a->buffer ? a : b, *other = alias == a ? b : a;
  return weft_error(
      diag, WEFT_INVALID, "give the buffer memory of its own (no alias_of)",
      "buffer `%s` shares the memory of `%s`, of another phase of sections, where its own phase has `%s`: "
      "site (%u, %u) chip %u, bytes %u to %llu",
      program->buffers[alias->buffer].name, program->buffers[alias->root].name, program->buffers[other->buffer].name,
      alias->at->site.x, alias->at->site.y, alias->at->site.chip, alias->at->offset_bytes,
      (unsigned long long)end_of(alias));
}

static bool same_memory(const owner *a, const owner *b) {
  return a->phase == b->phase && weft_site_equal(a->at->site, b->at->site) && a->at->space == b->at->space;
}

/** The owners are in the order of their offsets: of those so far, the one that ends last, and the one that ends last of
 * those with another root, tell whether the next one is free. Aliases of one root take turns. */
static weft_status check_owners(const weft_program *program, const owner *owners, uint64_t count, weft_diag *diag) {
  const owner *last = NULL, *second = NULL;
  for (uint64_t i = 0; i < count; i++) {
    const owner *o = &owners[i];
    if (last && !same_memory(last, o)) last = second = NULL;
    const owner *other = last && last->root == o->root ? second : last;
    bool alias = o->root != o->buffer || (other && other->root != other->buffer);
    if (other && alias && o->at->bytes && end_of(other) > o->at->offset_bytes) return refuse(program, other, o, diag);
    if (!last || end_of(o) >= end_of(last)) {
      if (last && last->root != o->root) second = last;
      last = o;
    } else if (o->root != last->root && (!second || end_of(o) > end_of(second))) {
      second = o;
    }
  }
  return WEFT_OK;
}

weft_status certify_memory(const weft_program *program, weft_arena *arena, weft_diag *diag) {
  if (!program->section_count) return WEFT_OK;
  const uint64_t *phases = weft_section_phases(program, arena);
  uint64_t *phase_of = WEFT_NEW_ARRAY(arena, uint64_t, program->buffer_count + 1), count = 0;
  owner *owners = WEFT_NEW_ARRAY(arena, owner, program->buffer_count + 1);
  if (!phases || !phase_of || !owners) return weft_error_memory(diag);
  if (!list_owners(program, phases, phase_of, owners, &count)) return WEFT_OK;
  qsort(owners, count, sizeof *owners, compare_owners);
  return check_owners(program, owners, count, diag);
}
