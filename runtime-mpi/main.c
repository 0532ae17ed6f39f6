/* The way of every run, from options to results. All ranks take the same turns: what one finds wrong, all end with. */
#include "run_private.h"

#include "product_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void weft_run_print(weft_diag *diag) {
  for (uint64_t i = 0; i < weft_diag_count(diag); i++) {
    const weft_message *message = weft_diag_message(diag, i);
    weft_text text = {0};
    weft_message_put(message, &text);
    fputs(text.failed ? message->text : text.data, stderr);
    weft_text_free(&text);
  }
  weft_diag_clear(diag);
}

/* One turn's end: all ranks agree; the one that failed first prints, and warnings are rank 0's. */
static weft_status settle(weft_run *run, weft_status status, bool silent, weft_diag *diag) {
  bool speaks;
  weft_status agreed = weft_run_agree(run, status, silent, &speaks);
  if (speaks || (agreed == WEFT_OK && run->process->rank == 0)) weft_run_print(diag);
  weft_diag_clear(diag);
  return agreed;
}

weft_status weft_run_say(weft_text *text, weft_diag *diag) {
  weft_text safe = {0};
  if (text->data) weft_text_safe(&safe, text->data);
  bool said = !text->failed && !safe.failed && (!safe.data || fputs(safe.data, stdout) >= 0) && fflush(stdout) == 0;
  weft_text_free(&safe);
  weft_text_free(text);
  if (said) return WEFT_OK;
  return weft_error(diag, WEFT_UNAVAILABLE, "see where standard output goes", "standard output cannot be written: %s",
                    strerror(errno));
}

/* What rank 0 has to say: a turn of all. */
static weft_status say(weft_run *run, weft_text *text, weft_diag *diag) {
  return settle(run, run->process->rank == 0 ? weft_run_say(text, diag) : WEFT_OK, false, diag);
}

/* ---- turns ---- */

static weft_status start(weft_run *run, const weft_run_job *job, weft_diag *diag) {
  weft_status status = settle(run, weft_run_open(run, job, diag), false, diag);
  if (status == WEFT_OK) status = settle(run, weft_run_compare(run, diag), false, diag);
  if (status != WEFT_OK) return status;
  weft_text map = {0};
  status = settle(run, weft_hosts_report(run, run->options.map ? &map : NULL, diag), false, diag);
  if (status == WEFT_OK && run->options.map) status = say(run, &map, diag);
  weft_text_free(&map);
  return status;
}

/* Bytes the kernel thinks it can give; 0 when it does not say. */
static uint64_t available_memory(void) {
  FILE *file = fopen("/proc/meminfo", "r");
  char line[128];
  unsigned long long kilobytes = 0;
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "MemAvailable: %llu", &kilobytes) == 1) break;
  if (file) fclose(file);
  return kilobytes * 1024;
}

static uint64_t local_bytes(const weft_run *run) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < run->chip_count; i++)
    if (weft_add_overflow(sum, weft_chip_bytes(&run->chips[i]), &sum)) return UINT64_MAX;
  return sum;
}

static weft_status check_memory(const weft_run *run, weft_diag *diag) {
  uint64_t needed = local_bytes(run), there = available_memory() / run->process->host_ranks;
  if (there == 0 || needed <= there) return WEFT_OK;
  return weft_error(diag, WEFT_UNAVAILABLE, "run on more chips, or put fewer ranks on a host",
                    "the tensors of this rank need %llu bytes; its share of what host %s has free is %llu",
                    (unsigned long long)needed, run->process->host, (unsigned long long)there);
}

