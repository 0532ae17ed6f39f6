/* Random changes of good dumps: nothing crashes, what is refused has one message with a place, and what is read is
 * written so that it is read again as itself. `test_ir_property SEED` runs one,
 * `test_ir_property SEED COUNT` so many from there on. */
#include "case_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t first_seed = 1, seed_count = 600;

static uint64_t below(uint64_t *random, uint64_t bound) { return weft_random_next(random) % bound; }

/* Bytes that matter to the format, more often than others. */
static char random_byte(uint64_t *random) {
  static const char usual[] = "{}[]:,\"\\0123456789-+.eE ntfu\n";
  uint64_t pick = below(random, 4);
  return pick ? usual[below(random, sizeof usual - 1)] : (char)below(random, 256);
}

/* Where a token begins: changes there leave more of the text good than changes anywhere. */
static size_t random_place(const weft_text *text, uint64_t *random) {
  size_t at = below(random, text->length);
  for (size_t i = at; i < text->length && i < at + 64 && below(random, 2); i++)
    if (strchr("0123456789\"tfn", text->data[i])) return i;
  return at;
}

static void change(weft_text *text, uint64_t *random) {
  size_t at = random_place(text, random);
  size_t length = 1 + below(random, 8);
  if (length > text->length - at) length = text->length - at;
  switch (below(random, 5)) {
  case 0: text->data[at] = random_byte(random); break;
  case 1: text->data[at] = (char)(text->data[at] ^ (1 << below(random, 8))); break;
  case 2: /* cut */
    memmove(text->data + at, text->data + at + length, text->length - at - length);
    text->length -= length;
    break;
  case 3: /* a run of the text over another */
    memmove(text->data + at, text->data + below(random, text->length - length + 1), length);
    break;
  default: /* another digit */
    for (size_t i = at; i < text->length && i < at + 200; i++)
      if (text->data[i] >= '0' && text->data[i] <= '9') {
        text->data[i] = (char)('0' + below(random, 10));
        break;
      }
    break;
  }
}

/* A dump of one of the valid programs with 1 to 3 changes, in a block of exactly its length. */
static char *changed_dump(char *const *names, size_t count, uint64_t *random, size_t *length) {
  weft_program *program = case_program(names[below(random, count)]);
  weft_text text = case_dump(program);
  weft_program_free(program);
  for (uint64_t changes = 1 + below(random, 3); changes-- && text.length > 16;) change(&text, random);
  char *copy = malloc(text.length);
  memcpy(copy, text.data, text.length);
  *length = text.length;
  weft_text_free(&text);
  return copy;
}

static void check_accepted(weft_program *program, uint64_t seed) {
  weft_text dump = case_dump(program);
  weft_program *again;
  if (weft_program_read("again", dump.data, dump.length, &again, NULL))
    fail_msg("a dump of ours cannot be read; repeat with: test_ir_property %d", (int)seed);
  weft_text second = case_dump(again);
  if (dump.length != second.length || memcmp(dump.data, second.data, dump.length) != 0)
    fail_msg("a dump of ours is read as another; repeat with: test_ir_property %d", (int)seed);
  weft_text faults = {0};
  weft_status status = weft_program_validate(program, 0, &faults, NULL);
  if ((status == WEFT_OK) != (faults.length == 0))
    fail_msg("status %d with %d bytes of faults; repeat with: test_ir_property %d", (int)status, (int)faults.length,
             (int)seed);
  weft_text shown = {0};
  weft_program_show(program, &shown);
  weft_program_dot(program, &shown);
  weft_program_portable(program, NULL);
  weft_text_free(&shown);
  weft_text_free(&faults);
  weft_text_free(&second);
  weft_text_free(&dump);
  weft_program_free(again);
  weft_program_free(program);
}

static void check_seed(char *const *names, size_t count, uint64_t seed, uint64_t *accepted) {
  uint64_t random = seed;
  size_t length;
  char *text = changed_dump(names, count, &random, &length);
  weft_diag *diag = weft_diag_new();
  weft_program *program;
  if (weft_program_read("changed", text, length, &program, diag)) {
    if (program || weft_diag_count(diag) != 1 || !weft_diag_message(diag, 0)->place.line)
      fail_msg("a refusal without one placed message; repeat with: test_ir_property %d", (int)seed);
  } else {
    ++*accepted;
    check_accepted(program, seed);
  }
  weft_diag_free(diag);
  free(text);
}

static void random_changes(void **state) {
  (void)state;
  size_t count;
  char **names = case_names(CASES "/valid", ".json", &count);
  uint64_t accepted = 0;
  for (uint64_t seed = first_seed; seed < first_seed + seed_count; seed++) check_seed(names, count, seed, &accepted);
  print_message("changed dumps: %llu refused, %llu read\n", (unsigned long long)(seed_count - accepted),
                (unsigned long long)accepted);
  if (seed_count > 100) assert_true(accepted > seed_count / 20);
  case_free_names(names, count);
}

int main(int argc, char **argv) {
  if (argc > 1) first_seed = strtoull(argv[1], NULL, 10);
  if (argc > 1) seed_count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_changes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
