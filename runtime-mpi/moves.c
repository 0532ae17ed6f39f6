/* weft_transpose, weft_gather, weft_update: elements moved by position or by an index that is read. */
#include "chip_private.h"

#include <string.h>

static void misfit(weft_chip *chip, const char *what, const weft_slot *slot) {
  weft_chip_fault(chip, WEFT_INVALID, "generate the program again", "%s: '%s' has another form", what,
                  slot->tensor->name);
}

/* ---- transposes ---- */

enum { TILE = 32 };

#define TRANSPOSE_TILE(type)                                                                                           \
  for (uint64_t r = row; r < row_end; r++)                                                                             \
    for (uint64_t c = col; c < col_end; c++)                                                                           \
      ((type *)(void *)out->data)[c * rows + r] = ((const type *)(const void *)from->data)[r * cols + c];

/* Tile by tile, so that neither side strides over more lines than the nearest cache holds. */
static void transpose_tiles(const weft_slot *from, weft_slot *out) {
  uint64_t rows = from->tensor->rows, cols = from->tensor->cols;
  for (uint64_t row = 0; row < rows; row += TILE)
    for (uint64_t col = 0; col < cols; col += TILE) {
      uint64_t row_end = weft_min_u64(rows, row + TILE), col_end = weft_min_u64(cols, col + TILE);
      switch (weft_format_bytes(from->format)) {
      case 1: TRANSPOSE_TILE(uint8_t) break;
      case 2: TRANSPOSE_TILE(uint16_t) break;
      case 4: TRANSPOSE_TILE(uint32_t) break;
      default: TRANSPOSE_TILE(uint64_t)
      }
    }
}

void weft_transpose(weft_chip *chip, const weft_abi_transpose *transpose) {
  const weft_slot *from = weft_chip_slot(chip, transpose->from, "transpose");
  weft_slot *out = from ? weft_chip_slot(chip, transpose->out, "transpose") : NULL;
  if (!out) return;
  if (from->format != out->format || from->tensor->rows != out->tensor->cols ||
      from->tensor->cols != out->tensor->rows || from == out)
    misfit(chip, "transpose", out);
  else
    transpose_tiles(from, out);
}

/* ---- gathers ---- */

static void gather_row(const weft_slot *table, weft_slot *out, uint64_t row, uint64_t from, bool there) {
  uint64_t cols = out->tensor->cols;
  if (there && table->format == out->format) {
    uint64_t bytes = cols * weft_format_bytes(out->format);
    if (bytes) memcpy(out->data + row * bytes, table->data + from * bytes, bytes);
    return;
  }
  for (uint64_t c = 0; c < cols; c++) {
    if (weft_format_is_float(out->format))
      weft_store_f32(out->format, out->data, row * cols + c,
                     there ? weft_load_f32(table->format, table->data, from * cols + c) : -0.0f);
    else
      weft_store_i64(out->format, out->data, row * cols + c,
                     there ? weft_load_i64(table->format, table->data, from * cols + c) : 0);
  }
}

void weft_gather(weft_chip *chip, const weft_abi_gather *gather) {
  const weft_slot *table = weft_chip_slot(chip, gather->table, "gather");
  const weft_slot *ids = table ? weft_chip_slot(chip, gather->ids, "gather") : NULL;
  weft_slot *out = ids ? weft_chip_slot(chip, gather->out, "gather") : NULL;
  if (!out) return;
  if (weft_format_is_float(ids->format) || ids->tensor->cols != 1 || ids->tensor->rows != out->tensor->rows ||
      table->tensor->cols != out->tensor->cols ||
      weft_format_is_float(table->format) != weft_format_is_float(out->format)) {
    misfit(chip, "gather", out);
    return;
  }
  for (uint64_t r = 0; r < out->tensor->rows; r++) {
    int64_t id = weft_load_i64(ids->format, ids->data, r);
    if (id < 0 || id > gather->high) {
      weft_chip_fault(chip, WEFT_INVALID, NULL, "row %llu of '%s' is %lld, outside 0 to %lld", (unsigned long long)r,
                      ids->tensor->name, (long long)id, (long long)gather->high);
      return;
    }
    bool there = id >= gather->low && (uint64_t)(id - gather->low) < table->tensor->rows;
    gather_row(table, out, r, there ? (uint64_t)(id - gather->low) : 0, there);
  }
}

/* ---- updates ---- */

void weft_update(weft_chip *chip, const weft_abi_update *update) {
  const weft_slot *x = weft_chip_slot(chip, update->x, "update");
  const weft_slot *at = x ? weft_chip_slot(chip, update->at, "update") : NULL;
  weft_slot *state = at ? weft_chip_slot(chip, update->state, "update") : NULL;
  if (!state) return;
  uint64_t rows = state->tensor->rows, cols = state->tensor->cols, places = update->axis ? cols : rows;
  if (state->format != x->format || x->tensor->rows != 1 || x->tensor->cols != (update->axis ? rows : cols) ||
      weft_format_is_float(at->format) || at->tensor->rows * at->tensor->cols != 1) {
    misfit(chip, "update", state);
    return;
  }
  int64_t place = weft_load_i64(at->format, at->data, 0);
  if (place < 0 || (uint64_t)place >= places) {
    weft_chip_fault(chip, WEFT_INVALID, NULL, "'%s' is %lld, outside 0 to %llu", at->tensor->name, (long long)place,
                    (unsigned long long)places - 1);
    return;
  }
  size_t bytes = weft_format_bytes(state->format);
  if (!update->axis) {
    memcpy(state->data + (uint64_t)place * cols * bytes, x->data, cols * bytes);
    return;
  }
  for (uint64_t r = 0; r < rows; r++)
    memcpy(state->data + (r * cols + (uint64_t)place) * bytes, x->data + r * bytes, bytes);
}
