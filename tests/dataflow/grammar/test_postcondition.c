/* Reading postconditions, and the value of each kind of expression on a small module. */
#include "support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Line numbers matter below. */
static const char small[] = "module {\n"
                            "  \"t.outer\"() <{sym_name = \"a\"}> ({\n"
                            "  ^bb0(%x: i32, %e: none):\n"
                            "    %p, %q = \"t.pair\"(%x, %x) {sizes = array<i32: 1, 1>, flag = true, on, n = 7 : i32,\n"
                            "      text = \"hi\", type = f32, ref = @a::@in, list = [\"s\", 3 : i64], f = 1.5 : f32,\n"
                            "      operandSegmentSizes = array<i32: 0, 2, 0>, resultSegmentSizes = array<i32: 1, 1>,\n"
                            "      bad = array<i32: 1, 9>} : (i32, i32) -> (i32, none)\n"
                            "    %r = \"t.one\"(%p, %p, %q) : (i32, i32, none) -> !dataflow.channel<i32>\n"
                            "    \"t.use\"(%r) {sym_name = \"in\"} : (!dataflow.channel<i32>) -> ()\n"
                            "    \"t.end\"(%e, %p) : (none, i32) -> ()\n"
                            "  }) : () -> ()\n"
                            "  \"t.empty\"() {sym_name = \"b\"} : () -> ()\n"
                            "  \"t.empty\"() {sym_name = \"b\", callee = @b} : () -> ()\n"
                            "}\n";

static const char head[] = "postcondition p { language v0; vocabulary mlir = mlir.generic@1; constraints {\n"
                           "let ops = output.operations;\n"
                           "let pair = seq { o | o in ops where o.name == \"t.pair\" }[0];\n"
                           "let one = seq { o | o in ops where o.name == \"t.one\" }[0];\n";

typedef struct outcome {
  weft_verdict verdict;
  weft_diag *diag;
} outcome;

/* Evaluates statements both with joins and without: the verdict and every message must be the same. */
static outcome run_statements(const char *statements) {
  weft_mlir_context *context = context_new();
  weft_mlir_file *file = module_of(context, "m.mlir", small);
  weft_text text = {0};
  weft_text_printf(&text, "%s%s}}", head, statements);
  weft_postcondition *post = postcondition_of(text.data);
  outcome results[2];
  for (int i = 0; i < 2; i++) {
    weft_postcondition_side side = {.module = file->modules[0], .file = "m.mlir"};
    weft_postcondition_options options = {.unindexed = i};
    results[i].diag = weft_diag_new();
    assert_ok(weft_postcondition_evaluate(post, context, side, side, &options, &results[i].verdict, results[i].diag),
              results[i].diag);
  }
  assert_int_equal(results[0].verdict, results[1].verdict);
  assert_int_equal(weft_diag_count(results[0].diag), weft_diag_count(results[1].diag));
  for (uint64_t i = 0; i < weft_diag_count(results[0].diag); i++)
    assert_string_equal(weft_diag_message(results[0].diag, i)->text, weft_diag_message(results[1].diag, i)->text);
  weft_diag_free(results[1].diag);
  weft_postcondition_free(post);
  weft_text_free(&text);
  weft_mlir_file_free(file);
  weft_mlir_context_free(context);
  return results[0];
}

static outcome run_expression(const char *expression) {
  weft_text text = {0};
  weft_text_printf(&text, "assert it:\n%s;", expression);
  outcome result = run_statements(text.data);
  weft_text_free(&text);
  return result;
}

static void assert_verdict(const char *expression, weft_verdict verdict) {
  outcome result = run_expression(expression);
  if (result.verdict != verdict) {
    for (uint64_t i = 0; i < weft_diag_count(result.diag); i++) print_error("%s\n", message_text(result.diag, i));
    fail_msg("%s: %d, not %d", expression, (int)result.verdict, (int)verdict);
  }
  assert_int_equal(weft_diag_count(result.diag), verdict == WEFT_VERDICT_HOLDS ? 0 : 1);
  weft_diag_free(result.diag);
}

