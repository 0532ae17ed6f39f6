/* From a structured program to instructions. Every value has a slot; regions hand values over by moves. */
#include "interpret_private.h"

#include <string.h>

typedef struct compiler {
  weft_interpreter *m;
  weft_diag *diag;
  bool failed;
  instruction spare; /* written instead of one there is no memory for */
} compiler;

static bool memory_out(compiler *c) {
  if (!c->failed) weft_error_memory(c->diag);
  c->failed = true;
  return false;
}

static bool refuse(compiler *c, const weft_mlir_op *op, const char *hint, const char *why) {
  if (!c->failed)
    weft_error_at(c->diag, WEFT_INVALID, weft_mlir_place(c->m->file, op), hint, "%s: %s", op->name->text, why);
  c->failed = true;
  return false;
}

/* Appends to one of the machine's tables; the new element's address, NULL without memory. */
#define APPEND(c, table)                                                                                               \
  (weft_arena_grow((c)->m->arena, &(c)->m->table, (c)->m->table##_count, &(c)->m->table##_capacity,                    \
                   sizeof *(c)->m->table)                                                                              \
       ? &(c)->m->table[(c)->m->table##_count++]                                                                       \
       : NULL)

static uint32_t here(const compiler *c) { return (uint32_t)c->m->code_count; }

static instruction *emit(compiler *c, instruction_kind kind, const weft_mlir_op *op) {
  weft_interpreter *m = c->m;
  if (m->code_count >= UINT32_MAX ||
      !weft_arena_grow(m->arena, &m->code, m->code_count, &m->code_capacity, sizeof *m->code)) {
    memory_out(c);
    return &c->spare;
  }
  instruction *i = &m->code[m->code_count++];
  *i = (instruction){.kind = kind, .op = op};
  return i;
}

static uint32_t list_begin(const compiler *c) { return (uint32_t)c->m->list_count; }

static void list_add(compiler *c, uint32_t slot) {
  weft_interpreter *m = c->m;
  if (!weft_arena_grow(m->arena, &m->list, m->list_count, &m->list_capacity, sizeof *m->list)) {
    memory_out(c);
    return;
  }
  m->list[m->list_count++] = slot;
}

static uint32_t slot_of(const weft_mlir_value *value) { return value->mark; }

/* list[...] = the slots of operands from `first` up to `end`. */
static uint32_t list_operands(compiler *c, const weft_mlir_op *op, uint32_t first, uint32_t end) {
  uint32_t begin = list_begin(c);
  for (uint32_t i = first; i < end; i++) list_add(c, slot_of(op->operands[i]));
  return begin;
}

/* Operands from `first` on go to `targets`. */
static void emit_move(compiler *c, const weft_mlir_op *op, uint32_t first, const weft_mlir_value *targets,
                      uint32_t count) {
  if (!count) return;
  uint32_t begin = list_operands(c, op, first, first + count);
  for (uint32_t i = 0; i < count; i++) list_add(c, slot_of(&targets[i]));
  instruction *i = emit(c, DO_MOVE, op);
  i->b = begin;
  i->c = count;
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

/* Strides of a row-major memref. With one dimension the buffer alone says what is in bounds. */
static bool access_of(compiler *c, const weft_mlir_op *op, const weft_mlir_type *type, access *a) {
  const char *why;
  uint64_t row, stride = 1;
  if (!weft_memref_rows(type, &row, &why)) return refuse(c, op, NULL, why);
  a->rank = type->rank;
  for (uint32_t i = type->rank; i-- > 0;) {
    bool known = type->extents[i] >= 0 && type->rank > 1;
    a->strides[i] = stride;
    a->extents[i] = known ? (uint64_t)type->extents[i] : UINT64_MAX;
    if (known) stride *= a->extents[i];
  }
  return true;
}

static bool volatile_or_atomic(const weft_mlir_op *op) {
  return weft_mlir_attribute_of(op, "volatile") || weft_mlir_attribute_of(op, "atomic") ||
         weft_mlir_attribute_of(op, "volatile_");
}

/* The memref is operand `at`; indices follow it. */
static bool compile_access(compiler *c, const weft_mlir_op *op, uint32_t at) {
  scalar s;
  const weft_mlir_type *type = op->operands[at]->type;
  if (!scalar_of(type->element, &s) || s.kind == SCALAR_NONE)
    return refuse(c, op, NULL, "the element type is not supported");
  if (volatile_or_atomic(op)) return refuse(c, op, NULL, "atomic and volatile accesses are not supported");
  access *a = APPEND(c, accesses);
  if (!a) return memory_out(c);
  *a = (access){.rank = 0};
  if (!access_of(c, op, type, a)) return false;
  uint32_t begin = list_operands(c, op, at + 1, op->operand_count);
  instruction *i = emit(c, at ? DO_STORE : DO_LOAD, op);
  i->a = at ? slot_of(op->operands[0]) : slot_of(&op->results[0]);
  i->b = slot_of(op->operands[at]);
  i->c = begin;
  i->d = (uint32_t)c->m->accesses_count - 1;
  return true;
}

static bool compile_alloc(compiler *c, const weft_mlir_op *op) {
  scalar s;
  const weft_mlir_type *type = op->results[0].type;
  access checked;
  if (!scalar_of(type->element, &s) || s.kind == SCALAR_NONE)
    return refuse(c, op, NULL, "the element type is not supported");
  if (!access_of(c, op, type, &checked)) return false;
  allocation *a = APPEND(c, allocations);
  if (!a) return memory_out(c);
  *a = (allocation){.type = type, .buffer = {.element = type->element}};
  uint32_t begin = list_operands(c, op, 0, op->operand_count);
  instruction *i = emit(c, DO_ALLOCATE, op);
  i->a = slot_of(&op->results[0]);
  i->b = begin;
  i->d = (uint32_t)c->m->allocations_count - 1;
  return true;
}

static bool compile_copy(compiler *c, const weft_mlir_op *op) {
  access from, to;
  if (!access_of(c, op, op->operands[0]->type, &from) || !access_of(c, op, op->operands[1]->type, &to)) return false;
  instruction *i = emit(c, DO_COPY, op);
  i->a = slot_of(op->operands[0]);
  i->b = slot_of(op->operands[1]);
  return true;
}

/* ---- control -------------------------------------------------------------------------------------------------- */

static bool compile_block(compiler *c, const weft_mlir_block *block);

static bool compile_if(compiler *c, const weft_mlir_op *op) {
  const weft_mlir_block *then = weft_mlir_op_block(op, 0), *otherwise = weft_mlir_op_region(op, 1)->first;
  uint32_t branch = here(c);
  emit(c, DO_BRANCH, op)->a = slot_of(op->operands[0]);
  if (!compile_block(c, then)) return false;
  emit_move(c, then->last, 0, op->results, op->result_count);
  uint32_t jump = here(c);
  emit(c, DO_JUMP, op);
  if (c->failed) return false;
  c->m->code[branch].b = here(c);
  if (otherwise) {
    if (!compile_block(c, otherwise)) return false;
    emit_move(c, otherwise->last, 0, op->results, op->result_count);
  }
  c->m->code[jump].a = here(c);
  return !c->failed;
}

static bool compile_switch(compiler *c, const weft_mlir_op *op) {
  switch_table *table = APPEND(c, switches);
  uint32_t *jumps = WEFT_NEW_ARRAY(c->m->arena, uint32_t, op->region_count);
  if (!table || !jumps) return memory_out(c);
  uint32_t index = (uint32_t)c->m->switches_count - 1;
  *table = (switch_table){.cases = weft_mlir_attribute_of(op, "cases"),
                          .targets = WEFT_NEW_ARRAY(c->m->arena, uint32_t, op->region_count)};
  uint32_t *targets = table->targets;
  if (!targets) return memory_out(c);
  instruction *i = emit(c, DO_SWITCH, op);
  i->a = slot_of(op->operands[0]);
  i->d = index;
  for (uint32_t r = 0; r < op->region_count; r++) {
    const weft_mlir_block *block = weft_mlir_op_block(op, r);
    targets[r] = here(c);
    if (!compile_block(c, block)) return false;
    emit_move(c, block->last, 0, op->results, op->result_count);
    jumps[r] = here(c);
    emit(c, DO_JUMP, op);
  }
  if (c->failed) return false;
  for (uint32_t r = 0; r < op->region_count; r++) c->m->code[jumps[r]].a = here(c);
  return true;
}

/* The counter has a slot of its own: the one after all values', taken anew by each loop. */
static uint32_t new_slot(compiler *c) { return c->m->slot_count++; }

static bool compile_for(compiler *c, const weft_mlir_op *op) {
  const weft_mlir_block *body = weft_mlir_op_block(op, 0);
  scalar s;
  if (!scalar_of(op->operands[0]->type, &s)) return refuse(c, op, NULL, "the type of the bounds is not supported");
  uint32_t counter = new_slot(c), bounds = list_operands(c, op, 0, 3);
  instruction *i = emit(c, DO_FOR, op);
  i->a = slot_of(&body->arguments[0]);
  i->b = bounds;
  i->c = counter;
  i->d = weft_mlir_attribute_of(op, "unsignedCmp") != NULL;
  emit_move(c, op, 3, body->arguments + 1, op->result_count);
  uint32_t test = here(c);
  emit(c, DO_TEST, op)->a = counter;
  if (!compile_block(c, body)) return false;
  emit_move(c, body->last, 0, body->arguments + 1, op->result_count);
  i = emit(c, DO_NEXT, op);
  i->a = slot_of(&body->arguments[0]);
  i->b = slot_of(op->operands[2]);
  i->d = s.width;
  emit(c, DO_JUMP, op)->a = test;
  if (c->failed) return false;
  c->m->code[test].b = here(c);
  /* The carried values leave as they stand in the arguments. */
  uint32_t begin = list_begin(c);
  for (uint32_t k = 0; k < op->result_count; k++) list_add(c, slot_of(&body->arguments[k + 1]));
  for (uint32_t k = 0; k < op->result_count; k++) list_add(c, slot_of(&op->results[k]));
  if (op->result_count) {
    i = emit(c, DO_MOVE, op);
    i->b = begin;
    i->c = op->result_count;
  }
  return !c->failed;
}

static bool compile_while(compiler *c, const weft_mlir_op *op) {
  const weft_mlir_block *before = weft_mlir_op_block(op, 0), *after = weft_mlir_op_block(op, 1);
  emit_move(c, op, 0, before->arguments, op->operand_count);
  uint32_t top = here(c);
  if (!compile_block(c, before)) return false;
  uint32_t branch = here(c);
  emit(c, DO_BRANCH, op)->a = slot_of(before->last->operands[0]);
  emit_move(c, before->last, 1, after->arguments, op->result_count);
  if (!compile_block(c, after)) return false;
  emit_move(c, after->last, 0, before->arguments, op->operand_count);
  emit(c, DO_JUMP, op)->a = top;
  if (c->failed) return false;
  c->m->code[branch].b = here(c);
  emit_move(c, before->last, 1, op->results, op->result_count);
  return !c->failed;
}

/* ---- threads -------------------------------------------------------------------------------------------------- */

/* A region not published yet runs in its place. */
static bool compile_spatial_region(compiler *c, const weft_mlir_op *op) {
  const weft_mlir_block *body = weft_mlir_op_block(op, 0);
  emit_move(c, op, 0, body->arguments, op->operand_count);
  if (!compile_block(c, body)) return false;
  emit_move(c, body->last, 0, op->results, op->result_count);
  return !c->failed;
}

static uint32_t segment(const weft_mlir_op *op, const char *name, uint32_t index) {
  return (uint32_t)weft_mlir_dense_integer(weft_mlir_attribute_of(op, name), index);
}

static bool has_token_ops(const weft_mlir_op *graph) {
  for (const weft_mlir_op *op = weft_mlir_op_block(graph, 0)->first; op; op = op->next)
    if (weft_mlir_code(op) >= WEFT_DATAFLOW_CONSTANT && weft_mlir_code(op) <= WEFT_DATAFLOW_STORE) return true;
  return false;
}

static bool has_structure(const weft_mlir_op *graph) {
  for (const weft_mlir_op *op = weft_mlir_op_block(graph, 0)->first; op; op = op->next)
    if (op->region_count || strncmp(op->name->text, "memref.", 7) == 0) return true;
  return false;
}

static bool make_machine(compiler *c, launch *l) {
  /* A graph without either kind of op is a token graph: its stream ports need the simulator. */
  bool tokens = has_token_ops(l->graph) || !has_structure(l->graph);
  weft_simulator_options options = {.strict = weft_mlir_attribute_of(l->graph, "weft.lowered") != NULL};
  weft_status status = tokens ? weft_simulator_new(l->graph, c->m->file, &options, &l->simulator, c->diag)
                              : weft_interpreter_new(l->graph, c->m->file, &l->interpreter, c->diag);
  if (status != WEFT_OK) c->failed = true;
  return status == WEFT_OK;
}

static bool compile_launch(compiler *c, const weft_mlir_op *op) {
  const char *callee = weft_mlir_attribute_text(op, "callee", "");
  const weft_mlir_op *graph = c->m->module ? weft_mlir_lookup(c->m->module, callee) : NULL;
  if (!graph || weft_mlir_code(graph) != WEFT_DATAFLOW_GRAPH)
    return refuse(c, op, NULL, "the callee is no dataflow.graph of this module");
  uint32_t deps = segment(op, "operandSegmentSizes", 0), outputs = segment(op, "operandSegmentSizes", 4);
  launch l = {.graph = graph, .input_count = op->operand_count - deps - outputs, .output_count = outputs};
  if (l.input_count != weft_mlir_function_type(graph)->input_count || outputs != segment(graph, "result_segments", 1))
    return refuse(c, op, NULL, "the operands do not fit the graph's inputs");
  l.inputs = list_operands(c, op, deps, op->operand_count - outputs);
  l.outputs = list_operands(c, op, op->operand_count - outputs, op->operand_count);
  l.value_count = segment(op, "resultSegmentSizes", 0);
  l.memory_count = segment(op, "resultSegmentSizes", 1);
  l.results = list_begin(c);
  for (uint32_t i = 0; i + 1 < op->result_count; i++) list_add(c, slot_of(&op->results[i]));
  if (l.value_count != segment(graph, "result_segments", 0) || l.memory_count != segment(graph, "result_segments", 2))
    return refuse(c, op, NULL, "the results do not fit the graph's results");
  if (!make_machine(c, &l)) return false;
  launch *kept = APPEND(c, launches);
  if (!kept) return memory_out(c);
  *kept = l;
  emit(c, DO_LAUNCH, op)->d = (uint32_t)c->m->launches_count - 1;
  return !c->failed;
}

/* ---- ops ------------------------------------------------------------------------------------------------------ */

static bool compile_constant(compiler *c, const weft_mlir_op *op) {
  uint64_t word;
  scalar s;
  if (!scalar_of(op->results[0].type, &s) || !compute_constant(weft_mlir_attribute_of(op, "value"), &word))
    return refuse(c, op, NULL, "the constant's type is not supported");
  uint64_t *kept = APPEND(c, words);
  if (!kept) return memory_out(c);
  *kept = word;
  instruction *i = emit(c, DO_CONSTANT, op);
  i->a = slot_of(&op->results[0]);
  i->d = (uint32_t)c->m->words_count - 1;
  return !c->failed;
}

static bool compile_compute(compiler *c, const weft_mlir_op *op) {
  compute ready;
  if (!compute_prepare(op, c->m->file, &ready, c->diag)) {
    c->failed = true;
    return false;
  }
  compute *kept = APPEND(c, computes);
  if (!kept) return memory_out(c);
  *kept = ready;
  uint32_t begin = list_operands(c, op, 0, op->operand_count);
  while (c->m->list_count < begin + 3) list_add(c, slot_of(op->operands[0])); /* three are always read */
  instruction *i = emit(c, DO_COMPUTE, op);
  i->a = slot_of(&op->results[0]);
  i->b = begin;
  i->d = (uint32_t)c->m->computes_count - 1;
  return !c->failed;
}

static bool compile_channel(compiler *c, const weft_mlir_op *op) {
  bool send = weft_mlir_code(op) == WEFT_DATAFLOW_CHANNEL_SEND;
  instruction *i = emit(c, send ? DO_SEND : DO_RECEIVE, op);
  i->a = send ? slot_of(op->operands[0]) : slot_of(&op->results[0]);
  i->b = slot_of(op->operands[send ? 1 : 0]);
  return !c->failed;
}

static bool compile_end(compiler *c, const weft_mlir_op *op) {
  uint32_t count = op->operand_count;
  if (weft_mlir_code(op) == WEFT_DATAFLOW_GRAPH_RETURN) count = segment(op, "operandSegmentSizes", 0);
  if (weft_mlir_code(op) == WEFT_DATAFLOW_THREAD_YIELD) count = 0;
  uint32_t begin = list_operands(c, op, 0, count);
  instruction *i = emit(c, DO_END, op);
  i->b = begin;
  i->c = count;
  return !c->failed;
}

static bool compile_op(compiler *c, const weft_mlir_op *op) {
  if (compute_is(op)) return compile_compute(c, op);
  switch (weft_mlir_code(op)) {
  case WEFT_OP_ARITH_CONSTANT: return compile_constant(c, op);
  case WEFT_OP_MEMREF_LOAD: return compile_access(c, op, 0);
  case WEFT_OP_MEMREF_STORE: return compile_access(c, op, 1);
  case WEFT_OP_MEMREF_ALLOC: return compile_alloc(c, op);
  case WEFT_OP_MEMREF_COPY: return compile_copy(c, op);
  case WEFT_OP_MEMREF_CAST: emit_move(c, op, 0, op->results, 1); return !c->failed;
  case WEFT_OP_SCF_IF: return compile_if(c, op);
  case WEFT_OP_SCF_FOR: return compile_for(c, op);
  case WEFT_OP_SCF_WHILE: return compile_while(c, op);
  case WEFT_OP_SCF_INDEX_SWITCH: return compile_switch(c, op);
  case WEFT_OP_SCF_YIELD:
  case WEFT_OP_SCF_CONDITION:
  case WEFT_DATAFLOW_SPATIAL_YIELD: return true; /* their values are moved by the op around them */
  case WEFT_DATAFLOW_CHANNEL_SEND:
  case WEFT_DATAFLOW_CHANNEL_RECEIVE: return compile_channel(c, op);
  case WEFT_DATAFLOW_SPATIAL_REGION: return compile_spatial_region(c, op);
  case WEFT_DATAFLOW_GRAPH_LAUNCH: return compile_launch(c, op);
  case WEFT_OP_FUNC_RETURN:
  case WEFT_DATAFLOW_GRAPH_RETURN:
  case WEFT_DATAFLOW_THREAD_YIELD: return compile_end(c, op);
  default:
    return refuse(c, op, "weft sim runs token ops; parallel forms, calls and other effects are not run",
                  "the interpreter does not run this op");
  }
}

static bool compile_block(compiler *c, const weft_mlir_block *block) {
  for (const weft_mlir_op *op = block->first; op; op = op->next)
    if (!compile_op(c, op)) return false;
  return !c->failed;
}

/* A slot for every value below the entry. */
static void number_slots(weft_interpreter *m) {
  for (weft_mlir_op *op = weft_mlir_next(m->entry, NULL); op; op = weft_mlir_next(m->entry, op)) {
    for (uint32_t i = 0; i < op->result_count; i++) op->results[i].mark = m->slot_count++;
    for (uint32_t r = 0; r < op->region_count; r++)
      for (weft_mlir_block *b = op->extra->regions[r].first; b; b = b->next)
        for (uint32_t i = 0; i < b->argument_count; i++) b->arguments[i].mark = m->slot_count++;
  }
}

weft_status interpret_compile(weft_interpreter *m, weft_diag *diag) {
  compiler c = {.m = m, .diag = diag};
  uint32_t code = weft_mlir_code(m->entry);
  const weft_mlir_block *body = weft_mlir_op_block(m->entry, 0);
  bool entry = code == WEFT_OP_FUNC_FUNC || code == WEFT_DATAFLOW_GRAPH || code == WEFT_DATAFLOW_THREAD;
  if (!entry || !body) {
    refuse(&c, m->entry, "name a dataflow.graph, func.func or dataflow.thread with a body", "this cannot be run");
    return WEFT_INVALID;
  }
  number_slots(m);
  uint32_t inputs = weft_mlir_function_type(m->entry)->input_count;
  m->first_input = body->argument_count ? slot_of(&body->arguments[0]) : 0;
  m->input_count = body->argument_count;
  if (code == WEFT_DATAFLOW_GRAPH) {
    m->first_input++; /* the start */
    m->input_count = inputs;
  }
  if (!compile_block(&c, body)) return weft_arena_failed(m->arena) ? WEFT_UNAVAILABLE : WEFT_INVALID;
  m->slots = WEFT_NEW_ARRAY(m->arena, weft_binding, m->slot_count);
  m->staged = WEFT_NEW_ARRAY(m->arena, weft_binding, m->slot_count + m->list_count);
  return m->slots && m->staged ? WEFT_OK : weft_error_memory(diag);
}
