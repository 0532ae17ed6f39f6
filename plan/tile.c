/* tile
 * requires     a valid Template
 * establishes  every section has a block plan: blocks a site, sub-blocks that divide them, K blocks that divide K; the
 *              accumulator holds a block, so nothing is spilled; folds of rows too long for local memory are walked in
 *              column blocks
 * breaks       nothing: other stages stay one a unit, place cuts them by the plan
 * source       spatial-ir seed, "BlockPlan"; blocks that stay while K streams past them: output stationary (Chen,
 *              Emer and Sze, Eyeriss, 2016) */
#include "internal.h"

#include <math.h>
#include <string.h>

/** Blocks of K that are kept in a page at most: enough to hide a page's fixed costs, small beside the block. */
#define K_PAGE_TILES 16

/** What a section asks of its plan: the greatest of its units' needs. */
typedef struct section_need {
  uint64_t rows, cols, k_tiles; /**< of tile products */
  uint64_t levels;              /**< partial tiles an output tile holds */
  uint64_t page_k_tiles;        /**< K tiles of a page at most: a trip counts blocks of its own size */
  uint64_t operand_bytes;       /**< of an element of the operands */
  weft_format operand;
  bool products;
  uint64_t unit_rows, unit_cols;  /**< of row units: rows of sub-blocks, tiles of a sub-block */
  uint64_t fixed_acc;             /**< accumulator tiles that other stages acquire */
  const weft_matmul_tiles *fixed; /**< a tile product that is not cut */
  weft_acc_policy acc;
} section_need;

/** Accumulator tiles a compute of no matmul unit acquires: those of the page it fills. */
static uint64_t acquired_tiles(const weft_program *program, const weft_stage *stage) {
  const weft_matmul_tiles *matmul = plan_matmul_of(stage);
  if (matmul) {
    uint64_t tiles;
    return weft_mul_overflow(matmul->block.osh, matmul->block.osw, &tiles) ? UINT64_MAX : tiles;
  }
  return stage->kind != WEFT_STAGE_LOAD && stage->out_count ? program->buffers[stage->outs[0]].page_tiles : 0;
}

static weft_acc_policy acc_of_unit(const weft_program *program, const plan_unit *unit) {
  if (unit->store == WEFT_NONE) return WEFT_ACC_F32;
  return weft_acc_for_result(program->tensors[program->stages[unit->store].store.tensor].dtype);
}

static void add_unit(const weft_program *program, const plan_unit *unit, section_need *need) {
  if (unit->kind == UNIT_MATMUL) {
    const weft_matmul_tiles *matmul = plan_matmul_of(&program->stages[unit->matmul]);
    if (!need->products) need->acc = matmul->acc;
    need->products = true;
    need->rows = weft_max_u64(need->rows, unit->rows);
    need->cols = weft_max_u64(need->cols, unit->cols);
    need->k_tiles = weft_max_u64(need->k_tiles, unit->k_tiles);
    if (matmul->trip != WEFT_NONE) need->page_k_tiles = weft_max_u64(1, matmul->block.ibw);
    need->levels = weft_max_u64(need->levels, plan_fold_levels(matmul->segments));
    need->operand = matmul->operand;
    need->operand_bytes = weft_max_u64(need->operand_bytes, weft_format_bytes(matmul->operand));
    return;
  }
  if (!need->products) need->acc = acc_of_unit(program, unit);
  if (unit->kind == UNIT_ROWS) {
    need->unit_rows = weft_max_u64(need->unit_rows, unit->rows);
    need->unit_cols = weft_max_u64(need->unit_cols, unit->cols);
  }
  for (uint64_t i = 0; i < unit->stage_count; i++)
    need->fixed_acc = weft_max_u64(need->fixed_acc, acquired_tiles(program, &program->stages[unit->stages[i]]));
  if (unit->matmul == WEFT_NONE || need->products) return;
  need->fixed = plan_matmul_of(&program->stages[unit->matmul]);
  need->acc = need->fixed->acc;
}

