/* Multicast groups on every chip of a machine: which ones there are, that they are those of the chips' own programs,
 * that they are proved, and that bits are the graph's. */
#include "support.h"
#include "weft/graph.h"
#include "weft/partition.h"

#include <stdio.h>
#include <string.h>

static weft_graph *network(uint64_t batch, uint64_t in, uint64_t hidden, uint64_t out, weft_format dtype) {
  weft_graph *graph = NULL;
  const uint64_t layers[] = {in, hidden, out};
  const weft_mlp_options options = {
      .layers = layers, .layer_count = out ? 3 : 2, .batch = batch, .dtype = dtype, .bias = true, .relu = true};
  assert_int_equal(weft_graph_new_mlp(&options, "y", &graph, graph_diag), WEFT_OK);
  return graph;
}

static weft_program *machine_program(const weft_graph *graph, uint32_t chips, const char *split) {
  char mesh[16];
  snprintf(mesh, sizeof mesh, "chip=%u", chips);
  weft_target target;
  weft_graph *machine = NULL;
  weft_program *program = NULL;
  weft_partition_options options = {.split = split};
  weft_status status = weft_target_load("mesh-8x8", &target, graph_diag);
  if (!status) status = weft_mesh_parse(mesh, &options.mesh, graph_diag);
  if (!status) status = weft_partition(graph, &options, &target, &machine, NULL, graph_diag);
  if (!status) status = weft_graph_lower(machine, &program, graph_diag);
  if (status) fail_msg("%u chips, %s: %s", chips, split, first_message(graph_diag));
  weft_graph_free(machine);
  return program;
}

/** Plans for a part like mesh-8x8 with fewer sites, on which sites cost nothing. */
static void plan_on_mesh(weft_program *program, uint64_t cols, uint64_t rows) {
  weft_target target;
  const weft_options options = {.validate_between = true};
  assert_int_equal(weft_target_load("mesh-8x8", &target, graph_diag), WEFT_OK);
  target.mesh_cols = cols;
  target.mesh_rows = rows;
  target.op_seconds = 1e-15;
  if (weft_plan(program, &target, &options, graph_diag)) fail_msg("%s", first_message(graph_diag));
  assert_int_equal(weft_program_phase(program), WEFT_PHASE_VERIFIED);
}

static void assert_bits(const weft_graph *graph, const weft_program *program, uint64_t orders) {
  weft_array_set in = {0}, want = {0};
  make_inputs(program, 17, &in);
  assert_int_equal(weft_graph_interpret(graph, &in, &want, graph_diag), WEFT_OK);
  for (uint64_t seed = 0; seed < orders; seed++) {
    weft_array_set out = {0};
    if (run_program(program, &in, seed != 0, seed, &out, graph_diag)) fail_msg("%s", first_message(graph_diag));
    assert_same_sets(&want, &out);
    weft_array_set_free(&out);
  }
  weft_array_set_free(&in);
  weft_array_set_free(&want);
}

/** 128 rows over two chips; on 2 x 2 sites each chip has 64 rows, 64 columns of the result: a block a site. On each
 * chip the two sites of a row read the same rows of x, the two of a column the same columns of w. */
static void test_groups(void **state) {
  (void)state;
  static const struct {
    weft_rect rect;
    uint16_t chip;
  } expected[] = {{{0, 0, 1, 0}, 0}, {{0, 1, 1, 1}, 0}, {{0, 0, 1, 0}, 1}, {{0, 1, 1, 1}, 1},
                  {{0, 0, 0, 1}, 0}, {{1, 0, 1, 1}, 0}, {{0, 0, 0, 1}, 1}, {{1, 0, 1, 1}, 1}};
  weft_graph *graph = network(128, 96, 64, 0, WEFT_FP32);
  weft_program *program = machine_program(graph, 2, "batch");
  plan_with_multicast(program);
  const weft_placement *placement = program->placement;
  assert_int_equal(placement->group_count, 8);
  for (uint32_t g = 0; g < 8; g++) {
    const weft_group *group = &placement->groups[g];
    const weft_site sender = {expected[g].rect.x0, expected[g].rect.y0, expected[g].chip};
    assert_memory_equal(&group->rect, &expected[g].rect, sizeof group->rect);
    assert_true(weft_site_equal(group->sender, sender));
    assert_int_equal(group->direction, g < 4 ? WEFT_DIRECTION_ROW : WEFT_DIRECTION_COL);
    assert_int_equal(group->operand, g < 4 ? WEFT_OPERAND_A : WEFT_OPERAND_B);
  }
  weft_certificate certificate;
  assert_int_equal(weft_certify(program, &certificate, graph_diag), WEFT_OK);
  assert_bits(graph, program, 20);
  weft_program_free(program);
  weft_graph_free(graph);
}

