/* Steps of one chip: sections as calls of the runtime's operations, links, all-reduces. */
#include "emit_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CHAIN = 16 };

/** What one section function is made of. */
typedef struct section_body {
  weft_text text;
  uint32_t tables; /**< names of tables that were given out */
  double flops;
} section_body;

static const weft_value *value_at(const weft_chip_code *code, uint32_t value) { return &code->graph->values[value]; }

static int64_t slot_of_value(weft_chip_code *code, uint32_t value) { return weft_codegen_value_slot(code, value); }

/** A tensor that the section reads or writes, as its function names it: s[N]. */
static uint64_t read_slot(weft_chip_code *code, int64_t slot) {
  weft_codegen_slots_add(&code->reads, slot);
  return weft_codegen_slots_add(&code->all, slot);
}

static uint64_t read_value(weft_chip_code *code, uint32_t value) { return read_slot(code, slot_of_value(code, value)); }

static uint64_t write_value(weft_chip_code *code, uint32_t value) {
  int64_t slot = slot_of_value(code, value);
  weft_codegen_slots_add(&code->writes, slot);
  return weft_codegen_slots_add(&code->all, slot);
}

static void named_extent(weft_chip_code *code, weft_text *text, const char *field, uint64_t value) {
  weft_text_printf(text, ", .%s = ", field);
  weft_codegen_extent(code, text, value);
}

static void named_scalar(weft_chip_code *code, weft_text *text, const char *field, uint64_t value) {
  weft_text_printf(text, ", .%s = ", field);
  weft_codegen_scalar(code, text, (int64_t)value);
}

/* ---- chains of epilogues
 * ---------------------------------------------------------------------------------------------- */

static bool is_epilogue(weft_graph_op_kind kind) {
  return kind == WEFT_GRAPH_BIAS || kind == WEFT_GRAPH_RELU || kind == WEFT_GRAPH_REQUANT || kind == WEFT_GRAPH_CLAMP;
}

/** The only op of the same section that reads `value`, when it is an epilogue of it and the value has no tensor of its
 * own. */
static uint32_t next_in_chain(const weft_chip_code *code, uint32_t op) {
  const weft_graph *graph = code->graph;
  uint32_t value = graph->ops[op].out, found = WEFT_NONE;
  if (code->tensor_of_value[value] != WEFT_NONE) return WEFT_NONE;
  for (uint64_t i = op + 1; i < graph->op_count && graph->ops[i].section == graph->ops[op].section; i++)
    for (uint32_t k = 0; k < graph->ops[i].in_count; k++) {
      if (graph->ops[i].ins[k] != value) continue;
      if (found != WEFT_NONE || k != 0 || !is_epilogue(graph->ops[i].kind)) return WEFT_NONE;
      found = (uint32_t)i;
    }
  return found;
}

static uint32_t collect_chain(const weft_chip_code *code, uint32_t op, uint32_t *chain, uint32_t *last) {
  uint32_t count = 0;
  *last = op;
  for (uint32_t next = next_in_chain(code, op); next != WEFT_NONE && count < MAX_CHAIN;
       next = next_in_chain(code, *last)) {
    chain[count++] = next;
    *last = next;
  }
  return count;
}

void weft_codegen_epilogue(weft_chip_code *code, weft_text *text, const char *indent, const uint32_t *chain,
                           uint32_t chain_count) {
  if (chain_count == 0) return;
  weft_text_printf(text, ",\n%s.epilogue_count = %" PRIu32 ", .epilogue = (const weft_abi_epilogue[]){", indent,
                   chain_count);
  for (uint32_t i = 0; i < chain_count; i++) {
    const weft_graph_op *op = &code->graph->ops[chain[i]];
    if (i) weft_text_puts(text, ", ");
    const char *bits = i + 1 < chain_count && value_at(code, op->out)->dtype == WEFT_INT32 ? ", .bits = 32" : "";
    switch (op->kind) {
    case WEFT_GRAPH_BIAS:
      if (code->inside)
        weft_text_printf(text, "{.kind = WEFT_EPILOGUE_BIAS, .operand = s[%" PRIu64 "]%s}",
                         read_value(code, op->ins[1]), bits);
      else
        weft_text_printf(text, "{.kind = WEFT_EPILOGUE_BIAS, .operand = %" PRId64 "%s}",
                         slot_of_value(code, op->ins[1]), bits);
      break;
    case WEFT_GRAPH_RELU: weft_text_printf(text, "{.kind = WEFT_EPILOGUE_RELU%s}", bits); break;
    case WEFT_GRAPH_REQUANT:
      weft_text_printf(text, "{.kind = WEFT_EPILOGUE_REQUANT, .m = INT64_C(%" PRId64 "), .s = %" PRIu32 "%s}", op->m,
                       op->s, bits);
      break;
    default:
      weft_text_printf(text, "{.kind = WEFT_EPILOGUE_CLAMP, .m = INT64_C(%" PRId64 "), .s = INT64_C(%" PRId64 ")%s}",
                       op->low, op->high, bits);
    }
  }
  weft_text_puts(text, "}");
}

