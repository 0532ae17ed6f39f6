/* Validation: the groups of invariants in their order. */
#include "validate_private.h"

typedef struct family {
  void (*run)(check *c);
  bool basis; /* a fault here takes the ground from what follows */
} family;

static const family families[] = {
    {weft_validate_ids, true},           {weft_validate_sections, true},     {weft_validate_references, true},
    {weft_validate_ports, false},        {weft_validate_carries, false},     {weft_validate_tensors, false},
    {weft_validate_coverage, false},     {weft_validate_compute, false},     {weft_validate_indirect, false},
    {weft_validate_plan, false},         {weft_validate_phase_order, true},  {weft_validate_placement, false},
    {weft_validate_groups, false},       {weft_validate_memory, false},      {weft_validate_trips, false},
    {weft_validate_programs, false},     {weft_validate_counts, false},      {weft_validate_rounds, false},
    {weft_validate_semaphores, false},   {weft_validate_rendezvous, false},  {weft_validate_requirements, false},
    {weft_validate_own_program, false},  {weft_validate_own_tensors, false}, {weft_validate_own_compute, false},
    {weft_validate_own_schedule, false}, {weft_validate_own_placed, false},
};

weft_status weft_program_validate(const weft_program *program, uint64_t limit, weft_text *json, weft_diag *diag) {
  check c = {.program = program, .arena = weft_arena_new(), .diag = diag, .json = json, .limit = limit};
  if (!c.arena) return weft_error_memory(diag);
  for (size_t i = 0; i < sizeof families / sizeof *families && !c.stop && !c.halt; i++) {
    uint64_t before = c.found;
    families[i].run(&c);
    if (families[i].basis && c.found > before) break;
  }
  weft_arena_free(c.arena);
  if (c.failed || (json && json->failed)) return weft_error_memory(diag);
  return c.found ? WEFT_INVALID : WEFT_OK;
}
