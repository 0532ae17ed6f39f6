/* From a graph of token ops to actors and queues. */
#include "simulate_private.h"

#include <stdlib.h>
#include <string.h>

/* A value's mark is 1 + the number of its producing port: ports are results of actors, in order. Memory values have the
 * mark MEMORY + the number of the memory. */
enum { MEMORY = 1 << 30 };

typedef struct builder {
  weft_simulator *s;
  weft_diag *diag;
  uint32_t ports, input_count;  /* so far */
  const weft_mlir_value **used; /* of each queue: the value it carries */
  bool failed;
} builder;

static bool refuse(builder *b, const weft_mlir_op *op, const char *hint, const char *why) {
  if (!b->failed)
    weft_error_at(b->diag, WEFT_INVALID, weft_mlir_place(b->s->file, op), hint, "%s: %s", op->name->text, why);
  b->failed = true;
  return false;
}

static bool is_memory(const weft_mlir_value *value) { return value->type->kind == WEFT_MLIR_MEMREF_TYPE; }

/* ---- counting ------------------------------------------------------------------------------------------------- */

static const weft_mlir_block *body_of(const weft_simulator *s) { return weft_mlir_op_block(s->graph, 0); }

static bool allocate_tables(builder *b) {
  weft_simulator *s = b->s;
  const weft_mlir_block *body = body_of(s);
  uint64_t actors = body->argument_count, queues = 0, ports = body->argument_count, memories = 0,
           sinks = body->last->operand_count, constants = 0;
  for (const weft_mlir_op *op = body->first; op; op = op->next) {
    actors++;
    ports += op->result_count;
    queues += op->operand_count;
    memories += op->result_count && is_memory(&op->results[0]);
    constants += weft_mlir_code(op) == WEFT_OP_ARITH_CONSTANT;
  }
  memories += body->argument_count;
  actors += sinks;
  if (queues >= UINT32_MAX / 2 || actors >= MEMORY || ports >= MEMORY)
    return refuse(b, s->graph, NULL, "the graph is too large");
  s->actors = WEFT_NEW_ARRAY(s->arena, actor, actors);
  s->queues = WEFT_NEW_ARRAY(s->arena, queue, queues);
  s->inputs = WEFT_NEW_ARRAY(s->arena, uint32_t, queues);
  s->begins = WEFT_NEW_ARRAY(s->arena, uint32_t, ports + 1);
  s->fan = WEFT_NEW_ARRAY(s->arena, uint32_t, queues);
  s->sources = WEFT_NEW_ARRAY(s->arena, source, body->argument_count + constants);
  s->sinks = WEFT_NEW_ARRAY(s->arena, sink, sinks);
  s->memories = WEFT_NEW_ARRAY(s->arena, memory, memories);
  s->ready = WEFT_NEW_ARRAY(s->arena, uint64_t, actors / 64 + 1);
  s->ready_words = WEFT_NEW_ARRAY(s->arena, uint64_t, actors / 4096 + 1);
  s->list = WEFT_NEW_ARRAY(s->arena, uint32_t, actors);
  b->used = WEFT_NEW_ARRAY(s->arena, const weft_mlir_value *, queues);
  if (!weft_arena_failed(s->arena)) return true;
  weft_error_memory(b->diag);
  b->failed = true;
  return false;
}

/* ---- actors --------------------------------------------------------------------------------------------------- */

static actor *add_actor(builder *b, actor_kind kind, const weft_mlir_op *op) {
  actor *a = &b->s->actors[b->s->actor_count++];
  *a = (actor){.kind = kind, .op = op, .in = b->input_count, .out = b->ports};
  return a;
}

static void add_port(builder *b, actor *a, weft_mlir_value *value) {
  value->mark = ++b->ports;
  a->out_count++;
}

static void add_input(builder *b, actor *a, const weft_mlir_value *value) {
  uint32_t q = b->s->queue_count++;
  b->used[q] = value;
  b->s->queues[q].consumer = b->s->actor_count - 1;
  b->s->inputs[b->input_count++] = q;
  a->in_count++;
}

static void add_source(builder *b, source_kind kind, const weft_mlir_op *op, weft_mlir_value *value, uint32_t input,
                       uint64_t word) {
  weft_simulator *s = b->s;
  actor *a = add_actor(b, ACTOR_SOURCE, op);
  a->detail = s->source_count;
  s->sources[s->source_count++] = (source){.kind = kind, .actor = s->actor_count - 1, .input = input, .word = word};
  add_port(b, a, value);
}

static bool add_memory(builder *b, weft_mlir_value *value, uint32_t input, const weft_mlir_op *alloc) {
  value->mark = MEMORY + b->s->memory_count;
  b->s->memories[b->s->memory_count++] =
      (memory){.input = input, .alloc = alloc, .own = {.element = value->type->element}};
  return true;
}

