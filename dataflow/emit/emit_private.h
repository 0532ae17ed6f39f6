/* Emitting C: what the files of this folder share. */
#ifndef WEFT_DATAFLOW_EMIT_PRIVATE_H
#define WEFT_DATAFLOW_EMIT_PRIVATE_H

#include "weft/dataflow.h"

#include <string.h>

/* A C file being written. Values have the variables v<mark>, memories m<mark>, channels c<mark>. */
typedef struct emitter {
  weft_mlir_context *context;
  weft_arena *scratch;
  weft_text *out;
  weft_diag *diag;
  const char *file;
  weft_status status;
  const weft_mlir_op *module;
  uint32_t indent;
  const char *env; /* prefix of names that are the entry's own: "" */
} emitter;

/* How values of a type are held in C. */
typedef struct c_type {
  const char *name; /* int32_t, uint8_t, float... */
  const char *unsigned_name;
  bool floating, narrow; /* narrow: f16, bf16, held as bits */
  bool odd;              /* an integer width without a C type: int64_t, wrapped after each op */
  uint32_t width;
} c_type;

/* False for types that tokens cannot have. `none` has no C type: name is NULL. */
bool emit_type(const weft_mlir_type *type, c_type *c);
bool emit_refuse(emitter *e, const weft_mlir_op *op, const char *hint, const char *why);
/* The statement of a fault of the op: what it was, after the op's name. In the arena. */
const char *emit_fault(emitter *e, const weft_mlir_op *op, const char *what);
void emit_line(emitter *e, const char *format, ...) WEFT_PRINTF(2, 3);
/* "int32_t v5;" of a value that has a C type. */
void emit_declare(emitter *e, const weft_mlir_value *value);
/* The C expression of a constant, or of a value as a word. */
void emit_constant_text(const weft_mlir_attribute *value, const c_type *type, weft_text *text);
void emit_word_text(const c_type *type, const char *variable, weft_text *text);
/* The same read from a word. */
void emit_from_word_text(const c_type *type, const char *word, weft_text *text);
/* An arith or math op as one assignment, after the checks of its faults; `name` gives the variable of an operand or
 * result. */
typedef void (*emit_namer)(void *context, const weft_mlir_value *value, char *name, size_t size);
bool emit_compute(emitter *e, const weft_mlir_op *op, emit_namer namer, void *context);

/* One entry each: the function's text, without its table row. */
bool emit_structured(emitter *e, const weft_mlir_op *entry, uint32_t number);
bool emit_machine(emitter *e, const weft_mlir_op *graph, uint32_t number);
/* Loops from a token network that came from structured control; false without a message when it did not. */
bool emit_loops(emitter *e, const weft_mlir_op *graph, uint32_t number, bool *possible);
/* Multiplies `count` by an extent of an allocation that is computed; UINT64_MAX when it has no size. */
typedef bool emit_extent(emitter *e, const weft_mlir_op *alloc, const weft_mlir_value *extent);
/* Declares `count`, the elements of an allocation. */
bool emit_count(emitter *e, const weft_mlir_op *alloc, emit_extent *extent);
/* Makes the memories a<mark> of a token graph's allocations; whatever fails on the way, all can be freed. */
bool emit_allocations(emitter *e, const weft_mlir_op *graph);
void emit_head(emitter *e, const weft_mlir_op *entry, uint32_t number);
/* Numbers of inputs by kind. */
typedef struct entry_shape {
  uint32_t values, memories, channels, results;
} entry_shape;
entry_shape emit_shape(const weft_mlir_op *entry);
/* The table of entries with their ports. */
void emit_table(emitter *e, const weft_mlir_op *const *entries, const char *const *forms, uint64_t count);

#endif
