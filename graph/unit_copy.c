/* Units of shifted copies: slices and assembles. */
#include "unit_private.h"

/** The block that a folded slice takes from its source. */
static void unfold_piece(const weft_lowering *l, uint32_t operand, weft_copy_piece *piece) {
  const weft_graph *graph = l->graph;
  piece->value = weft_lower_operand(l, operand);
  if (piece->value == operand) return;
  const weft_graph_op *slice = &graph->ops[graph->values[operand].producer];
  const weft_value *source = &graph->values[piece->value];
  weft_block_in_plane(source->rank, source->extents, slice->starts[0], graph->values[operand].extents,
                      &piece->source_row, &piece->source_col);
}

/** The pieces of a slice or an assemble as rectangles of planes, without empty ones. */
static weft_status copy_pieces(unit_plan *p, const weft_graph_op *op, weft_copy_piece *pieces, uint32_t *count) {
  const weft_graph *graph = p->l->graph;
  const weft_value *out = &graph->values[op->out];
  bool slice = op->kind == WEFT_GRAPH_SLICE;
  *count = 0;
  for (uint32_t i = 0; i < op->in_count; i++) {
    const weft_value *in = &graph->values[op->ins[i]], *whole = slice ? in : out, *part = slice ? out : in;
    weft_plane plane = weft_value_plane(part);
    if (!plane.rows || !plane.cols) continue;
    weft_copy_piece piece = {.value = op->ins[i], .rows = plane.rows, .cols = plane.cols};
    uint64_t row0, col0;
    if (!weft_block_in_plane(whole->rank, whole->extents, op->starts[i], part->extents, &row0, &col0))
      return weft_error(p->l->diag, WEFT_INVALID, "cut along one leading dimension at a time",
                        "%s '%s': the block %s of '%s' %s is no rectangle of its plane", weft_graph_op_name(op->kind),
                        op->name, weft_extents_print(part->rank, part->extents).text, whole->name,
                        weft_extents_print(whole->rank, whole->extents).text);
    if (slice) {
      piece.source_row = row0;
      piece.source_col = col0;
    } else {
      piece.row0 = row0;
      piece.col0 = col0;
      unfold_piece(p->l, op->ins[i], &piece);
    }
    pieces[(*count)++] = piece;
  }
  return WEFT_OK;
}

static weft_status write_run(unit_plan *p, const weft_graph_op *op, const weft_copy_run *run, weft_body body) {
  weft_lowering *l = p->l;
  const weft_value *out = &l->graph->values[op->out];
  p->compute_count = 0;
  p->row_t = run->begin;
  p->rows_t = run->end - run->begin;
  unit_compute *c = unit_add_compute(p, op->name, out->name, out->dtype, run->part_count);
  weft_elem_access *maps = WEFT_NEW_ARRAY(l->program->arena, weft_elem_access, run->part_count);
  if (!c || !maps) return weft_error_memory(l->diag);
  for (uint32_t i = 0; i < run->part_count; i++) {
    const weft_copy_part *part = &run->parts[i];
    uint64_t stride = weft_value_plane(&l->graph->values[part->value]).cols_t;
    const weft_step down[] = {{WEFT_VAR_SUB_H, stride}};
    weft_tile_addr origin = unit_address(l, part->tile_row * stride + part->tile_col, down, 1);
    int64_t width = (int64_t)(part->tiles * WEFT_GRAPH_TILE);
    c->ins[i] = unit_loaded(part->value, unit_block(origin, 1, part->tiles, stride));
    maps[i] = unit_map(l, part->row_shift * width + part->col_shift, width, 1);
  }
  weft_status status = weft_lower_memory(l);
  if (status != WEFT_OK) return status;
  if (!body.node_count)
    return weft_error(l->diag, WEFT_INVALID, "assemble it in steps",
                      "%s '%s': choosing between its %u pieces nests too deeply", weft_graph_op_name(op->kind),
                      op->name, run->part_count);
  c->op = unit_generic(p, maps, run->part_count, body);
  return unit_write(p);
}

/** A result without elements still has its loads, of no tiles. */
static weft_status write_empty_copy(unit_plan *p, const weft_graph_op *op) {
  weft_copy_run run = {.end = p->plane.rows_t,
                       .parts = WEFT_NEW_ARRAY(p->l->scratch, weft_copy_part, op->in_count),
                       .part_count = op->in_count};
  if (!run.parts) return weft_error_memory(p->l->diag);
  for (uint32_t i = 0; i < op->in_count; i++) run.parts[i].value = op->ins[i];
  return write_run(p, op, &run, unit_operand_body(p));
}

/** What of the pieces lies in columns [begin, end) of the result; returns how many pieces are left. */
static uint32_t clip_pieces(const weft_copy_piece *pieces, uint32_t count, uint64_t begin, uint64_t end,
                            weft_copy_piece *clipped) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; i++) {
    weft_copy_piece piece = pieces[i];
    uint64_t left = weft_max_u64(piece.col0, begin), right = weft_min_u64(piece.col0 + piece.cols, end);
    if (left >= right) continue;
    piece.source_col += left - piece.col0;
    piece.col0 = left - begin;
    piece.cols = right - left;
    clipped[kept++] = piece;
  }
  return kept;
}

/** Writes the units of one strip of columns, which `p` says. */
static weft_status write_strip(unit_plan *p, const weft_graph_op *op, const weft_copy_piece *pieces, uint32_t count,
                               weft_copy_piece *clipped) {
  weft_lowering *l = p->l;
  weft_plane strip = p->plane;
  const uint64_t begin = p->col_t * WEFT_GRAPH_TILE;
  strip.cols = weft_min_u64(p->cols_t * WEFT_GRAPH_TILE, p->plane.cols - begin);
  strip.cols_t = p->cols_t;
  weft_copy_run *runs;
  uint32_t run_count, kept = clip_pieces(pieces, count, begin, begin + strip.cols, clipped);
  if (!weft_copy_plan(l->scratch, &strip, clipped, kept, &runs, &run_count)) return weft_error_memory(l->diag);
  weft_status status = WEFT_OK;
  for (uint32_t i = 0; i < run_count && status == WEFT_OK; i++)
    status = write_run(p, op, &runs[i], weft_copy_body(l->program->arena, &runs[i], strip.cols));
  return status;
}

weft_status unit_write_copy(unit_plan *p, const weft_graph_op *op) {
  weft_lowering *l = p->l;
  weft_copy_piece *pieces = WEFT_NEW_ARRAY(l->scratch, weft_copy_piece, op->in_count);
  weft_copy_piece *clipped = WEFT_NEW_ARRAY(l->scratch, weft_copy_piece, op->in_count);
  if (!pieces || !clipped) return weft_error_memory(l->diag);
  p->page_t = p->cols_t;
  if (!p->plane.rows || !p->plane.cols) return write_empty_copy(p, op);
  uint32_t piece_count;
  weft_status status = copy_pieces(p, op, pieces, &piece_count);
  for (; p->col_t < p->plane.cols_t && status == WEFT_OK; p->col_t += WEFT_STRIP_TILES) {
    p->page_t = p->cols_t = weft_min_u64(WEFT_STRIP_TILES, p->plane.cols_t - p->col_t);
    status = write_strip(p, op, pieces, piece_count, clipped);
  }
  return status;
}
