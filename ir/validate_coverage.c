/* 6c. Coverage: every tile of an Output or Activation is written once, every tile of a State at most once.
 *
 * Tiles are marked in two bitmaps, seen and seen again, a run of tiles at a time. Only the words touched are looked at
 * and cleared, so a State updated row by row costs its rows. States are counted section by section: stages are in
 * section order, so a section's stores are neighbours. */
#include "validate_private.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS_KEYS = 3 };
#define TILES_MOST (UINT64_C(1) << 28)
#define WORK_MOST (UINT64_C(1) << 28)

/* A store of a tensor, with what tells the parts of one result apart. */
typedef struct store {
  uint64_t section, site, item;
  uint64_t stage;
  bool in_parts;
} store;

typedef struct coverage {
  check *c;
  uint64_t tensor;
  uint64_t tiles;
  uint64_t *seen, *again;
  uint64_t low, high; /* words touched since the last clearing; low >= high: none */
  uint64_t work;      /* words and runs of the whole program */
  bool ended;         /* this tensor's marking cannot go on */
} coverage;

/* ---- marking ---- */

static void end_with(coverage *v, weft_violation violation, const char *what) {
  const fact facts[] = {text(what), tensor(v->tensor)};
  weft_check_report(v->c, violation, facts, 2);
  v->ended = true;
}

static void past_the_tensor(coverage *v, uint64_t tile) {
  REPORT(v->c, OUTPUT_OVERLAP, tensor(v->tensor), number(tile));
  v->ended = true;
}

static bool spend(coverage *v, uint64_t amount) {
  v->work += amount;
  if (v->work <= WORK_MOST) return true;
  end_with(v, VIOLATION_WORK_BOUND, "the number of tiles its stores write");
  return false;
}

static void mark_word(coverage *v, uint64_t word, uint64_t mask) {
  v->again[word] |= v->seen[word] & mask;
  v->seen[word] |= mask;
}

/* Marks `count` tiles from `begin` on. */
static void mark_run(coverage *v, uint64_t begin, uint64_t count) {
  if (!count || v->ended) return;
  if (begin >= v->tiles || count > v->tiles - begin) {
    past_the_tensor(v, weft_max_u64(begin, v->tiles));
    return;
  }
  uint64_t first = begin / 64;
  uint64_t last = (begin + count - 1) / 64;
  if (!spend(v, last - first + 1)) return;
  uint64_t head = UINT64_MAX << (begin % 64);
  uint64_t tail = UINT64_MAX >> (63 - (begin + count - 1) % 64);
  if (first == last) {
    mark_word(v, first, head & tail);
  } else {
    mark_word(v, first, head);
    for (uint64_t word = first + 1; word < last; word++) mark_word(v, word, UINT64_MAX);
    mark_word(v, last, tail);
  }
  v->low = weft_min_u64(v->low, first);
  v->high = weft_max_u64(v->high, last + 1);
}

static void mark_rectangle(coverage *v, const weft_work_item *it) {
  uint64_t cols = v->c->program->tensors[v->tensor].tiles.cols_t;
  if (!it->h_t || !it->w_t) return;
  for (uint64_t h = 0; h < it->h_t && !v->ended; h++) {
    uint64_t row, begin;
    if (weft_add_overflow(it->row0_t, h, &row) || weft_mul_overflow(row, cols, &begin) ||
        weft_add_overflow(begin, it->col0_t, &begin))
      end_with(v, VIOLATION_SIZE_OVERFLOW, "a tile of a work item's rectangle");
    else
      mark_run(v, begin, it->w_t);
  }
}

/* a + b * count into *sum; true when it leaves 64 bits. */
static bool add_product(uint64_t a, uint64_t b, uint64_t count, uint64_t *sum) {
  uint64_t product;
  return weft_mul_overflow(b, count, &product) || weft_add_overflow(a, product, sum);
}

