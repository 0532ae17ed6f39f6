/* Inputs of graphs from the command line, and their contents afterwards. */
#include "dataflow_tool.h"
#include "weft/json.h"
#include "weft/tensor_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void weft_tool_inputs_free(weft_tool_inputs *inputs) {
  weft_option_list_free(&inputs->args);
  weft_option_list_free(&inputs->memories);
  weft_option_list_free(&inputs->streams);
}

static weft_status wrong(weft_diag *diag, const char *option, const char *text, const char *why) {
  return weft_error(diag, WEFT_USAGE, "inputs are counted from 0: --arg 0=3, --mem '1=[1, 2]', --stream 2=FILE.h5:NAME",
                    "%s %s: %s", option, text, why);
}

/* "INDEX=value": the input, and where the value begins. */
static weft_status split(const char *option, const char *text, const weft_tool_bindings *b, uint64_t *index,
                         const char **value, weft_diag *diag) {
  char *end;
  *index = strtoull(text, &end, 10);
  if (end == text || *end != '=') return wrong(diag, option, text, "INDEX=VALUE is expected");
  if (*index >= b->count) return wrong(diag, option, text, "the entry has no input of this number");
  *index = b->places[*index];
  *value = end + 1;
  return WEFT_OK;
}

/* A JSON array of words of `type`. */
static weft_status words_from_json(weft_arena *arena, const weft_json *list, const weft_mlir_type *type,
                                   uint64_t **words, uint64_t *count, weft_diag *diag) {
  if (list->type != WEFT_JSON_ARRAY)
    return weft_error_at(diag, WEFT_INVALID, list->place, "write [1, 2, ...]", "an array of numbers is expected");
  *count = list->count;
  *words = WEFT_NEW_ARRAY(arena, uint64_t, list->count);
  if (!*words) return weft_error_memory(diag);
  for (uint64_t i = 0; i < list->count; i++) {
    const weft_json *item = &list->items[i];
    const char *text = item->type == WEFT_JSON_BOOL ? (item->boolean ? "1" : "0") : item->text;
    if (!text || !weft_word_from_text(type, text, &(*words)[i]))
      return weft_error_at(diag, WEFT_INVALID, item->place, "numbers must fit the element type of the memory",
                           "this is no value of the element type");
  }
  return WEFT_OK;
}

/* ---- HDF5 ------------------------------------------------------------------------------------------------------- */

static weft_format format_of(const weft_mlir_type *type) {
  static const struct {
    const char *name;
    weft_format format;
  } formats[] = {{"i8", WEFT_INT8},     {"i16", WEFT_INT16}, {"i32", WEFT_INT32}, {"i64", WEFT_INT64},
                 {"index", WEFT_INT64}, {"f16", WEFT_FP16},  {"bf16", WEFT_BF16}, {"f32", WEFT_FP32}};
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (type->name && strcmp(type->name, formats[i].name) == 0) return formats[i].format;
  return WEFT_FORMAT_COUNT;
}

static uint64_t word_of(weft_format format, const void *data, uint64_t index) {
  uint64_t bits = 0;
  size_t bytes = weft_format_bytes(format);
  if (!weft_format_is_float(format)) return (uint64_t)weft_load_i64(format, data, index);
  memcpy(&bits, (const char *)data + index * bytes, bytes);
  return bits;
}

static weft_status words_from_hdf5(weft_arena *arena, const char *path, const char *name, const weft_mlir_type *type,
                                   uint64_t **words, uint64_t *count, weft_diag *diag) {
  weft_format format = format_of(type);
  weft_array_set set = {0};
  if (format == WEFT_FORMAT_COUNT)
    return weft_error(diag, WEFT_INVALID, "give the values as [1, 2, ...]", "HDF5 files hold no arrays of %s",
                      type->name ? type->name : "this type");
  weft_status status = weft_array_set_read(path, &set, diag);
  const weft_array *array = status == WEFT_OK ? weft_array_set_find(&set, *name == '/' ? name + 1 : name) : NULL;
  if (status == WEFT_OK && !array) status = weft_error(diag, WEFT_INVALID, NULL, "%s holds no dataset %s", path, name);
  if (status == WEFT_OK && array->dtype != format)
    status = weft_error(diag, WEFT_INVALID, NULL, "%s:%s does not have the element type %s", path, name, type->name);
  if (status == WEFT_OK) {
    *count = weft_array_elements(array);
    *words = WEFT_NEW_ARRAY(arena, uint64_t, *count);
    if (!*words) status = weft_error_memory(diag);
    for (uint64_t i = 0; status == WEFT_OK && i < *count; i++) (*words)[i] = word_of(format, array->data, i);
  }
  weft_array_set_free(&set);
  return status;
}

