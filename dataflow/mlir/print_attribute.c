/* Printing types, attributes, affine maps and locations. */
#include "internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- types ---------------------------------------------------------------------------------------------------- */

static void type_list(weft_mlir_printer *p, const weft_mlir_type *const *types, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (i) printer_bytes(p, ", ", 2);
    weft_mlir_put_type(p, types[i]);
  }
}

static void put_extents(weft_mlir_printer *p, const weft_mlir_type *type) {
  if (type->unranked) printer_bytes(p, "*x", 2);
  for (uint32_t i = 0; i < type->rank; i++) {
    bool scalable = type->scalable && type->scalable[i];
    if (scalable) printer_char(p, '[');
    if (type->extents[i] == WEFT_MLIR_DYNAMIC)
      printer_char(p, '?');
    else
      printer_i64(p, type->extents[i]);
    if (scalable) printer_char(p, ']');
    printer_char(p, 'x');
  }
}

static void put_shaped(weft_mlir_printer *p, const char *name, const weft_mlir_type *type) {
  weft_mlir_put(p, name);
  printer_char(p, '<');
  put_extents(p, type);
  weft_mlir_put_type(p, type->element);
  if (type->layout) {
    printer_bytes(p, ", ", 2);
    weft_mlir_put_attribute(p, type->layout);
  }
  if (type->memory_space) {
    printer_bytes(p, ", ", 2);
    weft_mlir_put_attribute(p, type->memory_space);
  }
  printer_char(p, '>');
}

static void put_function(weft_mlir_printer *p, const weft_mlir_type *type) {
  printer_char(p, '(');
  type_list(p, type->inputs, type->input_count);
  printer_bytes(p, ") -> ", 5);
  bool bare = type->result_count == 1 && type->results[0]->kind != WEFT_MLIR_FUNCTION_TYPE;
  if (!bare) printer_char(p, '(');
  type_list(p, type->results, type->result_count);
  if (!bare) printer_char(p, ')');
}

/* A parameter that is a plain word in the text. */
static void put_parameter(weft_mlir_printer *p, const weft_mlir_attribute *a) {
  if (a->kind == WEFT_MLIR_STRING && mlir_is_word(a->as.string.data, a->as.string.length))
    printer_bytes(p, a->as.string.data, a->as.string.length);
  else
    weft_mlir_put_attribute(p, a);
}

static void put_dialect_type(weft_mlir_printer *p, const weft_mlir_type *type) {
  printer_char(p, '!');
  weft_mlir_put(p, type->name);
  if (!type->body && !type->parameter_count) return;
  printer_char(p, '<');
  if (type->body) weft_mlir_put(p, type->body);
  for (uint32_t i = 0; i < type->parameter_count; i++) {
    if (i) printer_bytes(p, ", ", 2);
    put_parameter(p, type->parameters[i]);
  }
  printer_char(p, '>');
}

void weft_mlir_put_type(weft_mlir_printer *p, const weft_mlir_type *type) {
  switch (type->kind) {
  case WEFT_MLIR_INTEGER_TYPE:
  case WEFT_MLIR_INDEX_TYPE:
  case WEFT_MLIR_FLOAT_TYPE:
  case WEFT_MLIR_NONE_TYPE: weft_mlir_put(p, type->name); break;
  case WEFT_MLIR_FUNCTION_TYPE: put_function(p, type); break;
  case WEFT_MLIR_MEMREF_TYPE: put_shaped(p, "memref", type); break;
  case WEFT_MLIR_TENSOR_TYPE: put_shaped(p, "tensor", type); break;
  case WEFT_MLIR_VECTOR_TYPE: put_shaped(p, "vector", type); break;
  case WEFT_MLIR_COMPLEX_TYPE: put_shaped(p, "complex", type); break;
  case WEFT_MLIR_TUPLE_TYPE:
    printer_bytes(p, "tuple<", 6);
    type_list(p, type->inputs, type->input_count);
    printer_char(p, '>');
    break;
  case WEFT_MLIR_DIALECT_TYPE: put_dialect_type(p, type); break;
  }
}

/* ---- numbers -------------------------------------------------------------------------------------------------- */

static void put_float(weft_mlir_printer *p, const weft_mlir_type *type, uint64_t bits) {
  double value = weft_mlir_float_value(type, bits);
  uint64_t again;
  if (isnan(value) || isinf(value)) {
    char text[24];
    snprintf(text, sizeof text, "0x%0*llX", (int)(type->width + 3) / 4, (unsigned long long)bits);
    weft_mlir_put(p, text);
    return;
  }
  char text[48];
  for (int digits = 6; digits < 18; digits++) {
    snprintf(text, sizeof text, "%.*e", digits, value);
    if (weft_mlir_float_round(type, strtod(text, NULL), &again) && again == bits) break;
  }
  weft_mlir_put(p, text);
}

