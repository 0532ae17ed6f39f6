/* Reading what h5py wrote. */
#define TEST_FOLDER "read"
#include "tensor_fixture.h"

#include <inttypes.h>
#include <math.h>

static weft_tensor_file *open_file(const char *name) {
  char path[4096];
  snprintf(path, sizeof path, FOLDER "%s", name);
  weft_tensor_file *file;
  weft_diag *diag = weft_diag_new();
  weft_status status = weft_tensor_file_open(path, &file, diag);
  if (status != WEFT_OK) fail_msg("%s: %s", path, weft_diag_message(diag, 0)->text);
  weft_diag_free(diag);
  return file;
}

static void read_whole(weft_tensor_file *file, const char *name, weft_format dtype, uint64_t count, void *out) {
  weft_diag *diag = weft_diag_new();
  const weft_dataset_info *info = weft_tensor_file_find(file, name);
  assert_non_null(info);
  uint64_t rows, cols;
  weft_plane_extents(info->rank, info->extents, &rows, &cols);
  assert_int_equal(rows * cols, count);
  if (weft_tensor_file_read(file, name, dtype, 0, rows, 0, cols, out, cols, diag) != WEFT_OK)
    fail_msg("%s: %s", name, weft_diag_message(diag, 0)->text);
  weft_diag_free(diag);
}

/* ---- types ----------------------------------------------------------------------------------------------------------
 */

static void integers_of_every_width(void **state) {
  (void)state;
  weft_tensor_file *file = open_file("formats.h5");
  const char *const names[] = {"int8", "int16", "int32", "int64", "big/int16", "big/int32", "big/int64"};
  const weft_format formats[] = {WEFT_INT8, WEFT_INT16, WEFT_INT32, WEFT_INT64, WEFT_INT16, WEFT_INT32, WEFT_INT64};
  for (size_t i = 0; i < 7; i++) {
    int64_t data[77];
    read_whole(file, names[i], formats[i], 77, data);
    for (int p = 0; p < 77; p++) assert_true(weft_load_i64(formats[i], data, (uint64_t)p) == p % 251 - 100);
  }
  weft_tensor_file_close(file);
}

static void floats_of_every_width(void **state) {
  (void)state;
  weft_tensor_file *file = open_file("formats.h5");
  float data[77];
  uint16_t half[77];
  read_whole(file, "fp32", WEFT_FP32, 77, data);
  for (int p = 0; p < 77; p++) assert_true(data[p] == (float)p / 2 - 3);
  read_whole(file, "big/fp32", WEFT_FP32, 77, data);
  for (int p = 0; p < 77; p++) assert_true(data[p] == (float)p / 2 - 3);
  read_whole(file, "big/fp16", WEFT_FP16, 77, half);
  for (int p = 0; p < 77; p++) assert_true(weft_fp16_to_f32(half[p]) == (float)p / 2 - 3);
  static uint16_t all[65536];
  read_whole(file, "fp16", WEFT_FP16, 65536, all);
  for (int p = 0; p < 65536; p++) assert_int_equal(all[p], p);
  read_whole(file, "bf16", WEFT_BF16, 65536, all);
  for (int p = 0; p < 65536; p++) assert_int_equal(all[p], p);
  read_whole(file, "big/bf16", WEFT_BF16, 16, all);
  for (int p = 0; p < 16; p++) assert_int_equal(all[p], p);
  uint8_t bytes[256];
  read_whole(file, "fp8", WEFT_FP8, 256, bytes);
  for (int p = 0; p < 256; p++) assert_int_equal(bytes[p], p);
  weft_tensor_file_close(file);
}

static void every_shape(void **state) {
  (void)state;
  weft_tensor_file *file = open_file("formats.h5");
  int32_t scalar;
  float one[60];
  read_whole(file, "scalar", WEFT_INT32, 1, &scalar);
  assert_int_equal(scalar, -7);
  assert_int_equal(weft_tensor_file_find(file, "scalar")->rank, 0);
  read_whole(file, "one", WEFT_FP32, 1, one);
  assert_true(one[0] == 2.5f);
  read_whole(file, "empty", WEFT_FP32, 0, one);
  read_whole(file, "hollow", WEFT_FP32, 0, one);
  read_whole(file, "eight", WEFT_FP32, 60, one);
  for (int p = 0; p < 60; p++) assert_true(one[p] == (float)p / 2 - 3);
  const weft_dataset_info *eight = weft_tensor_file_find(file, "eight");
  assert_int_equal(eight->rank, 8);
  const uint64_t extents[] = {1, 2, 1, 3, 1, 2, 1, 5};
  assert_memory_equal(eight->extents, extents, sizeof extents);
  read_whole(file, "block/deep/weight", WEFT_FP32, 6, one);
  read_whole(file, "layers.0.wq", WEFT_FP32, 4, one);
  assert_string_equal(weft_tensor_file_find(file, "fp8")->role, "Param");
  assert_string_equal(weft_tensor_file_find(file, "fp32")->role, "");
  weft_tensor_file_close(file);
}

