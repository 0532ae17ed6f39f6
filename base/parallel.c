#include "weft/base.h"

#include <omp.h>

void weft_parallel_for(uint64_t count, int threads, void (*body)(void *context, uint64_t index), void *context) {
  uint64_t available = (uint64_t)(threads > 0 ? threads : omp_get_max_threads());
  int used = (int)weft_min_u64(available, count);
  if (used <= 1) {
    for (uint64_t i = 0; i < count; i++) body(context, i);
    return;
  }
#pragma omp parallel for schedule(dynamic, 1) num_threads(used)
  for (uint64_t i = 0; i < count; i++) body(context, i);
}
