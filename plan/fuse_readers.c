/* fuse_readers
 * requires     a Placed program
 * establishes  on a target with multicast: operands that sites of one row (A) or one column (B) read alike are read
 *              once, by the leftmost or topmost site, and multicast to the others
 * breaks       nothing; a target without multicast, and sites that differ in reads or items, stay as they are
 * source       spatial-ir seed, "Group", "StageKind::Recv", "validate_placement"; one read a row and a column: SUMMA
 *              (van de Geijn and Watts 1997) */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/** A Load of a tile product's operand. */
typedef struct reader {
  weft_site site;
  uint32_t stage;
  uint64_t ordinal; /**< among the reads of this operand at its site */
} reader;

typedef struct fuser {
  weft_program *program;
  weft_arena *scratch;
  const plan_ports *ports;
  weft_stage *stages; /**< the new stages */
  weft_group *groups;
  uint64_t group_count, group_capacity;
  weft_edge *edges;
  uint64_t edge_count, edge_capacity;
  reader *readers;
  uint64_t reader_count;
  weft_site *sender_at[2]; /**< by operand and site of the mesh: who sends to it; chip UINT16_MAX: nobody */
  bool by_rows;
  bool failed;
} fuser;

/* ---- who reads what ---- */

/** Order along the way of the multicast: sites of one row from left to right, of one column from top to bottom. */
static int compare_lines(const reader *a, const reader *b, bool by_rows) {
  uint16_t line_a = by_rows ? a->site.y : a->site.x, line_b = by_rows ? b->site.y : b->site.x;
  uint16_t at_a = by_rows ? a->site.x : a->site.y, at_b = by_rows ? b->site.x : b->site.y;
  if (line_a != line_b) return line_a < line_b ? -1 : 1;
  if (at_a != at_b) return at_a < at_b ? -1 : 1;
  return a->stage < b->stage ? -1 : a->stage > b->stage;
}

static int compare_rows(const void *a, const void *b) { return compare_lines(a, b, true); }
static int compare_cols(const void *a, const void *b) { return compare_lines(a, b, false); }

/** The Loads of operand 0 (A) or 1 (B) of the section's products, in order, numbered at each site. */
static void list_readers(fuser *f, weft_span stages, uint32_t operand) {
  const weft_program *program = f->program;
  f->reader_count = 0;
  for (uint64_t s = stages.begin; s < stages.end; s++) {
    const weft_stage *stage = &program->stages[s];
    if (stage->kind != WEFT_STAGE_LOAD || stage->load.multicast != WEFT_NONE || stage->out_count != 1) continue;
    if (stage->load.pattern.origin.indirect) continue;
    uint32_t product = plan_only_reader(f->ports, stage->outs[0]);
    if (product == WEFT_NONE || !plan_matmul_of(&program->stages[product])) continue;
    const weft_stage *matmul = &program->stages[product];
    if (matmul->compute->matmul.trip != WEFT_NONE) continue; /* loops that run to a trip hold no semaphores */
    if (operand < matmul->in_count && matmul->ins[operand] == stage->outs[0])
      f->readers[f->reader_count++] = (reader){program->placement->site_of[s], (uint32_t)s, 0};
  }
  qsort(f->readers, f->reader_count, sizeof *f->readers, f->by_rows ? compare_rows : compare_cols);
  for (uint64_t i = 1; i < f->reader_count; i++)
    if (weft_site_equal(f->readers[i].site, f->readers[i - 1].site))
      f->readers[i].ordinal = f->readers[i - 1].ordinal + 1;
}

