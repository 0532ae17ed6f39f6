/* Values of postconditions: elements, equality, hashes, sets, and the stack of memory they live on. */
#include "evaluation_private.h"

#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {
    [VALUE_BOOL] = "a truth value",
    [VALUE_INTEGER] = "a number",
    [VALUE_TEXT] = "a text",
    [VALUE_OP] = "an operation",
    [VALUE_SSA] = "a value",
    [VALUE_TYPE] = "a type",
    [VALUE_SYMBOL] = "a symbol",
    [VALUE_ATTRIBUTE] = "an attribute",
    [VALUE_MAYBE_OP] = "an operation that may be missing",
    [VALUE_SEQUENCE] = "a sequence",
    [VALUE_SET] = "a set",
    [VALUE_SIDE] = "a program",
};

const char *evaluation_kind_name(uint8_t kind) { return kind_names[kind]; }

static value op_value(weft_mlir_op *op) { return (value){.kind = VALUE_OP, .as.op = op}; }
static value ssa_value(weft_mlir_value *ssa) { return (value){.kind = VALUE_SSA, .as.ssa = ssa}; }

value evaluation_at(const value *sequence, uint64_t index) {
  if (sequence->kind == VALUE_SET) return sequence->as.set->items[index];
  switch ((sequence_shape)sequence->shape) {
  case SHAPE_OPS: return op_value(((weft_mlir_op *const *)sequence->as.elements)[index]);
  case SHAPE_OPERANDS: return ssa_value(((weft_mlir_value *const *)sequence->as.elements)[index]);
  case SHAPE_RESULTS: return ssa_value((weft_mlir_value *)sequence->as.elements + index);
  case SHAPE_VALUES: break;
  }
  return ((const value *)sequence->as.elements)[index];
}

/* ---- equality ------------------------------------------------------------------------------------------------- */

static bool symbol_is(const weft_mlir_attribute *symbol, const char *text, uint64_t length) {
  for (uint32_t i = 0; i < symbol->count; i++) {
    size_t part = strlen(symbol->as.path[i]);
    bool last = i + 1 == symbol->count;
    if (length < part || memcmp(text, symbol->as.path[i], part) != 0) return false;
    text += part;
    length -= part;
    if (last) return length == 0;
    if (length < 3 || memcmp(text, "::@", 3) != 0) return false;
    text += 3;
    length -= 3;
  }
  return false;
}

static bool equal_elements(const value *a, const value *b) {
  if (a->count != b->count) return false;
  for (uint64_t i = 0; i < a->count; i++) {
    value x = evaluation_at(a, i), y = evaluation_at(b, i);
    if (!evaluation_equal(&x, &y)) return false;
  }
  return true;
}

static bool equal_sets(const value *a, const value *b) {
  if (a->count != b->count) return false;
  for (uint64_t i = 0; i < a->count; i++)
    if (!evaluation_set_holds(b->as.set, &a->as.set->items[i])) return false;
  return true;
}

bool evaluation_equal(const value *a, const value *b) {
  if (a->kind == VALUE_SYMBOL && b->kind == VALUE_TEXT) return symbol_is(a->as.attribute, b->as.text, b->count);
  if (a->kind == VALUE_TEXT && b->kind == VALUE_SYMBOL) return symbol_is(b->as.attribute, a->as.text, a->count);
  if (a->kind != b->kind) return false;
  switch ((value_kind)a->kind) {
  case VALUE_BOOL: return a->truth == b->truth;
  case VALUE_INTEGER: return a->as.integer == b->as.integer;
  case VALUE_TEXT: return a->count == b->count && memcmp(a->as.text, b->as.text, a->count) == 0;
  case VALUE_SEQUENCE: return equal_elements(a, b);
  case VALUE_SET: return equal_sets(a, b);
  default: return a->as.elements == b->as.elements;
  }
}

/* Mixes, so that addresses, which differ in few bits, spread. */
static uint64_t mixed(uint64_t x) {
  x ^= x >> 32;
  x *= UINT64_C(0x9e3779b97f4a7c15);
  return x ^ (x >> 29);
}

uint64_t evaluation_hash(const value *v) {
  switch ((value_kind)v->kind) {
  case VALUE_BOOL: return v->truth;
  case VALUE_INTEGER: return mixed((uint64_t)v->as.integer);
  case VALUE_TEXT: return weft_hash_bytes(0, v->as.text, v->count);
  case VALUE_SEQUENCE: {
    uint64_t hash = v->count;
    for (uint64_t i = 0; i < v->count; i++) {
      value element = evaluation_at(v, i);
      hash = mixed(hash + evaluation_hash(&element));
    }
    return hash;
  }
  case VALUE_SET: return v->count; /* equal sets may be in any order */
  default: return mixed((uintptr_t)v->as.elements);
  }
}

bool evaluation_set_holds(const set_table *set, const value *v) {
  if (!set->count) return false;
  uint64_t mask = set->slot_count - 1;
  for (uint64_t slot = evaluation_hash(v) & mask; set->slots[slot]; slot = (slot + 1) & mask)
    if (evaluation_equal(&set->items[set->slots[slot] - 1], v)) return true;
  return false;
}

bool evaluation_in(const value *sequence, const value *v) {
  if (sequence->kind == VALUE_SET && v->kind != VALUE_SYMBOL && v->kind != VALUE_TEXT)
    return evaluation_set_holds(sequence->as.set, v);
  for (uint64_t i = 0; i < sequence->count; i++) {
    value element = evaluation_at(sequence, i);
    if (evaluation_equal(&element, v)) return true;
  }
  return false;
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

enum { CHUNK_LEAST = 1 << 16, ALIGNMENT = 16 };

static char *chunk_bytes(pool_chunk *c) { return (char *)c + (sizeof *c + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

void *evaluation_pool_array(pool *p, uint64_t count, size_t size) {
  uint64_t bytes;
  if (weft_mul_overflow(count, size, &bytes) || bytes > POOL_MOST) return NULL;
  bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (!p->top || p->top->capacity - p->top->used < bytes) {
    size_t capacity = weft_max_u64(bytes, CHUNK_LEAST);
    pool_chunk *c = p->reserved + capacity > POOL_MOST ? NULL : malloc(sizeof *c + ALIGNMENT + capacity);
    if (!c) return NULL;
    *c = (pool_chunk){.below = p->top, .capacity = capacity};
    p->top = c;
    p->reserved += capacity;
  }
  void *result = chunk_bytes(p->top) + p->top->used;
  p->top->used += bytes;
  return result;
}

pool_mark evaluation_pool_now(const pool *p) { return (pool_mark){.chunk = p->top, .used = p->top ? p->top->used : 0}; }

void evaluation_pool_release(pool *p, pool_mark mark) {
  while (p->top != mark.chunk) {
    pool_chunk *c = p->top;
    p->top = c->below;
    p->reserved -= c->capacity;
    free(c);
  }
  if (p->top) p->top->used = mark.used;
}
