/* Tensors of the token run: every address inside, every tile written once and read after (C4), and by the turn that its
 * data belong to (C6). */
#include "certify_private.h"

#include <string.h>

static uint32_t number_of(const token_machine *m, const token_engine *e) { return (uint32_t)(e - m->engines); }

static uint64_t tile_count(const weft_tensor *tensor) { return tensor->tiles.rows_t * tensor->tiles.cols_t; }

/* ---- what is known before the run ---- */

static weft_status bad_link(token_machine *m, const char *format, const char *name) {
  m->status = weft_error(m->diag, WEFT_INVALID, NULL, format, name);
  return m->status;
}

/** The phase from which on what crosses at a link point is there; UINT64_MAX when no rendezvous closes its section. */
static uint64_t phase_after(const token_machine *m, const weft_link_point *link) {
  const weft_program *program = m->program;
  if (link->after == UINT64_MAX) return 0;
  if (link->after >= program->section_count) return UINT64_MAX;
  bool last = link->after + 1 == program->section_count;
  if (!program->sections[link->after].has_barrier_after && !last) return UINT64_MAX;
  return m->phase_of_section[link->after] + 1;
}

static bool starts_filled(const weft_tensor *tensor) {
  return tensor->role == WEFT_ROLE_INPUT || tensor->role == WEFT_ROLE_PARAM || tensor->role == WEFT_ROLE_STATE;
}

static weft_status mark_received(token_machine *m, const weft_link_point *link, uint64_t phase) {
  for (uint64_t i = 0; i < link->receive_count; i++) {
    if (link->receives[i] >= m->program->tensor_count)
      return bad_link(m, "a link point of `%s` receives a tensor that does not exist", m->program->name);
    const weft_tensor *tensor = &m->program->tensors[link->receives[i]];
    token_tensor *t = &m->tensors[link->receives[i]];
    if (t->received_phase != UINT64_MAX) return bad_link(m, "tensor `%s` is received twice", tensor->name);
    if (t->writes) return bad_link(m, "tensor `%s` is received, and stored by this program too", tensor->name);
    t->received_phase = phase;
  }
  return WEFT_OK;
}

/** What another chip makes has to arrive: a chip's program whose link point was lost would read what was never sent. */
static weft_status check_received(token_machine *m) {
  const weft_program *program = m->program;
  if (program->chip == WEFT_NONE) return WEFT_OK;
  for (uint64_t t = 0; t < program->tensor_count; t++) {
    const weft_tensor *tensor = &program->tensors[t];
    if (tensor->chip == WEFT_NONE || tensor->chip == program->chip || m->tensors[t].received_phase != UINT64_MAX)
      continue;
    m->status = weft_error(
        m->diag, WEFT_INVALID, "receive it at a link point, or split the whole-machine program again",
        "tensor `%s` is chip %u's, and no link point brings it to chip %u", tensor->name, tensor->chip, program->chip);
    return m->status;
  }
  return WEFT_OK;
}

bool tensors_prepare(token_machine *m) {
  const weft_program *program = m->program;
  m->tensors = WEFT_NEW_ARRAY(m->arena, token_tensor, program->tensor_count + 1);
  if (!m->tensors) return token_no_memory(m) != TOKEN_REFUSED;
  for (uint64_t t = 0; t < program->tensor_count; t++) m->tensors[t].received_phase = UINT64_MAX;
  for (uint64_t s = 0; s < program->stage_count; s++) {
    const weft_stage *stage = &program->stages[s];
    if (stage->kind != WEFT_STAGE_STORE || m->tensors[stage->store.tensor].writes) continue;
    const weft_tensor *tensor = &program->tensors[stage->store.tensor];
    token_tensor *t = &m->tensors[stage->store.tensor];
    uint64_t tiles = tile_count(tensor);
    t->writes = WEFT_NEW_ARRAY(m->arena, tile_write, tiles);
    if (tensor->role == WEFT_ROLE_STATE) t->reads = WEFT_NEW_ARRAY(m->arena, tile_read *, tiles);
    if (!t->writes || (tensor->role == WEFT_ROLE_STATE && !t->reads)) return token_no_memory(m) != TOKEN_REFUSED;
  }
  for (uint64_t l = 0; l < program->link_count; l++) {
    uint64_t phase = phase_after(m, &program->links[l]);
    if (phase == UINT64_MAX) {
      bad_link(m, "program `%s` has a link point that no rendezvous precedes", program->name);
      return false;
    }
    if (mark_received(m, &program->links[l], phase)) return false;
  }
  return check_received(m) == WEFT_OK;
}

