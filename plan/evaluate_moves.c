/* Pages and tiles: rings, reads, writes, multicasts.
 *
 * A transfer may take place at any time between its op and its barrier. In a random interleaving a coin decides which
 * end; in the fixed order it is the op. */
#include "evaluate_private.h"

#include <math.h>
#include <string.h>

/* ---- pages ---- */

void page_clear(page *p) {
  p->more = (extra){0};
  p->k_done = 0;
  p->depth = 0;
}

bool extra_faults(machine *m, extra *x, uint64_t elements) {
  if (!x->faults) x->faults = WEFT_NEW_ARRAY(m->arena, uint32_t, elements);
  return x->faults != NULL;
}

bool extra_written(machine *m, extra *x, uint64_t elements) {
  if (!x->written) x->written = WEFT_NEW_ARRAY(m->arena, uint8_t, elements);
  return x->written != NULL;
}

static bool make_page(machine *m, uint32_t buffer, page *p) {
  if (p->data) return true;
  const weft_buffer *b = &m->program->buffers[buffer];
  uint64_t bytes;
  if (weft_mul_overflow(b->page_tiles, machine_tile_elements(m) * weft_format_bytes(b->dtype), &bytes)) return false;
  p->rows = WEFT_NEW_ARRAY(m->arena, uint32_t, b->page_tiles);
  p->cols = WEFT_NEW_ARRAY(m->arena, uint32_t, b->page_tiles);
  p->data = weft_arena_alloc(m->arena, bytes);
  return p->rows && p->cols && p->data;
}

page *ring_fill_page(machine *m, const engine *e, const weft_op *op, uint32_t buffer) {
  if (buffer >= m->program->buffer_count) {
    machine_fault(m, e, op, "there is no buffer %u", buffer);
    return NULL;
  }
  ring *r = &m->rings[buffer];
  if (r->filled >= r->reserved) {
    machine_fault(m, e, op, "fills buffer `%s`, of which no free page is reserved", m->program->buffers[buffer].name);
    return NULL;
  }
  page *p = &r->pages[(r->pushed + r->filled) % r->depth];
  if (!make_page(m, buffer, p)) {
    machine_no_memory(m);
    return NULL;
  }
  return p;
}

page *ring_front_page(machine *m, const engine *e, const weft_op *op, uint32_t buffer) {
  if (buffer >= m->program->buffer_count) {
    machine_fault(m, e, op, "there is no buffer %u", buffer);
    return NULL;
  }
  ring *r = &m->rings[buffer];
  if (r->waited > 0) return &r->pages[r->popped % r->depth];
  machine_fault(m, e, op, "uses a page of buffer `%s` that it has not waited for", m->program->buffers[buffer].name);
  return NULL;
}

/* ---- Reserve, Push, Wait, Pop ---- */

static step_result push_pages(machine *m, engine *e, const weft_op *op, ring *r) {
  const char *name = m->program->buffers[op->page.buf].name;
  if (op->page.pages > r->reserved) return machine_fault(m, e, op, "pushes pages of `%s` it has not reserved", name);
  if (op->page.pages > r->filled) return machine_fault(m, e, op, "pushes a page of `%s` that nobody filled", name);
  for (uint64_t i = 0; i < op->page.pages; i++)
    if (r->pages[(r->pushed + i) % r->depth].reading)
      return machine_fault(m, e, op, "pushes a page of `%s` whose read has not passed a barrier", name);
  r->reserved -= op->page.pages;
  r->filled -= op->page.pages;
  r->pushed += op->page.pages;
  return STEP_DONE;
}

static step_result pop_pages(machine *m, engine *e, const weft_op *op, ring *r) {
  const char *name = m->program->buffers[op->page.buf].name;
  if (op->page.pages > r->waited) return machine_fault(m, e, op, "pops a page of `%s` it has not waited for", name);
  for (uint64_t i = 0; i < op->page.pages; i++)
    if (r->pages[(r->popped + i) % r->depth].writing)
      return machine_fault(m, e, op, "pops a page of `%s` whose write has not passed a barrier", name);
  r->waited -= op->page.pages;
  r->popped += op->page.pages;
  return STEP_DONE;
}

/** Memory that buffers share has one owner at a time. */
static step_result reserve_pages(machine *m, engine *e, const weft_op *op, ring *r) {
  if (r->pushed - r->popped + r->reserved + op->page.pages > r->depth) return STEP_BLOCKED;
  for (uint32_t a = r->next_alias; a != op->page.buf && op->page.pages; a = m->rings[a].next_alias)
    if (m->rings[a].reserved || m->rings[a].pushed != m->rings[a].popped)
      return machine_fault(m, e, op, "reserves a page of `%s` where `%s`, whose memory it shares, has one",
                           m->program->buffers[op->page.buf].name, m->program->buffers[a].name);
  r->reserved += op->page.pages;
  return STEP_DONE;
}

