/* Integer arithmetic, comparisons and conversions, and which function an op uses. */
#include "compute.h"

#include <math.h>
#include <string.h>

bool scalar_of(const weft_mlir_type *type, scalar *result) {
  *result = (scalar){.type = type};
  switch (type->kind) {
  case WEFT_MLIR_NONE_TYPE: return true;
  case WEFT_MLIR_INDEX_TYPE:
    result->kind = SCALAR_INTEGER;
    result->width = 64;
    return true;
  case WEFT_MLIR_INTEGER_TYPE:
    result->kind = SCALAR_INTEGER;
    result->width = type->width;
    return type->width >= 1 && type->width <= 64 && type->sign == WEFT_MLIR_SIGNLESS;
  case WEFT_MLIR_FLOAT_TYPE:
    result->kind = SCALAR_FLOAT;
    result->width = type->width;
    return strcmp(type->name, "f32") == 0 || strcmp(type->name, "f64") == 0 || strcmp(type->name, "f16") == 0 ||
           strcmp(type->name, "bf16") == 0;
  case WEFT_MLIR_FUNCTION_TYPE:
  case WEFT_MLIR_MEMREF_TYPE:
  case WEFT_MLIR_TENSOR_TYPE:
  case WEFT_MLIR_VECTOR_TYPE:
  case WEFT_MLIR_COMPLEX_TYPE:
  case WEFT_MLIR_TUPLE_TYPE:
  case WEFT_MLIR_DIALECT_TYPE: break;
  }
  return false;
}

bool compute_constant(const weft_mlir_attribute *value, uint64_t *word) {
  if (value && value->kind == WEFT_MLIR_INTEGER)
    *word = (uint64_t)value->as.integer;
  else if (value && value->kind == WEFT_MLIR_FLOAT)
    *word = value->as.bits;
  else
    return false;
  return true;
}

/* ---- integers ------------------------------------------------------------------------------------------------- */

/* A function over two integers: sa, sb signed, ua, ub unsigned, w their width. */
#define INTEGER(name, expression)                                                                                      \
  static weft_fault name(const compute *c, const uint64_t *in, uint64_t *out) {                                        \
    uint32_t w = c->width;                                                                                             \
    int64_t sa = scalar_signed(w, in[0]), sb = scalar_signed(w, in[1]);                                                \
    uint64_t ua = scalar_unsigned(w, in[0]), ub = scalar_unsigned(w, in[1]);                                           \
    (void)sa, (void)sb, (void)ua, (void)ub;                                                                            \
    *out = scalar_wrap(w, (uint64_t)(expression));                                                                     \
    return WEFT_FAULT_NONE;                                                                                            \
  }
/* The same with a fault where `bad` holds. */
#define CHECKED(name, bad, fault, expression)                                                                          \
  static weft_fault name(const compute *c, const uint64_t *in, uint64_t *out) {                                        \
    uint32_t w = c->width;                                                                                             \
    int64_t sa = scalar_signed(w, in[0]), sb = scalar_signed(w, in[1]);                                                \
    uint64_t ua = scalar_unsigned(w, in[0]), ub = scalar_unsigned(w, in[1]);                                           \
    (void)sa, (void)sb, (void)ua, (void)ub;                                                                            \
    if (bad) return fault;                                                                                             \
    *out = scalar_wrap(w, (uint64_t)(expression));                                                                     \
    return WEFT_FAULT_NONE;                                                                                            \
  }

static int64_t least(uint32_t width) { return width == 64 ? INT64_MIN : -((int64_t)1 << (width - 1)); }

INTEGER(addi, ua + ub)
INTEGER(subi, ua - ub)
INTEGER(muli, ua *ub)
INTEGER(andi, ua &ub)
INTEGER(ori, ua | ub)
INTEGER(xori, ua ^ ub)
INTEGER(maxsi, sa > sb ? sa : sb)
INTEGER(minsi, sa < sb ? sa : sb)
INTEGER(maxui, ua > ub ? ua : ub)
INTEGER(minui, ua < ub ? ua : ub)
CHECKED(divui, ub == 0, WEFT_FAULT_DIVISION, ua / ub)
CHECKED(remui, ub == 0, WEFT_FAULT_DIVISION, ua % ub)
CHECKED(ceildivui, ub == 0, WEFT_FAULT_DIVISION, ua / ub + (ua % ub != 0))
#define DIVISION(name, expression)                                                                                     \
  CHECKED(name, sb == 0 || (sb == -1 && sa == least(w)), sb == 0 ? WEFT_FAULT_DIVISION : WEFT_FAULT_OVERFLOW,          \
          expression)
DIVISION(divsi, sa / sb)
DIVISION(remsi, sa % sb)
DIVISION(ceildivsi, sa / sb + (sa % sb != 0 && (sa < 0) == (sb < 0)))
DIVISION(floordivsi, sa / sb - (sa % sb != 0 && (sa < 0) != (sb < 0)))
CHECKED(shli, ub >= w, WEFT_FAULT_SHIFT, ua << ub)
CHECKED(shrsi, ub >= w, WEFT_FAULT_SHIFT, sa >> ub)
CHECKED(shrui, ub >= w, WEFT_FAULT_SHIFT, ua >> ub)

