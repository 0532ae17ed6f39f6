/* Printing ops in both forms. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- bytes ---------------------------------------------------------------------------------------------------- */

static void flush(weft_mlir_printer *p) {
  if (p->used && !p->failed) p->failed = !p->write(p->context, p->buffer, p->used);
  p->used = 0;
}

void printer_bytes(weft_mlir_printer *p, const char *bytes, size_t length) {
  if (length > PRINTER_BUFFER - p->used || !bytes) flush(p);
  if (length > PRINTER_BUFFER) {
    if (!p->failed) p->failed = !p->write(p->context, bytes, length);
  } else if (length) {
    memcpy(p->buffer + p->used, bytes, length);
    p->used += length;
  }
}

void printer_u64(weft_mlir_printer *p, uint64_t value) {
  char digits[20];
  size_t at = sizeof digits;
  do {
    digits[--at] = (char)('0' + value % 10);
    value /= 10;
  } while (value);
  printer_bytes(p, digits + at, sizeof digits - at);
}

void printer_i64(weft_mlir_printer *p, int64_t value) {
  if (value < 0) printer_char(p, '-');
  printer_u64(p, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void printer_quoted(weft_mlir_printer *p, const char *bytes, uint64_t length) {
  static const char hex[] = "0123456789ABCDEF";
  printer_char(p, '"');
  for (uint64_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)bytes[i];
    if (c >= ' ' && c < 0x7f && c != '"' && c != '\\') {
      printer_char(p, (char)c);
    } else {
      printer_char(p, '\\');
      if (c == '\\') {
        printer_char(p, '\\');
      } else {
        printer_char(p, hex[c >> 4]);
        printer_char(p, hex[c & 15]);
      }
    }
  }
  printer_char(p, '"');
}

void weft_mlir_put(weft_mlir_printer *p, const char *text) { printer_bytes(p, text, strlen(text)); }

void weft_mlir_putf(weft_mlir_printer *p, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length > 0) printer_bytes(p, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

void weft_mlir_put_symbol(weft_mlir_printer *p, const char *name) {
  printer_char(p, '@');
  if (mlir_is_word(name, strlen(name)))
    weft_mlir_put(p, name);
  else
    printer_quoted(p, name, strlen(name));
}

/* ---- values --------------------------------------------------------------------------------------------------- */

/* A value's mark is its number: results of one op share it, arguments have a count of their own. */
void weft_mlir_put_value(weft_mlir_printer *p, const weft_mlir_value *value) {
  if (value->is_argument) {
    printer_bytes(p, "%arg", 4);
    printer_u64(p, value->mark);
    return;
  }
  printer_char(p, '%');
  printer_u64(p, value->mark);
  if (((const weft_mlir_op *)value->owner)->result_count > 1) {
    printer_char(p, '#');
    printer_u64(p, value->index);
  }
}

void weft_mlir_put_operands(weft_mlir_printer *p, const weft_mlir_op *op, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; i++) {
    if (i > begin) printer_bytes(p, ", ", 2);
    weft_mlir_put_value(p, op->operands[i]);
  }
}

void weft_mlir_put_operand_types(weft_mlir_printer *p, const weft_mlir_op *op, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; i++) {
    if (i > begin) printer_bytes(p, ", ", 2);
    weft_mlir_put_type(p, op->operands[i]->type);
  }
}

void weft_mlir_put_result_types(weft_mlir_printer *p, const weft_mlir_op *op) {
  for (uint32_t i = 0; i < op->result_count; i++) {
    if (i) printer_bytes(p, ", ", 2);
    weft_mlir_put_type(p, op->results[i].type);
  }
}

void weft_mlir_put_functional(weft_mlir_printer *p, const weft_mlir_op *op) {
  printer_char(p, '(');
  weft_mlir_put_operand_types(p, op, 0, op->operand_count);
  printer_bytes(p, ") -> ", 5);
  bool bare = op->result_count == 1 && op->results[0].type->kind != WEFT_MLIR_FUNCTION_TYPE;
  if (!bare) printer_char(p, '(');
  weft_mlir_put_result_types(p, op);
  if (!bare) printer_char(p, ')');
}

