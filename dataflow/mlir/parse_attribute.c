/* Reading attributes. */
#include "internal.h"

#include <stdlib.h>

static bool made(weft_mlir_parser *p, const weft_mlir_attribute *attribute, const weft_mlir_attribute **out) {
  *out = attribute;
  return attribute || parser_memory(p);
}

/* ---- text kept as it stands ----------------------------------------------------------------------------------- */

static bool opens(char c) { return c == '<' || c == '(' || c == '[' || c == '{'; }

/* The character that closes the '<' at `c`, or NULL with a message; strings and arrows are skipped whole. */
static const char *balanced_end(weft_mlir_parser *p, const char *c) {
  char open[WEFT_MLIR_DEPTH];
  uint32_t depth = 0;
  for (; c < p->lexer.end; c++) {
    if (*c == '"') {
      for (c++; c < p->lexer.end && *c != '"' && *c != '\n'; c++)
        if (*c == '\\' && c[1] != '\n') c++;
      if (c >= p->lexer.end || *c != '"') break;
    } else if (*c == '-' && c[1] == '>') {
      c++;
    } else if (opens(*c)) {
      if (depth == WEFT_MLIR_DEPTH) {
        weft_mlir_fail(p, "the nesting is deeper than %d levels", WEFT_MLIR_DEPTH);
        return NULL;
      }
      open[depth++] = *c == '<' ? '>' : *c == '(' ? ')' : *c == '[' ? ']' : '}';
    } else if (*c == '>' || *c == ')' || *c == ']' || *c == '}') {
      if (!depth || open[depth - 1] != *c) break;
      if (--depth == 0) return c;
    } else if (*c == '\0') {
      break;
    }
  }
  weft_mlir_fail(p, "the '<' has no matching '>'");
  return NULL;
}

/* The text between `begin` and `end` with each run of spaces and line breaks made one space. */
static const char *one_line(weft_mlir_parser *p, const char *begin, const char *end) {
  char *text = weft_arena_alloc(p->scratch, (size_t)(end - begin) + 1), *out = text;
  if (!text) return NULL;
  for (const char *c = begin; c < end; c++) {
    bool space = *c == ' ' || *c == '\t' || *c == '\n' || *c == '\r';
    if (*c == '\n') {
      p->lexer.line++;
      p->lexer.line_start = c + 1;
    }
    if (!space)
      *out++ = *c;
    else if (out > text && out[-1] != ' ')
      *out++ = ' ';
  }
  if (out > text && out[-1] == ' ') out--;
  *out = '\0';
  return text;
}

bool parser_angle_text(weft_mlir_parser *p, const char **text) {
  const char *begin = p->token.start, *end = balanced_end(p, begin);
  if (!end) return false;
  *text = one_line(p, begin + 1, end);
  if (!*text) return parser_memory(p);
  parser_restart(p, end + 1);
  return true;
}

bool parser_angle_skip(weft_mlir_parser *p, const char **begin) {
  *begin = p->token.start + 1;
  const char *end = balanced_end(p, p->token.start);
  if (!end) return false;
  for (const char *c = memchr(*begin, '\n', (size_t)(end - *begin)); c;
       c = memchr(c + 1, '\n', (size_t)(end - c - 1))) {
    p->lexer.line++;
    p->lexer.line_start = c + 1;
  }
  parser_restart(p, end + 1);
  return true;
}

/* word<...>, kept as text. */
static bool opaque(weft_mlir_parser *p, const weft_mlir_attribute **attribute) {
  const char *word = p->token.start, *body;
  uint32_t length = p->token.length;
  parser_advance(p);
  if (!parser_is(p, '<')) return weft_mlir_fail(p, "expected '<' after '%.*s'", (int)length, word);
  if (!parser_angle_text(p, &body)) return false;
  const char *text = weft_arena_printf(p->scratch, "%.*s<%s>", (int)length, word, body);
  if (!text) return parser_memory(p);
  weft_mlir_attribute shape = {.kind = WEFT_MLIR_OPAQUE};
  shape.as.string.data = text;
  shape.as.string.length = strlen(text);
  return made(p, weft_mlir_attribute_get(p->context, &shape), attribute);
}

/* ---- numbers -------------------------------------------------------------------------------------------------- */

static bool integer_like(const weft_mlir_type *type) {
  return type->kind == WEFT_MLIR_INTEGER_TYPE || type->kind == WEFT_MLIR_INDEX_TYPE;
}

