/* Lifting Templates of other front ends, round trips over many extents, and what is refused. */
#include "support.h"
#include "template_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define E(...) ((const uint64_t[]){__VA_ARGS__})

static weft_program *read_case(const char *name, weft_diag *diag) {
  char path[512];
  snprintf(path, sizeof path, WEFT_SOURCE_DIR "/tests/cases/spatial/valid/%s.json", name);
  weft_program *program;
  expect_ok(weft_program_read_file(path, &program, diag), diag);
  return program;
}

static weft_graph *lift(const weft_program *program, weft_diag *diag) {
  weft_graph *graph;
  expect_ok(weft_graph_lift(program, &graph, diag), diag);
  return graph;
}

static weft_program *lower(const weft_graph *graph, weft_diag *diag) {
  weft_program *program;
  expect_ok(weft_graph_lower(graph, &program, diag), diag);
  return program;
}

/** Integers small enough for the cases' own requants. */
static void make_small(weft_array_set *set) {
  for (uint64_t i = 0; i < set->count; i++) {
    weft_array *a = &set->items[i];
    for (uint64_t e = 0; !weft_format_is_float(a->dtype) && e < weft_array_elements(a); e++)
      weft_store_i64(a->dtype, a->data, e, weft_load_i64(a->dtype, a->data, e) % 9);
  }
}

/** Lifts a case, and lifts what is lowered from that again: both graphs are equal, and both programs do the same. */
static weft_graph *lift_case(const char *name, weft_diag *diag) {
  weft_program *program = read_case(name, diag);
  weft_graph *graph = lift(program, diag);
  weft_program *again = lower(graph, diag);
  weft_graph *second = lift(again, diag);
  expect_equal_graphs(graph, second);
  weft_array_set in = {0}, expected = {0}, out = {0};
  chance c = {99};
  random_inputs(&c, graph, &in);
  make_small(&in);
  expect_ok(weft_graph_interpret(graph, &in, &expected, diag), diag);
  template_run(again, &in, &out);
  expect_equal_sets(&expected, &out);
  weft_array_set_free(&in);
  weft_array_set_free(&expected);
  weft_array_set_free(&out);
  weft_graph_free(second);
  weft_program_free(again);
  weft_program_free(program);
  return graph;
}

static void expect_ops(const weft_graph *g, uint32_t count, const weft_graph_op_kind *kinds) {
  assert_int_equal(g->op_count, count);
  for (uint32_t i = 0; i < count; i++) assert_int_equal(g->ops[i].kind, kinds[i]);
}
#define OPS(...)                                                                                                       \
  sizeof((const weft_graph_op_kind[]){__VA_ARGS__}) / sizeof(weft_graph_op_kind), (const weft_graph_op_kind[]) {       \
    __VA_ARGS__                                                                                                        \
  }

static void foreign_products(void **state) {
  weft_diag *diag = *state;
  weft_graph *g = lift_case("template-gemm", diag);
  expect_ops(g, OPS(WEFT_GRAPH_MATMUL));
  assert_int_equal(g->ops[0].segments, 1); // a foreign chain stays one
  assert_string_equal(g->values[2].name, "C");
  assert_int_equal(g->values[0].init.kind, WEFT_INIT_PATTERN);
  weft_graph_free(g);
  g = lift_case("template-gemm-ragged", diag);
  expect_ops(g, OPS(WEFT_GRAPH_MATMUL));
  assert_int_equal(g->values[2].dtype, WEFT_BF16);
  assert_int_equal(g->ops[0].factors[2].extent, 65);
  weft_graph_free(g);
}

static void foreign_epilogues(void **state) {
  weft_graph *g = lift_case("template-int8-epilogue", *state);
  expect_ops(g, OPS(WEFT_GRAPH_MATMUL, WEFT_GRAPH_BIAS, WEFT_GRAPH_RELU, WEFT_GRAPH_REQUANT));
  assert_int_equal(g->ops[3].m, 1431655766);
  assert_int_equal(g->ops[3].s, 40);
  assert_int_equal(g->ops[0].acc, WEFT_ACC_I32);
  weft_graph_free(g);
}

