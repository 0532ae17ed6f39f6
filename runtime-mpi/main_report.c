/* What a run shows: where it is, how far it is, what it took. */
#include "run_private.h"

#include "product_private.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- hosts ---- */

enum { MASK_WORDS = 16, HOST_WORDS = 8 };

typedef struct place {
  uint64_t chips, threads, bound;
  uint64_t mask[MASK_WORDS];
  uint64_t host[HOST_WORDS];
} place;
enum { PLACE_WORDS = sizeof(place) / sizeof(uint64_t) };

int weft_allowed_cores(void) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  int count = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  return count > 0 ? count : 1;
}

/* Whether what started this process gave it fewer cores than it has itself, as mpirun does when it binds ranks. */
static bool is_bound(const cpu_set_t *allowed) {
  cpu_set_t parent;
  CPU_ZERO(&parent);
  return sched_getaffinity(getppid(), sizeof parent, &parent) == 0 && CPU_COUNT(&parent) > CPU_COUNT(allowed);
}

static place place_here(const weft_run *run) {
  place here = {.chips = run->chip_count, .threads = (uint64_t)run->threads * run->chip_count};
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    here.bound = is_bound(&allowed);
    for (size_t cpu = 0; cpu < MASK_WORDS * 64; cpu++)
      if (CPU_ISSET(cpu, &allowed)) here.mask[cpu / 64] |= UINT64_C(1) << cpu % 64;
  }
  strncpy((char *)here.host, run->process->host, sizeof here.host - 1);
  return here;
}

static int cores_in(const uint64_t *mask) {
  int count = 0;
  for (int w = 0; w < MASK_WORDS; w++) count += __builtin_popcountll(mask[w]);
  return count;
}

static void append_cores(weft_text *text, const uint64_t *mask) {
  const char *separator = "";
  for (int cpu = 0; cpu < MASK_WORDS * 64; cpu++) {
    if (!(mask[cpu / 64] >> cpu % 64 & 1)) continue;
    int last = cpu;
    while (last + 1 < MASK_WORDS * 64 && mask[(last + 1) / 64] >> (last + 1) % 64 & 1) last++;
    weft_text_printf(text, last > cpu ? "%s%d-%d" : "%s%d", separator, cpu, last);
    separator = ",";
    cpu = last;
  }
}

/* The cores and threads of the host that rank `rank` is the first of; false when an earlier rank is on the same host.
 */
static bool sum_host(const place *places, uint32_t ranks, uint32_t rank, int *cores, uint64_t *threads) {
  uint64_t mask[MASK_WORDS] = {0};
  *threads = 0;
  for (uint32_t r = 0; r < ranks; r++) {
    if (strcmp((const char *)places[r].host, (const char *)places[rank].host) != 0) continue;
    if (r < rank) return false;
    *threads += places[r].threads;
    for (int w = 0; w < MASK_WORDS; w++) mask[w] |= places[r].mask[w];
  }
  *cores = cores_in(mask);
  return true;
}

static void warn_about_threads(const place *places, uint32_t ranks, weft_diag *diag) {
  for (uint32_t r = 0; r < ranks; r++) {
    int cores;
    uint64_t threads;
    if (!sum_host(places, ranks, r, &cores, &threads) || cores == 0 || threads <= (uint64_t)cores) continue;
    weft_diag_add(diag, WEFT_WARNING, (weft_place){0},
                  places[r].bound ? "use fewer threads or chips a host, or give mpirun --bind-to none"
                                  : "use fewer threads or chips a host",
                  "%llu threads share %d core%s on host %s", (unsigned long long)threads, cores, cores == 1 ? "" : "s",
                  (const char *)places[r].host);
    return;
  }
}

