/* A program in words: what `weft show` prints. Long lists end in a count of what was left out. */
#include "ir_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MOST = 40 };

static const char *const init_names[] = {"zero", "pattern", "values", "float values", "constant", "random", "external"};
static const char *const space_names[] = {"Dram", "Hbm", "Sram"};

static void put_name(weft_text *out, const char *name) {
  weft_text_puts(out, "\"");
  weft_text_c_string(out, name);
  weft_text_puts(out, "\"");
}

static void put_rest(weft_text *out, uint64_t count) {
  if (count > ROWS_MOST) weft_text_printf(out, "  ... and %" PRIu64 " more\n", count - ROWS_MOST);
}

static uint64_t shown(uint64_t count) { return count < ROWS_MOST ? count : ROWS_MOST; }

static void put_site(weft_text *out, weft_site s) {
  weft_text_printf(out, "(%u, %u)", (unsigned)s.x, (unsigned)s.y);
  if (s.chip) weft_text_printf(out, " of chip %u", (unsigned)s.chip);
}

/* ---- head and tensors ---- */

static uint64_t count_ops(const weft_op *ops, uint64_t count) {
  uint64_t sum = count;
  for (uint64_t i = 0; i < count; i++)
    if (ops[i].kind == WEFT_OP_LOOP) sum += count_ops(ops[i].loop.body, ops[i].loop.body_count);
  return sum;
}

static void show_head(const weft_program *p, weft_text *out) {
  weft_text_puts(out, "program ");
  put_name(out, p->name);
  weft_text_printf(out, ": %s\n", weft_phase_name(weft_program_phase(p)));
  weft_text_printf(out, "  tile %" PRIu64 " x %" PRIu64 ", numerics %s, claim %s, %" PRIu64 " accumulator tiles\n",
                   p->tile_rows, p->tile_cols, p->numerics == WEFT_NUMERICS_EXACT ? "exact" : "may round spills",
                   p->claim_reason ? "approximate" : "exact", p->acc_tiles_used);
  if (p->claim_reason) {
    weft_text_puts(out, "  approximate because ");
    put_name(out, p->claim_reason);
    weft_text_puts(out, "\n");
  }
  if (p->arithmetic) weft_text_printf(out, "  arithmetic version %u\n", p->arithmetic);
  if (p->chips) weft_text_printf(out, "  %u chips\n", p->chips);
  if (p->chip != WEFT_NONE) weft_text_printf(out, "  the program of chip %u\n", p->chip);
  weft_text_printf(out,
                   "  %" PRIu64 " tensors, %" PRIu64 " stages, %" PRIu64 " buffers, %" PRIu64 " edges, %" PRIu64
                   " semaphores, %" PRIu64 " work items\n",
                   p->tensor_count, p->stage_count, p->buffer_count, p->edge_count, p->semaphore_count,
                   p->work.item_count);
}

uint64_t weft_tensor_bytes(const weft_tensor *t) {
  uint64_t bytes;
  if (weft_mul_overflow(t->elems.rows, t->elems.cols, &bytes)) return UINT64_MAX;
  return weft_mul_overflow(bytes, weft_ir_format_bytes(t->dtype), &bytes) ? UINT64_MAX : bytes;
}

const char *weft_ir_format_name(weft_format format) {
#define FORMAT_NAME(id, name, bytes, is_float) name,
  static const char *const names[] = {WEFT_FORMATS(FORMAT_NAME)};
  return format < WEFT_FORMAT_COUNT ? names[format] : "?";
}

static void show_tensors(const weft_program *p, weft_text *out) {
  if (p->tensor_count) weft_text_puts(out, "tensors\n");
  for (uint64_t i = 0; i < shown(p->tensor_count); i++) {
    const weft_tensor *t = &p->tensors[i];
    weft_text_printf(out, "  %" PRIu64 " ", i);
    put_name(out, t->name);
    weft_text_printf(out, ": %s, %" PRIu64 " x %" PRIu64 " (%" PRIu64 " x %" PRIu64 " tiles), %s, %s, %s",
                     weft_tensor_role_name(t->role), t->elems.rows, t->elems.cols, t->tiles.rows_t, t->tiles.cols_t,
                     weft_ir_format_name(t->dtype), space_names[t->space], init_names[t->init.kind]);
    if (t->chip != WEFT_NONE) weft_text_printf(out, ", chip %u", t->chip);
    if (t->has_partial)
      weft_text_printf(out, ", segments %u..%u of %u to be folded by %s", t->partial.first,
                       t->partial.first + t->partial.count, t->partial.of, weft_pool_name(t->partial.pool));
    if (t->has_shard) {
      weft_text_printf(out, ", at (%" PRIu64 ", %" PRIu64 ") of the %" PRIu64 " x %" PRIu64 " dataset ", t->shard.row0,
                       t->shard.col0, t->shard.rows, t->shard.cols);
      put_name(out, t->shard.of);
    }
    weft_text_puts(out, "\n");
  }
  put_rest(out, p->tensor_count);
}

