/* weft_graph_interpret: datasets in, ops in order, datasets out. */
#include "interpret_private.h"

#include <stdlib.h>
#include <string.h>

typedef struct interpretation {
  const weft_graph *graph;
  const weft_array_set *in;
  weft_array_set *out;
  weft_diag *diag;
  void **data;     /**< by value; NULL before it is computed and after its last reader */
  uint64_t *reads; /**< by value: readers still to come */
} interpretation;

static const char *dataset_name(const weft_value *value) { return value->has_shard ? value->shard.of : value->name; }

static bool is_state(const weft_value *value) { return value->role == WEFT_ROLE_STATE; }

/** Whether the value is written when the run ends, and then held until it does. */
static bool is_kept(const weft_value *value) { return value->role == WEFT_ROLE_OUTPUT || is_state(value); }
static weft_plane dataset_plane(const weft_value *value) {
  return value->has_shard ? weft_graph_plane(value->full_rank, value->full_extents) : weft_value_plane(value);
}

static void *allocate(const weft_value *value) {
  return calloc(weft_value_elements(value) * weft_format_bytes(value->dtype) + 1, 1);
}

/** Copies a value's block out of its dataset's plane, or into it. */
static void copy_shard(const weft_value *value, void *data, void *dataset, bool into) {
  const weft_plane block = weft_value_plane(value), whole = dataset_plane(value);
  const size_t bytes = weft_format_bytes(value->dtype);
  const uint64_t row0 = value->has_shard ? value->shard.row0 : 0, col0 = value->has_shard ? value->shard.col0 : 0;
  for (uint64_t i = 0; i < block.rows && block.cols; i++) {
    char *outer = (char *)dataset + ((row0 + i) * whole.cols + col0) * bytes,
         *inner = (char *)data + i * block.cols * bytes;
    memcpy(into ? outer : inner, into ? inner : outer, block.cols * bytes);
  }
}

/* ---- sources ------------------------------------------------------------------------------------------------------
 */

static weft_status fill_source(interpretation *run, const weft_value *value, void *data) {
  const weft_plane block = weft_value_plane(value), whole = dataset_plane(value);
  const uint64_t row0 = value->has_shard ? value->shard.row0 : 0, col0 = value->has_shard ? value->shard.col0 : 0;
  for (uint64_t i = 0; i < block.rows; i++)
    for (uint64_t j = 0; j < block.cols; j++)
      if (!weft_init_store(&value->init, (row0 + i) * whole.cols + col0 + j, value->dtype, data, i * block.cols + j))
        return weft_error(run->diag, WEFT_INVALID, "supply the dataset", "the fill of '%s' does not fit %s",
                          value->name, weft_format_name(value->dtype));
  return WEFT_OK;
}

static const char dataset_hint[] =
    "give the file the program was made for; weft tensor make writes one, weft tensor slice and rename adapt one";

static weft_status check_dataset(interpretation *run, const weft_value *value, const weft_array *array) {
  uint64_t rows, cols;
  weft_plane_extents(array->rank, array->extents, &rows, &cols);
  const weft_plane whole = dataset_plane(value);
  const weft_place place = {.file = run->in->file};
  if (array->dtype != value->dtype)
    return weft_error_at(run->diag, WEFT_INVALID, place, dataset_hint, "dataset '%s' is %s, the graph expects %s",
                         array->name, weft_format_name(array->dtype), weft_format_name(value->dtype));
  if (rows == whole.rows && cols == whole.cols) return WEFT_OK;
  uint32_t rank = value->has_shard ? value->full_rank : value->rank;
  const uint64_t *extents = value->has_shard ? value->full_extents : value->extents;
  return weft_error_at(run->diag, WEFT_INVALID, place, dataset_hint, "dataset '%s' is %s, the graph expects %s",
                       array->name, weft_extents_print(array->rank, array->extents).text,
                       weft_extents_print(rank, extents).text);
}

