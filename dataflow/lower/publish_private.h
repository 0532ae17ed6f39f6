/* Publication of spatial regions: what its files share. */
#ifndef WEFT_DATAFLOW_PUBLISH_PRIVATE_H
#define WEFT_DATAFLOW_PUBLISH_PRIVATE_H

#include "lower_private.h"

typedef struct symbol_entry {
  const char *name;
  weft_mlir_op *op; /* NULL: taken by something that is not in the module yet */
} symbol_entry;

typedef struct symbol_map {
  symbol_entry *entries;
  uint64_t capacity, count;
} symbol_map;

bool symbol_map_add(symbol_map *map, weft_arena *arena, const char *name, weft_mlir_op *op);
const symbol_entry *symbol_map_find(const symbol_map *map, const char *name);
bool symbol_map_of_module(symbol_map *map, weft_arena *arena, const weft_mlir_op *module);

/* A loom.spatial_region to be published. */
typedef struct candidate {
  weft_mlir_op *region, *thread;
  const char *name; /* of its graph */
  weft_mlir_op *graph;
} candidate;

typedef struct publication {
  lowering l;
  weft_mlir_op *module;
  candidate *candidates;
  uint64_t count, capacity;
  symbol_map symbols;    /* of the module, and the names of graphs to come */
  weft_mlir_value **map; /* of the values of the thread being copied, by mark */
  uint64_t next;         /* candidate to be met next while copying */
} publication;

enum { REGION_VALUES, REGION_STREAMS_IN, REGION_MEMORIES, REGION_STREAMS_OUT };
uint32_t publish_segment(const weft_mlir_op *op, const char *name, uint32_t index);
/* The first operand of a segment of the region's operands. */
uint32_t publish_begin(const weft_mlir_op *region, uint32_t segment);

/* Finds all candidates in the order of the text and checks everything that can be refused; false with one message. */
bool publish_check(publication *p);
/* A copy of the thread with launches in place of its regions, completion threaded through to its yield. */
weft_mlir_op *publish_thread(publication *p, weft_mlir_op *thread);

#endif
