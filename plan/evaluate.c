/* The evaluator: engines take turns, one op a turn, in a fixed order or a random one. */
#include "evaluate_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- faults ---- */

static void describe_op(weft_text *text, const machine *m, const engine *e, const weft_op *op) {
  plan_describe_engine(text, e->program->site, e->program->engine);
  weft_text_printf(text, ", %s of ", plan_op_name(op->kind));
  plan_describe_stage(text, m->program, op->stage);
}

step_result machine_fault(machine *m, const engine *e, const weft_op *op, const char *format, ...) {
  weft_text text = {0};
  describe_op(&text, m, e, op);
  weft_text_puts(&text, ": ");
  va_list arguments;
  va_start(arguments, format);
  weft_text_vprintf(&text, format, arguments);
  va_end(arguments);
  m->status = text.failed ? weft_error_memory(m->diag) : weft_error(m->diag, WEFT_INVALID, NULL, "%s", text.data);
  weft_text_free(&text);
  return STEP_FAULT;
}

step_result machine_no_memory(machine *m) {
  m->status = weft_error_memory(m->diag);
  return STEP_FAULT;
}

uint32_t machine_element_fault(machine *m, const weft_op *op, const char *what) {
  const char *name = op->stage < m->program->stage_count ? m->program->stages[op->stage].name : "?";
  weft_text text = {0};
  weft_text_printf(&text, "%s in stage `%s`", what, name);
  uint32_t number = 0;
  for (uint64_t i = m->fault_count; i > 0 && m->fault_count - i < 16 && !number; i--)
    if (!text.failed && strcmp(m->faults[i - 1].data, text.data) == 0) number = (uint32_t)i;
  bool full = m->fault_count >= WEFT_DIAG_LIMIT;
  if (!number && full) number = (uint32_t)m->fault_count;
  if (!number && !text.failed &&
      weft_arena_grow(m->arena, &m->faults, m->fault_count, &m->fault_capacity, sizeof *m->faults)) {
    m->faults[m->fault_count++] = text;
    return (uint32_t)m->fault_count;
  }
  weft_text_free(&text);
  return number ? number : 1;
}

step_result machine_faulty(machine *m, const engine *e, const weft_op *op, uint32_t number) {
  bool known = number && number <= m->fault_count;
  return machine_fault(m, e, op, "%s", known ? m->faults[number - 1].data : "a value that does not exist");
}

/* ---- small questions ---- */

uint64_t machine_tile_elements(const machine *m) { return m->program->tile_rows * m->program->tile_cols; }

bool machine_coin(machine *m) { return m->options->random && (weft_random_next(&m->random) >> 63); }

uint64_t machine_variable(const machine *m, const engine *e, uint32_t var) {
  for (uint64_t i = e->frame_count; i > 1; i--) {
    const frame *f = &e->frames[i - 1];
    if (f->items && var == WEFT_VAR_ITEM_X) return m->program->work.items[f->items[f->turn]].coord.second;
    if (f->var != var) continue;
    return f->items ? m->program->work.items[f->items[f->turn]].coord.first : f->turn;
  }
  return 0;
}

/* ---- control ---- */

static bool push_frame(machine *m, engine *e, const weft_op *ops, uint64_t count) {
  if (!weft_arena_grow(m->arena, &e->frames, e->frame_count, &e->frame_capacity, sizeof *e->frames)) return false;
  e->frames[e->frame_count++] = (frame){.ops = ops, .count = count, .turns = 1};
  return true;
}

/** The items of a site in the section of a stage, when there are exactly `count`: a loop over variable 0 then walks
 * them. */
