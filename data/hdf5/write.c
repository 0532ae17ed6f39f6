/* Writing files. A file is made beside its final name; datasets are given their space when they are declared, and
 * blocks go straight to their place in it. What is never written reads as zeros. Commit closes, syncs and renames. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct declared {
  const char *name;
  uint64_t rows, cols, size;
  haddr_t offset; /* HADDR_UNDEF without elements */
} declared;

struct weft_tensor_writer {
  weft_arena *arena;
  const char *path;   /* as the caller said it: for messages */
  const char *target; /* what is replaced: a link's target */
  const char *folder; /* of the target */
  const char *part;   /* the unfinished file; NULL before it exists */
  hid_t id;
  int descriptor; /* our own */
  declared *datasets;
  uint64_t count, capacity;
};

/* ---- the file beside ------------------------------------------------------------------------------------------------
 */

static weft_status system_error(const weft_tensor_writer *writer, const char *action, int error, weft_diag *diag) {
  bool of_path = error == ENOENT || error == ENOTDIR || error == EACCES || error == EPERM || error == EISDIR;
  return weft_error_at(diag, of_path ? WEFT_INVALID : WEFT_UNAVAILABLE, (weft_place){.file = writer->path},
                       weft_path_hint(error, true), "cannot %s the tensor file: %s", action, strerror(error));
}

static bool name_target(weft_tensor_writer *writer, const char *path) {
  char *real = realpath(path, NULL);
  writer->path = weft_arena_printf(writer->arena, "%s", path);
  writer->target = weft_arena_printf(writer->arena, "%s", real ? real : path);
  char *copy = weft_arena_printf(writer->arena, "%s", real ? real : path);
  free(real);
  writer->folder = copy ? dirname(copy) : NULL;
  return writer->path && writer->target && writer->folder;
}

/* Makes the unfinished file and opens it for ourselves; 0 or an errno. */
static int make_part(weft_tensor_writer *writer) {
  for (int attempt = 0; attempt < 1000; attempt++) {
    char *name = weft_arena_printf(writer->arena, "%s/.weft-%ld-%d.part", writer->folder, (long)getpid(), attempt);
    if (!name) return ENOMEM;
    writer->descriptor = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (writer->descriptor < 0 && errno == EEXIST) continue;
    if (writer->descriptor < 0) return errno;
    writer->part = name;
    return 0;
  }
  return EEXIST;
}

static weft_status create_hdf5(weft_tensor_writer *writer, weft_diag *diag) {
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_sec2(access);
  H5Pset_file_locking(access, false, true);
  writer->id = H5Fcreate(writer->part, H5F_ACC_TRUNC, H5P_DEFAULT, access);
  weft_status status = WEFT_OK;
  if (writer->id < 0)
    status = weft_hdf5_error(diag, WEFT_UNAVAILABLE, writer->path, NULL, NULL, "cannot create the tensor file");
  H5Pclose(access);
  return status;
}

/* Closes a file that is not to be kept. HDF5 1.10 cannot close a file that it cannot write, as on a full disk, and then
 * crashes at exit: what it still has to write goes into memory instead. */
static void close_unwanted(hid_t id) {
  int *descriptor = NULL;
  int memory = memfd_create("weft", MFD_CLOEXEC);
  if (memory >= 0 && H5Fget_vfd_handle(id, H5P_DEFAULT, (void **)&descriptor) >= 0 && descriptor)
    dup3(memory, *descriptor, O_CLOEXEC);
  if (memory >= 0) close(memory);
  H5Fclose(id);
}

/* Closes what is open, removes the unfinished file and frees the writer. */
static void drop(weft_tensor_writer *writer) {
  if (writer->id >= 0) close_unwanted(writer->id);
  if (writer->descriptor >= 0) close(writer->descriptor);
  if (writer->part) unlink(writer->part);
  weft_arena_free(writer->arena);
  free(writer);
}

