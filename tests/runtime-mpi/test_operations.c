/* Pointwise bodies and copies on one chip made by hand, against scalar arithmetic; faults name the lowest element. */
#include "kernel_bench.h"

#include "weft/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 5, COLS = 601 };

typedef struct one_chip {
  weft_abi_tensor tensors[4];
  weft_abi_class class;
  weft_slot slots[4];
  weft_chip chip;
} one_chip;

static void add_tensor(one_chip *one, weft_format format, uint64_t rows, uint64_t cols) {
  uint32_t t = one->class.tensor_count++;
  one->tensors[t] = (weft_abi_tensor){.name = t ? "operand" : "out", .format = (int)format, .rows = rows, .cols = cols};
  one->slots[t] =
      (weft_slot){.tensor = &one->tensors[t], .format = format, .bytes = rows * cols * weft_format_bytes(format)};
  one->slots[t].data = calloc(rows * cols + 1, 8);
}

static void begin(one_chip *one, int threads) {
  *one = (one_chip){0};
  one->class.tensors = one->tensors;
  one->chip = (weft_chip){.class = &one->class, .slots = one->slots, .threads = threads, .step = UINT32_MAX};
  pthread_mutex_init(&one->chip.fault.lock, NULL);
}

static void end(one_chip *one) {
  for (uint32_t t = 0; t < one->class.tensor_count; t++) free(one->slots[t].data);
  weft_chip_scratch_free(&one->chip);
  pthread_mutex_destroy(&one->chip.fault.lock);
}

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* ---- floats ---- */

/* out = silu(a * row) + min(column, 0.25) with a whole, row 1 x COLS, column ROWS x 1. */
static void floats_broadcast(void **state) {
  (void)state;
  static const weft_abi_node nodes[] = {
      {.kind = WEFT_BODY_OPERAND, .value = 0},  {.kind = WEFT_BODY_OPERAND, .value = 1},
      {.kind = WEFT_BODY_MUL, .child = {0, 1}}, {.kind = WEFT_BODY_UNARY, .sfpu = WEFT_SFPU_SILU, .child = {2}},
      {.kind = WEFT_BODY_OPERAND, .value = 2},  {.kind = WEFT_BODY_CONST, .value = UINT64_C(0x3fd0000000000000)},
      {.kind = WEFT_BODY_MIN, .child = {4, 5}}, {.kind = WEFT_BODY_ADD, .child = {3, 6}}};
  static const weft_abi_operand operands[] = {{.tensor = 1, .row_stride = COLS, .col_stride = 1},
                                              {.tensor = 2, .col_stride = 1},
                                              {.tensor = 3, .row_stride = 1}};
  for (int threads = 1; threads <= 2; threads++) {
    one_chip one;
    begin(&one, threads);
    add_tensor(&one, WEFT_BF16, ROWS, COLS);
    add_tensor(&one, WEFT_FP32, ROWS, COLS);
    add_tensor(&one, WEFT_BF16, 1, COLS);
    add_tensor(&one, WEFT_INT8, ROWS, 1);
    uint64_t random = 3;
    for (int i = 0; i < ROWS * COLS; i++)
      ((float *)(void *)one.slots[1].data)[i] = (float)((int64_t)weft_random_next(&random) >> 40) * 0x1p-20f;
    for (int i = 0; i < COLS; i++)
      weft_store_f32(WEFT_BF16, one.slots[2].data, (uint64_t)i,
                     (float)((int64_t)weft_random_next(&random) >> 40) * 0x1p-22f);
    for (int i = 0; i < ROWS; i++) ((int8_t *)one.slots[3].data)[i] = (int8_t)(i - 2);
    weft_pointwise(&one.chip,
                   &(weft_abi_pointwise){.operand_count = 3, .operands = operands, .node_count = 8, .nodes = nodes});
    assert_false(weft_chip_failed(&one.chip));
    for (uint64_t i = 0; i < ROWS * COLS; i++) {
      float x = weft_load_f32(WEFT_FP32, one.slots[1].data, i) * weft_load_f32(WEFT_BF16, one.slots[2].data, i % COLS);
      float denominator = 1.0f + weft_expf(-x), silu = x / denominator;
      float least = weft_minimum_f32((float)((int)(i / COLS) - 2), 0.25f), sum = silu + least;
      assert_int_equal(((uint16_t *)(void *)one.slots[0].data)[i], weft_f32_to_bf16(sum));
    }
    end(&one);
  }
}

