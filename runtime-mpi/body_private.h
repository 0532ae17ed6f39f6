/* body_private.h: scalar expressions over operands with access maps: what pointwise and reduce operations have in
 * common. */
#ifndef WEFT_BODY_PRIVATE_H
#define WEFT_BODY_PRIVATE_H

#include "chip_private.h"

/** Elements a node is run over at a time. */
enum { WEFT_BODY_BLOCK = 256 };

/** A body and its operands. */
typedef struct weft_body_work {
  weft_chip *chip;
  int64_t out; /**< slot that faults are reported in */
  bool folded; /**< its columns are folded: faults name column 0 */
  uint32_t operand_count;
  const weft_abi_operand *operands;
  uint32_t node_count;
  const weft_abi_node *nodes;
  bool integral; /**< computed in 64-bit integers; else in fp32 */
} weft_body_work;

/** Consecutive elements of one row. */
typedef struct weft_body_run {
  const weft_body_work *work;
  uint64_t row, col;
  uint32_t count; /**< at most WEFT_BODY_BLOCK */
  bool *doubtful; /**< set where a node would fault, which only counts if its value is chosen; NULL: report */
} weft_body_run;

/** Checks nodes and maps over rows x cols and sets `integral`; false after a fault. */
bool weft_body_prepare(weft_body_work *work, uint64_t rows, uint64_t cols);
/** Bytes of scratch for one thread. */
uint64_t weft_body_scratch(const weft_body_work *work);
/** The values of a run, in scratch: int64_t of an integral body, else floats. */
void *weft_body_compute(weft_body_run *run, unsigned char *scratch);

#endif
