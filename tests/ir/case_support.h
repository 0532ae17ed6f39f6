/* What the tests of the spatial program share: case files, JSON Patch, and comparing faults. */
#ifndef WEFT_TEST_IR_CASE_SUPPORT_H
#define WEFT_TEST_IR_CASE_SUPPORT_H

#include "weft/ir.h"
#include "weft/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define CASES WEFT_SOURCE_DIR "/tests/cases/spatial"

/* A file's contents; the test fails when there are none. Freed by the caller. */
char *case_read(const char *path, size_t *length);
/* The dump of `CASES/valid/NAME.json`, read. */
weft_program *case_program(const char *name);
/* Reads a text that must be good. */
weft_program *case_parse(const char *text, size_t length);
/* The program as its dump. Freed by weft_text_free. */
weft_text case_dump(const weft_program *program);
/* The names in a folder that end in `suffix`, sorted, without it. Freed by case_free_names. */
char **case_names(const char *folder, const char *suffix, size_t *count);
void case_free_names(char **names, size_t count);

/* One line of JSON for every fault found, at most `limit`. */
weft_text case_faults(const weft_program *program, uint64_t limit);
/* Whether the fault, a JSON object, is one of weft's own. */
bool case_is_own(const weft_json *fault);
/* Whether `found` is the fault `expected`: the same name and the same data, but for sentences (`reason`, `what`) that
 * `expected` leaves out. The order of members means nothing. */
bool case_same_fault(const weft_json *expected, const weft_json *found);
/* Whether two values are equal, members in any order. */
bool case_equal(const weft_json *a, const weft_json *b);

/* `document` after one operation of a JSON Patch: replace, add or remove. Made in the arena; NULL when it cannot apply.
 */
const weft_json *case_patched(weft_arena *arena, const weft_json *document, const weft_json *operation);
/* Appends the value without white space. */
void case_put_json(weft_text *text, const weft_json *value);

#endif
