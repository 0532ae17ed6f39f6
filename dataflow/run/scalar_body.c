/* Loop-free graphs as cells of the integer datapath: 64 bits, wrapping. A value of w bits is held sign-extended, i1 as
 * 0 or 1, and cut to w bits where an op may have left them. A branch is computed on both sides and selected. */
#include "weft/scalar_body.h"

#include "compute.h"

#include <inttypes.h>
#include <string.h>

typedef struct builder {
  weft_arena *arena;
  const char *file;
  weft_diag *diag;
  weft_status status;
  weft_cell *cells;
  uint64_t count, capacity;
  weft_src *sources; /* of values, by mark */
  bool *known;
  const weft_mlir_op *now;
} builder;

static weft_src refuse(builder *b, const weft_mlir_op *op, const char *hint, const char *why) {
  if (b->status == WEFT_OK)
    b->status = weft_error_at(b->diag, WEFT_INVALID, weft_mlir_place(b->file, op), hint, "no cell for %s: %s",
                              op->name->text, why);
  return (weft_src){.kind = WEFT_SRC_CONST};
}

static weft_src literal(int64_t value) { return (weft_src){.kind = WEFT_SRC_CONST, .constant = value}; }

static weft_src cell(builder *b, weft_cell_op op, weft_src x, weft_src y, const weft_src *z) {
  if (b->status != WEFT_OK) return x;
  if (!weft_arena_grow(b->arena, &b->cells, b->count, &b->capacity, sizeof *b->cells)) {
    b->status = weft_error_memory(b->diag);
    return x;
  }
  b->cells[b->count] = (weft_cell){.op = op, .a = x, .b = y, .has_c = z != NULL};
  if (z) b->cells[b->count].c = *z;
  return (weft_src){.kind = WEFT_SRC_CELL, .index = b->count++};
}

static weft_src two(builder *b, weft_cell_op op, weft_src x, weft_src y) { return cell(b, op, x, y, NULL); }

static weft_src choose(builder *b, weft_src condition, weft_src yes, weft_src no) {
  return cell(b, WEFT_CELL_SELECT, condition, yes, &no);
}

/* ---- widths -------------------------------------------------------------------------------------------------------
 */

static uint32_t width_of(builder *b, const weft_mlir_value *value) {
  scalar s;
  if (!scalar_of(value->type, &s) || s.kind == SCALAR_FLOAT) {
    refuse(b, b->now, "cells compute with integers", "a value is no integer");
    return 64;
  }
  return s.kind == SCALAR_NONE ? 1 : s.width;
}

static weft_src cut(builder *b, uint32_t width, weft_src x) {
  if (width >= 64) return x;
  if (width == 1) return two(b, WEFT_CELL_AND, x, literal(1));
  return two(b, WEFT_CELL_ASHR, two(b, WEFT_CELL_SHL, x, literal(64 - width)), literal(64 - width));
}

static weft_src as_unsigned(builder *b, uint32_t width, weft_src x) {
  if (width == 1 || width >= 64) return x;
  return two(b, WEFT_CELL_AND, x, literal((int64_t)((UINT64_C(1) << width) - 1)));
}

static weft_src as_signed(builder *b, uint32_t width, weft_src x) {
  return width == 1 ? two(b, WEFT_CELL_SUB, literal(0), x) : x;
}

/* x < y; where all 64 bits are in use, unsigned numbers are compared with their sign bits turned. */
static weft_src less(builder *b, uint32_t width, bool is_signed, weft_src x, weft_src y) {
  if (is_signed) return two(b, WEFT_CELL_LT, as_signed(b, width, x), as_signed(b, width, y));
  if (width < 64) return two(b, WEFT_CELL_LT, as_unsigned(b, width, x), as_unsigned(b, width, y));
  return two(b, WEFT_CELL_LT, two(b, WEFT_CELL_XOR, x, literal(INT64_MIN)),
             two(b, WEFT_CELL_XOR, y, literal(INT64_MIN)));
}

