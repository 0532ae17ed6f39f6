/* Verbs of `weft new` that are parts of transformers. */
#ifndef WEFT_TOOLS_NEW_SAMPLE_H
#define WEFT_TOOLS_NEW_SAMPLE_H

#include "weft/graph.h"

#define WEFT_DECLARE_SAMPLE(id, name, help) int weft_new_##id(int argc, char **argv);
WEFT_SAMPLES(WEFT_DECLARE_SAMPLE)
#undef WEFT_DECLARE_SAMPLE

int weft_new_decoder(int argc, char **argv);

/** The row of the option that says where the program goes. */
#define WEFT_NEW_FILE_OPTION(path)                                                                                     \
  {                                                                                                                    \
    .name = "file", .letter = 'o', .kind = WEFT_OPTION_TEXT, .target = &(path), .argument = "FILE",                    \
    .help = "where the program goes (default: standard output)"                                                        \
  }

/** Lowers a graph and writes the program. */
weft_status weft_new_write(const weft_graph *graph, const char *path, weft_diag *diag);

#endif
