/* The builtin and func dialects, and what function-like ops share. */
#include "standard_private.h"

/* ---- function-like ops ---------------------------------------------------------------------------------------- */

bool weft_mlir_parse_symbol_head(weft_mlir_parser *p, weft_mlir_state *state) {
  weft_mlir_context *context = weft_mlir_parser_context(p);
  const char *text;
  if (!weft_mlir_at_symbol(p)) {
    if (!weft_mlir_parse_word(p, &text)) return false;
    if (strcmp(text, "private") != 0 && strcmp(text, "public") != 0 && strcmp(text, "nested") != 0)
      return weft_mlir_fail(p, "expected private, public, nested or a name such as @main");
    if (!weft_mlir_add_attribute(p, state, "sym_visibility", weft_mlir_string(context, text, strlen(text))))
      return false;
  }
  return weft_mlir_parse_symbol(p, &text) &&
         weft_mlir_add_attribute(p, state, "sym_name", weft_mlir_string(context, text, strlen(text)));
}

static bool parse_arguments(weft_mlir_parser *p, weft_mlir_signature *s) {
  weft_arena *scratch = weft_mlir_parser_scratch(p);
  uint64_t capacity = 0;
  if (!weft_mlir_expect(p, "(")) return false;
  if (weft_mlir_try(p, ")")) return true;
  do {
    if (!weft_arena_grow(scratch, &s->arguments, s->argument_count, &capacity, sizeof *s->arguments))
      return weft_mlir_fail(p, "out of memory");
    weft_mlir_argument *argument = &s->arguments[s->argument_count++];
    bool named = weft_mlir_at_operand(p);
    *argument = (weft_mlir_argument){.name = {.name = UINT32_MAX}};
    if (named ? !weft_mlir_parse_argument(p, true, argument) : !weft_mlir_parse_type(p, &argument->type)) return false;
    if (!named && weft_mlir_at(p, "{") && !weft_mlir_parse_attribute(p, NULL, &argument->attributes)) return false;
    if (weft_mlir_at(p, "loc")) {
      const weft_mlir_attribute *ignored;
      if (!weft_mlir_parse_attribute(p, NULL, &ignored)) return false;
    }
  } while (weft_mlir_try(p, ","));
  return weft_mlir_expect(p, ")");
}

static bool parse_result(weft_mlir_parser *p, weft_mlir_signature *s, uint64_t *capacity, bool attributed) {
  weft_arena *scratch = weft_mlir_parser_scratch(p);
  uint64_t other = *capacity;
  if (!weft_arena_grow(scratch, &s->results, s->result_count, &other, sizeof *s->results) ||
      !weft_arena_grow(scratch, &s->result_attributes, s->result_count, capacity, sizeof *s->result_attributes))
    return weft_mlir_fail(p, "out of memory");
  s->result_attributes[s->result_count] = NULL;
  return weft_mlir_parse_type(p, &s->results[s->result_count++]) &&
         (!attributed || !weft_mlir_at(p, "{") ||
          weft_mlir_parse_attribute(p, NULL, &s->result_attributes[s->result_count - 1]));
}

bool weft_mlir_parse_signature(weft_mlir_parser *p, weft_mlir_signature *s) {
  *s = (weft_mlir_signature){.argument_count = 0};
  if (!parse_arguments(p, s)) return false;
  if (!weft_mlir_try(p, "->")) return true;
  uint64_t capacity = 0;
  if (!weft_mlir_try(p, "(")) return parse_result(p, s, &capacity, false);
  if (weft_mlir_try(p, ")")) return true;
  do {
    if (!parse_result(p, s, &capacity, true)) return false;
  } while (weft_mlir_try(p, ","));
  return weft_mlir_expect(p, ")");
}

/* An array of dictionaries, empty ones where there is none; added only when one has members. */
static bool add_dictionaries(weft_mlir_parser *p, weft_mlir_state *state, const char *name,
                             const weft_mlir_attribute **items, uint32_t count) {
  weft_mlir_context *context = weft_mlir_parser_context(p);
  bool any = false;
  for (uint32_t i = 0; i < count; i++) {
    any |= items[i] && items[i]->count;
    if (!items[i]) items[i] = weft_mlir_dictionary(context, NULL, 0);
  }
  return !any || weft_mlir_add_attribute(p, state, name, weft_mlir_array(context, items, count));
}

