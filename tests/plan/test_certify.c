/* The certificate: what must be certified is, what must be refused is refused with its place. */
#include "support.h"
#include "weft/graph.h"
#include "weft/partition.h"

#include <stdio.h>
#include <string.h>

static const char *const scheduled[] = {"allreduce-2chips",
                                        "carry-fold",
                                        "chain",
                                        "chain-shared-phase",
                                        "chip-links",
                                        "deep-loops",
                                        "elementwise-2sites",
                                        "gather",
                                        "gemm-1site",
                                        "gemm-2x2-multicast",
                                        "gemm-4x4",
                                        "gemm-int64-spill",
                                        "gemm-pack-accumulate",
                                        "gemm-spill",
                                        "int8-epilogue",
                                        "items",
                                        "row-multicast",
                                        "scalar",
                                        "sections-multicast",
                                        "sections-unrolled",
                                        "softmax",
                                        "state-append",
                                        "state-scatter",
                                        "state-two-sections",
                                        "store-parts",
                                        "trip-fold",
                                        "two-sections"};

static void test_scheduled_cases(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof scheduled / sizeof *scheduled; i++) {
    char name[64];
    snprintf(name, sizeof name, "scheduled-%s", scheduled[i]);
    weft_program *program = read_case(name);
    weft_diag *diag = weft_diag_new();
    weft_certificate certificate;
    weft_status status = weft_certify(program, &certificate, diag);
    if (status) print_error("%s: %s\n", name, first_message(diag));
    assert_int_equal(status, WEFT_OK);
    assert_int_equal(certificate.programs, program->schedule->program_count);
    assert_false(certificate.partial_proved);
    weft_diag_free(diag);
    weft_program_free(program);
  }
}

/* ---- refusals ---- */

static void assert_certified(const weft_program *program) {
  weft_diag *diag = weft_diag_new();
  weft_certificate certificate;
  weft_status status = weft_certify(program, &certificate, diag);
  if (status) print_error("%s\n", first_message(diag));
  assert_int_equal(status, WEFT_OK);
  weft_diag_free(diag);
}

static void assert_refused(const weft_program *program, const char *first, const char *second) {
  weft_diag *diag = weft_diag_new();
  weft_certificate certificate;
  assert_int_equal(weft_certify(program, &certificate, diag), WEFT_INVALID);
  assert_holds(first_message(diag), first);
  if (second) assert_holds(first_message(diag), second);
  weft_diag_free(diag);
}

static weft_engine_program *engine(weft_program *program, uint64_t index) {
  assert_true(index < program->schedule->program_count);
  return (weft_engine_program *)&program->schedule->programs[index];
}

/** Room for `extra` ops more in an engine's own list. */
static weft_op *own_ops(weft_program *program, weft_engine_program *e, uint64_t extra) {
  weft_op *ops = WEFT_NEW_ARRAY(program->arena, weft_op, e->op_count + extra);
  memcpy(ops, e->ops, e->op_count * sizeof *ops);
  e->ops = ops;
  return ops;
}

/** The first op of a kind in an engine's text, loops included, and its list. */
static weft_op *find_op(weft_op *ops, uint64_t *count, weft_choreo_kind kind, weft_op **list, uint64_t **list_count) {
  for (uint64_t i = 0; i < *count; i++) {
    if (ops[i].kind == kind) {
      *list = ops;
      *list_count = count;
      return &ops[i];
    }
    if (ops[i].kind != WEFT_OP_LOOP) continue;
    weft_op *found = find_op((weft_op *)ops[i].loop.body, &ops[i].loop.body_count, kind, list, list_count);
    if (found) return found;
  }
  return NULL;
}