/* A function of one integer. */
#define INTEGER_1(name, expression)                                                                                    \
  static weft_fault name(const compute *c, const uint64_t *in, uint64_t *out) {                                        \
    uint32_t w = c->width;                                                                                             \
    uint64_t ua = scalar_unsigned(w, in[0]);                                                                           \
    int64_t sa = scalar_signed(w, in[0]);                                                                              \
    (void)sa, (void)ua;                                                                                                \
    *out = scalar_wrap(c->out_width, (uint64_t)(expression));                                                          \
    return WEFT_FAULT_NONE;                                                                                            \
  }
INTEGER_1(absi, sa < 0 ? 0 - (uint64_t)sa : (uint64_t)sa)
INTEGER_1(ctpop, __builtin_popcountll(ua))
INTEGER_1(ctlz, ua ? (uint64_t)__builtin_clzll(ua) - (64 - w) : w)
INTEGER_1(cttz, ua ? (uint64_t)__builtin_ctzll(ua) : w)
INTEGER_1(extend_signed, sa)
INTEGER_1(extend_unsigned, ua)

static weft_fault cmpi(const compute *c, const uint64_t *in, uint64_t *out) {
  int64_t sa = scalar_signed(c->width, in[0]), sb = scalar_signed(c->width, in[1]);
  uint64_t ua = scalar_unsigned(c->width, in[0]), ub = scalar_unsigned(c->width, in[1]);
  switch ((weft_mlir_cmpi)c->predicate) {
  case WEFT_CMPI_eq: *out = ua == ub; break;
  case WEFT_CMPI_ne: *out = ua != ub; break;
  case WEFT_CMPI_slt: *out = sa < sb; break;
  case WEFT_CMPI_sle: *out = sa <= sb; break;
  case WEFT_CMPI_sgt: *out = sa > sb; break;
  case WEFT_CMPI_sge: *out = sa >= sb; break;
  case WEFT_CMPI_ult: *out = ua < ub; break;
  case WEFT_CMPI_ule: *out = ua <= ub; break;
  case WEFT_CMPI_ugt: *out = ua > ub; break;
  case WEFT_CMPI_uge: *out = ua >= ub; break;
  case WEFT_CMPI_COUNT: break;
  }
  return WEFT_FAULT_NONE;
}

static weft_fault select_lane(const compute *c, const uint64_t *in, uint64_t *out) {
  (void)c;
  *out = in[0] & 1 ? in[1] : in[2];
  return WEFT_FAULT_NONE;
}

/* ---- between integers and floats ------------------------------------------------------------------------------ */

static weft_fault sitofp(const compute *c, const uint64_t *in, uint64_t *out) {
  int64_t value = scalar_signed(c->width, in[0]);
  if (c->out_width == 32) {
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    *out = bits;
  } else {
    weft_mlir_float_round(c->out_type, (double)value, out);
  }
  return WEFT_FAULT_NONE;
}

static weft_fault uitofp(const compute *c, const uint64_t *in, uint64_t *out) {
  uint64_t value = scalar_unsigned(c->width, in[0]);
  if (c->out_width == 32) {
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    *out = bits;
  } else {
    weft_mlir_float_round(c->out_type, (double)value, out);
  }
  return WEFT_FAULT_NONE;
}

static weft_fault fptosi(const compute *c, const uint64_t *in, uint64_t *out) {
  double value = trunc(weft_mlir_float_value(c->in_type, in[0])), limit = ldexp(1.0, (int)c->out_width - 1);
  if (!(value >= -limit && value < limit)) return WEFT_FAULT_OVERFLOW;
  *out = scalar_wrap(c->out_width, (uint64_t)(int64_t)value);
  return WEFT_FAULT_NONE;
}

static weft_fault fptoui(const compute *c, const uint64_t *in, uint64_t *out) {
  double value = trunc(weft_mlir_float_value(c->in_type, in[0]));
  if (!(value > -1.0 && value < ldexp(1.0, (int)c->out_width))) return WEFT_FAULT_OVERFLOW;
  *out = scalar_wrap(c->out_width, (uint64_t)value);
  return WEFT_FAULT_NONE;
}

static weft_fault convert_float(const compute *c, const uint64_t *in, uint64_t *out) {
  weft_mlir_float_round(c->out_type, weft_mlir_float_value(c->in_type, in[0]), out);
  return WEFT_FAULT_NONE;
}

static weft_fault bitcast(const compute *c, const uint64_t *in, uint64_t *out) {
  uint64_t bits = scalar_unsigned(c->width, in[0]);
  *out = c->out_type ? bits : scalar_wrap(c->out_width, bits);
  return WEFT_FAULT_NONE;
}

/* ---- which one ------------------------------------------------------------------------------------------------ */

