/* Reading a grammar: rules, alternatives, items. */
#include "grammar_private.h"

#include <stdlib.h>
#include <string.h>

static const char *const marks[] = {"==", "!=", "<=", ">=", "+=", "<", ">", "+", "-", "*", "=", ":",
                                    ";",  "|",  "(",  ")",  "[",  "]", "{", "}", ",", ".", NULL};

/* Words that an expression reads otherwise. */
static const char *const reserved[] = {"new", "str", "random", "and", "or", "not"};

bool grammar_variable(grammar_parser *p, const char *name, position at, uint32_t *number) {
  weft_grammar *g = p->grammar;
  for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
    if (strcmp(name, reserved[i]) == 0) return language_fail(&p->x, at, NULL, "`%s` cannot be a variable", name);
  uint64_t before = g->variable_names.count;
  *number = language_names_add(&g->variable_names, name, strlen(name));
  if (*number == NAME_NONE) return language_no_memory(&p->x);
  if (*number < before) return true;
  if (!weft_arena_grow(g->arena, &g->bound, before, &g->bound_capacity, sizeof *g->bound) ||
      !weft_arena_grow(g->arena, &g->used, before, &g->used_capacity, sizeof *g->used))
    return language_no_memory(&p->x);
  g->bound[before] = false;
  g->used[before] = at;
  return true;
}

/* The number of a rule that is mentioned or defined at `at`. */
static bool rule_number(grammar_parser *p, const char *name, position at, uint32_t *number) {
  weft_grammar *g = p->grammar;
  uint64_t before = g->rule_names.count;
  *number = language_names_add(&g->rule_names, name, strlen(name));
  if (*number == NAME_NONE) return language_no_memory(&p->x);
  if (*number < before) return true;
  if (!weft_arena_grow(g->arena, &g->rules, before, &g->rule_capacity, sizeof *g->rules))
    return language_no_memory(&p->x);
  g->rules[before] = (rule){.at = at, .cost = COST_NEVER};
  return true;
}

/* ---- items ---------------------------------------------------------------------------------------------------- */

typedef struct item_list {
  item *items;
  uint64_t count, capacity;
} item_list;

static bool add_item(grammar_parser *p, item_list *list, item one) {
  if (!weft_arena_grow(p->x.arena, &list->items, list->count, &list->capacity, sizeof one))
    return language_no_memory(&p->x);
  list->items[list->count++] = one;
  return true;
}

/* new X = e, or X += e. */
static bool parse_action(grammar_parser *p, item_list *list) {
  lexer *x = &p->x;
  item one = {.kind = language_try(x, "new") ? ITEM_NEW : ITEM_ADD};
  const char *name;
  one.at = x->token.at;
  if (!language_word(x, one.kind == ITEM_NEW ? "a variable" : "new or a variable", &name) ||
      !grammar_variable(p, name, one.at, &one.number))
    return false;
  if (one.kind == ITEM_NEW) p->grammar->bound[one.number] = true;
  return language_expect(x, one.kind == ITEM_NEW ? "=" : "+=", "after a variable") &&
         grammar_parse_expression(p, &one.value) && add_item(p, list, one);
}

static bool parse_actions(grammar_parser *p, item_list *list) {
  do {
    if (language_at(&p->x, "}")) break; /* a ; after the last one */
    if (!parse_action(p, list)) return false;
  } while (language_try(&p->x, ";"));
  return language_expect(&p->x, "}", "after an action");
}

static bool parse_print(grammar_parser *p, position at, item_list *list) {
  item one = {.kind = ITEM_PRINT, .at = at};
  return grammar_parse_expression(p, &one.value) && language_expect(&p->x, "]", "after an expression") &&
         add_item(p, list, one);
}

static bool parse_item(grammar_parser *p, item_list *list) {
  lexer *x = &p->x;
  const token t = x->token;
  if (t.kind == TOKEN_TEXT) {
    item one = {.kind = ITEM_TEXT, .at = t.at, .text = t.text, .length = t.text_length};
    return language_next(x) && add_item(p, list, one);
  }
  if (t.kind == TOKEN_WORD) {
    item one = {.kind = ITEM_RULE, .at = t.at};
    const char *name;
    if (!language_word(x, "a rule", &name)) return false;
    if (language_at(x, ":"))
      return language_fail(x, x->token.at, "a rule ends with `;`", "`%s:` begins a rule inside a rule", name);
    return rule_number(p, name, t.at, &one.number) && add_item(p, list, one);
  }
  if (language_try(x, "[")) return parse_print(p, t.at, list);
  if (language_try(x, "{")) return parse_actions(p, list);
  if (language_at(x, "("))
    return language_fail(x, t.at, "only an alternative's first item may be in parentheses: its guard",
                         "a guard inside an alternative");
  return language_expected(x, "a text, a rule, `[`, `{`, `|` or `;`");
}

