/* Declarative custom forms (weft_mlir_op_spec.format): compiled once, then read, printed and checked from the same
 * steps. */
#include "internal.h"

/* ---- compiling ------------------------------------------------------------------------------------------------ */

typedef struct compiler {
  weft_mlir_context *context;
  op_format *format;
  const char *at;
  bool failed;
} compiler;

static void skip_spaces(compiler *c) { c->at += strspn(c->at, " "); }

static bool starts(compiler *c, const char *text) {
  size_t length = strlen(text);
  if (strncmp(c->at, text, length) != 0) return false;
  c->at += length;
  return true;
}

static size_t word_length(const char *text) {
  return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
}

static const char *take(compiler *c, size_t length) {
  const char *text = weft_mlir_intern(c->context, c->at, length);
  c->at += length;
  if (!text) c->failed = true;
  return text;
}

static int variable(char c) { return c == 'T' ? 0 : c == 'U' ? 1 : c == 'V' ? 2 : -1; }

static void elide(op_format *format, const char *property) {
  size_t used = strlen(format->elided), length = strlen(property);
  if (used + length + 2 > sizeof format->elided) return;
  if (used) format->elided[used++] = ' ';
  memcpy(format->elided + used, property, length + 1);
}

static void compile_step(compiler *c) {
  if (c->format->step_count == FORMAT_STEPS) {
    c->failed = true;
    return;
  }
  format_step *step = &c->format->steps[c->format->step_count++];
  size_t length = word_length(c->at);
  if (starts(c, "%")) {
    step->index = (uint32_t)(*c->at++ - '0');
    step->kind = starts(c, "...") ? STEP_OPERANDS : STEP_OPERAND;
  } else if (starts(c, "attr-dict")) {
    step->kind = STEP_ATTR_DICT;
  } else if (starts(c, "same-or-fn")) {
    step->kind = STEP_SAME_OR_FUNCTIONAL;
  } else if (length == 2 && starts(c, "fn")) {
    step->kind = STEP_FUNCTIONAL;
  } else if (length == 1 && variable(*c->at) >= 0) {
    step->kind = STEP_TYPE;
    step->index = (uint32_t)variable(*c->at++);
  } else if (starts(c, "?")) {
    step->kind = STEP_OPTIONAL_WORD;
    step->text = step->property = take(c, word_length(c->at));
    if (starts(c, "=")) step->property = take(c, word_length(c->at));
  } else if (starts(c, "flags(")) {
    step->kind = STEP_FLAGS;
    step->text = take(c, word_length(c->at));
    if (!starts(c, ",")) c->failed = true;
    step->property = take(c, word_length(c->at));
    if (!starts(c, ")")) c->failed = true;
  } else {
    step->kind = STEP_LITERAL;
    step->text = take(c, length ? length : strncmp(c->at, "->", 2) == 0 ? 2 : 1);
  }
  if (step->property) elide(c->format, step->property);
}

static void compile_rule(compiler *c, type_rule *rule) {
  size_t length = word_length(c->at);
  if (strncmp(c->at, "elem(", 5) == 0) {
    *rule = (type_rule){.kind = RULE_ELEMENT, .index = (uint32_t)variable(c->at[5])};
    c->at += 7;
  } else if (strncmp(c->at, "param(", 6) == 0) {
    *rule = (type_rule){.kind = RULE_PARAMETER, .index = (uint32_t)variable(c->at[6])};
    c->at += 8;
  } else if (length == 1 && variable(*c->at) >= 0) {
    *rule = (type_rule){.kind = RULE_VARIABLE, .index = (uint32_t)variable(*c->at++)};
  } else {
    rule->kind = RULE_FIXED;
    if (starts(c, "i1"))
      rule->fixed = c->context->i1;
    else if (starts(c, "index"))
      rule->fixed = c->context->index;
    else if (starts(c, "none"))
      rule->fixed = c->context->none;
    else if (starts(c, "i64"))
      rule->fixed = c->context->i64;
    else
      c->failed = true;
  }
}

