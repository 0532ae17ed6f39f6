/* Writing, read back by h5py; old or whole whatever fails. */
#define TEST_FOLDER "write"
#include "tensor_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static weft_tensor_writer *create(const char *path) {
  weft_tensor_writer *writer;
  weft_diag *diag = weft_diag_new();
  if (weft_tensor_writer_create(path, &writer, diag) != WEFT_OK) fail_msg("%s", weft_diag_message(diag, 0)->text);
  weft_diag_free(diag);
  return writer;
}

static void declare(weft_tensor_writer *writer, const char *name, weft_format dtype, uint32_t rank,
                    const uint64_t *extents, const char *role) {
  weft_diag *diag = weft_diag_new();
  if (weft_tensor_writer_declare(writer, name, dtype, rank, extents, role, diag) != WEFT_OK)
    fail_msg("%s: %s", name, weft_diag_message(diag, 0)->text);
  weft_diag_free(diag);
}

static void write_types(weft_tensor_writer *writer) {
  for (weft_format f = 0; f < WEFT_FORMAT_COUNT; f++) {
    int64_t data[15];
    for (int p = 0; p < 15; p++) {
      if (f == WEFT_FP8)
        ((uint8_t *)data)[p] = (uint8_t)p;
      else if (f == WEFT_BF16)
        ((uint16_t *)data)[p] = (uint16_t)p;
      else if (weft_format_is_float(f))
        weft_store_f32(f, data, (uint64_t)p, (float)p / 2 - 3);
      else
        assert_true(weft_store_i64(f, data, (uint64_t)p, p % 251 - 100));
    }
    char name[32];
    snprintf(name, sizeof name, "types/%s", weft_format_name(f));
    declare(writer, name, f, 2, (const uint64_t[]){3, 5}, "Output");
    assert_int_equal(weft_tensor_writer_write(writer, name, 0, 3, 0, 5, data, 5, NULL), WEFT_OK);
  }
}

static void write_shapes(weft_tensor_writer *writer) {
  static uint16_t half[65536];
  float eight[60];
  int32_t scalar = -7;
  for (int p = 0; p < 65536; p++) half[p] = (uint16_t)p;
  for (int p = 0; p < 60; p++) eight[p] = (float)p;
  declare(writer, "half", WEFT_FP16, 1, (const uint64_t[]){65536}, NULL);
  assert_int_equal(weft_tensor_writer_write(writer, "half", 0, 1, 0, 65536, half, 0, NULL), WEFT_OK);
  declare(writer, "scalar", WEFT_INT32, 0, NULL, NULL);
  assert_int_equal(weft_tensor_writer_write(writer, "scalar", 0, 1, 0, 1, &scalar, 1, NULL), WEFT_OK);
  declare(writer, "empty", WEFT_FP32, 2, (const uint64_t[]){0, 3}, NULL);
  assert_int_equal(weft_tensor_writer_write(writer, "empty", 0, 0, 0, 3, eight, 3, NULL), WEFT_OK);
  declare(writer, "eight", WEFT_FP32, 8, (const uint64_t[]){1, 2, 1, 3, 1, 2, 1, 5}, NULL);
  assert_int_equal(weft_tensor_writer_write(writer, "eight", 0, 12, 0, 5, eight, 5, NULL), WEFT_OK);
  declare(writer, "layers.0.wq", WEFT_FP32, 1, (const uint64_t[]){3}, NULL);
  declare(writer, "größe", WEFT_FP32, 1, (const uint64_t[]){3}, NULL);
}

/* A plane from blocks in any order: whole rows, columns, a strided source; one element is never written. */
static void write_blocks(weft_tensor_writer *writer) {
  declare(writer, "blocks", WEFT_FP32, 2, (const uint64_t[]){6, 7}, NULL);
  float plane[6 * 9];
  for (int row = 0; row < 6; row++)
    for (int col = 0; col < 9; col++) plane[row * 9 + col] = (float)(row * 7 + col + 1);
  const uint64_t blocks[][4] = {{3, 2, 0, 7}, {0, 3, 4, 3}, {0, 3, 0, 4}, {5, 1, 0, 6}};
  for (size_t i = 0; i < 4; i++) {
    const uint64_t *b = blocks[i];
    assert_int_equal(
        weft_tensor_writer_write(writer, "blocks", b[0], b[1], b[2], b[3], plane + b[0] * 9 + b[2], 9, NULL), WEFT_OK);
  }
}

static void write_all(const char *path) {
  weft_tensor_writer *writer = create(path);
  write_types(writer);
  write_shapes(writer);
  write_blocks(writer);
  assert_int_equal(weft_tensor_writer_attribute(writer, "arithmetic", 1, NULL), WEFT_OK);
  assert_int_equal(weft_tensor_writer_commit(writer, NULL), WEFT_OK);
}

static void h5py_reads_what_is_written(void **state) {
  (void)state;
  write_all(FOLDER "written.h5");
  assert_int_equal(run_script("check_tensor_file.py", FOLDER "written.h5"), 0);
}

