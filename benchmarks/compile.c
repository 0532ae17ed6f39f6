/* How long it takes to make the digits network a program for 1 to 64 chips: the whole command, its phases, and the
 * compilation of the C it writes. */
#include "bench.h"

#include "weft/codegen.h"
#include "weft/partition.h"
#include "weft/plan.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_CHIPS = 64 };

/* ---- the command ---------------------------------------------------------------------------------------------------
 */

typedef struct command {
  const bench *b;
  int chips;
  const char *split; /**< "": weft's own choice */
  bool ninja, failed;
} command;

static void run_command(void *context) {
  command *c = context;
  bool ok = c->ninja ? bench_command("ninja -C %s/program-%d", bench_folder(), c->chips)
                     : bench_command("'%s' compile %s/digits.json --chips %d -o %s/program-%d", c->b->weft,
                                     bench_folder(), c->chips, bench_folder(), c->chips);
  c->failed = c->failed || !ok;
}

/* The split that makes the longest C: every layer's input is put together from all chips. */
static const char by_columns[] = "columns";

/* Each time from nothing: files that are there already would be left alone. */
static bool run_chips(bench *b, int chips, const char *split, bool ninja) {
  bench_pair pair = {.count = ninja ? (b->quick ? 1 : 5) : b->samples};
  command compile = {b, chips, split, false, false}, build = {b, chips, split, true, false};
  for (uint32_t i = 0; i < pair.count; i++) {
    if (!bench_command("rm -rf %s/program-%d", bench_folder(), chips)) return false;
    double begun = bench_seconds();
    run_command(&compile);
    if (ninja) {
      begun = bench_seconds();
      run_command(&build);
    }
    pair.weft[i] = bench_seconds() - begun;
  }
  char what[64];
  snprintf(what, sizeof what, "%s, %d chip%s%s%s", ninja ? "ninja" : "weft compile", chips, chips > 1 ? "s" : "",
           *split ? " by " : "", split);
  const char *figure = ninja ? "ninja_64" : "compile_64";
  if (chips != MOST_CHIPS || split != by_columns) figure = NULL;
  bench_report(b, &(bench_row){.figure = figure, .what = what, .unit = "s", .scale = 1}, &pair);
  return !compile.failed && !build.failed;
}

/* ---- its phases ----------------------------------------------------------------------------------------------------
 */

#define PHASES(ROW)                                                                                                    \
  ROW(LIFT, "lift")                                                                                                    \
  ROW(PARTITION, "partition")                                                                                          \
  ROW(LOWER, "lower")                                                                                                  \
  ROW(PROVE, "plan and prove the whole")                                                                               \
  ROW(SPLIT, "split and check")                                                                                        \
  ROW(PROVE_CHIPS, "plan and prove each chip")                                                                         \
  ROW(GENERATE, "generate")
typedef enum phase {
#define ROW(identifier, name) PHASE_##identifier,
  PHASES(ROW)
#undef ROW
      PHASE_COUNT
} phase;
static const char *const phase_names[] = {
#define ROW(identifier, name) name,
    PHASES(ROW)
#undef ROW
};

typedef struct compilation {
  weft_target target;
  weft_program *source, *machine, *planned, *programs[MOST_CHIPS];
  weft_graph *graph, *sharded;
  uint32_t chips;
  char directory[600];
  weft_diag *diag;
} compilation;

static weft_status prove(const weft_program *program, const weft_target *target, weft_program **planned,
                         weft_diag *diag) {
  weft_program *copy = weft_program_clone(program);
  weft_status status = copy ? weft_plan(copy, target, &(weft_options){0}, diag) : WEFT_UNAVAILABLE;
  if (planned)
    *planned = copy;
  else
    weft_program_free(copy);
  return status;
}

typedef struct chip_proofs {
  compilation *c;
  weft_status statuses[MOST_CHIPS];
} chip_proofs;

static void prove_chip(void *context, uint64_t chip) {
  chip_proofs *p = context;
  if (p->c->programs[chip]->stage_count == 0) return;
  p->statuses[chip] = prove(p->c->programs[chip], &p->c->target, NULL, NULL);
}

static weft_status prove_chips(compilation *c) {
  chip_proofs p = {.c = c};
  weft_parallel_for(c->chips, 0, prove_chip, &p);
  for (uint32_t i = 0; i < c->chips; i++)
    if (p.statuses[i] != WEFT_OK) return p.statuses[i];
  return WEFT_OK;
}

