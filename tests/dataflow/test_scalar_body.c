/* Loop-free graphs as cells: what the cells compute, evaluated here, is what the interpreter says of the structured
 * graph. Arguments: how many programs, the first seed. */
#include "df_support.h"

#include "weft/scalar_body.h"

static uint64_t programs = 300, first_seed = 1;

enum { INPUTS = 4, TYPES = 5, NAMES = 200, RUNS = 8 };
static const char *const types[TYPES] = {"i1", "i8", "i32", "i64", "index"};
static const uint32_t widths[TYPES] = {1, 8, 32, 64, 64};
static const int inputs[INPUTS] = {1, 2, 3, 4};

typedef struct generator {
  weft_text text;
  uint64_t random;
  int names[TYPES][NAMES], counts[TYPES], next;
} generator;

static uint32_t below(generator *g, uint32_t n) { return (uint32_t)(weft_random_next(&g->random) >> 33) % n; }

static void see(generator *g, int type, int name) {
  if (g->counts[type] < NAMES) g->names[type][g->counts[type]++] = name;
}

static int value(generator *g, int type) {
  if (g->counts[type] && below(g, 5)) return g->names[type][below(g, (uint32_t)g->counts[type])];
  int name = g->next++;
  uint64_t word = weft_random_next(&g->random) >> below(g, 64);
  if (type == 0)
    weft_text_printf(&g->text, "%%v%d = arith.constant %s\n", name, word & 1 ? "true" : "false");
  else
    weft_text_printf(&g->text, "%%v%d = arith.constant %lld : %s\n", name,
                     widths[type] == 64 ? (long long)word : (long long)(word % 100) - 50, types[type]);
  see(g, type, name);
  return name;
}

static void convert(generator *g) {
  int from = (int)below(g, TYPES), to = (int)below(g, TYPES), a = value(g, from);
  const char *op;
  if (from == to || (from == 3 && to == 4 && below(g, 2))) return;
  if (from == 4 || to == 4)
    op = below(g, 2) ? "index_cast" : "index_castui";
  else if (widths[from] > widths[to])
    op = "trunci";
  else
    op = below(g, 2) ? "extsi" : "extui";
  weft_text_printf(&g->text, "%%v%d = arith.%s %%v%d : %s to %s\n", g->next, op, a, types[from], types[to]);
  see(g, to, g->next++);
}

static void binary(generator *g) {
  static const char *const ops[] = {"addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui"};
  int type = (int)below(g, TYPES), a = value(g, type), b = value(g, type);
  weft_text_printf(&g->text, "%%v%d = arith.%s %%v%d, %%v%d : %s\n", g->next, ops[below(g, 10)], a, b, types[type]);
  see(g, type, g->next++);
}

