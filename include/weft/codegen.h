/* weft/codegen.h: per-chip programs to readable C, one file a class of structurally equal chips, and a build.ninja.
 *
 * Source: design 3-partition-codegen-runtime.md "Code generation"; the ABI is weft/program_abi.h. */
#ifndef WEFT_CODEGEN_H
#define WEFT_CODEGEN_H

#include "weft/graph.h"

/** What build.ninja names: compilers, flags and libraries of the installed (or built) weft. All strings as the shell
 * sees them. */
typedef struct weft_codegen_paths {
  const char *compiler;        /**< e.g. "gcc" */
  const char *mpi_compiler;    /**< e.g. "mpicc": links `run` and libprogram.so */
  const char *include_dir;     /**< holds weft/program_abi.h */
  const char *flags;           /**< extra compile flags, may be "" */
  const char *local_libraries; /**< link line of run-local */
  const char *mpi_libraries;   /**< link line of run */
  const char *walk_libraries;  /**< put before them when a class needs weft_walk */
  const char *depends;         /**< library files that relink the programs, space separated */
} weft_codegen_paths;

typedef struct weft_codegen_options {
  weft_codegen_paths paths;
  int threads; /**< generation: 0 as many as allowed. The output does not depend on it */
  /** The planned form, embedded for a one-chip program whose stages are not recognised (run by the table-driven walk);
   * NULL: such a program is refused. */
  const weft_program *scheduled;
} weft_codegen_options;

typedef struct weft_codegen_report {
  uint32_t classes;
  uint64_t lines;  /**< of C, all files */
  uint64_t walked; /**< classes that run through the walk */
} weft_codegen_report;

/** Writes class_N.c, program.c, program.h, run.c, run_local.c and build.ninja into `directory` (made when missing).
 * Files whose contents did not change are left untouched. `programs[i]` is chip i's program in phase Template, as
 * weft_split leaves it. Errors: a stage that is not recognised (named) in a program of several chips; links without
 * peers; disk. */
weft_status weft_codegen(const weft_program *const *programs, uint32_t chips, const char *directory,
                         const weft_codegen_options *options, weft_codegen_report *report, weft_diag *diag);

#endif
