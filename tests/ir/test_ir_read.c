/* What the reader refuses: the place, the path and what was expected. Each case changes one line of a good dump. */
#include "case_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char good[] = "{\n"
                           "  \"name\": \"p\",\n"
                           "  \"tile\": {\"rows\": 32, \"cols\": 32},\n"
                           "  \"tensors\": [],\n"
                           "  \"stages\": [],\n"
                           "  \"buffers\": [\n"
                           "    {\"id\": 0, \"name\": \"b\",\n"
                           "     \"kind\": {\"Fifo\": {\"depth_pages\": 2, \"page_tiles\": 1}},\n"
                           "     \"dtype\": \"Fp32\",\n"
                           "     \"space\": \"Local\", \"site\": {\"x\": 1, \"y\": 2}}\n"
                           "  ],\n"
                           "  \"edges\": [],\n"
                           "  \"semaphores\": [],\n"
                           "  \"work\": {\"items\": [{\"id\": 0, \"coord\": [0, 1],\n"
                           "    \"out\": {\"row0_t\": 0, \"col0_t\": 0, \"h_t\": 1, \"w_t\": 1}}], \"k_tiles\": 1},\n"
                           "  \"numerics\": \"Exact\",\n"
                           "  \"claim\": \"Exact\",\n"
                           "  \"acc_tiles_used\": 1,\n"
                           "  \"requires\": {\"handshakes\": [\"Fifo\"], \"interconnect\": []}\n"
                           "}\n";

/* The good dump with the first `from` replaced by `to`. */
static weft_text changed(const char *from, const char *to) {
  weft_text text = {0};
  const char *at = strstr(good, from);
  assert_non_null(at);
  weft_text_append(&text, good, (size_t)(at - good));
  weft_text_puts(&text, to);
  weft_text_puts(&text, at + strlen(from));
  return text;
}

static void expect(const weft_text *text, uint64_t line, const char *message, const char *hint) {
  weft_diag *diag = weft_diag_new();
  weft_program *program;
  weft_status status = weft_program_read("p.json", text->data, text->length, &program, diag);
  if (!status) fail_msg("should be refused: %s", text->data);
  assert_int_equal(status, WEFT_INVALID);
  assert_null(program);
  assert_int_equal(weft_diag_count(diag), 1);
  const weft_message *said = weft_diag_message(diag, 0);
  assert_string_equal(said->text, message);
  assert_string_equal(said->place.file, "p.json");
  assert_int_equal(said->place.line, line);
  if (hint) assert_non_null(strstr(said->hint, hint));
  weft_diag_free(diag);
}

static void good_is_read(void **state) {
  (void)state;
  weft_program *program = case_parse(good, strlen(good));
  assert_int_equal(program->buffer_count, 1);
  assert_int_equal(program->buffers[0].site.site.y, 2);
  assert_int_equal(program->buffers[0].alias_of, WEFT_NONE);
  assert_int_equal(program->buffers[0].depth_pages, 2);
  assert_int_equal(program->work.items[0].coord.second, 1);
  assert_int_equal(program->mem_banks, 1);
  assert_int_equal(program->chip, WEFT_NONE);
  assert_null(program->placement);
  assert_int_equal(weft_program_phase(program), WEFT_PHASE_TEMPLATE);
  weft_program_free(program);
}

