/* Samples from end to end: each is read, interpreted, lowered or published, judged by its postcondition, and run under
 * five random firing orders; memories, results and channels must be the interpreter's. `test_sampled_programs COUNT`
 * takes that many samples of each grammar; `test_sampled_programs COUNT SEED` only that one. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

static uint64_t samples = 200, only_seed = UINT64_MAX;

enum { CELLS = 16, INPUTS = 4, ORDERS = 5 };

/** What one graph runs on: values first, then memories. */
typedef struct world {
  uint64_t values[INPUTS], words[INPUTS][CELLS];
  weft_memory buffers[INPUTS];
  weft_binding bindings[INPUTS];
  uint64_t count;
  uint64_t result;
} world;

static void stop(const char *what, const char *detail, uint64_t seed) {
  fail_msg("%s: %s; repeat with: test_sampled_programs 1 %llu", what, detail ? detail : "", (unsigned long long)seed);
}

/* The same for the same graph of a sample, whatever runs it. */
static void fill_world(world *w, const weft_mlir_op *graph, uint64_t random) {
  const weft_mlir_block *body = weft_mlir_op_block(graph, 0);
  *w = (world){.count = body->argument_count - 1};
  assert_in_range(w->count, 1, INPUTS);
  for (uint64_t i = 0; i < w->count; i++) {
    const weft_mlir_type *type = body->arguments[i + 1].type;
    if (type->kind != WEFT_MLIR_MEMREF_TYPE) {
      w->bindings[i].word = (uint64_t)((int64_t)(weft_random_next(&random) % 12) - 2);
      continue;
    }
    for (int c = 0; c < CELLS; c++) w->words[i][c] = (uint64_t)(int64_t)(int32_t)weft_random_next(&random);
    w->buffers[i] = (weft_memory){.element = type->element, .count = CELLS, .words = w->words[i]};
    w->bindings[i].buffer = &w->buffers[i];
  }
}

static void interpret(const weft_mlir_op *graph, world *w, uint64_t seed) {
  weft_diag *diag = weft_diag_new();
  weft_interpreter *run;
  assert_ok(weft_interpreter_new(graph, "sample.mlir", &run, diag), diag);
  assert_ok(weft_interpreter_start(run, w->bindings, w->count, diag), diag);
  if (weft_interpreter_run(run, 1 << 24) != WEFT_RUN_DONE)
    stop("interpreter", weft_interpreter_report(run)->text, seed);
  if (weft_interpreter_result_count(run)) w->result = weft_interpreter_result(run, 0);
  weft_interpreter_free(run);
  weft_diag_free(diag);
}

static void simulate(const weft_mlir_op *graph, const world *expected, uint64_t start, uint64_t order, uint64_t seed) {
  world w;
  fill_world(&w, graph, start);
  weft_diag *diag = weft_diag_new();
  weft_simulator *run;
  const weft_simulator_options options = {.order = WEFT_ORDER_RANDOM,
                                          .seed = order,
                                          .strict = true,
                                          .capacity = order % 3 == 2 ? UINT64_MAX : 2 + order % 3};
  assert_ok(weft_simulator_new(graph, "lowered.mlir", &options, &run, diag), diag);
  assert_ok(weft_simulator_start(run, w.bindings, w.count, NULL, 0, diag), diag);
  if (weft_simulator_run(run, 1 << 26) != WEFT_RUN_DONE || !weft_simulator_complete(run))
    stop("simulator", weft_simulator_report(run)->text, seed);
  for (uint64_t i = 0; i < w.count; i++)
    if (memcmp(w.words[i], expected->words[i], sizeof w.words[i]) != 0) stop("a memory differs", NULL, seed);
  if (weft_mlir_function_type(graph)->result_count &&
      (!weft_simulator_result(run, 0, &w.result) || w.result != expected->result))
    stop("the result differs", NULL, seed);
  weft_simulator_free(run);
  weft_diag_free(diag);
}

static void judge(const weft_postcondition *post, weft_mlir_context *context, const weft_mlir_file *before,
                  weft_mlir_file *after, uint64_t seed) {
  weft_diag *diag = weft_diag_new();
  weft_verdict verdict;
  weft_postcondition_side input = {.module = before->modules[0], .file = "sample.mlir"};
  weft_postcondition_side output = {.module = after->modules[0], .file = "lowered.mlir"};
  assert_ok(weft_mlir_verify(after->modules[0], "lowered.mlir", diag), diag);
  assert_ok(weft_lowering_check(after->modules[0], "lowered.mlir", diag), diag);
  if (!post) {
    weft_diag_free(diag);
    return;
  }
  assert_ok(weft_postcondition_evaluate(post, context, input, output, NULL, &verdict, diag), diag);
  if (verdict != WEFT_VERDICT_HOLDS) stop("postcondition", message_text(diag, 0), seed);
  weft_diag_free(diag);
}

