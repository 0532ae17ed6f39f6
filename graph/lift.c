/* weft_graph_lift: a Template back to a graph, section by section. */
#include "lift_private.h"

#include <string.h>

#define HINT_ONE_CHIP "such a program runs on one chip only"

weft_status weft_lift_refuse(weft_lift *l, uint32_t stage, const char *format, ...) {
  weft_text text = {0};
  va_list arguments;
  va_start(arguments, format);
  weft_text_vprintf(&text, format, arguments);
  va_end(arguments);
  weft_status status = weft_error(l->diag, WEFT_INVALID, HINT_ONE_CHIP, "stage '%s' cannot be lifted: %s",
                                  l->program->stages[stage].name, text.data ? text.data : "");
  weft_text_free(&text);
  return status;
}

/* ---- what a graph cannot say --------------------------------------------------------------------------------------
 */

static weft_status refuse(weft_lift *l, const char *hint, const char *what) {
  return weft_error(l->diag, WEFT_INVALID, hint, "program '%s' cannot be lifted: %s", l->program->name, what);
}

static weft_status check_tensor(weft_lift *l, const weft_tensor *tensor) {
  const char *what = NULL;
  if (tensor->shape_count > WEFT_MAX_RANK) what = "it has too many dimensions";
  if (!what) return WEFT_OK;
  return weft_error(l->diag, WEFT_INVALID, HINT_ONE_CHIP, "tensor '%s' cannot be lifted: %s", tensor->name, what);
}

