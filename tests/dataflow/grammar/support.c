#include "support.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *message_text(const weft_diag *diag, uint64_t index) {
  static char text[2048];
  const weft_message *m = weft_diag_message(diag, index);
  snprintf(text, sizeof text, "%" PRIu64 ":%" PRIu64 ": %s", m->place.line, m->place.column, m->text);
  return text;
}

void assert_ok(weft_status status, const weft_diag *diag) {
  if (status == WEFT_OK) return;
  for (uint64_t i = 0; i < weft_diag_count(diag); i++) print_error("%s\n", message_text(diag, i));
  fail_msg("status %d", (int)status);
}

static const char *only_message(const weft_diag *diag) {
  static char text[2048];
  assert_int_equal(weft_diag_count(diag), 1);
  snprintf(text, sizeof text, "%s", message_text(diag, 0));
  return text;
}

weft_grammar *grammar_of(const char *text) {
  weft_diag *diag = weft_diag_new();
  weft_grammar *grammar;
  assert_ok(weft_grammar_parse("g.pg", text, strlen(text), &grammar, diag), diag);
  assert_int_equal(weft_diag_count(diag), 0);
  weft_diag_free(diag);
  return grammar;
}

const char *grammar_fault(const char *text) {
  weft_diag *diag = weft_diag_new();
  weft_grammar *grammar;
  assert_int_equal(weft_grammar_parse("g.pg", text, strlen(text), &grammar, diag), WEFT_INVALID);
  assert_null(grammar);
  const char *message = only_message(diag);
  assert_string_equal(weft_diag_message(diag, 0)->place.file, "g.pg");
  weft_diag_free(diag);
  return message;
}

weft_text sample_of(const weft_grammar *grammar, const weft_grammar_options *options) {
  weft_diag *diag = weft_diag_new();
  weft_text text = {0};
  assert_ok(weft_grammar_sample(grammar, options, &text, diag), diag);
  weft_text_puts(&text, "");
  weft_diag_free(diag);
  return text;
}

void assert_writes(const char *grammar, const char *expected) {
  weft_grammar *g = grammar_of(grammar);
  for (uint64_t seed = 0; seed < 3; seed++) {
    weft_text text = sample_of(g, &(weft_grammar_options){.seed = seed});
    assert_string_equal(text.data, expected);
    weft_text_free(&text);
  }
  weft_grammar_free(g);
}

const char *sample_fault(const char *grammar, const weft_grammar_options *options) {
  weft_grammar *g = grammar_of(grammar);
  weft_diag *diag = weft_diag_new();
  weft_text text = {0};
  weft_text_puts(&text, "kept");
  assert_int_equal(weft_grammar_sample(g, options ? options : &(weft_grammar_options){0}, &text, diag), WEFT_INVALID);
  assert_string_equal(text.data, "kept");
  const char *message = only_message(diag);
  weft_text_free(&text);
  weft_diag_free(diag);
  weft_grammar_free(g);
  return message;
}

weft_postcondition *postcondition_of(const char *text) {
  weft_diag *diag = weft_diag_new();
  weft_postcondition *post;
  assert_ok(weft_postcondition_parse("p.spct", text, strlen(text), &post, diag), diag);
  assert_int_equal(weft_diag_count(diag), 0);
  weft_diag_free(diag);
  return post;
}

const char *postcondition_fault(const char *text) {
  weft_diag *diag = weft_diag_new();
  weft_postcondition *post;
  assert_int_equal(weft_postcondition_parse("p.spct", text, strlen(text), &post, diag), WEFT_INVALID);
  assert_null(post);
  const char *message = only_message(diag);
  weft_diag_free(diag);
  return message;
}

weft_mlir_context *context_new(void) {
  weft_diag *diag = weft_diag_new();
  weft_mlir_context *context = weft_mlir_context_new();
  assert_non_null(context);
  assert_ok(weft_mlir_register_standard(context, diag), diag);
  assert_ok(weft_dataflow_register(context, diag), diag);
  weft_diag_free(diag);
  return context;
}

weft_mlir_file *module_of(weft_mlir_context *context, const char *name, const char *text) {
  weft_diag *diag = weft_diag_new();
  weft_mlir_file *file;
  assert_ok(weft_mlir_parse(context, name, text, strlen(text), true, &file, diag),
            diag); /* not verified: two ops may share a symbol */
  assert_int_equal(file->module_count, 1);
  weft_diag_free(diag);
  return file;
}

weft_mlir_file *module_read(weft_mlir_context *context, const char *path) {
  weft_diag *diag = weft_diag_new();
  weft_mlir_file *file;
  assert_ok(weft_mlir_read(context, path, &file, diag), diag);
  assert_int_equal(file->module_count, 1);
  weft_diag_free(diag);
  return file;
}
