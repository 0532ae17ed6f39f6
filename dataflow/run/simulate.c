/* The token simulator: launches and the order of firing. */
#include "simulate_private.h"

#include <stdlib.h>
#include <string.h>

weft_status weft_simulator_new(const weft_mlir_op *graph, const char *file, const weft_simulator_options *options,
                               weft_simulator **simulator, weft_diag *diag) {
  *simulator = NULL;
  weft_simulator *s = calloc(1, sizeof *s);
  weft_arena *arena = weft_arena_new();
  if (!s || !arena) {
    free(s);
    weft_arena_free(arena);
    return weft_error_memory(diag);
  }
  *s = (weft_simulator){.arena = arena, .graph = graph, .file = file};
  if (options) s->options = *options;
  s->random = s->options.seed;
  weft_status status = simulate_compile(s, diag);
  if (status == WEFT_OK)
    *simulator = s;
  else
    weft_simulator_free(s);
  return status;
}

void weft_simulator_free(weft_simulator *s) {
  if (!s) return;
  for (uint32_t i = 0; i < s->source_count; i++) weft_channel_free(&s->sources[i].waiting);
  for (uint32_t i = 0; i < s->memory_count; i++) {
    free(s->memories[i].own.words);
    free(s->memories[i].own.written);
  }
  weft_text_free(&s->text);
  weft_arena_free(s->arena);
  free(s);
}

void simulate_set_order(weft_simulator *s, weft_order order, uint64_t seed) {
  s->options.order = order;
  s->random = s->options.seed = seed;
}

/* ---- launches ------------------------------------------------------------------------------------------------- */

static weft_status wrong(weft_simulator *s, weft_diag *diag, const char *what, uint32_t index) {
  return weft_error_at(diag, WEFT_INVALID, weft_mlir_place(s->file, s->graph), NULL, "input %u of @%s needs %s", index,
                       weft_mlir_symbol_name(s->graph), what);
}

static weft_status bind_memories(weft_simulator *s, const weft_binding *inputs, weft_diag *diag) {
  const weft_mlir_block *body = weft_mlir_op_block(s->graph, 0);
  for (uint32_t i = 0; i < s->memory_count; i++) {
    memory *m = &s->memories[i];
    if (m->input == UINT32_MAX) continue;
    const weft_mlir_type *type = body->arguments[m->input + 1].type;
    uint64_t elements;
    m->buffer = inputs[m->input].buffer;
    bool small = m->buffer && weft_mlir_elements(type, &elements) && elements > m->buffer->count;
    if (!m->buffer || m->buffer->element != type->element || small)
      return wrong(s, diag, "a buffer of its element type, large enough", m->input);
  }
  return WEFT_OK;
}

/* The size given by an input or a constant. */
static int64_t size_of(const weft_mlir_value *value, const weft_binding *inputs) {
  const weft_mlir_op *definition = weft_mlir_defining_op(value);
  if (definition) return weft_mlir_attribute_integer(definition, "value", -1);
  return value->index ? (int64_t)inputs[value->index - 1].word : -1;
}

static weft_status allocate(weft_simulator *s, memory *m, const weft_binding *inputs, weft_diag *diag) {
  const weft_mlir_type *type = m->alloc->results[0].type;
  uint64_t count = 1, dynamic = 0;
  bool good = true;
  for (uint32_t k = 0; good && k < type->rank; k++) {
    int64_t extent = type->extents[k] < 0 ? size_of(m->alloc->operands[dynamic++], inputs) : type->extents[k];
    good = extent >= 0 && !weft_mul_overflow(count, (uint64_t)extent, &count) && count <= WEFT_MOST_ALLOCATED;
  }
  free(m->own.words);
  free(m->own.written);
  m->own.words = good ? calloc(count + 1, sizeof *m->own.words) : NULL;
  m->own.written = good ? calloc(count + 1, 1) : NULL;
  m->own.count = count;
  m->buffer = &m->own;
  if (m->own.words && m->own.written) return WEFT_OK;
  return weft_error_at(diag, WEFT_INVALID, weft_mlir_place(s->file, m->alloc), NULL, "memref.alloc: %s",
                       weft_fault_text(WEFT_FAULT_SIZE));
}

