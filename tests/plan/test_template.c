/* A schedule of weft's own leads back to the Template it was planned from, byte for byte; an edited one does not. */
#include "weft/graph.h"
#include "weft/partition.h"
#include "weft/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static weft_target cpu;
static weft_diag *diag;

static void ok(weft_status status) {
  for (uint64_t i = 0; status != WEFT_OK && i < weft_diag_count(diag); i++)
    print_message("%s\n", weft_diag_message(diag, i)->text);
  assert_int_equal(status, WEFT_OK);
}

static weft_program *network(weft_format dtype, uint64_t batch, const char *mesh, const char *split) {
  static const uint64_t layers[] = {130, 70, 33, 10};
  static const int64_t m[] = {17878, 16623};
  static const uint32_t s[] = {23, 22};
  weft_mlp_options mlp = {
      .layers = layers, .layer_count = 4, .batch = batch, .dtype = dtype, .bias = true, .relu = true};
  if (dtype == WEFT_INT8) {
    mlp.requant_m = m;
    mlp.requant_s = s;
    mlp.requant_count = 2;
  }
  weft_partition_options options = {.split = split};
  weft_graph *graph, *machine;
  weft_program *program;
  ok(weft_graph_new_mlp(&mlp, "y", &graph, diag));
  ok(weft_mesh_parse(mesh, &options.mesh, diag));
  ok(weft_partition(graph, &options, &cpu, &machine, NULL, diag));
  ok(weft_graph_lower(machine, &program, diag));
  weft_graph_free(machine);
  weft_graph_free(graph);
  return program;
}

static weft_program *scheduled(const weft_program *program) {
  const weft_options options = {.stop_after = "synthesize_handshakes"};
  weft_program *planned = weft_program_clone(program);
  assert_non_null(planned);
  ok(weft_plan(planned, &cpu, &options, diag));
  return planned;
}

static void assert_same(const weft_program *a, const weft_program *b) {
  weft_text x = {0}, y = {0};
  weft_program_write(a, &x);
  weft_program_write(b, &y);
  assert_string_equal(x.data, y.data);
  weft_text_free(&x);
  weft_text_free(&y);
}

static void back_and_forth(weft_format dtype, uint64_t batch, const char *mesh, const char *split) {
  weft_program *program = network(dtype, batch, mesh, split), *planned = scheduled(program), *template;
  ok(weft_program_template(planned, &cpu, &template, diag));
  weft_program_free(planned); /* the template stands alone */
  assert_same(template, program);
  weft_program_free(template);
  weft_program_free(program);
}

static void test_one_chip(void **state) {
  (void)state;
  static const weft_format formats[] = {WEFT_FP32, WEFT_BF16, WEFT_INT8};
  static const uint64_t batches[] = {1, 31, 32, 97, 300};
  for (size_t f = 0; f < 3; f++)
    for (size_t b = 0; b < 5; b++) back_and_forth(formats[f], batches[b], "x=1", NULL);
}

static void test_machines(void **state) {
  (void)state;
  static const char *const splits[] = {"columns", "rows", "batch", "column-row", "pipeline"};
  for (size_t i = 0; i < 5; i++) {
    back_and_forth(WEFT_FP32, 70, "x=3", splits[i]);
    back_and_forth(WEFT_INT8, 70, "x=2", splits[i]);
  }
  back_and_forth(WEFT_FP32, 130, "x=2,y=2", "x=batch,y=columns");
}

static void test_an_edited_schedule_has_none(void **state) {
  (void)state;
  weft_program *program = network(WEFT_FP32, 97, "x=1", NULL), *planned = scheduled(program), *template = NULL;
  planned->buffers[0].depth_pages++;
  assert_int_equal(weft_program_template(planned, &cpu, &template, diag), WEFT_INVALID);
  assert_null(template);
  weft_diag_clear(diag);
  weft_program_free(planned);
  weft_program_free(program);
}

static int load(void **state) {
  (void)state;
  diag = weft_diag_new();
  return weft_target_load(WEFT_SOURCE_DIR "/data/targets/cpu.json", &cpu, diag) == WEFT_OK ? 0 : -1;
}

static int unload(void **state) {
  (void)state;
  weft_diag_free(diag);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_chip), cmocka_unit_test(test_machines),
                                     cmocka_unit_test(test_an_edited_schedule_has_none)};
  return cmocka_run_group_tests(tests, load, unload);
}
