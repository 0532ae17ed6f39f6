/* Semaphores of multicast groups: a ready counter and a valid flag an operand and number of receivers, shared by the
 * groups that a section has on a chip, held at every site of theirs. */
#include "synthesize.h"

#include <stdlib.h>
#include <string.h>

typedef struct adder {
  synthesizer *s;
  weft_semaphore *semaphores;
  uint64_t count;
  weft_section *sections;
  uint64_t *section_of_group;
  uint32_t *first, *next; /**< by section, by group: the section's groups in order; WEFT_NONE after the last */
} adder;

static int compare_sites(const void *a, const void *b) {
  return weft_site_compare(*(const weft_site *)a, *(const weft_site *)b);
}

static uint64_t receivers_of(const weft_group *group) {
  return (uint64_t)(group->rect.x1 - group->rect.x0 + 1) * (uint64_t)(group->rect.y1 - group->rect.y0 + 1) - 1;
}

/** Whether group `g`, of the same section, shares the pair of `like`: of its chip, operand and number of receivers. */
static bool shares_pair(const adder *a, uint32_t g, uint32_t like) {
  const weft_group *group = &a->s->program->placement->groups[g], *other = &a->s->program->placement->groups[like];
  return group->sender.chip == other->sender.chip && group->operand == other->operand &&
         receivers_of(group) == receivers_of(other);
}

/** The sites of the groups that share the pair of group `like`, sorted, each once; NULL without memory. */
static weft_site *sites_of(adder *a, uint32_t like, uint64_t *count) {
  const weft_placement *placement = a->s->program->placement;
  uint64_t most = 0;
  for (uint32_t g = like; g != WEFT_NONE; g = a->next[g]) {
    const weft_group *group = &placement->groups[g];
    if (!shares_pair(a, g, like)) continue;
    most += (uint64_t)(group->rect.x1 - group->rect.x0 + 1) * (uint64_t)(group->rect.y1 - group->rect.y0 + 1);
  }
  *count = 0;
  weft_site *sites = WEFT_NEW_ARRAY(a->s->arena, weft_site, most);
  if (!sites) {
    a->s->failed = true;
    return NULL;
  }
  for (uint32_t g = like; g != WEFT_NONE; g = a->next[g]) {
    const weft_group *group = &placement->groups[g];
    if (!shares_pair(a, g, like)) continue;
    for (uint32_t y = group->rect.y0; y <= group->rect.y1; y++)
      for (uint32_t x = group->rect.x0; x <= group->rect.x1; x++)
        sites[(*count)++] = (weft_site){(uint16_t)x, (uint16_t)y, group->sender.chip};
  }
  qsort(sites, *count, sizeof *sites, compare_sites);
  uint64_t kept = 0;
  for (uint64_t i = 0; i < *count; i++)
    if (i == 0 || !weft_site_equal(sites[kept - 1], sites[i])) sites[kept++] = sites[i];
  *count = kept;
  return sites;
}

/** A pair for group `like` and the later ones that share it. */
static void add_pair(adder *a, uint32_t like) {
  uint64_t site_count;
  const weft_site *sites = sites_of(a, like, &site_count);
  if (!sites) return;
  const weft_placement *placement = a->s->program->placement;
  uint32_t ready = (uint32_t)a->count, valid = ready + 1;
  for (uint32_t g = like; g != WEFT_NONE; g = a->next[g]) {
    if (!shares_pair(a, g, like)) continue;
    a->s->ready_of_group[g] = ready;
    a->s->valid_of_group[g] = valid;
  }
  weft_semaphore pair = {.id = ready,
                         .has_operand = true,
                         .operand = placement->groups[like].operand,
                         .sites = sites,
                         .site_count = site_count};
  pair.role = WEFT_SEM_READY_COUNTER;
  pair.count = receivers_of(&placement->groups[like]);
  a->semaphores[a->count++] = pair;
  pair.id = valid;
  pair.role = WEFT_SEM_VALID_FLAG;
  pair.count = 0;
  a->semaphores[a->count++] = pair;
}

