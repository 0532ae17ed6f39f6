/* Programs over MPI ranks: equal to plain loops; what goes wrong ends everywhere, with one message, and leaves no part
 * of a result. Every failure prints the command that repeats it. */
#include "command.h"
#include "programs.h"
#include "weft/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIMIT = 60 };

static char folder[] = "/tmp/weft-mpi-XXXXXX";
static char in_path[64], out_path[64];
static command_result result;
static char command[1024];

static void run(const char *launcher, const char *mode, const test_shape *shape, const char *arguments) {
  char text[128];
  test_shape_print(shape, text, sizeof text);
  snprintf(command, sizeof command, "%s %s %s %s --in %s --out %s %s", launcher, WEFT_RUN_SHAPE, mode, text, in_path,
           out_path, arguments);
  command_run(command, LIMIT, &result);
}

static void fail_with(const char *what) {
  fail_msg("%s\n%s\nstatus %d\n%s", what, command, result.status, result.output);
}

static void write_inputs(const test_shape *shape, weft_array_set *in) {
  assert_true(test_inputs(shape, 5, in));
  assert_int_equal(weft_array_set_write(in_path, in, NULL), WEFT_OK);
}

static void compare_results(const test_shape *shape, const weft_array_set *in, uint64_t runs) {
  weft_array_set want = {0}, got = {0};
  assert_true(test_results(shape, in, runs, &want));
  if (weft_array_set_read(out_path, &got, NULL) != WEFT_OK) fail_with("no result");
  for (uint64_t i = 0; i < want.count; i++) {
    const weft_array *a = weft_array_set_find(&got, want.items[i].name);
    weft_difference difference;
    if (!a || weft_array_compare(a, &want.items[i], &difference, NULL) != WEFT_OK || difference.differing)
      fail_with("the result differs");
  }
  weft_array_set_free(&want);
  weft_array_set_free(&got);
}

static void check(const test_shape *shape, uint64_t runs, const char *arguments) {
  weft_array_set in = {0};
  char more[160];
  write_inputs(shape, &in);
  unlink(out_path);
  snprintf(more, sizeof more, "--steps %llu %s", (unsigned long long)runs, arguments);
  run(command_mpirun((int)shape->chips), "mpi", shape, more);
  if (result.status != 0) fail_with("the run failed");
  compare_results(shape, &in, runs);
  weft_array_set_free(&in);
}

/* ---- right results ---- */

static void products(void **state) {
  (void)state;
  for (uint32_t chips = 1; chips <= 4; chips++) {
    check(&(test_shape){TEST_GEMM, .chips = chips, .m = 5, .k = 33, .n = 10, .format = WEFT_FP32, .bias = true,
                        .relu = true},
          1, "");
    check(&(test_shape){TEST_BATCH, .chips = chips, .m = 9, .k = 33, .n = 3, .format = WEFT_INT8, .bias = true,
                        .clamp = true},
          1, "");
  }
}

static void all_reduces(void **state) {
  (void)state;
  for (uint32_t chips = 2; chips <= 4; chips++) {
    check(&(test_shape){TEST_ROWS, .chips = chips, .m = 3, .k = 65, .n = 7, .format = WEFT_FP32, .segments = 8,
                        .bias = true, .relu = true},
          3, "");
    check(&(test_shape){TEST_ROWS, .chips = chips, .m = 60, .k = 256, .n = 100, .format = WEFT_FP32, .segments = 8,
                        .bias = true, .relu = true},
          3, "");
    check(&(test_shape){TEST_ROWS, .chips = chips, .m = 60, .k = 256, .n = 100, .format = WEFT_INT8, .segments = 8,
                        .bias = true, .relu = true, .clamp = true, .readers = 1},
          2, "");
  }
}

static void random_reductions(void **state) {
  (void)state;
  static const weft_format formats[] = {WEFT_FP32, WEFT_INT32, WEFT_FP32, WEFT_INT64};
  for (uint64_t seed = 1; seed <= 12; seed++) {
    test_shape shape = {.kind = TEST_REDUCE, .chips = 2 + (uint32_t)(seed % 3), .k = seed, .format = formats[seed % 4]};
    shape.pool = WEFT_POOL_SUM;
    shape.m = seed % 3 ? 3 : 70;
    shape.n = seed % 3 ? 37 : 131;
    shape.segments = 1 + (uint32_t)(seed * 7 % 33);
    check(&shape, 3, "");
  }
}

