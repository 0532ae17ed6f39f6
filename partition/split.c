/* weft_split: from a whole-machine Template to one program a chip (docs/split.md). */
#include "split_private.h"

#include <string.h>

static void raise_chips(uint32_t *chips, uint32_t chip) {
  if (chip + 1 > *chips) *chips = chip + 1;
}

uint32_t weft_program_chips(const weft_program *program) {
  uint32_t chips = 1;
  for (uint64_t i = 0; i < program->tensor_count; i++)
    if (program->tensors[i].chip != WEFT_NONE) raise_chips(&chips, program->tensors[i].chip);
  for (uint64_t i = 0; i < program->stage_count; i++)
    if (program->stages[i].site.present) raise_chips(&chips, program->stages[i].site.site.chip);
  for (uint64_t i = 0; i < program->buffer_count; i++)
    if (program->buffers[i].site.present) raise_chips(&chips, program->buffers[i].site.site.chip);
  for (uint64_t i = 0; program->placement && i < program->placement->site_of_count; i++)
    raise_chips(&chips, program->placement->site_of[i].chip);
  return chips;
}

static weft_status check_whole(const weft_program *machine, uint32_t chips, weft_diag *diag) {
  if (chips == 0 || chips > WEFT_MAX_CHIPS)
    return weft_error(diag, WEFT_USAGE, NULL, "a program cannot be split over %u chips", chips);
  if (weft_program_chips(machine) > chips)
    return weft_error(diag, WEFT_INVALID, "give the machine's number of chips", "program '%s' is for %u chips, not %u",
                      machine->name, weft_program_chips(machine), chips);
  weft_phase phase = weft_program_phase(machine);
  if (phase != WEFT_PHASE_TEMPLATE && chips > 1)
    return weft_error(diag, WEFT_INVALID, "split the Template, then plan each chip's program",
                      "program '%s' is %s: only a Template is split", machine->name, weft_phase_name(phase));
  if (chips == 1) return WEFT_OK;
  const char *what = machine->link_count                 ? "link points: it was split already"
                     : machine->work.k_trip != WEFT_NONE ? "a trip for all of its K blocks"
                     : machine->semaphore_count          ? "semaphores, which its chips would share"
                                                         : NULL;
  if (what)
    return weft_error(diag, WEFT_INVALID, "start from the whole-machine Template", "program '%s' has %s", machine->name,
                      what);
  return WEFT_OK;
}

static weft_status split_all(split *s, weft_program **programs) {
  weft_status status = split_owners(s);
  if (status == WEFT_OK) status = split_crossings(s);
  for (uint32_t chip = 0; chip < s->chips && status == WEFT_OK; chip++) status = split_chip(s, chip, &programs[chip]);
  return status;
}

weft_status weft_split(const weft_program *machine, uint32_t chips, weft_program **programs, weft_diag *diag) {
  for (uint32_t chip = 0; chip < chips; chip++) programs[chip] = NULL;
  weft_status status = check_whole(machine, chips, diag);
  if (status != WEFT_OK) return status;
  if (chips == 1) {
    programs[0] = weft_program_clone(machine);
    return programs[0] ? WEFT_OK : weft_error_memory(diag);
  }
  split s = {.machine = machine, .chips = chips, .arena = weft_arena_new(), .diag = diag};
  if (!s.arena) return weft_error_memory(diag);
  status = split_all(&s, programs);
  weft_arena_free(s.arena);
  for (uint32_t chip = 0; chip < chips && status != WEFT_OK; chip++) {
    weft_program_free(programs[chip]);
    programs[chip] = NULL;
  }
  return status;
}
