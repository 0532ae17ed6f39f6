/* What must hold of every lowered graph, whatever it came from, and whether a source lies in the domain of the while
 * postcondition, outside of which that postcondition rejects right lowerings. */
#include "lower_private.h"

static weft_status wrong(const weft_mlir_op *op, const char *file, weft_diag *diag, const char *why) {
  return weft_error_at(diag, WEFT_INVALID, weft_mlir_place(file, op), NULL, "%s: %s", op->name->text, why);
}

/* Marks every value from which a completion can be reached: a walk back from the completions. */
static bool mark_reaching(const weft_mlir_op *graph, weft_arena *scratch) {
  const weft_mlir_block *body = weft_mlir_op_block(graph, 0);
  uint64_t count = 0, top = 0;
  for (uint32_t i = 0; i < body->argument_count; i++) body->arguments[i].mark = 0;
  for (weft_mlir_op *op = body->first; op; op = op->next, count++)
    for (uint32_t i = 0; i < op->result_count; i++) op->results[i].mark = 0;
  for (weft_mlir_op *op = body->first; op; op = op->next) op->mark = 0;
  weft_mlir_op **stack = WEFT_NEW_ARRAY(scratch, weft_mlir_op *, count + 1);
  if (!stack) return false;
  const weft_mlir_op *end = body->last;
  uint32_t complete = (uint32_t)weft_mlir_dense_integer(weft_mlir_attribute_of(end, "operandSegmentSizes"), 3);
  stack[top++] = (weft_mlir_op *)end;
  while (top) {
    weft_mlir_op *op = stack[--top];
    for (uint32_t i = op == end ? op->operand_count - complete : 0; i < op->operand_count; i++) {
      op->operands[i]->mark = 1;
      weft_mlir_op *definition = weft_mlir_defining_op(op->operands[i]);
      if (!definition || definition->mark) continue;
      definition->mark = 1;
      stack[top++] = definition;
    }
  }
  return true;
}

static weft_status check_graph(const weft_mlir_op *graph, const char *file, weft_arena *scratch, weft_diag *diag) {
  if (!lower_is_token_graph(graph)) {
    for (const weft_mlir_op *op = weft_mlir_op_block(graph, 0)->first; op; op = op->next)
      if (op->region_count || strncmp(op->name->text, "memref.", 7) == 0 || strncmp(op->name->text, "scf.", 4) == 0)
        return wrong(op, file, diag, "a structured op is left");
    return wrong(graph, file, diag, "it holds more than token ops");
  }
  if (!mark_reaching(graph, scratch)) return weft_error_memory(diag);
  for (const weft_mlir_op *op = weft_mlir_op_block(graph, 0)->first; op; op = op->next) {
    uint32_t code = weft_mlir_code(op);
    bool access = code == WEFT_DATAFLOW_LOAD || code == WEFT_DATAFLOW_STORE;
    if (access && !op->results[op->result_count - 1].mark)
      return wrong(op, file, diag, "the completion does not wait for this access");
  }
  return WEFT_OK;
}

weft_status weft_lowering_check(weft_mlir_op *module, const char *file, weft_diag *diag) {
  weft_arena *scratch = weft_arena_new();
  if (!scratch) return weft_error_memory(diag);
  weft_status status = weft_mlir_verify(module, file, diag);
  for (weft_mlir_op *op = weft_mlir_next(module, NULL); status == WEFT_OK && op; op = weft_mlir_next(module, op)) {
    if (weft_mlir_code(op) == WEFT_DATAFLOW_SPATIAL_REGION)
      status = wrong(op, file, diag, "the region was not published");
    if (status == WEFT_OK && weft_mlir_code(op) == WEFT_DATAFLOW_GRAPH) status = check_graph(op, file, scratch, diag);
  }
  weft_arena_free(scratch);
  return status;
}

/* ---- the domain of the while postcondition ------------------------------------------------------------------------
 */

static bool used(const weft_mlir_op *graph, const weft_mlir_value *value) {
  for (const weft_mlir_op *op = weft_mlir_next(graph, NULL); op; op = weft_mlir_next(graph, op))
    for (uint32_t i = 0; i < op->operand_count; i++)
      if (op->operands[i] == value) return true;
  return false;
}

/* One while at the top and no other control; loads from one memory input, stores to the other; a load in `before`;
 * every lane is used after the loop and in `after`. */
static bool graph_in_domain(const weft_mlir_op *graph) {
  const weft_mlir_block *body = weft_mlir_op_block(graph, 0);
  const weft_mlir_op *loop = NULL;
  for (const weft_mlir_op *op = weft_mlir_next(graph, NULL); op; op = weft_mlir_next(graph, op)) {
    uint32_t code = weft_mlir_code(op);
    if (op != graph && op->region_count && (code != WEFT_OP_SCF_WHILE || loop || op->block != body)) return false;
    if (code == WEFT_OP_SCF_WHILE) loop = op;
    if (code == WEFT_OP_MEMREF_LOAD && op->operands[0] != &body->arguments[body->argument_count - 2]) return false;
    if (code == WEFT_OP_MEMREF_STORE && op->operands[1] != &body->arguments[body->argument_count - 1]) return false;
    if (code == WEFT_OP_MEMREF_ALLOC || code == WEFT_OP_MEMREF_COPY || code == WEFT_OP_MEMREF_CAST) return false;
  }
  if (!loop || loop->operand_count != loop->result_count) return false;
  const weft_mlir_block *after = weft_mlir_op_block(loop, 1);
  for (uint32_t i = 0; i < loop->result_count; i++)
    if (!used(graph, &loop->results[i]) || !used(graph, &after->arguments[i])) return false;
  for (const weft_mlir_op *op = weft_mlir_op_block(loop, 0)->first; op; op = op->next)
    if (weft_mlir_code(op) == WEFT_OP_MEMREF_LOAD) return true;
  return false;
}

bool weft_lowering_in_while_domain(const weft_mlir_op *module) {
  bool any = false;
  for (const weft_mlir_op *op = weft_mlir_op_block(module, 0)->first; op; op = op->next) {
    const weft_mlir_attribute *segments = weft_mlir_attribute_of(op, "input_segments");
    if (weft_mlir_code(op) != WEFT_DATAFLOW_GRAPH || weft_mlir_dense_integer(segments, 2) != 2 || !graph_in_domain(op))
      return false;
    any = true;
  }
  return any;
}