bool weft_mlir_add_signature(weft_mlir_parser *p, weft_mlir_state *state, const weft_mlir_signature *s, uint32_t first,
                             uint32_t end) {
  weft_arena *scratch = weft_mlir_parser_scratch(p);
  weft_mlir_context *context = weft_mlir_parser_context(p);
  uint32_t count = end - first;
  const weft_mlir_type **inputs = WEFT_NEW_ARRAY(scratch, const weft_mlir_type *, count);
  const weft_mlir_attribute **attributes = WEFT_NEW_ARRAY(scratch, const weft_mlir_attribute *, count);
  if (!inputs || !attributes) return weft_mlir_fail(p, "out of memory");
  for (uint32_t i = 0; i < count; i++) {
    inputs[i] = s->arguments[first + i].type;
    attributes[i] = s->arguments[first + i].attributes;
  }
  const weft_mlir_type *type = weft_mlir_function(context, inputs, count, s->results, s->result_count);
  return type && weft_mlir_add_attribute(p, state, "function_type", weft_mlir_type_attribute(context, type)) &&
         add_dictionaries(p, state, "arg_attrs", attributes, count) &&
         add_dictionaries(p, state, "res_attrs", s->result_attributes, s->result_count);
}

void weft_mlir_put_symbol_head(weft_mlir_printer *p, const weft_mlir_op *op) {
  const char *visibility = weft_mlir_attribute_text(op, "sym_visibility", NULL);
  weft_mlir_put(p, " ");
  if (visibility) weft_mlir_putf(p, "%s ", visibility);
  weft_mlir_put_symbol(p, weft_mlir_symbol_name(op));
}

const weft_mlir_attribute *weft_mlir_argument_attribute(const weft_mlir_op *op, uint32_t index, const char *name) {
  const weft_mlir_attribute *list = weft_mlir_attribute_of(op, "arg_attrs");
  if (!list || list->kind != WEFT_MLIR_ARRAY || index >= list->count) return NULL;
  return weft_mlir_member(list->as.items[index], name);
}

static void put_dictionary(weft_mlir_printer *p, const weft_mlir_op *op, const char *list_name, uint32_t index) {
  const weft_mlir_attribute *list = weft_mlir_attribute_of(op, list_name);
  if (!list || list->kind != WEFT_MLIR_ARRAY || index >= list->count || !list->as.items[index]->count) return;
  weft_mlir_put(p, " ");
  weft_mlir_put_attribute(p, list->as.items[index]);
}

void weft_mlir_put_arguments(weft_mlir_printer *p, const weft_mlir_op *op, uint32_t first, uint32_t count,
                             uint32_t attributed) {
  const weft_mlir_block *entry = weft_mlir_op_region(op, 0)->first;
  const weft_mlir_type *type = weft_mlir_function_type(op);
  weft_mlir_put(p, "(");
  for (uint32_t i = first; i < first + count; i++) {
    if (i > first) weft_mlir_put(p, ", ");
    if (entry) {
      weft_mlir_put_value(p, &entry->arguments[i]);
      weft_mlir_put(p, ": ");
    }
    weft_mlir_put_type(p, entry ? entry->arguments[i].type : type->inputs[i]);
    if (i >= attributed) put_dictionary(p, op, "arg_attrs", i - attributed);
  }
  weft_mlir_put(p, ")");
}

const weft_mlir_type *weft_mlir_function_type(const weft_mlir_op *op) {
  const weft_mlir_attribute *type = weft_mlir_attribute_of(op, "function_type");
  return type && type->kind == WEFT_MLIR_TYPE && type->as.type_value->kind == WEFT_MLIR_FUNCTION_TYPE
             ? type->as.type_value
             : NULL;
}

void weft_mlir_put_function_results(weft_mlir_printer *p, const weft_mlir_op *op, bool always) {
  const weft_mlir_type *type = weft_mlir_function_type(op);
  if (!type->result_count && !always) return;
  weft_mlir_put(p, " -> ");
  bool bare = type->result_count == 1 && !weft_mlir_attribute_of(op, "res_attrs") &&
              type->results[0]->kind != WEFT_MLIR_FUNCTION_TYPE;
  if (!bare) weft_mlir_put(p, "(");
  for (uint32_t i = 0; i < type->result_count; i++) {
    if (i) weft_mlir_put(p, ", ");
    weft_mlir_put_type(p, type->results[i]);
    put_dictionary(p, op, "res_attrs", i);
  }
  if (!bare) weft_mlir_put(p, ")");
}

/* ---- func ----------------------------------------------------------------------------------------------------- */

static bool parse_func(weft_mlir_parser *p, weft_mlir_state *state) {
  weft_mlir_signature s;
  if (!weft_mlir_parse_symbol_head(p, state) || !weft_mlir_parse_signature(p, &s) ||
      !weft_mlir_add_signature(p, state, &s, 0, s.argument_count) || !weft_mlir_parse_attr_dict_keyword(p, state))
    return false;
  if (!weft_mlir_at(p, "{")) return weft_mlir_add_region(p, state);
  for (uint32_t i = 0; i < s.argument_count; i++)
    if (s.arguments[i].name.name == UINT32_MAX)
      return weft_mlir_fail(p, "argument %u of a function with a body has no name", i);
  static weft_mlir_argument none;
  return weft_mlir_parse_region(p, state, s.arguments ? s.arguments : &none, s.argument_count);
}

