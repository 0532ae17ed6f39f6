/* The networks of `weft new`, and the digits network with its trained weights: integers equal what numpy computed. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t digits[] = {784, 256, 256, 10};

static weft_graph *make(const weft_mlp_options *options, const char *output, weft_diag *diag) {
  weft_graph *graph;
  expect_ok(weft_graph_new_mlp(options, output, &graph, diag), diag);
  return graph;
}

static const weft_value *find(const weft_graph *g, const char *name) {
  for (uint64_t v = 0; v < g->value_count; v++)
    if (strcmp(g->values[v].name, name) == 0) return &g->values[v];
  fail_msg("no value '%s'", name);
  return NULL;
}

static void names_and_formats(void **state) {
  weft_graph *g = make(&(weft_mlp_options){.layers = digits,
                                           .layer_count = 4,
                                           .batch = 7,
                                           .dtype = WEFT_BF16,
                                           .bias = true,
                                           .relu = true,
                                           .input_name = "pixels"},
                       "logits", *state);
  assert_int_equal(g->section_count, 3);
  assert_int_equal(find(g, "pixels")->dtype, WEFT_BF16);
  assert_int_equal(find(g, "w3")->extents[1], 10);
  assert_int_equal(find(g, "b2")->rank, 1);
  assert_int_equal(find(g, "b2")->dtype, WEFT_FP32);
  assert_int_equal(find(g, "h1")->dtype, WEFT_BF16);
  assert_int_equal(find(g, "logits")->dtype, WEFT_FP32);
  assert_int_equal(find(g, "logits")->role, WEFT_ROLE_OUTPUT);
  assert_int_equal(g->ops[0].segments, 8);
  weft_graph_free(g);
  g = make(&(weft_mlp_options){.layers = digits, .layer_count = 3, .batch = 7, .dtype = WEFT_FP32, .segments = 4}, "y",
           *state);
  assert_int_equal(g->op_count, 2); // no bias, no relu
  assert_int_equal(g->ops[1].segments, 4);
  weft_graph_free(g);
}

static void integers_end_in_clamps(void **state) {
  const int64_t m[] = {3, 4};
  const uint32_t s[] = {5, 6};
  weft_mlp_options options = {.layers = digits,
                              .layer_count = 4,
                              .batch = 2,
                              .dtype = WEFT_INT8,
                              .bias = true,
                              .relu = true,
                              .requant_m = m,
                              .requant_s = s,
                              .requant_count = 2};
  weft_graph *g = make(&options, "y", *state);
  assert_int_equal(find(g, "y")->dtype, WEFT_INT32);
  const weft_graph_op *clamp = &g->ops[find(g, "h2")->producer];
  assert_int_equal(clamp->kind, WEFT_GRAPH_CLAMP);
  assert_int_equal(clamp->low, 0);
  assert_int_equal(clamp->high, 127);
  assert_int_equal(g->ops[g->values[clamp->ins[0]].producer].m, 4);
  weft_graph_free(g);
  options.layer_count = 3; // now the last layer has a requant too
  options.relu = false;
  g = make(&options, "y", *state);
  clamp = &g->ops[find(g, "y")->producer];
  assert_int_equal(clamp->low, -128);
  assert_int_equal(find(g, "y")->dtype, WEFT_INT8);
  assert_int_equal(g->ops[find(g, "h1")->producer].low, -128);
  weft_graph_free(g);
}

static void chosen_requants_use_the_range(void **state) {
  const weft_named_range ranges[] = {{"x", 0, 127}, {"b1", -5, 5}};
  weft_mlp_options options = {.layers = digits,
                              .layer_count = 4,
                              .batch = 50,
                              .dtype = WEFT_INT8,
                              .bias = true,
                              .relu = false,
                              .ranges = ranges,
                              .range_count = 2};
  weft_graph *g = make(&options, "y", *state);
  assert_int_equal(find(g, "x")->range.low, 0);
  assert_int_equal(find(g, "b1")->range.high, 5);
  assert_int_equal(find(g, "w1")->range.low, -128);
  weft_array_set in = {0}, out = {0};
  chance c = {1};
  random_inputs(&c, g, &in);
  expect_ok(weft_graph_interpret(g, &in, &out, *state), *state);
  const weft_array *y = weft_array_set_find(&out, "y");
  int64_t largest = 0;
  for (uint64_t i = 0; i < weft_array_elements(y); i++)
    largest = labs(weft_load_i64(y->dtype, y->data, i)) > largest ? labs(weft_load_i64(y->dtype, y->data, i)) : largest;
  assert_true(largest > 10000); // what the hidden layers hand on is neither all zero nor all clamped
  weft_array_set_free(&in);
  weft_array_set_free(&out);
  weft_graph_free(g);
}

static void wrong_options_are_named(void **state) {
  static const int64_t m[4] = {1, 1, 1, 1};
  static const uint32_t s[4] = {1, 1, 1, 64};
  static const weft_named_range range = {"w9", 0, 1};
  static const struct {
    weft_mlp_options options;
    const char *message;
  } cases[] = {
      {{.layers = digits, .layer_count = 1}, "at least two widths"},
      {{.layers = digits, .layer_count = 4, .dtype = WEFT_FP16}, "a network of Fp16"},
      {{.layers = digits, .layer_count = 4, .dtype = WEFT_FP32, .requant_m = m, .requant_s = s, .requant_count = 3},
       "are for integers"},
      {{.layers = digits, .layer_count = 4, .dtype = WEFT_INT8, .requant_m = m, .requant_s = s, .requant_count = 1},
       "1 requants for 3 layers"},
      {{.layers = digits,
        .layer_count = 4,
        .dtype = WEFT_INT8,
        .requant_m = m + 1,
        .requant_s = s + 1,
        .requant_count = 3},
       "a requant shift of 64"},
      {{.layers = digits, .layer_count = 4, .dtype = WEFT_FP32, .segments = 33}, "33 segments"},
      {{.layers = digits, .layer_count = 4, .dtype = WEFT_INT8, .ranges = &range, .range_count = 1},
       "a range for 'w9'"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    weft_graph *graph;
    weft_diag_clear(*state);
    weft_mlp_options options = cases[i].options;
    if (!options.batch) options.batch = 1;
    assert_int_equal(weft_graph_new_mlp(&options, "y", &graph, *state), WEFT_INVALID);
    assert_null(graph);
    expect_message(*state, cases[i].message);
  }
}

/* ---- real data ----------------------------------------------------------------------------------------------------
 */

