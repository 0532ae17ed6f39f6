/* Matrix products of the runtime beside OpenBLAS and BLIS, and a layer of one row beside reading its weights. */
#include "bench.h"
#include "chip_program.h"

#include "chip_private.h"

#include <cblas.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef struct product_case {
  const char *figure;
  uint64_t m, n, k;
  weft_format format;
  int threads;
  bool epilogue; /**< bias and ReLU */
  enum { TO_OPENBLAS, TO_BLIS, TO_WEFT_FP32, TO_MEMORY, TO_PEAK } peer;
} product_case;

static const product_case cases[] = {
    {"sgemm_512_1", 512, 512, 512, WEFT_FP32, 1, false, TO_OPENBLAS},
    {"sgemm_1024_1", 1024, 1024, 1024, WEFT_FP32, 1, false, TO_OPENBLAS},
    {"sgemm_2048_1", 2048, 2048, 2048, WEFT_FP32, 1, false, TO_OPENBLAS},
    {"sgemm_512_2", 512, 512, 512, WEFT_FP32, 2, false, TO_OPENBLAS},
    {"sgemm_1024_2", 1024, 1024, 1024, WEFT_FP32, 2, false, TO_OPENBLAS},
    {"sgemm_2048_2", 2048, 2048, 2048, WEFT_FP32, 2, false, TO_OPENBLAS},
    {NULL, 512, 512, 512, WEFT_FP32, 1, false, TO_PEAK},
    {NULL, 512, 512, 512, WEFT_FP32, 2, false, TO_PEAK},
    {NULL, 512, 512, 512, WEFT_FP32, 1, false, TO_BLIS},
    {NULL, 1024, 1024, 1024, WEFT_FP32, 1, false, TO_BLIS},
    {NULL, 2048, 2048, 2048, WEFT_FP32, 1, false, TO_BLIS},
    {NULL, 512, 512, 512, WEFT_FP32, 2, false, TO_BLIS},
    {NULL, 1024, 1024, 1024, WEFT_FP32, 2, false, TO_BLIS},
    {NULL, 2048, 2048, 2048, WEFT_FP32, 2, false, TO_BLIS},
    {NULL, 128, 128, 128, WEFT_FP32, 1, false, TO_OPENBLAS},
    {NULL, 256, 256, 256, WEFT_FP32, 1, false, TO_OPENBLAS},
    {NULL, 256, 256, 256, WEFT_FP32, 2, false, TO_OPENBLAS},
    {NULL, 1000, 256, 784, WEFT_FP32, 2, false, TO_OPENBLAS},
    {NULL, 1000, 256, 784, WEFT_FP32, 2, true, TO_OPENBLAS},
    {NULL, 1000, 256, 256, WEFT_FP32, 2, true, TO_OPENBLAS},
    {NULL, 1000, 10, 256, WEFT_FP32, 2, true, TO_OPENBLAS},
    {NULL, 16, 4096, 4096, WEFT_FP32, 2, false, TO_OPENBLAS},
    {"bf16_1024", 1024, 1024, 1024, WEFT_BF16, 1, false, TO_WEFT_FP32},
    {NULL, 1024, 1024, 1024, WEFT_BF16, 2, false, TO_WEFT_FP32},
    {"int8_1024", 1024, 1024, 1024, WEFT_INT8, 1, false, TO_OPENBLAS},
    {NULL, 1024, 1024, 1024, WEFT_INT8, 2, false, TO_OPENBLAS},
    {"batch1_1", 1, 4096, 4096, WEFT_FP32, 1, false, TO_MEMORY},
    {"batch1_2", 1, 4096, 4096, WEFT_FP32, 2, false, TO_MEMORY},
    {NULL, 1, 4096, 4096, WEFT_FP32, 2, false, TO_OPENBLAS},
};

/* ---- peers ---------------------------------------------------------------------------------------------------------
 */

typedef struct operands {
  uint64_t m, n, k;
  float *a, *b, *c;
} operands;

static void run_openblas(void *context) {
  const operands *o = context;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)o->m, (int)o->n, (int)o->k, 1, o->a, (int)o->k, o->b,
              (int)o->n, 0, o->c, (int)o->n);
}

