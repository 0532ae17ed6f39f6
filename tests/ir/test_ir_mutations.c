/* The 1,498 random changes of tests/cases/spatial/mutations.jsonl: valid, unreadable, or broken as expected.
 * `test_ir_mutations LINE` runs one. */
#include "case_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t only_line;

typedef struct base {
  const char *name;
  const weft_json *document;
} base;

typedef struct bases {
  weft_arena *arena;
  base items[128];
  size_t count;
} bases;

static const weft_json *document_of(bases *known, const char *name) {
  for (size_t i = 0; i < known->count; i++)
    if (strcmp(known->items[i].name, name) == 0) return known->items[i].document;
  char path[512];
  snprintf(path, sizeof path, CASES "/valid/%s.json", name);
  assert_true(known->count < sizeof known->items / sizeof *known->items);
  base *added = &known->items[known->count++];
  added->name = weft_arena_string(known->arena, name, strlen(name));
  assert_int_equal(weft_json_read(known->arena, path, &added->document, NULL), WEFT_OK);
  return added->document;
}

/* The program's first fault of the seed as JSON, "valid" or "unreadable". */
static const weft_json *verdict_of(weft_arena *arena, const weft_text *text) {
  weft_text verdict = {0};
  weft_program *program;
  if (weft_program_read("mutation", text->data, text->length, &program, NULL)) {
    weft_text_puts(&verdict, "\"unreadable\"");
  } else {
    verdict = case_faults(program, 1);
    if (!verdict.length) weft_text_puts(&verdict, "\"valid\"");
    weft_program_free(program);
  }
  const weft_json *value;
  assert_int_equal(weft_json_parse(arena, "verdict", verdict.data, verdict.length, &value, NULL), WEFT_OK);
  weft_text_free(&verdict);
  return value;
}

static bool as_expected(const weft_json *expected, const weft_json *found) {
  if (expected->type == WEFT_JSON_OBJECT) return found->type == WEFT_JSON_OBJECT && case_same_fault(expected, found);
  if (found->type == WEFT_JSON_STRING) return strcmp(expected->text, found->text) == 0;
  /* Weft's own checks look at more than the reference, after all of it. */
  return strcmp(expected->text, "valid") == 0 && case_is_own(found);
}

static void check_line(bases *known, uint64_t line, const char *text, size_t length) {
  weft_arena *arena = weft_arena_new();
  const weft_json *mutation;
  assert_int_equal(weft_json_parse(arena, "mutations.jsonl", text, length, &mutation, NULL), WEFT_OK);
  const weft_json *document = document_of(known, weft_json_get(mutation, "base")->text);
  const weft_json *patch = weft_json_get(mutation, "patch");
  assert_int_equal(patch->count, 1);
  const weft_json *changed = case_patched(arena, document, patch->items);
  if (!changed) fail_msg("the patch of line %d does not apply", (int)line);
  weft_text dump = {0};
  case_put_json(&dump, changed);
  const weft_json *found = verdict_of(arena, &dump);
  if (!as_expected(weft_json_get(mutation, "expect"), found)) {
    weft_text said = {0};
    case_put_json(&said, found);
    fail_msg("line %d: %.*s\nfound %s\nrepeat with: test_ir_mutations %d", (int)line, (int)length, text, said.data,
             (int)line);
  }
  weft_text_free(&dump);
  weft_arena_free(arena);
}

static void mutations(void **state) {
  (void)state;
  size_t length;
  char *text = case_read(CASES "/mutations.jsonl", &length);
  bases known = {.arena = weft_arena_new()};
  uint64_t line = 0;
  for (char *at = text; at < text + length;) {
    size_t size = strcspn(at, "\n");
    line++;
    if (size && (!only_line || only_line == line)) check_line(&known, line, at, size);
    at += size + 1;
  }
  assert_true(line >= 1498);
  weft_arena_free(known.arena);
  free(text);
}

int main(int argc, char **argv) {
  if (argc > 1) only_line = strtoull(argv[1], NULL, 10);
  const struct CMUnitTest tests[] = {cmocka_unit_test(mutations)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
