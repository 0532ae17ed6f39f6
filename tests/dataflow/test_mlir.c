/* MLIR text: what is read, what is printed, what is refused and how. */
#include "df_support.h"

/* ---- round trips ------------------------------------------------------------------------------------------------ */

/* The text, its custom and its generic form are one module, and printing is a fixed point. */
static void expect_round_trip(const char *text) {
  world w = world_new();
  weft_arena *arena = weft_arena_new();
  weft_mlir_file *first = world_must_parse(&w, text);
  for (int generic = 0; generic < 2; generic++) {
    char *printed = print_module(first->modules[0], generic);
    weft_mlir_file *again = world_must_parse(&w, printed);
    const char *why = "";
    if (!weft_mlir_equal(first->modules[0], again->modules[0], arena, &why)) fail_msg("%s\n%s", why, printed);
    char *twice = print_module(again->modules[0], generic);
    assert_string_equal(printed, twice);
    free(printed);
    free(twice);
    weft_mlir_file_free(again);
  }
  weft_mlir_file_free(first);
  weft_arena_free(arena);
  world_free(&w);
}

static void test_round_trips(void **state) {
  (void)state;
  expect_round_trip("");
  expect_round_trip("module @m attributes {a.b = 1 : i8, \"odd name\" = [1, 2.5, \"x\\0A\\22\", @s::@t, unit]} {}");
  expect_round_trip(
      "func.func private @f(i32, memref<?x4xf32>) -> (i32 {x.y}, f64)\n"
      "func.func @g(%a: i32 {llvm.noalias, n = 3 : i64}, %b: vector<[4]x2xi1>) attributes {k} { return }");
  expect_round_trip("func.func @f(%a: i32, %b: i1, %c: f32, %i: index) -> (i32, f32) {\n"
                    "  %0 = arith.addi %a, %a overflow<nsw, nuw> : i32\n  %1 = arith.divsi %0, %a exact : i32\n"
                    "  %2 = arith.cmpi ult, %1, %a : i32\n  %3 = arith.select %2, %0, %1 {t.t = 1 : i32} : i32\n"
                    "  %4 = arith.cmpf one, %c, %c fastmath<nnan> : f32\n  %5 = math.fma %c, %c, %c : f32\n"
                    "  %6 = arith.truncf %5 : f32 to f16\n  %7 = arith.index_cast %i : index to i8\n"
                    "  %8 = arith.constant dense<[[1, 2], [3, -4]]> : tensor<2x2xi8>\n  %9 = arith.constant dense<1.5> "
                    ": tensor<7xbf16>\n"
                    "  return %3, %5 : i32, f32\n}");
  expect_round_trip(
      "func.func @f(%n: index, %m: memref<?x8xf32>, %z: i32) {\n"
      "  %c = arith.constant 2 : index\n  %al = memref.alloc(%n) {alignment = 64 : i64} : memref<?x8xf32>\n"
      "  memref.copy %m, %al : memref<?x8xf32> to memref<?x8xf32>\n"
      "  scf.for unsigned %i = %c to %n step %c : index { }\n"
      "  %r:2 = scf.for %i = %z to %z step %z iter_args(%a = %z, %b = %n) -> (i32, index) : i32 { scf.yield %i, %b : "
      "i32, index }\n"
      "  %w = scf.while (%x = %z) : (i32) -> index { %t = arith.constant true scf.condition(%t) %n : index } do {\n"
      "  ^bb0(%k: index): scf.yield %z : i32 }\n"
      "  %s:2 = scf.index_switch %w -> i32, index case -3 { scf.yield %z, %n : i32, index } default { scf.yield %z, %n "
      ": i32, index }\n"
      "  %v = memref.load %m[%w, %c] : memref<?x8xf32>\n  memref.store %v, %al[%c, %w] {nontemporal = true} : "
      "memref<?x8xf32>\n"
      "  return\n}");
}

