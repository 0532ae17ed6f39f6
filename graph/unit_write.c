/* The stages, buffers and edges of one unit. */
#include "unit_private.h"

#include <string.h>

static const char *text_of(weft_lowering *l, const char *name) {
  return weft_arena_string(l->program->arena, name, strlen(name));
}

static uint32_t add_buffer(unit_plan *p, const char *name, weft_buffer_kind kind, uint64_t depth, uint64_t tiles,
                           weft_format dtype) {
  weft_lowering *l = p->l;
  weft_program *program = l->program;
  if (!weft_arena_grow(program->arena, &program->buffers, program->buffer_count, &l->buffer_capacity,
                       sizeof *program->buffers))
    return 0;
  weft_buffer buffer = {.id = (uint32_t)program->buffer_count,
                        .name = text_of(l, name),
                        .kind = kind,
                        .depth_pages = depth,
                        .page_tiles = tiles,
                        .dtype = dtype,
                        .origin = WEFT_NONE,
                        .alias_of = WEFT_NONE};
  buffer.space = kind == WEFT_BUFFER_ACCUMULATOR ? WEFT_MEM_ACC : WEFT_MEM_LOCAL;
  if (l->graph->chips > 1) buffer.site = (weft_optional_site){true, {0, 0, p->chip}};
  program->buffers[program->buffer_count++] = buffer;
  return buffer.id;
}

static void add_edge(unit_plan *p, uint32_t from, uint32_t buffer, uint32_t to, weft_handshake_kind handshake) {
  weft_lowering *l = p->l;
  weft_program *program = l->program;
  uint32_t *readers = WEFT_NEW_ARRAY(program->arena, uint32_t, 1);
  if (!readers ||
      !weft_arena_grow(program->arena, &program->edges, program->edge_count, &l->edge_capacity, sizeof *program->edges))
    return;
  *readers = to;
  program->requires_handshakes |= 1u << handshake;
  program->edges[program->edge_count] = (weft_edge){.id = (uint32_t)program->edge_count,
                                                    .from = from,
                                                    .buffer = buffer,
                                                    .to = readers,
                                                    .to_count = 1,
                                                    .handshake = handshake};
  program->edge_count++;
}

/** Appends a stage with room for its buffers; NULL without memory. */
static weft_stage *add_stage(unit_plan *p, const char *name, weft_stage_kind kind, uint32_t item, uint32_t in_count,
                             const uint32_t *ins, uint32_t out) {
  weft_lowering *l = p->l;
  weft_program *program = l->program;
  uint32_t *in_copy = WEFT_NEW_ARRAY(program->arena, uint32_t, in_count);
  uint32_t *out_copy = WEFT_NEW_ARRAY(program->arena, uint32_t, 1);
  if (!in_copy || !out_copy ||
      !weft_arena_grow(program->arena, &program->stages, program->stage_count, &l->stage_capacity,
                       sizeof *program->stages))
    return NULL;
  if (in_count) memcpy(in_copy, ins, in_count * sizeof *ins);
  *out_copy = out;
  weft_stage *stage = &program->stages[program->stage_count];
  *stage = (weft_stage){.id = (uint32_t)program->stage_count,
                        .name = text_of(l, name),
                        .kind = kind,
                        .ins = in_copy,
                        .in_count = in_count,
                        .outs = out_copy,
                        .out_count = out == WEFT_NONE ? 0 : 1,
                        .item = item,
                        .origin = WEFT_NONE};
  stage->role = kind == WEFT_STAGE_LOAD || kind == WEFT_STAGE_STORE ? WEFT_SITE_MOVEMENT : WEFT_SITE_COMPUTE;
  program->stage_count++;
  return stage;
}

static uint32_t add_item(unit_plan *p) {
  weft_work_list *work = &p->l->program->work;
  if (!weft_arena_grow(p->l->program->arena, &work->items, work->item_count, &p->l->item_capacity, sizeof *work->items))
    return 0;
  uint32_t id = (uint32_t)work->item_count++;
  work->items[id] =
      (weft_work_item){.id = id, .row0_t = p->row_t, .col0_t = p->col_t, .h_t = p->rows_t, .w_t = p->cols_t};
  return id;
}

