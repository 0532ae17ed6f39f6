/* Private to codegen/: one chip's program as text with parameters, before chips are grouped into classes.
 *
 * The text of a chip is C with placeholders for every number that may differ between structurally equal chips, and for
 * names, which only people read. Two chips belong to one class exactly when their texts are equal; a scalar that has
 * one value on all chips of a class is printed as that value, a name with a star for what differs. The body of a
 * section names tensors by their place in the section's list of slots, so that sections which do the same to other
 * tensors have equal texts, too: they share one function. */
#ifndef WEFT_CODEGEN_EMIT_PRIVATE_H
#define WEFT_CODEGEN_EMIT_PRIVATE_H

#include "weft/codegen.h"

/** How a run of parameters is printed where the text names it. */
typedef enum weft_parameter_kind {
  WEFT_PARAMETER_SCALAR, /**< the number where it is the same on all chips of a class, else p[index] */
  WEFT_PARAMETER_EXTENT, /**< the same; sections of one chip with other extents do not share a function */
  WEFT_PARAMETER_BLOCK,  /**< the index of the first, which a table names; in a section p + index, a series */
  WEFT_PARAMETER_SIZE,   /**< a tensor's rows and cols, or where chips differ the index of the first */
  WEFT_PARAMETER_WORK,   /**< a step's flops, or where chips differ the index */
} weft_parameter_kind;
typedef struct weft_parameter {
  weft_parameter_kind kind;
  bool inside;    /**< the body of a section has it */
  uint64_t first; /**< into weft_chip_code.values */
  uint64_t count;
} weft_parameter;

/** The body of one section's function. Its parameters and names are numbered from its first. */
typedef struct weft_section_code {
  weft_text text;
  uint64_t hash;
  uint64_t first_parameter, parameter_count; /**< scalars and blocks */
  uint64_t first_name, name_count;
} weft_section_code;

/** Slots of one step, without repeats, in order of first use. */
typedef struct weft_slot_set {
  int64_t *slots;
  uint64_t *place; /**< by slot: where it stands in `slots`, if `stamp` says so */
  uint32_t *stamp; /**< by slot: the `round` it was added in */
  uint32_t round;
  uint64_t count;
} weft_slot_set;

/** An all-reduce over the whole machine. */
typedef struct weft_collective {
  uint32_t node_count;
  const char **nodes; /**< tensor names */
  uint16_t *owners;   /**< by node */
  uint32_t *firsts, *counts;
  uint32_t of;
  uint16_t *readers;
  uint32_t reader_count;
  uint64_t reader_capacity;
  weft_pool pool;
  weft_format format;
  uint64_t rows, cols;
} weft_collective;

/** A node of a collective, for finding by name. */
typedef struct weft_collective_node {
  const char *name;
  uint32_t collective, node;
} weft_collective_node;

typedef struct weft_collectives {
  weft_arena *arena;
  weft_collective *items;
  uint64_t count;
  weft_collective_node *nodes; /**< of all, by name, then collective */
  uint64_t node_count;
} weft_collectives;

/** One chip while its text is made. */
typedef struct weft_chip_code {
  uint32_t chip;
  const weft_program *program;
  weft_graph *graph; /**< lifted; NULL: walked */
  weft_arena *arena;
  weft_diag *diag;
  weft_status status;
  const weft_collectives *collectives;
  const weft_codegen_options *options;
  uint32_t *tensor_of_value; /**< by value, WEFT_NONE for a value inside a chain */
  uint32_t *value_of_tensor; /**< by tensor */
  int64_t *slot_of_tensor;   /**< by tensor, -1 without storage */
  int64_t *slot_of_value;    /**< by value, -1: a tensor's or none; of values inside a unit that need storage */
  uint32_t *tensor_of_slot;  /**< WEFT_NONE: a value's */
  uint32_t *value_of_slot;
  uint64_t slot_count;
  bool *received;                   /**< by tensor: filled by a link */
  uint32_t *by_name;                /**< tensors in the order of their names */
  uint8_t *done;                    /**< by collective: its step was emitted */
  uint64_t *op_begin;               /**< by section of the graph, and one more: its ops */
  bool *fused;                      /**< by op: part of a chain that was emitted */
  weft_slot_set reads, writes, all; /**< of the section at hand; `all` are those its function names */
  weft_section_code *sections;
  uint64_t section_count, section_capacity;
  const char **names;
  uint64_t name_count, name_capacity;
  uint64_t parameter_base, name_base; /**< the first of the body at hand; 0 outside */
  bool inside;
  weft_text functions, tables, steps;
  uint64_t step_count, link_count;
  weft_text text; /**< the whole class text with placeholders */
  weft_parameter *parameters;
  uint64_t parameter_count, parameter_capacity;
  int64_t *values;
  uint64_t value_count, value_capacity;
} weft_chip_code;

/** Lifts every chip and finds the collectives between them. */
weft_status weft_codegen_collect(weft_chip_code *codes, uint32_t chips, weft_collectives *collectives, weft_diag *diag);
/** Makes one chip's text. */
void weft_codegen_chip(weft_chip_code *code);

