/* weft/ir.h: the spatial program: tensors, stages, buffers, edges, sections, plan, placement, memory, schedule.
 *
 * Semantics: seeds/spatial-ir (every type and invariant), design 2-spatial-program.md (what it leaves open, our
 * optional fields). All arrays of a program live in its arena and are dense: entry i of `stages` is stage i. Ids are 32
 * bits, sizes
 * 64. Strings are NUL-terminated UTF-8; a U+0000 inside one ("\u0000" in a dump) is held as the two bytes C0 80, which
 * UTF-8 never has, and is written back as "\u0000".
 *
 * Interchange is the neutral dump (docs/neutral-dump.md): JSON that is read and written back byte for byte. Fields
 * marked "ours" are optional, left out at their default, and refused by `weft fmt --portable`. */
#ifndef WEFT_IR_H
#define WEFT_IR_H

#include "weft/base.h"
#include "weft/format.h"

#define WEFT_NONE UINT32_MAX /**< an absent id (an option that is null) */

/** A foreign dump may give an optional id the value 4294967295, which WEFT_NONE cannot tell from null. Structs with
 * optional ids have a set of these bits, `max_ids`: the bit says that the field, equal to WEFT_NONE, is that id and not
 * null. Such an id names nothing, so only the reader, the writer and the validator look; weft's own programs have 0. */
enum {
  WEFT_MAX_ITEM = 1,
  WEFT_MAX_ORIGIN = 2,
  WEFT_MAX_MULTICAST = 4,
  WEFT_MAX_ALIAS = 8,
  WEFT_MAX_INTERM = 16,
  WEFT_MAX_OUTPUT = 32,
  WEFT_MAX_TRIP = 64,
  WEFT_MAX_RELOAD = 128,
  WEFT_MAX_AFTER = 1, /**< a link point's `after`: the section 2^64-1 */
};

/* ---- enumerations: one X-macro each: C identifier, dump name; declaration order is the dump's set order --------- */

#define WEFT_HANDSHAKE_KINDS(ROW)                                                                                      \
  ROW(FIFO, "Fifo")                                                                                                    \
  ROW(SEMAPHORE, "Semaphore")                                                                                          \
  ROW(BARRIER, "Barrier")                                                                                              \
  ROW(VALID_READY, "ValidReady")                                                                                       \
  ROW(TOKEN, "Token")
#define WEFT_INTERCONNECTS(ROW)                                                                                        \
  ROW(POINT_TO_POINT, "PointToPoint")                                                                                  \
  ROW(ROW_MULTICAST, "RowMulticast")                                                                                   \
  ROW(COL_MULTICAST, "ColMulticast")                                                                                   \
  ROW(CHIP_LINK, "ChipLink")
#define WEFT_DATAFLOW_POLICIES(ROW)                                                                                    \
  ROW(OUTPUT_STATIONARY, "OutputStationary")                                                                           \
  ROW(WEIGHT_STATIONARY, "WeightStationary")                                                                           \
  ROW(INPUT_STATIONARY, "InputStationary")
#define WEFT_TENSOR_ROLES(ROW)                                                                                         \
  ROW(INPUT, "Input")                                                                                                  \
  ROW(OUTPUT, "Output")                                                                                                \
  ROW(PARAM, "Param")                                                                                                  \
  ROW(ACTIVATION, "Activation")                                                                                        \
  ROW(STATE, "State")
#define WEFT_TENSOR_SPACES(ROW)                                                                                        \
  ROW(DRAM, "Dram")                                                                                                    \
  ROW(HBM, "Hbm")                                                                                                      \
  ROW(SRAM, "Sram")
#define WEFT_LAYOUTS(ROW) ROW(ROW_MAJOR_TILES, "RowMajorTiles")
#define WEFT_ACC_POLICIES(ROW)                                                                                         \
  ROW(I32, "I32")                                                                                                      \
  ROW(I64, "I64")                                                                                                      \
  ROW(F32, "F32")
#define WEFT_NUMERICS_POLICIES(ROW)                                                                                    \
  ROW(EXACT, "Exact")                                                                                                  \
  ROW(ALLOW_SPILL_ROUNDING, "AllowSpillRounding")
#define WEFT_GRANULARITIES(ROW)                                                                                        \
  ROW(PER_TILE, "PerTile")                                                                                             \
  ROW(PER_SUB_BLOCK, "PerSubBlock")
/** MIN, AND, OR are ours. */
#define WEFT_POOLS(ROW)                                                                                                \
  ROW(SUM, "Sum")                                                                                                      \
  ROW(MAX, "Max")                                                                                                      \
  ROW(ARG_MAX, "ArgMax")                                                                                               \
  ROW(MIN, "Min")                                                                                                      \
  ROW(AND, "And")                                                                                                      \
  ROW(OR, "Or")
#define WEFT_SITE_ROLES(ROW)                                                                                           \
  ROW(COMPUTE, "Compute")                                                                                              \
  ROW(MOVEMENT, "Movement")
#define WEFT_MEM_SPACES(ROW)                                                                                           \
  ROW(LOCAL, "Local")                                                                                                  \
  ROW(ACC, "Acc")                                                                                                      \
  ROW(PMU, "Pmu")
