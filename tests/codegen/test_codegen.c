/* The code generator: classes, parameters, determinism, hostile names. Its output is judged by a C compiler and by
 * counting; what the programs compute is tested end to end (tests/tools). */
#include "weft/codegen.h"
#include "weft/partition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/weft-codegen-XXXXXX";

static const weft_target target = {.name = "test",
                                   .mesh_cols = 1,
                                   .mesh_rows = 1,
                                   .tile_rows = 32,
                                   .tile_cols = 32,
                                   .local_bytes = UINT64_MAX,
                                   .acc_tiles = 1024,
                                   .movement_engines = 2,
                                   .formats = 0xff,
                                   .flops_per_second = {1e11, 1e11, 1e11, 1e11, 1e11, 1e11, 1e11, 1e11},
                                   .dram_bytes_per_second = 1e10,
                                   .link_bytes_per_second = 1e9,
                                   .link_latency_seconds = 1e-6,
                                   .op_seconds = 1e-6};

static void print_messages(const weft_diag *diag) {
  for (uint64_t i = 0; i < weft_diag_count(diag); i++) print_message("%s\n", weft_diag_message(diag, i)->text);
}

static weft_codegen_options paths(int threads) {
  static const char include[] = "-I" WEFT_SOURCE_DIR "/include";
  return (weft_codegen_options){.threads = threads,
                                .paths = {.compiler = "cc",
                                          .mpi_compiler = "mpicc",
                                          .include_dir = WEFT_SOURCE_DIR "/include",
                                          .flags = include,
                                          .local_libraries = "-lm",
                                          .mpi_libraries = "-lm",
                                          .walk_libraries = "",
                                          .depends = ""}};
}

/** A graph sharded and generated into folder/name. */
static weft_codegen_report generate_graph(weft_graph *graph, uint32_t chips, const char *split, const char *name,
                                          int threads, weft_diag *diag) {
  weft_graph *machine = NULL;
  weft_program *program = NULL, *programs[64] = {0};
  weft_partition_options options = {.split = split};
  weft_codegen_report report;
  char mesh[32], directory[128];
  snprintf(mesh, sizeof mesh, "x=%u", chips);
  snprintf(directory, sizeof directory, "%s/%s", folder, name);
  weft_status status = weft_mesh_parse(mesh, &options.mesh, diag);
  if (status == WEFT_OK) status = weft_partition(graph, &options, &target, &machine, NULL, diag);
  if (status == WEFT_OK) status = weft_graph_lower(machine, &program, diag);
  if (status == WEFT_OK && chips > 1)
    status = weft_split(program, chips, programs, diag);
  else
    programs[0] = program;
  const weft_codegen_options codegen_options = paths(threads);
  if (status == WEFT_OK)
    status = weft_codegen((const weft_program *const *)programs, chips, directory, &codegen_options, &report, diag);
  print_messages(diag);
  assert_int_equal(status, WEFT_OK);
  for (uint32_t c = 0; chips > 1 && c < chips; c++) weft_program_free(programs[c]);
  weft_program_free(program);
  weft_graph_free(machine);
  return report;
}

/** An MLP sharded and generated into folder/name. */
static weft_codegen_report generate(const uint64_t *layers, uint32_t layer_count, const char *input, uint32_t chips,
                                    const char *split, const char *name, int threads) {
  weft_diag *diag = weft_diag_new();
  weft_graph *graph = NULL;
  const weft_mlp_options mlp = {
      .layers = layers, .layer_count = layer_count, .batch = 32, .dtype = WEFT_FP32, .bias = true, .relu = true};
  weft_status status = weft_graph_new_mlp(&mlp, "y", &graph, diag);
  print_messages(diag);
  assert_int_equal(status, WEFT_OK);
  if (input) graph->values[0].name = input;
  weft_codegen_report report = generate_graph(graph, chips, split, name, threads, diag);
  weft_graph_free(graph);
  weft_diag_free(diag);
  return report;
}

