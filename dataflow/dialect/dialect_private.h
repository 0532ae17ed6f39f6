/* What the files of the dataflow and loom dialects share. */
#ifndef WEFT_DATAFLOW_DIALECT_PRIVATE_H
#define WEFT_DATAFLOW_DIALECT_PRIVATE_H

#include "weft/dataflow.h"

#include <string.h>

/* Adds "op: message" at the op's place and returns false. */
bool dialect_wrong(const weft_mlir_op *op, const char *file, weft_diag *diag, const char *hint, const char *format, ...)
    WEFT_PRINTF(5, 6);
/* Element `index` of the dense array `name`, 0 when there is none. */
uint32_t dialect_segment(const weft_mlir_op *op, const char *name, uint32_t index);
/* `count` operand uses of the given types are the op's next operands. */
bool dialect_add_operands(weft_mlir_parser *parser, weft_mlir_state *state, const weft_mlir_operand *operands,
                          const weft_mlir_type *const *types, uint32_t count);
bool dialect_is_channel(const weft_mlir_type *type);

/* Graphs (graph_op.c). */
bool dialect_parse_graph(weft_mlir_parser *parser, weft_mlir_state *state);
void dialect_print_graph(weft_mlir_printer *printer, const weft_mlir_op *op);
bool dialect_graph_is_ordered(const weft_mlir_op *op);
bool dialect_verify_graph(const weft_mlir_op *op, const char *file, weft_diag *diag);
bool dialect_parse_graph_return(weft_mlir_parser *parser, weft_mlir_state *state);
void dialect_print_graph_return(weft_mlir_printer *printer, const weft_mlir_op *op);
bool dialect_verify_graph_return(const weft_mlir_op *op, const char *file, weft_diag *diag);
bool dialect_parse_graph_launch(weft_mlir_parser *parser, weft_mlir_state *state);
void dialect_print_graph_launch(weft_mlir_printer *printer, const weft_mlir_op *op);
bool dialect_verify_graph_launch(const weft_mlir_op *op, const char *file, weft_diag *diag);

/* Threads and regions (thread_op.c). */
bool dialect_parse_thread(weft_mlir_parser *parser, weft_mlir_state *state);
void dialect_print_thread(weft_mlir_printer *printer, const weft_mlir_op *op);
bool dialect_verify_thread(const weft_mlir_op *op, const char *file, weft_diag *diag);
bool dialect_parse_thread_yield(weft_mlir_parser *parser, weft_mlir_state *state);
void dialect_print_thread_yield(weft_mlir_printer *printer, const weft_mlir_op *op);
bool dialect_verify_spatial_region(const weft_mlir_op *op, const char *file, weft_diag *diag);
bool dialect_verify_spatial_yield(const weft_mlir_op *op, const char *file, weft_diag *diag);

#endif
