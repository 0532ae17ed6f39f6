/* Build: writes the machine graph down, level by level. */
#include "machine_private.h"

#include "names_private.h"

#include <string.h>

typedef struct builder {
  machine *m;
  const weft_graph *source;
  weft_graph *graph;
  names tensors, ops, sections;
  uint32_t *made;   /* by op, then chip: the result's value */
  uint32_t **parts; /* by op, then chip: the nodes' values */
  uint32_t level;   /* of the section at hand */
  bool failed;
} builder;

static const char *tensor_name(builder *b, uint32_t value, const char *suffix, uint32_t chip) {
  const char *name = names_new(&b->tensors, b->source->values[value].name, suffix, chip, b->m->p->chips > 1);
  b->failed |= !name;
  return name;
}

static const char *op_name(builder *b, const char *base, const char *suffix, uint32_t chip) {
  const char *name = names_new(&b->ops, base, suffix, chip, b->m->p->chips > 1);
  b->failed |= !name;
  return name;
}

/* ---- values
 * ----------------------------------------------------------------------------------------------------------- */

/* The plane coordinates of a block that is a rectangle of its value's plane. */
static void set_shard(const builder *b, weft_value *made, uint32_t value, const weft_block *block, bool writer) {
  const weft_value *whole = &b->source->values[value];
  made->has_shard = true;
  made->shard = (weft_shard){.of = whole->name, .writer = writer};
  weft_plane_extents(whole->rank, whole->extents, &made->shard.rows, &made->shard.cols);
  made->full_rank = whole->rank;
  memcpy(made->full_extents, whole->extents, sizeof made->full_extents);
  for (uint32_t d = 0; d + 1 < whole->rank; d++)
    made->shard.row0 = made->shard.row0 * whole->extents[d] + block->begin[d];
  if (whole->rank) made->shard.col0 = block->begin[whole->rank - 1];
}

/* A block of a source value on a chip, with the source's format and range. */
static weft_value block_value(const builder *b, uint32_t value, const weft_block *block, uint32_t chip) {
  const weft_value *source = &b->source->values[value];
  weft_value made = {.role = WEFT_ROLE_ACTIVATION,
                     .dtype = source->dtype,
                     .rank = source->rank,
                     .has_range = source->has_range,
                     .range = source->range,
                     .init = {.kind = WEFT_INIT_ZERO},
                     .producer = WEFT_NONE,
                     .chip = (uint16_t)chip};
  for (uint32_t d = 0; d < block->rank; d++) made.extents[d] = block->end[d] - block->begin[d];
  return made;
}

static uint32_t add_value(builder *b, const weft_value *made) {
  uint32_t id = b->failed ? WEFT_NONE : weft_graph_add_value(b->graph, made);
  b->failed |= id == WEFT_NONE;
  return id;
}

static uint32_t add_shard(builder *b, const record *r) {
  const weft_value *source = &b->source->values[r->value];
  weft_value made = block_value(b, r->value, &r->block, r->chip);
  made.role = source->role;
  made.init = source->init;
  made.name = tensor_name(b, r->value, "", r->chip);
  weft_block whole;
  weft_block_whole(source, &whole);
  // on one chip the value itself, unless blocks of it have been read before
  if (b->m->p->chips > 1 || !weft_block_equal(&whole, &r->block) || strcmp(made.name, source->name) != 0)
    set_shard(b, &made, r->value, &r->block, source->role != WEFT_ROLE_STATE || r->writer);
  return add_value(b, &made);
}

/* The machine graph's value of a record; inputs and parameters are made at their first use. */
static uint32_t value_of(builder *b, uint32_t index) {
  record *r = &b->m->records[index];
  if (r->kind == RECORD_HAVE) return b->made[at_chip(b->m, b->source->values[r->value].producer, r->chip)];
  if (r->kind == RECORD_FOREIGN) return value_of(b, r->pieces[0]);
  if (r->kind == RECORD_SHARD && r->id == WEFT_NONE) r->id = add_shard(b, r);
  return r->id;
}

/* A result: an output when its record says so. */
static uint32_t add_result(builder *b, uint32_t value, const weft_block *block, uint32_t chip, const char *suffix,
                           const record *output) {
  weft_value made = block_value(b, value, block, chip);
  made.name = tensor_name(b, value, suffix, chip);
  if (output && output->output) {
    made.role = WEFT_ROLE_OUTPUT;
    if (b->m->p->chips > 1) set_shard(b, &made, value, block, output->writer);
  }
  return add_value(b, &made);
}

/* ---- ops
 * ---------------------------------------------------------------------------------------------------------------- */

static void add_op(builder *b, weft_graph_op *made, uint32_t chip) {
  made->chip = (uint16_t)chip;
  made->section = b->graph->section_count - 1;
  if (!b->failed) b->failed = weft_graph_add_op(b->graph, made) == WEFT_NONE;
}

