/* The arith and math dialects. */
#include "standard_private.h"

static bool parse_constant(weft_mlir_parser *p, weft_mlir_state *state) {
  const weft_mlir_attribute *value;
  if (!weft_mlir_parse_attr_dict(p, state) || !weft_mlir_parse_attribute(p, NULL, &value)) return false;
  if (!value->type) return weft_mlir_fail(p, "the constant has no type");
  return weft_mlir_add_attribute(p, state, "value", value) && weft_mlir_add_result(p, state, value->type);
}

static void print_constant(weft_mlir_printer *p, const weft_mlir_op *op) {
  weft_mlir_put_attr_dict(p, op, "value", false);
  weft_mlir_put(p, " ");
  weft_mlir_put_attribute(p, weft_mlir_attribute_of(op, "value"));
}

static bool verify_constant(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  const weft_mlir_attribute *value = weft_mlir_attribute_of(op, "value");
  bool good = value && op->result_count == 1 && !op->operand_count && value->type == op->results[0].type;
  return good || standard_wrong(op, file, diag, NULL, "a value of the result's type is needed");
}

#define NAME(name) #name,
static const char *const cmpi_names[] = {WEFT_MLIR_CMPI(NAME)};
static const char *const cmpf_names[] = {WEFT_MLIR_CMPF(NAME)};
#undef NAME
enum { CMPF_COUNT = sizeof cmpf_names / sizeof *cmpf_names };

/* predicate, %a, %b [fastmath<...>] {attributes} : type */
static bool parse_compare(weft_mlir_parser *p, weft_mlir_state *state, const char *const *names, uint32_t count,
                          bool fastmath) {
  weft_mlir_context *context = weft_mlir_parser_context(p);
  const char *word;
  if (!weft_mlir_parse_word(p, &word)) return false;
  uint32_t predicate = 0;
  while (predicate < count && strcmp(names[predicate], word) != 0) predicate++;
  if (predicate == count) return weft_mlir_fail(p, "%s is no predicate", word);
  const weft_mlir_type *i64 = weft_mlir_integer(context, 64, WEFT_MLIR_SIGNLESS), *type;
  weft_mlir_operand a, b;
  if (!weft_mlir_add_attribute(p, state, "predicate", weft_mlir_integer_attribute(context, i64, predicate)) ||
      !weft_mlir_expect(p, ",") || !weft_mlir_parse_operand(p, &a) || !weft_mlir_expect(p, ",") ||
      !weft_mlir_parse_operand(p, &b))
    return false;
  if (fastmath && weft_mlir_at(p, "fastmath")) {
    const weft_mlir_attribute *flags;
    if (!weft_mlir_parse_flags(p, "arith.fastmath", &flags) || !weft_mlir_add_attribute(p, state, "fastmath", flags))
      return false;
  }
  if (!weft_mlir_parse_attr_dict(p, state) || !weft_mlir_expect(p, ":") || !weft_mlir_parse_type(p, &type))
    return false;
  return weft_mlir_add_operand(p, state, a, type) && weft_mlir_add_operand(p, state, b, type) &&
         weft_mlir_add_result(p, state, weft_mlir_integer(context, 1, WEFT_MLIR_SIGNLESS));
}

static bool parse_cmpi(weft_mlir_parser *p, weft_mlir_state *state) {
  return parse_compare(p, state, cmpi_names, WEFT_CMPI_COUNT, false);
}
static bool parse_cmpf(weft_mlir_parser *p, weft_mlir_state *state) {
  return parse_compare(p, state, cmpf_names, CMPF_COUNT, true);
}

static void print_compare(weft_mlir_printer *p, const weft_mlir_op *op, const char *const *names) {
  weft_mlir_putf(p, " %s, ", names[weft_mlir_attribute_integer(op, "predicate", 0)]);
  weft_mlir_put_operands(p, op, 0, 2);
  const weft_mlir_attribute *flags = weft_mlir_attribute_of(op, "fastmath");
  const char *body = flags && flags->kind == WEFT_MLIR_DIALECT ? flags->as.dialect.body : NULL;
  if (body && strcmp(body, "none") != 0) weft_mlir_putf(p, " fastmath<%s>", body);
  weft_mlir_put_attr_dict(p, op, "predicate fastmath", false);
  weft_mlir_put(p, " : ");
  weft_mlir_put_type(p, op->operands[0]->type);
}

static void print_cmpi(weft_mlir_printer *p, const weft_mlir_op *op) { print_compare(p, op, cmpi_names); }
static void print_cmpf(weft_mlir_printer *p, const weft_mlir_op *op) { print_compare(p, op, cmpf_names); }

static bool verify_compare(const weft_mlir_op *op, const char *file, weft_diag *diag, int64_t count) {
  int64_t predicate = weft_mlir_attribute_integer(op, "predicate", -1);
  bool types = op->operand_count == 2 && op->result_count == 1 && op->operands[0]->type == op->operands[1]->type;
  if (!types) return standard_wrong(op, file, diag, NULL, "two operands of one type and one result are needed");
  if (predicate < 0 || predicate >= count) return standard_wrong(op, file, diag, NULL, "the predicate is not known");
  const weft_mlir_type *type = op->operands[0]->type, *result = op->results[0].type;
  bool scalar =
      type->rank == 0 && !type->unranked && type->kind != WEFT_MLIR_TENSOR_TYPE && type->kind != WEFT_MLIR_VECTOR_TYPE;
  return !scalar || weft_mlir_is_integer(result, 1) || standard_wrong(op, file, diag, NULL, "the result must be i1");
}

static bool verify_cmpi(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  return verify_compare(op, file, diag, WEFT_CMPI_COUNT);
}
static bool verify_cmpf(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  return verify_compare(op, file, diag, CMPF_COUNT);
}

#define SPEC(identifier, op_name, inherents, form)                                                                     \
  {.name = op_name, .code = WEFT_OP_##identifier, .traits = WEFT_MLIR_PURE, .inherent = inherents, .format = form},
static const weft_mlir_op_spec arith_ops[] = {{.name = "arith.constant",
                                               .code = WEFT_OP_ARITH_CONSTANT,
                                               .traits = WEFT_MLIR_PURE,
                                               .inherent = "value",
                                               .parse = parse_constant,
                                               .print = print_constant,
                                               .verify = verify_constant},
                                              {.name = "arith.cmpi",
                                               .code = WEFT_OP_ARITH_CMPI,
                                               .traits = WEFT_MLIR_PURE,
                                               .inherent = "predicate",
                                               .parse = parse_cmpi,
                                               .print = print_cmpi,
                                               .verify = verify_cmpi},
                                              {.name = "arith.cmpf",
                                               .code = WEFT_OP_ARITH_CMPF,
                                               .traits = WEFT_MLIR_PURE,
                                               .inherent = "predicate " WEFT_MLIR_FASTMATH,
                                               .parse = parse_cmpf,
                                               .print = print_cmpf,
                                               .verify = verify_cmpf},
                                              WEFT_MLIR_ARITH_OPS(SPEC)};
static const weft_mlir_op_spec math_ops[] = {WEFT_MLIR_MATH_OPS(SPEC)};
#undef SPEC

const weft_mlir_dialect standard_arith = {
    .name = "arith", .ops = arith_ops, .op_count = sizeof arith_ops / sizeof *arith_ops};
const weft_mlir_dialect standard_math = {
    .name = "math", .ops = math_ops, .op_count = sizeof math_ops / sizeof *math_ops};
