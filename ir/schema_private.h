/* The neutral dump, described once: every struct of weft/ir.h is a shape, and the reader, the writer, the deep copy and
 * the portability check are each one walk over shapes. A field is added to a dump by adding it to its struct and one
 * row to its table in ir/schema*.c.
 *
 * A shape is applied at an address. Offsets inside it are relative to that address, so that a dump may nest what a
 * struct of ours keeps flat: such a shape is applied at the address of the whole struct. */
#ifndef WEFT_IR_SCHEMA_PRIVATE_H
#define WEFT_IR_SCHEMA_PRIVATE_H

#include "weft/ir.h"

typedef enum shape_kind {
  SHAPE_INTEGER,  /* `width` bytes; unsigned up to `most`, or two's complement from -most - 1 to most */
  SHAPE_BOOL,     /* a bool */
  SHAPE_STRING,   /* const char *, in the arena */
  SHAPE_NAME,     /* an enum without data: index into `cases`, `width` bytes */
  SHAPE_STRUCT,   /* an object: `fields` */
  SHAPE_TUPLE,    /* an array of fixed length: `fields`, their keys unused */
  SHAPE_CHOICE,   /* an enum with data: the tag says which of `cases` */
  SHAPE_LIST,     /* { items, uint64_t count }: `inner` elements of `size` bytes */
  SHAPE_PARALLEL, /* items alone; the count is another list's, `offset` bytes from here; NULL: absent */
  SHAPE_SET,      /* uint32_t bits by position in `cases` */
  SHAPE_BOX,      /* a pointer to an `inner` of `size` bytes, never NULL */
  SHAPE_POINTER,  /* an option: the same, or NULL */
  SHAPE_FLAGGED,  /* an option: a bool at `offset`, the value at `inner_offset` */
  SHAPE_OPTION,   /* an option: an unsigned integer of `width` bytes, all ones for null; see `bit` */
  SHAPE_BODY,     /* a weft_body: a tree in the dump, post-order nodes here */
  SHAPE_CHILD,    /* uint32_t: a node of the body being walked */
} shape_kind;

/* How a choice keeps its tag. */
typedef enum tag_kind {
  TAG_FIELD,   /* `width` bytes at `offset` */
  TAG_POINTER, /* case 1 when the pointer at `offset` is not NULL */
  TAG_OPTION, /* case 1 when the uint32_t at `offset` is not WEFT_NONE, or `bit` is set in the byte `max_offset` away */
} tag_kind;

typedef struct shape shape;

enum {
  FIELD_MAY_BE_ABSENT = 1, /* reading: null, empty, or `fallback` */
  FIELD_LEFT_OUT = 2,      /* writing: not written when it has its default */
  FIELD_HIDDEN = 8,        /* in the struct only */
  FIELD_OURS = 4,          /* weft's own, refused by `weft fmt --portable` */
};

typedef struct field {
  const char *key; /* as written: "\"name\": " */
  uint8_t key_length;
  uint8_t flags;
  uint16_t offset;
  uint64_t fallback; /* the default of an integer, name or bool */
  const shape *shape;
} field;

typedef struct shape_case {
  const char *name;
  uint8_t name_length;
  bool ours;
  uint16_t offset;      /* of the data */
  const shape *payload; /* NULL: no data */
} shape_case;

struct shape {
  shape_kind kind;
  tag_kind tag;
  uint8_t width;
  uint8_t bit; /* the max_ids bit of an option */
  bool is_signed;
  bool plain;     /* holds no pointer: copied by copying its bytes */
  uint16_t count; /* fields or cases */
  uint64_t most;
  size_t size;
  ptrdiff_t offset;
  ptrdiff_t inner_offset;
  ptrdiff_t max_offset; /* of the max_ids byte, from the option */
  const char *noun;     /* what a message calls it */
  const shape *inner;
  const field *fields;
  const shape_case *cases;
};

/* ---- macros for tables ---- */

#define FIELD(key_, type_, member_, shape_, ...)                                                                       \
  {                                                                                                                    \
    .key = "\"" key_ "\": ", .key_length = sizeof("\"" key_ "\": ") - 1, .shape = &(shape_),                           \
    .offset = offsetof(type_, member_), __VA_ARGS__                                                                    \
  }
/* A field whose shape is applied at the struct itself. */
#define NESTED(key_, shape_, ...)                                                                                      \
  { .key = "\"" key_ "\": ", .key_length = sizeof("\"" key_ "\": ") - 1, .shape = &(shape_), __VA_ARGS__ }
/* Never in a dump; reading gives it its value. */
#define HIDDEN(type_, member_, shape_, value_)                                                                         \
  {                                                                                                                    \
    .key = "", .shape = &(shape_), .offset = offsetof(type_, member_),                                                 \
    .flags = FIELD_MAY_BE_ABSENT | FIELD_LEFT_OUT | FIELD_HIDDEN, .fallback = (value_)                                 \
  }
#define OPTIONAL .flags = FIELD_MAY_BE_ABSENT
#define LEFT_OUT .flags = FIELD_MAY_BE_ABSENT | FIELD_LEFT_OUT
#define OURS .flags = FIELD_MAY_BE_ABSENT | FIELD_LEFT_OUT | FIELD_OURS

#define UNIT(name_)                                                                                                    \
  { .name = (name_), .name_length = sizeof(name_) - 1 }
