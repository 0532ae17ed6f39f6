/* The accumulator of the token run: what a compute reads belongs to one turn, and a fold takes every block once, in
 * order (C6, C7). */
#include "certify_private.h"

#define LEVEL_EPILOGUE 2 /**< of weft_fold_levels */

token_step token_acquire(token_machine *m, token_engine *e, const weft_op *op) {
  const weft_stage *stage = &m->program->stages[op->stage];
  const weft_matmul_tiles *matmul = plan_matmul_of(stage);
  if (e->acc.acquired) return token_refuse(m, e, op, "acquires an accumulator that it holds already");
  e->acc = (token_acc){
      .acquired = true, .tiles = op->acquire_tiles, .stage = op->stage, .holds = WEFT_NONE, .tag = tag_any()};
  /* A product over no K is +0 without any block. */
  if (matmul && matmul->num_blocks == 0) {
    e->acc.computed = e->acc.k_known = true;
    if (stage->out_count && plan_buffer_is_acc(m->program, stage->outs[0])) e->acc.holds = stage->outs[0];
  }
  return TOKEN_DONE;
}

token_step token_release(token_machine *m, token_engine *e, const weft_op *op) {
  if (!e->acc.acquired) return token_refuse(m, e, op, "releases an accumulator that it does not hold");
  e->acc.acquired = false;
  return TOKEN_DONE;
}

/* ---- operands ---- */

/** Blocks that the loops of a fold run over: those of the product's own trip, or of the program's. */
static uint64_t blocks_of(const token_machine *m, const weft_matmul_tiles *matmul, uint64_t declared) {
  uint32_t trip = matmul && matmul->trip != WEFT_NONE ? matmul->trip : m->program->work.k_trip;
  return trip == WEFT_NONE ? declared : weft_min_u64(declared, m->trip_counts[trip]);
}

/** Whether a tile product in the accumulator has all its blocks. */
static bool product_complete(const token_machine *m, const token_acc *acc) {
  const weft_matmul_tiles *matmul = plan_matmul_of(&m->program->stages[acc->stage]);
  return !matmul || (acc->k_begin == 0 && acc->k_end == blocks_of(m, matmul, matmul->num_blocks));
}

/** A carry is read before its update in the block, or after it, as the stages stand; by the epilogue after the last
 * block. What does not move with the blocks otherwise then belongs to the carry's block. */
static token_step check_carry(token_machine *m, token_engine *e, const weft_op *op, uint32_t buffer,
                              const token_page *page, walk_tag *tag, uint64_t *k_end) {
  const token_ring *r = &m->rings[buffer];
  const char *name = m->program->buffers[buffer].name;
  bool after = op->stage > r->updater;
  if (m->levels[op->stage] == LEVEL_EPILOGUE) {
    uint64_t all = r->all_blocks == ANY ? page->k_end : blocks_of(m, NULL, r->all_blocks);
    if (page->k_end != all)
      return token_refuse(m, e, op, "reads carry `%s` after %llu of %llu blocks", name, (unsigned long long)page->k_end,
                          (unsigned long long)all);
    return TOKEN_DONE;
  }
  if (tag->block == ANY && page->k_end < after)
    return token_refuse(m, e, op, "reads carry `%s` before any block is folded", name);
  if (tag->block == ANY) tag->block = page->k_end - after;
  if (page->k_end != tag->block + after)
    return token_refuse(m, e, op, "block %llu meets carry `%s` after %llu blocks", (unsigned long long)tag->block, name,
                        (unsigned long long)page->k_end);
  *k_end = tag->block + 1;
  return TOKEN_DONE;
}

/** Joins the turns of all pages that the op reads; accumulator operands must be what the accumulator stands for. */
static token_step join_operands(token_machine *m, token_engine *e, const weft_op *op, walk_tag *tag, bool *reads_acc) {
  *tag = tag_any();
  *reads_acc = false;
  for (uint64_t i = 0; i < op->compute.in_count; i++) {
    uint32_t buffer = op->compute.ins[i];
    if (plan_buffer_is_acc(m->program, buffer)) {
      if (!e->acc.computed || e->acc.holds != buffer)
        return token_refuse(m, e, op, "reads `%s`, which is not what the accumulator holds",
                            m->program->buffers[buffer].name);
      *reads_acc = true;
      if (!tag_join(tag, &e->acc.tag)) return token_refuse(m, e, op, "its operands belong to different turns");
      continue;
    }
    token_page *page = token_front_page(m, e, op, buffer);
    if (!page) return TOKEN_REFUSED;
    if (!m->rings[buffer].carry && !tag_join(tag, &page->tag))
      return token_refuse(m, e, op, "its operands belong to different turns of the walk");
  }
  return TOKEN_DONE;
}

