/* The pass table and the one loop that runs it. */
#include "internal.h"

#include <string.h>

#define ROW(identifier, name, needs, leaves, help)                                                                     \
  {name, WEFT_PHASE_##needs, WEFT_PHASE_##leaves, weft_pass_##identifier, help},
const plan_pass plan_passes[] = {WEFT_PASSES(ROW)};
#undef ROW
const uint64_t plan_pass_count = sizeof plan_passes / sizeof *plan_passes;

static const plan_pass *find_pass(const char *name) {
  for (uint64_t i = 0; i < plan_pass_count; i++)
    if (strcmp(plan_passes[i].name, name) == 0) return &plan_passes[i];
  return NULL;
}

static weft_status check_name(const char *option, const char *name, weft_diag *diag) {
  if (!name || find_pass(name)) return WEFT_OK;
  weft_text hint = {0};
  weft_text_puts(&hint, "passes:");
  for (uint64_t i = 0; i < plan_pass_count; i++) weft_text_printf(&hint, " %s", plan_passes[i].name);
  weft_status status = weft_error(diag, WEFT_USAGE, hint.data, "%s: there is no pass `%s`", option, name);
  weft_text_free(&hint);
  return status;
}

/** A violation after a pass is that pass's fault: the program is put back and the pass named. */
static weft_status validate_after(weft_program *program, const weft_program *before, const plan_pass *pass,
                                  weft_diag *diag) {
  weft_status status = weft_program_validate(program, 1, NULL, diag);
  if (status != WEFT_INVALID) return status;
  *program = *before;
  return weft_error(diag, WEFT_INVALID, "this is a fault of weft: please report it with the input",
                    "pass `%s` left a program that does not validate", pass->name);
}

static weft_status run_pass(weft_program *program, const plan_pass *pass, const weft_target *target,
                            const weft_options *options, weft_diag *diag) {
  weft_program before = *program;
  weft_status status = pass->run(program, target, options, diag);
  if (status)
    *program = before;
  else if (options->validate_between)
    status = validate_after(program, &before, pass, diag);
  if (!status && options->dump && options->dump_after && strcmp(options->dump_after, pass->name) == 0)
    weft_program_write(program, options->dump);
  return status;
}

weft_status weft_plan(weft_program *program, const weft_target *target, const weft_options *options, weft_diag *diag) {
  static const weft_options defaults = {0};
  if (!options) options = &defaults;
  weft_status status = check_name("--stop-after", options->stop_after, diag);
  if (!status) status = check_name("--dump-after", options->dump_after, diag);
  if (!status) status = weft_program_validate(program, 0, NULL, diag);
  for (uint64_t i = 0; !status && i < plan_pass_count; i++) {
    const plan_pass *pass = &plan_passes[i];
    weft_phase phase = weft_program_phase(program);
    if (phase == pass->needs) status = run_pass(program, pass, target, options, diag);
    if (options->stop_after && strcmp(options->stop_after, pass->name) == 0) break;
  }
  return status;
}
