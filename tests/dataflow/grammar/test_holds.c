/* The postconditions that weft ships: true on modules lowered by hand, false on changed ones by the clause that the
 * change breaks, and equal to a checker written in C on random changes. `test_holds SEED` runs one of those. */
#include "support.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint64_t only_seed = UINT64_MAX;

typedef struct fixture {
  weft_mlir_context *context;
  weft_mlir_file *input, *output;
  weft_postcondition *post;
  weft_diag *diag;
  weft_verdict verdict;
} fixture;

static char *file_text(const char *path) {
  weft_diag *diag = weft_diag_new();
  char *bytes;
  size_t length;
  assert_ok(weft_read_file(path, &bytes, &length, diag), diag);
  weft_diag_free(diag);
  return bytes;
}

/* The text with every `from` replaced; there must be one. The caller frees it. */
static char *replaced(const char *text, const char *from, const char *to) {
  weft_text result = {0};
  bool found = false;
  for (const char *at; (at = strstr(text, from)) != NULL; text = at + strlen(from)) {
    weft_text_append(&result, text, (size_t)(at - text));
    weft_text_puts(&result, to);
    found = true;
  }
  if (!found) fail_msg("`%s` is not in the text", from);
  weft_text_puts(&result, text);
  return result.data;
}

static weft_postcondition *shipped(const char *path) {
  weft_diag *diag = weft_diag_new();
  weft_postcondition *post;
  assert_ok(weft_postcondition_read(path, &post, diag), diag);
  assert_int_equal(weft_diag_count(diag), 0);
  weft_diag_free(diag);
  return post;
}

static void open_fixture(fixture *f, const char *post, const char *input, const char *output_text) {
  *f = (fixture){.context = context_new(), .post = shipped(post), .diag = weft_diag_new()};
  f->input = module_read(f->context, input);
  f->output = module_of(f->context, "output.mlir", output_text);
}

static void close_fixture(fixture *f) {
  weft_mlir_file_free(f->input);
  weft_mlir_file_free(f->output);
  weft_postcondition_free(f->post);
  weft_mlir_context_free(f->context);
  weft_diag_free(f->diag);
}

static void evaluate_fixture(fixture *f, bool unindexed) {
  weft_diag_clear(f->diag);
  weft_postcondition_side input = {.module = f->input->modules[0], .file = "input.mlir"};
  weft_postcondition_side output = {.module = f->output->modules[0], .file = "output.mlir"};
  weft_postcondition_options options = {.unindexed = unindexed};
  assert_ok(weft_postcondition_evaluate(f->post, f->context, input, output, &options, &f->verdict, f->diag), f->diag);
}

/* A change of a right module: the clauses it breaks, in order, and the line that the first is reported at. */
typedef struct change {
  const char *from, *to;
  const char *clauses; /* "" when it still holds */
  uint64_t line;
} change;

static void assert_change(const change *c, const char *post, const char *input, const char *output) {
  fixture f;
  char *text = file_text(output), *changed = replaced(text, c->from, c->to);
  open_fixture(&f, post, input, changed);
  for (int unindexed = 0; unindexed < 2; unindexed++) {
    evaluate_fixture(&f, unindexed);
    weft_text clauses = {0};
    weft_text_puts(&clauses, "");
    for (uint64_t i = 0; i < weft_diag_count(f.diag); i++) {
      const weft_message *m = weft_diag_message(f.diag, i);
      if (m->severity != WEFT_ERROR) continue;
      assert_string_equal(m->place.file, "output.mlir");
      weft_text_printf(&clauses, "%s%.*s", clauses.length ? " " : "", (int)strcspn(m->text + 1, "`"), m->text + 1);
    }
    if (strcmp(clauses.data, c->clauses) != 0) fail_msg("%s -> %s: breaks %s", c->from, c->to, clauses.data);
    assert_int_equal(f.verdict, *c->clauses ? WEFT_VERDICT_FAILS : WEFT_VERDICT_HOLDS);
    if (*c->clauses && weft_diag_message(f.diag, 0)->place.line != c->line)
      fail_msg("%s -> %s: line %d", c->from, c->to, (int)weft_diag_message(f.diag, 0)->place.line);
    weft_text_free(&clauses);
  }
  close_fixture(&f);
  free(text);
  free(changed);
}