/** Values keep their declared range: what is proved from it would not hold otherwise. */
static weft_status check_values(interpretation *run, uint32_t id) {
  const weft_value *value = &run->graph->values[id];
  if (!value->has_range) return WEFT_OK;
  const uint64_t count = weft_value_elements(value);
  for (uint64_t i = 0; i < count; i++) {
    int64_t x = weft_load_i64(value->dtype, run->data[id], i);
    if (x < value->range.low || x > value->range.high)
      return weft_error_at(run->diag, WEFT_INVALID, (weft_place){.file = run->in->file}, "declare a wider range",
                           "dataset '%s' holds %lld, outside its range %lld..%lld", dataset_name(value), (long long)x,
                           (long long)value->range.low, (long long)value->range.high);
  }
  return WEFT_OK;
}

static weft_status read_source(interpretation *run, uint32_t id) {
  const weft_value *value = &run->graph->values[id];
  run->data[id] = allocate(value);
  if (!run->data[id]) return weft_error_memory(run->diag);
  const weft_array *array = weft_array_set_find(run->in, dataset_name(value));
  if (!array && value->init.kind != WEFT_INIT_EXTERNAL) return fill_source(run, value, run->data[id]);
  if (!array)
    return weft_error_at(run->diag, WEFT_INVALID, (weft_place){.file = run->in->file},
                         "`weft tensor rename` gives a dataset another name", "dataset '%s' is missing",
                         dataset_name(value));
  weft_status status = check_dataset(run, value, array);
  if (status != WEFT_OK) return status;
  copy_shard(value, run->data[id], array->data, false);
  return check_values(run, id);
}

/* ---- results ------------------------------------------------------------------------------------------------------
 */

static bool writes(const weft_value *value) { return !value->has_shard || value->shard.writer; }

/** Writes the data of value `from`: what the step leaves of a state is written as the state. */
static weft_status write_result(interpretation *run, uint32_t id, uint32_t from) {
  const weft_value *value = &run->graph->values[id];
  if (!writes(value)) return WEFT_OK;
  const char *name = dataset_name(value);
  weft_array *array = weft_array_set_find(run->out, name);
  if (!array)
    array = weft_array_set_add(run->out, name, value->dtype, value->has_shard ? value->full_rank : value->rank,
                               value->has_shard ? value->full_extents : value->extents);
  if (!array) return weft_error_memory(run->diag);
  weft_status status = check_dataset(run, value, array);
  if (status == WEFT_OK) copy_shard(value, run->data[from], array->data, true);
  return status;
}

/** Whether two elements are the same result: equal bits, or NaNs both. */
static bool same_element(weft_format format, const void *a, uint64_t i, const void *b, uint64_t j) {
  const size_t bytes = weft_format_bytes(format);
  if (memcmp((const char *)a + i * bytes, (const char *)b + j * bytes, bytes) == 0) return true;
  if (!weft_format_is_float(format)) return false;
  float x = weft_load_f32(format, a, i), y = weft_load_f32(format, b, j);
  return x != x && y != y;
}

/** A replica holds what its writer wrote. */
static weft_status check_replica(interpretation *run, uint32_t id, uint32_t from) {
  const weft_value *value = &run->graph->values[id];
  const weft_array *array = weft_array_set_find(run->out, dataset_name(value));
  if (!array)
    return weft_error(run->diag, WEFT_INVALID, NULL, "no chip writes '%s', of which chip %u has a replica",
                      dataset_name(value), value->chip);
  weft_status status = check_dataset(run, value, array);
  const weft_plane block = weft_value_plane(value), whole = dataset_plane(value);
  for (uint64_t i = 0; i < block.rows && status == WEFT_OK; i++)
    for (uint64_t j = 0; j < block.cols && status == WEFT_OK; j++) {
      uint64_t at = (value->shard.row0 + i) * whole.cols + value->shard.col0 + j;
      if (!same_element(value->dtype, array->data, at, run->data[from], i * block.cols + j))
        status = weft_error(run->diag, WEFT_INVALID, NULL,
                            "chip %u has another '%s' at row %llu, column %llu than its writer", value->chip,
                            dataset_name(value), (unsigned long long)(value->shard.row0 + i),
                            (unsigned long long)(value->shard.col0 + j));
    }
  return status;
}

