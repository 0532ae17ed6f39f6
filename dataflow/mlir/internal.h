/* What the files of the MLIR core share: the context, the token reader, the parser and the printer. */
#ifndef WEFT_DATAFLOW_MLIR_INTERNAL_H
#define WEFT_DATAFLOW_MLIR_INTERNAL_H

#include "weft/mlir.h"

#include <string.h>

/* ---- tables of things made once ------------------------------------------------------------------------------- */

/* A set of addresses, found by hash and comparison. Never forgets; iteration is never needed. */
typedef struct mlir_table {
  void **items;
  uint64_t *hashes;
  uint64_t capacity; /* a power of two, or 0 */
  uint64_t count;
} mlir_table;

typedef bool (*mlir_same)(const void *item, const void *key);

/* The item equal to `key`, or NULL. */
void *mlir_table_find(const mlir_table *table, uint64_t hash, mlir_same same, const void *key);
/* Adds an item that is not in the table yet. */
bool mlir_table_add(mlir_table *table, uint64_t hash, void *item);
void mlir_table_free(mlir_table *table);

static inline uint64_t mlir_mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

/* A hash of bytes, eight at a time. */
static inline uint64_t mlir_hash(const char *bytes, size_t length) {
  uint64_t hash = length, word;
  while (length >= 8) {
    memcpy(&word, bytes, 8);
    hash = mlir_mix(hash, word);
    bytes += 8;
    length -= 8;
  }
  word = 0;
  memcpy(&word, bytes, length);
  return mlir_mix(hash, word);
}

/* ---- the context ---------------------------------------------------------------------------------------------- */

/* One directive of a declarative form, and the rule of a type. */
typedef enum format_step_kind {
  STEP_OPERAND,  /* index */
  STEP_OPERANDS, /* all from index on */
  STEP_TYPE,     /* index: 0 is T, 1 U, 2 V */
  STEP_FUNCTIONAL,
  STEP_SAME_OR_FUNCTIONAL,
  STEP_ATTR_DICT,
  STEP_OPTIONAL_WORD, /* text, property */
  STEP_FLAGS,         /* text, property */
  STEP_LITERAL,       /* text */
} format_step_kind;

typedef struct format_step {
  format_step_kind kind;
  uint32_t index;
  const char *text;
  const char *property;
} format_step;

typedef enum type_rule_kind { RULE_VARIABLE, RULE_ELEMENT, RULE_PARAMETER, RULE_FIXED } type_rule_kind;

typedef struct type_rule {
  type_rule_kind kind;
  uint32_t index;
  const weft_mlir_type *fixed;
} type_rule;

enum { FORMAT_STEPS = 20, FORMAT_TYPES = 8 };

typedef struct op_format {
  format_step steps[FORMAT_STEPS];
  uint32_t step_count;
  bool typed; /* a rule after the bar was given */
  type_rule operands[FORMAT_TYPES], results[FORMAT_TYPES];
  uint32_t operand_count, result_count;
  bool operands_repeat, results_repeat; /* the last rule holds for all that follow, none included */
  char elided[64];                      /* properties that the form itself writes, space-separated */
} op_format;

/* One inherent attribute of a registered op. */
typedef struct inherent {
  const char *name;
  const weft_mlir_attribute *otherwise; /* its default, or NULL */
} inherent;

/* A registered or merely named op: what weft_mlir_op_name begins. */
typedef struct op_name {
  weft_mlir_op_name public;
  const op_format *format;
  const inherent *inherents;
  uint32_t inherent_count;
} op_name;

struct weft_mlir_context {
  weft_arena *arena;
  mlir_table strings, types, attributes, affines, maps, names, type_specs, attribute_specs, dialects;
  const weft_mlir_type *index, *none, *i1, *i32, *i64, *f32;
  const weft_mlir_attribute *unit, *empty_dictionary;
};

