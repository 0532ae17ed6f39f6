#include "mutate.h"

#include <stdio.h>
#include <string.h>

typedef struct list_ref {
  const weft_op **ops;
  uint64_t *count;
} list_ref;

typedef struct lists {
  list_ref items[4096];
  uint64_t count;
  uint64_t ops;
} lists;

static void collect(lists *l, const weft_op **ops, uint64_t *count) {
  if (l->count == sizeof l->items / sizeof *l->items) return;
  l->items[l->count++] = (list_ref){ops, count};
  l->ops += *count;
  for (uint64_t i = 0; i < *count; i++) {
    weft_op *op = (weft_op *)&(*ops)[i];
    if (op->kind == WEFT_OP_LOOP) collect(l, &op->loop.body, &op->loop.body_count);
  }
}

static uint64_t below(uint64_t *random, uint64_t n) { return n ? weft_random_next(random) % n : 0; }

/** A number near `old`, or a small one. */
static uint64_t other_number(uint64_t *random, uint64_t old) {
  switch (below(random, 4)) {
  case 0: return old + 1;
  case 1: return old ? old - 1 : 2;
  case 2: return old * 2 + 1;
  default: return below(random, 5);
  }
}

static void change_address(weft_program *program, weft_tile_addr *at, uint64_t *random) {
  if (at->step_count && below(random, 2)) {
    weft_step *steps = WEFT_NEW_ARRAY(program->arena, weft_step, at->step_count);
    memcpy(steps, at->steps, at->step_count * sizeof *steps);
    weft_step *step = &steps[below(random, at->step_count)];
    if (below(random, 2))
      step->var = (uint32_t)below(random, 6);
    else
      step->stride = other_number(random, step->stride);
    at->steps = steps;
    return;
  }
  at->base = other_number(random, at->base);
}

static void change_field(weft_program *program, weft_op *op, uint64_t *random) {
  uint64_t buffers = program->buffer_count;
  if (below(random, 8) == 0) {
    op->stage = (uint32_t)below(random, program->stage_count);
    return;
  }
  switch (op->kind) {
  case WEFT_OP_RESERVE:
  case WEFT_OP_PUSH:
  case WEFT_OP_WAIT:
  case WEFT_OP_POP:
    if (below(random, 2))
      op->page.buf = (uint32_t)below(random, buffers);
    else
      op->page.pages = other_number(random, op->page.pages);
    break;
  case WEFT_OP_READ_TILES:
  case WEFT_OP_WRITE_TILES:
    switch (below(random, 6)) {
    case 0: op->tiles.buf = (uint32_t)below(random, buffers); break;
    case 1: op->tiles.tensor = (uint32_t)below(random, program->tensor_count); break;
    case 2: op->tiles.block_h = other_number(random, op->tiles.block_h); break;
    case 3: op->tiles.stride_h = other_number(random, op->tiles.stride_h); break;
    default: change_address(program, &op->tiles.at, random);
    }
    break;
  case WEFT_OP_MCAST_SEND: op->mcast_send.group = (uint32_t)below(random, program->placement->group_count); break;
  case WEFT_OP_MCAST_SET_VALID: op->mcast_set_valid.sem = (uint32_t)below(random, program->semaphore_count); break;
  case WEFT_OP_SEM_SET:
    if (below(random, 2))
      op->sem_set.sem = (uint32_t)below(random, program->semaphore_count);
    else
      op->sem_set.value = (weft_sem_value)below(random, 3);
    break;
  case WEFT_OP_SEM_INC:
    if (below(random, 2))
      op->sem_inc.sem = (uint32_t)below(random, program->semaphore_count);
    else if (below(random, 2))
      op->sem_inc.by = other_number(random, op->sem_inc.by);
    else
      op->sem_inc.at = program->placement->site_of[below(random, program->stage_count)];
    break;
  case WEFT_OP_SEM_WAIT:
    if (below(random, 2))
      op->sem_wait.sem = (uint32_t)below(random, program->semaphore_count);
    else if (below(random, 2))
      op->sem_wait.count = other_number(random, op->sem_wait.count);
    else
      op->sem_wait.at_least = !op->sem_wait.at_least;
    break;
  case WEFT_OP_ACQUIRE_ACC: op->acquire_tiles = other_number(random, op->acquire_tiles); break;
  case WEFT_OP_COMPUTE:
    if (below(random, 2)) {
      op->compute.acc_reload = op->compute.acc_reload == WEFT_NONE ? (uint32_t)below(random, buffers) : WEFT_NONE;
    } else if (op->compute.in_count) {
      uint32_t *ins = WEFT_NEW_ARRAY(program->arena, uint32_t, op->compute.in_count);
      memcpy(ins, op->compute.ins, op->compute.in_count * sizeof *ins);
      ins[below(random, op->compute.in_count)] = (uint32_t)below(random, buffers);
      op->compute.ins = ins;
    }
    break;
  case WEFT_OP_PACK_ACC:
    switch (below(random, 4)) {
    case 0: op->pack.to = (uint32_t)below(random, buffers); break;
    case 1: op->pack.tiles = other_number(random, op->pack.tiles); break;
    case 2: op->pack.accumulate = !op->pack.accumulate; break;
    default: op->pack.convert = (weft_format)below(random, WEFT_FORMAT_COUNT);
    }
    break;
  case WEFT_OP_LOOP:
    if (below(random, 2))
      op->loop.var = (uint32_t)below(random, 6);
    else
      op->loop.count = other_number(random, op->loop.count);
    break;
  case WEFT_OP_BARRIER: op->barrier_group = (uint32_t)below(random, program->placement->group_count); break;
  default: op->kind = WEFT_OP_FLUSH;
  }
}