static weft_status prepare(weft_tensor_writer *writer, const char *path, weft_diag *diag) {
  struct stat old;
  writer->arena = weft_arena_new();
  if (!writer->arena || !name_target(writer, path)) return weft_error_memory(diag);
  bool exists = stat(path, &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) return system_error(writer, "write", EISDIR, diag);
  if (exists && !S_ISREG(old.st_mode))
    return weft_error_at(diag, WEFT_INVALID, (weft_place){.file = writer->path}, "tensor files are ordinary files",
                         "cannot write the tensor file: it is a device or a pipe");
  int error = make_part(writer);
  if (!error && exists && fchmod(writer->descriptor, old.st_mode & 07777)) error = errno;
  return error ? system_error(writer, "create", error, diag) : create_hdf5(writer, diag);
}

weft_status weft_tensor_writer_create(const char *path, weft_tensor_writer **result, weft_diag *diag) {
  *result = NULL;
  weft_tensor_writer *writer = calloc(1, sizeof *writer);
  if (!writer) return weft_error_memory(diag);
  writer->id = H5I_INVALID_HID;
  writer->descriptor = -1;
  weft_hdf5_guard guard = weft_hdf5_enter();
  weft_status status = prepare(writer, path, diag);
  if (status == WEFT_OK)
    *result = writer;
  else
    drop(writer);
  weft_hdf5_leave(guard);
  return status;
}

/* ---- datasets -------------------------------------------------------------------------------------------------------
 */

/* Where `name` is among the declared, or would be put: they stand in name order. */
static uint64_t position(const weft_tensor_writer *writer, const char *name) {
  uint64_t low = 0, high = writer->count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (strcmp(writer->datasets[middle].name, name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static const declared *find_declared(const weft_tensor_writer *writer, const char *name) {
  uint64_t at = position(writer, name);
  bool found = at < writer->count && strcmp(writer->datasets[at].name, name) == 0;
  return found ? &writer->datasets[at] : NULL;
}

static bool remember(weft_tensor_writer *writer, declared dataset) {
  if (!weft_arena_grow(writer->arena, &writer->datasets, writer->count, &writer->capacity, sizeof dataset))
    return false;
  uint64_t at = position(writer, dataset.name);
  memmove(&writer->datasets[at + 1], &writer->datasets[at], (writer->count - at) * sizeof dataset);
  writer->datasets[at] = dataset;
  writer->count++;
  return true;
}

static bool put_text(hid_t object, const char *name, const char *text) {
  hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
  bool ok = H5Tset_size(type, weft_max_u64(strlen(text), 1)) >= 0 && H5Tset_strpad(type, H5T_STR_NULLPAD) >= 0;
  hid_t attribute = ok ? H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT) : H5I_INVALID_HID;
  ok = attribute >= 0 && H5Awrite(attribute, type, text) >= 0;
  if (attribute >= 0) H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
  return ok;
}

/* A contiguous dataset with its space taken, without time stamps and without a fill. */
static hid_t create_dataset(hid_t file, const char *name, weft_format dtype, uint32_t rank, const uint64_t *extents) {
  hsize_t sizes[WEFT_MAX_RANK];
  for (uint32_t i = 0; i < rank; i++) sizes[i] = extents[i];
  hid_t space = rank ? H5Screate_simple((int)rank, sizes, NULL) : H5Screate(H5S_SCALAR);
  hid_t type = weft_hdf5_type_of_format(dtype);
  hid_t creation = H5Pcreate(H5P_DATASET_CREATE), link = H5Pcreate(H5P_LINK_CREATE);
  bool ok = space >= 0 && type >= 0 && H5Pset_obj_track_times(creation, false) >= 0 &&
            H5Pset_layout(creation, H5D_CONTIGUOUS) >= 0 && H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY) >= 0 &&
            H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER) >= 0 && H5Pset_create_intermediate_group(link, 1) >= 0 &&
            H5Pset_char_encoding(link, H5T_CSET_UTF8) >= 0;
  hid_t dataset = ok ? H5Dcreate2(file, name, type, space, link, creation, H5P_DEFAULT) : H5I_INVALID_HID;
  H5Pclose(link);
  H5Pclose(creation);
  if (type >= 0) H5Tclose(type);
  if (space >= 0) H5Sclose(space);
  return dataset;
}

