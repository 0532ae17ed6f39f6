/* What the tests of the passes share: cases, random tensors, plans, runs. */
#ifndef WEFT_TESTS_PLAN_SUPPORT_H
#define WEFT_TESTS_PLAN_SUPPORT_H

#include "weft/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/** Reads tests/cases/spatial/valid/NAME.json. */
weft_program *read_case(const char *name);
/** A copy whose schedule, when it has one, may be changed: shared tables, its own arrays of ops. */
weft_program *copy_program(const weft_program *program);
/** Plans for a shipped target up to and with `stop_after` (NULL: to the end), validating between passes. Fails the test
 * when planning fails. */
void plan_for(weft_program *program, const char *target, const char *stop_after);
/** Plans up to a schedule for a 2 x 2 mesh with multicast, on which sites cost nothing. */
void plan_with_multicast(weft_program *program);
/** Random arrays for every tensor that starts filled: integers in their range (or small), floats in [-1, 1]. */
void make_inputs(const weft_program *program, uint64_t seed, weft_array_set *set);
/** Evaluates; returns the status and leaves messages in `diag`. */
weft_status run_program(const weft_program *program, const weft_array_set *in, bool random, uint64_t seed,
                        weft_array_set *out, weft_diag *diag);
/** Evaluates in the fixed order and fails the test on a fault. */
void evaluate(const weft_program *program, const weft_array_set *in, weft_array_set *out);
/** Fails the test when two sets differ in a bit (any NaN equals any NaN). */
void assert_same_sets(const weft_array_set *a, const weft_array_set *b);
/** The first difference between two sets, or NULL. */
bool same_sets(const weft_array_set *a, const weft_array_set *b);
/** Where graphs made by tests report to: it outlives them. Made and freed with the group of tests. */
extern weft_diag *graph_diag;
int make_graph_diag(void **state);
int free_graph_diag(void **state);
/** The first message, or "". */
const char *first_message(const weft_diag *diag);
/** Element (r, c) of a dataset as a float or an integer. */
float real_at(const weft_array_set *set, const char *name, uint64_t r, uint64_t c);
int64_t whole_at(const weft_array_set *set, const char *name, uint64_t r, uint64_t c);
/** Fails the test when `text` does not hold `part`. */
void assert_holds(const char *text, const char *part);

#endif
