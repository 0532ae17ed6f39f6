#include "weft/base.h"

/* FNV-1a of 64 bits: Fowler, Noll and Vo, draft-eastlake-fnv, sections 2 and 5. */
uint64_t weft_hash_bytes(uint64_t seed, const void *bytes, size_t length) {
  const unsigned char *b = bytes;
  uint64_t hash = seed ? seed : UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < length; i++) hash = (hash ^ b[i]) * UINT64_C(0x100000001b3);
  return hash;
}

/* splitmix64: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014, with the output mix
 * of Stafford's variant 13. */
uint64_t weft_random_next(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}
