/* Value names while reading: what each stands for, scopes, and uses above the definition. */
#include "internal.h"

#include <stdlib.h>

/* A name %123 below this bound is its own number; others go through the table. */
static uint64_t numbered_bound(const weft_mlir_parser *p) { return (uint64_t)(p->lexer.end - p->begin) / 8 + 1024; }

static bool decimal(const token *t, uint64_t bound, uint32_t *number) {
  if (t->length < 2 || t->length > 10 || (t->start[1] == '0' && t->length > 2)) return false;
  uint64_t value = 0;
  for (uint32_t i = 1; i < t->length; i++) {
    char c = t->start[i];
    if (c < '0' || c > '9') return false;
    value = value * 10 + (uint64_t)(c - '0');
  }
  *number = (uint32_t)value;
  return value < bound;
}

static bool grow_slots(weft_mlir_parser *p) {
  uint64_t capacity = p->slot_capacity ? p->slot_capacity * 2 : 256;
  uint32_t *slots = calloc(capacity, sizeof *slots);
  if (!slots) return false;
  for (uint64_t i = 0; i < p->name_count; i++) {
    uint64_t at = p->names[i].hash & (capacity - 1);
    while (slots[at]) at = (at + 1) & (capacity - 1);
    slots[at] = (uint32_t)i + 1;
  }
  free(p->slots);
  p->slots = slots;
  p->slot_capacity = capacity;
  return true;
}

static bool new_name(weft_mlir_parser *p, const token *t, uint32_t hash, uint32_t *index) {
  uint64_t bindings = p->name_count;
  if (!weft_arena_grow(p->scratch, &p->names, p->name_count, &p->name_capacity, sizeof *p->names) ||
      !weft_arena_grow(p->scratch, &p->bindings, bindings, &p->binding_capacity, sizeof *p->bindings))
    return parser_memory(p);
  p->names[p->name_count] = (value_name){t->start, t->length, hash};
  *index = (uint32_t)p->name_count++;
  p->bindings[*index] = (binding){0};
  return true;
}

bool parser_value_name(weft_mlir_parser *p, const token *t, uint32_t *name) {
  uint64_t bound = p->numbered_count;
  if (decimal(t, bound, name)) return true;
  uint32_t hash = (uint32_t)mlir_hash(t->start, t->length);
  if (3 * (p->name_count + 1) > 2 * p->slot_capacity && !grow_slots(p)) return parser_memory(p);
  uint64_t at = hash & (p->slot_capacity - 1);
  uint32_t index = 0;
  for (; p->slots[at]; at = (at + 1) & (p->slot_capacity - 1)) {
    index = p->slots[at] - 1;
    const value_name *n = &p->names[index];
    if (n->hash == hash && n->length == t->length && memcmp(n->text, t->start, t->length) == 0) {
      *name = (uint32_t)bound + index;
      return true;
    }
  }
  if (!new_name(p, t, hash, &index)) return false;
  p->slots[at] = index + 1;
  *name = (uint32_t)bound + index;
  return true;
}

bool parser_values_begin(weft_mlir_parser *p) {
  p->numbered_count = numbered_bound(p);
  p->numbered = calloc(p->numbered_count, sizeof *p->numbered);
  return p->numbered || parser_memory(p);
}

void parser_values_end(weft_mlir_parser *p) {
  free(p->numbered);
  free(p->slots);
}

binding *parser_binding(weft_mlir_parser *p, uint32_t name) {
  return name < p->numbered_count ? &p->numbered[name] : &p->bindings[name - p->numbered_count];
}

/* The name as it was written, for messages. */
static const char *spelling(weft_mlir_parser *p, uint32_t name) {
  const char *text;
  if (name < p->numbered_count) {
    text = weft_arena_printf(p->scratch, "%%%u", name);
  } else {
    const value_name *n = &p->names[name - p->numbered_count];
    text = weft_arena_string(p->scratch, n->text, n->length);
  }
  return text ? text : "%";
}

static const char *type_spelling(weft_mlir_parser *p, const weft_mlir_type *type) {
  weft_text text = {0};
  weft_mlir_type_text(type, &text);
  const char *copy = text.failed ? "?" : weft_arena_string(p->scratch, text.data, text.length);
  weft_text_free(&text);
  return copy ? copy : "?";
}

/* Fills the slots that waited for `f`, when its type is the value's. */
static bool settle(weft_mlir_parser *p, uint32_t name, const forward *f, weft_mlir_value *value) {
  if (f->value.type != value->type)
    return parser_fail_at(p, f->line, p->begin + f->offset,
                          "%s is used here as %s, but its definition in line %u makes it %s", spelling(p, name),
                          type_spelling(p, f->value.type), p->token.line, type_spelling(p, value->type));
  for (const forward_slot *s = f->slots; s; s = s->next) *s->slot = value;
  p->open_forwards--;
  return true;
}

static bool settle_all(weft_mlir_parser *p, uint32_t name, binding *b, weft_mlir_value *values, uint32_t count) {
  for (forward **link = &b->forward; *link;) {
    forward *f = *link;
    if (f->floor != p->floor || f->scope < p->scope) {
      link = &f->next;
      continue;
    }
    if (f->number >= count)
      return parser_fail_at(p, f->line, p->begin + f->offset, "%s has %u results, result #%u is used here",
                            spelling(p, name), count, f->number);
    if (!settle(p, name, f, &values[f->number])) return false;
    *link = f->next;
  }
  return true;
}

