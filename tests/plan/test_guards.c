/* Buffers that share memory, from the Template on: the guards that the schedule gets, that they are proved and needed,
 * and what has none. */
#include "support.h"
#include "weft/graph.h"
#include "weft/partition.h"

#include <stdio.h>
#include <string.h>

/** Plans for a part like mesh-8x8 with `cols` columns of sites and one row. */
static weft_status plan(weft_program *program, uint64_t cols, weft_diag *diag) {
  weft_target target;
  const weft_options options = {.validate_between = true};
  assert_int_equal(weft_target_load("mesh-8x8", &target, NULL), WEFT_OK);
  target.mesh_cols = cols;
  target.mesh_rows = 1;
  return weft_plan(program, &target, &options, diag);
}

typedef struct counts {
  uint64_t safe, overlapping, larger, guards;
} counts;

/** Two layers over two chips, K split. */
static weft_program *machine_program(void) {
  const uint64_t layers[] = {130, 96, 40};
  const weft_mlp_options options = {
      .layers = layers, .layer_count = 3, .batch = 70, .dtype = WEFT_FP32, .bias = true, .relu = true, .segments = 2};
  weft_graph *graph, *machine;
  weft_program *program;
  weft_target target;
  weft_partition_options sharding = {.split = "rows"};
  assert_int_equal(weft_target_load("mesh-8x8", &target, NULL), WEFT_OK);
  assert_int_equal(weft_mesh_parse("x=2", &sharding.mesh, NULL), WEFT_OK);
  assert_int_equal(weft_graph_new_mlp(&options, "y", &graph, NULL), WEFT_OK);
  assert_int_equal(weft_partition(graph, &sharding, &target, &machine, NULL, NULL), WEFT_OK);
  assert_int_equal(weft_graph_lower(machine, &program, NULL), WEFT_OK);
  weft_graph_free(machine);
  weft_graph_free(graph);
  return program;
}

static weft_program *load(const char *name) {
  if (strcmp(name, "machine") == 0) return machine_program();
  if (strcmp(name, "flash-attention") != 0) return read_case(name);
  weft_program *program = NULL;
  assert_int_equal(weft_program_read_file(WEFT_SOURCE_DIR "/data/samples/flash-attention.json", &program, graph_diag),
                   WEFT_OK);
  return program;
}

static bool is_guard(const weft_semaphore *semaphore) {
  return semaphore->role == WEFT_SEM_READY_COUNTER && !semaphore->has_operand;
}

static bool is_of(const weft_op *op, uint32_t semaphore) {
  return (op->kind == WEFT_OP_SEM_WAIT && op->sem_wait.sem == semaphore) ||
         (op->kind == WEFT_OP_SEM_SET && op->sem_set.sem == semaphore) ||
         (op->kind == WEFT_OP_SEM_INC && op->sem_inc.sem == semaphore);
}

/** Takes a guard's ops out of a list; how many. */
static uint64_t take_out(weft_op *ops, uint64_t *count, uint32_t semaphore) {
  uint64_t kept = 0, taken = 0;
  for (uint64_t i = 0; i < *count; i++) {
    weft_op op = ops[i];
    if (op.kind == WEFT_OP_LOOP) taken += take_out((weft_op *)op.loop.body, &op.loop.body_count, semaphore);
    if (is_of(&op, semaphore))
      taken++;
    else
      ops[kept++] = op;
  }
  *count = kept;
  return taken;
}

/** Every guard is needed: without one, the certificate does not hold. */
static uint64_t check_guards(const weft_program *program) {
  uint64_t guards = 0;
  for (uint32_t s = 0; s < program->semaphore_count; s++) {
    if (!is_guard(&program->semaphores[s])) continue;
    weft_program *mutant = weft_program_clone(program);
    assert_non_null(mutant);
    uint64_t taken = 0;
    for (uint64_t p = 0; p < mutant->schedule->program_count; p++) {
      weft_engine_program *engine = (weft_engine_program *)&mutant->schedule->programs[p];
      taken += take_out((weft_op *)engine->ops, &engine->op_count, s);
    }
    assert_int_equal(taken, 3);
    mutant->verified = false;
    weft_diag *diag = weft_diag_new();
    weft_certificate certificate;
    assert_int_equal(weft_certify(mutant, &certificate, diag), WEFT_INVALID);
    assert_holds(first_message(diag), "may still hold");
    weft_diag_free(diag);
    weft_program_free(mutant);
    guards++;
  }
  return guards;
}

/** Lets each buffer share the memory of the one before it: either proved, with the right bits in any order and no guard
 * too many, or refused with the names of two. */
