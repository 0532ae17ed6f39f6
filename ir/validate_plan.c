/* 9. Plan: blocks divide what they walk, and the grid is the result's.
 * 10. Phase order: no phase without the one before. */
#include "validate_private.h"

static bool check_division(check *c, const char *what, uint64_t value, uint64_t divisor, bool may_be_zero) {
  if (divisor && (value || may_be_zero) && value % divisor == 0) return true;
  return REPORT(c, BLOCK_DIVISIBILITY, text(what), number(value), number(divisor)) && false;
}

static bool check_blocks(check *c, const weft_block_plan *plan) {
  uint64_t k = c->program->work.k_tiles;
  bool rows = check_division(c, "per_site_m % osh", plan->per_site_m, plan->block.osh, false);
  if (c->stop) return false;
  bool cols = check_division(c, "per_site_n % osw", plan->per_site_n, plan->block.osw, false);
  if (c->stop || !check_division(c, "k_tiles % ibw", k, plan->block.ibw, true)) return false;
  if (plan->num_blocks == k / plan->block.ibw && plan->block_k_tiles == plan->block.ibw) return rows && cols;
  REPORT(c, BLOCK_DIVISIBILITY, text("num_blocks"), number(plan->num_blocks), number(plan->block.ibw));
  return false;
}

void weft_validate_plan(check *c) {
  const weft_program *p = c->program;
  const weft_block_plan *plan = &p->work.plan;
  if (!p->work.has_plan || !check_blocks(c, plan)) return;
  uint64_t last = p->section_count ? p->section_count - 1 : UINT64_MAX;
  uint64_t items = p->section_count ? p->sections[last].items.end - p->sections[last].items.begin : p->work.item_count;
  uint32_t result = weft_check_result(c, last);
  if (result == WEFT_NONE) return;
  const weft_tensor *tn = &p->tensors[result];
  weft_pair expected = {1, items};
  if (tn->role == WEFT_ROLE_OUTPUT || tn->role == WEFT_ROLE_ACTIVATION)
    expected = (weft_pair){weft_ceil_div(tn->tiles.rows_t, plan->per_site_m),
                           weft_ceil_div(tn->tiles.cols_t, plan->per_site_n)};
  if (plan->grid.first != expected.first || plan->grid.second != expected.second)
    REPORT(c, GRID_MISMATCH, pair(expected), pair(plan->grid));
}

void weft_validate_phase_order(check *c) {
  const weft_program *p = c->program;
  const struct {
    const char *name;
    bool has;
  } phases[] = {{"plan", p->work.has_plan},
                {"placement", p->placement != NULL},
                {"memory", p->memory != NULL},
                {"schedule", p->schedule != NULL},
                {"certificate", p->verified}};
  for (size_t i = 1; i < sizeof phases / sizeof *phases; i++)
    if (phases[i].has && !phases[i - 1].has && !REPORT(c, PHASE_ORDER, text(phases[i].name), text(phases[i - 1].name)))
      return;
}
