/* Targets: JSON files found by path, in $WEFT_TARGETS, installed, or in the source tree. */
#include "weft/target.h"

#include "weft/json.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** Extents beyond this are no machine: sites of a mesh are numbered with 16 bits. */
#define MESH_LIMIT 1024
#define TILE_LIMIT 4096

static const char *const known_keys[] = {"name",
                                         "about",
                                         "mesh",
                                         "tile",
                                         "local_bytes",
                                         "chip_bytes",
                                         "acc_tiles",
                                         "mem_banks",
                                         "movement_engines",
                                         "handshakes",
                                         "interconnects",
                                         "formats",
                                         "flops_per_second",
                                         "dram_bytes_per_second",
                                         "link_bytes_per_second",
                                         "link_latency_seconds",
                                         "op_seconds"};

static const char *format_name(uint32_t index) { return weft_format_name((weft_format)index); }
static const char *handshake_name(uint32_t index) { return weft_handshake_kind_name((weft_handshake_kind)index); }
static const char *interconnect_name(uint32_t index) { return weft_interconnect_name((weft_interconnect)index); }

/** A member that is a positive integer up to `limit`. */
static weft_status read_count(const weft_json *object, const char *key, uint64_t limit, uint64_t *result,
                              weft_diag *diag) {
  weft_status status = weft_json_field_u64(object, key, WEFT_JSON_REQUIRED, result, diag);
  if (status) return status;
  if (*result >= 1 && *result <= limit) return WEFT_OK;
  return weft_error_at(diag, WEFT_INVALID, weft_json_get(object, key)->place, NULL, "`%s` is %llu; expected 1 to %llu",
                       key, (unsigned long long)*result, (unsigned long long)limit);
}

static weft_status read_pair(const weft_json *root, const char *key, const char *first, const char *second,
                             uint64_t limit, uint64_t *a, uint64_t *b, weft_diag *diag) {
  const weft_json *object = NULL;
  weft_status status = weft_json_field(root, key, WEFT_JSON_REQUIRED, WEFT_JSON_OBJECT, &object, diag);
  if (status) return status;
  const char *const keys[] = {first, second};
  if ((status = weft_json_known_keys(object, keys, 2, diag))) return status;
  if ((status = read_count(object, first, limit, a, diag))) return status;
  return read_count(object, second, limit, b, diag);
}

static bool find_name(const char *text, const char *(*name_of)(uint32_t), uint32_t count, uint32_t *index) {
  for (*index = 0; *index < count; (*index)++)
    if (strcmp(text, name_of(*index)) == 0) return true;
  return false;
}

/** An array of names as a bit set. */
static weft_status read_set(const weft_json *root, const char *key, const char *(*name_of)(uint32_t), uint32_t count,
                            uint32_t *set, weft_diag *diag) {
  const weft_json *array = NULL;
  weft_status status = weft_json_field(root, key, WEFT_JSON_REQUIRED, WEFT_JSON_ARRAY, &array, diag);
  if (status) return status;
  *set = 0;
  for (uint64_t i = 0; i < array->count; i++) {
    const weft_json *item = &array->items[i];
    uint32_t index;
    if (item->type == WEFT_JSON_STRING && find_name(item->text, name_of, count, &index)) {
      *set |= 1u << index;
      continue;
    }
    weft_text names = {0};
    for (uint32_t n = 0; n < count; n++) weft_text_printf(&names, "%s%s", n ? ", " : "known: ", name_of(n));
    status =
        weft_error_at(diag, WEFT_INVALID, item->place, names.data, "`%s` holds something that is no such name", key);
    weft_text_free(&names);
    return status;
  }
  return WEFT_OK;
}

static weft_status read_rate(const weft_json *object, const char *key, double *result, weft_diag *diag) {
  weft_status status = weft_json_field_double(object, key, WEFT_JSON_REQUIRED, result, diag);
  if (status) return status;
  if (*result > 0) return WEFT_OK;
  return weft_error_at(diag, WEFT_INVALID, weft_json_get(object, key)->place, NULL, "`%s` must be above 0", key);
}

static weft_status read_flops(const weft_json *root, weft_target *target, weft_diag *diag) {
  const weft_json *object = NULL;
  weft_status status = weft_json_field(root, "flops_per_second", WEFT_JSON_REQUIRED, WEFT_JSON_OBJECT, &object, diag);
  if (status) return status;
  for (uint64_t i = 0; i < object->count; i++) {
    uint32_t format;
    if (!find_name(object->items[i].key, format_name, WEFT_FORMAT_COUNT, &format))
      return weft_error_at(diag, WEFT_INVALID, object->items[i].place, NULL, "`%s` is no element format",
                           object->items[i].key);
    if ((status = read_rate(object, object->items[i].key, &target->flops_per_second[format], diag))) return status;
  }
  for (uint32_t f = 0; f < WEFT_FORMAT_COUNT; f++)
    if ((target->formats >> f & 1) && target->flops_per_second[f] <= 0)
      return weft_error_at(diag, WEFT_INVALID, object->place, NULL, "`flops_per_second` lacks the format %s",
                           format_name(f));
  return WEFT_OK;
}

static weft_status read_costs(const weft_json *root, weft_target *target, weft_diag *diag) {
  weft_status status = read_flops(root, target, diag);
  if (!status) status = read_rate(root, "dram_bytes_per_second", &target->dram_bytes_per_second, diag);
  if (!status) status = read_rate(root, "link_bytes_per_second", &target->link_bytes_per_second, diag);
  if (!status) status = read_rate(root, "link_latency_seconds", &target->link_latency_seconds, diag);
  if (!status) status = read_rate(root, "op_seconds", &target->op_seconds, diag);
  return status;
}

