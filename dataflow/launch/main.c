/* The main program of a compiled module. */
#include "launch_private.h"

#include <string.h>

/* Messages as text, one a line, errors and their remedies. */
static void put_messages(const weft_diag *diag, weft_text *said) {
  for (uint64_t i = 0; i < weft_diag_count(diag); i++) {
    const weft_message *m = weft_diag_message(diag, i);
    weft_text_puts(said, "weft: ");
    if (m->place.file) weft_text_printf(said, "%s:", m->place.file);
    if (m->place.file && m->place.line) weft_text_printf(said, "%llu:", (unsigned long long)m->place.line);
    if (m->place.file && m->place.line && m->place.column)
      weft_text_printf(said, "%llu:", (unsigned long long)m->place.column);
    weft_text_printf(said, "%s%s\n", m->place.file ? " " : "", m->text);
    if (m->hint) weft_text_printf(said, "hint: %s\n", m->hint);
  }
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
                       "entries:\n");
  for (uint32_t i = 0; i < program->count; i++)
    weft_text_printf(said, "  %s (%s)\n", program->entries[i].name, program->entries[i].form);
}

int launch_main(const weft_df_program *program, weft_df_chips *chips, int argc, char **argv, char **said) {
  weft_text text = {0};
  weft_diag *diag = weft_diag_new();
  weft_status status = diag ? WEFT_OK : WEFT_UNAVAILABLE;
  bool help = argc < 2 || strcmp(argv[1], "--help") == 0;
  if (help) put_usage(program, &text);
  if (argc < 2) status = WEFT_USAGE;
  for (int i = 1; !help && status == WEFT_OK && i < argc; i++) status = run_case(program, chips, argv[i], &text, diag);
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
