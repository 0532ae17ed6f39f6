/* In which order the nodes of a frame run: each op after those whose tokens it takes, a loop as one node with all that
 * it takes from outside. The next value of a ring is taken at the end of a round and orders nothing. */
#include "frames.h"

/* The node that stands for op `i` in `at`: itself, or the loop below `at` that holds it; UINT32_MAX when it is outside.
 */
static uint32_t node_of(const frames *f, uint32_t op, const frame *at) {
  frame *inside = f->op_frames[op];
  if (inside == at) return op;
  while (inside && inside->depth > at->depth + 1) inside = inside->parent;
  return inside && inside->depth == at->depth + 1 && inside->parent == at ? f->op_count + inside->number : UINT32_MAX;
}

typedef enum colour { WHITE, GREY, BLACK } colour;

typedef struct sorter {
  const frames *f;
  frame *at;
  uint8_t *colours; /* of nodes */
  uint32_t *stack, top;
} sorter;

/* Pushes the white nodes that must run before `node` on account of op `i`; false when one of them is being visited. */
static bool push_before(sorter *s, uint32_t node, uint32_t i) {
  const frames *f = s->f;
  const weft_mlir_op *op = f->ops[i];
  uint32_t code = weft_mlir_code(op), count = code == WEFT_DATAFLOW_CARRY ? 2 : op->operand_count;
  bool ring = code == WEFT_DATAFLOW_CARRY || code == WEFT_DATAFLOW_INVARIANT;
  for (uint32_t k = 0; k < count; k++) {
    const weft_mlir_op *definition = weft_mlir_defining_op(op->operands[k]);
    if (!definition || (ring && k == 0)) continue;
    uint32_t before = node_of(f, definition->mark, s->at);
    if (before == UINT32_MAX || before == node || s->colours[before] == BLACK) continue;
    if (s->colours[before] == GREY) return false;
    s->stack[s->top++] = before;
  }
  return true;
}

static bool push_loop(sorter *s, uint32_t node, const frame *loop) {
  for (uint32_t i = 0; i < loop->member_count; i++)
    if (!push_before(s, node, loop->members[i])) return false;
  for (const frame *child = loop->first_child; child; child = child->sibling)
    if (!push_loop(s, node, child)) return false;
  return true;
}

/* Depth first without recursion: a node is grey while what must run before it is being visited. */
static bool visit(sorter *s, uint32_t first) {
  const frames *f = s->f;
  s->stack[s->top++] = first;
  while (s->top) {
    uint32_t node = s->stack[s->top - 1];
    if (s->colours[node] != WHITE) {
      s->top--;
      if (s->colours[node] == GREY) s->at->order[s->at->order_count++] = node;
      s->colours[node] = BLACK;
      continue;
    }
    s->colours[node] = GREY;
    if (!(node < f->op_count ? push_before(s, node, node) : push_loop(s, node, f->list[node - f->op_count])))
      return false;
  }
  return true;
}

static uint64_t stack_room(const frames *f) {
  uint64_t room = f->op_count + f->frame_count + 1;
  for (uint32_t i = 0; i < f->op_count; i++) room += (uint64_t)f->ops[i]->operand_count * (f->op_frames[i]->depth + 1);
  return room;
}

/* Nodes in the order of the program: a loop where its first op stands. */
static bool order_frame(const frames *f, frame *at, uint8_t *colours, uint32_t *stack) {
  sorter s = {.f = f, .at = at, .colours = colours, .stack = stack};
  uint32_t nodes = at->member_count;
  for (const frame *child = at->first_child; child; child = child->sibling) nodes++;
  at->order = WEFT_NEW_ARRAY(f->e->scratch, uint32_t, nodes);
  if (!at->order) return false;
  for (uint32_t i = 0; i < at->member_count; i++)
    if (colours[at->members[i]] == WHITE && !visit(&s, at->members[i])) return false;
  for (const frame *child = at->first_child; child; child = child->sibling)
    if (colours[f->op_count + child->number] == WHITE && !visit(&s, f->op_count + child->number)) return false;
  return true;
}

bool frames_order(frames *f) {
  uint8_t *colours = WEFT_NEW_ARRAY(f->e->scratch, uint8_t, (uint64_t)f->op_count + f->frame_count);
  uint32_t *stack = WEFT_NEW_ARRAY(f->e->scratch, uint32_t, stack_room(f));
  if (!colours || !stack) return false;
  for (uint32_t i = 0; i < f->frame_count; i++)
    if (!order_frame(f, f->list[i], colours, stack)) return false;
  return true;
}
