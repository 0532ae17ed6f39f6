/* The lowering: the seed's example, refusals, cases, faults and what the checks say. */
#include "df_support.h"

static char *read_case(const char *name) {
  char path[512], *text;
  size_t length;
  snprintf(path, sizeof path, WEFT_SOURCE_DIR "/tests/cases/dataflow/%s", name);
  assert_int_equal(weft_read_file(path, &text, &length, NULL), WEFT_OK);
  return text;
}

/* ---- the seed's example ----------------------------------------------------------------------------------------- */

/* Pairs the ops of two graphs whose order differs: from the return backwards, then whatever has paired operands only.
 * Equal when every op has a partner with the same name, attributes and operands. Marks: 1 + the number of the pair. */
typedef struct pairing {
  weft_mlir_op *left[200], *right[200];
  uint32_t count;
} pairing;

static bool pair_up(pairing *p, weft_mlir_op *a, weft_mlir_op *b) {
  if (a->mark || b->mark) return a->mark == b->mark;
  bool same = a->name == b->name && a->operand_count == b->operand_count && a->result_count == b->result_count;
  const weft_mlir_attribute *x = weft_mlir_attribute_of(a, "value"), *y = weft_mlir_attribute_of(b, "value");
  if (!same || x != y || weft_mlir_attribute_of(a, "predicate") != weft_mlir_attribute_of(b, "predicate")) return false;
  p->left[p->count] = a;
  p->right[p->count] = b;
  a->mark = b->mark = ++p->count;
  for (uint32_t i = 0; i < a->operand_count; i++) {
    weft_mlir_value *u = a->operands[i], *v = b->operands[i];
    if (u->is_argument != v->is_argument || u->index != v->index || u->type != v->type) return false;
    if (!u->is_argument && !pair_up(p, u->owner, v->owner)) return false;
  }
  return true;
}

static bool same_sources(const weft_mlir_op *a, const weft_mlir_op *b) {
  if (a->name != b->name || a->operand_count != b->operand_count) return false;
  for (uint32_t i = 0; i < a->operand_count; i++) {
    const weft_mlir_value *u = a->operands[i], *v = b->operands[i];
    if (u->is_argument != v->is_argument || u->index != v->index) return false;
    if (!u->is_argument && ((weft_mlir_op *)u->owner)->mark != ((weft_mlir_op *)v->owner)->mark) return false;
  }
  return true;
}

static void expect_same_wiring(const weft_mlir_op *a, const weft_mlir_op *b) {
  pairing p = {.count = 0};
  weft_mlir_block *x = weft_mlir_op_block(a, 0), *y = weft_mlir_op_block(b, 0);
  uint32_t left = 0, right = 0;
  for (weft_mlir_op *op = x->first; op; op = op->next, left++) op->mark = 0;
  for (weft_mlir_op *op = y->first; op; op = op->next, right++) op->mark = 0;
  assert_int_equal(left, right);
  assert_true(pair_up(&p, x->last, y->last));
  for (weft_mlir_op *op = x->first; op; op = op->next) {
    for (weft_mlir_op *other = y->first; !op->mark && other; other = other->next)
      if (!other->mark && same_sources(op, other)) assert_true(pair_up(&p, op, other));
    if (!op->mark) fail_msg("%s in line %u has no partner", op->name->text, op->line);
  }
}

static void test_seed_example(void **state) {
  (void)state;
  world w = world_new();
  char *structured = read_case("seeds/while-structured.mlir"), *lowered = read_case("seeds/while-lowered.mlir");
  weft_mlir_file *given = world_must_parse(&w, structured), *expected = world_must_parse(&w, lowered);
  assert_int_equal(weft_lower(w.context, given->arena, given->modules[0], "seed", w.diag), WEFT_OK);
  for (int i = 0; i < 2; i++) {
    const char *name = i ? "while_case1" : "while_case0";
    expect_same_wiring(weft_mlir_lookup(given->modules[0], name), weft_mlir_lookup(expected->modules[0], name));
  }
  free(structured);
  free(lowered);
  weft_mlir_file_free(given);
  weft_mlir_file_free(expected);
  world_free(&w);
}

