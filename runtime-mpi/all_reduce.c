/* weft_all_reduce: every reader folds the slice it owns along the tree, then slices are exchanged.
 *
 * The nodes' holders send each reader its slice of each node they hold; a reader folds its slice, applies the epilogue,
 * stores it in its result, and sends the stored slice to the other readers. Small results go whole to every reader, who
 * folds all of it: one exchange instead of two. Where memory is shared the slices are views: nothing is copied before
 * the fold. Between two chips messages go in this order: node slices by node, then the result's slice. */
#include "chip_private.h"
#include "fold_private.h"

#include <string.h>

enum {
  WHOLE_BYTES = 16384, /* a result up to this is folded whole by every reader */
  WHOLE_BYTES_OF_TWO =
      2 << 20,         /* of two nodes by two readers: as many bytes cross either way, and one exchange is enough */
  SLICE_ALIGNMENT = 16 /* elements: slices begin at cache lines of fp32 */
};

typedef struct reduction {
  weft_chip *chip;
  const weft_abi_all_reduce *reduce;
  const int64_t *node_chip, *node_slot, *reader;
  int64_t me; /* among the readers; -1: holds nodes only */
  uint64_t elements, element_bytes, out_element_bytes;
  bool whole;
  weft_epilogue epilogue;
  weft_transfer **arriving;     /* by node */
  const unsigned char **slices; /* by node */
} reduction;

/* ---- the tree ---- */

/* Whether first .. first + count - 1 are exactly the leaves below one node of the tree over low .. high - 1. */
static bool is_subtree(uint32_t first, uint32_t count, uint32_t low, uint32_t high) {
  while (low < high) {
    if (first == low && count == high - low) return true;
    if (high - low < 2) return false;
    uint32_t left = 1;
    while (left < high - low - left) left *= 2;
    if (first < low + left)
      high = low + left;
    else
      low += left;
  }
  return false;
}

bool weft_all_reduce_valid(const weft_abi_all_reduce *reduce) {
  uint64_t next = 0;
  for (uint32_t i = 0; i < reduce->node_count; i++) {
    if (reduce->first[i] != next || !is_subtree(reduce->first[i], reduce->count[i], 0, reduce->of)) return false;
    next += reduce->count[i];
  }
  bool pool = reduce->pool == WEFT_POOL_SUM || reduce->pool == WEFT_POOL_MAX || reduce->pool == WEFT_POOL_MIN;
  bool format = reduce->format == WEFT_FP32 || reduce->format == WEFT_INT32 || reduce->format == WEFT_INT64;
  return next == reduce->of && reduce->node_count && reduce->of <= 1u << WEFT_FOLD_LEVELS && pool && format;
}

/* ---- slices ---- */

/* First element of reader j's slice. */
static uint64_t slice_begin(const reduction *r, uint32_t j) {
  if (r->whole) return 0;
  uint32_t readers = r->reduce->reader_count;
  uint64_t units = weft_ceil_div(r->elements, SLICE_ALIGNMENT);
  uint64_t unit = units / readers * j + weft_min_u64(units % readers, j);
  return weft_min_u64(unit * SLICE_ALIGNMENT, r->elements);
}

static uint64_t slice_end(const reduction *r, uint32_t j) { return r->whole ? r->elements : slice_begin(r, j + 1); }

/* ---- exchange of partials ---- */

static bool send_node(const reduction *r, uint32_t node) {
  weft_chip *chip = r->chip;
  int64_t slot = r->node_slot[node];
  const weft_slot *partial = weft_chip_slot(chip, slot, "all-reduce");
  if (!partial || !weft_chip_settle(chip, slot, false)) return false;
  for (uint32_t j = 0; j < r->reduce->reader_count; j++) {
    uint64_t begin = slice_begin(r, j), bytes = (slice_end(r, j) - begin) * r->element_bytes;
    if (r->reader[j] == chip->index || bytes == 0) continue;
    chip->sent += bytes;
    const unsigned char *data = partial->data + begin * r->element_bytes;
    weft_transfer *send = chip->end->transport->send(chip->end, (uint32_t)r->reader[j], data, bytes, true);
    if (!weft_chip_keep(chip, send, slot, WEFT_PENDING_SEND)) return false;
  }
  return true;
}

static bool send_nodes(const reduction *r) {
  for (uint32_t i = 0; i < r->reduce->node_count; i++)
    if (r->node_chip[i] == r->chip->index && !send_node(r, i)) return false;
  return true;
}

/* Asks for the slices of foreign nodes. Their scratch is only used where memory is not shared. */
static bool ask_nodes(reduction *r) {
  weft_chip *chip = r->chip;
  uint64_t begin = slice_begin(r, (uint32_t)r->me), count = slice_end(r, (uint32_t)r->me) - begin;
  uint64_t bytes = count * r->element_bytes, room = (bytes + 63) / 64 * 64, foreign = 0;
  for (uint32_t i = 0; i < r->reduce->node_count; i++) foreign += r->node_chip[i] != chip->index;
  unsigned char *scratch = weft_chip_scratch(chip, WEFT_SCRATCH_PARTIALS, foreign * room);
  if (!scratch) return false;
  for (uint32_t i = 0; i < r->reduce->node_count; i++) {
    r->arriving[i] = NULL;
    if (r->node_chip[i] == chip->index) {
      r->slices[i] = chip->slots[r->node_slot[i]].data + begin * r->element_bytes;
    } else if (bytes) {
      r->arriving[i] = chip->end->transport->view(chip->end, (uint32_t)r->node_chip[i], scratch, bytes);
      scratch += room;
      if (!r->arriving[i]) {
        weft_chip_fault(chip, WEFT_UNAVAILABLE, NULL, "out of memory for a message");
        return false;
      }
    }
  }
  return true;
}

