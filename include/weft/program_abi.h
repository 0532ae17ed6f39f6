/* weft/program_abi.h: the one header between emitted C and the runtime.
 *
 * An emitted program is a set of classes (structurally equal chips share one), each a C file of tables and one function
 * a section, and one program.c that lists them. Emitted code calls the operations declared here; everything that
 * differs between the chips of a class is in the chip's parameter row. Tensors are dense row-major arrays of true
 * extents; a tensor is named by its slot, its index in the class's tensor table. Arithmetic: docs/arithmetic.md. The
 * structs are laid out for static tables: enums are ints, all sizes 64 bits. WEFT_ABI_VERSION is raised when any of
 * them or any signature changes; program.c and the runtime both assert it. */
#ifndef WEFT_PROGRAM_ABI_H
#define WEFT_PROGRAM_ABI_H

#include <stddef.h>
#include <stdint.h>

#define WEFT_ABI_VERSION 6

/** One chip of a run: its tensors, parameters, transport, threads. Opaque to emitted code. */
typedef struct weft_chip weft_chip;

/* A series is a list of numbers of a chip. Written plainly it is that. Written as a ring it has four numbers, base,
 * stride, members and start, and number i is base + stride * ((start + i) mod members): the other chips of a group, or
 * the places of their blocks, seen from one of them. So the parameters of a chip do not grow with the chips. */

/** Lists of slots, for tables. */
#define WEFT_SLOTS(...) ((const int64_t[]){__VA_ARGS__, -1})
#define WEFT_NO_SLOTS ((const int64_t[]){-1})

/** Values of `format` are weft_format's (weft/format.h), of `role` weft_tensor_role's (weft/ir.h). */
typedef struct weft_abi_tensor {
  const char *name;    /**< of the local tensor, for messages and traces */
  const char *dataset; /**< dataset read or written; NULL: neither (activations, received tensors) */
  int format;
  int role;            /**< Input, Param: read before the first step; Output: written after the last; State: both */
  uint64_t rows, cols; /**< local block */
  /** Whole dataset: extents and its plane; the block's place in it is parameter `place` (row0) and `place` + 1 (col0),
   * and `place` + 2 is 1 when this chip writes it. */
  int rank;
  uint64_t extents[8];
  int64_t place; /**< parameter index, or -1 with the block being the whole and written */
  int fill; /**< used where the input lacks the dataset. 0 external; 1 zero; 2 constant `fill_value` (double bits); 3
               pattern fill_value = modulus, fill_shift; 4 values in `values` (int64), 5 float values in `values`
               (double bits), 6 bf16 random: seed, shift_milli */
  uint64_t fill_value;
  int64_t fill_shift;
  const void *values;
  /** 0: rows and cols are as written. Else the index of a parameter (never the first): the chip's rows; its cols
   * follow. */
  int64_t size;
  int has_range; /**< integers of the dataset are from low to high, as the program declares */
  int64_t low, high;
} weft_abi_tensor;

/** What happens to a folded value before it is stored, in order. */
typedef enum weft_abi_epilogue_kind {
  WEFT_EPILOGUE_BIAS,    /**< + operand's element of the column (operand is 1 x cols) */
  WEFT_EPILOGUE_RELU,    /**< maximum(x, 0) */
  WEFT_EPILOGUE_REQUANT, /**< floor(x * m / 2^s) */
  WEFT_EPILOGUE_CLAMP,   /**< minimum(maximum(x, low), high) */
} weft_abi_epilogue_kind;
typedef struct weft_abi_epilogue {
  int kind;
  int64_t operand; /**< BIAS: slot */
  int64_t m, s;    /**< REQUANT; CLAMP: low, high */
  int bits;        /**< 32: an integer that leaves 32 bits here is a fault; 0: what is stored is checked */
} weft_abi_epilogue;

/** out[m x n] = epilogue(fold over k of a[m x k] * b[k x n]); extents are those of the operands' blocks. */
typedef struct weft_abi_product {
  int64_t a, b, out; /**< slots */
  uint64_t m, n, k;
  uint64_t a_row, a_col; /**< where the operand's block starts in its tensor */
  uint64_t b_row, b_col;
  int acc;           /**< weft_acc_policy */
  uint32_t segments; /**< of this k */
  int64_t position;  /**< 1 + the slot whose one element says in which unit of 32 of k the fold ends; 0: it takes all */
  uint32_t epilogue_count;
  const weft_abi_epilogue *epilogue;
} weft_abi_product;
void weft_product(weft_chip *chip, const weft_abi_product *product);