static const uint32_t *items_of_loop(const machine *m, const engine *e, const weft_op *op) {
  const weft_program *program = m->program;
  if (op->loop.var != WEFT_VAR_ITEM_Y || !program->placement) return NULL;
  uint64_t section = op->stage < program->stage_count ? weft_section_of_stage(program, op->stage) : UINT64_MAX;
  weft_span span = section == UINT64_MAX ? (weft_span){0, program->work.item_count} : program->sections[section].items;
  for (uint64_t i = 0; i < program->placement->items_of_site_count; i++) {
    const weft_site_items *site = &program->placement->items_of_site[i];
    if (!weft_site_equal(site->site, e->program->site)) continue;
    uint64_t first = 0;
    while (first < site->item_count && (site->items[first] < span.begin || site->items[first] >= span.end)) first++;
    uint64_t end = first;
    while (end < site->item_count && site->items[end] >= span.begin && site->items[end] < span.end) end++;
    return end - first == op->loop.count ? site->items + first : NULL;
  }
  return NULL;
}

static step_result enter_loop(machine *m, engine *e, const weft_op *op) {
  uint64_t turns = op->loop.trip == WEFT_NONE ? op->loop.count : m->trip_counts[op->loop.trip];
  if (turns == 0 || op->loop.body_count == 0) return STEP_DONE;
  const uint32_t *items = items_of_loop(m, e, op);
  if (!push_frame(m, e, op->loop.body, op->loop.body_count)) return machine_no_memory(m);
  frame *f = &e->frames[e->frame_count - 1];
  f->var = op->loop.var;
  f->turns = turns;
  f->items = items;
  return STEP_DONE;
}

static step_result run_op(machine *m, engine *e, const weft_op *op) {
  switch (op->kind) {
  case WEFT_OP_RESERVE:
  case WEFT_OP_PUSH:
  case WEFT_OP_WAIT:
  case WEFT_OP_POP: return step_page_op(m, e, op);
  case WEFT_OP_READ_TILES: return step_read_tiles(m, e, op);
  case WEFT_OP_READ_BARRIER: return step_read_barrier(m, e, op);
  case WEFT_OP_WRITE_TILES: return step_write_tiles(m, e, op);
  case WEFT_OP_WRITE_BARRIER: return step_write_barrier(m, e, op);
  case WEFT_OP_MCAST_SEND:
  case WEFT_OP_MCAST_SET_VALID: return step_multicast(m, e, op);
  case WEFT_OP_SEM_SET:
  case WEFT_OP_SEM_INC:
  case WEFT_OP_SEM_WAIT: return step_semaphore(m, e, op);
  case WEFT_OP_ACQUIRE_ACC: return step_acquire(m, e, op);
  case WEFT_OP_RELEASE_ACC: return step_release(m, e, op);
  case WEFT_OP_COMPUTE: return step_compute(m, e, op);
  case WEFT_OP_PACK_ACC: return step_pack(m, e, op);
  case WEFT_OP_BARRIER: return step_group_barrier(m, e, op);
  case WEFT_OP_LOOP: return enter_loop(m, e, op);
  default: return STEP_DONE; /* Flush */
  }
}

/** The op an engine stands before, or NULL at its end. Ends loops whose body is done. */
static const weft_op *next_op(engine *e) {
  while (e->frame_count) {
    frame *f = &e->frames[e->frame_count - 1];
    if (f->next < f->count) return &f->ops[f->next];
    f->next = 0;
    if (++f->turn < f->turns) continue;
    e->frame_count--;
  }
  return NULL;
}

static step_result step_engine(machine *m, engine *e) {
  const weft_op *op = next_op(e);
  if (!op) return STEP_BLOCKED;
  uint64_t depth = e->frame_count - 1;
  step_result result = run_op(m, e, op);
  if (result == STEP_DONE) e->frames[depth].next++;
  return result;
}

/* ---- running ---- */

static weft_status deadlock(machine *m) {
  weft_text text = {0};
  for (uint64_t i = 0; i < m->engine_count; i++) {
    const weft_op *op = next_op(&m->engines[i]);
    if (!op) continue;
    weft_text_puts(&text, text.length ? "; " : "");
    describe_op(&text, m, &m->engines[i], op);
    if (text.length > 2000) break;
  }
  weft_status status = weft_error(m->diag, WEFT_INVALID, "`weft certify` shows who waits for whom",
                                  "deadlock: no engine can go on: %s", text.data);
  weft_text_free(&text);
  return status;
}

