/* Tensors of the evaluator: dense arrays of true extents, filled from datasets or fills, checked tile by tile. */
#include "evaluate_private.h"

#include <stdlib.h>
#include <string.h>

static const char *dataset_of(const weft_tensor *tensor) { return tensor->has_shard ? tensor->shard.of : tensor->name; }

static uint64_t element_count(const weft_tensor *tensor) { return tensor->elems.rows * tensor->elems.cols; }

static bool starts_filled(const weft_tensor *tensor) {
  return tensor->role == WEFT_ROLE_INPUT || tensor->role == WEFT_ROLE_PARAM || tensor->role == WEFT_ROLE_STATE;
}

weft_status tensors_make(machine *m) {
  const weft_program *program = m->program;
  m->tensors = WEFT_NEW_ARRAY(m->arena, tensor_state, program->tensor_count + 1);
  if (!m->tensors) return weft_error_memory(m->diag);
  for (uint64_t t = 0; t < program->tensor_count; t++) {
    const weft_tensor *tensor = &program->tensors[t];
    uint64_t elements, bytes, tiles;
    if (weft_mul_overflow(tensor->elems.rows, tensor->elems.cols, &elements) ||
        weft_mul_overflow(elements, weft_format_bytes(tensor->dtype), &bytes) || bytes > SIZE_MAX / 2 ||
        weft_mul_overflow(tensor->tiles.rows_t, tensor->tiles.cols_t, &tiles))
      return weft_error(m->diag, WEFT_INVALID, NULL, "tensor `%s` is too large to evaluate", tensor->name);
    tensor_state *state = &m->tensors[t];
    state->data = weft_arena_alloc(m->arena, bytes);
    state->tiles = weft_arena_alloc(m->arena, tiles);
    if (tensor->role == WEFT_ROLE_STATE) state->section_of = WEFT_NEW_ARRAY(m->arena, uint64_t, tiles);
    if (!state->data || !state->tiles || (tensor->role == WEFT_ROLE_STATE && !state->section_of))
      return weft_error_memory(m->diag);
  }
  return WEFT_OK;
}

/* ---- filling ---- */

static const char dataset_hint[] =
    "give the file the program was made for; weft tensor make writes one, weft tensor slice and rename adapt one";

static weft_status copy_block(machine *m, const weft_tensor *tensor, const weft_array *array, weft_place place,
                              uint8_t *data) {
  uint64_t rows, cols;
  weft_plane_extents(array->rank, array->extents, &rows, &cols);
  uint64_t want_rows = tensor->has_shard ? tensor->shard.rows : tensor->elems.rows;
  uint64_t want_cols = tensor->has_shard ? tensor->shard.cols : tensor->elems.cols;
  if (array->dtype != tensor->dtype)
    return weft_error_at(m->diag, WEFT_INVALID, place, dataset_hint, "dataset `%s` is %s; tensor `%s` needs %s",
                         dataset_of(tensor), weft_format_name(array->dtype), tensor->name,
                         weft_format_name(tensor->dtype));
  if (rows != want_rows || cols != want_cols)
    return weft_error_at(m->diag, WEFT_INVALID, place, dataset_hint,
                         "dataset `%s` is %llu x %llu; tensor `%s` needs %llu x %llu", dataset_of(tensor),
                         (unsigned long long)rows, (unsigned long long)cols, tensor->name,
                         (unsigned long long)want_rows, (unsigned long long)want_cols);
  uint64_t row0 = tensor->has_shard ? tensor->shard.row0 : 0, col0 = tensor->has_shard ? tensor->shard.col0 : 0;
  if (row0 > rows || tensor->elems.rows > rows - row0 || col0 > cols || tensor->elems.cols > cols - col0)
    return weft_error(m->diag, WEFT_INVALID, NULL, "tensor `%s` is no block of the dataset `%s`", tensor->name,
                      dataset_of(tensor));
  size_t bytes = weft_format_bytes(tensor->dtype);
  for (uint64_t r = 0; r < tensor->elems.rows && tensor->elems.cols; r++)
    memcpy(data + r * tensor->elems.cols * bytes, (const uint8_t *)array->data + ((row0 + r) * cols + col0) * bytes,
           tensor->elems.cols * bytes);
  return WEFT_OK;
}

