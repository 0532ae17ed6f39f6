/* Reading ops in both forms. */
#include "internal.h"

/* ---- what an op is put together from -------------------------------------------------------------------------- */

bool parser_push_operand(weft_mlir_parser *p, weft_mlir_state *state, weft_mlir_value *value) {
  if (!value) return false;
  if (p->operand_count == p->operand_capacity &&
      !weft_arena_grow(p->scratch, &p->operand_stack, p->operand_count, &p->operand_capacity, sizeof *p->operand_stack))
    return parser_memory(p);
  p->operand_stack[p->operand_count++] = value;
  state->operand_count++;
  return true;
}

bool parser_push_type(weft_mlir_parser *p, weft_mlir_state *state, const weft_mlir_type *type) {
  if (p->type_count == p->type_capacity &&
      !weft_arena_grow(p->scratch, &p->type_stack, p->type_count, &p->type_capacity, sizeof *p->type_stack))
    return parser_memory(p);
  p->type_stack[p->type_count++] = type;
  state->result_count++;
  return true;
}

bool weft_mlir_add_operand(weft_mlir_parser *p, weft_mlir_state *state, weft_mlir_operand operand,
                           const weft_mlir_type *type) {
  return parser_push_operand(p, state, parser_use(p, operand, type));
}

bool weft_mlir_add_result(weft_mlir_parser *p, weft_mlir_state *state, const weft_mlir_type *type) {
  return parser_push_type(p, state, type);
}

bool weft_mlir_add_attribute(weft_mlir_parser *p, weft_mlir_state *state, const char *name,
                             const weft_mlir_attribute *value) {
  if (!value) return parser_memory(p);
  if (!weft_arena_grow(p->scratch, &state->attributes, state->attribute_count, &state->attribute_capacity,
                       sizeof *state->attributes))
    return parser_memory(p);
  const char *own = weft_mlir_intern(p->context, name, strlen(name));
  if (!own) return parser_memory(p);
  state->attributes[state->attribute_count++] = (weft_mlir_named){own, value};
  return true;
}

bool weft_mlir_has_attribute(const weft_mlir_state *state, const char *name) {
  for (uint64_t i = 0; i < state->attribute_count; i++)
    if (strcmp(state->attributes[i].name, name) == 0) return true;
  return false;
}

bool weft_mlir_parse_operand(weft_mlir_parser *p, weft_mlir_operand *operand) {
  if (p->token.kind != TOKEN_VALUE) return weft_mlir_fail(p, "expected a value such as %%0");
  if (!parser_value_name(p, &p->token, &operand->name)) return false;
  operand->number = p->token.number;
  operand->line = p->token.line;
  operand->offset = (uint32_t)(p->token.start - p->begin);
  parser_advance(p);
  return true;
}

bool weft_mlir_parse_operands(weft_mlir_parser *p, weft_mlir_operand **operands, uint32_t *count) {
  uint64_t used = 0, capacity = 0;
  *operands = NULL;
  if (p->token.kind == TOKEN_VALUE) do {
      if (!weft_arena_grow(p->scratch, operands, used, &capacity, sizeof **operands)) return parser_memory(p);
      if (!weft_mlir_parse_operand(p, &(*operands)[used++])) return false;
    } while (parser_take(p, ','));
  *count = (uint32_t)used;
  return true;
}

bool weft_mlir_parse_attr_dict(weft_mlir_parser *p, weft_mlir_state *state) {
  return !parser_is(p, '{') ||
         parser_members(p, &state->attributes, &state->attribute_count, &state->attribute_capacity);
}

bool weft_mlir_parse_attr_dict_keyword(weft_mlir_parser *p, weft_mlir_state *state) {
  if (!weft_mlir_try(p, "attributes")) return true;
  if (!parser_is(p, '{')) return weft_mlir_fail(p, "expected '{' after attributes");
  return weft_mlir_parse_attr_dict(p, state);
}

