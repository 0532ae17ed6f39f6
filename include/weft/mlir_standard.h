/* weft/mlir_standard.h: the standard dialects (builtin, func, arith, math, memref, scf): the codes of their ops, and
 * what other dialects with function-like ops borrow from them. Source: MLIR dialect references (LLVM 19 to 22). */
#ifndef WEFT_MLIR_STANDARD_H
#define WEFT_MLIR_STANDARD_H

#include "weft/mlir.h"

#define WEFT_MLIR_OVERFLOW "overflowFlags=#arith.overflow<none>"
#define WEFT_MLIR_FASTMATH "fastmath=#arith.fastmath<none>"
#define WEFT_MLIR_BINARY_OVERFLOW "%0, %1 flags(arith.overflow,overflowFlags) attr-dict : T | T T -> T"
#define WEFT_MLIR_BINARY_EXACT "%0, %1 ?exact=isExact attr-dict : T | T T -> T"
#define WEFT_MLIR_BINARY "%0, %1 attr-dict : T | T T -> T"
#define WEFT_MLIR_BINARY_FLOAT "%0, %1 flags(arith.fastmath,fastmath) attr-dict : T | T T -> T"
#define WEFT_MLIR_UNARY_FLOAT "%0 flags(arith.fastmath,fastmath) attr-dict : T | T -> T"
#define WEFT_MLIR_UNARY "%0 attr-dict : T | T -> T"
#define WEFT_MLIR_CAST "%0 attr-dict : T to U | T -> U"
#define WEFT_MLIR_CAST_FLOAT "%0 flags(arith.fastmath,fastmath) attr-dict : T to U | T -> U"

/** Rows: identifier, name, inherent attributes, format. The constant and the comparisons, which have forms of their
 * own, are among the structural ops. */
