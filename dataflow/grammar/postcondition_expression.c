/* Expressions of a postcondition, by descent: implies, or, and, not, one comparison, sums, postfixes. Every name is
 * resolved to a slot here, so that evaluation meets no unknown name. */
#include "postcondition_private.h"

#include <string.h>

static const char *const member_names[] = {
#define MEMBER(identifier, name) name,
    MEMBERS(MEMBER)
#undef MEMBER
};

const char *postcondition_member_name(member which) { return member_names[which]; }

static const char *const reserved[] = {"let",     "assert",      "forall",  "exists",  "none",  "seq",
                                       "set",     "where",       "in",      "and",     "or",    "not",
                                       "implies", "contains",    "some",    "matches", "input", "output",
                                       "sum",     "cardinality", "resolve", "true",    "false", "constraints"};

/* ---- names ---------------------------------------------------------------------------------------------------- */

bool postcondition_bind(postcondition_parser *p, const char *name, position at, bool global, uint32_t *slot) {
  for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
    if (strcmp(name, reserved[i]) == 0) return language_fail(&p->x, at, NULL, "`%s` cannot be a name", name);
  uint64_t slots = p->result->slot_count;
  if (!weft_arena_grow(p->x.arena, &p->scope, p->scope_count, &p->scope_capacity, sizeof *p->scope) ||
      !weft_arena_grow(p->x.arena, &p->global, slots, &p->global_capacity, sizeof *p->global) ||
      !weft_arena_grow(p->x.arena, &p->inside, slots, &p->inside_capacity, sizeof *p->inside))
    return language_no_memory(&p->x);
  p->global[slots] = global;
  p->inside[slots] = 0;
  p->scope[p->scope_count++] = (scope_entry){.name = name, .slot = (uint32_t)slots, .open = true};
  *slot = p->result->slot_count++;
  return true;
}

static bool find_name(postcondition_parser *p, const char *name, position at, uint32_t *slot) {
  for (uint64_t i = p->scope_count; i-- > 0;) {
    const scope_entry *entry = &p->scope[i];
    if (!entry->open || strcmp(entry->name, name) != 0) continue;
    *slot = entry->slot;
    return true;
  }
  const char **names = WEFT_NEW_ARRAY(p->x.arena, const char *, p->scope_count);
  if (!names) return language_no_memory(&p->x);
  for (uint64_t i = 0; i < p->scope_count; i++) names[i] = p->scope[i].name;
  const char *hint = language_nearest_hint(p->x.arena, name, names, p->scope_count);
  return language_fail(&p->x, at, hint, "`%s` is not bound here", name);
}

/* ---- nodes ---------------------------------------------------------------------------------------------------- */

static bool make(postcondition_parser *p, node shape, node *const *parts, uint32_t count, node **result) {
  node *n = WEFT_NEW(p->x.arena, node);
  const node **copy = WEFT_NEW_ARRAY(p->x.arena, const node *, count);
  if (!n || !copy) return language_no_memory(&p->x);
  *n = shape;
  n->parts = copy;
  n->count = count;
  for (uint32_t i = 0; i < count; i++) {
    copy[i] = parts[i];
    if (parts[i] && parts[i]->depth >= n->depth) n->depth = parts[i]->depth + 1;
  }
  if (n->depth > LEXER_MAX_DEPTH)
    return language_fail(&p->x, shape.at, NULL, "an expression of more than %d levels", LEXER_MAX_DEPTH);
  *result = n;
  return (n->kind != NODE_EXISTS && n->kind != NODE_NONE) || postcondition_plan_join(p, n);
}

/* seq { element | v in source where condition }: the name of v stands behind the element that mentions it, so it is
 * looked for first. */
static bool find_variable(postcondition_parser *p, const char **name, position *at) {
  lexer ahead = p->x;
  ahead.skims = true;
  unsigned open = 0;
  for (; ahead.token.kind != TOKEN_END; language_next(&ahead)) {
    if (ahead.status) break;
    if (!open && language_at(&ahead, "|")) {
      *at = ahead.token.at;
      if (!language_next(&ahead)) break;
      if (!language_word(&ahead, "a variable after `|`", name)) break;
      return true;
    }
    if (language_at(&ahead, "{") || language_at(&ahead, "(") || language_at(&ahead, "[")) open++;
    if (language_at(&ahead, "}") || language_at(&ahead, ")") || language_at(&ahead, "]")) {
      if (!open) break;
      open--;
    }
  }
  p->x.status = ahead.status;
  return language_fail(&p->x, ahead.token.at, "seq { element | variable in source where condition }", "expected `|`");
}

