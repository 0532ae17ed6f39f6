/* What must hold of one value and of one op, whatever stands around them. */
#include "graph_private.h"

#include <stdlib.h>
#include <string.h>

#define FAIL(hint, ...) return weft_error(diag, WEFT_INVALID, hint, __VA_ARGS__)

static weft_status check_shard(const weft_value *value, weft_diag *diag) {
  const weft_shard *shard = &value->shard;
  if (!value->has_shard) return WEFT_OK;
  if (value->full_rank > WEFT_MAX_RANK || !weft_extents_fit(value->full_rank, value->full_extents))
    FAIL(NULL, "value '%s': its dataset '%s' is too large", value->name, shard->of);
  weft_plane whole = weft_graph_plane(value->full_rank, value->full_extents), part = weft_value_plane(value);
  if (whole.rows != shard->rows || whole.cols != shard->cols)
    FAIL(NULL, "value '%s': its shard says a dataset of %llu x %llu, its extents %llu x %llu", value->name,
         (unsigned long long)shard->rows, (unsigned long long)shard->cols, (unsigned long long)whole.rows,
         (unsigned long long)whole.cols);
  uint64_t row_end, col_end;
  if (weft_add_overflow(shard->row0, part.rows, &row_end) || weft_add_overflow(shard->col0, part.cols, &col_end) ||
      row_end > whole.rows || col_end > whole.cols)
    FAIL(NULL, "value '%s': the block of %llu x %llu at (%llu, %llu) leaves its dataset '%s' of %llu x %llu",
         value->name, (unsigned long long)part.rows, (unsigned long long)part.cols, (unsigned long long)shard->row0,
         (unsigned long long)shard->col0, shard->of, (unsigned long long)whole.rows, (unsigned long long)whole.cols);
  return WEFT_OK;
}

weft_status weft_value_check(const weft_graph *graph, uint32_t id, weft_diag *diag) {
  const weft_value *value = &graph->values[id];
  const char *name = value->name;
  if (value->role >= WEFT_ROLE_COUNT) FAIL(NULL, "value '%s' has no role", name);
  if (value->updates && (value->role != WEFT_ROLE_STATE || value->updates > id))
    FAIL(NULL, "value '%s' updates what is no state before it", name);
  if (value->dtype >= WEFT_FORMAT_COUNT) FAIL(NULL, "value '%s' has no format", name);
  if (value->rank > WEFT_MAX_RANK)
    FAIL(NULL, "value '%s' has %u dimensions, at most %d are possible", name, value->rank, WEFT_MAX_RANK);
  if (!weft_extents_fit(value->rank, value->extents))
    FAIL(NULL, "value '%s': extents %s are too large to address", name,
         weft_extents_print(value->rank, value->extents).text);
  if (value->has_range) {
    if (weft_format_is_float(value->dtype))
      FAIL(NULL, "value '%s' is %s: only integers have a range", name, weft_format_name(value->dtype));
    if (value->range.low > value->range.high)
      FAIL(NULL, "value '%s': its range %lld..%lld is empty", name, (long long)value->range.low,
           (long long)value->range.high);
  }
  const weft_partial *partial = &value->partial;
  if (value->has_partial &&
      (!partial->count || partial->first > partial->of || partial->count > partial->of - partial->first))
    FAIL(NULL, "value '%s': partial segments %u, %u of them, of %u", name, partial->first, partial->count, partial->of);
  return check_shard(value, diag);
}

/* ---- ops by kind --------------------------------------------------------------------------------------------------
 */

/** What a check reads: the op, its operands and its result. */
typedef struct subject {
  const weft_graph *graph;
  const weft_graph_op *op;
  const weft_value *a, *b, *out; /**< first and second operand (b NULL when there is none) */
  weft_diag *diag;
} subject;

static const weft_value *operand(const subject *s, uint32_t i) { return &s->graph->values[s->op->ins[i]]; }
static bool is_float(const weft_value *value) { return weft_format_is_float(value->dtype); }

#define REFUSE(hint, format, ...)                                                                                      \
  return weft_error(s->diag, WEFT_INVALID, hint, "%s '%s': " format, weft_graph_op_name(s->op->kind), s->op->name,     \
                    __VA_ARGS__)
