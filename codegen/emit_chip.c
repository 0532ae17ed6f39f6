/* One chip's text: slots, tensor table, steps in program order. */
#include "emit_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint64_t add_parameter(weft_chip_code *code, weft_parameter_kind kind, const int64_t *values, uint64_t count) {
  if (!weft_arena_grow(code->arena, &code->parameters, code->parameter_count, &code->parameter_capacity,
                       sizeof *code->parameters)) {
    code->status = weft_error_memory(code->diag);
    return 0;
  }
  code->parameters[code->parameter_count] = (weft_parameter){kind, code->inside, code->value_count, count};
  for (uint64_t i = 0; i < count; i++) {
    if (!weft_arena_grow(code->arena, &code->values, code->value_count, &code->value_capacity, sizeof *code->values)) {
      code->status = weft_error_memory(code->diag);
      return 0;
    }
    code->values[code->value_count++] = values[i];
  }
  return code->parameter_count++;
}

void weft_codegen_place(weft_text *text, char mark, uint64_t number) {
  const char end = PLACE_END;
  weft_text_append(text, &mark, 1);
  weft_text_u64(text, number);
  weft_text_append(text, &end, 1);
}

void weft_codegen_scalar(weft_chip_code *code, weft_text *text, int64_t value) {
  weft_codegen_place(text, PLACE_PARAMETER,
                     add_parameter(code, WEFT_PARAMETER_SCALAR, &value, 1) - code->parameter_base);
}

void weft_codegen_extent(weft_chip_code *code, weft_text *text, uint64_t value) {
  const int64_t number = (int64_t)value;
  weft_codegen_place(text, PLACE_PARAMETER,
                     add_parameter(code, WEFT_PARAMETER_EXTENT, &number, 1) - code->parameter_base);
}

void weft_codegen_block(weft_chip_code *code, weft_text *text, const int64_t *values, uint64_t count) {
  weft_codegen_place(text, PLACE_PARAMETER,
                     add_parameter(code, WEFT_PARAMETER_BLOCK, values, count) - code->parameter_base);
}

void weft_codegen_size(weft_chip_code *code, weft_text *text, uint64_t rows, uint64_t cols) {
  const int64_t size[2] = {(int64_t)rows, (int64_t)cols};
  weft_codegen_place(text, PLACE_PARAMETER, add_parameter(code, WEFT_PARAMETER_SIZE, size, 2));
}

/* ---- series ---- */

/** Base, stride, members and start; false when the numbers are no ring. */
static bool ring_of(const int64_t *values, uint64_t count, int64_t last, int64_t ring[4]) {
  uint64_t members = count + (last != WEFT_NO_LAST), start = 0;
  int64_t least = last != WEFT_NO_LAST ? last : values[0], greatest = least;
  for (uint64_t i = 0; i < count; i++) {
    if (values[i] < least) {
      least = values[i];
      start = members - i;
    }
    greatest = values[i] > greatest ? values[i] : greatest;
  }
  if (last != WEFT_NO_LAST && least == last) start = 1;
  if (least == values[0]) start = 0;
  int64_t stride = members > 1 ? (greatest - least) / (int64_t)(members - 1) : 0;
  const int64_t found[4] = {least, stride, (int64_t)members, (int64_t)start};
  memcpy(ring, found, sizeof found);
  for (uint64_t i = 0; i < members; i++)
    if (least + stride * (int64_t)((start + i) % members) != (i < count ? values[i] : last)) return false;
  return true;
}

bool weft_codegen_is_ring(const int64_t *values, uint64_t count, int64_t last) {
  int64_t ring[4];
  return count > 4 &&
         (ring_of(values, count, WEFT_NO_LAST, ring) || (last != WEFT_NO_LAST && ring_of(values, count, last, ring)));
}

void weft_codegen_series(weft_chip_code *code, weft_text *text, const int64_t *values, uint64_t count, int64_t last,
                         bool ring) {
  int64_t numbers[4];
  if (ring && !ring_of(values, count, WEFT_NO_LAST, numbers)) (void)ring_of(values, count, last, numbers);
  weft_codegen_block(code, text, ring ? numbers : values, ring ? 4 : count);
}

/* ---- slots and steps ---- */