static void read_file(const char *name, weft_array_set *set, weft_diag *diag) {
  char path[512];
  snprintf(path, sizeof path, WEFT_SOURCE_DIR "/data/samples/%s", name);
  expect_ok(weft_array_set_read(path, set, diag), diag);
}

/** The network through lowering and lifting, as every command sees it. */
static weft_graph *through_a_program(weft_graph *graph, weft_diag *diag) {
  weft_program *program;
  weft_graph *lifted;
  expect_ok(weft_graph_lower(graph, &program, diag), diag);
  expect_ok(weft_graph_lift(program, &lifted, diag), diag);
  expect_equal_graphs(graph, lifted);
  weft_program_free(program);
  weft_graph_free(graph);
  return lifted;
}

static void integer_digits_are_exact(void **state) {
  static const int64_t m[] = {17878, 16623, 30213};
  static const uint32_t s[] = {23, 22, 25};
  static const struct {
    uint32_t layers, requants;
    bool relu_last;
    const char *output;
  } cases[] = {{3, 2, false, "logits_i32"}, {3, 3, false, "logits_i8"}, {1, 1, true, "h1"}, {2, 2, true, "h2"}};
  weft_array_set in = {0};
  read_file("mnist-mlp-int8.h5", &in, *state);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    weft_mlp_options options = {.layers = digits,
                                .layer_count = cases[i].layers + 1,
                                .batch = 1000,
                                .dtype = WEFT_INT8,
                                .bias = true,
                                .relu = true,
                                .requant_m = m,
                                .requant_s = s,
                                .requant_count = cases[i].requants,
                                .relu_last = cases[i].relu_last,
                                .input_name = "x_test"};
    weft_graph *g = through_a_program(make(&options, cases[i].output, *state), *state);
    weft_array_set out = {0}, expected = {0};
    expect_ok(weft_graph_interpret(g, &in, &out, *state), *state);
    const weft_array *file = weft_array_set_find(&in, cases[i].output);
    weft_array *copy = weft_array_set_add(&expected, cases[i].output, file->dtype, file->rank, file->extents);
    memcpy(copy->data, file->data, weft_array_elements(file) * weft_format_bytes(file->dtype));
    expect_equal_sets(&expected, &out);
    weft_array_set_free(&out);
    weft_array_set_free(&expected);
    weft_graph_free(g);
  }
  weft_array_set_free(&in);
}

static void float_digits_are_close(void **state) {
  weft_array_set in = {0}, out = {0};
  read_file("mnist-mlp.h5", &in, *state);
  weft_mlp_options options = {.layers = digits,
                              .layer_count = 4,
                              .batch = 1000,
                              .dtype = WEFT_FP32,
                              .bias = true,
                              .relu = true,
                              .input_name = "x_test"};
  weft_graph *g = through_a_program(make(&options, "result", *state), *state);
  expect_ok(weft_graph_interpret(g, &in, &out, *state), *state);
  const float *result = weft_array_set_find(&out, "result")->data, *expected = weft_array_set_find(&in, "logits")->data;
  const int32_t *labels = weft_array_set_find(&in, "labels")->data;
  uint32_t right = 0;
  for (uint32_t i = 0; i < 1000; i++) {
    uint32_t best = 0;
    for (uint32_t j = 0; j < 10; j++) {
      assert_true(fabsf(result[i * 10 + j] - expected[i * 10 + j]) <= 5e-5f);
      if (result[i * 10 + j] > result[i * 10 + best]) best = j;
    }
    right += best == (uint32_t)labels[i];
  }
  assert_int_equal(right, 982);
  weft_array_set_free(&in);
  weft_array_set_free(&out);
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
      TEST(names_and_formats),       TEST(integers_end_in_clamps),   TEST(chosen_requants_use_the_range),
      TEST(wrong_options_are_named), TEST(integer_digits_are_exact), TEST(float_digits_are_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