#define WEFT_MLIR_ARITH_OPS(ROW)                                                                                       \
  ROW(ARITH_ADDI, "arith.addi", WEFT_MLIR_OVERFLOW, WEFT_MLIR_BINARY_OVERFLOW)                                         \
  ROW(ARITH_SUBI, "arith.subi", WEFT_MLIR_OVERFLOW, WEFT_MLIR_BINARY_OVERFLOW)                                         \
  ROW(ARITH_MULI, "arith.muli", WEFT_MLIR_OVERFLOW, WEFT_MLIR_BINARY_OVERFLOW)                                         \
  ROW(ARITH_DIVSI, "arith.divsi", "isExact", WEFT_MLIR_BINARY_EXACT)                                                   \
  ROW(ARITH_DIVUI, "arith.divui", "isExact", WEFT_MLIR_BINARY_EXACT)                                                   \
  ROW(ARITH_CEILDIVSI, "arith.ceildivsi", NULL, WEFT_MLIR_BINARY)                                                      \
  ROW(ARITH_CEILDIVUI, "arith.ceildivui", NULL, WEFT_MLIR_BINARY)                                                      \
  ROW(ARITH_FLOORDIVSI, "arith.floordivsi", NULL, WEFT_MLIR_BINARY)                                                    \
  ROW(ARITH_REMSI, "arith.remsi", NULL, WEFT_MLIR_BINARY)                                                              \
  ROW(ARITH_REMUI, "arith.remui", NULL, WEFT_MLIR_BINARY)                                                              \
  ROW(ARITH_ANDI, "arith.andi", NULL, WEFT_MLIR_BINARY)                                                                \
  ROW(ARITH_ORI, "arith.ori", NULL, WEFT_MLIR_BINARY)                                                                  \
  ROW(ARITH_XORI, "arith.xori", NULL, WEFT_MLIR_BINARY)                                                                \
  ROW(ARITH_SHLI, "arith.shli", WEFT_MLIR_OVERFLOW, WEFT_MLIR_BINARY_OVERFLOW)                                         \
  ROW(ARITH_SHRSI, "arith.shrsi", "isExact", WEFT_MLIR_BINARY_EXACT)                                                   \
  ROW(ARITH_SHRUI, "arith.shrui", "isExact", WEFT_MLIR_BINARY_EXACT)                                                   \
  ROW(ARITH_MAXSI, "arith.maxsi", NULL, WEFT_MLIR_BINARY)                                                              \
  ROW(ARITH_MAXUI, "arith.maxui", NULL, WEFT_MLIR_BINARY)                                                              \
  ROW(ARITH_MINSI, "arith.minsi", NULL, WEFT_MLIR_BINARY)                                                              \
  ROW(ARITH_MINUI, "arith.minui", NULL, WEFT_MLIR_BINARY)                                                              \
  ROW(ARITH_ADDF, "arith.addf", WEFT_MLIR_FASTMATH, WEFT_MLIR_BINARY_FLOAT)                                            \
  ROW(ARITH_SUBF, "arith.subf", WEFT_MLIR_FASTMATH, WEFT_MLIR_BINARY_FLOAT)                                            \
  ROW(ARITH_MULF, "arith.mulf", WEFT_MLIR_FASTMATH, WEFT_MLIR_BINARY_FLOAT)                                            \
  ROW(ARITH_DIVF, "arith.divf", WEFT_MLIR_FASTMATH, WEFT_MLIR_BINARY_FLOAT)                                            \
  ROW(ARITH_REMF, "arith.remf", WEFT_MLIR_FASTMATH, WEFT_MLIR_BINARY_FLOAT)                                            \
  ROW(ARITH_MAXIMUMF, "arith.maximumf", WEFT_MLIR_FASTMATH, WEFT_MLIR_BINARY_FLOAT)                                    \
  ROW(ARITH_MINIMUMF, "arith.minimumf", WEFT_MLIR_FASTMATH, WEFT_MLIR_BINARY_FLOAT)                                    \
  ROW(ARITH_MAXNUMF, "arith.maxnumf", WEFT_MLIR_FASTMATH, WEFT_MLIR_BINARY_FLOAT)                                      \
  ROW(ARITH_MINNUMF, "arith.minnumf", WEFT_MLIR_FASTMATH, WEFT_MLIR_BINARY_FLOAT)                                      \
  ROW(ARITH_NEGF, "arith.negf", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                             \
  ROW(ARITH_SELECT, "arith.select", NULL, "%0, %1, %2 attr-dict : T | i1 T T -> T")                                    \
  ROW(ARITH_EXTSI, "arith.extsi", NULL, WEFT_MLIR_CAST)                                                                \
  ROW(ARITH_EXTUI, "arith.extui", "nonNeg", "%0 ?nneg=nonNeg attr-dict : T to U | T -> U")                             \
  ROW(ARITH_TRUNCI, "arith.trunci", WEFT_MLIR_OVERFLOW,                                                                \
      "%0 flags(arith.overflow,overflowFlags) attr-dict : T to U | T -> U")                                            \
  ROW(ARITH_EXTF, "arith.extf", "fastmath", WEFT_MLIR_CAST_FLOAT)                                                      \
  ROW(ARITH_TRUNCF, "arith.truncf",                                                                                    \
      "roundingmode "                                                                                                  \
      "fastmath",                                                                                                      \
      WEFT_MLIR_CAST_FLOAT)                                                                                            \
  ROW(ARITH_SITOFP, "arith.sitofp", NULL, WEFT_MLIR_CAST)                                                              \
  ROW(ARITH_UITOFP, "arith.uitofp", "nonNeg", "%0 ?nneg=nonNeg attr-dict : T to U | T -> U")                           \
  ROW(ARITH_FPTOSI, "arith.fptosi", NULL, WEFT_MLIR_CAST)                                                              \
  ROW(ARITH_FPTOUI, "arith.fptoui", NULL, WEFT_MLIR_CAST)                                                              \
  ROW(ARITH_INDEX_CAST, "arith.index_cast", NULL, WEFT_MLIR_CAST)                                                      \
  ROW(ARITH_INDEX_CASTUI, "arith.index_castui", "nonNeg", "%0 ?nneg=nonNeg attr-dict : T to U | T -> U")               \
  ROW(ARITH_BITCAST, "arith.bitcast", NULL, WEFT_MLIR_CAST)

#define WEFT_MLIR_MATH_OPS(ROW)                                                                                        \
  ROW(MATH_ABSF, "math.absf", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                               \
  ROW(MATH_ABSI, "math.absi", NULL, WEFT_MLIR_UNARY)                                                                   \
  ROW(MATH_CEIL, "math.ceil", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                               \
  ROW(MATH_COPYSIGN, "math.copysign", WEFT_MLIR_FASTMATH, WEFT_MLIR_BINARY_FLOAT)                                      \
  ROW(MATH_COS, "math.cos", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                                 \
  ROW(MATH_CTLZ, "math.ctlz", NULL, WEFT_MLIR_UNARY)                                                                   \
  ROW(MATH_CTPOP, "math.ctpop", NULL, WEFT_MLIR_UNARY)                                                                 \
  ROW(MATH_CTTZ, "math.cttz", NULL, WEFT_MLIR_UNARY)                                                                   \
  ROW(MATH_ERF, "math.erf", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                                 \
  ROW(MATH_EXP, "math.exp", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                                 \
  ROW(MATH_EXP2, "math.exp2", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                               \
  ROW(MATH_EXPM1, "math.expm1", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                             \
  ROW(MATH_FLOOR, "math.floor", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                             \
  ROW(MATH_FMA, "math.fma", WEFT_MLIR_FASTMATH,                                                                        \
      "%0, %1, %2 flags(arith.fastmath,fastmath) attr-dict : T | T T T -> T")                                          \
  ROW(MATH_IPOWI, "math.ipowi", NULL, WEFT_MLIR_BINARY)                                                                \
  ROW(MATH_LOG, "math.log", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                                 \
  ROW(MATH_LOG10, "math.log10", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                             \
  ROW(MATH_LOG1P, "math.log1p", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                             \
  ROW(MATH_LOG2, "math.log2", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                               \
  ROW(MATH_POWF, "math.powf", WEFT_MLIR_FASTMATH, WEFT_MLIR_BINARY_FLOAT)                                              \
  ROW(MATH_ROUND, "math.round", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                             \
  ROW(MATH_ROUNDEVEN, "math.roundeven", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                     \
  ROW(MATH_RSQRT, "math.rsqrt", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                             \
  ROW(MATH_SIN, "math.sin", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                                 \
  ROW(MATH_SQRT, "math.sqrt", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                               \
  ROW(MATH_TAN, "math.tan", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                                 \
  ROW(MATH_TANH, "math.tanh", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)                                               \
  ROW(MATH_TRUNC, "math.trunc", WEFT_MLIR_FASTMATH, WEFT_MLIR_UNARY_FLOAT)

/** Rows: identifier, name. Their specs are in dataflow/standard. */
#define WEFT_MLIR_STRUCTURAL_OPS(ROW)                                                                                  \
  ROW(BUILTIN_MODULE, "builtin.module")                                                                                \
  ROW(BUILTIN_CAST, "builtin.unrealized_conversion_cast")                                                              \
  ROW(ARITH_CONSTANT, "arith.constant")                                                                                \
  ROW(ARITH_CMPI, "arith.cmpi")                                                                                        \
  ROW(ARITH_CMPF, "arith.cmpf")                                                                                        \
  ROW(FUNC_FUNC, "func.func")                                                                                          \
  ROW(FUNC_RETURN, "func.return")                                                                                      \
  ROW(FUNC_CALL, "func.call")                                                                                          \
  ROW(MEMREF_LOAD, "memref.load")                                                                                      \
  ROW(MEMREF_STORE, "memref.store")                                                                                    \
  ROW(MEMREF_ALLOC, "memref.alloc")                                                                                    \
  ROW(MEMREF_ALLOCA, "memref.alloca")                                                                                  \
  ROW(MEMREF_DEALLOC, "memref.dealloc")                                                                                \
  ROW(MEMREF_CAST, "memref.cast")                                                                                      \
  ROW(MEMREF_COPY, "memref.copy")                                                                                      \
  ROW(MEMREF_GET_GLOBAL, "memref.get_global")                                                                          \
  ROW(SCF_FOR, "scf.for")                                                                                              \
  ROW(SCF_WHILE, "scf.while")                                                                                          \
  ROW(SCF_IF, "scf.if")                                                                                                \
  ROW(SCF_INDEX_SWITCH, "scf.index_switch")                                                                            \
  ROW(SCF_CONDITION, "scf.condition")                                                                                  \
  ROW(SCF_YIELD, "scf.yield")                                                                                          \
  ROW(SCF_PARALLEL, "scf.parallel")                                                                                    \
  ROW(SCF_REDUCE, "scf.reduce")                                                                                        \
  ROW(SCF_REDUCE_RETURN, "scf.reduce.return")                                                                          \
  ROW(SCF_FORALL, "scf.forall")                                                                                        \
  ROW(SCF_IN_PARALLEL, "scf.forall.in_parallel")                                                                       \
  ROW(SCF_EXECUTE_REGION, "scf.execute_region")

/** weft_mlir_code of an op of the standard dialects. Other dialects begin at WEFT_MLIR_FIRST_CODE. */
typedef enum weft_mlir_standard_op {
  WEFT_MLIR_NO_CODE,
#define WEFT_MLIR_ROW4(identifier, name, inherent, format) WEFT_OP_##identifier,
#define WEFT_MLIR_ROW2(identifier, name) WEFT_OP_##identifier,
  WEFT_MLIR_ARITH_OPS(WEFT_MLIR_ROW4) WEFT_MLIR_MATH_OPS(WEFT_MLIR_ROW4) WEFT_MLIR_STRUCTURAL_OPS(WEFT_MLIR_ROW2)
#undef WEFT_MLIR_ROW4
#undef WEFT_MLIR_ROW2
      WEFT_MLIR_STANDARD_COUNT,
} weft_mlir_standard_op;
#define WEFT_MLIR_FIRST_CODE 1000

/** Predicates of arith.cmpi, numbered as its property. */
#define WEFT_MLIR_CMPI(ROW)                                                                                            \
  ROW(eq)                                                                                                              \
  ROW(ne)                                                                                                              \
  ROW(slt)                                                                                                             \
  ROW(sle)                                                                                                             \
  ROW(sgt)                                                                                                             \
  ROW(sge)                                                                                                             \
  ROW(ult)                                                                                                             \
  ROW(ule)                                                                                                             \
  ROW(ugt)                                                                                                             \
  ROW(uge)
typedef enum weft_mlir_cmpi {
#define WEFT_MLIR_ROW(name) WEFT_CMPI_##name,
  WEFT_MLIR_CMPI(WEFT_MLIR_ROW)
#undef WEFT_MLIR_ROW
      WEFT_CMPI_COUNT,
} weft_mlir_cmpi;
/** Predicates of arith.cmpf. */
#define WEFT_MLIR_CMPF(ROW)                                                                                            \
  ROW(false)                                                                                                           \
  ROW(oeq)                                                                                                             \
  ROW(ogt)                                                                                                             \
  ROW(oge)                                                                                                             \
  ROW(olt)                                                                                                             \
  ROW(ole)                                                                                                             \
  ROW(one)                                                                                                             \
  ROW(ord)                                                                                                             \
  ROW(ueq)                                                                                                             \
  ROW(ugt)                                                                                                             \
  ROW(uge)                                                                                                             \
  ROW(ult)                                                                                                             \
  ROW(ule)                                                                                                             \
  ROW(une)                                                                                                             \
  ROW(uno)                                                                                                             \
  ROW(true)

/* ---- function-like ops ---------------------------------------------------------------------------------------- */

/** What stands between a function's name and its body. */
typedef struct weft_mlir_signature {
  weft_mlir_argument *arguments;
  uint32_t argument_count, result_count;
  const weft_mlir_type **results;
  const weft_mlir_attribute **result_attributes; /**< a dictionary each */
} weft_mlir_signature;

/** [visibility] @name: sets sym_visibility and sym_name. */
bool weft_mlir_parse_symbol_head(weft_mlir_parser *parser, weft_mlir_state *state);
/** (%a: type {attributes}, ...) -> (type {attributes}, ...); a declaration's arguments may have no names. */
bool weft_mlir_parse_signature(weft_mlir_parser *parser, weft_mlir_signature *signature);
/** Sets function_type from arguments `first` up to `end` and the results, and arg_attrs and res_attrs where there are
 * any. */
bool weft_mlir_add_signature(weft_mlir_parser *parser, weft_mlir_state *state, const weft_mlir_signature *signature,
                             uint32_t first, uint32_t end);
/** " private @name". */
void weft_mlir_put_symbol_head(weft_mlir_printer *printer, const weft_mlir_op *op);
/** "(%arg0: i32, ...)" for `count` entry arguments from `first` on; arg_attrs begins at argument `attributed`. */
void weft_mlir_put_arguments(weft_mlir_printer *printer, const weft_mlir_op *op, uint32_t first, uint32_t count,
                             uint32_t attributed);
/** " -> (...)" from function_type and res_attrs; " -> ()" without results only when `always`. */
void weft_mlir_put_function_results(weft_mlir_printer *printer, const weft_mlir_op *op, bool always);
/** The function type of a function-like op, or NULL. */
const weft_mlir_type *weft_mlir_function_type(const weft_mlir_op *op);
/** The value of attribute `name` that argument `index` has in arg_attrs, or NULL. */
const weft_mlir_attribute *weft_mlir_argument_attribute(const weft_mlir_op *op, uint32_t index, const char *name);

#endif
