/* The evaluator against plain loops, which share nothing with it but the elements' formats. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** A fold of one element by the definition in docs/arithmetic.md, written out again. */
static float plain_dot(const weft_array_set *in, const char *a, const char *b, uint64_t r, uint64_t c, uint64_t k) {
  float sum = 0.0f;
  for (uint64_t i = 0; i < k; i++) sum = fmaf(real_at(in, a, r, i), real_at(in, b, i, c), sum);
  return sum;
}

/** Keeps a program's integers where its narrow results hold them. */
static void shrink(weft_program *program) {
  for (uint64_t t = 0; t < program->tensor_count; t++)
    if (program->tensors[t].dtype == WEFT_INT8 && program->tensors[t].has_range)
      program->tensors[t].range = (weft_range){-20, 20};
}

static void run_case(const char *name, const char *target, weft_array_set *in, weft_array_set *out) {
  weft_program *program = read_case(name);
  shrink(program);
  make_inputs(program, 7, in);
  if (target) plan_for(program, target, NULL);
  evaluate(program, in, out);
  weft_program_free(program);
}

static void check_gemm(const char *name, const char *target, uint64_t m, uint64_t k, uint64_t n, bool pattern) {
  weft_array_set in = {0}, out = {0};
  run_case(name, target, &in, &out);
  if (pattern) { /* the program fills A itself: p mod 7 - 3 */
    uint64_t extents[] = {m, k};
    const weft_array *b = weft_array_set_find(&in, "B");
    weft_format dtype = b->dtype;
    weft_array *a = weft_array_set_add(&in, "A", dtype, 2, extents);
    for (uint64_t p = 0; p < m * k; p++) weft_store_f32(dtype, a->data, p, (float)((int)(p % 7) - 3));
  }
  for (uint64_t r = 0; r < m; r++)
    for (uint64_t c = 0; c < n; c++) {
      float want = plain_dot(&in, "A", "B", r, c, k);
      weft_format dtype = weft_array_set_find(&out, "C")->dtype;
      uint8_t rounded[4];
      weft_store_f32(dtype, rounded, 0, want);
      float got = real_at(&out, "C", r, c);
      if (weft_load_f32(dtype, rounded, 0) != got)
        print_error("%s: C[%d, %d] is %g, not %g\n", name, (int)r, (int)c, (double)got, (double)want);
      assert_true(weft_load_f32(dtype, rounded, 0) == got);
    }
  weft_array_set_free(&in);
  weft_array_set_free(&out);
}

static void test_gemm(void **state) {
  (void)state;
  check_gemm("scheduled-gemm-1site", NULL, 64, 128, 64, false);
  check_gemm("scheduled-gemm-spill", NULL, 64, 128, 128, false);
  check_gemm("scheduled-gemm-2x2-multicast", NULL, 128, 96, 128, false);
  check_gemm("scheduled-row-multicast", NULL, 32, 96, 64, false);
  check_gemm("placed-gemm-1site", "cpu", 64, 96, 64, false);
  check_gemm("template-gemm", "cpu", 64, 96, 64, true);
  check_gemm("template-gemm-ragged", "cpu", 33, 65, 40, true);
  check_gemm("tiled-gemm", "cpu", 64, 96, 64, true);
}

/** x * w + bias, relu, requant, in plain integers. */
static void check_int8(const char *name, const char *target, uint64_t m, uint64_t k, uint64_t n) {
  weft_array_set in = {0}, out = {0};
  run_case(name, target, &in, &out);
  for (uint64_t r = 0; r < m; r++)
    for (uint64_t c = 0; c < n; c++) {
      int64_t sum = (int64_t)(c % 1000) - 500;
      for (uint64_t i = 0; i < k; i++) sum += whole_at(&in, "x", r, i) * whole_at(&in, "w", i, c);
      if (sum < 0) sum = 0;
      int64_t want = (int64_t)floor((double)sum * 1431655766.0 / 1099511627776.0);
      assert_int_equal(want, whole_at(&out, "y", r, c));
    }
  weft_array_set_free(&in);
  weft_array_set_free(&out);
}

