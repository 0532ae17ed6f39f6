/* The large program made from its recipe. */
#ifndef WEFT_TEST_GEMM_CHAIN_H
#define WEFT_TEST_GEMM_CHAIN_H

#include "weft/ir.h"

/** A chain of `sections` products over 2 x 2 sites with `blocks` K blocks each: 16 stages a section. */
weft_program *gemm_chain(const char *name, uint64_t sections, uint64_t blocks);

#endif
