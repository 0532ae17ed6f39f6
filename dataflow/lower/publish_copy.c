/* Copying a thread with launches in place of its regions. One chain of completion runs through it: a launch depends on
 * the chain's token and its done becomes the token; ops around a launch hand the token on as a last value of type none.
 */
#include "publish_private.h"

static weft_mlir_value *mapped(const publication *p, const weft_mlir_value *value) { return p->map[value->mark]; }

static void map_values(publication *p, const weft_mlir_value *old, weft_mlir_value *new, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) p->map[old[i].mark] = &new[i];
}

/* Operands and result types of a copy, with one more of each when `token` is given. */
typedef struct parts_of {
  weft_mlir_value **operands;
  const weft_mlir_type **types;
  uint32_t operand_count, result_count;
} parts_of;

static bool gather(publication *p, const weft_mlir_op *op, weft_mlir_value *token, bool result, parts_of *out) {
  out->operands = WEFT_NEW_ARRAY(p->l.scratch, weft_mlir_value *, op->operand_count + 1);
  out->types = WEFT_NEW_ARRAY(p->l.scratch, const weft_mlir_type *, op->result_count + 1);
  if (!out->operands || !out->types) return lower_memory(&p->l);
  for (uint32_t i = 0; i < op->operand_count; i++) out->operands[i] = mapped(p, op->operands[i]);
  for (uint32_t i = 0; i < op->result_count; i++) out->types[i] = op->results[i].type;
  out->operand_count = op->operand_count;
  out->result_count = op->result_count;
  if (token) out->operands[out->operand_count++] = token;
  if (result) out->types[out->result_count++] = p->l.none;
  return true;
}

static weft_mlir_op *make(publication *p, const weft_mlir_op *old, const parts_of *parts, weft_mlir_block *target) {
  weft_mlir_op_parts all = {.name = old->name,
                            .operands = parts->operands,
                            .result_types = parts->types,
                            .properties = old->properties,
                            .attributes = old->attributes,
                            .location = old->extra ? old->extra->location : NULL,
                            .operand_count = parts->operand_count,
                            .result_count = parts->result_count,
                            .region_count = old->region_count,
                            .line = old->line,
                            .column = old->column};
  weft_mlir_op *op = weft_mlir_op_new(p->l.arena, &all);
  if (!op) {
    lower_memory(&p->l);
    return NULL;
  }
  weft_mlir_insert(target, op, NULL);
  map_values(p, old->results, op->results, old->result_count);
  return op;
}

/* A block like the old one, with one more argument of type none when `token`. */
static weft_mlir_block *make_block(publication *p, const weft_mlir_block *old, weft_mlir_region *region, bool token) {
  const weft_mlir_type **types = WEFT_NEW_ARRAY(p->l.scratch, const weft_mlir_type *, old->argument_count + 1);
  if (!types) {
    lower_memory(&p->l);
    return NULL;
  }
  for (uint32_t i = 0; i < old->argument_count; i++) types[i] = old->arguments[i].type;
  types[old->argument_count] = p->l.none;
  weft_mlir_block *block = weft_mlir_block_new(p->l.arena, region, types, old->argument_count + token);
  if (block)
    map_values(p, old->arguments, block->arguments, old->argument_count);
  else
    lower_memory(&p->l);
  return block;
}

static bool copy_block(publication *p, const weft_mlir_block *old, weft_mlir_block *new, weft_mlir_value **token,
                       bool hand_on);

/* An op without a region to publish in it. */
static bool copy_plain(publication *p, const weft_mlir_op *old, weft_mlir_block *target) {
  parts_of parts;
  if (!gather(p, old, NULL, false, &parts)) return false;
  weft_mlir_op *op = make(p, old, &parts, target);
  for (uint32_t r = 0; op && r < old->region_count; r++)
    for (const weft_mlir_block *b = weft_mlir_op_region(old, r)->first; b; b = b->next) {
      weft_mlir_block *block = make_block(p, b, weft_mlir_op_region(op, r), false);
      if (!block || !copy_block(p, b, block, NULL, false)) return false;
    }
  return op != NULL;
}

/* ---- the launch ------------------------------------------------------------------------------------------------- */

static bool set_segments(publication *p, weft_mlir_op *launch, const char *name, const int64_t *sizes, uint32_t count) {
  const weft_mlir_attribute *value = weft_mlir_dense_array(p->l.context, 32, sizes, count);
  if (!value) return lower_memory(&p->l);
  weft_mlir_set(p->l.context, launch, name, value);
  return true;
}

static bool copy_candidate(publication *p, const weft_mlir_op *region, weft_mlir_block *target,
                           weft_mlir_value **token) {
  const candidate *c = &p->candidates[p->next++];
  parts_of parts;
  if (!gather(p, region, *token, true, &parts)) return false;
  /* The dependency comes first. */
  memmove(parts.operands + 1, parts.operands, region->operand_count * sizeof *parts.operands);
  parts.operands[0] = *token;
  weft_mlir_op_parts all = {.name = weft_mlir_name(p->l.context, "dataflow.graph.launch", 21),
                            .operands = parts.operands,
                            .result_types = parts.types,
                            .operand_count = parts.operand_count,
                            .result_count = parts.result_count,
                            .line = region->line,
                            .column = region->column};
  weft_mlir_op *launch = all.name ? weft_mlir_op_new(p->l.arena, &all) : NULL;
  const weft_mlir_attribute *callee = weft_mlir_symbol(p->l.context, c->name);
  if (!launch || !callee) return lower_memory(&p->l);
  weft_mlir_insert(target, launch, NULL);
  weft_mlir_set(p->l.context, launch, "callee", callee);
  weft_mlir_set(p->l.context, launch, "source_maps", weft_mlir_attribute_of(region, "source_maps"));
  int64_t operands[5] = {1}, results[3] = {0, 0, 1};
  for (uint32_t i = 0; i < 4; i++) operands[i + 1] = publish_segment(region, "operandSegmentSizes", i);
  for (uint32_t i = 0; i < 2; i++) results[i] = publish_segment(region, "resultSegmentSizes", i);
  map_values(p, region->results, launch->results, region->result_count);
  *token = &launch->results[launch->result_count - 1];
  return set_segments(p, launch, "operandSegmentSizes", operands, 5) &&
         set_segments(p, launch, "resultSegmentSizes", results, 3);
}

