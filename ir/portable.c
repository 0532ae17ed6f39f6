/* Which parts of a program only weft knows: one walk over the schema, looking for what its tables mark as ours. */
#include "schema_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PATH_MOST = 1024 };

typedef struct search {
  weft_diag *diag;
  weft_status status;
  const weft_body_node *nodes; /* of the body being searched */
  size_t length;
  char path[PATH_MOST];
} search;

static void look_inside(search *f, const shape *s, const void *at);

static void found(search *f, const char *what, size_t length) {
  f->status =
      weft_error(f->diag, WEFT_INVALID, "another compiler will not know it: take it out, or do without --portable",
                 "%.*s%s%.*s is weft's own", (int)f->length, f->path, f->length ? ": " : "", (int)length, what);
}

/* Adds ".name" to the path; the length to go back to. */
static size_t enter(search *f, const char *name, size_t length) {
  size_t before = f->length;
  bool first = before == 0;
  if (before + length + !first < PATH_MOST) {
    if (!first) f->path[f->length++] = '.';
    memcpy(f->path + f->length, name, length);
    f->length += length;
  }
  return before;
}

static size_t enter_element(search *f, uint64_t index) {
  size_t before = f->length;
  char part[24];
  int length = snprintf(part, sizeof part, "[%" PRIu64 "]", index);
  if (before + (size_t)length < PATH_MOST) {
    memcpy(f->path + before, part, (size_t)length);
    f->length += (size_t)length;
  }
  return before;
}

static void look_in_fields(search *f, const shape *s, const char *base) {
  for (uint16_t i = 0; i < s->count; i++) {
    const field *fl = &s->fields[i];
    if (fl->flags & FIELD_HIDDEN) continue;
    size_t name_length = (size_t)fl->key_length - 4;
    bool present = !(fl->flags & FIELD_LEFT_OUT) || !weft_schema_field_is_default(fl, base);
    if (!present) continue;
    if (fl->flags & FIELD_OURS) {
      found(f, fl->key + 1, name_length);
      continue;
    }
    size_t before = s->kind == SHAPE_TUPLE ? enter_element(f, i) : enter(f, fl->key + 1, name_length);
    look_inside(f, fl->shape, base + fl->offset);
    f->length = before;
  }
}

static void look_at_case(search *f, const shape *s, uint64_t tag, const char *base) {
  if (tag >= s->count) return;
  const shape_case *c = &s->cases[tag];
  if (c->ours) {
    found(f, c->name, c->name_length);
    return;
  }
  if (!c->payload) return;
  size_t before = enter(f, c->name, c->name_length);
  look_inside(f, c->payload, base + c->offset);
  f->length = before;
}

static void look_in_elements(search *f, const shape *s, const char *items, uint64_t count) {
  if (s->inner->kind == SHAPE_INTEGER) return;
  for (uint64_t i = 0; i < count; i++) {
    size_t before = enter_element(f, i);
    look_inside(f, s->inner, items + i * s->size);
    f->length = before;
  }
}

static void look_in_body(search *f, const shape *s, const weft_body *body) {
  f->nodes = body->nodes;
  uint32_t root = (uint32_t)(body->node_count - 1);
  if (body->node_count) look_inside(f, s->inner, &root);
}

static void look_inside(search *f, const shape *s, const void *at) {
  const char *base = at;
  switch (s->kind) {
  case SHAPE_STRUCT:
  case SHAPE_TUPLE: look_in_fields(f, s, at); break;
  case SHAPE_NAME: look_at_case(f, s, weft_schema_load(at, s->width), at); break;
  case SHAPE_CHOICE: look_at_case(f, s, weft_schema_tag(s, at), at); break;
  case SHAPE_LIST: look_in_elements(f, s, weft_schema_pointer(at), ((const weft_schema_list *)at)->count); break;
  case SHAPE_BOX:
  case SHAPE_POINTER:
    if (weft_schema_pointer(at)) look_inside(f, s->inner, weft_schema_pointer(at));
    break;
  case SHAPE_FLAGGED:
    if (*(const bool *)(base + s->offset)) look_inside(f, s->inner, base + s->inner_offset);
    break;
  case SHAPE_BODY: look_in_body(f, s, at); break;
  case SHAPE_CHILD: look_inside(f, s->inner, &f->nodes[*(const uint32_t *)at]); break;
  default: break;
  }
}

/* A meaning rather than a field: elsewhere the sites of a group's rectangle are on chip 0. */
static void look_at_groups(search *f, const weft_placement *placement) {
  for (uint64_t g = 0; placement && g < placement->group_count; g++) {
    if (placement->groups[g].sender.chip == 0) continue;
    static const char what[] = "a multicast on a chip other than 0";
    f->length = (size_t)snprintf(f->path, sizeof f->path, "placement.groups[%" PRIu64 "].sender.chip", g);
    found(f, what, sizeof what - 1);
  }
}

weft_status weft_program_portable(const weft_program *program, weft_diag *diag) {
  search f = {.diag = diag, .status = WEFT_OK};
  look_inside(&f, &weft_schema_program, program);
  look_at_groups(&f, program->placement);
  return f.status;
}