static weft_status feed_sources(weft_simulator *s, const weft_binding *inputs, weft_diag *diag) {
  for (uint32_t i = 0; i < s->source_count; i++) {
    source *from = &s->sources[i];
    if (from->kind == SOURCE_STREAM) {
      const weft_mlir_type *type = weft_mlir_op_block(s->graph, 0)->arguments[from->input + 1].type;
      from->feed = inputs[from->input].channel;
      if (!from->feed || from->feed->element != type) return wrong(s, diag, "a channel of its type", from->input);
    } else {
      uint64_t word = from->kind == SOURCE_VALUE ? inputs[from->input].word : from->word;
      if (!weft_channel_push(&from->waiting, word)) return weft_error_memory(diag);
    }
    simulate_mark(s, from->actor);
  }
  return WEFT_OK;
}

static weft_status reset_sinks(weft_simulator *s, weft_channel *const *outputs, uint64_t count, weft_diag *diag) {
  s->missing = 0;
  for (uint32_t i = 0; i < s->sink_count; i++) {
    sink *k = &s->sinks[i];
    k->came = 0;
    s->missing += k->kind != SINK_STREAM;
    if (k->kind != SINK_STREAM) continue;
    if (k->index >= count || !outputs[k->index])
      return weft_error_at(diag, WEFT_INVALID, weft_mlir_place(s->file, s->graph), NULL,
                           "stream result %u of @%s needs a channel", k->index, weft_mlir_symbol_name(s->graph));
    k->into = outputs[k->index];
  }
  return WEFT_OK;
}

weft_status weft_simulator_start(weft_simulator *s, const weft_binding *inputs, uint64_t count,
                                 weft_channel *const *outputs, uint64_t output_count, weft_diag *diag) {
  uint32_t wanted = weft_mlir_function_type(s->graph)->input_count;
  if (count != wanted)
    return weft_error_at(diag, WEFT_INVALID, weft_mlir_place(s->file, s->graph), NULL,
                         "@%s takes %u inputs, %llu are given", weft_mlir_symbol_name(s->graph), wanted,
                         (unsigned long long)count);
  s->report = (weft_report){.fault = WEFT_FAULT_NONE};
  weft_status status = bind_memories(s, inputs, diag);
  for (uint32_t i = 0; status == WEFT_OK && i < s->memory_count; i++)
    if (s->memories[i].alloc) status = allocate(s, &s->memories[i], inputs, diag);
  if (status == WEFT_OK) status = reset_sinks(s, outputs, output_count, diag);
  return status == WEFT_OK ? feed_sources(s, inputs, diag) : status;
}

/* ---- firing --------------------------------------------------------------------------------------------------- */

static weft_run_state faulted(weft_simulator *s, uint32_t index) {
  const actor *a = &s->actors[index];
  s->report.op = a->op;
  s->text.length = 0;
  weft_text_printf(&s->text, "%s in line %u: %s", a->op->name->text, a->op->line, weft_fault_text(s->report.fault));
  s->report.text = s->text.data;
  return WEFT_RUN_FAULT;
}

/* An actor that may fire, in turn: the next one in the order of the program, round and round. */
static bool next_in_order(weft_simulator *s, uint32_t *from, uint32_t *index) {
  uint32_t words = s->actor_count / 64 + 1, tops = words / 64 + 1;
  for (uint32_t tried = 0; tried <= tops; tried++) {
    uint32_t top = *from / 64;
    uint64_t bits = s->ready_words[top] & (UINT64_MAX << (*from % 64));
    if (!bits) {
      *from = top + 1 < tops ? (top + 1) * 64 : 0;
      continue;
    }
    uint32_t word = top * 64 + (uint32_t)__builtin_ctzll(bits);
    *from = word;
    *index = word * 64 + (uint32_t)__builtin_ctzll(s->ready[word]);
    s->ready[word] &= s->ready[word] - 1;
    if (!s->ready[word]) s->ready_words[top] &= ~((uint64_t)1 << (word % 64));
    return true;
  }
  return false;
}

static bool next_random(weft_simulator *s, uint32_t *index) {
  if (!s->list_count) return false;
  uint32_t at = (uint32_t)(weft_random_next(&s->random) % s->list_count);
  *index = s->list[at];
  s->list[at] = s->list[--s->list_count];
  s->ready[*index / 64] &= ~((uint64_t)1 << (*index % 64));
  return true;
}

