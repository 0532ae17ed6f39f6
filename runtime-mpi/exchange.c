/* Messages in flight: posted at a link, settled when a step needs the slot. */
#include "chip_private.h"

#include <stdlib.h>

/* ---- waiting ---- */

static void announce(weft_chip *chip, const weft_transfer *transfer) {
  weft_waiting *waiting = &chip->waiting;
  uint32_t count = 0;
  waiting->peers[count++] = transfer->peer;
  for (uint64_t i = 0; i < chip->pending_count && count < WEFT_WAITING_PEERS; i++) {
    uint32_t peer = chip->pending[i].transfer->peer;
    bool known = chip->pending[i].kind == WEFT_PENDING_SEND;
    for (uint32_t k = 0; k < count; k++) known = known || waiting->peers[k] == peer;
    if (!known) waiting->peers[count++] = peer;
  }
  waiting->count = count;
}

static void failed_wait(weft_chip *chip, const weft_transfer *transfer, weft_wait result) {
  switch (result) {
  case WEFT_WAIT_TIMEOUT:
    weft_chip_fault(chip, WEFT_UNAVAILABLE, "see whether that chip's process still runs; --timeout sets the limit",
                    "chip %u was silent for %g seconds", transfer->peer, chip->end->timeout);
    break;
  case WEFT_WAIT_MISMATCH:
    weft_chip_fault(chip, WEFT_INVALID, "generate the program again: the chips' messages do not fit together",
                    "the message between this chip and chip %u has another size than the %llu bytes expected here",
                    transfer->peer, (unsigned long long)transfer->bytes);
    break;
  case WEFT_WAIT_STOPPED:
    if (!weft_chip_failed(chip)) {
      weft_chip_fault(chip, WEFT_UNAVAILABLE, NULL, "stopped, because another chip failed");
      chip->fault.silent = true;
    }
    break;
  default:
    weft_chip_fault(chip, WEFT_UNAVAILABLE, NULL, "the message between this chip and chip %u failed: %s",
                    transfer->peer, chip->end->transport->reason(chip->end));
  }
}

bool weft_chip_wait(weft_chip *chip, weft_transfer *transfer) {
  const weft_transport *transport = chip->end->transport;
  weft_wait result = transport->test(chip->end, transfer);
  if (result == WEFT_WAIT_PENDING) {
    double before = weft_seconds();
    announce(chip, transfer);
    result = transport->wait(chip->end, transfer);
    chip->waiting.count = 0;
    chip->waited += weft_seconds() - before;
  }
  if (result == WEFT_WAIT_DONE) return true;
  failed_wait(chip, transfer, result);
  return false;
}

/* ---- what is in flight ---- */

bool weft_chip_keep(weft_chip *chip, weft_transfer *transfer, int64_t slot, weft_pending_kind kind) {
  if (!transfer) {
    weft_chip_fault(chip, WEFT_UNAVAILABLE, NULL, "out of memory for a message");
    return false;
  }
  const weft_transport *transport = chip->end->transport;
  if (kind == WEFT_PENDING_SEND && transport->test(chip->end, transfer) == WEFT_WAIT_DONE) {
    transport->finish(chip->end, transfer);
    return true;
  }
  if (chip->pending_count == chip->pending_capacity) {
    uint64_t capacity = chip->pending_capacity ? 2 * chip->pending_capacity : 16;
    weft_pending *pending = realloc(chip->pending, capacity * sizeof *pending);
    if (!pending) {
      weft_chip_fault(chip, WEFT_UNAVAILABLE, NULL, "out of memory for a message");
      return false;
    }
    chip->pending = pending;
    chip->pending_capacity = capacity;
  }
  chip->pending[chip->pending_count++] = (weft_pending){transfer, slot, kind};
  return true;
}

void weft_chip_release(weft_chip *chip, weft_slot *slot) {
  if (!slot->shown) return;
  chip->end->transport->finish(chip->end, slot->shown);
  slot->shown = NULL;
  slot->data = slot->own;
  chip->shown_count--;
}

