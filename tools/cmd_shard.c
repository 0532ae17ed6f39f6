/* weft shard: a program of one chip partitioned over a mesh. */
#include "pipeline.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct request {
  weft_machine_options machine;
  const char *output, *per_chip;
} request;

/* chip_0.json, chip_1.json... as the split leaves them, after they were checked together. */
static weft_status write_chips(const weft_program *machine, const char *directory, weft_diag *diag) {
  uint32_t chips = machine->chips ? machine->chips : weft_program_chips(machine);
  int held = -1;
  weft_program **programs = calloc(chips, sizeof *programs);
  weft_status status = programs ? weft_split(machine, chips, programs, diag) : weft_error_memory(diag);
  if (status == WEFT_OK) status = weft_split_check((const weft_program *const *)programs, chips, diag);
  if (status == WEFT_OK) status = weft_directory_hold(directory, &held, diag);
  for (uint32_t chip = 0; chip < chips && status == WEFT_OK; chip++) {
    weft_text path = {0};
    weft_text_printf(&path, "%s/chip_%u.json", directory, chip);
    status = path.failed ? weft_error_memory(diag) : weft_tool_write(path.data, programs[chip], diag);
    weft_text_free(&path);
  }
  weft_directory_release(held);
  weft_tool_free_programs(programs, programs ? chips : 0);
  return status;
}

static weft_status shard(const char *path, const request *r, weft_diag *diag) {
  weft_program *program = NULL, *machine = NULL;
  weft_target target;
  weft_text report = {0};
  weft_status status = weft_target_load(r->machine.target ? r->machine.target : "cpu", &target, diag);
  if (status == WEFT_OK) status = weft_tool_read(path, &program, diag);
  if (status == WEFT_OK) status = weft_tool_shard(program, &r->machine, &target, &machine, &report, diag);
  weft_tool_step_end();
  if (status == WEFT_OK) weft_tool_print(strcmp(r->output, "-") == 0 ? stderr : stdout, &report);
  if (status == WEFT_OK && r->per_chip) status = write_chips(machine, r->per_chip, diag);
  if (status == WEFT_OK) status = weft_tool_write(r->output, machine, diag);
  weft_text_free(&report);
  if (machine != program) weft_program_free(machine);
  weft_program_free(program);
  return status;
}

int weft_cmd_shard(int argc, char **argv) {
  request r = {.output = "-"};
  const weft_option options[] = {
      {.name = "mesh",
       .kind = WEFT_OPTION_TEXT,
       .target = &r.machine.mesh,
       .argument = "AXES",
       .help = "chips along named axes: x=2,y=2"},
      {.name = "chips",
       .kind = WEFT_OPTION_COUNT,
       .target = &r.machine.chips,
       .given = &r.machine.chips_said,
       .help = "a mesh of one axis, called chip"},
      {.name = "split",
       .kind = WEFT_OPTION_TEXT,
       .target = &r.machine.split,
       .argument = "PRESET",
       .help = "columns, rows, batch, column-row, pipeline; or one for each axis: x=batch,y=columns"},
      {.name = "shard",
       .kind = WEFT_OPTION_LIST,
       .target = &r.machine.shards,
       .argument = "TENSOR=SPEC",
       .help = "how a tensor lies: rows@x,cols@y, or 0@x by dimension, rows@x+y over two axes, or replicated"},
      {.name = "target",
       .kind = WEFT_OPTION_TEXT,
       .target = &r.machine.target,
       .argument = "NAME",
       .help = "whose costs and memory count (default: cpu)"},
      {.name = "explain",
       .kind = WEFT_OPTION_FLAG,
       .target = &r.machine.explain,
       .help = "say how each tensor lies, what it costs, and the runner-up"},
      {.name = "per-chip",
       .kind = WEFT_OPTION_TEXT,
       .target = &r.per_chip,
       .argument = "DIR",
       .help = "also write each chip's program: DIR/chip_N.json"},
      {.name = "output",
       .letter = 'o',
       .kind = WEFT_OPTION_TEXT,
       .target = &r.output,
       .argument = "FILE",
       .help = "the whole machine's program (default: standard output)"},
      {0}};
  const weft_usage usage = {
      .synopsis = "shard FILE --mesh AXES | --chips N",
      .about =
          "Partitions a program over a mesh of chips. What --shard and --split say binds; where they say nothing,\n"
          "the cheapest layout is searched. The results are the same bits on any number of chips.",
      .example = "weft new mlp --layers 784,256,10 --batch 32 -o digits.json\n"
                 "weft shard digits.json --mesh x=2,y=2 --split x=batch,y=columns -o four.json\n"
                 "weft shard digits.json --chips 4 --shard w1=cols@chip --explain -o four.json",
      .options = options,
      .least = 1,
      .most = 1};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  if (!r.machine.mesh && !r.machine.chips_said) {
    weft_option_list_free(&r.machine.shards);
    return weft_tool_misuse(&usage, "--mesh AXES or --chips N is missing");
  }
  weft_diag *diag = weft_diag_new();
  weft_status status = diag ? shard(arguments.items[0], &r, diag) : WEFT_UNAVAILABLE;
  weft_option_list_free(&r.machine.shards);
  return weft_tool_finish(status, diag, &arguments);
}
