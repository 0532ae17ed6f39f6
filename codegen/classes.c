/* Chips grouped into classes by text; the files of a program. */
#include "emit_private.h"

#include "weft/program_abi.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** A set of chips with equal text, in ascending order. */
typedef struct chip_class {
  uint32_t first_chip;
  uint32_t *chips;
  uint32_t count;
  uint64_t hash;
  bool *kept;        /**< by parameter outside of sections: it is printed in the row */
  int64_t *index_of; /**< by parameter: its index in the row, or -1 when it is printed as a constant */
  uint64_t row_length;
  weft_function *functions;
  uint32_t function_count;
  uint32_t *function_of; /**< by section */
  uint64_t *base_of;     /**< by section: where its part of the row begins */
} chip_class;

static bool text_equal(const weft_text *a, const weft_text *b) {
  return a->length == b->length && memcmp(a->data, b->data, a->length) == 0;
}

static bool same_class(const weft_chip_code *a, const weft_chip_code *b) {
  if (!text_equal(&a->text, &b->text) || a->parameter_count != b->parameter_count) return false;
  for (uint64_t i = 0; i < a->parameter_count; i++)
    if (a->parameters[i].count != b->parameters[i].count || a->parameters[i].kind != b->parameters[i].kind)
      return false;
  if (a->section_count != b->section_count || a->name_count != b->name_count) return false;
  for (uint64_t i = 0; i < a->section_count; i++)
    if (!text_equal(&a->sections[i].text, &b->sections[i].text)) return false;
  return true;
}

static weft_status group(const weft_chip_code *codes, uint32_t chips, weft_arena *arena, chip_class **classes,
                         uint32_t *count, weft_diag *diag) {
  *classes = WEFT_NEW_ARRAY(arena, chip_class, chips);
  uint32_t *members = WEFT_NEW_ARRAY(arena, uint32_t, chips), *class_of = WEFT_NEW_ARRAY(arena, uint32_t, chips);
  if (!*classes || !members || !class_of) return weft_error_memory(diag);
  *count = 0;
  for (uint32_t c = 0; c < chips; c++) {
    uint64_t hash = weft_hash_bytes(0, codes[c].text.data, codes[c].text.length);
    for (uint64_t i = 0; i < codes[c].section_count; i++)
      hash = weft_hash_bytes(hash, &codes[c].sections[i].hash, sizeof codes[c].sections[i].hash);
    uint32_t k = 0;
    while (k < *count && !((*classes)[k].hash == hash && same_class(&codes[(*classes)[k].first_chip], &codes[c]))) k++;
    if (k == *count) (*classes)[(*count)++] = (chip_class){.first_chip = c, .hash = hash};
    class_of[c] = k;
    (*classes)[k].count++;
  }
  for (uint32_t k = 0, at = 0; k < *count; k++) {
    (*classes)[k].chips = members + at;
    for (uint32_t c = 0; c < chips; c++)
      if (class_of[c] == k) members[at++] = c;
  }
  return WEFT_OK;
}

/* ---- parameters ---- */

static const int64_t *values_of(const weft_chip_code *codes, const chip_class *class, uint32_t member,
                                uint64_t parameter) {
  const weft_chip_code *code = &codes[class->chips[member]];
  return code->values + code->parameters[parameter].first;
}

static bool varies(const weft_chip_code *codes, const chip_class *class, uint64_t parameter) {
  uint64_t count = codes[class->first_chip].parameters[parameter].count;
  for (uint32_t c = 1; c < class->count; c++)
    for (uint64_t v = 0; v < count; v++)
      if (values_of(codes, class, c, parameter)[v] != values_of(codes, class, 0, parameter)[v]) return true;
  return false;
}

static uint64_t parameter_hash(const weft_chip_code *codes, const chip_class *class, uint64_t parameter) {
  uint64_t count = codes[class->first_chip].parameters[parameter].count, hash = count;
  for (uint32_t c = 0; c < class->count; c++)
    hash = weft_hash_bytes(hash, values_of(codes, class, c, parameter), count * sizeof(int64_t));
  return hash;
}

static bool same_numbers(const weft_chip_code *codes, const chip_class *class, uint64_t a, uint64_t b) {
  const weft_parameter *parameters = codes[class->first_chip].parameters;
  if (parameters[a].count != parameters[b].count) return false;
  for (uint32_t c = 0; c < class->count; c++)
    if (memcmp(values_of(codes, class, c, a), values_of(codes, class, c, b), parameters[a].count * sizeof(int64_t)) !=
        0)
      return false;
  return true;
}

