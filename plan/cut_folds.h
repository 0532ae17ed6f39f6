/* Private to the cutting of folds: cut_folds.c decides what is cut and how, cut_folds_steps.c makes the steps of a
 * fold, cut_folds_order.c puts them where they belong. */
#ifndef WEFT_PLAN_CUT_FOLDS_H
#define WEFT_PLAN_CUT_FOLDS_H

#include "internal.h"

/** What is appended: new stages and buffers have ids from the program's counts on until all are put in order. */
typedef struct cutter {
  weft_program *program;
  weft_arena *scratch;
  plan_ports *ports;
  weft_stage *stages;
  weft_buffer *buffers;
  weft_edge *edges;
  uint64_t stage_count, buffer_count, edge_count;
  uint64_t stage_capacity, buffer_capacity, edge_capacity;
  bool failed;
} cutter;

/** A unit whose fold is cut. */
typedef struct fold {
  const plan_unit *unit;
  uint32_t stage; /**< of the fold */
  uint64_t cols, cols_t;
  uint64_t block, blocks, tail; /**< tiles of a block, blocks, tiles of what is left: at least 1 */
  bool integer;                 /**< the body is evaluated in integers */
  bool segmented;               /**< a float sum, whose segments no block may split */
  weft_pool pool;
} fold;

/** What takes the place of a unit that was cut, in the appended parts. */
typedef struct replacement {
  bool cut;
  uint32_t fold;     /**< stage */
  weft_stage result; /**< it, changed */
  weft_span stages, buffers, edges;
} replacement;

typedef struct order {
  cutter *c;
  const plan_units *units;
  replacement *cuts;                /**< by unit */
  uint32_t *stage_map, *buffer_map; /**< old and appended ids to new ones */
  weft_stage *stages;
  weft_buffer *buffers;
  weft_edge *edges;
  uint64_t stage_count, buffer_count, edge_count;
} order;

/** A copy of an array in the program's arena; NULL, and `failed` set, without memory. */
void *cut_copy(cutter *c, const void *items, uint64_t count, size_t size);
/** Whether a map is (stride along the row, 1 or 0 along the column); `along` tells which. */
bool cut_is_row_map(const weft_elem_access *map, bool *along);
/** Whether the fold carries an index beside its value. */
bool cut_carries_index(const fold *f);
weft_format cut_carry_format(const cutter *c, const fold *f);
/** Appends the stages, buffers and edges of a cut fold; the fold's own stage, changed, is put in `result`. */
bool cut_fold(cutter *c, const fold *f, weft_stage *result);
/** Puts the appended parts where they belong. */
weft_status cut_put_in_order(order *o, weft_diag *diag);

#endif
