/* Reading text: messages, small tokens and whole files. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- messages ------------------------------------------------------------------------------------------------- */

enum { SNIPPET = 100 };

/* The line around `at`, cut to a window, and a caret under `at`. */
static void add_caret(weft_mlir_parser *p, weft_text *text, const char *at) {
  const char *start = at, *end = at;
  while (start > p->begin && start[-1] != '\n' && at - start < SNIPPET) start--;
  while (end < p->lexer.end && *end != '\n' && *end != '\0' && end - start < SNIPPET + 20) end++;
  weft_text_puts(text, "\n    ");
  for (const char *c = start; c < end; c++) {
    char shown = (unsigned char)*c < ' ' || *c == 0x7f ? ' ' : *c;
    weft_text_append(text, &shown, 1);
  }
  weft_text_puts(text, "\n    ");
  for (const char *c = start; c < at; c++) weft_text_puts(text, " ");
  weft_text_puts(text, "^");
}

static uint32_t column_of(const weft_mlir_parser *p, const char *at) {
  const char *start = at;
  while (start > p->begin && start[-1] != '\n') start--;
  return (uint32_t)(at - start) + 1;
}

static WEFT_PRINTF(4, 0) bool fail(weft_mlir_parser *p, uint32_t line, const char *at, const char *format,
                                   va_list arguments) {
  if (p->failed) return false;
  p->failed = true;
  p->status = WEFT_INVALID;
  char message[1024];
  vsnprintf(message, sizeof message, format, arguments);
  weft_text text = {0};
  weft_text_puts(&text, message);
  add_caret(p, &text, at);
  weft_place place = {.file = p->file, .line = line, .column = column_of(p, at)};
  weft_error_at(p->diag, WEFT_INVALID, place, NULL, "%s", text.failed ? message : text.data);
  weft_text_free(&text);
  return false;
}

bool parser_fail_at(weft_mlir_parser *p, uint32_t line, const char *at, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fail(p, line, at, format, arguments);
  va_end(arguments);
  return false;
}

bool weft_mlir_fail(weft_mlir_parser *p, const char *format, ...) {
  if (p->token.kind == TOKEN_BAD) return parser_fail_at(p, p->token.line, p->token.start, "%s", p->token.problem);
  va_list arguments;
  va_start(arguments, format);
  fail(p, p->token.line, p->token.start, format, arguments);
  va_end(arguments);
  return false;
}

bool parser_memory(weft_mlir_parser *p) {
  if (p->failed) return false;
  p->failed = true;
  p->status = weft_error_memory(p->diag);
  return false;
}

bool parser_deeper(weft_mlir_parser *p) {
  if (++p->depth <= WEFT_MLIR_DEPTH) return true;
  return weft_mlir_fail(p, "the nesting is deeper than %d levels", WEFT_MLIR_DEPTH);
}

/* What the current token is called in messages. */
static const char *token_text(weft_mlir_parser *p) {
  if (p->token.kind == TOKEN_END) return "the end of the text";
  uint32_t length = p->token.length > 40 ? 40 : p->token.length;
  const char *text = weft_arena_printf(p->scratch, "'%.*s'", (int)length, p->token.start);
  return text ? text : "?";
}

/* ---- small tokens --------------------------------------------------------------------------------------------- */

weft_mlir_context *weft_mlir_parser_context(weft_mlir_parser *p) { return p->context; }
weft_arena *weft_mlir_parser_scratch(weft_mlir_parser *p) { return p->scratch; }

bool parser_is_word(const weft_mlir_parser *p, const char *word) {
  size_t length = strlen(word);
  return p->token.kind == TOKEN_WORD && p->token.length == length && memcmp(p->token.start, word, length) == 0;
}

bool parser_take(weft_mlir_parser *p, char punctuation) {
  if (!parser_is(p, punctuation)) return false;
  parser_advance(p);
  return true;
}

bool parser_need(weft_mlir_parser *p, char punctuation, const char *after) {
  if (parser_take(p, punctuation)) return true;
  return weft_mlir_fail(p, "expected '%c' %s, found %s", punctuation, after, token_text(p));
}

