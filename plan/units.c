/* Units: the connected groups of stages inside a section, and how each may be cut. */
#include "internal.h"

#include <string.h>

uint64_t plan_step_of(const weft_tile_addr *address, uint32_t var) {
  uint64_t stride = 0;
  for (uint64_t i = 0; i < address->step_count; i++)
    if (address->steps[i].var == var) stride += address->steps[i].stride;
  return stride;
}

bool plan_is_acc_map(const weft_stage *stage) {
  if (stage->kind != WEFT_STAGE_COMPUTE) return false;
  weft_compute_kind kind = stage->compute->kind;
  return kind == WEFT_COMPUTE_BIAS || kind == WEFT_COMPUTE_RELU || kind == WEFT_COMPUTE_REQUANT;
}

const weft_generic *plan_generic_of(const weft_stage *stage) {
  const weft_compute_op *op = stage->kind == WEFT_STAGE_COMPUTE      ? stage->compute
                              : stage->kind == WEFT_STAGE_ALL_REDUCE ? stage->all_reduce.combine
                                                                     : NULL;
  return op && op->kind == WEFT_COMPUTE_GENERIC ? &op->generic : NULL;
}

const weft_matmul_tiles *plan_matmul_of(const weft_stage *stage) {
  return stage->kind == WEFT_STAGE_COMPUTE && stage->compute->kind == WEFT_COMPUTE_MATMUL_TILES
             ? &stage->compute->matmul
             : NULL;
}

bool plan_buffer_is_acc(const weft_program *program, uint32_t buffer) {
  return program->buffers[buffer].kind == WEFT_BUFFER_ACCUMULATOR;
}

uint64_t plan_fold_levels(uint32_t segments) {
  uint64_t levels = 1;
  for (uint32_t n = 1; n < segments && n < WEFT_MAX_SEGMENTS; n *= 2) levels++;
  return levels;
}

uint64_t plan_divisor(uint64_t value, uint64_t limit) {
  for (uint64_t d = weft_min_u64(value, limit); d > 1; d--)
    if (value % d == 0) return d;
  return 1;
}

/* ---- sections ---- */

uint64_t plan_section_count(const weft_program *program) { return program->section_count ? program->section_count : 1; }

weft_span plan_section_stages(const weft_program *program, uint64_t section) {
  return program->section_count ? program->sections[section].stages : (weft_span){0, program->stage_count};
}

weft_span plan_section_items(const weft_program *program, uint64_t section) {
  return program->section_count ? program->sections[section].items : (weft_span){0, program->work.item_count};
}

uint32_t plan_alias_root(const weft_program *program, uint32_t buffer) {
  for (uint64_t i = 0; i <= program->buffer_count; i++) {
    if (program->buffers[buffer].alias_of == WEFT_NONE) return buffer;
    buffer = program->buffers[buffer].alias_of;
  }
  return WEFT_NONE;
}

weft_span plan_section_buffers(const weft_program *program, uint64_t section) {
  return program->section_count ? program->sections[section].buffers : (weft_span){0, program->buffer_count};
}

const char *plan_section_name(const weft_program *program, uint64_t section) {
  return program->section_count ? program->sections[section].name : program->name;
}

const weft_block_plan *plan_of_section(const weft_program *program, uint64_t section) {
  if (program->section_count && program->sections[section].has_plan) return &program->sections[section].plan;
  return program->work.has_plan ? &program->work.plan : NULL;
}

/* ---- ports ---- */

/** (buffer, stage) pairs, by buffer once they are sorted. */
typedef struct port_list {
  uint64_t *begin; /**< by buffer */
  uint32_t *stages;
  uint64_t total;
} port_list;

static void count_ports(port_list *list, const uint32_t *ports, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) list->begin[ports[i] + 2]++;
  list->total += count;
}

static void put_ports(port_list *list, const uint32_t *ports, uint64_t count, uint32_t stage) {
  for (uint64_t i = 0; i < count; i++) list->stages[list->begin[ports[i] + 1]++] = stage;
}

static bool make_room(port_list *list, uint64_t buffer_count, weft_arena *arena) {
  list->stages = WEFT_NEW_ARRAY(arena, uint32_t, list->total + 1);
  for (uint64_t b = 2; b < buffer_count + 2; b++) list->begin[b] += list->begin[b - 1];
  return list->stages != NULL;
}

