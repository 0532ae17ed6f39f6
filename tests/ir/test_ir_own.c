/* Weft's own checks: every row of the second table is provoked by a case of own.jsonl (`test_ir_own LINE` runs one),
 * and both tables say what they must. */
#include "case_support.h"

#include "../../ir/violations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t only_line;

typedef struct row {
  const char *name, *keys, *message, *remedy, *manual;
} row;

#define ROW(identifier, name, keys, message, remedy, manual) {name, keys, message, remedy, manual},
static const row seed_rows[] = {WEFT_VIOLATIONS(ROW)};
static const row own_rows[] = {WEFT_OWN_VIOLATIONS(ROW)};
#undef ROW

enum { SEED_COUNT = sizeof seed_rows / sizeof *seed_rows, OWN_COUNT = sizeof own_rows / sizeof *own_rows };

static bool provoked[OWN_COUNT];

static void note(const char *name) {
  for (size_t i = 0; i < OWN_COUNT; i++) provoked[i] |= strcmp(own_rows[i].name, name) == 0;
}

static weft_program *patched_program(weft_arena *arena, const weft_json *change) {
  char path[512];
  snprintf(path, sizeof path, CASES "/valid/%s.json", weft_json_get(change, "base")->text);
  const weft_json *document;
  assert_int_equal(weft_json_read(arena, path, &document, NULL), WEFT_OK);
  const weft_json *patch = weft_json_get(change, "patch");
  for (uint64_t i = 0; i < patch->count; i++) {
    document = case_patched(arena, document, &patch->items[i]);
    assert_non_null(document);
  }
  weft_text text = {0};
  case_put_json(&text, document);
  weft_program *program = case_parse(text.data, text.length);
  weft_text_free(&text);
  return program;
}

/* Whether the fault has the expected name, and the expected data among its own. */
static bool contains(const weft_json *expected, const weft_json *found) {
  const weft_json *want = expected->items;
  const weft_json *have = weft_json_get(found, want->key);
  for (uint64_t i = 0; have && i < want->count; i++) {
    const weft_json *value = weft_json_get(have, want->items[i].key);
    if (!value || !case_equal(&want->items[i], value)) return false;
  }
  return have != NULL;
}

static void check_line(uint64_t line, const char *text, size_t length) {
  weft_arena *arena = weft_arena_new();
  const weft_json *change, *found;
  assert_int_equal(weft_json_parse(arena, "own.jsonl", text, length, &change, NULL), WEFT_OK);
  weft_program *program = patched_program(arena, change);
  weft_text faults = case_faults(program, 1);
  const weft_json *expected = weft_json_get(change, "expect");
  if (!faults.length) fail_msg("line %d should not be valid; repeat with: test_ir_own %d", (int)line, (int)line);
  assert_int_equal(weft_json_parse(arena, "fault", faults.data, faults.length, &found, NULL), WEFT_OK);
  if (!contains(expected, found) || !case_is_own(found))
    fail_msg("line %d: found %s; repeat with: test_ir_own %d", (int)line, faults.data, (int)line);
  weft_text all = case_faults(program, 0);
  assert_memory_equal(all.data, faults.data, faults.length);
  note(expected->items->key);
  weft_text_free(&all);
  weft_text_free(&faults);
  weft_program_free(program);
  weft_arena_free(arena);
}

static void cases(void **state) {
  (void)state;
  size_t length;
  char *text = case_read(CASES "/own.jsonl", &length);
  uint64_t line = 0;
  for (char *at = text; at < text + length;) {
    size_t size = strcspn(at, "\n");
    line++;
    if (size && (!only_line || only_line == line)) check_line(line, at, size);
    at += size + 1;
  }
  free(text);
}

/* What no dump can say: a body that is not in post-order. */
static void bodies(void **state) {
  (void)state;
  weft_program *program = case_program("template-elementwise");
  weft_compute_op *op = weft_compute_op_copy(program->arena, program->stages[2].compute);
  const weft_body_node forward[] = {{.kind = WEFT_BODY_ADD, .child = {1, 1}}, {.kind = WEFT_BODY_OPERAND}};
  op->generic.body = (weft_body){.nodes = forward, .node_count = 2};
  program->stages[2].compute = op;
  weft_text faults = case_faults(program, 0);
  assert_string_equal(faults.data, "{\"BodyMalformed\":{\"stage\":2,\"reason\":\"a node comes before its child\"}}\n");
  weft_text_free(&faults);
  op->generic.body = (weft_body){0};
  faults = case_faults(program, 0);
  assert_string_equal(faults.data, "{\"BodyMalformed\":{\"stage\":2,\"reason\":\"it has no node\"}}\n");
  weft_text_free(&faults);
  weft_program_free(program);
  note("BodyMalformed");
}

