/* place
 * requires     a Tiled program
 * establishes  one copy of each unit's stages a block, every stage on a site and an engine, one work item a block
 * breaks       nothing; stage, buffer, edge and item ids are new, `origin` leads back
 * source       spatial-ir seed, "Placement", "BlockPlan::site_block" */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/** The part of a unit that one site does. */
typedef struct block {
  uint64_t row0, rows, col0, cols; /**< MATMUL: tiles of the item's result; ROWS: sub-block rows */
  weft_work_item item;             /**< as in the new work list */
  weft_pair coord;                 /**< of the item it is cut from: folded into the addresses */
  weft_site site;
  uint64_t index, count; /**< among the blocks of its unit */
  uint64_t ibw;          /**< MATMUL */
  uint32_t from;         /**< the item it is cut from, or WEFT_NONE */
} block;

typedef struct placer {
  weft_program *program;
  const weft_target *target;
  weft_diag *diag;
  weft_arena *scratch;
  plan_units units;
  uint64_t *edges_begin; /**< by unit */
  uint32_t *edges;
  uint32_t *buffer_map, *stage_map; /**< template id to the clone's, of the unit being cloned */
  weft_stage *stages;
  weft_buffer *buffers;
  uint32_t *copy_before; /**< by new buffer: the copy before it of the same old one; WEFT_NONE: the first */
  weft_edge *edge_items;
  weft_work_item *items;
  weft_site *item_sites;
  uint32_t *first_of_item; /**< by old item: its newest block's item */
  uint32_t *next_of_item;  /**< by new item: the one before it from the same old item */
  uint64_t next_capacity;
  uint64_t *blocks_at;               /**< by site of a chip: blocks of the unit being placed */
  uint64_t round, rounds, round_end; /**< the section being made has rounds [round, round + rounds) of its blocks */
  uint64_t first_item, first_buffer; /**< of the section being made */
  uint64_t *bytes_at; /**< by chip and site: bytes of the buffers placed there in the section being made */
  uint64_t chips;
  uint64_t room; /**< bytes of a site that row units and units that stay whole may fill together */
  weft_section *sections;
  uint64_t section_count, section_capacity;
  weft_engine_slot *slots;
  uint64_t stage_count, buffer_count, edge_count, item_count;
  uint64_t stage_capacity, buffer_capacity, edge_capacity, item_capacity, slot_capacity, site_capacity, copy_capacity;
  bool failed;
} placer;

static void *copy_array(placer *p, const void *items, uint64_t count, size_t size) {
  void *copy = weft_arena_array(p->program->arena, count, size);
  if (!copy)
    p->failed = true;
  else if (count)
    memcpy(copy, items, count * size);
  return copy;
}

/* ---- addresses ---- */

/** Folds the item's coordinates into the base and drops their steps. */
static void fold_item(placer *p, weft_tile_addr *address, weft_pair coord) {
  weft_step *steps = WEFT_NEW_ARRAY(p->program->arena, weft_step, address->step_count);
  if (!steps) {
    p->failed = true;
    return;
  }
  address->base += coord.first * plan_step_of(address, WEFT_VAR_ITEM_Y);
  address->base += coord.second * plan_step_of(address, WEFT_VAR_ITEM_X);
  uint64_t count = 0;
  for (uint64_t i = 0; i < address->step_count; i++)
    if (address->steps[i].var > WEFT_VAR_ITEM_X) steps[count++] = address->steps[i];
  address->steps = steps;
  address->step_count = count;
}

static void set_steps(placer *p, weft_tile_addr *address, weft_step first, weft_step second) {
  weft_step *steps = WEFT_NEW_ARRAY(p->program->arena, weft_step, 2);
  if (!steps) {
    p->failed = true;
    return;
  }
  steps[0] = first;
  steps[1] = second;
  address->steps = steps;
  address->step_count = second.stride ? 2 : 1;
}

/** Block h x w of tiles, walked as one sub-block. */
static void set_sub_block(placer *p, weft_access_pattern *pattern, uint64_t h, uint64_t w, uint64_t cols_t) {
  pattern->block_h = h;
  pattern->block_w = w;
  pattern->stride_w = 1;
  pattern->stride_h = cols_t;
  set_steps(p, &pattern->origin, (weft_step){WEFT_VAR_SUB_H, h * cols_t}, (weft_step){WEFT_VAR_SUB_W, w});
}

/* ---- cutting the stages of a matmul unit ---- */

