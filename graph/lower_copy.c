/* Shifted copies: rectangles of sources that stand anywhere in a result, walked one tile row of the result at a time.
 *
 * A page holds one tile row of a source, so the rows of a rectangle come from one or two of them. Between the tile rows
 * where rectangles begin and end everything moves down evenly: such runs are one unit, border rows one each. */
#include "lower_private.h"

#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

/** The tile rows at which what stands in a tile row may change, sorted, without repeats. */
static uint64_t *cut_rows(weft_arena *arena, const weft_plane *result, const weft_copy_piece *pieces, uint32_t count,
                          uint64_t *cut_count) {
  uint64_t *cuts = WEFT_NEW_ARRAY(arena, uint64_t, 4 * (uint64_t)count + 3);
  if (!cuts) return NULL;
  uint64_t n = 0;
  cuts[n++] = 0;
  cuts[n++] = result->rows / WEFT_GRAPH_TILE;
  cuts[n++] = result->rows_t;
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t borders[] = {pieces[i].row0, pieces[i].row0 + pieces[i].rows};
    for (int b = 0; b < 2; b++) {
      cuts[n++] = borders[b] / WEFT_GRAPH_TILE;
      cuts[n++] = weft_ceil_div(borders[b], WEFT_GRAPH_TILE);
    }
  }
  qsort(cuts, n, sizeof *cuts, ascending);
  uint64_t kept = 1;
  for (uint64_t i = 1; i < n; i++)
    if (cuts[i] != cuts[kept - 1]) cuts[kept++] = cuts[i];
  *cut_count = kept;
  return cuts;
}

/** The one or two parts that a piece has in tile row `t`; 0 when it has none. */
static uint32_t parts_of_piece(const weft_plane *result, const weft_copy_piece *piece, uint64_t t,
                               weft_copy_part out[2]) {
  const int64_t top = (int64_t)(t * WEFT_GRAPH_TILE), first = (int64_t)piece->row0;
  int64_t begin = first > top ? first - top : 0;
  int64_t end = first + (int64_t)piece->rows - top;
  if (end > WEFT_GRAPH_TILE) end = WEFT_GRAPH_TILE;
  if (begin >= end) return 0;
  // Page row r is source row r + offset.
  const int64_t offset = top - first + (int64_t)piece->source_row;
  const int64_t last_tile = (end - 1 + offset) / WEFT_GRAPH_TILE;
  // Rows past the result are dead: the part above them may have them, and all tile rows of a piece look alike.
  if (piece->row0 + piece->rows == result->rows) end = WEFT_GRAPH_TILE;
  uint64_t tile_col = piece->source_col / WEFT_GRAPH_TILE;
  uint32_t count = 0;
  for (int64_t tile = (begin + offset) / WEFT_GRAPH_TILE; tile <= last_tile; tile++, count++) {
    int64_t tile_begin = tile * WEFT_GRAPH_TILE - offset, tile_end = tile_begin + WEFT_GRAPH_TILE;
    out[count] = (weft_copy_part){
        .value = piece->value,
        .tile_row = (uint64_t)tile,
        .tile_col = tile_col,
        .tiles = weft_ceil_div(piece->source_col + piece->cols, WEFT_GRAPH_TILE) - tile_col,
        .row_begin = (uint64_t)(tile_begin > begin ? tile_begin : begin),
        .row_end = (uint64_t)(tile_end < end && tile < last_tile ? tile_end : end),
        .col_begin = piece->col0,
        .col_end = piece->col0 + piece->cols,
        .row_shift = -tile_begin,
        .col_shift = (int64_t)piece->source_col - (int64_t)piece->col0 - (int64_t)(tile_col * WEFT_GRAPH_TILE),
    };
  }
  return count;
}

/** Whether the parts of tile row `b` are those of `a`, `down` tile rows lower. */
static bool same_parts(const weft_copy_run *a, const weft_copy_run *b, uint64_t down) {
  if (a->part_count != b->part_count) return false;
  for (uint32_t i = 0; i < a->part_count; i++) {
    weft_copy_part x = a->parts[i], y = b->parts[i];
    x.tile_row += down;
    if (x.value != y.value || x.tile_row != y.tile_row || x.tile_col != y.tile_col || x.tiles != y.tiles ||
        x.row_begin != y.row_begin || x.row_end != y.row_end || x.col_begin != y.col_begin || x.col_end != y.col_end ||
        x.row_shift != y.row_shift || x.col_shift != y.col_shift)
      return false;
  }
  return true;
}

