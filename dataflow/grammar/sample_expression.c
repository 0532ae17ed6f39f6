/* Values of a grammar's expressions, operands from left to right. */
#include "sample_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool sampler_fail(sampler *s, position at, const char *hint, const char *format, ...) {
  if (s->status) return false;
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  s->status = weft_error_at(s->diag, WEFT_INVALID, language_place(s->grammar->file, at), hint, "%s", message);
  return false;
}

bool sampler_no_memory(sampler *s) {
  if (!s->status) s->status = weft_error_memory(s->diag);
  return false;
}

bool sampler_work(sampler *s, position at, uint64_t amount) {
  s->work += amount;
  return s->work <= WEFT_GRAMMAR_MAX_WORK ||
         sampler_fail(s, at, "a guard must stop the rules that come back to themselves",
                      "the text takes more than %" PRIu64 " steps", WEFT_GRAMMAR_MAX_WORK);
}

uint64_t sampler_draw(sampler *s, uint64_t count) {
  if (!count) return weft_random_next(&s->random);
  uint64_t surplus = (UINT64_MAX % count + 1) % count; /* 2^64 mod count: these many numbers would be drawn too often */
  uint64_t number;
  do number = weft_random_next(&s->random);
  while (number < surplus);
  return number % count;
}

static scalar integer_value(int64_t integer) { return (scalar){.integer = integer}; }

/* Room for a text value of `length` bytes. */
static char *text_room(sampler *s, position at, size_t length) {
  if (length > TEXT_VALUE_MOST || s->text_bytes + length > TEXT_VALUES_MOST) {
    sampler_fail(s, at, NULL, "texts of expressions grow beyond all bounds");
    return NULL;
  }
  s->text_bytes += length + 16;
  char *room = weft_arena_alloc(s->arena, length + 1);
  if (!room) sampler_no_memory(s);
  return room;
}

static bool overflowed(sampler *s, position at) {
  return sampler_fail(s, at, NULL, "the result does not fit in 64 bits");
}

bool sampler_add(sampler *s, position at, scalar a, scalar b, scalar *result) {
  if (!a.text != !b.text)
    return sampler_fail(s, at, "str(X) makes a text of a number", "a text and a number are added");
  *result = (scalar){0};
  if (!a.text) return !__builtin_add_overflow(a.integer, b.integer, &result->integer) || overflowed(s, at);
  char *room = text_room(s, at, a.length + b.length);
  if (!room) return false;
  memcpy(room, a.text, a.length);
  memcpy(room + a.length, b.text, b.length);
  *result = (scalar){.text = room, .length = a.length + b.length};
  return true;
}

static bool need_integer(sampler *s, position at, scalar value) {
  return !value.text || sampler_fail(s, at, NULL, "a number is needed here, and this is a text");
}

static bool arithmetic(sampler *s, const expression *e, scalar a, scalar b, scalar *result) {
  if (!need_integer(s, e->at, a) || !need_integer(s, e->at, b)) return false;
  *result = (scalar){0};
  bool left = e->kind == EXPRESSION_SUBTRACT ? __builtin_sub_overflow(a.integer, b.integer, &result->integer)
                                             : __builtin_mul_overflow(a.integer, b.integer, &result->integer);
  return !left || overflowed(s, e->at);
}

/* -1, 0 or 1; texts compare byte by byte. */
static int order(scalar a, scalar b) {
  if (!a.text) return (a.integer > b.integer) - (a.integer < b.integer);
  int bytes = memcmp(a.text, b.text, a.length < b.length ? a.length : b.length);
  if (bytes) return bytes < 0 ? -1 : 1;
  return (a.length > b.length) - (a.length < b.length);
}

static bool compare(sampler *s, const expression *e, scalar a, scalar b, scalar *result) {
  if (!a.text != !b.text)
    return sampler_fail(s, e->at, "str(X) makes a text of a number", "a text is compared with a number");
  int sign = order(a, b);
  bool holds = e->kind == EXPRESSION_EQUAL     ? sign == 0
               : e->kind == EXPRESSION_UNEQUAL ? sign != 0
               : e->kind == EXPRESSION_LESS    ? sign < 0
               : e->kind == EXPRESSION_AT_MOST ? sign <= 0
               : e->kind == EXPRESSION_GREATER ? sign > 0
                                               : sign >= 0;
  *result = integer_value(holds);
  return true;
}

static bool str(sampler *s, const expression *e, scalar value, scalar *result) {
  *result = value;
  if (value.text) return true;
  char digits[24];
  int length = snprintf(digits, sizeof digits, "%" PRId64, value.integer);
  char *room = text_room(s, e->at, (size_t)length);
  if (!room) return false;
  memcpy(room, digits, (size_t)length);
  *result = (scalar){.text = room, .length = (size_t)length};
  return true;
}

