/* weft plan: the passes from a Template to a certified schedule. */
#include "options.h"
#include "progress.h"
#include "weft/plan.h"

#include <stdio.h>

typedef struct request {
  const char *target, *stop_after, *dump_after, *output;
  bool explain, check;
} request;

static weft_status write_result(const request *r, const weft_program *program, const weft_text *dump, weft_diag *diag) {
  weft_text text = {0};
  if (r->dump_after)
    weft_text_append(&text, dump->data ? dump->data : "", dump->length);
  else
    weft_program_write(program, &text);
  weft_text_puts(&text, "\n");
  weft_status status = text.failed || dump->failed ? weft_error_memory(diag)
                                                   : weft_write_file(r->output, text.data, text.length, false, diag);
  weft_text_free(&text);
  return status;
}

static weft_status plan(const char *path, const request *r, weft_diag *diag) {
  weft_program *program = NULL;
  weft_target target;
  weft_text dump = {0}, report = {0};
  weft_options options = {.stop_after = r->stop_after,
                          .dump_after = r->dump_after,
                          .dump = &dump,
                          .validate_between = r->check,
                          .report = &report};
  weft_status status = weft_target_load(r->target, &target, diag);
  if (!status) status = weft_program_read_file(path, &program, diag);
  weft_tool_step("planning and proving");
  if (!status) status = weft_plan(program, &target, &options, diag);
  weft_tool_step_end();
  if (!status && r->explain) weft_tool_print(stderr, &report);
  if (!status && r->dump_after && !dump.length)
    status = weft_error(diag, WEFT_USAGE, NULL, "pass `%s` did not run: the program is past it", r->dump_after);
  if (!status) status = write_result(r, program, &dump, diag);
  weft_text_free(&dump);
  weft_text_free(&report);
  weft_program_free(program);
  return status;
}

/** The passes, one a line, for the help. */
static void list_passes(weft_text *about) {
#define ROW(identifier, name, needs, leaves, help) weft_text_printf(about, "\n  %-22s %s", name, help);
  WEFT_PASSES(ROW)
#undef ROW
}

int weft_cmd_plan(int argc, char **argv) {
  request r = {.target = "cpu", .output = "-"};
  const weft_option options[] = {
      {.name = "target",
       .kind = WEFT_OPTION_TEXT,
       .target = &r.target,
       .argument = "NAME",
       .help = "a target shipped with weft, or the path of a .json file (cpu)"},
      {.name = "stop-after",
       .kind = WEFT_OPTION_TEXT,
       .target = &r.stop_after,
       .argument = "PASS",
       .help = "the last pass to run"},
      {.name = "dump-after",
       .kind = WEFT_OPTION_TEXT,
       .target = &r.dump_after,
       .argument = "PASS",
       .help = "write the program as it is after this pass"},
      {.name = "output",
       .letter = 'o',
       .kind = WEFT_OPTION_TEXT,
       .target = &r.output,
       .argument = "FILE",
       .help = "where to write the program (standard output)"},
      {.name = "explain",
       .kind = WEFT_OPTION_FLAG,
       .target = &r.explain,
       .help = "say which block plans won, and over what"},
      {.name = "check", .kind = WEFT_OPTION_FLAG, .target = &r.check, .help = "validate after every pass"},
      {0}};
  weft_text about = {0};
  weft_text_puts(&about, "Runs the passes a program still needs, from its phase on:");
  list_passes(&about);
  const weft_usage usage = {.synopsis = "plan FILE",
                            .about = about.data ? about.data : "Runs the passes.",
                            .example = "weft new mlp --layers 784,256,10 --batch 32 -o digits.json\n"
                                       "weft plan digits.json --target cpu -o planned.json",
                            .options = options,
                            .least = 1,
                            .most = 1};
  weft_arguments arguments;
  int exit_code;
  if (weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) {
    weft_diag *diag = weft_diag_new();
    weft_status status = diag ? plan(arguments.items[0], &r, diag) : WEFT_UNAVAILABLE;
    exit_code = weft_tool_finish(status, diag, &arguments);
  }
  weft_text_free(&about);
  return exit_code;
}
