/* weft/mlir.h: MLIR text: reading, holding, building and printing modules of any dialect.
 *
 * The core knows the builtin types and attributes and no op: dialects register theirs, one table each
 * (weft_mlir_dialect); the ops of what is not registered are kept in generic form, its types and attributes as text.
 * Everything read is bounded: at most WEFT_MLIR_DEPTH levels of nesting, sizes in 32 or 64 bits, and any bytes end in a
 * message, never in a crash.
 *
 * Ownership: a context owns names, types and attributes, which are made once each and compared by address. A
 * weft_mlir_file owns the ops of what was parsed; ops built by hand live in the arena they were given. A context must
 * outlive its ops. Not thread-safe: one context a thread. Source: MLIR language reference (LLVM 19 to 22). */
#ifndef WEFT_MLIR_H
#define WEFT_MLIR_H

#include "weft/base.h"

/** Most levels of regions, types, attributes and affine expressions inside each other. */
#define WEFT_MLIR_DEPTH 500
/** An extent that is not known: the `?` of memref<?xi32>. */
#define WEFT_MLIR_DYNAMIC INT64_MIN

typedef struct weft_mlir_context weft_mlir_context;
typedef struct weft_mlir_type weft_mlir_type;
typedef struct weft_mlir_attribute weft_mlir_attribute;
typedef struct weft_mlir_value weft_mlir_value;
typedef struct weft_mlir_op weft_mlir_op;
typedef struct weft_mlir_block weft_mlir_block;
typedef struct weft_mlir_region weft_mlir_region;
typedef struct weft_mlir_op_spec weft_mlir_op_spec;
typedef struct weft_mlir_dialect weft_mlir_dialect;
typedef struct weft_mlir_parser weft_mlir_parser;
typedef struct weft_mlir_printer weft_mlir_printer;

/* ---- types ---------------------------------------------------------------------------------------------------- */

typedef enum weft_mlir_type_kind {
  WEFT_MLIR_INTEGER_TYPE,
  WEFT_MLIR_INDEX_TYPE,
  WEFT_MLIR_FLOAT_TYPE,
  WEFT_MLIR_NONE_TYPE,
  WEFT_MLIR_FUNCTION_TYPE,
  WEFT_MLIR_MEMREF_TYPE,
  WEFT_MLIR_TENSOR_TYPE,
  WEFT_MLIR_VECTOR_TYPE,
  WEFT_MLIR_COMPLEX_TYPE,
  WEFT_MLIR_TUPLE_TYPE,
  WEFT_MLIR_DIALECT_TYPE, /**< `name` is "dialect.mnemonic"; parameters of a registered type, body text of another */
} weft_mlir_type_kind;

typedef enum weft_mlir_sign { WEFT_MLIR_SIGNLESS, WEFT_MLIR_SIGNED, WEFT_MLIR_UNSIGNED } weft_mlir_sign;

struct weft_mlir_type {
  weft_mlir_type_kind kind;
  uint32_t width;                    /**< bits of an integer or a float */
  weft_mlir_sign sign;               /**< of an integer */
  bool unranked;                     /**< memref<*xT>, tensor<*xT> */
  uint32_t rank;                     /**< of a shaped type */
  uint32_t input_count;              /**< function inputs or tuple elements */
  uint32_t result_count;             /**< function results */
  uint32_t parameter_count;          /**< of a registered dialect type */
  const char *name;                  /**< "i32", "bf16", "dataflow.channel"; NULL for the rest */
  const weft_mlir_type *element;     /**< of a shaped or complex type */
  const int64_t *extents;            /**< `rank` of them, WEFT_MLIR_DYNAMIC where not known */
  const bool *scalable;              /**< of a vector with [n] extents, else NULL */
  const weft_mlir_attribute *layout; /**< a memref's layout or a tensor's encoding; NULL when there is none */
  const weft_mlir_attribute *memory_space;
  const weft_mlir_type *const *inputs;
  const weft_mlir_type *const *results;
  const weft_mlir_attribute *const *parameters;
  const char *body; /**< text between < and > of a type whose dialect is not registered; NULL without < */
};

