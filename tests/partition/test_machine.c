/* The machine graph: what each chip does, in which order, with what it must and must not move. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static weft_diag *diag;

static int set_up(void **state) {
  (void)state;
  diag = weft_diag_new();
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  if (weft_diag_count(diag)) print_message("%s", messages_of(diag));
  weft_diag_free(diag);
  return 0;
}

/* ---- equal chips work alike
 * ------------------------------------------------------------------------------------------- */

/* The place of each value among those of its chip. */
static uint32_t *ordinals(const weft_graph *machine) {
  uint32_t *next = calloc(machine->chips, sizeof *next), *ordinal = calloc(machine->value_count, sizeof *ordinal);
  for (uint64_t v = 0; v < machine->value_count; v++) ordinal[v] = next[machine->values[v].chip]++;
  free(next);
  return ordinal;
}

static void sign_value(weft_text *text, const weft_graph *machine, const uint32_t *ordinal, uint32_t value,
                       uint32_t chip) {
  const weft_value *v = &machine->values[value];
  weft_text_printf(text, " %s%u[", v->chip == chip ? "" : "other's ", ordinal[value]);
  for (uint32_t d = 0; d < v->rank; d++) weft_text_printf(text, "%llu,", (unsigned long long)v->extents[d]);
  weft_text_puts(text, "]");
}

/* What a chip does, other chips being others. The nodes of an all-reduce stand in segment order, not
 * the chip's: they are left out. */
static char *signature(const weft_graph *machine, const uint32_t *ordinal, uint32_t chip) {
  weft_text text = {0};
  for (uint64_t o = 0; o < machine->op_count; o++) {
    const weft_graph_op *op = &machine->ops[o];
    if (op->chip != chip) continue;
    weft_text_printf(&text, "\n%u %s", op->section, weft_graph_op_name(op->kind));
    sign_value(&text, machine, ordinal, op->out, chip);
    for (uint32_t i = 0; i < op->in_count && op->kind != WEFT_GRAPH_ALL_REDUCE; i++)
      sign_value(&text, machine, ordinal, op->ins[i], chip);
  }
  weft_text_puts(&text, "");
  return text.data;
}

static void assert_chips_alike(const weft_graph *graph, const char *mesh, const char *split, const char *requests) {
  weft_graph *machine = partitioned(graph, mesh, split, requests);
  uint32_t *ordinal = ordinals(machine);
  char *first = signature(machine, ordinal, 0);
  assert_true(strlen(first) > 0);
  for (uint32_t chip = 1; chip < machine->chips; chip++) {
    char *other = signature(machine, ordinal, chip);
    if (strcmp(first, other) != 0)
      fail_msg("%s over %s: chip 0 does %s\nchip %u does %s", split, mesh, first, chip, other);
    free(other);
  }
  free(first);
  free(ordinal);
  weft_graph_free(machine);
}

static void test_equal_chips_work_alike(void **state) {
  (void)state;
  weft_graph *graph = build_mlp(
      &(mlp){.layers = 3, .widths = {256, 256, 256, 256}, .batch = 64, .dtype = WEFT_FP32, .bias = true, .relu = true},
      diag);
  assert_chips_alike(graph, "x=64", "columns", NULL);
  assert_chips_alike(graph, "x=64", "batch", NULL);
  assert_chips_alike(graph, "x=4", "rows", NULL);
  assert_chips_alike(graph, "x=2", "rows", NULL);
  assert_chips_alike(graph, "x=4", "column-row", NULL);
  assert_chips_alike(graph, "x=8,y=8", "x=batch,y=columns", NULL);
  assert_chips_alike(graph, "x=4,y=4", "x=batch,y=rows", NULL);
  /* All to all: rows to columns and back. */
  assert_chips_alike(graph, "x=16", NULL, "h1=rows@x relu1=rows@x h2=cols@x relu2=cols@x y=rows@x h3=rows@x");
  weft_graph_free(graph);
}

/* ---- what moves
 * --------------------------------------------------------------------------------------------------------- */

