/* Rows that the memory of a site does not hold: folds in column blocks, products in rounds of blocks. The interpreter
 * folds whole rows; the schedule must give its bits. */
#include "support.h"
#include "weft/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_cases = 120, first_seed = 1;

static uint64_t next(uint64_t *state, uint64_t below) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (*state >> 33) % below;
}

static weft_target site_of(uint64_t bytes, uint64_t cols, uint64_t rows) {
  weft_target target;
  assert_int_equal(weft_target_load("mesh-8x8", &target, graph_diag), WEFT_OK);
  target.mesh_cols = cols;
  target.mesh_rows = rows;
  target.local_bytes = bytes;
  return target;
}

static weft_status plan_on(const weft_graph *graph, const weft_target *target, weft_program **program) {
  const weft_options options = {.validate_between = true};
  assert_int_equal(weft_graph_lower(graph, program, graph_diag), WEFT_OK);
  return weft_plan(*program, target, &options, graph_diag);
}

static uint64_t stages_called(const weft_program *program, const char *part) {
  uint64_t count = 0;
  for (uint64_t s = 0; s < program->stage_count; s++) count += strstr(program->stages[s].name, part) != NULL;
  return count;
}

/* ---- graphs of one fold ---- */

typedef struct folding {
  const char *body;
  uint32_t operands;
  weft_pool pool;
  weft_format operand, result;
} folding;

static const folding foldings[] = {
    {"$0", 1, WEFT_POOL_ARG_MAX, WEFT_FP32, WEFT_INT32},
    {"$0", 1, WEFT_POOL_MAX, WEFT_FP32, WEFT_FP32},
    {"$0", 1, WEFT_POOL_MIN, WEFT_BF16, WEFT_FP32},
    {"$0 $1 mul $2 add", 3, WEFT_POOL_ARG_MAX, WEFT_FP32, WEFT_INT64},
    {"$0 $1 sub exp", 3, WEFT_POOL_MAX, WEFT_FP32, WEFT_FP32},
    {"$0", 1, WEFT_POOL_ARG_MAX, WEFT_INT8, WEFT_INT32},
    {"$0 $1 mul $2 sub", 3, WEFT_POOL_ARG_MAX, WEFT_INT16, WEFT_INT32},
    {"$0", 1, WEFT_POOL_SUM, WEFT_INT32, WEFT_INT64},
    {"$0 $1 mul", 3, WEFT_POOL_SUM, WEFT_INT8, WEFT_INT64},
    {"$0 $2 sub", 3, WEFT_POOL_MIN, WEFT_INT16, WEFT_INT64},
    {"$0", 1, WEFT_POOL_MAX, WEFT_INT32, WEFT_INT32},
};
enum { FOLDINGS = sizeof foldings / sizeof *foldings };

/** y = pool(body(x, gain row, shift column)). */
static weft_graph *fold_graph(const folding *f, uint64_t rows, uint64_t cols) {
  weft_arena *arena = weft_arena_new();
  weft_graph *graph = weft_graph_new("fold", graph_diag);
  const uint64_t whole[] = {rows, cols}, row[] = {1, cols}, column[] = {rows, 1};
  uint32_t ins[3];
  ins[0] = weft_graph_input(graph, "x", f->operand, 2, whole);
  if (f->operands > 1) ins[1] = weft_graph_input(graph, "gain", f->operand, 2, row);
  if (f->operands > 2) ins[2] = weft_graph_input(graph, "shift", f->operand, 2, column);
  const weft_body body = weft_body_write(arena, f->body);
  uint32_t y = weft_graph_reduce(graph, "fold", ins, f->operands, &body, f->pool, f->result);
  weft_graph_output(graph, y, "y");
  weft_arena_free(arena);
  return graph;
}

/** Few different values, so that the greatest is met in many blocks; in floats also NaN, infinities and both zeros. */
static void fill(weft_array_set *set, uint64_t seed, bool special) {
  static const float floats[] = {-2, -0.0f, 0.0f, 1.5f, 3, 3, NAN, INFINITY, -INFINITY};
  uint64_t state = seed;
  for (uint64_t i = 0; i < set->count; i++) {
    weft_array *a = &set->items[i];
    for (uint64_t n = 0; n < weft_array_elements(a); n++)
      if (weft_format_is_float(a->dtype))
        weft_store_f32(a->dtype, a->data, n, floats[next(&state, special ? 9 : 6)]);
      else
        weft_store_i64(a->dtype, a->data, n, (int64_t)next(&state, 7) - 3);
  }
}

