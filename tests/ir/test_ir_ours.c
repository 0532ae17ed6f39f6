/* What weft adds to the dump: each addition is written as the manual says, read back, left out at its default, and
 * named by weft_program_portable. Also what C cannot hold as it is: U+0000 and the greatest optional ids. */
#include "case_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct addition {
  const char *name;
  void (*add)(weft_program *program);
  const char *written; /* a part of the dump, its white space taken out */
  const char *refused; /* what the portability check says */
} addition;

static void add_partial(weft_program *p) {
  p->tensors[0].has_partial = true;
  p->tensors[0].partial = (weft_partial){.pool = WEFT_POOL_SUM, .first = 1, .count = 2, .of = 4};
}
static void add_shard(weft_program *p) {
  p->tensors[0].has_shard = true;
  p->tensors[0].shard =
      (weft_shard){.of = "W \"all\"", .rows = 64, .cols = 1000, .row0 = 0, .col0 = 500, .writer = true};
}
static void add_replica(weft_program *p) {
  add_shard(p);
  p->tensors[0].shard.writer = false;
}
static void add_shape(weft_program *p) {
  static const uint64_t shape[] = {2, 32, 96};
  p->tensors[0].shape = shape;
  p->tensors[0].shape_count = 3;
}
static weft_compute_op *op_of(weft_program *p) {
  weft_compute_op *copy = weft_compute_op_copy(p->arena, p->stages[2].compute);
  p->stages[2].compute = copy;
  return copy;
}
static void add_segments(weft_program *p) { op_of(p)->matmul.segments = 8; }
static void add_trip(weft_program *p) { op_of(p)->matmul.trip = 3; }
static void add_arithmetic(weft_program *p) { p->arithmetic = 1; }
static void add_chips(weft_program *p) { p->chips = 4; }
static void add_chip(weft_program *p) { p->chip = 0; }
static void add_peers(weft_program *p) {
  static const uint32_t sends[] = {2, 2};
  static const uint16_t peers[] = {1, 3};
  weft_link_point *link = WEFT_NEW(p->arena, weft_link_point);
  *link = (weft_link_point){.after = UINT64_MAX, .sends = sends, .send_count = 2, .send_peers = peers};
  link->receive_peers = peers;
  p->links = link;
  p->link_count = 1;
}

/* Replaces the matmul by a Generic over its operands with this body and one folded axis. */
static void add_generic(weft_program *p, const weft_body_node *nodes, uint64_t count, weft_pool pool,
                        uint32_t segments) {
  weft_compute_op *op = WEFT_NEW(p->arena, weft_compute_op);
  weft_iter *iters = WEFT_NEW_ARRAY(p->arena, weft_iter, 1);
  *iters = (weft_iter){.var = WEFT_VAR_GEN_COL, .extent = 32, .reduce = true, .pool = pool, .segments = segments};
  weft_body_node *copy = WEFT_NEW_ARRAY(p->arena, weft_body_node, count);
  memcpy(copy, nodes, count * sizeof *copy);
  *op = (weft_compute_op){.kind = WEFT_COMPUTE_GENERIC};
  op->generic.iters = iters;
  op->generic.iter_count = 1;
  op->generic.ins = WEFT_NEW_ARRAY(p->arena, weft_elem_access, 2);
  op->generic.in_count = 2;
  op->generic.body = (weft_body){.nodes = copy, .node_count = count};
  p->stages[2].compute = op;
}

static const weft_body_node operands[] = {{.kind = WEFT_BODY_OPERAND, .value = 0},
                                          {.kind = WEFT_BODY_OPERAND, .value = 1}};