static bool parse_where(postcondition_parser *p, node **condition) {
  *condition = NULL;
  return !language_try(&p->x, "where") ? !p->x.status : postcondition_parse_expression(p, condition);
}

static bool parse_comprehension(postcondition_parser *p, node_kind kind, position at, node **result) {
  lexer *x = &p->x;
  const char *name;
  position name_at;
  uint32_t slot;
  uint64_t height = p->scope_count;
  node *parts[3];
  if (!language_expect(x, "{", NULL) || !find_variable(p, &name, &name_at) ||
      !postcondition_bind(p, name, name_at, false, &slot) || !postcondition_parse_expression(p, &parts[1]) ||
      !language_expect(x, "|", "after the element") || !language_word(x, "a variable", &name))
    return false;
  p->scope[height].open = false;
  if (!language_expect(x, "in", "after a variable") || !postcondition_parse_operand(p, &parts[0])) return false;
  p->scope[height].open = true;
  if (!parse_where(p, &parts[2]) || !language_expect(x, "}", "after a set or sequence")) return false;
  p->scope_count = height;
  return make(p, (node){.kind = kind, .at = at, .slot = slot}, parts, 3, result);
}

static bool parse_quantifier(postcondition_parser *p, node_kind kind, position at, node **result) {
  lexer *x = &p->x;
  const char *name;
  position name_at = x->token.at;
  uint32_t slot;
  uint64_t height = p->scope_count;
  node *parts[2];
  if (!language_word(x, "a variable", &name) || !language_expect(x, "in", "after a variable") ||
      !postcondition_parse_operand(p, &parts[0]) || !postcondition_bind(p, name, name_at, false, &slot) ||
      !parse_where(p, &parts[1]))
    return false;
  p->scope_count = height;
  return make(p, (node){.kind = kind, .at = at, .slot = slot}, parts, 2, result);
}

/* ---- primaries ------------------------------------------------------------------------------------------------ */

static bool parse_call(postcondition_parser *p, node_kind kind, uint32_t arguments, position at, node **result) {
  node *parts[2];
  if (!language_expect(&p->x, "(", NULL)) return false;
  for (uint32_t i = 0; i < arguments; i++)
    if ((i && !language_expect(&p->x, ",", "between arguments")) || !postcondition_parse_expression(p, &parts[i]))
      return false;
  return language_expect(&p->x, ")", "after the arguments") &&
         make(p, (node){.kind = kind, .at = at}, parts, arguments, result);
}

/* alias::name, behind the alias. */
static bool parse_type(postcondition_parser *p, const char *alias, position at, node **result) {
  weft_postcondition *r = p->result;
  bool known = false;
  for (uint64_t i = 0; i < p->alias_count; i++) known = known || strcmp(p->aliases[i], alias) == 0;
  if (!known)
    return language_fail(&p->x, at, "vocabulary NAME = mlir.generic@1;", "there is no vocabulary `%s`", alias);
  type_constant one = {.at = p->x.token.at};
  if (!language_word(&p->x, "a type", &one.name)) return false;
  if (!weft_arena_grow(p->x.arena, &r->types, r->type_count, &r->type_capacity, sizeof one))
    return language_no_memory(&p->x);
  r->types[r->type_count] = one;
  return make(p, (node){.kind = NODE_TYPE, .at = at, .integer = (int64_t)r->type_count++}, NULL, 0, result);
}

static bool parse_name(postcondition_parser *p, position at, node **result) {
  const char *name;
  if (!language_word(&p->x, "an expression", &name)) return false;
  if (language_try(&p->x, "::")) return parse_type(p, name, at, result);
  node shape = {.kind = NODE_VARIABLE, .at = at};
  return find_name(p, name, at, &shape.slot) && make(p, shape, NULL, 0, result);
}

static bool parse_side(postcondition_parser *p, position at, bool output, node **result) {
  if (!output) p->result->uses_input = true;
  return make(p, (node){.kind = NODE_SIDE, .at = at, .integer = output}, NULL, 0, result);
}

static bool parse_literal(postcondition_parser *p, node **result) {
  const token t = p->x.token;
  node shape = {.kind = NODE_INTEGER, .at = t.at, .integer = t.integer};
  if (t.kind == TOKEN_TEXT) {
    shape.kind = NODE_TEXT;
    shape.text = t.text;
    shape.length = t.text_length;
  }
  return language_next(&p->x) && make(p, shape, NULL, 0, result);
}