/* ---- choosing the blocks of tile products ---- */

typedef struct choice {
  uint64_t grid_rows, grid_cols; /**< sites used */
  uint64_t per_m, per_n, ibw;
  double seconds;
} choice;

double plan_block_bytes(const weft_program *program, uint64_t rows, uint64_t cols, uint64_t ibw,
                        uint64_t operand_bytes) {
  double operands = (double)(rows + cols) * (double)ibw * (double)operand_bytes;
  double results = (double)rows * (double)cols * 8 + (double)cols * 8;
  return 2 * (double)program->tile_rows * (double)program->tile_cols * (operands + results);
}

plan_grid plan_grid_of(const weft_target *target, uint64_t down, uint64_t across) {
  const uint64_t mesh_rows = target->mesh_rows, mesh_cols = target->mesh_cols;
  plan_grid grid = {weft_min_u64(down, mesh_rows), weft_min_u64(across, mesh_cols), 1, 1, 0};
  if (down < mesh_rows && across > mesh_cols) {
    grid.bands = weft_min_u64(mesh_rows / down, weft_ceil_div(across, mesh_cols));
    grid.rows = down * grid.bands;
  } else if (across < mesh_cols && down > mesh_rows) {
    grid.stacks = weft_min_u64(mesh_cols / across, weft_ceil_div(down, mesh_rows));
    grid.cols = across * grid.stacks;
  }
  grid.rounds = weft_ceil_div(weft_ceil_div(down, grid.rows / grid.bands), grid.stacks) *
                weft_ceil_div(weft_ceil_div(across, grid.cols / grid.stacks), grid.bands);
  return grid;
}

/** Blocks that one site has to do, one after the other; the sites in use are counted too. */
static double count_rounds(const weft_target *target, const section_need *need, choice *c) {
  uint64_t down = weft_ceil_div(weft_max_u64(need->rows, 1), c->per_m),
           across = weft_ceil_div(weft_max_u64(need->cols, 1), c->per_n);
  const plan_grid grid = plan_grid_of(target, down, across);
  c->grid_rows = grid.rows;
  c->grid_cols = grid.cols;
  return (double)grid.rounds;
}

/** Makes the block smaller by half; false when it is a single tile. */
static bool halve_block(choice *c) {
  if (c->per_m == 1 && c->per_n == 1) return false;
  if (c->per_m >= c->per_n)
    c->per_m = (c->per_m + 1) / 2;
  else
    c->per_n = (c->per_n + 1) / 2;
  return true;
}

/** Makes the block smaller until the accumulator holds it, then the pages until local memory holds those of all its
 * blocks. Where `apart`, of one of them, for sections of their own, and the block smaller again if it must be. False
 * when nothing fits. */
static bool fit_block(const weft_program *program, const weft_target *target, const section_need *need, bool apart,
                      choice *c) {
  uint64_t k = weft_max_u64(need->k_tiles, 1);
  while ((double)c->per_m * (double)c->per_n * (double)need->levels > (double)target->acc_tiles)
    if (!halve_block(c)) return false;
  do {
    double rounds = count_rounds(target, need, c);
    if (apart) rounds = 1;
    for (c->ibw = plan_divisor(k, need->page_k_tiles);; c->ibw = plan_divisor(k, c->ibw - 1)) {
      double bytes = plan_block_bytes(program, c->per_m, c->per_n, c->ibw, need->operand_bytes);
      if (rounds * bytes <= (double)target->local_bytes) return true;
      if (c->ibw == 1) break;
    }
  } while (apart && halve_block(c));
  return false;
}