static void chain_comment(weft_chip_code *code, weft_text *text, uint32_t op, const uint32_t *chain, uint32_t count) {
  weft_text_puts(text, "  /* ");
  weft_codegen_name(code, text, code->graph->ops[op].name);
  for (uint32_t i = 0; i < count; i++) {
    weft_text_puts(text, ", ");
    weft_codegen_name(code, text, code->graph->ops[chain[i]].name);
  }
  weft_text_puts(text, " */\n");
}

static void op_comment(weft_chip_code *code, section_body *body, uint32_t op) {
  chain_comment(code, &body->text, op, NULL, 0);
}

/* ---- operations
 * ----------------------------------------------------------------------------------------------------------- */

static void plane(const weft_value *value, uint64_t *rows, uint64_t *cols) {
  weft_plane_extents(value->rank, value->extents, rows, cols);
}

static void emit_product(weft_chip_code *code, section_body *body, uint32_t index, const uint32_t *chain,
                         uint32_t count, uint32_t last) {
  const weft_graph_op *op = &code->graph->ops[index];
  uint64_t m, k, n, rows;
  plane(value_at(code, op->ins[0]), &m, &k);
  plane(value_at(code, op->ins[1]), &rows, &n);
  weft_text *text = &body->text;
  chain_comment(code, text, index, chain, count);
  uint64_t a = read_value(code, op->ins[0]), b = read_value(code, op->ins[1]);
  uint64_t out = write_value(code, code->graph->ops[last].out);
  weft_text_printf(text,
                   "  weft_product(chip, &(const weft_abi_product){.a = s[%" PRIu64 "], .b = s[%" PRIu64
                   "], .out = s[%" PRIu64 "]",
                   a, b, out);
  named_extent(code, text, "m", m);
  named_extent(code, text, "n", n);
  named_extent(code, text, "k", k);
  weft_text_printf(text, ", .acc = %d /* %s */", (int)op->acc, weft_acc_policy_name(op->acc));
  named_extent(code, text, "segments", op->segments);
  if (op->in_count > 2) weft_text_printf(text, ", .position = s[%" PRIu64 "] + 1", read_value(code, op->ins[2]));
  weft_codegen_epilogue(code, text, "      ", chain, count);
  weft_text_puts(text, "});\n");
  body->flops += 2.0 * (double)m * (double)n * (double)k;
}

/** One block that a slice or an assembly moves. */
typedef struct block_copy {
  int64_t from;
  uint64_t from_at[2], to_at[2], rows, cols;
} block_copy;

/** By source: equal chips then list their own block and those they receive in one order, wherever the blocks go. */
static int compare_copy(const void *a, const void *b) {
  const block_copy *x = a, *y = b;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  for (int i = 0; i < 2; i++)
    if (x->to_at[i] != y->to_at[i]) return x->to_at[i] < y->to_at[i] ? -1 : 1;
  return 0;
}

static void copy_row(weft_chip_code *code, weft_text *text, const block_copy *copy, uint64_t to) {
  weft_text_printf(text, "{.from = s[%" PRIu64 "], .to = s[%" PRIu64 "]", read_slot(code, copy->from), to);
  named_extent(code, text, "rows", copy->rows);
  named_extent(code, text, "cols", copy->cols);
  named_scalar(code, text, "from_row", copy->from_at[0]);
  named_scalar(code, text, "from_col", copy->from_at[1]);
  named_scalar(code, text, "to_row", copy->to_at[0]);
  named_scalar(code, text, "to_col", copy->to_at[1]);
  weft_text_puts(text, "}");
}

/** A block's place in the plane of a value: dimensions but the last fold into rows, so blocks of values of rank above
 * two must be whole in all leading dimensions but the first. */
