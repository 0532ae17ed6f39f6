/* weft compile: from a program of one chip to C for many, every step in one command. */
#include "pipeline.h"

int weft_cmd_compile(int argc, char **argv) {
  const char *directory = NULL;
  uint64_t threads = 0;
  weft_machine_options machine = {0};
  const weft_option options[] = {{.name = "output",
                                  .letter = 'o',
                                  .kind = WEFT_OPTION_TEXT,
                                  .target = &directory,
                                  .argument = "DIR",
                                  .help = "directory of the C files (made when missing)"},
                                 {.name = "chips",
                                  .kind = WEFT_OPTION_COUNT,
                                  .target = &machine.chips,
                                  .given = &machine.chips_said,
                                  .help = "number of chips: a mesh of one axis, chip"},
                                 {.name = "mesh",
                                  .kind = WEFT_OPTION_TEXT,
                                  .target = &machine.mesh,
                                  .argument = "AXES",
                                  .help = "mesh of chips, e.g. x=2,y=2"},
                                 {.name = "split",
                                  .kind = WEFT_OPTION_TEXT,
                                  .target = &machine.split,
                                  .argument = "PRESET",
                                  .help = "columns, rows, batch, column-row, pipeline, or per axis x=batch,y=columns"},
                                 {.name = "shard",
                                  .kind = WEFT_OPTION_LIST,
                                  .target = &machine.shards,
                                  .argument = "T=SPEC",
                                  .help = "sharding of one tensor, e.g. w1=cols@x; may be repeated"},
                                 {.name = "target",
                                  .kind = WEFT_OPTION_TEXT,
                                  .target = &machine.target,
                                  .argument = "NAME",
                                  .help = "target (default: cpu)"},
                                 {.name = "explain",
                                  .kind = WEFT_OPTION_FLAG,
                                  .target = &machine.explain,
                                  .help = "print each tensor's sharding, its cost and the runner-up"},
                                 {.name = "jobs",
                                  .letter = 'j',
                                  .kind = WEFT_OPTION_COUNT,
                                  .target = &threads,
                                  .help = "threads that generate; the output does not depend on it"},
                                 {0}};
  const weft_usage usage = {
      .synopsis = "compile FILE --chips N -o DIR",
      .about = "From a program of one chip to C for many: shard, plan, prove, split, generate. Then\n"
               "`ninja -C DIR` builds DIR/run (one MPI rank a chip), DIR/run-local (threads) and DIR/libprogram.so.",
      .example = "weft new mlp --layers 784,256,10 --batch 32 -o digits.json\n"
                 "weft compile digits.json --chips 2 -o out && ninja -C out",
      .options = options,
      .least = 1,
      .most = 1};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  if (!directory) return weft_tool_misuse(&usage, "-o DIR is missing");
  weft_diag *diag = weft_diag_new();
  weft_status status =
      diag ? weft_tool_compile(arguments.items[0], &machine, directory, threads, diag) : WEFT_UNAVAILABLE;
  weft_option_list_free(&machine.shards);
  return weft_tool_finish(status, diag, &arguments);
}