static weft_status run(machine *m) {
  uint64_t start = 0;
  for (;;) {
    bool waiting = false, moved = false;
    if (m->options->random) start = weft_random_next(&m->random) % weft_max_u64(m->engine_count, 1);
    for (uint64_t i = 0; i < m->engine_count; i++) {
      engine *e = &m->engines[(start + i) % m->engine_count];
      if (!next_op(e)) continue;
      waiting = true;
      step_result result = step_engine(m, e);
      if (result == STEP_FAULT) return m->status;
      moved = moved || result == STEP_DONE;
      if (moved && m->options->random) break;
    }
    if (!waiting) return WEFT_OK;
    if (!moved) return deadlock(m);
  }
}

/** Nothing may be left over: pages, accumulators, transfers without a barrier. */
static weft_status check_end(machine *m) {
  for (uint64_t i = 0; i < m->engine_count; i++) {
    const engine *e = &m->engines[i];
    const char *left = e->acc.acquired                   ? "holds its accumulator"
                       : e->read_count || e->write_count ? "has a transfer without a barrier"
                                                         : NULL;
    if (!left) continue;
    weft_text text = {0};
    plan_describe_engine(&text, e->program->site, e->program->engine);
    weft_status status = weft_error(m->diag, WEFT_INVALID, NULL, "%s ends and still %s", text.data, left);
    weft_text_free(&text);
    return status;
  }
  for (uint64_t b = 0; b < m->program->buffer_count; b++)
    if (m->rings[b].pushed != m->rings[b].popped || m->rings[b].reserved)
      return weft_error(m->diag, WEFT_INVALID, NULL, "the run ends with pages left in buffer `%s`",
                        m->program->buffers[b].name);
  return WEFT_OK;
}

static weft_status read_trips(machine *m) {
  for (uint64_t t = 0; t < m->program->trip_count; t++) {
    const weft_trip *trip = &m->program->trips[t];
    const weft_tensor *tensor = &m->program->tensors[trip->tensor];
    if (trip->elem >= tensor->elems.rows * tensor->elems.cols)
      return weft_error(m->diag, WEFT_INVALID, NULL, "trip %llu reads past tensor `%s`", (unsigned long long)t,
                        tensor->name);
    if (weft_format_is_float(tensor->dtype)) {
      float real = weft_load_f32(tensor->dtype, m->tensors[trip->tensor].data, trip->elem);
      if (!(fabsf(real) < 0x1p62f) || real != floorf(real))
        return weft_error(m->diag, WEFT_INVALID, NULL, "trip %llu: element %llu of `%s` is no whole number",
                          (unsigned long long)t, (unsigned long long)trip->elem, tensor->name);
    }
    int64_t count = tensor_integer(m, trip->tensor, trip->elem);
    if (count < trip->admit.low || count > trip->admit.high)
      return weft_error(m->diag, WEFT_INVALID, NULL, "element %llu of `%s` is %lld; the program admits %lld to %lld",
                        (unsigned long long)trip->elem, tensor->has_shard ? tensor->shard.of : tensor->name,
                        (long long)count, (long long)trip->admit.low, (long long)trip->admit.high);
    m->trip_counts[t] = weft_trip_count(trip, count);
  }
  return WEFT_OK;
}

static void reset(machine *m) {
  for (uint64_t b = 0; b < m->program->buffer_count; b++) {
    ring *r = &m->rings[b];
    r->pushed = r->popped = r->reserved = r->filled = r->waited = 0;
    for (uint64_t i = 0; i < r->depth; i++) r->pages[i].filled = r->pages[i].reading = r->pages[i].writing = false;
  }
  semaphores_reset(m);
  tensors_reset(m);
}

static weft_status run_step(machine *m) {
  reset(m);
  weft_status status = read_trips(m);
  for (uint64_t i = 0; i < m->engine_count && !status; i++) {
    engine *e = &m->engines[i];
    e->frame_count = 0;
    if (!push_frame(m, e, e->program->ops, e->program->op_count)) status = weft_error_memory(m->diag);
  }
  if (!status) status = run(m);
  if (!status) status = check_end(m);
  return status ? status : tensors_check(m);
}

