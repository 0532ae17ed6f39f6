/* Tile products: the fold of format.h, block after block. Segment results stand on levels below the running segment;
 * equal subtrees are joined as soon as both are complete, which is the tree that splits at the largest power of two. */
#include "evaluate_private.h"

#include <math.h>
#include <string.h>

static bool make_level(machine *m, accumulator *acc, uint32_t level) {
  if (acc->values[level]) return true;
  acc->values[level] = WEFT_NEW_ARRAY(m->arena, float, acc->capacity *machine_tile_elements(m));
  return acc->values[level] != NULL;
}

static void add_levels(const machine *m, accumulator *acc, uint32_t left) {
  uint64_t elements = acc->tiles * machine_tile_elements(m);
  for (uint64_t i = 0; i < elements; i++) acc->values[left][i] += acc->values[left + 1][i];
}

/** The running segment is complete: it joins the subtrees of its size that stand below it, and a new one starts. */
static bool end_segment(machine *m, accumulator *acc) {
  uint32_t complete = ++acc->segment;
  acc->depth++;
  for (uint32_t size = complete; size % 2 == 0; size /= 2) {
    acc->depth--;
    add_levels(m, acc, acc->depth - 1);
  }
  if (!make_level(m, acc, acc->depth)) return false;
  memset(acc->values[acc->depth], 0, acc->tiles * machine_tile_elements(m) * sizeof(float));
  return true;
}

static bool sum_fault(machine *m, accumulator *acc, const weft_op *op, uint64_t at) {
  if (!extra_faults(m, &acc->more, acc->tiles * machine_tile_elements(m))) return false;
  if (!acc->more.faults[at]) acc->more.faults[at] = machine_element_fault(m, op, "a sum leaves its accumulator");
  return true;
}

/** A sum is judged when it is whole: on the way to it, which depends on blocks, it may leave 32 bits. */
static bool check_narrow(machine *m, accumulator *acc) {
  const weft_op *op = acc->narrow;
  acc->narrow = NULL;
  for (uint64_t i = 0; op && i < acc->tiles * machine_tile_elements(m); i++)
    if ((acc->integers[i] < INT32_MIN || acc->integers[i] > INT32_MAX) && !sum_fault(m, acc, op, i)) return false;
  return true;
}

bool product_finish(machine *m, accumulator *acc) {
  if (acc->segments <= 1) {
    acc->segments = 0;
    return check_narrow(m, acc);
  }
  uint32_t last = weft_segments_effective(acc->k_total, acc->segments);
  bool running = acc->segment < last && acc->k_done > weft_segment_begin(acc->k_total, last, acc->segment);
  if (!running && acc->depth) acc->depth--;
  while (acc->depth) {
    acc->depth--;
    add_levels(m, acc, acc->depth);
  }
  acc->segments = 0;
  return check_narrow(m, acc);
}

/* ---- one block ---- */

typedef struct product {
  machine *m;
  const weft_op *op;
  const weft_matmul_tiles *matmul;
  const page *a, *b;
  uint64_t a_row, b_col; /**< first tile of the sub-block in its page */
  uint64_t b_width;      /**< tiles of a row of B's page */
  accumulator *acc;
} product;

/** Elements of K tile kk that take part. */
static uint64_t valid_k(const product *p, uint64_t kk) {
  uint64_t valid = p->m->program->tile_cols;
  valid = weft_min_u64(valid, p->a->cols[p->a_row * p->matmul->block.ibw + kk]);
  return weft_min_u64(valid, p->b->rows[kk * p->b_width + p->b_col]);
}

