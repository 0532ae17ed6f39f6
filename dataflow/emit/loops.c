/* C loops from a token network that came from structured control. Tokens that only order vanish; ops that hand values
 * on share a variable with what they hand on; what is left is arithmetic, loads and stores in the order that tokens
 * demand. */
#include "frames.h"

#include <stdio.h>

typedef struct loop_emitter {
  emitter *e;
  frames f;
  const lane *open; /* whose if is open, inside the loop being emitted */
} loop_emitter;

static bool is_memory(const weft_mlir_value *value) { return value->type->kind == WEFT_MLIR_MEMREF_TYPE; }
static uint32_t variable(const loop_emitter *b, const weft_mlir_value *value) {
  return frames_alias(&b->f, value)->mark;
}

static void name_value(void *context, const weft_mlir_value *value, char *name, size_t size) {
  snprintf(name, size, "v%u", variable(context, value));
}

/* ---- branches ------------------------------------------------------------------------------------------------- */

static uint32_t lane_depth(const lane *l) {
  uint32_t depth = 0;
  for (; l; l = l->outer) depth++;
  return depth;
}

static void open_lane(loop_emitter *b, const lane *l) {
  uint32_t selector = variable(b, l->selector);
  if (l->selector->type->kind == WEFT_MLIR_INDEX_TYPE)
    emit_line(b->e, "if (v%u == %u) {", selector, l->number);
  else
    emit_line(b->e, "if (%sv%u) {", l->number ? "" : "!", selector);
  b->e->indent++;
}

static void close_lane(loop_emitter *b) {
  b->e->indent--;
  emit_line(b->e, "}");
  b->open = b->open->outer;
}

static void open_from(loop_emitter *b, const lane *shared, const lane *wanted) {
  if (wanted == shared) return;
  open_from(b, shared, wanted->outer);
  open_lane(b, wanted);
}

/* Closes and opens ifs until the next line stands in `wanted`. */
static void go_to_lane(loop_emitter *b, const lane *wanted) {
  const lane *x = b->open, *y = wanted;
  uint32_t dx = lane_depth(x), dy = lane_depth(y);
  for (; dx > dy; dx--) x = x->outer;
  for (; dy > dx; dy--) y = y->outer;
  while (x != y) {
    x = x->outer;
    y = y->outer;
  }
  while (b->open != x) close_lane(b);
  open_from(b, x, wanted);
  b->open = wanted;
}

/* ---- ops ------------------------------------------------------------------------------------------------------ */

static void emit_mux(loop_emitter *b, const weft_mlir_op *op) {
  uint32_t target = op->results[0].mark, selector = variable(b, op->operands[0]);
  if (op->operand_count == 3) {
    emit_line(b->e, "v%u = v%u ? v%u : v%u;", target, selector, variable(b, op->operands[2]),
              variable(b, op->operands[1]));
    return;
  }
  emit_line(b->e, "switch (v%u) {", selector);
  for (uint32_t k = 1; k < op->operand_count; k++)
    emit_line(b->e, "case %u: v%u = v%u; break;", k - 1, target, variable(b, op->operands[k]));
  emit_line(b->e, "default: %s;", emit_fault(b->e, op, weft_fault_text(WEFT_FAULT_LANE)));
  emit_line(b->e, "}");
}

static bool emit_access(loop_emitter *b, const weft_mlir_op *op, bool load) {
  c_type c;
  emitter *e = b->e;
  uint32_t m = op->operands[0]->mark, at = variable(b, op->operands[1]);
  if (op->operands[0]->type->layout || !emit_type(op->operands[0]->type->element, &c) || !c.name)
    return emit_refuse(e, op, NULL, "the memref's type has no C type");
  emit_line(e, "if (WEFT_DF_NEVER((uint64_t)v%u >= m%u->count)) %s;", at, m,
            emit_fault(e, op, weft_fault_text(WEFT_FAULT_BOUNDS)));
  if (load) {
    emit_line(e, "if (WEFT_DF_NEVER(m%u->written && !m%u->written[v%u])) %s;", m, m, at,
              emit_fault(e, op, weft_fault_text(WEFT_FAULT_UNWRITTEN)));
    emit_line(e, "v%u = d%u[v%u];", op->results[0].mark, m, at);
  } else {
    emit_line(e, "if (m%u->written) m%u->written[v%u] = 1;", m, m, at);
    emit_line(e, "d%u[v%u] = v%u;", m, at, variable(b, op->operands[2]));
  }
  return true;
}

