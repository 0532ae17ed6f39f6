/* weft/target.h: what a program is compiled for: a JSON file of mesh, chips, links, memory and costs (data/targets). */
#ifndef WEFT_TARGET_H
#define WEFT_TARGET_H

#include "weft/ir.h"

typedef struct weft_target {
  char name[64];
  uint64_t mesh_cols, mesh_rows; /**< sites of one chip */
  uint64_t tile_rows, tile_cols;
  uint64_t local_bytes; /**< local memory a site */
  uint64_t chip_bytes;  /**< memory a chip for tensors; 0: not limited */
  uint64_t acc_tiles;   /**< accumulator tiles a site may hold */
  uint64_t mem_banks;
  uint32_t movement_engines;
  uint32_t handshakes;                        /**< bit set by weft_handshake_kind */
  uint32_t interconnects;                     /**< bit set by weft_interconnect */
  uint32_t formats;                           /**< bit set by weft_format */
  double flops_per_second[WEFT_FORMAT_COUNT]; /**< of one chip, multiply and add counted as two, by operand format */
  double dram_bytes_per_second;
  double link_bytes_per_second;
  double link_latency_seconds;
  double op_seconds; /**< fixed cost of one section */
} weft_target;

/** Loads a target: a path ending in .json, or a name shipped with weft ("cpu", "mesh-8x8", "rdu"; searched in the
 * installed and the source data/targets, $WEFT_TARGETS first). Errors name the file, line and field; unknown names list
 * what exists. */
weft_status weft_target_load(const char *name_or_path, weft_target *target, weft_diag *diag);

#endif