/* ---- refusals --------------------------------------------------------------------------------------------------- */

/* Lowering or publishing `text` fails with these words in this line, and the module stays as it was. */
static void expect_not_lowered(bool publish, const char *text, uint64_t line, const char *words) {
  world w = world_new();
  weft_mlir_file *file = world_must_parse(&w, text);
  char *before = print_module(file->modules[0], true);
  weft_status status = publish ? weft_publish(w.context, file->arena, file->modules[0], "test.mlir", w.diag)
                               : weft_lower(w.context, file->arena, file->modules[0], "test.mlir", w.diag);
  if (status != WEFT_INVALID) fail_msg("accepted, but expected: %s", words);
  assert_int_equal(weft_diag_count(w.diag), 1);
  if (!strstr(world_message(&w), words)) fail_msg("the message is \"%s\", expected \"%s\"", world_message(&w), words);
  assert_int_equal(weft_diag_message(w.diag, 0)->place.line, line);
  assert_true(weft_diag_message(w.diag, 0)->place.column > 0);
  assert_string_equal(weft_diag_message(w.diag, 0)->place.file, "test.mlir");
  char *after = print_module(file->modules[0], true);
  assert_string_equal(before, after);
  free(before);
  free(after);
  weft_mlir_file_free(file);
  world_free(&w);
}

#define GRAPH(body)                                                                                                    \
  "dataflow.graph private @ok(%s: none, %n: index, %m: memref<?xi32>) -> () attributes {input_segments = array<i32: "  \
  "1, 0, 1>} {\n"                                                                                                      \
  "  %c = arith.constant 0 : index\n  %v = memref.load %m[%c] : memref<?xi32>\n  dataflow.graph.return %s : none\n}\n" \
  "dataflow.graph private @bad(%s: none, %n: index, %x: i32, %m: memref<?xi32>) -> () attributes {input_segments = "   \
  "array<i32: 2, 0, 1>} {\n" body "  dataflow.graph.return %s : none\n}\n"

static void test_memories_too_large(void **state) {
  (void)state;
  /* Memories that cannot be, used or not: the least that is too large, by any of its extents. */
  expect_not_lowered(
      false,
      GRAPH(
          "  %a = memref.alloc() : memref<16385x16384xi32>\n  memref.store %x, %a[%n, %n] : memref<16385x16384xi32>\n"),
      7, "the buffer is too large");
  static const char *const sizes[] = {"1152921504606846976xi32", "2x576460752303423488xi8", "?x1152921504606846976xi1",
                                      "9223372036854775807x2xf32"};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char text[300];
    snprintf(text, sizeof text,
             "\nfunc.func @f(%%m: memref<%s>, %%k: memref<4xi32>, %%i: index) -> i32 {\n"
             "  %%x = memref.load %%k[%%i] : memref<4xi32>\n  return %%x : i32\n}\n",
             sizes[i]);
    expect_not_lowered(false, text, 2, "a memory argument is too large");
  }
}

