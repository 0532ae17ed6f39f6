/* Reading affine maps, dense arrays and dense elements. The type of dense elements follows them in the text, so that
 * they are read twice: skipped to the type, then read into bytes. */
#include "internal.h"

#include <stdlib.h>

/* ---- affine maps ---------------------------------------------------------------------------------------------- */

enum { MOST_NAMES = 64, MOST_OPERATORS = 400 };

typedef struct map_names {
  const char *text[MOST_NAMES];
  uint32_t length[MOST_NAMES];
  uint32_t count, dims;
  uint32_t operators;
} map_names;

static bool affine_sum(weft_mlir_parser *p, map_names *names, const weft_mlir_affine **e);

static bool name_list(weft_mlir_parser *p, map_names *names, char close) {
  if (parser_take(p, close)) return true;
  do {
    if (p->token.kind != TOKEN_WORD) return weft_mlir_fail(p, "expected a dimension's or symbol's name");
    if (names->count == MOST_NAMES)
      return weft_mlir_fail(p, "the map has more than %d dimensions and symbols", MOST_NAMES);
    names->text[names->count] = p->token.start;
    names->length[names->count++] = p->token.length;
    parser_advance(p);
  } while (parser_take(p, ','));
  return parser_need(p, close, "after the names");
}

static bool affine_made(weft_mlir_parser *p, const weft_mlir_affine *made, const weft_mlir_affine **e) {
  *e = made;
  return made || parser_memory(p);
}

static bool affine_name(weft_mlir_parser *p, map_names *names, const weft_mlir_affine **e) {
  for (uint32_t i = 0; i < names->count; i++) {
    if (names->length[i] != p->token.length || memcmp(names->text[i], p->token.start, p->token.length) != 0) continue;
    parser_advance(p);
    bool dim = i < names->dims;
    return affine_made(p,
                       mlir_affine(p->context, dim ? WEFT_MLIR_AFFINE_DIM : WEFT_MLIR_AFFINE_SYMBOL,
                                   dim ? i : i - names->dims, NULL, NULL),
                       e);
  }
  return weft_mlir_fail(p, "this name is no dimension or symbol of the map");
}

static const weft_mlir_affine *constant(weft_mlir_parser *p, int64_t value) {
  return mlir_affine(p->context, WEFT_MLIR_AFFINE_CONSTANT, value, NULL, NULL);
}

static bool affine_factor(weft_mlir_parser *p, map_names *names, const weft_mlir_affine **e) {
  if (++names->operators > MOST_OPERATORS) return weft_mlir_fail(p, "the map is longer than %d terms", MOST_OPERATORS);
  if (parser_take(p, '(')) return affine_sum(p, names, e) && parser_need(p, ')', "after the expression");
  if (p->token.kind == TOKEN_WORD) return affine_name(p, names, e);
  bool minus = parser_take(p, '-');
  if (minus && p->token.kind != TOKEN_INTEGER) {
    if (!affine_factor(p, names, e)) return false;
    return affine_made(p, mlir_affine(p->context, WEFT_MLIR_AFFINE_MUL, 0, *e, constant(p, -1)), e);
  }
  int64_t value;
  if (!weft_mlir_parse_integer(p, &value)) return false;
  return affine_made(p, constant(p, minus ? (int64_t)(0 - (uint64_t)value) : value), e);
}

static bool affine_product(weft_mlir_parser *p, map_names *names, const weft_mlir_affine **e) {
  if (!affine_factor(p, names, e)) return false;
  for (;;) {
    weft_mlir_affine_kind kind;
    if (parser_is(p, '*'))
      kind = WEFT_MLIR_AFFINE_MUL;
    else if (parser_is_word(p, "mod"))
      kind = WEFT_MLIR_AFFINE_MOD;
    else if (parser_is_word(p, "floordiv"))
      kind = WEFT_MLIR_AFFINE_FLOORDIV;
    else if (parser_is_word(p, "ceildiv"))
      kind = WEFT_MLIR_AFFINE_CEILDIV;
    else
      return true;
    parser_advance(p);
    const weft_mlir_affine *right;
    if (!affine_factor(p, names, &right) || !affine_made(p, mlir_affine(p->context, kind, 0, *e, right), e))
      return false;
  }
}

