/* partition/internal.h: what the files of the partitioner share. Private to this folder.
 *
 * The plan of a graph is one weft_assignment an op: how its iteration factors lie on the mesh. Everything else follows
 * from it: a chip's block of an op, the block of each operand it needs, the block of each value it holds. */
#ifndef WEFT_PARTITION_INTERNAL_H
#define WEFT_PARTITION_INTERNAL_H

#include "weft/partition.h"

#define WEFT_NO_PIN UINT16_MAX
#define WEFT_NO_AXIS UINT32_MAX

/** How one factor is cut: over `axes`, most significant first. `segments` 0: equal parts of ceil size, the last ones
 * shorter or empty; else the borders of the extent's `segments` effective segments (format.h), dealt out evenly. */
typedef struct weft_cut {
  uint8_t axes[WEFT_MAX_AXES];
  uint8_t axis_count;
  uint32_t segments;
} weft_cut;

/** Where an op runs: per factor its cut, per axis the only coordinate it runs at (WEFT_NO_PIN: at all of them). Axes
 * that neither cut nor pin replicate the op. */
typedef struct weft_assignment {
  weft_cut cuts[WEFT_MAX_FACTORS];
  uint16_t pins[WEFT_MAX_AXES];
  uint32_t decided; /**< bit set of axes that propagation and search leave alone */
} weft_assignment;

/** Who decided: texts for messages and for the explanation, NULL where nobody did. */
typedef struct weft_claims {
  const char *factor_by[WEFT_MAX_FACTORS]; /**< the factor's axes are exactly those of its cut */
  const char *axis_by[WEFT_MAX_AXES];      /**< who gave the axis its place in this op */
} weft_claims;

typedef struct weft_use {
  uint32_t op, operand;
} weft_use;

/** One partitioning: the question, the plan so far, and scratch that lives as long. */
typedef struct weft_partitioner {
  weft_arena *arena;
  const weft_graph *graph;
  const weft_partition_options *options;
  const weft_mesh *mesh;
  const weft_target *target;
  weft_diag *diag;
  uint32_t chips;
  uint32_t strides[WEFT_MAX_AXES]; /**< chip number of one step along each axis */
  uint32_t all_axes;               /**< bit set */
  weft_assignment *plan;           /**< by op */
  weft_claims *claims;             /**< by op */
  uint64_t *use_begin;             /**< by value: its uses are uses[use_begin[v] .. use_begin[v + 1]) */
  weft_use *uses;
} weft_partitioner;

/** A block of a value or of an iteration space: [begin, end) per dimension. */
typedef struct weft_block {
  uint32_t rank;
  uint64_t begin[WEFT_MAX_RANK], end[WEFT_MAX_RANK];
} weft_block;

/* ---- mesh.c, cut.c ---------------------------------------------------------------------------------------------- */

/** The axis called so; WEFT_NO_AXIS when there is none. */
uint32_t weft_mesh_axis(const weft_mesh *mesh, const char *name, size_t length);
/** "x=2, y=4" for messages. */
const char *weft_mesh_text(const weft_mesh *mesh, weft_arena *arena);

/** Parts a cut makes: the product of its axes' extents. */
uint32_t weft_cut_parts(const weft_partitioner *p, const weft_cut *cut);
/** The part that a chip holds. */
uint32_t weft_cut_part(const weft_partitioner *p, const weft_cut *cut, uint32_t chip);
/** The chip nearest to `chip` that holds `part`: the same coordinates except along the cut's axes. */
uint32_t weft_cut_chip(const weft_partitioner *p, const weft_cut *cut, uint32_t part, uint32_t chip);
/** [begin, end) of a part of `extent` elements cut into `parts`. Returns whether the part is there at all: it has
 * elements, or it is the first part of an extent 0. */
bool weft_cut_range(const weft_cut *cut, uint64_t extent, uint32_t parts, uint32_t part, uint64_t *begin,
                    uint64_t *end);
/** The most elements any part has. */
uint64_t weft_cut_largest(const weft_cut *cut, uint64_t extent, uint32_t parts);
/** The part that holds element `index` (index < extent). */
uint32_t weft_cut_part_of(const weft_cut *cut, uint64_t extent, uint32_t parts, uint64_t index);
bool weft_cut_equal(const weft_cut *a, const weft_cut *b);

bool weft_assignment_uses(const weft_assignment *assignment, uint32_t axis);
bool weft_assignment_equal(const weft_assignment *a, const weft_assignment *b);
/** Whether a chip is at all the coordinates the op is pinned to. */
bool weft_assignment_pinned_here(const weft_partitioner *p, const weft_assignment *assignment, uint32_t chip);

/** The reduce factor of an op; WEFT_NO_FACTOR when it has none. */
uint8_t weft_reduce_factor(const weft_graph_op *op);
/** Segments that a cut of the op's reduce factor follows: for integers, where any border gives the same bits, the
 * finest. */
