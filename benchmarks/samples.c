/* The parts of transformers that `weft new` writes, as users run them: time of a step by chips, the error against numpy
 * in float64, and whether interpreter, evaluator and emitted programs on 1 to 8 chips, by threads and by MPI, give the
 * same bits. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_CHIPS = 8, SIZES = 4, MPI_CHIPS = 2 };

typedef struct sample {
  const char *name, *part; /**< what the table calls it; what the oracle does */
  const char *create;      /**< options of weft new */
  const char *facts;       /**< for the oracle */
  double tolerance;        /**< of the largest value */
  int steps;
  const char *input; /**< a file of data/samples; NULL: random */
} sample;

static const sample samples[] = {
    {"rms norm", "rmsnorm", "rmsnorm --rows 64 --cols 2048", "", 1e-6, 20, NULL},
    {"layer norm", "layernorm", "layernorm --rows 64 --cols 2048", "", 2e-6, 20, NULL},
    {"softmax", "softmax", "softmax --rows 64 --cols 2048", "", 2e-6, 20, NULL},
    {"rotary embedding", "rope", "rope --rows 64 --cols 1024 --heads 8", "heads=8", 1e-6, 20, NULL},
    {"embedding", "embedding", "embedding --rows 64 --cols 1024 --hidden 4096", "", 0, 20, NULL},
    {"attention", "attention", "attention --rows 64 --cols 512 --heads 8 --kv-heads 8", "heads=8 keys=8", 1e-5, 20,
     NULL},
    {"gated mlp", "gated-mlp", "gated-mlp --rows 64 --cols 512 --hidden 1024", "", 1e-6, 20, NULL},
    {"top-1 routing", "route", "route --rows 64 --cols 1024 --hidden 8", "", 1e-6, 20, NULL},
    {"conv ring", "conv", "conv --cols 4096 --rows 1 --hidden 4", "", 1e-6, 20, NULL},
    {"decoder layer", "decoder",
     "decoder --layers 1 --d-model 512 --heads 8 --kv-heads 8 --ffn 1024 --vocab 512 --context 64 --prompt 8",
     "layers=1 heads=8 keys=8", 1e-5, 40, NULL},
    {"decoder of bf16", "decoder",
     "decoder --layers 2 --d-model 512 --heads 8 --kv-heads 8 --ffn 1024 --vocab 512 --context 64 --prompt 8 --dtype "
     "bf16",
     "layers=2 heads=8 keys=8 slack=3e-2", 3e-2, 40, NULL},
    {"tiny language model", "decoder", "decoder", "layers=2 heads=4 keys=2", 1e-5, 95, "tiny-lm.h5"},
};
enum { SAMPLE_COUNT = sizeof samples / sizeof *samples };

/** What is found out about one sample. */
typedef struct findings {
  double seconds[SIZES]; /**< a step on 1, 2, 4, 8 chips */
  double error;          /**< NAN: not known */
  int runs, same;        /**< results compared with the interpreter's; of them equal */
} findings;

/* ---- running -------------------------------------------------------------------------------------------------------
 */

/* The first number that follows `mark` in a line of a command's output, the greatest of all lines. */
static bool greatest_after(const char *command, const char *mark, double *greatest) {
  FILE *output = popen(command, "r");
  char line[1024];
  bool found = false;
  while (output && fgets(line, sizeof line, output)) {
    const char *at = strstr(line, mark);
    double value;
    if (!at || sscanf(at + strlen(mark), "%lf", &value) != 1) continue;
    if (!found || value > *greatest) *greatest = value;
    found = true;
  }
  return output && pclose(output) == 0 && found;
}

static void compare_bits(const bench *b, const char *file, findings *f) {
  f->runs++;
  f->same += bench_command("'%s' diff %s/%s %s/graph.h5 --max-ulp 0", b->weft, bench_folder(), file, bench_folder());
}

static bool prepare(const bench *b, const sample *s, findings *f) {
  const char *folder = bench_folder();
  if (!bench_command("'%s' new %s -o %s/part.json", b->weft, s->create, folder)) return false;
  bool made = s->input ? bench_command("cp '%s/data/samples/%s' %s/part.h5", WEFT_BENCH_SOURCE, s->input, folder)
                       : bench_command("'%s' tensor make --program %s/part.json --seed 7 -o %s/part.h5", b->weft,
                                       folder, folder);
  if (!made) return false;
  static const char *const ways[] = {"graph", "schedule"};
  for (int i = 0; i < 2; i++)
    if (!bench_command("cd %s && '%s' eval part.json --%s --steps %d --in part.h5 --out %s.h5", folder, b->weft,
                       ways[i], s->steps, ways[i]))
      return false;
  compare_bits(b, "schedule.h5", f);
  return true;
}