static weft_status write_hdf5(const weft_mlir_op *entry, const weft_tool_bindings *b, const char *path,
                              weft_diag *diag) {
  weft_array_set set = {0};
  weft_status status = WEFT_OK;
  for (uint64_t i = 0; status == WEFT_OK && i < b->count; i++) {
    const weft_memory *own = &b->buffers[b->places[i]], *buffer = b->items[b->places[i]].buffer == own ? own : NULL;
    if (!buffer) continue;
    weft_format format = format_of(buffer->element);
    char name[32];
    snprintf(name, sizeof name, "mem%" PRIu64, i);
    weft_array *array = format < WEFT_FORMAT_COUNT ? weft_array_set_add(&set, name, format, 1, &buffer->count) : NULL;
    if (!array)
      status = weft_error(diag, WEFT_INVALID, NULL, "memory %" PRIu64 " of @%s cannot be written to HDF5", i,
                          weft_mlir_symbol_name(entry));
    for (uint64_t k = 0; array && k < buffer->count; k++)
      memcpy((char *)array->data + k * weft_format_bytes(format), &buffer->words[k], weft_format_bytes(format));
  }
  if (status == WEFT_OK) status = weft_array_set_write(path, &set, diag);
  weft_array_set_free(&set);
  return status;
}

/* ---- binding ---------------------------------------------------------------------------------------------------- */

/* Words of a memory or stream: inline JSON, which is part of the command line, a JSON file, or FILE.h5:DATASET. */
static weft_status read_words(weft_tool_bindings *b, const char *value, const weft_mlir_type *type, uint64_t **words,
                              uint64_t *count, weft_diag *diag) {
  const weft_json *root;
  const char *colon = strrchr(value, ':');
  if (*value == '[') {
    weft_status status = weft_json_parse(b->arena, "command line", value, strlen(value), &root, diag);
    if (status == WEFT_OK) status = words_from_json(b->arena, root, type, words, count, diag);
    return status == WEFT_INVALID ? WEFT_USAGE : status;
  }
  if (colon) {
    char *path = weft_arena_string(b->arena, value, (size_t)(colon - value));
    return path ? words_from_hdf5(b->arena, path, colon + 1, type, words, count, diag) : weft_error_memory(diag);
  }
  weft_status status = weft_json_read(b->arena, value, &root, diag);
  return status == WEFT_OK ? words_from_json(b->arena, root, type, words, count, diag) : status;
}

static weft_status bind_memory(const weft_mlir_type *type, weft_tool_bindings *b, uint64_t index, const char *text,
                               const char *value, weft_diag *diag) {
  if (type->kind != WEFT_MLIR_MEMREF_TYPE) return wrong(diag, "--mem", text, "this input is no memory");
  if (*value == '@') {
    uint64_t other = strtoull(value + 1, NULL, 10);
    if (other < b->count) other = b->places[other];
    if (other >= b->count || !b->items[other].buffer) return wrong(diag, "--mem", text, "give the other memory first");
    b->items[index].buffer = b->items[other].buffer;
    return WEFT_OK;
  }
  weft_memory *buffer = &b->buffers[index];
  *buffer = (weft_memory){.element = type->element};
  b->items[index].buffer = buffer;
  return read_words(b, value, type->element, &buffer->words, &buffer->count, diag);
}

static weft_status bind_stream(const weft_mlir_type *type, weft_tool_bindings *b, uint64_t index, const char *value,
                               weft_diag *diag) {
  weft_channel *channel = &b->channels[index];
  uint64_t *words, count;
  channel->element =
      type->kind == WEFT_MLIR_DIALECT_TYPE && type->parameter_count ? type->parameters[0]->as.type_value : type;
  weft_status status = read_words(b, value, channel->element, &words, &count, diag);
  for (uint64_t i = 0; status == WEFT_OK && i < count; i++)
    if (!weft_channel_push(channel, words[i])) status = weft_error_memory(diag);
  b->items[index].channel = channel;
  return status;
}

static weft_status make_outputs(const weft_mlir_op *entry, weft_tool_bindings *b, weft_diag *diag) {
  const weft_mlir_attribute *segments = weft_mlir_attribute_of(entry, "result_segments");
  b->output_count = segments ? (uint64_t)weft_mlir_dense_integer(segments, 1) : 0;
  b->outputs = WEFT_NEW_ARRAY(b->arena, weft_channel, b->output_count);
  if (!b->outputs) return weft_error_memory(diag);
  for (uint64_t i = 0; i < b->output_count; i++)
    b->outputs[i].element = weft_mlir_function_type(entry)->results[(uint64_t)weft_mlir_dense_integer(segments, 0) + i];
  return WEFT_OK;
}