static void test_dataflow_forms(void **state) {
  (void)state;
  expect_round_trip(
      "dataflow.graph private @g(%s: none, %c: i1, %v: i32, %m: memref<?xi32>) -> (i32, memref<?xi32>)\n"
      "    attributes {input_segments = array<i32: 1, 1, 1>, result_segments = array<i32: 0, 1, 1>} {\n"
      "  %o = dataflow.carry %c, %v, %o : i32\n  %i = dataflow.invariant %c, %s : none\n"
      "  %g:2 = dataflow.gate %c, %v : i32\n  %k = dataflow.constant %i {const_value = 4 : index} : index\n"
      "  %l:2 = dataflow.load %m[%k] %i : memref<?xi32>\n  %d = dataflow.store %m[%k] %l#0 %l#1 : memref<?xi32>\n"
      "  %x:2 = dataflow.demux %c, %d : (i1, none) -> (none, none)\n"
      "  %y = dataflow.mux %k, %v, %v, %v : (index, i32, i32, i32) -> i32\n"
      "  %z:2 = dataflow.sync %x#0, %y : (none, i32) -> (none, i32)\n"
      "  %q:2 = dataflow.stream %v, %v, %v step add while ult : i32\n"
      "  dataflow.graph.return values() streams(%z#1 : i32) memories(%m : memref<?xi32>) complete(%z#0, %x#1 : none, "
      "none)\n}");
  expect_round_trip("dataflow.thread private @t domain(#dataflow.thread_domain<dense>)(%c: !dataflow.channel<i32>, %m: "
                    "memref<4xi32>) ctrl (%s: none) "
                    "iv (%i: index, %j: index) attributes {a.b} {\n"
                    "  %v = dataflow.channel.receive %c : !dataflow.channel<i32>\n  dataflow.channel.send %c, %v : "
                    "!dataflow.channel<i32>\n"
                    "  %r, %d = dataflow.graph.launch @g deps(%s) values() stream_inputs(%c source_map affine_map<(d0, "
                    "d1) -> (d0 * 2 - d1, d1 mod 3)>) "
                    "memories(%m) stream_outputs() : (none, !dataflow.channel<i32>, memref<4xi32>) -> (i32, none)\n"
                    "  dataflow.thread.yield %d : none\n}\n"
                    "dataflow.graph private @g(%s: none, %x: i32, %m: memref<4xi32>) -> i32 attributes {input_segments "
                    "= array<i32: 0, 1, 1>} {\n"
                    "  dataflow.graph.return %s, %x : none, i32\n}");
}

static void test_generic_forms(void **state) {
  (void)state;
  expect_round_trip("%a:3 = \"x.y\"() <{p = 1 : i32}> ({\n^bb0(%u: i32):\n  \"x.br\"(%u)[^bb2, ^bb1] : (i32) -> "
                    "()\n^bb1:\n  \"x.end\"() : () -> ()\n"
                    "^bb2:\n  \"x.end\"() : () -> ()\n}, {}) {q = !o.t<weird [text] -> {\"}\"}>} : () -> (i1, "
                    "tuple<i1, f32>, (i32) -> ((i1) -> i2))\n"
                    "\"x.use\"(%a#2, %a#0) : ((i32) -> ((i1) -> i2), i1) -> ()");
  expect_round_trip("\"x.g\"() ({\n  %0 = \"x.later\"(%1#1) : (f32) -> i8\n  %1:2 = \"x.def\"(%0) : (i8) -> (i1, "
                    "f32)\n}) : () -> ()");
  expect_round_trip(
      "#map = affine_map<(d0)[s0] -> (d0 floordiv 2 + s0 ceildiv 3, -d0)>\n!t = memref<2x?xi8, #map, 3 : i32>\n"
      "\"x.y\"() {m = #map, t = !t, d = #d.e<a b c>, s = strided<[1], offset: ?>, n = #d<x>} : () -> ()");
}

static void test_numbers(void **state) {
  (void)state;
  world w = world_new();
  weft_mlir_file *file = world_must_parse(
      &w, "\"x.y\"() {a = 255 : i8, b = -1 : i8, c = 0x7F800000 : f32, d = 0.1 : f32, e = 18446744073709551615 : i64,"
          " f = true, g = 5 : ui8, h = 1.0e300 : f64, i = -0.0 : f16} : () -> ()");
  const weft_mlir_op *op = weft_mlir_op_block(file->modules[0], 0)->first;
  assert_ptr_equal(weft_mlir_attribute_of(op, "a"), weft_mlir_attribute_of(op, "b"));
  assert_int_equal(weft_mlir_attribute_integer(op, "e", 0), -1);
  assert_int_equal(weft_mlir_attribute_of(op, "d")->as.bits, 0x3DCCCCCD);
  assert_int_equal(weft_mlir_attribute_of(op, "c")->as.bits, 0x7F800000);
  assert_int_equal(weft_mlir_attribute_of(op, "i")->as.bits, 0x8000);
  assert_true(weft_mlir_float_value(weft_mlir_float(w.context, "f64"), weft_mlir_attribute_of(op, "h")->as.bits) ==
              1.0e300);
  weft_text text = {0};
  weft_mlir_attribute_print(weft_mlir_attribute_of(op, "d"), &text);
  assert_string_equal(text.data, "1.000000e-01 : f32");
  weft_text_free(&text);
  weft_mlir_file_free(file);
  world_free(&w);
}

