/* C for token graphs that are no loops: a machine of queues of two tokens, one for each use of a value, whose actors
 * are tried in the order of the program until none can fire. Queues and states last over the launches of one env.
 * The actors are spread over functions of a bounded number: compilers take more than linear time for long ones. */
#include "emit_private.h"

#include <stdio.h>

/* A queue is numbered; its variables are q<n> (a ring of two), h<n> (its head) and n<n> (its count). Tokens of type
 * none have a count only. Streams of the graph are read from their channel where they are used. */
typedef struct machine_queue {
  const weft_mlir_value *value;
  const weft_mlir_op *consumer;
  int32_t stream; /* the channel's number among the inputs, or -1 */
  bool none;
} machine_queue;

typedef struct machine {
  emitter *e;
  const weft_mlir_op *graph;
  const weft_mlir_block *body;
  machine_queue *queues;
  uint32_t queue_count;
  uint32_t *first_use;   /* of a value by mark: position in `uses`; ends at the next one's */
  uint32_t *uses;        /* queues */
  uint32_t *memory_of;   /* of a memory by mark: its place among the launch's, from 1 */
  uint32_t *declared_in; /* the part that last declared it, from 1 */
  uint32_t values, streams_in, states, part_actors;
  const weft_mlir_op *now; /* the op being emitted, and its first queue */
  uint32_t now_queue;
} machine;

/* How many actors share a function: all of a machine that is quickly compiled as one, which runs some percent faster,
 * else few. */
enum { ALONE_ACTORS = 256, PART_ACTORS = 32 };

static bool is_memory(const weft_mlir_value *value) { return value->type->kind == WEFT_MLIR_MEMREF_TYPE; }

/* ---- numbering ------------------------------------------------------------------------------------------------ */

static uint32_t segment(const weft_mlir_op *op, const char *name, uint32_t index) {
  return (uint32_t)weft_mlir_dense_integer(weft_mlir_attribute_of(op, name), index);
}

static void number_memories(machine *m) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < m->body->argument_count; i++)
    if (is_memory(&m->body->arguments[i])) m->memory_of[m->body->arguments[i].mark] = ++count;
  for (const weft_mlir_op *op = m->body->first; op; op = op->next)
    for (uint32_t i = 0; i < op->result_count; i++)
      if (is_memory(&op->results[i])) m->memory_of[op->results[i].mark] = ++count;
}

static bool number_values(machine *m) {
  uint32_t marks = 0;
  uint64_t queues = 0;
  for (uint32_t i = 0; i < m->body->argument_count; i++) m->body->arguments[i].mark = marks++;
  for (weft_mlir_op *op = m->body->first; op; op = op->next) {
    for (uint32_t i = 0; i < op->result_count; i++) op->results[i].mark = marks++;
    queues += op->operand_count;
  }
  m->values = marks;
  m->queues = WEFT_NEW_ARRAY(m->e->scratch, machine_queue, queues);
  m->uses = WEFT_NEW_ARRAY(m->e->scratch, uint32_t, queues);
  m->first_use = WEFT_NEW_ARRAY(m->e->scratch, uint32_t, marks + 2);
  m->memory_of = WEFT_NEW_ARRAY(m->e->scratch, uint32_t, marks + 1);
  m->declared_in = WEFT_NEW_ARRAY(m->e->scratch, uint32_t, marks + 1);
  if (!m->queues || !m->uses || !m->first_use || !m->memory_of || !m->declared_in) return false;
  number_memories(m);
  return true;
}

static bool number_queues(machine *m) {
  uint32_t values = segment(m->graph, "input_segments", 0);
  m->streams_in = segment(m->graph, "input_segments", 1);
  for (const weft_mlir_op *op = m->body->first; op; op = op->next)
    for (uint32_t i = 0; i < op->operand_count; i++) {
      if (is_memory(op->operands[i])) continue;
      machine_queue *q = &m->queues[m->queue_count++];
      *q = (machine_queue){.value = op->operands[i],
                           .consumer = op,
                           .stream = -1,
                           .none = op->operands[i]->type->kind == WEFT_MLIR_NONE_TYPE};
      bool stream = q->value->is_argument && q->value->index > values && q->value->index <= values + m->streams_in;
      if (stream) q->stream = (int32_t)(q->value->index - values - 1);
      m->first_use[q->value->mark + 1]++;
    }
  for (uint32_t v = 0; v < m->values; v++) m->first_use[v + 1] += m->first_use[v];
  uint32_t *next = WEFT_NEW_ARRAY(m->e->scratch, uint32_t, m->values + 1);
  if (!next) return false;
  memcpy(next, m->first_use, m->values * sizeof *next);
  for (uint32_t q = 0; q < m->queue_count; q++) m->uses[next[m->queues[q].value->mark]++] = q;
  for (uint32_t q = 0; q < m->queue_count; q++)
    if (m->queues[q].stream >= 0 &&
        m->first_use[m->queues[q].value->mark + 1] - m->first_use[m->queues[q].value->mark] > 1)
      return emit_refuse(m->e, m->graph, "use it once", "a stream input has several uses");
  return true;
}

