/* Private to synthesize_handshakes: op lists, engines, and the ops of one unit. */
#ifndef WEFT_PLAN_SYNTHESIZE_H
#define WEFT_PLAN_SYNTHESIZE_H

#include "internal.h"

/** Ops in the order they are added: they stay where they are, so that a list that grows leaves nothing behind. */
typedef struct op_block {
  struct op_block *next;
  uint64_t count, capacity;
  weft_op ops[];
} op_block;

typedef struct op_list {
  op_block *first, *last;
  uint64_t count;
  bool lasting; /**< an engine's: other lists end with the unit they are made for */
} op_list;

typedef struct synthesizer {
  weft_program *program;
  const weft_target *target;
  weft_diag *diag;
  weft_arena *arena, *scratch;
  weft_arena *passing; /**< lists that end with their unit */
  plan_units units;
  plan_ports *ports;
  const uint8_t *levels;
  plan_engines engines;
  op_list *ops;   /**< by engine */
  uint64_t *tags; /**< by engine: index of the stage that the next rendezvous is tagged with */
  bool *done;     /**< by stage: emitted with another one */
  uint32_t *ready_of_group, *valid_of_group; /**< semaphores of each group's operand in its section */
  bool failed;                               /**< without memory */
} synthesizer;

/** Appends an op; never NULL (without memory it is one that goes nowhere, and `failed` is set). */
weft_op *synth_add(synthesizer *s, op_list *list, uint32_t stage, weft_choreo_kind kind);
/** Appends copies of the ops of `from`. */
void synth_append(synthesizer *s, op_list *list, const op_list *from);
/** The ops of the list one after another in the program's memory, or NULL, and `failed` is set. */
const weft_op *synth_in_program(synthesizer *s, const op_list *list);
/** Reserve, Push, Wait or Pop of one page. */
void synth_page(synthesizer *s, op_list *list, uint32_t stage, weft_choreo_kind kind, uint32_t buffer);
/** A loop over `body`; nothing when the body is empty. */
void synth_loop(synthesizer *s, op_list *list, uint32_t stage, uint32_t var, uint64_t count, const op_list *body);
/** The loop over K blocks: to the trip of `product`, else to the program's, when there is one; no loop at all for a
 * single block. `product` is the product whose blocks they are, or NULL. */
void synth_k_loop(synthesizer *s, op_list *list, uint32_t stage, const weft_matmul_tiles *product, uint64_t count,
                  const op_list *body);

/** Gives every section with groups a pair of semaphores an operand, and turns edges from senders to receivers into
 * theirs. */
weft_status synth_semaphores(synthesizer *s);
/** Guards between buffers that share memory, put into the engines' finished lists. */
weft_status synth_guards(synthesizer *s);
/** The ops of one placed unit, appended to its engines. */
weft_status synth_unit(synthesizer *s, const plan_unit *unit);

#endif
