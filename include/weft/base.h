/* weft/base.h: what every library of weft stands on: status, diagnostics, arenas, text building, checked sizes.
 *
 * Ownership: an object made by weft_X_new is freed by weft_X_free; everything allocated from an arena lives until the
 * arena is freed or reset. Libraries never print and never exit: they return a weft_status and add to a weft_diag. */
#ifndef WEFT_BASE_H
#define WEFT_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define WEFT_PRINTF(format_index, first_argument) __attribute__((format(printf, format_index, first_argument)))
#else
#define WEFT_PRINTF(format_index, first_argument)
#endif

#define WEFT_VERSION "0.1.0"
/** The version of the arithmetic (docs/arithmetic.md): results are equal bit for bit between runs that agree on it. */
#define WEFT_ARITHMETIC_VERSION 1

/** How a call ended. The command's exit status is weft_status_exit_code of it. */
typedef enum weft_status {
  WEFT_OK = 0,
  WEFT_INVALID,     /**< the input is wrong: malformed, inconsistent, or refused by name */
  WEFT_USAGE,       /**< the caller asked for something that does not exist (option, pass, target) */
  WEFT_UNAVAILABLE, /**< the machine failed: memory, disk, MPI */
} weft_status;

/** 0 done, 1 the input is wrong, 2 the command line is wrong, 3 the machine failed. */
int weft_status_exit_code(weft_status status);

/* ---- arenas ------------------------------------------------------------------------------------------------- */

/** A region of memory with one life. Not thread-safe: one arena a thread. */
typedef struct weft_arena weft_arena;

/** A new empty arena, or NULL when memory is exhausted. Freed by weft_arena_free. */
weft_arena *weft_arena_new(void);
void weft_arena_free(weft_arena *arena);
/** Forgets everything allocated, keeping the memory for reuse. */
void weft_arena_reset(weft_arena *arena);
/** `size` zeroed bytes aligned to 16, or NULL when memory is exhausted (then weft_arena_failed stays true). size 0
 * gives a valid pointer. */
void *weft_arena_alloc(weft_arena *arena, size_t size);
/** `count` zeroed elements of `size` bytes; NULL also when count * size leaves size_t. */
void *weft_arena_array(weft_arena *arena, uint64_t count, size_t size);
/** A NUL-terminated copy of `length` bytes. */
char *weft_arena_string(weft_arena *arena, const char *text, size_t length);
char *weft_arena_printf(weft_arena *arena, const char *format, ...) WEFT_PRINTF(2, 3);
/** Whether any allocation has failed since the arena was made: a builder may check once at its end. */
bool weft_arena_failed(const weft_arena *arena);
/** Bytes reserved from the system now. */
size_t weft_arena_bytes(const weft_arena *arena);

#define WEFT_NEW(arena, type) ((type *)weft_arena_alloc((arena), sizeof(type)))
#define WEFT_NEW_ARRAY(arena, type, count) ((type *)weft_arena_array((arena), (count), sizeof(type)))

/** Tells the system that large memory is about to be filled: it may then come in huge pages, which cost far fewer
 * faults. */
void weft_memory_will_fill(void *data, size_t bytes);

/** Makes room for one more element in a growing arena array: doubles `*items` when count == *capacity. Returns false
 * when memory is exhausted. `items` is the address of the array pointer. */
bool weft_arena_grow(weft_arena *arena, void *items, uint64_t count, uint64_t *capacity, size_t element_size);

/* ---- growing texts ------------------------------------------------------------------------------------------- */

/** A growing text. Plain ownership: starts zeroed, freed by weft_text_free. After memory runs out `failed` is true and
 * appending does nothing. */
typedef struct weft_text {
  char *data; /**< NUL-terminated once anything was appended; NULL before */
  size_t length;
  size_t capacity;
  bool failed;
} weft_text;

/** Why a file of tensors cannot hold a dataset of this name, or NULL: parts between slashes may not be empty or `.`,
 * and there is no U+0000. Other control characters are held, and escaped where a name is printed. */
const char *weft_dataset_name_fault(const char *name);

/* ---- diagnostics -------------------------------------------------------------------------------------------- */

typedef enum weft_severity { WEFT_NOTE, WEFT_WARNING, WEFT_ERROR } weft_severity;

/** Where a message points. Unused parts are NULL or 0. */
typedef struct weft_place {
  const char *file;
  uint64_t line;   /**< 1-based; 0 unknown */
  uint64_t column; /**< 1-based; 0 unknown */
} weft_place;

typedef struct weft_message {
  weft_severity severity;
  weft_place place;
  const char *text;
  const char *hint; /**< what to change; NULL when there is nothing to say */
} weft_message;

/** A list of messages, owned by the caller and handed down. Bounded: past WEFT_DIAG_LIMIT errors only the count grows.
 */
typedef struct weft_diag weft_diag;
#define WEFT_DIAG_LIMIT 1000

weft_diag *weft_diag_new(void);
void weft_diag_free(weft_diag *diag);
/** Adds a message; text and hint are copied. `hint` may be NULL. A NULL diag is allowed and drops it. */
void weft_diag_add(weft_diag *diag, weft_severity severity, weft_place place, const char *hint, const char *format, ...)
    WEFT_PRINTF(5, 6);
/** Adds an error without a place and returns `status`: `return weft_error(diag, WEFT_INVALID, "hint", "text")`. */
weft_status weft_error(weft_diag *diag, weft_status status, const char *hint, const char *format, ...)
    WEFT_PRINTF(4, 5);
