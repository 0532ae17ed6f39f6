/* Private to the evaluator: a machine of engines, rings of real pages, semaphores, accumulators, tensors.
 *
 * It does what the ops say, one after the other, and faults where hardware would go wrong silently. Values that do not
 * exist (an integer that does not fit, a division by zero) are kept as faulty elements: positions outside the extents
 * of a stored tensor may hold them, and only storing or looking one up is a fault. */
#ifndef WEFT_PLAN_EVALUATE_PRIVATE_H
#define WEFT_PLAN_EVALUATE_PRIVATE_H

#include "internal.h"

/* ---- tensors ---- */

typedef enum tile_state { TILE_EMPTY, TILE_IN_FLIGHT, TILE_WRITTEN } tile_state;

typedef struct tensor_state {
  uint8_t *data;        /**< dense, of true extents */
  uint8_t *tiles;       /**< tile_state by tile */
  uint64_t *section_of; /**< section that wrote the tile last, plus 1; of States only, else NULL */
} tensor_state;

/* ---- pages ---- */

/** What a page or an accumulator holds besides its elements. */
typedef struct extra {
  uint32_t *faults; /**< by element, 0 none; NULL: none at all */
  uint8_t *written; /**< by element: set by an indirect output map; NULL: all are */
} extra;

typedef struct page {
  uint8_t *data;
  uint64_t tiles;        /**< that the fill brought */
  uint32_t *rows, *cols; /**< elements of each tile inside the extents of what it was read from */
  extra more;
  bool filled;
  bool reading;    /**< a read of it has not passed its barrier */
  bool writing;    /**< a write from it has not passed its barrier */
  uint64_t k_done; /**< of a spilled fold: elements folded, partial results that stand below the last one */
  uint32_t depth;
} page;

typedef struct ring {
  page *pages;
  uint64_t depth;
  uint64_t pushed, popped;
  uint64_t reserved;   /**< not yet pushed */
  uint64_t filled;     /**< of those, written */
  uint64_t waited;     /**< front pages the reader has waited for */
  uint32_t next_alias; /**< rings that share its memory, in a circle */
} ring;

/* ---- engines ---- */

typedef struct frame {
  const weft_op *ops;
  uint64_t count, next;
  uint32_t var;
  uint64_t turn, turns;
  const uint32_t *items; /**< an item loop: the items its turns stand for */
} frame;

typedef enum fold_kind { FOLD_FLOAT, FOLD_INTEGER } fold_kind;

/** Subtrees of a fold that may stand at once, one a bit of the number of segments, and the running segment. */
#define FOLD_LEVELS 34

/** The accumulator of a compute engine. Float results have `levels` values an element: the running one is the last. */
typedef struct accumulator {
  bool acquired;
  uint64_t tiles, capacity;
  fold_kind kind;
  bool computed;
  float *values[FOLD_LEVELS];
  int64_t *integers;
  float *wide[2]; /**< the operands of the product at hand, widened */
  int64_t *wide_whole[2];
  uint64_t wide_capacity[2]; /**< elements */
  uint32_t *rows, *cols;
  extra more;
  const weft_op *narrow; /**< of a product into 32 bits that is not judged yet; NULL: none */
  uint64_t k_done, k_total;
  uint32_t segments, segment; /**< of an unfinished product; 0 when there is none */
  uint32_t depth;             /**< subtrees that stand below the running segment */
} accumulator;

typedef struct pending {
  const weft_op *op;
  uint64_t base; /**< first tile */
  uint32_t buffer;
  uint64_t slot;
  bool applied;
} pending;

typedef struct engine {
  const weft_engine_program *program;
  frame *frames;
  uint64_t frame_count, frame_capacity;
  accumulator acc;
  pending *reads, *writes;
  uint64_t read_count, read_capacity, write_count, write_capacity;
  uint64_t *rounds; /**< by group: barriers arrived at; NULL before the first */
  bool at_barrier;
  uint64_t site; /**< index in `sites` */
} engine;

typedef enum step_result { STEP_DONE, STEP_BLOCKED, STEP_FAULT } step_result;

typedef struct group_state {
  uint64_t participants, arrived;
} group_state;

typedef struct machine {
  const weft_program *program;
  weft_diag *diag;
  weft_arena *arena;
  const weft_evaluate_options *options;
  uint64_t random;
  plan_ports *ports;
  tensor_state *tensors;
  ring *rings;
  engine *engines;
  uint64_t engine_count;
  weft_site *sites;
  uint64_t site_count;
  uint64_t **semaphores; /**< by semaphore, by index in its own list of sites */
  group_state *groups;
  uint32_t **members; /**< by group: the buffers its sender's pages are copied to */
  uint64_t *member_counts;
  uint64_t *trip_counts;
  uint64_t *matmul_k; /**< by stage */
  weft_text *faults;  /**< texts of faulty elements: number n at index n - 1 */
  uint64_t fault_count, fault_capacity;
  weft_status status; /**< of a fault */
} machine;

