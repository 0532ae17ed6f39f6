/* weft_graph_lower: which ops share a unit, which units a section, which values become tensors. */
#include "lower_private.h"

#include <string.h>

weft_status weft_lower_memory(const weft_lowering *l) {
  if (!weft_arena_failed(l->program->arena) && !weft_arena_failed(l->scratch)) return WEFT_OK;
  return weft_error_memory(l->diag);
}

/* ---- outputs that are read ----------------------------------------------------------------------------------------
 */

/** For every value the earliest section that reads it, UINT32_MAX when none does. */
static uint32_t *first_reading_sections(const weft_graph *graph, weft_arena *arena) {
  uint32_t *first = WEFT_NEW_ARRAY(arena, uint32_t, graph->value_count);
  if (!first) return NULL;
  memset(first, 0xFF, graph->value_count * sizeof *first);
  for (uint64_t i = 0; i < graph->op_count; i++)
    for (uint32_t j = 0; j < graph->ops[i].in_count; j++)
      if (graph->ops[i].section < first[graph->ops[i].ins[j]]) first[graph->ops[i].ins[j]] = graph->ops[i].section;
  return first;
}

/** A tensor of role Output may not be loaded: what is read becomes an Activation, the output a copy of it. */
static weft_graph *copy_read_outputs(const weft_graph *graph, weft_arena *scratch, weft_diag *diag) {
  uint32_t *first = first_reading_sections(graph, scratch);
  weft_graph *copy = weft_graph_clone(graph, diag);
  if (!first || !copy) {
    if (!first) weft_error_memory(diag);
    weft_graph_free(copy);
    return NULL;
  }
  for (uint32_t v = 0; v < graph->value_count; v++) {
    if (graph->values[v].role != WEFT_ROLE_OUTPUT || first[v] == UINT32_MAX) continue;
    uint32_t out = weft_graph_add_value(copy, &graph->values[v]);
    weft_value *read = &copy->values[v];
    read->name = weft_arena_printf(copy->arena, "%s.read", graph->values[v].name);
    read->role = WEFT_ROLE_ACTIVATION;
    read->has_shard = false;
    if (out == WEFT_NONE || !read->name) break;
    const weft_body_node node = {.kind = WEFT_BODY_OPERAND};
    weft_graph_op op = {.kind = WEFT_GRAPH_POINTWISE,
                        .name = graph->values[v].name,
                        .section = first[v],
                        .chip = read->chip,
                        .ins = &v,
                        .in_count = 1,
                        .out = out,
                        .body = {&node, 1}};
    weft_graph_add_op(copy, &op);
  }
  if (!copy->failed && !weft_arena_failed(copy->arena)) return copy;
  if (!copy->failed) weft_error_memory(diag);
  weft_graph_free(copy);
  return NULL;
}

/* ---- units --------------------------------------------------------------------------------------------------------
 */

/** What the analysis knows of the graph: who is needed, how often, and who stores. */
typedef struct analysis {
  bool *live;      /**< by op */
  uint32_t *reads; /**< by value: operands of live ops */
  uint32_t *unit;  /**< by op: its unit */
  weft_unit *units;
  uint32_t unit_count;
} analysis;

/** Pieces without elements are not read. */
static bool reads_operand(const weft_graph *graph, const weft_graph_op *op, uint32_t i) {
  return op->kind != WEFT_GRAPH_ASSEMBLE || weft_value_elements(&graph->values[op->ins[i]]) ||
         !weft_value_elements(&graph->values[op->out]);
}

static bool find_live(weft_lowering *l, analysis *a) {
  const weft_graph *graph = l->graph;
  a->live = WEFT_NEW_ARRAY(l->scratch, bool, graph->op_count);
  a->reads = WEFT_NEW_ARRAY(l->scratch, uint32_t, graph->value_count);
  if (!a->live || !a->reads) return false;
  for (uint64_t i = graph->op_count; i-- > 0;) {
    const weft_graph_op *op = &graph->ops[i];
    const weft_value *out = &graph->values[op->out];
    a->live[i] = out->role == WEFT_ROLE_OUTPUT || out->updates || a->reads[op->out] > 0;
    for (uint32_t j = 0; a->live[i] && j < op->in_count; j++)
      if (reads_operand(graph, op, j)) a->reads[op->ins[j]]++;
  }
  return true;
}

