/* Products of few rows: the bytes of b are all that counts, so b is read once, where it lies, whole cache lines in
 * order.
 *
 * A task is a range of columns; for each row of a it keeps the running fold and the levels of the tree, a line of the
 * range's width each, in the first-level cache. */
#include "tiles_private.h"

#include <string.h>

enum { RANGE = 1024, K_STEP = 8 };

typedef struct stream_work {
  const weft_product_job *job;
  const weft_tiles *tiles;
  float *a; /* widened, m x k */
  unsigned char *memory;
  uint64_t task_bytes, levels;
  uint64_t parts;
  bool integers; /* lines are of int32 */
} stream_work;

typedef struct stream_task {
  const stream_work *w;
  uint64_t col0, cols;
  float *lines; /* for each row of a: current, then the levels */
} stream_task;

static float *line_of(const stream_task *t, uint64_t row, uint64_t line) {
  return t->lines + (row * (t->w->levels + 1) + line) * RANGE;
}

static void add_left(uint64_t cols, const float *left, float *right) {
  for (uint64_t c = 0; c < cols; c++) right[c] = left[c] + right[c];
}

/* Segment `index` of `count` is folded: merge what it completes and put it on its level. */
static void end_segment(const stream_task *t, uint64_t row, uint32_t index, uint32_t count) {
  uint32_t completed = (index ^ (index + 1)) >> 1;
  float *current = line_of(t, row, 0);
  for (uint32_t merge = index + 1 == count ? index : completed; merge; merge &= merge - 1)
    add_left(t->cols, line_of(t, row, 1 + (uint64_t)__builtin_ctz(merge)), current);
  if (index + 1 < count)
    memcpy(line_of(t, row, 1 + (uint64_t)__builtin_popcount(completed)), current, t->cols * sizeof *current);
}

static void run_segment(const stream_task *t, uint64_t k0, uint64_t k1) {
  const weft_product_job *job = t->w->job;
  for (uint64_t row = 0; row < job->m; row++) memset(line_of(t, row, 0), 0, t->cols * sizeof(float));
  uint64_t step = job->m == 1 ? k1 - k0 : K_STEP; /* rows of b stay in the cache for the other rows of a */
  for (uint64_t k = k0; k < k1; k += step) {
    uint64_t count = weft_min_u64(step, k1 - k);
    const unsigned char *b =
        (const unsigned char *)job->b + (k * job->b_stride + t->col0) * weft_format_bytes(job->b_format);
    for (uint64_t row = 0; row < job->m; row++) {
      if (t->w->integers)
        t->w->tiles->stream_i8((const int8_t *)job->a + row * job->a_stride + k, count, (const int8_t *)b,
                               job->b_stride, t->cols, (int32_t *)(void *)line_of(t, row, 0));
      else
        t->w->tiles->stream_f32(job->b_format, t->w->a + row * job->k + k, count, b, job->b_stride, t->cols,
                                line_of(t, row, 0));
    }
  }
}

/* The epilogue takes integers of 64 bits. */
static void finish_integers(const stream_task *t, uint64_t row) {
  const int32_t *sums = (const int32_t *)(const void *)line_of(t, row, 0);
  int64_t values[64];
  for (uint64_t c = 0; c < t->cols; c += 64) {
    uint64_t count = weft_min_u64(64, t->cols - c);
    for (uint64_t i = 0; i < count; i++) values[i] = sums[c + i];
    weft_epilogue_row_i64(&t->w->job->epilogue, row, t->col0 + c, count, values);
  }
}

static void run_range(const stream_task *t) {
  const weft_product_job *job = t->w->job;
  if (t->w->integers) {
    run_segment(t, 0, job->k);
    for (uint64_t row = 0; row < job->m; row++) finish_integers(t, row);
    return;
  }
  uint32_t count = weft_segments_effective(job->k, job->segments);
  for (uint32_t i = 0; i < count; i++) {
    run_segment(t, weft_segment_begin(job->k, job->segments, i), weft_segment_begin(job->k, job->segments, i + 1));
    for (uint64_t row = 0; row < job->m; row++) end_segment(t, row, i, count);
  }
  for (uint64_t row = 0; row < job->m; row++)
    t->w->tiles->finish_f32(&job->epilogue, row, t->col0, 1, t->cols, line_of(t, row, 0));
}

static void run_part(void *context, uint64_t part) {
  const stream_work *w = context;
  stream_task t = {.w = w, .lines = (float *)(void *)(w->memory + part * w->task_bytes)};
  uint64_t units = weft_ceil_div(w->job->n, 64); /* parts begin at whole cache lines */
  uint64_t begin = weft_min_u64(units * part / w->parts * 64, w->job->n);
  uint64_t end = weft_min_u64(units * (part + 1) / w->parts * 64, w->job->n);
  for (t.col0 = begin; t.col0 < end; t.col0 += t.cols) {
    t.cols = weft_min_u64(RANGE, end - t.col0);
    run_range(&t);
  }
}

static bool covers(const weft_product_job *job) {
  if (job->acc != WEFT_ACC_F32) return true; /* int8, as weft_product_tiled has made sure */
  return (job->b_format == WEFT_FP32 || job->b_format == WEFT_BF16) && job->segments <= UINT32_C(1) << WEFT_TILE_LEVELS;
}

bool weft_product_streamed(const weft_product_job *job, const weft_tiles *tiles) {
  if (!covers(job)) return false;
  stream_work w = {.job = job, .tiles = tiles, .integers = job->acc != WEFT_ACC_F32};
  uint32_t count = w.integers ? 1 : weft_segments_effective(job->k, job->segments);
  while (UINT32_C(1) << w.levels < count) w.levels++;
  w.parts = weft_max_u64(1, weft_min_u64((uint64_t)job->threads, job->n / 64));
  w.task_bytes = job->m * (w.levels + 1) * RANGE * sizeof(float) + 64;
  w.memory = weft_chip_scratch(job->chip, WEFT_SCRATCH_THREADS, w.parts * w.task_bytes);
  w.a = weft_chip_scratch(job->chip, WEFT_SCRATCH_PACKED_B, w.integers ? 0 : job->m * job->k * sizeof(float));
  if (!w.memory || !w.a) return true;
  for (uint64_t row = 0; !w.integers && row < job->m; row++)
    for (uint64_t i = 0; i < job->k; i++)
      w.a[row * job->k + i] = weft_load_f32(job->a_format, job->a, row * job->a_stride + i);
  weft_chip_for(job->chip, w.parts, run_part, &w);
  return true;
}
