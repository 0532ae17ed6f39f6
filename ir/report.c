/* How a fault is said: as a message with its tensor, stage and section, and as a JSON object. */
#include "validate_private.h"

#include <inttypes.h>
#include <string.h>

typedef struct row {
  const char *name, *keys, *message, *remedy, *manual;
} row;

static const row rows[] = {
#define WEFT_ROW(identifier, name, keys, message, remedy, manual) {name, keys, message, remedy, manual},
    WEFT_VIOLATIONS(WEFT_ROW) WEFT_OWN_VIOLATIONS(WEFT_ROW)
#undef WEFT_ROW
};

bool weft_check_out_of_memory(check *c) {
  c->failed = true;
  c->stop = true;
  return false;
}

void *weft_check_array(check *c, uint64_t count, size_t size) {
  void *array = weft_arena_array(c->arena, count, size);
  if (!array) weft_check_out_of_memory(c);
  return array;
}

/* ---- words ---- */

static void put_named(weft_text *out, const char *what, uint64_t id, const char *name) {
  weft_text_printf(out, "%s %" PRIu64, what, id);
  if (!name) return;
  weft_text_puts(out, " \"");
  weft_text_c_string(out, name);
  weft_text_puts(out, "\"");
}

static void put_section(weft_text *out, const weft_program *p, uint64_t index) {
  put_named(out, "section", index, index < p->section_count ? p->sections[index].name : NULL);
}

static void put_in_section(weft_text *out, const weft_program *p, weft_ir_span_of span_of, uint64_t id) {
  uint64_t index = p->section_count ? weft_ir_section_holding(p, span_of, id) : UINT64_MAX;
  if (index == UINT64_MAX) return;
  weft_text_puts(out, " of ");
  put_section(out, p, index);
}

static void put_edge(weft_text *out, const weft_program *p, uint64_t id) {
  put_named(out, "edge", id, NULL);
  if (id >= p->edge_count) return;
  const weft_edge *e = &p->edges[id];
  if (e->from < p->stage_count) {
    weft_text_puts(out, " from ");
    put_named(out, "stage", e->from, p->stages[e->from].name);
  }
  put_in_section(out, p, weft_ir_edges_of, id);
}

static void put_id_in_words(weft_text *out, const weft_program *p, fact_kind kind, uint64_t id) {
  switch (kind) {
  case FACT_TENSOR: put_named(out, "tensor", id, id < p->tensor_count ? p->tensors[id].name : NULL); break;
  case FACT_STAGE:
    put_named(out, "stage", id, id < p->stage_count ? p->stages[id].name : NULL);
    put_in_section(out, p, weft_ir_stages_of, id);
    break;
  case FACT_BUFFER:
    put_named(out, "buffer", id, id < p->buffer_count ? p->buffers[id].name : NULL);
    put_in_section(out, p, weft_ir_buffers_of, id);
    break;
  case FACT_EDGE: put_edge(out, p, id); break;
  case FACT_GROUP: put_named(out, "group", id, NULL); break;
  case FACT_SEMAPHORE:
    put_named(out, "semaphore", id, NULL);
    put_in_section(out, p, weft_ir_semaphores_of, id);
    break;
  case FACT_ITEM:
    put_named(out, "work item", id, NULL);
    put_in_section(out, p, weft_ir_items_of, id);
    break;
  case FACT_SECTION: put_section(out, p, id); break;
  case FACT_TRIP: put_named(out, "trip", id, NULL); break;
  case FACT_LINK: put_named(out, "link point", id, NULL); break;
  default: weft_text_u64(out, id); break;
  }
}

static void put_in_words(weft_text *out, const weft_program *p, const fact *f) {
  switch (f->kind) {
  case FACT_TEXT: weft_text_puts(out, f->text); break;
  case FACT_PAIR: weft_text_printf(out, "%" PRIu64 " x %" PRIu64, f->pair.first, f->pair.second); break;
  case FACT_SITE:
    weft_text_printf(out, "site (%u, %u)", (unsigned)f->site.x, (unsigned)f->site.y);
    if (f->site.chip) weft_text_printf(out, " of chip %u", (unsigned)f->site.chip);
    break;
  case FACT_ENGINE:
    if (f->engine.compute)
      weft_text_puts(out, "Compute");
    else
      weft_text_printf(out, "Movement %u", (unsigned)f->engine.movement);
    break;
  case FACT_NOTHING: weft_text_puts(out, "nothing"); break;
  default: put_id_in_words(out, p, f->kind, f->number); break;
  }
}