/** Which parameters outside of sections stay in the row, after the chip's number: blocks always, others where chips
 * differ; equal ones once. */
static weft_status layout_outside(const weft_chip_code *codes, chip_class *class, weft_arena *arena, weft_diag *diag) {
  const weft_chip_code *first = &codes[class->first_chip];
  uint64_t size = 16;
  while (size < 2 * first->parameter_count) size *= 2;
  uint64_t *table = WEFT_NEW_ARRAY(arena, uint64_t, size); /* parameter + 1, by hash */
  class->index_of = WEFT_NEW_ARRAY(arena, int64_t, first->parameter_count);
  class->kept = WEFT_NEW_ARRAY(arena, bool, first->parameter_count);
  if (!class->index_of || !class->kept || !table) return weft_error_memory(diag);
  class->row_length = 1;
  for (uint64_t i = 0; i < first->parameter_count; i++) {
    const weft_parameter *parameter = &first->parameters[i];
    class->index_of[i] = -1;
    if (parameter->inside || (parameter->kind != WEFT_PARAMETER_BLOCK && !varies(codes, class, i))) continue;
    uint64_t at = parameter_hash(codes, class, i) % size;
    while (table[at] && !same_numbers(codes, class, table[at] - 1, i)) at = (at + 1) % size;
    if (table[at]) {
      class->index_of[i] = class->index_of[table[at] - 1];
      continue;
    }
    table[at] = i + 1;
    class->kept[i] = true;
    class->index_of[i] = (int64_t) class->row_length;
    class->row_length += parameter->count;
  }
  return WEFT_OK;
}

/** The row: the chip's number, what stays outside of sections, the part of each section. */
static weft_status layout_row(const weft_chip_code *codes, chip_class *class, weft_arena *arena, weft_diag *diag) {
  const weft_chip_code *first = &codes[class->first_chip];
  class->base_of = WEFT_NEW_ARRAY(arena, uint64_t, first->section_count);
  if (!class->base_of) return weft_error_memory(diag);
  weft_status status = layout_outside(codes, class, arena, diag);
  if (status != WEFT_OK) return status;
  status = weft_codegen_group_sections(codes, class->chips, class->count, arena, &class->functions,
                                       &class->function_count, &class->function_of, diag);
  for (uint64_t s = 0; status == WEFT_OK && s < first->section_count; s++) {
    class->base_of[s] = class->row_length;
    class->row_length += class->functions[class->function_of[s]].columns;
  }
  return status;
}

/** A class while it is printed; inside of `function`, when there is one. */
typedef struct printer {
  weft_text *out;
  const weft_chip_code *codes;
  const chip_class *class;
  const weft_function *function;
} printer;

static void print_parameter(const printer *p, uint64_t parameter) {
  const weft_chip_code *code = &p->codes[p->class->first_chip];
  const weft_section_code *section = p->function ? &code->sections[p->function->sections[0]] : NULL;
  const weft_parameter *what = &code->parameters[parameter + (section ? section->first_parameter : 0)];
  int64_t index = section ? p->function->column_of[parameter] : p->class->index_of[parameter];
  const int64_t *values = code->values + what->first;
  switch (what->kind) {
  case WEFT_PARAMETER_SCALAR:
  case WEFT_PARAMETER_EXTENT:
    if (index < 0)
      weft_text_i64(p->out, values[0]);
    else
      weft_text_printf(p->out, "(uint64_t)p[%" PRId64 "]", index);
    break;
  case WEFT_PARAMETER_BLOCK: weft_text_printf(p->out, section ? "p + %" PRId64 : "%" PRId64, index); break;
  case WEFT_PARAMETER_SIZE:
    if (index < 0)
      weft_text_printf(p->out, ".rows = %" PRIu64 ", .cols = %" PRIu64, (uint64_t)values[0], (uint64_t)values[1]);
    else
      weft_text_printf(p->out, ".size = %" PRId64, index);
    break;
  case WEFT_PARAMETER_WORK:
    if (index >= 0)
      weft_text_printf(p->out, ", .work = %" PRId64, index);
    else if (values[0])
      weft_text_printf(p->out, ", .flops = %" PRId64, values[0]);
  }
}

/** What a name has in common with the others of its place. */
typedef struct common_name {
  const char *name;
  size_t before, after; /**< what all begin and end with, where they differ */
  bool differ;
} common_name;