/** Counting sorts of the ports: both in the same walks over the stages. */
static bool sort_ports(const weft_program *program, weft_arena *arena, plan_ports *ports) {
  port_list outs = {.begin = WEFT_NEW_ARRAY(arena, uint64_t, program->buffer_count + 2)};
  port_list ins = {.begin = WEFT_NEW_ARRAY(arena, uint64_t, program->buffer_count + 2)};
  if (!outs.begin || !ins.begin) return false;
  for (uint64_t s = 0; s < program->stage_count; s++) {
    const weft_stage *stage = &program->stages[s];
    weft_stage_fetch_ahead(program, s);
    count_ports(&outs, stage->outs, stage->out_count);
    count_ports(&ins, stage->ins, stage->in_count);
  }
  if (!make_room(&outs, program->buffer_count, arena) || !make_room(&ins, program->buffer_count, arena)) return false;
  for (uint64_t s = 0; s < program->stage_count; s++) {
    const weft_stage *stage = &program->stages[s];
    weft_stage_fetch_ahead(program, s);
    put_ports(&outs, stage->outs, stage->out_count, (uint32_t)s);
    put_ports(&ins, stage->ins, stage->in_count, (uint32_t)s);
  }
  ports->producer_begin = outs.begin;
  ports->producers = outs.stages;
  ports->reader_begin = ins.begin;
  ports->readers = ins.stages;
  return true;
}

static bool find_senders(const weft_program *program, weft_arena *arena, plan_ports *ports) {
  uint64_t groups = program->placement ? program->placement->group_count : 0;
  ports->sender_of_group = WEFT_NEW_ARRAY(arena, uint32_t, groups + 1);
  if (!ports->sender_of_group) return false;
  memset(ports->sender_of_group, 0xff, (groups + 1) * sizeof(uint32_t));
  for (uint64_t s = 0; groups && s < program->stage_count; s++) {
    const weft_stage *stage = &program->stages[s];
    if (stage->kind == WEFT_STAGE_LOAD && stage->load.multicast < groups)
      ports->sender_of_group[stage->load.multicast] = (uint32_t)s;
  }
  return true;
}

plan_ports *plan_ports_find(const weft_program *program, weft_arena *arena) {
  plan_ports *ports = WEFT_NEW(arena, plan_ports);
  if (!ports || !sort_ports(program, arena, ports) || !find_senders(program, arena, ports)) return NULL;
  return ports;
}

uint32_t plan_load_behind(const weft_program *program, const plan_ports *ports, uint32_t buffer) {
  uint32_t id = plan_only_producer(ports, buffer);
  if (id == WEFT_NONE) return WEFT_NONE;
  const weft_stage *stage = &program->stages[id];
  if (stage->kind == WEFT_STAGE_LOAD) return id;
  uint64_t groups = program->placement ? program->placement->group_count : 0;
  return stage->kind == WEFT_STAGE_RECV && stage->recv.group < groups ? ports->sender_of_group[stage->recv.group]
                                                                      : WEFT_NONE;
}

uint32_t plan_only_producer(const plan_ports *ports, uint32_t buffer) {
  uint64_t begin = ports->producer_begin[buffer];
  return ports->producer_begin[buffer + 1] == begin + 1 ? ports->producers[begin] : WEFT_NONE;
}

uint32_t plan_only_reader(const plan_ports *ports, uint32_t buffer) {
  uint64_t begin = ports->reader_begin[buffer];
  return ports->reader_begin[buffer + 1] == begin + 1 ? ports->readers[begin] : WEFT_NONE;
}

/* ---- what a matmul folds ---- */

