/* Launches of a case file that run several threads together. */
#include "case_private.h"

#include <string.h>

static weft_status find_machine(case_run *r, const weft_json *thread, named_machine **found) {
  const char *name;
  weft_status status = weft_json_field_string(thread, "entry", WEFT_JSON_REQUIRED, &name, r->diag);
  if (status != WEFT_OK) return status;
  for (uint64_t i = 0; i < r->machine_count; i++)
    if (strcmp(r->machines[i].name, name) == 0) {
      *found = &r->machines[i];
      return WEFT_OK;
    }
  if (!weft_arena_grow(r->arena, &r->machines, r->machine_count, &r->machine_capacity, sizeof *r->machines))
    return weft_error_memory(r->diag);
  named_machine *made = &r->machines[r->machine_count];
  *made = (named_machine){.name = name};
  status = case_find_entry(r, thread, name, &made->entry);
  if (status == WEFT_OK && made->entry.op)
    status = weft_interpreter_new(made->entry.op, r->file, &made->machine, r->diag);
  if (status != WEFT_OK) return status;
  r->machine_count++;
  made->kept = case_new_kept(r);
  if (made->machine) weft_interpreter_set_order(made->machine, r->options->simulator.order, r->options->simulator.seed);
  *found = made;
  return WEFT_OK;
}

static weft_status bind_thread(case_run *r, const weft_json *thread, named_machine **machine, weft_binding **inputs) {
  const weft_json *args;
  weft_status status = weft_json_field(thread, "args", WEFT_JSON_REQUIRED, WEFT_JSON_ARRAY, &args, r->diag);
  if (status == WEFT_OK) status = find_machine(r, thread, machine);
  if (status != WEFT_OK) return status;
  *inputs = WEFT_NEW_ARRAY(r->arena, weft_binding, args->count);
  return *inputs ? case_bind(r, &(*machine)->entry, args, *inputs) : weft_error_memory(r->diag);
}

/* Each on the chip that the case says, or its module, or its place in the list. */
static weft_status run_compiled(case_run *r, const weft_json *threads) {
  weft_df_launch *launches = WEFT_NEW_ARRAY(r->arena, weft_df_launch, threads->count);
  if (!launches) return weft_error_memory(r->diag);
  for (uint64_t i = 0; i < threads->count; i++) {
    named_machine *machine;
    weft_binding *inputs;
    uint64_t chip = i;
    weft_status status = bind_thread(r, &threads->items[i], &machine, &inputs);
    if (status != WEFT_OK) return status;
    const weft_df_entry *entry = machine->entry.compiled;
    const weft_json *said = weft_json_get(&threads->items[i], "chip");
    if (entry->chip >= 0) chip = (uint64_t)entry->chip;
    if (said && !weft_json_u64(said, &chip)) return case_wrong(r, said, "the number of a chip is expected");
    launches[i] = (weft_df_launch){.entry = entry, .inputs = inputs, .machines = machine->kept, .chip = (uint32_t)chip};
  }
  bool done;
  return case_run_compiled(r, threads, launches, threads->count, false, &done);
}

weft_status case_run_threads(case_run *r, const weft_json *threads) {
  weft_interpreter **machines = WEFT_NEW_ARRAY(r->arena, weft_interpreter *, threads->count);
  uint64_t which;
  if (!machines) return weft_error_memory(r->diag);
  r->result->launches++;
  if (r->options->program) return run_compiled(r, threads);
  for (uint64_t i = 0; i < threads->count; i++) {
    named_machine *machine;
    weft_binding *inputs;
    weft_status status = bind_thread(r, &threads->items[i], &machine, &inputs);
    if (status == WEFT_OK)
      status = weft_interpreter_start(machine->machine, inputs, machine->entry.input_count, r->diag);
    if (status != WEFT_OK) return status;
    machines[i] = machine->machine;
  }
  weft_run_state state = weft_interpreters_run(machines, threads->count, case_steps(r), &which);
  for (uint64_t i = 0; i < threads->count; i++) r->result->steps += weft_interpreter_report(machines[i])->steps;
  if (state == WEFT_RUN_FAILED) return weft_error_memory(r->diag);
  if (state == WEFT_RUN_DONE) return WEFT_OK;
  const char *text = weft_interpreter_report(machines[which])->text;
  return case_difference(r, &threads->items[which], "%s", text ? text : "the threads did not end");
}

void case_drop_threads(case_run *r) {
  for (uint64_t i = 0; i < r->machine_count; i++) {
    weft_interpreter_free(r->machines[i].machine);
    case_drop_kept(r, r->machines[i].kept);
  }
  r->machine_count = r->machine_capacity = 0;
  r->machines = NULL;
}