static void print_func(weft_mlir_printer *p, const weft_mlir_op *op) {
  weft_mlir_put_symbol_head(p, op);
  weft_mlir_put_arguments(p, op, 0, weft_mlir_function_type(op)->input_count, 0);
  weft_mlir_put_function_results(p, op, false);
  weft_mlir_put_attr_dict(p, op, "sym_name sym_visibility function_type arg_attrs res_attrs", true);
  if (!weft_mlir_op_region(op, 0)->first) return;
  weft_mlir_put(p, " ");
  weft_mlir_put_region(p, weft_mlir_op_region(op, 0), false, true);
}

static bool same_types(const weft_mlir_value *arguments, uint32_t count, const weft_mlir_type *const *types,
                       uint32_t type_count) {
  if (count != type_count) return false;
  for (uint32_t i = 0; i < count; i++)
    if (arguments[i].type != types[i]) return false;
  return true;
}

/* Ops that nobody registered may end a block, too. */
static bool ends_block(const weft_mlir_op *last) {
  return last && (!last->name->spec || last->successor_count || last->name->spec->traits & WEFT_MLIR_TERMINATOR);
}

static bool verify_func(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  const weft_mlir_type *type = weft_mlir_function_type(op);
  if (!type || !*weft_mlir_symbol_name(op) || op->region_count != 1)
    return standard_wrong(op, file, diag, NULL, "a name, a function type and one region are needed");
  const weft_mlir_block *entry = weft_mlir_op_region(op, 0)->first;
  if (entry && !same_types(entry->arguments, entry->argument_count, type->inputs, type->input_count))
    return standard_wrong(op, file, diag, NULL, "the arguments of @%s do not have the types of its function type",
                          weft_mlir_symbol_name(op));
  for (const weft_mlir_block *block = entry; block; block = block->next)
    if (!ends_block(block->last))
      return standard_wrong(op, file, diag, "end it with func.return", "a block of @%s has no terminator",
                            weft_mlir_symbol_name(op));
  return true;
}

static bool parse_return(weft_mlir_parser *p, weft_mlir_state *state) { return standard_parse_values(p, state); }
static void print_return(weft_mlir_printer *p, const weft_mlir_op *op) { standard_print_values(p, op, 0); }

static bool verify_return(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  const weft_mlir_op *parent = weft_mlir_parent(op);
  if (!parent || weft_mlir_code(parent) != WEFT_OP_FUNC_FUNC)
    return standard_wrong(op, file, diag, NULL, "it belongs into a func.func");
  const weft_mlir_type *type = weft_mlir_function_type(parent);
  bool same = type && type->result_count == op->operand_count;
  for (uint32_t i = 0; same && i < op->operand_count; i++) same = op->operands[i]->type == type->results[i];
  return same || standard_wrong(op, file, diag, NULL, "the values returned do not have the result types of @%s",
                                weft_mlir_symbol_name(parent));
}

static bool parse_call(weft_mlir_parser *p, weft_mlir_state *state) {
  const char *callee;
  weft_mlir_operand *operands;
  const weft_mlir_type **inputs, **results;
  uint32_t count, input_count, result_count;
  weft_mlir_context *context = weft_mlir_parser_context(p);
  if (!weft_mlir_parse_symbol(p, &callee) ||
      !weft_mlir_add_attribute(p, state, "callee", weft_mlir_symbol(context, callee)) || !weft_mlir_expect(p, "(") ||
      !weft_mlir_parse_operands(p, &operands, &count) || !weft_mlir_expect(p, ")") ||
      !weft_mlir_parse_attr_dict(p, state) || !weft_mlir_expect(p, ":") ||
      !weft_mlir_parse_functional(p, &inputs, &input_count, &results, &result_count))
    return false;
  if (count != input_count) return weft_mlir_fail(p, "%u types for %u operands", input_count, count);
  for (uint32_t i = 0; i < count; i++)
    if (!weft_mlir_add_operand(p, state, operands[i], inputs[i])) return false;
  for (uint32_t i = 0; i < result_count; i++)
    if (!weft_mlir_add_result(p, state, results[i])) return false;
  return true;
}

static void print_call(weft_mlir_printer *p, const weft_mlir_op *op) {
  weft_mlir_put(p, " ");
  weft_mlir_put_symbol(p, weft_mlir_attribute_text(op, "callee", ""));
  weft_mlir_put(p, "(");
  weft_mlir_put_operands(p, op, 0, op->operand_count);
  weft_mlir_put(p, ")");
  weft_mlir_put_attr_dict(p, op, "callee", false);
  weft_mlir_put(p, " : ");
  weft_mlir_put_functional(p, op);
}

