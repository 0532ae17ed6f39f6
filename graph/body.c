/* Bodies of pointwise ops: checks, comparison, and the few that lowering makes. */
#include "graph_private.h"

#include <math.h>
#include <string.h>

static uint32_t arity(weft_body_kind kind) {
#define ROW(id, name, children) children,
  static const uint8_t table[] = { WEFT_BODY_NODES(ROW) };
#undef ROW
  return table[kind];
}

static double constant_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint64_t constant_bits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static const char *check_node(const weft_body_node *node, uint32_t in_count) {
  switch (node->kind) {
  case WEFT_BODY_OPERAND: return node->value < in_count ? NULL : "names an operand the op does not have";
  case WEFT_BODY_SELECT:
    if (node->pred.var != WEFT_VAR_GEN_ROW && node->pred.var != WEFT_VAR_GEN_COL)
      return "selects on a variable that is neither row (5) nor column (6)";
    return !node->pred.operand_bound || node->pred.bound < in_count ? NULL
                                                                    : "has a bound from an operand it does not have";
  case WEFT_BODY_UNARY: return node->sfpu < WEFT_SFPU_COUNT ? NULL : "has an unknown unary function";
  default: return NULL;
  }
}

/** What the walk below has left on its stack: a subtree, its root and its depth. */
typedef struct pending {
  uint32_t root, depth;
} pending;

const char *weft_body_check(const weft_body *body, uint32_t in_count) {
  if (!body->node_count) return "has no nodes";
  // A post-order array is a tree exactly when running it as a stack machine ends with its last node alone. The stack
  // never needs more than one entry a level and operand, so a bounded depth bounds it.
  pending stack[3 * WEFT_BODY_MAX_DEPTH + 4];
  uint32_t height = 0;
  for (uint64_t i = 0; i < body->node_count; i++) {
    const weft_body_node *node = &body->nodes[i];
    if (node->kind >= WEFT_BODY_KIND_COUNT) return "has an unknown node";
    const char *wrong = check_node(node, in_count);
    if (wrong) return wrong;
    uint32_t children = arity(node->kind), depth = 0;
    if (height < children) return "is not in post-order";
    height -= children;
    for (uint32_t c = 0; c < children; c++) {
      if (node->child[c] != stack[height + c].root) return "is not in post-order";
      if (stack[height + c].depth > depth) depth = stack[height + c].depth;
    }
    if (depth + 1 > WEFT_BODY_MAX_DEPTH || height + 1 >= sizeof stack / sizeof *stack) return "is nested too deeply";
    stack[height++] = (pending){(uint32_t)i, depth + 1};
  }
  return height == 1 ? NULL : "has nodes that nothing uses";
}

weft_body weft_body_copy(weft_arena *arena, const weft_body *body) {
  weft_body_node *nodes = WEFT_NEW_ARRAY(arena, weft_body_node, body->node_count);
  if (nodes && body->node_count) memcpy(nodes, body->nodes, body->node_count * sizeof *nodes);
  return (weft_body){nodes, nodes ? body->node_count : 0};
}

static bool node_equal(const weft_body_node *a, const weft_body_node *b) {
  if (a->kind != b->kind) return false;
  for (uint32_t c = 0; c < arity(a->kind); c++)
    if (a->child[c] != b->child[c]) return false;
  switch (a->kind) {
  case WEFT_BODY_OPERAND:
  case WEFT_BODY_CONST:
  case WEFT_BODY_SHR: return a->value == b->value;
  case WEFT_BODY_UNARY:
    return a->sfpu == b->sfpu && (a->sfpu != WEFT_SFPU_RSQRT || (a->eps_nano == b->eps_nano && a->over == b->over));
  case WEFT_BODY_SELECT:
    return a->pred.ge == b->pred.ge && a->pred.operand_bound == b->pred.operand_bound && a->pred.var == b->pred.var &&
           a->pred.bound == b->pred.bound;
  default: return true;
  }
}

bool weft_body_equal(const weft_body *a, const weft_body *b) {
  if (a->node_count != b->node_count) return false;
  for (uint64_t i = 0; i < a->node_count; i++)
    if (!node_equal(&a->nodes[i], &b->nodes[i])) return false;
  return true;
}

bool weft_body_has(const weft_body *body, weft_body_kind kind) {
  for (uint64_t i = 0; i < body->node_count; i++)
    if (body->nodes[i].kind == kind) return true;
  return false;
}

bool weft_body_integral(const weft_body *body) {
  for (uint64_t i = 0; i < body->node_count; i++) {
    const weft_body_node *node = &body->nodes[i];
    if (node->kind == WEFT_BODY_UNARY || node->kind == WEFT_BODY_DIV) return false;
    if (node->kind == WEFT_BODY_SHR && node->value > 63) return false;
    if (node->kind != WEFT_BODY_CONST) continue;
    double value = constant_of(node->value);
    if (!(fabs(value) < (double)WEFT_EXACT_CONSTANT) || value != trunc(value)) return false;
  }
  return true;
}

