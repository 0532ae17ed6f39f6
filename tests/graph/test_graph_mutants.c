/* Templates with one change each: lifting refuses them, or the graph computes what the changed stages say.
 *
 * usage: test_graph_mutants [SEED [COUNT]]. A failure prints the command that repeats it. */
#include "support.h"
#include "template_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t first_seed = 1, seed_count = 1500, seed, accepted, refused;

/** The arrays of a program are its arena's: a test may change them. */
#define MUTABLE(type, pointer) ((type *)(uintptr_t)(pointer))

static void change_number(chance *c, uint64_t *n) {
  switch (draw(c, 4)) {
  case 0: *n += 1; break;
  case 1: *n -= *n > 0; break;
  case 2: *n *= 2; break;
  default: *n = draw(c, 5); break;
  }
}

static void change_signed(chance *c, int64_t *n) { *n += (int64_t)draw(c, 5) * (draw(c, 4) ? 1 : 31) - 2; }

static void change_pattern(chance *c, weft_access_pattern *p) {
  uint64_t *const fields[] = {&p->origin.base, &p->block_h, &p->block_w, &p->stride_w, &p->stride_h};
  uint64_t at = draw(c, 5 + 2 * p->origin.step_count);
  weft_step *steps = MUTABLE(weft_step, p->origin.steps);
  if (at < 5)
    change_number(c, fields[at]);
  else if (at % 2)
    change_number(c, &steps[(at - 5) / 2].stride);
  else
    steps[(at - 5) / 2].var = (uint32_t)draw(c, 5);
}

static void change_body(chance *c, weft_body *body) {
  weft_body_node *n = &MUTABLE(weft_body_node, body->nodes)[draw(c, body->node_count)];
  switch (n->kind) {
  case WEFT_BODY_OPERAND: n->value = draw(c, 4); break;
  case WEFT_BODY_SELECT:
    if (toss(c))
      change_number(c, &n->pred.bound);
    else if (toss(c))
      n->pred.ge = !n->pred.ge;
    else
      n->pred.var = 5 + (uint32_t)draw(c, 2);
    break;
  case WEFT_BODY_CONST: n->value ^= (uint64_t)1 << 52; break;
  case WEFT_BODY_ADD: n->kind = WEFT_BODY_MAX; break;
  case WEFT_BODY_MAX: n->kind = WEFT_BODY_MIN; break;
  default: break;
  }
}

static void change_generic(chance *c, weft_generic *g) {
  weft_elem_access *maps = MUTABLE(weft_elem_access, g->ins);
  weft_elem_access *map = g->in_count && draw(c, 8) ? &maps[draw(c, g->in_count)] : &g->out;
  switch (draw(c, 5)) {
  case 0: change_body(c, &g->body); break;
  case 1: change_number(c, &MUTABLE(weft_iter, g->iters)[draw(c, g->iter_count)].extent); break;
  case 2: change_signed(c, &map->base); break;
  case 3:
    if (map->term_count) map->term_count--;
    break;
  default:
    if (map->term_count) change_signed(c, &MUTABLE(weft_term, map->terms)[draw(c, map->term_count)].stride);
  }
}

static void change_matmul(chance *c, weft_matmul_tiles *m) {
  uint64_t *const fields[] = {&m->block.osh,        &m->block.osw,         &m->block.ibw,
                              &m->sub_blocks.first, &m->sub_blocks.second, &m->num_blocks};
  uint64_t at = draw(c, 7);
  if (at < 6)
    change_number(c, fields[at]);
  else
    m->segments = 1 + (uint32_t)draw(c, 4);
}

static void change_compute(chance *c, weft_program *p, weft_stage *s) {
  weft_compute_op *op = MUTABLE(weft_compute_op, s->kind == WEFT_STAGE_ALL_REDUCE ? s->all_reduce.combine : s->compute);
  switch (op->kind) {
  case WEFT_COMPUTE_MATMUL_TILES: change_matmul(c, &op->matmul); break;
  case WEFT_COMPUTE_GENERIC: change_generic(c, &op->generic); break;
  case WEFT_COMPUTE_REQUANT: op->requant.s = (uint32_t)draw(c, 20) + 9; break;
  case WEFT_COMPUTE_BIAS: op->bias = (uint32_t)draw(c, p->buffer_count); break;
  default: op->kind = WEFT_COMPUTE_REQUANT;
  }
}