static void test_int8_epilogue(void **state) {
  (void)state;
  check_int8("scheduled-int8-epilogue", NULL, 32, 64, 64);
  check_int8("template-int8-epilogue", "cpu", 64, 96, 64);
}

static void check_elementwise(const char *name, const char *target, uint64_t rows, uint64_t cols) {
  weft_array_set in = {0}, out = {0};
  run_case(name, target, &in, &out);
  for (uint64_t r = 0; r < rows; r++)
    for (uint64_t c = 0; c < cols; c++) {
      float scaled = real_at(&in, "x", r, c) * 2.5f;
      float want = scaled + real_at(&in, "z", r, c);
      assert_true(want == real_at(&out, "y", r, c));
    }
  weft_array_set_free(&in);
  weft_array_set_free(&out);
}

static void test_elementwise(void **state) {
  (void)state;
  check_elementwise("scheduled-elementwise-2sites", NULL, 128, 96);
  check_elementwise("template-elementwise", "cpu", 64, 96);
  check_elementwise("tiled-elementwise", "cpu", 64, 96);
  check_elementwise("template-elementwise-zero-rows", "cpu", 0, 64);
}

static void check_softmax(const char *name, const char *target, uint64_t rows, uint64_t cols) {
  weft_array_set in = {0}, out = {0};
  run_case(name, target, &in, &out);
  for (uint64_t r = 0; r < rows; r++) {
    double greatest = -INFINITY, sum = 0;
    for (uint64_t c = 0; c < cols; c++) greatest = fmax(greatest, (double)real_at(&in, "logits", r, c));
    for (uint64_t c = 0; c < cols; c++) sum += exp((double)real_at(&in, "logits", r, c) - greatest);
    for (uint64_t c = 0; c < cols; c++) {
      double want = exp((double)real_at(&in, "logits", r, c) - greatest) / sum;
      assert_true(fabs(want - (double)real_at(&out, "probs", r, c)) < 2e-6 * want + 1e-9);
    }
  }
  weft_array_set_free(&in);
  weft_array_set_free(&out);
}

static void test_softmax(void **state) {
  (void)state;
  check_softmax("scheduled-softmax", NULL, 96, 64);
  check_softmax("template-softmax", "cpu", 64, 128);
}

static void check_scalar(const char *name, const char *target, uint64_t rows, uint64_t cols) {
  weft_array_set in = {0}, out = {0};
  run_case(name, target, &in, &out);
  for (uint64_t r = 0; r < rows; r++)
    for (uint64_t c = 0; c < cols; c++) {
      int64_t difference = whole_at(&in, "x", r, c) - whole_at(&in, "z", r, c);
      assert_int_equal(llabs(difference), whole_at(&out, "y", r, c));
    }
  weft_array_set_free(&in);
  weft_array_set_free(&out);
}

static void test_scalar(void **state) {
  (void)state;
  check_scalar("scheduled-scalar", NULL, 64, 32);
  check_scalar("template-scalar", "cpu", 64, 64);
}

static void test_items(void **state) {
  (void)state;
  weft_array_set in = {0}, out = {0};
  run_case("scheduled-items", NULL, &in, &out);
  for (uint64_t r = 0; r < 96; r++)
    for (uint64_t c = 0; c < 64; c++) assert_true(fmaxf(real_at(&in, "x", r, c), 0.0f) == real_at(&out, "y", r, c));
  weft_array_set_free(&in);
  weft_array_set_free(&out);
}

