/* The certificate: what must be certified is, what must be refused is refused with its place. */
#include "support.h"

#include <stdio.h>
#include <string.h>

static const char *const scheduled[] = {
    "allreduce-2chips",   "carry-fold",     "chain",         "chain-shared-phase", "chip-links",
    "deep-loops",         "elementwise-2sites", "gather",    "gemm-1site",         "gemm-2x2-multicast",
    "gemm-4x4",           "gemm-int64-spill", "gemm-pack-accumulate", "gemm-spill", "int8-epilogue",
    "items",              "row-multicast",  "scalar",        "sections-multicast", "sections-unrolled",
    "softmax",            "state-append",   "state-scatter", "state-two-sections", "store-parts",
    "trip-fold",          "two-sections"};

static void test_scheduled_cases(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof scheduled / sizeof *scheduled; i++) {
    char name[64];
    snprintf(name, sizeof name, "scheduled-%s", scheduled[i]);
    weft_program *program = read_case(name);
    weft_diag *diag = weft_diag_new();
    weft_certificate certificate;
    weft_status status = weft_certify(program, &certificate, diag);
    if (status) print_error("%s: %s\n", name, first_message(diag));
    assert_int_equal(status, WEFT_OK);
    assert_int_equal(certificate.programs, program->schedule->program_count);
    assert_false(certificate.partial_proved);
    weft_diag_free(diag);
    weft_program_free(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scheduled_cases),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