const weft_mlir_type *weft_mlir_integer(weft_mlir_context *context, uint32_t width, weft_mlir_sign sign);
const weft_mlir_type *weft_mlir_index(weft_mlir_context *context);
const weft_mlir_type *weft_mlir_none(weft_mlir_context *context);
/** "f32", "bf16", "f8E4M3FN"...; NULL when no float type is called so. */
const weft_mlir_type *weft_mlir_float(weft_mlir_context *context, const char *name);
/** The type equal to `*shape`, whose arrays are copied. The one way to make function, shaped, tuple and dialect types.
 */
const weft_mlir_type *weft_mlir_type_get(weft_mlir_context *context, const weft_mlir_type *shape);
const weft_mlir_type *weft_mlir_function(weft_mlir_context *context, const weft_mlir_type *const *inputs,
                                         uint32_t input_count, const weft_mlir_type *const *results,
                                         uint32_t result_count);
/** The dialect type `name` ("dataflow.channel") with one type parameter or, when `parameter` is NULL, none. */
const weft_mlir_type *weft_mlir_dialect_type(weft_mlir_context *context, const char *name,
                                             const weft_mlir_type *parameter);
bool weft_mlir_is_integer(const weft_mlir_type *type, uint32_t width);
/** Elements of a shaped type; false when an extent is dynamic or the product leaves 64 bits. */
bool weft_mlir_elements(const weft_mlir_type *type, uint64_t *count);

/* ---- attributes ----------------------------------------------------------------------------------------------- */

typedef enum weft_mlir_attribute_kind {
  WEFT_MLIR_UNIT,
  WEFT_MLIR_INTEGER, /**< `type` tells its width; true and false are i1 */
  WEFT_MLIR_FLOAT,   /**< bits in the format of `type` */
  WEFT_MLIR_STRING,  /**< `type` NULL, or that of a typed string */
  WEFT_MLIR_TYPE,
  WEFT_MLIR_ARRAY,
  WEFT_MLIR_DICTIONARY, /**< sorted by name */
  WEFT_MLIR_SYMBOL,     /**< @root::@nested */
  WEFT_MLIR_AFFINE_MAP,
  WEFT_MLIR_DENSE_ARRAY, /**< array<i32: 1, 2>; `type` is the element's */
  WEFT_MLIR_DENSE,       /**< dense<...> : tensor type; elements as bytes, i1 one byte each */
  WEFT_MLIR_DIALECT,     /**< #name<parameters> of a registered attribute, or #name<body> of another */
  WEFT_MLIR_OPAQUE,      /**< builtin text kept as it stands: affine_set, strided, dense_resource, sparse, loc */
} weft_mlir_attribute_kind;

/** A name and its value, the name made by weft_mlir_intern. */
typedef struct weft_mlir_named {
  const char *name;
  const weft_mlir_attribute *value;
} weft_mlir_named;

typedef struct weft_mlir_affine_map weft_mlir_affine_map;

struct weft_mlir_attribute {
  weft_mlir_attribute_kind kind;
  uint32_t count; /**< items of ARRAY, DICTIONARY, SYMBOL, DIALECT */
  const weft_mlir_type *type;
  const struct weft_mlir_attribute_spec *spec; /**< of a registered DIALECT attribute; set by weft_mlir_attribute_get */
  union {
    int64_t integer;
    uint64_t bits; /**< of a float, in its own format */
    struct {
      const char *data; /**< NUL-terminated after `length` bytes, which may hold NULs */
      uint64_t length;
    } string; /**< STRING, OPAQUE */
    const weft_mlir_type *type_value;
    const weft_mlir_attribute *const *items;
    const weft_mlir_named *members;
    const char *const *path;
    const weft_mlir_affine_map *map;
    struct {
      const void *data;
      uint64_t elements; /**< 1 when it is a splat */
      uint32_t element_bytes;
      bool splat;
    } dense; /**< DENSE, DENSE_ARRAY; integers little-endian */
    struct {
      const char *name;
      const char *body; /**< NULL when structured or without < > */
      const weft_mlir_attribute *const *items;
    } dialect;
  } as;
};