static void holds(const char *expression) { assert_verdict(expression, WEFT_VERDICT_HOLDS); }
static void fails(const char *expression) { assert_verdict(expression, WEFT_VERDICT_FAILS); }

/* An expression without a value: where, and why. */
static void faults(const char *expression, const char *expected) {
  outcome result = run_expression(expression);
  assert_int_equal(result.verdict, WEFT_VERDICT_ERROR);
  assert_int_equal(weft_diag_count(result.diag), 1);
  assert_string_equal(message_text(result.diag, 0), expected);
  assert_string_equal(weft_diag_message(result.diag, 0)->place.file, "p.spct");
  weft_diag_free(result.diag);
}

/* ---- values --------------------------------------------------------------------------------------------------- */

static void logic(void **state) {
  (void)state;
  holds("true and not false");
  fails("true and false");
  holds("false or true");
  fails("false or false");
  holds("false implies false");
  fails("true implies false");
  holds("true implies true implies true");
  holds("false and true or true"); /* (false and true) or true */
  fails("not true or false");
  holds("(not true) == false");
  /* What is decided is not looked at further. */
  holds("not (false and ops[99].name == \"x\")");
  holds("true or ops[99].name == \"x\"");
  holds("false implies ops[99].name == \"x\"");
}

static void numbers(void **state) {
  (void)state;
  holds("1 + 2 - 4 == 0 - 1");
  holds("1 < 2 and 2 <= 2 and 3 > 2 and 3 >= 3 and 1 != 2");
  fails("2 < 2");
  holds("sum(seq { cardinality(o.operands) | o in ops }) == 8");
  holds("sum(pair.attribute(\"operandSegmentSizes\")) == cardinality(pair.operands)");
  holds("sum(seq { 1 | o in ops where false }) == 0");
}

static void members(void **state) {
  (void)state;
  holds("cardinality(ops) == 8"); /* the module first */
  holds("ops[0].name == \"builtin.module\" and ops[1].name == \"t.outer\" and ops[5].name == \"t.end\"");
  holds("cardinality(pair.results) == 2 and cardinality(pair.operands) == 2");
  holds("pair.operands[0] == pair.operands[1] and pair.results[0] != pair.results[1]");
  holds("pair.results[1].type == mlir::none and pair.results[0].type == mlir::i32");
  holds("pair.results[0].type != mlir::si32 and pair.results[0].type != mlir::i64");
  holds("pair.results[0].type.kind == \"integer\" and pair.results[1].type.kind == \"none\"");
  holds("one.results[0].type.kind == \"!dataflow.channel\"");
  holds("pair.attribute(\"type\") == mlir::f32 and mlir::index.kind == \"index\" and mlir::bf16.kind == \"float\"");
  /* Uses count operand slots, those of the last op of a block too. */
  holds("cardinality(pair.results[0].uses) == 3 and cardinality(pair.results[1].uses) == 1");
  holds("pair.results[0].uses[0] == one and pair.results[0].uses[2].name == \"t.end\"");
  holds("cardinality(pair.operands[0].uses) == 2");
  holds("ops[5].operands.drop(1)[0] == pair.results[0] and cardinality(ops[5].operands.drop(2)) == 0");
}

static void definitions(void **state) {
  (void)state;
  holds("one.operands[0].defining_operation matches some($d) and d.name == \"t.pair\" and d == pair");
  fails("pair.operands[0].defining_operation matches some($d) and d.name == \"t.pair\"");
  holds("pair.operands[0].defining_operation matches none");
  fails("one.operands[0].defining_operation matches none");
  holds("one.operands[0].defining_operation == one.operands[1].defining_operation");
  /* $d names another op in each conjunction. */
  holds("(one.operands[0].defining_operation matches some($d) and d == pair) and\n"
        "(ops[4].operands[0].defining_operation matches some($d) and d == one)");
}