static void test_refusals(void **state) {
  (void)state;
  expect_not_lowered(
      false,
      GRAPH("  scf.parallel (%i) = (%n) to (%n) step (%n) { memref.store %x, %m[%i] : memref<?xi32> scf.reduce }\n"), 7,
      "cannot lower scf.parallel: a parallel form has no order of its own");
  expect_not_lowered(false, GRAPH("  scf.forall (%i) in (%n) { memref.store %x, %m[%i] : memref<?xi32> }\n"), 7,
                     "cannot lower scf.forall");
  expect_not_lowered(false, GRAPH("  scf.execute_region { memref.store %x, %m[%n] : memref<?xi32> scf.yield }\n"), 7,
                     "its effects are not known");
  expect_not_lowered(false, GRAPH("  memref.store %x, %m[%n] : memref<?xi32>\n  \"test.effect\"(%x) : (i32) -> ()\n"),
                     8, "cannot lower test.effect: its effects are not known");
  expect_not_lowered(false, GRAPH("  memref.store %x, %m[%n] : memref<?xi32>\n  memref.dealloc %m : memref<?xi32>\n"),
                     8, "cannot lower memref.dealloc");
  expect_not_lowered(false,
                     GRAPH("  %g = \"memref.get_global\"() <{name = @z}> : () -> memref<?xi32>\n  memref.store %x, "
                           "%g[%n] : memref<?xi32>\n"),
                     7, "cannot lower memref.get_global");
  expect_not_lowered(false,
                     GRAPH("  %a = memref.alloca() : memref<4xi32>\n  memref.store %x, %a[%n] : memref<4xi32>\n"), 7,
                     "cannot lower memref.alloca");
  expect_not_lowered(false,
                     GRAPH("  %r = scf.for %i = %n to %n step %n iter_args(%k = %m) -> (memref<?xi32>) { scf.yield %k "
                           ": memref<?xi32> }\n"
                           "  memref.store %x, %m[%n] : memref<?xi32>\n"),
                     7, "structured control carries a memref");
  expect_not_lowered(false,
                     GRAPH("  %t = arith.constant true\n  %s2 = arith.select %t, %m, %m : memref<?xi32>\n  "
                           "memref.store %x, %m[%n] : memref<?xi32>\n"),
                     8, "the memref's root is not known");
  expect_not_lowered(false, GRAPH("  memref.store %x, %m[%n] {volatile} : memref<?xi32>\n"), 7,
                     "the access is volatile");
  expect_not_lowered(false,
                     GRAPH("  \"memref.atomic_rmw\"(%x, %m, %n) <{kind = 0 : i64}> : (i32, memref<?xi32>, index) -> "
                           "i32\n  memref.store %x, %m[%n] : memref<?xi32>\n"),
                     7, "cannot lower memref.atomic_rmw");
  expect_not_lowered(
      false, GRAPH("  %a = memref.alloc() : memref<4xi32, strided<[2]>>\n  memref.store %x, %m[%n] : memref<?xi32>\n"),
      7, "the memref has a layout");
  expect_not_lowered(false,
                     GRAPH("  %k = arith.addi %n, %n : index\n  %a = memref.alloc(%k) : memref<?xi32>\n  memref.store "
                           "%x, %m[%n] : memref<?xi32>\n"),
                     8, "the size is computed inside the graph");
  expect_not_lowered(
      false, GRAPH("  %a = memref.alloc(%n) : memref<?xi32>\n  memref.copy %m, %a : memref<?xi32> to memref<?xi32>\n"),
      8, "the number of elements is not known");
  expect_not_lowered(false,
                     GRAPH("  %a = dataflow.sync %x : (i32) -> i32\n  memref.store %x, %m[%n] : memref<?xi32>\n"), 7,
                     "token ops stand beside structured ones");
  expect_not_lowered(
      false,
      GRAPH("  %v = \"vector.broadcast\"(%x) : (i32) -> vector<4xi32>\n  memref.store %x, %m[%n] : memref<?xi32>\n"), 7,
      "cannot lower vector.broadcast");
  expect_not_lowered(false,
                     "func.func @bad(%m: memref<*xi32>, %k: memref<?xi32>, %n: index, %x: i32) {\n  memref.store %x, "
                     "%k[%n] : memref<?xi32>\n  memref.copy %m, %k : memref<*xi32> to memref<?xi32>\n  return\n}\n",
                     3, "the memref is unranked");
  expect_not_lowered(false,
                     "func.func @bad(%m: memref<?x?xi32>, %n: index, %x: i32) {\n  memref.store %x, %m[%n, %n] : "
                     "memref<?x?xi32>\n  return\n}\n",
                     2, "only the first extent may be dynamic");
  expect_not_lowered(false,
                     "func.func @bad(%m: memref<?xvector<4xi32>>, %n: index) {\n  %v = memref.load %m[%n] : "
                     "memref<?xvector<4xi32>>\n  return\n}\n",
                     2, "the element type is no scalar");
  expect_not_lowered(false,
                     GRAPH("  %v = \"memref.load\"(%m, %n) {ordering = 1 : i64} : (memref<?xi32>, index) -> i32\n"), 7,
                     "the access is atomic");
  expect_not_lowered(
      false, GRAPH("  %v = arith.constant dense<1> : vector<4xi32>\n  memref.store %x, %m[%n] : memref<?xi32>\n"), 7,
      "the constant is no scalar");
  expect_not_lowered(false,
                     "dataflow.graph private @bad(%s: none, %w: i128, %n: index, %x: i32, %m: memref<?xi32>) -> () "
                     "attributes {input_segments = array<i32: 3, 0, 1>} {\n"
                     "  memref.store %x, %m[%n] : memref<?xi32>\n  dataflow.graph.return %s : none\n}\n",
                     1, "an argument has a type that tokens cannot have");
  expect_not_lowered(
      false,
      GRAPH("  %t = arith.constant true\n  %k = arith.extsi %x : i32 to i128\n  %r = scf.if %t -> (i128) "
            "{ scf.yield %k : i128 } else { scf.yield %k : i128 }\n  memref.store %x, %m[%n] : "
            "memref<?xi32>\n"),
      8, "a value has a type that tokens cannot have");
  expect_not_lowered(false,
                     "func.func @bad(%m: memref<?xi32>, %n: index, %x: i32) {\n  memref.store %x, %m[%n] : "
                     "memref<?xi32>\n  \"cf.br\"()[^bb1] : () -> ()\n^bb1:\n  return\n}\n",
                     1, "its body has several blocks");
  expect_not_lowered(false,
                     "func.func @bad(%m: memref<?x4294967296x4294967296xi32>, %n: index) {\n  %v = memref.load %m[%n, "
                     "%n, %n] : memref<?x4294967296x4294967296xi32>\n  return\n}\n",
                     2, "the memref is too large");
  expect_not_lowered(false,
                     "func.func @bad(%m: memref<1x1x1x1x1x1x1x1x1xi32>, %k: memref<1x1x1x1x1x1x1x1x1xi32>) {\n  "
                     "memref.copy %m, %k : memref<1x1x1x1x1x1x1x1x1xi32> to memref<1x1x1x1x1x1x1x1x1xi32>\n  "
                     "return\n}\n",
                     2, "the memref has more than 8 dimensions");
  expect_not_lowered(false,
                     GRAPH("  %t = arith.constant true\n  %r = scf.if %t -> (memref<?xi32>) { scf.yield %m : "
                           "memref<?xi32> } else { scf.yield %m : memref<?xi32> }\n  memref.store %x, %m[%n] : "
                           "memref<?xi32>\n"),
                     8, "structured control carries a memref");
  expect_not_lowered(
      false,
      GRAPH("  %t = arith.constant true\n  %r = scf.while (%k = %m) : (memref<?xi32>) -> memref<?xi32> { "
            "scf.condition(%t) %k : memref<?xi32> } do {\n  ^bb0(%q: memref<?xi32>): scf.yield %q : "
            "memref<?xi32> }\n  memref.store %x, %m[%n] : memref<?xi32>\n"),
      8, "structured control carries a memref");
  expect_refused("dataflow.graph private @g(%x: i32) -> () {\n dataflow.graph.return %x : i32\n}", 1,
                 "a graph's first argument must be its start");
  expect_refused("dataflow.graph private @g(%s: none, %x: i32) -> () attributes {weft.input_order = array<i64: 1>} {\n "
                 "dataflow.graph.return %s : none\n}",
                 1, "weft.input_order must hold the place of each input");
  expect_refused("func.func @f() -> i32 {\n}", 1, "a block of @f has no terminator");
}