static void add_min(weft_program *p) { add_generic(p, operands, 1, WEFT_POOL_MIN, 0); }
static void add_and(weft_program *p) { add_generic(p, operands, 1, WEFT_POOL_AND, 0); }
static void add_or(weft_program *p) { add_generic(p, operands, 1, WEFT_POOL_OR, 0); }
static void add_row_segments(weft_program *p) { add_generic(p, operands, 1, WEFT_POOL_SUM, 4); }
static void add_div(weft_program *p) {
  const weft_body_node nodes[] = {operands[0], operands[1], {.kind = WEFT_BODY_DIV, .child = {0, 1}}};
  add_generic(p, nodes, 3, WEFT_POOL_SUM, 0);
}
static void add_value_select(weft_program *p) {
  const weft_body_node nodes[] = {
      operands[0], operands[1], operands[0], {.kind = WEFT_BODY_VALUE_SELECT, .child = {0, 1, 2}}};
  add_generic(p, nodes, 4, WEFT_POOL_SUM, 0);
}
static void add_sfpu(weft_program *p, weft_sfpu_kind kind) {
  const weft_body_node nodes[] = {operands[0], {.kind = WEFT_BODY_UNARY, .sfpu = kind, .child = {0}}};
  add_generic(p, nodes, 2, WEFT_POOL_SUM, 0);
}
static void add_tanh(weft_program *p) { add_sfpu(p, WEFT_SFPU_TANH); }
static void add_erf(weft_program *p) { add_sfpu(p, WEFT_SFPU_ERF); }

static void add_op(weft_program *p, weft_op op) {
  weft_op *ops = WEFT_NEW(p->arena, weft_op);
  *ops = op;
  weft_engine_program *engine = WEFT_NEW(p->arena, weft_engine_program);
  engine->ops = ops;
  engine->op_count = 1;
  weft_schedule *schedule = WEFT_NEW(p->arena, weft_schedule);
  *schedule = (weft_schedule){.programs = engine, .program_count = 1};
  p->schedule = schedule;
}
static void add_wrapping_store(weft_program *p) {
  add_op(p, (weft_op){.kind = WEFT_OP_WRITE_TILES, .tiles = {.tensor = 2, .wrap = true}});
}
static void add_wrapping_pack(weft_program *p) {
  add_op(p, (weft_op){.kind = WEFT_OP_PACK_ACC, .pack = {.to = 2, .wrap = true}});
}

static const addition additions[] = {
    {"partial", add_partial, "\"partial\":{\"pool\":\"Sum\",\"first\":1,\"count\":2,\"of\":4}",
     "tensors[0]: partial is weft's own"},
    {"shard", add_shard, "\"shard\":{\"of\":\"W\\\"all\\\"\",\"rows\":64,\"cols\":1000,\"row0\":0,\"col0\":500}}",
     "tensors[0]: shard is weft's own"},
    {"replica", add_replica, "\"col0\":500,\"writer\":false}", "tensors[0]: shard is weft's own"},
    {"shape", add_shape, "\"range\":[-3,3],\"shape\":[2,32,96]}", "tensors[0]: shape is weft's own"},
    {"segments", add_segments, "\"granularity\":\"PerSubBlock\",\"segments\":8}",
     "stages[2].kind.Compute.MatmulTiles: segments is weft's own"},
    {"trip", add_trip, "\"granularity\":\"PerSubBlock\",\"trip\":3}",
     "stages[2].kind.Compute.MatmulTiles: trip is weft's own"},
    {"row segments", add_row_segments, "\"Reduce\":{\"pool\":\"Sum\",\"segments\":4}",
     "stages[2].kind.Compute.Generic.iters[0].kind.Reduce: segments is weft's own"},
    {"arithmetic", add_arithmetic, "\"schedule\":null,\"arithmetic\":1}", "arithmetic is weft's own"},
    {"chips", add_chips, "\"schedule\":null,\"chips\":4}", "chips is weft's own"},
    {"chip", add_chip, "\"schedule\":null,\"chip\":0}", "chip is weft's own"},
    {"peers", add_peers, "{\"after\":null,\"sends\":[2,2],\"receives\":[],\"send_peers\":[1,3],\"receive_peers\":[]}",
     "links[0]: send_peers is weft's own"},
    {"Min", add_min, "\"pool\":\"Min\"", "stages[2].kind.Compute.Generic.iters[0].kind.Reduce.pool: Min is weft's own"},
    {"And", add_and, "\"pool\":\"And\"", "stages[2].kind.Compute.Generic.iters[0].kind.Reduce.pool: And is weft's own"},
    {"Or", add_or, "\"pool\":\"Or\"", "stages[2].kind.Compute.Generic.iters[0].kind.Reduce.pool: Or is weft's own"},
    {"Div", add_div, "\"body\":{\"Div\":[{\"Operand\":0},{\"Operand\":1}]}",
     "stages[2].kind.Compute.Generic.body: Div is weft's own"},
    {"ValueSelect", add_value_select,
     "\"body\":{\"ValueSelect\":{\"cond\":{\"Operand\":0},\"then\":{\"Operand\":1},\"otherwise\":{\"Operand\":0}}}",
     "stages[2].kind.Compute.Generic.body: ValueSelect is weft's own"},
    {"Tanh", add_tanh, "{\"Unary\":{\"kind\":\"Tanh\",\"arg\":{\"Operand\":0}}}",
     "stages[2].kind.Compute.Generic.body.Unary.kind: Tanh is weft's own"},
    {"Erf", add_erf, "{\"Unary\":{\"kind\":\"Erf\",\"arg\":{\"Operand\":0}}}",
     "stages[2].kind.Compute.Generic.body.Unary.kind: Erf is weft's own"},
    {"wrapping store", add_wrapping_store, "\"stride_h\":0,\"overflow\":\"Wrap\"}",
     "schedule.programs[0].ops[0].op.WriteTiles: overflow is weft's own"},
    {"wrapping pack", add_wrapping_pack, "\"accumulate\":false,\"overflow\":\"Wrap\"}",
     "schedule.programs[0].ops[0].op.PackAcc: overflow is weft's own"},
};

