/* Reading grammars, and what their parts mean. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- meaning -------------------------------------------------------------------------------------------------- */

static void sequences_and_escapes(void **state) {
  (void)state;
  assert_writes("start: 'a' b 'c'; b: 'it\\'s \\\\ \\n\\t.'; // the rest: 'x'\n", "ait's \\ \n\t.c");
  assert_writes("start: ;", "");
  assert_writes("start: '' {new X = 1;} [X];", "1");
}

static void expressions(void **state) {
  (void)state;
  assert_writes("start: [1 + 2 * 3 - 4] ' ' [-2 * -3] ' ' [(1 + 2) * 3] ' ' [10 - 3 - 2];", "3 6 9 5");
  assert_writes("start: [1 == 1] [1 != 1] [1 < 2] [2 <= 1] [2 > 2] [2 >= 2];", "101001");
  assert_writes("start: ['a' < 'b'] ['a' == 'a'] ['ab' < 'a'] ['' < 'a'];", "1101");
  assert_writes("start: [not 1] [not 0 and 1] [1 or 0 and 0] ['' or 0] [not 1 == 2];", "01101");
  assert_writes("start: ['n' + str(3 + 4) + str('x')];", "n7x");
  assert_writes("start: [9223372036854775807] [-9223372036854775807 - 1];", "9223372036854775807-9223372036854775808");
  assert_writes("start: [random.randint(5, 5)] [random.choice([7])] [random.choice(['t', 't'])];", "57t");
}

static void scope_is_dynamic(void **state) {
  (void)state;
  /* b sees and changes a's X; its own X hides it until b ends. */
  assert_writes("start: {new X = 1} [X] b [X]; b: [X] {X += 10} [X] {new X = 5; X += 1} [X] c [X]; c: {X += 100} [X];",
                "1111610610611");
  assert_writes("start: {new X = 1} b [X]; b: {new X = 2} {new X = 3} c; c: [X];", "31");
  assert_writes("start: {new S = 'a'} {S += 'b'} [S];", "ab");
  /* A new value may be made of the one it hides. */
  assert_writes("start: {new N = 2} deeper [N]; deeper: (N == 0) 'e' | (N > 0) [N] {new N = N - 1} deeper [N];",
                "21e012");
}

static void guards_choose(void **state) {
  (void)state;
  assert_writes("start: {new N = 0} list; list: (N < 4) [N] {N += 1} list | (N == 4) '.';", "0123.");
  assert_writes("start: {new N = 3} r; r: (N == 1) 'a' | (N == 3 and not N == 2) 'b' | (N > 3) 'c';", "b");
  /* `and` and `or` stop early: Y is bound nowhere on this path. */
  assert_writes("start: {new X = 0} r {new Y = 1}; r: (X == 1 and Y == 1) 'a' | (X == 0 or Y == 1) 'b';", "b");
}