static void join_name(common_name *common, const char *name) {
  if (!common->name) *common = (common_name){.name = name, .before = strlen(name), .after = strlen(name)};
  if (strcmp(name, common->name) == 0) return;
  size_t length = strlen(name), own = strlen(common->name), least = length < own ? length : own, i = 0, k = 0;
  while (i < common->before && i < least && name[i] == common->name[i]) i++;
  while (k < common->after && k < least - i && name[length - 1 - k] == common->name[own - 1 - k]) k++;
  *common = (common_name){common->name, i, k, true};
}

/** The name on all chips, in all sections of the function; a star stands for what differs. */
static void print_name(const printer *p, uint64_t number) {
  const chip_class *class = p->class;
  common_name common = {0};
  for (uint32_t c = 0; c < class->count; c++) {
    const weft_chip_code *code = &p->codes[class->chips[c]];
    for (uint32_t k = 0; k < (p->function ? p->function->count : 1); k++)
      join_name(&common, code->names[number + (p->function ? code->sections[p->function->sections[k]].first_name : 0)]);
  }
  char shown[300];
  if (common.differ)
    snprintf(shown, sizeof shown, "%.*s*%s", (int)common.before, common.name,
             common.name + strlen(common.name) - common.after);
  weft_text_c_string(p->out, common.differ ? shown : common.name);
}

static void print_section(const printer *p, uint64_t section) {
  weft_text_printf(p->out, ".section = section_%" PRIu32, p->class->function_of[section]);
  if (p->class->functions[p->class->function_of[section]].columns)
    weft_text_printf(p->out, ", .parameter = %" PRIu64, p->class->base_of[section]);
}

/** A text with every placeholder replaced. */
static void substitute(const printer *p, const char *at, const char *end) {
  while (at < end) {
    const char *mark = at;
    while (mark < end && (*mark == PLACE_END || (unsigned char)*mark > PLACE_SECTION || *mark == 0)) mark++;
    weft_text_append(p->out, at, (size_t)(mark - at));
    if (mark == end) break;
    char *rest;
    uint64_t number = strtoull(mark + 1, &rest, 10);
    if (*mark == PLACE_PARAMETER) print_parameter(p, number);
    if (*mark == PLACE_NAME) print_name(p, number);
    if (*mark == PLACE_SECTION) print_section(p, number);
    at = rest + 1;
  }
}

static void print_functions(printer *p) {
  const weft_chip_code *code = &p->codes[p->class->first_chip];
  for (uint32_t f = 0; f < p->class->function_count; f++) {
    p->function = &p->class->functions[f];
    weft_text_printf(p->out, "static void section_%" PRIu32 "(weft_chip *chip, const int64_t *p, const int64_t *s) {\n",
                     f);
    const weft_text *body = &code->sections[p->function->sections[0]].text;
    substitute(p, body->data, body->data + body->length);
    weft_text_puts(p->out, "}\n\n");
  }
  p->function = NULL;
}

/** The tensor table, a line a slot; equal rows that follow one another, as received blocks do, are one designated
 * range.
 */
static void print_tensors(weft_text *out, const char *rows, const char *end) {
  uint64_t slot = 0;
  while (rows < end) {
    size_t length = (size_t)((const char *)memchr(rows, '\n', (size_t)(end - rows)) + 1 - rows);
    uint64_t times = 1;
    while ((size_t)(end - rows) >= (times + 1) * length && memcmp(rows, rows + times * length, length) == 0) times++;
    weft_text_puts(out, "    ");
    if (times > 1) weft_text_printf(out, "[%" PRIu64 " ... %" PRIu64 "] = ", slot, slot + times - 1);
    weft_text_append(out, rows, length);
    rows += times * length;
    slot += times;
  }
}

/** All but the functions. */
static void print_tables(const printer *p) {
  const weft_text *text = &p->codes[p->class->first_chip].text;
  const char *begin = text->data, *end = begin + text->length;
  const char *rows = memchr(begin, PLACE_ROWS, text->length),
             *after = memchr(rows + 1, PLACE_ROWS, (size_t)(end - rows - 1));
  weft_text table = {0};
  const printer of_rows = {.out = &table, .codes = p->codes, .class = p->class};
  substitute(p, begin, rows);
  substitute(&of_rows, rows + 1, after);
  if (!table.failed) print_tensors(p->out, table.data, table.data + table.length);
  p->out->failed |= table.failed;
  weft_text_free(&table);
  substitute(p, after + 1, end);
}

static void print_values(weft_text *out, uint64_t *printed, const weft_chip_code *code, uint64_t parameter) {
  enum { A_LINE = 32 };
  const weft_parameter *what = &code->parameters[parameter];
  for (uint64_t v = 0; v < what->count; v++)
    weft_text_printf(out, "%s%" PRId64 ",", (*printed)++ % A_LINE ? " " : "\n      ", code->values[what->first + v]);
}

