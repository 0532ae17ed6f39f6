#include "elementary_loops.h"
#include "weft/arithmetic.h"
#include "weft/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

enum { COUNT = 1 << 21 };
static float in[COUNT], wanted[COUNT], out[COUNT];

static void fill(void) {
  uint64_t random = 5;
  for (size_t i = 0; i < COUNT; i++) {
    uint32_t bits = (uint32_t)weft_random_next(&random);
    if (i % 2) bits = (bits & 0x80ffffff) | 0x3f000000; /* half of them near one */
    in[i] = weft_f32_of_bits(bits);
  }
}

static void compare(const elementary_loop *loops, const char *width) {
  fill();
  for (int f = 0; f < ELEMENTARY_LOOPS; f++) {
    elementary_loops_plain[f].run(in, wanted, COUNT);
    loops[f].run(in, out, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
      if (wanted[i] != wanted[i] && out[i] != out[i]) continue;
      if (weft_bits_of_f32(wanted[i]) != weft_bits_of_f32(out[i]))
        fail_msg("%s of %a in %s: %a, plain %a", loops[f].name, in[i], width, out[i], wanted[i]);
    }
  }
}

static void avx2_gives_the_same_bits(void **state) {
  (void)state;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    compare(elementary_loops_avx2, "avx2");
    return;
  }
#endif
  printf("this machine has no AVX2\n");
  skip();
}

static void avx512_gives_the_same_bits(void **state) {
  (void)state;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
    compare(elementary_loops_avx512, "avx512");
    return;
  }
#endif
  printf("this machine has no AVX-512\n");
  skip();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(avx2_gives_the_same_bits),
                                     cmocka_unit_test(avx512_gives_the_same_bits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
