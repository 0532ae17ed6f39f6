/* weft check: reads a program and validates it. */
#include "options.h"
#include "weft/ir.h"
#include "weft/plan.h"

#include <stdio.h>

static weft_status check(const char *path, bool first, bool json, weft_diag *diag) {
  weft_program *program = NULL;
  weft_status status = weft_program_read_file(path, &program, diag);
  if (status != WEFT_OK) return status;
  weft_text text = {0};
  status = weft_program_validate(program, first ? 1 : 0, json ? &text : NULL, diag);
  if (status == WEFT_OK && !json) status = weft_check_ranges(program, diag);
  if (status == WEFT_OK && !json) status = weft_program_check_datasets(program, diag);
  if (json && text.length) fwrite(text.data, 1, text.length, stdout);
  if (status == WEFT_OK && !json)
    printf("%s: valid, phase %s, %llu stages\n", path, weft_phase_name(weft_program_phase(program)),
           (unsigned long long)program->stage_count);
  if (json) weft_diag_clear(diag);
  weft_text_free(&text);
  weft_program_free(program);
  return status;
}

int weft_cmd_check(int argc, char **argv) {
  bool json = false, first = false;
  const weft_option options[] = {
      {.name = "json",
       .kind = WEFT_OPTION_FLAG,
       .target = &json,
       .help = "print each violation as a JSON object, one a line"},
      {.name = "first", .kind = WEFT_OPTION_FLAG, .target = &first, .help = "stop at the first violation"},
      {0}};
  const weft_usage usage = {
      .synopsis = "check FILE [--first] [--json]",
      .about = "Reads a spatial program and validates it in its phase. Prints every violation it can find,\n"
               "each with its place and its remedy; then (not with --json) that no requantisation can leave 64 bits "
               "and that results\n"
               "have names of their own.\n"
               "FILE may be - for standard input.",
      .example = "weft new mlp --layers 784,256,10 --batch 32 -o digits.json\nweft check digits.json",
      .options = options,
      .least = 1,
      .most = 1};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  weft_diag *diag = weft_diag_new();
  weft_status status = diag ? check(arguments.items[0], first, json, diag) : WEFT_UNAVAILABLE;
  return weft_tool_finish(status, diag, &arguments);
}