/* ---- while ---------------------------------------------------------------------------------------------------- */

static void while_clauses(void **state) {
  (void)state;
  static const change changes[] = {
      {"demux %more, %new1", "demux %phase, %new1", "every_condition_argument_is_split", 0},
      {"%zero, %lane1#1", "%zero, %lane0#1", "argument_enters_the_after_region", 33},
      {"%lane1#0 %first", "%lane0#0 %first", "argument_leaves_the_loop", 33},
      {"%lane0:2 = dataflow.demux %more, %new0 : (i1, i32) -> (i32, i32)",
       "%lane0:3 = dataflow.demux %more, %new0 : (i1, i32) -> (i32, i32, i32)", "argument_has_two_lanes", 32},
      {"sync %exit#0, %over#0", "sync %over#0, %over#0", "execution_leaves_the_loop", 28},
      {"demux %phase, %open", "demux %phase, %e", "execution_enters_the_after_region", 28},
      {"demux %phase, %open", "demux %more, %open", "after_region_has_a_selector", 28},
      {"sync %out_of#0, %settled#0", "sync %out_of#0, %out_of#1", "frontier_leaves_the_loop frontier_leaves_the_loop",
       30},
      {"%settled#1", "%start", "", 0}, /* the other split of the same event still enters */
      {"%settled:2 = dataflow.demux %more, %stored", "%settled:2 = dataflow.demux %more, %read_done",
       "frontier_leaves_the_loop", 30},
      {"%written:2 = dataflow.demux %more, %stored", "%written:2 = dataflow.demux %more, %start", "", 0},
      {"%settled:2 = dataflow.demux %more, %stored : (i1, none) -> (none, none)",
       "%settled:3 = dataflow.demux %more, %stored : (i1, none) -> (none, none, none)", "frontier_has_two_lanes", 31},
  };
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
    assert_change(&changes[i], SAMPLES "while.spct", HERE "counting.mlir", HERE "counting-lowered.mlir");
}

static void while_holds(void **state) {
  (void)state;
  fixture f;
  char *text = file_text(HERE "counting-lowered.mlir");
  open_fixture(&f, SAMPLES "while.spct", HERE "counting.mlir", text);
  assert_true(weft_postcondition_uses_input(f.post));
  evaluate_fixture(&f, false);
  assert_int_equal(f.verdict, WEFT_VERDICT_HOLDS);
  assert_int_equal(weft_diag_count(f.diag), 0);
  /* The loop itself, not lowered: its condition's arguments are not split. */
  weft_mlir_file *output = f.output;
  f.output = f.input;
  evaluate_fixture(&f, false);
  assert_int_equal(f.verdict, WEFT_VERDICT_FAILS);
  assert_non_null(strstr(weft_diag_message(f.diag, 0)->hint, "the sides are 2 and 0"));
  f.output = output;
  close_fixture(&f);
  free(text);
}

/* ---- graph-launch --------------------------------------------------------------------------------------------- */

