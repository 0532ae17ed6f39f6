#include "template_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define T 32

/** One element, as an integer or a float by its format. */
typedef struct element {
  int64_t i;
  float f;
} element;

typedef struct contents {
  element *at;
  uint8_t *stored; /**< times */
} contents;

typedef struct machine {
  const weft_program *program;
  contents *tensors;
  uint32_t *writer; /**< by buffer */
  uint64_t section;
  uint64_t sub_h, sub_w, k;
  const weft_work_item *item;
} machine;

/** A page: a plane of 32 rows. */
typedef struct page {
  element *at;
  uint64_t width;
  weft_format dtype;
} page;

static page new_page(uint64_t tiles, weft_format dtype) {
  page p = {calloc(tiles * T * T + 1, sizeof(element)), tiles * T, dtype};
  assert_non_null(p.at);
  return p;
}

static element rounded(element e, weft_format dtype) {
  if (!weft_format_is_float(dtype)) return e;
  uint32_t bits = 0;
  weft_store_f32(dtype, &bits, 0, e.f);
  e.f = weft_load_f32(dtype, &bits, 0);
  return e;
}

static float as_float(element e, weft_format dtype) { return weft_format_is_float(dtype) ? e.f : (float)e.i; }

static uint64_t address(const machine *m, const weft_tile_addr *a) {
  uint64_t at = a->base;
  assert_null(a->indirect);
  for (uint64_t i = 0; i < a->step_count; i++) {
    const uint64_t values[] = {m->item->coord.first, m->item->coord.second, m->sub_h, m->sub_w, m->k};
    assert_true(a->steps[i].var < 5);
    at += values[a->steps[i].var] * a->steps[i].stride;
  }
  return at;
}

/** Element (r, c) of tile `tile` of a tensor: NULL in the remainder of a ragged tile. */
static element *tile_element(const machine *m, uint32_t tensor, uint64_t tile, uint64_t r, uint64_t c,
                             uint64_t *index) {
  const weft_tensor *t = &m->program->tensors[tensor];
  assert_true(tile < t->tiles.rows_t * t->tiles.cols_t);
  uint64_t row = tile / t->tiles.cols_t * T + r, col = tile % t->tiles.cols_t * T + c;
  if (row >= t->elems.rows || col >= t->elems.cols) return NULL;
  *index = row * t->elems.cols + col;
  return &m->tensors[tensor].at[*index];
}

static page load_page(const machine *m, const weft_stage *s) {
  const weft_access_pattern *pattern = &s->load.pattern;
  const weft_tensor *t = &m->program->tensors[s->load.tensor];
  const weft_buffer *b = &m->program->buffers[s->outs[0]];
  assert_int_equal(b->page_tiles, pattern->block_h * pattern->block_w);
  assert_int_equal(b->dtype, t->dtype);
  page p = new_page(b->page_tiles, t->dtype);
  uint64_t origin = address(m, &pattern->origin);
  for (uint64_t h = 0; h < pattern->block_h; h++)
    for (uint64_t w = 0; w < pattern->block_w; w++)
      for (uint64_t i = 0; i < T * T; i++) {
        uint64_t index;
        element *e = tile_element(m, s->load.tensor, origin + h * pattern->stride_h + w * pattern->stride_w, i / T,
                                  i % T, &index);
        if (!e) continue;
        assert_int_equal(m->tensors[s->load.tensor].stored[index], 1);
        p.at[i / T * p.width + (h * pattern->block_w + w) * T + i % T] = *e;
      }
  return p;
}

/* ---- bodies -------------------------------------------------------------------------------------------------------
 */

typedef struct point {
  const weft_body *body;
  const element *operands;
  const weft_format *dtypes;
  uint64_t row, col;
  bool integer;
} point;

static double number(uint64_t bits) {
  double d;
  memcpy(&d, &bits, sizeof d);
  return d;
}

static bool holds(const point *p, const weft_pred *pred) {
  double at = (double)(pred->var == 5 ? p->row : p->col), bound = (double)pred->bound;
  if (pred->operand_bound)
    bound = p->integer ? (double)p->operands[pred->bound].i
                       : (double)as_float(p->operands[pred->bound], p->dtypes[pred->bound]);
  return pred->ge ? at >= bound : at < bound;
}

