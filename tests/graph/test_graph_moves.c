/* What moves by position or index, and states: checks, values, and lowering that reads back as the same graph. */
#include "support.h"

#include <stdio.h>
#include <string.h>

typedef struct fixture {
  weft_diag *diag;
  weft_graph *graph;
} fixture;

static int setup(void **state) {
  static fixture f;
  f = (fixture){.diag = weft_diag_new()};
  f.graph = weft_graph_new("g", f.diag);
  weft_graph_section(f.graph, "first");
  *state = &f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  weft_graph_free(f->graph);
  weft_diag_free(f->diag);
  return 0;
}

static uint32_t input(fixture *f, const char *name, weft_format dtype, uint64_t rows, uint64_t cols) {
  return weft_graph_input(f->graph, name, dtype, 2, (const uint64_t[]){rows, cols});
}

static uint32_t state_of(fixture *f, const char *name, weft_format dtype, uint64_t rows, uint64_t cols) {
  return weft_graph_state(f->graph, name, dtype, 2, (const uint64_t[]){rows, cols});
}

static uint32_t copy_of(fixture *f, const char *name, uint32_t x) {
  const weft_body_node node = {.kind = WEFT_BODY_OPERAND};
  return weft_graph_pointwise(f->graph, name, &x, 1, &(weft_body){&node, 1}, f->graph->values[x].dtype);
}

/** Lowered and lifted, the graph is the same. */
static void expect_round(fixture *f) {
  weft_program *program;
  weft_graph *lifted;
  expect_ok(weft_graph_check(f->graph, f->diag), f->diag);
  expect_ok(weft_graph_lower(f->graph, &program, f->diag), f->diag);
  expect_ok(weft_graph_lift(program, &lifted, f->diag), f->diag);
  expect_equal_graphs(f->graph, lifted);
  weft_graph_free(lifted);
  weft_program_free(program);
}

static float *floats(weft_array_set *set, const char *name, uint64_t rows, uint64_t cols) {
  weft_array *array = weft_array_set_add(set, name, WEFT_FP32, 2, (const uint64_t[]){rows, cols});
  for (uint64_t i = 0; i < rows * cols; i++) ((float *)array->data)[i] = (float)i;
  return array->data;
}

static void integers(weft_array_set *set, const char *name, uint64_t rows, const int32_t *values) {
  weft_array *array = weft_array_set_add(set, name, WEFT_INT32, 2, (const uint64_t[]){rows, 1});
  memcpy(array->data, values, rows * sizeof *values);
}

/* ---- transposes ---- */

static void test_transpose(void **state) {
  fixture *f = *state;
  weft_array_set in = {0}, out = {0};
  weft_graph_output(f->graph, weft_graph_transpose(f->graph, "t", input(f, "x", WEFT_FP32, 70, 33)), "y");
  expect_round(f);
  floats(&in, "x", 70, 33);
  expect_ok(weft_graph_interpret(f->graph, &in, &out, f->diag), f->diag);
  const weft_array *y = weft_array_set_find(&out, "y");
  assert_true(y->extents[0] == 33 && y->extents[1] == 70);
  for (uint64_t r = 0; r < 33; r++)
    for (uint64_t c = 0; c < 70; c++) assert_true(((const float *)y->data)[r * 70 + c] == (float)(c * 33 + r));
  weft_array_set_free(&in);
  weft_array_set_free(&out);
}

/* ---- gathers ---- */