static void test_push_removed(void **state) {
  (void)state;
  weft_program *program = read_case("scheduled-gemm-1site");
  weft_engine_program *e = engine(program, 0);
  weft_op *list;
  uint64_t *count;
  weft_op *op = find_op((weft_op *)e->ops, &e->op_count, WEFT_OP_PUSH, &list, &count);
  assert_non_null(op);
  memmove(op, op + 1, (size_t)(list + *count - op - 1) * sizeof *op);
  --*count;
  assert_refused(program, "CountingImbalance", NULL);
  weft_program_free(program);
}

/** Compute waits for the bias before the product, Movement 0 loads it after: their rings are too short for that. */
static void test_cycle(void **state) {
  (void)state;
  weft_diag *diag = weft_diag_new();
  uint64_t layers[] = {784, 64};
  weft_mlp_options options = {.layers = layers, .layer_count = 2, .batch = 20, .dtype = WEFT_FP32, .bias = true};
  weft_graph *graph;
  weft_program *program;
  assert_int_equal(weft_graph_new_mlp(&options, "y", &graph, diag), WEFT_OK);
  assert_int_equal(weft_graph_lower(graph, &program, diag), WEFT_OK);
  plan_for(program, "cpu", "synthesize_handshakes");
  weft_certificate certificate;
  assert_int_equal(weft_certify(program, &certificate, diag), WEFT_OK);
  weft_engine_program *compute = engine(program, 1);
  assert_true(compute->engine.compute);
  weft_op *ops = own_ops(program, compute, 0);
  uint64_t at = 0;
  while (at < compute->op_count && ops[at].kind != WEFT_OP_WAIT) at++;
  assert_true(at < compute->op_count);
  weft_op wait = ops[at];
  memmove(&ops[1], &ops[0], at * sizeof *ops);
  ops[0] = wait;
  assert_refused(program, "deadlock: ", ": a cycle");
  assert_refused(program, "Compute, Wait of stage `bias", "waits for a page of `");
  assert_refused(program, "Movement 0, Reserve of stage `", "waits for room in `");
  weft_program_free(program);
  weft_graph_free(graph);
  weft_diag_free(diag);
}

static weft_op semaphore_op(weft_choreo_kind kind, uint32_t stage, weft_site site) {
  weft_op op = {.stage = stage, .kind = kind};
  if (kind == WEFT_OP_SEM_INC) {
    op.sem_inc.by = 1;
    op.sem_inc.at = site;
  }
  if (kind == WEFT_OP_SEM_WAIT) op.sem_wait.count = 1;
  if (kind == WEFT_OP_SEM_SET) op.sem_set.value = WEFT_SEM_COUNT;
  return op;
}

/** Two engines increment once each; a third waits for 1, sets 0, waits for 1, sets 0. Every count balances, and one
 * order of the four engines runs to its end. */
static void test_two_increments(void **state) {
  (void)state;
  weft_program *program = read_case("scheduled-elementwise-2sites");
  weft_semaphore *semaphore = WEFT_NEW(program->arena, weft_semaphore);
  weft_site *site = WEFT_NEW(program->arena, weft_site);
  *semaphore = (weft_semaphore){.role = WEFT_SEM_READY_COUNTER, .count = 1, .sites = site, .site_count = 1};
  program->semaphores = semaphore;
  program->semaphore_count = 1;
  for (uint64_t i = 0; i < 2; i++) {
    weft_engine_program *e = engine(program, i ? 3 : 0);
    weft_op *ops = own_ops(program, e, 1);
    ops[e->op_count++] = semaphore_op(WEFT_OP_SEM_INC, e->stages[0], *site);
  }
  weft_engine_program *waiter = engine(program, 2);
  weft_op *ops = own_ops(program, waiter, 4);
  for (int i = 0; i < 4; i++)
    ops[waiter->op_count++] = semaphore_op(i % 2 ? WEFT_OP_SEM_SET : WEFT_OP_SEM_WAIT, waiter->stages[0], *site);
  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_program_validate(program, 0, NULL, diag), WEFT_OK);
  weft_diag_free(diag);
  assert_refused(program, "semaphore 0", NULL);
  weft_program_free(program);
}