static bool affine_sum(weft_mlir_parser *p, map_names *names, const weft_mlir_affine **e) {
  if (!parser_deeper(p) || !affine_product(p, names, e)) return false;
  while (parser_is(p, '+') || parser_is(p, '-')) {
    bool minus = parser_is(p, '-');
    parser_advance(p);
    const weft_mlir_affine *right;
    if (!affine_product(p, names, &right)) return false;
    if (minus) right = mlir_affine(p->context, WEFT_MLIR_AFFINE_MUL, 0, right, constant(p, -1));
    if (!right || !affine_made(p, mlir_affine(p->context, WEFT_MLIR_AFFINE_ADD, 0, *e, right), e))
      return parser_memory(p);
  }
  p->depth--;
  return true;
}

bool parser_affine_map(weft_mlir_parser *p, const weft_mlir_affine_map **map) {
  map_names names = {.count = 0};
  const weft_mlir_affine *results[MOST_NAMES];
  uint32_t count = 0;
  if (!parser_need(p, '(', "before the dimensions") || !name_list(p, &names, ')')) return false;
  names.dims = names.count;
  if (parser_take(p, '[') && !name_list(p, &names, ']')) return false;
  if (!weft_mlir_expect(p, "->") || !parser_need(p, '(', "before the results")) return false;
  if (!parser_is(p, ')')) do {
      if (count == MOST_NAMES) return weft_mlir_fail(p, "the map has more than %d results", MOST_NAMES);
      names.operators = 0;
      if (!affine_sum(p, &names, &results[count++])) return false;
    } while (parser_take(p, ','));
  if (!parser_need(p, ')', "after the results")) return false;
  *map = mlir_affine_map(p->context, names.dims, names.count - names.dims, results, count);
  return *map || parser_memory(p);
}

/* ---- elements ------------------------------------------------------------------------------------------------- */

/* Elements on their way into bytes. */
typedef struct elements {
  const weft_mlir_type *type; /* of one */
  char *data;
  uint64_t count, most; /* read, and room for */
  uint32_t bytes;       /* of one */
} elements;

static uint32_t element_bytes(const weft_mlir_type *type) {
  if (type->kind == WEFT_MLIR_INDEX_TYPE) return 8;
  if (type->kind == WEFT_MLIR_COMPLEX_TYPE) return 2 * element_bytes(type->element);
  if (type->kind != WEFT_MLIR_INTEGER_TYPE && type->kind != WEFT_MLIR_FLOAT_TYPE) return 0;
  uint32_t width = type->width;
  return width == 0 || width > 64 ? 0 : width <= 8 ? 1 : width <= 16 ? 2 : width <= 32 ? 4 : 8;
}

static bool put_scalar(weft_mlir_parser *p, const weft_mlir_type *type, char *at) {
  const weft_mlir_attribute *value;
  if (!parser_attribute(p, type, &value)) return false;
  uint64_t bits;
  if (value->kind == WEFT_MLIR_FLOAT)
    bits = value->as.bits;
  else if (value->kind == WEFT_MLIR_INTEGER)
    bits = (uint64_t)value->as.integer;
  else
    return weft_mlir_fail(p, "expected a number");
  if (type->kind == WEFT_MLIR_INTEGER_TYPE && type->width < 64) bits &= ((uint64_t)1 << type->width) - 1;
  memcpy(at, &bits, element_bytes(type));
  return true;
}

/* A plain decimal integer without an attribute of its own. */
static bool put_quick(weft_mlir_parser *p, const weft_mlir_type *type, char *at) {
  if (type->kind != WEFT_MLIR_INTEGER_TYPE || type->width < 32 || p->token.kind != TOKEN_INTEGER || p->token.length > 9)
    return false;
  uint64_t bits = 0;
  for (uint32_t i = 0; i < p->token.length; i++) {
    if (p->token.start[i] > '9') return false;
    bits = bits * 10 + (uint64_t)(p->token.start[i] - '0');
  }
  memcpy(at, &bits, element_bytes(type));
  parser_advance(p);
  return true;
}