/** The greatest of each row of the first blocks, in column 0 of y. */
static void check_fold(const char *name, uint64_t position, uint64_t cols) {
  weft_program *program = read_case(name);
  weft_array_set in = {0}, out = {0};
  make_inputs(program, 3, &in);
  weft_array *pos = weft_array_set_find(&in, "pos");
  if (pos) ((int32_t *)pos->data)[0] = (int32_t)position;
  evaluate(program, &in, &out);
  for (uint64_t r = 0; r < 32; r++) {
    float greatest = -INFINITY;
    for (uint64_t c = 0; c < cols; c++) greatest = fmaxf(greatest, real_at(&in, "x", r, c));
    assert_true(greatest == real_at(&out, "y", r, 0));
  }
  weft_array_set_free(&in);
  weft_array_set_free(&out);
  weft_program_free(program);
}

static void test_folds(void **state) {
  (void)state;
  check_fold("scheduled-carry-fold", 0, 256);
  for (uint64_t position = 0; position < 256; position += 15)
    check_fold("scheduled-trip-fold", position, (position + 32) / 32 * 32);
}

/** A dataset outside its declared range is refused before anything else looks at it. */
static void forget_ranges(weft_program *program) {
  for (uint64_t t = 0; t < program->tensor_count; t++) program->tensors[t].has_range = false;
}

static void test_range_is_kept(void **state) {
  (void)state;
  weft_program *program = read_case("scheduled-trip-fold");
  weft_array_set in = {0}, out = {0};
  make_inputs(program, 3, &in);
  ((int32_t *)weft_array_set_find(&in, "pos")->data)[0] = 256;
  weft_diag *diag = weft_diag_new();
  assert_int_equal(run_program(program, &in, false, 0, &out, diag), WEFT_INVALID);
  assert_holds(first_message(diag), "dataset 'pos' holds 256, outside its range 0..255");
  weft_diag_free(diag);
  weft_array_set_free(&in);
  weft_array_set_free(&out);
  weft_program_free(program);
}

static void test_trip_is_refused_out_of_range(void **state) {
  (void)state;
  weft_program *program = read_case("scheduled-trip-fold");
  weft_array_set in = {0}, out = {0};
  make_inputs(program, 3, &in);
  ((int32_t *)weft_array_set_find(&in, "pos")->data)[0] = 256;
  forget_ranges(program);
  weft_diag *diag = weft_diag_new();
  assert_int_equal(run_program(program, &in, false, 0, &out, diag), WEFT_INVALID);
  assert_holds(first_message(diag), "element 0 of `pos` is 256");
  weft_diag_free(diag);
  weft_array_set_free(&in);
  weft_array_set_free(&out);
  weft_program_free(program);
}

static void test_gather(void **state) {
  (void)state;
  weft_program *program = read_case("scheduled-gather");
  for (int32_t token = 0; token < 1000; token += 37) {
    weft_array_set in = {0}, out = {0};
    make_inputs(program, 5, &in);
    ((int32_t *)weft_array_set_find(&in, "token")->data)[0] = token;
    evaluate(program, &in, &out);
    for (uint64_t r = 0; r < 32; r += 31)
      for (uint64_t c = 0; c < 64; c++)
        assert_true(real_at(&in, "table", (uint64_t)token, c) == real_at(&out, "row", r, c));
    weft_array_set_free(&in);
    weft_array_set_free(&out);
  }
  weft_array_set in = {0}, out = {0};
  make_inputs(program, 5, &in);
  ((int32_t *)weft_array_set_find(&in, "token")->data)[0] = 1000;
  forget_ranges(program);
  weft_diag *diag = weft_diag_new();
  assert_int_equal(run_program(program, &in, false, 0, &out, diag), WEFT_INVALID);
  assert_holds(first_message(diag), "ReadTiles of stage `gather`: the index 1000 is outside 0 to 999");
  weft_diag_free(diag);
  weft_array_set_free(&in);
  weft_array_set_free(&out);
  weft_program_free(program);
}