/* ---- exchange of the result ---- */

static bool ask_results(const reduction *r) {
  weft_chip *chip = r->chip;
  for (uint32_t j = 0; !r->whole && j < r->reduce->reader_count; j++) {
    uint64_t begin = slice_begin(r, j), bytes = (slice_end(r, j) - begin) * r->out_element_bytes;
    if (j == r->me || bytes == 0) continue;
    unsigned char *data = chip->slots[r->reduce->out].data + begin * r->out_element_bytes;
    weft_transfer *receive = chip->end->transport->receive(chip->end, (uint32_t)r->reader[j], data, bytes);
    if (!weft_chip_keep(chip, receive, r->reduce->out, WEFT_PENDING_RECEIVE)) return false;
  }
  return true;
}

static bool send_result(const reduction *r) {
  weft_chip *chip = r->chip;
  uint64_t begin = slice_begin(r, (uint32_t)r->me);
  uint64_t bytes = (slice_end(r, (uint32_t)r->me) - begin) * r->out_element_bytes;
  for (uint32_t j = 0; !r->whole && bytes && j < r->reduce->reader_count; j++) {
    if (j == r->me) continue;
    chip->sent += bytes;
    const unsigned char *data = chip->slots[r->reduce->out].data + begin * r->out_element_bytes;
    weft_transfer *send = chip->end->transport->send(chip->end, (uint32_t)r->reader[j], data, bytes, true);
    if (!weft_chip_keep(chip, send, r->reduce->out, WEFT_PENDING_SEND)) return false;
  }
  return true;
}

static bool fold(const reduction *r) {
  for (uint32_t i = 0; i < r->reduce->node_count; i++) {
    if (!r->arriving[i]) continue;
    if (!weft_chip_wait(r->chip, r->arriving[i])) return false;
    r->slices[i] = r->arriving[i]->data;
  }
  uint64_t begin = slice_begin(r, (uint32_t)r->me);
  weft_fold_slice(&(weft_fold){.pool = (weft_pool)r->reduce->pool,
                               .format = (weft_format)r->reduce->format,
                               .of = r->reduce->of,
                               .node_count = r->reduce->node_count,
                               .first = r->reduce->first,
                               .nodes = r->slices,
                               .from = begin,
                               .count = slice_end(r, (uint32_t)r->me) - begin,
                               .cols = weft_max_u64(1, r->reduce->cols),
                               .threads = r->chip->threads,
                               .epilogue = &r->epilogue});
  for (uint32_t i = 0; i < r->reduce->node_count; i++)
    if (r->arriving[i]) r->chip->end->transport->finish(r->chip->end, r->arriving[i]);
  return !weft_chip_failed(r->chip);
}

static bool prepare(reduction *r) {
  const weft_abi_all_reduce *reduce = r->reduce;
  weft_chip *chip = r->chip;
  r->me = -1;
  for (uint32_t j = 0; j < reduce->reader_count; j++)
    if (r->reader[j] == chip->index) r->me = j;
  r->elements = reduce->rows * reduce->cols;
  r->element_bytes = weft_format_bytes((weft_format)reduce->format);
  uint64_t limit = reduce->reader_count == 2 && reduce->node_count == 2 ? WHOLE_BYTES_OF_TWO : WHOLE_BYTES;
  r->whole = reduce->reader_count < 2 || r->elements * r->element_bytes <= limit;
  if (r->me < 0) return true;
  if (!weft_epilogue_prepare(chip, reduce->epilogue, reduce->epilogue_count, reduce->format == WEFT_FP32, reduce->out,
                             reduce->cols, &r->epilogue))
    return false;
  r->epilogue.narrow = reduce->format == WEFT_INT32 && reduce->epilogue_count;
  r->out_element_bytes = weft_format_bytes(r->epilogue.format);
  if (r->epilogue.stride != reduce->cols || chip->slots[reduce->out].tensor->rows != reduce->rows) {
    weft_chip_fault(chip, WEFT_INVALID, "generate the program again", "the result of the all-reduce is not %llu x %llu",
                    (unsigned long long)reduce->rows, (unsigned long long)reduce->cols);
    return false;
  }
  r->arriving = weft_chip_scratch(chip, WEFT_SCRATCH_TABLES, reduce->node_count * 2 * sizeof(void *));
  r->slices = r->arriving ? (const unsigned char **)(void *)(r->arriving + reduce->node_count) : NULL;
  return r->arriving != NULL;
}

void weft_all_reduce(weft_chip *chip, const weft_abi_all_reduce *reduce) {
  reduction r = {.chip = chip, .reduce = reduce};
  r.node_chip = chip->parameters + reduce->node_chip;
  r.node_slot = chip->parameters + reduce->node_slot;
  r.reader = chip->parameters + reduce->reader_chip;
  if (!prepare(&r) || !send_nodes(&r) || r.me < 0) return;
  if (!weft_chip_settle(chip, reduce->out, true) || !ask_nodes(&r) || !ask_results(&r)) return;
  if (fold(&r)) send_result(&r);
}