#define INTEGER_FUNCTIONS(ROW)                                                                                         \
  ROW(ARITH_ADDI, addi)                                                                                                \
  ROW(ARITH_SUBI, subi)                                                                                                \
  ROW(ARITH_MULI, muli)                                                                                                \
  ROW(ARITH_DIVSI, divsi)                                                                                              \
  ROW(ARITH_DIVUI, divui)                                                                                              \
  ROW(ARITH_CEILDIVSI, ceildivsi)                                                                                      \
  ROW(ARITH_CEILDIVUI, ceildivui)                                                                                      \
  ROW(ARITH_FLOORDIVSI, floordivsi)                                                                                    \
  ROW(ARITH_REMSI, remsi)                                                                                              \
  ROW(ARITH_REMUI, remui)                                                                                              \
  ROW(ARITH_ANDI, andi)                                                                                                \
  ROW(ARITH_ORI, ori)                                                                                                  \
  ROW(ARITH_XORI, xori)                                                                                                \
  ROW(ARITH_SHLI, shli)                                                                                                \
  ROW(ARITH_SHRSI, shrsi)                                                                                              \
  ROW(ARITH_SHRUI, shrui)                                                                                              \
  ROW(ARITH_MAXSI, maxsi)                                                                                              \
  ROW(ARITH_MAXUI, maxui)                                                                                              \
  ROW(ARITH_MINSI, minsi)                                                                                              \
  ROW(ARITH_MINUI, minui)                                                                                              \
  ROW(ARITH_CMPI, cmpi)                                                                                                \
  ROW(ARITH_EXTSI, extend_signed)                                                                                      \
  ROW(ARITH_EXTUI, extend_unsigned)                                                                                    \
  ROW(ARITH_TRUNCI, extend_signed)                                                                                     \
  ROW(ARITH_INDEX_CAST, extend_signed)                                                                                 \
  ROW(ARITH_INDEX_CASTUI, extend_unsigned)                                                                             \
  ROW(MATH_ABSI, absi)                                                                                                 \
  ROW(MATH_CTLZ, ctlz)                                                                                                 \
  ROW(MATH_CTPOP, ctpop)                                                                                               \
  ROW(MATH_CTTZ, cttz)

static compute_function integer_function(uint32_t code) {
  switch (code) {
#define ROW(identifier, function)                                                                                      \
  case WEFT_OP_##identifier: return function;
    INTEGER_FUNCTIONS(ROW)
#undef ROW
  default: return NULL;
  }
}

/* Those that have an operand and a result of different kinds. */
static compute_function mixed_function(uint32_t code) {
  switch (code) {
  case WEFT_OP_ARITH_SITOFP: return sitofp;
  case WEFT_OP_ARITH_UITOFP: return uitofp;
  case WEFT_OP_ARITH_FPTOSI: return fptosi;
  case WEFT_OP_ARITH_FPTOUI: return fptoui;
  case WEFT_OP_ARITH_EXTF:
  case WEFT_OP_ARITH_TRUNCF: return convert_float;
  case WEFT_OP_ARITH_BITCAST: return bitcast;
  case WEFT_OP_ARITH_SELECT: return select_lane;
  default: return NULL;
  }
}

bool compute_is(const weft_mlir_op *op) {
  uint32_t code = weft_mlir_code(op);
  return (code > WEFT_MLIR_NO_CODE && code < WEFT_OP_BUILTIN_MODULE) || code == WEFT_OP_ARITH_CMPI ||
         code == WEFT_OP_ARITH_CMPF;
}

bool compute_prepare(const weft_mlir_op *op, const char *file, compute *c, weft_diag *diag) {
  scalar in, out;
  uint32_t code = weft_mlir_code(op), typed = code == WEFT_OP_ARITH_SELECT ? 1 : 0;
  if (!op->operand_count || op->operand_count > 3 || op->result_count != 1 ||
      !scalar_of(op->operands[typed]->type, &in) || !scalar_of(op->results[0].type, &out)) {
    weft_error_at(diag, WEFT_INVALID, weft_mlir_place(file, op),
                  "integers up to 64 bits, index, f16, bf16, f32 and f64 are", "%s on these types is not supported",
                  op->name->text);
    return false;
  }
  *c = (compute){.width = in.width,
                 .out_width = out.width,
                 .predicate = (uint32_t)weft_mlir_attribute_integer(op, "predicate", 0)};
  if (in.kind == SCALAR_FLOAT) c->in_type = in.type;
  if (out.kind == SCALAR_FLOAT) c->out_type = out.type;
  c->apply = mixed_function(code);
  if (!c->apply)
    c->apply = in.kind == SCALAR_FLOAT ? compute_float_function(code, in.width == 64) : integer_function(code);
  if (c->apply) return true;
  weft_error_at(diag, WEFT_INVALID, weft_mlir_place(file, op), "only functions with the same bits on every machine are",
                "%s on %s is not supported", op->name->text, in.type->name);
  return false;
}
