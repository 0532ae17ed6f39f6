/* weft diff: compares tensor files. */
#include "options.h"
#include "weft/tensor_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int weft_cmd_diff(int argc, char **argv);

/* What still counts as equal. Without any limit only equal elements do. */
typedef struct limits {
  bool has_ulp, has_abs, has_rel;
  uint64_t ulp;
  double abs, rel;
} limits;

typedef struct diff {
  const char *a_path, *b_path;
  weft_tensor_file *a, *b;
  limits limits;
  bool json;
  uint64_t compared, beyond;
  weft_text out;
  weft_diag *diag;
} diff;

static bool is_within(const limits *l, const weft_difference *d) {
  if (!l->has_ulp && !l->has_abs && !l->has_rel) return d->differing == 0;
  return (!l->has_ulp || d->max_ulp <= l->ulp) && (!l->has_abs || d->max_abs <= l->abs) &&
         (!l->has_rel || d->max_rel <= l->rel);
}

/* ---- printing -------------------------------------------------------------------------------------------------------
 */

static void put_index(weft_text *out, const weft_array *array, uint64_t flat) {
  uint64_t index[WEFT_MAX_RANK];
  for (uint32_t i = array->rank; i-- > 0; flat /= array->extents[i]) index[i] = flat % array->extents[i];
  weft_text_puts(out, "[");
  for (uint32_t i = 0; i < array->rank; i++) weft_text_printf(out, "%s%" PRIu64, i ? ", " : "", index[i]);
  weft_text_puts(out, "]");
}

static void put_value(weft_text *out, const weft_array *array, uint64_t index) {
  if (weft_format_is_float(array->dtype))
    weft_text_printf(out, "%.9g", (double)weft_load_f32(array->dtype, array->data, index));
  else
    weft_text_i64(out, weft_load_i64(array->dtype, array->data, index));
}

static void put_names(weft_text *out, const char *a, const char *b) {
  weft_text_puts(out, a);
  if (strcmp(a, b) != 0) weft_text_printf(out, " = %s", b);
}

static void put_line(diff *d, const weft_array *a, const weft_array *b, const weft_difference *difference) {
  weft_text *out = &d->out;
  uint64_t elements = weft_array_elements(a);
  put_names(out, a->name, b->name);
  weft_text_printf(out, ": ");
  if (difference->differing == 0) {
    weft_text_printf(out, "equal, %" PRIu64 " %s\n", elements, weft_format_name(a->dtype));
    return;
  }
  weft_text_printf(out, "%s, %" PRIu64 " of %" PRIu64 " %s differ, first at ",
                   is_within(&d->limits, difference) ? "within limits" : "DIFFERS", difference->differing, elements,
                   weft_format_name(a->dtype));
  put_index(out, a, difference->first_index);
  weft_text_puts(out, " (");
  put_value(out, a, difference->first_index);
  weft_text_puts(out, " and ");
  put_value(out, b, difference->first_index);
  weft_text_printf(out, "); largest difference %.6g absolute, ", difference->max_abs);
  if (difference->max_ulp == UINT64_MAX)
    weft_text_puts(out, "a NaN against a number");
  else
    weft_text_printf(out, "%" PRIu64 " ulp", difference->max_ulp);
  weft_text_printf(out, ", %.6g relative\n", difference->max_rel);
}

static void put_json_number(weft_text *out, const char *name, double value) {
  if (isfinite(value))
    weft_text_printf(out, ", \"%s\": %.17g", name, value);
  else
    weft_text_printf(out, ", \"%s\": null", name);
}

/* Starts an object of the list of tensors. */
static void begin_json(diff *d, const char *a, const char *b) {
  weft_text_puts(&d->out, d->compared ? ",\n  {\"a\": " : "{\"tensors\": [\n  {\"a\": ");
  weft_text_json_string(&d->out, a);
  weft_text_puts(&d->out, ", \"b\": ");
  weft_text_json_string(&d->out, b);
}

static void put_json(diff *d, const weft_array *a, const weft_array *b, const weft_difference *difference) {
  weft_text *out = &d->out;
  begin_json(d, a->name, b->name);
  weft_text_printf(out, ", \"dtype\": \"%s\", \"elements\": %" PRIu64 ", \"differing\": %" PRIu64,
                   weft_format_name(a->dtype), weft_array_elements(a), difference->differing);
  if (difference->differing) weft_text_printf(out, ", \"first_index\": %" PRIu64, difference->first_index);
  put_json_number(out, "max_abs", difference->max_abs);
  weft_text_printf(out, ", \"max_ulp\": %" PRIu64, difference->max_ulp);
  put_json_number(out, "max_rel", difference->max_rel);
  weft_text_printf(out, ", \"within\": %s}", is_within(&d->limits, difference) ? "true" : "false");
}

