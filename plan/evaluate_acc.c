/* The accumulator: acquire, bias, relu, requant in place, pack. */
#include "evaluate_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool grow_acc(machine *m, accumulator *acc, uint64_t tiles) {
  if (tiles <= acc->capacity) return true;
  uint64_t elements;
  if (weft_mul_overflow(tiles, machine_tile_elements(m), &elements)) return false;
  memset(acc->values, 0, sizeof acc->values);
  acc->values[0] = WEFT_NEW_ARRAY(m->arena, float, elements);
  acc->integers = WEFT_NEW_ARRAY(m->arena, int64_t, elements);
  acc->rows = WEFT_NEW_ARRAY(m->arena, uint32_t, tiles);
  acc->cols = WEFT_NEW_ARRAY(m->arena, uint32_t, tiles);
  acc->capacity = tiles;
  return acc->values[0] && acc->integers && acc->rows && acc->cols;
}

/** A product over no elements computes nothing, and is +0 or 0 everywhere: what follows may work on it. */
static void begin_empty_product(const machine *m, accumulator *acc, uint32_t stage_id) {
  if (stage_id >= m->program->stage_count || m->matmul_k[stage_id] != 0) return;
  const weft_matmul_tiles *matmul = plan_matmul_of(&m->program->stages[stage_id]);
  if (!matmul) return;
  acc->kind = matmul->acc == WEFT_ACC_F32 ? FOLD_FLOAT : FOLD_INTEGER;
  acc->computed = true;
}

step_result step_acquire(machine *m, engine *e, const weft_op *op) {
  accumulator *acc = &e->acc;
  if (acc->acquired) return machine_fault(m, e, op, "the accumulator is acquired already");
  if (!grow_acc(m, acc, op->acquire_tiles)) return machine_no_memory(m);
  uint64_t elements = op->acquire_tiles * machine_tile_elements(m);
  memset(acc->values[0], 0, elements * sizeof(float));
  memset(acc->integers, 0, elements * sizeof(int64_t));
  for (uint64_t t = 0; t < op->acquire_tiles; t++) {
    acc->rows[t] = (uint32_t)m->program->tile_rows;
    acc->cols[t] = (uint32_t)m->program->tile_cols;
  }
  acc->acquired = true;
  acc->tiles = op->acquire_tiles;
  acc->computed = false;
  acc->kind = FOLD_FLOAT;
  acc->more = (extra){0};
  acc->narrow = NULL;
  acc->k_done = acc->k_total = 0;
  acc->segments = acc->segment = acc->depth = 0;
  begin_empty_product(m, acc, op->stage);
  return STEP_DONE;
}

step_result step_release(machine *m, engine *e, const weft_op *op) {
  if (!e->acc.acquired) return machine_fault(m, e, op, "the accumulator is not acquired");
  e->acc.acquired = false;
  return STEP_DONE;
}

/* ---- epilogues ---- */

/** The page of an accumulator op's operand that is no accumulator, taken into the accumulator first. */
static step_result load_operand(machine *m, engine *e, const weft_op *op, uint32_t buffer) {
  accumulator *acc = &e->acc;
  if (plan_buffer_is_acc(m->program, buffer)) return STEP_DONE;
  page *p = ring_front_page(m, e, op, buffer);
  if (!p) return STEP_FAULT;
  weft_format format = m->program->buffers[buffer].dtype;
  uint64_t elements = p->tiles * machine_tile_elements(m);
  if (p->tiles > acc->tiles) return machine_fault(m, e, op, "the page has more tiles than the accumulator");
  acc->kind = weft_format_is_float(format) ? FOLD_FLOAT : FOLD_INTEGER;
  acc->computed = true;
  if (p->more.faults && !extra_faults(m, &acc->more, acc->tiles * machine_tile_elements(m)))
    return machine_no_memory(m);
  for (uint64_t i = 0; i < elements; i++) {
    if (acc->kind == FOLD_FLOAT)
      acc->values[0][i] = weft_load_f32(format, p->data, i);
    else
      acc->integers[i] = weft_load_i64(format, p->data, i);
    if (p->more.faults) acc->more.faults[i] = p->more.faults[i];
  }
  memcpy(acc->rows, p->rows, p->tiles * sizeof *p->rows);
  memcpy(acc->cols, p->cols, p->tiles * sizeof *p->cols);
  return STEP_DONE;
}

