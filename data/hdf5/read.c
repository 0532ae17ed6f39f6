/* Reading files. The bytes of contiguous data are read past HDF5, at the dataset's offset: with pread, which moves them
 * once, or, where that would be a call for every few bytes, from a mapping. Everything else is read by
 * hyperslab in the file's own type. No conversion is HDF5's. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening --------------------------------------------------------------------------------------------------------
 */

/* What can be said of a path without HDF5; opening a pipe would wait for its writer. */
static weft_status check_path(const char *path, weft_diag *diag) {
  struct stat status;
  const weft_place place = {.file = path};
  if (stat(path, &status) != 0)
    return weft_error_at(diag, WEFT_INVALID, place, weft_path_hint(errno, false), "cannot open the tensor file: %s",
                         strerror(errno));
  if (!S_ISREG(status.st_mode))
    return weft_error_at(diag, WEFT_INVALID, place,
                         S_ISDIR(status.st_mode) ? weft_path_hint(EISDIR, false) : "tensor files are ordinary files",
                         "cannot open the tensor file: %s",
                         S_ISDIR(status.st_mode) ? strerror(EISDIR) : "it is a device or a pipe");
  if (access(path, R_OK) != 0)
    return weft_error_at(diag, WEFT_INVALID, place, weft_path_hint(errno, false), "cannot open the tensor file: %s",
                         strerror(errno));
  return WEFT_OK;
}

static weft_status open_hdf5(weft_tensor_file *file, weft_diag *diag) {
  const char *hint = "tensor files are HDF5 files, as h5py and weft tensor write them";
  htri_t is_hdf5 = H5Fis_hdf5(file->path);
  if (is_hdf5 <= 0) return weft_hdf5_error(diag, WEFT_INVALID, file->path, NULL, hint, "this is no HDF5 file");
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  /* Files appear by renaming and are never changed in place: there is nothing to lock, and some cluster file systems
   * cannot. */
  H5Pset_fapl_sec2(access);
  H5Pset_file_locking(access, false, true);
  file->id = H5Fopen(file->path, H5F_ACC_RDONLY, access);
  weft_status status = WEFT_OK;
  if (file->id < 0)
    status = weft_hdf5_error(diag, WEFT_INVALID, file->path, NULL,
                             "the file is truncated or damaged; write it again or copy it again",
                             "cannot open the tensor file");
  H5Pclose(access);
  if (status != WEFT_OK) return status;
  int *descriptor = NULL;
  if (H5Fget_vfd_handle(file->id, H5P_DEFAULT, (void **)&descriptor) < 0 || !descriptor)
    return weft_hdf5_error(diag, WEFT_UNAVAILABLE, file->path, NULL, NULL, "HDF5 gives no file descriptor");
  file->descriptor = *descriptor;
  return WEFT_OK;
}

weft_status weft_tensor_file_open(const char *path, weft_tensor_file **result, weft_diag *diag) {
  *result = NULL;
  weft_status status = check_path(path, diag);
  if (status != WEFT_OK) return status;
  weft_tensor_file *file = calloc(1, sizeof *file);
  if (!file) return weft_error_memory(diag);
  file->id = H5I_INVALID_HID;
  file->arena = weft_arena_new();
  file->path = file->arena ? weft_arena_printf(file->arena, "%s", path) : NULL;
  if (!file->path) status = weft_error_memory(diag);
  weft_hdf5_guard guard = weft_hdf5_enter();
  if (status == WEFT_OK) status = open_hdf5(file, diag);
  if (status == WEFT_OK) status = weft_hdf5_list(file, diag);
  weft_hdf5_leave(guard);
  if (status == WEFT_OK)
    *result = file;
  else
    weft_tensor_file_close(file);
  return status;
}

void weft_tensor_file_close(weft_tensor_file *file) {
  if (!file) return;
  weft_hdf5_guard guard = weft_hdf5_enter();
  if (file->mapped) munmap(file->mapped, file->mapped_bytes);
  if (file->id >= 0) H5Fclose(file->id);
  weft_hdf5_leave(guard);
  weft_arena_free(file->arena);
  free(file);
}

uint64_t weft_tensor_file_count(const weft_tensor_file *file) { return file->count; }

const weft_dataset_info *weft_tensor_file_info(const weft_tensor_file *file, uint64_t index) {
  return index < file->count ? &file->entries[index].info : NULL;
}

const weft_dataset_info *weft_tensor_file_find(const weft_tensor_file *file, const char *name) {
  const weft_hdf5_entry *entry = weft_hdf5_find(file, name);
  return entry ? &entry->info : NULL;
}

/* ---- checking -------------------------------------------------------------------------------------------------------
 */