static bool plane_start(weft_chip_code *code, const weft_graph_op *op, const weft_value *whole, const weft_value *block,
                        const uint64_t *starts, uint64_t at[2]) {
  at[0] = at[1] = 0;
  if (whole->rank == 0) return true;
  uint64_t inner = 1;
  for (uint32_t d = whole->rank - 1; d-- > 1;) {
    if (whole->extents[d] != block->extents[d]) {
      code->status =
          weft_error(code->diag, WEFT_INVALID, NULL,
                     "'%s': a block cut in dimension %u of a rank-%u value is not supported", op->name, d, whole->rank);
      return false;
    }
    inner *= whole->extents[d];
  }
  at[1] = starts[whole->rank - 1];
  if (whole->rank > 1) at[0] = starts[0] * inner;
  return true;
}

/** The slice that gives a value which no tensor holds: those who copy it take the block from where it is. */
static const weft_graph_op *folded_slice(const weft_chip_code *code, uint32_t value) {
  uint32_t producer = value_at(code, value)->producer;
  if (producer == WEFT_NONE || code->tensor_of_value[value] != WEFT_NONE) return NULL;
  const weft_graph_op *op = &code->graph->ops[producer];
  return op->kind == WEFT_GRAPH_SLICE ? op : NULL;
}

static bool copy_of(weft_chip_code *code, const weft_graph_op *op, uint32_t i, block_copy *copy) {
  const weft_value *in = value_at(code, op->ins[i]), *result = value_at(code, op->out);
  bool slice = op->kind == WEFT_GRAPH_SLICE;
  const weft_graph_op *folded = folded_slice(code, op->ins[i]);
  const weft_value *whole = slice ? in : result, *block = slice ? result : in;
  *copy = (block_copy){.from = slot_of_value(code, folded ? folded->ins[0] : op->ins[i])};
  plane(block, &copy->rows, &copy->cols);
  if (folded && !plane_start(code, folded, value_at(code, folded->ins[0]), in, folded->starts[0], copy->from_at))
    return false;
  return plane_start(code, op, whole, block, op->starts[i], slice ? copy->from_at : copy->to_at);
}

/** Whether the blocks are whole tensors that the section has not named before: they stand side by side in its list. */
static bool is_assembly(weft_chip_code *code, const weft_graph_op *op, const block_copy *copies) {
  if (op->kind != WEFT_GRAPH_ASSEMBLE || op->in_count < 2) return false;
  for (uint32_t i = 0; i < op->in_count; i++) {
    if (folded_slice(code, op->ins[i]) || (i && copies[i].from == copies[i - 1].from)) return false;
    if (weft_codegen_slots_have(&code->all, copies[i].from)) return false;
  }
  return true;
}

static void emit_assembly(weft_chip_code *code, weft_text *text, const block_copy *copies, uint32_t count,
                          uint32_t out) {
  int64_t *at[2] = {WEFT_NEW_ARRAY(code->arena, int64_t, count), WEFT_NEW_ARRAY(code->arena, int64_t, count)};
  if (!at[0] || !at[1]) {
    code->status = weft_error_memory(code->diag);
    return;
  }
  static const char *const names[2] = {"row", "col"};
  bool used[2] = {false, false}, ring = true;
  const uint64_t from = read_slot(code, copies[0].from);
  for (uint32_t i = 0; i < count; i++) {
    read_slot(code, copies[i].from);
    for (int d = 0; d < 2; d++) {
      at[d][i] = (int64_t)copies[i].to_at[d];
      used[d] |= at[d][i] != 0;
    }
  }
  for (int d = 0; d < 2; d++) ring &= !used[d] || weft_codegen_is_ring(at[d], count, WEFT_NO_LAST);
  weft_text_printf(text,
                   "  weft_assemble(chip, &(const weft_abi_assemble){.from = s + %" PRIu64 ", .count = %" PRIu32
                   ", .to = s[%" PRIu64 "]",
                   from, count, write_value(code, out));
  if (ring) weft_text_puts(text, ", .ring = 1");
  for (int d = 0; d < 2; d++) {
    if (!used[d]) continue;
    weft_text_printf(text, ", .%s = ", names[d]);
    weft_codegen_series(code, text, at[d], count, WEFT_NO_LAST, ring);
  }
  weft_text_puts(text, "});\n");
}

