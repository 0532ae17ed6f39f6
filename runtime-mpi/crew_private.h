/* crew_private.h: the threads of a chip, kept for as long as it runs. */
#ifndef WEFT_CREW_PRIVATE_H
#define WEFT_CREW_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct weft_crew weft_crew;
/** One task; `thread` numbers whoever does it, 0 .. threads - 1. */
typedef void (*weft_crew_body)(void *context, uint64_t index, uint32_t thread);

/** NULL without memory. `spins`: helpers look out for work for a while before they sleep, because they have cores of
 * their own. */
weft_crew *weft_crew_new(bool spins);
void weft_crew_free(weft_crew *crew);
/** Calls first(context) on this thread while threads - 1 others help it. */
void weft_crew_run(weft_crew *crew, int threads, void (*first)(void *context), void *context);
/** From within `first`: calls body for every index below count, in no order, and returns when all are done. */
void weft_crew_do(weft_crew *crew, uint64_t count, weft_crew_body body, void *context);

#endif
