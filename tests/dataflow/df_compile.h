/* Emitted C as a library that tests load. */
#ifndef WEFT_TESTS_DATAFLOW_DF_COMPILE_H
#define WEFT_TESTS_DATAFLOW_DF_COMPILE_H

#include "df_support.h"
#include "weft/dataflow_run.h"

/* Compiles a module and gives its entries; fails the test when that does not work. */
void *compile_module(world *w, weft_mlir_op *module, bool machines, weft_df_program *program);
void compiled_free(void *library);

#endif
