/* The interpreter against loops written out here, values worked out by hand, and its faults. */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct fixture {
  weft_diag *diag;
  weft_graph *graph;
  weft_array_set in, out;
} fixture;

static int set_up(void **state) {
  static fixture f;
  f = (fixture){.diag = weft_diag_new()};
  f.graph = weft_graph_new("test", f.diag);
  weft_graph_section(f.graph, "main");
  *state = &f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  weft_graph_free(f->graph);
  weft_array_set_free(&f->in);
  weft_array_set_free(&f->out);
  weft_diag_free(f->diag);
  return 0;
}

#define SETUP                                                                                                          \
  fixture *f = *state;                                                                                                 \
  weft_graph *g = f->graph
#define E(...) ((const uint64_t[]){__VA_ARGS__})

static float *floats(fixture *f, const char *name, uint32_t rank, const uint64_t *extents) {
  return weft_array_set_add(&f->in, name, WEFT_FP32, rank, extents)->data;
}

static const void *run(fixture *f, const char *output) {
  expect_ok(weft_graph_interpret(f->graph, &f->in, &f->out, f->diag), f->diag);
  const weft_array *array = weft_array_set_find(&f->out, output);
  assert_non_null(array);
  return array->data;
}

static void refused(fixture *f, const char *message) {
  assert_int_equal(weft_graph_interpret(f->graph, &f->in, &f->out, f->diag), WEFT_INVALID);
  expect_message(f->diag, message);
}

/** One element of a product as docs/arithmetic.md says it, written anew: units dealt to segments, then pairs of halves.
 */
static float chain(const float *a, const float *b, uint64_t n, uint64_t begin, uint64_t end, uint64_t column) {
  float acc = 0;
  for (uint64_t k = begin; k < end; k++) acc = fmaf(a[k], b[k * n + column], acc);
  return acc;
}

static float folded(const float *parts, uint64_t count) {
  if (count == 1) return parts[0];
  uint64_t left = 1;
  while (left * 2 < count) left *= 2;
  volatile float sum = folded(parts, left) + folded(parts + left, count - left);
  return sum;
}

static float product_element(const float *a, const float *b, uint64_t k, uint64_t n, uint64_t column,
                             uint32_t segments) {
  float parts[32];
  uint64_t units = (k + 31) / 32, used = 0, at = 0;
  for (uint32_t s = 0; s < segments; s++) {
    uint64_t length = 32 * (units / segments + (s < units % segments)), end = at + length < k ? at + length : k;
    if (end > at) parts[used++] = chain(a, b, n, at, end, column);
    at = end;
  }
  return used ? folded(parts, used) : 0.0f;
}

static void check_product(void **state, uint64_t m, uint64_t k, uint64_t n, uint32_t segments) {
  set_up(state);
  SETUP;
  chance c = {m * 1000003 + k * 1009 + n * 31 + segments};
  uint32_t y = weft_graph_matmul(g, "y", weft_graph_input(g, "a", WEFT_FP32, 2, E(m, k)),
                                 weft_graph_param(g, "b", WEFT_FP32, 2, E(k, n)));
  weft_graph_output(g, y, "y");
  if (segments) g->ops[0].segments = segments;
  float *a = floats(f, "a", 2, E(m, k)), *b = floats(f, "b", 2, E(k, n));
  for (uint64_t i = 0; i < m * k; i++) a[i] = (float)((double)draw(&c, 2000001) / 1e6 - 1);
  for (uint64_t i = 0; i < k * n; i++) b[i] = (float)((double)draw(&c, 2000001) / 1e6 - 1);
  const float *result = run(f, "y");
  uint32_t used = segments    ? segments
                  : k >= 2048 ? 32
                  : k >= 1024 ? 16
                  : k >= 512  ? 8
                  : k >= 256  ? 4
                  : k >= 128  ? 2
                              : 1;
  for (uint64_t i = 0; i < m; i++)
    for (uint64_t j = 0; j < n; j++) {
      float expected = product_element(a + i * k, b, k, n, j, used);
      if (memcmp(&expected, &result[i * n + j], 4) != 0)
        fail_msg("%llu x %llu x %llu, %u segments: element (%llu, %llu)", (unsigned long long)m, (unsigned long long)k,
                 (unsigned long long)n, used, (unsigned long long)i, (unsigned long long)j);
    }
  tear_down(state);
}