step_result step_page_op(machine *m, engine *e, const weft_op *op) {
  if (op->page.buf >= m->program->buffer_count) return machine_fault(m, e, op, "there is no buffer %u", op->page.buf);
  ring *r = &m->rings[op->page.buf];
  if (op->page.pages > r->depth)
    return machine_fault(m, e, op, "asks for %llu pages of `%s`, which has %llu", (unsigned long long)op->page.pages,
                         m->program->buffers[op->page.buf].name, (unsigned long long)r->depth);
  switch (op->kind) {
  case WEFT_OP_RESERVE: return reserve_pages(m, e, op, r);
  case WEFT_OP_WAIT:
    if (r->pushed - r->popped < op->page.pages) return STEP_BLOCKED;
    r->waited = weft_max_u64(r->waited, op->page.pages);
    return STEP_DONE;
  case WEFT_OP_PUSH: return push_pages(m, e, op, r);
  default: return pop_pages(m, e, op, r);
  }
}

/* ---- addresses ---- */

/** The whole number in element 0 of an index buffer's front page. */
static step_result read_index(machine *m, engine *e, const weft_op *op, const weft_indirect_tile *indirect,
                              uint64_t *index) {
  page *p = ring_front_page(m, e, op, indirect->index);
  if (!p) return STEP_FAULT;
  if (p->more.faults && p->more.faults[0]) return machine_faulty(m, e, op, p->more.faults[0]);
  weft_format format = m->program->buffers[indirect->index].dtype;
  int64_t value;
  if (weft_format_is_float(format)) {
    float real = weft_load_f32(format, p->data, 0);
    if (!(fabsf(real) < 0x1p62f) || real != floorf(real))
      return machine_fault(m, e, op, "the index %g is no whole number", (double)real);
    value = (int64_t)real;
  } else {
    value = weft_load_i64(format, p->data, 0);
  }
  if (value < 0 || (uint64_t)value < indirect->bound.first || (uint64_t)value > indirect->bound.second)
    return machine_fault(m, e, op, "the index %lld is outside %llu to %llu", (long long)value,
                         (unsigned long long)indirect->bound.first, (unsigned long long)indirect->bound.second);
  *index = (uint64_t)value;
  return STEP_DONE;
}

static step_result resolve(machine *m, engine *e, const weft_op *op, uint64_t *base) {
  const weft_tile_addr *at = &op->tiles.at;
  uint64_t sum = at->base;
  bool overflow = false;
  for (uint64_t i = 0; i < at->step_count; i++) {
    uint64_t term;
    overflow |= weft_mul_overflow(machine_variable(m, e, at->steps[i].var), at->steps[i].stride, &term);
    overflow |= weft_add_overflow(sum, term, &sum);
  }
  if (at->indirect) {
    uint64_t index = 0, term;
    step_result result = read_index(m, e, op, at->indirect, &index);
    if (result != STEP_DONE) return result;
    if (at->indirect->elems_per_tile == 0) return machine_fault(m, e, op, "an index of 0 elements a tile");
    overflow |= weft_mul_overflow(index / at->indirect->elems_per_tile, at->indirect->tile_stride, &term);
    overflow |= weft_add_overflow(sum, term, &sum);
  }
  if (overflow) return machine_fault(m, e, op, "the tile address leaves 64 bits");
  *base = sum;
  return STEP_DONE;
}

/** Checks that every tile of the op's block is one of the tensor's. */
static step_result check_tiles(machine *m, engine *e, const weft_op *op, uint64_t base) {
  const weft_tensor *tensor = &m->program->tensors[op->tiles.tensor];
  uint64_t tiles = tensor->tiles.rows_t * tensor->tiles.cols_t, down, across, last;
  if (op->tiles.block_h == 0 || op->tiles.block_w == 0) return STEP_DONE;
  if (weft_mul_overflow(op->tiles.block_h - 1, op->tiles.stride_h, &down) ||
      weft_mul_overflow(op->tiles.block_w - 1, op->tiles.stride_w, &across) || weft_add_overflow(base, down, &last) ||
      weft_add_overflow(last, across, &last) || last >= tiles)
    return machine_fault(m, e, op, "a block of %llu x %llu tiles at tile %llu leaves tensor `%s`, which has %llu",
                         (unsigned long long)op->tiles.block_h, (unsigned long long)op->tiles.block_w,
                         (unsigned long long)base, tensor->name, (unsigned long long)tiles);
  return STEP_DONE;
}