/* ---- plan and sections ---- */

static void put_plan(weft_text *out, const weft_block_plan *plan) {
  weft_text_printf(out,
                   "grid %" PRIu64 " x %" PRIu64 " of %" PRIu64 " x %" PRIu64 " tiles, sub-blocks %" PRIu64
                   " x %" PRIu64 ", %" PRIu64 " K blocks of %" PRIu64 ", %s%s",
                   plan->grid.first, plan->grid.second, plan->per_site_m, plan->per_site_n, plan->block.osh,
                   plan->block.osw, plan->num_blocks, plan->block_k_tiles, weft_acc_policy_name(plan->acc),
                   plan->pack_accumulate ? ", packed in place" : "");
}

static void show_sections(const weft_program *p, weft_text *out) {
  if (p->section_count) weft_text_puts(out, "sections\n");
  uint64_t phase = 0;
  for (uint64_t k = 0; k < p->section_count; k++) {
    const weft_section *s = &p->sections[k];
    uint64_t here = phase;
    phase += s->has_barrier_after;
    if (k >= ROWS_MOST) continue;
    weft_text_printf(out, "  %" PRIu64 " ", k);
    put_name(out, s->name);
    weft_text_printf(out, ": phase %" PRIu64 ", %" PRIu64 " stages, %" PRIu64 " items", here,
                     s->stages.end - s->stages.begin, s->items.end - s->items.begin);
    if (s->output < p->tensor_count) {
      weft_text_puts(out, ", writes ");
      put_name(out, p->tensors[s->output].name);
    }
    if (s->has_plan) {
      weft_text_puts(out, ", ");
      put_plan(out, &s->plan);
    }
    weft_text_puts(out, "\n");
  }
  put_rest(out, p->section_count);
}

static void show_plan(const weft_program *p, weft_text *out) {
  if (!p->work.has_plan || p->section_count) return;
  weft_text_puts(out, "plan\n  ");
  put_plan(out, &p->work.plan);
  weft_text_puts(out, "\n");
}

/* ---- sites ---- */

typedef struct site_row {
  weft_site site;
  uint64_t stages, bytes; /* bytes: the greatest end of a buffer's place */
} site_row;

static int compare_rows(const void *a, const void *b) {
  const site_row *x = a;
  const site_row *y = b;
  return weft_site_compare(x->site, y->site);
}

/* One row a site, from one row a stage and a buffer's place. */
static uint64_t merge_rows(site_row *rows, uint64_t count) {
  if (!count) return 0;
  qsort(rows, count, sizeof *rows, compare_rows);
  uint64_t kept = 0;
  for (uint64_t i = 1; i < count; i++) {
    if (!weft_site_equal(rows[kept].site, rows[i].site)) {
      rows[++kept] = rows[i];
      continue;
    }
    rows[kept].stages += rows[i].stages;
    rows[kept].bytes = weft_max_u64(rows[kept].bytes, rows[i].bytes);
  }
  return kept + 1;
}

static void show_sites(const weft_program *p, weft_text *out, weft_arena *scratch) {
  uint64_t places = p->memory ? p->memory->buffer_at_count : 0;
  site_row *rows = WEFT_NEW_ARRAY(scratch, site_row, p->stage_count + places);
  if (!rows) out->failed = true;
  if (!rows || !p->placement) return;
  uint64_t count = 0;
  for (uint64_t i = 0; i < p->stage_count; i++)
    if (p->stages[i].site.present) rows[count++] = (site_row){.site = p->stages[i].site.site, .stages = 1};
  for (uint64_t i = 0; i < places; i++) {
    const weft_buffer_at *at = &p->memory->buffer_at[i];
    if (at->space == WEFT_MEM_ACC) continue;
    rows[count++] = (site_row){.site = at->site, .bytes = (uint64_t)at->offset_bytes + at->bytes};
  }
  count = merge_rows(rows, count);
  weft_text_printf(out, "sites: %" PRIu64 " of a %" PRIu64 " x %" PRIu64 " mesh\n", count, p->placement->mesh_cols,
                   p->placement->mesh_rows);
  for (uint64_t i = 0; i < shown(count); i++) {
    weft_text_puts(out, "  ");
    put_site(out, rows[i].site);
    weft_text_printf(out, ": %" PRIu64 " stages", rows[i].stages);
    if (p->memory) weft_text_printf(out, ", %" PRIu64 " bytes of local memory", rows[i].bytes);
    weft_text_puts(out, "\n");
  }
  put_rest(out, count);
}

