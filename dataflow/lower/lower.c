/* The recursive lowering: lower_region(E, values, {W[p], R[p]}) -> the same. Leaves are here; branches.c, loops.c and
 * events.c compose regions.
 * Source: while-lowering seed, sections 2 to 8 of its memory document; design "Lowering rules in full". */
#include "lower_private.h"

/* ---- joins ---------------------------------------------------------------------------------------------------- */

/* join(E, W[p]) or join(E, R[p]): one token when they are one, or when the frontier comes after E. */
static weft_mlir_value *join_frontier(lowering *l, weft_mlir_value *token, uint64_t after) {
  if (token == l->execution || after == l->number) return token;
  return lower_sync(l, (weft_mlir_value *[]){l->execution, token}, 2, NULL);
}

static void after_read(lowering *l, frontier *f, weft_mlir_value *done) {
  f->read = f->read == f->write ? done : lower_sync(l, (weft_mlir_value *[]){f->read, done}, 2, NULL);
  f->read_after = l->number;
}

static void after_write(lowering *l, frontier *f, weft_mlir_value *done) {
  f->write = f->read = done;
  f->write_after = f->read_after = l->number;
}

/* ---- leaves --------------------------------------------------------------------------------------------------- */

/* The row-major address of an access. An index beyond its own extent, or so large that the address would wrap, makes
 * the address -1, which is out of bounds, too. */
static weft_mlir_value *address(lowering *l, const weft_mlir_op *op, uint32_t memory) {
  const weft_mlir_type *type = op->operands[memory]->type;
  const char *why;
  uint64_t row = 1;
  weft_memref_rows(type, &row, &why);
  if (type->rank == 0) return lower_number(l, l->index, 0);
  weft_mlir_value *flat = lower_value(l, op->operands[memory + 1]), *good = NULL;
  for (uint32_t i = 0; i < type->rank && type->rank > 1; i++) {
    weft_mlir_value *index = lower_value(l, op->operands[memory + 1 + i]);
    if (i) {
      weft_mlir_value *extent = lower_number(l, l->index, type->extents[i]);
      flat = lower_binary(l, l->names.addi, lower_binary(l, l->names.muli, flat, extent), index);
    }
    int64_t extent = type->extents[i] == WEFT_MLIR_DYNAMIC ? (int64_t)weft_memref_limit(row) : type->extents[i];
    weft_mlir_value *inside = lower_compare(l, WEFT_CMPI_ult, index, lower_number(l, l->index, extent));
    good = good ? lower_binary(l, l->names.andi, good, inside) : inside;
  }
  return good ? lower_select(l, good, flat, lower_number(l, l->index, -1)) : flat;
}

static bool lower_load(lowering *l, const weft_mlir_op *op) {
  frontier *f = &l->frontiers[l->roots[op->operands[0]->mark]];
  weft_mlir_value *at = address(l, op, 0), *control = join_frontier(l, f->write, f->write_after);
  weft_mlir_value *operands[] = {lower_value(l, op->operands[0]), at, control};
  weft_mlir_op *load =
      lower_emit(l, l->names.load, operands, 3, (const weft_mlir_type *[]){op->results[0].type, l->none}, 2, NULL);
  if (!load) return false;
  l->map[op->results[0].mark] = &load->results[0];
  after_read(l, f, &load->results[1]);
  return true;
}

static bool lower_store(lowering *l, const weft_mlir_op *op) {
  frontier *f = &l->frontiers[l->roots[op->operands[1]->mark]];
  weft_mlir_value *at = address(l, op, 1), *control = join_frontier(l, f->read, f->read_after);
  weft_mlir_value *operands[] = {lower_value(l, op->operands[1]), at, lower_value(l, op->operands[0]), control};
  weft_mlir_op *store = lower_emit(l, l->names.store, operands, 4, &l->none, 1, NULL);
  if (!store) return false;
  after_write(l, f, &store->results[0]);
  return true;
}

/* An arith or math op as it is, over the values that stand here. */
static bool lower_compute(lowering *l, const weft_mlir_op *op) {
  weft_mlir_value *operands[3];
  const weft_mlir_type *type = op->results[0].type;
  for (uint32_t i = 0; i < op->operand_count && i < 3; i++) operands[i] = lower_value(l, op->operands[i]);
  weft_mlir_op *made = lower_emit(l, op->name, operands, op->operand_count, &type, 1, op->properties);
  if (!made) return false;
  made->attributes = op->attributes;
  l->map[op->results[0].mark] = &made->results[0];
  return true;
}

/* Memrefs carry no tokens: an allocation is the graph's, wherever it stands. */
static bool lower_capability(lowering *l, const weft_mlir_op *op) {
  weft_mlir_value **operands = WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, op->operand_count);
  const weft_mlir_type *type = op->results[0].type;
  if (!operands) return lower_memory(l);
  for (uint32_t i = 0; i < op->operand_count; i++) operands[i] = l->outermost[op->operands[i]->mark];
  if (weft_mlir_code(op) == WEFT_OP_MEMREF_CAST) operands[0] = lower_value(l, op->operands[0]);
  weft_mlir_op *made = lower_emit(l, op->name, operands, op->operand_count, &type, 1, op->properties);
  if (!made) return false;
  l->map[op->results[0].mark] = &made->results[0];
  return true;
}

