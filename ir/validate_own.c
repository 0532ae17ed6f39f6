/* 17, 18. What the seed leaves undefined or does not look at, checked after its groups: the program and its tensors. */
#include "validate_private.h"

/* ---- links and chips ---- */

static bool check_chip(check *c, uint64_t chip, fact by) {
  uint32_t chips = c->program->chips;
  return !chips || chip < chips || REPORT(c, CHIP_MISSING, number(chip), by, number(chips));
}

static bool check_crossings(check *c, uint64_t l, const uint32_t *ids, const uint16_t *peers, uint64_t count) {
  const weft_program *p = c->program;
  for (uint64_t i = 0; i < count; i++) {
    if (ids[i] >= p->tensor_count && !REPORT(c, LINK_TENSOR_MISSING, link_point(l), tensor(ids[i]))) return false;
    if (!peers) continue;
    if (!check_chip(c, peers[i], link_point(l))) return false;
    if (p->chip == peers[i] && !REPORT(c, LINK_TO_ITSELF, link_point(l), number(peers[i]))) return false;
  }
  return true;
}

/* A link point is where a scheduled program halts; before that it says nothing. */
static void check_links(check *c) {
  const weft_program *p = c->program;
  for (uint64_t l = 0; l < p->link_count && p->schedule; l++) {
    const weft_link_point *lp = &p->links[l];
    bool after_one = lp->after != UINT64_MAX || (lp->max_ids & WEFT_MAX_AFTER);
    if (after_one && lp->after >= p->section_count &&
        !REPORT(c, LINK_SECTION_MISSING, link_point(l), section(lp->after)))
      return;
    if (!check_crossings(c, l, lp->sends, lp->send_peers, lp->send_count)) return;
    if (!check_crossings(c, l, lp->receives, lp->receive_peers, lp->receive_count)) return;
  }
}

static void check_chips(check *c) {
  const weft_program *p = c->program;
  if (!p->chips) return;
  if (p->chip != WEFT_NONE && !check_chip(c, p->chip, text("the program"))) return;
  for (uint64_t t = 0; t < p->tensor_count; t++)
    if (p->tensors[t].chip != WEFT_NONE && !check_chip(c, p->tensors[t].chip, tensor(t))) return;
  for (uint64_t s = 0; s < p->stage_count; s++)
    if (p->stages[s].site.present && !check_chip(c, p->stages[s].site.site.chip, stage(s))) return;
  for (uint64_t b = 0; b < p->buffer_count; b++)
    if (p->buffers[b].site.present && !check_chip(c, p->buffers[b].site.site.chip, buffer(b))) return;
}

void weft_validate_own_program(check *c) {
  const weft_program *p = c->program;
  if ((!p->tile_rows || !p->tile_cols) && !REPORT(c, ZERO_TILE_EXTENT, number(p->tile_rows), number(p->tile_cols)))
    return;
  if (p->arithmetic > WEFT_ARITHMETIC_VERSION && !REPORT(c, ARITHMETIC_UNKNOWN, number(p->arithmetic))) return;
  for (uint64_t k = 0; k < p->section_count && !c->stop; k++) weft_check_result(c, k);
  if (has_id(p->work.k_trip, p->work.max_ids, WEFT_MAX_TRIP) && p->work.k_trip >= p->trip_count &&
      !REPORT(c, K_TRIP_MISSING, trip(p->work.k_trip)))
    return;
  check_links(c);
  if (!c->stop) check_chips(c);
}

/* ---- tensors ---- */

static bool check_values(check *c, uint64_t t) {
  const weft_tensor *tn = &c->program->tensors[t];
  bool lists = tn->init.kind == WEFT_INIT_VALUES || tn->init.kind == WEFT_INIT_FLOAT_VALUES;
  if (!lists) return true;
  uint64_t count = tn->init.kind == WEFT_INIT_VALUES ? tn->init.values.count : tn->init.float_values.count;
  uint64_t elements;
  if (weft_mul_overflow(tn->elems.rows, tn->elems.cols, &elements)) elements = UINT64_MAX;
  return count == elements || REPORT(c, VALUE_COUNT, tensor(t), number(count), number(elements));
}

static bool check_partial(check *c, uint64_t t) {
  const weft_tensor *tn = &c->program->tensors[t];
  if (!tn->has_partial) return true;
  const weft_partial *part = &tn->partial;
  const char *reason = NULL;
  if (part->pool == WEFT_POOL_ARG_MAX)
    reason = "an ArgMax of parts is not an ArgMax of the whole";
  else if (!part->count || part->of < part->count || part->first > part->of - part->count)
    reason = "its segments are not among those of the whole";
  return !reason || REPORT(c, PARTIAL_MALFORMED, tensor(t), text(reason));
}

static bool inside(uint64_t begin, uint64_t count, uint64_t total) { return count <= total && begin <= total - count; }

static bool check_shard(check *c, uint64_t t) {
  const weft_tensor *tn = &c->program->tensors[t];
  if (!tn->has_shard) return true;
  const weft_shard *sh = &tn->shard;
  if (!inside(sh->row0, tn->elems.rows, sh->rows))
    return REPORT(c, SHARD_MALFORMED, tensor(t), text("its rows are not inside the dataset"));
  if (!inside(sh->col0, tn->elems.cols, sh->cols))
    return REPORT(c, SHARD_MALFORMED, tensor(t), text("its columns are not inside the dataset"));
  return true;
}

static bool check_shape(check *c, uint64_t t) {
  const weft_tensor *tn = &c->program->tensors[t];
  if (!tn->shape_count) return true;
  uint64_t whole, product = 1;
  uint64_t rows = tn->has_shard ? tn->shard.rows : tn->elems.rows;
  uint64_t cols = tn->has_shard ? tn->shard.cols : tn->elems.cols;
  bool overflow = weft_mul_overflow(rows, cols, &whole);
  bool zero = false;
  for (uint64_t i = 0; i < tn->shape_count; i++) zero |= tn->shape[i] == 0;
  for (uint64_t i = 0; i < tn->shape_count && !zero; i++)
    overflow |= weft_mul_overflow(product, tn->shape[i], &product);
  if (zero) product = 0;
  return (!overflow && product == whole) || REPORT(c, SHAPE_MISMATCH, tensor(t));
}

void weft_validate_own_tensors(check *c) {
  for (uint64_t t = 0; t < c->program->tensor_count; t++)
    if (!check_values(c, t) || !check_partial(c, t) || !check_shard(c, t) || !check_shape(c, t)) return;
}