static int64_t whole(const point *p, uint32_t n) {
  const weft_body_node *node = &p->body->nodes[n];
  const uint32_t *c = node->child;
  switch (node->kind) {
  case WEFT_BODY_OPERAND: return p->operands[node->value].i;
  case WEFT_BODY_CONST: return (int64_t)number(node->value);
  case WEFT_BODY_ADD: return (int64_t)((uint64_t)whole(p, c[0]) + (uint64_t)whole(p, c[1]));
  case WEFT_BODY_SUB: return (int64_t)((uint64_t)whole(p, c[0]) - (uint64_t)whole(p, c[1]));
  case WEFT_BODY_MUL: return (int64_t)((uint64_t)whole(p, c[0]) * (uint64_t)whole(p, c[1]));
  case WEFT_BODY_MIN: return whole(p, c[0]) < whole(p, c[1]) ? whole(p, c[0]) : whole(p, c[1]);
  case WEFT_BODY_MAX: return whole(p, c[0]) > whole(p, c[1]) ? whole(p, c[0]) : whole(p, c[1]);
  case WEFT_BODY_SHR: return whole(p, c[0]) >> node->value;
  case WEFT_BODY_FLOOR_DIV: {
    int64_t a = whole(p, c[0]), b = whole(p, c[1]);
    return b ? (int64_t)floorl((long double)a / (long double)b) : 0;
  }
  case WEFT_BODY_SELECT: return whole(p, c[holds(p, &node->pred) ? 0 : 1]);
  case WEFT_BODY_VALUE_SELECT: return whole(p, c[whole(p, c[0]) ? 1 : 2]);
  default: fail_msg("node %d over integers", (int)node->kind); return 0;
  }
}

static float fraction(const point *p, uint32_t n);

static float function(const point *p, const weft_body_node *node) {
  float x = fraction(p, node->child[0]);
  volatile float t;
  switch (node->sfpu) {
  case WEFT_SFPU_EXP: return weft_expf(x);
  case WEFT_SFPU_RECIP: return 1.0f / x;
  case WEFT_SFPU_RSQRT:
    t = x / (float)node->over;
    t = t + (float)((double)node->eps_nano * 1e-9);
    t = sqrtf(t);
    return 1.0f / t;
  case WEFT_SFPU_SILU: t = 1.0f + weft_expf(-x); return x / t;
  case WEFT_SFPU_RELU: return x > 0 || x != x ? x : 0.0f;
  case WEFT_SFPU_LN: return weft_logf(x);
  case WEFT_SFPU_TANH: return weft_tanhf(x);
  default: return weft_erff(x);
  }
}

static float fraction(const point *p, uint32_t n) {
  const weft_body_node *node = &p->body->nodes[n];
  const uint32_t *c = node->child;
  switch (node->kind) {
  case WEFT_BODY_OPERAND: return as_float(p->operands[node->value], p->dtypes[node->value]);
  case WEFT_BODY_CONST: return (float)number(node->value);
  case WEFT_BODY_ADD: return fraction(p, c[0]) + fraction(p, c[1]);
  case WEFT_BODY_SUB: return fraction(p, c[0]) - fraction(p, c[1]);
  case WEFT_BODY_MUL: return fraction(p, c[0]) * fraction(p, c[1]);
  case WEFT_BODY_DIV: return fraction(p, c[0]) / fraction(p, c[1]);
  case WEFT_BODY_MIN: return weft_minimum_f32(fraction(p, c[0]), fraction(p, c[1]));
  case WEFT_BODY_MAX: return weft_maximum_f32(fraction(p, c[0]), fraction(p, c[1]));
  case WEFT_BODY_FLOOR_DIV: {
    volatile float q = fraction(p, c[0]) / fraction(p, c[1]);
    return floorf(q);
  }
  case WEFT_BODY_SHR: return floorf(ldexpf(fraction(p, c[0]), -(int)node->value));
  case WEFT_BODY_UNARY: return function(p, node);
  case WEFT_BODY_SELECT: return fraction(p, c[holds(p, &node->pred) ? 0 : 1]);
  default: return fraction(p, c[fraction(p, c[0]) != 0 ? 1 : 2]);
  }
}

