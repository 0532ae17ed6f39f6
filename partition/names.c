/* Names of the machine graph: the source's, with what was made of it and the chip: "h1.partial@3". Every name is new.
 */
#include "machine_private.h"

#include "names_private.h"

#include <string.h>

static uint64_t slot_of(const names *n, const char *name) {
  uint64_t slot = weft_hash_bytes(0, name, strlen(name)) % n->capacity;
  while (n->slots[slot] && strcmp(n->slots[slot], name) != 0) slot = (slot + 1) % n->capacity;
  return slot;
}

static bool grow(names *n) {
  names larger = {.arena = n->arena, .capacity = n->capacity ? n->capacity * 2 : 64, .count = n->count};
  larger.slots = WEFT_NEW_ARRAY(n->arena, const char *, larger.capacity);
  if (!larger.slots) return false;
  for (uint64_t i = 0; i < n->capacity; i++)
    if (n->slots[i]) larger.slots[slot_of(&larger, n->slots[i])] = n->slots[i];
  *n = larger;
  return true;
}

const char *names_new(names *n, const char *base, const char *suffix, uint32_t chip, bool show_chip) {
  if (2 * n->count >= n->capacity && !grow(n)) return NULL;
  for (uint32_t copy = 0; copy < UINT32_MAX; copy++) {
    const char *number = copy ? weft_arena_printf(n->arena, ".%u", copy) : "";
    const char *at = show_chip ? weft_arena_printf(n->arena, "@%u", chip) : "";
    const char *name = number && at ? weft_arena_printf(n->arena, "%s%s%s%s", base, suffix, number, at) : NULL;
    if (!name) return NULL;
    uint64_t slot = slot_of(n, name);
    if (n->slots[slot]) continue;
    n->count++;
    return n->slots[slot] = name;
  }
  return NULL;
}