static void attributes(void **state) {
  (void)state;
  holds("pair.attribute(\"n\") == 7 and pair.attribute(\"text\") == \"hi\"");
  holds("pair.attribute(\"flag\") and pair.attribute(\"on\")");
  holds("pair.has_attribute(\"n\") and not pair.has_attribute(\"m\")");
  holds("pair.attribute(\"sizes\")[1] == 1 and cardinality(pair.attribute(\"sizes\")) == 2");
  holds("pair.attribute(\"list\")[0] == \"s\" and pair.attribute(\"list\")[1] == 3");
  holds("pair.attribute(\"ref\") == \"a::@in\" and pair.attribute(\"f\") == pair.attribute(\"f\")");
  fails("pair.attribute(\"ref\") == \"a::@i\"");
}

static void segments(void **state) {
  (void)state;
  holds("cardinality(pair.segment(\"operandSegmentSizes\", 0)) == 0");
  holds("pair.segment(\"operandSegmentSizes\", 1) == pair.operands");
  holds("pair.segment(\"resultSegmentSizes\", 1)[0] == pair.results[1]");
  holds("pair.segment(\"resultSegmentSizes\", 0)[0] == pair.results[0]");
}

static void nesting_and_symbols(void **state) {
  (void)state;
  holds("ops[1] contains pair and ops[0] contains pair and ops[0] contains ops[1]");
  fails("pair contains pair");
  fails("pair contains one");
  holds("resolve(output, \"a\")[0] == ops[1] and cardinality(resolve(output, \"b\")) == 2");
  holds("cardinality(resolve(output, \"in\")) == 0 and cardinality(resolve(output, \"\")) == 0");
  holds("resolve(output, pair.attribute(\"ref\"))[0].name == \"t.use\"");
  holds("resolve(input, ops[7].attribute(\"callee\"))[1] == ops[7]");
}

static void sets_and_sequences(void **state) {
  (void)state;
  holds("cardinality(set { v | v in pair.operands }) == 1 and cardinality(seq { v | v in pair.operands }) == 2");
  holds("cardinality(set { cardinality(o.operands) | o in ops }) == 4"); /* 0, 1, 2, 3 */
  holds("set { o.name | o in ops }  == set { ops[7 - cardinality(seq { p | p in ops where o contains p })].name | o in "
        "ops }\n"
        "or true");
  holds("one in ops and one.results[0] in set { o.operands[0] | o in ops where o.name == \"t.use\" }");
  fails("one in set { o | o in ops where o != one }");
  holds("3 in seq { cardinality(o.operands) | o in ops } and not 9 in set { cardinality(o.operands) | o in ops }");
  holds("\"t.use\" in set { o.name | o in ops }");
  holds("seq { 1 | o in ops where false } == seq { 2 | o in ops where false }");
  holds("set { v | v in one.operands.drop(1) } == set { v | v in one.operands }");
  fails("seq { v | v in one.operands.drop(1) } == seq { v | v in one.operands }");
  /* Nested: the inner o is another one. */
  holds("cardinality(seq { seq { o | o in ops where o.name == p.name } | p in ops where p.name == \"t.empty\" }[0]) == "
        "2");
}

static void quantifiers(void **state) {
  (void)state;
  holds("exists o in ops where o.name == \"t.one\" and cardinality(o.operands) == 3");
  fails("exists o in ops where o.name == \"t.one\" and cardinality(o.operands) == 2");
  holds("none o in ops where o.name == \"t.two\"");
  fails("none o in ops where o.name == \"t.one\"");
  holds("exists o in ops");
  fails("exists v in ops[0].operands");
  holds("none v in ops[0].operands");
  /* `where` takes all that follows. */
  fails("exists o in ops where o.name == \"t.one\" and false or false");
  holds("(exists o in ops where o.name == \"t.one\") and not false");
  holds("exists o in ops where exists p in ops where p.operands == o.operands and o.name == \"t.pair\"");
  holds("none o in ops where none p in ops where p.name == o.name");
  /* Joins over kinds that differ or have no value are walked. */
  holds("exists o in ops where o.name == pair.name and 1 == cardinality(o.results) - 1");
  holds("exists o in ops where cardinality(o.operands) == 3 and o.operands[2].type == pair.results[1].type");
}