/** The section's rendezvous keeps its place before the pairs. */
static void add_section(adder *a, uint64_t k) {
  const weft_program *program = a->s->program;
  weft_span old = program->section_count ? program->sections[k].semaphores : (weft_span){0, program->semaphore_count};
  uint64_t begin = a->count;
  for (uint64_t i = old.begin; i < old.end; i++) {
    a->semaphores[a->count] = program->semaphores[i];
    a->semaphores[a->count].id = (uint32_t)a->count;
    a->count++;
  }
  for (uint32_t g = a->first[k]; g != WEFT_NONE && !a->s->failed; g = a->next[g])
    if (a->s->ready_of_group[g] == WEFT_NONE) add_pair(a, g);
  if (!program->section_count) return;
  a->sections[k] = program->sections[k];
  a->sections[k].semaphores = (weft_span){begin, a->count};
  a->sections[k].gather += (uint32_t)(begin - old.begin);
  a->sections[k].release += (uint32_t)(begin - old.begin);
}

/** Edges from a sender to its receivers get the pair of their group. */
static bool set_edges(adder *a) {
  weft_program *program = a->s->program;
  weft_edge *edges = WEFT_NEW_ARRAY(a->s->arena, weft_edge, program->edge_count);
  if (!edges) return false;
  if (program->edge_count) memcpy(edges, program->edges, program->edge_count * sizeof *edges);
  for (uint64_t e = 0; e < program->edge_count; e++) {
    const weft_stage *from = &program->stages[edges[e].from];
    bool sends = from->kind == WEFT_STAGE_LOAD && from->load.multicast != WEFT_NONE && edges[e].to_count &&
                 program->stages[edges[e].to[0]].kind == WEFT_STAGE_RECV;
    if (!sends) continue;
    edges[e].handshake = WEFT_HANDSHAKE_SEMAPHORE;
    edges[e].ready = a->s->ready_of_group[from->load.multicast];
    edges[e].valid = a->s->valid_of_group[from->load.multicast];
    edges[e].ready_count = edges[e].to_count;
  }
  program->edges = edges;
  program->requires_handshakes |= 1u << WEFT_HANDSHAKE_SEMAPHORE;
  return true;
}

weft_status synth_semaphores(synthesizer *s) {
  weft_program *program = s->program;
  uint64_t groups = program->placement->group_count, sections = plan_section_count(program);
  if (groups == 0) return WEFT_OK;
  adder a = {.s = s};
  a.semaphores = WEFT_NEW_ARRAY(s->arena, weft_semaphore, program->semaphore_count + 2 * groups);
  a.sections = WEFT_NEW_ARRAY(s->arena, weft_section, program->section_count);
  a.section_of_group = WEFT_NEW_ARRAY(s->scratch, uint64_t, groups);
  a.first = WEFT_NEW_ARRAY(s->scratch, uint32_t, sections);
  a.next = WEFT_NEW_ARRAY(s->scratch, uint32_t, groups);
  s->ready_of_group = WEFT_NEW_ARRAY(s->scratch, uint32_t, groups);
  s->valid_of_group = WEFT_NEW_ARRAY(s->scratch, uint32_t, groups);
  if (!a.semaphores || !a.sections || !a.section_of_group || !a.first || !a.next || !s->ready_of_group ||
      !s->valid_of_group)
    return weft_error_memory(s->diag);
  memset(s->ready_of_group, 0xff, groups * sizeof *s->ready_of_group);
  for (uint64_t g = 0; g < groups; g++) {
    uint32_t sender = s->ports->sender_of_group[g];
    if (sender == WEFT_NONE)
      return weft_error(s->diag, WEFT_INVALID, NULL, "group %llu has no Load that sends to it", (unsigned long long)g);
    uint64_t section = weft_section_of_stage(program, sender);
    a.section_of_group[g] = section == UINT64_MAX ? 0 : section;
  }
  memset(a.first, 0xff, sections * sizeof *a.first);
  for (uint64_t g = groups; g-- > 0;) {
    a.next[g] = a.first[a.section_of_group[g]];
    a.first[a.section_of_group[g]] = (uint32_t)g;
  }
  for (uint64_t k = 0; k < sections && !s->failed; k++) add_section(&a, k);
  if (s->failed || !set_edges(&a)) return weft_error_memory(s->diag);
  program->semaphores = a.semaphores;
  program->semaphore_count = a.count;
  if (program->section_count) program->sections = a.sections;
  return WEFT_OK;
}