weft_status weft_tool_bind(const weft_mlir_op *entry, const weft_tool_inputs *inputs, weft_tool_bindings *b,
                           weft_diag *diag) {
  const weft_mlir_type *type = weft_mlir_function_type(entry);
  uint64_t index;
  const char *value;
  b->arena = weft_arena_new();
  b->count = type->input_count;
  if (!b->arena) return weft_error_memory(diag);
  b->items = WEFT_NEW_ARRAY(b->arena, weft_binding, b->count);
  b->buffers = WEFT_NEW_ARRAY(b->arena, weft_memory, b->count);
  b->channels = WEFT_NEW_ARRAY(b->arena, weft_channel, b->count);
  b->places = WEFT_NEW_ARRAY(b->arena, uint32_t, b->count);
  if (weft_arena_failed(b->arena)) return weft_error_memory(diag);
  const weft_mlir_attribute *order = weft_mlir_attribute_of(entry, "weft.input_order");
  for (uint32_t i = 0; i < b->count; i++) b->places[i] = order ? (uint32_t)weft_mlir_dense_integer(order, i) : i;
  for (uint64_t i = 0; i < b->count; i++)
    if (type->inputs[i]->kind == WEFT_MLIR_DIALECT_TYPE &&
        type->inputs[i]->parameter_count) { /* channels may stay empty */
      b->channels[i].element = type->inputs[i]->parameters[0]->as.type_value;
      b->items[i].channel = &b->channels[i];
    }
  weft_status status = make_outputs(entry, b, diag);
  for (uint64_t i = 0; status == WEFT_OK && i < inputs->args.count; i++) {
    status = split("--arg", inputs->args.items[i], b, &index, &value, diag);
    if (status == WEFT_OK && !weft_word_from_text(type->inputs[index], value, &b->items[index].word))
      status = wrong(diag, "--arg", inputs->args.items[i], "this is no value of the input's type");
  }
  for (uint64_t i = 0; status == WEFT_OK && i < inputs->memories.count; i++) {
    status = split("--mem", inputs->memories.items[i], b, &index, &value, diag);
    if (status == WEFT_OK) status = bind_memory(type->inputs[index], b, index, inputs->memories.items[i], value, diag);
  }
  for (uint64_t i = 0; status == WEFT_OK && i < inputs->streams.count; i++) {
    status = split("--stream", inputs->streams.items[i], b, &index, &value, diag);
    if (status == WEFT_OK) status = bind_stream(type->inputs[index], b, index, value, diag);
  }
  return status;
}

void weft_tool_bindings_free(weft_tool_bindings *b) {
  for (uint64_t i = 0; b->channels && i < b->count; i++) weft_channel_free(&b->channels[i]);
  for (uint64_t i = 0; i < b->output_count; i++) weft_channel_free(&b->outputs[i]);
  weft_arena_free(b->arena);
}

/* ---- printing --------------------------------------------------------------------------------------------------- */

static void print_words(const char *what, uint64_t number, const weft_mlir_type *type, const uint64_t *words,
                        uint64_t count) {
  enum { SHOWN = 64 };
  weft_text text = {0};
  for (uint64_t i = 0; i < count && i < SHOWN; i++) {
    if (i) weft_text_puts(&text, ", ");
    weft_word_to_text(type, words[i], &text);
  }
  printf("%s %" PRIu64 ": [%s", what, number, text.data ? text.data : "");
  if (count > SHOWN) printf(", ... %" PRIu64 " in all", count);
  printf("]\n");
  weft_text_free(&text);
}

weft_status weft_tool_print_bindings(const weft_mlir_op *entry, const weft_tool_bindings *b, const char *output,
                                     weft_diag *diag) {
  for (uint64_t i = 0; i < b->count; i++) {
    const weft_binding *item = &b->items[b->places[i]];
    if (item->buffer == &b->buffers[b->places[i]])
      print_words("memory", i, item->buffer->element, item->buffer->words, item->buffer->count);
    if (item->channel)
      print_words("stream", i, item->channel->element, weft_channel_first(item->channel),
                  weft_channel_waiting(item->channel));
  }
  for (uint64_t i = 0; i < b->output_count; i++)
    print_words("stream result", i, b->outputs[i].element, weft_channel_first(&b->outputs[i]),
                weft_channel_waiting(&b->outputs[i]));
  return output ? write_hdf5(entry, b, output, diag) : WEFT_OK;
}
