/* weft_graph_check: what must hold of a graph as a whole. */
#include "graph_private.h"

#include <stdlib.h>
#include <string.h>

static weft_status check_value(const weft_graph *graph, uint32_t id, weft_diag *diag) {
  const weft_value *value = &graph->values[id];
  weft_status status = weft_value_check(graph, id, diag);
  if (status != WEFT_OK) return status;
  if (value->chip >= graph->chips)
    return weft_error(diag, WEFT_INVALID, NULL, "value '%s' is on chip %u of %u", value->name, value->chip,
                      graph->chips);
  bool source = weft_value_is_given(value);
  if (source && value->producer != WEFT_NONE)
    return weft_error(diag, WEFT_INVALID, NULL, "value '%s' is a source and has a producer", value->name);
  if (!source && value->producer == WEFT_NONE)
    return weft_error(diag, WEFT_INVALID, NULL, "value '%s' has no producer", value->name);
  if (!source && (value->producer >= graph->op_count || graph->ops[value->producer].out != id))
    return weft_error(diag, WEFT_INVALID, NULL, "value '%s' is not the result of its producer", value->name);
  // A chip's own graph receives the partial results of other chips as inputs.
  if (value->has_partial && value->role != WEFT_ROLE_ACTIVATION && value->role != WEFT_ROLE_INPUT)
    return weft_error(diag, WEFT_INVALID, "reduce it first", "'%s' is partial and cannot be %s", value->name,
                      weft_tensor_role_name(value->role));
  return WEFT_OK;
}

static weft_status check_factors(const weft_graph *graph, const weft_graph_op *op, weft_diag *diag) {
  const weft_value *out = &graph->values[op->out];
  bool fine = op->factor_count <= WEFT_MAX_FACTORS;
  for (uint32_t d = 0; fine && d < out->rank; d++) {
    uint8_t factor = op->out_factors[d];
    fine = factor == WEFT_NO_FACTOR ? out->extents[d] == 1
                                    : factor < op->factor_count && op->factors[factor].extent == out->extents[d];
  }
  bool blocks = op->kind == WEFT_GRAPH_SLICE || op->kind == WEFT_GRAPH_ASSEMBLE;
  for (uint32_t i = 0; fine && i < op->in_count; i++) {
    const weft_value *in = &graph->values[op->ins[i]];
    for (uint32_t d = 0; fine && d < in->rank; d++) {
      uint8_t factor = op->in_factors[i][d];
      fine = factor == WEFT_NO_FACTOR ? blocks || in->extents[d] == 1
                                      : factor < op->factor_count && op->factors[factor].extent == in->extents[d];
    }
  }
  if (fine) return WEFT_OK;
  return weft_error(diag, WEFT_INVALID, NULL, "%s '%s': its factors do not agree with the extents",
                    weft_graph_op_name(op->kind), op->name);
}

static weft_status check_op(const weft_graph *graph, uint32_t id, weft_diag *diag) {
  const weft_graph_op *op = &graph->ops[id];
  weft_status status = weft_op_check(graph, op, diag);
  if (status != WEFT_OK) return status;
  for (uint32_t i = 0; i < op->in_count; i++) {
    uint32_t producer = graph->values[op->ins[i]].producer;
    if (producer == WEFT_NONE) continue;
    if (producer >= id)
      return weft_error(diag, WEFT_INVALID, NULL, "%s '%s' stands before the producer of '%s'",
                        weft_graph_op_name(op->kind), op->name, graph->values[op->ins[i]].name);
    if (graph->ops[producer].section > op->section)
      return weft_error(diag, WEFT_INVALID, NULL, "%s '%s' of section '%s' reads '%s' of the later section '%s'",
                        weft_graph_op_name(op->kind), op->name, graph->section_names[op->section],
                        graph->values[op->ins[i]].name, graph->section_names[graph->ops[producer].section]);
  }
  return check_factors(graph, op, diag);
}

/** By value of a state: who updates it, and the last section that reads it as it was. */
typedef struct state_use {
  uint32_t update;  /**< 1 + the op */
  uint32_t section; /**< 1 + the section */
} state_use;