static void cut_matmul_load(placer *p, const plan_unit *unit, const block *b, uint32_t id, weft_stage *stage) {
  weft_access_pattern *pattern = &stage->load.pattern;
  uint64_t cols_t = p->program->tensors[stage->load.tensor].tiles.cols_t;
  weft_tile_addr *origin = &pattern->origin;
  pattern->stride_w = 1;
  pattern->stride_h = cols_t;
  if (id == unit->load_a) {
    origin->base += b->row0 * cols_t;
    pattern->block_h = b->rows;
    pattern->block_w = b->ibw;
    set_steps(p, origin, (weft_step){WEFT_VAR_K_BLOCK, b->ibw}, (weft_step){0, 0});
    stage->load.num_blocks = unit->k_tiles / b->ibw;
  } else if (id == unit->load_b) {
    origin->base += b->col0;
    pattern->block_h = b->ibw;
    pattern->block_w = b->cols;
    set_steps(p, origin, (weft_step){WEFT_VAR_K_BLOCK, b->ibw * cols_t}, (weft_step){0, 0});
    stage->load.num_blocks = unit->k_tiles / b->ibw;
  } else if (plan_step_of(origin, WEFT_VAR_SUB_H) || plan_step_of(origin, WEFT_VAR_SUB_W) ||
             pattern->block_w != unit->cols) {
    origin->base += b->row0 * cols_t + b->col0;
    set_sub_block(p, pattern, b->rows, b->cols, cols_t);
  } else {
    bool whole_rows = pattern->block_h == unit->rows && unit->rows > 1;
    origin->base += (whole_rows ? b->row0 * cols_t : 0) + b->col0;
    if (whole_rows) pattern->block_h = b->rows;
    pattern->block_w = b->cols;
  }
}

static const weft_elem_access *identity_map(placer *p, uint64_t width) {
  weft_elem_access *map = WEFT_NEW(p->program->arena, weft_elem_access);
  weft_term *terms = WEFT_NEW_ARRAY(p->program->arena, weft_term, 2);
  if (!map || !terms) {
    p->failed = true;
    return NULL;
  }
  terms[0] = (weft_term){WEFT_VAR_GEN_ROW, (int64_t)width};
  terms[1] = (weft_term){WEFT_VAR_GEN_COL, 1};
  *map = (weft_elem_access){.terms = terms, .term_count = 2};
  return map;
}

/** A pointwise Generic over a page of `tiles` tiles. */
static void widen_generic(placer *p, weft_generic *generic, uint64_t tiles) {
  uint64_t width = tiles * p->program->tile_cols;
  weft_iter *iters = copy_array(p, generic->iters, 2, sizeof *iters);
  weft_elem_access *ins = WEFT_NEW_ARRAY(p->program->arena, weft_elem_access, generic->in_count);
  const weft_elem_access *map = identity_map(p, width);
  if (!iters || !ins || !map) {
    p->failed = true;
    return;
  }
  iters[1].extent = width;
  for (uint64_t i = 0; i < generic->in_count; i++) ins[i] = *map;
  generic->iters = iters;
  generic->ins = ins;
  generic->out = *map;
}

static void cut_matmul_compute(placer *p, const plan_unit *unit, const block *b, weft_stage *stage) {
  weft_compute_op *op = copy_array(p, stage->compute, 1, sizeof *op);
  if (!op) return;
  if (op->kind == WEFT_COMPUTE_MATMUL_TILES) {
    op->matmul.block = (weft_block_shape){b->rows, b->cols, b->ibw};
    op->matmul.sub_blocks = (weft_pair){1, 1};
    op->matmul.num_blocks = unit->k_tiles / b->ibw;
  } else if (op->kind == WEFT_COMPUTE_GENERIC) {
    widen_generic(p, &op->generic, b->rows * b->cols);
  }
  stage->compute = op;
}

static void cut_matmul(placer *p, const plan_unit *unit, const block *b, uint32_t id, weft_stage *stage) {
  if (stage->kind == WEFT_STAGE_LOAD) {
    cut_matmul_load(p, unit, b, id, stage);
  } else if (stage->kind == WEFT_STAGE_STORE) {
    uint64_t cols_t = p->program->tensors[stage->store.tensor].tiles.cols_t;
    stage->store.pattern.origin.base += b->row0 * cols_t + b->col0;
    set_sub_block(p, &stage->store.pattern, b->rows, b->cols, cols_t);
    stage->store.sub_blocks = (weft_pair){1, 1};
  } else {
    cut_matmul_compute(p, unit, b, stage);
  }
}

static void cut_rows(const block *b, weft_stage *stage) {
  weft_access_pattern *pattern = stage->kind == WEFT_STAGE_LOAD    ? &stage->load.pattern
                                 : stage->kind == WEFT_STAGE_STORE ? &stage->store.pattern
                                                                   : NULL;
  if (pattern) pattern->origin.base += b->row0 * plan_step_of(&pattern->origin, WEFT_VAR_SUB_H);
  if (stage->kind == WEFT_STAGE_STORE) stage->store.sub_blocks.first = b->rows;
}

/* ---- cloning a unit ---- */

static uint32_t *map_ids(placer *p, const uint32_t *ids, uint64_t count, const uint32_t *map) {
  uint32_t *mapped = WEFT_NEW_ARRAY(p->program->arena, uint32_t, count);
  if (!mapped) p->failed = true;
  for (uint64_t i = 0; mapped && i < count; i++) mapped[i] = map[ids[i]];
  return mapped;
}

static const char *block_name(placer *p, const char *name, const block *b) {
  if (b->count < 2) return name;
  const char *text = weft_arena_printf(p->program->arena, "%s@%llu,%llu", name, (unsigned long long)b->item.coord.first,
                                       (unsigned long long)b->item.coord.second);
  if (!text) p->failed = true;
  return text;
}