static void put_integer(weft_mlir_printer *p, const weft_mlir_type *type, int64_t value) {
  if (type->kind == WEFT_MLIR_INTEGER_TYPE && type->width == 1)
    weft_mlir_put(p, value ? "true" : "false");
  else if (type->sign == WEFT_MLIR_UNSIGNED)
    printer_u64(p, (uint64_t)value);
  else
    printer_i64(p, value);
}

/* ---- dense elements ------------------------------------------------------------------------------------------- */

static void put_scalar(weft_mlir_printer *p, const weft_mlir_type *type, const char *at) {
  uint64_t bits = 0;
  uint32_t width = type->kind == WEFT_MLIR_INDEX_TYPE ? 64 : type->width;
  uint32_t bytes = width <= 8 ? 1 : width <= 16 ? 2 : width <= 32 ? 4 : 8;
  memcpy(&bits, at, bytes);
  if (type->kind == WEFT_MLIR_FLOAT_TYPE) {
    put_float(p, type, bits);
    return;
  }
  bool negative = type->sign != WEFT_MLIR_UNSIGNED && width > 1 && width < 64 && bits >> (width - 1) & 1;
  put_integer(p, type, (int64_t)(negative ? bits | ~(uint64_t)0 << width : bits));
}

static void put_element(weft_mlir_printer *p, const weft_mlir_attribute *a, uint64_t index) {
  const weft_mlir_type *type = a->kind == WEFT_MLIR_DENSE ? a->type->element : a->type;
  const char *at = (const char *)a->as.dense.data + index * a->as.dense.element_bytes;
  if (type->kind != WEFT_MLIR_COMPLEX_TYPE) {
    put_scalar(p, type, at);
    return;
  }
  printer_char(p, '(');
  put_scalar(p, type->element, at);
  printer_char(p, ',');
  put_scalar(p, type->element, at + a->as.dense.element_bytes / 2);
  printer_char(p, ')');
}

static void put_nested(weft_mlir_printer *p, const weft_mlir_attribute *a, uint32_t dimension, uint64_t *index) {
  if (dimension == a->type->rank) {
    put_element(p, a, (*index)++);
    return;
  }
  printer_char(p, '[');
  for (int64_t i = 0; i < a->type->extents[dimension]; i++) {
    if (i) printer_bytes(p, ", ", 2);
    put_nested(p, a, dimension + 1, index);
  }
  printer_char(p, ']');
}

/* More elements than this are written as hexadecimal bytes. */
enum { LIST_MOST = 100 };

static void put_dense(weft_mlir_printer *p, const weft_mlir_attribute *a) {
  static const char hex[] = "0123456789ABCDEF";
  uint64_t index = 0;
  bool bits = a->type->element->width == 1;
  printer_bytes(p, "dense<", 6);
  if (a->as.dense.splat) {
    put_element(p, a, 0);
  } else if (a->as.dense.elements > LIST_MOST && !bits) {
    printer_bytes(p, "\"0x", 3);
    const unsigned char *data = a->as.dense.data;
    for (uint64_t i = 0; i < a->as.dense.elements * a->as.dense.element_bytes; i++) {
      printer_char(p, hex[data[i] >> 4]);
      printer_char(p, hex[data[i] & 15]);
    }
    printer_char(p, '"');
  } else if (a->as.dense.elements) {
    put_nested(p, a, 0, &index);
  }
  printer_bytes(p, "> : ", 4);
  weft_mlir_put_type(p, a->type);
}

static void put_dense_array(weft_mlir_printer *p, const weft_mlir_attribute *a) {
  printer_bytes(p, "array<", 6);
  weft_mlir_put_type(p, a->type);
  for (uint64_t i = 0; i < a->as.dense.elements; i++) {
    weft_mlir_put(p, i ? ", " : ": ");
    put_element(p, a, i);
  }
  printer_char(p, '>');
}

/* ---- affine maps ---------------------------------------------------------------------------------------------- */

static const char *operator_text(weft_mlir_affine_kind kind) {
  switch (kind) {
  case WEFT_MLIR_AFFINE_MUL: return " * ";
  case WEFT_MLIR_AFFINE_MOD: return " mod ";
  case WEFT_MLIR_AFFINE_FLOORDIV: return " floordiv ";
  case WEFT_MLIR_AFFINE_CEILDIV: return " ceildiv ";
  case WEFT_MLIR_AFFINE_CONSTANT:
  case WEFT_MLIR_AFFINE_DIM:
  case WEFT_MLIR_AFFINE_SYMBOL:
  case WEFT_MLIR_AFFINE_ADD: break;
  }
  return " + ";
}