/** One row of the cache is replaced; all others keep their values. */
static void test_scatter(void **state) {
  (void)state;
  weft_program *program = read_case("scheduled-state-scatter");
  for (int32_t position = 0; position < 256; position += 51) {
    weft_array_set in = {0}, out = {0};
    make_inputs(program, 9, &in);
    ((int32_t *)weft_array_set_find(&in, "pos")->data)[0] = position;
    evaluate(program, &in, &out);
    for (uint64_t r = 0; r < 256; r++)
      for (uint64_t c = 0; c < 64; c++) {
        float want = r == (uint64_t)position ? fmaxf(real_at(&in, "x", 0, c), 0.0f) : real_at(&in, "cache", r, c);
        assert_true(want == real_at(&out, "cache", r, c));
      }
    weft_array_set_free(&in);
    weft_array_set_free(&out);
  }
  weft_program_free(program);
}

/* ---- folds by segments ---- */

static void set_segments(const weft_op *ops, uint64_t count, uint32_t segments) {
  for (uint64_t i = 0; i < count; i++) {
    if (ops[i].kind == WEFT_OP_LOOP) set_segments(ops[i].loop.body, ops[i].loop.body_count, segments);
    if (ops[i].kind == WEFT_OP_COMPUTE && ops[i].compute.op->kind == WEFT_COMPUTE_MATMUL_TILES)
      ((weft_compute_op *)ops[i].compute.op)->matmul.segments = segments;
  }
}

/** A product of the case, its K cut into `segments`; spill pages grow to hold the levels of the fold. */
static void check_segments(const char *name, uint32_t segments, uint64_t levels) {
  weft_program *program = read_case(name);
  for (uint64_t s = 0; s < program->stage_count; s++)
    if (program->stages[s].kind == WEFT_STAGE_COMPUTE)
      ((weft_compute_op *)program->stages[s].compute)->matmul.segments = segments;
  for (uint64_t p = 0; p < program->schedule->program_count; p++)
    set_segments(program->schedule->programs[p].ops, program->schedule->programs[p].op_count, segments);
  for (uint64_t b = 0; b < program->buffer_count; b++)
    if (program->buffers[b].kind == WEFT_BUFFER_INTERM) {
      program->buffers[b].page_tiles *= levels;
      ((weft_buffer_at *)program->memory->buffer_at)[b].offset_bytes = 1 << 20;
      ((weft_buffer_at *)program->memory->buffer_at)[b].bytes *= (uint32_t)levels;
    }
  weft_array_set in = {0}, out = {0};
  make_inputs(program, 13, &in);
  evaluate(program, &in, &out);
  weft_certificate certificate;
  assert_int_equal(weft_certify(program, &certificate, NULL), WEFT_OK);
  const weft_array *a = weft_array_set_find(&in, "A"), *b = weft_array_set_find(&in, "B");
  uint64_t m = a->extents[0], k = a->extents[1], n = b->extents[1];
  for (uint64_t r = 0; r < m; r++)
    for (uint64_t c = 0; c < n; c++)
      assert_true(weft_dot_f32((float *)a->data + r * k, 1, (float *)b->data + c, n, k, segments) ==
                  real_at(&out, "C", r, c));
  weft_array_set_free(&in);
  weft_array_set_free(&out);
  weft_program_free(program);
}

static void test_segments(void **state) {
  (void)state;
  for (uint32_t segments = 1; segments <= 6; segments++) {
    check_segments("scheduled-gemm-1site", segments, 1);
    check_segments("scheduled-gemm-spill", segments, 4);
  }
}

/* ---- states ---- */

