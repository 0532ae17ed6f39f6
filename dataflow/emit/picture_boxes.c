/* The boxes of a picture: loops and branches, or rings. */
#include "picture_private.h"

picture_box *picture_add_box(picture *p, picture_box *outer, bool branch, const char *title) {
  picture_box *made = title ? WEFT_NEW(p->arena, picture_box) : NULL;
  if (!made) return NULL;
  *made = (picture_box){.outer = outer, .title = title, .lane = branch, .number = ++p->box_count};
  picture_box **end = &outer->first_inner;
  while (*end) end = &(*end)->next;
  *end = made;
  return made;
}

/* ---- loops and branches -------------------------------------------------------------------------------------------
 */

/* Boxes of frames and of the lanes inside them, made when first needed. */
typedef struct frame_boxes {
  picture *p;
  const frames *f;
  picture_box **of_frame;
  struct {
    const frame *in;
    const lane *lane;
    picture_box *box;
  } * lanes;
  uint64_t lane_count, lane_capacity;
} frame_boxes;

static picture_box *lane_box(frame_boxes *b, frame *in, lane *under);

static picture_box *frame_box(frame_boxes *b, frame *in) {
  picture_box **box = &b->of_frame[in->number];
  if (*box) return *box;
  picture_box *outer = lane_box(b, in->parent, in->guard);
  const char *title =
      in->kind == FRAME_FOR ? weft_arena_printf(b->p->arena, "for, line %u", in->stream->line)
      : in->selector->is_argument
          ? "while"
          : weft_arena_printf(b->p->arena, "while, line %u", ((const weft_mlir_op *)in->selector->owner)->line);
  return outer ? *box = picture_add_box(b->p, outer, false, title) : NULL;
}

static picture_box *lane_box(frame_boxes *b, frame *in, lane *under) {
  if (!under) return frame_box(b, in);
  for (uint64_t i = 0; i < b->lane_count; i++)
    if (b->lanes[i].in == in && b->lanes[i].lane == under) return b->lanes[i].box;
  picture_box *outer = lane_box(b, in, under->outer);
  bool after = in->kind == FRAME_WHILE && under->selector == in->selector && !under->outer;
  const weft_mlir_op *selector = under->selector->is_argument ? NULL : under->selector->owner;
  const char *title = after      ? "after"
                      : selector ? weft_arena_printf(b->p->arena, "lane %u of line %u", under->number, selector->line)
                                 : weft_arena_printf(b->p->arena, "lane %u", under->number);
  picture_box *made = outer ? picture_add_box(b->p, outer, true, title) : NULL;
  if (!made || !weft_arena_grow(b->p->arena, &b->lanes, b->lane_count, &b->lane_capacity, sizeof *b->lanes))
    return NULL;
  b->lanes[b->lane_count].in = in;
  b->lanes[b->lane_count].lane = under;
  b->lanes[b->lane_count++].box = made;
  return made;
}

bool picture_box_frames(picture *p, const frames *f) {
  frame_boxes b = {.p = p, .f = f, .of_frame = WEFT_NEW_ARRAY(p->arena, picture_box *, f->frame_count)};
  if (!b.of_frame) return false;
  b.of_frame[0] = &p->root;
  for (uint32_t i = 0; i < p->op_count; i++) {
    p->boxes[i] = lane_box(&b, f->op_frames[i], f->op_lanes[i]);
    if (!p->boxes[i]) return false;
  }
  return true;
}

/* ---- rings --------------------------------------------------------------------------------------------------------
 */

/* Components of ops that feed each other (Tarjan), without recursion; what closes the outer rings is cut, and the rings
 * inside are looked for again. */
typedef struct ring_search {
  picture *p;
  uint32_t *part; /* of each op: the search it takes part in */
  uint32_t *order, *low;
  uint32_t *stack, *path, *position; /* open ops; the way down with the operand each stands at */
  bool *open;
  bool *cut; /* carries whose ring operand is left out */
  uint32_t now, stack_count, ticks;
} ring_search;

static const weft_mlir_op *feeder(const ring_search *s, const weft_mlir_op *op, uint32_t operand) {
  const weft_mlir_value *value = op->operands[operand];
  if (value->is_argument || value->type->kind == WEFT_MLIR_MEMREF_TYPE) return NULL;
  if (operand == 2 && s->cut[op->mark]) return NULL;
  const weft_mlir_op *from = value->owner;
  return s->part[from->mark] == s->now ? from : NULL;
}

