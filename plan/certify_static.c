/* Every op does what its stage declares (C5): the stage is the engine's, buffers, tensors, blocks, computes and formats
 * are the stage's own. Addresses and turns are checked in the token run. */
#include "certify_private.h"

#include <string.h>

typedef struct checker {
  const weft_program *program;
  const plan_ports *ports;
  weft_diag *diag;
  const weft_engine_program *engine;
  uint64_t ops;
} checker;

static weft_status refuse(const checker *c, const weft_op *op, const char *what) {
  weft_text text = {0};
  plan_describe_engine(&text, c->engine->site, c->engine->engine);
  weft_text_printf(&text, ", %s of ", plan_op_name(op->kind));
  plan_describe_stage(&text, c->program, op->stage);
  weft_status status = weft_error(c->diag, WEFT_INVALID, NULL, "%s: %s", text.data ? text.data : "?", what);
  weft_text_free(&text);
  return status;
}

/* ---- equal computes ---- */

static bool same_map(const weft_elem_access *a, const weft_elem_access *b) {
  if (a->base != b->base || a->term_count != b->term_count || !a->indirect != !b->indirect) return false;
  for (uint64_t i = 0; i < a->term_count; i++)
    if (a->terms[i].var != b->terms[i].var || a->terms[i].stride != b->terms[i].stride) return false;
  return !a->indirect || (a->indirect->operand == b->indirect->operand && a->indirect->stride == b->indirect->stride &&
                          a->indirect->modulus == b->indirect->modulus);
}

static bool same_node(const weft_body_node *a, const weft_body_node *b) {
  return a->kind == b->kind && a->sfpu == b->sfpu && memcmp(a->child, b->child, sizeof a->child) == 0 &&
         a->value == b->value && a->eps_nano == b->eps_nano && a->over == b->over && a->pred.ge == b->pred.ge &&
         a->pred.operand_bound == b->pred.operand_bound && a->pred.var == b->pred.var && a->pred.bound == b->pred.bound;
}

static bool same_generic(const weft_generic *a, const weft_generic *b) {
  if (a->iter_count != b->iter_count || a->in_count != b->in_count || a->body.node_count != b->body.node_count)
    return false;
  for (uint64_t i = 0; i < a->iter_count; i++) {
    const weft_iter *s = &a->iters[i], *t = &b->iters[i];
    if (s->var != t->var || s->extent != t->extent || s->reduce != t->reduce || s->pool != t->pool ||
        s->segments != t->segments)
      return false;
  }
  for (uint64_t i = 0; i < a->in_count; i++)
    if (!same_map(&a->ins[i], &b->ins[i])) return false;
  for (uint64_t i = 0; i < a->body.node_count; i++)
    if (!same_node(&a->body.nodes[i], &b->body.nodes[i])) return false;
  return same_map(&a->out, &b->out);
}

static bool same_source(const weft_src *a, const weft_src *b) { return a->kind == b->kind && a->index == b->index; }

static bool same_scalar(const weft_scalar_body *a, const weft_scalar_body *b) {
  if (a->n_in != b->n_in || a->cell_count != b->cell_count || !same_source(&a->result, &b->result)) return false;
  for (uint64_t i = 0; i < a->cell_count; i++) {
    const weft_cell *s = &a->cells[i], *t = &b->cells[i];
    if (s->op != t->op || !same_source(&s->a, &t->a) || !same_source(&s->b, &t->b) || s->has_c != t->has_c ||
        (s->has_c && !same_source(&s->c, &t->c)))
      return false;
  }
  return true;
}

static bool same_matmul(const weft_matmul_tiles *a, const weft_matmul_tiles *b) {
  return a->block.osh == b->block.osh && a->block.osw == b->block.osw && a->block.ibw == b->block.ibw &&
         a->sub_blocks.first == b->sub_blocks.first && a->sub_blocks.second == b->sub_blocks.second &&
         a->num_blocks == b->num_blocks && a->operand == b->operand && a->acc == b->acc && a->interm == b->interm &&
         a->segments == b->segments && a->trip == b->trip;
}