static void change_stage(chance *c, weft_program *p) {
  weft_stage *s = &p->stages[draw(c, p->stage_count)];
  switch (s->kind) {
  case WEFT_STAGE_LOAD:
    if (draw(c, 6) == 0)
      change_number(c, &s->load.num_blocks);
    else if (draw(c, 6) == 0)
      s->load.tensor = (uint32_t)draw(c, p->tensor_count);
    else
      change_pattern(c, &s->load.pattern);
    break;
  case WEFT_STAGE_STORE:
    if (draw(c, 4) == 0)
      change_number(c, toss(c) ? &s->store.sub_blocks.first : &s->store.sub_blocks.second);
    else
      change_pattern(c, &s->store.pattern);
    break;
  default: change_compute(c, p, s);
  }
}

static void swap_inputs(chance *c, weft_program *p) {
  weft_stage *s = &p->stages[draw(c, p->stage_count)];
  if (s->in_count < 2) return;
  uint32_t *ins = MUTABLE(uint32_t, s->ins), other = 1 + (uint32_t)draw(c, s->in_count - 1), kept = ins[0];
  ins[0] = ins[other];
  ins[other] = kept;
}

static void mutate(chance *c, weft_program *p) {
  switch (draw(c, 10)) {
  case 0: change_number(c, &p->buffers[draw(c, p->buffer_count)].page_tiles); break;
  case 1: p->buffers[draw(c, p->buffer_count)].dtype = (weft_format)draw(c, WEFT_FORMAT_COUNT); break;
  case 2: swap_inputs(c, p); break;
  case 3: {
    weft_work_item *item = p->work.item_count ? &p->work.items[draw(c, p->work.item_count)] : NULL;
    uint64_t *const fields[] = {item ? &item->row0_t : NULL, item ? &item->col0_t : NULL, item ? &item->h_t : NULL,
                                item ? &item->w_t : NULL, item ? &item->coord.first : NULL};
    if (item) change_number(c, fields[draw(c, 5)]);
    break;
  }
  default: change_stage(c, p);
  }
}

static void check_seed(void) {
  chance c = {seed * 0x9E3779B97F4A7C15u + 77};
  const random_graph_options options = {.integers = seed & 1, .tidy = seed & 2};
  weft_diag *diag = weft_diag_new();
  weft_graph *graph = random_graph(&c, &options, diag), *machine = seed & 4 ? scatter_graph(&c, graph, 2, diag) : NULL,
             *lifted;
  weft_program *program;
  weft_array_set in = {0}, expected = {0}, out = {0};
  random_inputs(&c, graph, &in);
  expect_ok(weft_graph_lower(machine ? machine : graph, &program, diag), diag);
  if (program->stage_count) mutate(&c, program);
  if (weft_graph_lift(program, &lifted, diag) == WEFT_OK) {
    if (weft_graph_interpret(lifted, &in, &expected, diag) == WEFT_OK) {
      template_run(program, &in, &out);
      expect_equal_sets(&expected, &out);
      accepted++;
    }
    weft_graph_free(lifted);
  } else {
    refused++;
  }
  weft_array_set_free(&in);
  weft_array_set_free(&expected);
  weft_array_set_free(&out);
  weft_program_free(program);
  weft_graph_free(graph);
  weft_graph_free(machine);
  weft_diag_free(diag);
}

static void refused_or_right(void **state) {
  (void)state;
  for (seed = first_seed; seed < first_seed + seed_count; seed++) check_seed();
  print_message("%llu refused, %llu lifted and right\n", (unsigned long long)refused, (unsigned long long)accepted);
  if (seed_count >= 1000) assert_true(refused > seed_count / 4 && accepted > seed_count / 10);
}

int main(int argc, char **argv) {
  if (argc > 1) first_seed = strtoull(argv[1], NULL, 10);
  if (argc > 2) seed_count = strtoull(argv[2], NULL, 10);
  if (argc == 2) seed_count = 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(refused_or_right)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  if (failed) fprintf(stderr, "repeat with: %s %llu\n", argv[0], (unsigned long long)seed);
  return failed;
}
