/* Folds: how a contraction is cut into segments, and the dot product that defines MatmulTiles. */
#include "weft/format.h"

#include "weft/arithmetic.h"

uint32_t weft_segments_for(uint64_t k) {
  uint64_t most = weft_min_u64(WEFT_MAX_SEGMENTS, weft_max_u64(1, k / (2 * WEFT_UNIT)));
  uint32_t segments = 1;
  while (segments * 2 <= most) segments *= 2;
  return segments;
}

uint32_t weft_segments_effective(uint64_t k, uint32_t segments) {
  return (uint32_t)weft_min_u64(segments, weft_max_u64(1, weft_ceil_div(k, WEFT_UNIT)));
}

uint64_t weft_segment_begin(uint64_t k, uint32_t segments, uint32_t index) {
  uint64_t units = weft_ceil_div(k, WEFT_UNIT);
  uint64_t unit = units / segments * index + weft_min_u64(units % segments, index);
  return unit >= units ? k : unit * WEFT_UNIT; /* the last unit may be partial */
}

/* The greatest power of two below count, where a tree over count > 1 leaves splits. */
static uint32_t left_leaves(uint32_t count) {
  uint32_t left = 1;
  while (left < count - left) left *= 2;
  return left;
}

/* A contraction and its cut; b is NULL in a sum. */
typedef struct fold {
  const float *a, *b;
  uint64_t a_stride, b_stride, k;
  uint32_t segments;
} fold;

static float dot_segment(const fold *f, uint64_t begin, uint64_t end) {
  float acc = 0;
  for (uint64_t i = begin; i < end; i++) acc = fmaf(f->a[i * f->a_stride], f->b[i * f->b_stride], acc);
  return acc;
}

enum { LANES = 16 };

static float lane_tree(const float *lanes, uint32_t count) {
  if (count == 1) return lanes[0];
  uint32_t left = left_leaves(count);
  return lane_tree(lanes, left) + lane_tree(lanes + left, count - left);
}

static float sum_segment(const fold *f, uint64_t begin, uint64_t end) {
  float lanes[LANES] = {0};
  for (uint64_t i = begin; i < end; i++) lanes[(i - begin) % LANES] += f->a[i * f->a_stride];
  return lane_tree(lanes, (uint32_t)weft_min_u64(LANES, weft_max_u64(1, end - begin)));
}

/* The tree over the segments first .. first + count - 1; at most 32 levels deep. */
static float fold_tree(const fold *f, uint32_t first, uint32_t count) {
  if (count == 1) {
    uint64_t begin = weft_segment_begin(f->k, f->segments, first);
    uint64_t end = weft_segment_begin(f->k, f->segments, first + 1);
    return f->b ? dot_segment(f, begin, end) : sum_segment(f, begin, end);
  }
  uint32_t left = left_leaves(count);
  return fold_tree(f, first, left) + fold_tree(f, first + left, count - left);
}

float weft_dot_f32(const float *a, uint64_t a_stride, const float *b, uint64_t b_stride, uint64_t k,
                   uint32_t segments) {
  fold f = {a, b, a_stride, b_stride, k, segments};
  return fold_tree(&f, 0, weft_segments_effective(k, segments));
}

float weft_sum_f32(const float *x, uint64_t stride, uint64_t k, uint32_t segments) {
  fold f = {x, NULL, stride, 0, k, segments};
  return fold_tree(&f, 0, weft_segments_effective(k, segments));
}

float weft_maximum_f32(float a, float b) { return weft_inline_maximum_f32(a, b); }
float weft_minimum_f32(float a, float b) { return weft_inline_minimum_f32(a, b); }

int64_t weft_requant(int64_t value, int64_t m, uint32_t s) {
  int64_t product = (int64_t)((uint64_t)value * (uint64_t)m);
  return product >> (s < 63 ? s : 63);
}

float weft_random_bf16(uint32_t seed, int32_t shift_milli, uint64_t index) {
  uint64_t state = seed;
  state = weft_random_next(&state) + index * 0x9e3779b97f4a7c15u;
  float uniform = (float)(weft_random_next(&state) >> 40) * 0x1p-23f - 1.0f;
  return weft_inline_bf16_to_f32(weft_inline_f32_to_bf16(uniform + (float)shift_milli / 1000.0f));
}