static char *read_text(const char *name, const char *file) {
  char path[256];
  size_t length;
  char *bytes = NULL;
  snprintf(path, sizeof path, "%s/%s/%s", folder, name, file);
  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_read_file(path, &bytes, &length, diag), WEFT_OK);
  weft_diag_free(diag);
  return bytes;
}

/** The C compiler takes every file, with warnings as errors. */
static void compiles(const char *name) {
  char command[512];
  snprintf(command, sizeof command,
           "cd %s/%s && for f in class_*.c program.c run.c run_local.c; do cc -std=gnu17 -Wall -Werror -fsyntax-only "
           "-I%s/include $f || exit 1; done",
           folder, name, WEFT_SOURCE_DIR);
  assert_int_equal(system(command), 0);
}

static const uint64_t digits[] = {784, 256, 256, 10};
static const uint64_t equal[] = {256, 256, 256};

static void test_equal_chips_are_one_class(void **state) {
  (void)state;
  assert_int_equal(generate(equal, 3, NULL, 64, "columns", "equal", 0).classes, 1);
  compiles("equal");
}

static void test_digits_are_short(void **state) {
  (void)state;
  static const char *const splits[] = {"columns", "rows", "batch", "column-row"};
  static const uint32_t chips[] = {1, 2, 3, 4, 8, 16, 64};
  for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
    for (size_t k = 0; k < sizeof chips / sizeof *chips; k++) {
      weft_codegen_report report = generate(digits, 4, NULL, chips[k], splits[i], "digits", 0);
      if (report.lines >= 300)
        fail_msg("%s on %u chips: %llu lines", splits[i], chips[k], (unsigned long long)report.lines);
      assert_int_equal(report.walked, 0);
      compiles("digits");
    }
}

/** Chips that differ in the sizes of their blocks only: 256 columns and 10 over 3 chips, K in segments over 4. */
static void test_sizes_do_not_divide_classes(void **state) {
  (void)state;
  assert_int_equal(generate(digits, 4, NULL, 3, "columns", "sizes", 0).classes, 1);
  compiles("sizes");
  assert_int_equal(generate(digits, 4, NULL, 4, "rows", "sizes", 0).classes, 1);
  compiles("sizes");
}

/** The gather of 64 blocks is one call, and a chip's row does not grow with the chips. */
static void test_gathers_are_short(void **state) {
  (void)state;
  generate(equal, 3, NULL, 64, "columns", "gather", 0);
  char *text = read_text("gather", "class_0.c");
  assert_non_null(strstr(text, "weft_assemble(chip, &(const weft_abi_assemble){.from = s + 0, .count = 64, .to = "
                               "s[64], .ring = 1, .col = p + 0});"));
  assert_non_null(strstr(text, ".count = 63, .step = 0, .ring = 1}"));
  assert_non_null(strstr(text, ".count = 63, .step = 1, .ring = 1}"));
  const char *row = strstr(text, "\n    7, ");
  assert_non_null(row);
  assert_in_range(strcspn(row + 1, "\n"), 10, 150);
  free(text);
}

static void test_stages_of_a_pipeline_differ(void **state) {
  (void)state;
  assert_int_equal(generate(digits, 4, NULL, 3, "pipeline", "pipeline", 0).classes, 3);
  compiles("pipeline");
}

static void test_threads_do_not_change_a_byte(void **state) {
  (void)state;
  static const char *const files[] = {"class_0.c", "program.c", "build.ninja"};
  weft_codegen_report one = generate(digits, 4, NULL, 8, "rows", "one-thread", 1),
                      two = generate(digits, 4, NULL, 8, "rows", "two-threads", 4);
  assert_int_equal(one.classes, two.classes);
  assert_int_equal(one.lines, two.lines);
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char *a = read_text("one-thread", files[i]), *b = read_text("two-threads", files[i]);
    assert_string_equal(a, b);
    free(a);
    free(b);
  }
}

static void test_hostile_names_stay_text(void **state) {
  (void)state;
  generate(digits, 4,
           "x\" }; */ ?"
           "?/\n\\ \x01 $(touch pwned)",
           2, "columns", "hostile", 0);
  compiles("hostile");
  char *text = read_text("hostile", "class_0.c");
  assert_null(strchr(text, '\x01'));
  free(text);
}

