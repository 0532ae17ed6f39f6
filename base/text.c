#include "weft/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for `more` bytes and the final NUL. */
static bool reserve(weft_text *text, size_t more) {
  if (text->failed) return false;
  uint64_t needed;
  if (weft_add_overflow(text->length, more, &needed) || weft_add_overflow(needed, 1, &needed) || needed > PTRDIFF_MAX) {
    text->failed = true;
    return false;
  }
  if (needed <= text->capacity) return true;
  size_t capacity = weft_max_u64(needed, weft_max_u64(64, text->capacity + text->capacity / 2));
  char *data = realloc(text->data, capacity);
  if (!data) {
    text->failed = true;
    return false;
  }
  weft_memory_will_fill(data + text->length, capacity - text->length);
  text->data = data;
  text->capacity = capacity;
  return true;
}

void weft_text_append(weft_text *text, const char *bytes, size_t length) {
  if (!reserve(text, length)) return;
  if (length) memcpy(text->data + text->length, bytes, length);
  text->length += length;
  text->data[text->length] = 0;
}

void weft_text_puts(weft_text *text, const char *string) { weft_text_append(text, string, strlen(string)); }

void weft_text_vprintf(weft_text *text, const char *format, va_list arguments) {
  if (!reserve(text, 0)) return;
  size_t room = text->capacity - text->length;
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(text->data + text->length, room, format, arguments);
  if (length < 0) {
    text->failed = true;
  } else if ((size_t)length >= room && reserve(text, (size_t)length)) {
    vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
  }
  va_end(again);
  if (text->failed)
    text->data[text->length] = 0;
  else
    text->length += (size_t)length;
}

void weft_text_printf(weft_text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  weft_text_vprintf(text, format, arguments);
  va_end(arguments);
}

static void append_decimal(weft_text *text, uint64_t value, bool negative) {
  char digits[21];
  size_t begin = sizeof digits;
  do {
    digits[--begin] = (char)('0' + value % 10);
    value /= 10;
  } while (value);
  if (negative) digits[--begin] = '-';
  weft_text_append(text, digits + begin, sizeof digits - begin);
}

void weft_text_u64(weft_text *text, uint64_t value) { append_decimal(text, value, false); }

void weft_text_i64(weft_text *text, int64_t value) {
  append_decimal(text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
}

const char *weft_dataset_name_fault(const char *name) {
  size_t part = 0;
  for (const char *at = name;; at++) {
    unsigned char byte = (unsigned char)*at;
    if (byte == '/' || byte == 0) {
      if (part == 0 || (part == 1 && at[-1] == '.')) return "parts between slashes may not be empty or `.`";
      if (byte == 0) return NULL;
      part = 0;
      continue;
    }
    if (byte == 0xc0 && (unsigned char)at[1] == 0x80) return "it may not have the character U+0000"; /* as it is held */
    part++;
  }
}

void weft_text_safe(weft_text *text, const char *string) {
  for (const char *at = string; *at; at++) {
    unsigned char byte = (unsigned char)*at, next = (unsigned char)at[1];
    bool c1 = byte == 0xc2 && next >= 0x80 && next <= 0x9f; /* control characters beyond ASCII, in UTF-8 */
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f)
      weft_text_printf(text, "\\x%02x", byte);
    else if (c1)
      weft_text_printf(text, "\\x%02x", (unsigned char)*++at);
    else
      weft_text_append(text, at, 1);
  }
}

/* Whether `at` begins or ends a comment delimiter with the byte beside it. */
static bool touches_star(const char *name, const char *at) { return at[1] == '*' || (at > name && at[-1] == '*'); }

/* Backslashes are octal, not doubled: a name that ends a // comment must not splice the next line to it. Bytes outside
 * ASCII are octal, which keeps direction overrides and line separators out of the source. Octal escapes always have
 * three digits, so a digit after one does not join it. */
