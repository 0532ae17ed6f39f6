/* Attributes: made once each. */
#include "internal.h"

#include <stdlib.h>

static uint64_t hash_items(uint64_t hash, const void *const *items, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) hash = mlir_mix(hash, (uint64_t)(uintptr_t)items[i]);
  return hash;
}

static size_t dense_bytes(const weft_mlir_attribute *a) { return a->as.dense.elements * a->as.dense.element_bytes; }

static uint64_t hash_attribute(const weft_mlir_attribute *a) {
  uint64_t hash = mlir_mix(mlir_mix((uint64_t)a->kind, a->count), (uint64_t)(uintptr_t)a->type);
  switch (a->kind) {
  case WEFT_MLIR_UNIT: return hash;
  case WEFT_MLIR_INTEGER: return mlir_mix(hash, (uint64_t)a->as.integer);
  case WEFT_MLIR_FLOAT: return mlir_mix(hash, a->as.bits);
  case WEFT_MLIR_STRING:
  case WEFT_MLIR_OPAQUE: return mlir_mix(hash, mlir_hash(a->as.string.data, a->as.string.length));
  case WEFT_MLIR_TYPE: return mlir_mix(hash, (uint64_t)(uintptr_t)a->as.type_value);
  case WEFT_MLIR_ARRAY: return hash_items(hash, (const void *const *)a->as.items, a->count);
  case WEFT_MLIR_DICTIONARY: return hash_items(hash, (const void *const *)a->as.members, 2 * (uint64_t)a->count);
  case WEFT_MLIR_SYMBOL: return hash_items(hash, (const void *const *)a->as.path, a->count);
  case WEFT_MLIR_AFFINE_MAP: return mlir_mix(hash, (uint64_t)(uintptr_t)a->as.map);
  case WEFT_MLIR_DENSE_ARRAY:
  case WEFT_MLIR_DENSE: return mlir_mix(hash, mlir_hash(a->as.dense.data, dense_bytes(a)));
  case WEFT_MLIR_DIALECT:
    hash = mlir_mix(hash, mlir_hash(a->as.dialect.name, strlen(a->as.dialect.name)));
    if (a->as.dialect.body) hash = mlir_mix(hash, mlir_hash(a->as.dialect.body, strlen(a->as.dialect.body)));
    return hash_items(hash, (const void *const *)a->as.dialect.items, a->count);
  }
  return hash;
}

static bool same_items(const void *a, const void *b, uint64_t count) {
  return count == 0 || memcmp(a, b, count * sizeof(void *)) == 0;
}

static bool same_dialect_value(const weft_mlir_attribute *a, const weft_mlir_attribute *b) {
  const char *x = a->as.dialect.body, *y = b->as.dialect.body;
  return strcmp(a->as.dialect.name, b->as.dialect.name) == 0 && (x == y || (x && y && strcmp(x, y) == 0)) &&
         same_items(a->as.dialect.items, b->as.dialect.items, a->count);
}

static bool same_attribute(const void *item, const void *key) {
  const weft_mlir_attribute *a = item, *b = key;
  if (a->kind != b->kind || a->count != b->count || a->type != b->type) return false;
  switch (a->kind) {
  case WEFT_MLIR_UNIT: return true;
  case WEFT_MLIR_INTEGER: return a->as.integer == b->as.integer;
  case WEFT_MLIR_FLOAT: return a->as.bits == b->as.bits;
  case WEFT_MLIR_STRING:
  case WEFT_MLIR_OPAQUE:
    return a->as.string.length == b->as.string.length &&
           (!a->as.string.length || memcmp(a->as.string.data, b->as.string.data, a->as.string.length) == 0);
  case WEFT_MLIR_TYPE: return a->as.type_value == b->as.type_value;
  case WEFT_MLIR_ARRAY: return same_items(a->as.items, b->as.items, a->count);
  case WEFT_MLIR_DICTIONARY: return same_items(a->as.members, b->as.members, 2 * (uint64_t)a->count);
  case WEFT_MLIR_SYMBOL: return same_items(a->as.path, b->as.path, a->count);
  case WEFT_MLIR_AFFINE_MAP: return a->as.map == b->as.map;
  case WEFT_MLIR_DENSE_ARRAY:
  case WEFT_MLIR_DENSE:
    return a->as.dense.elements == b->as.dense.elements && a->as.dense.element_bytes == b->as.dense.element_bytes &&
           a->as.dense.splat == b->as.dense.splat &&
           (!dense_bytes(a) || memcmp(a->as.dense.data, b->as.dense.data, dense_bytes(a)) == 0);
  case WEFT_MLIR_DIALECT: return same_dialect_value(a, b);
  }
  return false;
}

