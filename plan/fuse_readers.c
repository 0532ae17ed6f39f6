/* fuse_readers
 * requires     a Placed program
 * establishes  on a target with multicast: operands that sites of one row (A) or one column (B) of a chip read alike
 *              are read once, by the leftmost or topmost site, and multicast to the others
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

/** A site that has stages. */
typedef struct place {
  weft_site site;
  uint64_t items;     /**< of the section at hand */
  uint32_t sender[2]; /**< by operand: the place that sends to it, WEFT_NONE: nobody yet */
} place;

/** An item and a place it belongs to. */
typedef struct item_place {
  uint32_t item, place;
} item_place;

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
  place *places; /**< in the order of weft_site_compare */
  uint64_t place_count;
  item_place *items; /**< by item */
  uint64_t item_count;
  bool by_rows;
  bool failed;
} fuser;

/* ---- places ---- */

static int compare_places(const void *a, const void *b) {
  return weft_site_compare(((const place *)a)->site, ((const place *)b)->site);
}

static int compare_items(const void *a, const void *b) {
  const item_place *s = a, *t = b;
  if (s->item != t->item) return s->item < t->item ? -1 : 1;
  return s->place < t->place ? -1 : s->place > t->place;
}

/** NULL for a site without stages. */
static place *place_of(const fuser *f, weft_site site) {
  const place key = {.site = site};
  return bsearch(&key, f->places, f->place_count, sizeof key, compare_places);
}

static bool list_places(fuser *f) {
  const weft_program *program = f->program;
  const weft_placement *placement = program->placement;
  uint64_t most = 0;
  for (uint64_t i = 0; i < placement->items_of_site_count; i++) most += placement->items_of_site[i].item_count;
  f->places = WEFT_NEW_ARRAY(f->scratch, place, program->stage_count + 1);
  f->items = WEFT_NEW_ARRAY(f->scratch, item_place, most + 1);
  if (!f->places || !f->items) return false;
  for (uint64_t s = 0; s < program->stage_count; s++)
    f->places[s] = (place){.site = placement->site_of[s], .sender = {WEFT_NONE, WEFT_NONE}};
  qsort(f->places, program->stage_count, sizeof *f->places, compare_places);
  for (uint64_t s = 0; s < program->stage_count; s++)
    if (s == 0 || compare_places(&f->places[f->place_count - 1], &f->places[s]))
      f->places[f->place_count++] = f->places[s];
  for (uint64_t i = 0; i < placement->items_of_site_count; i++) {
    const weft_site_items *list = &placement->items_of_site[i];
    const place *at = place_of(f, list->site);
    for (uint64_t j = 0; at && j < list->item_count; j++)
      f->items[f->item_count++] = (item_place){list->items[j], (uint32_t)(at - f->places)};
  }
  qsort(f->items, f->item_count, sizeof *f->items, compare_items);
  return true;
}

/** Counts the section's items at every place, or, to take them back, sets the counts to 0. */
static void count_items(fuser *f, weft_span span, bool back) {
  uint64_t low = 0, high = f->item_count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (f->items[middle].item < span.begin)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < f->item_count && f->items[low].item < span.end; low++) {
    place *at = &f->places[f->items[low].place];
    at->items = back ? 0 : at->items + 1;
  }
}

/* ---- who reads what ---- */

/** Chip by chip, the order along the way of the multicast: sites of one row from left to right, of one column from top
 * to bottom. */
static int compare_lines(const reader *a, const reader *b, bool by_rows) {
  if (a->site.chip != b->site.chip) return a->site.chip < b->site.chip ? -1 : 1;
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
    if (f->program->buffers[stage->outs[0]].alias_of != WEFT_NONE) continue; /* lies where the other one does */
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

/** Readers of the site that begins at `at`. */
static uint64_t reads_at(const fuser *f, uint64_t at) {
  uint64_t n = 1;
  while (at + n < f->reader_count && weft_site_equal(f->readers[at].site, f->readers[at + n].site)) n++;
  return n;
}

static bool is_next(const fuser *f, weft_site a, weft_site b) {
  if (a.chip != b.chip) return false;
  return f->by_rows ? a.y == b.y && a.x + 1 == b.x : a.x == b.x && a.y + 1 == b.y;
}

/** How many sites from reader `at` on, next to each other in one line, read alike; each has `reads` readers. */
static uint64_t run_length(const fuser *f, uint64_t at, uint64_t reads) {
  uint64_t sites = 1, count = place_of(f, f->readers[at].site)->items;
  for (uint64_t next = at + reads; next < f->reader_count; next += reads, sites++) {
    weft_site last = f->readers[next - 1].site, site = f->readers[next].site;
    if (!is_next(f, last, site) || reads_at(f, next) != reads || place_of(f, site)->items != count) break;
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

/** The validator takes the first group of an operand that holds a site for the one that it receives from: a site has
 * one sender for an operand, in all sections. */
static bool may_send(const fuser *f, uint64_t at, uint64_t reads, uint64_t sites, uint32_t operand) {
  uint32_t sender = (uint32_t)(place_of(f, f->readers[at].site) - f->places);
  for (uint64_t i = 0; i < sites; i++) {
    uint32_t other = place_of(f, f->readers[at + i * reads].site)->sender[operand];
    if (other != WEFT_NONE && other != sender) return false;
  }
  return true;
}

static void note_sender(fuser *f, uint64_t at, uint64_t reads, uint64_t sites, uint32_t operand) {
  uint32_t sender = (uint32_t)(place_of(f, f->readers[at].site) - f->places);
  for (uint64_t i = 0; i < sites; i++) place_of(f, f->readers[at + i * reads].site)->sender[operand] = sender;
}

static void fuse_operand(fuser *f, uint64_t section, uint32_t operand) {
  f->by_rows = operand == 0;
  list_readers(f, plan_section_stages(f->program, section), operand);
  for (uint64_t at = 0; at < f->reader_count && !f->failed;) {
    uint64_t reads = reads_at(f, at), sites = run_length(f, at, reads);
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

/** Products that follow a trip's blocks hold no semaphores and stay as they are. */
static bool may_fuse(const weft_program *program, const weft_target *target) {
  uint32_t multicast = 1u << WEFT_INTERCONNECT_ROW_MULTICAST | 1u << WEFT_INTERCONNECT_COL_MULTICAST;
  if ((target->interconnects & multicast) != multicast || !(target->handshakes >> WEFT_HANDSHAKE_SEMAPHORE & 1) ||
      !(target->handshakes >> WEFT_HANDSHAKE_TOKEN & 1))
    return false;
  return !program->placement->group_count && program->work.k_trip == WEFT_NONE;
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
  if (!sections || !f->stages || !f->readers || !f->ports || !list_places(f)) return weft_error_memory(diag);
  if (program->stage_count) memcpy(f->stages, program->stages, program->stage_count * sizeof *f->stages);
  for (uint64_t k = 0; k < plan_section_count(program) && !f->failed; k++) {
    weft_span old = program->section_count ? program->sections[k].edges : (weft_span){0, program->edge_count};
    uint64_t begin = f->edge_count;
    f->failed = !keep_edges(f, old);
    weft_span items = plan_section_items(program, k);
    count_items(f, items, false);
    for (uint32_t operand = 0; operand < 2 && !f->failed; operand++) fuse_operand(f, k, operand);
    count_items(f, items, true);
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