static bool has_value(const weft_mlir_op *op) {
  return op->result_count && op->results[0].type->kind != WEFT_MLIR_NONE_TYPE;
}

static bool emit_op(loop_emitter *b, const weft_mlir_op *op, const lane *at) {
  uint32_t code = weft_mlir_code(op);
  bool computing = (code > WEFT_MLIR_NO_CODE && code < WEFT_OP_BUILTIN_MODULE) || code == WEFT_OP_ARITH_CMPI ||
                   code == WEFT_OP_ARITH_CMPF;
  bool writes = computing || code == WEFT_DATAFLOW_LOAD || code == WEFT_DATAFLOW_STORE ||
                (code == WEFT_DATAFLOW_MUX && has_value(op));
  if (!writes || (code == WEFT_DATAFLOW_MUX && b->f.values[op->results[0].mark].rate != RATE_PLACE)) return true;
  go_to_lane(b, at);
  if (computing) return emit_compute(b->e, op, name_value, b);
  if (code != WEFT_DATAFLOW_MUX) return emit_access(b, op, code == WEFT_DATAFLOW_LOAD);
  emit_mux(b, op);
  return true;
}

/* ---- loops ---------------------------------------------------------------------------------------------------- */

static bool emit_frame(loop_emitter *b, const frame *loop);

/* The carries of values that a loop hands round. */
static bool is_ring(const weft_mlir_op *op) { return weft_mlir_code(op) == WEFT_DATAFLOW_CARRY && has_value(op); }

static void emit_inits(loop_emitter *b, const frame *loop) {
  for (uint32_t i = 0; i < loop->member_count; i++) {
    const weft_mlir_op *op = b->f.ops[loop->members[i]];
    if (is_ring(op)) emit_line(b->e, "v%u = v%u;", op->results[0].mark, variable(b, op->operands[1]));
  }
}

/* All next values are read before any is written. */
static void emit_round_end(loop_emitter *b, const frame *loop) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < loop->member_count; i++) count += is_ring(b->f.ops[loop->members[i]]);
  if (count > 1) emit_line(b->e, "{");
  for (uint32_t i = 0; i < loop->member_count && count > 1; i++) {
    const weft_mlir_op *op = b->f.ops[loop->members[i]];
    c_type c;
    if (is_ring(op) && emit_type(op->results[0].type, &c))
      emit_line(b->e, "  %s t%u = v%u;", c.name, op->results[0].mark, variable(b, op->operands[2]));
  }
  for (uint32_t i = 0; i < loop->member_count; i++) {
    const weft_mlir_op *op = b->f.ops[loop->members[i]];
    if (is_ring(op) && count > 1)
      emit_line(b->e, "  v%u = t%u;", op->results[0].mark, op->results[0].mark);
    else if (is_ring(op))
      emit_line(b->e, "v%u = v%u;", op->results[0].mark, variable(b, op->operands[2]));
  }
  if (count > 1) emit_line(b->e, "}");
}

static bool emit_body(loop_emitter *b, const frame *loop) {
  const lane *outside = b->open;
  b->open = NULL;
  bool good = emit_frame(b, loop);
  go_to_lane(b, NULL);
  b->open = outside;
  return good;
}

