/* The Template that a planned program was cut from: units put together again from the copies that place made, then
 * planned once more and compared with what was given. So a schedule is known by its template only where it is exactly
 * what the passes make of it. */
#include "internal.h"

#include <stdio.h>
#include <string.h>

/** Row-major planes of tiles and one tile a block: docs/lowering.md. */
typedef struct restorer {
  const weft_program *given;
  const weft_program *planned; /**< a copy in the arena of the program being made, which keeps pointing into it */
  weft_program *program;       /**< being made */
  weft_arena *scratch;
  plan_units units;
  uint64_t *first_unit; /**< by template unit: the copy it is made from */
  uint64_t *copies;     /**< by template unit */
  uint64_t unit_count;
  uint64_t *template_of;            /**< by unit */
  uint64_t *heights;                /**< by template unit: rows of the item, in tiles */
  uint64_t *sub_rows;               /**< by template unit: sub-block rows of its Store */
  uint32_t *stage_map, *buffer_map; /**< first copies to template ids */
  weft_diag *diag;
} restorer;

static weft_status unknown(restorer *r, const char *why) {
  return weft_error(r->diag, WEFT_INVALID, "give the Template it was planned from", "program '%s' has no template: %s",
                    r->planned->name, why);
}

/* ---- grouping --------------------------------------------------------------------------------------------------- */

static uint32_t origin_of(const restorer *r, const plan_unit *unit) {
  return r->planned->stages[unit->stages[0]].origin;
}

/** Copies of one unit follow one another, and start at the same template stage. */
static weft_status group_units(restorer *r) {
  uint64_t count = r->units.count;
  r->first_unit = WEFT_NEW_ARRAY(r->scratch, uint64_t, count);
  r->copies = WEFT_NEW_ARRAY(r->scratch, uint64_t, count);
  r->template_of = WEFT_NEW_ARRAY(r->scratch, uint64_t, count);
  r->heights = WEFT_NEW_ARRAY(r->scratch, uint64_t, count);
  r->sub_rows = WEFT_NEW_ARRAY(r->scratch, uint64_t, count);
  if (!r->first_unit || !r->copies || !r->template_of || !r->heights || !r->sub_rows) return weft_error_memory(r->diag);
  for (uint64_t u = 0; u < count; u++) {
    const plan_unit *unit = &r->units.items[u];
    if (origin_of(r, unit) == WEFT_NONE || unit->store == WEFT_NONE || unit->item == WEFT_NONE)
      return unknown(r, "its stages do not say where they come from");
    if (u == 0 || unit->section != unit[-1].section || origin_of(r, unit) != origin_of(r, unit - 1)) {
      r->first_unit[r->unit_count] = u;
      r->unit_count++;
    }
    uint64_t t = r->unit_count - 1;
    r->template_of[u] = t;
    r->copies[t]++;
    r->heights[t] += r->planned->work.items[unit->item].h_t;
    r->sub_rows[t] += r->planned->stages[unit->store].store.sub_blocks.first;
  }
  return WEFT_OK;
}

static const plan_unit *unit_of(const restorer *r, uint64_t t) { return &r->units.items[r->first_unit[t]]; }

static const char *restored_name(restorer *r, const char *name, uint64_t copies) {
  const char *at = strrchr(name, '@');
  if (copies < 2 || !at) return name;
  return weft_arena_string(r->program->arena, name, (size_t)(at - name));
}

/* ---- patterns ---- */

static void set_origin(restorer *r, weft_access_pattern *pattern, uint64_t base, const weft_step *steps,
                       uint64_t count) {
  weft_step *copy = WEFT_NEW_ARRAY(r->program->arena, weft_step, count);
  if (!copy) return;
  memcpy(copy, steps, count * sizeof *copy);
  pattern->origin = (weft_tile_addr){.base = base, .steps = copy, .step_count = count};
}

static weft_tile_grid grid_of(const restorer *r, uint32_t tensor) { return r->planned->tensors[tensor].tiles; }