/* Equal contents are equal files, whatever was in memory before and whatever the time. */
static void equal_contents_are_equal_files(void **state) {
  (void)state;
  write_all(FOLDER "first.h5");
  sleep(2);
#if defined(M_PERTURB)
  mallopt(M_PERTURB, 0xa5);
#endif
  write_all(FOLDER "second.h5");
#if defined(M_PERTURB)
  mallopt(M_PERTURB, 0);
#endif
  char *first, *second;
  size_t first_length, second_length;
  assert_int_equal(weft_read_file(FOLDER "first.h5", &first, &first_length, NULL), WEFT_OK);
  assert_int_equal(weft_read_file(FOLDER "second.h5", &second, &second_length, NULL), WEFT_OK);
  assert_int_equal(first_length, second_length);
  assert_memory_equal(first, second, first_length);
  free(first);
  free(second);
}

static void sets_go_round(void **state) {
  (void)state;
  weft_array_set set = {0}, again = {0};
  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_array_set_read(FOLDER "formats.h5", &set, diag), WEFT_OK);
  assert_int_equal(weft_array_set_write(FOLDER "round.h5", &set, diag), WEFT_OK);
  assert_int_equal(weft_array_set_read(FOLDER "round.h5", &again, diag), WEFT_OK);
  assert_int_equal(again.count, set.count);
  for (uint64_t i = 0; i < set.count; i++) {
    const weft_array *a = &set.items[i], *b = &again.items[i];
    assert_string_equal(a->name, b->name);
    assert_true(a->dtype == b->dtype && a->rank == b->rank);
    assert_memory_equal(a->extents, b->extents, sizeof a->extents);
    assert_memory_equal(a->data, b->data, weft_array_elements(a) * weft_format_bytes(a->dtype));
  }
  assert_int_equal(weft_diag_count(diag), 0);
  weft_diag_free(diag);
  weft_array_set_free(&set);
  weft_array_set_free(&again);
}

/* ---- mistakes -------------------------------------------------------------------------------------------------------
 */

static void check_declaration(weft_tensor_writer *writer, const char *name, uint32_t rank, const uint64_t *extents,
                              const char *word) {
  weft_diag *diag = weft_diag_new();
  assert_int_not_equal(weft_tensor_writer_declare(writer, name, WEFT_FP32, rank, extents, NULL, diag), WEFT_OK);
  ASSERT_MESSAGE(diag, "mistakes.h5", word);
}

static void mistakes_are_named(void **state) {
  (void)state;
  weft_tensor_writer *writer = create(FOLDER "mistakes.h5");
  const uint64_t extents[9] = {2, 3, 1, 1, 1, 1, 1, 1, 1};
  declare(writer, "a", WEFT_FP32, 2, extents, NULL);
  check_declaration(writer, "a", 2, extents, "tensor `a`: the file would hold it twice");
  check_declaration(writer, "a/b", 2, extents, "tensor `a/b`: cannot create the dataset");
  const char *const names[] = {"", "/a", "a/", "b//c", ".", "b/./c"};
  for (size_t i = 0; i < 6; i++) check_declaration(writer, names[i], 2, extents, "no name for a dataset");
  check_declaration(writer, "nine", 9, extents, "9 dimensions");
  check_declaration(writer, "big", 2, (const uint64_t[]){UINT64_C(1) << 40, UINT64_C(1) << 40},
                    "more bytes than a file can hold");
  float data[6] = {0};
  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_tensor_writer_write(writer, "c", 0, 1, 0, 1, data, 1, diag), WEFT_INVALID);
  ASSERT_MESSAGE(diag, "mistakes.h5", "tensor `c`", "no such dataset");
  const uint64_t blocks[][5] = {
      {0, 3, 0, 3, 3}, {2, 1, 0, 1, 1}, {0, 1, 3, 1, 1}, {0, 2, 0, 3, 2}, {UINT64_MAX, 2, 0, 1, 1}};
  for (size_t i = 0; i < 5; i++) {
    const uint64_t *b = blocks[i];
    diag = weft_diag_new();
    assert_int_equal(weft_tensor_writer_write(writer, "a", b[0], b[1], b[2], b[3], data, b[4], diag), WEFT_INVALID);
    ASSERT_MESSAGE(diag, "mistakes.h5", "tensor `a`", "2 x 3");
  }
  weft_tensor_writer_abandon(writer);
  weft_tensor_writer_abandon(NULL);
}

static void check_refused_path(const char *path, const char *word) {
  weft_tensor_writer *writer;
  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_tensor_writer_create(path, &writer, diag), WEFT_INVALID);
  assert_null(writer);
  ASSERT_MESSAGE(diag, path, word);
}

static void paths_are_refused_by_name(void **state) {
  (void)state;
  check_refused_path(FOLDER "absent/x.h5", "No such file or directory");
  check_refused_path(FOLDER, "Is a directory");
  check_refused_path("/dev/null", "a device or a pipe");
}