static weft_status check_readable(const weft_tensor_file *file, const char *name, weft_diag *diag) {
  const weft_hdf5_entry *entry = weft_hdf5_find(file, name);
  if (!entry) return weft_hdf5_missing(file, name, diag);
  if (!entry->info.unsupported) return WEFT_OK;
  const char *why = entry->info.unsupported;
  const char *hint = strncmp(why, "holds", 5) == 0
                         ? "write it as int8 to int64, float16 or float32, or as the bits of Bf16 or Fp8"
                         : "copy the data into an ordinary dataset of this file";
  return weft_hdf5_error(diag, WEFT_INVALID, file->path, name, hint, "weft cannot read it: it %s", why);
}

static weft_status check_dtype(const weft_tensor_file *file, const weft_dataset_info *info, weft_format dtype,
                               weft_diag *diag) {
  if (info->dtype == dtype) return WEFT_OK;
  return weft_hdf5_error(diag, WEFT_INVALID, file->path, info->name,
                         "nothing is converted on reading; write the dataset in the type that is wanted",
                         "it holds %s, wanted is %s", weft_format_name(info->dtype), weft_format_name(dtype));
}

static weft_status expect(const weft_tensor_file *file, const char *name, weft_format dtype, uint32_t rank,
                          const uint64_t *extents, weft_diag *diag) {
  weft_status status = check_readable(file, name, diag);
  if (status != WEFT_OK) return status;
  const weft_dataset_info *info = weft_tensor_file_find(file, name);
  bool same_shape = info->rank == rank && (!rank || memcmp(info->extents, extents, rank * sizeof *extents) == 0);
  if (same_shape) return check_dtype(file, info, dtype, diag);
  weft_text is = {0}, wanted = {0};
  weft_hdf5_put_shape(&is, info->dtype, info->rank, info->extents);
  weft_hdf5_put_shape(&wanted, dtype, rank, extents);
  status = weft_hdf5_error(diag, WEFT_INVALID, file->path, name, "weft tensor slice cuts rows out of a dataset",
                           "it is %s, wanted is %s", is.data ? is.data : "?", wanted.data ? wanted.data : "?");
  weft_text_free(&is);
  weft_text_free(&wanted);
  return status;
}

weft_status weft_tensor_file_expect(const weft_tensor_file *file, const char *name, weft_format dtype, uint32_t rank,
                                    const uint64_t *extents, weft_diag *diag) {
  weft_hdf5_guard guard = weft_hdf5_enter();
  weft_status status = expect(file, name, dtype, rank, extents, diag);
  weft_hdf5_leave(guard);
  return status;
}

/* ---- reading --------------------------------------------------------------------------------------------------------
 */

/* A block of a dataset's plane on its way into memory. */
typedef struct block {
  weft_tensor_file *file;
  const weft_dataset_info *info;
  bool again;    /* another column block of the dataset was read before */
  uint64_t size; /* bytes of an element */
  uint64_t plane_cols;
  uint64_t row0, rows, col0, cols;
  char *out;
  uint64_t out_stride; /* elements */
  weft_diag *diag;
} block;

static weft_status check_block(const block *b) {
  uint64_t plane_rows, plane_cols;
  weft_plane_extents(b->info->rank, b->info->extents, &plane_rows, &plane_cols);
  bool inside = b->rows <= plane_rows && b->row0 <= plane_rows - b->rows && b->cols <= plane_cols &&
                b->col0 <= plane_cols - b->cols;
  if (inside && (b->rows < 2 || b->out_stride >= b->cols)) return WEFT_OK;
  return weft_hdf5_error(b->diag, WEFT_INVALID, b->file->path, b->info->name, "check the shape of the dataset",
                         "rows %" PRIu64 " to %" PRIu64 " and columns %" PRIu64 " to %" PRIu64
                         " are not all inside its %" PRIu64 " x %" PRIu64 " elements",
                         b->row0, b->row0 + b->rows, b->col0, b->col0 + b->cols, plane_rows, plane_cols);
}

static weft_status failed_read(const block *b, const char *reason) {
  return weft_hdf5_error(b->diag, WEFT_UNAVAILABLE, b->file->path, b->info->name, "check the disk and the file",
                         "cannot read it: %s", reason);
}