static void restore_store(restorer *r, const plan_unit *unit, weft_access_pattern *pattern) {
  weft_tile_grid grid = grid_of(r, r->planned->stages[unit->store].store.tensor);
  const weft_step steps[] = {{WEFT_VAR_ITEM_Y, grid.rows_t * grid.cols_t},
                             {WEFT_VAR_ITEM_X, grid.cols_t},
                             {WEFT_VAR_SUB_H, grid.cols_t},
                             {WEFT_VAR_SUB_W, 1}};
  set_origin(r, pattern, 0, steps, 4);
  pattern->block_h = pattern->block_w = pattern->stride_w = 1;
  pattern->stride_h = grid.cols_t;
}

static void restore_matmul_load(restorer *r, const plan_unit *unit, uint32_t id, weft_stage *stage) {
  weft_access_pattern *pattern = &stage->load.pattern;
  weft_tile_grid grid = grid_of(r, stage->load.tensor);
  if (id == unit->load_a) {
    const weft_step steps[] = {{WEFT_VAR_ITEM_Y, grid.rows_t * grid.cols_t}, {WEFT_VAR_K_BLOCK, 1}};
    set_origin(r, pattern, 0, steps, 2);
    *pattern = (weft_access_pattern){pattern->origin, grid.rows_t, 1, 1, grid.cols_t};
    stage->load.num_blocks = grid.cols_t;
  } else if (id == unit->load_b) {
    const weft_step steps[] = {{WEFT_VAR_K_BLOCK, grid.cols_t}, {WEFT_VAR_ITEM_X, grid.cols_t}};
    set_origin(r, pattern, 0, steps, 2);
    *pattern = (weft_access_pattern){pattern->origin, 1, grid.cols_t, 1, grid.cols_t};
    stage->load.num_blocks = grid.rows_t;
  } else if (plan_step_of(&pattern->origin, WEFT_VAR_SUB_H) || plan_step_of(&pattern->origin, WEFT_VAR_SUB_W)) {
    restore_store(r, unit, pattern);
  } else {
    const weft_step steps[] = {{WEFT_VAR_ITEM_X, grid.cols_t}};
    set_origin(r, pattern, 0, steps, 1);
    *pattern = (weft_access_pattern){pattern->origin, 1, grid.cols_t, 1, grid.cols_t};
  }
}

/* ---- computes of a matmul unit ---- */

static void restore_map(restorer *r, weft_elem_access *map, int64_t width) {
  weft_term *terms = WEFT_NEW_ARRAY(r->program->arena, weft_term, 2);
  if (!terms) return;
  terms[0] = (weft_term){WEFT_VAR_GEN_ROW, width};
  terms[1] = (weft_term){WEFT_VAR_GEN_COL, 1};
  *map = (weft_elem_access){.base = 0, .terms = terms, .term_count = 2};
}

static void restore_generic(restorer *r, weft_generic *generic) {
  uint64_t cols = r->planned->tile_cols;
  weft_iter *iters = WEFT_NEW_ARRAY(r->program->arena, weft_iter, generic->iter_count);
  weft_elem_access *ins = WEFT_NEW_ARRAY(r->program->arena, weft_elem_access, generic->in_count);
  if (!iters || !ins || generic->iter_count != 2) return;
  memcpy(iters, generic->iters, 2 * sizeof *iters);
  iters[1].extent = cols;
  for (uint64_t i = 0; i < generic->in_count; i++) restore_map(r, &ins[i], (int64_t)cols);
  restore_map(r, &generic->out, (int64_t)cols);
  generic->iters = iters;
  generic->ins = ins;
}

static void restore_compute(restorer *r, const plan_unit *unit, weft_stage *stage) {
  weft_compute_op *op = WEFT_NEW(r->program->arena, weft_compute_op);
  if (!op) return;
  *op = *stage->compute;
  if (op->kind == WEFT_COMPUTE_MATMUL_TILES) {
    weft_tile_grid out = grid_of(r, r->planned->stages[unit->store].store.tensor);
    weft_tile_grid a = grid_of(r, r->planned->stages[unit->load_a].load.tensor);
    op->matmul.block = (weft_block_shape){1, 1, 1};
    op->matmul.sub_blocks = (weft_pair){out.rows_t, out.cols_t};
    op->matmul.num_blocks = a.cols_t;
  } else if (op->kind == WEFT_COMPUTE_GENERIC) {
    restore_generic(r, &op->generic);
  }
  stage->compute = op;
}

