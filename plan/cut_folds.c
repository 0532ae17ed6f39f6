/* Folds of rows that local memory does not hold, as part of `tile`: the row is walked in column blocks, and what the
 * fold has so far is carried from block to block.
 *
 * Every step folds over one position more than its block has: position 0 is the carried value, the block's elements
 * follow. So a step goes on exactly where the one before it stopped, and the result is that of the whole row, bit for
 * bit, also where the order counts: a chain of sums, the first of equal greatest, a NaN before anything else. An ArgMax
 * carries the greatest and its index; the index counts from the start of the block, so that every block does the same.
 * The first element starts Max, Min and ArgMax; the last block, which may be shorter, is folded after the others.
 *
 * A float sum in segments is no chain and is left whole; so is a body that asks for its column. */
#include "cut_folds.h"

/* ---- which folds may be cut ---- */

bool cut_is_row_map(const weft_elem_access *map, bool *along) {
  *along = false;
  if (map->base || map->indirect) return false;
  for (uint64_t i = 0; i < map->term_count; i++) {
    const weft_term *term = &map->terms[i];
    if (term->var == WEFT_VAR_GEN_COL && term->stride == 1 && !*along)
      *along = true;
    else if (term->var != WEFT_VAR_GEN_ROW && term->stride)
      return false;
  }
  return true;
}

/** Whether operand `i` of the fold is a Load that can be walked in blocks. */
static bool operand_fits(const cutter *c, const fold *f, uint64_t i, bool *along) {
  const weft_stage *stage = &c->program->stages[f->stage];
  uint32_t id = plan_only_producer(c->ports, stage->ins[i]);
  if (id == WEFT_NONE || c->program->stages[id].kind != WEFT_STAGE_LOAD) return false;
  if (plan_only_reader(c->ports, stage->ins[i]) != f->stage) return false;
  const weft_stage *load = &c->program->stages[id];
  const weft_access_pattern *p = &load->load.pattern;
  if (!cut_is_row_map(&stage->compute->generic.ins[i], along)) return false;
  return load->load.num_blocks == 1 && load->in_count == 0 && p->block_h == 1 && p->stride_w == 1 &&
         !plan_step_of(&p->origin, WEFT_VAR_K_BLOCK) && (!*along || p->block_w == f->cols_t);
}

static bool body_fits(const weft_body *body, bool *integral) {
  *integral = true;
  for (uint64_t i = 0; i < body->node_count; i++) {
    if (body->nodes[i].kind == WEFT_BODY_SELECT) return false;
    if (body->nodes[i].kind == WEFT_BODY_UNARY || body->nodes[i].kind == WEFT_BODY_DIV ||
        (body->nodes[i].kind == WEFT_BODY_SHR && body->nodes[i].value > 63))
      *integral = false;
  }
  return body->node_count != 0;
}

/** Whether the stage folds the columns of a row as `weft_graph_lower` spells it, in a form that can be cut. */
static bool stage_fits(const cutter *c, fold *f) {
  const weft_stage *stage = &c->program->stages[f->stage];
  const weft_generic *g = plan_generic_of(stage);
  if (stage->kind != WEFT_STAGE_COMPUTE || !g || g->iter_count != 2 || g->in_count != stage->in_count ||
      stage->out_count != 1)
    return false;
  const weft_iter *row = &g->iters[0], *col = &g->iters[1];
  if (row->var != WEFT_VAR_GEN_ROW || row->reduce || col->var != WEFT_VAR_GEN_COL || !col->reduce) return false;
  bool along, long_row = false;
  if (!body_fits(&g->body, &f->integer) || !cut_is_row_map(&g->out, &along) || along) return false;
  f->cols = col->extent;
  f->cols_t = weft_ceil_div(f->cols, c->program->tile_cols);
  f->pool = col->pool;
  f->integer = f->integer && !weft_format_is_float(c->program->buffers[stage->outs[0]].dtype);
  for (uint64_t i = 0; i < stage->in_count; i++) {
    if (!operand_fits(c, f, i, &along)) return false;
    long_row = long_row || along;
    f->integer = f->integer && !weft_format_is_float(c->program->buffers[stage->ins[i]].dtype);
  }
  f->segmented = f->pool == WEFT_POOL_SUM && !f->integer && col->segments;
  bool known =
      f->pool == WEFT_POOL_MAX || f->pool == WEFT_POOL_MIN || f->pool == WEFT_POOL_ARG_MAX || f->pool == WEFT_POOL_SUM;
  return long_row && known && f->cols_t > 1 && f->cols < INT64_C(1) << 52;
}

/** The fold of a row unit that may be cut, or false. */
static bool find_fold(const cutter *c, const plan_unit *unit, fold *f) {
  *f = (fold){.unit = unit};
  if (unit->kind != UNIT_ROWS || unit->spread) return false;
  uint64_t folds = 0;
  for (uint64_t i = 0; i < unit->stage_count; i++) {
    const weft_generic *g = plan_generic_of(&c->program->stages[unit->stages[i]]);
    bool reduces = false;
    for (uint64_t a = 0; g && a < g->iter_count; a++) reduces = reduces || g->iters[a].reduce;
    if (reduces && ++folds) f->stage = unit->stages[i];
  }
  return folds == 1 && stage_fits(c, f);
}

/* ---- how large the blocks are ---- */

static uint64_t ring_bytes(const cutter *c, uint64_t pages, uint64_t tiles, weft_format format) {
  return pages * tiles * c->program->tile_rows * c->program->tile_cols * weft_format_bytes(format);
}

