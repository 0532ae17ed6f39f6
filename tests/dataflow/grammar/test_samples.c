/* The grammars that weft ships: every sample is read by the MLIR reader and is in the domain that the grammar
 * describes, every alternative is taken, and decisions are spread as they should be. `test_samples COUNT` takes that
 * many samples of each grammar; `test_samples COUNT SEED` only that one. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

static uint64_t samples = 200, only_seed = UINT64_MAX;

typedef struct domain {
  weft_mlir_context *context;
  weft_mlir_file *file;
  uint64_t seed;
  uint64_t *tally; /* of the decisions that were seen */
} domain;

#define NEED(condition)                                                                                                \
  do {                                                                                                                 \
    if (!(condition))                                                                                                  \
      fail_msg("not in the domain: %s; repeat with: test_samples 1 %llu", #condition, (unsigned long long)d->seed);    \
  } while (0)

static void read_sample(domain *d, const weft_grammar *grammar, weft_grammar_options options) {
  weft_text text = sample_of(grammar, &options), again = sample_of(grammar, &options);
  assert_int_equal(text.length, again.length);
  assert_memory_equal(text.data, again.data, text.length);
  weft_diag *diag = weft_diag_new();
  d->context = context_new();
  d->seed = options.seed;
  weft_status status = weft_mlir_parse(d->context, "sample.mlir", text.data, text.length, false, &d->file, diag);
  if (status) print_error("%s\nrepeat with: test_samples 1 %llu\n", text.data, (unsigned long long)options.seed);
  assert_ok(status, diag);
  NEED(d->file->module_count == 1);
  weft_diag_free(diag);
  weft_text_free(&text);
  weft_text_free(&again);
}

static bool is(const weft_mlir_op *op, const char *name) { return op && strcmp(op->name->text, name) == 0; }

static weft_mlir_op *first_op(const weft_mlir_op *op, uint32_t region) { return weft_mlir_op_block(op, region)->first; }
static weft_mlir_op *last_op(const weft_mlir_op *op, uint32_t region) { return weft_mlir_op_block(op, region)->last; }

static uint64_t count_inside(const weft_mlir_op *root, const char *name) {
  uint64_t count = 0;
  for (const weft_mlir_op *op = weft_mlir_next(root, root); op; op = weft_mlir_next(root, op)) count += is(op, name);
  return count;
}

/* ---- while ---------------------------------------------------------------------------------------------------- */

enum {
  ONE_GRAPH,
  TWO_GRAPHS,
  TWO_LANES,
  THREE_LANES,
  ONE_READ,
  TWO_READS,
  STORES,
  NO_STORE,
  BY_ARGUMENT,
  BY_CONSTANT,
  FORWARDS,
  RECOMPUTES,
  STORES_AFTER,
  LIMIT_2,
  LIMIT_3,
  LIMIT_4,
  LIMIT_5,
  LIMIT_6,
  WHILE_TALLIES
};

static void check_accesses(const domain *d, const weft_mlir_op *graph) {
  const weft_mlir_block *body = weft_mlir_op_block(graph, 0);
  for (const weft_mlir_op *op = weft_mlir_next(graph, graph); op; op = weft_mlir_next(graph, op)) {
    bool load = is(op, "memref.load"), store = is(op, "memref.store");
    NEED(load || store || is(op, "arith.constant") || is(op, "arith.index_cast") || is(op, "arith.addi") ||
         is(op, "arith.cmpi") || is(op, "scf.while") || is(op, "scf.condition") || is(op, "scf.yield") ||
         is(op, "dataflow.graph.return"));
    if (!load && !store) continue;
    NEED(op->operand_count == 2u + store);
    NEED(op->operands[store] == &body->arguments[2 + store]); /* loads from input, stores to output */
    NEED(is(weft_mlir_defining_op(op->operands[1 + store]), "arith.index_cast"));
  }
}

/* The before region: lane 0 counts by one, the test is on it, every new lane is handed on. */
static void check_before(domain *d, const weft_mlir_op *loop, uint32_t lanes) {
  const weft_mlir_block *before = weft_mlir_op_block(loop, 0);
  const weft_mlir_op *condition = before->last, *compare = weft_mlir_defining_op(condition->operands[0]);
  NEED(is(condition, "scf.condition") && condition->operand_count == lanes + 1);
  NEED(is(compare, "arith.cmpi") && weft_mlir_attribute_integer(compare, "predicate", -1) == 2);
  NEED(compare->operands[0] == condition->operands[1]);
  const weft_mlir_op *count = weft_mlir_defining_op(condition->operands[1]);
  NEED(is(count, "arith.addi") && count->operands[0] == &before->arguments[0]);
  for (uint32_t i = 1; i < lanes; i++) {
    const weft_mlir_op *sum = weft_mlir_defining_op(condition->operands[1 + i]);
    NEED(is(sum, "arith.addi") && sum->operands[0] == &before->arguments[i]);
    NEED(i < 2 || sum->operands[1] == condition->operands[1]);
  }
  uint64_t reads = 0, stores = 0;
  for (const weft_mlir_op *op = before->first; op; op = op->next) {
    reads += is(op, "memref.load");
    stores += is(op, "memref.store");
  }
  NEED(reads == 1 || reads == 2);
  NEED(stores <= 1);
  d->tally[reads == 1 ? ONE_READ : TWO_READS]++;
  d->tally[stores ? STORES : NO_STORE]++;
  const weft_mlir_op *bound = weft_mlir_defining_op(compare->operands[1]);
  d->tally[bound ? BY_CONSTANT : BY_ARGUMENT]++;
  NEED(!bound || is(bound, "arith.constant"));
}

static void check_after(domain *d, const weft_mlir_op *loop, uint32_t lanes) {
  const weft_mlir_block *after = weft_mlir_op_block(loop, 1);
  const weft_mlir_op *yield = after->last;
  NEED(is(yield, "scf.yield") && yield->operand_count == lanes && after->argument_count == lanes);
  for (uint32_t i = 0; i < lanes; i++)
    NEED(yield->operands[i] == &after->arguments[i] ||
         (i == 1 && is(weft_mlir_defining_op(yield->operands[1]), "arith.addi")));
  bool recomputes = yield->operands[1] != &after->arguments[1], stores = is(yield->previous, "memref.store");
  NEED(after->first == yield || recomputes || stores);
  d->tally[recomputes ? RECOMPUTES : stores ? STORES_AFTER : FORWARDS]++;
}

static void check_while_graph(domain *d, const weft_mlir_op *graph, uint64_t number) {
  const weft_mlir_block *body = weft_mlir_op_block(graph, 0);
  NEED(is(graph, "dataflow.graph") && body->argument_count == 4);
  NEED(strncmp(weft_mlir_symbol_name(graph), "while_case", 10) == 0);
  NEED(strtoull(weft_mlir_symbol_name(graph) + 10, NULL, 10) == number);
  NEED(count_inside(graph, "scf.while") == 1);
  const weft_mlir_op *loop = body->first;
  while (loop && !is(loop, "scf.while")) loop = loop->next;
  NEED(loop != NULL);
  uint32_t lanes = loop->result_count;
  NEED((lanes == 2 || lanes == 3) && loop->operand_count == lanes);
  d->tally[lanes == 2 ? TWO_LANES : THREE_LANES]++;
  check_before(d, loop, lanes);
  check_after(d, loop, lanes);
  check_accesses(d, graph);
  for (const weft_mlir_op *op = loop->next; op; op = op->next) NEED(!is(op, "scf.while"));
  for (uint32_t i = 0; i < lanes; i++) {
    uint64_t stored = 0;
    for (const weft_mlir_op *op = loop->next; op; op = op->next)
      stored += is(op, "memref.store") && op->operands[0] == &loop->results[i];
    NEED(stored == 1);
  }
  const weft_mlir_op *bound = first_op(graph, 0)->next->next;
  int64_t limit = weft_mlir_attribute_integer(bound, "value", -1);
  NEED(limit >= 2 && limit <= 6);
  d->tally[LIMIT_2 + limit - 2]++;
}

static void check_while(domain *d) {
  uint64_t graphs = 0;
  for (const weft_mlir_op *op = first_op(d->file->modules[0], 0); op; op = op->next) check_while_graph(d, op, graphs++);
  NEED(graphs == 1 || graphs == 2);
  d->tally[graphs == 1 ? ONE_GRAPH : TWO_GRAPHS]++;
}

/* ---- graph-launch --------------------------------------------------------------------------------------------- */

enum {
  ONE_THREAD,
  TWO_THREADS,
  THREE_THREADS,
  PLAIN,
  IN_FOR,
  IN_IF,
  IN_BOTH,
  STORING,
  EMPTY,
  SENDING,
  DOUBLING,
  RECEIVING,
  LAUNCH_TALLIES
};

static void check_region(domain *d, const weft_mlir_op *region, bool nested) {
  static const int64_t patterns[5][4] = {{1, 0, 1, 0}, {0, 0, 0, 0}, {1, 0, 0, 1}, {1, 0, 0, 0}, {0, 1, 1, 0}};
  const weft_mlir_attribute *sizes = weft_mlir_attribute_of(region, "operandSegmentSizes");
  const weft_mlir_attribute *maps = weft_mlir_attribute_of(region, "source_maps");
  NEED(sizes && maps && weft_mlir_attribute_of(region, "resultSegmentSizes"));
  int form = -1;
  for (int p = 0; p < 5; p++) {
    bool same = true;
    for (uint64_t i = 0; i < 4; i++) same = same && weft_mlir_dense_integer(sizes, i) == patterns[p][i];
    if (same) form = p;
  }
  NEED(form >= 0);
  d->tally[STORING + form]++;
  NEED(!nested || (form != 2 && form != 4));
  NEED(maps->count == (form == 4));
  NEED(region->result_count == (form == 3));
  NEED(count_inside(region, "memref.store") == (form == 0 || form == 4));
  NEED(count_inside(region, "dataflow.channel.send") == (form == 2));
  NEED(count_inside(region, "dataflow.channel.receive") == (form == 4));
  NEED(count_inside(region, "arith.addi") == (form == 3));
  NEED(is(last_op(region, 0), "loom.spatial_yield") && last_op(region, 0)->operand_count == region->result_count);
}

static void check_thread(domain *d, const weft_mlir_op *thread, uint64_t number) {
  NEED(is(thread, "dataflow.thread") && count_inside(thread, "loom.spatial_region") == 1);
  NEED(strtoull(weft_mlir_symbol_name(thread) + strlen("thread_"), NULL, 10) == number);
  const weft_mlir_op *op = first_op(thread, 0);
  for (int i = 0; i < 3; i++, op = op->next) NEED(is(op, "arith.constant"));
  bool in_for = is(op, "scf.for");
  if (in_for) op = first_op(op, 0);
  bool in_if = is(op, "scf.if");
  if (in_if) op = first_op(op, 0);
  NEED(is(op, "loom.spatial_region"));
  d->tally[PLAIN + in_for + 2 * in_if]++;
  check_region(d, op, in_for || in_if);
  const char *name = weft_mlir_attribute_text(op, "graph_name", "");
  NEED(strncmp(name, "graph_", 6) == 0 && strtoull(name + 6, NULL, 10) == number);
  NEED(is(last_op(thread, 0), "dataflow.thread.yield") && last_op(thread, 0)->operand_count == 0);
}

static void check_launch(domain *d) {
  uint64_t threads = 0;
  for (const weft_mlir_op *op = first_op(d->file->modules[0], 0); op; op = op->next) check_thread(d, op, threads++);
  NEED(threads >= 1 && threads <= 3);
  d->tally[ONE_THREAD + threads - 1]++;
}

/* ---- both ----------------------------------------------------------------------------------------------------- */

static weft_grammar *shipped(const char *path) {
  weft_diag *diag = weft_diag_new();
  weft_grammar *grammar;
  assert_ok(weft_grammar_read(path, &grammar, diag), diag);
  assert_int_equal(weft_diag_count(diag), 0);
  weft_diag_free(diag);
  return grammar;
}

static void sample_domain(const char *path, void (*check)(domain *), uint64_t *tally, weft_grammar_options options) {
  weft_grammar *grammar = shipped(path);
  uint64_t alternatives = weft_grammar_alternatives(grammar);
  options.hits = calloc(alternatives, sizeof *options.hits);
  assert_non_null(options.hits);
  uint64_t first = only_seed == UINT64_MAX ? 0 : only_seed, count = only_seed == UINT64_MAX ? samples : 1;
  for (uint64_t seed = first; seed < first + count; seed++) {
    domain d = {.tally = tally};
    options.seed = seed;
    read_sample(&d, grammar, options);
    check(&d);
    weft_mlir_file_free(d.file);
    weft_mlir_context_free(d.context);
  }
  for (uint64_t i = 0; i < alternatives && count >= 200 && !options.pin_count; i++) {
    weft_grammar_alternative a = weft_grammar_alternative_at(grammar, i);
    if (a.reachable && !options.hits[i]) fail_msg("%s: alternative %u was never taken", a.rule, a.index + 1);
  }
  free(options.hits);
  weft_grammar_free(grammar);
}

/* Each tally of a group of equally likely decisions, within 5 standard deviations. */
static void assert_spread(const uint64_t *tally, int first, int last) {
  uint64_t total = 0;
  for (int i = first; i <= last; i++) total += tally[i];
  double share = 1.0 / (last - first + 1);
  double variance = (double)total * share * (1 - share);
  for (int i = first; i <= last; i++) {
    double off = (double)tally[i] - (double)total * share;
    if (off * off > 25 * variance) fail_msg("decision %d was taken %d times of %d", i, (int)tally[i], (int)total);
  }
}

static void while_samples_are_in_their_domain(void **state) {
  (void)state;
  uint64_t tally[WHILE_TALLIES] = {0};
  sample_domain(SAMPLES "while.pg", check_while, tally, (weft_grammar_options){0});
  if (only_seed != UINT64_MAX) return;
  assert_int_equal(tally[ONE_GRAPH] + tally[TWO_GRAPHS], samples);
  static const int groups[][2] = {{ONE_GRAPH, TWO_GRAPHS}, {TWO_LANES, THREE_LANES},   {ONE_READ, TWO_READS},
                                  {STORES, NO_STORE},      {BY_ARGUMENT, BY_CONSTANT}, {FORWARDS, STORES_AFTER},
                                  {LIMIT_2, LIMIT_6}};
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) assert_spread(tally, groups[i][0], groups[i][1]);
}

