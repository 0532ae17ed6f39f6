/* The builder and weft_graph_check: shapes, formats and factors; every refusal with its words. */
#include "support.h"

#include <string.h>

typedef struct fixture {
  weft_diag *diag;
  weft_graph *graph;
} fixture;

static int set_up(void **state) {
  static fixture f;
  f.diag = weft_diag_new();
  f.graph = weft_graph_new("test", f.diag);
  weft_graph_section(f.graph, "main");
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  weft_graph_free(f->graph);
  weft_diag_free(f->diag);
  return 0;
}

#define SETUP                                                                                                          \
  fixture *f = *state;                                                                                                 \
  weft_graph *g = f->graph
#define E(...) ((const uint64_t[]){__VA_ARGS__})

static uint32_t input(weft_graph *g, const char *name, weft_format dtype, uint64_t rows, uint64_t cols) {
  return weft_graph_input(g, name, dtype, 2, E(rows, cols));
}

static void is_value(const weft_graph *g, uint32_t v, weft_format dtype, uint32_t rank, const uint64_t *extents) {
  assert_int_not_equal(v, WEFT_NONE);
  assert_int_equal(g->values[v].dtype, dtype);
  assert_int_equal(g->values[v].rank, rank);
  for (uint32_t d = 0; d < rank; d++) assert_int_equal(g->values[v].extents[d], extents[d]);
}

static void matmul_shapes(void **state) {
  SETUP;
  uint32_t a = weft_graph_input(g, "a", WEFT_BF16, 3, E(2, 5, 200)),
           b = weft_graph_param(g, "b", WEFT_BF16, 2, E(200, 7));
  uint32_t y = weft_graph_matmul(g, "y", a, b);
  is_value(g, y, WEFT_FP32, 3, E(2, 5, 7));
  const weft_graph_op *op = &g->ops[g->values[y].producer];
  assert_int_equal(op->acc, WEFT_ACC_F32);
  assert_int_equal(op->segments, 2);
  assert_int_equal(op->factor_count, 4);
  assert_int_equal(op->factors[3].extent, 200);
  assert_true(op->factors[3].reduce);
  assert_int_equal(op->in_factors[0][2], 3);
  assert_int_equal(op->in_factors[1][0], 3);
  assert_int_equal(op->in_factors[1][1], 2);
  assert_int_equal(op->out_factors[1], 1);
}

static void integer_accumulators_follow_ranges(void **state) {
  SETUP;
  const uint64_t k = 200000; // 200000 * 128 * 128 leaves 32 bits, 200000 * 10 * 10 does not
  uint32_t a = input(g, "a", WEFT_INT8, 1, k), b = weft_graph_param(g, "b", WEFT_INT8, 2, E(k, 1));
  uint32_t wide = weft_graph_matmul(g, "wide", a, b);
  is_value(g, wide, WEFT_INT64, 2, E(1, 1));
  assert_int_equal(g->ops[g->values[wide].producer].acc, WEFT_ACC_I64);
  weft_graph_range(g, a, -10, 10);
  weft_graph_range(g, b, -10, 10);
  uint32_t narrow = weft_graph_matmul(g, "narrow", a, b);
  is_value(g, narrow, WEFT_INT32, 2, E(1, 1));
  assert_int_equal(g->ops[g->values[narrow].producer].acc, WEFT_ACC_I32);
}

static void requant_widens_where_it_must(void **state) {
  SETUP;
  uint32_t x = input(g, "x", WEFT_INT32, 1, 1);
  is_value(g, weft_graph_requant(g, NULL, x, 1000, 5), WEFT_INT64, 2, E(1, 1));
  is_value(g, weft_graph_requant(g, NULL, x, 1000, 10), WEFT_INT32, 2, E(1, 1));
  weft_graph_range(g, x, -100, 100);
  is_value(g, weft_graph_requant(g, NULL, x, 1000, 5), WEFT_INT32, 2, E(1, 1));
  assert_string_equal(g->ops[0].name, "requant0");
}