static void links(void **state) {
  (void)state;
  for (uint32_t chips = 2; chips <= 4; chips++) {
    check(&(test_shape){TEST_PIPELINE, .chips = chips, .m = 6, .k = 40, .format = WEFT_FP32}, 5, "");
    check(&(test_shape){TEST_RING, .chips = chips, .m = 7, .k = 11, .format = WEFT_INT32}, 50, "");
  }
}

/* Ranks that share memory with some of the others only: both ways of a message in one run. */
static void two_hosts(void **state) {
  (void)state;
  for (int seen = 1; seen <= 2; seen++) {
    char arguments[32];
    snprintf(arguments, sizeof arguments, "--host-ranks %d", seen);
    check(&(test_shape){TEST_ROWS, .chips = 4, .m = 60, .k = 256, .n = 100, .format = WEFT_FP32, .segments = 8,
                        .bias = true, .relu = true},
          3, arguments);
    check(&(test_shape){TEST_RING, .chips = 4, .m = 7, .k = 11, .format = WEFT_INT32}, 50, arguments);
    check(&(test_shape){TEST_PIPELINE, .chips = 4, .m = 6, .k = 40, .format = WEFT_FP32}, 40, arguments);
  }
}

/* More messages at once than the ring of a pair holds. */
static void rings_overflow(void **state) {
  (void)state;
  check(&(test_shape){TEST_RING, .chips = 3, .m = 100, .k = 11, .n = 45, .format = WEFT_INT32}, 30, "");
  check(&(test_shape){TEST_RING, .chips = 2, .m = 20, .k = 3, .n = 40, .format = WEFT_INT32}, 30, "--host-ranks 1");
}

/* The limit is far below the messages' sizes: 64 bytes cut them into dozens. */
static void messages_are_cut(void **state) {
  (void)state;
  check(&(test_shape){TEST_RING, .chips = 3, .m = 17, .k = 31, .format = WEFT_INT32}, 5,
        "--host-ranks 1 --message-limit 64");
  check(&(test_shape){TEST_ROWS, .chips = 3, .m = 60, .k = 256, .n = 100, .format = WEFT_FP32, .segments = 8,
                      .bias = true, .relu = true},
        2, "--host-ranks 1 --message-limit 1000");
}

/* From a host application's arrays to its arrays; one call fails for want of inputs, with one message. */
static void library(void **state) {
  (void)state;
  static const test_shape shapes[] = {
      {TEST_ROWS, .chips = 3, .m = 20, .k = 256, .n = 100, .format = WEFT_FP32, .segments = 8, .bias = true},
      {TEST_RING, .chips = 4, .m = 7, .k = 11, .format = WEFT_INT32},
      {TEST_GEMM, .chips = 2, .m = 5, .k = 33, .n = 10, .format = WEFT_BF16, .bias = true, .relu = true}};
  for (int i = 0; i < 3; i++) {
    run(command_mpirun((int)shapes[i].chips), "library", &shapes[i], "");
    if (result.status != 0) fail_with("the run failed");
    if (command_count(result.output, "there is no tensor") != 1) fail_with("not one message");
  }
}

static void reports(void **state) {
  (void)state;
  check(&(test_shape){TEST_ROWS, .chips = 2, .m = 60, .k = 256, .n = 100, .format = WEFT_FP32, .segments = 8,
                      .bias = true, .relu = true},
        4, "--stats --map");
  if (!strstr(result.output, "rank 1  host ") || !strstr(result.output, "fold") || !strstr(result.output, "4 runs in "))
    fail_with("no map or table");
}

/* ---- what goes wrong ---- */

static const test_shape sample = {TEST_ROWS,           .chips = 3,    .m = 20,      .k = 256,    .n = 100,
                                  .format = WEFT_FP32, .segments = 8, .bias = true, .relu = true};

/* Runs it and expects `status`, one message that holds all `words`, no hang, and the old result. */
static void expect(const char *launcher, const char *mode, const char *arguments, int status,
                   const char *const *words) {
  FILE *old = fopen(out_path, "w");
  assert_non_null(old);
  fputs("old", old);
  fclose(old);
  run(launcher, mode, &sample, arguments);
  if (result.late) fail_with("it hangs");
  if (result.status != status) fail_with("another status");
  if (command_count(result.output, "weft: ") != 1 + command_count(result.output, "weft: warning:"))
    fail_with("not one message");
  for (; *words; words++)
    if (!strstr(result.output, *words)) {
      print_error("expected: %s\n", *words);
      fail_with("another message");
    }
  struct stat file;
  assert_int_equal(stat(out_path, &file), 0);
  assert_int_equal(file.st_size, 3);
  unlink(out_path);
}