/* Tokens of a stream that no use has taken are the channel's again: another graph may be the one to read them. */
static bool give_back(weft_simulator *s, const source *from) {
  const actor *a = &s->actors[from->actor];
  uint32_t least = UINT32_MAX;
  for (uint32_t k = s->begins[a->out]; k < s->begins[a->out + 1]; k++) {
    uint32_t count = s->queues[s->fan[k]].count;
    if (count < least) least = count;
  }
  if (least == UINT32_MAX) return true;
  for (; least; least--) {
    uint64_t word = 0;
    for (uint32_t k = s->begins[a->out]; k < s->begins[a->out + 1]; k++) {
      queue *q = &s->queues[s->fan[k]];
      word = q->words[(q->head + --q->count) & q->mask];
    }
    if (!channel_give_back(from->feed, word)) return false;
  }
  return true;
}

/* Nothing can fire any more: what that means. */
static weft_run_state quiet(weft_simulator *s) {
  for (uint32_t i = 0; i < s->source_count && !s->missing; i++)
    if (s->sources[i].kind == SOURCE_STREAM && !give_back(s, &s->sources[i])) return WEFT_RUN_FAILED;
  if (!s->missing) return s->options.strict ? simulate_leftovers(s) : WEFT_RUN_DONE;
  bool streams = false;
  for (uint32_t i = 0; i < s->source_count; i++)
    if (s->sources[i].kind == SOURCE_STREAM && !weft_channel_waiting(s->sources[i].feed)) streams = true;
  return simulate_stuck(s, streams);
}

/* Fires one actor, in program order as often as it can; false when the run is over with *state. */
static bool fire(weft_simulator *s, uint32_t index, uint64_t *steps, weft_run_state *state) {
  int fired = simulate_fire(s, index);
  while (fired > 0) {
    s->report.steps++;
    --*steps;
    if (s->options.trace) s->options.trace(s->options.trace_context, s->actors[index].op, s->report.steps);
    if (!*steps || simulate_random(s)) {
      simulate_mark(s, index);
      break;
    }
    fired = simulate_fire(s, index);
  }
  if (fired < 0)
    *state = faulted(s, index);
  else if (s->bad_memory)
    *state = WEFT_RUN_FAILED;
  return fired >= 0 && !s->bad_memory;
}

weft_run_state weft_simulator_run(weft_simulator *s, uint64_t steps) {
  uint32_t from = 0, index;
  weft_run_state state;
  for (uint32_t i = 0; i < s->source_count; i++)
    if (s->sources[i].kind == SOURCE_STREAM) simulate_mark(s, s->sources[i].actor);
  while (simulate_random(s) ? next_random(s, &index) : next_in_order(s, &from, &index)) {
    if (!steps) {
      simulate_mark(s, index);
      return WEFT_RUN_LIMIT;
    }
    if (!fire(s, index, &steps, &state)) return state;
  }
  return quiet(s);
}

/* ---- results -------------------------------------------------------------------------------------------------- */

const weft_report *weft_simulator_report(const weft_simulator *s) { return &s->report; }

bool weft_simulator_complete(const weft_simulator *s) {
  for (uint32_t i = 0; i < s->sink_count; i++)
    if (s->sinks[i].kind == SINK_COMPLETE && !s->sinks[i].came) return false;
  return true;
}

bool weft_simulator_result(const weft_simulator *s, uint64_t index, uint64_t *word) {
  for (uint32_t i = 0; i < s->sink_count; i++)
    if (s->sinks[i].kind == SINK_VALUE && s->sinks[i].index == index && s->sinks[i].came) {
      *word = s->sinks[i].word;
      return true;
    }
  return false;
}

uint64_t weft_simulator_left(const weft_simulator *s, uint64_t index) {
  for (uint32_t i = 0; i < s->source_count; i++) {
    const source *from = &s->sources[i];
    if (from->kind != SOURCE_STREAM || from->input != index) continue;
    const actor *a = &s->actors[from->actor];
    uint64_t most = 0;
    for (uint32_t k = s->begins[a->out]; k < s->begins[a->out + 1]; k++)
      most = weft_max_u64(most, s->queues[s->fan[k]].count);
    return most + weft_channel_waiting(from->feed);
  }
  return 0;
}