/* A component is complete: one box when it is a ring, in which its ops take part in a search of their own. */
static bool close_ring(ring_search *s, uint32_t last, picture_box *outer) {
  uint32_t begin = s->stack_count;
  do begin--;
  while (s->stack[begin] != last);
  uint32_t count = s->stack_count - begin;
  bool ring = count > 1;
  picture_box *box =
      ring ? picture_add_box(s->p, outer, false, weft_arena_printf(s->p->arena, "ring of %u ops", count)) : outer;
  if (!box) return false;
  for (uint32_t i = begin; i < s->stack_count; i++) {
    s->open[s->stack[i]] = false;
    s->p->boxes[s->stack[i]] = box;
    s->part[s->stack[i]] = box->number;
  }
  s->stack_count = begin;
  return true;
}

static void enter(ring_search *s, uint32_t op, uint32_t *depth) {
  s->order[op] = s->low[op] = ++s->ticks;
  s->stack[s->stack_count++] = op;
  s->open[op] = true;
  s->position[*depth] = 0;
  s->path[(*depth)++] = op;
}

static bool search_from(ring_search *s, uint32_t first, picture_box *outer) {
  uint32_t depth = 0;
  enter(s, first, &depth);
  while (depth) {
    uint32_t at = s->path[depth - 1];
    const weft_mlir_op *op = s->p->ops[at];
    if (s->position[depth - 1] < op->operand_count) {
      const weft_mlir_op *from = feeder(s, op, s->position[depth - 1]++);
      if (from && !s->order[from->mark])
        enter(s, from->mark, &depth);
      else if (from && s->open[from->mark] && s->order[from->mark] < s->low[at])
        s->low[at] = s->order[from->mark];
      continue;
    }
    depth--;
    if (depth && s->low[at] < s->low[s->path[depth - 1]]) s->low[s->path[depth - 1]] = s->low[at];
    if (s->low[at] == s->order[at] && !close_ring(s, at, outer)) return false;
  }
  return true;
}

/* In every ring the carries whose first value comes from outside are those of the outermost loop. */
static uint32_t cut_outermost(ring_search *s, const picture_box *box) {
  uint32_t cuts = 0;
  for (uint32_t pass = 0; pass < 2 && !cuts; pass++)
    for (uint32_t i = 0; i < s->p->op_count; i++) {
      const weft_mlir_op *op = s->p->ops[i];
      if (s->p->boxes[i] != box || weft_mlir_code(op) != WEFT_DATAFLOW_CARRY || s->cut[i]) continue;
      const weft_mlir_value *init = op->operands[1];
      const weft_mlir_op *from = init->is_argument ? NULL : init->owner;
      if (pass == 0 && from && s->p->boxes[from->mark] == box) continue;
      s->cut[i] = true;
      cuts++;
    }
  return cuts;
}

bool picture_box_rings(picture *p) {
  uint32_t n = p->op_count;
  ring_search s = {.p = p,
                   .part = WEFT_NEW_ARRAY(p->arena, uint32_t, n),
                   .order = WEFT_NEW_ARRAY(p->arena, uint32_t, n),
                   .low = WEFT_NEW_ARRAY(p->arena, uint32_t, n),
                   .stack = WEFT_NEW_ARRAY(p->arena, uint32_t, n),
                   .path = WEFT_NEW_ARRAY(p->arena, uint32_t, n),
                   .position = WEFT_NEW_ARRAY(p->arena, uint32_t, n),
                   .open = WEFT_NEW_ARRAY(p->arena, bool, n),
                   .cut = WEFT_NEW_ARRAY(p->arena, bool, n)};
  picture_box **work = WEFT_NEW_ARRAY(p->arena, picture_box *, n + 1);
  uint32_t work_count = 0;
  if (weft_arena_failed(p->arena)) return false;
  work[work_count++] = &p->root;
  for (uint32_t done = 0; done < work_count; done++) {
    picture_box *box = work[done];
    s.now = box->number;
    for (uint32_t i = 0; i < n; i++)
      if (p->boxes[i] == box) s.order[i] = 0;
    for (uint32_t i = 0; i < n; i++)
      if (s.part[i] == s.now && !s.order[i] && !search_from(&s, i, box)) return false;
    for (picture_box *inner = box->first_inner; inner; inner = inner->next)
      if (cut_outermost(&s, inner) && work_count <= n) work[work_count++] = inner;
  }
  return true;
}