static void launch_samples_are_in_their_domain(void **state) {
  (void)state;
  uint64_t tally[LAUNCH_TALLIES] = {0};
  sample_domain(SAMPLES "graph-launch.pg", check_launch, tally, (weft_grammar_options){0});
  if (only_seed != UINT64_MAX) return;
  assert_spread(tally, ONE_THREAD, THREE_THREADS);
  assert_spread(tally, PLAIN, IN_BOTH);
  /* Outside loops and branches, a quarter of the threads, all five forms are equally likely: inside, the sending form
   * is the empty one and the receiving form the storing one. */
  uint64_t threads = tally[PLAIN] + tally[IN_FOR] + tally[IN_IF] + tally[IN_BOTH];
  assert_in_range(tally[DOUBLING] * 5, threads * 7 / 10, threads * 13 / 10);
  assert_in_range(tally[SENDING] * 20, threads * 4 / 10, threads * 16 / 10);
  assert_in_range(tally[RECEIVING] * 20, threads * 4 / 10, threads * 16 / 10);
  assert_in_range(tally[STORING] * 20, threads * 7 * 7 / 10, threads * 7 * 13 / 10);
}

static void pins_pick_one_kind(void **state) {
  (void)state;
  uint64_t tally[LAUNCH_TALLIES] = {0};
  const weft_grammar_pin pins[] = {{"FORM", 4}, {"AROUND", 0}, {"THREADS", 2}};
  sample_domain(SAMPLES "graph-launch.pg", check_launch, tally, (weft_grammar_options){.pins = pins, .pin_count = 3});
  uint64_t count = only_seed == UINT64_MAX ? samples : 1;
  assert_int_equal(tally[TWO_THREADS], count);
  assert_int_equal(tally[RECEIVING], 2 * count);
  assert_int_equal(tally[PLAIN], 2 * count);
}