/** McastSend ops, all of which hold their path. */
static uint64_t sends_of(const weft_op *ops, uint64_t count) {
  uint64_t found = 0;
  for (uint64_t i = 0; i < count; i++) {
    if (ops[i].kind == WEFT_OP_LOOP) found += sends_of(ops[i].loop.body, ops[i].loop.body_count);
    if (ops[i].kind != WEFT_OP_MCAST_SEND) continue;
    assert_true(ops[i].mcast_send.hold_path);
    found++;
  }
  return found;
}

/** McastSend ops of a chip's engines. */
static uint64_t sends_of_chip(const weft_program *program, uint32_t chip) {
  uint64_t found = 0;
  for (uint64_t p = 0; p < program->schedule->program_count; p++) {
    const weft_engine_program *engine = &program->schedule->programs[p];
    if (engine->site.chip == chip) found += sends_of(engine->ops, engine->op_count);
  }
  return found;
}

/** The groups of an operand share a ready counter and a valid flag a chip, held at the chip's sites. */
static void test_pairs(void **state) {
  (void)state;
  weft_graph *graph = network(128, 96, 64, 0, WEFT_FP32);
  weft_program *program = machine_program(graph, 2, "batch");
  plan_with_multicast(program);
  assert_int_equal(program->semaphore_count, 8);
  for (uint32_t i = 0; i < 8; i++) {
    const weft_semaphore *semaphore = &program->semaphores[i];
    assert_int_equal(semaphore->role, i % 2 ? WEFT_SEM_VALID_FLAG : WEFT_SEM_READY_COUNTER);
    assert_int_equal(semaphore->operand, i < 4 ? WEFT_OPERAND_A : WEFT_OPERAND_B);
    assert_int_equal(semaphore->site_count, 4);
    for (uint64_t s = 0; s < 4; s++) assert_int_equal(semaphore->sites[s].chip, i / 2 % 2);
  }
  assert_int_equal(sends_of_chip(program, 0), 4);
  assert_int_equal(sends_of_chip(program, 1), 4);
  weft_program_free(program);
  weft_graph_free(graph);
}

/** What is wrong with a program on which one thing was changed: the first violation, as JSON. */
static void assert_invalid(const weft_program *program, const char *json) {
  weft_diag *diag = weft_diag_new();
  weft_text text = {0};
  assert_int_equal(weft_program_validate(program, 1, &text, diag), WEFT_INVALID);
  assert_holds(text.data, json);
  weft_text_free(&text);
  weft_diag_free(diag);
}

/** A group is within one chip: one whose sender is said to be elsewhere, or that has a member elsewhere, is refused. */
static void test_one_chip_a_group(void **state) {
  (void)state;
  weft_graph *graph = network(128, 96, 64, 0, WEFT_FP32);
  weft_program *program = machine_program(graph, 2, "batch");
  plan_with_multicast(program);
  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_program_portable(program, diag), WEFT_INVALID);
  uint64_t named = 0;
  for (uint64_t i = 0; i < weft_diag_count(diag); i++)
    named += strstr(weft_diag_message(diag, i)->text, "sender.chip: a multicast on a chip other than 0") != NULL;
  assert_int_equal(named, 4);
  weft_diag_free(diag);

  weft_group *groups = (weft_group *)program->placement->groups;
  groups[2].sender.chip = 0;
  assert_invalid(program, "{\"GroupMemberMismatch\":{\"group\":2,\"site\":{\"x\":0,\"y\":0},");
  groups[2].sender.chip = 3;
  assert_invalid(program, "{\"GroupMemberMismatch\":{\"group\":2,\"site\":{\"x\":0,\"y\":0},");
  groups[2].sender.chip = 1;
  weft_stage *receiver = NULL;
  for (uint64_t s = 0; s < program->stage_count; s++)
    if (program->stages[s].kind == WEFT_STAGE_RECV && program->stages[s].recv.group == 2)
      receiver = (weft_stage *)&program->stages[s];
  assert_non_null(receiver);
  receiver->recv.group = 0;
  assert_invalid(program, "{\"GroupMemberMismatch\":{\"group\":2,\"site\":{\"x\":1,\"y\":0,\"chip\":1},");
  receiver->recv.group = 2;
  assert_int_equal(weft_program_validate(program, 0, NULL, NULL), WEFT_OK);
  weft_program_free(program);
  weft_graph_free(graph);
}