static void foreign_bodies(void **state) {
  weft_diag *diag = *state;
  weft_graph *g = lift_case("template-elementwise", diag);
  expect_ops(g, OPS(WEFT_GRAPH_POINTWISE));
  assert_int_equal(g->ops[0].body.node_count, 5);
  weft_graph_free(g);
  g = lift_case("template-elementwise-zero-rows", diag);
  expect_ops(g, OPS(WEFT_GRAPH_POINTWISE));
  weft_graph_free(g);
  g = lift_case("template-sections", diag);
  expect_ops(g, OPS(WEFT_GRAPH_POINTWISE, WEFT_GRAPH_POINTWISE, WEFT_GRAPH_POINTWISE));
  assert_int_equal(g->section_count, 3);
  assert_string_equal(g->section_names[1], "layer 1");
  weft_graph_free(g);
}

/** What the foreign Templates compute, from their own stages: the interpreter of the lifted graph must agree. */
static void foreign_stages_agree(void **state) {
  static const char *const names[] = {"template-sections",
                                      "template-gemm",
                                      "template-gemm-ragged",
                                      "template-elementwise",
                                      "template-elementwise-zero-rows",
                                      "template-int8-epilogue"};
  weft_diag *diag = *state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    weft_program *program = read_case(names[i], diag);
    weft_graph *graph = lift(program, diag);
    weft_array_set in = {0}, expected = {0}, out = {0};
    chance c = {i + 5};
    random_inputs(&c, graph, &in);
    make_small(&in);
    template_run(program, &in, &expected);
    expect_ok(weft_graph_interpret(graph, &in, &out, diag), diag);
    expect_equal_sets(&expected, &out);
    weft_array_set_free(&in);
    weft_array_set_free(&expected);
    weft_array_set_free(&out);
    weft_graph_free(graph);
    weft_program_free(program);
  }
}

/* ---- refusals -----------------------------------------------------------------------------------------------------
 */

static void refused_as(weft_diag *diag, const weft_program *program, const char *message) {
  weft_graph *graph;
  weft_diag_clear(diag);
  assert_int_equal(weft_graph_lift(program, &graph, diag), WEFT_INVALID);
  assert_null(graph);
  expect_message(diag, message);
}