/* The value as the type holds it: i8 255 and -1 are one; what fits neither way is refused. */
static bool fit(weft_mlir_parser *p, const weft_mlir_type *type, int64_t *value) {
  uint32_t width = type->kind == WEFT_MLIR_INDEX_TYPE ? 64 : type->width;
  if (width >= 64) return true;
  if (width == 0) return *value == 0 || weft_mlir_fail(p, "the integer does not fit in %s", type->name);
  int64_t low = -((int64_t)1 << (width - 1)), high = (int64_t)(((uint64_t)1 << width) - 1);
  if (*value < low || *value > high) return weft_mlir_fail(p, "the integer does not fit in %s", type->name);
  if (width == 1)
    *value &= 1;
  else if (type->sign != WEFT_MLIR_UNSIGNED)
    *value = (int64_t)((uint64_t)*value << (64 - width)) >> (64 - width);
  return true;
}

/* A number after its sign: kept as token text until the type is known. */
typedef struct number {
  bool negative, hex, point;
  double real;
  int64_t integer;
} number;

static bool read_number(weft_mlir_parser *p, number *n) {
  *n = (number){.negative = parser_take(p, '-')};
  n->point = p->token.kind == TOKEN_FLOAT;
  if (!n->point && p->token.kind != TOKEN_INTEGER) return weft_mlir_fail(p, "expected a number");
  n->hex = p->token.length > 2 && p->token.start[1] == 'x';
  if (n->point || !n->hex) n->real = strtod(p->token.start, NULL);
  if (n->negative) n->real = -n->real;
  if (n->point) {
    parser_advance(p);
    return true;
  }
  if (!weft_mlir_parse_integer(p, &n->integer)) return false;
  if (n->negative) n->integer = (int64_t)(0 - (uint64_t)n->integer);
  return true;
}

static bool number_attribute(weft_mlir_parser *p, const number *n, const weft_mlir_type *type,
                             const weft_mlir_attribute **attribute) {
  if (type->kind == WEFT_MLIR_FLOAT_TYPE) {
    uint64_t bits;
    if (n->hex)
      bits = (uint64_t)n->integer;
    else if (!n->point)
      return weft_mlir_fail(p, "a %s constant needs a decimal point, as in 1.0", type->name);
    else if (!weft_mlir_float_round(type, n->real, &bits))
      return weft_mlir_fail(p, "constants of type %s are not supported", type->name);
    if (n->hex && (n->negative || (type->width < 64 && bits >> type->width)))
      return weft_mlir_fail(p, "the bits do not fit in %s", type->name);
    return made(p, weft_mlir_float_bits(p->context, type, bits), attribute);
  }
  if (!integer_like(type) || n->point) return weft_mlir_fail(p, "the number does not go with its type");
  int64_t value = n->integer;
  if (type->kind == WEFT_MLIR_INTEGER_TYPE && type->width > 64 && type->sign == WEFT_MLIR_UNSIGNED && value < 0)
    return weft_mlir_fail(p, "the integer does not fit in 63 bits");
  return fit(p, type, &value) && made(p, weft_mlir_integer_attribute(p->context, type, value), attribute);
}

static bool numeric(weft_mlir_parser *p, const weft_mlir_type *type, const weft_mlir_attribute **attribute) {
  number n;
  if (!read_number(p, &n)) return false;
  if (!type) {
    type = n.point ? weft_mlir_float(p->context, "f64") : p->context->i64;
    if (parser_take(p, ':') && !parser_type(p, &type)) return false;
  }
  return number_attribute(p, &n, type, attribute);
}

/* ---- lists ---------------------------------------------------------------------------------------------------- */

static bool array(weft_mlir_parser *p, const weft_mlir_attribute **attribute) {
  const weft_mlir_attribute **items = NULL;
  uint64_t count = 0, capacity = 0;
  parser_advance(p);
  if (!parser_is(p, ']')) do {
      if (!weft_arena_grow(p->scratch, &items, count, &capacity, sizeof *items)) return parser_memory(p);
      if (!parser_attribute(p, NULL, &items[count++])) return false;
    } while (parser_take(p, ','));
  return parser_need(p, ']', "after the elements") &&
         made(p, weft_mlir_array(p->context, items, (uint32_t)count), attribute);
}