static void launch_clauses(void **state) {
  (void)state;
  static const change changes[] = {
      {"%value, %chan) <{callee = @send_graph", "%value, %chan) <{callee = @nobody",
       "callee_is_a_graph callee_is_a_graph", 15},
      {"%start, %value, %chan) <{callee = @send_graph", "%start, %value, %chan) <{callee = @receiver",
       "callee_is_a_graph", 15},
      {"callee = @store_graph,", "", "callee_is_a_graph", 22},
      {"array<i32: 1, 0, 1, 1, 0>", "array<i32: 1, 0, 1, 1>", "has_five_operand_segments", 22},
      {"array<i32: 1, 0, 1, 1, 0>", "array<i32: 1, 0, 1, 0, 0>", "operand_segments_take_every_operand", 22},
      {"array<i32: 1, 0, 1, 1, 0>", "array<i32: 1, 1, 0, 1, 0>", "", 0}, /* any value may be a value */
      {"array<i32: 1, 0, 1, 1, 0>", "array<i32: 2, 0, 0, 1, 0>", "dependency_is_an_event", 20},
      {"array<i32: 1, 0, 1, 1, 0>", "array<i32: 1, 0, 1, 0, 1>", "stream_output_is_a_channel", 20},
      {"array<i32: 1, 0, 1, 1, 0>", "array<i32: 0, 0, 1, 1, 1>", "stream_input_is_a_channel stream_output_is_a_channel",
       20},
      {"array<i32: 1, 0, 1>}>", "array<i32: 1, 1>}>", "has_three_result_segments", 22},
      {"array<i32: 1, 0, 1>}>", "array<i32: 0, 0, 1>}>",
       "result_segments_take_every_result completion_is_an_event completion_is_the_last_result", 22},
      {"array<i32: 1, 0, 1>}>", "array<i32: 1, 1, 0>}>", "completes_once completion_is_the_last_result", 22},
      {"array<i32: 1, 0, 1>}>", "array<i32: 0, 0, 2>}>",
       "completes_once completion_is_an_event completion_is_the_last_result", 22},
      {"-> (i32, none)\n    dataflow.thread.yield %stored", "-> (none, i32)\n    dataflow.thread.yield %got",
       "completion_is_an_event", 22},
  };
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
    assert_change(&changes[i], SAMPLES "graph-launch.spct", HERE "counting.mlir", HERE "launches.mlir");
}

static void a_launch_needs_a_thread(void **state) {
  (void)state;
  fixture f;
  char *text = file_text(HERE "launches.mlir");
  open_fixture(&f, SAMPLES "graph-launch.spct", HERE "counting.mlir", text);
  assert_false(weft_postcondition_uses_input(f.post));
  evaluate_fixture(&f, false);
  assert_int_equal(f.verdict, WEFT_VERDICT_HOLDS);
  weft_mlir_op *looper = weft_mlir_lookup(f.output->modules[0], "looper");
  looper->name = weft_mlir_name(f.context, "func.func", strlen("func.func"));
  evaluate_fixture(&f, false);
  assert_int_equal(f.verdict, WEFT_VERDICT_FAILS);
  assert_int_equal(weft_diag_count(f.diag), 1);
  assert_non_null(strstr(weft_diag_message(f.diag, 0)->text, "`launch_is_in_a_thread` does not hold for launch = "));
  assert_int_equal(weft_diag_message(f.diag, 0)->place.line, 34);
  close_fixture(&f);
  free(text);
}

/* ---- a checker of its own ------------------------------------------------------------------------------------- */

/* The clauses of while.spct, as bits. */
#define CLAUSES(CLAUSE)                                                                                                \
  CLAUSE(every_condition_argument_is_split)                                                                            \
  CLAUSE(argument_has_two_lanes)                                                                                       \
  CLAUSE(argument_leaves_the_loop)                                                                                     \
  CLAUSE(argument_enters_the_after_region)                                                                             \
  CLAUSE(execution_leaves_the_loop)                                                                                    \
  CLAUSE(execution_enters_the_after_region)                                                                            \
  CLAUSE(after_region_has_a_selector)                                                                                  \
  CLAUSE(frontier_has_two_lanes)                                                                                       \
  CLAUSE(frontier_leaves_the_loop)                                                                                     \
  CLAUSE(frontier_enters_the_after_region)

enum {
#define CLAUSE(name) name,
  CLAUSES(CLAUSE)
#undef CLAUSE
      CLAUSE_COUNT
};
static const char *const clause_names[] = {
#define CLAUSE(name) #name,
    CLAUSES(CLAUSE)
#undef CLAUSE
};

typedef struct op_list {
  weft_mlir_op *ops[200];
  int count;
} op_list;

