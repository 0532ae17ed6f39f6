/* Diagnostics: messages in an arena. One place is kept for the message about exhausted memory, which needs no memory.
 */
#include "weft/base.h"

#include <stdlib.h>

struct weft_diag {
  weft_arena *arena;
  weft_message *messages;
  uint64_t count;
  uint64_t capacity;
  uint64_t errors;   /* all that were added, stored or not */
  uint64_t others;   /* warnings and notes stored */
  const char *about; /* the file of messages that name none; in the arena, or NULL */
  bool out_of_memory;
};

static const weft_message out_of_memory_message = {
    .severity = WEFT_ERROR,
    .text = "out of memory",
    .hint = "give the process more memory, or work on a smaller program",
};

weft_diag *weft_diag_new(void) {
  weft_diag *diag = calloc(1, sizeof *diag);
  if (!diag) return NULL;
  diag->arena = weft_arena_new();
  if (!diag->arena) {
    free(diag);
    return NULL;
  }
  return diag;
}

void weft_diag_free(weft_diag *diag) {
  if (!diag) return;
  weft_arena_free(diag->arena);
  free(diag);
}

static const char *copy_of(weft_arena *arena, const char *text) {
  return text ? weft_arena_printf(arena, "%s", text) : NULL;
}

static WEFT_PRINTF(2, 0) const char *formatted(weft_arena *arena, const char *format, va_list arguments) {
  weft_text text = {0};
  weft_text_vprintf(&text, format, arguments);
  const char *copy = text.failed ? NULL : weft_arena_string(arena, text.data, text.length);
  weft_text_free(&text);
  return copy;
}

/* Counts the message; whether it should be stored as well. */
static bool admitted(weft_diag *diag, weft_severity severity) {
  if (severity == WEFT_ERROR) return diag->errors++ < WEFT_DIAG_LIMIT;
  return diag->others < WEFT_DIAG_LIMIT;
}

static WEFT_PRINTF(5, 0) void add(weft_diag *diag, weft_severity severity, weft_place place, const char *hint,
                                  const char *format, va_list arguments) {
  if (!diag || !admitted(diag, severity)) return;
  weft_message message = {.severity = severity, .place = place};
  message.place.file = copy_of(diag->arena, place.file);
  message.text = formatted(diag->arena, format, arguments);
  message.hint = copy_of(diag->arena, hint);
  bool lost = !message.text || (hint && !message.hint) || (place.file && !message.place.file);
  if (lost || !weft_arena_grow(diag->arena, &diag->messages, diag->count, &diag->capacity, sizeof *diag->messages)) {
    diag->out_of_memory = true;
    return;
  }
  diag->messages[diag->count++] = message;
  if (severity != WEFT_ERROR) diag->others++;
}

void weft_diag_about(weft_diag *diag, const char *file) {
  if (diag) diag->about = copy_of(diag->arena, file);
}

static weft_place place_or_about(const weft_diag *diag, weft_place place) {
  return place.file || !diag ? place : (weft_place){.file = diag->about};
}

void weft_diag_add(weft_diag *diag, weft_severity severity, weft_place place, const char *hint, const char *format,
                   ...) {
  va_list arguments;
  va_start(arguments, format);
  add(diag, severity, place_or_about(diag, place), hint, format, arguments);
  va_end(arguments);
}

weft_status weft_error(weft_diag *diag, weft_status status, const char *hint, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  /* A wrong command line or a failing machine is no fault of the file. */
  weft_place place = status == WEFT_INVALID ? place_or_about(diag, (weft_place){0}) : (weft_place){0};
  add(diag, WEFT_ERROR, place, hint, format, arguments);
  va_end(arguments);
  return status;
}

weft_status weft_error_at(weft_diag *diag, weft_status status, weft_place place, const char *hint, const char *format,
                          ...) {
  va_list arguments;
  va_start(arguments, format);
  add(diag, WEFT_ERROR, place, hint, format, arguments);
  va_end(arguments);
  return status;
}

weft_status weft_error_memory(weft_diag *diag) {
  if (diag) {
    diag->errors++;
    diag->out_of_memory = true;
  }
  return WEFT_UNAVAILABLE;
}

uint64_t weft_diag_count(const weft_diag *diag) { return diag ? diag->count + diag->out_of_memory : 0; }

const weft_message *weft_diag_message(const weft_diag *diag, uint64_t index) {
  if (!diag || index >= weft_diag_count(diag)) return NULL;
  return index < diag->count ? &diag->messages[index] : &out_of_memory_message;
}

uint64_t weft_diag_errors(const weft_diag *diag) { return diag ? diag->errors : 0; }

void weft_diag_clear(weft_diag *diag) {
  if (!diag) return;
  weft_arena_reset(diag->arena);
  *diag = (weft_diag){.arena = diag->arena};
}

/* ---- printing ---- */

static void put_place(weft_text *text, weft_place place) {
  if (!place.file) return;
  weft_text_safe(text, place.file);
  if (place.line) weft_text_printf(text, ":%llu", (unsigned long long)place.line);
  if (place.line && place.column) weft_text_printf(text, ":%llu", (unsigned long long)place.column);
  weft_text_puts(text, ": ");
}

void weft_message_put(const weft_message *message, weft_text *text) {
  static const char *const marks[] = {[WEFT_NOTE] = "note: ", [WEFT_WARNING] = "warning: ", [WEFT_ERROR] = ""};
  weft_text_puts(text, "weft: ");
  put_place(text, message->place);
  weft_text_puts(text, marks[message->severity]);
  weft_text_safe(text, message->text);
  if (message->hint) {
    weft_text_puts(text, "\nhint: ");
    weft_text_safe(text, message->hint);
  }
  weft_text_puts(text, "\n");
}