/* ---- integers ---- */

static void run_integers(one_chip *one, const weft_abi_node *nodes, uint32_t count) {
  static const weft_abi_operand operands[] = {{.tensor = 1, .row_stride = COLS, .col_stride = 1},
                                              {.tensor = 2, .row_stride = COLS, .col_stride = 1}};
  weft_pointwise(&one->chip,
                 &(weft_abi_pointwise){.operand_count = 2, .operands = operands, .node_count = count, .nodes = nodes});
}

static void integers(weft_format out, one_chip *one) {
  begin(one, 2);
  add_tensor(one, out, ROWS, COLS);
  add_tensor(one, WEFT_INT16, ROWS, COLS);
  add_tensor(one, WEFT_INT64, ROWS, COLS);
  for (int i = 0; i < ROWS * COLS; i++) {
    ((int16_t *)(void *)one->slots[1].data)[i] = (int16_t)(i * 37 - 20000);
    ((int64_t *)(void *)one->slots[2].data)[i] = i % 11 - 5;
  }
}

/* b != 0 ? floor(a / b) : a >> 3 : the quotients by zero are never chosen. */
static void unchosen_branches_do_not_fault(void **state) {
  (void)state;
  static const weft_abi_node nodes[] = {{.kind = WEFT_BODY_OPERAND, .value = 1},
                                        {.kind = WEFT_BODY_OPERAND, .value = 0},
                                        {.kind = WEFT_BODY_OPERAND, .value = 1},
                                        {.kind = WEFT_BODY_FLOOR_DIV, .child = {1, 2}},
                                        {.kind = WEFT_BODY_OPERAND, .value = 0},
                                        {.kind = WEFT_BODY_SHR, .child = {4}, .value = 3},
                                        {.kind = WEFT_BODY_VALUE_SELECT, .child = {0, 3, 5}}};
  one_chip one;
  integers(WEFT_INT32, &one);
  run_integers(&one, nodes, 7);
  assert_false(weft_chip_failed(&one.chip));
  for (int i = 0; i < ROWS * COLS; i++) {
    int64_t a = (int16_t)(i * 37 - 20000), b = i % 11 - 5;
    int64_t want = b ? (int64_t)floor((double)a / (double)b) : (int64_t)floor((double)a / 8);
    assert_int_equal(((int32_t *)(void *)one.slots[0].data)[i], want);
  }
  end(&one);
}

static void faults_name_the_lowest_element(void **state) {
  (void)state;
  static const weft_abi_node quotient[] = {{.kind = WEFT_BODY_OPERAND, .value = 0},
                                           {.kind = WEFT_BODY_OPERAND, .value = 1},
                                           {.kind = WEFT_BODY_FLOOR_DIV, .child = {0, 1}}};
  one_chip one;
  integers(WEFT_INT32, &one);
  run_integers(&one, quotient, 3);
  assert_non_null(strstr(one.chip.fault.text, "row 0, column 5 of 'out': a division by zero"));
  end(&one);
  const weft_abi_node product[] = {{.kind = WEFT_BODY_OPERAND, .value = 1},
                                   {.kind = WEFT_BODY_CONST, .value = bits_of(0x1p52)},
                                   {.kind = WEFT_BODY_MUL, .child = {0, 1}},
                                   {.kind = WEFT_BODY_MUL, .child = {2, 2}}};
  integers(WEFT_INT64, &one);
  run_integers(&one, product, 4);
  assert_non_null(strstr(one.chip.fault.text, "row 0, column 0 of 'out': a value does not fit 64 bits"));
  end(&one);
  static const weft_abi_node copy[] = {{.kind = WEFT_BODY_OPERAND, .value = 0}};
  integers(WEFT_INT8, &one);
  run_integers(&one, copy, 1);
  assert_non_null(strstr(one.chip.fault.text, "row 0, column 0 of 'out': -20000 does not fit Int8"));
  end(&one);
}

