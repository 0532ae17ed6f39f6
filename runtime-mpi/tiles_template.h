/* tiles_template.h: the kernels of one instruction set. Included once by each kernel file, which defines before:
 *
 *   TILE_ROWS, TILE_VECTORS, LANES     fp32 tile: rows x (vectors of LANES floats)
 *   TILE_DEPTH, TILE_BLOCK_ROWS        K block and rows of a task
 *   I8_ROWS, I8_VECTORS, I8_DEPTH      int8 tile: rows x (vectors of LANES int32)
 *   vector_f32, vector_i32, vector_i16 registers; vector_i16 holds LANES pairs of int16
 *   F32_SET(x) F32_LOAD(p) F32_STORE(p, v) F32_FMA(a, b, c)
 *   I32_LOAD(p) I32_STORE(p, v)
 *   I16_LOAD(p) I16_SET_PAIR(p)        the pair at p in every lane
 *   I16_DOT(acc, a, b)                 acc + a.first * b.first + a.second * b.second, exact in 32 bits modulo 2^32
 *   HOLD(v)                            keeps a vector in a register
 *   TILES                              the name of the weft_tiles it defines
 */
#include "epilogue_inline.h"
#include "tiles_private.h"

#include "weft/arithmetic.h"

#include <string.h>

enum {
  TILE_COLS = TILE_VECTORS * LANES,
  /* Rows of packed a begin in different sets of the first-level cache. */
  A_STRIDE = TILE_DEPTH + 16,
  I8_COLS = I8_VECTORS * LANES,
  I8_STRIDE = I8_DEPTH + 32,
};

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

/* ---- fp32 ---- */

typedef struct accumulators {
  vector_f32 at[TILE_ROWS][TILE_VECTORS];
} accumulators;

ALWAYS_INLINE void step_f32(const uint32_t rows, const uint32_t vectors, const float *a, const float *b,
                            accumulators *acc) {
  vector_f32 columns[TILE_VECTORS];
  UNROLL for (uint32_t v = 0; v < vectors; v++) {
    columns[v] = F32_LOAD(b + v * LANES);
    HOLD(columns[v]);
  }
  UNROLL for (uint32_t i = 0; i < rows; i++) {
    vector_f32 element = F32_SET(a[i * A_STRIDE]);
    UNROLL for (uint32_t v = 0; v < vectors; v++) acc->at[i][v] = F32_FMA(element, columns[v], acc->at[i][v]);
  }
}

/* Where b is read as it lies, its rows are too far apart for the processor to see them coming. */
enum { FETCH_ROWS = 16 };
ALWAYS_INLINE void fetch_rows(const float *b, uint64_t b_stride) {
  UNROLL for (uint32_t i = 0; i < 4; i++) UNROLL for (uint32_t line = 0; line < TILE_COLS; line += 16)
      __builtin_prefetch(b + i * b_stride + line);
}

ALWAYS_INLINE void merge_f32(const uint32_t rows, const uint32_t vectors, const float *left, accumulators *acc) {
  UNROLL for (uint32_t i = 0; i < rows; i++) UNROLL for (uint32_t v = 0; v < vectors; v++) acc->at[i][v] =
      F32_LOAD(left + i * TILE_COLS + v * LANES) + acc->at[i][v];
}