/* A copy of a source op without its iteration space, which follows from the new extents. */
static weft_graph_op op_like(const weft_graph_op *source) {
  weft_graph_op made = *source;
  made.factor_count = 0;
  made.in_factors = NULL;
  return made;
}

static const char *reader_name(const builder *b, const item *work) {
  const weft_graph *source = b->source;
  return work->op == WEFT_NONE ? source->values[b->m->records[work->record].value].name : source->ops[work->op].name;
}

static void build_slice(builder *b, const item *work) {
  record *r = &b->m->records[work->record];
  const weft_block *from = &b->m->records[r->source].block;
  uint64_t starts[1][WEFT_MAX_RANK] = {0};
  for (uint32_t d = 0; d < r->block.rank; d++) starts[0][d] = r->block.begin[d] - from->begin[d];
  uint32_t in = value_of(b, r->source);
  r->id = add_result(b, r->value, &r->block, r->chip, ".slice", r);
  weft_graph_op made = {.kind = WEFT_GRAPH_SLICE,
                        .name = op_name(b, reader_name(b, work), ".slice", r->chip),
                        .ins = &in,
                        .in_count = 1,
                        .out = r->id,
                        .starts = (const uint64_t(*)[WEFT_MAX_RANK])starts};
  add_op(b, &made, r->chip);
}

static void build_gather(builder *b, const item *work) {
  record *r = &b->m->records[work->record];
  uint32_t *ins = WEFT_NEW_ARRAY(b->m->arena, uint32_t, r->piece_count);
  uint64_t(*starts)[WEFT_MAX_RANK] = weft_arena_array(b->m->arena, r->piece_count, sizeof *starts);
  if (!ins || !starts) {
    b->failed = true;
    return;
  }
  for (uint32_t i = 0; i < r->piece_count; i++) {
    const weft_block *piece = &b->m->records[r->pieces[i]].block;
    ins[i] = value_of(b, r->pieces[i]);
    for (uint32_t d = 0; d < r->block.rank; d++) starts[i][d] = piece->begin[d] - r->block.begin[d];
  }
  r->id = add_result(b, r->value, &r->block, r->chip, ".gather", r);
  weft_graph_op made = {.kind = WEFT_GRAPH_ASSEMBLE,
                        .name = op_name(b, reader_name(b, work), ".gather", r->chip),
                        .ins = ins,
                        .in_count = r->piece_count,
                        .out = r->id,
                        .starts = (const uint64_t(*)[WEFT_MAX_RANK])starts};
  add_op(b, &made, r->chip);
}

/* The record under which a chip's own result is an output; NULL when it is none. */
static const record *output_record(const builder *b, uint32_t value, uint32_t chip) {
  for (uint32_t r = b->m->heads[at_chip(b->m, value, chip)]; r != WEFT_NONE; r = b->m->records[r].next)
    if (b->m->records[r].kind == RECORD_HAVE) return &b->m->records[r];
  return NULL;
}

/* The chip's block of what the step leaves of a state. */
static uint32_t add_next_state(builder *b, uint32_t value, const weft_block *block, uint32_t chip) {
  uint32_t state = b->source->values[value].updates - 1, found = WEFT_NONE;
  for (uint32_t r = b->m->heads[at_chip(b->m, state, chip)]; r != WEFT_NONE; r = b->m->records[r].next)
    if (b->m->records[r].kind == RECORD_SHARD && weft_block_equal(&b->m->records[r].block, block)) found = r;
  weft_value made = block_value(b, value, block, chip);
  made.name = tensor_name(b, value, "", chip);
  made.role = WEFT_ROLE_STATE;
  b->failed |= found == WEFT_NONE;
  if (!b->failed) made.updates = value_of(b, found) + 1;
  return add_value(b, &made);
}

static uint32_t add_own_result(builder *b, const item *work) {
  const weft_partitioner *p = b->m->p;
  const weft_graph_op *source = &b->source->ops[work->op];
  weft_block block;
  weft_result_block(p, source, &p->plan[work->op], work->chip, &block);
  if (b->source->values[source->out].updates) {
    uint32_t state = add_next_state(b, source->out, &block, work->chip);
    b->made[at_chip(b->m, work->op, work->chip)] = state;
    return state;
  }
  uint32_t id = add_result(b, source->out, &block, work->chip, "", output_record(b, source->out, work->chip));
  b->made[at_chip(b->m, work->op, work->chip)] = id;
  return id;
}