static void mark_block(coverage *v, const weft_access_pattern *pattern, uint64_t origin) {
  for (uint64_t h = 0; h < pattern->block_h && !v->ended; h++) {
    uint64_t row;
    if (add_product(origin, pattern->stride_h, h, &row)) {
      end_with(v, VIOLATION_SIZE_OVERFLOW, "a tile of a store's pattern");
      return;
    }
    if (pattern->stride_w == 1) {
      mark_run(v, row, pattern->block_w);
      continue;
    }
    for (uint64_t w = 0; w < pattern->block_w && !v->ended; w++) {
      uint64_t tile;
      if (add_product(row, pattern->stride_w, w, &tile))
        end_with(v, VIOLATION_SIZE_OVERFLOW, "a tile of a store's pattern");
      else
        mark_run(v, tile, 1);
    }
  }
}

/* The pattern's origin for an item and a sub-block; false when it leaves 64 bits. */
static bool origin_at(const weft_tile_addr *origin, const weft_work_item *it, uint64_t sh, uint64_t sw, uint64_t *at) {
  *at = origin->base;
  for (uint64_t i = 0; i < origin->step_count; i++) {
    const weft_step *step = &origin->steps[i];
    uint64_t value = step->var == WEFT_VAR_ITEM_Y   ? it->coord.first
                     : step->var == WEFT_VAR_ITEM_X ? it->coord.second
                     : step->var == WEFT_VAR_SUB_H  ? sh
                                                    : sw;
    if (add_product(*at, value, step->stride, at)) return false;
  }
  return true;
}

static void mark_pattern(coverage *v, const weft_stage *st, const weft_work_item *it) {
  const weft_access_pattern *pattern = &st->store.pattern;
  if (!pattern->block_h || !pattern->block_w) return;
  for (uint64_t sh = 0; sh < st->store.sub_blocks.first && st->store.sub_blocks.second; sh++)
    for (uint64_t sw = 0; sw < st->store.sub_blocks.second; sw++) {
      uint64_t at;
      if (!origin_at(&pattern->origin, it, sh, sw, &at))
        end_with(v, VIOLATION_SIZE_OVERFLOW, "the origin of a store's pattern");
      else
        mark_block(v, pattern, at);
      if (v->ended) return;
    }
}

/* Whether the address is a function of the item and its sub-block alone. */
static bool is_addressed(const weft_tile_addr *origin) {
  if (origin->indirect) return false;
  for (uint64_t i = 0; i < origin->step_count; i++)
    if (origin->steps[i].var > WEFT_VAR_SUB_W) return false;
  return true;
}

/* ---- stores ---- */

static void mark_item(coverage *v, const store *s, uint64_t id) {
  const weft_program *p = v->c->program;
  const weft_stage *st = &p->stages[s->stage];
  if (!spend(v, 1)) return;
  bool by_pattern = s->in_parts || weft_check_result(v->c, s->section) != v->tensor;
  if (by_pattern && is_addressed(&st->store.pattern.origin))
    mark_pattern(v, st, &p->work.items[id]);
  else
    mark_rectangle(v, &p->work.items[id]);
}

static void mark_site_items(coverage *v, const store *s, weft_site where) {
  weft_id_list items = weft_check_items_at(v->c, s->section, where);
  for (uint64_t i = 0; i < items.count && !v->ended && !v->c->stop; i++) {
    if (items.ids[i] < v->c->program->work.item_count) {
      mark_item(v, s, items.ids[i]);
    } else {
      REPORT(v->c, SITE_ITEM_MISSING, site(where), item(items.ids[i]));
      v->ended = true;
    }
  }
}

