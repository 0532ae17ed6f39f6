/* libFuzzer target for the reader of MLIR text: any bytes end in a message, not in a crash; what is accepted is
 * printed, and what was printed is read again as the same module. */
#include "weft/dataflow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends with what was expected, the printed text and the first message. */
static void fail(const char *what, const char *text, const weft_diag *diag) {
  fprintf(stderr, "failed: %s\n%s\n%s\n", what, text, weft_diag_count(diag) ? weft_diag_message(diag, 0)->text : "");
  abort();
}
#define must(good)                                                                                                     \
  do                                                                                                                   \
    if (!(good)) fail(#good, text.data ? text.data : "", diag);                                                        \
  while (0)

static void check_print(weft_mlir_context *context, weft_mlir_file *file, bool generic, weft_diag *diag) {
  weft_text text = {0};
  weft_mlir_file *again = NULL;
  weft_mlir_print_file(file, (weft_mlir_print_options){.generic = generic}, &text);
  must(!text.failed);
  must(weft_mlir_parse(context, "printed", text.data, text.length, false, &again, diag) == WEFT_OK);
  must(again->module_count == file->module_count);
  for (uint64_t i = 0; i < file->module_count; i++)
    must(weft_mlir_equal(file->modules[i], again->modules[i], again->arena, NULL));
  weft_mlir_file_free(again);
  weft_text_free(&text);
}

/* Whatever the lowering takes or refuses, what it made verifies. */
static void check_lowering(weft_mlir_context *context, weft_mlir_file *file, weft_diag *diag) {
  const weft_text text = {0};
  for (uint64_t i = 0; i < file->module_count; i++) {
    weft_mlir_op *module = file->modules[i];
    if (weft_mlir_verify(module, "fuzz", diag) != WEFT_OK) continue;
    if (weft_lower(context, file->arena, module, "fuzz", diag) == WEFT_OK)
      must(weft_mlir_verify(module, "fuzz", diag) == WEFT_OK);
    if (weft_publish(context, file->arena, module, "fuzz", diag) == WEFT_OK)
      must(weft_mlir_verify(module, "fuzz", diag) == WEFT_OK);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const weft_text text = {0};
  weft_diag *diag = weft_diag_new();
  weft_mlir_context *context = weft_mlir_context_new();
  weft_mlir_file *file = NULL;
  must(diag && context && weft_mlir_register_standard(context, diag) == WEFT_OK &&
       weft_dataflow_register(context, diag) == WEFT_OK);
  char *copy = malloc(size + 1);
  must(copy);
  if (size) memcpy(copy, data, size);
  copy[size] = 0;
  weft_status status = weft_mlir_parse(context, "fuzz", copy, size, false, &file, diag);
  must((status == WEFT_OK) == (file != NULL));
  must(status == WEFT_OK || weft_diag_errors(diag) > 0);
  if (file) {
    check_print(context, file, true, diag);
    check_print(context, file, false, diag);
    check_lowering(context, file, diag);
  }
  weft_mlir_file_free(file);
  free(copy);
  weft_mlir_context_free(context);
  weft_diag_free(diag);
  return 0;
}