ALWAYS_INLINE void tile_f32(const uint32_t rows, const uint32_t vectors, const float *a, const float *b,
                            const uint64_t b_stride, const weft_tile_run *run, uint32_t run_count,
                            float *const *places) {
  for (; run_count > 0; run_count--, run++) {
    accumulators acc;
    const float *start = places[WEFT_TILE_CURRENT];
    UNROLL for (uint32_t i = 0; i < rows; i++) UNROLL for (uint32_t v = 0; v < vectors; v++) acc.at[i][v] =
        F32_SET(0.0f);
    if (run->resumes) {
      UNROLL for (uint32_t i = 0; i < rows; i++) UNROLL for (uint32_t v = 0; v < vectors; v++) acc.at[i][v] =
          F32_LOAD(start + i * TILE_COLS + v * LANES);
    }
    uint32_t left = run->length;
    for (; left >= 4; left -= 4, a += 4, b += 4 * b_stride) {
      if (b_stride != TILE_COLS) fetch_rows(b + FETCH_ROWS * b_stride, b_stride);
      step_f32(rows, vectors, a, b, &acc);
      step_f32(rows, vectors, a + 1, b + b_stride, &acc);
      step_f32(rows, vectors, a + 2, b + 2 * b_stride, &acc);
      step_f32(rows, vectors, a + 3, b + 3 * b_stride, &acc);
    }
    for (; left > 0; left--, a++, b += b_stride) step_f32(rows, vectors, a, b, &acc);
    for (uint32_t merge = run->merge; merge; merge &= merge - 1)
      merge_f32(rows, vectors, places[__builtin_ctz(merge)], &acc);
    float *to = places[run->store];
    UNROLL for (uint32_t i = 0; i < rows; i++) UNROLL for (uint32_t v = 0; v < vectors; v++)
        F32_STORE(to + i * TILE_COLS + v * LANES, acc.at[i][v]);
  }
}

#define CASE_F32(n)                                                                                                    \
  case n:                                                                                                              \
    if (b_stride != TILE_COLS)                                                                                         \
      tile_f32(n, TILE_VECTORS, a, b, b_stride, runs, run_count, places);                                              \
    else if (cols > LANES)                                                                                             \
      tile_f32(n, TILE_VECTORS, a, b, TILE_COLS, runs, run_count, places);                                             \
    else                                                                                                               \
      tile_f32(n, 1, a, b, TILE_COLS, runs, run_count, places);                                                        \
    break;

static void tiles_f32(uint32_t rows, uint32_t cols, const float *a, const float *b, uint64_t b_stride,
                      const weft_tile_run *runs, uint32_t run_count, float *const *places) {
  switch (rows) { TILE_CASES(CASE_F32) }
}

ALWAYS_INLINE void widen(weft_format format, const void *from, uint64_t count, float *restrict to) {
  switch (format) {
  case WEFT_FP32: memcpy(to, from, count * sizeof *to); break;
  case WEFT_BF16:
    for (uint64_t i = 0; i < count; i++) to[i] = weft_inline_bf16_to_f32(((const uint16_t *)from)[i]);
    break;
  case WEFT_FP16:
    for (uint64_t i = 0; i < count; i++) to[i] = weft_inline_fp16_to_f32(((const uint16_t *)from)[i]);
    break;
  default:
    for (uint64_t i = 0; i < count; i++) to[i] = weft_inline_fp8_to_f32(((const uint8_t *)from)[i]);
  }
}

static void pack_a(weft_format format, const void *from, uint64_t stride, uint64_t rows, uint64_t k, float *to) {
  const unsigned char *row = from;
  for (uint64_t i = 0; i < rows; i++) widen(format, row + i * stride * weft_format_bytes(format), k, to + i * A_STRIDE);
}

/* Whole panels next to each other: rows of b are read in runs of several lines, each panel is written in order. */
ALWAYS_INLINE void pack_panels(weft_format format, const unsigned char *row, uint64_t line, const uint64_t panels,
                               uint64_t k, float *to, uint64_t panel_stride) {
  size_t width = TILE_COLS * weft_format_bytes(format);
  for (uint64_t i = 0; i < k; i++, row += line, to += TILE_COLS)
    for (uint64_t p = 0; p < panels; p++) widen(format, row + p * width, TILE_COLS, to + p * panel_stride);
}

/* Columns past the edge are zero: what is computed with them is dropped. */
static void pack_edge(weft_format format, const unsigned char *row, uint64_t line, uint64_t cols, uint64_t k,
                      float *to) {
  for (uint64_t i = 0; i < k; i++, row += line, to += TILE_COLS) {
    widen(format, row, cols, to);
    for (uint64_t c = cols; c < TILE_COLS; c++) to[c] = 0;
  }
}

