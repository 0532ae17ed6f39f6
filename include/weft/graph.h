/* weft/graph.h: the op graph: N-d values and ops with iteration factors; builder, interpreter, lowering, lifting.
 *
 * A graph is what partitioning works on. Before partitioning every chip is 0 and there are no ALL_REDUCE, SLICE or
 * ASSEMBLE ops of the partitioner; after it (a "machine graph") every op and value is on a chip and values cross chips
 * by being read by an op of another chip. The interpreter runs both: it is the schedule-free oracle. Source: design
 * 1-product.md "The way of a model", 3 "Sharding". */
#ifndef WEFT_GRAPH_H
#define WEFT_GRAPH_H

#include "weft/ir.h"
#include "weft/tensor_file.h"

#define WEFT_MAX_FACTORS 12
#define WEFT_NO_FACTOR UINT8_MAX

/** Op kinds: identifier, name, least and most operands, what it computes.
 * Every op gives one value. Arithmetic: floats compute in fp32 and are rounded once to the result's format; integers
 * are exact and must fit the result's format (a fault otherwise). */
#define WEFT_GRAPH_OPS(ROW)                                                                                            \
  ROW(MATMUL, "matmul", 2, 3)        /* out[.., m, n] = fold over k of a[.., m, k] * b[k, n]; acc, segments; with a    \
                                        third operand over the first units of k: weft_graph_matmul_up_to */            \
  ROW(BIAS, "bias", 2, 2)            /* x[.., n] + b[n] (or b[1, n]) */                                                \
  ROW(RELU, "relu", 1, 1)            /* maximum(x, 0) */                                                               \
  ROW(REQUANT, "requant", 1, 1)      /* floor(x * m / 2^s), product in 64 bits */                                      \
  ROW(CLAMP, "clamp", 1, 1)          /* minimum(maximum(x, low), high), integers */                                    \
  ROW(POINTWISE, "pointwise", 1, 16) /* body over operands, each broadcast along the factors it lacks */               \
  ROW(ALL_REDUCE, "all_reduce", 1,                                                                                     \
      64)                   /* folds partial nodes in segment order by the tree of format.h; SUM, MAX, MIN */          \
  ROW(SLICE, "slice", 1, 1) /* the block at `starts` with the result's extents */                                      \
  ROW(ASSEMBLE, "assemble", 1, 65536) /* operand i is the block at piece i's starts; pieces tile the result exactly */ \
  ROW(REDUCE, "reduce", 1, 16)        /* out[.., 0] = fold with `pool` along the last axis of body(operands) */        \
  ROW(TRANSPOSE, "transpose", 1, 1)   /* out[c, r] = x[r, c] */                                                        \
  ROW(GATHER, "gather", 2, 2)         /* out[.., c] = table[ids[.., 0] - low, c]; -0 where no such row; ids 0..high */ \
  ROW(UPDATE, "update", 3, 3)         /* the state with row (axis 0) or column (axis 1) at[0] replaced by the row x */

#define WEFT_ENUM_GRAPH_OP(id, name, least, most) WEFT_GRAPH_##id,
typedef enum weft_graph_op_kind { WEFT_GRAPH_OPS(WEFT_ENUM_GRAPH_OP) WEFT_GRAPH_OP_COUNT } weft_graph_op_kind;
const char *weft_graph_op_name(weft_graph_op_kind kind);

typedef struct weft_value {
  const char
      *name; /**< unique among INPUT, PARAM, OUTPUT of one chip; the dataset's name unless `shard.of` says another */
  weft_tensor_role role; /**< INPUT and PARAM have no producer; OUTPUT and ACTIVATION have one; STATE: see `updates` */
  weft_format dtype;
  uint32_t rank;
  uint64_t extents[WEFT_MAX_RANK];
  bool has_range;
  weft_range range; /**< declared inclusive range of integer values */
  weft_init init;   /**< EXTERNAL unless a Template gave a fill */
  /** STATE: 0 is the state as the step finds it, without a producer; else 1 + that value, of which this is what the
   * step leaves. An UPDATE or a POINTWISE op gives it; ops that read the state as it was stand before. */
  uint32_t updates;
  uint32_t producer; /**< op, or WEFT_NONE */
  uint16_t chip;     /**< where it is stored */
  bool has_partial;
  weft_partial partial;
  bool has_shard; /**< INPUT, PARAM, OUTPUT of a machine graph: which block of which dataset (plane coordinates) */
  weft_shard shard;
  uint32_t full_rank; /**< with has_shard: extents of the whole dataset */
  uint64_t full_extents[WEFT_MAX_RANK];
} weft_value;