static void fold_floats(const product *p, uint64_t i, uint64_t j, uint64_t kk, uint64_t k0, uint64_t k1) {
  const machine *m = p->m;
  uint64_t width = m->program->tile_cols, elements = machine_tile_elements(m);
  uint64_t a_tile = (p->a_row + i) * p->matmul->block.ibw + kk, b_tile = kk * p->b_width + p->b_col + j;
  const float *a = p->acc->wide[0] + a_tile * elements, *b = p->acc->wide[1] + b_tile * elements;
  float *acc = p->acc->values[p->acc->depth] + (i * p->matmul->block.osw + j) * elements;
  for (uint64_t r = 0; r < p->a->rows[a_tile]; r++)
    for (uint64_t c = 0; c < p->b->cols[b_tile]; c++) {
      float sum = acc[r * width + c];
      for (uint64_t k = k0; k < k1; k++) sum = fmaf(a[r * width + k], b[k * width + c], sum);
      acc[r * width + c] = sum;
    }
}

static bool fold_integers(const product *p, uint64_t i, uint64_t j, uint64_t kk, uint64_t k0, uint64_t k1) {
  const machine *m = p->m;
  uint64_t width = m->program->tile_cols, elements = machine_tile_elements(m);
  uint64_t a_tile = (p->a_row + i) * p->matmul->block.ibw + kk, b_tile = kk * p->b_width + p->b_col + j;
  uint64_t first = (i * p->matmul->block.osw + j) * elements;
  const int64_t *a = p->acc->wide_whole[0] + a_tile * elements, *b = p->acc->wide_whole[1] + b_tile * elements;
  for (uint64_t r = 0; r < p->a->rows[a_tile]; r++)
    for (uint64_t c = 0; c < p->b->cols[b_tile]; c++) {
      uint64_t at = first + r * width + c;
      int64_t sum = p->acc->integers[at];
      bool overflow = false;
      for (uint64_t k = k0; k < k1; k++) {
        int64_t term;
        overflow |= __builtin_mul_overflow(a[r * width + k], b[k * width + c], &term);
        overflow |= __builtin_add_overflow(sum, term, &sum);
      }
      p->acc->integers[at] = sum;
      if (overflow && !sum_fault(p->m, p->acc, p->op, at)) return false;
    }
  return true;
}

/** Elements [k0, k1) of K tile kk into every output tile of the sub-block. */
static bool fold_run(const product *p, uint64_t kk, uint64_t k0, uint64_t k1) {
  for (uint64_t i = 0; i < p->matmul->block.osh; i++)
    for (uint64_t j = 0; j < p->matmul->block.osw; j++) {
      if (p->acc->kind == FOLD_FLOAT)
        fold_floats(p, i, j, kk, k0, k1);
      else if (!fold_integers(p, i, j, kk, k0, k1))
        return false;
    }
  return true;
}

/** One K tile, cut where segments end. */
static bool fold_tile(const product *p, uint64_t kk) {
  accumulator *acc = p->acc;
  uint64_t valid = valid_k(p, kk), k = 0;
  uint32_t last = weft_segments_effective(acc->k_total, acc->segments);
  while (k < valid) {
    uint64_t run = valid - k;
    bool cut = acc->kind == FOLD_FLOAT && acc->segments > 1 && acc->segment < last;
    if (cut) run = weft_min_u64(run, weft_segment_begin(acc->k_total, last, acc->segment + 1) - acc->k_done);
    if (!fold_run(p, kk, k, k + run)) return false;
    k += run;
    acc->k_done += run;
    if (cut && acc->k_done == weft_segment_begin(acc->k_total, last, acc->segment + 1) && !end_segment(p->m, acc))
      return false;
  }
  return true;
}

/** Faulty elements of the operands make whole rows and columns of the result faulty. */
static bool carry_faults(const product *p) {
  const extra *a = &p->a->more, *b = &p->b->more;
  if (!a->faults && !b->faults) return true;
  uint64_t elements = machine_tile_elements(p->m), number = 0;
  for (uint64_t i = 0; a->faults && i < p->a->tiles * elements && !number; i++) number = a->faults[i];
  for (uint64_t i = 0; b->faults && i < p->b->tiles * elements && !number; i++) number = b->faults[i];
  if (!number) return true;
  if (!extra_faults(p->m, &p->acc->more, p->acc->tiles * elements)) return false;
  for (uint64_t i = 0; i < p->acc->tiles * elements; i++) p->acc->more.faults[i] = (uint32_t)number;
  return true;
}