/* "T index... -> elem(T)" */
static void compile_rules(compiler *c) {
  op_format *f = c->format;
  bool results = false;
  f->typed = true;
  for (skip_spaces(c); *c->at && !c->failed; skip_spaces(c)) {
    if (starts(c, "->")) {
      results = true;
      continue;
    }
    uint32_t *count = results ? &f->result_count : &f->operand_count;
    if (*count == FORMAT_TYPES) {
      c->failed = true;
      return;
    }
    compile_rule(c, results ? &f->results[*count] : &f->operands[*count]);
    ++*count;
    if (starts(c, "...")) *(results ? &f->results_repeat : &f->operands_repeat) = true;
  }
}

bool mlir_format_compile(weft_mlir_context *context, const weft_mlir_op_spec *spec, op_format *format,
                         weft_diag *diag) {
  compiler c = {.context = context, .format = format, .at = spec->format};
  for (skip_spaces(&c); *c.at && *c.at != '|' && !c.failed; skip_spaces(&c)) compile_step(&c);
  if (!c.failed && starts(&c, "|")) compile_rules(&c);
  if (!c.failed) return true;
  weft_error(diag, WEFT_USAGE, NULL, "the format of %s cannot be read", spec->name);
  return false;
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

enum { VARIABLES = 3 };

typedef struct reading {
  weft_mlir_operand *operands;
  uint64_t count, capacity;
  const weft_mlir_type *types[VARIABLES];
  bool resolved; /* a functional type has settled operands and results */
} reading;

static bool read_operand(weft_mlir_parser *p, reading *r) {
  if (!weft_arena_grow(p->scratch, &r->operands, r->count, &r->capacity, sizeof *r->operands)) return parser_memory(p);
  return weft_mlir_parse_operand(p, &r->operands[r->count++]);
}

static bool read_operands(weft_mlir_parser *p, reading *r) {
  if (p->token.kind == TOKEN_VALUE) do {
      if (!read_operand(p, r)) return false;
    } while (parser_take(p, ','));
  return true;
}

static bool read_functional(weft_mlir_parser *p, reading *r, weft_mlir_state *state) {
  const weft_mlir_type **inputs, **results;
  uint32_t input_count, result_count;
  if (!weft_mlir_parse_functional(p, &inputs, &input_count, &results, &result_count)) return false;
  if (input_count != r->count)
    return weft_mlir_fail(p, "%u operand types for %u operands", input_count, (uint32_t)r->count);
  for (uint32_t i = 0; i < input_count; i++)
    if (!weft_mlir_add_operand(p, state, r->operands[i], inputs[i])) return false;
  for (uint32_t i = 0; i < result_count; i++)
    if (!weft_mlir_add_result(p, state, results[i])) return false;
  r->resolved = true;
  return true;
}

static bool read_same(weft_mlir_parser *p, reading *r, weft_mlir_state *state) {
  if (parser_is(p, '(')) return read_functional(p, r, state);
  const weft_mlir_type *type;
  if (!parser_type(p, &type)) return false;
  for (uint64_t i = 0; i < r->count; i++)
    if (!weft_mlir_add_operand(p, state, r->operands[i], type)) return false;
  r->resolved = true;
  return weft_mlir_add_result(p, state, type);
}

bool weft_mlir_parse_flags(weft_mlir_parser *p, const char *name, const weft_mlir_attribute **flags) {
  const char *word = strrchr(name, '.') + 1;
  weft_mlir_attribute shape = {.kind = WEFT_MLIR_DIALECT};
  shape.as.dialect.name = name;
  if (!weft_mlir_expect(p, word)) return false;
  if (!parser_is(p, '<')) return weft_mlir_fail(p, "expected '<' after %s", word);
  if (!parser_angle_text(p, &shape.as.dialect.body)) return false;
  *flags = weft_mlir_attribute_get(p->context, &shape);
  return *flags || parser_memory(p);
}

static bool read_flags(weft_mlir_parser *p, const format_step *step, weft_mlir_state *state) {
  if (!parser_is_word(p, strrchr(step->text, '.') + 1)) return true;
  const weft_mlir_attribute *flags;
  return weft_mlir_parse_flags(p, step->text, &flags) && weft_mlir_add_attribute(p, state, step->property, flags);
}

static bool read_step(weft_mlir_parser *p, const format_step *step, reading *r, weft_mlir_state *state) {
  switch (step->kind) {
  case STEP_OPERAND: return read_operand(p, r);
  case STEP_OPERANDS: return read_operands(p, r);
  case STEP_TYPE: return parser_type(p, &r->types[step->index]);
  case STEP_FUNCTIONAL: return read_functional(p, r, state);
  case STEP_SAME_OR_FUNCTIONAL: return read_same(p, r, state);
  case STEP_ATTR_DICT: return weft_mlir_parse_attr_dict(p, state);
  case STEP_OPTIONAL_WORD:
    return !weft_mlir_try(p, step->text) || weft_mlir_add_attribute(p, state, step->property, p->context->unit);
  case STEP_FLAGS: return read_flags(p, step, state);
  case STEP_LITERAL: return weft_mlir_expect(p, step->text);
  }
  return false;
}

static const weft_mlir_type *apply_rule(const type_rule *rule, const weft_mlir_type *const *types) {
  if (rule->kind == RULE_FIXED) return rule->fixed;
  const weft_mlir_type *type = types[rule->index];
  if (!type || rule->kind == RULE_VARIABLE) return type;
  if (rule->kind == RULE_ELEMENT) return type->element;
  bool parameter = type->parameter_count && type->parameters[0]->kind == WEFT_MLIR_TYPE;
  return parameter ? type->parameters[0]->as.type_value : NULL;
}

static const type_rule *rule_for(const type_rule *rules, uint32_t count, uint64_t index) {
  return &rules[index < count ? index : count - 1];
}

static bool read_types(weft_mlir_parser *p, const op_format *f, reading *r, weft_mlir_state *state) {
  bool enough = f->operands_repeat ? r->count + 1 >= f->operand_count : r->count == f->operand_count;
  if (!enough)
    return weft_mlir_fail(p, "%s takes %u operands, %u are given", state->name->public.text, f->operand_count,
                          (uint32_t)r->count);
  for (uint64_t i = 0; i < r->count; i++) {
    const weft_mlir_type *type = apply_rule(rule_for(f->operands, f->operand_count, i), r->types);
    if (!type) return weft_mlir_fail(p, "the type has no element type");
    if (!weft_mlir_add_operand(p, state, r->operands[i], type)) return false;
  }
  uint32_t results = f->results_repeat ? state->declared_results : f->result_count;
  for (uint32_t i = 0; i < results; i++) {
    const weft_mlir_type *type = apply_rule(rule_for(f->results, f->result_count, i), r->types);
    if (!type) return weft_mlir_fail(p, "the type has no element type");
    if (!weft_mlir_add_result(p, state, type)) return false;
  }
  return true;
}

bool mlir_format_parse(weft_mlir_parser *p, const op_format *f, weft_mlir_state *state) {
  reading r = {.count = 0};
  for (uint32_t i = 0; i < f->step_count; i++)
    if (!read_step(p, &f->steps[i], &r, state)) return false;
  return r.resolved || read_types(p, f, &r, state);
}

/* ---- printing ------------------------------------------------------------------------------------------------- */

/* The type that variable `index` stands for in this op. */
static const weft_mlir_type *variable_type(const op_format *f, const weft_mlir_op *op, uint32_t index) {
  for (uint32_t i = 0; i < f->operand_count && i < op->operand_count; i++)
    if (f->operands[i].kind == RULE_VARIABLE && f->operands[i].index == index) return op->operands[i]->type;
  for (uint32_t i = 0; i < f->result_count && i < op->result_count; i++)
    if (f->results[i].kind == RULE_VARIABLE && f->results[i].index == index) return op->results[i].type;
  return NULL;
}

static bool one_type(const weft_mlir_op *op) {
  const weft_mlir_type *type = op->result_count ? op->results[0].type : NULL;
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (op->operands[i]->type != type) return false;
  return op->result_count == 1;
}

static bool tight(const char *literal) { return strchr(",)]([", *literal) != NULL; }

static void print_step(weft_mlir_printer *p, const op_format *f, const format_step *step, const weft_mlir_op *op,
                       bool space) {
  const weft_mlir_attribute *a = step->property ? weft_mlir_attribute_of(op, step->property) : NULL;
  bool shown = step->kind != STEP_ATTR_DICT && (!step->property || a);
  if (step->kind == STEP_OPERANDS && op->operand_count <= step->index) shown = false;
  if (step->kind == STEP_FLAGS && a)
    for (uint32_t i = 0; i < mlir_op_name_of(op)->inherent_count; i++)
      if (mlir_op_name_of(op)->inherents[i].otherwise == a) shown = false;
  if (space && shown && !(step->kind == STEP_LITERAL && tight(step->text))) printer_char(p, ' ');
  switch (step->kind) {
  case STEP_OPERAND: weft_mlir_put_value(p, op->operands[step->index]); break;
  case STEP_OPERANDS: weft_mlir_put_operands(p, op, step->index, op->operand_count); break;
  case STEP_TYPE: weft_mlir_put_type(p, variable_type(f, op, step->index)); break;
  case STEP_SAME_OR_FUNCTIONAL:
    if (one_type(op)) {
      weft_mlir_put_type(p, op->results[0].type);
      break;
    }
    weft_mlir_put_functional(p, op);
    break;
  case STEP_FUNCTIONAL: weft_mlir_put_functional(p, op); break;
  case STEP_ATTR_DICT: weft_mlir_put_attr_dict(p, op, f->elided, false); break;
  case STEP_OPTIONAL_WORD:
    if (shown) weft_mlir_put(p, step->text);
    break;
  case STEP_FLAGS:
    if (shown) weft_mlir_putf(p, "%s<%s>", strrchr(step->text, '.') + 1, a->as.dialect.body ? a->as.dialect.body : "");
    break;
  case STEP_LITERAL: weft_mlir_put(p, step->text); break;
  }
}

void mlir_format_print(weft_mlir_printer *p, const op_format *f, const weft_mlir_op *op) {
  bool space = true;
  for (uint32_t i = 0; i < f->step_count; i++) {
    const format_step *step = &f->steps[i];
    print_step(p, f, step, op, space);
    space = !(step->kind == STEP_LITERAL && (*step->text == '[' || *step->text == '('));
  }
}

/* ---- checking ------------------------------------------------------------------------------------------------- */

static bool wrong(const weft_mlir_op *op, const char *file, weft_diag *diag, const char *what, uint32_t index,
                  const weft_mlir_type *is, const weft_mlir_type *wanted) {
  weft_text a = {0}, b = {0};
  weft_mlir_type_text(is, &a);
  if (wanted) weft_mlir_type_text(wanted, &b);
  weft_error_at(diag, WEFT_INVALID, weft_mlir_place(file, op), NULL, "%s %u of %s has type %s%s%s", what, index,
                op->name->text, a.data ? a.data : "?", wanted ? ", expected " : ", which has no element type",
                b.data ? b.data : "");
  weft_text_free(&a);
  weft_text_free(&b);
  return false;
}

/* Binds a variable at its first occurrence and compares afterwards. */
static bool check_type(const type_rule *rule, const weft_mlir_type **types, const weft_mlir_type *type,
                       const weft_mlir_type **wanted) {
  if (rule->kind == RULE_VARIABLE && !types[rule->index]) types[rule->index] = type;
  *wanted = apply_rule(rule, types);
  return *wanted == type;
}

bool mlir_format_verify(const op_format *f, const weft_mlir_op *op, const char *file, weft_diag *diag) {
  if (!f->typed) return true;
  bool operands =
      f->operands_repeat ? op->operand_count + 1 >= f->operand_count : op->operand_count == f->operand_count;
  bool results = f->results_repeat ? op->result_count + 1 >= f->result_count : op->result_count == f->result_count;
  if (!operands || !results) {
    weft_error_at(diag, WEFT_INVALID, weft_mlir_place(file, op), NULL,
                  "%s has %u operands and %u results, expected %u and %u", op->name->text, op->operand_count,
                  op->result_count, f->operand_count, f->result_count);
    return false;
  }
  const weft_mlir_type *types[VARIABLES] = {NULL}, *wanted;
  /* Variables first: elem(T) may stand before T. */
  for (uint32_t i = 0; i < f->operand_count && i < op->operand_count; i++)
    if (f->operands[i].kind == RULE_VARIABLE && !types[f->operands[i].index])
      types[f->operands[i].index] = op->operands[i]->type;
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (!check_type(rule_for(f->operands, f->operand_count, i), types, op->operands[i]->type, &wanted))
      return wrong(op, file, diag, "operand", i, op->operands[i]->type, wanted);
  for (uint32_t i = 0; i < op->result_count; i++)
    if (!check_type(rule_for(f->results, f->result_count, i), types, op->results[i].type, &wanted))
      return wrong(op, file, diag, "result", i, op->results[i].type, wanted);
  return true;
}
