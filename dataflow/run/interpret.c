/* Running the instructions of a structured program. */
#include "interpret_private.h"

#include <stdlib.h>
#include <string.h>

weft_status weft_interpreter_new(const weft_mlir_op *entry, const char *file, weft_interpreter **interpreter,
                                 weft_diag *diag) {
  *interpreter = NULL;
  weft_interpreter *m = calloc(1, sizeof *m);
  weft_arena *arena = weft_arena_new();
  if (!m || !arena) {
    free(m);
    weft_arena_free(arena);
    return weft_error_memory(diag);
  }
  *m = (weft_interpreter){.arena = arena, .entry = entry, .module = weft_mlir_parent(entry), .file = file};
  weft_status status = interpret_compile(m, diag);
  if (status == WEFT_OK)
    *interpreter = m;
  else
    weft_interpreter_free(m);
  return status;
}

void weft_interpreter_free(weft_interpreter *m) {
  if (!m) return;
  for (uint64_t i = 0; i < m->allocations_count; i++) {
    free(m->allocations[i].buffer.words);
    free(m->allocations[i].buffer.written);
  }
  for (uint64_t i = 0; i < m->launches_count; i++) {
    weft_simulator_free(m->launches[i].simulator);
    weft_interpreter_free(m->launches[i].interpreter);
  }
  weft_text_free(&m->text);
  weft_arena_free(m->arena);
  free(m);
}

void weft_interpreter_set_order(weft_interpreter *m, weft_order order, uint64_t seed) {
  for (uint64_t i = 0; i < m->launches_count; i++)
    if (m->launches[i].simulator) simulate_set_order(m->launches[i].simulator, order, seed + i);
}

/* Whether a binding can stand for an input of this type. */
static bool fits(const weft_mlir_type *type, const weft_binding *binding) {
  if (type->kind == WEFT_MLIR_MEMREF_TYPE) {
    uint64_t elements;
    bool known = weft_mlir_elements(type, &elements);
    return binding->buffer && binding->buffer->element == type->element &&
           (!known || elements <= binding->buffer->count);
  }
  if (type->kind == WEFT_MLIR_DIALECT_TYPE)
    return binding->channel && type->parameter_count && binding->channel->element == type->parameters[0]->as.type_value;
  return true;
}

weft_status weft_interpreter_start(weft_interpreter *m, const weft_binding *inputs, uint64_t count, weft_diag *diag) {
  const weft_mlir_block *body = weft_mlir_op_block(m->entry, 0);
  bool graph = weft_mlir_code(m->entry) == WEFT_DATAFLOW_GRAPH;
  uint32_t control =
      weft_mlir_code(m->entry) == WEFT_DATAFLOW_THREAD ? weft_mlir_function_type(m->entry)->input_count : UINT32_MAX;
  uint64_t wanted = m->input_count - (control < m->input_count);
  if (count != wanted)
    return weft_error_at(diag, WEFT_INVALID, weft_mlir_place(m->file, m->entry), NULL,
                         "@%s takes %llu inputs, %llu are given", weft_mlir_symbol_name(m->entry),
                         (unsigned long long)wanted, (unsigned long long)count);
  for (uint32_t i = 0, given = 0; i < m->input_count; i++) {
    if (i == control) continue;
    const weft_mlir_type *type = body->arguments[i + graph].type;
    if (!fits(type, &inputs[given]))
      return weft_error_at(diag, WEFT_INVALID, weft_mlir_place(m->file, m->entry), NULL,
                           "input %u of @%s needs a %s of its element type, large enough", given,
                           weft_mlir_symbol_name(m->entry), type->kind == WEFT_MLIR_MEMREF_TYPE ? "buffer" : "channel");
    m->slots[m->first_input + i] = inputs[given++];
  }
  for (uint64_t i = 0; i < m->allocations_count; i++) m->allocations[i].made = false;
  m->at = 0;
  m->ended = false;
  for (uint64_t i = 0; i < m->launches_count; i++) m->launches[i].running = false;
  m->report = (weft_report){.fault = WEFT_FAULT_NONE};
  return WEFT_OK;
}

/* ---- single instructions -------------------------------------------------------------------------------------- */

static weft_run_state fault(weft_interpreter *m, const instruction *i, weft_fault bad) {
  m->report.fault = bad;
  m->report.op = i->op;
  m->text.length = 0;
  weft_text_printf(&m->text, "%s in line %u: %s", i->op->name->text, i->op->line, weft_fault_text(bad));
  m->report.text = m->text.data;
  return WEFT_RUN_FAULT;
}