/* Room for one more; NULL with a message when the type has none. */
static char *next_element(weft_mlir_parser *p, elements *e) {
  if (e->count == e->most) {
    weft_mlir_fail(p, "there are more elements than the type has");
    return NULL;
  }
  return e->data + e->count++ * e->bytes;
}

static bool put_element(weft_mlir_parser *p, elements *e) {
  char *at = next_element(p, e);
  if (!at) return false;
  if (e->type->kind != WEFT_MLIR_COMPLEX_TYPE) return put_quick(p, e->type, at) || put_scalar(p, e->type, at);
  return parser_need(p, '(', "before a complex element") && put_scalar(p, e->type->element, at) &&
         parser_need(p, ',', "between real and imaginary part") && put_scalar(p, e->type->element, at + e->bytes / 2) &&
         parser_need(p, ')', "after a complex element");
}

/* [ ... ] of `extents[0]` lists or elements. */
static bool put_list(weft_mlir_parser *p, elements *e, const int64_t *extents, uint32_t rank) {
  int64_t count = 0;
  if (!parser_need(p, '[', "before the elements")) return false;
  if (!parser_is(p, ']')) do {
      if (rank == 1 ? !put_element(p, e) : !put_list(p, e, extents + 1, rank - 1)) return false;
      count++;
    } while (parser_take(p, ','));
  if (count != extents[0])
    return weft_mlir_fail(p, "expected %lld elements here, found %lld", (long long)extents[0], (long long)count);
  return parser_need(p, ']', "after the elements");
}

static int nibble(char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; }

