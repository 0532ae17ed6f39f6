/* Products by register tiles: blocks, packing, threads. The kernels themselves are those of a weft_tiles.
 *
 * Columns go in blocks whose packed b all threads share; within one, a task is some rows of a by some panels of b, over
 * all of k. A task packs its rows of a K block by K block, so that nothing but b is shared and no barrier is needed but
 * the two around the packing of b. Tiles whose fold goes on in a later K block keep their levels in the thread's own
 * memory. */
#include "tiles_private.h"

#include <omp.h>
#include <stdatomic.h>
#include <string.h>

enum {
  COLUMN_BLOCK = 512,     /* columns that share one packing of b, where k takes several K blocks */
  PACKED_BYTES = 8 << 20, /* of b, where k is one K block */
  STREAM_ROWS = 4,        /* rows up to which b is read once, row by row */
  I8_MAX_K = 131071       /* 128 * 128 * k stays within 32 bits */
};

typedef struct tiled_work {
  const weft_product_job *job;
  const weft_tiles *tiles;
  weft_tile_plan plan;
  bool integers, direct;
  uint32_t tile_rows, tile_cols, a_stride;
  uint64_t element_bytes, tile_bytes; /* of packed operands; of a tile */
  uint64_t column_block;
  uint64_t row_chunk, row_chunks;
  unsigned char *packed_b;
  unsigned char *thread_memory;
  uint64_t thread_bytes, a_bytes, panel_bytes;
  atomic_uint_fast64_t next_task;
} tiled_work;

/* One block of columns and how its panels are dealt out. */
typedef struct column_block {
  uint64_t col0, cols, panels, groups;
} column_block;

/* ---- packing b ---- */

static uint64_t packed_k(const tiled_work *w, uint64_t k) { return w->integers ? k + k % 2 : k; }

static unsigned char *panel_of(const tiled_work *w, const column_block *c, const weft_tile_block *block,
                               uint64_t panel) {
  uint64_t element = (block->k0 * c->panels + panel * packed_k(w, block->k)) * w->tile_cols;
  return w->packed_b + element * w->element_bytes;
}

static const unsigned char *b_at(const tiled_work *w, uint64_t k, uint64_t col) {
  return (const unsigned char *)w->job->b + (k * w->job->b_stride + col) * weft_format_bytes(w->job->b_format);
}

/* Packs the panels first .. end - 1 of a K block. */
static void pack_panels(const tiled_work *w, const column_block *c, const weft_tile_block *block, uint64_t first,
                        uint64_t end, unsigned char *to) {
  const weft_product_job *job = w->job;
  uint64_t col = first * w->tile_cols, cols = weft_min_u64(end * w->tile_cols, c->cols) - col;
  const unsigned char *from = b_at(w, block->k0, c->col0 + col);
  if (w->integers)
    w->tiles->pack_b_i8((const int8_t *)from, job->b_stride, cols, block->k, (int16_t *)(void *)to);
  else
    w->tiles->pack_b(job->b_format, from, job->b_stride, cols, block->k, (float *)(void *)to);
}

/* Every thread packs its share: panels next to each other, of which it reads whole lines. */
static void pack_share(const tiled_work *w, const column_block *c, uint64_t thread, uint64_t threads) {
  uint64_t all = w->plan.block_count * c->panels, end = all * (thread + 1) / threads;
  for (uint64_t i = all * thread / threads; i < end;) {
    const weft_tile_block *block = &w->plan.blocks[i / c->panels];
    uint64_t first = i % c->panels, last = weft_min_u64(c->panels, first + end - i);
    pack_panels(w, c, block, first, last, panel_of(w, c, block, first));
    i += last - first;
  }
}

/* ---- a task ---- */

typedef struct task {
  const tiled_work *w;
  const column_block *c;
  uint64_t row0, rows, first_panel, end_panel;
  unsigned char *a, *panel, *kept;
  unsigned char *places[WEFT_TILE_PLACES]; /* of the tile at hand */
} task;

static void pack_rows(const task *t, const weft_tile_block *block) {
  const weft_product_job *job = t->w->job;
  const unsigned char *from =
      (const unsigned char *)job->a + (t->row0 * job->a_stride + block->k0) * weft_format_bytes(job->a_format);
  if (t->w->integers)
    t->w->tiles->pack_a_i8((const int8_t *)from, job->a_stride, t->rows, block->k, (int16_t *)(void *)t->a);
  else
    t->w->tiles->pack_a(job->a_format, from, job->a_stride, t->rows, block->k, (float *)(void *)t->a);
}

/* Points the places that outlive a K block at the tile's own memory. */
static inline void find_places(task *t, uint64_t tile) {
  const weft_tile_plan *plan = &t->w->plan;
  unsigned char *memory = t->kept + tile * plan->kept_count * t->w->tile_bytes;
  for (uint32_t i = 0; i < plan->kept_count; i++, memory += t->w->tile_bytes) t->places[plan->kept[i]] = memory;
}