static void every_own_fault_is_provoked(void **state) {
  (void)state;
  for (size_t i = 0; i < OWN_COUNT && !only_line; i++)
    if (!provoked[i]) fail_msg("no case provokes %s", own_rows[i].name);
}

/* Each {key} of a sentence is one of the row's data. */
static void check_sentence(const row *r, const char *sentence) {
  for (const char *at = sentence; (at = strchr(at, '{'));) {
    size_t length = strcspn(at, "}") - 1;
    char key[64];
    snprintf(key, sizeof key, " %.*s ", (int)length, at + 1);
    char keys[256];
    snprintf(keys, sizeof keys, " %s ", r->keys);
    if (!strstr(keys, key)) fail_msg("%s: no datum%s", r->name, key);
    at += length;
  }
}

static void check_row(const row *r, const char *manual) {
  assert_true(r->message[0] && r->remedy[0] && r->manual[0]);
  check_sentence(r, r->message);
  check_sentence(r, r->remedy);
  char name[128];
  snprintf(name, sizeof name, "`%s`", r->name);
  if (!strstr(manual, name)) fail_msg("docs/validation.md does not mention %s", name);
  snprintf(name, sizeof name, "\n**%d.", atoi(r->manual));
  if (!strstr(manual, name)) fail_msg("docs/validation.md has no section %s", r->manual);
}

static void tables(void **state) {
  (void)state;
  size_t length;
  char *manual = case_read(WEFT_SOURCE_DIR "/docs/validation.md", &length);
  for (size_t i = 0; i < SEED_COUNT; i++) check_row(&seed_rows[i], manual);
  for (size_t i = 0; i < OWN_COUNT; i++) check_row(&own_rows[i], manual);
  free(manual);
}

/* A message names the stage, its section, and what to change. */
static void messages(void **state) {
  (void)state;
  weft_program *program = case_program("scheduled-chip-links");
  program->stages[4].load.tensor = 99;
  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_program_validate(program, 0, NULL, diag), WEFT_INVALID);
  assert_int_equal(weft_diag_count(diag), 1);
  const weft_message *said = weft_diag_message(diag, 0);
  weft_text expected = {0};
  weft_text_printf(&expected,
                   "DanglingTensor: stage 4 \"%s\" of section 1 \"reduce\" names tensor 99, which does not exist",
                   program->stages[4].name);
  assert_string_equal(said->text, expected.data);
  assert_string_equal(said->hint, "name one of the program's tensors (docs/validation.md, 3)");
  weft_text_free(&expected);
  weft_diag_free(diag);
  weft_program_free(program);
}

static uint64_t lines_of(const weft_text *text) {
  uint64_t lines = 0;
  for (size_t i = 0; i < text->length; i++) lines += text->data[i] == '\n';
  return lines;
}

/* Several faults of several groups are found at once, up to the limit. */
static void limits(void **state) {
  (void)state;
  weft_program *program = case_program("template-gemm");
  program->requires_handshakes = 0;
  program->buffers[0].dtype = WEFT_INT8;
  program->buffers[1].dtype = WEFT_INT8;
  program->tensors[2].tiles.rows_t = 7;
  static const uint64_t limits[][2] = {{0, 4}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {9, 4}};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    weft_text faults = case_faults(program, limits[i][0]);
    assert_int_equal(lines_of(&faults), limits[i][1]);
    weft_text_free(&faults);
  }
  weft_text faults = case_faults(program, 0);
  assert_string_equal(faults.data,
                      "{\"TileGridMismatch\":{\"tensor\":2}}\n"
                      "{\"OperandDtypeMismatch\":{\"stage\":2,\"buffer\":0,\"expected\":\"Fp32\",\"found\":\"Int8\"}}\n"
                      "{\"OperandDtypeMismatch\":{\"stage\":2,\"buffer\":1,\"expected\":\"Fp32\",\"found\":\"Int8\"}}\n"
                      "{\"HandshakeNotRequired\":{\"kind\":\"Fifo\"}}\n");
  weft_text_free(&faults);
  weft_program_free(program);
}

static void certificate_without_schedule(void **state) {
  (void)state;
  weft_program *program = case_program("sized-gemm-alias");
  program->verified = true;
  weft_text faults = case_faults(program, 0);
  assert_string_equal(faults.data, "{\"PhaseOrder\":{\"have\":\"certificate\",\"missing\":\"schedule\"}}\n");
  weft_text_free(&faults);
  weft_program_free(program);
}

int main(int argc, char **argv) {
  if (argc > 1) only_line = strtoull(argv[1], NULL, 10);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cases),
      cmocka_unit_test(bodies),
      cmocka_unit_test(every_own_fault_is_provoked),
      cmocka_unit_test(tables),
      cmocka_unit_test(messages),
      cmocka_unit_test(limits),
      cmocka_unit_test(certificate_without_schedule),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