/* A slice or an assemble on a chip: the pieces that lie in its block. What moves nothing is the piece itself. */
static void build_move(builder *b, const item *work) {
  const weft_graph_op *source = &b->source->ops[work->op];
  const uint64_t place = at_chip(b->m, work->op, work->chip);
  const uint32_t *wanted = b->m->wanted[place];
  uint32_t *ins = WEFT_NEW_ARRAY(b->m->arena, uint32_t, source->in_count), count = 0;
  uint64_t(*starts)[WEFT_MAX_RANK] = weft_arena_array(b->m->arena, source->in_count, sizeof *starts);
  weft_block block;
  weft_result_block(b->m->p, source, &b->m->p->plan[work->op], work->chip, &block);
  b->failed |= !ins || !starts;
  bool moves = false;
  for (uint32_t i = 0; i < source->in_count && !b->failed; i++) {
    if (wanted[i] == WEFT_NONE) continue;
    const weft_block *piece = &b->m->records[wanted[i]].block;
    ins[count] = value_of(b, wanted[i]);
    for (uint32_t d = 0; d < block.rank; d++) {
      uint64_t start = source->starts[i][d] + piece->begin[d];
      starts[count][d] = source->kind == WEFT_GRAPH_ASSEMBLE ? start - block.begin[d] : 0;
      moves |= piece->end[d] - piece->begin[d] != block.end[d] - block.begin[d];
    }
    count++;
  }
  const record *output = output_record(b, source->out, work->chip);
  for (uint32_t i = 0; i < source->in_count && !moves; i++) // a state is copied before it is replaced
    moves = wanted[i] != WEFT_NONE && is_state(b->m, b->m->records[wanted[i]].value) &&
            b->m->records[wanted[i]].kind == RECORD_SHARD;
  if (count == 1 && !moves && !(output && output->output)) {
    b->made[place] = ins[0];
    return;
  }
  weft_graph_op made = {.kind = WEFT_GRAPH_ASSEMBLE,
                        .name = op_name(b, source->name, "", work->chip),
                        .ins = ins,
                        .in_count = count,
                        .out = add_own_result(b, work),
                        .starts = (const uint64_t(*)[WEFT_MAX_RANK])starts};
  add_op(b, &made, work->chip);
}

static void build_op(builder *b, const item *work) {
  const weft_graph_op *source = &b->source->ops[work->op];
  if (source->kind == WEFT_GRAPH_SLICE || source->kind == WEFT_GRAPH_ASSEMBLE) {
    build_move(b, work);
    return;
  }
  const uint32_t *wanted = b->m->wanted[at_chip(b->m, work->op, work->chip)];
  uint32_t *ins = WEFT_NEW_ARRAY(b->m->arena, uint32_t, source->in_count);
  if (!ins) {
    b->failed = true;
    return;
  }
  for (uint32_t i = 0; i < source->in_count; i++) ins[i] = value_of(b, wanted[i]);
  weft_graph_op made = op_like(source);
  made.ins = ins;
  made.out = add_own_result(b, work);
  made.name = op_name(b, source->name, "", work->chip);
  if (source->kind == WEFT_GRAPH_POINTWISE) {
    weft_block block;
    weft_result_block(b->m->p, source, &b->m->p->plan[work->op], work->chip, &block);
    made.body = weft_body_at(b->m->arena, &source->body, &block);
    b->failed |= !made.body.nodes;
  }
  add_op(b, &made, work->chip);
}

/* ---- folds over chips
 * --------------------------------------------------------------------------------------------------------- */

static void build_node(builder *b, const item *work, const node *part, const uint32_t *wanted, uint32_t *id) {
  const weft_partitioner *p = b->m->p;
  const weft_graph_op *source = &b->source->ops[work->op];
  weft_block block;
  uint32_t *ins = WEFT_NEW_ARRAY(b->m->arena, uint32_t, source->in_count);
  b->failed |= !ins;
  for (uint32_t i = 0; ins && i < source->in_count; i++) ins[i] = value_of(b, wanted[i]);
  weft_result_block(p, source, &p->plan[work->op], work->chip, &block);
  weft_value value = block_value(b, source->out, &block, work->chip);
  value.dtype = weft_partial_format(b->source, source);
  value.has_range = false;
  value.has_partial = true;
  value.partial = (weft_partial){source->factors[weft_reduce_factor(source)].pool, part->first, part->count,
                                 weft_reduce_cut(p, source, &p->plan[work->op])->segments};
  value.name = tensor_name(b, source->out, ".partial", work->chip);
  *id = add_value(b, &value);
  weft_graph_op made = op_like(source);
  if (made.segments) made.segments = part->count;
  if (source->kind == WEFT_GRAPH_GATHER) made.low += (int64_t)b->m->records[wanted[0]].block.begin[0];
  made.ins = ins;
  made.out = *id;
  made.name = op_name(b, source->name, ".partial", work->chip);
  add_op(b, &made, work->chip);
}

