/* Case files: inputs and expected outputs of an entry, in JSON. */
#include "case_private.h"

#include <stdarg.h>
#include <stdio.h>

#include <stdlib.h>
#include <string.h>

weft_status case_difference(case_run *r, const weft_json *at, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  r->result->failures++;
  weft_error_at(r->diag, WEFT_INVALID, at->place, NULL, "launch %llu: %s", (unsigned long long)r->result->launches,
                text);
  return WEFT_OK;
}

weft_status case_wrong(case_run *r, const weft_json *at, const char *text) {
  return weft_error_at(r->diag, WEFT_INVALID, at->place, NULL, "%s", text);
}

static bool word_of(const weft_json *value, const weft_mlir_type *type, uint64_t *word) {
  if (value->type == WEFT_JSON_BOOL) {
    *word = value->boolean;
    return true;
  }
  return (value->type == WEFT_JSON_NUMBER || value->type == WEFT_JSON_STRING) &&
         weft_word_from_text(type, value->text, word);
}

/* ---- buffers and channels ------------------------------------------------------------------------------------- */

static weft_status element_of(case_run *r, const weft_json *object, const weft_mlir_type **element) {
  const char *text;
  weft_status status = weft_json_field_string(object, "type", WEFT_JSON_REQUIRED, &text, r->diag);
  if (status != WEFT_OK) return status;
  scalar ignored;
  *element = weft_mlir_type_from_text(r->context, text);
  return *element && scalar_of(*element, &ignored) ? WEFT_OK : case_wrong(r, object, "the type is none of a token");
}

static weft_status make_buffers(case_run *r, const weft_json *run) {
  const weft_json *list = weft_json_get(run, "buffers");
  r->buffer_count = list ? list->count : 0;
  r->buffers = WEFT_NEW_ARRAY(r->arena, named_buffer, r->buffer_count);
  if (!r->buffers) return weft_error_memory(r->diag);
  for (uint64_t i = 0; i < r->buffer_count; i++) {
    const weft_json *item = &list->items[i], *init = weft_json_get(item, "init");
    weft_memory *buffer = &r->buffers[i].buffer;
    r->buffers[i].name = buffer->name = item->key;
    weft_status status = element_of(r, item, &buffer->element);
    if (status != WEFT_OK) return status;
    if (!init || init->type != WEFT_JSON_ARRAY) return case_wrong(r, item, "the array \"init\" is missing");
    buffer->count = init->count;
    buffer->words = WEFT_NEW_ARRAY(r->arena, uint64_t, init->count);
    if (!buffer->words) return weft_error_memory(r->diag);
    for (uint64_t k = 0; k < init->count; k++)
      if (!word_of(&init->items[k], buffer->element, &buffer->words[k]))
        return case_wrong(r, &init->items[k], "this is no value of the buffer's type");
  }
  return WEFT_OK;
}

static weft_status make_channels(case_run *r, const weft_json *run) {
  const weft_json *list = weft_json_get(run, "streams");
  r->channel_count = list ? list->count : 0;
  r->channels = WEFT_NEW_ARRAY(r->arena, named_channel, r->channel_count);
  if (!r->channels) return weft_error_memory(r->diag);
  for (uint64_t i = 0; i < r->channel_count; i++) {
    const weft_json *item = &list->items[i], *init = weft_json_get(item, "init");
    weft_channel *channel = &r->channels[i].channel;
    r->channels[i].name = channel->name = item->key;
    weft_status status = element_of(r, item, &channel->element);
    if (status != WEFT_OK) return status;
    for (uint64_t k = 0; init && k < init->count; k++) {
      uint64_t word;
      if (!word_of(&init->items[k], channel->element, &word))
        return case_wrong(r, &init->items[k], "this is no value of the stream's type");
      if (!weft_channel_push(channel, word)) return weft_error_memory(r->diag);
    }
  }
  return WEFT_OK;
}

static weft_memory *find_buffer(const case_run *r, const char *name) {
  for (uint64_t i = 0; i < r->buffer_count; i++)
    if (strcmp(r->buffers[i].name, name) == 0) return &r->buffers[i].buffer;
  return NULL;
}