/* ---- pieces of text ------------------------------------------------------------------------------------------- */

static void put_has(machine *m, weft_text *t, uint32_t q) {
  if (m->queues[q].stream >= 0)
    weft_text_printf(t, "!env->peek(env, channels[%d], &w%u)", m->queues[q].stream, q);
  else
    weft_text_printf(t, "s->n%u", q);
}

/* Whether this firing takes from queue q: then there is room in it for what it puts. */
static void put_room(machine *m, weft_text *t, const weft_mlir_value *value) {
  for (uint32_t k = m->first_use[value->mark]; k < m->first_use[value->mark + 1]; k++)
    if (m->queues[m->uses[k]].consumer != m->now) weft_text_printf(t, " && s->n%u < 2", m->uses[k]);
}

static void put_front(machine *m, weft_text *t, uint32_t q) {
  c_type c;
  char word[24];
  if (m->queues[q].none) {
    weft_text_puts(t, "0");
  } else if (m->queues[q].stream >= 0) {
    emit_type(m->queues[q].value->type, &c);
    snprintf(word, sizeof word, "w%u", q);
    emit_from_word_text(&c, word, t);
  } else {
    weft_text_printf(t, "s->q%u[s->h%u]", q, q);
  }
}

static void take(machine *m, uint32_t q) {
  if (m->queues[q].stream >= 0)
    emit_line(m->e, "env->receive(env, channels[%d], &w%u);", m->queues[q].stream, q);
  else if (m->queues[q].none)
    emit_line(m->e, "s->n%u--;", q);
  else
    emit_line(m->e, "s->h%u ^= 1, s->n%u--;", q, q);
}

static void emit_token(machine *m, const weft_mlir_value *value, const char *text) {
  for (uint32_t k = m->first_use[value->mark]; k < m->first_use[value->mark + 1]; k++) {
    uint32_t q = m->uses[k];
    if (m->queues[q].none)
      emit_line(m->e, "s->n%u++;", q);
    else
      emit_line(m->e, "s->q%u[s->h%u ^ s->n%u] = %s, s->n%u++;", q, q, q, text, q);
  }
}

/* "if (conditions) {" for operands whose bit is set in `operands` and results whose bit is set in `results`; operands
 * beyond 64 are taken to be set. */
static void open_firing(machine *m, const weft_mlir_op *op, uint64_t operands, uint64_t results, const char *more) {
  weft_text t = {0};
  uint32_t q = m->now_queue;
  weft_text_puts(&t, "1");
  for (uint32_t i = 0; i < op->operand_count; i++) {
    if (is_memory(op->operands[i])) continue;
    if (i >= 64 || operands >> i & 1) {
      weft_text_puts(&t, " && ");
      put_has(m, &t, q);
    }
    q++;
  }
  if (more) weft_text_printf(&t, " && %s", more);
  for (uint32_t i = 0; i < op->result_count; i++)
    if (i >= 64 || results >> i & 1) put_room(m, &t, &op->results[i]);
  emit_line(m->e, "if (%s) {", t.data);
  m->e->indent++;
  weft_text_free(&t);
}

static void close_firing(machine *m) {
  emit_line(m->e, "moved = 1;");
  m->e->indent--;
  emit_line(m->e, "}");
}

/* The queue of operand i of the op being emitted. */
static uint32_t queue_of(const machine *m, uint32_t operand) {
  uint32_t q = m->now_queue;
  for (uint32_t i = 0; i < operand; i++) q += !is_memory(m->now->operands[i]);
  return q;
}

/* "T x<k> = front;" so that it can be put on after it was taken. */
static void hold(machine *m, uint32_t operand, const char *name) {
  c_type c;
  uint32_t q = queue_of(m, operand);
  if (m->queues[q].none || !emit_type(m->queues[q].value->type, &c)) return;
  weft_text t = {0};
  put_front(m, &t, q);
  emit_line(m->e, "%s %s = %s;", c.name, name, t.data);
  weft_text_free(&t);
}

