/* One step of the digits network (784-256-256-10, batch 1000) as users run it: the emitted program with its tensors in
 * memory, beside the three products alone as OpenBLAS computes them; by chips, with the share of communication. */
#include "bench.h"

#include "weft/tensor_file.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 1000, LAYERS = 3 };
static const uint64_t widths[LAYERS + 1] = {784, 256, 256, 10};

typedef struct step_case {
  const char *figure;
  int chips, threads; /**< threads of the peer; a program of one chip has as many */
  const char *split;  /**< NULL for one chip */
} step_case;

static const step_case cases[] = {
    {"digits_step", 1, 2, NULL}, {NULL, 1, 1, NULL},      {NULL, 2, 2, "columns"}, {NULL, 2, 2, "rows"},
    {NULL, 2, 2, "batch"},       {NULL, 4, 2, "columns"}, {NULL, 4, 2, "rows"},    {NULL, 4, 2, "batch"},
};

/* ---- the peer ------------------------------------------------------------------------------------------------------
 */

typedef struct layers {
  float *values[LAYERS + 1], *weights[LAYERS];
} layers;

static void layers_make(layers *l) {
  for (uint64_t i = 0; i <= LAYERS; i++) {
    l->values[i] = bench_memory(BATCH * widths[i] * sizeof(float));
    bench_fill(l->values[i], BATCH * widths[i], i + 1);
  }
  for (uint64_t i = 0; i < LAYERS; i++) {
    l->weights[i] = bench_memory(widths[i] * widths[i + 1] * sizeof(float));
    bench_fill(l->weights[i], widths[i] * widths[i + 1], i + 10);
  }
}

static void layers_run(const layers *l) {
  for (int i = 0; i < LAYERS; i++) {
    int k = (int)widths[i], n = (int)widths[i + 1];
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, BATCH, n, k, 1, l->values[i], k, l->weights[i], n, 0,
                l->values[i + 1], n);
  }
}

/* ---- the program ---------------------------------------------------------------------------------------------------
 */

static bool make_tensors(const char *path) {
  weft_array_set set = {0};
  const uint64_t batch[] = {BATCH, widths[0]};
  weft_array *x = weft_array_set_add(&set, "x", WEFT_FP32, 2, batch);
  if (x) bench_fill(x->data, BATCH * widths[0], 1);
  for (uint64_t i = 0; i < LAYERS; i++) {
    char name[8];
    snprintf(name, sizeof name, "w%d", (int)i + 1);
    weft_array *w = weft_array_set_add(&set, name, WEFT_FP32, 2, &widths[i]);
    if (w) bench_fill(w->data, widths[i] * widths[i + 1], i + 10);
    name[0] = 'b';
    weft_array *bias = weft_array_set_add(&set, name, WEFT_FP32, 1, &widths[i + 1]);
    if (bias) bench_fill(bias->data, widths[i + 1], i + 20);
  }
  weft_diag *diag = weft_diag_new();
  bool ok = weft_array_set_write(path, &set, diag) == WEFT_OK;
  weft_array_set_free(&set);
  weft_diag_free(diag);
  return ok;
}

static bool build(const bench *b, const step_case *c) {
  const char *folder = bench_folder();
  return bench_command("cd %s && '%s' compile digits.json --chips %d %s %s -o program && ninja -C program", folder,
                       b->weft, c->chips, c->split ? "--split" : "", c->split ? c->split : "");
}

typedef struct outcome {
  double seconds, communication;
} outcome;