#define WEFT_ENGINE_PACKINGS(ROW)                                                                                      \
  ROW(LOADS_TOGETHER, "LoadsTogether")                                                                                 \
  ROW(OPERAND_WITH_STORE, "OperandWithStore")
#define WEFT_DIRECTIONS(ENTRY) ENTRY(ROW, "Row") ENTRY(COL, "Col")
#define WEFT_OPERANDS(ROW)                                                                                             \
  ROW(A, "A")                                                                                                          \
  ROW(B, "B")
#define WEFT_BARRIER_PHASES(ROW)                                                                                       \
  ROW(GATHER, "Gather")                                                                                                \
  ROW(RELEASE, "Release")
#define WEFT_ARCH_CONDS(ROW)                                                                                           \
  ROW(ALWAYS, "Always")                                                                                                \
  ROW(BLACKHOLE, "Blackhole")
#define WEFT_CELL_OPS(ROW)                                                                                             \
  ROW(ADD, "Add")                                                                                                      \
  ROW(SUB, "Sub")                                                                                                      \
  ROW(MUL, "Mul")                                                                                                      \
  ROW(AND, "And")                                                                                                      \
  ROW(OR, "Or")                                                                                                        \
  ROW(XOR, "Xor")                                                                                                      \
  ROW(SHL, "Shl")                                                                                                      \
  ROW(ASHR, "AShr")                                                                                                    \
  ROW(LSHR, "LShr")                                                                                                    \
  ROW(MIN, "Min")                                                                                                      \
  ROW(MAX, "Max")                                                                                                      \
  ROW(LT, "Lt")                                                                                                        \
  ROW(EQ, "Eq")                                                                                                        \
  ROW(SELECT, "Select")                                                                                                \
  ROW(PASS, "Pass")
#define WEFT_PHASES(ROW)                                                                                               \
  ROW(TEMPLATE, "Template")                                                                                            \
  ROW(TILED, "Tiled")                                                                                                  \
  ROW(PLACED, "Placed")                                                                                                \
  ROW(SIZED, "Sized")                                                                                                  \
  ROW(SCHEDULED, "Scheduled")                                                                                          \
  ROW(VERIFIED, "Verified")

#define WEFT_ENUM_HANDSHAKE_KIND(id, name) WEFT_HANDSHAKE_##id,
typedef enum weft_handshake_kind {
  WEFT_HANDSHAKE_KINDS(WEFT_ENUM_HANDSHAKE_KIND) WEFT_HANDSHAKE_KIND_COUNT
} weft_handshake_kind;
#define WEFT_ENUM_INTERCONNECT(id, name) WEFT_INTERCONNECT_##id,
typedef enum weft_interconnect { WEFT_INTERCONNECTS(WEFT_ENUM_INTERCONNECT) WEFT_INTERCONNECT_COUNT } weft_interconnect;
#define WEFT_ENUM_DATAFLOW(id, name) WEFT_DATAFLOW_##id,
typedef enum weft_dataflow_policy {
  WEFT_DATAFLOW_POLICIES(WEFT_ENUM_DATAFLOW) WEFT_DATAFLOW_COUNT
} weft_dataflow_policy;
#define WEFT_ENUM_ROLE(id, name) WEFT_ROLE_##id,
typedef enum weft_tensor_role { WEFT_TENSOR_ROLES(WEFT_ENUM_ROLE) WEFT_ROLE_COUNT } weft_tensor_role;
#define WEFT_ENUM_SPACE(id, name) WEFT_SPACE_##id,
typedef enum weft_tensor_space { WEFT_TENSOR_SPACES(WEFT_ENUM_SPACE) WEFT_SPACE_COUNT } weft_tensor_space;
#define WEFT_ENUM_LAYOUT(id, name) WEFT_LAYOUT_##id,
typedef enum weft_layout { WEFT_LAYOUTS(WEFT_ENUM_LAYOUT) WEFT_LAYOUT_COUNT } weft_layout;
#define WEFT_ENUM_ACC(id, name) WEFT_ACC_##id,
typedef enum weft_acc_policy { WEFT_ACC_POLICIES(WEFT_ENUM_ACC) WEFT_ACC_COUNT } weft_acc_policy;
#define WEFT_ENUM_NUMERICS(id, name) WEFT_NUMERICS_##id,
typedef enum weft_numerics_policy {
  WEFT_NUMERICS_POLICIES(WEFT_ENUM_NUMERICS) WEFT_NUMERICS_COUNT
} weft_numerics_policy;
#define WEFT_ENUM_GRANULARITY(id, name) WEFT_GRANULARITY_##id,
typedef enum weft_granularity { WEFT_GRANULARITIES(WEFT_ENUM_GRANULARITY) WEFT_GRANULARITY_COUNT } weft_granularity;
#define WEFT_ENUM_POOL(id, name) WEFT_POOL_##id,
typedef enum weft_pool { WEFT_POOLS(WEFT_ENUM_POOL) WEFT_POOL_COUNT } weft_pool;
#define WEFT_ENUM_SITE_ROLE(id, name) WEFT_SITE_##id,
typedef enum weft_site_role { WEFT_SITE_ROLES(WEFT_ENUM_SITE_ROLE) WEFT_SITE_ROLE_COUNT } weft_site_role;
#define WEFT_ENUM_MEM(id, name) WEFT_MEM_##id,
typedef enum weft_mem_space { WEFT_MEM_SPACES(WEFT_ENUM_MEM) WEFT_MEM_COUNT } weft_mem_space;
#define WEFT_ENUM_PACKING(id, name) WEFT_PACKING_##id,
typedef enum weft_engine_packing { WEFT_ENGINE_PACKINGS(WEFT_ENUM_PACKING) WEFT_PACKING_COUNT } weft_engine_packing;
#define WEFT_ENUM_DIRECTION(id, name) WEFT_DIRECTION_##id,
typedef enum weft_direction { WEFT_DIRECTIONS(WEFT_ENUM_DIRECTION) WEFT_DIRECTION_COUNT } weft_direction;
#define WEFT_ENUM_OPERAND(id, name) WEFT_OPERAND_##id,
typedef enum weft_operand { WEFT_OPERANDS(WEFT_ENUM_OPERAND) WEFT_OPERAND_COUNT } weft_operand;
#define WEFT_ENUM_BARRIER_PHASE(id, name) WEFT_BARRIER_##id,
typedef enum weft_barrier_phase {
  WEFT_BARRIER_PHASES(WEFT_ENUM_BARRIER_PHASE) WEFT_BARRIER_PHASE_COUNT
} weft_barrier_phase;
#define WEFT_ENUM_ARCH(id, name) WEFT_ARCH_##id,
typedef enum weft_arch_cond { WEFT_ARCH_CONDS(WEFT_ENUM_ARCH) WEFT_ARCH_COUNT } weft_arch_cond;
#define WEFT_ENUM_CELL(id, name) WEFT_CELL_##id,
typedef enum weft_cell_op { WEFT_CELL_OPS(WEFT_ENUM_CELL) WEFT_CELL_OP_COUNT } weft_cell_op;
#define WEFT_ENUM_PHASE(id, name) WEFT_PHASE_##id,
typedef enum weft_phase { WEFT_PHASES(WEFT_ENUM_PHASE) WEFT_PHASE_COUNT } weft_phase;