/* The word that an access means, or false when an index is out of bounds. */
static bool find_word(const weft_interpreter *m, const instruction *i, const weft_memory *buffer, uint64_t *word) {
  const access *a = &m->accesses[i->d];
  uint64_t flat = 0;
  for (uint32_t k = 0; k < a->rank; k++) {
    uint64_t index = m->slots[m->list[i->c + k]].word, part;
    if (index >= a->extents[k] || weft_mul_overflow(index, a->strides[k], &part) ||
        weft_add_overflow(flat, part, &flat))
      return false;
  }
  *word = flat;
  return flat < buffer->count;
}

static weft_fault load(weft_interpreter *m, const instruction *i) {
  weft_memory *buffer = m->slots[i->b].buffer;
  uint64_t word;
  if (!find_word(m, i, buffer, &word)) return WEFT_FAULT_BOUNDS;
  if (buffer->written && !buffer->written[word]) return WEFT_FAULT_UNWRITTEN;
  buffer->loads++;
  m->slots[i->a].word = buffer->words[word];
  return WEFT_FAULT_NONE;
}

static weft_fault store(weft_interpreter *m, const instruction *i) {
  weft_memory *buffer = m->slots[i->b].buffer;
  uint64_t word;
  if (!find_word(m, i, buffer, &word)) return WEFT_FAULT_BOUNDS;
  if (buffer->written) buffer->written[word] = 1;
  buffer->stores++;
  buffer->words[word] = m->slots[i->a].word;
  return WEFT_FAULT_NONE;
}

/* Element by element in order, as the lowering's loop does. */
static weft_fault copy(weft_interpreter *m, const instruction *i) {
  weft_memory *from = m->slots[i->a].buffer, *to = m->slots[i->b].buffer;
  uint64_t count = from->count, known;
  if (weft_mlir_elements(i->op->operands[0]->type, &known) || weft_mlir_elements(i->op->operands[1]->type, &known))
    count = known;
  if (count > from->count || count > to->count) return WEFT_FAULT_BOUNDS;
  for (uint64_t k = 0; k < count; k++) {
    if (from->written && !from->written[k]) return WEFT_FAULT_UNWRITTEN;
    if (to->written) to->written[k] = 1;
    to->words[k] = from->words[k];
  }
  from->loads += count;
  to->stores += count;
  return WEFT_FAULT_NONE;
}

static weft_fault allocate(weft_interpreter *m, const instruction *i) {
  allocation *a = &m->allocations[i->d];
  uint64_t count = 1, dynamic = 0;
  for (uint32_t k = 0; k < a->type->rank; k++) {
    int64_t extent = a->type->extents[k] < 0 ? (int64_t)m->slots[m->list[i->b + dynamic++]].word : a->type->extents[k];
    if (extent < 0 || weft_mul_overflow(count, (uint64_t)extent, &count) || count > WEFT_MOST_ALLOCATED)
      return WEFT_FAULT_SIZE;
  }
  m->slots[i->a].buffer = &a->buffer;
  if (a->made && a->buffer.count == count) return WEFT_FAULT_NONE;
  if (a->made) return WEFT_FAULT_SIZE; /* one buffer a launch has one size */
  free(a->buffer.words);
  free(a->buffer.written);
  a->buffer.words = calloc(count + 1, sizeof *a->buffer.words);
  a->buffer.written = calloc(count + 1, 1);
  if (!a->buffer.words || !a->buffer.written) return WEFT_FAULT_SIZE;
  a->buffer.count = count;
  a->made = true;
  return WEFT_FAULT_NONE;
}

static void move(weft_interpreter *m, const instruction *i) {
  const uint32_t *from = m->list + i->b, *to = from + i->c;
  if (i->c == 1) {
    m->slots[to[0]] = m->slots[from[0]];
    return;
  }
  for (uint32_t k = 0; k < i->c; k++) m->staged[k] = m->slots[from[k]];
  for (uint32_t k = 0; k < i->c; k++) m->slots[to[k]] = m->staged[k];
}