typedef struct tile {
  uint64_t row, col; /* within the task's rows; of the product */
  uint32_t rows, cols;
} tile;

static void run_tile(const task *t, const weft_tile_block *block, const unsigned char *b, uint64_t b_stride,
                     const tile *at) {
  const tiled_work *w = t->w;
  const unsigned char *a = t->a + at->row * w->a_stride * w->element_bytes;
  if (w->integers)
    w->tiles->i8(at->rows, at->cols, (const int16_t *)(const void *)a, (const int16_t *)(const void *)b, block->runs,
                 block->run_count, (int32_t *const *)(const void *)t->places);
  else
    w->tiles->f32(at->rows, at->cols, (const float *)(const void *)a, (const float *)(const void *)b, b_stride,
                  block->runs, block->run_count, (float *const *)(const void *)t->places);
}

static void finish_tile(const task *t, const tile *at) {
  const weft_epilogue *epilogue = &t->w->job->epilogue;
  void *result = t->places[WEFT_TILE_RESULT];
  if (t->w->integers)
    t->w->tiles->finish_i32(epilogue, t->row0 + at->row, at->col, at->rows, at->cols, result);
  else
    t->w->tiles->finish_f32(epilogue, t->row0 + at->row, at->col, at->rows, at->cols, result);
}

static void run_panel(task *t, const weft_tile_block *block, uint64_t panel, bool last) {
  const tiled_work *w = t->w;
  const unsigned char *b = panel_of(w, t->c, block, panel);
  uint64_t b_stride = w->tile_cols, end = t->c->col0 + t->c->cols;
  tile at = {.col = t->c->col0 + panel * w->tile_cols};
  at.cols = (uint32_t)weft_min_u64(w->tile_cols, end - at.col);
  if (w->direct && at.cols == w->tile_cols) {
    b = b_at(w, block->k0, at.col);
    b_stride = w->job->b_stride;
  } else if (w->direct) { /* the ragged edge: past it lies another row, or nothing */
    pack_panels(w, t->c, block, panel, panel + 1, t->panel);
    b = t->panel;
  }
  uint64_t number = (panel - t->first_panel) * weft_ceil_div(t->rows, w->tile_rows);
  for (; at.row < t->rows; at.row += w->tile_rows, number++) {
    at.rows = (uint32_t)weft_min_u64(w->tile_rows, t->rows - at.row);
    find_places(t, number);
    run_tile(t, block, b, b_stride, &at);
    if (last) finish_tile(t, &at);
  }
}

static void run_task(task *t) {
  const weft_tile_plan *plan = &t->w->plan;
  for (uint64_t i = 0; i < plan->block_count; i++) {
    pack_rows(t, &plan->blocks[i]);
    for (uint64_t panel = t->first_panel; panel < t->end_panel; panel++)
      run_panel(t, &plan->blocks[i], panel, i + 1 == plan->block_count);
  }
}

/* ---- threads ---- */

static bool next_task(tiled_work *w, uint64_t end, uint64_t *index) {
  uint_fast64_t at = atomic_load_explicit(&w->next_task, memory_order_relaxed);
  do {
    if (at >= end) return false;
  } while (
      !atomic_compare_exchange_weak_explicit(&w->next_task, &at, at + 1, memory_order_relaxed, memory_order_relaxed));
  *index = at;
  return true;
}

static void run_tasks(tiled_work *w, const column_block *c, uint64_t begin, uint64_t thread) {
  task t = {.w = w, .c = c, .a = w->thread_memory + thread * w->thread_bytes};
  t.panel = t.a + w->a_bytes;
  unsigned char *places = t.panel + w->panel_bytes;
  for (uint32_t place = 0; place < WEFT_TILE_PLACES; place++) t.places[place] = places + place * w->tile_bytes;
  t.kept = places + WEFT_TILE_PLACES * w->tile_bytes;
  uint64_t index;
  while (next_task(w, begin + w->row_chunks * c->groups, &index)) {
    uint64_t chunk = (index - begin) % w->row_chunks, group = (index - begin) / w->row_chunks;
    t.row0 = chunk * w->row_chunk;
    t.rows = weft_min_u64(w->row_chunk, w->job->m - t.row0);
    t.first_panel = c->panels * group / c->groups;
    t.end_panel = c->panels * (group + 1) / c->groups;
    run_task(&t);
  }
}

static column_block columns_from(const tiled_work *w, uint64_t col0) {
  column_block c = {.col0 = col0, .cols = weft_min_u64(w->column_block, w->job->n - col0)};
  c.panels = weft_ceil_div(c.cols, w->tile_cols);
  uint64_t threads = (uint64_t)w->job->threads;
  c.groups = 1;
  /* Some tasks a thread, also where there are few rows. */
  if (threads > 1 && w->row_chunks < 4 * threads) c.groups = weft_ceil_div(4 * threads, w->row_chunks);
  c.groups = weft_min_u64(c.groups, c.panels);
  return c;
}

