/* weft_walk: a section that no operation fits runs through the evaluator. A library of its own, for programs that need
 * it. */
#include "chip_private.h"

#include "weft/ir.h"
#include "weft/plan.h"
#include "weft/tensor_file.h"

#include <string.h>

static const weft_tensor *tensor_called(const weft_program *program, const char *name) {
  for (uint64_t i = 0; i < program->tensor_count; i++) {
    const weft_tensor *tensor = &program->tensors[i];
    if (strcmp(tensor->has_shard ? tensor->shard.of : tensor->name, name) == 0) return tensor;
  }
  return NULL;
}

/* What a chip's slot holds before the walk counts, however it came there: from the input, from a declared fill, or, for
 * a state, from the step before. */
static bool is_given(const weft_tensor *tensor) {
  return tensor->role == WEFT_ROLE_INPUT || tensor->role == WEFT_ROLE_PARAM || tensor->role == WEFT_ROLE_STATE;
}

static weft_status give(weft_chip *chip, const weft_program *program, const weft_abi_walk *walk, weft_array_set *in,
                        weft_diag *diag) {
  for (uint32_t i = 0; i < walk->tensor_count; i++) {
    const weft_tensor *tensor = tensor_called(program, walk->tensors[i]);
    const weft_slot *slot = weft_chip_slot(chip, walk->slots[i], "walk");
    if (!tensor || !slot) return weft_error(diag, WEFT_INVALID, NULL, "tensor '%s' is not there", walk->tensors[i]);
    if (!is_given(tensor)) continue;
    uint64_t plane[2] = {slot->tensor->rows, slot->tensor->cols};
    const uint64_t *extents = tensor->shape ? tensor->shape : plane;
    uint32_t rank = tensor->shape ? (uint32_t)tensor->shape_count : 2;
    weft_array *array = weft_array_set_add(in, walk->tensors[i], slot->format, rank, extents);
    if (!array) return weft_error_memory(diag);
    if (slot->bytes) memcpy(array->data, slot->data, slot->bytes);
  }
  return WEFT_OK;
}

static weft_status take(weft_chip *chip, const weft_abi_walk *walk, const weft_array_set *out, weft_diag *diag) {
  for (uint32_t i = 0; i < walk->tensor_count; i++) {
    const weft_array *array = weft_array_set_find(out, walk->tensors[i]);
    weft_slot *slot = &chip->slots[walk->slots[i]];
    if (!array) continue;
    if (array->dtype != slot->format || weft_array_elements(array) != slot->tensor->rows * slot->tensor->cols)
      return weft_error(diag, WEFT_INVALID, NULL, "result '%s' has another form", walk->tensors[i]);
    if (slot->bytes) memcpy(slot->data, array->data, slot->bytes);
  }
  return WEFT_OK;
}

static weft_status run(weft_chip *chip, const weft_abi_walk *walk, weft_diag *diag) {
  weft_program *program = NULL;
  weft_array_set in = {0}, out = {0};
  weft_status status = weft_program_read("emitted program", walk->dump, walk->dump_length, &program, diag);
  if (status == WEFT_OK) status = give(chip, program, walk, &in, diag);
  weft_evaluate_options options = {.steps = 1};
  if (status == WEFT_OK) status = weft_evaluate(program, &options, &in, &out, diag);
  if (status == WEFT_OK) status = take(chip, walk, &out, diag);
  weft_array_set_free(&in);
  weft_array_set_free(&out);
  weft_program_free(program);
  return status;
}

void weft_walk(weft_chip *chip, const weft_abi_walk *walk) {
  weft_diag *diag = weft_diag_new();
  weft_status status = run(chip, walk, diag);
  const weft_message *message = weft_diag_message(diag, 0);
  if (status != WEFT_OK)
    weft_chip_fault(chip, status, message ? message->hint : NULL, "%s", message ? message->text : "out of memory");
  weft_diag_free(diag);
}