const weft_mlir_attribute *weft_mlir_unit(weft_mlir_context *context);
const weft_mlir_attribute *weft_mlir_bool(weft_mlir_context *context, bool value);
const weft_mlir_attribute *weft_mlir_integer_attribute(weft_mlir_context *context, const weft_mlir_type *type,
                                                       int64_t value);
/** Rounded once to the float type. */
const weft_mlir_attribute *weft_mlir_float_attribute(weft_mlir_context *context, const weft_mlir_type *type,
                                                     double value);
const weft_mlir_attribute *weft_mlir_float_bits(weft_mlir_context *context, const weft_mlir_type *type, uint64_t bits);
/** The bits of `value` rounded once to the float type; false for a type without arithmetic here (f80, f128, f6, f4). */
bool weft_mlir_float_round(const weft_mlir_type *type, double value, uint64_t *bits);
/** The value of FLOAT, or of a float's `bits`, widened. */
double weft_mlir_float_value(const weft_mlir_type *type, uint64_t bits);
const weft_mlir_attribute *weft_mlir_string(weft_mlir_context *context, const char *text, uint64_t length);
const weft_mlir_attribute *weft_mlir_type_attribute(weft_mlir_context *context, const weft_mlir_type *type);
const weft_mlir_attribute *weft_mlir_array(weft_mlir_context *context, const weft_mlir_attribute *const *items,
                                           uint32_t count);
/** Sorts by name; of equal names the last one stays. */
const weft_mlir_attribute *weft_mlir_dictionary(weft_mlir_context *context, const weft_mlir_named *members,
                                                uint32_t count);
const weft_mlir_attribute *weft_mlir_symbol(weft_mlir_context *context, const char *name);
/** array<i32: ...> for element width 32, array<i64: ...> for 64. */
const weft_mlir_attribute *weft_mlir_dense_array(weft_mlir_context *context, uint32_t width, const int64_t *values,
                                                 uint32_t count);
/** The attribute equal to `*shape`, whose arrays and bytes are copied. */
const weft_mlir_attribute *weft_mlir_attribute_get(weft_mlir_context *context, const weft_mlir_attribute *shape);
/** Element `index` of DENSE or DENSE_ARRAY; a splat has one for all. */
int64_t weft_mlir_dense_integer(const weft_mlir_attribute *attribute, uint64_t index);
double weft_mlir_dense_float(const weft_mlir_attribute *attribute, uint64_t index);
/** Member of a DICTIONARY, or NULL; `dictionary` may be NULL. */
const weft_mlir_attribute *weft_mlir_member(const weft_mlir_attribute *dictionary, const char *name);

/** The one copy of a text in this context. */
const char *weft_mlir_intern(weft_mlir_context *context, const char *text, size_t length);

/* ---- affine maps ---------------------------------------------------------------------------------------------- */

typedef enum weft_mlir_affine_kind {
  WEFT_MLIR_AFFINE_CONSTANT,
  WEFT_MLIR_AFFINE_DIM,
  WEFT_MLIR_AFFINE_SYMBOL,
  WEFT_MLIR_AFFINE_ADD,
  WEFT_MLIR_AFFINE_MUL,
  WEFT_MLIR_AFFINE_MOD,
  WEFT_MLIR_AFFINE_FLOORDIV,
  WEFT_MLIR_AFFINE_CEILDIV,
} weft_mlir_affine_kind;

typedef struct weft_mlir_affine {
  weft_mlir_affine_kind kind;
  int64_t value; /**< the constant, or the number of the dim or symbol */
  const struct weft_mlir_affine *left, *right;
} weft_mlir_affine;

struct weft_mlir_affine_map {
  uint32_t dims, symbols, results;
  const weft_mlir_affine *const *expressions;
};

/** The map's `results` values at a point (dims, then symbols); false on division by zero or overflow. */
bool weft_mlir_affine_evaluate(const weft_mlir_affine_map *map, const int64_t *point, int64_t *values);
/** Whether it is (d0, d1...) -> (d0, d1...). */
bool weft_mlir_affine_is_identity(const weft_mlir_affine_map *map);