static void requant_products_stay_in_64_bits(void **state) {
  SETUP;
  const int64_t most = INT64_C(1) << 32;
  uint32_t x = input(g, "x", WEFT_INT32, 1, 1);
  is_value(g, weft_graph_requant(g, "largest", x, most, 40), WEFT_INT32, 2, E(1, 1));
  is_value(g, weft_graph_requant(g, "least", x, 1 - most, 40), WEFT_INT32, 2, E(1, 1));
  assert_int_equal(weft_graph_requant(g, "r", x, most + 1, 40), WEFT_NONE);
  expect_message(f->diag, "requant 'r': 'x' may be -2147483648..2147483647: times 4294967297 that leaves 64 bits");
  weft_diag_clear(f->diag);
  assert_int_equal(weft_graph_requant(g, "r", x, -most, 40), WEFT_NONE);
  uint32_t narrow = input(g, "narrow", WEFT_INT8, 1, 1);
  weft_graph_range(g, narrow, -3, 3);
  assert_int_equal(weft_graph_requant(g, "r", narrow, INT64_MAX / 3 + 1, 60), WEFT_NONE);
}

static void outputs_have_names_of_their_own(void **state) {
  SETUP;
  static const char *const wrong[] = {"", ".", "/y", "y/", "a//b", "a/./b", "\xc0\x80"};
  uint32_t y = weft_graph_relu(g, "y", input(g, "x", WEFT_INT32, 1, 1));
  weft_graph_output(g, y, "a/..b/\xc3\xa9\x1b");
  assert_int_equal(weft_graph_check(g, f->diag), WEFT_OK);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    g->values[y].name = wrong[i];
    assert_int_equal(weft_graph_check(g, f->diag), WEFT_INVALID);
    assert_non_null(strstr(weft_diag_message(f->diag, 0)->text, "is no name for a dataset"));
    weft_diag_clear(f->diag);
  }
  g->values[y].name = "x";
  assert_int_equal(weft_graph_check(g, f->diag), WEFT_INVALID);
  expect_message(f->diag, "two inputs, parameters or outputs are called 'x'");
}

static void pointwise_broadcasts(void **state) {
  SETUP;
  uint32_t ins[] = {weft_graph_input(g, "a", WEFT_FP32, 3, E(4, 1, 6)), weft_graph_input(g, "b", WEFT_FP32, 2, E(5, 6)),
                    weft_graph_input(g, "c", WEFT_INT8, 0, NULL)};
  const weft_body_node nodes[] = {{.kind = WEFT_BODY_OPERAND, .value = 0},
                                  {.kind = WEFT_BODY_OPERAND, .value = 1},
                                  {.kind = WEFT_BODY_ADD, .child = {0, 1}},
                                  {.kind = WEFT_BODY_OPERAND, .value = 2},
                                  {.kind = WEFT_BODY_MUL, .child = {2, 3}}};
  uint32_t y = weft_graph_pointwise(g, "y", ins, 3, &(weft_body){nodes, 5}, WEFT_FP16);
  is_value(g, y, WEFT_FP16, 3, E(4, 5, 6));
  const weft_graph_op *op = &g->ops[0];
  assert_int_equal(op->in_factors[0][0], 0);
  assert_int_equal(op->in_factors[0][1], WEFT_NO_FACTOR);
  assert_int_equal(op->in_factors[1][0], 1);
  assert_int_equal(op->in_factors[1][1], 2);
}

static void output_is_named(void **state) {
  SETUP;
  uint32_t y = weft_graph_relu(g, "r", input(g, "x", WEFT_FP32, 0, 3));
  weft_graph_output(g, y, "result");
  expect_ok(weft_graph_check(g, f->diag), f->diag);
  assert_string_equal(g->values[y].name, "result");
  assert_string_equal(g->ops[0].name, "r");
  assert_int_equal(g->values[y].role, WEFT_ROLE_OUTPUT);
}

static void a_failed_call_fails_all(void **state) {
  SETUP;
  uint32_t x = input(g, "x", WEFT_FP32, 3, 4), y = weft_graph_matmul(g, "y", x, x);
  assert_int_equal(y, WEFT_NONE);
  expect_message(f->diag, "matmul 'y': 'x' has 4 columns and 'x' 3 rows");
  assert_int_equal(weft_graph_relu(g, "z", y), WEFT_NONE);
  weft_graph_output(g, y, "o");
  assert_int_equal(weft_diag_errors(f->diag), 1);
  assert_int_equal(weft_graph_check(g, f->diag), WEFT_INVALID);
}