static void condition_text(machine *m, uint32_t operand, weft_text *t) { put_front(m, t, queue_of(m, operand)); }

/* ---- actors --------------------------------------------------------------------------------------------------- */

static void name_operand(void *context, const weft_mlir_value *value, char *name, size_t size) {
  machine *m = context;
  if (!value->is_argument && value->owner == m->now) {
    snprintf(name, size, "r");
    return;
  }
  for (uint32_t i = 0; i < m->now->operand_count; i++)
    if (m->now->operands[i] == value) {
      snprintf(name, size, "x%u", i);
      return;
    }
}

static bool emit_computing(machine *m, const weft_mlir_op *op) {
  c_type c;
  char name[16];
  if (!emit_type(op->results[0].type, &c) || !c.name) return emit_refuse(m->e, op, NULL, "its type has no C type");
  open_firing(m, op, UINT64_MAX, 1, NULL);
  for (uint32_t i = 0; i < op->operand_count; i++) {
    snprintf(name, sizeof name, "x%u", i);
    hold(m, i, name);
  }
  emit_line(m->e, "%s r = 0;", c.name);
  if (!emit_compute(m->e, op, name_operand, m)) return false;
  for (uint32_t i = 0; i < op->operand_count; i++) take(m, queue_of(m, i));
  emit_token(m, &op->results[0], "r");
  close_firing(m);
  return true;
}

static void emit_sync(machine *m, const weft_mlir_op *op) {
  char name[16];
  open_firing(m, op, UINT64_MAX, UINT64_MAX, NULL);
  for (uint32_t i = 0; i < op->operand_count; i++) {
    snprintf(name, sizeof name, "x%u", i);
    hold(m, i, name);
  }
  for (uint32_t i = 0; i < op->operand_count; i++) take(m, queue_of(m, i));
  for (uint32_t i = 0; i < op->operand_count; i++) {
    snprintf(name, sizeof name, "x%u", i);
    emit_token(m, &op->results[i], name);
  }
  close_firing(m);
}

/* The selector is compared with each lane. */
static void emit_lanes(machine *m, const weft_mlir_op *op, bool mux) {
  uint32_t lanes = mux ? op->operand_count - 1 : op->result_count;
  weft_text selector = {0}, more = {0};
  condition_text(m, 0, &selector);
  for (uint32_t lane = 0; lane < lanes; lane++) {
    more.length = 0;
    weft_text_printf(&more, "%s == %u", selector.data, lane);
    uint64_t operands = mux ? 1 | (lane + 1 < 64 ? (uint64_t)1 << (lane + 1) : 0) : 3;
    open_firing(m, op, operands, mux ? 1 : lane < 64 ? (uint64_t)1 << lane : 0, more.data);
    hold(m, mux ? lane + 1 : 1, "x");
    take(m, queue_of(m, 0));
    take(m, queue_of(m, mux ? lane + 1 : 1));
    emit_token(m, &op->results[mux ? 0 : lane], "x");
    close_firing(m);
  }
  if (lanes > 2) {
    weft_text has = {0};
    put_has(m, &has, queue_of(m, 0));
    emit_line(m->e, "if (%s && (uint64_t)%s >= %u) %s;", has.data, selector.data, lanes,
              emit_fault(m->e, op, weft_fault_text(WEFT_FAULT_LANE)));
    weft_text_free(&has);
  }
  weft_text_free(&selector);
  weft_text_free(&more);
}

static void emit_carry(machine *m, const weft_mlir_op *op, uint32_t state) {
  weft_text go = {0}, end = {0};
  char closed[32];
  snprintf(closed, sizeof closed, "!s->state%u", state);
  weft_text_printf(&go, "s->state%u && ", state);
  condition_text(m, 0, &go);
  weft_text_printf(&end, "s->state%u && !", state);
  condition_text(m, 0, &end);
  open_firing(m, op, 2, 1, closed);
  hold(m, 1, "x");
  take(m, queue_of(m, 1));
  emit_line(m->e, "s->state%u = 1;", state);
  emit_token(m, &op->results[0], "x");
  close_firing(m);
  open_firing(m, op, 5, 1, go.data);
  hold(m, 2, "x");
  take(m, queue_of(m, 0));
  take(m, queue_of(m, 2));
  emit_token(m, &op->results[0], "x");
  close_firing(m);
  open_firing(m, op, 1, 0, end.data);
  take(m, queue_of(m, 0));
  emit_line(m->e, "s->state%u = 0;", state);
  close_firing(m);
  weft_text_free(&go);
  weft_text_free(&end);
}