static weft_src negated(builder *b, weft_src x) { return two(b, WEFT_CELL_XOR, x, literal(1)); }

/* ---- ops ----------------------------------------------------------------------------------------------------------
 */

static weft_src operand(builder *b, uint32_t i) {
  const weft_mlir_value *value = b->now->operands[i];
  if (!b->known[value->mark]) return refuse(b, b->now, "loops have no cells", "an operand comes from a ring, or later");
  return b->sources[value->mark];
}

static weft_src compare(builder *b, weft_src x, weft_src y) {
  uint32_t w = width_of(b, b->now->operands[0]);
  switch ((weft_mlir_cmpi)weft_mlir_attribute_integer(b->now, "predicate", 0)) {
  case WEFT_CMPI_eq: return two(b, WEFT_CELL_EQ, x, y);
  case WEFT_CMPI_ne: return negated(b, two(b, WEFT_CELL_EQ, x, y));
  case WEFT_CMPI_slt: return less(b, w, true, x, y);
  case WEFT_CMPI_sle: return negated(b, less(b, w, true, y, x));
  case WEFT_CMPI_sgt: return less(b, w, true, y, x);
  case WEFT_CMPI_sge: return negated(b, less(b, w, true, x, y));
  case WEFT_CMPI_ult: return less(b, w, false, x, y);
  case WEFT_CMPI_ule: return negated(b, less(b, w, false, y, x));
  case WEFT_CMPI_ugt: return less(b, w, false, y, x);
  case WEFT_CMPI_uge: return negated(b, less(b, w, false, x, y));
  case WEFT_CMPI_COUNT: break;
  }
  return refuse(b, b->now, NULL, "its predicate is unknown");
}

static weft_src shift(builder *b, uint32_t code, uint32_t w, weft_src x, weft_src by) {
  if (by.kind != WEFT_SRC_CONST || by.constant < 0 || by.constant >= w)
    return refuse(b, b->now, "shift by a constant", "the amount is no constant below the width");
  if (code == WEFT_OP_ARITH_SHLI) return cut(b, w, two(b, WEFT_CELL_SHL, x, by));
  if (code == WEFT_OP_ARITH_SHRSI) return w == 1 ? x : two(b, WEFT_CELL_ASHR, x, by);
  return by.constant == 0 ? x : two(b, WEFT_CELL_LSHR, as_unsigned(b, w, x), by);
}

static weft_src arithmetic(builder *b, uint32_t code) {
  weft_src x = operand(b, 0), y = b->now->operand_count > 1 ? operand(b, 1) : x;
  uint32_t from = width_of(b, b->now->operands[0]), to = width_of(b, &b->now->results[0]);
  if (b->status != WEFT_OK) return x;
  switch (code) {
  case WEFT_OP_ARITH_ADDI: return cut(b, to, two(b, WEFT_CELL_ADD, x, y));
  case WEFT_OP_ARITH_SUBI: return cut(b, to, two(b, WEFT_CELL_SUB, x, y));
  case WEFT_OP_ARITH_MULI: return cut(b, to, two(b, WEFT_CELL_MUL, x, y));
  case WEFT_OP_ARITH_ANDI: return two(b, WEFT_CELL_AND, x, y);
  case WEFT_OP_ARITH_ORI: return two(b, WEFT_CELL_OR, x, y);
  case WEFT_OP_ARITH_XORI: return two(b, WEFT_CELL_XOR, x, y);
  case WEFT_OP_ARITH_SHLI:
  case WEFT_OP_ARITH_SHRSI:
  case WEFT_OP_ARITH_SHRUI: return shift(b, code, from, x, y);
  case WEFT_OP_ARITH_MAXSI: return choose(b, less(b, from, true, x, y), y, x);
  case WEFT_OP_ARITH_MINSI: return choose(b, less(b, from, true, x, y), x, y);
  case WEFT_OP_ARITH_MAXUI: return choose(b, less(b, from, false, x, y), y, x);
  case WEFT_OP_ARITH_MINUI: return choose(b, less(b, from, false, x, y), x, y);
  case WEFT_OP_ARITH_CMPI: return compare(b, x, y);
  case WEFT_OP_ARITH_SELECT: return choose(b, x, y, operand(b, 2));
  case WEFT_OP_ARITH_EXTUI:
  case WEFT_OP_ARITH_INDEX_CASTUI: return to > from ? as_unsigned(b, from, x) : cut(b, to, x);
  case WEFT_OP_ARITH_EXTSI: return as_signed(b, from, x);
  case WEFT_OP_ARITH_INDEX_CAST: return to > from ? as_signed(b, from, x) : cut(b, to, x);
  case WEFT_OP_ARITH_TRUNCI: return cut(b, to, x);
  case WEFT_OP_ARITH_BITCAST: return x;
  default: return refuse(b, b->now, NULL, "the datapath does not compute it");
  }
}

