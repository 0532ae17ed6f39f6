/* The scf dialect. */
#include "standard_private.h"

static const weft_mlir_type *index_type(weft_mlir_parser *p) { return weft_mlir_index(weft_mlir_parser_context(p)); }

/* (%a = %x, %b = %y): arguments and what they start with. */
typedef struct assignments {
  weft_mlir_argument *arguments;
  weft_mlir_operand *values;
  uint32_t count;
} assignments;

/* Keeps one slot free before the arguments, for a loop's induction value. */
static bool parse_assignments(weft_mlir_parser *p, assignments *a) {
  weft_arena *scratch = weft_mlir_parser_scratch(p);
  uint64_t room = 0, value_room = 0;
  a->count = 0;
  a->arguments = NULL;
  if (!weft_mlir_expect(p, "(")) return false;
  do {
    if (!weft_arena_grow(scratch, &a->arguments, a->count, &room, sizeof *a->arguments) ||
        !weft_arena_grow(scratch, &a->arguments, a->count + 1, &room, sizeof *a->arguments) ||
        !weft_arena_grow(scratch, &a->values, a->count, &value_room, sizeof *a->values))
      return weft_mlir_fail(p, "out of memory");
    if (a->count == 0 && weft_mlir_at(p, ")")) break;
    if (!weft_mlir_parse_argument(p, false, &a->arguments[a->count + 1]) || !weft_mlir_expect(p, "=") ||
        !weft_mlir_parse_operand(p, &a->values[a->count]))
      return false;
    a->count++;
  } while (weft_mlir_try(p, ","));
  return weft_mlir_expect(p, ")");
}

static bool give_types(weft_mlir_parser *p, assignments *a, const weft_mlir_type **types, uint32_t count) {
  if (a->count != count) return weft_mlir_fail(p, "%u types for %u values", count, a->count);
  for (uint32_t i = 0; i < count; i++) a->arguments[i + 1].type = types[i];
  return true;
}

static bool add_all(weft_mlir_parser *p, weft_mlir_state *state, const weft_mlir_operand *operands,
                    const weft_mlir_type **types, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!weft_mlir_add_operand(p, state, operands[i], types[i])) return false;
  return true;
}

static bool add_results(weft_mlir_parser *p, weft_mlir_state *state, const weft_mlir_type **types, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!weft_mlir_add_result(p, state, types[i])) return false;
  return true;
}

static bool wrong(const weft_mlir_op *op, const char *file, weft_diag *diag, const char *message) {
  return standard_wrong(op, file, diag, NULL, "%s", message);
}

/* Whether operands from `first` on have the types of `count` results. */
static bool operands_like_results(const weft_mlir_op *op, uint32_t first, const weft_mlir_op *results) {
  if (op->operand_count - first != results->result_count) return false;
  for (uint32_t i = 0; i < results->result_count; i++)
    if (op->operands[first + i]->type != results->results[i].type) return false;
  return true;
}

static bool ends_with_yield(const weft_mlir_op *op, uint32_t region) {
  const weft_mlir_block *block = weft_mlir_op_block(op, region);
  return block && block->last && weft_mlir_code(block->last) == WEFT_OP_SCF_YIELD;
}

/* ---- for ------------------------------------------------------------------------------------------------------ */

static bool parse_for(weft_mlir_parser *p, weft_mlir_state *state) {
  weft_mlir_context *context = weft_mlir_parser_context(p);
  weft_mlir_operand bounds[3];
  weft_mlir_argument alone, *arguments = &alone;
  assignments a = {.count = 0};
  const weft_mlir_type **types = NULL, *type = index_type(p);
  uint32_t count = 0;
  if (weft_mlir_try(p, "unsigned") && !weft_mlir_add_attribute(p, state, "unsignedCmp", weft_mlir_unit(context)))
    return false;
  if (!weft_mlir_parse_argument(p, false, &alone) || !weft_mlir_expect(p, "=") ||
      !weft_mlir_parse_operand(p, &bounds[0]) || !weft_mlir_expect(p, "to") ||
      !weft_mlir_parse_operand(p, &bounds[1]) || !weft_mlir_expect(p, "step") ||
      !weft_mlir_parse_operand(p, &bounds[2]))
    return false;
  if (weft_mlir_try(p, "iter_args")) {
    if (!parse_assignments(p, &a) || !weft_mlir_expect(p, "->") || !weft_mlir_parse_results(p, &types, &count) ||
        !give_types(p, &a, types, count))
      return false;
    arguments = a.arguments;
    arguments[0] = alone;
  }
  if (weft_mlir_try(p, ":") && !weft_mlir_parse_type(p, &type)) return false;
  arguments[0].type = type;
  for (int i = 0; i < 3; i++)
    if (!weft_mlir_add_operand(p, state, bounds[i], type)) return false;
  return add_all(p, state, a.values, types, count) && add_results(p, state, types, count) &&
         weft_mlir_parse_region(p, state, arguments, count + 1) && weft_mlir_parse_attr_dict(p, state);
}

