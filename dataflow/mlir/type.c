/* Types: made once each. */
#include "internal.h"

#include <stdio.h>

static uint64_t hash_pointers(uint64_t hash, const void *const *items, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) hash = mlir_mix(hash, (uint64_t)(uintptr_t)items[i]);
  return hash;
}

static uint64_t hash_type(const weft_mlir_type *t) {
  uint64_t hash = mlir_mix((uint64_t)t->kind * 8 + (uint64_t)t->sign * 2 + t->unranked, t->width);
  if (t->name) hash = mlir_mix(hash, mlir_hash(t->name, strlen(t->name)));
  if (t->body) hash = mlir_mix(hash, mlir_hash(t->body, strlen(t->body)));
  hash = mlir_mix(hash, (uint64_t)(uintptr_t)t->element);
  for (uint32_t i = 0; i < t->rank; i++) hash = mlir_mix(hash, (uint64_t)t->extents[i]);
  hash = mlir_mix(hash, (uint64_t)(uintptr_t)t->layout);
  hash = mlir_mix(hash, (uint64_t)(uintptr_t)t->memory_space);
  hash = hash_pointers(hash, (const void *const *)t->inputs, t->input_count);
  hash = hash_pointers(mlir_mix(hash, t->input_count), (const void *const *)t->results, t->result_count);
  return hash_pointers(hash, (const void *const *)t->parameters, t->parameter_count);
}

static bool same_bytes(const void *a, const void *b, size_t size) { return size == 0 || memcmp(a, b, size) == 0; }