static void run_share(tiled_work *w, uint64_t thread, uint64_t threads) {
  uint64_t begin = 0;
  for (uint64_t col0 = 0; col0 < w->job->n; col0 += w->column_block) {
    column_block c = columns_from(w, col0);
    if (!w->direct) {
      pack_share(w, &c, thread, threads);
      if (threads > 1) {
#pragma omp barrier
      }
    }
    run_tasks(w, &c, begin, thread);
    begin += w->row_chunks * c.groups;
    if (!w->direct && threads > 1 && col0 + w->column_block < w->job->n) {
#pragma omp barrier
    }
  }
}

static void run_threads(tiled_work *w) {
  if (w->job->threads == 1) {
    run_share(w, 0, 1);
    return;
  }
#pragma omp parallel num_threads(w->job->threads)
  run_share(w, (uint64_t)omp_get_thread_num(), (uint64_t)omp_get_num_threads());
}

/* ---- cutting ---- */

static uint64_t round_up(uint64_t value, uint64_t unit) { return weft_ceil_div(value, unit) * unit; }

/* Equal chunks of whole tiles, at most block_rows, a multiple of the threads of them when there are enough rows. */
static void cut_rows(tiled_work *w) {
  uint64_t tiles = weft_ceil_div(w->job->m, w->tile_rows), threads = (uint64_t)w->job->threads;
  uint64_t most = weft_max_u64(1, w->tiles->block_rows / w->tile_rows);
  uint64_t chunks = weft_ceil_div(tiles, most);
  if (tiles >= 2 * threads) chunks = round_up(chunks, threads);
  w->row_chunk = weft_ceil_div(tiles, chunks) * w->tile_rows;
  w->row_chunks = weft_ceil_div(w->job->m, w->row_chunk);
}

static void cut_columns(tiled_work *w) {
  uint64_t n = w->job->n, k = weft_max_u64(1, w->job->k);
  uint64_t block = COLUMN_BLOCK;
  if (!w->plan.kept_count) block = weft_max_u64(COLUMN_BLOCK, PACKED_BYTES / w->element_bytes / k);
  if (w->direct && !w->plan.kept_count) block = n;
  block = round_up(weft_min_u64(block, n), w->tile_cols);
  /* Blocks of about one size, rather than a narrow last one. */
  w->column_block = round_up(weft_ceil_div(n, weft_ceil_div(n, block)), w->tile_cols);
}

static bool get_memory(tiled_work *w) {
  const weft_product_job *job = w->job;
  uint64_t depth = w->integers ? w->tiles->i8_depth : w->tiles->depth;
  w->a_bytes = round_up(w->row_chunk * w->a_stride * w->element_bytes, 64);
  w->panel_bytes = w->direct ? depth * w->tile_cols * w->element_bytes : 0;
  uint64_t tiles = w->row_chunk / w->tile_rows * (w->column_block / w->tile_cols);
  w->thread_bytes = w->a_bytes + w->panel_bytes + w->tile_bytes * (WEFT_TILE_PLACES + tiles * w->plan.kept_count);
  w->thread_bytes = round_up(w->thread_bytes, 4096) + 64; /* threads' parts begin in different sets */
  w->thread_memory = weft_chip_scratch(job->chip, WEFT_SCRATCH_THREADS, (uint64_t)job->threads * w->thread_bytes);
  uint64_t packed = w->direct ? 0 : w->column_block * (job->k + 2) * w->element_bytes;
  w->packed_b = weft_chip_scratch(job->chip, WEFT_SCRATCH_PACKED_B, packed);
  return w->thread_memory && w->packed_b;
}

static bool covers(const weft_product_job *job) {
  if (job->acc == WEFT_ACC_F32) return true;
  return job->a_format == WEFT_INT8 && job->b_format == WEFT_INT8 && job->k <= I8_MAX_K;
}

bool weft_product_tiled(const weft_product_job *job, const weft_tiles *tiles) {
  if (!covers(job)) return false;
  tiled_work w = {.job = job, .tiles = tiles, .integers = job->acc != WEFT_ACC_F32};
  if (job->m <= STREAM_ROWS && weft_product_streamed(job, tiles)) return true;
  w.tile_rows = w.integers ? tiles->i8_rows : tiles->rows;
  w.tile_cols = w.integers ? tiles->i8_cols : tiles->cols;
  w.a_stride = w.integers ? tiles->i8_stride : tiles->a_stride;
  w.element_bytes = w.integers ? sizeof(int16_t) : sizeof(float);
  w.tile_bytes = (uint64_t)w.tile_rows * w.tile_cols * sizeof(float);
  w.direct = !w.integers && job->b_format == WEFT_FP32 && job->m <= w.tile_rows; /* one use is not worth packing */
  if (!weft_tile_plan_make(job->chip, job->k, w.integers ? 1 : job->segments,
                           w.integers ? tiles->i8_depth : tiles->depth, &w.plan))
    return weft_chip_failed(job->chip);
  cut_rows(&w);
  cut_columns(&w);
  if (get_memory(&w)) run_threads(&w);
  return true;
}
