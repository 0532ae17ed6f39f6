/* A matrix product on several ranks: by columns and with K split, beside the same ranks' local products alone and
 * beside ScaLAPACK. mpirun -n 2.
 *
 * By columns a rank has half of the columns of x, as the layer before left them, and gets the others; with K split a
 * rank multiplies what it has, and the partials are all-reduced. */
#include "bench.h"
#include "chip_program.h"

#include "weft/program_run.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 2, PEER_PARAMETER = 1, REDUCE_PARAMETER = 2 };
/* The three sides take turns of some calls; the first call of a turn only brings its operands back into the caches. */
enum { TURN = 4, MOST_TURNS = BENCH_MOST_SAMPLES, MOST_CALLS = TURN * MOST_TURNS };

/* ---- ScaLAPACK -----------------------------------------------------------------------------------------------------
 */

void Cblacs_pinfo(int *rank, int *ranks);
void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int cols);
void Cblacs_gridinfo(int context, int *rows, int *cols, int *row, int *col);
void Cblacs_gridexit(int context);
int numroc_(const int *n, const int *block, const int *rank, const int *first, const int *ranks);
void descinit_(int *descriptor, const int *m, const int *n, const int *row_block, const int *col_block, const int *row0,
               const int *col0, const int *context, const int *lead, int *info);
void psgemm_(const char *, const char *, const int *m, const int *n, const int *k, const float *alpha, const float *a,
             const int *, const int *, const int *, const float *b, const int *, const int *, const int *,
             const float *beta, float *c, const int *, const int *, const int *);

typedef struct scalapack {
  int n, context, descriptor[9];
  int rows, cols, block;
  float *a, *b, *c;
} scalapack;

static void scalapack_open(scalapack *s, int n, int rows, int cols, int block) {
  *s = (scalapack){.n = n, .rows = rows, .cols = cols, .block = block};
  Cblacs_get(-1, 0, &s->context);
  Cblacs_gridinit(&s->context, "Row", rows, cols);
  int row, col, zero = 0, info;
  Cblacs_gridinfo(s->context, &rows, &cols, &row, &col);
  int local_rows = numroc_(&n, &block, &row, &zero, &rows), local_cols = numroc_(&n, &block, &col, &zero, &cols);
  if (local_rows < 1) local_rows = 1; /* a rank without rows */
  descinit_(s->descriptor, &n, &n, &block, &block, &zero, &zero, &s->context, &local_rows, &info);
  size_t count = (size_t)local_rows * (size_t)local_cols;
  float **matrices[] = {&s->a, &s->b, &s->c};
  for (uint64_t i = 0; i < 3; i++) {
    *matrices[i] = bench_memory(count * sizeof(float));
    bench_fill(*matrices[i], count, i + 1);
  }
}

static void scalapack_close(scalapack *s) {
  free(s->a);
  free(s->b);
  free(s->c);
  Cblacs_gridexit(s->context);
}

static double scalapack_run(const scalapack *s) {
  const float alpha = 1, beta = 0;
  const int one = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  double begun = bench_seconds();
  psgemm_("N", "N", &s->n, &s->n, &s->n, &alpha, s->a, &one, &one, s->descriptor, s->b, &one, &one, s->descriptor,
          &beta, s->c, &one, &one, s->descriptor);
  return bench_seconds() - begun;
}

