/* partition/machine_private.h: how a plan becomes a machine graph. Shared by demand.c, levels.c and build.c.
 *
 * Demand walks the ops backwards from the outputs and records, per chip, which ops it runs and which blocks of which
 * values it needs. Levels orders the work into sections, the same for all chips. Build writes the machine graph down.
 */
#ifndef WEFT_PARTITION_MACHINE_PRIVATE_H
#define WEFT_PARTITION_MACHINE_PRIVATE_H

#include "internal.h"

#define NO_LEVEL UINT32_MAX

typedef enum record_kind {
  RECORD_SHARD,   /**< a block of an input or parameter, read by the chip itself */
  RECORD_HAVE,    /**< the block that the chip's own op makes */
  RECORD_SLICE,   /**< part of `source` on the same chip; all of it for a state that another chip reads */
  RECORD_FOREIGN, /**< exactly one record of another chip */
  RECORD_GATHER,  /**< assembled from records of several chips */
} record_kind;

/** A block of a value that a chip needs. */
typedef struct record {
  record_kind kind;
  uint32_t value, chip;
  weft_block block;
  uint32_t next;          /**< the chip's next record of the value, or WEFT_NONE */
  uint32_t source;        /**< SLICE: record */
  const uint32_t *pieces; /**< FOREIGN, GATHER: records of the owners */
  uint32_t piece_count;
  bool output;    /**< it is the chip's block of an output */
  bool writer;    /**< of an output, or of a state's SHARD */
  uint32_t level; /**< SLICE, GATHER: the section it is made in */
  uint32_t id;    /**< the machine graph's value */
} record;

/** A complete subtree of a fold that one chip computes: segments first .. first + count. */
typedef struct node {
  uint32_t first, count;
} node;

typedef struct machine {
  weft_partitioner *p;
  weft_arena *arena;
  record *records;
  uint64_t record_count, record_capacity;
  uint32_t *heads;   /**< by value, then chip: first record or WEFT_NONE */
  uint32_t *updater; /**< by value: the op that updates the state it is, or WEFT_NONE */
  bool again;        /**< an op that was looked at has something more to do */
  bool *final;       /**< by op, then chip: the chip makes the op's result */
  bool *partial;     /**< by op, then chip: the chip computes its nodes of the op */
  /** By op, then chip: the records read, an operand at a time, for each node in turn; NULL where the op does not run.
   */
  uint32_t **wanted;
  uint64_t piece_count; /**< of all gathers, bounded: all-to-all grows with the square of the chips */
  bool failed;          /**< out of memory, or refused with a message */
} machine;

static inline uint64_t at_chip(const machine *m, uint64_t index, uint32_t chip) { return index * m->p->chips + chip; }

/** Whether a value is a state as the step finds it: it lies as what updates it lies. */
static inline bool is_state(const machine *m, uint32_t value) {
  const weft_value *v = &m->p->graph->values[value];
  return v->role == WEFT_ROLE_STATE && !v->updates;
}

/** Finds out what every chip does and needs. */
weft_status machine_demand(machine *m);
/** The nodes of a chip for an op whose fold is cut; returns their count (at most 64). */
uint32_t machine_nodes(const machine *m, uint32_t op, uint32_t chip, node *nodes);
#define MAX_NODES 64

typedef enum item_kind { ITEM_SLICE, ITEM_GATHER, ITEM_OP, ITEM_NODES, ITEM_REDUCE } item_kind;

/** One piece of work of one chip. */
typedef struct item {
  item_kind kind;
  uint32_t level, chip;
  uint32_t op;     /**< OP, NODES, REDUCE; for SLICE, GATHER the reader, WEFT_NONE for an output's */
  uint32_t record; /**< SLICE, GATHER */
} item;

typedef struct schedule {
  item *items; /**< by level, then in the order of the graph's ops, then chips */
  uint64_t count, capacity;
  uint32_t level_count;
} schedule;

/** Orders the work into levels; each becomes a section. */
weft_status machine_levels(machine *m, schedule *s);

#endif