/* Seconds a step, and percent of the chips' time, as --stats says. */
static bool run_program(const step_case *c, int steps, outcome *result) {
  char command[2000];
  const char *folder = bench_folder();
  if (c->chips == 1)
    snprintf(command, sizeof command,
             "OMP_NUM_THREADS=%d %s/program/run-local --in %s/digits.h5 --out %s/result.h5 --steps %d --stats 2> "
             "%s/errors.txt",
             c->threads, folder, folder, folder, steps, folder);
  else
    snprintf(command, sizeof command,
             "OMP_NUM_THREADS=1 %s -n %d --oversubscribe --bind-to none %s %s/program/run --in %s/digits.h5 --out "
             "%s/result.h5 --steps %d --stats 2> %s/errors.txt",
             WEFT_BENCH_MPIEXEC, c->chips, geteuid() == 0 ? "--allow-run-as-root" : "", folder, folder, folder, steps,
             folder);
  FILE *output = popen(command, "r");
  char line[512];
  bool found = false;
  while (output && fgets(line, sizeof line, output)) {
    const char *seconds = strstr(line, " s: "), *share = strstr(line, "communication ");
    if (seconds && share && sscanf(seconds, " s: %lf s a run", &result->seconds) == 1 &&
        sscanf(share, "communication %lf%%", &result->communication) == 1)
      found = true;
  }
  return output && pclose(output) == 0 && found;
}

static double run_peer(const bench *b, const layers *l, const step_case *c, int steps) {
  openblas_set_num_threads(c->threads);
  if (c->threads > 1) usleep((useconds_t)(b->rest * 1e6));
  double begun = bench_seconds();
  for (int i = 0; i < steps; i++) layers_run(l);
  return (bench_seconds() - begun) / steps;
}

/* Both sides are means over many steps: the program's own clock gives no other. */
static bool run_case(bench *b, const step_case *c, const layers *l) {
  bench_pair pair = {.count = b->samples}, share = {.count = b->samples};
  char what[80];
  if (!build(b, c)) return false;
  int steps = b->quick ? 5 : 300;
  for (uint32_t i = 0; i < b->samples; i++) {
    outcome result;
    if (!run_program(c, steps, &result)) {
      bench_command("cat %s/errors.txt; false", bench_folder());
      return false;
    }
    pair.weft[i] = result.seconds;
    share.weft[i] = result.communication;
    pair.peer[i] = run_peer(b, l, c, steps);
  }
  int threads = c->chips > 1 ? 1 : c->threads;
  snprintf(what, sizeof what, "digits on %d chip%s%s%s of %d thread%s", c->chips, c->chips > 1 ? "s" : "",
           c->split ? " by " : "", c->split ? c->split : "", threads, threads > 1 ? "s" : "");
  bench_report(b,
               &(bench_row){.figure = c->figure,
                            .what = what,
                            .peer = c->threads > 1 ? "3 sgemm, 2 threads" : "3 sgemm, 1 thread",
                            .unit = "ms",
                            .scale = 1e3},
               &pair);
  snprintf(what, sizeof what, "  share of communication by %s", c->split ? c->split : "");
  if (c->chips > 1) bench_report(b, &(bench_row){.what = what, .unit = "%", .scale = 1}, &share);
  return true;
}

int main(int argc, char **argv) {
  bench_environment(argv);
  bench b;
  if (!bench_begin(&b, "step", 0, argc, argv)) return 2;
  const char *folder = bench_folder();
  char path[600], peers[100];
  if (!folder) return 3;
  snprintf(path, sizeof path, "%s/digits.h5", folder);
  snprintf(peers, sizeof peers, "three products of the same shapes by OpenBLAS %s, without bias and ReLU",
           openblas_get_corename());
  bool ok =
      make_tensors(path) &&
      bench_command("cd %s && '%s' new mlp --layers 784,256,256,10 --batch 1000 --dtype fp32 --bias --relu --output "
                    "logits -o digits.json",
                    folder, b.weft);
  layers l;
  layers_make(&l);
  bench_heading(&b, "one step of the digits network, batch 1000, emitted program", peers, NULL);
  for (size_t i = 0; ok && i < sizeof cases / sizeof *cases; i++)
    if (!b.quick || i < 3) ok = run_case(&b, &cases[i], &l);
  int status = bench_end(&b);
  return ok ? status : 3;
}