static bool all_whole(const weft_body *body) {
  for (uint64_t i = 0; i < body->node_count; i++) {
    const weft_body_node *n = &body->nodes[i];
    if (n->kind == WEFT_BODY_UNARY || n->kind == WEFT_BODY_DIV) return false;
    if (n->kind == WEFT_BODY_CONST && (number(n->value) != floor(number(n->value)) || fabs(number(n->value)) >= 0x1p53))
      return false;
  }
  return true;
}

static element read_map(const weft_elem_access *map, const page *in, uint64_t row, uint64_t col) {
  int64_t at = map->base;
  assert_null(map->indirect);
  for (uint64_t i = 0; i < map->term_count; i++) {
    assert_true(map->terms[i].var == 5 || map->terms[i].var == 6);
    at += map->terms[i].stride * (int64_t)(map->terms[i].var == 5 ? row : col);
  }
  if (at < 0 || (uint64_t)at >= in->width * T) return (element){0};
  return in->at[at];
}

static page run_generic(const weft_generic *g, const page *ins, page out) {
  assert_int_equal(g->iter_count, 2);
  weft_format dtypes[256];
  element operands[256];
  assert_true(g->in_count <= 256);
  bool integer = !weft_format_is_float(out.dtype) && all_whole(&g->body);
  for (uint64_t i = 0; i < g->in_count; i++) {
    dtypes[i] = ins[i].dtype;
    integer = integer && !weft_format_is_float(dtypes[i]);
  }
  for (uint64_t row = 0; row < g->iters[0].extent; row++)
    for (uint64_t col = 0; col < g->iters[1].extent; col++) {
      for (uint64_t i = 0; i < g->in_count; i++) operands[i] = read_map(&g->ins[i], &ins[i], row, col);
      const point p = {&g->body, operands, dtypes, row, col, integer};
      element e = {0};
      if (integer)
        e.i = whole(&p, (uint32_t)g->body.node_count - 1);
      else
        e.f = fraction(&p, (uint32_t)g->body.node_count - 1);
      int64_t at = g->out.base;
      for (uint64_t i = 0; i < g->out.term_count; i++)
        at += g->out.terms[i].stride * (int64_t)(g->out.terms[i].var == 5 ? row : col);
      assert_true(at >= 0 && (uint64_t)at < out.width * T);
      out.at[at] = e;
    }
  return out;
}

/* ---- computes -----------------------------------------------------------------------------------------------------
 */

static page fill(machine *m, uint32_t buffer);

/** All K blocks of one operand of a product, one page a block. */
static page *operand_pages(machine *m, uint32_t buffer, uint64_t blocks) {
  page *pages = calloc(blocks + 1, sizeof *pages);
  assert_non_null(pages);
  for (uint64_t k = 0; k < blocks; k++) {
    m->k = k;
    pages[k] = fill(m, buffer);
  }
  m->k = 0;
  return pages;
}

static void free_pages(page *pages, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) free(pages[i].at);
  free(pages);
}

static page run_matmul(machine *m, const weft_stage *s, page out) {
  const weft_matmul_tiles *mm = &s->compute->matmul;
  const weft_stage *load_a = &m->program->stages[m->writer[s->ins[0]]];
  const weft_tensor *a = &m->program->tensors[load_a->load.tensor];
  const uint64_t K = a->elems.cols, ibw = mm->block.ibw,
                 n_tiles = m->program->buffers[s->ins[1]].page_tiles / (ibw ? ibw : 1);
  assert_int_equal(mm->num_blocks * ibw, a->tiles.cols_t);
  assert_int_equal(load_a->load.num_blocks, mm->num_blocks);
  page *pa = operand_pages(m, s->ins[0], mm->num_blocks), *pb = operand_pages(m, s->ins[1], mm->num_blocks);
  float *x = calloc(K + 1, sizeof *x), *y = calloc(K + 1, sizeof *y);
  for (uint64_t h = 0; h < mm->block.osh; h++)
    for (uint64_t w = 0; w < mm->block.osw; w++)
      for (uint64_t i = 0; i < T * T; i++) {
        uint64_t tile_row = m->sub_h * mm->block.osh + h, tile_col = m->sub_w * mm->block.osw + w, r = i / T, c = i % T;
        element e = {0};
        for (uint64_t k = 0; k < K; k++) {
          uint64_t block = k / (ibw * T), kt = k / T % ibw;
          element ea = pa[block].at[r * pa[block].width + (tile_row * ibw + kt) * T + k % T];
          element eb = pb[block].at[k % T * pb[block].width + (kt * n_tiles + tile_col) * T + c];
          x[k] = ea.f;
          y[k] = eb.f;
          e.i += ea.i * eb.i;
        }
        if (mm->acc == WEFT_ACC_F32) e.f = weft_dot_f32(x, 1, y, 1, K, mm->segments);
        out.at[r * out.width + (h * mm->block.osw + w) * T + c] = e;
      }
  free(x);
  free(y);
  free_pages(pa, mm->num_blocks);
  free_pages(pb, mm->num_blocks);
  return out;
}

