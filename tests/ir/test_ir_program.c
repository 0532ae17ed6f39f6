/* The small questions about a program: phase, bytes, sections, trips, and fold levels against the definition. */
#include "case_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void phases(void **state) {
  (void)state;
  static const struct {
    const char *name;
    weft_phase phase;
  } cases[] = {{"template-gemm", WEFT_PHASE_TEMPLATE},
               {"tiled-gemm", WEFT_PHASE_TILED},
               {"placed-gemm-1site", WEFT_PHASE_PLACED},
               {"sized-gemm-alias", WEFT_PHASE_SIZED},
               {"scheduled-gather", WEFT_PHASE_SCHEDULED}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    weft_program *program = case_program(cases[i].name);
    assert_int_equal(weft_program_phase(program), cases[i].phase);
    program->verified = cases[i].phase == WEFT_PHASE_SCHEDULED;
    if (program->verified) assert_int_equal(weft_program_phase(program), WEFT_PHASE_VERIFIED);
    weft_program_free(program);
  }
}

static void empty_program(void **state) {
  (void)state;
  weft_program *program = weft_program_new("p \"q\"");
  assert_string_equal(program->name, "p \"q\"");
  assert_int_equal(weft_program_validate(program, 0, NULL, NULL), WEFT_OK);
  weft_text dump = case_dump(program);
  weft_program *reread = case_parse(dump.data, dump.length);
  weft_text again = case_dump(reread);
  assert_string_equal(dump.data, again.data);
  weft_text_free(&dump);
  weft_text_free(&again);
  weft_program_free(reread);
  weft_program_free(program);
  weft_program_free(NULL);
}

static void buffer_bytes(void **state) {
  (void)state;
  weft_program *program = weft_program_new("p");
  weft_buffer buffer = {.kind = WEFT_BUFFER_FIFO, .depth_pages = 2, .page_tiles = 3, .dtype = WEFT_BF16};
  assert_int_equal(weft_buffer_bytes(program, &buffer), 2 * 3 * 32 * 32 * 2);
  buffer.dtype = WEFT_INT64;
  buffer.depth_pages = UINT64_C(1) << 50;
  assert_true(weft_buffer_bytes(program, &buffer) == UINT64_MAX);
  buffer.page_tiles = 0;
  assert_int_equal(weft_buffer_bytes(program, &buffer), 0);
  weft_program_free(program);
}

static void accumulators(void **state) {
  (void)state;
  assert_int_equal(weft_acc_for_result(WEFT_INT8), WEFT_ACC_I64);
  assert_int_equal(weft_acc_for_result(WEFT_INT32), WEFT_ACC_I32);
  assert_int_equal(weft_acc_for_result(WEFT_BF16), WEFT_ACC_F32);
  assert_int_equal(weft_acc_format(WEFT_ACC_I32), WEFT_INT32);
  assert_int_equal(weft_acc_format(WEFT_ACC_I64), WEFT_INT64);
  assert_int_equal(weft_acc_format(WEFT_ACC_F32), WEFT_FP32);
}

static void sections(void **state) {
  (void)state;
  weft_program *program = case_program("scheduled-chain-shared-phase");
  for (uint32_t s = 0; s < program->stage_count; s++) {
    uint64_t k = weft_section_of_stage(program, s);
    assert_true(program->sections[k].stages.begin <= s && s < program->sections[k].stages.end);
  }
  assert_true(weft_section_of_stage(program, (uint32_t)program->stage_count) == UINT64_MAX);
  assert_int_equal(weft_section_of_buffer(program, 0), 0);
  assert_int_equal(weft_section_of_item(program, 0), 0);
  weft_arena *arena = weft_arena_new();
  const uint64_t *numbers = weft_section_phases(program, arena);
  assert_int_equal(numbers[0], 0);
  assert_int_equal(numbers[1], 0);
  assert_int_equal(numbers[2], 1);
  weft_arena_free(arena);
  weft_program_free(program);
}