const op_name *mlir_op_name_of(const weft_mlir_op *op);
/* Whether `name` is inherent in ops called `op`; everything in an op that no dialect registered is not. */
bool mlir_is_inherent(const op_name *op, const char *name);
const weft_mlir_type_spec *mlir_type_spec(const weft_mlir_context *context, const char *name);
const weft_mlir_attribute_spec *mlir_attribute_spec(const weft_mlir_context *context, const char *name);
bool mlir_dialect_known(const weft_mlir_context *context, const char *name, size_t length);
/* Reads a spec's format into `format`; false with a message. */
bool mlir_format_compile(weft_mlir_context *context, const weft_mlir_op_spec *spec, op_format *format, weft_diag *diag);
bool mlir_format_parse(weft_mlir_parser *parser, const op_format *format, weft_mlir_state *state);
void mlir_format_print(weft_mlir_printer *printer, const op_format *format, const weft_mlir_op *op);
/* Counts and types of an op against its format; false with one message. */
bool mlir_format_verify(const op_format *format, const weft_mlir_op *op, const char *file, weft_diag *diag);
/* An attribute from text of our own tables. */
const weft_mlir_attribute *mlir_attribute_from_text(weft_mlir_context *context, const char *text);

const weft_mlir_affine *mlir_affine(weft_mlir_context *context, weft_mlir_affine_kind kind, int64_t value,
                                    const weft_mlir_affine *left, const weft_mlir_affine *right);
const weft_mlir_affine_map *mlir_affine_map(weft_mlir_context *context, uint32_t dims, uint32_t symbols,
                                            const weft_mlir_affine *const *results, uint32_t count);

/* ---- tokens --------------------------------------------------------------------------------------------------- */

typedef enum token_kind {
  TOKEN_END,
  TOKEN_BAD,     /* `problem` says why */
  TOKEN_WORD,    /* letters, digits, _ $ . */
  TOKEN_INTEGER, /* decimal or 0x */
  TOKEN_FLOAT,
  TOKEN_STRING, /* with its quotes */
  TOKEN_VALUE,  /* %name or %name#n: `length` covers %name, `number` is n */
  TOKEN_HASH,   /* #name */
  TOKEN_BANG,   /* !name */
  TOKEN_AT,     /* @name or @"name" */
  TOKEN_CARET,  /* ^name */
  TOKEN_PUNCTUATION,
} token_kind;

typedef struct token {
  token_kind kind;
  char punctuation; /* the character; '>' with `arrow` for ->, ':' with `pair` for ::, '.' for ... */
  bool pair;        /* -> or :: */
  uint32_t number;  /* of a value; UINT32_MAX without #n */
  uint32_t length;
  uint32_t line;
  const char *start;
  const char *problem;
} token;

typedef struct lexer {
  const char *at, *end;
  const char *line_start; /* of the line `at` is in */
  uint32_t line;
} lexer;

/* Reads the next token after spaces and comments. */
void lexer_next(lexer *lexer, token *token);
/* The bytes of a string token without quotes and escapes, in `arena`; NULL with `*problem` set when an escape is wrong.
 */
const char *lexer_string(weft_arena *arena, const token *token, uint64_t *length, const char **problem);

/* ---- the parser ----------------------------------------------------------------------------------------------- */

/* What a value name stands for now. */
typedef struct binding {
  weft_mlir_value *values; /* the first of `count`, or NULL */
  struct forward *forward; /* uses before the definition */
  uint32_t count;
  uint32_t scope; /* how many regions deep it was bound */
} binding;

/* A use of a value that is not defined yet: a placeholder with the slots to fill. */
typedef struct forward {
  struct forward *next;  /* other numbers of the same name */
  weft_mlir_value value; /* what operands point at meanwhile: its owner is this forward, its mark MARK_FORWARD */
  uint32_t number;
  uint32_t line, offset; /* of the first use */
  uint32_t floor;        /* the isolation it was used in */
  uint32_t scope;        /* the outermost it was used in: what deeper regions define is not meant */
  struct forward_slot *slots;
} forward;

typedef struct forward_slot {
  struct forward_slot *next;
  weft_mlir_value **slot;
} forward_slot;

typedef struct value_name {
  const char *text;
  uint32_t length;
  uint32_t hash;
} value_name;

typedef struct block_name {
  struct block_name *next;
  const char *text;
  uint32_t length;
  weft_mlir_block *block;
  bool defined;
  uint32_t line;
  const char *start; /* of the first mention */
} block_name;

typedef struct alias {
  const char *name;                     /* with its # or ! */
  const weft_mlir_attribute *attribute; /* of #, or a type attribute of ! */
  uint64_t uses;                        /* of aliases in it, those in them counted again */
} alias;

