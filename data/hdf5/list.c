/* Finding the datasets of a file. Files may be hostile: links that leave the file are not followed, groups are bounded
 * in depth and number and may not hold themselves, and what cannot be read is listed with the reason. */
#include "internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 64, MOST_LINKS = 200000, LONGEST_TEXT = 4096 };

typedef struct walk {
  weft_tensor_file *file;
  weft_diag *diag;
  weft_status status;
  uint64_t links;
  const char *prefix; /* of names in the current group: "" or "a/b/" */
  uint32_t depth;
  haddr_t groups[DEEPEST]; /* from the root to the current group */
} walk;

uint64_t weft_hdf5_most_bytes(uint64_t stored) {
  const uint64_t expansion = 1032, unstored = UINT64_C(256) << 20;
  uint64_t most;
  bool overflow = weft_mul_overflow(stored, expansion, &most) || weft_add_overflow(most, unstored, &most);
  return overflow ? UINT64_MAX : most;
}

/* ---- one dataset ----------------------------------------------------------------------------------------------------
 */

static char *read_varying_text(hid_t attribute, hid_t type, hid_t space, weft_arena *arena) {
  char *bytes = NULL, *copy = NULL;
  if (H5Aread(attribute, type, &bytes) < 0) return NULL;
  if (bytes) copy = weft_arena_string(arena, bytes, strnlen(bytes, LONGEST_TEXT));
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, &bytes);
  return copy;
}

static char *read_fixed_text(hid_t attribute, hid_t type, weft_arena *arena) {
  size_t size = H5Tget_size(type);
  if (size > LONGEST_TEXT) return NULL;
  char *bytes = weft_arena_alloc(arena, size + 1);
  if (!bytes || H5Aread(attribute, type, bytes) < 0) return NULL;
  size_t length = strlen(bytes);
  if (H5Tget_strpad(type) == H5T_STR_SPACEPAD)
    while (length && bytes[length - 1] == ' ') bytes[--length] = 0;
  return bytes;
}

/* The attribute's text; "" when there is none or it is not one text. Only what must be is read as a text of varying
 * length: HDF5 1.10 does not survive damage in the heap of such texts. */
static const char *text_attribute(hid_t dataset, const char *name, bool may_vary, weft_arena *arena) {
  if (H5Aexists(dataset, name) <= 0) return "";
  hid_t attribute = H5Aopen(dataset, name, H5P_DEFAULT);
  if (attribute < 0) return "";
  hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
  char *text = NULL;
  if (H5Tget_class(type) == H5T_STRING && H5Sget_simple_extent_npoints(space) == 1) {
    bool varies = H5Tis_variable_str(type) != 0;
    if (!varies)
      text = read_fixed_text(attribute, type, arena);
    else if (may_vary)
      text = read_varying_text(attribute, type, space, arena);
  }
  H5Sclose(space);
  H5Tclose(type);
  H5Aclose(attribute);
  return text ? text : "";
}

static const char *check_extents(hid_t dataset, weft_arena *arena, weft_dataset_info *info) {
  hid_t space = H5Dget_space(dataset);
  const char *why = NULL;
  int rank = H5Sget_simple_extent_ndims(space);
  hsize_t extents[H5S_MAX_RANK];
  if (space < 0 || rank < 0 || H5Sget_simple_extent_dims(space, extents, NULL) != rank) {
    why = "has an unreadable shape";
  } else if (H5Sget_simple_extent_type(space) == H5S_NULL) {
    why = "has no shape (an empty dataset)";
  } else if (rank > WEFT_MAX_RANK) {
    why = weft_arena_printf(arena, "has %d dimensions, of which weft reads at most %d", rank, WEFT_MAX_RANK);
  } else {
    info->rank = (uint32_t)rank;
    for (int i = 0; i < rank; i++) info->extents[i] = extents[i];
  }
  if (space >= 0) H5Sclose(space);
  return why;
}

static const char *check_size(const weft_dataset_info *info) {
  weft_array shape = {.rank = info->rank};
  memcpy(shape.extents, info->extents, sizeof shape.extents);
  uint64_t elements = weft_array_elements(&shape), bytes;
  bool overflow = elements == UINT64_MAX || weft_mul_overflow(elements, weft_format_bytes(info->dtype), &bytes);
  return overflow || bytes > INT64_MAX ? "has more elements than 63 bits can address" : NULL;
}

static const char *check_filters(hid_t properties, weft_arena *arena) {
  int count = H5Pget_nfilters(properties);
  for (int i = 0; i < count; i++) {
    unsigned flags, configuration;
    size_t values = 0;
    char name[64] = "";
    H5Z_filter_t filter =
        H5Pget_filter2(properties, (unsigned)i, &flags, &values, NULL, sizeof name - 1, name, &configuration);
    if (filter < 0) return "has an unreadable filter";
    if (H5Zfilter_avail(filter) <= 0)
      return weft_arena_printf(arena, "has its data behind filter %d%s%s, which is not built into HDF5", (int)filter,
                               *name ? " " : "", name);
  }
  return NULL;
}

