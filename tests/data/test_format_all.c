/* Narrowing of every fp32 value to each small format. */
#include "format_oracle.h"
#include "weft/arithmetic.h"
#include "weft/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>

enum { BLOCK = 1 << 20, BLOCKS = 1 << 12 };

static uint64_t wrong[BLOCKS], example[BLOCKS];

static bool same(double is, double wanted) {
  return isnan(wanted) ? isnan(is) : is == wanted && !signbit(is) == !signbit(wanted);
}

static void check_block(void *context, uint64_t block) {
  (void)context;
  for (uint64_t i = 0; i < BLOCK; i++) {
    uint32_t bits = (uint32_t)(block * BLOCK + i);
    float value = weft_f32_of_bits(bits);
    bool right = same(oracle_value(&oracle_bf16, weft_f32_to_bf16(value)), oracle_round(&oracle_bf16, value)) &&
                 same(oracle_value(&oracle_fp16, weft_f32_to_fp16(value)), oracle_round(&oracle_fp16, value)) &&
                 same(oracle_value(&oracle_fp8, weft_f32_to_fp8(value)), oracle_round(&oracle_fp8, value));
    if (right) continue;
    wrong[block]++;
    example[block] = bits;
  }
}

static void every_value_narrows_right(void **state) {
  (void)state;
  weft_parallel_for(BLOCKS, 0, check_block, NULL);
  for (uint64_t block = 0; block < BLOCKS; block++)
    if (wrong[block]) fail_msg("%" PRIu64 " wrong, for example 0x%08" PRIx64, wrong[block], example[block]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_value_narrows_right)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