#define REGION(segments, operands, arguments, types, body)                                                             \
  "\"loom.spatial_region\"(" operands ") <{operandSegmentSizes = array<i32: " segments                                 \
  ">, resultSegmentSizes = array<i32: 0, 0>}> ({\n^bb0" arguments ":\n" body                                           \
  "\"loom.spatial_yield\"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()\n}) {source_maps = []} : (" types    \
  ") -> ()\n"
#define EMPTY REGION("0, 0, 0, 0", "", "", "", "")
#define THREAD(body)                                                                                                   \
  "dataflow.thread private @fine(%v: i32) ctrl (%s: none) {\n" EMPTY "}\n"                                             \
  "dataflow.thread private @t(%v: i32, %n: index, %c: !dataflow.channel<i32>) ctrl (%s: none) {\n" body "}\n"

static void test_publish_refusals(void **state) {
  (void)state;
  expect_not_lowered(true, THREAD("scf.parallel (%i) = (%n) to (%n) step (%n) {\n" EMPTY "scf.reduce }\n"), 9,
                     "it stands under a parallel form");
  expect_not_lowered(true, THREAD("scf.forall (%i) in (%n) {\n" EMPTY "}\n"), 9, "it stands under a parallel form");
  expect_not_lowered(
      true,
      THREAD(REGION("1, 0, 0, 1", "%n, %c", "(%a: index, %o: !dataflow.channel<i32>)", "index, !dataflow.channel<i32>",
                    "%z = arith.constant 3 : i32\nscf.parallel (%i) = (%a) to (%a) step (%a) {\n"
                    "dataflow.channel.send %o, %z : !dataflow.channel<i32>\nscf.reduce }\n")),
      11, "cannot lower scf.parallel: a parallel form has no order of its own");
  expect_not_lowered(
      true,
      THREAD("\"loom.spatial_region\"(%c) <{operandSegmentSizes = array<i32: 0, 1, 0, 0>, resultSegmentSizes = "
             "array<i32: 0, 0>}> ({\n^bb0(%i: !dataflow.channel<i32>):\n"
             "%k = arith.constant 1 : index\nscf.forall (%q) in (%k) {\n"
             "%x = dataflow.channel.receive %i : !dataflow.channel<i32>\n}\n"
             "\"loom.spatial_yield\"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()\n"
             "}) {source_maps = [affine_map<() -> ()>]} : (!dataflow.channel<i32>) -> ()\n"),
      11, "cannot lower scf.forall");
  expect_not_lowered(true, THREAD("scf.execute_region {\n" EMPTY "scf.yield }\n"), 9,
                     "completion cannot be handed through");
  expect_not_lowered(true, "func.func @f() {\n" EMPTY "return\n}\n", 2, "completion cannot be handed through");
  expect_not_lowered(true,
                     THREAD("\"dataflow.thread.launch\"() <{callee = @fine, operandSegmentSizes = array<i32: 0, 0, "
                            "0>}> : () -> ()\n" EMPTY),
                     8, "a thread is launched inside a thread");
  expect_not_lowered(true, EMPTY, 1, "completion cannot be handed through");
  expect_not_lowered(true, "func.func private @f() {\n" EMPTY "return\n}\n" THREAD("func.call @f() : () -> ()\n" EMPTY),
                     2, "completion cannot be handed through");
  expect_not_lowered(
      true,
      THREAD("%r = \"loom.spatial_region\"() <{operandSegmentSizes = array<i32: 0, 0, 0, 0>, "
             "resultSegmentSizes = array<i32: 0, 1>}> ({\n^bb0:\n%a = memref.alloc() : memref<4xi32>\n"
             "\"loom.spatial_yield\"(%a) <{operandSegmentSizes = array<i32: 0, 1>}> : (memref<4xi32>) -> "
             "()\n}) {source_maps = []} : () -> memref<4xi32>\n"),
      11, "a memory result is no memory input of the region");
  expect_not_lowered(
      true,
      THREAD(REGION("1, 0, 0, 1", "%v, %c", "(%a: i32, %o: !dataflow.channel<i32>)", "i32, !dataflow.channel<i32>",
                    "%x = dataflow.channel.receive %o : !dataflow.channel<i32>\n")),
      10, "the channel is bound in the other direction");
  expect_not_lowered(
      true,
      THREAD("\"loom.spatial_region\"(%c) <{operandSegmentSizes = array<i32: 0, 1, 0, 0>, resultSegmentSizes = "
             "array<i32: 0, 0>}> ({\n"
             "^bb0(%i: !dataflow.channel<i32>):\n%x = dataflow.channel.receive %i : !dataflow.channel<i32>\n"
             "\"loom.spatial_yield\"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()\n"
             "}) {source_maps = [affine_map<() -> ()>]} : (!dataflow.channel<i32>) -> ()\n"
             "dataflow.channel.send %c, %v : !dataflow.channel<i32>\n"),
      10, "only a later send of the same thread could feed this receive");
  expect_not_lowered(true,
                     THREAD("\"loom.spatial_region\"(%c) <{operandSegmentSizes = array<i32: 0, 1, 0, 0>, "
                            "resultSegmentSizes = array<i32: 0, 0>}> ({\n"
                            "^bb0(%i: !dataflow.channel<i32>):\n"
                            "\"loom.spatial_yield\"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()\n"
                            "}) {source_maps = [affine_map<(d0) -> (d0)>]} : (!dataflow.channel<i32>) -> ()\n"),
                     8, "one dimension for each of the thread's grid");
  expect_not_lowered(true,
                     THREAD("\"loom.spatial_region\"() <{operandSegmentSizes = array<i32: 0, 0, 0, 0>, "
                            "resultSegmentSizes = array<i32: 0, 0>}> ({\n"
                            "^bb0:\n\"loom.spatial_yield\"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()\n"
                            "}) {graph_name = \"fine\", source_maps = []} : () -> ()\n"),
                     8, "a symbol of its graph_name is there already");
  expect_not_lowered(true,
                     THREAD(REGION("1, 0, 0, 0", "%v", "(%a: i32)", "i32", "\"test.effect\"(%a) : (i32) -> ()\n")), 10,
                     "cannot lower test.effect");
}

