/* partition/names_private.h: a set of names in which each new one is made unique. */
#ifndef WEFT_PARTITION_NAMES_PRIVATE_H
#define WEFT_PARTITION_NAMES_PRIVATE_H

#include "weft/base.h"

typedef struct name_slot {
  const char *name;
  uint32_t copies; /* tried so far when it was taken */
} name_slot;

/** Starts zeroed but for the arena. */
typedef struct names {
  weft_arena *arena;
  name_slot *slots;
  uint64_t capacity, count;
} names;

/** base + suffix, then ".1", ".2"... where that is taken, then "@chip" when shown. NULL without memory. */
const char *names_new(names *n, const char *base, const char *suffix, uint32_t chip, bool show_chip);

#endif