/* ---- the op ---- */

static step_result find_sub_block(machine *m, engine *e, const weft_op *op, product *p) {
  const weft_matmul_tiles *matmul = p->matmul;
  uint64_t osh = matmul->block.osh, osw = matmul->block.osw, ibw = matmul->block.ibw;
  uint64_t subs_h = weft_max_u64(1, matmul->sub_blocks.first), subs_w = weft_max_u64(1, matmul->sub_blocks.second);
  uint64_t sub_h = subs_h > 1 ? machine_variable(m, e, WEFT_VAR_SUB_H) : 0,
           sub_w = subs_w > 1 ? machine_variable(m, e, WEFT_VAR_SUB_W) : 0;
  if (osh > 1u << 20 || osw > 1u << 20 || ibw > 1u << 20 || subs_h > 1u << 20 || subs_w > 1u << 20)
    return machine_fault(m, e, op, "a block of more tiles than any page has");
  if (osh * osw != p->acc->tiles)
    return machine_fault(m, e, op, "computes %llu x %llu tiles in an accumulator of %llu", (unsigned long long)osh,
                         (unsigned long long)osw, (unsigned long long)p->acc->tiles);
  bool a_whole = p->a->tiles == subs_h * osh * ibw, b_whole = p->b->tiles == ibw * subs_w * osw;
  if ((!a_whole && p->a->tiles != osh * ibw) || (!b_whole && p->b->tiles != ibw * osw))
    return machine_fault(m, e, op, "pages of %llu and %llu tiles are no operands of its block",
                         (unsigned long long)p->a->tiles, (unsigned long long)p->b->tiles);
  if ((a_whole && sub_h >= subs_h) || (b_whole && sub_w >= subs_w))
    return machine_fault(m, e, op, "there is no sub-block (%llu, %llu)", (unsigned long long)sub_h,
                         (unsigned long long)sub_w);
  p->a_row = a_whole ? sub_h * osh : 0;
  p->b_width = b_whole ? subs_w * osw : osw;
  p->b_col = b_whole ? sub_w * osw : 0;
  return STEP_DONE;
}

/** Takes up the sums that an earlier block spilled. */
static step_result reload(machine *m, engine *e, const weft_op *op) {
  accumulator *acc = &e->acc;
  uint32_t buffer = op->compute.acc_reload;
  page *p = ring_front_page(m, e, op, buffer);
  if (!p) return STEP_FAULT;
  uint64_t levels = acc->kind == FOLD_FLOAT && acc->segments > 1 ? p->depth + 1u : 1;
  if (p->tiles != levels * acc->tiles)
    return machine_fault(m, e, op, "reloads %llu tiles from a page that holds %llu",
                         (unsigned long long)(levels * acc->tiles), (unsigned long long)p->tiles);
  weft_format format = m->program->buffers[buffer].dtype;
  if (weft_format_is_float(format) != (acc->kind == FOLD_FLOAT))
    return machine_fault(m, e, op, "reloads sums of another kind");
  uint64_t elements = acc->tiles * machine_tile_elements(m);
  for (uint64_t level = 0; level < levels; level++) {
    if (!make_level(m, acc, (uint32_t)level)) return machine_no_memory(m);
    for (uint64_t i = 0; i < elements; i++) {
      if (acc->kind == FOLD_FLOAT)
        acc->values[level][i] = weft_load_f32(format, p->data, level * elements + i);
      else
        acc->integers[i] = weft_load_i64(format, p->data, i);
    }
  }
  if (p->more.faults) {
    if (!extra_faults(m, &acc->more, elements)) return machine_no_memory(m);
    memcpy(acc->more.faults, p->more.faults, elements * sizeof *acc->more.faults);
  }
  acc->k_done = p->k_done;
  acc->depth = p->depth;
  acc->segment = 0;
  uint32_t last = weft_segments_effective(acc->k_total, acc->segments);
  while (acc->segment < last && weft_segment_begin(acc->k_total, last, acc->segment + 1) <= acc->k_done) acc->segment++;
  return STEP_DONE;
}