/* The grid and block size that are best here. */
static void scalapack_choose(scalapack *best, int n) {
  static const int choices[][3] = {{1, 2, 64}, {1, 2, 128}, {1, 2, 256}, {2, 1, 64}, {2, 1, 128}, {2, 1, 256}};
  double least = 0;
  int chosen = 0;
  for (int i = 0; i < (int)(sizeof choices / sizeof *choices); i++) {
    scalapack s;
    scalapack_open(&s, n, choices[i][0], choices[i][1], choices[i][2]);
    double times[3], slowest[3];
    scalapack_run(&s);
    for (int t = 0; t < 3; t++) times[t] = scalapack_run(&s);
    MPI_Allreduce(times, slowest, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    double median = bench_median(slowest, 3);
    if (i == 0 || median < least) {
      least = median;
      chosen = i;
    }
    scalapack_close(&s);
  }
  scalapack_open(best, n, choices[chosen][0], choices[chosen][1], choices[chosen][2]);
}

/* ---- weft ----------------------------------------------------------------------------------------------------------
 */

typedef struct measured {
  bool columns;
  weft_abi_copy copies[RANKS];
  weft_abi_product product;
  scalapack peer;
  uint32_t call;
  double begun;
  double weft[MOST_CALLS], local[MOST_CALLS], scalapack[MOST_CALLS];
} measured;

static void start(weft_chip *chip, const int64_t *parameters, const int64_t *slots) {
  (void)slots;
  (void)chip;
  measured *m = chip_context(parameters);
  MPI_Barrier(MPI_COMM_WORLD);
  m->begun = bench_seconds();
}

static void multiply(weft_chip *chip, const int64_t *parameters, const int64_t *slots) {
  (void)slots;
  const measured *m = chip_context(parameters);
  if (m->columns) weft_copy(chip, m->copies, RANKS);
  weft_product(chip, &m->product);
}

static double local_run(weft_chip *chip, const measured *m) {
  MPI_Barrier(MPI_COMM_WORLD);
  double begun = bench_seconds();
  weft_product(chip, &m->product);
  return bench_seconds() - begun;
}

static void finish(weft_chip *chip, const int64_t *parameters, const int64_t *slots) {
  (void)slots;
  measured *m = chip_context(parameters);
  m->weft[m->call++] = bench_seconds() - m->begun;
  if (m->call % TURN != 0) return;
  for (uint32_t i = m->call - TURN; i < m->call; i++) m->local[i] = local_run(chip, m);
  for (uint32_t i = m->call - TURN; i < m->call; i++) m->scalapack[i] = scalapack_run(&m->peer);
}

static void make_columns(chip_program *p, measured *m, uint64_t n, uint32_t rank, weft_abi_link *link,
                         weft_abi_crossing *crossings) {
  int64_t mine = chip_tensor(p, "x", WEFT_FP32, n, n / RANKS), other = chip_result(p, "other", WEFT_FP32, n, n / RANKS);
  int64_t whole = chip_result(p, "whole", WEFT_FP32, n, n), w = chip_tensor(p, "w", WEFT_FP32, n, n / RANKS);
  int64_t y = chip_result(p, "y", WEFT_FP32, n, n / RANKS);
  crossings[0] = (weft_abi_crossing){.tensor = mine, .peer = PEER_PARAMETER};
  crossings[1] = (weft_abi_crossing){.tensor = other, .peer = PEER_PARAMETER};
  *link = (weft_abi_link){.sends = &crossings[0], .send_count = 1, .receives = &crossings[1], .receive_count = 1};
  for (uint32_t c = 0; c < RANKS; c++) *chip_parameter(p, c, PEER_PARAMETER) = 1 - (int64_t)c;
  uint64_t half = n / RANKS;
  m->copies[0] = (weft_abi_copy){.from = mine, .to = whole, .to_col = rank * half, .rows = n, .cols = half};
  m->copies[1] = (weft_abi_copy){.from = other, .to = whole, .to_col = (1 - rank) * half, .rows = n, .cols = half};
  m->product = chip_product(p, whole, w, y);
  chip_step(p, WEFT_STEP_SECTION, "start", CHIP_LIST(), CHIP_LIST())->section = start;
  chip_step(p, WEFT_STEP_LINK, "link", CHIP_LIST(mine), CHIP_LIST(other))->link = link;
  chip_step(p, WEFT_STEP_SECTION, "multiply", CHIP_LIST(mine, other, w), CHIP_LIST(whole, y))->section = multiply;
  chip_step(p, WEFT_STEP_SECTION, "finish", CHIP_LIST(y), CHIP_LIST())->section = finish;
}

static void make_rows(chip_program *p, measured *m, uint64_t n, weft_abi_all_reduce *reduce) {
  static const uint32_t first[RANKS] = {0, 1}, count[RANKS] = {1, 1};
  int64_t x = chip_tensor(p, "x", WEFT_FP32, n, n / RANKS), w = chip_tensor(p, "w", WEFT_FP32, n / RANKS, n);
  int64_t partial = chip_result(p, "partial", WEFT_FP32, n, n), y = chip_result(p, "y", WEFT_FP32, n, n);
  m->product = chip_product(p, x, w, partial);
  m->product.segments = weft_segments_for(n) / RANKS;
  *reduce = (weft_abi_all_reduce){.out = y, .pool = WEFT_POOL_SUM, .format = WEFT_FP32, .rows = n, .cols = n};
  reduce->of = reduce->node_count = reduce->reader_count = RANKS;
  reduce->first = first;
  reduce->count = count;
  reduce->node_chip = reduce->reader_chip = REDUCE_PARAMETER;
  reduce->node_slot = REDUCE_PARAMETER + RANKS;
  for (uint32_t c = 0; c < RANKS; c++)
    for (uint32_t i = 0; i < RANKS; i++) {
      *chip_parameter(p, c, REDUCE_PARAMETER + i) = i;
      *chip_parameter(p, c, REDUCE_PARAMETER + RANKS + i) = i == c ? partial : -1;
    }
  chip_step(p, WEFT_STEP_SECTION, "start", CHIP_LIST(), CHIP_LIST())->section = start;
  chip_step(p, WEFT_STEP_SECTION, "multiply", CHIP_LIST(x, w), CHIP_LIST(partial))->section = multiply;
  chip_step(p, WEFT_STEP_ALL_REDUCE, "reduce", CHIP_LIST(partial), CHIP_LIST(y))->all_reduce = reduce;
  chip_step(p, WEFT_STEP_SECTION, "finish", CHIP_LIST(y), CHIP_LIST())->section = finish;
}

/* ---- a case --------------------------------------------------------------------------------------------------------
 */

static void report(bench *b, const measured *m, const double *peer, uint64_t n, const char *figure, const char *name) {
  char what[64];
  bench_pair pair;
  snprintf(what, sizeof what, "fp32 %d by %s on %d ranks", (int)n, m->columns ? "columns" : "K split", RANKS);
  pair.count = m->call / TURN;
  for (uint32_t i = 0; i < pair.count; i++) {
    double sides[2][TURN];
    memcpy(sides[0], m->weft + i * TURN, sizeof sides[0]);
    memcpy(sides[1], peer + i * TURN, sizeof sides[1]);
    pair.weft[i] = bench_median(sides[0] + 1, TURN - 1);
    pair.peer[i] = bench_median(sides[1] + 1, TURN - 1);
  }
  bench_report(b,
               &(bench_row){.figure = figure,
                            .what = what,
                            .peer = name,
                            .unit = "GFLOP/s",
                            .amount = 2e-9 * (double)n * (double)n * (double)n},
               &pair);
}

static void run_case(bench *b, uint64_t n, bool columns, uint32_t rank) {
  static chip_program p;
  static measured m;
  m = (measured){.columns = columns};
  scalapack_choose(&m.peer, (int)n);
  weft_abi_link link;
  weft_abi_crossing crossings[2];
  weft_abi_all_reduce reduce;
  chip_program_begin(&p, columns ? "columns" : "rows", RANKS, &m);
  if (columns)
    make_columns(&p, &m, n, rank, &link, crossings);
  else
    make_rows(&p, &m, n, &reduce);
  uint64_t calls = b->samples * TURN;
  weft_array_set inputs = {0}, outputs = {0};
  bench_hush();
  int code = weft_program_run_steps_mpi(&p.program, MPI_COMM_WORLD, calls, &inputs, &outputs);
  bench_hear(code != 0);
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, 3);
  weft_array_set_free(&outputs);
  double *const times[] = {m.weft, m.local, m.scalapack};
  for (int i = 0; i < 3; i++) MPI_Allreduce(MPI_IN_PLACE, times[i], (int)calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  char figure[40], name[40];
  snprintf(figure, sizeof figure, "%s_%d", columns ? "columns" : "rows", (int)n);
  report(b, &m, m.local, n, figure, "local products");
  strcat(figure, "_scalapack");
  snprintf(name, sizeof name, "ScaLAPACK %dx%d/%d", m.peer.rows, m.peer.cols, m.peer.block);
  report(b, &m, m.scalapack, n, figure, name);
  scalapack_close(&m.peer);
}

int main(int argc, char **argv) {
  bench_environment(argv);
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  bench b;
  if (!bench_begin(&b, "distributed", (uint32_t)rank, argc, argv)) MPI_Abort(MPI_COMM_WORLD, 2);
  if (ranks != RANKS) {
    if (rank == 0) fprintf(stderr, "%s: needs mpirun -n %d\n", argv[0], RANKS);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  openblas_set_num_threads(1);
  char peers[100];
  snprintf(peers, sizeof peers, "the same ranks' local products; ScaLAPACK's best grid and block on OpenBLAS %s",
           openblas_get_corename());
  bench_heading(&b, "one product on two ranks of one thread", peers, chip_kernels());
  for (int i = 0; i < (b.quick ? 1 : 2); i++) {
    uint64_t n = b.quick ? 256 : i == 0 ? 1024 : 2048;
    run_case(&b, n, true, (uint32_t)rank);
    run_case(&b, n, false, (uint32_t)rank);
  }
  int status = bench_end(&b);
  MPI_Finalize();
  return status;
}
