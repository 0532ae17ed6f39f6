/* The elementary functions over every fp32 input. MPFR would need hours for it, so libm's double functions, whose error
 * is below one unit of their own last place, decide what is plain; MPFR decides every input whose error by them is
 * above 0.9, and checks them on one input of 4096. */
#include "elementary_truth.h"
#include "weft/arithmetic.h"
#include "weft/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { BLOCK = 1 << 20, BLOCKS = 1 << 12, SAMPLED = 4096 };

typedef struct block_result {
  uint64_t wrong, example;
  double worst;
  uint32_t worst_at;
} block_result;

static block_result results[BLOCKS];

static bool is_right(const elementary *f, uint32_t bits, block_result *result) {
  float x = weft_f32_of_bits(bits), value = f->ours(x);
  double exact = f->libm((double)x);
  bool is_special;
  if (!special_is_right(value, exact, &is_special)) return false;
  if (is_special) return true;
  double error = ulp_error(value, exact);
  if (error > 0.9 || bits % SAMPLED == 0) {
    double truth = exact_value(f, x);
    if (fabs(truth - exact) > 0x1p-50 * fabs(truth)) return false;
    error = ulp_error(value, truth);
  }
  if (error > result->worst) {
    result->worst = error;
    result->worst_at = bits;
  }
  return error <= 1 && (signbit(value) != 0) == (signbit(exact) != 0);
}

static void check_block(void *context, uint64_t block) {
  const elementary *f = context;
  block_result result = {0};
  for (uint64_t i = 0; i < BLOCK; i++) {
    uint32_t bits = (uint32_t)(block * BLOCK + i);
    if (is_right(f, bits, &result)) continue;
    result.wrong++;
    result.example = bits;
  }
  results[block] = result;
}

static void check_all(const elementary *f) {
  double worst = 0;
  uint32_t worst_at = 0;
  weft_parallel_for(BLOCKS, 0, check_block, (void *)f);
  for (uint64_t block = 0; block < BLOCKS; block++) {
    if (results[block].wrong)
      fail_msg("%s: %" PRIu64 " wrong, for example at 0x%08" PRIx64, f->name, results[block].wrong,
               results[block].example);
    if (results[block].worst <= worst) continue;
    worst = results[block].worst;
    worst_at = results[block].worst_at;
  }
  printf("%s: at most %.5f ulp, at 0x%08" PRIx32 "\n", f->name, worst, worst_at);
}

static void exp_everywhere(void **state) { (void)state, check_all(&elementary_functions[0]); }
static void log_everywhere(void **state) { (void)state, check_all(&elementary_functions[1]); }
static void tanh_everywhere(void **state) { (void)state, check_all(&elementary_functions[2]); }
static void erf_everywhere(void **state) { (void)state, check_all(&elementary_functions[3]); }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(exp_everywhere), cmocka_unit_test(log_everywhere),
                                     cmocka_unit_test(tanh_everywhere), cmocka_unit_test(erf_everywhere)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
