/* Reading types. */
#include "internal.h"

/* What a list of things is gathered in: on the parser's type stack, from `base` on. */
static bool push(weft_mlir_parser *p, const weft_mlir_type *type) {
  if (p->type_count == p->type_capacity &&
      !weft_arena_grow(p->scratch, &p->type_stack, p->type_count, &p->type_capacity, sizeof *p->type_stack))
    return parser_memory(p);
  p->type_stack[p->type_count++] = type;
  return true;
}

/* Types separated by commas up to `close`, which is taken. */
static bool type_list(weft_mlir_parser *p, char close) {
  if (parser_take(p, close)) return true;
  const weft_mlir_type *type;
  do {
    if (!parser_type(p, &type) || !push(p, type)) return false;
  } while (parser_take(p, ','));
  return parser_need(p, close, "after the types");
}

static bool type_starts(const weft_mlir_parser *p) {
  return p->token.kind == TOKEN_WORD || p->token.kind == TOKEN_BANG || parser_is(p, '(');
}

/* One type or ( types ). */
static bool result_list(weft_mlir_parser *p) {
  if (parser_take(p, '(')) return type_list(p, ')');
  const weft_mlir_type *type;
  return parser_type(p, &type) && push(p, type);
}

/* The types pushed since `base`; NULL while none ever was. */
static const weft_mlir_type **pushed_since(const weft_mlir_parser *p, uint64_t base) {
  return p->type_stack ? p->type_stack + base : NULL;
}

static bool function_type(weft_mlir_parser *p, const weft_mlir_type **type) {
  uint64_t base = p->type_count;
  parser_advance(p);
  if (!type_list(p, ')')) return false;
  uint64_t middle = p->type_count;
  if (!weft_mlir_expect(p, "->") || !result_list(p)) return false;
  *type = weft_mlir_function(p->context, pushed_since(p, base), (uint32_t)(middle - base), pushed_since(p, middle),
                             (uint32_t)(p->type_count - middle));
  p->type_count = base;
  return *type || parser_memory(p);
}

/* ---- shaped types --------------------------------------------------------------------------------------------- */

enum { MOST_EXTENTS = 64 };

typedef struct dimensions {
  int64_t extents[MOST_EXTENTS];
  bool scalable[MOST_EXTENTS];
  uint32_t count;
  bool any_scalable, unranked;
} dimensions;

/* Extents are read from the characters: 4x?xi32 is no sequence of ordinary tokens. The current token is their first. */
static bool read_dimensions(weft_mlir_parser *p, dimensions *d, bool scalable_allowed) {
  const char *c = p->token.start;
  d->count = 0;
  d->any_scalable = d->unranked = false;
  if (*c == '*' && c[1] == 'x') {
    d->unranked = true;
    c += 2;
  }
  while (!d->unranked && (*c == '?' || (*c >= '0' && *c <= '9') || (*c == '[' && scalable_allowed))) {
    if (d->count == MOST_EXTENTS) return weft_mlir_fail(p, "a type has more than %d dimensions", MOST_EXTENTS);
    bool bracket = *c == '[';
    if (bracket) c++;
    uint64_t extent = 0;
    if (*c == '?') {
      extent = (uint64_t)WEFT_MLIR_DYNAMIC;
      c++;
    } else {
      if (*c < '0' || *c > '9') return weft_mlir_fail(p, "expected an extent in the type");
      for (; *c >= '0' && *c <= '9'; c++)
        if (weft_mul_overflow(extent, 10, &extent) || weft_add_overflow(extent, (uint64_t)(*c - '0'), &extent) ||
            extent > INT64_MAX)
          return weft_mlir_fail(p, "an extent does not fit in 63 bits");
    }
    if (bracket && *c++ != ']') return weft_mlir_fail(p, "expected ']' after a scalable extent");
    if (*c != 'x') return parser_fail_at(p, p->token.line, c, "expected 'x' after an extent");
    c++;
    d->extents[d->count] = (int64_t)extent;
    d->scalable[d->count++] = bracket;
    d->any_scalable |= bracket;
  }
  if (c != p->token.start) parser_restart(p, c);
  return true;
}

static bool shaped_element(weft_mlir_parser *p, dimensions *d, weft_mlir_type *shape, bool scalable) {
  if (!parser_need(p, '<', "after the type's name") || !read_dimensions(p, d, scalable) ||
      !parser_type(p, &shape->element))
    return false;
  shape->rank = d->count;
  shape->extents = d->extents;
  shape->unranked = d->unranked;
  if (d->any_scalable) shape->scalable = d->scalable;
  return true;
}

static bool identity_layout(const weft_mlir_attribute *a) {
  return a->kind == WEFT_MLIR_AFFINE_MAP && weft_mlir_affine_is_identity(a->as.map);
}