static void trip_counts(void **state) {
  (void)state;
  const weft_trip by_blocks = {.bias = 1, .per = 32};
  assert_int_equal(weft_trip_count(&by_blocks, 0), 1);
  assert_int_equal(weft_trip_count(&by_blocks, 31), 1);
  assert_int_equal(weft_trip_count(&by_blocks, 32), 2);
  assert_int_equal(weft_trip_count(&by_blocks, -1), 0);
  assert_int_equal(weft_trip_count(&by_blocks, INT64_MIN), 0);
  const weft_trip widest = {.bias = INT64_MAX, .per = 1};
  assert_true(weft_trip_count(&widest, INT64_MAX) == UINT64_MAX - 1);
  const weft_trip nothing = {.per = 0};
  assert_int_equal(weft_trip_count(&nothing, 7), 0);
}

/* ---- fold levels ---- */

enum { PROLOGUE, BODY, EPILOGUE, STAGES_MOST = 24, BUFFERS_MOST = 12, PORTS_MOST = 3 };

static bool among(const uint32_t *ids, uint64_t count, uint32_t id) {
  for (uint64_t i = 0; i < count; i++)
    if (ids[i] == id) return true;
  return false;
}

static uint32_t updater_of(const weft_program *p, uint32_t b) {
  for (uint32_t s = 0; s < p->stage_count; s++)
    if (among(p->stages[s].ins, p->stages[s].in_count, b) && among(p->stages[s].outs, p->stages[s].out_count, b))
      return s;
  return WEFT_NONE;
}

/* Whether stage `s` reads, over a buffer that is no carry, a stage of this level. */
static bool reads_level(const weft_program *p, const uint8_t *level, uint32_t s, uint8_t wanted) {
  for (uint64_t i = 0; i < p->stages[s].in_count; i++) {
    uint32_t b = p->stages[s].ins[i];
    if (updater_of(p, b) != WEFT_NONE) continue;
    for (uint32_t w = 0; w < p->stage_count; w++)
      if (level[w] == wanted && among(p->stages[w].outs, p->stages[w].out_count, b)) return true;
  }
  return false;
}

static bool feeds_body(const weft_program *p, const uint8_t *level, uint32_t s) {
  for (uint64_t i = 0; i < p->stages[s].out_count; i++) {
    uint32_t b = p->stages[s].outs[i];
    if (updater_of(p, b) != WEFT_NONE) continue;
    for (uint32_t r = 0; r < p->stage_count; r++)
      if (r != s && level[r] == BODY && among(p->stages[r].ins, p->stages[r].in_count, b)) return true;
  }
  return false;
}

/* The definition, stage by stage until nothing changes. */
static uint8_t level_by_definition(const weft_program *p, const uint8_t *level, uint32_t s) {
  const weft_stage *st = &p->stages[s];
  bool steps = st->kind == WEFT_STAGE_LOAD && st->load.pattern.origin.step_count > 0;
  bool updates = false, reads_carry = false;
  for (uint32_t b = 0; b < p->buffer_count; b++) {
    uint32_t updater = updater_of(p, b);
    updates |= updater == s;
    reads_carry |= updater != WEFT_NONE && among(st->ins, st->in_count, b);
  }
  if (steps || st->kind == WEFT_STAGE_RECV || updates || reads_level(p, level, s, BODY)) return BODY;
  if (reads_carry && feeds_body(p, level, s)) return BODY;
  return reads_carry || reads_level(p, level, s, EPILOGUE) ? EPILOGUE : PROLOGUE;
}

static void levels_by_definition(const weft_program *p, uint8_t *level) {
  memset(level, PROLOGUE, p->stage_count);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t s = 0; s < p->stage_count; s++) {
      uint8_t next = level_by_definition(p, level, s);
      changed |= next != level[s];
      level[s] = next;
    }
  }
}

static const weft_step k_step = {.var = WEFT_VAR_K_BLOCK, .stride = 0};

static uint32_t *random_ports(weft_program *p, uint64_t *random, uint64_t *count) {
  uint32_t *ports = WEFT_NEW_ARRAY(p->arena, uint32_t, PORTS_MOST);
  *count = weft_random_next(random) % (PORTS_MOST + 1);
  for (uint64_t i = 0; i < *count; i++) ports[i] = (uint32_t)(weft_random_next(random) % p->buffer_count);
  return ports;
}

