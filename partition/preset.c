/* Presets of --split: one kind an axis, applied to every layer.
 *
 * A layer is a matmul with the ops after it up to the next; in a graph without matmuls, an op. */
#include "internal.h"

#include <string.h>

#define WEFT_PRESETS(ROW)                                                                                              \
  ROW(COLUMNS, "columns")                                                                                              \
  ROW(ROWS, "rows")                                                                                                    \
  ROW(BATCH, "batch")                                                                                                  \
  ROW(COLUMN_ROW, "column-row")                                                                                        \
  ROW(PIPELINE, "pipeline")
#define WEFT_ENUM_PRESET(id, name) PRESET_##id,
typedef enum preset { WEFT_PRESETS(WEFT_ENUM_PRESET) PRESET_COUNT } preset;

static const char *const preset_names[] = {
#define WEFT_PRESET_NAME(id, name) name,
    WEFT_PRESETS(WEFT_PRESET_NAME)};

static const char *const presets_hint =
    "presets are columns, rows, batch, column-row and pipeline, or one for each axis: x=batch,y=columns";

/* ---- layers ---------------------------------------------------------------------------------------------------------
 */

typedef struct layers {
  uint32_t *of_op; /* by op */
  uint32_t count;
  bool matmuls;
} layers;

/* Ops before the first matmul that reads them belong to its layer: they are moved to it from behind. */
static void pull_back(const weft_partitioner *p, layers *found, const bool *placed) {
  for (uint64_t o = p->graph->op_count; o-- > 0;) {
    if (placed[o]) continue;
    uint32_t out = p->graph->ops[o].out, least = found->count - 1;
    for (uint64_t u = p->use_begin[out]; u < p->use_begin[out + 1]; u++)
      if (found->of_op[p->uses[u].op] < least) least = found->of_op[p->uses[u].op];
    found->of_op[o] = least;
  }
}

static weft_status find_layers(weft_partitioner *p, layers *found) {
  const weft_graph *graph = p->graph;
  *found = (layers){.of_op = WEFT_NEW_ARRAY(p->arena, uint32_t, graph->op_count)};
  bool *placed = WEFT_NEW_ARRAY(p->arena, bool, graph->op_count);
  if (!found->of_op || !placed) return weft_error_memory(p->diag);
  for (uint64_t o = 0; o < graph->op_count; o++) found->matmuls |= graph->ops[o].kind == WEFT_GRAPH_MATMUL;
  for (uint64_t o = 0; o < graph->op_count; o++) {
    const weft_graph_op *op = &graph->ops[o];
    if (op->kind == WEFT_GRAPH_MATMUL || !found->matmuls) {
      found->of_op[o] = found->count++;
      placed[o] = true;
      continue;
    }
    for (uint32_t i = 0; i < op->in_count; i++) {
      uint32_t producer = graph->values[op->ins[i]].producer;
      if (producer == WEFT_NONE || !placed[producer]) continue;
      placed[o] = true;
      found->of_op[o] = (uint32_t)weft_max_u64(found->of_op[o], found->of_op[producer]);
    }
  }
  if (found->count > 0) pull_back(p, found, placed);
  return WEFT_OK;
}

/* ---- one axis -------------------------------------------------------------------------------------------------------
 */

/* The factor a preset cuts in an op of layer `layer`; WEFT_NO_FACTOR when the op has none such. */
static uint8_t preset_factor(const weft_partitioner *p, const weft_graph_op *op, preset kind, uint32_t layer) {
  const weft_value *out = &p->graph->values[op->out];
  bool rows = kind == PRESET_ROWS || (kind == PRESET_COLUMN_ROW && layer % 2 == 1);
  if (rows) return weft_reduce_factor(op);
  if (out->rank == 0) return WEFT_NO_FACTOR;
  if (op->kind == WEFT_GRAPH_REDUCE && kind == PRESET_COLUMNS) { // the columns of what it folds
    uint8_t folded = weft_reduce_factor(op);
    bool cuts = !weft_factor_is_fixed(p->graph, op, folded) && weft_reduce_segments(p->graph, op) > 1;
    return cuts && !weft_reduce_is_chain(p->graph, op) ? folded : WEFT_NO_FACTOR;
  }
  if (kind == PRESET_BATCH) return out->rank > 1 ? op->out_factors[0] : WEFT_NO_FACTOR;
  return op->out_factors[out->rank - 1];
}

