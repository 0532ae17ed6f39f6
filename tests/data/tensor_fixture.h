/* The folder of HDF5 files that make_tensor_files.py writes, for the tests that need it. */
#ifndef WEFT_TESTS_TENSOR_FIXTURE_H
#define WEFT_TESTS_TENSOR_FIXTURE_H

#include "weft/tensor_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define FOLDER WEFT_BINARY_DIR "/tests/data/" TEST_FOLDER "/"

/* Runs a script of this folder with arguments; its exit status. */
static inline int run_script(const char *script, const char *arguments) {
  char command[4096];
  snprintf(command, sizeof command, "%s %s/tests/data/%s %s", WEFT_TEST_PYTHON, WEFT_SOURCE_DIR, script, arguments);
  int status = system(command);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Makes the files afresh. Without h5py the whole program is skipped, which CTest shows as such. */
static inline int make_files(void **state) {
  (void)state;
  int exit_code = system("rm -rf " FOLDER);
  exit_code = exit_code ? exit_code : run_script("make_tensor_files.py", FOLDER);
  if (exit_code == 77) exit(77);
  return exit_code;
}

/* The only message of `diag` must hold every word of the NULL-terminated list; frees it. */
static inline void assert_message(weft_diag *diag, const char *const *words) {
  assert_int_equal(weft_diag_count(diag), 1);
  const weft_message *message = weft_diag_message(diag, 0);
  char text[4096];
  snprintf(text, sizeof text, "%s: %s [%s]", message->place.file ? message->place.file : "", message->text,
           message->hint ? message->hint : "");
  for (; *words; words++)
    if (!strstr(text, *words)) fail_msg("`%s` is not in: %s", *words, text);
  weft_diag_free(diag);
}
#define ASSERT_MESSAGE(diag, ...) assert_message(diag, (const char *const[]){__VA_ARGS__, NULL})

#endif