static bool member(weft_mlir_parser *p, weft_mlir_named *member) {
  const char *name;
  if (p->token.kind == TOKEN_STRING) {
    const char *text;
    uint64_t length;
    if (!weft_mlir_parse_string(p, &text, &length)) return false;
    if (!length || memchr(text, '\0', length)) return weft_mlir_fail(p, "an attribute's name is empty or holds a NUL");
    name = weft_mlir_intern(p->context, text, length);
  } else if (p->token.kind == TOKEN_WORD) {
    name = weft_mlir_intern(p->context, p->token.start, p->token.length);
    parser_advance(p);
  } else {
    return weft_mlir_fail(p, "expected an attribute's name");
  }
  if (!name) return parser_memory(p);
  member->name = name;
  if (parser_take(p, '=')) return parser_attribute(p, NULL, &member->value);
  member->value = p->context->unit;
  return true;
}

bool parser_members(weft_mlir_parser *p, weft_mlir_named **members, uint64_t *count, uint64_t *capacity) {
  parser_advance(p);
  if (!parser_is(p, '}')) do {
      if (*count == *capacity && !weft_arena_grow(p->scratch, members, *count, capacity, sizeof **members))
        return parser_memory(p);
      weft_mlir_named *next = &(*members)[*count];
      if (!member(p, next)) return false;
      for (uint64_t i = 0; i < *count && *count < 1000; i++)
        if ((*members)[i].name == next->name) return weft_mlir_fail(p, "the attribute '%s' is given twice", next->name);
      ++*count;
    } while (parser_take(p, ','));
  return parser_need(p, '}', "after the attributes");
}

bool parser_dictionary(weft_mlir_parser *p, const weft_mlir_attribute **dictionary) {
  enum { FEW = 8 };
  weft_mlir_named few[FEW], *members = few;
  uint64_t count = 0, capacity = FEW;
  return parser_members(p, &members, &count, &capacity) &&
         made(p, weft_mlir_dictionary(p->context, members, (uint32_t)count), dictionary);
}

bool parser_symbol_reference(weft_mlir_parser *p, const weft_mlir_attribute **attribute) {
  enum { MOST = 32 };
  const char *path[MOST];
  uint32_t count = 0;
  do {
    if (count == MOST) return weft_mlir_fail(p, "the symbol reference has more than %d names", MOST);
    if (!weft_mlir_parse_symbol(p, &path[count++])) return false;
  } while (weft_mlir_try(p, "::"));
  weft_mlir_attribute shape = {.kind = WEFT_MLIR_SYMBOL, .count = count};
  shape.as.path = path;
  return made(p, weft_mlir_attribute_get(p->context, &shape), attribute);
}

/* ---- dialect attributes --------------------------------------------------------------------------------------- */

/* Parameters between < and >: attributes, words standing for strings, and name = attribute as pairs of both. */
static bool parameters(weft_mlir_parser *p, const weft_mlir_attribute ***items, uint32_t *count) {
  uint64_t used = 0, capacity = 0;
  *items = NULL;
  if (!parser_take(p, '<')) return true;
  if (!parser_is(p, '>')) do {
      if (!weft_arena_grow(p->scratch, items, used, &capacity, sizeof **items)) return parser_memory(p);
      const char *word = p->token.start;
      uint32_t length = p->token.length;
      bool plain = p->token.kind == TOKEN_WORD && (*p->lexer.at == ',' || *p->lexer.at == '>');
      if (plain) parser_advance(p);
      if (plain ? !made(p, weft_mlir_string(p->context, word, length), &(*items)[used])
                : !parser_attribute(p, NULL, &(*items)[used]))
        return false;
      used++;
    } while (parser_take(p, ','));
  *count = (uint32_t)used;
  return parser_need(p, '>', "after the parameters");
}

static bool dialect_attribute(weft_mlir_parser *p, const weft_mlir_attribute **attribute) {
  const char *name = p->token.start + 1;
  size_t length = p->token.length - 1;
  alias *a = memchr(name, '.', length) ? NULL : parser_alias(p, name - 1, length + 1);
  if (a) {
    *attribute = a->attribute;
    if (!parser_use_alias(p, a)) return false;
    parser_advance(p);
    return true;
  }
  if (!memchr(name, '.', length) && *p->lexer.at != '<')
    return weft_mlir_fail(p, "the alias #%.*s is not defined", (int)length, name);
  weft_mlir_attribute shape = {.kind = WEFT_MLIR_DIALECT};
  shape.as.dialect.name = weft_mlir_intern(p->context, name, length);
  if (!shape.as.dialect.name) return parser_memory(p);
  const weft_mlir_attribute_spec *spec = mlir_attribute_spec(p->context, shape.as.dialect.name);
  parser_advance(p);
  if (spec && spec->parse) return spec->parse(p, shape.as.dialect.name, attribute);
  if (spec) {
    const weft_mlir_attribute **items;
    if (!parameters(p, &items, &shape.count)) return false;
    shape.as.dialect.items = items;
  } else if (parser_is(p, '<') && !parser_angle_text(p, &shape.as.dialect.body)) {
    return false;
  }
  return made(p, weft_mlir_attribute_get(p->context, &shape), attribute);
}

