/* Looking things up in a JSON tree, with messages that name the key and its place. */
#include "weft/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *weft_json_type_name(weft_json_type type) {
  switch (type) {
  case WEFT_JSON_NULL: return "null";
  case WEFT_JSON_BOOL: return "true or false";
  case WEFT_JSON_NUMBER: return "a number";
  case WEFT_JSON_STRING: return "a string";
  case WEFT_JSON_ARRAY: return "an array";
  case WEFT_JSON_OBJECT: return "an object";
  }
  return "a value";
}

const weft_json *weft_json_get(const weft_json *object, const char *key) {
  if (!object || object->type != WEFT_JSON_OBJECT) return NULL;
  for (uint64_t i = 0; i < object->count; i++)
    if (strcmp(object->items[i].key, key) == 0) return &object->items[i];
  return NULL;
}

static bool is_integer(const weft_json *value) {
  return value && value->type == WEFT_JSON_NUMBER && !strpbrk(value->text, ".eE");
}

bool weft_json_u64(const weft_json *value, uint64_t *result) {
  if (!is_integer(value) || value->text[0] == '-') return false;
  errno = 0;
  unsigned long long number = strtoull(value->text, NULL, 10);
  if (errno) return false;
  *result = number;
  return true;
}

bool weft_json_i64(const weft_json *value, int64_t *result) {
  if (!is_integer(value)) return false;
  errno = 0;
  long long number = strtoll(value->text, NULL, 10);
  if (errno) return false;
  *result = number;
  return true;
}

bool weft_json_double(const weft_json *value, double *result) {
  if (!value || value->type != WEFT_JSON_NUMBER) return false;
  double number = strtod(value->text, NULL);
  if (!isfinite(number)) return false;
  *result = number;
  return true;
}

weft_status weft_json_field(const weft_json *object, const char *key, weft_json_need need, weft_json_type type,
                            const weft_json **result, weft_diag *diag) {
  if (object->type != WEFT_JSON_OBJECT)
    return weft_error_at(diag, WEFT_INVALID, object->place, NULL, "expected an object with \"%s\", found %s", key,
                         weft_json_type_name(object->type));
  const weft_json *value = weft_json_get(object, key);
  if (!value && need == WEFT_JSON_OPTIONAL) return WEFT_OK;
  if (!value)
    return weft_error_at(diag, WEFT_INVALID, object->place, NULL, "\"%s\" is missing: expected %s", key,
                         weft_json_type_name(type));
  if (value->type != type)
    return weft_error_at(diag, WEFT_INVALID, value->place, NULL, "\"%s\" must be %s, found %s", key,
                         weft_json_type_name(type), weft_json_type_name(value->type));
  *result = value;
  return WEFT_OK;
}

/* The value of a number that has none of the wanted kind. */
static weft_status out_of_range(const weft_json *value, const char *wanted, weft_diag *diag) {
  return weft_error_at(diag, WEFT_INVALID, value->place, NULL, "\"%s\" must be %s, found %.40s", value->key, wanted,
                       value->text);
}

weft_status weft_json_field_u64(const weft_json *object, const char *key, weft_json_need need, uint64_t *result,
                                weft_diag *diag) {
  const weft_json *value = NULL;
  weft_status status = weft_json_field(object, key, need, WEFT_JSON_NUMBER, &value, diag);
  if (status || !value) return status;
  if (weft_json_u64(value, result)) return WEFT_OK;
  return out_of_range(value, "an integer from 0 to 18446744073709551615", diag);
}

weft_status weft_json_field_i64(const weft_json *object, const char *key, weft_json_need need, int64_t *result,
                                weft_diag *diag) {
  const weft_json *value = NULL;
  weft_status status = weft_json_field(object, key, need, WEFT_JSON_NUMBER, &value, diag);
  if (status || !value) return status;
  if (weft_json_i64(value, result)) return WEFT_OK;
  return out_of_range(value, "an integer of 64 bits", diag);
}

weft_status weft_json_field_double(const weft_json *object, const char *key, weft_json_need need, double *result,
                                   weft_diag *diag) {
  const weft_json *value = NULL;
  weft_status status = weft_json_field(object, key, need, WEFT_JSON_NUMBER, &value, diag);
  if (status || !value) return status;
  if (weft_json_double(value, result)) return WEFT_OK;
  return out_of_range(value, "a number that a double can hold", diag);
}

weft_status weft_json_field_bool(const weft_json *object, const char *key, weft_json_need need, bool *result,
                                 weft_diag *diag) {
  const weft_json *value = NULL;
  weft_status status = weft_json_field(object, key, need, WEFT_JSON_BOOL, &value, diag);
  if (!status && value) *result = value->boolean;
  return status;
}

weft_status weft_json_field_string(const weft_json *object, const char *key, weft_json_need need, const char **result,
                                   weft_diag *diag) {
  const weft_json *value = NULL;
  weft_status status = weft_json_field(object, key, need, WEFT_JSON_STRING, &value, diag);
  if (!status && value) *result = value->text;
  return status;
}

static bool is_among(const char *key, const char *const *keys, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(key, keys[i]) == 0) return true;
  return false;
}

static void list_keys(weft_text *hint, const char *const *keys, size_t count) {
  weft_text_puts(hint, "known here:");
  for (size_t i = 0; i < count; i++) weft_text_printf(hint, "%s %s", i ? "," : "", keys[i]);
}

weft_status weft_json_known_keys(const weft_json *object, const char *const *keys, size_t count, weft_diag *diag) {
  if (object->type != WEFT_JSON_OBJECT) return WEFT_OK;
  weft_status status = WEFT_OK;
  weft_text hint = {0};
  for (uint64_t i = 0; i < object->count; i++) {
    const weft_json *member = &object->items[i];
    if (is_among(member->key, keys, count)) continue;
    if (!hint.length) list_keys(&hint, keys, count);
    status = weft_error_at(diag, WEFT_INVALID, member->place, hint.data, "unknown key \"%s\"", member->key);
  }
  weft_text_free(&hint);
  return status;
}