/* ---- addresses ---- */

static bool same_address(const weft_tile_addr *a, const weft_tile_addr *b) {
  if (a->base != b->base || a->step_count != b->step_count || !a->indirect != !b->indirect) return false;
  for (uint64_t i = 0; i < a->step_count; i++)
    if (a->steps[i].var != b->steps[i].var || a->steps[i].stride != b->steps[i].stride) return false;
  return true;
}

/** The affine part of the op's address, as its engine computes it. */
static token_step resolve(token_machine *m, token_engine *e, const weft_op *op, uint64_t *base) {
  const weft_tile_addr *at = &op->tiles.at;
  bool overflow = false, bound;
  *base = at->base;
  for (uint64_t i = 0; i < at->step_count; i++) {
    uint64_t term;
    overflow |= weft_mul_overflow(token_variable(m, e, at->steps[i].var, &bound), at->steps[i].stride, &term);
    overflow |= weft_add_overflow(*base, term, base);
  }
  return overflow ? token_refuse(m, e, op, "its tile address leaves 64 bits") : TOKEN_DONE;
}

/** The last tile of a block at `base`, at the far end of an index's bound; false when that leaves 64 bits. */
static bool last_tile(const weft_op *op, uint64_t base, uint64_t *last) {
  uint64_t down, across, far = 0;
  const weft_indirect_tile *indirect = op->tiles.at.indirect;
  bool overflow = weft_mul_overflow(op->tiles.block_h - 1, op->tiles.stride_h, &down) ||
                  weft_mul_overflow(op->tiles.block_w - 1, op->tiles.stride_w, &across) ||
                  weft_add_overflow(base, down, last) || weft_add_overflow(*last, across, last);
  if (indirect)
    overflow = overflow ||
               weft_mul_overflow(indirect->bound.second / indirect->elems_per_tile, indirect->tile_stride, &far) ||
               weft_add_overflow(*last, far, last);
  return !overflow;
}

static token_step check_tiles(token_machine *m, token_engine *e, const weft_op *op, uint64_t base) {
  const weft_tensor *tensor = &m->program->tensors[op->tiles.tensor];
  const weft_indirect_tile *indirect = op->tiles.at.indirect;
  uint64_t last;
  if (op->tiles.block_h == 0 || op->tiles.block_w == 0) return TOKEN_DONE;
  if (indirect && (indirect->elems_per_tile == 0 || indirect->bound.first > indirect->bound.second))
    return token_refuse(m, e, op, "its index has no bound");
  if (last_tile(op, base, &last) && last < tile_count(tensor)) return TOKEN_DONE;
  return token_refuse(m, e, op, "a block of %llu x %llu tiles at tile %llu%s leaves tensor `%s`, which has %llu",
                      (unsigned long long)op->tiles.block_h, (unsigned long long)op->tiles.block_w,
                      (unsigned long long)base, indirect ? ", at the end of its index's bound," : "", tensor->name,
                      (unsigned long long)tile_count(tensor));
}

