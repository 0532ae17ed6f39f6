/* C types and expressions of arith and math. */
#include "emit_private.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

bool emit_refuse(emitter *e, const weft_mlir_op *op, const char *hint, const char *why) {
  if (e->status == WEFT_OK)
    e->status = weft_error_at(e->diag, WEFT_INVALID, weft_mlir_place(e->file, op), hint, "no C for %s: %s",
                              op->name->text, why);
  return false;
}

const char *emit_fault(emitter *e, const weft_mlir_op *op, const char *what) {
  const char *text = weft_arena_printf(e->scratch, "WEFT_DF_FAULT(%u, \"%s: %s\")", op->line, op->name->text, what);
  return text ? text : "goto failed";
}

void emit_line(emitter *e, const char *format, ...) {
  va_list arguments;
  for (uint32_t i = 0; i < e->indent; i++) weft_text_puts(e->out, "  ");
  va_start(arguments, format);
  weft_text_vprintf(e->out, format, arguments);
  va_end(arguments);
  weft_text_puts(e->out, "\n");
}

/* ---- types ---------------------------------------------------------------------------------------------------- */

static bool integer_type(uint32_t width, c_type *c) {
  c->width = width;
  switch (width) {
  case 1: c->name = c->unsigned_name = "uint8_t"; return true;
  case 8: c->name = "int8_t", c->unsigned_name = "uint8_t"; return true;
  case 16: c->name = "int16_t", c->unsigned_name = "uint16_t"; return true;
  case 32: c->name = "int32_t", c->unsigned_name = "uint32_t"; return true;
  case 64: c->name = "int64_t", c->unsigned_name = "uint64_t"; return true;
  default:
    c->name = "int64_t", c->unsigned_name = "uint64_t";
    c->odd = true;
    return width >= 1 && width < 64;
  }
}

