/* The NEON kernels against plain C, without a test library, so that a cross compiler and an emulator are all it takes.
 */
#include "kernel_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 20 };

static unsigned char a[BYTES], b[BYTES], bias[BYTES], want[BYTES], got[BYTES];

static void fill(weft_format format, void *data, uint64_t count, uint64_t *state) {
  for (uint64_t i = 0; i < count; i++) {
    int64_t bits = (int64_t)weft_random_next(state);
    if (weft_format_is_float(format))
      weft_store_f32(format, data, i, (float)(bits >> 40) * 0x1p-23f);
    else
      weft_store_i64(format, data, i, (int8_t)bits);
  }
}

static bool check(const weft_kernel_set *fast, const weft_kernel_set *plain, uint64_t m, uint64_t n, uint64_t k,
                  weft_format format, uint32_t segments) {
  static const weft_abi_epilogue epilogue[] = {{.kind = WEFT_EPILOGUE_BIAS, .operand = 3},
                                               {.kind = WEFT_EPILOGUE_RELU}};
  bool floats = weft_format_is_float(format);
  bench_product product = {.m = m, .n = n, .k = k, .a = format, .b = format, .segments = segments, .threads = 1};
  product.out = floats ? WEFT_FP32 : WEFT_INT32;
  product.bias = product.out;
  product.epilogue = epilogue;
  product.epilogue_count = (uint32_t)((m + n + k) % 3);
  uint64_t state = m + 1000 * n + 1000000 * k;
  fill(format, a, m * k, &state);
  fill(format, b, k * n, &state);
  fill(product.bias, bias, n, &state);
  memset(got, 0x5a, m * n * 4);
  bool ok = bench_run(plain, &product, a, b, bias, want, NULL) && bench_run(fast, &product, a, b, bias, got, NULL) &&
            memcmp(want, got, m * n * 4) == 0;
  if (!ok)
    printf("%s: m %llu n %llu k %llu %s segments %u differs\n", fast->name, (unsigned long long)m,
           (unsigned long long)n, (unsigned long long)k, weft_format_name(format), segments);
  return ok;
}

int main(void) {
  static const weft_format formats[] = {WEFT_FP32, WEFT_BF16, WEFT_INT8};
  const weft_kernel_set *fast = weft_kernel_set_choose("neon", NULL), *plain = weft_kernel_set_choose("plain", NULL);
  if (!fast || !plain) {
    puts("no NEON kernels in this build");
    return 1;
  }
  uint64_t shapes = 0, random = 7;
  bool ok = true;
  for (int f = 0; f < 3; f++) {
    for (uint64_t k = 0; k <= 9; k++)
      for (uint64_t m = 1; m <= 17; m++)
        for (uint64_t n = 1; n <= 26; n++, shapes++)
          ok &= check(fast, plain, m, n, k, formats[f], 1 + (uint32_t)(k % 3));
    for (int i = 0; i < 25; i++, shapes++) {
      uint64_t m = 1 + weft_random_next(&random) % 90, n = 1 + weft_random_next(&random) % 90;
      uint64_t k = 1 + weft_random_next(&random) % 900;
      ok &= check(fast, plain, m, n, k, formats[f], i % 2 ? weft_segments_for(k) : 1 + (uint32_t)(i % 40));
    }
  }
  printf("%llu shapes: %s\n", (unsigned long long)shapes, ok ? "equal" : "different");
  return ok ? 0 : 1;
}
