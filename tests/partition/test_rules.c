/* What users say and what follows from it: requests, presets, contradictions, propagation, search, explanation. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

typedef struct fixture {
  weft_diag *diag;
  weft_graph *graph;
} fixture;

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  f->diag = weft_diag_new();
  f->graph = build_digits(32, f->diag);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  weft_graph_free(f->graph);
  weft_diag_free(f->diag);
  free(f);
  return 0;
}

static void assert_block(const weft_graph *machine, const char *name, uint64_t rows, uint64_t cols, uint64_t row0,
                         uint64_t col0) {
  const weft_value *value = find_value(machine, name);
  if (!value) fail_msg("there is no value '%s'", name);
  assert_int_equal(value->extents[0], rows);
  assert_int_equal(value->extents[1], cols);
  assert_true(value->has_shard);
  assert_int_equal(value->shard.row0, row0);
  assert_int_equal(value->shard.col0, col0);
}

/* ---- presets --------------------------------------------------------------------------------------------------------
 */

static void test_columns_cut_n_with_ceil_sized_parts(void **state) {
  fixture *f = *state;
  weft_graph *machine = partitioned(f->graph, "x=3", "columns", NULL);
  assert_block(machine, "x@1", 32, 784, 0, 0);
  assert_block(machine, "w1@0", 784, 86, 0, 0);
  assert_block(machine, "w1@1", 784, 86, 0, 86);
  assert_block(machine, "w1@2", 784, 84, 0, 172);
  assert_block(machine, "w3@2", 256, 2, 0, 8);
  assert_int_equal(count_ops(machine, WEFT_GRAPH_ALL_REDUCE, -1), 0);
  assert_int_equal(count_ops(machine, WEFT_GRAPH_ASSEMBLE, 0), 2);
  weft_graph_free(machine);
}

static void test_rows_follow_segment_borders(void **state) {
  fixture *f = *state;
  weft_graph *machine = partitioned(f->graph, "x=4", "rows", NULL);
  /* K = 784 is 25 units in 8 segments: the first has 4, the others 3; two segments a chip. */
  assert_block(machine, "w1@0", 224, 256, 0, 0);
  assert_block(machine, "w1@1", 192, 256, 224, 0);
  assert_block(machine, "w1@3", 176, 256, 608, 0);
  assert_block(machine, "x@3", 32, 176, 0, 608);
  assert_int_equal(find_value(machine, "h1.partial@2")->partial.first, 4);
  assert_int_equal(find_value(machine, "h1.partial@2")->partial.count, 2);
  assert_int_equal(find_value(machine, "h1.partial@2")->partial.of, 8);
  assert_int_equal(count_ops(machine, WEFT_GRAPH_ALL_REDUCE, -1), 12);
  weft_graph_free(machine);
}

static void test_batch_cuts_only_inputs_and_outputs(void **state) {
  fixture *f = *state;
  weft_graph *machine = partitioned(f->graph, "x=5", "batch", NULL);
  assert_block(machine, "x@4", 4, 784, 28, 0);
  assert_block(machine, "w1@4", 784, 256, 0, 0);
  assert_block(machine, "y@4", 4, 10, 28, 0);
  assert_int_equal(count_ops(machine, WEFT_GRAPH_ASSEMBLE, -1) + count_ops(machine, WEFT_GRAPH_SLICE, -1), 0);
  weft_graph_free(machine);
}

static void test_column_row_needs_no_gather_between_its_layers(void **state) {
  fixture *f = *state;
  weft_graph *machine = partitioned(f->graph, "x=4", "column-row", NULL);
  assert_block(machine, "w1@1", 784, 64, 0, 64);
  assert_block(machine, "w2@1", 64, 256, 64, 0);
  assert_block(machine, "w3@3", 256, 1, 0, 9);
  assert_int_equal(count_ops(machine, WEFT_GRAPH_ASSEMBLE, -1) + count_ops(machine, WEFT_GRAPH_SLICE, -1), 0);
  assert_int_equal(count_ops(machine, WEFT_GRAPH_ALL_REDUCE, -1), 4);
  weft_graph_free(machine);
}

/* Column-then-row over one axis of two: every group of the other axis reduces by itself. */
static void test_column_row_groups_on_a_square_mesh(void **state) {
  fixture *f = *state;
  weft_graph *machine = partitioned(f->graph, "x=2,y=2", "x=batch,y=column-row", NULL);
  for (uint64_t o = 0; o < machine->op_count; o++) {
    const weft_graph_op *op = &machine->ops[o];
    if (op->kind != WEFT_GRAPH_ALL_REDUCE) continue;
    assert_int_equal(op->in_count, 2);
    for (uint32_t i = 0; i < 2; i++) assert_int_equal(machine->values[op->ins[i]].chip, op->chip / 2 * 2 + i);
  }
  weft_graph_free(machine);
}