static void build_nodes(builder *b, const item *work) {
  uint64_t place = at_chip(b->m, work->op, work->chip);
  uint32_t in_count = b->source->ops[work->op].in_count;
  node nodes[MAX_NODES];
  uint32_t count = machine_nodes(b->m, work->op, work->chip, nodes);
  b->parts[place] = WEFT_NEW_ARRAY(b->m->arena, uint32_t, count);
  b->failed |= !b->parts[place];
  for (uint32_t n = 0; n < count && !b->failed; n++)
    build_node(b, work, &nodes[n], &b->m->wanted[place][n * in_count], &b->parts[place][n]);
}

static void build_reduce(builder *b, const item *work) {
  const weft_partitioner *p = b->m->p;
  const weft_graph_op *source = &b->source->ops[work->op];
  const weft_cut *cut = weft_reduce_cut(p, source, &p->plan[work->op]);
  uint32_t *ins = WEFT_NEW_ARRAY(b->m->arena, uint32_t, cut->segments);
  uint32_t count = 0;
  b->failed |= !ins;
  for (uint32_t part = 0; part < weft_cut_parts(p, cut) && !b->failed; part++) {
    node nodes[MAX_NODES];
    uint32_t chip = weft_cut_chip(p, cut, part, work->chip), held = machine_nodes(b->m, work->op, chip, nodes);
    for (uint32_t n = 0; n < held; n++) ins[count++] = b->parts[at_chip(b->m, work->op, chip)][n];
  }
  weft_graph_op made = {.kind = WEFT_GRAPH_ALL_REDUCE,
                        .name = op_name(b, source->name, ".reduce", work->chip),
                        .ins = ins,
                        .in_count = count,
                        .out = add_own_result(b, work),
                        .pool = source->factors[weft_reduce_factor(source)].pool};
  add_op(b, &made, work->chip);
}

/* ---- sections
 * -------------------------------------------------------------------------------------------------------------------
 */

static const char *const section_suffix[] = {[ITEM_SLICE] = ".slice",
                                             [ITEM_GATHER] = ".gather",
                                             [ITEM_OP] = "",
                                             [ITEM_NODES] = ".partial",
                                             [ITEM_REDUCE] = ".reduce"};

/* A section is called after the first source section that has work in it. */
static void open_section(builder *b, const item *work) {
  const weft_graph *source = b->source;
  const char *base = work->op == WEFT_NONE ? source->values[b->m->records[work->record].value].name
                                           : source->section_names[source->ops[work->op].section];
  const char *name = names_new(&b->sections, base ? base : "section", section_suffix[work->kind], 0, false);
  b->failed |= !name;
  if (name) weft_graph_section(b->graph, name);
  b->level = work->level;
}

static void build_item(builder *b, const item *work) {
  if (work->level != b->level) open_section(b, work);
  if (b->failed) return;
  if (work->kind == ITEM_SLICE)
    build_slice(b, work);
  else if (work->kind == ITEM_GATHER)
    build_gather(b, work);
  else if (work->kind == ITEM_OP)
    build_op(b, work);
  else if (work->kind == ITEM_NODES)
    build_nodes(b, work);
  else
    build_reduce(b, work);
}

static bool builder_start(builder *b, machine *m) {
  const weft_graph *source = m->p->graph;
  uint64_t places = source->op_count * m->p->chips;
  *b = (builder){.m = m, .source = source, .level = NO_LEVEL};
  b->tensors.arena = b->ops.arena = b->sections.arena = m->arena;
  b->made = WEFT_NEW_ARRAY(m->arena, uint32_t, places);
  b->parts = WEFT_NEW_ARRAY(m->arena, uint32_t *, places);
  b->graph = weft_graph_new(source->name, m->p->diag);
  if (!b->made || !b->parts || !b->graph) return false;
  b->graph->chips = m->p->chips;
  return true;
}

static weft_status build_all(machine *m, weft_graph **graph) {
  schedule s = {0};
  builder b = {0};
  weft_status status = machine_demand(m);
  if (status == WEFT_OK) status = machine_levels(m, &s);
  if (status != WEFT_OK) return status;
  if (!builder_start(&b, m)) b.failed = true;
  uint64_t errors = weft_diag_errors(m->p->diag);
  for (uint64_t i = 0; i < s.count && !b.failed; i++) build_item(&b, &s.items[i]);
  if (!b.failed) {
    *graph = b.graph;
    return WEFT_OK;
  }
  weft_graph_free(b.graph);
  return weft_diag_errors(m->p->diag) > errors ? WEFT_INVALID : weft_error_memory(m->p->diag);
}

weft_status weft_build_machine(weft_partitioner *p, weft_graph **graph) {
  machine m = {.p = p, .arena = weft_arena_new()};
  if (!m.arena) return weft_error_memory(p->diag);
  weft_status status = build_all(&m, graph);
  weft_arena_free(m.arena);
  return status;
}
