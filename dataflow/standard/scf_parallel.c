/* The parallel forms of scf: read so that passes can refuse them by name, and printed in generic form. */
#include "standard_private.h"

static const weft_mlir_type *index_type(weft_mlir_parser *p) { return weft_mlir_index(weft_mlir_parser_context(p)); }

/* (%i, %j): arguments of type index. */
static bool parse_indices(weft_mlir_parser *p, weft_mlir_argument **arguments, uint32_t *count) {
  uint64_t capacity = 0, used = 0;
  *arguments = NULL;
  if (!weft_mlir_expect(p, "(")) return false;
  do {
    if (!weft_arena_grow(weft_mlir_parser_scratch(p), arguments, used, &capacity, sizeof **arguments))
      return weft_mlir_fail(p, "out of memory");
    if (!weft_mlir_parse_argument(p, false, &(*arguments)[used])) return false;
    (*arguments)[used++].type = index_type(p);
  } while (weft_mlir_try(p, ","));
  *count = (uint32_t)used;
  return weft_mlir_expect(p, ")");
}

static bool parse_operand_list(weft_mlir_parser *p, weft_mlir_state *state, uint32_t wanted) {
  weft_mlir_operand *operands;
  uint32_t count;
  if (!weft_mlir_expect(p, "(") || !weft_mlir_parse_operands(p, &operands, &count) || !weft_mlir_expect(p, ")"))
    return false;
  if (count != wanted) return weft_mlir_fail(p, "%u values for %u dimensions", count, wanted);
  for (uint32_t i = 0; i < count; i++)
    if (!weft_mlir_add_operand(p, state, operands[i], index_type(p))) return false;
  return true;
}

static bool add_segments(weft_mlir_parser *p, weft_mlir_state *state, const int64_t *sizes) {
  return weft_mlir_add_attribute(p, state, "operandSegmentSizes",
                                 weft_mlir_dense_array(weft_mlir_parser_context(p), 32, sizes, 4));
}

bool standard_parse_parallel(weft_mlir_parser *p, weft_mlir_state *state) {
  weft_mlir_argument *arguments;
  weft_mlir_operand *inits = NULL;
  const weft_mlir_type **types;
  uint32_t count, init_count = 0, type_count = 0;
  if (!parse_indices(p, &arguments, &count) || !weft_mlir_expect(p, "=") || !parse_operand_list(p, state, count) ||
      !weft_mlir_expect(p, "to") || !parse_operand_list(p, state, count) || !weft_mlir_expect(p, "step") ||
      !parse_operand_list(p, state, count))
    return false;
  if (weft_mlir_try(p, "init") &&
      (!weft_mlir_expect(p, "(") || !weft_mlir_parse_operands(p, &inits, &init_count) || !weft_mlir_expect(p, ")")))
    return false;
  if (weft_mlir_try(p, "->") && !weft_mlir_parse_results(p, &types, &type_count)) return false;
  if (init_count != type_count)
    return weft_mlir_fail(p, "%u result types for %u initial values", type_count, init_count);
  for (uint32_t i = 0; i < init_count; i++)
    if (!weft_mlir_add_operand(p, state, inits[i], types[i]) || !weft_mlir_add_result(p, state, types[i])) return false;
  return add_segments(p, state, (int64_t[]){count, count, count, init_count}) &&
         weft_mlir_parse_region(p, state, arguments, count) && weft_mlir_parse_attr_dict(p, state);
}

bool standard_parse_reduce(weft_mlir_parser *p, weft_mlir_state *state) {
  weft_mlir_operand *operands;
  const weft_mlir_type **types;
  uint32_t count, type_count;
  if (weft_mlir_try(p, "(")) {
    if (!weft_mlir_parse_operands(p, &operands, &count) || !weft_mlir_expect(p, ":") ||
        !weft_mlir_parse_types(p, &types, &type_count) || !weft_mlir_expect(p, ")"))
      return false;
    if (count != type_count) return weft_mlir_fail(p, "%u types for %u values", type_count, count);
    for (uint32_t i = 0; i < count; i++)
      if (!weft_mlir_add_operand(p, state, operands[i], types[i])) return false;
  }
  if (weft_mlir_at(p, "{")) do {
      if (!weft_mlir_parse_region(p, state, NULL, 0)) return false;
    } while (weft_mlir_try(p, ","));
  return true;
}