enum { PANELS_TOGETHER = 8 };

static void pack_b(weft_format format, const void *from, uint64_t stride, uint64_t cols, uint64_t k, float *to,
                   uint64_t panel_stride) {
  size_t bytes = weft_format_bytes(format);
  uint64_t line = stride * bytes, whole = cols / TILE_COLS;
  for (uint64_t panel = 0; panel < whole; panel += PANELS_TOGETHER) {
    const unsigned char *row = (const unsigned char *)from + panel * TILE_COLS * bytes;
    uint64_t panels = weft_min_u64(PANELS_TOGETHER, whole - panel);
    float *out = to + panel * panel_stride;
    if (format == WEFT_FP32)
      pack_panels(WEFT_FP32, row, line, panels, k, out, panel_stride);
    else if (format == WEFT_BF16)
      pack_panels(WEFT_BF16, row, line, panels, k, out, panel_stride);
    else
      pack_panels(format, row, line, panels, k, out, panel_stride);
  }
  if (cols % TILE_COLS)
    pack_edge(format, (const unsigned char *)from + whole * TILE_COLS * bytes, line, cols % TILE_COLS, k,
              to + whole * panel_stride);
}

static void finish_f32(const weft_epilogue *epilogue, uint64_t row, uint64_t col, uint64_t rows, uint64_t cols,
                       float *tile) {
  for (uint64_t i = 0; i < rows; i++) {
    if (cols == TILE_COLS)
      inline_row_f32(epilogue, row + i, col, TILE_COLS, tile + i * TILE_COLS);
    else
      inline_row_f32(epilogue, row + i, col, cols, tile + i * TILE_COLS);
  }
}

/* ---- int8 ---- */

typedef struct accumulators_i32 {
  vector_i32 at[I8_ROWS][I8_VECTORS];
} accumulators_i32;

ALWAYS_INLINE void step_i8(const uint32_t rows, const uint32_t vectors, const int16_t *a, const int16_t *b,
                           accumulators_i32 *acc) {
  vector_i16 columns[I8_VECTORS];
  UNROLL for (uint32_t v = 0; v < vectors; v++) {
    columns[v] = I16_LOAD(b + v * LANES * 2);
    HOLD(columns[v]);
  }
  UNROLL for (uint32_t i = 0; i < rows; i++) {
    vector_i16 pair = I16_SET_PAIR(a + i * I8_STRIDE);
    UNROLL for (uint32_t v = 0; v < vectors; v++) {
      acc->at[i][v] = I16_DOT(acc->at[i][v], pair, columns[v]);
      HOLD(acc->at[i][v]); /* or sums of two steps are added first, which takes twice the registers */
    }
  }
}

ALWAYS_INLINE void tile_i8(const uint32_t rows, const uint32_t vectors, const int16_t *a, const int16_t *b,
                           const weft_tile_run *run, uint32_t run_count, int32_t *const *places) {
  for (; run_count > 0; run_count--, run++) {
    accumulators_i32 acc;
    const int32_t *start = places[WEFT_TILE_CURRENT];
    UNROLL for (uint32_t i = 0; i < rows; i++) UNROLL for (uint32_t v = 0; v < vectors; v++) acc.at[i][v] =
        (vector_i32){0};
    if (run->resumes) {
      UNROLL for (uint32_t i = 0; i < rows; i++) UNROLL for (uint32_t v = 0; v < vectors; v++) acc.at[i][v] =
          I32_LOAD(start + i * I8_COLS + v * LANES);
    }
    uint32_t pairs = run->length / 2 + run->length % 2;
    for (; pairs >= 2; pairs -= 2, a += 4, b += 4 * I8_COLS) {
      step_i8(rows, vectors, a, b, &acc);
      step_i8(rows, vectors, a + 2, b + 2 * I8_COLS, &acc);
    }
    if (pairs) step_i8(rows, vectors, a, b, &acc);
    int32_t *to = places[run->store];
    UNROLL for (uint32_t i = 0; i < rows; i++) UNROLL for (uint32_t v = 0; v < vectors; v++)
        I32_STORE(to + i * I8_COLS + v * LANES, acc.at[i][v]);
  }
}

