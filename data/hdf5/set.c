/* Whole files as sets of arrays. */
#include "internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_plausible(const weft_dataset_info *info, uint64_t file_bytes) {
  weft_array shape = {.rank = info->rank};
  memcpy(shape.extents, info->extents, sizeof shape.extents);
  return weft_array_elements(&shape) * weft_format_bytes(info->dtype) <= weft_hdf5_most_bytes(file_bytes);
}

weft_status weft_tensor_file_load(weft_tensor_file *file, const char *name, weft_array_set *set, weft_array **result,
                                  weft_diag *diag) {
  struct stat information;
  const weft_dataset_info *info = weft_tensor_file_find(file, name);
  /* Reading nothing says what is wrong. */
  if (!info || info->unsupported) return weft_tensor_file_read(file, name, WEFT_FP32, 0, 0, 0, 0, NULL, 0, diag);
  uint64_t file_bytes = fstat(file->descriptor, &information) == 0 ? (uint64_t)information.st_size : UINT64_MAX;
  if (!is_plausible(info, file_bytes))
    return weft_hdf5_error(diag, WEFT_INVALID, file->path, info->name, "read a block of it, or write it out in full",
                           "it declares far more elements than a file of %" PRIu64 " bytes can hold", file_bytes);
  weft_array *array = weft_array_set_add(set, info->name, info->dtype, info->rank, info->extents);
  if (!array) return weft_error_memory(diag);
  if (result) *result = array;
  uint64_t rows, cols;
  weft_plane_extents(info->rank, info->extents, &rows, &cols);
  return weft_tensor_file_read(file, info->name, info->dtype, 0, rows, 0, cols, array->data, cols, diag);
}

static void leave_out(const weft_tensor_file *file, const weft_dataset_info *info, weft_diag *diag) {
  weft_diag_add(diag, WEFT_WARNING, (weft_place){.file = file->path}, NULL, "tensor `%s` is left out: it %s",
                info->name, info->unsupported);
}

weft_status weft_array_set_read(const char *path, weft_array_set *set, weft_diag *diag) {
  weft_tensor_file *file;
  weft_status status = weft_tensor_file_open(path, &file, diag);
  if (status != WEFT_OK) return status;
  for (uint64_t i = 0; i < file->count && status == WEFT_OK; i++) {
    const weft_dataset_info *info = &file->entries[i].info;
    if (info->unsupported)
      leave_out(file, info, diag);
    else
      status = weft_tensor_file_load(file, info->name, set, NULL, diag);
  }
  weft_tensor_file_close(file);
  free((char *)set->file);
  set->file = strdup(path);
  return status == WEFT_OK && !set->file ? weft_error_memory(diag) : status;
}

static weft_status write_item(weft_tensor_writer *writer, const weft_array *array, weft_diag *diag) {
  uint64_t rows, cols;
  weft_plane_extents(array->rank, array->extents, &rows, &cols);
  return weft_tensor_writer_write(writer, array->name, 0, rows, 0, cols, array->data, cols, diag);
}

weft_status weft_array_set_write(const char *path, const weft_array_set *set, weft_diag *diag) {
  weft_tensor_writer *writer;
  weft_status status = weft_tensor_writer_create(path, &writer, diag);
  if (status != WEFT_OK) return status;
  for (uint64_t i = 0; i < set->count && status == WEFT_OK; i++) {
    const weft_array *array = &set->items[i];
    status = weft_tensor_writer_declare(writer, array->name, array->dtype, array->rank, array->extents, NULL, diag);
  }
  for (uint64_t i = 0; i < set->count && status == WEFT_OK; i++) status = write_item(writer, &set->items[i], diag);
  if (status == WEFT_OK) return weft_tensor_writer_commit(writer, diag);
  weft_tensor_writer_abandon(writer);
  return status;
}