/** A program whose engines 0 to 5 (two sites) also meet at `count` semaphores of the first site. */
static weft_program *meeting_program(uint64_t count, weft_site *at) {
  weft_program *program = read_case("scheduled-elementwise-2sites");
  weft_site *site = WEFT_NEW(program->arena, weft_site);
  weft_semaphore *semaphores = WEFT_NEW_ARRAY(program->arena, weft_semaphore, count);
  for (uint64_t i = 0; i < count; i++)
    semaphores[i] =
        (weft_semaphore){.id = (uint32_t)i, .role = WEFT_SEM_READY_COUNTER, .count = 1, .sites = site, .site_count = 1};
  program->semaphores = semaphores;
  program->semaphore_count = count;
  *at = *site;
  return program;
}

/** Appends semaphore ops to an engine: "+0" increments semaphore 0, "=0" waits for it to be 1, "!0" sets it to 0, ">02"
 * waits for it to be at least 2. */
static void meet(weft_program *program, uint64_t index, weft_site site, const char *text) {
  weft_engine_program *e = engine(program, index);
  weft_op *ops = own_ops(program, e, strlen(text));
  for (const char *c = text; *c; c += *c == '>' ? 3 : 2) {
    uint32_t id = (uint32_t)(c[1] - '0');
    weft_op op = semaphore_op(*c == '+'   ? WEFT_OP_SEM_INC
                              : *c == '!' ? WEFT_OP_SEM_SET
                                          : WEFT_OP_SEM_WAIT,
                              e->stages[0], site);
    if (op.kind == WEFT_OP_SEM_INC) op.sem_inc.sem = id;
    if (op.kind == WEFT_OP_SEM_SET) op.sem_set.sem = id;
    if (op.kind == WEFT_OP_SEM_WAIT) op.sem_wait.sem = id;
    if (*c == '>') {
      op.sem_wait.at_least = true;
      op.sem_wait.count = (uint64_t)(c[2] - '0');
    }
    ops[e->op_count++] = op;
  }
}

/** A wait that another order lets through before the reset it was written for: engine 2 may wait for semaphore 0 a
 * second time before engine 1 has set it. The order that engines take by themselves hides it. */
static void test_wait_before_reset(void **state) {
  (void)state;
  weft_site site;
  weft_program *program = meeting_program(4, &site);
  meet(program, 0, site, "+0=2!2+0");
  meet(program, 1, site, "=1!1!0+2");
  meet(program, 2, site, "=0+1=3!3=0!0");
  meet(program, 5, site, "+3");
  weft_diag *diag = weft_diag_new();
  if (weft_program_validate(program, 0, NULL, diag)) fail_msg("%s", first_message(diag));
  weft_diag_free(diag);
  assert_refused(program, "waits for semaphore 0, which may not have been reset yet", NULL);
  weft_program_free(program);
  // told of the reset, it is right
  program = meeting_program(5, &site);
  meet(program, 0, site, "+0=2!2+0");
  meet(program, 1, site, "=1!1!0+4+2");
  meet(program, 2, site, "=0+1=3!3=4!4=0!0");
  meet(program, 5, site, "+3");
  assert_certified(program);
  weft_program_free(program);
}

/** A counting wait that others may overtake: certified when it knows all that it counts, and the same bits then. */
static void test_at_least(void **state) {
  (void)state;
  weft_site site;
  weft_program *program = meeting_program(1, &site);
  meet(program, 0, site, "+0");
  meet(program, 5, site, "+0");
  meet(program, 2, site, ">02!0");
  assert_certified(program);
  weft_program_free(program);
  program = meeting_program(1, &site); // the first wait may be met by either increment
  meet(program, 0, site, "+0");
  meet(program, 5, site, "+0");
  meet(program, 2, site, ">01!0>01!0");
  assert_refused(program, "semaphore 0", NULL);
  weft_program_free(program);
}