static void emit_invariant(machine *m, const weft_mlir_op *op, uint32_t state) {
  weft_text go = {0}, end = {0};
  char closed[32], held[32];
  bool none = op->results[0].type->kind == WEFT_MLIR_NONE_TYPE;
  snprintf(closed, sizeof closed, "!s->state%u", state);
  snprintf(held, sizeof held, "s->held%u", state);
  weft_text_printf(&go, "s->state%u && ", state);
  condition_text(m, 0, &go);
  weft_text_printf(&end, "s->state%u && !", state);
  condition_text(m, 0, &end);
  open_firing(m, op, 2, 1, closed);
  hold(m, 1, "x");
  take(m, queue_of(m, 1));
  emit_line(m->e, none ? "s->state%u = 1;" : "s->state%u = 1, s->held%u = x;", state, state);
  emit_token(m, &op->results[0], "x");
  close_firing(m);
  open_firing(m, op, 1, 1, go.data);
  take(m, queue_of(m, 0));
  emit_token(m, &op->results[0], held);
  close_firing(m);
  open_firing(m, op, 1, 0, end.data);
  take(m, queue_of(m, 0));
  emit_line(m->e, "s->state%u = 0;", state);
  close_firing(m);
  weft_text_free(&go);
  weft_text_free(&end);
}

static void emit_gate(machine *m, const weft_mlir_op *op, uint32_t state) {
  weft_text condition = {0};
  condition_text(m, 0, &condition);
  for (int tell = 0; tell < 2; tell++)
    for (int pass = 0; pass < 2; pass++) {
      weft_text more = {0};
      weft_text_printf(&more, "%ss->state%u && %s%s", tell ? "" : "!", state, pass ? "" : "!", condition.data);
      open_firing(m, op, 3, (uint64_t)(tell | pass << 1), more.data);
      hold(m, 1, "x");
      emit_line(m->e, "uint8_t c = (uint8_t)%s;", condition.data);
      take(m, queue_of(m, 0));
      take(m, queue_of(m, 1));
      emit_line(m->e, "s->state%u = %d;", state, pass);
      if (tell) emit_token(m, &op->results[0], "c");
      if (pass) emit_token(m, &op->results[1], "x");
      bool none = op->results[1].type->kind == WEFT_MLIR_NONE_TYPE;
      emit_line(m->e, none ? "(void)c;" : "(void)c, (void)x;");
      close_firing(m);
      weft_text_free(&more);
    }
  weft_text_free(&condition);
}

static void emit_stream(machine *m, const weft_mlir_op *op, uint32_t state) {
  emitter *e = m->e;
  c_type c;
  char closed[32], running[48], ended[48], induction[32];
  bool wide = strcmp(weft_mlir_attribute_text(op, "cont_cond", "slt"), "ult") == 0;
  emit_type(op->results[0].type, &c);
  snprintf(closed, sizeof closed, "!s->state%u", state);
  snprintf(running, sizeof running, "s->state%u && s->left%u", state, state);
  snprintf(ended, sizeof ended, "s->state%u && !s->left%u", state, state);
  snprintf(induction, sizeof induction, "s->at%u", state);
  /* Taking the bounds is a step of its own: it puts nothing. */
  open_firing(m, op, 7, 0, closed);
  for (uint32_t i = 0; i < 3; i++) {
    char name[8];
    snprintf(name, sizeof name, "x%u", i);
    hold(m, i, name);
    take(m, queue_of(m, i));
  }
  emit_line(e, "if (x2 %s 0) %s;", wide ? "==" : "<=", emit_fault(e, op, weft_fault_text(WEFT_FAULT_STEP)));
  if (wide && c.odd)
    emit_line(e,
              "s->left%u = weft_df_rounds_unsigned(weft_df_mask(%u, (uint64_t)x0), weft_df_mask(%u, (uint64_t)x1), "
              "weft_df_mask(%u, (uint64_t)x2));",
              state, c.width, c.width, c.width);
  else if (wide)
    emit_line(e, "s->left%u = weft_df_rounds_unsigned((%s)x0, (%s)x1, (%s)x2);", state, c.unsigned_name,
              c.unsigned_name, c.unsigned_name);
  else
    emit_line(e, "s->left%u = weft_df_rounds(x0, x1, x2);", state);
  emit_line(e, "s->state%u = 1, s->at%u = x0, s->step%u = x2;", state, state, state);
  close_firing(m);
  open_firing(m, op, 0, 3, running);
  emit_token(m, &op->results[0], induction);
  if (c.odd)
    emit_line(e, "s->at%u = weft_df_wrap(%u, (uint64_t)s->at%u + (uint64_t)s->step%u), s->left%u--;", state, c.width,
              state, state, state);
  else
    emit_line(e, "s->at%u = (%s)((uint64_t)s->at%u + (uint64_t)s->step%u), s->left%u--;", state, c.name, state, state,
              state);
  emit_token(m, &op->results[1], "1");
  close_firing(m);
  open_firing(m, op, 0, 2, ended);
  emit_line(e, "s->state%u = 0;", state);
  emit_token(m, &op->results[1], "0");
  close_firing(m);
}

