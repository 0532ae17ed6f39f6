/* The writer of the neutral dump: the same walk over the schema as the reader's, two spaces a level. */
#include "schema_private.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFER_SIZE = 1 << 16, TOKEN_MOST = 512 };

typedef struct writer {
  weft_text *text;
  const weft_body_node *nodes; /* of the body being written */
  unsigned level;
  size_t used;
  char buffer[BUFFER_SIZE];
} writer;

static void write_value(writer *w, const shape *s, const void *at);

/* ---- bytes ---- */

static void flush(writer *w) {
  weft_text_append(w->text, w->buffer, w->used);
  w->used = 0;
}

/* Room for TOKEN_MOST bytes. */
static char *room(writer *w) {
  if (w->used > BUFFER_SIZE - TOKEN_MOST) flush(w);
  return w->buffer + w->used;
}

/* Short copies without a call: two that overlap, of the largest power of two that fits. */
static inline void copy_short(char *to, const char *from, size_t length) {
  if (length > 32) {
    memcpy(to, from, length);
  } else if (length >= 16) {
    memcpy(to, from, 16);
    memcpy(to + length - 16, from + length - 16, 16);
  } else if (length >= 8) {
    memcpy(to, from, 8);
    memcpy(to + length - 8, from + length - 8, 8);
  } else if (length >= 4) {
    memcpy(to, from, 4);
    memcpy(to + length - 4, from + length - 4, 4);
  } else {
    for (size_t i = 0; i < length; i++) to[i] = from[i];
  }
}

static void put(writer *w, const char *bytes, size_t length) {
  if (length > TOKEN_MOST) {
    flush(w);
    weft_text_append(w->text, bytes, length);
    return;
  }
  copy_short(room(w), bytes, length);
  w->used += length;
}

static void put_byte(writer *w, char byte) {
  *room(w) = byte;
  w->used++;
}

/* Levels that are indented in one go, sixteen blanks at a time: the last sixteen may be too many, and are written over.
 */
enum { BLANKS_MOST = TOKEN_MOST / 2 };

static void new_line(writer *w) {
  size_t blanks = 2 * (size_t)w->level;
  put_byte(w, '\n');
  for (; blanks > BLANKS_MOST; blanks -= BLANKS_MOST) {
    memset(room(w), ' ', BLANKS_MOST);
    w->used += BLANKS_MOST;
  }
  char *at = room(w);
  for (size_t i = 0; i < blanks; i += 16) memset(at + i, ' ', 16);
  w->used += blanks;
}

static void put_unsigned(writer *w, uint64_t value) {
  static const char pairs[] =
      "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546"
      "47484950515253545556575859606162636465666768697071727374757677787980818283848586878889909192"
      "93949596979899";
  if (value < 10) {
    put_byte(w, (char)('0' + value));
    return;
  }
  char digits[20];
  size_t begin = sizeof digits;
  for (; value >= 100; value /= 100) memcpy(digits + (begin -= 2), pairs + 2 * (value % 100), 2);
  if (value >= 10)
    memcpy(digits + (begin -= 2), pairs + 2 * value, 2);
  else
    digits[--begin] = (char)('0' + value);
  put(w, digits + begin, sizeof digits - begin);
}