static void put_assignments(weft_mlir_printer *p, const weft_mlir_op *op, const weft_mlir_block *block,
                            uint32_t argument, uint32_t operand) {
  weft_mlir_put(p, "(");
  for (uint32_t i = 0; operand + i < op->operand_count; i++) {
    if (i) weft_mlir_put(p, ", ");
    weft_mlir_put_value(p, &block->arguments[argument + i]);
    weft_mlir_put(p, " = ");
    weft_mlir_put_value(p, op->operands[operand + i]);
  }
  weft_mlir_put(p, ")");
}

static void put_results(weft_mlir_printer *p, const weft_mlir_op *op) {
  weft_mlir_put(p, " -> (");
  weft_mlir_put_result_types(p, op);
  weft_mlir_put(p, ")");
}

static void print_for(weft_mlir_printer *p, const weft_mlir_op *op) {
  const weft_mlir_block *body = weft_mlir_op_block(op, 0);
  weft_mlir_put(p, weft_mlir_attribute_of(op, "unsignedCmp") ? " unsigned " : " ");
  weft_mlir_put_value(p, &body->arguments[0]);
  static const char *const words[] = {" = ", " to ", " step "};
  for (int i = 0; i < 3; i++) {
    weft_mlir_put(p, words[i]);
    weft_mlir_put_value(p, op->operands[i]);
  }
  if (op->result_count) {
    weft_mlir_put(p, " iter_args");
    put_assignments(p, op, body, 1, 3);
    put_results(p, op);
  }
  if (op->operands[0]->type->kind != WEFT_MLIR_INDEX_TYPE) {
    weft_mlir_put(p, "  : ");
    weft_mlir_put_type(p, op->operands[0]->type);
  }
  weft_mlir_put(p, " ");
  weft_mlir_put_region(p, weft_mlir_op_region(op, 0), false, op->result_count > 0);
  weft_mlir_put_attr_dict(p, op, "unsignedCmp", false);
}

static bool verify_for(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  const weft_mlir_block *body = weft_mlir_op_block(op, 0);
  if (op->operand_count < 3 || !body || body->argument_count != op->operand_count - 2)
    return wrong(op, file, diag, "bounds, a step and one block with an argument for each carried value are needed");
  const weft_mlir_type *type = op->operands[0]->type;
  bool integer = type->kind == WEFT_MLIR_INDEX_TYPE || type->kind == WEFT_MLIR_INTEGER_TYPE;
  if (!integer || op->operands[1]->type != type || op->operands[2]->type != type || body->arguments[0].type != type)
    return wrong(op, file, diag, "bounds, step and induction value must have one integer or index type");
  for (uint32_t i = 3; i < op->operand_count; i++)
    if (body->arguments[i - 2].type != op->operands[i]->type)
      return wrong(op, file, diag, "a carried value changes its type");
  if (!operands_like_results(op, 3, op)) return wrong(op, file, diag, "results and carried values do not agree");
  return (ends_with_yield(op, 0) && operands_like_results(body->last, 0, op)) ||
         wrong(op, file, diag, "the body does not yield the results' types");
}

/* ---- while ---------------------------------------------------------------------------------------------------- */

static bool parse_while(weft_mlir_parser *p, weft_mlir_state *state) {
  assignments a = {.count = 0};
  const weft_mlir_type **inputs, **results;
  uint32_t input_count, result_count;
  static weft_mlir_argument none;
  if (weft_mlir_at(p, "(") && !parse_assignments(p, &a)) return false;
  if (!weft_mlir_expect(p, ":") || !weft_mlir_parse_functional(p, &inputs, &input_count, &results, &result_count) ||
      !give_types(p, &a, inputs, input_count) || !add_all(p, state, a.values, inputs, input_count) ||
      !add_results(p, state, results, result_count))
    return false;
  if (!weft_mlir_parse_region(p, state, a.count ? a.arguments + 1 : &none, a.count) || !weft_mlir_expect(p, "do") ||
      !weft_mlir_parse_region(p, state, NULL, 0))
    return false;
  return weft_mlir_parse_attr_dict_keyword(p, state);
}