static void compare(generator *g) {
  static const char *const predicates[] = {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"};
  int type = (int)below(g, TYPES), a = value(g, type), b = value(g, type);
  weft_text_printf(&g->text, "%%v%d = arith.cmpi %s, %%v%d, %%v%d : %s\n", g->next, predicates[below(g, 10)], a, b,
                   types[type]);
  see(g, 0, g->next++);
}

static void shift(generator *g) {
  static const char *const ops[] = {"shli", "shrsi", "shrui"};
  int type = (int)below(g, TYPES), a = value(g, type), by = g->next++;
  uint32_t amount = below(g, widths[type]);
  if (type == 0)
    weft_text_printf(&g->text, "%%v%d = arith.constant false\n", by);
  else
    weft_text_printf(&g->text, "%%v%d = arith.constant %u : %s\n", by, amount, types[type]);
  weft_text_printf(&g->text, "%%v%d = arith.%s %%v%d, %%v%d : %s\n", g->next, ops[below(g, 3)], a, by, types[type]);
  see(g, type, g->next++);
}

static void statements(generator *g, int depth, int count);

/* An if, or an index_switch, that yields one value. */
static void branch(generator *g, int depth) {
  int type = (int)below(g, TYPES), result = g->next++, lanes = 2 + (int)below(g, 2);
  bool is_switch = lanes == 3;
  int selector = value(g, is_switch ? 4 : 0);
  weft_text_printf(&g->text, is_switch ? "%%v%d = scf.index_switch %%v%d -> %s\n" : "%%v%d = scf.if %%v%d -> (%s) {\n",
                   result, selector, types[type]);
  for (int lane = 0; lane < lanes; lane++) {
    generator outer = *g;
    if (is_switch && lane < 2) weft_text_printf(&g->text, "case %d {\n", lane);
    if (is_switch && lane == 2) weft_text_puts(&g->text, "default {\n");
    statements(g, depth - 1, 3);
    int yielded = value(g, type);
    weft_text_printf(&g->text, "scf.yield %%v%d : %s\n%s", yielded, types[type],
                     is_switch || lane ? "}\n" : "} else {\n");
    memcpy(g->names, outer.names, sizeof g->names);
    memcpy(g->counts, outer.counts, sizeof g->counts);
  }
  see(g, type, result);
}

static void statements(generator *g, int depth, int count) {
  for (int i = 0; i < count; i++) {
    switch (below(g, depth ? 6 : 5)) {
    case 0: convert(g); break;
    case 1: compare(g); break;
    case 2: shift(g); break;
    case 5: branch(g, depth); break;
    default: binary(g); break;
    }
  }
}

static int generate(generator *g, uint64_t seed) {
  *g = (generator){.random = seed, .next = INPUTS};
  for (int i = 0; i < INPUTS; i++) see(g, inputs[i], i);
  int type = (int)(seed % TYPES);
  weft_text_printf(&g->text,
                   "dataflow.graph private @entry(%%start: none, %%v0: i8, %%v1: i32, %%v2: i64, %%v3: index) -> (%s) "
                   "attributes {input_segments = array<i32: 4, 0, 0>, result_segments = array<i32: 1, 0, 0>} {\n",
                   types[type]);
  statements(g, 2, 12);
  int result = value(g, type);
  weft_text_printf(&g->text, "dataflow.graph.return %%start, %%v%d : none, %s\n}\n", result, types[type]);
  return type;
}

/* ---- cells --------------------------------------------------------------------------------------------------------
 */

static int64_t read_source(const weft_src *s, const weft_binding *in, const int64_t *cells) {
  return s->kind == WEFT_SRC_CONST   ? s->constant
         : s->kind == WEFT_SRC_INPUT ? (int64_t)in[s->index].word
                                     : cells[s->index];
}

static int64_t evaluate(const weft_scalar_body *body, const weft_binding *in) {
  int64_t *cells = calloc(body->cell_count + 1, sizeof *cells);
  assert_non_null(cells);
  for (uint64_t i = 0; i < body->cell_count; i++) {
    const weft_cell *c = &body->cells[i];
    assert_true(c->op != WEFT_CELL_SELECT || c->has_c);
    int64_t a = read_source(&c->a, in, cells), b = read_source(&c->b, in, cells), r = 0;
    switch (c->op) {
    case WEFT_CELL_ADD: r = (int64_t)((uint64_t)a + (uint64_t)b); break;
    case WEFT_CELL_SUB: r = (int64_t)((uint64_t)a - (uint64_t)b); break;
    case WEFT_CELL_MUL: r = (int64_t)((uint64_t)a * (uint64_t)b); break;
    case WEFT_CELL_AND: r = a & b; break;
    case WEFT_CELL_OR: r = a | b; break;
    case WEFT_CELL_XOR: r = a ^ b; break;
    case WEFT_CELL_SHL: r = (int64_t)((uint64_t)a << b); break;
    case WEFT_CELL_ASHR: r = a >> b; break;
    case WEFT_CELL_LSHR: r = (int64_t)((uint64_t)a >> b); break;
    case WEFT_CELL_LT: r = a < b; break;
    case WEFT_CELL_EQ: r = a == b; break;
    case WEFT_CELL_SELECT: r = a ? b : read_source(&c->c, in, cells); break;
    default: fail_msg("an unexpected cell"); break;
    }
    cells[i] = r;
  }
  int64_t result = read_source(&body->result, in, cells);
  free(cells);
  return result;
}

static void check_program(uint64_t seed) {
  generator g;
  world w = world_new();
  weft_interpreter *machine;
  weft_scalar_body body;
  generate(&g, seed);
  weft_mlir_file *file = world_must_parse(&w, g.text.data), *lowered = world_must_parse(&w, g.text.data);
  if (weft_lower(w.context, lowered->arena, lowered->modules[0], "test.mlir", w.diag) != WEFT_OK ||
      weft_scalar_body_of(weft_mlir_lookup(lowered->modules[0], "entry"), "test.mlir", lowered->arena, &body, w.diag) !=
          WEFT_OK)
    fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, world_message(&w), g.text.data);
  assert_int_equal(body.n_in, INPUTS);
  assert_int_equal(weft_interpreter_new(weft_mlir_lookup(file->modules[0], "entry"), "test.mlir", &machine, w.diag),
                   WEFT_OK);
  uint64_t random = seed;
  for (int run = 0; run < RUNS; run++) {
    weft_binding in[INPUTS] = {{0}};
    for (int i = 0; i < INPUTS; i++) {
      uint64_t word = weft_random_next(&random) >> weft_random_next(&random) % 64, rest = 64 - widths[inputs[i]];
      in[i].word = (uint64_t)((int64_t)(word << rest) >> rest);
    }
    assert_int_equal(weft_interpreter_start(machine, in, INPUTS, w.diag), WEFT_OK);
    assert_int_equal(weft_interpreter_run(machine, 10000), WEFT_RUN_DONE);
    int64_t expected = (int64_t)weft_interpreter_result(machine, 0), got = evaluate(&body, in);
    if (expected != got)
      fail_msg("run %d: %lld against %lld\nrepeat with: test_scalar_body 1 %llu\n%s", run, (long long)got,
               (long long)expected, (unsigned long long)seed, g.text.data);
  }
  weft_interpreter_free(machine);
  weft_mlir_file_free(file);
  weft_mlir_file_free(lowered);
  weft_text_free(&g.text);
  world_free(&w);
}

