/* The reader of the neutral dump: one pass over the text, driven by the schema, straight into the program's arena.
 *
 * A list's elements wait on one stack until the list ends and are then copied to an array of their exact number; a list
 * inside an element is complete before the element is. A failure unwinds, each level adding its part of the path. */
#include "scan_private.h"
#include "schema_private.h"

#include <stdlib.h>
#include <string.h>

typedef struct reader {
  scanner scan;
  weft_arena *arena;
  unsigned char *stack;
  size_t used;
  size_t capacity;
  size_t body;       /* where the nodes of the body being read begin on the stack */
  bool out_of_order; /* a field came before one declared earlier */
} reader;

static bool read_value(reader *r, const shape *s, void *at);

static bool out_of_memory(reader *r) {
  r->scan.out_of_memory = true;
  return false;
}

/* ---- the stack ---- */

static bool push(reader *r, const void *element, size_t size) {
  if (r->capacity - r->used < size) {
    size_t capacity = r->capacity ? r->capacity * 2 : 65536;
    unsigned char *stack = realloc(r->stack, capacity);
    if (!stack) return out_of_memory(r);
    r->stack = stack;
    r->capacity = capacity;
  }
  memcpy(r->stack + r->used, element, size);
  r->used += size;
  return true;
}

/* Takes everything from `mark` off the stack, into an arena array with `header` bytes of room before it. */
static void *pop_array(reader *r, size_t mark, size_t header) {
  size_t size = r->used - mark;
  char *array = weft_arena_alloc(r->arena, header + size);
  if (!array) {
    out_of_memory(r);
    return NULL;
  }
  if (size) memcpy(array + header, r->stack + mark, size);
  r->used = mark;
  return array + header;
}

/* ---- names ---- */

static bool read_text(reader *r, const char **text) {
  const char *contents;
  size_t length;
  if (!scan_string(&r->scan, "a string", &contents, &length)) return false;
  *text = weft_arena_string(r->arena, contents, length);
  return *text || out_of_memory(r);
}

static void list_cases(weft_text *text, const shape *s) {
  for (uint16_t i = 0; i < s->count; i++)
    weft_text_printf(text, "%s%s", i == 0 ? "" : i + 1 == s->count ? " or " : ", ", s->cases[i].name);
}

static bool unknown_case(reader *r, const shape *s, const char *start) {
  r->scan.at = start;
  scan_expected(&r->scan, s->noun);
  weft_text_printf(&r->scan.hint, "%s is one of ", s->noun);
  list_cases(&r->scan.hint, s);
  return false;
}

/* The position among the cases of the string at the cursor. */
static bool read_case(reader *r, const shape *s, uint16_t *index) {
  const char *start = r->scan.at;
  const char *name;
  size_t length;
  if (!scan_string(&r->scan, s->noun, &name, &length)) return false;
  for (uint16_t i = 0; i < s->count; i++) {
    const shape_case *c = &s->cases[i];
    if (c->name_length == length && memcmp(c->name, name, length) == 0) {
      *index = i;
      return true;
    }
  }
  return unknown_case(r, s, start);
}

static bool read_name(reader *r, const shape *s, void *at) {
  uint16_t index;
  if (!read_case(r, s, &index)) return false;
  weft_schema_store(at, s->width, index);
  return true;
}

/* ---- structs ---- */

static void set_default(const field *f, void *base) {
  char *at = (char *)base + f->offset;
  const shape *s = f->shape;
  if (s->kind == SHAPE_INTEGER || s->kind == SHAPE_NAME)
    weft_schema_store(at, s->width, f->fallback);
  else if (s->kind == SHAPE_BOOL)
    *(bool *)at = f->fallback != 0;
  else if (s->kind == SHAPE_OPTION)
    weft_schema_store(at, s->width, UINT64_MAX);
}

static size_t name_length(const field *f) { return (size_t)f->key_length - 4; }
static const char *name_of(const field *f) { return f->key + 1; }