/* A constant that is no integer makes the body one of floats; a float result must be an integer to be stored as one. */
static void floats_into_integers(void **state) {
  (void)state;
  weft_abi_node half[] = {{.kind = WEFT_BODY_OPERAND, .value = 1},
                          {.kind = WEFT_BODY_CONST, .value = bits_of(0.5)},
                          {.kind = WEFT_BODY_MUL, .child = {0, 1}}};
  one_chip one;
  integers(WEFT_INT32, &one);
  run_integers(&one, half, 3);
  assert_non_null(strstr(one.chip.fault.text, "row 0, column 0 of 'out': a float that is no"));
  end(&one);
  half[1].value = bits_of(2.0);
  half[2].kind = WEFT_BODY_DIV;
  half[1].value = bits_of(0.5);
  integers(WEFT_INT32, &one);
  run_integers(&one, half, 3);
  assert_false(weft_chip_failed(&one.chip));
  for (int i = 0; i < ROWS * COLS; i++) assert_int_equal(((int32_t *)(void *)one.slots[0].data)[i], 2 * (i % 11 - 5));
  end(&one);
}

static void maps_outside_a_tensor_are_refused(void **state) {
  (void)state;
  static const weft_abi_node copy[] = {{.kind = WEFT_BODY_OPERAND, .value = 0}};
  const weft_abi_operand wrong[] = {{.tensor = 1, .row_stride = COLS, .col_stride = 1, .offset = 1},
                                    {.tensor = 1, .row_stride = COLS, .col_stride = 1, .offset = -1},
                                    {.tensor = 1, .row_stride = -COLS, .col_stride = 1},
                                    {.tensor = 9}};
  for (int i = 0; i < 4; i++) {
    one_chip one;
    integers(WEFT_INT16, &one);
    weft_pointwise(&one.chip,
                   &(weft_abi_pointwise){.operand_count = 1, .operands = &wrong[i], .node_count = 1, .nodes = copy});
    assert_true(weft_chip_failed(&one.chip));
    end(&one);
  }
}

/* ---- copies ---- */

static void copies_move_blocks(void **state) {
  (void)state;
  one_chip one;
  begin(&one, 1);
  add_tensor(&one, WEFT_INT16, 6, 9);
  add_tensor(&one, WEFT_INT16, 4, 5);
  int16_t *to = (int16_t *)(void *)one.slots[0].data, *from = (int16_t *)(void *)one.slots[1].data;
  for (int i = 0; i < 20; i++) from[i] = (int16_t)(i + 1);
  const weft_abi_copy copies[] = {
      {.from = 1, .to = 0, .from_row = 1, .from_col = 2, .to_row = 3, .to_col = 6, .rows = 3, .cols = 3},
      {.from = 1, .to = 0, .rows = 0, .cols = 5}};
  weft_copy(&one.chip, copies, 2);
  assert_false(weft_chip_failed(&one.chip));
  for (int r = 0; r < 6; r++)
    for (int c = 0; c < 9; c++) assert_int_equal(to[r * 9 + c], r >= 3 && c >= 6 ? from[(r - 2) * 5 + c - 4] : 0);
  weft_copy(&one.chip, &(weft_abi_copy){.from = 1, .to = 0, .from_col = 3, .rows = 1, .cols = 3}, 1);
  assert_true(weft_chip_failed(&one.chip));
  end(&one);
}

/* Blocks placed by a list, blocks of different widths; by a ring that begins in the middle; one that does not fit. */
static void blocks_are_assembled(void **state) {
  (void)state;
  static const int64_t from[] = {2, 3, 1}, list[] = {4, 7, 2}, ring[] = {0, 3, 3, 1}, outside[] = {4, 8, 2};
  static const int16_t by_list[] = {0, 0, 10, 11, 20, 21, 22, 30, 31, 0, 0, 12, 13, 23, 24, 25, 32, 33};
  static const int16_t by_ring[] = {10, 11, 0, 20, 21, 22, 30, 31, 0, 12, 13, 0, 23, 24, 25, 32, 33, 0};
  for (int way = 0; way < 3; way++) {
    one_chip one;
    begin(&one, 1);
    add_tensor(&one, WEFT_INT16, 2, 9);
    for (int t = 1; t < 4; t++) {
      add_tensor(&one, WEFT_INT16, 2, t == 2 ? 3 : 2);
      for (int i = 0; i < (t == 2 ? 6 : 4); i++) ((int16_t *)(void *)one.slots[t].data)[i] = (int16_t)(10 * t + i);
    }
    weft_assemble(&one.chip, &(weft_abi_assemble){.from = from,
                                                  .count = 3,
                                                  .to = 0,
                                                  .ring = way == 1,
                                                  .col = way == 0   ? list
                                                         : way == 1 ? ring
                                                                    : outside});
    assert_int_equal(weft_chip_failed(&one.chip), way == 2);
    const void *to = one.slots[0].data;
    if (way == 0) assert_memory_equal(to, by_list, sizeof by_list);
    if (way == 1) assert_memory_equal(to, by_ring, sizeof by_ring); /* at 3, 6 and 0 */
    end(&one);
  }
}