static bool is_operand(const weft_program *program, const plan_unit *unit, uint32_t buffer, uint32_t load) {
  return program->stages[load].outs[0] == buffer && unit->kind == UNIT_MATMUL;
}

/** Tiles of a page once the matmul unit is cut. */
static uint64_t matmul_page(const placer *p, const plan_unit *unit, const block *b, uint32_t id) {
  const weft_program *program = p->program;
  if (is_operand(program, unit, id, unit->load_a)) return b->rows * b->ibw;
  if (is_operand(program, unit, id, unit->load_b)) return b->ibw * b->cols;
  for (uint64_t i = 0; i < unit->stage_count; i++) {
    const weft_stage *stage = &program->stages[unit->stages[i]];
    if (stage->kind == WEFT_STAGE_COMPUTE && stage->compute->kind == WEFT_COMPUTE_BIAS && stage->compute->bias == id)
      return b->cols;
  }
  return b->rows * b->cols;
}

static uint64_t *bytes_at(placer *p, weft_site site) {
  uint64_t sites = p->target->mesh_rows * p->target->mesh_cols;
  return &p->bytes_at[site.chip * sites + site.y * p->target->mesh_cols + site.x];
}

static void clear_bytes(placer *p) {
  memset(p->bytes_at, 0, p->chips * p->target->mesh_rows * p->target->mesh_cols * sizeof *p->bytes_at);
}

static void count_bytes(placer *p, const weft_buffer *buffer) {
  uint64_t bytes = weft_buffer_bytes(p->program, buffer), *sum;
  if (buffer->space != WEFT_MEM_LOCAL || buffer->alias_of != WEFT_NONE) return;
  if (buffer->site.site.x >= p->target->mesh_cols || buffer->site.site.y >= p->target->mesh_rows) return;
  sum = bytes_at(p, buffer->site.site);
  if (weft_add_overflow(*sum, bytes, sum)) *sum = UINT64_MAX;
}

/** The newest copy of a buffer that the section being made has at a site; WEFT_NONE when there is none, and nothing to
 * share with. */
static uint32_t copy_at(const placer *p, uint32_t id, weft_site site) {
  uint32_t copy = p->buffer_map[id];
  while (copy != WEFT_NONE && copy >= p->first_buffer && !weft_site_equal(p->buffers[copy].site.site, site))
    copy = p->copy_before[copy];
  return copy != WEFT_NONE && copy >= p->first_buffer ? copy : WEFT_NONE;
}

static void clone_buffers(placer *p, const plan_unit *unit, const block *b) {
  for (uint64_t i = 0; i < unit->buffer_count; i++) {
    uint32_t id = unit->buffers[i];
    if (!weft_arena_grow(p->scratch, &p->buffers, p->buffer_count, &p->buffer_capacity, sizeof *p->buffers)) {
      p->failed = true;
      return;
    }
    weft_buffer *buffer = &p->buffers[p->buffer_count];
    *buffer = p->program->buffers[id];
    buffer->id = (uint32_t)p->buffer_count;
    buffer->name = block_name(p, buffer->name, b);
    buffer->origin = id;
    if (!unit->spread || !buffer->site.present) buffer->site = (weft_optional_site){true, b->site};
    if (unit->kind == UNIT_MATMUL && b->rows && b->cols) buffer->page_tiles = matmul_page(p, unit, b, id);
    if (!weft_arena_grow(p->scratch, &p->copy_before, p->buffer_count, &p->copy_capacity, sizeof *p->copy_before)) {
      p->failed = true;
      return;
    }
    p->copy_before[p->buffer_count] = p->buffer_map[id];
    p->buffer_map[id] = (uint32_t)p->buffer_count++;
  }
  for (uint64_t i = 0; i < unit->buffer_count; i++) {
    weft_buffer *buffer = &p->buffers[p->buffer_map[unit->buffers[i]]];
    if (buffer->alias_of != WEFT_NONE) buffer->alias_of = copy_at(p, buffer->alias_of, buffer->site.site);
    count_bytes(p, buffer);
  }
}

/** The buffers a stage names beside its ports. */
static void map_inner_buffers(placer *p, weft_stage *stage) {
  weft_access_pattern *pattern = stage->kind == WEFT_STAGE_LOAD    ? &stage->load.pattern
                                 : stage->kind == WEFT_STAGE_STORE ? &stage->store.pattern
                                                                   : NULL;
  if (pattern && pattern->origin.indirect) {
    weft_indirect_tile *indirect = copy_array(p, pattern->origin.indirect, 1, sizeof *indirect);
    if (!indirect) return;
    indirect->index = p->buffer_map[indirect->index];
    pattern->origin.indirect = indirect;
  }
  if (stage->kind != WEFT_STAGE_COMPUTE) return;
  weft_compute_kind kind = stage->compute->kind;
  if (kind != WEFT_COMPUTE_BIAS && kind != WEFT_COMPUTE_MATMUL_TILES) return;
  weft_compute_op *op = copy_array(p, stage->compute, 1, sizeof *op);
  if (!op) return;
  if (kind == WEFT_COMPUTE_BIAS)
    op->bias = p->buffer_map[op->bias];
  else if (op->matmul.interm != WEFT_NONE)
    op->matmul.interm = p->buffer_map[op->matmul.interm];
  stage->compute = op;
}