static uint64_t loosen(weft_op *ops, uint64_t count) {
  uint64_t changed = 0;
  for (uint64_t i = 0; i < count; i++) {
    if (ops[i].kind == WEFT_OP_LOOP) changed += loosen((weft_op *)ops[i].loop.body, ops[i].loop.body_count);
    if (ops[i].kind != WEFT_OP_SEM_WAIT || ops[i].sem_wait.at_least) continue;
    ops[i].sem_wait.at_least = true;
    changed++;
  }
  return changed;
}

/** A multicast whose waits are all AtLeast orders as much. */
static void test_loose_multicast(void **state) {
  (void)state;
  weft_program *program = read_case("scheduled-gemm-2x2-multicast");
  weft_array_set in = {0}, expected = {0};
  make_inputs(program, 7, &in);
  evaluate(program, &in, &expected);
  uint64_t changed = 0;
  for (uint64_t i = 0; i < program->schedule->program_count; i++)
    changed += loosen((weft_op *)program->schedule->programs[i].ops, program->schedule->programs[i].op_count);
  assert_true(changed > 0);
  assert_certified(program);
  for (uint64_t seed = 0; seed < 10; seed++) {
    weft_array_set out = {0};
    weft_diag *diag = weft_diag_new();
    assert_int_equal(run_program(program, &in, true, seed, &out, diag), WEFT_OK);
    assert_same_sets(&expected, &out);
    weft_array_set_free(&out);
    weft_diag_free(diag);
  }
  weft_array_set_free(&in);
  weft_array_set_free(&expected);
  weft_program_free(program);
}

/** Lets buffer `b` lie where `a` lies, when it fits there. */
static bool share(weft_program *program, uint32_t a, uint32_t b) {
  weft_buffer_at *at = (weft_buffer_at *)program->memory->buffer_at;
  if (a == b || !weft_site_equal(at[a].site, at[b].site) || at[a].space != at[b].space || at[b].space == WEFT_MEM_ACC ||
      at[b].bytes > at[a].bytes)
    return false;
  at[b].offset_bytes = at[a].offset_bytes;
  program->buffers[b].alias_of = a;
  return true;
}

/** Runs in random orders: 0 when one of them faults. */
static bool runs_safely(const weft_program *program, const weft_array_set *in, const weft_array_set *expected) {
  bool safe = true;
  for (uint64_t seed = 0; seed < 8 && safe; seed++) {
    weft_array_set out = {0};
    weft_diag *diag = weft_diag_new();
    safe = run_program(program, in, true, seed, &out, diag) == WEFT_OK && same_sets(expected, &out);
    weft_array_set_free(&out);
    weft_diag_free(diag);
  }
  return safe;
}

/** Any two buffers of a site made to share memory: what is certified runs without two owners in every order tried. */
static void test_shared_memory(void **state) {
  (void)state;
  static const char *const names[] = {"scheduled-two-sections",       "scheduled-gemm-spill", "scheduled-carry-fold",
                                      "scheduled-chain-shared-phase", "scheduled-softmax",    "scheduled-gather"};
  uint64_t certified = 0, refused = 0, elsewhere = 0;
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
    weft_program *program = read_case(names[n]);
    weft_array_set in = {0}, expected = {0};
    make_inputs(program, n, &in);
    evaluate(program, &in, &expected);
    for (uint32_t a = 0; a < program->buffer_count; a++) {
      for (uint32_t b = 0; b < program->buffer_count; b++) {
        const uint32_t before = program->memory->buffer_at[b].offset_bytes;
        if (!share(program, a, b)) continue;
        weft_diag *diag = weft_diag_new();
        weft_certificate certificate;
        bool good = weft_certify(program, &certificate, diag) == WEFT_OK;
        const char *why = first_message(diag);
        if (!good && !strstr(why, "where its own phase has")) assert_holds(why, "may still hold");
        elsewhere += !good && strstr(why, "where its own phase has") != NULL;
        if (good && !runs_safely(program, &in, &expected)) fail_msg("%s: %u shares %u", names[n], b, a);
        good ? certified++ : refused++;
        weft_diag_free(diag);
        program->buffers[b].alias_of = WEFT_NONE;
        ((weft_buffer_at *)program->memory->buffer_at)[b].offset_bytes = before;
      }
    }
    weft_array_set_free(&in);
    weft_array_set_free(&expected);
    weft_program_free(program);
  }
  print_message("%llu pairs certified, %llu refused, of these %llu for what their own phase has there\n",
                (unsigned long long)certified, (unsigned long long)refused, (unsigned long long)elsewhere);
  assert_true(certified > 0 && refused > elsewhere && elsewhere > 0);
}