/* ---- rules ---------------------------------------------------------------------------------------------------- */

static bool parse_alternative(grammar_parser *p, uint32_t number) {
  weft_grammar *g = p->grammar;
  lexer *x = &p->x;
  alternative one = {.rule = number, .at = x->token.at, .cost = COST_NEVER};
  item_list list = {0};
  if (language_try(x, "(") && (!grammar_parse_expression(p, &one.guard) || !language_expect(x, ")", "after a guard")))
    return false;
  while (!x->status && !language_at(x, "|") && !language_at(x, ";"))
    if (!parse_item(p, &list)) return false;
  one.items = list.items;
  one.item_count = list.count;
  if (!weft_arena_grow(g->arena, &g->alternatives, g->alternative_count, &g->alternative_capacity, sizeof one))
    return language_no_memory(x);
  g->alternatives[g->alternative_count++] = one;
  return !x->status;
}

static bool parse_rule(grammar_parser *p) {
  lexer *x = &p->x;
  weft_grammar *g = p->grammar;
  position at = x->token.at;
  const char *name;
  uint32_t number;
  if (!language_word(x, "a rule", &name) || !rule_number(p, name, at, &number)) return false;
  rule *r = &g->rules[number];
  if (r->count)
    return language_fail(x, at, "join its alternatives with |", "the rule `%s` is defined twice, first in line %u",
                         name, r->at.line);
  if (!language_expect(x, ":", "after the name of a rule")) return false;
  uint64_t first = g->alternative_count;
  do {
    if (!parse_alternative(p, number)) return false;
  } while (language_try(x, "|"));
  g->rules[number].first = first;
  g->rules[number].count = g->alternative_count - first;
  g->rules[number].at = at;
  return language_expect(x, ";", "after a rule");
}

static weft_grammar *grammar_new(const char *name) {
  weft_grammar *g = calloc(1, sizeof *g);
  if (!g) return NULL;
  g->arena = weft_arena_new();
  g->file = g->arena ? weft_arena_string(g->arena, name, strlen(name)) : NULL;
  g->rule_names.arena = g->variable_names.arena = g->arena;
  if (g->file) return g;
  weft_grammar_free(g);
  return NULL;
}

void weft_grammar_free(weft_grammar *grammar) {
  if (!grammar) return;
  weft_arena_free(grammar->arena);
  free(grammar);
}

weft_status weft_grammar_parse(const char *name, const char *text, size_t length, weft_grammar **grammar,
                               weft_diag *diag) {
  *grammar = NULL;
  weft_grammar *g = grammar_new(name);
  if (!g) return weft_error_memory(diag);
  grammar_parser p = {.grammar = g};
  p.x = (lexer){.arena = g->arena, .diag = diag, .file = g->file, .quote = '\'', .marks = marks};
  if (language_start(&p.x, text, length))
    while (!p.x.status && p.x.token.kind != TOKEN_END)
      if (!parse_rule(&p)) break;
  weft_status status = p.x.status ? p.x.status : grammar_check(g, diag);
  if (status)
    weft_grammar_free(g);
  else
    *grammar = g;
  return status;
}

weft_status weft_grammar_read(const char *path, weft_grammar **grammar, weft_diag *diag) {
  char *bytes;
  size_t length;
  *grammar = NULL;
  weft_status status = weft_read_file(path, &bytes, &length, diag);
  if (status) return status;
  status = weft_grammar_parse(path, bytes, length, grammar, diag);
  free(bytes);
  return status;
}

uint64_t weft_grammar_alternatives(const weft_grammar *grammar) { return grammar->alternative_count; }

weft_grammar_alternative weft_grammar_alternative_at(const weft_grammar *grammar, uint64_t number) {
  const alternative *a = &grammar->alternatives[number];
  const rule *r = &grammar->rules[a->rule];
  return (weft_grammar_alternative){.rule = grammar->rule_names.names[a->rule],
                                    .index = (uint32_t)(number - r->first),
                                    .reachable = r->reachable,
                                    .place = language_place(grammar->file, a->at)};
}