static void test_gather(void **state) {
  fixture *f = *state;
  weft_array_set in = {0}, out = {0};
  uint32_t table = weft_graph_param(f->graph, "t", WEFT_FP32, 2, (const uint64_t[]){40, 5});
  weft_graph_output(f->graph, weft_graph_gather(f->graph, "g", table, input(f, "ids", WEFT_INT32, 4, 1)), "y");
  expect_round(f);
  floats(&in, "t", 40, 5);
  integers(&in, "ids", 4, (const int32_t[]){39, 0, 7, 7});
  expect_ok(weft_graph_interpret(f->graph, &in, &out, f->diag), f->diag);
  const float *y = weft_array_set_find(&out, "y")->data;
  assert_true(y[0] == 195 && y[4] == 199 && y[5] == 0 && y[10] == 35 && y[15] == 35);
  weft_array_set_free(&out);
  out = (weft_array_set){0};
  integers(&in, "ids", 4, (const int32_t[]){1, 2, 40, 3});
  assert_int_equal(weft_graph_interpret(f->graph, &in, &out, f->diag), WEFT_INVALID);
  expect_message(f->diag, "row 2 of 'ids' is 40, outside 0 to 39");
  weft_array_set_free(&in);
  weft_array_set_free(&out);
}

/** A part of a table gives -0 where it lacks the id. */
static void test_gather_from_a_part(void **state) {
  fixture *f = *state;
  weft_array_set in = {0}, out = {0};
  uint32_t table = weft_graph_param(f->graph, "t", WEFT_FP32, 2, (const uint64_t[]){32, 3});
  uint32_t y = weft_graph_gather(f->graph, "g", table, input(f, "ids", WEFT_INT32, 3, 1));
  weft_graph_output(f->graph, y, "y");
  f->graph->ops[0].low = 32;
  f->graph->ops[0].high = 99;
  expect_round(f);
  floats(&in, "t", 32, 3);
  integers(&in, "ids", 3, (const int32_t[]){33, 31, 64});
  expect_ok(weft_graph_interpret(f->graph, &in, &out, f->diag), f->diag);
  const uint32_t *bits = weft_array_set_find(&out, "y")->data;
  assert_true(((const float *)(const void *)bits)[0] == 3);
  assert_true(bits[3] == 0x80000000 && bits[6] == 0x80000000);
  weft_array_set_free(&in);
  weft_array_set_free(&out);
}

/* ---- states ---- */

/** A row and a column a step at a position that counts up. */
static void test_updates(void **state) {
  fixture *f = *state;
  weft_array_set in = {0}, out = {0};
  uint32_t pos = state_of(f, "pos", WEFT_INT32, 1, 1), x = input(f, "x", WEFT_FP32, 1, 40);
  uint32_t rows = state_of(f, "rows", WEFT_FP32, 64, 40), cols = state_of(f, "cols", WEFT_FP32, 40, 64);
  const weft_body_node more[] = {{.kind = WEFT_BODY_OPERAND},
                                 {.kind = WEFT_BODY_CONST, .value = 0x4044000000000000}, // 40
                                 {.kind = WEFT_BODY_ADD, .child = {0, 1}}};
  uint32_t next = weft_graph_pointwise(f->graph, "next", &pos, 1, &(weft_body){more, 3}, WEFT_INT32);
  uint32_t left = weft_graph_update(f->graph, "rows.next", rows, x, pos, 0);
  weft_graph_update(f->graph, "cols.next", cols, x, pos, 1);
  weft_graph_section(f->graph, "read");
  weft_graph_output(f->graph, copy_of(f, "copy", left), "seen");
  weft_graph_section(f->graph, "last");
  weft_graph_set_state(f->graph, pos, next);
  expect_round(f);
  floats(&in, "x", 1, 40);
  expect_ok(weft_graph_interpret_steps(f->graph, 2, NULL, &in, &out, f->diag), f->diag);
  const float *r = weft_array_set_find(&out, "rows")->data, *c = weft_array_set_find(&out, "cols")->data;
  const float *seen = weft_array_set_find(&out, "seen")->data;
  assert_int_equal(*(const int32_t *)weft_array_set_find(&out, "pos")->data, 80);
  for (uint64_t i = 0; i < 40; i++) {
    assert_true(r[i] == (float)i && r[40 * 40 + i] == (float)i && r[41 * 40 + i] == 0);
    assert_true(c[i * 64] == (float)i && c[i * 64 + 40] == (float)i && c[i * 64 + 1] == 0);
    assert_true(seen[40 * 40 + i] == (float)i);
  }
  weft_array_set_free(&out);
  out = (weft_array_set){0};
  assert_int_equal(weft_graph_interpret_steps(f->graph, 3, NULL, &in, &out, f->diag), WEFT_INVALID);
  expect_message(f->diag, "'pos' is 80, outside 0 to 63");
  weft_array_set_free(&in);
  weft_array_set_free(&out);
}

