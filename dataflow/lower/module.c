/* Lowering a module: every graph and every function with a memory body, all or none. */
#include "lower_private.h"

/* One graph to be replaced. */
typedef struct replacement {
  weft_mlir_op *old, *source; /* the source is the old one, or a copy without memref.copy */
  weft_mlir_op *new;
} replacement;

typedef struct module_lowering {
  lowering l;
  replacement *items;
  uint64_t count, capacity;
} module_lowering;

static bool has_memory_body(const weft_mlir_op *function) {
  for (const weft_mlir_op *op = weft_mlir_next(function, NULL); op; op = weft_mlir_next(function, op)) {
    uint32_t code = weft_mlir_code(op);
    if (code == WEFT_OP_MEMREF_LOAD || code == WEFT_OP_MEMREF_STORE || code == WEFT_OP_MEMREF_COPY) return true;
  }
  return false;
}

static bool collect(module_lowering *m, weft_mlir_op *module) {
  lowering *l = &m->l;
  for (weft_mlir_op *op = weft_mlir_op_block(module, 0)->first; op; op = op->next) {
    uint32_t code = weft_mlir_code(op);
    bool graph = code == WEFT_DATAFLOW_GRAPH && !lower_is_token_graph(op);
    if (!graph && !(code == WEFT_OP_FUNC_FUNC && has_memory_body(op))) continue;
    if (!lower_admit(l, op, false)) return false;
    if (!weft_arena_grow(l->scratch, &m->items, m->count, &m->capacity, sizeof *m->items)) return lower_memory(l);
    m->items[m->count++] = (replacement){.old = op, .source = op};
  }
  return true;
}

/* ---- the new graph's shell ------------------------------------------------------------------------------------- */

/* A function's inputs in a graph's order: values, then memories. position[i] is where input i goes. */
typedef struct input_order {
  uint32_t *position;
  uint32_t values, count;
  bool moved;
} input_order;

static bool order_inputs(lowering *l, const weft_mlir_type *type, input_order *order) {
  order->count = type->input_count;
  order->position = WEFT_NEW_ARRAY(l->scratch, uint32_t, type->input_count);
  if (!order->position) return lower_memory(l);
  for (int memories = 0; memories < 2; memories++)
    for (uint32_t i = 0, at = memories ? order->values : 0; i < type->input_count; i++) {
      if ((type->inputs[i]->kind == WEFT_MLIR_MEMREF_TYPE) != memories) continue;
      order->position[i] = at++;
      if (!memories) order->values = at;
      order->moved |= order->position[i] != i;
    }
  return true;
}

static const weft_mlir_attribute *segments(lowering *l, int64_t values, int64_t streams, int64_t memories) {
  return weft_mlir_dense_array(l->context, 32, (int64_t[]){values, streams, memories}, 3);
}

static void set(lowering *l, weft_mlir_op *op, const char *name, const weft_mlir_attribute *value) {
  if (value) weft_mlir_set(l->context, op, name, value);
}

/* function_type, segments and attributes of the graph that a function becomes. */
static bool function_header(lowering *l, const weft_mlir_op *function, weft_mlir_op *graph, const input_order *order) {
  const weft_mlir_type *type = weft_mlir_function_type(function);
  const weft_mlir_type **inputs = WEFT_NEW_ARRAY(l->scratch, const weft_mlir_type *, order->count);
  const weft_mlir_attribute **attributes = WEFT_NEW_ARRAY(l->scratch, const weft_mlir_attribute *, order->count);
  int64_t *positions = WEFT_NEW_ARRAY(l->scratch, int64_t, order->count);
  if (!inputs || !attributes || !positions) return lower_memory(l);
  const weft_mlir_attribute *given = weft_mlir_attribute_of(function, "arg_attrs");
  for (uint32_t i = 0; i < order->count; i++) {
    inputs[order->position[i]] = type->inputs[i];
    positions[i] = order->position[i];
    if (given) attributes[order->position[i]] = given->as.items[i];
  }
  uint32_t values = 0;
  while (values < type->result_count && type->results[values]->kind != WEFT_MLIR_MEMREF_TYPE) values++;
  const weft_mlir_type *new_type =
      weft_mlir_function(l->context, inputs, order->count, type->results, type->result_count);
  if (!new_type) return lower_memory(l);
  set(l, graph, "sym_name", weft_mlir_attribute_of(function, "sym_name"));
  set(l, graph, "sym_visibility", weft_mlir_attribute_of(function, "sym_visibility"));
  set(l, graph, "function_type", weft_mlir_type_attribute(l->context, new_type));
  set(l, graph, "input_segments", segments(l, order->values, 0, order->count - order->values));
  set(l, graph, "result_segments", segments(l, values, 0, type->result_count - values));
  if (given) set(l, graph, "arg_attrs", weft_mlir_array(l->context, attributes, order->count));
  if (order->moved) set(l, graph, "weft.input_order", weft_mlir_dense_array(l->context, 64, positions, order->count));
  return true;
}

