/* The split: what each chip's program holds, and the check of all of them together. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CHIPS 16

typedef struct fixture {
  weft_diag *diag;
  weft_program *whole;
  weft_program *programs[MOST_CHIPS];
  uint32_t chips;
} fixture;

static weft_program *lowered(const weft_graph *graph, const char *mesh, const char *split, weft_diag *diag) {
  weft_graph *machine = partitioned(graph, mesh, split, NULL);
  weft_program *whole = NULL;
  if (weft_graph_lower(machine, &whole, diag) != WEFT_OK) fail_msg("%s", messages_of(diag));
  weft_graph_free(machine);
  return whole;
}

/* The digits network split over `mesh`; the split validates and fits together. */
static fixture split_digits(const char *mesh, const char *split) {
  fixture f = {.diag = weft_diag_new()};
  weft_graph *graph = build_digits(32, f.diag);
  f.whole = lowered(graph, mesh, split, f.diag);
  weft_graph_free(graph);
  f.chips = weft_program_chips(f.whole);
  if (weft_split(f.whole, f.chips, f.programs, f.diag) != WEFT_OK) fail_msg("%s", messages_of(f.diag));
  for (uint32_t c = 0; c < f.chips; c++)
    if (weft_program_validate(f.programs[c], 0, NULL, f.diag) != WEFT_OK)
      fail_msg("chip %u: %s", c, messages_of(f.diag));
  if (weft_split_check((const weft_program *const *)f.programs, f.chips, f.diag) != WEFT_OK)
    fail_msg("%s", messages_of(f.diag));
  return f;
}

static void free_fixture(fixture *f) {
  for (uint32_t c = 0; c < f->chips; c++) weft_program_free(f->programs[c]);
  weft_program_free(f->whole);
  weft_diag_free(f->diag);
}

static const weft_tensor *tensor_called(const weft_program *program, const char *name) {
  for (uint64_t t = 0; t < program->tensor_count; t++)
    if (strcmp(program->tensors[t].name, name) == 0) return &program->tensors[t];
  return NULL;
}

static uint64_t count_stages(const weft_program *program, weft_stage_kind kind) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < program->stage_count; i++) count += program->stages[i].kind == kind;
  return count;
}

/* ---- what a chip gets
 * ------------------------------------------------------------------------------------------------- */

static void test_stages_are_dealt_out_once(void **state) {
  (void)state;
  static const char *const splits[] = {"columns", "rows", "batch", "column-row", "pipeline", NULL};
  for (size_t s = 0; s < 6; s++) {
    fixture f = split_digits("x=5", splits[s]);
    uint64_t stages = 0, buffers = 0, edges = 0, items = 0;
    for (uint32_t c = 0; c < f.chips; c++) {
      const weft_program *program = f.programs[c];
      stages += program->stage_count;
      buffers += program->buffer_count;
      edges += program->edge_count;
      items += program->work.item_count;
      assert_int_equal(program->chip, c);
      assert_int_equal(program->chips, f.chips);
      for (uint64_t i = 0; i < program->stage_count; i++) assert_int_equal(program->stages[i].id, i);
    }
    assert_int_equal(stages, f.whole->stage_count);
    assert_int_equal(buffers, f.whole->buffer_count);
    assert_int_equal(edges, f.whole->edge_count);
    assert_int_equal(items, f.whole->work.item_count);
    free_fixture(&f);
  }
}

static void test_a_pipeline_hands_on_through_links(void **state) {
  (void)state;
  fixture f = split_digits("x=3", "pipeline");
  const weft_program *first = f.programs[0], *second = f.programs[1], *third = f.programs[2];
  assert_int_equal(first->section_count, 1);
  assert_int_equal(first->link_count, 1);
  assert_int_equal(first->links[0].after, 0);
  assert_int_equal(first->links[0].send_peers[0], 1);
  const weft_tensor *sent = &first->tensors[first->links[0].sends[0]];
  assert_string_equal(sent->name, "relu1@0");
  assert_int_equal(sent->role, WEFT_ROLE_OUTPUT);
  assert_true(sent->has_shard);
  assert_false(sent->shard.writer);
  assert_string_equal(sent->shard.of, sent->name);
  assert_int_equal(second->link_count, 2);
  assert_true(second->links[0].after == UINT64_MAX);
  const weft_tensor *received = &second->tensors[second->links[0].receives[0]];
  assert_string_equal(received->name, "relu1@0");
  assert_int_equal(received->role, WEFT_ROLE_INPUT);
  assert_int_equal(received->chip, 0);
  assert_false(received->has_shard);
  assert_int_equal(second->links[1].after, 0);
  assert_int_equal(third->link_count, 1);
  assert_int_equal(third->links[0].receive_peers[0], 1);
  assert_int_equal(tensor_called(third, "y@2")->role, WEFT_ROLE_OUTPUT);
  free_fixture(&f);
}

