/* The ops of one unit: what its stages do, in which loops.
 *
 * Two forms. A unit without a tile product walks the sub-blocks of its Store: every stage once a sub-block, and inside
 * that the fold levels: prologue, the K loop of the body, epilogue. A unit with tile products streams their operands by
 * K block; the accumulator holds the block until the last, or spills it to the stage's interm buffer. */
#include "synthesize.h"

enum { PROLOGUE, BODY, EPILOGUE };

typedef struct unit_context {
  synthesizer *s;
  const plan_unit *unit;
  weft_pair sub_blocks;
  uint64_t k_blocks;
  bool product; /**< has tile products: every page is used once */
} unit_context;

static weft_status refuse(const unit_context *c, uint32_t stage, const char *what) {
  return weft_error(c->s->diag, WEFT_INVALID, "this choreography is not synthesized; give the stage in another form",
                    "section `%s`: stage `%s` %s", plan_section_name(c->s->program, c->unit->section),
                    c->s->program->stages[stage].name, what);
}

static op_list *engine_ops(const unit_context *c, uint32_t stage) { return &c->s->ops[c->s->engines.of_stage[stage]]; }

/* ---- single ops ---- */

static void emit_tiles(const unit_context *c, op_list *list, uint32_t stage, const weft_access_pattern *pattern,
                       uint32_t tensor, uint32_t buffer, weft_choreo_kind kind) {
  weft_op *op = synth_add(c->s, list, stage, kind);
  op->tiles.tensor = tensor;
  op->tiles.buf = buffer;
  op->tiles.at = pattern->origin;
  op->tiles.block_h = pattern->block_h;
  op->tiles.block_w = pattern->block_w;
  op->tiles.stride_w = pattern->stride_w;
  op->tiles.stride_h = pattern->stride_h;
}

static void emit_compute(const unit_context *c, op_list *list, uint32_t stage, uint32_t reload) {
  const weft_stage *st = &c->s->program->stages[stage];
  weft_op *op = synth_add(c->s, list, stage, WEFT_OP_COMPUTE);
  op->compute.ins = st->ins;
  op->compute.in_count = st->in_count;
  op->compute.acc_reload = reload;
  op->compute.op = st->kind == WEFT_STAGE_ALL_REDUCE ? st->all_reduce.combine : st->compute;
  if (st->kind != WEFT_STAGE_SCALAR) return;
  weft_compute_op *scalar = WEFT_NEW(c->s->arena, weft_compute_op);
  if (!scalar) {
    c->s->failed = true;
    return;
  }
  scalar->kind = WEFT_COMPUTE_SCALAR;
  scalar->scalar = st->scalar;
  op->compute.op = scalar;
}

static void emit_acquire(const unit_context *c, op_list *list, uint32_t stage, uint64_t tiles) {
  synth_add(c->s, list, stage, WEFT_OP_ACQUIRE_ACC)->acquire_tiles = tiles;
}

/** Reserve, PackAcc, Push of one page. */
static void emit_pack(const unit_context *c, op_list *list, uint32_t stage, uint32_t buffer, uint64_t tiles,
                      bool accumulate) {
  synth_page(c->s, list, stage, WEFT_OP_RESERVE, buffer);
  weft_op *op = synth_add(c->s, list, stage, WEFT_OP_PACK_ACC);
  op->pack.to = buffer;
  op->pack.convert = c->s->program->buffers[buffer].dtype;
  op->pack.tiles = tiles;
  op->pack.accumulate = accumulate;
  synth_page(c->s, list, stage, WEFT_OP_PUSH, buffer);
}

/* ---- who waits for and who frees a page ---- */

static bool is_carry(const unit_context *c, uint32_t buffer) {
  const plan_ports *ports = c->s->ports;
  for (uint64_t i = ports->producer_begin[buffer]; i < ports->producer_begin[buffer + 1]; i++)
    for (uint64_t j = ports->reader_begin[buffer]; j < ports->reader_begin[buffer + 1]; j++)
      if (ports->producers[i] == ports->readers[j]) return true;
  return false;
}

static bool updates(const unit_context *c, uint32_t stage, uint32_t buffer) {
  const weft_stage *st = &c->s->program->stages[stage];
  for (uint64_t i = 0; i < st->out_count; i++)
    if (st->outs[i] == buffer) return true;
  return false;
}