static void test_parameters_and_inputs_never_cross(void **state) {
  (void)state;
  weft_graph *graph = build_digits(32, diag);
  static const char *const splits[] = {"columns", "rows", "batch", "column-row", "pipeline", NULL};
  for (size_t s = 0; s < 6; s++) {
    weft_graph *machine = partitioned(graph, "x=7", splits[s], NULL);
    for (uint64_t o = 0; o < machine->op_count; o++)
      for (uint32_t i = 0; i < machine->ops[o].in_count; i++) {
        const weft_value *in = &machine->values[machine->ops[o].ins[i]];
        if (in->producer == WEFT_NONE) assert_int_equal(in->chip, machine->ops[o].chip);
      }
    weft_graph_free(machine);
  }
  weft_graph_free(graph);
}

static void test_foreign_values_come_from_earlier_sections(void **state) {
  (void)state;
  weft_graph *graph = build_digits(32, diag);
  static const char *const splits[] = {"columns", "rows", "column-row", "pipeline", NULL};
  for (size_t s = 0; s < 5; s++) {
    weft_graph *machine = partitioned(graph, "x=6", splits[s], NULL);
    for (uint64_t o = 0; o < machine->op_count; o++)
      for (uint32_t i = 0; i < machine->ops[o].in_count; i++) {
        const weft_value *in = &machine->values[machine->ops[o].ins[i]];
        if (in->chip != machine->ops[o].chip) assert_true(machine->ops[in->producer].section < machine->ops[o].section);
      }
    for (uint64_t o = 1; o < machine->op_count; o++)
      assert_true(machine->ops[o].section >= machine->ops[o - 1].section);
    weft_graph_free(machine);
  }
  weft_graph_free(graph);
}

/* One value read by two layers in the same layout is gathered once a chip; in another layout a second time. */
static void test_one_gather_a_block(void **state) {
  (void)state;
  weft_graph *graph = weft_graph_new("branches", diag);
  uint32_t x = weft_graph_input(graph, "x", WEFT_FP32, 2, (uint64_t[]){8, 64});
  uint32_t w[3];
  const char *names[] = {"w1", "w2", "w3"};
  for (int i = 0; i < 3; i++) w[i] = weft_graph_param(graph, names[i], WEFT_FP32, 2, (uint64_t[]){64, 64});
  weft_graph_section(graph, "first");
  uint32_t h = weft_graph_matmul(graph, "h", x, w[0]);
  weft_graph_section(graph, "second");
  weft_graph_output(graph, weft_graph_matmul(graph, "a", h, w[1]), "a");
  weft_graph_section(graph, "third");
  weft_graph_output(graph, weft_graph_matmul(graph, "b", h, w[2]), "b");
  weft_graph *machine = partitioned(graph, "x=4", "columns", NULL);
  for (int chip = 0; chip < 4; chip++) assert_int_equal(count_ops(machine, WEFT_GRAPH_ASSEMBLE, chip), 1);
  assert_true(same_results(graph, machine, 11));
  weft_graph_free(machine);
  machine = partitioned(graph, "x=4", NULL, "h=cols@x a=cols@x b=rows@x");
  for (int chip = 0; chip < 4; chip++) assert_int_equal(count_ops(machine, WEFT_GRAPH_ASSEMBLE, chip), 2);
  assert_true(same_results(graph, machine, 12));
  weft_graph_free(machine);
  weft_graph_free(graph);
}

/* Only what is needed of a proper part crosses. */
static void test_owners_cut_before_they_send(void **state) {
  (void)state;
  weft_graph *graph = build_digits(32, diag);
  weft_graph *machine = partitioned(graph, "x=3", "column-row", NULL);
  /* Columns of 86, 86, 84; segments of 64, 64, 128: chip 1 lacks 22 columns of chip 0, chip 2 lacks 44 of chip 1. */
  const weft_value *at_one = find_value(machine, "relu1.gather@1"), *at_two = find_value(machine, "relu1.gather@2");
  assert_non_null(at_one);
  assert_non_null(at_two);
  const weft_graph_op *one = &machine->ops[at_one->producer], *two = &machine->ops[at_two->producer];
  assert_int_equal(one->in_count, 2);
  assert_int_equal(machine->values[one->ins[0]].chip, 1);
  assert_int_equal(machine->values[one->ins[1]].chip, 0);
  assert_int_equal(machine->values[one->ins[1]].extents[1], 22);
  assert_int_equal(one->starts[1][1], 0);
  assert_int_equal(machine->values[two->ins[1]].extents[1], 44);
  weft_graph_free(machine);
  weft_graph_free(graph);
}