static weft_status read_run(const block *b, char *out, uint64_t bytes, uint64_t offset) {
  while (bytes) {
    ssize_t got = pread(b->file->descriptor, out, weft_min_u64(bytes, 1 << 30), (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed_read(b, strerror(errno));
    if (got == 0) return failed_read(b, "the file ends before its data");
    out += got;
    offset += (uint64_t)got;
    bytes -= (uint64_t)got;
  }
  return WEFT_OK;
}

static weft_status read_rows(const block *b, uint64_t offset) {
  uint64_t run = b->cols * b->size, step = b->plane_cols * b->size;
  if (b->cols == b->plane_cols && (b->out_stride == b->cols || b->rows == 1))
    return read_run(b, b->out, b->rows * run, offset);
  weft_status status = WEFT_OK;
  for (uint64_t row = 0; row < b->rows && status == WEFT_OK; row++)
    status = read_run(b, b->out + row * b->out_stride * b->size, run, offset + row * step);
  return status;
}

/* The file in memory as far as byte `end`, or NULL. It stays there until the file is closed: touching a page for the
 * first time costs more than reading it, and the other column blocks of a dataset lie in the same pages. */
static const char *map_file(weft_tensor_file *file, uint64_t end) {
  if (file->mapped_bytes >= end) return file->mapped;
  if (file->mapped) munmap(file->mapped, file->mapped_bytes);
  void *mapped = mmap(NULL, end, PROT_READ, MAP_SHARED, file->descriptor, 0);
  file->mapped = mapped == MAP_FAILED ? NULL : mapped;
  file->mapped_bytes = file->mapped ? end : 0;
  return file->mapped;
}

/* `offset` is that of the block's first element. */
static weft_status read_columns(const block *b, uint64_t offset, uint64_t file_bytes) {
  uint64_t run = b->cols * b->size, step = b->plane_cols * b->size;
  /* One call a row, or one fault a page: rows of a page and more are cheaper to read, unless the pages are used again.
   */
  bool short_rows = step < (uint64_t)sysconf(_SC_PAGESIZE);
  const char *mapped = short_rows || b->again ? map_file(b->file, file_bytes) : NULL;
  if (!mapped) return read_rows(b, offset);
  const char *from = mapped + offset;
  for (uint64_t row = 0; row < b->rows; row++) memcpy(b->out + row * b->out_stride * b->size, from + row * step, run);
  return WEFT_OK;
}

/* Data at `start` in the file. Its place and size come from the file: both are checked against the file's length. */
static weft_status read_contiguous(const block *b, uint64_t start) {
  struct stat status;
  weft_array shape = {.rank = b->info->rank};
  memcpy(shape.extents, b->info->extents, sizeof shape.extents);
  uint64_t end, bytes = weft_array_elements(&shape) * b->size;
  if (fstat(b->file->descriptor, &status) != 0) return failed_read(b, strerror(errno));
  if (weft_add_overflow(start, bytes, &end) || end > (uint64_t)status.st_size)
    return weft_hdf5_error(b->diag, WEFT_INVALID, b->file->path, b->info->name,
                           "the file is truncated or damaged; write it again or copy it again",
                           "its data ends at byte %" PRIu64 " of a file of %" PRIu64, end, (uint64_t)status.st_size);
  uint64_t offset = start + (b->row0 * b->plane_cols + b->col0) * b->size;
  bool whole_rows = b->cols == b->plane_cols || b->rows == 1;
  return whole_rows ? read_rows(b, offset) : read_columns(b, offset, (uint64_t)status.st_size);
}

/* Reads by hyperslab `rows` rows of the plane whose leading coordinates are the box `start` of extents `count`; `row`
 * is the first of them in the block. */
static weft_status read_box(const block *b, hid_t dataset, hid_t type, const hsize_t *start, const hsize_t *count,
                            uint64_t row, uint64_t rows) {
  hsize_t memory_extents[2] = {rows, b->out_stride}, memory_start[2] = {0, 0}, memory_count[2] = {rows, b->cols};
  hid_t file_space = H5Dget_space(dataset), memory_space = H5Screate_simple(2, memory_extents, NULL);
  bool ok = file_space >= 0 && memory_space >= 0;
  if (b->info->rank) ok = ok && H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0;
  ok = ok && H5Sselect_hyperslab(memory_space, H5S_SELECT_SET, memory_start, NULL, memory_count, NULL) >= 0;
  char *out = b->out + row * b->out_stride * b->size;
  ok = ok && H5Dread(dataset, type, memory_space, file_space, H5P_DEFAULT, out) >= 0;
  weft_status status = WEFT_OK;
  if (!ok)
    status = weft_hdf5_error(b->diag, WEFT_INVALID, b->file->path, b->info->name,
                             "the file is damaged; write it again or copy it again", "cannot read its data");
  if (file_space >= 0) H5Sclose(file_space);
  if (memory_space >= 0) H5Sclose(memory_space);
  return status;
}

/* The rows first .. first + rows - 1 of the plane are a range of the leading dimensions in row-major order. It is read
 * as the boxes it is made of: part of a slice, whole slices, part of a slice, dimension by dimension. */
static weft_status read_range(const block *b, hid_t dataset, hid_t type, uint32_t dimension, hsize_t *start,
                              hsize_t *count, uint64_t first, uint64_t rows, uint64_t row) {
  uint32_t leading = b->info->rank ? b->info->rank - 1 : 0;
  if (dimension == leading) return read_box(b, dataset, type, start, count, row, rows);
  uint64_t inner = 1;
  for (uint32_t i = dimension + 1; i < leading; i++) inner *= b->info->extents[i];
  weft_status status = WEFT_OK;
  while (rows && status == WEFT_OK) {
    uint64_t at = first / inner, skipped = first % inner, taken = weft_min_u64(inner - skipped, rows);
    start[dimension] = at;
    count[dimension] = 1;
    if (skipped == 0 && rows >= inner) {
      count[dimension] = rows / inner;
      taken = count[dimension] * inner;
      for (uint32_t i = dimension + 1; i < leading; i++) {
        start[i] = 0;
        count[i] = b->info->extents[i];
      }
      status = read_box(b, dataset, type, start, count, row, taken);
    } else {
      status = read_range(b, dataset, type, dimension + 1, start, count, skipped, taken, row);
    }
    first += taken;
    row += taken;
    rows -= taken;
  }
  return status;
}

static weft_status read_hyperslab(const block *b, hid_t dataset) {
  hsize_t start[WEFT_MAX_RANK] = {0}, count[WEFT_MAX_RANK] = {0};
  hid_t type = H5Dget_type(dataset);
  if (b->info->rank) {
    start[b->info->rank - 1] = b->col0;
    count[b->info->rank - 1] = b->cols;
  }
  weft_status status = read_range(b, dataset, type, 0, start, count, b->row0, b->rows, 0);
  if (type >= 0) H5Tclose(type);
  return status;
}

static weft_status read_block(const block *b) {
  hid_t dataset = H5Dopen2(b->file->id, b->info->name, H5P_DEFAULT);
  if (dataset < 0)
    return weft_hdf5_error(b->diag, WEFT_INVALID, b->file->path, b->info->name, NULL, "cannot open the dataset");
  hid_t properties = H5Dget_create_plist(dataset);
  bool contiguous = properties >= 0 && H5Pget_layout(properties) == H5D_CONTIGUOUS;
  if (properties >= 0) H5Pclose(properties);
  H5D_space_status_t space = H5D_SPACE_STATUS_NOT_ALLOCATED;
  bool stored = contiguous && H5Dget_space_status(dataset, &space) >= 0 && space == H5D_SPACE_STATUS_ALLOCATED;
  haddr_t offset = stored ? H5Dget_offset(dataset) : HADDR_UNDEF;
  H5Eclear2(H5E_DEFAULT);
  weft_status status = offset != HADDR_UNDEF ? read_contiguous(b, offset) : read_hyperslab(b, dataset);
  H5Dclose(dataset);
  return status;
}

static void turn_round(char *bytes, uint64_t size, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    if (size == 2) {
      uint16_t *element = (uint16_t *)(void *)bytes + i;
      *element = __builtin_bswap16(*element);
    } else if (size == 4) {
      uint32_t *element = (uint32_t *)(void *)bytes + i;
      *element = __builtin_bswap32(*element);
    } else if (size == 8) {
      uint64_t *element = (uint64_t *)(void *)bytes + i;
      *element = __builtin_bswap64(*element);
    }
  }
}

static weft_status read_checked(weft_tensor_file *file, weft_hdf5_entry *entry, block b) {
  weft_plane_extents(entry->info.rank, entry->info.extents, &(uint64_t){0}, &b.plane_cols);
  if (b.rows < 2) b.out_stride = b.cols;
  b.file = file;
  b.info = &entry->info;
  b.size = weft_format_bytes(entry->info.dtype);
  b.again = entry->columns_read;
  entry->columns_read |= b.cols < b.plane_cols;
  weft_status status = check_block(&b);
  if (status != WEFT_OK || !b.rows || !b.cols) return status;
  status = read_block(&b);
  for (uint64_t row = 0; entry->swapped && row < b.rows; row++)
    turn_round(b.out + row * b.out_stride * b.size, b.size, b.cols);
  return status;
}

weft_status weft_tensor_file_read(weft_tensor_file *file, const char *name, weft_format dtype, uint64_t row0,
                                  uint64_t rows, uint64_t col0, uint64_t cols, void *out, uint64_t out_stride,
                                  weft_diag *diag) {
  weft_hdf5_guard guard = weft_hdf5_enter();
  weft_status status = check_readable(file, name, diag);
  weft_hdf5_entry *entry = status == WEFT_OK ? weft_hdf5_find(file, name) : NULL;
  if (entry) status = check_dtype(file, &entry->info, dtype, diag);
  const block wanted = {
      .row0 = row0, .rows = rows, .col0 = col0, .cols = cols, .out = out, .out_stride = out_stride, .diag = diag};
  if (status == WEFT_OK) status = read_checked(file, entry, wanted);
  weft_hdf5_leave(guard);
  return status;
}
