/* What the user asked for: --shard requests bind tensors, claims bind factors, contradictions name both sides. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* "factor n of matmul 'fc1'": how the user knows it. */
static const char *factor_text(weft_partitioner *p, uint32_t op, uint8_t factor) {
  const weft_graph_op *node = &p->graph->ops[op];
  const weft_value *out = &p->graph->values[node->out];
  const char *what = "a folded dimension";
  if (node->factors[factor].reduce) what = "K";
  for (uint32_t d = 0; d < out->rank; d++)
    if (node->out_factors[d] == factor) {
      if (node->kind == WEFT_GRAPH_MATMUL && d + 1 == out->rank)
        what = "N";
      else if (node->kind == WEFT_GRAPH_MATMUL && out->rank == 2)
        what = "M";
      else
        what = weft_arena_printf(p->arena, "result dimension %u", d);
    }
  return weft_arena_printf(p->arena, "%s of %s '%s'", what, weft_graph_op_name(node->kind), node->name);
}

static weft_status contradiction(weft_partitioner *p, uint32_t op, uint8_t factor, const char *first,
                                 const char *second) {
  return weft_error(p->diag, WEFT_INVALID, "drop one of the two, or give them different axes",
                    "contradiction at %s: %s and %s", factor_text(p, op, factor), first, second);
}

/* Float folds of one long chain have one order of adding, so no chip may hold a part of them. */
static weft_status refuse_chain(weft_partitioner *p, uint32_t op, const char *by) {
  const weft_graph_op *node = &p->graph->ops[op];
  return weft_error(p->diag, WEFT_INVALID,
                    "shard its rows or columns, or declare segments on it (which changes its rounding)",
                    "%s splits K of %s '%s', which folds its %llu elements as one chain: splitting it would change "
                    "its bits",
                    by, weft_graph_op_name(node->kind), node->name,
                    (unsigned long long)node->factors[weft_reduce_factor(node)].extent);
}

static uint8_t factor_of_axis(const weft_assignment *assignment, uint32_t axis) {
  for (uint8_t f = 0; f < WEFT_MAX_FACTORS; f++)
    if (memchr(assignment->cuts[f].axes, (int)axis, assignment->cuts[f].axis_count)) return f;
  return WEFT_NO_FACTOR;
}

/* Appends the axis to a factor's cut. A fold with a single segment is not cut: the last chip along the axis, which
 * holds that segment by the rule of borders, does it alone. */
static weft_status place_axis(weft_partitioner *p, uint32_t op, uint8_t factor, uint32_t axis, const char *by) {
  const weft_graph_op *node = &p->graph->ops[op];
  weft_assignment *assignment = &p->plan[op];
  weft_cut *cut = &assignment->cuts[factor];
  if (node->factors[factor].reduce) {
    if (p->mesh->extents[axis] > 1 && weft_reduce_is_chain(p->graph, node)) return refuse_chain(p, op, by);
    uint32_t segments = weft_reduce_segments(p->graph, node);
    if (segments == 1) {
      assignment->pins[axis] = (uint16_t)(p->mesh->extents[axis] - 1);
    } else {
      cut->segments = segments;
      cut->axes[cut->axis_count++] = (uint8_t)axis;
    }
  } else {
    cut->axes[cut->axis_count++] = (uint8_t)axis;
  }
  assignment->decided |= 1u << axis;
  p->claims[op].axis_by[axis] = by;
  return WEFT_OK;
}

