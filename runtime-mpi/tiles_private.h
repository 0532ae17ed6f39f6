/* tiles_private.h: products by register tiles: what a kernel file provides and how a product is cut for it.
 *
 * A product is computed tile by tile, TILE rows x columns that fit the registers. Along k it is cut into K blocks that
 * fit the caches; a K block is a list of runs, each a piece of one segment. A run is folded by ascending fma into the
 * tile's accumulators; where a segment ends, its result is merged with the results to its left as the tree says: a
 * binary counter whose levels are whole tiles. So the levels of a tile lie together, and the tree costs one load and
 * one store of a tile a segment. */
#ifndef WEFT_TILES_PRIVATE_H
#define WEFT_TILES_PRIVATE_H

#include "product_private.h"

enum {
  WEFT_TILE_LEVELS = 24,                   /**< of the tree: products of more than 2^24 segments are left to plain C */
  WEFT_TILE_CURRENT = WEFT_TILE_LEVELS,    /**< where a segment that goes on in the next K block waits */
  WEFT_TILE_RESULT = WEFT_TILE_LEVELS + 1, /**< where the finished tile goes */
  WEFT_TILE_PLACES = WEFT_TILE_LEVELS + 2,
};

typedef struct weft_tile_run {
  uint32_t length; /**< elements of k */
  bool resumes;    /**< starts from WEFT_TILE_CURRENT, else from +0 */
  uint8_t store;   /**< place */
  uint32_t merge;  /**< bit l: level l is added on the left, ascending, before the store */
} weft_tile_run;

/** The tile kernels of one instruction set. Packed a: rows of `a_stride` elements; packed b: k rows of `cols` elements
 * (fp32), or k / 2 rows of `cols` pairs (int8, widened to int16); every pointer aligned to 64. */
typedef struct weft_tiles {
  uint32_t rows, cols; /**< fp32 tile */
  uint32_t a_stride;   /**< elements between packed rows of a; K blocks are at most weft_tiles.depth */
  uint32_t depth;
  uint32_t block_rows;       /**< rows of a that one task packs */
  uint32_t i8_rows, i8_cols; /**< int8 tile */
  uint32_t i8_stride, i8_depth;
  /** One tile of so many rows and columns, b_stride elements between rows of b: all of its columns may be read. */
  void (*f32)(uint32_t rows, uint32_t cols, const float *a, const float *b, uint64_t b_stride,
              const weft_tile_run *runs, uint32_t run_count, float *const *places);
  void (*i8)(uint32_t rows, uint32_t cols, const int16_t *a, const int16_t *b, const weft_tile_run *runs,
             uint32_t run_count, int32_t *const *places);
  void (*pack_a)(weft_format format, const void *from, uint64_t stride, uint64_t rows, uint64_t k, float *to);
  /** So many columns, panel after panel, panel_stride elements apart; what is missing in the last one is zero. */
  void (*pack_b)(weft_format format, const void *from, uint64_t stride, uint64_t cols, uint64_t k, float *to,
                 uint64_t panel_stride);
  void (*pack_a_i8)(const int8_t *from, uint64_t stride, uint64_t rows, uint64_t k, int16_t *to);
  void (*pack_b_i8)(const int8_t *from, uint64_t stride, uint64_t cols, uint64_t k, int16_t *to, uint64_t panel_stride);
  /** Stores rows x cols of a finished tile at (row, col). */
  void (*finish_f32)(const weft_epilogue *epilogue, uint64_t row, uint64_t col, uint64_t rows, uint64_t cols,
                     float *tile);
  void (*finish_i32)(const weft_epilogue *epilogue, uint64_t row, uint64_t col, uint64_t rows, uint64_t cols,
                     const int32_t *tile);
  /** acc[c] = fma(a[i], b[i * b_stride + c], acc[c]) for i = 0 .. k - 1 in this order, c below cols; b in fp32 or bf16.
   */
  void (*stream_f32)(weft_format b_format, const float *a, uint64_t k, const void *b, uint64_t b_stride, uint64_t cols,
                     float *acc);
  /** acc[c] += the sum over i of a[i] * b[i * b_stride + c]. */
  void (*stream_i8)(const int8_t *a, uint64_t k, const int8_t *b, uint64_t b_stride, uint64_t cols, int32_t *acc);
} weft_tiles;

/** A K block: its elements of k and its runs. */
typedef struct weft_tile_block {
  uint64_t k0, k;
  const weft_tile_run *runs;
  uint32_t run_count;
} weft_tile_block;

/** How the k of a product is cut. */
typedef struct weft_tile_plan {
  weft_tile_block *blocks;
  uint64_t block_count;
  uint8_t kept[WEFT_TILE_PLACES]; /**< the places that outlive a K block */
  uint32_t kept_count;
} weft_tile_plan;

/** Cuts k into blocks of at most `depth`, in the chip's plan scratch. False after a fault, or when there are too many
 * levels (then nothing is recorded). */
bool weft_tile_plan_make(weft_chip *chip, uint64_t k, uint32_t segments, uint32_t depth, weft_tile_plan *plan);

/** Does a job with these tiles; false when it does not cover the job. */
bool weft_product_tiled(const weft_product_job *job, const weft_tiles *tiles);
/** Products of few rows: b is read once, from where it lies. False, nothing done, when it does not cover the job. */
bool weft_product_streamed(const weft_product_job *job, const weft_tiles *tiles);

#endif
