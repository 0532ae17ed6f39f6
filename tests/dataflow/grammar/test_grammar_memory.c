/* Exhausted memory: reading, sampling and evaluating with the first, second, third... allocation failing. Each failure
 * comes back as WEFT_UNAVAILABLE, with nothing leaked (the leak sanitizer's business). */
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

static int failures_survived(bool (*job)(void)) {
  for (int failing = 0; failing < 10000; failing++) {
    countdown = failing;
    bool done = job();
    bool reached = countdown < 0;
    countdown = -1;
    if (done) {
      assert_false(reached);
      return failing;
    }
    assert_true(reached);
  }
  fail_msg("the job never succeeds");
  return -1;
}

static char *text;
static size_t length;
static weft_grammar *grammar;
static weft_postcondition *post;
static weft_mlir_context *context;
static weft_mlir_file *input, *output;
static weft_verdict wanted;

static void load(const char *path) {
  free(text);
  assert_int_equal(weft_read_file(path, &text, &length, NULL), WEFT_OK);
}

static bool reads_grammar(void) {
  weft_grammar *made;
  weft_status status = weft_grammar_parse("g.pg", text, length, &made, NULL);
  assert_int_equal(status == WEFT_OK, made != NULL);
  weft_grammar_free(made);
  assert_true(status == WEFT_OK || status == WEFT_UNAVAILABLE);
  return status == WEFT_OK;
}

static bool samples_program(void) {
  weft_text sample = {0};
  const weft_grammar_pin pin = {.name = "MOST", .value = 5};
  const weft_grammar_options options = {.seed = 3, .pins = &pin, .pin_count = 1};
  weft_status status = weft_grammar_sample(grammar, &options, &sample, NULL);
  assert_true(status == WEFT_OK || status == WEFT_UNAVAILABLE);
  assert_true(status == WEFT_OK || sample.length == 0);
  weft_text_free(&sample);
  return status == WEFT_OK;
}

static bool reads_postcondition(void) {
  weft_postcondition *made;
  weft_status status = weft_postcondition_parse("p.spct", text, length, &made, NULL);
  assert_int_equal(status == WEFT_OK, made != NULL);
  weft_postcondition_free(made);
  assert_true(status == WEFT_OK || status == WEFT_UNAVAILABLE);
  return status == WEFT_OK;
}

static bool evaluates(void) {
  weft_verdict verdict;
  weft_postcondition_side before = {.module = input->modules[0], .file = "i.mlir"};
  weft_postcondition_side after = {.module = output->modules[0], .file = "o.mlir"};
  weft_status status = weft_postcondition_evaluate(post, context, before, after, NULL, &verdict, NULL);
  assert_true(status == WEFT_OK || status == WEFT_UNAVAILABLE);
  assert_int_equal(verdict, status == WEFT_OK ? wanted : WEFT_VERDICT_ERROR);
  return status == WEFT_OK;
}

static void grammars(void **state) {
  (void)state;
  load(SAMPLES "nested.pg");
  assert_true(failures_survived(reads_grammar) > 5);
  grammar = grammar_of(text);
  assert_true(failures_survived(samples_program) > 5);
  weft_grammar_free(grammar);
}

static void postconditions(void **state) {
  (void)state;
  context = context_new();
  input = module_read(context, HERE "counting.mlir");
  output = module_read(context, HERE "counting-lowered.mlir");
  load(SAMPLES "while.spct");
  assert_true(failures_survived(reads_postcondition) > 5);
  post = postcondition_of(text);
  wanted = WEFT_VERDICT_HOLDS;
  assert_true(failures_survived(evaluates) > 3);
  weft_mlir_file_free(input);
  input = module_read(context, HERE "counting-lowered.mlir");
  wanted = WEFT_VERDICT_FAILS; /* no scf.condition there */
  assert_true(evaluates());
  weft_postcondition_free(post);
  weft_mlir_file_free(input);
  weft_mlir_file_free(output);
  weft_mlir_context_free(context);
  free(text);
  text = NULL;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(grammars), cmocka_unit_test(postconditions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