bool weft_mlir_parse_argument(weft_mlir_parser *p, bool with_type, weft_mlir_argument *argument) {
  *argument = (weft_mlir_argument){.type = NULL};
  if (!weft_mlir_parse_operand(p, &argument->name)) return false;
  if (argument->name.number != UINT32_MAX) return weft_mlir_fail(p, "an argument's name has no number");
  if (with_type && (!parser_need(p, ':', "and a type after the argument's name") || !parser_type(p, &argument->type)))
    return false;
  return !with_type || !parser_is(p, '{') || parser_dictionary(p, &argument->attributes);
}

/* ---- regions and blocks --------------------------------------------------------------------------------------- */

static weft_mlir_region *new_region(weft_mlir_parser *p, weft_mlir_state *state) {
  weft_mlir_region *region = NULL;
  if (!weft_arena_grow(p->scratch, &state->regions, state->region_count, &state->region_capacity,
                       sizeof *state->regions) ||
      state->region_count >= UINT16_MAX || !(region = WEFT_NEW(p->arena, weft_mlir_region))) {
    parser_memory(p);
    return NULL;
  }
  state->regions[state->region_count++] = region;
  return region;
}

bool weft_mlir_add_region(weft_mlir_parser *p, weft_mlir_state *state) { return new_region(p, state) != NULL; }

static block_name *find_block(weft_mlir_parser *p, const token *t) {
  for (block_name *b = p->blocks; b; b = b->next)
    if (b->length == t->length && memcmp(b->text, t->start, t->length) == 0) return b;
  if (++p->block_count > MOST_BLOCKS) {
    weft_mlir_fail(p, "the region has more than %d blocks", MOST_BLOCKS);
    return NULL;
  }
  block_name *b = WEFT_NEW(p->scratch, block_name);
  weft_mlir_block *block = b ? WEFT_NEW(p->arena, weft_mlir_block) : NULL;
  if (!block) {
    parser_memory(p);
    return NULL;
  }
  *b = (block_name){
      .next = p->blocks, .text = t->start, .length = t->length, .block = block, .line = t->line, .start = t->start};
  p->blocks = b;
  return b;
}

static void append_block(weft_mlir_region *region, weft_mlir_block *block) {
  block->region = region;
  block->previous = region->last;
  if (region->last)
    region->last->next = block;
  else
    region->first = block;
  region->last = block;
}

static bool set_arguments(weft_mlir_parser *p, weft_mlir_block *block, const weft_mlir_argument *arguments,
                          uint32_t count) {
  if (!count) return true;
  block->arguments = WEFT_NEW_ARRAY(p->arena, weft_mlir_value, count);
  if (!block->arguments) return parser_memory(p);
  block->argument_count = count;
  for (uint32_t i = 0; i < count; i++) {
    block->arguments[i] =
        (weft_mlir_value){.type = arguments[i].type, .owner = block, .index = i & INT32_MAX, .is_argument = 1};
    if (!parser_define(p, arguments[i].name.name, arguments[i].name.line, p->begin + arguments[i].name.offset,
                       &block->arguments[i], 1))
      return false;
  }
  return true;
}

/* ^name(%a: type, ...): */
static bool block_label(weft_mlir_parser *p, weft_mlir_region *region, weft_mlir_block **block) {
  block_name *name = find_block(p, &p->token);
  if (!name) return false;
  if (name->defined) return weft_mlir_fail(p, "this block is defined a second time");
  name->defined = true;
  *block = name->block;
  append_block(region, *block);
  parser_advance(p);
  weft_mlir_argument *arguments = NULL;
  uint64_t count = 0, capacity = 0;
  if (parser_take(p, '(')) {
    if (!parser_is(p, ')')) do {
        if (!weft_arena_grow(p->scratch, &arguments, count, &capacity, sizeof *arguments)) return parser_memory(p);
        if (!weft_mlir_parse_argument(p, true, &arguments[count++])) return false;
        const weft_mlir_attribute *location;
        if (parser_is_word(p, "loc") && !parser_location(p, &location)) return false;
      } while (parser_take(p, ','));
    if (!parser_need(p, ')', "after the block's arguments")) return false;
  }
  return set_arguments(p, *block, arguments, (uint32_t)count) && parser_need(p, ':', "after the block's name");
}