static weft_status generate(compilation *c) {
  const weft_codegen_options options = {.paths = {.compiler = "cc",
                                                  .mpi_compiler = "mpicc",
                                                  .include_dir = ".",
                                                  .flags = "",
                                                  .local_libraries = "",
                                                  .mpi_libraries = "",
                                                  .walk_libraries = "",
                                                  .depends = ""}};
  weft_codegen_report report;
  return weft_codegen((const weft_program *const *)c->programs, c->chips, c->directory, &options, &report, c->diag);
}

static weft_status run_phase(compilation *c, phase which) {
  weft_partition_options options = {.split = by_columns};
  char mesh[32];
  weft_status status;
  switch (which) {
  case PHASE_LIFT: return weft_graph_lift(c->source, &c->graph, c->diag);
  case PHASE_PARTITION:
    snprintf(mesh, sizeof mesh, "chip=%u", c->chips);
    status = weft_mesh_parse(mesh, &options.mesh, c->diag);
    return status == WEFT_OK ? weft_partition(c->graph, &options, &c->target, &c->sharded, NULL, c->diag) : status;
  case PHASE_LOWER: return weft_graph_lower(c->sharded, &c->machine, c->diag);
  case PHASE_PROVE: return prove(c->machine, &c->target, &c->planned, c->diag);
  case PHASE_SPLIT:
    status = weft_split(c->machine, c->chips, c->programs, c->diag);
    if (status != WEFT_OK) return status;
    return weft_split_check((const weft_program *const *)c->programs, c->chips, c->diag);
  case PHASE_PROVE_CHIPS: return prove_chips(c);
  default: return generate(c);
  }
}

static void release(compilation *c) {
  for (uint32_t i = 0; i < c->chips; i++) weft_program_free(c->programs[i]);
  weft_program_free(c->planned);
  weft_program_free(c->machine);
  weft_graph_free(c->sharded);
  weft_graph_free(c->graph);
  memset(c->programs, 0, sizeof c->programs);
  c->planned = c->machine = NULL;
  c->graph = c->sharded = NULL;
}

static void show_messages(const weft_diag *diag) {
  for (uint64_t i = 0; i < weft_diag_count(diag); i++)
    fprintf(stderr, "compile: %s\n", weft_diag_message(diag, i)->text);
}

static bool run_phases(bench *b, uint32_t chips) {
  static bench_pair pairs[PHASE_COUNT];
  compilation c = {.chips = chips, .diag = weft_diag_new()};
  char path[600];
  snprintf(path, sizeof path, "%s/digits.json", bench_folder());
  snprintf(c.directory, sizeof c.directory, "%s/phases", bench_folder());
  weft_status status = weft_target_load("cpu", &c.target, c.diag);
  if (status == WEFT_OK) status = weft_program_read_file(path, &c.source, c.diag);
  for (uint32_t i = 0; status == WEFT_OK && i < b->samples; i++) {
    if (!bench_command("rm -rf %s", c.directory)) return false;
    for (phase which = 0; status == WEFT_OK && which < PHASE_COUNT; which++) {
      double begun = bench_seconds();
      status = run_phase(&c, which);
      pairs[which].weft[i] = bench_seconds() - begun;
      pairs[which].count = i + 1;
    }
    release(&c);
  }
  for (phase which = 0; status == WEFT_OK && which < PHASE_COUNT; which++) {
    char what[64];
    snprintf(what, sizeof what, "  %u chips: %s", chips, phase_names[which]);
    bench_report(b, &(bench_row){.what = what, .unit = "ms", .scale = 1e3}, &pairs[which]);
  }
  show_messages(c.diag);
  weft_diag_free(c.diag);
  weft_program_free(c.source);
  return status == WEFT_OK;
}

int main(int argc, char **argv) {
  bench_environment(argv);
  bench b;
  if (!bench_begin(&b, "compile", 0, argc, argv)) return 2;
  const char *folder = bench_folder();
  if (!folder) return 3;
  bool ok =
      bench_command("'%s' new mlp --layers 784,256,256,10 --batch 1000 --dtype fp32 --bias --relu --output logits -o "
                    "%s/digits.json",
                    b.weft, folder);
  bench_heading(&b, "the digits network made a program for many chips", "none", NULL);
  for (int chips = 1; ok && chips <= MOST_CHIPS; chips *= 2)
    if (!b.quick || chips == 4) ok = run_chips(&b, chips, by_columns, false);
  for (int i = 0; ok && !b.quick && i < 2; i++) ok = run_chips(&b, MOST_CHIPS, i ? "rows" : "", false);
  for (int chips = 1; ok && chips <= MOST_CHIPS; chips *= 8)
    if (!b.quick || chips == 1) ok = run_chips(&b, chips, by_columns, true);
  if (ok) ok = run_phases(&b, b.quick ? 4 : MOST_CHIPS);
  int status = bench_end(&b);
  return ok ? status : 3;
}
