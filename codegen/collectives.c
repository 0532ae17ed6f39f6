/* All-reduces over the whole machine: which partial tensors they fold, where those are held, who reads the result.
 *
 * A per-chip program has an AllReduce stage only where the chip reads the result; a chip that merely holds a partial
 * sends it. Both take part in one transport call, so membership is gathered over all chips here. */
#include "emit_private.h"

#include <stdlib.h>
#include <string.h>

typedef struct owner_entry {
  const char *name;
  uint16_t chip;
} owner_entry;

static int compare_owner(const void *a, const void *b) {
  return strcmp(((const owner_entry *)a)->name, ((const owner_entry *)b)->name);
}

static weft_status lift(weft_chip_code *code) {
  weft_status status = weft_graph_lift(code->program, &code->graph, code->diag);
  if (status != WEFT_OK) code->graph = NULL;
  return status;
}

/** Every partial tensor that some chip produces, by name. */
static weft_status list_owners(const weft_chip_code *codes, uint32_t chips, weft_arena *arena, owner_entry **owners,
                               uint64_t *count, weft_diag *diag) {
  uint64_t capacity = 0;
  *owners = NULL;
  *count = 0;
  for (uint32_t c = 0; c < chips; c++) {
    const weft_graph *graph = codes[c].graph;
    for (uint64_t v = 0; graph && v < graph->value_count; v++) {
      const weft_value *value = &graph->values[v];
      if (!value->has_partial || value->producer == WEFT_NONE) continue;
      if (!weft_arena_grow(arena, owners, *count, &capacity, sizeof **owners)) return weft_error_memory(diag);
      (*owners)[(*count)++] = (owner_entry){value->name, (uint16_t)c};
    }
  }
  if (*count) qsort(*owners, *count, sizeof **owners, compare_owner);
  return WEFT_OK;
}

static char *collective_key(const weft_graph *graph, const weft_graph_op *op, weft_arena *arena) {
  weft_text text = {0};
  for (uint32_t i = 0; i < op->in_count; i++) {
    weft_text_puts(&text, graph->values[op->ins[i]].name);
    weft_text_puts(&text, "\n");
  }
  char *key = text.failed ? NULL : weft_arena_string(arena, text.data ? text.data : "", text.length);
  weft_text_free(&text);
  return key;
}

/** An all-reduce that a chip reads. */
typedef struct reading {
  const char *key; /**< names of its nodes, each ended by a newline */
  uint32_t chip;
  uint64_t op;
  uint64_t place; /**< by chip, then op */
} reading;

static int by_key(const void *a, const void *b) {
  const reading *x = a, *y = b;
  int order = strcmp(x->key, y->key);
  return order ? order : x->place < y->place ? -1 : x->place > y->place;
}

static weft_status list_readings(const weft_chip_code *codes, uint32_t chips, weft_arena *arena, reading **all,
                                 uint64_t *count, weft_diag *diag) {
  uint64_t capacity = 0;
  for (uint32_t c = 0; c < chips; c++) {
    const weft_graph *graph = codes[c].graph;
    for (uint64_t i = 0; graph && i < graph->op_count; i++) {
      if (graph->ops[i].kind != WEFT_GRAPH_ALL_REDUCE) continue;
      const char *key = collective_key(graph, &graph->ops[i], arena);
      if (!key || !weft_arena_grow(arena, all, *count, &capacity, sizeof **all)) return weft_error_memory(diag);
      (*all)[*count] = (reading){key, c, i, *count};
      ++*count;
    }
  }
  if (*count) qsort(*all, *count, sizeof **all, by_key);
  return WEFT_OK;
}

static weft_status fill_nodes(weft_collective *collective, const weft_graph *graph, const weft_graph_op *op,
                              weft_arena *arena, const owner_entry *owners, uint64_t owner_count, weft_diag *diag) {
  uint32_t n = op->in_count;
  collective->node_count = n;
  collective->nodes = WEFT_NEW_ARRAY(arena, const char *, n);
  collective->owners = WEFT_NEW_ARRAY(arena, uint16_t, n);
  collective->firsts = WEFT_NEW_ARRAY(arena, uint32_t, n);
  collective->counts = WEFT_NEW_ARRAY(arena, uint32_t, n);
  if (!collective->counts || !collective->firsts || !collective->owners || !collective->nodes)
    return weft_error_memory(diag);
  for (uint32_t i = 0; i < n; i++) {
    const weft_value *value = &graph->values[op->ins[i]];
    owner_entry key = {value->name, 0};
    const owner_entry *owner = owner_count ? bsearch(&key, owners, owner_count, sizeof *owners, compare_owner) : NULL;
    if (!owner)
      return weft_error(diag, WEFT_INVALID,
                        "split the whole-machine program again: every partial needs a chip that makes it",
                        "all-reduce '%s' reads partial tensor '%s', which no chip produces", op->name, value->name);
    collective->nodes[i] = value->name;
    collective->owners[i] = owner->chip;
    collective->firsts[i] = value->has_partial ? value->partial.first : i;
    collective->counts[i] = value->has_partial ? value->partial.count : 1;
    collective->of = value->has_partial ? value->partial.of : n;
    collective->format = value->dtype;
    weft_plane_extents(value->rank, value->extents, &collective->rows, &collective->cols);
  }
  return WEFT_OK;
}