static step_result check_block(machine *m, engine *e, const weft_op *op) {
  if (op->tiles.tensor >= m->program->tensor_count || op->tiles.buf >= m->program->buffer_count)
    return machine_fault(m, e, op, "names a tensor or a buffer that does not exist");
  const weft_tensor *tensor = &m->program->tensors[op->tiles.tensor];
  const weft_buffer *buffer = &m->program->buffers[op->tiles.buf];
  uint64_t tiles;
  if (weft_mul_overflow(op->tiles.block_h, op->tiles.block_w, &tiles) || tiles > buffer->page_tiles)
    return machine_fault(m, e, op, "a block of %llu x %llu tiles does not fit a page of `%s`",
                         (unsigned long long)op->tiles.block_h, (unsigned long long)op->tiles.block_w, buffer->name);
  if (buffer->dtype != tensor->dtype)
    return machine_fault(m, e, op, "buffer `%s` is %s, tensor `%s` is %s", buffer->name,
                         weft_format_name(buffer->dtype), tensor->name, weft_format_name(tensor->dtype));
  return STEP_DONE;
}

/** A tile inside the extents of a tensor. */
typedef struct tile_place {
  uint64_t tile, row, col; /**< its number, its first element */
  uint64_t rows, cols;     /**< elements inside the extents */
} tile_place;

static tile_place place_of(const machine *m, const weft_op *op, uint64_t base, uint64_t i, uint64_t j) {
  const weft_tensor *tensor = &m->program->tensors[op->tiles.tensor];
  tile_place place = {.tile = base + i * op->tiles.stride_h + j * op->tiles.stride_w};
  place.row = place.tile / tensor->tiles.cols_t * m->program->tile_rows;
  place.col = place.tile % tensor->tiles.cols_t * m->program->tile_cols;
  place.rows = weft_min_u64(m->program->tile_rows, tensor->elems.rows - place.row);
  place.cols = weft_min_u64(m->program->tile_cols, tensor->elems.cols - place.col);
  return place;
}

/* ---- reads ---- */

static void copy_tile_in(machine *m, const weft_op *op, tile_place place, page *p, uint64_t index) {
  const weft_tensor *tensor = &m->program->tensors[op->tiles.tensor];
  size_t bytes = weft_format_bytes(tensor->dtype);
  uint64_t width = m->program->tile_cols, elements = machine_tile_elements(m);
  uint8_t *to = p->data + index * elements * bytes;
  memset(to, 0, elements * bytes);
  for (uint64_t r = 0; r < place.rows; r++)
    memcpy(to + r * width * bytes,
           m->tensors[op->tiles.tensor].data + ((place.row + r) * tensor->elems.cols + place.col) * bytes,
           place.cols * bytes);
  p->rows[index] = (uint32_t)place.rows;
  p->cols[index] = (uint32_t)place.cols;
}

static step_result apply_read(machine *m, engine *e, pending *read) {
  const weft_op *op = read->op;
  page *p = &m->rings[read->buffer].pages[read->slot];
  for (uint64_t i = 0; i < op->tiles.block_h; i++)
    for (uint64_t j = 0; j < op->tiles.block_w; j++) {
      tile_place place = place_of(m, op, read->base, i, j);
      if (m->tensors[op->tiles.tensor].tiles[place.tile] != TILE_WRITTEN)
        return machine_fault(m, e, op, "reads tile %llu of tensor `%s` before it is written",
                             (unsigned long long)place.tile, m->program->tensors[op->tiles.tensor].name);
      copy_tile_in(m, op, place, p, i * op->tiles.block_w + j);
    }
  read->applied = true;
  return STEP_DONE;
}

static bool add_pending(machine *m, pending **list, uint64_t *count, uint64_t *capacity, pending item) {
  if (!weft_arena_grow(m->arena, list, *count, capacity, sizeof item)) return false;
  (*list)[(*count)++] = item;
  return true;
}

step_result step_read_tiles(machine *m, engine *e, const weft_op *op) {
  uint64_t base;
  step_result result = check_block(m, e, op);
  if (result == STEP_DONE) result = resolve(m, e, op, &base);
  if (result == STEP_DONE) result = check_tiles(m, e, op, base);
  if (result != STEP_DONE) return result;
  page *p = ring_fill_page(m, e, op, op->tiles.buf);
  if (!p) return STEP_FAULT;
  ring *r = &m->rings[op->tiles.buf];
  pending read = {op, base, op->tiles.buf, (r->pushed + r->filled) % r->depth, false};
  r->filled++;
  page_clear(p);
  p->tiles = op->tiles.block_h * op->tiles.block_w;
  p->filled = p->reading = true;
  if (!machine_coin(m)) {
    result = apply_read(m, e, &read);
    if (result != STEP_DONE) return result;
  }
  return add_pending(m, &e->reads, &e->read_count, &e->read_capacity, read) ? STEP_DONE : machine_no_memory(m);
}