/* ---- refusals -----------------------------------------------------------------------------------------------------
 */

static void refuses_formats(void **state) {
  SETUP;
  uint32_t x = input(g, "x", WEFT_FP32, 2, 2), w = input(g, "w", WEFT_BF16, 2, 2), i = input(g, "i", WEFT_INT8, 2, 2);
  weft_graph_matmul(g, "m", x, w);
  expect_message(f->diag, "matmul 'm': 'x' is Fp32 and 'w' is Bf16");
  weft_graph_requant(g, "r", x, 1, 1);
  expect_message(f->diag, "requant 'r': 'x' is Fp32; only integers are requantised");
  weft_graph_clamp(g, "c", i, -200, 5, WEFT_INT8);
  expect_message(f->diag, "clamp 'c': -200..5 does not fit Int8");
  weft_graph_clamp(g, "c2", i, 5, 4, WEFT_INT8);
  expect_message(f->diag, "no value is in 5..4");
  weft_graph_bias(g, "b", i, weft_graph_param(g, "p", WEFT_FP32, 1, E(2)));
  expect_message(f->diag, "bias 'b': 'p' is Fp32 and the result Int8");
  weft_graph_store_as(g, x, WEFT_BF16);
  expect_message(f->diag, "'x' is a source");
  weft_graph_range(g, x, 0, 1);
  expect_message(f->diag, "only integers have a range");
  weft_graph_output(g, i, "o");
  expect_message(f->diag, "'i' is a source and cannot be output 'o'");
}

static void refuses_shapes(void **state) {
  SETUP;
  uint32_t x = input(g, "x", WEFT_FP32, 2, 3), v = weft_graph_input(g, "v", WEFT_FP32, 1, E(3));
  weft_graph_matmul(g, "m", v, x);
  expect_message(f->diag, "matmul 'm': 'v' is [3] and 'x' is [2, 3]");
  weft_graph_bias(g, "b", x, weft_graph_param(g, "p", WEFT_FP32, 2, E(2, 3)));
  expect_message(f->diag, "which is no row of 'x' [2, 3]");
  const uint32_t ins[] = {x, input(g, "z", WEFT_FP32, 2, 4)};
  const weft_body_node node = {.kind = WEFT_BODY_OPERAND};
  weft_graph_pointwise(g, "p", ins, 2, &(weft_body){&node, 1}, WEFT_FP32);
  expect_message(f->diag, "its operands do not broadcast");
  weft_graph_pointwise(g, "q", &x, 1, &(weft_body){&node, 1}, WEFT_INT8);
  expect_message(f->diag, "a body that is computed in floats cannot give Int8");
  input(g, "huge", WEFT_FP32, (uint64_t)1 << 40, (uint64_t)1 << 40);
  expect_message(f->diag, "too large to address");
  input(g, "tall", WEFT_FP32, (uint64_t)1 << 62, 0);
  expect_message(f->diag, "value 'tall': extents [4611686018427387904, 0] are too large");
}

static void refuses_bodies(void **state) {
  SETUP;
  uint32_t x = input(g, "x", WEFT_FP32, 2, 3);
  const weft_body_node past[] = {{.kind = WEFT_BODY_OPERAND, .value = 1}};
  weft_graph_pointwise(g, "a", &x, 1, &(weft_body){past, 1}, WEFT_FP32);
  expect_message(f->diag, "pointwise 'a': its body names an operand the op does not have");
  const weft_body_node twice[] = {{.kind = WEFT_BODY_OPERAND}, {.kind = WEFT_BODY_ADD, .child = {0, 0}}};
  weft_graph_pointwise(g, "b", &x, 1, &(weft_body){twice, 2}, WEFT_FP32);
  expect_message(f->diag, "pointwise 'b': its body is not in post-order");
  const weft_body_node spare[] = {{.kind = WEFT_BODY_OPERAND}, {.kind = WEFT_BODY_OPERAND}};
  weft_graph_pointwise(g, "c", &x, 1, &(weft_body){spare, 2}, WEFT_FP32);
  expect_message(f->diag, "has nodes that nothing uses");
  weft_body_node deep[200] = {{.kind = WEFT_BODY_OPERAND}};
  for (uint32_t i = 1; i < 200; i++)
    deep[i] = (weft_body_node){.kind = WEFT_BODY_UNARY, .sfpu = WEFT_SFPU_RELU, .child = {i - 1}};
  weft_graph_pointwise(g, "d", &x, 1, &(weft_body){deep, 200}, WEFT_FP32);
  expect_message(f->diag, "is nested too deeply");
}

