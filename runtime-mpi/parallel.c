/* Loops over a chip's threads: its crew while it runs, else a team for the one loop. */
#include "chip_private.h"
#include "crew_private.h"

#include <omp.h>

void weft_chip_parallel(weft_chip *chip, uint64_t count, int threads,
                        void (*body)(void *context, uint64_t index, uint32_t thread), void *context) {
  if (threads <= 1 || count <= 1) {
    for (uint64_t i = 0; i < count; i++) body(context, i, 0);
  } else if (chip->crew) {
    weft_crew_do(chip->crew, count, body, context);
  } else {
    int used = (int)weft_min_u64((uint64_t)threads, count);
#pragma omp parallel for schedule(dynamic, 1) num_threads(used)
    for (uint64_t i = 0; i < count; i++) body(context, i, (uint32_t)omp_get_thread_num());
  }
}

typedef struct plain_body {
  void (*body)(void *context, uint64_t index);
  void *context;
} plain_body;

static void call_plain(void *context, uint64_t index, uint32_t thread) {
  (void)thread;
  const plain_body *plain = context;
  plain->body(plain->context, index);
}

void weft_chip_for(weft_chip *chip, uint64_t count, void (*body)(void *context, uint64_t index), void *context) {
  plain_body plain = {body, context};
  weft_chip_parallel(chip, count, chip->threads, call_plain, &plain);
}