static weft_status missing(machine *m, const weft_tensor *tensor, weft_place place) {
  return weft_error_at(m->diag, WEFT_INVALID, place, "add the dataset to the input file; `weft tensor make` writes one",
                       "dataset `%s` of tensor `%s` is missing", dataset_of(tensor), tensor->name);
}

static weft_status fill_tensor(machine *m, const weft_tensor *tensor, uint8_t *data) {
  for (uint64_t r = 0; r < tensor->elems.rows; r++)
    for (uint64_t c = 0; c < tensor->elems.cols; c++) {
      uint64_t at = r * tensor->elems.cols + c;
      uint64_t p = tensor->has_shard ? (tensor->shard.row0 + r) * tensor->shard.cols + tensor->shard.col0 + c : at;
      if (!weft_init_store(&tensor->init, p, tensor->dtype, data, at))
        return weft_error(m->diag, WEFT_INVALID, "add the dataset to the input file; `weft tensor make` writes one",
                          "the fill of tensor `%s` has no %s for element %llu", tensor->name,
                          weft_format_name(tensor->dtype), (unsigned long long)p);
    }
  return WEFT_OK;
}

/** A dataset keeps its declared range: what is proved from it would not hold otherwise. */
static weft_status check_range(machine *m, const weft_tensor *tensor, weft_place place, const uint8_t *data) {
  if (!tensor->has_range || weft_format_is_float(tensor->dtype)) return WEFT_OK;
  for (uint64_t i = 0; i < element_count(tensor); i++) {
    int64_t x = weft_load_i64(tensor->dtype, data, i);
    if (x < tensor->range.low || x > tensor->range.high)
      return weft_error_at(m->diag, WEFT_INVALID, place, "declare a wider range",
                           "dataset '%s' holds %lld, outside its range %lld..%lld", dataset_of(tensor), (long long)x,
                           (long long)tensor->range.low, (long long)tensor->range.high);
  }
  return WEFT_OK;
}

weft_status tensors_load(machine *m, const weft_array_set *in) {
  const weft_program *program = m->program;
  const weft_place place = {.file = in->file};
  for (uint64_t t = 0; t < program->tensor_count; t++) {
    const weft_tensor *tensor = &program->tensors[t];
    tensor_state *state = &m->tensors[t];
    if (!starts_filled(tensor)) continue;
    memset(state->tiles, TILE_WRITTEN, tensor->tiles.rows_t * tensor->tiles.cols_t);
    const weft_array *array = weft_array_set_find(in, dataset_of(tensor));
    weft_status status = array                                     ? copy_block(m, tensor, array, place, state->data)
                         : tensor->init.kind == WEFT_INIT_EXTERNAL ? missing(m, tensor, place)
                                                                   : fill_tensor(m, tensor, state->data);
    if (!status && array) status = check_range(m, tensor, place, state->data);
    if (status) return status;
  }
  return WEFT_OK;
}

void tensors_reset(machine *m) {
  const weft_program *program = m->program;
  for (uint64_t t = 0; t < program->tensor_count; t++) {
    const weft_tensor *tensor = &program->tensors[t];
    uint64_t tiles = tensor->tiles.rows_t * tensor->tiles.cols_t;
    if (!starts_filled(tensor)) memset(m->tensors[t].tiles, TILE_EMPTY, tiles);
    if (m->tensors[t].section_of) memset(m->tensors[t].section_of, 0, tiles * sizeof(uint64_t));
  }
}

weft_status tensors_advance(machine *m) {
  for (uint64_t t = 0; t < m->program->tensor_count; t++) {
    const weft_tensor *tensor = &m->program->tensors[t];
    if (tensor->role != WEFT_ROLE_INPUT || strcmp(dataset_of(tensor), m->options->advance) != 0) continue;
    for (uint64_t i = 0; i < element_count(tensor); i++) {
      int64_t now = weft_load_i64(tensor->dtype, m->tensors[t].data, i);
      if (now == INT64_MAX || !weft_store_i64(tensor->dtype, m->tensors[t].data, i, now + 1))
        return weft_error(m->diag, WEFT_INVALID, "run fewer steps",
                          "element %llu of '%s' cannot be advanced: %s ends there", (unsigned long long)i,
                          m->options->advance, weft_format_name(tensor->dtype));
    }
  }
  return WEFT_OK;
}

