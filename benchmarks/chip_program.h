/* chip_program.h: programs for the runtime made by hand, as the generator emits them (weft/program_abi.h), whose
 * sections do the timing. */
#ifndef WEFT_BENCH_CHIP_PROGRAM_H
#define WEFT_BENCH_CHIP_PROGRAM_H

#include "weft/format.h"
#include "weft/ir.h"
#include "weft/program_abi.h"

enum { CHIP_TENSORS = 12, CHIP_STEPS = 64, CHIP_CHIPS = 16, CHIP_PARAMETERS = 64, CHIP_SLOTS = 8 };

/** All chips are one class. Parameter 0 is the context that sections see; more are added by hand. */
typedef struct chip_program {
  weft_abi_tensor tensors[CHIP_TENSORS];
  weft_abi_step steps[CHIP_STEPS];
  int64_t slots[CHIP_STEPS][2][CHIP_SLOTS];
  int64_t parameters[CHIP_CHIPS * CHIP_PARAMETERS];
  uint16_t chips[CHIP_CHIPS];
  weft_abi_class class;
  const weft_abi_class *classes[1];
  weft_abi_program program;
} chip_program;

void chip_program_begin(chip_program *p, const char *name, uint32_t chips, void *context);
/** The context of a section function. */
static inline void *chip_context(const int64_t *parameters) { return (void *)(uintptr_t)parameters[0]; }
/** Parameter `index` of a chip's row. */
int64_t *chip_parameter(chip_program *p, uint32_t chip, uint32_t index);

/** A tensor of the chip: floats hold random Bf16 values, integers count through their whole range; NAME, a slot. */
int64_t chip_tensor(chip_program *p, const char *name, weft_format format, uint64_t rows, uint64_t cols);
/** The same without a value. */
int64_t chip_result(chip_program *p, const char *name, weft_format format, uint64_t rows, uint64_t cols);

/** Adds a step; lists of slots end with -1. The caller sets what it runs. */
weft_abi_step *chip_step(chip_program *p, int kind, const char *name, const int64_t *reads, const int64_t *writes);
#define CHIP_LIST(...) ((const int64_t[]){__VA_ARGS__ __VA_OPT__(, ) - 1})

/** A product of whole tensors in the canonical segments of its k. */
weft_abi_product chip_product(const chip_program *p, int64_t a, int64_t b, int64_t out);

/** Runs the program once in this process; false when it fails, after its message. */
bool chip_program_run(const chip_program *p, int threads);
/** The kernel set that the runtime chooses here. */
const char *chip_kernels(void);

#endif
