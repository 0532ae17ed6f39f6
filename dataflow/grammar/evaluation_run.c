/* Statements of a postcondition, and what is said about those that do not hold. */
#include "evaluation_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/** The elements that the enclosing foralls are at, innermost last. */
typedef struct trail {
  const struct trail *outer;
  const statement *forall;
} trail;

typedef struct run_state {
  evaluation e;
  uint64_t failures, notes, most_failures;
  bool over;
} run_state;

/* ---- messages ------------------------------------------------------------------------------------------------- */

/* The op that a value is or belongs to; NULL for other values. */
static const weft_mlir_op *op_of(const value *v) {
  if (v->kind == VALUE_OP || v->kind == VALUE_MAYBE_OP) return v->as.op;
  if (v->kind != VALUE_SSA) return NULL;
  const weft_mlir_op *op = weft_mlir_defining_op(v->as.ssa);
  const weft_mlir_block *block = op ? NULL : weft_mlir_value_block(v->as.ssa);
  return block && block->region ? block->region->op : op;
}

/* The file that an op was read from. */
static const char *file_of(const evaluation *e, const weft_mlir_op *op) {
  while (weft_mlir_parent(op)) op = weft_mlir_parent(op);
  const side *in = &e->sides[0];
  const weft_mlir_op *root = in->module;
  while (root && weft_mlir_parent(root)) root = weft_mlir_parent(root);
  return root && op == root ? in->file : e->sides[1].file;
}

static void describe_value(const evaluation *e, const char *name, const value *v, weft_text *text) {
  const weft_mlir_op *op = op_of(v);
  weft_text_printf(text, "%s%s = ", text->length ? ", " : "", name);
  if (v->kind == VALUE_SSA)
    weft_text_printf(text, "%s %u of ", v->as.ssa->is_argument ? "argument" : "result", v->as.ssa->index);
  if (op)
    weft_text_printf(text, "%s at %s:%u", op->name->text, file_of(e, op), op->line);
  else if (v->kind == VALUE_INTEGER)
    weft_text_i64(text, v->as.integer);
  else
    weft_text_puts(text, evaluation_kind_name(v->kind));
}

static void describe_trail(const evaluation *e, const trail *at, weft_text *text) {
  if (!at) return;
  describe_trail(e, at->outer, text);
  describe_value(e, at->forall->name, &e->slots[at->forall->slot], text);
}

/* The innermost element that stands in a file, else the output's file as a whole. */
static weft_place place_of(const evaluation *e, const trail *at) {
  for (; at; at = at->outer) {
    const weft_mlir_op *op = op_of(&e->slots[at->forall->slot]);
    if (op) return weft_mlir_place(file_of(e, op), op);
  }
  return (weft_place){.file = e->sides[1].file};
}

/* The first part of a conjunction that is false: parts after it may have no value. */
static const node *false_part(evaluation *e, const node *n) {
  while (n->kind == NODE_AND) {
    bool holds;
    if (!evaluation_truth(e, n->parts[0], &holds)) break;
    n = n->parts[holds];
  }
  return n;
}

static void add_sides(evaluation *e, const node *n, weft_text *text) {
  bool numbers = n->kind >= NODE_EQUAL && n->kind <= NODE_AT_LEAST;
  value a, b;
  if (!numbers || !evaluation_value(e, n->parts[0], &a) || !evaluation_value(e, n->parts[1], &b)) return;
  if (a.kind == VALUE_INTEGER && b.kind == VALUE_INTEGER)
    weft_text_printf(text, "; the sides are %" PRId64 " and %" PRId64, a.as.integer, b.as.integer);
}

static void add_source(const node *n, weft_text *text) {
  enum { SHOWN = 160 };
  bool gap = false;
  for (size_t i = 0; i < n->source_length && i < SHOWN; i++) {
    char c = n->source[i];
    bool space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (space && gap) continue;
    gap = space;
    weft_text_append(text, space ? " " : &c, 1);
  }
  if (n->source_length > SHOWN) weft_text_puts(text, "...");
}

