/* A program as large as one layer of a 27B model, made by valid/large-gemm-chain.recipe.md. Used by tests and
 * benchmarks: without memory it ends the process. */
#include "gemm_chain.h"

#include <stdlib.h>
#include <string.h>

enum { SITES = 4, ENGINES = 3 };

typedef struct recipe {
  weft_program *p;
  uint64_t sections, blocks, width; /* S, K, w */
} recipe;

static uint64_t row_of(uint64_t site) { return site / 2; }
static uint64_t col_of(uint64_t site) { return site % 2; }
static uint64_t columns(const recipe *r, uint64_t site) { return col_of(site) ? r->blocks - r->width : r->width; }
static weft_site at(uint64_t site) { return (weft_site){.x = (uint16_t)col_of(site), .y = (uint16_t)row_of(site)}; }
static uint32_t tensor_a(uint64_t q) { return (uint32_t)(2 * q); }
static uint32_t tensor_b(uint64_t q) { return (uint32_t)(2 * q + 1); }
static uint32_t tensor_c(uint64_t q) { return (uint32_t)(2 * q + 2); }
static uint32_t stage_of(uint64_t q, uint64_t site, uint64_t which) { return (uint32_t)(16 * q + 4 * site + which); }
static uint32_t buffer_of(uint64_t q, uint64_t site, uint64_t which) { return (uint32_t)(12 * q + 3 * site + which); }

static const uint32_t *ids(recipe *r, uint64_t count, const uint32_t *from) {
  uint32_t *copy = WEFT_NEW_ARRAY(r->p->arena, uint32_t, count);
  memcpy(copy, from, count * sizeof *copy);
  return copy;
}

/* ---- tensors, buffers, stages, edges, items ---- */

static void add_tensor(recipe *r, const char *name, weft_tensor_role role, uint64_t rows, weft_init init) {
  weft_program *p = r->p;
  p->tensors[p->tensor_count] = (weft_tensor){.id = (uint32_t)p->tensor_count,
                                              .name = name,
                                              .role = role,
                                              .elems = {rows, 32 * r->blocks},
                                              .tiles = {rows / 32, r->blocks},
                                              .dtype = WEFT_BF16,
                                              .init = init,
                                              .chip = WEFT_NONE};
  p->tensor_count++;
}

static void make_tensors(recipe *r) {
  weft_arena *arena = r->p->arena;
  r->p->tensors = WEFT_NEW_ARRAY(arena, weft_tensor, 2 * r->sections + 1);
  add_tensor(r, "x", WEFT_ROLE_INPUT, 64, (weft_init){.kind = WEFT_INIT_EXTERNAL});
  for (uint64_t q = 0; q < r->sections; q++) {
    weft_init random = {.kind = WEFT_INIT_RANDOM_BF16, .random = {.seed = (uint32_t)q, .shift_milli = -500}};
    add_tensor(r, weft_arena_printf(arena, "w%d", (int)q), WEFT_ROLE_PARAM, 32 * r->blocks, random);
    weft_tensor_role role = q + 1 == r->sections ? WEFT_ROLE_OUTPUT : WEFT_ROLE_ACTIVATION;
    add_tensor(r, weft_arena_printf(arena, "h%d", (int)q), role, 64, (weft_init){.kind = WEFT_INIT_ZERO});
  }
}

static void make_buffers(recipe *r, weft_buffer_at *places) {
  weft_program *p = r->p;
  p->buffer_count = 12 * r->sections;
  p->buffers = WEFT_NEW_ARRAY(p->arena, weft_buffer, p->buffer_count);
  for (uint32_t b = 0; b < p->buffer_count; b++) {
    uint64_t q = b / 12, site = b % 12 / 3, which = b % 3;
    uint64_t page = which ? columns(r, site) : 1;
    p->buffers[b] = (weft_buffer){
        .id = b,
        .name = weft_arena_printf(p->arena, "s%d.%c@%d,%d", (int)q, "abc"[which], (int)row_of(site), (int)col_of(site)),
        .depth_pages = 2,
        .page_tiles = page,
        .dtype = WEFT_BF16,
        .site = {true, at(site)},
        .origin = (uint32_t)(3 * q + which),
        .alias_of = WEFT_NONE};
    places[b] = (weft_buffer_at){.site = at(site),
                                 .offset_bytes = (uint32_t)(which ? 4096 + (which - 1) * 4096 * r->width : 0),
                                 .bytes = (uint32_t)(4096 * page)};
  }
}