static weft_site site_of_stage(const placer *p, const plan_unit *unit, const block *b, const weft_stage *stage) {
  if (!unit->spread) return b->site;
  uint32_t port = stage->out_count ? stage->outs[0] : stage->in_count ? stage->ins[0] : WEFT_NONE;
  return port == WEFT_NONE ? b->site : p->buffers[port].site.site;
}

static weft_engine_slot slot_of(const placer *p, const weft_stage *stage) {
  weft_engine_slot slot = {.site = stage->site.site};
  if (stage->role == WEFT_SITE_COMPUTE) {
    slot.engine.compute = true;
    return slot;
  }
  slot.engine.movement = stage->kind == WEFT_STAGE_STORE && p->target->movement_engines > 1 ? 1 : 0;
  slot.has_noc = true;
  slot.noc = slot.engine.movement;
  return slot;
}

static void clone_stage(placer *p, const plan_unit *unit, const block *b, uint32_t id) {
  if (!weft_arena_grow(p->scratch, &p->stages, p->stage_count, &p->stage_capacity, sizeof *p->stages) ||
      !weft_arena_grow(p->scratch, &p->slots, p->stage_count, &p->slot_capacity, sizeof *p->slots)) {
    p->failed = true;
    return;
  }
  weft_stage stage = p->program->stages[id];
  stage.id = (uint32_t)p->stage_count;
  stage.name = block_name(p, stage.name, b);
  stage.origin = id;
  stage.item = b->item.id;
  if (stage.kind == WEFT_STAGE_LOAD) fold_item(p, &stage.load.pattern.origin, b->coord);
  if (stage.kind == WEFT_STAGE_STORE) fold_item(p, &stage.store.pattern.origin, b->coord);
  if (unit->kind == UNIT_MATMUL && b->rows && b->cols) cut_matmul(p, unit, b, id, &stage);
  if (unit->kind == UNIT_ROWS) cut_rows(b, &stage);
  map_inner_buffers(p, &stage);
  stage.ins = map_ids(p, stage.ins, stage.in_count, p->buffer_map);
  stage.outs = map_ids(p, stage.outs, stage.out_count, p->buffer_map);
  if (p->failed) return;
  stage.site = (weft_optional_site){true, site_of_stage(p, unit, b, &stage)};
  p->slots[p->stage_count] = slot_of(p, &stage);
  p->stages[p->stage_count] = stage;
  p->stage_map[id] = (uint32_t)p->stage_count++;
}

static void clone_edges(placer *p, uint64_t unit) {
  for (uint64_t i = p->edges_begin[unit]; i < p->edges_begin[unit + 1]; i++) {
    if (!weft_arena_grow(p->scratch, &p->edge_items, p->edge_count, &p->edge_capacity, sizeof *p->edge_items)) {
      p->failed = true;
      return;
    }
    weft_edge edge = p->program->edges[p->edges[i]];
    edge.id = (uint32_t)p->edge_count;
    edge.from = p->stage_map[edge.from];
    edge.buffer = p->buffer_map[edge.buffer];
    edge.to = map_ids(p, edge.to, edge.to_count, p->stage_map);
    p->edge_items[p->edge_count++] = edge;
  }
}

static bool same_block(const placer *p, uint32_t item, const block *b) {
  const weft_work_item *a = &p->items[item];
  return weft_site_equal(p->item_sites[item], b->site) && a->coord.first == b->item.coord.first &&
         a->coord.second == b->item.coord.second && a->row0_t == b->item.row0_t && a->col0_t == b->item.col0_t &&
         a->h_t == b->item.h_t && a->w_t == b->item.w_t;
}

/** The block's item: units of a section that share an item share its blocks' items too, where they are cut alike. */
static bool take_item(placer *p, block *b) {
  uint32_t *newest = b->from == WEFT_NONE ? NULL : &p->first_of_item[b->from];
  for (uint32_t i = newest ? *newest : WEFT_NONE; i != WEFT_NONE && i >= p->first_item; i = p->next_of_item[i])
    if (same_block(p, i, b)) {
      b->item.id = i;
      return true;
    }
  uint64_t n = p->item_count;
  if (!weft_arena_grow(p->scratch, &p->items, n, &p->item_capacity, sizeof *p->items) ||
      !weft_arena_grow(p->scratch, &p->item_sites, n, &p->site_capacity, sizeof *p->item_sites) ||
      !weft_arena_grow(p->scratch, &p->next_of_item, n, &p->next_capacity, sizeof *p->next_of_item))
    return false;
  b->item.id = (uint32_t)n;
  p->items[n] = b->item;
  p->item_sites[n] = b->site;
  p->next_of_item[n] = newest ? *newest : WEFT_NONE;
  if (newest) *newest = (uint32_t)n;
  p->item_count++;
  return true;
}