static void faults_are_not_false(void **state) {
  (void)state;
  faults("pair.results[2] == pair.results[0]", "6:13: `it` has no value: index 2 is out of range: there are 2");
  faults("not pair.results[0 - 1].type == mlir::none",
         "6:17: `it` has no value: index -1 is out of range: there are 2");
  faults("cardinality(pair.results.drop(3)) == 0", "6:25: `it` has no value: 3 cannot be dropped: there are 2");
  faults("exists o in ops where o.operands[0] == pair.operands[0]",
         "6:33: `it` has no value: index 0 is out of range: there are 0");
  faults("exists o in ops where o.name == \"t.one\" and o.operands[3] == pair.operands[0]",
         "6:55: `it` has no value: index 3 is out of range: there are 3");
  faults("exists o in ops where o.name == pair.operands[5]",
         "6:46: `it` has no value: index 5 is out of range: there are 2");
  holds("exists o in ops where o.name == \"t.none\" and o.name == pair.operands[5] or true");
  holds("none o in ops where false and o.name == pair.operands[5]");
  faults("exists o in ops where o.name == 3", "6:30: `it` has no value: a text cannot equal a number");
  faults("pair.attribute(\"m\") == 1", "6:5: `it` has no value: t.pair has no attribute `m`");
  faults("pair.segment(\"sizes\", 0) == pair.operands", "6:5: `it` has no value: there are no such segments");
  faults("pair.segment(\"resultSegmentSizes\", 2) == pair.results",
         "6:5: `it` has no value: segment 2 is out of range: there are 2");
  faults("pair.type == mlir::none", "6:5: `it` has no value: an operation has no `type`");
  faults("one.operands[0].defining_operation.name == \"x\"",
         "6:35: `it` has no value: an operation that may be missing has no `name`");
  faults("pair == pair.results[0]", "6:6: `it` has no value: an operation cannot equal a value");
  faults("pair < one", "6:6: `it` has no value: a number is needed here, and this is an operation");
  faults("pair and true", "6:1: `it` has no value: a truth value is needed here, and this is an operation");
  faults("cardinality(pair) == 1", "6:13: `it` has no value: an operation has no elements");
  faults("sum(ops) == 1", "6:1: `it` has no value: a number is needed here, and this is an operation");
  faults("9223372036854775807 + 1 == 0", "6:21: `it` has no value: the result does not fit in 64 bits");
  faults("resolve(pair, \"a\") == ops", "6:1: `it` has no value: a program is needed here, and this is an operation");
}

/* ---- statements ----------------------------------------------------------------------------------------------- */

static void failures_name_clause_and_op(void **state) {
  (void)state;
  outcome r = run_statements("forall o in ops where cardinality(o.results) > 0 {\n"
                             "  forall v in o.results {\n"
                             "    assert used_once: true and\n"
                             "      cardinality(v.uses) == 1;\n"
                             "    assert typed: v.type == mlir::none; } }\n");
  assert_int_equal(r.verdict, WEFT_VERDICT_FAILS);
  assert_int_equal(weft_diag_errors(r.diag), 3);
  assert_string_equal(message_text(r.diag, 0),
                      "4:14: `used_once` does not hold for o = t.pair at m.mlir:4, v = result 0 of "
                      "t.pair at m.mlir:4");
  assert_string_equal(weft_diag_message(r.diag, 0)->place.file, "m.mlir");
  assert_string_equal(weft_diag_message(r.diag, 0)->hint,
                      "p.spct:8:27: false: cardinality(v.uses) == 1; the sides are 3 and 1");
  assert_string_equal(message_text(r.diag, 1),
                      "4:14: `typed` does not hold for o = t.pair at m.mlir:4, v = result 0 of "
                      "t.pair at m.mlir:4");
  assert_string_equal(message_text(r.diag, 2), "8:10: `typed` does not hold for o = t.one at m.mlir:8, v = result 0 of "
                                               "t.one at m.mlir:8");
  weft_diag_free(r.diag);
}

