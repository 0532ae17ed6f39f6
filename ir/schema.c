/* What every walk over the schema needs to know about values in memory. */
#include "schema_private.h"

#include <string.h>

uint64_t weft_schema_load(const void *at, unsigned width) {
  switch (width) {
  case 1: return *(const uint8_t *)at;
  case 2: return *(const uint16_t *)at;
  case 4: return *(const uint32_t *)at;
  default: return *(const uint64_t *)at;
  }
}

void weft_schema_store(void *at, unsigned width, uint64_t value) {
  switch (width) {
  case 1: *(uint8_t *)at = (uint8_t)value; break;
  case 2: *(uint16_t *)at = (uint16_t)value; break;
  case 4: *(uint32_t *)at = (uint32_t)value; break;
  default: *(uint64_t *)at = value; break;
  }
}

uint64_t weft_schema_tag(const shape *s, const void *at) {
  const char *base = at;
  switch (s->tag) {
  case TAG_POINTER: return weft_schema_pointer(base + s->offset) != NULL;
  case TAG_OPTION: {
    bool present = *(const uint32_t *)(const void *)(base + s->offset) != WEFT_NONE;
    return present || (*(const uint8_t *)(base + s->max_offset) & s->bit) != 0;
  }
  default: return weft_schema_load(base + s->offset, s->width);
  }
}

const void *weft_schema_pointer(const void *at) {
  const void *pointer;
  memcpy(&pointer, at, sizeof pointer); /* `at` is the address of a pointer of any type */
  return pointer;
}

void weft_schema_set_pointer(void *at, const void *pointer) { memcpy(at, &pointer, sizeof pointer); }

bool weft_schema_option_is_null(const shape *s, const void *at) {
  uint64_t none = s->width == 8 ? UINT64_MAX : UINT32_MAX;
  if (weft_schema_load(at, s->width) != none) return false;
  return !s->bit || !(((const uint8_t *)at)[s->max_offset] & s->bit);
}

bool weft_schema_field_is_default(const field *f, const void *base) {
  const char *at = (const char *)base + f->offset;
  const shape *s = f->shape;
  switch (s->kind) {
  case SHAPE_INTEGER:
  case SHAPE_NAME: return weft_schema_load(at, s->width) == f->fallback;
  case SHAPE_BOOL: return *(const bool *)at == (f->fallback != 0);
  case SHAPE_LIST: return ((const weft_schema_list *)(const void *)at)->count == 0;
  case SHAPE_OPTION: return weft_schema_option_is_null(s, at);
  case SHAPE_FLAGGED: return !*(const bool *)(at + s->offset);
  case SHAPE_POINTER:
  case SHAPE_PARALLEL: return weft_schema_pointer(at) == NULL;
  default: return false;
  }
}