/** Makes an element of the accumulator faulty; false without memory. */
static bool spoil(machine *m, accumulator *acc, uint64_t at, uint32_t number) {
  if (!extra_faults(m, &acc->more, acc->tiles * machine_tile_elements(m))) return false;
  if (!acc->more.faults[at]) acc->more.faults[at] = number;
  return true;
}

/** An integer that stays in the accumulator fits the format that its buffer declares. */
static step_result check_held(machine *m, engine *e, const weft_op *op) {
  accumulator *acc = &e->acc;
  const weft_stage *stage = &m->program->stages[op->stage];
  if (acc->kind != FOLD_INTEGER || !stage->out_count || !plan_buffer_is_acc(m->program, stage->outs[0]))
    return STEP_DONE;
  weft_format format = m->program->buffers[stage->outs[0]].dtype;
  if (weft_format_is_float(format) || format == WEFT_INT64) return STEP_DONE;
  const int64_t low = weft_format_min(format), high = weft_format_max(format);
  for (uint64_t i = 0; i < acc->tiles * machine_tile_elements(m); i++) {
    if (acc->integers[i] >= low && acc->integers[i] <= high) continue;
    char what[96];
    snprintf(what, sizeof what, "a value, %lld, does not fit %s", (long long)acc->integers[i],
             weft_format_name(format));
    if (!spoil(m, acc, i, machine_element_fault(m, op, what))) return machine_no_memory(m);
  }
  return STEP_DONE;
}

/** Element c of row 0 of the page's tile k mod n is added to column c of the accumulator's tile k. */
static step_result add_bias(machine *m, engine *e, const weft_op *op, uint32_t buffer) {
  accumulator *acc = &e->acc;
  page *p = ring_front_page(m, e, op, buffer);
  if (!p) return STEP_FAULT;
  weft_format format = m->program->buffers[buffer].dtype;
  if (p->tiles == 0) return machine_fault(m, e, op, "the bias page has no tiles");
  if (weft_format_is_float(format) != (acc->kind == FOLD_FLOAT))
    return machine_fault(m, e, op, "the bias is %s, the accumulator %s", weft_format_name(format),
                         acc->kind == FOLD_FLOAT ? "floating-point" : "integer");
  uint64_t elements = machine_tile_elements(m), width = m->program->tile_cols;
  for (uint64_t t = 0; t < acc->tiles; t++)
    for (uint64_t i = 0; i < elements; i++) {
      uint64_t at = t * elements + i, from = t % p->tiles * elements + i % width;
      if (acc->kind == FOLD_FLOAT)
        acc->values[0][at] += weft_load_f32(format, p->data, from);
      else if (__builtin_add_overflow(acc->integers[at], weft_load_i64(format, p->data, from), &acc->integers[at]) &&
               !spoil(m, acc, at, machine_element_fault(m, op, "a sum that leaves 64 bits")))
        return machine_no_memory(m);
    }
  return STEP_DONE;
}

static void apply_relu(const machine *m, accumulator *acc) {
  for (uint64_t i = 0; i < acc->tiles * machine_tile_elements(m); i++) {
    if (acc->kind == FOLD_FLOAT)
      acc->values[0][i] = weft_maximum_f32(acc->values[0][i], 0.0f);
    else if (acc->integers[i] < 0)
      acc->integers[i] = 0;
  }
}

static step_result compute_in_place(machine *m, engine *e, const weft_op *op) {
  accumulator *acc = &e->acc;
  const weft_compute_op *compute = op->compute.op;
  if (op->compute.in_count == 0) return machine_fault(m, e, op, "has no operand");
  step_result result = load_operand(m, e, op, op->compute.ins[0]);
  if (result != STEP_DONE) return result;
  if (!acc->computed) return machine_fault(m, e, op, "works on an accumulator that nothing was computed into");
  if (compute->kind == WEFT_COMPUTE_BIAS) return add_bias(m, e, op, compute->bias);
  if (compute->kind == WEFT_COMPUTE_RELU) {
    apply_relu(m, acc);
    return STEP_DONE;
  }
  if (acc->kind == FOLD_FLOAT) return machine_fault(m, e, op, "requantises floating-point values");
  for (uint64_t i = 0; i < acc->tiles * machine_tile_elements(m); i++)
    acc->integers[i] = weft_requant(acc->integers[i], compute->requant.m, compute->requant.s);
  return STEP_DONE;
}

