#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

weft_diag *graph_diag;

int make_graph_diag(void **state) {
  (void)state;
  graph_diag = weft_diag_new();
  return graph_diag ? 0 : -1;
}

int free_graph_diag(void **state) {
  (void)state;
  weft_diag_free(graph_diag);
  return 0;
}

weft_program *read_case(const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/tests/cases/spatial/valid/%s.json", WEFT_SOURCE_DIR, name);
  weft_diag *diag = weft_diag_new();
  weft_program *program = NULL;
  weft_status status = weft_program_read_file(path, &program, diag);
  if (status) print_error("%s: %s\n", name, first_message(diag));
  assert_int_equal(status, WEFT_OK);
  weft_diag_free(diag);
  return program;
}

weft_program *copy_program(const weft_program *program) {
  weft_program *copy = weft_program_clone(program);
  assert_non_null(copy);
  return copy;
}

const char *first_message(const weft_diag *diag) {
  for (uint64_t i = 0; i < weft_diag_count(diag); i++)
    if (weft_diag_message(diag, i)->severity == WEFT_ERROR) return weft_diag_message(diag, i)->text;
  return "";
}

void plan_for(weft_program *program, const char *target_name, const char *stop_after) {
  weft_diag *diag = weft_diag_new();
  weft_target target;
  weft_options options = {.stop_after = stop_after, .validate_between = true};
  weft_status status = weft_target_load(target_name, &target, diag);
  if (!status) status = weft_plan(program, &target, &options, diag);
  if (status) print_error("%s for %s: %s\n", program->name, target_name, first_message(diag));
  assert_int_equal(status, WEFT_OK);
  weft_diag_free(diag);
}

void plan_with_multicast(weft_program *program) {
  weft_diag *diag = weft_diag_new();
  weft_target target;
  weft_options options = {.stop_after = "synthesize_handshakes", .validate_between = true};
  weft_status status = weft_target_load("cpu", &target, diag);
  target.interconnects |= 1u << WEFT_INTERCONNECT_ROW_MULTICAST | 1u << WEFT_INTERCONNECT_COL_MULTICAST;
  target.handshakes |= 1u << WEFT_HANDSHAKE_SEMAPHORE;
  target.op_seconds = 1e-15;
  if (!status) status = weft_plan(program, &target, &options, diag);
  if (status) print_error("%s with multicast: %s\n", program->name, first_message(diag));
  assert_int_equal(status, WEFT_OK);
  weft_diag_free(diag);
}

static int64_t random_between(uint64_t *state, int64_t low, int64_t high) {
  uint64_t span = (uint64_t)high - (uint64_t)low + 1;
  return (int64_t)((uint64_t)low + (span ? weft_random_next(state) % span : weft_random_next(state)));
}

static void fill_array(const weft_tensor *tensor, uint64_t *state, weft_array *array) {
  for (uint64_t i = 0; i < weft_array_elements(array); i++) {
    uint64_t bits = weft_random_next(state);
    if (weft_format_is_float(tensor->dtype)) {
      weft_store_f32(tensor->dtype, array->data, i, (float)(bits >> 40) / 8388608.0f - 1.0f);
      continue;
    }
    int64_t low = -100, high = 100;
    if (tensor->has_range) low = tensor->range.low, high = tensor->range.high;
    assert_true(weft_store_i64(tensor->dtype, array->data, i, random_between(state, low, high)));
  }
}

void make_inputs(const weft_program *program, uint64_t seed, weft_array_set *set) {
  uint64_t state = seed;
  for (uint64_t t = 0; t < program->tensor_count; t++) {
    const weft_tensor *tensor = &program->tensors[t];
    if (tensor->role == WEFT_ROLE_OUTPUT || tensor->role == WEFT_ROLE_ACTIVATION) continue;
    if (tensor->init.kind != WEFT_INIT_EXTERNAL && tensor->init.kind != WEFT_INIT_RANDOM_BF16) continue;
    const char *name = tensor->has_shard ? tensor->shard.of : tensor->name;
    if (weft_array_set_find(set, name)) continue;
    uint64_t extents[] = {tensor->has_shard ? tensor->shard.rows : tensor->elems.rows,
                          tensor->has_shard ? tensor->shard.cols : tensor->elems.cols};
    weft_array *array = weft_array_set_add(set, name, tensor->dtype, 2, extents);
    assert_non_null(array);
    fill_array(tensor, &state, array);
  }
}

weft_status run_program(const weft_program *program, const weft_array_set *in, bool random, uint64_t seed,
                        weft_array_set *out, weft_diag *diag) {
  weft_evaluate_options options = {.random = random, .seed = seed, .steps = 1};
  return weft_evaluate(program, &options, in, out, diag);
}

void evaluate(const weft_program *program, const weft_array_set *in, weft_array_set *out) {
  weft_diag *diag = weft_diag_new();
  weft_status status = run_program(program, in, false, 0, out, diag);
  if (status) print_error("%s: %s\n", program->name, first_message(diag));
  assert_int_equal(status, WEFT_OK);
  weft_diag_free(diag);
}

bool same_sets(const weft_array_set *a, const weft_array_set *b) {
  if (a->count != b->count) return false;
  for (uint64_t i = 0; i < a->count; i++) {
    const weft_array *other = weft_array_set_find(b, a->items[i].name);
    weft_difference difference;
    if (!other || weft_array_compare(&a->items[i], other, &difference, NULL) || difference.differing) return false;
  }
  return true;
}

void assert_same_sets(const weft_array_set *a, const weft_array_set *b) {
  assert_int_equal(a->count, b->count);
  for (uint64_t i = 0; i < a->count; i++) {
    const weft_array *other = weft_array_set_find(b, a->items[i].name);
    weft_difference difference;
    assert_non_null(other);
    assert_int_equal(weft_array_compare(&a->items[i], other, &difference, NULL), WEFT_OK);
    if (difference.differing)
      print_error("%s: %llu elements differ, first %llu\n", a->items[i].name, (unsigned long long)difference.differing,
                  (unsigned long long)difference.first_index);
    assert_int_equal(difference.differing, 0);
  }
}

static const weft_array *array_of(const weft_array_set *set, const char *name, uint64_t *cols) {
  const weft_array *array = weft_array_set_find(set, name);
  assert_non_null(array);
  uint64_t rows;
  weft_plane_extents(array->rank, array->extents, &rows, cols);
  return array;
}

float real_at(const weft_array_set *set, const char *name, uint64_t r, uint64_t c) {
  uint64_t cols;
  const weft_array *array = array_of(set, name, &cols);
  return weft_load_f32(array->dtype, array->data, r * cols + c);
}

int64_t whole_at(const weft_array_set *set, const char *name, uint64_t r, uint64_t c) {
  uint64_t cols;
  const weft_array *array = array_of(set, name, &cols);
  return weft_load_i64(array->dtype, array->data, r * cols + c);
}

void assert_holds(const char *text, const char *part) {
  if (!strstr(text, part)) print_error("\"%s\" does not hold \"%s\"\n", text, part);
  assert_non_null(strstr(text, part));
}