/* ---- locations ------------------------------------------------------------------------------------------------ */

static bool location_body(weft_mlir_parser *p, weft_text *text);

static bool location_list(weft_mlir_parser *p, weft_text *text) {
  weft_text_puts(text, "[");
  if (!parser_is(p, ']')) do {
      if (text->data[text->length - 1] != '[') weft_text_puts(text, ", ");
      if (!location_body(p, text)) return false;
    } while (parser_take(p, ','));
  weft_text_puts(text, "]");
  return parser_need(p, ']', "after the locations");
}

/* "file":line:column with an optional range, or "name"(inner). */
static bool named_location(weft_mlir_parser *p, weft_text *text) {
  weft_text_append(text, p->token.start, p->token.length);
  parser_advance(p);
  if (parser_take(p, '(')) {
    weft_text_puts(text, "(");
    if (!location_body(p, text)) return false;
    weft_text_puts(text, ")");
    return parser_need(p, ')', "after the location");
  }
  int64_t at;
  while (parser_is(p, ':') || parser_is_word(p, "to")) {
    if (parser_is_word(p, "to")) {
      weft_text_puts(text, " to ");
      parser_advance(p);
      if (p->token.kind == TOKEN_INTEGER) {
        if (!weft_mlir_parse_integer(p, &at)) return false;
        weft_text_i64(text, at);
        continue;
      }
    }
    if (!parser_need(p, ':', "in the location") || !weft_mlir_parse_integer(p, &at)) return false;
    weft_text_puts(text, ":");
    weft_text_i64(text, at);
  }
  return true;
}

static bool alias_location(weft_mlir_parser *p, weft_text *text) {
  alias *a = parser_alias(p, p->token.start, p->token.length);
  bool location = a && a->attribute->kind == WEFT_MLIR_OPAQUE && strncmp(a->attribute->as.string.data, "loc(", 4) == 0;
  if (a && !location) return weft_mlir_fail(p, "the alias is no location");
  if (a) /* without loc( and ) */
    weft_text_append(text, a->attribute->as.string.data + 4, a->attribute->as.string.length - 5);
  else
    weft_text_puts(text, "unknown"); /* aliases of locations stand at the end of the file */
  parser_advance(p);
  return true;
}

static bool wrapped_location(weft_mlir_parser *p, weft_text *text) {
  if (parser_is_word(p, "unknown")) {
    weft_text_puts(text, "unknown");
    parser_advance(p);
    return true;
  }
  if (weft_mlir_try(p, "callsite")) {
    weft_text_puts(text, "callsite(");
    if (!parser_need(p, '(', "after callsite") || !location_body(p, text) || !weft_mlir_expect(p, "at")) return false;
    weft_text_puts(text, " at ");
    if (!location_body(p, text)) return false;
    weft_text_puts(text, ")");
    return parser_need(p, ')', "after the location");
  }
  if (!weft_mlir_try(p, "fused")) return weft_mlir_fail(p, "expected a location");
  weft_text_puts(text, "fused");
  if (parser_is(p, '<')) {
    const char *metadata;
    if (!parser_angle_text(p, &metadata)) return false;
    weft_text_printf(text, "<%s>", metadata);
  }
  return parser_need(p, '[', "after fused") && location_list(p, text);
}

static bool location_body(weft_mlir_parser *p, weft_text *text) {
  if (!parser_deeper(p)) return false;
  bool ok = p->token.kind == TOKEN_STRING ? named_location(p, text)
            : p->token.kind == TOKEN_HASH ? alias_location(p, text)
                                          : wrapped_location(p, text);
  p->depth--;
  if (text->length > (1u << 20)) return weft_mlir_fail(p, "the location is longer than a megabyte");
  return ok;
}

bool parser_location(weft_mlir_parser *p, const weft_mlir_attribute **location) {
  parser_advance(p);
  weft_text text = {0};
  weft_text_puts(&text, "loc(");
  bool ok = parser_need(p, '(', "after loc") && location_body(p, &text) && parser_need(p, ')', "after the location");
  weft_text_puts(&text, ")");
  if (ok && text.failed) ok = parser_memory(p);
  weft_mlir_attribute shape = {.kind = WEFT_MLIR_OPAQUE};
  shape.as.string.data = text.data;
  shape.as.string.length = text.length;
  if (ok) ok = made(p, weft_mlir_attribute_get(p->context, &shape), location);
  weft_text_free(&text);
  return ok;
}