step_result step_compute(machine *m, engine *e, const weft_op *op) {
  if (!e->acc.acquired) return machine_fault(m, e, op, "computes without an accumulator");
  if (op->stage >= m->program->stage_count || !op->compute.op)
    return machine_fault(m, e, op, "computes for a stage that does not exist");
  for (uint64_t i = 0; i < op->compute.in_count; i++)
    if (op->compute.ins[i] >= m->program->buffer_count)
      return machine_fault(m, e, op, "names a buffer that does not exist");
  const weft_compute_op *compute = op->compute.op;
  if (compute->kind == WEFT_COMPUTE_MATMUL_TILES) return compute_product(m, e, op, &m->program->stages[op->stage]);
  if (!product_finish(m, &e->acc)) return machine_no_memory(m);
  step_result result = compute->kind == WEFT_COMPUTE_GENERIC  ? compute_generic(m, e, op, &compute->generic)
                       : compute->kind == WEFT_COMPUTE_SCALAR ? compute_scalar(m, e, op, &compute->scalar)
                                                              : compute_in_place(m, e, op);
  return result == STEP_DONE ? check_held(m, e, op) : result;
}

/* ---- packing ---- */

typedef struct packing {
  machine *m;
  const weft_op *op;
  page *to;
  weft_format format;
  uint32_t misfit; /**< number of the fault, once there is one */
} packing;

static bool set_misfit(packing *p, uint64_t at, uint32_t number) {
  if (!extra_faults(p->m, &p->to->more, p->to->tiles * machine_tile_elements(p->m))) return false;
  p->to->more.faults[at] = number;
  return true;
}

/** A value modulo 2^w of an integer format. */
static int64_t wrapped(weft_format format, int64_t whole) {
  unsigned bits = (unsigned)weft_format_bytes(format) * 8;
  return bits == 64 ? whole : (int64_t)((uint64_t)whole << (64 - bits)) >> (64 - bits);
}

static bool whole_float(float real, int64_t *whole) {
  if (!(fabsf(real) < 0x1p63f) || real != floorf(real)) return false;
  *whole = (int64_t)real;
  return true;
}

/** Packs one value; an integer that does not fit becomes a faulty element. */
static bool pack_value(packing *p, uint64_t at, fold_kind kind, float real, int64_t whole) {
  if (weft_format_is_float(p->format)) {
    weft_store_f32(p->format, p->to->data, at, kind == FOLD_FLOAT ? real : (float)whole);
    return true;
  }
  if (kind == FOLD_FLOAT && !whole_float(real, &whole)) {
    if (!p->misfit) p->misfit = machine_element_fault(p->m, p->op, "a packed value is no whole number");
    weft_store_i64(p->format, p->to->data, at, 0);
    return set_misfit(p, at, p->misfit);
  }
  if (p->op->pack.wrap) whole = wrapped(p->format, whole);
  if (weft_store_i64(p->format, p->to->data, at, whole)) return true;
  if (!p->misfit) {
    char what[96];
    snprintf(what, sizeof what, "a packed value, %lld, does not fit %s", (long long)whole, weft_format_name(p->format));
    p->misfit = machine_element_fault(p->m, p->op, what);
  }
  weft_store_i64(p->format, p->to->data, at, 0);
  return set_misfit(p, at, p->misfit);
}

static step_result check_pack(machine *m, engine *e, const weft_op *op) {
  const accumulator *acc = &e->acc;
  if (!acc->acquired) return machine_fault(m, e, op, "packs without an accumulator");
  if (op->pack.to >= m->program->buffer_count) return machine_fault(m, e, op, "there is no buffer %u", op->pack.to);
  const weft_buffer *buffer = &m->program->buffers[op->pack.to];
  if (op->pack.tiles != acc->tiles)
    return machine_fault(m, e, op, "packs %llu tiles of an accumulator of %llu", (unsigned long long)op->pack.tiles,
                         (unsigned long long)acc->tiles);
  if (op->pack.tiles > buffer->page_tiles)
    return machine_fault(m, e, op, "packs %llu tiles into a page of `%s`, which has %llu",
                         (unsigned long long)op->pack.tiles, buffer->name, (unsigned long long)buffer->page_tiles);
  if (op->pack.convert != buffer->dtype)
    return machine_fault(m, e, op, "packs as %s into buffer `%s` of %s", weft_format_name(op->pack.convert),
                         buffer->name, weft_format_name(buffer->dtype));
  return STEP_DONE;
}