static weft_src constant(builder *b, const char *name) {
  uint64_t word;
  width_of(b, &b->now->results[0]);
  if (!compute_constant(weft_mlir_attribute_of(b->now, name), &word)) return refuse(b, b->now, NULL, "it is no number");
  return literal((int64_t)word);
}

/* The lanes one after the other: the last one is what remains. An index beyond them is a fault elsewhere. */
static weft_src mux(builder *b) {
  weft_src selector = operand(b, 0), chosen = operand(b, b->now->operand_count - 1);
  if (b->now->results[0].type->kind == WEFT_MLIR_NONE_TYPE) return literal(0);
  if (b->now->operand_count == 3) return choose(b, selector, chosen, operand(b, 1));
  for (uint32_t lane = b->now->operand_count - 2; lane-- > 0;)
    chosen = choose(b, two(b, WEFT_CELL_EQ, selector, literal(lane)), operand(b, lane + 1), chosen);
  return chosen;
}

static void set(builder *b, uint32_t result, weft_src source) {
  b->sources[b->now->results[result].mark] = source;
  b->known[b->now->results[result].mark] = true;
}

static void add(builder *b, const weft_mlir_op *op) {
  uint32_t code = weft_mlir_code(op);
  b->now = op;
  switch (code) {
  case WEFT_OP_ARITH_CONSTANT: set(b, 0, constant(b, "value")); return;
  case WEFT_DATAFLOW_CONSTANT: set(b, 0, constant(b, "const_value")); return;
  case WEFT_DATAFLOW_MUX: set(b, 0, mux(b)); return;
  case WEFT_DATAFLOW_SYNC:
    for (uint32_t i = 0; i < op->result_count; i++) set(b, i, operand(b, i));
    return;
  case WEFT_DATAFLOW_DEMUX:
    for (uint32_t i = 0; i < op->result_count; i++) set(b, i, operand(b, 1));
    return;
  default:
    if (op->region_count)
      refuse(b, op, "lower the graph first", "it is structured control");
    else if (compute_is(op))
      set(b, 0, arithmetic(b, code));
    else
      refuse(b, op, "loops, memory and channels have no cells", "it is no arithmetic");
  }
}

/* ---- entries ------------------------------------------------------------------------------------------------------
 */

