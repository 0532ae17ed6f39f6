/* Exhausted memory: building, lowering, lifting and interpreting with the first, second, third... allocation failing.
 * Each failure comes back as a status, with nothing leaked (the leak sanitizer's business). */
#include "support.h"

#include <stdlib.h>
#include <string.h>

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

static weft_graph *graph, *machine;
static weft_program *program;
static weft_array_set in;

static bool is_good(weft_status status) {
  assert_true(status == WEFT_OK || status == WEFT_UNAVAILABLE);
  return status == WEFT_OK;
}

static bool builds(void) {
  static const uint64_t layers[] = {3, 4, 5};
  const weft_mlp_options options = {
      .layers = layers, .layer_count = 3, .batch = 2, .dtype = WEFT_INT8, .bias = true, .relu = true};
  weft_graph *made;
  weft_status status = weft_graph_new_mlp(&options, "y", &made, NULL);
  weft_graph_free(made);
  assert_int_equal(status == WEFT_OK, made != NULL);
  return is_good(status);
}

static bool lowers_from(const weft_graph *from) {
  weft_program *made;
  weft_status status = weft_graph_lower(from, &made, NULL);
  weft_program_free(made);
  assert_int_equal(status == WEFT_OK, made != NULL);
  return is_good(status);
}

static bool lowers(void) { return lowers_from(graph); }
static bool lowers_a_machine(void) { return lowers_from(machine); }

static bool lifts(void) {
  weft_graph *made;
  weft_status status = weft_graph_lift(program, &made, NULL);
  weft_graph_free(made);
  assert_int_equal(status == WEFT_OK, made != NULL);
  return is_good(status);
}

static bool interprets(void) {
  weft_array_set out = {0};
  weft_status status = weft_graph_interpret(machine, &in, &out, NULL);
  weft_array_set_free(&out);
  return is_good(status);
}

static void every_failure_is_reported(bool (*run)(void)) {
  for (int64_t n = 0; n < 100000; n++) {
    countdown = n;
    bool good = run();
    bool all_used = countdown < 0;
    countdown = -1;
    if (good && !all_used) return;
    if (good) fail_msg("allocation %lld failed and nobody noticed", (long long)n);
  }
  fail_msg("allocations without end");
}

static void building(void **state) {
  (void)state;
  every_failure_is_reported(builds);
}

static void lowering(void **state) {
  (void)state;
  every_failure_is_reported(lowers);
  every_failure_is_reported(lowers_a_machine);
}

static void lifting(void **state) {
  (void)state;
  every_failure_is_reported(lifts);
}

static void interpreting(void **state) {
  (void)state;
  every_failure_is_reported(interprets);
}

static int set_up(void **state) {
  weft_diag *diag = weft_diag_new();
  chance c = {42};
  graph = random_graph(&c, &(random_graph_options){0}, diag);
  random_inputs(&c, graph, &in);
  machine = scatter_graph(&c, graph, 3, diag);
  expect_ok(weft_graph_lower(machine, &program, diag), diag);
  // The graphs keep reporting to it, and must not while memory fails.
  graph->diag = machine->diag = NULL;
  weft_diag_free(diag);
  *state = NULL;
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  weft_graph_free(graph);
  weft_graph_free(machine);
  weft_program_free(program);
  weft_array_set_free(&in);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(building), cmocka_unit_test(lowering), cmocka_unit_test(lifting),
                                     cmocka_unit_test(interpreting)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