weft_channel *case_channel(const case_run *r, const char *name) {
  for (uint64_t i = 0; i < r->channel_count; i++)
    if (strcmp(r->channels[i].name, name) == 0) return &r->channels[i].channel;
  return NULL;
}

uint64_t case_steps(const case_run *r) { return r->options->steps ? r->options->steps : UINT64_C(1) << 32; }

/* ---- launches ------------------------------------------------------------------------------------------------- */

weft_status case_bind(case_run *r, const case_entry *entry, const weft_json *args, weft_binding *inputs) {
  if (args->type != WEFT_JSON_ARRAY || args->count != entry->input_count)
    return case_wrong(r, args, "args does not have one item an input");
  for (uint64_t i = 0; i < args->count; i++) {
    const weft_json *arg = &args->items[i];
    bool text = arg->type == WEFT_JSON_STRING;
    uint32_t place = entry->places[i];
    weft_binding *input = &inputs[place];
    *input = (weft_binding){.word = 0};
    if (text && *arg->text == '@')
      input->buffer = find_buffer(r, arg->text + 1);
    else if (text && *arg->text == '~')
      input->channel = case_channel(r, arg->text + 1);
    else if (!word_of(arg, entry->inputs[place], &input->word))
      return case_wrong(r, arg, "this is no value of the input's type");
    if (text && (*arg->text == '@' || *arg->text == '~') && !input->buffer && !input->channel)
      return case_wrong(r, arg, "no buffer or stream is called so");
  }
  return WEFT_OK;
}

static weft_status execute_compiled(case_run *r, const weft_json *launch, const weft_binding *inputs) {
  const weft_json *complete = weft_json_get(launch, "complete");
  bool done;
  weft_channel **outputs = WEFT_NEW_ARRAY(r->arena, weft_channel *, r->output_count);
  r->results = WEFT_NEW_ARRAY(r->arena, uint64_t, r->entry.value_count);
  if (!outputs || !r->results) return weft_error_memory(r->diag);
  for (uint32_t i = 0; i < r->output_count; i++) outputs[i] = &r->outputs[i];
  weft_df_launch one = {
      .entry = r->entry.compiled, .inputs = inputs, .outputs = outputs, .results = r->results, .machines = r->kept};
  return case_run_compiled(r, launch, &one, 1, complete && !complete->boolean, &done);
}

static weft_status execute(case_run *r, const weft_json *launch, const weft_binding *inputs, uint64_t count) {
  uint64_t steps = case_steps(r);
  weft_run_state state;
  weft_channel **outputs = WEFT_NEW_ARRAY(r->arena, weft_channel *, r->output_count);
  if (!outputs) return weft_error_memory(r->diag);
  for (uint32_t i = 0; i < r->output_count; i++) outputs[i] = &r->outputs[i];
  weft_status status = r->simulator
                           ? weft_simulator_start(r->simulator, inputs, count, outputs, r->output_count, r->diag)
                           : weft_interpreter_start(r->interpreter, inputs, count, r->diag);
  if (status != WEFT_OK) return status;
  state = r->simulator ? weft_simulator_run(r->simulator, steps) : weft_interpreter_run(r->interpreter, steps);
  const weft_report *report =
      r->simulator ? weft_simulator_report(r->simulator) : weft_interpreter_report(r->interpreter);
  r->result->steps += report->steps;
  if (state == WEFT_RUN_FAILED) return weft_error_memory(r->diag);
  if (state == WEFT_RUN_LIMIT)
    return case_difference(r, launch, "it did not end within %llu steps", (unsigned long long)steps);
  const weft_json *complete = weft_json_get(launch, "complete");
  bool wanted = !complete || complete->boolean;
  if (state == WEFT_RUN_FAULT || (wanted && state != WEFT_RUN_DONE))
    return case_difference(r, launch, "%s", report->text ? report->text : "it did not complete");
  if (!wanted && r->simulator && weft_simulator_complete(r->simulator))
    return case_difference(r, launch, "it completed, which was not expected");
  return WEFT_OK;
}

/* ---- comparing ------------------------------------------------------------------------------------------------ */