/** Pieces by first row: those that begin in a tile row, and those still going on, are found without looking at all. */
typedef struct sweep {
  const weft_copy_piece *pieces;
  uint32_t *order; /**< by first row, then as given */
  uint32_t count, next;
  uint32_t *active; /**< as given */
  uint32_t active_count;
} sweep;

static int by_first_row(const void *a, const void *b, void *pieces) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  const weft_copy_piece *p = pieces;
  if (p[x].row0 != p[y].row0) return p[x].row0 < p[y].row0 ? -1 : 1;
  return x < y ? -1 : x > y;
}

static int by_index(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static bool sweep_start(weft_arena *arena, const weft_copy_piece *pieces, uint32_t count, sweep *s) {
  *s = (sweep){.pieces = pieces,
               .count = count,
               .order = WEFT_NEW_ARRAY(arena, uint32_t, count),
               .active = WEFT_NEW_ARRAY(arena, uint32_t, count)};
  if (!s->order || !s->active) return false;
  for (uint32_t i = 0; i < count; i++) s->order[i] = i;
  qsort_r(s->order, count, sizeof *s->order, by_first_row, (void *)pieces);
  return true;
}

/** Moves on to the tile row `t`. */
static void sweep_to(sweep *s, uint64_t t) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < s->active_count; i++) {
    const weft_copy_piece *piece = &s->pieces[s->active[i]];
    if (piece->row0 + piece->rows > t * WEFT_GRAPH_TILE) s->active[kept++] = s->active[i];
  }
  while (s->next < s->count && s->pieces[s->order[s->next]].row0 < (t + 1) * WEFT_GRAPH_TILE) {
    const weft_copy_piece *piece = &s->pieces[s->order[s->next]];
    if (piece->row0 + piece->rows > t * WEFT_GRAPH_TILE) s->active[kept++] = s->order[s->next];
    s->next++;
  }
  s->active_count = kept;
  qsort(s->active, kept, sizeof *s->active, by_index);
}

bool weft_copy_plan(weft_arena *arena, const weft_plane *result, const weft_copy_piece *pieces, uint32_t piece_count,
                    weft_copy_run **runs, uint32_t *run_count) {
  uint64_t cut_count;
  uint64_t *cuts = cut_rows(arena, result, pieces, piece_count, &cut_count);
  sweep s;
  *runs = WEFT_NEW_ARRAY(arena, weft_copy_run, 4 * (uint64_t)piece_count + 3);
  if (!cuts || !*runs || !sweep_start(arena, pieces, piece_count, &s)) return false;
  *run_count = 0;
  for (uint64_t i = 0; i + 1 < cut_count; i++) {
    sweep_to(&s, cuts[i]);
    weft_copy_run run = {.begin = cuts[i],
                         .end = cuts[i + 1],
                         .parts = WEFT_NEW_ARRAY(arena, weft_copy_part, 2 * (uint64_t)s.active_count)};
    if (!run.parts) return false;
    for (uint32_t p = 0; p < s.active_count; p++)
      run.part_count += parts_of_piece(result, &pieces[s.active[p]], run.begin, run.parts + run.part_count);
    weft_copy_run *last = *run_count ? &(*runs)[*run_count - 1] : NULL;
    if (last && same_parts(last, &run, run.begin - last->begin)) {
      last->end = run.end;
    } else {
      (*runs)[(*run_count)++] = run;
    }
  }
  return true;
}

/* ---- choosing by position -----------------------------------------------------------------------------------------
 */

/** A rectangle of the page, [0] rows and [1] columns. */
typedef struct region {
  uint64_t begin[2], end[2];
} region;

typedef struct selection {
  weft_arena *arena;
  const weft_copy_part *parts;
  weft_body_node *nodes;
  uint64_t count, capacity;
  bool too_deep;
} selection;

static region part_region(const weft_copy_part *part) {
  return (region){{part->row_begin, part->col_begin}, {part->row_end, part->col_end}};
}

static bool meets(const weft_copy_part *part, const region *r) {
  region p = part_region(part);
  return p.begin[0] < r->end[0] && r->begin[0] < p.end[0] && p.begin[1] < r->end[1] && r->begin[1] < p.end[1];
}

