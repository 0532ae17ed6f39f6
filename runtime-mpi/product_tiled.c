/* Products by register tiles: blocks, packing, threads. The kernels themselves are those of a weft_tiles.
 *
 * Columns go in blocks whose packed b all threads share; within one, a task is some rows of a by some panels of b, over
 * all of k. A task goes K block by K block: the panels of b that it needs then fit the second-level cache, where all
 * its rows find them; rows of a are packed some at a time. Tiles whose fold goes on in a later K block keep their
 * levels in the thread's own memory. So nothing but b is shared, and nobody waits but for the packing of b. */
#include "tiles_private.h"

enum {
  COLUMN_BLOCK = 1024,    /* columns that share one packing of b, where their tiles keep levels */
  PACKED_BYTES = 4 << 20, /* of b, where they do not: more would not stay in a shared cache beside another rank's */
  STREAM_ROWS = 4,        /* rows up to which b is read once, row by row */
  PACK_PANELS = 8,        /* panels a task of packing takes */
  I8_MAX_K = 131071       /* 128 * 128 * k stays within 32 bits */
};

typedef struct tiled_work {
  const weft_product_job *job;
  const weft_tiles *tiles;
  weft_tile_plan plan;
  bool integers, direct;
  uint32_t tile_rows, tile_cols, a_stride;
  uint64_t element_bytes, tile_bytes; /* of packed operands; of a tile */
  uint64_t panel_k;                   /* k of a packed panel */
  uint64_t column_block;
  uint64_t row_tiles, row_chunks; /* chunks of rows: whole tiles, as many as can be in each */
  uint64_t most_rows;             /* of a chunk */
  unsigned char *packed_b;
  unsigned char *thread_memory;
  uint64_t thread_bytes, a_bytes, panel_bytes;
  /* The block of columns at hand and how its panels are dealt out. */
  uint64_t col0, cols, panels, groups;
} tiled_work;

/* ---- packing b ---- */

static unsigned char *panel_of(const tiled_work *w, const weft_tile_block *block, uint64_t panel) {
  return w->packed_b + (panel * w->panel_k + block->k0) * w->tile_cols * w->element_bytes;
}

static const unsigned char *b_at(const tiled_work *w, uint64_t k, uint64_t col) {
  return (const unsigned char *)w->job->b + (k * w->job->b_stride + col) * weft_format_bytes(w->job->b_format);
}

/* Packs the panels first .. end - 1 of a K block. */
static void pack_panels(const tiled_work *w, const weft_tile_block *block, uint64_t first, uint64_t end,
                        unsigned char *to) {
  const weft_product_job *job = w->job;
  uint64_t col = first * w->tile_cols, cols = weft_min_u64(end * w->tile_cols, w->cols) - col;
  uint64_t panel_stride = w->panel_k * w->tile_cols;
  const unsigned char *from = b_at(w, block->k0, w->col0 + col);
  if (w->integers)
    w->tiles->pack_b_i8((const int8_t *)from, job->b_stride, cols, block->k, (int16_t *)(void *)to, panel_stride);
  else
    w->tiles->pack_b(job->b_format, from, job->b_stride, cols, block->k, (float *)(void *)to, panel_stride);
}

/* A few panels of one K block, of which whole lines are read. */
static void pack_task(void *context, uint64_t index, uint32_t thread) {
  (void)thread;
  const tiled_work *w = context;
  const weft_tile_block *block = &w->plan.blocks[index % w->plan.block_count];
  uint64_t first = index / w->plan.block_count * PACK_PANELS, end = weft_min_u64(first + PACK_PANELS, w->panels);
  pack_panels(w, block, first, end, panel_of(w, block, first));
}

/* ---- a task ---- */

static uint64_t chunk_begin(const tiled_work *w, uint64_t chunk) {
  return weft_min_u64(w->job->m, w->row_tiles * chunk / w->row_chunks * w->tile_rows);
}

typedef struct task {
  const tiled_work *w;
  uint64_t row0, rows, first_panel, end_panel;
  uint64_t next_row0; /* of the task that this thread probably takes next */
  unsigned char *a, *panel, *kept;
  uint64_t tiles, tile;                    /* of a K block; how many of them are done */
  unsigned char *places[WEFT_TILE_PLACES]; /* of the tile at hand */
} task;

static void pack_rows(const task *t, const weft_tile_block *block) {
  const weft_product_job *job = t->w->job;
  uint64_t element = t->row0 * job->a_stride + block->k0;
  const unsigned char *from = (const unsigned char *)job->a + element * weft_format_bytes(job->a_format);
  if (t->w->integers)
    t->w->tiles->pack_a_i8((const int8_t *)from, job->a_stride, t->rows, block->k, (int16_t *)(void *)t->a);
  else
    t->w->tiles->pack_a(job->a_format, from, job->a_stride, t->rows, block->k, (float *)(void *)t->a);
}

