/* Targets, and the passes as a whole: what they refuse, resuming from dumps, other targets. */
#include "support.h"
#include "weft/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- targets ---- */

static void test_targets(void **state) {
  (void)state;
  static const struct {
    const char *name;
    uint64_t cols, rows, acc;
  } shipped[] = {{"cpu", 2, 2, 1024}, {"mesh-8x8", 8, 8, 8}, {"rdu", 10, 12, 8}};
  for (size_t i = 0; i < 3; i++) {
    weft_target target;
    assert_int_equal(weft_target_load(shipped[i].name, &target, NULL), WEFT_OK);
    assert_string_equal(target.name, shipped[i].name);
    assert_int_equal(target.mesh_cols, shipped[i].cols);
    assert_int_equal(target.mesh_rows, shipped[i].rows);
    assert_int_equal(target.acc_tiles, shipped[i].acc);
    assert_int_equal(target.tile_rows, 32);
    assert_true(target.flops_per_second[WEFT_FP32] > 0);
  }
}

static void test_unknown_target(void **state) {
  (void)state;
  weft_diag *diag = weft_diag_new();
  weft_target target;
  assert_int_equal(weft_target_load("gpu", &target, diag), WEFT_USAGE);
  assert_holds(weft_diag_message(diag, 0)->text, "no target `gpu`");
  assert_holds(weft_diag_message(diag, 0)->hint, "cpu mesh-8x8 rdu");
  weft_diag_free(diag);
}

/** The shipped cpu target with `from` replaced by `to`, loaded from a file. */
static void check_target_text(const char *from, const char *to, const char *message) {
  char *text;
  size_t length;
  assert_int_equal(weft_read_file(WEFT_SOURCE_DIR "/data/targets/cpu.json", &text, &length, NULL), WEFT_OK);
  char *at = strstr(text, from);
  assert_non_null(at);
  char path[64];
  snprintf(path, sizeof path, "/tmp/weft-target-%ld.json", (long)getpid());
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  fclose(file);
  weft_diag *diag = weft_diag_new();
  weft_target target;
  assert_int_equal(weft_target_load(path, &target, diag), WEFT_INVALID);
  assert_holds(first_message(diag), message);
  assert_string_equal(weft_diag_message(diag, 0)->place.file, path);
  assert_true(weft_diag_message(diag, 0)->place.line > 0);
  remove(path);
  free(text);
  weft_diag_free(diag);
}

static void test_bad_targets(void **state) {
  (void)state;
  check_target_text("\"acc_tiles\"", "\"acc_tile\"", "acc_tile");
  check_target_text("\"cols\": 2", "\"cols\": 0", "`cols` is 0");
  check_target_text("\"Barrier\"", "\"Barriers\"", "no such name");
  check_target_text("\"Fp32\": 1.8e11", "\"Fp33\": 1.8e11", "`Fp33` is no element format");
  check_target_text("\"op_seconds\": 2e-6", "\"op_seconds\": -1", "must be above 0");
  check_target_text("\"movement_engines\": 2", "\"movement_engines\": \"two\"", "movement_engines");
}

/* ---- resuming ---- */

static const char *const passes[] = {"tile", "place", "fuse_readers", "size_buffers", "synthesize_handshakes"};

static weft_text plan_text(const weft_program *template, const char *stop_after) {
  weft_program *program = copy_program(template);
  plan_for(program, "cpu", stop_after);
  weft_text text = {0};
  weft_program_write(program, &text);
  weft_program_free(program);
  return text;
}

/** What a pass leaves is read again, and the passes after it give the same dump from there. */
static void check_resume(const weft_program *template) {
  weft_text whole = plan_text(template, NULL);
  for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
    weft_text part = plan_text(template, passes[i]);
    weft_program *resumed = NULL;
    assert_int_equal(weft_program_read("dump", part.data, part.length, &resumed, NULL), WEFT_OK);
    plan_for(resumed, "cpu", NULL);
    weft_text again = {0};
    weft_program_write(resumed, &again);
    assert_int_equal(whole.length, again.length);
    assert_memory_equal(whole.data, again.data, whole.length);
    weft_text_free(&part);
    weft_text_free(&again);
    weft_program_free(resumed);
  }
  weft_text_free(&whole);
}

