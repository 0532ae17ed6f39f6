/* What can be published: checked over the whole module before anything is built. */
#include "publish_private.h"

static bool refuse(publication *p, const weft_mlir_op *op, const char *hint, const char *why) {
  p->l.status = weft_error_at(p->l.diag, WEFT_INVALID, weft_mlir_place(p->l.file, op), hint, "cannot publish %s: %s",
                              op->name->text, why);
  return false;
}

uint32_t publish_segment(const weft_mlir_op *op, const char *name, uint32_t index) {
  return (uint32_t)weft_mlir_dense_integer(weft_mlir_attribute_of(op, name), index);
}

uint32_t publish_begin(const weft_mlir_op *region, uint32_t segment) {
  uint32_t begin = 0;
  for (uint32_t i = 0; i < segment; i++) begin += publish_segment(region, "operandSegmentSizes", i);
  return begin;
}

/* ---- where regions stand -------------------------------------------------------------------------------------- */

/* The thread around a region; what lies between must be able to hand a completion on. */
static weft_mlir_op *thread_of(publication *p, weft_mlir_op *region) {
  for (weft_mlir_op *op = weft_mlir_parent(region); op; op = weft_mlir_parent(op)) {
    switch (weft_mlir_code(op)) {
    case WEFT_DATAFLOW_THREAD: return op;
    case WEFT_OP_SCF_FOR:
    case WEFT_OP_SCF_IF:
    case WEFT_OP_SCF_WHILE:
    case WEFT_OP_SCF_INDEX_SWITCH: break;
    case WEFT_OP_SCF_PARALLEL:
    case WEFT_OP_SCF_FORALL:
      refuse(p, region, "choose an order first: write the loop as scf.for",
             "it stands under a parallel form, whose order is not fixed");
      return NULL;
    default:
      refuse(p, region, "put it into a dataflow.thread, under scf.for, if, while and index_switch only",
             "completion cannot be handed through the op around it");
      return NULL;
    }
  }
  return NULL;
}

/* Calls must not hide regions, and threads do not launch threads. */
static bool check_thread_op(publication *p, const weft_mlir_op *op) {
  uint32_t code = weft_mlir_code(op);
  if (code == WEFT_DATAFLOW_THREAD_LAUNCH) return refuse(p, op, NULL, "a thread is launched inside a thread");
  if (code != WEFT_OP_FUNC_CALL) return true;
  const symbol_entry *found = symbol_map_find(&p->symbols, weft_mlir_attribute_text(op, "callee", ""));
  const weft_mlir_op *callee = found ? found->op : NULL;
  for (const weft_mlir_op *inner = callee ? weft_mlir_next(callee, NULL) : NULL; inner;
       inner = weft_mlir_next(callee, inner))
    if (weft_mlir_code(inner) == WEFT_DATAFLOW_SPATIAL_REGION)
      return refuse(p, op, "inline the callee first", "the function called holds a spatial region");
  return true;
}

/* ---- the boundary --------------------------------------------------------------------------------------------- */

static bool dense_domain(const weft_mlir_op *thread) {
  const weft_mlir_attribute *domain = weft_mlir_attribute_of(thread, "domain");
  if (!domain || domain->kind != WEFT_MLIR_DIALECT || !domain->count) return true;
  const weft_mlir_attribute *kind = domain->as.dialect.items[0];
  return kind->kind == WEFT_MLIR_STRING && strcmp(kind->as.string.data, "dense") == 0;
}

static bool check_maps(publication *p, const candidate *c) {
  const weft_mlir_attribute *maps = weft_mlir_attribute_of(c->region, "source_maps");
  uint32_t rank =
      weft_mlir_op_block(c->thread, 0)->argument_count - weft_mlir_function_type(c->thread)->input_count - 1;
  for (uint32_t i = 0; i < maps->count; i++)
    if (maps->as.items[i]->as.map->dims != rank)
      return refuse(p, c->region, "a source map goes from the thread's grid to the producer's",
                    "a source map does not have one dimension for each of the thread's grid");
  bool streams = maps->count || publish_segment(c->region, "operandSegmentSizes", REGION_STREAMS_OUT);
  return dense_domain(c->thread) || !streams ||
         refuse(p, c->region, NULL, "only a thread of a dense domain binds streams");
}

/* Sites use the binding of their direction; each channel is bound once. */
static bool check_channels(publication *p, const candidate *c) {
  const weft_mlir_block *body = weft_mlir_op_block(c->region, 0);
  uint32_t in = publish_begin(c->region, REGION_STREAMS_IN), memories = publish_begin(c->region, REGION_MEMORIES);
  for (const weft_mlir_op *op = weft_mlir_next(c->region, NULL); op; op = weft_mlir_next(c->region, op)) {
    uint32_t code = weft_mlir_code(op);
    if (code != WEFT_DATAFLOW_CHANNEL_SEND && code != WEFT_DATAFLOW_CHANNEL_RECEIVE) continue;
    const weft_mlir_value *channel = op->operands[0];
    if (!channel->is_argument || channel->owner != body) continue; /* refused by the lowering */
    bool input = channel->index >= in && channel->index < memories;
    if (input != (code == WEFT_DATAFLOW_CHANNEL_RECEIVE))
      return refuse(p, op, "receive from stream inputs, send to stream outputs",
                    "the channel is bound in the other direction");
  }
  return true;
}

