/* Which tensors each chip uses, and which cross from the chip that has them to one that reads them. */
#include "split_private.h"

#include <stdlib.h>

const weft_trip *split_trip(const split *s, const weft_stage *stage) {
  bool product = stage->kind == WEFT_STAGE_COMPUTE && stage->compute->kind == WEFT_COMPUTE_MATMUL_TILES;
  return product && stage->compute->matmul.trip != WEFT_NONE ? &s->machine->trips[stage->compute->matmul.trip] : NULL;
}

/* ---- uses
 * ------------------------------------------------------------------------------------------------------------- */

static bool add_use(split *s, uint32_t chip, uint32_t tensor, uint32_t stage, bool loads, bool stores, bool sent) {
  if (!weft_arena_grow(s->arena, &s->uses, s->use_count, &s->use_capacity, sizeof *s->uses)) return false;
  s->uses[s->use_count++] = (tensor_use){chip, tensor, stage, loads, stores, sent};
  return true;
}

static int by_chip_and_tensor(const void *a, const void *b) {
  const tensor_use *x = a, *y = b;
  if (x->chip != y->chip) return x->chip < y->chip ? -1 : 1;
  if (x->tensor != y->tensor) return x->tensor < y->tensor ? -1 : 1;
  return x->stage < y->stage ? -1 : x->stage > y->stage;
}

/* Sorts the uses and makes one of all those of a tensor on a chip. */
static bool merge_uses(split *s) {
  uint64_t kept = 0;
  if (s->use_count) qsort(s->uses, s->use_count, sizeof *s->uses, by_chip_and_tensor);
  for (uint64_t i = 0; i < s->use_count; i++) {
    tensor_use *last = kept ? &s->uses[kept - 1] : NULL;
    if (last && last->chip == s->uses[i].chip && last->tensor == s->uses[i].tensor) {
      last->loads |= s->uses[i].loads;
      last->stores |= s->uses[i].stores;
      last->sent |= s->uses[i].sent;
    } else {
      s->uses[kept++] = s->uses[i];
    }
  }
  s->use_count = kept;
  s->use_begin = WEFT_NEW_ARRAY(s->arena, uint64_t, (uint64_t)s->chips + 1);
  if (!s->use_begin) return false;
  for (uint64_t i = 0, chip = 0; chip <= s->chips; chip++) {
    while (i < kept && s->uses[i].chip < chip) i++;
    s->use_begin[chip] = i;
  }
  return true;
}

static weft_status note_store(split *s, const weft_stage *stage) {
  uint32_t tensor = stage->store.tensor, chip = s->stage_chip[stage->id];
  if (s->storer[tensor] != WEFT_NONE && s->storer[tensor] != chip)
    return weft_error(s->diag, WEFT_INVALID, "give each chip a tensor of its own",
                      "tensor '%s' is stored by chips %u and %u (stage '%s')", s->machine->tensors[tensor].name,
                      s->storer[tensor], chip, stage->name);
  s->storer[tensor] = chip;
  s->stored_before[tensor] = s->stage_section[stage->id] + 1;
  return add_use(s, chip, tensor, stage->id, false, true, false) ? WEFT_OK : weft_error_memory(s->diag);
}

static weft_status list_uses(split *s) {
  for (uint32_t i = 0; i < s->machine->stage_count; i++) {
    const weft_stage *stage = &s->machine->stages[i];
    weft_status status = WEFT_OK;
    if (stage->kind == WEFT_STAGE_STORE)
      status = note_store(s, stage);
    else if (stage->kind == WEFT_STAGE_LOAD && !add_use(s, s->stage_chip[i], stage->load.tensor, i, true, false, false))
      status = weft_error_memory(s->diag);
    const weft_trip *trip = split_trip(s, stage);
    if (status == WEFT_OK && trip && !add_use(s, s->stage_chip[i], trip->tensor, i, true, false, false))
      status = weft_error_memory(s->diag);
    if (status != WEFT_OK) return status;
  }
  return merge_uses(s) ? WEFT_OK : weft_error_memory(s->diag);
}

/* ---- crossings
 * -------------------------------------------------------------------------------------------------------- */