static weft_mlir_op *new_graph(lowering *l, const weft_mlir_op *source) {
  weft_mlir_op_parts parts = {
      .name = l->names.graph, .region_count = 1, .line = source->line, .column = source->column};
  weft_mlir_op *graph = weft_mlir_op_new(l->arena, &parts);
  if (!graph) lower_memory(l);
  return graph;
}

/* The block of the new graph: the start, then the inputs of its function type. */
static weft_mlir_block *new_block(lowering *l, weft_mlir_op *graph) {
  const weft_mlir_type *type = weft_mlir_function_type(graph);
  const weft_mlir_type **types = WEFT_NEW_ARRAY(l->scratch, const weft_mlir_type *, type->input_count + 1);
  if (!types) return NULL;
  types[0] = weft_mlir_none(l->context);
  for (uint32_t i = 0; i < type->input_count; i++) types[i + 1] = type->inputs[i];
  return weft_mlir_block_new(l->arena, weft_mlir_op_region(graph, 0), types, type->input_count + 1);
}

static bool no_alias(const weft_mlir_op *op, uint32_t input) {
  return weft_mlir_argument_attribute(op, input, "llvm.noalias") != NULL;
}

/* ---- one graph -------------------------------------------------------------------------------------------------- */

static bool lower_one(lowering *l, replacement *item) {
  bool function = weft_mlir_code(item->old) == WEFT_OP_FUNC_FUNC;
  input_order order = {.count = 0};
  if (!order_inputs(l, weft_mlir_function_type(item->old), &order) || !(item->new = new_graph(l, item->old)))
    return false;
  if (function) {
    if (!function_header(l, item->old, item->new, &order)) return false;
  } else {
    item->new->properties = item->old->properties;
    item->new->attributes = item->old->attributes;
  }
  set(l, item->new, "weft.lowered", weft_mlir_unit(l->context));
  weft_mlir_block *block = new_block(l, item->new);
  uint32_t count = weft_mlir_op_block(item->source, 0)->argument_count;
  weft_mlir_value **arguments = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, count + 1);
  bool *apart = WEFT_NEW_ARRAY(l->scratch, bool, count + 1);
  if (!block || !arguments || !apart) return lower_memory(l);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t input = function ? i : i - 1; /* among the function type's; of a graph argument 0 is the start */
    arguments[i] = &block->arguments[function ? order.position[i] + 1 : i];
    apart[i] = (function || i) && no_alias(item->old, input);
  }
  lower_job job = {.source = item->source, .shell = item->new, .arguments = arguments, .no_alias = apart};
  job.value_results = (uint32_t)weft_mlir_dense_integer(weft_mlir_attribute_of(item->new, "result_segments"), 0);
  return lower_body(l, &job);
}

static bool lower_all(module_lowering *m, weft_mlir_op *module) {
  lowering *l = &m->l;
  if (!collect(m, module)) return false;
  for (uint64_t i = 0; i < m->count; i++) {
    replacement *item = &m->items[i];
    if (lower_has_copies(item->old)) {
      item->source = weft_mlir_clone(l->arena, item->old);
      if (!item->source || !lower_expand_copies(l->context, l->arena, item->source)) return lower_memory(l);
    }
    if (!lower_one(l, item)) return false;
  }
  for (uint64_t i = 0; i < m->count; i++) {
    weft_mlir_insert(weft_mlir_op_block(module, 0), m->items[i].new, m->items[i].old);
    weft_mlir_remove(m->items[i].old);
  }
  return true;
}

weft_status weft_lower(weft_mlir_context *context, weft_arena *arena, weft_mlir_op *module, const char *file,
                       weft_diag *diag) {
  module_lowering m = {
      .l = {.context = context, .arena = arena, .scratch = weft_arena_new(), .diag = diag, .file = file}};
  if (!m.l.scratch) return weft_error_memory(diag);
  m.l.names.graph = weft_mlir_name(context, "dataflow.graph", 14);
  if (!lower_all(&m, module) && m.l.status == WEFT_OK) m.l.status = weft_error_memory(diag);
  weft_arena_free(m.l.scratch);
  return m.l.status;
}
