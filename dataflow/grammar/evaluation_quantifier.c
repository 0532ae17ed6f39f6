/* Quantifiers, sets and sequences: walks over elements, and tables that replace walks (postcondition_join.c). */
#include "evaluation_private.h"

/* ---- walking -------------------------------------------------------------------------------------------------- */

/* Whether every one of the conditions holds, stopping at the first that does not. */
static bool test_all(evaluation *e, const node *const *conditions, uint32_t count, bool *holds) {
  *holds = true;
  for (uint32_t i = 0; i < count && *holds; i++)
    if (!evaluation_truth(e, conditions[i], holds)) return false;
  return true;
}

static bool walk(evaluation *e, const node *n, const value *source, bool *found) {
  *found = false;
  for (uint64_t i = 0; i < source->count && !*found; i++) {
    pool_mark mark = evaluation_pool_now(&e->pool);
    e->slots[n->slot] = evaluation_at(source, i);
    if (!test_all(e, n->parts + 1, n->parts[1] != NULL, found)) return false;
    evaluation_pool_release(&e->pool, mark);
  }
  return true;
}

/* ---- joins ---------------------------------------------------------------------------------------------------- */

static bool is_key(const value *v) {
  return v->kind != VALUE_SEQUENCE && v->kind != VALUE_SET && v->kind != VALUE_SIDE;
}

/* Adds the element in the slot of `n` if it satisfies the conditions before the key. False: the table is of no use. */
static bool add_entry(evaluation *e, const node *n, join_table *table) {
  const join_plan *plan = n->join;
  bool holds;
  join_entry *entry = &table->entries[table->count];
  if (!test_all(e, plan->before, plan->before_count, &holds)) return false;
  if (!holds) return true;
  if (!evaluation_value(e, plan->key, &entry->key) || !is_key(&entry->key)) return false;
  if (table->count && entry->key.kind != table->entries[0].key.kind) return false;
  entry->element = e->slots[n->slot];
  table->count++;
  return true;
}

/* Links entries of a bucket in the order of the source. */
static bool fill_buckets(evaluation *e, join_table *table) {
  table->bucket_count = 16;
  while (table->bucket_count < table->count * 2) table->bucket_count *= 2;
  table->buckets = WEFT_NEW_ARRAY(e->arena, uint64_t, table->bucket_count);
  if (!table->buckets) return evaluation_no_memory(e);
  for (uint64_t i = table->count; i-- > 0;) {
    uint64_t *bucket = &table->buckets[evaluation_hash(&table->entries[i].key) & (table->bucket_count - 1)];
    table->entries[i].next = *bucket;
    *bucket = i + 1;
  }
  return true;
}

static bool build_table(evaluation *e, const node *n, const value *source, join_table *table) {
  table->state = JOIN_UNUSABLE;
  table->entries = WEFT_NEW_ARRAY(e->arena, join_entry, source->count);
  if (!table->entries) return evaluation_no_memory(e);
  uint64_t steps = e->steps;
  bool useful = true;
  for (uint64_t i = 0; useful && i < source->count; i++) {
    pool_mark mark = evaluation_pool_now(&e->pool);
    e->slots[n->slot] = evaluation_at(source, i);
    useful = add_entry(e, n, table);
    if (useful) evaluation_pool_release(&e->pool, mark);
  }
  if (e->status) return false;
  if (!useful) { /* as if it had not been tried: the walk finds the fault, if it comes that far */
    e->failed = false;
    e->steps = steps;
    return true;
  }
  table->state = JOIN_READY;
  return fill_buckets(e, table);
}

static bool look_up(evaluation *e, const node *n, const join_table *table, const value *wanted, bool *found) {
  uint64_t bucket = evaluation_hash(wanted) & (table->bucket_count - 1);
  *found = false;
  for (uint64_t i = table->buckets[bucket]; i && !*found; i = table->entries[i - 1].next) {
    const join_entry *entry = &table->entries[i - 1];
    if (!evaluation_equal(&entry->key, wanted)) continue;
    pool_mark mark = evaluation_pool_now(&e->pool);
    e->slots[n->slot] = entry->element;
    if (!test_all(e, n->join->after, n->join->after_count, found)) return false;
    evaluation_pool_release(&e->pool, mark);
  }
  return true;
}

