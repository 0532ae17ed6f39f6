/* The context: interned texts, op names and the registered dialects. */
#include "internal.h"

#include <stdlib.h>

typedef struct text_key {
  const char *text;
  size_t length;
} text_key;

static bool same_text(const void *item, const void *key) {
  const text_key *k = key;
  const char *text = item;
  return strncmp(text, k->text, k->length) == 0 && text[k->length] == '\0';
}

const char *weft_mlir_intern(weft_mlir_context *context, const char *text, size_t length) {
  text_key key = {text, length};
  uint64_t hash = mlir_hash(text, length);
  char *found = mlir_table_find(&context->strings, hash, same_text, &key);
  if (found) return found;
  char *copy = weft_arena_string(context->arena, text, length);
  return mlir_table_add(&context->strings, hash, copy) ? copy : NULL;
}

static bool same_op_name(const void *item, const void *key) {
  return same_text(((const op_name *)item)->public.text, key);
}

const weft_mlir_op_name *weft_mlir_name(weft_mlir_context *context, const char *text, size_t length) {
  text_key key = {text, length};
  uint64_t hash = mlir_hash(text, length);
  op_name *found = mlir_table_find(&context->names, hash, same_op_name, &key);
  if (found) return &found->public;
  op_name *name = WEFT_NEW(context->arena, op_name);
  if (!name) return NULL;
  name->public.text = weft_mlir_intern(context, text, length);
  return name->public.text && mlir_table_add(&context->names, hash, name) ? &name->public : NULL;
}

const op_name *mlir_op_name_of(const weft_mlir_op *op) { return (const op_name *)op->name; }

bool mlir_is_inherent(const op_name *op, const char *name) {
  for (uint32_t i = 0; i < op->inherent_count; i++)
    if (op->inherents[i].name == name) return true;
  return false;
}

/* The three kinds of registered things begin with their name. */
typedef struct named_spec {
  const char *name;
} named_spec;

static bool same_spec(const void *item, const void *key) { return strcmp(((const named_spec *)item)->name, key) == 0; }

static void *find_spec(const mlir_table *table, const char *name) {
  return mlir_table_find(table, mlir_hash(name, strlen(name)), same_spec, name);
}

const weft_mlir_type_spec *mlir_type_spec(const weft_mlir_context *context, const char *name) {
  return find_spec(&context->type_specs, name);
}

const weft_mlir_attribute_spec *mlir_attribute_spec(const weft_mlir_context *context, const char *name) {
  return find_spec(&context->attribute_specs, name);
}

static bool same_dialect(const void *item, const void *key) {
  return same_text(((const weft_mlir_dialect *)item)->name, key);
}

bool mlir_dialect_known(const weft_mlir_context *context, const char *name, size_t length) {
  text_key key = {name, length};
  return mlir_table_find(&context->dialects, mlir_hash(name, length), same_dialect, &key) != NULL;
}

static bool make_constants(weft_mlir_context *context) {
  context->index = weft_mlir_type_get(context, &(weft_mlir_type){.kind = WEFT_MLIR_INDEX_TYPE, .name = "index"});
  context->none = weft_mlir_type_get(context, &(weft_mlir_type){.kind = WEFT_MLIR_NONE_TYPE, .name = "none"});
  context->i1 = weft_mlir_integer(context, 1, WEFT_MLIR_SIGNLESS);
  context->i32 = weft_mlir_integer(context, 32, WEFT_MLIR_SIGNLESS);
  context->i64 = weft_mlir_integer(context, 64, WEFT_MLIR_SIGNLESS);
  context->f32 = weft_mlir_float(context, "f32");
  context->unit = weft_mlir_attribute_get(context, &(weft_mlir_attribute){.kind = WEFT_MLIR_UNIT});
  context->empty_dictionary = weft_mlir_dictionary(context, NULL, 0);
  return !weft_arena_failed(context->arena) && context->empty_dictionary;
}

weft_mlir_context *weft_mlir_context_new(void) {
  weft_mlir_context *context = calloc(1, sizeof *context);
  if (!context) return NULL;
  context->arena = weft_arena_new();
  if (context->arena && make_constants(context)) return context;
  weft_mlir_context_free(context);
  return NULL;
}

