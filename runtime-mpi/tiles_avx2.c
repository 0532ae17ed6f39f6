/* Kernels for x86-64 with AVX2 and FMA: 16 registers of 8 floats. */
#if defined(__x86_64__)
#include <immintrin.h>

typedef __m256 vector_f32;
typedef __m256i vector_i32, vector_i16;
#define LANES 8
#define TILE_ROWS 6
#define TILE_VECTORS 2
#define TILE_DEPTH 1024
#define TILE_BLOCK_ROWS 24
#define TILE_CASES(CASE) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
#define I8_ROWS 6
#define I8_VECTORS 2
#define I8_DEPTH 512
#define I8_CASES(CASE) TILE_CASES(CASE)
#define F32_SET(x) _mm256_set1_ps(x)
#define F32_LOAD(p) _mm256_loadu_ps(p)
#define F32_STORE(p, v) _mm256_storeu_ps(p, v)
#define F32_FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define I32_LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define I32_STORE(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define I16_LOAD(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define I16_SET_PAIR(p) _mm256_castps_si256(_mm256_broadcast_ss((const float *)(const void *)(p)))
#define I16_DOT(acc, a, b) _mm256_add_epi32(acc, _mm256_madd_epi16(a, b))
#define HOLD(v) __asm__("" : "+x"(v))
#define TILES tiles_avx2
#include "tiles_template.h"

static bool available(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
static bool product(const weft_product_job *job) { return weft_product_tiled(job, &tiles_avx2); }

extern const weft_kernel_set weft_kernels_avx2;
const weft_kernel_set weft_kernels_avx2 = {
    .name = "avx2", .available = available, .product = product, .combine = combine};
#endif