static bool same_read(const fuser *f, const reader *a, const reader *b) {
  const weft_stage *s = &f->program->stages[a->stage], *t = &f->program->stages[b->stage];
  const weft_access_pattern *p = &s->load.pattern, *q = &t->load.pattern;
  if (s->load.tensor != t->load.tensor || s->load.num_blocks != t->load.num_blocks ||
      p->origin.base != q->origin.base || p->origin.step_count != q->origin.step_count || p->block_h != q->block_h ||
      p->block_w != q->block_w || p->stride_h != q->stride_h || p->stride_w != q->stride_w)
    return false;
  for (uint64_t i = 0; i < p->origin.step_count; i++)
    if (p->origin.steps[i].var != q->origin.steps[i].var || p->origin.steps[i].stride != q->origin.steps[i].stride)
      return false;
  const weft_buffer *x = &f->program->buffers[s->outs[0]], *y = &f->program->buffers[t->outs[0]];
  return x->kind == y->kind && x->dtype == y->dtype && x->page_tiles == y->page_tiles &&
         x->depth_pages == y->depth_pages;
}

static uint64_t items_at(const weft_program *program, weft_site site, weft_span span) {
  for (uint64_t i = 0; i < program->placement->items_of_site_count; i++) {
    const weft_site_items *at = &program->placement->items_of_site[i];
    if (!weft_site_equal(at->site, site)) continue;
    uint64_t count = 0;
    for (uint64_t j = 0; j < at->item_count; j++) count += at->items[j] >= span.begin && at->items[j] < span.end;
    return count;
  }
  return 0;
}

/** Readers of the site that begins at `at`. */
static uint64_t reads_at(const fuser *f, uint64_t at) {
  uint64_t n = 1;
  while (at + n < f->reader_count && weft_site_equal(f->readers[at].site, f->readers[at + n].site)) n++;
  return n;
}

static bool is_next(const fuser *f, weft_site a, weft_site b) {
  return f->by_rows ? a.y == b.y && a.x + 1 == b.x : a.x == b.x && a.y + 1 == b.y;
}

/** How many sites from reader `at` on, next to each other in one line, read alike; each has `reads` readers. */
static uint64_t run_length(const fuser *f, uint64_t at, uint64_t reads, weft_span items) {
  const weft_program *program = f->program;
  uint64_t sites = 1, count = items_at(program, f->readers[at].site, items);
  for (uint64_t next = at + reads; next < f->reader_count; next += reads, sites++) {
    weft_site last = f->readers[next - 1].site, site = f->readers[next].site;
    if (!is_next(f, last, site) || reads_at(f, next) != reads || items_at(program, site, items) != count) break;
    bool alike = true;
    for (uint64_t i = 0; i < reads && alike; i++) alike = same_read(f, &f->readers[at + i], &f->readers[next + i]);
    if (!alike) break;
  }
  return sites;
}

/* ---- groups ---- */

static bool add_group(fuser *f, const reader *sender, const reader *last, uint32_t operand) {
  if (!weft_arena_grow(f->scratch, &f->groups, f->group_count, &f->group_capacity, sizeof *f->groups)) return false;
  weft_engine_slot slot = f->program->placement->engine_of[sender->stage];
  f->groups[f->group_count] = (weft_group){.id = (uint32_t)f->group_count,
                                           .rect = {sender->site.x, sender->site.y, last->site.x, last->site.y},
                                           .sender = sender->site,
                                           .direction = f->by_rows ? WEFT_DIRECTION_ROW : WEFT_DIRECTION_COL,
                                           .operand = operand ? WEFT_OPERAND_B : WEFT_OPERAND_A,
                                           .noc = slot.noc};
  f->group_count++;
  return true;
}