static void print_while(weft_mlir_printer *p, const weft_mlir_op *op) {
  weft_mlir_put(p, " ");
  if (op->operand_count) {
    put_assignments(p, op, weft_mlir_op_block(op, 0), 0, 0);
    weft_mlir_put(p, " ");
  }
  weft_mlir_put(p, ": ");
  weft_mlir_put_functional(p, op);
  weft_mlir_put(p, " ");
  weft_mlir_put_region(p, weft_mlir_op_region(op, 0), false, true);
  weft_mlir_put(p, " do ");
  weft_mlir_put_region(p, weft_mlir_op_region(op, 1), true, true);
  weft_mlir_put_attr_dict(p, op, NULL, true);
}

static bool verify_while(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  const weft_mlir_block *before = weft_mlir_op_block(op, 0), *after = weft_mlir_op_block(op, 1);
  if (!before || !after || op->region_count != 2)
    return wrong(op, file, diag, "two regions of one block each are needed");
  if (before->argument_count != op->operand_count)
    return wrong(op, file, diag, "the first region needs an argument for each operand");
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (before->arguments[i].type != op->operands[i]->type)
      return wrong(op, file, diag, "an argument does not have its operand's type");
  const weft_mlir_op *condition = before->last, *yield = after->last;
  if (!condition || weft_mlir_code(condition) != WEFT_OP_SCF_CONDITION || !operands_like_results(condition, 1, op))
    return wrong(op, file, diag, "the first region must end in a scf.condition that passes the results' types on");
  if (after->argument_count != op->result_count)
    return wrong(op, file, diag, "the second region needs an argument for each result");
  for (uint32_t i = 0; i < op->result_count; i++)
    if (after->arguments[i].type != op->results[i].type)
      return wrong(op, file, diag, "an argument of the second region has another type");
  bool yields = ends_with_yield(op, 1) && yield->operand_count == op->operand_count;
  for (uint32_t i = 0; yields && i < op->operand_count; i++) yields = yield->operands[i]->type == op->operands[i]->type;
  return yields || wrong(op, file, diag, "the second region does not yield the operands' types");
}

static bool parse_condition(weft_mlir_parser *p, weft_mlir_state *state) {
  weft_mlir_operand condition;
  return weft_mlir_expect(p, "(") && weft_mlir_parse_operand(p, &condition) && weft_mlir_expect(p, ")") &&
         weft_mlir_add_operand(p, state, condition,
                               weft_mlir_integer(weft_mlir_parser_context(p), 1, WEFT_MLIR_SIGNLESS)) &&
         standard_parse_values(p, state);
}

static void print_condition(weft_mlir_printer *p, const weft_mlir_op *op) {
  weft_mlir_put(p, "(");
  weft_mlir_put_value(p, op->operands[0]);
  weft_mlir_put(p, ")");
  standard_print_values(p, op, 1);
}

static bool verify_condition(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  return (op->operand_count && weft_mlir_is_integer(op->operands[0]->type, 1)) ||
         wrong(op, file, diag, "the first operand must be i1");
}

/* ---- if and index_switch -------------------------------------------------------------------------------------- */

static bool optional_results(weft_mlir_parser *p, weft_mlir_state *state) {
  const weft_mlir_type **types;
  uint32_t count;
  return !weft_mlir_try(p, "->") || (weft_mlir_parse_results(p, &types, &count) && add_results(p, state, types, count));
}

static bool parse_if(weft_mlir_parser *p, weft_mlir_state *state) {
  weft_mlir_operand condition;
  static weft_mlir_argument none;
  if (!weft_mlir_parse_operand(p, &condition) ||
      !weft_mlir_add_operand(p, state, condition,
                             weft_mlir_integer(weft_mlir_parser_context(p), 1, WEFT_MLIR_SIGNLESS)) ||
      !optional_results(p, state) || !weft_mlir_parse_region(p, state, &none, 0))
    return false;
  bool otherwise = weft_mlir_try(p, "else");
  if (otherwise ? !weft_mlir_parse_region(p, state, &none, 0) : !weft_mlir_add_region(p, state)) return false;
  return weft_mlir_parse_attr_dict(p, state);
}