static weft_program *random_graph(uint64_t seed) {
  uint64_t random = seed;
  weft_program *p = weft_program_new("random");
  p->buffer_count = 1 + weft_random_next(&random) % BUFFERS_MOST;
  p->stage_count = 1 + weft_random_next(&random) % STAGES_MOST;
  p->stages = WEFT_NEW_ARRAY(p->arena, weft_stage, p->stage_count);
  for (uint64_t s = 0; s < p->stage_count; s++) {
    weft_stage *st = &p->stages[s];
    uint64_t kind = weft_random_next(&random) % 8;
    st->kind = kind < 2 ? WEFT_STAGE_LOAD : kind == 2 ? WEFT_STAGE_RECV : WEFT_STAGE_COMPUTE;
    if (kind == 0) {
      st->load.pattern.origin.steps = &k_step;
      st->load.pattern.origin.step_count = 1;
    }
    st->ins = random_ports(p, &random, &st->in_count);
    st->outs = random_ports(p, &random, &st->out_count);
  }
  return p;
}

static void fold_levels(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 3000; seed++) {
    weft_program *program = random_graph(seed);
    uint8_t expected[STAGES_MOST];
    levels_by_definition(program, expected);
    const uint8_t *found = weft_fold_levels(program, program->arena);
    for (uint64_t s = 0; s < program->stage_count; s++)
      if (found[s] != expected[s]) fail_msg("seed %d, stage %d: %d, not %d", (int)seed, (int)s, found[s], expected[s]);
    weft_program_free(program);
  }
}

static void copies(void **state) {
  (void)state;
  weft_program *from = case_program("scheduled-gather");
  weft_program *to = weft_program_new("copies");
  to->tensors = WEFT_NEW_ARRAY(to->arena, weft_tensor, from->tensor_count);
  to->stages = WEFT_NEW_ARRAY(to->arena, weft_stage, from->stage_count);
  to->tensor_count = from->tensor_count;
  to->stage_count = from->stage_count;
  for (uint64_t i = 0; i < from->tensor_count; i++)
    assert_true(weft_tensor_copy(to->arena, &from->tensors[i], &to->tensors[i]));
  for (uint64_t i = 0; i < from->stage_count; i++)
    assert_true(weft_stage_copy(to->arena, &from->stages[i], &to->stages[i]));
  weft_engine_program *engine = WEFT_NEW(to->arena, weft_engine_program);
  weft_op *op = WEFT_NEW(to->arena, weft_op);
  assert_true(weft_op_copy(to->arena, &from->schedule->programs[0].ops[0], op));
  *engine = (weft_engine_program){.ops = op, .op_count = 1};
  weft_schedule schedule = {.programs = engine, .program_count = 1};
  to->schedule = &schedule;

  from->placement = NULL;
  from->memory = NULL;
  from->buffer_count = from->edge_count = 0;
  from->name = "copies";
  from->work = to->work;
  from->acc_tiles_used = 0;
  from->requires_handshakes = from->requires_interconnect = 0;
  weft_engine_program first = {.ops = from->schedule->programs[0].ops, .op_count = 1};
  weft_schedule one = {.programs = &first, .program_count = 1};
  from->schedule = &one;
  weft_text expected = case_dump(from);
  weft_program_free(from);
  weft_text found = case_dump(to);
  assert_string_equal(found.data, expected.data);
  weft_text_free(&expected);
  weft_text_free(&found);
  weft_program_free(to);
}

static void assert_parts(const weft_text *text, const char *const *parts, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!strstr(text->data, parts[i])) fail_msg("%s is not in:\n%s", parts[i], text->data);
}

static void shown(void **state) {
  (void)state;
  weft_program *program = case_program("scheduled-gemm-2x2-multicast");
  weft_text text = {0};
  weft_program_show(program, &text);
  static const char *const parts[] = {"program \"gemm-2x2\": Scheduled\n",
                                      "  3 tensors, 16 stages, 12 buffers, 16 edges, 4 semaphores, 4 work items\n",
                                      "  0 \"A\": Input, 128 x 96 (4 x 3 tiles), Fp32, Dram, external\n",
                                      "  grid 2 x 2 of 2 x 2 tiles, sub-blocks 2 x 2, 3 K blocks of 1, F32\n",
                                      "sites: 4 of a 2 x 2 mesh\n",
                                      "multicast: 2 row groups, 2 column groups\n",
                                      "schedule: 12 engine programs of ",
                                      " classes, 136 ops\n"};
  assert_parts(&text, parts, sizeof parts / sizeof *parts);
  weft_text_free(&text);
  weft_program_free(program);
}

