/* One chip's tensors, scratch memory and faults. */
#include "chip_private.h"

#include "weft/ir.h"
#include "weft/tensor_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

double weft_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- memory ---- */

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

static size_t mapped_size(uint64_t bytes) { return (size_t)(bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE; }

/* Whole huge pages, which belong to whoever touches them first. */
static void *map_pages(uint64_t bytes) {
  size_t size = mapped_size(bytes);
  unsigned char *map = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return NULL;
  size_t before = (HUGE_PAGE - (uintptr_t)map % HUGE_PAGE) % HUGE_PAGE;
  if (before) munmap(map, before);
  if (before < HUGE_PAGE) munmap(map + before + size, HUGE_PAGE - before);
#ifdef MADV_HUGEPAGE
  madvise(map + before, size, MADV_HUGEPAGE);
#endif
  return map + before;
}

void *weft_memory_new(uint64_t bytes) {
  if (bytes > PTRDIFF_MAX - 2 * HUGE_PAGE) return NULL;
  if (bytes >= HUGE_PAGE) return map_pages(bytes);
  size_t size = (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT; /* at least one unit more than nothing */
  void *data = aligned_alloc(ALIGNMENT, size);
  return data ? memset(data, 0, size) : NULL;
}

void weft_memory_free(void *data, uint64_t bytes) {
  if (data && bytes >= HUGE_PAGE)
    munmap(data, mapped_size(bytes));
  else
    free(data);
}

void *weft_chip_scratch(weft_chip *chip, weft_scratch_kind kind, uint64_t bytes) {
  weft_scratch *scratch = &chip->scratch[kind];
  if (scratch->data && scratch->bytes >= bytes) return scratch->data;
  weft_memory_free(scratch->data, scratch->bytes);
  if (bytes >= HUGE_PAGE / 8) bytes = mapped_size(bytes); /* what is used again and again is worth huge pages */
  *scratch = (weft_scratch){.data = weft_memory_new(bytes), .bytes = bytes};
  if (scratch->data) return scratch->data;
  scratch->bytes = 0;
  weft_chip_fault(chip, WEFT_UNAVAILABLE, "run on more chips, or on a machine with more memory",
                  "out of memory for %llu bytes of scratch", (unsigned long long)bytes);
  return NULL;
}

void weft_chip_scratch_free(weft_chip *chip) {
  for (int k = 0; k < WEFT_SCRATCH_COUNT; k++) {
    weft_memory_free(chip->scratch[k].data, chip->scratch[k].bytes);
    chip->scratch[k] = (weft_scratch){0};
  }
}

/* ---- fills ---- */

static bool fill_integer(weft_slot *slot, uint64_t index, int64_t value) {
  if (!weft_format_is_float(slot->format)) return weft_store_i64(slot->format, slot->own, index, value);
  weft_store_f32(slot->format, slot->own, index, (float)value);
  return true;
}

static bool fill_double(weft_slot *slot, uint64_t index, uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  if (weft_format_is_float(slot->format)) {
    weft_store_f32(slot->format, slot->own, index, (float)value);
    return true;
  }
  bool whole = value >= -0x1p63 && value < 0x1p63 && (double)(int64_t)value == value;
  return whole && weft_store_i64(slot->format, slot->own, index, (int64_t)value);
}

/* As weft_init_store (weft/ir.h) says it, from the emitted table: false where the fill has no such element, or it does
 * not fit. */
static bool fill_element(weft_slot *slot, uint64_t index, uint64_t position) {
  const weft_abi_tensor *tensor = slot->tensor;
  int64_t modulus = (int64_t)tensor->fill_value, value;
  switch (tensor->fill) {
  case 2: return fill_double(slot, index, tensor->fill_value);
  case 3:
    if (modulus <= 0) return false;
    if (__builtin_add_overflow((int64_t)(position % (uint64_t)modulus), tensor->fill_shift, &value)) return false;
    return fill_integer(slot, index, value);
  case 4:
    return position < tensor->fill_value && fill_integer(slot, index, ((const int64_t *)tensor->values)[position]);
  case 5:
    return position < tensor->fill_value && fill_double(slot, index, ((const uint64_t *)tensor->values)[position]);
  case 6:
    if (!weft_format_is_float(slot->format)) return false;
    weft_store_f32(slot->format, slot->own, index,
                   weft_random_bf16((uint32_t)tensor->fill_value, (int32_t)tensor->fill_shift, position));
    return true;
  default: return false;
  }
}

/* A fill counts elements of the whole dataset, of which the chip may hold a block. */
static bool fill(const weft_chip *chip, weft_slot *slot) {
  const weft_abi_tensor *tensor = slot->tensor;
  if (tensor->fill <= 1) return true;
  uint64_t row0 = 0, col0 = 0, rows, width = tensor->cols;
  if (tensor->place >= 0) {
    row0 = (uint64_t)chip->parameters[tensor->place];
    col0 = (uint64_t)chip->parameters[tensor->place + 1];
    weft_plane_extents((uint32_t)tensor->rank, tensor->extents, &rows, &width);
  }
  for (uint64_t r = 0; r < tensor->rows; r++)
    for (uint64_t c = 0; c < tensor->cols; c++)
      if (!fill_element(slot, r * tensor->cols + c, (row0 + r) * width + col0 + c)) return false;
  return true;
}

/* ---- sizes ---- */

static bool tensor_bytes(const weft_abi_tensor *tensor, uint64_t *bytes) {
  return !weft_mul_overflow(tensor->rows, tensor->cols, bytes) &&
         !weft_mul_overflow(*bytes, weft_format_bytes((weft_format)tensor->format), bytes);
}

uint64_t weft_chip_bytes(const weft_chip *chip) {
  uint64_t sum = 0;
  for (uint32_t t = 0; t < chip->class->tensor_count; t++)
    if (weft_add_overflow(sum, chip->slots[t].bytes, &sum)) return UINT64_MAX;
  return sum;
}

weft_abi_tensor weft_tensor_of_chip(const weft_abi_tensor *tensor, const int64_t *parameters) {
  weft_abi_tensor sized = *tensor;
  if (!tensor->size) return sized;
  sized.rows = (uint64_t)parameters[tensor->size];
  sized.cols = (uint64_t)parameters[tensor->size + 1];
  return sized;
}

int64_t weft_series_at(const int64_t *series, bool ring, uint64_t i) {
  return ring ? series[0] + series[1] * (int64_t)(((uint64_t)series[3] + i) % (uint64_t)series[2]) : series[i];
}

/* ---- what the steps do with a tensor ---- */

static void note_read(weft_chip *chip, int64_t slot, uint32_t step) {
  weft_slot *read = &chip->slots[slot];
  if (read->received_at == WEFT_NO_STEP) read->read_elsewhere = true; /* before it is received, or what a file gave */
  read->last_read = step;
}

static void note_write(weft_chip *chip, int64_t slot, uint32_t step) { chip->slots[slot].last_write = (int64_t)step; }

static void survey_send(weft_chip *chip, int64_t tensor) {
  weft_slot *slot = &chip->slots[tensor];
  slot->exchanged = true;
  slot->read_elsewhere = true; /* what is passed on is copied */
}

static void survey_receive(weft_chip *chip, int64_t tensor, uint32_t step) {
  weft_slot *slot = &chip->slots[tensor];
  if (slot->received_at != WEFT_NO_STEP) slot->read_elsewhere = true;
  slot->received_at = step;
  note_write(chip, tensor, step);
}

static void survey_link(weft_chip *chip, const weft_abi_link *link, uint32_t step) {
  for (uint32_t i = 0; i < link->send_count; i++)
    for (uint32_t k = 0; k < weft_crossing_count(&link->sends[i]); k++)
      survey_send(chip, weft_crossing_tensor(&link->sends[i], k));
  for (uint32_t i = 0; i < link->receive_count; i++)
    for (uint32_t k = 0; k < weft_crossing_count(&link->receives[i]); k++)
      survey_receive(chip, weft_crossing_tensor(&link->receives[i], k), step);
}

static void survey_all_reduce(weft_chip *chip, const weft_abi_all_reduce *reduce, uint32_t step) {
  for (uint32_t i = 0; i < reduce->node_count; i++) {
    int64_t slot = chip->parameters[reduce->node_slot + i];
    if (slot < 0) continue;
    chip->slots[slot].exchanged = true;
    chip->slots[slot].read_elsewhere = true;
  }
  if (reduce->out < 0) return;
  chip->slots[reduce->out].exchanged = true;
  note_write(chip, reduce->out, step);
}

static void survey_step(weft_chip *chip, const weft_abi_step *step, uint32_t index) {
  if (!step->reads || !step->writes) chip->unlisted = true;
  if (step->kind == WEFT_STEP_LINK) {
    survey_link(chip, step->link, index);
    return;
  }
  if (step->kind == WEFT_STEP_ALL_REDUCE) survey_all_reduce(chip, step->all_reduce, index);
  for (const int64_t *at = step->reads; at && *at >= 0; at++) note_read(chip, *at, index);
  for (const int64_t *at = step->writes; at && *at >= 0; at++) {
    note_write(chip, *at, index);
    if (chip->slots[*at].received_at != WEFT_NO_STEP) chip->slots[*at].read_elsewhere = true;
  }
}

weft_status weft_chip_survey(weft_chip *chip, weft_diag *diag) {
  const weft_abi_class *class = chip->class;
  chip->slots = calloc((size_t) class->tensor_count + 1, sizeof *chip->slots);
  chip->tensors = calloc((size_t) class->tensor_count + 1, sizeof *chip->tensors);
  if (!chip->slots || !chip->tensors) return weft_error_memory(diag);
  for (uint32_t t = 0; t < class->tensor_count; t++)
    chip->tensors[t] = weft_tensor_of_chip(&class->tensors[t], chip->parameters);
  for (uint32_t t = 0; t < class->tensor_count; t++)
    chip->slots[t] = (weft_slot){.tensor = &chip->tensors[t],
                                 .format = (weft_format) class->tensors[t].format,
                                 .release_at = WEFT_NO_STEP,
                                 .received_at = WEFT_NO_STEP,
                                 .last_read = WEFT_NO_STEP,
                                 .last_write = -1};
  for (uint32_t s = 0; s < class->step_count; s++) survey_step(chip, &class->steps[s], s);
  for (uint32_t t = 0; t < class->tensor_count; t++) {
    weft_slot *slot = &chip->slots[t];
    if (!tensor_bytes(slot->tensor, &slot->bytes)) return weft_error_memory(diag);
    /* Received once a run, read only after that, written by nobody else: it can be read where its sender has it. */
    bool in_place = slot->received_at != WEFT_NO_STEP && !slot->read_elsewhere && !chip->unlisted &&
                    slot->tensor->role == WEFT_ROLE_ACTIVATION && slot->last_write == (int64_t)slot->received_at;
    if (in_place) slot->release_at = slot->last_read;
  }
  return WEFT_OK;
}

uint64_t weft_chip_exchanged_bytes(const weft_chip *chip) {
  uint64_t sum = 0;
  for (uint32_t t = 0; t < chip->class->tensor_count; t++)
    if (chip->slots[t].exchanged && weft_add_overflow(sum, chip->slots[t].bytes + ALIGNMENT, &sum)) return UINT64_MAX;
  return sum;
}

/* ---- opening ---- */

static weft_status open_slot(weft_chip *chip, weft_slot *slot, weft_diag *diag) {
  const weft_transport *transport = chip->end ? chip->end->transport : NULL;
  bool shared = slot->exchanged && transport && transport->shared_memory;
  slot->own = shared ? transport->shared_memory(chip->end, slot->bytes) : NULL;
  slot->shared = slot->own != NULL;
  if (!slot->own) slot->own = weft_memory_new(slot->bytes);
  slot->data = slot->own;
  if (!slot->own)
    return weft_error(diag, WEFT_UNAVAILABLE, "run on more chips, or on a machine with more memory",
                      "chip %u: no memory for the %llu bytes of '%s'", chip->index, (unsigned long long)slot->bytes,
                      slot->tensor->name);
  if (!fill(chip, slot))
    return weft_error(diag, WEFT_INVALID, NULL, "chip %u: a value of the fill of '%s' does not fit %s", chip->index,
                      slot->tensor->name, weft_format_name(slot->format));
  return WEFT_OK;
}

weft_status weft_chip_open(weft_chip *chip, weft_diag *diag) {
  weft_status status = WEFT_OK;
  for (uint32_t t = 0; status == WEFT_OK && t < chip->class->tensor_count; t++)
    status = open_slot(chip, &chip->slots[t], diag);
  return status;
}

void weft_chip_close(weft_chip *chip) {
  for (uint32_t t = 0; chip->slots && t < chip->class->tensor_count; t++)
    if (!chip->slots[t].borrowed && !chip->slots[t].shared) weft_memory_free(chip->slots[t].own, chip->slots[t].bytes);
  free(chip->slots);
  free(chip->tensors);
  weft_chip_scratch_free(chip);
  free(chip->pending);
  free(chip->times);
  if (chip->class) pthread_mutex_destroy(&chip->fault.lock);
  *chip = (weft_chip){0};
}

/* ---- faults ---- */

const char *weft_chip_step_name(const weft_chip *chip) {
  if (chip->step >= chip->class->step_count) return "start";
  const char *name = chip->class->steps[chip->step].name;
  return name ? name : "?";
}

static void place_fault(weft_chip *chip, weft_status status, const char *hint) {
  chip->fault.status = status;
  snprintf(chip->fault.hint, sizeof chip->fault.hint, "%s", hint ? hint : "");
  atomic_store(&chip->fault.set, true);
}

void weft_chip_fault(weft_chip *chip, weft_status status, const char *hint, const char *format, ...) {
  pthread_mutex_lock(&chip->fault.lock);
  if (!atomic_load(&chip->fault.set)) {
    int used =
        snprintf(chip->fault.text, sizeof chip->fault.text, "chip %u, '%s': ", chip->index, weft_chip_step_name(chip));
    va_list arguments;
    va_start(arguments, format);
    if (used > 0 && (size_t)used < sizeof chip->fault.text)
      vsnprintf(chip->fault.text + used, sizeof chip->fault.text - (size_t)used, format, arguments);
    va_end(arguments);
    place_fault(chip, status, hint);
  }
  pthread_mutex_unlock(&chip->fault.lock);
}

void weft_chip_fault_element(weft_chip *chip, int64_t slot, uint64_t row, uint64_t col, const char *what) {
  weft_fault *fault = &chip->fault;
  pthread_mutex_lock(&fault->lock);
  bool earlier = fault->has_place && (row < fault->row || (row == fault->row && col < fault->col));
  if (!atomic_load(&fault->set) || earlier) {
    const weft_abi_tensor *tensor = chip->slots[slot].tensor;
    snprintf(fault->text, sizeof fault->text, "chip %u, '%s': row %llu, column %llu of '%s': %s", chip->index,
             weft_chip_step_name(chip), (unsigned long long)row, (unsigned long long)col, tensor->name, what);
    fault->has_place = true;
    fault->row = row;
    fault->col = col;
    place_fault(chip, WEFT_INVALID, "clamp the value, requantise it, or store it in a wider format");
  }
  pthread_mutex_unlock(&fault->lock);
}

weft_slot *weft_chip_slot(weft_chip *chip, int64_t slot, const char *operation) {
  if (slot >= 0 && (uint64_t)slot < chip->class->tensor_count) return &chip->slots[slot];
  weft_chip_fault(chip, WEFT_INVALID, "generate the program again", "%s: there is no tensor %lld", operation,
                  (long long)slot);
  return NULL;
}
