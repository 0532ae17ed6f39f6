/* A structured program as a list of instructions over numbered slots. */
#ifndef WEFT_DATAFLOW_RUN_INTERPRET_PRIVATE_H
#define WEFT_DATAFLOW_RUN_INTERPRET_PRIVATE_H

#include "compute.h"

/* What an instruction does; a, b, c, d are slots, instructions to go to, or positions in a table, as said. */
typedef enum instruction_kind {
  DO_COMPUTE,  /* a = computes[d](list[b...]) */
  DO_CONSTANT, /* a = words[d] */
  DO_LOAD,     /* a = accesses[d] of buffer b at list[c...] */
  DO_STORE,    /* accesses[d] of buffer b at list[c...] = a */
  DO_COPY,     /* all of buffer a to buffer b */
  DO_ALLOCATE, /* a = the buffer allocations[d], of extents list[b...] */
  DO_MOVE,     /* for i < c: list[b + c + i] = list[b + i], all read before any is written */
  DO_JUMP,     /* to a */
  DO_BRANCH,   /* to b when a is false */
  DO_SWITCH,   /* to the target of a in switches[d] */
  DO_FOR,      /* a = lower list[b], counter c from upper list[b + 1] and step list[b + 2]; d: unsigned */
  DO_TEST,     /* to b when counter a has run out, else count */
  DO_NEXT,     /* a += step b, wrapped to d bits */
  DO_SEND,     /* value b into channel a */
  DO_RECEIVE,  /* a = next of channel b */
  DO_LAUNCH,   /* launches[d] */
  DO_END,      /* results are list[b...], c of them */
} instruction_kind;

typedef struct instruction {
  instruction_kind kind;
  uint32_t a, b, c, d;
  const weft_mlir_op *op;
} instruction;

/* How an access finds its word: index i is multiplied by strides[i]; the first extent is checked through the buffer's
 * count. */
typedef struct access {
  uint32_t rank;
  uint64_t strides[WEFT_MOST_RANK];
  uint64_t extents[WEFT_MOST_RANK]; /* UINT64_MAX where only the buffer knows */
} access;

typedef struct allocation {
  const weft_mlir_type *type;
  weft_memory buffer;
  bool made; /* in this launch */
} allocation;

typedef struct switch_table {
  const weft_mlir_attribute *cases;
  uint32_t *targets; /* the default first */
} switch_table;

/* A graph launched by a thread: its machine, made once. */
typedef struct launch {
  const weft_mlir_op *graph;
  weft_simulator *simulator;      /* of a graph of token ops */
  weft_interpreter *interpreter;  /* of a structured one */
  uint32_t inputs, input_count;   /* slots of values, streams and memories, in list */
  uint32_t outputs, output_count; /* slots of output channels */
  uint32_t results, value_count;  /* slots */
  uint32_t memory_count;          /* memory results follow the values: the last memory inputs handed on */
  bool running;
} launch;

struct weft_interpreter {
  weft_arena *arena;
  const weft_mlir_op *entry, *module;
  const char *file;
  instruction *code;
  uint64_t code_count, code_capacity;
  uint32_t *list; /* operand lists of all instructions */
  uint64_t list_count, list_capacity;
  compute *computes;
  uint64_t computes_count, computes_capacity;
  uint64_t *words;
  uint64_t words_count, words_capacity;
  access *accesses;
  uint64_t accesses_count, accesses_capacity;
  allocation *allocations;
  uint64_t allocations_count, allocations_capacity;
  switch_table *switches;
  uint64_t switches_count, switches_capacity;
  launch *launches;
  uint64_t launches_count, launches_capacity;
  weft_binding *slots;  /* a value's slot holds its word, buffer or channel */
  weft_binding *staged; /* for moves */
  uint32_t slot_count;
  uint32_t first_input, input_count; /* slots of the entry's inputs */
  uint64_t at;                       /* the next instruction */
  bool ended;                        /* DO_END was reached */
  uint32_t results, result_count;    /* in list, after DO_END */
  weft_report report;
  weft_text text;
};

/* Fills code and tables from the entry; WEFT_INVALID by name for what cannot run. */
weft_status interpret_compile(weft_interpreter *machine, weft_diag *diag);

#endif
