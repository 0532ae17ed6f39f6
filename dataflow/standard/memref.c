/* The memref dialect, as far as weft reads it. */
#include "standard_private.h"

/* (%dynamic...)[%symbols...] {attributes} : type */
static bool parse_alloc(weft_mlir_parser *p, weft_mlir_state *state) {
  weft_mlir_context *context = weft_mlir_parser_context(p);
  weft_mlir_operand *sizes, *symbols = NULL;
  uint32_t size_count, symbol_count = 0;
  const weft_mlir_type *type;
  if (!weft_mlir_expect(p, "(") || !weft_mlir_parse_operands(p, &sizes, &size_count) || !weft_mlir_expect(p, ")"))
    return false;
  if (weft_mlir_try(p, "[") && (!weft_mlir_parse_operands(p, &symbols, &symbol_count) || !weft_mlir_expect(p, "]")))
    return false;
  if (!weft_mlir_parse_attr_dict(p, state) || !weft_mlir_expect(p, ":") || !weft_mlir_parse_type(p, &type))
    return false;
  int64_t segments[] = {size_count, symbol_count};
  if (!weft_mlir_add_attribute(p, state, "operandSegmentSizes", weft_mlir_dense_array(context, 32, segments, 2)))
    return false;
  for (uint32_t i = 0; i < size_count; i++)
    if (!weft_mlir_add_operand(p, state, sizes[i], weft_mlir_index(context))) return false;
  for (uint32_t i = 0; i < symbol_count; i++)
    if (!weft_mlir_add_operand(p, state, symbols[i], weft_mlir_index(context))) return false;
  return weft_mlir_add_result(p, state, type);
}

static void print_alloc(weft_mlir_printer *p, const weft_mlir_op *op) {
  uint32_t sizes = (uint32_t)weft_mlir_dense_integer(weft_mlir_attribute_of(op, "operandSegmentSizes"), 0);
  weft_mlir_put(p, "(");
  weft_mlir_put_operands(p, op, 0, sizes);
  weft_mlir_put(p, ")");
  if (sizes < op->operand_count) {
    weft_mlir_put(p, "[");
    weft_mlir_put_operands(p, op, sizes, op->operand_count);
    weft_mlir_put(p, "]");
  }
  weft_mlir_put_attr_dict(p, op, "operandSegmentSizes", false);
  weft_mlir_put(p, " : ");
  weft_mlir_put_result_types(p, op);
}

static bool is_memref(const weft_mlir_type *type) { return type->kind == WEFT_MLIR_MEMREF_TYPE; }

static bool verify_alloc(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  if (op->result_count != 1 || !is_memref(op->results[0].type) || op->results[0].type->unranked)
    return standard_wrong(op, file, diag, NULL, "the result must be a ranked memref");
  const weft_mlir_attribute *segments = weft_mlir_attribute_of(op, "operandSegmentSizes");
  int64_t dynamic = 0;
  for (uint32_t i = 0; i < op->results[0].type->rank; i++)
    dynamic += op->results[0].type->extents[i] == WEFT_MLIR_DYNAMIC;
  return (segments && segments->as.dense.elements == 2 && weft_mlir_dense_integer(segments, 0) == dynamic) ||
         standard_wrong(op, file, diag, NULL, "each of the %lld dynamic extents needs a size", (long long)dynamic);
}

/* The memref is operand `at`; all operands behind it are its indices. */
static bool verify_access(const weft_mlir_op *op, uint32_t at, const char *file, weft_diag *diag) {
  const weft_mlir_type *type = op->operands[at]->type;
  if (!is_memref(type) || type->unranked) return standard_wrong(op, file, diag, NULL, "a ranked memref is needed");
  return op->operand_count - at - 1 == type->rank ||
         standard_wrong(op, file, diag, NULL, "%u indices for a memref of rank %u", op->operand_count - at - 1,
                        type->rank);
}

static bool verify_load(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  return verify_access(op, 0, file, diag);
}
static bool verify_store(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  return verify_access(op, 1, file, diag);
}

static bool verify_copy(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  const weft_mlir_type *from = op->operands[0]->type, *to = op->operands[1]->type;
  return (is_memref(from) && is_memref(to) && from->element == to->element) ||
         standard_wrong(op, file, diag, NULL, "two memrefs of one element type are needed");
}

static bool verify_cast(const weft_mlir_op *op, const char *file, weft_diag *diag) {
  const weft_mlir_type *from = op->operands[0]->type, *to = op->results[0].type;
  return (is_memref(from) && is_memref(to) && from->element == to->element) ||
         standard_wrong(op, file, diag, NULL, "two memref types of one element type are needed");
}

static const weft_mlir_op_spec memref_ops[] = {
    {.name = "memref.load",
     .code = WEFT_OP_MEMREF_LOAD,
     .inherent = "nontemporal=false alignment",
     .format = "%0 [ %1... ] attr-dict : T | T index... -> elem(T)",
     .verify = verify_load},
    {.name = "memref.store",
     .code = WEFT_OP_MEMREF_STORE,
     .inherent = "nontemporal=false alignment",
     .format = "%0, %1 [ %2... ] attr-dict : T | elem(T) T index... ->",
     .verify = verify_store},
    {.name = "memref.alloc",
     .code = WEFT_OP_MEMREF_ALLOC,
     .traits = WEFT_MLIR_OPERAND_SEGMENTS,
     .inherent = "operandSegmentSizes alignment",
     .parse = parse_alloc,
     .print = print_alloc,
     .verify = verify_alloc},
    {.name = "memref.alloca",
     .code = WEFT_OP_MEMREF_ALLOCA,
     .traits = WEFT_MLIR_OPERAND_SEGMENTS,
     .inherent = "operandSegmentSizes alignment",
     .parse = parse_alloc,
     .print = print_alloc,
     .verify = verify_alloc},
    {.name = "memref.dealloc", .code = WEFT_OP_MEMREF_DEALLOC, .format = "%0 attr-dict : T | T ->"},
    {.name = "memref.cast",
     .code = WEFT_OP_MEMREF_CAST,
     .traits = WEFT_MLIR_PURE,
     .format = WEFT_MLIR_CAST,
     .verify = verify_cast},
    {.name = "memref.copy",
     .code = WEFT_OP_MEMREF_COPY,
     .format = "%0, %1 attr-dict : T to U | T U ->",
     .verify = verify_copy},
    {.name = "memref.get_global", .code = WEFT_OP_MEMREF_GET_GLOBAL, .traits = WEFT_MLIR_PURE, .inherent = "name"},
};

const weft_mlir_dialect standard_memref = {
    .name = "memref", .ops = memref_ops, .op_count = sizeof memref_ops / sizeof *memref_ops};