int64_t weft_codegen_slot(weft_chip_code *code, uint32_t tensor) {
  if (code->slot_of_tensor[tensor] < 0) {
    code->tensor_of_slot[code->slot_count] = tensor;
    code->slot_of_tensor[tensor] = (int64_t)code->slot_count++;
  }
  return code->slot_of_tensor[tensor];
}

uint64_t weft_codegen_most_slots(const weft_chip_code *code) {
  return code->program->tensor_count + (code->graph ? code->graph->value_count : 0);
}

int64_t weft_codegen_value_slot(weft_chip_code *code, uint32_t value) {
  if (code->tensor_of_value[value] != WEFT_NONE) return weft_codegen_slot(code, code->tensor_of_value[value]);
  if (code->slot_of_value[value] < 0) {
    code->tensor_of_slot[code->slot_count] = WEFT_NONE;
    code->value_of_slot[code->slot_count] = value;
    code->slot_of_value[value] = (int64_t)code->slot_count++;
  }
  return code->slot_of_value[value];
}

/** Names that repeat, as those of received blocks do, are one. */
void weft_codegen_name(weft_chip_code *code, weft_text *text, const char *name) {
  const char *at = strrchr(name, '@');
  size_t length = at && at != name ? (size_t)(at - name) : strlen(name);
  if (length > 127) length = 127;
  const char *last = code->name_count > code->name_base ? code->names[code->name_count - 1] : NULL;
  if (!last || strlen(last) != length || memcmp(last, name, length) != 0) {
    const char *kept = weft_arena_string(code->arena, name, length);
    if (!kept ||
        !weft_arena_grow(code->arena, &code->names, code->name_count, &code->name_capacity, sizeof *code->names)) {
      code->status = weft_error_memory(code->diag);
      return;
    }
    code->names[code->name_count++] = kept;
  }
  weft_codegen_place(text, PLACE_NAME, code->name_count - 1 - code->name_base);
}

void weft_codegen_slot_list(weft_text *text, const int64_t *slots, uint64_t count) {
  enum { A_LINE = 40 };
  weft_text_puts(text, count ? "WEFT_SLOTS(" : "WEFT_NO_SLOTS");
  for (uint64_t i = 0; i < count; i++) {
    weft_text_puts(text, i == 0 ? "" : i % A_LINE ? ", " : ",\n     ");
    weft_text_i64(text, slots[i]);
  }
  if (count) weft_text_puts(text, ")");
}

void weft_codegen_step(weft_chip_code *code, const char *kind, const char *name, const char *target,
                       const int64_t *reads, uint64_t read_count, const int64_t *writes, uint64_t write_count,
                       double flops) {
  weft_text *text = &code->steps;
  weft_text_printf(text, "    {.kind = WEFT_STEP_%s, .name = \"", kind);
  weft_codegen_name(code, text, name);
  weft_text_printf(text, "\", %s, .reads = ", target);
  weft_codegen_slot_list(text, reads, read_count);
  weft_text_puts(text, ", .writes = ");
  weft_codegen_slot_list(text, writes, write_count);
  int64_t work = flops < 0x1p62 ? (int64_t)flops : INT64_C(1) << 62;
  weft_codegen_place(text, PLACE_PARAMETER, add_parameter(code, WEFT_PARAMETER_WORK, &work, 1));
  weft_text_puts(text, "},\n");
  code->step_count++;
}

/* ---- tensor table ------------------------------------------------------------------------------------------------ */

static void write_values(weft_text *tables, uint64_t slot, const uint64_t *items, uint64_t count, bool is_signed) {
  weft_text_printf(tables, "static const %s values_%" PRIu64 "[] = {", is_signed ? "int64_t" : "uint64_t", slot);
  for (uint64_t i = 0; i < count; i++) {
    if (i % 8 == 0) weft_text_puts(tables, "\n    ");
    if (is_signed && items[i] == (uint64_t)INT64_MIN)
      weft_text_puts(tables, "INT64_MIN, ");
    else if (is_signed)
      weft_text_printf(tables, "%" PRId64 ", ", (int64_t)items[i]);
    else
      weft_text_printf(tables, "%" PRIu64 "u, ", items[i]);
  }
  weft_text_puts(tables, "\n};\n");
}