/* Steps of one chip (emit_steps.c): each appends to functions, tables and steps. */
void weft_codegen_section(weft_chip_code *code, uint32_t section);
void weft_codegen_link(weft_chip_code *code, const weft_link_point *link);
void weft_codegen_walk(weft_chip_code *code);
void weft_codegen_all_reduce(weft_chip_code *code, const weft_collective *collective, int64_t out,
                             const uint32_t *chain, uint32_t chain_count, const char *name);

/* Pieces shared by the emitters. */
/** Appends a placeholder for a scalar used inside a section function. */
void weft_codegen_scalar(weft_chip_code *code, weft_text *text, int64_t value);
/** The same for an extent. */
void weft_codegen_extent(weft_chip_code *code, weft_text *text, uint64_t value);
/** Appends a placeholder for the index of the first of `count` parameters. */
void weft_codegen_block(weft_chip_code *code, weft_text *text, const int64_t *values, uint64_t count);
/** Whether the numbers, alone or followed by `last` (WEFT_NO_LAST: none), are those of a ring (weft/program_abi.h), and
 * enough that it pays. */
#define WEFT_NO_LAST INT64_MIN
bool weft_codegen_is_ring(const int64_t *values, uint64_t count, int64_t last);
/** A block that is a series; `ring`: what weft_codegen_is_ring said. */
void weft_codegen_series(weft_chip_code *code, weft_text *text, const int64_t *values, uint64_t count, int64_t last,
                         bool ring);
/** Appends a placeholder for a tensor's size. */
void weft_codegen_size(weft_chip_code *code, weft_text *text, uint64_t rows, uint64_t cols);
/** The chip's slot for a tensor, given out in order of first use. */
int64_t weft_codegen_slot(weft_chip_code *code, uint32_t tensor);
/** Slots that may be given out: tensors and values. */
uint64_t weft_codegen_most_slots(const weft_chip_code *code);
/** The slot of a value: its tensor's, or one of its own. */
int64_t weft_codegen_value_slot(weft_chip_code *code, uint32_t value);
/** A placeholder for a name without its "@chip" ending. */
void weft_codegen_name(weft_chip_code *code, weft_text *text, const char *name);
/** Marks of placeholders: a mark, a number, PLACE_END. PLACE_ROWS alone stands before and after the tensor table. */
enum { PLACE_PARAMETER = 1, PLACE_END = 2, PLACE_NAME = 3, PLACE_SECTION = 4, PLACE_ROWS = 5 };
void weft_codegen_place(weft_text *text, char mark, uint64_t number);
/** A list of slots, ended by -1. */
void weft_codegen_slot_list(weft_text *text, const int64_t *slots, uint64_t count);
/** A weft_abi_step's row: reads and writes are slots. */
void weft_codegen_step(weft_chip_code *code, const char *kind, const char *name, const char *target,
                       const int64_t *reads, uint64_t read_count, const int64_t *writes, uint64_t write_count,
                       double flops);
/** The collective whose nodes are exactly these tensors of the chip. */
const weft_collective *weft_codegen_find_collective(const weft_chip_code *code, const weft_graph_op *op);
/** Every collective that has the node; NULL when there is none. */
const weft_collective_node *weft_codegen_find_node(const weft_collectives *collectives, const char *name,
                                                   uint64_t *count);
/** Appends the fields of an epilogue on a line of their own; nothing when the chain is empty. */
void weft_codegen_epilogue(weft_chip_code *code, weft_text *text, const char *indent, const uint32_t *chain,
                           uint32_t chain_count);

/* Slots of a section (emit_section.c). */
bool weft_codegen_slots_new(weft_chip_code *code, weft_slot_set *set);
void weft_codegen_slots_clear(weft_slot_set *set);
/** Where the slot stands in the set, to which it is added. */
uint64_t weft_codegen_slots_add(weft_slot_set *set, int64_t slot);
bool weft_codegen_slots_have(const weft_slot_set *set, int64_t slot);
/** Opens the body of a function: what is placed from here on belongs to it. */
void weft_codegen_open(weft_chip_code *code);
/** Closes it and adds its step; an empty body is dropped. `body` is taken over. */
void weft_codegen_close(weft_chip_code *code, weft_text *body, const char *name, double flops);

/** Sections of one class that share a function (functions.c). */
typedef struct weft_function {
  uint32_t *sections; /**< ascending */
  uint32_t count;
  int64_t *column_of; /**< by parameter: its place in the step's part of the row, -1: printed as a constant */
  uint64_t columns;
} weft_function;

/** Groups the sections of a class, whose chips are `chips`. `function_of` is by section. */
weft_status weft_codegen_group_sections(const weft_chip_code *codes, const uint32_t *chips, uint32_t chip_count,
                                        weft_arena *arena, weft_function **functions, uint32_t *count,
                                        uint32_t **function_of, weft_diag *diag);

/** Groups chips by text; writes class files, program.c, program.h, mains, build.ninja. */
weft_status weft_codegen_write(weft_chip_code *codes, uint32_t chips, const char *directory,
                               const weft_codegen_options *options, weft_codegen_report *report, weft_diag *diag);
/** build.ninja. */
weft_status weft_codegen_write_ninja(const char *directory, uint32_t classes, bool walks,
                                     const weft_codegen_options *options, weft_diag *diag);

#endif
