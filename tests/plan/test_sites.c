/* One token's row on a mesh of many sites: all rows of sites have work, what is read alike is read once, bits are the
 * graph's. */
#include "support.h"
#include "weft/graph.h"

#include <string.h>

static const weft_decoder_options decoder = {.layers = 1,
                                             .width = 640,
                                             .heads = 4,
                                             .kv_heads = 2,
                                             .hidden = 1400,
                                             .vocabulary = 700,
                                             .context = 40,
                                             .prompt = 3,
                                             .eps_nano = 10000,
                                             .dtype = WEFT_BF16};

static weft_program *planned(const weft_graph *graph, uint64_t cols, uint64_t rows) {
  weft_program *program;
  weft_target target;
  const weft_options options = {0};
  assert_int_equal(weft_target_load("mesh-8x8", &target, graph_diag), WEFT_OK);
  target.mesh_cols = cols;
  target.mesh_rows = rows;
  assert_int_equal(weft_graph_lower(graph, &program, graph_diag), WEFT_OK);
  if (weft_plan(program, &target, &options, graph_diag) != WEFT_OK) fail_msg("%s", first_message(graph_diag));
  return program;
}

/** Rows of sites with a product of the section that stores the named tensor. */
static uint64_t rows_used(const weft_program *program, const char *name) {
  bool used[64] = {0};
  uint64_t count = 0;
  for (uint64_t s = 0; s < program->stage_count; s++) {
    const weft_stage *stage = &program->stages[s];
    if (stage->kind != WEFT_STAGE_STORE || strcmp(program->tensors[stage->store.tensor].name, name) != 0) continue;
    uint32_t y = program->placement->site_of[s].y;
    count += !used[y];
    used[y] = true;
  }
  return count;
}

/** The flag of a site is its sender's to set: the groups of an operand that hold a site as a receiver have one sender.
 */
static void assert_one_sender(const weft_program *program) {
  const weft_placement *placement = program->placement;
  for (uint64_t g = 0; g < placement->group_count; g++)
    for (uint64_t h = 0; h < g; h++) {
      const weft_group *a = &placement->groups[g], *b = &placement->groups[h];
      bool meet = a->operand == b->operand && a->rect.y0 <= b->rect.y1 && b->rect.y0 <= a->rect.y1 &&
                  a->rect.x0 < b->rect.x1 && b->rect.x0 < a->rect.x1;
      if (meet) assert_true(weft_site_equal(a->sender, b->sender));
    }
}

static void test_one_row_uses_all_sites(void **state) {
  (void)state;
  static const uint64_t meshes[][2] = {{12, 10}, {5, 3}, {3, 7}};
  weft_graph *graph;
  assert_int_equal(weft_graph_new_decoder(&decoder, &graph, graph_diag), WEFT_OK);
  weft_array_set in = {0}, want = {0}, got = {0};
  for (size_t i = 0; i < 3; i++) {
    weft_program *program = planned(graph, meshes[i][0], meshes[i][1]);
    const uint64_t blocks = 22; // 44 tiles of columns; 4 partial sums a tile, 8 in the accumulator
    uint64_t bands = (blocks + meshes[i][0] - 1) / meshes[i][0];
    assert_int_equal(rows_used(program, "layers.0.mlp.up"), bands < meshes[i][1] ? bands : meshes[i][1]);
    assert_true(program->placement->group_count > 0);
    assert_one_sender(program);
    if (i == 0) {
      make_inputs(program, 5, &in);
      assert_int_equal(weft_graph_interpret(graph, &in, &want, graph_diag), WEFT_OK);
    }
    assert_int_equal(run_program(program, &in, i != 0, i, &got, graph_diag), WEFT_OK);
    assert_same_sets(&want, &got);
    weft_array_set_free(&got);
    weft_program_free(program);
  }
  weft_array_set_free(&in);
  weft_array_set_free(&want);
  weft_graph_free(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_row_uses_all_sites)};
  return cmocka_run_group_tests(tests, make_graph_diag, free_graph_diag);
}