bool emit_type(const weft_mlir_type *type, c_type *c) {
  *c = (c_type){.name = NULL};
  switch (type->kind) {
  case WEFT_MLIR_NONE_TYPE: return true;
  case WEFT_MLIR_INDEX_TYPE: return integer_type(64, c);
  case WEFT_MLIR_INTEGER_TYPE: return type->sign == WEFT_MLIR_SIGNLESS && integer_type(type->width, c);
  case WEFT_MLIR_FLOAT_TYPE:
    c->floating = true;
    c->width = type->width;
    c->narrow = type->width == 16;
    c->name = type->width == 64 ? "double" : type->width == 32 ? "float" : "uint16_t";
    c->unsigned_name = strcmp(type->name, "bf16") == 0 ? "bf16" : "fp16";
    return strcmp(type->name, "f64") == 0 || strcmp(type->name, "f32") == 0 || strcmp(type->name, "f16") == 0 ||
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

void emit_declare(emitter *e, const weft_mlir_value *value) {
  c_type c;
  if (!emit_type(value->type, &c)) return;
  if (c.name) emit_line(e, "%s v%u = 0;", c.name, value->mark);
}

void emit_constant_text(const weft_mlir_attribute *value, const c_type *c, weft_text *text) {
  if (value->kind == WEFT_MLIR_INTEGER) {
    if (value->as.integer == INT64_MIN)
      weft_text_puts(text, "INT64_MIN");
    else if (c->width > 32)
      weft_text_printf(text, "INT64_C(%lld)", (long long)value->as.integer);
    else if (value->as.integer == INT32_MIN)
      weft_text_puts(text, "INT32_MIN");
    else
      weft_text_printf(text, "%lld", (long long)value->as.integer);
  } else if (c->narrow) {
    weft_text_printf(text, "0x%04llx", (unsigned long long)value->as.bits);
  } else if (c->width == 32) {
    weft_text_printf(text, "weft_df_float(0x%08llx)", (unsigned long long)value->as.bits);
  } else {
    weft_text_printf(text, "weft_df_double(UINT64_C(0x%016llx))", (unsigned long long)value->as.bits);
  }
}

void emit_word_text(const c_type *c, const char *variable, weft_text *text) {
  if (!c->name)
    weft_text_puts(text, "0");
  else if (!c->floating)
    weft_text_printf(text, "(uint64_t)%s%s", c->width == 1 ? "" : "(int64_t)", variable);
  else if (c->narrow)
    weft_text_puts(text, variable);
  else
    weft_text_printf(text, "weft_df_%s_word(%s)", c->name, variable);
}

void emit_from_word_text(const c_type *c, const char *word, weft_text *text) {
  if (c->floating && !c->narrow)
    weft_text_printf(text, "weft_df_%s(%s)", c->name, word);
  else
    weft_text_printf(text, "(%s)%s", c->name, word);
}

/* ---- expressions ---------------------------------------------------------------------------------------------- */

/* In expressions SA SB are operands as signed numbers, UA UB as unsigned ones, A B C as they are held, FA FB FC as
 * float or double, W the width of the operands, LEAST the least number of that width. Rows: op, check of a fault,
 * fault, expression. */
typedef struct integer_row {
  uint32_t code;
  const char *check;
  weft_fault fault;
  const char *expression;
} integer_row;

static const char zero[] = "UB == 0", far[] = "UB >= W";
static const integer_row integer_rows[] = {
    {WEFT_OP_ARITH_ADDI, NULL, WEFT_FAULT_NONE, "UA + UB"},
    {WEFT_OP_ARITH_SUBI, NULL, WEFT_FAULT_NONE, "UA - UB"},
    {WEFT_OP_ARITH_MULI, NULL, WEFT_FAULT_NONE, "UA * UB"},
    {WEFT_OP_ARITH_ANDI, NULL, WEFT_FAULT_NONE, "UA & UB"},
    {WEFT_OP_ARITH_ORI, NULL, WEFT_FAULT_NONE, "UA | UB"},
    {WEFT_OP_ARITH_XORI, NULL, WEFT_FAULT_NONE, "UA ^ UB"},
    {WEFT_OP_ARITH_MAXSI, NULL, WEFT_FAULT_NONE, "SA > SB ? SA : SB"},
    {WEFT_OP_ARITH_MINSI, NULL, WEFT_FAULT_NONE, "SA < SB ? SA : SB"},
    {WEFT_OP_ARITH_MAXUI, NULL, WEFT_FAULT_NONE, "UA > UB ? UA : UB"},
    {WEFT_OP_ARITH_MINUI, NULL, WEFT_FAULT_NONE, "UA < UB ? UA : UB"},
    {WEFT_OP_ARITH_DIVUI, zero, WEFT_FAULT_DIVISION, "UA / UB"},
    {WEFT_OP_ARITH_REMUI, zero, WEFT_FAULT_DIVISION, "UA % UB"},
    {WEFT_OP_ARITH_CEILDIVUI, zero, WEFT_FAULT_DIVISION, "UA / UB + (UA % UB != 0)"},
    {WEFT_OP_ARITH_DIVSI, zero, WEFT_FAULT_DIVISION, "SA / SB"},
    {WEFT_OP_ARITH_REMSI, zero, WEFT_FAULT_DIVISION, "SA % SB"},
    {WEFT_OP_ARITH_CEILDIVSI, zero, WEFT_FAULT_DIVISION, "SA / SB + (SA % SB != 0 && (SA < 0) == (SB < 0))"},
    {WEFT_OP_ARITH_FLOORDIVSI, zero, WEFT_FAULT_DIVISION, "SA / SB - (SA % SB != 0 && (SA < 0) != (SB < 0))"},
    {WEFT_OP_ARITH_SHLI, far, WEFT_FAULT_SHIFT, "UA << UB"},
    {WEFT_OP_ARITH_SHRSI, far, WEFT_FAULT_SHIFT, "SA >> UB"},
    {WEFT_OP_ARITH_SHRUI, far, WEFT_FAULT_SHIFT, "UA >> UB"},
    {WEFT_OP_ARITH_EXTSI, NULL, WEFT_FAULT_NONE, "SA"},
    {WEFT_OP_ARITH_EXTUI, NULL, WEFT_FAULT_NONE, "UA"},
    {WEFT_OP_ARITH_TRUNCI, NULL, WEFT_FAULT_NONE, "UA"},
    {WEFT_OP_ARITH_INDEX_CAST, NULL, WEFT_FAULT_NONE, "SA"},
    {WEFT_OP_ARITH_INDEX_CASTUI, NULL, WEFT_FAULT_NONE, "UA"},
    {WEFT_OP_MATH_ABSI, NULL, WEFT_FAULT_NONE, "SA < 0 ? 0 - (uint64_t)SA : (uint64_t)SA"},
    {WEFT_OP_MATH_CTPOP, NULL, WEFT_FAULT_NONE, "__builtin_popcountll(UA)"},
    {WEFT_OP_MATH_CTLZ, NULL, WEFT_FAULT_NONE, "UA ? (uint64_t)__builtin_clzll(UA) - (64 - W) : W"},
    {WEFT_OP_MATH_CTTZ, NULL, WEFT_FAULT_NONE, "UA ? (uint64_t)__builtin_ctzll(UA) : W"},
};

static bool divides_signed(uint32_t code) {
  return code == WEFT_OP_ARITH_DIVSI || code == WEFT_OP_ARITH_REMSI || code == WEFT_OP_ARITH_CEILDIVSI ||
         code == WEFT_OP_ARITH_FLOORDIVSI;
}

/* Rows: op, expression over float, over double (NULL: none). */
typedef struct float_row {
  uint32_t code;
  const char *single, *wide;
} float_row;

static const float_row float_rows[] = {
    {WEFT_OP_ARITH_ADDF, "FA + FB", "FA + FB"},
    {WEFT_OP_ARITH_SUBF, "FA - FB", "FA - FB"},
    {WEFT_OP_ARITH_MULF, "FA * FB", "FA * FB"},
    {WEFT_OP_ARITH_DIVF, "FA / FB", "FA / FB"},
    {WEFT_OP_ARITH_REMF, "fmodf(FA, FB)", "fmod(FA, FB)"},
    {WEFT_OP_ARITH_MAXIMUMF, "weft_maximum_f32(FA, FB)", "weft_df_maximum(FA, FB)"},
    {WEFT_OP_ARITH_MINIMUMF, "weft_minimum_f32(FA, FB)", "weft_df_minimum(FA, FB)"},
    {WEFT_OP_ARITH_MAXNUMF, "weft_df_maxnum32(FA, FB)", "weft_df_maxnum64(FA, FB)"},
    {WEFT_OP_ARITH_MINNUMF, "weft_df_minnum32(FA, FB)", "weft_df_minnum64(FA, FB)"},
    {WEFT_OP_ARITH_NEGF, "-FA", "-FA"},
    {WEFT_OP_MATH_ABSF, "fabsf(FA)", "fabs(FA)"},
    {WEFT_OP_MATH_CEIL, "ceilf(FA)", "ceil(FA)"},
    {WEFT_OP_MATH_COPYSIGN, "copysignf(FA, FB)", "copysign(FA, FB)"},
    {WEFT_OP_MATH_FLOOR, "floorf(FA)", "floor(FA)"},
    {WEFT_OP_MATH_FMA, "fmaf(FA, FB, FC)", "fma(FA, FB, FC)"},
    {WEFT_OP_MATH_ROUND, "roundf(FA)", "round(FA)"},
    {WEFT_OP_MATH_ROUNDEVEN, "nearbyintf(FA)", "nearbyint(FA)"},
    {WEFT_OP_MATH_RSQRT, "1.0f / sqrtf(FA)", "1.0 / sqrt(FA)"},
    {WEFT_OP_MATH_SQRT, "sqrtf(FA)", "sqrt(FA)"},
    {WEFT_OP_MATH_TRUNC, "truncf(FA)", "trunc(FA)"},
    {WEFT_OP_MATH_EXP, "weft_expf(FA)", NULL},
    {WEFT_OP_MATH_LOG, "weft_logf(FA)", NULL},
    {WEFT_OP_MATH_TANH, "weft_tanhf(FA)", NULL},
    {WEFT_OP_MATH_ERF, "weft_erff(FA)", NULL},
};

/* cmpi and cmpf by predicate. */
static const char *const cmpi[] = {"UA == UB", "UA != UB", "SA < SB",  "SA <= SB", "SA > SB",
                                   "SA >= SB", "UA < UB",  "UA <= UB", "UA > UB",  "UA >= UB"};
static const char *const cmpf[] = {"0",
                                   "FA == FB",
                                   "FA > FB",
                                   "FA >= FB",
                                   "FA < FB",
                                   "FA <= FB",
                                   "FA < FB || FA > FB",
                                   "!isunordered(FA, FB)",
                                   "FA == FB || isunordered(FA, FB)",
                                   "!(FA <= FB)",
                                   "!(FA < FB)",
                                   "!(FA >= FB)",
                                   "!(FA > FB)",
                                   "!(FA == FB)",
                                   "isunordered(FA, FB)",
                                   "1"};

typedef struct operands {
  c_type types[3];
  char names[3][32];
  const weft_mlir_type *float_type; /* of narrow floats */
} operands;

static void put_word(const operands *o, const char *word, size_t length, weft_text *text) {
  uint32_t which = (uint32_t)(word[length - 1] - 'A');
  const c_type *c = &o->types[which];
  const char *name = o->names[which];
  if (length == 1) {
    weft_text_puts(text, name);
  } else if (word[0] == 'S') {
    weft_text_printf(text, c->width == 1 ? "(-(int64_t)%s)" : "(int64_t)%s", name);
  } else if (word[0] == 'U') {
    if (c->odd)
      weft_text_printf(text, "weft_df_mask(%u, (uint64_t)%s)", c->width, name);
    else
      weft_text_printf(text, "(uint64_t)(%s)%s", c->unsigned_name, name);
  } else if (c->narrow) {
    weft_text_printf(text, "weft_%s_to_f32(%s)", c->unsigned_name, name);
  } else {
    weft_text_puts(text, name);
  }
}

/* Replaces the words of an expression by what they stand for. */
static void expand(const operands *o, const char *expression, weft_text *text) {
  for (const char *p = expression; *p;) {
    size_t length = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    char after = p[length], before = p == expression ? ' ' : p[-1];
    bool plain =
        !length || after == '_' || (after >= 'a' && after <= 'z') || (after >= '0' && after <= '9') || before == '_';
    if (plain) {
      weft_text_append(text, p, length ? length : 1);
      p += length ? length : 1;
    } else {
      if (length == 5)
        weft_text_printf(text, "weft_df_least(%u)", o->types[0].width);
      else if (*p == 'W')
        weft_text_printf(text, "%u", o->types[0].width);
      else
        put_word(o, p, length, text);
      p += length;
    }
  }
}

/* ---- one op --------------------------------------------------------------------------------------------------- */

static void check_fault(emitter *e, const weft_mlir_op *op, const operands *o, const char *condition,
                        weft_fault fault) {
  weft_text text = {0};
  expand(o, condition, &text);
  emit_line(e, "if (WEFT_DF_NEVER(%s)) %s;", text.data, emit_fault(e, op, weft_fault_text(fault)));
  weft_text_free(&text);
}

static void assign(emitter *e, const char *target, const c_type *c, const operands *o, const char *expression) {
  weft_text text = {0};
  expand(o, expression, &text);
  if (c->floating && c->narrow)
    emit_line(e, "%s = weft_f32_to_%s(%s);", target, c->unsigned_name, text.data);
  else if (c->floating)
    emit_line(e, "%s = %s;", target, text.data);
  else if (c->odd)
    emit_line(e, "%s = weft_df_wrap(%u, (uint64_t)(%s));", target, c->width, text.data);
  else if (c->width == 1)
    emit_line(e, "%s = (uint8_t)((%s) & 1);", target, text.data);
  else
    emit_line(e, "%s = (%s)(%s);", target, c->name, text.data);
  weft_text_free(&text);
}

/* Conversions between kinds, select and bitcast. */
static bool mixed(emitter *e, const weft_mlir_op *op, const char *target, const c_type *c, const operands *o) {
  char text[96];
  switch (weft_mlir_code(op)) {
  case WEFT_OP_ARITH_SELECT:
    emit_line(e, "%s = %s ? %s : %s;", target, o->names[0], o->names[1], o->names[2]);
    return true;
  case WEFT_OP_ARITH_SITOFP: assign(e, target, c, o, c->width == 64 ? "(double)SA" : "(float)SA"); return true;
  case WEFT_OP_ARITH_UITOFP: assign(e, target, c, o, c->width == 64 ? "(double)UA" : "(float)UA"); return true;
  case WEFT_OP_ARITH_EXTF:
  case WEFT_OP_ARITH_TRUNCF: assign(e, target, c, o, c->width == 64 ? "(double)FA" : "(float)FA"); return true;
  case WEFT_OP_ARITH_FPTOSI:
    snprintf(text, sizeof text, "!(trunc(FA) >= -0x1p%u && trunc(FA) < 0x1p%u)", c->width - 1, c->width - 1);
    check_fault(e, op, o, text, WEFT_FAULT_OVERFLOW);
    assign(e, target, c, o, "(uint64_t)(int64_t)trunc(FA)");
    return true;
  case WEFT_OP_ARITH_FPTOUI:
    snprintf(text, sizeof text, "!(trunc(FA) > -1.0 && trunc(FA) < 0x1p%u)", c->width);
    check_fault(e, op, o, text, WEFT_FAULT_OVERFLOW);
    assign(e, target, c, o, "(uint64_t)trunc(FA)");
    return true;
  case WEFT_OP_ARITH_BITCAST: {
    weft_text word = {0}, value = {0};
    emit_word_text(&o->types[0], o->names[0], &word);
    weft_text_puts(&word, "");
    char held[128];
    snprintf(held, sizeof held, "(%s)", word.data);
    emit_from_word_text(c, held, &value);
    emit_line(e, "%s = %s;", target, value.data);
    weft_text_free(&word);
    weft_text_free(&value);
    return true;
  }
  default: return false;
  }
}

static bool from_tables(emitter *e, const weft_mlir_op *op, const char *target, const c_type *c, const operands *o) {
  uint32_t code = weft_mlir_code(op);
  uint64_t predicate = (uint64_t)weft_mlir_attribute_integer(op, "predicate", 0);
  if (code == WEFT_OP_ARITH_CMPI || code == WEFT_OP_ARITH_CMPF) {
    assign(e, target, c, o, code == WEFT_OP_ARITH_CMPI ? cmpi[predicate] : cmpf[predicate]);
    return true;
  }
  for (size_t i = 0; i < sizeof integer_rows / sizeof *integer_rows; i++) {
    const integer_row *row = &integer_rows[i];
    if (row->code != code || o->types[0].floating) continue;
    if (row->check) check_fault(e, op, o, row->check, row->fault);
    if (divides_signed(code)) check_fault(e, op, o, "SB == -1 && SA == LEAST", WEFT_FAULT_OVERFLOW);
    assign(e, target, c, o, row->expression);
    return true;
  }
  for (size_t i = 0; i < sizeof float_rows / sizeof *float_rows; i++) {
    const char *expression = o->types[0].width == 64 ? float_rows[i].wide : float_rows[i].single;
    if (float_rows[i].code != code || !o->types[0].floating || !expression) continue;
    assign(e, target, c, o, expression);
    return true;
  }
  return false;
}

bool emit_compute(emitter *e, const weft_mlir_op *op, emit_namer namer, void *context) {
  operands o = {.float_type = NULL};
  c_type c;
  char target[32];
  bool good = op->operand_count <= 3 && op->result_count == 1 && emit_type(op->results[0].type, &c) && c.name;
  for (uint32_t i = 0; good && i < op->operand_count; i++) {
    good = emit_type(op->operands[i]->type, &o.types[i]) && o.types[i].name;
    namer(context, op->operands[i], o.names[i], sizeof o.names[i]);
  }
  if (!good) return emit_refuse(e, op, NULL, "its types have no C type");
  namer(context, &op->results[0], target, sizeof target);
  return mixed(e, op, target, &c, &o) || from_tables(e, op, target, &c, &o) ||
         emit_refuse(e, op, NULL, "it has no function with the same bits on every machine");
}