step_result step_read_barrier(machine *m, engine *e, const weft_op *op) {
  (void)op;
  for (uint64_t i = 0; i < e->read_count; i++) {
    pending *read = &e->reads[i];
    step_result result = read->applied ? STEP_DONE : apply_read(m, e, read);
    if (result != STEP_DONE) return result;
    m->rings[read->buffer].pages[read->slot].reading = false;
  }
  e->read_count = 0;
  return STEP_DONE;
}

/* ---- writes ---- */

/** An Output or Activation tile is written once, a State's at most once a section. */
static step_result claim_tile(machine *m, engine *e, const weft_op *op, uint64_t tile) {
  tensor_state *state = &m->tensors[op->tiles.tensor];
  const weft_tensor *tensor = &m->program->tensors[op->tiles.tensor];
  uint64_t section = op->stage < m->program->stage_count ? weft_section_of_stage(m->program, op->stage) : 0;
  bool twice = state->section_of ? state->section_of[tile] == section + 2 : state->tiles[tile] != TILE_EMPTY;
  if (twice)
    return machine_fault(m, e, op, "writes tile %llu of tensor `%s` a second time", (unsigned long long)tile,
                         tensor->name);
  if (state->section_of) state->section_of[tile] = section + 2;
  state->tiles[tile] = TILE_IN_FLIGHT;
  return STEP_DONE;
}

static step_result copy_tile_out(machine *m, engine *e, const weft_op *op, tile_place place, const page *p,
                                 uint64_t index) {
  const weft_tensor *tensor = &m->program->tensors[op->tiles.tensor];
  size_t bytes = weft_format_bytes(tensor->dtype);
  uint64_t width = m->program->tile_cols, first = index * machine_tile_elements(m);
  for (uint64_t r = 0; r < place.rows; r++)
    for (uint64_t c = 0; c < place.cols; c++) {
      uint64_t from = first + r * width + c;
      if (p->more.written && !p->more.written[from]) continue;
      if (p->more.faults && p->more.faults[from]) return machine_faulty(m, e, op, p->more.faults[from]);
      memcpy(m->tensors[op->tiles.tensor].data + ((place.row + r) * tensor->elems.cols + place.col + c) * bytes,
             p->data + from * bytes, bytes);
    }
  return STEP_DONE;
}

static step_result apply_write(machine *m, engine *e, pending *write) {
  const weft_op *op = write->op;
  const page *p = &m->rings[write->buffer].pages[write->slot];
  for (uint64_t i = 0; i < op->tiles.block_h; i++)
    for (uint64_t j = 0; j < op->tiles.block_w; j++) {
      tile_place place = place_of(m, op, write->base, i, j);
      step_result result = copy_tile_out(m, e, op, place, p, i * op->tiles.block_w + j);
      if (result != STEP_DONE) return result;
    }
  write->applied = true;
  return STEP_DONE;
}

step_result step_write_tiles(machine *m, engine *e, const weft_op *op) {
  uint64_t base;
  step_result result = check_block(m, e, op);
  if (result == STEP_DONE) result = resolve(m, e, op, &base);
  if (result == STEP_DONE) result = check_tiles(m, e, op, base);
  if (result != STEP_DONE) return result;
  page *p = ring_front_page(m, e, op, op->tiles.buf);
  if (!p) return STEP_FAULT;
  if (p->tiles < op->tiles.block_h * op->tiles.block_w)
    return machine_fault(m, e, op, "writes %llu x %llu tiles from a page of `%s` that holds %llu",
                         (unsigned long long)op->tiles.block_h, (unsigned long long)op->tiles.block_w,
                         m->program->buffers[op->tiles.buf].name, (unsigned long long)p->tiles);
  weft_tensor_role role = m->program->tensors[op->tiles.tensor].role;
  if (role == WEFT_ROLE_INPUT || role == WEFT_ROLE_PARAM) return machine_fault(m, e, op, "writes an input");
  for (uint64_t i = 0; i < op->tiles.block_h && result == STEP_DONE; i++)
    for (uint64_t j = 0; j < op->tiles.block_w && result == STEP_DONE; j++)
      result = claim_tile(m, e, op, place_of(m, op, base, i, j).tile);
  if (result != STEP_DONE) return result;
  ring *r = &m->rings[op->tiles.buf];
  pending write = {op, base, op->tiles.buf, r->popped % r->depth, false};
  p->writing = true;
  if (!machine_coin(m)) {
    result = apply_write(m, e, &write);
    if (result != STEP_DONE) return result;
  }
  return add_pending(m, &e->writes, &e->write_count, &e->write_capacity, write) ? STEP_DONE : machine_no_memory(m);
}

