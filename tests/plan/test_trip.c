/* Products up to a position: from the graph's builder through lowering, lifting, partitioning and planning to runs, for
 * every count that the trip admits; positions out of range and graphs that cannot have one are refused. */
#include "support.h"
#include "weft/graph.h"
#include "weft/partition.h"

#include <math.h>
#include <string.h>

enum { ROWS = 3, K = 70, COLS = 40 };

/** y = x @ w up to pos, in the format of x. */
static weft_graph *make_graph(weft_format dtype) {
  const uint64_t x[] = {ROWS, K}, w[] = {K, COLS}, one[] = {1, 1};
  weft_graph *graph = weft_graph_new("up_to", graph_diag);
  weft_graph_section(graph, "product");
  uint32_t pos = weft_graph_input(graph, "pos", WEFT_INT32, 2, one);
  uint32_t y = weft_graph_matmul_up_to(graph, "product", weft_graph_input(graph, "x", dtype, 2, x),
                                       weft_graph_param(graph, "w", dtype, 2, w), pos);
  weft_graph_output(graph, y, "y");
  return graph;
}

static void set_position(weft_array_set *in, int64_t position) {
  weft_array *pos = weft_array_set_add(in, "pos", WEFT_INT32, 2, (const uint64_t[]){1, 1});
  assert_non_null(pos);
  ((int32_t *)pos->data)[0] = (int32_t)position;
}

static const int64_t positions[] = {0, 1, 31, 32, 63, 64, 69};
enum { POSITION_COUNT = sizeof positions / sizeof *positions };

/** By the definition: one chain of fma over the units of 32 up to the position. */
static void assert_product(const weft_array_set *in, const weft_array_set *out, int64_t position) {
  uint64_t end = ((uint64_t)position / 32 + 1) * 32;
  if (end > K) end = K;
  for (uint64_t r = 0; r < ROWS; r++)
    for (uint64_t c = 0; c < COLS; c++) {
      float sum = 0;
      for (uint64_t k = 0; k < end; k++) sum = fmaf(real_at(in, "x", r, k), real_at(in, "w", k, c), sum);
      float found = real_at(out, "y", r, c);
      assert_memory_equal(&found, &sum, sizeof sum);
    }
}

static void check_program(const weft_program *program, weft_array_set *in, const weft_graph *graph) {
  for (int i = 0; i < POSITION_COUNT; i++) {
    weft_array_set want = {0}, got = {0};
    set_position(in, positions[i]);
    assert_int_equal(weft_graph_interpret(graph, in, &want, graph_diag), WEFT_OK);
    assert_product(in, &want, positions[i]);
    for (uint64_t seed = 0; seed < 3; seed++) {
      assert_int_equal(run_program(program, in, seed != 0, seed, &got, graph_diag), WEFT_OK);
      assert_same_sets(&want, &got);
      weft_array_set_free(&got);
    }
    weft_array_set_free(&want);
  }
  for (int i = 0; i < 2; i++) {
    weft_array_set got = {0};
    weft_diag *diag = weft_diag_new();
    set_position(in, i ? K : -1);
    assert_int_equal(run_program(program, in, false, 0, &got, diag), WEFT_INVALID);
    assert_holds(first_message(diag), "`pos`");
    assert_holds(first_message(diag), "the program admits 0 to 69");
    weft_diag_free(diag);
    diag = weft_diag_new();
    assert_int_equal(weft_graph_interpret(graph, in, &got, diag), WEFT_INVALID);
    assert_holds(first_message(diag), "the program admits 0 to 69");
    weft_diag_free(diag);
    weft_array_set_free(&got);
  }
}

static void test_planned(void **state) {
  (void)state;
  static const char *const targets[] = {"cpu", "mesh-8x8", "rdu"};
  for (int f = 0; f < 2; f++)
    for (int t = 0; t < 3; t++) {
      weft_graph *graph = make_graph(f ? WEFT_BF16 : WEFT_FP32);
      weft_program *program = NULL;
      weft_array_set in = {0};
      assert_int_equal(weft_graph_lower(graph, &program, graph_diag), WEFT_OK);
      assert_int_equal(program->trip_count, 1);
      make_inputs(program, 5, &in);
      plan_for(program, targets[t], NULL);
      assert_int_equal(weft_program_phase(program), WEFT_PHASE_VERIFIED);
      check_program(program, &in, graph);
      weft_array_set_free(&in);
      weft_program_free(program);
      weft_graph_free(graph);
    }
}

/** Lifting finds the position again. */
static void test_lifted(void **state) {
  (void)state;
  weft_graph *graph = make_graph(WEFT_FP32), *lifted = NULL;
  weft_program *program = NULL;
  assert_int_equal(weft_graph_lower(graph, &program, graph_diag), WEFT_OK);
  assert_int_equal(weft_graph_lift(program, &lifted, graph_diag), WEFT_OK);
  assert_int_equal(lifted->op_count, 1);
  assert_int_equal(lifted->ops[0].kind, WEFT_GRAPH_MATMUL);
  assert_int_equal(lifted->ops[0].in_count, 3);
  assert_string_equal(lifted->values[lifted->ops[0].ins[2]].name, "pos");
  program->trips[0].per = 64;
  weft_diag *diag = weft_diag_new();
  weft_graph *none = NULL;
  assert_int_equal(weft_graph_lift(program, &none, diag), WEFT_INVALID);
  assert_holds(first_message(diag), "a count that is no position");
  weft_diag_free(diag);
  weft_program_free(program);
  weft_graph_free(lifted);
  weft_graph_free(graph);
}