/** Whether `stage` is the last reader of the buffer on its fold level. */
static bool is_last_reader(const unit_context *c, uint32_t stage, uint32_t buffer) {
  const plan_ports *ports = c->s->ports;
  for (uint64_t j = ports->reader_begin[buffer]; j < ports->reader_begin[buffer + 1]; j++)
    if (ports->readers[j] > stage && c->s->levels[ports->readers[j]] == c->s->levels[stage]) return false;
  return true;
}

/** Whether the page outlives the round of the K loop in which `stage` reads it. */
static bool held_over_blocks(const unit_context *c, uint32_t stage, uint32_t buffer) {
  uint32_t producer = plan_only_producer(c->s->ports, buffer);
  return c->s->levels[stage] == BODY && producer != WEFT_NONE && c->s->levels[producer] == PROLOGUE;
}

static bool pops_now(const unit_context *c, uint32_t stage, uint32_t buffer) {
  if (c->product) return true;
  if (is_carry(c, buffer) && c->s->levels[stage] == BODY) return updates(c, stage, buffer);
  return is_last_reader(c, stage, buffer) && !held_over_blocks(c, stage, buffer);
}

static void emit_waits(const unit_context *c, op_list *list, uint32_t stage) {
  const weft_stage *st = &c->s->program->stages[stage];
  for (uint64_t i = 0; i < st->in_count; i++)
    if (!plan_buffer_is_acc(c->s->program, st->ins[i])) synth_page(c->s, list, stage, WEFT_OP_WAIT, st->ins[i]);
}

static void emit_pops(const unit_context *c, op_list *list, uint32_t stage, bool after_blocks) {
  const weft_stage *st = &c->s->program->stages[stage];
  for (uint64_t i = 0; i < st->in_count; i++) {
    uint32_t buffer = st->ins[i];
    if (plan_buffer_is_acc(c->s->program, buffer)) continue;
    bool held = held_over_blocks(c, stage, buffer) && is_last_reader(c, stage, buffer);
    if (after_blocks ? held : pops_now(c, stage, buffer)) synth_page(c->s, list, stage, WEFT_OP_POP, buffer);
  }
}

/* ---- stages ---- */

/** What a sender does with a page it has read: all receivers ready, the page, the flag. */
static void emit_send(const unit_context *c, op_list *list, uint32_t stage) {
  const weft_stage *st = &c->s->program->stages[stage];
  uint32_t group = st->load.multicast;
  const weft_rect *rect = &c->s->program->placement->groups[group].rect;
  uint64_t sites = (uint64_t)(rect->x1 - rect->x0 + 1) * (uint64_t)(rect->y1 - rect->y0 + 1);
  weft_op *op = synth_add(c->s, list, stage, WEFT_OP_SEM_WAIT);
  op->sem_wait.sem = c->s->ready_of_group[group];
  op->sem_wait.count = sites - 1;
  op = synth_add(c->s, list, stage, WEFT_OP_SEM_SET);
  op->sem_set.sem = c->s->ready_of_group[group];
  op->sem_set.value = WEFT_SEM_COUNT;
  op = synth_add(c->s, list, stage, WEFT_OP_MCAST_SEND);
  op->mcast_send.buf = st->outs[0];
  op->mcast_send.group = group;
  op->mcast_send.pages = 1;
  op->mcast_send.hold_path = true;
  op = synth_add(c->s, list, stage, WEFT_OP_MCAST_SET_VALID);
  op->mcast_set_valid.sem = c->s->valid_of_group[group];
  op->mcast_set_valid.group = group;
  synth_add(c->s, list, stage, WEFT_OP_FLUSH)->flush = WEFT_ARCH_BLACKHOLE;
}

static void emit_load(const unit_context *c, op_list *list, uint32_t stage) {
  const weft_stage *st = &c->s->program->stages[stage];
  emit_waits(c, list, stage);
  synth_page(c->s, list, stage, WEFT_OP_RESERVE, st->outs[0]);
  emit_tiles(c, list, stage, &st->load.pattern, st->load.tensor, st->outs[0], WEFT_OP_READ_TILES);
  synth_add(c->s, list, stage, WEFT_OP_READ_BARRIER);
  if (st->load.multicast != WEFT_NONE) emit_send(c, list, stage);
  synth_page(c->s, list, stage, WEFT_OP_PUSH, st->outs[0]);
  emit_pops(c, list, stage, false);
}

