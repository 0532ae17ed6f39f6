/* A program as large as one layer of a 27B model, made by valid/large-gemm-chain.recipe.md: 14,800 stages and 300,596
 * ops. The recipe is right when it makes a small case byte for byte and the length and hash of the reference's large
 * dump. */
#include "case_support.h"
#include "gemm_chain.h"

#include <stdlib.h>

static void small(void **state) {
  (void)state;
  weft_program *program = gemm_chain("sections-unrolled", 3, 3);
  weft_text dump = case_dump(program);
  size_t length;
  char *expected = case_read(CASES "/valid/scheduled-sections-unrolled.json", &length);
  assert_int_equal(dump.length, length);
  assert_memory_equal(dump.data, expected, length);
  free(expected);
  weft_text_free(&dump);
  weft_program_free(program);
}

static void large(void **state) {
  (void)state;
  weft_program *program = gemm_chain("large-gemm-chain", 925, 5);
  weft_text dump = case_dump(program);
  weft_program_free(program);
  assert_int_equal(dump.length, 100192278);
  assert_true(weft_hash_bytes(0, dump.data, dump.length) == UINT64_C(0xcaf1d41fe5bac644));
  program = case_parse(dump.data, dump.length);
  weft_text faults = case_faults(program, 0);
  assert_int_equal(faults.length, 0);
  weft_text again = case_dump(program);
  assert_int_equal(again.length, dump.length);
  assert_memory_equal(again.data, dump.data, dump.length);
  weft_text_free(&again);
  weft_text_free(&dump);
  weft_program_free(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(small), cmocka_unit_test(large)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
