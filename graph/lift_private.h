/* Lifting in five files: lift.c walks sections and orders stages, lift_pattern.c says how loads and stores walk their
 * tensors, lift_stage.c makes an op of a compute stage, lift_index.c of one that moves by index or transposes,
 * lift_copy.c gathers the rectangles of shifted copies. */
#ifndef WEFT_LIFT_PRIVATE_H
#define WEFT_LIFT_PRIVATE_H

#include "graph_private.h"

/** A pattern whose address depends on nothing but sub-blocks and K blocks (items are at coord (0, 0)). */
typedef struct weft_walk {
  uint64_t base, sub_h, sub_w, k; /**< strides along variables 2, 3 and 4 */
  uint64_t block_h, block_w, stride_w, stride_h;
} weft_walk;
/** False when the address depends on anything else. */
bool weft_walk_of(const weft_access_pattern *pattern, weft_walk *walk);

/** How a unit's Store walks its tensor: sub-blocks of block_h x block_w tiles, `sub_rows` x `sub_cols` of them, from
 * tile (row_t, col_t) on. */
typedef struct weft_geometry {
  uint32_t store; /**< stage */
  uint32_t tensor;
  weft_plane plane;
  uint64_t row_t, col_t, sub_rows, sub_cols, block_h, block_w;
} weft_geometry;

/** Elements of a page of the unit along its columns. */
static inline uint64_t weft_page_width(const weft_geometry *g) { return g->block_h * g->block_w * WEFT_GRAPH_TILE; }
/** Whether the unit stores all of its tensor. */
static inline bool weft_stores_whole(const weft_geometry *g) {
  return g->block_h * g->sub_rows == g->plane.rows_t && g->block_w * g->sub_cols == g->plane.cols_t;
}
/** Whether the walk visits the tiles of an equally large tensor in the Store's order. */
bool weft_walks_like(const weft_geometry *g, const weft_walk *walk);
/** Whether the map is base 0, `row` along 5 and `col` along 6 (0: the term is absent). */
bool weft_map_is(const weft_elem_access *map, int64_t base, int64_t row, int64_t col);

/** An operand of the op being lifted. */
typedef struct weft_lift_source {
  uint32_t value;
  const weft_stage *load; /**< NULL: left by a compute */
  weft_walk walk;
  const weft_tensor *tensor;
} weft_lift_source;

typedef struct weft_copy_group weft_copy_group;

typedef struct weft_lift {
  const weft_program *program;
  weft_graph *graph;
  weft_arena *scratch;
  weft_diag *diag;
  uint32_t *value_of_buffer; /**< by buffer: what the compute that fills it gives */
  uint32_t *writer, *reader; /**< by buffer: stages */
  weft_geometry **geometry;  /**< by stage: of the Store it leads to */
  uint32_t section;          /**< of the graph */
  /** By tensor: the value that stands for it now, and the one that a state is after the section at hand (WEFT_NONE: the
   * same). */
  uint32_t *current, *next;
  weft_copy_group *copies; /**< rectangles of the section's shifted copies */
  uint64_t copy_count, copy_capacity;
} weft_lift;

/** Adds "stage 'x' cannot be lifted: ..." and returns WEFT_INVALID. */
weft_status weft_lift_refuse(weft_lift *l, uint32_t stage, const char *format, ...) WEFT_PRINTF(3, 4);

/** The geometry of a Store, or a refusal. */
weft_status weft_lift_geometry(weft_lift *l, uint32_t store, weft_geometry *g);
/** The Load that fills a buffer; NULL when a compute does. */
const weft_stage *weft_lift_load(const weft_lift *l, uint32_t buffer);
/** What fills a buffer: a Load that walks a tensor affinely, or a compute that is lifted already. */
weft_status weft_lift_find(weft_lift *l, uint32_t stage, uint32_t buffer, weft_lift_source *s);
/** Appends the op with the stage's name and result; what is wrong with it names the stage already. */
weft_status weft_lift_append(weft_lift *l, uint32_t stage, weft_graph_op *op);
/** The value that a state is once its Store has run; WEFT_NONE after an error. */
uint32_t weft_lift_next_state(weft_lift *l, uint32_t tensor);
/** Whether a Generic reads or writes at places that data decide; gathers and updates of docs/lowering.md. */
bool weft_lift_is_indexed(const weft_lift *l, uint32_t stage);
weft_status weft_lift_indexed(weft_lift *l, uint32_t stage);
/** Whether the compute only brings an index to the front for a Load or a Store: part of what reads it. */
bool weft_lift_is_index(const weft_lift *l, uint32_t stage);
bool weft_lift_is_transpose(const weft_lift *l, uint32_t stage);
weft_status weft_lift_transpose(weft_lift *l, uint32_t stage);
/** Makes the op of a compute stage whose inputs are all lifted. */
weft_status weft_lift_compute(weft_lift *l, uint32_t stage);

/** Whether a Generic only moves: a body of operands and selections by position. */
bool weft_generic_is_copy(const weft_generic *generic);
/** Adds the rectangles of a copy stage to the section's. */
weft_status weft_lift_copy(weft_lift *l, uint32_t stage);
/** Makes slices and assembles of the rectangles gathered. */
weft_status weft_lift_copies(weft_lift *l);
/** The chip that a compute stage runs on: that of the buffer it fills. */
uint16_t weft_lift_chip(const weft_lift *l, uint32_t stage);

#endif