static bool unknown_field(reader *r, const shape *s, const char *start) {
  r->scan.at = start;
  scan_expected(&r->scan, "a field it knows");
  weft_text_printf(&r->scan.hint, "the fields of %s are ", s->noun);
  const char *separator = "";
  for (uint16_t i = 0; i < s->count; i++) {
    if (s->fields[i].flags & FIELD_HIDDEN) continue;
    weft_text_puts(&r->scan.hint, separator);
    weft_text_append(&r->scan.hint, name_of(&s->fields[i]), name_length(&s->fields[i]));
    separator = ", ";
  }
  return false;
}

/* The field whose key is at the cursor, when it is written as the writer writes it. Fields are tried from `next` on. */
static const field *usual_key(reader *r, const shape *s, uint16_t next) {
  size_t left = (size_t)(r->scan.end - r->scan.at);
  for (const field *f = s->fields + next; f < s->fields + s->count; f++) {
    if (f->key_length && f->key_length <= left && memcmp(r->scan.at, f->key, f->key_length) == 0) {
      r->scan.at += f->key_length;
      return f;
    }
    if (!(f->flags & FIELD_MAY_BE_ABSENT)) break;
  }
  return NULL;
}

static const field *any_key(reader *r, const shape *s) {
  const char *start = r->scan.at;
  const char *key;
  size_t length;
  if (!scan_string(&r->scan, "a field's name", &key, &length)) return NULL;
  const field *found = NULL;
  for (uint16_t i = 0; i < s->count && !found; i++) {
    const field *f = &s->fields[i];
    if (f->key_length && name_length(f) == length && memcmp(name_of(f), key, length) == 0) found = f;
  }
  if (!found) {
    unknown_field(r, s, start);
    return NULL;
  }
  scan_space(&r->scan);
  if (!scan_is(&r->scan, ':')) {
    scan_expected(&r->scan, "a colon");
    return NULL;
  }
  r->scan.at++;
  return found;
}

/* A parallel array has as many elements as the list it belongs to. Its length waits in front of it. */
static bool check_parallel(reader *r, const field *f, const char *base) {
  const char *at = base + f->offset;
  const uint64_t *items = weft_schema_pointer(at);
  uint64_t count = *(const uint64_t *)(const void *)(at + f->shape->offset);
  if (!items || items[-2] == count) return true;
  scan_fail(&r->scan, r->scan.at, "expected as many elements as the list it goes with, %llu, found %llu",
            (unsigned long long)count, (unsigned long long)items[-2]);
  return scan_in_field(&r->scan, name_of(f), name_length(f));
}

static bool finish_struct(reader *r, const shape *s, char *base, uint64_t seen, const char *start) {
  for (uint16_t i = 0; i < s->count; i++) {
    const field *f = &s->fields[i];
    if (seen >> i & 1) {
      if (f->shape->kind == SHAPE_PARALLEL && !check_parallel(r, f, base)) return false;
      continue;
    }
    if (!(f->flags & FIELD_MAY_BE_ABSENT))
      return scan_fail(&r->scan, start, "expected %s, found one without the field %.*s", s->noun, (int)name_length(f),
                       name_of(f));
    set_default(f, base);
  }
  return true;
}

static bool read_struct(reader *r, const shape *s, char *base) {
  const char *start = r->scan.at;
  if (!scan_open(&r->scan, '{', s->noun)) return false;
  uint64_t seen = 0;
  uint16_t next = 0;
  bool more = !scan_empty(&r->scan, '}');
  while (more) {
    const char *key = r->scan.at;
    const field *f = usual_key(r, s, next);
    if (!f) f = any_key(r, s);
    if (!f) return false;
    uint16_t index = (uint16_t)(f - s->fields);
    if (seen >> index & 1)
      return scan_fail(&r->scan, key, "expected each field once, found %.*s again", (int)name_length(f), name_of(f));
    seen |= UINT64_C(1) << index;
    if (index < next) r->out_of_order = true;
    next = (uint16_t)(index + 1);
    scan_space(&r->scan);
    if (!read_value(r, f->shape, base + f->offset)) return scan_in_field(&r->scan, name_of(f), name_length(f));
    if (!scan_next(&r->scan, '}', &more)) return false;
  }
  return finish_struct(r, s, base, seen, start);
}