/* ---- moves by position and by index ---- */

static void transposes(void **state) {
  (void)state;
  static const weft_format formats[] = {WEFT_INT8, WEFT_BF16, WEFT_FP32, WEFT_INT64};
  for (size_t f = 0; f < 4; f++) {
    one_chip one;
    begin(&one, 1);
    add_tensor(&one, formats[f], 70, 37);
    add_tensor(&one, formats[f], 37, 70);
    for (uint64_t i = 0; i < 70 * 37; i++)
      if (weft_format_is_float(formats[f]))
        weft_store_f32(formats[f], one.slots[1].data, i, (float)(i % 251));
      else
        weft_store_i64(formats[f], one.slots[1].data, i, (int64_t)(i % 127));
    weft_transpose(&one.chip, &(weft_abi_transpose){.from = 1, .out = 0});
    assert_false(weft_chip_failed(&one.chip));
    size_t bytes = weft_format_bytes(formats[f]);
    for (uint64_t r = 0; r < 37; r++)
      for (uint64_t c = 0; c < 70; c++)
        assert_memory_equal(one.slots[0].data + (c * 37 + r) * bytes, one.slots[1].data + (r * 70 + c) * bytes, bytes);
    weft_transpose(&one.chip, &(weft_abi_transpose){.from = 0, .out = 0});
    assert_true(weft_chip_failed(&one.chip));
    end(&one);
  }
}

/* Rows 3 to 6 of a table of nine: ids 0 to 8 there are, those of other parts give -0. */
static void parts_of_tables(void **state) {
  (void)state;
  for (int64_t wrong = -1; wrong <= 9; wrong += 10) {
    one_chip one;
    begin(&one, 1);
    add_tensor(&one, WEFT_FP32, 9, 5);
    add_tensor(&one, WEFT_BF16, 4, 5);
    add_tensor(&one, WEFT_INT16, 9, 1);
    for (uint64_t i = 0; i < 20; i++) weft_store_f32(WEFT_BF16, one.slots[1].data, i, (float)i);
    for (uint64_t i = 0; i < 9; i++) ((int16_t *)(void *)one.slots[2].data)[i] = (int16_t)(8 - i);
    const weft_abi_gather gather = {.table = 1, .ids = 2, .out = 0, .low = 3, .high = 8};
    weft_gather(&one.chip, &gather);
    assert_false(weft_chip_failed(&one.chip));
    for (int r = 0; r < 9; r++)
      for (int c = 0; c < 5; c++) {
        float got = ((float *)(void *)one.slots[0].data)[r * 5 + c];
        int row = 8 - r - 3;
        bool here = row >= 0 && row < 4;
        assert_true(here ? got == (float)(row * 5 + c) : got == 0 && signbit(got));
      }
    ((int16_t *)(void *)one.slots[2].data)[7] = (int16_t)wrong;
    weft_gather(&one.chip, &gather);
    assert_non_null(strstr(one.chip.fault.text, wrong < 0 ? "row 7 of 'operand' is -1, outside 0 to 8"
                                                          : "row 7 of 'operand' is 9, outside 0 to 8"));
    end(&one);
  }
}

static void rows_and_columns_are_replaced(void **state) {
  (void)state;
  for (int axis = 0; axis <= 1; axis++) {
    const uint64_t rows = 6, cols = 4, length = axis ? rows : cols;
    one_chip one;
    begin(&one, 1);
    add_tensor(&one, WEFT_INT16, rows, cols);
    add_tensor(&one, WEFT_INT16, 1, length);
    add_tensor(&one, WEFT_INT32, 1, 1);
    int16_t *to = (int16_t *)(void *)one.slots[0].data, *x = (int16_t *)(void *)one.slots[1].data;
    for (int i = 0; i < 24; i++) to[i] = (int16_t)-i;
    for (uint64_t i = 0; i < length; i++) x[i] = (int16_t)(100 + i);
    int32_t *at = (int32_t *)(void *)one.slots[2].data;
    *at = 2;
    const weft_abi_update update = {.state = 0, .x = 1, .at = 2, .axis = axis};
    weft_update(&one.chip, &update);
    assert_false(weft_chip_failed(&one.chip));
    for (int r = 0; r < 6; r++)
      for (int c = 0; c < 4; c++) {
        bool here = (axis ? c : r) == 2;
        assert_int_equal(to[r * 4 + c], here ? 100 + (axis ? r : c) : -(r * 4 + c));
      }
    *at = axis ? 4 : 6;
    weft_update(&one.chip, &update);
    assert_non_null(
        strstr(one.chip.fault.text, axis ? "'operand' is 4, outside 0 to 3" : "'operand' is 6, outside 0 to 5"));
    end(&one);
  }
}