static void report_failure(run_state *r, const statement *s, const trail *at) {
  evaluation *e = &r->e;
  if (++r->failures > r->most_failures) return;
  weft_text where = {0}, hint = {0};
  describe_trail(e, at, &where);
  const node *part = false_part(e, s->value);
  weft_text_printf(&hint, "%s:%u:%u: false: ", e->post->file, part->at.line, part->at.column);
  add_source(part, &hint);
  add_sides(e, part, &hint);
  e->failed = false; /* the step limit may have ended what was evaluated again */
  weft_error_at(e->diag, WEFT_INVALID, place_of(e, at), hint.data, "`%s` does not hold%s%s", s->name,
                where.length ? " for " : "", where.data ? where.data : "");
  weft_text_free(&where);
  weft_text_free(&hint);
}

/* A fault before anything was false is the verdict; after that it is only told. */
static void report_fault(run_state *r, const statement *s, const trail *at) {
  evaluation *e = &r->e;
  if (r->failures && ++r->notes > r->most_failures) return;
  weft_text where = {0};
  describe_trail(e, at, &where);
  weft_diag_add(e->diag, r->failures ? WEFT_NOTE : WEFT_ERROR, language_place(e->post->file, e->fault_at),
                e->fault_hint, "`%s` has no value%s%s: %s", s->name, where.length ? " for " : "",
                where.data ? where.data : "", e->fault);
  weft_text_free(&where);
}

/* ---- statements ----------------------------------------------------------------------------------------------- */

static void run_all(run_state *r, const statement *statements, uint64_t count, const trail *at);

static bool run_assert(run_state *r, const statement *s, const trail *at) {
  pool_mark mark = evaluation_pool_now(&r->e.pool);
  bool holds;
  if (!evaluation_truth(&r->e, s->value, &holds)) return false;
  if (!holds) report_failure(r, s, at);
  evaluation_pool_release(&r->e.pool, mark);
  return true;
}

static bool run_forall(run_state *r, const statement *s, const trail *outer) {
  evaluation *e = &r->e;
  trail at = {.outer = outer, .forall = s};
  value source;
  if (!evaluation_elements(e, s->value, &source)) return false;
  for (uint64_t i = 0; i < source.count && !r->over; i++) {
    pool_mark mark = evaluation_pool_now(&e->pool);
    bool holds = true;
    e->slots[s->slot] = evaluation_at(&source, i);
    if (!evaluation_step(e, s->at, 1) || (s->where && !evaluation_truth(e, s->where, &holds))) return false;
    if (holds) run_all(r, s->body, s->body_count, &at);
    evaluation_pool_release(&e->pool, mark);
  }
  return true;
}

static bool run_statement(run_state *r, const statement *s, const trail *at) {
  switch (s->kind) {
  case STATEMENT_LET: return evaluation_value(&r->e, s->value, &r->e.slots[s->slot]);
  case STATEMENT_ASSERT: return run_assert(r, s, at);
  case STATEMENT_FORALL: return run_forall(r, s, at);
  }
  return false;
}

/* The statements of a block are one conjunction: before a false one, a fault is the end; after it, the verdict is known
 * and only what else is false is looked for. */