/** z = x * 2.5 + z over three steps. */
/** A parameter with a declared fill needs no dataset: the values are those that the fill gives. */
static void test_random_fill(void **state) {
  (void)state;
  weft_program *program = read_case("scheduled-sections-multicast");
  weft_array_set all = {0}, filled = {0}, in = {0}, given = {0};
  make_inputs(program, 5, &all);
  const weft_array *x = weft_array_set_find(&all, "x"), *w = weft_array_set_find(&all, "w");
  for (weft_array_set *set = &in; set; set = set == &in ? &given : NULL)
    memcpy(weft_array_set_add(set, "x", x->dtype, x->rank, x->extents)->data, x->data,
           weft_array_elements(x) * weft_format_bytes(x->dtype));
  weft_array *same = weft_array_set_add(&given, "w", w->dtype, w->rank, w->extents);
  for (uint64_t i = 0; i < weft_array_elements(same); i++)
    weft_store_f32(same->dtype, same->data, i, weft_random_bf16(3, -500, i));
  evaluate(program, &in, &filled);
  weft_array_set out = {0};
  evaluate(program, &given, &out);
  assert_same_sets(&filled, &out);
  weft_array_set *sets[] = {&all, &filled, &in, &given, &out};
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) weft_array_set_free(sets[i]);
  weft_program_free(program);
}

static void test_steps_chain_states(void **state) {
  (void)state;
  weft_program *program = read_case("template-elementwise");
  program->tensors[1].role = WEFT_ROLE_STATE;
  program->tensors[2].role = WEFT_ROLE_INPUT;
  program->stages[3].store.tensor = 1;
  plan_for(program, "cpu", NULL);
  weft_array_set in = {0}, out = {0};
  make_inputs(program, 17, &in);
  for (int random = 0; random < 2; random++) {
    weft_evaluate_options options = {.random = random == 1, .seed = 4, .steps = 3};
    assert_int_equal(weft_evaluate(program, &options, &in, &out, NULL), WEFT_OK);
    for (uint64_t r = 0; r < 64; r++)
      for (uint64_t c = 0; c < 96; c++) {
        float z = real_at(&in, "z", r, c), scaled = real_at(&in, "x", r, c) * 2.5f;
        for (int step = 0; step < 3; step++) z = scaled + z;
        assert_true(z == real_at(&out, "z", r, c));
      }
    weft_array_set_free(&out);
  }
  weft_array_set_free(&in);
  weft_program_free(program);
}

/* ---- faults ---- */

static void assert_fault(const weft_program *program, const char *message) {
  weft_array_set in = {0}, out = {0};
  make_inputs(program, 1, &in);
  weft_diag *diag = weft_diag_new();
  assert_int_equal(run_program(program, &in, false, 0, &out, diag), WEFT_INVALID);
  assert_holds(first_message(diag), message);
  assert_int_equal(out.count, 0);
  weft_diag_free(diag);
  weft_array_set_free(&in);
  weft_array_set_free(&out);
}

/** Swaps op `at` of an engine's first loop with the one after it. */
static void swap_in_loop(weft_program *program, uint64_t engine, uint64_t at) {
  const weft_engine_program *e = &program->schedule->programs[engine];
  uint64_t i = 0;
  while (e->ops[i].kind != WEFT_OP_LOOP) i++;
  weft_op *body = (weft_op *)e->ops[i].loop.body, op = body[at];
  body[at] = body[at + 1];
  body[at + 1] = op;
}

static void test_faults(void **state) {
  (void)state;
  static const struct {
    uint64_t engine, at;
    const char *message;
  } swaps[] = {
      {0, 0, "site (0, 0) Movement 0, ReadTiles of stage `load_a@0,0`: fills buffer `a@0,0`, of which no free page"},
      {0, 2, "Movement 0, Push of stage `load_a@0,0`: pushes a page of `a@0,0` whose read has not passed a barrier"},
      {1, 1, "Compute, Compute of stage `matmul@0,0`: uses a page of buffer `b@0,0` that it has not waited for"},
      {1, 2, "Compute, Compute of stage `matmul@0,0`: uses a page of buffer `a@0,0` that it has not waited for"},
  };
  for (size_t i = 0; i < sizeof swaps / sizeof *swaps; i++) {
    weft_program *program = read_case("scheduled-gemm-1site");
    swap_in_loop(program, swaps[i].engine, swaps[i].at);
    assert_fault(program, swaps[i].message);
    weft_program_free(program);
  }
  weft_program *program = read_case("scheduled-gemm-1site");
  weft_op *loop = (weft_op *)program->schedule->programs[0].ops;
  ((weft_op *)loop->loop.body)[1].tiles.at.base = 5;
  assert_fault(program, "a block of 2 x 1 tiles at tile 5 leaves tensor `A`, which has 8");
  weft_program_free(program);
  program = read_case("scheduled-elementwise-2sites");
  weft_op *write = (weft_op *)program->schedule->programs[5].ops[0].loop.body + 1;
  write->tiles.at.base = 3;
  assert_fault(program, "a second time");
  weft_program_free(program);
  program = read_case("scheduled-chain");
  assert_int_equal(program->tensors[0].role, WEFT_ROLE_INPUT);
  program->tensors[0].init.kind = WEFT_INIT_EXTERNAL;
  weft_array_set in = {0}, out = {0};
  weft_diag *diag = weft_diag_new();
  assert_int_equal(run_program(program, &in, false, 0, &out, diag), WEFT_INVALID);
  assert_holds(first_message(diag), "is missing");
  weft_diag_free(diag);
  weft_program_free(program);
}