static void test_pipeline_deals_out_layers_in_order(void **state) {
  fixture *f = *state;
  static const struct {
    const char *mesh;
    uint32_t of_layer[3];
  } cases[] = {{"x=1", {0, 0, 0}}, {"x=2", {0, 1, 1}}, {"x=3", {0, 1, 2}}, {"x=5", {0, 1, 2}}};
  for (size_t c = 0; c < 4; c++) {
    weft_graph *machine = partitioned(f->graph, cases[c].mesh, "pipeline", NULL);
    uint32_t layer = 0;
    for (uint64_t o = 0; o < machine->op_count; o++)
      if (machine->ops[o].kind == WEFT_GRAPH_MATMUL) assert_int_equal(machine->ops[o].chip, cases[c].of_layer[layer++]);
    assert_int_equal(layer, 3);
    weft_graph_free(machine);
  }
}

static void test_seven_layers_fill_every_stage(void **state) {
  fixture *f = *state;
  weft_graph *graph =
      build_mlp(&(mlp){.layers = 7, .widths = {8, 8, 8, 8, 8, 8, 8, 8}, .batch = 2, .dtype = WEFT_FP32}, f->diag);
  for (uint32_t chips = 1; chips <= 7; chips++) {
    char mesh[] = "x=0";
    mesh[2] = (char)('0' + chips);
    weft_graph *machine = partitioned(graph, mesh, "pipeline", NULL);
    uint32_t last = 0;
    for (uint64_t o = 0; o < machine->op_count; o++) {
      assert_in_range(machine->ops[o].chip, last, last + 1);
      last = machine->ops[o].chip;
    }
    assert_int_equal(last, chips - 1);
    weft_graph_free(machine);
  }
  weft_graph_free(graph);
}

static void test_preset_mistakes(void **state) {
  fixture *f = *state;
  static const struct {
    const char *mesh, *split, *word, *hint;
  } cases[] = {{"x=2", "diagonal", "there is no preset 'diagonal'", "column-row"},
               {"x=2", "y=rows", "no such axis", "x=2"},
               {"x=2", "x=rows,x=batch", "two presets", "one preset"},
               {"x=2,y=2", "rows", "names none", "x=batch,y=columns"},
               {"x=2", "", "there is no preset ''", "columns"},
               {"x=2", "x=rows,", "there is no preset ''", "columns"}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    weft_graph *machine = NULL;
    assert_int_equal(partition_as(f->graph, cases[c].mesh, cases[c].split, NULL, &machine, NULL, f->diag), WEFT_USAGE);
    assert_null(machine);
    assert_messages_have(f->diag, cases[c].word, cases[c].hint, NULL);
    weft_diag_clear(f->diag);
  }
}

/* ---- requests -------------------------------------------------------------------------------------------------------
 */

static void test_a_request_binds_and_spreads(void **state) {
  fixture *f = *state;
  weft_graph *machine = partitioned(f->graph, "x=4", NULL, "w1=cols@x");
  assert_block(machine, "w1@2", 784, 64, 0, 128);
  /* h1 lies in columns, so the next layer folds over chips without moving it. */
  assert_block(machine, "w2@2", 64, 256, 128, 0);
  weft_graph_free(machine);
}

static void test_a_request_spreads_back(void **state) {
  fixture *f = *state;
  weft_graph *machine = partitioned(f->graph, "x=4", NULL, "w2=rows@x");
  assert_block(machine, "w2@2", 64, 256, 128, 0);
  assert_block(machine, "w1@2", 784, 64, 0, 128);
  weft_graph_free(machine);
}

static void test_requests_by_number_and_over_two_axes(void **state) {
  fixture *f = *state;
  weft_graph *machine = partitioned(f->graph, "x=2,y=2", NULL, "x=0@x,1@y b2=0@y");
  assert_int_equal(find_value(machine, "x@3")->shard.row0, 16);
  assert_int_equal(find_value(machine, "x@3")->shard.col0, 416);
  weft_graph_free(machine);
  machine = partitioned(f->graph, "x=2,y=2", NULL, "w1=cols@y+x");
  assert_int_equal(find_value(machine, "w1@1")->shard.col0, 128);
  assert_int_equal(find_value(machine, "w1@2")->shard.col0, 64);
  weft_graph_free(machine);
}