void weft_text_c_string(weft_text *text, const char *name) {
  for (const char *at = name; *at; at++) {
    unsigned char byte = (unsigned char)*at;
    if (byte == '"')
      weft_text_append(text, "\\\"", 2);
    else if (byte == '?')
      weft_text_append(text, "\\?", 2);
    else if (byte == '\n')
      weft_text_append(text, "\\n", 2);
    else if (byte == '\t')
      weft_text_append(text, "\\t", 2);
    else if (byte < 0x20 || byte >= 0x7f || byte == '\\' || (byte == '/' && touches_star(name, at)))
      weft_text_printf(text, "\\%03o", byte);
    else
      weft_text_append(text, at, 1);
  }
}

static bool is_identifier_byte(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
}

void weft_text_c_identifier(weft_text *text, const char *name) {
  for (; *name; name++) weft_text_append(text, is_identifier_byte(*name) ? name : "_", 1);
}

/* The bytes that may follow a lead byte first: RFC 3629, table in section 4. */
static bool second_byte_valid(unsigned char lead, unsigned char byte) {
  unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  return byte >= low && byte <= high;
}

size_t weft_utf8_length(const char *bytes, size_t length) {
  if (!length) return 0;
  const unsigned char *b = (const unsigned char *)bytes;
  if (b[0] < 0x80) return 1;
  size_t needed = b[0] >= 0xc2 && b[0] <= 0xdf   ? 2
                  : b[0] >= 0xe0 && b[0] <= 0xef ? 3
                  : b[0] >= 0xf0 && b[0] <= 0xf4 ? 4
                                                 : 0;
  if (!needed || length < needed || !second_byte_valid(b[0], b[1])) return 0;
  for (size_t i = 2; i < needed; i++)
    if (b[i] < 0x80 || b[i] > 0xbf) return 0;
  return needed;
}

/* Appends the character at `*at` as it is, or U+FFFD for a byte that is not UTF-8, and moves past it. */
static void append_utf8(weft_text *text, const char **at, const char *end) {
  size_t length = weft_utf8_length(*at, (size_t)(end - *at));
  if (length)
    weft_text_append(text, *at, length);
  else
    weft_text_puts(text, "\xef\xbf\xbd");
  *at += length ? length : 1;
}

void weft_text_dot(weft_text *text, const char *name) {
  const char *end = name + strlen(name);
  while (name < end) {
    unsigned char byte = (unsigned char)*name;
    if (byte == '"' || byte == '\\') {
      char escape[2] = {'\\', *name++};
      weft_text_append(text, escape, 2);
    } else if (byte == '&') {
      weft_text_puts(text, "&amp;");
      name++;
    } else if (byte < 0x20 || byte == 0x7f) {
      name++;
    } else {
      append_utf8(text, &name, end);
    }
  }
}

/* The escape of a byte in the neutral dump, or NULL when it stands for itself. */
static const char *json_escape(unsigned char byte, char buffer[8]) {
  switch (byte) {
  case '"': return "\\\"";
  case '\\': return "\\\\";
  case '\b': return "\\b";
  case '\f': return "\\f";
  case '\n': return "\\n";
  case '\r': return "\\r";
  case '\t': return "\\t";
  default: break;
  }
  if (byte >= 0x20) return NULL;
  snprintf(buffer, 8, "\\u%04x", byte);
  return buffer;
}

void weft_text_json_string(weft_text *text, const char *string) {
  const char *end = string + strlen(string);
  weft_text_append(text, "\"", 1);
  while (string < end) {
    char buffer[8];
    const char *escape = json_escape((unsigned char)*string, buffer);
    if (escape) {
      weft_text_puts(text, escape);
      string++;
    } else {
      append_utf8(text, &string, end);
    }
  }
  weft_text_append(text, "\"", 1);
}

void weft_text_free(weft_text *text) {
  free(text->data);
  *text = (weft_text){0};
}

void weft_text_shell(weft_text *text, const char *word) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-,:@%=";
  if (*word && word[strspn(word, plain)] == 0) {
    weft_text_puts(text, word);
    return;
  }
  weft_text_puts(text, "'");
  for (; *word; word++)
    if (*word == '\'')
      weft_text_puts(text, "'\\''");
    else
      weft_text_append(text, word, 1);
  weft_text_puts(text, "'");
}
