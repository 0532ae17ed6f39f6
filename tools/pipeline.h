/* The way from a file to per-chip programs, shared by the commands that walk it. */
#ifndef WEFT_TOOLS_PIPELINE_H
#define WEFT_TOOLS_PIPELINE_H

#include "options.h"
#include "weft/codegen.h"
#include "weft/partition.h"
#include "weft/plan.h"

/** What a user may say about chips and target. */
typedef struct weft_machine_options {
  const char *mesh; /**< "x=2,y=2" or NULL */
  uint64_t chips;   /**< a mesh of one axis */
  bool chips_said;
  const char *split;       /**< preset or NULL */
  weft_option_list shards; /**< TENSOR=SPEC */
  const char *target;      /**< name or path; NULL: cpu */
  bool explain;
} weft_machine_options;

/** Reads a program and validates it. */
weft_status weft_tool_read(const char *path, weft_program **program, weft_diag *diag);
/** Writes a program as a neutral dump. */
weft_status weft_tool_write(const char *path, const weft_program *program, weft_diag *diag);

/** A program of one chip sharded over the mesh that the options name, as a whole-machine Template; a program that
 * already is one, or nothing being said, is passed through (`*machine` is then `program` itself). A program that cannot
 * be lifted is refused sharding by name. `report` gets the explanation when asked for. */
weft_status weft_tool_shard(weft_program *program, const weft_machine_options *options, const weft_target *target,
                            weft_program **machine, weft_text *report, weft_diag *diag);

/** Plans a copy of the machine program and proves it. `*planned` is the Scheduled copy, or NULL to drop it. */
weft_status weft_tool_prove(const weft_program *machine, const weft_target *target, weft_program **planned,
                            weft_diag *diag);

/** Splits a whole-machine Template into one program a chip, checks the split as a whole and proves every chip's
 * program. The array and its programs are freed by weft_tool_free_programs. */
weft_status weft_tool_split(const weft_program *machine, const weft_target *target, weft_program ***programs,
                            uint32_t *chips, weft_diag *diag);
void weft_tool_free_programs(weft_program **programs, uint32_t chips);

/** Proves, splits, proves again and generates C. */
weft_status weft_tool_generate(const weft_program *machine, const weft_target *target, const char *directory,
                               uint64_t threads, weft_codegen_report *report, weft_diag *diag);

/** weft codegen and weft compile: reads, shards as the options say, generates into `directory`, prints what was made.
 */
weft_status weft_tool_compile(const char *path, const weft_machine_options *options, const char *directory,
                              uint64_t threads, weft_diag *diag);

#endif
