/* fold_private.h: folding partial tensors along the tree over segments. */
#ifndef WEFT_FOLD_PRIVATE_H
#define WEFT_FOLD_PRIVATE_H

#include "epilogue_private.h"

#include "weft/ir.h"

/** Trees over more segments than 2^WEFT_FOLD_LEVELS are refused. */
#define WEFT_FOLD_LEVELS 20

typedef struct weft_fold {
  weft_pool pool;
  weft_format format; /**< of the partials: Fp32, Int32, Int64 */
  uint32_t of, node_count;
  const uint32_t *first; /**< by node, ascending */
  /** By node: element `from` of its partial, wherever the slice lies. */
  const unsigned char *const *nodes;
  uint64_t from, count; /**< the slice: elements of the flat result */
  uint64_t cols;
  int threads;
  const weft_epilogue *epilogue;
} weft_fold;

/** Folds the slice, applies the epilogue, stores it. */
void weft_fold_slice(const weft_fold *fold);

#endif