static weft_status check_program(weft_lift *l) {
  const weft_program *program = l->program;
  if (weft_program_phase(program) != WEFT_PHASE_TEMPLATE)
    return refuse(l, "lift the Template it was planned from", "it is past its Template");
  if (program->tile_rows != WEFT_GRAPH_TILE || program->tile_cols != WEFT_GRAPH_TILE)
    return refuse(l, NULL, "its tiles are not 32 x 32");
  if (program->numerics != WEFT_NUMERICS_EXACT) return refuse(l, NULL, "it allows spills to round");
  if (program->work.k_trip != WEFT_NONE) return refuse(l, NULL, "its loops run to a count that it reads");
  if (program->link_count && program->chip == WEFT_NONE) return refuse(l, NULL, "it has link points and is of no chip");
  for (uint64_t i = 0; i < program->tensor_count; i++) {
    weft_status status = check_tensor(l, &program->tensors[i]);
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}

/* ---- values -------------------------------------------------------------------------------------------------------
 */

/** Extents of the part of a dataset of `shape` that is rows x cols of its plane: as many dimensions where only the
 * first is cut. */
static void part_extents(weft_value *value, const weft_tensor *tensor) {
  const uint64_t rows = tensor->elems.rows, cols = tensor->elems.cols;
  uint64_t below = 1; // rows of the plane in one of the first dimension
  value->rank = value->full_rank;
  memcpy(value->extents, value->full_extents, sizeof value->extents);
  if (value->rank) value->extents[value->rank - 1] = cols;
  for (uint32_t d = 1; d + 1 < value->rank; d++) below *= value->extents[d];
  if (value->rank >= 2 && below && rows % below == 0) {
    value->extents[0] = rows / below;
  } else if (value->rank >= 2) {
    value->rank = 2;
    value->extents[0] = rows;
    value->extents[1] = cols;
  }
}

static void tensor_extents(weft_value *value, const weft_tensor *tensor) {
  const weft_elem_shape whole =
      tensor->has_shard ? (weft_elem_shape){tensor->shard.rows, tensor->shard.cols} : tensor->elems;
  value->full_rank = tensor->shape ? (uint32_t)tensor->shape_count : 2;
  if (tensor->shape) {
    if (value->full_rank) memcpy(value->full_extents, tensor->shape, value->full_rank * sizeof *tensor->shape);
  } else {
    value->full_extents[0] = whole.rows;
    value->full_extents[1] = whole.cols;
  }
  part_extents(value, tensor);
}

static bool copy_fill(weft_lift *l, weft_init *init) {
  if (init->kind != WEFT_INIT_VALUES && init->kind != WEFT_INIT_FLOAT_VALUES) return true;
  int64_t *items = WEFT_NEW_ARRAY(l->graph->arena, int64_t, init->values.count);
  if (items && init->values.count) memcpy(items, init->values.items, init->values.count * sizeof *items);
  init->values.items = items;
  return items != NULL;
}

/** Value t is tensor t; those that are stored get their producers later. */
static weft_status add_tensors(weft_lift *l) {
  for (uint64_t t = 0; t < l->program->tensor_count; t++) {
    const weft_tensor *tensor = &l->program->tensors[t];
    weft_value value = {.name = tensor->name,
                        .role = tensor->role,
                        .dtype = tensor->dtype,
                        .has_range = tensor->has_range && !weft_format_is_float(tensor->dtype),
                        .range = tensor->range,
                        .init = tensor->init,
                        .chip = tensor->chip == WEFT_NONE ? 0 : (uint16_t)tensor->chip,
                        .has_partial = tensor->has_partial,
                        .partial = tensor->partial,
                        .has_shard = tensor->has_shard,
                        .shard = tensor->shard};
    if (tensor->has_partial && tensor->role == WEFT_ROLE_OUTPUT) { // only sent: no result of the graph
      value.role = WEFT_ROLE_ACTIVATION;
      value.has_shard = false;
    }
    tensor_extents(&value, tensor);
    if (!copy_fill(l, &value.init)) return weft_error_memory(l->diag);
    if (weft_graph_add_value(l->graph, &value) == WEFT_NONE) return weft_graph_failure(l->graph);
  }
  return WEFT_OK;
}

/** One more than the greatest chip that a tensor or a buffer names. */
static uint32_t chips_of(const weft_program *program) {
  uint32_t chips = program->chips ? program->chips : 1;
  for (uint64_t t = 0; t < program->tensor_count; t++)
    if (program->tensors[t].chip != WEFT_NONE && program->tensors[t].chip >= chips)
      chips = program->tensors[t].chip + 1;
  for (uint64_t b = 0; b < program->buffer_count; b++)
    if (program->buffers[b].site.present && program->buffers[b].site.site.chip >= chips)
      chips = program->buffers[b].site.site.chip + 1u;
  return chips;
}

uint16_t weft_lift_chip(const weft_lift *l, uint32_t stage) {
  const weft_buffer *out = &l->program->buffers[l->program->stages[stage].outs[0]];
  if (out->site.present) return out->site.site.chip;
  return l->program->chip == WEFT_NONE ? 0 : (uint16_t)l->program->chip;
}

/* ---- one section --------------------------------------------------------------------------------------------------
 */

static weft_status check_kind(weft_lift *l, const weft_stage *stage) {
  uint64_t ins = stage->in_count, outs = stage->out_count;
  switch (stage->kind) {
  case WEFT_STAGE_LOAD:
    if (stage->load.multicast != WEFT_NONE) return weft_lift_refuse(l, stage->id, "it multicasts");
    return ins == (stage->load.pattern.origin.indirect ? 1u : 0u) && outs == 1
               ? WEFT_OK
               : weft_lift_refuse(l, stage->id, "a load of %llu buffers", (unsigned long long)ins);
  case WEFT_STAGE_STORE:
    return ins == (stage->store.pattern.origin.indirect ? 2u : 1u) && outs == 0
               ? WEFT_OK
               : weft_lift_refuse(l, stage->id, "a store of %llu buffers", (unsigned long long)ins);
  case WEFT_STAGE_ALL_REDUCE:
  case WEFT_STAGE_COMPUTE:
    return outs == 1 ? WEFT_OK : weft_lift_refuse(l, stage->id, "it leaves %llu results", (unsigned long long)outs);
  case WEFT_STAGE_RECV: return weft_lift_refuse(l, stage->id, "it receives a multicast");
  default: return weft_lift_refuse(l, stage->id, "a scalar body has no counterpart in a graph");
  }
}

/** Notes who fills and who reads each buffer of the section. */
static weft_status join_ports(weft_lift *l, weft_span stages) {
  const weft_program *program = l->program;
  for (uint64_t i = stages.begin; i < stages.end; i++) {
    const weft_stage *stage = &program->stages[i];
    weft_status status = check_kind(l, stage);
    if (status != WEFT_OK) return status;
    for (uint64_t j = 0; j < stage->out_count; j++) {
      uint32_t *writer = &l->writer[stage->outs[j]];
      if (*writer != WEFT_NONE)
        return weft_lift_refuse(l, stage->id, "buffer '%s' is filled twice", program->buffers[stage->outs[j]].name);
      *writer = stage->id;
    }
    for (uint64_t j = 0; j < stage->in_count; j++) {
      uint32_t *reader = &l->reader[stage->ins[j]];
      if (*reader != WEFT_NONE && *reader != stage->id)
        return weft_lift_refuse(l, stage->id, "buffer '%s' is read twice", program->buffers[stage->ins[j]].name);
      *reader = stage->id;
    }
  }
  return WEFT_OK;
}

static bool is_compute(const weft_lift *l, uint32_t stage) {
  if (stage == WEFT_NONE) return false;
  weft_stage_kind kind = l->program->stages[stage].kind;
  return kind == WEFT_STAGE_COMPUTE || kind == WEFT_STAGE_ALL_REDUCE;
}

/** The section's computes in an order in which each comes after those it reads; others in program order. */
static weft_status order_computes(weft_lift *l, weft_span stages, uint32_t **order, uint64_t *count) {
  const weft_program *program = l->program;
  uint64_t total = 0, done = 0;
  uint64_t *waits = WEFT_NEW_ARRAY(l->scratch, uint64_t, stages.end - stages.begin);
  *order = WEFT_NEW_ARRAY(l->scratch, uint32_t, stages.end - stages.begin);
  *count = 0;
  if (!waits || !*order) return weft_error_memory(l->diag);
  for (uint64_t i = stages.begin; i < stages.end; i++) {
    if (!is_compute(l, (uint32_t)i)) continue;
    const weft_stage *stage = &program->stages[i];
    total++;
    for (uint64_t j = 0; j < stage->in_count; j++) waits[i - stages.begin] += is_compute(l, l->writer[stage->ins[j]]);
    if (!waits[i - stages.begin]) (*order)[(*count)++] = (uint32_t)i;
  }
  for (; done < *count; done++) {
    const weft_stage *stage = &program->stages[(*order)[done]];
    uint32_t reader = l->reader[stage->outs[0]];
    if (!is_compute(l, reader)) continue;
    for (uint64_t j = 0; j < program->stages[reader].in_count; j++)
      if (program->stages[reader].ins[j] == stage->outs[0] && --waits[reader - stages.begin] == 0)
        (*order)[(*count)++] = reader;
  }
  if (*count == total) return WEFT_OK;
  for (uint64_t i = stages.begin; i < stages.end; i++)
    if (waits[i - stages.begin]) return weft_lift_refuse(l, (uint32_t)i, "it waits for its own result");
  return WEFT_INVALID;
}

/** Every store's geometry, handed back to the computes that lead to it. */
static weft_status find_geometry(weft_lift *l, weft_span stages, const uint32_t *order, uint64_t count) {
  const weft_program *program = l->program;
  for (uint64_t i = stages.begin; i < stages.end; i++) {
    const weft_stage *stage = &program->stages[i];
    if (stage->kind != WEFT_STAGE_STORE) continue;
    uint32_t writer = l->writer[stage->ins[0]];
    if (!is_compute(l, writer)) return weft_lift_refuse(l, stage->id, "it stores what no compute leaves");
    const weft_stage *compute = &program->stages[writer];
    bool places = compute->kind == WEFT_STAGE_COMPUTE && compute->compute->kind == WEFT_COMPUTE_GENERIC &&
                  compute->compute->generic.out.indirect;
    if (places != (stage->store.pattern.origin.indirect != NULL))
      return weft_lift_refuse(l, stage->id, "an index is used by the compute or by the store alone");
    l->geometry[i] = WEFT_NEW(l->scratch, weft_geometry);
    if (!l->geometry[i]) return weft_error_memory(l->diag);
    weft_status status = weft_lift_geometry(l, stage->id, l->geometry[i]);
    if (status != WEFT_OK) return status;
  }
  for (uint64_t i = count; i-- > 0;) {
    uint32_t reader = l->reader[program->stages[order[i]].outs[0]];
    if (weft_lift_is_index(l, order[i])) continue;
    if (reader == WEFT_NONE) return weft_lift_refuse(l, order[i], "nothing reads its result");
    l->geometry[order[i]] = l->geometry[reader];
  }
  return WEFT_OK;
}

static weft_status lift_section(weft_lift *l, const char *name, weft_span stages) {
  uint32_t *order;
  uint64_t count;
  weft_graph_section(l->graph, name);
  if (l->graph->failed) return weft_graph_failure(l->graph);
  l->section = l->graph->section_count - 1;
  weft_status status = join_ports(l, stages);
  if (status == WEFT_OK) status = order_computes(l, stages, &order, &count);
  if (status == WEFT_OK) status = find_geometry(l, stages, order, count);
  for (uint64_t i = 0; status == WEFT_OK && i < count; i++)
    if (!weft_lift_is_index(l, order[i])) status = weft_lift_compute(l, order[i]);
  if (status == WEFT_OK) status = weft_lift_copies(l);
  for (uint64_t t = 0; t < l->program->tensor_count; t++) {
    if (l->next[t] == WEFT_NONE) continue;
    l->current[t] = l->next[t];
  }
  return status;
}

static weft_status lift_sections(weft_lift *l) {
  const weft_program *program = l->program;
  weft_status status = add_tensors(l);
  if (!program->section_count && status == WEFT_OK)
    return lift_section(l, program->name, (weft_span){0, program->stage_count});
  for (uint64_t s = 0; s < program->section_count && status == WEFT_OK; s++)
    status = lift_section(l, program->sections[s].name, program->sections[s].stages);
  return status;
}

/* ---- the whole ----------------------------------------------------------------------------------------------------
 */

static uint32_t *no_ids(weft_arena *arena, uint64_t count) {
  uint32_t *ids = WEFT_NEW_ARRAY(arena, uint32_t, count);
  if (ids && count) memset(ids, 0xFF, count * sizeof *ids);
  return ids;
}

static weft_status lift_program(weft_lift *l) {
  const weft_program *program = l->program;
  l->graph->chips = chips_of(program);
  l->value_of_buffer = no_ids(l->scratch, program->buffer_count);
  l->writer = no_ids(l->scratch, program->buffer_count);
  l->reader = no_ids(l->scratch, program->buffer_count);
  l->current = no_ids(l->scratch, program->tensor_count);
  l->next = no_ids(l->scratch, program->tensor_count);
  l->geometry = WEFT_NEW_ARRAY(l->scratch, weft_geometry *, program->stage_count);
  if (weft_arena_failed(l->scratch)) return weft_error_memory(l->diag);
  for (uint64_t t = 0; t < program->tensor_count; t++) l->current[t] = (uint32_t)t;
  weft_status status = lift_sections(l);
  return status == WEFT_OK ? weft_graph_check(l->graph, l->diag) : status;
}

weft_status weft_graph_lift(const weft_program *program, weft_graph **graph, weft_diag *diag) {
  *graph = NULL;
  weft_lift l = {.program = program, .diag = diag};
  weft_status status = weft_program_validate(program, 1, NULL, diag);
  if (status == WEFT_OK) status = check_program(&l);
  if (status != WEFT_OK) return status;
  l.scratch = weft_arena_new();
  l.graph = weft_graph_new(program->name, diag);
  status = l.scratch && l.graph ? lift_program(&l) : weft_error_memory(diag);
  weft_arena_free(l.scratch);
  if (status == WEFT_OK) {
    *graph = l.graph;
  } else {
    weft_graph_free(l.graph);
  }
  return status;
}