static weft_program *mlp_program(const uint64_t *layers, uint32_t count, uint64_t batch, weft_format dtype,
                                 weft_graph **graph) {
  weft_diag *diag = graph_diag;
  weft_mlp_options options = {
      .layers = layers, .layer_count = count, .batch = batch, .dtype = dtype, .bias = true, .relu = true};
  weft_program *program = NULL;
  assert_int_equal(weft_graph_new_mlp(&options, "y", graph, diag), WEFT_OK);
  assert_int_equal(weft_graph_lower(*graph, &program, diag), WEFT_OK);
  return program;
}

static void test_resume(void **state) {
  (void)state;
  static const char *const names[] = {"template-gemm-ragged", "template-int8-epilogue", "template-softmax",
                                      "template-sections", "template-generic-all"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    weft_program *program = read_case(names[i]);
    check_resume(program);
    weft_program_free(program);
  }
  weft_graph *graph;
  uint64_t layers[] = {70, 300, 10};
  weft_program *program = mlp_program(layers, 3, 50, WEFT_INT8, &graph);
  check_resume(program);
  weft_program_free(program);
  weft_graph_free(graph);
}

static void test_dump_after(void **state) {
  (void)state;
  weft_program *program = read_case("template-gemm"), *copy = copy_program(program);
  weft_target target;
  weft_text dump = {0};
  weft_options options = {.dump_after = "place", .dump = &dump};
  assert_int_equal(weft_target_load("cpu", &target, NULL), WEFT_OK);
  assert_int_equal(weft_plan(copy, &target, &options, NULL), WEFT_OK);
  weft_text place = plan_text(program, "place");
  assert_int_equal(dump.length, place.length);
  assert_memory_equal(dump.data, place.data, place.length);
  weft_text_free(&dump);
  weft_text_free(&place);
  weft_program_free(copy);
  weft_program_free(program);
}

static void test_unknown_pass(void **state) {
  (void)state;
  weft_program *program = read_case("template-gemm");
  weft_diag *diag = weft_diag_new();
  weft_target target;
  weft_options options = {.stop_after = "tiles"};
  assert_int_equal(weft_target_load("cpu", &target, NULL), WEFT_OK);
  assert_int_equal(weft_plan(program, &target, &options, diag), WEFT_USAGE);
  assert_holds(first_message(diag), "no pass `tiles`");
  assert_holds(weft_diag_message(diag, 0)->hint, "tile place fuse_readers size_buffers synthesize_handshakes verify");
  assert_int_equal(weft_program_phase(program), WEFT_PHASE_TEMPLATE);
  weft_diag_free(diag);
  weft_program_free(program);
}

/** A scheduled program as the Template it may have come from. */
static void strip(weft_program *program) {
  program->placement = NULL;
  program->memory = NULL;
  program->schedule = NULL;
  program->work.has_plan = false;
  program->semaphore_count = 0;
  for (uint64_t k = 0; k < program->section_count; k++) {
    program->sections[k].has_plan = program->sections[k].has_barrier_after = false;
    program->sections[k].semaphores = (weft_span){0, 0};
  }
  for (uint64_t s = 0; s < program->stage_count; s++) program->stages[s].site.present = false;
  for (uint64_t b = 0; b < program->buffer_count; b++) program->buffers[b].site.present = false;
}