static bool has_site(const lowering *l, const weft_mlir_op *op) {
  for (uint32_t r = 0; r < op->region_count; r++)
    if (lower_facts(l, op, r)->site_count) return true;
  return false;
}

static bool lower_control(lowering *l, const weft_mlir_op *op, event_port *ports) {
  switch (weft_mlir_code(op)) {
  case WEFT_OP_SCF_IF: return lower_if(l, op, ports);
  case WEFT_OP_SCF_FOR: return lower_for(l, op, ports);
  case WEFT_OP_SCF_WHILE: return lower_while(l, op, ports);
  default: return lower_index_switch(l, op, ports);
  }
}

static bool lower_literal(lowering *l, const weft_mlir_op *op) {
  weft_mlir_value *value = lower_constant(l, weft_mlir_attribute_of(op, "value"));
  l->map[op->results[0].mark] = value;
  if (l->top) l->outermost[op->results[0].mark] = value;
  return l->status == WEFT_OK;
}

static bool lower_leaf(lowering *l, const weft_mlir_op *op) {
  switch (weft_mlir_code(op)) {
  case WEFT_OP_ARITH_CONSTANT: return lower_literal(l, op);
  case WEFT_OP_MEMREF_LOAD: return lower_load(l, op);
  case WEFT_OP_MEMREF_STORE: return lower_store(l, op);
  case WEFT_OP_MEMREF_ALLOC:
  case WEFT_OP_MEMREF_CAST: return lower_capability(l, op);
  case WEFT_OP_SCF_YIELD:
  case WEFT_OP_SCF_CONDITION:
  case WEFT_OP_FUNC_RETURN:
  case WEFT_DATAFLOW_GRAPH_RETURN:
  case WEFT_DATAFLOW_SPATIAL_YIELD: return true;
  default: return lower_compute(l, op);
  }
}

/* ---- blocks and regions --------------------------------------------------------------------------------------- */

bool lower_op_sites(lowering *l, const weft_mlir_op *op, const uint32_t **sites, uint32_t *count) {
  uint32_t code = weft_mlir_code(op);
  *count = 0;
  if (code == WEFT_DATAFLOW_CHANNEL_SEND || code == WEFT_DATAFLOW_CHANNEL_RECEIVE) {
    *sites = &l->roots[op->operands[0]->mark];
    *count = 1;
    return true;
  }
  if (!op->region_count || !has_site(l, op)) return true;
  uint32_t *list = WEFT_NEW_ARRAY(l->scratch, uint32_t, l->binding_count);
  bool *listed = WEFT_NEW_ARRAY(l->scratch, bool, l->binding_count);
  if (!list || !listed) return lower_memory(l);
  for (uint32_t r = 0; r < op->region_count; r++)
    for (uint32_t i = 0; i < lower_facts(l, op, r)->site_count; i++) {
      uint32_t binding = lower_facts(l, op, r)->sites[i];
      if (!listed[binding]) list[(*count)++] = binding;
      listed[binding] = true;
    }
  *sites = list;
  return true;
}

static bool lower_with_events(lowering *l, const weft_mlir_op *op, block_events *events, const uint32_t *sites,
                              uint32_t count) {
  event_port *ports = lower_events_item(l, events, sites, count);
  if (!ports) return false;
  uint32_t code = weft_mlir_code(op);
  bool good = code == WEFT_DATAFLOW_CHANNEL_SEND      ? lower_send(l, op, ports)
              : code == WEFT_DATAFLOW_CHANNEL_RECEIVE ? lower_receive(l, op, ports)
                                                      : lower_control(l, op, ports);
  if (good) lower_events_done(l, events, ports, count);
  return good;
}

bool lower_block(lowering *l, const weft_mlir_block *block) {
  block_events *events = l->port_count ? lower_events_begin(l, block) : NULL;
  if (l->port_count && !events) return false;
  for (weft_mlir_op *op = block->first; op; op = op->next) {
    const uint32_t *sites;
    uint32_t count = 0;
    l->line = op;
    if (l->port_count && !lower_op_sites(l, op, &sites, &count)) return false;
    bool control = op->region_count > 0;
    bool good = count     ? lower_with_events(l, op, events, sites, count)
                : control ? lower_control(l, op, NULL)
                          : lower_leaf(l, op);
    if (!good || l->status != WEFT_OK) return false;
  }
  return !events || lower_events_end(l, events);
}

void lower_restore(lowering *l, const region_facts *facts, weft_mlir_value *const *values) {
  for (uint32_t i = 0; i < facts->capture_count; i++) l->map[facts->captures[i]->mark] = values[i];
}

bool lower_region(lowering *l, const inner_region *r) {
  weft_mlir_value *entry = l->entry;
  event_port *ports = l->ports;
  uint32_t port_count = l->port_count;
  bool top = l->top;
  lower_restore(l, r->facts, r->captures);
  l->entry = r->execution;
  l->ports = r->ports;
  l->port_count = r->facts->site_count;
  l->top = false;
  lower_set_execution(l, r->execution);
  bool good = lower_block(l, r->block);
  l->entry = entry;
  l->ports = ports;
  l->port_count = port_count;
  l->top = top;
  return good;
}

