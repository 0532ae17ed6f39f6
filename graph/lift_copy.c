/* Shifted copies back to slices and assembles: what each chosen leaf moves, gathered by source and offset. */
#include "lift_private.h"

#include <stdlib.h>
#include <string.h>

/** What one tensor gets from one source at one offset: the elements moved and the rectangle around them. */
struct weft_copy_group {
  uint32_t tensor, source;        /**< stored tensor; loaded tensor */
  uint32_t stage;                 /**< the first that moves some */
  int64_t row_offset, col_offset; /**< source position less result position */
  uint64_t elements;
  uint64_t row0, col0, row_end, col_end; /**< in the result */
};

bool weft_generic_is_copy(const weft_generic *generic) {
  for (uint64_t i = 0; i < generic->body.node_count; i++) {
    const weft_body_node *node = &generic->body.nodes[i];
    if (node->kind != WEFT_BODY_OPERAND && (node->kind != WEFT_BODY_SELECT || node->pred.operand_bound)) return false;
  }
  return true;
}

/** A rectangle of a page. */
typedef struct area {
  uint64_t row0, row_end, col0, col_end;
} area;

/** Notes that `a` is moved from the source at the offsets; notes of one group are joined in weft_lift_copies. */
static weft_status add_area(weft_lift *l, uint32_t stage, uint32_t source, int64_t row_offset, int64_t col_offset,
                            const area *a, uint64_t elements) {
  if (!weft_arena_grow(l->scratch, &l->copies, l->copy_count, &l->copy_capacity, sizeof *l->copies))
    return weft_error_memory(l->diag);
  l->copies[l->copy_count++] = (weft_copy_group){.tensor = l->geometry[stage]->tensor,
                                                 .source = source,
                                                 .stage = stage,
                                                 .row_offset = row_offset,
                                                 .col_offset = col_offset,
                                                 .elements = elements,
                                                 .row0 = a->row0,
                                                 .col0 = a->col0,
                                                 .row_end = a->row_end,
                                                 .col_end = a->col_end};
  return WEFT_OK;
}

/** How a load's page moves down with the result, one tile row at a time, inside its tensor. */
static bool walks_down(const weft_geometry *g, const weft_walk *walk, const weft_tensor *tensor) {
  const weft_tile_grid tiles = tensor->tiles;
  if (!tiles.cols_t || walk->block_h != 1 || (walk->block_w > 1 && walk->stride_w != 1) || walk->k || walk->sub_w)
    return false;
  const uint64_t row = walk->base / tiles.cols_t, col = walk->base % tiles.cols_t;
  return (g->sub_rows <= 1 || walk->sub_h == tiles.cols_t) && walk->block_w && walk->block_w <= tiles.cols_t - col &&
         row < tiles.rows_t && g->sub_rows <= tiles.rows_t - row;
}

static int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0); }

