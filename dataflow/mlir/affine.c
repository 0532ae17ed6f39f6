/* Affine expressions: made once each, simplified as they are made (constants folded and moved right), so that equal
 * maps are one map. */
#include "internal.h"

static uint64_t hash_affine(const weft_mlir_affine *e) {
  uint64_t hash = mlir_mix((uint64_t)e->kind, (uint64_t)e->value);
  return mlir_mix(mlir_mix(hash, (uint64_t)(uintptr_t)e->left), (uint64_t)(uintptr_t)e->right);
}

static bool same_affine(const void *item, const void *key) {
  const weft_mlir_affine *a = item, *b = key;
  return a->kind == b->kind && a->value == b->value && a->left == b->left && a->right == b->right;
}

static const weft_mlir_affine *intern(weft_mlir_context *context, weft_mlir_affine shape) {
  uint64_t hash = hash_affine(&shape);
  weft_mlir_affine *found = mlir_table_find(&context->affines, hash, same_affine, &shape);
  if (found) return found;
  weft_mlir_affine *e = WEFT_NEW(context->arena, weft_mlir_affine);
  if (!e) return NULL;
  *e = shape;
  return mlir_table_add(&context->affines, hash, e) ? e : NULL;
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/* a OP b; false where it has no value. */
static bool apply(weft_mlir_affine_kind kind, int64_t a, int64_t b, int64_t *value) {
  switch (kind) {
  case WEFT_MLIR_AFFINE_ADD: return !__builtin_add_overflow(a, b, value);
  case WEFT_MLIR_AFFINE_MUL: return !__builtin_mul_overflow(a, b, value);
  case WEFT_MLIR_AFFINE_MOD:
    if (b <= 0) return false;
    *value = a - floor_div(a, b) * b;
    return true;
  case WEFT_MLIR_AFFINE_FLOORDIV:
  case WEFT_MLIR_AFFINE_CEILDIV:
    if (b == 0 || (a == INT64_MIN && b == -1)) return false;
    *value = floor_div(a, b) + (kind == WEFT_MLIR_AFFINE_CEILDIV && a % b != 0);
    return true;
  case WEFT_MLIR_AFFINE_CONSTANT:
  case WEFT_MLIR_AFFINE_DIM:
  case WEFT_MLIR_AFFINE_SYMBOL: break;
  }
  return false;
}

const weft_mlir_affine *mlir_affine(weft_mlir_context *context, weft_mlir_affine_kind kind, int64_t value,
                                    const weft_mlir_affine *left, const weft_mlir_affine *right) {
  if (!left || !right) return intern(context, (weft_mlir_affine){.kind = kind, .value = value});
  bool constant_left = left->kind == WEFT_MLIR_AFFINE_CONSTANT,
       constant_right = right->kind == WEFT_MLIR_AFFINE_CONSTANT;
  int64_t folded;
  if (constant_left && constant_right && apply(kind, left->value, right->value, &folded))
    return intern(context, (weft_mlir_affine){.kind = WEFT_MLIR_AFFINE_CONSTANT, .value = folded});
  if (constant_left && !constant_right && (kind == WEFT_MLIR_AFFINE_ADD || kind == WEFT_MLIR_AFFINE_MUL)) {
    const weft_mlir_affine *swap = left;
    left = right;
    right = swap;
    constant_right = true;
  }
  if (constant_right && kind == WEFT_MLIR_AFFINE_ADD && right->value == 0) return left;
  if (constant_right && right->value == 1 && kind != WEFT_MLIR_AFFINE_ADD && kind != WEFT_MLIR_AFFINE_MOD) return left;
  if (constant_right && kind == WEFT_MLIR_AFFINE_MUL && right->value == 0) return right;
  /* (x + 1) + 2 is x + 3, (x * 2) * 3 is x * 6. */
  if (constant_right && (kind == WEFT_MLIR_AFFINE_ADD || kind == WEFT_MLIR_AFFINE_MUL) && left->kind == kind &&
      left->right->kind == WEFT_MLIR_AFFINE_CONSTANT && apply(kind, left->right->value, right->value, &folded))
    return mlir_affine(context, kind, 0, left->left,
                       mlir_affine(context, WEFT_MLIR_AFFINE_CONSTANT, folded, NULL, NULL));
  return intern(context, (weft_mlir_affine){.kind = kind, .left = left, .right = right});
}

static uint64_t hash_map(const weft_mlir_affine_map *map) {
  uint64_t hash = mlir_mix(mlir_mix(map->dims, map->symbols) + 1, map->results);
  for (uint32_t i = 0; i < map->results; i++) hash = mlir_mix(hash, (uint64_t)(uintptr_t)map->expressions[i]);
  return hash;
}

static bool same_map(const void *item, const void *key) {
  const weft_mlir_affine_map *x = item, *y = key;
  return x->dims == y->dims && x->symbols == y->symbols && x->results == y->results &&
         (!x->results || memcmp(x->expressions, y->expressions, x->results * sizeof *x->expressions) == 0);
}

const weft_mlir_affine_map *mlir_affine_map(weft_mlir_context *context, uint32_t dims, uint32_t symbols,
                                            const weft_mlir_affine *const *results, uint32_t count) {
  weft_mlir_affine_map shape = {.dims = dims, .symbols = symbols, .results = count, .expressions = results};
  uint64_t hash = hash_map(&shape);
  weft_mlir_affine_map *found = mlir_table_find(&context->maps, hash, same_map, &shape);
  if (found) return found;
  weft_mlir_affine_map *map = WEFT_NEW(context->arena, weft_mlir_affine_map);
  const weft_mlir_affine **expressions = WEFT_NEW_ARRAY(context->arena, const weft_mlir_affine *, count);
  if (!map || !expressions) return NULL;
  *map = shape;
  if (count) memcpy(expressions, results, count * sizeof *results);
  map->expressions = expressions;
  return mlir_table_add(&context->maps, hash, map) ? map : NULL;
}

static bool evaluate(const weft_mlir_affine_map *map, const weft_mlir_affine *e, const int64_t *point, int64_t *value) {
  int64_t left, right;
  switch (e->kind) {
  case WEFT_MLIR_AFFINE_CONSTANT: *value = e->value; return true;
  case WEFT_MLIR_AFFINE_DIM: *value = point[e->value]; return true;
  case WEFT_MLIR_AFFINE_SYMBOL: *value = point[map->dims + e->value]; return true;
  case WEFT_MLIR_AFFINE_ADD:
  case WEFT_MLIR_AFFINE_MUL:
  case WEFT_MLIR_AFFINE_MOD:
  case WEFT_MLIR_AFFINE_FLOORDIV:
  case WEFT_MLIR_AFFINE_CEILDIV: break;
  }
  return evaluate(map, e->left, point, &left) && evaluate(map, e->right, point, &right) &&
         apply(e->kind, left, right, value);
}

bool weft_mlir_affine_evaluate(const weft_mlir_affine_map *map, const int64_t *point, int64_t *values) {
  for (uint32_t i = 0; i < map->results; i++)
    if (!evaluate(map, map->expressions[i], point, &values[i])) return false;
  return true;
}

bool weft_mlir_affine_is_identity(const weft_mlir_affine_map *map) {
  if (map->dims != map->results || map->symbols) return false;
  for (uint32_t i = 0; i < map->results; i++)
    if (map->expressions[i]->kind != WEFT_MLIR_AFFINE_DIM || map->expressions[i]->value != i) return false;
  return true;
}