static weft_status check_declaration(const weft_tensor_writer *writer, const char *name, uint32_t rank,
                                     const uint64_t *extents, weft_format dtype, weft_diag *diag) {
  weft_array shape = {.rank = rank};
  uint64_t bytes;
  const char *fault = weft_dataset_name_fault(name);
  if (fault) return weft_hdf5_error(diag, WEFT_INVALID, writer->path, name, fault, "this is no name for a dataset");
  if (find_declared(writer, name))
    return weft_hdf5_error(diag, WEFT_INVALID, writer->path, name, "give every tensor a name of its own",
                           "the file would hold it twice");
  if (rank > WEFT_MAX_RANK)
    return weft_hdf5_error(diag, WEFT_INVALID, writer->path, name, "fold some dimensions",
                           "it has %" PRIu32 " dimensions, of which weft writes at most %d", rank, WEFT_MAX_RANK);
  if (rank) memcpy(shape.extents, extents, rank * sizeof *extents);
  uint64_t elements = weft_array_elements(&shape);
  if (elements == UINT64_MAX || weft_mul_overflow(elements, weft_format_bytes(dtype), &bytes) || bytes > INT64_MAX)
    return weft_hdf5_error(diag, WEFT_INVALID, writer->path, name, NULL, "it has more bytes than a file can hold");
  return WEFT_OK;
}

static weft_status declare(weft_tensor_writer *writer, const char *name, weft_format dtype, uint32_t rank,
                           const uint64_t *extents, const char *role, weft_diag *diag) {
  weft_status status = check_declaration(writer, name, rank, extents, dtype, diag);
  if (status != WEFT_OK) return status;
  declared entry = {.name = weft_arena_printf(writer->arena, "%s", name), .size = weft_format_bytes(dtype)};
  weft_plane_extents(rank, extents, &entry.rows, &entry.cols);
  hid_t dataset = create_dataset(writer->id, name, dtype, rank, extents);
  bool ok = dataset >= 0 && put_text(dataset, "dtype", weft_format_name(dtype)) &&
            put_text(dataset, "layout", "RowMajor") && (!role || put_text(dataset, "role", role));
  if (!ok) status = weft_hdf5_error(diag, WEFT_UNAVAILABLE, writer->path, name, NULL, "cannot create the dataset");
  entry.offset = ok ? H5Dget_offset(dataset) : HADDR_UNDEF;
  if (dataset >= 0) H5Dclose(dataset);
  if (ok && (!entry.name || !remember(writer, entry))) status = weft_error_memory(diag);
  return status;
}

weft_status weft_tensor_writer_declare(weft_tensor_writer *writer, const char *name, weft_format dtype, uint32_t rank,
                                       const uint64_t *extents, const char *role, weft_diag *diag) {
  weft_hdf5_guard guard = weft_hdf5_enter();
  weft_status status = declare(writer, name, dtype, rank, extents, role, diag);
  weft_hdf5_leave(guard);
  return status;
}

/* ---- data -----------------------------------------------------------------------------------------------------------
 */