static void a_failure_decides_over_later_faults(void **state) {
  (void)state;
  outcome r = run_statements("assert first: false; assert second: ops[99] == one; assert third: 1 == 2;\n"
                             "let x = ops[98]; assert fourth: x == one;");
  assert_int_equal(r.verdict, WEFT_VERDICT_FAILS);
  assert_int_equal(weft_diag_errors(r.diag), 2);
  assert_int_equal(weft_diag_count(r.diag), 4);
  assert_string_equal(message_text(r.diag, 0), "0:0: `first` does not hold");
  assert_string_equal(message_text(r.diag, 1), "5:40: `second` has no value: index 99 is out of range: there are 8");
  assert_int_equal(weft_diag_message(r.diag, 1)->severity, WEFT_NOTE);
  assert_string_equal(message_text(r.diag, 2), "0:0: `third` does not hold");
  assert_string_equal(message_text(r.diag, 3), "6:12: `x` has no value: index 98 is out of range: there are 8");
  weft_diag_free(r.diag);
}

static void a_fault_before_any_failure_decides(void **state) {
  (void)state;
  outcome r = run_statements("forall o in ops { let n = o.operands[0]; assert later: false; }");
  assert_int_equal(r.verdict, WEFT_VERDICT_ERROR);
  assert_int_equal(weft_diag_count(r.diag), 1);
  assert_string_equal(message_text(r.diag, 0),
                      "5:37: `n` has no value for o = builtin.module at m.mlir:1: index 0 is out "
                      "of range: there are 0");
  weft_diag_free(r.diag);
  r = run_statements("forall o in ops where o.operands[0] == o.operands[0] { }");
  assert_int_equal(r.verdict, WEFT_VERDICT_ERROR);
  weft_diag_free(r.diag);
}

static void nothing_to_check_holds(void **state) {
  (void)state;
  outcome r = run_statements("forall o in seq { p | p in ops where false } { assert never: false; }");
  assert_int_equal(r.verdict, WEFT_VERDICT_HOLDS);
  weft_diag_free(r.diag);
}

static void failures_are_counted_past_the_limit(void **state) {
  (void)state;
  weft_mlir_context *context = context_new();
  weft_mlir_file *file = module_of(context, "m.mlir", small);
  weft_postcondition *post = postcondition_of(
      "postcondition p { language v0; constraints { forall o in output.operations { assert no: false; } } }");
  assert_false(weft_postcondition_uses_input(post));
  assert_string_equal(weft_postcondition_name(post), "p");
  weft_diag *diag = weft_diag_new();
  weft_verdict verdict;
  const weft_postcondition_options options = {.failures = 3};
  weft_postcondition_side output = {.module = file->modules[0], .file = "m.mlir"};
  assert_ok(weft_postcondition_evaluate(post, context, (weft_postcondition_side){0}, output, &options, &verdict, diag),
            diag);
  assert_int_equal(verdict, WEFT_VERDICT_FAILS);
  assert_int_equal(weft_diag_errors(diag), 3);
  assert_string_equal(message_text(diag, 3), "0:0: 5 more that do not hold");
  weft_diag_free(diag);
  weft_postcondition_free(post);
  weft_mlir_file_free(file);
  weft_mlir_context_free(context);
}