/* Narrow floats: every bit pattern of each 8-bit format is the rounding of its own value. */
static void test_narrow_floats(void **state) {
  (void)state;
  world w = world_new();
  static const char *const names[] = {"f8E5M2",     "f8E4M3",     "f8E3M4",       "f8E4M3FN",
                                      "f8E5M2FNUZ", "f8E4M3FNUZ", "f8E4M3B11FNUZ"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const weft_mlir_type *type = weft_mlir_float(w.context, names[i]);
    double before = -1;
    for (uint64_t bits = 0; bits < 128; bits++) {
      double value = weft_mlir_float_value(type, bits);
      uint64_t again;
      if (value != value) continue;
      assert_true(value > before);
      before = value;
      assert_true(weft_mlir_float_round(type, value, &again));
      assert_int_equal(again, bits);
    }
  }
  uint64_t bits;
  assert_true(weft_mlir_float_round(weft_mlir_float(w.context, "f8E4M3FN"), 448.0, &bits));
  assert_int_equal(bits, 0x7E);
  assert_true(weft_mlir_float_round(weft_mlir_float(w.context, "f16"), 65520.0, &bits)); /* halfway to 2^16: infinity */
  assert_int_equal(bits, 0x7C00);
  assert_true(weft_mlir_float_round(weft_mlir_float(w.context, "f16"), 0x1.8p-25, &bits));
  assert_int_equal(bits, 1);
  world_free(&w);
}

static void test_several_modules(void **state) {
  (void)state;
  world w = world_new();
  weft_mlir_file *file = world_must_parse(&w, "#m = affine_map<() -> ()>\nfunc.func private @a()\n// -----\n#m = "
                                              "affine_map<(d0) -> (d0)>\nfunc.func private @a()\n"
                                              "func.func private @b()\n// ----- and more\nmodule @last {}\n");
  assert_int_equal(file->module_count, 3);
  assert_non_null(weft_mlir_lookup(file->modules[1], "b"));
  assert_string_equal(weft_mlir_symbol_name(file->modules[2]), "last");
  weft_text text = {0};
  weft_mlir_print_file(file, (weft_mlir_print_options){0}, &text);
  weft_mlir_file *again = world_must_parse(&w, text.data);
  assert_int_equal(again->module_count, 3);
  weft_text_free(&text);
  weft_mlir_file_free(again);
  weft_mlir_file_free(file);
  world_free(&w);
}

static void test_locations(void **state) {
  (void)state;
  world w = world_new();
  weft_mlir_file *file = world_must_parse(&w, "#loc1 = loc(\"a.c\":3:4)\n\"x.y\"() : () -> () loc(fused<\"m\">[#loc1, "
                                              "callsite(\"f\"(unknown) at \"b.c\":1:2)])\n");
  weft_text text = {0};
  weft_mlir_print_to_text(file->modules[0], (weft_mlir_print_options){.locations = true}, &text);
  assert_non_null(strstr(text.data, "loc(fused<\"m\">[\"a.c\":3:4, callsite(\"f\"(unknown) at \"b.c\":1:2)])"));
  weft_text_free(&text);
  weft_mlir_file_free(file);
  world_free(&w);
}

/* ---- refusals --------------------------------------------------------------------------------------------------- */

