/* The loops and branches that a lowered token graph came from, found again in its wiring. */
#ifndef WEFT_DATAFLOW_EMIT_FRAMES_H
#define WEFT_DATAFLOW_EMIT_FRAMES_H

#include "emit_private.h"

/* A branch taken: ops in it run when the selector has this lane. */
typedef struct lane lane;
struct lane {
  lane *outer; /* NULL: the frame itself */
  lane *next;  /* of the same selector */
  const weft_mlir_value *selector;
  uint32_t number;
};

typedef enum frame_kind { FRAME_ROOT, FRAME_FOR, FRAME_WHILE } frame_kind;

/* The body of a loop, or the graph itself: what runs once a round. */
typedef struct frame frame;
struct frame {
  frame_kind kind;
  uint32_t number;
  frame *parent;
  lane *guard;                     /* where the loop stands in its parent */
  bool placed;                     /* parent and guard are known */
  const weft_mlir_op *stream;      /* of a for */
  const weft_mlir_value *selector; /* of a while */
  uint32_t depth;
  uint32_t *members; /* ops of the frame itself, by number, in order of the program */
  uint32_t member_count;
  frame *first_child, *sibling;
  uint32_t *order; /* nodes in order: an op's number, or op_count + a frame's */
  uint32_t order_count;
};

/* What rate a value has. */
typedef enum rate {
  RATE_UNKNOWN,
  RATE_PLACE,  /* one token each time its place runs */
  RATE_PHASE,  /* one a round of a for and one at its end */
  RATE_RETIRE, /* of the network that retires a while: order only */
} rate;

typedef struct value_facts {
  rate rate;
  frame *frame;
  lane *lane;
  const weft_mlir_value *alias; /* the value whose variable it shares */
} value_facts;

typedef struct frames {
  emitter *e;
  const weft_mlir_op *graph;
  weft_mlir_op **ops;
  uint32_t op_count, value_count;
  value_facts *values; /* by mark */
  frame **op_frames;   /* of each op */
  lane **op_lanes;
  frame **list;
  uint32_t frame_count;
  lane **lanes; /* by mark of the selector */
} frames;

/* Numbers ops and values, finds frames, places and aliases; false when the wiring is not that of structured control. */
bool frames_find(frames *f);
/* Orders the nodes of every frame; false when that is not possible. */
bool frames_order(frames *f);
/* The value whose variable `value` shares. */
const weft_mlir_value *frames_alias(const frames *f, const weft_mlir_value *value);

#endif