static bool add_arguments(builder *b) {
  const weft_mlir_block *body = body_of(b->s);
  const weft_mlir_attribute *segments = weft_mlir_attribute_of(b->s->graph, "input_segments");
  int64_t values = weft_mlir_dense_integer(segments, 0);
  scalar ignored;
  for (uint32_t i = 0; i < body->argument_count; i++) {
    weft_mlir_value *argument = &body->arguments[i];
    if (is_memory(argument)) {
      add_memory(b, argument, i - 1, NULL);
      continue;
    }
    if (!scalar_of(argument->type, &ignored))
      return refuse(b, b->s->graph, NULL, "the type of an input is not supported");
    source_kind kind = i == 0 ? SOURCE_START : (int64_t)i <= values ? SOURCE_VALUE : SOURCE_STREAM;
    add_source(b, kind, b->s->graph, argument, i - 1, 0);
  }
  return true;
}

/* Sizes of an allocation must be known when the launch begins. */
static bool known_at_start(const weft_mlir_value *value) {
  const weft_mlir_op *definition = weft_mlir_defining_op(value);
  return !definition || weft_mlir_code(definition) == WEFT_OP_ARITH_CONSTANT;
}

static bool add_alloc(builder *b, weft_mlir_op *op) {
  scalar s;
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (!known_at_start(op->operands[i]))
      return refuse(b, op, "use a constant or an input of the graph", "the size is computed by the graph itself");
  if (op->results[0].type->layout || !scalar_of(op->results[0].type->element, &s))
    return refuse(b, op, NULL, "the memref's type is not supported");
  return add_memory(b, &op->results[0], UINT32_MAX, op);
}

static bool token_kind_of(uint32_t code, actor_kind *kind) {
  switch (code) {
  case WEFT_DATAFLOW_CONSTANT: *kind = ACTOR_CONSTANT; return true;
  case WEFT_DATAFLOW_SYNC: *kind = ACTOR_SYNC; return true;
  case WEFT_DATAFLOW_MUX: *kind = ACTOR_MUX; return true;
  case WEFT_DATAFLOW_DEMUX: *kind = ACTOR_DEMUX; return true;
  case WEFT_DATAFLOW_CARRY: *kind = ACTOR_CARRY; return true;
  case WEFT_DATAFLOW_INVARIANT: *kind = ACTOR_INVARIANT; return true;
  case WEFT_DATAFLOW_GATE: *kind = ACTOR_GATE; return true;
  case WEFT_DATAFLOW_STREAM: *kind = ACTOR_STREAM; return true;
  case WEFT_DATAFLOW_LOAD: *kind = ACTOR_LOAD; return true;
  case WEFT_DATAFLOW_STORE: *kind = ACTOR_STORE; return true;
  default: return false;
  }
}

static void add_token_actor(builder *b, weft_mlir_op *op, actor_kind kind) {
  actor *a = add_actor(b, kind, op);
  for (uint32_t i = 0; i < op->operand_count; i++)
    if (!is_memory(op->operands[i])) add_input(b, a, op->operands[i]);
  for (uint32_t i = 0; i < op->result_count; i++) add_port(b, a, &op->results[i]);
  scalar s;
  if (kind == ACTOR_STREAM && scalar_of(op->results[0].type, &s)) a->compute.width = s.width;
  if (kind == ACTOR_STREAM) a->compute.predicate = strcmp(weft_mlir_attribute_text(op, "cont_cond", "slt"), "ult") == 0;
}

static bool add_op(builder *b, weft_mlir_op *op) {
  actor_kind kind;
  scalar ignored;
  uint64_t word;
  uint32_t code = weft_mlir_code(op);
  for (uint32_t i = 0; i < op->result_count; i++)
    if (!is_memory(&op->results[i]) && !scalar_of(op->results[i].type, &ignored))
      return refuse(b, op, NULL, "the type of a result is not supported");
  if (compute_is(op)) {
    actor *a = add_actor(b, ACTOR_COMPUTE, op);
    if (!compute_prepare(op, b->s->file, &a->compute, b->diag)) b->failed = true;
    for (uint32_t i = 0; i < op->operand_count; i++) add_input(b, a, op->operands[i]);
    add_port(b, a, &op->results[0]);
    return !b->failed;
  }
  if (token_kind_of(code, &kind)) {
    add_token_actor(b, op, kind);
    actor *a = &b->s->actors[b->s->actor_count - 1];
    return kind != ACTOR_CONSTANT || compute_constant(weft_mlir_attribute_of(op, "const_value"), &a->held) ||
           refuse(b, op, NULL, "the constant is no scalar");
  }
  switch (code) {
  case WEFT_OP_ARITH_CONSTANT:
    if (!compute_constant(weft_mlir_attribute_of(op, "value"), &word))
      return refuse(b, op, NULL, "the constant is no scalar");
    add_source(b, SOURCE_CONSTANT, op, &op->results[0], UINT32_MAX, word);
    return true;
  case WEFT_OP_MEMREF_ALLOC: return add_alloc(b, op);
  case WEFT_OP_MEMREF_CAST: return true; /* its mark is set once its operand has one */
  case WEFT_DATAFLOW_GRAPH_RETURN: return true;
  default:
    return refuse(b, op, "run the structured program with weft interp, or lower it first with weft lower",
                  "the simulator runs token ops");
  }
}