static page run_bias(machine *m, const weft_stage *s, const page *ins, page out) {
  const uint64_t tiles = out.width / T, bias_tiles = ins[1].width / T;
  for (uint64_t i = 0; i < out.width * T; i++) {
    uint64_t col = i % out.width, tile = col / T;
    // A vector of the whole item is walked by sub-block; one of the sub-block's columns starts anew.
    uint64_t bias_tile = bias_tiles == tiles ? tile : m->sub_w * tiles + tile;
    element b = ins[1].at[bias_tile * T + col % T];
    out.at[i].i = ins[0].at[i].i + b.i;
    out.at[i].f = ins[0].at[i].f + as_float(b, ins[1].dtype);
  }
  (void)s;
  return out;
}

static page run_compute(machine *m, const weft_stage *s, page out) {
  const weft_compute_op *op = s->kind == WEFT_STAGE_ALL_REDUCE ? s->all_reduce.combine : s->compute;
  if (op->kind == WEFT_COMPUTE_MATMUL_TILES) return run_matmul(m, s, out);
  page ins[256];
  assert_true(s->in_count <= 256);
  for (uint64_t i = 0; i < s->in_count; i++) ins[i] = fill(m, s->ins[i]);
  switch (op->kind) {
  case WEFT_COMPUTE_BIAS: out = run_bias(m, s, ins, out); break;
  case WEFT_COMPUTE_RELU:
    for (uint64_t i = 0; i < out.width * T; i++) {
      out.at[i].i = ins[0].at[i].i > 0 ? ins[0].at[i].i : 0;
      out.at[i].f = ins[0].at[i].f > 0 || ins[0].at[i].f != ins[0].at[i].f ? ins[0].at[i].f : 0.0f;
    }
    break;
  case WEFT_COMPUTE_REQUANT:
    for (uint64_t i = 0; i < out.width * T; i++)
      out.at[i].i = (int64_t)((uint64_t)ins[0].at[i].i * (uint64_t)op->requant.m) >> op->requant.s;
    break;
  case WEFT_COMPUTE_GENERIC: out = run_generic(&op->generic, ins, out); break;
  default: fail_msg("stage '%s' is of a kind that lowering does not make", s->name);
  }
  for (uint64_t i = 0; i < s->in_count; i++) free(ins[i].at);
  return out;
}

static page fill(machine *m, uint32_t buffer) {
  const weft_stage *s = &m->program->stages[m->writer[buffer]];
  const weft_buffer *b = &m->program->buffers[buffer];
  if (s->kind == WEFT_STAGE_LOAD) return load_page(m, s);
  page p = run_compute(m, s, new_page(b->page_tiles, b->dtype));
  for (uint64_t i = 0; i < p.width * T; i++) p.at[i] = rounded(p.at[i], b->dtype);
  return p;
}

static void run_store(machine *m, const weft_stage *s) {
  const weft_access_pattern *pattern = &s->store.pattern;
  static const weft_work_item none;
  const weft_work_list *work = &m->program->work;
  uint64_t item = s->item != WEFT_NONE        ? s->item
                  : m->program->section_count ? m->program->sections[m->section].items.begin
                                              : 0;
  m->item = item < work->item_count ? &work->items[item] : &none;
  for (m->sub_h = 0; m->sub_h < s->store.sub_blocks.first; m->sub_h++)
    for (m->sub_w = 0; m->sub_w < s->store.sub_blocks.second; m->sub_w++) {
      page p = fill(m, s->ins[0]);
      uint64_t origin = address(m, &pattern->origin);
      for (uint64_t h = 0; h < pattern->block_h; h++)
        for (uint64_t w = 0; w < pattern->block_w; w++)
          for (uint64_t i = 0; i < T * T; i++) {
            uint64_t index;
            element *e = tile_element(m, s->store.tensor, origin + h * pattern->stride_h + w * pattern->stride_w, i / T,
                                      i % T, &index);
            if (!e) continue;
            assert_int_equal(m->tensors[s->store.tensor].stored[index]++, 0);
            *e = p.at[i / T * p.width + (h * pattern->block_w + w) * T + i % T];
          }
      free(p.at);
    }
}

