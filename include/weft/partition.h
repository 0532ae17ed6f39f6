/* weft/partition.h: meshes, shardings, the partitioner over op graphs, the split of a whole-machine program.
 *
 * Source: design 3-partition-codegen-runtime.md "Sharding"; factors and propagation after Shardy (openxla/shardy, sdy
 * propagation docs) and GSPMD (Xu et al. 2021). */
#ifndef WEFT_PARTITION_H
#define WEFT_PARTITION_H

#include "weft/graph.h"
#include "weft/target.h"

#define WEFT_MAX_AXES 8
#define WEFT_MAX_CHIPS 65535

/** Named axes, chips numbered row-major: the last axis varies fastest. */
typedef struct weft_mesh {
  uint32_t axis_count;
  char names[WEFT_MAX_AXES][32];
  uint32_t extents[WEFT_MAX_AXES];
} weft_mesh;

/** Reads "x=2,y=4". Errors: empty, repeated or malformed axes, extent 0, more than WEFT_MAX_CHIPS chips. */
weft_status weft_mesh_parse(const char *text, weft_mesh *mesh, weft_diag *diag);
uint32_t weft_mesh_chips(const weft_mesh *mesh);
/** The coordinate of a chip along an axis. */
uint32_t weft_mesh_coordinate(const weft_mesh *mesh, uint32_t chip, uint32_t axis);

/** How a value lies on the mesh: per dimension an ordered list of axes (most significant first); axes in `partial` hold
 * parts still to be folded; all other axes replicate. */
typedef struct weft_sharding {
  uint32_t rank;
  uint8_t axes[WEFT_MAX_RANK][WEFT_MAX_AXES];
  uint8_t axis_counts[WEFT_MAX_RANK];
  uint32_t partial_axes; /**< bit set */
  weft_pool pool;
} weft_sharding;

/** One --shard argument: a tensor's name and how its dimensions lie: "rows@x,cols@y" (a matrix), "0@x,1@y" by
 * dimension, "cols@x+y" over two axes, the first more significant, "replicated". Dimensions not named stay whole. */
typedef struct weft_shard_request {
  const char *tensor;
  const char *spec;
} weft_shard_request;

typedef struct weft_partition_options {
  weft_mesh mesh;
  const weft_shard_request *shards; /**< bind */
  uint64_t shard_count;
  /** NULL, a preset for the only axis ("columns", "rows", "batch", "column-row", "pipeline"), or per axis
   * "x=batch,y=columns". columns: every layer's N; rows: every layer's K; batch: M; column-row: N and K in turn;
   * pipeline: layers over chips. */
  const char *split;
  bool explain;
} weft_partition_options;

/** Partitions a one-chip graph over the mesh: bindings, propagation to a fixed point, search where nothing is said,
 * resharding and all-reduce insertion. The result is a machine graph. With `explain`, each tensor's choice, its cost
 * and the runner-up are appended to `report` (may be NULL). Any number of chips, extents not divisible by it; chips
 * with nothing to do are legal. Errors: contradictions with both places named; unknown tensors, axes, presets (listing
 * what exists). */
weft_status weft_partition(const weft_graph *graph, const weft_partition_options *options, const weft_target *target,
                           weft_graph **machine, weft_text *report, weft_diag *diag);

/** Splits a whole-machine Template into one Template a chip (docs/split.md): local tensors, the stages of its sites,
 * link points with peers at section boundaries; loads of other chips' tensors become loads of Input tensors that a link
 * fills; an AllReduce keeps its stage on each reading chip, its foreign operands received (the generator emits the pair
 * as one transport call). A chip without work gives a program without stages. `machine` has been validated. `programs`
 * has `chips` entries, each freed by the caller; all NULL after an error. Errors: later phases, and what chips share
 * other than tensors, by name. */
weft_status weft_split(const weft_program *machine, uint32_t chips, weft_program **programs, weft_diag *diag);

/** Checks the split as a whole: sends and receives match in tensor, shape, dtype and order on both sides of every pair,
 * what is sent has been stored, and the graph with two nodes a link point (its sends, then its receives; program order
 * on a chip; a send before its receive) has no cycle: the message shows the cycle. Programs without peers are paired by
 * tensor names. */
weft_status weft_split_check(const weft_program *const *programs, uint32_t chips, weft_diag *diag);

/** Chips a program's sites and tensors name: 1 more than the greatest. */
uint32_t weft_program_chips(const weft_program *program);

#endif