/** Reader `index` of the run sends; the same reader of the other sites receives. */
static bool fuse_reader(fuser *f, uint64_t at, uint64_t index, uint64_t reads, uint64_t sites, uint32_t operand) {
  const reader *sender = &f->readers[at + index], *last = &f->readers[at + (sites - 1) * reads + index];
  uint32_t group = (uint32_t)f->group_count;
  uint32_t *to = WEFT_NEW_ARRAY(f->program->arena, uint32_t, sites - 1);
  if (!to || !add_group(f, sender, last, operand) ||
      !weft_arena_grow(f->scratch, &f->edges, f->edge_count, &f->edge_capacity, sizeof *f->edges))
    return false;
  f->stages[sender->stage].load.multicast = group;
  for (uint64_t i = 1; i < sites; i++) {
    weft_stage *stage = &f->stages[f->readers[at + i * reads + index].stage];
    stage->kind = WEFT_STAGE_RECV;
    stage->recv.group = group;
    to[i - 1] = stage->id;
  }
  f->edges[f->edge_count] = (weft_edge){.id = (uint32_t)f->edge_count,
                                        .from = sender->stage,
                                        .buffer = f->stages[sender->stage].outs[0],
                                        .to = to,
                                        .to_count = sites - 1,
                                        .handshake = WEFT_HANDSHAKE_TOKEN};
  f->edge_count++;
  return true;
}

/** Who sends to a site of the mesh; NULL outside it. */
static weft_site *sender_at(const fuser *f, weft_site at, uint32_t operand) {
  const weft_placement *placement = f->program->placement;
  if (at.x >= placement->mesh_cols || at.y >= placement->mesh_rows) return NULL;
  return &f->sender_at[operand][at.y * placement->mesh_cols + at.x];
}

/** The validator takes the first group of an operand that holds a site for the one that it receives from: a site has
 * one sender for an operand, in all sections. */
static bool may_send(const fuser *f, uint64_t at, uint64_t reads, uint64_t sites, uint32_t operand) {
  for (uint64_t i = 0; i < sites; i++) {
    const weft_site *sender = sender_at(f, f->readers[at + i * reads].site, operand);
    if (!sender || (sender->chip == 0 && !weft_site_equal(*sender, f->readers[at].site))) return false;
  }
  return true;
}

static void note_sender(fuser *f, uint64_t at, uint64_t reads, uint64_t sites, uint32_t operand) {
  for (uint64_t i = 0; i < sites; i++) *sender_at(f, f->readers[at + i * reads].site, operand) = f->readers[at].site;
}

static void fuse_operand(fuser *f, uint64_t section, uint32_t operand) {
  f->by_rows = operand == 0;
  list_readers(f, plan_section_stages(f->program, section), operand);
  weft_span items = plan_section_items(f->program, section);
  for (uint64_t at = 0; at < f->reader_count && !f->failed;) {
    uint64_t reads = reads_at(f, at), sites = run_length(f, at, reads, items);
    bool fuses = sites > 1 && may_send(f, at, reads, sites, operand);
    if (fuses) note_sender(f, at, reads, sites, operand);
    for (uint64_t i = 0; fuses && i < reads && !f->failed; i++)
      f->failed = !fuse_reader(f, at, i, reads, sites, operand);
    at += reads * sites;
  }
}

/* ---- the program ---- */

/** The old edges of a section, and after them the new ones. */
static bool keep_edges(fuser *f, weft_span old) {
  for (uint64_t e = old.begin; e < old.end; e++) {
    if (!weft_arena_grow(f->scratch, &f->edges, f->edge_count, &f->edge_capacity, sizeof *f->edges)) return false;
    f->edges[f->edge_count] = f->program->edges[e];
    f->edges[f->edge_count].id = (uint32_t)f->edge_count;
    f->edge_count++;
  }
  return true;
}

/** Groups are of chip 0, and products that follow a trip's blocks hold no semaphores: both stay as they are. */
static bool may_fuse(const weft_program *program, const weft_target *target) {
  uint32_t multicast = 1u << WEFT_INTERCONNECT_ROW_MULTICAST | 1u << WEFT_INTERCONNECT_COL_MULTICAST;
  if ((target->interconnects & multicast) != multicast || !(target->handshakes >> WEFT_HANDSHAKE_SEMAPHORE & 1) ||
      !(target->handshakes >> WEFT_HANDSHAKE_TOKEN & 1))
    return false;
  if (program->placement->mesh_cols > UINT16_MAX || program->placement->mesh_rows > UINT16_MAX) return false;
  if (program->placement->group_count || program->work.k_trip != WEFT_NONE) return false;
  for (uint64_t s = 0; s < program->stage_count; s++)
    if (program->placement->site_of[s].chip) return false;
  return true;
}