static bool add_sinks(builder *b) {
  const weft_mlir_op *end = body_of(b->s)->last;
  const weft_mlir_attribute *segments = weft_mlir_attribute_of(end, "operandSegmentSizes");
  static const sink_kind kinds[] = {SINK_VALUE, SINK_STREAM, SINK_VALUE, SINK_COMPLETE};
  uint32_t operand = 0;
  for (uint32_t segment = 0; segment < 4; segment++)
    for (uint32_t k = 0; k < weft_mlir_dense_integer(segments, segment); k++, operand++) {
      if (is_memory(end->operands[operand])) continue;
      actor *a = add_actor(b, ACTOR_SINK, end);
      a->detail = b->s->sink_count;
      b->s->sinks[b->s->sink_count++] = (sink){.kind = kinds[segment], .index = k};
      add_input(b, a, end->operands[operand]);
    }
  return true;
}

/* ---- wiring --------------------------------------------------------------------------------------------------- */

/* A cast is its operand's memory; casts may stand above what they cast. */
static bool settle_memory(builder *b, weft_mlir_value *value, uint32_t *number) {
  for (uint32_t steps = 0; steps < 1000; steps++) {
    weft_mlir_op *definition = weft_mlir_defining_op(value);
    if (!definition || weft_mlir_code(definition) != WEFT_OP_MEMREF_CAST) {
      *number = value->mark - MEMORY;
      return value->mark >= MEMORY;
    }
    value = definition->operands[0];
  }
  return refuse(b, b->s->graph, NULL, "a memref is cast round in a circle");
}

static bool wire_memories(builder *b) {
  for (uint32_t i = 0; i < b->s->actor_count; i++) {
    actor *a = &b->s->actors[i];
    if (a->kind != ACTOR_LOAD && a->kind != ACTOR_STORE) continue;
    scalar s;
    if (!settle_memory(b, a->op->operands[0], &a->memory))
      return refuse(b, a->op, NULL, "the memref comes from no input and no allocation");
    if (a->op->operands[0]->type->layout || !scalar_of(a->op->operands[0]->type->element, &s))
      return refuse(b, a->op, NULL, "the memref's type is not supported");
  }
  return true;
}

/* Sorts queues by the port that feeds them: fan[begins[p]...] in order of uses. */
static void wire_ports(builder *b) {
  weft_simulator *s = b->s;
  for (uint32_t q = 0; q < s->queue_count; q++) s->begins[b->used[q]->mark]++; /* port p counts in begins[p + 1] */
  for (uint32_t p = 0; p < b->ports; p++) s->begins[p + 1] += s->begins[p];
  for (uint32_t q = s->queue_count; q-- > 0;) s->fan[--s->begins[b->used[q]->mark]] = q;
  /* Filling moved each begin down by its own count: begins[p + 1] is now where port p begins. */
  memmove(s->begins, s->begins + 1, b->ports * sizeof *s->begins);
  s->begins[b->ports] = s->queue_count;
  for (uint32_t i = 0; i < s->actor_count; i++)
    for (uint32_t r = 0; r < s->actors[i].out_count; r++)
      for (uint32_t k = s->begins[s->actors[i].out + r]; k < s->begins[s->actors[i].out + r + 1]; k++)
        s->queues[s->fan[k]].producer = i;
}

static bool make_queues(builder *b) {
  weft_simulator *s = b->s;
  uint64_t capacity = s->options.capacity ? s->options.capacity : 2;
  bool unbounded = capacity == UINT64_MAX;
  uint32_t size = unbounded ? 2 : 1;
  while (!unbounded && size < capacity) size *= 2;
  if (!unbounded && capacity > (1u << 20))
    return refuse(b, s->graph, "use unbounded", "queues of more than 2^20 tokens are not supported");
  for (uint32_t q = 0; q < s->queue_count; q++) {
    queue *made = &s->queues[q];
    made->capacity = unbounded ? UINT32_MAX : (uint32_t)capacity;
    made->mask = size - 1;
    made->words = WEFT_NEW_ARRAY(s->arena, uint64_t, size);
    if (!made->words) return refuse(b, s->graph, NULL, "out of memory");
  }
  return true;
}

weft_status simulate_compile(weft_simulator *s, weft_diag *diag) {
  builder b = {.s = s, .diag = diag};
  const weft_mlir_block *body = body_of(s);
  if (weft_mlir_code(s->graph) != WEFT_DATAFLOW_GRAPH || !body) {
    refuse(&b, s->graph, "name a dataflow.graph", "this cannot be simulated");
    return WEFT_INVALID;
  }
  if (!allocate_tables(&b) || !add_arguments(&b)) return WEFT_INVALID;
  for (weft_mlir_op *op = body->first; op; op = op->next)
    if (!add_op(&b, op)) return WEFT_INVALID;
  if (!add_sinks(&b) || !wire_memories(&b) || !make_queues(&b)) return WEFT_INVALID;
  wire_ports(&b);
  for (uint32_t i = 0; i < s->source_count; i++) s->sources[i].feed = &s->sources[i].waiting;
  return WEFT_OK;
}