/* The graphs of a module and those of the lowered one, in the same order. */
static void run_graphs(const weft_mlir_op *before, const weft_mlir_op *after, uint64_t seed) {
  const weft_mlir_op *lowered = weft_mlir_op_block(after, 0)->first;
  for (const weft_mlir_op *op = weft_mlir_op_block(before, 0)->first; op; op = op->next) {
    world expected;
    fill_world(&expected, op, seed);
    interpret(op, &expected, seed);
    for (uint64_t order = 0; order < ORDERS; order++) simulate(lowered, &expected, seed, order, seed);
    lowered = lowered->next;
  }
}

/* ---- threads ------------------------------------------------------------------------------------------------------
 */

enum { THREAD_CELLS = 4, FED = 6 };

/** What a thread of the launch grammar runs on: a value, a memory, a channel with tokens in it, a flag. */
typedef struct thread_world {
  uint64_t words[THREAD_CELLS];
  weft_memory memory;
  weft_channel channel;
  weft_binding inputs[INPUTS];
} thread_world;

static void fill_thread(thread_world *w, const weft_mlir_op *thread, bool flag, uint64_t random) {
  const weft_mlir_type *const *types = weft_mlir_function_type(thread)->inputs;
  *w = (thread_world){.channel = {.name = "chan", .element = types[0]}};
  w->inputs[0].word = (uint64_t)(int64_t)(int32_t)weft_random_next(&random);
  for (int c = 0; c < THREAD_CELLS; c++) w->words[c] = (uint64_t)(int64_t)(int32_t)weft_random_next(&random);
  for (int i = 0; i < FED; i++)
    assert_true(weft_channel_push(&w->channel, (uint64_t)(int64_t)(int32_t)weft_random_next(&random)));
  w->memory = (weft_memory){.element = types[0], .count = THREAD_CELLS, .words = w->words};
  w->inputs[1].buffer = &w->memory;
  w->inputs[2].channel = &w->channel;
  w->inputs[3].word = flag;
}

/* What the region of a thread does, from its segments and the ops around it alone. */
static void expect_thread(thread_world *w, const weft_mlir_op *region, bool flag) {
  const weft_mlir_attribute *segments = weft_mlir_attribute_of(region, "operandSegmentSizes");
  bool receives = weft_mlir_dense_integer(segments, 1) != 0, sends = weft_mlir_dense_integer(segments, 3) != 0;
  bool stores = weft_mlir_dense_integer(segments, 2) != 0, runs = true, nested = false;
  for (const weft_mlir_op *op = weft_mlir_parent(region); weft_mlir_code(op) != WEFT_DATAFLOW_THREAD;
       op = weft_mlir_parent(op)) {
    nested = true;
    if (weft_mlir_code(op) == WEFT_OP_SCF_IF) runs = flag;
  }
  assert_false(nested && (receives || sends)); /* so every channel event happens once */
  if (sends) assert_true(weft_channel_push(&w->channel, w->inputs[0].word));
  if (stores && runs) w->words[0] = receives ? w->channel.words[w->channel.begin++] : w->inputs[0].word;
}

static void run_thread(const weft_mlir_op *thread, thread_world *w, uint64_t order, uint64_t seed) {
  weft_diag *diag = weft_diag_new();
  weft_interpreter *run;
  assert_ok(weft_interpreter_new(thread, "sample.mlir", &run, diag), diag);
  if (order) weft_interpreter_set_order(run, WEFT_ORDER_RANDOM, seed * ORDERS + order);
  assert_ok(weft_interpreter_start(run, w->inputs, INPUTS, diag), diag);
  if (weft_interpreter_run(run, 1 << 20) != WEFT_RUN_DONE) stop("thread", weft_interpreter_report(run)->text, seed);
  weft_interpreter_free(run);
  weft_diag_free(diag);
}

static void compare_threads(const thread_world *expected, const thread_world *got, const char *how, uint64_t seed) {
  uint64_t waiting = weft_channel_waiting(&expected->channel);
  if (memcmp(expected->words, got->words, sizeof got->words) != 0) stop(how, "the memory differs", seed);
  if (weft_channel_waiting(&got->channel) != waiting ||
      memcmp(weft_channel_first(&got->channel), weft_channel_first(&expected->channel), waiting * sizeof(uint64_t)))
    stop(how, "the channel differs", seed);
}