weft_status weft_hosts_report(weft_run *run, weft_text *map, weft_diag *diag) {
  weft_process *process = run->process;
  place here = place_here(run), *places = calloc(process->ranks, sizeof *places);
  uint64_t words[PLACE_WORDS];
  memcpy(words, &here, sizeof here);
  if (!places) return weft_error_memory(diag);
  weft_status status = WEFT_OK;
  if (!process->gather(process, words, PLACE_WORDS, (uint64_t *)(void *)places))
    status = weft_error(diag, WEFT_UNAVAILABLE, NULL, "the ranks cannot reach each other");
  /* Chips that are threads of one process are there to share its cores. */
  bool warns = process->rank == 0 && (process->ranks > 1 || run->threads > 1);
  if (status == WEFT_OK && warns) warn_about_threads(places, process->ranks, diag);
  uint64_t chip = 0;
  for (uint32_t r = 0; status == WEFT_OK && map && r < process->ranks; r++) {
    weft_text_printf(map, "rank %u  host %s  chip%s %llu", r, (const char *)places[r].host,
                     places[r].chips == 1 ? "" : "s", (unsigned long long)chip);
    chip += places[r].chips;
    if (places[r].chips > 1) weft_text_printf(map, "-%llu", (unsigned long long)(chip - 1));
    weft_text_printf(map, "  threads %llu  cores ", (unsigned long long)places[r].threads);
    append_cores(map, places[r].mask);
    weft_text_puts(map, "\n");
  }
  free(places);
  return status;
}

/* ---- progress ---- */

enum { QUIET_SECONDS = 2 };
static double progress_shown;

void weft_progress_show(weft_chip *chip, uint64_t runs) {
  double now = weft_seconds(), since = now - chip->run->started;
  if (since < QUIET_SECONDS || now - progress_shown < 0.25) return;
  progress_shown = now;
  double steps = (double)chip->class->step_count, done = (double)chip->run_number;
  done += steps > 0 ? ((double)chip->step + 1) / steps : 1;
  double rate = done / since;
  fprintf(stderr, "\r\033[K%s: run %llu of %llu, '%s'", chip->run->program->name,
          (unsigned long long)chip->run_number + 1, (unsigned long long)runs, weft_chip_step_name(chip));
  if (runs > 1) fprintf(stderr, ", %.3g a second, %.0f s left", rate, ((double)runs - done) / rate);
  fflush(stderr);
}

void weft_progress_end(const weft_run *run) {
  if (run->to_terminal && progress_shown > 0) fputs("\r\033[K", stderr);
  progress_shown = 0;
}

/* ---- times ---- */

typedef struct stats_row {
  const char *name;
  int kind;
  uint64_t chips;
  double least, most, sum, waited, flops;
  uint64_t bytes;
} stats_row;

typedef struct stats_table {
  stats_row *rows;
  uint64_t count;
} stats_table;

static stats_row *row_for(stats_table *table, const weft_abi_step *step) {
  const char *name = step->name ? step->name : "?";
  for (uint64_t i = table->count; i-- > 0;)
    if (table->rows[i].kind == step->kind && strcmp(table->rows[i].name, name) == 0) return &table->rows[i];
  table->rows[table->count] = (stats_row){.name = name, .kind = step->kind};
  return &table->rows[table->count++];
}

/* Steps of one name, of one chip or of several, make one row. */
static void add_chip(stats_table *table, const weft_abi_class *class, const int64_t *parameters,
                     const weft_step_time *times) {
  for (uint32_t s = 0; s < class->step_count; s++) {
    stats_row *row = row_for(table, &class->steps[s]);
    double seconds = times[s].seconds;
    row->least = row->chips == 0 || seconds < row->least ? seconds : row->least;
    row->most = seconds > row->most ? seconds : row->most;
    row->sum += seconds;
    row->chips++;
    row->flops += class->steps[s].work ? (double)parameters[class->steps[s].work] : class->steps[s].flops;
    row->bytes += times[s].bytes;
    row->waited += class->steps[s].kind == WEFT_STEP_SECTION ? times[s].waited : seconds;
  }
}