static void check_fold(const folding *f, uint64_t rows, uint64_t cols, const weft_target *target, uint64_t seed) {
  weft_graph *graph = fold_graph(f, rows, cols);
  weft_program *program;
  weft_array_set in = {0}, want = {0}, got = {0};
  weft_status status = plan_on(graph, target, &program);
  if (status) fail_msg("seed %llu: %s", (unsigned long long)seed, first_message(graph_diag));
  bool cut = stages_called(program, ".block") > 0;
  if (cols / 32 * weft_format_bytes(f->operand) * 2048 > target->local_bytes) assert_true(cut);
  make_inputs(program, seed, &in);
  fill(&in, seed, seed % 3 == 0);
  assert_int_equal(weft_graph_interpret(graph, &in, &want, graph_diag), WEFT_OK);
  status = run_program(program, &in, seed % 2, seed, &got, graph_diag);
  if (status || !same_sets(&want, &got))
    fail_msg("seed %llu: %s; repeat with: test_plan_folds 1 %llu", (unsigned long long)seed, first_message(graph_diag),
             (unsigned long long)seed);
  weft_array_set_free(&in);
  weft_array_set_free(&want);
  weft_array_set_free(&got);
  weft_program_free(program);
  weft_graph_free(graph);
}

static void test_random_folds(void **state) {
  (void)state;
  for (uint64_t i = 0; i < random_cases; i++) {
    uint64_t seed = first_seed + i, random = seed;
    const folding *f = &foldings[next(&random, FOLDINGS)];
    uint64_t rows = 1 + next(&random, 70), cols = 40 + next(&random, 1500);
    uint64_t bytes = 120000 + next(&random, 200000);
    weft_target target = site_of(bytes, 1 + next(&random, 3), 1 + next(&random, 2));
    if (next(&random, 4) == 0) target.movement_engines = 1;
    check_fold(f, rows, cols, &target, seed);
  }
}

/* ---- what the random ones may miss ---- */

/** Index of the greatest of a row, by its schedule on a site that holds few tiles. */
static int64_t greatest(const float *values, uint64_t cols) {
  const folding *f = &foldings[0];
  const weft_target target = site_of(90000, 1, 1);
  weft_graph *graph = fold_graph(f, 1, cols);
  weft_program *program;
  weft_array_set in = {0}, out = {0};
  if (plan_on(graph, &target, &program)) fail_msg("%s", first_message(graph_diag));
  assert_true(stages_called(program, ".block") > 0);
  weft_array *x = weft_array_set_add(&in, "x", WEFT_FP32, 2, (const uint64_t[]){1, cols});
  memcpy(x->data, values, cols * sizeof *values);
  evaluate(program, &in, &out);
  int64_t index = whole_at(&out, "y", 0, 0);
  weft_array_set_free(&in);
  weft_array_set_free(&out);
  weft_program_free(program);
  weft_graph_free(graph);
  return index;
}

static void test_ties_and_nan(void **state) {
  (void)state;
  enum { COLS = 1003 };
  float values[COLS];
  for (int i = 0; i < COLS; i++) values[i] = -1;
  assert_int_equal(greatest(values, COLS), 0);
  values[COLS - 1] = 2;
  assert_int_equal(greatest(values, COLS), COLS - 1);
  for (int at = 31; at < COLS; at += 97) { // equals in every block: the first
    values[at] = 2;
    values[COLS - 1] = 2;
  }
  assert_int_equal(greatest(values, COLS), 31);
  values[500] = NAN; // not first: never the greatest
  values[0] = -INFINITY;
  assert_int_equal(greatest(values, COLS), 31);
  values[0] = NAN; // first: never replaced
  assert_int_equal(greatest(values, COLS), 0);
  for (int i = 0; i < COLS; i++) values[i] = i ? NAN : -INFINITY;
  assert_int_equal(greatest(values, COLS), 0);
  values[COLS - 2] = -1e30f;
  assert_int_equal(greatest(values, COLS), COLS - 2);
}

/** A float sum has segments that no block may split: the row stays whole, or is refused. */
static void test_sum_in_segments(void **state) {
  (void)state;
  const folding f = {"$0", 1, WEFT_POOL_SUM, WEFT_FP32, WEFT_FP32};
  weft_graph *graph = fold_graph(&f, 1, 5000);
  weft_program *program;
  weft_target target = site_of(200000, 1, 1);
  assert_int_equal(plan_on(graph, &target, &program), WEFT_INVALID);
  assert_holds(first_message(graph_diag), "sum");
  weft_diag_clear(graph_diag);
  weft_program_free(program);
  weft_graph_free(graph);
}

/* ---- sums of integers that leave their accumulator ---- */