/* ---- everything ----------------------------------------------------------------------------------------------- */

static bool affine_attribute(weft_mlir_parser *p, const weft_mlir_attribute **attribute) {
  weft_mlir_attribute shape = {.kind = WEFT_MLIR_AFFINE_MAP};
  parser_advance(p);
  if (!parser_need(p, '<', "after affine_map") || !parser_affine_map(p, &shape.as.map) ||
      !parser_need(p, '>', "after the map"))
    return false;
  return made(p, weft_mlir_attribute_get(p->context, &shape), attribute);
}

static bool type_attribute(weft_mlir_parser *p, const weft_mlir_attribute **attribute) {
  const weft_mlir_type *type;
  return parser_type(p, &type) && made(p, weft_mlir_type_attribute(p->context, type), attribute);
}

static bool word_attribute(weft_mlir_parser *p, const weft_mlir_type *type, const weft_mlir_attribute **attribute) {
  bool truth = parser_is_word(p, "true");
  if (truth || parser_is_word(p, "false")) {
    parser_advance(p);
    if (type && type != p->context->i1) return weft_mlir_fail(p, "true and false are of type i1");
    return made(p, weft_mlir_bool(p->context, truth), attribute);
  }
  if (parser_is_word(p, "unit")) {
    parser_advance(p);
    return made(p, p->context->unit, attribute);
  }
  if (parser_is_word(p, "dense")) return parser_dense(p, attribute);
  if (parser_is_word(p, "array")) return parser_dense_array(p, attribute);
  if (parser_is_word(p, "affine_map")) return affine_attribute(p, attribute);
  if (parser_is_word(p, "loc")) return parser_location(p, attribute);
  if (parser_is_word(p, "affine_set") || parser_is_word(p, "strided")) return opaque(p, attribute);
  if (parser_is_word(p, "dense_resource") || parser_is_word(p, "sparse")) {
    const weft_mlir_type *shape_type;
    if (!opaque(p, attribute) || !parser_need(p, ':', "before the type") || !parser_type(p, &shape_type)) return false;
    weft_mlir_attribute shape = **attribute;
    shape.type = shape_type;
    return made(p, weft_mlir_attribute_get(p->context, &shape), attribute);
  }
  return type_attribute(p, attribute);
}

static bool string_attribute(weft_mlir_parser *p, const weft_mlir_attribute **attribute) {
  weft_mlir_attribute shape = {.kind = WEFT_MLIR_STRING};
  if (!weft_mlir_parse_string(p, &shape.as.string.data, &shape.as.string.length)) return false;
  if (parser_take(p, ':') && !parser_type(p, &shape.type)) return false;
  return made(p, weft_mlir_attribute_get(p->context, &shape), attribute);
}

static bool any_attribute(weft_mlir_parser *p, const weft_mlir_type *type, const weft_mlir_attribute **attribute) {
  switch (p->token.kind) {
  case TOKEN_WORD: return word_attribute(p, type, attribute);
  case TOKEN_INTEGER:
  case TOKEN_FLOAT: return numeric(p, type, attribute);
  case TOKEN_STRING: return string_attribute(p, attribute);
  case TOKEN_HASH: return dialect_attribute(p, attribute);
  case TOKEN_AT: return parser_symbol_reference(p, attribute);
  case TOKEN_BANG: return type_attribute(p, attribute);
  case TOKEN_PUNCTUATION:
    if (parser_is(p, '-')) return numeric(p, type, attribute);
    if (parser_is(p, '[')) return array(p, attribute);
    if (parser_is(p, '{')) return parser_dictionary(p, attribute);
    if (parser_is(p, '(')) return type_attribute(p, attribute);
    break;
  case TOKEN_END:
  case TOKEN_BAD:
  case TOKEN_VALUE:
  case TOKEN_CARET: break;
  }
  return weft_mlir_fail(p, "expected an attribute");
}

bool parser_attribute(weft_mlir_parser *p, const weft_mlir_type *type, const weft_mlir_attribute **attribute) {
  if (!parser_deeper(p)) return false;
  bool ok = any_attribute(p, type, attribute);
  p->depth--;
  return ok;
}

bool weft_mlir_parse_attribute(weft_mlir_parser *p, const weft_mlir_type *type, const weft_mlir_attribute **attribute) {
  return parser_attribute(p, type, attribute);
}
