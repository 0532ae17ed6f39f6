/* weft/scalar_body.h: a loop-free token graph as the body of a spatial program's Scalar stage. */
#ifndef WEFT_SCALAR_BODY_H
#define WEFT_SCALAR_BODY_H

#include "weft/dataflow.h"
#include "weft/ir.h"

/** The cells that compute the one value result of a graph or function from its value inputs: integers and index,
 * branches as selections. WEFT_INVALID, by name, for what has no cell: loops, memory, channels, floats, divisions,
 * shifts whose amount is no constant below the width. The body lives in `arena`. Uses the marks of values. */
weft_status weft_scalar_body_of(weft_mlir_op *entry, const char *file, weft_arena *arena, weft_scalar_body *body,
                                weft_diag *diag);
/** Appends the body as a stage's kind in the text of dumps: {"Scalar": {...}}. */
void weft_scalar_body_to_text(const weft_scalar_body *body, weft_text *text);

#endif
