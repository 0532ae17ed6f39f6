/* A chip made by hand around one product, its tensors ending where the readable memory ends. */
#ifndef WEFT_TEST_KERNEL_BENCH_H
#define WEFT_TEST_KERNEL_BENCH_H

#include "../../runtime-mpi/product_private.h"

typedef struct guarded {
  unsigned char *data; /**< the first of `bytes`, which end at a page without access */
  void *mapping;
  size_t mapped;
} guarded;

guarded guarded_new(size_t bytes);
void guarded_free(guarded *memory);

typedef struct bench_product {
  uint64_t m, n, k;
  weft_format a, b, out;
  uint32_t segments;
  int threads;
  uint32_t epilogue_count;
  const weft_abi_epilogue *epilogue; /**< a bias is operand 3 */
  weft_format bias;
} bench_product;

/** Computes out = a b with `set`; `a`, `b`, `bias`, `out` are dense and exactly as large as said. False after a fault,
 * whose text is copied to `fault` (256 bytes), or when the set does not cover the product. */
bool bench_run(const weft_kernel_set *set, const bench_product *product, const void *a, const void *b, const void *bias,
               void *out, char *fault);

#endif