static void append_table(const stats_table *table, const weft_run *run, double seconds, weft_text *text) {
  double runs = (double)run->options.steps, busy = 0, waited = 0, flops = 0;
  weft_text_printf(text, "%-28s %6s %11s %11s %11s %9s %11s %6s\n", "section (per run)", "chips", "min s", "mean s",
                   "max s", "GFLOP/s", "sent bytes", "comm");
  for (uint64_t i = 0; i < table->count; i++) {
    const stats_row *row = &table->rows[i];
    double rate = row->most > 0 ? row->flops * runs / row->most * 1e-9 : 0;
    weft_text_printf(text, "%-28.28s %6llu %11.3e %11.3e %11.3e %9.2f %11.4g %5.1f%%\n", row->name,
                     (unsigned long long)row->chips, row->least / runs, row->sum / (double)row->chips / runs,
                     row->most / runs, rate, (double)row->bytes / runs,
                     row->sum > 0 ? 100 * row->waited / row->sum : 0);
    busy += row->sum;
    waited += row->waited;
    flops += row->flops;
  }
  weft_text_printf(text, "%llu run%s in %.4g s: %.4g s a run, %.4g GFLOP/s, communication %.1f%% of the chips' time\n",
                   (unsigned long long)run->options.steps, run->options.steps == 1 ? "" : "s", seconds, seconds / runs,
                   seconds > 0 ? flops * runs / seconds * 1e-9 : 0, busy > 0 ? 100 * waited / busy : 0);
  weft_text_printf(text, "kernels %s, %d thread%s a chip\n", run->kernels->name, run->threads,
                   run->threads == 1 ? "" : "s");
}

static bool fetch(weft_run *run, uint32_t from, weft_step_time *times, uint64_t bytes) {
  weft_chip *chip = &run->chips[0];
  weft_endpoint *end = chip->end;
  weft_transfer *transfer = run->process->rank == 0 ? end->transport->receive(end, from, times, bytes)
                                                    : end->transport->send(end, 0, times, bytes, true);
  if (!transfer || !weft_chip_wait(chip, transfer)) return false;
  end->transport->finish(end, transfer);
  return true;
}

/* Rank 0 hears all chips in order; the others send. */
static bool collect(weft_run *run, stats_table *table, weft_step_time *times) {
  uint32_t first = run->chips[0].index;
  bool ok = true;
  for (uint32_t c = 0; ok && c < run->program->chips; c++) {
    bool here = c >= first && c - first < run->chip_count;
    const weft_abi_class *class = run->program->classes[run->class_of[c]];
    uint64_t bytes = class->step_count * sizeof *times;
    if (run->process->rank == 0) {
      if (!here && bytes) ok = fetch(run, c, times, bytes);
      const int64_t *parameters = class->parameters + (uint64_t)run->row_of[c] * class->parameter_count;
      if (ok) add_chip(table, class, parameters, here ? run->chips[c - first].times : times);
    } else if (here && bytes) {
      ok = fetch(run, c, run->chips[c - first].times, bytes);
    }
  }
  return ok;
}

weft_status weft_stats_report(weft_run *run, double seconds, weft_text *text, weft_diag *diag) {
  uint64_t steps = 0, most = 0;
  for (uint32_t k = 0; k < run->program->class_count; k++) {
    steps += run->program->classes[k]->step_count;
    most = weft_max_u64(most, run->program->classes[k]->step_count);
  }
  stats_table table = {.rows = calloc(steps + 1, sizeof *table.rows)};
  weft_step_time *times = calloc(most + 1, sizeof *times);
  weft_status status = WEFT_OK;
  if (!table.rows || !times)
    status = weft_error_memory(diag);
  else if (!collect(run, &table, times))
    status = weft_error(diag, WEFT_UNAVAILABLE, NULL, "the times of all chips could not be collected");
  else if (run->process->rank == 0)
    append_table(&table, run, seconds, text);
  free(times);
  free(table.rows);
  return status;
}
