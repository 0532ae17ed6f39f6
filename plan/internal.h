/* Private to plan/: units of a program, describing places, and what the passes share. */
#ifndef WEFT_PLAN_INTERNAL_H
#define WEFT_PLAN_INTERNAL_H

#include "weft/plan.h"

/* ---- units ---- */

/** How a unit may be cut into blocks. */
typedef enum unit_kind {
  UNIT_MATMUL, /**< one tile product over whole operands, epilogues on its accumulator, one Store: rows and columns */
  UNIT_ROWS,   /**< every stage walks the sub-block rows of one Store: rows */
  UNIT_FIXED,  /**< anything else: stays as it is, one copy a work item */
} unit_kind;

/** The stages of one section that hang together by buffers, in stage order. */
typedef struct plan_unit {
  uint64_t section; /**< 0 for a program without sections */
  unit_kind kind;
  const uint32_t *stages;
  uint64_t stage_count;
  const uint32_t *buffers; /**< ascending */
  uint64_t buffer_count;
  uint32_t item;                   /**< of its stages; WEFT_NONE: the items of the section */
  uint32_t store;                  /**< the first Store, or WEFT_NONE */
  uint32_t matmul, load_a, load_b; /**< MATMUL */
  uint16_t chip;
  bool spread; /**< its buffers are already at several sites */
  /** MATMUL: tiles of the result and of the contraction; ROWS: sub-block rows, tiles of a Store's row, 1. */
  uint64_t rows, cols, k_tiles;
} plan_unit;

typedef struct plan_units {
  plan_unit *items;
  uint64_t count;
  uint32_t *unit_of_stage;
} plan_units;

/** Finds the units of a program in any phase, section by section. Everything is in `arena`. */
weft_status plan_units_find(const weft_program *program, weft_arena *arena, plan_units *units, weft_diag *diag);

/** Cuts the folds of rows that the target's local memory does not hold into column blocks with a carried result, and
 * finds the units again; changes nothing when there are none. */
weft_status plan_cut_folds(weft_program *program, const weft_target *target, weft_arena *scratch, plan_units *units,
                           weft_diag *diag);

/** Stages by the buffers they touch, in stage order. */
typedef struct plan_ports {
  uint64_t *producer_begin, *reader_begin; /**< by buffer, one more at the end */
  uint32_t *producers, *readers;
  uint32_t *sender_of_group; /**< the Load that multicasts to each group, WEFT_NONE when there is none */
} plan_ports;
/** NULL without memory. */
plan_ports *plan_ports_find(const weft_program *program, weft_arena *arena);
/** The only stage that fills, or reads, the buffer; WEFT_NONE when there is none or more than one. */
uint32_t plan_only_producer(const plan_ports *ports, uint32_t buffer);
uint32_t plan_only_reader(const plan_ports *ports, uint32_t buffer);

/** The Load that brings a buffer's tiles: its only producer, or the sender of the group it is received from. WEFT_NONE
 * when neither. */
uint32_t plan_load_behind(const weft_program *program, const plan_ports *ports, uint32_t buffer);

/** The stride of `var` in an address (summed), 0 when it does not move with it. */
uint64_t plan_step_of(const weft_tile_addr *address, uint32_t var);
/** Whether the compute op works in place on the accumulator (Bias, Relu, Requant). */
bool plan_is_acc_map(const weft_stage *stage);
/** The Generic of a Compute or AllReduce stage, or NULL. */
const weft_generic *plan_generic_of(const weft_stage *stage);
/** The matmul of a Compute stage, or NULL. */
const weft_matmul_tiles *plan_matmul_of(const weft_stage *stage);
bool plan_buffer_is_acc(const weft_program *program, uint32_t buffer);
/** Partial tiles an output tile's running fold holds at most: 1 + log2 of the segments. */
uint64_t plan_fold_levels(uint32_t segments);
/** How down x across blocks, both at least 1, lie on the mesh of a chip: by row and column, round again where there are
 * more. Rows of blocks that leave rows of sites free go on there, band below band; columns of blocks likewise, stack
 * beside stack. */
typedef struct plan_grid {
  uint64_t rows, cols;    /**< sites used */
  uint64_t bands, stacks; /**< at least 1; only one of them is more */
  uint64_t rounds;        /**< blocks of the busiest site */
} plan_grid;
plan_grid plan_grid_of(const weft_target *target, uint64_t down, uint64_t across);

/** Bytes of a site's memory that the pages of one block of tile products take at most: the rings of its operands, of
 * two pages each, of the result and of what its epilogues read. */
double plan_block_bytes(const weft_program *program, uint64_t rows, uint64_t cols, uint64_t ibw,
                        uint64_t operand_bytes);

/** The greatest divisor of `value` that is at most `limit` (both at least 1). */
uint64_t plan_divisor(uint64_t value, uint64_t limit);
/** The sections of a program, at least one: the whole program when it has none. */
uint64_t plan_section_count(const weft_program *program);
weft_span plan_section_stages(const weft_program *program, uint64_t section);
weft_span plan_section_items(const weft_program *program, uint64_t section);
weft_span plan_section_buffers(const weft_program *program, uint64_t section);
/** The buffer whose memory a buffer shares in the end (itself, mostly); WEFT_NONE for an alias of itself. */
uint32_t plan_alias_root(const weft_program *program, uint32_t buffer);
const char *plan_section_name(const weft_program *program, uint64_t section);
/** The plan of a section, or the program's when it has none; NULL without either. */
const weft_block_plan *plan_of_section(const weft_program *program, uint64_t section);
/** K elements that a matmul stage folds: the tiles of its blocks, less what lies outside its operands' extents. */
uint64_t plan_matmul_k(const weft_program *program, const plan_ports *ports, uint32_t stage);

/* ---- engines and boundaries ---- */

/** The engines that have stages, sorted by chip, row, column; Movement 0, Compute, Movement 1 at each site. */
typedef struct plan_engine {
  weft_site site;
  weft_engine engine;
  uint32_t order;
  uint32_t met;     /**< place among the engines in the order of the stages */
  uint32_t *stages; /**< ascending */
  uint64_t stage_count;
} plan_engine;

typedef struct plan_engines {
  plan_engine *items;
  uint64_t count;
  uint32_t *of_stage;
} plan_engines;

/** The order of the sites of engines: by chip, row and column. */
int plan_site_order(weft_site a, weft_site b);
/** The engines of a placed program; stage lists in `keep`, the rest in `scratch`. false without memory. */
bool plan_engines_find(const weft_program *program, weft_arena *keep, weft_arena *scratch, plan_engines *engines);
/** Closes every section but the last, unless it is, with a rendezvous of all engine programs: gathered at the first
 * engine's site, released at every site. */
weft_status plan_close_sections(weft_program *program, weft_arena *scratch, weft_diag *diag);

/* ---- describing ---- */

const char *plan_op_name(weft_choreo_kind kind);
/** "site (0, 1) chip 2 Compute" (the chip only in programs of several). */
void plan_describe_engine(weft_text *text, weft_site site, weft_engine engine);
/** "stage `name`", or "stage 7" when there is none. */
void plan_describe_stage(weft_text *text, const weft_program *program, uint32_t stage);

/** The pass table. */
typedef weft_status plan_pass_function(weft_program *, const weft_target *, const weft_options *, weft_diag *);
typedef struct plan_pass {
  const char *name;
  weft_phase needs, leaves;
  plan_pass_function *run;
  const char *help;
} plan_pass;
extern const plan_pass plan_passes[];
extern const uint64_t plan_pass_count;

#endif