static weft_status check_state_reads(const weft_graph *graph, const weft_graph_op *op, state_use *uses,
                                     weft_diag *diag) {
  for (uint32_t j = 0; j < op->in_count; j++) {
    state_use *use = &uses[op->ins[j]];
    if (use->update)
      return weft_error(diag, WEFT_INVALID, "read it before, or read what the update leaves",
                        "%s '%s' reads the state '%s' as it was before '%s' updates it", weft_graph_op_name(op->kind),
                        op->name, graph->values[op->ins[j]].name, graph->ops[use->update - 1].name);
    if (op->section + 1 > use->section) use->section = op->section + 1;
  }
  return WEFT_OK;
}

/** What reads a state as the step finds it stands before what updates it, and there is one update at most. */
static weft_status check_states(const weft_graph *graph, weft_diag *diag) {
  state_use *uses = calloc(graph->value_count + 1, sizeof *uses);
  if (!uses) return weft_error_memory(diag);
  weft_status status = WEFT_OK;
  for (uint32_t i = 0; i < graph->op_count && status == WEFT_OK; i++) {
    const weft_graph_op *op = &graph->ops[i];
    const weft_value *out = &graph->values[op->out];
    status = check_state_reads(graph, op, uses, diag);
    if (!out->updates || status != WEFT_OK) continue;
    state_use *use = &uses[out->updates - 1];
    const char *name = graph->values[out->updates - 1].name;
    if (use->update) status = weft_error(diag, WEFT_INVALID, NULL, "the state '%s' is updated twice", name);
    if (use->section > op->section + 1)
      status = weft_error(diag, WEFT_INVALID, "update it in the last section that reads it, or later",
                          "'%s' updates the state '%s', which a later section reads as it was", op->name, name);
    use->update = i + 1;
  }
  free(uses);
  return status;
}

static int by_chip_and_name(const void *a, const void *b) {
  const weft_value *const *x = a, *const *y = b;
  if ((*x)->chip != (*y)->chip) return (*x)->chip < (*y)->chip ? -1 : 1;
  return strcmp((*x)->name, (*y)->name);
}

static weft_status check_names(const weft_graph *graph, weft_diag *diag) {
  const weft_value **named = calloc(graph->value_count + 1, sizeof *named);
  if (!named) return weft_error_memory(diag);
  uint64_t count = 0;
  for (uint64_t i = 0; i < graph->value_count; i++)
    if (graph->values[i].role != WEFT_ROLE_ACTIVATION && !graph->values[i].updates) named[count++] = &graph->values[i];
  for (uint64_t i = 0; i < count; i++) {
    const char *name = named[i]->has_shard ? named[i]->shard.of : named[i]->name;
    bool written = named[i]->role == WEFT_ROLE_OUTPUT || named[i]->role == WEFT_ROLE_STATE;
    const char *fault = written ? weft_dataset_name_fault(name) : NULL;
    if (!fault) continue;
    free(named);
    return weft_error(diag, WEFT_INVALID, fault, "'%s' is no name for a dataset: no file could hold the result", name);
  }
  qsort(named, count, sizeof *named, by_chip_and_name);
  weft_status status = WEFT_OK;
  for (uint64_t i = 1; i < count && status == WEFT_OK; i++)
    if (by_chip_and_name(&named[i - 1], &named[i]) == 0)
      status = weft_error(diag, WEFT_INVALID, "rename one of them", "two inputs, parameters or outputs are called '%s'",
                          named[i]->name);
  free(named);
  return status;
}

weft_status weft_graph_check(const weft_graph *graph, weft_diag *diag) {
  if (graph->failed) { // what failed has been said where it failed
    if (diag != graph->diag || !weft_diag_errors(diag))
      weft_error(diag, WEFT_INVALID, NULL, "graph '%s' was not built: an earlier call failed", graph->name);
    return weft_graph_failure(graph);
  }
  if (graph->chips < 1 || graph->chips > UINT16_MAX)
    return weft_error(diag, WEFT_INVALID, NULL, "graph '%s' is for %u chips; 1 to %d are possible", graph->name,
                      graph->chips, UINT16_MAX);
  for (uint64_t i = 0; i < graph->value_count; i++) {
    weft_status status = check_value(graph, (uint32_t)i, diag);
    if (status != WEFT_OK) return status;
  }
  for (uint64_t i = 0; i < graph->op_count; i++) {
    weft_status status = check_op(graph, (uint32_t)i, diag);
    if (status != WEFT_OK) return status;
  }
  weft_status status = check_states(graph, diag);
  return status == WEFT_OK ? check_names(graph, diag) : status;
}