/* Bounds of a forall: numbers or values, (...) each. */
typedef struct mixed {
  int64_t numbers[16];
  uint32_t count, dynamic;
} mixed;

static bool parse_mixed(weft_mlir_parser *p, weft_mlir_state *state, mixed *m) {
  if (!weft_mlir_expect(p, "(")) return false;
  do {
    if (m->count == 16) return weft_mlir_fail(p, "more than 16 dimensions");
    weft_mlir_operand operand;
    if (weft_mlir_at_operand(p)) {
      if (!weft_mlir_parse_operand(p, &operand) || !weft_mlir_add_operand(p, state, operand, index_type(p)))
        return false;
      m->numbers[m->count++] = WEFT_MLIR_DYNAMIC;
      m->dynamic++;
    } else if (!weft_mlir_parse_integer(p, &m->numbers[m->count++])) {
      return false;
    }
  } while (weft_mlir_try(p, ","));
  return weft_mlir_expect(p, ")");
}

static bool add_numbers(weft_mlir_parser *p, weft_mlir_state *state, const char *name, const mixed *m) {
  return weft_mlir_add_attribute(p, state, name,
                                 weft_mlir_dense_array(weft_mlir_parser_context(p), 64, m->numbers, m->count));
}

bool standard_parse_forall(weft_mlir_parser *p, weft_mlir_state *state) {
  weft_mlir_argument *arguments;
  uint32_t count;
  mixed lower = {.count = 0}, upper = {.count = 0}, step = {.count = 0};
  if (!parse_indices(p, &arguments, &count)) return false;
  if (weft_mlir_try(p, "in")) {
    if (!parse_mixed(p, state, &upper)) return false;
    lower.count = step.count = upper.count;
    for (uint32_t i = 0; i < upper.count; i++) step.numbers[i] = 1;
  } else if (!weft_mlir_expect(p, "=") || !parse_mixed(p, state, &lower) || !weft_mlir_expect(p, "to") ||
             !parse_mixed(p, state, &upper) || !weft_mlir_expect(p, "step") || !parse_mixed(p, state, &step)) {
    return false;
  }
  if (lower.count != count || upper.count != count || step.count != count)
    return weft_mlir_fail(p, "the bounds are not %u each", count);
  if (weft_mlir_at(p, "shared_outs"))
    return weft_mlir_fail(p, "shared_outs is not supported in this form; write the op in generic form");
  return add_numbers(p, state, "staticLowerBound", &lower) && add_numbers(p, state, "staticUpperBound", &upper) &&
         add_numbers(p, state, "staticStep", &step) &&
         add_segments(p, state, (int64_t[]){lower.dynamic, upper.dynamic, step.dynamic, 0}) &&
         weft_mlir_parse_region(p, state, arguments, count) && weft_mlir_parse_attr_dict(p, state);
}

bool standard_parse_in_parallel(weft_mlir_parser *p, weft_mlir_state *state) {
  static weft_mlir_argument none;
  return weft_mlir_parse_region(p, state, &none, 0);
}

bool standard_parse_execute_region(weft_mlir_parser *p, weft_mlir_state *state) {
  const weft_mlir_type **types;
  uint32_t count = 0;
  if (weft_mlir_try(p, "->") && !weft_mlir_parse_results(p, &types, &count)) return false;
  for (uint32_t i = 0; i < count; i++)
    if (!weft_mlir_add_result(p, state, types[i])) return false;
  if (weft_mlir_try(p, "no_inline") &&
      !weft_mlir_add_attribute(p, state, "no_inline", weft_mlir_unit(weft_mlir_parser_context(p))))
    return false;
  return weft_mlir_parse_region(p, state, NULL, 0) && weft_mlir_parse_attr_dict(p, state);
}