static void mark_store(coverage *v, const store *s) {
  const weft_program *p = v->c->program;
  const weft_stage *st = &p->stages[s->stage];
  if (st->item != WEFT_NONE) {
    mark_item(v, s, st->item);
  } else if (st->site.present && p->placement) {
    if (weft_check_site_items(v->c)) mark_site_items(v, s, st->site.site);
  } else {
    bool in_section = s->section < p->section_count;
    uint64_t begin = in_section ? p->sections[s->section].items.begin : 0;
    uint64_t end = in_section ? p->sections[s->section].items.end : p->work.item_count;
    for (uint64_t i = begin; i < end && !v->ended && !v->c->stop; i++) mark_item(v, s, i);
  }
}

/* ---- counting ---- */

typedef struct fault {
  bool found, uncovered;
  uint64_t tile;
} fault;

/* The first tile that is not written as often as it must be. */
static fault first_fault(const coverage *v, bool every_tile) {
  uint64_t words = every_tile ? weft_ceil_div(v->tiles, 64) : v->high;
  for (uint64_t word = every_tile ? 0 : v->low; word < words; word++) {
    uint64_t inside = word == v->tiles / 64 ? (UINT64_C(1) << v->tiles % 64) - 1 : UINT64_MAX;
    uint64_t missing = every_tile ? ~v->seen[word] & inside : 0;
    uint64_t wrong = missing | v->again[word];
    if (!wrong) continue;
    unsigned bit = (unsigned)__builtin_ctzll(wrong);
    return (fault){.found = true, .uncovered = missing >> bit & 1, .tile = word * 64 + bit};
  }
  return (fault){0};
}

static void clear(coverage *v) {
  if (v->low < v->high) {
    memset(v->seen + v->low, 0, (v->high - v->low) * sizeof *v->seen);
    memset(v->again + v->low, 0, (v->high - v->low) * sizeof *v->again);
  }
  v->low = UINT64_MAX;
  v->high = 0;
}

static void report_fault(coverage *v, fault f) {
  if (!f.found || v->ended) return;
  if (f.uncovered)
    REPORT(v->c, OUTPUT_UNCOVERED, tensor(v->tensor), number(f.tile));
  else
    REPORT(v->c, OUTPUT_OVERLAP, tensor(v->tensor), number(f.tile));
}

/* A tile past the tensor is found while marking, before any count is looked at. */
static void count_stores(coverage *v, const store *stores, uint64_t count) {
  weft_tensor_role role = v->c->program->tensors[v->tensor].role;
  bool by_section = role == WEFT_ROLE_STATE;
  fault first = {0};
  for (uint64_t i = 0; i < count && !v->ended && !v->c->stop; i++) {
    mark_store(v, &stores[i]);
    bool last = i + 1 == count || (by_section && stores[i + 1].section != stores[i].section);
    if (!last) continue;
    if (!first.found) first = first_fault(v, !by_section);
    clear(v);
  }
  if (!count && !by_section) first = first_fault(v, true);
  report_fault(v, first);
  clear(v);
}

/* ---- the stores of each tensor ---- */

static int compare_parts(const void *a, const void *b) {
  const store *x = *(const store *const *)a;
  const store *y = *(const store *const *)b;
  const uint64_t keys[2][PARTS_KEYS] = {{x->section, x->site, x->item}, {y->section, y->site, y->item}};
  for (unsigned i = 0; i < PARTS_KEYS; i++)
    if (keys[0][i] != keys[1][i]) return keys[0][i] < keys[1][i] ? -1 : 1;
  return (x->stage > y->stage) - (x->stage < y->stage);
}

static bool same_part(const store *x, const store *y) {
  return x->section == y->section && x->site == y->site && x->item == y->item;
}

/* Marks the stores of one section at one site and item of which there are several. */
static bool find_parts(check *c, store *stores, uint64_t count) {
  if (count < 2) return true;
  store **sorted = weft_check_array(c, count, sizeof *sorted);
  if (!sorted) return false;
  for (uint64_t i = 0; i < count; i++) sorted[i] = &stores[i];
  qsort(sorted, count, sizeof *sorted, compare_parts);
  for (uint64_t i = 1; i < count; i++)
    if (same_part(sorted[i - 1], sorted[i])) sorted[i - 1]->in_parts = sorted[i]->in_parts = true;
  return true;
}

