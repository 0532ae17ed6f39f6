/* weft codegen: per-chip C and build.ninja. */
#include "dataflow_tool.h"
#include "pipeline.h"

int weft_cmd_codegen(int argc, char **argv) {
  const char *directory = NULL;
  uint64_t threads = 0;
  bool machines = false;
  weft_machine_options machine = {0};
  const weft_option options[] = {
      {.name = "output",
       .letter = 'o',
       .kind = WEFT_OPTION_TEXT,
       .target = &directory,
       .argument = "DIR",
       .help = "directory of the C files (made when missing)"},
      {.name = "target",
       .kind = WEFT_OPTION_TEXT,
       .target = &machine.target,
       .argument = "NAME",
       .help = "target it is proved for (default: cpu)"},
      {.name = "jobs",
       .letter = 'j',
       .kind = WEFT_OPTION_COUNT,
       .target = &threads,
       .help = "threads that generate; the output does not depend on it"},
      {.name = "machines",
       .kind = WEFT_OPTION_FLAG,
       .target = &machines,
       .help = "MLIR text: token graphs as machines of queues even where loops are possible"},
      {0}};
  const weft_usage usage = {
      .synopsis = "codegen FILE -o DIR",
      .about =
          "Turns a whole-machine program, or a program of one chip, into C: one file a class of structurally\n"
          "equal chips, and build.ninja. Plans and proves the machine and every chip first.\n"
          "MLIR text becomes C for its threads, graphs and functions; DIR/run CASE.json runs them, a thread a chip.",
      .example = "weft new mlp --layers 784,256,10 --batch 32 -o digits.json\n"
                 "weft shard digits.json --chips 2 --split columns -o two.json\n"
                 "weft codegen two.json -o out && ninja -C out",
      .options = options,
      .least = 1,
      .most = 1};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  if (!directory) return weft_tool_misuse(&usage, "-o DIR is missing");
  weft_diag *diag = weft_diag_new();
  weft_status status = !diag ? WEFT_UNAVAILABLE
                       : weft_tool_is_mlir(arguments.items[0])
                           ? weft_tool_dataflow_write(arguments.items[0], directory, machines, diag)
                           : weft_tool_compile(arguments.items[0], &machine, directory, threads, diag);
  return weft_tool_finish(status, diag, &arguments);
}