static bool is_sum(const weft_mlir_affine *e) { return e->kind == WEFT_MLIR_AFFINE_ADD; }
static bool is_binary(const weft_mlir_affine *e) { return e->left != NULL; }

/* x + -3 and x + y * -1 are written as differences. */
static bool is_difference(const weft_mlir_affine *e) {
  const weft_mlir_affine *right = e->right;
  if (right->kind == WEFT_MLIR_AFFINE_CONSTANT) return right->value < 0 && right->value > INT64_MIN;
  return right->kind == WEFT_MLIR_AFFINE_MUL && right->right->kind == WEFT_MLIR_AFFINE_CONSTANT &&
         right->right->value == -1;
}

static void put_affine(weft_mlir_printer *p, const weft_mlir_affine *e, bool parentheses) {
  if (!is_binary(e)) {
    if (e->kind != WEFT_MLIR_AFFINE_CONSTANT) printer_char(p, e->kind == WEFT_MLIR_AFFINE_DIM ? 'd' : 's');
    printer_i64(p, e->value);
    return;
  }
  if (parentheses) printer_char(p, '(');
  put_affine(p, e->left, !is_sum(e) && is_sum(e->left));
  if (!is_sum(e)) {
    weft_mlir_put(p, operator_text(e->kind));
    put_affine(p, e->right, is_binary(e->right));
  } else if (!is_difference(e)) {
    weft_mlir_put(p, " + ");
    put_affine(p, e->right, is_sum(e->right));
  } else if (e->right->kind == WEFT_MLIR_AFFINE_CONSTANT) {
    weft_mlir_put(p, " - ");
    printer_i64(p, -e->right->value);
  } else {
    weft_mlir_put(p, " - ");
    put_affine(p, e->right->left, is_sum(e->right->left));
  }
  if (parentheses) printer_char(p, ')');
}

static void put_names(weft_mlir_printer *p, char letter, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (i) printer_bytes(p, ", ", 2);
    printer_char(p, letter);
    printer_u64(p, i);
  }
}

void printer_affine_map(weft_mlir_printer *p, const weft_mlir_affine_map *map) {
  printer_char(p, '(');
  put_names(p, 'd', map->dims);
  printer_char(p, ')');
  if (map->symbols) {
    printer_char(p, '[');
    put_names(p, 's', map->symbols);
    printer_char(p, ']');
  }
  printer_bytes(p, " -> (", 5);
  for (uint32_t i = 0; i < map->results; i++) {
    if (i) printer_bytes(p, ", ", 2);
    put_affine(p, map->expressions[i], false);
  }
  printer_char(p, ')');
}

/* ---- attributes ----------------------------------------------------------------------------------------------- */

static bool default_valued(const weft_mlir_op *op, weft_mlir_named member) {
  const op_name *name = mlir_op_name_of(op);
  for (uint32_t i = 0; i < name->inherent_count; i++)
    if (name->inherents[i].name == member.name) return name->inherents[i].otherwise == member.value;
  return false;
}

static bool shown(const weft_mlir_op *op, weft_mlir_named member, const char *elided) {
  return !(elided && mlir_listed(elided, member.name)) && !(op && default_valued(op, member));
}

void printer_members(weft_mlir_printer *p, const weft_mlir_attribute *dictionary, const weft_mlir_op *op,
                     const char *elided) {
  bool first = true;
  for (uint32_t i = 0; dictionary && i < dictionary->count; i++) {
    weft_mlir_named member = dictionary->as.members[i];
    if (!shown(op, member, elided)) continue;
    if (!first) printer_bytes(p, ", ", 2);
    first = false;
    if (mlir_is_word(member.name, strlen(member.name)))
      weft_mlir_put(p, member.name);
    else
      printer_quoted(p, member.name, strlen(member.name));
    if (member.value->kind == WEFT_MLIR_UNIT) continue;
    printer_bytes(p, " = ", 3);
    weft_mlir_put_attribute(p, member.value);
  }
}

static bool any_shown(const weft_mlir_op *op, const weft_mlir_attribute *dictionary, const char *elided) {
  for (uint32_t i = 0; dictionary && i < dictionary->count; i++)
    if (shown(op, dictionary->as.members[i], elided)) return true;
  return false;
}

void weft_mlir_put_attr_dict(weft_mlir_printer *p, const weft_mlir_op *op, const char *elided, bool keyword) {
  bool inside = any_shown(op, op->properties, elided), outside = any_shown(op, op->attributes, elided);
  if (!inside && !outside) return;
  weft_mlir_put(p, keyword ? " attributes {" : " {");
  printer_members(p, op->properties, op, elided);
  if (inside && outside) printer_bytes(p, ", ", 2);
  printer_members(p, op->attributes, op, elided);
  printer_char(p, '}');
}

