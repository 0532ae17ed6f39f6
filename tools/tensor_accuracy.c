/* weft tensor accuracy: how many rows of logits have their label as the largest. */
#include "tensor_commands.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Loads the dataset that FILE:DATASET names. */
static weft_status load(const char *word, weft_array_set *set, weft_array **array, weft_diag *diag) {
  char path[4096];
  const char *colon = strrchr(word, ':');
  if (!colon || colon == word || !colon[1] || (size_t)(colon - word) >= sizeof path)
    return weft_error(diag, WEFT_USAGE, "write FILE.h5:DATASET", "`%s` does not name a dataset of a file", word);
  memcpy(path, word, (size_t)(colon - word));
  path[colon - word] = 0;
  weft_tensor_file *file;
  weft_status status = weft_tensor_file_open(path, &file, diag);
  if (status != WEFT_OK) return status;
  status = weft_tensor_file_load(file, colon + 1, set, array, diag);
  weft_tensor_file_close(file);
  return status;
}

static double element(const weft_array *array, uint64_t index) {
  if (weft_format_is_float(array->dtype)) return (double)weft_load_f32(array->dtype, array->data, index);
  return (double)weft_load_i64(array->dtype, array->data, index);
}

/* The lowest index of a largest element; a NaN is one only in front. */
static uint64_t arg_max(const weft_array *logits, uint64_t begin, uint64_t count) {
  uint64_t best = 0;
  for (uint64_t i = 1; i < count; i++)
    if (element(logits, begin + i) > element(logits, begin + best)) best = i;
  return best;
}

static weft_status check_shapes(const weft_array *logits, const weft_array *labels, uint64_t rows, weft_diag *diag) {
  if (logits->rank < 2 || logits->extents[logits->rank - 1] == 0)
    return weft_error(diag, WEFT_INVALID, "logits are rows of one number a class", "tensor `%s` has no rows of logits",
                      logits->name);
  if (weft_format_is_float(labels->dtype))
    return weft_error(diag, WEFT_INVALID, "labels are integers", "tensor `%s` holds %s, which are no labels",
                      labels->name, weft_format_name(labels->dtype));
  if (weft_array_elements(labels) != rows)
    return weft_error(diag, WEFT_INVALID, "cut the longer with weft tensor slice",
                      "tensor `%s` has %" PRIu64 " rows and tensor `%s` %" PRIu64 " labels", logits->name, rows,
                      labels->name, weft_array_elements(labels));
  return WEFT_OK;
}

static weft_status count_right(const weft_array *logits, const weft_array *labels, weft_diag *diag) {
  uint64_t rows, cols, right = 0;
  weft_plane_extents(logits->rank, logits->extents, &rows, &cols);
  weft_status status = check_shapes(logits, labels, rows, diag);
  if (status != WEFT_OK) return status;
  for (uint64_t row = 0; row < rows; row++) {
    int64_t label = weft_load_i64(labels->dtype, labels->data, row);
    right += label >= 0 && arg_max(logits, row * cols, cols) == (uint64_t)label;
  }
  printf("%" PRIu64 "/%" PRIu64 "\n", right, rows);
  return WEFT_OK;
}

static weft_status accuracy(const char *logits_word, const char *labels_word, weft_diag *diag) {
  weft_array_set logits_set = {0}, labels_set = {0};
  weft_array *logits = NULL, *labels = NULL;
  weft_status status = load(logits_word, &logits_set, &logits, diag);
  if (status == WEFT_OK) status = load(labels_word, &labels_set, &labels, diag);
  if (status == WEFT_OK) status = count_right(logits, labels, diag);
  weft_array_set_free(&logits_set);
  weft_array_set_free(&labels_set);
  return status;
}

int weft_tensor_accuracy(int argc, char **argv) {
  const char *logits = NULL, *labels = NULL;
  const weft_option options[] = {{.name = "logits",
                                  .kind = WEFT_OPTION_TEXT,
                                  .target = &logits,
                                  .argument = "FILE:DATASET",
                                  .help = "rows of one number a class"},
                                 {.name = "labels",
                                  .kind = WEFT_OPTION_TEXT,
                                  .target = &labels,
                                  .argument = "FILE:DATASET",
                                  .help = "the right class of each row"},
                                 {0}};
  const weft_usage usage = {
      .synopsis = "tensor accuracy --logits FILE:DATASET --labels FILE:DATASET",
      .about = "Prints RIGHT/ROWS: the rows whose largest logit (the first of several) is their label.",
      .example = "weft new mlp --layers 784,256,10 --batch 32 -o digits.json && weft tensor make --program digits.json "
                 "--seed 1 -o in.h5\n"
                 "weft eval digits.json --in in.h5 --out result.h5\n"
                 "weft new embedding --rows 32 --cols 16 --hidden 10 -o ids.json && weft tensor make --program "
                 "ids.json -o labels.h5\n"
                 "weft tensor accuracy --logits result.h5:logits --labels labels.h5:ids",
      .options = options};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  if (!logits || !labels) return weft_tool_misuse(&usage, "--%s FILE:DATASET is missing", logits ? "labels" : "logits");
  weft_diag *diag = weft_diag_new();
  weft_status status = diag ? accuracy(logits, labels, diag) : WEFT_UNAVAILABLE;
  return weft_tool_finish(status, diag, &arguments);
}