static void test_states_are_read_before_they_change(void **state) {
  fixture *f = *state;
  uint32_t s = state_of(f, "s", WEFT_FP32, 3, 4), x = input(f, "x", WEFT_FP32, 3, 4);
  weft_graph_set_state(f->graph, s, x);
  weft_graph_output(f->graph, copy_of(f, "late", s), "y");
  assert_int_equal(weft_graph_check(f->graph, f->diag), WEFT_INVALID);
  expect_message(f->diag, "reads the state 's' as it was before");
}

static void test_one_update_a_state(void **state) {
  fixture *f = *state;
  uint32_t s = state_of(f, "s", WEFT_FP32, 3, 4), x = input(f, "x", WEFT_FP32, 3, 4);
  weft_graph_set_state(f->graph, s, x);
  weft_graph_set_state(f->graph, s, x);
  assert_int_equal(weft_graph_check(f->graph, f->diag), WEFT_INVALID);
  expect_message(f->diag, "'s' is updated twice");
}

static void test_state_forms(void **state) {
  fixture *f = *state;
  uint32_t s = state_of(f, "s", WEFT_FP32, 3, 4), wide = input(f, "w", WEFT_FP32, 3, 5);
  assert_int_equal(weft_graph_set_state(f->graph, s, wide), WEFT_NONE);
  expect_message(f->diag, "cannot be broadcast");
  uint32_t at = input(f, "at", WEFT_INT32, 1, 1);
  assert_int_equal(weft_graph_update(f->graph, "u", s, wide, at, 0), WEFT_NONE);
  expect_message(f->diag, "is no row of 's'");
}

/* ---- folded slices ---- */

/** Slices that only an assemble reads have no tensors of their own. */
static void test_slices_are_folded(void **state) {
  fixture *f = *state;
  uint32_t x = input(f, "x", WEFT_FP32, 40, 64), ins[4];
  const uint64_t extents[] = {40, 16}, whole[] = {40, 64};
  uint64_t starts[4][WEFT_MAX_RANK] = {{0}};
  for (uint64_t i = 0; i < 4; i++) { // halves of both heads exchanged
    char name[8];
    snprintf(name, sizeof name, "s%u", (unsigned)i);
    ins[i] = weft_graph_slice(f->graph, name, x, (const uint64_t[]){0, (i ^ 1) * 16}, extents);
    starts[i][1] = i * 16;
  }
  uint32_t y = weft_graph_assemble(f->graph, "y", ins, 4, (const uint64_t(*)[WEFT_MAX_RANK])starts, 2, whole);
  weft_graph_output(f->graph, y, "y");
  weft_program *program;
  weft_graph *lifted;
  expect_ok(weft_graph_lower(f->graph, &program, f->diag), f->diag);
  assert_int_equal(program->tensor_count, 2);
  assert_int_equal(program->section_count, 1);
  expect_ok(weft_graph_lift(program, &lifted, f->diag), f->diag);
  weft_array_set in = {0}, expected = {0}, got = {0};
  floats(&in, "x", 40, 64);
  expect_ok(weft_graph_interpret(f->graph, &in, &expected, f->diag), f->diag);
  expect_ok(weft_graph_interpret(lifted, &in, &got, f->diag), f->diag);
  expect_equal_sets(&expected, &got);
  weft_array_set_free(&in);
  weft_array_set_free(&expected);
  weft_array_set_free(&got);
  weft_graph_free(lifted);
  weft_program_free(program);
}

