/* Small programs in the form that the code generator emits, made by hand: what the runtime's tests run. */
#ifndef WEFT_TEST_PROGRAMS_H
#define WEFT_TEST_PROGRAMS_H

#include "weft/base.h"
#include "weft/format.h"
#include "weft/program_abi.h"
#include "weft/tensor_file.h"

typedef enum test_kind {
  TEST_GEMM,     /**< y = x w + b on every chip's columns of w (columns of y) */
  TEST_BATCH,    /**< the same on every chip's rows of x */
  TEST_ROWS,     /**< K split at segment borders, all-reduce, every chip reads y; chip 0 writes it */
  TEST_PIPELINE, /**< chip i multiplies by wI and sends on; m x k squares */
  TEST_RING,     /**< chip i sends x_i (m x k, in n pieces, 0: two) to i + 1 each run; y_i = what came, plus what came
                    before */
  TEST_REDUCE, /**< partials m x n of a random tree (`segments` leaves, 0: 8; seed k) on random chips, random readers */
} test_kind;

typedef struct test_shape {
  test_kind kind;
  uint32_t chips;
  uint64_t m, k, n;
  weft_format format; /**< of x and w: FP32, BF16, INT8 */
  uint32_t segments;  /**< of the whole k; 0: canonical */
  bool bias, relu;
  bool clamp;       /**< INT8: requant by 3 / 2^9, clamp to -128..127, result Int8; else Int32 */
  uint32_t readers; /**< ROWS: only the last so many chips read the result; 0: all */
  int pool;         /**< REDUCE: weft_pool */
} test_shape;

/** Everything in `arena`. NULL without memory. */
const weft_abi_program *test_program_new(weft_arena *arena, const test_shape *shape);
/** The segments the shape means. */
uint32_t test_shape_segments(const test_shape *shape);
/** Random inputs, whole datasets, by a seed; integers over the full range. */
bool test_inputs(const test_shape *shape, uint64_t seed, weft_array_set *set);
/** The results for `runs` runs, computed with plain loops. */
bool test_results(const test_shape *shape, const weft_array_set *in, uint64_t runs, weft_array_set *out);

/** Reads "kind chips m k n format [segments] [flags]" as one comma-separated word: rows,4,7,100,9,fp32,0,bias+relu. */
bool test_shape_read(const char *text, test_shape *shape);
void test_shape_print(const test_shape *shape, char *text, size_t size);

#endif