static uint64_t pattern_tiles(const weft_access_pattern *pattern) { return pattern->block_h * pattern->block_w; }

static uint32_t next_stage(const unit_plan *p) { return (uint32_t)p->l->program->stage_count; }

static weft_stage *add_load(unit_plan *p, const char *name, uint32_t item, uint32_t in_count, const uint32_t *ins,
                            uint32_t out, uint32_t value, const weft_access_pattern *pattern, uint64_t num_blocks) {
  weft_stage *stage = add_stage(p, name, WEFT_STAGE_LOAD, item, in_count, ins, out);
  if (!stage) return NULL;
  stage->load.tensor = p->l->tensor_of[value];
  stage->load.pattern = *pattern;
  stage->load.num_blocks = num_blocks;
  stage->load.multicast = WEFT_NONE;
  return stage;
}

/** The Generic over one tile that brings an id to the front. */
static weft_compute_op *index_op(unit_plan *p, const unit_index *index) {
  weft_arena *arena = p->l->program->arena;
  weft_compute_op *op = WEFT_NEW(arena, weft_compute_op);
  weft_iter *iters = WEFT_NEW_ARRAY(arena, weft_iter, 2);
  weft_elem_access *maps = WEFT_NEW_ARRAY(arena, weft_elem_access, 1);
  if (!op || !iters || !maps) return NULL;
  iters[0] = (weft_iter){.var = WEFT_VAR_GEN_ROW, .extent = WEFT_GRAPH_TILE};
  iters[1] = (weft_iter){.var = WEFT_VAR_GEN_COL, .extent = WEFT_GRAPH_TILE};
  maps[0] = unit_map(p->l, (int64_t)(index->row * WEFT_GRAPH_TILE), WEFT_GRAPH_TILE, 1);
  op->kind = WEFT_COMPUTE_GENERIC;
  op->generic = (weft_generic){.iters = iters,
                               .iter_count = 2,
                               .ins = maps,
                               .in_count = 1,
                               .out = unit_map(p->l, 0, WEFT_GRAPH_TILE, 1),
                               .body = weft_body_copy(arena, index->body)};
  return op;
}

/** Writes the stages that leave an index at the front of a buffer, which `*buffer` becomes; the next stage reads it. */
static bool write_index(unit_plan *p, const unit_index *index, const char *name, uint32_t item, uint32_t *buffer) {
  const weft_value *ids = &p->l->graph->values[index->value];
  const char *load = weft_arena_printf(p->l->scratch, "%s.id", name);
  uint32_t first = next_stage(p);
  *buffer = add_buffer(p, ids->name, WEFT_BUFFER_FIFO, 2, 1, ids->dtype);
  if (!load || !add_load(p, load, item, 0, NULL, *buffer, index->value, &index->pattern, 1)) return false;
  add_edge(p, first, *buffer, first + 1, WEFT_HANDSHAKE_FIFO);
  if (!index->body) return true;
  const char *shift = weft_arena_printf(p->l->scratch, "%s.index", name);
  uint32_t out = add_buffer(p, ids->name, WEFT_BUFFER_FIFO, 2, 1, ids->dtype);
  weft_stage *stage = shift ? add_stage(p, shift, WEFT_STAGE_COMPUTE, item, 1, buffer, out) : NULL;
  if (!stage) return false;
  stage->compute = index_op(p, index);
  add_edge(p, first + 1, out, first + 2, WEFT_HANDSHAKE_FIFO);
  *buffer = out;
  return stage->compute != NULL;
}

static const weft_indirect_tile *indirect_term(unit_plan *p, const unit_index *index, uint32_t buffer) {
  weft_indirect_tile *term = WEFT_NEW(p->l->program->arena, weft_indirect_tile);
  if (term)
    *term = (weft_indirect_tile){.index = buffer,
                                 .tile_stride = index->tile_stride,
                                 .elems_per_tile = WEFT_GRAPH_TILE,
                                 .bound = {0, index->last}};
  return term;
}