static void clone_unit(placer *p, uint64_t unit_index, block *b) {
  const plan_unit *unit = &p->units.items[unit_index];
  if (!take_item(p, b)) {
    p->failed = true;
    return;
  }
  clone_buffers(p, unit, b);
  for (uint64_t i = 0; i < unit->stage_count && !p->failed; i++) clone_stage(p, unit, b, unit->stages[i]);
  if (!p->failed) clone_edges(p, unit_index);
}

/* ---- cutting a unit into blocks ---- */

static weft_site site_at(const placer *p, const plan_unit *unit, uint64_t row, uint64_t col) {
  return (weft_site){(uint16_t)(col % p->target->mesh_cols), (uint16_t)(row % p->target->mesh_rows), unit->chip};
}

/** Bytes of local memory that the buffers of a unit take as they are. */
static uint64_t unit_bytes(const placer *p, const plan_unit *unit) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < unit->buffer_count; i++) {
    const weft_buffer *buffer = &p->program->buffers[unit->buffers[i]];
    if (buffer->space != WEFT_MEM_LOCAL || buffer->alias_of != WEFT_NONE) continue;
    if (weft_add_overflow(sum, weft_buffer_bytes(p->program, buffer), &sum)) return UINT64_MAX;
  }
  return sum;
}

/** Site `index` of the unit's chip, counted row by row, round again where there are more; the next that has room for a
 * copy of the unit beside what the section has placed, or else that site itself. */
static weft_site site_by_index(placer *p, const plan_unit *unit, uint64_t index) {
  const uint64_t cols = p->target->mesh_cols, sites = p->target->mesh_rows * cols;
  const weft_site first = site_at(p, unit, index / cols, index % cols);
  uint64_t bytes = p->room == UINT64_MAX ? 0 : unit_bytes(p, unit);
  for (uint64_t i = 0; i < sites && bytes && !unit->spread; i++) {
    weft_site site = site_at(p, unit, (index + i) % sites / cols, (index + i) % cols);
    uint64_t taken = *bytes_at(p, site);
    if (taken == 0 || (taken <= p->room && bytes <= p->room - taken)) return site;
  }
  return first;
}

/** What a section's units [begin, end) may fill of a site: anything where one site of each chip holds them all, else
 * half of it: sites of a section with multicasts are laid out alike, which takes more than their own buffers. */
static uint64_t room_of(placer *p, uint64_t begin, uint64_t end) {
  bool fits = true;
  for (uint64_t u = begin; u < end; u++) {
    const plan_unit *unit = &p->units.items[u];
    if (unit->kind == UNIT_MATMUL || unit->spread) continue;
    uint64_t *sum = bytes_at(p, site_at(p, unit, 0, 0));
    if (weft_add_overflow(*sum, unit_bytes(p, unit), sum)) *sum = UINT64_MAX;
    fits = fits && *sum <= p->target->local_bytes;
  }
  return fits ? UINT64_MAX : p->target->local_bytes / 2;
}

/** The site of block (i, j) of a grid of blocks. */
static weft_site site_of_block(const placer *p, const plan_unit *unit, const plan_grid *grid, uint64_t i, uint64_t j) {
  const uint64_t mesh_rows = p->target->mesh_rows, mesh_cols = p->target->mesh_cols;
  if (grid->bands > 1) return site_at(p, unit, i + grid->rows / grid->bands * (j / mesh_cols % grid->bands), j);
  if (grid->stacks > 1) return site_at(p, unit, i, j + grid->cols / grid->stacks * (i / mesh_rows % grid->stacks));
  return site_at(p, unit, i, j);
}

/** Whether a block at the site, in order of placing, belongs to the section being made: a site whose memory does not
 * hold the pages of all its blocks does so many of them a section. */
static bool is_in_round(placer *p, weft_site site) {
  uint64_t round = p->blocks_at[site.y * p->target->mesh_cols + site.x]++;
  p->round_end = weft_max_u64(p->round_end, round + 1);
  return round >= p->round && round - p->round < p->rounds;
}

static void place_matmul_item(placer *p, uint64_t u, const weft_work_item *item, const weft_block_plan *plan,
                              bool alone) {
  const plan_unit *unit = &p->units.items[u];
  uint64_t rows = weft_min_u64(unit->rows, item->h_t), cols = weft_min_u64(unit->cols, item->w_t);
  uint64_t down = weft_ceil_div(rows, plan->per_site_m), across = weft_ceil_div(cols, plan->per_site_n);
  uint64_t ibw = plan_divisor(weft_max_u64(unit->k_tiles, 1), plan->block.ibw);
  plan_grid grid = {.bands = 1, .stacks = 1};
  if (alone && down && across) grid = plan_grid_of(p->target, down, across);
  for (uint64_t i = 0; i < down && !p->failed; i++)
    for (uint64_t j = 0; j < across && !p->failed; j++) {
      block b = {.row0 = i * plan->per_site_m,
                 .col0 = j * plan->per_site_n,
                 .ibw = ibw,
                 .coord = item->coord,
                 .from = item->id};
      b.rows = weft_min_u64(plan->per_site_m, rows - b.row0);
      b.cols = weft_min_u64(plan->per_site_n, cols - b.col0);
      weft_pair coord = {item->coord.first * down + i, item->coord.second * across + j};
      b.item = (weft_work_item){0, coord, item->row0_t + b.row0, item->col0_t + b.col0, b.rows, b.cols};
      b.site = site_of_block(p, unit, &grid, coord.first, coord.second);
      if (!is_in_round(p, b.site)) continue;
      b.index = i * across + j;
      b.count = alone ? down * across : 2;
      clone_unit(p, u, &b);
    }
}

