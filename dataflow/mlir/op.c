/* Ops, blocks and regions: making, finding, moving, copying. An op, its results and its operands lie in one piece. */
#include "internal.h"

uint32_t weft_mlir_code(const weft_mlir_op *op) { return op->name->spec ? op->name->spec->code : 0; }

weft_mlir_region *weft_mlir_op_region(const weft_mlir_op *op, uint32_t index) {
  return index < op->region_count ? &op->extra->regions[index] : NULL;
}

weft_mlir_block *weft_mlir_op_block(const weft_mlir_op *op, uint32_t index) {
  weft_mlir_region *region = weft_mlir_op_region(op, index);
  return region && region->first == region->last ? region->first : NULL;
}

weft_mlir_op *weft_mlir_parent(const weft_mlir_op *op) { return op->block ? op->block->region->op : NULL; }

weft_mlir_op *weft_mlir_defining_op(const weft_mlir_value *value) {
  return value->is_argument ? NULL : (weft_mlir_op *)value->owner;
}

weft_mlir_block *weft_mlir_value_block(const weft_mlir_value *value) {
  return value->is_argument ? (weft_mlir_block *)value->owner : ((weft_mlir_op *)value->owner)->block;
}

const weft_mlir_attribute *weft_mlir_attribute_of(const weft_mlir_op *op, const char *name) {
  const weft_mlir_attribute *found = weft_mlir_member(op->properties, name);
  return found ? found : weft_mlir_member(op->attributes, name);
}

const char *weft_mlir_attribute_text(const weft_mlir_op *op, const char *name, const char *otherwise) {
  const weft_mlir_attribute *a = weft_mlir_attribute_of(op, name);
  if (a && a->kind == WEFT_MLIR_STRING) return a->as.string.data;
  if (a && a->kind == WEFT_MLIR_SYMBOL) return a->as.path[0];
  return otherwise;
}

int64_t weft_mlir_attribute_integer(const weft_mlir_op *op, const char *name, int64_t otherwise) {
  const weft_mlir_attribute *a = weft_mlir_attribute_of(op, name);
  return a && a->kind == WEFT_MLIR_INTEGER ? a->as.integer : otherwise;
}

const char *weft_mlir_symbol_name(const weft_mlir_op *op) { return weft_mlir_attribute_text(op, "sym_name", ""); }

weft_mlir_op *weft_mlir_lookup(const weft_mlir_op *module, const char *name) {
  weft_mlir_block *block = weft_mlir_op_block(module, 0);
  for (weft_mlir_op *op = block ? block->first : NULL; op; op = op->next)
    if (strcmp(weft_mlir_symbol_name(op), name) == 0) return op;
  return NULL;
}

weft_place weft_mlir_place(const char *file, const weft_mlir_op *op) {
  return (weft_place){.file = file, .line = op->line, .column = op->column};
}

/* The first op in `op`'s regions from `region` on. */
static weft_mlir_op *first_inside(const weft_mlir_op *op, uint32_t region) {
  for (; region < op->region_count; region++)
    for (weft_mlir_block *b = op->extra->regions[region].first; b; b = b->next)
      if (b->first) return b->first;
  return NULL;
}

/* The first op after the end of `block` in its region and the regions that follow it. */
static weft_mlir_op *first_after(const weft_mlir_block *block) {
  for (const weft_mlir_block *b = block->next; b; b = b->next)
    if (b->first) return b->first;
  const weft_mlir_op *parent = block->region->op;
  return first_inside(parent, (uint32_t)(block->region - parent->extra->regions) + 1);
}

weft_mlir_op *weft_mlir_next(const weft_mlir_op *root, const weft_mlir_op *op) {
  if (!op) return (weft_mlir_op *)root;
  weft_mlir_op *inside = first_inside(op, 0);
  if (inside) return inside;
  while (op != root) {
    if (op->next) return op->next;
    weft_mlir_op *after = first_after(op->block);
    if (after) return after;
    op = op->block->region->op;
  }
  return NULL;
}

static bool make_extra(weft_arena *arena, weft_mlir_op *op, const weft_mlir_op_parts *parts) {
  if (!parts->region_count && !parts->successor_count && !parts->location) return true;
  weft_mlir_op_extra *extra = WEFT_NEW(arena, weft_mlir_op_extra);
  if (!extra) return false;
  op->extra = extra;
  extra->location = parts->location;
  extra->regions = WEFT_NEW_ARRAY(arena, weft_mlir_region, parts->region_count);
  extra->successors = WEFT_NEW_ARRAY(arena, weft_mlir_block *, parts->successor_count);
  extra->successor_operands = WEFT_NEW_ARRAY(arena, uint32_t, parts->successor_count);
  if (!extra->regions || !extra->successors || !extra->successor_operands) return false;
  for (uint32_t i = 0; i < parts->region_count; i++) extra->regions[i].op = op;
  for (uint32_t i = 0; i < parts->successor_count; i++) {
    extra->successors[i] = parts->successors[i];
    extra->successor_operands[i] = parts->successor_operands ? parts->successor_operands[i] : 0;
  }
  return true;
}