static void show_groups(const weft_program *p, weft_text *out) {
  if (!p->placement || !p->placement->group_count) return;
  uint64_t rows = 0;
  for (uint64_t i = 0; i < p->placement->group_count; i++)
    rows += p->placement->groups[i].direction == WEFT_DIRECTION_ROW;
  weft_text_printf(out, "multicast: %" PRIu64 " row groups, %" PRIu64 " column groups\n", rows,
                   p->placement->group_count - rows);
}

/* ---- traffic and memory ---- */

/* How many of a site's items lie in a span of items. */
static uint64_t site_items_in(const weft_program *p, weft_site where, weft_span span) {
  for (uint64_t i = 0; i < p->placement->items_of_site_count; i++) {
    const weft_site_items *list = &p->placement->items_of_site[i];
    if (!weft_site_equal(list->site, where)) continue;
    uint64_t count = 0;
    for (uint64_t k = 0; k < list->item_count; k++) count += list->items[k] >= span.begin && list->items[k] < span.end;
    return count;
  }
  return 0;
}

/* The work items a stage runs over: its own, its site's in its section, or all of its section's. */
static uint64_t items_of(const weft_program *p, const weft_stage *st) {
  if (st->item != WEFT_NONE) return 1;
  uint64_t k = p->section_count ? weft_section_of_stage(p, st->id) : UINT64_MAX;
  weft_span span = k == UINT64_MAX ? (weft_span){0, p->work.item_count} : p->sections[k].items;
  if (p->placement && st->site.present) return site_items_in(p, st->site.site, span);
  return span.end - span.begin;
}

double weft_ir_tiles_moved(const weft_program *p, weft_stage_kind kind) {
  double tiles = 0;
  for (uint64_t i = 0; i < p->stage_count; i++) {
    const weft_stage *st = &p->stages[i];
    if (st->kind != kind) continue;
    const weft_access_pattern *pattern = kind == WEFT_STAGE_LOAD ? &st->load.pattern : &st->store.pattern;
    double blocks = kind == WEFT_STAGE_LOAD ? (double)weft_max_u64(1, st->load.num_blocks)
                                            : (double)st->store.sub_blocks.first * (double)st->store.sub_blocks.second;
    tiles += (double)pattern->block_h * (double)pattern->block_w * blocks * (double)items_of(p, st);
  }
  return tiles;
}

static void show_traffic(const weft_program *p, weft_text *out) {
  weft_text_printf(out, "traffic: %.0f tiles read, %.0f tiles written\n", weft_ir_tiles_moved(p, WEFT_STAGE_LOAD),
                   weft_ir_tiles_moved(p, WEFT_STAGE_STORE));
  for (uint64_t i = 0; i < shown(p->link_count); i++) {
    const weft_link_point *l = &p->links[i];
    weft_text_puts(out, "  link point ");
    if (l->after == UINT64_MAX)
      weft_text_puts(out, "before the first section");
    else
      weft_text_printf(out, "after section %" PRIu64, l->after);
    weft_text_printf(out, ": sends %" PRIu64 ", receives %" PRIu64 "\n", l->send_count, l->receive_count);
  }
  put_rest(out, p->link_count);
}

static void show_memory(const weft_program *p, weft_text *out) {
  uint64_t sum = 0;
  bool overflow = false;
  for (uint64_t i = 0; i < p->tensor_count; i++)
    overflow |= weft_add_overflow(sum, weft_tensor_bytes(&p->tensors[i]), &sum);
  if (overflow)
    weft_text_puts(out, "memory: its tensors have more than 2^64 bytes\n");
  else
    weft_text_printf(out, "memory: %" PRIu64 " bytes of tensors\n", sum);
}

/* ---- schedule ---- */

/* What a kernel of the op depends on, and nothing that differs from site to site. */
static uint64_t hash_ops(const weft_program *p, const weft_op *ops, uint64_t count, uint64_t hash);

