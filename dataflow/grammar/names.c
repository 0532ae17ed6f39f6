/* Numbers for names: an open hash table whose order is never seen. */
#include "lexer.h"

#include <string.h>

static uint64_t slot_of(const name_table *table, const char *name, size_t length) {
  uint64_t mask = table->slot_count - 1;
  uint64_t slot = weft_hash_bytes(0, name, length) & mask;
  while (table->slots[slot]) {
    const char *other = table->names[table->slots[slot] - 1];
    if (strncmp(other, name, length) == 0 && other[length] == '\0') break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

static bool rehash(name_table *table) {
  uint64_t count = table->slot_count ? table->slot_count * 2 : 64;
  uint32_t *slots = WEFT_NEW_ARRAY(table->arena, uint32_t, count);
  if (!slots) return false;
  table->slots = slots;
  table->slot_count = count;
  for (uint32_t i = 0; i < table->count; i++) slots[slot_of(table, table->names[i], strlen(table->names[i]))] = i + 1;
  return true;
}

uint32_t language_names_find(const name_table *table, const char *name, size_t length) {
  if (!table->slot_count) return NAME_NONE;
  uint32_t number = table->slots[slot_of(table, name, length)];
  return number ? number - 1 : NAME_NONE;
}

uint32_t language_names_add(name_table *table, const char *name, size_t length) {
  uint32_t number = language_names_find(table, name, length);
  if (number != NAME_NONE) return number;
  if (table->count * 2 >= table->slot_count && !rehash(table)) return NAME_NONE;
  if (!weft_arena_grow(table->arena, &table->names, table->count, &table->capacity, sizeof *table->names))
    return NAME_NONE;
  const char *copy = weft_arena_string(table->arena, name, length);
  if (!copy) return NAME_NONE;
  table->slots[slot_of(table, name, length)] = (uint32_t)table->count + 1;
  table->names[table->count] = copy;
  return (uint32_t)table->count++;
}

const char *language_nearest_hint(weft_arena *arena, const char *name, const char *const *names, uint64_t count) {
  const char *nearest = NULL;
  uint32_t least = UINT32_MAX;
  for (uint64_t i = 0; i < count; i++) {
    if (!names[i] || !weft_names_alike(name, names[i])) continue;
    uint32_t distance = weft_edit_distance(name, names[i]);
    if (distance >= least || distance == 0) continue;
    nearest = names[i];
    least = distance;
  }
  return nearest ? weft_arena_printf(arena, "did you mean `%s`?", nearest) : NULL;
}
