/* Any bytes as a grammar or a postcondition: an object or messages with places, and what is read is run. Each seed
 * changes a few bytes of a right text, or splices two. `test_hostile SEED` runs one. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

static uint64_t only_seed = UINT64_MAX;

typedef struct corpus {
  char *texts[4];
  size_t lengths[4];
  int count;
} corpus;

static void add_file(corpus *c, const char *path) {
  weft_diag *diag = weft_diag_new();
  assert_ok(weft_read_file(path, &c->texts[c->count], &c->lengths[c->count], diag), diag);
  c->count++;
  weft_diag_free(diag);
}

static void add_text(corpus *c, const char *text) {
  c->lengths[c->count] = strlen(text);
  c->texts[c->count] = malloc(c->lengths[c->count] + 1);
  assert_non_null(c->texts[c->count]);
  memcpy(c->texts[c->count], text, c->lengths[c->count] + 1);
  c->count++;
}

static void free_corpus(corpus *c) {
  for (int i = 0; i < c->count; i++) free(c->texts[i]);
}

static uint64_t below(uint64_t *random, uint64_t limit) { return weft_random_next(random) % limit; }

/* A piece of one text put over or into another. */
static void splice(const corpus *c, weft_text *text, uint64_t *random) {
  int from = (int)below(random, (uint64_t)c->count);
  size_t length = 1 + below(random, 40), start = below(random, c->lengths[from]);
  if (length > c->lengths[from] - start) length = c->lengths[from] - start;
  size_t at = below(random, text->length), removed = below(random, 2) ? length : 0;
  if (removed > text->length - at) removed = text->length - at;
  weft_text rest = {0};
  weft_text_append(&rest, text->data + at + removed, text->length - at - removed);
  text->length = at;
  weft_text_append(text, c->texts[from] + start, length);
  weft_text_append(text, rest.data, rest.length);
  weft_text_free(&rest);
}

static void change(const corpus *c, weft_text *text, uint64_t *random) {
  static const char marks[] = "(){}[]|;:'\"\\.,=+-*<>$@!\n 019aXn/";
  size_t at = below(random, text->length);
  switch (below(random, 4)) {
  case 0: text->data[at] = (char)below(random, 256); break;
  case 1: text->data[at] = marks[below(random, sizeof marks - 1)]; break;
  case 2: /* without one byte */
    memmove(text->data + at, text->data + at + 1, text->length - at);
    text->length--;
    break;
  default: splice(c, text, random);
  }
}

static weft_text changed_text(const corpus *c, uint64_t *random) {
  int which = (int)below(random, (uint64_t)c->count);
  weft_text text = {0};
  weft_text_append(&text, c->texts[which], c->lengths[which]);
  for (uint64_t changes = 1 + below(random, 4); changes && text.length > 1; changes--) change(c, &text, random);
  return text;
}

static void assert_told(weft_status status, const weft_diag *diag, const char *file, uint64_t seed) {
  uint64_t errors = weft_diag_errors(diag);
  bool placed = errors > 0;
  for (uint64_t i = 0; i < weft_diag_count(diag); i++)
    placed =
        placed && weft_diag_message(diag, i)->place.file && strcmp(weft_diag_message(diag, i)->place.file, file) == 0;
  if (status == WEFT_OK ? errors != 0 : status != WEFT_INVALID || !placed)
    fail_msg("status %d with %d errors; repeat with: test_hostile %llu", (int)status, (int)errors,
             (unsigned long long)seed);
}

static void each_seed(void (*run)(const corpus *, uint64_t), const corpus *c, uint64_t count) {
  if (only_seed != UINT64_MAX) {
    run(c, only_seed);
    return;
  }
  for (uint64_t seed = 0; seed < count; seed++) run(c, seed);
}

static void run_grammar(const corpus *c, uint64_t seed) {
  uint64_t random = seed;
  weft_text text = changed_text(c, &random);
  weft_diag *diag = weft_diag_new();
  weft_grammar *grammar;
  weft_status status = weft_grammar_parse("g.pg", text.data, text.length, &grammar, diag);
  assert_told(status, diag, "g.pg", seed);
  assert_true((status == WEFT_OK) == (grammar != NULL));
  if (grammar) {
    weft_text sample = {0};
    weft_diag_clear(diag);
    status = weft_grammar_sample(grammar, &(weft_grammar_options){.seed = seed}, &sample, diag);
    assert_told(status, diag, "g.pg", seed);
    weft_text_free(&sample);
  }
  weft_grammar_free(grammar);
  weft_diag_free(diag);
  weft_text_free(&text);
}