#define SHAPE(value) weft_extents_print((value)->rank, (value)->extents).text

static weft_status check_same(const subject *s, const weft_value *x) {
  if (!weft_same_extents(x, s->out)) REFUSE(NULL, "'%s' is %s, the result %s", x->name, SHAPE(x), SHAPE(s->out));
  return WEFT_OK;
}

static weft_status check_one_kind(const subject *s) {
  uint32_t count = s->op->kind == WEFT_GRAPH_MATMUL ? 2 : s->op->in_count; // a position is an integer
  for (uint32_t i = 0; i < count; i++)
    if (is_float(operand(s, i)) != is_float(s->out))
      REFUSE("integers and floats meet only in a pointwise op", "'%s' is %s and the result %s", operand(s, i)->name,
             weft_format_name(operand(s, i)->dtype), weft_format_name(s->out->dtype));
  return WEFT_OK;
}

static weft_status check_matmul_formats(const subject *s) {
  const weft_graph_op *op = s->op;
  if (s->a->dtype != s->b->dtype)
    REFUSE("convert one of them", "'%s' is %s and '%s' is %s", s->a->name, weft_format_name(s->a->dtype), s->b->name,
           weft_format_name(s->b->dtype));
  if (op->acc >= WEFT_ACC_COUNT) REFUSE(NULL, "accumulator %d is unknown", (int)op->acc);
  if (is_float(s->a) != (op->acc == WEFT_ACC_F32))
    REFUSE("floats accumulate in F32, integers in I32 or I64", "%s operands with accumulator %s",
           weft_format_name(s->a->dtype), weft_acc_policy_name(op->acc));
  if (op->segments < 1 || op->segments > WEFT_MAX_SEGMENTS)
    REFUSE(NULL, "%u segments; 1 to %d are possible", op->segments, WEFT_MAX_SEGMENTS);
  return check_one_kind(s);
}

/** The third operand of a product: where its K ends is read before the program runs. */
static weft_status check_position(const subject *s) {
  if (s->op->in_count < 3) return WEFT_OK;
  const weft_value *at = &s->graph->values[s->op->ins[2]];
  if (at->role != WEFT_ROLE_INPUT || is_float(at) || weft_value_elements(at) != 1)
    REFUSE("a position is an Input of one integer", "'%s' is %s %s %s", at->name, weft_tensor_role_name(at->role),
           weft_format_name(at->dtype), SHAPE(at));
  if (!is_float(s->a) || s->op->segments != 1 || s->b->extents[0] == 0)
    REFUSE("fold floats in one segment", "a product up to '%s' of %s in %u segments over a K of %llu", at->name,
           weft_format_name(s->a->dtype), s->op->segments, (unsigned long long)s->b->extents[0]);
  return WEFT_OK;
}

static weft_status check_partial_product(const subject *s) {
  const weft_partial *partial = &s->out->partial;
  if (!s->out->has_partial) return WEFT_OK;
  if (partial->pool != WEFT_POOL_SUM) REFUSE(NULL, "the partial result '%s' is no sum", s->out->name);
  if (!is_float(s->out)) return WEFT_OK;
  uint64_t k = s->a->extents[s->a->rank - 1];
  if (s->out->dtype != WEFT_FP32)
    REFUSE("partial sums travel in Fp32", "the partial result '%s' is %s", s->out->name,
           weft_format_name(s->out->dtype));
  if (weft_segments_effective(k, s->op->segments) != partial->count)
    REFUSE(NULL, "K = %llu in %u segments does not give the %u segments that '%s' holds", (unsigned long long)k,
           s->op->segments, partial->count, s->out->name);
  return WEFT_OK;
}

