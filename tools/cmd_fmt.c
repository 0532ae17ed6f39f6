/* weft fmt: a program in canonical form. */
#include "dataflow_tool.h"
#include "options.h"
#include "weft/ir.h"

static weft_status format(const char *path, const char *output, bool portable, weft_diag *diag) {
  weft_program *program = NULL;
  weft_status status = weft_program_read_file(path, &program, diag);
  if (status == WEFT_OK && portable) status = weft_program_portable(program, diag);
  if (status == WEFT_OK) {
    weft_text text = {0};
    weft_program_write(program, &text);
    status = text.failed ? weft_error_memory(diag) : weft_write_file(output, text.data, text.length, false, diag);
    weft_text_free(&text);
  }
  weft_program_free(program);
  return status;
}

static weft_status format_mlir(const char *path, const char *output, bool generic, weft_diag *diag) {
  weft_tool_module module = {0};
  weft_status status = weft_tool_module_read(&module, path, diag);
  if (status == WEFT_OK) status = weft_tool_module_write(&module, output, generic, diag);
  weft_tool_module_free(&module);
  return status;
}

int weft_cmd_fmt(int argc, char **argv) {
  const char *output = "-";
  bool portable = false, generic = false;
  const weft_option options[] = {
      {.name = "output",
       .letter = 'o',
       .kind = WEFT_OPTION_TEXT,
       .target = &output,
       .argument = "FILE",
       .help = "where it goes (default: standard output)"},
      {.name = "portable",
       .kind = WEFT_OPTION_FLAG,
       .target = &portable,
       .help = "refuse, by name, fields and variants that only weft knows"},
      {.name = "generic", .kind = WEFT_OPTION_FLAG, .target = &generic, .help = "MLIR text: print the generic form"},
      {0}};
  const weft_usage usage = {
      .synopsis = "fmt FILE [--portable] [-o FILE]",
      .about = "Reads a spatial program and prints it in canonical form, the neutral dump: two spaces a level,\n"
               "one field or element a line, no newline at the end. It need not be valid, only readable.\n"
               "MLIR text is verified and printed in the custom forms of its dialects, or in the generic form.",
      .example = "weft new gemm --m 64 --k 96 --n 64 -o gemm.json\nweft fmt gemm.json",
      .options = options,
      .least = 1,
      .most = 1};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  weft_diag *diag = weft_diag_new();
  weft_status status = !diag                                   ? WEFT_UNAVAILABLE
                       : weft_tool_is_mlir(arguments.items[0]) ? format_mlir(arguments.items[0], output, generic, diag)
                                                               : format(arguments.items[0], output, portable, diag);
  return weft_tool_finish(status, diag, &arguments);
}