static weft_status read_name(const weft_json *root, weft_target *target, weft_diag *diag) {
  const char *name = NULL;
  weft_status status = weft_json_field_string(root, "name", WEFT_JSON_REQUIRED, &name, diag);
  if (status) return status;
  size_t length = strlen(name);
  if (length == 0 || length >= sizeof target->name)
    return weft_error_at(diag, WEFT_INVALID, weft_json_get(root, "name")->place, NULL,
                         "a target's name has 1 to %zu bytes", sizeof target->name - 1);
  memcpy(target->name, name, length + 1);
  return WEFT_OK;
}

static weft_status read_target(const weft_json *root, weft_target *target, weft_diag *diag) {
  if (root->type != WEFT_JSON_OBJECT)
    return weft_error_at(diag, WEFT_INVALID, root->place, NULL, "expected an object, found %s",
                         weft_json_type_name(root->type));
  weft_status status = weft_json_known_keys(root, known_keys, sizeof known_keys / sizeof *known_keys, diag);
  uint64_t engines = 0;
  if (!status) status = read_name(root, target, diag);
  if (!status)
    status = read_pair(root, "mesh", "cols", "rows", MESH_LIMIT, &target->mesh_cols, &target->mesh_rows, diag);
  if (!status)
    status = read_pair(root, "tile", "rows", "cols", TILE_LIMIT, &target->tile_rows, &target->tile_cols, diag);
  if (!status) status = read_count(root, "local_bytes", INT64_MAX, &target->local_bytes, diag);
  if (!status) status = weft_json_field_u64(root, "chip_bytes", WEFT_JSON_REQUIRED, &target->chip_bytes, diag);
  if (!status) status = read_count(root, "acc_tiles", UINT32_MAX, &target->acc_tiles, diag);
  if (!status) status = read_count(root, "mem_banks", UINT32_MAX, &target->mem_banks, diag);
  if (!status) status = read_count(root, "movement_engines", 2, &engines, diag);
  target->movement_engines = (uint32_t)engines;
  if (!status)
    status = read_set(root, "handshakes", handshake_name, WEFT_HANDSHAKE_KIND_COUNT, &target->handshakes, diag);
  if (!status)
    status = read_set(root, "interconnects", interconnect_name, WEFT_INTERCONNECT_COUNT, &target->interconnects, diag);
  if (!status) status = read_set(root, "formats", format_name, WEFT_FORMAT_COUNT, &target->formats, diag);
  if (!status) status = read_costs(root, target, diag);
  return status;
}

static bool is_path(const char *name) {
  size_t length = strlen(name);
  return length > 5 && strcmp(name + length - 5, ".json") == 0;
}

static const char *directory_at(int index) {
  if (index == 0) return getenv("WEFT_TARGETS");
  return index == 1 ? WEFT_TARGETS_INSTALLED : WEFT_TARGETS_SOURCE;
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/** Appends the targets of every directory, sorted, each once. */
static void list_targets(weft_arena *arena, weft_text *text) {
  char **names = NULL;
  uint64_t count = 0, capacity = 0;
  for (int d = 0; d < 3; d++) {
    const char *path = directory_at(d);
    DIR *directory = path ? opendir(path) : NULL;
    if (!directory) continue;
    for (struct dirent *entry; (entry = readdir(directory));) {
      if (!is_path(entry->d_name) || !weft_arena_grow(arena, &names, count, &capacity, sizeof *names)) continue;
      char *name = weft_arena_string(arena, entry->d_name, strlen(entry->d_name) - 5);
      if (name) names[count++] = name;
    }
    closedir(directory);
  }
  if (count) qsort(names, count, sizeof *names, compare_names);
  weft_text_puts(text, count ? "known:" : "no targets are installed; set WEFT_TARGETS");
  for (uint64_t i = 0; i < count; i++)
    if (i == 0 || strcmp(names[i - 1], names[i]) != 0) weft_text_printf(text, " %s", names[i]);
}

static weft_status find_target(weft_arena *arena, const char *name, const char **path, weft_diag *diag) {
  if (is_path(name)) {
    *path = name;
    return WEFT_OK;
  }
  for (int d = 0; d < 3 && !strchr(name, '/'); d++) {
    if (!directory_at(d)) continue;
    char *candidate = weft_arena_printf(arena, "%s/%s.json", directory_at(d), name);
    if (!candidate) return weft_error_memory(diag);
    if (access(candidate, R_OK) != 0) continue;
    *path = candidate;
    return WEFT_OK;
  }
  weft_text hint = {0};
  list_targets(arena, &hint);
  weft_status status = weft_error(diag, WEFT_USAGE, hint.data, "there is no target `%s`", name);
  weft_text_free(&hint);
  return status;
}

weft_status weft_target_load(const char *name_or_path, weft_target *target, weft_diag *diag) {
  weft_arena *arena = weft_arena_new();
  if (!arena) return weft_error_memory(diag);
  memset(target, 0, sizeof *target);
  const char *path = NULL;
  const weft_json *root = NULL;
  weft_status status = find_target(arena, name_or_path, &path, diag);
  if (!status) status = weft_json_read(arena, path, &root, diag);
  if (!status) status = read_target(root, target, diag);
  weft_arena_free(arena);
  return status;
}