/* ---- the walk -----------------------------------------------------------------------------------------------------
 */

static void release(interpretation *run, uint32_t value) {
  if (is_kept(&run->graph->values[value]) || --run->reads[value]) return;
  free(run->data[value]);
  run->data[value] = NULL;
}

static weft_status run_op(interpretation *run, const weft_graph_op *op) {
  const void **ins = calloc(op->in_count + 1u, sizeof *ins);
  run->data[op->out] = allocate(&run->graph->values[op->out]);
  weft_status status = ins && run->data[op->out] ? WEFT_OK : weft_error_memory(run->diag);
  for (uint32_t i = 0; i < op->in_count && status == WEFT_OK; i++) {
    if (!run->data[op->ins[i]]) status = read_source(run, op->ins[i]);
    if (ins) ins[i] = run->data[op->ins[i]];
  }
  const weft_evaluation evaluation = {run->graph, op, ins, run->data[op->out], run->diag};
  if (status == WEFT_OK) status = weft_evaluate_op(&evaluation);
  free(ins);
  for (uint32_t i = 0; i < op->in_count && status == WEFT_OK; i++) release(run, op->ins[i]);
  return status;
}

/** By value: the one whose data a state or output ends the step with; WEFT_NONE for values that are not written. */
static weft_status find_results(interpretation *run, uint32_t *from) {
  const weft_graph *graph = run->graph;
  for (uint32_t v = 0; v < graph->value_count; v++) {
    const weft_value *value = &graph->values[v];
    from[v] = value->role == WEFT_ROLE_OUTPUT || (is_state(value) && !value->updates) ? v : WEFT_NONE;
  }
  for (uint32_t v = 0; v < graph->value_count; v++)
    if (graph->values[v].updates) from[graph->values[v].updates - 1] = v;
  weft_status status = WEFT_OK;
  for (uint32_t v = 0; v < graph->value_count && status == WEFT_OK; v++)
    if (from[v] == v && is_state(&graph->values[v]) && !run->data[v]) status = read_source(run, v);
  return status;
}

static weft_status write_results(interpretation *run) {
  const weft_graph *graph = run->graph;
  uint32_t *from = calloc(graph->value_count + 1, sizeof *from);
  weft_status status = from ? find_results(run, from) : weft_error_memory(run->diag);
  for (uint32_t v = 0; v < graph->value_count && status == WEFT_OK; v++)
    if (from[v] != WEFT_NONE) status = write_result(run, v, from[v]);
  for (uint32_t v = 0; v < graph->value_count && status == WEFT_OK; v++)
    if (from[v] != WEFT_NONE && !writes(&graph->values[v])) status = check_replica(run, v, from[v]);
  free(from);
  return status;
}

static weft_status run_graph(interpretation *run) {
  const weft_graph *graph = run->graph;
  weft_status status = WEFT_OK;
  for (uint64_t i = 0; i < graph->op_count; i++)
    for (uint32_t j = 0; j < graph->ops[i].in_count; j++) run->reads[graph->ops[i].ins[j]]++;
  for (uint64_t i = 0; i < graph->op_count && status == WEFT_OK; i++) status = run_op(run, &graph->ops[i]);
  return status == WEFT_OK ? write_results(run) : status;
}

weft_status weft_graph_interpret(const weft_graph *graph, const weft_array_set *in, weft_array_set *out,
                                 weft_diag *diag) {
  weft_status status = weft_graph_check(graph, diag);
  if (status != WEFT_OK) return status;
  interpretation run = {.graph = graph,
                        .in = in,
                        .out = out,
                        .diag = diag,
                        .data = calloc(graph->value_count + 1, sizeof *run.data),
                        .reads = calloc(graph->value_count + 1, sizeof *run.reads)};
  status = run.data && run.reads ? run_graph(&run) : weft_error_memory(diag);
  for (uint64_t v = 0; run.data && v < graph->value_count; v++) free(run.data[v]);
  free(run.data);
  free(run.reads);
  return status;
}

