/* Shared by the files of data/hdf5 only. */
#ifndef WEFT_DATA_HDF5_INTERNAL_H
#define WEFT_DATA_HDF5_INTERNAL_H

#include "weft/tensor_file.h"

#include <hdf5.h>

/** What a public function changes of HDF5's global state and puts back at its end: errors are not printed, filters are
 * not loaded from plug-ins. */
typedef struct weft_hdf5_guard {
  H5E_auto2_t print;
  void *print_data;
  unsigned plugins;
} weft_hdf5_guard;
weft_hdf5_guard weft_hdf5_enter(void);
void weft_hdf5_leave(weft_hdf5_guard guard);

/** Adds an error about a file and, when `tensor` is not NULL, a tensor of it, followed by the innermost message of
 * HDF5's error stack when that has one; returns `status`. */
weft_status weft_hdf5_error(weft_diag *diag, weft_status status, const char *path, const char *tensor, const char *hint,
                            const char *format, ...) WEFT_PRINTF(6, 7);
/** Appends the innermost message of HDF5's error stack, without the addresses and times in it; nothing when it is
 * empty. */
void weft_hdf5_innermost(weft_text *text);

/** Whether HDF5 elements of `type` are those of a format. NULL: yes, and then *format and *swapped (big-endian) are
 * set; else what is wrong, as `holds text`. `attribute` is the dataset's attribute dtype, "" when it has none. */
const char *weft_hdf5_format_of_type(hid_t type, const char *attribute, weft_format *format, bool *swapped);
/** A new HDF5 type for files; the caller closes it. */
hid_t weft_hdf5_type_of_format(weft_format format);

/** A dataset found in a file. */
typedef struct weft_hdf5_entry {
  weft_dataset_info info;
  bool swapped;      /**< elements are big-endian */
  bool columns_read; /**< a column block of it was read before */
} weft_hdf5_entry;

struct weft_tensor_file {
  weft_arena *arena;
  const char *path;
  hid_t id;
  int descriptor; /**< HDF5's own; closed with the file */
  char *mapped;   /**< its first mapped_bytes bytes, once a column block was read; NULL before */
  uint64_t mapped_bytes;
  weft_hdf5_entry *entries;
  uint64_t count, capacity;
};

/** A file of a few bytes can declare any size. What is not written out in full may have at most this many bytes for
 * `stored` bytes in the file: deflate, the best of the built-in compressors, makes 1032 of one, and some fill is
 * allowed. */
uint64_t weft_hdf5_most_bytes(uint64_t stored);
/** Fills the entries of an open file, in name order. */
weft_status weft_hdf5_list(weft_tensor_file *file, weft_diag *diag);
/** The entry called `name`, or NULL. */
weft_hdf5_entry *weft_hdf5_find(const weft_tensor_file *file, const char *name);
/** The error for a dataset that is not there, listing near names. */
weft_status weft_hdf5_missing(const weft_tensor_file *file, const char *name, weft_diag *diag);
/** Appends "Fp32 [2, 3]". */
void weft_hdf5_put_shape(weft_text *text, weft_format dtype, uint32_t rank, const uint64_t *extents);

#endif