static void wrong_rank_count(void **state) {
  (void)state;
  weft_array_set in = {0};
  write_inputs(&sample, &in);
  expect(command_mpirun(2), "mpi", "", 1, (const char *const[]){"needs 3 ranks", "mpirun -n 3", NULL});
  expect("", "mpi", "", 1, (const char *const[]){"needs 3 ranks", "mpirun -n 3", NULL});
  weft_array_set_free(&in);
}

static void missing_dataset(void **state) {
  (void)state;
  weft_array_set in = {0}, less = {0};
  assert_true(test_inputs(&sample, 5, &in));
  const weft_array *x = weft_array_set_find(&in, "x");
  weft_array *copy = weft_array_set_add(&less, "x", x->dtype, x->rank, x->extents);
  memcpy(copy->data, x->data, weft_array_elements(x) * 4);
  assert_int_equal(weft_array_set_write(in_path, &less, NULL), WEFT_OK);
  expect(command_mpirun(3), "mpi", "", 1, (const char *const[]){"in.h5", "'w'", NULL});
  expect("", "local", "", 1, (const char *const[]){"in.h5", "'w'", NULL});
  weft_array_set_free(&in);
  weft_array_set_free(&less);
}

static void wrong_shape(void **state) {
  (void)state;
  test_shape other = sample;
  other.n = 101;
  weft_array_set in = {0};
  write_inputs(&other, &in);
  expect(command_mpirun(3), "mpi", "", 1, (const char *const[]){"in.h5", "'w'", "101", NULL});
  expect(command_mpirun(3), "mpi", "--dry-run", 1, (const char *const[]){"in.h5", "'w'", "101", NULL});
  weft_array_set_free(&in);
}

static void truncated_file(void **state) {
  (void)state;
  weft_array_set in = {0};
  write_inputs(&sample, &in);
  struct stat file;
  assert_int_equal(stat(in_path, &file), 0);
  assert_int_equal(truncate(in_path, file.st_size / 2), 0);
  expect(command_mpirun(3), "mpi", "", 1, (const char *const[]){"in.h5", NULL});
  assert_int_equal(truncate(in_path, 0), 0);
  expect(command_mpirun(3), "mpi", "", 1, (const char *const[]){"in.h5", NULL});
  unlink(in_path);
  expect(command_mpirun(3), "mpi", "", 1, (const char *const[]){"in.h5", NULL});
  weft_array_set_free(&in);
}

static void usage(void **state) {
  (void)state;
  expect(command_mpirun(3), "mpi", "--stepz 3", 2, (const char *const[]){"--stepz", "--help", NULL});
  expect(command_mpirun(3), "mpi", "--steps 0", 2, (const char *const[]){"--steps", NULL});
  expect("", "local", "--kernel none", 2, (const char *const[]){"kernels 'none'", "plain", NULL});
}

static void dry_run(void **state) {
  (void)state;
  weft_array_set in = {0};
  write_inputs(&sample, &in);
  unlink(out_path);
  run(command_mpirun(3), "mpi", &sample, "--dry-run");
  if (result.status != 0 || !strstr(result.output, "ready")) fail_with("no dry run");
  assert_int_not_equal(access(out_path, F_OK), 0);
  weft_array_set_free(&in);
}

/* Values at the edge: the result of a requantised product does not fit; every rank that reads it sees that. */
static void value_that_does_not_fit(void **state) {
  (void)state;
  const test_shape shape = {TEST_ROWS, .chips = 3,          .m = 2,        .k = 256,
                            .n = 3,    .format = WEFT_INT8, .segments = 8, .bias = true};
  weft_array_set in = {0};
  assert_true(test_inputs(&shape, 5, &in));
  ((int32_t *)weft_array_set_find(&in, "b")->data)[1] = INT32_MAX;
  memset(weft_array_set_find(&in, "x")->data, 127, 512);
  memset(weft_array_set_find(&in, "w")->data, 127, 768);
  assert_int_equal(weft_array_set_write(in_path, &in, NULL), WEFT_OK);
  unlink(out_path);
  for (int mode = 0; mode < 2; mode++) {
    run(mode ? "" : command_mpirun(3), mode ? "local" : "mpi", &shape, "");
    if (result.late) fail_with("it hangs");
    if (result.status != 1 || command_count(result.output, "does not fit Int32") != 1 ||
        !strstr(result.output, "row 0, column 1 of 'y'"))
      fail_with("another message");
    assert_int_not_equal(access(out_path, F_OK), 0);
  }
  weft_array_set_free(&in);
}

