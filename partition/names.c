/* Names of the machine graph: the source's, with what was made of it and the chip: "h1.partial@3". Every name is new.
 */
#include "names_private.h"

#include <string.h>

static name_slot *slot_of(const names *n, const char *name) {
  uint64_t slot = weft_hash_bytes(0, name, strlen(name)) % n->capacity;
  while (n->slots[slot].name && strcmp(n->slots[slot].name, name) != 0) slot = (slot + 1) % n->capacity;
  return &n->slots[slot];
}

static bool grow(names *n) {
  names larger = {.arena = n->arena, .capacity = n->capacity ? n->capacity * 2 : 64, .count = n->count};
  larger.slots = WEFT_NEW_ARRAY(n->arena, name_slot, larger.capacity);
  if (!larger.slots) return false;
  for (uint64_t i = 0; i < n->capacity; i++)
    if (n->slots[i].name) *slot_of(&larger, n->slots[i].name) = n->slots[i];
  *n = larger;
  return true;
}

static const char *copy_name(names *n, const char *base, const char *suffix, uint32_t copy, uint32_t chip,
                             bool show_chip) {
  const char *number = copy ? weft_arena_printf(n->arena, ".%u", copy) : "";
  const char *at = show_chip ? weft_arena_printf(n->arena, "@%u", chip) : "";
  return number && at ? weft_arena_printf(n->arena, "%s%s%s%s", base, suffix, number, at) : NULL;
}

const char *names_new(names *n, const char *base, const char *suffix, uint32_t chip, bool show_chip) {
  if (2 * n->count >= n->capacity && !grow(n)) return NULL;
  const char *name = copy_name(n, base, suffix, 0, chip, show_chip);
  name_slot *plain = name ? slot_of(n, name) : NULL, *slot = plain;
  while (slot && slot->name) {
    name = copy_name(n, base, suffix, ++plain->copies, chip, show_chip);
    slot = name ? slot_of(n, name) : NULL;
  }
  if (!slot) return NULL;
  n->count++;
  return slot->name = name;
}