static bool emit_access(machine *m, const weft_mlir_op *op, bool load) {
  c_type c;
  emitter *e = m->e;
  uint32_t memory = op->operands[0]->mark;
  if (op->operands[0]->type->layout || !emit_type(op->operands[0]->type->element, &c) || !c.name)
    return emit_refuse(e, op, NULL, "the memref's type has no C type");
  open_firing(m, op, UINT64_MAX, UINT64_MAX, NULL);
  hold(m, 1, "at");
  if (!load) hold(m, 2, "x");
  emit_line(e, "if (WEFT_DF_NEVER((uint64_t)at >= m%u->count)) %s;", memory,
            emit_fault(e, op, weft_fault_text(WEFT_FAULT_BOUNDS)));
  if (load)
    emit_line(e, "if (WEFT_DF_NEVER(m%u->written && !m%u->written[at])) %s;", memory, memory,
              emit_fault(e, op, weft_fault_text(WEFT_FAULT_UNWRITTEN)));
  for (uint32_t i = 1; i < op->operand_count; i++) take(m, queue_of(m, i));
  if (load) {
    emit_line(e, "%s x = ((const %s *)m%u->data)[at];", c.name, c.name, memory);
    emit_token(m, &op->results[0], "x");
    emit_line(e, "(void)x;");
    emit_token(m, &op->results[1], "");
  } else {
    emit_line(e, "if (m%u->written) m%u->written[at] = 1;", memory, memory);
    emit_line(e, "((%s *)m%u->data)[at] = x;", c.name, memory);
    emit_token(m, &op->results[0], "");
  }
  close_firing(m);
  return true;
}

static bool emit_constant_token(machine *m, const weft_mlir_op *op) {
  c_type c;
  weft_text t = {0};
  const weft_mlir_attribute *value = weft_mlir_attribute_of(op, "const_value");
  if (!emit_type(op->results[0].type, &c) || !c.name)
    return emit_refuse(m->e, op, NULL, "the constant's type has no C type");
  emit_constant_text(value, &c, &t);
  open_firing(m, op, 1, 1, NULL);
  take(m, queue_of(m, 0));
  emit_token(m, &op->results[0], t.data);
  close_firing(m);
  weft_text_free(&t);
  return true;
}

static bool emit_actor(machine *m, const weft_mlir_op *op) {
  uint32_t code = weft_mlir_code(op), state = op->mark;
  bool computing = (code > WEFT_MLIR_NO_CODE && code < WEFT_OP_BUILTIN_MODULE) || code == WEFT_OP_ARITH_CMPI ||
                   code == WEFT_OP_ARITH_CMPF;
  if (computing) return emit_computing(m, op);
  switch (code) {
  case WEFT_DATAFLOW_CONSTANT: return emit_constant_token(m, op);
  case WEFT_DATAFLOW_SYNC: emit_sync(m, op); return true;
  case WEFT_DATAFLOW_MUX: emit_lanes(m, op, true); return true;
  case WEFT_DATAFLOW_DEMUX: emit_lanes(m, op, false); return true;
  case WEFT_DATAFLOW_CARRY: emit_carry(m, op, state); return true;
  case WEFT_DATAFLOW_INVARIANT: emit_invariant(m, op, state); return true;
  case WEFT_DATAFLOW_GATE: emit_gate(m, op, state); return true;
  case WEFT_DATAFLOW_STREAM: emit_stream(m, op, state); return true;
  case WEFT_DATAFLOW_LOAD: return emit_access(m, op, true);
  case WEFT_DATAFLOW_STORE: return emit_access(m, op, false);
  case WEFT_OP_ARITH_CONSTANT:
  case WEFT_OP_MEMREF_ALLOC:
  case WEFT_OP_MEMREF_CAST: return true; /* before the loop */
  default: return emit_refuse(m->e, op, "lower the graph first", "it is no token op");
  }
}