/** One node of a body in post-order; as weft_body_node (weft/ir.h). Positions of a Select are those in the result (in
 * the row that is folded). */
typedef struct weft_abi_node {
  int kind; /**< weft_body_kind */
  int sfpu; /**< weft_sfpu_kind */
  uint32_t child[3];
  uint64_t value; /**< operand index, constant's double bits, shift; SELECT: the bound, or the operand that has it */
  uint64_t eps_nano, over;
  int var;               /**< SELECT: 5 row, 6 column */
  int ge, operand_bound; /**< SELECT: at or above the bound instead of below; the bound is an operand's value */
} weft_abi_node;
typedef struct weft_abi_operand {
  int64_t tensor;
  int64_t row_stride, col_stride; /**< elements; 0 broadcasts */
  int64_t offset;
} weft_abi_operand;
/** out[r, c] = body(operands at (r, c)), stored in out's format. */
typedef struct weft_abi_pointwise {
  int64_t out;
  uint32_t operand_count;
  const weft_abi_operand *operands;
  uint32_t node_count;
  const weft_abi_node *nodes;
} weft_abi_pointwise;
void weft_pointwise(weft_chip *chip, const weft_abi_pointwise *pointwise);

/** out[r, 0] = fold with `pool` over c below cols of body(operands at (r, c)). */
typedef struct weft_abi_reduce {
  int64_t out;
  uint64_t cols;
  int pool;          /**< weft_pool: SUM, MAX, MIN, ARG_MAX */
  uint32_t segments; /**< of a Sum of floats; 0: one ascending chain */
  uint32_t operand_count;
  const weft_abi_operand *operands;
  uint32_t node_count;
  const weft_abi_node *nodes;
} weft_abi_reduce;
void weft_reduce(weft_chip *chip, const weft_abi_reduce *reduce);

/** out[c, r] = from[r, c]. */
typedef struct weft_abi_transpose {
  int64_t from, out;
} weft_abi_transpose;
void weft_transpose(weft_chip *chip, const weft_abi_transpose *transpose);

/** Row r of out is row ids[r, 0] - low of the table; -0 where the table, a part of the whole, has no such row. Ids
 * outside 0 to high are faults. */
typedef struct weft_abi_gather {
  int64_t table, ids, out;
  int64_t low, high;
} weft_abi_gather;
void weft_gather(weft_chip *chip, const weft_abi_gather *gather);

/** Row (axis 0) or column (axis 1) number `at`, the only element of that tensor, of the state becomes the row x. */
typedef struct weft_abi_update {
  int64_t state, x, at;
  int axis;
} weft_abi_update;
void weft_update(weft_chip *chip, const weft_abi_update *update);

/** Copies the rows x cols block at (from_row, from_col) of `from` to (to_row, to_col) of `to`: slices and assemblies.
 */
typedef struct weft_abi_copy {
  int64_t from, to;
  uint64_t from_row, from_col, to_row, to_col, rows, cols;
} weft_abi_copy;
void weft_copy(weft_chip *chip, const weft_abi_copy *copies, uint32_t count);

/** Puts the tensors in slots from[0], from[1], ... from[count - 1] whole into `to`: number i at row number i of the
 * series `row`, column number i of the series `col` (NULL: all at 0). */
typedef struct weft_abi_assemble {
  const int64_t *from;
  uint32_t count;
  int64_t to;
  int ring; /**< how the series are written */
  const int64_t *row, *col;
} weft_abi_assemble;
void weft_assemble(weft_chip *chip, const weft_abi_assemble *assemble);

/** A crossing of a link: the tensor in slot `tensor` goes to, or comes from, the chip in parameter `peer`. With a
 * `count` above 1 as many crossings: number i of the tensor in slot tensor + i * step, with the chip that is number i
 * of the series that begins at parameter `peer`. */