/* Numbers every value and block below `op` in the order of the text, arguments included: forward references need it. */
static void number_values(weft_mlir_printer *p, weft_mlir_op *op, bool anew) {
  uint32_t values = p->next_value, arguments = p->next_argument;
  if (anew) p->next_value = p->next_argument = 0;
  for (uint32_t r = 0; r < op->region_count; r++) {
    uint32_t blocks = 0;
    for (weft_mlir_block *b = op->extra->regions[r].first; b; b = b->next) {
      b->mark = blocks++;
      for (uint32_t i = 0; i < b->argument_count; i++) b->arguments[i].mark = p->next_argument++;
      for (weft_mlir_op *inner = b->first; inner; inner = inner->next) {
        for (uint32_t i = 0; i < inner->result_count; i++) inner->results[i].mark = p->next_value;
        p->next_value += inner->result_count > 0;
        if (inner->region_count) number_values(p, inner, strcmp(op->name->text, "builtin.module") == 0);
      }
    }
  }
  if (anew) {
    p->next_value = values;
    p->next_argument = arguments;
  }
}

/* ---- ops ------------------------------------------------------------------------------------------------------ */

static void put_op(weft_mlir_printer *p, const weft_mlir_op *op);

static void indent(weft_mlir_printer *p) {
  static const char spaces[] = "                                                                ";
  for (uint32_t left = p->indent; left;) {
    uint32_t now = left < sizeof spaces - 1 ? left : (uint32_t)sizeof spaces - 1;
    printer_bytes(p, spaces, now);
    left -= now;
  }
}

static void put_label(weft_mlir_printer *p, const weft_mlir_block *block) {
  indent(p);
  printer_bytes(p, "^bb", 3);
  printer_u64(p, block->mark);
  if (block->argument_count) {
    printer_char(p, '(');
    for (uint32_t i = 0; i < block->argument_count; i++) {
      if (i) printer_bytes(p, ", ", 2);
      weft_mlir_put_value(p, &block->arguments[i]);
      printer_bytes(p, ": ", 2);
      weft_mlir_put_type(p, block->arguments[i].type);
    }
    printer_char(p, ')');
  }
  printer_bytes(p, ":\n", 2);
}

void weft_mlir_put_region(weft_mlir_printer *p, const weft_mlir_region *region, bool arguments, bool terminator) {
  printer_bytes(p, "{\n", 2);
  for (const weft_mlir_block *b = region->first; b; b = b->next) {
    /* An only block without arguments is clear without a label, unless the region would look empty without it. */
    if (b != region->first || (arguments && b->argument_count) || (arguments && !b->first)) put_label(p, b);
    p->indent += 2;
    for (const weft_mlir_op *op = b->first; op && !p->failed; op = op->next) {
      if (!terminator && op == b->last && op->name->spec && op->name->spec->traits & WEFT_MLIR_TERMINATOR) break;
      indent(p);
      put_op(p, op);
      printer_char(p, '\n');
    }
    p->indent -= 2;
  }
  indent(p);
  printer_char(p, '}');
}

static void put_successors(weft_mlir_printer *p, const weft_mlir_op *op) {
  printer_char(p, '[');
  for (uint32_t i = 0; i < op->successor_count; i++) {
    if (i) printer_bytes(p, ", ", 2);
    printer_bytes(p, "^bb", 3);
    printer_u64(p, op->extra->successors[i]->mark);
  }
  printer_char(p, ']');
}