/** Status of x * w, one element, x being `first` 32 times and then `second` 32 times: by interpreter and schedule. */
static weft_status summed(weft_format format, weft_acc_policy acc, int64_t first, int64_t second, int64_t w) {
  weft_graph *graph = weft_graph_new("sum", graph_diag);
  uint32_t a = weft_graph_input(graph, "a", format, 2, (const uint64_t[]){1, 64});
  uint32_t b = weft_graph_input(graph, "b", format, 2, (const uint64_t[]){64, 1});
  uint32_t y = weft_graph_matmul(graph, "y", a, b);
  weft_graph_output(graph, y, "y");
  graph->ops[0].acc = acc;
  graph->values[y].dtype = weft_acc_format(acc);
  weft_program *program;
  weft_array_set in = {0}, want = {0}, got = {0};
  const weft_target target = site_of(1000000, 1, 1);
  if (plan_on(graph, &target, &program)) fail_msg("%s", first_message(graph_diag));
  make_inputs(program, 1, &in);
  for (uint64_t k = 0; k < 64; k++) {
    weft_store_i64(format, weft_array_set_find(&in, "a")->data, k, k < 32 ? first : second);
    weft_store_i64(format, weft_array_set_find(&in, "b")->data, k, w);
  }
  weft_status status = weft_graph_interpret(graph, &in, &want, graph_diag);
  assert_int_equal(run_program(program, &in, false, 0, &got, graph_diag), status);
  if (status == WEFT_OK) assert_same_sets(&want, &got);
  weft_diag_clear(graph_diag);
  weft_array_set_free(&in);
  weft_array_set_free(&want);
  weft_array_set_free(&got);
  weft_program_free(program);
  weft_graph_free(graph);
  return status;
}

/** A sum into 32 bits is judged when it is whole. */
static void test_integer_sums(void **state) {
  (void)state;
  assert_int_equal(summed(WEFT_INT16, WEFT_ACC_I32, 30000, -30000, 30000), WEFT_OK);
  assert_int_equal(summed(WEFT_INT16, WEFT_ACC_I32, 30000, -29998, 30000), WEFT_OK);
  assert_int_equal(summed(WEFT_INT16, WEFT_ACC_I32, 30000, -20000, 30000), WEFT_INVALID);
  assert_int_equal(summed(WEFT_INT32, WEFT_ACC_I64, INT32_MAX / 16, -INT32_MAX / 16, INT32_MAX), WEFT_OK);
  assert_int_equal(summed(WEFT_INT32, WEFT_ACC_I64, INT32_MAX, INT32_MAX, INT32_MAX), WEFT_INVALID);
}

/* ---- products of many columns ---- */

static const weft_decoder_options decoder = {.layers = 1,
                                             .width = 96,
                                             .heads = 4,
                                             .kv_heads = 2,
                                             .hidden = 200,
                                             .vocabulary = 9001,
                                             .context = 40,
                                             .prompt = 3,
                                             .eps_nano = 10000,
                                             .dtype = WEFT_BF16};

static void test_long_vocabulary(void **state) {
  (void)state;
  weft_graph *graph;
  weft_program *program;
  weft_array_set in = {0}, want = {0}, got = {0};
  assert_int_equal(weft_graph_new_decoder(&decoder, &graph, graph_diag), WEFT_OK);
  const weft_target target = site_of(400000, 3, 2);
  if (plan_on(graph, &target, &program)) fail_msg("%s", first_message(graph_diag));
  assert_true(stages_called(program, ".block") > 0);
  uint64_t rounds = 0;
  for (uint64_t k = 0; k < program->section_count; k++) rounds += strchr(program->sections[k].name, '+') != NULL;
  assert_true(rounds > 1);
  weft_certificate certificate = {0};
  assert_int_equal(weft_certify(program, &certificate, graph_diag), WEFT_OK);
  make_inputs(program, 5, &in);
  assert_int_equal(weft_graph_interpret(graph, &in, &want, graph_diag), WEFT_OK);
  assert_int_equal(run_program(program, &in, true, 3, &got, graph_diag), WEFT_OK);
  assert_same_sets(&want, &got);
  weft_array_set_free(&in);
  weft_array_set_free(&want);
  weft_array_set_free(&got);
  weft_program_free(program);
  weft_graph_free(graph);
}

int main(int argc, char **argv) {
  if (argc > 1) random_cases = strtoull(argv[1], NULL, 10);
  if (argc > 2) first_seed = strtoull(argv[2], NULL, 10);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_folds),    cmocka_unit_test(test_ties_and_nan),
      cmocka_unit_test(test_sum_in_segments), cmocka_unit_test(test_integer_sums),
      cmocka_unit_test(test_long_vocabulary),
  };
  return cmocka_run_group_tests(tests, make_graph_diag, free_graph_diag);
}