static uint32_t add_value(weft_graph *g, const char *name, uint64_t rows, uint64_t cols) {
  return weft_graph_add_value(
      g, &(weft_value){
             .name = name, .role = WEFT_ROLE_ACTIVATION, .dtype = WEFT_FP32, .rank = 2, .extents = {rows, cols}});
}

static void assembles_tile_exactly(void **state) {
  SETUP;
  const uint32_t ins[] = {input(g, "a", WEFT_FP32, 2, 3), input(g, "b", WEFT_FP32, 2, 1),
                          input(g, "c", WEFT_FP32, 1, 4)};
  const uint64_t good[][WEFT_MAX_RANK] = {{0, 0}, {0, 3}, {2, 0}}, over[][WEFT_MAX_RANK] = {{0, 0}, {0, 3}, {1, 0}},
                 out_of[][WEFT_MAX_RANK] = {{0, 0}, {0, 4}, {2, 0}};
  weft_graph_op op = {.kind = WEFT_GRAPH_ASSEMBLE,
                      .name = "j",
                      .ins = ins,
                      .in_count = 3,
                      .out = add_value(g, "y", 3, 4),
                      .starts = good};
  assert_int_equal(weft_graph_add_op(g, &op), 0);
  op.out = add_value(g, "y2", 3, 4);
  op.starts = over;
  assert_int_equal(weft_graph_add_op(g, &op), WEFT_NONE);
  expect_message(f->diag, "assemble 'j': pieces 'a' and 'c' overlap");
  op.starts = out_of;
  assert_int_equal(weft_graph_add_op(g, &op), WEFT_NONE);
  expect_message(f->diag, "piece 'b' [2, 1] at [0, 4] leaves the result [3, 4]");
  op.out = add_value(g, "y3", 4, 4);
  op.starts = good;
  assert_int_equal(weft_graph_add_op(g, &op), WEFT_NONE);
  expect_message(f->diag, "its pieces hold 12 elements, the result 16");
}

/** Random tilings and random near misses against counting every cell. */
static void tilings_are_judged_like_cells(void **state) {
  SETUP;
  chance c = {7};
  uint32_t accepted = 0;
  for (int round = 0; round < 3000; round++) {
    uint64_t rows = 1 + draw(&c, 6), cols = 1 + draw(&c, 6), starts[6][WEFT_MAX_RANK] = {{0}};
    uint32_t ins[6], count = 1 + (uint32_t)draw(&c, 5);
    int cells[6][6] = {{0}};
    bool exact = true;
    for (uint32_t i = 0; i < count; i++) {
      starts[i][0] = draw(&c, rows);
      starts[i][1] = draw(&c, cols);
      uint64_t h = draw(&c, rows - starts[i][0] + 1), w = draw(&c, cols - starts[i][1] + 1);
      ins[i] = input(g, "p", WEFT_FP32, h, w);
      for (uint64_t r = 0; r < h; r++)
        for (uint64_t k = 0; k < w; k++) cells[starts[i][0] + r][starts[i][1] + k]++;
    }
    for (uint64_t r = 0; r < rows; r++)
      for (uint64_t k = 0; k < cols; k++) exact = exact && cells[r][k] == 1;
    weft_graph_op op = {.kind = WEFT_GRAPH_ASSEMBLE,
                        .name = "j",
                        .ins = ins,
                        .in_count = count,
                        .out = add_value(g, "y", rows, cols),
                        .starts = (const uint64_t(*)[WEFT_MAX_RANK])starts};
    bool taken = weft_graph_add_op(g, &op) != WEFT_NONE;
    if (taken != exact)
      fail_msg("round %d: %s", round, exact ? "an exact tiling is refused" : "an overlap or a gap is taken");
    accepted += taken;
    weft_diag_clear(f->diag);
  }
  assert_true(accepted > 100);
}