/* ---- stages, buffers, edges ---- */

static const uint32_t *mapped(restorer *r, const uint32_t *ids, uint64_t count, const uint32_t *map) {
  uint32_t *copy = WEFT_NEW_ARRAY(r->program->arena, uint32_t, count);
  for (uint64_t i = 0; copy && i < count; i++) copy[i] = map[ids[i]];
  return copy;
}

/** The index of a data-dependent address is the template's buffer. */
static void restore_index(restorer *r, weft_access_pattern *pattern) {
  if (!pattern->origin.indirect) return;
  weft_indirect_tile *term = WEFT_NEW(r->program->arena, weft_indirect_tile);
  if (!term) return;
  *term = *pattern->origin.indirect;
  term->index = r->buffer_map[term->index];
  pattern->origin.indirect = term;
}

static void restore_stage(restorer *r, uint64_t t, uint32_t id) {
  weft_program *program = r->program;
  const plan_unit *unit = unit_of(r, t);
  weft_stage stage = r->planned->stages[id];
  if (unit->kind == UNIT_MATMUL) {
    if (stage.kind == WEFT_STAGE_LOAD)
      restore_matmul_load(r, unit, id, &stage);
    else if (stage.kind == WEFT_STAGE_COMPUTE)
      restore_compute(r, unit, &stage);
    else if (stage.kind == WEFT_STAGE_STORE) {
      restore_store(r, unit, &stage.store.pattern);
      weft_tile_grid grid = grid_of(r, stage.store.tensor);
      stage.store.sub_blocks = (weft_pair){grid.rows_t, grid.cols_t};
    }
  } else if (stage.kind == WEFT_STAGE_STORE) {
    stage.store.sub_blocks.first = r->sub_rows[t];
  }
  if (stage.kind == WEFT_STAGE_COMPUTE && stage.compute->kind == WEFT_COMPUTE_BIAS) {
    weft_compute_op *op = WEFT_NEW(program->arena, weft_compute_op);
    if (!op) return;
    *op = *stage.compute;
    op->bias = r->buffer_map[op->bias];
    stage.compute = op;
  }
  if (stage.kind == WEFT_STAGE_LOAD) restore_index(r, &stage.load.pattern);
  if (stage.kind == WEFT_STAGE_STORE) restore_index(r, &stage.store.pattern);
  stage.id = r->stage_map[id] = (uint32_t)program->stage_count;
  stage.name = restored_name(r, stage.name, r->copies[t]);
  stage.ins = mapped(r, stage.ins, stage.in_count, r->buffer_map);
  stage.outs = mapped(r, stage.outs, stage.out_count, r->buffer_map);
  stage.site = (weft_optional_site){0};
  stage.origin = WEFT_NONE;
  stage.item = (uint32_t)t;
  program->stages[program->stage_count++] = stage;
}

/** Tiles of a matmul unit's page in the Template. */
static uint64_t restored_page(const restorer *r, const plan_unit *unit, uint32_t buffer) {
  for (uint64_t i = 0; i < unit->stage_count; i++) {
    uint32_t id = unit->stages[i];
    const weft_stage *stage = &r->planned->stages[id];
    if (stage->kind != WEFT_STAGE_LOAD || stage->outs[0] != buffer) continue;
    weft_tile_grid grid = grid_of(r, stage->load.tensor);
    if (id == unit->load_a) return grid.rows_t;
    bool moves = plan_step_of(&stage->load.pattern.origin, WEFT_VAR_SUB_H) ||
                 plan_step_of(&stage->load.pattern.origin, WEFT_VAR_SUB_W);
    return id != unit->load_b && moves ? 1 : grid.cols_t;
  }
  return 1;
}

