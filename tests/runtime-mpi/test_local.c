/* Programs over the thread transport, from command line to result file, against plain loops. */
#include "programs.h"
#include "weft/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/weft-runtime-XXXXXX";
static char in_path[64], out_path[64], said_path[64];

static int run_local(const test_shape *shape, int argc, char **argv) {
  weft_arena *arena = weft_arena_new();
  const weft_abi_program *program = test_program_new(arena, shape);
  assert_non_null(program);
  int code = weft_main_local(program, argc, argv);
  weft_arena_free(arena);
  return code;
}

static void assert_equal_sets(const weft_array_set *got, const weft_array_set *want, const char *what) {
  assert_int_equal(got->count, want->count);
  for (uint64_t i = 0; i < want->count; i++) {
    const weft_array *a = weft_array_set_find(got, want->items[i].name);
    assert_non_null(a);
    weft_difference difference;
    assert_int_equal(weft_array_compare(a, &want->items[i], &difference, NULL), WEFT_OK);
    if (difference.differing)
      fail_msg("%s: %llu elements of '%s' differ, the first at %llu", what, (unsigned long long)difference.differing,
               want->items[i].name, (unsigned long long)difference.first_index);
  }
}

static void check(const test_shape *shape, const char *runs) {
  char what[128];
  test_shape_print(shape, what, sizeof what);
  weft_array_set in = {0}, want = {0}, got = {0};
  assert_true(test_inputs(shape, 1, &in));
  assert_true(test_results(shape, &in, strtoull(runs, NULL, 10), &want));
  assert_int_equal(weft_array_set_write(in_path, &in, NULL), WEFT_OK);
  for (int plain = 0; plain < 2; plain++) {
    char *argv[] = {"run-local", "--in", in_path, "--out", out_path, "--steps", (char *)runs, "--kernel", "plain"};
    if (run_local(shape, plain ? 9 : 7, argv) != 0) fail_msg("%s: the run failed", what);
    assert_int_equal(weft_array_set_read(out_path, &got, NULL), WEFT_OK);
    assert_equal_sets(&got, &want, what);
    weft_array_set_free(&got);
  }
  weft_array_set_free(&in);
  weft_array_set_free(&want);
}

/* Runs with standard output at `path`. */
static int run_into(const char *path, const test_shape *shape, int argc, char **argv) {
  fflush(stdout);
  int kept = dup(STDOUT_FILENO), file = open(path, O_WRONLY);
  assert_true(kept >= 0 && file >= 0 && dup2(file, STDOUT_FILENO) >= 0);
  int code = run_local(shape, argc, argv);
  __fpurge(stdout);
  clearerr(stdout);
  assert_true(dup2(kept, STDOUT_FILENO) >= 0);
  close(kept);
  close(file);
  return code;
}

static void full_output(void **state) {
  (void)state;
  test_shape shape = {TEST_GEMM, .chips = 2, .m = 5, .k = 33, .n = 10, .format = WEFT_FP32};
  weft_array_set in = {0};
  assert_true(test_inputs(&shape, 1, &in));
  assert_int_equal(weft_array_set_write(in_path, &in, NULL), WEFT_OK);
  weft_array_set_free(&in);
  static const char *const saying[] = {"--help", "--version", "--dry-run", "--map", "--stats"};
  for (size_t i = 0; i < sizeof saying / sizeof *saying; i++) {
    char *argv[] = {"run-local", (char *)(uintptr_t)saying[i], "--in", in_path, "--out", out_path};
    int argc = i <= 1 ? 2 : 6;
    assert_int_equal(run_into("/dev/null", &shape, argc, argv), 0);
    assert_int_equal(run_into("/dev/full", &shape, argc, argv), 3);
  }
}