/** One leaf: rows and columns `a` of every page of the unit come from operand `index`. */
static weft_status lift_leaf(weft_lift *l, uint32_t id, uint64_t index, area a) {
  const weft_stage *stage = &l->program->stages[id];
  const weft_geometry *g = l->geometry[id];
  const weft_stage *load = weft_lift_load(l, stage->ins[index]);
  weft_walk walk;
  if (!weft_walk_of(&load->load.pattern, &walk)) return WEFT_INVALID; // check_operands has refused it
  const weft_tensor *tensor = &l->program->tensors[load->load.tensor];
  const weft_elem_access *map = &stage->compute->generic.ins[index];
  const int64_t width = (int64_t)(walk.block_w * WEFT_GRAPH_TILE);
  if (!weft_map_is(map, map->base, width, 1))
    return weft_lift_refuse(l, id, "operand %llu is not a shifted page", (unsigned long long)index);
  // Rows past the result's end are dead; so the last page of the unit may be cut.
  const uint64_t top = g->row_t * WEFT_GRAPH_TILE, last = top + (g->sub_rows - 1) * WEFT_GRAPH_TILE;
  const uint64_t left = g->col_t * WEFT_GRAPH_TILE;
  a.col_end = weft_min_u64(a.col_end, g->plane.cols - left);
  if (g->sub_rows == 1) a.row_end = weft_min_u64(a.row_end, g->plane.rows - top);
  if (a.row0 >= a.row_end || a.col0 >= a.col_end) return WEFT_OK;
  int64_t row_shift = floor_divide(map->base + (int64_t)a.col0, width), col_shift = map->base - row_shift * width;
  if ((int64_t)a.row0 + row_shift < 0 || (int64_t)a.row_end + row_shift > WEFT_GRAPH_TILE ||
      (int64_t)a.col_end + col_shift > width)
    return weft_lift_refuse(l, id, "operand %llu is read outside its page", (unsigned long long)index);
  const uint64_t cols_t = tensor->tiles.cols_t, tile_row = walk.base / cols_t, tile_col = walk.base % cols_t;
  const int64_t row_offset = ((int64_t)tile_row - (int64_t)g->row_t) * WEFT_GRAPH_TILE + row_shift;
  const int64_t col_offset = ((int64_t)tile_col - (int64_t)g->col_t) * WEFT_GRAPH_TILE + col_shift;
  uint64_t last_rows = weft_min_u64(last + a.row_end, g->plane.rows), cols = a.col_end - a.col0;
  last_rows = last_rows > last + a.row0 ? last_rows - last - a.row0 : 0;
  uint64_t elements = ((g->sub_rows - 1) * (a.row_end - a.row0) + last_rows) * cols;
  const area whole = {top + a.row0, weft_min_u64(last + a.row_end, g->plane.rows), left + a.col0, left + a.col_end};
  return add_area(l, id, load->load.tensor, row_offset, col_offset, &whole, elements);
}

/** Walks the selections from node `index` down, keeping the part of the page that leads there. */
static weft_status lift_choice(weft_lift *l, uint32_t id, uint32_t index, area a) {
  const weft_body_node *node = &l->program->stages[id].compute->generic.body.nodes[index];
  if (a.row0 >= a.row_end || a.col0 >= a.col_end) return WEFT_OK;
  if (node->kind == WEFT_BODY_OPERAND) return lift_leaf(l, id, node->value, a);
  const bool row = node->pred.var == WEFT_VAR_GEN_ROW;
  area below = a, above = a;
  uint64_t *end = row ? &below.row_end : &below.col_end, *begin = row ? &above.row0 : &above.col0;
  *end = weft_min_u64(*end, node->pred.bound);
  *begin = weft_max_u64(*begin, node->pred.bound);
  weft_status status = lift_choice(l, id, node->child[node->pred.ge ? 1 : 0], below);
  return status == WEFT_OK ? lift_choice(l, id, node->child[node->pred.ge ? 0 : 1], above) : status;
}

/** Every operand is a page that moves down with the result. */
static weft_status check_operands(weft_lift *l, uint32_t id) {
  const weft_stage *stage = &l->program->stages[id];
  const weft_geometry *g = l->geometry[id];
  for (uint64_t i = 0; i < stage->in_count; i++) {
    const weft_stage *load = weft_lift_load(l, stage->ins[i]);
    weft_walk walk;
    if (!load || !weft_walk_of(&load->load.pattern, &walk))
      return weft_lift_refuse(l, id, "it moves what is no tensor");
    const weft_tensor *tensor = &l->program->tensors[load->load.tensor];
    if (!walks_down(g, &walk, tensor) || l->program->buffers[stage->ins[i]].page_tiles != walk.block_w)
      return weft_lift_refuse(l, load->id, "it does not walk down '%s' with the result", tensor->name);
    if (tensor->dtype != l->program->tensors[g->tensor].dtype)
      return weft_lift_refuse(l, id, "a shifted copy that converts");
  }
  return WEFT_OK;
}

static bool fits_inside(const weft_value *part, const weft_value *whole) {
  if (part->rank != whole->rank || part->dtype != whole->dtype) return false;
  for (uint32_t d = 0; d < part->rank; d++)
    if (part->extents[d] > whole->extents[d]) return false;
  return true;
}