/* A tensor that could not be compared. */
static void put_failure(diff *d, const char *a, const char *b, const char *why) {
  if (d->json) {
    begin_json(d, a, b);
    weft_text_puts(&d->out, ", \"error\": ");
    weft_text_json_string(&d->out, why);
    weft_text_puts(&d->out, ", \"within\": false}");
  } else {
    put_names(&d->out, a, b);
    weft_text_printf(&d->out, ": DIFFERS, %s\n", why);
  }
  d->compared++;
  d->beyond++;
}

/* ---- comparing ------------------------------------------------------------------------------------------------------
 */

/* Why a dataset cannot be compared, in `why`; false when it can. */
static bool is_unusable(const weft_tensor_file *file, const char *path, const char *name, weft_text *why) {
  const weft_dataset_info *info = weft_tensor_file_find(file, name);
  if (!info)
    weft_text_printf(why, "it is missing in %s", path);
  else if (info->unsupported)
    weft_text_printf(why, "in %s it %s", path, info->unsupported);
  else
    return false;
  return true;
}

static bool same_kind(const weft_array *a, const weft_array *b, weft_text *why) {
  if (a->dtype == b->dtype && a->rank == b->rank && memcmp(a->extents, b->extents, sizeof a->extents) == 0) return true;
  const weft_array *arrays[] = {a, b};
  for (int i = 0; i < 2; i++) {
    weft_text_printf(why, "%s%s [", i ? " against " : "it is ", weft_format_name(arrays[i]->dtype));
    for (uint32_t k = 0; k < arrays[i]->rank; k++)
      weft_text_printf(why, "%s%" PRIu64, k ? ", " : "", arrays[i]->extents[k]);
    weft_text_puts(why, "]");
  }
  return false;
}

static weft_status compare_loaded(diff *d, const weft_array *a, const weft_array *b) {
  weft_text why = {0};
  if (!same_kind(a, b, &why)) {
    put_failure(d, a->name, b->name, why.data ? why.data : "");
    weft_text_free(&why);
    return WEFT_OK;
  }
  weft_difference difference;
  weft_status status = weft_array_compare(a, b, &difference, d->diag);
  if (status != WEFT_OK) return status;
  if (d->json)
    put_json(d, a, b, &difference);
  else
    put_line(d, a, b, &difference);
  d->compared++;
  d->beyond += !is_within(&d->limits, &difference);
  return WEFT_OK;
}

static weft_status compare(diff *d, const char *a, const char *b) {
  weft_text why = {0};
  if (is_unusable(d->a, d->a_path, a, &why) || is_unusable(d->b, d->b_path, b, &why)) {
    put_failure(d, a, b, why.data ? why.data : "");
    weft_text_free(&why);
    return WEFT_OK;
  }
  weft_array_set a_set = {0}, b_set = {0};
  weft_array *a_array = NULL, *b_array = NULL;
  weft_status status = weft_tensor_file_load(d->a, a, &a_set, &a_array, d->diag);
  if (status == WEFT_OK) status = weft_tensor_file_load(d->b, b, &b_set, &b_array, d->diag);
  if (status == WEFT_OK) status = compare_loaded(d, a_array, b_array);
  weft_array_set_free(&a_set);
  weft_array_set_free(&b_set);
  return status;
}

/* Every name of either file, in name order. */
static weft_status compare_all(diff *d) {
  uint64_t i = 0, j = 0, a_count = weft_tensor_file_count(d->a), b_count = weft_tensor_file_count(d->b);
  weft_status status = WEFT_OK;
  while ((i < a_count || j < b_count) && status == WEFT_OK) {
    const char *a = i < a_count ? weft_tensor_file_info(d->a, i)->name : NULL;
    const char *b = j < b_count ? weft_tensor_file_info(d->b, j)->name : NULL;
    int order = !a ? 1 : !b ? -1 : strcmp(a, b);
    const char *name = order <= 0 ? a : b;
    status = compare(d, name, name);
    i += order <= 0;
    j += order >= 0;
  }
  return status;
}