/* Takes a message that has got through off the list. A view that shows the sender's memory stays open until its last
 * reader. */
static void settle_one(weft_chip *chip, uint64_t index) {
  weft_pending done = chip->pending[index];
  for (uint64_t i = index + 1; i < chip->pending_count; i++) chip->pending[i - 1] = chip->pending[i];
  chip->pending_count--;
  weft_slot *slot = done.slot >= 0 ? &chip->slots[done.slot] : NULL;
  if (slot && done.kind == WEFT_PENDING_VIEW && done.transfer->data != slot->own) {
    slot->data = done.transfer->data;
    slot->shown = done.transfer;
    chip->shown_count++;
  } else {
    chip->end->transport->finish(chip->end, done.transfer);
  }
}

bool weft_chip_settle(weft_chip *chip, int64_t slot, bool writing) {
  for (uint64_t i = 0; i < chip->pending_count;) {
    const weft_pending *pending = &chip->pending[i];
    bool concerns = slot < 0 || (pending->slot == slot && (writing || pending->kind != WEFT_PENDING_SEND));
    if (!concerns) {
      i++;
      continue;
    }
    if (!weft_chip_wait(chip, pending->transfer)) return false;
    settle_one(chip, i);
  }
  return true;
}

void weft_chip_drop(weft_chip *chip) {
  const weft_transport *transport = chip->end->transport;
  for (uint64_t i = 0; i < chip->pending_count; i++) transport->finish(chip->end, chip->pending[i].transfer);
  chip->pending_count = 0;
  for (uint32_t t = 0; t < chip->class->tensor_count; t++) weft_chip_release(chip, &chip->slots[t]);
}

/* ---- links ---- */

/* Whether a sent slot keeps its bytes until the send is done without anyone waiting in the same run: whoever writes it
 * comes before the link. */
static bool is_stable(const weft_chip *chip, const weft_slot *slot) {
  return !slot->shown && !chip->unlisted && slot->last_write < (int64_t)chip->step;
}

static bool post_receive(weft_chip *chip, int64_t tensor, uint32_t peer) {
  weft_slot *slot = weft_chip_slot(chip, tensor, "link");
  if (!slot || !weft_chip_settle(chip, tensor, true)) return false;
  weft_chip_release(chip, slot);
  weft_endpoint *end = chip->end;
  bool in_place = slot->release_at != WEFT_NO_STEP;
  weft_transfer *transfer = in_place ? end->transport->view(end, peer, slot->own, slot->bytes)
                                     : end->transport->receive(end, peer, slot->own, slot->bytes);
  return weft_chip_keep(chip, transfer, tensor, in_place ? WEFT_PENDING_VIEW : WEFT_PENDING_RECEIVE);
}

static bool post_send(weft_chip *chip, int64_t tensor, uint32_t peer) {
  weft_slot *slot = weft_chip_slot(chip, tensor, "link");
  if (!slot || !weft_chip_settle(chip, tensor, false)) return false;
  chip->sent += slot->bytes;
  bool stable = is_stable(chip, slot);
  return weft_chip_keep(chip, chip->end->transport->send(chip->end, peer, slot->data, slot->bytes, stable), tensor,
                        WEFT_PENDING_SEND);
}

static bool post_all(weft_chip *chip, const weft_abi_crossing *crossing,
                     bool (*post)(weft_chip *chip, int64_t tensor, uint32_t peer)) {
  for (uint32_t i = 0; i < weft_crossing_count(crossing); i++) {
    int64_t peer = weft_series_at(chip->parameters + crossing->peer, crossing->ring != 0, i);
    if (!post(chip, weft_crossing_tensor(crossing, i), (uint32_t)peer)) return false;
  }
  return true;
}

/* Sends first: what a chip receives may depend on what it sends. */
void weft_link(weft_chip *chip, const weft_abi_link *link) {
  for (uint32_t i = 0; i < link->send_count; i++)
    if (!post_all(chip, &link->sends[i], post_send)) return;
  for (uint32_t i = 0; i < link->receive_count; i++)
    if (!post_all(chip, &link->receives[i], post_receive)) return;
}