static bool resize(weft_program *program, list_ref list, uint64_t extra, weft_op **ops) {
  *ops = WEFT_NEW_ARRAY(program->arena, weft_op, *list.count + extra);
  if (!*ops) return false;
  memcpy(*ops, *list.ops, *list.count * sizeof **ops);
  *list.ops = *ops;
  return true;
}

bool mutate_schedule(weft_program *program, uint64_t *random, char *text, size_t size) {
  static lists l;
  l.count = l.ops = 0;
  weft_schedule *schedule = (weft_schedule *)program->schedule;
  for (uint64_t p = 0; p < schedule->program_count; p++) {
    weft_engine_program *engine = (weft_engine_program *)&schedule->programs[p];
    collect(&l, &engine->ops, &engine->op_count);
  }
  if (l.ops == 0) return false;
  uint64_t pick = below(random, l.ops), at = 0;
  while (pick >= *l.items[at].count) pick -= *l.items[at++].count;
  list_ref list = l.items[at];
  weft_op *ops;
  if (!resize(program, list, 1, &ops)) return false;
  uint64_t how = below(random, 6);
  static const char *const names[] = {"remove", "repeat", "swap", "change", "change", "move"};
  snprintf(text, size, "%s op %llu of list %llu (kind %d, stage %u)", names[how], (unsigned long long)pick,
           (unsigned long long)at, (int)ops[pick].kind, ops[pick].stage);
  if (how == 0) {
    memmove(&ops[pick], &ops[pick + 1], (*list.count - pick - 1) * sizeof *ops);
    --*list.count;
  } else if (how == 1) {
    memmove(&ops[pick + 1], &ops[pick], (*list.count - pick) * sizeof *ops);
    ++*list.count;
  } else if (how == 2) {
    if (pick + 1 >= *list.count) return false;
    weft_op op = ops[pick];
    ops[pick] = ops[pick + 1];
    ops[pick + 1] = op;
  } else if (how == 5) {
    uint64_t to = below(random, *list.count);
    weft_op op = ops[pick];
    memmove(&ops[pick], &ops[pick + 1], (*list.count - pick - 1) * sizeof *ops);
    memmove(&ops[to + 1], &ops[to], (*list.count - 1 - to) * sizeof *ops);
    ops[to] = op;
  } else {
    change_field(program, &ops[pick], random);
  }
  return true;
}