/** The elements of an operand's page, widened once for all the products they take part in. */
static bool widen(machine *m, accumulator *acc, int operand, const page *p, weft_format format) {
  uint64_t elements = p->tiles * machine_tile_elements(m);
  if (elements > acc->wide_capacity[operand]) {
    acc->wide[operand] = WEFT_NEW_ARRAY(m->arena, float, elements);
    acc->wide_whole[operand] = WEFT_NEW_ARRAY(m->arena, int64_t, elements);
    if (!acc->wide[operand] || !acc->wide_whole[operand]) return false;
    acc->wide_capacity[operand] = elements;
  }
  for (uint64_t i = 0; i < elements; i++) {
    if (acc->kind == FOLD_FLOAT)
      acc->wide[operand][i] = weft_load_f32(format, p->data, i);
    else
      acc->wide_whole[operand][i] = weft_load_i64(format, p->data, i);
  }
  return true;
}

static void set_extents(const product *p) {
  for (uint64_t i = 0; i < p->matmul->block.osh; i++)
    for (uint64_t j = 0; j < p->matmul->block.osw; j++) {
      uint64_t t = i * p->matmul->block.osw + j;
      p->acc->rows[t] = p->a->rows[(p->a_row + i) * p->matmul->block.ibw];
      p->acc->cols[t] = p->b->cols[p->b_col + j];
    }
}

step_result compute_product(machine *m, engine *e, const weft_op *op, const weft_stage *stage) {
  (void)stage;
  accumulator *acc = &e->acc;
  const weft_matmul_tiles *matmul = &op->compute.op->matmul;
  if (op->compute.in_count < 2) return machine_fault(m, e, op, "a product has two operands");
  product p = {.m = m, .op = op, .matmul = matmul, .acc = acc};
  if (!(p.a = ring_front_page(m, e, op, op->compute.ins[0]))) return STEP_FAULT;
  if (!(p.b = ring_front_page(m, e, op, op->compute.ins[1]))) return STEP_FAULT;
  for (int i = 0; i < 2; i++)
    if (m->program->buffers[op->compute.ins[i]].dtype != matmul->operand)
      return machine_fault(m, e, op, "operands of %s in a buffer of %s", weft_format_name(matmul->operand),
                           weft_format_name(m->program->buffers[op->compute.ins[i]].dtype));
  bool floats = weft_format_is_float(matmul->operand);
  if (floats != (matmul->acc == WEFT_ACC_F32))
    return machine_fault(m, e, op, "operands of %s in an accumulator of %s", weft_format_name(matmul->operand),
                         weft_acc_policy_name(matmul->acc));
  step_result result = find_sub_block(m, e, op, &p);
  if (result != STEP_DONE) return result;
  acc->kind = floats ? FOLD_FLOAT : FOLD_INTEGER;
  acc->segments = matmul->segments ? matmul->segments : 1;
  acc->narrow = matmul->acc == WEFT_ACC_I32 ? op : NULL;
  acc->k_total = m->matmul_k[op->stage];
  if (op->compute.acc_reload != WEFT_NONE && (result = reload(m, e, op)) != STEP_DONE) return result;
  acc->computed = true;
  for (int i = 0; i < 2; i++)
    if (!widen(m, acc, i, i ? p.b : p.a, matmul->operand)) return machine_no_memory(m);
  for (uint64_t kk = 0; kk < matmul->block.ibw; kk++)
    if (!fold_tile(&p, kk)) return machine_no_memory(m);
  if (p.a->tiles && p.b->tiles) set_extents(&p);
  return carry_faults(&p) ? STEP_DONE : machine_no_memory(m);
}