static bool read_tuple(reader *r, const shape *s, char *base) {
  if (!scan_open(&r->scan, '[', s->noun)) return false;
  const char *start = r->scan.at;
  bool more = !scan_empty(&r->scan, ']');
  for (uint16_t i = 0; i < s->count; i++) {
    if (!more) return scan_fail(&r->scan, start, "expected %s, found an array of %u", s->noun, (unsigned)i);
    const field *f = &s->fields[i];
    if (!read_value(r, f->shape, base + f->offset)) return scan_in_element(&r->scan, i);
    if (!scan_next(&r->scan, ']', &more)) return false;
  }
  return !more || scan_fail(&r->scan, r->scan.at, "expected %s, found a longer one", s->noun);
}

/* ---- enums with data ---- */

static void set_tag(const shape *s, char *base, uint16_t tag) {
  if (s->tag == TAG_FIELD)
    weft_schema_store(base + s->offset, s->width, tag);
  else if (s->tag == TAG_OPTION && tag == 0)
    weft_schema_store(base + s->offset, 4, WEFT_NONE);
}

static bool read_unit(reader *r, const shape *s, char *base) {
  const char *start = r->scan.at;
  uint16_t index;
  if (!read_case(r, s, &index)) return false;
  if (s->cases[index].payload) {
    return scan_fail(&r->scan, start, "expected the data of %s, found its name alone", s->cases[index].name);
  }
  set_tag(s, base, index);
  return true;
}

static bool read_choice(reader *r, const shape *s, char *base) {
  if (scan_is(&r->scan, '"')) return read_unit(r, s, base);
  if (!scan_open(&r->scan, '{', s->noun)) return false;
  const char *start = r->scan.at;
  uint16_t index;
  if (!read_case(r, s, &index)) return false;
  const shape_case *c = &s->cases[index];
  if (!c->payload) return scan_fail(&r->scan, start, "expected \"%s\" alone, found it with data", c->name);
  scan_space(&r->scan);
  if (!scan_is(&r->scan, ':')) return scan_expected(&r->scan, "a colon");
  r->scan.at++;
  scan_space(&r->scan);
  set_tag(s, base, index);
  if (!read_value(r, c->payload, base + c->offset)) return scan_in_field(&r->scan, c->name, c->name_length);
  if (s->tag == TAG_OPTION && weft_schema_load(base + s->offset, 4) == WEFT_NONE && index == 1)
    *(uint8_t *)(base + s->max_offset) |= s->bit;
  bool more;
  if (!scan_next(&r->scan, '}', &more)) return false;
  return !more || scan_fail(&r->scan, r->scan.at, "expected %s with one name, found another", s->noun);
}

/* ---- lists ---- */

static bool read_elements(reader *r, const shape *s, uint64_t *count) {
  _Alignas(16) unsigned char element[SCHEMA_ELEMENT_MOST];
  bool more = !scan_empty(&r->scan, ']');
  for (*count = 0; more; ++*count) {
    memset(element, 0, s->size);
    if (!read_value(r, s->inner, element)) return scan_in_element(&r->scan, *count);
    if (!push(r, element, s->size) || !scan_next(&r->scan, ']', &more)) return false;
  }
  return true;
}

static bool read_list(reader *r, const shape *s, char *at) {
  if (!scan_open(&r->scan, '[', s->noun)) return false;
  size_t mark = r->used;
  uint64_t count;
  if (!read_elements(r, s, &count)) return false;
  const void *items = NULL;
  if (count) {
    items = pop_array(r, mark, 0);
    if (!items) return false;
  }
  weft_schema_set_pointer(at, items);
  ((weft_schema_list *)(void *)at)->count = count;
  return true;
}

