/* Sets of addresses by hash: open addressing, linear steps, at most two thirds full. */
#include "internal.h"

#include <stdlib.h>

void *mlir_table_find(const mlir_table *table, uint64_t hash, mlir_same same, const void *key) {
  if (!table->capacity) return NULL;
  for (uint64_t i = hash & (table->capacity - 1);; i = (i + 1) & (table->capacity - 1)) {
    if (!table->items[i]) return NULL;
    if (table->hashes[i] == hash && same(table->items[i], key)) return table->items[i];
  }
}

static void place(mlir_table *table, uint64_t hash, void *item) {
  uint64_t i = hash & (table->capacity - 1);
  while (table->items[i]) i = (i + 1) & (table->capacity - 1);
  table->items[i] = item;
  table->hashes[i] = hash;
}

static bool grow(mlir_table *table) {
  mlir_table grown = {.capacity = table->capacity ? table->capacity * 2 : 64, .count = table->count};
  grown.items = calloc(grown.capacity, sizeof *grown.items);
  grown.hashes = calloc(grown.capacity, sizeof *grown.hashes);
  if (!grown.items || !grown.hashes) {
    mlir_table_free(&grown);
    return false;
  }
  for (uint64_t i = 0; i < table->capacity; i++)
    if (table->items[i]) place(&grown, table->hashes[i], table->items[i]);
  mlir_table_free(table);
  *table = grown;
  return true;
}

bool mlir_table_add(mlir_table *table, uint64_t hash, void *item) {
  if (!item || (3 * (table->count + 1) > 2 * table->capacity && !grow(table))) return false;
  place(table, hash, item);
  table->count++;
  return true;
}

void mlir_table_free(mlir_table *table) {
  free(table->items);
  free(table->hashes);
  table->items = NULL;
  table->hashes = NULL;
}