static void put_signed(writer *w, int64_t value) {
  if (value < 0) put_byte(w, '-');
  put_unsigned(w, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void put_escape(writer *w, unsigned char byte) {
  static const char digits[] = "0123456789abcdef";
  static const char letters[] = {
      ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\'};
  if (byte < sizeof letters && letters[byte]) {
    put(w, (char[]){'\\', letters[byte]}, 2);
  } else {
    put(w, (char[]){'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]}, 6);
  }
}

static void put_string(writer *w, const char *string) {
  if (!string) string = "";
  put_byte(w, '"');
  const char *run = string;
  const char *at = string;
  for (; *at; at++) {
    unsigned char byte = (unsigned char)*at;
    bool nul = byte == 0xc0 && (unsigned char)at[1] == 0x80;
    if (byte >= ' ' && byte != '"' && byte != '\\' && !nul) continue;
    put(w, run, (size_t)(at - run));
    put_escape(w, nul ? 0 : byte);
    at += nul;
    run = at + 1;
  }
  put(w, run, (size_t)(at - run));
  put_byte(w, '"');
}

static void open(writer *w, char bracket) {
  put_byte(w, bracket);
  w->level++;
}

static void separate(writer *w, bool first) {
  if (!first) put_byte(w, ',');
  new_line(w);
}

static void close(writer *w, char bracket) {
  w->level--;
  new_line(w);
  put_byte(w, bracket);
}

/* ---- values ---- */

static void put_case(writer *w, const shape_case *c) {
  put_byte(w, '"');
  put(w, c->name, c->name_length);
  put_byte(w, '"');
}

static void write_struct(writer *w, const shape *s, const char *base) {
  open(w, '{');
  bool first = true;
  for (uint16_t i = 0; i < s->count; i++) {
    const field *f = &s->fields[i];
    if (f->flags & FIELD_LEFT_OUT && (f->flags & FIELD_HIDDEN || weft_schema_field_is_default(f, base))) continue;
    separate(w, first);
    first = false;
    put(w, f->key, f->key_length);
    write_value(w, f->shape, base + f->offset);
  }
  close(w, '}');
}

static void write_tuple(writer *w, const shape *s, const char *base) {
  open(w, '[');
  for (uint16_t i = 0; i < s->count; i++) {
    separate(w, i == 0);
    write_value(w, s->fields[i].shape, base + s->fields[i].offset);
  }
  close(w, ']');
}

static void write_choice(writer *w, const shape *s, const char *base) {
  uint64_t tag = weft_schema_tag(s, base);
  const shape_case *c = &s->cases[tag < s->count ? tag : 0];
  if (!c->payload) {
    put_case(w, c);
    return;
  }
  open(w, '{');
  separate(w, true);
  put_case(w, c);
  put(w, ": ", 2);
  write_value(w, c->payload, base + c->offset);
  close(w, '}');
}

static void write_elements(writer *w, const shape *s, const char *items, uint64_t count) {
  if (!count) {
    put(w, "[]", 2);
    return;
  }
  open(w, '[');
  for (uint64_t i = 0; i < count; i++) {
    separate(w, i == 0);
    write_value(w, s->inner, items + i * s->size);
  }
  close(w, ']');
}

static void write_set(writer *w, const shape *s, uint32_t set) {
  if (!set) {
    put(w, "[]", 2);
    return;
  }
  open(w, '[');
  bool first = true;
  for (uint16_t i = 0; i < s->count; i++) {
    if (!(set >> i & 1)) continue;
    separate(w, first);
    first = false;
    put_case(w, &s->cases[i]);
  }
  close(w, ']');
}

static void write_integer(writer *w, const shape *s, const void *at) {
  if (!s->is_signed)
    put_unsigned(w, weft_schema_load(at, s->width));
  else
    put_signed(w, s->width == 4 ? *(const int32_t *)at : *(const int64_t *)at);
}

static void write_or_null(writer *w, const shape *s, const void *value) {
  if (value)
    write_value(w, s->inner, value);
  else
    put(w, "null", 4);
}

static void write_body(writer *w, const shape *s, const weft_body *body) {
  if (!body->node_count) {
    put(w, "null", 4);
    return;
  }
  const weft_body_node *outer = w->nodes;
  w->nodes = body->nodes;
  uint32_t root = (uint32_t)(body->node_count - 1);
  write_value(w, s->inner, &root);
  w->nodes = outer;
}

static void write_value(writer *w, const shape *s, const void *at) {
  const char *base = at;
  switch (s->kind) {
  case SHAPE_INTEGER: write_integer(w, s, at); break;
  case SHAPE_BOOL: *(const bool *)at ? put(w, "true", 4) : put(w, "false", 5); break;
  case SHAPE_STRING: put_string(w, weft_schema_pointer(at)); break;
  case SHAPE_NAME: {
    uint64_t index = weft_schema_load(at, s->width);
    put_case(w, &s->cases[index < s->count ? index : 0]);
    break;
  }
  case SHAPE_STRUCT: write_struct(w, s, at); break;
  case SHAPE_TUPLE: write_tuple(w, s, at); break;
  case SHAPE_CHOICE: write_choice(w, s, at); break;
  case SHAPE_LIST: write_elements(w, s, weft_schema_pointer(at), ((const weft_schema_list *)at)->count); break;
  case SHAPE_PARALLEL:
    write_elements(w, s, weft_schema_pointer(at), *(const uint64_t *)(const void *)(base + s->offset));
    break;
  case SHAPE_SET: write_set(w, s, *(const uint32_t *)at); break;
  case SHAPE_BOX:
  case SHAPE_POINTER: write_or_null(w, s, weft_schema_pointer(at)); break;
  case SHAPE_FLAGGED: write_or_null(w, s, *(const bool *)(base + s->offset) ? base + s->inner_offset : NULL); break;
  case SHAPE_OPTION:
    weft_schema_option_is_null(s, at) ? put(w, "null", 4) : put_unsigned(w, weft_schema_load(at, s->width));
    break;
  case SHAPE_BODY: write_body(w, s, at); break;
  case SHAPE_CHILD: write_value(w, s->inner, &w->nodes[*(const uint32_t *)at]); break;
  }
}

void weft_program_write(const weft_program *program, weft_text *text) {
  writer *w = malloc(sizeof *w);
  if (!w) {
    text->failed = true;
    return;
  }
  w->text = text;
  w->nodes = NULL;
  w->level = 0;
  w->used = 0;
  write_value(w, &weft_schema_program, program);
  flush(w);
  free(w);
}