static bool same_compute(const weft_compute_op *a, const weft_compute_op *b) {
  if (a == b) return true;
  if (a->kind != b->kind) return false;
  switch (a->kind) {
  case WEFT_COMPUTE_MATMUL_TILES: return same_matmul(&a->matmul, &b->matmul);
  case WEFT_COMPUTE_REQUANT: return a->requant.m == b->requant.m && a->requant.s == b->requant.s;
  case WEFT_COMPUTE_BIAS: return a->bias == b->bias;
  case WEFT_COMPUTE_GENERIC: return same_generic(&a->generic, &b->generic);
  case WEFT_COMPUTE_SCALAR: return same_scalar(&a->scalar, &b->scalar);
  default: return true;
  }
}

static bool computes_stage(const weft_op *op, const weft_stage *stage) {
  if (stage->kind == WEFT_STAGE_COMPUTE) return same_compute(op->compute.op, stage->compute);
  if (stage->kind == WEFT_STAGE_ALL_REDUCE) return same_compute(op->compute.op, stage->all_reduce.combine);
  return stage->kind == WEFT_STAGE_SCALAR && op->compute.op->kind == WEFT_COMPUTE_SCALAR &&
         same_scalar(&op->compute.op->scalar, &stage->scalar);
}

/* ---- single ops ---- */

static bool among(const uint32_t *ids, uint64_t count, uint32_t id) {
  for (uint64_t i = 0; i < count; i++)
    if (ids[i] == id) return true;
  return false;
}

static bool is_interm(const weft_stage *stage, uint32_t buffer) {
  const weft_matmul_tiles *matmul = plan_matmul_of(stage);
  return matmul && matmul->interm == buffer && buffer != WEFT_NONE;
}

static weft_status check_page(const checker *c, const weft_op *op, const weft_stage *stage) {
  uint32_t buffer = op->page.buf;
  if (buffer >= c->program->buffer_count) return refuse(c, op, "names a buffer that does not exist");
  if (plan_buffer_is_acc(c->program, buffer)) return refuse(c, op, "hands over an accumulator by pages");
  bool fills = op->kind == WEFT_OP_RESERVE || op->kind == WEFT_OP_PUSH;
  bool own = fills ? among(stage->outs, stage->out_count, buffer) : among(stage->ins, stage->in_count, buffer);
  /* A carry that nobody reads any more is drained by its updater. */
  own = own || is_interm(stage, buffer) || (!fills && among(stage->outs, stage->out_count, buffer));
  return own ? WEFT_OK : refuse(c, op, "names a buffer that is none of its stage's");
}

static bool same_block(const weft_op *op, const weft_access_pattern *p) {
  return op->tiles.block_h == p->block_h && op->tiles.block_w == p->block_w && op->tiles.stride_h == p->stride_h &&
         op->tiles.stride_w == p->stride_w;
}

static bool same_index(const weft_indirect_tile *a, const weft_indirect_tile *b) {
  if (!a || !b) return a == b;
  return a->index == b->index && a->tile_stride == b->tile_stride && a->elems_per_tile == b->elems_per_tile &&
         a->bound.first == b->bound.first && a->bound.second == b->bound.second;
}