static void test_messages(void **state) {
  (void)state;
  expect_refused("\n\n  %0 = \"a.b\"(%1) : (i32) -> i32", 3, "%1 is used but not defined");
  expect_refused("%0 = \"a.b\"() : () -> i32\n%0 = \"a.b\"() : () -> i32", 2, "%0 is defined a second time");
  expect_refused("%0:2 = \"a.b\"() : () -> i32", 1, "2 results are named here, but a.b has 1");
  expect_refused("%0 = \"a.b\"() : () -> i32\n\"a.c\"(%0) : (i64) -> ()", 2, "%0 has type i32, expected i64");
  expect_refused("\"a.b\"(%x) : (i64) -> ()\n%x = \"a.b\"() : () -> i32", 1, "%x is used here as i64");
  expect_refused("%0:2 = \"a.b\"() : () -> (i32, i32)\n\"a.c\"(%0#2) : (i32) -> ()", 2, "there is no #2");
  expect_refused("%0:2 = \"a.b\"() : () -> (i32, i32)\n\"a.c\"(%0) : (i32) -> ()", 2, "say which");
  expect_refused("\"a.b\"() : (i32) -> ()", 1, "expected 0 operand types");
  expect_refused("\"a.b\"() -> ()", 1, "expected ':'");
  expect_refused("arith.bogus", 1, "the op 'arith.bogus' is unknown");
  expect_refused("%0 = arith.constant 300 : i8", 1, "does not fit in i8");
  expect_refused("%0 = arith.constant 1 : f32", 1, "needs a decimal point");
  expect_refused("%0 = arith.constant dense<[1, 2]> : tensor<3xi32>", 1, "expected 3 elements here, found 2");
  expect_refused("\"a.b\"() {x = #nope} : () -> ()", 1, "the alias #nope is not defined");
  expect_refused("\"a.b\"() {x = 1, x = 2} : () -> ()", 1, "given twice");
  expect_refused("\"a.b\"() {x = \"open} : () -> ()", 1, "the string has no end");
  expect_refused("\"a.b\"() ({ ^bb0: ^bb0: }) : () -> ()", 1, "defined a second time");
  expect_refused("\"a.b\"()[^bb7] : () -> ()", 1, "not defined in its region");
  expect_refused("func.func private @f()\nfunc.func private @f()", 2, "@f is already defined in line 1");
  expect_refused("func.func @f(%a: i32) -> i32 { return }", 1, "do not have the result types");
  expect_refused("func.func @f() { %0 = arith.addi %1, %1 : i32\n %1 = arith.constant 1 : i32\n return }", 1,
                 "used before it is defined in line 2");
  expect_refused("dataflow.graph private @g(%s: none, %n: i32) -> (i32) {\n"
                 "  %a = arith.addi %b, %b : i32\n  %b = arith.addi %n, %n : i32\n  dataflow.graph.return %s, %a "
                 ": none, i32\n}\n",
                 2, "used before it is defined in line 3");
  expect_refused("dataflow.graph private @g(%s: none, %n: i32) -> (i32) {\n"
                 "  %t = arith.constant true\n  scf.if %t {\n    %a = arith.addi %b, %b : i32\n  }\n"
                 "  %b = arith.addi %n, %n : i32\n  dataflow.graph.return %s, %b : none, i32\n}\n",
                 4, "used before it is defined in line 6");
  // an op does not see what its own regions define, also where an earlier region asked for the same name
  expect_refused("func.func @f(%a: index) {\n scf.for %i = %a to %i step %a {\n }\n return\n}\n", 2,
                 "%i is used but not defined");
  expect_refused("func.func @f(%a: index) {\n scf.for %j = %a to %a step %a {\n %k = arith.addi %i, %a : index\n }\n"
                 " scf.for %i = %a to %i step %a {\n }\n return\n}\n",
                 3, "%i is used but not defined");
  expect_refused("!t = !dataflow.channel\n", 1, "takes 1 parameters");
  expect_refused("func.func @f(%c: i32) { func.func @g() { %0 = arith.addi %c, %c : i32 return } return }", 1,
                 "is used but not defined");
  expect_refused("module { module {", 1, "expected '}' at the end of a region, found the end of the text");
  expect_refused("\"scf.if\"() : () -> ()", 1, "a condition of type i1 and two regions");
  expect_refused("\"dataflow.graph.return\"() <{operandSegmentSizes = array<i32: 1>}> : () -> ()", 1, "adds up to 1");
}

/* The message shows the line and a caret below the place. */
static void test_caret(void **state) {
  (void)state;
  world w = world_new();
  assert_null(world_parse(&w, "module {\n  %0 = arith.addi %1 %1 : i32\n}\n"));
  const weft_message *message = weft_diag_message(w.diag, 0);
  assert_int_equal(message->place.line, 2);
  assert_int_equal(message->place.column, 22);
  assert_string_equal(message->text,
                      "expected ',', found '%1'\n      %0 = arith.addi %1 %1 : i32\n                         ^");
  world_free(&w);
}

static char *repeated(const char *piece, size_t count, const char *end) {
  size_t length = strlen(piece), tail = strlen(end);
  char *text = malloc(length * count + tail + 1);
  for (size_t i = 0; i < count; i++) memcpy(text + i * length, piece, length);
  memcpy(text + length * count, end, tail + 1);
  return text;
}