static void restore_buffer(restorer *r, uint64_t t, uint32_t id, bool several_chips) {
  weft_program *program = r->program;
  const plan_unit *unit = unit_of(r, t);
  weft_buffer buffer = r->planned->buffers[id];
  if (unit->kind == UNIT_MATMUL) buffer.page_tiles = restored_page(r, unit, id);
  buffer.id = r->buffer_map[id] = (uint32_t)program->buffer_count;
  buffer.name = restored_name(r, buffer.name, r->copies[t]);
  buffer.site = (weft_optional_site){several_chips, {0, 0, several_chips ? buffer.site.site.chip : 0}};
  buffer.origin = buffer.alias_of = WEFT_NONE;
  program->buffers[program->buffer_count++] = buffer;
}

/** What a buffer shares memory with is known to its Template when it is of the same unit. */
static void restore_aliases(restorer *r, const plan_unit *unit) {
  for (uint64_t i = 0; i < unit->buffer_count; i++) {
    uint32_t alias = r->planned->buffers[unit->buffers[i]].alias_of;
    for (uint64_t j = 0; alias != WEFT_NONE && j < unit->buffer_count; j++)
      if (unit->buffers[j] == alias)
        r->program->buffers[r->buffer_map[unit->buffers[i]]].alias_of = r->buffer_map[alias];
  }
}

static void restore_edges(restorer *r, weft_span edges) {
  weft_program *program = r->program;
  for (uint64_t e = edges.begin; e < edges.end; e++) {
    weft_edge edge = r->planned->edges[e];
    uint64_t u = r->units.unit_of_stage[edge.from];
    if (r->first_unit[r->template_of[u]] != u) continue;
    edge.id = (uint32_t)program->edge_count;
    edge.from = r->stage_map[edge.from];
    edge.buffer = r->buffer_map[edge.buffer];
    edge.to = mapped(r, edge.to, edge.to_count, r->stage_map);
    program->edges[program->edge_count++] = edge;
    if (edge.handshake == WEFT_HANDSHAKE_VALID_READY) program->requires_handshakes |= 1u << WEFT_HANDSHAKE_VALID_READY;
  }
}

static void restore_item(restorer *r, uint64_t t) {
  weft_program *program = r->program;
  const plan_unit *unit = unit_of(r, t);
  weft_work_item item = r->planned->work.items[unit->item];
  item.id = (uint32_t)t;
  item.coord = (weft_pair){0, 0};
  if (unit->kind == UNIT_MATMUL) {
    weft_tile_grid grid = grid_of(r, r->planned->stages[unit->store].store.tensor);
    item.h_t = grid.rows_t;
    item.w_t = grid.cols_t;
  } else {
    item.h_t = r->heights[t];
  }
  program->work.items[program->work.item_count++] = item;
}

/* ---- the program ---- */

static void restore_section(restorer *r, uint64_t k, uint64_t *t, bool several_chips) {
  weft_program *program = r->program;
  weft_section *section = &program->sections[k];
  section->stages.begin = program->stage_count;
  section->buffers.begin = program->buffer_count;
  section->edges.begin = program->edge_count;
  section->items.begin = program->work.item_count;
  for (; *t < r->unit_count && unit_of(r, *t)->section == k; (*t)++) {
    const plan_unit *unit = unit_of(r, *t);
    restore_item(r, *t);
    for (uint64_t i = 0; i < unit->buffer_count; i++) restore_buffer(r, *t, unit->buffers[i], several_chips);
    restore_aliases(r, unit);
    for (uint64_t i = 0; i < unit->stage_count; i++) restore_stage(r, *t, unit->stages[i]);
  }
  restore_edges(r, r->planned->sections[k].edges);
  section->stages.end = program->stage_count;
  section->buffers.end = program->buffer_count;
  section->edges.end = program->edge_count;
  section->items.end = program->work.item_count;
  section->semaphores = (weft_span){0, 0};
  section->has_plan = section->has_barrier_after = false;
  section->plan = (weft_block_plan){0};
}

/** New arrays, so that the copy's stay readable while these are filled. */
static bool new_arrays(restorer *r) {
  weft_program *program = r->program;
  weft_arena *arena = program->arena;
  weft_section *sections = WEFT_NEW_ARRAY(arena, weft_section, program->section_count);
  if (sections) memcpy(sections, program->sections, program->section_count * sizeof *sections);
  program->sections = sections;
  program->stages = WEFT_NEW_ARRAY(arena, weft_stage, program->stage_count);
  program->buffers = WEFT_NEW_ARRAY(arena, weft_buffer, program->buffer_count);
  program->edges = WEFT_NEW_ARRAY(arena, weft_edge, program->edge_count);
  program->work.items = WEFT_NEW_ARRAY(arena, weft_work_item, program->work.item_count);
  return !weft_arena_failed(arena);
}

