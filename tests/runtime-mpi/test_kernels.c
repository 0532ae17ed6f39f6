/* Every kernel set against plain C, bit for bit: all small shapes, random larger ones, with operands that end where
 * memory ends. test_runtime_kernels [all | SEED]: "all" takes every M, N, K up to 70 and a thousand random shapes; a
 * seed repeats one shape. */
#include "kernel_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 70 };

static bool thorough;
static uint64_t only_seed;
static char repeat[64]; /* the command that repeats only this shape */

static const weft_kernel_set *plain_set(void) {
  uint32_t last = 0;
  while (weft_kernel_set_at(last + 1)) last++;
  return weft_kernel_set_at(last);
}

/* ---- data ---- */

/* Mostly numbers of one size, so that every addition rounds; now and then the ends of the range. */
static float random_float(uint64_t *state) {
  uint64_t bits = weft_random_next(state);
  float value = (float)((double)(bits >> 11) * 0x1p-52 - 1.0);
  switch (bits & 63) {
  case 0: return 0.0f;
  case 1: return -0.0f;
  case 2: return value * 0x1p-130f;
  case 3: return value * 0x1p60f;
  default: return value;
  }
}

static void fill_random(weft_format format, void *data, uint64_t count, uint64_t *state) {
  for (uint64_t i = 0; i < count; i++) {
    if (weft_format_is_float(format))
      weft_store_f32(format, data, i, random_float(state));
    else
      weft_store_i64(format, data, i,
                     format == WEFT_INT8 ? (int64_t)(int8_t)weft_random_next(state)
                                         : (int64_t)(int16_t)weft_random_next(state));
  }
}

static bool same_f32(float a, float b) { return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0; }

/* First element of the m x n block that differs from the top left of `want`, `want_cols` wide; UINT64_MAX: none. */
static uint64_t first_difference(weft_format format, const void *got, const void *want, uint64_t m, uint64_t n,
                                 uint64_t want_cols) {
  size_t bytes = weft_format_bytes(format);
  for (uint64_t i = 0; i < m * n; i++) {
    uint64_t at = i / n * want_cols + i % n;
    bool same = weft_format_is_float(format)
                    ? same_f32(weft_load_f32(format, got, i), weft_load_f32(format, want, at))
                    : memcmp((const char *)got + i * bytes, (const char *)want + at * bytes, bytes) == 0;
    if (!same) return i;
  }
  return UINT64_MAX;
}

static void cut_out(const void *from, uint64_t from_cols, size_t bytes, uint64_t rows, uint64_t cols, void *to) {
  for (uint64_t r = 0; r < rows && cols; r++)
    memcpy((char *)to + r * cols * bytes, (const char *)from + r * from_cols * bytes, cols * bytes);
}

/* ---- all small shapes ---- */

typedef struct whole {
  bench_product product;
  void *a, *b, *bias, *out; /* the largest shape, and its plain result */
} whole;

/* One shape out of `w`, with operands of its own. */
static void check_part(const weft_kernel_set *set, const whole *w, uint64_t m, uint64_t n) {
  bench_product product = w->product;
  size_t a_bytes = weft_format_bytes(product.a), b_bytes = weft_format_bytes(product.b);
  size_t out_bytes = weft_format_bytes(product.out), bias_bytes = weft_format_bytes(product.bias);
  guarded a = guarded_new(m * product.k * a_bytes), b = guarded_new(product.k * n * b_bytes);
  guarded out = guarded_new(m * n * out_bytes), bias = guarded_new(n * bias_bytes);
  cut_out(w->a, product.k, a_bytes, m, product.k, a.data);
  cut_out(w->b, product.n, b_bytes, product.k, n, b.data);
  memcpy(bias.data, w->bias, n * bias_bytes);
  memset(out.data, 0xa5, m * n * out_bytes);
  uint64_t width = product.n;
  product.m = m;
  product.n = n;
  char fault[256];
  if (!bench_run(set, &product, a.data, b.data, bias.data, out.data, fault)) fail_msg("%s: %s", set->name, fault);
  uint64_t at = first_difference(product.out, out.data, w->out, m, n, width);
  if (at != UINT64_MAX)
    fail_msg("%s: m %llu n %llu k %llu %s x %s segments %u threads %d: element %llu differs\n%s", set->name,
             (unsigned long long)m, (unsigned long long)n, (unsigned long long)product.k, weft_format_name(product.a),
             weft_format_name(product.b), product.segments, product.threads, (unsigned long long)at, repeat);
  guarded_free(&a);
  guarded_free(&b);
  guarded_free(&out);
  guarded_free(&bias);
}