const char *weft_handshake_kind_name(weft_handshake_kind);
const char *weft_interconnect_name(weft_interconnect);
const char *weft_tensor_role_name(weft_tensor_role);
const char *weft_acc_policy_name(weft_acc_policy);
const char *weft_pool_name(weft_pool);
const char *weft_phase_name(weft_phase);
/** The narrowest format that carries a spilled partial sum losslessly: Int32, Int64, Fp32. */
weft_format weft_acc_format(weft_acc_policy acc);
/** The accumulator a program producing a `format` result folds in (seed, AccPolicy::for_result). */
weft_acc_policy weft_acc_for_result(weft_format format);

/* ---- small values ------------------------------------------------------------------------------------------- */

/** Loop variables with a fixed meaning. */
enum {
  WEFT_VAR_ITEM_Y = 0, /**< the work item's block row */
  WEFT_VAR_ITEM_X = 1, /**< the work item's block column */
  WEFT_VAR_SUB_H = 2,
  WEFT_VAR_SUB_W = 3,
  WEFT_VAR_K_BLOCK = 4,
  WEFT_VAR_GEN_ROW = 5, /**< row, column, contraction axis of a Generic */
  WEFT_VAR_GEN_COL = 6,
  WEFT_VAR_GEN_K = 7,
};

/** A logical mesh coordinate; `chip` is left out of dumps when 0. */
typedef struct weft_site {
  uint16_t x, y, chip;
} weft_site;
static inline bool weft_site_equal(weft_site a, weft_site b) { return a.x == b.x && a.y == b.y && a.chip == b.chip; }
/** Order: x, then y, then chip. */
static inline int weft_site_compare(weft_site a, weft_site b) {
  return a.x != b.x         ? (a.x < b.x ? -1 : 1)
         : a.y != b.y       ? (a.y < b.y ? -1 : 1)
         : a.chip != b.chip ? (a.chip < b.chip ? -1 : 1)
                            : 0;
}

typedef struct weft_optional_site {
  bool present;
  weft_site site;
} weft_optional_site;
typedef struct weft_rect {
  uint16_t x0, y0, x1, y1;
} weft_rect; /**< inclusive */
/** Movement(index) or Compute. */
typedef struct weft_engine {
  bool compute;
  uint8_t movement;
} weft_engine;

typedef struct weft_elem_shape {
  uint64_t rows, cols;
} weft_elem_shape;
typedef struct weft_tile_grid {
  uint64_t rows_t, cols_t;
} weft_tile_grid;
typedef struct weft_pair {
  uint64_t first, second;
} weft_pair; /**< a tuple of two sizes, e.g. (rows, cols) */
typedef struct weft_range {
  int64_t low, high;
} weft_range; /**< inclusive */
typedef struct weft_span {
  uint64_t begin, end;
} weft_span; /**< half-open */

/* ---- tensors ------------------------------------------------------------------------------------------------- */

typedef enum weft_init_kind {
  WEFT_INIT_ZERO,
  WEFT_INIT_PATTERN,      /**< value[p] = p mod modulus + shift */
  WEFT_INIT_VALUES,       /**< integers */
  WEFT_INIT_FLOAT_VALUES, /**< IEEE double bits */
  WEFT_INIT_CONST_F,      /**< one double for every element, as bits: never expanded */
  WEFT_INIT_RANDOM_BF16,
  WEFT_INIT_EXTERNAL, /**< supplied at run time */
} weft_init_kind;