/** The same with a place. */
weft_status weft_error_at(weft_diag *diag, weft_status status, weft_place place, const char *hint, const char *format,
                          ...) WEFT_PRINTF(5, 6);
/** The message for exhausted memory; returns WEFT_UNAVAILABLE. */
weft_status weft_error_memory(weft_diag *diag);
uint64_t weft_diag_count(const weft_diag *diag);
const weft_message *weft_diag_message(const weft_diag *diag, uint64_t index);
uint64_t weft_diag_errors(const weft_diag *diag);
/** The message as a command prints it: "weft: FILE:LINE:COLUMN: warning: TEXT", and a line "hint: HINT". */
void weft_message_put(const weft_message *message, weft_text *text);
/** Forgets all messages, and what they are about. */
void weft_diag_clear(weft_diag *diag);
/** Messages that come without a place are about this file from now on, errors if they are WEFT_INVALID; NULL: about
 * none. The name is copied. */
void weft_diag_about(weft_diag *diag, const char *file);

/* ---- text --------------------------------------------------------------------------------------------------- */

void weft_text_append(weft_text *text, const char *bytes, size_t length);
void weft_text_puts(weft_text *text, const char *string);
void weft_text_printf(weft_text *text, const char *format, ...) WEFT_PRINTF(2, 3);
void weft_text_vprintf(weft_text *text, const char *format, va_list arguments) WEFT_PRINTF(2, 0);
void weft_text_u64(weft_text *text, uint64_t value);
void weft_text_i64(weft_text *text, int64_t value);
/** Text from a file, or with names from one, for a terminal: what would command it becomes \xHH; line breaks and tabs
 * stay. */
void weft_text_safe(weft_text *text, const char *string);
/** The name as a C comment-safe, string-safe text: C string escapes, no line breaks, no comment ends. */
void weft_text_c_string(weft_text *text, const char *name);
/** Appends a word as a shell reads it: in quotes unless it needs none. */
void weft_text_shell(weft_text *text, const char *word);
/** The name as part of a C identifier: letters, digits and _ kept, every other byte replaced by _. Not unique. */
void weft_text_c_identifier(weft_text *text, const char *name);
/** The name as a DOT quoted string body: quotes, backslashes and & escaped, controls dropped, bytes that are not UTF-8
 * replaced by U+FFFD. */
void weft_text_dot(weft_text *text, const char *name);
/** A JSON string with its quotes, in the neutral dump's escapes; bytes that are not UTF-8 become U+FFFD. */
void weft_text_json_string(weft_text *text, const char *string);
void weft_text_free(weft_text *text);

/** Bytes of the UTF-8 character that `bytes` begins with (RFC 3629: no surrogates, nothing overlong); 0 when there is
 * none. */
size_t weft_utf8_length(const char *bytes, size_t length);

/** Insertions, deletions, replacements and swaps of neighbours that turn one name into the other, over their first 63
 * bytes. */
uint32_t weft_edit_distance(const char *a, const char *b);
/** Whether one name was probably meant by the other: their distance is at most 1 or a third of the longer one. */
bool weft_names_alike(const char *a, const char *b);

/** Reads a whole file ("-" is standard input) into a malloc'ed, NUL-terminated buffer that the caller frees. */
weft_status weft_read_file(const char *path, char **bytes, size_t *length, weft_diag *diag);
/** Writes a file whole ("-" is standard output): beside it, synced, renamed. Unchanged contents leave the file alone
 * when `keep_if_equal`, so that build tools see no change. */
weft_status weft_write_file(const char *path, const char *bytes, size_t length, bool keep_if_equal, weft_diag *diag);

/** What to change when the system refused a path with `error`, an errno; NULL when there is nothing to say. */
const char *weft_path_hint(int error, bool writes);

/** Makes a directory unless it is there, and holds it until weft_directory_release: of those who write sets of files
 * into it one goes after the other. */
weft_status weft_directory_hold(const char *path, int *held, weft_diag *diag);
void weft_directory_release(int held);

/* ---- checked sizes ------------------------------------------------------------------------------------------ */

/** a * b and a + b; true when the result left 64 bits (the result is then unspecified). */
static inline bool weft_mul_overflow(uint64_t a, uint64_t b, uint64_t *result) {
  return __builtin_mul_overflow(a, b, result);
}
static inline bool weft_add_overflow(uint64_t a, uint64_t b, uint64_t *result) {
  return __builtin_add_overflow(a, b, result);
}
static inline uint64_t weft_min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t weft_max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }
/** ceil(a / b), b > 0. */
static inline uint64_t weft_ceil_div(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

/** FNV-1a over `length` bytes, continued from `seed` (0 to start). For class keys and program hashes, not security. */
uint64_t weft_hash_bytes(uint64_t seed, const void *bytes, size_t length);

/** The next value of a splitmix64 generator: the one source of pseudo-random numbers in weft and its tests. */
uint64_t weft_random_next(uint64_t *state);

/* ---- parallel loops ----------------------------------------------------------------------------------------- */

/** Calls body(context, index) for every index below count on up to `threads` threads (0: all the process may use). With
 * one thread it is a plain loop; the order of calls is unspecified otherwise, so bodies write only to their own index.
 */
void weft_parallel_for(uint64_t count, int threads, void (*body)(void *context, uint64_t index), void *context);

#endif