static uint32_t add_partial(weft_graph *g, const char *name, uint32_t a, uint32_t b, uint32_t segments,
                            weft_partial partial) {
  weft_value v = {.name = name,
                  .role = WEFT_ROLE_ACTIVATION,
                  .dtype = WEFT_FP32,
                  .rank = 2,
                  .extents = {2, 2},
                  .has_partial = true,
                  .partial = partial};
  const uint32_t ins[] = {a, b};
  weft_graph_op op = {.kind = WEFT_GRAPH_MATMUL,
                      .name = name,
                      .ins = ins,
                      .in_count = 2,
                      .acc = WEFT_ACC_F32,
                      .segments = segments,
                      .out = weft_graph_add_value(g, &v)};
  return weft_graph_add_op(g, &op) == WEFT_NONE ? WEFT_NONE : op.out;
}

static void partials_cover_once(void **state) {
  SETUP;
  uint32_t a = input(g, "a", WEFT_FP32, 2, 64), b = weft_graph_param(g, "b", WEFT_FP32, 2, E(64, 2));
  uint32_t first = add_partial(g, "p0", a, b, 2, (weft_partial){WEFT_POOL_SUM, 0, 2, 4}),
           second = add_partial(g, "p1", a, b, 2, (weft_partial){WEFT_POOL_SUM, 2, 2, 4});
  assert_int_not_equal(second, WEFT_NONE);
  const uint32_t ins[] = {first, second}, wrong[] = {second, first};
  weft_graph_op op = {.kind = WEFT_GRAPH_ALL_REDUCE,
                      .name = "r",
                      .ins = ins,
                      .in_count = 2,
                      .out = add_value(g, "y", 2, 2),
                      .pool = WEFT_POOL_SUM};
  assert_int_not_equal(weft_graph_add_op(g, &op), WEFT_NONE);
  op.out = add_value(g, "y2", 2, 2);
  op.in_count = 1;
  assert_int_equal(weft_graph_add_op(g, &op), WEFT_NONE);
  expect_message(f->diag, "its operands cover segments 0..2 of 4");
  op.in_count = 2;
  op.ins = wrong;
  weft_graph_add_op(g, &op);
  expect_message(f->diag, "'p1' begins at segment 2, expected 0");
  op.ins = ins;
  op.pool = WEFT_POOL_MAX;
  weft_graph_add_op(g, &op);
  expect_message(f->diag, "are not parts of one value");
  weft_graph_relu(g, "early", first);
  expect_message(f->diag, "relu 'early': reads the partial result 'p0'");
  weft_graph_output(g, first, "o");
  expect_message(f->diag, "the partial result 'p0' cannot be an output");
  add_partial(g, "p2", a, b, 1, (weft_partial){WEFT_POOL_SUM, 0, 2, 4});
  expect_message(f->diag, "K = 64 in 1 segments does not give the 2 segments that 'p2' holds");
}

static void sums_fold_whole_subtrees(void **state) {
  SETUP;
  uint32_t a = input(g, "a", WEFT_FP32, 2, 96), b = weft_graph_param(g, "b", WEFT_FP32, 2, E(96, 2));
  uint32_t narrow = input(g, "n", WEFT_FP32, 2, 32), w = weft_graph_param(g, "w", WEFT_FP32, 2, E(32, 2));
  const uint32_t ins[] = {add_partial(g, "p0", narrow, w, 1, (weft_partial){WEFT_POOL_SUM, 0, 1, 4}),
                          add_partial(g, "p1", a, b, 3, (weft_partial){WEFT_POOL_SUM, 1, 3, 4})};
  weft_graph_op op = {.kind = WEFT_GRAPH_ALL_REDUCE,
                      .name = "r",
                      .ins = ins,
                      .in_count = 2,
                      .out = add_value(g, "y", 2, 2),
                      .pool = WEFT_POOL_SUM};
  assert_int_equal(weft_graph_add_op(g, &op), WEFT_NONE);
  expect_message(f->diag, "no complete subtree of the fold over 4 segments");
}

