/* weft show: a readable summary of a program. */
#include "dataflow_tool.h"
#include "options.h"
#include "pipeline.h"
#include "weft/partition.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/** Bytes of one chip's tensors, by role. */
typedef struct chip_memory {
  uint64_t bytes[WEFT_ROLE_COUNT];
  uint64_t total;
} chip_memory;

static bool add_tensor(chip_memory *memory, const weft_tensor *tensor) {
  uint64_t bytes = weft_tensor_bytes(tensor);
  return bytes != UINT64_MAX && !weft_add_overflow(memory->bytes[tensor->role], bytes, &memory->bytes[tensor->role]) &&
         !weft_add_overflow(memory->total, bytes, &memory->total);
}

static void print_bytes(uint64_t bytes) {
  if (bytes < 10 * 1024)
    printf(" %12" PRIu64 " B  ", bytes);
  else if (bytes < 10 * 1024 * 1024)
    printf(" %12.1f KiB", (double)bytes / 1024);
  else
    printf(" %12.1f MiB", (double)bytes / (1024 * 1024));
}

static weft_status show_memory(const weft_program *program, weft_diag *diag) {
  uint32_t chips = weft_program_chips(program);
  if (program->chips > chips) chips = program->chips;
  if (chips == 0) chips = 1;
  chip_memory *memory = calloc(chips, sizeof *memory);
  if (!memory) return weft_error_memory(diag);
  weft_status status = WEFT_OK;
  for (uint64_t i = 0; i < program->tensor_count && status == WEFT_OK; i++) {
    const weft_tensor *tensor = &program->tensors[i];
    uint32_t first = tensor->chip == WEFT_NONE ? 0 : tensor->chip,
             last = tensor->chip == WEFT_NONE ? chips - 1 : tensor->chip;
    for (uint32_t c = first; c <= last && status == WEFT_OK; c++)
      if (!add_tensor(&memory[c], tensor))
        status = weft_error(diag, WEFT_INVALID, "give its extents smaller numbers",
                            "tensor '%s' is larger than 64 bits of bytes", tensor->name);
  }
  if (status == WEFT_OK) {
    printf("%5s", "chip");
    for (int r = 0; r < WEFT_ROLE_COUNT; r++) printf(" %16s", weft_tensor_role_name((weft_tensor_role)r));
    printf(" %16s\n", "total");
    for (uint32_t c = 0; c < chips; c++) {
      printf("%5" PRIu32, c);
      for (int r = 0; r < WEFT_ROLE_COUNT; r++) print_bytes(memory[c].bytes[r]);
      print_bytes(memory[c].total);
      printf("\n");
    }
  }
  free(memory);
  return status;
}

static weft_status show_text(const weft_program *program, void (*append)(const weft_program *, weft_text *),
                             weft_diag *diag) {
  weft_text text = {0};
  append(program, &text);
  weft_status status = text.failed ? weft_error_memory(diag) : WEFT_OK;
  if (status == WEFT_OK && text.length) fwrite(text.data, 1, text.length, stdout);
  weft_text_free(&text);
  return status;
}

int weft_cmd_show(int argc, char **argv) {
  bool memory = false, dot = false, chips = false, json = false, cells = false;
  const char *graph = NULL;
  const weft_option options[] = {
      {.name = "memory", .kind = WEFT_OPTION_FLAG, .target = &memory, .help = "bytes of tensors per chip, by role"},
      {.name = "dot",
       .kind = WEFT_OPTION_FLAG,
       .target = &dot,
       .help = "a Graphviz picture: weft show FILE --dot | dot -Tsvg -o program.svg"},
      {.name = "chips",
       .kind = WEFT_OPTION_FLAG,
       .target = &chips,
       .help = "a Graphviz picture of what each chip does and of what goes from chip to chip"},
      {.name = "json",
       .kind = WEFT_OPTION_FLAG,
       .target = &json,
       .help = "the summary as one JSON object, all tensors and sections in it"},
      {.name = "graph",
       .kind = WEFT_OPTION_TEXT,
       .target = &graph,
       .argument = "NAME",
       .help = "MLIR text: the graph (default: the only one)"},
      {.name = "cells",
       .kind = WEFT_OPTION_FLAG,
       .target = &cells,
       .help = "MLIR text: a loop-free graph as the Scalar body of a stage, in JSON"},
      {0}};
  const weft_usage usage = {
      .synopsis = "show FILE [--memory | --json | --dot | --chips | --cells]",
      .about = "Prints a readable summary of a program: phase, sections, tensors, sites, plan, traffic. Of MLIR text:\n"
               "its threads and graphs; a picture of a token graph shows its rings and lanes.",
      .example = "weft new mlp --layers 784,256,10 --batch 32 -o digits.json\nweft show digits.json --memory\n"
                 "weft shard digits.json --chips 2 --split columns -o two.json\n"
                 "weft show two.json --chips | dot -Tsvg -o two.svg",
      .options = options,
      .least = 1,
      .most = 1};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  weft_diag *diag = weft_diag_new();
  weft_program *program = NULL;
  if (diag && weft_tool_is_mlir(arguments.items[0]))
    return weft_tool_finish(weft_tool_dataflow_show(arguments.items[0], graph, dot, cells, diag), diag, &arguments);
  weft_status status = diag ? weft_program_read_file(arguments.items[0], &program, diag) : WEFT_UNAVAILABLE;
  if (status == WEFT_OK)
    status = memory  ? show_memory(program, diag)
             : json  ? show_text(program, weft_program_show_json, diag)
             : chips ? show_text(program, weft_program_dot_chips, diag)
             : dot   ? show_text(program, weft_program_dot, diag)
                     : show_text(program, weft_program_show, diag);
  weft_program_free(program);
  return weft_tool_finish(status, diag, &arguments);
}