/** The receiver clears its flag before it tells the sender that a page is free. */
static void emit_recv(const unit_context *c, op_list *list, uint32_t stage) {
  const weft_stage *st = &c->s->program->stages[stage];
  uint32_t group = st->recv.group;
  synth_page(c->s, list, stage, WEFT_OP_RESERVE, st->outs[0]);
  weft_op *op = synth_add(c->s, list, stage, WEFT_OP_SEM_SET);
  op->sem_set.sem = c->s->valid_of_group[group];
  op->sem_set.value = WEFT_SEM_INVALID;
  op = synth_add(c->s, list, stage, WEFT_OP_SEM_INC);
  op->sem_inc.sem = c->s->ready_of_group[group];
  op->sem_inc.at = c->s->program->placement->groups[group].sender;
  op->sem_inc.by = 1;
  op = synth_add(c->s, list, stage, WEFT_OP_SEM_WAIT);
  op->sem_wait.sem = c->s->valid_of_group[group];
  op->sem_wait.count = 1;
  synth_page(c->s, list, stage, WEFT_OP_PUSH, st->outs[0]);
}

/** A sender's own flag is what the multicast copies to the receivers. */
static void emit_own_flag(const unit_context *c, op_list *list, uint32_t stage) {
  const weft_stage *st = &c->s->program->stages[stage];
  if (st->kind != WEFT_STAGE_LOAD || st->load.multicast == WEFT_NONE) return;
  weft_op *op = synth_add(c->s, list, stage, WEFT_OP_SEM_SET);
  op->sem_set.sem = c->s->valid_of_group[st->load.multicast];
  op->sem_set.value = WEFT_SEM_VALID;
}

static void emit_store(const unit_context *c, op_list *list, uint32_t stage) {
  const weft_stage *st = &c->s->program->stages[stage];
  emit_waits(c, list, stage);
  emit_tiles(c, list, stage, &st->store.pattern, st->store.tensor, st->ins[0], WEFT_OP_WRITE_TILES);
  synth_add(c->s, list, stage, WEFT_OP_WRITE_BARRIER);
  emit_pops(c, list, stage, false);
}

static bool reads_acc(const unit_context *c, uint32_t stage) {
  const weft_stage *st = &c->s->program->stages[stage];
  for (uint64_t i = 0; i < st->in_count; i++)
    if (plan_buffer_is_acc(c->s->program, st->ins[i])) return true;
  return false;
}

/** Whether an operand shares the memory that the result goes to. */
static bool shares_memory(const unit_context *c, uint32_t stage) {
  const weft_program *program = c->s->program;
  const weft_stage *st = &program->stages[stage];
  uint32_t root = plan_alias_root(program, st->outs[0]);
  for (uint64_t i = 0; i < st->in_count; i++)
    if (st->ins[i] != st->outs[0] && plan_alias_root(program, st->ins[i]) == root) return true;
  return false;
}

/** A compute that is no tile product: acquires the accumulator unless it goes on with the one it reads, and packs it
 * unless the next stage goes on with it. Operands whose memory the result takes are popped before it is packed. */
static void emit_plain_compute(const unit_context *c, op_list *list, uint32_t stage) {
  const weft_program *program = c->s->program;
  const weft_stage *st = &program->stages[stage];
  uint64_t tiles = program->buffers[st->outs[0]].page_tiles;
  emit_waits(c, list, stage);
  if (!reads_acc(c, stage)) emit_acquire(c, list, stage, tiles);
  emit_compute(c, list, stage, WEFT_NONE);
  bool in_place = shares_memory(c, stage);
  if (in_place) emit_pops(c, list, stage, false);
  if (!plan_buffer_is_acc(program, st->outs[0])) {
    emit_pack(c, list, stage, st->outs[0], tiles, false);
    synth_add(c->s, list, stage, WEFT_OP_RELEASE_ACC);
  }
  if (!in_place) emit_pops(c, list, stage, false);
}

