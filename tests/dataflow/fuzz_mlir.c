/* libFuzzer target for the reader of MLIR text: any bytes end in a message, not in a crash; what is accepted is
 * printed, and what was printed is read again as the same module. What is right is lowered, published, drawn, written
 * as C and run for some steps. */
#include "weft/dataflow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends with what was expected, the printed text and the first message. */
static void fail(const char *what, const char *text, const weft_diag *diag) {
  fprintf(stderr, "failed: %s\n%s\n%s\n", what, text, weft_diag_count(diag) ? weft_diag_message(diag, 0)->text : "");
  abort();
}
#define must(good)                                                                                                     \
  do                                                                                                                   \
    if (!(good)) fail(#good, text.data ? text.data : "", diag);                                                        \
  while (0)

static void check_print(weft_mlir_context *context, weft_mlir_file *file, bool generic, weft_diag *diag) {
  weft_text text = {0};
  weft_mlir_file *again = NULL;
  weft_mlir_print_file(file, (weft_mlir_print_options){.generic = generic}, &text);
  must(!text.failed);
  must(weft_mlir_parse(context, "printed", text.data, text.length, false, &again, diag) == WEFT_OK);
  must(again->module_count == file->module_count);
  for (uint64_t i = 0; i < file->module_count; i++)
    must(weft_mlir_equal(file->modules[i], again->modules[i], again->arena, NULL));
  weft_mlir_file_free(again);
  weft_text_free(&text);
}

static void check_use(weft_mlir_context *context, weft_mlir_op *module, weft_diag *diag);

/* Whatever the lowering takes or refuses, what it made verifies. */
static void check_lowering(weft_mlir_context *context, weft_mlir_file *file, weft_diag *diag) {
  const weft_text text = {0};
  for (uint64_t i = 0; i < file->module_count; i++) {
    weft_mlir_op *module = file->modules[i];
    if (weft_mlir_verify(module, "fuzz", diag) != WEFT_OK) continue;
    check_use(context, module, diag);
    if (weft_lower(context, file->arena, module, "fuzz", diag) == WEFT_OK)
      must(weft_mlir_verify(module, "fuzz", diag) == WEFT_OK);
    if (weft_publish(context, file->arena, module, "fuzz", diag) == WEFT_OK)
      must(weft_mlir_verify(module, "fuzz", diag) == WEFT_OK);
    check_use(context, module, diag);
  }
}

enum { INPUTS = 16, CELLS = 4, TOKENS = 3, INSTRUCTIONS = 3000 };

typedef struct inputs {
  uint64_t words[INPUTS][CELLS];
  weft_memory buffers[INPUTS];
  weft_channel channels[INPUTS], outputs[INPUTS];
  weft_channel *given[INPUTS];
  weft_binding bindings[INPUTS];
  uint64_t count, output_count;
} inputs;

/* Small buffers and short channels for whatever an entry takes; false when it takes too much. `streams`: those of a
 * graph are channels of tokens. */
static bool bind(const weft_mlir_op *entry, bool streams, inputs *in) {
  const weft_mlir_type *type = weft_mlir_function_type(entry);
  const weft_mlir_attribute *segments = streams ? weft_mlir_attribute_of(entry, "input_segments") : NULL;
  const weft_mlir_attribute *results = streams ? weft_mlir_attribute_of(entry, "result_segments") : NULL;
  memset(in, 0, sizeof *in);
  if (type->input_count > INPUTS || type->result_count > INPUTS) return false;
  uint64_t values = segments ? (uint64_t)weft_mlir_dense_integer(segments, 0) : 0;
  uint64_t tokens = segments ? (uint64_t)weft_mlir_dense_integer(segments, 1) : 0;
  in->count = type->input_count;
  for (uint64_t i = 0; i < in->count; i++) {
    const weft_mlir_type *is = type->inputs[i];
    bool channel = is->kind == WEFT_MLIR_DIALECT_TYPE;
    const weft_mlir_type *element = is->kind == WEFT_MLIR_MEMREF_TYPE     ? is->element
                                    : channel && is->parameter_count == 1 ? is->parameters[0]->as.type_value
                                                                          : is;
    in->buffers[i] = (weft_memory){.element = element, .count = CELLS, .words = in->words[i]};
    in->channels[i].element = element;
    in->bindings[i] = (weft_binding){.word = i, .buffer = &in->buffers[i], .channel = &in->channels[i]};
    for (int k = 0; k < TOKENS && (channel || (i >= values && i < values + tokens)); k++)
      if (!weft_channel_push(&in->channels[i], (uint64_t)k)) return false;
  }
  in->output_count = results ? (uint64_t)weft_mlir_dense_integer(results, 1) : 0;
  for (uint64_t i = 0; i < in->output_count && i < INPUTS; i++) {
    in->outputs[i].element = type->results[(uint64_t)weft_mlir_dense_integer(results, 0) + i];
    in->given[i] = &in->outputs[i];
  }
  return in->output_count <= INPUTS;
}

static void release(inputs *in) {
  for (int i = 0; i < INPUTS; i++) {
    weft_channel_free(&in->channels[i]);
    weft_channel_free(&in->outputs[i]);
  }
}

static void simulate(const weft_mlir_op *graph, weft_diag *diag) {
  weft_simulator *machine;
  inputs in;
  const weft_simulator_options options = {.order = WEFT_ORDER_RANDOM, .strict = true};
  if (weft_simulator_new(graph, "fuzz", &options, &machine, diag) != WEFT_OK) return;
  for (int launch = 0; launch < 2 && bind(graph, true, &in); launch++) {
    bool goes_on = weft_simulator_start(machine, in.bindings, in.count, in.given, in.output_count, diag) == WEFT_OK &&
                   weft_simulator_run(machine, INSTRUCTIONS) == WEFT_RUN_DONE;
    release(&in);
    if (!goes_on) break;
  }
  weft_simulator_free(machine);
}

static void interpret(const weft_mlir_op *entry, weft_diag *diag) {
  weft_interpreter *machine;
  inputs in;
  if (weft_interpreter_new(entry, "fuzz", &machine, diag) != WEFT_OK) return;
  for (int launch = 0; launch < 2 && bind(entry, false, &in); launch++) {
    bool goes_on = weft_interpreter_start(machine, in.bindings, in.count, diag) == WEFT_OK &&
                   weft_interpreter_run(machine, INSTRUCTIONS) == WEFT_RUN_DONE;
    release(&in);
    if (!goes_on) break;
  }
  weft_interpreter_free(machine);
}

static void check_use(weft_mlir_context *context, weft_mlir_op *module, weft_diag *diag) {
  weft_text text = {0};
  for (weft_mlir_op *op = weft_mlir_op_block(module, 0)->first; op; op = op->next) {
    uint32_t code = weft_mlir_code(op);
    if (code == WEFT_DATAFLOW_GRAPH) {
      simulate(op, diag);
      weft_dataflow_dot(context, op, "fuzz", &text, diag);
    }
    if (code == WEFT_DATAFLOW_GRAPH || code == WEFT_OP_FUNC_FUNC || code == WEFT_DATAFLOW_THREAD) interpret(op, diag);
  }
  weft_text_free(&text);
  weft_emit_c(context, module, "fuzz", NULL, &text, diag);
  weft_text_free(&text);
  weft_emit_c(context, module, "fuzz", &(weft_emit_options){.machines = true}, &text, diag);
  weft_text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const weft_text text = {0};
  weft_diag *diag = weft_diag_new();
  weft_mlir_context *context = weft_mlir_context_new();
  weft_mlir_file *file = NULL;
  must(diag && context && weft_mlir_register_standard(context, diag) == WEFT_OK &&
       weft_dataflow_register(context, diag) == WEFT_OK);
  char *copy = malloc(size + 1);
  must(copy);
  if (size) memcpy(copy, data, size);
  copy[size] = 0;
  weft_status status = weft_mlir_parse(context, "fuzz", copy, size, false, &file, diag);
  must((status == WEFT_OK) == (file != NULL));
  must(status == WEFT_OK || weft_diag_errors(diag) > 0);
  if (file) {
    check_print(context, file, true, diag);
    check_print(context, file, false, diag);
    check_lowering(context, file, diag);
  }
  weft_mlir_file_free(file);
  free(copy);
  weft_mlir_context_free(context);
  weft_diag_free(diag);
  return 0;
}
