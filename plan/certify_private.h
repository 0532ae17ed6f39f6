/* Private to the certificate: a run with tokens in place of data.
 *
 * What is proved and why one run is enough: docs/certificate.md. Numbers C1.. in comments are its claims. */
#ifndef WEFT_PLAN_CERTIFY_PRIVATE_H
#define WEFT_PLAN_CERTIFY_PRIVATE_H

#include "internal.h"

#define ANY UINT64_MAX        /**< a tag's variable that the data do not depend on */
#define NEVER UINT32_MAX      /**< the time of what has not happened */
#define STEP_LIMIT 2000000000 /**< steps of a run at most: times are 32 bits */

/** Which turn of the walk the data of a page belong to (C6). */
typedef struct walk_tag {
  uint64_t item, sub_h, sub_w, block;
} walk_tag;

typedef struct token_page {
  walk_tag tag;
  uint64_t tiles;
  uint64_t k_begin, k_end;             /**< blocks folded into it, of a spilled sum or a carry */
  bool filled, reading, writing, used; /**< used: filled at least once */
  uint32_t fill_engine, fill_time;
} token_page;

/** Knowledge of the component's engines: their times, by index in the component. */
typedef uint32_t *clock_vector;

typedef struct token_ring {
  token_page *pages;
  clock_vector *push_clocks, *pop_clocks; /**< by slot */
  uint64_t depth, pushed, popped, reserved, filled, waited;
  uint32_t producer, consumer;                 /**< engines, or WEFT_NONE so far */
  uint32_t waiting_producer, waiting_consumer; /**< engines that block here */
  uint32_t reserve_time;                       /**< of the producer's last Reserve */
  uint32_t pop_time, pop_phase;                /**< of the consumer's last Pop */
  uint32_t next_alias;                         /**< buffers that share its memory, in a circle */
  bool carry;
  uint32_t updater;    /**< of a carry: its stage */
  uint64_t all_blocks; /**< of a carry: blocks its fold takes, ANY when no Load tells */
} token_ring;

typedef struct token_frame {
  const weft_op *ops;
  uint64_t count, next;
  uint32_t var;
  uint64_t turn, turns;
  const uint32_t *items;
} token_frame;

typedef struct token_acc {
  bool acquired, computed, k_known;
  uint64_t tiles;
  uint32_t stage; /**< that computed last */
  uint32_t holds; /**< accumulator buffer its value stands for, or WEFT_NONE */
  walk_tag tag;
  uint64_t k_begin, k_end;
} token_acc;

/** A transfer that has not passed its barrier. */
typedef struct transfer {
  const weft_op *op;
  uint64_t base;
  uint32_t buffer;
  uint64_t slot;
} transfer;

typedef struct token_engine {
  const weft_engine_program *program;
  token_frame *frames;
  uint64_t frame_count, frame_capacity;
  token_acc acc;
  transfer *reads, *writes;
  uint64_t read_count, read_capacity, write_count, write_capacity;
  uint64_t *rounds; /**< by group; NULL before the first barrier */
  bool at_barrier, queued, finished;
  bool listed;    /**< among the waiters of a semaphore or group */
  uint32_t phase; /**< rendezvous passed */
  uint32_t time;
  uint32_t component, index; /**< where its time stands in clocks */
  clock_vector clock;
  uint32_t next_waiter;
} token_engine;

/** One instance of a semaphore that is no rendezvous. */
typedef struct token_semaphore {
  uint64_t value;
  uint32_t set_engine, set_time; /**< the last set; WEFT_NONE before the first */
  clock_vector set_clock;
  uint64_t low;                        /**< what the last set left */
  uint32_t before_engine, before_time; /**< the set before the last */
  uint64_t before_low, before_high;    /**< values between the two */
  clock_vector inc_clock;              /**< joined over the increments since */
  clock_vector accesses;               /**< time of each engine's last access since */
  bool matched;                        /**< an Equals wait has succeeded since the last set */
  bool reached;                        /**< an AtLeast wait has, and knows of all increments so far */
  uint32_t waiters;                    /**< engines that block here, linked by next_waiter */
} token_semaphore;

typedef struct token_group {
  uint64_t participants, arrived;
  clock_vector gathering, done;
  uint32_t waiters;
  uint32_t *members; /**< buffers of sender and receivers */
  uint64_t member_count, member_capacity;
} token_group;

typedef struct tile_write {
  uint32_t engine, time; /**< NEVER: not past its barrier */
  uint32_t phase;
  uint32_t section; /**< plus 1; 0: not written */
} tile_write;

/** A read of a tile of a State, in the phase it was made in. */
typedef struct tile_read {
  struct tile_read *next;
  uint32_t engine, time, phase;
} tile_read;

typedef struct token_tensor {
  tile_write *writes;      /**< of written tensors, else NULL */
  tile_read **reads;       /**< of States that are written, else NULL */
  uint64_t received_phase; /**< first phase in which a link has filled it; UINT64_MAX: no link does */
} token_tensor;

typedef enum token_step { TOKEN_DONE, TOKEN_BLOCKED, TOKEN_REFUSED } token_step;