/* The oracle needs python with numpy and h5py; without them, or without the source, nothing is said about the error. */
static void find_error(const sample *s, findings *f) {
  char command[1500];
  snprintf(command, sizeof command,
           "cd %s && /usr/bin/python3 '%s/tests/tools/parts_oracle.py' %s part.h5 graph.h5 %g %s steps=%d 2>&1",
           bench_folder(), WEFT_BENCH_SOURCE, s->part, s->tolerance, s->facts, s->steps);
  if (!greatest_after(command, "largest error ", &f->error)) f->error = NAN;
}

static bool run_on(const bench *b, const sample *s, int size, findings *f) {
  const int chips = 1 << size;
  const char *folder = bench_folder();
  char command[1500];
  if (!bench_command("cd %s && rm -rf out && '%s' compile part.json --chips %d -o out && ninja -C out", folder, b->weft,
                     chips))
    return false;
  double best = 0;
  for (uint32_t i = 0; i < (b->quick ? 1 : 3); i++) {
    snprintf(command, sizeof command,
             "cd %s && OMP_NUM_THREADS=2 out/run-local --in part.h5 --out result.h5 --steps %d --stats 2> errors.txt",
             folder, s->steps);
    double seconds;
    if (!greatest_after(command, " s: ", &seconds)) return false;
    best = i == 0 || seconds < best ? seconds : best;
  }
  f->seconds[size] = best;
  compare_bits(b, "result.h5", f);
  if (chips != MPI_CHIPS) return true;
  if (!bench_command("cd %s && %s -n %d --oversubscribe --bind-to none %s out/run --in part.h5 --out mpi.h5 --steps %d",
                     folder, WEFT_BENCH_MPIEXEC, chips, geteuid() == 0 ? "--allow-run-as-root" : "", s->steps))
    return false;
  compare_bits(b, "mpi.h5", f);
  return true;
}

/* ---- the table -----------------------------------------------------------------------------------------------------
 */

static void row(bench *b, const char *name, const char *what, const char *unit, const char *figure, double value) {
  char text[80];
  snprintf(text, sizeof text, "%s: %s", name, what);
  bench_pair pair = {.count = 1, .weft = {value}};
  bench_report(b, &(bench_row){.figure = figure, .what = text, .unit = unit, .scale = 1, .silent = true}, &pair);
}

static void show(bench *b, const sample *s, const findings *f) {
  printf("  %-20s", s->name);
  for (int size = 0; size < SIZES; size++) {
    char what[40];
    snprintf(what, sizeof what, "a step on %d chip%s", 1 << size, size ? "s" : "");
    row(b, s->name, what, "us", NULL, 1e6 * f->seconds[size]);
    printf(" %9.1f", 1e6 * f->seconds[size]);
  }
  char error[64] = "         not known";
  if (!isnan(f->error)) {
    snprintf(error, sizeof error, "%8.1e (%.0e)", f->error, s->tolerance);
    row(b, s->name, "error", "of the largest", NULL, f->error);
  }
  row(b, s->name, "runs that differ", "runs", NULL, f->runs - f->same);
  printf("  %18s  %d of %d\n", error, f->same, f->runs);
  fflush(stdout);
}

int main(int argc, char **argv) {
  bench_environment(argv);
  bench b;
  if (!bench_begin(&b, "samples", 0, argc, argv)) return 2;
  if (!bench_folder()) return 3;
  bench_heading(&b, "sample programs, emitted, threads of one process", "numpy in float64, for the error", NULL);
  printf("  %-20s %9s %9s %9s %9s  %18s  %s\n", "us a step on", "1 chip", "2 chips", "4 chips", "8 chips",
         "error (allowed)", "runs with the interpreter's bits");
  bool ok = true;
  double differ = 0, excess = 0;
  for (size_t i = 0; ok && i < SAMPLE_COUNT; i++) {
    if (b.quick && i != 2 && i != 9) continue;
    findings f = {.error = NAN};
    ok = prepare(&b, &samples[i], &f);
    if (ok) find_error(&samples[i], &f);
    for (int size = 0; ok && size < SIZES; size++) ok = run_on(&b, &samples[i], size, &f);
    if (!ok) break;
    show(&b, &samples[i], &f);
    differ += f.runs - f.same;
    if (samples[i].tolerance > 0 && !isnan(f.error))
      excess = fmax(excess, f.error / samples[i].tolerance);
    else if (!isnan(f.error) && f.error > 0)
      excess = INFINITY;
  }
  if (ok) row(&b, "all", "runs that differ", "runs", "samples_bits", differ);
  if (ok) row(&b, "all", "largest error over the allowed", "1", "samples_error", excess);
  if (!ok) bench_command("cat %s/errors.txt; false", bench_folder());
  int status = bench_end(&b);
  return ok ? status : 3;
}