static weft_status check_ports(const unit_context *c, uint32_t stage) {
  const weft_stage *st = &c->s->program->stages[stage];
  if (st->kind == WEFT_STAGE_STORE ? st->in_count == 0 : st->out_count != 1)
    return refuse(c, stage, "has not the one buffer that its kind works on");
  return WEFT_OK;
}

static weft_status emit_stage(const unit_context *c, op_list *list, uint32_t stage) {
  weft_status status = check_ports(c, stage);
  if (status) return status;
  weft_stage_kind kind = c->s->program->stages[stage].kind;
  if (kind == WEFT_STAGE_LOAD)
    emit_load(c, list, stage);
  else if (kind == WEFT_STAGE_RECV)
    emit_recv(c, list, stage);
  else if (kind == WEFT_STAGE_STORE)
    emit_store(c, list, stage);
  else
    emit_plain_compute(c, list, stage);
  return WEFT_OK;
}

static void emit_sub_loops(const unit_context *c, op_list *to, uint32_t stage, const op_list *body) {
  op_list columns = {0};
  const op_list *inner = body;
  if (c->sub_blocks.second != 1) {
    synth_loop(c->s, &columns, stage, WEFT_VAR_SUB_W, c->sub_blocks.second, body);
    inner = &columns;
  }
  if (c->sub_blocks.first != 1) {
    synth_loop(c->s, to, stage, WEFT_VAR_SUB_H, c->sub_blocks.first, inner);
    return;
  }
  synth_append(c->s, to, inner);
}

/* ---- a unit without tile products ---- */

static weft_status emit_level(const unit_context *c, op_list *list, uint32_t engine, uint8_t level) {
  for (uint64_t i = 0; i < c->unit->stage_count; i++) {
    uint32_t stage = c->unit->stages[i];
    if (c->s->engines.of_stage[stage] != engine || c->s->levels[stage] != level) continue;
    weft_status status = emit_stage(c, list, stage);
    if (status) return status;
  }
  return WEFT_OK;
}

/** After the blocks: pages held over them, and carries that nobody reads any more. */
static void emit_after_blocks(const unit_context *c, op_list *list, uint32_t engine) {
  for (uint64_t i = 0; i < c->unit->stage_count; i++) {
    uint32_t stage = c->unit->stages[i];
    if (c->s->engines.of_stage[stage] != engine || c->s->levels[stage] != BODY) continue;
    emit_pops(c, list, stage, true);
    const weft_stage *st = &c->s->program->stages[stage];
    for (uint64_t j = 0; j < st->out_count; j++) {
      uint32_t carry = st->outs[j];
      if (!is_carry(c, carry) || !updates(c, stage, carry)) continue;
      const plan_ports *ports = c->s->ports;
      bool read = false;
      for (uint64_t r = ports->reader_begin[carry]; r < ports->reader_begin[carry + 1]; r++)
        read = read || c->s->levels[ports->readers[r]] == EPILOGUE;
      if (read) continue;
      synth_page(c->s, list, stage, WEFT_OP_WAIT, carry);
      synth_page(c->s, list, stage, WEFT_OP_POP, carry);
    }
  }
}

static weft_status emit_engine_of_rows(const unit_context *c, uint32_t engine, uint32_t first_stage) {
  op_list inner = {0}, blocks = {0};
  weft_status status = emit_level(c, &inner, engine, PROLOGUE);
  if (!status) status = emit_level(c, &blocks, engine, BODY);
  if (status) return status;
  synth_k_loop(c->s, &inner, blocks.count ? blocks.first->ops[0].stage : first_stage, NULL, c->k_blocks, &blocks);
  emit_after_blocks(c, &inner, engine);
  status = emit_level(c, &inner, engine, EPILOGUE);
  if (status) return status;
  emit_sub_loops(c, &c->s->ops[engine], first_stage, &inner);
  return WEFT_OK;
}