typedef struct call_row {
  const char *name;
  node_kind kind;
  uint32_t arguments;
} call_row;

static const call_row calls[] = {
    {"cardinality", NODE_CARDINALITY, 1}, {"sum", NODE_SUM, 1}, {"resolve", NODE_RESOLVE, 2}, {0}};

static bool parse_primary(postcondition_parser *p, node **result) {
  lexer *x = &p->x;
  position at = x->token.at;
  if (x->token.kind == TOKEN_INTEGER || x->token.kind == TOKEN_TEXT) return parse_literal(p, result);
  if (language_try(x, "("))
    return postcondition_parse_expression(p, result) && language_expect(x, ")", "after an expression");
  if (language_try(x, "seq")) return parse_comprehension(p, NODE_SEQ, at, result);
  if (language_try(x, "set")) return parse_comprehension(p, NODE_SET, at, result);
  if (language_try(x, "input")) return parse_side(p, at, false, result);
  if (language_try(x, "output")) return parse_side(p, at, true, result);
  if (language_try(x, "true")) return make(p, (node){.kind = NODE_BOOL, .at = at, .integer = 1}, NULL, 0, result);
  if (language_try(x, "false")) return make(p, (node){.kind = NODE_BOOL, .at = at}, NULL, 0, result);
  for (const call_row *row = calls; row->name; row++)
    if (language_try(x, row->name)) return parse_call(p, row->kind, row->arguments, at, result);
  return parse_name(p, at, result);
}

/* ---- postfixes ------------------------------------------------------------------------------------------------ */

static bool parse_member(postcondition_parser *p, position at, node **result) {
  node *parts[3] = {*result};
  static const struct {
    const char *name;
    node_kind kind;
    uint32_t arguments;
  } methods[] = {{"drop", NODE_DROP, 1},
                 {"attribute", NODE_ATTRIBUTE, 1},
                 {"has_attribute", NODE_HAS_ATTRIBUTE, 1},
                 {"segment", NODE_SEGMENT, 2}};
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
    if (!language_try(&p->x, methods[i].name)) continue;
    if (!language_expect(&p->x, "(", NULL)) return false;
    for (uint32_t k = 0; k < methods[i].arguments; k++)
      if ((k && !language_expect(&p->x, ",", "between arguments")) || !postcondition_parse_expression(p, &parts[k + 1]))
        return false;
    return language_expect(&p->x, ")", "after the arguments") &&
           make(p, (node){.kind = methods[i].kind, .at = at}, parts, methods[i].arguments + 1, result);
  }
  const char *name;
  position name_at = p->x.token.at;
  if (!language_word(&p->x, "a member", &name)) return false;
  for (member m = 0; m < MEMBER_COUNT; m++)
    if (strcmp(member_names[m], name) == 0)
      return make(p, (node){.kind = NODE_MEMBER, .at = at, .integer = (int64_t)m}, parts, 1, result);
  return language_fail(&p->x, name_at, language_nearest_hint(p->x.arena, name, member_names, MEMBER_COUNT),
                       "there is no member `%s`", name);
}

static bool parse_postfix(postcondition_parser *p, node **result) {
  if (!parse_primary(p, result)) return false;
  for (;;) {
    position at = p->x.token.at;
    if (language_try(&p->x, ".")) {
      if (!parse_member(p, at, result)) return false;
    } else if (language_try(&p->x, "[")) {
      node *parts[2] = {*result};
      if (!postcondition_parse_expression(p, &parts[1]) || !language_expect(&p->x, "]", "after an index") ||
          !make(p, (node){.kind = NODE_INDEX, .at = at}, parts, 2, result))
        return false;
    } else {
      return !p->x.status;
    }
  }
}

/* ---- operators ------------------------------------------------------------------------------------------------ */

bool postcondition_parse_operand(postcondition_parser *p, node **result) {
  if (!parse_postfix(p, result)) return false;
  while (language_at(&p->x, "+") || language_at(&p->x, "-")) {
    node shape = {.kind = language_at(&p->x, "+") ? NODE_ADD : NODE_SUBTRACT, .at = p->x.token.at};
    node *parts[2] = {*result};
    if (!language_next(&p->x) || !parse_postfix(p, &parts[1]) || !make(p, shape, parts, 2, result)) return false;
  }
  return !p->x.status;
}