/** Memory that is shared by name lies where it says. */
static void test_shared_elsewhere(void **state) {
  (void)state;
  weft_program *program = read_case("scheduled-two-sections");
  program->buffers[1].alias_of = 0;
  assert_refused(program, "does not lie inside", NULL);
  program->buffers[0].alias_of = 1;
  assert_refused(program, "is an alias of itself", NULL);
  weft_program_free(program);
}

static weft_program *k_split_program(weft_graph **machine) {
  weft_diag *diag = graph_diag;
  uint64_t layers[] = {256, 40, 10};
  weft_mlp_options options = {.layers = layers, .layer_count = 3, .batch = 20, .dtype = WEFT_FP32, .segments = 4};
  weft_target target;
  weft_graph *graph;
  weft_program *program = NULL;
  weft_partition_options sharding = {.split = "rows"};
  assert_int_equal(weft_target_load("cpu", &target, diag), WEFT_OK);
  assert_int_equal(weft_mesh_parse("x=2", &sharding.mesh, diag), WEFT_OK);
  assert_int_equal(weft_graph_new_mlp(&options, "y", &graph, diag), WEFT_OK);
  assert_int_equal(weft_partition(graph, &sharding, &target, machine, NULL, diag), WEFT_OK);
  assert_int_equal(weft_graph_lower(*machine, &program, diag), WEFT_OK);
  weft_graph_free(graph);
  return program;
}

/** Makes every AllReduce a copy of its first operand, as if it had been forgotten. */
static void forget_all_reduces(weft_program *program) {
  for (uint64_t s = 0; s < program->stage_count; s++) {
    weft_stage *stage = &program->stages[s];
    if (stage->kind != WEFT_STAGE_ALL_REDUCE) continue;
    const weft_compute_op *combine = stage->all_reduce.combine;
    stage->kind = WEFT_STAGE_COMPUTE;
    stage->compute = combine;
  }
}

static void test_all_reduce_removed(void **state) {
  (void)state;
  weft_graph *machine = NULL;
  weft_program *program = k_split_program(&machine);
  weft_diag *diag = weft_diag_new();
  weft_certificate certificate;
  weft_program *good = copy_program(program);
  plan_for(good, "cpu", NULL);
  assert_int_equal(weft_certify(good, &certificate, diag), WEFT_OK);
  assert_true(certificate.partial_proved);
  weft_program_free(good);
  weft_program *parts[2] = {0};
  forget_all_reduces(program);
  assert_int_equal(weft_split(program, 2, parts, diag), WEFT_OK);
  plan_for(program, "cpu", "synthesize_handshakes");
  assert_refused(program, "section `", "of a sum that is still to be folded");
  for (int i = 0; i < 2; i++) {
    plan_for(parts[i], "cpu", "synthesize_handshakes");
    assert_refused(parts[i], "section `", "of a sum that is still to be folded");
    weft_program_free(parts[i]);
  }
  weft_diag_free(diag);
  weft_program_free(program);
  weft_graph_free(machine);
}

