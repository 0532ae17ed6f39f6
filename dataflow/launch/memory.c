/* Memories between the words of the front end and the elements of emitted C. */
#include "launch_private.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of an element in emitted C. */
static uint32_t element_bytes(const weft_mlir_type *type) {
  if (type->kind == WEFT_MLIR_FLOAT_TYPE) return type->width / 8;
  if (type->kind != WEFT_MLIR_INTEGER_TYPE) return 8;
  if (type->width == 1) return 1;
  return type->width == 8 || type->width == 16 || type->width == 32 ? type->width / 8 : 8;
}

/* Little-endian or not: the lowest bytes of the word. */
static void store_element(void *data, uint32_t bytes, uint64_t index, uint64_t word) {
  switch (bytes) {
  case 1: ((uint8_t *)data)[index] = (uint8_t)word; break;
  case 2: ((uint16_t *)data)[index] = (uint16_t)word; break;
  case 4: ((uint32_t *)data)[index] = (uint32_t)word; break;
  default: ((uint64_t *)data)[index] = word; break;
  }
}

static uint64_t load_element(const void *data, uint32_t bytes, uint64_t index) {
  switch (bytes) {
  case 1: return ((const uint8_t *)data)[index];
  case 2: return ((const uint16_t *)data)[index];
  case 4: return ((const uint32_t *)data)[index];
  default: return ((const uint64_t *)data)[index];
  }
}

bool held_memory_write(held_memory *held) {
  const weft_memory *buffer = held->buffer;
  uint32_t bytes = element_bytes(buffer->element);
  held->memory =
      (weft_df_memory){.data = calloc(buffer->count + 1, bytes), .count = buffer->count, .written = buffer->written};
  if (!held->memory.data) return false;
  for (uint64_t i = 0; i < buffer->count; i++) store_element(held->memory.data, bytes, i, buffer->words[i]);
  return true;
}

void held_memory_read(held_memory *held) {
  weft_memory *buffer = held->buffer;
  const weft_mlir_type *type = buffer->element;
  uint32_t bytes = element_bytes(type);
  bool extend = type->kind == WEFT_MLIR_INTEGER_TYPE && type->width > 1 && bytes < 8;
  for (uint64_t i = 0; i < buffer->count; i++) {
    uint64_t word = load_element(held->memory.data, bytes, i);
    uint32_t unused = 64 - 8 * bytes;
    buffer->words[i] = extend ? (uint64_t)((int64_t)(word << unused) >> unused) : word;
  }
}
