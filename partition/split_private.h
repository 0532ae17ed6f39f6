/* partition/split_private.h: what the files of the split share. */
#ifndef WEFT_PARTITION_SPLIT_PRIVATE_H
#define WEFT_PARTITION_SPLIT_PRIVATE_H

#include "weft/partition.h"

/** Entries grouped by chip: those of chip c are ids[begin[c] .. begin[c + 1]), ascending. */
typedef struct chip_lists {
  uint64_t *begin;
  uint32_t *ids;
} chip_lists;

/** A chip's use of a tensor. */
typedef struct tensor_use {
  uint32_t chip, tensor;
  uint32_t stage; /* the first that uses it */
  bool loads, stores, sent;
} tensor_use;

/** A tensor that goes from the chip that has it to one that reads it. */
typedef struct crossing {
  uint64_t boundary; /* sections of the machine before it */
  uint32_t owner, reader, tensor;
  uint32_t distance; /* of the other end after this end, modulo chips */
  uint32_t order;    /* the reader's first stage that loads it; then the reader's order */
  uint32_t local;    /* the reader's tensor id */
} crossing;

typedef struct split {
  const weft_program *machine;
  uint32_t chips;
  weft_arena *arena;
  weft_diag *diag;
  uint32_t *stage_chip, *buffer_chip, *item_chip;
  uint64_t *stage_section; /* index, 0 in a program without sections */
  chip_lists stages, buffers, edges, items;
  uint32_t *new_stage, *new_buffer, *new_item; /* by old id, on the chip that has it */
  uint32_t *storer;                            /* by tensor: the chip, or WEFT_NONE */
  uint64_t *stored_before;                     /* by tensor: the boundary after its last store */
  tensor_use *uses;                            /* by chip, then tensor */
  uint64_t use_count, use_capacity;
  uint64_t *use_begin; /* by chip */
  crossing *received;  /* by reader, boundary, distance, order */
  crossing *sent;      /* by owner, boundary, distance, order */
  uint64_t crossing_count;
  uint64_t *received_begin, *sent_begin; /* by chip */
  uint32_t *local;                       /* by tensor: its id on the chip at hand */
} split;

/** The trip that a stage's K blocks run to, or NULL. */
const weft_trip *split_trip(const split *s, const weft_stage *stage);
/** Finds out which chip has each stage, buffer, edge and item. */
weft_status split_owners(split *s);
/** Finds out which tensors each chip uses and which cross. */
weft_status split_crossings(split *s);
/** Makes the program of one chip; chips in ascending order. */
weft_status split_chip(split *s, uint32_t chip, weft_program **program);

#endif