static void test_stages_read_a_whole_block_without_copying_it(void **state) {
  (void)state;
  weft_graph *graph = build_digits(32, diag);
  weft_graph *machine = partitioned(graph, "x=3", "pipeline", NULL);
  assert_int_equal(machine->op_count, graph->op_count);
  assert_int_equal(count_ops(machine, WEFT_GRAPH_ASSEMBLE, -1) + count_ops(machine, WEFT_GRAPH_SLICE, -1), 0);
  weft_graph_free(machine);
  weft_graph_free(graph);
}

/* ---- folds over chips
 * ------------------------------------------------------------------------------------------------- */

/* The nodes of a fold over `of` segments on `chips` chips: complete aligned subtrees, all of them, at most three a chip
 * when the segments are a power of two. Local borders are the whole's, because the matmul's own cut gives them. */
static void check_nodes(uint64_t k, uint32_t segments, uint32_t chips) {
  weft_graph *graph =
      build_mlp(&(mlp){.layers = 1, .widths = {k, 3}, .batch = 2, .dtype = WEFT_FP32, .segments = segments}, diag);
  char mesh[32];
  snprintf(mesh, sizeof mesh, "x=%u", chips);
  weft_graph *machine = partitioned(graph, mesh, "rows", NULL);
  uint32_t of = weft_segments_effective(k, segments), next = 0;
  for (uint64_t o = 0; o < machine->op_count && of > 1 && chips > 1; o++) {
    const weft_graph_op *op = &machine->ops[o];
    const weft_value *out = &machine->values[op->out], *a = &machine->values[op->ins[0]];
    if (op->kind != WEFT_GRAPH_MATMUL) continue;
    const weft_partial *partial = &out->partial;
    assert_int_equal(partial->first, next);
    assert_int_equal(partial->count & (partial->count - 1), 0);
    assert_int_equal(partial->first % partial->count, 0);
    assert_int_equal(op->segments, partial->count);
    for (uint32_t s = 0; s <= partial->count; s++)
      assert_int_equal(a->shard.col0 + weft_segment_begin(a->extents[1], op->segments, s),
                       weft_segment_begin(k, segments, next + s));
    next += partial->count;
    assert_in_range(partial->first, of * out->chip / chips, of * (out->chip + 1) / chips - 1);
  }
  if (of > 1 && chips > 1) assert_int_equal(next, of);
  for (uint32_t chip = 0; chip < chips; chip++)
    if ((of & (of - 1)) == 0 && chips > 1)
      assert_in_range(count_ops(machine, WEFT_GRAPH_MATMUL, (int)chip), 0, of > 8 ? 4 : 3);
  assert_true(same_results(graph, machine, k + segments + chips));
  weft_graph_free(machine);
  weft_graph_free(graph);
}

static void test_nodes_are_complete_subtrees(void **state) {
  (void)state;
  static const uint64_t extents[] = {33, 65, 128, 300, 784, 1024};
  static const uint32_t segments[] = {2, 3, 4, 5, 7, 8, 16};
  for (size_t k = 0; k < 6; k++)
    for (size_t s = 0; s < 7; s++)
      for (uint32_t chips = 1; chips <= 9; chips++) check_nodes(extents[k], segments[s], chips);
}

static void test_chips_beyond_the_segments_do_nothing(void **state) {
  (void)state;
  weft_graph *graph = build_digits(4, diag);
  weft_graph *machine = partitioned(graph, "x=64", "rows", NULL);
  for (uint32_t chip = 0; chip < 64; chip++) {
    uint64_t ops = 0;
    for (uint64_t o = 0; o < machine->op_count; o++) ops += machine->ops[o].chip == chip;
    assert_int_equal(ops > 0, chip % 8 == 7); /* 8 segments over 64 chips */
  }
  weft_graph_free(machine);
  weft_graph_free(graph);
}