uint64_t plan_matmul_k(const weft_program *program, const plan_ports *ports, uint32_t stage_id) {
  const weft_stage *stage = &program->stages[stage_id];
  const weft_matmul_tiles *matmul = plan_matmul_of(stage);
  uint64_t tiles;
  if (weft_mul_overflow(matmul->num_blocks, matmul->block.ibw, &tiles)) tiles = UINT64_MAX;
  uint64_t k = UINT64_MAX;
  if (tiles <= UINT64_MAX / program->tile_cols) k = tiles * program->tile_cols;
  for (uint64_t operand = 0; operand < 2 && operand < stage->in_count; operand++) {
    uint32_t id = plan_load_behind(program, ports, stage->ins[operand]);
    if (id == WEFT_NONE) continue;
    const weft_stage *load = &program->stages[id];
    const weft_tensor *tensor = &program->tensors[load->load.tensor];
    if (tensor->tiles.cols_t == 0) return 0;
    uint64_t base = load->load.pattern.origin.base;
    uint64_t first = operand == 0 ? base % tensor->tiles.cols_t * program->tile_cols
                                  : base / tensor->tiles.cols_t * program->tile_rows;
    uint64_t extent = operand == 0 ? tensor->elems.cols : tensor->elems.rows;
    k = weft_min_u64(k, extent > first ? extent - first : 0);
  }
  return k;
}

/* ---- groups of stages ---- */

static uint32_t find_root(uint32_t *parent, uint32_t stage) {
  while (parent[stage] != stage) stage = parent[stage] = parent[parent[stage]];
  return stage;
}

static void join(uint32_t *parent, uint32_t a, uint32_t b) {
  a = find_root(parent, a);
  b = find_root(parent, b);
  if (a < b)
    parent[b] = a;
  else
    parent[a] = b;
}

static void join_ports(uint32_t *parent, uint32_t *first, uint32_t stage, const uint32_t *ports, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    if (first[ports[i]] == WEFT_NONE)
      first[ports[i]] = stage;
    else
      join(parent, first[ports[i]], stage);
  }
}

static bool group_stages(const weft_program *program, weft_arena *arena, uint32_t *parent) {
  uint32_t *first = WEFT_NEW_ARRAY(arena, uint32_t, program->buffer_count + 1);
  if (!first) return false;
  memset(first, 0xff, (program->buffer_count + 1) * sizeof *first);
  for (uint64_t s = 0; s < program->stage_count; s++) parent[s] = (uint32_t)s;
  for (uint64_t s = 0; s < program->stage_count; s++) {
    const weft_stage *stage = &program->stages[s];
    weft_stage_fetch_ahead(program, s);
    join_ports(parent, first, (uint32_t)s, stage->ins, stage->in_count);
    join_ports(parent, first, (uint32_t)s, stage->outs, stage->out_count);
    const weft_matmul_tiles *matmul = plan_matmul_of(stage);
    if (matmul && matmul->interm != WEFT_NONE) join_ports(parent, first, (uint32_t)s, &matmul->interm, 1);
  }
  return true;
}

/* ---- recognising a matmul unit ---- */

typedef struct finder {
  const weft_program *program;
  const plan_ports *ports;
  plan_unit *unit;
} finder;

static bool plain_block(const weft_access_pattern *pattern, uint64_t cols_t) {
  return !pattern->origin.indirect && (pattern->block_w <= 1 || pattern->stride_w == 1) &&
         (pattern->block_h <= 1 || pattern->stride_h == cols_t);
}

static bool still(const weft_access_pattern *pattern, uint32_t first_var, uint32_t last_var) {
  for (uint32_t v = first_var; v <= last_var; v++)
    if (plan_step_of(&pattern->origin, v)) return false;
  return true;
}

/** Whether a Load walks a whole operand: K blocks along its columns (A) or its rows (B). */
static bool walks_operand(const weft_program *program, const weft_stage *load, bool is_a) {
  const weft_access_pattern *p = &load->load.pattern;
  uint64_t cols_t = program->tensors[load->load.tensor].tiles.cols_t;
  if (load->load.multicast != WEFT_NONE || !plain_block(p, cols_t) || !still(p, 2, 3)) return false;
  uint64_t step = is_a ? p->block_w : p->block_h * cols_t;
  return load->load.num_blocks <= 1 || plan_step_of(&p->origin, WEFT_VAR_K_BLOCK) == step;
}