/* Rounds of a loop that counts up while lower < upper; it never wraps. */
static weft_fault begin_for(weft_interpreter *m, const instruction *i) {
  uint64_t lower = m->slots[m->list[i->b]].word, upper = m->slots[m->list[i->b + 1]].word,
           step = m->slots[m->list[i->b + 2]].word;
  scalar s;
  scalar_of(i->op->operands[0]->type, &s);
  if (i->d) {
    lower = scalar_unsigned(s.width, lower);
    upper = scalar_unsigned(s.width, upper);
    step = scalar_unsigned(s.width, step);
  }
  if (i->d ? step == 0 : (int64_t)step <= 0) return WEFT_FAULT_STEP;
  bool runs = i->d ? lower < upper : (int64_t)lower < (int64_t)upper;
  m->slots[i->a].word = m->slots[m->list[i->b]].word;
  m->slots[i->c].word = runs ? (upper - lower - 1) / step + 1 : 0;
  return WEFT_FAULT_NONE;
}

static uint32_t switch_target(const weft_interpreter *m, const instruction *i) {
  const switch_table *t = &m->switches[i->d];
  int64_t value = (int64_t)m->slots[i->a].word;
  for (uint64_t k = 0; k < t->cases->as.dense.elements; k++)
    if (weft_mlir_dense_integer(t->cases, k) == value) return t->targets[k + 1];
  return t->targets[0];
}

/* ---- launches ------------------------------------------------------------------------------------------------- */

static bool start_launch(weft_interpreter *m, launch *l) {
  weft_binding *inputs = m->staged;
  weft_channel **outputs = (weft_channel **)(void *)(m->staged + l->input_count);
  for (uint32_t k = 0; k < l->input_count; k++) inputs[k] = m->slots[m->list[l->inputs + k]];
  for (uint32_t k = 0; k < l->output_count; k++) outputs[k] = m->slots[m->list[l->outputs + k]].channel;
  weft_status status = l->simulator
                           ? weft_simulator_start(l->simulator, inputs, l->input_count, outputs, l->output_count, NULL)
                           : weft_interpreter_start(l->interpreter, inputs, l->input_count, NULL);
  l->running = status == WEFT_OK;
  return l->running;
}

static void take_results(weft_interpreter *m, launch *l) {
  for (uint32_t k = 0; k < l->value_count; k++) {
    uint64_t word = 0;
    if (l->simulator)
      weft_simulator_result(l->simulator, k, &word);
    else
      word = weft_interpreter_result(l->interpreter, k);
    m->slots[m->list[l->results + k]].word = word;
  }
  /* Memory results are the graph's own memory inputs again. */
  const weft_mlir_op *end = weft_mlir_op_block(l->graph, 0)->last;
  uint32_t values = (uint32_t)weft_mlir_dense_integer(weft_mlir_attribute_of(end, "operandSegmentSizes"), 0);
  uint32_t streams = (uint32_t)weft_mlir_dense_integer(weft_mlir_attribute_of(end, "operandSegmentSizes"), 1);
  for (uint32_t k = 0; k < l->memory_count; k++) {
    const weft_mlir_value *memory = end->operands[values + streams + k];
    if (memory->is_argument && memory->index)
      m->slots[m->list[l->results + l->value_count + k]] = m->slots[m->list[l->inputs + memory->index - 1]];
  }
}

static weft_run_state run_launch(weft_interpreter *m, const instruction *i, uint64_t steps) {
  launch *l = &m->launches[i->d];
  if (!l->running && !start_launch(m, l)) return WEFT_RUN_FAILED;
  const weft_report *inner =
      l->simulator ? weft_simulator_report(l->simulator) : weft_interpreter_report(l->interpreter);
  uint64_t before = inner->steps, outer = m->report.steps;
  weft_run_state state =
      l->simulator ? weft_simulator_run(l->simulator, steps) : weft_interpreter_run(l->interpreter, steps);
  uint64_t all = outer + inner->steps - before;
  m->report.steps = all;
  if (state == WEFT_RUN_DONE) {
    l->running = false;
    take_results(m, l);
  } else {
    m->report = *inner;
    m->report.steps = all;
  }
  return state;
}

/* ---- the loop ------------------------------------------------------------------------------------------------- */

static weft_run_state waiting(weft_interpreter *m, const instruction *i) {
  m->report.op = i->op;
  m->text.length = 0;
  weft_text_printf(&m->text, "%s in line %u waits for a token of the channel %s", i->op->name->text, i->op->line,
                   m->slots[i->b].channel->name ? m->slots[i->b].channel->name : "?");
  m->report.text = m->text.data;
  return WEFT_RUN_WAITING;
}

static weft_fault apply_compute(weft_interpreter *m, const instruction *i) {
  const compute *c = &m->computes[i->d];
  const uint32_t *from = m->list + i->b;
  uint64_t in[3] = {m->slots[from[0]].word, m->slots[from[1]].word, m->slots[from[2]].word};
  return c->apply(c, in, &m->slots[i->a].word);
}