static whole whole_new(const bench_product *product, uint64_t seed) {
  whole w = {.product = *product};
  uint64_t state = seed;
  w.a = calloc(product->m * product->k + 1, 8);
  w.b = calloc(product->k * product->n + 1, 8);
  w.bias = calloc(product->n + 1, 8);
  w.out = calloc(product->m * product->n + 1, 8);
  assert_true(w.a && w.b && w.bias && w.out);
  fill_random(product->a, w.a, product->m * product->k, &state);
  fill_random(product->b, w.b, product->k * product->n, &state);
  fill_random(product->bias, w.bias, product->n, &state);
  char fault[256];
  if (!bench_run(plain_set(), product, w.a, w.b, w.bias, w.out, fault)) fail_msg("plain: %s", fault);
  return w;
}

static void whole_free(whole *w) {
  free(w->a);
  free(w->b);
  free(w->bias);
  free(w->out);
}

static void all_up_to(uint64_t most, weft_format format) {
  static const uint32_t segments[] = {1, 2, 3, 4, 8, 5};
  static const weft_abi_epilogue epilogue[] = {{.kind = WEFT_EPILOGUE_BIAS, .operand = 3},
                                               {.kind = WEFT_EPILOGUE_RELU}};
  for (uint64_t k = 0; k <= most; k++) {
    bool floats = weft_format_is_float(format);
    bench_product product = {.m = most, .n = most, .k = k, .a = format, .b = format, .threads = 1};
    product.out = floats ? WEFT_FP32 : WEFT_INT32;
    product.bias = floats ? WEFT_FP32 : WEFT_INT16;
    product.segments = segments[k % 6];
    product.epilogue = epilogue;
    product.epilogue_count = (uint32_t)(k % 3);
    whole w = whole_new(&product, k + 1);
    for (uint32_t s = 0; weft_kernel_set_at(s) != plain_set(); s++)
      for (uint64_t m = 1; weft_kernel_set_at(s)->available() && m <= most; m++)
        for (uint64_t n = 1; n <= most; n++) check_part(weft_kernel_set_at(s), &w, m, n);
    whole_free(&w);
  }
}

static void small_fp32(void **state) {
  (void)state;
  all_up_to(thorough ? MOST : 18, WEFT_FP32);
}
static void small_bf16(void **state) {
  (void)state;
  all_up_to(thorough ? MOST : 15, WEFT_BF16);
}
static void small_int8(void **state) {
  (void)state;
  all_up_to(thorough ? MOST : 18, WEFT_INT8);
}

/* ---- random shapes ---- */

static uint64_t random_extent(uint64_t *state, uint64_t most) {
  uint64_t range = (weft_random_next(state) & 3) ? most : 20;
  return 1 + weft_random_next(state) % range;
}

static void random_shape(uint64_t seed) {
  snprintf(repeat, sizeof repeat, "test_runtime_kernels %llu", (unsigned long long)seed);
  static const weft_format operands[][3] = {{WEFT_FP32, WEFT_FP32, WEFT_FP32}, {WEFT_BF16, WEFT_BF16, WEFT_BF16},
                                            {WEFT_FP16, WEFT_FP8, WEFT_FP16},  {WEFT_FP32, WEFT_BF16, WEFT_FP8},
                                            {WEFT_INT8, WEFT_INT8, WEFT_INT8}, {WEFT_INT8, WEFT_INT8, WEFT_INT32},
                                            {WEFT_FP32, WEFT_FP32, WEFT_FP32}, {WEFT_INT8, WEFT_INT8, WEFT_INT64}};
  uint64_t state = seed;
  const weft_format *formats = operands[weft_random_next(&state) % 8];
  bool floats = weft_format_is_float(formats[0]);
  bench_product product = {
      .m = random_extent(&state, 300), .n = random_extent(&state, 300), .k = random_extent(&state, 1500)};
  if (weft_random_next(&state) % 4 == 0) { /* several K blocks, and now and then several blocks of columns */
    product.m = random_extent(&state, 50);
    product.n = random_extent(&state, weft_random_next(&state) % 4 ? 100 : 1500);
    product.k = random_extent(&state, 9000);
  }
  product.a = formats[0];
  product.b = formats[1];
  product.out = formats[2];
  product.bias = floats ? WEFT_BF16 : WEFT_INT16;
  product.segments =
      weft_random_next(&state) % 2 ? weft_segments_for(product.k) : 1 + (uint32_t)(weft_random_next(&state) % 40);
  product.threads = 1 + (int)(weft_random_next(&state) % 3);
  weft_abi_epilogue epilogue[4];
  uint64_t choice = weft_random_next(&state);
  if (choice & 1) epilogue[product.epilogue_count++] = (weft_abi_epilogue){.kind = WEFT_EPILOGUE_BIAS, .operand = 3};
  if (!floats && product.out != WEFT_INT64)
    epilogue[product.epilogue_count++] = (weft_abi_epilogue){.kind = WEFT_EPILOGUE_REQUANT, .m = -77, .s = 13};
  if ((choice & 2) || product.out == WEFT_INT8)
    epilogue[product.epilogue_count++] = (weft_abi_epilogue){.kind = WEFT_EPILOGUE_CLAMP, .m = -100, .s = 127};
  if (choice & 4) epilogue[product.epilogue_count++] = (weft_abi_epilogue){.kind = WEFT_EPILOGUE_RELU};
  product.epilogue = epilogue;
  whole w = whole_new(&product, seed ^ 0x5eed);
  for (uint32_t s = 0; weft_kernel_set_at(s) != plain_set(); s++)
    if (weft_kernel_set_at(s)->available()) check_part(weft_kernel_set_at(s), &w, product.m, product.n);
  whole_free(&w);
}