/* 0 or an errno. */
static int write_run(int descriptor, const char *bytes, uint64_t length, uint64_t offset) {
  while (length) {
    ssize_t put = pwrite(descriptor, bytes, weft_min_u64(length, 1 << 30), (off_t)offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    bytes += put;
    offset += (uint64_t)put;
    length -= (uint64_t)put;
  }
  return 0;
}

static weft_status undeclared(const weft_tensor_writer *writer, const char *name, weft_diag *diag) {
  return weft_hdf5_error(diag, WEFT_INVALID, writer->path, name, "declare it before writing",
                         "the file being written has no such dataset");
}

weft_status weft_tensor_writer_write(weft_tensor_writer *writer, const char *name, uint64_t row0, uint64_t rows,
                                     uint64_t col0, uint64_t cols, const void *in, uint64_t in_stride,
                                     weft_diag *diag) {
  const declared *dataset = find_declared(writer, name);
  if (!dataset) return undeclared(writer, name, diag);
  bool inside = rows <= dataset->rows && row0 <= dataset->rows - rows && cols <= dataset->cols &&
                col0 <= dataset->cols - cols && (rows < 2 || in_stride >= cols);
  if (!inside)
    return weft_error_at(diag, WEFT_INVALID, (weft_place){.file = writer->path}, NULL,
                         "tensor `%s`: rows %" PRIu64 " to %" PRIu64 " and columns %" PRIu64 " to %" PRIu64
                         " are not all inside its %" PRIu64 " x %" PRIu64 " elements",
                         name, row0, row0 + rows, col0, col0 + cols, dataset->rows, dataset->cols);
  if (!rows || !cols) return WEFT_OK;
  uint64_t size = dataset->size, run = cols * size, step = dataset->cols * size;
  uint64_t offset = dataset->offset + row0 * step + col0 * size;
  int error = 0;
  if (run == step && (in_stride == cols || rows == 1)) {
    error = write_run(writer->descriptor, in, rows * run, offset);
  } else {
    for (uint64_t row = 0; row < rows && !error; row++)
      error = write_run(writer->descriptor, (const char *)in + row * in_stride * size, run, offset + row * step);
  }
  return error ? system_error(writer, "write", error, diag) : WEFT_OK;
}

weft_status weft_tensor_writer_attribute(weft_tensor_writer *writer, const char *name, int64_t value, weft_diag *diag) {
  weft_hdf5_guard guard = weft_hdf5_enter();
  hid_t space = H5Screate(H5S_SCALAR);
  hid_t attribute = H5Acreate2(writer->id, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT);
  bool ok = attribute >= 0 && H5Awrite(attribute, H5T_NATIVE_INT64, &value) >= 0;
  weft_status status = WEFT_OK;
  if (!ok)
    status = weft_hdf5_error(diag, WEFT_UNAVAILABLE, writer->path, NULL, NULL, "cannot write attribute `%s`", name);
  if (attribute >= 0) H5Aclose(attribute);
  H5Sclose(space);
  weft_hdf5_leave(guard);
  return status;
}

/* ---- the end --------------------------------------------------------------------------------------------------------
 */

/* Not every file system can sync a folder, which is no error. */
static void sync_folder(const char *folder) {
  int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  (void)!fsync(descriptor);
  close(descriptor);
}

static weft_status finish(weft_tensor_writer *writer, weft_diag *diag) {
  bool written = H5Fflush(writer->id, H5F_SCOPE_LOCAL) >= 0;
  if (written) {
    written = H5Fclose(writer->id) >= 0;
    writer->id = H5I_INVALID_HID;
  }
  if (!written)
    return weft_hdf5_error(diag, WEFT_UNAVAILABLE, writer->path, NULL, "check the disk",
                           "cannot finish the tensor file");
  if (fsync(writer->descriptor) && errno != EINVAL) return system_error(writer, "write", errno, diag);
  if (rename(writer->part, writer->target)) return system_error(writer, "replace", errno, diag);
  writer->part = NULL;
  sync_folder(writer->folder);
  return WEFT_OK;
}

weft_status weft_tensor_writer_commit(weft_tensor_writer *writer, weft_diag *diag) {
  weft_hdf5_guard guard = weft_hdf5_enter();
  weft_status status = finish(writer, diag);
  drop(writer);
  weft_hdf5_leave(guard);
  return status;
}

void weft_tensor_writer_abandon(weft_tensor_writer *writer) {
  if (!writer) return;
  weft_hdf5_guard guard = weft_hdf5_enter();
  drop(writer);
  weft_hdf5_leave(guard);
}