/* Whether chunks that no filter changes have the size that shape and type give: HDF5 1.10 believes the file. */
static bool chunk_size_is(hid_t dataset, hid_t properties, uint64_t bytes) {
  hsize_t count = 0, size = bytes;
  if (H5Pget_nfilters(properties) != 0) return true;
  hid_t space = H5Dget_space(dataset);
  bool ok = space >= 0 && H5Dget_num_chunks(dataset, space, &count) >= 0;
  if (ok && count) ok = H5Dget_chunk_info(dataset, space, 0, NULL, NULL, NULL, &size) >= 0;
  if (space >= 0) H5Sclose(space);
  return ok && size == bytes;
}

static const char *check_chunks(hid_t dataset, hid_t properties, weft_format dtype, weft_arena *arena) {
  hsize_t extents[H5S_MAX_RANK];
  int rank = H5Pget_chunk(properties, H5S_MAX_RANK, extents);
  uint64_t bytes = weft_format_bytes(dtype), stored = H5Dget_storage_size(dataset);
  if (rank < 0) return "has unreadable chunks";
  for (int i = 0; i < rank; i++)
    if (weft_mul_overflow(bytes, extents[i], &bytes)) return "has chunks that are too large";
  if (bytes > weft_hdf5_most_bytes(stored))
    return weft_arena_printf(arena, "has chunks of %" PRIu64 " bytes while the file stores %" PRIu64, bytes, stored);
  if (!chunk_size_is(dataset, properties, bytes)) return "has chunks of a wrong size";
  return check_filters(properties, arena);
}

static uint64_t bytes_of(const weft_dataset_info *info) {
  weft_array shape = {.rank = info->rank};
  memcpy(shape.extents, info->extents, sizeof shape.extents);
  return weft_array_elements(&shape) * weft_format_bytes(info->dtype);
}

static const char *check_storage(hid_t dataset, const weft_dataset_info *info, weft_arena *arena) {
  hid_t properties = H5Dget_create_plist(dataset);
  if (properties < 0) return "has an unreadable layout";
  const char *why = NULL;
  switch (H5Pget_layout(properties)) {
  case H5D_COMPACT:
    if (H5Dget_storage_size(dataset) != bytes_of(info)) why = "has compact data of a wrong size";
    break;
  case H5D_CONTIGUOUS:
    if (H5Pget_external_count(properties) != 0) why = "has external storage (its data is in another file)";
    break;
  case H5D_CHUNKED: why = check_chunks(dataset, properties, info->dtype, arena); break;
  case H5D_VIRTUAL: why = "is a virtual dataset (its data is in other files)"; break;
  default: why = "has an unknown layout";
  }
  H5Pclose(properties);
  return why;
}

/* Fills type, shape and role; NULL, or why the dataset cannot be read. */
static const char *inspect(hid_t dataset, weft_arena *arena, weft_hdf5_entry *entry) {
  weft_dataset_info *info = &entry->info;
  hid_t type = H5Dget_type(dataset);
  if (type < 0) return "has an unreadable type";
  bool is_unsigned = H5Tget_class(type) == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_NONE;
  const char *named = is_unsigned ? text_attribute(dataset, "dtype", true, arena) : "";
  const char *why = weft_hdf5_format_of_type(type, named, &info->dtype, &entry->swapped);
  H5Tclose(type);
  if (!why) why = check_extents(dataset, arena, info);
  if (!why) why = check_size(info);
  if (!why) why = check_storage(dataset, info, arena);
  info->role = text_attribute(dataset, "role", false, arena);
  return why;
}

/* ---- the groups -----------------------------------------------------------------------------------------------------
 */

static weft_status refuse(walk *w, const char *name, const char *what) {
  return w->status = weft_hdf5_error(w->diag, WEFT_INVALID, w->file->path, NULL, NULL, "group `%s%s` %s", w->prefix,
                                     name, what);
}

static void add_entry(walk *w, const char *name, weft_hdf5_entry entry, const char *why) {
  weft_tensor_file *file = w->file;
  entry.info.name = weft_arena_printf(file->arena, "%s%s", w->prefix, name);
  if (!entry.info.role) entry.info.role = "";
  entry.info.unsupported = why;
  if (why) entry.info.dtype = WEFT_FORMAT_COUNT;
  if (!entry.info.name ||
      !weft_arena_grow(file->arena, &file->entries, file->count, &file->capacity, sizeof *file->entries)) {
    w->status = weft_error_memory(w->diag);
    return;
  }
  file->entries[file->count++] = entry;
}

static void add_dataset(walk *w, hid_t group, const char *name) {
  weft_hdf5_entry entry = {0};
  hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT);
  const char *why = dataset >= 0 ? inspect(dataset, w->file->arena, &entry) : NULL;
  if (dataset < 0) {
    weft_text text = {0};
    weft_text_puts(&text, "is a dataset that HDF5 cannot open: ");
    weft_hdf5_innermost(&text);
    why = weft_arena_string(w->file->arena, text.data ? text.data : "", text.length);
    weft_text_free(&text);
  } else {
    H5Dclose(dataset);
  }
  add_entry(w, name, entry, why);
}

static void walk_group(walk *w, hid_t group, haddr_t address);

