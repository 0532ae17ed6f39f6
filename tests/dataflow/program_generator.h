/* Random structured programs for property tests: nested if, for, while and index_switch over several memories, as MLIR
 * text. Every program ends: loops have few rounds. The same seed gives the same text. */
#ifndef WEFT_TESTS_DATAFLOW_PROGRAM_GENERATOR_H
#define WEFT_TESTS_DATAFLOW_PROGRAM_GENERATOR_H

#include "weft/base.h"

typedef struct program_options {
  uint64_t seed;
  int depth;      /* most levels of control */
  int statements; /* most in all */
  bool channels;  /* a dataflow.thread @entry with spatial regions that receive and send */
  bool no_alias;  /* the memories are declared to be apart */
  bool faults;    /* may divide and shift by anything */
} program_options;

/* A module with one entry @entry. Inputs of the graph: i32, i32, index, then three memrefs of 8 x i32; one i32 result.
 * Inputs of the thread: the same, then two channels to receive from, of i32 and index, and two to send to, of i32 and
 * f32. */
void generate_program(const program_options *options, weft_text *text);

#endif