/* A value that is folded over chips and then needed whole by one reader and cut by another is folded once on each chip.
 */
static void test_partial_to_whole_and_cut(void **state) {
  (void)state;
  weft_graph *graph = weft_graph_new("mix", diag);
  uint32_t x = weft_graph_input(graph, "x", WEFT_FP32, 2, (uint64_t[]){6, 256});
  uint32_t w1 = weft_graph_param(graph, "w1", WEFT_FP32, 2, (uint64_t[]){256, 128});
  uint32_t w2 = weft_graph_param(graph, "w2", WEFT_FP32, 2, (uint64_t[]){128, 64});
  weft_graph_section(graph, "fold");
  uint32_t h = weft_graph_matmul(graph, "h", x, w1);
  weft_graph_section(graph, "use");
  weft_graph_output(graph, weft_graph_matmul(graph, "y", h, w2), "y");
  weft_graph_output(graph, weft_graph_relu(graph, "z", h), "z");
  static const char *const requests[] = {"w1=rows@x w2=rows@x z=cols@x", "w1=rows@x w2=cols@x z=replicated",
                                         "w1=rows@x w2=cols@x z=rows@x"};
  for (size_t r = 0; r < 3; r++) {
    weft_graph *machine = partitioned(graph, "x=4", NULL, requests[r]);
    for (int chip = 0; chip < 4; chip++)
      assert_in_range(count_ops(machine, WEFT_GRAPH_ALL_REDUCE, chip), 1, r == 0 ? 2 : 1);
    assert_true(same_results(graph, machine, r + 1));
    weft_graph_free(machine);
  }
  weft_graph_free(graph);
}

static void test_epilogue_follows_the_fold_once(void **state) {
  (void)state;
  weft_graph *graph = build_mlp(
      &(mlp){.layers = 2, .widths = {256, 128, 8}, .batch = 4, .dtype = WEFT_BF16, .bias = true, .relu = true}, diag);
  weft_graph *machine = partitioned(graph, "x=2", "rows", NULL);
  for (uint64_t o = 0; o < machine->op_count; o++) {
    const weft_graph_op *op = &machine->ops[o];
    if (op->kind == WEFT_GRAPH_MATMUL) assert_int_equal(machine->values[op->out].dtype, WEFT_FP32);
    if (op->kind != WEFT_GRAPH_BIAS) continue;
    assert_int_equal(machine->ops[machine->values[op->ins[0]].producer].kind, WEFT_GRAPH_ALL_REDUCE);
    assert_int_equal(machine->ops[machine->values[op->ins[0]].producer].section, op->section);
  }
  assert_true(same_results(graph, machine, 2));
  weft_graph_free(machine);
  weft_graph_free(graph);
}

/* ---- outputs
 * ------------------------------------------------------------------------------------------------------------ */

static void test_every_element_has_one_writer(void **state) {
  (void)state;
  weft_graph *graph = build_digits(5, diag);
  static const char *const meshes[] = {"x=1,y=1", "x=3,y=2", "x=2,y=5", "x=7,y=1"};
  static const char *const splits[] = {"x=columns,y=rows", "x=rows,y=batch", "x=batch,y=columns", "x=pipeline,y=rows",
                                       NULL};
  for (size_t m = 0; m < 4; m++)
    for (size_t s = 0; s < 5; s++) {
      weft_graph *machine = partitioned(graph, meshes[m], splits[s], NULL);
      uint32_t written[50] = {0};
      for (uint64_t v = 0; v < machine->value_count; v++) {
        const weft_value *value = &machine->values[v];
        if (value->role != WEFT_ROLE_OUTPUT || (value->has_shard && !value->shard.writer)) continue;
        for (uint64_t r = 0; r < value->extents[0]; r++)
          for (uint64_t c = 0; c < value->extents[1]; c++)
            written[(value->shard.row0 + r) * 10 + value->shard.col0 + c]++;
      }
      for (int i = 0; i < 50; i++) assert_int_equal(written[i], 1);
      weft_graph_free(machine);
    }
  weft_graph_free(graph);
}

