/* Pictures of token graphs: every op once, a box for every loop of the structured program, lanes, rings. */
#include "df_support.h"
#include "program_generator.h"

static uint32_t count_text(const char *text, const char *words) {
  uint32_t count = 0;
  for (const char *at = strstr(text, words); at; at = strstr(at + 1, words)) count++;
  return count;
}

static uint32_t count_ops(const weft_mlir_op *root, const char *name) {
  uint32_t count = 0;
  for (const weft_mlir_op *op = weft_mlir_next(root, root); op; op = weft_mlir_next(root, op))
    count += !name || strcmp(op->name->text, name) == 0;
  return count;
}

/* malloc'ed. */
static char *draw(world *w, weft_mlir_op *graph) {
  weft_text text = {0};
  if (weft_dataflow_dot(w->context, graph, "test.mlir", &text, w->diag) != WEFT_OK) fail_msg("%s", world_message(w));
  assert_int_equal(count_text(text.data, "{"), count_text(text.data, "}"));
  assert_int_equal(count_text(text.data, "tooltip="), count_ops(graph, NULL));
  return text.data;
}

/* Loops of a structured graph are boxes of the lowered one. */
static void check_graph(world *w, weft_mlir_file *file, const char *name, const char *path) {
  const weft_mlir_op *given = weft_mlir_lookup(file->modules[0], name);
  uint32_t fors = count_ops(given, "scf.for"), whiles = count_ops(given, "scf.while");
  if (weft_lower(w->context, file->arena, file->modules[0], path, w->diag) != WEFT_OK)
    fail_msg("%s: %s", path, world_message(w));
  char *text = draw(w, weft_mlir_lookup(file->modules[0], name));
  assert_int_equal(count_text(text, "label=\"for"), fors);
  assert_int_equal(count_text(text, "label=\"while"), whiles);
  assert_int_equal(count_text(text, "ring of"), 0);
  free(text);
}

static void test_random(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    world w = world_new();
    weft_text text = {0};
    program_options options = {
        .seed = seed, .depth = 1 + (int)(seed % 5), .statements = 12 + (int)(seed % 40), .no_alias = seed % 2 == 0};
    generate_program(&options, &text);
    weft_mlir_file *file = world_must_parse(&w, text.data);
    check_graph(&w, file, "entry", "test.mlir");
    weft_mlir_file_free(file);
    weft_text_free(&text);
    world_free(&w);
  }
}

#define TOKENS(body) "dataflow.graph private @g(%s: none, %x: i32) -> () {\n" body "}\n"

static char *draw_text(const char *source) {
  world w = world_new();
  weft_mlir_file *file = world_must_parse(&w, source);
  char *text = draw(&w, weft_mlir_lookup(file->modules[0], "g"));
  weft_mlir_file_free(file);
  world_free(&w);
  return text;
}

static void test_lanes(void **state) {
  (void)state;
  char *text = draw_text(
      TOKENS("  %z = arith.constant 0 : i32\n  %c = arith.cmpi slt, %x, %z : i32\n"
             "  %d:2 = dataflow.demux %c, %x : (i1, i32) -> (i32, i32)\n  %n = arith.muli %d#1, %d#1 : i32\n"
             "  %m = dataflow.mux %c, %d#0, %n : (i1, i32, i32) -> i32\n  dataflow.graph.return %s : none\n"));
  assert_non_null(strstr(text, "label=\"lane 1 of line 3\""));
  assert_non_null(strstr(text, "n2 -> n3 [color=black, taillabel=\"1\"]"));
  assert_non_null(strstr(text, "n2 -> n4 [color=black, taillabel=\"0\", headlabel=\"0\"]"));
  assert_non_null(strstr(text, "i0 -> n5 [color=black, style=dashed]"));
  free(text);
}

static void test_rings(void **state) {
  (void)state;
  char *text = draw_text(
      TOKENS("  %t = arith.constant true\n  %y = dataflow.carry %t, %x, %n : i32\n  %n = arith.addi %y, %x : i32\n"
             "  dataflow.graph.return %s : none\n"));
  assert_non_null(strstr(text, "label=\"ring of 2 ops\""));
  assert_non_null(strstr(text, "n2 -> n1 [color=\"#c9831d\", penwidth=2.5]"));
  free(text);
}

static void test_refused(void **state) {
  (void)state;
  world w = world_new();
  weft_text text = {0};
  weft_mlir_file *file = world_must_parse(
      &w, TOKENS("  %c = arith.constant true\n  scf.if %c {\n  }\n  dataflow.graph.return %s : none\n"));
  assert_int_equal(weft_dataflow_dot(w.context, weft_mlir_lookup(file->modules[0], "g"), "test.mlir", &text, w.diag),
                   WEFT_INVALID);
  assert_non_null(strstr(world_message(&w), "scf.if is no token op"));
  assert_int_equal(text.length, 0);
  weft_text_free(&text);
  weft_mlir_file_free(file);
  world_free(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_lanes),
                                     cmocka_unit_test(test_rings), cmocka_unit_test(test_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