/* ---- old or whole
 * ---------------------------------------------------------------------------------------------------- */

/* Unfinished files in the folder. */
static int parts(void) {
  DIR *folder = opendir(FOLDER);
  int count = 0;
  for (struct dirent *entry; (entry = readdir(folder));) count += strstr(entry->d_name, ".part") != NULL;
  closedir(folder);
  return count;
}

static void write_old(void) {
  weft_array_set set = {0};
  ((float *)weft_array_set_add(&set, "x", WEFT_FP32, 1, (const uint64_t[]){1})->data)[0] = 42;
  assert_int_equal(weft_array_set_write(FOLDER "kept.h5", &set, NULL), WEFT_OK);
  weft_array_set_free(&set);
}

static void assert_old(void) {
  weft_array_set set = {0};
  assert_int_equal(weft_array_set_read(FOLDER "kept.h5", &set, NULL), WEFT_OK);
  assert_int_equal(set.count, 1);
  assert_true(((float *)weft_array_set_find(&set, "x")->data)[0] == 42);
  weft_array_set_free(&set);
  assert_int_equal(parts(), 0);
}

static void nothing_appears_before_commit(void **state) {
  (void)state;
  write_old();
  weft_tensor_writer *writer = create(FOLDER "kept.h5");
  declare(writer, "y", WEFT_FP32, 1, (const uint64_t[]){1000}, NULL);
  assert_int_equal(parts(), 1);
  weft_tensor_writer_abandon(writer);
  assert_old();
}

/* A disk that is full behind byte `disk_bytes` of an unfinished file, for HDF5 and for us. */
static uint64_t disk_bytes = UINT64_MAX;

static bool is_full(int file, uint64_t end) {
  char link[64], path[4096];
  if (end <= disk_bytes) return false;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  path[length < 0 ? 0 : length] = 0;
  return strstr(path, ".part") != NULL;
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
  if (is_full(file, (uint64_t)offset + count)) {
    errno = ENOSPC;
    return -1;
  }
  return syscall(SYS_pwrite64, file, bytes, count, offset);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
  return pwrite(file, bytes, count, offset);
}

/* Writing `bytes` of data, in a process of its own: HDF5 may also crash at its end. */
static void check_full_disk(uint64_t limit, uint64_t bytes) {
  write_old();
  pid_t child = fork();
  if (child == 0) {
    weft_array_set set = {0};
    weft_diag *diag = weft_diag_new();
    weft_array_set_add(&set, "x", WEFT_INT8, 1, &bytes);
    disk_bytes = limit;
    weft_status status = weft_array_set_write(FOLDER "kept.h5", &set, diag);
    const weft_message *message = weft_diag_message(diag, 0);
    bool named = weft_diag_errors(diag) == 1 && strstr(message->place.file, "kept.h5") &&
                 strstr(message->text, "No space left on device");
    exit(status == WEFT_UNAVAILABLE && named ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    fail_msg("limit %lu: wait status %d", (unsigned long)limit, status);
  assert_old();
}

static void a_full_disk_keeps_the_old_file(void **state) {
  (void)state;
  const uint64_t limits[] = {0, 50, 100, 500, 800, 1000, 1300, 2000, 2047, 2048, 2100, 100000};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) check_full_disk(limits[i], 1000000);
  check_full_disk(2050, 10);
}

static void links_and_permissions_are_kept(void **state) {
  (void)state;
  write_old();
  struct stat status;
  unlink(FOLDER "link.h5");
  assert_int_equal(symlink("kept.h5", FOLDER "link.h5"), 0);
  assert_int_equal(chmod(FOLDER "kept.h5", 0640), 0);
  weft_tensor_writer *writer = create(FOLDER "link.h5");
  declare(writer, "y", WEFT_FP32, 0, NULL, NULL);
  assert_int_equal(weft_tensor_writer_commit(writer, NULL), WEFT_OK);
  assert_int_equal(lstat(FOLDER "link.h5", &status), 0);
  assert_true(S_ISLNK(status.st_mode));
  assert_int_equal(stat(FOLDER "kept.h5", &status), 0);
  assert_int_equal(status.st_mode & 0777, 0640);
  weft_tensor_file *file;
  assert_int_equal(weft_tensor_file_open(FOLDER "kept.h5", &file, NULL), WEFT_OK);
  assert_non_null(weft_tensor_file_find(file, "y"));
  weft_tensor_file_close(file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(h5py_reads_what_is_written),
      cmocka_unit_test(equal_contents_are_equal_files),
      cmocka_unit_test(sets_go_round),
      cmocka_unit_test(mistakes_are_named),
      cmocka_unit_test(paths_are_refused_by_name),
      cmocka_unit_test(nothing_appears_before_commit),
      cmocka_unit_test(a_full_disk_keeps_the_old_file),
      cmocka_unit_test(links_and_permissions_are_kept),
  };
  return cmocka_run_group_tests(tests, make_files, NULL);
}
