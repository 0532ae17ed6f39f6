/* The code generator's entry: lift, emit every chip, group, write. */
#include "emit_private.h"

#include <stdlib.h>

static void emit_one(void *context, uint64_t index) {
  weft_chip_code *code = (weft_chip_code *)context + index;
  if (code->status == WEFT_OK) weft_codegen_chip(code);
}

static void free_codes(weft_chip_code *codes, uint32_t chips) {
  for (uint32_t c = 0; codes && c < chips; c++) {
    // the sections themselves lie in the arena
    for (uint64_t s = 0; s < codes[c].section_count; s++) weft_text_free(&codes[c].sections[s].text);
    weft_text_free(&codes[c].functions);
    weft_text_free(&codes[c].tables);
    weft_text_free(&codes[c].steps);
    weft_text_free(&codes[c].text);
    weft_graph_free(codes[c].graph);
    weft_arena_free(codes[c].arena);
    weft_diag_free(codes[c].diag);
  }
  free(codes);
}

/** The first chip's failure is the one reported: chips mostly fail alike. */
static weft_status report_failure(weft_chip_code *codes, uint32_t chips, weft_diag *diag) {
  for (uint32_t c = 0; c < chips; c++) {
    if (codes[c].status == WEFT_OK) continue;
    for (uint64_t i = 0; i < weft_diag_count(codes[c].diag); i++) {
      const weft_message *message = weft_diag_message(codes[c].diag, i);
      weft_diag_add(diag, message->severity, message->place, message->hint, "%s", message->text);
    }
    return codes[c].status;
  }
  return WEFT_OK;
}

weft_status weft_codegen(const weft_program *const *programs, uint32_t chips, const char *directory,
                         const weft_codegen_options *options, weft_codegen_report *report, weft_diag *diag) {
  *report = (weft_codegen_report){0};
  weft_status status = WEFT_OK;
  weft_collectives collectives = {.arena = weft_arena_new()};
  weft_chip_code *codes = calloc(chips ? chips : 1, sizeof *codes);
  if (!codes || !collectives.arena) {
    status = weft_error_memory(diag);
    goto done;
  }
  for (uint32_t c = 0; c < chips; c++) {
    codes[c] = (weft_chip_code){.chip = c, .program = programs[c], .collectives = &collectives, .options = options};
    codes[c].arena = weft_arena_new();
    codes[c].diag = weft_diag_new();
    if (!codes[c].arena || !codes[c].diag) {
      status = weft_error_memory(diag);
      goto done;
    }
  }
  status = weft_codegen_collect(codes, chips, &collectives, diag);
  if (status == WEFT_OK) {
    weft_parallel_for(chips, options->threads, emit_one, codes);
    status = report_failure(codes, chips, diag);
  } else {
    report_failure(codes, chips, diag);
  }
  if (status == WEFT_OK) status = weft_codegen_write(codes, chips, directory, options, report, diag);
done:
  free_codes(codes, chips);
  weft_arena_free(collectives.arena);
  return status;
}
