/* One random change of a schedule. */
#ifndef WEFT_TESTS_PLAN_MUTATE_H
#define WEFT_TESTS_PLAN_MUTATE_H

#include "weft/ir.h"

/** Changes one op of the program's schedule (removes, repeats, swaps with its neighbour, or changes one field) and
 * describes the change in `text`. The program must be a copy of its own. false when there was nothing to change. */
bool mutate_schedule(weft_program *program, uint64_t *random, char *text, size_t size);

#endif