static void test_programs(void **state) {
  (void)state;
  for (uint64_t i = 0; i < programs; i++) check_program(first_seed + i);
}

/* ---- refusals -----------------------------------------------------------------------------------------------------
 */

static void expect_no_cells(const char *text, uint64_t line, const char *words) {
  world w = world_new();
  weft_scalar_body body;
  weft_mlir_file *file = world_must_parse(&w, text);
  assert_int_equal(
      weft_scalar_body_of(weft_mlir_lookup(file->modules[0], "f"), "test.mlir", file->arena, &body, w.diag),
      WEFT_INVALID);
  assert_int_equal(weft_diag_count(w.diag), 1);
  if (!strstr(world_message(&w), words)) fail_msg("the message is \"%s\", expected \"%s\"", world_message(&w), words);
  assert_int_equal(weft_diag_message(w.diag, 0)->place.line, line);
  weft_mlir_file_free(file);
  world_free(&w);
}

static void test_refusals(void **state) {
  (void)state;
  expect_no_cells("func.func @f(%a: i32, %b: i32) -> i32 {\n%c = arith.divsi %a, %b : i32\nreturn %c : i32\n}\n", 2,
                  "no cell for arith.divsi: the datapath does not compute it");
  expect_no_cells("func.func @f(%a: i32, %b: i32) -> i32 {\n%c = arith.shli %a, %b : i32\nreturn %c : i32\n}\n", 2,
                  "the amount is no constant below the width");
  expect_no_cells("func.func @f(%a: f32) -> f32 {\n%c = arith.addf %a, %a : f32\nreturn %c : f32\n}\n", 1,
                  "a value is no integer");
  expect_no_cells("func.func @f(%a: i32, %m: memref<?xi32>, %n: index) -> i32 {\n%c = memref.load %m[%n] : "
                  "memref<?xi32>\nreturn %c : i32\n}\n",
                  1, "a value is no integer");
  expect_no_cells("func.func @f(%a: i32) -> (i32, i32) {\nreturn %a, %a : i32, i32\n}\n", 2,
                  "a Scalar body has one result");
  expect_no_cells("func.func @f(%a: i32, %c: i1) -> i32 {\n%r = scf.if %c -> (i32) { scf.yield %a : i32 } else { "
                  "scf.yield %a : i32 }\nreturn %r : i32\n}\n",
                  2, "it is structured control");
  expect_no_cells(
      "dataflow.graph private @f(%s: none, %a: i32, %c: i1) -> (i32) attributes {input_segments = array<i32: "
      "2, 0, 0>, result_segments = array<i32: 1, 0, 0>} {\n%r = dataflow.carry %c, %a, %r : i32\n"
      "dataflow.graph.return %s, %r : none, i32\n}\n",
      2, "no cell for dataflow.carry");
  expect_no_cells(
      "dataflow.graph private @f(%s: none, %a: i32, %c: i1) -> (i32) attributes {input_segments = array<i32: "
      "2, 0, 0>, result_segments = array<i32: 1, 0, 0>} {\n%r = arith.addi %q, %a : i32\n"
      "%q = arith.addi %a, %a : i32\n%t = dataflow.constant %s {const_value = 1 : i32} : i32\n"
      "dataflow.graph.return %s, %r : none, i32\n}\n",
      2, "an operand comes from a ring, or later");
}

int main(int argc, char **argv) {
  if (argc > 1) programs = strtoull(argv[1], NULL, 10);
  if (argc > 2) first_seed = strtoull(argv[2], NULL, 10);
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs), cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