/* ---- builtin -------------------------------------------------------------------------------------------------- */

static bool parse_module(weft_mlir_parser *p, weft_mlir_state *state) {
  const char *name;
  if (weft_mlir_at_symbol(p)) {
    if (!weft_mlir_parse_symbol(p, &name) ||
        !weft_mlir_add_attribute(p, state, "sym_name",
                                 weft_mlir_string(weft_mlir_parser_context(p), name, strlen(name))))
      return false;
  }
  static weft_mlir_argument none;
  return weft_mlir_parse_attr_dict_keyword(p, state) && weft_mlir_parse_region(p, state, &none, 0);
}

static void print_module(weft_mlir_printer *p, const weft_mlir_op *op) {
  if (*weft_mlir_symbol_name(op)) {
    weft_mlir_put(p, " ");
    weft_mlir_put_symbol(p, weft_mlir_symbol_name(op));
  }
  weft_mlir_put_attr_dict(p, op, "sym_name", true);
  weft_mlir_put(p, " ");
  weft_mlir_put_region(p, weft_mlir_op_region(op, 0), false, true);
}

static bool verify_module(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  return (op->region_count == 1 && weft_mlir_op_block(op, 0)) ||
         standard_wrong(op, file, diag, NULL, "a module has one region of one block");
}

static bool parse_cast(weft_mlir_parser *p, weft_mlir_state *state) {
  weft_mlir_operand *operands;
  const weft_mlir_type **from, **to;
  uint32_t count, from_count = 0, to_count = 0;
  if (!weft_mlir_parse_operands(p, &operands, &count) ||
      (count && (!weft_mlir_expect(p, ":") || !weft_mlir_parse_types(p, &from, &from_count))) ||
      !weft_mlir_expect(p, "to") || !weft_mlir_parse_types(p, &to, &to_count) || !weft_mlir_parse_attr_dict(p, state))
    return false;
  if (count != from_count) return weft_mlir_fail(p, "%u types for %u operands", from_count, count);
  for (uint32_t i = 0; i < count; i++)
    if (!weft_mlir_add_operand(p, state, operands[i], from[i])) return false;
  for (uint32_t i = 0; i < to_count; i++)
    if (!weft_mlir_add_result(p, state, to[i])) return false;
  return true;
}

static void print_cast(weft_mlir_printer *p, const weft_mlir_op *op) {
  if (op->operand_count) weft_mlir_put(p, " ");
  weft_mlir_put_operands(p, op, 0, op->operand_count);
  if (op->operand_count) weft_mlir_put(p, " : ");
  weft_mlir_put_operand_types(p, op, 0, op->operand_count);
  weft_mlir_put(p, " to ");
  weft_mlir_put_result_types(p, op);
  weft_mlir_put_attr_dict(p, op, NULL, false);
}

static const weft_mlir_op_spec builtin_ops[] = {
    {.name = "builtin.module",
     .code = WEFT_OP_BUILTIN_MODULE,
     .traits = WEFT_MLIR_ISOLATED | WEFT_MLIR_GRAPH,
     .inherent = "sym_name sym_visibility",
     .parse = parse_module,
     .print = print_module,
     .verify = verify_module},
    {.name = "builtin.unrealized_conversion_cast",
     .code = WEFT_OP_BUILTIN_CAST,
     .traits = WEFT_MLIR_PURE,
     .parse = parse_cast,
     .print = print_cast},
};

static const weft_mlir_op_spec func_ops[] = {
    {.name = "func.func",
     .code = WEFT_OP_FUNC_FUNC,
     .traits = WEFT_MLIR_ISOLATED,
     .inherent = "sym_name sym_visibility function_type arg_attrs res_attrs no_inline",
     .parse = parse_func,
     .print = print_func,
     .verify = verify_func},
    {.name = "func.return",
     .code = WEFT_OP_FUNC_RETURN,
     .traits = WEFT_MLIR_TERMINATOR,
     .parse = parse_return,
     .print = print_return,
     .verify = verify_return},
    {.name = "func.call",
     .code = WEFT_OP_FUNC_CALL,
     .inherent = "callee arg_attrs res_attrs no_inline",
     .parse = parse_call,
     .print = print_call},
};

const weft_mlir_dialect standard_builtin = {
    .name = "builtin", .ops = builtin_ops, .op_count = sizeof builtin_ops / sizeof *builtin_ops};
const weft_mlir_dialect standard_func = {
    .name = "func", .ops = func_ops, .op_count = sizeof func_ops / sizeof *func_ops};