/* ---- ops, blocks, regions ------------------------------------------------------------------------------------- */

typedef struct weft_mlir_op_name {
  const char *text;              /**< "arith.addi" */
  const weft_mlir_op_spec *spec; /**< NULL when no dialect registered it */
} weft_mlir_op_name;

struct weft_mlir_value {
  const weft_mlir_type *type;
  void *owner; /**< the op whose result, or the block whose argument it is */
  uint32_t index : 31;
  uint32_t is_argument : 1;
  uint32_t mark; /**< scratch of whoever walks the ops: a number for a table beside */
};

/** What most ops have not. */
typedef struct weft_mlir_op_extra {
  weft_mlir_region *regions;
  weft_mlir_block **successors;
  uint32_t *successor_operands; /**< how many trailing operands each successor takes */
  const weft_mlir_attribute *location;
} weft_mlir_op_extra;

struct weft_mlir_op {
  const weft_mlir_op_name *name;
  weft_mlir_block *block;
  weft_mlir_op *previous, *next;
  const weft_mlir_attribute *properties; /**< inherent attributes: a dictionary, or NULL when there are none */
  const weft_mlir_attribute *attributes; /**< discardable attributes, the same way */
  weft_mlir_value **operands;
  weft_mlir_op_extra *extra; /**< NULL without regions, successors and location */
  uint32_t operand_count, result_count;
  uint16_t region_count, successor_count;
  uint32_t mark; /**< scratch, as in weft_mlir_value */
  uint32_t line, column;
  weft_mlir_value results[];
};

struct weft_mlir_block {
  weft_mlir_region *region;
  weft_mlir_block *previous, *next;
  weft_mlir_op *first, *last;
  weft_mlir_value *arguments;
  uint32_t argument_count;
  uint32_t mark;
};

struct weft_mlir_region {
  weft_mlir_op *op;
  weft_mlir_block *first, *last;
};

/** The op's code in its dialect's table, 0 when it is not registered. */
uint32_t weft_mlir_code(const weft_mlir_op *op);
weft_mlir_region *weft_mlir_op_region(const weft_mlir_op *op, uint32_t index);
/** The only block of region `index`; NULL when the region has none or several. */
weft_mlir_block *weft_mlir_op_block(const weft_mlir_op *op, uint32_t index);
/** The op that holds this one, or NULL. */
weft_mlir_op *weft_mlir_parent(const weft_mlir_op *op);
/** The op that made a value, or NULL for a block argument. */
weft_mlir_op *weft_mlir_defining_op(const weft_mlir_value *value);
weft_mlir_block *weft_mlir_value_block(const weft_mlir_value *value);
/** Looks among the properties first, then among the attributes. NULL when there is none. */
const weft_mlir_attribute *weft_mlir_attribute_of(const weft_mlir_op *op, const char *name);
/** A string or root symbol attribute's text, an integer's value, a dense array's element; `otherwise` when missing. */
const char *weft_mlir_attribute_text(const weft_mlir_op *op, const char *name, const char *otherwise);
int64_t weft_mlir_attribute_integer(const weft_mlir_op *op, const char *name, int64_t otherwise);
/** `sym_name`, or "". */
const char *weft_mlir_symbol_name(const weft_mlir_op *op);
/** The op called `name` directly inside region 0 of `module`, or NULL. */
weft_mlir_op *weft_mlir_lookup(const weft_mlir_op *module, const char *name);
weft_place weft_mlir_place(const char *file, const weft_mlir_op *op);
/** The next op in pre-order below `root`, `root` itself first when `op` is NULL; NULL at the end. */
weft_mlir_op *weft_mlir_next(const weft_mlir_op *root, const weft_mlir_op *op);

/* ---- building ------------------------------------------------------------------------------------------------- */

/** Everything of a new op; arrays are copied. */
typedef struct weft_mlir_op_parts {
  const weft_mlir_op_name *name;
  weft_mlir_value *const *operands;
  const weft_mlir_type *const *result_types;
  const weft_mlir_attribute *properties, *attributes, *location;
  weft_mlir_block *const *successors;
  const uint32_t *successor_operands;
  uint32_t operand_count, result_count, region_count, successor_count;
  uint32_t line, column;
} weft_mlir_op_parts;