/** Calls `visit` for every tile the op may touch: of its block, at every value of its index. */
static token_step for_tiles(token_machine *m, token_engine *e, const weft_op *op, uint64_t base,
                            token_step (*visit)(token_machine *, token_engine *, const weft_op *, uint64_t)) {
  const weft_indirect_tile *indirect = op->tiles.at.indirect;
  uint64_t first = indirect ? indirect->bound.first / indirect->elems_per_tile : 0;
  uint64_t last = indirect ? indirect->bound.second / indirect->elems_per_tile : 0;
  for (uint64_t v = first; v <= last; v++)
    for (uint64_t i = 0; i < op->tiles.block_h; i++)
      for (uint64_t j = 0; j < op->tiles.block_w; j++) {
        uint64_t tile = base + i * op->tiles.stride_h + j * op->tiles.stride_w;
        if (indirect) tile += v * indirect->tile_stride;
        token_step step = visit(m, e, op, tile);
        if (step != TOKEN_DONE) return step;
      }
  return TOKEN_DONE;
}

/** The index's page is waited for, and moves with the same turn. */
static token_step join_index(token_machine *m, token_engine *e, const weft_op *op, walk_tag *tag) {
  const weft_indirect_tile *indirect = op->tiles.at.indirect;
  if (!indirect) return TOKEN_DONE;
  token_page *page = token_front_page(m, e, op, indirect->index);
  if (!page) return TOKEN_REFUSED;
  return tag_join(tag, &page->tag) ? TOKEN_DONE : token_refuse(m, e, op, "its index belongs to another turn");
}

/* ---- reads ---- */

static token_step read_written(token_machine *m, token_engine *e, const weft_op *op, uint64_t tile) {
  const weft_tensor *tensor = &m->program->tensors[op->tiles.tensor];
  const tile_write *write = &m->tensors[op->tiles.tensor].writes[tile];
  if (write->section == 0 && starts_filled(tensor)) return TOKEN_DONE;
  if (write->section && happened_before(m, e, write->engine, write->time, write->phase)) return TOKEN_DONE;
  return token_refuse(m, e, op,
                      write->section ? "reads tile %llu of tensor `%s`, whose write is not ordered before it"
                                     : "reads tile %llu of tensor `%s` before it is written",
                      (unsigned long long)tile, tensor->name);
}

/** Notes a read of a State's tile: a later write must come after it. */
static token_step note_read(token_machine *m, token_engine *e, const weft_op *op, uint64_t tile) {
  tile_read **list = &m->tensors[op->tiles.tensor].reads[tile];
  uint32_t me = number_of(m, e);
  for (tile_read *r = *list; r; r = r->next)
    if (r->engine == me && r->phase == e->phase) {
      r->time = NEVER;
      return TOKEN_DONE;
    }
  tile_read *read = WEFT_NEW(m->arena, tile_read);
  if (!read) return token_no_memory(m);
  *read = (tile_read){*list, me, NEVER, e->phase};
  *list = read;
  return TOKEN_DONE;
}

static token_step end_read(token_machine *m, token_engine *e, const weft_op *op, uint64_t tile) {
  for (tile_read *r = m->tensors[op->tiles.tensor].reads[tile]; r; r = r->next)
    if (r->engine == number_of(m, e) && r->phase == e->phase) r->time = e->time;
  return TOKEN_DONE;
}

static token_step check_readable(token_machine *m, token_engine *e, const weft_op *op, uint64_t base) {
  const weft_tensor *tensor = &m->program->tensors[op->tiles.tensor];
  const token_tensor *t = &m->tensors[op->tiles.tensor];
  if (op->tiles.block_h == 0 || op->tiles.block_w == 0) return TOKEN_DONE;
  if (t->received_phase != UINT64_MAX) {
    if (e->phase >= t->received_phase) return TOKEN_DONE;
    return token_refuse(m, e, op, "reads tensor `%s` before the link point that receives it", tensor->name);
  }
  if (!t->writes) {
    if (starts_filled(tensor)) return TOKEN_DONE;
    return token_refuse(m, e, op, "reads tensor `%s`, which nothing writes", tensor->name);
  }
  token_step step = for_tiles(m, e, op, base, read_written);
  return step == TOKEN_DONE && t->reads ? for_tiles(m, e, op, base, note_read) : step;
}