static weft_status check_matmul(const subject *s) {
  const weft_value *a = s->a, *b = s->b, *out = s->out;
  if (a->rank < 2 || b->rank != 2)
    REFUSE("reshape the operands: a is [.., M, K], b is [K, N]", "'%s' is %s and '%s' is %s", a->name, SHAPE(a),
           b->name, SHAPE(b));
  if (a->extents[a->rank - 1] != b->extents[0])
    REFUSE(NULL, "'%s' has %llu columns and '%s' %llu rows", a->name, (unsigned long long)a->extents[a->rank - 1],
           b->name, (unsigned long long)b->extents[0]);
  if (out->rank != a->rank || memcmp(out->extents, a->extents, (a->rank - 1) * sizeof *a->extents) != 0 ||
      out->extents[out->rank - 1] != b->extents[1])
    REFUSE(NULL, "%s times %s does not give %s", SHAPE(a), SHAPE(b), SHAPE(out));
  weft_status status = check_matmul_formats(s);
  if (status == WEFT_OK) status = check_position(s);
  return status != WEFT_OK ? status : check_partial_product(s);
}

static weft_status check_bias(const subject *s) {
  const weft_value *x = s->a, *bias = s->b;
  weft_status status = check_same(s, x);
  if (status != WEFT_OK) return status;
  bool fits = x->rank >= 1 && bias->rank >= 1 && bias->rank <= x->rank &&
              bias->extents[bias->rank - 1] == x->extents[x->rank - 1];
  for (uint32_t d = 0; d + 1 < bias->rank; d++) fits = fits && bias->extents[d] == 1;
  if (!fits)
    REFUSE("a bias is one row: [N]", "'%s' is %s, which is no row of '%s' %s", bias->name, SHAPE(bias), x->name,
           SHAPE(x));
  return check_one_kind(s);
}

static weft_status check_elementwise(const subject *s) {
  weft_status status = check_same(s, s->a);
  return status != WEFT_OK ? status : check_one_kind(s);
}

static weft_status check_requant(const subject *s) {
  if (is_float(s->a))
    REFUSE(NULL, "'%s' is %s; only integers are requantised", s->a->name, weft_format_name(s->a->dtype));
  if (s->op->s > 63) REFUSE(NULL, "a shift by %u; 0 to 63 are possible", s->op->s);
  weft_range x = weft_value_range(s->graph, s->op->ins[0]);
  int64_t low, high;
  if (__builtin_mul_overflow(x.low, s->op->m, &low) || __builtin_mul_overflow(x.high, s->op->m, &high))
    REFUSE("use a smaller multiplier and shift, clamp first, or declare tighter ranges",
           "'%s' may be %lld..%lld: times %lld that leaves 64 bits", s->a->name, (long long)x.low, (long long)x.high,
           (long long)s->op->m);
  return check_elementwise(s);
}

static weft_status check_clamp(const subject *s) {
  const weft_graph_op *op = s->op;
  if (is_float(s->a) || is_float(s->out))
    REFUSE("use a pointwise op with Min and Max", "'%s' is not an integer", s->a->name);
  if (op->low > op->high) REFUSE(NULL, "no value is in %lld..%lld", (long long)op->low, (long long)op->high);
  if (op->low < weft_format_min(s->out->dtype) || op->high > weft_format_max(s->out->dtype))
    REFUSE(NULL, "%lld..%lld does not fit %s", (long long)op->low, (long long)op->high,
           weft_format_name(s->out->dtype));
  return check_elementwise(s);
}

static weft_status check_pointwise(const subject *s) {
  const weft_graph_op *op = s->op;
  const char *wrong = weft_body_check(&op->body, op->in_count);
  if (wrong) REFUSE(NULL, "its body %s", wrong);
  bool integer = !is_float(s->out);
  for (uint32_t i = 0; i < op->in_count; i++) {
    const weft_value *in = operand(s, i);
    integer = integer && !is_float(in);
    bool fits = in->rank <= s->out->rank;
    for (uint32_t d = 0; fits && d < in->rank; d++)
      fits = in->extents[d] == 1 || in->extents[d] == s->out->extents[s->out->rank - in->rank + d];
    if (!fits) REFUSE(NULL, "'%s' %s cannot be broadcast to %s", in->name, SHAPE(in), SHAPE(s->out));
  }
  if (!is_float(s->out) && !(integer && weft_body_integral(&op->body)))
    REFUSE("give it a float result", "a body that is computed in floats cannot give %s",
           weft_format_name(s->out->dtype));
  return WEFT_OK;
}

