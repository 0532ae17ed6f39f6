/* Pages of the token run: rings never over- or underflow, one engine fills and one drains each (C3). */
#include "certify_private.h"

walk_tag tag_any(void) { return (walk_tag){ANY, ANY, ANY, ANY}; }

static bool join_one(uint64_t *a, uint64_t b) {
  if (*a == ANY) *a = b;
  return b == ANY || *a == b;
}

bool tag_join(walk_tag *tag, const walk_tag *other) {
  return join_one(&tag->item, other->item) && join_one(&tag->sub_h, other->sub_h) &&
         join_one(&tag->sub_w, other->sub_w) && join_one(&tag->block, other->block);
}

static uint32_t number_of(const token_machine *m, const token_engine *e) { return (uint32_t)(e - m->engines); }

static const char *name_of(const token_machine *m, uint32_t buffer) { return m->program->buffers[buffer].name; }

static token_step only_one(token_machine *m, token_engine *e, const weft_op *op, uint32_t *owner, const char *what) {
  if (*owner == WEFT_NONE) *owner = number_of(m, e);
  if (*owner == number_of(m, e)) return TOKEN_DONE;
  weft_text text = {0};
  plan_describe_engine(&text, m->engines[*owner].program->site, m->engines[*owner].program->engine);
  token_step step = token_refuse(m, e, op, "buffer `%s` is %s by two engines, this one and %s",
                                 name_of(m, op->page.buf), what, text.data ? text.data : "?");
  weft_text_free(&text);
  return step;
}

token_page *token_fill_page(token_machine *m, token_engine *e, const weft_op *op, uint32_t buffer) {
  token_ring *r = &m->rings[buffer];
  if (r->filled < r->reserved) return &r->pages[(r->pushed + r->filled) % r->depth];
  token_refuse(m, e, op, "fills buffer `%s`, of which no free page is reserved", name_of(m, buffer));
  return NULL;
}

token_page *token_front_page(token_machine *m, token_engine *e, const weft_op *op, uint32_t buffer) {
  token_ring *r = &m->rings[buffer];
  if (r->waited > 0 && r->consumer == number_of(m, e)) return &r->pages[r->popped % r->depth];
  token_refuse(m, e, op, "uses a page of buffer `%s` that it has not waited for", name_of(m, buffer));
  return NULL;
}

/** A clock a slot, made when the ring is first used: its engines are of one component. */
static bool make_clocks(token_machine *m, const token_engine *e, token_ring *r) {
  if (r->push_clocks) return true;
  r->push_clocks = WEFT_NEW_ARRAY(m->arena, clock_vector, r->depth);
  r->pop_clocks = WEFT_NEW_ARRAY(m->arena, clock_vector, r->depth);
  if (!r->push_clocks || !r->pop_clocks) return false;
  for (uint64_t i = 0; i < r->depth; i++) {
    r->push_clocks[i] = clock_new(m, e->component);
    r->pop_clocks[i] = clock_new(m, e->component);
    if (!r->push_clocks[i] || !r->pop_clocks[i]) return false;
  }
  return true;
}

/** No page of a buffer that shares the ring's memory is in use, in any order: the last one was popped before. */
static token_step owns_memory(token_machine *m, token_engine *e, const weft_op *op) {
  for (uint32_t a = m->rings[op->page.buf].next_alias; a != op->page.buf; a = m->rings[a].next_alias) {
    const token_ring *other = &m->rings[a];
    bool idle = other->pushed == other->popped && other->reserved == 0;
    if (idle && (!other->popped || happened_before(m, e, other->consumer, other->pop_time, other->pop_phase))) continue;
    return token_refuse(m, e, op, "reserves a page of `%s`, whose memory a page of `%s` may still hold",
                        name_of(m, op->page.buf), name_of(m, a));
  }
  return TOKEN_DONE;
}

