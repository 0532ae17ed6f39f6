/* One bottom-up pass over the source: for each region what it captures, which partitions it touches and which channels
 * have a site in it. Linear in the source but for one entry a level that a capture, partition or site crosses. */
#include "lower_private.h"

typedef struct collector {
  lowering *l;
  uint32_t *seen; /* by value mark: the last region that has it in its captures, plus 1 */
  uint32_t *seen_partition, *seen_site;
  uint32_t *depths; /* by value mark: depth of the region it is defined in */
  /* growing lists of the region being read */
  weft_mlir_value **captures;
  uint64_t capture_count, capture_capacity;
  uint32_t *touched, *sites;
  uint64_t touched_count, touched_capacity, site_count, site_capacity;
  bool failed;
} collector;

/* ---- numbers -------------------------------------------------------------------------------------------------- */

static void number_block(lowering *l, weft_mlir_block *block) {
  for (uint32_t i = 0; i < block->argument_count; i++) block->arguments[i].mark = l->value_count++;
  for (weft_mlir_op *op = block->first; op; op = op->next) {
    for (uint32_t i = 0; i < op->result_count; i++) op->results[i].mark = l->value_count++;
    op->mark = l->fact_count;
    l->fact_count += op->region_count;
    for (uint32_t r = 0; r < op->region_count; r++)
      if (weft_mlir_op_region(op, r)->first) number_block(l, weft_mlir_op_region(op, r)->first);
  }
}

static void number_depths(collector *c, const weft_mlir_block *block, uint32_t depth) {
  for (uint32_t i = 0; i < block->argument_count; i++) c->depths[block->arguments[i].mark] = depth;
  for (const weft_mlir_op *op = block->first; op; op = op->next) {
    for (uint32_t i = 0; i < op->result_count; i++) c->depths[op->results[i].mark] = depth;
    for (uint32_t r = 0; r < op->region_count; r++)
      if (weft_mlir_op_region(op, r)->first) number_depths(c, weft_mlir_op_region(op, r)->first, depth + 1);
  }
}

/* ---- partitions ----------------------------------------------------------------------------------------------- */

/* All memory inputs without evidence share the first partition; those known to be apart and each allocation have their
 * own. */
static void number_partitions(lowering *l, const bool *no_alias) {
  bool shared = false;
  l->partition_count = 0;
  for (uint32_t i = 0; i < l->body->argument_count; i++)
    shared |= l->body->arguments[i].type->kind == WEFT_MLIR_MEMREF_TYPE && !(no_alias && no_alias[i]);
  l->partition_count = shared;
  for (uint32_t i = 0; i < l->body->argument_count; i++)
    if (l->body->arguments[i].type->kind == WEFT_MLIR_MEMREF_TYPE)
      l->roots[l->body->arguments[i].mark] = no_alias && no_alias[i] ? l->partition_count++ : 0;
  for (weft_mlir_op *op = weft_mlir_next(l->source, NULL); op; op = weft_mlir_next(l->source, op)) {
    if (weft_mlir_code(op) == WEFT_OP_MEMREF_ALLOC) l->roots[op->results[0].mark] = l->partition_count++;
    if (weft_mlir_code(op) == WEFT_OP_MEMREF_CAST) l->roots[op->results[0].mark] = l->roots[op->operands[0]->mark];
  }
}

static bool collect_bindings(lowering *l, const bool *outputs) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < l->body->argument_count; i++)
    count += l->body->arguments[i].type->kind == WEFT_MLIR_DIALECT_TYPE;
  l->bindings = WEFT_NEW_ARRAY(l->scratch, binding_facts, count);
  if (!l->bindings) return lower_memory(l);
  uint32_t at = 0;
  for (uint32_t i = 0; i < l->body->argument_count; i++)
    if (l->body->arguments[i].type->kind == WEFT_MLIR_DIALECT_TYPE) {
      l->bindings[at] = (binding_facts){.channel = &l->body->arguments[i],
                                        .output = outputs && outputs[i],
                                        .element = l->body->arguments[i].type->parameters[0]->as.type_value};
      l->roots[l->body->arguments[i].mark] = at++;
    }
  l->binding_count = at;
  return true;
}

/* ---- regions -------------------------------------------------------------------------------------------------- */

static void capture(collector *c, uint32_t region, uint32_t depth, weft_mlir_value *value) {
  bool memory = value->type->kind == WEFT_MLIR_MEMREF_TYPE || value->type->kind == WEFT_MLIR_DIALECT_TYPE;
  if (memory || c->depths[value->mark] >= depth || c->seen[value->mark] == region + 1) return;
  c->seen[value->mark] = region + 1;
  if (!weft_arena_grow(c->l->scratch, &c->captures, c->capture_count, &c->capture_capacity, sizeof *c->captures)) {
    c->failed = true;
    return;
  }
  c->captures[c->capture_count++] = value;
}

static void add_once(collector *c, uint32_t **list, uint64_t *count, uint64_t *capacity, uint32_t *seen,
                     uint32_t region, uint32_t item) {
  if (seen[item] == region + 1) return;
  seen[item] = region + 1;
  if (!weft_arena_grow(c->l->scratch, list, *count, capacity, sizeof **list)) {
    c->failed = true;
    return;
  }
  (*list)[(*count)++] = item;
}