static void write_fill(weft_chip_code *code, weft_text *row, uint64_t slot, const weft_init *init) {
  switch (init->kind) {
  case WEFT_INIT_EXTERNAL: break;
  case WEFT_INIT_ZERO: weft_text_puts(row, ", .fill = 1"); break;
  case WEFT_INIT_CONST_F: weft_text_printf(row, ", .fill = 2, .fill_value = %" PRIu64 "u", init->const_f); break;
  case WEFT_INIT_PATTERN:
    weft_text_printf(row,
                     ", .fill = 3, .fill_value = (uint64_t)INT64_C(%" PRId64 "), .fill_shift = INT64_C(%" PRId64 ")",
                     init->pattern.modulus, init->pattern.shift);
    break;
  case WEFT_INIT_VALUES:
    write_values(&code->tables, slot, (const uint64_t *)init->values.items, init->values.count, true);
    weft_text_printf(row, ", .fill = 4, .fill_value = %" PRIu64 ", .values = values_%" PRIu64, init->values.count,
                     slot);
    break;
  case WEFT_INIT_FLOAT_VALUES:
    write_values(&code->tables, slot, init->float_values.items, init->float_values.count, false);
    weft_text_printf(row, ", .fill = 5, .fill_value = %" PRIu64 ", .values = values_%" PRIu64, init->float_values.count,
                     slot);
    break;
  case WEFT_INIT_RANDOM_BF16:
    weft_text_printf(row, ", .fill = 6, .fill_value = %" PRIu32 ", .fill_shift = %" PRId32, init->random.seed,
                     init->random.shift_milli);
    break;
  }
}

/** Stored only to be sent (docs/split.md): an Output that is in no file. */
static bool is_sent_only(const weft_tensor *tensor) {
  return tensor->role == WEFT_ROLE_OUTPUT && tensor->has_shard && !tensor->shard.writer &&
         strcmp(tensor->shard.of, tensor->name) == 0;
}

static bool has_dataset(const weft_chip_code *code, uint32_t tensor) {
  const weft_tensor *t = &code->program->tensors[tensor];
  return t->role != WEFT_ROLE_ACTIVATION && !code->received[tensor] && !is_sent_only(t);
}

static void write_extents(weft_text *row, const weft_tensor *tensor) {
  uint64_t plane[2] = {tensor->has_shard ? tensor->shard.rows : tensor->elems.rows,
                       tensor->has_shard ? tensor->shard.cols : tensor->elems.cols};
  const uint64_t *extents = tensor->shape ? tensor->shape : plane;
  uint64_t rank = tensor->shape ? tensor->shape_count : 2;
  weft_text_printf(row, ".rank = %" PRIu64 ", .extents = {", rank);
  for (uint64_t i = 0; i < rank; i++) weft_text_printf(row, "%s%" PRIu64, i ? ", " : "", extents[i]);
  weft_text_puts(row, "}");
}

/** A block's place is a parameter even where it is the whole: a replica that another chip writes belongs to the same
 * class. */
static void write_place(weft_chip_code *code, weft_text *row, const weft_tensor *tensor) {
  const weft_shard *shard = &tensor->shard;
  weft_text_puts(row, ", .place = ");
  if (!tensor->has_shard) {
    weft_text_puts(row, "-1");
    return;
  }
  const int64_t place[3] = {(int64_t)shard->row0, (int64_t)shard->col0, shard->writer};
  weft_codegen_block(code, row, place, 3);
}

/** A value that no tensor of the program holds: it stays inside a section. */
static void write_value(weft_chip_code *code, weft_text *rows, uint32_t id) {
  const weft_value *value = &code->graph->values[id];
  uint64_t plane_rows, plane_cols;
  weft_plane_extents(value->rank, value->extents, &plane_rows, &plane_cols);
  weft_text_puts(rows, "{.name = \"");
  weft_codegen_name(code, rows, value->name);
  weft_text_printf(rows, "\", .format = %d /* %s */, .role = %d, ", (int)value->dtype, weft_format_name(value->dtype),
                   (int)WEFT_ROLE_ACTIVATION);
  weft_codegen_size(code, rows, plane_rows, plane_cols);
  weft_text_puts(rows, ", .place = -1},\n");
}