/* The names of one --tensors option: "a,b=c". */
static weft_status compare_listed(diff *d, const char *list) {
  char *copy = strdup(list), *rest = copy, *word;
  weft_status status = copy ? WEFT_OK : weft_error_memory(d->diag);
  while (status == WEFT_OK && (word = strsep(&rest, ",")) != NULL) {
    char *equals = strchr(word, '=');
    if (equals) *equals = 0;
    if (!*word || (equals && !equals[1]))
      status = weft_error(d->diag, WEFT_USAGE, "write --tensors a,b or --tensors a=b", "`%s` names no tensor", list);
    else
      status = compare(d, word, equals ? equals + 1 : word);
  }
  free(copy);
  return status;
}

static weft_status compare_files(diff *d, const weft_option_list *names) {
  weft_status status = weft_tensor_file_open(d->a_path, &d->a, d->diag);
  if (status == WEFT_OK) status = weft_tensor_file_open(d->b_path, &d->b, d->diag);
  if (status == WEFT_OK && names->count == 0) status = compare_all(d);
  for (uint64_t i = 0; i < names->count && status == WEFT_OK; i++) status = compare_listed(d, names->items[i]);
  weft_tensor_file_close(d->a);
  weft_tensor_file_close(d->b);
  if (status != WEFT_OK) return status;
  if (d->json)
    weft_text_printf(&d->out, "%s], \"within\": %s}\n", d->compared ? "" : "{\"tensors\": [",
                     d->beyond ? "false" : "true");
  if (d->out.failed) return weft_error_memory(d->diag);
  weft_tool_print(stdout, &d->out);
  return d->beyond ? WEFT_INVALID : WEFT_OK;
}

int weft_cmd_diff(int argc, char **argv) {
  diff d = {0};
  weft_option_list names = {0};
  const weft_option options[] = {
      {.name = "max-ulp",
       .kind = WEFT_OPTION_COUNT,
       .target = &d.limits.ulp,
       .given = &d.limits.has_ulp,
       .help = "units of the last place that may lie between two elements"},
      {.name = "max-abs",
       .kind = WEFT_OPTION_NUMBER,
       .target = &d.limits.abs,
       .given = &d.limits.has_abs,
       .help = "largest absolute difference"},
      {.name = "max-rel",
       .kind = WEFT_OPTION_NUMBER,
       .target = &d.limits.rel,
       .given = &d.limits.has_rel,
       .help = "largest absolute difference over the largest magnitude in B"},
      {.name = "tensors",
       .letter = 't',
       .kind = WEFT_OPTION_LIST,
       .target = &names,
       .argument = "a,b=c",
       .help = "compare only these; a=b: a of A with b of B"},
      {.name = "json", .kind = WEFT_OPTION_FLAG, .target = &d.json, .help = "one JSON object"},
      {0}};
  const weft_usage usage = {
      .synopsis = "diff A.h5 B.h5 [--max-ulp N] [--max-abs X] [--max-rel X] [--tensors a,b=c] [--json]",
      .about =
          "Compares the datasets of two tensor files: how many elements differ, the first of them, the largest\n"
          "absolute difference, in units of the last place, and relative to the largest magnitude in B. Any NaN\n"
          "equals any NaN; -0 and +0 are one unit apart. Exit status 1 when a dataset is missing, of another type\n"
          "or shape, or beyond a limit; without limits, when anything differs.",
      .example = "weft new mlp --layers 784,256,10 --batch 32 -o digits.json && weft tensor make --program digits.json "
                 "--seed 1 -o in.h5\n"
                 "weft eval digits.json --graph --in in.h5 --out a.h5 && weft eval digits.json --schedule --in in.h5 "
                 "--out b.h5\n"
                 "weft diff a.h5 b.h5 --max-ulp 0\n"
                 "weft diff a.h5 b.h5 --tensors logits --max-abs 5e-5",
      .options = options,
      .least = 2,
      .most = 2};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) {
    weft_option_list_free(&names);
    return exit_code;
  }
  d.a_path = arguments.items[0];
  d.b_path = arguments.items[1];
  d.diag = weft_diag_new();
  weft_status status = d.diag ? compare_files(&d, &names) : WEFT_UNAVAILABLE;
  weft_text_free(&d.out);
  weft_option_list_free(&names);
  return weft_tool_finish(status, d.diag, &arguments);
}