static token_step reserve(token_machine *m, token_engine *e, const weft_op *op, token_ring *r) {
  token_step step = only_one(m, e, op, &r->producer, "filled");
  if (step != TOKEN_DONE) return step;
  if (r->pushed - r->popped + r->reserved + op->page.pages > r->depth) {
    r->waiting_producer = number_of(m, e);
    return TOKEN_BLOCKED;
  }
  if (op->page.pages && (step = owns_memory(m, e, op)) != TOKEN_DONE) return step;
  for (uint64_t i = 0; i < op->page.pages; i++)
    clock_join(m, e, r->pop_clocks[(r->pushed + r->reserved + i) % r->depth]);
  r->reserved += op->page.pages;
  r->reserve_time = e->time;
  return TOKEN_DONE;
}

static token_step push(token_machine *m, token_engine *e, const weft_op *op, token_ring *r) {
  token_step step = only_one(m, e, op, &r->producer, "filled");
  if (step != TOKEN_DONE) return step;
  const char *name = name_of(m, op->page.buf);
  if (op->page.pages > r->reserved) return token_refuse(m, e, op, "pushes pages of `%s` it has not reserved", name);
  if (op->page.pages > r->filled) return token_refuse(m, e, op, "pushes a page of `%s` that nobody has filled", name);
  for (uint64_t i = 0; i < op->page.pages; i++) {
    uint64_t slot = (r->pushed + i) % r->depth;
    const token_page *page = &r->pages[slot];
    if (page->reading) return token_refuse(m, e, op, "pushes a page of `%s` whose read has not passed a barrier", name);
    if (!happened_before(m, e, page->fill_engine, page->fill_time, e->phase))
      return token_refuse(m, e, op, "pushes a page of `%s` that another engine may still be filling", name);
    clock_copy(m, e, r->push_clocks[slot]);
  }
  r->reserved -= op->page.pages;
  r->filled -= op->page.pages;
  r->pushed += op->page.pages;
  token_wake(m, r->waiting_consumer);
  r->waiting_consumer = WEFT_NONE;
  return TOKEN_DONE;
}

static token_step wait(token_machine *m, token_engine *e, const weft_op *op, token_ring *r) {
  token_step step = only_one(m, e, op, &r->consumer, "drained");
  if (step != TOKEN_DONE) return step;
  if (r->pushed - r->popped < op->page.pages) {
    r->waiting_consumer = number_of(m, e);
    return TOKEN_BLOCKED;
  }
  if (op->page.pages) clock_join(m, e, r->push_clocks[(r->popped + op->page.pages - 1) % r->depth]);
  r->waited = weft_max_u64(r->waited, op->page.pages);
  return TOKEN_DONE;
}

static token_step pop(token_machine *m, token_engine *e, const weft_op *op, token_ring *r) {
  token_step step = only_one(m, e, op, &r->consumer, "drained");
  if (step != TOKEN_DONE) return step;
  const char *name = name_of(m, op->page.buf);
  if (op->page.pages > r->waited) return token_refuse(m, e, op, "pops a page of `%s` it has not waited for", name);
  for (uint64_t i = 0; i < op->page.pages; i++) {
    uint64_t slot = (r->popped + i) % r->depth;
    if (r->pages[slot].writing)
      return token_refuse(m, e, op, "pops a page of `%s` whose write has not passed a barrier", name);
    clock_copy(m, e, r->pop_clocks[slot]);
  }
  r->waited -= op->page.pages;
  r->popped += op->page.pages;
  r->pop_time = e->time;
  r->pop_phase = e->phase;
  token_wake(m, r->waiting_producer);
  r->waiting_producer = WEFT_NONE;
  return TOKEN_DONE;
}

token_step token_page_op(token_machine *m, token_engine *e, const weft_op *op) {
  token_ring *r = &m->rings[op->page.buf];
  if (op->page.pages > r->depth)
    return token_refuse(m, e, op, "asks for %llu pages of `%s`, which has %llu", (unsigned long long)op->page.pages,
                        name_of(m, op->page.buf), (unsigned long long)r->depth);
  if (!make_clocks(m, e, r)) return token_no_memory(m);
  switch (op->kind) {
  case WEFT_OP_RESERVE: return reserve(m, e, op, r);
  case WEFT_OP_PUSH: return push(m, e, op, r);
  case WEFT_OP_WAIT: return wait(m, e, op, r);
  default: return pop(m, e, op, r);
  }
}