/* ---- whole bodies --------------------------------------------------------------------------------------------- */

static bool complete(lowering *l, const lower_job *job, weft_mlir_value **operands, uint32_t count) {
  const region_facts *facts = &l->facts[0];
  uint32_t results = count;
  bool after = false;
  for (uint32_t i = 0; i < facts->touched_count; i++) {
    const frontier *f = &l->frontiers[facts->touched[i]];
    if (f->read != l->execution && f->read_after == l->number) after = true; /* E is behind it */
    bool repeated = f->read == l->execution;
    for (uint32_t k = results; k < count && !repeated; k++) repeated = operands[k] == f->read;
    if (!repeated) operands[count++] = f->read;
  }
  if (!after) { /* E first, as the seed has it */
    for (uint32_t k = count; k > results; k--) operands[k] = operands[k - 1];
    operands[results] = l->execution;
    count++;
  }
  int64_t sizes[] = {job->value_results, job->stream_results, results - job->value_results - job->stream_results,
                     count - results};
  weft_mlir_named member = {weft_mlir_intern(l->context, "operandSegmentSizes", 19),
                            weft_mlir_dense_array(l->context, 32, sizes, 4)};
  const weft_mlir_attribute *properties =
      member.name && member.value ? weft_mlir_dictionary(l->context, &member, 1) : NULL;
  return properties ? lower_emit(l, l->names.graph_return, operands, count, NULL, 0, properties) != NULL
                    : lower_memory(l);
}

/* Results in the order values, streams, memories; then the completion. */
static bool finish(lowering *l, const lower_job *job) {
  const weft_mlir_op *end = l->body->last;
  uint32_t returned = end->operand_count;
  if (weft_mlir_code(end) == WEFT_DATAFLOW_GRAPH_RETURN)
    returned -= (uint32_t)weft_mlir_dense_integer(weft_mlir_attribute_of(end, "operandSegmentSizes"), 3);
  weft_mlir_value **operands =
      WEFT_NEW_ARRAY(l->scratch, weft_mlir_value *, returned + job->stream_results + l->facts[0].touched_count + 2);
  if (!operands) return lower_memory(l);
  uint32_t count = 0;
  l->line = l->body->last;
  for (uint32_t i = 0; i < job->value_results; i++) operands[count++] = lower_value(l, end->operands[i]);
  for (uint32_t i = 0; i < l->binding_count; i++)
    if (l->bindings[i].output)
      operands[count++] = l->bindings[i].tokens ? l->bindings[i].tokens : lower_never(l, l->bindings[i].element);
  for (uint32_t i = job->value_results; i < returned; i++) operands[count++] = lower_value(l, end->operands[i]);
  return l->status == WEFT_OK && complete(l, job, operands, count);
}

static void find_names(lowering *l) {
#define ROW(identifier, text) l->names.identifier = weft_mlir_name(l->context, text, strlen(text));
  EMITTED(ROW)
#undef ROW
  l->none = weft_mlir_none(l->context);
  l->index = weft_mlir_index(l->context);
  l->i1 = weft_mlir_integer(l->context, 1, WEFT_MLIR_SIGNLESS);
  l->i64 = weft_mlir_integer(l->context, 64, WEFT_MLIR_SIGNLESS);
}

/* The ports of the body: inputs come from the graph's arguments; the events of the whole are nobody's concern. */
static bool body_ports(lowering *l, const lower_job *job) {
  const region_facts *facts = &l->facts[0];
  l->ports = WEFT_NEW_ARRAY(l->scratch, event_port, facts->site_count);
  if (!l->ports) return lower_memory(l);
  l->port_count = facts->site_count;
  for (uint32_t i = 0; i < facts->site_count; i++) {
    const binding_facts *b = &l->bindings[facts->sites[i]];
    l->ports[i] = (event_port){.binding = facts->sites[i], .in = job->arguments[b->channel->index]};
  }
  return true;
}

bool lower_body(lowering *l, const lower_job *job) {
  l->source = job->source;
  l->body = weft_mlir_op_block(job->source, 0);
  if (!l->scratch) return lower_memory(l);
  l->target = weft_mlir_op_block(job->shell, 0);
  if (!lower_collect(l, job)) return false;
  if (!l->names.sync) find_names(l);
  for (uint32_t i = 0; i < l->body->argument_count; i++)
    l->map[l->body->arguments[i].mark] = l->outermost[l->body->arguments[i].mark] = job->arguments[i];
  l->entry = l->execution = &l->target->arguments[0];
  l->number = 1;
  l->top = true;
  for (uint32_t p = 0; p < l->partition_count; p++) lower_set_frontier(l, p, l->execution, l->execution);
  if (!body_ports(l, job) || !lower_block(l, l->body)) return false;
  for (uint32_t i = 0; i < l->port_count; i++) l->bindings[l->ports[i].binding].tokens = l->ports[i].out;
  return finish(l, job) && l->status == WEFT_OK;
}