/* Layers dealt out in order: as many to each stage as can be; one each when there are fewer layers than stages. */
static void apply_pipeline(weft_partitioner *p, const layers *found, uint32_t axis, const char *by) {
  uint64_t stages = p->mesh->extents[axis];
  for (uint64_t o = 0; o < p->graph->op_count; o++) {
    uint64_t layer = found->of_op[o];
    uint64_t stage = found->count <= stages ? layer : weft_ceil_div((layer + 1) * stages, found->count) - 1;
    p->plan[o].pins[axis] = (uint16_t)stage;
    p->plan[o].decided |= 1u << axis;
    p->claims[o].axis_by[axis] = by;
  }
}

static weft_status apply_cuts(weft_partitioner *p, const layers *found, preset kind, uint32_t axis, const char *by) {
  for (uint32_t o = 0; o < p->graph->op_count; o++) {
    const weft_graph_op *op = &p->graph->ops[o];
    if (found->matmuls && op->kind != WEFT_GRAPH_MATMUL) continue;
    uint8_t factor = preset_factor(p, op, kind, found->of_op[o]);
    if (factor != WEFT_NO_FACTOR) {
      weft_status status = weft_claim_axis(p, o, factor, axis, by);
      if (status != WEFT_OK) return status;
    }
    p->plan[o].decided |= 1u << axis;
  }
  return WEFT_OK;
}

static weft_status apply_preset(weft_partitioner *p, const layers *found, uint32_t axis, const char *name,
                                size_t length, const char *by) {
  preset kind = 0;
  while (kind < PRESET_COUNT &&
         !(strlen(preset_names[kind]) == length && memcmp(preset_names[kind], name, length) == 0))
    kind++;
  if (kind == PRESET_COUNT)
    return weft_error(p->diag, WEFT_USAGE, presets_hint, "%s: there is no preset '%.*s'", by,
                      (int)weft_min_u64(length, 60), name);
  if (kind == PRESET_ROWS && !found->matmuls)
    return weft_error(p->diag, WEFT_INVALID, "use columns or batch",
                      "%s: the graph has no matmul whose K could be split", by);
  if (kind != PRESET_PIPELINE) return apply_cuts(p, found, kind, axis, by);
  for (uint32_t o = 0; o < p->graph->op_count; o++)
    if (p->claims[o].axis_by[axis])
      return weft_error(p->diag, WEFT_INVALID, "give the pipeline an axis of its own",
                        "contradiction on mesh axis '%s': %s and %s", p->mesh->names[axis], p->claims[o].axis_by[axis],
                        by);
  apply_pipeline(p, found, axis, by);
  return WEFT_OK;
}

/* One "x=batch". `seen` has a bit for each axis that had its preset. */
static weft_status apply_item(weft_partitioner *p, const layers *found, const char *text, const char *end,
                              uint32_t *seen) {
  const char *equals = memchr(text, '=', (size_t)(end - text));
  int shown = (int)weft_min_u64((uint64_t)(end - text), 80);
  const char *by = weft_arena_printf(p->arena, "--split %.*s", shown, text);
  if (!by) return weft_error_memory(p->diag);
  if (text == end)
    return weft_error(p->diag, WEFT_USAGE, presets_hint, "--split %.80s: there is no preset ''", p->options->split);
  uint32_t axis = 0;
  if (equals) {
    axis = weft_mesh_axis(p->mesh, text, (size_t)(equals - text));
    text = equals + 1;
  } else if (p->mesh->axis_count > 1) {
    return weft_error(p->diag, WEFT_USAGE, "give one for each axis, as in x=batch,y=columns",
                      "%s: the mesh %s has %u axes, and the preset names none", by, weft_mesh_text(p->mesh, p->arena),
                      p->mesh->axis_count);
  }
  if (axis == WEFT_NO_AXIS)
    return weft_error(p->diag, WEFT_USAGE,
                      weft_arena_printf(p->arena, "the mesh is %s", weft_mesh_text(p->mesh, p->arena)),
                      "%s: the mesh has no such axis", by);
  if (*seen >> axis & 1)
    return weft_error(p->diag, WEFT_USAGE, "one preset an axis", "%s: axis '%s' has two presets", by,
                      p->mesh->names[axis]);
  *seen |= 1u << axis;
  return apply_preset(p, found, axis, text, (size_t)(end - text), by);
}

weft_status weft_claim_presets(weft_partitioner *p) {
  if (!p->options->split) return WEFT_OK;
  layers found;
  weft_status status = find_layers(p, &found);
  uint32_t seen = 0;
  for (const char *at = p->options->split; status == WEFT_OK;) {
    const char *end = at + strcspn(at, ",");
    status = apply_item(p, &found, at, end, &seen);
    if (!*end) break;
    at = end + 1;
  }
  return status;
}