/* 100,000 levels of anything are refused, and nothing overflows. */
static void test_depth(void **state) {
  (void)state;
  static const char *const pieces[] = {"module {",
                                       "\"a.b\"() ({",
                                       "%0 = \"a.b\"() {x = [",
                                       "%0 = \"a.b\"() {x = {x =",
                                       "\"a.b\"() : (tuple<",
                                       "\"a.b\"() : ((i32) -> ",
                                       "\"a.b\"() {x = affine_map<(d0) -> ((((",
                                       "\"a.b\"() {x = !o.t<<",
                                       "func.func @f() { scf.execute_region {",
                                       "\"a.b\"() {x = dense<[",
                                       "\"a.b\"() : () -> () loc(callsite("};
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    const char *repeat = strlen(pieces[i]) > 12 && strchr("[<(= >", pieces[i][strlen(pieces[i]) - 1])
                             ? pieces[i] + strlen(pieces[i]) - 1
                             : pieces[i];
    char *deep = repeated(repeat, 100000, ""), *text = malloc(strlen(pieces[i]) + strlen(deep) + 1);
    strcpy(text, pieces[i]);
    strcat(text, deep);
    expect_refused(text, 0, "");
    free(deep);
    free(text);
  }
  char *modules = repeated("module {", 100000, "");
  expect_refused(modules, 1, "the nesting is deeper than 500 levels");
  static const char *const angles[] = {"\"t\"() {a = dense<", "\"t\"() {a = sparse<", "\"t\"() {a = #x.y<"};
  for (size_t i = 0; i < sizeof angles / sizeof *angles; i++) {
    char nested[2000];
    int length = snprintf(nested, sizeof nested, "%s", angles[i]);
    memset(nested + length, '[', 600);
    memset(nested + length + 600, ']', 600);
    strcpy(nested + length + 1200, ">} : () -> ()");
    expect_refused(nested, 1, "the nesting is deeper than 500 levels");
    strcpy(nested + length + 600, ">} : () -> ()");
    expect_refused(nested, 1, "the nesting is deeper than 500 levels");
    strcpy(nested + length, "[>} : () -> ()");
    expect_refused(nested, 1, "the '<' has no matching '>'");
  }
  free(modules);
  char *sum = repeated("d0 + ", 100000, "d0)>} : () -> ()"), *map = malloc(strlen(sum) + 64);
  strcpy(map, "\"a.b\"() {x = affine_map<(d0) -> (");
  strcat(map, sum);
  expect_refused(map, 1, "longer than");
  free(sum);
  free(map);
}

/* Mutated programs: every byte changed, every prefix cut; each ends in a module or in one message. */
static void test_hostile_bytes(void **state) {
  (void)state;
  static const char text[] = "#m = affine_map<(d0)[s0] -> (d0 * 2 + s0)>\nmodule @x attributes {q = #m} {\n  func.func "
                             "@f(%a: i32 {t}, %m: memref<?x4xi32>) -> (i32) {\n"
                             "    %c = arith.constant 2 : index\n    %r:2 = scf.while (%i = %a) : (i32) -> (i32, f32) "
                             "{\n      %t = arith.cmpi slt, %i, %a : i32\n"
                             "      %f = arith.constant 1.5 : f32\n      scf.condition(%t) %i, %f : i32, f32\n    } do "
                             "{\n    ^bb0(%k: i32, %g: f32):\n"
                             "      scf.yield %k : i32\n    }\n    %d = arith.constant dense<[[1, 2], [3, 4]]> : "
                             "tensor<2x2xi8>\n    return %r#0 : i32\n  }\n"
                             "  \"a.b\"() <{p = array<i32: 1, 2>}> ({ ^bb0(%z: !o<x>): \"e.e\"()[^bb1] : () -> ()\n "
                             "^bb1: }) : () -> () loc(\"f\":1:2)\n}\n";
  static const char odd[] = "\"<>(){}[]%#!@^:,=-0x.\\\n\0a";
  world w = world_new();
  char *copy = malloc(sizeof text);
  for (size_t i = 0; i < sizeof text - 1; i++) {
    weft_mlir_file *file;
    memcpy(copy, text, sizeof text);
    copy[i] = '\0';
    weft_diag_clear(w.diag);
    if (weft_mlir_parse(w.context, "cut", copy, i, false, &file, w.diag) == WEFT_OK) weft_mlir_file_free(file);
    for (size_t k = 0; k < sizeof odd - 1; k++) {
      memcpy(copy, text, sizeof text);
      copy[i] = odd[k];
      weft_diag_clear(w.diag);
      weft_status status = weft_mlir_parse(w.context, "hostile", copy, sizeof text - 1, false, &file, w.diag);
      assert_true(status == WEFT_OK || weft_diag_errors(w.diag) > 0);
      weft_mlir_file_free(file);
    }
  }
  free(copy);
  world_free(&w);
}

