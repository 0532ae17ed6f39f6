/* A program's figures for other programs: what `weft show --json` prints. */
#include "ir_private.h"

#include <inttypes.h>

static void put_text(weft_text *out, const char *key, const char *value) {
  weft_text_printf(out, "\"%s\": ", key);
  if (value)
    weft_text_json_string(out, value);
  else
    weft_text_puts(out, "null");
}

static void put_number(weft_text *out, const char *key, uint64_t value) {
  weft_text_printf(out, ", \"%s\": %" PRIu64, key, value);
}

/** An id, or null. */
static void put_id(weft_text *out, const char *key, uint32_t id) {
  if (id == WEFT_NONE)
    weft_text_printf(out, ", \"%s\": null", key);
  else
    put_number(out, key, id);
}

static void put_tensors(const weft_program *p, weft_text *out) {
  weft_text_puts(out, ",\n \"tensors\": [");
  for (uint64_t i = 0; i < p->tensor_count; i++) {
    const weft_tensor *t = &p->tensors[i];
    weft_text_puts(out, i ? ",\n  {" : "\n  {");
    put_text(out, "name", t->name);
    weft_text_puts(out, ", ");
    put_text(out, "role", weft_tensor_role_name(t->role));
    weft_text_puts(out, ", ");
    put_text(out, "dtype", weft_ir_format_name(t->dtype));
    put_number(out, "rows", t->elems.rows);
    put_number(out, "cols", t->elems.cols);
    put_number(out, "bytes", weft_tensor_bytes(t));
    put_id(out, "chip", t->chip);
    weft_text_puts(out, ", ");
    put_text(out, "dataset", t->has_shard ? t->shard.of : NULL);
    weft_text_puts(out, "}");
  }
  weft_text_puts(out, "]");
}

static void put_sections(const weft_program *p, weft_text *out) {
  weft_text_puts(out, ",\n \"sections\": [");
  for (uint64_t k = 0; k < p->section_count; k++) {
    const weft_section *s = &p->sections[k];
    weft_text_puts(out, k ? ",\n  {" : "\n  {");
    put_text(out, "name", s->name);
    put_number(out, "stages", s->stages.end - s->stages.begin);
    put_number(out, "items", s->items.end - s->items.begin);
    weft_text_puts(out, ", ");
    put_text(out, "writes", s->output < p->tensor_count ? p->tensors[s->output].name : NULL);
    weft_text_puts(out, "}");
  }
  weft_text_puts(out, "]");
}

void weft_program_show_json(const weft_program *program, weft_text *text) {
  const weft_program *p = program;
  weft_text_puts(text, "{");
  put_text(text, "name", p->name);
  weft_text_puts(text, ", ");
  put_text(text, "phase", weft_phase_name(weft_program_phase(p)));
  put_number(text, "chips", weft_max_u64(p->chips, 1));
  put_id(text, "chip", p->chip);
  weft_text_puts(text, ",\n \"counts\": {\"tensors\": ");
  weft_text_u64(text, p->tensor_count);
  put_number(text, "sections", p->section_count);
  put_number(text, "stages", p->stage_count);
  put_number(text, "buffers", p->buffer_count);
  put_number(text, "edges", p->edge_count);
  put_number(text, "semaphores", p->semaphore_count);
  put_number(text, "items", p->work.item_count);
  put_number(text, "ops", weft_ir_op_count(p));
  weft_text_printf(text, "},\n \"tiles_read\": %.0f, \"tiles_written\": %.0f", weft_ir_tiles_moved(p, WEFT_STAGE_LOAD),
                   weft_ir_tiles_moved(p, WEFT_STAGE_STORE));
  put_tensors(p, text);
  put_sections(p, text);
  weft_text_puts(text, "}\n");
}
