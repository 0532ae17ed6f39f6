/* Reading a postcondition: its head, its sections and its statements. */
#include "postcondition_private.h"

#include <stdlib.h>
#include <string.h>

static const char *const marks[] = {"::", "==", "!=", "<=", ">=", "<", ">", "+", "-", "=", ":", ";",
                                    "|",  "(",  ")",  "[",  "]",  "{", "}", ",", ".", "@", "$", NULL};

/* ---- statements ----------------------------------------------------------------------------------------------- */

typedef struct statement_list {
  statement *items;
  uint64_t count, capacity;
} statement_list;

static bool parse_statements(postcondition_parser *p, bool outermost, statement_list *list);

static bool is_visible(const postcondition_parser *p, uint64_t from, const char *name) {
  for (uint64_t i = from; i < p->scope_count; i++)
    if (strcmp(p->scope[i].name, name) == 0) return true;
  return false;
}

static bool parse_let(postcondition_parser *p, bool outermost, uint64_t block_start, statement *s) {
  lexer *x = &p->x;
  position at = x->token.at;
  node *value;
  s->kind = STATEMENT_LET;
  if (!language_word(x, "a name", &s->name)) return false;
  if (is_visible(p, block_start, s->name)) return language_fail(x, at, NULL, "`%s` is bound twice", s->name);
  if (!language_expect(x, "=", "after a name") || !postcondition_parse_expression(p, &value) ||
      !postcondition_bind(p, s->name, at, outermost, &s->slot))
    return false;
  s->value = value;
  return language_expect(x, ";", "after a let");
}

static bool parse_assert(postcondition_parser *p, statement *s) {
  node *value;
  s->kind = STATEMENT_ASSERT;
  if (!language_word(&p->x, "a label", &s->name) || !language_expect(&p->x, ":", "after a label") ||
      !postcondition_parse_expression(p, &value))
    return false;
  s->value = value;
  return language_expect(&p->x, ";", "after an assert");
}

static bool parse_forall(postcondition_parser *p, statement *s) {
  lexer *x = &p->x;
  position at = x->token.at;
  uint64_t height = p->scope_count;
  node *source, *where;
  s->kind = STATEMENT_FORALL;
  if (!language_word(x, "a variable", &s->name) || !language_expect(x, "in", "after a variable") ||
      !postcondition_parse_operand(p, &source) || !postcondition_bind(p, s->name, at, false, &s->slot))
    return false;
  s->value = source;
  if (language_try(x, "where")) {
    if (!postcondition_parse_expression(p, &where)) return false;
    s->where = where;
  }
  statement_list body = {0};
  if (!language_expect(x, "{", "before the body of a forall") || !language_enter(x) ||
      !parse_statements(p, false, &body))
    return false;
  language_leave(x);
  p->scope_count = height;
  s->body = body.items;
  s->body_count = body.count;
  return language_expect(x, "}", "after the body of a forall");
}

static bool parse_statements(postcondition_parser *p, bool outermost, statement_list *list) {
  lexer *x = &p->x;
  uint64_t block_start = p->scope_count;
  while (!x->status && !language_at(x, "}")) {
    statement s = {.at = x->token.at};
    if (language_try(x, "let")) {
      if (!parse_let(p, outermost, block_start, &s)) return false;
    } else if (language_try(x, "assert")) {
      if (!parse_assert(p, &s)) return false;
    } else if (language_try(x, "forall")) {
      if (!parse_forall(p, &s)) return false;
    } else {
      return language_expected(x, "let, assert, forall or `}`");
    }
    if (!weft_arena_grow(x->arena, &list->items, list->count, &list->capacity, sizeof s)) return language_no_memory(x);
    list->items[list->count++] = s;
  }
  return !x->status;
}

/* ---- sections ------------------------------------------------------------------------------------------------- */

/* language v0; */
static bool parse_language(postcondition_parser *p) {
  const char *version;
  position at = p->x.token.at;
  if (!language_word(&p->x, "a version", &version)) return false;
  if (strcmp(version, "v0") != 0)
    return language_fail(&p->x, at, "language v0;", "this language is not known: `%s`", version);
  return language_expect(&p->x, ";", "after the language");
}