typedef struct weft_abi_crossing {
  int64_t tensor;
  int64_t peer; /**< parameter index */
  uint32_t count;
  int step; /**< 0: one tensor for all; 1: consecutive slots */
  int ring; /**< how the series is written */
} weft_abi_crossing;
/** A link point: all sends leave and all receives arrive before a later step uses them. */
typedef struct weft_abi_link {
  const weft_abi_crossing *sends;
  uint32_t send_count;
  const weft_abi_crossing *receives;
  uint32_t receive_count;
} weft_abi_link;

/** An all-reduce over chips: the nodes' partials folded in tree order (format.h: the tree over `of` leaves, nodes
 * aligned complete subtrees), then the epilogue, stored in `out` of every reader. */
typedef struct weft_abi_all_reduce {
  int64_t out; /**< slot, or -1: this chip holds nodes but does not read the result */
  int pool;    /**< weft_pool: SUM, MAX, MIN */
  int format;  /**< of the partials: Fp32, Int32, Int64 */
  uint64_t rows, cols;
  uint32_t of; /**< segments in all */
  uint32_t node_count;
  const uint32_t *first; /**< by node: its first segment */
  const uint32_t *count; /**< by node: its segments */
  int64_t node_chip;     /**< parameter index of node_count parameters: the chip that holds each node */
  int64_t node_slot;     /**< parameter index of node_count parameters: the local slot of a node held here, else -1 */
  uint32_t reader_count;
  int64_t reader_chip; /**< parameter index of reader_count parameters: the chips that read the result, ascending */
  uint32_t epilogue_count;
  const weft_abi_epilogue *epilogue;
} weft_abi_all_reduce;

/** A section that no operation above fits runs through the evaluator: the dump of a Scheduled program whose Input and
 * Param tensors are read from, and Output tensors written to, the slots given by name. */
typedef struct weft_abi_walk {
  const char *dump;
  uint64_t dump_length;
  const char *const *tensors; /**< names in the dump */
  const int64_t *slots;
  uint32_t tensor_count;
} weft_abi_walk;
void weft_walk(weft_chip *chip, const weft_abi_walk *walk);

typedef enum weft_abi_step_kind { WEFT_STEP_SECTION, WEFT_STEP_LINK, WEFT_STEP_ALL_REDUCE } weft_abi_step_kind;
typedef struct weft_abi_step {
  int kind;
  const char *name; /**< section or crossing, for messages */
  /** SECTION: `p` is the step's part of the chip's parameter row, `s` are the slots the function works on. Steps that
   * do the same share a function. */
  void (*section)(weft_chip *chip, const int64_t *p, const int64_t *s);
  const int64_t *slots;                  /**< SECTION: `s` */
  uint64_t parameter;                    /**< SECTION: where the step's part of the row begins */
  const weft_abi_link *link;             /**< LINK */
  const weft_abi_all_reduce *all_reduce; /**< ALL_REDUCE */
  /** Slots the step reads and writes, each list ended by -1: what lets a link overlap steps that do not need it. */
  const int64_t *reads;
  const int64_t *writes;
  double flops; /**< of one run on one chip, for --stats */
  int64_t work; /**< 0, or the parameter (never the first) that has the flops, where chips differ */
} weft_abi_step;

typedef struct weft_abi_class {
  uint64_t hash; /**< of the class's text: all ranks compare the combination of all classes */
  const weft_abi_tensor *tensors;
  uint32_t tensor_count;
  const weft_abi_step *steps;
  uint32_t step_count;
  uint32_t parameter_count;
  const int64_t *parameters; /**< chip_count rows */
  uint32_t chip_count;
  const uint16_t *chips; /**< ascending; row i of `parameters` is chips[i]'s */
} weft_abi_class;

typedef struct weft_abi_program {
  uint32_t abi_version;
  uint32_t arithmetic;
  const char *name;
  uint32_t chips;
  uint32_t class_count;
  const weft_abi_class *const *classes;
} weft_abi_program;

/** main of `out/run` (one rank a chip over MPI) and of `out/run-local` (all chips as threads of one process). Returns
 * the exit status. Options: --in, --out, --steps, --dry-run, --map, --stats, --timeout, --help. */
int weft_main_mpi(const weft_abi_program *program, int argc, char **argv);
int weft_main_local(const weft_abi_program *program, int argc, char **argv);

#endif