/** Folds, trips, gathers, scatters, spills and epilogues planned again give what the case's own schedule gives. */
static void test_replanned(void **state) {
  (void)state;
  static const char *const names[] = {"carry-fold",         "trip-fold",   "gather",  "state-append",
                                      "state-scatter",      "store-parts", "softmax", "scalar",
                                      "int8-epilogue",      "gemm-spill",  "items",   "gemm-int64-spill",
                                      "state-two-sections", "gemm-1site"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char name[64];
    snprintf(name, sizeof name, "scheduled-%s", names[i]);
    weft_program *program = read_case(name), *again = copy_program(program);
    weft_array_set in = {0}, want = {0}, out = {0};
    for (uint64_t t = 0; t < program->tensor_count; t++)
      if (program->tensors[t].dtype == WEFT_INT8) program->tensors[t].range = (weft_range){-20, 20};
    make_inputs(program, 41, &in);
    weft_array *pos = weft_array_set_find(&in, "pos");
    if (pos) ((int32_t *)pos->data)[0] = 100;
    evaluate(program, &in, &want);
    strip(again);
    plan_for(again, "cpu", NULL);
    evaluate(again, &in, &out);
    assert_same_sets(&want, &out);
    weft_array_set_free(&in);
    weft_array_set_free(&want);
    weft_array_set_free(&out);
    weft_program_free(program);
    weft_program_free(again);
  }
}

/* ---- plans ---- */

/** A block of a plan divides into sub-blocks, K into K blocks; the accumulator holds what is acquired. */
static void check_plan(const weft_program *program, const weft_target *target) {
  for (uint64_t s = 0; s < program->stage_count; s++) {
    const weft_stage *stage = &program->stages[s];
    if (stage->kind != WEFT_STAGE_COMPUTE || stage->compute->kind != WEFT_COMPUTE_MATMUL_TILES) continue;
    const weft_matmul_tiles *matmul = &stage->compute->matmul;
    assert_int_equal(matmul->interm, WEFT_NONE);
    assert_true(matmul->block.osh * matmul->block.osw <= target->acc_tiles);
  }
  uint64_t used = 0;
  for (uint64_t b = 0; b < program->buffer_count; b++)
    if (program->memory->buffer_at[b].space == WEFT_MEM_LOCAL)
      used = weft_max_u64(used, program->memory->buffer_at[b].offset_bytes + program->memory->buffer_at[b].bytes);
  assert_true(used <= target->local_bytes);
}

static void test_other_targets(void **state) {
  (void)state;
  static const char *const names[] = {"cpu", "mesh-8x8", "rdu"};
  static const weft_format formats[] = {WEFT_FP32, WEFT_BF16, WEFT_INT8};
  for (size_t f = 0; f < 3; f++) {
    weft_graph *graph;
    uint64_t layers[] = {200, 96, 40};
    weft_program *template = mlp_program(layers, 3, 70, formats[f], &graph);
    weft_array_set in = {0}, want = {0};
    make_inputs(template, 31, &in);
    weft_diag *diag = weft_diag_new();
    weft_status status = weft_graph_interpret(graph, &in, &want, diag);
    if (status) print_error("%s\n", first_message(diag));
    assert_int_equal(status, WEFT_OK);
    weft_diag_free(diag);
    for (size_t t = 0; t < 3; t++) {
      weft_program *program = copy_program(template);
      weft_target target;
      weft_array_set out = {0};
      assert_int_equal(weft_target_load(names[t], &target, NULL), WEFT_OK);
      plan_for(program, names[t], NULL);
      check_plan(program, &target);
      evaluate(program, &in, &out);
      for (uint64_t i = 0; i < out.count; i++) {
        const weft_array *other = weft_array_set_find(&want, out.items[i].name);
        weft_difference difference;
        assert_non_null(other);
        assert_int_equal(weft_array_compare(other, &out.items[i], &difference, NULL), WEFT_OK);
        assert_int_equal(difference.differing, 0);
      }
      weft_array_set_free(&out);
      weft_program_free(program);
    }
    weft_array_set_free(&in);
    weft_array_set_free(&want);
    weft_program_free(template);
    weft_graph_free(graph);
  }
}