/* ---- trees ---- */

static bool valid(uint32_t of, uint32_t count, const uint32_t *first, const uint32_t *counts) {
  return weft_all_reduce_valid(&(weft_abi_all_reduce){
      .pool = WEFT_POOL_SUM, .format = WEFT_FP32, .of = of, .node_count = count, .first = first, .count = counts});
}

static void trees(void **state) {
  (void)state;
  assert_true(valid(1, 1, (uint32_t[]){0}, (uint32_t[]){1}));
  assert_true(valid(8, 3, (uint32_t[]){0, 4, 6}, (uint32_t[]){4, 2, 2}));
  assert_true(valid(7, 3, (uint32_t[]){0, 4, 6}, (uint32_t[]){4, 2, 1}));
  assert_true(valid(7, 2, (uint32_t[]){0, 4}, (uint32_t[]){4, 3}));
  assert_false(valid(8, 2, (uint32_t[]){0, 3}, (uint32_t[]){3, 5}));       /* no subtrees */
  assert_false(valid(8, 3, (uint32_t[]){0, 1, 3}, (uint32_t[]){1, 2, 5})); /* 1, 2 are of two subtrees */
  assert_false(valid(8, 2, (uint32_t[]){0, 4}, (uint32_t[]){4, 2}));       /* 6, 7 are missing */
  assert_false(valid(8, 3, (uint32_t[]){0, 4, 4}, (uint32_t[]){4, 4, 4})); /* twice */
  assert_false(valid(8, 2, (uint32_t[]){4, 0}, (uint32_t[]){4, 4}));       /* out of order */
  assert_false(valid(8, 0, NULL, NULL));
}

/* ---- folds and positions ---- */

static float folded_by_hand(const float *row, uint64_t cols, int pool, uint32_t segments) {
  float value = pool == WEFT_POOL_MAX ? -INFINITY : 0, squares[COLS];
  for (uint64_t c = 0; c < cols; c++) squares[c] = row[c] * row[c];
  if (pool == WEFT_POOL_SUM && segments) return weft_sum_f32(squares, 1, cols, segments);
  for (uint64_t c = 0; c < cols; c++)
    value = pool == WEFT_POOL_MAX ? weft_maximum_f32(value, squares[c]) : value + squares[c];
  return value;
}

/* Rows of squares, summed in segments, as a chain, and their greatest. */
static void rows_are_folded(void **state) {
  (void)state;
  static const weft_abi_node nodes[] = {{.kind = WEFT_BODY_OPERAND, .value = 0},
                                        {.kind = WEFT_BODY_OPERAND, .value = 0},
                                        {.kind = WEFT_BODY_MUL, .child = {0, 1}}};
  static const weft_abi_operand operand = {.tensor = 1, .row_stride = COLS, .col_stride = 1};
  static const struct {
    int pool;
    uint32_t segments;
  } folds[] = {{WEFT_POOL_SUM, 8}, {WEFT_POOL_SUM, 1}, {WEFT_POOL_SUM, 0}, {WEFT_POOL_MAX, 0}};
  for (size_t f = 0; f < sizeof folds / sizeof *folds; f++) {
    one_chip one;
    begin(&one, 2);
    add_tensor(&one, WEFT_FP32, ROWS, 1);
    add_tensor(&one, WEFT_FP32, ROWS, COLS);
    float *x = (float *)(void *)one.slots[1].data;
    uint64_t random = f + 1;
    for (int i = 0; i < ROWS * COLS; i++) x[i] = (float)((int64_t)weft_random_next(&random) >> 40) * 0x1p-20f;
    weft_reduce(&one.chip, &(weft_abi_reduce){.out = 0,
                                              .cols = COLS,
                                              .pool = folds[f].pool,
                                              .segments = folds[f].segments,
                                              .operand_count = 1,
                                              .operands = &operand,
                                              .node_count = 3,
                                              .nodes = nodes});
    assert_false(weft_chip_failed(&one.chip));
    for (int r = 0; r < ROWS; r++)
      assert_true(((float *)(void *)one.slots[0].data)[r] ==
                  folded_by_hand(x + r * COLS, COLS, folds[f].pool, folds[f].segments));
    end(&one);
  }
}