/** The least integer has no literal. */
static void write_range(weft_text *row, weft_range range) {
  weft_text_puts(row, ", .has_range = 1, .low = ");
  if (range.low == INT64_MIN)
    weft_text_puts(row, "INT64_MIN");
  else
    weft_text_printf(row, "INT64_C(%" PRId64 ")", range.low);
  if (range.high == INT64_MIN)
    weft_text_puts(row, ", .high = INT64_MIN");
  else
    weft_text_printf(row, ", .high = INT64_C(%" PRId64 ")", range.high);
}

static void write_tensor(weft_chip_code *code, weft_text *rows, uint64_t slot) {
  uint32_t id = code->tensor_of_slot[slot];
  if (id == WEFT_NONE) {
    write_value(code, rows, code->value_of_slot[slot]);
    return;
  }
  const weft_tensor *tensor = &code->program->tensors[id];
  weft_text_puts(rows, "{.name = \"");
  weft_codegen_name(code, rows, tensor->name);
  weft_text_puts(rows, "\", ");
  bool dataset = has_dataset(code, id);
  if (dataset) {
    weft_text_puts(rows, ".dataset = \"");
    weft_text_c_string(rows, tensor->has_shard ? tensor->shard.of : tensor->name);
    weft_text_puts(rows, "\", ");
  }
  weft_text_printf(rows, ".format = %d /* %s */, .role = %d, ", (int)tensor->dtype, weft_format_name(tensor->dtype),
                   dataset ? (int)tensor->role : (int)WEFT_ROLE_ACTIVATION);
  weft_codegen_size(code, rows, tensor->elems.rows, tensor->elems.cols);
  weft_text_puts(rows, ", ");
  if (dataset) {
    write_extents(rows, tensor);
    write_place(code, rows, tensor);
    if (tensor->role != WEFT_ROLE_OUTPUT) write_fill(code, rows, slot, &tensor->init);
    if (tensor->role != WEFT_ROLE_OUTPUT && tensor->has_range && !weft_format_is_float(tensor->dtype))
      write_range(rows, tensor->range);
  } else {
    weft_text_puts(rows, ".place = -1");
  }
  weft_text_puts(rows, "},\n");
}

/* ---- values and tensors --------------------------------------------------------------------------------------------
 */

/** Which ops each section has: they stand together. */
static bool list_ops(weft_chip_code *code) {
  uint64_t ops = code->graph ? code->graph->op_count : 0, sections = code->graph ? code->graph->section_count : 0,
           op = 0;
  if (code->program->section_count > sections) sections = code->program->section_count;
  code->fused = WEFT_NEW_ARRAY(code->arena, bool, ops);
  code->op_begin = WEFT_NEW_ARRAY(code->arena, uint64_t, sections + 2);
  if (!code->fused || !code->op_begin) {
    code->status = weft_error_memory(code->diag);
    return false;
  }
  for (uint64_t s = 0; s <= sections + 1; s++) {
    while (op < ops && code->graph->ops[op].section < s) op++;
    code->op_begin[s] = op;
  }
  return true;
}

static int by_tensor_name(const void *a, const void *b, void *tensors) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  int order = strcmp(((const weft_tensor *)tensors)[x].name, ((const weft_tensor *)tensors)[y].name);
  return order ? order : x < y ? -1 : x > y;
}

static bool sort_names(weft_chip_code *code) {
  uint64_t count = code->program->tensor_count;
  code->by_name = WEFT_NEW_ARRAY(code->arena, uint32_t, count);
  if (!code->by_name) {
    code->status = weft_error_memory(code->diag);
    return false;
  }
  for (uint64_t i = 0; i < count; i++) code->by_name[i] = (uint32_t)i;
  if (count) qsort_r(code->by_name, count, sizeof *code->by_name, by_tensor_name, code->program->tensors);
  return true;
}

