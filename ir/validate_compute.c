/* 7. Compute: operands, accumulators, maps and contractions. */
#include "validate_private.h"

static const char *format_name(weft_format format) {
#define FORMAT_NAME(id, name, bytes, is_float) name,
  static const char *const names[] = {WEFT_FORMATS(FORMAT_NAME)};
  return format < WEFT_FORMAT_COUNT ? names[format] : "?";
}

static bool is_integer(weft_format format) {
#define FORMAT_IS_FLOAT(id, name, bytes, is_float) is_float,
  static const bool floats[] = {WEFT_FORMATS(FORMAT_IS_FLOAT)};
  return format < WEFT_FORMAT_COUNT && !floats[format];
}

/* ---- matmul ---- */

static bool check_operands(check *c, const weft_stage *st) {
  weft_format operand = st->compute->matmul.operand;
  for (uint64_t i = 0; i < st->in_count && i < 2; i++) {
    weft_format found = c->program->buffers[st->ins[i]].dtype;
    if (found != operand && !REPORT(c, OPERAND_DTYPE_MISMATCH, stage(st->id), buffer(st->ins[i]),
                                    text(format_name(operand)), text(format_name(found))))
      return false;
  }
  return true;
}

static bool check_interm(check *c, const weft_stage *st) {
  const weft_matmul_tiles *m = &st->compute->matmul;
  if (m->interm == WEFT_NONE || c->program->numerics != WEFT_NUMERICS_EXACT) return true;
  weft_format found = c->program->buffers[m->interm].dtype;
  if (weft_ir_format_bytes(found) >= weft_ir_format_bytes(weft_acc_format(m->acc))) return true;
  return REPORT(c, INTERM_NARROWER_THAN_ACC, stage(st->id), buffer(m->interm), text(weft_acc_policy_name(m->acc)),
                text(format_name(found)));
}

static bool check_matmul(check *c, const weft_stage *st) {
  if (!check_operands(c, st) || !check_interm(c, st)) return false;
  const weft_block_shape *block = &st->compute->matmul.block;
  uint64_t needed;
  if (weft_mul_overflow(block->osh, block->osw, &needed))
    return REPORT(c, SIZE_OVERFLOW, text("the sub-block osh x osw"), stage(st->id));
  if (needed <= weft_max_u64(1, c->program->acc_tiles_used)) return true;
  return REPORT(c, ACC_TILES_EXCEEDED, stage(st->id), number(needed), number(c->program->acc_tiles_used));
}

/* ---- generic ---- */

static bool steps_along_contraction(const weft_elem_access *map) {
  for (uint64_t i = 0; i < map->term_count; i++)
    if (map->terms[i].var == WEFT_VAR_GEN_K && map->terms[i].stride != 0) return true;
  return false;
}

/* The operand a node names, if it names one. */
static bool named_operand(const weft_body_node *node, uint64_t *operand) {
  *operand = node->kind == WEFT_BODY_OPERAND ? node->value : node->pred.bound;
  return node->kind == WEFT_BODY_OPERAND || (node->kind == WEFT_BODY_SELECT && node->pred.operand_bound);
}

static bool check_body_operands(check *c, const weft_stage *st) {
  const weft_body *body = &st->compute->generic.body;
  bool names_one = false;
  uint64_t greatest = 0;
  for (uint64_t i = 0; i < body->node_count; i++) {
    uint64_t operand;
    if (!named_operand(&body->nodes[i], &operand)) continue;
    names_one = true;
    greatest = weft_max_u64(greatest, operand);
  }
  if (!names_one || greatest < st->in_count) return true;
  return REPORT(c, GENERIC_OPERAND_OUT_OF_RANGE, stage(st->id), number(greatest), number(st->in_count));
}

static const char *contraction_fault(const weft_generic *g) {
  if (g->iter_count > 3) return "a fourth axis, beyond rows, columns and one contraction";
  if (g->iter_count == 3) {
    const weft_iter *k = &g->iters[2];
    if (k->var != WEFT_VAR_GEN_K) return "a third axis over another variable than the contraction's, 7";
    if (!k->reduce || k->pool != WEFT_POOL_SUM) return "a contraction that is not a sum";
    return steps_along_contraction(&g->out) ? "an output that steps along the contraction" : NULL;
  }
  bool steps = steps_along_contraction(&g->out);
  for (uint64_t i = 0; i < g->in_count && !steps; i++) steps = steps_along_contraction(&g->ins[i]);
  return steps ? "a map that steps along a contraction the op does not have" : NULL;
}