/* ---- building --------------------------------------------------------------------------------------------------- */

static void test_clone_and_set(void **state) {
  (void)state;
  world w = world_new();
  weft_arena *arena = weft_arena_new();
  weft_mlir_file *file =
      world_must_parse(&w, "\"x.y\"() ({\n^bb0(%a: i32):\n  %0 = \"x.l\"(%1) : (i1) -> i8\n  %1 = \"x.d\"(%a)[^bb1] : "
                           "(i32) -> i1\n^bb1:\n  \"x.e\"() : () -> ()\n}) : () -> ()");
  weft_mlir_op *copy = weft_mlir_clone(arena, file->modules[0]);
  const char *why = "";
  assert_true(weft_mlir_equal(file->modules[0], copy, arena, &why));
  weft_mlir_op *inner = weft_mlir_op_block(copy, 0)->first;
  weft_mlir_set(w.context, inner, "added", weft_mlir_unit(w.context));
  assert_false(weft_mlir_equal(file->modules[0], copy, arena, &why));
  assert_non_null(strstr(why, "added"));
  weft_mlir_set(w.context, inner, "added", NULL);
  assert_true(weft_mlir_equal(file->modules[0], copy, arena, &why));
  weft_mlir_file_free(file);
  weft_arena_free(arena);
  world_free(&w);
}

static void test_affine(void **state) {
  (void)state;
  world w = world_new();
  weft_mlir_file *file = world_must_parse(&w, "\"x.y\"() {m = affine_map<(d0, d1)[s0] -> (d0 * 3 - d1, (d0 + s0) "
                                              "floordiv 4, d1 mod 5, -d0 ceildiv 2)>} : () -> ()");
  const weft_mlir_affine_map *map = weft_mlir_attribute_of(weft_mlir_op_block(file->modules[0], 0)->first, "m")->as.map;
  int64_t values[4];
  assert_true(weft_mlir_affine_evaluate(map, (int64_t[]){-7, 9, 2}, values));
  assert_int_equal(values[0], -30);
  assert_int_equal(values[1], -2);
  assert_int_equal(values[2], 4);
  assert_int_equal(values[3], 4);
  assert_false(weft_mlir_affine_evaluate(map, (int64_t[]){INT64_MAX, 0, 0}, values));
  assert_false(weft_mlir_affine_is_identity(map));
  weft_mlir_file_free(file);
  world_free(&w);
}

/** Types that are lists of no types, before any other type was read. */
static void test_first_types_are_empty(void **state) {
  (void)state;
  expect_round_trip("!f = () -> ()\n\"a.b\"() {t = !f} : () -> ()");
  expect_round_trip("!t = tuple<>\n\"a.b\"() {t = !t} : () -> ()");
}

/** Aliases of aliases stand for sizes that no memory has. */
static void test_aliases_are_bounded(void **state) {
  (void)state;
  static const char *const forms[] = {"#a0 = 1\n", "#a%d = [#a%d, #a%d]\n", "!a0 = i32\n",
                                      "!a%d = tuple<!a%d, !a%d>\n"};
  for (int form = 0; form < 4; form += 2) {
    weft_text text = {0};
    weft_text_puts(&text, forms[form]);
    for (int i = 1; i < 60; i++) weft_text_printf(&text, forms[form + 1], i, i - 1, i - 1);
    expect_refused(text.data, 24, "aliases of aliases stand for more than");
    weft_text_free(&text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trips),
      cmocka_unit_test(test_dataflow_forms),
      cmocka_unit_test(test_generic_forms),
      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_narrow_floats),
      cmocka_unit_test(test_several_modules),
      cmocka_unit_test(test_locations),
      cmocka_unit_test(test_messages),
      cmocka_unit_test(test_caret),
      cmocka_unit_test(test_depth),
      cmocka_unit_test(test_hostile_bytes),
      cmocka_unit_test(test_clone_and_set),
      cmocka_unit_test(test_affine),
      cmocka_unit_test(test_aliases_are_bounded),
      cmocka_unit_test(test_first_types_are_empty),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