bool parser_blocks_defined(weft_mlir_parser *p) {
  const block_name *first = NULL;
  for (const block_name *b = p->blocks; b; b = b->next)
    if (!b->defined && (!first || b->start < first->start)) first = b;
  return !first || parser_fail_at(p, first->line, first->start, "this block is not defined in its region");
}

static bool region_body(weft_mlir_parser *p, weft_mlir_region *region, const weft_mlir_argument *arguments,
                        uint32_t count) {
  weft_mlir_block *block = NULL;
  bool labelled = p->token.kind == TOKEN_CARET && !arguments;
  if (!labelled && (arguments || !parser_is(p, '}'))) {
    block = WEFT_NEW(p->arena, weft_mlir_block);
    if (!block) return parser_memory(p);
    append_block(region, block);
    if (!set_arguments(p, block, arguments, count)) return false;
  }
  while (!parser_is(p, '}')) {
    if (p->token.kind == TOKEN_END)
      return weft_mlir_fail(p, "expected '}' at the end of a region, found the end of the text");
    if (p->token.kind == TOKEN_CARET ? !block_label(p, region, &block) : !parser_op(p, block)) return false;
  }
  parser_advance(p);
  return parser_blocks_defined(p);
}

/* The current token is the {. Isolation hides what is visible outside; names of blocks are the region's own. */
static bool region(weft_mlir_parser *p, weft_mlir_region *region, bool isolated, const weft_mlir_argument *arguments,
                   uint32_t count) {
  if (!parser_deeper(p) || !parser_need(p, '{', "to open a region")) return false;
  uint32_t floor = p->floor;
  uint64_t undos = p->undo_count, forwards = p->open_forwards;
  block_name *blocks = p->blocks;
  uint32_t block_count = p->block_count;
  p->blocks = NULL;
  p->block_count = 0;
  parser_scope_begin(p);
  if (isolated) p->floor = p->scope;
  if (!region_body(p, region, arguments, count)) return false;
  if (isolated && !parser_forwards_settled(p, forwards)) return false;
  parser_scope_end(p, undos);
  p->floor = floor;
  p->blocks = blocks;
  p->block_count = block_count;
  p->depth--;
  return true;
}

static bool isolated(const weft_mlir_state *state) {
  return state->name->public.spec && state->name->public.spec->traits & WEFT_MLIR_ISOLATED;
}

/* Adds the terminator that a custom form may leave out. */
static bool end_region(weft_mlir_parser *p, const weft_mlir_state *state, weft_mlir_region *region) {
  const weft_mlir_op_spec *spec = state->name->public.spec;
  if (!spec || !(spec->traits & WEFT_MLIR_IMPLICIT_END) || region->first != region->last) return true;
  if (!region->first) append_block(region, WEFT_NEW(p->arena, weft_mlir_block));
  weft_mlir_block *block = region->first;
  if (!block) return parser_memory(p);
  const weft_mlir_op_spec *last = block->last ? block->last->name->spec : NULL;
  if (last && last->traits & WEFT_MLIR_TERMINATOR) return true;
  weft_mlir_op_parts parts = {
      .name = weft_mlir_name(p->context, spec->implicit, strlen(spec->implicit)), .line = p->token.line, .column = 1};
  bool nested = parts.name && parts.name->spec && parts.name->spec->traits & WEFT_MLIR_ONE_REGION;
  parts.region_count = nested;
  weft_mlir_op *end = parts.name ? weft_mlir_op_new(p->arena, &parts) : NULL;
  if (!end || (nested && !weft_mlir_block_new(p->arena, end->extra->regions, NULL, 0))) return parser_memory(p);
  weft_mlir_insert(block, end, NULL);
  return true;
}

bool weft_mlir_parse_region(weft_mlir_parser *p, weft_mlir_state *state, const weft_mlir_argument *arguments,
                            uint32_t count) {
  weft_mlir_region *made = new_region(p, state);
  return made && region(p, made, isolated(state), arguments, count) && end_region(p, state, made);
}