/** A slice that nothing but assembles read need not be stored: they take its block from where it is. */
static bool find_folded(weft_lowering *l, const analysis *a) {
  const weft_graph *graph = l->graph;
  l->folded = WEFT_NEW_ARRAY(l->scratch, bool, graph->op_count);
  if (!l->folded) return false;
  for (uint64_t i = 0; i < graph->op_count; i++) {
    const weft_graph_op *op = &graph->ops[i];
    if (op->kind != WEFT_GRAPH_SLICE || !a->live[i]) continue;
    const weft_value *in = &graph->values[op->ins[0]], *out = &graph->values[op->out];
    uint64_t row0, col0;
    l->folded[i] = out->role == WEFT_ROLE_ACTIVATION && in->chip == op->chip && weft_value_elements(out) &&
                   weft_block_in_plane(in->rank, in->extents, op->starts[0], out->extents, &row0, &col0);
  }
  for (uint64_t i = 0; i < graph->op_count; i++) {
    const weft_graph_op *op = &graph->ops[i];
    for (uint32_t j = 0; a->live[i] && j < op->in_count; j++) {
      uint32_t producer = graph->values[op->ins[j]].producer;
      if (producer == WEFT_NONE || !l->folded[producer]) continue;
      const weft_graph_op *slice = &graph->ops[producer];
      if (op->kind != WEFT_GRAPH_ASSEMBLE || op->section != slice->section || op->chip != slice->chip)
        l->folded[producer] = false;
    }
  }
  return true;
}

uint32_t weft_lower_operand(const weft_lowering *l, uint32_t value) {
  uint32_t producer = l->graph->values[value].producer;
  return producer != WEFT_NONE && l->folded[producer] ? l->graph->ops[producer].ins[0] : value;
}

/** Whether operand `p` of the op may stay in the accumulator its producer leaves it in. */
static bool may_chain(const weft_graph *graph, const analysis *a, const weft_graph_op *op, uint32_t p) {
  const weft_value *x = &graph->values[op->ins[p]], *out = &graph->values[op->out];
  if (x->producer == WEFT_NONE || x->role != WEFT_ROLE_ACTIVATION || x->has_partial || a->reads[op->ins[p]] != 1)
    return false;
  const weft_graph_op *producer = &graph->ops[x->producer];
  bool moves = producer->kind == WEFT_GRAPH_SLICE || producer->kind == WEFT_GRAPH_ASSEMBLE ||
               producer->kind == WEFT_GRAPH_TRANSPOSE || producer->kind == WEFT_GRAPH_GATHER ||
               producer->kind == WEFT_GRAPH_UPDATE;
  return producer->section == op->section && producer->chip == op->chip && !moves && weft_same_extents(x, out) &&
         (x->dtype == WEFT_FP32 || x->dtype == WEFT_INT32 || x->dtype == WEFT_INT64);
}

/** 1 + the operand the op takes from an accumulator, 0 when it starts a unit. */
static uint8_t chained_operand(const weft_graph *graph, const analysis *a, const weft_graph_op *op) {
  switch (op->kind) {
  case WEFT_GRAPH_BIAS:
  case WEFT_GRAPH_RELU:
  case WEFT_GRAPH_REQUANT:
  case WEFT_GRAPH_CLAMP: return may_chain(graph, a, op, 0);
  case WEFT_GRAPH_POINTWISE: break;
  default: return 0;
  }
  if (weft_body_has(&op->body, WEFT_BODY_SELECT)) return 0;
  for (uint32_t i = 0; i < op->in_count; i++)
    if (!weft_same_extents(&graph->values[op->ins[i]], &graph->values[op->out])) return 0;
  for (uint32_t i = 0; i < op->in_count; i++)
    if (may_chain(graph, a, op, i)) return (uint8_t)(i + 1);
  return 0;
}

