/* weft tensor: makes, looks at, cuts and adapts tensor files. */
#include "tensor_commands.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

int weft_cmd_tensor(int argc, char **argv);

int weft_cmd_tensor(int argc, char **argv) {
  static const weft_verb verbs[] = {
      {"make", weft_tensor_make, "random inputs and parameters for every tensor a program reads"},
      {"show", weft_tensor_show, "what a file holds"},
      {"slice", weft_tensor_slice, "cut rows out of datasets"},
      {"rename", weft_tensor_rename, "give datasets other names"},
      {"accuracy", weft_tensor_accuracy, "count the rows whose largest logit is their label"},
      {0},
  };
  return weft_verbs_run("tensor", verbs, argc, argv);
}

weft_status weft_tensor_pieces(weft_tensor_block whole, weft_status (*piece)(void *context, weft_tensor_block block),
                               void *context) {
  if (whole.rows == 0 || whole.cols == 0) return WEFT_OK;
  uint64_t cols = weft_min_u64(whole.cols, WEFT_TENSOR_PIECE);
  uint64_t rows = cols == whole.cols ? weft_max_u64(1, WEFT_TENSOR_PIECE / cols) : 1;
  weft_status status = WEFT_OK;
  for (uint64_t row = 0; row < whole.rows && status == WEFT_OK; row += rows)
    for (uint64_t col = 0; col < whole.cols && status == WEFT_OK; col += cols)
      status = piece(context, (weft_tensor_block){whole.row0 + row, weft_min_u64(rows, whole.rows - row),
                                                  whole.col0 + col, weft_min_u64(cols, whole.cols - col)});
  return status;
}

void weft_tensor_put_shape(weft_text *text, uint32_t rank, const uint64_t *extents) {
  weft_text_puts(text, "[");
  for (uint32_t i = 0; i < rank; i++) weft_text_printf(text, "%s%" PRIu64, i ? ", " : "", extents[i]);
  weft_text_puts(text, "]");
}

/* ---- show -----------------------------------------------------------------------------------------------------------
 */

/* What a dataset's elements are like. */
typedef struct statistics {
  uint64_t count, nans;
  double least, greatest, sum;
} statistics;

static statistics statistics_of(const weft_array *array) {
  statistics s = {.count = weft_array_elements(array), .least = INFINITY, .greatest = -INFINITY};
  for (uint64_t i = 0; i < s.count; i++) {
    double value = weft_format_is_float(array->dtype) ? (double)weft_load_f32(array->dtype, array->data, i)
                                                      : (double)weft_load_i64(array->dtype, array->data, i);
    s.nans += isnan(value);
    s.least = fmin(s.least, value);
    s.greatest = fmax(s.greatest, value);
    s.sum += isnan(value) ? 0 : value;
  }
  return s;
}

static weft_status put_statistics(weft_tensor_file *file, const weft_dataset_info *info, weft_text *text,
                                  weft_diag *diag) {
  weft_array_set set = {0};
  weft_array *array;
  weft_status status = weft_tensor_file_load(file, info->name, &set, &array, diag);
  if (status == WEFT_OK) {
    statistics s = statistics_of(array);
    if (s.count > s.nans)
      weft_text_printf(text, "  least %.9g greatest %.9g mean %.6g", s.least, s.greatest,
                       s.sum / (double)(s.count - s.nans));
    if (s.nans) weft_text_printf(text, "  %" PRIu64 " NaN", s.nans);
  }
  weft_array_set_free(&set);
  return status;
}

static weft_status put_line(weft_tensor_file *file, const weft_dataset_info *info, bool with_statistics, int width,
                            weft_text *text, weft_diag *diag) {
  weft_text_printf(text, "%-*s  ", width, info->name);
  if (info->unsupported) {
    weft_text_printf(text, "not readable: it %s\n", info->unsupported);
    return WEFT_OK;
  }
  weft_text_printf(text, "%-5s  ", weft_format_name(info->dtype));
  weft_tensor_put_shape(text, info->rank, info->extents);
  if (*info->role) weft_text_printf(text, "  %s", info->role);
  weft_status status = with_statistics ? put_statistics(file, info, text, diag) : WEFT_OK;
  weft_text_puts(text, "\n");
  return status;
}

static void put_json(const weft_dataset_info *info, weft_text *text) {
  weft_text_puts(text, "{\"name\": ");
  weft_text_json_string(text, info->name);
  if (info->unsupported) {
    weft_text_puts(text, ", \"unreadable\": ");
    weft_text_json_string(text, info->unsupported);
  } else {
    weft_text_printf(text, ", \"dtype\": \"%s\", \"shape\": ", weft_format_name(info->dtype));
    weft_tensor_put_shape(text, info->rank, info->extents);
    weft_text_puts(text, ", \"role\": ");
    weft_text_json_string(text, info->role);
  }
  weft_text_puts(text, "}");
}

static weft_status show(const char *path, bool json, bool with_statistics, weft_diag *diag) {
  weft_tensor_file *file;
  weft_status status = weft_tensor_file_open(path, &file, diag);
  if (status != WEFT_OK) return status;
  weft_text text = {0};
  int width = 0;
  uint64_t count = weft_tensor_file_count(file);
  for (uint64_t i = 0; i < count; i++) {
    int length = snprintf(NULL, 0, "%s", weft_tensor_file_info(file, i)->name);
    if (length > width && length <= 40) width = length;
  }
  if (json) weft_text_puts(&text, "[");
  for (uint64_t i = 0; i < count && status == WEFT_OK; i++) {
    const weft_dataset_info *info = weft_tensor_file_info(file, i);
    if (json) {
      weft_text_puts(&text, i ? ",\n " : "");
      put_json(info, &text);
    } else {
      status = put_line(file, info, with_statistics, width, &text, diag);
    }
  }
  if (json) weft_text_puts(&text, "]\n");
  if (text.failed) status = weft_error_memory(diag);
  weft_tool_print(stdout, &text);
  weft_text_free(&text);
  weft_tensor_file_close(file);
  return status;
}

int weft_tensor_show(int argc, char **argv) {
  bool json = false, with_statistics = false;
  const weft_option options[] = {
      {.name = "json", .kind = WEFT_OPTION_FLAG, .target = &json, .help = "a JSON array of names, types and shapes"},
      {.name = "statistics",
       .letter = 's',
       .kind = WEFT_OPTION_FLAG,
       .target = &with_statistics,
       .help = "read the data: least, greatest, mean, NaNs"},
      {0}};
  const weft_usage usage = {.synopsis = "tensor show FILE.h5 [--statistics] [--json]",
                            .about = "Lists the datasets of a tensor file in name order: type, shape, role.",
                            .example = "weft new mlp --layers 784,256,10 --batch 32 -o digits.json && weft tensor make "
                                       "--program digits.json --seed 1 -o in.h5\n"
                                       "weft tensor show in.h5",
                            .options = options,
                            .least = 1,
                            .most = 1};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  weft_diag *diag = weft_diag_new();
  weft_status status = diag ? show(arguments.items[0], json, with_statistics, diag) : WEFT_UNAVAILABLE;
  return weft_tool_finish(status, diag, &arguments);
}