static void test_one_chip_has_no_links(void **state) {
  (void)state;
  assert_int_equal(generate(digits, 4, NULL, 1, NULL, "one", 0).classes, 1);
  char *text = read_text("one", "class_0.c");
  assert_null(strstr(text, "weft_abi_link"));
  assert_null(strstr(text, "all_reduce = "));
  free(text);
  compiles("one");
}

/** Lines of a class's functions, and how many functions there are. */
typedef struct functions {
  uint64_t count, lines;
} functions;

static functions count_functions(const char *name, uint32_t class) {
  char file[32];
  snprintf(file, sizeof file, "class_%u.c", class);
  char *text = read_text(name, file), *end = NULL;
  functions found = {0};
  for (char *at = text; (at = strstr(at, "\nstatic void section_")) != NULL; at = end) {
    end = strstr(at, "\n}\n");
    assert_non_null(end);
    found.count++;
    for (char *line = at + 1; line < end; line++) found.lines += *line == '\n';
  }
  free(text);
  return found;
}

static void generate_decoder(uint64_t layers, uint32_t chips, const char *name, functions found[2]) {
  const weft_decoder_options options = {.layers = layers,
                                        .width = 256,
                                        .heads = 8,
                                        .kv_heads = 4,
                                        .hidden = 256,
                                        .vocabulary = 70,
                                        .context = 40,
                                        .prompt = 3,
                                        .eps_nano = 10000,
                                        .dtype = WEFT_BF16};
  weft_diag *diag = weft_diag_new();
  weft_graph *graph = NULL;
  assert_int_equal(weft_graph_new_decoder(&options, &graph, diag), WEFT_OK);
  assert_int_equal(generate_graph(graph, chips, NULL, name, 0, diag).classes, chips > 1 ? 2 : 1);
  for (uint32_t class = 0; class < (chips > 1 ? 2 : 1); class ++) found[class] = count_functions(name, class);
  weft_graph_free(graph);
  weft_diag_free(diag);
  compiles(name);
}

/** Two layers and sixty-four have the same functions: only tables grow. The chip that chooses the token is a class of
 * its own. */
static void test_equal_layers_share_functions(void **state) {
  (void)state;
  static const uint32_t chips[] = {1, 4};
  for (int i = 0; i < 2; i++) {
    functions few[2], many[2];
    generate_decoder(2, chips[i], "few", few);
    generate_decoder(64, chips[i], "many", many);
    for (uint32_t class = 0; class < (i ? 2 : 1); class ++) {
      assert_in_range(few[class].count, 20, 40);
      assert_int_equal(few[class].count, many[class].count);
      assert_int_equal(few[class].lines, many[class].lines);
    }
  }
}

/** A function that several layers share is told for all of them. */
static void test_shared_functions_name_all_layers(void **state) {
  (void)state;
  functions found[2];
  generate_decoder(3, 1, "names", found);
  char *text = read_text("names", "class_0.c");
  assert_non_null(strstr(text, "/* layers.*.mlp.up */"));
  assert_null(strstr(text, "/* layers.1.mlp.up */"));
  assert_non_null(strstr(text, ".name = \"layers.1.mlp.up\""));
  free(text);
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return getenv("WEFT_KEEP") ? 0 : system(command);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_chip_has_no_links),
      cmocka_unit_test(test_digits_are_short),
      cmocka_unit_test(test_equal_chips_are_one_class),
      cmocka_unit_test(test_sizes_do_not_divide_classes),
      cmocka_unit_test(test_gathers_are_short),
      cmocka_unit_test(test_stages_of_a_pipeline_differ),
      cmocka_unit_test(test_threads_do_not_change_a_byte),
      cmocka_unit_test(test_hostile_names_stay_text),
      cmocka_unit_test(test_equal_layers_share_functions),
      cmocka_unit_test(test_shared_functions_name_all_layers),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
