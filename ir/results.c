/* What a section's work writes, and which work items a site has: indexes built once for all checks. */
#include "validate_private.h"

#include <stdlib.h>

/* ---- results ---- */

enum { UNKNOWN = WEFT_NONE - 1 };

/* The first State that a store among the stages from `begin` to `end` writes. */
static uint32_t first_stored_state(const weft_program *p, uint64_t begin, uint64_t end) {
  for (uint64_t s = begin; s < end; s++) {
    const weft_stage *st = &p->stages[s];
    if (st->kind == WEFT_STAGE_STORE && p->tensors[st->store.tensor].role == WEFT_ROLE_STATE) return st->store.tensor;
  }
  return WEFT_NONE;
}

/* The first Output; without one, the first State by id that is stored. */
static uint32_t program_result(const weft_program *p) {
  for (uint32_t t = 0; t < p->tensor_count; t++)
    if (p->tensors[t].role == WEFT_ROLE_OUTPUT) return t;
  uint32_t least = WEFT_NONE;
  for (uint64_t s = 0; s < p->stage_count; s++) {
    const weft_stage *st = &p->stages[s];
    bool state = st->kind == WEFT_STAGE_STORE && p->tensors[st->store.tensor].role == WEFT_ROLE_STATE;
    if (state && st->store.tensor < least) least = st->store.tensor;
  }
  return least;
}

static uint32_t section_result(check *c, uint64_t k) {
  const weft_section *sp = &c->program->sections[k];
  if (!has_id(sp->output, sp->max_ids, WEFT_MAX_OUTPUT))
    return first_stored_state(c->program, sp->stages.begin, sp->stages.end);
  if (sp->output < c->program->tensor_count) return sp->output;
  REPORT(c, SECTION_OUTPUT_MISSING, section(k), tensor(sp->output));
  return WEFT_NONE;
}

uint32_t weft_check_result(check *c, uint64_t section_index) {
  uint64_t sections = c->program->section_count;
  uint64_t k = section_index < sections ? section_index : sections;
  if (!c->section_results) {
    c->section_results = weft_check_array(c, sections + 1, sizeof *c->section_results);
    if (!c->section_results) return WEFT_NONE;
    for (uint64_t i = 0; i <= sections; i++) c->section_results[i] = UNKNOWN;
  }
  uint32_t *result = &c->section_results[k];
  if (*result == UNKNOWN) *result = k < sections ? section_result(c, k) : program_result(c->program);
  return *result;
}

/* ---- the items of sites ---- */

typedef struct site_entry {
  uint64_t site, entry;
} site_entry;

typedef struct section_item {
  uint64_t section, site, sequence;
} section_item;

struct weft_site_index {
  site_entry *entries; /* sorted by site: the placement's first entry of each */
  uint64_t entry_count;
  section_item *keys; /* sorted by section, site, and order in the site's list */
  uint32_t *items;    /* beside the keys */
  uint64_t item_count;
};

static int compare_numbers(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

static int compare_entries(const void *a, const void *b) {
  const site_entry *x = a;
  const site_entry *y = b;
  int order = compare_numbers(x->site, y->site);
  return order ? order : compare_numbers(x->entry, y->entry);
}

static int compare_items(const void *a, const void *b) {
  const section_item *x = a;
  const section_item *y = b;
  int order = compare_numbers(x->section, y->section);
  if (!order) order = compare_numbers(x->site, y->site);
  return order ? order : compare_numbers(x->sequence, y->sequence);
}

static bool index_entries(check *c, weft_site_index *index) {
  const weft_placement *pl = c->program->placement;
  index->entries = weft_check_array(c, pl->items_of_site_count, sizeof *index->entries);
  if (!index->entries) return false;
  for (uint64_t i = 0; i < pl->items_of_site_count; i++)
    index->entries[i] = (site_entry){.site = site_key(pl->items_of_site[i].site), .entry = i};
  qsort(index->entries, pl->items_of_site_count, sizeof *index->entries, compare_entries);
  for (uint64_t i = 0; i < pl->items_of_site_count; i++) {
    if (index->entry_count && index->entries[index->entry_count - 1].site == index->entries[i].site) continue;
    index->entries[index->entry_count++] = index->entries[i];
  }
  return true;
}

static bool index_items(check *c, weft_site_index *index) {
  const weft_program *p = c->program;
  const weft_site_items *lists = p->placement->items_of_site;
  uint64_t total = 0;
  for (uint64_t i = 0; i < index->entry_count; i++) total += lists[index->entries[i].entry].item_count;
  index->keys = weft_check_array(c, total, sizeof *index->keys);
  index->items = weft_check_array(c, total, sizeof *index->items);
  uint32_t *in_order = weft_check_array(c, total, sizeof *in_order);
  if (!index->keys || !index->items || !in_order) return false;
  uint64_t sequence = 0;
  for (uint64_t i = 0; i < index->entry_count; i++) {
    const weft_site_items *list = &lists[index->entries[i].entry];
    for (uint64_t j = 0; j < list->item_count; j++, sequence++) {
      in_order[sequence] = list->items[j];
      bool exists = list->items[j] < p->work.item_count;
      uint64_t k = exists ? weft_section_of_item(p, list->items[j]) : UINT64_MAX;
      if (k == UINT64_MAX) continue;
      index->keys[index->item_count++] =
          (section_item){.section = k, .site = index->entries[i].site, .sequence = sequence};
    }
  }
  qsort(index->keys, index->item_count, sizeof *index->keys, compare_items);
  for (uint64_t i = 0; i < index->item_count; i++) index->items[i] = in_order[index->keys[i].sequence];
  return true;
}

bool weft_check_site_items(check *c) {
  if (c->site_items) return true;
  weft_site_index *index = weft_check_array(c, 1, sizeof *index);
  if (!index || !index_entries(c, index)) return false;
  if (c->program->section_count && !index_items(c, index)) return false;
  c->site_items = index;
  return true;
}

/* The first key that is not before (section, site). */
static uint64_t lower_bound(const weft_site_index *index, uint64_t section_index, uint64_t where) {
  uint64_t low = 0;
  uint64_t high = index->item_count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    const section_item *k = &index->keys[middle];
    if (k->section < section_index || (k->section == section_index && k->site < where))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

weft_id_list weft_check_items_at(const check *c, uint64_t section_index, weft_site where) {
  const weft_site_index *index = c->site_items;
  uint64_t key = site_key(where);
  if (section_index < c->program->section_count) {
    uint64_t begin = lower_bound(index, section_index, key);
    uint64_t end = lower_bound(index, section_index, key + 1);
    return (weft_id_list){.ids = index->items + begin, .count = end - begin};
  }
  const site_entry wanted = {.site = key};
  uint64_t low = 0;
  uint64_t high = index->entry_count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (index->entries[middle].site < wanted.site)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == index->entry_count || index->entries[low].site != key) return (weft_id_list){0};
  const weft_site_items *list = &c->program->placement->items_of_site[index->entries[low].entry];
  return (weft_id_list){.ids = list->items, .count = list->item_count};
}