static const void *copy(weft_mlir_context *context, const void *items, uint64_t count, size_t size) {
  void *copied = weft_arena_array(context->arena, count, size);
  if (copied && count) memcpy(copied, items, count * size);
  return copied;
}

/* Makes everything that `a` points at the context's own. */
static void own(weft_mlir_context *context, weft_mlir_attribute *a) {
  switch (a->kind) {
  case WEFT_MLIR_STRING:
  case WEFT_MLIR_OPAQUE:
    a->as.string.data = weft_arena_string(context->arena, a->as.string.data, a->as.string.length);
    break;
  case WEFT_MLIR_ARRAY: a->as.items = copy(context, a->as.items, a->count, sizeof(void *)); break;
  case WEFT_MLIR_DICTIONARY: a->as.members = copy(context, a->as.members, a->count, sizeof(weft_mlir_named)); break;
  case WEFT_MLIR_SYMBOL: a->as.path = copy(context, a->as.path, a->count, sizeof(char *)); break;
  case WEFT_MLIR_DENSE_ARRAY:
  case WEFT_MLIR_DENSE: a->as.dense.data = copy(context, a->as.dense.data, dense_bytes(a), 1); break;
  case WEFT_MLIR_DIALECT:
    a->as.dialect.name = weft_mlir_intern(context, a->as.dialect.name, strlen(a->as.dialect.name));
    if (a->as.dialect.body)
      a->as.dialect.body = weft_arena_string(context->arena, a->as.dialect.body, strlen(a->as.dialect.body));
    if (a->count) a->as.dialect.items = copy(context, a->as.dialect.items, a->count, sizeof(void *));
    break;
  case WEFT_MLIR_UNIT:
  case WEFT_MLIR_INTEGER:
  case WEFT_MLIR_FLOAT:
  case WEFT_MLIR_TYPE:
  case WEFT_MLIR_AFFINE_MAP: break;
  }
}

const weft_mlir_attribute *weft_mlir_attribute_get(weft_mlir_context *context, const weft_mlir_attribute *shape) {
  uint64_t hash = hash_attribute(shape);
  weft_mlir_attribute *found = mlir_table_find(&context->attributes, hash, same_attribute, shape);
  if (found) return found;
  weft_mlir_attribute *attribute = WEFT_NEW(context->arena, weft_mlir_attribute);
  if (!attribute) return NULL;
  *attribute = *shape;
  own(context, attribute);
  if (shape->kind == WEFT_MLIR_DIALECT) attribute->spec = mlir_attribute_spec(context, shape->as.dialect.name);
  if (weft_arena_failed(context->arena)) return NULL;
  return mlir_table_add(&context->attributes, hash, attribute) ? attribute : NULL;
}

const weft_mlir_attribute *weft_mlir_unit(weft_mlir_context *context) { return context->unit; }

const weft_mlir_attribute *weft_mlir_integer_attribute(weft_mlir_context *context, const weft_mlir_type *type,
                                                       int64_t value) {
  weft_mlir_attribute shape = {.kind = WEFT_MLIR_INTEGER, .type = type};
  shape.as.integer = value;
  return weft_mlir_attribute_get(context, &shape);
}

const weft_mlir_attribute *weft_mlir_bool(weft_mlir_context *context, bool value) {
  return weft_mlir_integer_attribute(context, context->i1, value);
}

const weft_mlir_attribute *weft_mlir_float_bits(weft_mlir_context *context, const weft_mlir_type *type, uint64_t bits) {
  weft_mlir_attribute shape = {.kind = WEFT_MLIR_FLOAT, .type = type};
  shape.as.bits = bits;
  return weft_mlir_attribute_get(context, &shape);
}

const weft_mlir_attribute *weft_mlir_float_attribute(weft_mlir_context *context, const weft_mlir_type *type,
                                                     double value) {
  uint64_t bits;
  return weft_mlir_float_round(type, value, &bits) ? weft_mlir_float_bits(context, type, bits) : NULL;
}

const weft_mlir_attribute *weft_mlir_string(weft_mlir_context *context, const char *text, uint64_t length) {
  weft_mlir_attribute shape = {.kind = WEFT_MLIR_STRING};
  shape.as.string.data = text;
  shape.as.string.length = length;
  return weft_mlir_attribute_get(context, &shape);
}

const weft_mlir_attribute *weft_mlir_type_attribute(weft_mlir_context *context, const weft_mlir_type *type) {
  weft_mlir_attribute shape = {.kind = WEFT_MLIR_TYPE};
  shape.as.type_value = type;
  return weft_mlir_attribute_get(context, &shape);
}

const weft_mlir_attribute *weft_mlir_array(weft_mlir_context *context, const weft_mlir_attribute *const *items,
                                           uint32_t count) {
  weft_mlir_attribute shape = {.kind = WEFT_MLIR_ARRAY, .count = count};
  shape.as.items = items;
  return weft_mlir_attribute_get(context, &shape);
}