/** One iteration factor of an op: an axis of its iteration space. */
typedef struct weft_factor {
  uint64_t extent;
  bool reduce; /**< folded away with `pool` */
  weft_pool pool;
} weft_factor;

typedef struct weft_graph_op {
  weft_graph_op_kind kind;
  const char *name;
  uint32_t section; /**< execution order: ops of one section are lowered into one section of the spatial program */
  uint16_t chip;
  const uint32_t *ins; /**< values */
  uint32_t in_count;
  uint32_t out; /**< value */
  /** The iteration space and, per operand and for the result, the factor each dimension walks (WEFT_NO_FACTOR: extent
   * 1, broadcast). Partitioning uses nothing else of pointwise and contraction ops. */
  weft_factor factors[WEFT_MAX_FACTORS];
  uint8_t factor_count;
  const uint8_t (*in_factors)[WEFT_MAX_RANK];
  uint8_t out_factors[WEFT_MAX_RANK];
  /* attributes by kind */
  weft_acc_policy acc; /**< MATMUL */
  uint32_t segments;   /**< MATMUL: of its own K; REDUCE: of a Sum of floats, 0 one ascending chain; see format.h */
  int64_t m;           /**< REQUANT */
  uint32_t s;          /**< REQUANT */
  int64_t low, high;   /**< CLAMP; GATHER: id of the table's first row, greatest id there is */
  uint8_t axis;        /**< UPDATE */
  weft_body body;      /**< POINTWISE, REDUCE: operands by position */
  weft_pool pool;      /**< ALL_REDUCE; REDUCE: SUM, MAX, MIN, ARG_MAX */
  const uint64_t (*starts)[WEFT_MAX_RANK]; /**< SLICE: one entry; ASSEMBLE: one a piece */
} weft_graph_op;

typedef struct weft_graph {
  weft_arena *arena; /**< owns everything and the graph itself */
  const char *name;
  weft_value *values;
  uint64_t value_count, value_capacity;
  weft_graph_op *ops; /**< in an order in which producers precede users */
  uint64_t op_count, op_capacity;
  uint32_t section_count;
  const char **section_names; /**< by section */
  uint64_t section_capacity;
  uint32_t chips;     /**< 1 before partitioning */
  weft_diag *diag;    /**< where builder calls report */
  bool failed;        /**< a builder call has failed: weft_graph_check refuses the graph */
  bool out_of_memory; /**< and why */
} weft_graph;

/* ---- builder: every call returns the new value's id, or WEFT_NONE with a message in the graph's diag
 * ------------------- */

/** A new graph; errors of later calls go to `diag`, which must outlive it. NULL without memory. */
weft_graph *weft_graph_new(const char *name, weft_diag *diag);
void weft_graph_free(weft_graph *graph);
/** Starts a section; later ops belong to it. */
void weft_graph_section(weft_graph *graph, const char *name);

uint32_t weft_graph_input(weft_graph *graph, const char *name, weft_format dtype, uint32_t rank,
                          const uint64_t *extents);
uint32_t weft_graph_param(weft_graph *graph, const char *name, weft_format dtype, uint32_t rank,
                          const uint64_t *extents);
/** Declares the inclusive range of an integer value. */
void weft_graph_range(weft_graph *graph, uint32_t value, int64_t low, int64_t high);
/** a[.., M, K] x b[K, N]. Float operands: result Fp32, acc F32, segments by the canonical rule. Integer operands:
 * result Int32 with acc I32 where K and the ranges allow it, else Int64 with acc I64. */