typedef struct weft_init {
  weft_init_kind kind;
  union {
    struct {
      int64_t modulus, shift;
    } pattern;
    struct {
      const int64_t *items;
      uint64_t count;
    } values;
    struct {
      const uint64_t *items;
      uint64_t count;
    } float_values;
    uint64_t const_f;
    struct {
      uint32_t seed;
      int32_t shift_milli;
    } random;
  };
} weft_init;

/** Ours: the tensor holds a partial result: segments first..first+count of `of`, still to be folded with `pool`. */
typedef struct weft_partial {
  weft_pool pool;
  uint32_t first, count, of;
} weft_partial;

/** Ours: the tensor is a block of the dataset `of` (rows x cols in whole), its element (0, 0) at (row0, col0). For
 * Input and Param the dataset is read, for Output and State written. `writer` is false for a replica that another chip
 * writes. */
typedef struct weft_shard {
  const char *of;
  uint64_t rows, cols, row0, col0;
  bool writer;
} weft_shard;

typedef struct weft_tensor {
  uint32_t id;
  const char *name;
  weft_tensor_role role;
  weft_elem_shape elems;
  weft_tile_grid tiles;
  weft_format dtype;
  weft_layout layout;
  weft_tensor_space space;
  weft_init init;
  bool has_range;
  weft_range range;
  uint32_t chip;    /**< WEFT_NONE: null, left out */
  bool has_partial; /**< ours */
  weft_partial partial;
  bool has_shard; /**< ours */
  weft_shard shard;
  /** Ours: extents of the dataset when it is not (rows, cols): their product is rows * cols of the whole dataset, e.g.
   * [256] for 1 x 256. NULL when absent. */
  const uint64_t *shape;
  uint64_t shape_count;
} weft_tensor;
/** Bytes of a tensor's elements; UINT64_MAX when 64 bits do not hold them. */
uint64_t weft_tensor_bytes(const weft_tensor *tensor);

/* ---- access patterns ------------------------------------------------------------------------------------------ */

typedef struct weft_indirect_tile {
  uint32_t index;
  uint64_t tile_stride, elems_per_tile;
  weft_pair bound;
} weft_indirect_tile;
typedef struct weft_step {
  uint32_t var;
  uint64_t stride;
} weft_step;
/** base + sum of var * stride, plus an optional value-dependent term. */
typedef struct weft_tile_addr {
  uint64_t base;
  const weft_step *steps;
  uint64_t step_count;
  const weft_indirect_tile *indirect; /**< NULL: none */
} weft_tile_addr;
typedef struct weft_access_pattern {
  weft_tile_addr origin;
  uint64_t block_h, block_w, stride_w, stride_h;
} weft_access_pattern;

typedef struct weft_indirect_term {
  uint64_t operand;
  int64_t stride;
  uint64_t modulus;
} weft_indirect_term;
typedef struct weft_term {
  uint32_t var;
  int64_t stride;
} weft_term;
/** Flat signed affine map: element offset in a page read as a row-major plane (seed, ElemAccess). */
typedef struct weft_elem_access {
  int64_t base;
  const weft_term *terms;
  uint64_t term_count;
  const weft_indirect_term *indirect;
} weft_elem_access;

/* ---- compute ops ------------------------------------------------------------------------------------------------ */

typedef struct weft_block_shape {
  uint64_t osh, osw, ibw;
} weft_block_shape;

/** Nodes of a Generic's body: identifier, dump name, operands (children). From DIV on: ours. */
#define WEFT_BODY_NODES(ROW)                                                                                           \
  ROW(OPERAND, "Operand", 0)                                                                                           \
  ROW(CONST, "Const", 0)                                                                                               \
  ROW(ADD, "Add", 2)                                                                                                   \
  ROW(SUB, "Sub", 2)                                                                                                   \
  ROW(MUL, "Mul", 2)                                                                                                   \
  ROW(MIN, "Min", 2)                                                                                                   \
  ROW(MAX, "Max", 2)                                                                                                   \
  ROW(FLOOR_DIV, "FloorDiv", 2)                                                                                        \
  ROW(SHR, "Shr", 1)                                                                                                   \
  ROW(UNARY, "Unary", 1)                                                                                               \
  ROW(SELECT, "Select", 2)                                                                                             \
  ROW(DIV, "Div", 2)                                                                                                   \
  ROW(VALUE_SELECT, "ValueSelect", 3)
#define WEFT_ENUM_BODY(id, name, arity) WEFT_BODY_##id,
typedef enum weft_body_kind { WEFT_BODY_NODES(WEFT_ENUM_BODY) WEFT_BODY_KIND_COUNT } weft_body_kind;

/** SFPU kinds. From TANH on: ours. */
#define WEFT_SFPU_KINDS(ROW)                                                                                           \
  ROW(EXP, "Exp")                                                                                                      \
  ROW(RECIP, "Recip")                                                                                                  \
  ROW(RSQRT, "Rsqrt")                                                                                                  \
  ROW(SILU, "Silu")                                                                                                    \
  ROW(RELU, "Relu")                                                                                                    \
  ROW(LN, "Ln")                                                                                                        \
  ROW(TANH, "Tanh")                                                                                                    \
  ROW(ERF, "Erf")