static token_step check_carries(token_machine *m, token_engine *e, const weft_op *op, walk_tag *tag, uint64_t *k_end) {
  *k_end = 0;
  for (uint64_t i = 0; i < op->compute.in_count; i++) {
    uint32_t buffer = op->compute.ins[i];
    if (plan_buffer_is_acc(m->program, buffer) || !m->rings[buffer].carry) continue;
    token_page *page = token_front_page(m, e, op, buffer);
    if (!page) return TOKEN_REFUSED;
    token_step step = check_carry(m, e, op, buffer, page, tag, k_end);
    if (step != TOKEN_DONE) return step;
  }
  return TOKEN_DONE;
}

/* ---- tile products ---- */

static token_step check_pages(token_machine *m, token_engine *e, const weft_op *op, const weft_matmul_tiles *matmul) {
  const token_page *a = token_front_page(m, e, op, op->compute.ins[0]);
  const token_page *b = a ? token_front_page(m, e, op, op->compute.ins[1]) : NULL;
  if (!b) return TOKEN_REFUSED;
  uint64_t rows = matmul->block.osh * weft_max_u64(1, matmul->sub_blocks.first),
           cols = matmul->block.osw * weft_max_u64(1, matmul->sub_blocks.second), ibw = matmul->block.ibw;
  if ((a->tiles != rows * ibw && a->tiles != matmul->block.osh * ibw) ||
      (b->tiles != cols * ibw && b->tiles != matmul->block.osw * ibw) ||
      e->acc.tiles != matmul->block.osh * matmul->block.osw)
    return token_refuse(m, e, op, "pages of %llu and %llu tiles and an accumulator of %llu do not make its block",
                        (unsigned long long)a->tiles, (unsigned long long)b->tiles, (unsigned long long)e->acc.tiles);
  return TOKEN_DONE;
}

/** Which sub-block the loops around stand at. */
static token_step join_sub_block(token_machine *m, token_engine *e, const weft_op *op, const weft_matmul_tiles *matmul,
                                 walk_tag *tag) {
  bool bound_h, bound_w;
  walk_tag sub = tag_any();
  uint64_t h = token_variable(m, e, WEFT_VAR_SUB_H, &bound_h), w = token_variable(m, e, WEFT_VAR_SUB_W, &bound_w);
  if (matmul->sub_blocks.first > 1) sub.sub_h = h;
  if (matmul->sub_blocks.second > 1) sub.sub_w = w;
  bool inside = (matmul->sub_blocks.first <= 1 || (bound_h && h < matmul->sub_blocks.first)) &&
                (matmul->sub_blocks.second <= 1 || (bound_w && w < matmul->sub_blocks.second));
  if (!inside) return token_refuse(m, e, op, "no loop around it says which sub-block it computes");
  return tag_join(tag, &sub) ? TOKEN_DONE : token_refuse(m, e, op, "its operands belong to another sub-block");
}

static token_step start_product(token_machine *m, token_engine *e, const weft_op *op, walk_tag *tag, uint64_t block) {
  token_acc *acc = &e->acc;
  if (acc->computed) return token_refuse(m, e, op, "adds to an accumulator that holds another stage's result");
  acc->k_begin = acc->k_end = block;
  uint32_t reload = op->compute.acc_reload;
  if (reload == WEFT_NONE) return TOKEN_DONE;
  token_page *page = token_front_page(m, e, op, reload);
  if (!page) return TOKEN_REFUSED;
  if (page->k_end != block || !tag_join(tag, &page->tag))
    return token_refuse(m, e, op, "reloads sums of other blocks, or of another sub-block, from `%s`",
                        m->program->buffers[reload].name);
  acc->k_begin = page->k_begin;
  return TOKEN_DONE;
}

static token_step compute_product(token_machine *m, token_engine *e, const weft_op *op,
                                  const weft_matmul_tiles *matmul) {
  token_acc *acc = &e->acc;
  walk_tag tag;
  bool reads_acc;
  token_step step = join_operands(m, e, op, &tag, &reads_acc);
  if (step == TOKEN_DONE) step = check_pages(m, e, op, matmul);
  if (step == TOKEN_DONE) step = join_sub_block(m, e, op, matmul, &tag);
  if (step != TOKEN_DONE) return step;
  uint64_t block = tag.block == ANY ? 0 : tag.block;
  tag.block = ANY;
  bool going_on = acc->computed && acc->stage == op->stage && acc->k_known;
  if (going_on && (op->compute.acc_reload != WEFT_NONE || block != acc->k_end || !tag_join(&acc->tag, &tag)))
    return token_refuse(m, e, op, "folds block %llu after block %llu of its sums", (unsigned long long)block,
                        (unsigned long long)acc->k_end);
  if (!going_on) {
    step = start_product(m, e, op, &tag, block);
    if (step != TOKEN_DONE) return step;
    acc->tag = tag;
  }
  acc->k_end = block + 1;
  acc->computed = acc->k_known = true;
  return TOKEN_DONE;
}

/* ---- any compute ---- */