static bool prepare(weft_chip_code *code) {
  const weft_program *program = code->program;
  uint64_t tensors = program->tensor_count, values = code->graph ? code->graph->value_count : 0;
  code->tensor_of_value = WEFT_NEW_ARRAY(code->arena, uint32_t, values);
  code->value_of_tensor = WEFT_NEW_ARRAY(code->arena, uint32_t, tensors);
  code->slot_of_tensor = WEFT_NEW_ARRAY(code->arena, int64_t, tensors);
  code->slot_of_value = WEFT_NEW_ARRAY(code->arena, int64_t, values);
  code->tensor_of_slot = WEFT_NEW_ARRAY(code->arena, uint32_t, weft_codegen_most_slots(code));
  code->value_of_slot = WEFT_NEW_ARRAY(code->arena, uint32_t, weft_codegen_most_slots(code));
  code->received = WEFT_NEW_ARRAY(code->arena, bool, tensors);
  code->done = WEFT_NEW_ARRAY(code->arena, uint8_t, code->collectives->count);
  if (!weft_codegen_slots_new(code, &code->reads) || !weft_codegen_slots_new(code, &code->writes) ||
      !weft_codegen_slots_new(code, &code->all) || !list_ops(code) || !sort_names(code))
    return false;
  if (!code->tensor_of_value || !code->value_of_tensor || !code->slot_of_tensor || !code->slot_of_value ||
      !code->tensor_of_slot || !code->value_of_slot || !code->received || !code->done) {
    code->status = weft_error_memory(code->diag);
    return false;
  }
  for (uint64_t i = 0; i < tensors; i++) {
    code->slot_of_tensor[i] = -1;
    code->value_of_tensor[i] = WEFT_NONE;
  }
  /* Lifting keeps the tensors first and in order; values after them live in buffers only, whatever they are called. */
  for (uint64_t v = 0; v < values; v++) code->tensor_of_value[v] = v < tensors ? (uint32_t)v : WEFT_NONE;
  for (uint64_t v = 0; v < values; v++) // a state is one tensor, before and after
    if (code->graph->values[v].updates)
      code->tensor_of_value[v] = code->tensor_of_value[code->graph->values[v].updates - 1];
  for (uint64_t v = 0; v < values; v++) code->slot_of_value[v] = -1;
  for (uint64_t v = 0; v < values && v < tensors; v++) code->value_of_tensor[v] = (uint32_t)v;
  for (uint64_t l = 0; l < program->link_count; l++)
    for (uint64_t i = 0; i < program->links[l].receive_count; i++) code->received[program->links[l].receives[i]] = true;
  return true;
}

static void links_after(weft_chip_code *code, uint64_t after) {
  for (uint64_t l = 0; l < code->program->link_count; l++)
    if (code->program->links[l].after == after) weft_codegen_link(code, &code->program->links[l]);
}

/** Datasets keep a fixed place in the table: those a step never touches are still read and checked. */
static void slots_for_datasets(weft_chip_code *code) {
  for (uint64_t i = 0; i < code->program->tensor_count; i++)
    if (has_dataset(code, (uint32_t)i)) weft_codegen_slot(code, (uint32_t)i);
}

static void assemble(weft_chip_code *code) {
  weft_text rows = {0};
  for (uint64_t slot = 0; slot < code->slot_count; slot++) write_tensor(code, &rows, slot);
  weft_text *text = &code->text;
  weft_text_append(text, code->tables.data ? code->tables.data : "", code->tables.length);
  weft_text_puts(text, "static const weft_abi_tensor tensors[] = {\n");
  const char mark = PLACE_ROWS;
  weft_text_append(text, &mark, 1);
  if (rows.length)
    weft_text_append(text, rows.data, rows.length);
  else
    weft_text_puts(text, "{0},\n");
  weft_text_append(text, &mark, 1);
  weft_text_puts(text, "};\n\n");
  weft_text_append(text, code->functions.data ? code->functions.data : "", code->functions.length);
  weft_text_puts(text, "static const weft_abi_step steps[] = {\n");
  if (code->steps.length)
    weft_text_append(text, code->steps.data, code->steps.length);
  else
    weft_text_puts(text, "    {0},\n");
  weft_text_puts(text, "};\n\n");
  bool failed = rows.failed || text->failed || code->functions.failed || code->steps.failed || code->tables.failed;
  weft_text_free(&rows);
  if (failed) code->status = weft_error_memory(code->diag);
}

void weft_codegen_chip(weft_chip_code *code) {
  if (!prepare(code)) return;
  slots_for_datasets(code);
  if (!code->graph && code->program->stage_count) {
    weft_codegen_walk(code);
  } else {
    links_after(code, UINT64_MAX);
    uint64_t sections = code->program->section_count ? code->program->section_count : 1;
    for (uint64_t s = 0; s < sections; s++) {
      if (code->graph) weft_codegen_section(code, (uint32_t)s);
      links_after(code, s);
    }
  }
  if (code->status == WEFT_OK) assemble(code);
}