/** Two layers on 2 x 2 sites, operands multicast along rows and columns: the interpreter's bits, in any order. */
static void test_multicast(void **state) {
  (void)state;
  weft_graph *graph;
  uint64_t layers[] = {200, 96, 40};
  weft_program *program = mlp_program(layers, 3, 70, WEFT_FP32, &graph);
  weft_array_set in = {0}, want = {0};
  make_inputs(program, 31, &in);
  assert_int_equal(weft_graph_interpret(graph, &in, &want, graph_diag), WEFT_OK);
  plan_with_multicast(program);
  uint64_t receivers = 0;
  for (uint64_t s = 0; s < program->stage_count; s++) receivers += program->stages[s].kind == WEFT_STAGE_RECV;
  assert_int_equal(program->placement->group_count, 8);
  assert_int_equal(receivers, 8);
  weft_certificate certificate;
  assert_int_equal(weft_certify(program, &certificate, graph_diag), WEFT_OK);
  for (uint64_t seed = 0; seed < 4; seed++) {
    weft_array_set out = {0};
    assert_int_equal(run_program(program, &in, seed != 0, seed, &out, graph_diag), WEFT_OK);
    for (uint64_t i = 0; i < out.count; i++) {
      weft_difference difference;
      assert_int_equal(
          weft_array_compare(weft_array_set_find(&want, out.items[i].name), &out.items[i], &difference, NULL), WEFT_OK);
      assert_int_equal(difference.differing, 0);
    }
    weft_array_set_free(&out);
  }
  weft_array_set_free(&in);
  weft_array_set_free(&want);
  weft_program_free(program);
  weft_graph_free(graph);
}

static void test_refused_by_target(void **state) {
  (void)state;
  weft_program *program = read_case("template-softmax");
  weft_diag *diag = weft_diag_new();
  weft_target target;
  weft_options options = {0};
  assert_int_equal(weft_target_load("cpu", &target, NULL), WEFT_OK);
  target.acc_tiles = 2;
  assert_int_equal(weft_plan(program, &target, &options, diag), WEFT_INVALID);
  assert_holds(first_message(diag), "holds 4 accumulator tiles at once, target `cpu` has 2");
  assert_int_equal(weft_program_phase(program), WEFT_PHASE_TEMPLATE);
  weft_diag_clear(diag);
  assert_int_equal(weft_target_load("cpu", &target, NULL), WEFT_OK);
  target.formats &= ~(1u << WEFT_FP32);
  assert_int_equal(weft_plan(program, &target, &options, diag), WEFT_INVALID);
  assert_holds(first_message(diag), "tensor `logits` is Fp32, which target `cpu` does not have");
  weft_diag_clear(diag);
  assert_int_equal(weft_target_load("cpu", &target, NULL), WEFT_OK);
  target.local_bytes = 4096;
  assert_int_equal(weft_plan(program, &target, &options, diag), WEFT_INVALID);
  assert_holds(first_message(diag), "target `cpu` has 4096");
  weft_diag_free(diag);
  weft_program_free(program);
}

static void test_report(void **state) {
  (void)state;
  weft_program *program = read_case("template-gemm");
  weft_target target;
  weft_text report = {0};
  weft_options options = {.report = &report, .stop_after = "tile"};
  assert_int_equal(weft_target_load("cpu", &target, NULL), WEFT_OK);
  assert_int_equal(weft_plan(program, &target, &options, NULL), WEFT_OK);
  assert_holds(report.data, "chosen: ");
  assert_holds(report.data, "runner-up: ");
  weft_text_free(&report);
  weft_program_free(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_targets),           cmocka_unit_test(test_unknown_target),
      cmocka_unit_test(test_bad_targets),       cmocka_unit_test(test_resume),
      cmocka_unit_test(test_dump_after),        cmocka_unit_test(test_unknown_pass),
      cmocka_unit_test(test_other_targets),     cmocka_unit_test(test_multicast),
      cmocka_unit_test(test_refused_by_target), cmocka_unit_test(test_report),
      cmocka_unit_test(test_replanned),
  };
  return cmocka_run_group_tests(tests, make_graph_diag, free_graph_diag);
}