static token_step compute_other(token_machine *m, token_engine *e, const weft_op *op) {
  token_acc *acc = &e->acc;
  walk_tag tag;
  bool reads_acc;
  uint64_t k_end;
  token_step step = join_operands(m, e, op, &tag, &reads_acc);
  if (step == TOKEN_DONE) step = check_carries(m, e, op, &tag, &k_end);
  if (step != TOKEN_DONE) return step;
  if (!reads_acc && acc->computed) return token_refuse(m, e, op, "computes over a result that has not been packed");
  if (reads_acc && acc->k_known && !product_complete(m, acc))
    return token_refuse(m, e, op, "goes on with a product of which blocks %llu to %llu are folded",
                        (unsigned long long)acc->k_begin, (unsigned long long)acc->k_end);
  acc->tag = tag;
  acc->k_begin = 0;
  acc->k_end = k_end;
  acc->k_known = false;
  acc->computed = true;
  return TOKEN_DONE;
}

token_step token_compute(token_machine *m, token_engine *e, const weft_op *op) {
  const weft_stage *stage = &m->program->stages[op->stage];
  const weft_matmul_tiles *matmul = plan_matmul_of(stage);
  if (!e->acc.acquired) return token_refuse(m, e, op, "computes without an accumulator");
  token_step step = matmul ? compute_product(m, e, op, matmul) : compute_other(m, e, op);
  if (step != TOKEN_DONE) return step;
  e->acc.stage = op->stage;
  bool chained = stage->out_count && plan_buffer_is_acc(m->program, stage->outs[0]);
  e->acc.holds = chained ? stage->outs[0] : WEFT_NONE;
  return TOKEN_DONE;
}

/* ---- packing ---- */

static token_step check_pack(token_machine *m, token_engine *e, const weft_op *op, uint64_t *tiles) {
  const token_acc *acc = &e->acc;
  const weft_buffer *buffer = &m->program->buffers[op->pack.to];
  const weft_matmul_tiles *matmul = plan_matmul_of(&m->program->stages[op->stage]);
  if (!acc->acquired || !acc->computed || acc->stage != op->stage)
    return token_refuse(m, e, op, "packs into `%s` what its stage has not computed", buffer->name);
  if (op->pack.tiles != acc->tiles)
    return token_refuse(m, e, op, "packs %llu tiles of an accumulator of %llu", (unsigned long long)op->pack.tiles,
                        (unsigned long long)acc->tiles);
  *tiles = acc->tiles;
  if (matmul && matmul->interm == op->pack.to && matmul->segments > 1) *tiles *= plan_fold_levels(matmul->segments);
  if (*tiles > buffer->page_tiles)
    return token_refuse(m, e, op, "packs %llu tiles into a page of `%s`, which has %llu", (unsigned long long)*tiles,
                        buffer->name, (unsigned long long)buffer->page_tiles);
  return TOKEN_DONE;
}

/** The memory of the new page is that of the page popped last: it must hold the sums so far of this sub-block. */
static token_step add_in_place(token_machine *m, token_engine *e, const weft_op *op, token_page *page) {
  const token_acc *acc = &e->acc;
  const weft_matmul_tiles *matmul = plan_matmul_of(&m->program->stages[op->stage]);
  walk_tag tag = page->tag;
  if (!matmul || matmul->segments > 1 || !page->used || page->tiles != acc->tiles || page->k_end != acc->k_begin ||
      !tag_join(&tag, &acc->tag))
    return token_refuse(m, e, op, "adds to a page of `%s` that does not hold the sums before its block",
                        m->program->buffers[op->pack.to].name);
  page->k_end = acc->k_end;
  return TOKEN_DONE;
}

token_step token_pack(token_machine *m, token_engine *e, const weft_op *op) {
  const token_acc *acc = &e->acc;
  const weft_matmul_tiles *matmul = plan_matmul_of(&m->program->stages[op->stage]);
  bool spill = matmul && matmul->interm == op->pack.to;
  uint64_t tiles;
  token_step step = check_pack(m, e, op, &tiles);
  if (step != TOKEN_DONE) return step;
  if (!spill && acc->k_known && !product_complete(m, acc))
    return token_refuse(m, e, op, "packs a product of which blocks %llu to %llu are folded",
                        (unsigned long long)acc->k_begin, (unsigned long long)acc->k_end);
  token_page *page = token_fill_page(m, e, op, op->pack.to);
  if (!page) return TOKEN_REFUSED;
  if (op->pack.accumulate) {
    step = add_in_place(m, e, op, page);
    if (step != TOKEN_DONE) return step;
  } else {
    *page = (token_page){.tag = acc->tag, .tiles = acc->tiles, .k_begin = acc->k_begin, .k_end = acc->k_end};
  }
  page->filled = page->used = true;
  page->fill_engine = (uint32_t)(e - m->engines);
  page->fill_time = e->time;
  m->rings[op->pack.to].filled++;
  return TOKEN_DONE;
}