typedef struct cut {
  int axis;
  uint64_t at, crossed, larger; /**< parts that it cuts in two, parts on its larger side */
} cut;

/** The best cut along an axis: of the borders inside the region the one that cuts the fewest parts and halves them
 * best. */
static cut best_along(selection *s, const region *r, const uint32_t *members, uint32_t count, int axis) {
  cut best = {.axis = axis, .crossed = UINT64_MAX};
  uint64_t *begins = WEFT_NEW_ARRAY(s->arena, uint64_t, count), *ends = WEFT_NEW_ARRAY(s->arena, uint64_t, count);
  if (!begins || !ends) return best;
  for (uint32_t i = 0; i < count; i++) {
    region p = part_region(&s->parts[members[i]]);
    begins[i] = p.begin[axis];
    ends[i] = p.end[axis];
  }
  qsort(begins, count, sizeof *begins, ascending);
  qsort(ends, count, sizeof *ends, ascending);
  uint32_t b = 0, e = 0; // begins below, ends at or below the border
  while (e < count) {
    uint64_t at = b < count && begins[b] < ends[e] ? begins[b] : ends[e];
    while (e < count && ends[e] <= at) e++;
    uint64_t before = b, after = count - e;
    while (b < count && begins[b] <= at) b++;
    if (at <= r->begin[axis] || at >= r->end[axis]) continue;
    cut c = {.axis = axis, .at = at, .crossed = before + after - count, .larger = before > after ? before : after};
    if (c.crossed < best.crossed || (c.crossed == best.crossed && c.larger < best.larger)) best = c;
  }
  return best;
}

static cut best_cut(selection *s, const region *r, const uint32_t *members, uint32_t count) {
  cut rows = best_along(s, r, members, count, 0), cols = best_along(s, r, members, count, 1);
  if (cols.crossed < rows.crossed || (cols.crossed == rows.crossed && cols.larger < rows.larger)) return cols;
  return rows;
}

static uint32_t push_node(selection *s, weft_body_node node) {
  if (!weft_arena_grow(s->arena, &s->nodes, s->count, &s->capacity, sizeof node)) return 0;
  s->nodes[s->count] = node;
  return (uint32_t)s->count++;
}

static uint32_t select_in(selection *s, const region *r, const uint32_t *candidates, uint32_t candidate_count,
                          uint32_t depth) {
  uint32_t *members = WEFT_NEW_ARRAY(s->arena, uint32_t, candidate_count), count = 0;
  if (!members) return 0;
  for (uint32_t i = 0; i < candidate_count; i++)
    if (meets(&s->parts[candidates[i]], r)) members[count++] = candidates[i];
  if (depth >= WEFT_BODY_MAX_DEPTH) s->too_deep = true;
  if (s->too_deep) return 0;
  cut c = best_cut(s, r, members, count);
  if (count <= 1 || c.crossed == UINT64_MAX)
    return push_node(s, (weft_body_node){.kind = WEFT_BODY_OPERAND, .value = count ? members[0] : candidates[0]});
  region before = *r, after = *r;
  before.end[c.axis] = after.begin[c.axis] = c.at;
  uint32_t then = select_in(s, &before, members, count, depth + 1);
  uint32_t otherwise = select_in(s, &after, members, count, depth + 1);
  weft_pred pred = {.var = c.axis ? WEFT_VAR_GEN_COL : WEFT_VAR_GEN_ROW, .bound = c.at};
  return push_node(s, (weft_body_node){.kind = WEFT_BODY_SELECT, .child = {then, otherwise}, .pred = pred});
}

weft_body weft_copy_body(weft_arena *arena, const weft_copy_run *run, uint64_t cols) {
  selection s = {.arena = arena, .parts = run->parts};
  uint32_t *all = WEFT_NEW_ARRAY(arena, uint32_t, run->part_count);
  if (!all) return (weft_body){0};
  for (uint32_t i = 0; i < run->part_count; i++) all[i] = i;
  region page = {{0, 0}, {WEFT_GRAPH_TILE, cols}};
  select_in(&s, &page, all, run->part_count, 0);
  return (weft_body){s.nodes, s.too_deep ? 0 : s.count};
}
