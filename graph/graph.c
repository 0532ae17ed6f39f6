/* The op graph's container: appending sections, values and ops, copying. */
#include "graph_private.h"

#include <string.h>

const char *weft_graph_op_name(weft_graph_op_kind kind) {
#define ROW(id, name, least, most) name,
  static const char *const names[] = { WEFT_GRAPH_OPS(ROW) };
#undef ROW
  return kind < WEFT_GRAPH_OP_COUNT ? names[kind] : "?";
}

weft_status weft_graph_error(weft_graph *graph, const char *hint, const char *format, ...) {
  graph->failed = true;
  weft_text text = {0};
  va_list arguments;
  va_start(arguments, format);
  weft_text_vprintf(&text, format, arguments);
  va_end(arguments);
  if (text.failed) graph->out_of_memory = true;
  weft_status status = text.failed ? weft_error_memory(graph->diag)
                                   : weft_error(graph->diag, WEFT_INVALID, hint, "%s", text.data ? text.data : "");
  weft_text_free(&text);
  return status;
}

weft_status weft_graph_failure(const weft_graph *graph) {
  return graph->out_of_memory ? WEFT_UNAVAILABLE : WEFT_INVALID;
}

static uint32_t out_of_memory(weft_graph *graph) {
  graph->failed = graph->out_of_memory = true;
  weft_error_memory(graph->diag);
  return WEFT_NONE;
}

weft_graph *weft_graph_new(const char *name, weft_diag *diag) {
  weft_arena *arena = weft_arena_new();
  if (!arena) return NULL;
  weft_graph *graph = WEFT_NEW(arena, weft_graph);
  char *copy = weft_arena_string(arena, name, strlen(name));
  if (!graph || !copy) {
    weft_arena_free(arena);
    return NULL;
  }
  *graph = (weft_graph){.arena = arena, .name = copy, .chips = 1, .diag = diag};
  return graph;
}

void weft_graph_free(weft_graph *graph) {
  if (graph) weft_arena_free(graph->arena);
}

void weft_graph_section(weft_graph *graph, const char *name) {
  if (graph->section_count == UINT32_MAX) {
    weft_graph_error(graph, NULL, "too many sections");
    return;
  }
  const char *copy = weft_arena_string(graph->arena, name, strlen(name));
  if (!copy || !weft_arena_grow(graph->arena, &graph->section_names, graph->section_count, &graph->section_capacity,
                                sizeof *graph->section_names)) {
    out_of_memory(graph);
    return;
  }
  graph->section_names[graph->section_count++] = copy;
}

uint32_t weft_graph_add_value(weft_graph *graph, const weft_value *value) {
  if (graph->value_count >= WEFT_NONE) {
    weft_graph_error(graph, NULL, "too many values");
    return WEFT_NONE;
  }
  if (!weft_arena_grow(graph->arena, &graph->values, graph->value_count, &graph->value_capacity, sizeof *graph->values))
    return out_of_memory(graph);
  weft_value *copy = &graph->values[graph->value_count];
  *copy = *value;
  copy->producer = WEFT_NONE;
  copy->name = weft_arena_string(graph->arena, value->name, strlen(value->name));
  if (value->has_shard) copy->shard.of = weft_arena_string(graph->arena, value->shard.of, strlen(value->shard.of));
  if (!copy->name || (value->has_shard && !copy->shard.of)) return out_of_memory(graph);
  uint32_t id = (uint32_t)graph->value_count++;
  if (weft_value_check(graph, id, graph->diag) == WEFT_OK) return id;
  graph->failed = true;
  graph->value_count--;
  return WEFT_NONE;
}

static bool copy_op(weft_arena *arena, weft_graph_op *op, uint32_t rows) {
  uint32_t *ins = WEFT_NEW_ARRAY(arena, uint32_t, op->in_count);
  op->name = weft_arena_string(arena, op->name, strlen(op->name));
  if (!ins || !op->name) return false;
  if (op->in_count) memcpy(ins, op->ins, op->in_count * sizeof *ins);
  op->ins = ins;
  if (op->in_factors) {
    uint8_t(*maps)[WEFT_MAX_RANK] = weft_arena_array(arena, op->in_count, sizeof *maps);
    if (!maps) return false;
    memcpy(maps, op->in_factors, op->in_count * sizeof *maps);
    op->in_factors = (const uint8_t(*)[WEFT_MAX_RANK])maps;
  }
  if (rows) {
    uint64_t(*starts)[WEFT_MAX_RANK] = weft_arena_array(arena, rows, sizeof *starts);
    if (!starts) return false;
    memcpy(starts, op->starts, rows * sizeof *starts);
    op->starts = (const uint64_t(*)[WEFT_MAX_RANK])starts;
  } else {
    op->starts = NULL;
  }
  if (op->kind == WEFT_GRAPH_POINTWISE || op->kind == WEFT_GRAPH_REDUCE) op->body = weft_body_copy(arena, &op->body);
  return !weft_arena_failed(arena);
}

uint32_t weft_graph_add_op(weft_graph *graph, const weft_graph_op *op) {
  if (graph->op_count >= WEFT_NONE) {
    weft_graph_error(graph, NULL, "too many ops");
    return WEFT_NONE;
  }
  weft_status status = weft_op_check(graph, op, graph->diag);
  if (status != WEFT_OK) {
    graph->failed = true;
    graph->out_of_memory = graph->out_of_memory || status == WEFT_UNAVAILABLE;
    return WEFT_NONE;
  }
  if (graph->values[op->out].producer != WEFT_NONE) {
    weft_graph_error(graph, NULL, "op '%s': value '%s' already has a producer", op->name, graph->values[op->out].name);
    return WEFT_NONE;
  }
  if (!weft_arena_grow(graph->arena, &graph->ops, graph->op_count, &graph->op_capacity, sizeof *graph->ops))
    return out_of_memory(graph);
  weft_graph_op *copy = &graph->ops[graph->op_count];
  *copy = *op;
  uint32_t rows = op->kind == WEFT_GRAPH_SLICE ? 1 : op->kind == WEFT_GRAPH_ASSEMBLE ? op->in_count : 0;
  if (!copy_op(graph->arena, copy, rows)) return out_of_memory(graph);
  if (!copy->factor_count && !weft_graph_factors(graph, copy)) return out_of_memory(graph);
  graph->values[op->out].producer = (uint32_t)graph->op_count;
  return (uint32_t)graph->op_count++;
}

uint32_t weft_value_source(const weft_graph *graph, uint32_t value) {
  return graph->values[value].updates ? graph->values[value].updates - 1 : value;
}

weft_graph *weft_graph_clone(const weft_graph *graph, weft_diag *diag) {
  weft_graph *copy = weft_graph_new(graph->name, diag);
  if (!copy) {
    weft_error_memory(diag);
    return NULL;
  }
  copy->chips = graph->chips;
  for (uint32_t i = 0; i < graph->section_count; i++) weft_graph_section(copy, graph->section_names[i]);
  for (uint64_t i = 0; i < graph->value_count; i++) weft_graph_add_value(copy, &graph->values[i]);
  for (uint64_t i = 0; i < graph->op_count && !copy->failed; i++) weft_graph_add_op(copy, &graph->ops[i]);
  if (!copy->failed) return copy;
  weft_graph_free(copy);
  return NULL;
}