static weft_text without_space(const weft_text *text) {
  weft_text bare = {0};
  for (size_t i = 0; i < text->length; i++)
    if (text->data[i] != ' ' && text->data[i] != '\n') weft_text_append(&bare, text->data + i, 1);
  return bare;
}

static void check_addition(const addition *a) {
  weft_program *program = case_program("template-gemm");
  a->add(program);
  weft_text dump = case_dump(program);
  weft_text bare = without_space(&dump);
  if (!strstr(bare.data, a->written)) fail_msg("%s: %s is not in the dump", a->name, a->written);

  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_program_portable(program, diag), WEFT_INVALID);
  assert_string_equal(weft_diag_message(diag, 0)->text, a->refused);
  weft_diag_free(diag);

  weft_program *clone = weft_program_clone(program);
  weft_program_free(program);
  weft_program *reread = case_parse(dump.data, dump.length);
  weft_text again = case_dump(reread);
  weft_text cloned = case_dump(clone);
  assert_string_equal(again.data, dump.data);
  assert_string_equal(cloned.data, dump.data);
  weft_program_free(reread);
  weft_program_free(clone);
  weft_text_free(&cloned);
  weft_text_free(&again);
  weft_text_free(&bare);
  weft_text_free(&dump);
}

static void additions_round_trip(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof additions / sizeof *additions; i++) check_addition(&additions[i]);
}

/* The manual lists every spelling. */
static void additions_are_documented(void **state) {
  (void)state;
  size_t length;
  char *manual = case_read(WEFT_SOURCE_DIR "/docs/neutral-dump.md", &length);
  static const char *const spellings[] = {"\"partial\"",    "\"shard\"",    "\"writer\"",     "\"shape\"",
                                          "\"segments\"",   "\"overflow\"", "\"send_peers\"", "\"receive_peers\"",
                                          "\"arithmetic\"", "\"chips\"",    "\"chip\"",       "\"Min\"",
                                          "\"And\"",        "\"Or\"",       "\"Div\"",        "\"ValueSelect\"",
                                          "\"Tanh\"",       "\"Erf\""};
  for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
    if (!strstr(manual, spellings[i])) fail_msg("docs/neutral-dump.md does not mention %s", spellings[i]);
  free(manual);
}