bool weft_mlir_parse_region_into(weft_mlir_parser *p, weft_mlir_state *state, uint32_t index,
                                 const weft_mlir_argument *arguments, uint32_t count) {
  weft_mlir_region *made = state->regions[index];
  return region(p, made, isolated(state), arguments, count) && end_region(p, state, made);
}

/* ---- the generic form ----------------------------------------------------------------------------------------- */

static bool generic_successors(weft_mlir_parser *p, weft_mlir_state *state) {
  if (!parser_take(p, '[')) return true;
  uint64_t capacity = 0;
  do {
    if (p->token.kind != TOKEN_CARET) return weft_mlir_fail(p, "expected a block such as ^bb1");
    if (!weft_arena_grow(p->scratch, &state->successors, state->successor_count, &capacity, sizeof *state->successors))
      return parser_memory(p);
    block_name *name = find_block(p, &p->token);
    if (!name) return false;
    state->successors[state->successor_count++] = name->block;
    parser_advance(p);
  } while (parser_take(p, ','));
  return parser_need(p, ']', "after the successors");
}

static bool generic_properties(weft_mlir_parser *p, weft_mlir_state *state) {
  if (!parser_take(p, '<')) return true;
  if (!parser_is(p, '{')) return weft_mlir_fail(p, "expected '{' after '<'");
  return parser_dictionary(p, &state->properties) && parser_need(p, '>', "after the properties");
}

static bool generic_regions(weft_mlir_parser *p, weft_mlir_state *state) {
  if (!parser_take(p, '(')) return true;
  do {
    weft_mlir_region *made = new_region(p, state);
    if (!made || !region(p, made, isolated(state), NULL, 0)) return false;
  } while (parser_take(p, ','));
  return parser_need(p, ')', "after the regions");
}

/* ": (types) -> types", checked against the operand names read before. */
static bool generic_signature(weft_mlir_parser *p, weft_mlir_state *state, const weft_mlir_operand *operands,
                              uint32_t count) {
  if (!parser_need(p, ':', "and a function type at the end of the op") ||
      !parser_need(p, '(', "before the operand types"))
    return false;
  const weft_mlir_type *type;
  for (uint32_t i = 0; i < count; i++) {
    if (i && !parser_take(p, ',')) return weft_mlir_fail(p, "expected %u operand types, found %u", count, i);
    if (!parser_type(p, &type) || !weft_mlir_add_operand(p, state, operands[i], type)) return false;
  }
  if (parser_is(p, ',') || (!count && !parser_is(p, ')')))
    return weft_mlir_fail(p, "expected %u operand types, found more", count);
  if (!parser_need(p, ')', "after the operand types") || !weft_mlir_expect(p, "->")) return false;
  if (!parser_take(p, '(')) return parser_type(p, &type) && parser_push_type(p, state, type);
  if (parser_take(p, ')')) return true;
  do {
    if (!parser_type(p, &type) || !parser_push_type(p, state, type)) return false;
  } while (parser_take(p, ','));
  return parser_need(p, ')', "after the result types");
}

/* Operand names are few: they lie on the C stack, in scratch memory when they are many. */
bool parser_generic(weft_mlir_parser *p, weft_mlir_state *state) {
  enum { FEW = 16 };
  weft_mlir_operand few[FEW], *operands = few;
  uint64_t count = 0, capacity = FEW;
  if (!parser_need(p, '(', "after the op's name")) return false;
  if (!parser_is(p, ')')) do {
      if (count == capacity) {
        weft_mlir_operand *old = operands;
        operands = WEFT_NEW_ARRAY(p->scratch, weft_mlir_operand, 2 * capacity);
        if (!operands) return parser_memory(p);
        memcpy(operands, old, count * sizeof *operands);
        capacity *= 2;
      }
      if (!weft_mlir_parse_operand(p, &operands[count++])) return false;
    } while (parser_take(p, ','));
  if (!parser_need(p, ')', "after the operands") || !generic_successors(p, state) || !generic_properties(p, state) ||
      !generic_regions(p, state))
    return false;
  if (parser_is(p, '{') && !parser_dictionary(p, &state->dictionary)) return false;
  return generic_signature(p, state, operands, (uint32_t)count);
}