/* Whether a table gave the answer. False with e->failed or e->status: an expression has no value. */
static bool joined(evaluation *e, const node *n, const value *source, bool *found) {
  if (!n->join || e->unindexed) return false;
  join_table *table = &e->joins[n->join->number];
  if (table->state == JOIN_UNBUILT && !build_table(e, n, source, table)) return false;
  if (table->state != JOIN_READY) return false;
  *found = false;
  if (!table->count) return true;
  value wanted;
  if (!evaluation_value(e, n->join->wanted, &wanted)) return false;
  /* Other kinds are compared, or found to be a fault, by the walk. */
  if (wanted.kind != table->entries[0].key.kind) return false;
  return look_up(e, n, table, &wanted, found);
}

bool evaluation_quantifier(evaluation *e, const node *n, bool *result) {
  value source;
  bool found;
  if (!evaluation_elements(e, n->parts[0], &source)) return false;
  if (!joined(e, n, &source, &found)) {
    if (e->failed || e->status || !walk(e, n, &source, &found)) return false;
  }
  *result = found == (n->kind == NODE_EXISTS);
  return true;
}

/* ---- sets and sequences --------------------------------------------------------------------------------------- */

typedef struct gathering {
  value *items;
  uint64_t count;
} gathering;

/* The element for the value in the slot of `n`, where the condition holds. */
static bool gather(evaluation *e, const node *n, gathering *g) {
  bool holds = true;
  if (n->parts[2]) {
    pool_mark mark = evaluation_pool_now(&e->pool);
    if (!evaluation_truth(e, n->parts[2], &holds)) return false;
    evaluation_pool_release(&e->pool, mark);
  }
  if (!holds) return true;
  if (!evaluation_value(e, n->parts[1], &g->items[g->count])) return false;
  g->count++;
  return true;
}

/* Drops repeats and makes the table of what stays. */
static bool make_set(evaluation *e, gathering *g, value *result) {
  set_table *set = evaluation_pool_array(&e->pool, 1, sizeof *set);
  if (!set) return evaluation_no_memory(e);
  uint64_t slots = 8;
  while (slots < g->count * 2) slots *= 2;
  *set = (set_table){
      .items = g->items, .slot_count = slots, .slots = evaluation_pool_array(&e->pool, slots, sizeof(uint32_t))};
  if (!set->slots || g->count > UINT32_MAX) return evaluation_no_memory(e);
  for (uint64_t i = 0; i < slots; i++) set->slots[i] = 0;
  for (uint64_t i = 0; i < g->count; i++) {
    value one = g->items[i];
    uint64_t slot = evaluation_hash(&one) & (slots - 1);
    while (set->slots[slot] && !evaluation_equal(&set->items[set->slots[slot] - 1], &one))
      slot = (slot + 1) & (slots - 1);
    if (set->slots[slot]) continue;
    set->items[set->count++] = one;
    set->slots[slot] = (uint32_t)set->count;
  }
  *result = (value){.kind = VALUE_SET, .as.set = set, .count = set->count};
  return true;
}

bool evaluation_comprehension(evaluation *e, const node *n, value *result) {
  value source;
  if (!evaluation_elements(e, n->parts[0], &source)) return false;
  gathering g = {.items = evaluation_pool_array(&e->pool, source.count, sizeof(value))};
  if (!g.items) return evaluation_no_memory(e);
  for (uint64_t i = 0; i < source.count; i++) {
    e->slots[n->slot] = evaluation_at(&source, i);
    if (!gather(e, n, &g)) return false;
  }
  if (n->kind == NODE_SET) return make_set(e, &g, result);
  *result = (value){.kind = VALUE_SEQUENCE, .shape = SHAPE_VALUES, .as.elements = g.items, .count = g.count};
  return true;
}