/** Whether a pattern walks sub-blocks as the Store of the unit does. */
static bool walks_as_store(const weft_program *program, const plan_unit *unit, const weft_access_pattern *p,
                           uint32_t tensor) {
  const weft_stage *store = &program->stages[unit->store];
  uint64_t cols_t = program->tensors[tensor].tiles.cols_t;
  weft_pair subs = store->store.sub_blocks;
  return plain_block(p, cols_t) && p->block_h == store->store.pattern.block_h &&
         p->block_w == store->store.pattern.block_w && still(p, 4, 4) &&
         (subs.first <= 1 || plan_step_of(&p->origin, WEFT_VAR_SUB_H) == p->block_h * cols_t) &&
         (subs.second <= 1 || plan_step_of(&p->origin, WEFT_VAR_SUB_W) == p->block_w);
}

static bool is_identity(const weft_elem_access *map, uint64_t width) {
  if (map->base || map->indirect) return false;
  bool row = false, col = false;
  for (uint64_t i = 0; i < map->term_count; i++) {
    weft_term term = map->terms[i];
    if (term.stride == 0) continue;
    if (term.var == WEFT_VAR_GEN_ROW && !row && term.stride == (int64_t)width)
      row = true;
    else if (term.var == WEFT_VAR_GEN_COL && !col && term.stride == 1)
      col = true;
    else
      return false;
  }
  return row && col;
}

/** Whether a Generic computes position by position, so that its page may have any number of tiles. */
static bool is_pointwise(const weft_program *program, const weft_generic *generic) {
  if (generic->iter_count != 2) return false;
  const weft_iter *row = &generic->iters[0], *col = &generic->iters[1];
  if (row->var != WEFT_VAR_GEN_ROW || col->var != WEFT_VAR_GEN_COL || row->reduce || col->reduce) return false;
  if (row->extent != program->tile_rows || !is_identity(&generic->out, col->extent)) return false;
  for (uint64_t i = 0; i < generic->in_count; i++)
    if (!is_identity(&generic->ins[i], col->extent)) return false;
  for (uint64_t n = 0; n < generic->body.node_count; n++)
    if (generic->body.nodes[n].kind == WEFT_BODY_SELECT) return false;
  return true;
}

/** Whether each operand of an epilogue but the value itself is a Load of the form the unit's blocks can be cut to.
 * Counts the Loads. */
static bool loads_fit(const finder *f, const weft_stage *stage, uint32_t value, uint64_t *loads) {
  const weft_program *program = f->program;
  for (uint64_t i = 0; i < stage->in_count; i++) {
    if (stage->ins[i] == value) continue;
    uint32_t id = plan_only_producer(f->ports, stage->ins[i]);
    if (id == WEFT_NONE || program->stages[id].kind != WEFT_STAGE_LOAD) return false;
    const weft_stage *load = &program->stages[id];
    const weft_access_pattern *p = &load->load.pattern;
    if (load->load.num_blocks != 1 || load->load.multicast != WEFT_NONE) return false;
    if (stage->compute->kind == WEFT_COMPUTE_BIAS) {
      if (p->origin.indirect || p->block_h != 1 || p->block_w != f->unit->cols || !still(p, 2, 4) ||
          (p->block_w > 1 && p->stride_w != 1))
        return false;
    } else if (!walks_as_store(program, f->unit, p, load->load.tensor)) {
      return false;
    }
    ++*loads;
  }
  return true;
}

/** Follows the accumulator from the matmul to the Store. */
static bool chain_fits(const finder *f, uint64_t loads) {
  const weft_program *program = f->program;
  const plan_unit *unit = f->unit;
  uint64_t stages = 2; /* the matmul and the Store */
  uint32_t value = program->stages[unit->matmul].outs[0];
  for (;;) {
    uint32_t id = plan_only_reader(f->ports, value);
    if (id == WEFT_NONE || plan_only_producer(f->ports, value) == WEFT_NONE) return false;
    if (id == unit->store) return stages + loads == unit->stage_count;
    const weft_stage *stage = &program->stages[id];
    const weft_generic *generic = stage->kind == WEFT_STAGE_COMPUTE ? plan_generic_of(stage) : NULL;
    bool fits =
        plan_is_acc_map(stage) ? stage->in_count && stage->ins[0] == value : generic && is_pointwise(program, generic);
    if (!fits || !plan_buffer_is_acc(program, value) || stage->out_count != 1) return false;
    if (!loads_fit(f, stage, value, &loads)) return false;
    value = stage->outs[0];
    stages++;
  }
}

