#include "df_support.h"

world world_new(void) {
  world w = {.context = weft_mlir_context_new(), .diag = weft_diag_new()};
  assert_non_null(w.context);
  assert_non_null(w.diag);
  assert_int_equal(weft_mlir_register_standard(w.context, w.diag), WEFT_OK);
  assert_int_equal(weft_dataflow_register(w.context, w.diag), WEFT_OK);
  return w;
}

void world_free(world *w) {
  weft_mlir_context_free(w->context);
  weft_diag_free(w->diag);
}

weft_mlir_file *world_parse(world *w, const char *text) {
  weft_mlir_file *file = NULL;
  weft_diag_clear(w->diag);
  weft_status status = weft_mlir_parse(w->context, "test.mlir", text, strlen(text), false, &file, w->diag);
  assert_true((status == WEFT_OK) == (file != NULL));
  return file;
}

const char *world_message(const world *w) {
  return weft_diag_count(w->diag) ? weft_diag_message(w->diag, 0)->text : "";
}

weft_mlir_file *world_must_parse(world *w, const char *text) {
  weft_mlir_file *file = world_parse(w, text);
  if (!file) fail_msg("line %llu: %s", (unsigned long long)weft_diag_message(w->diag, 0)->place.line, world_message(w));
  return file;
}

char *print_module(weft_mlir_op *module, bool generic) {
  weft_text text = {0};
  weft_mlir_print_to_text(module, (weft_mlir_print_options){.generic = generic}, &text);
  assert_false(text.failed);
  return text.data;
}

void expect_refused(const char *text, uint64_t line, const char *words) {
  world w = world_new();
  weft_mlir_file *file = world_parse(&w, text);
  if (file) fail_msg("accepted, but expected: %s", words);
  if (!strstr(world_message(&w), words)) fail_msg("the message is \"%s\", expected \"%s\"", world_message(&w), words);
  uint64_t at = weft_diag_message(w.diag, 0)->place.line;
  if (line && at != line)
    fail_msg("\"%s\" is said of line %llu, expected %llu", world_message(&w), (unsigned long long)at,
             (unsigned long long)line);
  world_free(&w);
}

void memories_fill(memories *m, const weft_mlir_type *element, uint64_t seed) {
  memset(m, 0, sizeof *m);
  for (int i = 0; i < MEMORIES; i++) {
    for (int k = 0; k < MEMORY_WORDS; k++)
      m->words[i][k] = (uint64_t)(int64_t)(int32_t)(weft_random_next(&seed) % 41) - 20;
    m->buffers[i] = (weft_memory){.element = element, .count = MEMORY_WORDS, .words = m->words[i]};
  }
}

const char *memories_differ(const memories *a, const memories *b, bool counts) {
  static char text[200];
  for (int i = 0; i < MEMORIES; i++) {
    for (int k = 0; k < MEMORY_WORDS; k++)
      if (a->words[i][k] != b->words[i][k]) {
        snprintf(text, sizeof text, "memory %d word %d is %lld against %lld", i, k, (long long)a->words[i][k],
                 (long long)b->words[i][k]);
        return text;
      }
    if (counts && (a->buffers[i].loads != b->buffers[i].loads || a->buffers[i].stores != b->buffers[i].stores)) {
      snprintf(text, sizeof text, "memory %d has %llu loads and %llu stores against %llu and %llu", i,
               (unsigned long long)a->buffers[i].loads, (unsigned long long)a->buffers[i].stores,
               (unsigned long long)b->buffers[i].loads, (unsigned long long)b->buffers[i].stores);
      return text;
    }
  }
  return "";
}

void thread_begin(world *w, uint64_t seed, thread_run *run) {
  enum { TOKENS = 3000 };
  const weft_mlir_type *i32 = weft_mlir_integer(w->context, 32, WEFT_MLIR_SIGNLESS);
  const weft_mlir_type *elements[THREAD_CHANNELS] = {i32, weft_mlir_index(w->context), i32,
                                                     weft_mlir_float(w->context, "f32")};
  static const char *const names[THREAD_CHANNELS] = {"in", "in2", "out", "out2"};
  memset(run, 0, sizeof *run);
  memories_fill(&run->memory, i32, seed);
  uint64_t random = seed;
  for (int c = 0; c < THREAD_CHANNELS; c++) {
    run->channels[c] = (weft_channel){.name = names[c], .element = elements[c]};
    for (int i = 0; c < 2 && i < TOKENS; i++)
      assert_true(weft_channel_push(&run->channels[c], weft_random_next(&random) % 19));
    run->inputs[6 + c].channel = &run->channels[c];
  }
  run->inputs[0].word = seed % 5;
  run->inputs[1].word = seed / 5 % 5;
  run->inputs[2].word = seed / 25 % 4;
  for (int i = 0; i < MEMORIES; i++) run->inputs[3 + i].buffer = &run->memory.buffers[seed % 3 == 0 ? 0 : i];
}

void thread_end(thread_run *run) {
  for (int c = 0; c < THREAD_CHANNELS; c++) weft_channel_free(&run->channels[c]);
}

void thread_execute(world *w, weft_mlir_op *module, uint64_t seed, uint64_t order, uint64_t steps, thread_run *run) {
  weft_interpreter *machine;
  thread_begin(w, seed, run);
  if (weft_interpreter_new(weft_mlir_lookup(module, "entry"), "test.mlir", &machine, w->diag) != WEFT_OK)
    fail_msg("seed %llu: %s", (unsigned long long)seed, world_message(w));
  if (order) weft_interpreter_set_order(machine, WEFT_ORDER_RANDOM, seed * 31 + order);
  assert_int_equal(weft_interpreter_start(machine, run->inputs, THREAD_INPUTS, w->diag), WEFT_OK);
  run->state = weft_interpreter_run(machine, steps);
  const char *text = weft_interpreter_report(machine)->text;
  snprintf(run->text, sizeof run->text, "%s", text ? text : "");
  weft_interpreter_free(machine);
}

const char *thread_runs_differ(const thread_run *a, const thread_run *b, bool counts) {
  const char *difference = memories_differ(&a->memory, &b->memory, counts);
  if (*difference) return difference;
  for (int c = 0; c < THREAD_CHANNELS; c++) {
    uint64_t count = weft_channel_waiting(&a->channels[c]);
    if (count != weft_channel_waiting(&b->channels[c])) return "a channel holds another number of tokens";
    if (count &&
        memcmp(weft_channel_first(&a->channels[c]), weft_channel_first(&b->channels[c]), count * sizeof(uint64_t)) != 0)
      return "a channel holds other tokens";
  }
  return "";
}