static void products_fold_in_segments(void **state) {
  tear_down(state);
  static const uint64_t ks[] = {0, 1, 10, 31, 32, 33, 64, 65, 127, 128, 200, 255, 256, 784, 1000, 2048, 2100};
  for (size_t i = 0; i < sizeof ks / sizeof *ks; i++) check_product(state, 3, ks[i], 5, 0);
  for (uint32_t segments = 1; segments <= 32; segments++) {
    check_product(state, 2, 33, 3, segments);
    check_product(state, 1, 65, 2, segments);
    check_product(state, 2, 300, 1, segments);
  }
  set_up(state);
}

static void products_round_once(void **state) {
  SETUP;
  uint32_t y = weft_graph_matmul(g, "y", weft_graph_input(g, "a", WEFT_FP32, 2, E(1, 2)),
                                 weft_graph_param(g, "b", WEFT_FP32, 2, E(2, 1)));
  weft_graph_store_as(g, y, WEFT_BF16);
  weft_graph_output(g, y, "y");
  float *a = floats(f, "a", 2, E(1, 2)), *b = floats(f, "b", 2, E(2, 1));
  a[0] = b[0] = 1;
  a[1] = 0x1p-8f; // half a step above 1 in Bf16: a tie, to even
  b[1] = 1;
  assert_int_equal(*(const uint16_t *)run(f, "y"), 0x3F80);
  b[1] = 1.0078125f;
  assert_int_equal(*(const uint16_t *)run(f, "y"), 0x3F81);
}

static void relu_and_bias(void **state) {
  SETUP;
  uint32_t x = weft_graph_input(g, "x", WEFT_FP32, 2, E(2, 3)), b = weft_graph_param(g, "b", WEFT_FP32, 1, E(3));
  weft_graph_output(g, weft_graph_bias(g, "s", x, b), "s");
  weft_graph_output(g, weft_graph_relu(g, "r", x), "r");
  float *values = floats(f, "x", 2, E(2, 3)), *bias = floats(f, "b", 1, E(3));
  memcpy(values, (const float[]){-1, -0.0f, 2, NAN, 1e-45f, -INFINITY}, 24);
  memcpy(bias, (const float[]){0.5f, 1, -2}, 12);
  const float *s = run(f, "s"), *r = weft_array_set_find(&f->out, "r")->data;
  assert_true(s[0] == -0.5f && s[1] == 1 && s[2] == 0 && isnan(s[3]) && s[4] == 1 && s[5] == -INFINITY);
  assert_true(r[0] == 0 && r[1] == 0 && !signbit(r[1]) && r[2] == 2 && isnan(r[3]) && r[4] == 1e-45f && r[5] == 0);
}

static void requant_shifts_down(void **state) {
  SETUP;
  uint32_t x = weft_graph_input(g, "x", WEFT_INT32, 1, E(5)), q = weft_graph_requant(g, "q", x, 3, 2);
  weft_graph_output(g, weft_graph_clamp(g, "c", q, -5, 6, WEFT_INT8), "c");
  memcpy(weft_array_set_add(&f->in, "x", WEFT_INT32, 1, E(5))->data, (const int32_t[]){-1, -2, 3, INT32_MAX, INT32_MIN},
         20);
  const int8_t *c = run(f, "c");
  assert_true(c[0] == -1 && c[1] == -2 && c[2] == 2 && c[3] == 6 && c[4] == -5);
}

