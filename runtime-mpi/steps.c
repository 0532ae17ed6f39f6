/* The step loop of one chip: settle what a step needs, run it, give back what it was the last to read. */
#include "crew_private.h"
#include "run_private.h"

#include <unistd.h>

static bool settle_list(weft_chip *chip, const int64_t *list, bool writing) {
  if (!list) return weft_chip_settle(chip, -1, true);
  for (; *list >= 0; list++)
    if (!weft_chip_settle(chip, *list, writing)) return false;
  return true;
}

static void release_read(weft_chip *chip, uint32_t step) {
  for (uint32_t t = 0; chip->shown_count && t < chip->class->tensor_count; t++)
    if (chip->slots[t].shown && chip->slots[t].release_at == step) weft_chip_release(chip, &chip->slots[t]);
}

static void perform(weft_chip *chip, const weft_abi_step *step) {
  switch (step->kind) {
  case WEFT_STEP_LINK: weft_link(chip, step->link); break;
  case WEFT_STEP_ALL_REDUCE: weft_all_reduce(chip, step->all_reduce); break;
  default: step->section(chip, chip->parameters + step->parameter, step->slots);
  }
}

static bool run_step(weft_chip *chip, uint32_t index) {
  const weft_abi_step *step = &chip->class->steps[index];
  chip->step = index;
  double before = chip->times ? weft_seconds() : 0;
  chip->waited = 0;
  chip->sent = 0;
  if (!chip->pending_count || (settle_list(chip, step->reads, false) && settle_list(chip, step->writes, true)))
    perform(chip, step);
  if (chip->shown_count) release_read(chip, index);
  if (chip->times) {
    chip->times[index].seconds += weft_seconds() - before;
    chip->times[index].waited += chip->waited;
    chip->times[index].bytes += chip->sent;
  }
  return !weft_chip_failed(chip);
}

static bool advance_slot(weft_chip *chip, uint32_t index) {
  weft_slot *slot = &chip->slots[index];
  if (!weft_chip_settle(chip, index, true)) return false;
  for (uint64_t i = 0; i < slot->tensor->rows * slot->tensor->cols; i++) {
    int64_t now = weft_load_i64(slot->format, slot->data, i);
    if (now < INT64_MAX && weft_store_i64(slot->format, slot->data, i, now + 1)) continue;
    weft_chip_fault(chip, WEFT_INVALID, "run fewer steps", "element %llu of '%s' cannot be advanced: %s ends there",
                    (unsigned long long)i, slot->tensor->dataset, weft_format_name(slot->format));
    return false;
  }
  return true;
}

/** The Input that --advance names is one greater in the next run. */
static bool advance_input(weft_chip *chip) {
  for (uint32_t t = 0; t < chip->class->tensor_count; t++)
    if (weft_tensor_advances(chip->run, &chip->class->tensors[t]) && !advance_slot(chip, t)) return false;
  return true;
}

static void run_steps(weft_chip *chip, uint64_t runs) {
  weft_process *process = chip->run->process;
  bool shows = chip->run->to_terminal && chip == chip->run->chips;
  bool ok = true;
  for (uint64_t i = 0; ok && i < runs; i++) {
    chip->run_number = i;
    if (i && chip->run->options.advance) ok = advance_input(chip);
    for (uint32_t s = 0; ok && s < chip->class->step_count; s++) {
      ok = run_step(chip, s);
      if (shows) weft_progress_show(chip, runs);
    }
    /* A chip without messages would not notice that another one failed. */
    if (ok && i % 64 == 0 && process->stopped(process)) {
      weft_chip_fault(chip, WEFT_UNAVAILABLE, NULL, "stopped, because another chip failed");
      chip->fault.silent = true;
      ok = false;
    }
  }
  if (ok) ok = weft_chip_settle(chip, -1, true);
  if (!ok) {
    process->stop(process);
    weft_chip_drop(chip);
  }
}

typedef struct chip_runs {
  weft_chip *chip;
  uint64_t runs;
} chip_runs;

static void run_with_crew(void *context) {
  const chip_runs *work = context;
  run_steps(work->chip, work->runs);
}

void weft_chip_run(weft_chip *chip, uint64_t runs) {
  uint64_t threads = (uint64_t)chip->threads * chip->run->chip_count * chip->run->process->host_ranks;
  bool own_cores = threads <= (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
  chip->crew = chip->threads > 1 ? weft_crew_new(own_cores) : NULL;
  if (chip->crew)
    weft_crew_run(chip->crew, chip->threads, run_with_crew, &(chip_runs){chip, runs});
  else
    run_steps(chip, runs);
  weft_crew_free(chip->crew);
  chip->crew = NULL;
}