/** Whether the operand broadcasts to the space: the result's extents, but `cols` along the last dimension. */
static bool broadcasts_to(const subject *s, const weft_value *in, uint64_t cols) {
  if (in->rank > s->out->rank) return false;
  for (uint32_t d = 0; d < in->rank; d++) {
    uint32_t at = s->out->rank - in->rank + d;
    uint64_t extent = at + 1 == s->out->rank ? cols : s->out->extents[at];
    if (in->extents[d] != 1 && in->extents[d] != extent) return false;
  }
  return true;
}

static weft_status check_fold(const subject *s, uint64_t cols) {
  const weft_graph_op *op = s->op;
  bool index = op->pool == WEFT_POOL_ARG_MAX, integer = weft_op_is_integer(s->graph, op);
  if (op->pool != WEFT_POOL_SUM && op->pool != WEFT_POOL_MAX && op->pool != WEFT_POOL_MIN && !index)
    REFUSE("Sum, Max, Min and ArgMax are possible", "cannot fold with pool %s", weft_pool_name(op->pool));
  if (index && is_float(s->out)) REFUSE("give it an integer result", "an index cannot be %s", "a float");
  if (!index && !is_float(s->out) && !integer)
    REFUSE("give it a float result", "a body that is computed in floats cannot give %s",
           weft_format_name(s->out->dtype));
  if (!cols && (index || (op->pool != WEFT_POOL_SUM && integer)))
    REFUSE(NULL, "nothing has no %s", weft_pool_name(op->pool));
  bool cut = op->pool == WEFT_POOL_SUM && !integer;
  if (op->segments > (cut ? WEFT_MAX_SEGMENTS : 0))
    REFUSE("a Sum of floats has up to 32 segments", "%u segments", op->segments);
  return WEFT_OK;
}

static weft_status check_partial_fold(const subject *s, uint64_t cols) {
  const weft_partial *partial = &s->out->partial;
  if (!s->out->has_partial) return WEFT_OK;
  if (partial->pool != s->op->pool || partial->pool == WEFT_POOL_ARG_MAX)
    REFUSE(NULL, "the partial result '%s' is of another pool", s->out->name);
  if (!is_float(s->out)) return WEFT_OK;
  if (s->out->dtype != WEFT_FP32)
    REFUSE("partial results travel in Fp32", "the partial result '%s' is %s", s->out->name,
           weft_format_name(s->out->dtype));
  if (partial->pool == WEFT_POOL_SUM &&
      (!s->op->segments || weft_segments_effective(cols, s->op->segments) != partial->count))
    REFUSE(NULL, "%llu elements in %u segments do not give the %u segments that '%s' holds", (unsigned long long)cols,
           s->op->segments, partial->count, s->out->name);
  return WEFT_OK;
}

static weft_status check_reduce(const subject *s) {
  const weft_graph_op *op = s->op;
  const char *wrong = weft_body_check(&op->body, op->in_count);
  if (wrong) REFUSE(NULL, "its body %s", wrong);
  if (weft_body_has(&op->body, WEFT_BODY_SELECT))
    REFUSE("select in a pointwise op before it", "its body selects by %s", "position");
  if (!s->out->rank || s->out->extents[s->out->rank - 1] != 1)
    REFUSE("the folded axis is kept with extent 1", "the result '%s' is %s", s->out->name, SHAPE(s->out));
  uint64_t cols = weft_reduce_extent(s->graph, op);
  for (uint32_t i = 0; i < op->in_count; i++)
    if (!broadcasts_to(s, operand(s, i), cols))
      REFUSE(NULL, "'%s' %s cannot be broadcast to rows of %llu for %s", operand(s, i)->name, SHAPE(operand(s, i)),
             (unsigned long long)cols, SHAPE(s->out));
  weft_status status = check_fold(s, cols);
  return status != WEFT_OK ? status : check_partial_fold(s, cols);
}

static weft_status check_transpose(const subject *s) {
  const weft_value *x = s->a, *out = s->out;
  if (x->rank != 2 || out->rank != 2 || x->extents[0] != out->extents[1] || x->extents[1] != out->extents[0] ||
      x->dtype != out->dtype)
    REFUSE("only matrices are transposed", "'%s' %s %s does not give %s %s", x->name, weft_format_name(x->dtype),
           SHAPE(x), weft_format_name(out->dtype), SHAPE(out));
  return WEFT_OK;
}

