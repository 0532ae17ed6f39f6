/* loom-lower-for-to-graph: each spatial region becomes a private graph and a launch of it.
 * Source: graph-launch seed; design "Publication". */
#include "publish_private.h"

/* ---- the graph of one region ---------------------------------------------------------------------------------------
 */

static const weft_mlir_type *payload(const weft_mlir_type *channel) { return channel->parameters[0]->as.type_value; }

/* Inputs: values, payloads of stream inputs, memories. Results: values, payloads of stream outputs, memories. */
static const weft_mlir_type *graph_type(publication *p, const weft_mlir_op *region) {
  uint32_t outs = publish_begin(region, REGION_STREAMS_OUT), values = publish_segment(region, "resultSegmentSizes", 0);
  uint32_t streams = publish_segment(region, "operandSegmentSizes", REGION_STREAMS_OUT), count = 0;
  const weft_mlir_type **inputs = WEFT_NEW_ARRAY(p->l.scratch, const weft_mlir_type *, outs);
  const weft_mlir_type **results = WEFT_NEW_ARRAY(p->l.scratch, const weft_mlir_type *, region->result_count + streams);
  if (!inputs || !results) return NULL;
  for (uint32_t i = 0; i < outs; i++) {
    const weft_mlir_type *type = region->operands[i]->type;
    inputs[i] = type->kind == WEFT_MLIR_DIALECT_TYPE ? payload(type) : type;
  }
  for (uint32_t i = 0; i < values; i++) results[count++] = region->results[i].type;
  for (uint32_t i = 0; i < streams; i++) results[count++] = payload(region->operands[outs + i]->type);
  for (uint32_t i = values; i < region->result_count; i++) results[count++] = region->results[i].type;
  return weft_mlir_function(p->l.context, inputs, outs, results, count);
}

static const weft_mlir_value *root_of(const weft_mlir_value *value) {
  for (;;) {
    const weft_mlir_op *definition = weft_mlir_defining_op(value);
    if (!definition || weft_mlir_code(definition) != WEFT_OP_MEMREF_CAST) return value;
    value = definition->operands[0];
  }
}

/* A memory input inherits llvm.noalias from the thread's argument when it is the only one rooted there. */
static bool inherits_no_alias(const candidate *c, uint32_t operand) {
  const weft_mlir_value *root = root_of(c->region->operands[operand]);
  if (!root->is_argument || root->owner != weft_mlir_op_block(c->thread, 0)) return false;
  uint32_t begin = publish_begin(c->region, REGION_MEMORIES), end = publish_begin(c->region, REGION_STREAMS_OUT);
  for (uint32_t i = begin; i < end; i++)
    if (i != operand && root_of(c->region->operands[i]) == root) return false;
  return weft_mlir_argument_attribute(c->thread, root->index, "llvm.noalias") != NULL;
}

static void set(publication *p, weft_mlir_op *op, const char *name, const weft_mlir_attribute *value) {
  if (value)
    weft_mlir_set(p->l.context, op, name, value);
  else
    lower_memory(&p->l);
}

static void set_no_alias(publication *p, weft_mlir_op *graph, const bool *apart, uint32_t count) {
  weft_mlir_context *context = p->l.context;
  const weft_mlir_attribute **items = WEFT_NEW_ARRAY(p->l.scratch, const weft_mlir_attribute *, count);
  weft_mlir_named member = {weft_mlir_intern(context, "llvm.noalias", 12), weft_mlir_unit(context)};
  bool any = false;
  for (uint32_t i = 0; items && i < count; i++) {
    items[i] = weft_mlir_dictionary(context, &member, apart[i]);
    any |= apart[i];
  }
  if (any) set(p, graph, "arg_attrs", items ? weft_mlir_array(context, items, count) : NULL);
}

static weft_mlir_op *make_graph(publication *p, const candidate *c, const bool *apart) {
  weft_mlir_context *context = p->l.context;
  const weft_mlir_op *region = c->region;
  const weft_mlir_type *type = graph_type(p, region);
  weft_mlir_op_parts parts = {
      .name = p->l.names.graph, .region_count = 1, .line = region->line, .column = region->column};
  weft_mlir_op *graph = type ? weft_mlir_op_new(p->l.arena, &parts) : NULL;
  if (!graph) {
    lower_memory(&p->l);
    return NULL;
  }
  uint32_t sizes[4];
  for (uint32_t i = 0; i < 4; i++) sizes[i] = publish_segment(region, "operandSegmentSizes", i);
  uint32_t values = publish_segment(region, "resultSegmentSizes", 0);
  set(p, graph, "sym_name", weft_mlir_string(context, c->name, strlen(c->name)));
  set(p, graph, "sym_visibility", weft_mlir_string(context, "private", 7));
  set(p, graph, "function_type", weft_mlir_type_attribute(context, type));
  set(p, graph, "input_segments",
      weft_mlir_dense_array(context, 32,
                            (int64_t[]){sizes[REGION_VALUES], sizes[REGION_STREAMS_IN], sizes[REGION_MEMORIES]}, 3));
  set(p, graph, "result_segments",
      weft_mlir_dense_array(context, 32, (int64_t[]){values, sizes[REGION_STREAMS_OUT], region->result_count - values},
                            3));
  set(p, graph, "weft.lowered", weft_mlir_unit(context));
  set_no_alias(p, graph, apart, type->input_count);
  return p->l.status == WEFT_OK ? graph : NULL;
}

