/* Reduces: what the builder makes of them, what the interpreter computes, how they are spelled and read back. */
#include "support.h"

#include <math.h>
#include <string.h>

typedef struct fixture {
  weft_diag *diag;
  weft_graph *graph;
  weft_arena *arena;
} fixture;

static int setup(void **state) {
  static fixture f;
  f = (fixture){.diag = weft_diag_new(), .arena = weft_arena_new()};
  f.graph = weft_graph_new("g", f.diag);
  *state = &f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  weft_graph_free(f->graph);
  weft_arena_free(f->arena);
  weft_diag_free(f->diag);
  return 0;
}

static uint32_t input(fixture *f, const char *name, weft_format dtype, uint64_t rows, uint64_t cols) {
  return weft_graph_input(f->graph, name, dtype, 2, (const uint64_t[]){rows, cols});
}

static uint32_t reduce(fixture *f, const uint32_t *ins, uint32_t count, const char *body, weft_pool pool,
                       weft_format dtype) {
  weft_body nodes = weft_body_write(f->arena, body);
  assert_true(nodes.node_count > 0);
  uint32_t out = weft_graph_reduce(f->graph, "fold", ins, count, &nodes, pool, dtype);
  if (out != WEFT_NONE) weft_graph_output(f->graph, out, "y");
  return out;
}

/* ---- bodies from text ---- */

static void test_bodies_from_text(void **state) {
  fixture *f = *state;
  weft_body body = weft_body_write(f->arena, "$0 $1 sub exp 2.5 max");
  assert_int_equal(body.node_count, 6);
  assert_int_equal(body.nodes[2].kind, WEFT_BODY_SUB);
  assert_int_equal(body.nodes[2].child[1], 1);
  assert_int_equal(body.nodes[3].sfpu, WEFT_SFPU_EXP);
  double constant;
  memcpy(&constant, &body.nodes[4].value, sizeof constant);
  assert_true(constant == 2.5);
  body = weft_body_write(f->arena, "$0 $1 collt:$2 $0 rowge:7");
  assert_true(body.nodes[2].pred.operand_bound && !body.nodes[2].pred.ge && body.nodes[2].pred.bound == 2);
  assert_true(!body.nodes[4].pred.operand_bound && body.nodes[4].pred.ge && body.nodes[4].pred.bound == 7);
  body = weft_body_write(f->arena, "$0 rsqrt:10000:256 shr:3");
  assert_true(body.nodes[1].eps_nano == 10000 && body.nodes[1].over == 256 && body.nodes[2].value == 3);
  static const char *const malformed[] = {"",           "add",          "$0 $1",         "$x", "$0 nosuch",
                                          "$0 rsqrt:1", "$0 $0 collt:", "$0 $0 colxx:3", "1e"};
  for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
    assert_int_equal(weft_body_write(f->arena, malformed[i]).node_count, 0);
}

/* ---- the builder ---- */

static void test_extents_and_segments(void **state) {
  fixture *f = *state;
  uint32_t x = input(f, "x", WEFT_FP32, 5, 300), column = input(f, "c", WEFT_FP32, 5, 1);
  uint32_t y = reduce(f, (const uint32_t[]){column, x}, 2, "$1 $0 sub", WEFT_POOL_SUM, WEFT_FP32);
  const weft_value *out = &f->graph->values[y];
  assert_true(out->rank == 2 && out->extents[0] == 5 && out->extents[1] == 1);
  const weft_graph_op *op = &f->graph->ops[0];
  assert_int_equal(op->segments, 4);
  assert_int_equal(op->factor_count, 2);
  assert_true(op->factors[1].reduce && op->factors[1].extent == 300 && op->factors[1].pool == WEFT_POOL_SUM);
  assert_int_equal(op->out_factors[1], WEFT_NO_FACTOR);
  assert_int_equal(op->in_factors[0][1], WEFT_NO_FACTOR);
  assert_int_equal(op->in_factors[1][1], 1);
  expect_ok(weft_graph_check(f->graph, f->diag), f->diag);
}

static void refused(fixture *f, uint32_t x, const char *body, weft_pool pool, weft_format dtype, const char *why) {
  assert_int_equal(reduce(f, &x, 1, body, pool, dtype), WEFT_NONE);
  expect_message(f->diag, why);
}

static void test_refusals(void **state) {
  fixture *f = *state;
  uint32_t x = input(f, "x", WEFT_FP32, 5, 40), none = input(f, "n", WEFT_INT32, 5, 0);
  refused(f, x, "$0", WEFT_POOL_AND, WEFT_FP32, "cannot fold with pool And");
  refused(f, x, "$0", WEFT_POOL_ARG_MAX, WEFT_FP32, "an index cannot be a float");
  refused(f, x, "$0", WEFT_POOL_SUM, WEFT_INT32, "computed in floats cannot give Int32");
  refused(f, x, "$0 0 collt:3", WEFT_POOL_SUM, WEFT_FP32, "selects by position");
  refused(f, none, "$0", WEFT_POOL_ARG_MAX, WEFT_INT32, "nothing has no ArgMax");
  refused(f, none, "$0", WEFT_POOL_MAX, WEFT_INT32, "nothing has no Max");
}

/* ---- values ---- */