static bool is(const weft_mlir_op *op, const char *name) { return op && strcmp(op->name->text, name) == 0; }
static bool is_event(const weft_mlir_value *v) { return v->type->kind == WEFT_MLIR_NONE_TYPE; }

static op_list ops_of(const weft_mlir_op *module) {
  op_list list = {.count = 0};
  for (weft_mlir_op *op = weft_mlir_next(module, NULL); op; op = weft_mlir_next(module, op)) {
    assert_in_range(list.count, 0, 199);
    list.ops[list.count++] = op;
  }
  return list;
}

static int uses_of(const op_list *all, const weft_mlir_value *v) {
  int uses = 0;
  for (int i = 0; i < all->count; i++)
    for (uint32_t k = 0; k < all->ops[i]->operand_count; k++) uses += all->ops[i]->operands[k] == v;
  return uses;
}

static bool is_gate(const weft_mlir_op *op) { return is(op, "dataflow.gate") && is_event(&op->results[1]); }

static bool is_selector(const op_list *all, const weft_mlir_value *v) {
  for (int i = 0; i < all->count; i++)
    if (is_gate(all->ops[i]) && all->ops[i]->operands[0] == v) return true;
  return false;
}

static bool is_gated(const op_list *all, const weft_mlir_value *v) {
  for (int i = 0; i < all->count; i++)
    if (is_gate(all->ops[i]) && all->ops[i]->operands[1] == v) return true;
  return false;
}

/* Whether some demux by `selector` splits `v` and has a used result `lane`. */
static bool lane_is_used(const op_list *all, const weft_mlir_value *selector, const weft_mlir_value *v, uint32_t lane,
                         bool two) {
  for (int i = 0; i < all->count; i++) {
    const weft_mlir_op *d = all->ops[i];
    if (is(d, "dataflow.demux") && d->operands[0] == selector && d->operands[1] == v &&
        (!two || d->result_count == 2) && uses_of(all, &d->results[lane]))
      return true;
  }
  return false;
}

static void check_gate(const op_list *all, const weft_mlir_op *g, bool *broken) {
  if (!lane_is_used(all, g->operands[0], g->operands[1], 0, true)) broken[execution_leaves_the_loop] = true;
  if (!uses_of(all, &g->results[1])) broken[execution_enters_the_after_region] = true;
  bool selects = false;
  for (int i = 0; i < all->count; i++)
    selects = selects || (is(all->ops[i], "dataflow.demux") && all->ops[i]->operands[0] == &g->results[0]);
  if (!selects) broken[after_region_has_a_selector] = true;
}

static void check_split(const op_list *all, const weft_mlir_op *d, bool *broken) {
  if (!is_event(d->operands[1])) {
    if (d->result_count != 2) broken[argument_has_two_lanes] = true;
    if (!uses_of(all, &d->results[0])) broken[argument_leaves_the_loop] = true;
    if (!uses_of(all, &d->results[1])) broken[argument_enters_the_after_region] = true;
    return;
  }
  const weft_mlir_op *maker = weft_mlir_defining_op(d->operands[1]);
  if (is_gated(all, d->operands[1]) || !maker || is(maker, "dataflow.carry")) return;
  if (d->result_count != 2) broken[frontier_has_two_lanes] = true;
  if (!lane_is_used(all, d->operands[0], d->operands[1], 0, false)) broken[frontier_leaves_the_loop] = true;
  if (!lane_is_used(all, d->operands[0], d->operands[1], 1, false)) broken[frontier_enters_the_after_region] = true;
}

static void check_while(const weft_mlir_op *before, const weft_mlir_op *after, bool *broken) {
  op_list in = ops_of(before), all = ops_of(after);
  int arguments = 0, split = 0;
  for (int i = 0; i < in.count; i++)
    if (is(in.ops[i], "scf.condition")) arguments += (int)in.ops[i]->operand_count - 1;
  for (int i = 0; i < all.count; i++) {
    weft_mlir_op *op = all.ops[i];
    if (is_gate(op)) check_gate(&all, op, broken);
    if (!is(op, "dataflow.demux") || !is_selector(&all, op->operands[0])) continue;
    check_split(&all, op, broken);
    split += !is_event(op->operands[1]);
  }
  broken[every_condition_argument_is_split] = arguments != split;
}

