/* What the rules of a grammar say together: that each is there, that each can end, which are reached. The cost of
 * ending is the smallest number of rules to expand (Knuth, A generalization of Dijkstra's algorithm, 1977). */
#include "grammar_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- the cheapest texts --------------------------------------------------------------------------------------- */

typedef struct candidate {
  uint64_t cost;
  uint32_t rule;
} candidate;

typedef struct costs {
  weft_grammar *grammar;
  candidate *heap; /* the cheapest first; ties by rule */
  uint64_t heaped, heap_capacity;
  uint64_t *waiting;    /* of each alternative: mentions whose rule has no cost yet */
  uint64_t *first_user; /* of each rule, and one more: where its users begin */
  uint64_t *users;      /* the alternative of each mention */
  weft_arena *arena;
} costs;

static bool cheaper(candidate a, candidate b) { return a.cost != b.cost ? a.cost < b.cost : a.rule < b.rule; }

static bool heap_push(costs *c, candidate one) {
  if (!weft_arena_grow(c->arena, &c->heap, c->heaped, &c->heap_capacity, sizeof one)) return false;
  uint64_t i = c->heaped++;
  for (; i && cheaper(one, c->heap[(i - 1) / 2]); i = (i - 1) / 2) c->heap[i] = c->heap[(i - 1) / 2];
  c->heap[i] = one;
  return true;
}

static candidate heap_pop(costs *c) {
  candidate top = c->heap[0], last = c->heap[--c->heaped];
  uint64_t i = 0;
  for (uint64_t child; (child = 2 * i + 1) < c->heaped; i = child) {
    if (child + 1 < c->heaped && cheaper(c->heap[child + 1], c->heap[child])) child++;
    if (!cheaper(c->heap[child], last)) break;
    c->heap[i] = c->heap[child];
  }
  c->heap[i] = last;
  return top;
}

/* Lists, for every rule, the alternatives that mention it. */
static bool find_users(costs *c) {
  weft_grammar *g = c->grammar;
  uint64_t rules = g->rule_names.count;
  c->waiting = WEFT_NEW_ARRAY(c->arena, uint64_t, g->alternative_count);
  c->first_user = WEFT_NEW_ARRAY(c->arena, uint64_t, rules + 2);
  if (!c->waiting || !c->first_user) return false;
  for (uint64_t a = 0; a < g->alternative_count; a++)
    for (uint64_t i = 0; i < g->alternatives[a].item_count; i++) {
      const item *one = &g->alternatives[a].items[i];
      if (one->kind != ITEM_RULE) continue;
      c->first_user[one->number + 2]++;
      c->waiting[a]++;
    }
  for (uint64_t r = 2; r < rules + 2; r++) c->first_user[r] += c->first_user[r - 1];
  c->users = WEFT_NEW_ARRAY(c->arena, uint64_t, c->first_user[rules + 1]);
  if (!c->users) return false;
  for (uint64_t a = 0; a < g->alternative_count; a++)
    for (uint64_t i = 0; i < g->alternatives[a].item_count; i++) {
      const item *one = &g->alternatives[a].items[i];
      if (one->kind == ITEM_RULE) c->users[c->first_user[one->number + 1]++] = a;
    }
  return true;
}

static uint64_t sum_of_costs(uint64_t a, uint64_t b) { return weft_min_u64(a + b, COST_MOST); }

static bool find_costs(costs *c) {
  weft_grammar *g = c->grammar;
  if (!find_users(c)) return false;
  for (uint64_t a = 0; a < g->alternative_count; a++) {
    g->alternatives[a].cost = 1;
    if (!c->waiting[a] && !heap_push(c, (candidate){1, g->alternatives[a].rule})) return false;
  }
  while (c->heaped) {
    candidate best = heap_pop(c);
    if (g->rules[best.rule].cost != COST_NEVER) continue;
    g->rules[best.rule].cost = best.cost;
    for (uint64_t u = c->first_user[best.rule]; u < c->first_user[best.rule + 1]; u++) {
      alternative *user = &g->alternatives[c->users[u]];
      user->cost = sum_of_costs(user->cost, best.cost);
      if (--c->waiting[c->users[u]] == 0 && !heap_push(c, (candidate){user->cost, user->rule})) return false;
    }
  }
  return true;
}

/* ---- reachability --------------------------------------------------------------------------------------------- */