/* ---- cases ------------------------------------------------------------------------------------------------------ */

static void run_case(const char *name, const weft_case_options *options) {
  char mlir[512], json[512];
  world w = world_new();
  weft_mlir_file *file;
  snprintf(mlir, sizeof mlir, WEFT_SOURCE_DIR "/tests/cases/dataflow/%s.mlir", name);
  snprintf(json, sizeof json, WEFT_SOURCE_DIR "/tests/cases/dataflow/%s.json", name);
  if (weft_mlir_read(w.context, mlir, &file, w.diag) != WEFT_OK) fail_msg("%s: %s", name, world_message(&w));
  weft_case_result result;
  weft_status status = weft_case_run(w.context, file->modules[0], mlir, json, options, &result, w.diag);
  if (status != WEFT_OK || result.failures || !result.launches) fail_msg("%s: %s", name, world_message(&w));
  weft_mlir_file_free(file);
  world_free(&w);
}

static const char *const structured_cases[] = {"001-zero-trip-for",
                                               "003-store-after-load",
                                               "004-two-arrays-may-alias",
                                               "005-if-in-while-unequal",
                                               "007-carried-values-swapped",
                                               "009-index-wraps",
                                               "011-dynamic-triangular",
                                               "013-unused-results",
                                               "014-store-only-in-last-round",
                                               "018-one-predicate-two-ifs",
                                               "020-counting-down",
                                               "022-branches-with-memory",
                                               "025-stores-in-both-regions",
                                               "027-floats-and-wide-counter",
                                               "028-value-used-in-one-branch",
                                               "030-reverse-in-place",
                                               "032-value-result-of-graph",
                                               "101-ranks-and-copies",
                                               "102-memory-before-values",
                                               "103-threads"};