static weft_access_pattern pattern(recipe *r, uint64_t base, const weft_step *steps, uint64_t count, uint64_t width) {
  weft_step *copy = WEFT_NEW_ARRAY(r->p->arena, weft_step, count);
  memcpy(copy, steps, count * sizeof *copy);
  return (weft_access_pattern){.origin = {.base = base, .steps = copy, .step_count = count},
                               .block_h = 1,
                               .block_w = width,
                               .stride_w = 1,
                               .stride_h = r->blocks};
}

static const weft_compute_op *matmul(recipe *r, uint64_t site) {
  weft_compute_op *op = WEFT_NEW(r->p->arena, weft_compute_op);
  *op = (weft_compute_op){.kind = WEFT_COMPUTE_MATMUL_TILES};
  op->matmul = (weft_matmul_tiles){.block = {1, columns(r, site), 1},
                                   .sub_blocks = {1, 1},
                                   .num_blocks = r->blocks,
                                   .operand = WEFT_BF16,
                                   .acc = WEFT_ACC_F32,
                                   .interm = WEFT_NONE,
                                   .trip = WEFT_NONE,
                                   .granularity = WEFT_GRANULARITY_PER_SUB_BLOCK,
                                   .segments = 1};
  return op;
}

static void make_stages_at(recipe *r, uint64_t q, uint64_t site) {
  static const char *const names[] = {"load_a", "load_b", "matmul", "store"};
  weft_program *p = r->p;
  uint64_t i = row_of(site), j = col_of(site), k = r->blocks;
  uint32_t a = buffer_of(q, site, 0), b = buffer_of(q, site, 1), c = buffer_of(q, site, 2);
  weft_stage *st = &p->stages[stage_of(q, site, 0)];
  for (uint32_t which = 0; which < 4; which++)
    st[which] = (weft_stage){.id = stage_of(q, site, which),
                             .name = weft_arena_printf(p->arena, "s%d.%s@%d,%d", (int)q, names[which], (int)i, (int)j),
                             .role = which == 2 ? WEFT_SITE_COMPUTE : WEFT_SITE_MOVEMENT,
                             .site = {true, at(site)},
                             .item = (uint32_t)(4 * q + site),
                             .origin = (uint32_t)(4 * q + which)};
  st[0].kind = st[1].kind = WEFT_STAGE_LOAD;
  st[0].load.tensor = tensor_a(q);
  st[0].load.pattern = pattern(r, i * k, &(weft_step){WEFT_VAR_K_BLOCK, 1}, 1, 1);
  st[1].load.tensor = tensor_b(q);
  st[1].load.pattern = pattern(r, j * r->width, &(weft_step){WEFT_VAR_K_BLOCK, k}, 1, columns(r, site));
  st[0].load.num_blocks = st[1].load.num_blocks = k;
  st[0].load.multicast = st[1].load.multicast = WEFT_NONE;
  st[2].kind = WEFT_STAGE_COMPUTE;
  st[2].compute = matmul(r, site);
  st[3].kind = WEFT_STAGE_STORE;
  st[3].store.tensor = tensor_c(q);
  const weft_step steps[] = {{WEFT_VAR_SUB_H, k}, {WEFT_VAR_SUB_W, columns(r, site)}};
  st[3].store.pattern = pattern(r, i * k + j * r->width, steps, 2, columns(r, site));
  st[3].store.sub_blocks = (weft_pair){1, 1};
  st[0].outs = ids(r, 1, &a);
  st[1].outs = ids(r, 1, &b);
  st[2].ins = ids(r, 2, (uint32_t[]){a, b});
  st[2].outs = ids(r, 1, &c);
  st[3].ins = ids(r, 1, &c);
  st[0].out_count = st[1].out_count = st[2].out_count = st[3].in_count = 1;
  st[2].in_count = 2;
}

static void make_edges_at(recipe *r, uint64_t q, uint64_t site) {
  static const uint8_t from[] = {0, 1, 2}, to[] = {2, 2, 3};
  for (uint64_t which = 0; which < 3; which++) {
    uint32_t reader = stage_of(q, site, to[which]);
    uint32_t id = buffer_of(q, site, which);
    r->p->edges[id] = (weft_edge){
        .id = id, .from = stage_of(q, site, from[which]), .buffer = id, .to = ids(r, 1, &reader), .to_count = 1};
  }
}

