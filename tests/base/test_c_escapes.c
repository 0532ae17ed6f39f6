/* The C compiler as the judge of weft_text_c_string: a source file is written whose strings and comments hold random
 * names, compiled with all warnings as errors and trigraphs on, and run; it returns how many strings differ from the
 * names' bytes. */
#include "weft/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMES = 300, LONGEST = 24 };

/* Mostly bytes that mean something to a C compiler. */
static void random_name(uint64_t *random, char name[LONGEST + 1]) {
  static const char special[] = "\\\"?*/'%=(\n\r\t012ux ";
  size_t length = weft_random_next(random) % (LONGEST + 1);
  for (size_t i = 0; i < length; i++) {
    uint64_t draw = weft_random_next(random);
    name[i] = draw % 4 ? special[draw / 4 % (sizeof special - 1)] : (char)(1 + draw / 4 % 255);
  }
  name[length] = 0;
}

static void append_check(weft_text *source, const char *name) {
  weft_text_puts(source, "  /* ");
  weft_text_c_string(source, name);
  weft_text_puts(source, " */ // ");
  weft_text_c_string(source, name);
  weft_text_puts(source, "\n  { static const unsigned char bytes[] = {");
  for (const char *at = name; *at; at++) weft_text_printf(source, "%u,", (unsigned char)*at);
  weft_text_puts(source, "0}; differ += memcmp(bytes, \"");
  weft_text_c_string(source, name);
  weft_text_printf(source, "\", sizeof bytes) != 0 || sizeof bytes != %zu; }\n", strlen(name) + 1);
}

static void compiled_strings_hold_the_names(void **state) {
  (void)state;
  char folder[] = WEFT_BINARY_DIR "/c-escapes-XXXXXX";
  assert_non_null(mkdtemp(folder));
  weft_text source = {0};
  uint64_t random = 20240607;
  weft_text_puts(&source, "#include <string.h>\nint main(void) {\n  int differ = 0;\n");
  for (int i = 0; i < NAMES; i++) {
    char name[LONGEST + 1];
    random_name(&random, name);
    append_check(&source, name);
  }
  weft_text_puts(&source, "  return differ != 0;\n}\n");
  weft_text path = {0}, command = {0};
  weft_text_printf(&path, "%s/names.c", folder);
  assert_int_equal(weft_write_file(path.data, source.data, source.length, false, NULL), WEFT_OK);
  weft_text_printf(&command, WEFT_TEST_COMPILER " -std=c17 -Wall -Wextra -Werror -trigraphs -o %s/names %s && %s/names",
                   folder, path.data, folder);
  assert_int_equal(system(command.data), 0);
  command.length = 0;
  weft_text_printf(&command, "%s/names", folder);
  unlink(command.data);
  unlink(path.data);
  rmdir(folder);
  weft_text_free(&command);
  weft_text_free(&path);
  weft_text_free(&source);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(compiled_strings_hold_the_names)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