/** Time of a section under the choice: the busiest site's products and reads, and a fixed cost for each site. */
static double price(const weft_program *program, const weft_target *target, const section_need *need, choice *c) {
  double tile = (double)program->tile_rows * (double)program->tile_cols;
  double sites = (double)(target->mesh_rows * target->mesh_cols);
  double rounds = count_rounds(target, need, c), used = (double)(c->grid_rows * c->grid_cols);
  double k = (double)weft_max_u64(need->k_tiles, 1);
  double products = rounds * (double)c->per_m * (double)c->per_n * k;
  double reads = rounds * (double)(c->per_m + c->per_n) * k;
  double rate = target->flops_per_second[need->operand] > 0 ? target->flops_per_second[need->operand] : 1e9;
  double compute = products * 2 * tile * (double)program->tile_cols / (rate / sites);
  double memory = reads * tile * (double)need->operand_bytes / (target->dram_bytes_per_second / used);
  return fmax(compute, memory) + target->op_seconds * used;
}

static void report_choice(weft_text *report, const char *section, const choice *c, const char *what) {
  if (!report) return;
  weft_text_printf(report,
                   "section `%s`: %s: %llu x %llu sites, blocks of %llu x %llu tiles, %llu K tiles a page, %.3g s\n",
                   section, what, (unsigned long long)c->grid_rows, (unsigned long long)c->grid_cols,
                   (unsigned long long)c->per_m, (unsigned long long)c->per_n, (unsigned long long)c->ibw, c->seconds);
}

/** Tries every grid of sites up to the mesh; the first of equal prices wins, so fewer sites do. Where `apart`, the
 * blocks of a site need not fit its memory together: place gives them sections of their own. */
static bool choose_products(const weft_program *program, const weft_target *target, const section_need *need,
                            bool apart, const char *section, weft_text *report, choice *best) {
  choice second = {.seconds = INFINITY};
  *best = second;
  for (uint64_t rows = 1; rows <= target->mesh_rows; rows++) {
    if (rows > 1 && rows > need->rows) break;
    for (uint64_t cols = 1; cols <= target->mesh_cols; cols++) {
      if (cols > 1 && cols > need->cols) break;
      choice c = {rows,
                  cols,
                  weft_max_u64(1, weft_ceil_div(need->rows, rows)),
                  weft_max_u64(1, weft_ceil_div(need->cols, cols)),
                  1,
                  0};
      if (!fit_block(program, target, need, apart, &c)) continue;
      c.seconds = price(program, target, need, &c);
      if (c.per_m == best->per_m && c.per_n == best->per_n) continue;
      if (c.seconds < best->seconds) {
        second = *best;
        *best = c;
      } else if (c.seconds < second.seconds) {
        second = c;
      }
    }
  }
  if (!isfinite(best->seconds)) return false;
  report_choice(report, section, best, "chosen");
  if (isfinite(second.seconds)) report_choice(report, section, &second, "runner-up");
  return true;
}

/* ---- the plan of a section ---- */

static weft_status plan_products(const weft_program *program, const weft_target *target, const section_need *need,
                                 const char *section, weft_text *report, weft_block_plan *plan, weft_diag *diag) {
  choice c;
  if (!choose_products(program, target, need, false, section, report, &c) &&
      !choose_products(program, target, need, true, section, report, &c))
    return weft_error(diag, WEFT_INVALID, "choose a target with more memory or more sites, or more chips",
                      "section `%s`: blocks of %llu accumulator tiles an output tile, and their pages, do not fit: "
                      "target `%s` has %llu tiles and %llu bytes a site",
                      section, (unsigned long long)need->levels, target->name, (unsigned long long)target->acc_tiles,
                      (unsigned long long)target->local_bytes);
  plan->per_site_m = c.per_m;
  plan->per_site_n = c.per_n;
  plan->block = (weft_block_shape){c.per_m, c.per_n, c.ibw};
  plan->num_blocks = need->k_tiles / c.ibw;
  plan->block_k_tiles = c.ibw;
  return WEFT_OK;
}

