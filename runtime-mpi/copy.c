/* weft_copy, weft_assemble: blocks from one tensor to another of the same format. */
#include "chip_private.h"

#include <string.h>

static bool fits(const weft_slot *slot, uint64_t row, uint64_t rows, uint64_t col, uint64_t cols) {
  uint64_t row_end, col_end;
  return !weft_add_overflow(row, rows, &row_end) && !weft_add_overflow(col, cols, &col_end) &&
         row_end <= slot->tensor->rows && col_end <= slot->tensor->cols;
}

static void copy_block(const weft_slot *from, weft_slot *to, const weft_abi_copy *copy) {
  size_t bytes = weft_format_bytes(from->format);
  uint64_t from_row = from->tensor->cols * bytes, to_row = to->tensor->cols * bytes;
  const unsigned char *source = from->data + copy->from_row * from_row + copy->from_col * bytes;
  unsigned char *target = to->data + copy->to_row * to_row + copy->to_col * bytes;
  uint64_t length = copy->cols * bytes, rows = copy->rows;
  if (length == from_row && length == to_row) { /* whole rows lie one after the other */
    length *= rows;
    rows = rows ? 1 : 0;
  }
  for (uint64_t r = 0; r < rows && length; r++) memmove(target + r * to_row, source + r * from_row, length);
}

static bool copy_one(weft_chip *chip, const weft_slot *from, weft_slot *to, const weft_abi_copy *copy) {
  if (from->format != to->format || !fits(from, copy->from_row, copy->rows, copy->from_col, copy->cols) ||
      !fits(to, copy->to_row, copy->rows, copy->to_col, copy->cols)) {
    weft_chip_fault(chip, WEFT_INVALID, "generate the program again",
                    "a copy from '%s' to '%s' does not fit their extents or formats", from->tensor->name,
                    to->tensor->name);
    return false;
  }
  copy_block(from, to, copy);
  return true;
}

void weft_copy(weft_chip *chip, const weft_abi_copy *copies, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const weft_slot *from = weft_chip_slot(chip, copies[i].from, "copy");
    weft_slot *to = from ? weft_chip_slot(chip, copies[i].to, "copy") : NULL;
    if (!to || !copy_one(chip, from, to, &copies[i])) return;
  }
}

static uint64_t place_at(const int64_t *series, int ring, uint64_t i) {
  return series ? (uint64_t)weft_series_at(series, ring != 0, i) : 0;
}

void weft_assemble(weft_chip *chip, const weft_abi_assemble *assemble) {
  for (uint32_t i = 0; i < assemble->count; i++) {
    const weft_slot *from = weft_chip_slot(chip, assemble->from[i], "assemble");
    weft_slot *to = from ? weft_chip_slot(chip, assemble->to, "assemble") : NULL;
    if (!to) return;
    const weft_abi_copy copy = {.to_row = place_at(assemble->row, assemble->ring, i),
                                .to_col = place_at(assemble->col, assemble->ring, i),
                                .rows = from->tensor->rows,
                                .cols = from->tensor->cols};
    if (!copy_one(chip, from, to, &copy)) return;
  }
}