static weft_status add_reader(weft_collective *collective, weft_arena *arena, uint32_t chip, weft_diag *diag) {
  if (collective->reader_count && collective->readers[collective->reader_count - 1] == chip) return WEFT_OK;
  if (!weft_arena_grow(arena, &collective->readers, collective->reader_count, &collective->reader_capacity,
                       sizeof *collective->readers))
    return weft_error_memory(diag);
  collective->readers[collective->reader_count++] = (uint16_t)chip;
  return WEFT_OK;
}

/** Readings of the same nodes are one collective. */
static weft_status join_readings(weft_collectives *collectives, const weft_chip_code *codes, const reading *all,
                                 uint64_t count, const owner_entry *owners, uint64_t owner_count, weft_diag *diag) {
  weft_status status = WEFT_OK;
  collectives->items = WEFT_NEW_ARRAY(collectives->arena, weft_collective, count);
  if (!collectives->items) return weft_error_memory(diag);
  for (uint64_t i = 0; i < count && status == WEFT_OK; i++) {
    const weft_graph *graph = codes[all[i].chip].graph;
    const weft_graph_op *op = &graph->ops[all[i].op];
    if (i == 0 || strcmp(all[i].key, all[i - 1].key) != 0) {
      collectives->items[collectives->count++] = (weft_collective){.pool = op->pool};
      status = fill_nodes(&collectives->items[collectives->count - 1], graph, op, collectives->arena, owners,
                          owner_count, diag);
    }
    if (status == WEFT_OK)
      status = add_reader(&collectives->items[collectives->count - 1], collectives->arena, all[i].chip, diag);
  }
  return status;
}

static int by_node(const void *a, const void *b) {
  const weft_collective_node *x = a, *y = b;
  int order = strcmp(x->name, y->name);
  if (order == 0) order = x->collective < y->collective ? -1 : x->collective > y->collective;
  return order ? order : x->node < y->node ? -1 : x->node > y->node;
}

static weft_status list_nodes(weft_collectives *collectives, weft_diag *diag) {
  uint64_t count = 0;
  for (uint64_t c = 0; c < collectives->count; c++) count += collectives->items[c].node_count;
  collectives->nodes = WEFT_NEW_ARRAY(collectives->arena, weft_collective_node, count);
  if (!collectives->nodes) return weft_error_memory(diag);
  for (uint32_t c = 0; c < collectives->count; c++)
    for (uint32_t n = 0; n < collectives->items[c].node_count; n++)
      collectives->nodes[collectives->node_count++] = (weft_collective_node){collectives->items[c].nodes[n], c, n};
  if (count) qsort(collectives->nodes, count, sizeof *collectives->nodes, by_node);
  return WEFT_OK;
}

const weft_collective_node *weft_codegen_find_node(const weft_collectives *collectives, const char *name,
                                                   uint64_t *count) {
  uint64_t low = 0, high = collectives->node_count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (strcmp(collectives->nodes[middle].name, name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  for (*count = 0; low + *count < collectives->node_count && strcmp(collectives->nodes[low + *count].name, name) == 0;)
    ++*count;
  return *count ? &collectives->nodes[low] : NULL;
}

static void lift_one(void *context, uint64_t index) {
  weft_chip_code *code = (weft_chip_code *)context + index;
  if (code->program->stage_count) code->status = lift(code);
}

weft_status weft_codegen_collect(weft_chip_code *codes, uint32_t chips, weft_collectives *collectives,
                                 weft_diag *diag) {
  weft_parallel_for(chips, codes[0].options->threads, lift_one, codes);
  for (uint32_t c = 0; c < chips; c++) {
    if (codes[c].status == WEFT_OK) continue;
    if (chips == 1 && codes[0].options->scheduled && codes[0].status == WEFT_INVALID) {
      codes[0].status = WEFT_OK; /* walked */
      continue;
    }
    return codes[c].status;
  }
  owner_entry *owners = NULL;
  uint64_t owner_count = 0;
  weft_status status = list_owners(codes, chips, collectives->arena, &owners, &owner_count, diag);
  reading *all = NULL;
  uint64_t count = 0;
  if (status == WEFT_OK) status = list_readings(codes, chips, collectives->arena, &all, &count, diag);
  if (status == WEFT_OK) status = join_readings(collectives, codes, all, count, owners, owner_count, diag);
  return status == WEFT_OK ? list_nodes(collectives, diag) : status;
}