/* All stores, tensor by tensor in stage order: those of tensor t from begin[t] to begin[t + 1]. */
static store *gather_stores(check *c, uint64_t *begin) {
  const weft_program *p = c->program;
  uint64_t total = 0;
  for (uint64_t s = 0; s < p->stage_count; s++) {
    if (p->stages[s].kind != WEFT_STAGE_STORE) continue;
    begin[p->stages[s].store.tensor + 2]++;
    total++;
  }
  for (uint64_t t = 2; t < p->tensor_count + 2; t++) begin[t] += begin[t - 1];
  store *stores = weft_check_array(c, total, sizeof *stores);
  if (!stores) return NULL;
  for (uint64_t s = 0; s < p->stage_count; s++) {
    const weft_stage *st = &p->stages[s];
    if (st->kind != WEFT_STAGE_STORE) continue;
    stores[begin[st->store.tensor + 1]++] =
        (store){.section = p->section_count ? weft_section_of_stage(p, (uint32_t)s) : UINT64_MAX,
                .site = st->site.present ? site_key(st->site.site) : UINT64_MAX,
                .item = st->item,
                .stage = s};
  }
  return stores;
}

static bool is_written(weft_tensor_role role) { return role != WEFT_ROLE_INPUT && role != WEFT_ROLE_PARAM; }

static bool grid_is_right(const weft_program *p, const weft_tensor *tn) {
  return tn->tiles.rows_t == weft_ceil_div(tn->elems.rows, p->tile_rows) &&
         tn->tiles.cols_t == weft_ceil_div(tn->elems.cols, p->tile_cols);
}

/* Room for the largest written tensor. Tensors too large to mark are reported and left out when their turn comes. */
static bool make_bitmaps(coverage *v) {
  const weft_program *p = v->c->program;
  uint64_t most = 0;
  for (uint64_t t = 0; t < p->tensor_count; t++) {
    uint64_t tiles;
    const weft_tensor *tn = &p->tensors[t];
    if (!is_written(tn->role) || weft_mul_overflow(tn->tiles.rows_t, tn->tiles.cols_t, &tiles)) continue;
    if (tiles <= TILES_MOST) most = weft_max_u64(most, tiles);
  }
  v->seen = weft_check_array(v->c, most / 64 + 1, sizeof *v->seen);
  v->again = weft_check_array(v->c, most / 64 + 1, sizeof *v->again);
  return v->seen && v->again;
}

static void check_tensor(coverage *v, uint64_t t, store *stores, uint64_t count) {
  const weft_tensor *tn = &v->c->program->tensors[t];
  v->tensor = t;
  v->ended = false;
  if (weft_mul_overflow(tn->tiles.rows_t, tn->tiles.cols_t, &v->tiles))
    end_with(v, VIOLATION_SIZE_OVERFLOW, "the number of its tiles");
  else if (v->tiles > TILES_MOST)
    end_with(v, VIOLATION_WORK_BOUND, "the number of its tiles");
  else if (find_parts(v->c, stores, count))
    count_stores(v, stores, count);
}

void weft_validate_coverage(check *c) {
  const weft_program *p = c->program;
  coverage v = {.c = c, .low = UINT64_MAX};
  uint64_t *begin = weft_check_array(c, p->tensor_count + 2, sizeof *begin);
  store *stores = begin ? gather_stores(c, begin) : NULL;
  if (!stores || !make_bitmaps(&v)) return;
  for (uint64_t t = 0; t < p->tensor_count && !c->stop; t++) {
    const weft_tensor *tn = &p->tensors[t];
    if (is_written(tn->role) && grid_is_right(p, tn)) check_tensor(&v, t, stores + begin[t], begin[t + 1] - begin[t]);
  }
}