/** The name, with its spec when a dialect registered it. NULL when memory is exhausted. */
const weft_mlir_op_name *weft_mlir_name(weft_mlir_context *context, const char *text, size_t length);
/** A detached op; NULL when memory is exhausted. */
weft_mlir_op *weft_mlir_op_new(weft_arena *arena, const weft_mlir_op_parts *parts);
/** A new last block of the region. */
weft_mlir_block *weft_mlir_block_new(weft_arena *arena, weft_mlir_region *region,
                                     const weft_mlir_type *const *argument_types, uint32_t argument_count);
/** Puts a detached op before `before`, or last when it is NULL. */
void weft_mlir_insert(weft_mlir_block *block, weft_mlir_op *op, weft_mlir_op *before);
/** Takes the op out of its block; its uses are the caller's concern. */
void weft_mlir_remove(weft_mlir_op *op);
/** Sets or, with a NULL value, drops one attribute: among the properties when the spec names it, else the attributes.
 */
void weft_mlir_set(weft_mlir_context *context, weft_mlir_op *op, const char *name, const weft_mlir_attribute *value);
/** A deep copy in `arena`. Operands defined outside are kept. Uses the marks of the values below `op`. */
weft_mlir_op *weft_mlir_clone(weft_arena *arena, weft_mlir_op *op);
/** An empty builtin.module. */
weft_mlir_op *weft_mlir_module_new(weft_mlir_context *context, weft_arena *arena);

/* ---- dialects ------------------------------------------------------------------------------------------------- */

/** Traits of an op. */
enum {
  WEFT_MLIR_TERMINATOR = 1, /**< ends its block */
  WEFT_MLIR_ISOLATED = 2,   /**< its regions see no value from outside */
  WEFT_MLIR_PURE = 4,       /**< no effects; may be dropped when unused */
  WEFT_MLIR_GRAPH = 8,      /**< order of ops in its regions means nothing: a value may be used above its definition */
  WEFT_MLIR_IMPLICIT_END = 16,     /**< a region's last op may be left out; `implicit` names it */
  WEFT_MLIR_OPERAND_SEGMENTS = 32, /**< needs operandSegmentSizes adding up to the operands */
  WEFT_MLIR_RESULT_SEGMENTS = 64,  /**< needs resultSegmentSizes adding up to the results */
  WEFT_MLIR_ONE_REGION = 128,      /**< an implicit terminator that has a region of one empty block */
};

typedef struct weft_mlir_state weft_mlir_state;

/** One op of a dialect. The custom form is `format`, or the two functions, or absent: then only the generic form
 * exists.
 *
 * A format describes operands, literals and types, and, after a bar, the type of each operand and result:
 *   "%0, %1 attr-dict : T | T T -> T"             arith.muli %a, %b : i32
 *   "%0 [ %1... ] attr-dict : T | T index... -> elem(T)"
 * %N is one operand, %N... all operands from N on; T U V are types written in the text; `fn` is a functional type of
 * all operands and results; `same-or-fn` one type for all, or a functional type when they differ; ?word stands for a
 * unit property of that name written as the word (?exact=isExact when the property has another name); flags(name,prop)
 * is name<...>, kept in property prop; other words and punctuation stand for themselves. Type rules: T, elem(T),
 * param(T) (the type parameter of a dialect type), i1, index, none, i64;
 * `...` repeats the last of the operands or results. A rule without a bar leaves types to `fn`. */
struct weft_mlir_op_spec {
  const char *name; /**< "arith.addi" */
  uint32_t code;    /**< not 0, unique among the dialects registered together */
  uint32_t traits;
  const char *inherent; /**< inherent attributes, space-separated; "name=default" has a default in attribute syntax */
  const char *format;
  bool (*parse)(weft_mlir_parser *parser, weft_mlir_state *state);
  void (*print)(weft_mlir_printer *printer, const weft_mlir_op *op);
  /** Rules beyond the format's; adds to diag and returns false. May be NULL. `file` names the text in places. */
  bool (*verify)(const weft_mlir_op *op, const char *file, weft_diag *diag);
  const char *implicit; /**< with WEFT_MLIR_IMPLICIT_END */
  /** With WEFT_MLIR_GRAPH: whether the order of this op's one block means something after all. May be NULL: never. */
  bool (*ordered)(const weft_mlir_op *op);
};