static void changed_grammars(void **state) {
  (void)state;
  corpus c = {.count = 0};
  add_file(&c, SAMPLES "while.pg");
  add_file(&c, SAMPLES "graph-launch.pg");
  add_text(&c, "start: {new N = random.randint(-2, 2); new S = 'a' + str(N)} e [S] 't\\n\\'' | 'x';\n"
               "e: (N * 2 == 4 and not N < 0 or 1) 'a' e | '(' e ')' {N += 1} | [random.choice([1, N, 'b'])];");
  each_seed(run_grammar, &c, 20000);
  free_corpus(&c);
}

typedef struct sides {
  weft_mlir_context *context;
  weft_mlir_file *input, *output, *launches;
} sides;

static sides programs;

static void run_postcondition(const corpus *c, uint64_t seed) {
  uint64_t random = seed;
  weft_text text = changed_text(c, &random);
  weft_diag *diag = weft_diag_new();
  weft_postcondition *post;
  weft_status status = weft_postcondition_parse("p.spct", text.data, text.length, &post, diag);
  assert_told(status, diag, "p.spct", seed);
  assert_true((status == WEFT_OK) == (post != NULL));
  weft_verdict verdicts[2];
  weft_mlir_file *outputs[] = {programs.output, programs.launches};
  for (int k = 0; post && k < 4; k++) {
    weft_postcondition_side input = {.module = programs.input->modules[0], .file = "i.mlir"};
    weft_postcondition_side output = {.module = outputs[k / 2]->modules[0], .file = "o.mlir"};
    weft_postcondition_options options = {.unindexed = k % 2, .steps = 200000};
    weft_diag_clear(diag);
    status = weft_postcondition_evaluate(post, programs.context, input, output, &options, &verdicts[k % 2], diag);
    if (status && status != WEFT_INVALID) fail_msg("repeat with: test_hostile %llu", (unsigned long long)seed);
    if (!status && (verdicts[k % 2] == WEFT_VERDICT_HOLDS) != (weft_diag_count(diag) == 0))
      fail_msg("verdict without its message; repeat with: test_hostile %llu", (unsigned long long)seed);
    if (k % 2 && !status && verdicts[0] != verdicts[1])
      fail_msg("joins change the verdict; repeat with: test_hostile %llu", (unsigned long long)seed);
  }
  weft_postcondition_free(post);
  weft_diag_free(diag);
  weft_text_free(&text);
}

static void changed_postconditions(void **state) {
  (void)state;
  corpus c = {.count = 0};
  add_file(&c, SAMPLES "while.spct");
  add_file(&c, SAMPLES "graph-launch.spct");
  add_text(
      &c,
      "postcondition p { language v0; vocabulary m = mlir.generic@1; metadata { a = \"b\"; c = 1; } constraints {\n"
      "let o = output.operations; let n = set { cardinality(x.operands) | x in o };\n"
      "forall x in o where x.has_attribute(\"value\") { let v = x.attribute(\"value\"); assert a: v == v;\n"
      "forall r in x.results { assert b: r.type.kind == \"i\" or sum(n) - 1 >= 2 + 3 implies r.uses[0] in o; } }\n"
      "assert c: exists x in o where x.name == \"dataflow.demux\" and exists y in o where y.operands == x.operands\n"
      "and not (x.operands.drop(1)[0].defining_operation matches none);\n"
      "assert d: none x in o where x contains o[1] and resolve(input, \"counting\") == o.drop(1); } }");
  programs.context = context_new();
  programs.input = module_read(programs.context, HERE "counting.mlir");
  programs.output = module_read(programs.context, HERE "counting-lowered.mlir");
  programs.launches = module_read(programs.context, HERE "launches.mlir");
  each_seed(run_postcondition, &c, 20000);
  weft_mlir_file_free(programs.input);
  weft_mlir_file_free(programs.output);
  weft_mlir_file_free(programs.launches);
  weft_mlir_context_free(programs.context);
  free_corpus(&c);
}

int main(int argc, char **argv) {
  if (argc > 1) only_seed = strtoull(argv[1], NULL, 10);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(changed_grammars),
      cmocka_unit_test(changed_postconditions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