static bool read_parallel(reader *r, const shape *s, char *at) {
  enum { HEADER = 16 };
  if (!scan_open(&r->scan, '[', s->noun)) return false;
  size_t mark = r->used;
  uint64_t count;
  if (!read_elements(r, s, &count)) return false;
  uint64_t *items = pop_array(r, mark, HEADER);
  if (!items) return false;
  items[-2] = count;
  weft_schema_set_pointer(at, items);
  return true;
}

static bool read_set(reader *r, const shape *s, uint32_t *set) {
  if (!scan_open(&r->scan, '[', "an array")) return false;
  bool more = !scan_empty(&r->scan, ']');
  for (uint64_t i = 0; more; i++) {
    uint16_t index;
    if (!read_case(r, s, &index)) return scan_in_element(&r->scan, i);
    *set |= UINT32_C(1) << index;
    if (!scan_next(&r->scan, ']', &more)) return false;
  }
  return true;
}

/* ---- options and boxes ---- */

static bool read_box(reader *r, const shape *s, char *at) {
  void *value = weft_arena_alloc(r->arena, s->size);
  if (!value) return out_of_memory(r);
  weft_schema_set_pointer(at, value);
  return read_value(r, s->inner, value);
}

static bool read_option(reader *r, const shape *s, void *at) {
  if (scan_null(&r->scan)) {
    weft_schema_store(at, s->width, UINT64_MAX);
    return true;
  }
  uint64_t value;
  if (!scan_unsigned(&r->scan, s->most, &value)) return false;
  weft_schema_store(at, s->width, value);
  if (s->bit && value == s->most) ((uint8_t *)at)[s->max_offset] |= s->bit;
  return true;
}

static bool read_flagged(reader *r, const shape *s, char *at) {
  bool present = !scan_null(&r->scan);
  *(bool *)(at + s->offset) = present;
  return !present || read_value(r, s->inner, at + s->inner_offset);
}

/* ---- bodies ---- */

static bool read_child(reader *r, const shape *s, uint32_t *child) {
  weft_body_node node = {0};
  if (!read_value(r, s->inner, &node) || !push(r, &node, sizeof node)) return false;
  *child = (uint32_t)((r->used - r->body) / sizeof node - 1);
  return true;
}

/* Appends the subtree of `root` in post-order, left operand first. As deep as the dump was. */
static uint32_t append_post_order(const weft_body_node *from, uint32_t root, weft_body_node *to, uint32_t *count) {
#define WEFT_ROW(id, name, arity) arity,
  static const uint8_t arities[] = {WEFT_BODY_NODES(WEFT_ROW)};
#undef WEFT_ROW
  weft_body_node node = from[root];
  for (unsigned i = 0; i < arities[node.kind]; i++) node.child[i] = append_post_order(from, node.child[i], to, count);
  to[*count] = node;
  return (*count)++;
}

static bool read_body(reader *r, const shape *s, weft_body *body) {
  size_t outer = r->body;
  size_t mark = r->used;
  r->body = mark;
  r->out_of_order = false;
  uint32_t root;
  if (!read_value(r, s->inner, &root)) return false;
  uint64_t count = (r->used - mark) / sizeof(weft_body_node);
  weft_body_node *nodes = pop_array(r, mark, 0);
  if (nodes && r->out_of_order) {
    weft_body_node *ordered = WEFT_NEW_ARRAY(r->arena, weft_body_node, count);
    uint32_t filled = 0;
    if (ordered) append_post_order(nodes, root, ordered, &filled);
    nodes = ordered;
  }
  r->body = outer;
  if (!nodes) return out_of_memory(r);
  *body = (weft_body){.nodes = nodes, .node_count = count};
  return true;
}

/* ---- any value ---- */

static bool read_integer(reader *r, const shape *s, void *at) {
  uint64_t value;
  if (s->is_signed) {
    int64_t number;
    if (!scan_signed(&r->scan, s->most, &number)) return false;
    value = (uint64_t)number;
  } else if (!scan_unsigned(&r->scan, s->most, &value)) {
    return false;
  }
  weft_schema_store(at, s->width, value);
  return true;
}