#define CASE(name_, payload_, ...)                                                                                     \
  { .name = (name_), .name_length = sizeof(name_) - 1, .payload = &(payload_), __VA_ARGS__ }

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define WIDTH_OF(type_, member_) sizeof(((type_ *)0)->member_)

#define STRUCT(noun_, fields_)                                                                                         \
  { .kind = SHAPE_STRUCT, .noun = (noun_), .fields = (fields_), .count = COUNT_OF(fields_) }
#define PLAIN_STRUCT(noun_, fields_)                                                                                   \
  { .kind = SHAPE_STRUCT, .noun = (noun_), .fields = (fields_), .count = COUNT_OF(fields_), .plain = true }
#define PLAIN_TUPLE(noun_, fields_)                                                                                    \
  { .kind = SHAPE_TUPLE, .noun = (noun_), .fields = (fields_), .count = COUNT_OF(fields_), .plain = true }
#define CHOICE(noun_, cases_, type_, member_)                                                                          \
  {                                                                                                                    \
    .kind = SHAPE_CHOICE, .noun = (noun_), .cases = (cases_), .count = COUNT_OF(cases_),                               \
    .offset = offsetof(type_, member_), .width = WIDTH_OF(type_, member_)                                              \
  }
#define PLAIN_CHOICE(noun_, cases_, type_, member_)                                                                    \
  {                                                                                                                    \
    .kind = SHAPE_CHOICE, .noun = (noun_), .cases = (cases_), .count = COUNT_OF(cases_), .plain = true,                \
    .offset = offsetof(type_, member_), .width = WIDTH_OF(type_, member_)                                              \
  }
#define LIST(element_, type_)                                                                                          \
  { .kind = SHAPE_LIST, .noun = "an array", .inner = &(element_), .size = sizeof(type_) }
#define BOX(inner_, type_)                                                                                             \
  { .kind = SHAPE_BOX, .inner = &(inner_), .size = sizeof(type_) }
#define POINTER(inner_, type_)                                                                                         \
  { .kind = SHAPE_POINTER, .inner = &(inner_), .size = sizeof(type_) }
/* An option kept as a bool beside the value. Applied at the value's struct. */
#define FLAGGED(inner_, type_, flag_, member_)                                                                         \
  {                                                                                                                    \
    .kind = SHAPE_FLAGGED, .inner = &(inner_), .offset = offsetof(type_, flag_),                                       \
    .inner_offset = offsetof(type_, member_)                                                                           \
  }
/* An optional id of the struct `type_`, whose byte `max_` keeps the bit. Applied at the id. */
#define OPTION(type_, member_, max_, bit_)                                                                             \
  {                                                                                                                    \
    .kind = SHAPE_OPTION, .width = WIDTH_OF(type_, member_), .bit = (bit_),                                            \
    .most = WIDTH_OF(type_, member_) == 8 ? UINT64_MAX : UINT32_MAX, .noun = "null or an integer",                     \
    .max_offset = (ptrdiff_t)offsetof(type_, max_) - (ptrdiff_t)offsetof(type_, member_)                               \
  }

#define SCHEMA_CASE(id, name) UNIT(name),
#define NAMES(noun_, cases_, type_)                                                                                    \
  {                                                                                                                    \
    .kind = SHAPE_NAME, .noun = (noun_), .cases = (cases_), .count = COUNT_OF(cases_), .width = sizeof(type_),         \
    .plain = true                                                                                                      \
  }

/* ---- the shapes ---- */

extern const shape weft_schema_program;
extern const shape weft_schema_tensor;
extern const shape weft_schema_stage;
extern const shape weft_schema_compute_op;
extern const shape weft_schema_op;
extern const shape weft_schema_body_node;

/* Shared by the tables. */
extern const shape weft_schema_u8, weft_schema_u16, weft_schema_u32, weft_schema_u64, weft_schema_i32, weft_schema_i64;
extern const shape weft_schema_bool, weft_schema_string;
extern const shape weft_schema_pair, weft_schema_u32_list, weft_schema_site;
extern const shape weft_schema_format, weft_schema_acc_policy, weft_schema_pool, weft_schema_granularity;
extern const shape weft_schema_block_shape, weft_schema_tile_addr, weft_schema_access_pattern, weft_schema_scalar_body,
    weft_schema_op_box;
extern const shape weft_schema_overflow, weft_schema_operand, weft_schema_mem_space;
extern const shape weft_schema_placement, weft_schema_memory_map, weft_schema_schedule;

/* The most bytes an element of a list has. */
#define SCHEMA_ELEMENT_MOST 384

/* An unsigned integer of `width` bytes (1, 2, 4 or 8) in memory. */
uint64_t weft_schema_load(const void *at, unsigned width);
void weft_schema_store(void *at, unsigned width, uint64_t value);
/* A pointer of any type in memory. */
const void *weft_schema_pointer(const void *at);
void weft_schema_set_pointer(void *at, const void *pointer);
/* What the structs call `things` and `thing_count`. */
typedef struct weft_schema_list {
  const void *items;
  uint64_t count;
} weft_schema_list;
/* The tag of the choice at `at`; out of range when the program is malformed. */
uint64_t weft_schema_tag(const shape *s, const void *at);
/* Whether the option at `at` is null. */
bool weft_schema_option_is_null(const shape *s, const void *at);
/* Whether a field has the value that leaves it out of a dump. */
bool weft_schema_field_is_default(const field *f, const void *at);

#endif