void weft_mlir_context_free(weft_mlir_context *context) {
  if (!context) return;
  mlir_table *tables[] = {&context->strings, &context->types, &context->attributes, &context->affines,
                          &context->maps,    &context->names, &context->type_specs, &context->attribute_specs,
                          &context->dialects};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) mlir_table_free(tables[i]);
  weft_arena_free(context->arena);
  free(context);
}

/* "overflowFlags=#arith.overflow<none> other" to names and defaults. */
static bool read_inherents(weft_mlir_context *context, op_name *name, const char *list) {
  enum { MOST = 16 };
  inherent *inherents = WEFT_NEW_ARRAY(context->arena, inherent, MOST);
  if (!inherents) return false;
  while (*list) {
    size_t length = strcspn(list, " "), named = strcspn(list, " =");
    if (name->inherent_count == MOST) return false;
    inherent *next = &inherents[name->inherent_count++];
    next->name = weft_mlir_intern(context, list, named);
    if (named < length) {
      const char *text = weft_mlir_intern(context, list + named + 1, length - named - 1);
      next->otherwise = text ? mlir_attribute_from_text(context, text) : NULL;
      if (!next->otherwise) return false;
    }
    list += length;
    list += strspn(list, " ");
  }
  name->inherents = inherents;
  return true;
}

static weft_status register_op(weft_mlir_context *context, const weft_mlir_op_spec *spec, weft_diag *diag) {
  op_name *name = (op_name *)weft_mlir_name(context, spec->name, strlen(spec->name));
  if (!name) return weft_error_memory(diag);
  if (name->public.spec) return weft_error(diag, WEFT_USAGE, NULL, "the op %s is registered twice", spec->name);
  if (!spec->code) return weft_error(diag, WEFT_USAGE, NULL, "the op %s has no code", spec->name);
  if (spec->inherent && !read_inherents(context, name, spec->inherent))
    return weft_error(diag, WEFT_USAGE, NULL, "the inherent attributes of %s cannot be read", spec->name);
  if (spec->format) {
    op_format *format = WEFT_NEW(context->arena, op_format);
    if (!format) return weft_error_memory(diag);
    if (!mlir_format_compile(context, spec, format, diag)) return WEFT_USAGE;
    name->format = format;
  }
  name->public.spec = spec;
  return WEFT_OK;
}

static bool add_spec(mlir_table *table, const void *spec, const char *name) {
  return !find_spec(table, name) && mlir_table_add(table, mlir_hash(name, strlen(name)), (void *)spec);
}

weft_status weft_mlir_register(weft_mlir_context *context, const weft_mlir_dialect *dialect, weft_diag *diag) {
  size_t length = strlen(dialect->name);
  if (mlir_dialect_known(context, dialect->name, length))
    return weft_error(diag, WEFT_USAGE, NULL, "the dialect %s is registered twice", dialect->name);
  if (!mlir_table_add(&context->dialects, mlir_hash(dialect->name, length), (void *)dialect))
    return weft_error_memory(diag);
  for (size_t i = 0; i < dialect->type_count; i++)
    if (!add_spec(&context->type_specs, &dialect->types[i], dialect->types[i].name))
      return weft_error(diag, WEFT_USAGE, NULL, "the type %s cannot be registered", dialect->types[i].name);
  for (size_t i = 0; i < dialect->attribute_count; i++)
    if (!add_spec(&context->attribute_specs, &dialect->attributes[i], dialect->attributes[i].name))
      return weft_error(diag, WEFT_USAGE, NULL, "the attribute %s cannot be registered", dialect->attributes[i].name);
  for (size_t i = 0; i < dialect->op_count; i++) {
    weft_status status = register_op(context, &dialect->ops[i], diag);
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}

bool mlir_listed(const char *list, const char *name) {
  size_t length = strlen(name);
  while (list && *list) {
    size_t word = strcspn(list, " ");
    if (word == length && memcmp(list, name, length) == 0) return true;
    list += word;
    list += strspn(list, " ");
  }
  return false;
}

bool mlir_is_word(const char *text, uint64_t length) {
  if (!length) return false;
  for (uint64_t i = 0; i < length; i++) {
    char c = text[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    bool later = (c >= '0' && c <= '9') || c == '$' || c == '.';
    if (!letter && !(i && later)) return false;
  }
  return true;
}