static weft_status restore(restorer *r) {
  weft_program *program = r->program;
  if (!new_arrays(r)) return weft_error_memory(r->diag);
  bool several_chips = program->chips > 1 || program->chip != WEFT_NONE;
  program->placement = NULL;
  program->memory = NULL;
  program->schedule = NULL;
  program->verified = false;
  program->semaphore_count = 0;
  program->work.has_plan = false;
  program->work.plan = (weft_block_plan){0};
  program->acc_tiles_used = 0;
  program->mem_banks = 1;
  program->requires_handshakes = 1u << WEFT_HANDSHAKE_FIFO;
  program->requires_interconnect =
      several_chips ? 1u << WEFT_INTERCONNECT_POINT_TO_POINT | 1u << WEFT_INTERCONNECT_CHIP_LINK : 0;
  program->stage_count = program->buffer_count = program->edge_count = program->work.item_count = 0;
  uint64_t t = 0;
  for (uint64_t k = 0; k < program->section_count; k++) restore_section(r, k, &t, several_chips);
  return weft_arena_failed(program->arena) ? weft_error_memory(r->diag) : WEFT_OK;
}

/** Planning the template again must give the program, byte for byte. */
static weft_status compare(restorer *r, const weft_target *target) {
  weft_program *again = weft_program_clone(r->program);
  weft_diag *quiet = weft_diag_new();
  weft_text expected = {0}, found = {0};
  weft_status status = again && quiet ? WEFT_OK : weft_error_memory(r->diag);
  const weft_options options = {.stop_after = "synthesize_handshakes"};
  if (status == WEFT_OK &&
      (weft_program_validate(again, 1, NULL, quiet) != WEFT_OK || weft_plan(again, target, &options, quiet) != WEFT_OK))
    status = unknown(r, "what its stages come from is no program");
  if (status == WEFT_OK) {
    weft_program_write(r->given, &expected);
    weft_program_write(again, &found);
    if (expected.failed || found.failed)
      status = weft_error_memory(r->diag);
    else if (expected.length != found.length || memcmp(expected.data, found.data, found.length) != 0)
      status = unknown(r, "planning it again for this target gives another schedule");
  }
  weft_text_free(&expected);
  weft_text_free(&found);
  weft_program_free(again);
  weft_diag_free(quiet);
  return status;
}

static weft_status make_template(restorer *r, const weft_target *target) {
  const weft_program *given = r->given;
  if (weft_program_phase(given) < WEFT_PHASE_SCHEDULED || given->section_count == 0 || given->trip_count)
    return unknown(r, "it is not a schedule that weft planned");
  weft_status status = plan_units_find(r->planned, r->scratch, &r->units, r->diag);
  if (status == WEFT_OK) status = group_units(r);
  if (status != WEFT_OK) return status;
  r->stage_map = WEFT_NEW_ARRAY(r->scratch, uint32_t, given->stage_count);
  r->buffer_map = WEFT_NEW_ARRAY(r->scratch, uint32_t, given->buffer_count);
  status = r->stage_map && r->buffer_map ? restore(r) : weft_error_memory(r->diag);
  return status == WEFT_OK ? compare(r, target) : status;
}

weft_status weft_program_template(const weft_program *planned, const weft_target *target, weft_program **program,
                                  weft_diag *diag) {
  *program = NULL;
  restorer r = {.given = planned, .diag = diag, .scratch = weft_arena_new(), .program = weft_program_clone(planned)};
  weft_status status = weft_error_memory(NULL);
  if (r.scratch && r.program) {
    weft_program copy = *r.program;
    r.planned = &copy;
    status = make_template(&r, target);
  } else {
    weft_error_memory(diag);
  }
  weft_arena_free(r.scratch);
  if (status == WEFT_OK)
    *program = r.program;
  else
    weft_program_free(r.program);
  return status;
}
