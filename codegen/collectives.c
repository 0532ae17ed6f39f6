/* All-reduces over the whole machine: which partial tensors they fold, where those are held, who reads the result.
 *
 * A per-chip program has an AllReduce stage only where the chip reads the result; a chip that merely holds a partial sends it.
 * Both take part in one transport call, so membership is gathered over all chips here. */
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

static weft_collective *find(weft_collectives *collectives, const char *key) {
  for (uint64_t i = 0; i < collectives->count; i++)
    if (strcmp(collectives->items[i].key, key) == 0) return &collectives->items[i];
  return NULL;
}

static weft_status fill_nodes(weft_collective *collective, const weft_graph *graph, const weft_graph_op *op, weft_arena *arena,
                              const owner_entry *owners, uint64_t owner_count, weft_diag *diag) {
  uint32_t n = op->in_count;
  collective->node_count = n;
  collective->nodes = WEFT_NEW_ARRAY(arena, const char *, n);
  collective->owners = WEFT_NEW_ARRAY(arena, uint16_t, n);
  collective->firsts = WEFT_NEW_ARRAY(arena, uint32_t, n);
  collective->counts = WEFT_NEW_ARRAY(arena, uint32_t, n);
  if (!collective->counts || !collective->firsts || !collective->owners || !collective->nodes) return weft_error_memory(diag);
  for (uint32_t i = 0; i < n; i++) {
    const weft_value *value = &graph->values[op->ins[i]];
    owner_entry key = {value->name, 0};
    const owner_entry *owner = owner_count ? bsearch(&key, owners, owner_count, sizeof *owners, compare_owner) : NULL;
    if (!owner)
      return weft_error(diag, WEFT_INVALID, "split the whole-machine program again: every partial needs a chip that makes it",
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

static weft_status add_reader(weft_collectives *collectives, uint32_t chip, const weft_graph *graph, const weft_graph_op *op,
                              const owner_entry *owners, uint64_t owner_count, weft_diag *diag) {
  weft_arena *arena = collectives->arena;
  char *key = collective_key(graph, op, arena);
  if (!key) return weft_error_memory(diag);
  weft_collective *collective = find(collectives, key);
  if (!collective) {
    if (!weft_arena_grow(arena, &collectives->items, collectives->count, &collectives->capacity, sizeof *collectives->items))
      return weft_error_memory(diag);
    collective = &collectives->items[collectives->count++];
    *collective = (weft_collective){.key = key, .pool = op->pool};
    weft_status status = fill_nodes(collective, graph, op, arena, owners, owner_count, diag);
    if (status != WEFT_OK) return status;
  }
  if (!weft_arena_grow(arena, &collective->readers, collective->reader_count, &collective->reader_capacity,
                       sizeof *collective->readers))
    return weft_error_memory(diag);
  if (collective->reader_count == 0 || collective->readers[collective->reader_count - 1] != chip)
    collective->readers[collective->reader_count++] = (uint16_t)chip;
  return WEFT_OK;
}

static void lift_one(void *context, uint64_t index) {
  weft_chip_code *code = (weft_chip_code *)context + index;
  if (code->program->stage_count) code->status = lift(code);
}

weft_status weft_codegen_collect(weft_chip_code *codes, uint32_t chips, weft_collectives *collectives, weft_diag *diag) {
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
  for (uint32_t c = 0; status == WEFT_OK && c < chips; c++) {
    const weft_graph *graph = codes[c].graph;
    for (uint64_t i = 0; graph && status == WEFT_OK && i < graph->op_count; i++)
      if (graph->ops[i].kind == WEFT_GRAPH_ALL_REDUCE)
        status = add_reader(collectives, c, graph, &graph->ops[i], owners, owner_count, diag);
  }
  return status;
}
