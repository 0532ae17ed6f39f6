/* Where emitted programs find weft's headers and libraries: the build tree or the installation the command is part of.
 */
#include "paths.h"
#include "weft_configuration.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** The libraries in link order: users before what they use. Rows: room folder, library. */
static const char *const mpi_rooms[][2] = {{"runtime-mpi", "weft_runtime_mpi"},
                                           {"runtime-mpi", "weft_runtime"},
                                           {"data/hdf5", "weft_tensors"},
                                           {"data", "weft_data"},
                                           {"base", "weft_base"}};
static const char *const dataflow_rooms[][2] = {{"dataflow", "weft_dataflow_mpi"},
                                                {"dataflow", "weft_dataflow"},
                                                {"dataflow", "weft_mlir"},
                                                {"data", "weft_data"},
                                                {"base", "weft_base"}};
static const char *const walk_rooms[][2] = {
    {"runtime-mpi", "weft_runtime_walk"}, {"plan", "weft_plan"}, {"ir", "weft_ir"}};

static void library_path(weft_text *text, const char *root, bool build, const char *const room[2]) {
  if (build)
    weft_text_printf(text, "%s/%s/lib%s.a", root, room[0], room[1]);
  else
    weft_text_printf(text, "%s/%s/lib%s.a", root, WEFT_INSTALL_LIBDIR, room[1]);
}

/** A shell word. */
static void quoted(weft_text *text, const char *word) {
  weft_text_puts(text, "'");
  for (; *word; word++) {
    if (*word == '\'')
      weft_text_puts(text, "'\\''");
    else
      weft_text_append(text, word, 1);
  }
  weft_text_puts(text, "' ");
}

static char *libraries(const char *root, bool build, const char *const (*rooms)[2], size_t first, size_t count,
                       const char *end) {
  weft_text text = {0};
  for (size_t i = first; i < count; i++) {
    weft_text path = {0};
    library_path(&path, root, build, rooms[i]);
    quoted(&text, path.data ? path.data : "");
    text.failed |= path.failed;
    weft_text_free(&path);
  }
  weft_text_puts(&text, end);
  if (text.failed) weft_text_free(&text);
  return text.data;
}

/** The same files as Ninja's inputs. */
static char *dependencies(const char *root, bool build, const char *const (*all)[2], size_t count) {
  weft_text text = {0};
  for (size_t i = 0; i < count; i++) {
    weft_text path = {0};
    library_path(&path, root, build, all[i]);
    for (const char *c = path.data ? path.data : ""; *c; c++) {
      if (*c == ' ' || *c == ':' || *c == '$') weft_text_puts(&text, "$");
      weft_text_append(&text, c, 1);
    }
    weft_text_puts(&text, " ");
    weft_text_free(&path);
  }
  return text.data;
}

static bool find_root(char root[PATH_MAX], bool *build) {
  char self[PATH_MAX], probe[PATH_MAX + 64];
  ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) return false;
  self[length] = 0;
  for (int up = 0; up < 2; up++) {
    char *slash = strrchr(self, '/');
    if (!slash) return false;
    *slash = 0;
  }
  strcpy(root, self);
  snprintf(probe, sizeof probe, "%s/runtime-mpi/libweft_runtime.a", root);
  *build = access(probe, R_OK) == 0;
  if (*build) return true;
  snprintf(probe, sizeof probe, "%s/%s/libweft_runtime.a", root, WEFT_INSTALL_LIBDIR);
  return access(probe, R_OK) == 0;
}

weft_status weft_tool_paths_find(weft_tool_paths *paths, weft_diag *diag) {
  memset(paths, 0, sizeof *paths);
  char root[PATH_MAX];
  bool build;
  if (!find_root(root, &build))
    return weft_error(diag, WEFT_UNAVAILABLE, "run the installed command, or the one in a finished build tree",
                      "weft's runtime libraries are not beside the command");
  size_t rooms = sizeof mpi_rooms / sizeof *mpi_rooms;
  paths->storage[0] = libraries(root, build, mpi_rooms, 1, rooms, WEFT_LOCAL_LINK);
  paths->storage[1] = libraries(root, build, mpi_rooms, 0, rooms, WEFT_MPI_LINK);
  paths->storage[2] = libraries(root, build, walk_rooms, 0, sizeof walk_rooms / sizeof *walk_rooms, "");
  paths->storage[3] = dependencies(root, build, mpi_rooms, rooms);
  size_t dataflow = sizeof dataflow_rooms / sizeof *dataflow_rooms;
  paths->storage[4] = libraries(root, build, dataflow_rooms, 1, dataflow, WEFT_LOCAL_LINK);
  paths->storage[5] = libraries(root, build, dataflow_rooms, 0, dataflow, WEFT_MPI_LINK);
  paths->storage[6] = dependencies(root, build, dataflow_rooms, dataflow);
  static char include[PATH_MAX + 16];
  snprintf(include, sizeof include, build ? "%s" : "%s/include", build ? WEFT_SOURCE_INCLUDE : root);
  for (size_t i = 0; i < sizeof paths->storage / sizeof *paths->storage; i++)
    if (!paths->storage[i]) {
      weft_tool_paths_free(paths);
      return weft_error_memory(diag);
    }
  paths->codegen = (weft_codegen_paths){.compiler = WEFT_COMPILER,
                                        .mpi_compiler = "mpicc",
                                        .include_dir = include,
                                        .flags = "",
                                        .local_libraries = paths->storage[0],
                                        .mpi_libraries = paths->storage[1],
                                        .walk_libraries = paths->storage[2],
                                        .depends = paths->storage[3]};
  paths->dataflow_libraries = paths->storage[4];
  paths->dataflow_mpi_libraries = paths->storage[5];
  paths->dataflow_depends = paths->storage[6];
  return WEFT_OK;
}

void weft_tool_paths_free(weft_tool_paths *paths) {
  for (size_t i = 0; i < sizeof paths->storage / sizeof *paths->storage; i++) free(paths->storage[i]);
}