static bool form_units(weft_lowering *l, analysis *a) {
  const weft_graph *graph = l->graph;
  l->chained = WEFT_NEW_ARRAY(l->scratch, uint8_t, graph->op_count);
  a->unit = WEFT_NEW_ARRAY(l->scratch, uint32_t, graph->op_count);
  a->units = WEFT_NEW_ARRAY(l->scratch, weft_unit, graph->op_count);
  uint32_t *next = WEFT_NEW_ARRAY(l->scratch, uint32_t, graph->op_count);
  if (!l->chained || !a->unit || !a->units || !next) return false;
  memset(next, 0xFF, graph->op_count * sizeof *next);
  for (uint32_t i = 0; i < graph->op_count; i++) {
    if (!a->live[i] || l->folded[i]) continue;
    l->chained[i] = chained_operand(graph, a, &graph->ops[i]);
    if (l->chained[i]) next[graph->values[graph->ops[i].ins[l->chained[i] - 1]].producer] = i;
  }
  for (uint32_t i = 0; i < graph->op_count; i++) {
    if (!a->live[i] || l->folded[i] || l->chained[i]) continue;
    weft_unit *unit = &a->units[a->unit_count];
    for (uint32_t op = i; op != WEFT_NONE; op = next[op]) unit->op_count++;
    unit->ops = WEFT_NEW_ARRAY(l->scratch, uint32_t, unit->op_count);
    if (!unit->ops) return false;
    uint32_t at = 0;
    for (uint32_t op = i; op != WEFT_NONE; op = next[op]) {
      a->unit[op] = a->unit_count;
      unit->ops[at++] = op;
    }
    a->unit_count++;
  }
  return true;
}

/* ---- sections -----------------------------------------------------------------------------------------------------
 */

static uint32_t stored_value(const weft_graph *graph, const weft_unit *unit) {
  return graph->ops[unit->ops[unit->op_count - 1]].out;
}

/** The latest level of a unit that reads each state as the step finds it, and the section it is in. */
typedef struct state_reads {
  uint32_t *level, *section; /**< by value; level plus 1, 0 when nobody does */
} state_reads;

static bool raise_level(weft_unit *unit, uint32_t level) {
  if (level <= unit->level) return false;
  unit->level = level;
  return true;
}

/** Levels one unit; what it reads comes before it in the order of last ops. */
static bool level_unit(const weft_lowering *l, const analysis *a, uint32_t index, state_reads *reads) {
  const weft_graph *graph = l->graph;
  weft_unit *unit = &a->units[index];
  bool raised = false;
  for (uint32_t m = 0; m < unit->op_count; m++) {
    const weft_graph_op *op = &graph->ops[unit->ops[m]];
    uint32_t state = graph->values[op->out].updates;
    for (uint32_t j = 0; j < op->in_count; j++) {
      uint32_t value = weft_lower_operand(l, op->ins[j]), producer = graph->values[value].producer;
      if (producer == WEFT_NONE || !a->live[producer] || a->unit[producer] == index) continue;
      if (graph->ops[producer].section == op->section)
        raised |= raise_level(unit, a->units[a->unit[producer]].level + 1);
    }
    if (state && reads->level[state - 1] && reads->section[state - 1] == op->section)
      raised |= raise_level(unit, reads->level[state - 1]);
    for (uint32_t j = 0; j < op->in_count; j++) {
      uint32_t value = weft_lower_operand(l, op->ins[j]);
      if (graph->values[value].role != WEFT_ROLE_STATE || graph->values[value].updates || state == value + 1) continue;
      if (reads->section[value] != op->section) reads->level[value] = 0;
      reads->section[value] = op->section;
      if (unit->level + 1 > reads->level[value]) reads->level[value] = unit->level + 1;
    }
  }
  return raised;
}

/** A unit goes one part after every unit of its own section whose tensor it reads, and one that stores a state after
 * those that read it as it was. Units are levelled in the order of their last ops, in which what they read comes first;
 * a reader of a state may end after its update, so that is repeated until nothing moves. */
static bool level_units(weft_lowering *l, analysis *a) {
  const weft_graph *graph = l->graph;
  state_reads reads = {WEFT_NEW_ARRAY(l->scratch, uint32_t, graph->value_count),
                       WEFT_NEW_ARRAY(l->scratch, uint32_t, graph->value_count)};
  if (!reads.level || !reads.section) return false;
  for (bool raised = true; raised;) {
    raised = false;
    for (uint32_t i = 0; i < graph->op_count; i++) {
      if (!a->live[i] || l->folded[i]) continue;
      const weft_unit *unit = &a->units[a->unit[i]];
      if (unit->ops[unit->op_count - 1] == i) raised |= level_unit(l, a, a->unit[i], &reads);
    }
  }
  return true;
}