#define CASE_I8(n)                                                                                                     \
  case n:                                                                                                              \
    if (cols > LANES)                                                                                                  \
      tile_i8(n, I8_VECTORS, a, b, runs, run_count, places);                                                           \
    else                                                                                                               \
      tile_i8(n, 1, a, b, runs, run_count, places);                                                                    \
    break;

static void tiles_i8(uint32_t rows, uint32_t cols, const int16_t *a, const int16_t *b, const weft_tile_run *runs,
                     uint32_t run_count, int32_t *const *places) {
  switch (rows) { I8_CASES(CASE_I8) }
}

static void pack_a_i8(const int8_t *from, uint64_t stride, uint64_t rows, uint64_t k, int16_t *to) {
  for (uint64_t i = 0; i < rows; i++) {
    int16_t *restrict row = to + i * I8_STRIDE;
    for (uint64_t c = 0; c < k; c++) row[c] = from[i * stride + c];
    if (k % 2) row[k] = 0;
  }
}

ALWAYS_INLINE void pack_pair(const int8_t *first, const int8_t *second, const uint64_t cols, int16_t *restrict to) {
  for (uint64_t c = 0; c < cols; c++) {
    to[2 * c] = first[c];
    to[2 * c + 1] = second[c];
  }
}

static void pack_panel_i8(const int8_t *from, uint64_t stride, uint64_t cols, uint64_t k, int16_t *to) {
  static const int8_t zero[I8_COLS];
  for (uint64_t i = 0; i < k; i += 2, to += 2 * I8_COLS) {
    const int8_t *first = from + i * stride, *second = i + 1 < k ? first + stride : zero;
    if (cols == I8_COLS) {
      pack_pair(first, second, I8_COLS, to);
    } else {
      pack_pair(first, second, cols, to);
      for (uint64_t c = 2 * cols; c < 2 * I8_COLS; c++) to[c] = 0;
    }
  }
}

static void pack_b_i8(const int8_t *from, uint64_t stride, uint64_t cols, uint64_t k, int16_t *to,
                      uint64_t panel_stride) {
  for (uint64_t col = 0; col < cols; col += I8_COLS, to += panel_stride)
    pack_panel_i8(from + col, stride, weft_min_u64(I8_COLS, cols - col), k, to);
}

static void finish_i32(const weft_epilogue *epilogue, uint64_t row, uint64_t col, uint64_t rows, uint64_t cols,
                       const int32_t *tile) {
  int64_t values[I8_COLS];
  for (uint64_t i = 0; i < rows; i++) {
    for (uint64_t c = 0; c < I8_COLS; c++) values[c] = tile[i * I8_COLS + c];
    if (cols == I8_COLS)
      inline_row_i64(epilogue, row + i, col, I8_COLS, values);
    else
      inline_row_i64(epilogue, row + i, col, cols, values);
  }
}

/* ---- few rows: memory is the limit ---- */

enum { STREAM_STEP = 8 };

typedef uint16_t vector_u16 __attribute__((vector_size(2 * LANES)));
typedef uint32_t vector_u32 __attribute__((vector_size(4 * LANES)));

ALWAYS_INLINE vector_f32 load_widened(const weft_format format, const void *b, uint64_t index) {
  if (format == WEFT_FP32) return F32_LOAD((const float *)b + index);
  vector_u16 halves;
  memcpy(&halves, (const uint16_t *)b + index, sizeof halves);
  return (vector_f32)(__builtin_convertvector(halves, vector_u32) << 16);
}