/* A binding that a scope replaced, restored when it ends. */
typedef struct undo {
  weft_mlir_value *values;
  uint32_t name, count, scope;
} undo;

enum { MARK_FORWARD = UINT32_MAX, KNOWN_TYPES = 64, MOST_BLOCKS = 20000 };

/* A shaped type by its spelling. */
typedef struct known_type {
  const char *text;
  size_t length;
  const weft_mlir_type *type;
} known_type;

struct weft_mlir_parser {
  weft_mlir_context *context;
  lexer lexer;
  token token;
  const char *file;
  const char *begin;   /* of the text */
  weft_arena *arena;   /* of the ops */
  weft_arena *scratch; /* until the parse ends */
  weft_diag *diag;
  bool failed;
  weft_status status;
  uint32_t depth;
  /* value names: numbers below NUMBERED have the binding `numbered[n]`, others go through a table */
  binding *bindings;
  value_name *names;
  uint32_t *slots; /* hash table of name + 1 */
  uint64_t slot_capacity, name_count, binding_capacity, name_capacity;
  binding *numbered;
  uint64_t numbered_count;
  undo *undos;
  uint64_t undo_count, undo_capacity;
  uint32_t scope; /* how many regions deep */
  uint32_t floor; /* scopes below this one are out of sight (isolation) */
  uint64_t open_forwards;
  block_name *blocks; /* of the region being read */
  uint32_t block_count;
  known_type known[KNOWN_TYPES];
  mlir_table aliases;
  uint64_t alias_uses, alias_nested; /* so far; the second only inside aliases */
  /* stacks shared by all ops being read, so that an op costs no allocation of its own */
  weft_mlir_value **operand_stack;
  uint64_t operand_count, operand_capacity;
  const weft_mlir_type **type_stack;
  uint64_t type_count, type_capacity;
};

/* An op being put together. Operands and types lie on the parser's stacks from the given bases on. */
struct weft_mlir_state {
  const op_name *name;
  uint64_t operand_base, type_base;
  uint32_t operand_count, result_count;
  weft_mlir_named *attributes; /* all, told apart when the op is made */
  uint64_t attribute_count, attribute_capacity;
  const weft_mlir_attribute *properties; /* of the generic form, as it stood */
  const weft_mlir_attribute *dictionary; /* the generic form's attributes when nothing else was added */
  weft_mlir_region **regions;
  uint64_t region_count, region_capacity;
  weft_mlir_block **successors;
  uint32_t *successor_operands;
  uint64_t successor_count;
  const weft_mlir_attribute *location;
  uint32_t line, column;
  uint32_t declared_results; /* names before the = */
};

bool parser_fail_at(weft_mlir_parser *parser, uint32_t line, const char *at, const char *format, ...) WEFT_PRINTF(4, 5);
bool parser_memory(weft_mlir_parser *parser);
static inline void parser_advance(weft_mlir_parser *parser) { lexer_next(&parser->lexer, &parser->token); }
static inline bool parser_is(const weft_mlir_parser *parser, char punctuation) {
  return parser->token.kind == TOKEN_PUNCTUATION && parser->token.punctuation == punctuation && !parser->token.pair;
}
static inline bool parser_is_arrow(const weft_mlir_parser *parser) {
  return parser->token.kind == TOKEN_PUNCTUATION && parser->token.punctuation == '>' && parser->token.pair;
}
bool parser_is_word(const weft_mlir_parser *parser, const char *word);
bool parser_take(weft_mlir_parser *parser, char punctuation); /* if it is next */
bool parser_need(weft_mlir_parser *parser, char punctuation, const char *after);
bool parser_deeper(weft_mlir_parser *parser); /* one level more, or a message; undone by parser->depth-- */
uint32_t parser_column(const weft_mlir_parser *parser, const token *token);
/* Moves the reader to `at`, inside the current line or the token being looked at, and reads the next token there. */
void parser_restart(weft_mlir_parser *parser, const char *at);