static bool check_yield(publication *p, const candidate *c) {
  const weft_mlir_op *end = weft_mlir_op_block(c->region, 0)->last;
  uint32_t values = publish_segment(c->region, "resultSegmentSizes", 0);
  for (uint32_t i = 0; i < end->operand_count; i++) {
    const weft_mlir_value *value = end->operands[i];
    bool memory = value->type->kind == WEFT_MLIR_MEMREF_TYPE;
    if (memory != (i >= values)) return refuse(p, end, NULL, "values and memories are in the wrong segment");
    if (memory && !(value->is_argument && value->owner == weft_mlir_op_block(c->region, 0)))
      return refuse(p, end, "yield the memory input itself", "a memory result is no memory input of the region");
  }
  return true;
}

/* ---- receives that only a later send of the same thread could feed -------------------------------------------------
 */

/* The channel of the thread behind an operand, or NULL. */
static const weft_mlir_value *thread_channel(const weft_mlir_value *value, const weft_mlir_op *thread) {
  return value->is_argument && value->owner == weft_mlir_op_block(thread, 0) &&
                 value->type->kind == WEFT_MLIR_DIALECT_TYPE
             ? value
             : NULL;
}

/* The channel outside the region that a site's channel stands for. */
static const weft_mlir_value *outside(const weft_mlir_op *site) {
  const weft_mlir_value *channel = site->operands[0];
  const weft_mlir_op *region = channel->is_argument ? ((const weft_mlir_block *)channel->owner)->region->op : NULL;
  return region && weft_mlir_code(region) == WEFT_DATAFLOW_SPATIAL_REGION ? region->operands[channel->index] : channel;
}

/* In the order of the text: a channel that the thread both receives from in a region and sends to must be sent to
 * first. */
static bool check_strand(publication *p, const weft_mlir_op *thread) {
  const weft_mlir_block *body = weft_mlir_op_block(thread, 0);
  const weft_mlir_op **received = WEFT_NEW_ARRAY(p->l.scratch, const weft_mlir_op *, body->argument_count);
  bool *sent = WEFT_NEW_ARRAY(p->l.scratch, bool, body->argument_count);
  if (!received || !sent) return lower_memory(&p->l);
  for (const weft_mlir_op *op = weft_mlir_next(thread, NULL); op; op = weft_mlir_next(thread, op)) {
    uint32_t code = weft_mlir_code(op);
    if (code != WEFT_DATAFLOW_CHANNEL_SEND && code != WEFT_DATAFLOW_CHANNEL_RECEIVE) continue;
    const weft_mlir_value *channel = thread_channel(outside(op), thread);
    if (!channel) continue;
    bool in_region = outside(op) != op->operands[0];
    if (code == WEFT_DATAFLOW_CHANNEL_RECEIVE && in_region && !sent[channel->index] && !received[channel->index])
      received[channel->index] = op;
    if (code == WEFT_DATAFLOW_CHANNEL_SEND && received[channel->index])
      return refuse(p, received[channel->index], "send first, or let another thread send",
                    "only a later send of the same thread could feed this receive");
    if (code == WEFT_DATAFLOW_CHANNEL_SEND) sent[channel->index] = true;
  }
  return true;
}

/* ---- all ------------------------------------------------------------------------------------------------------- */

/* Nothing else is called `name`, and from now on the graph of `c` is. */
static bool take_name(publication *p, candidate *c, const char *name) {
  if (symbol_map_find(&p->symbols, name)) return false;
  c->name = name;
  return symbol_map_add(&p->symbols, p->l.scratch, name, NULL);
}

static bool choose_name(publication *p, candidate *c) {
  const char *given = weft_mlir_attribute_text(c->region, "graph_name", NULL);
  if (given)
    return take_name(p, c, given) ||
           refuse(p, c->region, "give the region another graph_name", "a symbol of its graph_name is there already");
  for (uint32_t i = 0;; i++) {
    const char *name = weft_arena_printf(p->l.scratch, "%s_graph_%u", weft_mlir_symbol_name(c->thread), i);
    if (!name) return lower_memory(&p->l);
    if (take_name(p, c, name)) return true;
    if (weft_arena_failed(p->l.scratch)) return lower_memory(&p->l);
  }
}

static bool check_candidate(publication *p, candidate *c) {
  return choose_name(p, c) && check_maps(p, c) && check_channels(p, c) && check_yield(p, c) &&
         lower_admit(&p->l, c->region, true);
}

bool publish_check(publication *p) {
  if (!symbol_map_of_module(&p->symbols, p->l.scratch, p->module)) return lower_memory(&p->l);
  for (weft_mlir_op *op = weft_mlir_next(p->module, NULL); op; op = weft_mlir_next(p->module, op)) {
    if (weft_mlir_code(op) != WEFT_DATAFLOW_SPATIAL_REGION) continue;
    weft_mlir_op *thread = thread_of(p, op);
    if (!thread)
      return p->l.status != WEFT_OK ? false : refuse(p, op, "put it into a dataflow.thread", "it stands in no thread");
    if (!weft_arena_grow(p->l.scratch, &p->candidates, p->count, &p->capacity, sizeof *p->candidates))
      return lower_memory(&p->l);
    candidate c = {.region = op, .thread = thread};
    if (!check_candidate(p, &c)) return false;
    p->candidates[p->count++] = c;
  }
  const weft_mlir_op *checked = NULL;
  for (uint64_t i = 0; i < p->count; i++) {
    const weft_mlir_op *thread = p->candidates[i].thread;
    if (thread == checked) continue;
    checked = thread;
    for (const weft_mlir_op *op = weft_mlir_next(thread, NULL); op; op = weft_mlir_next(thread, op))
      if (!check_thread_op(p, op)) return false;
    if (!check_strand(p, thread)) return false;
  }
  return true;
}