uint32_t weft_reduce_segments(const weft_graph *graph, const weft_graph_op *op);
/** The format that partial results of the op travel in. */
weft_format weft_partial_format(const weft_graph *graph, const weft_graph_op *op);
/** Whether the op folds one long float chain, which cannot be cut without changing bits. */
bool weft_reduce_is_chain(const weft_graph *graph, const weft_graph_op *op);
/** The factor's cut when it is the reduce factor and cut into more than one part; NULL else. */
const weft_cut *weft_reduce_cut(const weft_partitioner *p, const weft_graph_op *op, const weft_assignment *assignment);

/* ---- blocks.c, positions.c
 * ----------------------------------------------------------------------------------------------------- */

/** A chip's block of an operand (the whole of its part of the reduce factor). */
void weft_operand_block(const weft_partitioner *p, const weft_graph_op *op, const weft_assignment *assignment,
                        uint32_t operand, uint32_t chip, weft_block *block);
/** A chip's block of the op's result, folded. Returns whether the op runs there. */
bool weft_result_block(const weft_partitioner *p, const weft_graph_op *op, const weft_assignment *assignment,
                       uint32_t chip, weft_block *block);
bool weft_block_equal(const weft_block *a, const weft_block *b);
bool weft_block_inside(const weft_block *inner, const weft_block *outer);
uint64_t weft_block_volume(const weft_block *block);
/** Elements that two blocks share. */
uint64_t weft_block_shared(const weft_block *a, const weft_block *b);
/** The whole of a value. */
void weft_block_whole(const weft_value *value, weft_block *block);
/** Grows a block of a value to one that is a rectangle of the value's plane. */
void weft_block_to_plane(const weft_value *value, weft_block *block);

/** Whether a factor cannot be cut because the op's body compares positions along it in a way that cannot be moved. */
bool weft_factor_is_fixed(const weft_graph *graph, const weft_graph_op *op, uint8_t factor);
/** A body with its position predicates moved to a block of the result. `nodes` is NULL without memory. */
weft_body weft_body_at(weft_arena *arena, const weft_body *body, const weft_block *block);

/* ---- claims.c, preset.c, propagate.c
 * ---------------------------------------------------------------------------------- */

/** Gives factor `factor` of op `op` the axis, on behalf of `by`; refuses contradictions with both named. */
weft_status weft_claim_axis(weft_partitioner *p, uint32_t op, uint8_t factor, uint32_t axis, const char *by);
/** Takes over the --shard requests. */
weft_status weft_claim_requests(weft_partitioner *p);
/** Takes over the --split preset. */
weft_status weft_claim_presets(weft_partitioner *p);
/** Spreads what is decided over the graph, to a fixed point: forward in op order, then back, and again. */
void weft_propagate(weft_partitioner *p);
/** Extends the cuts of one op by those of its produced operands. Returns whether anything changed. `plan` holds the
 * assignments by op; only those of producers are read, and NULL is one not known yet. */
bool weft_propagate_forward(const weft_partitioner *p, uint32_t op, const weft_assignment *const *plan,
                            weft_assignment *assignment);

/** Whether both operands of a product are made at one place: then it is made there, too, unless a claim says otherwise.
 */
bool weft_product_is_pinned(const weft_partitioner *p, uint32_t op, const weft_assignment *const *plan);

/* ---- cost.c, search.c, explain.c
 * ---------------------------------------------------------------------------------------- */

/** Predicted seconds of one op under an assignment, and bytes it adds to the fullest chip. */
typedef struct weft_cost {
  double compute, gather, reduce;
  double bytes;
} weft_cost;
static inline double weft_cost_seconds(const weft_cost *cost) { return cost->compute + cost->gather + cost->reduce; }

/** `plan` as in weft_propagate_forward. */
void weft_cost_of(const weft_partitioner *p, uint32_t op, const weft_assignment *const *plan,
                  const weft_assignment *assignment, weft_cost *cost);
/** Whether the op's assignment is a choice (else it follows its operands). */
bool weft_is_choice(const weft_partitioner *p, uint32_t op);
/** The alternatives for a choice: `base`, and each `free` axis added to a factor; `fixed` leaves claimed factors alone.
 * In the partitioner's arena; returns their count, 0 without memory. */
uint64_t weft_alternatives(const weft_partitioner *p, uint32_t op, const weft_assignment *base, uint32_t free,
                           bool fixed, weft_assignment **all);
/** What an op that follows gets: its claims, pins and its operands' cuts. */
void weft_follow(const weft_partitioner *p, uint32_t op, const weft_assignment *const *plan,
                 weft_assignment *assignment);
/** Decides what is still open: `plans` gets up to `limit` plans (assignments by op), cheapest first, those within the
 * estimated memory of a chip before all others. p->plan becomes the first. */
weft_status weft_search(weft_partitioner *p, uint64_t limit, weft_assignment **plans, uint64_t *plan_count);
/** Appends each tensor's layout, cost and runner-up. */
void weft_explain(weft_partitioner *p, weft_text *report);

/* ---- demand.c, build.c
 * --------------------------------------------------------------------------------------------------- */

/** Makes the machine graph of p->plan. */
weft_status weft_build_machine(weft_partitioner *p, weft_graph **machine);

#endif