static weft_status check_tiles(const checker *c, const weft_op *op, const weft_stage *stage) {
  bool read = op->kind == WEFT_OP_READ_TILES;
  if (stage->kind != (read ? WEFT_STAGE_LOAD : WEFT_STAGE_STORE))
    return refuse(c, op, read ? "reads tiles, but its stage is no Load" : "writes tiles, but its stage is no Store");
  const weft_access_pattern *pattern = read ? &stage->load.pattern : &stage->store.pattern;
  uint32_t tensor = read ? stage->load.tensor : stage->store.tensor;
  uint64_t ports = read ? stage->out_count : stage->in_count, tiles;
  if (op->tiles.tensor != tensor) return refuse(c, op, "names another tensor than its stage");
  if (ports == 0 || op->tiles.buf != (read ? stage->outs[0] : stage->ins[0]))
    return refuse(c, op, "names another buffer than its stage");
  if (!same_block(op, pattern) || !same_index(op->tiles.at.indirect, pattern->origin.indirect))
    return refuse(c, op, "moves another block than its stage declares");
  for (uint64_t i = 0; i < pattern->origin.step_count; i++)
    if (pattern->origin.steps[i].stride && pattern->origin.steps[i].var > WEFT_VAR_K_BLOCK)
      return refuse(c, op, "moves with a variable that is none of item, sub-block and K block");
  const weft_buffer *buffer = &c->program->buffers[op->tiles.buf];
  if (weft_mul_overflow(op->tiles.block_h, op->tiles.block_w, &tiles) || tiles > buffer->page_tiles)
    return refuse(c, op, "moves a block that does not fit a page");
  if (buffer->dtype != c->program->tensors[tensor].dtype)
    return refuse(c, op, "moves elements between a tensor and a buffer of different formats");
  return WEFT_OK;
}

static weft_status check_compute(const checker *c, const weft_op *op, const weft_stage *stage) {
  if (!op->compute.op || !computes_stage(op, stage)) return refuse(c, op, "computes something else than its stage");
  if (op->compute.in_count != stage->in_count) return refuse(c, op, "has other operands than its stage");
  for (uint64_t i = 0; i < stage->in_count; i++)
    if (op->compute.ins[i] != stage->ins[i]) return refuse(c, op, "has other operands than its stage");
  if (op->compute.acc_reload != WEFT_NONE && !is_interm(stage, op->compute.acc_reload))
    return refuse(c, op, "reloads sums from a buffer that is not its stage's spill buffer");
  const weft_matmul_tiles *matmul = plan_matmul_of(stage);
  if (!matmul) return WEFT_OK;
  if (stage->in_count != 2) return refuse(c, op, "is a product that has not two operands");
  for (int i = 0; i < 2; i++)
    if (c->program->buffers[stage->ins[i]].dtype != matmul->operand)
      return refuse(c, op, "is a product of operands of another format");
  if (matmul->block.osh > UINT32_MAX || matmul->block.osw > UINT32_MAX || matmul->block.ibw > UINT32_MAX ||
      matmul->sub_blocks.first > UINT32_MAX || matmul->sub_blocks.second > UINT32_MAX)
    return refuse(c, op, "is a product of more tiles than there are");
  return WEFT_OK;
}

static weft_status check_pack(const checker *c, const weft_op *op, const weft_stage *stage) {
  if (op->pack.to >= c->program->buffer_count) return refuse(c, op, "names a buffer that does not exist");
  if (plan_buffer_is_acc(c->program, op->pack.to)) return refuse(c, op, "packs into an accumulator");
  if (!among(stage->outs, stage->out_count, op->pack.to) && !is_interm(stage, op->pack.to))
    return refuse(c, op, "packs into a buffer that is none of its stage's");
  if (op->pack.convert != c->program->buffers[op->pack.to].dtype)
    return refuse(c, op, "packs as another format than its buffer's");
  if (op->pack.accumulate && !is_interm(stage, op->pack.to)) return refuse(c, op, "adds in place to a result");
  return WEFT_OK;
}

static weft_status check_semaphore(const checker *c, const weft_op *op) {
  uint32_t id = op->kind == WEFT_OP_SEM_SET    ? op->sem_set.sem
                : op->kind == WEFT_OP_SEM_INC  ? op->sem_inc.sem
                : op->kind == WEFT_OP_SEM_WAIT ? op->sem_wait.sem
                                               : op->mcast_set_valid.sem;
  if (id >= c->program->semaphore_count) return refuse(c, op, "names a semaphore that does not exist");
  return WEFT_OK;
}