static weft_status add_tensor(weft_lowering *l, uint32_t id) {
  weft_program *program = l->program;
  const weft_value *value = &l->graph->values[id];
  if (!weft_arena_grow(program->arena, &program->tensors, program->tensor_count, &l->tensor_capacity,
                       sizeof *program->tensors))
    return weft_error_memory(l->diag);
  weft_plane plane = weft_value_plane(value);
  bool source = weft_value_is_given(value);
  weft_tensor *tensor = &program->tensors[program->tensor_count];
  *tensor = (weft_tensor){
      .id = (uint32_t)program->tensor_count,
      .name = weft_arena_string(program->arena, value->name, strlen(value->name)),
      .role = value->role,
      .elems = {plane.rows, plane.cols},
      .tiles = {plane.rows_t, plane.cols_t},
      .dtype = value->dtype,
      .init = source ? value->init : (weft_init){.kind = WEFT_INIT_ZERO},
      .has_range = value->has_range,
      .range = value->range,
      .chip = l->graph->chips > 1 ? value->chip : WEFT_NONE,
      .has_partial = value->has_partial,
      .partial = value->partial,
      .has_shard = value->has_shard,
      .shard = value->shard,
  };
  uint32_t rank = value->has_shard ? value->full_rank : value->rank;
  const uint64_t *extents = value->has_shard ? value->full_extents : value->extents;
  if (value->has_shard) tensor->shard.of = weft_arena_string(program->arena, value->shard.of, strlen(value->shard.of));
  if (rank != 2 && rank) { // a scalar is a plane of one element
    uint64_t *shape = WEFT_NEW_ARRAY(program->arena, uint64_t, rank);
    if (shape && rank) memcpy(shape, extents, rank * sizeof *shape);
    tensor->shape = shape;
    tensor->shape_count = rank;
  }
  if (tensor->init.kind == WEFT_INIT_VALUES || tensor->init.kind == WEFT_INIT_FLOAT_VALUES) {
    uint64_t count = tensor->init.values.count;
    int64_t *items = WEFT_NEW_ARRAY(program->arena, int64_t, count);
    if (items && count) memcpy(items, value->init.values.items, count * sizeof *items);
    tensor->init.values.items = items;
  }
  l->tensor_of[id] = (uint32_t)program->tensor_count++;
  return weft_lower_memory(l);
}

static weft_status add_tensors(weft_lowering *l, const analysis *a) {
  const weft_graph *graph = l->graph;
  bool *stored = WEFT_NEW_ARRAY(l->scratch, bool, graph->value_count);
  l->tensor_of = WEFT_NEW_ARRAY(l->scratch, uint32_t, graph->value_count);
  if (!stored || !l->tensor_of) return weft_error_memory(l->diag);
  memset(l->tensor_of, 0xFF, graph->value_count * sizeof *l->tensor_of);
  for (uint32_t i = 0; i < a->unit_count; i++) stored[stored_value(graph, &a->units[i])] = true;
  for (uint32_t v = 0; v < graph->value_count; v++) {
    if ((graph->values[v].producer != WEFT_NONE && !stored[v]) || graph->values[v].updates) continue;
    weft_status status = add_tensor(l, v);
    if (status != WEFT_OK) return status;
  }
  for (uint32_t v = 0; v < graph->value_count; v++) // a state is one tensor, before and after
    if (graph->values[v].updates) l->tensor_of[v] = l->tensor_of[graph->values[v].updates - 1];
  return WEFT_OK;
}

static uint64_t unit_k_tiles(const weft_graph *graph, const weft_unit *unit) {
  const weft_graph_op *op = &graph->ops[unit->ops[0]];
  return op->kind == WEFT_GRAPH_MATMUL ? weft_value_plane(&graph->values[op->ins[0]]).cols_t : 0;
}

static weft_span span_from(uint64_t begin, uint64_t end) { return (weft_span){begin, end}; }

/** Writes one part of a graph section: its units of one level. */
static weft_status lower_section(weft_lowering *l, const analysis *a, uint32_t section, uint32_t level,
                                 const uint32_t *members, uint32_t member_count) {
  weft_program *program = l->program;
  weft_section out = {.stages.begin = program->stage_count,
                      .buffers.begin = program->buffer_count,
                      .edges.begin = program->edge_count,
                      .items.begin = program->work.item_count,
                      .output = WEFT_NONE};
  const char *name = l->graph->section_names[section];
  out.name = level ? weft_arena_printf(program->arena, "%s.%u", name, level)
                   : weft_arena_string(program->arena, name, strlen(name));
  bool product = false;
  for (uint32_t i = 0; i < member_count; i++) {
    const weft_unit *unit = &a->units[members[i]];
    if (unit->level != level) continue;
    if (out.output == WEFT_NONE) out.output = l->tensor_of[stored_value(l->graph, unit)];
    product = product || l->graph->ops[unit->ops[0]].kind == WEFT_GRAPH_MATMUL;
    out.k_tiles = weft_max_u64(out.k_tiles, unit_k_tiles(l->graph, unit));
    weft_status status = weft_lower_unit(l, unit);
    if (status != WEFT_OK) return status;
  }
  if (!product) out.k_tiles = 1;
  out.stages = span_from(out.stages.begin, program->stage_count);
  out.buffers = span_from(out.buffers.begin, program->buffer_count);
  out.edges = span_from(out.edges.begin, program->edge_count);
  out.items = span_from(out.items.begin, program->work.item_count);
  if (!weft_arena_grow(program->arena, &program->sections, program->section_count, &l->section_capacity, sizeof out))
    return weft_error_memory(l->diag);
  program->sections[program->section_count++] = out;
  program->work.k_tiles = out.k_tiles;
  return weft_lower_memory(l);
}