/** The turn a Load's data belong to: the values of the variables its declared address moves with. */
static token_step tag_of_load(token_machine *m, token_engine *e, const weft_op *op, uint64_t base, walk_tag *tag) {
  const weft_stage *stage = &m->program->stages[op->stage];
  const weft_tile_addr *declared = &stage->load.pattern.origin;
  uint64_t count = m->load_counts[op->stage]++;
  uint64_t h = plan_step_of(declared, WEFT_VAR_SUB_H), w = plan_step_of(declared, WEFT_VAR_SUB_W),
           k = plan_step_of(declared, WEFT_VAR_K_BLOCK);
  bool item = plan_step_of(declared, WEFT_VAR_ITEM_Y) || plan_step_of(declared, WEFT_VAR_ITEM_X), bound;
  *tag = tag_any();
  if (same_address(&op->tiles.at, declared)) {
    if (h) tag->sub_h = token_variable(m, e, WEFT_VAR_SUB_H, &bound);
    if (w) tag->sub_w = token_variable(m, e, WEFT_VAR_SUB_W, &bound);
    if (k) tag->block = token_variable(m, e, WEFT_VAR_K_BLOCK, &bound);
    if (item) {
      uint64_t y = token_variable(m, e, WEFT_VAR_ITEM_Y, &bound), x = token_variable(m, e, WEFT_VAR_ITEM_X, &bound);
      tag->item = y << 32 | (x & UINT32_MAX);
    }
    return TOKEN_DONE;
  }
  /* Blocks spelled out one after the other. */
  uint64_t blocks = weft_max_u64(1, stage->load.num_blocks), expected;
  if (h || w || item || declared->indirect || op->tiles.at.indirect ||
      weft_mul_overflow(count % blocks, k, &expected) || weft_add_overflow(expected, declared->base, &expected) ||
      expected != base)
    return token_refuse(m, e, op, "reads tile %llu of tensor `%s`, which is not where its stage is to read",
                        (unsigned long long)base, m->program->tensors[op->tiles.tensor].name);
  if (k) tag->block = count % blocks;
  return TOKEN_DONE;
}

token_step token_read_tiles(token_machine *m, token_engine *e, const weft_op *op) {
  uint64_t base;
  walk_tag tag;
  token_step step = resolve(m, e, op, &base);
  if (step == TOKEN_DONE) step = check_tiles(m, e, op, base);
  if (step == TOKEN_DONE) step = check_readable(m, e, op, base);
  if (step == TOKEN_DONE) step = tag_of_load(m, e, op, base, &tag);
  if (step == TOKEN_DONE) step = join_index(m, e, op, &tag);
  if (step != TOKEN_DONE) return step;
  token_page *page = token_fill_page(m, e, op, op->tiles.buf);
  if (!page) return TOKEN_REFUSED;
  token_ring *r = &m->rings[op->tiles.buf];
  if (!weft_arena_grow(m->arena, &e->reads, e->read_count, &e->read_capacity, sizeof *e->reads))
    return token_no_memory(m);
  e->reads[e->read_count++] = (transfer){op, base, op->tiles.buf, (r->pushed + r->filled) % r->depth};
  r->filled++;
  *page = (token_page){.tag = tag,
                       .tiles = op->tiles.block_h * op->tiles.block_w,
                       .filled = true,
                       .reading = true,
                       .used = true,
                       .fill_engine = number_of(m, e),
                       .fill_time = e->time};
  return TOKEN_DONE;
}