/* Numbers of the generator, by the definition of splitmix64 and of the draw in the manual. */
static uint64_t splitmix(uint64_t *state) {
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static uint64_t drawn(uint64_t *state, uint64_t count) {
  unsigned __int128 whole = (unsigned __int128)1 << 64;
  uint64_t surplus = (uint64_t)(whole % count), number;
  do number = splitmix(state);
  while (number < surplus);
  return number % count;
}

static void draws_follow_the_definition(void **state) {
  (void)state;
  weft_grammar *g = grammar_of("start: [random.randint(-3, 6)] ',' [random.choice([10, 20, 30])] ',' way ',' \n"
                               "[random.randint(-9223372036854775807, 9223372036854775807)];\n"
                               "way: (1 == 1) 'x' | (1 == 2) 'never' | 'y' | (2 == 2) 'z';");
  for (uint64_t seed = 0; seed < 200; seed++) {
    uint64_t random = seed;
    long first = (long)drawn(&random, 10) - 3;
    long second = 10 * (long)(drawn(&random, 3) + 1);
    char way = "xyz"[drawn(&random, 3)];
    int64_t wide = (int64_t)(drawn(&random, UINT64_MAX) - INT64_MAX);
    char expected[80];
    snprintf(expected, sizeof expected, "%ld,%ld,%c,%lld", first, second, way, (long long)wide);
    weft_text text = sample_of(g, &(weft_grammar_options){.seed = seed});
    assert_string_equal(text.data, expected);
    weft_text_free(&text);
  }
  weft_grammar_free(g);
}

/* Two alternatives of three: each within 5 standard deviations of a third of 30,000. */
static void choices_are_uniform(void **state) {
  (void)state;
  weft_grammar *g = grammar_of("start: {new N = 0} all; all: (N < 30000) one {N += 1} all | (N == 30000) ;\n"
                               "one: 'a' | 'b' | 'c';");
  weft_text text = sample_of(g, &(weft_grammar_options){.seed = 1, .soft_size = UINT64_MAX, .soft_depth = UINT64_MAX});
  assert_int_equal(text.length, 30000);
  uint64_t counts[3] = {0};
  for (size_t i = 0; i < text.length; i++) counts[text.data[i] - 'a']++;
  for (int i = 0; i < 3; i++) assert_in_range(counts[i], 10000 - 410, 10000 + 410);
  weft_text_free(&text);
  weft_grammar_free(g);
}

/* ---- options -------------------------------------------------------------------------------------------------- */

static void pins_fix_one_decision(void **state) {
  (void)state;
  weft_grammar *g =
      grammar_of("start: {new A = random.randint(0, 99); new B = random.randint(0, 99)} [A] ' ' [B] sub;\n"
                 "sub: {new A = random.choice([5, 6])} ' ' [A];");
  const weft_grammar_pin pin = {.name = "A", .value = -7};
  for (uint64_t seed = 0; seed < 50; seed++) {
    weft_text free_text = sample_of(g, &(weft_grammar_options){.seed = seed});
    weft_text text = sample_of(g, &(weft_grammar_options){.seed = seed, .pins = &pin, .pin_count = 1});
    int a, b, c, same_b;
    assert_int_equal(sscanf(free_text.data, "%d %d %d", &a, &same_b, &c), 3);
    assert_int_equal(sscanf(text.data, "%d %d %d", &a, &b, &c), 3);
    assert_int_equal(a, -7);
    assert_int_equal(b, same_b);
    assert_int_equal(c, -7);
    weft_text_free(&free_text);
    weft_text_free(&text);
  }
  weft_grammar_free(g);
}

static void unknown_options_are_usage(void **state) {
  (void)state;
  weft_grammar *g = grammar_of("start: {new ABC = 1} other; other: 'o';");
  weft_diag *diag = weft_diag_new();
  weft_text text = {0};
  const weft_grammar_pin pin = {.name = "ABD", .value = 1};
  assert_int_equal(weft_grammar_sample(g, &(weft_grammar_options){.pins = &pin, .pin_count = 1}, &text, diag),
                   WEFT_USAGE);
  assert_string_equal(weft_diag_message(diag, 0)->text, "the grammar has no variable `ABD`");
  assert_string_equal(weft_diag_message(diag, 0)->hint, "did you mean `ABC`?");
  assert_int_equal(weft_grammar_sample(g, &(weft_grammar_options){.start = "othr"}, &text, diag), WEFT_USAGE);
  assert_string_equal(weft_diag_message(diag, 1)->text, "the grammar has no rule `othr`");
  assert_string_equal(weft_diag_message(diag, 1)->hint, "did you mean `other`?");
  assert_int_equal(weft_grammar_sample(g, &(weft_grammar_options){.start = "other"}, &text, diag), WEFT_OK);
  assert_string_equal(text.data, "o");
  weft_text_free(&text);
  weft_diag_free(diag);
  weft_grammar_free(g);
}

static void hits_count_alternatives(void **state) {
  (void)state;
  weft_grammar *g = grammar_of("start: {new N = 0} list;\nlist: (N < 5) x {N += 1} list\n | (N == 5) ;\nx: 'x';");
  uint64_t hits[4] = {0};
  assert_int_equal(weft_grammar_alternatives(g), 4);
  weft_text text = sample_of(g, &(weft_grammar_options){.hits = hits});
  const uint64_t expected[4] = {1, 5, 1, 5};
  assert_memory_equal(hits, expected, sizeof hits);
  weft_grammar_alternative second = weft_grammar_alternative_at(g, 2);
  assert_string_equal(second.rule, "list");
  assert_int_equal(second.index, 1);
  assert_true(second.reachable);
  assert_int_equal(second.place.line, 3);
  assert_int_equal(second.place.column, 4);
  weft_text_free(&text);
  weft_grammar_free(g);
}

/* ---- ending --------------------------------------------------------------------------------------------------- */

/* Every expansion of `tree` starts 1.6 others on average, so that most samples would never end by themselves. */
static void branching_ends(void **state) {
  (void)state;
  weft_grammar *g = grammar_of("start: tree; tree: 'l' | '(' tree tree ')' | '[' tree tree tree ']' | '<' tree '>';");
  for (uint64_t seed = 0; seed < 200; seed++) {
    weft_text text = sample_of(g, &(weft_grammar_options){.seed = seed, .soft_depth = 1000, .soft_size = 500});
    assert_true(text.length < 500 * 4 + 1000 * 6);
    weft_text_free(&text);
  }
  weft_grammar_free(g);
}

static uint64_t depth_of(const char *text) {
  uint64_t depth = 0, most = 0;
  for (; *text; text++) {
    if (*text == '(' && ++depth > most) most = depth;
    if (*text == ')') depth--;
  }
  return most;
}

static void soft_depth_bounds_nesting(void **state) {
  (void)state;
  weft_grammar *g = grammar_of("start: e; e: 'x' | '(' e ')' | '(' e e ')' | '(' f ')'; f: '(' e ')' | '((x))';");
  uint64_t deepest = 0;
  for (uint64_t seed = 0; seed < 300; seed++) {
    weft_text text = sample_of(g, &(weft_grammar_options){.seed = seed, .soft_depth = 6});
    uint64_t depth = depth_of(text.data);
    /* At depth 6 an e is an x and an f its own dearer or cheaper end: two more levels. */
    assert_true(depth <= 7);
    if (depth > deepest) deepest = depth;
    weft_text_free(&text);
  }
  assert_true(deepest >= 5);
  weft_grammar_free(g);
}

static void long_lists_need_no_stack(void **state) {
  (void)state;
  weft_grammar *g = grammar_of("start: {new N = 0} list; list: (N < 300000) 'a' {N += 1} list | (N == 300000) ;");
  weft_text text = sample_of(g, &(weft_grammar_options){0});
  assert_int_equal(text.length, 300000);
  weft_text_free(&text);
  weft_grammar_free(g);
}

static void what_never_ends_is_an_error(void **state) {
  (void)state;
  assert_string_equal(sample_fault("start: {new N = 0} a;\na: (N == 0) a | (N == 1) ;", NULL),
                      "2:13: rules are 1000000 levels deep");
  assert_string_equal(sample_fault("start: {new N = 0} a;\na: (N == 0) b a | (N == 1) ;\nb: 'x' | b c; c: 'y';",
                                   &(weft_grammar_options){.soft_depth = 3}),
                      "2:13: rules are 1000000 levels deep");
  /* Doubling: 2^k texts of k levels each. */
  char grammar[4000] = "start: a0;";
  for (int i = 0; i < 60; i++)
    snprintf(grammar + strlen(grammar), sizeof grammar - strlen(grammar), " a%d: a%d a%d;", i, i + 1, i + 1);
  strcat(grammar, " a60: 'x';");
  assert_non_null(strstr(sample_fault(grammar, NULL), "the text takes more than 268435456 steps"));
  assert_non_null(strstr(sample_fault("start: {new S = 'aaaaaaaaaaaaaaaa'; new N = 0} r; "
                                      "r: (N < 99) {S += S; N += 1} r | (N == 99) ;",
                                      NULL),
                         "texts of expressions grow beyond all bounds"));
}

/* ---- faults --------------------------------------------------------------------------------------------------- */

static void faults_of_reading(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"", "0:0: there is no rule `start`"},
      {"begin: 'x';", "0:0: there is no rule `start`"},
      {"start 'x';", "1:7: expected `:` after the name of a rule, found `'x'`"},
      {"start: 'x'", "1:11: expected a text, a rule, `[`, `{`, `|` or `;`, found the end of the text"},
      {"start: 'x\n';", "1:8: this text has no closing '"},
      {"start: 'x\\q';", "1:11: expected n, t, \\ or ' after \\"},
      {"start: ab;", "1:8: there is no rule `ab`"},
      {"start: 'a';\nstart: 'b';", "2:1: the rule `start` is defined twice, first in line 1"},
      {"start: 'x' | a; a: 'x' a;", "1:17: the rule `a` can never end"},
      {"start: 'x'\nb: 'y';", "2:2: `b:` begins a rule inside a rule"},
      {"start: 'x' (1 == 1) 'y';", "1:12: a guard inside an alternative"},
      {"start: (1 < 2 < 3) 'y';", "1:15: comparisons do not chain"},
      {"start: (1 < ) 'y';", "1:13: expected an expression, found `)`"},
      {"start: [X];", "1:9: no `new` binds `X`"},
      {"start: {X += 1};", "1:9: no `new` binds `X`"},
      {"start: {new X == 1};", "1:15: expected `=` after a variable, found `==`"},
      {"start: {new random = 1};", "1:13: `random` cannot be a variable"},
      {"start: {1};", "1:9: expected new or a variable, found `1`"},
      {"start: [random.gauss(0, 1)];", "1:16: expected randint or choice, found `gauss`"},
      {"start: [random.randint(0)];", "1:9: random.randint needs two bounds, not 1"},
      {"start: [random.choice([])];", "1:24: expected an expression, found `]`"},
      {"start: [99999999999999999999];", "1:9: this number does not fit in 64 bits"},
      {"start: [1x];", "1:10: a letter follows a number"},
      {"start: #;", "1:8: unexpected character `#`"},
      {"start: \x80;", "1:8: unexpected byte 0x80"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) assert_string_equal(grammar_fault(rows[i][0]), rows[i][1]);
}