static void print_if(weft_mlir_printer *p, const weft_mlir_op *op) {
  weft_mlir_put(p, " ");
  weft_mlir_put_value(p, op->operands[0]);
  if (op->result_count) put_results(p, op);
  weft_mlir_put(p, " ");
  weft_mlir_put_region(p, weft_mlir_op_region(op, 0), false, op->result_count > 0);
  if (weft_mlir_op_region(op, 1)->first) {
    weft_mlir_put(p, " else ");
    weft_mlir_put_region(p, weft_mlir_op_region(op, 1), false, op->result_count > 0);
  }
  weft_mlir_put_attr_dict(p, op, NULL, false);
}

/* Region `index` yields the op's results and its block has no arguments. */
static bool branch_ok(const weft_mlir_op *op, uint32_t index) {
  const weft_mlir_block *block = weft_mlir_op_block(op, index);
  return block && !block->argument_count && ends_with_yield(op, index) && operands_like_results(block->last, 0, op);
}

static bool verify_if(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  if (op->operand_count != 1 || !weft_mlir_is_integer(op->operands[0]->type, 1) || op->region_count != 2)
    return wrong(op, file, diag, "a condition of type i1 and two regions are needed");
  if (!branch_ok(op, 0)) return wrong(op, file, diag, "the first branch does not yield the results' types");
  bool empty = !weft_mlir_op_region(op, 1)->first;
  if (empty) return !op->result_count || wrong(op, file, diag, "results need an else branch");
  return branch_ok(op, 1) || wrong(op, file, diag, "the else branch does not yield the results' types");
}

/* The types after -> stand without parentheses here. */
static bool switch_results(weft_mlir_parser *p, weft_mlir_state *state) {
  const weft_mlir_type **types;
  uint32_t count;
  return !weft_mlir_try(p, "->") || (weft_mlir_parse_types(p, &types, &count) && add_results(p, state, types, count));
}

static bool parse_index_switch(weft_mlir_parser *p, weft_mlir_state *state) {
  enum { MOST = 4096 };
  weft_mlir_context *context = weft_mlir_parser_context(p);
  static weft_mlir_argument none;
  weft_mlir_operand selector;
  int64_t *cases = NULL;
  uint64_t count = 0, capacity = 0;
  if (!weft_mlir_parse_operand(p, &selector) || !weft_mlir_add_operand(p, state, selector, index_type(p)) ||
      !weft_mlir_parse_attr_dict(p, state) || !switch_results(p, state))
    return false;
  /* The default's region is the first one, though its text comes last. */
  if (!weft_mlir_add_region(p, state)) return false;
  while (weft_mlir_try(p, "case")) {
    if (count == MOST) return weft_mlir_fail(p, "more than %d cases", MOST);
    if (!weft_arena_grow(weft_mlir_parser_scratch(p), &cases, count, &capacity, sizeof *cases))
      return weft_mlir_fail(p, "out of memory");
    if (!weft_mlir_parse_integer(p, &cases[count++]) || !weft_mlir_parse_region(p, state, &none, 0)) return false;
  }
  return weft_mlir_expect(p, "default") && weft_mlir_parse_region_into(p, state, 0, &none, 0) &&
         weft_mlir_add_attribute(p, state, "cases", weft_mlir_dense_array(context, 64, cases, (uint32_t)count));
}

static void print_index_switch(weft_mlir_printer *p, const weft_mlir_op *op) {
  const weft_mlir_attribute *cases = weft_mlir_attribute_of(op, "cases");
  weft_mlir_put(p, " ");
  weft_mlir_put_value(p, op->operands[0]);
  weft_mlir_put_attr_dict(p, op, "cases", false);
  if (op->result_count) {
    weft_mlir_put(p, " -> ");
    weft_mlir_put_result_types(p, op);
  }
  for (uint32_t i = 1; i < op->region_count; i++) {
    weft_mlir_putf(p, " case %lld ", (long long)weft_mlir_dense_integer(cases, i - 1));
    weft_mlir_put_region(p, weft_mlir_op_region(op, i), false, op->result_count > 0);
  }
  weft_mlir_put(p, " default ");
  weft_mlir_put_region(p, weft_mlir_op_region(op, 0), false, op->result_count > 0);
}