static bool is_same_file(const char *a, const char *b) {
  struct stat of_a, of_b;
  return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

/* Whether results can be written is known before hours of steps, not after them. */
static weft_status check_output(const weft_run *run, weft_diag *diag) {
  const char *out = run->options.out;
  if (!out || run->process->rank != 0) return WEFT_OK;
  if (run->options.in && is_same_file(run->options.in, out))
    return weft_error_at(diag, WEFT_USAGE, (weft_place){.file = out}, "give the results a file of their own",
                         "the results would replace the input");
  weft_tensor_writer *writer;
  weft_status status = weft_tensor_writer_create(out, &writer, diag);
  if (status == WEFT_OK) weft_tensor_writer_abandon(writer);
  return status;
}

static weft_status dry_run(weft_run *run, weft_diag *diag) {
  weft_status status = settle(run, check_memory(run, diag), false, diag);
  if (status != WEFT_OK) return status;
  weft_text text = {0};
  weft_text_printf(&text, "%s: %u chip%s on %u rank%s, %llu bytes of tensors on rank 0, kernels %s, input %s: ready\n",
                   run->program->name, run->program->chips, run->program->chips == 1 ? "" : "s", run->process->ranks,
                   run->process->ranks == 1 ? "" : "s", (unsigned long long)local_bytes(run), run->kernels->name,
                   run->options.in ? run->options.in : "not needed");
  status = say(run, &text, diag);
  weft_text_free(&text);
  return status;
}

/* The fault that speaks for this process: the first that is not an echo of another's. */
static weft_status faults(const weft_run *run, bool *silent, weft_diag *diag) {
  const weft_fault *chosen = NULL;
  for (uint32_t i = 0; i < run->chip_count; i++) {
    const weft_fault *fault = &run->chips[i].fault;
    if (fault->set && (!chosen || (chosen->silent && !fault->silent))) chosen = fault;
  }
  *silent = chosen && chosen->silent;
  if (!chosen) return WEFT_OK;
  return weft_error(diag, chosen->status, chosen->hint[0] ? chosen->hint : NULL, "%s", chosen->text);
}

/* A host application keeps its own signal handlers. */
static bool is_library(const weft_run_job *job) { return job->outputs != NULL; }

static weft_status execute(weft_run *run, const weft_run_job *job, double *seconds, weft_diag *diag) {
  if (!is_library(job)) weft_signals_install(run);
  double before = weft_seconds();
  job->execute(run);
  *seconds = weft_seconds() - before;
  weft_progress_end(run);
  bool silent;
  weft_status status = faults(run, &silent, diag);
  if (status != WEFT_OK && !is_library(job)) weft_signals_quiet(weft_status_exit_code(status));
  return settle(run, status, silent, diag);
}

static weft_status finish(weft_run *run, const weft_run_job *job, double seconds, weft_diag *diag) {
  const weft_sink sink = {.path = job->outputs ? NULL : run->options.out, .arrays = job->outputs};
  bool speaks;
  weft_status status = weft_results_write(run, &sink, &speaks, diag);
  if (speaks) weft_run_print(diag);
  if (status != WEFT_OK || is_library(job)) return status;
  weft_text text = {0};
  if (run->options.stats) {
    status = settle(run, weft_stats_report(run, seconds, &text, diag), false, diag);
  } else if (!run->options.out && weft_results_exist(run->program)) {
    /* Without a word nobody would know that the results went nowhere. */
    weft_text_printf(&text, "%s: %llu run%s in %.4g s; no --out FILE was given, so the results are not kept\n",
                     run->program->name, (unsigned long long)run->options.steps, run->options.steps == 1 ? "" : "s",
                     seconds);
  } else {
    return status;
  }
  if (status == WEFT_OK) status = say(run, &text, diag);
  weft_text_free(&text);
  return status;
}

/* Tensors that ranks of one host exchange are made where both see them. */
static void share(weft_run *run) {
  weft_endpoint *end = run->chips[0].end;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < run->chip_count; i++)
    if (weft_add_overflow(sum, weft_chip_exchanged_bytes(&run->chips[i]), &sum)) sum = UINT64_MAX;
  if (end->transport->share) end->transport->share(end, sum);
}

static weft_status all_turns(weft_run *run, const weft_run_job *job, weft_source *source, weft_diag *diag) {
  weft_status status = start(run, job, diag);
  if (status != WEFT_OK) return status;
  status = weft_source_open(source, run, diag);
  if (status == WEFT_OK) status = weft_source_check(source, run, diag);
  if (status == WEFT_OK && !is_library(job)) status = check_output(run, diag);
  status = settle(run, status, false, diag);
  if (status != WEFT_OK) return status;
  if (run->options.dry_run) return dry_run(run, diag);
  share(run);
  status = settle(run, weft_source_load(source, run, diag), false, diag);
  weft_source_close(source);
  if (status != WEFT_OK) return status;
  double seconds;
  status = execute(run, job, &seconds, diag);
  return status == WEFT_OK ? finish(run, job, seconds, diag) : status;
}

int weft_run_main(const weft_run_job *job) {
  weft_diag *diag = weft_diag_new();
  weft_run run;
  weft_source source = {.arrays = job->inputs};
  weft_status status = all_turns(&run, job, &source, diag);
  int code = weft_status_exit_code(status);
  if (status != WEFT_OK && !is_library(job)) weft_signals_quiet(code);
  weft_source_close(&source);
  if (status == WEFT_OK && !is_library(job)) weft_signals_remove();
  weft_run_close(&run);
  weft_diag_free(diag);
  return code;
}