token_step token_read_barrier(token_machine *m, token_engine *e, const weft_op *op) {
  (void)op;
  for (uint64_t i = 0; i < e->read_count; i++) {
    transfer *read = &e->reads[i];
    m->rings[read->buffer].pages[read->slot].reading = false;
    if (m->tensors[read->op->tiles.tensor].reads) for_tiles(m, e, read->op, read->base, end_read);
  }
  e->read_count = 0;
  return TOKEN_DONE;
}

/* ---- writes ---- */

static token_step write_after_reads(token_machine *m, token_engine *e, const weft_op *op, uint64_t tile) {
  const token_tensor *t = &m->tensors[op->tiles.tensor];
  for (const tile_read *r = t->reads ? t->reads[tile] : NULL; r; r = r->next)
    if (!happened_before(m, e, r->engine, r->time, r->phase))
      return token_refuse(m, e, op, "writes tile %llu of tensor `%s`, which an earlier read may still be reading",
                          (unsigned long long)tile, m->program->tensors[op->tiles.tensor].name);
  return TOKEN_DONE;
}

static token_step claim_tile(token_machine *m, token_engine *e, const weft_op *op, uint64_t tile) {
  const weft_tensor *tensor = &m->program->tensors[op->tiles.tensor];
  tile_write *write = &m->tensors[op->tiles.tensor].writes[tile];
  uint32_t section = m->section_of[op->stage] + 1;
  if (write->section && (tensor->role != WEFT_ROLE_STATE || write->section == section))
    return token_refuse(m, e, op, "writes tile %llu of tensor `%s` a second time", (unsigned long long)tile,
                        tensor->name);
  if (write->section && !happened_before(m, e, write->engine, write->time, write->phase))
    return token_refuse(m, e, op, "writes tile %llu of tensor `%s`, whose earlier write is not ordered before it",
                        (unsigned long long)tile, tensor->name);
  token_step step = write_after_reads(m, e, op, tile);
  if (step != TOKEN_DONE) return step;
  if (!write->section) m->tiles_written++;
  *write = (tile_write){number_of(m, e), NEVER, e->phase, section};
  return TOKEN_DONE;
}

static token_step end_write(token_machine *m, token_engine *e, const weft_op *op, uint64_t tile) {
  m->tensors[op->tiles.tensor].writes[tile].time = e->time;
  return TOKEN_DONE;
}

/** The address that the stage declares for the turn the page belongs to must be the one the op writes to. */
static token_step check_turn(token_machine *m, token_engine *e, const weft_op *op, uint64_t base, const walk_tag *tag) {
  const weft_tile_addr *declared = &m->program->stages[op->stage].store.pattern.origin;
  uint64_t expected = declared->base;
  bool bound, overflow = false;
  for (uint64_t i = 0; i < declared->step_count; i++) {
    uint32_t var = declared->steps[i].var;
    uint64_t at = token_variable(m, e, var, &bound), term;
    if (var == WEFT_VAR_SUB_H && tag->sub_h != ANY) at = tag->sub_h;
    if (var == WEFT_VAR_SUB_W && tag->sub_w != ANY) at = tag->sub_w;
    if (var == WEFT_VAR_K_BLOCK && tag->block != ANY) at = tag->block;
    if (var == WEFT_VAR_ITEM_Y && tag->item != ANY) at = tag->item >> 32;
    if (var == WEFT_VAR_ITEM_X && tag->item != ANY) at = tag->item & UINT32_MAX;
    overflow |= weft_mul_overflow(at, declared->steps[i].stride, &term) || weft_add_overflow(expected, term, &expected);
  }
  if (!overflow && expected == base) return TOKEN_DONE;
  return token_refuse(m, e, op, "writes to tile %llu of tensor `%s` data that belong to tile %llu",
                      (unsigned long long)base, m->program->tensors[op->tiles.tensor].name,
                      (unsigned long long)expected);
}

