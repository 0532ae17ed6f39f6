/* 5. Carries: a buffer that a stage both reads and writes is a ring of two, with one update and one init before the
 * blocks. */
#include "validate_private.h"

/* The writers of a carry: how many also read it, how many are not its updater, and the first of those. */
typedef struct writers {
  uint64_t updates, inits;
  uint32_t init;
} writers;

static writers writers_of(const check *c, const weft_ir_users *users, uint32_t b, uint32_t updater) {
  writers w = {.init = WEFT_NONE};
  for (uint64_t i = users->begin[b]; i < users->begin[b + 1]; i++) {
    uint32_t s = users->stages[i];
    w.updates += weft_ir_has_port(&c->ins, s, b);
    if (s == updater) continue;
    if (!w.inits++) w.init = s;
  }
  return w;
}

static bool check_carry(check *c, const weft_ir_users *users, const uint8_t *levels, uint32_t b, uint32_t updater) {
  const weft_buffer *bf = &c->program->buffers[b];
  if (bf->kind != WEFT_BUFFER_INTERM || bf->depth_pages != 2) return REPORT(c, CARRY_NOT_A_RING, buffer(b));
  writers w = writers_of(c, users, b, updater);
  if (w.updates > 1 || w.inits > 1) return REPORT(c, CARRY_UPDATED_TWICE, buffer(b));
  if (!w.inits) return REPORT(c, CARRY_WITHOUT_INIT, buffer(b));
  return levels[w.init] == 0 || REPORT(c, CARRY_INIT_MOVES_WITH_THE_BLOCKS, buffer(b));
}

void weft_validate_carries(check *c) {
  const weft_program *p = c->program;
  const uint32_t *updater = weft_ir_carries(p, &c->ins, &c->outs, c->arena);
  weft_ir_users users;
  if (!updater || !weft_ir_users_of(p, &c->outs, c->arena, &users)) {
    weft_check_out_of_memory(c);
    return;
  }
  const uint8_t *levels = NULL;
  for (uint32_t b = 0; b < p->buffer_count; b++) {
    if (updater[b] == WEFT_NONE) continue;
    if (!levels && !(levels = weft_fold_levels(p, c->arena))) {
      weft_check_out_of_memory(c);
      return;
    }
    if (!check_carry(c, &users, levels, b, updater[b])) return;
  }
}