static void put_dialect_attribute(weft_mlir_printer *p, const weft_mlir_attribute *a) {
  printer_char(p, '#');
  weft_mlir_put(p, a->as.dialect.name);
  const weft_mlir_attribute_spec *spec = a->as.dialect.body ? NULL : a->spec;
  if (spec && spec->print) {
    spec->print(p, a);
    return;
  }
  if (!a->as.dialect.body && !a->count) return;
  printer_char(p, '<');
  if (a->as.dialect.body) weft_mlir_put(p, a->as.dialect.body);
  for (uint32_t i = 0; i < a->count; i++) {
    if (i) printer_bytes(p, ", ", 2);
    put_parameter(p, a->as.dialect.items[i]);
  }
  printer_char(p, '>');
}

static void put_array(weft_mlir_printer *p, const weft_mlir_attribute *a) {
  printer_char(p, '[');
  for (uint32_t i = 0; i < a->count; i++) {
    if (i) printer_bytes(p, ", ", 2);
    weft_mlir_put_attribute(p, a->as.items[i]);
  }
  printer_char(p, ']');
}

static void put_path(weft_mlir_printer *p, const weft_mlir_attribute *a) {
  for (uint32_t i = 0; i < a->count; i++) {
    if (i) printer_bytes(p, "::", 2);
    weft_mlir_put_symbol(p, a->as.path[i]);
  }
}

void weft_mlir_put_attribute_untyped(weft_mlir_printer *p, const weft_mlir_attribute *a) {
  switch (a->kind) {
  case WEFT_MLIR_UNIT: weft_mlir_put(p, "unit"); break;
  case WEFT_MLIR_INTEGER: put_integer(p, a->type, a->as.integer); break;
  case WEFT_MLIR_FLOAT: put_float(p, a->type, a->as.bits); break;
  case WEFT_MLIR_STRING: printer_quoted(p, a->as.string.data, a->as.string.length); break;
  case WEFT_MLIR_TYPE: weft_mlir_put_type(p, a->as.type_value); break;
  case WEFT_MLIR_ARRAY: put_array(p, a); break;
  case WEFT_MLIR_DICTIONARY:
    printer_char(p, '{');
    printer_members(p, a, NULL, NULL);
    printer_char(p, '}');
    break;
  case WEFT_MLIR_SYMBOL: put_path(p, a); break;
  case WEFT_MLIR_AFFINE_MAP:
    weft_mlir_put(p, "affine_map<");
    printer_affine_map(p, a->as.map);
    printer_char(p, '>');
    break;
  case WEFT_MLIR_DENSE_ARRAY: put_dense_array(p, a); break;
  case WEFT_MLIR_DENSE: put_dense(p, a); break;
  case WEFT_MLIR_DIALECT: put_dialect_attribute(p, a); break;
  case WEFT_MLIR_OPAQUE: printer_bytes(p, a->as.string.data, a->as.string.length); break;
  }
}

/* Whether the type must be written for the attribute to be read back as it is. */
static bool shows_type(const weft_mlir_attribute *a) {
  switch (a->kind) {
  case WEFT_MLIR_INTEGER:
    return !(a->type->kind == WEFT_MLIR_INTEGER_TYPE && a->type->width == 1 && a->type->sign == WEFT_MLIR_SIGNLESS);
  case WEFT_MLIR_FLOAT: return true;
  case WEFT_MLIR_STRING:
  case WEFT_MLIR_OPAQUE: return a->type != NULL;
  case WEFT_MLIR_UNIT:
  case WEFT_MLIR_TYPE:
  case WEFT_MLIR_ARRAY:
  case WEFT_MLIR_DICTIONARY:
  case WEFT_MLIR_SYMBOL:
  case WEFT_MLIR_AFFINE_MAP:
  case WEFT_MLIR_DENSE_ARRAY:
  case WEFT_MLIR_DENSE:
  case WEFT_MLIR_DIALECT: break;
  }
  return false;
}

void weft_mlir_put_attribute(weft_mlir_printer *p, const weft_mlir_attribute *a) {
  weft_mlir_put_attribute_untyped(p, a);
  if (!shows_type(a)) return;
  printer_bytes(p, " : ", 3);
  weft_mlir_put_type(p, a->type);
}

void printer_location(weft_mlir_printer *p, const weft_mlir_op *op) {
  if (!op->extra || !op->extra->location) return;
  printer_char(p, ' ');
  weft_mlir_put_attribute(p, op->extra->location);
}