static void touch(collector *c, uint32_t region, uint32_t partition) {
  add_once(c, &c->touched, &c->touched_count, &c->touched_capacity, c->seen_partition, region, partition);
}

static void site(collector *c, uint32_t region, uint32_t binding) {
  add_once(c, &c->sites, &c->site_count, &c->site_capacity, c->seen_site, region, binding);
}

/* What an op itself adds to its region. A send waits for all that was read and written, and all waits for it. */
static void collect_leaf(collector *c, uint32_t region, const weft_mlir_op *op) {
  lowering *l = c->l;
  switch (weft_mlir_code(op)) {
  case WEFT_OP_MEMREF_LOAD: touch(c, region, l->roots[op->operands[0]->mark]); break;
  case WEFT_OP_MEMREF_STORE: touch(c, region, l->roots[op->operands[1]->mark]); break;
  case WEFT_DATAFLOW_CHANNEL_SEND:
    site(c, region, l->roots[op->operands[0]->mark]);
    for (uint32_t p = 0; p < l->partition_count; p++) touch(c, region, p);
    break;
  case WEFT_DATAFLOW_CHANNEL_RECEIVE: site(c, region, l->roots[op->operands[0]->mark]); break;
  default: break;
  }
}

static bool keep_lists(collector *c, region_facts *facts) {
  weft_arena *scratch = c->l->scratch;
  facts->capture_count = (uint32_t)c->capture_count;
  facts->touched_count = (uint32_t)c->touched_count;
  facts->site_count = (uint32_t)c->site_count;
  facts->captures = WEFT_NEW_ARRAY(scratch, weft_mlir_value *, c->capture_count);
  facts->touched = WEFT_NEW_ARRAY(scratch, uint32_t, c->touched_count);
  facts->sites = WEFT_NEW_ARRAY(scratch, uint32_t, c->site_count);
  if (c->failed || !facts->captures || !facts->touched || !facts->sites) return lower_memory(c->l);
  if (c->capture_count) memcpy(facts->captures, c->captures, c->capture_count * sizeof *c->captures);
  if (c->touched_count) memcpy(facts->touched, c->touched, c->touched_count * sizeof *c->touched);
  if (c->site_count) memcpy(facts->sites, c->sites, c->site_count * sizeof *c->sites);
  return true;
}

static bool collect_region(collector *c, uint32_t region, const weft_mlir_block *block, uint32_t depth) {
  lowering *l = c->l;
  for (const weft_mlir_op *op = block->first; op; op = op->next)
    for (uint32_t r = 0; r < op->region_count; r++)
      if (weft_mlir_op_region(op, r)->first &&
          !collect_region(c, op->mark + r, weft_mlir_op_region(op, r)->first, depth + 1))
        return false;
  c->capture_count = c->touched_count = c->site_count = 0;
  for (const weft_mlir_op *op = block->first; op; op = op->next) {
    for (uint32_t i = 0; i < op->operand_count; i++) capture(c, region, depth, op->operands[i]);
    collect_leaf(c, region, op);
    for (uint32_t r = 0; r < op->region_count; r++) {
      const region_facts *inner = lower_facts(l, op, r);
      for (uint32_t i = 0; i < inner->capture_count; i++) capture(c, region, depth, inner->captures[i]);
      for (uint32_t i = 0; i < inner->touched_count; i++) touch(c, region, inner->touched[i]);
      for (uint32_t i = 0; i < inner->site_count; i++) site(c, region, inner->sites[i]);
    }
  }
  l->facts[region].depth = depth;
  return keep_lists(c, &l->facts[region]);
}

bool lower_collect(lowering *l, const lower_job *job) {
  l->value_count = 0;
  l->fact_count = 1; /* region 0 is the body */
  number_block(l, l->body);
  collector c = {.l = l};
  l->facts = WEFT_NEW_ARRAY(l->scratch, region_facts, l->fact_count);
  l->roots = WEFT_NEW_ARRAY(l->scratch, uint32_t, l->value_count);
  l->map = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, l->value_count);
  l->outermost = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, l->value_count);
  l->value_stamps = WEFT_NEW_ARRAY(l->scratch, uint32_t, l->value_count);
  l->numbers = WEFT_NEW_ARRAY(l->scratch, uint32_t, l->value_count);
  c.seen = WEFT_NEW_ARRAY(l->scratch, uint32_t, l->value_count);
  c.depths = WEFT_NEW_ARRAY(l->scratch, uint32_t, l->value_count);
  if (weft_arena_failed(l->scratch) || !collect_bindings(l, job->outputs)) return lower_memory(l);
  number_partitions(l, job->no_alias);
  c.seen_partition = WEFT_NEW_ARRAY(l->scratch, uint32_t, l->partition_count);
  c.seen_site = WEFT_NEW_ARRAY(l->scratch, uint32_t, l->binding_count);
  l->frontiers = WEFT_NEW_ARRAY(l->scratch, frontier, l->partition_count);
  l->partition_stamps = WEFT_NEW_ARRAY(l->scratch, uint32_t, l->partition_count);
  if (weft_arena_failed(l->scratch)) return lower_memory(l);
  number_depths(&c, l->body, 0);
  return collect_region(&c, 0, l->body, 0);
}
