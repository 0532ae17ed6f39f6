/* Epilogues: resolved once a call, applied row by row. */
#include "epilogue_inline.h"

#include <stdio.h>

void weft_epilogue_row_f32(const weft_epilogue *epilogue, uint64_t row, uint64_t col, uint64_t count, float *values) {
  inline_row_f32(epilogue, row, col, count, values);
}

void weft_epilogue_row_i64(const weft_epilogue *epilogue, uint64_t row, uint64_t col, uint64_t count, int64_t *values) {
  inline_row_i64(epilogue, row, col, count, values);
}

void weft_epilogue_misfit(const weft_epilogue *epilogue, uint64_t row, uint64_t col, int64_t value,
                          weft_format format) {
  char text[96];
  snprintf(text, sizeof text, "%lld does not fit %s", (long long)value, weft_format_name(format));
  weft_chip_fault_element(epilogue->chip, epilogue->slot, row, col, text);
}

void weft_epilogue_overflow(const weft_epilogue *epilogue, uint64_t row, uint64_t col) {
  weft_chip_fault_element(epilogue->chip, epilogue->slot, row, col, "a sum does not fit 64 bits");
}

/* ---- preparing ---- */

static bool resolve_bias(weft_chip *chip, const weft_abi_epilogue *from, bool floats, uint64_t cols, void *widened,
                         weft_epilogue_op *op) {
  const weft_slot *slot = weft_chip_slot(chip, from->operand, "bias");
  if (!slot) return false;
  if (slot->tensor->rows * slot->tensor->cols < cols || weft_format_is_float(slot->format) != floats) {
    weft_chip_fault(chip, WEFT_INVALID, "generate the program again",
                    "bias '%s' (%s, %llu elements) does not go with %llu columns of %s", slot->tensor->name,
                    weft_format_name(slot->format), (unsigned long long)(slot->tensor->rows * slot->tensor->cols),
                    (unsigned long long)cols, floats ? "floats" : "integers");
    return false;
  }
  if (!floats) {
    for (uint64_t j = 0; j < cols; j++) ((int64_t *)widened)[j] = weft_load_i64(slot->format, slot->data, j);
    op->bias_i64 = widened;
  } else if (slot->format == WEFT_FP32) {
    op->bias_f32 = (const float *)(const void *)slot->data;
  } else {
    for (uint64_t j = 0; j < cols; j++) ((float *)widened)[j] = weft_load_f32(slot->format, slot->data, j);
    op->bias_f32 = widened;
  }
  return true;
}

static bool resolve(weft_chip *chip, const weft_abi_epilogue *from, bool floats, uint64_t cols, void *widened,
                    weft_epilogue_op *op) {
  *op =
      (weft_epilogue_op){.kind = from->kind, .m = from->m, .low = from->m, .high = from->s, .narrow = from->bits == 32};
  op->shift = (uint64_t)from->s < 63 ? (uint32_t)from->s : 63;
  op->low_f32 = (float)from->m;
  op->high_f32 = (float)from->s;
  switch (from->kind) {
  case WEFT_EPILOGUE_BIAS: return resolve_bias(chip, from, floats, cols, widened, op);
  case WEFT_EPILOGUE_RELU:
  case WEFT_EPILOGUE_CLAMP: return true;
  case WEFT_EPILOGUE_REQUANT:
    if (!floats) return true;
    weft_chip_fault(chip, WEFT_INVALID, "requantise integers only", "requantisation of floats is not defined");
    return false;
  default:
    weft_chip_fault(chip, WEFT_INVALID, "generate the program again", "unknown epilogue %d", from->kind);
    return false;
  }
}

bool weft_epilogue_prepare(weft_chip *chip, const weft_abi_epilogue *ops, uint32_t count, bool floats, int64_t out,
                           uint64_t cols, weft_epilogue *epilogue) {
  const weft_slot *slot = weft_chip_slot(chip, out, "result");
  if (!slot) return false;
  if (count > WEFT_MAX_EPILOGUE || (floats && !weft_format_is_float(slot->format))) {
    weft_chip_fault(chip, WEFT_INVALID, "generate the program again",
                    count > WEFT_MAX_EPILOGUE ? "more than 16 epilogues on '%s'"
                                              : "'%s' is an integer tensor that floats are to be stored in",
                    slot->tensor->name);
    return false;
  }
  uint32_t biases = 0;
  for (uint32_t i = 0; i < count; i++) biases += ops[i].kind == WEFT_EPILOGUE_BIAS;
  int64_t *widened = biases ? weft_chip_scratch(chip, WEFT_SCRATCH_BIAS, biases * cols * sizeof *widened) : NULL;
  if (biases && !widened) return false;
  *epilogue = (weft_epilogue){.chip = chip, .slot = out, .format = slot->format, .out = slot->data, .count = count};
  epilogue->stride = slot->tensor->cols;
  for (uint32_t i = 0; i < count; i++) {
    if (!resolve(chip, &ops[i], floats, cols, widened, &epilogue->ops[i])) return false;
    if (ops[i].kind == WEFT_EPILOGUE_BIAS) widened += cols;
  }
  return true;
}
