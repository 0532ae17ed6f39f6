/* weft_partition: claims, propagation, search, the machine graph, and the check that it fits a chip. */
#include "internal.h"

/* Plans tried before a graph that does not fit is refused. */
#define PLANS_TRIED 8

static bool index_uses(weft_partitioner *p) {
  const weft_graph *graph = p->graph;
  p->use_begin = WEFT_NEW_ARRAY(p->arena, uint64_t, graph->value_count + 2);
  if (!p->use_begin) return false;
  uint64_t total = 0;
  for (uint64_t o = 0; o < graph->op_count; o++)
    for (uint32_t i = 0; i < graph->ops[o].in_count; i++, total++) p->use_begin[graph->ops[o].ins[i] + 2]++;
  p->uses = WEFT_NEW_ARRAY(p->arena, weft_use, total);
  if (!p->uses) return false;
  for (uint64_t v = 0; v < graph->value_count; v++) p->use_begin[v + 2] += p->use_begin[v + 1];
  for (uint32_t o = 0; o < graph->op_count; o++)
    for (uint32_t i = 0; i < graph->ops[o].in_count; i++)
      p->uses[p->use_begin[graph->ops[o].ins[i] + 1]++] = (weft_use){o, i};
  return true;
}

static weft_status check_question(const weft_graph *graph, const weft_partition_options *options, weft_diag *diag) {
  uint64_t chips = weft_mesh_chips(&options->mesh);
  if (options->mesh.axis_count == 0 || chips == 0 || chips > WEFT_MAX_CHIPS)
    return weft_error(diag, WEFT_USAGE, "give a mesh such as x=4", "a mesh of %llu chips is not possible",
                      (unsigned long long)chips);
  if (graph->chips > 1)
    return weft_error(diag, WEFT_INVALID, "partition the graph of one chip", "graph '%s' is for %u chips already",
                      graph->name, graph->chips);
  for (uint64_t o = 0; o < graph->op_count; o++)
    if (graph->ops[o].kind == WEFT_GRAPH_ALL_REDUCE && chips > 1)
      return weft_error(diag, WEFT_INVALID, "start from the program before it was partitioned",
                        "op '%s' is an all-reduce: the graph was partitioned already", graph->ops[o].name);
  return WEFT_OK;
}

static bool start(weft_partitioner *p) {
  uint64_t ops = p->graph->op_count;
  p->chips = weft_mesh_chips(p->mesh);
  for (uint32_t a = p->mesh->axis_count, stride = 1; a-- > 0; stride *= p->mesh->extents[a]) {
    p->strides[a] = stride;
    p->all_axes |= 1u << a;
  }
  p->plan = WEFT_NEW_ARRAY(p->arena, weft_assignment, ops);
  p->claims = WEFT_NEW_ARRAY(p->arena, weft_claims, ops);
  if (!p->plan || !p->claims) return false;
  for (uint64_t o = 0; o < ops; o++)
    for (uint32_t a = 0; a < WEFT_MAX_AXES; a++) p->plan[o].pins[a] = WEFT_NO_PIN;
  return index_uses(p);
}

/* The bytes of the fullest chip's tensors. */
static uint64_t fullest_chip(weft_partitioner *p, const weft_graph *machine, uint32_t *chip) {
  uint64_t *bytes = WEFT_NEW_ARRAY(p->arena, uint64_t, p->chips), most = 0;
  *chip = 0;
  for (uint64_t v = 0; bytes && v < machine->value_count; v++) {
    const weft_value *value = &machine->values[v];
    if (value->updates) continue; // the same memory as the state
    uint64_t size = weft_format_bytes(value->dtype);
    for (uint32_t d = 0; d < value->rank; d++)
      if (weft_mul_overflow(size, value->extents[d], &size)) size = UINT64_MAX, d = value->rank;
    if (weft_add_overflow(bytes[value->chip], size, &bytes[value->chip])) bytes[value->chip] = UINT64_MAX;
    if (bytes[value->chip] > most) most = bytes[value->chip], *chip = value->chip;
  }
  return most;
}

/* The first of the plans whose machine graph fits. */
static weft_status build_fitting(weft_partitioner *p, weft_assignment **plans, uint64_t count, weft_graph **machine) {
  uint64_t least = UINT64_MAX, limit = p->target->chip_bytes;
  uint32_t chip = 0;
  for (uint64_t i = 0; i < count; i++) {
    p->plan = plans[i];
    weft_status status = weft_build_machine(p, machine);
    if (status != WEFT_OK) return status;
    uint64_t bytes = limit ? fullest_chip(p, *machine, &chip) : 0;
    if (bytes <= limit) return WEFT_OK;
    least = weft_min_u64(least, bytes);
    weft_graph_free(*machine);
    *machine = NULL;
  }
  return weft_error(
      p->diag, WEFT_INVALID, "use more chips, or a split that cuts the parameters: columns, rows, pipeline",
      "graph '%s' does not fit: the fullest of %u chips needs %llu bytes of tensors, and target '%s' has %llu a chip",
      p->graph->name, p->chips, (unsigned long long)least, p->target->name, (unsigned long long)limit);
}

static weft_status partition(weft_partitioner *p, weft_graph **machine, weft_text *report) {
  weft_assignment *plans[PLANS_TRIED];
  uint64_t count = 0;
  if (!start(p)) return weft_error_memory(p->diag);
  weft_status status = weft_claim_requests(p);
  if (status == WEFT_OK) status = weft_claim_presets(p);
  if (status != WEFT_OK) return status;
  weft_propagate(p);
  status = weft_search(p, PLANS_TRIED, plans, &count);
  if (status == WEFT_OK) status = build_fitting(p, plans, count, machine);
  if (status != WEFT_OK) return status;
  if (p->options->explain && report) weft_explain(p, report);
  if (!weft_arena_failed(p->arena)) return WEFT_OK;
  weft_graph_free(*machine);
  *machine = NULL;
  return weft_error_memory(p->diag);
}

weft_status weft_partition(const weft_graph *graph, const weft_partition_options *options, const weft_target *target,
                           weft_graph **machine, weft_text *report, weft_diag *diag) {
  *machine = NULL;
  weft_status status = check_question(graph, options, diag);
  if (status != WEFT_OK) return status;
  weft_partitioner p = {.arena = weft_arena_new(),
                        .graph = graph,
                        .options = options,
                        .mesh = &options->mesh,
                        .target = target,
                        .diag = diag};
  if (!p.arena) return weft_error_memory(diag);
  status = partition(&p, machine, report);
  weft_arena_free(p.arena);
  return status;
}