static void test_one_chip_is_the_graph_itself(void **state) {
  (void)state;
  weft_graph *graph = build_digits(5, diag);
  weft_graph *machine = partitioned(graph, "x=1", NULL, NULL);
  assert_int_equal(machine->op_count, graph->op_count);
  assert_int_equal(machine->value_count, graph->value_count);
  assert_int_equal(machine->section_count, graph->section_count);
  for (uint64_t o = 0; o < graph->op_count; o++) {
    assert_int_equal(machine->ops[o].kind, graph->ops[o].kind);
    assert_string_equal(machine->ops[o].name, graph->ops[o].name);
    assert_string_equal(machine->section_names[machine->ops[o].section], graph->section_names[graph->ops[o].section]);
  }
  for (uint64_t v = 0; v < machine->value_count; v++) {
    assert_false(machine->values[v].has_shard);
    assert_non_null(find_value(graph, machine->values[v].name));
  }
  weft_graph_free(machine);
  weft_graph_free(graph);
}

static void test_names_stay_unique(void **state) {
  (void)state;
  weft_graph *graph = weft_graph_new("names", diag);
  uint32_t x = weft_graph_input(graph, "h", WEFT_FP32, 2, (uint64_t[]){4, 256});
  uint32_t w = weft_graph_param(graph, "h.partial", WEFT_FP32, 2, (uint64_t[]){256, 8});
  weft_graph_section(graph, "s");
  weft_graph_output(graph, weft_graph_matmul(graph, "h.gather", x, w), "h@1");
  weft_graph *machine = partitioned(graph, "x=2", "rows", NULL);
  for (uint64_t a = 0; a < machine->value_count; a++)
    for (uint64_t b = a + 1; b < machine->value_count; b++)
      assert_string_not_equal(machine->values[a].name, machine->values[b].name);
  assert_true(same_results(graph, machine, 3));
  weft_graph_free(machine);
  weft_graph_free(graph);
}

/* ---- small and odd extents
 * ---------------------------------------------------------------------------------------------- */

static void test_empty_extents(void **state) {
  (void)state;
  static const mlp shapes[] = {
      {.layers = 2, .widths = {8, 8, 8}, .batch = 0, .dtype = WEFT_FP32, .bias = true, .relu = true},
      {.layers = 2, .widths = {0, 8, 8}, .batch = 3, .dtype = WEFT_FP32, .bias = true, .relu = true},
      {.layers = 2, .widths = {8, 0, 8}, .batch = 3, .dtype = WEFT_FP32, .bias = true, .relu = true},
      {.layers = 2, .widths = {8, 8, 0}, .batch = 3, .dtype = WEFT_INT8, .relu = true},
  };
  static const char *const splits[] = {"columns", "rows", "batch", "column-row", "pipeline", NULL};
  for (size_t i = 0; i < 4; i++)
    for (size_t s = 0; s < 6; s++) {
      weft_graph *graph = build_mlp(&shapes[i], diag);
      weft_graph *machine = partitioned(graph, "x=3", splits[s], NULL);
      if (!same_results(graph, machine, i + 1)) fail_msg("shape %zu, %s", i, splits[s] ? splits[s] : "search");
      weft_graph_free(machine);
      weft_graph_free(graph);
    }
}

static void test_one_element(void **state) {
  (void)state;
  weft_graph *graph = build_mlp(&(mlp){.layers = 1, .widths = {1, 1}, .batch = 1, .dtype = WEFT_FP32}, diag);
  static const char *const splits[] = {"columns", "rows", "batch", "column-row", "pipeline", NULL};
  for (size_t s = 0; s < 6; s++) {
    weft_graph *machine = partitioned(graph, "x=64", splits[s], NULL);
    assert_int_equal(machine->op_count, 1);
    assert_true(same_results(graph, machine, s + 1));
    weft_graph_free(machine);
  }
  weft_graph_free(graph);
}