static void portable_programs(void **state) {
  (void)state;
  size_t count;
  char **names = case_names(CASES "/valid", ".json", &count);
  for (size_t i = 0; i < count; i++) {
    weft_program *program = case_program(names[i]);
    assert_int_equal(weft_program_portable(program, NULL), WEFT_OK);
    weft_program_free(program);
  }
  case_free_names(names, count);
}

static void refuse(const char *from, const char *to, const char *message) {
  weft_program *program = case_program("template-gemm");
  add_peers(program);
  weft_text dump = case_dump(program);
  weft_program_free(program);
  weft_text text = {0};
  const char *at = strstr(dump.data, from);
  assert_non_null(at);
  weft_text_append(&text, dump.data, (size_t)(at - dump.data));
  weft_text_puts(&text, to);
  weft_text_puts(&text, at + strlen(from));
  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_program_read("p", text.data, text.length, &program, diag), WEFT_INVALID);
  assert_string_equal(weft_diag_message(diag, 0)->text, message);
  weft_diag_free(diag);
  weft_text_free(&text);
  weft_text_free(&dump);
}

static void peers_match_crossings(void **state) {
  (void)state;
  refuse("\"send_peers\": [\n        1,", "\"send_peers\": [",
         "links[0].send_peers: expected as many elements as the list it goes with, 2, found 1");
  refuse("\"receive_peers\": []", "\"receive_peers\": [1]",
         "links[0].receive_peers: expected as many elements as the list it goes with, 0, found 1");
}

/* The greatest ids stay apart from null, through reading, writing and copying, and dangle where they must exist. */
static void greatest_ids(void **state) {
  (void)state;
  weft_program *program = case_program("template-extremes");
  assert_int_equal(program->stages[0].origin, WEFT_NONE);
  assert_int_equal(program->stages[0].max_ids, WEFT_MAX_ORIGIN);
  assert_int_equal(program->stages[1].max_ids, 0);
  assert_int_equal(program->links[0].max_ids, WEFT_MAX_AFTER);
  program->stages[1].max_ids = WEFT_MAX_ITEM;
  weft_text faults = case_faults(program, 1);
  assert_string_equal(faults.data, "{\"DanglingItem\":{\"stage\":1,\"item\":4294967295}}\n");
  weft_text_free(&faults);
  weft_program *clone = weft_program_clone(program);
  weft_text dump = case_dump(clone);
  assert_non_null(strstr(dump.data, "\"item\": 4294967295,"));
  assert_non_null(strstr(dump.data, "\"after\": 18446744073709551615,"));
  weft_text_free(&dump);
  weft_program_free(clone);
  weft_program_free(program);
}

static void nul_in_a_name(void **state) {
  (void)state;
  weft_program *program = case_program("template-names");
  assert_memory_equal(program->tensors[1].name, "nul\xc0\x80 soh\x01", 10);
  weft_program_free(program);
}

/* Everything a clone points to is its own. */
static void clones_stand_alone(void **state) {
  (void)state;
  size_t count;
  char **names = case_names(CASES "/valid", ".json", &count);
  for (size_t i = 0; i < count; i++) {
    weft_program *program = case_program(names[i]);
    weft_text before = case_dump(program);
    weft_program *clone = weft_program_clone(program);
    weft_program_free(program);
    weft_text after = case_dump(clone);
    assert_string_equal(after.data, before.data);
    weft_text_free(&before);
    weft_text_free(&after);
    weft_program_free(clone);
  }
  case_free_names(names, count);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(additions_round_trip), cmocka_unit_test(additions_are_documented),
      cmocka_unit_test(portable_programs),    cmocka_unit_test(peers_match_crossings),
      cmocka_unit_test(greatest_ids),         cmocka_unit_test(nul_in_a_name),
      cmocka_unit_test(clones_stand_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