static bool parse_matches(postcondition_parser *p, position at, node **result) {
  lexer *x = &p->x;
  node *parts[1] = {*result};
  if (language_try(x, "none")) return make(p, (node){.kind = NODE_MATCHES_NONE, .at = at}, parts, 1, result);
  if (!language_try(x, "some")) return language_expected(x, "some($name) or none");
  if (!language_expect(x, "(", NULL)) return false;
  const token t = x->token;
  if (t.kind != TOKEN_DOLLAR) return language_expected(x, "$name");
  const char *name = weft_arena_string(x->arena, t.start, t.length);
  if (!name) return language_no_memory(x);
  node shape = {.kind = NODE_MATCHES_SOME, .at = at};
  return language_next(x) && language_expect(x, ")", "after $name") &&
         postcondition_bind(p, name, t.at, false, &shape.slot) && make(p, shape, parts, 1, result);
}

typedef struct operator_row {
  const char *spelling;
  node_kind kind;
} operator_row;

static const operator_row comparisons[] = {{"==", NODE_EQUAL},
                                           {"!=", NODE_UNEQUAL},
                                           {"<=", NODE_AT_MOST},
                                           {">=", NODE_AT_LEAST},
                                           {"<", NODE_LESS},
                                           {">", NODE_GREATER},
                                           {"in", NODE_IN},
                                           {"contains", NODE_CONTAINS},
                                           {0}};

static bool parse_comparison(postcondition_parser *p, node **result) {
  position at = p->x.token.at;
  if (language_try(&p->x, "exists")) return parse_quantifier(p, NODE_EXISTS, at, result);
  if (language_try(&p->x, "none")) return parse_quantifier(p, NODE_NONE, at, result);
  if (!postcondition_parse_operand(p, result)) return false;
  at = p->x.token.at;
  if (language_try(&p->x, "matches")) return parse_matches(p, at, result);
  for (const operator_row *row = comparisons; row->spelling; row++) {
    if (!language_try(&p->x, row->spelling)) continue;
    node *parts[2] = {*result};
    return postcondition_parse_operand(p, &parts[1]) && make(p, (node){.kind = row->kind, .at = at}, parts, 2, result);
  }
  return !p->x.status;
}

static bool parse_not(postcondition_parser *p, node **result) {
  position at = p->x.token.at;
  if (!language_try(&p->x, "not")) return parse_comparison(p, result);
  node *inner;
  uint64_t height = p->scope_count;
  if (!language_enter(&p->x) || !parse_not(p, &inner)) return false;
  language_leave(&p->x);
  p->scope_count = height; /* what a denied `matches` would bind is not there */
  return make(p, (node){.kind = NODE_NOT, .at = at}, &inner, 1, result);
}

/* One part of a conjunction, which remembers its spelling for messages. */
static bool parse_part(postcondition_parser *p, node **result) {
  const char *start = p->x.token.start - (p->x.token.kind == TOKEN_DOLLAR);
  if (!parse_not(p, result)) return false;
  const char *end = p->x.token.start;
  while (end > start && (end[-1] == ' ' || end[-1] == '\n' || end[-1] == '\t' || end[-1] == '\r')) end--;
  (*result)->source = start;
  (*result)->source_length = (size_t)(end - start);
  return true;
}

static bool parse_and(postcondition_parser *p, node **result) {
  uint64_t height = p->scope_count;
  if (!parse_part(p, result)) return false;
  for (position at = p->x.token.at; language_try(&p->x, "and"); at = p->x.token.at) {
    node *parts[2] = {*result};
    if (!parse_part(p, &parts[1]) || !make(p, (node){.kind = NODE_AND, .at = at}, parts, 2, result)) return false;
  }
  p->scope_count = height;
  return !p->x.status;
}

static bool parse_or(postcondition_parser *p, node **result) {
  if (!parse_and(p, result)) return false;
  for (position at = p->x.token.at; language_try(&p->x, "or"); at = p->x.token.at) {
    node *parts[2] = {*result};
    if (!parse_and(p, &parts[1]) || !make(p, (node){.kind = NODE_OR, .at = at}, parts, 2, result)) return false;
  }
  return !p->x.status;
}

static bool parse_implies(postcondition_parser *p, node **result) {
  if (!parse_or(p, result)) return false;
  position at = p->x.token.at;
  if (!language_try(&p->x, "implies")) return !p->x.status;
  node *parts[2] = {*result};
  return postcondition_parse_expression(p, &parts[1]) &&
         make(p, (node){.kind = NODE_IMPLIES, .at = at}, parts, 2, result);
}

bool postcondition_parse_expression(postcondition_parser *p, node **result) {
  if (!language_enter(&p->x) || !parse_implies(p, result)) return false;
  language_leave(&p->x);
  return true;
}
