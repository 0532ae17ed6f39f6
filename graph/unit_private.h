/* Units while they are lowered: unit.c makes their parts, unit_write.c writes them down, unit_heads.c spells products,
 * pointwise bodies, folds over chips and epilogues, unit_reduce.c folds of rows, unit_index.c what moves by index,
 * unit_copy.c shifted copies. The spelling is that of
 * docs/lowering.md. */
#ifndef WEFT_UNIT_PRIVATE_H
#define WEFT_UNIT_PRIVATE_H

#include "lower_private.h"

/** The data-dependent term of an address: ids are loaded as `pattern` says; element (row, 0) of the page, row by row,
 * is brought to the front of a page of its own by `body`, unless there is none and the page is used as it is. */
typedef struct unit_index {
  uint32_t value;
  weft_access_pattern pattern;
  uint64_t row;
  const weft_body *body;
  uint64_t tile_stride, last; /**< of the indexed tensor: tiles a row (column) of tiles, the greatest index */
} unit_index;

/** A Load that some compute of the unit reads. */
typedef struct unit_load {
  uint32_t value;
  weft_access_pattern pattern;
  uint64_t num_blocks, depth;
  const unit_index *index; /**< NULL: the address is affine */
} unit_load;

/** One input of a compute: a load, or what the compute before it left. */
typedef struct unit_input {
  bool previous;
  unit_load load;
} unit_input;

typedef struct unit_compute {
  const char *name, *out_name;
  weft_format out_dtype; /**< of the value it leaves */
  bool all_reduce;
  weft_pool pool;
  weft_compute_op op; /**< a bias buffer is filled in when it is written */
  unit_input *ins;
  uint32_t in_count;
} unit_compute;

/** A unit ready to be written. */
typedef struct unit_plan {
  weft_lowering *l;
  uint16_t chip;
  uint32_t out;           /**< the value stored */
  weft_plane plane;       /**< of it */
  uint64_t row_t, rows_t; /**< tile rows it covers */
  uint64_t col_t, cols_t; /**< tile columns: all of them, but for copies */
  bool rows;              /**< a row unit: sub-blocks are tile rows or parts of them; else single tiles */
  uint64_t page_t;        /**< tiles of a sub-block, which is a page of the result */
  /** An update: the Store's pattern and where it goes; the unit covers `rows_t` rows of `cols_t` tiles. */
  const unit_index *store_index;
  weft_access_pattern store_pattern;
  unit_compute *computes; /**< room for every op and a copy */
  uint32_t compute_count;
} unit_plan;

/* ---- parts: unit.c ---- */

weft_tile_addr unit_address(weft_lowering *l, uint64_t base, const weft_step *steps, uint64_t count);
weft_access_pattern unit_block(weft_tile_addr origin, uint64_t h, uint64_t w, uint64_t stride_h);
/** Base and strides along the row and the column of a Generic; a stride of 0 leaves the term out. */
weft_elem_access unit_map(weft_lowering *l, int64_t base, int64_t row, int64_t col);
/** Tiles of a part of a row of so many: the greatest divisor that is at most WEFT_PART_TILES. */
uint64_t unit_part(uint64_t tiles);
/** Elements of a page of the result along a row. */
int64_t unit_page_width(const unit_plan *p);
/** How the result is walked: also the pattern of an operand that is walked tile for tile with it. */
weft_access_pattern unit_result_pattern(const unit_plan *p);
unit_input unit_loaded(uint32_t value, weft_access_pattern pattern);
unit_input unit_previous(void);
/** The next compute of the unit; its inputs are the caller's to fill. NULL without memory. */
unit_compute *unit_add_compute(unit_plan *p, const char *name, const char *out_name, weft_format dtype,
                               uint32_t in_count);
/** A Generic over the page, its input maps the caller's. */
weft_compute_op unit_generic(unit_plan *p, weft_elem_access *maps, uint64_t in_count, weft_body body);
/** A Generic whose operands all have the result's extents. */
weft_compute_op unit_identity_generic(unit_plan *p, uint64_t in_count, weft_body body);
weft_body unit_operand_body(unit_plan *p);
/** The load and the map of an operand of a body over `space`, which is the unit's plane or the one it folds, by how it
 * is broadcast there; false when it is along some folded rows only. */
bool unit_broadcast_operand(unit_plan *p, const weft_plane *space, uint32_t value, unit_input *in,
                            weft_elem_access *access);
/** "'x' [2, 1, 3] is broadcast along some of the leading dimensions...". */
weft_status unit_refuse_broadcast(unit_plan *p, const weft_graph_op *op, uint32_t operand);

/* ---- heads and epilogues: unit_heads.c, unit_reduce.c, unit_copy.c ---- */

weft_status unit_plan_head(unit_plan *p, const weft_graph_op *op);
weft_status unit_plan_epilogue(unit_plan *p, const weft_graph_op *op, uint32_t chained);
weft_status unit_plan_reduce(unit_plan *p, const weft_graph_op *op);
weft_status unit_plan_transpose(unit_plan *p, const weft_graph_op *op);
weft_status unit_plan_gather(unit_plan *p, const weft_graph_op *op);
weft_status unit_plan_update(unit_plan *p, const weft_graph_op *op);
/** Plans and writes a slice or an assemble, which may need several units. */
weft_status unit_write_copy(unit_plan *p, const weft_graph_op *op);

/* ---- writing: unit_write.c ---- */

/** Appends the stages, buffers and edges of the unit. */
weft_status unit_write(unit_plan *p);

#endif