/* ---- results -------------------------------------------------------------------------------------------------- */

static void emit_sinks(machine *m) {
  const weft_mlir_op *end = m->body->last;
  uint32_t values = segment(end, "operandSegmentSizes", 0), streams = segment(end, "operandSegmentSizes", 1);
  m->now = end;
  for (uint32_t i = 0, q = m->now_queue; i < end->operand_count; i++) {
    c_type c;
    if (is_memory(end->operands[i])) continue;
    bool stream = i >= values && i < values + streams;
    weft_text has = {0}, front = {0}, word = {0};
    put_has(m, &has, q);
    put_front(m, &front, q);
    emit_type(end->operands[i]->type, &c);
    emit_word_text(&c, "x", &word);
    emit_line(m->e, "if (%s) {", has.data);
    m->e->indent++;
    if (c.name) emit_line(m->e, "%s x = %s;", c.name, front.data);
    take(m, q);
    if (stream)
      emit_line(m->e, "if (env->send(env, channels[%u], %s)) %s;", m->streams_in + i - values, word.data,
                emit_fault(m->e, end, "the channel takes nothing any more"));
    else if (i < values)
      emit_line(m->e, "if (!came%u) results[%u] = %s;", i, i, word.data);
    if (!stream) emit_line(m->e, "came%u = 1;", i);
    close_firing(m);
    weft_text_free(&has);
    weft_text_free(&front);
    weft_text_free(&word);
    q++;
  }
}

static void emit_ending(machine *m) {
  const weft_mlir_op *end = m->body->last;
  uint32_t values = segment(end, "operandSegmentSizes", 0), streams = segment(end, "operandSegmentSizes", 1);
  weft_text all = {0};
  weft_text_puts(&all, "1");
  for (uint32_t i = 0; i < end->operand_count; i++)
    if (!is_memory(end->operands[i]) && !(i >= values && i < values + streams)) weft_text_printf(&all, " && came%u", i);
  emit_line(m->e, "if (moved) continue;");
  emit_line(m->e, "if (%s) break;", all.data);
  if (m->streams_in)
    emit_line(m->e, "if (env->wait(env, channels, %u)) %s;", m->streams_in,
              emit_fault(m->e, m->graph, "no token comes any more"));
  else
    emit_line(m->e, "%s;", emit_fault(m->e, m->graph, "nothing can fire, and the graph is not complete"));
  weft_text_free(&all);
}

/* ---- declarations --------------------------------------------------------------------------------------------- */

static bool declare_state(machine *m, weft_mlir_op *op) {
  c_type c;
  uint32_t code = weft_mlir_code(op), state = m->states;
  bool keeps = code == WEFT_DATAFLOW_CARRY || code == WEFT_DATAFLOW_GATE || code == WEFT_DATAFLOW_INVARIANT ||
               code == WEFT_DATAFLOW_STREAM;
  if (!keeps) return true;
  op->mark = m->states++;
  emit_line(m->e, "int state%u;", state);
  if (!emit_type(op->results[0].type, &c)) return false;
  if (code == WEFT_DATAFLOW_INVARIANT && c.name) emit_line(m->e, "%s held%u;", c.name, state);
  if (code == WEFT_DATAFLOW_STREAM) emit_line(m->e, "%s at%u, step%u; uint64_t left%u;", c.name, state, state, state);
  return true;
}

/* What stays from one launch to the next. */
static bool declare_kept(machine *m, uint32_t number) {
  emitter *e = m->e;
  weft_text_printf(e->out, "struct machine_%u {\n", number);
  e->indent++;
  for (uint32_t q = 0; q < m->queue_count; q++) {
    c_type c;
    if (!emit_type(m->queues[q].value->type, &c))
      return emit_refuse(e, m->queues[q].consumer, NULL, "an operand's type has no C type");
    if (m->queues[q].stream >= 0) continue;
    if (m->queues[q].none)
      emit_line(e, "uint32_t n%u;", q);
    else
      emit_line(e, "%s q%u[2]; uint32_t h%u, n%u;", c.name, q, q, q);
  }
  for (weft_mlir_op *op = m->body->first; op; op = op->next)
    if (!declare_state(m, op)) return false;
  emit_line(e, "int unused;");
  e->indent--;
  weft_text_puts(e->out, "};\n");
  return true;
}