/* What it says on standard output. */
static void said(const char *option, const char *value, const char *expected) {
  test_shape shape = {TEST_GEMM, .chips = 2, .m = 5, .k = 33, .n = 10, .format = WEFT_FP32};
  char *argv[] = {"run-local", "--in", in_path, (char *)(uintptr_t)option, (char *)(uintptr_t)value}, text[4096] = "";
  weft_array_set in = {0};
  assert_true(test_inputs(&shape, 1, &in));
  assert_int_equal(weft_array_set_write(in_path, &in, NULL), WEFT_OK);
  weft_array_set_free(&in);
  assert_int_equal(close(open(said_path, O_CREAT | O_WRONLY | O_TRUNC, 0600)), 0);
  assert_int_equal(run_into(said_path, &shape, option ? value ? 5 : 4 : 3, argv), 0);
  FILE *file = fopen(said_path, "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  if (*expected ? !strstr(text, expected) : *text) fail_msg("%s: %s", option, text);
}

static void where_results_are(void **state) {
  (void)state;
  said(NULL, NULL, "no --out FILE was given, so the results are not kept\n");
  said("--steps", "3", ": 3 runs in ");
  said("--out", out_path, "");
  said("--version", NULL, "for 2 chips\nweft " WEFT_VERSION "\narithmetic 1\nabi ");
}

static void one_chip(void **state) {
  (void)state;
  static const weft_format formats[] = {WEFT_FP32, WEFT_BF16, WEFT_FP16, WEFT_FP8, WEFT_INT8};
  for (int f = 0; f < 5; f++) {
    check(
        &(test_shape){TEST_GEMM, .chips = 1, .m = 5, .k = 70, .n = 7, .format = formats[f], .bias = true, .relu = true},
        "1");
    check(&(test_shape){TEST_GEMM, .chips = 1, .m = 1, .k = 1, .n = 1, .format = formats[f]}, "1");
    check(&(test_shape){TEST_GEMM, .chips = 1, .m = 3, .k = 200, .n = 2, .format = formats[f], .segments = 4,
                        .bias = true, .clamp = true},
          "2");
    check(&(test_shape){TEST_GEMM, .chips = 1, .m = 3, .k = 0, .n = 2, .format = formats[f], .relu = true}, "1");
  }
}

static void columns_and_batch(void **state) {
  (void)state;
  for (uint32_t chips = 1; chips <= 8; chips++) {
    check(&(test_shape){TEST_GEMM, .chips = chips, .m = 5, .k = 33, .n = 10, .format = WEFT_FP32, .bias = true,
                        .relu = true},
          "1");
    check(&(test_shape){TEST_BATCH, .chips = chips, .m = 5, .k = 33, .n = 10, .format = WEFT_FP32, .bias = true,
                        .relu = true},
          "3");
    check(&(test_shape){TEST_BATCH, .chips = chips, .m = 9, .k = 33, .n = 1, .format = WEFT_INT8, .bias = true,
                        .clamp = true},
          "1");
  }
}

static void rows(void **state) {
  (void)state;
  for (uint32_t chips = 1; chips <= 8; chips++) {
    check(&(test_shape){TEST_ROWS, .chips = chips, .m = 5, .k = 300, .n = 10, .format = WEFT_FP32, .bias = true,
                        .relu = true},
          "1");
    check(&(test_shape){TEST_ROWS, .chips = chips, .m = 3, .k = 65, .n = 7, .format = WEFT_FP32, .segments = 8,
                        .bias = true, .relu = true},
          "2");
    check(&(test_shape){TEST_ROWS, .chips = chips, .m = 60, .k = 256, .n = 100, .format = WEFT_FP32, .segments = 8,
                        .bias = true, .relu = true},
          "3"); /* in slices */
    check(&(test_shape){TEST_ROWS, .chips = chips, .m = 60, .k = 256, .n = 100, .format = WEFT_BF16, .segments = 7},
          "2");
    check(&(test_shape){TEST_ROWS, .chips = chips, .m = 60, .k = 256, .n = 100, .format = WEFT_INT8, .bias = true,
                        .relu = true, .clamp = true},
          "2");
  }
}

static void rows_with_few_readers(void **state) {
  (void)state;
  for (uint32_t chips = 2; chips <= 8; chips++)
    for (uint32_t readers = 1; readers < chips; readers++) {
      check(&(test_shape){TEST_ROWS, .chips = chips, .m = 4, .k = 300, .n = 10, .format = WEFT_FP32, .segments = 8,
                          .bias = true, .relu = true, .readers = readers},
            "2");
      check(&(test_shape){TEST_ROWS, .chips = chips, .m = 50, .k = 300, .n = 101, .format = WEFT_FP32, .segments = 4,
                          .bias = true, .readers = readers},
            "2");
    }
}

/* Random trees over random chips with random readers, small (one exchange) and large (slices). The seed is the shape's
 * k. */
static void random_reductions(void **state) {
  (void)state;
  static const weft_format formats[] = {WEFT_FP32, WEFT_INT32, WEFT_FP32, WEFT_INT64};
  static const int pools[] = {WEFT_POOL_SUM, WEFT_POOL_MAX, WEFT_POOL_MIN};
  for (uint64_t seed = 1; seed <= 60; seed++) {
    test_shape shape = {.kind = TEST_REDUCE, .chips = 1 + (uint32_t)(seed % 8), .k = seed, .format = formats[seed % 4]};
    shape.pool = pools[seed % 3];
    shape.m = seed % 5 ? 3 : 70;
    shape.n = seed % 5 ? 37 : 131;
    shape.segments = 1 + (uint32_t)(seed * 7 % 33);
    check(&shape, seed % 7 ? "1" : "3");
  }
}

static void pipeline_and_ring(void **state) {
  (void)state;
  for (uint32_t chips = 1; chips <= 8; chips++) {
    check(&(test_shape){TEST_PIPELINE, .chips = chips, .m = 6, .k = 40, .format = WEFT_FP32}, "5");
    check(&(test_shape){TEST_RING, .chips = chips, .m = 7, .k = 11, .format = WEFT_INT32}, "50");
  }
  check(&(test_shape){TEST_RING, .chips = 3, .m = 100, .k = 11, .n = 45, .format = WEFT_INT32}, "30");
  check(&(test_shape){TEST_PIPELINE, .chips = 64, .m = 3, .k = 8, .format = WEFT_FP32}, "20");
  check(&(test_shape){TEST_RING, .chips = 64, .m = 3, .k = 8, .format = WEFT_INT32}, "20");
}

static int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(in_path, sizeof in_path, "%s/in.h5", folder);
  snprintf(out_path, sizeof out_path, "%s/out.h5", folder);
  snprintf(said_path, sizeof said_path, "%s/said.txt", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  unlink(in_path);
  unlink(out_path);
  unlink(said_path);
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_chip),
      cmocka_unit_test(columns_and_batch),
      cmocka_unit_test(rows),
      cmocka_unit_test(rows_with_few_readers),
      cmocka_unit_test(random_reductions),
      cmocka_unit_test(pipeline_and_ring),
      cmocka_unit_test(full_output),
      cmocka_unit_test(where_results_are),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