/* A rank is killed in the middle, on a crowded host: all end within 10 seconds, each survivor says what it did. */
static void killed_rank(void **state) {
  (void)state;
  const test_shape shape = {TEST_RING, .chips = 3, .m = 60, .k = 400, .format = WEFT_INT32};
  weft_array_set in = {0};
  write_inputs(&shape, &in);
  unlink(out_path);
  char text[128];
  test_shape_print(&shape, text, sizeof text);
  /* The map is printed when the ranks are about to run. */
  snprintf(command, sizeof command,
           "cd %s; %s %s mpi %s --in in.h5 --out out.h5 --steps 100000000 --map >log 2>&1 & runs=$!; cd %s; "
           "until grep -q 'rank 2' log; do sleep 0.1; done; sleep 1; "
           "for i in 1 2 3 4; do timeout 8 sh -c 'while :; do :; done' & crowd=\"$crowd $!\"; done; sleep 1; "
           "kill -KILL $(pgrep -f '^%s mpi %s --in in.h5' | head -1); date +%%s >killed; wait $runs; code=$?; "
           "kill $crowd; echo took $(($(date +%%s) - $(cat killed))); cat log; exit $code",
           folder, command_mpirun(3), WEFT_RUN_SHAPE, text, folder, WEFT_RUN_SHAPE, text);
  command_run(command, LIMIT, &result);
  if (result.late) fail_with("it hangs");
  if (result.status == 0) fail_with("status 0");
  if (command_count(result.output, "ended by signal 15 in run ") != 2) fail_with("not two last words");
  const char *took = strstr(result.output, "took ");
  if (!took || atoi(took + 5) > 10) fail_with("later than 10 seconds");
  assert_int_not_equal(access(out_path, F_OK), 0);
  unlink(in_path);
  weft_array_set_free(&in);
}

/* A rank is stopped, not dead: the silent link ends the run. */
static void silent_link(void **state) {
  (void)state;
  const test_shape shape = {TEST_RING, .chips = 2, .m = 60, .k = 400, .format = WEFT_INT32};
  weft_array_set in = {0};
  write_inputs(&shape, &in);
  unlink(out_path);
  char text[128];
  test_shape_print(&shape, text, sizeof text);
  snprintf(
      command, sizeof command,
      "cd %s; %s %s mpi %s --in in.h5 --out out.h5 --steps 100000000 --timeout 1 --map >log 2>&1 & runs=$!; cd %s; "
      "until grep -q 'rank 1' log; do sleep 0.1; done; sleep 2; "
      "victim=$(pgrep -f '^%s mpi %s --in in.h5' | tail -1); kill -STOP $victim; sleep 14; kill -CONT $victim; "
      "wait $runs; code=$?; cat log; exit $code",
      folder, command_mpirun(2), WEFT_RUN_SHAPE, text, folder, WEFT_RUN_SHAPE, text);
  command_run(command, LIMIT, &result);
  if (result.late) fail_with("it hangs");
  if (result.status == 0 || !strstr(result.output, "silent for 1 seconds")) fail_with("no timeout");
  unlink(in_path);
  weft_array_set_free(&in);
}

static int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(in_path, sizeof in_path, "%s/in.h5", folder);
  snprintf(out_path, sizeof out_path, "%s/out.h5", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  char text[64];
  snprintf(text, sizeof text, "rm -rf %s", folder);
  return system(text);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products),
      cmocka_unit_test(all_reduces),
      cmocka_unit_test(links),
      cmocka_unit_test(random_reductions),
      cmocka_unit_test(two_hosts),
      cmocka_unit_test(rings_overflow),
      cmocka_unit_test(messages_are_cut),
      cmocka_unit_test(library),
      cmocka_unit_test(reports),
      cmocka_unit_test(wrong_rank_count),
      cmocka_unit_test(missing_dataset),
      cmocka_unit_test(wrong_shape),
      cmocka_unit_test(truncated_file),
      cmocka_unit_test(usage),
      cmocka_unit_test(dry_run),
      cmocka_unit_test(value_that_does_not_fit),
      cmocka_unit_test(killed_rank),
      cmocka_unit_test(silent_link),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