uint32_t parser_column(const weft_mlir_parser *p, const token *t) {
  return t->line == p->lexer.line ? (uint32_t)(t->start - p->lexer.line_start) + 1 : column_of(p, t->start);
}

void parser_restart(weft_mlir_parser *p, const char *at) {
  p->lexer.at = at;
  parser_advance(p);
}

bool weft_mlir_at(weft_mlir_parser *p, const char *text) {
  const token *t = &p->token;
  if (t->kind == TOKEN_WORD) return parser_is_word(p, text);
  if (t->kind != TOKEN_PUNCTUATION) return false;
  if (strcmp(text, "->") == 0) return parser_is_arrow(p);
  if (strcmp(text, "::") == 0) return t->punctuation == ':' && t->pair;
  return !t->pair && text[0] == t->punctuation && t->length == strlen(text);
}

bool weft_mlir_try(weft_mlir_parser *p, const char *text) {
  if (!weft_mlir_at(p, text)) return false;
  parser_advance(p);
  return true;
}

bool weft_mlir_expect(weft_mlir_parser *p, const char *text) {
  if (weft_mlir_try(p, text)) return true;
  return weft_mlir_fail(p, "expected '%s', found %s", text, token_text(p));
}

bool weft_mlir_at_operand(weft_mlir_parser *p) { return p->token.kind == TOKEN_VALUE; }
bool weft_mlir_at_symbol(weft_mlir_parser *p) { return p->token.kind == TOKEN_AT; }

bool weft_mlir_parse_word(weft_mlir_parser *p, const char **word) {
  if (p->token.kind != TOKEN_WORD) return weft_mlir_fail(p, "expected a word, found %s", token_text(p));
  *word = weft_mlir_intern(p->context, p->token.start, p->token.length);
  if (!*word) return parser_memory(p);
  parser_advance(p);
  return true;
}

bool weft_mlir_parse_integer(weft_mlir_parser *p, int64_t *value) {
  bool negative = parser_take(p, '-');
  if (p->token.kind != TOKEN_INTEGER) return weft_mlir_fail(p, "expected an integer, found %s", token_text(p));
  uint64_t magnitude = 0;
  bool hex = p->token.length > 2 && p->token.start[1] == 'x', lost = false;
  for (uint32_t i = hex ? 2 : 0; i < p->token.length; i++) {
    char c = p->token.start[i];
    uint64_t digit = c <= '9' ? (uint64_t)(c - '0') : (uint64_t)((c | 0x20) - 'a' + 10);
    lost = lost || weft_mul_overflow(magnitude, hex ? 16 : 10, &magnitude) ||
           weft_add_overflow(magnitude, digit, &magnitude);
  }
  if (lost || (negative && magnitude > (uint64_t)INT64_MAX + 1))
    return weft_mlir_fail(p, "the integer does not fit in 64 bits");
  *value = (int64_t)(negative ? 0 - magnitude : magnitude);
  parser_advance(p);
  return true;
}

bool weft_mlir_parse_string(weft_mlir_parser *p, const char **text, uint64_t *length) {
  if (p->token.kind != TOKEN_STRING) return weft_mlir_fail(p, "expected a string, found %s", token_text(p));
  const char *problem;
  *text = lexer_string(p->scratch, &p->token, length, &problem);
  if (!*text) return weft_mlir_fail(p, "%s", problem);
  parser_advance(p);
  return true;
}

bool weft_mlir_parse_symbol(weft_mlir_parser *p, const char **name) {
  if (p->token.kind != TOKEN_AT)
    return weft_mlir_fail(p, "expected a symbol name such as @main, found %s", token_text(p));
  const char *problem, *text = p->token.start + 1;
  uint64_t length = p->token.length - 1;
  if (*text == '"') {
    text = lexer_string(p->scratch, &p->token, &length, &problem);
    if (!text) return weft_mlir_fail(p, "%s", problem);
    if (memchr(text, '\0', length)) return weft_mlir_fail(p, "a symbol name holds a NUL");
  }
  *name = weft_mlir_intern(p->context, text, length);
  if (!*name) return parser_memory(p);
  parser_advance(p);
  return true;
}

