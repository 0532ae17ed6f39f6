/* What a command is busy with, on a terminal, when it takes long. */
#ifndef WEFT_TOOLS_PROGRESS_H
#define WEFT_TOOLS_PROGRESS_H

/** The command is at this step from now on ("planning"; a literal). Standard error tells it, with the seconds since the
 * first step, when that is a terminal and two seconds have gone; a log never has it. For the main thread only. */
void weft_tool_step(const char *step);
/** The line is wiped; before anything else is printed. */
void weft_tool_step_end(void);

#endif