/* ---- ops around launches ------------------------------------------------------------------------------------------
 */

static bool copy_region(publication *p, const weft_mlir_op *old, weft_mlir_op *op, uint32_t index,
                        weft_mlir_value *token, bool argument) {
  const weft_mlir_block *b = weft_mlir_op_region(old, index)->first;
  weft_mlir_block *block = make_block(p, b, weft_mlir_op_region(op, index), argument);
  if (!block) return false;
  weft_mlir_value *inner = argument ? &block->arguments[b->argument_count] : token;
  return copy_block(p, b, block, &inner, true);
}

/* An else that was not there: it yields the token. */
static bool add_else(publication *p, const weft_mlir_op *old, weft_mlir_op *op, weft_mlir_value *token) {
  weft_mlir_block *block = weft_mlir_block_new(p->l.arena, weft_mlir_op_region(op, 1), NULL, 0);
  weft_mlir_op_parts parts = {.name = weft_mlir_name(p->l.context, "scf.yield", 9),
                              .operands = &token,
                              .operand_count = 1,
                              .line = old->line,
                              .column = old->column};
  weft_mlir_op *yield = parts.name ? weft_mlir_op_new(p->l.arena, &parts) : NULL;
  if (!block || !yield) return lower_memory(&p->l);
  weft_mlir_insert(block, yield, NULL);
  return true;
}

static bool copy_around(publication *p, const weft_mlir_op *old, weft_mlir_block *target, weft_mlir_value **token) {
  uint32_t code = weft_mlir_code(old);
  bool loop = code == WEFT_OP_SCF_FOR || code == WEFT_OP_SCF_WHILE;
  parts_of parts;
  if (!gather(p, old, loop ? *token : NULL, true, &parts)) return false;
  weft_mlir_op *op = make(p, old, &parts, target);
  for (uint32_t r = 0; op && r < old->region_count; r++) {
    bool missing = !weft_mlir_op_region(old, r)->first;
    if (missing ? !add_else(p, old, op, *token) : !copy_region(p, old, op, r, *token, loop)) return false;
  }
  if (op) *token = &op->results[op->result_count - 1];
  return op != NULL;
}

static bool holds_candidate(const publication *p, const weft_mlir_op *op) {
  if (!op->region_count || p->next >= p->count) return false;
  for (const weft_mlir_op *inner = p->candidates[p->next].region; inner; inner = weft_mlir_parent(inner))
    if (inner == op) return true;
  return false;
}

/* `hand_on`: the terminator hands the token on, too. A NULL token: nothing to publish in here. */
static bool copy_block(publication *p, const weft_mlir_block *old, weft_mlir_block *new, weft_mlir_value **token,
                       bool hand_on) {
  for (const weft_mlir_op *op = old->first; op; op = op->next) {
    bool good;
    if (token && weft_mlir_code(op) == WEFT_DATAFLOW_SPATIAL_REGION) {
      good = copy_candidate(p, op, new, token);
    } else if (token && holds_candidate(p, op)) {
      good = copy_around(p, op, new, token);
    } else if (hand_on && op == old->last) {
      parts_of parts;
      good = gather(p, op, *token, false, &parts) && make(p, op, &parts, new);
    } else {
      good = copy_plain(p, op, new);
    }
    if (!good) return false;
  }
  return true;
}

weft_mlir_op *publish_thread(publication *p, weft_mlir_op *thread) {
  uint32_t marks = 0;
  for (weft_mlir_op *op = weft_mlir_next(thread, NULL); op; op = weft_mlir_next(thread, op)) {
    for (uint32_t i = 0; i < op->result_count; i++) op->results[i].mark = marks++;
    for (uint32_t r = 0; r < op->region_count; r++)
      for (weft_mlir_block *b = weft_mlir_op_region(op, r)->first; b; b = b->next)
        for (uint32_t i = 0; i < b->argument_count; i++) b->arguments[i].mark = marks++;
  }
  p->map = WEFT_NEW_ARRAY(p->l.scratch, weft_mlir_value *, marks);
  weft_mlir_op_parts parts = {.name = thread->name,
                              .properties = thread->properties,
                              .attributes = thread->attributes,
                              .region_count = 1,
                              .line = thread->line,
                              .column = thread->column};
  weft_mlir_op *copy = weft_mlir_op_new(p->l.arena, &parts);
  const weft_mlir_block *old = weft_mlir_op_block(thread, 0);
  weft_mlir_block *block = copy && p->map ? make_block(p, old, weft_mlir_op_region(copy, 0), false) : NULL;
  if (!block) {
    lower_memory(&p->l);
    return NULL;
  }
  weft_mlir_value *token = &block->arguments[weft_mlir_function_type(thread)->input_count];
  return copy_block(p, old, block, &token, true) ? copy : NULL;
}