static bool emit_for(loop_emitter *b, const frame *loop) {
  emitter *e = b->e;
  const weft_mlir_op *op = loop->stream;
  c_type c;
  emit_type(op->results[0].type, &c);
  bool wide = strcmp(weft_mlir_attribute_text(op, "cont_cond", "slt"), "ult") == 0;
  uint32_t i = op->results[0].mark, n = op->results[1].mark, lower = variable(b, op->operands[0]),
           upper = variable(b, op->operands[1]), step = variable(b, op->operands[2]);
  emit_line(e, "if (WEFT_DF_NEVER(v%u %s 0)) %s;", step,
            wide ? "==" : "<=", emit_fault(e, op, weft_fault_text(WEFT_FAULT_STEP)));
  emit_inits(b, loop);
  emit_line(e, "v%u = v%u;", i, lower);
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
  if (!emit_body(b, loop)) return false;
  emit_round_end(b, loop);
  if (c.odd)
    emit_line(e, "v%u = weft_df_wrap(%u, (uint64_t)v%u + (uint64_t)v%u);", i, c.width, i, step);
  else
    emit_line(e, "v%u = (%s)((uint64_t)v%u + (uint64_t)v%u);", i, c.name, i, step);
  e->indent--;
  emit_line(e, "}");
  return true;
}

static bool emit_while(loop_emitter *b, const frame *loop) {
  emitter *e = b->e;
  emit_inits(b, loop);
  emit_line(e, "for (;;) {");
  e->indent++;
  if (!emit_body(b, loop)) return false;
  emit_line(e, "if (!v%u) break;", variable(b, loop->selector));
  emit_round_end(b, loop);
  e->indent--;
  emit_line(e, "}");
  return true;
}

static bool emit_frame(loop_emitter *b, const frame *at) {
  for (uint32_t i = 0; i < at->order_count; i++) {
    uint32_t node = at->order[i];
    if (node < b->f.op_count) {
      if (!emit_op(b, b->f.ops[node], b->f.op_lanes[node])) return false;
      continue;
    }
    const frame *loop = b->f.list[node - b->f.op_count];
    go_to_lane(b, loop->guard);
    if (!(loop->kind == FRAME_FOR ? emit_for(b, loop) : emit_while(b, loop))) return false;
  }
  return true;
}

/* ---- the function --------------------------------------------------------------------------------------------- */

static const weft_mlir_attribute *literal(const weft_mlir_op *op) {
  uint32_t code = weft_mlir_code(op);
  return code == WEFT_OP_ARITH_CONSTANT   ? weft_mlir_attribute_of(op, "value")
         : code == WEFT_DATAFLOW_CONSTANT ? weft_mlir_attribute_of(op, "const_value")
                                          : NULL;
}

/* The phase of a stream has no variable: the count of rounds stands for it. */
static bool is_phase_result(const weft_mlir_value *value) {
  return weft_mlir_code(value->owner) == WEFT_DATAFLOW_STREAM && value->index == 1;
}

static bool declare_op(loop_emitter *b, const weft_mlir_op *op) {
  emitter *e = b->e;
  c_type c;
  const weft_mlir_attribute *value = literal(op);
  if (value) {
    weft_text text = {0};
    if (!emit_type(op->results[0].type, &c) || !c.name)
      return emit_refuse(e, op, NULL, "the constant's type has no C type");
    emit_constant_text(value, &c, &text);
    emit_line(e, "const %s v%u = %s;", c.name, op->results[0].mark, text.data);
    weft_text_free(&text);
    return true;
  }
  for (uint32_t i = 0; i < op->result_count; i++)
    if (!is_memory(&op->results[i]) && !b->f.values[op->results[i].mark].alias &&
        b->f.values[op->results[i].mark].rate != RATE_RETIRE && !is_phase_result(&op->results[i]))
      emit_declare(e, &op->results[i]);
  return true;
}

/* A memory and its data in the element's own type. */
static bool declare_memory(loop_emitter *b, const weft_mlir_op *at, const weft_mlir_value *memory, const char *from) {
  c_type c;
  if (!emit_type(memory->type->element, &c) || !c.name)
    return emit_refuse(b->e, at, NULL, "the element type has no C type");
  emit_line(b->e, "weft_df_memory *m%u = %s;", memory->mark, from);
  emit_line(b->e, "%s *d%u = m%u->data;", c.name, memory->mark, memory->mark);
  return true;
}