static void emit_copies(weft_chip_code *code, section_body *body, const weft_graph_op *op) {
  weft_text *text = &body->text;
  block_copy *copies = WEFT_NEW_ARRAY(code->arena, block_copy, op->in_count);
  if (!copies) {
    code->status = weft_error_memory(code->diag);
    return;
  }
  for (uint32_t i = 0; i < op->in_count; i++)
    if (!copy_of(code, op, i, &copies[i])) return;
  qsort(copies, op->in_count, sizeof *copies, compare_copy);
  op_comment(code, body, (uint32_t)(op - code->graph->ops));
  if (is_assembly(code, op, copies)) {
    emit_assembly(code, text, copies, op->in_count, op->out);
    return;
  }
  const bool one = op->in_count == 1;
  weft_text_puts(text,
                 one ? "  weft_copy(chip, &(const weft_abi_copy)" : "  weft_copy(chip, (const weft_abi_copy[]){\n");
  uint64_t out = write_value(code, op->out);
  for (uint32_t i = 0; i < op->in_count; i++) {
    if (!one) weft_text_puts(text, "      ");
    copy_row(code, text, &copies[i], out);
    if (!one) weft_text_puts(text, ",\n");
  }
  weft_text_printf(text, one ? ", %" PRIu32 ");\n" : "  }, %" PRIu32 ");\n", op->in_count);
}

static void node_row(weft_chip_code *code, weft_text *text, const weft_body_node *node) {
  weft_text_printf(text, "      {.kind = %d", (int)node->kind);
  if (node->kind == WEFT_BODY_UNARY)
    weft_text_printf(text, ", .sfpu = %d, .eps_nano = %" PRIu64 "u, .over = %" PRIu64 "u", (int)node->sfpu,
                     node->eps_nano, node->over);
  bool select = node->kind == WEFT_BODY_SELECT;
  if (select)
    weft_text_printf(text, ", .var = %" PRIu32 ", .ge = %d, .operand_bound = %d", node->pred.var, node->pred.ge,
                     node->pred.operand_bound);
  weft_text_printf(text, ", .child = {%" PRIu32 ", %" PRIu32 ", %" PRIu32 "}, .value = ", node->child[0],
                   node->child[1], node->child[2]);
  if (select && !node->pred.operand_bound)
    weft_codegen_scalar(code, text, (int64_t)node->pred.bound);
  else
    weft_text_printf(text, "%" PRIu64 "u", select ? node->pred.bound : node->value);
  weft_text_puts(text, "},\n");
}

/** The body of a pointwise op, or of an epilogue that follows nothing it could be fused into. */
static weft_body body_of(const weft_graph_op *op, weft_body_node nodes[8]) {
  if (op->kind == WEFT_GRAPH_POINTWISE) return op->body;
  memset(nodes, 0, 8 * sizeof *nodes);
  double low = op->kind == WEFT_GRAPH_RELU ? 0.0 : (double)op->low, high = (double)op->high, m = (double)op->m;
  nodes[0].kind = WEFT_BODY_OPERAND;
  nodes[1].kind = WEFT_BODY_CONST;
  nodes[2].child[0] = 0;
  nodes[2].child[1] = 1;
  switch (op->kind) {
  case WEFT_GRAPH_BIAS:
    nodes[1] = (weft_body_node){.kind = WEFT_BODY_OPERAND, .value = 1};
    nodes[2].kind = WEFT_BODY_ADD;
    return (weft_body){nodes, 3};
  case WEFT_GRAPH_REQUANT:
    memcpy(&nodes[1].value, &m, sizeof m);
    nodes[2].kind = WEFT_BODY_MUL;
    nodes[3] = (weft_body_node){.kind = WEFT_BODY_SHR, .child = {2}, .value = op->s};
    return (weft_body){nodes, 4};
  case WEFT_GRAPH_CLAMP:
    memcpy(&nodes[1].value, &low, sizeof low);
    nodes[2].kind = WEFT_BODY_MAX;
    nodes[3].kind = WEFT_BODY_CONST;
    memcpy(&nodes[3].value, &high, sizeof high);
    nodes[4] = (weft_body_node){.kind = WEFT_BODY_MIN, .child = {2, 3}};
    return (weft_body){nodes, 5};
  default: /* RELU */
    memcpy(&nodes[1].value, &low, sizeof low);
    nodes[2].kind = WEFT_BODY_MAX;
    return (weft_body){nodes, 3};
  }
}