/** Sub-blocks that all Stores walk, K blocks that all Loads of the body walk. */
static weft_status find_walk(unit_context *c) {
  bool stores = false, blocks = false;
  c->sub_blocks = (weft_pair){1, 1};
  c->k_blocks = 1;
  for (uint64_t i = 0; i < c->unit->stage_count; i++) {
    uint32_t id = c->unit->stages[i];
    const weft_stage *stage = &c->s->program->stages[id];
    if (stage->kind == WEFT_STAGE_STORE) {
      weft_pair subs = stage->store.sub_blocks;
      if (stores && (subs.first != c->sub_blocks.first || subs.second != c->sub_blocks.second))
        return refuse(c, id, "walks other sub-blocks than an earlier Store of its unit");
      c->sub_blocks = subs;
      stores = true;
    }
    if (stage->kind == WEFT_STAGE_LOAD && c->s->levels[id] == BODY) {
      if (blocks && stage->load.num_blocks != c->k_blocks)
        return refuse(c, id, "walks another number of K blocks than an earlier Load of its unit");
      c->k_blocks = stage->load.num_blocks;
      blocks = true;
    }
  }
  return WEFT_OK;
}

/** Calls `emit` once for each engine of the unit, in the order of its stages. */
static weft_status for_engines(unit_context *c, weft_status (*emit)(const unit_context *, uint32_t, uint32_t)) {
  for (uint64_t i = 0; i < c->unit->stage_count; i++) {
    uint32_t stage = c->unit->stages[i], engine = c->s->engines.of_stage[stage];
    bool seen = false;
    for (uint64_t j = 0; j < i && !seen; j++) seen = c->s->engines.of_stage[c->unit->stages[j]] == engine;
    if (seen) continue;
    weft_status status = emit(c, engine, stage);
    if (status) return status;
  }
  return WEFT_OK;
}

/* ---- tile products ---- */

/** The stages that go on with the accumulator after `stage`, up to the one that packs it. */
static weft_status emit_chain(const unit_context *c, op_list *list, uint32_t stage, uint64_t tiles) {
  const weft_program *program = c->s->program;
  uint32_t value = program->stages[stage].outs[0];
  while (plan_buffer_is_acc(program, value)) {
    uint32_t next = plan_only_reader(c->s->ports, value);
    if (next == WEFT_NONE || program->stages[next].kind != WEFT_STAGE_COMPUTE || c->s->done[next])
      return refuse(c, stage, "leaves its result in an accumulator that no single compute goes on with");
    weft_status status = check_ports(c, next);
    if (status) return status;
    const weft_compute_op *op = program->stages[next].compute;
    if (op->kind == WEFT_COMPUTE_BIAS && (c->sub_blocks.first != 1 || c->sub_blocks.second != 1))
      return refuse(c, next, "adds a row to a product of several sub-blocks");
    emit_waits(c, list, next);
    emit_compute(c, list, next, WEFT_NONE);
    emit_pops(c, list, next, false);
    c->s->done[next] = true;
    stage = next;
    value = program->stages[next].outs[0];
  }
  emit_pack(c, list, stage, value, tiles, false);
  synth_add(c->s, list, stage, WEFT_OP_RELEASE_ACC);
  return WEFT_OK;
}

/** One K block after the other into an accumulator that holds the block. */
static weft_status emit_held_product(const unit_context *c, uint32_t stage, uint64_t tiles) {
  const weft_stage *st = &c->s->program->stages[stage];
  op_list *list = engine_ops(c, stage), blocks = {0};
  emit_acquire(c, list, stage, tiles);
  emit_waits(c, &blocks, stage);
  emit_compute(c, &blocks, stage, WEFT_NONE);
  for (uint64_t i = 0; i < st->in_count; i++) synth_page(c->s, &blocks, stage, WEFT_OP_POP, st->ins[i]);
  synth_k_loop(c->s, list, stage, &st->compute->matmul, st->compute->matmul.num_blocks, &blocks);
  return emit_chain(c, list, stage, tiles);
}

