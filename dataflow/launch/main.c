/* The main program of a compiled module. */
#include "launch_private.h"

#include <string.h>

static void put_messages(const weft_diag *diag, weft_text *said) {
  for (uint64_t i = 0; i < weft_diag_count(diag); i++) weft_message_put(weft_diag_message(diag, i), said);
}

static weft_status run_case(const weft_df_program *program, weft_df_chips *chips, const char *path, weft_text *said,
                            weft_diag *diag) {
  weft_mlir_context *context = weft_mlir_context_new();
  if (!context) return weft_error_memory(diag);
  weft_case_options options = {.mode = WEFT_CASE_COMPILED, .program = program, .chips = chips};
  weft_case_result result = {0};
  weft_status status = weft_mlir_register_standard(context, diag);
  if (status == WEFT_OK) status = weft_dataflow_register(context, diag);
  if (status == WEFT_OK) status = weft_case_run(context, NULL, path, path, &options, &result, diag);
  if (status == WEFT_OK && result.failures) status = WEFT_INVALID;
  if (status == WEFT_OK)
    weft_text_printf(said, "%s: %llu launch%s as expected\n", path, (unsigned long long)result.launches,
                     result.launches == 1 ? "" : "es");
  weft_mlir_context_free(context);
  return status;
}

static void put_usage(const weft_df_program *program, weft_text *said) {
  weft_text_puts(said, "usage: run CASE.json...\nRuns the launches of case files and compares what comes out.\n\n"
                       "  --version   weft's version and its arithmetic\n  --help      this text\n\nentries:\n");
  for (uint32_t i = 0; i < program->count; i++) {
    weft_text_puts(said, "  ");
    weft_text_safe(said, program->entries[i].name);
    weft_text_printf(said, " (%s)\n", program->entries[i].form);
  }
}

/* Help or versions; false when an argument asks for nothing that is known. */
static bool answer(const weft_df_program *program, const char *option, weft_text *said) {
  if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0)
    put_usage(program, said);
  else if (strcmp(option, "--version") == 0)
    weft_text_printf(said, "weft %s\narithmetic %d\n", WEFT_VERSION, WEFT_ARITHMETIC_VERSION);
  else
    return false;
  return true;
}

int launch_main(const weft_df_program *program, weft_df_chips *chips, int argc, char **argv, char **said) {
  weft_text text = {0};
  weft_diag *diag = weft_diag_new();
  weft_status status = diag ? WEFT_OK : WEFT_UNAVAILABLE;
  if (status == WEFT_OK && argc < 2)
    status = weft_error(diag, WEFT_USAGE, "give a case file; --help says more", "an argument is missing");
  bool options = argc > 1 && argv[1][0] == '-' && argv[1][1];
  if (options && !answer(program, argv[1], &text))
    status = weft_error(diag, WEFT_USAGE, "--help lists the options", "there is no option %s", argv[1]);
  for (int i = 1; !options && status == WEFT_OK && i < argc; i++)
    status = run_case(program, chips, argv[i], &text, diag);
  if (diag) put_messages(diag, &text);
  weft_diag_free(diag);
  *said = text.data;
  return weft_status_exit_code(status);
}

int weft_df_main_local(const weft_df_program *program, int argc, char **argv, weft_df_say say) {
  char *said = NULL;
  int code = launch_main(program, NULL, argc, argv, &said);
  if (said) say(said, code != 0);
  free(said);
  return code;
}
