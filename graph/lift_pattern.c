/* How loads and stores of a Template walk their tensors. */
#include "lift_private.h"

bool weft_walk_of(const weft_access_pattern *pattern, weft_walk *walk) {
  const weft_tile_addr *origin = &pattern->origin;
  *walk = (weft_walk){.base = origin->base,
                      .block_h = pattern->block_h,
                      .block_w = pattern->block_w,
                      .stride_w = pattern->stride_w,
                      .stride_h = pattern->stride_h};
  if (origin->indirect) return false;
  for (uint64_t i = 0; i < origin->step_count; i++) {
    const weft_step *step = &origin->steps[i];
    uint64_t *stride = step->var == WEFT_VAR_SUB_H     ? &walk->sub_h
                       : step->var == WEFT_VAR_SUB_W   ? &walk->sub_w
                       : step->var == WEFT_VAR_K_BLOCK ? &walk->k
                                                       : NULL;
    if (step->var == WEFT_VAR_ITEM_Y || step->var == WEFT_VAR_ITEM_X) continue;
    if (!stride || weft_add_overflow(*stride, step->stride, stride)) return false;
  }
  return true;
}

bool weft_map_is(const weft_elem_access *map, int64_t base, int64_t row, int64_t col) {
  if (map->indirect || map->base != base) return false;
  for (uint64_t i = 0; i < map->term_count; i++) {
    const weft_term *term = &map->terms[i];
    int64_t *left = term->var == WEFT_VAR_GEN_ROW ? &row : term->var == WEFT_VAR_GEN_COL ? &col : NULL;
    if (term->stride == 0) continue;
    if (!left || *left != term->stride) return false;
    *left = 0;
  }
  return row == 0 && col == 0;
}

/** A stride counts only where there is a second step. */
static bool stride_is(uint64_t stride, uint64_t expected, uint64_t steps) { return steps <= 1 || stride == expected; }

bool weft_walks_like(const weft_geometry *g, const weft_walk *walk) {
  const uint64_t cols_t = g->plane.cols_t;
  return walk->base == g->row_t * cols_t + g->col_t && walk->block_h == g->block_h && walk->block_w == g->block_w &&
         walk->k == 0 && stride_is(walk->stride_w, 1, g->block_w) && stride_is(walk->stride_h, cols_t, g->block_h) &&
         stride_is(walk->sub_h, g->block_h * cols_t, g->sub_rows) && stride_is(walk->sub_w, g->block_w, g->sub_cols);
}

/** The one work item of a Store: its own, or the only one of its section. NULL: there is none. */
static weft_status only_item(weft_lift *l, uint32_t store, const weft_work_item **item) {
  const weft_program *program = l->program;
  const weft_stage *stage = &program->stages[store];
  *item = NULL;
  if (stage->item != WEFT_NONE) {
    *item = &program->work.items[stage->item];
    return WEFT_OK;
  }
  uint64_t section = weft_section_of_stage(program, store);
  weft_span items = {0, program->work.item_count};
  if (section != UINT64_MAX) items = program->sections[section].items;
  if (items.end - items.begin > 1) return weft_lift_refuse(l, store, "its section has several work items");
  if (items.end > items.begin) *item = &program->work.items[items.begin];
  return WEFT_OK;
}

weft_status weft_lift_geometry(weft_lift *l, uint32_t store, weft_geometry *g) {
  const weft_stage *stage = &l->program->stages[store];
  const weft_tensor *tensor = &l->program->tensors[stage->store.tensor];
  const weft_work_item *item;
  weft_walk walk;
  weft_status status = only_item(l, store, &item);
  if (status != WEFT_OK) return status;
  weft_access_pattern affine = stage->store.pattern;
  const bool indexed = affine.origin.indirect != NULL;
  affine.origin.indirect = NULL;
  if (!weft_walk_of(&affine, &walk) || walk.k)
    return weft_lift_refuse(l, store, "its address depends on more than the sub-block");
  const uint64_t cols_t = tensor->tiles.cols_t;
  *g = (weft_geometry){.store = store,
                       .tensor = stage->store.tensor,
                       .plane = {tensor->elems.rows, tensor->elems.cols, tensor->tiles.rows_t, cols_t},
                       .row_t = cols_t ? walk.base / cols_t : 0,
                       .col_t = cols_t ? walk.base % cols_t : 0,
                       .sub_rows = stage->store.sub_blocks.first,
                       .sub_cols = stage->store.sub_blocks.second,
                       .block_h = walk.block_h,
                       .block_w = walk.block_w};
  if (!tensor->tiles.rows_t || !cols_t) return WEFT_OK;
  if (indexed) { // where it stores is for the compute to say
    if (walk.base || (walk.block_w > 1 && walk.stride_w != 1) || walk.block_h != 1 ||
        (g->sub_cols > 1 && walk.sub_w != walk.block_w) || (g->sub_rows > 1 && walk.sub_h != cols_t))
      return weft_lift_refuse(l, store, "it does not store a row or a column of '%s' by index", tensor->name);
    return WEFT_OK;
  }
  uint64_t rows, cols;
  bool inside = item && item->coord.first == 0 && item->coord.second == 0 &&
                !weft_mul_overflow(g->block_h, g->sub_rows, &rows) &&
                !weft_mul_overflow(g->block_w, g->sub_cols, &cols) && cols && rows && item->row0_t == g->row_t &&
                item->col0_t == g->col_t && item->h_t == rows && item->w_t == cols && cols <= cols_t - g->col_t &&
                g->row_t < tensor->tiles.rows_t && rows <= tensor->tiles.rows_t - g->row_t;
  if (!inside || !weft_walks_like(g, &walk))
    return weft_lift_refuse(l, store, "it does not walk rows of '%s' block by block", tensor->name);
  return WEFT_OK;
}

const weft_stage *weft_lift_load(const weft_lift *l, uint32_t buffer) {
  uint32_t writer = l->writer[buffer];
  if (writer == WEFT_NONE || l->program->stages[writer].kind != WEFT_STAGE_LOAD) return NULL;
  return &l->program->stages[writer];
}