#define WEFT_ENUM_SFPU(id, name) WEFT_SFPU_##id,
typedef enum weft_sfpu_kind { WEFT_SFPU_KINDS(WEFT_ENUM_SFPU) WEFT_SFPU_COUNT } weft_sfpu_kind;

/** Axis predicate of a Select: var < bound, or var >= bound; the bound a constant or operand `bound`'s value. */
typedef struct weft_pred {
  bool ge;
  bool operand_bound;
  uint32_t var;
  uint64_t bound;
} weft_pred;

/** One node. Children are indices of earlier nodes: the array is the body's post-order (left operand first), its last
 * node the root. A Select's children are then, otherwise; a ValueSelect's cond, then, otherwise (cond != 0 takes then).
 */
typedef struct weft_body_node {
  weft_body_kind kind;
  weft_sfpu_kind sfpu; /**< UNARY */
  uint32_t child[3];
  uint64_t value;          /**< OPERAND: index; CONST: IEEE double bits; SHR: by */
  weft_pred pred;          /**< SELECT */
  uint64_t eps_nano, over; /**< UNARY Rsqrt */
} weft_body_node;
typedef struct weft_body {
  const weft_body_node *nodes;
  uint64_t node_count;
} weft_body;

/** Reduce { pool } or Parallel; `segments` is ours (Sum only; 0 = absent: one ascending chain, unlike 1 segment, whose
 * elements are added in lanes). */
typedef struct weft_iter {
  uint32_t var;
  uint64_t extent;
  bool reduce;
  weft_pool pool;
  uint32_t segments;
} weft_iter;

typedef enum weft_src_kind { WEFT_SRC_INPUT, WEFT_SRC_CELL, WEFT_SRC_CONST } weft_src_kind;
typedef struct weft_src {
  weft_src_kind kind;
  union {
    uint64_t index;
    int64_t constant;
  };
} weft_src;
typedef struct weft_cell {
  weft_cell_op op;
  weft_src a, b;
  bool has_c;
  weft_src c;
} weft_cell;
typedef struct weft_scalar_body {
  uint64_t n_in;
  const weft_cell *cells;
  uint64_t cell_count;
  weft_src result;
} weft_scalar_body;

typedef enum weft_compute_kind {
  WEFT_COMPUTE_MATMUL_TILES,
  WEFT_COMPUTE_REQUANT,
  WEFT_COMPUTE_BIAS,
  WEFT_COMPUTE_RELU,
  WEFT_COMPUTE_GENERIC,
  WEFT_COMPUTE_SCALAR,
} weft_compute_kind;

typedef struct weft_matmul_tiles {
  weft_block_shape block;
  weft_pair sub_blocks;
  uint64_t num_blocks;
  weft_format operand;
  weft_acc_policy acc;
  weft_dataflow_policy dataflow;
  uint32_t interm; /**< buffer, or WEFT_NONE */
  weft_granularity granularity;
  uint32_t segments; /**< ours; 1 = absent: one ascending chain */
  uint32_t trip; /**< ours: the trip its K blocks, and those of its Loads, run to; WEFT_NONE = absent: all of them */
  uint8_t max_ids;
} weft_matmul_tiles;

typedef struct weft_generic {
  const weft_iter *iters;
  uint64_t iter_count;
  const weft_elem_access *ins;
  uint64_t in_count;
  weft_elem_access out;
  weft_body body;
} weft_generic;

typedef struct weft_compute_op {
  weft_compute_kind kind;
  union {
    weft_matmul_tiles matmul;
    struct {
      int64_t m;
      uint32_t s;
    } requant;
    uint32_t bias; /**< buffer */
    weft_generic generic;
    weft_scalar_body scalar;
  };
} weft_compute_op;

/* ---- stages, buffers, edges ----------------------------------------------------------------------------------------
 */

typedef enum weft_stage_kind {
  WEFT_STAGE_LOAD,
  WEFT_STAGE_STORE,
  WEFT_STAGE_RECV,
  WEFT_STAGE_ALL_REDUCE,
  WEFT_STAGE_COMPUTE,
  WEFT_STAGE_SCALAR,
} weft_stage_kind;

typedef struct weft_stage {
  uint32_t id;
  const char *name;
  weft_stage_kind kind;
  union {
    struct {
      uint32_t tensor;
      weft_access_pattern pattern;
      uint64_t num_blocks;
      uint32_t multicast;
    } load; /**< multicast: group or WEFT_NONE */
    struct {
      uint32_t tensor;
      weft_access_pattern pattern;
      weft_pair sub_blocks;
    } store;
    struct {
      uint32_t group;
    } recv;
    struct {
      weft_pool pool;
      uint32_t tensor;
      const weft_compute_op *combine;
    } all_reduce;
    const weft_compute_op *compute;
    weft_scalar_body scalar;
  };
  weft_site_role role;
  const uint32_t *ins;
  uint64_t in_count;
  const uint32_t *outs;
  uint64_t out_count;
  weft_optional_site site;
  uint32_t item;   /**< work item or WEFT_NONE */
  uint32_t origin; /**< template stage or WEFT_NONE */
  uint8_t max_ids;
} weft_stage;