static const char *const token_cases[] = {"040-tokens-carry", "042-tokens-gate", "044-tokens-loop-with-memory",
                                          "104-tokens-kept"};
enum {
  STRUCTURED = sizeof structured_cases / sizeof *structured_cases,
  TOKEN = sizeof token_cases / sizeof *token_cases
};

static void test_cases_interpreted(void **state) {
  (void)state;
  for (int i = 0; i < STRUCTURED; i++) run_case(structured_cases[i], &(weft_case_options){.mode = WEFT_CASE_INTERPRET});
}

static void test_cases_simulated(void **state) {
  (void)state;
  for (int i = 0; i < STRUCTURED + TOKEN; i++)
    for (uint64_t seed = 0; seed < 6; seed++) {
      weft_case_options options = {.mode = WEFT_CASE_SIMULATE,
                                   .simulator = {.seed = seed, .order = seed ? WEFT_ORDER_RANDOM : WEFT_ORDER_PROGRAM}};
      if (seed == 5) options.simulator.capacity = UINT64_MAX;
      run_case(i < STRUCTURED ? structured_cases[i] : token_cases[i - STRUCTURED], &options);
    }
}

/* ---- the simulator ---------------------------------------------------------------------------------------------- */

/* Runs @g of a text without inputs but the start; the state and what the report says. */
static weft_run_state simulate(const char *text, uint64_t capacity, bool strict, char *said, size_t size) {
  world w = world_new();
  weft_mlir_file *file = world_must_parse(&w, text);
  weft_simulator_options options = {.capacity = capacity, .strict = strict};
  weft_simulator *machine;
  assert_int_equal(weft_simulator_new(weft_mlir_lookup(file->modules[0], "g"), "test.mlir", &options, &machine, w.diag),
                   WEFT_OK);
  assert_int_equal(weft_simulator_start(machine, NULL, 0, NULL, 0, w.diag), WEFT_OK);
  weft_run_state result = weft_simulator_run(machine, 1000);
  snprintf(said, size, "%s", weft_simulator_report(machine)->text ? weft_simulator_report(machine)->text : "");
  weft_simulator_free(machine);
  weft_mlir_file_free(file);
  world_free(&w);
  return result;
}

