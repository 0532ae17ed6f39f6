/* Expressions of a grammar, by descent: or, and, not, one comparison, sums, products, signs. */
#include "grammar_private.h"

#include <string.h>

typedef struct operator_row {
  const char *spelling;
  expression_kind kind;
} operator_row;

static const operator_row comparisons[] = {{"==", EXPRESSION_EQUAL},
                                           {"!=", EXPRESSION_UNEQUAL},
                                           {"<=", EXPRESSION_AT_MOST},
                                           {">=", EXPRESSION_AT_LEAST},
                                           {"<", EXPRESSION_LESS},
                                           {">", EXPRESSION_GREATER},
                                           {0}};
static const operator_row sums[] = {{"+", EXPRESSION_ADD}, {"-", EXPRESSION_SUBTRACT}, {0}};
static const operator_row products[] = {{"*", EXPRESSION_MULTIPLY}, {0}};
static const operator_row conjunctions[] = {{"and", EXPRESSION_AND}, {0}};
static const operator_row disjunctions[] = {{"or", EXPRESSION_OR}, {0}};

static const operator_row *operator_at(const lexer *x, const operator_row *rows) {
  for (; rows->spelling; rows++)
    if (language_at(x, rows->spelling)) return rows;
  return NULL;
}

static bool make(grammar_parser *p, expression_kind kind, position at, const expression *const *parts, uint64_t count,
                 const expression **result) {
  expression *e = WEFT_NEW(p->x.arena, expression);
  const expression **copy = WEFT_NEW_ARRAY(p->x.arena, const expression *, count);
  if (!e || !copy) return language_no_memory(&p->x);
  if (count) memcpy(copy, parts, count * sizeof *copy);
  *e = (expression){.kind = kind, .at = at, .parts = copy, .count = (uint32_t)count};
  for (uint64_t i = 0; i < count; i++)
    if (parts[i]->depth >= e->depth) e->depth = parts[i]->depth + 1;
  if (e->depth > LEXER_MAX_DEPTH)
    return language_fail(&p->x, at, NULL, "an expression of more than %d levels", LEXER_MAX_DEPTH);
  *result = e;
  return true;
}

static bool parse_list(grammar_parser *p, position at, expression_kind kind, const expression **result) {
  const expression **parts = NULL;
  uint64_t count = 0, capacity = 0;
  do {
    if (!weft_arena_grow(p->x.arena, &parts, count, &capacity, sizeof *parts)) return language_no_memory(&p->x);
    if (!grammar_parse_expression(p, &parts[count])) return false;
    count++;
  } while (language_try(&p->x, ","));
  return make(p, kind, at, parts, count, result);
}

/* What follows `random`. */
static bool parse_random(grammar_parser *p, position at, const expression **result) {
  lexer *x = &p->x;
  if (!language_expect(x, ".", "after random")) return false;
  if (language_try(x, "randint")) {
    if (!language_expect(x, "(", NULL) || !parse_list(p, at, EXPRESSION_RANDINT, result)) return false;
    if ((*result)->count != 2)
      return language_fail(x, at, "random.randint(1, 6) draws one of 1 to 6", "random.randint needs two bounds, not %u",
                           (*result)->count);
    return language_expect(x, ")", NULL);
  }
  if (!language_try(x, "choice")) return language_expected(x, "randint or choice");
  return language_expect(x, "(", NULL) && language_expect(x, "[", NULL) &&
         parse_list(p, at, EXPRESSION_CHOICE, result) && language_expect(x, "]", NULL) && language_expect(x, ")", NULL);
}

static bool parse_str(grammar_parser *p, position at, const expression **result) {
  const expression *inner;
  return language_expect(&p->x, "(", "after str") && grammar_parse_expression(p, &inner) &&
         language_expect(&p->x, ")", NULL) && make(p, EXPRESSION_STR, at, &inner, 1, result);
}

static bool parse_leaf(grammar_parser *p, const expression **result) {
  const token t = p->x.token;
  expression *e = WEFT_NEW(p->x.arena, expression);
  if (!e) return language_no_memory(&p->x);
  *result = e;
  e->at = t.at;
  if (t.kind == TOKEN_INTEGER) {
    e->kind = EXPRESSION_INTEGER;
    e->integer = t.integer;
    return language_next(&p->x);
  }
  if (t.kind == TOKEN_TEXT) {
    e->kind = EXPRESSION_TEXT;
    e->text = t.text;
    e->length = t.text_length;
    return language_next(&p->x);
  }
  const char *name;
  e->kind = EXPRESSION_VARIABLE;
  return language_word(&p->x, "an expression", &name) && grammar_variable(p, name, t.at, &e->variable);
}

static bool parse_primary(grammar_parser *p, const expression **result) {
  position at = p->x.token.at;
  if (language_try(&p->x, "("))
    return grammar_parse_expression(p, result) && language_expect(&p->x, ")", "after an expression");
  if (language_try(&p->x, "str")) return parse_str(p, at, result);
  if (language_try(&p->x, "random")) return parse_random(p, at, result);
  return parse_leaf(p, result);
}

static bool parse_signed(grammar_parser *p, const expression **result) {
  position at = p->x.token.at;
  if (!language_try(&p->x, "-")) return parse_primary(p, result);
  const expression *inner;
  if (!language_enter(&p->x) || !parse_signed(p, &inner)) return false;
  language_leave(&p->x);
  return make(p, EXPRESSION_NEGATE, at, &inner, 1, result);
}

/* Operands of one level with the operators of `rows` between them, from the left. */
static bool parse_chain(grammar_parser *p, const operator_row *rows,
                        bool (*operand)(grammar_parser *, const expression **), const expression **result) {
  if (!operand(p, result)) return false;
  for (const operator_row *row; (row = operator_at(&p->x, rows)) != NULL;) {
    position at = p->x.token.at;
    const expression *parts[2] = {*result};
    if (!language_next(&p->x) || !operand(p, &parts[1]) || !make(p, row->kind, at, parts, 2, result)) return false;
  }
  return true;
}

static bool parse_product(grammar_parser *p, const expression **result) {
  return parse_chain(p, products, parse_signed, result);
}

static bool parse_sum(grammar_parser *p, const expression **result) {
  return parse_chain(p, sums, parse_product, result);
}

static bool parse_comparison(grammar_parser *p, const expression **result) {
  if (!parse_sum(p, result)) return false;
  const operator_row *row = operator_at(&p->x, comparisons);
  if (!row) return true;
  position at = p->x.token.at;
  const expression *parts[2] = {*result};
  if (!language_next(&p->x) || !parse_sum(p, &parts[1]) || !make(p, row->kind, at, parts, 2, result)) return false;
  if (operator_at(&p->x, comparisons))
    return language_fail(&p->x, p->x.token.at, "write a < b and b < c", "comparisons do not chain");
  return true;
}

static bool parse_not(grammar_parser *p, const expression **result) {
  position at = p->x.token.at;
  if (!language_try(&p->x, "not")) return parse_comparison(p, result);
  const expression *inner;
  if (!language_enter(&p->x) || !parse_not(p, &inner)) return false;
  language_leave(&p->x);
  return make(p, EXPRESSION_NOT, at, &inner, 1, result);
}

static bool parse_and(grammar_parser *p, const expression **result) {
  return parse_chain(p, conjunctions, parse_not, result);
}

bool grammar_parse_expression(grammar_parser *p, const expression **result) {
  if (!language_enter(&p->x) || !parse_chain(p, disjunctions, parse_and, result)) return false;
  language_leave(&p->x);
  return true;
}