static bool recognise_matmul(const finder *f) {
  const weft_program *program = f->program;
  plan_unit *unit = f->unit;
  const weft_stage *matmul = &program->stages[unit->matmul];
  if (matmul->in_count != 2 || matmul->out_count != 1 || unit->store == WEFT_NONE) return false;
  if (matmul->compute->matmul.interm != WEFT_NONE) return false;
  unit->load_a = plan_only_producer(f->ports, matmul->ins[0]);
  unit->load_b = plan_only_producer(f->ports, matmul->ins[1]);
  if (unit->load_a == WEFT_NONE || unit->load_b == WEFT_NONE || unit->load_a == unit->load_b) return false;
  const weft_stage *a = &program->stages[unit->load_a], *b = &program->stages[unit->load_b];
  const weft_stage *store = &program->stages[unit->store];
  if (a->kind != WEFT_STAGE_LOAD || b->kind != WEFT_STAGE_LOAD) return false;
  if (!walks_operand(program, a, true) || !walks_operand(program, b, false)) return false;
  if (!walks_as_store(program, unit, &store->store.pattern, store->store.tensor)) return false;
  unit->rows = a->load.pattern.block_h;
  unit->cols = b->load.pattern.block_w;
  unit->k_tiles = a->load.num_blocks * a->load.pattern.block_w;
  weft_pair subs = store->store.sub_blocks;
  if (unit->k_tiles != b->load.num_blocks * b->load.pattern.block_h) return false;
  if (store->store.pattern.block_h * subs.first != unit->rows ||
      store->store.pattern.block_w * subs.second != unit->cols)
    return false;
  return chain_fits(f, 2);
}

/* ---- recognising a row unit ---- */

static bool recognise_rows(const finder *f) {
  const weft_program *program = f->program;
  plan_unit *unit = f->unit;
  if (unit->store == WEFT_NONE) return false;
  for (uint64_t i = 0; i < unit->stage_count; i++) {
    const weft_stage *stage = &program->stages[unit->stages[i]];
    if (stage->kind == WEFT_STAGE_RECV || plan_matmul_of(stage)) return false;
    if (stage->kind == WEFT_STAGE_STORE && unit->stages[i] != unit->store) return false;
    if (stage->kind == WEFT_STAGE_STORE &&
        (stage->store.pattern.origin.indirect || !still(&stage->store.pattern, 4, 4)))
      return false;
    if (stage->kind == WEFT_STAGE_LOAD && (stage->load.pattern.origin.indirect || stage->load.multicast != WEFT_NONE))
      return false;
  }
  const weft_stage *store = &program->stages[unit->store];
  unit->rows = store->store.sub_blocks.first;
  unit->cols = store->store.pattern.block_w * store->store.sub_blocks.second;
  unit->k_tiles = 1;
  return true;
}

/* ---- a unit ---- */

static void find_sites(const weft_program *program, plan_unit *unit) {
  bool seen = false;
  weft_site site = {0, 0, 0};
  for (uint64_t i = 0; i < unit->buffer_count; i++) {
    const weft_buffer *buffer = &program->buffers[unit->buffers[i]];
    if (!buffer->site.present) continue;
    if (seen && !weft_site_equal(site, buffer->site.site)) unit->spread = true;
    if (!seen) site = buffer->site.site;
    seen = true;
  }
  unit->chip = site.chip;
}

static void recognise(const weft_program *program, const plan_ports *ports, plan_unit *unit) {
  finder f = {program, ports, unit};
  uint64_t matmuls = 0;
  unit->kind = UNIT_FIXED;
  unit->store = unit->matmul = unit->load_a = unit->load_b = WEFT_NONE;
  unit->item = unit->stage_count ? program->stages[unit->stages[0]].item : WEFT_NONE;
  for (uint64_t i = 0; i < unit->stage_count; i++) {
    const weft_stage *stage = &program->stages[unit->stages[i]];
    weft_stage_fetch_ahead(program, unit->stages[i]);
    if (stage->item != unit->item) unit->item = WEFT_NONE;
    if (stage->kind == WEFT_STAGE_STORE && unit->store == WEFT_NONE) unit->store = unit->stages[i];
    if (plan_matmul_of(stage) && ++matmuls) unit->matmul = unit->stages[i];
  }
  find_sites(program, unit);
  if (unit->spread) return;
  if (matmuls == 1 && recognise_matmul(&f))
    unit->kind = UNIT_MATMUL;
  else if (matmuls == 0 && recognise_rows(&f))
    unit->kind = UNIT_ROWS;
}

