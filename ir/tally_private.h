/* Sums by a key of two numbers: a hash table that is never iterated over, so that its order cannot show. */
#ifndef WEFT_IR_TALLY_PRIVATE_H
#define WEFT_IR_TALLY_PRIVATE_H

#include "weft/base.h"

typedef struct weft_tally_entry {
  uint64_t a, b, sum;
  bool used;
} weft_tally_entry;

/** Starts zeroed; freed by weft_tally_free. */
typedef struct weft_tally {
  weft_tally_entry *entries;
  uint64_t count;
  uint64_t capacity; /* a power of two, or 0 */
  bool failed;       /* memory is exhausted */
  bool overflow;     /* a sum left 64 bits */
} weft_tally;

/* Adds to the sum of (a, b); true when the key is new. */
bool weft_tally_add(weft_tally *tally, uint64_t a, uint64_t b, uint64_t amount);
/* The sum of (a, b), 0 when it was never added to. */
uint64_t weft_tally_get(const weft_tally *tally, uint64_t a, uint64_t b);
bool weft_tally_has(const weft_tally *tally, uint64_t a, uint64_t b);
void weft_tally_free(weft_tally *tally);

#endif