static void the_whole_is_checked(void **state) {
  SETUP;
  uint32_t x = input(g, "x", WEFT_FP32, 2, 2), y = weft_graph_relu(g, "y", x), z = weft_graph_relu(g, "z", y);
  weft_graph_output(g, z, "x");
  assert_int_equal(weft_graph_check(g, f->diag), WEFT_INVALID);
  expect_message(f->diag, "two inputs, parameters or outputs are called 'x'");
  weft_graph_output(g, z, "o");
  expect_ok(weft_graph_check(g, f->diag), f->diag);
  g->ops[1].chip = g->values[z].chip = 1;
  assert_int_equal(weft_graph_check(g, f->diag), WEFT_INVALID);
  expect_message(f->diag, "value 'o' is on chip 1 of 1");
  g->chips = 2;
  expect_ok(weft_graph_check(g, f->diag), f->diag);
  weft_graph_section(g, "later");
  g->ops[0].section = 1;
  assert_int_equal(weft_graph_check(g, f->diag), WEFT_INVALID);
  expect_message(f->diag, "relu 'z' of section 'main' reads 'y' of the later section 'later'");
  g->ops[0].section = 0;
  g->ops[1].factors[0].extent = 5;
  assert_int_equal(weft_graph_check(g, f->diag), WEFT_INVALID);
  expect_message(f->diag, "relu 'z': its factors do not agree with the extents");
}

static void shards_lie_in_their_datasets(void **state) {
  SETUP;
  weft_value v = {.name = "w.1",
                  .role = WEFT_ROLE_PARAM,
                  .dtype = WEFT_FP32,
                  .rank = 2,
                  .extents = {4, 3},
                  .has_shard = true,
                  .shard = {.of = "w", .rows = 8, .cols = 3, .row0 = 5},
                  .full_rank = 2,
                  .full_extents = {8, 3}};
  assert_int_equal(weft_graph_add_value(g, &v), WEFT_NONE);
  expect_message(f->diag, "value 'w.1': the block of 4 x 3 at (5, 0) leaves its dataset 'w' of 8 x 3");
  v.shard.row0 = 4;
  assert_int_not_equal(weft_graph_add_value(g, &v), WEFT_NONE);
  v.full_extents[0] = 9;
  assert_int_equal(weft_graph_add_value(g, &v), WEFT_NONE);
  expect_message(f->diag, "its shard says a dataset of 8 x 3, its extents 9 x 3");
}

static void pictures_name_everything(void **state) {
  SETUP;
  uint32_t x = input(g, "x\"]; evil", WEFT_FP32, 2, 2), y = weft_graph_relu(g, "act", x);
  weft_graph_output(g, y, "y");
  weft_text text = {0};
  weft_graph_dot(g, &text);
  assert_non_null(strstr(text.data, "act\\nrelu"));
  assert_non_null(strstr(text.data, "Fp32 [2, 2]"));
  assert_null(strstr(text.data, "x\"]"));
  weft_text_free(&text);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(matmul_shapes),
      TEST(integer_accumulators_follow_ranges),
      TEST(requant_widens_where_it_must),
      TEST(requant_products_stay_in_64_bits),
      TEST(outputs_have_names_of_their_own),
      TEST(pointwise_broadcasts),
      TEST(output_is_named),
      TEST(a_failed_call_fails_all),
      TEST(refuses_formats),
      TEST(refuses_shapes),
      TEST(refuses_bodies),
      TEST(assembles_tile_exactly),
      TEST(tilings_are_judged_like_cells),
      TEST(partials_cover_once),
      TEST(sums_fold_whole_subtrees),
      TEST(the_whole_is_checked),
      TEST(shards_lie_in_their_datasets),
      TEST(pictures_name_everything),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