/** A result without elements has no walks that tell where its pieces are; all of them are at its origin. */
static weft_status lift_nothing(weft_lift *l, uint32_t id) {
  const weft_stage *stage = &l->program->stages[id];
  const weft_geometry *g = l->geometry[id];
  const weft_value *out = &l->graph->values[g->tensor];
  uint64_t(*starts)[WEFT_MAX_RANK] = weft_arena_array(l->scratch, stage->in_count, sizeof *starts);
  uint32_t *ins = WEFT_NEW_ARRAY(l->scratch, uint32_t, stage->in_count);
  if (!starts || !ins) return weft_error_memory(l->diag);
  weft_graph_op op = {.kind = WEFT_GRAPH_ASSEMBLE,
                      .name = stage->name,
                      .section = l->section,
                      .out = g->tensor,
                      .chip = weft_lift_chip(l, id),
                      .ins = ins,
                      .starts = (const uint64_t(*)[WEFT_MAX_RANK])starts};
  memset(starts, 0, stage->in_count * sizeof *starts);
  for (uint64_t i = 0; i < stage->in_count; i++) {
    const weft_stage *load = weft_lift_load(l, stage->ins[i]);
    if (!load) return weft_lift_refuse(l, id, "it moves what is no tensor");
    const uint32_t source = l->current[load->load.tensor];
    if (fits_inside(&l->graph->values[source], out)) ins[op.in_count++] = source;
  }
  if (!op.in_count && stage->in_count) {
    ins[op.in_count++] = l->current[weft_lift_load(l, stage->ins[0])->load.tensor];
    op.kind = WEFT_GRAPH_SLICE;
    if (!fits_inside(out, &l->graph->values[ins[0]]))
      return weft_lift_refuse(l, id, "what it takes does not fit '%s'", l->program->tensors[g->tensor].name);
  }
  if (out->producer != WEFT_NONE || !op.in_count)
    return weft_lift_refuse(l, id, "it gives '%s' nothing", l->program->tensors[g->tensor].name);
  return weft_graph_add_op(l->graph, &op) == WEFT_NONE ? weft_graph_failure(l->graph) : WEFT_OK;
}

weft_status weft_lift_copy(weft_lift *l, uint32_t id) {
  const weft_stage *stage = &l->program->stages[id];
  const weft_geometry *g = l->geometry[id];
  const weft_body *body = &stage->compute->generic.body;
  if (l->reader[stage->outs[0]] != g->store) return weft_lift_refuse(l, id, "a shifted copy that another stage reads");
  if (l->program->buffers[stage->outs[0]].dtype != l->program->tensors[g->tensor].dtype)
    return weft_lift_refuse(l, g->store, "it converts while it stores");
  if (!g->plane.rows_t || !g->plane.cols_t) return lift_nothing(l, id);
  if (g->block_h != 1 || g->sub_cols != 1) return weft_lift_refuse(l, id, "a shifted copy in blocks");
  if (l->program->buffers[stage->outs[0]].page_tiles != g->block_w)
    return weft_lift_refuse(l, id, "a page that is no row of tiles");
  weft_status status = check_operands(l, id);
  if (status != WEFT_OK) return status;
  const area page = {0, WEFT_GRAPH_TILE, 0, weft_page_width(g)};
  return lift_choice(l, id, (uint32_t)body->node_count - 1, page);
}

/* ---- from rectangles to ops ---------------------------------------------------------------------------------------
 */

/** The position of plane element (row, col) in a value. */
static void unfold(const weft_value *value, uint64_t row, uint64_t col, uint64_t starts[WEFT_MAX_RANK]) {
  memset(starts, 0, WEFT_MAX_RANK * sizeof *starts);
  if (!value->rank) return;
  starts[value->rank - 1] = col;
  for (uint32_t d = value->rank - 1; d-- > 0;) {
    starts[d] = value->extents[d] ? row % value->extents[d] : 0;
    row = value->extents[d] ? row / value->extents[d] : 0;
  }
}

static bool covers_source(const weft_lift *l, const weft_copy_group *group) {
  const weft_elem_shape source = l->program->tensors[group->source].elems;
  return group->row_offset == -(int64_t)group->row0 && group->col_offset == -(int64_t)group->col0 &&
         group->row_end - group->row0 == source.rows && group->col_end - group->col0 == source.cols;
}