static void make_work(recipe *r, weft_site_items *lists) {
  weft_program *p = r->p;
  p->work.item_count = SITES * r->sections;
  p->work.items = WEFT_NEW_ARRAY(p->arena, weft_work_item, p->work.item_count);
  p->work.k_tiles = r->blocks;
  for (uint64_t site = 0; site < SITES; site++) {
    uint32_t *list = WEFT_NEW_ARRAY(p->arena, uint32_t, r->sections);
    for (uint64_t q = 0; q < r->sections; q++) {
      uint32_t id = list[q] = (uint32_t)(SITES * q + site);
      p->work.items[id] = (weft_work_item){.id = id,
                                           .coord = {row_of(site), col_of(site)},
                                           .row0_t = row_of(site),
                                           .col0_t = col_of(site) * r->width,
                                           .h_t = 1,
                                           .w_t = columns(r, site)};
    }
    lists[site] = (weft_site_items){.site = at(site), .items = list, .item_count = r->sections};
  }
}

/* ---- sections and semaphores ---- */

static void make_semaphores(recipe *r) {
  weft_program *p = r->p;
  p->semaphore_count = 2 * (r->sections - 1);
  p->semaphores = WEFT_NEW_ARRAY(p->arena, weft_semaphore, p->semaphore_count);
  weft_site *sites = WEFT_NEW_ARRAY(p->arena, weft_site, SITES);
  for (uint64_t i = 0; i < SITES; i++) sites[i] = (weft_site){.x = (uint16_t)(i / 2), .y = (uint16_t)(i % 2)};
  for (uint32_t i = 0; i < p->semaphore_count; i++)
    p->semaphores[i] = (weft_semaphore){.id = i,
                                        .role = WEFT_SEM_BARRIER,
                                        .count = SITES * ENGINES,
                                        .phase = i % 2 ? WEFT_BARRIER_RELEASE : WEFT_BARRIER_GATHER,
                                        .sites = sites,
                                        .site_count = i % 2 ? SITES : 1};
}

static void make_sections(recipe *r) {
  weft_program *p = r->p;
  p->work.has_plan = true;
  p->work.plan = (weft_block_plan){.per_site_m = 1,
                                   .per_site_n = r->width,
                                   .grid = {2, 2},
                                   .num_blocks = r->blocks,
                                   .block_k_tiles = 1,
                                   .block = {1, r->width, 1},
                                   .acc = WEFT_ACC_F32,
                                   .granularity = WEFT_GRANULARITY_PER_SUB_BLOCK};
  p->section_count = r->sections;
  p->sections = WEFT_NEW_ARRAY(p->arena, weft_section, p->section_count);
  for (uint64_t q = 0; q < r->sections; q++) {
    bool last = q + 1 == r->sections;
    p->sections[q] = (weft_section){.name = weft_arena_printf(p->arena, "section %d", (int)q),
                                    .stages = {16 * q, 16 * q + 16},
                                    .buffers = {12 * q, 12 * q + 12},
                                    .edges = {12 * q, 12 * q + 12},
                                    .semaphores = {2 * q, last ? 2 * q : 2 * q + 2},
                                    .items = {SITES * q, SITES * q + SITES},
                                    .has_plan = true,
                                    .plan = p->work.plan,
                                    .k_tiles = r->blocks,
                                    .output = tensor_c(q),
                                    .has_barrier_after = !last,
                                    .gather = (uint32_t)(2 * q),
                                    .release = (uint32_t)(2 * q + 1)};
  }
}

/* ---- schedule ---- */

typedef struct tape {
  recipe *r;
  weft_op *ops;
  uint64_t count, capacity;
} tape;

static void put(tape *t, weft_op op) {
  if (!weft_arena_grow(t->r->p->arena, &t->ops, t->count, &t->capacity, sizeof op)) abort();
  t->ops[t->count++] = op;
}

static void put_page(tape *t, uint32_t stage, weft_choreo_kind kind, uint32_t buffer) {
  put(t, (weft_op){.stage = stage, .kind = kind, .page = {.buf = buffer, .pages = 1}});
}