bool parser_type(weft_mlir_parser *parser, const weft_mlir_type **type);
bool parser_attribute(weft_mlir_parser *parser, const weft_mlir_type *type, const weft_mlir_attribute **attribute);
bool parser_dictionary(weft_mlir_parser *parser, const weft_mlir_attribute **dictionary); /* at { */
bool parser_members(weft_mlir_parser *parser, weft_mlir_named **members, uint64_t *count, uint64_t *capacity);
/* Text up to the > that closes the current <, normalised: one space where there was any. The current token is the <. */
bool parser_angle_text(weft_mlir_parser *parser, const char **text);
/* The same, skipped: `*begin` is the first byte after the <. */
bool parser_angle_skip(weft_mlir_parser *parser, const char **begin);
bool parser_affine_map(weft_mlir_parser *parser, const weft_mlir_affine_map **map);
bool parser_dense(weft_mlir_parser *parser, const weft_mlir_attribute **attribute);
bool parser_dense_array(weft_mlir_parser *parser, const weft_mlir_attribute **attribute);
bool parser_location(weft_mlir_parser *parser, const weft_mlir_attribute **location); /* at loc( */
bool parser_symbol_reference(weft_mlir_parser *parser, const weft_mlir_attribute **attribute);
/* The alias spelled so, with its # or !. */
alias *parser_alias(const weft_mlir_parser *parser, const char *spelling, size_t length);
/* Counts a use: aliases of aliases double what they stand for, so that a short text could stand for any size. */
bool parser_use_alias(weft_mlir_parser *p, const alias *a);

/* value names (parse_value.c) */
bool parser_value_name(weft_mlir_parser *parser, const token *token, uint32_t *name);
binding *parser_binding(weft_mlir_parser *parser, uint32_t name);
bool parser_define(weft_mlir_parser *parser, uint32_t name, uint32_t line, const char *at, weft_mlir_value *values,
                   uint32_t count);
weft_mlir_value *parser_use(weft_mlir_parser *parser, weft_mlir_operand use, const weft_mlir_type *type);
bool parser_values_begin(weft_mlir_parser *parser);
void parser_values_end(weft_mlir_parser *parser);
bool parser_scope_begin(weft_mlir_parser *parser);
void parser_scope_end(weft_mlir_parser *parser, uint64_t undo_base);
bool parser_forwards_settled(weft_mlir_parser *parser, uint64_t before);
bool parser_keep_slots(weft_mlir_parser *parser, weft_mlir_op *op);

bool parser_op(weft_mlir_parser *parser, weft_mlir_block *block);
/* Whether every block mentioned in the region being read was defined. */
bool parser_blocks_defined(weft_mlir_parser *parser);
bool parser_push_operand(weft_mlir_parser *parser, weft_mlir_state *state, weft_mlir_value *value);
bool parser_push_type(weft_mlir_parser *parser, weft_mlir_state *state, const weft_mlir_type *type);
bool parser_generic(weft_mlir_parser *parser, weft_mlir_state *state);

/* ---- the printer ---------------------------------------------------------------------------------------------- */

struct weft_mlir_printer {
  weft_mlir_write write;
  void *context;
  char *buffer;
  size_t used;
  bool failed;
  weft_mlir_print_options options;
  uint32_t indent;
  uint32_t next_value, next_argument, next_block;
};

enum { PRINTER_BUFFER = 1 << 16 };

void printer_bytes(weft_mlir_printer *printer, const char *bytes, size_t length);
static inline void printer_char(weft_mlir_printer *printer, char c) {
  if (printer->used == PRINTER_BUFFER) printer_bytes(printer, NULL, 0);
  printer->buffer[printer->used++] = c;
}
void printer_u64(weft_mlir_printer *printer, uint64_t value);
void printer_i64(weft_mlir_printer *printer, int64_t value);
void printer_quoted(weft_mlir_printer *printer, const char *bytes, uint64_t length);
void printer_affine_map(weft_mlir_printer *printer, const weft_mlir_affine_map *map);
void printer_location(weft_mlir_printer *printer, const weft_mlir_op *op);
/* A dictionary's members but those in `elided` and, for `op` not NULL, those equal to their default. */
void printer_members(weft_mlir_printer *printer, const weft_mlir_attribute *dictionary, const weft_mlir_op *op,
                     const char *elided);
bool mlir_listed(const char *list, const char *name); /* `name` is a word of the space-separated list */
bool mlir_is_word(const char *text, uint64_t length); /* a bare word in MLIR text */

#endif