/* Batched operands: files give rectangles of the plane, so a middle dimension is cut after reading. */
static void test_three_dimensions(void **state) {
  (void)state;
  weft_graph *graph = weft_graph_new("batched", diag);
  uint32_t x = weft_graph_input(graph, "x", WEFT_FP32, 3, (uint64_t[]){3, 5, 160});
  uint32_t w = weft_graph_param(graph, "w", WEFT_FP32, 2, (uint64_t[]){160, 6});
  weft_graph_section(graph, "s");
  weft_graph_output(graph, weft_graph_relu(graph, "r", weft_graph_matmul(graph, "h", x, w)), "y");
  static const char *const requests[] = {"x=0@x", "x=1@x",       "x=cols@x",    "w=cols@x",
                                         "y=1@x", "h=1@x y=0@x", "x=replicated"};
  for (size_t r = 0; r < 7; r++) {
    weft_graph *machine = partitioned(graph, "x=2", NULL, requests[r]);
    if (!same_results(graph, machine, r + 1)) fail_msg("%s", requests[r]);
    weft_graph_free(machine);
  }
  weft_graph_free(graph);
}

/* ---- bodies over blocks
 * ------------------------------------------------------------------------------------------------- */

/* Select(col < 5, a, b) + c: positions are the whole tensor's on every chip. */
static void test_positions_are_the_whole_tensors(void **state) {
  (void)state;
  const weft_body_node nodes[] = {
      {.kind = WEFT_BODY_OPERAND, .value = 0},
      {.kind = WEFT_BODY_OPERAND, .value = 1},
      {.kind = WEFT_BODY_SELECT, .child = {0, 1}, .pred = {.var = WEFT_VAR_GEN_COL, .bound = 5}},
      {.kind = WEFT_BODY_OPERAND, .value = 2},
      {.kind = WEFT_BODY_SELECT, .child = {2, 3}, .pred = {.ge = true, .var = WEFT_VAR_GEN_ROW, .bound = 3}}};
  weft_graph *graph = weft_graph_new("positions", diag);
  uint32_t ins[3];
  ins[0] = weft_graph_input(graph, "a", WEFT_FP32, 2, (uint64_t[]){8, 11});
  ins[1] = weft_graph_input(graph, "b", WEFT_FP32, 2, (uint64_t[]){1, 11});
  ins[2] = weft_graph_input(graph, "c", WEFT_FP32, 2, (uint64_t[]){8, 1});
  weft_graph_section(graph, "s");
  weft_graph_output(graph, weft_graph_pointwise(graph, "p", ins, 3, &(weft_body){nodes, 5}, WEFT_FP32), "y");
  static const char *const requests[] = {"y=rows@x",        "y=cols@x",   "y=rows@x,cols@y",
                                         "a=cols@y,rows@x", "a=cols@x+y", NULL};
  for (size_t r = 0; r < 6; r++) {
    weft_graph *machine = partitioned(graph, "x=3,y=2", NULL, requests[r]);
    if (!same_results(graph, machine, r + 1)) fail_msg("%s", requests[r] ? requests[r] : "search");
    weft_graph_free(machine);
  }
  weft_graph_free(graph);
}

static void test_positions_compared_with_an_operand_stay_whole(void **state) {
  (void)state;
  const weft_body_node nodes[] = {{.kind = WEFT_BODY_OPERAND, .value = 0},
                                  {.kind = WEFT_BODY_CONST, .value = 0},
                                  {.kind = WEFT_BODY_SELECT,
                                   .child = {0, 1},
                                   .pred = {.operand_bound = true, .var = WEFT_VAR_GEN_COL, .bound = 1}}};
  weft_graph *graph = weft_graph_new("lengths", diag);
  uint32_t ins[2];
  ins[0] = weft_graph_input(graph, "a", WEFT_INT32, 2, (uint64_t[]){8, 11});
  ins[1] = weft_graph_input(graph, "lengths", WEFT_INT32, 2, (uint64_t[]){8, 1});
  weft_graph_section(graph, "s");
  weft_graph_output(graph, weft_graph_pointwise(graph, "p", ins, 2, &(weft_body){nodes, 3}, WEFT_INT32), "y");
  weft_graph *machine = NULL;
  assert_int_equal(partition_as(graph, "x=2", NULL, "y=cols@x", &machine, NULL, diag), WEFT_INVALID);
  assert_messages_have(diag, "--shard y=cols@x", "pointwise 'p'", "positions", NULL);
  weft_diag_clear(diag);
  machine = partitioned(graph, "x=2", NULL, "y=rows@x");
  weft_graph_free(machine);
  weft_graph_free(graph);
}

