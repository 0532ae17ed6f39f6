/* C for structured bodies: scf becomes for, while, if and switch. */
#include "emit_private.h"

#include <stdio.h>

typedef struct body_emitter {
  emitter *e;
  const weft_mlir_op *entry;
  uint32_t temporaries; /* for counters and staged values */
} body_emitter;

static void name_value(void *context, const weft_mlir_value *value, char *name, size_t size) {
  (void)context;
  snprintf(name, size, "v%u", value->mark);
}

static bool is_memory(const weft_mlir_type *type) { return type->kind == WEFT_MLIR_MEMREF_TYPE; }
static bool is_channel(const weft_mlir_type *type) { return type->kind == WEFT_MLIR_DIALECT_TYPE; }

/* The prefix of a value's variable. */
static char prefix(const weft_mlir_value *value) {
  return is_memory(value->type) ? 'm' : is_channel(value->type) ? 'c' : 'v';
}

static bool has_variable(const weft_mlir_value *value) { return value->type->kind != WEFT_MLIR_NONE_TYPE; }

static bool emit_block(body_emitter *b, const weft_mlir_block *block);

/* targets[i] = operands[first + i], all read before any is written. */
static void emit_moves(body_emitter *b, const weft_mlir_op *op, uint32_t first, const weft_mlir_value *targets,
                       uint32_t count) {
  emitter *e = b->e;
  uint32_t moved = 0;
  for (uint32_t i = 0; i < count; i++) moved += has_variable(&targets[i]) && op->operands[first + i] != &targets[i];
  if (moved > 1) emit_line(e, "{");
  for (uint32_t i = 0; i < count && moved > 1; i++) {
    c_type c = {.name = NULL};
    const weft_mlir_value *from = op->operands[first + i];
    if (!has_variable(&targets[i])) continue;
    emit_type(from->type, &c);
    emit_line(e, "  %s t%u = %c%u;",
              is_memory(from->type)    ? "weft_df_memory *"
              : is_channel(from->type) ? "uint32_t"
                                       : c.name,
              i, prefix(from), from->mark);
  }
  for (uint32_t i = 0; i < count; i++) {
    const weft_mlir_value *from = op->operands[first + i];
    if (!has_variable(&targets[i]) || from == &targets[i]) continue;
    if (moved > 1)
      emit_line(e, "  %c%u = t%u;", prefix(&targets[i]), targets[i].mark, i);
    else
      emit_line(e, "%c%u = %c%u;", prefix(&targets[i]), targets[i].mark, prefix(from), from->mark);
  }
  if (moved > 1) emit_line(e, "}");
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

/* The element's C type; false for memories that are refused. */
static bool memory_type(body_emitter *b, const weft_mlir_op *op, const weft_mlir_type *type, c_type *c) {
  const char *why;
  uint64_t row;
  if (!weft_memref_rows(type, &row, &why)) return emit_refuse(b->e, op, NULL, why);
  return (emit_type(type->element, c) && c->name) || emit_refuse(b->e, op, NULL, "the element type has no C type");
}

/* Opens a block that declares `at`, the checked address of an access whose memory is operand `memory`. */
static void emit_address(body_emitter *b, const weft_mlir_op *op, uint32_t memory) {
  emitter *e = b->e;
  const weft_mlir_type *type = op->operands[memory]->type;
  const char *why;
  uint64_t row = 1;
  weft_memref_rows(type, &row, &why);
  emit_line(e, "{");
  e->indent++;
  emit_line(e, type->rank ? "uint64_t at = (uint64_t)v%u;" : "uint64_t at = 0;",
            type->rank ? op->operands[memory + 1]->mark : 0);
  for (uint32_t i = 0; i < type->rank; i++) {
    if (i)
      emit_line(e, "at = at * %lld + (uint64_t)v%u;", (long long)type->extents[i], op->operands[memory + 1 + i]->mark);
    uint64_t limit = type->extents[i] < 0 ? weft_memref_limit(row) : (uint64_t)type->extents[i];
    if (type->rank > 1)
      emit_line(e, "if (WEFT_DF_NEVER((uint64_t)v%u >= UINT64_C(%llu))) %s;", op->operands[memory + 1 + i]->mark,
                (unsigned long long)limit, emit_fault(e, op, weft_fault_text(WEFT_FAULT_BOUNDS)));
  }
  emit_line(e, "if (WEFT_DF_NEVER(at >= m%u->count)) %s;", op->operands[memory]->mark,
            emit_fault(e, op, weft_fault_text(WEFT_FAULT_BOUNDS)));
}

static bool emit_load(body_emitter *b, const weft_mlir_op *op) {
  c_type c;
  if (!memory_type(b, op, op->operands[0]->type, &c)) return false;
  uint32_t m = op->operands[0]->mark;
  emit_address(b, op, 0);
  emit_line(b->e, "if (WEFT_DF_NEVER(m%u->written && !m%u->written[at])) %s;", m, m,
            emit_fault(b->e, op, weft_fault_text(WEFT_FAULT_UNWRITTEN)));
  emit_line(b->e, "v%u = ((const %s *)m%u->data)[at];", op->results[0].mark, c.name, m);
  b->e->indent--;
  emit_line(b->e, "}");
  return true;
}

static bool emit_store(body_emitter *b, const weft_mlir_op *op) {
  c_type c;
  if (!memory_type(b, op, op->operands[1]->type, &c)) return false;
  uint32_t m = op->operands[1]->mark;
  emit_address(b, op, 1);
  emit_line(b->e, "if (m%u->written) m%u->written[at] = 1;", m, m);
  emit_line(b->e, "((%s *)m%u->data)[at] = v%u;", c.name, m, op->operands[0]->mark);
  b->e->indent--;
  emit_line(b->e, "}");
  return true;
}

static bool emit_copy(body_emitter *b, const weft_mlir_op *op) {
  c_type c;
  uint64_t count;
  uint32_t from = op->operands[0]->mark, to = op->operands[1]->mark;
  if (!memory_type(b, op, op->operands[0]->type, &c) || !memory_type(b, op, op->operands[1]->type, &c)) return false;
  bool known = weft_mlir_elements(op->operands[0]->type, &count) || weft_mlir_elements(op->operands[1]->type, &count);
  emit_line(b->e, "{");
  if (known)
    emit_line(b->e, "  uint64_t count = %llu;", (unsigned long long)count);
  else
    emit_line(b->e, "  uint64_t count = m%u->count;", from);
  emit_line(b->e, "  if (count > m%u->count || count > m%u->count) %s;", from, to,
            emit_fault(b->e, op, weft_fault_text(WEFT_FAULT_BOUNDS)));
  emit_line(b->e, "  for (uint64_t i = 0; i < count; i++) {");
  emit_line(b->e, "    if (m%u->written && !m%u->written[i]) %s;", from, from,
            emit_fault(b->e, op, weft_fault_text(WEFT_FAULT_UNWRITTEN)));
  emit_line(b->e, "    if (m%u->written) m%u->written[i] = 1;", to, to);
  emit_line(b->e, "    ((%s *)m%u->data)[i] = ((const %s *)m%u->data)[i];", c.name, to, c.name, from);
  emit_line(b->e, "  }");
  emit_line(b->e, "}");
  return true;
}

static bool put_extent(emitter *e, const weft_mlir_op *alloc, const weft_mlir_value *extent) {
  (void)alloc;
  emit_line(e, "  if (v%u < 0 || __builtin_mul_overflow(count, (uint64_t)v%u, &count)) count = UINT64_MAX;",
            extent->mark, extent->mark);
  return true;
}

/* One buffer a launch: a<mark> holds it, freed at the end. */
static bool emit_alloc(body_emitter *b, const weft_mlir_op *op) {
  c_type c;
  emitter *e = b->e;
  const weft_mlir_type *type = op->results[0].type;
  if (!memory_type(b, op, type, &c)) return false;
  uint32_t a = op->results[0].mark;
  emit_line(e, "{");
  if (!emit_count(e, op, put_extent)) return false;
  emit_line(e, "  if (count > %d || (a%u.data && a%u.count != count)) %s;", WEFT_MOST_ALLOCATED, a, a,
            emit_fault(e, op, weft_fault_text(WEFT_FAULT_SIZE)));
  emit_line(e, "  if (!a%u.data) {", a);
  emit_line(e, "    a%u.data = calloc(count + 1, sizeof(%s));", a, c.name);
  emit_line(e, "    a%u.written = calloc(count + 1, 1);", a);
  emit_line(e, "    a%u.count = count;", a);
  emit_line(e, "    if (!a%u.data || !a%u.written) %s;", a, a, emit_fault(e, op, weft_fault_text(WEFT_FAULT_SIZE)));
  emit_line(e, "  }");
  emit_line(e, "  m%u = &a%u;", a, a);
  emit_line(e, "}");
  return true;
}

/* ---- control -------------------------------------------------------------------------------------------------- */

static bool emit_if(body_emitter *b, const weft_mlir_op *op) {
  const weft_mlir_block *then = weft_mlir_op_block(op, 0), *otherwise = weft_mlir_op_region(op, 1)->first;
  emit_line(b->e, "if (v%u) {", op->operands[0]->mark);
  b->e->indent++;
  if (!emit_block(b, then)) return false;
  emit_moves(b, then->last, 0, op->results, op->result_count);
  b->e->indent--;
  if (otherwise) {
    emit_line(b->e, "} else {");
    b->e->indent++;
    if (!emit_block(b, otherwise)) return false;
    emit_moves(b, otherwise->last, 0, op->results, op->result_count);
    b->e->indent--;
  }
  emit_line(b->e, "}");
  return true;
}

static bool emit_switch(body_emitter *b, const weft_mlir_op *op) {
  const weft_mlir_attribute *cases = weft_mlir_attribute_of(op, "cases");
  emit_line(b->e, "switch (v%u) {", op->operands[0]->mark);
  for (uint32_t r = 1; r <= op->region_count; r++) {
    uint32_t region = r == op->region_count ? 0 : r;
    const weft_mlir_block *block = weft_mlir_op_block(op, region);
    if (region)
      emit_line(b->e, "case INT64_C(%lld): {", (long long)weft_mlir_dense_integer(cases, region - 1));
    else
      emit_line(b->e, "default: {");
    b->e->indent++;
    if (!emit_block(b, block)) return false;
    emit_moves(b, block->last, 0, op->results, op->result_count);
    emit_line(b->e, "break;");
    b->e->indent--;
    emit_line(b->e, "}");
  }
  emit_line(b->e, "}");
  return true;
}

/* The number of rounds is known before the first. */
static bool emit_for(body_emitter *b, const weft_mlir_op *op) {
  emitter *e = b->e;
  const weft_mlir_block *body = weft_mlir_op_block(op, 0);
  c_type c;
  if (!emit_type(op->operands[0]->type, &c)) return emit_refuse(e, op, NULL, "the type of the bounds has no C type");
  bool wide = weft_mlir_attribute_of(op, "unsignedCmp") != NULL;
  uint32_t lower = op->operands[0]->mark, upper = op->operands[1]->mark, step = op->operands[2]->mark,
           n = b->temporaries++;
  emit_line(e, "if (WEFT_DF_NEVER(v%u %s 0)) %s;", step,
            wide ? "==" : "<=", emit_fault(e, op, weft_fault_text(WEFT_FAULT_STEP)));
  emit_moves(b, op, 3, body->arguments + 1, op->result_count);
  emit_line(e, "v%u = v%u;", body->arguments[0].mark, lower);
  if (wide && c.odd)
    emit_line(e,
              "for (uint64_t n%u = weft_df_rounds_unsigned(weft_df_mask(%u, (uint64_t)v%u), weft_df_mask(%u, "
              "(uint64_t)v%u), weft_df_mask(%u, (uint64_t)v%u)); n%u; n%u--) {",
              n, c.width, lower, c.width, upper, c.width, step, n, n);
  else if (wide)
    emit_line(e, "for (uint64_t n%u = weft_df_rounds_unsigned((%s)v%u, (%s)v%u, (%s)v%u); n%u; n%u--) {", n,
              c.unsigned_name, lower, c.unsigned_name, upper, c.unsigned_name, step, n, n);
  else
    emit_line(e, "for (uint64_t n%u = weft_df_rounds(v%u, v%u, v%u); n%u; n%u--) {", n, lower, upper, step, n, n);
  e->indent++;
  if (!emit_block(b, body)) return false;
  emit_moves(b, body->last, 0, body->arguments + 1, op->result_count);
  if (c.odd)
    emit_line(e, "v%u = weft_df_wrap(%u, (uint64_t)v%u + (uint64_t)v%u);", body->arguments[0].mark, c.width,
              body->arguments[0].mark, step);
  else
    emit_line(e, "v%u = (%s)((uint64_t)v%u + (uint64_t)v%u);", body->arguments[0].mark, c.name, body->arguments[0].mark,
              step);
  e->indent--;
  emit_line(e, "}");
  for (uint32_t i = 0; i < op->result_count; i++)
    if (has_variable(&op->results[i])) emit_line(e, "v%u = v%u;", op->results[i].mark, body->arguments[i + 1].mark);
  return true;
}

static bool emit_while(body_emitter *b, const weft_mlir_op *op) {
  const weft_mlir_block *before = weft_mlir_op_block(op, 0), *after = weft_mlir_op_block(op, 1);
  emit_moves(b, op, 0, before->arguments, op->operand_count);
  emit_line(b->e, "for (;;) {");
  b->e->indent++;
  if (!emit_block(b, before)) return false;
  emit_line(b->e, "if (!v%u) break;", before->last->operands[0]->mark);
  emit_moves(b, before->last, 1, after->arguments, op->result_count);
  if (!emit_block(b, after)) return false;
  emit_moves(b, after->last, 0, before->arguments, op->operand_count);
  b->e->indent--;
  emit_line(b->e, "}");
  emit_moves(b, before->last, 1, op->results, op->result_count);
  return true;
}

/* ---- threads -------------------------------------------------------------------------------------------------- */

static bool emit_channel(body_emitter *b, const weft_mlir_op *op) {
  c_type c;
  bool send = weft_mlir_code(op) == WEFT_DATAFLOW_CHANNEL_SEND;
  const weft_mlir_value *value = send ? op->operands[1] : &op->results[0];
  char variable[32];
  weft_text text = {0};
  if (!emit_type(value->type, &c) || !c.name) return emit_refuse(b->e, op, NULL, "the payload has no C type");
  snprintf(variable, sizeof variable, "v%u", value->mark);
  if (send) {
    emit_word_text(&c, variable, &text);
    emit_line(b->e, "if (env->send(env, c%u, %s)) %s;", op->operands[0]->mark, text.data,
              emit_fault(b->e, op, "the channel takes nothing any more"));
  } else {
    emit_from_word_text(&c, "word", &text);
    emit_line(b->e, "{");
    emit_line(b->e, "  uint64_t word = 0;");
    emit_line(b->e, "  if (env->receive(env, c%u, &word)) %s;", op->operands[0]->mark,
              emit_fault(b->e, op, "no token comes any more"));
    emit_line(b->e, "  v%u = %s;", value->mark, text.data);
    emit_line(b->e, "}");
  }
  weft_text_free(&text);
  return true;
}

static bool emit_region(body_emitter *b, const weft_mlir_op *op) {
  const weft_mlir_block *body = weft_mlir_op_block(op, 0);
  emit_moves(b, op, 0, body->arguments, op->operand_count);
  if (!emit_block(b, body)) return false;
  emit_moves(b, body->last, 0, op->results, op->result_count);
  return true;
}

static uint32_t segment(const weft_mlir_op *op, const char *name, uint32_t index) {
  return (uint32_t)weft_mlir_dense_integer(weft_mlir_attribute_of(op, name), index);
}

/* A call of the graph's own function, which was emitted under its number in the module. */
static bool emit_launch(body_emitter *b, const weft_mlir_op *op) {
  emitter *e = b->e;
  const char *callee = weft_mlir_attribute_text(op, "callee", "");
  const weft_mlir_op *graph = e->module ? weft_mlir_lookup(e->module, callee) : NULL;
  if (!graph || weft_mlir_code(graph) != WEFT_DATAFLOW_GRAPH)
    return emit_refuse(e, op, NULL, "the callee is no dataflow.graph of this module");
  uint32_t sizes[5], begin[6] = {0};
  for (uint32_t i = 0; i < 5; i++) {
    sizes[i] = segment(op, "operandSegmentSizes", i);
    begin[i + 1] = begin[i] + sizes[i];
  }
  uint32_t values = segment(op, "resultSegmentSizes", 0), memories = segment(op, "resultSegmentSizes", 1);
  emit_line(e, "{");
  e->indent++;
  emit_line(e, "uint64_t in[%u] = {0}, out[%u] = {0};", sizes[1] + 1, values + 1);
  emit_line(e, "weft_df_memory *memory[%u] = {0};", sizes[3] + 1);
  emit_line(e, "uint32_t channel[%u] = {0};", sizes[2] + sizes[4] + 1);
  for (uint32_t i = 0; i < sizes[1]; i++) {
    const weft_mlir_value *value = op->operands[begin[1] + i];
    c_type c;
    char variable[32];
    weft_text text = {0};
    emit_type(value->type, &c);
    snprintf(variable, sizeof variable, "v%u", value->mark);
    emit_word_text(&c, variable, &text);
    emit_line(e, "in[%u] = %s;", i, text.data);
    weft_text_free(&text);
  }
  for (uint32_t i = 0; i < sizes[3]; i++) emit_line(e, "memory[%u] = m%u;", i, op->operands[begin[3] + i]->mark);
  for (uint32_t i = 0; i < sizes[2]; i++) emit_line(e, "channel[%u] = c%u;", i, op->operands[begin[2] + i]->mark);
  for (uint32_t i = 0; i < sizes[4]; i++)
    emit_line(e, "channel[%u] = c%u;", sizes[2] + i, op->operands[begin[4] + i]->mark);
  emit_line(e, "if (entry_%u(env, in, memory, channel, out)) goto failed;", graph->mark);
  for (uint32_t i = 0; i < values; i++) {
    c_type c;
    weft_text text = {0};
    char word[32];
    emit_type(op->results[i].type, &c);
    snprintf(word, sizeof word, "out[%u]", i);
    emit_from_word_text(&c, word, &text);
    emit_line(e, "v%u = %s;", op->results[i].mark, text.data);
    weft_text_free(&text);
  }
  const weft_mlir_op *end = weft_mlir_op_block(graph, 0)->last;
  uint32_t first = segment(end, "operandSegmentSizes", 0) + segment(end, "operandSegmentSizes", 1),
           shift = 1 + segment(graph, "input_segments", 0) + segment(graph, "input_segments", 1);
  for (uint32_t i = 0; i < memories; i++)
    emit_line(e, "m%u = memory[%u];", op->results[values + i].mark, end->operands[first + i]->index - shift);
  e->indent--;
  emit_line(e, "}");
  return true;
}

/* ---- ops ------------------------------------------------------------------------------------------------------ */

static bool emit_constant(body_emitter *b, const weft_mlir_op *op) {
  c_type c;
  const weft_mlir_attribute *value = weft_mlir_attribute_of(op, "value");
  if (!emit_type(op->results[0].type, &c) || !c.name ||
      (value->kind != WEFT_MLIR_INTEGER && value->kind != WEFT_MLIR_FLOAT))
    return emit_refuse(b->e, op, NULL, "the constant's type has no C type");
  weft_text text = {0};
  emit_constant_text(value, &c, &text);
  emit_line(b->e, "v%u = %s;", op->results[0].mark, text.data);
  weft_text_free(&text);
  return true;
}

static void emit_results(body_emitter *b, const weft_mlir_op *end) {
  uint32_t count =
      weft_mlir_code(end) == WEFT_DATAFLOW_GRAPH_RETURN ? segment(end, "operandSegmentSizes", 0) : end->operand_count;
  if (weft_mlir_code(end) == WEFT_DATAFLOW_THREAD_YIELD) count = 0;
  for (uint32_t i = 0; i < count; i++) {
    c_type c;
    char variable[32];
    weft_text text = {0};
    if (!emit_type(end->operands[i]->type, &c)) continue;
    snprintf(variable, sizeof variable, "v%u", end->operands[i]->mark);
    emit_word_text(&c, variable, &text);
    emit_line(b->e, "results[%u] = %s;", i, text.data);
    weft_text_free(&text);
  }
}

static bool emit_op(body_emitter *b, const weft_mlir_op *op) {
  uint32_t code = weft_mlir_code(op);
  bool computing = (code > WEFT_MLIR_NO_CODE && code < WEFT_OP_BUILTIN_MODULE) || code == WEFT_OP_ARITH_CMPI ||
                   code == WEFT_OP_ARITH_CMPF;
  if (computing) return emit_compute(b->e, op, name_value, NULL);
  switch (code) {
  case WEFT_OP_ARITH_CONSTANT: return emit_constant(b, op);
  case WEFT_OP_MEMREF_LOAD: return emit_load(b, op);
  case WEFT_OP_MEMREF_STORE: return emit_store(b, op);
  case WEFT_OP_MEMREF_ALLOC: return emit_alloc(b, op);
  case WEFT_OP_MEMREF_COPY: return emit_copy(b, op);
  case WEFT_OP_MEMREF_CAST: emit_moves(b, op, 0, op->results, 1); return true;
  case WEFT_OP_SCF_IF: return emit_if(b, op);
  case WEFT_OP_SCF_FOR: return emit_for(b, op);
  case WEFT_OP_SCF_WHILE: return emit_while(b, op);
  case WEFT_OP_SCF_INDEX_SWITCH: return emit_switch(b, op);
  case WEFT_OP_SCF_YIELD:
  case WEFT_OP_SCF_CONDITION:
  case WEFT_DATAFLOW_SPATIAL_YIELD: return true;
  case WEFT_DATAFLOW_CHANNEL_SEND:
  case WEFT_DATAFLOW_CHANNEL_RECEIVE: return emit_channel(b, op);
  case WEFT_DATAFLOW_SPATIAL_REGION: return emit_region(b, op);
  case WEFT_DATAFLOW_GRAPH_LAUNCH: return emit_launch(b, op);
  case WEFT_OP_FUNC_RETURN:
  case WEFT_DATAFLOW_GRAPH_RETURN:
  case WEFT_DATAFLOW_THREAD_YIELD: emit_results(b, op); return true;
  default: return emit_refuse(b->e, op, NULL, "it has no meaning in C here");
  }
}

static bool emit_block(body_emitter *b, const weft_mlir_block *block) {
  for (const weft_mlir_op *op = block->first; op; op = op->next)
    if (!emit_op(b, op)) return false;
  return true;
}

/* ---- entries -------------------------------------------------------------------------------------------------- */

static void declare_value(body_emitter *b, const weft_mlir_value *value) {
  if (is_memory(value->type))
    emit_line(b->e, "weft_df_memory *m%u = NULL;", value->mark);
  else if (is_channel(value->type))
    emit_line(b->e, "uint32_t c%u = 0;", value->mark);
  else
    emit_declare(b->e, value);
}

/* Numbers and declares every value of the body; allocations get a buffer each. */
static void declare_all(body_emitter *b) {
  uint32_t marks = 0;
  for (weft_mlir_op *op = weft_mlir_next(b->entry, NULL); op; op = weft_mlir_next(b->entry, op)) {
    for (uint32_t i = 0; op != b->entry && i < op->result_count; i++) {
      op->results[i].mark = marks++;
      declare_value(b, &op->results[i]);
    }
    if (weft_mlir_code(op) == WEFT_OP_MEMREF_ALLOC) emit_line(b->e, "weft_df_memory a%u = {0};", op->results[0].mark);
    for (uint32_t r = 0; r < op->region_count; r++)
      for (weft_mlir_block *block = weft_mlir_op_region(op, r)->first; block; block = block->next)
        for (uint32_t i = 0; i < block->argument_count; i++) {
          block->arguments[i].mark = marks++;
          declare_value(b, &block->arguments[i]);
        }
  }
}

static void take_inputs(body_emitter *b) {
  const weft_mlir_block *body = weft_mlir_op_block(b->entry, 0);
  uint32_t values = 0, memories = 0, channels = 0;
  for (uint32_t i = 0; i < body->argument_count; i++) {
    const weft_mlir_value *argument = &body->arguments[i];
    c_type c;
    char word[32];
    weft_text text = {0};
    if (is_memory(argument->type)) {
      emit_line(b->e, "m%u = memories[%u];", argument->mark, memories++);
    } else if (is_channel(argument->type)) {
      emit_line(b->e, "c%u = channels[%u];", argument->mark, channels++);
    } else if (emit_type(argument->type, &c) && c.name) {
      snprintf(word, sizeof word, "values[%u]", values++);
      emit_from_word_text(&c, word, &text);
      emit_line(b->e, "v%u = %s;", argument->mark, text.data);
    }
    weft_text_free(&text);
  }
}

bool emit_structured(emitter *e, const weft_mlir_op *entry, uint32_t number) {
  body_emitter b = {.e = e, .entry = entry};
  emit_head(e, entry, number);
  e->indent++;
  emit_line(e, "int status = 1;");
  declare_all(&b);
  take_inputs(&b);
  if (!emit_block(&b, weft_mlir_op_block(entry, 0))) return false;
  emit_line(e, "status = 0;");
  emit_line(e, "goto failed;");
  e->indent--;
  emit_line(e, "failed:");
  e->indent++;
  for (const weft_mlir_op *op = weft_mlir_next(entry, NULL); op; op = weft_mlir_next(entry, op))
    if (weft_mlir_code(op) == WEFT_OP_MEMREF_ALLOC)
      emit_line(e, "free(a%u.data), free(a%u.written);", op->results[0].mark, op->results[0].mark);
  emit_line(e, "(void)values, (void)memories, (void)channels, (void)results, (void)env;");
  emit_line(e, "return status;");
  e->indent--;
  emit_line(e, "}");
  weft_text_puts(e->out, "\n");
  return true;
}