static void place_rows_item(placer *p, uint64_t u, const weft_work_item *item, uint64_t per_site, uint64_t ordinal,
                            bool alone) {
  const plan_unit *unit = &p->units.items[u];
  uint64_t block_h = weft_max_u64(1, p->program->stages[unit->store].store.pattern.block_h);
  uint64_t rows = weft_min_u64(unit->rows, weft_ceil_div(item->h_t, block_h));
  uint64_t count = alone ? weft_ceil_div(rows, per_site) : 1;
  for (uint64_t i = 0; i < count && !p->failed; i++) {
    block b = {.row0 = i * per_site,
               .cols = unit->cols,
               .coord = item->coord,
               .index = i,
               .count = alone ? count : 2,
               .from = item->id};
    b.rows = alone ? weft_min_u64(per_site, rows - b.row0) : rows;
    b.item = *item;
    if (alone) b.item.coord = (weft_pair){i, 0};
    b.item.row0_t = item->row0_t + b.row0 * block_h;
    b.item.h_t = weft_min_u64(b.rows * block_h, item->h_t - b.row0 * block_h);
    b.site = site_by_index(p, unit, alone ? i : ordinal);
    clone_unit(p, u, &b);
  }
}

/** One copy of the unit as it is. */
static void place_whole_item(placer *p, uint64_t u, const weft_work_item *item, uint64_t ordinal, bool alone) {
  const plan_unit *unit = &p->units.items[u];
  block b = {.item = *item, .coord = item->coord, .count = alone ? 1 : 2, .cols = unit->cols, .from = item->id};
  if (unit->kind == UNIT_ROWS) b.rows = item->h_t && item->w_t ? unit->rows : 0;
  b.site = site_by_index(p, unit, ordinal);
  clone_unit(p, u, &b);
}

/** Whether one of the units [begin, end) is a tile product. */
static bool has_products(const placer *p, uint64_t begin, uint64_t end) {
  for (uint64_t u = begin; u < end; u++)
    if (p->units.items[u].kind == UNIT_MATMUL) return true;
  return false;
}

static void place_unit(placer *p, uint64_t u, const weft_block_plan *plan, bool products) {
  const weft_program *program = p->program;
  const plan_unit *unit = &p->units.items[u];
  weft_span items = plan_section_items(program, unit->section);
  if (p->round && unit->kind != UNIT_MATMUL) return;
  memset(p->blocks_at, 0, p->target->mesh_rows * p->target->mesh_cols * sizeof *p->blocks_at);
  if (unit->item != WEFT_NONE) items = (weft_span){unit->item, (uint64_t)unit->item + 1};
  static const weft_work_item nothing = {.id = WEFT_NONE};
  if (items.begin == items.end && !p->round) place_whole_item(p, u, &nothing, 0, true);
  uint64_t sites = p->target->mesh_rows * p->target->mesh_cols;
  bool alone = items.end - items.begin == 1;
  for (uint64_t i = items.begin; i < items.end && !p->failed; i++) {
    const weft_work_item *item = &program->work.items[i];
    bool empty = !item->h_t || !item->w_t || !unit->rows || !unit->cols;
    if (unit->kind == UNIT_FIXED || empty) {
      if (p->round) continue;
      place_whole_item(p, u, item, i - items.begin, alone);
    } else if (unit->kind == UNIT_MATMUL) {
      place_matmul_item(p, u, item, plan, alone);
    } else {
      uint64_t per_site = products ? weft_max_u64(1, weft_ceil_div(unit->rows, sites)) : plan->per_site_m;
      place_rows_item(p, u, item, per_site, i - items.begin, alone);
    }
  }
}

/* ---- the program ---- */

/** Edges by the unit of the stage they start at. */
static bool sort_edges(placer *p) {
  const weft_program *program = p->program;
  p->edges_begin = WEFT_NEW_ARRAY(p->scratch, uint64_t, p->units.count + 2);
  p->edges = WEFT_NEW_ARRAY(p->scratch, uint32_t, program->edge_count + 1);
  if (!p->edges_begin || !p->edges) return false;
  uint64_t *at = p->edges_begin;
  for (uint64_t e = 0; e < program->edge_count; e++) {
    uint64_t unit = p->units.unit_of_stage[program->edges[e].from];
    if (unit + 2 < p->units.count + 2) at[unit + 2]++;
  }
  for (uint64_t u = 2; u < p->units.count + 2; u++) at[u] += at[u - 1];
  for (uint64_t e = 0; e < program->edge_count; e++)
    p->edges[at[p->units.unit_of_stage[program->edges[e].from] + 1]++] = (uint32_t)e;
  return true;
}

