/* What the tests of the dataflow room share: a context with all dialects, texts read and printed, programs run. */
#ifndef WEFT_TESTS_DATAFLOW_DF_SUPPORT_H
#define WEFT_TESTS_DATAFLOW_DF_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weft/dataflow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct world {
  weft_mlir_context *context;
  weft_diag *diag;
} world;

world world_new(void);
void world_free(world *w);
/* The text as a file, or NULL when it was refused. */
weft_mlir_file *world_parse(world *w, const char *text);
/* Parses or fails the test with the first message. */
weft_mlir_file *world_must_parse(world *w, const char *text);
/* The first message, or "". */
const char *world_message(const world *w);
/* malloc'ed text of a module. */
char *print_module(weft_mlir_op *module, bool generic);
/* Fails unless refusing `text` gives a message that contains `words`, in line `line` (0: any). */
void expect_refused(const char *text, uint64_t line, const char *words);

/* Named buffers of i32 words for running a program. */
enum { MEMORIES = 3, MEMORY_WORDS = 8 };
typedef struct memories {
  uint64_t words[MEMORIES][MEMORY_WORDS];
  weft_memory buffers[MEMORIES];
} memories;
void memories_fill(memories *m, const weft_mlir_type *element, uint64_t seed);
/* Empty when all words and access counts agree, else a description of the first difference. */
const char *memories_differ(const memories *a, const memories *b, bool counts);

/* What a random thread (program_generator.h) runs on. Not to be moved: `inputs` points into it. */
enum { THREAD_CHANNELS = 4, THREAD_INPUTS = 6 + THREAD_CHANNELS };
typedef struct thread_run {
  memories memory;
  weft_channel channels[THREAD_CHANNELS];
  weft_binding inputs[THREAD_INPUTS];
  weft_run_state state;
  char text[800];
} thread_run;
void thread_begin(world *w, uint64_t seed, thread_run *run);
void thread_end(thread_run *run);
/* Interprets the thread @entry of a module on a run begun anew; `order` 0: graphs fire in the order of the program. */
void thread_execute(world *w, weft_mlir_op *module, uint64_t seed, uint64_t order, uint64_t steps, thread_run *run);
/* As memories_differ, channels too. */
const char *thread_runs_differ(const thread_run *a, const thread_run *b, bool counts);

#endif