/* `count` rows of b in one pass over the columns: the running fold is loaded and stored once for all of them. */
ALWAYS_INLINE void stream_rows(const weft_format format, const uint64_t count, const float *a, const void *b,
                               uint64_t b_stride, uint64_t cols, float *restrict acc) {
  vector_f32 elements[STREAM_STEP];
  UNROLL for (uint64_t i = 0; i < count; i++) elements[i] = F32_SET(a[i]);
  uint64_t c = 0;
  for (; c + LANES <= cols; c += LANES) {
    vector_f32 sum = F32_LOAD(acc + c);
    UNROLL for (uint64_t i = 0; i < count; i++) sum =
        F32_FMA(elements[i], load_widened(format, b, i * b_stride + c), sum);
    F32_STORE(acc + c, sum);
  }
  for (; c < cols; c++) {
    float sum = acc[c];
    for (uint64_t i = 0; i < count; i++) {
      float element = format == WEFT_FP32 ? ((const float *)b)[i * b_stride + c]
                                          : weft_inline_bf16_to_f32(((const uint16_t *)b)[i * b_stride + c]);
      sum = __builtin_fmaf(a[i], element, sum);
    }
    acc[c] = sum;
  }
}

ALWAYS_INLINE void stream_all(const weft_format format, const float *a, uint64_t k, const unsigned char *b,
                              uint64_t b_stride, uint64_t cols, float *acc) {
  uint64_t line = b_stride * (format == WEFT_FP32 ? 4 : 2);
  for (; k >= STREAM_STEP; k -= STREAM_STEP, a += STREAM_STEP, b += STREAM_STEP * line)
    stream_rows(format, STREAM_STEP, a, b, b_stride, cols, acc);
  for (; k > 0; k--, a++, b += line) stream_rows(format, 1, a, b, b_stride, cols, acc);
}

static void stream_f32(weft_format format, const float *a, uint64_t k, const void *b, uint64_t b_stride, uint64_t cols,
                       float *acc) {
  if (format == WEFT_FP32)
    stream_all(WEFT_FP32, a, k, b, b_stride, cols, acc);
  else
    stream_all(WEFT_BF16, a, k, b, b_stride, cols, acc);
}

/* The product of two int8 fits 16 bits, the sum of two of them does not. */
static void stream_i8(const int8_t *a, uint64_t k, const int8_t *b, uint64_t b_stride, uint64_t cols,
                      int32_t *restrict acc) {
  for (; k >= 2; k -= 2, a += 2, b += 2 * b_stride) {
    const int8_t *restrict first = b, *restrict second = b + b_stride;
    int16_t a0 = a[0], a1 = a[1];
    for (uint64_t c = 0; c < cols; c++) {
      int16_t p = (int16_t)(a0 * (int16_t)first[c]), q = (int16_t)(a1 * (int16_t)second[c]);
      acc[c] += p + q;
    }
  }
  for (uint64_t c = 0; k && c < cols; c++) acc[c] += *a * b[c];
}

/* ---- the set ---- */

static void combine(weft_pool pool, uint64_t count, const float *left, const float *right, float *out) {
  inline_combine(pool, count, left, right, out);
}

static const weft_tiles TILES = {
    .rows = TILE_ROWS,
    .cols = TILE_COLS,
    .a_stride = A_STRIDE,
    .depth = TILE_DEPTH,
    .block_rows = TILE_BLOCK_ROWS,
    .i8_rows = I8_ROWS,
    .i8_cols = I8_COLS,
    .i8_stride = I8_STRIDE,
    .i8_depth = I8_DEPTH,
    .f32 = tiles_f32,
    .i8 = tiles_i8,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .pack_a_i8 = pack_a_i8,
    .pack_b_i8 = pack_b_i8,
    .finish_f32 = finish_f32,
    .finish_i32 = finish_i32,
    .stream_f32 = stream_f32,
    .stream_i8 = stream_i8,
};