/** One operand's Load, after the stages that find its index. */
static bool write_load(unit_plan *p, const unit_load *load, const char *name, uint32_t item, uint32_t *buffer) {
  const weft_value *value = &p->l->graph->values[load->value];
  weft_access_pattern pattern = load->pattern;
  uint32_t index = WEFT_NONE;
  if (load->index) {
    if (!write_index(p, load->index, name, item, &index)) return false;
    pattern.origin.indirect = indirect_term(p, load->index, index);
    if (!pattern.origin.indirect) return false;
  }
  *buffer = add_buffer(p, value->name, WEFT_BUFFER_FIFO, load->depth, pattern_tiles(&pattern), value->dtype);
  return add_load(p, name, item, load->index ? 1 : 0, &index, *buffer, load->value, &pattern, load->num_blocks);
}

/** Writes the loads of the unit; `stages` and `buffers` receive theirs in order. */
static bool write_loads(unit_plan *p, uint32_t item, uint32_t *stages, uint32_t *buffers) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < p->compute_count; i++)
    for (uint32_t j = 0; j < p->computes[i].in_count; j++) {
      const unit_input *in = &p->computes[i].ins[j];
      if (in->previous) continue;
      char *name = weft_arena_printf(p->l->scratch, "%s.load%u", p->computes[i].name, j);
      if (!name || !write_load(p, &in->load, name, item, &buffers[at])) return false;
      stages[at++] = next_stage(p) - 1;
    }
  return true;
}

/** The buffer that compute `i` leaves its result in. */
static uint32_t result_buffer(unit_plan *p, uint32_t i) {
  const unit_compute *c = &p->computes[i];
  if (i + 1 < p->compute_count) return add_buffer(p, c->out_name, WEFT_BUFFER_ACCUMULATOR, 1, p->page_t, c->out_dtype);
  return add_buffer(p, c->out_name, WEFT_BUFFER_FIFO, 2, p->page_t, c->out_dtype);
}

static bool write_compute(unit_plan *p, uint32_t i, uint32_t item, const uint32_t *loads, uint32_t *next_load,
                          uint32_t previous, uint32_t out) {
  unit_compute *c = &p->computes[i];
  weft_arena *arena = p->l->program->arena;
  uint32_t *ins = WEFT_NEW_ARRAY(p->l->scratch, uint32_t, c->in_count);
  weft_compute_op *op = WEFT_NEW(arena, weft_compute_op);
  if (!ins || !op) return false;
  for (uint32_t j = 0; j < c->in_count; j++) ins[j] = c->ins[j].previous ? previous : loads[(*next_load)++];
  *op = c->op;
  if (op->kind == WEFT_COMPUTE_BIAS) op->bias = ins[1];
  weft_stage *stage =
      add_stage(p, c->name, c->all_reduce ? WEFT_STAGE_ALL_REDUCE : WEFT_STAGE_COMPUTE, item, c->in_count, ins, out);
  if (!stage) return false;
  if (c->all_reduce) {
    stage->all_reduce.pool = c->pool;
    stage->all_reduce.tensor = p->l->tensor_of[p->out];
    stage->all_reduce.combine = op;
  } else {
    stage->compute = op;
  }
  return true;
}

static bool write_store(unit_plan *p, uint32_t item, uint32_t buffer, uint32_t index) {
  char *name = weft_arena_printf(p->l->scratch, "%s.store", p->computes[p->compute_count - 1].name);
  const uint32_t ins[] = {buffer, index};
  weft_stage *stage = name ? add_stage(p, name, WEFT_STAGE_STORE, item, p->store_index ? 2 : 1, ins, WEFT_NONE) : NULL;
  if (!stage) return false;
  stage->store.tensor = p->l->tensor_of[p->out];
  stage->store.pattern = p->store_index ? p->store_pattern : unit_result_pattern(p);
  stage->store.sub_blocks = (weft_pair){p->rows_t, p->page_t ? p->cols_t / p->page_t : 1};
  if (!p->store_index) return true;
  stage->store.pattern.origin.indirect = indirect_term(p, p->store_index, index);
  return stage->store.pattern.origin.indirect != NULL;
}