static bool shaped(weft_mlir_parser *p, weft_mlir_type_kind kind, const weft_mlir_type **type) {
  dimensions d;
  weft_mlir_type shape = {.kind = kind};
  parser_advance(p);
  if (!shaped_element(p, &d, &shape, kind == WEFT_MLIR_VECTOR_TYPE)) return false;
  while (kind != WEFT_MLIR_VECTOR_TYPE && parser_take(p, ',')) {
    const weft_mlir_attribute *a;
    if (!parser_attribute(p, NULL, &a)) return false;
    bool layout = kind == WEFT_MLIR_TENSOR_TYPE || a->kind == WEFT_MLIR_AFFINE_MAP ||
                  (a->kind == WEFT_MLIR_OPAQUE && strncmp(a->as.string.data, "strided<", 8) == 0);
    if (layout ? shape.layout != NULL : shape.memory_space != NULL)
      return weft_mlir_fail(p, "the type has one parameter too many");
    if (!layout)
      shape.memory_space = a;
    else if (kind == WEFT_MLIR_TENSOR_TYPE || !identity_layout(a))
      shape.layout = a;
  }
  if (!parser_need(p, '>', "at the end of the type")) return false;
  *type = weft_mlir_type_get(p->context, &shape);
  return *type || parser_memory(p);
}

static bool complex_type(weft_mlir_parser *p, const weft_mlir_type **type) {
  weft_mlir_type shape = {.kind = WEFT_MLIR_COMPLEX_TYPE};
  parser_advance(p);
  if (!parser_need(p, '<', "after complex") || !parser_type(p, &shape.element) ||
      !parser_need(p, '>', "after the element type"))
    return false;
  *type = weft_mlir_type_get(p->context, &shape);
  return *type || parser_memory(p);
}

static bool tuple_type(weft_mlir_parser *p, const weft_mlir_type **type) {
  uint64_t base = p->type_count;
  parser_advance(p);
  if (!parser_need(p, '<', "after tuple") || !type_list(p, '>')) return false;
  weft_mlir_type shape = {.kind = WEFT_MLIR_TUPLE_TYPE, .input_count = (uint32_t)(p->type_count - base)};
  shape.inputs = pushed_since(p, base);
  *type = weft_mlir_type_get(p->context, &shape);
  p->type_count = base;
  return *type || parser_memory(p);
}

/* ---- names ---------------------------------------------------------------------------------------------------- */

/* i32, si8, ui4: the width, or false when the word is none of them. */
static bool integer_word(const char *word, uint32_t length, weft_mlir_sign *sign, uint32_t *width) {
  *sign = WEFT_MLIR_SIGNLESS;
  if (length && (*word == 's' || *word == 'u')) {
    *sign = *word == 's' ? WEFT_MLIR_SIGNED : WEFT_MLIR_UNSIGNED;
    word++;
    length--;
  }
  if (length < 2 || length > 9 || *word != 'i' || word[1] == '0') return false;
  *width = 0;
  for (uint32_t i = 1; i < length; i++) {
    if (word[i] < '0' || word[i] > '9') return false;
    *width = *width * 10 + (uint32_t)(word[i] - '0');
  }
  return *width < (1u << 24);
}

static const weft_mlir_type *simple_type(weft_mlir_parser *p) {
  weft_mlir_sign sign;
  uint32_t width;
  const token *t = &p->token;
  if (integer_word(t->start, t->length, &sign, &width)) return weft_mlir_integer(p->context, width, sign);
  if (parser_is_word(p, "index")) return p->context->index;
  if (parser_is_word(p, "none")) return p->context->none;
  if (t->length >= 16) return NULL;
  char name[16];
  memcpy(name, t->start, t->length);
  name[t->length] = '\0';
  return weft_mlir_float(p->context, name);
}

static bool dialect_type(weft_mlir_parser *p, const weft_mlir_type **type) {
  const char *name = p->token.start + 1;
  uint32_t line = p->token.line;
  size_t length = p->token.length - 1;
  alias *a = memchr(name, '.', length) ? NULL : parser_alias(p, name - 1, length + 1);
  if (a) {
    *type = a->attribute->as.type_value;
    if (!parser_use_alias(p, a)) return false;
    parser_advance(p);
    return true;
  }
  weft_mlir_type shape = {.kind = WEFT_MLIR_DIALECT_TYPE, .name = weft_mlir_intern(p->context, name, length)};
  if (!shape.name) return parser_memory(p);
  const weft_mlir_type_spec *spec = mlir_type_spec(p->context, shape.name);
  const char *dot = memchr(name, '.', length);
  if (!spec && dot && mlir_dialect_known(p->context, name, (size_t)(dot - name)))
    return weft_mlir_fail(p, "the dialect has no type !%s", shape.name);
  if (!spec && !dot && *p->lexer.at != '<') return weft_mlir_fail(p, "the alias !%s is not defined", shape.name);
  parser_advance(p);
  enum { MOST = 16 };
  const weft_mlir_attribute *parameters[MOST];
  if (!spec) {
    if (parser_is(p, '<') && !parser_angle_text(p, &shape.body)) return false;
  } else if (parser_take(p, '<')) {
    do {
      if (shape.parameter_count == MOST) return weft_mlir_fail(p, "the type has too many parameters");
      if (!parser_attribute(p, NULL, &parameters[shape.parameter_count++])) return false;
    } while (parser_take(p, ','));
    if (!parser_need(p, '>', "after the type's parameters")) return false;
    shape.parameters = parameters;
  }
  if (spec && spec->parameters != UINT32_MAX && spec->parameters != shape.parameter_count)
    return parser_fail_at(p, line, name - 1, "!%s takes %u parameters", shape.name, spec->parameters);
  *type = weft_mlir_type_get(p->context, &shape);
  return *type || parser_memory(p);
}

