/* libFuzzer target for the reader of neutral dumps: any bytes end in a message, not in a crash; what is read is written
 * so that it is read again as itself, and is validated, shown and drawn without a fault, valid or not. */
#include "weft/ir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** Ends with what was expected, the text at hand and the first message. */
static void fail(const char *what, const weft_text *text, const weft_diag *diag) {
  fprintf(stderr, "failed: %s\n%.*s\n%s\n", what, (int)text->length, text->data ? text->data : "",
          weft_diag_count(diag) ? weft_diag_message(diag, 0)->text : "");
  abort();
}
#define must(good)                                                                                                     \
  do                                                                                                                   \
    if (!(good)) fail(#good, &text, diag);                                                                             \
  while (0)

static void check_written(const weft_program *program, weft_diag *diag) {
  weft_text text = {0}, again_text = {0};
  weft_program *again = NULL;
  weft_program_write(program, &text);
  must(!text.failed);
  must(weft_program_read("written", text.data, text.length, &again, diag) == WEFT_OK);
  weft_program_write(again, &again_text);
  must(again_text.length == text.length && memcmp(again_text.data, text.data, text.length) == 0);
  weft_program_free(again);
  weft_text_free(&again_text);
  weft_text_free(&text);
}

static void check_looks(const weft_program *program, weft_diag *diag) {
  weft_text text = {0};
  weft_status status = weft_program_validate(program, 0, &text, diag);
  must(status == WEFT_OK || text.length > 0);
  if (status == WEFT_OK) {
    weft_text_free(&text);
    weft_program_show(program, &text);
    weft_program_dot(program, &text);
    (void)weft_program_portable(program, diag);
  }
  weft_text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const weft_text text = {0};
  weft_diag *diag = weft_diag_new();
  weft_program *program = NULL;
  must(diag);
  char *copy = malloc(size + 1); /* of its own size, so that a byte read past the end is seen */
  must(copy);
  if (size) memcpy(copy, data, size);
  weft_status status = weft_program_read("fuzz", copy, size, &program, diag);
  free(copy);
  must((status == WEFT_OK) == (program != NULL));
  must(status == WEFT_OK || weft_diag_errors(diag) == 1);
  if (program) {
    check_written(program, diag);
    check_looks(program, diag);
  }
  weft_program_free(program);
  weft_diag_free(diag);
  return 0;
}
