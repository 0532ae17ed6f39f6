/* Words for messages of the passes, the certificate and the evaluator. */
#include "internal.h"

const char *plan_op_name(weft_choreo_kind kind) {
  static const char *const names[] = {
#define ROW(id, name) name,
    WEFT_CHOREO_OPS(ROW)
#undef ROW
  };
  return kind < WEFT_CHOREO_OP_COUNT ? names[kind] : "?";
}

void plan_describe_engine(weft_text *text, weft_site site, weft_engine engine) {
  weft_text_printf(text, "site (%u, %u)", site.x, site.y);
  if (site.chip) weft_text_printf(text, " chip %u", site.chip);
  if (engine.compute)
    weft_text_puts(text, " Compute");
  else
    weft_text_printf(text, " Movement %u", engine.movement);
}

void plan_describe_stage(weft_text *text, const weft_program *program, uint32_t stage) {
  if (stage < program->stage_count)
    weft_text_printf(text, "stage `%s`", program->stages[stage].name);
  else
    weft_text_printf(text, "stage %u", stage);
}