/** Cut by columns and rows, over the whole machine and chip by chip. */
static void test_partitioned(void **state) {
  (void)state;
  static const char *const cases[][2] = {{"x=2", "columns"}, {"x=3", "columns"}, {"x=2", "batch"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    weft_graph *graph = make_graph(WEFT_FP32), *machine = NULL;
    weft_target target;
    weft_partition_options options = {.split = cases[i][1]};
    weft_program *program = NULL, *parts[3] = {0};
    weft_array_set in = {0};
    assert_int_equal(weft_target_load("cpu", &target, graph_diag), WEFT_OK);
    assert_int_equal(weft_mesh_parse(cases[i][0], &options.mesh, graph_diag), WEFT_OK);
    assert_int_equal(weft_partition(graph, &options, &target, &machine, NULL, graph_diag), WEFT_OK);
    assert_int_equal(weft_graph_lower(machine, &program, graph_diag), WEFT_OK);
    const uint32_t chips = weft_mesh_chips(&options.mesh);
    assert_int_equal(weft_split(program, chips, parts, graph_diag), WEFT_OK);
    assert_int_equal(weft_split_check((const weft_program *const *)parts, chips, graph_diag), WEFT_OK);
    for (uint32_t c = 0; c < chips; c++) {
      bool works = parts[c]->stage_count > 0;
      for (uint64_t t = 0; t < parts[c]->trip_count; t++)
        assert_string_equal(parts[c]->tensors[parts[c]->trips[t].tensor].shard.of, "pos");
      if (works) plan_for(parts[c], "cpu", NULL);
      weft_program_free(parts[c]);
    }
    weft_program *whole = NULL;
    assert_int_equal(weft_graph_lower(graph, &whole, graph_diag), WEFT_OK);
    make_inputs(whole, 9, &in);
    plan_for(program, "cpu", NULL);
    check_program(program, &in, graph);
    weft_array_set_free(&in);
    weft_program_free(whole);
    weft_program_free(program);
    weft_graph_free(machine);
    weft_graph_free(graph);
  }
}

/** Where its K ends is not known: it is not cut. */
static void test_rows_refused(void **state) {
  (void)state;
  weft_graph *graph = make_graph(WEFT_FP32), *machine = NULL;
  weft_target target;
  weft_partition_options options = {.split = "rows"};
  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_target_load("cpu", &target, diag), WEFT_OK);
  assert_int_equal(weft_mesh_parse("x=2", &options.mesh, diag), WEFT_OK);
  assert_int_equal(weft_partition(graph, &options, &target, &machine, NULL, diag), WEFT_INVALID);
  assert_holds(first_message(diag), "splits K of matmul 'product'");
  weft_diag_free(diag);
  weft_graph_free(graph);
}

static void assert_graph_refused(weft_format x_dtype, weft_format pos_dtype, uint64_t elements, bool state,
                                 const char *part) {
  weft_diag *diag = weft_diag_new();
  const uint64_t x[] = {2, 40}, w[] = {40, 3}, extents[] = {1, elements};
  weft_graph *graph = weft_graph_new("bad", diag);
  weft_graph_section(graph, "product");
  uint32_t pos = state ? weft_graph_state(graph, "pos", pos_dtype, 2, extents)
                       : weft_graph_input(graph, "pos", pos_dtype, 2, extents);
  uint32_t y = weft_graph_matmul_up_to(graph, "product", weft_graph_input(graph, "x", x_dtype, 2, x),
                                       weft_graph_param(graph, "w", x_dtype, 2, w), pos);
  if (y != WEFT_NONE) weft_graph_output(graph, y, "y");
  assert_int_equal(weft_graph_check(graph, diag), WEFT_INVALID);
  assert_holds(first_message(diag), part);
  weft_graph_free(graph);
  weft_diag_free(diag);
}

static void test_refused(void **state) {
  (void)state;
  assert_graph_refused(WEFT_FP32, WEFT_INT32, 1, true, "'pos' is State");
  assert_graph_refused(WEFT_FP32, WEFT_FP32, 1, false, "'pos' is Input Fp32");
  assert_graph_refused(WEFT_FP32, WEFT_INT32, 2, false, "'pos' is Input Int32");
  assert_graph_refused(WEFT_INT8, WEFT_INT32, 1, false, "product");
}

