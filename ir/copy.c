/* Deep copies, driven by the schema: the bytes of a struct, then every pointer in it replaced by one to a copy. */
#include "schema_private.h"

#include <string.h>

static bool copy_inside(weft_arena *arena, const shape *s, void *at);

static void *copied_array(weft_arena *arena, const shape *element, const void *items, uint64_t count, size_t size) {
  char *copy = weft_arena_array(arena, count, size);
  if (!copy) return NULL;
  memcpy(copy, items, count * size);
  if (element->plain) return copy;
  for (uint64_t i = 0; i < count; i++)
    if (!copy_inside(arena, element, copy + i * size)) return NULL;
  return copy;
}

/* Replaces the pointer at `at`, to `count` elements, by one to a copy. */
static bool copy_array(weft_arena *arena, const shape *element, void *at, uint64_t count, size_t size) {
  const void *items = weft_schema_pointer(at);
  if (!items || !count) return true;
  void *copy = copied_array(arena, element, items, count, size);
  weft_schema_set_pointer(at, copy);
  return copy != NULL;
}

static bool copy_fields(weft_arena *arena, const shape *s, char *base) {
  for (uint16_t i = 0; i < s->count; i++) {
    const field *f = &s->fields[i];
    if (!f->shape->plain && !copy_inside(arena, f->shape, base + f->offset)) return false;
  }
  return true;
}

static bool copy_choice(weft_arena *arena, const shape *s, char *base) {
  uint64_t tag = weft_schema_tag(s, base);
  const shape_case *c = tag < s->count ? &s->cases[tag] : NULL;
  if (!c || !c->payload || c->payload->plain) return true;
  return copy_inside(arena, c->payload, base + c->offset);
}

static bool copy_string(weft_arena *arena, void *at) {
  const char *string = weft_schema_pointer(at);
  if (!string) return true;
  const char *copy = weft_arena_string(arena, string, strlen(string));
  weft_schema_set_pointer(at, copy);
  return copy != NULL;
}

/* Makes everything the value at `at` points to its own. */
static bool copy_inside(weft_arena *arena, const shape *s, void *at) {
  char *base = at;
  switch (s->kind) {
  case SHAPE_STRING: return copy_string(arena, at);
  case SHAPE_STRUCT:
  case SHAPE_TUPLE: return copy_fields(arena, s, at);
  case SHAPE_CHOICE: return copy_choice(arena, s, at);
  case SHAPE_LIST: return copy_array(arena, s->inner, at, ((const weft_schema_list *)at)->count, s->size);
  case SHAPE_PARALLEL: {
    uint64_t count = *(const uint64_t *)(const void *)(base + s->offset);
    if (!count) weft_schema_set_pointer(at, weft_schema_pointer(at) ? weft_arena_alloc(arena, 0) : NULL);
    return copy_array(arena, s->inner, at, count, s->size);
  }
  case SHAPE_BOX:
  case SHAPE_POINTER: return copy_array(arena, s->inner, at, 1, s->size);
  case SHAPE_FLAGGED: return !*(const bool *)(base + s->offset) || copy_inside(arena, s->inner, base + s->inner_offset);
  case SHAPE_BODY: {
    weft_body *body = at;
    return copy_array(arena, s->inner, &body->nodes, body->node_count, sizeof *body->nodes);
  }
  default: return true;
  }
}

weft_program *weft_program_clone(const weft_program *program) {
  weft_program *copy = weft_program_new("");
  if (!copy) return NULL;
  weft_arena *arena = copy->arena;
  *copy = *program;
  copy->arena = arena;
  if (!copy_inside(arena, &weft_schema_program, copy)) {
    weft_program_free(copy);
    return NULL;
  }
  return copy;
}

bool weft_stage_copy(weft_arena *arena, const weft_stage *from, weft_stage *to) {
  *to = *from;
  return copy_inside(arena, &weft_schema_stage, to);
}

bool weft_tensor_copy(weft_arena *arena, const weft_tensor *from, weft_tensor *to) {
  *to = *from;
  return copy_inside(arena, &weft_schema_tensor, to);
}

bool weft_op_copy(weft_arena *arena, const weft_op *from, weft_op *to) {
  *to = *from;
  return copy_inside(arena, &weft_schema_op, to);
}

weft_compute_op *weft_compute_op_copy(weft_arena *arena, const weft_compute_op *op) {
  return copied_array(arena, &weft_schema_compute_op, op, 1, sizeof *op);
}
