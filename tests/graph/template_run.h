/* Runs a Template by what its stages say: pages, tiles, maps. It shares no code with lowering, lifting or the
 * interpreter and judges them all. Only what a Template may contain after lowering is known. */
#ifndef WEFT_TEST_TEMPLATE_RUN_H
#define WEFT_TEST_TEMPLATE_RUN_H

#include "weft/ir.h"
#include "weft/tensor_file.h"

/** Runs the program over `in`; results go to `out` under their tensors' names (of shards: nothing is assembled). Fails
 * the current test where a load leaves its tensor, an element is stored twice or never, or a load reads what is not
 * stored. */
void template_run(const weft_program *program, const weft_array_set *in, weft_array_set *out);

#endif
