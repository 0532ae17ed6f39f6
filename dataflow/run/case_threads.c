/* Launches of a case file that run several threads together. */
#include "case_private.h"

#include <string.h>

/* The machine of a thread, made at its first launch and kept, so that graphs keep their states. */
static weft_status find_machine(case_run *r, const weft_json *thread, named_machine **found) {
  const char *name;
  weft_status status = weft_json_field_string(thread, "entry", WEFT_JSON_REQUIRED, &name, r->diag);
  if (status != WEFT_OK) return status;
  for (uint64_t i = 0; i < r->machine_count; i++)
    if (strcmp(r->machines[i].name, name) == 0) {
      *found = &r->machines[i];
      return WEFT_OK;
    }
  const weft_mlir_op *entry = weft_mlir_lookup(r->module, name);
  if (!entry) return case_wrong(r, thread, "the module has no entry of this name");
  if (!weft_arena_grow(r->arena, &r->machines, r->machine_count, &r->machine_capacity, sizeof *r->machines))
    return weft_error_memory(r->diag);
  named_machine *made = &r->machines[r->machine_count];
  *made = (named_machine){.name = name, .entry = entry};
  status = weft_interpreter_new(entry, r->file, &made->machine, r->diag);
  if (status != WEFT_OK) return status;
  r->machine_count++;
  weft_interpreter_set_order(made->machine, r->options->simulator.order, r->options->simulator.seed);
  *found = made;
  return WEFT_OK;
}

static weft_status start_thread(case_run *r, const weft_json *thread, weft_interpreter **machine) {
  const weft_json *args;
  named_machine *found = NULL;
  weft_status status = weft_json_field(thread, "args", WEFT_JSON_REQUIRED, WEFT_JSON_ARRAY, &args, r->diag);
  if (status == WEFT_OK) status = find_machine(r, thread, &found);
  if (status != WEFT_OK) return status;
  weft_binding *inputs = WEFT_NEW_ARRAY(r->arena, weft_binding, args->count);
  if (!inputs) return weft_error_memory(r->diag);
  status = case_bind(r, found->entry, args, inputs);
  *machine = found->machine;
  return status == WEFT_OK ? weft_interpreter_start(found->machine, inputs, args->count, r->diag) : status;
}

weft_status case_run_threads(case_run *r, const weft_json *threads) {
  weft_interpreter **machines = WEFT_NEW_ARRAY(r->arena, weft_interpreter *, threads->count);
  uint64_t which;
  if (!machines) return weft_error_memory(r->diag);
  r->result->launches++;
  for (uint64_t i = 0; i < threads->count; i++) {
    weft_status status = start_thread(r, &threads->items[i], &machines[i]);
    if (status != WEFT_OK) return status;
  }
  weft_run_state state = weft_interpreters_run(machines, threads->count, case_steps(r), &which);
  for (uint64_t i = 0; i < threads->count; i++) r->result->steps += weft_interpreter_report(machines[i])->steps;
  if (state == WEFT_RUN_FAILED) return weft_error_memory(r->diag);
  if (state == WEFT_RUN_DONE) return WEFT_OK;
  const char *text = weft_interpreter_report(machines[which])->text;
  return case_difference(r, &threads->items[which], "%s", text ? text : "the threads did not end");
}

void case_drop_threads(case_run *r) {
  for (uint64_t i = 0; i < r->machine_count; i++) weft_interpreter_free(r->machines[i].machine);
  r->machine_count = r->machine_capacity = 0;
  r->machines = NULL;
}
