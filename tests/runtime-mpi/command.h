/* Running a command with a limit, its output kept. */
#ifndef WEFT_TEST_COMMAND_H
#define WEFT_TEST_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

typedef struct command_result {
  int status; /**< exit status, or 128 + signal */
  bool late;  /**< it was ended after the limit */
  double seconds;
  char output[16384]; /**< standard output and error together, cut */
} command_result;

/** Starts `command` in a shell, in a process group of its own; it is killed after `limit` seconds. */
void command_run(const char *command, double limit, command_result *result);
/** "mpirun -n RANKS" with what tests need. */
const char *command_mpirun(int ranks);
/** How often `words` occur in `text`. */
int command_count(const char *text, const char *words);

#endif