/** One type of a dialect. Without functions its parameters are attributes or types between < and >. */
typedef struct weft_mlir_type_spec {
  const char *name;    /**< "dataflow.channel" */
  uint32_t parameters; /**< how many; UINT32_MAX any number */
} weft_mlir_type_spec;

/** One attribute of a dialect. With functions the parameters are in the dialect's own syntax: `parse` is called after
 * the mnemonic, before any <; it makes a WEFT_MLIR_DIALECT attribute of this name; `print` writes what follows the
 * name. Without them the parameters are attributes between < and >, words standing for strings. */
typedef struct weft_mlir_attribute_spec {
  const char *name; /**< "sdy.sharding" */
  bool (*parse)(weft_mlir_parser *parser, const char *name, const weft_mlir_attribute **attribute);
  void (*print)(weft_mlir_printer *printer, const weft_mlir_attribute *attribute);
} weft_mlir_attribute_spec;

struct weft_mlir_dialect {
  const char *name; /**< "arith" */
  const weft_mlir_op_spec *ops;
  size_t op_count;
  const weft_mlir_type_spec *types;
  size_t type_count;
  const weft_mlir_attribute_spec *attributes;
  size_t attribute_count;
};

weft_mlir_context *weft_mlir_context_new(void);
void weft_mlir_context_free(weft_mlir_context *context);
/** Registers a dialect, whose tables must outlive the context. WEFT_USAGE when a format is wrong or a name comes twice.
 */
weft_status weft_mlir_register(weft_mlir_context *context, const weft_mlir_dialect *dialect, weft_diag *diag);
/** builtin, func, arith, math, memref and scf (weft/mlir_standard.h). */
weft_status weft_mlir_register_standard(weft_mlir_context *context, weft_diag *diag);

/* ---- reading and printing ------------------------------------------------------------------------------------- */

/** The modules of one text: one, or several split by lines `// -----`. Ops outside a builtin.module get one around
 * them. */
typedef struct weft_mlir_file {
  weft_mlir_context *context;
  weft_arena *arena; /**< owns the ops, and is free for passes that add to them */
  const char *name;
  weft_mlir_op **modules;
  uint64_t module_count;
} weft_mlir_file;

/** Reads `length` bytes followed by a NUL, stopping at the first fault: WEFT_INVALID with line, column, what was
 * expected and the line with a caret. `name` is copied. Verifies unless `unverified`. `*file` is freed by
 * weft_mlir_file_free. */
weft_status weft_mlir_parse(weft_mlir_context *context, const char *name, const char *text, size_t length,
                            bool unverified, weft_mlir_file **file, weft_diag *diag);
/** weft_read_file and weft_mlir_parse. */
weft_status weft_mlir_read(weft_mlir_context *context, const char *path, weft_mlir_file **file, weft_diag *diag);
void weft_mlir_file_free(weft_mlir_file *file);

/** A builtin type from its text ("i32", "memref<?xf32>"), or NULL. */
const weft_mlir_type *weft_mlir_type_from_text(weft_mlir_context *context, const char *text);

/** SSA order in all but graph regions, terminators, segments, types against formats, symbols defined once, and each
 * op's own rules. Reports all it finds. */
weft_status weft_mlir_verify(const weft_mlir_op *op, const char *file, weft_diag *diag);

typedef struct weft_mlir_print_options {
  bool generic;   /**< the generic form of every op */
  bool locations; /**< with loc(...) where it is known */
} weft_mlir_print_options;

/** Takes printed bytes in pieces; false stops the printing. */
typedef bool (*weft_mlir_write)(void *context, const char *bytes, size_t length);