static void put_tiles(tape *t, uint32_t stage, weft_choreo_kind kind, uint32_t tensor, uint32_t buffer, uint64_t base,
                      uint64_t width) {
  weft_op op = {.stage = stage, .kind = kind};
  op.tiles.tensor = tensor;
  op.tiles.buf = buffer;
  op.tiles.at.base = base;
  op.tiles.block_h = op.tiles.stride_w = 1;
  op.tiles.block_w = width;
  op.tiles.stride_h = t->r->blocks;
  put(t, op);
}

static void put_loads(tape *t, uint64_t q, uint64_t site) {
  const recipe *r = t->r;
  uint64_t i = row_of(site), j = col_of(site);
  for (uint64_t k = 0; k < r->blocks; k++)
    for (uint64_t which = 0; which < 2; which++) {
      uint32_t stage = stage_of(q, site, which), buffer = buffer_of(q, site, which);
      put_page(t, stage, WEFT_OP_RESERVE, buffer);
      if (which == 0)
        put_tiles(t, stage, WEFT_OP_READ_TILES, tensor_a(q), buffer, i * r->blocks + k, 1);
      else
        put_tiles(t, stage, WEFT_OP_READ_TILES, tensor_b(q), buffer, j * r->width + k * r->blocks, columns(r, site));
      put(t, (weft_op){.stage = stage, .kind = WEFT_OP_READ_BARRIER});
      put_page(t, stage, WEFT_OP_PUSH, buffer);
    }
}

static void put_computes(tape *t, uint64_t q, uint64_t site) {
  uint32_t s = stage_of(q, site, 2);
  uint32_t operands[] = {buffer_of(q, site, 0), buffer_of(q, site, 1)}, out = buffer_of(q, site, 2);
  put(t, (weft_op){.stage = s, .kind = WEFT_OP_ACQUIRE_ACC, .acquire_tiles = columns(t->r, site)});
  for (uint64_t k = 0; k < t->r->blocks; k++) {
    for (unsigned i = 0; i < 2; i++) put_page(t, s, WEFT_OP_WAIT, operands[i]);
    weft_op op = {.stage = s, .kind = WEFT_OP_COMPUTE};
    op.compute.op = matmul(t->r, site);
    op.compute.ins = ids(t->r, 2, operands);
    op.compute.in_count = 2;
    op.compute.acc_reload = WEFT_NONE;
    put(t, op);
    for (unsigned i = 0; i < 2; i++) put_page(t, s, WEFT_OP_POP, operands[i]);
  }
  put_page(t, s, WEFT_OP_RESERVE, out);
  put(t, (weft_op){.stage = s,
                   .kind = WEFT_OP_PACK_ACC,
                   .pack = {.to = out, .tiles = columns(t->r, site), .convert = WEFT_BF16}});
  put(t, (weft_op){.stage = s, .kind = WEFT_OP_RELEASE_ACC});
  put_page(t, s, WEFT_OP_PUSH, out);
}

static void put_store(tape *t, uint64_t q, uint64_t site) {
  uint32_t s = stage_of(q, site, 3), buffer = buffer_of(q, site, 2);
  put_page(t, s, WEFT_OP_WAIT, buffer);
  put_tiles(t, s, WEFT_OP_WRITE_TILES, tensor_c(q), buffer, row_of(site) * t->r->blocks + col_of(site) * t->r->width,
            columns(t->r, site));
  put(t, (weft_op){.stage = s, .kind = WEFT_OP_WRITE_BARRIER});
  put_page(t, s, WEFT_OP_POP, buffer);
}

static void put_rendezvous(tape *t, uint64_t q, uint32_t stage, bool root) {
  uint32_t gather = (uint32_t)(2 * q), release = gather + 1;
  put(t, (weft_op){.stage = stage, .kind = WEFT_OP_SEM_INC, .sem_inc = {.sem = gather, .by = 1}});
  if (root) {
    put(t, (weft_op){.stage = stage,
                     .kind = WEFT_OP_SEM_WAIT,
                     .sem_wait = {.sem = gather, .at_least = true, .count = SITES * ENGINES}});
    for (uint64_t i = 0; i < SITES; i++)
      put(t, (weft_op){.stage = stage,
                       .kind = WEFT_OP_SEM_INC,
                       .sem_inc = {.sem = release, .at = t->r->p->semaphores[release].sites[i], .by = 1}});
  }
  put(t,
      (weft_op){.stage = stage, .kind = WEFT_OP_SEM_WAIT, .sem_wait = {.sem = release, .at_least = true, .count = 1}});
}

