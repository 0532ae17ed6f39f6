/* What the tests of the op graph share: random graphs and arrays, machine graphs made of them, equality of graphs. */
#ifndef WEFT_TEST_GRAPH_SUPPORT_H
#define WEFT_TEST_GRAPH_SUPPORT_H

#include "weft/graph.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/** A generator of weft_random_next with the draws that tests need. */
typedef struct chance {
  uint64_t state;
} chance;
uint64_t draw(chance *c, uint64_t below);
bool toss(chance *c);

/** Fails the test with all messages of `diag` when `status` is not WEFT_OK. */
void expect_ok(weft_status status, const weft_diag *diag);
/** Fails unless there is an error that contains `text`. */
void expect_message(const weft_diag *diag, const char *text);

typedef struct random_graph_options {
  bool integers;
  bool tidy;  /**< sections read nothing that they store, outputs are not read: lowering and lifting give the same graph
               */
  bool small; /**< small extents, no elementary functions, no Select: what exact arithmetic computes in time */
} random_graph_options;
/** A valid graph of one chip whose unread values are outputs. */
weft_graph *random_graph(chance *c, const random_graph_options *options, weft_diag *diag);
/** Arrays for every input and parameter, within ranges. */
void random_inputs(chance *c, const weft_graph *graph, weft_array_set *set);

/** The same computation on `chips` chips: ops anywhere, float products cut into partial nodes on several chips. */
weft_graph *scatter_graph(chance *c, const weft_graph *graph, uint32_t chips, weft_diag *diag);

/** Fails unless the graphs are equal up to the numbering of values and ops and the order of pieces. */
void expect_equal_graphs(const weft_graph *a, const weft_graph *b);
/** Fails unless the sets hold the same arrays, bit for bit (any NaN equals any NaN). */
void expect_equal_sets(const weft_array_set *a, const weft_array_set *b);
/** Fails unless both hold equal outputs of the graph under their names; shards are cut from `whole`. */
void expect_shards(const weft_graph *machine, const weft_array_set *whole, const weft_array_set *shards);

#endif