/** Positions outside the stored tensor may hold anything; a value that does not fit inside it is a fault with its
 * stage. */
static void test_integer_that_does_not_fit(void **state) {
  (void)state;
  weft_program *program = read_case("scheduled-int8-epilogue");
  assert_fault(program, "Movement 1, WriteTiles of stage `store_y`: a packed value, ");
  weft_program_free(program);
}

/** Every kind of map and fold of `template-generic-all`, against loops. */
static void test_generic_all(void **state) {
  (void)state;
  weft_array_set in = {0}, out = {0};
  weft_program *program = read_case("template-generic-all");
  make_inputs(program, 23, &in);
  const int32_t pos = 37;
  ((int32_t *)weft_array_set_find(&in, "pos")->data)[0] = pos;
  plan_for(program, "cpu", NULL);
  evaluate(program, &in, &out);
  for (uint64_t r = 0; r < 32; r++) {
    uint64_t best = 0;
    for (uint64_t c = 0; c < 64; c++) {
      float x = real_at(&in, "x", r, c);
      float rope = c < 32 ? x - real_at(&in, "x", r, c + 32) : x + real_at(&in, "x", r, c - 32);
      assert_true(rope == real_at(&out, "rope", r, c));
      assert_true((c >= (uint64_t)pos ? -INFINITY : x) == real_at(&out, "mask", r, c));
      int64_t q = whole_at(&in, "q", r, c), clamped = q < -128 ? -128 : q > 127 ? 127 : q;
      int64_t third = (int64_t)floor((double)clamped / 3.0);
      assert_int_equal(third >> 5, whole_at(&out, "ints", r, c));
      if (x > real_at(&in, "x", r, best)) best = c;
      assert_true(real_at(&in, "x", (uint64_t)pos % 32, c) == real_at(&out, "pick", r, c));
    }
    assert_int_equal(best, whole_at(&out, "argmax", r, 0));
    for (uint64_t c = 0; c < 32; c++) {
      float sum = 0.0f;
      for (uint64_t k = 0; k < 64; k++) {
        float product = real_at(&in, "x", r, k) * real_at(&in, "w", k, c);
        /* The page of w is one row of two tiles: K rows past it read 0. */
        sum += k < 32 ? product : 0.0f;
      }
      assert_true(sum == real_at(&out, "dot", r, c));
      assert_true(real_at(&in, "x", c, r) == real_at(&out, "transpose", r, c));
    }
  }
  uint64_t row = (uint64_t)pos / 32 * 32 + (uint64_t)((32 - pos % 32) % 32);
  for (uint64_t r = 0; r < 128; r++)
    for (uint64_t c = 0; c < 64; c++)
      assert_true((r == row ? real_at(&in, "x", 31, c) : real_at(&in, "cache", r, c)) == real_at(&out, "cache", r, c));
  weft_array_set_free(&in);
  weft_array_set_free(&out);
  weft_program_free(program);
}