static weft_mlir_block *make_block(publication *p, weft_mlir_op *graph) {
  const weft_mlir_type *type = weft_mlir_function_type(graph);
  const weft_mlir_type **types = WEFT_NEW_ARRAY(p->l.scratch, const weft_mlir_type *, type->input_count + 1);
  if (!types) return NULL;
  types[0] = weft_mlir_none(p->l.context);
  for (uint32_t i = 0; i < type->input_count; i++) types[i + 1] = type->inputs[i];
  return weft_mlir_block_new(p->l.arena, weft_mlir_op_region(graph, 0), types, type->input_count + 1);
}

static bool publish_graph(publication *p, candidate *c) {
  weft_mlir_op *source = c->region;
  if (lower_has_copies(source)) {
    source = weft_mlir_clone(p->l.arena, source);
    if (!source || !lower_expand_copies(p->l.context, p->l.arena, source)) return lower_memory(&p->l);
  }
  uint32_t outs = publish_begin(c->region, REGION_STREAMS_OUT), count = source->operand_count;
  bool *apart = WEFT_NEW_ARRAY(p->l.scratch, bool, count + 1), *outputs = WEFT_NEW_ARRAY(p->l.scratch, bool, count + 1);
  weft_mlir_value **arguments = WEFT_NEW_ARRAY(p->l.scratch, weft_mlir_value *, count + 1);
  if (!apart || !outputs || !arguments) return lower_memory(&p->l);
  for (uint32_t i = publish_begin(c->region, REGION_MEMORIES); i < outs; i++) apart[i] = inherits_no_alias(c, i);
  for (uint32_t i = outs; i < count; i++) outputs[i] = true;
  c->graph = make_graph(p, c, apart);
  weft_mlir_block *block = c->graph ? make_block(p, c->graph) : NULL;
  if (!block) return lower_memory(&p->l);
  for (uint32_t i = 0; i < outs; i++) arguments[i] = &block->arguments[i + 1];
  lower_job job = {.source = source,
                   .shell = c->graph,
                   .arguments = arguments,
                   .no_alias = apart,
                   .outputs = outputs,
                   .value_results = publish_segment(c->region, "resultSegmentSizes", 0),
                   .stream_results = count - outs};
  return lower_body(&p->l, &job);
}

/* ---- the module
 * ------------------------------------------------------------------------------------------------------ */

typedef struct exchange {
  weft_mlir_op *old, *new;
} exchange;

static bool publish_all(publication *p) {
  if (!publish_check(p)) return false;
  exchange *threads = WEFT_NEW_ARRAY(p->l.scratch, exchange, p->count);
  uint64_t thread_count = 0;
  if (!threads) return lower_memory(&p->l);
  for (uint64_t i = 0; i < p->count; i++)
    if (!publish_graph(p, &p->candidates[i])) return false;
  p->l.none = weft_mlir_none(p->l.context);
  while (p->next < p->count) {
    weft_mlir_op *thread = p->candidates[p->next].thread, *copy = publish_thread(p, thread);
    if (!copy) return lower_memory(&p->l);
    threads[thread_count++] = (exchange){thread, copy};
  }
  for (uint64_t i = 0; i < thread_count; i++) {
    weft_mlir_insert(threads[i].old->block, threads[i].new, threads[i].old);
    weft_mlir_remove(threads[i].old);
  }
  for (uint64_t i = 0; i < p->count; i++)
    weft_mlir_insert(weft_mlir_op_block(p->module, 0), p->candidates[i].graph, NULL);
  return true;
}

weft_status weft_publish(weft_mlir_context *context, weft_arena *arena, weft_mlir_op *module, const char *file,
                         weft_diag *diag) {
  publication p = {.l = {.context = context, .arena = arena, .scratch = weft_arena_new(), .diag = diag, .file = file},
                   .module = module};
  if (!p.l.scratch) return weft_error_memory(diag);
  p.l.names.graph = weft_mlir_name(context, "dataflow.graph", 14);
  if (!publish_all(&p) && p.l.status == WEFT_OK) p.l.status = weft_error_memory(diag);
  weft_arena_free(p.l.scratch);
  return p.l.status;
}
