/* Semaphores of multicast groups: a ready counter and a valid flag an operand, shared by the groups of a section, held
 * at every site of theirs. */
#include "synthesize.h"

#include <stdlib.h>
#include <string.h>

typedef struct adder {
  synthesizer *s;
  weft_semaphore *semaphores;
  uint64_t count;
  weft_section *sections;
  uint64_t *section_of_group; /**< UINT64_MAX: the group has no sender */
} adder;

static int compare_sites(const void *a, const void *b) {
  return weft_site_compare(*(const weft_site *)a, *(const weft_site *)b);
}

/** The sites of the section's groups of one operand, sorted, each once; NULL without memory or without groups. */
static weft_site *sites_of(adder *a, uint64_t section, weft_operand operand, uint64_t *count) {
  const weft_placement *placement = a->s->program->placement;
  uint64_t most = 0;
  for (uint64_t g = 0; g < placement->group_count; g++) {
    const weft_group *group = &placement->groups[g];
    if (a->section_of_group[g] != section || group->operand != operand) continue;
    most += (uint64_t)(group->rect.x1 - group->rect.x0 + 1) * (uint64_t)(group->rect.y1 - group->rect.y0 + 1);
  }
  *count = 0;
  if (most == 0) return NULL;
  weft_site *sites = WEFT_NEW_ARRAY(a->s->arena, weft_site, most);
  if (!sites) {
    a->s->failed = true;
    return NULL;
  }
  for (uint64_t g = 0; g < placement->group_count; g++) {
    const weft_group *group = &placement->groups[g];
    if (a->section_of_group[g] != section || group->operand != operand) continue;
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

static uint64_t receivers_of(const weft_group *group) {
  return (uint64_t)(group->rect.x1 - group->rect.x0 + 1) * (uint64_t)(group->rect.y1 - group->rect.y0 + 1) - 1;
}

static void add_pair(adder *a, uint64_t section, weft_operand operand) {
  uint64_t site_count;
  const weft_site *sites = sites_of(a, section, operand, &site_count);
  if (!sites) return;
  const weft_placement *placement = a->s->program->placement;
  uint32_t ready = (uint32_t)a->count, valid = ready + 1;
  uint64_t expected = 0;
  for (uint64_t g = 0; g < placement->group_count; g++) {
    if (a->section_of_group[g] != section || placement->groups[g].operand != operand) continue;
    if (!expected) expected = receivers_of(&placement->groups[g]);
    a->s->ready_of_group[g] = ready;
    a->s->valid_of_group[g] = valid;
  }
  weft_semaphore pair = {
      .id = ready, .has_operand = true, .operand = operand, .sites = sites, .site_count = site_count};
  pair.role = WEFT_SEM_READY_COUNTER;
  pair.count = expected;
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
  add_pair(a, k, WEFT_OPERAND_A);
  add_pair(a, k, WEFT_OPERAND_B);
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
  a.semaphores = WEFT_NEW_ARRAY(s->arena, weft_semaphore, program->semaphore_count + 4 * sections);
  a.sections = WEFT_NEW_ARRAY(s->arena, weft_section, program->section_count);
  a.section_of_group = WEFT_NEW_ARRAY(s->scratch, uint64_t, groups);
  s->ready_of_group = WEFT_NEW_ARRAY(s->scratch, uint32_t, groups);
  s->valid_of_group = WEFT_NEW_ARRAY(s->scratch, uint32_t, groups);
  if (!a.semaphores || !a.sections || !a.section_of_group || !s->ready_of_group || !s->valid_of_group)
    return weft_error_memory(s->diag);
  for (uint64_t g = 0; g < groups; g++) {
    uint32_t sender = s->ports->sender_of_group[g];
    if (sender == WEFT_NONE)
      return weft_error(s->diag, WEFT_INVALID, NULL, "group %llu has no Load that sends to it", (unsigned long long)g);
    uint64_t section = weft_section_of_stage(program, sender);
    a.section_of_group[g] = section == UINT64_MAX ? 0 : section;
  }
  for (uint64_t k = 0; k < sections && !s->failed; k++) add_section(&a, k);
  if (s->failed || !set_edges(&a)) return weft_error_memory(s->diag);
  program->semaphores = a.semaphores;
  program->semaphore_count = a.count;
  if (program->section_count) program->sections = a.sections;
  return WEFT_OK;
}
