/* A schedule as large as one layer of a 27B model: 14,800 stages and 300,596 ops. */
#include "../ir/gemm_chain.h"
#include "support.h"

#include <sys/resource.h>

static void test_large(void **state) {
  (void)state;
  weft_program *program = gemm_chain("large-gemm-chain", 925, 5);
  weft_diag *diag = weft_diag_new();
  weft_certificate certificate;
  weft_status status = weft_certify(program, &certificate, diag);
  if (status) print_error("%s\n", first_message(diag));
  assert_int_equal(status, WEFT_OK);
  assert_int_equal(certificate.ops, 300596);
  assert_int_equal(certificate.steps, 300596);
  assert_int_equal(certificate.sections, 925);
  assert_int_equal(certificate.tiles_written, 925 * 10);
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  assert_true(usage.ru_maxrss < 1 << 20); /* KiB: 1 GiB, the program included */
  weft_diag_free(diag);
  weft_program_free(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_large)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
