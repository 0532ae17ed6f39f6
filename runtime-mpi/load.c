/* Where tensors come from: an HDF5 file, or the arrays of a host application. */
#include "run_private.h"

#include "weft/ir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool weft_tensor_is_read(const weft_abi_tensor *tensor) {
  return tensor->dataset && tensor->fill == 0 &&
         (tensor->role == WEFT_ROLE_INPUT || tensor->role == WEFT_ROLE_PARAM || tensor->role == WEFT_ROLE_STATE);
}

bool weft_tensor_advances(const weft_run *run, const weft_abi_tensor *tensor) {
  return tensor->dataset && tensor->role == WEFT_ROLE_INPUT && !weft_format_is_float((weft_format)tensor->format) &&
         strcmp(tensor->dataset, run->options.advance) == 0;
}

bool weft_tensor_is_written(const weft_abi_tensor *tensor) {
  return tensor->dataset && (tensor->role == WEFT_ROLE_OUTPUT || tensor->role == WEFT_ROLE_STATE);
}

weft_block weft_tensor_block(const weft_abi_tensor *tensor, const int64_t *parameters) {
  if (tensor->place < 0) return (weft_block){0, 0, true};
  const int64_t *place = parameters + tensor->place;
  return (weft_block){(uint64_t)place[0], (uint64_t)place[1], place[2] != 0};
}

/* ---- opening ---- */

static bool needs_input(const weft_run *run) {
  for (uint32_t i = 0; i < run->chip_count; i++)
    for (uint32_t t = 0; t < run->chips[i].class->tensor_count; t++)
      if (weft_tensor_is_read(&run->chips[i].class->tensors[t])) return true;
  return false;
}

/* What has a fill is read where the input has it. */
static bool is_offered(const weft_source *source, const weft_abi_tensor *tensor) {
  bool given = tensor->role == WEFT_ROLE_INPUT || tensor->role == WEFT_ROLE_PARAM || tensor->role == WEFT_ROLE_STATE;
  if (!tensor->dataset || !given || tensor->fill == 0) return false;
  if (source->arrays) return weft_array_set_find(source->arrays, tensor->dataset) != NULL;
  return source->file && weft_tensor_file_find(source->file, tensor->dataset) != NULL;
}

weft_status weft_source_open(weft_source *source, const weft_run *run, weft_diag *diag) {
  if (source->arrays || (!needs_input(run) && !run->options.in)) return WEFT_OK;
  source->name = run->options.in;
  if (!source->name)
    return weft_error(diag, WEFT_USAGE, "give --in FILE.h5; weft tensor make writes random ones",
                      "the program reads tensors, and no input file was given");
  return weft_tensor_file_open(source->name, &source->file, diag);
}

void weft_source_close(weft_source *source) {
  if (source->file) weft_tensor_file_close(source->file);
  source->file = NULL;
}

/* ---- checking ---- */

static void append_extents(weft_text *text, uint64_t rank, const uint64_t *extents) {
  weft_text_puts(text, "(");
  for (uint64_t i = 0; i < rank; i++) weft_text_printf(text, "%s%llu", i ? ", " : "", (unsigned long long)extents[i]);
  weft_text_puts(text, ")");
}

static weft_status wrong_tensor(const weft_source *source, const weft_abi_tensor *tensor, weft_format format,
                                uint64_t rank, const uint64_t *extents, weft_diag *diag) {
  weft_text text = {0};
  weft_text_printf(&text, "tensor '%s' is %s ", tensor->dataset, weft_format_name(format));
  append_extents(&text, rank, extents);
  weft_text_printf(&text, "; the program needs %s ", weft_format_name((weft_format)tensor->format));
  append_extents(&text, (uint64_t)tensor->rank, tensor->extents);
  weft_status status = weft_error_at(diag, WEFT_INVALID, (weft_place){.file = source->name},
                                     "give the file the program was made for, or weft tensor adapts it", "%s",
                                     text.data ? text.data : "out of memory");
  weft_text_free(&text);
  return status;
}

static bool equal_extents(const weft_abi_tensor *tensor, uint64_t rank, const uint64_t *extents) {
  if (rank != (uint64_t)tensor->rank) return false;
  for (uint64_t i = 0; i < rank; i++)
    if (extents[i] != tensor->extents[i]) return false;
  return true;
}

static weft_status missing(const weft_source *source, const weft_abi_tensor *tensor, weft_diag *diag) {
  return weft_error_at(diag, WEFT_INVALID, (weft_place){.file = source->name},
                       "weft tensor show lists what a file holds, weft tensor rename gives a dataset another name",
                       "there is no tensor '%s'", tensor->dataset);
}

/* A host application may pass the block a chip reads instead of the whole. */
static bool is_block(const weft_array *array, const weft_abi_tensor *tensor) {
  uint64_t rows, cols;
  weft_plane_extents(array->rank, array->extents, &rows, &cols);
  return array->dtype == (weft_format)tensor->format && rows == tensor->rows && cols == tensor->cols;
}

static weft_status check_tensor(const weft_source *source, const weft_abi_tensor *tensor, weft_diag *diag) {
  if (source->arrays) {
    const weft_array *array = weft_array_set_find(source->arrays, tensor->dataset);
    if (!array) return missing(source, tensor, diag);
    if (is_block(array, tensor) ||
        (array->dtype == (weft_format)tensor->format && equal_extents(tensor, array->rank, array->extents)))
      return WEFT_OK;
    return wrong_tensor(source, tensor, array->dtype, array->rank, array->extents, diag);
  }
  const weft_dataset_info *info = weft_tensor_file_find(source->file, tensor->dataset);
  if (!info) return missing(source, tensor, diag);
  if (info->dtype == (weft_format)tensor->format && equal_extents(tensor, info->rank, info->extents)) return WEFT_OK;
  return wrong_tensor(source, tensor, info->dtype, info->rank, info->extents, diag);
}