/** Packs every level of an unfinished fold behind the other. */
static step_result pack_levels(machine *m, engine *e, const weft_op *op, packing *p) {
  accumulator *acc = &e->acc;
  uint64_t elements = acc->tiles * machine_tile_elements(m);
  uint64_t levels = acc->kind == FOLD_FLOAT && acc->segments > 1 ? acc->depth + 1u : 1;
  if (levels * acc->tiles > m->program->buffers[op->pack.to].page_tiles)
    return machine_fault(m, e, op, "a page of `%s` is too small for the %llu levels of the fold",
                         m->program->buffers[op->pack.to].name, (unsigned long long)levels);
  p->to->tiles = levels * acc->tiles;
  for (uint64_t level = 0; level < levels; level++)
    for (uint64_t i = 0; i < elements; i++)
      if (!pack_value(p, level * elements + i, acc->kind, acc->values[level][i], acc->integers[i]))
        return machine_no_memory(m);
  for (uint64_t t = 0; t < p->to->tiles; t++) {
    p->to->rows[t] = acc->rows[t % acc->tiles];
    p->to->cols[t] = acc->cols[t % acc->tiles];
  }
  p->to->k_done = acc->k_done;
  p->to->depth = acc->depth;
  return STEP_DONE;
}

/** Adds the accumulator to what the page's memory holds since its last use. */
static step_result add_to_page(machine *m, engine *e, const weft_op *op, packing *p) {
  accumulator *acc = &e->acc;
  uint64_t elements = acc->tiles * machine_tile_elements(m);
  if (!p->to->filled || p->to->tiles != acc->tiles)
    return machine_fault(m, e, op, "adds to a page of `%s` that holds no sum of its size",
                         m->program->buffers[op->pack.to].name);
  if (acc->segments > 1) return machine_fault(m, e, op, "adds in place sums that are folded by segments");
  for (uint64_t i = 0; i < elements; i++) {
    float real = acc->values[0][i];
    int64_t whole = acc->integers[i];
    bool fits = true;
    if (acc->kind == FOLD_FLOAT)
      real = weft_load_f32(p->format, p->to->data, i) + real;
    else
      fits = !__builtin_add_overflow(weft_load_i64(p->format, p->to->data, i), whole, &whole);
    if (!fits && !set_misfit(p, i, machine_element_fault(m, op, "a sum packed in place leaves 64 bits")))
      return machine_no_memory(m);
    if (!pack_value(p, i, acc->kind, real, whole)) return machine_no_memory(m);
  }
  p->to->k_done += acc->k_done;
  return STEP_DONE;
}

static bool is_interm_of(const machine *m, const weft_op *op) {
  if (op->stage >= m->program->stage_count) return false;
  const weft_matmul_tiles *matmul = plan_matmul_of(&m->program->stages[op->stage]);
  return matmul && matmul->interm == op->pack.to;
}

static bool pack_extra(machine *m, const accumulator *acc, page *to) {
  uint64_t elements = acc->tiles * machine_tile_elements(m);
  if (acc->more.faults) {
    if (!extra_faults(m, &to->more, to->tiles * machine_tile_elements(m))) return false;
    for (uint64_t i = 0; i < elements; i++)
      if (acc->more.faults[i]) to->more.faults[i] = acc->more.faults[i];
  }
  to->more.written = acc->more.written;
  return true;
}

step_result step_pack(machine *m, engine *e, const weft_op *op) {
  step_result result = check_pack(m, e, op);
  if (result != STEP_DONE) return result;
  page *to = ring_fill_page(m, e, op, op->pack.to);
  if (!to) return STEP_FAULT;
  packing p = {m, op, to, op->pack.convert, 0};
  if (!is_interm_of(m, op) && !product_finish(m, &e->acc)) return machine_no_memory(m);
  if (op->pack.accumulate) {
    result = add_to_page(m, e, op, &p);
  } else {
    page_clear(to);
    to->tiles = e->acc.tiles;
    result = pack_levels(m, e, op, &p);
  }
  if (result != STEP_DONE) return result;
  if (!pack_extra(m, &e->acc, to)) return machine_no_memory(m);
  to->filled = true;
  m->rings[op->pack.to].filled++;
  return STEP_DONE;
}