static weft_status check_multicast(const checker *c, const weft_op *op, const weft_stage *stage) {
  uint32_t group = op->kind == WEFT_OP_MCAST_SEND ? op->mcast_send.group : op->mcast_set_valid.group;
  if (stage->kind != WEFT_STAGE_LOAD || stage->load.multicast != group || stage->out_count == 0)
    return refuse(c, op, "sends to another group than its stage's");
  if (op->kind == WEFT_OP_MCAST_SEND)
    return op->mcast_send.buf == stage->outs[0] ? WEFT_OK : refuse(c, op, "sends another buffer than its stage's");
  weft_status status = check_semaphore(c, op);
  if (!status && c->program->semaphores[op->mcast_set_valid.sem].role != WEFT_SEM_VALID_FLAG)
    status = refuse(c, op, "sets a semaphore that is no valid flag");
  return status;
}

static weft_status check_barrier(const checker *c, const weft_op *op) {
  if (op->barrier_group >= c->program->placement->group_count)
    return refuse(c, op, "names a group that does not exist");
  const weft_group *group = &c->program->placement->groups[op->barrier_group];
  weft_site site = c->engine->site;
  bool inside = site.x >= group->rect.x0 && site.x <= group->rect.x1 && site.y >= group->rect.y0 &&
                site.y <= group->rect.y1 && site.chip == group->sender.chip;
  return inside ? WEFT_OK : refuse(c, op, "waits at the barrier of a group that its site is not in");
}

static weft_status check_op(const checker *c, const weft_op *op) {
  if (op->stage >= c->program->stage_count) return refuse(c, op, "names a stage that does not exist");
  const weft_stage *stage = &c->program->stages[op->stage];
  weft_engine_slot slot = c->program->placement->engine_of[op->stage];
  if (!weft_site_equal(slot.site, c->engine->site) || slot.engine.compute != c->engine->engine.compute ||
      (!slot.engine.compute && slot.engine.movement != c->engine->engine.movement))
    return refuse(c, op, "belongs to a stage of another engine");
  switch (op->kind) {
  case WEFT_OP_RESERVE:
  case WEFT_OP_PUSH:
  case WEFT_OP_WAIT:
  case WEFT_OP_POP: return check_page(c, op, stage);
  case WEFT_OP_READ_TILES:
  case WEFT_OP_WRITE_TILES: return check_tiles(c, op, stage);
  case WEFT_OP_MCAST_SEND:
  case WEFT_OP_MCAST_SET_VALID: return check_multicast(c, op, stage);
  case WEFT_OP_SEM_SET:
  case WEFT_OP_SEM_INC:
  case WEFT_OP_SEM_WAIT: return check_semaphore(c, op);
  case WEFT_OP_COMPUTE: return check_compute(c, op, stage);
  case WEFT_OP_PACK_ACC: return check_pack(c, op, stage);
  case WEFT_OP_BARRIER: return check_barrier(c, op);
  default: return WEFT_OK;
  }
}

static weft_status check_ops(checker *c, const weft_op *ops, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    c->ops++;
    weft_status status = check_op(c, &ops[i]);
    if (!status && ops[i].kind == WEFT_OP_LOOP) status = check_ops(c, ops[i].loop.body, ops[i].loop.body_count);
    if (status) return status;
  }
  return WEFT_OK;
}

weft_status certify_ops(const weft_program *program, const plan_ports *ports, uint64_t *op_count, weft_diag *diag) {
  checker c = {.program = program, .ports = ports, .diag = diag};
  weft_status status = WEFT_OK;
  for (uint64_t p = 0; p < program->schedule->program_count && !status; p++) {
    c.engine = &program->schedule->programs[p];
    status = check_ops(&c, c.engine->ops, c.engine->op_count);
  }
  *op_count = c.ops;
  return status;
}
