/* The verbs of `weft tensor`, and what they share. */
#ifndef WEFT_TOOLS_TENSOR_COMMANDS_H
#define WEFT_TOOLS_TENSOR_COMMANDS_H

#include "options.h"
#include "weft/tensor_file.h"

int weft_tensor_make(int argc, char **argv);
int weft_tensor_show(int argc, char **argv);
int weft_tensor_slice(int argc, char **argv);
int weft_tensor_rename(int argc, char **argv);
int weft_tensor_accuracy(int argc, char **argv);

/** Elements that are held in memory at a time when files are made or copied. */
#define WEFT_TENSOR_PIECE (UINT64_C(1) << 22)

/** Calls `piece` for blocks that cover rows row0..row0 + rows of a plane `cols` wide, in row-major order, each at most
 * WEFT_TENSOR_PIECE elements, until one fails. */
typedef struct weft_tensor_block {
  uint64_t row0, rows, col0, cols;
} weft_tensor_block;
weft_status weft_tensor_pieces(weft_tensor_block whole, weft_status (*piece)(void *context, weft_tensor_block block),
                               void *context);

/** Appends "[2, 3]". */
void weft_tensor_put_shape(weft_text *text, uint32_t rank, const uint64_t *extents);

#endif