typedef enum weft_buffer_kind { WEFT_BUFFER_FIFO, WEFT_BUFFER_INTERM, WEFT_BUFFER_ACCUMULATOR } weft_buffer_kind;
typedef struct weft_buffer {
  uint32_t id;
  const char *name;
  weft_buffer_kind kind;
  uint64_t depth_pages; /**< 1 for an Accumulator */
  uint64_t page_tiles;  /**< an Accumulator's tiles */
  weft_format dtype;
  weft_mem_space space;
  weft_optional_site site;
  uint32_t origin;   /**< buffer or WEFT_NONE */
  uint32_t alias_of; /**< buffer or WEFT_NONE */
  uint8_t max_ids;
} weft_buffer;

typedef struct weft_edge {
  uint32_t id;
  uint32_t from;
  uint32_t buffer;
  const uint32_t *to;
  uint64_t to_count;
  weft_handshake_kind handshake;
  uint32_t ready, valid; /**< SEMAPHORE */
  uint64_t ready_count;  /**< SEMAPHORE */
  uint32_t group;        /**< BARRIER */
} weft_edge;

typedef enum weft_sem_role { WEFT_SEM_READY_COUNTER, WEFT_SEM_VALID_FLAG, WEFT_SEM_BARRIER } weft_sem_role;
typedef struct weft_semaphore {
  uint32_t id;
  uint32_t init;
  weft_sem_role role;
  uint64_t count; /**< READY_COUNTER: expected; BARRIER: n */
  weft_barrier_phase phase;
  bool has_operand;
  weft_operand operand;
  const weft_site *sites;
  uint64_t site_count;
} weft_semaphore;

/* ---- sections, trips, links
 * ------------------------------------------------------------------------------------------ */

typedef struct weft_block_plan {
  uint64_t per_site_m, per_site_n;
  weft_pair grid;                     /**< (n_y, n_x) blocks */
  uint64_t num_blocks, block_k_tiles; /**< `inner` in the dump */
  weft_block_shape block;
  weft_acc_policy acc;
  bool pack_accumulate;
  weft_engine_packing engines;
  weft_granularity granularity;
} weft_block_plan;

typedef struct weft_section {
  const char *name;
  weft_span stages, buffers, edges, semaphores, items;
  bool has_plan;
  weft_block_plan plan;
  uint64_t k_tiles;
  uint32_t output; /**< tensor or WEFT_NONE */
  bool has_barrier_after;
  uint32_t gather, release;
  uint8_t max_ids;
} weft_section;

typedef struct weft_trip {
  uint32_t tensor;
  uint64_t elem;
  weft_range admit;
  int64_t bias;
  uint64_t per;
} weft_trip;

typedef struct weft_link_point {
  uint64_t after; /**< section index; UINT64_MAX: before the first (null) */
  const uint32_t *sends;
  uint64_t send_count;
  const uint32_t *receives;
  uint64_t receive_count;
  /** Ours: the chip each crossing goes to or comes from, parallel to sends and receives (a tensor sent to several chips
   * occurs once each). NULL when absent (a foreign dump): such a program can be checked, not run. */
  const uint16_t *send_peers;
  const uint16_t *receive_peers;
  uint8_t max_ids;
} weft_link_point;

/* ---- work, placement, memory
 * ------------------------------------------------------------------------------------------- */

typedef struct weft_work_item {
  uint32_t id;
  weft_pair coord;
  uint64_t row0_t, col0_t, h_t, w_t;
} weft_work_item;

typedef struct weft_work_list {
  weft_work_item *items;
  uint64_t item_count;
  uint64_t k_tiles;
  bool has_plan;
  weft_block_plan plan;
  uint32_t k_trip; /**< trip or WEFT_NONE */
  uint8_t max_ids;
} weft_work_list;

typedef struct weft_group {
  uint32_t id;
  weft_rect rect;
  weft_site sender;
  weft_direction direction;
  weft_operand operand;
  uint8_t noc;
} weft_group;
typedef struct weft_engine_slot {
  weft_site site;
  weft_engine engine;
  bool has_noc;
  uint8_t noc;
} weft_engine_slot;
typedef struct weft_site_items {
  weft_site site;
  const uint32_t *items;
  uint64_t item_count;
} weft_site_items;
typedef struct weft_placement {
  uint64_t mesh_cols, mesh_rows;
  const weft_site *site_of; /**< by stage */
  uint64_t site_of_count;
  const weft_engine_slot *engine_of; /**< by stage */
  uint64_t engine_of_count;
  const weft_group *groups;
  uint64_t group_count;
  const weft_site_items *items_of_site;
  uint64_t items_of_site_count;
} weft_placement;

typedef struct weft_buffer_at {
  weft_site site;
  weft_mem_space space;
  uint32_t offset_bytes, bytes;
} weft_buffer_at;
typedef struct weft_memory_map {
  const weft_buffer_at *buffer_at;
  uint64_t buffer_at_count;
} weft_memory_map;

/* ---- schedule
 * ------------------------------------------------------------------------------------------------------------ */

