/* What a picture of a token graph is drawn from. */
#ifndef WEFT_DATAFLOW_EMIT_PICTURE_PRIVATE_H
#define WEFT_DATAFLOW_EMIT_PICTURE_PRIVATE_H

#include "frames.h"

/* A box around ops: a loop, a branch taken, or, where neither is known, a ring of ops that feed each other. */
typedef struct picture_box {
  struct picture_box *outer; /* NULL: the graph itself */
  struct picture_box *first_inner, *next;
  const char *title;
  bool lane;
  uint32_t number;
  uint32_t *members, member_count;
} picture_box;

typedef struct picture {
  weft_arena *arena;
  const weft_mlir_op *graph;
  weft_mlir_op **ops; /* by mark */
  uint32_t op_count;
  picture_box root;
  picture_box **boxes; /* of each op; never NULL */
  uint32_t box_count;
} picture;

/* A new box inside `outer`; NULL when memory is exhausted. */
picture_box *picture_add_box(picture *p, picture_box *outer, bool branch, const char *title);
/* Boxes from loops and branches that were found; from rings of ops. False when memory is exhausted. */
bool picture_box_frames(picture *p, const frames *f);
bool picture_box_rings(picture *p);

#endif
