/* weft/tensor_file.h: host arrays and their HDF5 files.
 *
 * One dataset a tensor, in the root group or below ("layers.0.wq", "block/weight"); attributes dtype, layout, role.
 * Fp16 is the 16-bit IEEE type; Bf16 and Fp8 are unsigned bits plus the dtype attribute. The file's own type is read
 * and written; every conversion is ours, a mismatch is an error. Files carry no time stamps: equal contents are equal
 * files. External links, external storage, virtual datasets and filters that are not built in are refused by name. HDF5
 * is not thread-safe: all calls of a process that touch files come from one thread (those on arrays and sets in memory
 * need not). MPI need not be initialised.
 * A dataset is seen as a plane: rank 0 is 1 x 1, rank 1 is 1 x N, more than two dimensions fold all but the last into
 * rows. Source: design 3-partition-codegen-runtime.md "HDF5"; HDF5 1.10 reference manual. */
#ifndef WEFT_TENSOR_FILE_H
#define WEFT_TENSOR_FILE_H

#include "weft/base.h"
#include "weft/format.h"

#define WEFT_MAX_RANK 8

/** A dense row-major array in memory. */
typedef struct weft_array {
  const char *name;
  weft_format dtype;
  uint32_t rank;
  uint64_t extents[WEFT_MAX_RANK];
  void *data; /**< elements * weft_format_bytes(dtype) bytes; never NULL, also without elements */
} weft_array;

/** Product of the extents (1 for rank 0); UINT64_MAX when it leaves 64 bits. */
uint64_t weft_array_elements(const weft_array *array);
/** The plane view: rows and columns as said above. */
void weft_plane_extents(uint32_t rank, const uint64_t *extents, uint64_t *rows, uint64_t *cols);

/** A set of arrays by name, owning names and data. Starts zeroed. */
typedef struct weft_array_set {
  weft_array *items;
  uint64_t count;
  uint64_t capacity;
  const char *file; /**< what weft_array_set_read filled it from, for messages; NULL: made in memory */
} weft_array_set;

/** Adds a zero-filled array; NULL when memory is exhausted or the size leaves 64 bits. A second array of the same name
 * replaces the first. The pointer is valid until the next add. */
weft_array *weft_array_set_add(weft_array_set *set, const char *name, weft_format dtype, uint32_t rank,
                               const uint64_t *extents);
weft_array *weft_array_set_find(const weft_array_set *set, const char *name);
/** Adds 1 to every element of an integer array, as `--advance NAME` does between steps. Errors: no such array, floats,
 * a format that does not hold the next number. */
weft_status weft_array_set_advance(weft_array_set *set, const char *name, weft_diag *diag);
void weft_array_set_free(weft_array_set *set);

/* ---- reading -------------------------------------------------------------------------------------------------- */

typedef struct weft_tensor_file weft_tensor_file;

typedef struct weft_dataset_info {
  const char *name; /**< owned by the file */
  weft_format dtype;
  uint32_t rank;
  uint64_t extents[WEFT_MAX_RANK];
  const char *role; /**< attribute of fixed length, or "" */
  /** NULL, or why it cannot be read ("holds 64-bit floats", "is an external link"): then only the name is meaningful,
   * dtype is WEFT_FORMAT_COUNT, and reading it is the error that says so. */
  const char *unsupported;
} weft_dataset_info;

/** Opens a file for reading and lists what is in it. Errors name the file: missing, no HDF5 file, truncated, groups
 * nested too deep or in a circle. */
weft_status weft_tensor_file_open(const char *path, weft_tensor_file **file, weft_diag *diag);
void weft_tensor_file_close(weft_tensor_file *file);
/** Datasets in name order (bytewise). */
uint64_t weft_tensor_file_count(const weft_tensor_file *file);
const weft_dataset_info *weft_tensor_file_info(const weft_tensor_file *file, uint64_t index);
/** The dataset called `name`, NULL when there is none. */
const weft_dataset_info *weft_tensor_file_find(const weft_tensor_file *file, const char *name);
/** Reads the block rows x cols at (row0, col0) of a dataset's plane into `out`, `out_stride` elements between rows. The
 * dataset must have exactly `dtype`. Only the block's bytes are read (contiguous data past HDF5, column blocks of it
 * mapped); big-endian elements are turned round. While a file is read no other process may cut it short.
 * Errors: missing dataset (lists near names), dtype or bounds mismatch, read failure: each names file and tensor. */
weft_status weft_tensor_file_read(weft_tensor_file *file, const char *name, weft_format dtype, uint64_t row0,
                                  uint64_t rows, uint64_t col0, uint64_t cols, void *out, uint64_t out_stride,
                                  weft_diag *diag);
/** Checks that the dataset exists with this type and these extents (rank and all): one message naming file and tensor.
 */
weft_status weft_tensor_file_expect(const weft_tensor_file *file, const char *name, weft_format dtype, uint32_t rank,
                                    const uint64_t *extents, weft_diag *diag);
/** Reads a whole dataset into a set; `*array` (NULL allowed) is the new item. A file too small to hold what it declares
 * is refused. */
weft_status weft_tensor_file_load(weft_tensor_file *file, const char *name, weft_array_set *set, weft_array **array,
                                  weft_diag *diag);
/** Reads a whole file into a set. Datasets that cannot be read are left out, with a warning each. */
weft_status weft_array_set_read(const char *path, weft_array_set *set, weft_diag *diag);

/* ---- writing -------------------------------------------------------------------------------------------------- */

/** A file being written beside its final name: it appears under that name only at commit, whole and synced. */
typedef struct weft_tensor_writer weft_tensor_writer;
weft_status weft_tensor_writer_create(const char *path, weft_tensor_writer **writer, weft_diag *diag);
/** Declares a dataset (contiguous). `role` may be NULL. */
weft_status weft_tensor_writer_declare(weft_tensor_writer *writer, const char *name, weft_format dtype, uint32_t rank,
                                       const uint64_t *extents, const char *role, weft_diag *diag);
/** Writes a block of a declared dataset's plane. */
weft_status weft_tensor_writer_write(weft_tensor_writer *writer, const char *name, uint64_t row0, uint64_t rows,
                                     uint64_t col0, uint64_t cols, const void *in, uint64_t in_stride, weft_diag *diag);
/** A text or integer attribute of the file itself (e.g. arithmetic version). */
weft_status weft_tensor_writer_attribute(weft_tensor_writer *writer, const char *name, int64_t value, weft_diag *diag);
/** Closes, syncs, renames over `path`. The writer is freed in every case; on an error the old file is untouched. */
weft_status weft_tensor_writer_commit(weft_tensor_writer *writer, weft_diag *diag);
/** Drops the unfinished file. NULL is allowed. */
void weft_tensor_writer_abandon(weft_tensor_writer *writer);
/** Writes a whole set (arrays in name order). */
weft_status weft_array_set_write(const char *path, const weft_array_set *set, weft_diag *diag);

/* ---- comparing ------------------------------------------------------------------------------------------------ */

typedef struct weft_difference {
  uint64_t differing;   /**< elements that are not equal (NaN equals NaN; -0 and +0 differ) */
  uint64_t first_index; /**< flat index of the first of them */
  double max_abs;
  uint64_t max_ulp; /**< UINT64_MAX where a NaN meets a number */
  double max_rel;   /**< max abs(a-b) / max abs(b) */
} weft_difference;
/** Compares two arrays of the same dtype and extents. */
weft_status weft_array_compare(const weft_array *a, const weft_array *b, weft_difference *difference, weft_diag *diag);

#endif