static bool check_term(check *c, const weft_stage *st, const weft_elem_access *map) {
  if (!map->indirect) return true;
  if (map->indirect->operand >= st->in_count)
    return REPORT(c, INDIRECT_OPERAND_OUT_OF_RANGE, stage(st->id), number(map->indirect->operand),
                  number(st->in_count));
  if (map->indirect->modulus == 0)
    return REPORT(c, INDIRECT_MALFORMED, stage(st->id), text("an indirect term with modulus 0"));
  return true;
}

static bool check_scatter(check *c, const weft_stage *st, const uint8_t *scattered) {
  if (!st->compute->generic.out.indirect) return true;
  for (uint64_t i = 0; i < st->out_count; i++)
    if (scattered[st->outs[i]]) return true;
  return REPORT(c, INDIRECT_OUT_WITHOUT_SCATTER, stage(st->id));
}

static bool check_arg_max(check *c, const weft_stage *st) {
  const weft_generic *g = &st->compute->generic;
  bool arg_max = false;
  for (uint64_t i = 0; i < g->iter_count; i++) arg_max |= g->iters[i].reduce && g->iters[i].pool == WEFT_POOL_ARG_MAX;
  for (uint64_t i = 0; i < st->out_count && arg_max; i++) {
    weft_format found = c->program->buffers[st->outs[i]].dtype;
    if (!is_integer(found) && !REPORT(c, ARG_MAX_OUTPUT_NOT_INTEGER, stage(st->id), text(format_name(found))))
      return false;
  }
  return true;
}

static bool check_generic(check *c, const weft_stage *st, const uint8_t *scattered) {
  const weft_generic *g = &st->compute->generic;
  if (g->in_count != st->in_count)
    return REPORT(c, GENERIC_OPERAND_COUNT, stage(st->id), number(st->in_count), number(g->in_count));
  if (!check_body_operands(c, st)) return false;
  const char *reason = contraction_fault(g);
  if (reason && !REPORT(c, CONTRACTION_MALFORMED, stage(st->id), text(reason))) return false;
  for (uint64_t i = 0; i < g->in_count; i++)
    if (!check_term(c, st, &g->ins[i])) return false;
  return check_term(c, st, &g->out) && check_scatter(c, st, scattered) && check_arg_max(c, st);
}

/* By buffer: whether a store with an indirect address reads it. */
static uint8_t *scattered_buffers(check *c) {
  const weft_program *p = c->program;
  uint8_t *scattered = weft_check_array(c, p->buffer_count, 1);
  for (uint64_t s = 0; scattered && s < p->stage_count; s++) {
    const weft_stage *st = &p->stages[s];
    if (st->kind != WEFT_STAGE_STORE || !st->store.pattern.origin.indirect) continue;
    for (uint64_t i = 0; i < st->in_count; i++) scattered[st->ins[i]] = 1;
  }
  return scattered;
}

void weft_validate_compute(check *c) {
  const weft_program *p = c->program;
  const uint8_t *scattered = scattered_buffers(c);
  if (!scattered) return;
  for (uint64_t s = 0; s < p->stage_count && !c->stop; s++) {
    const weft_stage *st = &p->stages[s];
    if (st->kind != WEFT_STAGE_COMPUTE) continue;
    if (st->compute->kind == WEFT_COMPUTE_MATMUL_TILES) check_matmul(c, st);
    if (st->compute->kind == WEFT_COMPUTE_GENERIC) check_generic(c, st, scattered);
  }
}

/* 8. Indirect addresses: the index is a buffer the stage reads, its scale and bound mean something. */

static bool check_indirect(check *c, const weft_stage *st, const weft_indirect_tile *t) {
  if (t->index >= c->program->buffer_count)
    return REPORT(c, DANGLING_BUFFER, stage(st->id), buffer(t->index), stage(st->id));
  if (!weft_ir_has_port(&c->ins, st->id, t->index) &&
      !REPORT(c, INDIRECT_INDEX_NOT_AN_OPERAND, stage(st->id), buffer(t->index)))
    return false;
  if ((!t->tile_stride || !t->elems_per_tile) &&
      !REPORT(c, INDIRECT_MALFORMED, stage(st->id), text("an indirect tile with a stride of 0 or 0 elements a tile")))
    return false;
  if (t->bound.first <= t->bound.second) return true;
  return REPORT(c, INDIRECT_MALFORMED, stage(st->id), text("an indirect tile with an inverted bound"));
}

void weft_validate_indirect(check *c) {
  const weft_program *p = c->program;
  for (uint64_t s = 0; s < p->stage_count && !c->stop; s++) {
    const weft_stage *st = &p->stages[s];
    const weft_indirect_tile *indirect = st->kind == WEFT_STAGE_LOAD    ? st->load.pattern.origin.indirect
                                         : st->kind == WEFT_STAGE_STORE ? st->store.pattern.origin.indirect
                                                                        : NULL;
    if (indirect) check_indirect(c, st, indirect);
  }
}
