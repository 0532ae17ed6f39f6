/* Exhausted memory: each job is run with its first, second, third... allocation failing, until it succeeds. Every
 * failure must come back as a status or a flag, with nothing leaked (checked by the leak sanitizer) and nothing half
 * done. */
#include "weft/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Allocations until one fails; -1: none does. */
static int64_t countdown = -1;

static bool fails(void) { return countdown >= 0 && countdown-- == 0; }

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
char *__real_realpath(const char *path, char *resolved);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_realpath(const char *path, char *resolved);

void *__wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) { return fails() ? NULL : __real_calloc(count, size); }
void *__wrap_realloc(void *old, size_t size) { return fails() ? NULL : __real_realloc(old, size); }
char *__wrap_strdup(const char *text) { return fails() ? NULL : __real_strdup(text); }
char *__wrap_realpath(const char *path, char *resolved) { return fails() ? NULL : __real_realpath(path, resolved); }

/* How many runs it took until `job` succeeded: one more than its allocations. */
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

static bool arena_job(void) {
  weft_arena *arena = weft_arena_new();
  if (!arena) return false;
  bool good = true;
  for (int i = 0; i < 300; i++) good &= weft_arena_alloc(arena, 5000) != NULL;
  uint64_t *numbers = NULL, capacity = 0;
  for (uint64_t i = 0; good && i < 100000; i++) {
    good &= weft_arena_grow(arena, &numbers, i, &capacity, sizeof *numbers);
    if (good) numbers[i] = i;
  }
  assert_int_equal(weft_arena_failed(arena), !good);
  weft_arena_free(arena);
  return good;
}

static bool diag_job(void) {
  weft_diag *diag = weft_diag_new();
  if (!diag) return false;
  for (int i = 0; i < 200; i++) weft_error(diag, WEFT_INVALID, "hint", "%0100d", i);
  assert_int_equal(weft_diag_errors(diag), 200);
  uint64_t count = weft_diag_count(diag);
  bool good = count == 200 && strcmp(weft_diag_message(diag, 199)->text, "out of memory") != 0;
  if (!good) assert_string_equal(weft_diag_message(diag, count - 1)->text, "out of memory");
  weft_diag_free(diag);
  return good;
}

static bool text_job(void) {
  weft_text text = {0};
  for (int i = 0; i < 500; i++) weft_text_printf(&text, "%0100d", i);
  bool good = !text.failed;
  assert_true(!good || text.length == 50000);
  weft_text_free(&text);
  return good;
}

static bool json_job(void) {
  static const char text[] = "{\"a\":[1,2,[3,{\"b\":\"\\u00e9\"}]],\"c\":true,\"d\":{\"e\":0}}";
  weft_arena *arena = weft_arena_new();
  weft_diag *diag = weft_diag_new();
  weft_status status = WEFT_UNAVAILABLE;
  const weft_json *root = NULL;
  if (arena && diag) status = weft_json_parse(arena, "f", text, sizeof text - 1, &root, diag);
  assert_true(status == WEFT_OK || status == WEFT_UNAVAILABLE);
  assert_true((status == WEFT_OK) == (root != NULL));
  if (arena) weft_arena_free(arena);
  weft_diag_free(diag);
  return status == WEFT_OK;
}

static bool file_job(void) {
  static const char path[] = WEFT_BINARY_DIR "/test-memory.tmp";
  weft_diag *diag = weft_diag_new();
  if (!diag) return false;
  char *bytes = NULL;
  size_t length = 0;
  weft_status status = weft_write_file(path, "new", 3, true, diag);
  if (!status) status = weft_write_file(path, "newer", 5, true, diag);
  if (!status) status = weft_read_file(path, &bytes, &length, diag);
  assert_true(status == WEFT_OK || status == WEFT_UNAVAILABLE);
  if (status) assert_int_equal(weft_diag_errors(diag), 1);
  if (!status) assert_string_equal(bytes, "newer");
  free(bytes);
  unlink(path);
  weft_diag_free(diag);
  return status == WEFT_OK;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  assert_true(failures_survived(arena_job) >= 5);
  assert_true(failures_survived(diag_job) >= 5);
  assert_true(failures_survived(text_job) >= 3);
  assert_true(failures_survived(json_job) >= 4);
  assert_true(failures_survived(file_job) >= 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