static void names_are_guessed(void **state) {
  (void)state;
  weft_diag *diag = weft_diag_new();
  weft_grammar *g;
  const char *text = "start: lst {new COUNT = 1} [COUNTS];\nlist: 'x';";
  assert_int_equal(weft_grammar_parse("g.pg", text, strlen(text), &g, diag), WEFT_INVALID);
  assert_int_equal(weft_diag_count(diag), 2);
  assert_string_equal(message_text(diag, 0), "1:8: there is no rule `lst`");
  assert_string_equal(weft_diag_message(diag, 0)->hint, "did you mean `list`?");
  assert_string_equal(message_text(diag, 1), "1:29: no `new` binds `COUNTS`");
  assert_string_equal(weft_diag_message(diag, 1)->hint, "did you mean `COUNT`?");
  weft_diag_free(diag);
}

static void unreached_rules_are_warned_about(void **state) {
  (void)state;
  weft_diag *diag = weft_diag_new();
  weft_grammar *g;
  const char *text = "start: 'x';\nalone: 'y';";
  assert_int_equal(weft_grammar_parse("g.pg", text, strlen(text), &g, diag), WEFT_OK);
  assert_int_equal(weft_diag_errors(diag), 0);
  assert_string_equal(message_text(diag, 0), "2:1: the rule `alone` is never reached from `start`");
  assert_false(weft_grammar_alternative_at(g, 1).reachable);
  weft_grammar_free(g);
  weft_diag_free(diag);
}

