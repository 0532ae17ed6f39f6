/* weft_product: from the emitted table to a job, and the choice of the kernels that do it. */
#include "product_private.h"

#include <string.h>

/* Fastest first. */
#if defined(__x86_64__)
#define KERNEL_SETS(ROW)                                                                                               \
  ROW(avx512)                                                                                                          \
  ROW(avx2)                                                                                                            \
  ROW(plain)
#elif defined(__aarch64__)
#define KERNEL_SETS(ROW)                                                                                               \
  ROW(neon)                                                                                                            \
  ROW(plain)
#else
#define KERNEL_SETS(ROW) ROW(plain)
#endif

#define ROW(name) extern const weft_kernel_set weft_kernels_##name;
KERNEL_SETS(ROW)
#undef ROW

static const weft_kernel_set *const kernel_sets[] = {
#define ROW(name) &weft_kernels_##name,
    KERNEL_SETS(ROW)
#undef ROW
};
enum { KERNEL_SET_COUNT = sizeof kernel_sets / sizeof *kernel_sets };

const weft_kernel_set *weft_kernel_set_at(uint32_t index) {
  return index < KERNEL_SET_COUNT ? kernel_sets[index] : NULL;
}

const weft_kernel_set *weft_kernel_set_choose(const char *name, weft_diag *diag) {
  weft_text known = {0};
  const weft_kernel_set *chosen = NULL;
  bool exists = false;
  for (uint32_t i = 0; i < KERNEL_SET_COUNT && !chosen; i++) {
    bool wanted = !name || strcmp(kernel_sets[i]->name, name) == 0;
    exists = exists || wanted;
    if (!kernel_sets[i]->available()) continue;
    if (wanted) chosen = kernel_sets[i];
    weft_text_printf(&known, "%s%s", known.length ? ", " : "this processor has: ", kernel_sets[i]->name);
  }
  if (!chosen)
    weft_error(diag, exists ? WEFT_UNAVAILABLE : WEFT_USAGE, known.data,
               exists ? "this processor cannot run the kernels '%s'" : "there are no kernels '%s'", name);
  weft_text_free(&known);
  return chosen;
}

static const void *element(const weft_slot *slot, uint64_t row, uint64_t col) {
  return slot->data + (row * slot->tensor->cols + col) * weft_format_bytes(slot->format);
}

/* Whether a block lies in its tensor. */
static bool inside(weft_chip *chip, const weft_slot *slot, uint64_t row, uint64_t rows, uint64_t col, uint64_t cols) {
  uint64_t row_end, col_end;
  if (!weft_add_overflow(row, rows, &row_end) && !weft_add_overflow(col, cols, &col_end) &&
      row_end <= slot->tensor->rows && col_end <= slot->tensor->cols)
    return true;
  weft_chip_fault(chip, WEFT_INVALID, "generate the program again",
                  "the %llu x %llu block at (%llu, %llu) is outside '%s', which is %llu x %llu",
                  (unsigned long long)rows, (unsigned long long)cols, (unsigned long long)row, (unsigned long long)col,
                  slot->tensor->name, (unsigned long long)slot->tensor->rows, (unsigned long long)slot->tensor->cols);
  return false;
}

static bool same_kind(weft_chip *chip, const weft_slot *a, const weft_slot *b, int acc) {
  bool floats = acc == WEFT_ACC_F32;
  if (weft_format_is_float(a->format) == floats && weft_format_is_float(b->format) == floats) return true;
  weft_chip_fault(chip, WEFT_INVALID, "generate the program again", "'%s' (%s) and '%s' (%s) do not fold in %s",
                  a->tensor->name, weft_format_name(a->format), b->tensor->name, weft_format_name(b->format),
                  floats ? "fp32" : "integers");
  return false;
}

/* Where the fold ends of a product that goes up to a position; false after a fault. */
static bool find_end(weft_chip *chip, const weft_abi_product *product, uint64_t *k) {
  *k = product->k;
  if (!product->position) return true;
  const weft_slot *at = weft_chip_slot(chip, product->position - 1, "product");
  if (!at) return false;
  int64_t position = weft_load_i64(at->format, at->data, 0);
  if (position < 0 || (uint64_t)position >= product->k) {
    weft_chip_fault(chip, WEFT_INVALID, "give a position that the program admits, or run fewer steps",
                    "element 0 of `%s` is %lld; the program admits 0 to %llu",
                    at->tensor->dataset ? at->tensor->dataset : at->tensor->name, (long long)position,
                    (unsigned long long)product->k - 1);
    return false;
  }
  *k = weft_min_u64(product->k, ((uint64_t)position / WEFT_UNIT + 1) * WEFT_UNIT);
  return true;
}

void weft_product(weft_chip *chip, const weft_abi_product *product) {
  const weft_slot *a = weft_chip_slot(chip, product->a, "product"), *b = weft_chip_slot(chip, product->b, "product");
  const weft_slot *out = weft_chip_slot(chip, product->out, "product");
  if (!a || !b || !out || !same_kind(chip, a, b, product->acc)) return;
  if (!inside(chip, a, product->a_row, product->m, product->a_col, product->k) ||
      !inside(chip, b, product->b_row, product->k, product->b_col, product->n) ||
      !inside(chip, out, 0, product->m, 0, product->n))
    return;
  uint64_t k;
  if (!find_end(chip, product, &k) || product->m == 0 || product->n == 0) return;
  weft_product_job job = {
      .chip = chip,
      .a = element(a, product->a_row, product->a_col),
      .b = element(b, product->b_row, product->b_col),
      .a_format = a->format,
      .b_format = b->format,
      .a_stride = a->tensor->cols,
      .b_stride = b->tensor->cols,
      .m = product->m,
      .n = product->n,
      .k = k,
      .acc = (weft_acc_policy)product->acc,
      .segments = product->segments ? product->segments : 1,
      .threads = chip->threads,
  };
  if (!weft_epilogue_prepare(chip, product->epilogue, product->epilogue_count, product->acc == WEFT_ACC_F32,
                             product->out, product->n, &job.epilogue))
    return;
  job.epilogue.narrow = product->acc == WEFT_ACC_I32 && product->epilogue_count;
  if (chip->kernels->product(&job)) return;
  if (chip->strict)
    weft_chip_fault(chip, WEFT_UNAVAILABLE, "run without --kernel-strict",
                    "the kernels '%s' do not cover a product of %s and %s", chip->kernels->name,
                    weft_format_name(a->format), weft_format_name(b->format));
  else
    weft_product_plain(&job);
}
