/* What postconditions ask of a module, listed once: its ops in pre-order, the uses of every value, its symbols. */
#include "evaluation_private.h"

#include <string.h>

/* ---- ops and values ------------------------------------------------------------------------------------------- */

static bool list_ops(evaluation *e, side *s) {
  for (const weft_mlir_op *op = weft_mlir_next(s->module, NULL); op; op = weft_mlir_next(s->module, op)) s->op_count++;
  s->ops = WEFT_NEW_ARRAY(e->arena, weft_mlir_op *, s->op_count);
  if (!s->ops) return evaluation_no_memory(e);
  uint64_t i = 0;
  for (weft_mlir_op *op = weft_mlir_next(s->module, NULL); op; op = weft_mlir_next(s->module, op)) s->ops[i++] = op;
  return true;
}

static void mark_values(weft_mlir_value *values, uint32_t count, uint32_t *next) {
  for (uint32_t i = 0; i < count; i++) values[i].mark = (*next)++;
}

static void number_values(const side *s, uint32_t *next) {
  for (uint64_t i = 0; i < s->op_count; i++) {
    weft_mlir_op *op = s->ops[i];
    mark_values(op->results, op->result_count, next);
    for (uint32_t r = 0; r < op->region_count; r++)
      for (weft_mlir_block *b = weft_mlir_op_region(op, r)->first; b; b = b->next)
        mark_values(b->arguments, b->argument_count, next);
  }
}

/* ---- uses ----------------------------------------------------------------------------------------------------- */

static void count_uses(const side *s, uint64_t *counts) {
  for (uint64_t i = 0; i < s->op_count; i++)
    for (uint32_t k = 0; k < s->ops[i]->operand_count; k++) counts[s->ops[i]->operands[k]->mark]++;
}

static void place_uses(evaluation *e, const side *s, uint64_t *next) {
  for (uint64_t i = 0; i < s->op_count; i++)
    for (uint32_t k = 0; k < s->ops[i]->operand_count; k++) e->users[next[s->ops[i]->operands[k]->mark]++] = s->ops[i];
}

/* first_user[m + 1] is first the number of uses of m, then where they begin, then, filled, where they end. */
static bool list_uses(evaluation *e, const side *const *sides, int side_count, uint32_t values) {
  uint64_t *starts = WEFT_NEW_ARRAY(e->arena, uint64_t, (uint64_t)values + 2);
  if (!starts) return evaluation_no_memory(e);
  for (int s = 0; s < side_count; s++) count_uses(sides[s], starts + 2);
  for (uint64_t v = 2; v < (uint64_t)values + 2; v++) starts[v] += starts[v - 1];
  e->users = WEFT_NEW_ARRAY(e->arena, weft_mlir_op *, starts[values + 1]);
  if (!e->users) return evaluation_no_memory(e);
  for (int s = 0; s < side_count; s++) place_uses(e, sides[s], starts + 1);
  e->first_user = starts;
  return true;
}

/* ---- symbols -------------------------------------------------------------------------------------------------- */

/* The ops directly inside the module that have a name. */
static weft_mlir_op *next_symbol(weft_mlir_op *op) {
  while (op && !*weft_mlir_symbol_name(op)) op = op->next;
  return op;
}

static weft_mlir_op *first_symbol(const side *s) {
  weft_mlir_block *block = s->module->region_count ? weft_mlir_op_region(s->module, 0)->first : NULL;
  return block ? next_symbol(block->first) : NULL;
}

static bool list_symbols(evaluation *e, side *s) {
  s->symbols.arena = e->arena;
  uint64_t count = 0;
  for (weft_mlir_op *op = first_symbol(s); op; op = next_symbol(op->next)) {
    const char *name = weft_mlir_symbol_name(op);
    if (language_names_add(&s->symbols, name, strlen(name)) == NAME_NONE) return evaluation_no_memory(e);
    count++;
  }
  uint64_t *starts = WEFT_NEW_ARRAY(e->arena, uint64_t, s->symbols.count + 2);
  s->symbol_ops = WEFT_NEW_ARRAY(e->arena, weft_mlir_op *, count);
  if (!starts || !s->symbol_ops) return evaluation_no_memory(e);
  for (weft_mlir_op *op = first_symbol(s); op; op = next_symbol(op->next)) {
    const char *name = weft_mlir_symbol_name(op);
    starts[language_names_find(&s->symbols, name, strlen(name)) + 2]++;
  }
  for (uint64_t i = 2; i < s->symbols.count + 2; i++) starts[i] += starts[i - 1];
  for (weft_mlir_op *op = first_symbol(s); op; op = next_symbol(op->next)) {
    const char *name = weft_mlir_symbol_name(op);
    s->symbol_ops[starts[language_names_find(&s->symbols, name, strlen(name)) + 1]++] = op;
  }
  s->symbol_start = starts;
  return true;
}

bool evaluation_read_sides(evaluation *e) {
  const side *distinct[2];
  int count = 0;
  uint32_t values = 0;
  for (int i = 0; i < 2; i++) {
    side *s = &e->sides[i];
    if (!s->module) continue;
    if (!list_ops(e, s) || !list_symbols(e, s)) return false;
    if (count && distinct[0]->module == s->module) continue;
    number_values(s, &values);
    distinct[count++] = s;
  }
  return list_uses(e, distinct, count, values);
}