bool parser_define(weft_mlir_parser *p, uint32_t name, uint32_t line, const char *at, weft_mlir_value *values,
                   uint32_t count) {
  binding *b = parser_binding(p, name);
  if (b->values && b->scope >= p->floor)
    return parser_fail_at(p, line, at, "%s is defined a second time; give this value another name", spelling(p, name));
  if (b->forward && !settle_all(p, name, b, values, count)) return false;
  if (p->undo_count == p->undo_capacity &&
      !weft_arena_grow(p->scratch, &p->undos, p->undo_count, &p->undo_capacity, sizeof *p->undos))
    return parser_memory(p);
  p->undos[p->undo_count++] = (undo){b->values, name, b->count, b->scope};
  b->values = values;
  b->count = count;
  b->scope = p->scope;
  return true;
}

static weft_mlir_value *use_forward(weft_mlir_parser *p, weft_mlir_operand use, binding *b,
                                    const weft_mlir_type *type) {
  uint32_t number = use.number == UINT32_MAX ? 0 : use.number;
  for (forward *f = b->forward; f; f = f->next)
    if (f->number == number && f->floor == p->floor) {
      if (f->value.type == type) {
        if (p->scope < f->scope) f->scope = p->scope;
        return &f->value;
      }
      parser_fail_at(p, use.line, p->begin + use.offset, "%s is used here as %s, and as %s in line %u",
                     spelling(p, use.name), type_spelling(p, type), type_spelling(p, f->value.type), f->line);
      return NULL;
    }
  forward *f = WEFT_NEW(p->scratch, forward);
  if (!f) {
    parser_memory(p);
    return NULL;
  }
  *f = (forward){.next = b->forward,
                 .number = number,
                 .line = use.line,
                 .offset = use.offset,
                 .floor = p->floor,
                 .scope = p->scope};
  f->value = (weft_mlir_value){.type = type, .owner = f, .mark = MARK_FORWARD};
  b->forward = f;
  p->open_forwards++;
  return &f->value;
}

weft_mlir_value *parser_use(weft_mlir_parser *p, weft_mlir_operand use, const weft_mlir_type *type) {
  binding *b = parser_binding(p, use.name);
  if (!b->values || b->scope < p->floor) return use_forward(p, use, b, type);
  uint32_t number = use.number == UINT32_MAX ? 0 : use.number;
  if (number >= b->count) {
    parser_fail_at(p, use.line, p->begin + use.offset, "%s has %u results, there is no #%u", spelling(p, use.name),
                   b->count, number);
    return NULL;
  }
  if (use.number == UINT32_MAX && b->count > 1) {
    parser_fail_at(p, use.line, p->begin + use.offset, "%s stands for %u results; say which, as in %s#0",
                   spelling(p, use.name), b->count, spelling(p, use.name));
    return NULL;
  }
  weft_mlir_value *value = &b->values[number];
  if (value->type == type) return value;
  parser_fail_at(p, use.line, p->begin + use.offset, "%s has type %s, expected %s", spelling(p, use.name),
                 type_spelling(p, value->type), type_spelling(p, type));
  return NULL;
}

/* Remembers the operand slots that point at placeholders. */
bool parser_keep_slots(weft_mlir_parser *p, weft_mlir_op *op) {
  for (uint32_t i = 0; i < op->operand_count; i++) {
    weft_mlir_value *value = op->operands[i];
    if (value->mark != MARK_FORWARD) continue;
    forward *f = value->owner;
    forward_slot *slot = WEFT_NEW(p->scratch, forward_slot);
    if (!slot) return parser_memory(p);
    *slot = (forward_slot){f->slots, &op->operands[i]};
    f->slots = slot;
  }
  return true;
}

bool parser_scope_begin(weft_mlir_parser *p) {
  p->scope++;
  return true;
}

void parser_scope_end(weft_mlir_parser *p, uint64_t undo_base) {
  while (p->undo_count > undo_base) {
    const undo *u = &p->undos[--p->undo_count];
    binding *b = parser_binding(p, u->name);
    b->values = u->values;
    b->count = u->count;
    b->scope = u->scope;
  }
  p->scope--;
}

static const forward *earlier(const weft_mlir_parser *p, const forward *best, const forward *f) {
  for (; f; f = f->next)
    if (f->floor == p->floor && (!best || f->offset < best->offset)) best = f;
  return best;
}

/* At the end of an isolated region nothing may be left that was used and not defined. */
bool parser_forwards_settled(weft_mlir_parser *p, uint64_t before) {
  if (p->open_forwards <= before) return true;
  const forward *first = NULL;
  uint32_t name = 0;
  for (uint64_t i = 0; i < p->numbered_count + p->name_count; i++) {
    const forward *best = earlier(p, first, parser_binding(p, (uint32_t)i)->forward);
    if (best != first) name = (uint32_t)i;
    first = best;
  }
  return first
             ? parser_fail_at(p, first->line, p->begin + first->offset, "%s is used but not defined", spelling(p, name))
             : true;
}