/** Rounds of blocks that a section of the units [begin, end) may have: as many as the memory of a site holds pages of,
 * at least one. All of them where the program has no sections. */
static uint64_t rounds_at_once(const placer *p, uint64_t begin, uint64_t end, const weft_block_plan *plan) {
  if (!p->program->section_count || !plan) return UINT64_MAX;
  double most = 0;
  for (uint64_t u = begin; u < end; u++) {
    if (p->units.items[u].kind != UNIT_MATMUL) continue;
    double bytes = 0;
    for (uint64_t v = begin; v < end; v++) {
      const plan_unit *unit = &p->units.items[v];
      if (unit->kind != UNIT_MATMUL || unit->chip != p->units.items[u].chip) continue;
      uint64_t ibw = plan_divisor(weft_max_u64(unit->k_tiles, 1), plan->block.ibw);
      weft_format operand = plan_matmul_of(&p->program->stages[unit->matmul])->operand;
      bytes += plan_block_bytes(p->program, weft_min_u64(plan->per_site_m, unit->rows),
                                weft_min_u64(plan->per_site_n, unit->cols), ibw, weft_format_bytes(operand));
    }
    most = bytes > most ? bytes : most;
  }
  if (most <= 0) return UINT64_MAX;
  return weft_max_u64(1, (uint64_t)((double)p->target->local_bytes / most));
}

/** Appends the section that template section `k` becomes, or one of those, with what was placed since `from`. */
static bool add_section(placer *p, uint64_t k, const weft_section *from) {
  if (!p->program->section_count) return true;
  if (!weft_arena_grow(p->program->arena, &p->sections, p->section_count, &p->section_capacity, sizeof *p->sections))
    return false;
  weft_section *section = &p->sections[p->section_count++];
  *section = p->program->sections[k];
  section->stages = (weft_span){from->stages.begin, p->stage_count};
  section->buffers = (weft_span){from->buffers.begin, p->buffer_count};
  section->edges = (weft_span){from->edges.begin, p->edge_count};
  section->items = (weft_span){from->items.begin, p->item_count};
  if (p->round)
    section->name =
        weft_arena_printf(p->program->arena, "%s+%llu", section->name, (unsigned long long)(p->round / p->rounds));
  return section->name != NULL;
}

/** One section of the template: its units [begin, end), in as many sections as the memory of the sites asks for. */
static bool clone_section(placer *p, uint64_t k, uint64_t begin, uint64_t end) {
  const weft_block_plan *plan = plan_of_section(p->program, k);
  bool products = has_products(p, begin, end);
  p->rounds = products ? rounds_at_once(p, begin, end, plan) : UINT64_MAX;
  clear_bytes(p);
  p->room = room_of(p, begin, end);
  p->round_end = 0;
  for (p->round = 0; p->round == 0 || p->round < p->round_end; p->round += p->rounds) {
    const weft_section from = {.stages.begin = p->stage_count,
                               .buffers.begin = p->buffer_count,
                               .edges.begin = p->edge_count,
                               .items.begin = p->item_count};
    p->first_item = p->item_count;
    p->first_buffer = p->buffer_count;
    clear_bytes(p);
    for (uint64_t u = begin; u < end && !p->failed; u++) place_unit(p, u, plan, products);
    if (p->failed || !add_section(p, k, &from)) return false;
    if (p->round_end <= p->rounds) break;
  }
  return true;
}

static bool clone_sections(placer *p) {
  uint64_t u = 0;
  for (uint64_t k = 0; k < plan_section_count(p->program); k++) {
    uint64_t begin = u;
    while (u < p->units.count && p->units.items[u].section == k) u++;
    if (!clone_section(p, k, begin, u)) return false;
  }
  return true;
}

static int compare_sites(const void *a, const void *b) {
  const weft_site *s = a, *t = b;
  if (s->chip != t->chip) return s->chip < t->chip ? -1 : 1;
  if (s->y != t->y) return s->y < t->y ? -1 : 1;
  return s->x != t->x ? (s->x < t->x ? -1 : 1) : 0;
}

typedef struct item_at {
  weft_site site;
  uint32_t item;
} item_at;

static int compare_items(const void *a, const void *b) {
  const item_at *s = a, *t = b;
  int order = compare_sites(&s->site, &t->site);
  return order ? order : s->item < t->item ? -1 : s->item > t->item;
}

static bool list_items(placer *p, weft_placement *placement) {
  weft_arena *arena = p->program->arena;
  item_at *sorted = WEFT_NEW_ARRAY(p->scratch, item_at, p->item_count + 1);
  weft_site_items *sites = WEFT_NEW_ARRAY(arena, weft_site_items, p->item_count);
  uint32_t *items = WEFT_NEW_ARRAY(arena, uint32_t, p->item_count);
  if (!sorted || !sites || !items) return false;
  for (uint64_t i = 0; i < p->item_count; i++) sorted[i] = (item_at){p->item_sites[i], (uint32_t)i};
  qsort(sorted, p->item_count, sizeof *sorted, compare_items);
  uint64_t count = 0;
  for (uint64_t i = 0; i < p->item_count; i++) {
    if (i == 0 || !weft_site_equal(sorted[i - 1].site, sorted[i].site))
      sites[count++] = (weft_site_items){sorted[i].site, items + i, 0};
    sites[count - 1].item_count++;
    items[i] = sorted[i].item;
  }
  placement->items_of_site = sites;
  placement->items_of_site_count = count;
  return true;
}

