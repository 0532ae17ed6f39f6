/* weft_pointwise: a body over every element of its result. */
#include "body_private.h"
#include "epilogue_private.h"

#include <math.h>
#include <string.h>

typedef struct pointwise_work {
  weft_body_work body;
  const weft_slot *out;
  weft_epilogue store; /* without ops: stores, and says what does not fit */
  unsigned char *scratch;
  uint64_t scratch_bytes, parts;
} pointwise_work;

/* A float result stored in an integer format must be an integer that fits. */
static void store_f32_as_i64(const pointwise_work *work, const weft_body_run *at, const float *values) {
  int64_t integers[WEFT_BODY_BLOCK];
  for (uint32_t i = 0; i < at->count; i++) {
    bool fits = values[i] >= -0x1p63f && values[i] < 0x1p63f && values[i] == floorf(values[i]);
    if (!fits)
      weft_chip_fault_element(work->body.chip, work->body.out, at->row, at->col + i,
                              "a float that is no 64-bit integer is to be stored as one");
    integers[i] = fits ? (int64_t)values[i] : 0;
  }
  weft_epilogue_row_i64(&work->store, at->row, at->col, at->count, integers);
}

static void run_block(const pointwise_work *work, weft_body_run *at, unsigned char *scratch) {
  void *values = weft_body_compute(at, scratch);
  if (work->body.integral)
    weft_epilogue_row_i64(&work->store, at->row, at->col, at->count, values);
  else if (weft_format_is_float(work->out->format))
    weft_epilogue_row_f32(&work->store, at->row, at->col, at->count, values);
  else
    store_f32_as_i64(work, at, values);
}

static void run_part(void *context, uint64_t part) {
  const pointwise_work *work = context;
  unsigned char *scratch = work->scratch + part * work->scratch_bytes;
  uint64_t cols = work->out->tensor->cols, blocks = weft_ceil_div(cols, WEFT_BODY_BLOCK);
  uint64_t all = work->out->tensor->rows * blocks;
  for (uint64_t i = all * part / work->parts; i < all * (part + 1) / work->parts; i++) {
    weft_body_run at = {.work = &work->body, .row = i / blocks, .col = i % blocks * WEFT_BODY_BLOCK};
    at.count = (uint32_t)weft_min_u64(WEFT_BODY_BLOCK, cols - at.col);
    run_block(work, &at, scratch);
  }
}

void weft_pointwise(weft_chip *chip, const weft_abi_pointwise *pointwise) {
  pointwise_work work = {.body = {.chip = chip,
                                  .out = pointwise->out,
                                  .operand_count = pointwise->operand_count,
                                  .operands = pointwise->operands,
                                  .node_count = pointwise->node_count,
                                  .nodes = pointwise->nodes}};
  work.out = weft_chip_slot(chip, pointwise->out, "pointwise");
  if (!work.out) return;
  const weft_abi_tensor *out = work.out->tensor;
  if (!weft_body_prepare(&work.body, out->rows, out->cols) || out->rows == 0 || out->cols == 0) return;
  bool floats = weft_format_is_float(work.out->format);
  work.body.integral = work.body.integral && !floats;
  if (!weft_epilogue_prepare(chip, NULL, 0, floats, pointwise->out, out->cols, &work.store)) return;
  work.parts = weft_max_u64(1, weft_min_u64((uint64_t)chip->threads, out->rows * out->cols / 4096));
  work.scratch_bytes = weft_body_scratch(&work.body);
  work.scratch = weft_chip_scratch(chip, WEFT_SCRATCH_THREADS, work.parts * work.scratch_bytes);
  if (work.scratch) weft_chip_for(chip, work.parts, run_part, &work);
}
