/* All-reduce in tree order beside MPI_Allreduce. mpirun -n 2 or 4. */
#include "bench.h"
#include "chip_program.h"

#include "weft/program_run.h"

#include <stdlib.h>
#include <string.h>

typedef struct size_case {
  const char *figure; /**< on 2 ranks */
  const char *name;
  uint64_t bytes;
  uint32_t row; /**< all-reduces between two looks at the clock: small ones are shorter than a barrier is exact */
  uint32_t calls;
} size_case;

static const size_case cases[] = {
    {"reduce_1k", "1 KiB", 1 << 10, 16, 660},   {NULL, "16 KiB", 16 << 10, 8, 660},
    {"reduce_64k", "64 KiB", 64 << 10, 1, 660}, {"reduce_1m", "1 MiB", 1 << 20, 1, 220},
    {"reduce_16m", "16 MiB", 16 << 20, 1, 44},
};
enum { MOST_CALLS = 660, MOST_RANKS = CHIP_CHIPS };

typedef struct measured {
  const size_case *c;
  uint32_t calls, call;
  weft_abi_copy produce;
  double begun;
  double weft[MOST_CALLS], peer[MOST_CALLS];
  float *source, *partial, *result;
} measured;

/* Both sides find the partial just written. */
static void produce(weft_chip *chip, const int64_t *parameters, const int64_t *slots) {
  (void)slots;
  const measured *m = chip_context(parameters);
  weft_copy(chip, &m->produce, 1);
}

static void start(weft_chip *chip, const int64_t *parameters, const int64_t *slots) {
  (void)slots;
  (void)chip;
  measured *m = chip_context(parameters);
  MPI_Barrier(MPI_COMM_WORLD);
  m->begun = bench_seconds();
}

static void finish(weft_chip *chip, const int64_t *parameters, const int64_t *slots) {
  (void)slots;
  (void)chip;
  measured *m = chip_context(parameters);
  m->weft[m->call] = (bench_seconds() - m->begun) / m->c->row;
  memcpy(m->partial, m->source, m->c->bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  double begun = bench_seconds();
  for (uint32_t i = 0; i < m->c->row; i++)
    MPI_Allreduce(m->partial, m->result, (int)(m->c->bytes / sizeof(float)), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  m->peer[m->call++] = (bench_seconds() - begun) / m->c->row;
}

/* Node i is chip i's partial; every chip reads the result. */
static void fill_parameters(chip_program *p, weft_abi_all_reduce *reduce, uint32_t ranks, int64_t slot) {
  reduce->node_chip = 1;
  reduce->node_slot = 1 + ranks;
  reduce->reader_chip = 1 + 2 * ranks;
  for (uint32_t c = 0; c < ranks; c++)
    for (uint32_t i = 0; i < ranks; i++) {
      *chip_parameter(p, c, 1 + i) = i;
      *chip_parameter(p, c, 1 + ranks + i) = i == c ? slot : -1;
      *chip_parameter(p, c, 1 + 2 * ranks + i) = i;
    }
}

static void run_case(bench *b, const size_case *c, uint32_t ranks) {
  static chip_program p;
  static measured m;
  uint32_t first[MOST_RANKS], count[MOST_RANKS];
  for (uint32_t i = 0; i < ranks; i++) first[i] = i, count[i] = 1;
  m = (measured){.c = c, .calls = b->quick ? 6 : c->calls};
  m.source = bench_memory(c->bytes);
  m.partial = bench_memory(c->bytes);
  m.result = bench_memory(c->bytes);
  uint64_t rows = c->bytes / 1024, cols = 256;
  chip_program_begin(&p, c->name, ranks, &m);
  int64_t source = chip_tensor(&p, "source", WEFT_FP32, rows, cols);
  int64_t partial = chip_result(&p, "partial", WEFT_FP32, rows, cols);
  int64_t result = chip_result(&p, "result", WEFT_FP32, rows, cols);
  weft_abi_all_reduce reduce = {.out = result, .pool = WEFT_POOL_SUM, .format = WEFT_FP32, .rows = rows, .cols = cols};
  reduce.of = reduce.node_count = reduce.reader_count = ranks;
  reduce.first = first;
  reduce.count = count;
  fill_parameters(&p, &reduce, ranks, partial);
  m.produce = (weft_abi_copy){.from = source, .to = partial, .rows = rows, .cols = cols};
  chip_step(&p, WEFT_STEP_SECTION, "produce", CHIP_LIST(source), CHIP_LIST(partial))->section = produce;
  chip_step(&p, WEFT_STEP_SECTION, "start", CHIP_LIST(), CHIP_LIST())->section = start;
  for (uint32_t i = 0; i < c->row; i++)
    chip_step(&p, WEFT_STEP_ALL_REDUCE, "reduce", CHIP_LIST(partial), CHIP_LIST(result))->all_reduce = &reduce;
  chip_step(&p, WEFT_STEP_SECTION, "finish", CHIP_LIST(result), CHIP_LIST())->section = finish;
  weft_array_set inputs = {0}, outputs = {0};
  bench_hush();
  int code = weft_program_run_steps_mpi(&p.program, MPI_COMM_WORLD, m.calls, &inputs, &outputs);
  bench_hear(code != 0);
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, 3);
  weft_array_set_free(&outputs);
  /* It is over when the last rank has the result. */
  double weft[MOST_CALLS], peer[MOST_CALLS];
  MPI_Reduce(m.weft, weft, (int)m.calls, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(m.peer, peer, (int)m.calls, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (b->speaks) {
    bench_pair pair;
    char what[64];
    snprintf(what, sizeof what, "sum of %s of floats on %u ranks", c->name, ranks);
    bench_gather(b, weft, peer, m.calls, &pair);
    bench_report(
        b,
        &(bench_row){
            .figure = ranks == 2 ? c->figure : NULL, .what = what, .peer = "MPI_Allreduce", .unit = "us", .scale = 1e6},
        &pair);
  }
  free(m.source);
  free(m.partial);
  free(m.result);
}

int main(int argc, char **argv) {
  bench_environment(argv);
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  bench b;
  if (!bench_begin(&b, "allreduce", (uint32_t)rank, argc, argv) || ranks > MOST_RANKS) MPI_Abort(MPI_COMM_WORLD, 2);
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(version, &length);
  version[strcspn(version, ",\n")] = 0;
  bench_heading(&b, "sums over ranks of one host, in the fixed order of the tree", version, NULL);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) run_case(&b, &cases[i], (uint32_t)ranks);
  int status = bench_end(&b);
  MPI_Finalize();
  return status;
}
