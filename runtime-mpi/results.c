/* Where tensors go: rank 0 collects every block that some chip writes and puts the results down whole. */
#include "run_private.h"

#include "weft/ir.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 64 << 20 }; /* of a block on its way to rank 0 */

typedef struct collector {
  weft_run *run;
  const weft_sink *sink;
  weft_tensor_writer *writer; /* rank 0, to a file */
  unsigned char *piece;       /* rank 0 */
  uint64_t piece_bytes;
  weft_status status;
  weft_diag *diag;
} collector;

static void put(collector *out, const weft_abi_tensor *tensor, uint64_t row0, uint64_t rows, uint64_t col0,
                const void *data) {
  if (out->status != WEFT_OK) return;
  if (out->writer) {
    out->status = weft_tensor_writer_write(out->writer, tensor->dataset, row0, rows, col0, tensor->cols, data,
                                           tensor->cols, out->diag);
    return;
  }
  weft_array *array = weft_array_set_find(out->sink->arrays, tensor->dataset);
  uint64_t height, width, bytes = weft_format_bytes((weft_format)tensor->format), line = tensor->cols * bytes;
  weft_plane_extents(array->rank, array->extents, &height, &width);
  for (uint64_t r = 0; r < rows && line; r++)
    memcpy((unsigned char *)array->data + ((row0 + r) * width + col0) * bytes, (const unsigned char *)data + r * line,
           line);
}

static uint64_t rows_of_piece(const weft_abi_tensor *tensor) {
  uint64_t line = tensor->cols * weft_format_bytes((weft_format)tensor->format);
  return weft_max_u64(1, PIECE_BYTES / weft_max_u64(1, line));
}

static void failed_transfer(collector *out, const weft_chip *chip) {
  if (out->status == WEFT_OK)
    out->status = weft_error(out->diag, WEFT_UNAVAILABLE, NULL, "results could not be collected: %s",
                             chip->fault.text[0] ? chip->fault.text : "a message failed");
}

/* One piece from the chip that holds it to rank 0; each side does its half. After an error on rank 0 pieces still
 * arrive, so that the senders get on. */
static void move_piece(collector *out, uint32_t from, const weft_abi_tensor *tensor, weft_block block, uint64_t row,
                       uint64_t rows, const weft_slot *local) {
  weft_run *run = out->run;
  uint64_t line = tensor->cols * weft_format_bytes((weft_format)tensor->format), bytes = rows * line;
  const unsigned char *data = local ? local->data + row * line : NULL;
  if (run->process->rank == 0 && local) {
    put(out, tensor, block.row0 + row, rows, block.col0, data);
    return;
  }
  weft_chip *chip = &run->chips[0];
  weft_endpoint *end = chip->end;
  if (run->process->rank == 0 && out->piece_bytes < bytes) {
    free(out->piece);
    out->piece = malloc(bytes);
    out->piece_bytes = out->piece ? bytes : 0;
    if (!out->piece && out->status == WEFT_OK) out->status = weft_error_memory(out->diag);
    if (!out->piece) return;
  }
  weft_transfer *transfer = run->process->rank == 0 ? end->transport->receive(end, from, out->piece, bytes)
                                                    : end->transport->send(end, 0, data, bytes, true);
  if (!transfer || !weft_chip_wait(chip, transfer)) {
    failed_transfer(out, chip);
    return;
  }
  end->transport->finish(end, transfer);
  if (run->process->rank == 0) put(out, tensor, block.row0 + row, rows, block.col0, out->piece);
}

static void move_chip(collector *out, uint32_t index) {
  weft_run *run = out->run;
  const weft_abi_class *class = run->program->classes[run->class_of[index]];
  const int64_t *parameters = class->parameters + (uint64_t)run->row_of[index] * class->parameter_count;
  uint32_t first = run->chips[0].index;
  bool here = index >= first && index - first < run->chip_count;
  if (!here && run->process->rank != 0) return;
  for (uint32_t t = 0; t < class->tensor_count; t++) {
    const weft_abi_tensor sized = weft_tensor_of_chip(&class->tensors[t], parameters), *tensor = &sized;
    if (!weft_tensor_is_written(tensor)) continue;
    weft_block block = weft_tensor_block(tensor, parameters);
    uint64_t step = rows_of_piece(tensor);
    for (uint64_t row = 0; block.writer && tensor->cols && row < tensor->rows; row += step)
      move_piece(out, index, tensor, block, row, weft_min_u64(step, tensor->rows - row),
                 here ? &run->chips[index - first].slots[t] : NULL);
  }
}

/* ---- the results' form ---- */

/* The result whose dataset comes next in name order, NULL after the last: the file does not depend on how the program
 * was divided into classes. */
static const weft_abi_tensor *next_result(const weft_abi_program *program, const weft_abi_tensor *last) {
  const weft_abi_tensor *next = NULL;
  for (uint32_t k = 0; k < program->class_count; k++)
    for (uint32_t t = 0; t < program->classes[k]->tensor_count; t++) {
      const weft_abi_tensor *tensor = &program->classes[k]->tensors[t];
      if (!weft_tensor_is_written(tensor) || (last && strcmp(tensor->dataset, last->dataset) <= 0)) continue;
      if (!next || strcmp(tensor->dataset, next->dataset) < 0) next = tensor;
    }
  return next;
}

bool weft_results_exist(const weft_abi_program *program) { return next_result(program, NULL) != NULL; }

static weft_status declare(collector *out, const weft_abi_tensor *tensor) {
  const char *role = tensor->role == WEFT_ROLE_STATE ? "State" : "Output";
  weft_format format = (weft_format)tensor->format;
  if (out->writer)
    return weft_tensor_writer_declare(out->writer, tensor->dataset, format, (uint32_t)tensor->rank, tensor->extents,
                                      role, out->diag);
  return weft_array_set_add(out->sink->arrays, tensor->dataset, format, (uint32_t)tensor->rank, tensor->extents)
             ? WEFT_OK
             : weft_error_memory(out->diag);
}

static weft_status create(collector *out) {
  const weft_abi_program *program = out->run->program;
  weft_status status = WEFT_OK;
  if (out->sink->path) status = weft_tensor_writer_create(out->sink->path, &out->writer, out->diag);
  const weft_abi_tensor *result = NULL;
  while (status == WEFT_OK && (result = next_result(program, result))) status = declare(out, result);
  if (status == WEFT_OK && out->writer)
    status = weft_tensor_writer_attribute(out->writer, "arithmetic", (int64_t)program->arithmetic, out->diag);
  return status;
}

static weft_status finish(collector *out) {
  if (!out->writer) return out->status;
  if (out->status == WEFT_OK) return weft_tensor_writer_commit(out->writer, out->diag);
  weft_tensor_writer_abandon(out->writer);
  return out->status;
}

weft_status weft_results_write(weft_run *run, const weft_sink *sink, bool *speaks, weft_diag *diag) {
  *speaks = false;
  if (!sink->path && !sink->arrays) return WEFT_OK;
  collector out = {.run = run, .sink = sink, .diag = diag};
  if (run->process->rank == 0) out.status = create(&out);
  for (uint32_t chip = 0; chip < run->program->chips; chip++) move_chip(&out, chip);
  free(out.piece);
  if (run->process->rank == 0) out.status = finish(&out);
  return weft_run_agree(run, out.status, false, speaks);
}