/* "0x...": the elements' bytes in order; i1 may be packed eight to a byte. */
static bool put_hex(weft_mlir_parser *p, elements *e, uint64_t wanted, bool *splat) {
  const char *text;
  uint64_t length;
  if (!weft_mlir_parse_string(p, &text, &length)) return false;
  bool good = length >= 2 && length % 2 == 0 && text[0] == '0' && text[1] == 'x';
  for (uint64_t i = 2; good && i < length; i++)
    good = (text[i] >= '0' && text[i] <= '9') || ((text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'f');
  if (!good) return weft_mlir_fail(p, "the string must be 0x and pairs of hexadecimal digits");
  uint64_t bytes = (length - 2) / 2;
  bool packed = e->type->width == 1 && wanted > 1 && bytes == (wanted + 7) / 8;
  *splat = !packed && bytes == e->bytes && wanted > 1;
  if (!packed && !*splat && bytes != wanted * e->bytes)
    return weft_mlir_fail(p, "the string has %llu bytes, the type needs %llu", (unsigned long long)bytes,
                          (unsigned long long)(wanted * e->bytes));
  for (uint64_t i = 0; i < (packed ? wanted : bytes); i++) {
    uint64_t at = packed ? i / 8 : i;
    int byte = nibble(text[2 + 2 * at]) * 16 + nibble(text[3 + 2 * at]);
    e->data[i] = (char)(packed ? byte >> (i % 8) & 1 : byte);
  }
  return true;
}

static bool all_equal(const elements *e, uint64_t count) {
  for (uint64_t i = 1; i < count; i++)
    if (memcmp(e->data, e->data + i * e->bytes, e->bytes) != 0) return false;
  return count > 1;
}

/* The text between < and > as the elements of `type`. */
static bool put_body(weft_mlir_parser *p, const weft_mlir_type *type, const weft_mlir_attribute **attribute) {
  uint64_t wanted, bytes;
  elements e = {.type = type->element, .bytes = element_bytes(type->element)};
  if (!weft_mlir_elements(type, &wanted)) return weft_mlir_fail(p, "dense elements need a static shape");
  if (!e.bytes) return weft_mlir_fail(p, "dense elements of this type are not supported");
  if (weft_mul_overflow(wanted, e.bytes, &bytes)) return weft_mlir_fail(p, "the type is too large");
  bool list = parser_is(p, '['), splat = !list && p->token.kind != TOKEN_STRING && !parser_is(p, '>');
  /* Each element takes at least two characters, so that a type cannot ask for more memory than its text warrants. */
  uint64_t text_bytes = (uint64_t)(p->lexer.end - p->token.start);
  e.most = splat ? 1 : wanted;
  if (!splat && !parser_is(p, '>') && bytes / 8 > text_bytes && p->token.kind != TOKEN_STRING)
    return weft_mlir_fail(p, "there are fewer elements than the type has");
  uint64_t room = p->token.kind == TOKEN_STRING ? 8 * text_bytes : e.most * e.bytes;
  e.data = malloc(room + 8);
  if (!e.data) return parser_memory(p);
  bool ok;
  if (parser_is(p, '>'))
    ok = wanted == 0 || weft_mlir_fail(p, "expected elements");
  else if (list && type->rank)
    ok = put_list(p, &e, type->extents, type->rank);
  else if (p->token.kind == TOKEN_STRING)
    ok = put_hex(p, &e, wanted, &splat);
  else
    ok = put_element(p, &e);
  if (ok) ok = parser_need(p, '>', "after the elements");
  if (ok) {
    splat = wanted > 1 && (splat || all_equal(&e, wanted));
    weft_mlir_attribute shape = {.kind = WEFT_MLIR_DENSE, .type = type};
    shape.as.dense.data = e.data;
    shape.as.dense.elements = splat ? 1 : wanted;
    shape.as.dense.element_bytes = e.bytes;
    shape.as.dense.splat = splat;
    *attribute = weft_mlir_attribute_get(p->context, &shape);
    ok = *attribute || parser_memory(p);
  }
  free(e.data);
  return ok;
}

bool parser_dense(weft_mlir_parser *p, const weft_mlir_attribute **attribute) {
  parser_advance(p);
  if (!parser_is(p, '<')) return weft_mlir_fail(p, "expected '<' after dense");
  lexer body = p->lexer;
  const char *skipped;
  const weft_mlir_type *type;
  if (!parser_angle_skip(p, &skipped) || !parser_need(p, ':', "and a type after the elements") ||
      !parser_type(p, &type))
    return false;
  if (type->kind != WEFT_MLIR_TENSOR_TYPE && type->kind != WEFT_MLIR_VECTOR_TYPE && type->kind != WEFT_MLIR_MEMREF_TYPE)
    return weft_mlir_fail(p, "dense elements need a tensor or vector type");
  lexer after = p->lexer;
  token next = p->token;
  p->lexer = body;
  parser_advance(p);
  if (!put_body(p, type, attribute)) return false;
  p->lexer = after;
  p->token = next;
  return true;
}

bool parser_dense_array(weft_mlir_parser *p, const weft_mlir_attribute **attribute) {
  weft_mlir_attribute shape = {.kind = WEFT_MLIR_DENSE_ARRAY};
  parser_advance(p);
  if (!parser_need(p, '<', "after array") || !parser_type(p, &shape.type)) return false;
  elements e = {.type = shape.type, .bytes = element_bytes(shape.type)};
  bool scalar = shape.type->kind == WEFT_MLIR_INTEGER_TYPE || shape.type->kind == WEFT_MLIR_FLOAT_TYPE;
  if (!e.bytes || !scalar || (shape.type->width != 1 && shape.type->width % 8))
    return weft_mlir_fail(p, "array elements are integers or floats of whole bytes");
  uint64_t capacity = 0;
  if (parser_take(p, ':')) do {
      if (!weft_arena_grow(p->scratch, &e.data, e.count, &capacity, e.bytes)) return parser_memory(p);
      e.most = capacity;
      if (!put_element(p, &e)) return false;
    } while (parser_take(p, ','));
  if (!parser_need(p, '>', "after the elements")) return false;
  shape.as.dense.data = e.data ? e.data : "";
  shape.as.dense.elements = e.count;
  shape.as.dense.element_bytes = e.bytes;
  *attribute = weft_mlir_attribute_get(p->context, &shape);
  return *attribute || parser_memory(p);
}
