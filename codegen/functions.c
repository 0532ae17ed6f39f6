/* Sections that do the same to different tensors share one function: equal layers of a model, above all. */
#include "emit_private.h"

#include <stdlib.h>
#include <string.h>

typedef struct keyed {
  uint64_t hash;
  uint32_t section;
} keyed;

static int by_hash(const void *a, const void *b) {
  const keyed *x = a, *y = b;
  if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
  return x->section < y->section ? -1 : x->section > y->section;
}

static bool same_extents(const weft_chip_code *code, const weft_section_code *a, const weft_section_code *b) {
  for (uint64_t p = 0; p < a->parameter_count; p++) {
    const weft_parameter *x = &code->parameters[a->first_parameter + p], *y = &code->parameters[b->first_parameter + p];
    if (x->kind != y->kind || x->count != y->count) return false;
    if (x->kind == WEFT_PARAMETER_EXTENT && code->values[x->first] != code->values[y->first]) return false;
  }
  return true;
}

static bool same_text(const weft_chip_code *code, const weft_section_code *a, const weft_section_code *b) {
  return a->parameter_count == b->parameter_count && a->name_count == b->name_count &&
         a->text.length == b->text.length && memcmp(a->text.data, b->text.data, a->text.length) == 0 &&
         same_extents(code, a, b);
}

/** By section: the first one with its text. Equal texts stand side by side when sorted by hash. */
static bool find_first(const weft_chip_code *code, weft_arena *arena, uint32_t *first_of) {
  uint64_t count = code->section_count;
  keyed *order = WEFT_NEW_ARRAY(arena, keyed, count);
  if (!order) return false;
  for (uint64_t s = 0; s < count; s++) order[s] = (keyed){code->sections[s].hash, (uint32_t)s};
  if (count) qsort(order, count, sizeof *order, by_hash);
  for (uint64_t i = 0, begin = 0; i < count; i++) {
    if (order[i].hash != order[begin].hash) begin = i;
    uint64_t k = begin;
    while (k < i && !same_text(code, &code->sections[order[k].section], &code->sections[order[i].section])) k++;
    first_of[order[i].section] = k < i ? first_of[order[k].section] : order[i].section;
  }
  return true;
}

/** Parameters that are equal in all sections on all chips are constants of the function. */
static bool find_columns(const weft_chip_code *codes, const uint32_t *chips, uint32_t chip_count, weft_arena *arena,
                         weft_function *function) {
  const weft_chip_code *first = &codes[chips[0]];
  const weft_section_code *model = &first->sections[function->sections[0]];
  function->column_of = WEFT_NEW_ARRAY(arena, int64_t, model->parameter_count);
  if (!function->column_of) return false;
  for (uint64_t p = 0; p < model->parameter_count; p++) {
    const weft_parameter *parameter = &first->parameters[model->first_parameter + p];
    int64_t value = first->values[parameter->first];
    bool varies = parameter->kind == WEFT_PARAMETER_BLOCK;
    for (uint32_t c = 0; c < chip_count && !varies; c++)
      for (uint32_t k = 0; k < function->count && !varies; k++) {
        const weft_chip_code *code = &codes[chips[c]];
        uint64_t at = code->sections[function->sections[k]].first_parameter + p;
        varies = code->values[code->parameters[at].first] != value;
      }
    function->column_of[p] = varies ? (int64_t)function->columns : -1;
    if (varies) function->columns += parameter->count;
  }
  return true;
}

weft_status weft_codegen_group_sections(const weft_chip_code *codes, const uint32_t *chips, uint32_t chip_count,
                                        weft_arena *arena, weft_function **functions, uint32_t *count,
                                        uint32_t **function_of, weft_diag *diag) {
  const weft_chip_code *first = &codes[chips[0]];
  uint64_t sections = first->section_count;
  uint32_t *first_of = WEFT_NEW_ARRAY(arena, uint32_t, sections), *members = WEFT_NEW_ARRAY(arena, uint32_t, sections);
  *functions = WEFT_NEW_ARRAY(arena, weft_function, sections);
  *function_of = WEFT_NEW_ARRAY(arena, uint32_t, sections);
  *count = 0;
  if (!first_of || !members || !*functions || !*function_of || !find_first(first, arena, first_of))
    return weft_error_memory(diag);
  for (uint64_t s = 0; s < sections; s++) {
    if (first_of[s] == s) (*function_of)[s] = (*count)++;
    (*function_of)[s] = (*function_of)[first_of[s]];
    (*functions)[(*function_of)[s]].count++;
  }
  for (uint32_t f = 0, at = 0; f < *count; f++) {
    (*functions)[f].sections = members + at;
    at += (*functions)[f].count;
    (*functions)[f].count = 0;
  }
  for (uint64_t s = 0; s < sections; s++) {
    weft_function *function = &(*functions)[(*function_of)[s]];
    function->sections[function->count++] = (uint32_t)s;
  }
  for (uint32_t f = 0; f < *count; f++)
    if (!find_columns(codes, chips, chip_count, arena, &(*functions)[f])) return weft_error_memory(diag);
  return WEFT_OK;
}