static void fill(weft_array_set *set, const char *name, uint64_t rows, uint64_t cols, const float *values) {
  weft_array *array = weft_array_set_add(set, name, WEFT_FP32, 2, (const uint64_t[]){rows, cols});
  if (rows && cols) memcpy(array->data, values, rows * cols * sizeof *values);
}

static float interpreted(fixture *f, const weft_array_set *in) {
  weft_array_set out = {0};
  expect_ok(weft_graph_interpret(f->graph, in, &out, f->diag), f->diag);
  const weft_array *y = weft_array_set_find(&out, "y");
  float value = y->dtype == WEFT_INT32 ? (float)*(const int32_t *)y->data : *(const float *)y->data;
  weft_array_set_free(&out);
  return value;
}

static float folded(const float *values, uint64_t count, const char *body, weft_pool pool, uint32_t segments) {
  fixture f = {.diag = weft_diag_new(), .arena = weft_arena_new()};
  f.graph = weft_graph_new("g", f.diag);
  weft_array_set in = {0};
  uint32_t x = input(&f, "x", WEFT_FP32, 1, count);
  reduce(&f, &x, 1, body, pool, pool == WEFT_POOL_ARG_MAX ? WEFT_INT32 : WEFT_FP32);
  if (pool == WEFT_POOL_SUM) f.graph->ops[0].segments = segments;
  fill(&in, "x", 1, count, values);
  float value = interpreted(&f, &in);
  weft_array_set_free(&in);
  weft_graph_free(f.graph);
  weft_arena_free(f.arena);
  weft_diag_free(f.diag);
  return value;
}

static void test_pools(void **state) {
  (void)state;
  const float plain[] = {1, -3, 2.5f, 2.5f}, nan[] = {1, NAN, 7}, nan_first[] = {NAN, 5}, zeros[] = {-0.0f, -0.0f};
  assert_true(folded(plain, 4, "$0 $0 mul", WEFT_POOL_SUM, 0) == 22.5f);
  assert_true(folded(plain, 4, "$0", WEFT_POOL_MAX, 0) == 2.5f && folded(plain, 4, "$0", WEFT_POOL_MIN, 0) == -3);
  assert_true(folded(plain, 4, "$0", WEFT_POOL_ARG_MAX, 0) == 2);
  assert_true(isnan(folded(nan, 3, "$0", WEFT_POOL_MAX, 0)) && folded(nan, 3, "$0", WEFT_POOL_ARG_MAX, 0) == 2);
  assert_true(folded(nan_first, 2, "$0", WEFT_POOL_ARG_MAX, 0) == 0);
  assert_false(signbit(folded(zeros, 2, "$0", WEFT_POOL_SUM, 0)));
  assert_true(signbit(folded(zeros, 2, "$0", WEFT_POOL_MAX, 0)));
  assert_true(folded(NULL, 0, "$0", WEFT_POOL_SUM, 1) == 0 && folded(NULL, 0, "$0", WEFT_POOL_MAX, 0) == -INFINITY);
}

/** 2^24, then ones: a chain loses each of them, lanes keep most. */
static void test_chains_and_lanes(void **state) {
  (void)state;
  float values[33] = {0x1p24f};
  for (int i = 1; i < 33; i++) values[i] = 1;
  assert_true(folded(values, 33, "$0", WEFT_POOL_SUM, 0) == 0x1p24f);
  assert_true(folded(values, 33, "$0", WEFT_POOL_SUM, 1) == 0x1p24f + 30);
}

/* ---- lowered and lifted ---- */

static void test_lift_gives_the_graph_again(void **state) {
  fixture *f = *state;
  uint32_t x = input(f, "x", WEFT_FP32, 40, 300), row = input(f, "r", WEFT_FP32, 1, 300);
  weft_graph_section(f->graph, "first");
  weft_body squares = weft_body_write(f->arena, "$0 $1 sub $0 mul"),
            root = weft_body_write(f->arena, "$0 rsqrt:1000:300");
  uint32_t s = weft_graph_reduce(f->graph, "s", (const uint32_t[]){x, row}, 2, &squares, WEFT_POOL_SUM, WEFT_FP32);
  uint32_t y = weft_graph_pointwise(f->graph, "root", &s, 1, &root, WEFT_FP32);
  weft_graph_output(f->graph, y, "y");
  weft_body all = weft_body_write(f->arena, "$0");
  weft_graph_section(f->graph, "second");
  uint32_t best = weft_graph_reduce(f->graph, "best", &x, 1, &all, WEFT_POOL_ARG_MAX, WEFT_INT32);
  weft_graph_output(f->graph, best, "index");
  weft_program *program;
  weft_graph *lifted;
  expect_ok(weft_graph_lower(f->graph, &program, f->diag), f->diag);
  assert_int_equal(program->section_count, 2); // the root is the sum's epilogue
  expect_ok(weft_graph_lift(program, &lifted, f->diag), f->diag);
  expect_equal_graphs(f->graph, lifted);
  weft_graph_free(lifted);
  weft_program_free(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_bodies_from_text, setup, teardown),
      cmocka_unit_test_setup_teardown(test_extents_and_segments, setup, teardown),
      cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
      cmocka_unit_test(test_pools),
      cmocka_unit_test(test_chains_and_lanes),
      cmocka_unit_test_setup_teardown(test_lift_gives_the_graph_again, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