#define TOKENS(body) "dataflow.graph private @g(%s: none) -> () {\n" body "}\n"

static void test_deadlock_is_explained(void **state) {
  (void)state;
  char said[1000];
  assert_int_equal(
      simulate(TOKENS("  %f = arith.constant false\n  %x:2 = dataflow.demux %f, %s : (i1, none) -> (none, none)\n"
                      "  %y:2 = dataflow.sync %x#0, %x#1 : (none, none) -> (none, none)\n  dataflow.graph.return %y#0 "
                      ": none\n"),
               2, false, said, sizeof said),
      WEFT_RUN_STUCK);
  assert_non_null(strstr(said, "line 4: dataflow.sync waits for operand 1 (dataflow.demux in line 3)"));
}

static void test_leftovers(void **state) {
  (void)state;
  char said[1000];
  const char *text = TOKENS(
      "  %c = arith.constant true\n  %v = dataflow.invariant %c, %s : none\n  dataflow.graph.return %s : none\n");
  assert_int_equal(simulate(text, 2, false, said, sizeof said), WEFT_RUN_DONE);
  assert_int_equal(simulate(text, 2, true, said, sizeof said), WEFT_RUN_FAULT);
  assert_non_null(strstr(said, "line 3: dataflow.invariant is not in its first state"));
  text = TOKENS("  %c = arith.constant 1 : i32\n  %d = dataflow.constant %s {const_value = 2 : i32} : i32\n"
                "  %e = arith.constant 0 : index\n  %m = dataflow.mux %e, %c, %d, %d : (index, i32, i32, i32) -> i32\n "
                " dataflow.graph.return %s : none\n");
  assert_int_equal(simulate(text, 2, true, said, sizeof said), WEFT_RUN_FAULT);
  assert_non_null(strstr(said, "line 5: dataflow.mux did not take a token"));
}