static uint64_t constant(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static void bodies_over_integers(void **state) {
  SETUP;
  uint32_t x = weft_graph_input(g, "x", WEFT_INT32, 1, E(4));
  // floor(x / -3) where x < 0, else (x - 7) >> 1
  const weft_body_node nodes[] = {{.kind = WEFT_BODY_OPERAND},
                                  {.kind = WEFT_BODY_CONST, .value = constant(0)},
                                  {.kind = WEFT_BODY_MIN, .child = {0, 1}},
                                  {.kind = WEFT_BODY_OPERAND},
                                  {.kind = WEFT_BODY_CONST, .value = constant(-3)},
                                  {.kind = WEFT_BODY_FLOOR_DIV, .child = {3, 4}},
                                  {.kind = WEFT_BODY_OPERAND},
                                  {.kind = WEFT_BODY_CONST, .value = constant(7)},
                                  {.kind = WEFT_BODY_SUB, .child = {6, 7}},
                                  {.kind = WEFT_BODY_SHR, .child = {8}, .value = 1},
                                  {.kind = WEFT_BODY_VALUE_SELECT, .child = {2, 5, 9}}};
  weft_graph_output(g, weft_graph_pointwise(g, "y", &x, 1, &(weft_body){nodes, 11}, WEFT_INT64), "y");
  memcpy(weft_array_set_add(&f->in, "x", WEFT_INT32, 1, E(4))->data, (const int32_t[]){-7, -6, 0, 10}, 16);
  const int64_t *y = run(f, "y");
  assert_true(y[0] == 2 && y[1] == 2 && y[2] == -4 && y[3] == 1);
}

static void bodies_over_floats(void **state) {
  SETUP;
  uint32_t x = weft_graph_input(g, "x", WEFT_FP32, 2, E(2, 3));
  // column < 2 and row >= 1: rsqrt(x / 4 + 1e-9 * 500000000), else silu(x)
  const weft_body_node nodes[] = {
      {.kind = WEFT_BODY_OPERAND},
      {.kind = WEFT_BODY_UNARY, .sfpu = WEFT_SFPU_RSQRT, .child = {0}, .eps_nano = 500000000, .over = 4},
      {.kind = WEFT_BODY_OPERAND},
      {.kind = WEFT_BODY_UNARY, .sfpu = WEFT_SFPU_SILU, .child = {2}},
      {.kind = WEFT_BODY_SELECT, .child = {1, 3}, .pred = {.var = WEFT_VAR_GEN_COL, .bound = 2}},
      {.kind = WEFT_BODY_OPERAND},
      {.kind = WEFT_BODY_UNARY, .sfpu = WEFT_SFPU_SILU, .child = {5}},
      {.kind = WEFT_BODY_SELECT, .child = {4, 6}, .pred = {.ge = true, .var = WEFT_VAR_GEN_ROW, .bound = 1}}};
  weft_graph_output(g, weft_graph_pointwise(g, "y", &x, 1, &(weft_body){nodes, 8}, WEFT_FP32), "y");
  memcpy(floats(f, "x", 2, E(2, 3)), (const float[]){0, 1, 2, 14, 2, -1}, 24);
  const float *y = run(f, "y");
  assert_true(y[0] == 0 && fabsf(y[1] - 0.731058579f) < 1e-6f && y[3] == 0.5f && y[4] == 1 &&
              fabsf(y[5] + 0.268941421f) < 1e-6f);
}

static void broadcasts_line_up_at_the_end(void **state) {
  SETUP;
  const uint32_t ins[] = {weft_graph_input(g, "a", WEFT_FP32, 3, E(2, 1, 3)),
                          weft_graph_input(g, "b", WEFT_FP32, 2, E(2, 1)),
                          weft_graph_input(g, "c", WEFT_FP32, 0, NULL)};
  const weft_body_node nodes[] = {{.kind = WEFT_BODY_OPERAND, .value = 0},
                                  {.kind = WEFT_BODY_OPERAND, .value = 1},
                                  {.kind = WEFT_BODY_ADD, .child = {0, 1}},
                                  {.kind = WEFT_BODY_OPERAND, .value = 2},
                                  {.kind = WEFT_BODY_ADD, .child = {2, 3}}};
  weft_graph_output(g, weft_graph_pointwise(g, "y", ins, 3, &(weft_body){nodes, 5}, WEFT_FP32), "y");
  memcpy(floats(f, "a", 3, E(2, 1, 3)), (const float[]){1, 2, 3, 4, 5, 6}, 24);
  memcpy(floats(f, "b", 2, E(2, 1)), (const float[]){10, 20}, 8);
  *floats(f, "c", 0, NULL) = 100;
  const float *y = run(f, "y");
  static const float expected[] = {111, 112, 113, 121, 122, 123, 114, 115, 116, 124, 125, 126};
  assert_memory_equal(y, expected, sizeof expected);
}

static void sums_are_exact_over_any_order(void **state) {
  SETUP;
  uint32_t y = weft_graph_matmul(g, "y", weft_graph_input(g, "a", WEFT_INT64, 2, E(1, 3)),
                                 weft_graph_param(g, "b", WEFT_INT64, 2, E(3, 1)));
  weft_graph_output(g, y, "y");
  memcpy(weft_array_set_add(&f->in, "a", WEFT_INT64, 2, E(1, 3))->data,
         (const int64_t[]){INT64_MAX, INT64_MAX, INT64_MIN}, 24);
  memcpy(weft_array_set_add(&f->in, "b", WEFT_INT64, 2, E(3, 1))->data, (const int64_t[]){1, 1, 1}, 24);
  assert_int_equal(*(const int64_t *)run(f, "y"), INT64_MAX - 1);
}

/* ---- faults -------------------------------------------------------------------------------------------------------
 */

static void integers_must_fit(void **state) {
  SETUP;
  uint32_t a = weft_graph_input(g, "a", WEFT_INT8, 2, E(2, 2)), b = weft_graph_param(g, "b", WEFT_INT8, 2, E(2, 2));
  uint32_t y = weft_graph_matmul(g, "y", a, b);
  g->values[y].dtype = WEFT_INT8;
  weft_graph_output(g, y, "y");
  memcpy(weft_array_set_add(&f->in, "a", WEFT_INT8, 2, E(2, 2))->data, (const int8_t[]){1, 1, 100, 100}, 4);
  memcpy(weft_array_set_add(&f->in, "b", WEFT_INT8, 2, E(2, 2))->data, (const int8_t[]){1, 1, 0, 1}, 4);
  refused(f, "matmul 'y': 200 does not fit Int8, at [1, 1] of 'y'");
}

static void accumulators_must_hold(void **state) {
  SETUP;
  uint32_t a = weft_graph_input(g, "a", WEFT_INT32, 2, E(1, 1)), b = weft_graph_param(g, "b", WEFT_INT32, 2, E(1, 1));
  uint32_t y = weft_graph_matmul(g, "y", a, b);
  g->ops[0].acc = WEFT_ACC_I32;
  weft_graph_output(g, y, "y");
  *(int32_t *)weft_array_set_add(&f->in, "a", WEFT_INT32, 2, E(1, 1))->data = 1 << 16;
  *(int32_t *)weft_array_set_add(&f->in, "b", WEFT_INT32, 2, E(1, 1))->data = 1 << 15;
  refused(f, "matmul 'y': a sum that leaves the 32-bit accumulator at [0, 0] of 'y'");
}

static void bodies_fault_where_chosen(void **state) {
  SETUP;
  const uint32_t ins[] = {weft_graph_input(g, "x", WEFT_INT32, 1, E(2)), weft_graph_input(g, "d", WEFT_INT32, 1, E(2))};
  const weft_body_node nodes[] = {
      {.kind = WEFT_BODY_OPERAND, .value = 0},
      {.kind = WEFT_BODY_OPERAND, .value = 1},
      {.kind = WEFT_BODY_FLOOR_DIV, .child = {0, 1}},
      {.kind = WEFT_BODY_OPERAND, .value = 0},
      {.kind = WEFT_BODY_SELECT, .child = {2, 3}, .pred = {.var = WEFT_VAR_GEN_COL, .bound = 1}}};
  weft_graph_output(g, weft_graph_pointwise(g, "y", ins, 2, &(weft_body){nodes, 5}, WEFT_INT32), "y");
  memcpy(weft_array_set_add(&f->in, "x", WEFT_INT32, 1, E(2))->data, (const int32_t[]){7, 8}, 8);
  int32_t *d = weft_array_set_add(&f->in, "d", WEFT_INT32, 1, E(2))->data;
  d[0] = 2;
  const int32_t *y = run(f, "y");
  assert_true(y[0] == 3 && y[1] == 8);
  d[0] = 0;
  refused(f, "pointwise 'y': a division by zero at [0] of 'y'");
}

static void datasets_must_match(void **state) {
  SETUP;
  uint32_t x = weft_graph_input(g, "x", WEFT_INT8, 2, E(1, 4));
  weft_graph_range(g, x, 0, 5);
  weft_graph_output(g, weft_graph_relu(g, "y", x), "y");
  refused(f, "dataset 'x' is missing");
  weft_array_set_add(&f->in, "x", WEFT_INT8, 2, E(2, 2));
  refused(f, "dataset 'x' is [2, 2], the graph expects [1, 4]");
  weft_array_set_add(&f->in, "x", WEFT_INT16, 2, E(1, 4));
  refused(f, "dataset 'x' is Int16, the graph expects Int8");
  int8_t *data = weft_array_set_add(&f->in, "x", WEFT_INT8, 1, E(4))->data; // the same plane
  data[3] = 6;
  refused(f, "dataset 'x' holds 6, outside its range 0..5");
  data[3] = 5;
  assert_int_equal(((const int8_t *)run(f, "y"))[3], 5);
}

static void fills_stand_in_for_datasets(void **state) {
  SETUP;
  weft_value v = {.name = "w",
                  .role = WEFT_ROLE_PARAM,
                  .dtype = WEFT_FP32,
                  .rank = 2,
                  .extents = {2, 3},
                  .init = {.kind = WEFT_INIT_PATTERN, .pattern = {4, -1}}};
  weft_graph_output(g, weft_graph_relu(g, "y", weft_graph_add_value(g, &v)), "y");
  static const float expected[] = {0, 0, 1, 2, 0, 0};
  assert_memory_equal(run(f, "y"), expected, sizeof expected);
}

/* ---- many chips ---------------------------------------------------------------------------------------------------
 */

static uint32_t shard(weft_graph *g, const char *name, weft_tensor_role role, uint16_t chip, const char *of,
                      uint64_t rows, uint64_t cols, uint64_t row0, uint64_t col0, bool writer) {
  weft_value v = {.name = name,
                  .role = role,
                  .dtype = WEFT_FP32,
                  .rank = 2,
                  .extents = {rows, cols},
                  .chip = chip,
                  .has_shard = true,
                  .shard = {.of = of, .rows = 4, .cols = 4, .row0 = row0, .col0 = col0, .writer = writer},
                  .full_rank = 2,
                  .full_extents = {4, 4},
                  .init = {.kind = WEFT_INIT_EXTERNAL}};
  return weft_graph_add_value(g, &v);
}

static void add_relu(weft_graph *g, uint32_t in, uint32_t out, uint16_t chip) {
  weft_graph_add_op(
      g, &(weft_graph_op){.kind = WEFT_GRAPH_RELU, .name = "r", .chip = chip, .ins = &in, .in_count = 1, .out = out});
}

static void shards_are_cut_and_assembled(void **state) {
  SETUP;
  g->chips = 3;
  add_relu(g, shard(g, "x", WEFT_ROLE_INPUT, 0, "x", 4, 1, 0, 0, true),
           shard(g, "y", WEFT_ROLE_OUTPUT, 0, "y", 4, 1, 0, 0, true), 0);
  add_relu(g, shard(g, "x", WEFT_ROLE_INPUT, 1, "x", 4, 3, 0, 1, true),
           shard(g, "y", WEFT_ROLE_OUTPUT, 1, "y", 4, 3, 0, 1, true), 1);
  add_relu(g, shard(g, "x", WEFT_ROLE_INPUT, 2, "x", 2, 2, 1, 2, true),
           shard(g, "y", WEFT_ROLE_OUTPUT, 2, "y", 2, 2, 1, 2, false), 2);
  float *x = floats(f, "x", 2, E(4, 4));
  for (int i = 0; i < 16; i++) x[i] = (float)(i - 5);
  const float *y = run(f, "y");
  for (int i = 0; i < 16; i++) assert_true(y[i] == (i < 5 ? 0 : (float)(i - 5)));
  assert_int_equal(f->out.count, 1);
}

static void replicas_must_agree(void **state) {
  SETUP;
  g->chips = 2;
  add_relu(g, shard(g, "x", WEFT_ROLE_INPUT, 0, "x", 4, 4, 0, 0, true),
           shard(g, "y", WEFT_ROLE_OUTPUT, 0, "y", 4, 4, 0, 0, true), 0);
  add_relu(g, shard(g, "x", WEFT_ROLE_INPUT, 1, "x", 2, 2, 0, 0, true),
           shard(g, "y", WEFT_ROLE_OUTPUT, 1, "y", 2, 2, 2, 2, false), 1);
  float *x = floats(f, "x", 2, E(4, 4));
  for (int i = 0; i < 16; i++) x[i] = (float)i;
  refused(f, "chip 1 has another 'y' at row 2, column 2 than its writer");
}

static void all_reduce_folds_the_tree(void **state) {
  SETUP;
  static const uint32_t order[] = {2, 1, 1, 4}; // segments of each node: (p0 + (p1 + p2)) + p3
  uint32_t ins[4], first = 0;
  for (uint32_t i = 0; i < 4; i++) {
    char name[2][4] = {{'a', (char)('0' + i)}, {'b', (char)('0' + i)}};
    const uint64_t k = 32 * order[i];
    uint32_t x[] = {weft_graph_input(g, name[0], WEFT_FP32, 2, E(1, k)),
                    weft_graph_param(g, name[1], WEFT_FP32, 2, E(k, 1))};
    weft_value v = {.name = "p",
                    .role = WEFT_ROLE_ACTIVATION,
                    .dtype = WEFT_FP32,
                    .rank = 2,
                    .extents = {1, 1},
                    .has_partial = true,
                    .partial = {WEFT_POOL_SUM, first, order[i], 8}};
    weft_graph_op op = {.kind = WEFT_GRAPH_MATMUL,
                        .name = "p",
                        .ins = x,
                        .in_count = 2,
                        .acc = WEFT_ACC_F32,
                        .segments = order[i],
                        .out = ins[i] = weft_graph_add_value(g, &v)};
    weft_graph_add_op(g, &op);
    first += order[i];
    floats(f, name[0], 2, E(1, k))[0] = (const float[]){1e8f, -1e8f, 3, 5}[i];
    floats(f, name[1], 2, E(k, 1))[0] = 1;
  }
  weft_value y = {.name = "y", .role = WEFT_ROLE_OUTPUT, .dtype = WEFT_FP32, .rank = 2, .extents = {1, 1}};
  weft_graph_op op = {.kind = WEFT_GRAPH_ALL_REDUCE,
                      .name = "y",
                      .ins = ins,
                      .in_count = 4,
                      .pool = WEFT_POOL_SUM,
                      .out = weft_graph_add_value(g, &y)};
  weft_graph_add_op(g, &op);
  // (1e8 + (-1e8 + 3)) + 5: the inner sum rounds to -1e8, a left fold would give 8
  assert_true(*(const float *)run(f, "y") == 5);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(products_fold_in_segments),     TEST(products_round_once),           TEST(relu_and_bias),
      TEST(requant_shifts_down),           TEST(bodies_over_integers),          TEST(bodies_over_floats),
      TEST(broadcasts_line_up_at_the_end), TEST(sums_are_exact_over_any_order), TEST(integers_must_fit),
      TEST(accumulators_must_hold),        TEST(bodies_fault_where_chosen),     TEST(datasets_must_match),
      TEST(fills_stand_in_for_datasets),   TEST(shards_are_cut_and_assembled),  TEST(replicas_must_agree),
      TEST(all_reduce_folds_the_tree),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