/** Every scheduled case runs to its end, with the same bits under random interleavings. */
static void test_interleavings(void **state) {
  (void)state;
  static const char *const names[] = {"allreduce-2chips",
                                      "carry-fold",
                                      "chain",
                                      "chain-shared-phase",
                                      "deep-loops",
                                      "elementwise-2sites",
                                      "gather",
                                      "gemm-1site",
                                      "gemm-2x2-multicast",
                                      "gemm-int64-spill",
                                      "gemm-pack-accumulate",
                                      "gemm-spill",
                                      "int8-epilogue",
                                      "items",
                                      "row-multicast",
                                      "scalar",
                                      "softmax",
                                      "state-append",
                                      "state-scatter",
                                      "state-two-sections",
                                      "store-parts",
                                      "trip-fold",
                                      "two-sections",
                                      "sections-multicast",
                                      "gemm-4x4"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char name[64];
    snprintf(name, sizeof name, "scheduled-%s", names[i]);
    weft_program *program = read_case(name);
    weft_array_set in = {0}, first = {0};
    shrink(program);
    make_inputs(program, 11, &in);
    weft_array *pos = weft_array_set_find(&in, "pos");
    if (pos) ((int32_t *)pos->data)[0] = 77;
    evaluate(program, &in, &first);
    for (uint64_t seed = 1; seed <= 5; seed++) {
      weft_array_set other = {0};
      weft_diag *diag = weft_diag_new();
      weft_status status = run_program(program, &in, true, seed, &other, diag);
      if (status) print_error("%s, seed %llu: %s\n", name, (unsigned long long)seed, first_message(diag));
      assert_int_equal(status, WEFT_OK);
      assert_same_sets(&first, &other);
      weft_diag_free(diag);
      weft_array_set_free(&other);
    }
    weft_array_set_free(&in);
    weft_array_set_free(&first);
    weft_program_free(program);
  }
}

/** A program is not run when a result has the name of what it reads, or a name that no file can hold. */
static void test_names_of_results(void **state) {
  (void)state;
  static const struct {
    const char *name, *message;
  } wrong[] = {{"x", "the Output `x` has the name of the Input `x`"},
               {".", "the Output `.` has no name for a dataset"}};
  weft_program *program = read_case("scheduled-int8-epilogue");
  weft_array_set in = {0}, out = {0};
  make_inputs(program, 1, &in);
  assert_int_equal(weft_program_check_datasets(program, graph_diag), WEFT_OK);
  for (size_t i = 0; i < 2; i++) {
    program->tensors[3].name = wrong[i].name;
    assert_int_equal(run_program(program, &in, false, 0, &out, graph_diag), WEFT_INVALID);
    assert_string_equal(first_message(graph_diag), wrong[i].message);
    weft_diag_clear(graph_diag);
  }
  weft_array_set_free(&in);
  weft_array_set_free(&out);
  weft_program_free(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names_of_results),
      cmocka_unit_test(test_gemm),
      cmocka_unit_test(test_int8_epilogue),
      cmocka_unit_test(test_elementwise),
      cmocka_unit_test(test_softmax),
      cmocka_unit_test(test_scalar),
      cmocka_unit_test(test_items),
      cmocka_unit_test(test_folds),
      cmocka_unit_test(test_trip_is_refused_out_of_range),
      cmocka_unit_test(test_range_is_kept),
      cmocka_unit_test(test_gather),
      cmocka_unit_test(test_scatter),
      cmocka_unit_test(test_generic_all),
      cmocka_unit_test(test_interleavings),
      cmocka_unit_test(test_segments),
      cmocka_unit_test(test_steps_chain_states),
      cmocka_unit_test(test_random_fill),
      cmocka_unit_test(test_faults),
      cmocka_unit_test(test_integer_that_does_not_fit),
  };
  return cmocka_run_group_tests(tests, make_graph_diag, free_graph_diag);
}