weft_status case_compare_words(case_run *r, const weft_json *expected, const char *what, const weft_mlir_type *type,
                               const uint64_t *words, uint64_t count) {
  if (expected->type != WEFT_JSON_ARRAY || expected->count != count)
    return case_difference(r, expected, "%s has %llu values, expected %llu", what, (unsigned long long)count,
                           (unsigned long long)expected->count);
  for (uint64_t i = 0; i < count; i++) {
    uint64_t word;
    if (!word_of(&expected->items[i], type, &word))
      return case_wrong(r, &expected->items[i], "this is no value of the type");
    if (word == words[i]) continue;
    weft_text is = {0}, wanted = {0};
    weft_word_to_text(type, words[i], &is);
    weft_word_to_text(type, word, &wanted);
    case_difference(r, &expected->items[i], "%s[%llu] is %s, expected %s", what, (unsigned long long)i, is.data,
                    wanted.data);
    weft_text_free(&is);
    weft_text_free(&wanted);
    return WEFT_OK;
  }
  return WEFT_OK;
}

static weft_status compare_buffers(case_run *r, const weft_json *launch) {
  const weft_json *list = weft_json_get(launch, "expect");
  for (uint64_t i = 0; list && i < list->count; i++) {
    const weft_memory *buffer = find_buffer(r, list->items[i].key);
    if (!buffer) return case_wrong(r, &list->items[i], "no buffer is called so");
    weft_status status =
        case_compare_words(r, &list->items[i], buffer->name, buffer->element, buffer->words, buffer->count);
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}

static weft_status compare_counts(case_run *r, const weft_json *launch, const char *key, bool loads) {
  const weft_json *list = weft_json_get(launch, key);
  for (uint64_t i = 0; list && i < list->count; i++) {
    const weft_memory *buffer = find_buffer(r, list->items[i].key);
    uint64_t wanted;
    if (!buffer || !weft_json_u64(&list->items[i], &wanted))
      return case_wrong(r, &list->items[i], "a buffer and a count are expected");
    uint64_t is = loads ? buffer->loads : buffer->stores;
    if (is != wanted)
      case_difference(r, &list->items[i], "%s has %llu %s, expected %llu", buffer->name, (unsigned long long)is, key,
                      (unsigned long long)wanted);
  }
  return WEFT_OK;
}

static bool result_of(const case_run *r, uint64_t index, uint64_t *word) {
  if (index >= r->entry.value_count) return false;
  if (r->entry.compiled) {
    *word = r->results[index];
    return true;
  }
  if (r->simulator) return weft_simulator_result(r->simulator, index, word);
  if (index >= weft_interpreter_result_count(r->interpreter)) return false;
  *word = weft_interpreter_result(r->interpreter, index);
  return true;
}

static weft_status compare_returns(case_run *r, const weft_json *launch) {
  const weft_json *list = weft_json_get(launch, "returns");
  for (uint64_t i = 0; list && i < list->count; i++) {
    uint64_t word, wanted;
    if (!result_of(r, i, &word))
      return case_difference(r, &list->items[i], "result %llu did not come", (unsigned long long)i);
    if (!word_of(&list->items[i], r->entry.results[i], &wanted))
      return case_wrong(r, &list->items[i], "this is no value of the result's type");
    if (word != wanted)
      case_difference(r, &list->items[i], "result %llu is %lld, expected %lld", (unsigned long long)i, (long long)word,
                      (long long)wanted);
  }
  return WEFT_OK;
}

static weft_status compare_streams(case_run *r, const weft_json *launch, const weft_json *args) {
  const weft_json *list = weft_json_get(launch, "streams_out"), *left = weft_json_get(launch, "left");
  weft_status status = WEFT_OK;
  for (uint64_t i = 0; status == WEFT_OK && list && i < list->count && i < r->output_count; i++) {
    weft_channel *channel = &r->outputs[i];
    status = case_compare_words(r, &list->items[i], channel->name, channel->element, weft_channel_first(channel),
                                weft_channel_waiting(channel));
    channel->begin = channel->end;
  }
  for (uint64_t i = 0; status == WEFT_OK && left && i < args->count; i++) {
    if (args->items[i].type != WEFT_JSON_STRING || *args->items[i].text != '~') continue;
    const weft_json *item = weft_json_get(left, args->items[i].text + 1);
    const weft_channel *channel = case_channel(r, args->items[i].text + 1);
    uint64_t wanted, is = r->simulator        ? weft_simulator_left(r->simulator, i)
                          : r->entry.compiled ? weft_channel_waiting(channel)
                                              : 0;
    if (item && weft_json_u64(item, &wanted) && is != wanted)
      case_difference(r, item, "%llu tokens are left in %s, expected %llu", (unsigned long long)is, item->key,
                      (unsigned long long)wanted);
  }
  return status;
}

static weft_status run_threads(case_run *r, const weft_json *launch, const weft_json *threads) {
  uint64_t failures = r->result->failures;
  weft_status status = case_run_threads(r, threads);
  if (status == WEFT_OK && r->result->failures == failures) status = compare_buffers(r, launch);
  const weft_json *waiting = weft_json_get(launch, "waiting");
  for (uint64_t i = 0; status == WEFT_OK && waiting && i < waiting->count; i++) {
    const weft_channel *channel = case_channel(r, waiting->items[i].key);
    if (!channel) return case_wrong(r, &waiting->items[i], "no stream is called so");
    status = case_compare_words(r, &waiting->items[i], channel->name, channel->element, weft_channel_first(channel),
                                weft_channel_waiting(channel));
  }
  return status;
}

static weft_status run_launch(case_run *r, const weft_json *launch) {
  const weft_json *threads = weft_json_get(launch, "threads");
  if (threads) return run_threads(r, launch, threads);
  const weft_json *args = weft_json_get(launch, "args");
  weft_binding *inputs = WEFT_NEW_ARRAY(r->arena, weft_binding, args ? args->count : 0);
  if (!inputs) return weft_error_memory(r->diag);
  if (!args) return case_wrong(r, launch, "the array \"args\" is missing");
  if (!r->has_entry) return case_wrong(r, launch, "the file names no entry");
  for (uint64_t i = 0; i < r->buffer_count; i++) r->buffers[i].buffer.loads = r->buffers[i].buffer.stores = 0;
  r->result->launches++;
  uint64_t failures = r->result->failures;
  weft_status status = case_bind(r, &r->entry, args, inputs);
  if (status == WEFT_OK)
    status = r->entry.compiled ? execute_compiled(r, launch, inputs) : execute(r, launch, inputs, args->count);
  if (r->result->failures != failures) return status;
  if (status == WEFT_OK) status = compare_buffers(r, launch);
  /* Compiled code does not count. */
  if (status == WEFT_OK && !r->entry.compiled) status = compare_counts(r, launch, "loads", true);
  if (status == WEFT_OK && !r->entry.compiled) status = compare_counts(r, launch, "stores", false);
  if (status == WEFT_OK) status = compare_returns(r, launch);
  return status == WEFT_OK ? compare_streams(r, launch, args) : status;
}

/* ---- runs ----------------------------------------------------------------------------------------------------- */

static weft_status make_machine(case_run *r, bool lowered) {
  if (!r->has_entry) return WEFT_OK; /* threads have machines of their own */
  if (r->entry.compiled) {
    r->kept = case_new_kept(r);
    return r->kept ? WEFT_OK : weft_error_memory(r->diag);
  }
  weft_simulator_options options = r->options->simulator;
  options.strict = lowered;
  if (r->options->mode == WEFT_CASE_INTERPRET)
    return weft_interpreter_new(r->entry.op, r->file, &r->interpreter, r->diag);
  return weft_simulator_new(r->entry.op, r->file, &options, &r->simulator, r->diag);
}

static weft_status make_outputs(case_run *r) {
  r->output_count = r->has_entry ? r->entry.stream_count : 0;
  r->outputs = WEFT_NEW_ARRAY(r->arena, weft_channel, r->output_count);
  if (!r->outputs) return weft_error_memory(r->diag);
  for (uint32_t i = 0; i < r->output_count; i++) {
    r->outputs[i].element = r->entry.results[r->entry.value_count + i];
    r->outputs[i].name = weft_arena_printf(r->arena, "stream result %u", i);
  }
  return WEFT_OK;
}

static void drop_machine(case_run *r) {
  case_drop_kept(r, r->kept);
  r->kept = NULL;
  weft_interpreter_free(r->interpreter);
  weft_simulator_free(r->simulator);
  r->interpreter = NULL;
  r->simulator = NULL;
  for (uint64_t i = 0; i < r->channel_count; i++) weft_channel_free(&r->channels[i].channel);
  for (uint32_t i = 0; i < r->output_count; i++) weft_channel_free(&r->outputs[i]);
  r->channel_count = r->output_count = 0;
  case_drop_threads(r);
}

static weft_status run_one(case_run *r, const weft_json *run, bool lowered) {
  const weft_json *launches = weft_json_get(run, "launches");
  weft_status status = make_machine(r, lowered);
  if (status == WEFT_OK) status = make_buffers(r, run);
  if (status == WEFT_OK) status = make_channels(r, run);
  if (status == WEFT_OK) status = make_outputs(r);
  for (uint64_t i = 0; status == WEFT_OK && launches && i < launches->count; i++)
    status = run_launch(r, &launches->items[i]);
  drop_machine(r);
  return status;
}

/* Whether the entry has to be lowered before it can be simulated. */
static bool structured(const weft_mlir_op *entry) {
  if (!entry) return false;
  if (weft_mlir_code(entry) != WEFT_DATAFLOW_GRAPH) return true;
  for (const weft_mlir_op *op = weft_mlir_op_block(entry, 0)->first; op; op = op->next) {
    uint32_t code = weft_mlir_code(op);
    if (op->region_count || code == WEFT_OP_MEMREF_LOAD || code == WEFT_OP_MEMREF_STORE || code == WEFT_OP_MEMREF_COPY)
      return true;
  }
  return false;
}

/* Lowers a copy of the module, or publishes it when the file names no entry. */
static weft_status lower_copy(case_run *r, weft_mlir_op *module, bool publish) {
  r->module = weft_mlir_clone(r->arena, module);
  if (!r->module) return weft_error_memory(r->diag);
  return publish ? weft_publish(r->context, r->arena, r->module, r->file, r->diag)
                 : weft_lower(r->context, r->arena, r->module, r->file, r->diag);
}

static weft_status run_all(case_run *r, weft_mlir_op *module, const weft_json *root) {
  const char *name = NULL;
  const weft_json *runs, *at = weft_json_get(root, "entry");
  weft_status status = weft_json_field_string(root, "entry", WEFT_JSON_OPTIONAL, &name, r->diag);
  if (status == WEFT_OK) status = weft_json_field(root, "runs", WEFT_JSON_REQUIRED, WEFT_JSON_ARRAY, &runs, r->diag);
  if (status != WEFT_OK) return status;
  r->has_entry = name != NULL;
  r->module = module;
  if (name) status = case_find_entry(r, at, name, &r->entry);
  bool lower = r->options->mode == WEFT_CASE_SIMULATE && (!name || structured(r->entry.op));
  if (status == WEFT_OK && lower) status = lower_copy(r, module, !name);
  if (status == WEFT_OK && lower && name) status = case_find_entry(r, at, name, &r->entry);
  for (uint64_t i = 0; status == WEFT_OK && i < runs->count; i++) status = run_one(r, &runs->items[i], lower);
  return status;
}

weft_status weft_case_run(weft_mlir_context *context, weft_mlir_op *module, const char *file, const char *case_path,
                          const weft_case_options *options, weft_case_result *result, weft_diag *diag) {
  *result = (weft_case_result){.launches = 0};
  case_run r = {
      .context = context, .arena = weft_arena_new(), .options = options, .result = result, .diag = diag, .file = file};
  if (!r.arena) return weft_error_memory(diag);
  const weft_json *root;
  weft_status status = weft_json_read(r.arena, case_path, &root, diag);
  if (status == WEFT_OK) status = run_all(&r, module, root);
  weft_arena_free(r.arena);
  return status;
}
