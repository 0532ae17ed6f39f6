/* Which quantifiers can look their elements up instead of walking them all:
 *
 *   exists v in S where B1 and ... and Bn and K == W and A1 and ...
 *
 * S a variable of an outermost `let` or the operations of a side, the B and K of v and outermost variables alone, W
 * free of v. The elements that satisfy every B are then kept in a table by their K. Where any B or K has no value for
 * some element the table is not used, so that an error is found exactly where the walk would find it. */
#include "postcondition_private.h"

typedef struct part_list {
  const node **items;
  uint64_t count, capacity;
} part_list;

static bool add_part(postcondition_parser *p, part_list *list, const node *part) {
  if (!weft_arena_grow(p->x.arena, &list->items, list->count, &list->capacity, sizeof part))
    return language_no_memory(&p->x);
  list->items[list->count++] = part;
  return true;
}

static bool flatten(postcondition_parser *p, const node *n, part_list *list) {
  if (n->kind != NODE_AND) return add_part(p, list, n);
  return flatten(p, n->parts[0], list) && flatten(p, n->parts[1], list);
}

static bool binds(const node *n) {
  return n->kind == NODE_SEQ || n->kind == NODE_SET || n->kind == NODE_EXISTS || n->kind == NODE_NONE ||
         n->kind == NODE_MATCHES_SOME;
}

static void mark_binders(postcondition_parser *p, const node *n) {
  if (!n) return;
  if (binds(n)) p->inside[n->slot] = p->walk;
  for (uint32_t i = 0; i < n->count; i++) mark_binders(p, n->parts[i]);
}

/* Whether every name in `n` is bound inside it, or is global, or is `variable`. */
static bool is_of(const postcondition_parser *p, const node *n, uint32_t variable) {
  if (!n) return true;
  if (n->kind == NODE_VARIABLE) return n->slot == variable || p->global[n->slot] || p->inside[n->slot] == p->walk;
  for (uint32_t i = 0; i < n->count; i++)
    if (!is_of(p, n->parts[i], variable)) return false;
  return true;
}

/* Whether every name in `n` is bound inside it or before `variable` was. */
static bool is_free_of(const postcondition_parser *p, const node *n, uint32_t variable) {
  if (!n) return true;
  if (n->kind == NODE_VARIABLE) return n->slot < variable || p->inside[n->slot] == p->walk;
  for (uint32_t i = 0; i < n->count; i++)
    if (!is_free_of(p, n->parts[i], variable)) return false;
  return true;
}

static bool of_element(postcondition_parser *p, const node *n, uint32_t variable) {
  p->walk++;
  mark_binders(p, n);
  return is_of(p, n, variable);
}

static bool free_of_element(postcondition_parser *p, const node *n, uint32_t variable) {
  p->walk++;
  mark_binders(p, n);
  return is_free_of(p, n, variable);
}

static bool binds_name(const node *n) {
  if (!n) return false;
  if (n->kind == NODE_MATCHES_SOME) return true;
  for (uint32_t i = 0; i < n->count; i++)
    if (binds_name(n->parts[i])) return true;
  return false;
}

/* The side of an equality that is of the element alone while the other is free of it; -1 when there is none. A key that
 * is compared with a constant divides the elements in two and no further: it is `varying` that helps most. */
static int key_side(postcondition_parser *p, const node *part, uint32_t variable, bool varying) {
  if (part->kind != NODE_EQUAL) return -1;
  for (int side = 0; side < 2; side++) {
    const node *wanted = part->parts[1 - side];
    if (!of_element(p, part->parts[side], variable) || !free_of_element(p, wanted, variable)) continue;
    if (!varying || !of_element(p, wanted, variable)) return side;
  }
  return -1;
}

static bool has_steady_source(const postcondition_parser *p, const node *source) {
  if (source->kind == NODE_VARIABLE) return p->global[source->slot];
  return source->kind == NODE_MEMBER && source->integer == MEMBER_OPERATIONS && source->parts[0]->kind == NODE_SIDE;
}

/* The number of the first part that can be the key; the number of parts when there is none. */
static uint64_t find_key(postcondition_parser *p, const part_list *list, uint32_t variable, bool varying, int *side) {
  for (uint64_t i = 0; i < list->count; i++) {
    *side = key_side(p, list->items[i], variable, varying);
    if (*side >= 0) return i;
    if (binds_name(list->items[i]) || !of_element(p, list->items[i], variable)) break;
  }
  return list->count;
}

bool postcondition_plan_join(postcondition_parser *p, node *quantifier) {
  const node *source = quantifier->parts[0], *condition = quantifier->parts[1];
  if (!condition || !has_steady_source(p, source)) return true;
  part_list list = {0};
  if (!flatten(p, condition, &list)) return false;
  int side;
  uint64_t key = find_key(p, &list, quantifier->slot, true, &side);
  if (key == list.count) key = find_key(p, &list, quantifier->slot, false, &side);
  if (key == list.count) return true;
  join_plan *plan = WEFT_NEW(p->x.arena, join_plan);
  if (!plan) return language_no_memory(&p->x);
  *plan = (join_plan){.before = list.items,
                      .before_count = (uint32_t)key,
                      .key = list.items[key]->parts[side],
                      .wanted = list.items[key]->parts[1 - side],
                      .after = list.items + key + 1,
                      .after_count = (uint32_t)(list.count - key - 1),
                      .number = p->result->join_count++};
  quantifier->join = plan;
  return true;
}
