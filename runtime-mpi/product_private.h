/* product_private.h: matrix products: the job an operation makes, the kernel sets that do it. */
#ifndef WEFT_PRODUCT_PRIVATE_H
#define WEFT_PRODUCT_PRIVATE_H

#include "epilogue_private.h"

#include "weft/ir.h"

/** out[m x n] = epilogue(a[m x k] * b[k x n]), blocks resolved to addresses. */
typedef struct weft_product_job {
  weft_chip *chip;
  const void *a, *b; /**< first element of the block */
  weft_format a_format, b_format;
  uint64_t a_stride, b_stride; /**< elements between rows */
  uint64_t m, n, k;
  weft_acc_policy acc;
  uint32_t segments;
  int threads;
  weft_epilogue epilogue;
} weft_product_job;

/** A way to compute products, chosen once a run. */
typedef struct weft_kernel_set {
  const char *name;
  /** Whether this processor can run it. */
  bool (*available)(void);
  /** Does the job; false when it does not cover the job's formats, nothing done. */
  bool (*product)(const weft_product_job *job);
  /** out[i] = left[i] + right[i], or the maximum or minimum of both; out may be one of them. */
  void (*combine)(weft_pool pool, uint64_t count, const float *left, const float *right, float *out);
} weft_kernel_set;

/** The set called `name`; NULL `name`: the fastest available. NULL, with a message, when there is none of that name
 * here. */
const weft_kernel_set *weft_kernel_set_choose(const char *name, weft_diag *diag);
/** Set `index` of all that this library was built with, fastest first; NULL past the end. */
const weft_kernel_set *weft_kernel_set_at(uint32_t index);

/** The definition, in plain C: covers everything. */
bool weft_product_plain(const weft_product_job *job);

#endif