/** Moves the states that a step has left to where the next finds them. */
static weft_status chain_states(const weft_graph *graph, const weft_array_set *out, weft_array_set *in,
                                weft_diag *diag) {
  for (uint64_t v = 0; v < graph->value_count; v++) {
    const weft_value *value = &graph->values[v];
    const weft_array *left = is_state(value) && !value->updates ? weft_array_set_find(out, dataset_name(value)) : NULL;
    if (!left) continue;
    weft_array *found = weft_array_set_add(in, left->name, left->dtype, left->rank, left->extents);
    if (!found) return weft_error_memory(diag);
    memcpy(found->data, left->data, weft_array_elements(left) * weft_format_bytes(left->dtype));
  }
  return WEFT_OK;
}

/** A copy of the set that the steps may change. */
static weft_status copy_set(const weft_array_set *from, weft_array_set *to, weft_diag *diag) {
  for (uint64_t i = 0; i < from->count; i++) {
    const weft_array *item = &from->items[i];
    weft_array *copy = weft_array_set_add(to, item->name, item->dtype, item->rank, item->extents);
    if (!copy) return weft_error_memory(diag);
    memcpy(copy->data, item->data, weft_array_elements(item) * weft_format_bytes(item->dtype));
  }
  return WEFT_OK;
}

/** The Input to advance, made from its fill where it is not given. */
static weft_status offer_advanced(const weft_graph *graph, const char *advance, weft_array_set *found,
                                  weft_diag *diag) {
  const weft_value *value = NULL;
  for (uint64_t v = 0; v < graph->value_count && !value; v++) {
    const weft_value *candidate = &graph->values[v];
    if (candidate->role == WEFT_ROLE_INPUT && strcmp(dataset_name(candidate), advance) == 0) value = candidate;
  }
  if (!value || weft_format_is_float(value->dtype))
    return weft_error(diag, WEFT_USAGE, "name an Input of integers", "the program has no Input '%s' to advance",
                      advance);
  if (weft_array_set_find(found, advance) || value->init.kind == WEFT_INIT_EXTERNAL) return WEFT_OK;
  const uint64_t *extents = value->has_shard ? value->full_extents : value->extents;
  weft_array *array =
      weft_array_set_add(found, advance, value->dtype, value->has_shard ? value->full_rank : value->rank, extents);
  if (!array) return weft_error_memory(diag);
  for (uint64_t i = 0; i < weft_array_elements(array); i++)
    if (!weft_init_store(&value->init, i, array->dtype, array->data, i))
      return weft_error(diag, WEFT_INVALID, "supply the dataset", "the fill of '%s' does not fit %s", advance,
                        weft_format_name(array->dtype));
  return WEFT_OK;
}

weft_status weft_graph_interpret_steps(const weft_graph *graph, uint64_t steps, const char *advance,
                                       const weft_array_set *in, weft_array_set *out, weft_diag *diag) {
  if (steps <= 1 && !advance) return weft_graph_interpret(graph, in, out, diag);
  weft_array_set found = {0};
  weft_status status = copy_set(in, &found, diag);
  if (status == WEFT_OK && advance) status = offer_advanced(graph, advance, &found, diag);
  for (uint64_t step = 0; step < weft_max_u64(steps, 1) && status == WEFT_OK; step++) {
    if (step) weft_array_set_free(out);
    if (step) *out = (weft_array_set){0};
    if (step && advance) status = weft_array_set_advance(&found, advance, diag);
    if (status == WEFT_OK) status = weft_graph_interpret(graph, &found, out, diag);
    if (status == WEFT_OK) status = chain_states(graph, out, &found, diag);
  }
  weft_array_set_free(&found);
  return status;
}