static bool same_string(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

static bool same_type(const void *item, const void *key) {
  const weft_mlir_type *a = item, *b = key;
  return a->kind == b->kind && a->width == b->width && a->sign == b->sign && a->unranked == b->unranked &&
         a->rank == b->rank && a->input_count == b->input_count && a->result_count == b->result_count &&
         a->parameter_count == b->parameter_count && a->element == b->element && a->layout == b->layout &&
         a->memory_space == b->memory_space && same_string(a->name, b->name) && same_string(a->body, b->body) &&
         same_bytes(a->extents, b->extents, a->rank * sizeof *a->extents) && !a->scalable == !b->scalable &&
         (!a->scalable || same_bytes(a->scalable, b->scalable, a->rank * sizeof *a->scalable)) &&
         same_bytes(a->inputs, b->inputs, a->input_count * sizeof *a->inputs) &&
         same_bytes(a->results, b->results, a->result_count * sizeof *a->results) &&
         same_bytes(a->parameters, b->parameters, a->parameter_count * sizeof *a->parameters);
}

/* A copy of `count` elements in the context's arena. */
static void *copy(weft_mlir_context *context, const void *items, uint64_t count, size_t size) {
  void *copied = weft_arena_array(context->arena, count, size);
  if (copied && count) memcpy(copied, items, count * size);
  return copied;
}

const weft_mlir_type *weft_mlir_type_get(weft_mlir_context *context, const weft_mlir_type *shape) {
  uint64_t hash = hash_type(shape);
  weft_mlir_type *found = mlir_table_find(&context->types, hash, same_type, shape);
  if (found) return found;
  weft_mlir_type *type = WEFT_NEW(context->arena, weft_mlir_type);
  if (!type) return NULL;
  *type = *shape;
  if (shape->name) type->name = weft_mlir_intern(context, shape->name, strlen(shape->name));
  if (shape->body) type->body = weft_mlir_intern(context, shape->body, strlen(shape->body));
  if (shape->rank) type->extents = copy(context, shape->extents, shape->rank, sizeof *shape->extents);
  if (shape->scalable) type->scalable = copy(context, shape->scalable, shape->rank, sizeof *shape->scalable);
  if (shape->input_count) type->inputs = copy(context, shape->inputs, shape->input_count, sizeof *shape->inputs);
  if (shape->result_count) type->results = copy(context, shape->results, shape->result_count, sizeof *shape->results);
  if (shape->parameter_count)
    type->parameters = copy(context, shape->parameters, shape->parameter_count, sizeof *shape->parameters);
  if (weft_arena_failed(context->arena)) return NULL;
  return mlir_table_add(&context->types, hash, type) ? type : NULL;
}

const weft_mlir_type *weft_mlir_integer(weft_mlir_context *context, uint32_t width, weft_mlir_sign sign) {
  if (sign == WEFT_MLIR_SIGNLESS) {
    if (width == 32 && context->i32) return context->i32;
    if (width == 1 && context->i1) return context->i1;
    if (width == 64 && context->i64) return context->i64;
  }
  static const char *const prefix[] = {"i", "si", "ui"};
  char name[16];
  snprintf(name, sizeof name, "%s%u", prefix[sign], width);
  return weft_mlir_type_get(
      context, &(weft_mlir_type){.kind = WEFT_MLIR_INTEGER_TYPE, .width = width, .sign = sign, .name = name});
}

const weft_mlir_type *weft_mlir_index(weft_mlir_context *context) { return context->index; }
const weft_mlir_type *weft_mlir_none(weft_mlir_context *context) { return context->none; }

const weft_mlir_type *weft_mlir_float(weft_mlir_context *context, const char *name) {
  static const struct {
    const char *name;
    uint32_t width;
  } floats[] = {
      {"f16", 16},          {"bf16", 16},  {"f32", 32},      {"f64", 64},     {"f80", 80},       {"f128", 128},
      {"tf32", 19},         {"f8E5M2", 8}, {"f8E4M3", 8},    {"f8E4M3FN", 8}, {"f8E5M2FNUZ", 8}, {"f8E4M3FNUZ", 8},
      {"f8E4M3B11FNUZ", 8}, {"f8E3M4", 8}, {"f8E8M0FNU", 8}, {"f6E3M2FN", 6}, {"f6E2M3FN", 6},   {"f4E2M1FN", 4},
  };
  for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
    if (strcmp(floats[i].name, name) == 0)
      return weft_mlir_type_get(
          context, &(weft_mlir_type){.kind = WEFT_MLIR_FLOAT_TYPE, .width = floats[i].width, .name = floats[i].name});
  return NULL;
}

const weft_mlir_type *weft_mlir_function(weft_mlir_context *context, const weft_mlir_type *const *inputs,
                                         uint32_t input_count, const weft_mlir_type *const *results,
                                         uint32_t result_count) {
  weft_mlir_type shape = {.kind = WEFT_MLIR_FUNCTION_TYPE,
                          .input_count = input_count,
                          .result_count = result_count,
                          .inputs = inputs,
                          .results = results};
  return weft_mlir_type_get(context, &shape);
}

const weft_mlir_type *weft_mlir_dialect_type(weft_mlir_context *context, const char *name,
                                             const weft_mlir_type *parameter) {
  const weft_mlir_attribute *item = parameter ? weft_mlir_type_attribute(context, parameter) : NULL;
  weft_mlir_type shape = {
      .kind = WEFT_MLIR_DIALECT_TYPE, .name = name, .parameters = &item, .parameter_count = parameter != NULL};
  return weft_mlir_type_get(context, &shape);
}

bool weft_mlir_is_integer(const weft_mlir_type *type, uint32_t width) {
  return type->kind == WEFT_MLIR_INTEGER_TYPE && type->width == width && type->sign == WEFT_MLIR_SIGNLESS;
}

bool weft_mlir_elements(const weft_mlir_type *type, uint64_t *count) {
  uint64_t elements = 1;
  if (type->unranked) return false;
  for (uint32_t i = 0; i < type->rank; i++)
    if (type->extents[i] < 0 || weft_mul_overflow(elements, (uint64_t)type->extents[i], &elements)) return false;
  *count = elements;
  return true;
}
