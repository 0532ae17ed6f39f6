/* Graphs, inputs and comparisons for the tests of the partitioner. */
#ifndef WEFT_TESTS_PARTITION_SUPPORT_H
#define WEFT_TESTS_PARTITION_SUPPORT_H

#include "weft/partition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/** A machine on which both work and links cost something. */
extern const weft_target test_target;

/** A chain of matmuls: x [batch, widths[0]], w1.. [widths[i], widths[i + 1]], b1.., result y. Int8 layers are
 * requantised and clamped but for the last. segments 0: canonical. */
typedef struct mlp {
  uint32_t layers;
  uint64_t widths[8];
  uint64_t batch;
  weft_format dtype;
  bool bias, relu;
  uint32_t segments;
} mlp;
weft_graph *build_mlp(const mlp *shape, weft_diag *diag);
/** 784-256-256-10, batch `batch`. */
weft_graph *build_digits(uint64_t batch, weft_diag *diag);

/** Random values for everything the graph reads: floats with cancellation, -0 and large exponents; integers in range.
 */
void fill_inputs(const weft_graph *graph, uint64_t seed, weft_array_set *in);

/** Partitions with a preset (NULL: search) and requests "T=spec" separated by blanks (NULL: none). */
weft_status partition_as(const weft_graph *graph, const char *mesh, const char *split, const char *requests,
                         weft_graph **machine, weft_text *report, weft_diag *diag);
/** The same where it must succeed; the machine graph passes weft_graph_check. */
weft_graph *partitioned(const weft_graph *graph, const char *mesh, const char *split, const char *requests);

/** Interprets a graph; fails the test when that fails. */
void interpret(const weft_graph *graph, const weft_array_set *in, weft_array_set *out);
/** Whether both sets hold the same outputs with the same bits; prints the first difference. */
bool same_arrays(const weft_array_set *expected, const weft_array_set *got);
/** Whether every output of both graphs has the same bits for the same inputs; prints the first difference. */
bool same_results(const weft_graph *graph, const weft_graph *machine, uint64_t seed);

/** All messages and hints, for searching; freed by the caller. */
char *messages_of(const weft_diag *diag);
/** Fails unless some message or hint contains each of the words (NULL ends them). */
void assert_messages_have(const weft_diag *diag, ...);

uint64_t count_ops(const weft_graph *graph, weft_graph_op_kind kind, int chip);
const weft_value *find_value(const weft_graph *graph, const char *name);

#endif