token_step token_write_tiles(token_machine *m, token_engine *e, const weft_op *op) {
  uint64_t base;
  token_step step = resolve(m, e, op, &base);
  if (step == TOKEN_DONE) step = check_tiles(m, e, op, base);
  if (step != TOKEN_DONE) return step;
  token_page *page = token_front_page(m, e, op, op->tiles.buf);
  if (!page) return TOKEN_REFUSED;
  if (page->tiles != op->tiles.block_h * op->tiles.block_w)
    return token_refuse(m, e, op, "writes %llu x %llu tiles from a page of `%s` that holds %llu",
                        (unsigned long long)op->tiles.block_h, (unsigned long long)op->tiles.block_w,
                        m->program->buffers[op->tiles.buf].name, (unsigned long long)page->tiles);
  walk_tag tag = page->tag;
  step = join_index(m, e, op, &tag);
  if (step == TOKEN_DONE) step = check_turn(m, e, op, base, &tag);
  if (step == TOKEN_DONE) step = for_tiles(m, e, op, base, claim_tile);
  if (step != TOKEN_DONE) return step;
  token_ring *r = &m->rings[op->tiles.buf];
  if (!weft_arena_grow(m->arena, &e->writes, e->write_count, &e->write_capacity, sizeof *e->writes))
    return token_no_memory(m);
  e->writes[e->write_count++] = (transfer){op, base, op->tiles.buf, r->popped % r->depth};
  page->writing = true;
  return TOKEN_DONE;
}

token_step token_write_barrier(token_machine *m, token_engine *e, const weft_op *op) {
  (void)op;
  for (uint64_t i = 0; i < e->write_count; i++) {
    transfer *write = &e->writes[i];
    m->rings[write->buffer].pages[write->slot].writing = false;
    for_tiles(m, e, write->op, write->base, end_write);
  }
  e->write_count = 0;
  return TOKEN_DONE;
}

/* ---- after the run ---- */

static weft_status check_sends(const token_machine *m, const weft_link_point *link) {
  uint64_t phase = phase_after(m, link);
  for (uint64_t i = 0; i < link->send_count; i++) {
    if (link->sends[i] >= m->program->tensor_count)
      return weft_error(m->diag, WEFT_INVALID, NULL, "a link point of `%s` sends a tensor that does not exist",
                        m->program->name);
    const weft_tensor *tensor = &m->program->tensors[link->sends[i]];
    const token_tensor *t = &m->tensors[link->sends[i]];
    bool there = t->received_phase != UINT64_MAX ? t->received_phase <= phase : t->writes || starts_filled(tensor);
    for (uint64_t tile = 0; there && t->writes && tile < tile_count(tensor); tile++)
      there = (t->writes[tile].section || starts_filled(tensor)) && t->writes[tile].phase < weft_max_u64(phase, 1);
    if (!there)
      return weft_error(m->diag, WEFT_INVALID, NULL, "tensor `%s` is sent at a link point before it is written",
                        tensor->name);
  }
  return WEFT_OK;
}

weft_status tensors_complete(token_machine *m) {
  const weft_program *program = m->program;
  for (uint64_t t = 0; t < program->tensor_count; t++) {
    const weft_tensor *tensor = &program->tensors[t];
    if (tensor->role != WEFT_ROLE_OUTPUT && tensor->role != WEFT_ROLE_ACTIVATION) continue;
    for (uint64_t tile = 0; tile < tile_count(tensor); tile++)
      if (!m->tensors[t].writes || !m->tensors[t].writes[tile].section)
        return weft_error(m->diag, WEFT_INVALID, NULL, "tile (%llu, %llu) of tensor `%s` is never written",
                          (unsigned long long)(tile / tensor->tiles.cols_t),
                          (unsigned long long)(tile % tensor->tiles.cols_t), tensor->name);
  }
  for (uint64_t l = 0; l < program->link_count; l++) {
    weft_status status = check_sends(m, &program->links[l]);
    if (status) return status;
  }
  return WEFT_OK;
}