/* ---- JSON ---- */

static void put_as_json(weft_text *out, const fact *f) {
  switch (f->kind) {
  case FACT_TEXT: weft_text_json_string(out, f->text); break;
  case FACT_PAIR: weft_text_printf(out, "[%" PRIu64 ",%" PRIu64 "]", f->pair.first, f->pair.second); break;
  case FACT_SITE:
    weft_text_printf(out, "{\"x\":%u,\"y\":%u", (unsigned)f->site.x, (unsigned)f->site.y);
    if (f->site.chip) weft_text_printf(out, ",\"chip\":%u", (unsigned)f->site.chip);
    weft_text_puts(out, "}");
    break;
  case FACT_ENGINE:
    if (f->engine.compute)
      weft_text_puts(out, "\"Compute\"");
    else
      weft_text_printf(out, "{\"Movement\":%u}", (unsigned)f->engine.movement);
    break;
  case FACT_NOTHING: weft_text_puts(out, "null"); break;
  default: weft_text_u64(out, f->number); break;
  }
}

/* The next of the keys after `*at`; false at their end. */
static bool next_key(const char **at, size_t *length) {
  while (**at == ' ') ++*at;
  *length = strcspn(*at, " ");
  return *length != 0;
}

static void put_object(weft_text *out, const row *r, const fact *facts, unsigned count) {
  weft_text_printf(out, "{\"%s\":{", r->name);
  const char *key = r->keys;
  size_t length;
  for (unsigned i = 0; i < count && next_key(&key, &length) && *key != '|'; i++, key += length) {
    weft_text_printf(out, "%s\"%.*s\":", i ? "," : "", (int)length, key);
    put_as_json(out, &facts[i]);
  }
  weft_text_puts(out, "}}\n");
}

/* ---- reports ---- */

static const fact *fact_of(const row *r, const fact *facts, unsigned count, const char *name, size_t name_length) {
  const char *key = r->keys;
  size_t length;
  for (unsigned i = 0; next_key(&key, &length); key += length) {
    if (*key == '|') continue;
    if (length == name_length && memcmp(key, name, length) == 0) return i < count ? &facts[i] : NULL;
    i++;
  }
  return NULL;
}

/* The sentence with each {key} replaced. */
static void put_sentence(weft_text *out, const check *c, const row *r, const char *sentence, const fact *facts,
                         unsigned count) {
  while (*sentence) {
    size_t plain = strcspn(sentence, "{");
    weft_text_append(out, sentence, plain);
    sentence += plain;
    if (!*sentence) break;
    size_t length = strcspn(sentence, "}");
    const fact *f = fact_of(r, facts, count, sentence + 1, length - 1);
    if (f) put_in_words(out, c->program, f);
    sentence += length + (sentence[length] == '}');
  }
}

bool weft_check_report(check *c, weft_violation violation, const fact *facts, unsigned count) {
  if (c->stop) return false;
  const row *r = &rows[violation];
  weft_text message = {0};
  weft_text hint = {0};
  put_sentence(&message, c, r, r->message, facts, count);
  put_sentence(&hint, c, r, r->remedy, facts, count);
  weft_text_printf(&hint, " (docs/validation.md, %s)", r->manual);
  if (message.failed || hint.failed)
    weft_check_out_of_memory(c);
  else
    weft_error(c->diag, WEFT_INVALID, hint.data, "%s: %s", r->name, message.data);
  if (c->json) put_object(c->json, r, facts, count);
  weft_text_free(&message);
  weft_text_free(&hint);
  c->found++;
  if (c->found == c->limit) c->stop = true;
  return !c->stop;
}