weft_status weft_claim_axis(weft_partitioner *p, uint32_t op, uint8_t factor, uint32_t axis, const char *by) {
  weft_claims *claims = &p->claims[op];
  uint8_t holder = factor_of_axis(&p->plan[op], axis);
  if (holder == factor) return WEFT_OK;
  if (holder != WEFT_NO_FACTOR || p->plan[op].pins[axis] != WEFT_NO_PIN)
    return contradiction(p, op, factor, claims->axis_by[axis] ? claims->axis_by[axis] : "the plan", by);
  if (claims->factor_by[factor]) return contradiction(p, op, factor, claims->factor_by[factor], by);
  if (weft_factor_is_fixed(p->graph, &p->graph->ops[op], factor))
    return weft_error(p->diag, WEFT_INVALID, "leave this dimension whole",
                      p->graph->ops[op].factors[factor].reduce
                          ? "%s cuts %s, which finds an index along the whole of it"
                          : "%s cuts %s, whose body compares positions along it with an operand",
                      by, factor_text(p, op, factor));
  return place_axis(p, op, factor, axis, by);
}

/* ---- one request --------------------------------------------------------------------------------------------------
 */

typedef struct weft_request {
  const char *by; /* "--shard w1=cols@x" */
  const weft_value *value;
  weft_sharding sharding;
} weft_request;

/* The dimension that "rows", "cols" or a number means; the value's rank when none. */
static uint32_t dimension_called(const weft_value *value, const char *text, size_t length) {
  if (length == 4 && memcmp(text, "cols", 4) == 0) return value->rank ? value->rank - 1 : value->rank;
  if (length == 4 && memcmp(text, "rows", 4) == 0) return value->rank == 2 ? 0 : value->rank;
  if (length != 1 || *text < '0' || *text > '9') return value->rank;
  return (uint32_t)weft_min_u64((uint64_t)(*text - '0'), value->rank);
}

static weft_status add_axis(weft_partitioner *p, weft_request *request, uint32_t dimension, const char *text,
                            size_t length) {
  weft_sharding *sharding = &request->sharding;
  uint32_t axis = weft_mesh_axis(p->mesh, text, length);
  if (axis == WEFT_NO_AXIS)
    return weft_error(p->diag, WEFT_USAGE,
                      weft_arena_printf(p->arena, "the mesh is %s", weft_mesh_text(p->mesh, p->arena)),
                      "%s: the mesh has no axis '%.*s'", request->by, (int)weft_min_u64(length, 60), text);
  for (uint32_t d = 0; d < sharding->rank; d++)
    if (memchr(sharding->axes[d], (int)axis, sharding->axis_counts[d]))
      return weft_error(p->diag, WEFT_INVALID, "an axis cuts one dimension of a tensor, once",
                        "%s uses axis '%s' twice", request->by, p->mesh->names[axis]);
  sharding->axes[dimension][sharding->axis_counts[dimension]++] = (uint8_t)axis;
  return WEFT_OK;
}