enum { ALIAS_LIMIT = 1 << 24 };

typedef struct spelling {
  const char *text;
  size_t length;
} spelling;

static bool same_alias(const void *item, const void *key) {
  const spelling *s = key;
  const char *name = ((const alias *)item)->name;
  return strncmp(name, s->text, s->length) == 0 && !name[s->length];
}

alias *parser_alias(const weft_mlir_parser *p, const char *text, size_t length) {
  return mlir_table_find(&p->aliases, mlir_hash(text, length), same_alias, &(spelling){text, length});
}

bool parser_use_alias(weft_mlir_parser *p, const alias *a) {
  p->alias_uses += 1 + a->uses;
  p->alias_nested += a->uses;
  return p->alias_nested <= ALIAS_LIMIT ||
         weft_mlir_fail(p, "aliases of aliases stand for more than %d attributes", ALIAS_LIMIT);
}

/* ---- whole files ---------------------------------------------------------------------------------------------- */

/* {-# ... #-}: resources; what refers to them keeps its text. */
static bool skip_metadata(weft_mlir_parser *p) {
  const char *end = strstr(p->token.start, "#-}");
  if (!end) return weft_mlir_fail(p, "the section opened by {-# has no end");
  for (const char *c = p->token.start; c < end; c++)
    if (*c == '\n') {
      p->lexer.line++;
      p->lexer.line_start = c + 1;
    }
  parser_restart(p, end + 3);
  return true;
}

/* #name = attribute, !name = type. */
static bool parse_alias(weft_mlir_parser *p) {
  alias *a = WEFT_NEW(p->scratch, alias);
  size_t length = p->token.length;
  bool type = p->token.kind == TOKEN_BANG;
  if (!a || !(a->name = weft_arena_string(p->scratch, p->token.start, length))) return parser_memory(p);
  if (strchr(a->name, '.')) return weft_mlir_fail(p, "an alias name cannot contain '.'");
  if (parser_alias(p, a->name, length)) return weft_mlir_fail(p, "the alias %s is defined a second time", a->name);
  parser_advance(p);
  if (!parser_need(p, '=', "after the alias name")) return false;
  const weft_mlir_type *named;
  uint64_t before = p->alias_uses;
  if (type ? !parser_type(p, &named) : !parser_attribute(p, NULL, &a->attribute)) return false;
  if (type) a->attribute = weft_mlir_type_attribute(p->context, named);
  a->uses = p->alias_uses - before;
  return (a->attribute && mlir_table_add(&p->aliases, mlir_hash(a->name, length), a)) || parser_memory(p);
}

static bool parse_top(weft_mlir_parser *p, weft_mlir_op **module) {
  weft_mlir_op *holder = weft_mlir_module_new(p->context, p->arena);
  if (!holder) return parser_memory(p);
  holder->line = p->token.line;
  holder->column = 1;
  weft_mlir_block *block = holder->extra->regions[0].first;
  mlir_table_free(&p->aliases);
  p->aliases = (mlir_table){0};
  uint64_t undos = p->undo_count;
  parser_scope_begin(p);
  while (p->token.kind != TOKEN_END) {
    bool ok;
    if (p->token.kind == TOKEN_HASH || p->token.kind == TOKEN_BANG)
      ok = parse_alias(p);
    else if (parser_is(p, '{') && strncmp(p->token.start, "{-#", 3) == 0)
      ok = skip_metadata(p);
    else
      ok = parser_op(p, block);
    if (!ok) return false;
  }
  if (!parser_forwards_settled(p, 0) || !parser_blocks_defined(p)) return false;
  p->blocks = NULL;
  parser_scope_end(p, undos);
  bool one = block->first && block->first == block->last && strcmp(block->first->name->text, "builtin.module") == 0;
  *module = holder;
  if (one) {
    *module = block->first;
    weft_mlir_remove(*module);
  }
  return true;
}

static bool add_module(weft_mlir_parser *p, weft_mlir_file *file, uint64_t *capacity) {
  weft_mlir_op *module;
  if (!parse_top(p, &module)) return false;
  if (!weft_arena_grow(file->arena, &file->modules, file->module_count, capacity, sizeof *file->modules))
    return parser_memory(p);
  file->modules[file->module_count++] = module;
  return true;
}