/** One operand over the rows x cols positions of the body. */
static void operand_row(weft_chip_code *code, section_body *body, const weft_graph_op *op, uint32_t i, uint64_t rows,
                        uint64_t cols) {
  const weft_value *in = value_at(code, op->ins[i]);
  uint64_t in_rows, in_cols;
  plane(in, &in_rows, &in_cols);
  if ((in_rows != rows && in_rows != 1) || (in_cols != cols && in_cols != 1)) {
    code->status = weft_error(code->diag, WEFT_INVALID, NULL,
                              "'%s': operand '%s' broadcasts along an inner dimension, which is not supported",
                              op->name, in->name);
    return;
  }
  weft_text_printf(&body->text, "      {.tensor = s[%" PRIu64 "]", read_value(code, op->ins[i]));
  named_extent(code, &body->text, "row_stride", in_rows == rows && rows > 1 ? in_cols : 0);
  weft_text_printf(&body->text, ", .col_stride = %d},\n", in_cols == cols && cols > 1 ? 1 : 0);
}

/** Tables of operands and nodes of a body over rows x cols, under the number that is returned. Nodes are on the stack
 * where a bound may be the chip's own. */
static uint32_t emit_body(weft_chip_code *code, section_body *body, uint32_t index, const weft_body *expression,
                          uint64_t rows, uint64_t cols) {
  const weft_graph_op *op = &code->graph->ops[index];
  const uint32_t table = body->tables++;
  op_comment(code, body, index);
  weft_text_printf(&body->text, "  const weft_abi_operand operands_%" PRIu32 "[] = {\n", table);
  for (uint32_t i = 0; i < op->in_count; i++) operand_row(code, body, op, i, rows, cols);
  bool positions = false;
  for (uint64_t i = 0; i < expression->node_count; i++) positions |= expression->nodes[i].kind == WEFT_BODY_SELECT;
  weft_text_printf(&body->text, "  };\n  %sconst weft_abi_node nodes_%" PRIu32 "[] = {\n", positions ? "" : "static ",
                   table);
  for (uint64_t i = 0; i < expression->node_count; i++) node_row(code, &body->text, &expression->nodes[i]);
  weft_text_puts(&body->text, "  };\n");
  body->flops += (double)rows * (double)cols;
  return table;
}

static void emit_pointwise(weft_chip_code *code, section_body *body, uint32_t index) {
  const weft_graph_op *op = &code->graph->ops[index];
  weft_body_node nodes[8];
  weft_body expression = body_of(op, nodes);
  uint64_t rows, cols;
  plane(value_at(code, op->out), &rows, &cols);
  uint32_t table = emit_body(code, body, index, &expression, rows, cols);
  weft_text_printf(&body->text,
                   "  weft_pointwise(chip, &(const weft_abi_pointwise){.out = s[%" PRIu64 "], .operand_count = %" PRIu32
                   ", .operands = operands_%" PRIu32 ", .node_count = %" PRIu64 ", .nodes = nodes_%" PRIu32 "});\n",
                   write_value(code, op->out), op->in_count, table, expression.node_count, table);
}

static uint64_t folded_extent(const weft_graph_op *op) {
  for (uint8_t f = 0; f < op->factor_count; f++)
    if (op->factors[f].reduce) return op->factors[f].extent;
  return 1;
}

static void emit_reduce(weft_chip_code *code, section_body *body, uint32_t index) {
  const weft_graph_op *op = &code->graph->ops[index];
  uint64_t rows, one, cols = folded_extent(op);
  plane(value_at(code, op->out), &rows, &one);
  uint32_t table = emit_body(code, body, index, &op->body, rows, cols);
  weft_text_printf(&body->text, "  weft_reduce(chip, &(const weft_abi_reduce){.out = s[%" PRIu64 "]",
                   write_value(code, op->out));
  named_extent(code, &body->text, "cols", cols);
  weft_text_printf(&body->text, ", .pool = %d /* %s */", (int)op->pool, weft_pool_name(op->pool));
  named_extent(code, &body->text, "segments", op->segments);
  weft_text_printf(&body->text,
                   ", .operand_count = %" PRIu32 ", .operands = operands_%" PRIu32 ", .node_count = %" PRIu64
                   ", .nodes = nodes_%" PRIu32 "});\n",
                   op->in_count, table, op->body.node_count, table);
}

/* ---- moves
 * -------------------------------------------------------------------------------------------------------------------
 */