/* ---- random changes ------------------------------------------------------------------------------------------- */

static weft_mlir_value *random_value(const op_list *all, const weft_mlir_type *type, uint64_t *random) {
  weft_mlir_value *found[400];
  uint64_t count = 0;
  for (int i = 0; i < all->count; i++)
    for (uint32_t r = 0; r < all->ops[i]->result_count; r++)
      if (all->ops[i]->results[r].type == type) found[count++] = &all->ops[i]->results[r];
  return count ? found[weft_random_next(random) % count] : NULL;
}

/* Another value of the same type for one operand, or of the other type for what a demux splits. */
static void change_module(fixture *f, uint64_t *random) {
  op_list all = ops_of(f->output->modules[0]);
  for (uint64_t changes = 1 + weft_random_next(random) % 3; changes;) {
    weft_mlir_op *op = all.ops[weft_random_next(random) % (uint64_t)all.count];
    if (!op->operand_count) continue;
    uint32_t slot = (uint32_t)(weft_random_next(random) % op->operand_count);
    const weft_mlir_type *type = op->operands[slot]->type;
    bool other = is(op, "dataflow.demux") && slot == 1 && weft_random_next(random) % 4 == 0;
    if (other)
      type = is_event(op->operands[slot]) ? weft_mlir_integer(f->context, 32, WEFT_MLIR_SIGNLESS)
                                          : weft_mlir_none(f->context);
    weft_mlir_value *value = random_value(&all, type, random);
    if (!value) continue;
    op->operands[slot] = value;
    changes--;
  }
}

static void assert_agrees(fixture *f, uint64_t seed) {
  bool broken[CLAUSE_COUNT] = {false}, said[CLAUSE_COUNT] = {false};
  check_while(f->input->modules[0], f->output->modules[0], broken);
  for (int unindexed = 0; unindexed < 2; unindexed++) {
    evaluate_fixture(f, unindexed);
    memset(said, 0, sizeof said);
    for (uint64_t i = 0; i < weft_diag_count(f->diag); i++)
      for (int c = 0; c < CLAUSE_COUNT; c++)
        if (strncmp(weft_diag_message(f->diag, i)->text + 1, clause_names[c], strlen(clause_names[c])) == 0)
          said[c] = true;
    bool any = false;
    for (int c = 0; c < CLAUSE_COUNT; c++) {
      any = any || broken[c];
      if (said[c] != broken[c]) fail_msg("%s; repeat with: test_holds %llu", clause_names[c], (unsigned long long)seed);
    }
    assert_int_equal(f->verdict, any ? WEFT_VERDICT_FAILS : WEFT_VERDICT_HOLDS);
  }
}

static void random_changes_agree_with_the_checker(void **state) {
  (void)state;
  char *text = file_text(HERE "counting-lowered.mlir");
  uint64_t first = only_seed == UINT64_MAX ? 0 : only_seed, count = only_seed == UINT64_MAX ? 2000 : 1, held = 0;
  for (uint64_t seed = first; seed < first + count; seed++) {
    fixture f;
    uint64_t random = seed;
    open_fixture(&f, SAMPLES "while.spct", HERE "counting.mlir", text);
    change_module(&f, &random);
    assert_agrees(&f, seed);
    held += f.verdict == WEFT_VERDICT_HOLDS;
    close_fixture(&f);
  }
  if (count > 1) assert_in_range(held, 100, 1900); /* both verdicts are seen often */
  free(text);
}

int main(int argc, char **argv) {
  if (argc > 1) only_seed = strtoull(argv[1], NULL, 10);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(while_holds),
      cmocka_unit_test(while_clauses),
      cmocka_unit_test(launch_clauses),
      cmocka_unit_test(a_launch_needs_a_thread),
      cmocka_unit_test(random_changes_agree_with_the_checker),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