static void run_all(run_state *r, const statement *statements, uint64_t count, const trail *at) {
  evaluation *e = &r->e;
  for (uint64_t i = 0; i < count && !r->over; i++) {
    const statement *s = &statements[i];
    if (run_statement(r, s, at)) continue;
    if (e->failed) report_fault(r, s, at);
    r->over = e->status || !r->failures || e->steps > e->step_limit;
    e->failed = false;
    if (s->kind == STATEMENT_LET) return; /* the rest may need it */
  }
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

/* The type called `name`; NULL when there is none. */
static const weft_mlir_type *type_called(weft_mlir_context *context, const char *name) {
  if (strcmp(name, "none") == 0) return weft_mlir_none(context);
  if (strcmp(name, "index") == 0) return weft_mlir_index(context);
  weft_mlir_sign sign = name[0] == 's' ? WEFT_MLIR_SIGNED : name[0] == 'u' ? WEFT_MLIR_UNSIGNED : WEFT_MLIR_SIGNLESS;
  const char *rest = name + (sign != WEFT_MLIR_SIGNLESS);
  char *end;
  if (rest[0] != 'i' || rest[1] < '1' || rest[1] > '9') return weft_mlir_float(context, name);
  unsigned long width = strtoul(rest + 1, &end, 10);
  return *end || width >= 1 << 24 ? NULL : weft_mlir_integer(context, (uint32_t)width, sign);
}

static bool find_types(evaluation *e) {
  const weft_postcondition *post = e->post;
  e->types = WEFT_NEW_ARRAY(e->arena, const weft_mlir_type *, post->type_count);
  if (!e->types) return evaluation_no_memory(e);
  for (uint64_t i = 0; i < post->type_count; i++) {
    e->types[i] = type_called(e->context, post->types[i].name);
    if (e->types[i]) continue;
    e->status = weft_error_at(e->diag, WEFT_INVALID, language_place(post->file, post->types[i].at),
                              "none, index, i32, si8, ui64, f32, bf16 and their like", "there is no type `%s`",
                              post->types[i].name);
    return false;
  }
  return true;
}

static bool prepare(evaluation *e) {
  e->slots = WEFT_NEW_ARRAY(e->arena, value, e->post->slot_count);
  e->joins = WEFT_NEW_ARRAY(e->arena, join_table, e->post->join_count);
  if (!e->slots || !e->joins) return evaluation_no_memory(e);
  return find_types(e) && evaluation_read_sides(e);
}

static weft_verdict run(run_state *r) {
  const weft_postcondition *post = r->e.post;
  run_all(r, post->statements, post->statement_count, NULL);
  if (r->failures > r->most_failures)
    weft_diag_add(r->e.diag, WEFT_NOTE, (weft_place){.file = r->e.sides[1].file}, NULL,
                  "%" PRIu64 " more that do not hold", r->failures - r->most_failures);
  if (r->failures) return WEFT_VERDICT_FAILS;
  return r->over ? WEFT_VERDICT_ERROR : WEFT_VERDICT_HOLDS;
}

weft_status weft_postcondition_evaluate(const weft_postcondition *postcondition, weft_mlir_context *context,
                                        weft_postcondition_side input, weft_postcondition_side output,
                                        const weft_postcondition_options *options, weft_verdict *verdict,
                                        weft_diag *diag) {
  const weft_postcondition_options defaults = {0};
  if (!options) options = &defaults;
  *verdict = WEFT_VERDICT_ERROR;
  if (!output.module || (postcondition->uses_input && !input.module))
    return weft_error(diag, WEFT_USAGE, NULL, "the postcondition `%s` speaks of the %s, which is not given",
                      postcondition->name, output.module ? "input" : "output");
  run_state r = {.most_failures = options->failures ? options->failures : 20};
  r.e = (evaluation){
      .post = postcondition,
      .context = context,
      .arena = weft_arena_new(),
      .diag = diag,
      .sides = {{.module = input.module, .file = input.file}, {.module = output.module, .file = output.file}},
      .unindexed = options->unindexed,
      .step_limit = options->steps ? options->steps : WEFT_POSTCONDITION_STEPS};
  if (!r.e.arena) return weft_error_memory(diag);
  if (prepare(&r.e)) *verdict = run(&r);
  if (r.e.status) *verdict = WEFT_VERDICT_ERROR;
  evaluation_pool_release(&r.e.pool, (pool_mark){0});
  weft_arena_free(r.e.arena);
  return r.e.status;
}