/** Prints an op and a line break. Values are numbered anew in each op directly inside a module. Uses value and block
 * marks. WEFT_UNAVAILABLE when `write` or memory failed. */
weft_status weft_mlir_print(weft_mlir_op *op, weft_mlir_print_options options, weft_mlir_write write, void *context);
/** The same, appended to a text. */
void weft_mlir_print_to_text(weft_mlir_op *op, weft_mlir_print_options options, weft_text *text);
/** All modules of a file, split by `// -----`. */
void weft_mlir_print_file(const weft_mlir_file *file, weft_mlir_print_options options, weft_text *text);
void weft_mlir_type_text(const weft_mlir_type *type, weft_text *text);
void weft_mlir_attribute_print(const weft_mlir_attribute *attribute, weft_text *text);

/** Whether two ops are the same but for names of values, places and default-valued properties. The first difference is
 * described in `*why` (may be NULL) in the arena. Uses the marks of both. */
bool weft_mlir_equal(weft_mlir_op *a, weft_mlir_op *b, weft_arena *arena, const char **why);

/* ---- for custom forms: parsing -------------------------------------------------------------------------------- */
/* All return false after recording one error; a hook returns false at once then. Hooks run after the op's name was
 * read. */

/** A use of a value by name, its type not known yet. */
typedef struct weft_mlir_operand {
  uint32_t name;   /**< of the parser's table */
  uint32_t number; /**< the n of %name#n, UINT32_MAX without */
  uint32_t line, offset;
} weft_mlir_operand;

/** A block argument being declared. */
typedef struct weft_mlir_argument {
  weft_mlir_operand name;
  const weft_mlir_type *type;
  const weft_mlir_attribute *attributes; /**< a dictionary, or NULL */
} weft_mlir_argument;

weft_mlir_context *weft_mlir_parser_context(weft_mlir_parser *parser);
/** Temporary memory until the outermost parse ends. */
weft_arena *weft_mlir_parser_scratch(weft_mlir_parser *parser);
/** Fails with a message at the current token. */
bool weft_mlir_fail(weft_mlir_parser *parser, const char *format, ...) WEFT_PRINTF(2, 3);
/** Takes the token if it is this punctuation or word ("->", "(", "to"). */
bool weft_mlir_try(weft_mlir_parser *parser, const char *token);
bool weft_mlir_expect(weft_mlir_parser *parser, const char *token);
/** Whether the next token is this one, without taking it. */
bool weft_mlir_at(weft_mlir_parser *parser, const char *token);
bool weft_mlir_at_operand(weft_mlir_parser *parser);
bool weft_mlir_at_symbol(weft_mlir_parser *parser);
/** Any bare word, interned. */
bool weft_mlir_parse_word(weft_mlir_parser *parser, const char **word);
bool weft_mlir_parse_integer(weft_mlir_parser *parser, int64_t *value);
bool weft_mlir_parse_string(weft_mlir_parser *parser, const char **text, uint64_t *length);
/** @name, without the @. */
bool weft_mlir_parse_symbol(weft_mlir_parser *parser, const char **name);
bool weft_mlir_parse_type(weft_mlir_parser *parser, const weft_mlir_type **type);
/** `type` is the type a bare number gets, or NULL: then it reads its own (`1 : i32`). */
bool weft_mlir_parse_attribute(weft_mlir_parser *parser, const weft_mlir_type *type,
                               const weft_mlir_attribute **attribute);
/** One operand use; several with commas between, up to the first token that is none (the count may be 0). */
bool weft_mlir_parse_operand(weft_mlir_parser *parser, weft_mlir_operand *operand);
bool weft_mlir_parse_operands(weft_mlir_parser *parser, weft_mlir_operand **operands, uint32_t *count);
/** Comma-separated types up to the first token that starts none; "(...)" or one type after ->. */
bool weft_mlir_parse_types(weft_mlir_parser *parser, const weft_mlir_type ***types, uint32_t *count);
bool weft_mlir_parse_results(weft_mlir_parser *parser, const weft_mlir_type ***types, uint32_t *count);
/** (types) -> results. */
bool weft_mlir_parse_functional(weft_mlir_parser *parser, const weft_mlir_type ***inputs, uint32_t *input_count,
                                const weft_mlir_type ***results, uint32_t *result_count);
