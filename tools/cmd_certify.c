/* weft certify: proves a schedule. */
#include "options.h"
#include "progress.h"
#include "weft/plan.h"

#include <stdio.h>

static void print_certificate(const char *path, const weft_certificate *c, bool json) {
  if (json) {
    printf("{\"programs\": %llu, \"ops\": %llu, \"steps\": %llu, \"sections\": %llu, \"buffers\": %llu, "
           "\"semaphores\": %llu, \"tiles_written\": %llu, \"partial_proved\": %s}\n",
           (unsigned long long)c->programs, (unsigned long long)c->ops, (unsigned long long)c->steps,
           (unsigned long long)c->sections, (unsigned long long)c->buffers, (unsigned long long)c->semaphores,
           (unsigned long long)c->tiles_written, c->partial_proved ? "true" : "false");
    return;
  }
  printf("%s: certified\n", path);
  printf("  %llu engine programs of %llu ops, %llu steps in %llu sections: every interleaving ends\n",
         (unsigned long long)c->programs, (unsigned long long)c->ops, (unsigned long long)c->steps,
         (unsigned long long)c->sections);
  printf("  %llu buffers never over- or underflow, %llu semaphores are waited for after their reset\n",
         (unsigned long long)c->buffers, (unsigned long long)c->semaphores);
  printf("  %llu tiles are written once each, none is read before\n", (unsigned long long)c->tiles_written);
  printf(c->partial_proved ? "  every partial sum is reduced\n" : "  not proved: no partial information\n");
}

static weft_status certify(const char *path, const char *target_name, bool json, weft_diag *diag) {
  weft_program *program = NULL;
  weft_certificate certificate;
  weft_status status = weft_program_read_file(path, &program, diag);
  if (status) return status;
  weft_tool_step("planning");
  if (weft_program_phase(program) < WEFT_PHASE_SCHEDULED) {
    weft_target target;
    weft_options options = {.stop_after = "synthesize_handshakes"};
    status = weft_target_load(target_name, &target, diag);
    if (!status) status = weft_plan(program, &target, &options, diag);
  }
  weft_tool_step("proving");
  if (!status) status = weft_certify(program, &certificate, diag);
  weft_tool_step_end();
  if (!status) print_certificate(path, &certificate, json);
  weft_program_free(program);
  return status;
}

int weft_cmd_certify(int argc, char **argv) {
  bool json = false;
  const char *target = "cpu";
  const weft_option options[] = {
      {.name = "json", .kind = WEFT_OPTION_FLAG, .target = &json, .help = "print the figures as a JSON object"},
      {.name = "target",
       .kind = WEFT_OPTION_TEXT,
       .target = &target,
       .argument = "NAME",
       .help = "what to plan for when the program has no schedule yet (cpu)"},
      {0}};
  const weft_usage usage = {
      .synopsis = "certify FILE",
      .about = "Proves that a scheduled program ends whatever the order of its engines, that no buffer over- or "
               "underflows,\n"
               "that every tile is written once and read after, and that every partial sum is reduced.\n"
               "A refusal names the engine, the op and the stage; a deadlock shows who waits for whom.",
      .example = "weft plan digits.json -o planned.json\nweft certify planned.json",
      .options = options,
      .least = 1,
      .most = 1};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  weft_diag *diag = weft_diag_new();
  weft_status status = diag ? certify(arguments.items[0], target, json, diag) : WEFT_UNAVAILABLE;
  return weft_tool_finish(status, diag, &arguments);
}
