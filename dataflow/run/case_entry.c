/* What a case file runs: an entry of a module or of a compiled program. */
#include "case_private.h"

static weft_status from_module(case_run *r, const weft_mlir_op *op, case_entry *entry) {
  const weft_mlir_type *type = weft_mlir_function_type(op);
  const weft_mlir_attribute *order = weft_mlir_attribute_of(op, "weft.input_order"),
                            *segments = weft_mlir_attribute_of(op, "result_segments");
  *entry = (case_entry){.name = weft_mlir_symbol_name(op),
                        .op = op,
                        .input_count = type->input_count,
                        .inputs = type->inputs,
                        .results = type->results,
                        .value_count = type->result_count,
                        .places = WEFT_NEW_ARRAY(r->arena, uint32_t, type->input_count)};
  if (!entry->places) return weft_error_memory(r->diag);
  /* A function's inputs may have been put in another order. */
  for (uint32_t i = 0; i < type->input_count; i++)
    entry->places[i] = order ? (uint32_t)weft_mlir_dense_integer(order, i) : i;
  if (segments) {
    entry->value_count = (uint32_t)weft_mlir_dense_integer(segments, 0);
    entry->stream_count = (uint32_t)weft_mlir_dense_integer(segments, 1);
  }
  return WEFT_OK;
}

static weft_status from_program(case_run *r, const weft_df_entry *compiled, case_entry *entry) {
  uint32_t ports = compiled->inputs + compiled->results + compiled->streams;
  const weft_mlir_type **types = WEFT_NEW_ARRAY(r->arena, const weft_mlir_type *, ports);
  *entry = (case_entry){.name = compiled->name,
                        .compiled = compiled,
                        .input_count = compiled->inputs,
                        .inputs = types,
                        .results = types + compiled->inputs,
                        .value_count = compiled->results,
                        .stream_count = compiled->streams,
                        .places = WEFT_NEW_ARRAY(r->arena, uint32_t, compiled->inputs)};
  if (!types || !entry->places) return weft_error_memory(r->diag);
  for (uint32_t i = 0; i < ports; i++) {
    types[i] = weft_mlir_type_from_text(r->context, compiled->ports[i].type);
    if (!types[i]) return weft_error_memory(r->diag);
  }
  for (uint32_t i = 0; i < compiled->inputs; i++) entry->places[compiled->ports[i].given] = i;
  return WEFT_OK;
}

weft_status case_find_entry(case_run *r, const weft_json *at, const char *name, case_entry *entry) {
  const weft_df_program *program = r->options->program;
  if (program) {
    const weft_df_entry *compiled = weft_df_find(program, name);
    return compiled ? from_program(r, compiled, entry) : case_wrong(r, at, "the program has no entry of this name");
  }
  const weft_mlir_op *op = weft_mlir_lookup(r->module, name);
  return op ? from_module(r, op, entry) : case_wrong(r, at, "the module has no entry of this name");
}