/* A residual connection over layers of several stages and layouts, with a row, a column and a scalar broadcast. */
static void test_skip_connections(void **state) {
  (void)state;
  const weft_body_node nodes[] = {{.kind = WEFT_BODY_OPERAND, .value = 0},  {.kind = WEFT_BODY_OPERAND, .value = 1},
                                  {.kind = WEFT_BODY_ADD, .child = {0, 1}}, {.kind = WEFT_BODY_OPERAND, .value = 2},
                                  {.kind = WEFT_BODY_MUL, .child = {2, 3}}, {.kind = WEFT_BODY_OPERAND, .value = 3},
                                  {.kind = WEFT_BODY_ADD, .child = {4, 5}}, {.kind = WEFT_BODY_OPERAND, .value = 4},
                                  {.kind = WEFT_BODY_SUB, .child = {6, 7}}};
  weft_graph *graph = weft_graph_new("residual", diag);
  uint32_t x = weft_graph_input(graph, "x", WEFT_FP32, 2, (uint64_t[]){7, 128});
  uint32_t h[4] = {x};
  const char *w[] = {"w1", "w2", "w3"}, *s[] = {"one", "two", "three"}, *m[] = {"m1", "m2", "m3"};
  for (int i = 0; i < 3; i++) {
    weft_graph_section(graph, s[i]);
    h[i + 1] =
        weft_graph_matmul(graph, m[i], h[i], weft_graph_param(graph, w[i], WEFT_FP32, 2, (uint64_t[]){128, 128}));
  }
  uint32_t ins[5] = {h[1], h[3]};
  ins[2] = weft_graph_param(graph, "row", WEFT_FP32, 1, (uint64_t[]){128});
  ins[3] = weft_graph_param(graph, "column", WEFT_FP32, 2, (uint64_t[]){7, 1});
  ins[4] = weft_graph_param(graph, "scalar", WEFT_FP32, 0, NULL);
  weft_graph_output(graph, weft_graph_pointwise(graph, "sum", ins, 5, &(weft_body){nodes, 9}, WEFT_FP32), "y");
  static const char *const splits[] = {"columns", "rows", "batch", "column-row", "pipeline", NULL};
  static const char *const meshes[] = {"x=2", "x=3", "x=4", "x=8"};
  for (size_t i = 0; i < 6; i++)
    for (size_t k = 0; k < 4; k++) {
      weft_graph *machine = partitioned(graph, meshes[k], splits[i], NULL);
      if (!same_results(graph, machine, 1 + i * 4 + k))
        fail_msg("%s over %s", splits[i] ? splits[i] : "search", meshes[k]);
      weft_graph_free(machine);
    }
  weft_graph_free(graph);
}

/* Meshes with as many chips and other shapes are other meshes. */
static void test_mesh_shape_is_not_guessed(void **state) {
  (void)state;
  weft_graph *graph = build_digits(6, diag);
  weft_graph *tall = partitioned(graph, "x=2,y=3", "x=batch,y=columns", NULL),
             *wide = partitioned(graph, "x=3,y=2", "x=batch,y=columns", NULL);
  assert_int_equal(find_value(tall, "y@5")->extents[0], 3);
  assert_int_equal(find_value(wide, "y@5")->extents[0], 2);
  assert_int_equal(find_value(tall, "y@5")->extents[1], 2);
  assert_int_equal(find_value(wide, "y@5")->extents[1], 5);
  weft_graph_free(tall);
  weft_graph_free(wide);
  weft_graph_free(graph);
}