static void check_chain(const char *name, const uint32_t *buffers, uint64_t count, uint64_t cols,
                        const weft_array_set *in, const weft_array_set *want, counts *c) {
  weft_program *program = load(name);
  weft_diag *diag = weft_diag_new();
  for (uint64_t i = 1; i < count; i++) program->buffers[buffers[i]].alias_of = buffers[i - 1];
  weft_program *template = weft_program_clone(program);
  weft_status status = plan(program, cols, diag);
  if (status == WEFT_OK) {
    c->safe++;
    c->guards += check_guards(program);
    for (uint64_t seed = 0; seed < 4; seed++) {
      weft_array_set out = {0};
      if (run_program(program, in, seed != 0, seed, &out, diag))
        fail_msg("%s, from %s on: %s", name, template->buffers[buffers[0]].name, first_message(diag));
      assert_same_sets(want, &out);
      weft_array_set_free(&out);
    }
  } else if (strstr(first_message(diag), "is larger than")) {
    c->larger++;
  } else {
    uint64_t named = 0;
    for (uint64_t i = 0; i < count; i++)
      named += strstr(first_message(diag), template->buffers[buffers[i]].name) != NULL;
    if (named < 2 || !strstr(first_message(diag), "no guard can keep them apart"))
      fail_msg("%s, from %s on: %s", name, template->buffers[buffers[0]].name, first_message(diag));
    c->overlapping++;
  }
  weft_diag_free(diag);
  weft_program_free(template);
  weft_program_free(program);
}

/** Inputs of a case, and what it gives without sharing. */
static void make_case(const char *name, uint64_t cols, weft_array_set *in, weft_array_set *want) {
  weft_program *program = load(name);
  make_inputs(program, 5, in);
  assert_int_equal(plan(program, cols, graph_diag), WEFT_OK);
  evaluate(program, in, want);
  weft_program_free(program);
}

/** Memory of one kind and chip; of several chips' programs only what is of one section, to have fewer. */
static bool may_share(const weft_program *program, uint32_t a, uint32_t b) {
  const weft_buffer *x = &program->buffers[a], *y = &program->buffers[b];
  if (x->kind == WEFT_BUFFER_ACCUMULATOR || y->kind == WEFT_BUFFER_ACCUMULATOR) return false;
  if (x->space != y->space || x->site.site.chip != y->site.site.chip) return false;
  for (uint64_t k = 0; x->site.present && k < program->section_count; k++) {
    weft_span span = program->sections[k].buffers;
    if (a >= span.begin && a < span.end) return b >= span.begin && b < span.end;
  }
  return true;
}

/** Every pair of buffers of a Template, on several sites and on one. */
static void test_pairs(void **state) {
  (void)state;
  static const char *const names[] = {"template-softmax",  "template-gemm",   "template-gemm-ragged",
                                      "template-sections", "template-scalar", "template-elementwise",
                                      "flash-attention",   "machine"};
  counts c = {0};
  for (size_t n = 0; n < sizeof names / sizeof *names; n++)
    for (uint64_t cols = strcmp(names[n], "flash-attention") == 0 ? 3 : 1; cols < 4; cols += 2) {
      weft_array_set in = {0}, want = {0};
      make_case(names[n], cols, &in, &want);
      weft_program *template = load(names[n]);
      for (uint32_t a = 0; a < template->buffer_count; a++)
        for (uint32_t b = 0; b < template->buffer_count; b++)
          if (a != b && may_share(template, a, b))
            check_chain(names[n], (const uint32_t[]){a, b}, 2, cols, &in, &want, &c);
      weft_program_free(template);
      weft_array_set_free(&in);
      weft_array_set_free(&want);
    }
  print_message("%d pairs proved with %d guards, %d overlapping, %d too large\n", (int)c.safe, (int)c.guards,
                (int)c.overlapping, (int)c.larger);
  assert_true(c.safe && c.guards && c.overlapping);
}

/** Three and four that share. */
static void test_chains(void **state) {
  (void)state;
  static const char *const names[] = {"template-softmax", "flash-attention"};
  uint64_t random = 11;
  counts c = {0};
  for (size_t n = 0; n < 2; n++) {
    weft_array_set in = {0}, want = {0};
    make_case(names[n], 1, &in, &want);
    weft_program *template = load(names[n]);
    for (int i = 0; i < 150; i++) {
      uint32_t chain[4];
      uint64_t count = 0;
      while (count < 3 + (uint64_t)i % 2) {
        uint32_t b = (uint32_t)(weft_random_next(&random) % template->buffer_count);
        bool twice = false;
        for (uint64_t j = 0; j < count; j++) twice = twice || chain[j] == b;
        if (!twice) chain[count++] = b;
      }
      check_chain(names[n], chain, count, 1, &in, &want, &c);
    }
    weft_program_free(template);
    weft_array_set_free(&in);
    weft_array_set_free(&want);
  }
  print_message("%d chains proved with %d guards, %d overlapping, %d too large\n", (int)c.safe, (int)c.guards,
                (int)c.overlapping, (int)c.larger);
  assert_true(c.safe && c.guards && c.overlapping);
}