static void test_replicated_is_kept(void **state) {
  fixture *f = *state;
  weft_graph *machine = partitioned(f->graph, "x=4", NULL, "y=replicated w3=replicated x=rows@x");
  for (uint32_t chip = 0; chip < 4; chip++) {
    char name[8] = "y@0";
    name[2] = (char)('0' + chip);
    const weft_value *value = find_value(machine, name);
    assert_non_null(value);
    assert_int_equal(value->extents[0], 32);
    assert_int_equal(value->shard.writer, chip == 0);
  }
  assert_true(same_results(f->graph, machine, 5));
  weft_graph_free(machine);
}

static void test_request_mistakes(void **state) {
  fixture *f = *state;
  static const struct {
    const char *request, *word, *hint;
    weft_status status;
  } cases[] = {{"w9=cols@x", "there is no tensor 'w9'", "w1, h1", WEFT_INVALID},
               {"w1=cols@z", "no axis 'z'", "x=2,y=2", WEFT_USAGE},
               {"w1=sideways@x", "'sideways@x' names no dimension", "rows@AXIS", WEFT_USAGE},
               {"w1=2@x", "rank 2", "number", WEFT_USAGE},
               {"b1=rows@x", "rank 1", "number", WEFT_USAGE},
               {"w1=", "names no dimension", "replicated", WEFT_USAGE},
               {"w1=cols@", "no axis ''", "x=2,y=2", WEFT_USAGE},
               {"w1=rows@x,cols@x", "axis 'x' twice", "once", WEFT_INVALID},
               {"w1=rows@x+x", "axis 'x' twice", "once", WEFT_INVALID}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    weft_graph *machine = NULL;
    assert_int_equal(partition_as(f->graph, "x=2,y=2", NULL, cases[c].request, &machine, NULL, f->diag),
                     cases[c].status);
    assert_null(machine);
    assert_messages_have(f->diag, cases[c].word, cases[c].hint, NULL);
    weft_diag_clear(f->diag);
  }
}

/* Both sides of a contradiction are named, and the place where they meet. */
static void test_contradictions(void **state) {
  fixture *f = *state;
  static const struct {
    const char *split, *requests, *first, *second, *place;
  } cases[] = {
      {NULL, "w1=cols@x w1=rows@x", "--shard w1=cols@x", "--shard w1=rows@x", "K of matmul 'h1'"},
      {NULL, "x=rows@x w1=cols@x", "--shard x=rows@x", "--shard w1=cols@x", "N of matmul 'h1'"},
      {NULL, "x=cols@x w1=rows@y", "--shard x=cols@x", "--shard w1=rows@y", "K of matmul 'h1'"},
      {NULL, "x=cols@x w1=replicated", "--shard x=cols@x", "--shard w1=replicated", "K of matmul 'h1'"},
      {NULL, "h1=cols@x w1=cols@y", "--shard h1=cols@x", "--shard w1=cols@y", "N of matmul 'h1'"},
      {"x=columns", "w2=rows@x", "--shard w2=rows@x", "--split x=columns", "N of matmul 'h2'"},
      {"x=columns", "w3=replicated", "--shard w3=replicated", "--split x=columns", "N of matmul 'h3'"},
      {"x=pipeline", "w2=rows@x", "--shard w2=rows@x", "--split x=pipeline", "mesh axis 'x'"},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    weft_graph *machine = NULL;
    assert_int_equal(partition_as(f->graph, "x=2,y=2", cases[c].split, cases[c].requests, &machine, NULL, f->diag),
                     WEFT_INVALID);
    assert_messages_have(f->diag, "contradiction", cases[c].first, cases[c].second, cases[c].place, NULL);
    weft_diag_clear(f->diag);
  }
}

/* ---- folds that may not be cut
 * ---------------------------------------------------------------------------------------- */

static void test_a_long_float_chain_is_refused(void **state) {
  fixture *f = *state;
  weft_graph *graph =
      build_mlp(&(mlp){.layers = 1, .widths = {784, 10}, .batch = 3, .dtype = WEFT_FP32, .segments = 1}, f->diag);
  weft_graph *machine = NULL;
  assert_int_equal(partition_as(graph, "x=2", "rows", NULL, &machine, NULL, f->diag), WEFT_INVALID);
  assert_messages_have(f->diag, "K of matmul 'h1'", "784", "--split rows", "rows or columns", NULL);
  weft_diag_clear(f->diag);
  assert_int_equal(partition_as(graph, "x=2", NULL, "w1=rows@x", &machine, NULL, f->diag), WEFT_INVALID);
  assert_messages_have(f->diag, "--shard w1=rows@x", NULL);
  machine = partitioned(graph, "x=2", NULL, NULL);
  assert_int_equal(count_ops(machine, WEFT_GRAPH_ALL_REDUCE, -1), 0);
  assert_true(same_results(graph, machine, 3));
  weft_graph_free(machine);
  machine = partitioned(graph, "x=1", "rows", NULL);
  weft_graph_free(machine);
  weft_graph_free(graph);
}