static bool receive(weft_interpreter *m, const instruction *i) {
  weft_channel *channel = m->slots[i->b].channel;
  if (!weft_channel_waiting(channel)) return false;
  m->slots[i->a].word = channel->words[channel->begin++];
  return true;
}

/* Instructions that only compute or touch memory. */
static weft_fault plain(weft_interpreter *m, const instruction *i) {
  switch (i->kind) {
  case DO_COMPUTE: return apply_compute(m, i);
  case DO_CONSTANT: m->slots[i->a].word = m->words[i->d]; break;
  case DO_LOAD: return load(m, i);
  case DO_STORE: return store(m, i);
  case DO_COPY: return copy(m, i);
  case DO_ALLOCATE: return allocate(m, i);
  case DO_MOVE: move(m, i); break;
  case DO_FOR: return begin_for(m, i);
  case DO_NEXT: m->slots[i->a].word = scalar_wrap(i->d, m->slots[i->a].word + m->slots[i->b].word); break;
  case DO_JUMP:
  case DO_BRANCH:
  case DO_SWITCH:
  case DO_TEST:
  case DO_SEND:
  case DO_RECEIVE:
  case DO_LAUNCH:
  case DO_END: break;
  }
  return WEFT_FAULT_NONE;
}

weft_run_state weft_interpreter_run(weft_interpreter *m, uint64_t steps) {
  for (uint64_t left = steps; left; left--, m->report.steps++) {
    const instruction *i = &m->code[m->at];
    weft_run_state state;
    switch (i->kind) {
    case DO_JUMP: m->at = i->a; continue;
    case DO_BRANCH: m->at = m->slots[i->a].word & 1 ? m->at + 1 : i->b; continue;
    case DO_SWITCH: m->at = switch_target(m, i); continue;
    case DO_TEST:
      m->at = m->slots[i->a].word ? m->at + 1 : i->b;
      m->slots[i->a].word -= m->slots[i->a].word > 0;
      continue;
    case DO_RECEIVE:
      if (!receive(m, i)) return waiting(m, i);
      break;
    case DO_SEND:
      if (!weft_channel_push(m->slots[i->a].channel, m->slots[i->b].word)) return WEFT_RUN_FAILED;
      break;
    case DO_LAUNCH:
      state = run_launch(m, i, left);
      if (state != WEFT_RUN_DONE) return state;
      break;
    case DO_END:
      m->results = i->b;
      m->result_count = i->c;
      return WEFT_RUN_DONE;
    case DO_COMPUTE:
    case DO_CONSTANT:
    case DO_LOAD:
    case DO_STORE:
    case DO_COPY:
    case DO_ALLOCATE:
    case DO_MOVE:
    case DO_FOR:
    case DO_NEXT: {
      weft_fault bad = plain(m, i);
      if (bad) return fault(m, i, bad);
      break;
    }
    }
    m->at++;
  }
  return WEFT_RUN_LIMIT;
}

weft_run_state weft_interpreters_run(weft_interpreter *const *machines, uint64_t count, uint64_t steps,
                                     uint64_t *which) {
  enum { TURN = 1 << 16 };
  uint64_t spent = 0;
  for (bool moved = true; moved;) {
    moved = false;
    uint64_t done = 0;
    for (uint64_t i = 0; i < count; i++) {
      weft_interpreter *m = machines[i];
      uint64_t before = m->report.steps;
      weft_run_state state = m->ended ? WEFT_RUN_DONE : weft_interpreter_run(m, TURN);
      m->ended = state == WEFT_RUN_DONE;
      done += m->ended;
      moved |= m->report.steps != before;
      spent += m->report.steps - before;
      *which = i;
      if (state != WEFT_RUN_DONE && state != WEFT_RUN_LIMIT && state != WEFT_RUN_WAITING) return state;
    }
    if (done == count) return WEFT_RUN_DONE;
    if (spent > steps) return WEFT_RUN_LIMIT;
  }
  for (*which = 0; machines[*which]->ended;) ++*which;
  return WEFT_RUN_WAITING;
}

const weft_report *weft_interpreter_report(const weft_interpreter *m) { return &m->report; }
uint64_t weft_interpreter_result(const weft_interpreter *m, uint64_t index) {
  return m->slots[m->list[m->results + index]].word;
}
uint64_t weft_interpreter_result_count(const weft_interpreter *m) { return m->result_count; }