static void faults_of_sampling(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"start: {new N = 3} r;\nr: (N == 1) 'a' | (N == 2) 'b';", "2:1: no alternative of `r` has a true guard: N is 3"},
      {"start: b a; a: {new X = 1} c; b: c; c: [X];", "1:41: `X` is not bound here"},
      {"start: b a; a: {new X = 1} c; b: c; c: {X += 1};", "1:41: `X` is not bound here"},
      {"start: [random.randint(2, 1)];", "1:9: random.randint(2, 1) has nothing to draw from"},
      {"start: [9223372036854775807 + 1];", "1:29: the result does not fit in 64 bits"},
      {"start: [-9223372036854775807 - 2];", "1:30: the result does not fit in 64 bits"},
      {"start: [4294967296 * 4294967296];", "1:20: the result does not fit in 64 bits"},
      {"start: [1 + 'a'];", "1:11: a text and a number are added"},
      {"start: [1 == 'a'];", "1:11: a text is compared with a number"},
      {"start: ['a' * 2];", "1:13: a number is needed here, and this is a text"},
      {"start: [-'a'];", "1:9: a number is needed here, and this is a text"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    assert_string_equal(sample_fault(rows[i][0], NULL), rows[i][1]);
}

/* A text of `count` times `piece` between `before` and `after`. */
static char *repeated(const char *before, const char *piece, int count, const char *after) {
  weft_text text = {0};
  weft_text_puts(&text, before);
  for (int i = 0; i < count; i++) weft_text_puts(&text, piece);
  weft_text_puts(&text, after);
  return text.data;
}