/* With one segment there is nothing to cut: the last chip, whose it is by the rule of borders, folds alone. */
static void test_one_segment_stays_on_the_last_chip(void **state) {
  fixture *f = *state;
  weft_graph *graph =
      build_mlp(&(mlp){.layers = 1, .widths = {33, 10}, .batch = 3, .dtype = WEFT_FP32, .bias = true}, f->diag);
  weft_graph *machine = partitioned(graph, "x=4", "rows", NULL);
  for (uint64_t o = 0; o < machine->op_count; o++) assert_int_equal(machine->ops[o].chip, 3);
  assert_true(find_value(machine, "y@3")->shard.writer);
  assert_true(same_results(graph, machine, 7));
  weft_graph_free(machine);
  weft_graph_free(graph);
}

/* Integers have one answer in any order, so their K is cut as fine as there are units. */
static void test_integer_folds_are_cut_finer(void **state) {
  fixture *f = *state;
  weft_graph *graph = build_mlp(&(mlp){.layers = 1, .widths = {784, 10}, .batch = 3, .dtype = WEFT_INT8}, f->diag);
  weft_graph *machine = partitioned(graph, "x=25", "rows", NULL);
  assert_int_equal(find_value(machine, "h1.partial@24") ? 0 : 1, 1); /* the output is called y */
  assert_int_equal(find_value(machine, "y.partial@24")->partial.of, 25);
  assert_int_equal(find_value(machine, "y.partial@24")->dtype, find_value(graph, "y")->dtype);
  for (uint32_t chip = 0; chip < 25; chip++) assert_int_equal(count_ops(machine, WEFT_GRAPH_MATMUL, (int)chip), 1);
  assert_true(same_results(graph, machine, 9));
  weft_graph_free(machine);
  weft_graph_free(graph);
}

/* ---- search
 * ----------------------------------------------------------------------------------------------------------- */

static void test_search_is_repeatable(void **state) {
  fixture *f = *state;
  weft_text first = {0}, second = {0};
  for (int i = 0; i < 2; i++) {
    weft_graph *machine = NULL;
    assert_int_equal(partition_as(f->graph, "x=4,y=2", NULL, NULL, &machine, i ? &second : &first, f->diag), WEFT_OK);
    weft_graph_dot(machine, i ? &second : &first);
    weft_graph_free(machine);
  }
  assert_string_equal(first.data, second.data);
  weft_text_free(&first);
  weft_text_free(&second);
}

static void test_explanation_names_choices_costs_and_runners_up(void **state) {
  fixture *f = *state;
  weft_text report = {0};
  weft_graph *machine = NULL;
  assert_int_equal(partition_as(f->graph, "x=4", NULL, "w3=replicated", &machine, &report, f->diag), WEFT_OK);
  static const char *const words[] = {
      "mesh x=4",      "target test", "matmul h1: ",        "runner-up ",
      " us (compute ", "Param w1 ",   "Activation biased1", "asked by --shard w3=replicated",
      "Output y "};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (!strstr(report.data, words[i])) fail_msg("'%s' is not in: %s", words[i], report.data);
  weft_graph_free(machine);
  weft_text_free(&report);
}

/* A machine with free links gains from every chip; one with dear links keeps to one. */
static void test_search_weighs_links(void **state) {
  fixture *f = *state;
  weft_target target = test_target;
  weft_partition_options options = {0};
  assert_int_equal(weft_mesh_parse("x=4", &options.mesh, f->diag), WEFT_OK);
  target.link_latency_seconds = 1;
  target.dram_bytes_per_second = 1e15;
  weft_graph *machine = NULL;
  assert_int_equal(weft_partition(f->graph, &options, &target, &machine, NULL, f->diag), WEFT_OK);
  assert_int_equal(count_ops(machine, WEFT_GRAPH_ALL_REDUCE, -1) + count_ops(machine, WEFT_GRAPH_ASSEMBLE, -1), 0);
  weft_graph_free(machine);
  target.link_latency_seconds = 0;
  target.link_bytes_per_second = 1e18;
  target.op_seconds = 0;
  target.dram_bytes_per_second = 1e9;
  assert_int_equal(weft_partition(f->graph, &options, &target, &machine, NULL, f->diag), WEFT_OK);
  for (uint32_t chip = 0; chip < 4; chip++) assert_true(count_ops(machine, WEFT_GRAPH_MATMUL, (int)chip) >= 3);
  weft_graph_free(machine);
}