/* The end of a type such as memref<?xi32> that is nothing but plain characters, or NULL. */
static const char *plain_end(const char *c) {
  for (int i = 0; i < 60; i++, c++) {
    if (*c == '>') return c + 1;
    bool plain = (*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '?' || (*c == '<' && i < 8);
    if (!plain) return NULL;
  }
  return NULL;
}

static bool shaped_or_known(weft_mlir_parser *p, weft_mlir_type_kind kind, const weft_mlir_type **type) {
  const char *start = p->token.start, *end = plain_end(start);
  if (!end) return shaped(p, kind, type);
  size_t length = (size_t)(end - start);
  known_type *known = &p->known[mlir_hash(start, length) % KNOWN_TYPES];
  if (known->length == length && memcmp(known->text, start, length) == 0) {
    *type = known->type;
    parser_restart(p, end);
    return true;
  }
  if (!shaped(p, kind, type)) return false;
  *known = (known_type){start, length, *type};
  return true;
}

static bool word_type(weft_mlir_parser *p, const weft_mlir_type **type) {
  if (parser_is_word(p, "memref")) return shaped_or_known(p, WEFT_MLIR_MEMREF_TYPE, type);
  if (parser_is_word(p, "tensor")) return shaped_or_known(p, WEFT_MLIR_TENSOR_TYPE, type);
  if (parser_is_word(p, "vector")) return shaped_or_known(p, WEFT_MLIR_VECTOR_TYPE, type);
  if (parser_is_word(p, "complex")) return complex_type(p, type);
  if (parser_is_word(p, "tuple")) return tuple_type(p, type);
  *type = simple_type(p);
  if (!*type)
    return weft_mlir_fail(p, "expected a type, found '%.*s'", (int)(p->token.length > 40 ? 40 : p->token.length),
                          p->token.start);
  parser_advance(p);
  return true;
}

bool parser_type(weft_mlir_parser *p, const weft_mlir_type **type) {
  if (!parser_deeper(p)) return false;
  bool ok;
  if (p->token.kind == TOKEN_WORD)
    ok = word_type(p, type);
  else if (p->token.kind == TOKEN_BANG)
    ok = dialect_type(p, type);
  else if (parser_is(p, '('))
    ok = function_type(p, type);
  else
    ok = weft_mlir_fail(p, "expected a type");
  p->depth--;
  return ok;
}

bool weft_mlir_parse_type(weft_mlir_parser *p, const weft_mlir_type **type) { return parser_type(p, type); }

/* Copies what lies on the stack from `base` on into scratch memory. */
static bool pop_types(weft_mlir_parser *p, uint64_t base, const weft_mlir_type ***types, uint32_t *count) {
  *count = (uint32_t)(p->type_count - base);
  *types = WEFT_NEW_ARRAY(p->scratch, const weft_mlir_type *, *count);
  if (!*types) return parser_memory(p);
  if (*count) memcpy(*types, p->type_stack + base, *count * sizeof **types);
  p->type_count = base;
  return true;
}

bool weft_mlir_parse_types(weft_mlir_parser *p, const weft_mlir_type ***types, uint32_t *count) {
  uint64_t base = p->type_count;
  const weft_mlir_type *type;
  if (type_starts(p)) do {
      if (!parser_type(p, &type) || !push(p, type)) return false;
    } while (parser_take(p, ','));
  return pop_types(p, base, types, count);
}

bool weft_mlir_parse_results(weft_mlir_parser *p, const weft_mlir_type ***types, uint32_t *count) {
  uint64_t base = p->type_count;
  return result_list(p) && pop_types(p, base, types, count);
}

bool weft_mlir_parse_functional(weft_mlir_parser *p, const weft_mlir_type ***inputs, uint32_t *input_count,
                                const weft_mlir_type ***results, uint32_t *result_count) {
  uint64_t base = p->type_count;
  if (!parser_need(p, '(', "before the operand types") || !type_list(p, ')') ||
      !pop_types(p, base, inputs, input_count))
    return false;
  return weft_mlir_expect(p, "->") && result_list(p) && pop_types(p, base, results, result_count);
}