static void steps_are_bounded(void **state) {
  (void)state;
  weft_mlir_context *context = context_new();
  weft_mlir_file *file = module_of(context, "m.mlir", small);
  weft_postcondition *post = postcondition_of(
      "postcondition p { language v0; constraints { let s = output.operations; assert big: none a in s where\n"
      "exists b in s where exists c in s where exists d in s where exists e in s where a != a; } }");
  weft_diag *diag = weft_diag_new();
  weft_verdict verdict;
  weft_postcondition_options options = {.steps = 1000};
  weft_postcondition_side output = {.module = file->modules[0], .file = "m.mlir"};
  assert_ok(weft_postcondition_evaluate(post, context, output, output, &options, &verdict, diag), diag);
  assert_int_equal(verdict, WEFT_VERDICT_ERROR);
  assert_non_null(strstr(message_text(diag, 0), "`big` has no value: more than 1000 steps of evaluation"));
  options.steps = 0;
  assert_ok(weft_postcondition_evaluate(post, context, output, output, &options, &verdict, diag), diag);
  assert_int_equal(verdict, WEFT_VERDICT_HOLDS);
  weft_diag_free(diag);
  weft_postcondition_free(post);
  weft_mlir_file_free(file);
  weft_mlir_context_free(context);
}

static void a_missing_input_is_usage(void **state) {
  (void)state;
  weft_mlir_context *context = context_new();
  weft_mlir_file *file = module_of(context, "m.mlir", small);
  weft_postcondition *post = postcondition_of(
      "postcondition p { language v0; constraints { assert a: cardinality(input.operations) == 8; } }");
  assert_true(weft_postcondition_uses_input(post));
  weft_diag *diag = weft_diag_new();
  weft_verdict verdict;
  weft_postcondition_side output = {.module = file->modules[0], .file = "m.mlir"};
  assert_int_equal(
      weft_postcondition_evaluate(post, context, (weft_postcondition_side){0}, output, NULL, &verdict, diag),
      WEFT_USAGE);
  weft_diag_free(diag);
  weft_postcondition_free(post);
  weft_mlir_file_free(file);
  weft_mlir_context_free(context);
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

static void faults_of_reading(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"", "1:1: expected `postcondition`, found the end of the text"},
      {"postcondition p { constraints {} }", "1:19: expected `language` as the first section, found `constraints`"},
      {"postcondition p { language v1; }", "1:28: this language is not known: `v1`"},
      {"postcondition p { language v0; vocabulary m = llvm.ir@1; }", "1:47: this vocabulary is not known"},
      {"postcondition p { language v0; }", "1:32: expected `constraints`, found `}`"},
      {"postcondition p { language v0; metadata { a = b; } }", "1:47: expected a text or a number, found `b`"},
      {"postcondition p { language v0; constraints { } } more", "1:50: expected the end of the text, found `more`"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    assert_string_equal(postcondition_fault(rows[i][0]), rows[i][1]);
}

static void faults_of_statements(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"check a;", "2:1: expected let, assert, forall or `}`, found `check`"},
      {"assert a true;", "2:10: expected `:` after a label, found `true`"},
      {"assert a: x;", "2:11: `x` is not bound here"},
      {"let x = 1; let x = 2;", "2:16: `x` is bound twice"},
      {"let x = 1; assert a: y == x;", "2:22: `y` is not bound here"},
      {"let in = 1;", "2:5: `in` cannot be a name"},
      {"forall o in output.operations { let n = 1; } assert a: n == 1;", "2:56: `n` is not bound here"},
      {"forall o in output.operations { } assert a: o == o;", "2:45: `o` is not bound here"},
      {"assert a: output.operation;", "2:18: there is no member `operation`"},
      {"assert a: seq { o in output.operations };", "2:40: expected `|`"},
      {"assert a: seq { o | p in output.operations } == 1;", "2:17: `o` is not bound here"},
      {"assert a: exists o in o where true;", "2:23: `o` is not bound here"},
      {"assert a: cardinality(seq { v | v in v.operands }) == 0;", "2:38: `v` is not bound here"},
      {"let o = output; assert a: not o matches some($d) and d == d;", "2:54: `d` is not bound here"},
      {"let o = output; assert a: o matches some($d) or d == d;", "2:49: `d` is not bound here"},
      {"let o = output; assert a: (o matches some($d)) and d == d;", "2:52: `d` is not bound here"},
      {"let o = output; assert a: o matches some(d);", "2:42: expected $name, found `d`"},
      {"let o = output; assert a: o matches any;", "2:37: expected some($name) or none, found `any`"},
      {"assert a: 1 == 1 == 1;", "2:18: expected `;` after an assert, found `==`"},
      {"assert a: mlir::none == other::none;", "2:25: there is no vocabulary `other`"},
      {"assert a: resolve(output) == 1;", "2:25: expected `,` between arguments, found `)`"},
      {"assert a: \"open", "2:11: this text has no closing \""},
      {"assert a: $x == 1;", "2:11: expected an expression, found `$x`"},
      {"assert a: 1 ~ 2;", "2:13: unexpected character `~`"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    weft_text text = {0};
    weft_text_printf(&text, "postcondition p { language v0; vocabulary mlir = mlir.generic@1; constraints {\n%s }}",
                     rows[i][0]);
    assert_string_equal(postcondition_fault(text.data), rows[i][1]);
    weft_text_free(&text);
  }
}