static void test_partials_stay_marked(void **state) {
  (void)state;
  fixture f = split_digits("x=3", "rows");
  for (uint32_t c = 0; c < f.chips; c++) {
    const weft_program *program = f.programs[c];
    assert_int_equal(count_stages(program, WEFT_STAGE_ALL_REDUCE), 3);
    uint32_t received = 0;
    for (uint64_t l = 0; l < program->link_count; l++)
      for (uint64_t i = 0; i < program->links[l].receive_count; i++, received++)
        assert_true(program->tensors[program->links[l].receives[i]].has_partial);
    assert_true(received > 0);
    assert_true(tensor_called(program, "h2.partial@1")->has_partial);
    assert_int_equal(tensor_called(program, "h2.partial@1")->partial.of, 4);
  }
  free_fixture(&f);
}

/* A chip that holds a node of a fold and does not read its result only sends it. */
static void test_a_partial_may_be_only_sent(void **state) {
  (void)state;
  weft_diag *diag = weft_diag_new();
  weft_graph *graph = weft_graph_new("fold then pipe", diag);
  uint32_t x = weft_graph_input(graph, "x", WEFT_FP32, 2, (uint64_t[]){4, 256});
  weft_graph_section(graph, "one");
  uint32_t h = weft_graph_matmul(graph, "h", x, weft_graph_param(graph, "w1", WEFT_FP32, 2, (uint64_t[]){256, 33}));
  weft_graph_section(graph, "two");
  weft_graph_output(
      graph, weft_graph_matmul(graph, "y", h, weft_graph_param(graph, "w2", WEFT_FP32, 2, (uint64_t[]){33, 5})), "y");
  weft_program *whole = lowered(graph, "x=4", "rows", diag), *programs[4];
  assert_int_equal(weft_split(whole, 4, programs, diag), WEFT_OK);
  /* K = 33 has one segment: the second layer is the last chip's alone, and so is the result of the first. */
  for (uint32_t c = 0; c < 4; c++) {
    assert_int_equal(count_stages(programs[c], WEFT_STAGE_ALL_REDUCE), c == 3);
    const weft_tensor *own = &programs[c]->tensors[0];
    for (uint64_t t = 0; t < programs[c]->tensor_count; t++)
      if (programs[c]->tensors[t].has_partial && programs[c]->tensors[t].chip == c) own = &programs[c]->tensors[t];
    assert_true(own->has_partial);
    assert_int_equal(own->role, c == 3 ? WEFT_ROLE_ACTIVATION : WEFT_ROLE_OUTPUT);
    assert_int_equal(weft_program_validate(programs[c], 0, NULL, diag), WEFT_OK);
    weft_program_free(programs[c]);
  }
  weft_program_free(whole);
  weft_graph_free(graph);
  weft_diag_free(diag);
}

static void test_idle_chips_get_empty_programs(void **state) {
  (void)state;
  fixture f = split_digits("x=2", "pipeline");
  weft_program *four[5];
  assert_int_equal(weft_split(f.whole, 5, four, f.diag), WEFT_OK);
  for (uint32_t c = 2; c < 5; c++) {
    assert_int_equal(four[c]->stage_count + four[c]->tensor_count + four[c]->section_count + four[c]->link_count, 0);
    assert_int_equal(weft_program_validate(four[c], 0, NULL, f.diag), WEFT_OK);
  }
  assert_int_equal(weft_split_check((const weft_program *const *)four, 5, f.diag), WEFT_OK);
  for (uint32_t c = 0; c < 5; c++) weft_program_free(four[c]);
  free_fixture(&f);
}