static int by_name(const void *a, const void *b) {
  const weft_mlir_named *x = *(const weft_mlir_named *const *)a, *y = *(const weft_mlir_named *const *)b;
  int order = strcmp(x->name, y->name);
  return order ? order : (x > y) - (x < y);
}

static bool in_order(const weft_mlir_named *members, uint32_t count) {
  for (uint32_t i = 1; i < count; i++)
    if (strcmp(members[i - 1].name, members[i].name) >= 0) return false;
  return true;
}

static const weft_mlir_attribute *dictionary_in_order(weft_mlir_context *context, const weft_mlir_named *members,
                                                      uint32_t count) {
  weft_mlir_attribute shape = {.kind = WEFT_MLIR_DICTIONARY, .count = count};
  shape.as.members = members;
  return weft_mlir_attribute_get(context, &shape);
}

const weft_mlir_attribute *weft_mlir_dictionary(weft_mlir_context *context, const weft_mlir_named *members,
                                                uint32_t count) {
  if (in_order(members, count)) return dictionary_in_order(context, members, count);
  const weft_mlir_named **order = malloc(count * sizeof *order);
  weft_mlir_named *sorted = malloc(count * sizeof *sorted);
  const weft_mlir_attribute *dictionary = NULL;
  if (order && sorted) {
    for (uint32_t i = 0; i < count; i++) order[i] = &members[i];
    qsort(order, count, sizeof *order, by_name);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
      if (kept && strcmp(sorted[kept - 1].name, order[i]->name) == 0) kept--;
      sorted[kept++] = *order[i];
    }
    dictionary = dictionary_in_order(context, sorted, kept);
  }
  free(order);
  free(sorted);
  return dictionary;
}

const weft_mlir_attribute *weft_mlir_symbol(weft_mlir_context *context, const char *name) {
  const char *own_name = weft_mlir_intern(context, name, strlen(name));
  weft_mlir_attribute shape = {.kind = WEFT_MLIR_SYMBOL, .count = 1};
  shape.as.path = &own_name;
  return own_name ? weft_mlir_attribute_get(context, &shape) : NULL;
}

const weft_mlir_attribute *weft_mlir_dense_array(weft_mlir_context *context, uint32_t width, const int64_t *values,
                                                 uint32_t count) {
  uint32_t bytes = width / 8;
  char *data = malloc((size_t)count * bytes + 1);
  if (!data) return NULL;
  for (uint32_t i = 0; i < count; i++) memcpy(data + (size_t)i * bytes, &values[i], bytes);
  weft_mlir_attribute shape = {.kind = WEFT_MLIR_DENSE_ARRAY,
                               .type = weft_mlir_integer(context, width, WEFT_MLIR_SIGNLESS)};
  shape.as.dense.data = data;
  shape.as.dense.elements = count;
  shape.as.dense.element_bytes = bytes;
  const weft_mlir_attribute *attribute = weft_mlir_attribute_get(context, &shape);
  free(data);
  return attribute;
}

static const weft_mlir_type *element_type(const weft_mlir_attribute *a) {
  return a->kind == WEFT_MLIR_DENSE ? a->type->element : a->type;
}

static uint64_t element_bits(const weft_mlir_attribute *a, uint64_t index) {
  uint64_t bits = 0;
  uint32_t bytes = a->as.dense.element_bytes;
  memcpy(&bits, (const char *)a->as.dense.data + (a->as.dense.splat ? 0 : index) * bytes, bytes > 8 ? 8 : bytes);
  return bits;
}

int64_t weft_mlir_dense_integer(const weft_mlir_attribute *attribute, uint64_t index) {
  uint64_t bits = element_bits(attribute, index);
  const weft_mlir_type *type = element_type(attribute);
  uint32_t width = type->kind == WEFT_MLIR_INTEGER_TYPE ? type->width : 64;
  if (type->sign == WEFT_MLIR_UNSIGNED || width == 1 || width >= 64) return (int64_t)bits;
  return (int64_t)(bits << (64 - width)) >> (64 - width);
}

double weft_mlir_dense_float(const weft_mlir_attribute *attribute, uint64_t index) {
  return weft_mlir_float_value(element_type(attribute), element_bits(attribute, index));
}

const weft_mlir_attribute *weft_mlir_member(const weft_mlir_attribute *dictionary, const char *name) {
  if (!dictionary || dictionary->kind != WEFT_MLIR_DICTIONARY) return NULL;
  for (uint32_t i = 0; i < dictionary->count; i++)
    if (strcmp(dictionary->as.members[i].name, name) == 0) return dictionary->as.members[i].value;
  return NULL;
}
