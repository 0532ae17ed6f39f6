/* What the files of the op graph share: shapes, bodies, ranges, checks of one op. */
#ifndef WEFT_GRAPH_PRIVATE_H
#define WEFT_GRAPH_PRIVATE_H

#include "weft/graph.h"

#define WEFT_GRAPH_TILE 32
#define WEFT_MAX_NODES 64 /* operands of an all_reduce: WEFT_GRAPH_OPS */
/** Levels of operands in a body: the dump's bound of 127 nested arrays and objects, two a node. */
#define WEFT_BODY_MAX_DEPTH 50
/** Whole numbers of a larger magnitude have no exact constant in a body, which holds doubles. */
#define WEFT_EXACT_CONSTANT ((int64_t)1 << 53)

/** Whole numbers below this one are exact in fp32. */
#define WEFT_EXACT_FLOAT ((int64_t)1 << 24)

/** Whether the value is there before the first op: an input, a parameter, a state as the step finds it. */
static inline bool weft_value_is_given(const weft_value *value) {
  return value->role == WEFT_ROLE_INPUT || value->role == WEFT_ROLE_PARAM ||
         (value->role == WEFT_ROLE_STATE && !value->updates);
}

/** Marks the graph as failed, so that weft_graph_check refuses it, and adds an error. */
weft_status weft_graph_error(weft_graph *graph, const char *hint, const char *format, ...) WEFT_PRINTF(3, 4);

/** The status of a failed graph: what a builder call's WEFT_NONE stands for. */
weft_status weft_graph_failure(const weft_graph *graph);

/* ---- shapes -------------------------------------------------------------------------------------------------------
 */

/** Rows, columns and tiles of a value seen as a plane. */
typedef struct weft_plane {
  uint64_t rows, cols, rows_t, cols_t;
} weft_plane;
weft_plane weft_graph_plane(uint32_t rank, const uint64_t *extents);
weft_plane weft_value_plane(const weft_value *value);
/** Product of the extents, which weft_value_check has bounded. */
uint64_t weft_value_elements(const weft_value *value);
/** Whether planes of these extents can be addressed: every size in bytes, padded to whole tiles, fits 62 bits. */
bool weft_extents_fit(uint32_t rank, const uint64_t *extents);
bool weft_same_extents(const weft_value *a, const weft_value *b);
/** "[2, 3]" for messages. */
typedef struct weft_extents_text {
  char text[WEFT_MAX_RANK * 22 + 4];
} weft_extents_text;
weft_extents_text weft_extents_print(uint32_t rank, const uint64_t *extents);
/** Whether the block at `starts` of `extents` inside a value of `whole` is a rectangle of its plane, and where it
 * begins. */
bool weft_block_in_plane(uint32_t rank, const uint64_t *whole, const uint64_t *starts, const uint64_t *extents,
                         uint64_t *row0, uint64_t *col0);

/* ---- bodies -------------------------------------------------------------------------------------------------------
 */

/** Checks a body over `in_count` operands: a tree in post-order, operands in range, depth bounded. NULL when it is
 * fine, else what is wrong. */
const char *weft_body_check(const weft_body *body, uint32_t in_count);
weft_body weft_body_copy(weft_arena *arena, const weft_body *body);
bool weft_body_equal(const weft_body *a, const weft_body *b);
bool weft_body_has(const weft_body *body, weft_body_kind kind);
/** Whether the body is integer arithmetic throughout: no unary, no Div, every constant a whole number below 2^53. */
bool weft_body_integral(const weft_body *body);
/** The integral body of a clamp. */
weft_body weft_body_clamp(weft_arena *arena, int64_t low, int64_t high);
/** Whether a body is what weft_body_clamp makes. */
bool weft_body_is_clamp(const weft_body *body, int64_t *low, int64_t *high);
/** The tree of `pool` over `of` leaves that splits at the largest power of two below, node i standing for `counts[i]`
 * of them. The nodes are complete subtrees (weft_nodes_are_subtrees). */
weft_body weft_body_tree(weft_arena *arena, weft_pool pool, const uint32_t *counts, uint32_t node_count);
/** Whether runs of `counts` leaves are complete subtrees of that tree. */
bool weft_nodes_are_subtrees(const uint32_t *counts, uint32_t node_count);
/** The bodies of a gather whose pages have `rows` rows: of the Generics that make an index of an id, and of the one
 * that picks rows. False without memory. */
bool weft_gather_bodies(weft_arena *arena, const weft_graph *graph, const weft_graph_op *op, uint64_t rows,
                        weft_body *index, weft_body *pick);
/** Whether a pointwise op or the body of a reduce is computed in 64-bit integers. */
bool weft_op_is_integer(const weft_graph *graph, const weft_graph_op *op);

/* ---- ops ----------------------------------------------------------------------------------------------------------
 */

/** Fills factors and maps from kind and extents. */
bool weft_graph_factors(weft_graph *graph, weft_graph_op *op);
/** Elements that a reduce folds into one: the last extent of its operands, broadcast. */
uint64_t weft_reduce_extent(const weft_graph *graph, const weft_graph_op *op);
/** Checks one value, one op: extents, formats, attributes; everything that does not depend on who else reads. `place`
 * names the op in messages. */
weft_status weft_value_check(const weft_graph *graph, uint32_t id, weft_diag *diag);
weft_status weft_op_check(const weft_graph *graph, const weft_graph_op *op, weft_diag *diag);
/** Two pieces of an assemble that overlap (first != second), or none, in n log n steps unless there are some. */
weft_status weft_pieces_overlap(const weft_graph *graph, const weft_graph_op *op, uint32_t *first, uint32_t *second,
                                weft_diag *diag);
/** The least and greatest value an integer value can have, from declared ranges, through the ops before it; at worst
 * its format's. */
weft_range weft_value_range(const weft_graph *graph, uint32_t value);

/** A deep copy with its own arena. */
weft_graph *weft_graph_clone(const weft_graph *graph, weft_diag *diag);

#endif