static bool write_computes(unit_plan *p, uint32_t item, const uint32_t *load_stages, const uint32_t *loads,
                           uint32_t *result) {
  uint32_t next_load = 0, previous = WEFT_NONE;
  for (uint32_t i = 0; i < p->compute_count; i++) {
    uint32_t stage = next_stage(p);
    for (uint32_t j = 0, at = next_load; j < p->computes[i].in_count; j++)
      if (!p->computes[i].ins[j].previous) {
        add_edge(p, load_stages[at], loads[at], stage, WEFT_HANDSHAKE_FIFO);
        at++;
      }
    if (i) add_edge(p, stage - 1, previous, stage, WEFT_HANDSHAKE_VALID_READY);
    uint32_t out = result_buffer(p, i);
    if (!write_compute(p, i, item, loads, &next_load, previous, out)) return false;
    previous = out;
  }
  *result = previous;
  return true;
}

weft_status unit_write(unit_plan *p) {
  weft_lowering *l = p->l;
  uint32_t load_count = 0;
  for (uint32_t i = 0; i < p->compute_count; i++)
    for (uint32_t j = 0; j < p->computes[i].in_count; j++) load_count += !p->computes[i].ins[j].previous;
  uint32_t item = add_item(p), result, index = WEFT_NONE;
  uint32_t *loads = WEFT_NEW_ARRAY(l->scratch, uint32_t, load_count);
  uint32_t *stages = WEFT_NEW_ARRAY(l->scratch, uint32_t, load_count);
  if (!loads || !stages || !write_loads(p, item, stages, loads) || !write_computes(p, item, stages, loads, &result))
    return weft_error_memory(l->diag);
  uint32_t last = next_stage(p) - 1;
  if (p->store_index && !write_index(p, p->store_index, p->computes[0].name, item, &index))
    return weft_error_memory(l->diag);
  add_edge(p, last, result, next_stage(p), WEFT_HANDSHAKE_FIFO);
  if (!write_store(p, item, result, index)) return weft_error_memory(l->diag);
  if (l->program->stage_count >= WEFT_NONE || l->program->buffer_count >= WEFT_NONE)
    return weft_error(l->diag, WEFT_INVALID, NULL, "the program has more stages than ids");
  return weft_lower_memory(l);
}

/** Whether every op computes a part of a row like the whole: nothing folds it, asks for a column, or holds a row. */
static bool may_be_parted(const weft_graph *graph, const weft_unit *unit) {
  for (uint32_t i = 0; i < unit->op_count; i++) {
    const weft_graph_op *op = &graph->ops[unit->ops[i]];
    if (op->kind == WEFT_GRAPH_BIAS || op->kind == WEFT_GRAPH_REDUCE || op->kind == WEFT_GRAPH_UPDATE ||
        weft_body_has(&op->body, WEFT_BODY_SELECT))
      return false;
  }
  return true;
}

/** Tiles of a page of a row unit: the whole row, or the greatest part of it that is allowed. */
static uint64_t row_page(const weft_graph *graph, const weft_unit *unit, uint64_t cols_t) {
  return may_be_parted(graph, unit) ? unit_part(cols_t) : cols_t;
}

weft_status weft_lower_unit(weft_lowering *l, const weft_unit *unit) {
  const weft_graph *graph = l->graph;
  const weft_graph_op *head = &graph->ops[unit->ops[0]];
  unit_plan p = {.l = l,
                 .chip = head->chip,
                 .out = graph->ops[unit->ops[unit->op_count - 1]].out,
                 .computes = WEFT_NEW_ARRAY(l->scratch, unit_compute, (uint64_t)unit->op_count + 1)};
  if (!p.computes) return weft_error_memory(l->diag);
  p.plane = weft_value_plane(&graph->values[p.out]);
  p.rows_t = p.plane.rows_t;
  p.cols_t = p.plane.cols_t;
  p.rows = head->kind != WEFT_GRAPH_MATMUL && head->kind != WEFT_GRAPH_TRANSPOSE && head->kind != WEFT_GRAPH_GATHER;
  p.page_t = p.rows ? row_page(graph, unit, p.cols_t) : 1;
  if (head->kind == WEFT_GRAPH_SLICE || head->kind == WEFT_GRAPH_ASSEMBLE) return unit_write_copy(&p, head);
  weft_status status = unit_plan_head(&p, head);
  for (uint32_t i = 1; i < unit->op_count && status == WEFT_OK; i++)
    status = unit_plan_epilogue(&p, &graph->ops[unit->ops[i]], l->chained[unit->ops[i]] - 1u);
  return status == WEFT_OK ? unit_write(&p) : status;
}