static void test_one_chip_is_copied(void **state) {
  (void)state;
  weft_diag *diag = weft_diag_new();
  weft_graph *graph = build_digits(3, diag);
  weft_program *whole = NULL, *copy = NULL;
  assert_int_equal(weft_graph_lower(graph, &whole, diag), WEFT_OK);
  assert_int_equal(weft_split(whole, 1, &copy, diag), WEFT_OK);
  weft_text a = {0}, b = {0};
  weft_program_write(whole, &a);
  weft_program_write(copy, &b);
  assert_string_equal(a.data, b.data);
  weft_text_free(&a);
  weft_text_free(&b);
  weft_program_free(copy);
  weft_program_free(whole);
  weft_graph_free(graph);
  weft_diag_free(diag);
}

/* Sixteen chips in columns: each sends its block to the fifteen others, nearest first, and receives theirs in the same
 * order. */
static void test_links_name_neighbours_in_order(void **state) {
  (void)state;
  fixture f = split_digits("x=16", "columns");
  for (uint32_t c = 0; c < 16; c++) {
    const weft_link_point *link = &f.programs[c]->links[0];
    assert_int_equal(link->send_count, 15);
    assert_int_equal(link->receive_count, 15);
    for (uint32_t i = 0; i < 15; i++) {
      assert_int_equal(link->send_peers[i], (c + i + 1) % 16);
      assert_int_equal(link->receive_peers[i], (c + i + 1) % 16);
      if (i) assert_int_equal(link->receives[i], link->receives[i - 1] + 1);
    }
  }
  free_fixture(&f);
}

/* Templates of other front ends give stages no items: a section on one chip needs none. */
static void test_items_of_a_section_on_one_chip(void **state) {
  (void)state;
  fixture f = split_digits("x=3", "pipeline");
  for (uint64_t i = 0; i < f.whole->stage_count; i++) f.whole->stages[i].item = WEFT_NONE;
  weft_program *again[3];
  assert_int_equal(weft_split(f.whole, 3, again, f.diag), WEFT_OK);
  for (uint32_t c = 0; c < 3; c++) {
    assert_int_equal(again[c]->work.item_count, 1);
    assert_int_equal(weft_program_validate(again[c], 0, NULL, f.diag), WEFT_OK);
    weft_program_free(again[c]);
  }
  free_fixture(&f);
}

/* ---- refusals of the split
 * -------------------------------------------------------------------------------------------- */

static void assert_split_refused(const weft_program *program, uint32_t chips, weft_status status, const char *first,
                                 const char *second) {
  weft_program *programs[MOST_CHIPS];
  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_split(program, chips, programs, diag), status);
  for (uint32_t c = 0; c < chips && c < MOST_CHIPS; c++) assert_null(programs[c]);
  assert_messages_have(diag, first, second, NULL);
  weft_diag_free(diag);
}

static void test_split_refusals(void **state) {
  (void)state;
  fixture f = split_digits("x=3", "column-row");
  assert_split_refused(f.whole, 2, WEFT_INVALID, "for 3 chips, not 2", "number of chips");
  assert_split_refused(f.programs[1], 3, WEFT_INVALID, "link points", "split already");
  weft_program *changed = weft_program_clone(f.whole);
  uint32_t load = 0;
  while (changed->stages[load].kind != WEFT_STAGE_LOAD ||
         changed->tensors[changed->stages[load].load.tensor].role != WEFT_ROLE_ACTIVATION)
    load++;
  /* Two chips in one stage. */
  changed->buffers[changed->stages[load].outs[0]].site.site.chip ^= 1;
  assert_split_refused(changed, 3, WEFT_INVALID, "several chips", "meet in tensors");
  weft_program_free(changed);
  /* Two chips store one tensor. */
  changed = weft_program_clone(f.whole);
  uint32_t stores[2] = {0}, found = 0;
  for (uint32_t i = 0; i < changed->stage_count && found < 2; i++)
    if (changed->stages[i].kind == WEFT_STAGE_STORE) stores[found++] = i;
  changed->stages[stores[1]].store.tensor = changed->stages[stores[0]].store.tensor;
  assert_split_refused(changed, 3, WEFT_INVALID, "is stored by chips 0 and 1", "'relu1@0'");
  weft_program_free(changed);
  /* Stages of several chips, and an item that none of them names. */
  changed = weft_program_clone(f.whole);
  for (uint64_t i = 0; i < changed->stage_count; i++) changed->stages[i].item = WEFT_NONE;
  assert_split_refused(changed, 3, WEFT_INVALID, "work item 0 is of no stage", "several chips");
  weft_program_free(changed);
  /* A load of what another chip stores in the same section. */
  changed = weft_program_clone(f.whole);
  for (uint32_t i = 0; i < changed->stage_count; i++)
    if (changed->stages[i].kind == WEFT_STAGE_LOAD &&
        strcmp(changed->tensors[changed->stages[i].load.tensor].name, "w1@1") == 0) {
      changed->stages[i].load.tensor = changed->stages[stores[0]].store.tensor;
      break;
    }
  assert_split_refused(changed, 3, WEFT_INVALID, "in the same section or later", "relu1@0");
  weft_program_free(changed);
  free_fixture(&f);
}