static void emit_transpose(weft_chip_code *code, section_body *body, uint32_t index) {
  const weft_graph_op *op = &code->graph->ops[index];
  op_comment(code, body, index);
  uint64_t from = read_value(code, op->ins[0]), out = write_value(code, op->out);
  weft_text_printf(&body->text,
                   "  weft_transpose(chip, &(const weft_abi_transpose){.from = s[%" PRIu64 "], .out = s[%" PRIu64
                   "]});\n",
                   from, out);
}

static void emit_gather(weft_chip_code *code, section_body *body, uint32_t index) {
  const weft_graph_op *op = &code->graph->ops[index];
  op_comment(code, body, index);
  uint64_t table = read_value(code, op->ins[0]), ids = read_value(code, op->ins[1]), out = write_value(code, op->out);
  weft_text_printf(&body->text,
                   "  weft_gather(chip, &(const weft_abi_gather){.table = s[%" PRIu64 "], .ids = s[%" PRIu64
                   "], .out = s[%" PRIu64 "], .low = (int64_t)",
                   table, ids, out);
  weft_codegen_scalar(code, &body->text, op->low);
  weft_text_printf(&body->text, ", .high = %" PRId64 "});\n", op->high);
}

static void emit_update(weft_chip_code *code, section_body *body, uint32_t index) {
  const weft_graph_op *op = &code->graph->ops[index];
  op_comment(code, body, index);
  uint64_t x = read_value(code, op->ins[1]), at = read_value(code, op->ins[2]), state = write_value(code, op->out);
  weft_text_printf(&body->text,
                   "  weft_update(chip, &(const weft_abi_update){.state = s[%" PRIu64 "], .x = s[%" PRIu64
                   "], .at = s[%" PRIu64 "], .axis = %d});\n",
                   state, x, at, (int)op->axis);
}

/* ---- sections
 * ---------------------------------------------------------------------------------------------------------------- */

static void flush_section(weft_chip_code *code, section_body *body, uint32_t section) {
  const char *name = section < code->graph->section_count ? code->graph->section_names[section] : code->program->name;
  if (code->inside) weft_codegen_close(code, &body->text, name, body->flops);
  *body = (section_body){0};
}

static void emit_fold(weft_chip_code *code, uint32_t index, const uint32_t *chain, uint32_t count, uint32_t last) {
  const weft_graph_op *op = &code->graph->ops[index];
  const weft_collective *collective = weft_codegen_find_collective(code, op);
  if (collective)
    weft_codegen_all_reduce(code, collective, slot_of_value(code, code->graph->ops[last].out), chain, count, op->name);
}

static void emit_op(weft_chip_code *code, section_body *body, uint32_t section, uint32_t index) {
  const weft_graph_op *op = &code->graph->ops[index];
  uint32_t chain[MAX_CHAIN], last = index, count = 0;
  if (op->kind == WEFT_GRAPH_ALL_REDUCE)
    flush_section(code, body, section);
  else if (!code->inside)
    weft_codegen_open(code);
  switch (op->kind) {
  case WEFT_GRAPH_MATMUL:
    count = collect_chain(code, index, chain, &last);
    emit_product(code, body, index, chain, count, last);
    break;
  case WEFT_GRAPH_ALL_REDUCE:
    count = collect_chain(code, index, chain, &last);
    emit_fold(code, index, chain, count, last);
    break;
  case WEFT_GRAPH_SLICE:
  case WEFT_GRAPH_ASSEMBLE:
    if (!folded_slice(code, op->out)) emit_copies(code, body, op);
    break;
  case WEFT_GRAPH_TRANSPOSE: emit_transpose(code, body, index); break;
  case WEFT_GRAPH_GATHER: emit_gather(code, body, index); break;
  case WEFT_GRAPH_UPDATE: emit_update(code, body, index); break;
  case WEFT_GRAPH_REDUCE: emit_reduce(code, body, index); break;
  default: emit_pointwise(code, body, index);
  }
  for (uint32_t i = 0; i < count; i++) code->fused[chain[i]] = true;
}

void weft_codegen_section(weft_chip_code *code, uint32_t section) {
  section_body body = {0};
  for (uint64_t i = code->op_begin[section]; i < code->op_begin[section + 1] && code->status == WEFT_OK; i++)
    if (!code->fused[i]) emit_op(code, &body, section, (uint32_t)i);
  flush_section(code, &body, section);
}
