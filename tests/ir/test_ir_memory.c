/* Exhausted memory: reading, copying, writing and validating with the first, second, third... allocation failing. Each
 * failure comes back as a status, NULL or a flag, with nothing leaked (the leak sanitizer's business). */
#include "case_support.h"

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

static const char *name;
static char *text;
static size_t length;
static weft_program *program;

static bool reads(void) {
  weft_program *made;
  weft_status status = weft_program_read(name, text, length, &made, NULL);
  weft_program_free(made);
  assert_int_equal(status == WEFT_OK, made != NULL);
  assert_true(status == WEFT_OK || status == WEFT_UNAVAILABLE);
  return status == WEFT_OK;
}

static bool copies(void) {
  weft_program *clone = weft_program_clone(program);
  weft_program_free(clone);
  return clone != NULL;
}

static bool writes(void) {
  weft_text dump = {0};
  weft_program_write(program, &dump);
  bool good = !dump.failed;
  if (good) assert_int_equal(dump.length, length);
  weft_text_free(&dump);
  return good;
}

static bool validates(void) {
  weft_status status = weft_program_validate(program, 0, NULL, NULL);
  assert_true(status == WEFT_OK || status == WEFT_UNAVAILABLE);
  return status == WEFT_OK;
}

static bool shows(void) {
  weft_text shown = {0};
  weft_program_show(program, &shown);
  weft_program_dot(program, &shown);
  bool good = !shown.failed;
  weft_text_free(&shown);
  return good;
}

/* Runs the job with each of its allocations failing in turn, until it succeeds with none failing. */
static void survives(bool (*job)(void)) {
  for (int failing = 0; failing < 10000; failing++) {
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
  static const char *const names[] = {"scheduled-sections-multicast", "scheduled-trip-fold", "template-names",
                                      "scheduled-elementwise-2sites", "scheduled-carry-fold"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    name = names[i];
    program = case_program(name);
    weft_text dump = case_dump(program);
    text = dump.data;
    length = dump.length;
    survives(reads);
    survives(copies);
    survives(writes);
    survives(validates);
    survives(shows);
    weft_text_free(&dump);
    weft_program_free(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(exhausted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