/** Appends the slice that takes a group's block from its source and gives `op->out`. */
static weft_status lift_slice(weft_lift *l, const weft_copy_group *group, weft_graph_op *op) {
  uint64_t starts[1][WEFT_MAX_RANK];
  const uint32_t source = l->current[group->source];
  const weft_elem_shape whole = l->program->tensors[group->source].elems;
  const int64_t row = (int64_t)group->row0 + group->row_offset, col = (int64_t)group->col0 + group->col_offset;
  if (row < 0 || col < 0 || (uint64_t)row + group->row_end - group->row0 > whole.rows ||
      (uint64_t)col + group->col_end - group->col0 > whole.cols)
    return weft_lift_refuse(l, group->stage, "it reads outside '%s'", l->program->tensors[group->source].name);
  unfold(&l->graph->values[source], (uint64_t)row, (uint64_t)col, starts[0]);
  op->kind = WEFT_GRAPH_SLICE;
  op->ins = &source;
  op->in_count = 1;
  op->starts = (const uint64_t(*)[WEFT_MAX_RANK])starts;
  return weft_graph_add_op(l->graph, op) == WEFT_NONE ? weft_graph_failure(l->graph) : WEFT_OK;
}

/** The value of a piece: its source, or a block of it, which no tensor holds. `rank` is the whole's. */
static weft_status piece_value(weft_lift *l, const weft_copy_group *group, const weft_graph_op *whole,
                               uint32_t *value) {
  *value = l->current[group->source];
  if (covers_source(l, group)) return WEFT_OK;
  const weft_value *source = &l->graph->values[*value];
  if (source->rank != 2 || l->graph->values[whole->out].rank != 2)
    return weft_lift_refuse(l, group->stage, "it joins parts of tensors of more than two dimensions");
  weft_value block = {.name = source->name,
                      .role = WEFT_ROLE_ACTIVATION,
                      .dtype = source->dtype,
                      .rank = 2,
                      .extents = {group->row_end - group->row0, group->col_end - group->col0},
                      .init = {.kind = WEFT_INIT_ZERO},
                      .chip = whole->chip};
  weft_graph_op slice = *whole;
  slice.out = *value = weft_graph_add_value(l->graph, &block);
  return *value == WEFT_NONE ? weft_graph_failure(l->graph) : lift_slice(l, group, &slice);
}

static weft_status lift_assemble(weft_lift *l, const weft_copy_group *groups, uint32_t count, weft_graph_op *op) {
  uint64_t(*starts)[WEFT_MAX_RANK] = weft_arena_array(l->scratch, count, sizeof *starts);
  uint32_t *ins = WEFT_NEW_ARRAY(l->scratch, uint32_t, count);
  if (!starts || !ins) return weft_error_memory(l->diag);
  for (uint32_t i = 0; i < count; i++) {
    weft_status status = piece_value(l, &groups[i], op, &ins[i]);
    if (status != WEFT_OK) return status;
    unfold(&l->graph->values[op->out], groups[i].row0, groups[i].col0, starts[i]);
  }
  op->kind = WEFT_GRAPH_ASSEMBLE;
  op->ins = ins;
  op->in_count = count;
  op->starts = (const uint64_t(*)[WEFT_MAX_RANK])starts;
  return weft_graph_add_op(l->graph, op) == WEFT_NONE ? weft_graph_failure(l->graph) : WEFT_OK;
}

static bool is_rectangle(const weft_copy_group *g) {
  return g->elements == (g->row_end - g->row0) * (g->col_end - g->col0);
}

/** The op of one stored tensor from its groups, which stand side by side. */
static weft_status lift_groups(weft_lift *l, const weft_copy_group *groups, uint32_t count) {
  const weft_tensor *tensor = &l->program->tensors[groups->tensor];
  uint64_t elements = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (!is_rectangle(&groups[i]))
      return weft_lift_refuse(l, groups[i].stage, "what it takes from '%s' is no rectangle",
                              l->program->tensors[groups[i].source].name);
    elements += groups[i].elements;
  }
  if (elements != tensor->elems.rows * tensor->elems.cols)
    return weft_lift_refuse(l, groups->stage, "it leaves parts of '%s' unset", tensor->name);
  if (tensor->role == WEFT_ROLE_STATE)
    return weft_lift_refuse(l, groups->stage, "it stores a state from elsewhere than its place");
  if (l->graph->values[groups->tensor].producer != WEFT_NONE)
    return weft_lift_refuse(l, groups->stage, "'%s' is stored twice", tensor->name);
  weft_graph_op op = {.name = l->program->stages[groups->stage].name,
                      .section = l->section,
                      .out = groups->tensor,
                      .chip = weft_lift_chip(l, groups->stage)};
  bool slice = count == 1 && !covers_source(l, groups);
  return slice ? lift_slice(l, groups, &op) : lift_assemble(l, groups, count, &op);
}