static weft_status check_gather(const subject *s) {
  const weft_graph_op *op = s->op;
  const weft_value *table = s->a, *ids = s->b, *out = s->out;
  if (is_float(ids)) REFUSE("ids are integers", "'%s' is %s", ids->name, weft_format_name(ids->dtype));
  bool fits = table->rank == 2 && out->rank >= 1 && ids->rank == out->rank && ids->extents[ids->rank - 1] == 1 &&
              table->extents[1] == out->extents[out->rank - 1];
  for (uint32_t d = 0; fits && d + 1 < out->rank; d++) fits = ids->extents[d] == out->extents[d];
  if (!fits)
    REFUSE("the table is a matrix, ids have one column", "rows of '%s' %s at '%s' %s do not give %s", table->name,
           SHAPE(table), ids->name, SHAPE(ids), SHAPE(out));
  bool whole = op->low == 0 && op->high >= 0 && (uint64_t)op->high + 1 == table->extents[0];
  if (!whole && (op->low < 0 || op->low % WEFT_GRAPH_TILE || op->high < op->low ||
                 (uint64_t)(op->high - op->low) + 1 < table->extents[0] || op->high >= WEFT_EXACT_FLOAT))
    REFUSE(NULL, "rows from %lld on of ids up to %lld", (long long)op->low, (long long)op->high);
  if (!table->extents[0] && weft_value_elements(out)) REFUSE(NULL, "'%s' has no rows", table->name);
  if (is_float(table) != is_float(out)) REFUSE(NULL, "'%s' cannot hold rows of '%s'", out->name, table->name);
  if (s->out->has_partial ? s->out->partial.pool != WEFT_POOL_SUM : table->dtype != out->dtype)
    REFUSE(NULL, "'%s' is %s and the result %s", table->name, weft_format_name(table->dtype),
           weft_format_name(out->dtype));
  return WEFT_OK;
}

static weft_status check_update(const subject *s) {
  const weft_graph_op *op = s->op;
  const weft_value *state = s->a, *x = s->b, *at = operand(s, 2), *out = s->out;
  if (out->role != WEFT_ROLE_STATE || out->updates != op->ins[0] + 1)
    REFUSE(NULL, "'%s' is not what becomes of '%s'", out->name, state->name);
  if (op->axis > 1 || state->rank != 2) REFUSE("states are matrices", "axis %u of '%s'", op->axis, state->name);
  if (x->rank != 2 || x->extents[0] != 1 || x->extents[1] != state->extents[!op->axis] || x->dtype != state->dtype)
    REFUSE("x is a row", "'%s' %s %s is no %s of '%s' %s %s", x->name, weft_format_name(x->dtype), SHAPE(x),
           op->axis ? "column" : "row", state->name, weft_format_name(state->dtype), SHAPE(state));
  if (is_float(at) || weft_value_elements(at) != 1)
    REFUSE("a position is one integer", "'%s' is %s %s", at->name, weft_format_name(at->dtype), SHAPE(at));
  if (!state->extents[0] || !state->extents[1]) REFUSE(NULL, "'%s' has no elements", state->name);
  return WEFT_OK;
}

/** What the step leaves of a state has its form, and is no function of the state but element by element. */
static weft_status check_state(const subject *s) {
  const weft_value *out = s->out, *state = &s->graph->values[out->updates - 1];
  if (state->role != WEFT_ROLE_STATE || state->updates) REFUSE(NULL, "'%s' is no state", state->name);
  if (!weft_same_extents(out, state) || out->dtype != state->dtype || out->chip != state->chip)
    REFUSE(NULL, "'%s' %s %s is not of the form of '%s' %s %s", out->name, weft_format_name(out->dtype), SHAPE(out),
           state->name, weft_format_name(state->dtype), SHAPE(state));
  if (s->op->kind == WEFT_GRAPH_UPDATE) return WEFT_OK;
  if (s->op->kind != WEFT_GRAPH_POINTWISE) REFUSE("copy it with a pointwise op", "gives the state '%s'", state->name);
  for (uint32_t i = 0; i < s->op->in_count; i++)
    if (s->op->ins[i] == out->updates - 1 && !weft_same_extents(operand(s, i), out))
      REFUSE("copy it", "reads elements of '%s' that it replaces", state->name);
  return WEFT_OK;
}