static void what_is_not_recognised_is_named(void **state) {
  static const struct {
    const char *name, *message;
  } cases[] = {
      {"template-softmax",
       "stage 'softmax.op4' cannot be lifted: it reduces otherwise than along the columns of a row of tiles"},
      {"template-scalar", "cannot be lifted: a scalar body has no counterpart in a graph"},
      {"template-scalar-all-cells", "cannot be lifted: a scalar body has no counterpart in a graph"},
      {"template-generic-all", "stage 'argmax.store' cannot be lifted: it does not walk rows of 'argmax'"},
      {"template-allreduce", "stage 'all_reduce' cannot be lifted: operand 0 is no partial tensor"},
      {"tiled-gemm", "program 'gemm' cannot be lifted: it is past its Template"},
      {"placed-gemm-1site", "it is past its Template"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    weft_program *program = read_case(cases[i].name, *state);
    refused_as(*state, program, cases[i].message);
    weft_program_free(program);
  }
}

static weft_compute_op *compute_of(weft_program *p, uint32_t stage) {
  return (weft_compute_op *)(uintptr_t)p->stages[stage].compute;
}

/** One change of a Template each, which validates and means something that a graph does not say. */
static void strange_patterns_are_refused(void **state) {
  weft_program *p = read_case("template-gemm", *state);
  p->stages[0].load.pattern.origin.base = 1;
  refused_as(*state, p, "stage 'matmul' cannot be lifted: its loads do not walk whole operands");
  p->stages[0].load.pattern.origin.base = 0;
  p->stages[1].load.pattern.stride_w = 2;
  refused_as(*state, p, "stage 'matmul' cannot be lifted: its loads do not walk whole operands");
  p->stages[1].load.pattern.stride_w = 1;
  p->stages[1].load.num_blocks = 2;
  refused_as(*state, p, "stage 'matmul' cannot be lifted: its loads do not walk whole operands");
  p->stages[1].load.num_blocks = 3;
  compute_of(p, 2)->matmul.sub_blocks.first = 1;
  refused_as(*state, p, "stage 'matmul' cannot be lifted: its sub-blocks are not those of its store");
  compute_of(p, 2)->matmul.sub_blocks.first = 2;
  p->buffers[0].dtype = WEFT_BF16;
  weft_graph *graph;
  assert_int_equal(weft_graph_lift(p, &graph, *state), WEFT_INVALID);
  p->buffers[0].dtype = WEFT_FP32;
  p->stages[3].store.pattern.block_w = 2;
  refused_as(*state, p, "stage 'store' cannot be lifted: it does not walk rows of 'C' block by block");
  p->stages[3].store.pattern.block_w = 1;
  weft_graph_free(lift(p, *state));
  weft_program_free(p);
}

static void strange_maps_are_refused(void **state) {
  weft_program *p = read_case("template-elementwise", *state);
  weft_generic *g = &compute_of(p, 2)->generic;
  ((weft_elem_access *)(uintptr_t)g->ins)[1].base = 1;
  refused_as(*state, p, "stage 'op2' cannot be lifted: an operand is read neither whole");
  ((weft_elem_access *)(uintptr_t)g->ins)[1].base = 0;
  ((weft_iter *)(uintptr_t)g->iters)[1].extent = 64;
  refused_as(*state, p, "stage 'op2' cannot be lifted: it does not iterate over the page it fills");
  weft_program_free(p);
}

/* ---- round trips --------------------------------------------------------------------------------------------------
 */

static const uint64_t extents[] = {0, 1, 10, 31, 32, 33, 65, 784};
#define EXTENTS (sizeof extents / sizeof *extents)

static void round_trip(const weft_graph *graph, weft_diag *diag) {
  weft_program *program = lower(graph, diag);
  weft_text text = {0};
  weft_program_write(program, &text);
  weft_program *copy;
  expect_ok(weft_program_read("round trip", text.data, text.length, &copy, diag), diag);
  weft_graph *lifted = lift(copy, diag);
  expect_equal_graphs(graph, lifted);
  weft_graph_free(lifted);
  weft_program_free(copy);
  weft_program_free(program);
  weft_text_free(&text);
}

static void networks_of_all_extents(void **state) {
  static const weft_format formats[] = {WEFT_FP32, WEFT_BF16, WEFT_INT8};
  for (size_t a = 0; a < EXTENTS; a++)
    for (size_t b = 0; b < EXTENTS; b++)
      for (size_t f = 0; f < 3; f++) {
        const uint64_t layers[] = {extents[a], extents[b], extents[(a + b) % EXTENTS]};
        const weft_mlp_options options = {.layers = layers,
                                          .layer_count = 3,
                                          .batch = extents[(a * 3 + b) % EXTENTS],
                                          .dtype = formats[f],
                                          .bias = (a + b) % 3 != 0,
                                          .relu = b % 2};
        weft_graph *graph;
        expect_ok(weft_graph_new_mlp(&options, "y", &graph, *state), *state);
        round_trip(graph, *state);
        weft_graph_free(graph);
      }
}

static void all_ranks(void **state) {
  static const uint64_t shape[] = {2, 3, 5, 7, 1, 2, 3, 4};
  for (uint32_t rank = 0; rank <= 8; rank++) {
    weft_graph *g = weft_graph_new("ranks", *state);
    weft_graph_section(g, "main");
    uint32_t x = weft_graph_input(g, "x", WEFT_FP32, rank, shape), y = weft_graph_relu(g, "act", x);
    if (rank >= 2) y = weft_graph_matmul(g, "dot", x, weft_graph_param(g, "w", WEFT_FP32, 2, E(shape[rank - 1], 9)));
    weft_graph_output(g, y, "y");
    if (rank >= 2) { // the relu is dead: lowering leaves it out
      weft_program *program = lower(g, *state);
      weft_graph *lifted = lift(program, *state);
      assert_int_equal(lifted->op_count, 1);
      assert_int_equal(lifted->values[lifted->ops[0].out].rank, rank);
      assert_int_equal(lifted->values[lifted->ops[0].out].extents[0], shape[0]);
      weft_graph_free(lifted);
      weft_program_free(program);
    } else if (rank) {
      round_trip(g, *state);
    } else { // a scalar is a plane of one element
      weft_program *program = lower(g, *state);
      assert_true(program->tensors[0].elems.rows == 1 && program->tensors[0].elems.cols == 1 &&
                  !program->tensors[0].shape);
      weft_program_free(program);
    }
    weft_graph_free(g);
  }
}

static uint32_t block_op(weft_graph *g, weft_graph_op_kind kind, const char *name, uint32_t count, const uint32_t *ins,
                         const uint64_t (*starts)[WEFT_MAX_RANK], uint32_t rank, const uint64_t *shape) {
  weft_value v = {.name = name, .role = WEFT_ROLE_ACTIVATION, .dtype = g->values[ins[0]].dtype, .rank = rank};
  memcpy(v.extents, shape, rank * sizeof *shape);
  weft_graph_op op = {
      .kind = kind, .name = name, .ins = ins, .in_count = count, .starts = starts, .out = weft_graph_add_value(g, &v)};
  return weft_graph_add_op(g, &op) == WEFT_NONE ? WEFT_NONE : op.out;
}

static void run_and_compare(const weft_graph *g, weft_diag *diag) {
  weft_program *program = lower(g, diag);
  weft_array_set in = {0}, expected = {0}, out = {0};
  chance c = {3};
  random_inputs(&c, g, &in);
  expect_ok(weft_graph_interpret(g, &in, &expected, diag), diag);
  template_run(program, &in, &out);
  expect_equal_sets(&expected, &out);
  weft_array_set_free(&in);
  weft_array_set_free(&expected);
  weft_array_set_free(&out);
  weft_program_free(program);
}

static void blocks_of_many_dimensions(void **state) {
  weft_graph *g = weft_graph_new("blocks", *state);
  weft_graph_section(g, "main");
  uint32_t x = weft_graph_input(g, "x", WEFT_BF16, 3, E(8, 5, 40));
  static const uint64_t rows[1][WEFT_MAX_RANK] = {{2, 0, 3}}, middle[1][WEFT_MAX_RANK] = {{6, 1, 0}},
                        pieces[2][WEFT_MAX_RANK] = {{0, 0, 0}, {3, 0, 0}};
  weft_graph_output(g, block_op(g, WEFT_GRAPH_SLICE, "a", 1, &x, rows, 3, E(3, 5, 30)), "a");
  weft_graph_output(g, block_op(g, WEFT_GRAPH_SLICE, "b", 1, &x, middle, 3, E(1, 3, 40)), "b");
  const uint32_t parts[] = {weft_graph_param(g, "p", WEFT_BF16, 3, E(3, 7, 33)),
                            weft_graph_param(g, "q", WEFT_BF16, 3, E(6, 7, 33))};
  weft_graph_output(g, block_op(g, WEFT_GRAPH_ASSEMBLE, "c", 2, parts, pieces, 3, E(9, 7, 33)), "c");
  round_trip(g, *state);
  run_and_compare(g, *state);
  weft_graph_output(g, block_op(g, WEFT_GRAPH_SLICE, "d", 1, &x, rows, 3, E(3, 2, 30)), "d");
  weft_program *program;
  assert_int_equal(weft_graph_lower(g, &program, *state), WEFT_INVALID);
  expect_message(*state, "slice 'd': the block [3, 2, 30] of 'x' [8, 5, 40] is no rectangle of its plane");
  weft_graph_free(g);
}

/** As many pieces as a large machine has chips: bodies stay shallow, nothing is quadratic. */
static void thousands_of_pieces(void **state) {
  enum { PIECES = 4000 };
  static uint64_t columns[PIECES][WEFT_MAX_RANK], bands[PIECES][WEFT_MAX_RANK];
  static uint32_t narrow[PIECES], low[PIECES];
  weft_graph *g = weft_graph_new("many", *state);
  weft_graph_section(g, "main");
  for (uint32_t i = 0; i < PIECES; i++) {
    char name[2][24];
    snprintf(name[0], sizeof name[0], "n%u", i);
    snprintf(name[1], sizeof name[1], "l%u", i);
    narrow[i] = weft_graph_input(g, name[0], WEFT_INT8, 2, E(3, 2));
    low[i] = weft_graph_input(g, name[1], WEFT_INT8, 2, E(5, 4));
    columns[i][1] = 2 * i;
    bands[i][0] = 5 * i;
  }
  weft_graph_output(g,
                    block_op(g, WEFT_GRAPH_ASSEMBLE, "wide", PIECES, narrow, (const uint64_t(*)[WEFT_MAX_RANK])columns,
                             2, E(3, 2 * PIECES)),
                    "wide");
  weft_graph_output(g,
                    block_op(g, WEFT_GRAPH_ASSEMBLE, "tall", PIECES, low, (const uint64_t(*)[WEFT_MAX_RANK])bands, 2,
                             E(5 * PIECES, 4)),
                    "tall");
  round_trip(g, *state);
  weft_graph_free(g);
}

static void leading_dimensions_are_not_mixed(void **state) {
  weft_graph *g = weft_graph_new("mixed", *state);
  const uint32_t ins[] = {weft_graph_input(g, "a", WEFT_FP32, 3, E(2, 3, 4)),
                          weft_graph_input(g, "b", WEFT_FP32, 3, E(2, 1, 4))};
  const weft_body_node nodes[] = {
      {.kind = WEFT_BODY_OPERAND}, {.kind = WEFT_BODY_OPERAND, .value = 1}, {.kind = WEFT_BODY_ADD, .child = {0, 1}}};
  weft_graph_output(g, weft_graph_pointwise(g, "sum", ins, 2, &(weft_body){nodes, 3}, WEFT_FP32), "y");
  weft_program *program;
  assert_int_equal(weft_graph_lower(g, &program, *state), WEFT_INVALID);
  expect_message(*state,
                 "pointwise 'sum': 'b' [2, 1, 4] is broadcast along some of the leading dimensions of [2, 3, 4]");
  weft_graph_free(g);
}

/** An output that is read is kept as an activation, and copied. */
static void outputs_may_be_read(void **state) {
  weft_graph *g = weft_graph_new("kept", *state);
  weft_graph_section(g, "one");
  uint32_t h = weft_graph_relu(g, "h", weft_graph_input(g, "x", WEFT_FP32, 2, E(40, 5)));
  weft_graph_section(g, "two");
  uint32_t y = weft_graph_relu(g, "y", h);
  weft_graph_output(g, h, "hidden");
  weft_graph_output(g, y, "result");
  weft_program *program = lower(g, *state);
  assert_int_equal(program->section_count, 2);
  weft_array_set in = {0}, expected = {0}, out = {0};
  chance c = {3};
  random_inputs(&c, g, &in);
  expect_ok(weft_graph_interpret(g, &in, &expected, *state), *state);
  template_run(program, &in, &out);
  expect_equal_sets(&expected, &out);
  assert_int_equal(out.count, 2);
  weft_array_set_free(&in);
  weft_array_set_free(&expected);
  weft_array_set_free(&out);
  weft_program_free(program);
  weft_graph_free(g);
}

static void sections_are_cut_where_they_read_themselves(void **state) {
  weft_graph *g = weft_graph_new("cut", *state);
  weft_graph_section(g, "all");
  uint32_t x = weft_graph_input(g, "x", WEFT_FP32, 2, E(3, 4)), w = weft_graph_param(g, "w", WEFT_FP32, 2, E(4, 4));
  uint32_t y = weft_graph_matmul(g, "second", weft_graph_matmul(g, "first", x, w), w);
  weft_graph_output(g, weft_graph_relu(g, "act", y), "y");
  weft_program *program = lower(g, *state);
  assert_int_equal(program->section_count, 2);
  assert_string_equal(program->sections[0].name, "all");
  assert_string_equal(program->sections[1].name, "all.1");
  assert_int_equal(program->sections[1].output, 3);
  weft_program_free(program);
  weft_graph_free(g);
}

static int set_up(void **state) {
  *state = weft_diag_new();
  return 0;
}

static int tear_down(void **state) {
  weft_diag_free(*state);
  return 0;
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(foreign_products),
      TEST(foreign_epilogues),
      TEST(foreign_bodies),
      TEST(foreign_stages_agree),
      TEST(what_is_not_recognised_is_named),
      TEST(strange_patterns_are_refused),
      TEST(strange_maps_are_refused),
      TEST(networks_of_all_extents),
      TEST(all_ranks),
      TEST(blocks_of_many_dimensions),
      TEST(thousands_of_pieces),
      TEST(leading_dimensions_are_not_mixed),
      TEST(outputs_may_be_read),
      TEST(sections_are_cut_where_they_read_themselves),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