static void make_program_at(recipe *r, weft_engine_program *ep, uint64_t site, uint64_t engine) {
  static const weft_engine engines[] = {{.movement = 0}, {.compute = true}, {.movement = 1}};
  static const uint8_t first_stage[] = {0, 2, 3}, stage_count[] = {2, 1, 1};
  tape t = {.r = r};
  uint32_t *stages = WEFT_NEW_ARRAY(r->p->arena, uint32_t, r->sections * stage_count[engine]);
  uint64_t count = 0;
  for (uint64_t q = 0; q < r->sections; q++) {
    for (uint64_t k = 0; k < stage_count[engine]; k++) stages[count++] = stage_of(q, site, first_stage[engine] + k);
    if (engine == 0) put_loads(&t, q, site);
    if (engine == 1) put_computes(&t, q, site);
    if (engine == 2) put_store(&t, q, site);
    if (q + 1 < r->sections) put_rendezvous(&t, q, stages[count - 1], site == 0 && engine == 0);
  }
  *ep = (weft_engine_program){.site = at(site),
                              .engine = engines[engine],
                              .stages = stages,
                              .stage_count = count,
                              .ops = t.ops,
                              .op_count = t.count};
}

static void make_schedule(recipe *r) {
  weft_schedule *schedule = WEFT_NEW(r->p->arena, weft_schedule);
  weft_engine_program *programs = WEFT_NEW_ARRAY(r->p->arena, weft_engine_program, SITES * ENGINES);
  for (uint64_t i = 0; i < SITES * ENGINES; i++) make_program_at(r, &programs[i], i / ENGINES, i % ENGINES);
  *schedule = (weft_schedule){.programs = programs, .program_count = SITES * ENGINES};
  r->p->schedule = schedule;
}

static void make_placement(recipe *r, const weft_site_items *lists) {
  weft_program *p = r->p;
  weft_site *site_of = WEFT_NEW_ARRAY(p->arena, weft_site, p->stage_count);
  weft_engine_slot *slots = WEFT_NEW_ARRAY(p->arena, weft_engine_slot, p->stage_count);
  for (uint64_t s = 0; s < p->stage_count; s++) {
    uint64_t which = s % 4;
    site_of[s] = at(s % 16 / 4);
    slots[s] = (weft_engine_slot){.site = site_of[s],
                                  .engine = {.compute = which == 2, .movement = which == 3},
                                  .has_noc = which != 2,
                                  .noc = which == 3};
  }
  p->placement = WEFT_NEW(p->arena, weft_placement);
  *p->placement = (weft_placement){.mesh_cols = 2,
                                   .mesh_rows = 2,
                                   .site_of = site_of,
                                   .site_of_count = p->stage_count,
                                   .engine_of = slots,
                                   .engine_of_count = p->stage_count,
                                   .items_of_site = lists,
                                   .items_of_site_count = SITES};
}

weft_program *gemm_chain(const char *name, uint64_t sections, uint64_t blocks) {
  weft_program *p = weft_program_new(name);
  recipe r = {.p = p, .sections = sections, .blocks = blocks, .width = (blocks + 1) / 2};
  p->acc_tiles_used = r.width;
  p->requires_handshakes = 1U << WEFT_HANDSHAKE_FIFO;
  make_tensors(&r);
  weft_buffer_at *places = WEFT_NEW_ARRAY(p->arena, weft_buffer_at, 12 * sections);
  make_buffers(&r, places);
  p->memory = WEFT_NEW(p->arena, weft_memory_map);
  *p->memory = (weft_memory_map){.buffer_at = places, .buffer_at_count = p->buffer_count};
  p->stage_count = 16 * sections;
  p->stages = WEFT_NEW_ARRAY(p->arena, weft_stage, p->stage_count);
  p->edge_count = 12 * sections;
  p->edges = WEFT_NEW_ARRAY(p->arena, weft_edge, p->edge_count);
  for (uint64_t q = 0; q < sections; q++)
    for (uint64_t site = 0; site < SITES; site++) {
      make_stages_at(&r, q, site);
      make_edges_at(&r, q, site);
    }
  weft_site_items *lists = WEFT_NEW_ARRAY(p->arena, weft_site_items, SITES);
  make_work(&r, lists);
  make_semaphores(&r);
  make_sections(&r);
  make_placement(&r, lists);
  make_schedule(&r);
  if (weft_arena_failed(p->arena)) abort();
  return p;
}