static weft_status check_all_reduce(const subject *s) {
  const weft_graph_op *op = s->op;
  if (op->pool != WEFT_POOL_SUM && op->pool != WEFT_POOL_MAX && op->pool != WEFT_POOL_MIN)
    REFUSE("Sum, Max and Min are possible", "cannot fold with pool %s", weft_pool_name(op->pool));
  uint32_t counts[WEFT_MAX_NODES], next = 0;
  for (uint32_t i = 0; i < op->in_count; i++) {
    const weft_value *in = operand(s, i);
    if (!in->has_partial) REFUSE(NULL, "'%s' is no partial result", in->name);
    if (in->partial.pool != op->pool || in->partial.of != s->a->partial.of || in->dtype != s->a->dtype)
      REFUSE(NULL, "'%s' and '%s' are not parts of one value", s->a->name, in->name);
    if (in->partial.first != next)
      REFUSE("operands cover 0..of once, in order", "'%s' begins at segment %u, expected %u", in->name,
             in->partial.first, next);
    weft_status status = check_same(s, in);
    if (status != WEFT_OK) return status;
    counts[i] = in->partial.count;
    next += counts[i];
  }
  if (next != s->a->partial.of)
    REFUSE("a partial result is missing", "its operands cover segments 0..%u of %u", next, s->a->partial.of);
  if (is_float(s->a) && op->pool == WEFT_POOL_SUM && !weft_nodes_are_subtrees(counts, op->in_count))
    REFUSE("cut at whole subtrees", "an operand is no complete subtree of the fold over %u segments", next);
  return check_one_kind(s);
}

static weft_status check_slice(const subject *s) {
  const weft_value *x = s->a, *out = s->out;
  if (x->rank != out->rank || x->dtype != out->dtype)
    REFUSE(NULL, "a slice of '%s' %s %s cannot be %s %s", x->name, weft_format_name(x->dtype), SHAPE(x),
           weft_format_name(out->dtype), SHAPE(out));
  for (uint32_t d = 0; d < x->rank; d++)
    if (s->op->starts[0][d] > x->extents[d] || out->extents[d] > x->extents[d] - s->op->starts[0][d])
      REFUSE(NULL, "%s at %s leaves '%s' %s", SHAPE(out), weft_extents_print(x->rank, s->op->starts[0]).text, x->name,
             SHAPE(x));
  return WEFT_OK;
}

static weft_status check_assemble(const subject *s) {
  const weft_value *out = s->out;
  uint64_t covered = 0;
  for (uint32_t i = 0; i < s->op->in_count; i++) {
    const weft_value *in = operand(s, i);
    if (in->rank != out->rank || in->dtype != out->dtype)
      REFUSE(NULL, "piece '%s' is %s %s, the result %s %s", in->name, weft_format_name(in->dtype), SHAPE(in),
             weft_format_name(out->dtype), SHAPE(out));
    for (uint32_t d = 0; d < out->rank; d++)
      if (s->op->starts[i][d] > out->extents[d] || in->extents[d] > out->extents[d] - s->op->starts[i][d])
        REFUSE(NULL, "piece '%s' %s at %s leaves the result %s", in->name, SHAPE(in),
               weft_extents_print(out->rank, s->op->starts[i]).text, SHAPE(out));
    if (weft_add_overflow(covered, weft_value_elements(in), &covered)) covered = UINT64_MAX;
  }
  if (covered != weft_value_elements(out))
    REFUSE("pieces tile the result exactly", "its pieces hold %llu elements, the result %llu",
           (unsigned long long)covered, (unsigned long long)weft_value_elements(out));
  uint32_t first, second;
  weft_status status = weft_pieces_overlap(s->graph, s->op, &first, &second, s->diag);
  if (status != WEFT_OK) return status;
  if (first != second)
    REFUSE("pieces tile the result exactly", "pieces '%s' and '%s' overlap", operand(s, first)->name,
           operand(s, second)->name);
  return WEFT_OK;
}

