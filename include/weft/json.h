/* weft/json.h: configuration and case files (targets, platforms, test cases) as a small JSON tree. The neutral dump has
 * its own reader (weft/ir.h), which builds no tree.
 *
 * Strict RFC 8259 text: UTF-8 checked, duplicate keys refused, nothing after the value, no U+0000 in strings, at most
 * WEFT_JSON_DEPTH levels. Numbers keep their spelling, so that 64-bit integers lose nothing. Everything lives in the
 * arena given to weft_json_parse. */
#ifndef WEFT_JSON_H
#define WEFT_JSON_H

#include "weft/base.h"

#define WEFT_JSON_DEPTH 128

typedef enum weft_json_type {
  WEFT_JSON_NULL,
  WEFT_JSON_BOOL,
  WEFT_JSON_NUMBER,
  WEFT_JSON_STRING,
  WEFT_JSON_ARRAY,
  WEFT_JSON_OBJECT,
} weft_json_type;

typedef struct weft_json weft_json;
struct weft_json {
  weft_json_type type;
  bool boolean;
  weft_place place;       /**< where the value begins */
  const char *key;        /**< the member's name when this is a member of an object, else NULL */
  const char *text;       /**< a string's contents or a number's spelling, NUL-terminated; else NULL */
  size_t length;          /**< bytes of text */
  const weft_json *items; /**< elements or members, in the order of the file */
  uint64_t count;         /**< how many */
};

/** Reads one JSON value from `length` bytes. `file` names them in messages and places; it is copied. WEFT_INVALID with
 * one message at the first fault; WEFT_UNAVAILABLE when memory is exhausted. */
weft_status weft_json_parse(weft_arena *arena, const char *file, const char *bytes, size_t length,
                            const weft_json **root, weft_diag *diag);
/** weft_read_file and weft_json_parse. */
weft_status weft_json_read(weft_arena *arena, const char *path, const weft_json **root, weft_diag *diag);

/** "a number", "an object"... for messages. */
const char *weft_json_type_name(weft_json_type type);
/** The member called `key`, or NULL when there is none or `object` is not an object. */
const weft_json *weft_json_get(const weft_json *object, const char *key);

/* The value of a number; false, storing nothing, when it is not a number or does not fit. The integer forms accept only
 * integer spellings (no point, no exponent); the double form rounds to nearest and refuses what overflows. */
bool weft_json_u64(const weft_json *value, uint64_t *result);
bool weft_json_i64(const weft_json *value, int64_t *result);
bool weft_json_double(const weft_json *value, double *result);

/* Members by name, with messages. An optional member that is missing leaves `*result` alone and is WEFT_OK; a required
 * one that is missing, and any that has another type or does not fit, is WEFT_INVALID with one message at its place. */
typedef enum weft_json_need { WEFT_JSON_OPTIONAL, WEFT_JSON_REQUIRED } weft_json_need;

weft_status weft_json_field(const weft_json *object, const char *key, weft_json_need need, weft_json_type type,
                            const weft_json **result, weft_diag *diag);
weft_status weft_json_field_u64(const weft_json *object, const char *key, weft_json_need need, uint64_t *result,
                                weft_diag *diag);
weft_status weft_json_field_i64(const weft_json *object, const char *key, weft_json_need need, int64_t *result,
                                weft_diag *diag);
weft_status weft_json_field_double(const weft_json *object, const char *key, weft_json_need need, double *result,
                                   weft_diag *diag);
weft_status weft_json_field_bool(const weft_json *object, const char *key, weft_json_need need, bool *result,
                                 weft_diag *diag);
weft_status weft_json_field_string(const weft_json *object, const char *key, weft_json_need need, const char **result,
                                   weft_diag *diag);

/** WEFT_INVALID with a message for every member whose key is not among `keys`; the hint lists them. */
weft_status weft_json_known_keys(const weft_json *object, const char *const *keys, size_t count, weft_diag *diag);

#endif