static bool parse_file(weft_mlir_parser *p, weft_mlir_file *file) {
  uint64_t capacity = 0;
  if (!parser_values_begin(p)) return false;
  parser_advance(p);
  bool more;
  do {
    bool empty = p->token.kind == TOKEN_END;
    if (!(empty && *p->token.start == '/') && !add_module(p, file, &capacity)) return false;
    more = *p->token.start == '/'; /* // -----, and not the end */
    if (more) {
      const char *line = memchr(p->token.start, '\n', (size_t)(p->lexer.end - p->token.start));
      p->lexer.at = line ? line : p->lexer.end;
      parser_advance(p);
    }
  } while (more);
  return true;
}

weft_status weft_mlir_parse(weft_mlir_context *context, const char *name, const char *text, size_t length,
                            bool unverified, weft_mlir_file **file, weft_diag *diag) {
  *file = NULL;
  if (length >= UINT32_MAX) return weft_error(diag, WEFT_INVALID, "split it", "%s is longer than 4 GiB", name);
  weft_mlir_file *made = calloc(1, sizeof *made);
  weft_arena *arena = weft_arena_new(), *scratch = weft_arena_new();
  weft_mlir_parser p = {.context = context, .arena = arena, .scratch = scratch, .diag = diag, .begin = text};
  if (!made || !arena || !scratch) {
    parser_memory(&p);
    goto done;
  }
  made->context = context;
  made->arena = arena;
  made->name = weft_arena_string(arena, name, strlen(name));
  p.file = made->name;
  p.lexer = (lexer){.at = text, .end = text + length, .line_start = text, .line = 1};
  if (!made->name || !parse_file(&p, made)) parser_memory(&p);
done:
  parser_values_end(&p);
  mlir_table_free(&p.aliases);
  weft_arena_free(scratch);
  for (uint64_t i = 0; !p.failed && !unverified && i < made->module_count; i++)
    if (weft_mlir_verify(made->modules[i], made->name, diag) != WEFT_OK) {
      p.failed = true;
      p.status = WEFT_INVALID;
    }
  if (!p.failed) {
    *file = made;
    return WEFT_OK;
  }
  free(made);
  weft_arena_free(arena);
  return p.status;
}

weft_status weft_mlir_read(weft_mlir_context *context, const char *path, weft_mlir_file **file, weft_diag *diag) {
  char *text;
  size_t length;
  *file = NULL;
  weft_status status = weft_read_file(path, &text, &length, diag);
  if (status != WEFT_OK) return status;
  status = weft_mlir_parse(context, strcmp(path, "-") == 0 ? "<stdin>" : path, text, length, false, file, diag);
  free(text);
  return status;
}

void weft_mlir_file_free(weft_mlir_file *file) {
  if (!file) return;
  weft_arena_free(file->arena);
  free(file);
}

/* Reads one type or attribute from a text of its own. */
static bool read_piece(weft_mlir_context *context, const char *text, const weft_mlir_type **type,
                       const weft_mlir_attribute **attribute) {
  weft_arena *scratch = weft_arena_new();
  weft_mlir_parser p = {.context = context, .arena = scratch, .scratch = scratch, .begin = text, .file = "<text>"};
  p.lexer = (lexer){.at = text, .end = text + strlen(text), .line_start = text, .line = 1};
  bool good = scratch != NULL;
  if (good) {
    parser_advance(&p);
    good = (type ? parser_type(&p, type) : parser_attribute(&p, NULL, attribute)) && p.token.kind == TOKEN_END;
  }
  weft_arena_free(scratch);
  return good;
}

const weft_mlir_attribute *mlir_attribute_from_text(weft_mlir_context *context, const char *text) {
  const weft_mlir_attribute *attribute;
  return read_piece(context, text, NULL, &attribute) ? attribute : NULL;
}

const weft_mlir_type *weft_mlir_type_from_text(weft_mlir_context *context, const char *text) {
  const weft_mlir_type *type;
  return read_piece(context, text, &type, NULL) ? type : NULL;
}