static bool read_value(reader *r, const shape *s, void *at) {
  switch (s->kind) {
  case SHAPE_INTEGER: return read_integer(r, s, at);
  case SHAPE_BOOL: return scan_bool(&r->scan, at);
  case SHAPE_STRING: {
    const char *text = NULL;
    if (!read_text(r, &text)) return false;
    weft_schema_set_pointer(at, text);
    return true;
  }
  case SHAPE_NAME: return read_name(r, s, at);
  case SHAPE_STRUCT: return read_struct(r, s, at);
  case SHAPE_TUPLE: return read_tuple(r, s, at);
  case SHAPE_CHOICE: return read_choice(r, s, at);
  case SHAPE_LIST: return read_list(r, s, at);
  case SHAPE_PARALLEL: return read_parallel(r, s, at);
  case SHAPE_SET: return read_set(r, s, at);
  case SHAPE_BOX: return read_box(r, s, at);
  case SHAPE_POINTER: return scan_null(&r->scan) || read_box(r, s, at);
  case SHAPE_FLAGGED: return read_flagged(r, s, at);
  case SHAPE_OPTION: return read_option(r, s, at);
  case SHAPE_BODY: return read_body(r, s, at);
  case SHAPE_CHILD: return read_child(r, s, at);
  }
  return false;
}

/* ---- whole texts ---- */

static bool read_whole(reader *r, weft_program *program) {
  scan_space(&r->scan);
  if (!read_value(r, &weft_schema_program, program)) return false;
  scan_space(&r->scan);
  return r->scan.at == r->scan.end || scan_expected(&r->scan, "the end of the text");
}

/* "stages[3].kind: ": the scanner's path, turned round. */
static void put_path(const scanner *s, weft_text *text) {
  for (size_t i = s->path.length; i-- > 0;)
    if (!(i + 1 == s->path.length && s->path.data[i] == '.')) weft_text_append(text, s->path.data + i, 1);
  if (s->path.length) weft_text_puts(text, ": ");
}

static weft_status report(const scanner *s, const char *file, weft_diag *diag) {
  weft_place place = {.file = file, .line = 1};
  const char *line = s->begin;
  for (const char *at = s->begin; at < s->wrong; at++) {
    if (*at != '\n') continue;
    place.line++;
    line = at + 1;
  }
  place.column = (uint64_t)(s->wrong - line) + 1;
  weft_text path = {0};
  put_path(s, &path);
  const char *hint =
      s->path.length ? s->hint.data : "a program is JSON, a neutral dump: weft new and weft shard write them";
  weft_status status = weft_error_at(diag, WEFT_INVALID, place, s->hint.data ? s->hint.data : hint, "%s%s",
                                     path.data ? path.data : "", s->message.data ? s->message.data : "");
  if (path.failed || s->message.failed) status = weft_error_memory(diag);
  weft_text_free(&path);
  return status;
}

weft_status weft_program_read(const char *file, const char *text, size_t length, weft_program **program,
                              weft_diag *diag) {
  *program = NULL;
  weft_program *made = weft_program_new("");
  if (!made) return weft_error_memory(diag);
  reader r = {.scan = {.at = text, .begin = text, .end = text + length}, .arena = made->arena};
  weft_status status = WEFT_OK;
  if (!read_whole(&r, made)) status = r.scan.wrong ? report(&r.scan, file, diag) : weft_error_memory(diag);
  free(r.stack);
  scan_free(&r.scan);
  if (status)
    weft_program_free(made);
  else
    *program = made;
  return status;
}

weft_status weft_program_read_file(const char *path, weft_program **program, weft_diag *diag) {
  *program = NULL;
  char *text;
  size_t length;
  weft_status status = weft_read_file(path, &text, &length, diag);
  if (status) return status;
  status = weft_program_read(path, text, length, program, diag);
  if (status == WEFT_OK) weft_diag_about(diag, path);
  free(text);
  return status;
}