static void print_row(weft_text *out, const weft_chip_code *code, const chip_class *class) {
  uint64_t printed = 1;
  for (uint64_t i = 0; i < code->parameter_count; i++)
    if (class->kept[i]) print_values(out, &printed, code, i);
  for (uint64_t s = 0; s < code->section_count; s++) {
    const weft_section_code *section = &code->sections[s];
    const weft_function *function = &class->functions[class->function_of[s]];
    for (uint64_t i = 0; i < section->parameter_count; i++)
      if (function->column_of[i] >= 0) print_values(out, &printed, code, section->first_parameter + i);
  }
}

static void print_rows(weft_text *out, const weft_chip_code *codes, const chip_class *class) {
  weft_text_puts(out, "/* A row a chip: its number, then what the tables and the functions' p name. */\n"
                      "static const int64_t parameters[] = {");
  for (uint32_t c = 0; c < class->count; c++) {
    weft_text_printf(out, "\n    %" PRIu32 ",", class->chips[c]);
    print_row(out, &codes[class->chips[c]], class);
  }
  weft_text_puts(out, "};\nstatic const uint16_t chips[] = {");
  for (uint32_t c = 0; c < class->count; c++) weft_text_printf(out, "%s%" PRIu32, c ? ", " : "", class->chips[c]);
  weft_text_puts(out, "};\n\n");
}

static void print_class(weft_text *out, const weft_chip_code *codes, const chip_class *class, uint32_t number) {
  const weft_chip_code *code = &codes[class->first_chip];
  weft_text_puts(out, "/* Generated by weft. The program of ");
  weft_text_printf(out, class->count == 1 ? "chip %" PRIu32 "." : "%" PRIu32 " chips.",
                   class->count == 1 ? class->first_chip : class->count);
  weft_text_puts(out, " Slots, steps and parameters: weft/program_abi.h. */\n#include <weft/program_abi.h>\n\n");
  printer p = {.out = out, .codes = codes, .class = class};
  print_functions(&p);
  print_tables(&p);
  print_rows(out, codes, class);
  uint64_t hash = weft_hash_bytes(0, out->data ? out->data : "", out->length);
  weft_text_printf(out,
                   "extern const weft_abi_class weft_class_%" PRIu32 ";\nconst weft_abi_class weft_class_%" PRIu32
                   " = {\n    .hash = UINT64_C(%" PRIu64 "), .tensors = tensors, .tensor_count = %" PRIu64
                   ", .steps = steps, .step_count = %" PRIu64
                   ",\n    .parameters = parameters, .parameter_count = %" PRIu64
                   ", .chips = chips, .chip_count = %" PRIu32 "};\n",
                   number, number, hash, code->slot_count, code->step_count, class->row_length, class->count);
}

/* ---- files
 * ------------------------------------------------------------------------------------------------------------------ */

static weft_status write_file(const char *directory, const char *name, weft_text *text, weft_codegen_report *report,
                              weft_diag *diag) {
  if (text->failed) return weft_error_memory(diag);
  char path[4096];
  if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) >= sizeof path)
    return weft_error(diag, WEFT_INVALID, "choose a shorter path", "the path of %s is too long", name);
  for (size_t i = 0; i < text->length; i++) report->lines += text->data[i] == '\n';
  weft_status status = weft_write_file(path, text->data, text->length, true, diag);
  weft_text_free(text);
  return status;
}

static weft_status write_program(const weft_chip_code *codes, uint32_t chips, uint32_t classes, const char *directory,
                                 weft_codegen_report *report, weft_diag *diag) {
  weft_text text = {0};
  weft_text_puts(&text, "/* Generated by weft: the classes of the program and which chips they are for. */\n#include "
                        "<weft/program_abi.h>\n\n"
                        "_Static_assert(WEFT_ABI_VERSION == ");
  weft_text_printf(&text, "%d, \"weft's headers and this program disagree: run weft codegen again\");\n\n",
                   WEFT_ABI_VERSION);
  for (uint32_t k = 0; k < classes; k++)
    weft_text_printf(&text, "extern const weft_abi_class weft_class_%" PRIu32 ";\n", k);
  weft_text_puts(&text, "extern const weft_abi_program weft_program_table;\nconst weft_abi_program weft_program_table "
                        "= {\n    .abi_version = WEFT_ABI_VERSION, .arithmetic = ");
  weft_text_printf(&text, "%d, .name = \"", WEFT_ARITHMETIC_VERSION);
  weft_text_c_string(&text, codes[0].program->name);
  weft_text_printf(
      &text, "\", .chips = %" PRIu32 ", .class_count = %" PRIu32 ",\n    .classes = (const weft_abi_class *const[]){",
      chips, classes);
  for (uint32_t k = 0; k < classes; k++) weft_text_printf(&text, "%s&weft_class_%" PRIu32, k ? ", " : "", k);
  weft_text_puts(&text, "},\n};\n");
  weft_status status = write_file(directory, "program.c", &text, report, diag);
  static const char *const mains[2][2] = {{"run.c", "weft_main_mpi"}, {"run_local.c", "weft_main_local"}};
  for (int i = 0; i < 2 && status == WEFT_OK; i++) {
    weft_text_printf(
        &text,
        "/* Generated by weft. */\n#include <weft/program_abi.h>\n\nextern const weft_abi_program weft_program_table;\n"
        "int main(int argc, char **argv) { return %s(&weft_program_table, argc, argv); }\n",
        mains[i][1]);
    status = write_file(directory, mains[i][0], &text, report, diag);
  }
  return status;
}

