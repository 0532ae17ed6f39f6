/* Matrix products in plain C: the definition that every kernel is compared with. */
#include "epilogue_inline.h"
#include "product_private.h"

typedef struct plain_work {
  const weft_product_job *job;
  unsigned char *scratch;
  uint64_t scratch_bytes; /* of one part */
  uint64_t parts;
} plain_work;

static void widen(weft_format format, const void *from, uint64_t at, uint64_t stride, uint64_t count, float *to) {
  for (uint64_t i = 0; i < count; i++) to[i] = weft_load_f32(format, from, at + i * stride);
}

static void row_f32(const weft_product_job *job, uint64_t row, float *a, float *b, float *values) {
  widen(job->a_format, job->a, row * job->a_stride, 1, job->k, a);
  for (uint64_t j = 0; j < job->n; j++) {
    widen(job->b_format, job->b, j, job->b_stride, job->k, b);
    values[j] = weft_dot_f32(a, 1, b, 1, job->k, job->segments);
  }
  weft_epilogue_row_f32(&job->epilogue, row, 0, job->n, values);
}

/* An exact sum; false when it leaves 64 bits. */
static bool dot_i64(const weft_product_job *job, uint64_t row, uint64_t col, int64_t *sum) {
  *sum = 0;
  for (uint64_t i = 0; i < job->k; i++) {
    int64_t product, a = weft_load_i64(job->a_format, job->a, row * job->a_stride + i);
    int64_t b = weft_load_i64(job->b_format, job->b, i * job->b_stride + col);
    if (__builtin_mul_overflow(a, b, &product) || __builtin_add_overflow(*sum, product, sum)) return false;
  }
  return true;
}

static void row_i64(const weft_product_job *job, uint64_t row, int64_t *values) {
  for (uint64_t j = 0; j < job->n; j++) {
    if (!dot_i64(job, row, j, &values[j]))
      weft_epilogue_overflow(&job->epilogue, row, j);
    else if (job->acc == WEFT_ACC_I32 && (values[j] < INT32_MIN || values[j] > INT32_MAX))
      weft_epilogue_misfit(&job->epilogue, row, j, values[j], WEFT_INT32);
  }
  weft_epilogue_row_i64(&job->epilogue, row, 0, job->n, values);
}

static void plain_part(void *context, uint64_t part) {
  const plain_work *work = context;
  const weft_product_job *job = work->job;
  unsigned char *scratch = work->scratch + part * work->scratch_bytes;
  int64_t *values = (int64_t *)(void *)scratch;
  float *a = (float *)(void *)(values + job->n);
  for (uint64_t row = job->m * part / work->parts; row < job->m * (part + 1) / work->parts; row++) {
    if (job->acc == WEFT_ACC_F32)
      row_f32(job, row, a, a + job->k, (float *)(void *)values);
    else
      row_i64(job, row, values);
  }
}

bool weft_product_plain(const weft_product_job *job) {
  plain_work work = {.job = job, .parts = weft_min_u64((uint64_t)job->threads, weft_max_u64(1, job->m))};
  uint64_t operands = job->acc == WEFT_ACC_F32 ? 2 * job->k * sizeof(float) : 0;
  work.scratch_bytes = (job->n * sizeof(int64_t) + operands + 63) / 64 * 64;
  work.scratch = weft_chip_scratch(job->chip, WEFT_SCRATCH_THREADS, work.parts * work.scratch_bytes);
  if (work.scratch) weft_chip_for(job->chip, work.parts, plain_part, &work);
  return true;
}

static void combine(weft_pool pool, uint64_t count, const float *left, const float *right, float *out) {
  inline_combine(pool, count, left, right, out);
}

static bool always(void) { return true; }

extern const weft_kernel_set weft_kernels_plain;
const weft_kernel_set weft_kernels_plain = {
    .name = "plain", .available = always, .product = weft_product_plain, .combine = combine};
