#include "weft/base.h"

#include <sys/mman.h>

/* Below a few huge pages nothing is won. */
#define LARGE ((size_t)8 << 20)
#define HUGE_PAGE ((uintptr_t)2 << 20)

void weft_memory_will_fill(void *data, size_t bytes) {
  if (!data || bytes < LARGE) return;
#ifdef MADV_HUGEPAGE
  uintptr_t begin = ((uintptr_t)data + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
  uintptr_t end = ((uintptr_t)data + bytes) / HUGE_PAGE * HUGE_PAGE;
  if (begin < end) madvise((void *)begin, end - begin, MADV_HUGEPAGE);
#endif
}
