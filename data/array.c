/* Sets of arrays in memory. The items of a set stand in name order, so that what is written from a set does not depend
 * on how it was filled. */
#include "weft/tensor_file.h"

#include <stdlib.h>
#include <string.h>

static uint64_t product(uint32_t count, const uint64_t *extents) {
  uint64_t result = 1;
  bool overflow = false;
  for (uint32_t i = 0; i < count; i++) {
    if (extents[i] == 0) return 0;
    overflow |= weft_mul_overflow(result, extents[i], &result);
  }
  return overflow ? UINT64_MAX : result;
}

uint64_t weft_array_elements(const weft_array *array) { return product(array->rank, array->extents); }

void weft_plane_extents(uint32_t rank, const uint64_t *extents, uint64_t *rows, uint64_t *cols) {
  *cols = rank ? extents[rank - 1] : 1;
  *rows = rank ? product(rank - 1, extents) : 1;
}

/* Where `name` is, or where it would be put. */
static uint64_t position(const weft_array_set *set, const char *name, bool *found) {
  uint64_t low = 0, high = set->count;
  *found = false;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    int order = strcmp(set->items[middle].name, name);
    if (order == 0) *found = true;
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static void free_item(weft_array *item) {
  free((char *)item->name);
  free(item->data);
}

/* An array with its own copy of the name and zeroed data; false, owning nothing, when that is impossible. */
static bool make_item(weft_array *item, const char *name, weft_format dtype, uint32_t rank, const uint64_t *extents) {
  if (rank > WEFT_MAX_RANK) return false;
  *item = (weft_array){.dtype = dtype, .rank = rank};
  if (rank) memcpy(item->extents, extents, rank * sizeof *extents);
  uint64_t elements = weft_array_elements(item), bytes;
  if (elements == UINT64_MAX || weft_mul_overflow(elements, weft_format_bytes(dtype), &bytes)) return false;
  if (bytes > PTRDIFF_MAX) return false;
  item->name = strdup(name);
  item->data = calloc(weft_max_u64(bytes, 1), 1);
  if (item->name && item->data) return true;
  free_item(item);
  return false;
}

static bool make_room(weft_array_set *set) {
  if (set->count < set->capacity) return true;
  uint64_t capacity = set->capacity ? set->capacity * 2 : 8;
  weft_array *items = realloc(set->items, capacity * sizeof *items);
  if (!items) return false;
  set->items = items;
  set->capacity = capacity;
  return true;
}

weft_array *weft_array_set_add(weft_array_set *set, const char *name, weft_format dtype, uint32_t rank,
                               const uint64_t *extents) {
  weft_array item;
  if (!make_room(set) || !make_item(&item, name, dtype, rank, extents)) return NULL;
  bool found;
  uint64_t at = position(set, name, &found);
  if (found) {
    free_item(&set->items[at]);
  } else {
    memmove(&set->items[at + 1], &set->items[at], (set->count - at) * sizeof item);
    set->count++;
  }
  set->items[at] = item;
  return &set->items[at];
}

weft_array *weft_array_set_find(const weft_array_set *set, const char *name) {
  bool found;
  uint64_t at = position(set, name, &found);
  return found ? &set->items[at] : NULL;
}

weft_status weft_array_set_advance(weft_array_set *set, const char *name, weft_diag *diag) {
  weft_array *array = weft_array_set_find(set, name);
  if (!array || weft_format_is_float(array->dtype))
    return weft_error(diag, WEFT_USAGE, "name a dataset of integers that the program reads",
                      array ? "'%s' cannot be advanced: its elements are no integers" : "there is no '%s' to advance",
                      name);
  for (uint64_t i = 0; i < weft_array_elements(array); i++) {
    int64_t next;
    if (__builtin_add_overflow(weft_load_i64(array->dtype, array->data, i), 1, &next) ||
        !weft_store_i64(array->dtype, array->data, i, next))
      return weft_error(diag, WEFT_INVALID, "run fewer steps", "element %llu of '%s' cannot be advanced: %s ends there",
                        (unsigned long long)i, name, weft_format_name(array->dtype));
  }
  return WEFT_OK;
}

void weft_array_set_free(weft_array_set *set) {
  for (uint64_t i = 0; i < set->count; i++) free_item(&set->items[i]);
  free(set->items);
  free((char *)set->file);
  *set = (weft_array_set){0};
}
