/* Launches of a case file that run compiled entries. */
#include "case_private.h"

#include <stdlib.h>

void **case_new_kept(case_run *r) {
  return r->options->program ? WEFT_NEW_ARRAY(r->arena, void *, r->options->program->count) : NULL;
}

void case_drop_kept(const case_run *r, void **kept) {
  for (uint32_t i = 0; kept && i < r->options->program->count; i++) free(kept[i]);
}

weft_status case_run_compiled(case_run *r, const weft_json *at, const weft_df_launch *launches, uint64_t count,
                              bool failure_expected, bool *done) {
  weft_df_outcome outcome;
  weft_status status = weft_df_run(launches, count, r->options->chips, &outcome, r->diag);
  *done = status == WEFT_OK && outcome.done;
  if (status != WEFT_OK || outcome.done != failure_expected) return status;
  if (failure_expected) return case_difference(r, at, "it completed, which was not expected");
  return case_difference(r, at, "%s", outcome.text);
}