static weft_status check_kind(const subject *s) {
  switch (s->op->kind) {
  case WEFT_GRAPH_MATMUL: return check_matmul(s);
  case WEFT_GRAPH_BIAS: return check_bias(s);
  case WEFT_GRAPH_RELU: return check_elementwise(s);
  case WEFT_GRAPH_REQUANT: return check_requant(s);
  case WEFT_GRAPH_CLAMP: return check_clamp(s);
  case WEFT_GRAPH_POINTWISE: return check_pointwise(s);
  case WEFT_GRAPH_ALL_REDUCE: return check_all_reduce(s);
  case WEFT_GRAPH_REDUCE: return check_reduce(s);
  case WEFT_GRAPH_TRANSPOSE: return check_transpose(s);
  case WEFT_GRAPH_GATHER: return check_gather(s);
  case WEFT_GRAPH_UPDATE: return check_update(s);
  case WEFT_GRAPH_SLICE: return check_slice(s);
  case WEFT_GRAPH_ASSEMBLE: return check_assemble(s);
  default: return WEFT_INVALID;
  }
}

static weft_status check_operands(const subject *s) {
  static const struct {
    uint32_t least, most;
  } counts[] = {
#define ROW(id, name, least, most) {least, most},
    WEFT_GRAPH_OPS(ROW)
#undef ROW
  };
  const weft_graph_op *op = s->op;
  if (op->in_count < counts[op->kind].least || op->in_count > counts[op->kind].most)
    REFUSE(NULL, "%u operands; %u to %u are possible", op->in_count, counts[op->kind].least, counts[op->kind].most);
  for (uint32_t i = 0; i < op->in_count; i++)
    if (op->ins[i] >= s->graph->value_count) REFUSE(NULL, "operand %u is no value of the graph", i);
  if (op->out >= s->graph->value_count) REFUSE(NULL, "value %u is none of the graph", op->out);
  for (uint32_t i = 0; i < op->in_count; i++) {
    const weft_value *in = operand(s, i);
    if (in->producer == WEFT_NONE && !weft_value_is_given(in)) REFUSE(NULL, "'%s' has no producer yet", in->name);
    if (in->has_partial && op->kind != WEFT_GRAPH_ALL_REDUCE)
      REFUSE("reduce it first", "reads the partial result '%s'", in->name);
  }
  return WEFT_OK;
}

weft_status weft_op_check(const weft_graph *graph, const weft_graph_op *op, weft_diag *diag) {
  if (op->kind >= WEFT_GRAPH_OP_COUNT) FAIL(NULL, "op '%s' is of no kind", op->name);
  subject whole = {.graph = graph, .op = op, .diag = diag}, *s = &whole;
  weft_status status = check_operands(s);
  if (status != WEFT_OK) return status;
  s->a = operand(s, 0);
  s->b = op->in_count > 1 ? operand(s, 1) : NULL;
  s->out = &graph->values[op->out];
  if (op->section >= graph->section_count) REFUSE(NULL, "section %u does not exist", op->section);
  if (op->chip != s->out->chip)
    REFUSE(NULL, "runs on chip %u, its result '%s' is on chip %u", op->chip, s->out->name, s->out->chip);
  if (s->out->role == WEFT_ROLE_INPUT || s->out->role == WEFT_ROLE_PARAM)
    REFUSE(NULL, "'%s' is an input or a parameter and cannot be computed", s->out->name);
  if (s->out->has_partial && op->kind != WEFT_GRAPH_MATMUL && op->kind != WEFT_GRAPH_REDUCE &&
      op->kind != WEFT_GRAPH_GATHER)
    REFUSE(NULL, "cannot give the partial result '%s'", s->out->name);
  if (s->out->role == WEFT_ROLE_STATE && !s->out->updates)
    REFUSE(NULL, "'%s' is given and cannot be computed", s->out->name);
  status = s->out->updates ? check_state(s) : WEFT_OK;
  return status == WEFT_OK ? check_kind(s) : status;
}