static void random_shapes(void **state) {
  (void)state;
  uint64_t count = thorough ? 1000 : 40;
  for (uint64_t seed = only_seed ? only_seed : 1; seed <= (only_seed ? only_seed : count); seed++) {
    random_shape(seed);
  }
}

/* ---- the ends of int8 ---- */

static void full_range_int8(void **state) {
  (void)state;
  static const int8_t values[][2] = {{-128, -128}, {127, -128}, {127, 127}, {-128, 127}};
  for (int v = 0; v < 4; v++) {
    bench_product product = {
        .m = 15, .n = 33, .k = 2001, .a = WEFT_INT8, .b = WEFT_INT8, .out = WEFT_INT32, .threads = 1};
    product.bias = WEFT_INT32;
    int8_t *a = malloc(15 * 2001), *b = malloc(2001 * 33);
    int32_t *out = malloc(15 * 33 * 4), bias[33] = {0};
    memset(a, values[v][0], 15 * 2001);
    memset(b, values[v][1], 2001 * 33);
    for (uint32_t s = 0; weft_kernel_set_at(s); s++) {
      if (!weft_kernel_set_at(s)->available()) continue;
      assert_true(bench_run(weft_kernel_set_at(s), &product, a, b, bias, out, NULL));
      for (int i = 0; i < 15 * 33; i++) assert_int_equal(out[i], 2001 * values[v][0] * values[v][1]);
    }
    free(a);
    free(b);
    free(out);
  }
}

/* The first element that does not fit is named, whatever the tiles and threads. */
static void misfits_are_named(void **state) {
  (void)state;
  enum { M = 40, N = 50, K = 3 };
  int8_t a[M * K], b[K * N], out[M * N];
  int32_t bias[N] = {0};
  memset(a, 1, sizeof a);
  memset(b, 1, sizeof b);
  a[31 * K] = 127;
  a[17 * K + 1] = 127;
  b[29] = 10;
  b[N + 11] = 2;
  b[N + 12] = 2;
  bench_product product = {
      .m = M, .n = N, .k = K, .a = WEFT_INT8, .b = WEFT_INT8, .out = WEFT_INT8, .bias = WEFT_INT32};
  for (int threads = 1; threads <= 3; threads++)
    for (uint32_t s = 0; weft_kernel_set_at(s); s++) {
      char fault[256];
      product.threads = threads;
      if (!weft_kernel_set_at(s)->available()) continue;
      assert_false(bench_run(weft_kernel_set_at(s), &product, a, b, bias, out, fault));
      assert_non_null(strstr(fault, "row 17, column 0 of 'out': 129 does not fit Int8"));
    }
}

int main(int argc, char **argv) {
  thorough = argc > 1 && strcmp(argv[1], "all") == 0;
  only_seed = argc > 1 && !thorough ? strtoull(argv[1], NULL, 10) : 0;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_shapes), cmocka_unit_test(small_fp32),      cmocka_unit_test(small_bf16),
      cmocka_unit_test(small_int8),    cmocka_unit_test(full_range_int8), cmocka_unit_test(misfits_are_named),
  };
  return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