/* The chip that has a tensor: the one that stores it, else the one it is declared on, else whoever reads it. */
static uint32_t owner_of(const split *s, uint32_t tensor, uint32_t reader) {
  if (s->storer[tensor] != WEFT_NONE) return s->storer[tensor];
  uint32_t chip = s->machine->tensors[tensor].chip;
  return chip == WEFT_NONE || chip >= s->chips ? reader : chip;
}

static weft_status add_crossing(split *s, const tensor_use *use, uint32_t owner) {
  uint64_t boundary = s->stored_before[use->tensor];
  if (s->stage_section[use->stage] < boundary)
    return weft_error(s->diag, WEFT_INVALID, "load it in a later section",
                      "stage '%s' of chip %u loads tensor '%s', which chip %u stores in the same section or later",
                      s->machine->stages[use->stage].name, use->chip, s->machine->tensors[use->tensor].name, owner);
  s->received[s->crossing_count++] = (crossing){.boundary = boundary,
                                                .owner = owner,
                                                .reader = use->chip,
                                                .tensor = use->tensor,
                                                .distance = (owner + s->chips - use->chip) % s->chips,
                                                .order = use->stage};
  return WEFT_OK;
}

static int by_place(const crossing *x, const crossing *y) {
  if (x->boundary != y->boundary) return x->boundary < y->boundary ? -1 : 1;
  if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

static int by_reader(const void *a, const void *b) {
  const crossing *x = a, *y = b;
  return x->reader != y->reader ? (x->reader < y->reader ? -1 : 1) : by_place(x, y);
}

static int by_owner(const void *a, const void *b) {
  const crossing *x = a, *y = b;
  return x->owner != y->owner ? (x->owner < y->owner ? -1 : 1) : by_place(x, y);
}

/* Orders the readers' side first; the senders' side then follows it for each pair. */
static bool order_crossings(split *s) {
  uint64_t count = s->crossing_count;
  s->received_begin = WEFT_NEW_ARRAY(s->arena, uint64_t, (uint64_t)s->chips + 1);
  s->sent_begin = WEFT_NEW_ARRAY(s->arena, uint64_t, (uint64_t)s->chips + 1);
  s->sent = WEFT_NEW_ARRAY(s->arena, crossing, count);
  if (!s->received_begin || !s->sent_begin || !s->sent) return false;
  if (count) qsort(s->received, count, sizeof *s->received, by_reader);
  for (uint64_t i = 0; i < count; i++) {
    s->sent[i] = s->received[i];
    s->sent[i].order = (uint32_t)i;
    s->sent[i].distance = (s->sent[i].reader + s->chips - s->sent[i].owner) % s->chips;
  }
  if (count) qsort(s->sent, count, sizeof *s->sent, by_owner);
  for (uint64_t chip = 0, r = 0, o = 0; chip <= s->chips; chip++) {
    while (r < count && s->received[r].reader < chip) r++;
    while (o < count && s->sent[o].owner < chip) o++;
    s->received_begin[chip] = r;
    s->sent_begin[chip] = o;
  }
  return true;
}

weft_status split_crossings(split *s) {
  uint64_t tensors = s->machine->tensor_count;
  s->storer = WEFT_NEW_ARRAY(s->arena, uint32_t, tensors);
  s->stored_before = WEFT_NEW_ARRAY(s->arena, uint64_t, tensors);
  s->local = WEFT_NEW_ARRAY(s->arena, uint32_t, tensors);
  if (!s->storer || !s->stored_before || !s->local) return weft_error_memory(s->diag);
  for (uint64_t t = 0; t < tensors; t++) s->storer[t] = WEFT_NONE;
  weft_status status = list_uses(s);
  if (status != WEFT_OK) return status;
  s->received = WEFT_NEW_ARRAY(s->arena, crossing, s->use_count);
  if (!s->received) return weft_error_memory(s->diag);
  uint64_t uses = s->use_count;
  for (uint64_t i = 0; i < uses; i++) {
    tensor_use use = s->uses[i];
    uint32_t owner = owner_of(s, use.tensor, use.chip);
    if (owner == use.chip) continue;
    status = add_crossing(s, &use, owner);
    if (status != WEFT_OK) return status;
    if (!add_use(s, owner, use.tensor, use.stage, false, false, true)) return weft_error_memory(s->diag);
  }
  return order_crossings(s) && merge_uses(s) ? WEFT_OK : weft_error_memory(s->diag);
}