/* BLIS is opened beside OpenBLAS: both have functions of the same names. */
typedef struct blis_library {
  void (*sgemm)(const char *, const char *, const int *, const int *, const int *, const float *, const float *,
                const int *, const float *, const int *, const float *, float *, const int *);
  void (*set_threads)(int64_t);
  const char *(*version)(void);
} blis_library;
static blis_library blis;

#ifdef WEFT_BENCH_BLIS
static void *symbol(void *library, const char *name) { return library ? dlsym(library, name) : NULL; }
#endif

static void open_blis(void) {
#ifdef WEFT_BENCH_BLIS
  void *library = dlopen(WEFT_BENCH_BLIS, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  void *found[] = {symbol(library, "sgemm_"), symbol(library, "bli_thread_set_num_threads"),
                   symbol(library, "bli_info_get_version_str")};
  if (!found[0] || !found[1] || !found[2]) return;
  memcpy(&blis.sgemm, &found[0], sizeof found[0]);
  memcpy(&blis.set_threads, &found[1], sizeof found[1]);
  memcpy(&blis.version, &found[2], sizeof found[2]);
#endif
}

/* Row-major operands are the transposed ones of a column-major product. */
static void run_blis(void *context) {
  const operands *o = context;
  const int m = (int)o->m, n = (int)o->n, k = (int)o->k;
  const float one = 1, zero = 0;
  blis.sgemm("N", "N", &n, &m, &k, &one, o->b, &n, o->a, &k, &zero, o->c, &n);
}

/* ---- reading memory ------------------------------------------------------------------------------------------------
 */

typedef uint64_t lanes __attribute__((vector_size(64), aligned(64)));

/* Narrow loads do not reach the memory's rate. */
#if defined(__x86_64__)
#define WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDEST
#endif

enum { MOST_STREAMS = 4, STEP = 4 };

typedef struct reading {
  weft_chip *chip; /**< whose threads read: a team of their own would have but one thread within the chip's */
  const lanes *data;
  uint64_t count; /**< a multiple of STEP * MOST_STREAMS * threads */
  int threads, streams;
  uint64_t sums[2];
} reading;

/* Read as some streams side by side: one alone may not keep enough lines on their way. */
WIDEST static void read_streams(const lanes *first, uint64_t length, int streams, uint64_t *result) {
  lanes sum[STEP] = {{0}};
  for (uint64_t i = 0; i < length; i += STEP)
    for (int s = 0; s < streams; s++) {
      const lanes *at = first + (uint64_t)s * length + i;
      for (int j = 0; j < STEP; j++) sum[j] ^= at[j];
    }
  for (int j = 1; j < STEP; j++) sum[0] ^= sum[j];
  *result = sum[0][0] ^ sum[0][7];
}

static void read_part(void *context, uint64_t part) {
  reading *r = context;
  uint64_t share = r->count / (uint64_t)r->threads;
  read_streams(r->data + part * share, share / (uint64_t)r->streams, r->streams, &r->sums[part]);
}

static void run_reading(void *context) {
  reading *r = context;
  weft_chip_for(r->chip, (uint64_t)r->threads, read_part, r);
}

/* The number of streams that is fastest here. */
static void choose_streams(reading *r) {
  double least = 0;
  int best = 1;
  for (r->streams = 1; r->streams <= MOST_STREAMS; r->streams *= 2) {
    double times[5];
    run_reading(r);
    for (int i = 0; i < 5; i++) {
      double begun = bench_seconds();
      run_reading(r);
      times[i] = bench_seconds() - begun;
    }
    double median = bench_median(times, 5);
    if (r->streams == 1 || median < least) {
      least = median;
      best = r->streams;
    }
  }
  r->streams = best;
}

/* ---- the limit -----------------------------------------------------------------------------------------------------
 */

enum { CHAINS = 24 };

typedef struct limit {
  weft_chip *chip;
  uint64_t steps; /**< multiply-adds of each chain: as many in all as the product has */
  int threads;
  float sums[2];
} limit;

/* Chains of multiply-adds in registers, enough to keep both units of a core busy. */
#if defined(__x86_64__)
#define LIMIT(name, instructions, vector, set, fma)                                                                    \
  __attribute__((target(instructions))) static float name(uint64_t steps) {                                            \
    vector chains[CHAINS], x = set(0.999f), y = set(0.001f);                                                           \
    for (int c = 0; c < CHAINS; c++) chains[c] = set((float)c);                                                        \
    for (uint64_t i = 0; i < steps; i++) {                                                                             \
      _Pragma("GCC unroll 24") for (int c = 0; c < CHAINS; c++) chains[c] = fma(chains[c], x, y);                      \
    }                                                                                                                  \
    float sum = 0;                                                                                                     \
    for (int c = 0; c < CHAINS; c++) sum += chains[c][0];                                                              \
    return sum;                                                                                                        \
  }
LIMIT(limit_avx512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps)
LIMIT(limit_avx2, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps)
static bool wide(void) { return __builtin_cpu_supports("avx512f"); }
static bool known_limit(void) { return __builtin_cpu_supports("fma"); }
static uint64_t limit_floats(void) { return wide() ? 16 : 8; }
static float limit_chains(uint64_t steps) { return wide() ? limit_avx512(steps) : limit_avx2(steps); }
#else
static bool known_limit(void) { return false; }
static uint64_t limit_floats(void) { return 1; }
static float limit_chains(uint64_t steps) { return (float)steps; }
#endif

static void limit_part(void *context, uint64_t part) {
  limit *l = context;
  l->sums[part] = limit_chains(l->steps);
}

static void run_limit(void *context) {
  limit *l = context;
  weft_chip_for(l->chip, (uint64_t)l->threads, limit_part, l);
}

/* ---- a case --------------------------------------------------------------------------------------------------------
 */

typedef struct measured {
  bench *b;
  const product_case *c;
  weft_abi_product product, fp32; /**< fp32: the same, as a peer */
  weft_abi_epilogue epilogue[2];
  const char *peer;
} measured;

typedef struct call {
  weft_chip *chip;
  const weft_abi_product *product;
} call;

static void run_product(void *context) {
  const call *c = context;
  weft_product(c->chip, c->product);
}

static void describe(const product_case *c, char *text, size_t size) {
  static const char *const formats[WEFT_FORMAT_COUNT] = {
      [WEFT_FP32] = "fp32", [WEFT_BF16] = "bf16", [WEFT_INT8] = "int8"};
  int used;
  if (c->m == c->n && c->n == c->k)
    used = snprintf(text, size, "%s %d", formats[c->format], (int)c->m);
  else
    used = snprintf(text, size, "%s %dx%dx%d", formats[c->format], (int)c->m, (int)c->k, (int)c->n);
  snprintf(text + used, size - (size_t)used, "%s on %d thread%s", c->epilogue ? " bias relu" : "", c->threads,
           c->threads > 1 ? "s" : "");
}

static void report(const measured *m, const bench_pair *pair) {
  const product_case *c = m->c;
  char what[80];
  describe(c, what, sizeof what);
  bench_row row = {.figure = c->figure, .what = what, .peer = m->peer};
  row.unit = c->format == WEFT_INT8 ? "Gop/s" : "GFLOP/s";
  row.amount = 2e-9 * (double)c->m * (double)c->n * (double)c->k;
  if (c->peer == TO_MEMORY) {
    row.unit = "GB/s";
    row.amount = 4e-9 * (double)c->n * (double)c->k;
  }
  bench_report(m->b, &row, pair);
}

/* The one section: everything is measured while it runs. */
static void section(weft_chip *chip, const int64_t *parameters, const int64_t *slots) {
  (void)slots;
  measured *m = chip_context(parameters);
  const product_case *c = m->c;
  call weft_call = {chip, &m->product}, fp32_call = {chip, &m->fp32};
  operands o = {.m = c->m, .n = c->n, .k = c->k};
  reading memory = {.chip = chip, .count = c->n * c->k * sizeof(float) / sizeof(lanes), .threads = c->threads};
  limit most = {.chip = chip, .threads = c->threads};
  most.steps = c->m * c->n * c->k / (limit_floats() * CHAINS * (uint64_t)c->threads);
  bench_work peer = {run_openblas, &o, c->threads};
  if (c->peer == TO_WEFT_FP32) {
    peer = (bench_work){run_product, &fp32_call, c->threads};
  } else {
    o.a = bench_memory(c->m * c->k * sizeof(float));
    o.b = bench_memory(c->k * c->n * sizeof(float));
    o.c = bench_memory(c->m * c->n * sizeof(float));
    bench_fill(o.a, c->m * c->k, 1);
    bench_fill(o.b, c->k * c->n, 2);
    memory.data = (const lanes *)(const void *)o.b;
    if (c->peer == TO_BLIS) peer.run = run_blis;
    if (c->peer == TO_PEAK) peer = (bench_work){run_limit, &most, c->threads};
    if (c->peer == TO_MEMORY) {
      choose_streams(&memory);
      peer = (bench_work){run_reading, &memory, c->threads};
    }
  }
  bench_pair pair;
  bench_measure(m->b, &(bench_work){run_product, &weft_call, c->threads}, &peer, &pair);
  report(m, &pair);
  free(o.a);
  free(o.b);
  free(o.c);
}

static bool run_case(bench *b, const product_case *c, const char *const peers[]) {
  static chip_program p;
  measured m = {.b = b, .c = c, .peer = peers[c->peer]};
  chip_program_begin(&p, "product", 1, &m);
  int64_t x = chip_tensor(&p, "a", c->format, c->m, c->k), w = chip_tensor(&p, "b", c->format, c->k, c->n);
  int64_t y = chip_result(&p, "out", c->format == WEFT_INT8 ? WEFT_INT32 : WEFT_FP32, c->m, c->n);
  m.product = chip_product(&p, x, w, y);
  if (c->epilogue) {
    m.epilogue[0] = (weft_abi_epilogue){.kind = WEFT_EPILOGUE_BIAS};
    m.epilogue[0].operand = chip_tensor(&p, "bias", WEFT_FP32, 1, c->n);
    m.epilogue[1] = (weft_abi_epilogue){.kind = WEFT_EPILOGUE_RELU};
    m.product.epilogue = m.epilogue;
    m.product.epilogue_count = 2;
  }
  if (c->peer == TO_WEFT_FP32) {
    int64_t a = chip_tensor(&p, "a32", WEFT_FP32, c->m, c->k), other = chip_tensor(&p, "b32", WEFT_FP32, c->k, c->n);
    m.fp32 = chip_product(&p, a, other, chip_result(&p, "out32", WEFT_FP32, c->m, c->n));
  }
  chip_step(&p, WEFT_STEP_SECTION, "measure", CHIP_LIST(), CHIP_LIST())->section = section;
  openblas_set_num_threads(c->threads);
  if (blis.set_threads) blis.set_threads(c->threads);
  return chip_program_run(&p, c->threads);
}

int main(int argc, char **argv) {
  bench_environment(argv);
  bench b;
  if (!bench_begin(&b, "matmul", 0, argc, argv)) return 2;
  open_blis();
  char openblas[64], other[64] = "BLIS", both[200];
  char version[32] = "";
  sscanf(openblas_get_config(), "OpenBLAS %31s", version);
  snprintf(openblas, sizeof openblas, "OpenBLAS %s %s", version, openblas_get_corename());
  if (blis.version) snprintf(other, sizeof other, "BLIS %s", blis.version());
  snprintf(both, sizeof both, "%s, %s", openblas, blis.version ? other : "BLIS not installed");
  bench_heading(&b, "products of the runtime library, each with the arithmetic of weft", both, chip_kernels());
  const char *const peers[] = {"OpenBLAS", other, "weft fp32", "reading the weights", "fma units"};
  bool ok = true;
  for (size_t i = 0; ok && i < sizeof cases / sizeof *cases; i++) {
    const product_case *c = &cases[i];
    if ((c->peer == TO_BLIS && !blis.sgemm) || (c->peer == TO_PEAK && !known_limit())) continue;
    if (b.quick && c->m * c->n * c->k > 600ull * 600 * 600 && c->m == c->n && c->m > 1024) continue;
    ok = run_case(&b, c, peers);
  }
  int status = bench_end(&b);
  return ok ? status : 3;
}
