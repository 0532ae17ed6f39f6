/* Integer ranges (C10): from declared ranges and fills through every stage. What may not fit is a note: evaluator and
 * emitted code check it at run time. */
#include "certify_private.h"

#include <math.h>
#include <string.h>

/** Values from low to high; `known` is false for floats. */
typedef struct interval {
  bool known;
  int64_t low, high;
} interval;

typedef struct ranges {
  const weft_program *program;
  const plan_ports *ports;
  weft_diag *diag;
  interval *buffers, *tensors; /**< tensors: of produced ones what was stored so far */
  bool *noted;                 /**< by template stage */
  uint64_t notes;
  weft_status status;
} ranges;

#define NOTE_LIMIT 20

static const interval unknown = {false, 0, 0};

static interval whole_format(weft_format format) {
  if (weft_format_is_float(format)) return unknown;
  return (interval){true, weft_format_min(format), weft_format_max(format)};
}

static interval join(interval a, interval b) {
  if (!a.known) return b;
  if (!b.known) return a;
  return (interval){true, a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

/** The interval of 128-bit bounds, or everything 64 bits hold where they leave those. */
static interval of_wide(__int128 low, __int128 high, bool *left) {
  if (low < INT64_MIN || high > INT64_MAX) {
    *left = true;
    return (interval){true, INT64_MIN, INT64_MAX};
  }
  return (interval){true, (int64_t)low, (int64_t)high};
}

/** Notes once a template stage that something is left to the run. */
static void note(ranges *r, const weft_stage *stage, const char *what, interval range) {
  uint32_t key = stage->origin != WEFT_NONE && stage->origin < r->program->stage_count ? stage->origin : stage->id;
  if (r->noted[key] || r->notes >= NOTE_LIMIT) return;
  r->noted[key] = true;
  r->notes++;
  weft_diag_add(r->diag, WEFT_NOTE, (weft_place){0},
                "declare tighter ranges or clamp; until then the run checks every value",
                "not proved: stage `%s`: %s, values from %lld to %lld", stage->name, what, (long long)range.low,
                (long long)range.high);
}

/* ---- tensors ---- */

static interval fill_range(const weft_init *init) {
  interval r = {true, 0, 0};
  switch (init->kind) {
  case WEFT_INIT_ZERO: return r;
  case WEFT_INIT_PATTERN:
    if (init->pattern.modulus < 1 || __builtin_add_overflow(init->pattern.modulus - 1, init->pattern.shift, &r.high))
      return unknown;
    r.low = init->pattern.shift;
    return r;
  case WEFT_INIT_VALUES:
    for (uint64_t i = 0; i < init->values.count; i++) {
      int64_t v = init->values.items[i];
      r.low = i && r.low < v ? r.low : v;
      r.high = i && r.high > v ? r.high : v;
    }
    return r;
  default: return unknown;
  }
}

static interval tensor_range(const ranges *r, uint32_t id) {
  const weft_tensor *tensor = &r->program->tensors[id];
  if (weft_format_is_float(tensor->dtype)) return unknown;
  if (r->tensors[id].known) return r->tensors[id];
  if (tensor->has_range) return (interval){true, tensor->range.low, tensor->range.high};
  bool produced = tensor->role == WEFT_ROLE_OUTPUT || tensor->role == WEFT_ROLE_ACTIVATION;
  interval fill = produced || tensor->role == WEFT_ROLE_STATE ? unknown : fill_range(&tensor->init);
  return fill.known ? fill : whole_format(tensor->dtype);
}

/* ---- computes ---- */

static interval product(interval a, interval b, bool *left) {
  __int128 corners[4] = {(__int128)a.low * b.low, (__int128)a.low * b.high, (__int128)a.high * b.low,
                         (__int128)a.high * b.high};
  __int128 low = corners[0], high = corners[0];
  for (int i = 1; i < 4; i++) {
    if (corners[i] < low) low = corners[i];
    if (corners[i] > high) high = corners[i];
  }
  return of_wide(low, high, left);
}

static interval matmul_range(ranges *r, const weft_stage *stage, const weft_matmul_tiles *matmul) {
  interval a = r->buffers[stage->ins[0]], b = r->buffers[stage->ins[1]];
  if (!a.known || !b.known) return unknown;
  bool left = false;
  interval term = product(a, b, &left);
  uint64_t k = weft_min_u64(plan_matmul_k(r->program, r->ports, stage->id), INT64_MAX);
  __int128 low = (__int128)term.low * (__int128)k, high = (__int128)term.high * (__int128)k;
  interval sum = of_wide(low, high, &left);
  interval prefix = join(sum, (interval){true, 0, 0});
  if (matmul->acc == WEFT_ACC_I32) left = left || prefix.low < INT32_MIN || prefix.high > INT32_MAX;
  if (left) note(r, stage, "a sum may leave its accumulator", prefix);
  return sum;
}

static int64_t constant_of(const weft_body_node *node) {
  double real;
  memcpy(&real, &node->value, sizeof real);
  return fabs(real) < 0x1p53 ? (int64_t)real : 0;
}

static interval divide(interval a, interval b) {
  if (b.low <= 0) return (interval){true, INT64_MIN, INT64_MAX};
  __int128 corners[4] = {a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high};
  interval q = {true, a.low < 0 ? (int64_t)corners[0] - 1 : (int64_t)corners[1],
                a.high < 0 ? (int64_t)corners[3] : (int64_t)corners[2]};
  return q;
}

static interval node_range(const weft_body_node *node, const interval *values, const interval *operands,
                           uint64_t operand_count, bool *left) {
  interval a = unknown, b = unknown;
  if (node->kind == WEFT_BODY_OPERAND) return node->value < operand_count ? operands[node->value] : unknown;
  if (node->kind == WEFT_BODY_CONST) return (interval){true, constant_of(node), constant_of(node)};
  if (node->kind == WEFT_BODY_VALUE_SELECT) return join(values[node->child[1]], values[node->child[2]]);
  a = values[node->child[0]];
  if (node->kind == WEFT_BODY_SHR) return (interval){a.known, a.low >> node->value, a.high >> node->value};
  b = values[node->child[1]];
  if (!a.known || !b.known) return unknown;
  switch (node->kind) {
  case WEFT_BODY_ADD: return of_wide((__int128)a.low + b.low, (__int128)a.high + b.high, left);
  case WEFT_BODY_SUB: return of_wide((__int128)a.low - b.high, (__int128)a.high - b.low, left);
  case WEFT_BODY_MUL: return product(a, b, left);
  case WEFT_BODY_MIN: return (interval){true, a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
  case WEFT_BODY_MAX: return (interval){true, a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
  case WEFT_BODY_FLOOR_DIV: return divide(a, b);
  default: return join(a, b); /* Select */
  }
}

static bool integral_body(const weft_body *body) {
  for (uint64_t i = 0; i < body->node_count; i++)
    if (body->nodes[i].kind == WEFT_BODY_UNARY || body->nodes[i].kind == WEFT_BODY_DIV ||
        (body->nodes[i].kind == WEFT_BODY_SHR && body->nodes[i].value > 63))
      return false;
  return body->node_count != 0;
}

/** The values of the reduced axes' folds, from the body's. */
static interval folded(const weft_generic *generic, interval body, bool *left) {
  for (uint64_t i = generic->iter_count; i > 0 && body.known; i--) {
    const weft_iter *axis = &generic->iters[i - 1];
    if (!axis->reduce) continue;
    int64_t n = axis->extent > INT64_MAX ? INT64_MAX : (int64_t)axis->extent;
    if (axis->pool == WEFT_POOL_ARG_MAX)
      body = (interval){true, 0, n > 0 ? n - 1 : 0};
    else if (axis->pool == WEFT_POOL_SUM)
      body = join((interval){true, 0, 0}, of_wide((__int128)body.low * n, (__int128)body.high * n, left));
    else if (axis->pool != WEFT_POOL_MAX && axis->pool != WEFT_POOL_MIN)
      body = (interval){true, INT64_MIN, INT64_MAX};
  }
  return body;
}

static interval generic_range(ranges *r, const weft_stage *stage, const weft_generic *generic, weft_arena *scratch) {
  for (uint64_t i = 0; i < generic->iter_count; i++)
    if (generic->iters[i].reduce && generic->iters[i].pool == WEFT_POOL_ARG_MAX) {
      bool fits = false;
      return folded(generic, (interval){true, 0, 0}, &fits);
    }
  if (!integral_body(&generic->body) || weft_format_is_float(r->program->buffers[stage->outs[0]].dtype)) return unknown;
  interval *values = WEFT_NEW_ARRAY(scratch, interval, generic->body.node_count);
  interval *operands = WEFT_NEW_ARRAY(scratch, interval, stage->in_count);
  bool left = false;
  interval result = unknown;
  if (values && operands) {
    /* A position outside a page reads 0. */
    for (uint64_t i = 0; i < stage->in_count; i++)
      operands[i] = r->buffers[stage->ins[i]].known ? join(r->buffers[stage->ins[i]], (interval){true, 0, 0}) : unknown;
    for (uint64_t i = 0; i < stage->in_count && i < generic->in_count; i++)
      if (plan_buffer_is_acc(r->program, stage->ins[i])) operands[i] = r->buffers[stage->ins[i]];
    for (uint64_t i = 0; i < generic->body.node_count; i++)
      values[i] = node_range(&generic->body.nodes[i], values, operands, stage->in_count, &left);
    result = folded(generic, values[generic->body.node_count - 1], &left);
  }
  if (left) note(r, stage, "an intermediate value may leave 64 bits", result);
  weft_arena_reset(scratch);
  return result;
}

/** What a requantisation multiplies: it wraps, so a product that may leave 64 bits is refused. Values that an
 * accumulator goes on with fit its format. */
static interval requant_range(ranges *r, const weft_stage *stage, interval x) {
  const int64_t m = stage->compute->requant.m;
  const uint32_t s = stage->compute->requant.s;
  interval room = whole_format(r->program->buffers[stage->ins[0]].dtype);
  if (room.known && x.low < room.low) x.low = room.low;
  if (room.known && x.high > room.high) x.high = room.high;
  bool left = false;
  interval scaled = product(x, (interval){true, m, m}, &left);
  if (left && !r->status) {
    weft_text name = {0};
    plan_describe_stage(&name, r->program, stage->id);
    r->status =
        weft_error(r->diag, WEFT_INVALID, "use a smaller multiplier and shift, clamp first, or declare tighter ranges",
                   "%s requantises values from %lld to %lld: times %lld that leaves 64 bits",
                   name.failed ? "a stage" : name.data, (long long)x.low, (long long)x.high, (long long)m);
    weft_text_free(&name);
  }
  if (s > 63) return (interval){true, -1, 0};
  return (interval){true, scaled.low >> s, scaled.high >> s};
}

static interval acc_map_range(ranges *r, const weft_stage *stage, interval x, interval bias) {
  bool left = false;
  if (!x.known) return unknown;
  switch (stage->compute->kind) {
  case WEFT_COMPUTE_RELU: return (interval){true, x.low > 0 ? x.low : 0, x.high > 0 ? x.high : 0};
  case WEFT_COMPUTE_REQUANT: return requant_range(r, stage, x);
  default: break;
  }
  return bias.known ? of_wide((__int128)x.low + bias.low, (__int128)x.high + bias.high, &left) : unknown;
}

static interval compute_range(ranges *r, const weft_stage *stage, weft_arena *scratch) {
  const weft_generic *generic = plan_generic_of(stage);
  const weft_matmul_tiles *matmul = plan_matmul_of(stage);
  if (matmul) return stage->in_count == 2 ? matmul_range(r, stage, matmul) : unknown;
  if (generic) return generic_range(r, stage, generic, scratch);
  if (!plan_is_acc_map(stage) || stage->in_count == 0) return (interval){true, INT64_MIN, INT64_MAX};
  interval bias = unknown;
  if (stage->compute->kind == WEFT_COMPUTE_BIAS) bias = r->buffers[stage->compute->bias];
  return acc_map_range(r, stage, r->buffers[stage->ins[0]], bias);
}

/** What a stage's result is once it is packed into its buffer. */
static interval packed(ranges *r, const weft_stage *stage, interval result) {
  uint32_t to = stage->outs[0];
  weft_format format = r->program->buffers[to].dtype;
  if (weft_format_is_float(format) || !result.known) return whole_format(format);
  if (plan_buffer_is_acc(r->program, to)) return result;
  interval room = whole_format(format);
  if (result.low < room.low || result.high > room.high) {
    note(r, stage, "a packed value may not fit its format", result);
    if (result.low < room.low) result.low = room.low;
    if (result.high > room.high) result.high = room.high;
  }
  return result;
}

static void visit(ranges *r, const weft_stage *stage, weft_arena *scratch) {
  switch (stage->kind) {
  case WEFT_STAGE_LOAD:
    for (uint64_t i = 0; i < stage->out_count; i++) r->buffers[stage->outs[i]] = tensor_range(r, stage->load.tensor);
    break;
  case WEFT_STAGE_RECV:
    for (uint64_t i = 0; i < stage->out_count; i++) {
      uint32_t sender = plan_load_behind(r->program, r->ports, stage->outs[i]);
      r->buffers[stage->outs[i]] = sender == WEFT_NONE ? whole_format(r->program->buffers[stage->outs[i]].dtype)
                                                       : tensor_range(r, r->program->stages[sender].load.tensor);
    }
    break;
  case WEFT_STAGE_STORE: {
    const weft_tensor *tensor = &r->program->tensors[stage->store.tensor];
    if (stage->in_count == 0 || weft_format_is_float(tensor->dtype) || tensor->role == WEFT_ROLE_STATE) break;
    interval *stored = &r->tensors[stage->store.tensor];
    *stored = join(*stored, r->buffers[stage->ins[0]]);
    break;
  }
  default:
    if (stage->out_count == 0) break;
    interval result = packed(r, stage, compute_range(r, stage, scratch));
    /* A carry takes its own values too. */
    for (uint64_t i = 0; i < stage->out_count; i++) {
      bool again = r->ports->producer_begin[stage->outs[i] + 1] - r->ports->producer_begin[stage->outs[i]] > 1;
      r->buffers[stage->outs[i]] = again ? whole_format(r->program->buffers[stage->outs[i]].dtype) : result;
    }
  }
}

/** Walks the ranges through every stage; at most `notes` of what is left to the run are told. */
static weft_status walk_ranges(const weft_program *program, const plan_ports *ports, uint64_t notes, weft_diag *diag) {
  weft_arena *arena = weft_arena_new(), *scratch = weft_arena_new();
  ranges r = {.program = program, .ports = ports, .diag = diag, .notes = NOTE_LIMIT - notes};
  if (arena && scratch) {
    r.buffers = WEFT_NEW_ARRAY(arena, interval, program->buffer_count + 1);
    r.tensors = WEFT_NEW_ARRAY(arena, interval, program->tensor_count + 1);
    r.noted = WEFT_NEW_ARRAY(arena, bool, program->stage_count + 1);
  }
  weft_status status = r.buffers && r.tensors && r.noted ? WEFT_OK : weft_error_memory(diag);
  for (uint64_t b = 0; !status && b < program->buffer_count; b++)
    r.buffers[b] = whole_format(program->buffers[b].dtype);
  for (uint64_t s = 0; !status && s < program->stage_count; s++) {
    visit(&r, &program->stages[s], scratch);
    status = r.status;
  }
  if (arena) weft_arena_free(arena);
  if (scratch) weft_arena_free(scratch);
  return status;
}

weft_status certify_ranges(const weft_program *program, const plan_ports *ports, weft_diag *diag) {
  return walk_ranges(program, ports, NOTE_LIMIT, diag);
}

weft_status weft_check_ranges(const weft_program *program, weft_diag *diag) {
  weft_arena *arena = weft_arena_new();
  const plan_ports *ports = arena ? plan_ports_find(program, arena) : NULL;
  weft_status status = ports ? walk_ranges(program, ports, 0, diag) : weft_error_memory(diag);
  if (arena) weft_arena_free(arena);
  return status;
}
