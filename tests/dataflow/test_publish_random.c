/* Random threads with spatial regions and channels: what the thread does with its regions in place is what it does once
 * they are published as graphs, on memory and on channels, also under random orders of firing. Arguments as
 * test_lower_random. */
#include "df_support.h"
#include "program_generator.h"

static uint64_t programs = 200, first_seed = 1;

enum { STEPS = 300000 };

static const char *compare(const thread_run *a, const thread_run *b) {
  if (a->state == WEFT_RUN_FAULT)
    return b->state == WEFT_RUN_FAULT ? "" : "the thread faults, the published one does not";
  if (a->state != WEFT_RUN_DONE) return "";
  if (b->state != WEFT_RUN_DONE) return b->text[0] ? b->text : "the published thread did not end";
  return thread_runs_differ(a, b, true);
}

static void check_program(uint64_t seed, uint64_t *ran) {
  program_options options = {
      .seed = seed, .depth = 1 + (int)(seed % 4), .statements = 10 + (int)(seed % 30), .channels = true};
  weft_text text = {0};
  generate_program(&options, &text);
  world w = world_new();
  weft_mlir_file *file = world_must_parse(&w, text.data);
  thread_run expected, got;
  thread_execute(&w, file->modules[0], seed, 0, STEPS, &expected);
  if (weft_publish(w.context, file->arena, file->modules[0], "test.mlir", w.diag) != WEFT_OK ||
      weft_mlir_verify(file->modules[0], "test.mlir", w.diag) != WEFT_OK)
    fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, world_message(&w), text.data);
  *ran += expected.state == WEFT_RUN_DONE;
  for (uint64_t order = 0; order < 5; order++) {
    thread_execute(&w, file->modules[0], seed, order, 20u * STEPS, &got);
    const char *difference = compare(&expected, &got);
    if (*difference)
      fail_msg("order %llu: %s\nrepeat with: test_publish_random 1 %llu\n%s", (unsigned long long)order, difference,
               (unsigned long long)seed, text.data);
    thread_end(&got);
  }
  thread_end(&expected);
  weft_mlir_file_free(file);
  weft_text_free(&text);
  world_free(&w);
}

static void test_programs(void **state) {
  (void)state;
  uint64_t ran = 0;
  for (uint64_t i = 0; i < programs; i++) check_program(first_seed + i, &ran);
  print_message("%llu programs: %llu ended\n", (unsigned long long)programs, (unsigned long long)ran);
  if (programs >= 200) assert_true(ran > programs / 2);
}

int main(int argc, char **argv) {
  if (argc > 1) programs = strtoull(argv[1], NULL, 10);
  if (argc > 2) first_seed = strtoull(argv[2], NULL, 10);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