weft_status tensors_check_advance(const machine *m) {
  bool found = !m->options->advance;
  for (uint64_t t = 0; t < m->program->tensor_count && !found; t++) {
    const weft_tensor *tensor = &m->program->tensors[t];
    found = tensor->role == WEFT_ROLE_INPUT && !weft_format_is_float(tensor->dtype) &&
            strcmp(dataset_of(tensor), m->options->advance) == 0;
  }
  return found ? WEFT_OK
               : weft_error(m->diag, WEFT_USAGE, "name an Input of integers",
                            "the program has no Input '%s' to advance", m->options->advance);
}

/* ---- after the run ---- */

weft_status tensors_check(const machine *m) {
  const weft_program *program = m->program;
  for (uint64_t t = 0; t < program->tensor_count; t++) {
    const weft_tensor *tensor = &program->tensors[t];
    if (tensor->role != WEFT_ROLE_OUTPUT && tensor->role != WEFT_ROLE_ACTIVATION) continue;
    for (uint64_t i = 0; i < tensor->tiles.rows_t * tensor->tiles.cols_t; i++)
      if (m->tensors[t].tiles[i] != TILE_WRITTEN)
        return weft_error(m->diag, WEFT_INVALID, NULL, "tile (%llu, %llu) of tensor `%s` was never written",
                          (unsigned long long)(i / tensor->tiles.cols_t),
                          (unsigned long long)(i % tensor->tiles.cols_t), tensor->name);
  }
  return WEFT_OK;
}

static weft_array *result_array(const weft_tensor *tensor, weft_array_set *out) {
  weft_array *array = weft_array_set_find(out, dataset_of(tensor));
  if (array && tensor->has_shard) return array;
  uint64_t extents[WEFT_MAX_RANK] = {tensor->has_shard ? tensor->shard.rows : tensor->elems.rows,
                                     tensor->has_shard ? tensor->shard.cols : tensor->elems.cols};
  uint32_t rank = 2;
  if (tensor->shape && tensor->shape_count <= WEFT_MAX_RANK) {
    rank = (uint32_t)tensor->shape_count;
    for (uint32_t i = 0; i < rank; i++) extents[i] = tensor->shape[i];
  }
  return weft_array_set_add(out, dataset_of(tensor), tensor->dtype, rank, extents);
}

static weft_status store_tensor(const machine *m, const weft_tensor *tensor, const uint8_t *data, weft_array_set *out) {
  weft_array *array = result_array(tensor, out);
  if (!array) return weft_error_memory(m->diag);
  uint64_t rows, cols;
  weft_plane_extents(array->rank, array->extents, &rows, &cols);
  uint64_t row0 = tensor->has_shard ? tensor->shard.row0 : 0, col0 = tensor->has_shard ? tensor->shard.col0 : 0;
  if (array->dtype != tensor->dtype || row0 > rows || tensor->elems.rows > rows - row0 || col0 > cols ||
      tensor->elems.cols > cols - col0)
    return weft_error(m->diag, WEFT_INVALID, NULL, "tensor `%s` is no block of the dataset `%s`", tensor->name,
                      dataset_of(tensor));
  size_t bytes = weft_format_bytes(tensor->dtype);
  for (uint64_t r = 0; r < tensor->elems.rows && tensor->elems.cols; r++)
    memcpy((uint8_t *)array->data + ((row0 + r) * cols + col0) * bytes, data + r * tensor->elems.cols * bytes,
           tensor->elems.cols * bytes);
  return WEFT_OK;
}

weft_status tensors_store(const machine *m, weft_array_set *out) {
  const weft_program *program = m->program;
  for (uint64_t t = 0; t < program->tensor_count; t++) {
    const weft_tensor *tensor = &program->tensors[t];
    if (tensor->role != WEFT_ROLE_OUTPUT && tensor->role != WEFT_ROLE_STATE) continue;
    if (tensor->has_shard && !tensor->shard.writer) continue;
    weft_status status = store_tensor(m, tensor, m->tensors[t].data, out);
    if (status) return status;
  }
  return WEFT_OK;
}

int64_t tensor_integer(const machine *m, uint32_t tensor, uint64_t index) {
  const weft_tensor *t = &m->program->tensors[tensor];
  if (index >= element_count(t)) return 0;
  if (!weft_format_is_float(t->dtype)) return weft_load_i64(t->dtype, m->tensors[tensor].data, index);
  return (int64_t)weft_load_f32(t->dtype, m->tensors[tensor].data, index);
}