/** {name = value...} when it is there, or after the word `attributes`. */
bool weft_mlir_parse_attr_dict(weft_mlir_parser *parser, weft_mlir_state *state);
bool weft_mlir_parse_attr_dict_keyword(weft_mlir_parser *parser, weft_mlir_state *state);
/** The word and <...> of an attribute such as arith.overflow: overflow<nsw> is #arith.overflow<nsw>. */
bool weft_mlir_parse_flags(weft_mlir_parser *parser, const char *name, const weft_mlir_attribute **flags);
/** The use of a value of a known type becomes the op's next operand. */
bool weft_mlir_add_operand(weft_mlir_parser *parser, weft_mlir_state *state, weft_mlir_operand operand,
                           const weft_mlir_type *type);
bool weft_mlir_add_result(weft_mlir_parser *parser, weft_mlir_state *state, const weft_mlir_type *type);
bool weft_mlir_add_attribute(weft_mlir_parser *parser, weft_mlir_state *state, const char *name,
                             const weft_mlir_attribute *value);
/** Whether an attribute of this name was added or read before. */
bool weft_mlir_has_attribute(const weft_mlir_state *state, const char *name);
/** One %name [: type] [{attributes}]. */
bool weft_mlir_parse_argument(weft_mlir_parser *parser, bool with_type, weft_mlir_argument *argument);
/** { ... }: the op's next region. With arguments given, they are the entry block's and no label is expected. */
bool weft_mlir_parse_region(weft_mlir_parser *parser, weft_mlir_state *state, const weft_mlir_argument *arguments,
                            uint32_t count);
/** The same into region `index`, which weft_mlir_add_region made before. */
bool weft_mlir_parse_region_into(weft_mlir_parser *parser, weft_mlir_state *state, uint32_t index,
                                 const weft_mlir_argument *arguments, uint32_t count);
/** An empty region. */
bool weft_mlir_add_region(weft_mlir_parser *parser, weft_mlir_state *state);

/* ---- for custom forms: printing ------------------------------------------------------------------------------- */

void weft_mlir_put(weft_mlir_printer *printer, const char *text);
void weft_mlir_putf(weft_mlir_printer *printer, const char *format, ...) WEFT_PRINTF(2, 3);
void weft_mlir_put_value(weft_mlir_printer *printer, const weft_mlir_value *value);
/** Values from `begin` up to `end`, commas between. */
void weft_mlir_put_operands(weft_mlir_printer *printer, const weft_mlir_op *op, uint32_t begin, uint32_t end);
void weft_mlir_put_type(weft_mlir_printer *printer, const weft_mlir_type *type);
/** Types of the operands from `begin` up to `end`, or of all results. */
void weft_mlir_put_operand_types(weft_mlir_printer *printer, const weft_mlir_op *op, uint32_t begin, uint32_t end);
void weft_mlir_put_result_types(weft_mlir_printer *printer, const weft_mlir_op *op);
/** (operands) -> results. */
void weft_mlir_put_functional(weft_mlir_printer *printer, const weft_mlir_op *op);
void weft_mlir_put_attribute(weft_mlir_printer *printer, const weft_mlir_attribute *attribute);
/** The same without a trailing `: type`. */
void weft_mlir_put_attribute_untyped(weft_mlir_printer *printer, const weft_mlir_attribute *attribute);
/** @name, quoted where needed. */
void weft_mlir_put_symbol(weft_mlir_printer *printer, const char *name);
/** " {...}" of all attributes but those named in `elided` (space-separated) and defaults; nothing when none is left.
 * `keyword` writes " attributes {...}". */
void weft_mlir_put_attr_dict(weft_mlir_printer *printer, const weft_mlir_op *op, const char *elided, bool keyword);
/** "{ ... }". Arguments of the entry block are written as a label only when `arguments`; the terminator only when
 * `terminator`. */
void weft_mlir_put_region(weft_mlir_printer *printer, const weft_mlir_region *region, bool arguments, bool terminator);

#endif