static void unknown_types_are_refused(void **state) {
  (void)state;
  weft_mlir_context *context = context_new();
  weft_mlir_file *file = module_of(context, "m.mlir", small);
  static const char *const names[] = {"i0", "i", "i99999999", "f31", "x", "sindex"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    weft_text text = {0};
    weft_text_printf(&text,
                     "postcondition p { language v0; vocabulary m = mlir.generic@1; constraints { let t = m::%s; } }",
                     names[i]);
    weft_postcondition *post = postcondition_of(text.data);
    weft_diag *diag = weft_diag_new();
    weft_verdict verdict;
    weft_postcondition_side output = {.module = file->modules[0], .file = "m.mlir"};
    assert_int_equal(weft_postcondition_evaluate(post, context, output, output, NULL, &verdict, diag), WEFT_INVALID);
    assert_int_equal(weft_diag_message(diag, 0)->place.column, 88);
    weft_diag_free(diag);
    weft_postcondition_free(post);
    weft_text_free(&text);
  }
  weft_mlir_file_free(file);
  weft_mlir_context_free(context);
}

static void depth_is_bounded(void **state) {
  (void)state;
  static const char *const pieces[] = {"(",
                                       "not ",
                                       "1 + ",
                                       "true and ",
                                       "false or ",
                                       "true implies ",
                                       "exists o in output.operations where ",
                                       "seq { ",
                                       "cardinality(",
                                       "output.operations["};
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    weft_text text = {0};
    weft_text_puts(&text, "postcondition p { language v0; constraints { assert a: ");
    for (int k = 0; k < 50000; k++) weft_text_puts(&text, pieces[i]);
    const char *fault = postcondition_fault(text.data);
    assert_true(strstr(fault, " levels") || strstr(fault, "expected `|`"));
    weft_text_free(&text);
  }
  weft_text text = {0};
  weft_text_puts(&text, "postcondition p { language v0; constraints { ");
  for (int k = 0; k < 50000; k++) weft_text_puts(&text, "forall o in output.operations { ");
  assert_non_null(strstr(postcondition_fault(text.data), "more than 200 levels"));
  weft_text_free(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(logic),
      cmocka_unit_test(numbers),
      cmocka_unit_test(members),
      cmocka_unit_test(definitions),
      cmocka_unit_test(attributes),
      cmocka_unit_test(segments),
      cmocka_unit_test(nesting_and_symbols),
      cmocka_unit_test(sets_and_sequences),
      cmocka_unit_test(quantifiers),
      cmocka_unit_test(faults_are_not_false),
      cmocka_unit_test(failures_name_clause_and_op),
      cmocka_unit_test(a_failure_decides_over_later_faults),
      cmocka_unit_test(a_fault_before_any_failure_decides),
      cmocka_unit_test(nothing_to_check_holds),
      cmocka_unit_test(failures_are_counted_past_the_limit),
      cmocka_unit_test(steps_are_bounded),
      cmocka_unit_test(a_missing_input_is_usage),
      cmocka_unit_test(faults_of_reading),
      cmocka_unit_test(faults_of_statements),
      cmocka_unit_test(unknown_types_are_refused),
      cmocka_unit_test(depth_is_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