/* vocabulary mlir = mlir.generic@1; */
static bool parse_vocabulary(postcondition_parser *p) {
  lexer *x = &p->x;
  const char *alias, *group, *name;
  int64_t version;
  if (!language_word(x, "a name", &alias) || !language_expect(x, "=", "after a name")) return false;
  position at = x->token.at;
  if (!language_word(x, "a vocabulary", &group) || !language_expect(x, ".", NULL) ||
      !language_word(x, "a vocabulary", &name) || !language_expect(x, "@", "before a version") ||
      !language_integer(x, "a version", &version))
    return false;
  if (strcmp(group, "mlir") != 0 || strcmp(name, "generic") != 0 || version != 1)
    return language_fail(x, at, "the one that is known is mlir.generic@1", "this vocabulary is not known");
  if (!weft_arena_grow(x->arena, &p->aliases, p->alias_count, &p->alias_capacity, sizeof *p->aliases))
    return language_no_memory(x);
  p->aliases[p->alias_count++] = alias;
  return language_expect(x, ";", "after a vocabulary");
}

/* metadata { name = "text"; ... }: for readers. */
static bool parse_metadata(postcondition_parser *p) {
  lexer *x = &p->x;
  const char *name;
  if (!language_expect(x, "{", "after metadata")) return false;
  while (!x->status && !language_at(x, "}")) {
    if (!language_word(x, "a name or `}`", &name) || !language_expect(x, "=", "after a name")) return false;
    if (x->token.kind != TOKEN_TEXT && x->token.kind != TOKEN_INTEGER)
      return language_expected(x, "a text or a number");
    if (!language_next(x) || !language_expect(x, ";", "after a value")) return false;
  }
  return language_expect(x, "}", NULL);
}

static bool parse_constraints(postcondition_parser *p) {
  statement_list list = {0};
  if (!language_expect(&p->x, "{", "after constraints") || !parse_statements(p, true, &list)) return false;
  p->result->statements = list.items;
  p->result->statement_count = list.count;
  return language_expect(&p->x, "}", NULL);
}

static bool parse_postcondition(postcondition_parser *p) {
  lexer *x = &p->x;
  if (!language_expect(x, "postcondition", NULL) || !language_word(x, "a name", &p->result->name) ||
      !language_expect(x, "{", "after the name") || !language_expect(x, "language", "as the first section") ||
      !parse_language(p))
    return false;
  while (language_try(x, "vocabulary"))
    if (!parse_vocabulary(p)) return false;
  if (language_try(x, "metadata") && !parse_metadata(p)) return false;
  if (!language_expect(x, "constraints", NULL) || !parse_constraints(p) || !language_expect(x, "}", NULL)) return false;
  return x->token.kind == TOKEN_END || language_expected(x, "the end of the text");
}

static weft_postcondition *postcondition_new(const char *name) {
  weft_postcondition *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->arena = weft_arena_new();
  r->file = r->arena ? weft_arena_string(r->arena, name, strlen(name)) : NULL;
  if (r->file) return r;
  weft_postcondition_free(r);
  return NULL;
}

void weft_postcondition_free(weft_postcondition *postcondition) {
  if (!postcondition) return;
  weft_arena_free(postcondition->arena);
  free(postcondition);
}

weft_status weft_postcondition_parse(const char *name, const char *text, size_t length,
                                     weft_postcondition **postcondition, weft_diag *diag) {
  *postcondition = NULL;
  weft_postcondition *r = postcondition_new(name);
  if (!r) return weft_error_memory(diag);
  postcondition_parser p = {.result = r};
  p.x = (lexer){.arena = r->arena, .diag = diag, .file = r->file, .quote = '"', .marks = marks};
  /* A copy, since the parts of conjunctions are quoted in messages later. */
  const char *copy = length <= LEXER_MAX_BYTES ? weft_arena_string(r->arena, text, length) : text;
  if (!copy)
    language_no_memory(&p.x);
  else if (language_start(&p.x, copy, length))
    parse_postcondition(&p);
  if (p.x.status)
    weft_postcondition_free(r);
  else
    *postcondition = r;
  return p.x.status;
}

weft_status weft_postcondition_read(const char *path, weft_postcondition **postcondition, weft_diag *diag) {
  char *bytes;
  size_t length;
  *postcondition = NULL;
  weft_status status = weft_read_file(path, &bytes, &length, diag);
  if (status) return status;
  status = weft_postcondition_parse(path, bytes, length, postcondition, diag);
  free(bytes);
  return status;
}

const char *weft_postcondition_name(const weft_postcondition *postcondition) { return postcondition->name; }
bool weft_postcondition_uses_input(const weft_postcondition *postcondition) { return postcondition->uses_input; }
