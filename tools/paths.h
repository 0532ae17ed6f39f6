/* Where emitted programs find weft's headers and libraries. */
#ifndef WEFT_TOOLS_PATHS_H
#define WEFT_TOOLS_PATHS_H

#include "weft/codegen.h"

typedef struct weft_tool_paths {
  weft_codegen_paths codegen;
  const char *dataflow_libraries, *dataflow_mpi_libraries; /**< link lines of compiled dataflow modules */
  const char *dataflow_depends;
  char *storage[7];
} weft_tool_paths;

/** The build tree when the command runs from it, else the installation it is part of ($PREFIX/bin/weft). Errors:
 * neither holds the libraries. */
weft_status weft_tool_paths_find(weft_tool_paths *paths, weft_diag *diag);
void weft_tool_paths_free(weft_tool_paths *paths);

#endif
