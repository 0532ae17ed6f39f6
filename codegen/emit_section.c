/* Section functions while they are made: the slots they name, the placeholders that are theirs. */
#include "emit_private.h"

#include <inttypes.h>

bool weft_codegen_slots_new(weft_chip_code *code, weft_slot_set *set) {
  uint64_t most = weft_codegen_most_slots(code);
  *set = (weft_slot_set){.slots = WEFT_NEW_ARRAY(code->arena, int64_t, most),
                         .place = WEFT_NEW_ARRAY(code->arena, uint64_t, most),
                         .stamp = WEFT_NEW_ARRAY(code->arena, uint32_t, most),
                         .round = 1};
  if (set->slots && set->place && set->stamp) return true;
  code->status = weft_error_memory(code->diag);
  return false;
}

void weft_codegen_slots_clear(weft_slot_set *set) {
  set->count = 0;
  set->round++;
}

uint64_t weft_codegen_slots_add(weft_slot_set *set, int64_t slot) {
  if (set->stamp[slot] == set->round) return set->place[slot];
  set->stamp[slot] = set->round;
  set->slots[set->count] = slot;
  return set->place[slot] = set->count++;
}

bool weft_codegen_slots_have(const weft_slot_set *set, int64_t slot) { return set->stamp[slot] == set->round; }

void weft_codegen_open(weft_chip_code *code) {
  code->inside = true;
  code->parameter_base = code->parameter_count;
  code->name_base = code->name_count;
  weft_codegen_slots_clear(&code->reads);
  weft_codegen_slots_clear(&code->writes);
  weft_codegen_slots_clear(&code->all);
}

static void add_step(weft_chip_code *code, uint64_t section, const char *name, double flops) {
  weft_text target = {0};
  weft_codegen_place(&target, PLACE_SECTION, section);
  weft_text_puts(&target, ", .slots = ");
  weft_codegen_slot_list(&target, code->all.slots, code->all.count);
  if (target.failed) code->status = weft_error_memory(code->diag);
  weft_codegen_step(code, "SECTION", name, target.failed ? "" : target.data, code->reads.slots, code->reads.count,
                    code->writes.slots, code->writes.count, flops);
  weft_text_free(&target);
}

void weft_codegen_close(weft_chip_code *code, weft_text *body, const char *name, double flops) {
  const weft_section_code made = {.text = *body,
                                  .hash = weft_hash_bytes(0, body->data ? body->data : "", body->length),
                                  .first_parameter = code->parameter_base,
                                  .parameter_count = code->parameter_count - code->parameter_base,
                                  .first_name = code->name_base,
                                  .name_count = code->name_count - code->name_base};
  code->inside = false;
  code->parameter_base = code->name_base = 0;
  if (body->failed || !weft_arena_grow(code->arena, &code->sections, code->section_count, &code->section_capacity,
                                       sizeof *code->sections)) {
    code->status = weft_error_memory(code->diag);
    weft_text_free(body);
  } else if (body->length == 0) {
    weft_text_free(body);
  } else {
    code->sections[code->section_count++] = made;
    add_step(code, code->section_count - 1, name, flops);
  }
}
