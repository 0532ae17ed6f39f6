/* Lowering: lower.c decides units and sections, unit*.c write their stages, lower_copy.c cuts shifted copies into
 * units. The spelling is that of docs/lowering.md. */
#ifndef WEFT_LOWER_PRIVATE_H
#define WEFT_LOWER_PRIVATE_H

#include "graph_private.h"

/** Most tiles of a page where a row may be computed in parts, and of a row that a copy moves at once. */
#define WEFT_PART_TILES 8
#define WEFT_STRIP_TILES WEFT_PART_TILES

/** A row of ops that ends in one stored value: a head and its epilogues. */
typedef struct weft_unit {
  uint32_t *ops; /**< in order; the last one's result is stored */
  uint32_t op_count;
  uint32_t level; /**< which part of its graph section it goes to */
} weft_unit;

/** The program being built. Arrays grow in the program's arena. */
typedef struct weft_lowering {
  const weft_graph *graph;
  weft_program *program;
  weft_arena *scratch; /**< freed at the end */
  weft_diag *diag;
  uint64_t tensor_capacity, stage_capacity, buffer_capacity, edge_capacity, section_capacity, item_capacity,
      trip_capacity;
  uint32_t *tensor_of; /**< by value; WEFT_NONE: lives in a buffer */
  bool *folded;        /**< by op: a slice that assembles take from its source */
  uint8_t *chained;    /**< by op: 1 + the operand that the stage before it leaves in an accumulator; 0: none */
} weft_lowering;

/** One rectangle of a shifted copy: rows x cols of the result at (row0, col0), taken from a source's plane. */
typedef struct weft_copy_piece {
  uint32_t value; /**< source */
  uint64_t row0, col0, rows, cols;
  uint64_t source_row, source_col;
} weft_copy_piece;

/** One operand of a copy unit: what to load and how result positions of a page map into it. */
typedef struct weft_copy_part {
  uint32_t value;
  uint64_t tile_row, tile_col, tiles; /**< the Load: first tile and tiles a row */
  uint64_t row_begin, row_end;        /**< rows of the page, within its 32 */
  uint64_t col_begin, col_end;        /**< columns of the result */
  int64_t row_shift, col_shift;       /**< page position (r, c) reads (r + row_shift, c + col_shift) */
} weft_copy_part;

/** Tile rows [begin, end) of the result in which the same parts stand at the same places; loads move down with them. */
typedef struct weft_copy_run {
  uint64_t begin, end;
  weft_copy_part *parts;
  uint32_t part_count;
} weft_copy_run;

/** Cuts a copy into runs (in `arena`); false without memory. Pieces without elements are not given. */
bool weft_copy_plan(weft_arena *arena, const weft_plane *result, const weft_copy_piece *pieces, uint32_t piece_count,
                    weft_copy_run **runs, uint32_t *run_count);
/** The tree of Selects that picks a part by position; operands are the parts. No nodes: it would be nested too deeply.
 */
weft_body weft_copy_body(weft_arena *arena, const weft_copy_run *run, uint64_t cols);

/** The value that an operand is loaded from: a folded slice's is its source. */
uint32_t weft_lower_operand(const weft_lowering *l, uint32_t value);
/** Appends the stages of a unit. The current section's spans are closed by the caller. */
weft_status weft_lower_unit(weft_lowering *l, const weft_unit *unit);
/** Out of memory anywhere in the two arenas: the message for it. */
weft_status weft_lower_memory(const weft_lowering *l);

#endif