static bool prepare(builder *b, weft_mlir_op *entry, uint64_t *inputs) {
  weft_mlir_block *body = weft_mlir_op_block(entry, 0);
  uint32_t marks = 0, first = weft_mlir_code(entry) == WEFT_DATAFLOW_GRAPH;
  const weft_mlir_type *type = weft_mlir_function_type(entry);
  const weft_mlir_attribute *segments = weft_mlir_attribute_of(entry, "input_segments");
  b->now = entry;
  if ((weft_mlir_code(entry) != WEFT_OP_FUNC_FUNC && !first) || !body || body->next) {
    refuse(b, entry, "name a graph or a function", "it has no body of one block");
    return false;
  }
  for (uint32_t i = 0; i < body->argument_count; i++) body->arguments[i].mark = marks++;
  for (weft_mlir_op *op = body->first; op; op = op->next)
    for (uint32_t i = 0; i < op->result_count; i++) op->results[i].mark = marks++;
  b->sources = WEFT_NEW_ARRAY(b->arena, weft_src, marks);
  b->known = WEFT_NEW_ARRAY(b->arena, bool, marks);
  if (!b->sources || !b->known) {
    b->status = weft_error_memory(b->diag);
    return false;
  }
  *inputs = segments ? (uint64_t)weft_mlir_dense_integer(segments, 0) : type->input_count;
  for (uint32_t i = 0; i < body->argument_count; i++) {
    bool value = i >= first && i - first < *inputs;
    b->known[i] = value || i < first; /* the start is a token without a word */
    b->sources[i] = value ? (weft_src){.kind = WEFT_SRC_INPUT, .index = i - first} : literal(0);
    if (value) width_of(b, &body->arguments[i]);
  }
  return b->status == WEFT_OK;
}

weft_status weft_scalar_body_of(weft_mlir_op *entry, const char *file, weft_arena *arena, weft_scalar_body *body,
                                weft_diag *diag) {
  builder b = {.arena = arena, .file = file, .diag = diag};
  uint64_t inputs = 0;
  if (!prepare(&b, entry, &inputs)) return b.status;
  const weft_mlir_op *end = weft_mlir_op_block(entry, 0)->last;
  for (const weft_mlir_op *op = weft_mlir_op_block(entry, 0)->first; op != end && b.status == WEFT_OK; op = op->next)
    add(&b, op);
  const weft_mlir_attribute *segments = weft_mlir_attribute_of(end, "operandSegmentSizes");
  uint64_t values = segments ? (uint64_t)weft_mlir_dense_integer(segments, 0) : end->operand_count;
  b.now = end;
  if (b.status == WEFT_OK && (values != 1 || weft_mlir_function_type(entry)->result_count != 1))
    refuse(&b, end, NULL, "a Scalar body has one result");
  weft_src result = b.status == WEFT_OK ? operand(&b, 0) : literal(0);
  if (b.status == WEFT_OK) width_of(&b, end->operands[0]);
  *body = (weft_scalar_body){.n_in = inputs, .cells = b.cells, .cell_count = b.count, .result = result};
  return b.status;
}

static void put_source(const char *name, const weft_src *source, weft_text *text) {
  static const char *const kinds[] = {[WEFT_SRC_INPUT] = "Input", [WEFT_SRC_CELL] = "Cell", [WEFT_SRC_CONST] = "Const"};
  weft_text_printf(text, "\"%s\": {\"%s\": ", name, kinds[source->kind]);
  if (source->kind == WEFT_SRC_CONST)
    weft_text_printf(text, "%" PRId64 "}", source->constant);
  else
    weft_text_printf(text, "%" PRIu64 "}", source->index);
}

void weft_scalar_body_to_text(const weft_scalar_body *body, weft_text *text) {
  static const char *const names[] = {
#define NAME(id, name) name,
      WEFT_CELL_OPS(NAME)
#undef NAME
  };
  weft_text_printf(text, "{\"Scalar\": {\"n_in\": %" PRIu64 ", \"cells\": [", body->n_in);
  for (uint64_t i = 0; i < body->cell_count; i++) {
    const weft_cell *c = &body->cells[i];
    weft_text_printf(text, "%s\n  {\"op\": \"%s\", ", i ? "," : "", names[c->op]);
    put_source("a", &c->a, text);
    weft_text_puts(text, ", ");
    put_source("b", &c->b, text);
    weft_text_puts(text, ", ");
    if (c->has_c)
      put_source("c", &c->c, text);
    else
      weft_text_puts(text, "\"c\": null");
    weft_text_puts(text, "}");
  }
  weft_text_puts(text, "], ");
  put_source("result", &body->result, text);
  weft_text_puts(text, "}}\n");
}
