#include "tally_private.h"

#include <stdlib.h>

static uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t h = (a + UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
  h = (h ^ (h >> 32) ^ b) * UINT64_C(0x94d049bb133111eb);
  return h ^ (h >> 29);
}

/* The entry of the key, or the free one where it would go. */
static weft_tally_entry *find(const weft_tally *tally, uint64_t a, uint64_t b) {
  uint64_t mask = tally->capacity - 1;
  for (uint64_t i = mix(a, b) & mask;; i = (i + 1) & mask) {
    weft_tally_entry *entry = &tally->entries[i];
    if (!entry->used || (entry->a == a && entry->b == b)) return entry;
  }
}

static bool grow(weft_tally *tally) {
  weft_tally bigger = {.count = tally->count, .capacity = tally->capacity ? tally->capacity * 2 : 64};
  bigger.entries = calloc(bigger.capacity, sizeof *bigger.entries);
  if (!bigger.entries) return false;
  for (uint64_t i = 0; i < tally->capacity; i++)
    if (tally->entries[i].used) *find(&bigger, tally->entries[i].a, tally->entries[i].b) = tally->entries[i];
  free(tally->entries);
  bigger.overflow = tally->overflow;
  *tally = bigger;
  return true;
}

bool weft_tally_add(weft_tally *tally, uint64_t a, uint64_t b, uint64_t amount) {
  if (tally->failed || (tally->count >= tally->capacity / 2 && !grow(tally))) {
    tally->failed = true;
    return false;
  }
  weft_tally_entry *entry = find(tally, a, b);
  bool is_new = !entry->used;
  if (is_new) {
    *entry = (weft_tally_entry){.a = a, .b = b, .used = true};
    tally->count++;
  }
  tally->overflow |= weft_add_overflow(entry->sum, amount, &entry->sum);
  return is_new;
}

uint64_t weft_tally_get(const weft_tally *tally, uint64_t a, uint64_t b) {
  return tally->capacity ? find(tally, a, b)->sum : 0;
}

bool weft_tally_has(const weft_tally *tally, uint64_t a, uint64_t b) {
  return tally->capacity && find(tally, a, b)->used;
}

void weft_tally_free(weft_tally *tally) {
  free(tally->entries);
  *tally = (weft_tally){0};
}
