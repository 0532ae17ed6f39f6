#include "weft/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[4096];

static int make_folder(void **state) {
  (void)state;
  strcpy(folder, WEFT_BINARY_DIR "/test-file-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  DIR *entries = opendir(folder);
  for (struct dirent *entry; entries && (entry = readdir(entries));)
    if (entry->d_name[0] != '.' || strlen(entry->d_name) > 2) unlinkat(dirfd(entries), entry->d_name, 0);
  if (entries) closedir(entries);
  return rmdir(folder);
}

static const char *in_folder(const char *name) {
  static char paths[4][4200];
  static int turn;
  char *path = paths[turn++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static int files_in_folder(void) {
  int count = 0;
  DIR *entries = opendir(folder);
  for (struct dirent *entry; (entry = readdir(entries));)
    count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
  closedir(entries);
  return count;
}

static void assert_contents(const char *path, const char *expected, size_t expected_length) {
  char *bytes;
  size_t length;
  assert_int_equal(weft_read_file(path, &bytes, &length, NULL), WEFT_OK);
  assert_int_equal(length, expected_length);
  assert_memory_equal(bytes, expected, expected_length);
  assert_int_equal(bytes[length], 0);
  free(bytes);
}

static void what_is_written_is_read(void **state) {
  (void)state;
  const char *path = in_folder("round");
  static char large[3000001];
  for (size_t i = 0; i < sizeof large; i++) large[i] = (char)(i * 7);
  const size_t sizes[] = {0, 1, 4096, 65535, 65536, sizeof large};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_int_equal(weft_write_file(path, large, sizes[i], false, NULL), WEFT_OK);
    assert_contents(path, large, sizes[i]);
  }
  assert_int_equal(files_in_folder(), 1);
}

static struct stat status_of(const char *path) {
  struct stat status;
  assert_int_equal(stat(path, &status), 0);
  return status;
}

static void an_equal_file_is_left_alone(void **state) {
  (void)state;
  const char *path = in_folder("kept");
  assert_int_equal(weft_write_file(path, "same", 4, true, NULL), WEFT_OK);
  struct stat before = status_of(path);
  assert_int_equal(weft_write_file(path, "same", 4, true, NULL), WEFT_OK);
  assert_int_equal(status_of(path).st_ino, before.st_ino);
  assert_int_equal(weft_write_file(path, "same", 4, false, NULL), WEFT_OK);
  assert_int_not_equal(status_of(path).st_ino, before.st_ino);
  before = status_of(path);
  assert_int_equal(weft_write_file(path, "sane", 4, true, NULL), WEFT_OK);
  assert_int_not_equal(status_of(path).st_ino, before.st_ino);
  assert_contents(path, "sane", 4);
  assert_int_equal(weft_write_file(path, "sane, but longer", 16, true, NULL), WEFT_OK);
  assert_contents(path, "sane, but longer", 16);
  assert_int_equal(weft_write_file(path, "", 0, true, NULL), WEFT_OK);
  assert_contents(path, "", 0);
}

/* A child that may write 64 KiB only fails to write 1 MiB: the old file stays whole and nothing is left beside it. */
static void a_failed_write_leaves_the_old_file(void **state) {
  (void)state;
  const char *path = in_folder("whole");
  assert_int_equal(weft_write_file(path, "old", 3, false, NULL), WEFT_OK);
  pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {65536, 65536};
    setrlimit(RLIMIT_FSIZE, &limit);
    static char large[1 << 20];
    weft_diag *diag = weft_diag_new();
    weft_status status = weft_write_file(path, large, sizeof large, false, diag);
    bool said = weft_diag_count(diag) == 1 && strstr(weft_diag_message(diag, 0)->place.file, path) != NULL;
    weft_diag_free(diag);
    _exit(status == WEFT_UNAVAILABLE && said ? 0 : 1);
  }
  int ended;
  assert_int_equal(waitpid(child, &ended, 0), child);
  assert_int_equal(ended, 0);
  assert_contents(path, "old", 3);
  assert_int_equal(files_in_folder(), 1);
}

static void modes_and_links_stay(void **state) {
  (void)state;
  const char *path = in_folder("script"), *link = in_folder("link");
  assert_int_equal(weft_write_file(path, "1", 1, false, NULL), WEFT_OK);
  assert_int_equal(chmod(path, 0750), 0);
  assert_int_equal(symlink("script", link), 0);
  assert_int_equal(weft_write_file(link, "22", 2, false, NULL), WEFT_OK);
  assert_int_equal(status_of(path).st_mode & 07777, 0750);
  assert_contents(path, "22", 2);
  struct stat status;
  assert_int_equal(lstat(link, &status), 0);
  assert_true(S_ISLNK(status.st_mode));
}

static void devices_are_written_through(void **state) {
  (void)state;
  assert_int_equal(weft_write_file("/dev/null", "gone", 4, false, NULL), WEFT_OK);
  assert_true(S_ISCHR(status_of("/dev/null").st_mode));
}

static void standard_input_and_output(void **state) {
  (void)state;
  int pipes[2];
  assert_int_equal(pipe(pipes), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(pipes[0], STDIN_FILENO);
    dup2(pipes[1], STDOUT_FILENO);
    close(pipes[0]);
    close(pipes[1]);
    bool good = weft_write_file("-", "through a pipe", 14, true, NULL) == WEFT_OK;
    close(STDOUT_FILENO);
    char *bytes;
    size_t length;
    good = good && weft_read_file("-", &bytes, &length, NULL) == WEFT_OK && length == 14 &&
           strcmp(bytes, "through a pipe") == 0;
    if (good) free(bytes);
    _exit(good ? 0 : 1);
  }
  close(pipes[0]);
  close(pipes[1]);
  int ended;
  assert_int_equal(waitpid(child, &ended, 0), child);
  assert_int_equal(ended, 0);
}

static void faults_name_the_file(void **state) {
  (void)state;
  const char *missing = in_folder("none/here");
  weft_diag *diag = weft_diag_new();
  char *bytes;
  size_t length;
  assert_int_equal(weft_read_file(missing, &bytes, &length, diag), WEFT_INVALID);
  assert_null(bytes);
  assert_int_equal(length, 0);
  assert_int_equal(weft_write_file(missing, "x", 1, false, diag), WEFT_INVALID);
  assert_int_equal(weft_read_file(folder, &bytes, &length, diag), WEFT_INVALID);
  assert_int_equal(weft_write_file(folder, "x", 1, false, diag), WEFT_INVALID);
  assert_int_equal(weft_write_file("", "x", 1, false, diag), WEFT_INVALID);
  assert_int_equal(weft_diag_count(diag), 5);
  assert_non_null(strstr(weft_diag_message(diag, 0)->place.file, missing));
  assert_non_null(strstr(weft_diag_message(diag, 1)->place.file, missing));
  assert_non_null(weft_diag_message(diag, 1)->hint);
  assert_string_equal(weft_diag_message(diag, 2)->hint, weft_path_hint(EISDIR, false));
  assert_string_equal(weft_diag_message(diag, 3)->hint, weft_path_hint(EISDIR, true));
  assert_non_null(strstr(weft_diag_message(diag, 2)->text, strerror(EISDIR)));
  assert_non_null(strstr(weft_diag_message(diag, 3)->text, strerror(EISDIR)));
  weft_diag_free(diag);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(what_is_written_is_read),
      IN_FOLDER(an_equal_file_is_left_alone),
      IN_FOLDER(a_failed_write_leaves_the_old_file),
      IN_FOLDER(modes_and_links_stay),
      cmocka_unit_test(devices_are_written_through),
      cmocka_unit_test(standard_input_and_output),
      IN_FOLDER(faults_name_the_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
