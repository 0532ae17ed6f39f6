#include "kernel_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

guarded guarded_new(size_t bytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (bytes + page - 1) / page * page;
  guarded memory = {.mapped = body + page};
  memory.mapping = mmap(NULL, memory.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory.mapping == MAP_FAILED) abort();
  mprotect((unsigned char *)memory.mapping + body, page, PROT_NONE);
  memory.data = (unsigned char *)memory.mapping + body - bytes;
  return memory;
}

void guarded_free(guarded *memory) {
  munmap(memory->mapping, memory->mapped);
  *memory = (guarded){0};
}

static weft_abi_tensor tensor_of(const char *name, weft_format format, uint64_t rows, uint64_t cols) {
  return (weft_abi_tensor){.name = name, .format = (int)format, .rows = rows, .cols = cols, .place = -1};
}

bool bench_run(const weft_kernel_set *set, const bench_product *product, const void *a, const void *b, const void *bias,
               void *out, char *fault) {
  const weft_abi_tensor tensors[] = {
      tensor_of("a", product->a, product->m, product->k), tensor_of("b", product->b, product->k, product->n),
      tensor_of("out", product->out, product->m, product->n), tensor_of("bias", product->bias, 1, product->n)};
  const weft_abi_class class = {.tensors = tensors, .tensor_count = 4};
  const void *data[] = {a, b, out, bias};
  weft_slot slots[4];
  for (int i = 0; i < 4; i++)
    slots[i] = (weft_slot){
        .tensor = &tensors[i], .format = (weft_format)tensors[i].format, .data = (void *)(uintptr_t)data[i]};
  weft_chip chip = {.class = &class, .slots = slots, .kernels = set, .threads = product->threads, .strict = true};
  chip.step = UINT32_MAX;
  pthread_mutex_init(&chip.fault.lock, NULL);
  weft_product(&chip, &(weft_abi_product){.a = 0,
                                          .b = 1,
                                          .out = 2,
                                          .m = product->m,
                                          .n = product->n,
                                          .k = product->k,
                                          .acc = weft_format_is_float(product->a) ? WEFT_ACC_F32 : WEFT_ACC_I32,
                                          .segments = product->segments,
                                          .epilogue_count = product->epilogue_count,
                                          .epilogue = product->epilogue});
  bool ok = !weft_chip_failed(&chip);
  if (fault) snprintf(fault, 256, "%.255s", chip.fault.text);
  weft_chip_scratch_free(&chip);
  pthread_mutex_destroy(&chip.fault.lock);
  return ok;
}