static void datasets_are_listed_in_name_order(void **state) {
  (void)state;
  weft_tensor_file *file = open_file("formats.h5");
  assert_int_equal(weft_tensor_file_count(file), 21);
  for (uint64_t i = 1; i < 21; i++)
    assert_true(strcmp(weft_tensor_file_info(file, i - 1)->name, weft_tensor_file_info(file, i)->name) < 0);
  assert_null(weft_tensor_file_info(file, 21));
  assert_null(weft_tensor_file_find(file, "big"));
  assert_null(weft_tensor_file_find(file, "/fp32"));
  weft_tensor_file_close(file);
}

/* ---- blocks ---------------------------------------------------------------------------------------------------------
 */

static void check_block(weft_tensor_file *file, const weft_dataset_info *info, uint64_t *random) {
  enum { MOST = 1 << 15 };
  static float out[MOST];
  uint64_t rows, cols;
  weft_plane_extents(info->rank, info->extents, &rows, &cols);
  uint64_t row0 = weft_random_next(random) % rows, col0 = weft_random_next(random) % cols;
  uint64_t r = weft_random_next(random) % (rows - row0 + 1), c = weft_random_next(random) % (cols - col0 + 1);
  if (weft_random_next(random) % 4 == 0) col0 = 0, c = cols;
  uint64_t stride = c + weft_random_next(random) % 3;
  for (size_t i = 0; i < MOST; i++) out[i] = -99;
  assert_int_equal(weft_tensor_file_read(file, info->name, WEFT_FP32, row0, r, col0, c, out, stride, NULL), WEFT_OK);
  bool unwritten = strstr(info->name, "unwritten");
  for (uint64_t i = 0; i < r * stride; i++) {
    uint64_t p = (row0 + i / stride) * cols + col0 + i % stride;
    float wanted = i % stride >= c ? -99 : unwritten ? 2.5f : (float)p / 2 - 3;
    if (out[i] != wanted)
      fail_msg("%s: block %" PRIu64 "+%" PRIu64 " x %" PRIu64 "+%" PRIu64 " element %" PRIu64 " is %f, wanted %f",
               info->name, row0, r, col0, c, i, (double)out[i], (double)wanted);
  }
  assert_true(out[r * stride] == -99);
}

static void check_layouts(const char *name) {
  weft_tensor_file *file = open_file(name);
  uint64_t random = 17;
  assert_int_equal(weft_tensor_file_count(file), 11);
  for (uint64_t i = 0; i < weft_tensor_file_count(file); i++)
    for (int repeat = 0; repeat < 300; repeat++) check_block(file, weft_tensor_file_info(file, i), &random);
  weft_tensor_file_close(file);
}

static void blocks_of_every_layout(void **state) {
  (void)state;
  check_layouts("layouts.h5");
}

static void blocks_of_the_newest_file_format(void **state) {
  (void)state;
  check_layouts("layouts-latest.h5");
}

static void blocks_behind_a_user_block(void **state) {
  (void)state;
  check_layouts("layouts-userblock.h5");
}

static void blocks_outside_are_refused(void **state) {
  (void)state;
  weft_tensor_file *file = open_file("formats.h5");
  const uint64_t blocks[][4] = {{0, 8, 0, 1},  {7, 1, 0, 1},          {0, 1, 0, 12},
                                {0, 1, 11, 1}, {UINT64_MAX, 2, 0, 1}, {1, UINT64_MAX, 0, 1}};
  float out[128];
  for (size_t i = 0; i < 6; i++) {
    weft_diag *diag = weft_diag_new();
    const uint64_t *b = blocks[i];
    assert_int_equal(weft_tensor_file_read(file, "fp32", WEFT_FP32, b[0], b[1], b[2], b[3], out, 12, diag),
                     WEFT_INVALID);
    ASSERT_MESSAGE(diag, "formats.h5", "tensor `fp32`", "7 x 11");
  }
  weft_tensor_file_close(file);
}

/* ---- refusals -------------------------------------------------------------------------------------------------------
 */