static void add_group(walk *w, hid_t parent, const char *name, haddr_t address) {
  for (uint32_t i = 0; i < w->depth; i++) {
    if (w->groups[i] != address) continue;
    refuse(w, name, "holds itself");
    return;
  }
  if (w->depth == DEEPEST) {
    refuse(w, name, "is nested too deep");
    return;
  }
  hid_t group = H5Gopen2(parent, name, H5P_DEFAULT);
  if (group < 0) {
    refuse(w, name, "cannot be opened");
    return;
  }
  const char *prefix = w->prefix;
  w->prefix = weft_arena_printf(w->file->arena, "%s%s/", prefix, name);
  if (w->prefix)
    walk_group(w, group, address);
  else
    w->status = weft_error_memory(w->diag);
  w->prefix = prefix;
  H5Gclose(group);
}

static void add_object(walk *w, hid_t group, const char *name) {
  H5O_info_t object;
  if (H5Oget_info_by_name2(group, name, &object, H5O_INFO_BASIC, H5P_DEFAULT) < 0) {
    add_entry(w, name, (weft_hdf5_entry){0}, "is an object that HDF5 cannot open");
    return;
  }
  if (object.type == H5O_TYPE_DATASET) add_dataset(w, group, name);
  if (object.type == H5O_TYPE_GROUP) add_group(w, group, name, object.addr);
}

static herr_t take_link(hid_t group, const char *name, const H5L_info_t *link, void *context) {
  walk *w = context;
  if (++w->links > MOST_LINKS) {
    refuse(w, name, "is one link too many: weft reads at most 200,000");
    return 1;
  }
  switch (link->type) {
  case H5L_TYPE_HARD: add_object(w, group, name); break;
  case H5L_TYPE_SOFT: add_entry(w, name, (weft_hdf5_entry){0}, "is a soft link"); break;
  case H5L_TYPE_EXTERNAL: add_entry(w, name, (weft_hdf5_entry){0}, "is an external link"); break;
  default: add_entry(w, name, (weft_hdf5_entry){0}, "is a link of an unknown kind");
  }
  return w->status != WEFT_OK;
}

static void walk_group(walk *w, hid_t group, haddr_t address) {
  hsize_t next = 0;
  w->groups[w->depth++] = address;
  if (H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, &next, take_link, w) < 0 && w->status == WEFT_OK)
    refuse(w, "", "cannot be read");
  w->depth--;
}

static int compare_entries(const void *a, const void *b) {
  return strcmp(((const weft_hdf5_entry *)a)->info.name, ((const weft_hdf5_entry *)b)->info.name);
}

weft_status weft_hdf5_list(weft_tensor_file *file, weft_diag *diag) {
  walk w = {.file = file, .diag = diag, .prefix = ""};
  H5O_info_t root;
  hid_t group = H5Gopen2(file->id, "/", H5P_DEFAULT);
  if (group < 0 || H5Oget_info2(group, &root, H5O_INFO_BASIC) < 0)
    refuse(&w, "/", "cannot be opened");
  else
    walk_group(&w, group, root.addr);
  if (group >= 0) H5Gclose(group);
  H5Eclear2(H5E_DEFAULT);
  if (w.status != WEFT_OK) return w.status;
  if (weft_arena_failed(file->arena)) return weft_error_memory(diag);
  if (file->count) qsort(file->entries, file->count, sizeof *file->entries, compare_entries);
  return WEFT_OK;
}

/* ---- finding --------------------------------------------------------------------------------------------------------
 */

weft_hdf5_entry *weft_hdf5_find(const weft_tensor_file *file, const char *name) {
  const weft_hdf5_entry wanted = {.info.name = name};
  return file->count ? bsearch(&wanted, file->entries, file->count, sizeof wanted, compare_entries) : NULL;
}

/* Appends the names that are like `name`, or the first ones when none is. */
static void put_candidates(const weft_tensor_file *file, const char *name, weft_text *hint) {
  enum { SHOWN = 8 };
  uint64_t shown = 0;
  for (uint64_t i = 0; i < file->count && shown < SHOWN; i++)
    if (weft_names_alike(name, file->entries[i].info.name))
      weft_text_printf(hint, "%s`%s`", shown++ ? ", " : "did you mean ", file->entries[i].info.name);
  if (shown) {
    weft_text_puts(hint, "?");
    return;
  }
  for (uint64_t i = 0; i < file->count && i < SHOWN; i++)
    weft_text_printf(hint, "%s`%s`", i ? ", " : "the file has ", file->entries[i].info.name);
  if (file->count > SHOWN) weft_text_printf(hint, " and %" PRIu64 " more", file->count - SHOWN);
  if (file->count == 0) weft_text_puts(hint, "the file has no datasets");
}

weft_status weft_hdf5_missing(const weft_tensor_file *file, const char *name, weft_diag *diag) {
  weft_text hint = {0};
  put_candidates(file, name, &hint);
  weft_status status = weft_hdf5_error(diag, WEFT_INVALID, file->path, name, hint.data, "the file has no such dataset");
  weft_text_free(&hint);
  return status;
}