static uint64_t hash_numbers(uint64_t hash, const uint64_t *numbers, size_t count) {
  return weft_hash_bytes(hash, numbers, count * sizeof *numbers);
}

static uint64_t hash_buffer(const weft_program *p, uint32_t id, uint64_t hash) {
  if (id >= p->buffer_count) return hash;
  const weft_buffer *b = &p->buffers[id];
  return hash_numbers(hash, (uint64_t[]){b->origin == WEFT_NONE ? id : b->origin, b->page_tiles}, 2);
}

static uint64_t hash_op(const weft_program *p, const weft_op *op, uint64_t hash) {
  hash = hash_numbers(hash, (uint64_t[]){op->kind}, 1);
  switch (op->kind) {
  case WEFT_OP_RESERVE:
  case WEFT_OP_PUSH:
  case WEFT_OP_WAIT:
  case WEFT_OP_POP: return hash_buffer(p, op->page.buf, hash_numbers(hash, &op->page.pages, 1));
  case WEFT_OP_READ_TILES:
  case WEFT_OP_WRITE_TILES:
    hash = hash_numbers(hash, (uint64_t[]){op->tiles.tensor, op->tiles.block_h, op->tiles.block_w}, 3);
    for (uint64_t i = 0; i < op->tiles.at.step_count; i++)
      hash = hash_numbers(hash, (uint64_t[]){op->tiles.at.steps[i].var, op->tiles.at.steps[i].stride}, 2);
    return hash_buffer(p, op->tiles.buf, hash);
  case WEFT_OP_ACQUIRE_ACC: return hash_numbers(hash, &op->acquire_tiles, 1);
  case WEFT_OP_COMPUTE:
    for (uint64_t i = 0; i < op->compute.in_count; i++) hash = hash_buffer(p, op->compute.ins[i], hash);
    return hash_numbers(hash, (uint64_t[]){op->compute.op->kind}, 1);
  case WEFT_OP_PACK_ACC: return hash_buffer(p, op->pack.to, hash_numbers(hash, &op->pack.tiles, 1));
  case WEFT_OP_LOOP: return hash_ops(p, op->loop.body, op->loop.body_count, hash);
  default: return hash;
  }
}

static uint64_t hash_ops(const weft_program *p, const weft_op *ops, uint64_t count, uint64_t hash) {
  for (uint64_t i = 0; i < count; i++) hash = hash_op(p, &ops[i], hash);
  return hash_numbers(hash, &count, 1);
}

static int compare_hashes(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a;
  uint64_t y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

uint64_t weft_ir_op_count(const weft_program *p) {
  uint64_t ops = 0;
  for (uint64_t i = 0; p->schedule && i < p->schedule->program_count; i++)
    ops += count_ops(p->schedule->programs[i].ops, p->schedule->programs[i].op_count);
  return ops;
}

static void show_schedule(const weft_program *p, weft_text *out, weft_arena *scratch) {
  if (!p->schedule) return;
  uint64_t programs = p->schedule->program_count;
  uint64_t *hashes = WEFT_NEW_ARRAY(scratch, uint64_t, programs);
  if (!hashes) out->failed = true;
  if (!hashes) return;
  for (uint64_t i = 0; i < programs; i++) {
    const weft_engine_program *ep = &p->schedule->programs[i];
    uint64_t engine = ep->engine.compute ? UINT64_MAX : ep->engine.movement;
    hashes[i] = hash_ops(p, ep->ops, ep->op_count, hash_numbers(0, &engine, 1));
  }
  if (programs) qsort(hashes, programs, sizeof *hashes, compare_hashes);
  uint64_t classes = programs != 0;
  for (uint64_t i = 1; i < programs; i++) classes += hashes[i] != hashes[i - 1];
  weft_text_printf(out, "schedule: %" PRIu64 " engine programs of %" PRIu64 " classes, %" PRIu64 " ops\n", programs,
                   classes, weft_ir_op_count(p));
}

void weft_program_show(const weft_program *program, weft_text *text) {
  weft_arena *scratch = weft_arena_new();
  if (!scratch) {
    text->failed = true;
    return;
  }
  show_head(program, text);
  show_tensors(program, text);
  show_sections(program, text);
  show_plan(program, text);
  show_sites(program, text, scratch);
  show_groups(program, text);
  show_traffic(program, text);
  show_memory(program, text);
  show_schedule(program, text, scratch);
  weft_arena_free(scratch);
}
