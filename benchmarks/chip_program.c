#include "chip_program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void chip_program_begin(chip_program *p, const char *name, uint32_t chips, void *context) {
  *p = (chip_program){0};
  for (uint32_t c = 0; c < chips; c++) {
    p->chips[c] = (uint16_t)c;
    *chip_parameter(p, c, 0) = (int64_t)(uintptr_t)context;
  }
  p->class = (weft_abi_class){.hash = weft_hash_bytes(0, name, strlen(name)),
                              .tensors = p->tensors,
                              .steps = p->steps,
                              .parameter_count = CHIP_PARAMETERS,
                              .parameters = p->parameters,
                              .chip_count = chips,
                              .chips = p->chips};
  p->classes[0] = &p->class;
  p->program = (weft_abi_program){.abi_version = WEFT_ABI_VERSION,
                                  .arithmetic = WEFT_ARITHMETIC_VERSION,
                                  .name = name,
                                  .chips = chips,
                                  .class_count = 1,
                                  .classes = p->classes};
}

int64_t *chip_parameter(chip_program *p, uint32_t chip, uint32_t index) {
  return &p->parameters[chip * CHIP_PARAMETERS + index];
}

int64_t chip_result(chip_program *p, const char *name, weft_format format, uint64_t rows, uint64_t cols) {
  p->tensors[p->class.tensor_count] = (weft_abi_tensor){
      .name = name, .format = (int)format, .role = WEFT_ROLE_ACTIVATION, .rows = rows, .cols = cols, .place = -1};
  return p->class.tensor_count++;
}

enum { FILL_PATTERN = 3, FILL_RANDOM = 6 };

int64_t chip_tensor(chip_program *p, const char *name, weft_format format, uint64_t rows, uint64_t cols) {
  int64_t slot = chip_result(p, name, format, rows, cols);
  weft_abi_tensor *tensor = &p->tensors[slot];
  tensor->role = WEFT_ROLE_PARAM;
  tensor->fill = weft_format_is_float(format) ? FILL_RANDOM : FILL_PATTERN;
  tensor->fill_value = weft_format_is_float(format) ? (uint64_t)slot + 1 : 256; /* seed; modulus */
  tensor->fill_shift = weft_format_is_float(format) ? 0 : -128;
  return slot;
}

static const int64_t *keep_list(int64_t *to, const int64_t *from) {
  for (uint32_t i = 0; i < CHIP_SLOTS; i++) {
    to[i] = from[i];
    if (from[i] < 0) break;
  }
  return to;
}

weft_abi_step *chip_step(chip_program *p, int kind, const char *name, const int64_t *reads, const int64_t *writes) {
  uint32_t index = p->class.step_count++;
  p->steps[index] = (weft_abi_step){.kind = kind, .name = name};
  p->steps[index].reads = keep_list(p->slots[index][0], reads);
  p->steps[index].writes = keep_list(p->slots[index][1], writes);
  return &p->steps[index];
}

weft_abi_product chip_product(const chip_program *p, int64_t a, int64_t b, int64_t out) {
  const weft_abi_tensor *left = &p->tensors[a], *right = &p->tensors[b];
  bool floats = weft_format_is_float((weft_format)left->format);
  return (weft_abi_product){.a = a,
                            .b = b,
                            .out = out,
                            .m = left->rows,
                            .n = right->cols,
                            .k = left->cols,
                            .acc = floats ? WEFT_ACC_F32 : WEFT_ACC_I32,
                            .segments = floats ? weft_segments_for(left->cols) : 1};
}

bool chip_program_run(const chip_program *p, int threads) {
  char number[16];
  snprintf(number, sizeof number, "%d", threads);
  char *arguments[] = {(char *)(uintptr_t)p->program.name, (char[]){"--threads"}, number, NULL};
  return weft_main_local(&p->program, 3, arguments) == 0;
}

/* ---- kernels -------------------------------------------------------------------------------------------------------
 */

static void nothing(weft_chip *chip, const int64_t *parameters, const int64_t *slots) {
  (void)chip, (void)parameters, (void)slots;
}

/* What a dry run says on standard output. */
static void dry_run(char *said, size_t size) {
  static chip_program p;
  chip_program_begin(&p, "probe", 1, NULL);
  chip_step(&p, WEFT_STEP_SECTION, "nothing", CHIP_LIST(), CHIP_LIST())->section = nothing;
  said[0] = 0;
  FILE *file = tmpfile();
  fflush(stdout);
  int saved = dup(STDOUT_FILENO);
  if (!file || saved < 0 || dup2(fileno(file), STDOUT_FILENO) < 0) return;
  char *arguments[] = {(char[]){"probe"}, (char[]){"--dry-run"}, NULL};
  weft_main_local(&p.program, 2, arguments);
  fflush(stdout);
  dup2(saved, STDOUT_FILENO);
  close(saved);
  rewind(file);
  said[fread(said, 1, size - 1, file)] = 0;
  fclose(file);
}

const char *chip_kernels(void) {
  static char name[32];
  char said[512];
  dry_run(said, sizeof said);
  const char *at = strstr(said, ", kernels ");
  if (!at || sscanf(at, ", kernels %31[^, ]", name) != 1) snprintf(name, sizeof name, "unknown");
  return name;
}
