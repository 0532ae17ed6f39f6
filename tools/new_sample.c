/* weft new: parts of transformers as programs of their own. */
#include "new_sample.h"

#include "options.h"

weft_status weft_new_write(const weft_graph *graph, const char *path, weft_diag *diag) {
  weft_program *program;
  weft_status status = weft_graph_lower(graph, &program, diag);
  if (status != WEFT_OK) return status;
  weft_text text = {0};
  weft_program_write(program, &text);
  status = text.failed ? weft_error_memory(diag) : weft_write_file(path, text.data, text.length, false, diag);
  weft_text_free(&text);
  weft_program_free(program);
  return status;
}

static int run(weft_sample_kind kind, const char *synopsis, const char *about, const char *example, int argc,
               char **argv) {
  weft_sample_options sample = {.rows = 64, .cols = 256, .hidden = 512, .eps_nano = 10000};
  const char *dtype = "fp32", *file = "-";
  const weft_option options[] = {
      {.name = "rows", .kind = WEFT_OPTION_COUNT, .target = &sample.rows, .help = "rows of x (default 64)"},
      {.name = "cols", .kind = WEFT_OPTION_COUNT, .target = &sample.cols, .help = "columns of x (default 256)"},
      {.name = "hidden",
       .kind = WEFT_OPTION_COUNT,
       .target = &sample.hidden,
       .help = "gated-mlp: width inside (default 512)"},
      {.name = "eps",
       .kind = WEFT_OPTION_COUNT,
       .target = &sample.eps_nano,
       .argument = "N",
       .help = "norms: eps in billionths (default 10000)"},
      {.name = "dtype",
       .kind = WEFT_OPTION_CHOICE,
       .target = &dtype,
       .choices = "fp32|bf16|fp16",
       .help = "format of x and of matrices (default fp32)"},
      {.name = "name", .kind = WEFT_OPTION_TEXT, .target = &sample.name, .help = "name of the program"},
      {.name = "file",
       .letter = 'o',
       .kind = WEFT_OPTION_TEXT,
       .target = &file,
       .argument = "FILE",
       .help = "where the program goes (default: standard output)"},
      {0}};
  const weft_usage usage = {
      .synopsis = synopsis, .about = about, .example = example, .options = options, .least = 0, .most = 0};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  sample.dtype = weft_format_by_name(dtype);
  weft_diag *diag = weft_diag_new();
  weft_graph *graph = NULL;
  weft_status status = diag ? weft_graph_new_sample(kind, &sample, &graph, diag) : WEFT_UNAVAILABLE;
  if (status == WEFT_OK) status = weft_new_write(graph, file, diag);
  weft_graph_free(graph);
  return weft_tool_finish(status, diag, &arguments);
}

#define VERB(id, name, help)                                                                                           \
  int weft_new_##id(int argc, char **argv) {                                                                           \
    return run(WEFT_SAMPLE_##id, "new " name " [options]", "Writes a program: " help ".",                              \
               "weft new " name " --rows 4 --cols 100 -o part.json", argc, argv);                                      \
  }
WEFT_SAMPLES(VERB)
#undef VERB