/* ---- making the machine ---- */

/** Pages are made when first filled: most programs use far fewer bytes than they reserve. */
static bool make_rings(machine *m) {
  const weft_program *program = m->program;
  m->rings = WEFT_NEW_ARRAY(m->arena, ring, program->buffer_count + 1);
  if (!m->rings) return false;
  for (uint64_t b = 0; b < program->buffer_count; b++) {
    m->rings[b].depth = program->buffers[b].depth_pages;
    m->rings[b].pages = WEFT_NEW_ARRAY(m->arena, page, m->rings[b].depth);
    m->rings[b].next_alias = (uint32_t)b;
    if (!m->rings[b].pages) return false;
  }
  for (uint32_t b = 0; b < program->buffer_count; b++) {
    uint32_t root = plan_alias_root(program, b);
    if (root == b || root == WEFT_NONE) continue;
    m->rings[b].next_alias = m->rings[root].next_alias;
    m->rings[root].next_alias = b;
  }
  return true;
}

static bool make_engines(machine *m) {
  const weft_schedule *schedule = m->program->schedule;
  m->engine_count = schedule->program_count;
  m->engines = WEFT_NEW_ARRAY(m->arena, engine, m->engine_count + 1);
  m->trip_counts = WEFT_NEW_ARRAY(m->arena, uint64_t, m->program->trip_count + 1);
  m->matmul_k = WEFT_NEW_ARRAY(m->arena, uint64_t, m->program->stage_count + 1);
  m->ports = plan_ports_find(m->program, m->arena);
  if (!m->engines || !m->trip_counts || !m->matmul_k || !m->ports) return false;
  for (uint64_t i = 0; i < m->engine_count; i++) m->engines[i].program = &schedule->programs[i];
  for (uint64_t s = 0; s < m->program->stage_count; s++)
    if (plan_matmul_of(&m->program->stages[s])) m->matmul_k[s] = plan_matmul_k(m->program, m->ports, (uint32_t)s);
  return true;
}

static weft_status check_program(const weft_program *program, weft_diag *diag) {
  if (!program->schedule)
    return weft_error(diag, WEFT_INVALID, "`weft plan` makes a schedule", "program `%s` has no schedule to evaluate",
                      program->name);
  if (program->link_count)
    return weft_error(diag, WEFT_INVALID, "evaluate the whole machine's program, before it is split",
                      "program `%s` is one chip's and waits for tensors of others", program->name);
  return weft_program_validate(program, 1, NULL, diag);
}

static void free_texts(machine *m) {
  for (uint64_t i = 0; i < m->fault_count; i++) weft_text_free(&m->faults[i]);
}

weft_status weft_evaluate(const weft_program *program, const weft_evaluate_options *options, const weft_array_set *in,
                          weft_array_set *out, weft_diag *diag) {
  static const weft_evaluate_options defaults = {.steps = 1};
  machine m = {.program = program, .diag = diag, .options = options ? options : &defaults};
  weft_status status = check_program(program, diag);
  if (!status) status = weft_program_check_datasets(program, diag);
  if (status) return status;
  m.arena = weft_arena_new();
  if (!m.arena) return weft_error_memory(diag);
  m.random = m.options->seed;
  status = tensors_make(&m);
  if (!status && (!make_rings(&m) || !make_engines(&m) || !semaphores_make(&m))) status = weft_error_memory(diag);
  if (!status) status = tensors_load(&m, in);
  if (!status) status = tensors_check_advance(&m);
  for (uint64_t step = 0; !status && step < weft_max_u64(m.options->steps, 1); step++) {
    if (step && m.options->advance) status = tensors_advance(&m);
    if (!status) status = run_step(&m);
  }
  if (!status) status = tensors_store(&m, out);
  free_texts(&m);
  weft_arena_free(m.arena);
  return status;
}