weft_mlir_op *weft_mlir_op_new(weft_arena *arena, const weft_mlir_op_parts *parts) {
  if (parts->region_count > UINT16_MAX || parts->successor_count > UINT16_MAX) return NULL;
  size_t results = parts->result_count * sizeof(weft_mlir_value);
  weft_mlir_op *op = weft_arena_alloc(arena, sizeof *op + results + parts->operand_count * sizeof *op->operands);
  if (!op) return NULL;
  op->name = parts->name;
  op->properties = parts->properties;
  op->attributes = parts->attributes;
  op->operand_count = parts->operand_count;
  op->result_count = parts->result_count;
  op->region_count = (uint16_t)parts->region_count;
  op->successor_count = (uint16_t)parts->successor_count;
  op->line = parts->line;
  op->column = parts->column;
  op->operands = (weft_mlir_value **)((char *)op + sizeof *op + results);
  if (parts->operand_count) memcpy(op->operands, parts->operands, parts->operand_count * sizeof *op->operands);
  for (uint32_t i = 0; i < parts->result_count; i++) {
    op->results[i].type = parts->result_types[i];
    op->results[i].owner = op;
    op->results[i].index = i & INT32_MAX;
  }
  return make_extra(arena, op, parts) ? op : NULL;
}

weft_mlir_block *weft_mlir_block_new(weft_arena *arena, weft_mlir_region *region,
                                     const weft_mlir_type *const *argument_types, uint32_t argument_count) {
  weft_mlir_block *block = WEFT_NEW(arena, weft_mlir_block);
  if (!block) return NULL;
  block->region = region;
  block->argument_count = argument_count;
  block->arguments = argument_count ? WEFT_NEW_ARRAY(arena, weft_mlir_value, argument_count) : NULL;
  if (argument_count && !block->arguments) return NULL;
  for (uint32_t i = 0; i < argument_count; i++) {
    block->arguments[i].type = argument_types[i];
    block->arguments[i].owner = block;
    block->arguments[i].index = i & INT32_MAX;
    block->arguments[i].is_argument = 1;
  }
  block->previous = region->last;
  if (region->last)
    region->last->next = block;
  else
    region->first = block;
  region->last = block;
  return block;
}

void weft_mlir_insert(weft_mlir_block *block, weft_mlir_op *op, weft_mlir_op *before) {
  op->block = block;
  op->next = before;
  op->previous = before ? before->previous : block->last;
  if (op->previous)
    op->previous->next = op;
  else
    block->first = op;
  if (before)
    before->previous = op;
  else
    block->last = op;
}

void weft_mlir_remove(weft_mlir_op *op) {
  weft_mlir_block *block = op->block;
  if (!block) return;
  if (op->previous)
    op->previous->next = op->next;
  else
    block->first = op->next;
  if (op->next)
    op->next->previous = op->previous;
  else
    block->last = op->previous;
  op->block = NULL;
  op->previous = op->next = NULL;
}

/* The dictionary with `name` set to `value`, or without it; NULL when nothing is left. */
static const weft_mlir_attribute *with_member(weft_mlir_context *context, const weft_mlir_attribute *dictionary,
                                              const char *name, const weft_mlir_attribute *value) {
  enum { MOST = 256 };
  weft_mlir_named members[MOST];
  uint32_t count = 0;
  for (uint32_t i = 0; dictionary && i < dictionary->count && count < MOST - 1; i++)
    if (dictionary->as.members[i].name != name) members[count++] = dictionary->as.members[i];
  if (value) members[count++] = (weft_mlir_named){name, value};
  return count ? weft_mlir_dictionary(context, members, count) : NULL;
}

void weft_mlir_set(weft_mlir_context *context, weft_mlir_op *op, const char *name, const weft_mlir_attribute *value) {
  name = weft_mlir_intern(context, name, strlen(name));
  if (!name) return;
  bool belongs =
      mlir_is_inherent(mlir_op_name_of(op), name) || (!op->name->spec && weft_mlir_member(op->properties, name));
  if (belongs)
    op->properties = with_member(context, op->properties, name, value);
  else
    op->attributes = with_member(context, op->attributes, name, value);
}

weft_mlir_op *weft_mlir_module_new(weft_mlir_context *context, weft_arena *arena) {
  weft_mlir_op_parts parts = {.name = weft_mlir_name(context, "builtin.module", 14), .region_count = 1};
  weft_mlir_op *module = parts.name ? weft_mlir_op_new(arena, &parts) : NULL;
  return module && weft_mlir_block_new(arena, &module->extra->regions[0], NULL, 0) ? module : NULL;
}

/* ---- copying -------------------------------------------------------------------------------------------------- */

/* Copies by numbering the values and blocks below the root in pre-order: `values[mark - 1]` is a value's copy. Marks of
 * values outside are told from those inside by `originals`. */
typedef struct copier {
  weft_arena *arena;
  weft_mlir_value **originals, **values;
  weft_mlir_block **old_blocks, **new_blocks;
  uint64_t value_count, block_count;
  bool failed;
} copier;

