/* What every subcommand of `weft` shares: the option table and its parser, messages, reading programs.
 *
 * A subcommand is `int weft_cmd_NAME(int argc, char **argv)` in tools/cmd_NAME.c with a row in tools/commands.def;
 * argv[0] is its name, the result the exit status. Its smallest shape:
 *
 *   int weft_cmd_check(int argc, char **argv) {
 *     bool json = false;
 *     const weft_option options[] = {
 *         {.name = "json", .kind = WEFT_OPTION_FLAG, .target = &json, .help = "print violations as JSON lines"},
 *         {0}};
 *     const weft_usage usage = {.synopsis = "check FILE", .about = "Reads a program and validates it.",
 *                               .example = "weft check digits.json", .options = options, .least = 1, .most = 1};
 *     weft_arguments arguments;
 *     int exit_code;
 *     if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
 *     weft_diag *diag = weft_diag_new();
 *     weft_status status = ...;
 *     return weft_tool_finish(status, diag, &arguments);
 *   } */
#ifndef WEFT_TOOLS_OPTIONS_H
#define WEFT_TOOLS_OPTIONS_H

#include "weft/base.h"

#include <stdio.h>

typedef enum weft_option_kind {
  WEFT_OPTION_FLAG,    /**< bool: set by `--name`, cleared by `--no-name` */
  WEFT_OPTION_TEXT,    /**< const char *; the last one given counts */
  WEFT_OPTION_LIST,    /**< weft_option_list; may be given several times */
  WEFT_OPTION_COUNT,   /**< uint64_t */
  WEFT_OPTION_INTEGER, /**< int64_t */
  WEFT_OPTION_NUMBER,  /**< double; finite, at least 0 */
  WEFT_OPTION_CHOICE,  /**< const char *; one of `choices` */
} weft_option_kind;

/** The values of an option that may be repeated, in order; they point into argv. Starts zeroed; freed by
 * weft_option_list_free. */
typedef struct weft_option_list {
  const char **items;
  uint64_t count;
} weft_option_list;
void weft_option_list_free(weft_option_list *list);

/** One option. A table of them ends with a row without a name. */
typedef struct weft_option {
  const char *name; /**< "max-ulp" for --max-ulp; `--max-ulp N` and `--max-ulp=N` are the same */
  char letter;      /**< 'o' for -o, 0 for none; `-o FILE` and `-oFILE` are the same */
  weft_option_kind kind;
  void *target;         /**< where the value goes; left alone when the option is not given */
  bool *given;          /**< set when the option is given; may be NULL */
  const char *argument; /**< what the value is called in the help: "FILE"; NULL: from the kind */
  const char *choices;  /**< CHOICE: "json|dot|text" */
  const char *help;     /**< one line */
} weft_option;

/** What a subcommand looks like from outside. */
typedef struct weft_usage {
  const char *synopsis; /**< "diff A.h5 B.h5 [options]" */
  const char *about;    /**< a sentence or more; may hold line breaks */
  const char *example;  /**< whole command lines, one a line */
  const weft_option *options;
  int least, most; /**< number of arguments that are no options; most -1: any */
} weft_usage;

typedef struct weft_arguments {
  char **items; /**< arguments that are no options, in order; in argv's place */
  int count;
  bool verbose; /**< -v, --verbose: every command has it */
} weft_arguments;

/** Parses a command line. Options and arguments may be mixed; `--` ends the options; `-` is an argument.
 * True: go on. False: the command is over with *exit_code: 0 after --help, 2 after a mistake, which has been reported.
 */
bool weft_options_parse(const weft_usage *usage, int argc, char **argv, weft_arguments *arguments, int *exit_code);
/** Reports a mistake on the command line that only the command itself can see; returns 2. */
int weft_tool_misuse(const weft_usage *usage, const char *format, ...) WEFT_PRINTF(2, 3);
/** Prints the help of a command to standard output. */
void weft_usage_print(const weft_usage *usage);

/** A command of several verbs (`weft tensor show`): one row each, ends with a row without a name. */
typedef struct weft_verb {
  const char *name;
  int (*run)(int argc, char **argv); /**< argv[0] is "tensor show" */
  const char *help;                  /**< one line */
} weft_verb;
/** Runs the verb that argv[1] names, or prints the list for --help; returns the exit status. */
int weft_verbs_run(const char *command, const weft_verb *verbs, int argc, char **argv);

/** Prints messages to standard error: `weft: FILE:LINE: text`, warnings marked as such, each with its `hint:` line;
 * notes only when `verbose`. Control characters, which names from files may hold, are printed as escapes. */
void weft_tool_report(const weft_diag *diag, bool verbose);
/** Reports and frees `diag` (NULL: memory was exhausted) and returns the exit status of `status`. Output that could not
 * be written turns success into status 3. */
int weft_tool_finish(weft_status status, weft_diag *diag, const weft_arguments *arguments);
/** The exit status after all was said: `exit_code`, or 3 when that is 0 and standard output could not be written. */
int weft_tool_written(int exit_code);
/** Prints a text meant for readers; control characters, which names from files may hold, as escapes. */
void weft_tool_print(FILE *out, const weft_text *readable);
/** Prints one error without a place to standard error. */
void weft_tool_error(const char *hint, const char *format, ...) WEFT_PRINTF(2, 3);

/* Every subcommand, so that each file sees its own prototype. */
#define COMMAND(identifier, name, help) int weft_cmd_##identifier(int argc, char **argv);
#include "commands.def"
#undef COMMAND

#endif
