/* 1. Ids: entry i of every list has the id i. */
#include "validate_private.h"

#define CHECK_IDS(c, what, items, item_count)                                                                          \
  for (uint64_t i = 0; i < (item_count); i++)                                                                          \
    if ((items)[i].id != i && !REPORT(c, ID_NOT_DENSE, text(what), number(i))) return

void weft_validate_ids(check *c) {
  const weft_program *p = c->program;
  CHECK_IDS(c, "tensor", p->tensors, p->tensor_count);
  CHECK_IDS(c, "stage", p->stages, p->stage_count);
  CHECK_IDS(c, "buffer", p->buffers, p->buffer_count);
  CHECK_IDS(c, "edge", p->edges, p->edge_count);
  CHECK_IDS(c, "semaphore", p->semaphores, p->semaphore_count);
  CHECK_IDS(c, "work item", p->work.items, p->work.item_count);
  if (p->placement) CHECK_IDS(c, "group", p->placement->groups, p->placement->group_count);
}