/** One K block, sub-block by sub-block. */
static weft_status emit_single_block_product(const unit_context *c, uint32_t stage, uint64_t tiles) {
  const weft_stage *st = &c->s->program->stages[stage];
  op_list *list = engine_ops(c, stage), subs = {0};
  bool any = st->compute->matmul.num_blocks != 0;
  if (any) emit_waits(c, list, stage);
  emit_acquire(c, &subs, stage, tiles);
  if (any) {
    emit_compute(c, &subs, stage, WEFT_NONE);
  } else {
    op_list none = {0};
    emit_compute(c, &none, stage, WEFT_NONE);
    synth_loop(c->s, &subs, stage, WEFT_VAR_K_BLOCK, 0, &none);
  }
  weft_status status = emit_chain(c, &subs, stage, tiles);
  if (status) return status;
  emit_sub_loops(c, list, stage, &subs);
  for (uint64_t i = 0; any && i < st->in_count; i++) synth_page(c->s, list, stage, WEFT_OP_POP, st->ins[i]);
  return WEFT_OK;
}

/** One sub-block of a product that is spilled between K blocks. The packer may add in place: then only the last block
 * reloads. */
static weft_status emit_spilled_sub_block(const unit_context *c, op_list *list, uint32_t stage, uint64_t tiles,
                                          bool first, bool last) {
  uint32_t interm = c->s->program->stages[stage].compute->matmul.interm;
  const weft_block_plan *plan = plan_of_section(c->s->program, c->unit->section);
  bool in_place = plan && plan->pack_accumulate;
  emit_acquire(c, list, stage, tiles);
  if (!first) synth_page(c->s, list, stage, WEFT_OP_WAIT, interm);
  emit_compute(c, list, stage, first || (in_place && !last) ? WEFT_NONE : interm);
  if (!first) synth_page(c->s, list, stage, WEFT_OP_POP, interm);
  if (last) return emit_chain(c, list, stage, tiles);
  emit_pack(c, list, stage, interm, tiles, in_place && !first);
  synth_add(c->s, list, stage, WEFT_OP_RELEASE_ACC);
  return WEFT_OK;
}

static weft_status emit_spilled_block(const unit_context *c, op_list *list, uint32_t stage, uint64_t tiles, bool first,
                                      bool last) {
  const weft_stage *st = &c->s->program->stages[stage];
  op_list subs = {0};
  emit_waits(c, list, stage);
  weft_status status = emit_spilled_sub_block(c, &subs, stage, tiles, first, last);
  if (status) return status;
  emit_sub_loops(c, list, stage, &subs);
  for (uint64_t i = 0; i < st->in_count; i++) synth_page(c->s, list, stage, WEFT_OP_POP, st->ins[i]);
  return WEFT_OK;
}

static weft_status emit_spilled_product(const unit_context *c, uint32_t stage, uint64_t tiles) {
  const weft_program *program = c->s->program;
  const weft_matmul_tiles *matmul = &program->stages[stage].compute->matmul;
  op_list *list = engine_ops(c, stage), middle = {0};
  if (program->work.k_trip != WEFT_NONE || matmul->trip != WEFT_NONE)
    return refuse(c, stage, "spills its sums over a number of K blocks read from data");
  if (program->buffers[matmul->interm].depth_pages != c->sub_blocks.first * c->sub_blocks.second)
    return refuse(c, stage, "has a spill buffer of another number of pages than it has sub-blocks");
  weft_status status = emit_spilled_block(c, list, stage, tiles, true, false);
  if (!status && matmul->num_blocks > 2) {
    status = emit_spilled_block(c, &middle, stage, tiles, false, false);
    synth_k_loop(c->s, list, stage, NULL, matmul->num_blocks - 2, &middle);
  }
  return status ? status : emit_spilled_block(c, list, stage, tiles, false, true);
}

static weft_status emit_product(const unit_context *c, uint32_t stage) {
  const weft_stage *st = &c->s->program->stages[stage];
  const weft_matmul_tiles *matmul = &st->compute->matmul;
  uint64_t tiles;
  if (weft_mul_overflow(matmul->block.osh, matmul->block.osw, &tiles) || st->in_count != 2 || st->out_count != 1)
    return refuse(c, stage, "is no product of two operands");
  unit_context inner = *c;
  inner.sub_blocks = matmul->sub_blocks;
  if (matmul->interm != WEFT_NONE && matmul->num_blocks > 1) return emit_spilled_product(&inner, stage, tiles);
  if (matmul->trip != WEFT_NONE && (matmul->sub_blocks.first > 1 || matmul->sub_blocks.second > 1))
    return refuse(c, stage, "walks several sub-blocks over a number of K blocks read from data");
  bool one = matmul->sub_blocks.first == 1 && matmul->sub_blocks.second == 1;
  if (one) return emit_held_product(&inner, stage, tiles);
  if (matmul->num_blocks <= 1) return emit_single_block_product(&inner, stage, tiles);
  return refuse(c, stage, "walks several sub-blocks over several K blocks and has no spill buffer");
}