static void refusals(void **state) {
  (void)state;
  static const struct {
    const char *from, *to;
    uint64_t line;
    const char *message, *hint;
  } cases[] = {
      {"\"id\": 0", "\"id\": -1", 7, "buffers[0].id: expected an integer from 0 to 4294967295, found -1", NULL},
      {"\"id\": 0", "\"id\": 0.0", 7, "buffers[0].id: expected an integer from 0 to 4294967295, found 0.0", NULL},
      {"\"id\": 0", "\"id\": 1e1", 7, "buffers[0].id: expected an integer from 0 to 4294967295, found 1e1", NULL},
      {"\"id\": 0", "\"id\": -0", 7, "buffers[0].id: expected an integer from 0 to 4294967295, found -0", NULL},
      {"\"id\": 0", "\"id\": 00", 7, "buffers[0].id: expected an integer from 0 to 4294967295, found 00", NULL},
      {"\"id\": 0", "\"id\": +1", 7, "buffers[0].id: expected an integer from 0 to 4294967295, found +1", NULL},
      {"\"id\": 0", "\"id\": \"0\"", 7, "buffers[0].id: expected an integer from 0 to 4294967295, found \"0\"", NULL},
      {"\"id\": 0", "\"id\": null", 7, "buffers[0].id: expected an integer from 0 to 4294967295, found null", NULL},
      {"\"id\": 0", "\"id\": 4294967296", 7,
       "buffers[0].id: expected an integer from 0 to 4294967295, found 4294967296", NULL},
      {"\"page_tiles\": 1", "\"page_tiles\": 18446744073709551616", 8,
       "buffers[0].kind.Fifo.page_tiles: expected an integer from 0 to 18446744073709551615, found "
       "18446744073709551616",
       NULL},
      {"\"x\": 1", "\"x\": 65536", 10, "buffers[0].site.x: expected an integer from 0 to 65535, found 65536", NULL},
      {"\"id\": 0, \"name\"", "\"name\"", 7, "buffers[0]: expected a buffer, found one without the field id", NULL},
      {"\"id\": 0", "\"id\": 0, \"id\": 0", 7, "buffers[0]: expected each field once, found id again", NULL},
      {"\"id\": 0", "\"id\": 0, \"colour\": 3", 7, "buffers[0]: expected a field it knows, found \"colour\"",
       "the fields of a buffer are id, name, kind, dtype, space, site, origin, alias_of"},
      {"\"Fifo\": {", "\"Queue\": {", 8, "buffers[0].kind: expected a buffer kind, found \"Queue\"",
       "a buffer kind is one of Fifo, Interm or Accumulator"},
      {"{\"Fifo\": {\"depth_pages\": 2, \"page_tiles\": 1}}", "\"Fifo\"", 8,
       "buffers[0].kind: expected the data of Fifo, found its name alone", NULL},
      {"\"page_tiles\": 1}}", "\"page_tiles\": 1}, \"Interm\": {}}", 8,
       "buffers[0].kind: expected a buffer kind with one name, found another", NULL},
      {"\"Local\"", "{\"Local\": null}", 10, "buffers[0].space: expected a memory space, found an object", NULL},
      {"\"claim\": \"Exact\"", "\"claim\": {\"Exact\": null}", 17,
       "claim: expected \"Exact\" alone, found it with data", NULL},
      {"\"Fp32\"", "\"FP32\"", 9, "buffers[0].dtype: expected an element format, found \"FP32\"",
       "one of Int8, Int16, Int32, Int64, Fp8, Bf16, Fp16 or Fp32"},
      {"[0, 1]", "[0]", 14, "work.items[0].coord: expected an array of two integers, found an array of 1", NULL},
      {"[0, 1]", "[0, 1, 2]", 14, "work.items[0].coord: expected an array of two integers, found a longer one", NULL},
      {"[0, 1]", "{}", 14, "work.items[0].coord: expected an array of two integers, found an object", NULL},
      {"[\"Fifo\"]", "[\"Fifo\", \"Mail\"]", 19, "requires.handshakes[1]: expected a handshake kind, found \"Mail\"",
       NULL},
      {"\"name\": \"b\"", "\"name\": 7", 7, "buffers[0].name: expected a string, found 7", NULL},
      {"\"name\": \"b\"", "\"name\": \"\\ud800\"", 7, "buffers[0].name: an unpaired surrogate in a string", NULL},
      {"\"name\": \"b\"", "\"name\": \"\\udc00\\ud800\"", 7, "buffers[0].name: an unpaired surrogate in a string",
       NULL},
      {"\"name\": \"b\"", "\"name\": \"\\u12g4\"", 7, "buffers[0].name: expected four hexadecimal digits after \\u",
       NULL},
      {"\"name\": \"b\"", "\"name\": \"\\x41\"", 7,
       "buffers[0].name: expected an escape: \\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u", NULL},
      {"\"name\": \"b\"", "\"name\": \"a\tb\"", 7, "buffers[0].name: a control character in a string must be escaped",
       NULL},
      {"\"name\": \"b\"", "\"name\": \"\xff\"", 7, "buffers[0].name: this byte is not UTF-8", NULL},
      {"\"name\": \"b\"", "\"name\": \"\xc0\x80\"", 7, "buffers[0].name: this byte is not UTF-8", NULL},
      {"\"name\": \"b\"", "\"name\": \"\xed\xa0\x80\"", 7, "buffers[0].name: this byte is not UTF-8", NULL},
      {"\"edges\": [],", "\"edges\": [,],", 12, "edges[0]: expected an edge, found ,", NULL},
      {"\"edges\": [],", "\"edges\": [] \"x\",", 12, "expected a comma or }, found \"x\"", NULL},
      {"\"edges\": []", "\"edges\" []", 12, "expected a colon, found an array", NULL},
      {"\"edges\": [],", "\"edges\": [],,", 12, "expected a field's name, found ,", NULL},
      {"\"interconnect\": []}\n}", "\"interconnect\": []}\n} x", 20, "expected the end of the text, found x", NULL},
      {"\"interconnect\": []}\n}", "\"interconnect\": []}\n,}", 20, "expected a field's name, found }", NULL},
      {"{\n  \"name\"", "\xef\xbb\xbf{\n  \"name\"", 1, "expected a spatial program, found \\xef", NULL},
      {"{\n  \"name\"", "[{\n  \"name\"", 1, "expected a spatial program, found an array", NULL},
      {"\"tile\": {", "\"tile\": /* */ {", 3, "tile: expected a tile shape, found /", NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    weft_text text = changed(cases[i].from, cases[i].to);
    expect(&text, cases[i].line, cases[i].message, cases[i].hint);
    weft_text_free(&text);
  }
}

/* Every proper beginning of a dump is refused, and never read past its end (the copy is exactly as long). */
static void every_beginning(void **state) {
  (void)state;
  for (size_t length = 0; length < strlen(good) - 2; length++) {
    char *copy = malloc(length ? length : 1);
    memcpy(copy, good, length);
    weft_program *program;
    assert_int_equal(weft_program_read("p.json", copy, length, &program, NULL), WEFT_INVALID);
    free(copy);
  }
}

static weft_text nested(unsigned levels) {
  weft_text text = {0};
  const char *at = strstr(good, "\"tensors\"");
  weft_text_append(&text, good, (size_t)(at - good));
  weft_text_puts(&text, "\"tensors\": ");
  for (unsigned i = 0; i < levels; i++) weft_text_puts(&text, "[");
  return text;
}

/* A body nested in Adds; it stands 9 levels deep and every Add takes two. */
static weft_text deep_body(unsigned adds) {
  weft_text text = {0};
  const char *at = strstr(good, "\"stages\": []");
  weft_text_append(&text, good, (size_t)(at - good));
  weft_text_puts(&text,
                 "\"stages\": [{\"id\": 0, \"name\": \"s\", \"kind\": {\"Compute\": {\"Generic\": {\"iters\": [], "
                 "\"ins\": [], \"out\": {\"base\": 0, \"terms\": []}, \"body\": ");
  for (unsigned i = 0; i < adds; i++) weft_text_puts(&text, "{\"Add\": [{\"Const\": 1}, ");
  weft_text_puts(&text, "{\"Const\": 0}");
  for (unsigned i = 0; i < adds; i++) weft_text_puts(&text, "]}");
  weft_text_puts(&text, "}}}, \"role\": \"Compute\", \"ins\": [], \"outs\": []}]");
  weft_text_puts(&text, at + strlen("\"stages\": []"));
  return text;
}

static void depth(void **state) {
  (void)state;
  weft_text text = nested(127);
  expect(&text, 4, "tensors[0]: expected a tensor, found an array", NULL);
  weft_text_free(&text);

  /* Program, stages, stage, kind, Compute, Generic, and the Const of a body: 7 levels around 60 Adds. */
  text = deep_body(60);
  weft_program *program = case_parse(text.data, text.length);
  assert_int_equal(program->stages[0].compute->generic.body.node_count, 121);
  weft_program_free(program);
  weft_text_free(&text);
  text = deep_body(61);
  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_program_read("p.json", text.data, text.length, &program, diag), WEFT_INVALID);
  const char *said = weft_diag_message(diag, 0)->text;
  assert_non_null(strstr(said, "stages[0].kind.Compute.Generic.body.Add[1].Add[1]"));
  assert_non_null(strstr(said, "expected at most 127 nested arrays and objects, found one more"));
  weft_diag_free(diag);
  weft_text_free(&text);
}