uint32_t weft_graph_matmul(weft_graph *graph, const char *name, uint32_t a, uint32_t b);
/** The product of floats over the elements of K in the units of 32 up to the one that holds element `position`, in one
 * chain: what is after them is not read. `position` is an integer Input of one element, from 0 to K - 1: a trip of the
 * program, read before it runs. Elements of the last unit after `position` take part: a should be 0 there. */
uint32_t weft_graph_matmul_up_to(weft_graph *graph, const char *name, uint32_t a, uint32_t b, uint32_t position);
uint32_t weft_graph_bias(weft_graph *graph, const char *name, uint32_t x, uint32_t bias);
uint32_t weft_graph_relu(weft_graph *graph, const char *name, uint32_t x);
uint32_t weft_graph_requant(weft_graph *graph, const char *name, uint32_t x, int64_t m, uint32_t s);
/** Clamps and packs to `dtype`. */
uint32_t weft_graph_clamp(weft_graph *graph, const char *name, uint32_t x, int64_t low, int64_t high,
                          weft_format dtype);
/** Operands aligned at their last dimensions, extent-1 or missing dimensions broadcast. `body` is copied. */
uint32_t weft_graph_pointwise(weft_graph *graph, const char *name, const uint32_t *ins, uint32_t in_count,
                              const weft_body *body, weft_format dtype);
/** Folds the last axis of body(operands), which broadcast as in a pointwise op; the result keeps it with extent 1. SUM
 * over floats: segments by the canonical rule. ARG_MAX gives the index of the greatest, in an integer `dtype`. */
uint32_t weft_graph_reduce(weft_graph *graph, const char *name, const uint32_t *ins, uint32_t in_count,
                           const weft_body *body, weft_pool pool, weft_format dtype);
/** The transpose of a matrix. */
uint32_t weft_graph_transpose(weft_graph *graph, const char *name, uint32_t x);
/** Row ids[.., 0] of the table for every element of ids, whose last extent is 1. Ids outside the table are faults. */
uint32_t weft_graph_gather(weft_graph *graph, const char *name, uint32_t table, uint32_t ids);
/** The block at `starts` of `extents`. */
uint32_t weft_graph_slice(weft_graph *graph, const char *name, uint32_t x, const uint64_t *starts,
                          const uint64_t *extents);
/** A value of `extents` that the operands tile, operand i at starts[i]. */
uint32_t weft_graph_assemble(weft_graph *graph, const char *name, const uint32_t *ins, uint32_t in_count,
                             const uint64_t (*starts)[WEFT_MAX_RANK], uint32_t rank, const uint64_t *extents);
/** A state: read from the dataset when that is given, else zero; what the last step leaves is written there. */
uint32_t weft_graph_state(weft_graph *graph, const char *name, weft_format dtype, uint32_t rank,
                          const uint64_t *extents);
/** What the step leaves of a state (a matrix): row or column at[0] replaced by the row x, the rest as it was. */
uint32_t weft_graph_update(weft_graph *graph, const char *name, uint32_t state, uint32_t x, uint32_t at, uint8_t axis);
/** The step leaves a copy of `value` in the state. */
uint32_t weft_graph_set_state(weft_graph *graph, uint32_t state, uint32_t value);
/** Sets the format a float value is stored in (one rounding). */
void weft_graph_store_as(weft_graph *graph, uint32_t value, weft_format dtype);
/** Makes a produced value an output called `name`. */
void weft_graph_output(weft_graph *graph, uint32_t value, const char *name);

/** A body from text in postfix order, in `arena`: $0 (operand), 2.5 (constant), add, sub, mul, div, min, max, floordiv,
 * exp, recip, silu, relu, ln, tanh, erf, rsqrt:EPS_NANO:OVER, shr:N, if (condition, then, otherwise), and selections
 * between two values by position: collt:8, colge:8, rowlt:8, rowge:8, with a bound from an operand collt:$1. No nodes:
 * the text is malformed. */