/* ---- the check
 * ---------------------------------------------------------------------------------------------------------- */

static void assert_check_refuses(fixture *f, const char *first, const char *second, const char *third) {
  assert_int_equal(weft_split_check((const weft_program *const *)f->programs, f->chips, f->diag), WEFT_INVALID);
  assert_messages_have(f->diag, first, second, third ? third : first, NULL);
}

static void test_check_sees_a_missing_receive(void **state) {
  (void)state;
  fixture f = split_digits("x=3", "pipeline");
  f.programs[1]->links[0].receive_count = 0;
  assert_check_refuses(&f, "chip 0 sends 'relu1@0' to chip 1", "chip 1 does not receive", NULL);
  free_fixture(&f);
}

static void test_check_sees_a_missing_send(void **state) {
  (void)state;
  fixture f = split_digits("x=3", "pipeline");
  f.programs[1]->links[1].send_count = 0;
  assert_check_refuses(&f, "chip 2 receives 'relu2@1' from chip 1", "chip 1 does not send", NULL);
  free_fixture(&f);
}

static void test_check_compares_both_sides(void **state) {
  (void)state;
  fixture f = split_digits("x=3", "pipeline");
  weft_tensor *received = &f.programs[1]->tensors[f.programs[1]->links[0].receives[0]];
  received->elems.cols = 255;
  assert_check_refuses(&f, "extents differ", "32 x 256", "32 x 255");
  received->elems.cols = 256;
  received->dtype = WEFT_BF16;
  weft_diag_clear(f.diag);
  assert_check_refuses(&f, "formats differ", "Fp32", "Bf16");
  received->dtype = WEFT_FP32;
  received->role = WEFT_ROLE_ACTIVATION;
  weft_diag_clear(f.diag);
  assert_check_refuses(&f, "chip 1 receives 'relu1@0'", "no Input", NULL);
  free_fixture(&f);
}

static void test_check_compares_segments(void **state) {
  (void)state;
  fixture f = split_digits("x=2", "rows");
  weft_program *program = f.programs[0];
  program->tensors[program->links[0].receives[0]].partial.first = 0;
  assert_check_refuses(&f, "different segments of a fold", "h1.partial@1", NULL);
  free_fixture(&f);
}

static void test_check_compares_the_order(void **state) {
  (void)state;
  fixture f = split_digits("x=2", "rows");
  /* The first fold's partial where the second's is sent. */
  weft_program *program = f.programs[0];
  assert_true(program->link_count >= 2);
  weft_link_point swapped = program->links[0];
  program->links[0].receives = program->links[1].receives;
  program->links[1].receives = swapped.receives;
  assert_check_refuses(&f, "their names differ", "the order is not the same", NULL);
  free_fixture(&f);
}

static void test_check_wants_stores_before_sends(void **state) {
  (void)state;
  fixture f = split_digits("x=3", "pipeline");
  f.programs[1]->links[1].after = UINT64_MAX;
  assert_check_refuses(&f, "chip 1 sends 'relu2@1'", "before it is stored", NULL);
  free_fixture(&f);
}