typedef struct tile {
  uint64_t row, col; /* within the task's rows; of the product */
  uint32_t rows, cols;
} tile;

/* Rows of a are too far apart for the processor to see them coming: while the tiles of one K block are computed, the
 * rows of the next are fetched, some with each tile, into the second-level cache. After the last K block they are those
 * of the next task. */
static void fetch_rows(const task *t, const weft_tile_block *block) {
  const weft_product_job *job = t->w->job;
  const weft_tile_plan *plan = &t->w->plan;
  bool last = block + 1 == plan->blocks + plan->block_count;
  const weft_tile_block *next = last ? plan->blocks : block + 1;
  uint64_t row0 = last ? t->next_row0 : t->row0;
  uint64_t bytes = weft_format_bytes(job->a_format), size = next->k * bytes;
  uint64_t end = t->rows * (t->tile + 1) / t->tiles;
  for (uint64_t row = t->rows * t->tile / t->tiles; row < end && row0 + row < job->m; row++) {
    const unsigned char *from = (const unsigned char *)job->a + ((row0 + row) * job->a_stride + next->k0) * bytes;
    for (uint64_t at = 0; at < size; at += 64) __builtin_prefetch(from + at, 0, 2);
  }
}

static void fetch_result(const task *t, const tile *at) {
  const weft_epilogue *e = &t->w->job->epilogue;
  uint64_t bytes = weft_format_bytes(e->format);
  for (uint64_t row = 0; row < at->rows; row++) {
    const char *to = (const char *)e->out + ((t->row0 + at->row + row) * e->stride + at->col) * bytes;
    for (uint64_t byte = 0; byte < at->cols * bytes; byte += 64) __builtin_prefetch(to + byte, 1, 3);
  }
}

/* Points the places that outlive a K block at the tile's own memory. */
static inline void find_places(task *t, uint64_t number) {
  const weft_tile_plan *plan = &t->w->plan;
  unsigned char *memory = t->kept + number * plan->kept_count * t->w->tile_bytes;
  for (uint32_t i = 0; i < plan->kept_count; i++, memory += t->w->tile_bytes) t->places[plan->kept[i]] = memory;
}