/** Units by graph section, in order: `order` lists them, section s has [starts[s], starts[s + 1]). */
static bool sort_units(weft_lowering *l, const analysis *a, uint32_t **order, uint32_t **starts) {
  const weft_graph *graph = l->graph;
  *order = WEFT_NEW_ARRAY(l->scratch, uint32_t, a->unit_count);
  *starts = WEFT_NEW_ARRAY(l->scratch, uint32_t, (uint64_t)graph->section_count + 2);
  if (!*order || !*starts) return false;
  uint32_t *at = *starts + 1;
  for (uint32_t i = 0; i < a->unit_count; i++) at[graph->ops[a->units[i].ops[0]].section + 1]++;
  for (uint32_t s = 0; s < graph->section_count; s++) at[s + 1] += at[s];
  for (uint32_t i = 0; i < a->unit_count; i++) (*order)[at[graph->ops[a->units[i].ops[0]].section]++] = i;
  return true;
}

static weft_status lower_sections(weft_lowering *l, const analysis *a) {
  uint32_t *order, *starts;
  if (!sort_units(l, a, &order, &starts)) return weft_error_memory(l->diag);
  for (uint32_t s = 0; s < l->graph->section_count; s++) {
    const uint32_t *members = order + starts[s];
    uint32_t count = starts[s + 1] - starts[s], levels = 0;
    for (uint32_t i = 0; i < count; i++)
      if (a->units[members[i]].level + 1 > levels) levels = a->units[members[i]].level + 1;
    for (uint32_t level = 0; level < levels; level++) {
      weft_status status = lower_section(l, a, s, level, members, count);
      if (status != WEFT_OK) return status;
    }
  }
  return WEFT_OK;
}

/* ---- the whole ----------------------------------------------------------------------------------------------------
 */

static weft_status lower_graph(weft_lowering *l) {
  weft_program *program = l->program;
  analysis a = {0};
  if (!find_live(l, &a) || !find_folded(l, &a) || !form_units(l, &a) || !level_units(l, &a))
    return weft_error_memory(l->diag);
  weft_status status = add_tensors(l, &a);
  if (status == WEFT_OK) status = lower_sections(l, &a);
  if (status != WEFT_OK) return status;
  program->arithmetic = WEFT_ARITHMETIC_VERSION;
  program->requires_handshakes |= 1u << WEFT_HANDSHAKE_FIFO;
  if (l->graph->chips > 1) {
    program->chips = l->graph->chips;
    program->requires_interconnect = 1u << WEFT_INTERCONNECT_POINT_TO_POINT | 1u << WEFT_INTERCONNECT_CHIP_LINK;
  }
  return weft_lower_memory(l);
}

weft_status weft_graph_lower(const weft_graph *graph, weft_program **program, weft_diag *diag) {
  *program = NULL;
  weft_status status = weft_graph_check(graph, diag);
  if (status != WEFT_OK) return status;
  weft_arena *scratch = weft_arena_new();
  if (!scratch) return weft_error_memory(diag);
  weft_graph *copy = copy_read_outputs(graph, scratch, diag);
  weft_lowering l = {.graph = copy, .scratch = scratch, .diag = diag};
  status = WEFT_UNAVAILABLE; // a graph that was checked is copied unless memory is exhausted
  if (copy) {
    l.program = weft_program_new(graph->name);
    status = l.program ? lower_graph(&l) : weft_error_memory(diag);
  }
  if (status == WEFT_OK) status = weft_program_validate(l.program, 1, NULL, diag);
  if (status == WEFT_OK) {
    *program = l.program;
  } else {
    weft_program_free(l.program);
  }
  weft_graph_free(copy);
  weft_arena_free(scratch);
  return status;
}