static bool declare_memories(loop_emitter *b) {
  const weft_mlir_block *body = weft_mlir_op_block(b->f.graph, 0);
  char from[64];
  uint32_t memories = 0;
  if (!emit_allocations(b->e, b->f.graph)) return false;
  for (uint32_t i = 0; i < body->argument_count; i++) {
    if (!is_memory(&body->arguments[i])) continue;
    snprintf(from, sizeof from, "memories[%u]", memories++);
    if (!declare_memory(b, b->f.graph, &body->arguments[i], from)) return false;
  }
  for (const weft_mlir_op *op = body->first; op; op = op->next) {
    uint32_t code = weft_mlir_code(op);
    if (code == WEFT_OP_MEMREF_CAST) snprintf(from, sizeof from, "m%u", op->operands[0]->mark);
    if (code == WEFT_OP_MEMREF_ALLOC) snprintf(from, sizeof from, "&a%u", op->results[0].mark);
    if ((code == WEFT_OP_MEMREF_CAST || code == WEFT_OP_MEMREF_ALLOC) && !declare_memory(b, op, &op->results[0], from))
      return false;
  }
  return true;
}

static void declare_inputs(loop_emitter *b) {
  const weft_mlir_block *body = weft_mlir_op_block(b->f.graph, 0);
  uint32_t values = 0;
  for (uint32_t i = 1; i < body->argument_count; i++) {
    c_type c;
    char word[32];
    weft_text text = {0};
    if (is_memory(&body->arguments[i]) || !emit_type(body->arguments[i].type, &c) || !c.name) continue;
    snprintf(word, sizeof word, "values[%u]", values++);
    emit_from_word_text(&c, word, &text);
    emit_line(b->e, "const %s v%u = %s;", c.name, body->arguments[i].mark, text.data);
    weft_text_free(&text);
  }
}

static void emit_results(loop_emitter *b) {
  const weft_mlir_op *end = weft_mlir_op_block(b->f.graph, 0)->last;
  int64_t count = weft_mlir_dense_integer(weft_mlir_attribute_of(end, "operandSegmentSizes"), 0);
  for (uint32_t i = 0; i < count; i++) {
    c_type c;
    char name[32];
    weft_text text = {0};
    emit_type(end->operands[i]->type, &c);
    name_value(b, end->operands[i], name, sizeof name);
    emit_word_text(&c, name, &text);
    emit_line(b->e, "results[%u] = %s;", i, text.data);
    weft_text_free(&text);
  }
}

static void emit_frees(loop_emitter *b) {
  for (uint32_t i = 0; i < b->f.op_count; i++)
    if (weft_mlir_code(b->f.ops[i]) == WEFT_OP_MEMREF_ALLOC)
      emit_line(b->e, "free(a%u.data), free(a%u.written);", b->f.ops[i]->results[0].mark, b->f.ops[i]->results[0].mark);
}

static bool has_streams(const weft_mlir_op *graph) {
  return weft_mlir_dense_integer(weft_mlir_attribute_of(graph, "input_segments"), 1) ||
         weft_mlir_dense_integer(weft_mlir_attribute_of(graph, "result_segments"), 1);
}

bool emit_loops(emitter *e, const weft_mlir_op *graph, uint32_t number, bool *possible) {
  loop_emitter b = {.e = e, .f = {.e = e, .graph = graph}};
  *possible = !has_streams(graph) && frames_find(&b.f) && frames_order(&b.f);
  if (!*possible) return false;
  emit_head(e, graph, number);
  e->indent++;
  emit_line(e, "int status = 1;");
  declare_inputs(&b);
  for (uint32_t i = 0; i < b.f.op_count; i++)
    if (!declare_op(&b, b.f.ops[i])) return false;
  if (!declare_memories(&b) || !emit_frame(&b, b.f.list[0])) return false;
  go_to_lane(&b, NULL);
  emit_results(&b);
  emit_line(e, "status = 0;");
  emit_line(e, "goto failed;");
  e->indent--;
  emit_line(e, "failed:");
  e->indent++;
  emit_frees(&b);
  emit_line(e, "(void)values, (void)memories, (void)channels, (void)results, (void)env;");
  emit_line(e, "return status;");
  e->indent--;
  emit_line(e, "}");
  weft_text_puts(e->out, "\n");
  return e->status == WEFT_OK;
}
