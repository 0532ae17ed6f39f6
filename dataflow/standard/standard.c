/* Registering the standard dialects, and helpers of theirs. */
#include "standard_private.h"

#include <stdarg.h>
#include <stdio.h>

bool standard_wrong(const weft_mlir_op *op, const char *file, weft_diag *diag, const char *hint, const char *format,
                    ...) {
  char message[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  weft_error_at(diag, WEFT_INVALID, weft_mlir_place(file, op), hint, "%s: %s", op->name->text, message);
  return false;
}

bool standard_parse_values(weft_mlir_parser *p, weft_mlir_state *state) {
  weft_mlir_operand *operands;
  const weft_mlir_type **types = NULL;
  uint32_t count, type_count = 0;
  if (!weft_mlir_parse_attr_dict(p, state) || !weft_mlir_parse_operands(p, &operands, &count)) return false;
  if (count && (!weft_mlir_expect(p, ":") || !weft_mlir_parse_types(p, &types, &type_count))) return false;
  if (count != type_count) return weft_mlir_fail(p, "%u types for %u values", type_count, count);
  for (uint32_t i = 0; i < count; i++)
    if (!weft_mlir_add_operand(p, state, operands[i], types[i])) return false;
  return true;
}

void standard_print_values(weft_mlir_printer *p, const weft_mlir_op *op, uint32_t first) {
  weft_mlir_put_attr_dict(p, op, NULL, false);
  if (op->operand_count <= first) return;
  weft_mlir_put(p, " ");
  weft_mlir_put_operands(p, op, first, op->operand_count);
  weft_mlir_put(p, " : ");
  weft_mlir_put_operand_types(p, op, first, op->operand_count);
}

weft_status weft_mlir_register_standard(weft_mlir_context *context, weft_diag *diag) {
  const weft_mlir_dialect *dialects[] = {&standard_builtin, &standard_func,   &standard_arith,
                                         &standard_math,    &standard_memref, &standard_scf};
  for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++) {
    weft_status status = weft_mlir_register(context, dialects[i], diag);
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}