/** The n-th group of a chip, from group `at` of the program on. */
static uint64_t next_of_chip(const weft_placement *placement, uint64_t at, uint32_t chip) {
  while (at < placement->group_count && placement->groups[at].sender.chip != chip) at++;
  return at;
}

static bool same_group(const weft_group *a, const weft_group *b) {
  return memcmp(&a->rect, &b->rect, sizeof a->rect) == 0 && weft_site_equal(a->sender, b->sender) &&
         a->direction == b->direction && a->operand == b->operand && a->noc == b->noc;
}

/** Whether the sections of a chip's program are cut by the plans that they have in the whole machine's. The tile pass
 * ranks plans by what a section does on all chips, so where chips have unequal shares they may differ. */
static bool same_plans(const weft_program *part, const weft_program *whole) {
  for (uint64_t k = 0, j = 0; k < part->section_count; k++, j++) {
    while (j < whole->section_count && strcmp(part->sections[k].name, whole->sections[j].name) != 0) j++;
    assert_true(j < whole->section_count);
    const weft_block_plan *a = &part->sections[k].plan, *b = &whole->sections[j].plan;
    if (a->per_site_m != b->per_site_m || a->per_site_n != b->per_site_n || a->block.ibw != b->block.ibw) return false;
  }
  return true;
}

static void check_chip(const weft_program *part, const weft_program *whole, uint32_t chip) {
  const weft_placement *own = part->placement, *all = whole->placement;
  uint64_t at = next_of_chip(all, 0, chip);
  for (uint64_t g = 0; g < own->group_count; g++, at = next_of_chip(all, at + 1, chip)) {
    assert_true(at < all->group_count);
    assert_true(same_group(&own->groups[g], &all->groups[at]));
  }
  assert_int_equal(at, all->group_count);
  assert_int_equal(sends_of_chip(part, chip), sends_of_chip(whole, chip));
}

/** A chip's program has the groups that the whole machine's has on the chip, in the same order; both send as often. */
static void check_chips(const weft_graph *graph, uint32_t chips, const char *split, bool equal) {
  weft_program *whole = machine_program(graph, chips, split);
  weft_program *parts[4] = {0};
  assert_int_equal(weft_split(whole, chips, parts, graph_diag), WEFT_OK);
  plan_on_mesh(whole, 8, 8);
  assert_bits(graph, whole, 2);
  for (uint32_t c = 0; c < chips; c++) {
    plan_on_mesh(parts[c], 8, 8);
    assert_true(parts[c]->placement->group_count > 0);
    bool alike = same_plans(parts[c], whole);
    if (alike) check_chip(parts[c], whole, c);
    if (equal && !alike) fail_msg("%s over %u chips: chip %u is cut otherwise", split, chips, c);
    weft_program_free(parts[c]);
  }
  weft_program_free(whole);
}

static void test_chips(void **state) {
  (void)state;
  static const char *const splits[] = {"batch", "columns", "rows", "column-row"};
  static const weft_format formats[] = {WEFT_FP32, WEFT_BF16, WEFT_INT8};
  for (uint32_t chips = 1; chips <= 4; chips++)
    for (size_t s = 0; s < sizeof splits / sizeof *splits; s++) {
      const weft_format format = formats[(chips + s) % 3];
      weft_graph *ragged = network(200, 260, 256, 250, format), *even = network(256, 256, 256, 256, format);
      check_chips(ragged, chips, splits[s], false);
      check_chips(even, chips, splits[s], chips != 3);
      weft_graph_free(ragged);
      weft_graph_free(even);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_groups),
      cmocka_unit_test(test_pairs),
      cmocka_unit_test(test_one_chip_a_group),
      cmocka_unit_test(test_chips),
  };
  return cmocka_run_group_tests(tests, make_graph_diag, free_graph_diag);
}
