/* Kernels for AArch64: 32 registers of 4 floats. */
#if defined(__aarch64__)
#include <arm_neon.h>

typedef float32x4_t vector_f32;
typedef int32x4_t vector_i32;
typedef int16x8_t vector_i16;
#define LANES 4
#define TILE_ROWS 8
#define TILE_VECTORS 3
#define TILE_DEPTH 256
#define TILE_BLOCK_ROWS 96
#define TILE_CASES(CASE) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8)
#define I8_ROWS 8
#define I8_VECTORS 2
#define I8_DEPTH 512
#define I8_CASES(CASE) TILE_CASES(CASE)
#define F32_SET(x) vdupq_n_f32(x)
#define F32_LOAD(p) vld1q_f32(p)
#define F32_STORE(p, v) vst1q_f32(p, v)
#define F32_FMA(a, b, c) vfmaq_f32(c, a, b)
#define I32_LOAD(p) vld1q_s32(p)
#define I32_STORE(p, v) vst1q_s32(p, v)
#define I16_LOAD(p) vld1q_s16(p)
#define I16_SET_PAIR(p) vreinterpretq_s16_s32(vld1q_dup_s32((const int32_t *)(const void *)(p)))
#define I16_DOT(acc, a, b) dot_pairs(acc, a, b)
#define HOLD(v) __asm__("" : "+w"(v))
#define TILES tiles_neon

static inline __attribute__((always_inline)) int32x4_t dot_pairs(int32x4_t acc, int16x8_t a, int16x8_t b) {
  int32x4_t low = vmull_s16(vget_low_s16(a), vget_low_s16(b)), high = vmull_high_s16(a, b);
  return vaddq_s32(acc, vpaddq_s32(low, high));
}

#include "tiles_template.h"

static bool available(void) { return true; }
static bool product(const weft_product_job *job) { return weft_product_tiled(job, &tiles_neon); }

extern const weft_kernel_set weft_kernels_neon;
const weft_kernel_set weft_kernels_neon = {
    .name = "neon", .available = available, .product = product, .combine = combine};
#endif