weft_body weft_body_write(weft_arena *arena, const char *text);

/* Low-level appends, used by the builder, by lifting and by the partitioner: copied into the graph's arena. */
uint32_t weft_graph_add_value(weft_graph *graph, const weft_value *value);
/** Appends the op and makes it the producer of op->out. Fills `factors` and maps from kind and extents when
 * factor_count is 0. */
uint32_t weft_graph_add_op(weft_graph *graph, const weft_graph_op *op);
/** Checks every invariant of a graph (ids, extents, formats, factors, coverage of ASSEMBLE, operands of ALL_REDUCE
 * covering 0..of once, partial values read only by ALL_REDUCE). */
weft_status weft_graph_check(const weft_graph *graph, weft_diag *diag);

/* ---- what a graph is turned into
 * ------------------------------------------------------------------------------------------ */

/** The value that a state's updated value stands for; the value itself otherwise. */
uint32_t weft_value_source(const weft_graph *graph, uint32_t value);

/** Interprets the graph: every dataset its INPUT and PARAM values name is taken from `in` (shards cut from the whole),
 * every OUTPUT is put into `out` (shards assembled into the whole). Arithmetic as in docs/arithmetic.md. Errors:
 * missing or misshapen arrays by name; integer that does not fit, with its place. */
weft_status weft_graph_interpret(const weft_graph *graph, const weft_array_set *in, weft_array_set *out,
                                 weft_diag *diag);
/** The same `steps` times, each step finding the states that the one before left, and the dataset `advance` (NULL:
 * none) one greater. */
weft_status weft_graph_interpret_steps(const weft_graph *graph, uint64_t steps, const char *advance,
                                       const weft_array_set *in, weft_array_set *out, weft_diag *diag);

/** Lowers a graph (of one chip or a machine graph) to a Template program: one section a section of the graph, over all
 * chips. Roles Input, Param, Activation, Output; stages of chip c have buffers placed at site (0, 0, c) when the graph
 * has more than one chip. The program validates. */
weft_status weft_graph_lower(const weft_graph *graph, weft_program **program, weft_diag *diag);

/** Lifts a Template back to a graph where its stages are recognised: ours and foreign ones, of one chip, of a whole
 * machine, or one chip's of a split. Value t of the graph is tensor t of the program, section s its section s; further
 * values live in buffers. WEFT_INVALID with the stage and the reason where a stage is not recognised; later phases are
 * refused: lift their Template. */
weft_status weft_graph_lift(const weft_program *program, weft_graph **graph, weft_diag *diag);

/** Appends a Graphviz picture: ops, values, chips as clusters. */
void weft_graph_dot(const weft_graph *graph, weft_text *text);

/* ---- sample programs (`weft new`)
 * ------------------------------------------------------------------------------------------ */

/** The declared range of a dataset called `name`. */
typedef struct weft_named_range {
  const char *name;
  int64_t low, high;
} weft_named_range;

typedef struct weft_mlp_options {
  const uint64_t *layers; /**< layer_count widths, e.g. 784,256,256,10 */
  uint32_t layer_count;   /**< at least 2 */
  uint64_t batch;
  weft_format dtype; /**< FP32, BF16, INT8 */
  bool bias, relu;   /**< relu after every layer but the last */
  bool relu_last;    /**< relu after the last layer */
  const int64_t
      *requant_m; /**< INT8: per layer; count layer_count - 1, or one less (last layer stays Int32), or 0: chosen */
  const uint32_t *requant_s;
  uint32_t requant_count;
  uint32_t segments;              /**< 0: canonical */
  const char *name;               /**< of the program; NULL: "mlp" */
  const char *input_name;         /**< NULL: "x" */
  const weft_named_range *ranges; /**< INT8: instead of -128..127 for x and w, -65536..65536 for b */
  uint32_t range_count;
} weft_mlp_options;
/** output_name = layers of x @ wI + bI, one section a layer; datasets x, w1.., b1.. BF16: x, w and what hidden layers
 * give are Bf16, biases and the result Fp32. INT8: x and w Int8, biases and the result of a last layer without requant
 * Int32; requantised layers end in a clamp (0..127 with relu, which the clamp then is; -128..127 without). Errors:
 * fewer than two widths, a requant count that fits no layers, other formats, ranges of datasets that do not exist. */