typedef struct token_machine {
  const weft_program *program;
  weft_diag *diag;
  weft_arena *arena;
  const plan_ports *ports;
  const uint32_t *section_of; /**< by stage; 0 without sections */
  const uint64_t *phase_of_section;
  token_engine *engines;
  uint64_t engine_count;
  uint32_t *engine_of_stage;
  const uint8_t *levels; /**< by stage: its level in the fold over K blocks */
  uint32_t *component_size;
  token_ring *rings;
  token_semaphore **semaphores; /**< by semaphore and place in its list of sites */
  token_group *groups;
  token_tensor *tensors;
  uint64_t *trip_counts;
  uint32_t *queue; /**< engines that may go on: a ring of engine_count */
  uint64_t queue_begin, queue_count;
  uint64_t *load_counts; /**< by stage: reads so far */
  uint64_t steps, tiles_written;
  tile_read *free_reads;
  weft_status status;
} token_machine;

/* ---- refusals: certify_refuse.c ---- */

/** Adds "ENGINE, op OP of stage `S`, section `N`: ..." and returns TOKEN_REFUSED. */
token_step token_refuse(token_machine *m, const token_engine *e, const weft_op *op, const char *format, ...)
    WEFT_PRINTF(4, 5);
token_step token_no_memory(token_machine *m);
/** The message of a run that cannot go on: the cycle of who waits for whom (C1). */
weft_status token_deadlock(token_machine *m);

/* ---- time: certify_clock.c ---- */

/** Groups engines that hand pages, flags or barriers to each other; clocks have one entry an engine of the group. */
bool clocks_make(token_machine *m);
clock_vector clock_new(token_machine *m, uint32_t component);
void clock_join(const token_machine *m, token_engine *e, const uint32_t *other);
void clock_copy(const token_machine *m, const token_engine *e, uint32_t *to);
void clock_merge(const token_machine *m, const token_engine *e, uint32_t *into);
/** Whether what engine `by` did at `time` in `phase` is ordered before what `e` does now. */
bool happened_before(const token_machine *m, const token_engine *e, uint32_t by, uint32_t time, uint32_t phase);

/* ---- pages: certify_pages.c ---- */

token_step token_page_op(token_machine *m, token_engine *e, const weft_op *op);
token_page *token_fill_page(token_machine *m, token_engine *e, const weft_op *op, uint32_t buffer);
token_page *token_front_page(token_machine *m, token_engine *e, const weft_op *op, uint32_t buffer);
/** Takes the narrower of two tags; false when they name different turns. */
bool tag_join(walk_tag *tag, const walk_tag *other);
walk_tag tag_any(void);

/* ---- tensors: certify_tensors.c ---- */

bool tensors_prepare(token_machine *m);
token_step token_read_tiles(token_machine *m, token_engine *e, const weft_op *op);
token_step token_read_barrier(token_machine *m, token_engine *e, const weft_op *op);
token_step token_write_tiles(token_machine *m, token_engine *e, const weft_op *op);
token_step token_write_barrier(token_machine *m, token_engine *e, const weft_op *op);
/** Every tile that must be written is; what a link sends is written before it (C4, C8). */
weft_status tensors_complete(token_machine *m);

/* ---- the accumulator: certify_acc.c ---- */

token_step token_acquire(token_machine *m, token_engine *e, const weft_op *op);
token_step token_release(token_machine *m, token_engine *e, const weft_op *op);
token_step token_compute(token_machine *m, token_engine *e, const weft_op *op);
token_step token_pack(token_machine *m, token_engine *e, const weft_op *op);

/* ---- semaphores: certify_semaphores.c ---- */

bool token_semaphores_make(token_machine *m);
token_step token_semaphore_op(token_machine *m, token_engine *e, const weft_op *op);
token_step token_multicast(token_machine *m, token_engine *e, const weft_op *op);
token_step token_group_barrier(token_machine *m, token_engine *e, const weft_op *op);

/* ---- the run: certify_run.c ---- */

weft_status token_run(token_machine *m);
void token_wake(token_machine *m, uint32_t engine);
const weft_op *token_next_op(token_engine *e);
/** The value of a loop variable; *bound tells whether a loop around has it. */
uint64_t token_variable(const token_machine *m, const token_engine *e, uint32_t var, bool *bound);

/* ---- without a run ---- */

/** Aliases of buffers of other phases lie apart from what their own phase has (C13): certify_memory.c. */
weft_status certify_memory(const weft_program *program, weft_arena *arena, weft_diag *diag);

/** Every op is one that its stage declares (C5): certify_static.c. */
weft_status certify_ops(const weft_program *program, const plan_ports *ports, uint64_t *op_count, weft_diag *diag);
/** Every partial sum is reduced or sent (C9): certify_partial.c. */
weft_status certify_partials(const weft_program *program, const plan_ports *ports, const uint32_t *section_of,
                             bool *proved, weft_diag *diag);
/** Integer sums and packed values fit (C10); what is not proved becomes a note: certify_ranges.c. */
weft_status certify_ranges(const weft_program *program, const plan_ports *ports, weft_diag *diag);

#endif