/* ---- wide rows ---- */

static uint64_t stages_of_kind(const weft_program *program, weft_stage_kind kind) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < program->stage_count; i++) count += program->stages[i].kind == kind;
  return count;
}

/** Wide rows are moved in strips, and computed in pages, of at most 8 tiles. */
static void test_wide_rows(void **state) {
  fixture *f = *state;
  uint32_t a = input(f, "a", WEFT_FP32, 35, 9001), b = input(f, "b", WEFT_FP32, 35, 11999);
  const uint64_t starts[][WEFT_MAX_RANK] = {{0, 0}, {0, 9001}}, all[] = {35, 21000}, part[] = {33, 12000},
                 at[] = {1, 5003};
  uint32_t joined = weft_graph_assemble(f->graph, "joined", (const uint32_t[]){a, b}, 2, starts, 2, all);
  weft_graph_section(f->graph, "second");
  uint32_t cut = weft_graph_slice(f->graph, "cut", joined, at, part);
  weft_body_node sum[] = {
      {.kind = WEFT_BODY_OPERAND}, {.kind = WEFT_BODY_OPERAND, .value = 1}, {.kind = WEFT_BODY_ADD, .child = {0, 1}}};
  const uint32_t ins[] = {cut, weft_graph_param(f->graph, "row", WEFT_FP32, 1, (const uint64_t[]){12000})};
  weft_graph_section(f->graph, "third");
  weft_graph_output(f->graph, weft_graph_pointwise(f->graph, "sum", ins, 2, &(weft_body){sum, 3}, WEFT_FP32), "y");
  expect_round(f);
  weft_program *program;
  expect_ok(weft_graph_lower(f->graph, &program, f->diag), f->diag);
  for (uint64_t i = 0; i < program->stage_count; i++)
    if (program->stages[i].kind == WEFT_STAGE_STORE) assert_true(program->stages[i].store.pattern.block_w <= 8);
  const weft_stage *last = &program->stages[program->stage_count - 1];
  assert_true(last->store.pattern.block_w == 5 && last->store.sub_blocks.second == 75); // 375 tiles are 3 x 5 x 5 x 5
  assert_int_equal(stages_of_kind(program, WEFT_STAGE_STORE), 83 + 2 * 47 + 1); // by strip; rows 1 to 32 and the last
  weft_program_free(program);
}

/** A wide row of a state is replaced in pages, too. */
static void test_wide_updates(void **state) {
  fixture *f = *state;
  uint32_t x = input(f, "x", WEFT_FP32, 1, 630), pos = input(f, "pos", WEFT_INT32, 1, 1);
  weft_graph_range(f->graph, pos, 0, 39);
  uint32_t rows = weft_graph_state(f->graph, "rows", WEFT_FP32, 2, (const uint64_t[]){40, 630});
  weft_graph_update(f->graph, "rows.next", rows, x, pos, 0);
  expect_round(f);
  weft_program *program;
  expect_ok(weft_graph_lower(f->graph, &program, f->diag), f->diag);
  const weft_stage *last = &program->stages[program->stage_count - 1];
  assert_int_equal(last->kind, WEFT_STAGE_STORE);
  assert_int_equal(last->store.pattern.block_w, 5); // 20 tiles
  assert_true(last->store.sub_blocks.first == 1 && last->store.sub_blocks.second == 4);
  weft_program_free(program);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {TEST(test_transpose),
                                     TEST(test_gather),
                                     TEST(test_gather_from_a_part),
                                     TEST(test_updates),
                                     TEST(test_states_are_read_before_they_change),
                                     TEST(test_one_update_a_state),
                                     TEST(test_state_forms),
                                     TEST(test_slices_are_folded),
                                     TEST(test_wide_rows),
                                     TEST(test_wide_updates)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