/** Row units take whole rows: the rows are dealt over all sites. */
static void plan_rows(const weft_target *target, const section_need *need, uint64_t k_tiles, weft_block_plan *plan) {
  uint64_t sites = target->mesh_rows * target->mesh_cols;
  plan->per_site_m = weft_max_u64(1, weft_ceil_div(need->unit_rows, sites));
  plan->per_site_n = weft_max_u64(1, need->unit_cols);
  plan->block = (weft_block_shape){1, plan->per_site_n, 1};
  plan->num_blocks = k_tiles;
  plan->block_k_tiles = 1;
}

/** The tensor a section's blocks are counted on, or NULL: its output, or the State it stores. */
static const weft_tensor *section_result(const weft_program *program, uint64_t section) {
  if (program->section_count && program->sections[section].output != WEFT_NONE)
    return &program->tensors[program->sections[section].output];
  weft_span stages = plan_section_stages(program, section);
  const weft_tensor *state = NULL;
  for (uint64_t s = stages.begin; s < stages.end; s++) {
    const weft_stage *stage = &program->stages[s];
    if (stage->kind != WEFT_STAGE_STORE) continue;
    const weft_tensor *tensor = &program->tensors[stage->store.tensor];
    if (tensor->role == WEFT_ROLE_STATE && !state) state = tensor;
    if (!program->section_count && tensor->role == WEFT_ROLE_OUTPUT) return tensor;
  }
  return state;
}

static void count_grid(const weft_program *program, uint64_t section, const section_need *need, weft_block_plan *plan) {
  const weft_tensor *result = section_result(program, section);
  uint64_t rows = weft_max_u64(need->rows, need->unit_rows), cols = weft_max_u64(need->cols, need->unit_cols);
  if (result && result->role == WEFT_ROLE_STATE) {
    weft_span items = plan_section_items(program, section);
    plan->grid = (weft_pair){1, program->section_count ? items.end - items.begin : program->work.item_count};
    return;
  }
  if (result) rows = result->tiles.rows_t, cols = result->tiles.cols_t;
  plan->grid = (weft_pair){weft_ceil_div(rows, plan->per_site_m), weft_ceil_div(cols, plan->per_site_n)};
}

/** A section of units that stay as they are: the block is the greatest item. */
static void plan_fixed(const weft_program *program, const section_need *need, uint64_t section, uint64_t k_tiles,
                       weft_block_plan *plan) {
  weft_span items = plan_section_items(program, section);
  for (uint64_t i = items.begin; i < items.end; i++) {
    plan->per_site_m = weft_max_u64(plan->per_site_m, program->work.items[i].h_t);
    plan->per_site_n = weft_max_u64(plan->per_site_n, program->work.items[i].w_t);
  }
  plan->block = need->fixed ? need->fixed->block : (weft_block_shape){1, plan->per_site_n, 1};
  plan->num_blocks = plan->block.ibw ? k_tiles / plan->block.ibw : 0;
  plan->block_k_tiles = plan->block.ibw;
}

static weft_status plan_section(const weft_program *program, const weft_target *target, const section_need *wanted,
                                uint64_t section, uint64_t k_tiles, weft_text *report, weft_block_plan *plan,
                                uint64_t *acc_tiles, weft_diag *diag) {
  section_need need = *wanted;
  *plan = (weft_block_plan){
      .per_site_m = 1, .per_site_n = 1, .acc = need.acc, .granularity = WEFT_GRANULARITY_PER_SUB_BLOCK};
  weft_status status = WEFT_OK;
  const char *name = plan_section_name(program, section);
  if (need.products)
    status = plan_products(program, target, &need, name, report, plan, diag);
  else if (need.unit_rows)
    plan_rows(target, &need, k_tiles, plan);
  else
    plan_fixed(program, &need, section, k_tiles, plan);
  if (status) return status;
  count_grid(program, section, &need, plan);
  uint64_t held = need.products ? plan->per_site_m * plan->per_site_n : 0;
  *acc_tiles = weft_max_u64(*acc_tiles, weft_max_u64(held, need.fixed_acc));
  if (need.fixed_acc <= target->acc_tiles) return WEFT_OK;
  return weft_error(diag, WEFT_INVALID, "choose a target with a larger accumulator, or shorter rows",
                    "section `%s`: a stage holds %llu accumulator tiles at once, target `%s` has %llu", name,
                    (unsigned long long)need.fixed_acc, target->name, (unsigned long long)target->acc_tiles);
}