/* ---- making the op -------------------------------------------------------------------------------------------- */

static bool dictionary_or_none(weft_mlir_parser *p, const weft_mlir_named *members, uint32_t count,
                               const weft_mlir_attribute **dictionary) {
  *dictionary = count ? weft_mlir_dictionary(p->context, members, count) : NULL;
  return !count || *dictionary || parser_memory(p);
}

/* Tells inherent from discardable attributes; a registered op's properties may stand in either list. */
static bool sort_attributes(weft_mlir_parser *p, weft_mlir_state *state, weft_mlir_op_parts *parts) {
  const op_name *name = state->name;
  const weft_mlir_attribute *inside = state->properties, *outside = state->dictionary;
  if (inside && !inside->count) inside = NULL;
  if (outside && !outside->count) outside = NULL;
  bool settled = !state->attribute_count && (!outside || !name->inherent_count);
  if (settled) {
    parts->properties = inside;
    parts->attributes = outside;
    return true;
  }
  uint64_t most = state->attribute_count + (inside ? inside->count : 0) + (outside ? outside->count : 0);
  weft_mlir_named *properties = WEFT_NEW_ARRAY(p->scratch, weft_mlir_named, 2 * most), *others = properties + most;
  if (!properties) return parser_memory(p);
  uint32_t property_count = 0, other_count = 0;
  for (uint32_t i = 0; inside && i < inside->count; i++) properties[property_count++] = inside->as.members[i];
  for (uint64_t i = 0; i < state->attribute_count + (outside ? outside->count : 0); i++) {
    weft_mlir_named a =
        i < state->attribute_count ? state->attributes[i] : outside->as.members[i - state->attribute_count];
    if (mlir_is_inherent(name, a.name))
      properties[property_count++] = a;
    else
      others[other_count++] = a;
  }
  return dictionary_or_none(p, properties, property_count, &parts->properties) &&
         dictionary_or_none(p, others, other_count, &parts->attributes);
}

static bool make_op(weft_mlir_parser *p, weft_mlir_state *state, weft_mlir_block *block, weft_mlir_op **op) {
  weft_mlir_op_parts parts = {.name = &state->name->public,
                              .operands = state->operand_count ? p->operand_stack + state->operand_base : NULL,
                              .result_types = state->result_count ? p->type_stack + state->type_base : NULL,
                              .location = state->location,
                              .successors = state->successors,
                              .operand_count = state->operand_count,
                              .result_count = state->result_count,
                              .region_count = (uint32_t)state->region_count,
                              .successor_count = (uint32_t)state->successor_count,
                              .line = state->line,
                              .column = state->column};
  if (!sort_attributes(p, state, &parts)) return false;
  weft_mlir_op *made = weft_mlir_op_new(p->arena, &parts);
  if (!made) return parser_memory(p);
  for (uint32_t i = 0; i < made->region_count; i++) {
    made->extra->regions[i] = *state->regions[i];
    made->extra->regions[i].op = made;
    for (weft_mlir_block *b = made->extra->regions[i].first; b; b = b->next) b->region = &made->extra->regions[i];
  }
  p->operand_count = state->operand_base;
  p->type_count = state->type_base;
  if (p->open_forwards && !parser_keep_slots(p, made)) return false;
  weft_mlir_insert(block, made, NULL);
  *op = made;
  return true;
}

/* The custom form's name: dialect.op, or a bare name of builtin or func. */
static const op_name *custom_name(weft_mlir_parser *p) {
  const token *t = &p->token;
  if (memchr(t->start, '.', t->length)) return (const op_name *)weft_mlir_name(p->context, t->start, t->length);
  const char *prefix =
      parser_is_word(p, "module") || parser_is_word(p, "unrealized_conversion_cast") ? "builtin" : "func";
  const char *text = weft_arena_printf(p->scratch, "%s.%.*s", prefix, (int)t->length, t->start);
  return text ? (const op_name *)weft_mlir_name(p->context, text, strlen(text)) : NULL;
}