/* A body's nodes are in post-order, left operand first, whatever the order of the fields. */
static void body_order(void **state) {
  (void)state;
  weft_text text = deep_body(0);
  weft_text reordered = {0};
  const char *at = strstr(text.data, "{\"Const\": 0}");
  weft_text_append(&reordered, text.data, (size_t)(at - text.data));
  weft_text_puts(&reordered,
                 "{\"Select\": {\"otherwise\": {\"Shr\": {\"by\": 3, \"arg\": {\"Operand\": 2}}}, \"then\": "
                 "{\"Operand\": 1}, \"cond\": {\"AxisGe\": [5, {\"Operand\": 4}]}}}");
  weft_text_puts(&reordered, at + strlen("{\"Const\": 0}"));
  weft_program *program = case_parse(reordered.data, reordered.length);
  const weft_body *body = &program->stages[0].compute->generic.body;
  assert_int_equal(body->node_count, 4);
  assert_int_equal(body->nodes[0].kind, WEFT_BODY_OPERAND);
  assert_int_equal(body->nodes[0].value, 1);
  assert_int_equal(body->nodes[1].value, 2);
  assert_int_equal(body->nodes[2].kind, WEFT_BODY_SHR);
  assert_int_equal(body->nodes[2].value, 3);
  assert_int_equal(body->nodes[2].child[0], 1);
  assert_int_equal(body->nodes[3].kind, WEFT_BODY_SELECT);
  assert_int_equal(body->nodes[3].child[0], 0);
  assert_int_equal(body->nodes[3].child[1], 2);
  assert_true(body->nodes[3].pred.ge);
  assert_true(body->nodes[3].pred.operand_bound);
  assert_int_equal(body->nodes[3].pred.bound, 4);
  weft_program_free(program);
  weft_text_free(&reordered);
  weft_text_free(&text);
}

static void files(void **state) {
  (void)state;
  weft_program *program;
  weft_diag *diag = weft_diag_new();
  assert_int_equal(weft_program_read_file(CASES "/valid/template-gemm.json", &program, diag), WEFT_OK);
  assert_string_equal(program->name, "gemm");
  weft_program_free(program);
  assert_int_equal(weft_program_read_file(CASES "/no such file", &program, diag), WEFT_INVALID);
  assert_null(program);
  weft_diag_free(diag);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(good_is_read), cmocka_unit_test(refusals),   cmocka_unit_test(every_beginning),
      cmocka_unit_test(depth),        cmocka_unit_test(body_order), cmocka_unit_test(files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