bool cut_carries_index(const fold *f) { return f->pool == WEFT_POOL_ARG_MAX; }
weft_format cut_carry_format(const cutter *c, const fold *f) {
  const weft_stage *stage = &c->program->stages[f->stage];
  if (!f->integer) return WEFT_FP32;
  if (f->pool == WEFT_POOL_SUM || stage->compute->generic.body.node_count > 1) return WEFT_INT64;
  return c->program->buffers[stage->ins[stage->compute->generic.body.nodes[0].value]].dtype;
}

/** Chooses the block so that the unit's buffers fit `room` bytes: two pages of a block of each operand, one of the last
 * block. False when not even single tiles do. */
static bool size_block(const cutter *c, fold *f, uint64_t room) {
  const weft_stage *stage = &c->program->stages[f->stage];
  uint64_t fixed = ring_bytes(c, 2, 1, cut_carry_format(c, f)), tile = 0;
  for (uint64_t i = 0; i < f->unit->buffer_count; i++) {
    const weft_buffer *buffer = &c->program->buffers[f->unit->buffers[i]];
    if (buffer->space == WEFT_MEM_LOCAL && plan_only_reader(c->ports, buffer->id) != f->stage)
      fixed += weft_buffer_bytes(c->program, buffer);
  }
  if (cut_carries_index(f)) fixed += ring_bytes(c, 2, 1, WEFT_INT64) + 2 * ring_bytes(c, 1, 1, WEFT_INT64);
  for (uint64_t i = 0; i < stage->in_count; i++) {
    const weft_buffer *buffer = &c->program->buffers[stage->ins[i]];
    bool along;
    cut_is_row_map(&stage->compute->generic.ins[i], &along);
    if (along) {
      tile += ring_bytes(c, 3, 1, buffer->dtype);
      fixed += ring_bytes(c, 1, 1, buffer->dtype);
    } else {
      fixed += 3 * weft_buffer_bytes(c->program, buffer);
    }
  }
  fixed += 64 * (4 * stage->in_count + 16); /* places are aligned */
  if (!tile || fixed >= room || room - fixed < tile) return false;
  f->block = weft_min_u64((room - fixed) / tile, f->cols_t - 1);
  f->blocks = (f->cols_t - 1) / f->block;
  f->tail = f->cols_t - f->blocks * f->block;
  return true;
}

/* ---- the whole ---- */

static uint64_t bytes_of(const cutter *c, const plan_unit *unit) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < unit->buffer_count; i++) {
    const weft_buffer *buffer = &c->program->buffers[unit->buffers[i]];
    if (buffer->space == WEFT_MEM_LOCAL && weft_add_overflow(sum, weft_buffer_bytes(c->program, buffer), &sum))
      return UINT64_MAX;
  }
  return sum;
}

/** Whether another unit has the section and chip of unit `u`. */
static bool has_company(const plan_units *units, uint64_t u) {
  const plan_unit *unit = &units->items[u];
  for (uint64_t v = u; v-- > 0 && units->items[v].section == unit->section;)
    if (units->items[v].chip == unit->chip) return true;
  for (uint64_t v = u + 1; v < units->count && units->items[v].section == unit->section; v++)
    if (units->items[v].chip == unit->chip) return true;
  return false;
}

static weft_status refuse_segments(const cutter *c, const fold *f, const weft_target *target, weft_diag *diag) {
  return weft_error(
      diag, WEFT_INVALID,
      "use a target with more local memory, or more chips; a Max, Min, ArgMax or integer sum would be cut",
      "section `%s`: stage `%s` sums rows of %llu floats in segments, which cannot be cut into column "
      "blocks; target `%s` has %llu bytes a site",
      plan_section_name(c->program, f->unit->section), c->program->stages[f->stage].name, (unsigned long long)f->cols,
      target->name, (unsigned long long)target->local_bytes);
}

static weft_status cut_unit(order *o, const weft_target *target, uint64_t u, weft_diag *diag) {
  cutter *c = o->c;
  const plan_unit *unit = &o->units->items[u];
  replacement *cut = &o->cuts[u];
  fold f;
  if (bytes_of(c, unit) <= target->local_bytes || !find_fold(c, unit, &f)) return WEFT_OK;
  if (f.segmented) return refuse_segments(c, &f, target, diag);
  uint64_t room = has_company(o->units, u) ? target->local_bytes / 2 : target->local_bytes;
  if (!size_block(c, &f, room)) return WEFT_OK;
  *cut = (replacement){.cut = true,
                       .fold = f.stage,
                       .result = c->program->stages[f.stage],
                       .stages.begin = c->stage_count,
                       .buffers.begin = c->buffer_count,
                       .edges.begin = c->edge_count};
  if (!cut_fold(c, &f, &cut->result)) return weft_error_memory(diag);
  cut->stages.end = c->stage_count;
  cut->buffers.end = c->buffer_count;
  cut->edges.end = c->edge_count;
  return WEFT_OK;
}

weft_status plan_cut_folds(weft_program *program, const weft_target *target, weft_arena *scratch, plan_units *units,
                           weft_diag *diag) {
  cutter c = {.program = program, .scratch = scratch, .ports = plan_ports_find(program, scratch)};
  order o = {.c = &c, .units = units, .cuts = WEFT_NEW_ARRAY(scratch, replacement, units->count + 1)};
  if (!c.ports || !o.cuts) return weft_error_memory(diag);
  weft_status status = WEFT_OK;
  for (uint64_t u = 0; u < units->count && !status; u++) status = cut_unit(&o, target, u, diag);
  if (status || c.stage_count == 0) return status;
  status = cut_put_in_order(&o, diag);
  return status ? status : plan_units_find(program, scratch, units, diag);
}
