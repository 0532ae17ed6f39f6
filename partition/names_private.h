/* partition/names_private.h: a set of names in which each new one is made unique. */
#ifndef WEFT_PARTITION_NAMES_PRIVATE_H
#define WEFT_PARTITION_NAMES_PRIVATE_H

#include "weft/base.h"

/** Starts zeroed but for the arena. */
typedef struct names {
  weft_arena *arena;
  const char **slots;
  uint64_t capacity, count;
} names;

/** base + suffix, then ".1", ".2"... where that is taken, then "@chip" when shown. NULL without memory. */
const char *names_new(names *n, const char *base, const char *suffix, uint32_t chip, bool show_chip);

#endif