/* "rows@x" or "rows@x+y". */
static weft_status parse_item(weft_partitioner *p, weft_request *request, const char *text, const char *end) {
  const char *at = memchr(text, '@', (size_t)(end - text));
  uint32_t dimension = at ? dimension_called(request->value, text, (size_t)(at - text)) : request->value->rank;
  if (dimension >= request->value->rank)
    return weft_error(p->diag, WEFT_USAGE,
                      "write rows@AXIS,cols@AXIS, or 0@AXIS with the dimension's number, or replicated",
                      "%s: '%.*s' names no dimension of a tensor of rank %u", request->by,
                      (int)weft_min_u64((uint64_t)(end - text), 60), text, request->value->rank);
  while (at < end) {
    const char *axis = at + 1;
    for (at = axis; at < end && *at != '+' && *at != '@';) at++;
    weft_status status = add_axis(p, request, dimension, axis, (size_t)(at - axis));
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}

static weft_status parse_spec(weft_partitioner *p, weft_request *request, const char *spec) {
  request->sharding.rank = request->value->rank;
  if (strcmp(spec, "replicated") == 0) return WEFT_OK;
  for (const char *at = spec;;) {
    const char *end = at + strcspn(at, ",");
    weft_status status = parse_item(p, request, at, end);
    if (status != WEFT_OK || !*end) return status;
    at = end + 1;
  }
}

/* Binds one factor to exactly these axes. */
static weft_status bind_factor(weft_partitioner *p, uint32_t op, uint8_t factor, const uint8_t *axes, uint8_t count,
                               const char *by) {
  weft_claims *claims = &p->claims[op];
  weft_cut *cut = &p->plan[op].cuts[factor];
  if (claims->factor_by[factor]) {
    bool pinned = count > 0 && cut->axis_count == 0 && p->plan[op].pins[axes[0]] != WEFT_NO_PIN &&
                  claims->axis_by[axes[0]] == claims->factor_by[factor];
    if (pinned || (cut->axis_count == count && memcmp(cut->axes, axes, count) == 0)) return WEFT_OK;
    return contradiction(p, op, factor, claims->factor_by[factor], by);
  }
  for (uint8_t i = 0; i < count; i++) {
    weft_status status = weft_claim_axis(p, op, factor, axes[i], by);
    if (status != WEFT_OK) return status;
  }
  claims->factor_by[factor] = by;
  return WEFT_OK;
}

static weft_status bind_dimensions(weft_partitioner *p, const weft_request *request, uint32_t op,
                                   const uint8_t *factors) {
  const weft_sharding *sharding = &request->sharding;
  for (uint32_t d = 0; d < sharding->rank; d++) {
    if (factors[d] == WEFT_NO_FACTOR) {
      if (sharding->axis_counts[d] == 0) continue;
      return weft_error(p->diag, WEFT_INVALID, "leave this dimension whole",
                        "%s cuts dimension %u, which has one element that %s '%s' repeats", request->by, d,
                        weft_graph_op_name(p->graph->ops[op].kind), p->graph->ops[op].name);
    }
    weft_status status = bind_factor(p, op, factors[d], sharding->axes[d], sharding->axis_counts[d], request->by);
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}

/* A produced tensor binds the op that makes it, any other the ops that read it: those read their shard from the file.
 */
static weft_status bind_request(weft_partitioner *p, const weft_request *request) {
  const weft_graph *graph = p->graph;
  uint32_t value = (uint32_t)(request->value - graph->values);
  if (request->value->producer != WEFT_NONE)
    return bind_dimensions(p, request, request->value->producer, graph->ops[request->value->producer].out_factors);
  for (uint64_t u = p->use_begin[value]; u < p->use_begin[value + 1]; u++) {
    weft_use use = p->uses[u];
    weft_status status = bind_dimensions(p, request, use.op, graph->ops[use.op].in_factors[use.operand]);
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}

static const char *tensor_names(weft_partitioner *p) {
  weft_text text = {0};
  for (uint64_t v = 0; v < p->graph->value_count && text.length < 2000; v++)
    weft_text_printf(&text, "%s%s", v ? ", " : "", p->graph->values[v].name);
  const char *names = text.data ? weft_arena_printf(p->arena, "the tensors are %s", text.data) : NULL;
  weft_text_free(&text);
  return names;
}

static const weft_value *value_called(const weft_graph *graph, const char *name) {
  for (uint64_t v = 0; v < graph->value_count; v++)
    if (graph->values[v].name && strcmp(graph->values[v].name, name) == 0) return &graph->values[v];
  return NULL;
}

weft_status weft_claim_requests(weft_partitioner *p) {
  for (uint64_t r = 0; r < p->options->shard_count; r++) {
    const weft_shard_request *asked = &p->options->shards[r];
    weft_request request = {.value = value_called(p->graph, asked->tensor),
                            .by = weft_arena_printf(p->arena, "--shard %.200s=%.200s", asked->tensor, asked->spec)};
    if (!request.by) return weft_error_memory(p->diag);
    if (!request.value)
      return weft_error(p->diag, WEFT_INVALID, tensor_names(p), "%s: there is no tensor '%.200s'", request.by,
                        asked->tensor);
    weft_status status = parse_spec(p, &request, asked->spec);
    if (status == WEFT_OK) status = bind_request(p, &request);
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}
