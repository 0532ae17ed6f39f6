/* What the tests of grammars and postconditions share. */
#ifndef WEFT_TEST_GRAMMAR_SUPPORT_H
#define WEFT_TEST_GRAMMAR_SUPPORT_H

#include "weft/dataflow.h"
#include "weft/grammar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SAMPLES WEFT_SOURCE_DIR "/data/samples/grammars/"
#define HERE WEFT_SOURCE_DIR "/tests/dataflow/grammar/"

/** A grammar that must be right. */
weft_grammar *grammar_of(const char *text);
/** The only message that reading a wrong grammar gives, with line and column as "line:column: text"; static storage. */
const char *grammar_fault(const char *text);
/** What a grammar writes; the caller frees the text. */
weft_text sample_of(const weft_grammar *grammar, const weft_grammar_options *options);
/** What a grammar without random choices writes, checked. */
void assert_writes(const char *grammar, const char *expected);
/** The only message of a sample that must fail, as grammar_fault. */
const char *sample_fault(const char *grammar, const weft_grammar_options *options);

weft_postcondition *postcondition_of(const char *text);
const char *postcondition_fault(const char *text);

/** A context that knows every dialect. */
weft_mlir_context *context_new(void);
weft_mlir_file *module_of(weft_mlir_context *context, const char *name, const char *text);
weft_mlir_file *module_read(weft_mlir_context *context, const char *path);
/** "line:column: text" of a message; static storage. */
const char *message_text(const weft_diag *diag, uint64_t index);
/** Fails with all messages when the status is not WEFT_OK. */
void assert_ok(weft_status status, const weft_diag *diag);

#endif