/* ---- the pass ---- */

static weft_status check_target(const weft_program *program, const weft_target *target, weft_diag *diag) {
  if (program->tile_rows != target->tile_rows || program->tile_cols != target->tile_cols)
    return weft_error(diag, WEFT_INVALID, NULL, "the program has tiles of %llu x %llu, target `%s` of %llu x %llu",
                      (unsigned long long)program->tile_rows, (unsigned long long)program->tile_cols, target->name,
                      (unsigned long long)target->tile_rows, (unsigned long long)target->tile_cols);
  for (uint64_t t = 0; t < program->tensor_count; t++)
    if (!(target->formats >> program->tensors[t].dtype & 1))
      return weft_error(diag, WEFT_INVALID, NULL, "tensor `%s` is %s, which target `%s` does not have",
                        program->tensors[t].name, weft_format_name(program->tensors[t].dtype), target->name);
  for (uint64_t e = 0; e < program->edge_count; e++) {
    weft_handshake_kind kind = program->edges[e].handshake;
    if (!(target->handshakes >> kind & 1))
      return weft_error(diag, WEFT_INVALID, NULL, "edge %llu needs the handshake %s, which target `%s` does not have",
                        (unsigned long long)e, weft_handshake_kind_name(kind), target->name);
  }
  return WEFT_OK;
}

/** The work list of a program of one implicit section has the only plan; else it repeats the last section's. */
static weft_status set_plans(weft_program *program, const weft_target *target, const plan_units *units,
                             weft_section *sections, weft_text *report, weft_diag *diag) {
  uint64_t count = plan_section_count(program), acc_tiles = program->acc_tiles_used;
  weft_block_plan plan = {0};
  uint64_t u = 0;
  for (uint64_t k = 0; k < count; k++) {
    uint64_t k_tiles = program->section_count ? program->sections[k].k_tiles : program->work.k_tiles;
    section_need need = {.levels = 1, .page_k_tiles = K_PAGE_TILES};
    for (; u < units->count && units->items[u].section == k; u++) add_unit(program, &units->items[u], &need);
    weft_status status = plan_section(program, target, &need, k, k_tiles, report, &plan, &acc_tiles, diag);
    if (status) return status;
    if (!program->section_count) continue;
    sections[k].has_plan = true;
    sections[k].plan = plan;
  }
  if (program->section_count) program->sections = sections;
  program->work.has_plan = true;
  program->work.plan = plan;
  program->acc_tiles_used = acc_tiles;
  program->mem_banks = target->mem_banks;
  return WEFT_OK;
}

weft_status weft_pass_tile(weft_program *program, const weft_target *target, const weft_options *options,
                           weft_diag *diag) {
  weft_status status = check_target(program, target, diag);
  if (status) return status;
  weft_arena *scratch = weft_arena_new();
  weft_section *sections = WEFT_NEW_ARRAY(program->arena, weft_section, program->section_count);
  const weft_program before = *program;
  plan_units units;
  if (!scratch || !sections) status = weft_error_memory(diag);
  if (!status) status = plan_units_find(program, scratch, &units, diag);
  if (!status) status = plan_cut_folds(program, target, scratch, &units, diag);
  if (!status) {
    if (program->section_count) memcpy(sections, program->sections, program->section_count * sizeof *sections);
    status = set_plans(program, target, &units, sections, options ? options->report : NULL, diag);
  }
  if (scratch) weft_arena_free(scratch);
  if (status) *program = before;
  return status;
}