static bool verify_index_switch(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  const weft_mlir_attribute *cases = weft_mlir_attribute_of(op, "cases");
  if (op->operand_count != 1 || op->operands[0]->type->kind != WEFT_MLIR_INDEX_TYPE)
    return wrong(op, file, diag, "one index operand is needed");
  if (!cases || cases->kind != WEFT_MLIR_DENSE_ARRAY || cases->as.dense.elements + 1 != op->region_count)
    return wrong(op, file, diag, "each case needs a region, and the default one");
  for (uint32_t i = 0; i < op->region_count; i++)
    if (!branch_ok(op, i)) return wrong(op, file, diag, "a branch does not yield the results' types");
  for (uint64_t i = 0; i < cases->as.dense.elements; i++)
    for (uint64_t j = 0; j < i; j++)
      if (weft_mlir_dense_integer(cases, i) == weft_mlir_dense_integer(cases, j))
        return wrong(op, file, diag, "a case comes twice");
  return true;
}

/* ---- yield ---------------------------------------------------------------------------------------------------- */

static void print_yield(weft_mlir_printer *p, const weft_mlir_op *op) { standard_print_values(p, op, 0); }

static const weft_mlir_op_spec scf_ops[] = {
    {.name = "scf.for",
     .code = WEFT_OP_SCF_FOR,
     .traits = WEFT_MLIR_IMPLICIT_END,
     .inherent = "unsignedCmp",
     .implicit = "scf.yield",
     .parse = parse_for,
     .print = print_for,
     .verify = verify_for},
    {.name = "scf.while",
     .code = WEFT_OP_SCF_WHILE,
     .parse = parse_while,
     .print = print_while,
     .verify = verify_while},
    {.name = "scf.condition",
     .code = WEFT_OP_SCF_CONDITION,
     .traits = WEFT_MLIR_TERMINATOR,
     .parse = parse_condition,
     .print = print_condition,
     .verify = verify_condition},
    {.name = "scf.if",
     .code = WEFT_OP_SCF_IF,
     .traits = WEFT_MLIR_IMPLICIT_END,
     .implicit = "scf.yield",
     .parse = parse_if,
     .print = print_if,
     .verify = verify_if},
    {.name = "scf.index_switch",
     .code = WEFT_OP_SCF_INDEX_SWITCH,
     .traits = WEFT_MLIR_IMPLICIT_END,
     .inherent = "cases",
     .implicit = "scf.yield",
     .parse = parse_index_switch,
     .print = print_index_switch,
     .verify = verify_index_switch},
    {.name = "scf.yield",
     .code = WEFT_OP_SCF_YIELD,
     .traits = WEFT_MLIR_TERMINATOR,
     .parse = standard_parse_values,
     .print = print_yield},
    {.name = "scf.parallel",
     .code = WEFT_OP_SCF_PARALLEL,
     .traits = WEFT_MLIR_OPERAND_SEGMENTS | WEFT_MLIR_IMPLICIT_END,
     .inherent = "operandSegmentSizes",
     .implicit = "scf.reduce",
     .parse = standard_parse_parallel},
    {.name = "scf.reduce", .code = WEFT_OP_SCF_REDUCE, .traits = WEFT_MLIR_TERMINATOR, .parse = standard_parse_reduce},
    {.name = "scf.reduce.return",
     .code = WEFT_OP_SCF_REDUCE_RETURN,
     .traits = WEFT_MLIR_TERMINATOR,
     .format = "%0 attr-dict : T | T ->"},
    {.name = "scf.forall",
     .code = WEFT_OP_SCF_FORALL,
     .traits = WEFT_MLIR_OPERAND_SEGMENTS | WEFT_MLIR_IMPLICIT_END,
     .inherent = "operandSegmentSizes staticLowerBound staticUpperBound staticStep mapping",
     .implicit = "scf.forall.in_parallel",
     .parse = standard_parse_forall},
    {.name = "scf.forall.in_parallel",
     .code = WEFT_OP_SCF_IN_PARALLEL,
     .traits = WEFT_MLIR_TERMINATOR | WEFT_MLIR_ONE_REGION,
     .parse = standard_parse_in_parallel},
    {.name = "scf.execute_region",
     .code = WEFT_OP_SCF_EXECUTE_REGION,
     .inherent = "no_inline",
     .parse = standard_parse_execute_region},
};

const weft_mlir_dialect standard_scf = {.name = "scf", .ops = scf_ops, .op_count = sizeof scf_ops / sizeof *scf_ops};