/* Wider loops than are drawn: the grammar's own generality. */
static void lanes_may_be_many(void **state) {
  (void)state;
  weft_grammar *grammar = shipped(SAMPLES "while.pg");
  const weft_grammar_pin pins[] = {{"LANES", 40}, {"GRAPHS", 9}};
  domain d = {0};
  read_sample(&d, grammar, (weft_grammar_options){.seed = 5, .pins = pins, .pin_count = 2});
  assert_int_equal(count_inside(d.file->modules[0], "scf.while"), 9);
  const weft_mlir_op *loop = weft_mlir_op_block(first_op(d.file->modules[0], 0), 0)->first;
  while (!is(loop, "scf.while")) loop = loop->next;
  assert_int_equal(loop->result_count, 40);
  weft_mlir_file_free(d.file);
  weft_mlir_context_free(d.context);
  weft_grammar_free(grammar);
}

int main(int argc, char **argv) {
  if (argc > 1) samples = strtoull(argv[1], NULL, 10);
  if (argc > 2) only_seed = strtoull(argv[2], NULL, 10);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(while_samples_are_in_their_domain),
      cmocka_unit_test(launch_samples_are_in_their_domain),
      cmocka_unit_test(pins_pick_one_kind),
      cmocka_unit_test(lanes_may_be_many),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