static void declare(machine *m, uint32_t number) {
  emitter *e = m->e;
  const weft_mlir_op *end = m->body->last;
  emit_line(e, "struct machine_%u fresh = {.unused = 0}, *s = env->machines ? env->machines[%u] : &fresh;", number,
            number);
  for (uint32_t q = m->now_queue; q < m->queue_count; q++) /* streams that are results at once */
    if (m->queues[q].stream >= 0) emit_line(e, "uint64_t w%u = 0;", q);
  for (uint32_t i = 0; i < end->operand_count; i++)
    if (!is_memory(end->operands[i])) emit_line(e, "int came%u = 0;", i);
}

/* All memories of the launch in one array, as the parts take them: inputs, then allocations and casts. */
static bool declare_memories(machine *m) {
  emitter *e = m->e;
  uint32_t memories = 0, inputs = 0;
  if (!emit_allocations(e, m->graph)) return false;
  for (uint32_t v = 0; v < m->values; v++) inputs += m->memory_of[v] != 0;
  emit_line(e, "weft_df_memory *held[%u];", inputs + 1);
  emit_line(e, "held[0] = 0;");
  for (uint32_t i = 0; i < m->body->argument_count; i++)
    if (is_memory(&m->body->arguments[i]))
      emit_line(e, "held[%u] = memories[%u];", m->memory_of[m->body->arguments[i].mark], memories++);
  for (weft_mlir_op *op = m->body->first; op; op = op->next) {
    uint32_t code = weft_mlir_code(op), mark = op->result_count ? op->results[0].mark : 0;
    if (code == WEFT_OP_MEMREF_CAST)
      emit_line(e, "held[%u] = held[%u];", m->memory_of[mark], m->memory_of[op->operands[0]->mark]);
    if (code == WEFT_OP_MEMREF_ALLOC) emit_line(e, "held[%u] = &a%u;", m->memory_of[mark], mark);
  }
  return true;
}

/* A token that a launch begins with; what the last launch left may be in its way. */
static void first_token(machine *m, const weft_mlir_value *value, const char *text) {
  for (uint32_t k = m->first_use[value->mark]; k < m->first_use[value->mark + 1]; k++)
    emit_line(m->e, "if (s->n%u > 1) %s;", m->uses[k],
              emit_fault(m->e, m->queues[m->uses[k]].consumer, "the last launch has left tokens that are in the way"));
  emit_token(m, value, text);
}

/* Value inputs, the start and constants give one token each. */
static void first_tokens(machine *m) {
  uint32_t values = segment(m->graph, "input_segments", 0), words = 0;
  m->now = NULL;
  for (uint32_t i = 0; i <= values; i++) {
    c_type c;
    char word[32];
    weft_text t = {0};
    emit_type(m->body->arguments[i].type, &c);
    snprintf(word, sizeof word, "values[%u]", words);
    words += c.name != NULL;
    if (c.name) emit_from_word_text(&c, word, &t);
    first_token(m, &m->body->arguments[i], t.data ? t.data : "0");
    weft_text_free(&t);
  }
  for (const weft_mlir_op *op = m->body->first; op; op = op->next) {
    c_type c;
    weft_text t = {0};
    if (weft_mlir_code(op) != WEFT_OP_ARITH_CONSTANT || !emit_type(op->results[0].type, &c)) continue;
    emit_constant_text(weft_mlir_attribute_of(op, "value"), &c, &t);
    first_token(m, &op->results[0], t.data);
    weft_text_free(&t);
  }
}

/* ---- parts ------------------------------------------------------------------------------------------------------ */

/* Each memory that an actor of the part uses, once. */
static void declare_part_memories(machine *m, const weft_mlir_op *first, uint32_t number) {
  const weft_mlir_op *op = first;
  for (uint32_t i = 0; i < m->part_actors && op != m->body->last; i++, op = op->next)
    for (uint32_t k = 0; k < op->operand_count; k++) {
      uint32_t mark = op->operands[k]->mark;
      if (!is_memory(op->operands[k]) || m->declared_in[mark] == number + 1) continue;
      m->declared_in[mark] = number + 1;
      emit_line(m->e, "weft_df_memory *m%u = held[%u];", mark, m->memory_of[mark]);
      emit_line(m->e, "(void)m%u;", mark);
    }
}