static void count_inside(const weft_mlir_op *root, uint64_t *values, uint64_t *blocks) {
  for (const weft_mlir_op *op = root; op; op = weft_mlir_next(root, op)) {
    *values += op->result_count;
    for (uint32_t r = 0; r < op->region_count; r++)
      for (weft_mlir_block *b = op->extra->regions[r].first; b; b = b->next) {
        *values += b->argument_count;
        ++*blocks;
      }
  }
}

static void pair_values(copier *c, weft_mlir_value *old, weft_mlir_value *new, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    c->originals[c->value_count] = &old[i];
    c->values[c->value_count++] = &new[i];
    old[i].mark = (uint32_t)c->value_count;
  }
}

static weft_mlir_op *copy_op(copier *c, const weft_mlir_op *old);

static void copy_region(copier *c, const weft_mlir_region *old, weft_mlir_region *new) {
  for (weft_mlir_block *b = old->first; b; b = b->next) {
    const weft_mlir_type **types = WEFT_NEW_ARRAY(c->arena, const weft_mlir_type *, b->argument_count);
    for (uint32_t i = 0; types && i < b->argument_count; i++) types[i] = b->arguments[i].type;
    weft_mlir_block *copied = types ? weft_mlir_block_new(c->arena, new, types, b->argument_count) : NULL;
    if (!copied) {
      c->failed = true;
      return;
    }
    pair_values(c, b->arguments, copied->arguments, b->argument_count);
    c->old_blocks[c->block_count] = b;
    c->new_blocks[c->block_count++] = copied;
    b->mark = (uint32_t)c->block_count;
  }
  weft_mlir_block *target = new->first;
  for (weft_mlir_block *b = old->first; b && !c->failed; b = b->next, target = target->next)
    for (weft_mlir_op *op = b->first; op; op = op->next) {
      weft_mlir_op *copied = copy_op(c, op);
      if (!copied) return;
      weft_mlir_insert(target, copied, NULL);
    }
}

static weft_mlir_op *copy_op(copier *c, const weft_mlir_op *old) {
  const weft_mlir_type **types = WEFT_NEW_ARRAY(c->arena, const weft_mlir_type *, old->result_count);
  if (!types) goto failed;
  for (uint32_t i = 0; i < old->result_count; i++) types[i] = old->results[i].type;
  weft_mlir_op_parts parts = {.name = old->name,
                              .operands = old->operands,
                              .result_types = types,
                              .properties = old->properties,
                              .attributes = old->attributes,
                              .location = old->extra ? old->extra->location : NULL,
                              .successors = old->extra ? old->extra->successors : NULL,
                              .successor_operands = old->extra ? old->extra->successor_operands : NULL,
                              .operand_count = old->operand_count,
                              .result_count = old->result_count,
                              .region_count = old->region_count,
                              .successor_count = old->successor_count,
                              .line = old->line,
                              .column = old->column};
  weft_mlir_op *new = weft_mlir_op_new(c->arena, &parts);
  if (!new) goto failed;
  pair_values(c, ((weft_mlir_op *)old)->results, new->results, old->result_count);
  for (uint32_t r = 0; r < old->region_count && !c->failed; r++)
    copy_region(c, &old->extra->regions[r], &new->extra->regions[r]);
  return c->failed ? NULL : new;
failed:
  c->failed = true;
  return NULL;
}

/* Points the copy's operands and successors at copies where they were inside. */
static void redirect(copier *c, weft_mlir_op *root) {
  for (weft_mlir_op *op = root; op; op = weft_mlir_next(root, op)) {
    for (uint32_t i = 0; i < op->operand_count; i++) {
      uint32_t mark = op->operands[i]->mark;
      if (mark && mark <= c->value_count && c->originals[mark - 1] == op->operands[i])
        op->operands[i] = c->values[mark - 1];
    }
    for (uint32_t i = 0; i < op->successor_count; i++) {
      uint32_t mark = op->extra->successors[i]->mark;
      if (mark && mark <= c->block_count && c->old_blocks[mark - 1] == op->extra->successors[i])
        op->extra->successors[i] = c->new_blocks[mark - 1];
    }
  }
}

weft_mlir_op *weft_mlir_clone(weft_arena *arena, weft_mlir_op *op) {
  uint64_t values = 0, blocks = 0;
  count_inside(op, &values, &blocks);
  weft_arena *scratch = weft_arena_new();
  if (!scratch) return NULL;
  copier c = {.arena = arena};
  c.originals = WEFT_NEW_ARRAY(scratch, weft_mlir_value *, values);
  c.values = WEFT_NEW_ARRAY(scratch, weft_mlir_value *, values);
  c.old_blocks = WEFT_NEW_ARRAY(scratch, weft_mlir_block *, blocks);
  c.new_blocks = WEFT_NEW_ARRAY(scratch, weft_mlir_block *, blocks);
  weft_mlir_op *copy = weft_arena_failed(scratch) ? NULL : copy_op(&c, op);
  if (copy) redirect(&c, copy);
  weft_arena_free(scratch);
  return copy;
}