/* That --advance names an input of some chip. */
static weft_status check_advance(const weft_run *run, weft_diag *diag) {
  if (!run->options.advance) return WEFT_OK;
  for (uint32_t k = 0; k < run->program->class_count; k++)
    for (uint32_t t = 0; t < run->program->classes[k]->tensor_count; t++)
      if (weft_tensor_advances(run, &run->program->classes[k]->tensors[t])) return WEFT_OK;
  return weft_error(diag, WEFT_USAGE, "name an Input of integers", "the program has no Input '%s' to advance",
                    run->options.advance);
}

weft_status weft_source_check(const weft_source *source, const weft_run *run, weft_diag *diag) {
  weft_status advances = check_advance(run, diag);
  if (advances != WEFT_OK) return advances;
  for (uint32_t i = 0; i < run->chip_count; i++)
    for (uint32_t t = 0; t < run->chips[i].class->tensor_count; t++) {
      const weft_abi_tensor *tensor = run->chips[i].slots[t].tensor;
      if (!weft_tensor_is_read(tensor) && !is_offered(source, tensor)) continue;
      weft_status status = check_tensor(source, tensor, diag);
      if (status != WEFT_OK) return status;
    }
  return WEFT_OK;
}

/* ---- loading ---- */

static void copy_array(const weft_array *array, const weft_slot *slot, weft_block block) {
  uint64_t rows, cols, bytes = weft_format_bytes(slot->format);
  weft_plane_extents(array->rank, array->extents, &rows, &cols);
  const unsigned char *from = array->data;
  if (!is_block(array, slot->tensor)) from += (block.row0 * cols + block.col0) * bytes;
  for (uint64_t r = 0; r < slot->tensor->rows && slot->tensor->cols; r++)
    memcpy(slot->own + r * slot->tensor->cols * bytes, from + r * cols * bytes, slot->tensor->cols * bytes);
}

/* A parameter that another chip of this process has loaded already: the same block of the same dataset. */
static const weft_slot *find_equal(const weft_run *run, uint32_t chips, const weft_slot *slot, weft_block block) {
  if (slot->tensor->role != WEFT_ROLE_PARAM || slot->shared) return NULL;
  for (uint32_t i = 0; i < chips; i++) {
    const weft_chip *chip = &run->chips[i];
    for (uint32_t t = 0; t < chip->class->tensor_count; t++) {
      const weft_slot *other = &chip->slots[t];
      if (other->tensor->role != WEFT_ROLE_PARAM || !weft_tensor_is_read(other->tensor) || other->shared) continue;
      weft_block place = weft_tensor_block(other->tensor, chip->parameters);
      if (place.row0 == block.row0 && place.col0 == block.col0 && other->tensor->rows == slot->tensor->rows &&
          other->tensor->cols == slot->tensor->cols && strcmp(other->tensor->dataset, slot->tensor->dataset) == 0)
        return other;
    }
  }
  return NULL;
}

static weft_status load_slot(const weft_source *source, weft_run *run, uint32_t chip_index, weft_slot *slot,
                             weft_diag *diag) {
  weft_block block = weft_tensor_block(slot->tensor, run->chips[chip_index].parameters);
  /* Searching all chips for equal parameters is quadratic: the nearest few are where replicas are. */
  const weft_slot *equal = chip_index && run->chip_count <= 256 ? find_equal(run, chip_index, slot, block) : NULL;
  if (equal) {
    weft_memory_free(slot->own, slot->bytes);
    slot->own = slot->data = equal->own;
    slot->borrowed = true;
    return WEFT_OK;
  }
  if (source->arrays) {
    copy_array(weft_array_set_find(source->arrays, slot->tensor->dataset), slot, block);
    return WEFT_OK;
  }
  return weft_tensor_file_read(source->file, slot->tensor->dataset, slot->format, block.row0, slot->tensor->rows,
                               block.col0, slot->tensor->cols, slot->own, slot->tensor->cols, diag);
}

/* A dataset keeps its declared range: what is proved from it would not hold otherwise. */
static weft_status check_range(const weft_source *source, const weft_slot *slot, weft_diag *diag) {
  const weft_abi_tensor *tensor = slot->tensor;
  if (!tensor->has_range) return WEFT_OK;
  for (uint64_t i = 0; i < tensor->rows * tensor->cols; i++) {
    int64_t x = weft_load_i64(slot->format, slot->data, i);
    if (x < tensor->low || x > tensor->high)
      return weft_error_at(diag, WEFT_INVALID, (weft_place){.file = source->name}, "declare a wider range",
                           "dataset '%s' holds %lld, outside its range %lld..%lld", tensor->dataset, (long long)x,
                           (long long)tensor->low, (long long)tensor->high);
  }
  return WEFT_OK;
}

weft_status weft_source_load(const weft_source *source, weft_run *run, weft_diag *diag) {
  for (uint32_t i = 0; i < run->chip_count; i++) {
    weft_chip *chip = &run->chips[i];
    weft_status status = weft_chip_open(chip, diag);
    for (uint32_t t = 0; status == WEFT_OK && t < chip->class->tensor_count; t++) {
      if (weft_tensor_is_read(chip->slots[t].tensor) || is_offered(source, chip->slots[t].tensor))
        status = load_slot(source, run, i, &chip->slots[t], diag);
      else
        continue;
      if (status == WEFT_OK) status = check_range(source, &chip->slots[t], diag);
    }
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}