weft_status weft_graph_new_mlp(const weft_mlp_options *options, const char *output_name, weft_graph **graph,
                               weft_diag *diag);

/** Parts of transformers as programs of their own: identifier, name, help. Input x [rows, cols] (conv: one row), output
 * y. */
#define WEFT_SAMPLES(ROW)                                                                                              \
  ROW(rmsnorm, "rmsnorm", "y = x / sqrt(mean(x^2) + eps) * gain, row by row")                                          \
  ROW(layernorm, "layernorm", "y = (x - mean) / sqrt(variance + eps) * gain + shift, row by row")                      \
  ROW(softmax, "softmax", "y = exp(x - max) / sum, row by row")                                                        \
  ROW(gated_mlp, "gated-mlp", "y = (silu(x @ w_gate) * (x @ w_up)) @ w_down")                                          \
  ROW(rope, "rope", "y = x with every head rotated by position: tables cos, sin [rows, cols / heads / 2]")             \
  ROW(embedding, "embedding", "y = rows of the table [hidden, cols] by ids [rows, 1]")                                 \
  ROW(attention, "attention", "causal attention: x @ wq, wk, wv by heads, rotated, softmax, @ wo")                     \
  ROW(route, "route",                                                                                                  \
      "each row to the expert of hidden with the largest x @ router: y = x * gain + shift of its expert")              \
  ROW(conv, "conv", "a depthwise convolution of one row a step: the last hidden - 1 rows are a state")
#define WEFT_ENUM_SAMPLE(id, name, help) WEFT_SAMPLE_##id,
typedef enum weft_sample_kind { WEFT_SAMPLES(WEFT_ENUM_SAMPLE) WEFT_SAMPLE_COUNT } weft_sample_kind;
#undef WEFT_ENUM_SAMPLE

typedef struct weft_sample_options {
  uint64_t rows, cols;
  uint64_t hidden;          /**< gated-mlp: width inside; embedding: rows of the table; route: experts; conv: taps */
  uint64_t heads, kv_heads; /**< rope, attention */
  uint64_t eps_nano;        /**< norms: eps in billionths */
  weft_format dtype;        /**< of x and matrices: a float format; gains, shifts and y are Fp32 */
  const char *name;         /**< of the program; NULL: the sample's */
} weft_sample_options;
weft_status weft_graph_new_sample(weft_sample_kind kind, const weft_sample_options *options, weft_graph **graph,
                                  weft_diag *diag);

/** A decoder-only transformer of one token a step (`weft new decoder`): RMS norms, grouped-query attention with rotary
 * positions over keys and values kept as states, a gated network, the largest logit as the next token. Datasets:
 * tok_embed [vocabulary, width], layers.N.attn_norm, wq, wk, wv, wo, mlp_norm, w_gate, w_up, w_down, final_norm,
 * lm_head, rope_cos and rope_sin [context, head_size / 2], and prompt [prompt]. States: pos, token, text (text[0, p] is
 * the token that follows position p), layers.N.keys [kv_heads * head_size, context] and layers.N.values. Output: logits
 * of the step. Run for as many steps as there are tokens. */
typedef struct weft_decoder_options {
  uint64_t layers, width, heads, kv_heads, hidden, vocabulary, context, prompt;
  uint64_t head_size; /**< 0: width / heads */
  uint64_t eps_nano;
  weft_format dtype; /**< of matrices and what they multiply: a float format */
  bool trip; /**< pos is an Input [1, 1] (0 where it is not given) instead of a state, one greater at every step; values
                are read up to its unit of 32 only */
  const char *name;
} weft_decoder_options;
weft_status weft_graph_new_decoder(const weft_decoder_options *options, weft_graph **graph, weft_diag *diag);

#endif
