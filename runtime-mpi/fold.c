/* The fold of an all-reduce: block by block along the tree, temporaries in the first-level cache. */
#include "fold_private.h"
#include "product_private.h"

#include <string.h>

enum { BLOCK = 1024 };

/* ---- fp32 ---- */

typedef struct block_f32 {
  const weft_fold *fold;
  uint64_t offset; /* into the slice */
  uint32_t count;
  float *result; /* of the whole tree */
  float temporaries[WEFT_FOLD_LEVELS + 1][2][BLOCK];
} block_f32;

/* The largest power of two below n, n > 1: where the tree splits n leaves. */
static uint32_t split_of(uint32_t n) {
  uint32_t left = 1;
  while (left < n - left) left *= 2;
  return left;
}

/* The result over the segments low .. high - 1, held by the nodes i .. j - 1: a node itself, or a temporary of `level`.
 */
static const float *tree_f32(block_f32 *block, uint32_t low, uint32_t high, uint32_t i, uint32_t j, uint32_t level,
                             int side) {
  const weft_fold *fold = block->fold;
  if (j - i == 1) return (const float *)(const void *)fold->nodes[i] + block->offset;
  uint32_t middle = low + split_of(high - low), cut = i;
  while (cut < j && fold->first[cut] < middle) cut++;
  if (cut == i) return tree_f32(block, middle, high, i, j, level, side);
  if (cut == j) return tree_f32(block, low, middle, i, j, level, side);
  const float *left = tree_f32(block, low, middle, i, cut, level + 1, 0);
  const float *right = tree_f32(block, middle, high, cut, j, level + 1, 1);
  float *out = level ? block->temporaries[level][side] : block->result;
  fold->epilogue->chip->kernels->combine(fold->pool, block->count, left, right, out);
  return out;
}

/* The epilogue takes runs within a row. */
static void store_f32(const weft_fold *fold, uint64_t at, uint64_t count, float *values) {
  while (count) {
    uint64_t row = at / fold->cols, col = at % fold->cols, run = weft_min_u64(count, fold->cols - col);
    weft_epilogue_row_f32(fold->epilogue, row, col, run, values);
    at += run;
    values += run;
    count -= run;
  }
}

/* Results that are only stored go straight where they belong. */
static void fold_f32(const weft_fold *fold, uint64_t begin, uint64_t end) {
  const weft_epilogue *epilogue = fold->epilogue;
  bool plain = epilogue->count == 0 && epilogue->format == WEFT_FP32 && epilogue->stride == fold->cols;
  block_f32 block; /* the temporaries are many and seldom used: they are not cleared */
  block.fold = fold;
  for (block.offset = begin; block.offset < end; block.offset += BLOCK) {
    block.count = (uint32_t)weft_min_u64(BLOCK, end - block.offset);
    block.result = plain ? (float *)epilogue->out + fold->from + block.offset : block.temporaries[0][0];
    const float *result = tree_f32(&block, 0, fold->of, 0, fold->node_count, 0, 0);
    if (result != block.result) memcpy(block.result, result, block.count * sizeof *result);
    if (!plain) store_f32(fold, fold->from + block.offset, block.count, block.result);
  }
}

/* ---- integers: exact, so in any order ---- */

static int64_t node_i64(const weft_fold *fold, uint32_t node, uint64_t index) {
  return weft_load_i64(fold->format, fold->nodes[node], index);
}

static void accumulate_i64(const weft_fold *fold, uint32_t node, uint64_t offset, uint32_t count, int64_t *values) {
  for (uint32_t i = 0; i < count; i++) {
    int64_t value = node_i64(fold, node, offset + i);
    if (fold->pool == WEFT_POOL_MAX)
      values[i] = value > values[i] ? value : values[i];
    else if (fold->pool == WEFT_POOL_MIN)
      values[i] = value < values[i] ? value : values[i];
    else if (__builtin_add_overflow(values[i], value, &values[i]))
      weft_epilogue_overflow(fold->epilogue, (fold->from + offset + i) / fold->cols,
                             (fold->from + offset + i) % fold->cols);
  }
}

/* The sum is an accumulator of the partials' format: what does not fit it is a fault, as on one chip. */
static void check_i64(const weft_fold *fold, uint64_t offset, uint32_t count, const int64_t *values) {
  if (fold->format != WEFT_INT32) return;
  for (uint32_t i = 0; i < count; i++)
    if (values[i] < INT32_MIN || values[i] > INT32_MAX) {
      uint64_t at = fold->from + offset + i;
      weft_epilogue_misfit(fold->epilogue, at / fold->cols, at % fold->cols, values[i], WEFT_INT32);
      return;
    }
}

static void store_i64(const weft_fold *fold, uint64_t at, uint64_t count, int64_t *values) {
  while (count) {
    uint64_t row = at / fold->cols, col = at % fold->cols, run = weft_min_u64(count, fold->cols - col);
    weft_epilogue_row_i64(fold->epilogue, row, col, run, values);
    at += run;
    values += run;
    count -= run;
  }
}

static void fold_i64(const weft_fold *fold, uint64_t begin, uint64_t end) {
  int64_t values[BLOCK];
  for (uint64_t offset = begin; offset < end; offset += BLOCK) {
    uint32_t count = (uint32_t)weft_min_u64(BLOCK, end - offset);
    for (uint32_t i = 0; i < count; i++) values[i] = node_i64(fold, 0, offset + i);
    for (uint32_t node = 1; node < fold->node_count; node++) accumulate_i64(fold, node, offset, count, values);
    check_i64(fold, offset, count, values);
    store_i64(fold, fold->from + offset, count, values);
  }
}

/* ---- parts over threads ---- */

typedef struct fold_work {
  const weft_fold *fold;
  uint64_t parts;
} fold_work;

static void fold_part(void *context, uint64_t part) {
  const fold_work *work = context;
  uint64_t blocks = weft_ceil_div(work->fold->count, BLOCK);
  uint64_t begin = blocks * part / work->parts * BLOCK;
  uint64_t end = weft_min_u64(blocks * (part + 1) / work->parts * BLOCK, work->fold->count);
  if (work->fold->format == WEFT_FP32)
    fold_f32(work->fold, begin, end);
  else
    fold_i64(work->fold, begin, end);
}

void weft_fold_slice(const weft_fold *fold) {
  /* A thread is worth starting for some ten thousand elements. */
  fold_work work = {fold, weft_max_u64(1, weft_min_u64((uint64_t)fold->threads, fold->count / 16384))};
  if (fold->count) weft_chip_for(fold->epilogue->chip, work.parts, fold_part, &work);
}