/** One greater at every step, from its fill where it is not given, and not past its format or its range. */
static void test_advanced(void **state) {
  (void)state;
  weft_graph *graph = make_graph(WEFT_FP32);
  graph->values[0].init.kind = WEFT_INIT_ZERO;
  weft_program *program = NULL;
  weft_array_set in = {0}, want = {0}, got = {0};
  assert_int_equal(weft_graph_lower(graph, &program, graph_diag), WEFT_OK);
  make_inputs(program, 5, &in);
  plan_for(program, "cpu", NULL);
  set_position(&in, 32);
  assert_int_equal(weft_graph_interpret(graph, &in, &want, graph_diag), WEFT_OK);
  for (int given = 0; given < 2; given++) {
    weft_array_set start = {0};
    make_inputs(program, 5, &start);
    if (given) set_position(&start, 0);
    weft_evaluate_options options = {.steps = 33, .advance = "pos"};
    assert_int_equal(weft_evaluate(program, &options, &start, &got, graph_diag), WEFT_OK);
    assert_same_sets(&want, &got);
    weft_array_set_free(&got);
    assert_int_equal(weft_graph_interpret_steps(graph, 33, "pos", &start, &got, graph_diag), WEFT_OK);
    assert_same_sets(&want, &got);
    weft_array_set_free(&got);
    weft_diag *diag = weft_diag_new();
    options.steps = K + 1;
    assert_int_equal(weft_evaluate(program, &options, &start, &got, diag), WEFT_INVALID);
    options.advance = "x";
    assert_int_equal(weft_evaluate(program, &options, &start, &got, diag), WEFT_USAGE);
    assert_int_equal(weft_graph_interpret_steps(graph, 2, "x", &start, &got, diag), WEFT_USAGE);
    weft_diag_free(diag);
    weft_array_set_free(&got);
    weft_array_set_free(&start);
  }
  weft_array_set_free(&want);
  weft_array_set_free(&in);
  weft_program_free(program);
  weft_graph_free(graph);
}

/* ---- attention block by block ---- */

enum { HEADS = 4, SIZE = 40, KEYS = 100 };

/** One row of data/samples/flash-attention.json by its definition, in fp32: running maximum, sum and result. */
static void attend_row(const weft_array_set *in, uint64_t row, int64_t position, float *result) {
  float most = -INFINITY, sum = 0;
  for (uint64_t c = 0; c < SIZE; c++) result[c] = 0;
  for (uint64_t block = 0; block <= (uint64_t)position / 32; block++) {
    float scores[32], found = -INFINITY, total = 0;
    for (uint64_t j = 0; j < 32; j++) {
      uint64_t key = block * 32 + j;
      float score = 0;
      for (uint64_t k = 0; k < SIZE && key < KEYS; k++)
        score = score + real_at(in, "q", row, k) * real_at(in, "k", key, k);
      scores[j] = key <= (uint64_t)position ? score * (float)pow(SIZE, -0.5) : -INFINITY;
      found = scores[j] > found ? scores[j] : found;
    }
    float next = most > found ? most : found, correction = weft_expf(most - next);
    for (uint64_t j = 0; j < 32; j++) {
      scores[j] = weft_expf(scores[j] - next);
      total = total + scores[j];
    }
    sum = sum * correction + total;
    for (uint64_t c = 0; c < SIZE; c++) {
      float mixed = 0;
      for (uint64_t j = 0; j < 32; j++)
        mixed = mixed + scores[j] * (block * 32 + j < KEYS ? real_at(in, "v", block * 32 + j, c) : 0.0f);
      result[c] = result[c] * correction + mixed;
    }
    most = next;
  }
  for (uint64_t c = 0; c < SIZE; c++) result[c] = result[c] * (1.0f / sum);
}

static void test_flash(void **state) {
  (void)state;
  static const char *const targets[] = {"cpu", "mesh-8x8", "rdu"};
  for (int t = 0; t < 3; t++) {
    weft_program *program = NULL;
    weft_array_set in = {0};
    assert_int_equal(weft_program_read_file(WEFT_SOURCE_DIR "/data/samples/flash-attention.json", &program, graph_diag),
                     WEFT_OK);
    make_inputs(program, 31, &in);
    plan_for(program, targets[t], NULL);
    assert_int_equal(weft_program_phase(program), WEFT_PHASE_VERIFIED);
    for (int64_t position = 0; position < KEYS; position += position % 32 < 30 ? 15 : 1) {
      set_position(&in, position);
      for (uint64_t seed = 0; seed < 3; seed++) {
        weft_array_set out = {0};
        assert_int_equal(run_program(program, &in, seed != 0, seed, &out, graph_diag), WEFT_OK);
        for (uint64_t r = 0; r < HEADS; r++) {
          float want[SIZE];
          attend_row(&in, r, position, want);
          for (uint64_t c = 0; c < SIZE; c++) {
            float found = real_at(&out, "y", r, c);
            assert_memory_equal(&found, &want[c], sizeof found);
          }
        }
        weft_array_set_free(&out);
      }
    }
    weft_array_set_free(&in);
    weft_program_free(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_planned),     cmocka_unit_test(test_flash),        cmocka_unit_test(test_lifted),
      cmocka_unit_test(test_partitioned), cmocka_unit_test(test_rows_refused), cmocka_unit_test(test_refused),
      cmocka_unit_test(test_advanced),
  };
  return cmocka_run_group_tests(tests, make_graph_diag, free_graph_diag);
}