static void put_part_head(machine *m, uint32_t machine_number, uint32_t number, bool alone) {
  weft_text_printf(
      m->e->out,
      "/* 1 when an actor fired, 0 when none could, -1 after a fault. */\n"
      "%sstatic int machine_%u_part_%u(struct machine_%u *s, weft_df_env *env, weft_df_memory *const *held,\n"
      "    const uint32_t *channels) {\n",
      alone ? "" : "__attribute__((noinline)) ", machine_number, number, machine_number);
}

/* The actors from `*next` on; `*next` becomes the first of the next part. */
static bool emit_part(machine *m, uint32_t machine_number, uint32_t number, const weft_mlir_op **next) {
  emitter *e = m->e;
  const weft_mlir_op *op = *next;
  uint32_t q = m->now_queue, last = q;
  for (uint32_t i = 0; i < m->part_actors && op != m->body->last; i++, op = op->next)
    for (uint32_t k = 0; k < op->operand_count; k++) last += !is_memory(op->operands[k]);
  put_part_head(m, machine_number, number, number == 0 && op == m->body->last);
  e->indent++;
  emit_line(e, "int moved = 0;");
  for (; q < last; q++)
    if (m->queues[q].stream >= 0) emit_line(e, "uint64_t w%u = 0;", q);
  declare_part_memories(m, *next, number);
  for (const weft_mlir_op *actor = *next; actor != op; actor = actor->next) {
    m->now = actor;
    if (!emit_actor(m, actor)) return false;
    for (uint32_t i = 0; i < actor->operand_count; i++) m->now_queue += !is_memory(actor->operands[i]);
  }
  emit_line(e, "(void)s, (void)env, (void)held, (void)channels;");
  emit_line(e, "return moved;");
  e->indent--;
  weft_text_puts(e->out, "failed: __attribute__((unused));\n  return -1;\n}\n\n");
  *next = op;
  return true;
}

static bool emit_parts(machine *m, uint32_t number, uint32_t *parts) {
  uint64_t actors = 0;
  for (const weft_mlir_op *op = m->body->first; op != m->body->last; op = op->next) actors++;
  m->part_actors = actors <= ALONE_ACTORS ? ALONE_ACTORS : PART_ACTORS;
  const weft_mlir_op *next = m->body->first;
  for (*parts = 0; next != m->body->last; ++*parts)
    if (!emit_part(m, number, *parts, &next)) return false;
  return true;
}

/* The sweeps over all actors, until the results are there. */
static void emit_sweeps(machine *m, uint32_t number, uint32_t parts) {
  emitter *e = m->e;
  emit_line(e, "for (;;) {");
  e->indent++;
  emit_line(e, "int moved = 0;");
  if (parts) emit_line(e, "int part;");
  for (uint32_t p = 0; p < parts; p++) {
    emit_line(e, "if ((part = machine_%u_part_%u(s, env, held, channels)) < 0) goto failed;", number, p);
    emit_line(e, "moved |= part;");
  }
  emit_sinks(m);
  emit_ending(m);
  e->indent--;
  emit_line(e, "}");
}

bool emit_machine(emitter *e, const weft_mlir_op *graph, uint32_t number) {
  machine m = {.e = e, .graph = graph, .body = weft_mlir_op_block(graph, 0)};
  uint32_t parts;
  if (!number_values(&m) || !number_queues(&m)) return false;
  if (!declare_kept(&m, number) || !emit_parts(&m, number, &parts)) return false;
  emit_head(e, graph, number);
  e->indent++;
  emit_line(e, "int status = 1;");
  declare(&m, number);
  if (!declare_memories(&m)) return false;
  emit_line(e, "if (!s) s = env->machines[%u] = calloc(1, sizeof *s);", number);
  emit_line(e, "if (!s) %s;", emit_fault(e, graph, "out of memory"));
  first_tokens(&m);
  emit_sweeps(&m, number, parts);
  emit_line(e, "status = 0;");
  emit_line(e, "goto failed;");
  e->indent--;
  emit_line(e, "failed:");
  e->indent++;
  for (const weft_mlir_op *op = m.body->first; op; op = op->next)
    if (weft_mlir_code(op) == WEFT_OP_MEMREF_ALLOC)
      emit_line(e, "free(a%u.data), free(a%u.written);", op->results[0].mark, op->results[0].mark);
  emit_line(e, "(void)values, (void)memories, (void)held, (void)channels, (void)results, (void)env;");
  emit_line(e, "return status;");
  e->indent--;
  emit_line(e, "}");
  weft_text_puts(e->out, "\n");
  return e->status == WEFT_OK;
}
