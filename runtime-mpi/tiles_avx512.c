/* Kernels for x86-64 with AVX-512 (F, BW): 32 registers of 16 floats. */
#if defined(__x86_64__)
#include <immintrin.h>

typedef __m512 vector_f32;
typedef __m512i vector_i32, vector_i16;
#define LANES 16
#define TILE_ROWS 14
#define TILE_VECTORS 2
#define TILE_DEPTH 2048
#define TILE_BLOCK_ROWS 42
#define TILE_CASES(CASE)                                                                                               \
  CASE(1)                                                                                                              \
  CASE(2)                                                                                                              \
  CASE(3)                                                                                                              \
  CASE(4)                                                                                                              \
  CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12) CASE(13) CASE(14)
#define I8_ROWS 14
#define I8_VECTORS 2
#define I8_DEPTH 512
#define I8_CASES(CASE) TILE_CASES(CASE)
#define F32_SET(x) _mm512_set1_ps(x)
#define F32_LOAD(p) _mm512_loadu_ps(p)
#define F32_STORE(p, v) _mm512_storeu_ps(p, v)
#define F32_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define I32_LOAD(p) _mm512_loadu_si512(p)
#define I32_STORE(p, v) _mm512_storeu_si512(p, v)
#define I16_LOAD(p) _mm512_loadu_si512(p)
#define I16_SET_PAIR(p) _mm512_set1_epi32(pair_bits(p))
#define I16_DOT(acc, a, b) _mm512_add_epi32(acc, _mm512_madd_epi16(a, b))
#define HOLD(v) __asm__("" : "+v"(v))
#define TILES tiles_avx512

#include <stdint.h>
#include <string.h>
static inline __attribute__((always_inline)) int pair_bits(const int16_t *pair) {
  int bits;
  memcpy(&bits, pair, sizeof bits);
  return bits;
}

#include "tiles_template.h"

static bool available(void) { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"); }
static bool product(const weft_product_job *job) { return weft_product_tiled(job, &tiles_avx512); }

extern const weft_kernel_set weft_kernels_avx512;
const weft_kernel_set weft_kernels_avx512 = {
    .name = "avx512", .available = available, .product = product, .combine = combine};
#endif