static weft_status write_library(const char *directory, weft_codegen_report *report, weft_diag *diag) {
  weft_text text = {0};
  weft_text_puts(
      &text,
      "/* Generated by weft: the program as a library. Link with libprogram.so. */\n#ifndef WEFT_GENERATED_PROGRAM_H\n"
      "#define WEFT_GENERATED_PROGRAM_H\n\n#include <mpi.h>\n#include <weft/tensor_file.h>\n\n"
      "/** Runs the program once on the ranks of `comm`, one a chip: collective. Every rank passes the whole inputs "
      "(or those its\n"
      " * chip reads) by dataset name, and gets in `outputs` the blocks its chip writes, as whole datasets on rank 0. "
      "Returns 0, or\n"
      " * weft's exit status; messages go to standard error of one rank. */\n"
      "int weft_prog_run(MPI_Comm comm, const weft_array_set *inputs, weft_array_set *outputs);\n\n#endif\n");
  weft_status status = write_file(directory, "program.h", &text, report, diag);
  if (status != WEFT_OK) return status;
  weft_text_puts(&text, "/* Generated by weft. */\n#include \"program.h\"\n\n#include <weft/program_run.h>\n\nextern "
                        "const weft_abi_program weft_program_table;\n\n"
                        "__attribute__((visibility(\"default\"))) int weft_prog_run(MPI_Comm comm, const "
                        "weft_array_set *inputs, weft_array_set *outputs) {\n"
                        "  return weft_program_run_mpi(&weft_program_table, comm, inputs, outputs);\n}\n");
  return write_file(directory, "library.c", &text, report, diag);
}

/** Class files of an earlier, larger program would be mistaken for this one's. */
static void remove_stale(const char *directory, uint32_t classes) {
  char path[4096];
  for (uint32_t k = classes;; k++) {
    int length = snprintf(path, sizeof path, "%s/class_%" PRIu32 ".c", directory, k);
    if (length < 0 || (size_t)length >= sizeof path || unlink(path) != 0) return;
    path[length - 1] = 'o';
    unlink(path);
  }
}

weft_status weft_codegen_write(weft_chip_code *codes, uint32_t chips, const char *directory,
                               const weft_codegen_options *options, weft_codegen_report *report, weft_diag *diag) {
  weft_arena *arena = weft_arena_new();
  if (!arena) return weft_error_memory(diag);
  chip_class *classes;
  int held;
  weft_status status = weft_directory_hold(directory, &held, diag);
  if (status == WEFT_OK) status = group(codes, chips, arena, &classes, &report->classes, diag);
  for (uint32_t k = 0; status == WEFT_OK && k < report->classes; k++) {
    status = layout_row(codes, &classes[k], arena, diag);
    if (status != WEFT_OK) break;
    weft_text text = {0};
    char name[32];
    snprintf(name, sizeof name, "class_%" PRIu32 ".c", k);
    print_class(&text, codes, &classes[k], k);
    report->walked +=
        codes[classes[k].first_chip].graph == NULL && codes[classes[k].first_chip].program->stage_count > 0;
    status = write_file(directory, name, &text, report, diag);
  }
  if (status == WEFT_OK) status = write_program(codes, chips, report->classes, directory, report, diag);
  if (status == WEFT_OK) status = write_library(directory, report, diag);
  if (status == WEFT_OK)
    status = weft_codegen_write_ninja(directory, report->classes, report->walked > 0, options, diag);
  if (status == WEFT_OK) remove_stale(directory, report->classes);
  weft_directory_release(held);
  weft_arena_free(arena);
  return status;
}