/* The same figures for other programs. */
static void shown_as_json(void **state) {
  (void)state;
  weft_program *program = case_program("scheduled-gemm-2x2-multicast");
  weft_text text = {0};
  weft_program_show_json(program, &text);
  static const char *const parts[] = {
      "{\"name\": \"gemm-2x2\", \"phase\": \"Scheduled\", \"chips\": 1, \"chip\": null,\n",
      "{\"tensors\": 3, \"sections\": 0, \"stages\": 16, \"buffers\": 12, \"edges\": 16, ",
      "\"semaphores\": 4, \"items\": 4, \"ops\": 136}",
      "{\"name\": \"A\", \"role\": \"Input\", \"dtype\": \"Fp32\", \"rows\": 128, \"cols\": 96, \"bytes\": 49152, ",
      "\"bytes\": 49152, \"chip\": null, \"dataset\": null}"};
  assert_parts(&text, parts, sizeof parts / sizeof *parts);
  weft_text_free(&text);
  weft_program_free(program);
}

/* Names cannot break out of their quotes. */
static void drawn(void **state) {
  (void)state;
  weft_program *program = case_program("template-names");
  weft_text text = {0};
  weft_program_dot(program, &text);
  assert_non_null(strstr(text.data, "digraph \"quote \\\" backslash \\\\"));
  assert_non_null(strstr(text.data, "  b0 -> s2;\n"));
  assert_non_null(strstr(text.data, "  s3 -> t2;\n"));
  assert_string_equal(text.data + text.length - 2, "}\n");
  weft_text_free(&text);
  weft_program_free(program);
}

/* A column a chip; what crosses is drawn apart. A program that was never validated is drawn, too. */
static void machine_drawn(void **state) {
  (void)state;
  weft_program *program = case_program("template-sections");
  for (uint64_t s = 0; s < program->stage_count; s++) program->stages[s].site.present = false;
  for (uint64_t t = 0; t < program->tensor_count; t++) program->tensors[t].chip = t == 2; // x, h0, h1, h2
  weft_text text = {0};
  weft_program_dot_chips(program, &text);
  static const char *const parts[] = {"subgraph cluster_chip0 {\n    label=\"chip 0\"",
                                      "subgraph cluster_chip1 {\n    label=\"chip 1\"",
                                      "reads x ",
                                      "\\lsends h0 64 x 32 Fp32, 8192 B to 1 elsewhere\\l",
                                      "  n0 -> n6 [color=\"#1f5fbf\", penwidth=1.5, constraint=false];\n",
                                      "  n6 -> n3 [color=\"#1f5fbf\"",
                                      "    n0 -> n3 [style=invis, weight=20];\n"};
  assert_parts(&text, parts, sizeof parts / sizeof *parts);
  weft_text_free(&text);
  uint32_t nowhere = UINT32_MAX - 1;
  for (uint64_t s = 0; s < program->stage_count; s++) {
    weft_stage *stage = &program->stages[s];
    if (stage->kind == WEFT_STAGE_LOAD) stage->load.tensor = nowhere;
    if (stage->kind == WEFT_STAGE_STORE) stage->store.tensor = nowhere;
    if (stage->in_count) stage->ins = &nowhere, stage->in_count = 1;
    if (stage->out_count) stage->outs = &nowhere, stage->out_count = 1;
  }
  program->sections[0].stages.end = UINT64_MAX;
  weft_program_dot_chips(program, &text);
  assert_null(strstr(text.data, "chip1"));
  assert_string_equal(text.data + text.length - 2, "}\n");
  weft_text_free(&text);
  weft_program_free(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(phases),        cmocka_unit_test(empty_program), cmocka_unit_test(buffer_bytes),
      cmocka_unit_test(accumulators),  cmocka_unit_test(sections),      cmocka_unit_test(trip_counts),
      cmocka_unit_test(fold_levels),   cmocka_unit_test(copies),        cmocka_unit_test(shown),
      cmocka_unit_test(shown_as_json), cmocka_unit_test(drawn),         cmocka_unit_test(machine_drawn),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