static void test_check_wants_real_peers(void **state) {
  (void)state;
  fixture f = split_digits("x=3", "pipeline");
  uint16_t self = 0, far = 3;
  const uint16_t *peers = f.programs[0]->links[0].send_peers;
  f.programs[0]->links[0].send_peers = &self;
  assert_check_refuses(&f, "crosses to chip 0", "another chip", NULL);
  f.programs[0]->links[0].send_peers = &far;
  weft_diag_clear(f.diag);
  assert_check_refuses(&f, "crosses to chip 3", "another chip", NULL);
  f.programs[0]->links[0].send_peers = peers;
  free_fixture(&f);
}

/* Two chips that each wait for the other before they send. */
static void test_check_shows_the_cycle(void **state) {
  (void)state;
  fixture f = split_digits("x=2", "columns");
  for (uint32_t c = 0; c < 2; c++) {
    weft_program *program = f.programs[c];
    weft_link_point whole = program->links[0],
                    *apart = weft_arena_array(program->arena, program->link_count + 1, sizeof *apart);
    assert_non_null(apart);
    apart[0] = apart[1] = whole;
    apart[0].send_count = apart[1].receive_count = 0;
    memcpy(apart + 2, program->links + 1, (program->link_count - 1) * sizeof *apart);
    program->links = apart;
    program->link_count++;
  }
  assert_check_refuses(&f, "deadlock", "chip 0's receives at link point 0 after fc1",
                       "chip 1's receives at link point 0 after fc1");
  assert_messages_have(f.diag, "waits for the first", NULL);
  free_fixture(&f);
}

/* Dumps of other compilers say no peers: tensors with one name are one tensor. */
static void test_check_without_peers(void **state) {
  (void)state;
  fixture f = split_digits("x=3", "column-row");
  for (uint32_t c = 0; c < f.chips; c++)
    for (uint64_t l = 0; l < f.programs[c]->link_count; l++)
      f.programs[c]->links[l].send_peers = f.programs[c]->links[l].receive_peers = NULL;
  /* A tensor sent to two chips is listed twice with peers; without them once. */
  for (uint32_t c = 0; c < f.chips; c++)
    for (uint64_t l = 0; l < f.programs[c]->link_count; l++) {
      weft_link_point *link = &f.programs[c]->links[l];
      uint32_t *once = weft_arena_array(f.programs[c]->arena, link->send_count, sizeof *once);
      uint64_t count = 0;
      for (uint64_t i = 0; i < link->send_count; i++) {
        bool again = false;
        for (uint64_t k = 0; k < count; k++) again |= once[k] == link->sends[i];
        if (!again) once[count++] = link->sends[i];
      }
      link->sends = once;
      link->send_count = count;
    }
  if (weft_split_check((const weft_program *const *)f.programs, f.chips, f.diag) != WEFT_OK)
    fail_msg("%s", messages_of(f.diag));
  f.programs[0]->links[0].send_count = 0;
  assert_int_equal(weft_split_check((const weft_program *const *)f.programs, f.chips, f.diag), WEFT_INVALID);
  assert_messages_have(f.diag, "no single other chip sends", NULL);
  free_fixture(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_stages_are_dealt_out_once),
      cmocka_unit_test(test_a_pipeline_hands_on_through_links),
      cmocka_unit_test(test_partials_stay_marked),
      cmocka_unit_test(test_a_partial_may_be_only_sent),
      cmocka_unit_test(test_idle_chips_get_empty_programs),
      cmocka_unit_test(test_one_chip_is_copied),
      cmocka_unit_test(test_links_name_neighbours_in_order),
      cmocka_unit_test(test_items_of_a_section_on_one_chip),
      cmocka_unit_test(test_split_refusals),
      cmocka_unit_test(test_check_sees_a_missing_receive),
      cmocka_unit_test(test_check_sees_a_missing_send),
      cmocka_unit_test(test_check_compares_both_sides),
      cmocka_unit_test(test_check_compares_segments),
      cmocka_unit_test(test_check_compares_the_order),
      cmocka_unit_test(test_check_wants_stores_before_sends),
      cmocka_unit_test(test_check_wants_real_peers),
      cmocka_unit_test(test_check_shows_the_cycle),
      cmocka_unit_test(test_check_without_peers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
