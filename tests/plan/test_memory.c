/* Exhausted memory: planning, certifying and evaluating with the first, second, third... allocation failing. Each
 * failure comes back as a status, with nothing leaked (the leak sanitizer's business) and the program as it was. */
#include "support.h"

#include <stdlib.h>

/* Allocations until one fails; -1: none does. */
static int64_t countdown = -1;
static bool fails(void) { return countdown >= 0 && countdown-- == 0; }

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) { return fails() ? NULL : __real_calloc(count, size); }
void *__wrap_realloc(void *old, size_t size) { return fails() ? NULL : __real_realloc(old, size); }

static weft_program *program;
static weft_array_set in;
static weft_target target;

static bool plans(void) {
  weft_program *copy = weft_program_clone(program);
  if (!copy) return false;
  weft_options options = {0};
  weft_phase before = weft_program_phase(copy);
  weft_status status = weft_plan(copy, &target, &options, NULL);
  assert_true(status == WEFT_OK || status == WEFT_UNAVAILABLE);
  assert_true(weft_program_phase(copy) >= before);
  weft_program_free(copy);
  return status == WEFT_OK;
}

static bool certifies(void) {
  weft_certificate certificate;
  weft_status status = weft_certify(program, &certificate, NULL);
  assert_true(status == WEFT_OK || status == WEFT_UNAVAILABLE);
  return status == WEFT_OK;
}

static bool evaluates(void) {
  weft_array_set out = {0};
  weft_evaluate_options options = {.random = true, .seed = 1, .steps = 2};
  weft_status status = weft_evaluate(program, &options, &in, &out, NULL);
  assert_true(status == WEFT_OK || status == WEFT_UNAVAILABLE);
  weft_array_set_free(&out);
  return status == WEFT_OK;
}

/** Runs the job with each of its allocations failing in turn, until it succeeds with none failing. */
static void survives(bool (*job)(void)) {
  for (int failing = 0; failing < 100000; failing++) {
    countdown = failing;
    bool done = job();
    bool reached = countdown < 0;
    countdown = -1;
    assert_int_equal(done, !reached);
    if (done) return;
  }
  fail_msg("the job never succeeds");
}

static void exhausted(void **state) {
  (void)state;
  static const char *const names[] = {"template-gemm-ragged",      "template-softmax",    "template-sections",
                                      "placed-gemm-2x2-multicast", "scheduled-trip-fold", "scheduled-gather",
                                      "scheduled-row-multicast",   "scheduled-gemm-spill"};
  static const uint32_t shared[sizeof names / sizeof *names] = {[1] = 7}; /* a buffer that lies where the first does */
  assert_int_equal(weft_target_load("cpu", &target, NULL), WEFT_OK);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    program = read_case(names[i]);
    if (shared[i]) program->buffers[shared[i]].alias_of = 0;
    if (weft_program_phase(program) < WEFT_PHASE_SCHEDULED) {
      survives(plans);
      plan_for(program, "cpu", "synthesize_handshakes");
    }
    make_inputs(program, 2, &in);
    weft_array *pos = weft_array_set_find(&in, "pos");
    if (pos) ((int32_t *)pos->data)[0] = 40;
    survives(certifies);
    survives(evaluates);
    weft_array_set_free(&in);
    weft_program_free(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(exhausted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