step_result step_write_barrier(machine *m, engine *e, const weft_op *op) {
  (void)op;
  for (uint64_t n = 0; n < e->write_count; n++) {
    pending *write = &e->writes[n];
    step_result result = write->applied ? STEP_DONE : apply_write(m, e, write);
    if (result != STEP_DONE) return result;
    const weft_op *w = write->op;
    for (uint64_t i = 0; i < w->tiles.block_h; i++)
      for (uint64_t j = 0; j < w->tiles.block_w; j++)
        m->tensors[w->tiles.tensor].tiles[place_of(m, w, write->base, i, j).tile] = TILE_WRITTEN;
    m->rings[write->buffer].pages[write->slot].writing = false;
  }
  e->write_count = 0;
  return STEP_DONE;
}

/* ---- multicasts ---- */

static step_result send_page(machine *m, engine *e, const weft_op *op, const page *from, uint32_t buffer) {
  page *to = ring_fill_page(m, e, op, buffer);
  if (!to) return STEP_FAULT;
  const weft_buffer *b = &m->program->buffers[buffer];
  if (b->dtype != m->program->buffers[op->mcast_send.buf].dtype || from->tiles > b->page_tiles)
    return machine_fault(m, e, op, "buffer `%s` of a receiver has other pages than the sender's", b->name);
  uint64_t elements = from->tiles * machine_tile_elements(m);
  page_clear(to);
  memcpy(to->data, from->data, elements * weft_format_bytes(b->dtype));
  memcpy(to->rows, from->rows, from->tiles * sizeof *to->rows);
  memcpy(to->cols, from->cols, from->tiles * sizeof *to->cols);
  to->more = from->more;
  to->tiles = from->tiles;
  to->filled = true;
  m->rings[buffer].filled++;
  return STEP_DONE;
}

static step_result step_send(machine *m, engine *e, const weft_op *op) {
  uint32_t buffer = op->mcast_send.buf, group = op->mcast_send.group;
  if (buffer >= m->program->buffer_count) return machine_fault(m, e, op, "there is no buffer %u", buffer);
  ring *r = &m->rings[buffer];
  if (op->mcast_send.pages > r->filled)
    return machine_fault(m, e, op, "sends a page of `%s` that is not filled", m->program->buffers[buffer].name);
  for (uint64_t i = 0; i < op->mcast_send.pages; i++) {
    const page *from = &r->pages[(r->pushed + i) % r->depth];
    if (from->reading)
      return machine_fault(m, e, op, "sends a page of `%s` whose read has not passed a barrier",
                           m->program->buffers[buffer].name);
    for (uint64_t n = 0; n < m->member_counts[group]; n++) {
      if (m->members[group][n] == buffer) continue;
      step_result result = send_page(m, e, op, from, m->members[group][n]);
      if (result != STEP_DONE) return result;
    }
  }
  return STEP_DONE;
}

static step_result step_set_valid(machine *m, engine *e, const weft_op *op) {
  uint32_t id = op->mcast_set_valid.sem;
  if (id >= m->program->semaphore_count) return machine_fault(m, e, op, "there is no semaphore %u", id);
  const weft_semaphore *semaphore = &m->program->semaphores[id];
  const weft_group *group = &m->program->placement->groups[op->mcast_set_valid.group];
  for (uint64_t i = 0; i < semaphore->site_count; i++) {
    weft_site s = semaphore->sites[i];
    bool inside = s.x >= group->rect.x0 && s.x <= group->rect.x1 && s.y >= group->rect.y0 && s.y <= group->rect.y1 &&
                  s.chip == group->sender.chip;
    if (inside && !weft_site_equal(s, group->sender)) m->semaphores[id][i] = 1;
  }
  return STEP_DONE;
}

step_result step_multicast(machine *m, engine *e, const weft_op *op) {
  uint32_t group = op->kind == WEFT_OP_MCAST_SEND ? op->mcast_send.group : op->mcast_set_valid.group;
  if (group >= m->program->placement->group_count) return machine_fault(m, e, op, "there is no group %u", group);
  return op->kind == WEFT_OP_MCAST_SEND ? step_send(m, e, op) : step_set_valid(m, e, op);
}