/** By tensor, source and offset; then by place, so that what is joined does not depend on the sort. */
static int by_group(const void *a, const void *b) {
  const weft_copy_group *x = a, *y = b;
  if (x->tensor != y->tensor) return x->tensor < y->tensor ? -1 : 1;
  if (x->source != y->source) return x->source < y->source ? -1 : 1;
  if (x->row_offset != y->row_offset) return x->row_offset < y->row_offset ? -1 : 1;
  if (x->col_offset != y->col_offset) return x->col_offset < y->col_offset ? -1 : 1;
  if (x->row0 != y->row0) return x->row0 < y->row0 ? -1 : 1;
  return x->col0 < y->col0 ? -1 : x->col0 > y->col0;
}

static bool same_group(const weft_copy_group *a, const weft_copy_group *b) {
  return a->tensor == b->tensor && a->source == b->source && a->row_offset == b->row_offset &&
         a->col_offset == b->col_offset;
}

static void join(weft_copy_group *group, const weft_copy_group *other) {
  group->elements += other->elements;
  if (other->stage < group->stage) group->stage = other->stage;
  group->row0 = weft_min_u64(group->row0, other->row0);
  group->col0 = weft_min_u64(group->col0, other->col0);
  group->row_end = weft_max_u64(group->row_end, other->row_end);
  group->col_end = weft_max_u64(group->col_end, other->col_end);
}

/** Whether `other` continues the group downwards or to the right without a step. */
static bool continues(const weft_copy_group *group, const weft_copy_group *other) {
  bool below = group->col0 == other->col0 && group->col_end == other->col_end && group->row_end == other->row0;
  bool beside = group->row0 == other->row0 && group->row_end == other->row_end && group->col_end == other->col0;
  return below || beside;
}

/** Joins areas [begin, end) of one source and offset: to one rectangle when they are one, else to those they are made
 * of. Returns how many are left. */
static uint64_t join_areas(weft_copy_group *areas, uint64_t count) {
  weft_copy_group whole = areas[0];
  for (uint64_t i = 1; i < count; i++) join(&whole, &areas[i]);
  if (is_rectangle(&whole)) {
    areas[0] = whole;
    return 1;
  }
  for (bool joined = true; joined;) {
    uint64_t kept = 0;
    joined = false;
    for (uint64_t i = 0; i < count; i++) {
      uint64_t at = 0;
      while (at < kept && !continues(&areas[at], &areas[i])) at++;
      if (at < kept) {
        join(&areas[at], &areas[i]);
        joined = true;
      } else {
        areas[kept++] = areas[i];
      }
    }
    count = kept;
  }
  return count;
}

weft_status weft_lift_copies(weft_lift *l) {
  if (!l->copy_count) return WEFT_OK;
  qsort(l->copies, l->copy_count, sizeof *l->copies, by_group);
  uint64_t groups = 0;
  for (uint64_t begin = 0, end; begin < l->copy_count; begin = end) {
    for (end = begin + 1; end < l->copy_count && same_group(&l->copies[begin], &l->copies[end]);) end++;
    uint64_t count = join_areas(&l->copies[begin], end - begin);
    memmove(&l->copies[groups], &l->copies[begin], count * sizeof *l->copies);
    groups += count;
  }
  l->copy_count = 0;
  for (uint64_t begin = 0, end; begin < groups; begin = end) {
    for (end = begin + 1; end < groups && l->copies[end].tensor == l->copies[begin].tensor;) end++;
    weft_status status = lift_groups(l, l->copies + begin, (uint32_t)(end - begin));
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}