static uint64_t bytes_on(const weft_graph *machine, uint32_t chip) {
  uint64_t bytes = 0;
  for (uint64_t v = 0; v < machine->value_count; v++) {
    uint64_t size = weft_format_bytes(machine->values[v].dtype);
    for (uint32_t d = 0; d < machine->values[v].rank; d++) size *= machine->values[v].extents[d];
    bytes += machine->values[v].chip == chip ? size : 0;
  }
  return bytes;
}

/* Never a plan over the memory of a chip, even where it would be the fastest. */
static void test_search_keeps_within_memory(void **state) {
  fixture *f = *state;
  weft_target target = test_target;
  weft_partition_options options = {0};
  assert_int_equal(weft_mesh_parse("x=8", &options.mesh, f->diag), WEFT_OK);
  target.link_latency_seconds = 1; /* replicated parameters would need no link */
  target.chip_bytes = 900000;      /* all parameters are 1.08 MB */
  weft_graph *machine = NULL;
  assert_int_equal(weft_partition(f->graph, &options, &target, &machine, NULL, f->diag), WEFT_OK);
  for (uint32_t chip = 0; chip < 8; chip++) assert_in_range(bytes_on(machine, chip), 1, target.chip_bytes);
  weft_graph_free(machine);
  target.chip_bytes = 1000;
  assert_int_equal(weft_partition(f->graph, &options, &target, &machine, NULL, f->diag), WEFT_INVALID);
  assert_null(machine);
  assert_messages_have(f->diag, "does not fit", "1000", "'test'", "more chips", NULL);
}

/* All to all grows with the square of the chips: refused before the machine graph does. */
static void test_gathers_from_thousands_of_chips_are_refused(void **state) {
  fixture *f = *state;
  weft_graph *graph =
                 build_mlp(&(mlp){.layers = 2, .widths = {8, 4096, 4096}, .batch = 1, .dtype = WEFT_FP32}, f->diag),
             *machine = NULL;
  assert_int_equal(partition_as(graph, "x=4096", "columns", NULL, &machine, NULL, f->diag), WEFT_INVALID);
  assert_null(machine);
  assert_messages_have(f->diag, "'h1'", "too many chips", "several axes", NULL);
  machine = partitioned(graph, "x=64,y=64", "x=batch,y=columns", NULL);
  weft_graph_free(machine);
  weft_graph_free(graph);
}

static void test_questions_that_make_no_sense(void **state) {
  fixture *f = *state;
  weft_partition_options options = {0};
  weft_graph *machine = NULL, *again = NULL;
  assert_int_equal(weft_partition(f->graph, &options, &test_target, &machine, NULL, f->diag), WEFT_USAGE);
  machine = partitioned(f->graph, "x=2", "rows", NULL);
  assert_int_equal(partition_as(machine, "x=2", "rows", NULL, &again, NULL, f->diag), WEFT_INVALID);
  assert_messages_have(f->diag, "already", NULL);
  weft_graph_free(machine);
}

#define RULE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      RULE(test_columns_cut_n_with_ceil_sized_parts),
      RULE(test_rows_follow_segment_borders),
      RULE(test_batch_cuts_only_inputs_and_outputs),
      RULE(test_column_row_needs_no_gather_between_its_layers),
      RULE(test_column_row_groups_on_a_square_mesh),
      RULE(test_pipeline_deals_out_layers_in_order),
      RULE(test_seven_layers_fill_every_stage),
      RULE(test_preset_mistakes),
      RULE(test_a_request_binds_and_spreads),
      RULE(test_a_request_spreads_back),
      RULE(test_requests_by_number_and_over_two_axes),
      RULE(test_replicated_is_kept),
      RULE(test_request_mistakes),
      RULE(test_contradictions),
      RULE(test_a_long_float_chain_is_refused),
      RULE(test_one_segment_stays_on_the_last_chip),
      RULE(test_integer_folds_are_cut_finer),
      RULE(test_search_is_repeatable),
      RULE(test_explanation_names_choices_costs_and_runners_up),
      RULE(test_search_weighs_links),
      RULE(test_search_keeps_within_memory),
      RULE(test_gathers_from_thousands_of_chips_are_refused),
      RULE(test_questions_that_make_no_sense),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