static void missing_datasets_name_near_ones(void **state) {
  (void)state;
  weft_tensor_file *file = open_file("formats.h5");
  float out[4];
  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_tensor_file_read(file, "layers.0.qw", WEFT_FP32, 0, 1, 0, 1, out, 1, diag), WEFT_INVALID);
  ASSERT_MESSAGE(diag, FOLDER "formats.h5: tensor `layers.0.qw`: the file has no such dataset",
                 "did you mean `layers.0.wq`");
  diag = weft_diag_new();
  assert_int_equal(weft_tensor_file_read(file, "completely different", WEFT_FP32, 0, 1, 0, 1, out, 1, diag),
                   WEFT_INVALID);
  ASSERT_MESSAGE(diag, "tensor `completely different`", "the file has `bf16`", "and 13 more");
  weft_tensor_file_close(file);
}

static void wrong_types_and_shapes_are_named(void **state) {
  (void)state;
  weft_tensor_file *file = open_file("formats.h5");
  float out[128];
  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_tensor_file_read(file, "fp32", WEFT_INT32, 0, 1, 0, 1, out, 1, diag), WEFT_INVALID);
  ASSERT_MESSAGE(diag, "formats.h5", "tensor `fp32`: it holds Fp32, wanted is Int32");
  diag = weft_diag_new();
  assert_int_equal(weft_tensor_file_expect(file, "fp32", WEFT_FP32, 2, (const uint64_t[]){11, 7}, diag), WEFT_INVALID);
  ASSERT_MESSAGE(diag, "formats.h5", "tensor `fp32`: it is Fp32 [7, 11], wanted is Fp32 [11, 7]");
  diag = weft_diag_new();
  assert_int_equal(weft_tensor_file_expect(file, "fp32", WEFT_FP32, 1, (const uint64_t[]){77}, diag), WEFT_INVALID);
  ASSERT_MESSAGE(diag, "it is Fp32 [7, 11], wanted is Fp32 [77]");
  diag = weft_diag_new();
  assert_int_equal(weft_tensor_file_expect(file, "fp32", WEFT_FP16, 2, (const uint64_t[]){7, 11}, diag), WEFT_INVALID);
  ASSERT_MESSAGE(diag, "it holds Fp32, wanted is Fp16");
  diag = weft_diag_new();
  assert_int_equal(weft_tensor_file_expect(file, "fp32", WEFT_FP32, 2, (const uint64_t[]){7, 11}, diag), WEFT_OK);
  assert_int_equal(weft_tensor_file_expect(file, "scalar", WEFT_INT32, 0, NULL, diag), WEFT_OK);
  assert_int_equal(weft_diag_count(diag), 0);
  weft_diag_free(diag);
  weft_tensor_file_close(file);
}

static void what_cannot_be_read_is_listed_and_refused(void **state) {
  (void)state;
  static const struct {
    const char *name, *why;
  } cases[] = {
      {"boolean", "enumerations"},
      {"complex", "compounds"},
      {"double", "64-bit floats"},
      {"filtered", "filter 32000"},
      {"fixed text", "holds text"},
      {"group/external", "an external link"},
      {"loop", "a soft link"},
      {"nine", "9 dimensions"},
      {"null", "no shape"},
      {"opaque", "opaque bytes"},
      {"pairs", "compounds"},
      {"soft", "a soft link"},
      {"stored elsewhere", "external storage"},
      {"text", "holds text"},
      {"unsigned", "unsigned integers"},
      {"unsigned named", "unsigned integers"},
      {"virtual", "a virtual dataset"},
      {"wide chunks", "chunks of 2147483648"},
  };
  enum { CASES = sizeof cases / sizeof *cases };
  weft_tensor_file *file = open_file("refused.h5");
  assert_int_equal(weft_tensor_file_count(file), CASES + 1);
  for (size_t i = 0; i < CASES; i++) {
    const weft_dataset_info *info = weft_tensor_file_find(file, cases[i].name);
    assert_non_null(info);
    assert_int_equal(info->dtype, WEFT_FORMAT_COUNT);
    char out[64];
    weft_diag *diag = weft_diag_new();
    assert_int_equal(weft_tensor_file_read(file, cases[i].name, WEFT_FP32, 0, 1, 0, 1, out, 1, diag), WEFT_INVALID);
    ASSERT_MESSAGE(diag, "refused.h5: tensor `", cases[i].name, cases[i].why);
  }
  assert_null(weft_tensor_file_find(file, "good")->unsupported);
  weft_tensor_file_close(file);
}

