/* Channels, faults' texts, and words as text. */
#include "compute.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *weft_fault_text(weft_fault fault) {
  static const char *const texts[] = {
#define ROW(identifier, text) text,
    WEFT_FAULTS(ROW)
#undef ROW
  };
  return fault < WEFT_FAULT_COUNT ? texts[fault] : "unknown fault";
}

bool weft_memref_exists(const weft_mlir_type *type) {
  uint64_t count = 1;
  for (uint32_t i = type->rank; !type->unranked && i-- > 0;)
    if (type->extents[i] >= 0 &&
        (weft_mul_overflow(count, (uint64_t)type->extents[i], &count) || count > WEFT_MOST_ELEMENTS))
      return false;
  return true;
}

bool weft_memref_rows(const weft_mlir_type *type, uint64_t *row, const char **why) {
  uint64_t count = 1;
  *row = 1;
  *why = type->layout                  ? "the memref has a layout"
         : type->unranked              ? "the memref is unranked"
         : type->rank > WEFT_MOST_RANK ? "the memref has more than 8 dimensions"
         : !weft_memref_exists(type)   ? "the memref is too large"
                                       : NULL;
  for (uint32_t i = type->rank; i-- > 0 && !*why;) {
    int64_t extent = type->extents[i];
    if (extent < 0 && i) *why = "only the first extent may be dynamic";
    if (extent >= 0) count *= (uint64_t)extent;
    if (i) *row = count;
  }
  return !*why;
}

/* Room at the end: by moving what waits to the front when at least half is free there, else by doubling. */
static bool make_room(weft_channel *channel) {
  uint64_t waiting = weft_channel_waiting(channel);
  if (channel->begin >= waiting && channel->begin) {
    memmove(channel->words, channel->words + channel->begin, waiting * sizeof *channel->words);
  } else {
    uint64_t capacity = channel->capacity ? channel->capacity * 2 : 16;
    uint64_t *grown = malloc(capacity * sizeof *grown);
    if (!grown) return false;
    if (waiting) memcpy(grown, channel->words + channel->begin, waiting * sizeof *grown);
    free(channel->words);
    channel->words = grown;
    channel->capacity = capacity;
  }
  channel->begin = 0;
  channel->end = waiting;
  return true;
}

bool weft_channel_push(weft_channel *channel, uint64_t word) {
  if (channel->end == channel->capacity && !make_room(channel)) return false;
  channel->words[channel->end++] = word;
  return true;
}

bool channel_give_back(weft_channel *channel, uint64_t word) {
  if (!channel->begin) {
    if (channel->end == channel->capacity && !make_room(channel)) return false;
    memmove(channel->words + 1, channel->words, channel->end * sizeof *channel->words);
    channel->begin = 1;
    channel->end++;
  }
  channel->words[--channel->begin] = word;
  return true;
}

void weft_channel_free(weft_channel *channel) {
  free(channel->words);
  channel->words = NULL;
  channel->begin = channel->end = channel->capacity = 0;
}

static bool integer_from_text(const scalar *s, const char *text, uint64_t *word) {
  if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
    *word = *text == 't';
    return s->width == 1;
  }
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  bool fits = errno == 0;
  if (!fits && *text != '-') { /* an unsigned 64-bit number */
    errno = 0;
    value = (long long)strtoull(text, &end, 10);
    fits = errno == 0 && s->width == 64;
  }
  if (end == text || *end || !fits) return false;
  if (s->width < 64) {
    int64_t low = -((int64_t)1 << (s->width - 1)), high = (int64_t)(((uint64_t)1 << s->width) - 1);
    if (value < low || value > high) return false;
  }
  *word = scalar_wrap(s->width, (uint64_t)value);
  return true;
}

bool weft_word_from_text(const weft_mlir_type *type, const char *text, uint64_t *word) {
  scalar s;
  if (!scalar_of(type, &s) || !*text) return false;
  if (s.kind == SCALAR_NONE) {
    *word = 0;
    return true;
  }
  if (s.kind == SCALAR_INTEGER) return integer_from_text(&s, text, word);
  char *end;
  double value = strtod(text, &end);
  return end != text && !*end && weft_mlir_float_round(type, value, word);
}

void weft_word_to_text(const weft_mlir_type *type, uint64_t word, weft_text *text) {
  scalar s;
  if (!scalar_of(type, &s) || s.kind == SCALAR_NONE) {
    weft_text_puts(text, "none");
  } else if (s.kind == SCALAR_INTEGER) {
    weft_text_i64(text, (int64_t)word);
  } else {
    double value = weft_mlir_float_value(type, word);
    weft_text_printf(text, isnan(value) || s.width != 64 ? "%.9g" : "%.17g", value);
  }
}