/** Collects the stages and buffers of every unit; units are numbered by their first stage. */
static bool collect(const weft_program *program, weft_arena *arena, uint32_t *parent, plan_units *units) {
  uint64_t n = program->stage_count;
  uint32_t *stages = WEFT_NEW_ARRAY(arena, uint32_t, n + 1);
  uint32_t *buffers = WEFT_NEW_ARRAY(arena, uint32_t, program->buffer_count + 1);
  uint32_t *unit_of_buffer = WEFT_NEW_ARRAY(arena, uint32_t, program->buffer_count + 1);
  units->unit_of_stage = WEFT_NEW_ARRAY(arena, uint32_t, n + 1);
  units->items = WEFT_NEW_ARRAY(arena, plan_unit, n + 1);
  if (!stages || !buffers || !unit_of_buffer || !units->unit_of_stage || !units->items) return false;
  memset(unit_of_buffer, 0xff, (program->buffer_count + 1) * sizeof *unit_of_buffer);
  for (uint64_t s = 0; s < n; s++) {
    uint32_t root = find_root(parent, (uint32_t)s);
    if (root == s)
      units->unit_of_stage[s] = (uint32_t)units->count++;
    else
      units->unit_of_stage[s] = units->unit_of_stage[root];
    plan_unit *unit = &units->items[units->unit_of_stage[s]];
    unit->stage_count++;
    const weft_stage *stage = &program->stages[s];
    weft_stage_fetch_ahead(program, s);
    for (uint64_t i = 0; i < stage->in_count; i++) unit_of_buffer[stage->ins[i]] = units->unit_of_stage[s];
    for (uint64_t i = 0; i < stage->out_count; i++) unit_of_buffer[stage->outs[i]] = units->unit_of_stage[s];
    const weft_matmul_tiles *matmul = plan_matmul_of(stage);
    if (matmul && matmul->interm != WEFT_NONE) unit_of_buffer[matmul->interm] = units->unit_of_stage[s];
  }
  for (uint64_t b = 0; b < program->buffer_count; b++)
    if (unit_of_buffer[b] != WEFT_NONE) units->items[unit_of_buffer[b]].buffer_count++;
  uint64_t stage_at = 0, buffer_at = 0;
  for (uint64_t u = 0; u < units->count; u++) {
    plan_unit *unit = &units->items[u];
    unit->stages = stages + stage_at;
    unit->buffers = buffers + buffer_at;
    stage_at += unit->stage_count;
    buffer_at += unit->buffer_count;
    unit->stage_count = unit->buffer_count = 0;
  }
  for (uint64_t s = 0; s < n; s++) {
    plan_unit *unit = &units->items[units->unit_of_stage[s]];
    ((uint32_t *)unit->stages)[unit->stage_count++] = (uint32_t)s;
  }
  for (uint64_t b = 0; b < program->buffer_count; b++) {
    if (unit_of_buffer[b] == WEFT_NONE) continue;
    plan_unit *unit = &units->items[unit_of_buffer[b]];
    ((uint32_t *)unit->buffers)[unit->buffer_count++] = (uint32_t)b;
  }
  return true;
}

weft_status plan_units_find(const weft_program *program, weft_arena *arena, plan_units *units, weft_diag *diag) {
  *units = (plan_units){0};
  uint32_t *parent = WEFT_NEW_ARRAY(arena, uint32_t, program->stage_count + 1);
  plan_ports *ports = plan_ports_find(program, arena);
  if (!parent || !ports || !group_stages(program, arena, parent) || !collect(program, arena, parent, units))
    return weft_error_memory(diag);
  uint64_t section = 0;
  for (uint64_t u = 0; u < units->count; u++) {
    plan_unit *unit = &units->items[u];
    while (section + 1 < plan_section_count(program) && unit->stages[0] >= plan_section_stages(program, section).end)
      section++;
    unit->section = section;
    recognise(program, ports, unit);
  }
  return WEFT_OK;
}