/* ---- the whole ----------------------------------------------------------------------------------------------------
 */

static uint64_t elements(const weft_tensor *t) { return t->elems.rows * t->elems.cols; }

static void read_tensor(const weft_tensor *t, const weft_array_set *in, contents *c) {
  const weft_array *array = weft_array_set_find(in, t->has_shard ? t->shard.of : t->name);
  assert_non_null(array);
  assert_int_equal(array->dtype, t->dtype);
  const uint64_t cols = t->has_shard ? t->shard.cols : t->elems.cols, row0 = t->has_shard ? t->shard.row0 : 0,
                 col0 = t->has_shard ? t->shard.col0 : 0;
  for (uint64_t i = 0; i < elements(t); i++) {
    uint64_t at = (row0 + i / t->elems.cols) * cols + col0 + i % t->elems.cols;
    if (weft_format_is_float(t->dtype))
      c->at[i].f = weft_load_f32(t->dtype, array->data, at);
    else
      c->at[i].i = weft_load_i64(t->dtype, array->data, at);
    c->stored[i] = 1;
  }
}

static void write_tensor(const weft_tensor *t, const contents *c, weft_array_set *out) {
  const uint64_t plane[] = {t->elems.rows, t->elems.cols};
  bool whole_shape = t->shape && !t->has_shard;
  weft_array *array = weft_array_set_add(out, t->name, t->dtype, whole_shape ? (uint32_t)t->shape_count : 2,
                                         whole_shape ? t->shape : plane);
  assert_non_null(array);
  for (uint64_t i = 0; i < elements(t); i++) {
    assert_int_equal(c->stored[i], 1);
    if (weft_format_is_float(t->dtype))
      weft_store_f32(t->dtype, array->data, i, c->at[i].f);
    else
      assert_true(weft_store_i64(t->dtype, array->data, i, c->at[i].i));
  }
}

void template_run(const weft_program *program, const weft_array_set *in, weft_array_set *out) {
  machine m = {.program = program,
               .tensors = calloc(program->tensor_count + 1, sizeof *m.tensors),
               .writer = calloc(program->buffer_count + 1, sizeof *m.writer)};
  for (uint64_t t = 0; t < program->tensor_count; t++) {
    m.tensors[t].at = calloc(elements(&program->tensors[t]) + 1, sizeof(element));
    m.tensors[t].stored = calloc(elements(&program->tensors[t]) + 1, 1);
    weft_tensor_role role = program->tensors[t].role;
    if (role == WEFT_ROLE_INPUT || role == WEFT_ROLE_PARAM) read_tensor(&program->tensors[t], in, &m.tensors[t]);
  }
  for (uint32_t s = 0; s < program->stage_count; s++)
    for (uint64_t o = 0; o < program->stages[s].out_count; o++) m.writer[program->stages[s].outs[o]] = s;
  const uint64_t sections = program->section_count ? program->section_count : 1;
  for (m.section = 0; m.section < sections; m.section++) {
    const weft_span stages =
        program->section_count ? program->sections[m.section].stages : (weft_span){0, program->stage_count};
    for (uint64_t s = stages.begin; s < stages.end; s++)
      if (program->stages[s].kind == WEFT_STAGE_STORE) run_store(&m, &program->stages[s]);
  }
  for (uint64_t t = 0; t < program->tensor_count; t++) {
    if (program->tensors[t].role == WEFT_ROLE_OUTPUT) write_tensor(&program->tensors[t], &m.tensors[t], out);
    free(m.tensors[t].at);
    free(m.tensors[t].stored);
  }
  free(m.tensors);
  free(m.writer);
}
