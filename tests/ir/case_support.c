#include "case_support.h"

#include "../../ir/violations.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- files ---- */

char *case_read(const char *path, size_t *length) {
  char *bytes;
  weft_diag *diag = weft_diag_new();
  if (weft_read_file(path, &bytes, length, diag)) fail_msg("%s", weft_diag_message(diag, 0)->text);
  weft_diag_free(diag);
  return bytes;
}

weft_program *case_parse(const char *text, size_t length) {
  weft_diag *diag = weft_diag_new();
  weft_program *program;
  if (weft_program_read("case", text, length, &program, diag))
    fail_msg("line %d: %s", (int)weft_diag_message(diag, 0)->place.line, weft_diag_message(diag, 0)->text);
  weft_diag_free(diag);
  return program;
}

weft_program *case_program(const char *name) {
  char path[512];
  snprintf(path, sizeof path, CASES "/valid/%s.json", name);
  size_t length;
  char *text = case_read(path, &length);
  weft_program *program = case_parse(text, length);
  free(text);
  return program;
}

weft_text case_dump(const weft_program *program) {
  weft_text text = {0};
  weft_program_write(program, &text);
  assert_false(text.failed);
  return text;
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

char **case_names(const char *folder, const char *suffix, size_t *count) {
  DIR *dir = opendir(folder);
  if (!dir) fail_msg("cannot open %s", folder);
  char **names = NULL;
  *count = 0;
  for (struct dirent *entry; (entry = readdir(dir));) {
    size_t length = strlen(entry->d_name);
    size_t tail = strlen(suffix);
    if (length <= tail || strcmp(entry->d_name + length - tail, suffix) != 0) continue;
    names = realloc(names, (*count + 1) * sizeof *names);
    names[*count] = strdup(entry->d_name);
    names[(*count)++][length - tail] = 0;
  }
  closedir(dir);
  if (*count) qsort(names, *count, sizeof *names, compare_names);
  return names;
}

void case_free_names(char **names, size_t count) {
  for (size_t i = 0; i < count; i++) free(names[i]);
  free(names);
}

/* ---- faults ---- */

weft_text case_faults(const weft_program *program, uint64_t limit) {
  weft_text faults = {0};
  weft_diag *diag = weft_diag_new();
  weft_status status = weft_program_validate(program, limit, &faults, diag);
  assert_int_equal(status, faults.length ? WEFT_INVALID : WEFT_OK);
  assert_int_equal(weft_diag_errors(diag) != 0, status != WEFT_OK);
  weft_diag_free(diag);
  return faults;
}

bool case_is_own(const weft_json *fault) {
#define NAME(identifier, name, keys, message, remedy, manual) name,
  static const char *const own[] = {WEFT_OWN_VIOLATIONS(NAME)};
#undef NAME
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (weft_json_get(fault, own[i])) return true;
  return false;
}

bool case_equal(const weft_json *a, const weft_json *b) {
  if (a->type != b->type || a->count != b->count) return false;
  if (a->type == WEFT_JSON_BOOL) return a->boolean == b->boolean;
  if (a->text) return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
  for (uint64_t i = 0; i < a->count; i++) {
    const weft_json *other = a->type == WEFT_JSON_OBJECT ? weft_json_get(b, a->items[i].key) : &b->items[i];
    if (!other || !case_equal(&a->items[i], other)) return false;
  }
  return true;
}

bool case_same_fault(const weft_json *expected, const weft_json *found) {
  if (expected->count != 1 || found->count != 1 || strcmp(expected->items->key, found->items->key) != 0) return false;
  const weft_json *want = expected->items;
  const weft_json *have = found->items;
  for (uint64_t i = 0; i < want->count; i++) {
    const weft_json *value = weft_json_get(have, want->items[i].key);
    if (!value || !case_equal(&want->items[i], value)) return false;
  }
  for (uint64_t i = 0; i < have->count; i++) {
    const char *key = have->items[i].key;
    bool sentence = strcmp(key, "reason") == 0 || strcmp(key, "what") == 0;
    if (!sentence && !weft_json_get(want, key)) return false;
  }
  return true;
}

/* ---- JSON Patch ---- */

void case_put_json(weft_text *text, const weft_json *value) {
  switch (value->type) {
  case WEFT_JSON_NULL: weft_text_puts(text, "null"); return;
  case WEFT_JSON_BOOL: weft_text_puts(text, value->boolean ? "true" : "false"); return;
  case WEFT_JSON_NUMBER: weft_text_puts(text, value->text); return;
  case WEFT_JSON_STRING: weft_text_json_string(text, value->text); return;
  default: break;
  }
  bool object = value->type == WEFT_JSON_OBJECT;
  weft_text_puts(text, object ? "{" : "[");
  for (uint64_t i = 0; i < value->count; i++) {
    if (i) weft_text_puts(text, ",");
    if (object) {
      weft_text_json_string(text, value->items[i].key);
      weft_text_puts(text, ":");
    }
    case_put_json(text, &value->items[i]);
  }
  weft_text_puts(text, object ? "}" : "]");
}

/* Where a path's last part points among the items; the count when it adds. */
static uint64_t position_of(const weft_json *parent, const char *part) {
  if (parent->type == WEFT_JSON_ARRAY) return strcmp(part, "-") == 0 ? parent->count : strtoull(part, NULL, 10);
  for (uint64_t i = 0; i < parent->count; i++)
    if (strcmp(parent->items[i].key, part) == 0) return i;
  return parent->count;
}

static bool edit(weft_arena *arena, weft_json *parent, const char *part, const char *op, const weft_json *value) {
  uint64_t at = position_of(parent, part);
  bool removes = strcmp(op, "remove") == 0;
  bool adds = strcmp(op, "add") == 0 && (parent->type == WEFT_JSON_ARRAY || at == parent->count);
  if (at > parent->count || (!adds && at == parent->count)) return false;
  uint64_t count = parent->count + adds - removes;
  weft_json *items = WEFT_NEW_ARRAY(arena, weft_json, count);
  for (uint64_t i = 0; i < at; i++) items[i] = parent->items[i];
  for (uint64_t i = at + !adds; i < parent->count; i++) items[i + adds - removes] = parent->items[i];
  if (!removes) {
    items[at] = *value;
    items[at].key = parent->type == WEFT_JSON_OBJECT ? weft_arena_string(arena, part, strlen(part)) : NULL;
  }
  parent->items = items;
  parent->count = count;
  return true;
}

static const weft_json *patched(weft_arena *arena, const weft_json *node, const char *path, const char *op,
                                const weft_json *value) {
  char part[128];
  size_t length = strcspn(path, "/");
  snprintf(part, sizeof part, "%.*s", (int)length, path);
  weft_json *copy = WEFT_NEW(arena, weft_json);
  *copy = *node;
  if (!path[length]) return edit(arena, copy, part, op, value) ? copy : NULL;
  uint64_t at = position_of(node, part);
  if (at >= node->count) return NULL;
  const weft_json *child = patched(arena, &node->items[at], path + length + 1, op, value);
  if (!child) return NULL;
  weft_json *items = WEFT_NEW_ARRAY(arena, weft_json, node->count);
  memcpy(items, node->items, node->count * sizeof *items);
  items[at] = *child;
  copy->items = items;
  return copy;
}

const weft_json *case_patched(weft_arena *arena, const weft_json *document, const weft_json *operation) {
  const weft_json *path = weft_json_get(operation, "path");
  const weft_json *op = weft_json_get(operation, "op");
  return patched(arena, document, path->text + 1, op->text, weft_json_get(operation, "value"));
}