/* Each chip has the columns of one key and its queries: what is made of them is made there, and nothing of it moves. */
static void test_heads_stay_where_their_columns_are_made(void **state) {
  (void)state;
  static const weft_decoder_options options = {.layers = 2,
                                               .width = 256,
                                               .heads = 8,
                                               .kv_heads = 4,
                                               .hidden = 128,
                                               .vocabulary = 70,
                                               .context = 40,
                                               .prompt = 3,
                                               .eps_nano = 10000,
                                               .dtype = WEFT_FP32};
  weft_graph *graph, *machine;
  assert_int_equal(weft_graph_new_decoder(&options, &graph, diag), WEFT_OK);
  machine =
      partitioned(graph, "x=4", NULL,
                  "layers.0.wq=cols@x layers.0.wk=cols@x layers.0.wv=cols@x layers.0.wo=rows@x layers.1.wq=cols@x "
                  "layers.1.wk=cols@x layers.1.wv=cols@x layers.1.wo=rows@x");
  uint64_t scores[4] = {0}, mixed[4] = {0};
  for (uint64_t o = 0; o < machine->op_count; o++) {
    const weft_graph_op *op = &machine->ops[o];
    unsigned layer, key;
    char part[32];
    if (sscanf(op->name, "layers.%u.%u.%31[a-z]", &layer, &key, part) != 3) continue;
    assert_int_equal(op->chip, key);
    scores[key] += strcmp(part, "scores") == 0;
    mixed[key] += strcmp(part, "mixed") == 0 && op->kind == WEFT_GRAPH_MATMUL;
    for (uint32_t i = 0; i < op->in_count; i++) assert_int_equal(machine->values[op->ins[i]].chip, op->chip);
  }
  for (uint32_t chip = 0; chip < 4; chip++) {
    assert_int_equal(scores[chip], 2);
    assert_int_equal(mixed[chip], 2);
  }
  assert_true(same_results(graph, machine, 7));
  weft_graph_free(machine);
  weft_graph_free(graph);
}

/* Fewer keys than chips: a key's columns lie on two chips, so nobody owns it, and the bits are the same. */
static void test_keys_over_more_chips(void **state) {
  (void)state;
  static const weft_decoder_options options = {.layers = 1,
                                               .width = 128,
                                               .heads = 4,
                                               .kv_heads = 2,
                                               .hidden = 64,
                                               .vocabulary = 40,
                                               .context = 33,
                                               .prompt = 2,
                                               .eps_nano = 10000,
                                               .dtype = WEFT_FP32};
  static const char *const meshes[] = {"x=4", "x=2,y=2", "x=8"};
  weft_graph *graph;
  assert_int_equal(weft_graph_new_decoder(&options, &graph, diag), WEFT_OK);
  for (size_t i = 0; i < 3; i++) {
    weft_graph *machine =
        partitioned(graph, meshes[i], NULL, i == 1 ? "layers.0.wq=cols@x+y layers.0.wk=cols@x+y" : NULL);
    assert_true(same_results(graph, machine, 11 + i));
    weft_graph_free(machine);
  }
  weft_graph_free(graph);
}

#define MACHINE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      MACHINE(test_equal_chips_work_alike),
      MACHINE(test_parameters_and_inputs_never_cross),
      MACHINE(test_foreign_values_come_from_earlier_sections),
      MACHINE(test_one_gather_a_block),
      MACHINE(test_owners_cut_before_they_send),
      MACHINE(test_stages_read_a_whole_block_without_copying_it),
      MACHINE(test_nodes_are_complete_subtrees),
      MACHINE(test_chips_beyond_the_segments_do_nothing),
      MACHINE(test_partial_to_whole_and_cut),
      MACHINE(test_epilogue_follows_the_fold_once),
      MACHINE(test_every_element_has_one_writer),
      MACHINE(test_one_chip_is_the_graph_itself),
      MACHINE(test_names_stay_unique),
      MACHINE(test_empty_extents),
      MACHINE(test_one_element),
      MACHINE(test_three_dimensions),
      MACHINE(test_positions_are_the_whole_tensors),
      MACHINE(test_positions_compared_with_an_operand_stay_whole),
      MACHINE(test_skip_connections),
      MACHINE(test_mesh_shape_is_not_guessed),
      MACHINE(test_heads_stay_where_their_columns_are_made),
      MACHINE(test_keys_over_more_chips),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