static bool mark_reachable(weft_grammar *g, uint32_t start, weft_arena *arena) {
  uint32_t *stack = WEFT_NEW_ARRAY(arena, uint32_t, g->rule_names.count);
  if (!stack) return false;
  uint64_t depth = 0;
  stack[depth++] = start;
  g->rules[start].reachable = true;
  while (depth) {
    const rule *r = &g->rules[stack[--depth]];
    for (uint64_t a = r->first; a < r->first + r->count; a++)
      for (uint64_t i = 0; i < g->alternatives[a].item_count; i++) {
        const item *one = &g->alternatives[a].items[i];
        if (one->kind != ITEM_RULE || g->rules[one->number].reachable) continue;
        g->rules[one->number].reachable = true;
        stack[depth++] = one->number;
      }
  }
  return true;
}

/* ---- messages ------------------------------------------------------------------------------------------------- */

/* The names of defined rules; NULL for rules that are only mentioned. */
static const char **defined_rules(const weft_grammar *g, weft_arena *arena) {
  const char **names = WEFT_NEW_ARRAY(arena, const char *, g->rule_names.count);
  for (uint64_t r = 0; names && r < g->rule_names.count; r++)
    names[r] = g->rules[r].count ? g->rule_names.names[r] : NULL;
  return names;
}

static const char **bound_variables(const weft_grammar *g, weft_arena *arena) {
  const char **names = WEFT_NEW_ARRAY(arena, const char *, g->variable_names.count);
  for (uint64_t v = 0; names && v < g->variable_names.count; v++)
    names[v] = g->bound[v] ? g->variable_names.names[v] : NULL;
  return names;
}

/* Looking for the nearest of all names for each of many missing ones would be quadratic. */
enum { HINTED = 20 };

static weft_status report_missing_rules(const weft_grammar *g, weft_arena *arena, weft_diag *diag) {
  const char **names = defined_rules(g, arena);
  if (!names) return weft_error_memory(diag);
  uint64_t missing = 0;
  for (uint64_t r = 0; r < g->rule_names.count; r++) {
    if (g->rules[r].count) continue;
    const char *name = g->rule_names.names[r];
    const char *hint = missing++ < HINTED ? language_nearest_hint(arena, name, names, g->rule_names.count) : NULL;
    weft_error_at(diag, WEFT_INVALID, language_place(g->file, g->rules[r].at), hint, "there is no rule `%s`", name);
  }
  return missing ? WEFT_INVALID : WEFT_OK;
}

static weft_status report_unbound_variables(const weft_grammar *g, weft_arena *arena, weft_diag *diag) {
  const char **names = bound_variables(g, arena);
  if (!names) return weft_error_memory(diag);
  uint64_t missing = 0;
  for (uint64_t v = 0; v < g->variable_names.count; v++) {
    if (g->bound[v]) continue;
    const char *name = g->variable_names.names[v];
    const char *hint = missing++ < HINTED ? language_nearest_hint(arena, name, names, g->variable_names.count) : NULL;
    weft_error_at(diag, WEFT_INVALID, language_place(g->file, g->used[v]), hint, "no `new` binds `%s`", name);
  }
  return missing ? WEFT_INVALID : WEFT_OK;
}

static weft_status report_endless_rules(const weft_grammar *g, weft_diag *diag) {
  weft_status status = WEFT_OK;
  for (uint64_t r = 0; r < g->rule_names.count; r++) {
    if (g->rules[r].cost != COST_NEVER) continue;
    status = weft_error_at(diag, WEFT_INVALID, language_place(g->file, g->rules[r].at),
                           "give it an alternative that does not come back to it", "the rule `%s` can never end",
                           g->rule_names.names[r]);
  }
  return status;
}

static weft_status check(weft_grammar *g, weft_arena *arena, weft_diag *diag) {
  uint32_t start = language_names_find(&g->rule_names, "start", 5);
  if (start == NAME_NONE || !g->rules[start].count)
    return weft_error_at(diag, WEFT_INVALID, (weft_place){.file = g->file}, "the root of a grammar is called `start`",
                         "there is no rule `start`");
  weft_status status = report_missing_rules(g, arena, diag);
  weft_status unbound = report_unbound_variables(g, arena, diag);
  if (status || unbound) return status ? status : unbound;
  costs c = {.grammar = g, .arena = arena};
  if (!find_costs(&c) || !mark_reachable(g, start, arena)) return weft_error_memory(diag);
  status = report_endless_rules(g, diag);
  for (uint64_t r = 0; !status && r < g->rule_names.count; r++)
    if (!g->rules[r].reachable)
      weft_diag_add(diag, WEFT_WARNING, language_place(g->file, g->rules[r].at), NULL,
                    "the rule `%s` is never reached from `start`", g->rule_names.names[r]);
  return status;
}

weft_status grammar_check(weft_grammar *grammar, weft_diag *diag) {
  weft_arena *arena = weft_arena_new();
  if (!arena) return weft_error_memory(diag);
  weft_status status = check(grammar, arena, diag);
  weft_arena_free(arena);
  return status;
}
