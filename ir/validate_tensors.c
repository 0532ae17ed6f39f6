/* 6a, 6b. Tensors: grids, roles and spaces; what loads and stores may touch. */
#include "validate_private.h"

typedef struct uses {
  uint8_t *loaded, *stored; /* by tensor */
} uses;

static bool check_grid(check *c, uint64_t t) {
  const weft_program *p = c->program;
  const weft_tensor *tn = &p->tensors[t];
  uint64_t rows = weft_ceil_div(tn->elems.rows, p->tile_rows);
  uint64_t cols = weft_ceil_div(tn->elems.cols, p->tile_cols);
  if (tn->tiles.rows_t == rows && tn->tiles.cols_t == cols) return true;
  return REPORT(c, TILE_GRID_MISMATCH, tensor(t), number(rows), number(cols));
}

static bool check_role(check *c, uint64_t t, const uses *u) {
  const weft_tensor *tn = &c->program->tensors[t];
  bool stored = u->stored[t];
  const char *role = weft_tensor_role_name(tn->role);
  if (tn->role == WEFT_ROLE_ACTIVATION && (!c->program->section_count || !u->loaded[t] || !stored))
    return REPORT(c, TENSOR_ROLE_DEFERRED, tensor(t), text(role), text("B-P7"));
  if (tn->role == WEFT_ROLE_STATE && !stored)
    return REPORT(c, TENSOR_ROLE_DEFERRED, tensor(t), text(role), text("B-P6"));
  return true;
}

static bool check_space(check *c, uint64_t t) {
  const weft_tensor *tn = &c->program->tensors[t];
  bool carried = tn->role == WEFT_ROLE_ACTIVATION || tn->role == WEFT_ROLE_STATE;
  if (tn->space != WEFT_SPACE_SRAM || carried) return true;
  return REPORT(c, TENSOR_SPACE_DEFERRED, tensor(t), text("Sram"), text("B-P6"));
}

static bool check_access(check *c, uint64_t s) {
  const weft_program *p = c->program;
  const weft_stage *st = &p->stages[s];
  if (st->kind == WEFT_STAGE_LOAD && p->tensors[st->load.tensor].role == WEFT_ROLE_OUTPUT)
    return REPORT(c, LOAD_READS_OUTPUT, stage(s), tensor(st->load.tensor));
  if (st->kind != WEFT_STAGE_STORE) return true;
  weft_tensor_role role = p->tensors[st->store.tensor].role;
  if (role != WEFT_ROLE_INPUT && role != WEFT_ROLE_PARAM) return true;
  return REPORT(c, STORE_WRITES_INPUT, stage(s), tensor(st->store.tensor));
}

void weft_validate_tensors(check *c) {
  const weft_program *p = c->program;
  if (p->tensor_count && (!p->tile_rows || !p->tile_cols)) {
    REPORT(c, ZERO_TILE_EXTENT, number(p->tile_rows), number(p->tile_cols));
    c->halt = true;
    return;
  }
  uses u = {.loaded = weft_check_array(c, p->tensor_count, 1), .stored = weft_check_array(c, p->tensor_count, 1)};
  if (!u.loaded || !u.stored) return;
  for (uint64_t s = 0; s < p->stage_count; s++) {
    const weft_stage *st = &p->stages[s];
    if (st->kind == WEFT_STAGE_LOAD) u.loaded[st->load.tensor] = 1;
    if (st->kind == WEFT_STAGE_STORE) u.stored[st->store.tensor] = 1;
  }
  for (uint64_t t = 0; t < p->tensor_count; t++)
    if (!check_grid(c, t) || !check_role(c, t, &u) || !check_space(c, t)) return;
  for (uint64_t s = 0; s < p->stage_count; s++)
    if (!check_access(c, s)) return;
}