weft_body weft_body_clamp(weft_arena *arena, int64_t low, int64_t high) {
  const weft_body_node nodes[] = {
      {.kind = WEFT_BODY_OPERAND},
      {.kind = WEFT_BODY_CONST, .value = constant_bits((double)low)},
      {.kind = WEFT_BODY_MAX, .child = {0, 1}},
      {.kind = WEFT_BODY_CONST, .value = constant_bits((double)high)},
      {.kind = WEFT_BODY_MIN, .child = {2, 3}},
  };
  return weft_body_copy(arena, &(weft_body){nodes, sizeof nodes / sizeof *nodes});
}

bool weft_body_is_clamp(const weft_body *body, int64_t *low, int64_t *high) {
  if (body->node_count != 5 || !weft_body_integral(body)) return false;
  const weft_body_node *n = body->nodes;
  if (n[0].kind != WEFT_BODY_OPERAND || n[0].value != 0 || n[1].kind != WEFT_BODY_CONST || n[2].kind != WEFT_BODY_MAX ||
      n[3].kind != WEFT_BODY_CONST || n[4].kind != WEFT_BODY_MIN)
    return false;
  if (n[2].child[0] != 0 || n[2].child[1] != 1 || n[4].child[0] != 2 || n[4].child[1] != 3) return false;
  *low = (int64_t)constant_of(n[1].value);
  *high = (int64_t)constant_of(n[3].value);
  return *low <= *high;
}

/* ---- the tree of an all-reduce ------------------------------------------------------------------------------------
 */

static uint64_t split_of(uint64_t leaves) {
  uint64_t power = 1;
  while (power * 2 < leaves) power *= 2;
  return power;
}

/** Walks the tree over `leaves`, taking nodes from *next on; false when a node crosses a subtree's border. */
static bool walk_nodes(const uint32_t *counts, uint32_t node_count, uint64_t leaves, uint32_t *next) {
  if (*next >= node_count || !counts[*next] || counts[*next] > leaves) return false;
  if (counts[*next] == leaves) {
    ++*next;
    return true;
  }
  uint64_t left = split_of(leaves);
  return walk_nodes(counts, node_count, left, next) && walk_nodes(counts, node_count, leaves - left, next);
}

static uint64_t total(const uint32_t *counts, uint32_t node_count) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < node_count; i++) sum += counts[i];
  return sum;
}

bool weft_nodes_are_subtrees(const uint32_t *counts, uint32_t node_count) {
  uint32_t next = 0;
  return walk_nodes(counts, node_count, total(counts, node_count), &next) && next == node_count;
}

typedef struct tree {
  weft_body_node *nodes;
  uint32_t count, operands;
  const uint32_t *counts;
  weft_body_kind kind;
} tree;

static uint32_t build_tree(tree *t, uint64_t leaves) {
  if (t->counts[t->operands] == leaves) {
    t->nodes[t->count] = (weft_body_node){.kind = WEFT_BODY_OPERAND, .value = t->operands++};
    return t->count++;
  }
  uint64_t split = split_of(leaves);
  uint32_t left = build_tree(t, split);
  uint32_t right = build_tree(t, leaves - split);
  t->nodes[t->count] = (weft_body_node){.kind = t->kind, .child = {left, right}};
  return t->count++;
}

weft_body weft_body_tree(weft_arena *arena, weft_pool pool, const uint32_t *counts, uint32_t node_count) {
  weft_body_kind kind = pool == WEFT_POOL_MAX ? WEFT_BODY_MAX : pool == WEFT_POOL_MIN ? WEFT_BODY_MIN : WEFT_BODY_ADD;
  tree t = {.nodes = WEFT_NEW_ARRAY(arena, weft_body_node, 2 * (uint64_t)node_count), .counts = counts, .kind = kind};
  if (!t.nodes) return (weft_body){0};
  build_tree(&t, total(counts, node_count));
  return (weft_body){t.nodes, t.count};
}

bool weft_op_is_integer(const weft_graph *graph, const weft_graph_op *op) {
  if (weft_format_is_float(graph->values[op->out].dtype)) return false;
  for (uint32_t i = 0; i < op->in_count; i++)
    if (weft_format_is_float(graph->values[op->ins[i]].dtype)) return false;
  bool bodied = op->kind == WEFT_GRAPH_POINTWISE || op->kind == WEFT_GRAPH_REDUCE;
  return !bodied || weft_body_integral(&op->body);
}