/** Choreography ops: identifier, dump name. */
#define WEFT_CHOREO_OPS(ROW)                                                                                           \
  ROW(RESERVE, "Reserve")                                                                                              \
  ROW(PUSH, "Push")                                                                                                    \
  ROW(WAIT, "Wait")                                                                                                    \
  ROW(POP, "Pop")                                                                                                      \
  ROW(READ_TILES, "ReadTiles")                                                                                         \
  ROW(READ_BARRIER, "ReadBarrier")                                                                                     \
  ROW(WRITE_TILES, "WriteTiles")                                                                                       \
  ROW(WRITE_BARRIER, "WriteBarrier")                                                                                   \
  ROW(MCAST_SEND, "McastSend")                                                                                         \
  ROW(MCAST_SET_VALID, "McastSetValid")                                                                                \
  ROW(FLUSH, "Flush")                                                                                                  \
  ROW(SEM_SET, "SemSet")                                                                                               \
  ROW(SEM_INC, "SemInc")                                                                                               \
  ROW(SEM_WAIT, "SemWait")                                                                                             \
  ROW(ACQUIRE_ACC, "AcquireAcc")                                                                                       \
  ROW(RELEASE_ACC, "ReleaseAcc")                                                                                       \
  ROW(COMPUTE, "Compute")                                                                                              \
  ROW(PACK_ACC, "PackAcc")                                                                                             \
  ROW(BARRIER, "Barrier")                                                                                              \
  ROW(LOOP, "Loop")
#define WEFT_ENUM_OP(id, name) WEFT_OP_##id,
typedef enum weft_choreo_kind { WEFT_CHOREO_OPS(WEFT_ENUM_OP) WEFT_CHOREO_OP_COUNT } weft_choreo_kind;

typedef enum weft_sem_value { WEFT_SEM_INVALID, WEFT_SEM_VALID, WEFT_SEM_COUNT } weft_sem_value;

/** One step of an engine, tagged with its stage. */
typedef struct weft_op weft_op;
struct weft_op {
  uint32_t stage;
  weft_choreo_kind kind;
  union {
    struct {
      uint32_t buf;
      uint64_t pages;
    } page; /**< Reserve, Push, Wait, Pop */
    struct {
      uint32_t tensor, buf;
      weft_tile_addr at;
      uint64_t block_h, block_w, stride_w, stride_h;
      bool wrap;
    } tiles; /**< Read (into buf), Write (from buf); wrap: ours (`overflow`) */
    struct {
      uint32_t buf, group;
      uint64_t pages;
      bool hold_path;
    } mcast_send;
    struct {
      uint32_t sem, group;
    } mcast_set_valid;
    weft_arch_cond flush;
    struct {
      uint32_t sem;
      weft_sem_value value;
      uint64_t count;
    } sem_set;
    struct {
      uint32_t sem;
      weft_site at;
      uint64_t by;
    } sem_inc;
    struct {
      uint32_t sem;
      bool at_least;
      uint64_t count;
    } sem_wait;
    uint64_t acquire_tiles;
    struct {
      const weft_compute_op *op;
      const uint32_t *ins;
      uint64_t in_count;
      uint32_t acc_reload;
      uint8_t max_ids;
    } compute;
    struct {
      uint32_t to;
      weft_format convert;
      uint64_t tiles;
      bool accumulate;
      bool wrap;
    } pack; /**< wrap: ours */
    uint32_t barrier_group;
    struct {
      uint32_t var;
      uint32_t trip;
      uint64_t count;
      const weft_op *body;
      uint64_t body_count;
      uint8_t max_ids;
    } loop; /**< trip WEFT_NONE: Const(count), else count is its max */
  };
};

typedef struct weft_engine_program {
  weft_site site;
  weft_engine engine;
  const uint32_t *stages;
  uint64_t stage_count;
  const weft_op *ops;
  uint64_t op_count;
} weft_engine_program;

typedef struct weft_schedule {
  const weft_engine_program *programs;
  uint64_t program_count;
} weft_schedule;

/* ---- the program
 * ------------------------------------------------------------------------------------------------------------ */

typedef struct weft_program {
  weft_arena *arena; /**< owns everything below and the program itself */
  const char *name;
  uint64_t tile_rows, tile_cols;
  weft_tensor *tensors;
  uint64_t tensor_count;
  weft_stage *stages;
  uint64_t stage_count;
  weft_buffer *buffers;
  uint64_t buffer_count;
  weft_edge *edges;
  uint64_t edge_count;
  weft_semaphore *semaphores;
  uint64_t semaphore_count;
  weft_section *sections;
  uint64_t section_count;
  weft_trip *trips;
  uint64_t trip_count;
  weft_link_point *links;
  uint64_t link_count;
  weft_work_list work;
  weft_numerics_policy numerics;
  const char *claim_reason; /**< NULL: Exact; else Approx { reason } */
  uint64_t acc_tiles_used;
  uint64_t mem_banks;             /**< 1: left out */
  uint32_t requires_handshakes;   /**< bit set by weft_handshake_kind */
  uint32_t requires_interconnect; /**< bit set by weft_interconnect */
  weft_placement *placement;      /**< NULL until placed */
  weft_memory_map *memory;
  weft_schedule *schedule;
  bool verified;       /**< a certificate is attached (never dumped) */
  uint32_t arithmetic; /**< ours: 0 = absent, else the version results follow */
  uint32_t chips;      /**< ours: chips of the machine; 0 = absent (one, or what the sites say) */
  uint32_t chip;       /**< ours: the chip this program is of after a split; WEFT_NONE = absent (a whole machine) */
} weft_program;

/** An empty Template program with tile 32 x 32, mem_banks 1, its own arena; NULL when memory is exhausted. */
weft_program *weft_program_new(const char *name);
/** Frees the program and everything in its arena. NULL is allowed. */
void weft_program_free(weft_program *program);