/** An AllReduce that folds one operand twice and leaves out the other; and one that folds them the wrong way round. */
static void test_all_reduce_wrong(void **state) {
  (void)state;
  for (int how = 0; how < 2; how++) {
    weft_graph *machine = NULL;
    weft_program *program = k_split_program(&machine);
    uint64_t s = 0;
    while (program->stages[s].kind != WEFT_STAGE_ALL_REDUCE) s++;
    weft_stage *load = &program->stages[s - 1];
    assert_int_equal(load->kind, WEFT_STAGE_LOAD);
    if (how == 0) {
      load->load.tensor = program->stages[s - 2].load.tensor;
    } else {
      weft_compute_op *op = WEFT_NEW(program->arena, weft_compute_op);
      *op = *program->stages[s].all_reduce.combine;
      weft_body_node *nodes = WEFT_NEW_ARRAY(program->arena, weft_body_node, op->generic.body.node_count);
      memcpy(nodes, op->generic.body.nodes, op->generic.body.node_count * sizeof *nodes);
      nodes[0].value = 1;
      nodes[1].value = 0;
      op->generic.body.nodes = nodes;
      program->stages[s].all_reduce.combine = op;
    }
    plan_for(program, "cpu", "synthesize_handshakes");
    assert_refused(program, "AllReduce `", how ? "along the tree" : "misses segments, or folds some twice");
    weft_program_free(program);
    weft_graph_free(machine);
  }
}

/** A chip's program that lost a receive is refused, by itself and with the other chip's. */
static void test_receive_removed(void **state) {
  (void)state;
  weft_graph *machine = NULL;
  weft_program *program = k_split_program(&machine);
  weft_program *parts[2] = {0};
  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_split(program, 2, parts, diag), WEFT_OK);
  assert_int_equal(weft_split_check((const weft_program *const *)parts, 2, diag), WEFT_OK);
  uint64_t l = 0;
  while (parts[1]->links[l].receive_count == 0) l++;
  parts[1]->links[l].receive_count--;
  assert_int_equal(weft_split_check((const weft_program *const *)parts, 2, diag), WEFT_INVALID);
  plan_for(parts[1], "cpu", "synthesize_handshakes");
  assert_refused(parts[1], "is chip 0's", "no link point brings it to chip 1");
  for (int i = 0; i < 2; i++) weft_program_free(parts[i]);
  weft_diag_free(diag);
  weft_program_free(program);
  weft_graph_free(machine);
}

/** What reads an activation in the section that writes it may read too early. */
static void test_no_rendezvous(void **state) {
  (void)state;
  weft_program *program = read_case("scheduled-chain");
  for (uint64_t i = 0; i < program->schedule->program_count; i++) {
    weft_engine_program *e = engine(program, i);
    weft_op *ops = own_ops(program, e, 0);
    uint64_t kept = 0;
    for (uint64_t o = 0; o < e->op_count; o++)
      if (ops[o].kind != WEFT_OP_SEM_INC && ops[o].kind != WEFT_OP_SEM_WAIT) ops[kept++] = ops[o];
    e->op_count = kept;
  }
  program->semaphore_count = 0;
  for (uint64_t k = 0; k < program->section_count; k++) {
    program->sections[k].has_barrier_after = false;
    program->sections[k].semaphores = (weft_span){0, 0};
  }
  weft_buffer_at *at = (weft_buffer_at *)program->memory->buffer_at;
  uint32_t offset = 0;
  for (uint64_t b = 0; b < program->buffer_count; b++) {
    at[b].offset_bytes = offset;
    offset += at[b].bytes;
  }
  assert_refused(program, "ReadTiles of stage `", "before it is written");
  weft_program_free(program);
}

/* ---- ranges ---- */