static bool op_body(weft_mlir_parser *p, weft_mlir_state *state) {
  if (p->token.kind == TOKEN_STRING) {
    const char *problem = "an op's name cannot be empty";
    uint64_t length = p->token.length - 2;
    const char *text = p->token.start + 1;
    if (length && memchr(text, '\\', length)) text = lexer_string(p->scratch, &p->token, &length, &problem);
    if (!text || !length || memchr(text, '\0', length)) return weft_mlir_fail(p, "%s", problem);
    state->name = (const op_name *)weft_mlir_name(p->context, text, length);
    if (!state->name) return parser_memory(p);
    parser_advance(p);
    return parser_generic(p, state);
  }
  if (p->token.kind != TOKEN_WORD) return weft_mlir_fail(p, "expected an op");
  state->name = custom_name(p);
  if (!state->name) return parser_memory(p);
  const weft_mlir_op_spec *spec = state->name->public.spec;
  if (!spec)
    return weft_mlir_fail(p, "the op '%s' is unknown; unknown ops can be read in generic form",
                          state->name->public.text);
  if (!spec->parse && !spec->format)
    return weft_mlir_fail(p, "'%s' has no custom form; write it in generic form", spec->name);
  parser_advance(p);
  return spec->parse ? spec->parse(p, state) : mlir_format_parse(p, state->name->format, state);
}

typedef struct result_name {
  uint32_t name, count, line;
  const char *start;
} result_name;

static bool result_names(weft_mlir_parser *p, result_name **names, uint64_t *count, uint64_t capacity) {
  do {
    if (*count == capacity) {
      result_name *more = WEFT_NEW_ARRAY(p->scratch, result_name, 2 * capacity);
      if (!more) return parser_memory(p);
      memcpy(more, *names, *count * sizeof *more);
      *names = more;
      capacity *= 2;
    }
    result_name *next = &(*names)[*count];
    if (p->token.kind != TOKEN_VALUE || p->token.number != UINT32_MAX)
      return weft_mlir_fail(p, "expected a result's name");
    *next = (result_name){.count = 1, .line = p->token.line, .start = p->token.start};
    if (!parser_value_name(p, &p->token, &next->name)) return false;
    parser_advance(p);
    ++*count;
    if (parser_take(p, ':')) {
      int64_t number;
      if (!weft_mlir_parse_integer(p, &number)) return false;
      if (number < 1 || number > INT32_MAX) return weft_mlir_fail(p, "the number of results is out of range");
      next->count = (uint32_t)number;
    }
  } while (parser_take(p, ','));
  return parser_need(p, '=', "after the results' names");
}

static bool define_results(weft_mlir_parser *p, weft_mlir_op *op, const result_name *names, uint64_t count) {
  uint64_t total = 0;
  for (uint64_t i = 0; i < count; i++) total += names[i].count;
  if (total != op->result_count)
    return parser_fail_at(p, names[0].line, names[0].start, "%llu results are named here, but %s has %u",
                          (unsigned long long)total, op->name->text, op->result_count);
  weft_mlir_value *values = op->results;
  for (uint64_t i = 0; i < count; i++) {
    if (!parser_define(p, names[i].name, names[i].line, names[i].start, values, names[i].count)) return false;
    values += names[i].count;
  }
  return true;
}

bool parser_op(weft_mlir_parser *p, weft_mlir_block *block) {
  enum { FEW = 4 };
  result_name few[FEW], *names = few;
  uint64_t name_count = 0;
  if (p->token.kind == TOKEN_VALUE && !result_names(p, &names, &name_count, FEW)) return false;
  weft_mlir_state state = {.operand_base = p->operand_count, .type_base = p->type_count};
  for (uint64_t i = 0; i < name_count; i++) state.declared_results += names[i].count;
  state.line = p->token.line;
  state.column = parser_column(p, &p->token);
  if (!op_body(p, &state)) return false;
  if (parser_is_word(p, "loc") && !parser_location(p, &state.location)) return false;
  weft_mlir_op *op = NULL;
  if (!make_op(p, &state, block, &op)) return false;
  return !name_count || define_results(p, op, names, name_count);
}