static bool randint(sampler *s, const expression *e, scalar a, scalar b, scalar *result) {
  if (!need_integer(s, e->at, a) || !need_integer(s, e->at, b)) return false;
  if (a.integer > b.integer)
    return sampler_fail(s, e->at, NULL, "random.randint(%" PRId64 ", %" PRId64 ") has nothing to draw from", a.integer,
                        b.integer);
  uint64_t count = (uint64_t)b.integer - (uint64_t)a.integer + 1;
  *result = integer_value((int64_t)((uint64_t)a.integer + sampler_draw(s, count)));
  return true;
}

static bool choice(sampler *s, const expression *e, scalar *result) {
  uint64_t mark = s->bound; /* the items wait on the stack of bindings, above all variables */
  for (uint32_t i = 0; i < e->count; i++) {
    scalar value;
    if (!sampler_evaluate(s, e->parts[i], &value)) return false;
    if (!weft_arena_grow(s->arena, &s->bindings, s->bound, &s->binding_capacity, sizeof *s->bindings))
      return sampler_no_memory(s);
    s->bindings[s->bound++].value = value;
  }
  s->bound = mark;
  *result = s->bindings[mark + sampler_draw(s, e->count)].value;
  return true;
}

static bool variable(sampler *s, const expression *e, scalar *result) {
  uint64_t number = s->current[e->variable];
  if (!number)
    return sampler_fail(s, e->at, "its `new` must stand in this rule or in one that leads here",
                        "`%s` is not bound here", s->grammar->variable_names.names[e->variable]);
  *result = s->bindings[number - 1].value;
  return true;
}

/* `and` and `or` stop at the operand that decides; true is 1. */
static bool logic(sampler *s, const expression *e, scalar *result) {
  bool value;
  if (!sampler_test(s, e->parts[0], &value)) return false;
  if (value == (e->kind == EXPRESSION_AND) && !sampler_test(s, e->parts[1], &value)) return false;
  *result = integer_value(value);
  return true;
}

bool sampler_test(sampler *s, const expression *e, bool *result) {
  scalar value;
  if (!sampler_evaluate(s, e, &value)) return false;
  *result = value.text ? value.length != 0 : value.integer != 0;
  return true;
}

static bool negate(sampler *s, const expression *e, scalar value, scalar *result) {
  if (!need_integer(s, e->at, value)) return false;
  *result = (scalar){0};
  return !__builtin_sub_overflow(0, value.integer, &result->integer) || overflowed(s, e->at);
}

static bool evaluate_unary(sampler *s, const expression *e, scalar *result) {
  scalar value;
  if (e->kind == EXPRESSION_NOT) {
    bool open;
    if (!sampler_test(s, e->parts[0], &open)) return false;
    *result = integer_value(!open);
    return true;
  }
  if (!sampler_evaluate(s, e->parts[0], &value)) return false;
  return e->kind == EXPRESSION_STR ? str(s, e, value, result) : negate(s, e, value, result);
}

static bool evaluate_binary(sampler *s, const expression *e, scalar *result) {
  if (e->kind == EXPRESSION_AND || e->kind == EXPRESSION_OR) return logic(s, e, result);
  scalar a, b;
  if (!sampler_evaluate(s, e->parts[0], &a) || !sampler_evaluate(s, e->parts[1], &b)) return false;
  if (e->kind == EXPRESSION_ADD) return sampler_add(s, e->at, a, b, result);
  if (e->kind == EXPRESSION_RANDINT) return randint(s, e, a, b, result);
  if (e->kind == EXPRESSION_SUBTRACT || e->kind == EXPRESSION_MULTIPLY) return arithmetic(s, e, a, b, result);
  return compare(s, e, a, b, result);
}

bool sampler_evaluate(sampler *s, const expression *e, scalar *result) {
  if (!sampler_work(s, e->at, 1)) return false;
  switch (e->kind) {
  case EXPRESSION_INTEGER: *result = integer_value(e->integer); return true;
  case EXPRESSION_TEXT: *result = (scalar){.text = e->text, .length = e->length}; return true;
  case EXPRESSION_VARIABLE: return variable(s, e, result);
  case EXPRESSION_CHOICE: return choice(s, e, result);
  case EXPRESSION_NEGATE:
  case EXPRESSION_NOT:
  case EXPRESSION_STR: return evaluate_unary(s, e, result);
  default: return evaluate_binary(s, e, result);
  }
}