static const weft_op *only_loop(const weft_program *program, uint64_t engine) {
  assert_int_equal(program->schedule->programs[engine].op_count, 1);
  assert_int_equal(program->schedule->programs[engine].ops[0].kind, WEFT_OP_LOOP);
  return &program->schedule->programs[engine].ops[0];
}

/** A softmax of two sub-blocks on one site, whose result lies where its first operand lay. Compute has popped that
 * before it packs the result; the next sub-block's operand waits until the result is stored. */
static void test_guard(void **state) {
  (void)state;
  weft_program *program = read_case("template-softmax");
  program->buffers[7].alias_of = 0;
  assert_int_equal(plan(program, 1, graph_diag), WEFT_OK);
  assert_int_equal(program->semaphore_count, 1);
  const weft_semaphore *semaphore = &program->semaphores[0];
  assert_int_equal(semaphore->role, WEFT_SEM_READY_COUNTER);
  assert_int_equal(semaphore->init, 1);
  assert_int_equal(semaphore->count, 1);
  assert_int_equal(semaphore->site_count, 1);
  assert_true(weft_site_equal(semaphore->sites[0], (weft_site){0, 0, 0}));
  assert_int_equal(program->memory->buffer_at[7].offset_bytes, program->memory->buffer_at[0].offset_bytes);
  assert_true(program->requires_handshakes >> WEFT_HANDSHAKE_SEMAPHORE & 1);

  const weft_op *load = only_loop(program, 0), *store = only_loop(program, 2);
  assert_int_equal(load->loop.count, 2);
  assert_int_equal(load->loop.body[0].kind, WEFT_OP_SEM_WAIT);
  assert_int_equal(load->loop.body[0].sem_wait.count, 1);
  assert_false(load->loop.body[0].sem_wait.at_least);
  assert_int_equal(load->loop.body[1].kind, WEFT_OP_SEM_SET);
  assert_int_equal(load->loop.body[1].sem_set.count, 0);
  assert_int_equal(load->loop.body[2].kind, WEFT_OP_RESERVE);
  assert_int_equal(load->loop.body[2].page.buf, 0);
  const uint64_t last = store->loop.body_count - 1;
  assert_int_equal(store->loop.body[last - 1].kind, WEFT_OP_POP);
  assert_int_equal(store->loop.body[last - 1].page.buf, 7);
  assert_int_equal(store->loop.body[last].kind, WEFT_OP_SEM_INC);
  assert_int_equal(store->loop.body[last].sem_inc.by, 1);
  assert_int_equal(check_guards(program), 1);
  weft_program_free(program);
}

static void assert_unplanned(weft_program *program, uint64_t cols, const char *first, const char *second,
                             const char *third) {
  weft_diag *diag = weft_diag_new();
  assert_int_equal(plan(program, cols, diag), WEFT_INVALID);
  assert_holds(first_message(diag), first);
  assert_holds(first_message(diag), second);
  assert_holds(first_message(diag), third);
  assert_holds(weft_diag_message(diag, 0)->hint, "memory of");
  weft_diag_free(diag);
  weft_program_free(program);
}

static void test_refused(void **state) {
  (void)state;
  weft_program *program = load("template-gemm"); /* both operands of one product */
  program->buffers[1].alias_of = 0;
  assert_unplanned(program, 1, program->buffers[0].name, program->buffers[1].name, "no guard can keep them apart");

  program = load("flash-attention"); /* the guard would stand in the loop over blocks */
  program->buffers[3].alias_of = 2;
  assert_unplanned(program, 1, "buffers `k` and `v`", "site (0, 0) chip 0", "runs to trip 0, which holds no semaphore");

  program = read_case("template-softmax"); /* no semaphores */
  program->buffers[7].alias_of = 0;
  weft_diag *diag = weft_diag_new();
  weft_target target;
  const weft_options options = {0};
  assert_int_equal(weft_target_load("mesh-8x8", &target, NULL), WEFT_OK);
  target.mesh_cols = target.mesh_rows = 1;
  target.handshakes &= ~(1u << WEFT_HANDSHAKE_SEMAPHORE);
  assert_int_equal(weft_plan(program, &target, &options, diag), WEFT_INVALID);
  assert_holds(first_message(diag), "the guard between them is a semaphore, which target `mesh-8x8` does not have");
  assert_int_equal(weft_program_phase(program), WEFT_PHASE_SIZED);
  weft_diag_free(diag);
  weft_program_free(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_guard),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_pairs),
      cmocka_unit_test(test_chains),
  };
  return cmocka_run_group_tests(tests, make_graph_diag, free_graph_diag);
}