static bool make_placement(placer *p) {
  weft_program *program = p->program;
  weft_placement *placement = WEFT_NEW(program->arena, weft_placement);
  weft_site *site_of = WEFT_NEW_ARRAY(program->arena, weft_site, p->stage_count);
  if (!placement || !site_of || !list_items(p, placement)) return false;
  for (uint64_t s = 0; s < p->stage_count; s++) site_of[s] = p->stages[s].site.site;
  placement->mesh_cols = p->target->mesh_cols;
  placement->mesh_rows = p->target->mesh_rows;
  placement->site_of = site_of;
  placement->engine_of = copy_array(p, p->slots, p->stage_count, sizeof *p->slots);
  placement->site_of_count = placement->engine_of_count = p->stage_count;
  program->placement = placement;
  return true;
}

/** A State's blocks are counted by its items. */
static void recount_state_grid(weft_program *program) {
  uint64_t last = plan_section_count(program) - 1;
  weft_span stages = plan_section_stages(program, last), items = plan_section_items(program, last);
  if (program->section_count && program->sections[last].output != WEFT_NONE &&
      program->tensors[program->sections[last].output].role != WEFT_ROLE_STATE)
    return;
  for (uint64_t s = stages.begin; s < stages.end; s++) {
    const weft_stage *stage = &program->stages[s];
    if (stage->kind != WEFT_STAGE_STORE) continue;
    weft_tensor_role role = program->tensors[stage->store.tensor].role;
    if (role == WEFT_ROLE_OUTPUT && !program->section_count) return;
    if (role == WEFT_ROLE_STATE) program->work.plan.grid = (weft_pair){1, items.end - items.begin};
  }
}

static weft_status replace(placer *p) {
  weft_program *program = p->program;
  if (!make_placement(p)) return weft_error_memory(p->diag);
  program->stages = copy_array(p, p->stages, p->stage_count, sizeof *p->stages);
  program->buffers = copy_array(p, p->buffers, p->buffer_count, sizeof *p->buffers);
  program->edges = copy_array(p, p->edge_items, p->edge_count, sizeof *p->edge_items);
  program->work.items = copy_array(p, p->items, p->item_count, sizeof *p->items);
  program->stage_count = p->stage_count;
  program->buffer_count = p->buffer_count;
  program->edge_count = p->edge_count;
  program->work.item_count = p->item_count;
  if (program->section_count) program->sections = p->sections;
  program->section_count = p->section_count;
  if (p->failed) return weft_error_memory(p->diag);
  recount_state_grid(program);
  return WEFT_OK;
}

weft_status weft_pass_place(weft_program *program, const weft_target *target, const weft_options *options,
                            weft_diag *diag) {
  (void)options;
  placer p = {.program = program, .target = target, .diag = diag, .scratch = weft_arena_new()};
  if (!p.scratch) return weft_error_memory(diag);
  weft_status status = plan_units_find(program, p.scratch, &p.units, diag);
  for (uint64_t u = 0; u < p.units.count; u++) p.chips = weft_max_u64(p.chips, (uint64_t)p.units.items[u].chip + 1);
  for (uint64_t b = 0; b < program->buffer_count; b++)
    if (program->buffers[b].site.present)
      p.chips = weft_max_u64(p.chips, (uint64_t)program->buffers[b].site.site.chip + 1);
  p.bytes_at = WEFT_NEW_ARRAY(p.scratch, uint64_t, p.chips * target->mesh_rows * target->mesh_cols);
  p.blocks_at = WEFT_NEW_ARRAY(p.scratch, uint64_t, target->mesh_rows * target->mesh_cols);
  p.buffer_map = WEFT_NEW_ARRAY(p.scratch, uint32_t, program->buffer_count + 1);
  if (p.buffer_map) memset(p.buffer_map, 0xff, (program->buffer_count + 1) * sizeof(uint32_t));
  p.stage_map = WEFT_NEW_ARRAY(p.scratch, uint32_t, program->stage_count + 1);
  p.first_of_item = WEFT_NEW_ARRAY(p.scratch, uint32_t, program->work.item_count + 1);
  if (p.first_of_item) memset(p.first_of_item, 0xff, (program->work.item_count + 1) * sizeof(uint32_t));
  if (!status && (!p.blocks_at || !p.bytes_at || !p.buffer_map || !p.stage_map || !p.first_of_item || !sort_edges(&p)))
    status = weft_error_memory(diag);
  if (!status && !clone_sections(&p)) status = weft_error_memory(diag);
  if (!status) status = replace(&p);
  weft_arena_free(p.scratch);
  return status;
}