static uint64_t notes_of(weft_program *program) {
  weft_diag *diag = weft_diag_new();
  weft_certificate certificate;
  uint64_t notes = 0;
  assert_int_equal(weft_certify(program, &certificate, diag), WEFT_OK);
  for (uint64_t i = 0; i < weft_diag_count(diag); i++) notes += weft_diag_message(diag, i)->severity == WEFT_NOTE;
  weft_diag_free(diag);
  return notes;
}

static void test_ranges(void **state) {
  (void)state;
  weft_program *program = read_case("scheduled-int8-epilogue");
  assert_int_equal(notes_of(program), 1); /* 64 * 128 * 127 + 499, scaled by 2^-9.6, is more than 127 */
  program->tensors[0].range = (weft_range){-8, 7};
  program->tensors[1].range = (weft_range){-127, 127};
  assert_int_equal(notes_of(program), 0);
  weft_program_free(program);
}

static void set_multiplier(const weft_op *ops, uint64_t count, int64_t m) {
  for (uint64_t i = 0; i < count; i++) {
    if (ops[i].kind == WEFT_OP_LOOP) set_multiplier(ops[i].loop.body, ops[i].loop.body_count, m);
    if (ops[i].kind != WEFT_OP_COMPUTE || ops[i].compute.op->kind != WEFT_COMPUTE_REQUANT) continue;
    ((weft_compute_op *)ops[i].compute.op)->requant.m = m;
  }
}

/** The status of the case with another multiplier, by the ranges alone and by the certificate. */
static weft_status with_multiplier(weft_program *program, weft_compute_op *requant, int64_t m, weft_diag *diag) {
  weft_certificate certificate;
  requant->requant.m = m;
  for (uint64_t e = 0; e < program->schedule->program_count; e++)
    set_multiplier(program->schedule->programs[e].ops, program->schedule->programs[e].op_count, m);
  weft_status status = weft_check_ranges(program, diag);
  assert_int_equal(weft_certify(program, &certificate, diag), status);
  return status;
}

/** After Relu the sums are 0 to 64 * 128 * 127 + 499: the largest multiplier whose product stays in 64 bits is taken,
 * the next refused. */
static void test_requant_product(void **state) {
  (void)state;
  weft_program *program = read_case("scheduled-int8-epilogue");
  weft_compute_op *requant = NULL;
  for (uint64_t s = 0; s < program->stage_count; s++)
    if (strcmp(program->stages[s].name, "requant") == 0) requant = (weft_compute_op *)program->stages[s].compute;
  assert_non_null(requant);
  const int64_t most = 64 * 128 * 127 + 499, largest = INT64_MAX / most;
  weft_diag *diag = weft_diag_new();
  assert_int_equal(with_multiplier(program, requant, largest, diag), WEFT_OK);
  assert_int_equal(with_multiplier(program, requant, -largest, diag), WEFT_OK);
  weft_diag_clear(diag);
  assert_int_equal(with_multiplier(program, requant, largest + 1, diag), WEFT_INVALID);
  assert_holds(first_message(diag), "stage `requant` requantises values from 0 to 1040883");
  assert_int_equal(with_multiplier(program, requant, -largest - 1, diag), WEFT_INVALID);
  weft_diag_free(diag);
  weft_program_free(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scheduled_cases),
      cmocka_unit_test(test_push_removed),
      cmocka_unit_test(test_cycle),
      cmocka_unit_test(test_two_increments),
      cmocka_unit_test(test_wait_before_reset),
      cmocka_unit_test(test_at_least),
      cmocka_unit_test(test_loose_multicast),
      cmocka_unit_test(test_shared_memory),
      cmocka_unit_test(test_shared_elsewhere),
      cmocka_unit_test(test_all_reduce_removed),
      cmocka_unit_test(test_all_reduce_wrong),
      cmocka_unit_test(test_receive_removed),
      cmocka_unit_test(test_no_rendezvous),
      cmocka_unit_test(test_ranges),
      cmocka_unit_test(test_requant_product),
  };
  return cmocka_run_group_tests(tests, make_graph_diag, free_graph_diag);
}