static void test_faults(void **state) {
  (void)state;
  char said[1000];
  assert_int_equal(simulate(TOKENS("  %a = arith.constant 1 : i32\n  %z = arith.constant 0 : i32\n  %d = arith.divsi "
                                   "%a, %z : i32\n  dataflow.graph.return %s : none\n"),
                            2, false, said, sizeof said),
                   WEFT_RUN_FAULT);
  assert_string_equal(said, "arith.divsi in line 4: division by zero");
  assert_int_equal(simulate(TOKENS("  %a = arith.constant -2147483648 : i32\n  %z = arith.constant -1 : i32\n  %d = "
                                   "arith.divsi %a, %z : i32\n  dataflow.graph.return %s : none\n"),
                            2, false, said, sizeof said),
                   WEFT_RUN_FAULT);
  assert_int_equal(
      simulate(
          TOKENS("  %a = arith.constant 32 : i32\n  %d = arith.shli %a, %a : i32\n  dataflow.graph.return %s : none\n"),
          2, false, said, sizeof said),
      WEFT_RUN_FAULT);
  assert_int_equal(simulate(TOKENS("  %a = arith.constant 3 : index\n  %m = dataflow.mux %a, %a, %a, %a : (index, "
                                   "index, index, index) -> index\n  dataflow.graph.return %s : none\n"),
                            2, false, said, sizeof said),
                   WEFT_RUN_FAULT);
  assert_non_null(strstr(said, "the selector is beyond the last lane"));
  assert_int_equal(simulate(TOKENS("  %a = arith.constant 0 : i64\n  %b:2 = dataflow.stream %a, %a, %a step add while "
                                   "slt : i64\n  dataflow.graph.return %s : none\n"),
                            2, false, said, sizeof said),
                   WEFT_RUN_FAULT);
  assert_int_equal(simulate(TOKENS("  %m = memref.alloc() : memref<2xi32>\n  %a = arith.constant 1 : index\n  %l:2 = "
                                   "dataflow.load %m[%a] %s : memref<2xi32>\n"
                                   "  dataflow.graph.return %l#1 : none\n"),
                            2, false, said, sizeof said),
                   WEFT_RUN_FAULT);
  assert_non_null(strstr(said, "never written"));
}

/* A queue of one suffices for a ring that takes its own token in the firing that puts the next. */
static void test_room_of_an_own_token(void **state) {
  (void)state;
  char said[1000];
  assert_int_equal(
      simulate(TOKENS("  %b = arith.constant 0 : i64\n  %n = arith.constant 3 : i64\n  %o = arith.constant 1 : i64\n"
                      "  %i:2 = dataflow.stream %b, %n, %o step add while slt : i64\n  %c = dataflow.carry %i#1, %s, "
                      "%c : none\n"
                      "  dataflow.graph.return %s : none\n"),
               2, false, said, sizeof said),
      WEFT_RUN_DONE);
}

static void test_checks(void **state) {
  (void)state;
  world w = world_new();
  weft_mlir_file *file = world_must_parse(&w, "dataflow.graph private @g(%s: none, %m: memref<?xi32>) -> () attributes "
                                              "{input_segments = array<i32: 0, 0, 1>} {\n"
                                              "  %c = arith.constant 0 : index\n  %l:2 = dataflow.load %m[%c] %s : "
                                              "memref<?xi32>\n  dataflow.graph.return %s : none\n}");
  assert_int_equal(weft_lowering_check(file->modules[0], "test.mlir", w.diag), WEFT_INVALID);
  assert_non_null(strstr(world_message(&w), "the completion does not wait for this access"));
  weft_mlir_file_free(file);
  world_free(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_seed_example),
      cmocka_unit_test(test_memories_too_large),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_publish_refusals),
      cmocka_unit_test(test_cases_interpreted),
      cmocka_unit_test(test_cases_simulated),
      cmocka_unit_test(test_deadlock_is_explained),
      cmocka_unit_test(test_leftovers),
      cmocka_unit_test(test_faults),
      cmocka_unit_test(test_room_of_an_own_token),
      cmocka_unit_test(test_checks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
