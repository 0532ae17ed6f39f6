/* The weft command: finds the subcommand and runs it. */
#include "options.h"
#include "weft/program_abi.h"

#include <stdio.h>
#include <string.h>

typedef struct command {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *help;
} command;

static const command commands[] = {
#define COMMAND(identifier, name, help) {name, weft_cmd_##identifier, help},
#include "commands.def"
#undef COMMAND
    {0},
};

static int print_help(void) {
  printf("usage: weft COMMAND ...\n\n"
         "Compiles a model or a spatial program for many chips.\n\n"
         "commands (weft COMMAND --help says more):\n");
  for (const command *c = commands; c->name; c++) printf("  %-10s  %s\n", c->name, c->help);
  printf("\n  --version   version, arithmetic, ABI and format numbers\n  --help      this text\n");
  return 0;
}

static int print_version(void) {
  printf("weft %s\narithmetic %d\nabi %d\n", WEFT_VERSION, WEFT_ARITHMETIC_VERSION, WEFT_ABI_VERSION);
  return 0;
}

static int unknown_command(const char *name) {
  const char *nearest = NULL;
  uint32_t distance = UINT32_MAX;
  for (const command *c = commands; c->name; c++) {
    uint32_t other = weft_edit_distance(name, c->name);
    if (other >= distance || !weft_names_alike(name, c->name)) continue;
    nearest = c->name;
    distance = other;
  }
  char hint[80] = "weft --help lists the commands";
  if (nearest) snprintf(hint, sizeof hint, "did you mean weft %s?", nearest);
  weft_tool_error(hint, "there is no command `%s`", name);
  return weft_status_exit_code(WEFT_USAGE);
}

static int run(int argc, char **argv) {
  if (argc < 2) {
    weft_tool_error("weft --help lists the commands", "a command is missing");
    return weft_status_exit_code(WEFT_USAGE);
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) return print_help();
  if (strcmp(argv[1], "--version") == 0) return print_version();
  for (const command *c = commands; c->name; c++)
    if (strcmp(argv[1], c->name) == 0) return c->run(argc - 1, argv + 1);
  return unknown_command(argv[1]);
}

int main(int argc, char **argv) { return weft_tool_written(run(argc, argv)); }
