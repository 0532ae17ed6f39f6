/* The names directly inside a module, found in constant time. */
#include "publish_private.h"

static symbol_entry *place_of(const symbol_map *map, const char *name) {
  uint64_t i = weft_hash_bytes(0, name, strlen(name)) & (map->capacity - 1);
  while (map->entries[i].name && strcmp(map->entries[i].name, name) != 0) i = (i + 1) & (map->capacity - 1);
  return &map->entries[i];
}

static bool grow(symbol_map *map, weft_arena *arena) {
  symbol_map grown = {.capacity = map->capacity ? map->capacity * 2 : 64, .count = map->count};
  grown.entries = WEFT_NEW_ARRAY(arena, symbol_entry, grown.capacity);
  if (!grown.entries) return false;
  for (uint64_t i = 0; i < map->capacity; i++)
    if (map->entries[i].name) *place_of(&grown, map->entries[i].name) = map->entries[i];
  *map = grown;
  return true;
}

bool symbol_map_add(symbol_map *map, weft_arena *arena, const char *name, weft_mlir_op *op) {
  if (2 * (map->count + 1) > map->capacity && !grow(map, arena)) return false;
  symbol_entry *entry = place_of(map, name);
  if (!entry->name) map->count++;
  *entry = (symbol_entry){name, op};
  return true;
}

const symbol_entry *symbol_map_find(const symbol_map *map, const char *name) {
  if (!map->capacity) return NULL;
  const symbol_entry *entry = place_of(map, name);
  return entry->name ? entry : NULL;
}

bool symbol_map_of_module(symbol_map *map, weft_arena *arena, const weft_mlir_op *module) {
  for (weft_mlir_op *op = weft_mlir_op_block(module, 0)->first; op; op = op->next)
    if (*weft_mlir_symbol_name(op) && !symbol_map_add(map, arena, weft_mlir_symbol_name(op), op)) return false;
  return true;
}