weft_phase weft_program_phase(const weft_program *program);
/** Bytes a buffer takes: pages * tiles * tile elements * element bytes; UINT64_MAX when that leaves 64 bits. */
uint64_t weft_buffer_bytes(const weft_program *program, const weft_buffer *buffer);
/** Fetches what the stage points to into the caches: in a program larger than these, a walk over all stages waits for
 * little else. `ahead`: what a stage somewhat behind `stage` points to. */
void weft_stage_fetch(const weft_stage *stage);
void weft_stage_fetch_ahead(const weft_program *program, uint64_t stage);
/** The section that holds a stage, buffer or item; UINT64_MAX when none does. */
uint64_t weft_section_of_stage(const weft_program *program, uint32_t stage);
uint64_t weft_section_of_buffer(const weft_program *program, uint32_t buffer);
uint64_t weft_section_of_item(const weft_program *program, uint32_t item);
/** For every stage its fold level (seed, fold_levels): 0 prologue, 1 body, 2 epilogue; in `arena`, NULL without memory.
 */
uint8_t *weft_fold_levels(const weft_program *program, weft_arena *arena);
/** For every section its phase (sections up to and with the next rendezvous); in `arena`. */
uint64_t *weft_section_phases(const weft_program *program, weft_arena *arena);
/** A trip's count for the value v (seed, Trip::count), at least 0. */
uint64_t weft_trip_count(const weft_trip *trip, int64_t v);

/** Stores element `position` of a fill into element `index` of an array: integers as they are or rounded to a float
 * format, doubles rounded to fp32 and then to the format. `position` counts the elements of the whole dataset, row by
 * row, also where the tensor is a block of it. False, storing nothing, when the fill has no such element (EXTERNAL has
 * none) or it does not fit the format. */
bool weft_init_store(const weft_init *init, uint64_t position, weft_format dtype, void *array, uint64_t index);

/* ---- reading and writing
 * ------------------------------------------------------------------------------------------------------ */

/** Reads a neutral dump. `file` names it in messages. Total: any bytes give a program or a message with line, JSON path
 * and what was expected. Bounds: 127 nested arrays and objects. The program owns a copy of everything it needs; `text`
 * may be freed at once. Errors: WEFT_INVALID with one message; WEFT_UNAVAILABLE without memory. */
weft_status weft_program_read(const char *file, const char *text, size_t length, weft_program **program,
                              weft_diag *diag);
/** The same from a file, which later messages without a place are then about (weft_diag_about). */
weft_status weft_program_read_file(const char *path, weft_program **program, weft_diag *diag);
/** Appends the neutral dump: two-space pretty printing, no newline at the end. */
void weft_program_write(const weft_program *program, weft_text *text);
/** Names every use of a field or variant of ours, for `weft fmt --portable`: WEFT_INVALID with one message each. */
weft_status weft_program_portable(const weft_program *program, weft_diag *diag);
/** A deep copy with its own arena; NULL when memory is exhausted. */
weft_program *weft_program_clone(const weft_program *program);

/* Deep copies of parts into another program's arena. Ids are copied as they are: renumber them afterwards. False or
 * NULL when memory is exhausted. */
bool weft_tensor_copy(weft_arena *arena, const weft_tensor *from, weft_tensor *to);
bool weft_stage_copy(weft_arena *arena, const weft_stage *from, weft_stage *to);
bool weft_op_copy(weft_arena *arena, const weft_op *from, weft_op *to);
weft_compute_op *weft_compute_op_copy(weft_arena *arena, const weft_compute_op *op);

/* ---- validation
 * --------------------------------------------------------------------------------------------------------------- */

/** Validates a program in its phase: every structural invariant of the seed in the seed's order (ir/violations.h is the
 * table), then the checks of our own. Adds one error for each violation found, at most `limit` (0: all it can; 1: the
 * first), each with its tensor, stage, section and a remedy. When `json` is not NULL each violation is appended to it
 * as the seed's externally tagged object, one a line. Returns WEFT_OK, WEFT_INVALID, or WEFT_UNAVAILABLE. */
weft_status weft_program_validate(const weft_program *program, uint64_t limit, weft_text *json, weft_diag *diag);

/** Checks the datasets of a program that is to be run: an Output shares no name with what is read, a State or another
 * Output, but for blocks of one dataset, and the names of Outputs and States are names a file can hold. Not part of
 * validation: a foreign dump may be compared without being run. WEFT_INVALID with one message. */
weft_status weft_program_check_datasets(const weft_program *program, weft_diag *diag);

/** Appends a readable summary: phase, sections, tensors, sites, plan, groups, traffic (`weft show`). */
void weft_program_show(const weft_program *program, weft_text *text);
/** The same as one JSON object: name, phase, chips, counts, tiles moved, and all tensors and sections. */
void weft_program_show_json(const weft_program *program, weft_text *text);
/** Appends a Graphviz picture of sections, stages and buffers. */
void weft_program_dot(const weft_program *program, weft_text *text);
/** Appends a Graphviz picture of a machine: a column a chip, a box for what a section does there, an arrow for each
 * tensor that a box makes and another reads. The program need not be valid. */
void weft_program_dot_chips(const weft_program *program, weft_text *text);

#endif