static weft_status replace(fuser *f, weft_section *sections, weft_diag *diag) {
  weft_program *program = f->program;
  weft_placement *placement = WEFT_NEW(program->arena, weft_placement);
  weft_group *groups = WEFT_NEW_ARRAY(program->arena, weft_group, f->group_count);
  weft_edge *edges = WEFT_NEW_ARRAY(program->arena, weft_edge, f->edge_count);
  if (!placement || !groups || !edges) return weft_error_memory(diag);
  if (f->group_count) memcpy(groups, f->groups, f->group_count * sizeof *groups);
  if (f->edge_count) memcpy(edges, f->edges, f->edge_count * sizeof *edges);
  *placement = *program->placement;
  placement->groups = groups;
  placement->group_count = f->group_count;
  program->placement = placement;
  program->stages = f->stages;
  program->edges = edges;
  program->edge_count = f->edge_count;
  if (program->section_count) program->sections = sections;
  program->requires_handshakes |= 1u << WEFT_HANDSHAKE_TOKEN;
  for (uint64_t g = 0; g < f->group_count; g++)
    program->requires_interconnect |=
        1u << (groups[g].direction == WEFT_DIRECTION_ROW ? WEFT_INTERCONNECT_ROW_MULTICAST
                                                         : WEFT_INTERCONNECT_COL_MULTICAST);
  return WEFT_OK;
}

static weft_status fuse(fuser *f, weft_diag *diag) {
  weft_program *program = f->program;
  weft_section *sections = WEFT_NEW_ARRAY(program->arena, weft_section, program->section_count);
  f->stages = WEFT_NEW_ARRAY(program->arena, weft_stage, program->stage_count);
  f->readers = WEFT_NEW_ARRAY(f->scratch, reader, program->stage_count + 1);
  f->ports = plan_ports_find(program, f->scratch);
  const uint64_t sites = program->placement->mesh_cols * program->placement->mesh_rows;
  for (int operand = 0; operand < 2; operand++) {
    f->sender_at[operand] = WEFT_NEW_ARRAY(f->scratch, weft_site, sites);
    for (uint64_t i = 0; f->sender_at[operand] && i < sites; i++) f->sender_at[operand][i].chip = UINT16_MAX;
  }
  if (!sections || !f->stages || !f->readers || !f->ports || !f->sender_at[0] || !f->sender_at[1])
    return weft_error_memory(diag);
  if (program->stage_count) memcpy(f->stages, program->stages, program->stage_count * sizeof *f->stages);
  for (uint64_t k = 0; k < plan_section_count(program) && !f->failed; k++) {
    weft_span old = program->section_count ? program->sections[k].edges : (weft_span){0, program->edge_count};
    uint64_t begin = f->edge_count;
    f->failed = !keep_edges(f, old);
    for (uint32_t operand = 0; operand < 2 && !f->failed; operand++) fuse_operand(f, k, operand);
    if (!program->section_count) continue;
    sections[k] = program->sections[k];
    sections[k].edges = (weft_span){begin, f->edge_count};
  }
  if (f->failed) return weft_error_memory(diag);
  return f->group_count ? replace(f, sections, diag) : WEFT_OK;
}

weft_status weft_pass_fuse_readers(weft_program *program, const weft_target *target, const weft_options *options,
                                   weft_diag *diag) {
  (void)options;
  if (!may_fuse(program, target)) return WEFT_OK;
  fuser f = {.program = program, .scratch = weft_arena_new()};
  if (!f.scratch) return weft_error_memory(diag);
  weft_status status = fuse(&f, diag);
  weft_arena_free(f.scratch);
  return status;
}