static void put_generic(weft_mlir_printer *p, const weft_mlir_op *op) {
  printer_quoted(p, op->name->text, strlen(op->name->text));
  printer_char(p, '(');
  weft_mlir_put_operands(p, op, 0, op->operand_count);
  printer_char(p, ')');
  if (op->successor_count) put_successors(p, op);
  if (op->properties) {
    printer_bytes(p, " <{", 3);
    printer_members(p, op->properties, NULL, NULL);
    printer_bytes(p, "}>", 2);
  }
  for (uint32_t i = 0; i < op->region_count; i++) {
    weft_mlir_put(p, i ? ", " : " (");
    weft_mlir_put_region(p, &op->extra->regions[i], true, true);
  }
  if (op->region_count) printer_char(p, ')');
  if (op->attributes) {
    printer_bytes(p, " {", 2);
    printer_members(p, op->attributes, NULL, NULL);
    printer_char(p, '}');
  }
  printer_bytes(p, " : ", 3);
  weft_mlir_put_functional(p, op);
}

static void put_custom(weft_mlir_printer *p, const weft_mlir_op *op) {
  const char *name = op->name->text;
  if (strncmp(name, "builtin.", 8) == 0 || strcmp(name, "func.return") == 0) name = strchr(name, '.') + 1;
  weft_mlir_put(p, name);
  if (op->name->spec->print)
    op->name->spec->print(p, op);
  else
    mlir_format_print(p, mlir_op_name_of(op)->format, op);
}

static void put_op(weft_mlir_printer *p, const weft_mlir_op *op) {
  if (op->result_count) {
    printer_char(p, '%');
    printer_u64(p, op->results[0].mark);
    if (op->result_count > 1) {
      printer_char(p, ':');
      printer_u64(p, op->result_count);
    }
    printer_bytes(p, " = ", 3);
  }
  const weft_mlir_op_spec *spec = op->name->spec;
  if (p->options.generic || !spec || (!spec->print && !spec->format))
    put_generic(p, op);
  else
    put_custom(p, op);
  if (p->options.locations) printer_location(p, op);
}

weft_status weft_mlir_print(weft_mlir_op *op, weft_mlir_print_options options, weft_mlir_write write, void *context) {
  weft_mlir_printer p = {.write = write, .context = context, .options = options, .buffer = malloc(PRINTER_BUFFER)};
  if (!p.buffer) return WEFT_UNAVAILABLE;
  for (uint32_t i = 0; i < op->result_count; i++) op->results[i].mark = 0;
  p.next_value = op->result_count > 0;
  number_values(&p, op, false);
  put_op(&p, op);
  printer_char(&p, '\n');
  flush(&p);
  free(p.buffer);
  return p.failed ? WEFT_UNAVAILABLE : WEFT_OK;
}

static bool append(void *context, const char *bytes, size_t length) {
  weft_text_append(context, bytes, length);
  return !((weft_text *)context)->failed;
}

void weft_mlir_print_to_text(weft_mlir_op *op, weft_mlir_print_options options, weft_text *text) {
  if (weft_mlir_print(op, options, append, text) != WEFT_OK) text->failed = true;
}

void weft_mlir_print_file(const weft_mlir_file *file, weft_mlir_print_options options, weft_text *text) {
  for (uint64_t i = 0; i < file->module_count; i++) {
    if (i) weft_text_puts(text, "\n// -----\n\n");
    weft_mlir_print_to_text(file->modules[i], options, text);
  }
}

/* A type or attribute through a printer of its own. */
static void print_piece(const weft_mlir_type *type, const weft_mlir_attribute *attribute, weft_text *text) {
  weft_mlir_printer p = {.write = append, .context = text, .buffer = malloc(PRINTER_BUFFER)};
  if (!p.buffer) {
    text->failed = true;
    return;
  }
  if (type)
    weft_mlir_put_type(&p, type);
  else
    weft_mlir_put_attribute(&p, attribute);
  flush(&p);
  free(p.buffer);
}

void weft_mlir_type_text(const weft_mlir_type *type, weft_text *text) { print_piece(type, NULL, text); }
void weft_mlir_attribute_print(const weft_mlir_attribute *attribute, weft_text *text) {
  print_piece(NULL, attribute, text);
}