/* The lowest index of the greatest; a sum that leaves 64 bits is a fault of its row. */
static void integers_are_folded(void **state) {
  (void)state;
  static const weft_abi_node node = {.kind = WEFT_BODY_OPERAND};
  static const weft_abi_operand operand = {.tensor = 1, .row_stride = 3, .col_stride = 1};
  static const int64_t values[] = {1, 5, 5, INT64_MAX, 1, 0};
  weft_abi_reduce reduce = {
      .cols = 3, .pool = WEFT_POOL_ARG_MAX, .operand_count = 1, .operands = &operand, .node_count = 1, .nodes = &node};
  one_chip one;
  begin(&one, 1);
  add_tensor(&one, WEFT_INT64, 2, 1);
  add_tensor(&one, WEFT_INT64, 2, 3);
  memcpy(one.slots[1].data, values, sizeof values);
  weft_reduce(&one.chip, &reduce);
  assert_false(weft_chip_failed(&one.chip));
  assert_int_equal(((int64_t *)(void *)one.slots[0].data)[0], 1);
  assert_int_equal(((int64_t *)(void *)one.slots[0].data)[1], 0);
  reduce.pool = WEFT_POOL_SUM;
  weft_reduce(&one.chip, &reduce);
  assert_true(weft_chip_failed(&one.chip));
  assert_non_null(strstr(one.chip.fault.text, "row 1, column 0"));
  end(&one);
}

/* x below the bound of its row, -1 from there on; and the first rows only. */
static void positions_select(void **state) {
  (void)state;
  static const weft_abi_operand operands[] = {{.tensor = 1, .row_stride = COLS, .col_stride = 1},
                                              {.tensor = 2, .row_stride = 1}};
  const weft_abi_node nodes[] = {
      {.kind = WEFT_BODY_OPERAND, .value = 0},
      {.kind = WEFT_BODY_CONST, .value = bits_of(-1)},
      {.kind = WEFT_BODY_SELECT, .child = {0, 1}, .var = WEFT_VAR_GEN_COL, .operand_bound = 1, .value = 1},
      {.kind = WEFT_BODY_CONST, .value = bits_of(-2)},
      {.kind = WEFT_BODY_SELECT, .child = {3, 2}, .var = WEFT_VAR_GEN_ROW, .ge = 1, .value = 3}};
  one_chip one;
  begin(&one, 2);
  add_tensor(&one, WEFT_FP32, ROWS, COLS);
  add_tensor(&one, WEFT_FP32, ROWS, COLS);
  add_tensor(&one, WEFT_INT32, ROWS, 1);
  for (int i = 0; i < ROWS * COLS; i++) ((float *)(void *)one.slots[1].data)[i] = (float)i;
  for (int r = 0; r < ROWS; r++) ((int32_t *)(void *)one.slots[2].data)[r] = 300 * r - 1;
  weft_pointwise(&one.chip,
                 &(weft_abi_pointwise){.operand_count = 2, .operands = operands, .node_count = 5, .nodes = nodes});
  assert_false(weft_chip_failed(&one.chip));
  for (int r = 0; r < ROWS; r++)
    for (int c = 0; c < COLS; c++) {
      float expected = r >= 3 ? -2.0f : c < 300 * r - 1 ? (float)(r * COLS + c) : -1.0f;
      assert_true(((float *)(void *)one.slots[0].data)[r * COLS + c] == expected);
    }
  end(&one);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_are_assembled),
      cmocka_unit_test(rows_are_folded),
      cmocka_unit_test(integers_are_folded),
      cmocka_unit_test(positions_select),
      cmocka_unit_test(floats_broadcast),
      cmocka_unit_test(unchosen_branches_do_not_fault),
      cmocka_unit_test(faults_name_the_lowest_element),
      cmocka_unit_test(floats_into_integers),
      cmocka_unit_test(maps_outside_a_tensor_are_refused),
      cmocka_unit_test(copies_move_blocks),
      cmocka_unit_test(transposes),
      cmocka_unit_test(parts_of_tables),
      cmocka_unit_test(rows_and_columns_are_replaced),
      cmocka_unit_test(trees),
  };
  return cmocka_run_group_tests_name("operations", tests, NULL, NULL);
}
