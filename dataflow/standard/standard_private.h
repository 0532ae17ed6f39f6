/* What the files of the standard dialects share. */
#ifndef WEFT_DATAFLOW_STANDARD_PRIVATE_H
#define WEFT_DATAFLOW_STANDARD_PRIVATE_H

#include "weft/mlir_standard.h"

#include <string.h>

extern const weft_mlir_dialect standard_builtin, standard_func, standard_arith, standard_math, standard_memref,
    standard_scf;

/* Adds "op: message" at the op's place and returns false. */
bool standard_wrong(const weft_mlir_op *op, const char *file, weft_diag *diag, const char *hint, const char *format,
                    ...) WEFT_PRINTF(5, 6);
/* {attributes} %a, %b : types, all of it optional, as terminators are written. */
bool standard_parse_values(weft_mlir_parser *parser, weft_mlir_state *state);
void standard_print_values(weft_mlir_printer *printer, const weft_mlir_op *op, uint32_t first);

/* The parallel forms (scf_parallel.c). */
bool standard_parse_parallel(weft_mlir_parser *parser, weft_mlir_state *state);
bool standard_parse_reduce(weft_mlir_parser *parser, weft_mlir_state *state);
bool standard_parse_forall(weft_mlir_parser *parser, weft_mlir_state *state);
bool standard_parse_in_parallel(weft_mlir_parser *parser, weft_mlir_state *state);
bool standard_parse_execute_region(weft_mlir_parser *parser, weft_mlir_state *state);

#endif