static const weft_mlir_op *find_op(const weft_mlir_op *root, uint32_t code) {
  const weft_mlir_op *op = weft_mlir_next(root, NULL);
  while (op && weft_mlir_code(op) != code) op = weft_mlir_next(root, op);
  return op;
}

/* Each thread with and without its flag: as it stands, then published under several orders of firing. */
static void run_threads(const weft_mlir_op *before, const weft_mlir_op *after, uint64_t seed) {
  for (const weft_mlir_op *thread = weft_mlir_op_block(before, 0)->first; thread; thread = thread->next) {
    const weft_mlir_op *published = weft_mlir_lookup(after, weft_mlir_symbol_name(thread));
    const weft_mlir_op *region = find_op(thread, WEFT_DATAFLOW_SPATIAL_REGION);
    assert_non_null(region);
    if (!published || find_op(published, WEFT_DATAFLOW_SPATIAL_REGION)) stop("a region is left", NULL, seed);
    if (!find_op(published, WEFT_DATAFLOW_GRAPH_LAUNCH)) stop("no launch", NULL, seed);
    for (int flag = 0; flag < 2; flag++) {
      thread_world expected, got;
      fill_thread(&expected, thread, flag, seed);
      expect_thread(&expected, region, flag);
      for (uint64_t order = 0; order <= ORDERS + 1; order++) { /* the first is the structured one */
        fill_thread(&got, thread, flag, seed);
        run_thread(order ? published : thread, &got, order ? order - 1 : 0, seed);
        compare_threads(&expected, &got, order ? "the published thread" : "the thread", seed);
        weft_channel_free(&got.channel);
      }
      weft_channel_free(&expected.channel);
    }
  }
}

/* ---- samples ------------------------------------------------------------------------------------------------------
 */

/** A pass with what compares the modules before and after it. */
typedef struct pass {
  weft_status (*apply)(weft_mlir_context *context, weft_arena *arena, weft_mlir_op *module, const char *file,
                       weft_diag *diag);
  void (*run)(const weft_mlir_op *before, const weft_mlir_op *after, uint64_t seed);
} pass;
static const pass lowering = {weft_lower, run_graphs}, publication = {weft_publish, run_threads};

static void run_sample(const pass *p, const weft_grammar *grammar, const weft_postcondition *post, uint64_t seed) {
  weft_text text = sample_of(grammar, &(weft_grammar_options){.seed = seed});
  weft_mlir_context *context = context_new();
  weft_diag *diag = weft_diag_new();
  weft_mlir_file *before, *after;
  assert_ok(weft_mlir_parse(context, "sample.mlir", text.data, text.length, false, &before, diag), diag);
  assert_ok(weft_mlir_parse(context, "sample.mlir", text.data, text.length, false, &after, diag), diag);
  weft_status status = p->apply(context, after->arena, after->modules[0], "sample.mlir", diag);
  if (status) stop("the pass", message_text(diag, 0), seed);
  judge(post, context, before, after, seed);
  p->run(before->modules[0], after->modules[0], seed);
  weft_mlir_file_free(before);
  weft_mlir_file_free(after);
  weft_mlir_context_free(context);
  weft_diag_free(diag);
  weft_text_free(&text);
}

static void run_samples(const pass *p, const char *grammar_path, const char *post_path) {
  weft_diag *diag = weft_diag_new();
  weft_grammar *grammar;
  weft_postcondition *post = NULL;
  assert_ok(weft_grammar_read(grammar_path, &grammar, diag), diag);
  if (post_path) assert_ok(weft_postcondition_read(post_path, &post, diag), diag);
  uint64_t first = only_seed == UINT64_MAX ? 0 : only_seed, count = only_seed == UINT64_MAX ? samples : 1;
  for (uint64_t seed = first; seed < first + count; seed++) run_sample(p, grammar, post, seed);
  weft_postcondition_free(post);
  weft_grammar_free(grammar);
  weft_diag_free(diag);
}

static void while_loops(void **state) {
  (void)state;
  run_samples(&lowering, SAMPLES "while.pg", SAMPLES "while.spct");
}

static void nested_control_flow(void **state) {
  (void)state;
  run_samples(&lowering, SAMPLES "nested.pg", NULL);
}

static void launches(void **state) {
  (void)state;
  run_samples(&publication, SAMPLES "graph-launch.pg", SAMPLES "graph-launch.spct");
}

int main(int argc, char **argv) {
  if (argc > 1) samples = strtoull(argv[1], NULL, 10);
  if (argc > 2) only_seed = strtoull(argv[2], NULL, 10);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(while_loops),
      cmocka_unit_test(nested_control_flow),
      cmocka_unit_test(launches),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