/** Adds "ENGINE, op OP of stage `S`: ..." and returns STEP_FAULT. */
step_result machine_fault(machine *m, const engine *e, const weft_op *op, const char *format, ...) WEFT_PRINTF(4, 5);
step_result machine_no_memory(machine *m);
/** The number of a faulty element's text, for this op: equal texts of one stage share one. */
uint32_t machine_element_fault(machine *m, const weft_op *op, const char *what);
/** Faults with the text of a faulty element. */
step_result machine_faulty(machine *m, const engine *e, const weft_op *op, uint32_t number);

uint64_t machine_tile_elements(const machine *m);
bool machine_coin(machine *m);
/** The value of a loop variable: 0 outside its loops. */
uint64_t machine_variable(const machine *m, const engine *e, uint32_t var);

/* ---- tensors: evaluate_tensors.c ---- */

weft_status tensors_make(machine *m);
/** Fills what starts filled from `in`, or from fills; empties the rest. */
weft_status tensors_load(machine *m, const weft_array_set *in);
/** Forgets activations and outputs, keeps states: the next step begins. */
void tensors_reset(machine *m);
weft_status tensors_check(const machine *m);
weft_status tensors_store(const machine *m, weft_array_set *out);
/** Element `index` (row-major over true extents) of an integer tensor. */
/** Adds 1 to the elements of the Input that options->advance names; that there is one. */
weft_status tensors_advance(machine *m);
weft_status tensors_check_advance(const machine *m);
int64_t tensor_integer(const machine *m, uint32_t tensor, uint64_t index);

/* ---- moves: evaluate_moves.c ---- */

step_result step_page_op(machine *m, engine *e, const weft_op *op);
step_result step_read_tiles(machine *m, engine *e, const weft_op *op);
step_result step_read_barrier(machine *m, engine *e, const weft_op *op);
step_result step_write_tiles(machine *m, engine *e, const weft_op *op);
step_result step_write_barrier(machine *m, engine *e, const weft_op *op);
step_result step_multicast(machine *m, engine *e, const weft_op *op);
/** The page that the next fill of a buffer goes to, NULL (with a fault) when none is reserved. */
page *ring_fill_page(machine *m, const engine *e, const weft_op *op, uint32_t buffer);
/** The front page, NULL (with a fault) when it has not been waited for. */
page *ring_front_page(machine *m, const engine *e, const weft_op *op, uint32_t buffer);
/** Forgets what the page held beside its elements. */
void page_clear(page *p);
/** Makes room for fault numbers (or written marks) of `elements` elements, all 0. */
bool extra_faults(machine *m, extra *x, uint64_t elements);
bool extra_written(machine *m, extra *x, uint64_t elements);

/* ---- semaphores: evaluate_semaphores.c ---- */

bool semaphores_make(machine *m);
void semaphores_reset(machine *m);
step_result step_semaphore(machine *m, engine *e, const weft_op *op);
step_result step_group_barrier(machine *m, engine *e, const weft_op *op);

/* ---- the accumulator: evaluate_acc.c, evaluate_product.c ---- */

step_result step_acquire(machine *m, engine *e, const weft_op *op);
step_result step_release(machine *m, engine *e, const weft_op *op);
step_result step_pack(machine *m, engine *e, const weft_op *op);
step_result step_compute(machine *m, engine *e, const weft_op *op);
step_result compute_product(machine *m, engine *e, const weft_op *op, const weft_stage *stage);
/** Folds what an unfinished product left on its levels into the result. */
bool product_finish(machine *m, accumulator *acc);

/* ---- generic and scalar bodies: evaluate_generic.c, evaluate_body.c ---- */

/** An operand as a plane: a page, or the accumulator itself. */
typedef struct plane {
  const page *source; /**< NULL: `copy` */
  weft_format format;
  uint64_t rows, cols; /**< elements */
  const float *floats; /**< of an accumulator, copied before it is overwritten */
  const int64_t *integers;
  const uint32_t *faults;
} plane;

/** A value of a body: one of the two, by the mode. */
typedef struct body_value {
  float f;
  int64_t i;
  uint32_t fault;
} body_value;

/** What a body is evaluated at: operands' values, and the variables of the iteration space. */
typedef struct body_point {
  const body_value *operands;
  const int64_t *bounds; /**< operands as whole numbers, for predicates */
  const bool *bound_whole;
  uint64_t operand_count;
  const uint32_t *vars;
  const uint64_t *at;
  uint64_t var_count;
} body_point;

step_result compute_generic(machine *m, engine *e, const weft_op *op, const weft_generic *generic);
step_result compute_scalar(machine *m, engine *e, const weft_op *op, const weft_scalar_body *body);
/** Whether the body is integer arithmetic: no unary node but none, no Div, every constant whole and below 2^53. */
bool body_is_integral(const weft_body *body);
/** Evaluates the body; `values` has room for every node. */
body_value body_evaluate(machine *m, const weft_op *op, const weft_body *body, bool integer, const body_point *point,
                         body_value *values);

#endif