static void run_tile(const task *t, const weft_tile_block *block, const unsigned char *a, const unsigned char *b,
                     uint64_t b_stride, const tile *at) {
  const weft_tiles *tiles = t->w->tiles;
  if (t->w->integers)
    tiles->i8(at->rows, at->cols, (const int16_t *)(const void *)a, (const int16_t *)(const void *)b, block->runs,
              block->run_count, (int32_t *const *)(const void *)t->places);
  else
    tiles->f32(at->rows, at->cols, (const float *)(const void *)a, (const float *)(const void *)b, b_stride,
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

static void run_panel(task *t, const weft_tile_block *block, uint64_t panel) {
  const tiled_work *w = t->w;
  const unsigned char *b = panel_of(w, block, panel), *a = t->a;
  uint64_t b_stride = w->tile_cols, number = (panel - t->first_panel) * weft_ceil_div(t->rows, w->tile_rows);
  tile at = {.col = w->col0 + panel * w->tile_cols};
  at.cols = (uint32_t)weft_min_u64(w->tile_cols, w->col0 + w->cols - at.col);
  if (w->direct && at.cols == w->tile_cols) {
    b = b_at(w, block->k0, at.col);
    b_stride = w->job->b_stride;
  } else if (w->direct) { /* the ragged edge: past it lies another row, or nothing */
    pack_panels(w, block, panel, panel + 1, t->panel);
    b = t->panel;
  }
  bool last = block + 1 == w->plan.blocks + w->plan.block_count;
  for (; at.row < t->rows; at.row += w->tile_rows, number++) {
    at.rows = (uint32_t)weft_min_u64(w->tile_rows, t->rows - at.row);
    find_places(t, number);
    fetch_rows(t, block);
    t->tile++;
    if (last) fetch_result(t, &at);
    run_tile(t, block, a, b, b_stride, &at);
    if (last) finish_tile(t, &at);
    a += w->tile_rows * w->a_stride * w->element_bytes;
  }
}

static void run_task(task *t) {
  for (uint64_t i = 0; i < t->w->plan.block_count; i++) {
    const weft_tile_block *block = &t->w->plan.blocks[i];
    pack_rows(t, block);
    t->tile = 0;
    for (uint64_t panel = t->first_panel; panel < t->end_panel; panel++) run_panel(t, block, panel);
  }
}

static void tile_task(void *context, uint64_t index, uint32_t thread) {
  const tiled_work *w = context;
  uint64_t chunk = index % w->row_chunks, group = index / w->row_chunks;
  task t = {.w = w, .a = w->thread_memory + thread * w->thread_bytes};
  t.panel = t.a + w->a_bytes;
  unsigned char *places = t.panel + w->panel_bytes;
  for (uint32_t place = 0; place < WEFT_TILE_PLACES; place++) t.places[place] = places + place * w->tile_bytes;
  t.kept = places + WEFT_TILE_PLACES * w->tile_bytes;
  t.row0 = chunk_begin(w, chunk);
  t.rows = chunk_begin(w, chunk + 1) - t.row0;
  t.next_row0 = chunk_begin(w, (chunk + (uint64_t)w->job->threads) % w->row_chunks);
  t.first_panel = w->panels * group / w->groups;
  t.end_panel = w->panels * (group + 1) / w->groups;
  t.tiles = weft_ceil_div(t.rows, w->tile_rows) * (t.end_panel - t.first_panel);
  run_task(&t);
}

/* ---- cutting ---- */

static uint64_t round_up(uint64_t value, uint64_t unit) { return weft_ceil_div(value, unit) * unit; }

/* Tasks of whole tiles and of almost equal size; a multiple of the threads of them when there are enough rows. */
static void cut_rows(tiled_work *w) {
  uint64_t threads = (uint64_t)w->job->threads;
  w->row_tiles = weft_ceil_div(w->job->m, w->tile_rows);
  w->row_chunks = weft_ceil_div(w->row_tiles, weft_max_u64(1, w->tiles->block_rows / w->tile_rows));
  if (w->row_tiles >= 2 * threads) w->row_chunks = round_up(w->row_chunks, threads);
  w->most_rows = weft_ceil_div(w->row_tiles, w->row_chunks) * w->tile_rows;
}

static void cut_columns(tiled_work *w) {
  uint64_t n = w->job->n, k = weft_max_u64(1, w->job->k), block = COLUMN_BLOCK;
  if (!w->plan.kept_count) block = w->direct ? n : weft_max_u64(COLUMN_BLOCK, PACKED_BYTES / w->element_bytes / k);
  block = round_up(weft_min_u64(block, n), w->tile_cols);
  /* Blocks of about one size, rather than a narrow last one. */
  w->column_block = round_up(weft_ceil_div(n, weft_ceil_div(n, block)), w->tile_cols);
}

static void take_columns(tiled_work *w, uint64_t col0) {
  uint64_t threads = (uint64_t)w->job->threads;
  w->col0 = col0;
  w->cols = weft_min_u64(w->column_block, w->job->n - col0);
  w->panels = weft_ceil_div(w->cols, w->tile_cols);
  w->groups = 1;
  /* Some tasks a thread, also where there are few rows. */
  if (threads > 1 && w->row_chunks < 4 * threads) w->groups = weft_ceil_div(4 * threads, w->row_chunks);
  w->groups = weft_min_u64(w->groups, w->panels);
}

static bool get_memory(tiled_work *w) {
  const weft_product_job *job = w->job;
  uint64_t depth = w->integers ? w->tiles->i8_depth : w->tiles->depth;
  w->a_bytes = round_up(w->most_rows * w->a_stride * w->element_bytes, 64);
  w->panel_bytes = w->direct ? depth * w->tile_cols * w->element_bytes : 0;
  uint64_t tiles = w->most_rows / w->tile_rows * (w->column_block / w->tile_cols);
  w->thread_bytes = w->a_bytes + w->panel_bytes + w->tile_bytes * (WEFT_TILE_PLACES + tiles * w->plan.kept_count);
  w->thread_bytes = round_up(w->thread_bytes, 4096) + 64; /* threads' parts begin in different sets */
  w->thread_memory = weft_chip_scratch(job->chip, WEFT_SCRATCH_THREADS, (uint64_t)job->threads * w->thread_bytes);
  uint64_t packed = w->direct ? 0 : w->column_block * w->panel_k * w->element_bytes;
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
  w.panel_k = job->k + job->k % 2;
  w.direct = !w.integers && job->b_format == WEFT_FP32 && job->m <= w.tile_rows; /* one use is not worth packing */
  if (!weft_tile_plan_make(job->chip, job->k, w.integers ? 1 : job->segments,
                           w.integers ? tiles->i8_depth : tiles->depth, &w.plan))
    return weft_chip_failed(job->chip);
  cut_rows(&w);
  cut_columns(&w);
  for (uint64_t col0 = 0; get_memory(&w) && col0 < job->n; col0 += w.column_block) {
    take_columns(&w, col0);
    uint64_t packs = weft_ceil_div(w.panels, PACK_PANELS) * w.plan.block_count;
    if (!w.direct) weft_chip_parallel(job->chip, packs, job->threads, pack_task, &w);
    weft_chip_parallel(job->chip, w.row_chunks * w.groups, job->threads, tile_task, &w);
  }
  return true;
}