static void sets_leave_out_what_cannot_be_read(void **state) {
  (void)state;
  weft_array_set set = {0};
  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_array_set_read(FOLDER "refused.h5", &set, diag), WEFT_OK);
  assert_int_equal(set.count, 1);
  assert_string_equal(set.items[0].name, "good");
  assert_int_equal(weft_diag_count(diag), 18);
  assert_int_equal(weft_diag_errors(diag), 0);
  assert_int_equal(weft_diag_message(diag, 0)->severity, WEFT_WARNING);
  weft_diag_free(diag);
  weft_array_set_free(&set);
}

static void check_refused_file(const char *name, const char *word) {
  char path[4096];
  snprintf(path, sizeof path, FOLDER "%s", name);
  weft_tensor_file *file;
  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_tensor_file_open(path, &file, diag), WEFT_INVALID);
  assert_null(file);
  ASSERT_MESSAGE(diag, path, word);
}

static void files_are_refused_by_name(void **state) {
  (void)state;
  check_refused_file("absent.h5", "No such file");
  check_refused_file("", "Is a directory");
  check_refused_file("no.h5", "no HDF5 file");
  check_refused_file("empty.h5", "no HDF5 file");
  check_refused_file("truncated.h5", "truncated file");
  check_refused_file("short.h5", "truncated");
  check_refused_file("circle.h5", "group `a/b/again` holds itself");
  check_refused_file("deep.h5", "is nested too deep");
  check_refused_file("doubling.h5", "one link too many");
  weft_diag *diag = weft_diag_new();
  weft_tensor_file *file;
  assert_int_equal(weft_tensor_file_open("/dev/zero", &file, diag), WEFT_INVALID);
  ASSERT_MESSAGE(diag, "/dev/zero", "a device or a pipe");
}

static void groups_reached_twice_are_read_twice(void **state) {
  (void)state;
  weft_tensor_file *file = open_file("shared.h5");
  const char *const names[] = {"a/x", "b/x", "y"};
  assert_int_equal(weft_tensor_file_count(file), 3);
  for (uint64_t i = 0; i < 3; i++) {
    float x[2];
    assert_string_equal(weft_tensor_file_info(file, i)->name, names[i]);
    read_whole(file, names[i], WEFT_FP32, 2, x);
    assert_true(x[0] == -3 && x[1] == -2.5f);
  }
  weft_tensor_file_close(file);
}

/* A kilobyte that declares terabytes costs nothing; a block of it may be read. */
static void vast_datasets_are_not_expanded(void **state) {
  (void)state;
  const char *const names[] = {"sparse.h5", "unallocated.h5"};
  for (size_t i = 0; i < 2; i++) {
    char path[4096];
    snprintf(path, sizeof path, FOLDER "%s", names[i]);
    weft_array_set set = {0};
    weft_diag *diag = weft_diag_new();
    assert_int_equal(weft_array_set_read(path, &set, diag), WEFT_INVALID);
    ASSERT_MESSAGE(diag, names[i], "tensor `vast`", "far more elements");
    weft_array_set_free(&set);
    weft_tensor_file *file = open_file(names[i]);
    float out[6] = {1, 1, 1, 1, 1, 1};
    assert_int_equal(weft_tensor_file_read(file, "vast", WEFT_FP32, 1000000, 2, 1000000, 3, out, 3, NULL), WEFT_OK);
    for (int p = 0; p < 6; p++) assert_true(out[p] == 0);
    weft_tensor_file_close(file);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(integers_of_every_width),
      cmocka_unit_test(floats_of_every_width),
      cmocka_unit_test(every_shape),
      cmocka_unit_test(datasets_are_listed_in_name_order),
      cmocka_unit_test(blocks_of_every_layout),
      cmocka_unit_test(blocks_of_the_newest_file_format),
      cmocka_unit_test(blocks_behind_a_user_block),
      cmocka_unit_test(blocks_outside_are_refused),
      cmocka_unit_test(missing_datasets_name_near_ones),
      cmocka_unit_test(wrong_types_and_shapes_are_named),
      cmocka_unit_test(what_cannot_be_read_is_listed_and_refused),
      cmocka_unit_test(sets_leave_out_what_cannot_be_read),
      cmocka_unit_test(files_are_refused_by_name),
      cmocka_unit_test(groups_reached_twice_are_read_twice),
      cmocka_unit_test(vast_datasets_are_not_expanded),
  };
  return cmocka_run_group_tests(tests, make_files, NULL);
}
