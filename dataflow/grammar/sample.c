/* Sampling: rules expand from the left on a stack of frames of their own, so that depth costs memory and not the
 * thread's stack. */
#include "sample_private.h"

#include <inttypes.h>
#include <string.h>

/* ---- variables ------------------------------------------------------------------------------------------------ */

static bool bind(sampler *s, uint32_t variable, scalar value) {
  if (!weft_arena_grow(s->arena, &s->bindings, s->bound, &s->binding_capacity, sizeof *s->bindings))
    return sampler_no_memory(s);
  s->bindings[s->bound++] = (binding){.value = value, .variable = variable, .hidden = s->current[variable]};
  s->current[variable] = s->bound;
  return true;
}

static void unbind_to(sampler *s, uint64_t bound) {
  while (s->bound > bound) {
    const binding *b = &s->bindings[--s->bound];
    s->current[b->variable] = b->hidden;
  }
}

static bool add_to(sampler *s, const item *one, scalar value) {
  uint64_t number = s->current[one->number];
  if (!number)
    return sampler_fail(s, one->at, "its `new` must stand in this rule or in one that leads here",
                        "`%s` is not bound here", s->grammar->variable_names.names[one->number]);
  scalar sum;
  if (!sampler_add(s, one->at, s->bindings[number - 1].value, value, &sum)) return false;
  s->bindings[number - 1].value = sum;
  return true;
}

/* ---- choices -------------------------------------------------------------------------------------------------- */

/* Adds the values of the variables in a guard to a message, each once at most for a short list. */
static void describe_guard(sampler *s, const expression *e, weft_text *text) {
  if (e->kind == EXPRESSION_VARIABLE && s->current[e->variable] && text->length < 200) {
    const scalar *value = &s->bindings[s->current[e->variable] - 1].value;
    const char *name = s->grammar->variable_names.names[e->variable];
    weft_text one = {0};
    if (value->text)
      weft_text_printf(&one, "%s is '%.20s'", name, value->text);
    else
      weft_text_printf(&one, "%s is %" PRId64, name, value->integer);
    if (one.data && (!text->data || !strstr(text->data, one.data)))
      weft_text_printf(text, "%s%s", text->length ? ", " : "", one.data);
    weft_text_free(&one);
  }
  for (uint32_t i = 0; i < e->count; i++) describe_guard(s, e->parts[i], text);
}

static bool fail_closed(sampler *s, const rule *r, uint32_t number) {
  weft_text values = {0};
  for (uint64_t a = r->first; a < r->first + r->count && a < r->first + 20; a++)
    describe_guard(s, s->grammar->alternatives[a].guard, &values);
  sampler_fail(s, r->at, "the guards of a rule must cover every case that occurs",
               "no alternative of `%s` has a true guard%s%s", s->grammar->rule_names.names[number],
               values.length ? ": " : "", values.data ? values.data : "");
  weft_text_free(&values);
  return false;
}

/* Puts the alternatives whose guards are true into s->open. */
static bool find_open(sampler *s, const rule *r, uint64_t *count) {
  *count = 0;
  for (uint64_t a = r->first; a < r->first + r->count; a++) {
    const alternative *one = &s->grammar->alternatives[a];
    bool is_open = true;
    if (one->guard && !sampler_test(s, one->guard, &is_open)) return false;
    if (!is_open) continue;
    if (!weft_arena_grow(s->arena, &s->open, *count, &s->open_capacity, sizeof *s->open)) return sampler_no_memory(s);
    s->open[(*count)++] = one;
  }
  return true;
}

/* Keeps the cheapest of the open alternatives. */
static uint64_t keep_cheapest(sampler *s, uint64_t count) {
  uint64_t least = COST_NEVER, kept = 0;
  for (uint64_t i = 0; i < count; i++) least = weft_min_u64(least, s->open[i]->cost);
  for (uint64_t i = 0; i < count; i++)
    if (s->open[i]->cost == least) s->open[kept++] = s->open[i];
  return kept;
}

static bool choose(sampler *s, uint32_t number, const alternative **taken) {
  const rule *r = &s->grammar->rules[number];
  uint64_t count;
  if (!sampler_work(s, r->at, r->count)) return false;
  if (!find_open(s, r, &count)) return false;
  if (!count) return fail_closed(s, r, number);
  bool tired = s->depth >= s->options.soft_depth || s->expansions >= s->options.soft_size;
  if (count > 1 && tired) count = keep_cheapest(s, count);
  *taken = s->open[count > 1 ? sampler_draw(s, count) : 0];
  if (s->options.hits) s->options.hits[*taken - s->grammar->alternatives]++;
  return true;
}