static bool brings_operand(const unit_context *c, uint32_t stage) {
  weft_stage_kind kind = c->s->program->stages[stage].kind;
  return kind == WEFT_STAGE_LOAD || kind == WEFT_STAGE_RECV;
}

/** K blocks that a Load walks, or the sender of what a Recv receives. */
static uint64_t blocks_of(const unit_context *c, uint32_t stage) {
  uint32_t load = plan_load_behind(c->s->program, c->s->ports, c->s->program->stages[stage].outs[0]);
  return load == WEFT_NONE ? 0 : c->s->program->stages[load].load.num_blocks;
}

/** The Loads and receivers of one engine that feed the same product, block by block together. */
static weft_status emit_operands(const unit_context *c, uint32_t first, uint32_t product) {
  const weft_program *program = c->s->program;
  op_list blocks = {0};
  for (uint64_t i = 0; i < c->unit->stage_count; i++) {
    uint32_t stage = c->unit->stages[i];
    if (stage < first || c->s->done[stage] || !brings_operand(c, stage) ||
        c->s->engines.of_stage[stage] != c->s->engines.of_stage[first])
      continue;
    weft_status status = check_ports(c, stage);
    if (status) return status;
    if (plan_only_reader(c->s->ports, program->stages[stage].outs[0]) != product) continue;
    if (blocks_of(c, stage) != blocks_of(c, first))
      return refuse(c, stage, "walks another number of K blocks than the other operand");
    emit_own_flag(c, engine_ops(c, first), stage);
    status = emit_stage(c, &blocks, stage);
    if (status) return status;
    c->s->done[stage] = true;
  }
  synth_k_loop(c->s, engine_ops(c, first), first, &program->stages[product].compute->matmul, blocks_of(c, first),
               &blocks);
  return WEFT_OK;
}

static weft_status emit_product_stage(const unit_context *c, uint32_t stage) {
  const weft_program *program = c->s->program;
  const weft_stage *st = &program->stages[stage];
  if (c->s->done[stage]) return WEFT_OK;
  if (plan_matmul_of(st)) return emit_product(c, stage);
  if (brings_operand(c, stage) && st->out_count == 1) {
    uint32_t reader = plan_only_reader(c->s->ports, st->outs[0]);
    if (reader != WEFT_NONE && plan_matmul_of(&program->stages[reader])) return emit_operands(c, stage, reader);
  }
  unit_context inner = *c;
  if (st->kind == WEFT_STAGE_STORE) inner.sub_blocks = st->store.sub_blocks;
  op_list once = {0};
  weft_status status = emit_stage(c, &once, stage);
  if (!status) emit_sub_loops(&inner, engine_ops(c, stage), stage, &once);
  return status;
}

/** A unit whose Store covers nothing: all its ops in loops that never turn. */
static bool covers_nothing(const unit_context *c) {
  const weft_program *program = c->s->program;
  if (c->unit->store == WEFT_NONE) return false;
  weft_pair subs = program->stages[c->unit->store].store.sub_blocks;
  return subs.first == 0 || subs.second == 0;
}

static weft_status emit_products(unit_context *c) {
  weft_status status = WEFT_OK;
  c->product = true;
  c->sub_blocks = plan_matmul_of(&c->s->program->stages[c->unit->matmul])->sub_blocks;
  for (uint64_t i = 0; !status && i < c->unit->stage_count; i++) status = emit_product_stage(c, c->unit->stages[i]);
  return status;
}

weft_status synth_unit(synthesizer *s, const plan_unit *unit) {
  unit_context c = {.s = s, .unit = unit, .sub_blocks = {1, 1}, .k_blocks = 1};
  if (unit->matmul != WEFT_NONE && !covers_nothing(&c)) return emit_products(&c);
  weft_status status = find_walk(&c);
  return status ? status : for_engines(&c, emit_engine_of_rows);
}