static void depth_is_bounded(void **state) {
  (void)state;
  static const char *const pieces[] = {"(", "-", "not ", "1 + ", "str(", "random.choice(["};
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    char *text = repeated("start: [", pieces[i], 100000, "1");
    assert_non_null(strstr(grammar_fault(text), "200 levels"));
    free(text);
  }
}

static void size_is_bounded(void **state) {
  (void)state;
  char *text = repeated("start: 'x';", "//////////\n", 400000, "");
  assert_string_equal(grammar_fault(text), "0:0: the text has 4400011 bytes; at most 4194304 are read");
  free(text);
}

/* 150,000 rules in the worst order: costs must not take a pass per rule. */
static void many_rules_are_read(void **state) {
  (void)state;
  weft_text text = {0};
  weft_text_puts(&text, "start: r0;\n");
  enum { RULES = 150000 };
  for (int i = 0; i < RULES; i++) weft_text_printf(&text, "r%d: r%d;\n", i, i + 1);
  weft_text_printf(&text, "r%d: 'x';", RULES);
  weft_grammar *g = grammar_of(text.data);
  weft_text sample = sample_of(g, &(weft_grammar_options){0});
  assert_string_equal(sample.data, "x");
  weft_text_free(&sample);
  weft_grammar_free(g);
  weft_text_free(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sequences_and_escapes),
      cmocka_unit_test(expressions),
      cmocka_unit_test(scope_is_dynamic),
      cmocka_unit_test(guards_choose),
      cmocka_unit_test(draws_follow_the_definition),
      cmocka_unit_test(choices_are_uniform),
      cmocka_unit_test(pins_fix_one_decision),
      cmocka_unit_test(unknown_options_are_usage),
      cmocka_unit_test(hits_count_alternatives),
      cmocka_unit_test(branching_ends),
      cmocka_unit_test(soft_depth_bounds_nesting),
      cmocka_unit_test(long_lists_need_no_stack),
      cmocka_unit_test(what_never_ends_is_an_error),
      cmocka_unit_test(faults_of_reading),
      cmocka_unit_test(names_are_guessed),
      cmocka_unit_test(unreached_rules_are_warned_about),
      cmocka_unit_test(faults_of_sampling),
      cmocka_unit_test(depth_is_bounded),
      cmocka_unit_test(size_is_bounded),
      cmocka_unit_test(many_rules_are_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
