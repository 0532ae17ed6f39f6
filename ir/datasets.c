/* What a program reads and writes by name: results are datasets of their own, of names a file can hold. */
#include "ir_private.h"

#include <stdlib.h>
#include <string.h>

static const char *dataset_of(const weft_tensor *tensor) { return tensor->has_shard ? tensor->shard.of : tensor->name; }

static bool is_written(const weft_tensor *tensor) {
  return tensor->role == WEFT_ROLE_OUTPUT || tensor->role == WEFT_ROLE_STATE;
}

static int by_dataset(const void *a, const void *b) {
  const weft_tensor *const *x = a, *const *y = b;
  int order = strcmp(dataset_of(*x), dataset_of(*y));
  if (order) return order;
  bool output = (*x)->role == WEFT_ROLE_OUTPUT, other = (*y)->role == WEFT_ROLE_OUTPUT;
  if (output != other) return output ? -1 : 1;
  return (*x)->id < (*y)->id ? -1 : (*x)->id > (*y)->id;
}

/** Two neighbours of one dataset: blocks of the same result, or what is only read, may share it. */
static weft_status check_pair(const weft_tensor *a, const weft_tensor *b, weft_diag *diag) {
  if (a->role != WEFT_ROLE_OUTPUT || strcmp(dataset_of(a), dataset_of(b)) != 0) return WEFT_OK;
  if (b->role == WEFT_ROLE_OUTPUT && a->has_shard && b->has_shard) return WEFT_OK;
  return weft_error(diag, WEFT_INVALID, "rename one of them", "the Output `%s` has the name of the %s `%s`", a->name,
                    weft_tensor_role_name(b->role), b->name);
}

weft_status weft_program_check_datasets(const weft_program *program, weft_diag *diag) {
  const weft_tensor **named = calloc(program->tensor_count + 1, sizeof *named);
  if (!named) return weft_error_memory(diag);
  weft_status status = WEFT_OK;
  uint64_t count = 0;
  for (uint64_t t = 0; t < program->tensor_count && !status; t++) {
    const weft_tensor *tensor = &program->tensors[t];
    if (tensor->role == WEFT_ROLE_ACTIVATION) continue;
    named[count++] = tensor;
    const char *fault = is_written(tensor) ? weft_dataset_name_fault(dataset_of(tensor)) : NULL;
    if (fault)
      status = weft_error(diag, WEFT_INVALID, fault, "the %s `%s` has no name for a dataset",
                          weft_tensor_role_name(tensor->role), dataset_of(tensor));
  }
  qsort(named, count, sizeof *named, by_dataset);
  for (uint64_t i = 1; i < count && !status; i++) status = check_pair(named[i - 1], named[i], diag);
  free(named);
  return status;
}