static bool expand(sampler *s, uint32_t number, position at) {
  if (s->depth >= WEFT_GRAMMAR_MAX_DEPTH)
    return sampler_fail(s, at, "a guard must stop the rules that come back to themselves", "rules are %d levels deep",
                        WEFT_GRAMMAR_MAX_DEPTH);
  uint64_t bound = s->bound;
  const alternative *taken;
  if (!choose(s, number, &taken)) return false;
  if (!weft_arena_grow(s->arena, &s->frames, s->depth, &s->frame_capacity, sizeof *s->frames))
    return sampler_no_memory(s);
  s->frames[s->depth++] = (frame){.taken = taken, .bound = bound};
  s->expansions++;
  return true;
}

/* ---- items ---------------------------------------------------------------------------------------------------- */

static bool append(sampler *s, position at, const char *bytes, size_t length) {
  if (s->text->length - s->text_start + length > WEFT_GRAMMAR_MAX_BYTES)
    return sampler_fail(s, at, "a guard must stop the rules that come back to themselves", "the text passes %llu bytes",
                        (unsigned long long)WEFT_GRAMMAR_MAX_BYTES);
  weft_text_append(s->text, bytes, length);
  return !s->text->failed || sampler_no_memory(s);
}

static bool print(sampler *s, const item *one) {
  scalar value;
  if (!sampler_evaluate(s, one->value, &value)) return false;
  if (value.text) return append(s, one->at, value.text, value.length);
  weft_text_i64(s->text, value.integer);
  return append(s, one->at, "", 0);
}

static bool perform_new(sampler *s, const item *one) {
  scalar value;
  if (!sampler_evaluate(s, one->value, &value)) return false;
  if (s->pinned[one->number]) value = (scalar){.integer = *s->pinned[one->number]};
  return bind(s, one->number, value);
}

static bool perform(sampler *s, const item *one) {
  if (!sampler_work(s, one->at, 1)) return false;
  scalar value;
  switch (one->kind) {
  case ITEM_TEXT: return append(s, one->at, one->text, one->length);
  case ITEM_RULE: return expand(s, one->number, one->at);
  case ITEM_PRINT: return print(s, one);
  case ITEM_NEW: return perform_new(s, one);
  case ITEM_ADD: return sampler_evaluate(s, one->value, &value) && add_to(s, one, value);
  }
  return false;
}

static bool run(sampler *s, uint32_t start) {
  if (!expand(s, start, s->grammar->rules[start].at)) return false;
  while (s->depth) {
    frame *top = &s->frames[s->depth - 1];
    if (top->next < top->taken->item_count) {
      if (!perform(s, &top->taken->items[top->next++])) return false;
    } else {
      unbind_to(s, top->bound);
      s->depth--;
    }
  }
  return true;
}

/* ---- options -------------------------------------------------------------------------------------------------- */

static weft_status find_start(const sampler *s, uint32_t *start) {
  const name_table *names = &s->grammar->rule_names;
  const char *name = s->options.start ? s->options.start : "start";
  *start = language_names_find(names, name, strlen(name));
  if (*start != NAME_NONE) return WEFT_OK;
  const char *hint = language_nearest_hint(s->arena, name, names->names, names->count);
  return weft_error(s->diag, WEFT_USAGE, hint, "the grammar has no rule `%s`", name);
}

static weft_status set_pins(sampler *s) {
  const name_table *names = &s->grammar->variable_names;
  s->current = WEFT_NEW_ARRAY(s->arena, uint64_t, names->count);
  s->pinned = WEFT_NEW_ARRAY(s->arena, const int64_t *, names->count);
  if (!s->current || !s->pinned) return weft_error_memory(s->diag);
  for (uint64_t i = 0; i < s->options.pin_count; i++) {
    const weft_grammar_pin *pin = &s->options.pins[i];
    uint32_t number = language_names_find(names, pin->name, strlen(pin->name));
    if (number == NAME_NONE) {
      const char *hint = language_nearest_hint(s->arena, pin->name, names->names, names->count);
      return weft_error(s->diag, WEFT_USAGE, hint, "the grammar has no variable `%s`", pin->name);
    }
    s->pinned[number] = &pin->value;
  }
  return WEFT_OK;
}

weft_status weft_grammar_sample(const weft_grammar *grammar, const weft_grammar_options *options, weft_text *text,
                                weft_diag *diag) {
  sampler s = {.grammar = grammar, .options = *options, .diag = diag, .text = text, .random = options->seed};
  s.text_start = text->length;
  s.arena = weft_arena_new();
  if (!s.arena) return weft_error_memory(diag);
  if (!s.options.soft_depth) s.options.soft_depth = WEFT_GRAMMAR_SOFT_DEPTH;
  if (!s.options.soft_size) s.options.soft_size = WEFT_GRAMMAR_SOFT_SIZE;
  uint32_t start;
  weft_status status = find_start(&s, &start);
  if (!status) status = set_pins(&s);
  if (!status && !run(&s, start)) status = s.status;
  if (status && text->data) text->data[text->length = s.text_start] = '\0';
  weft_arena_free(s.arena);
  return status;
}
