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
  weft_sample_options sample = {.rows = 64, .cols = 256, .hidden = 512, .heads = 8, .kv_heads = 2, .eps_nano = 10000};
  const char *dtype = "fp32", *file = "-";
  const weft_option options[] = {
      {.name = "rows", .kind = WEFT_OPTION_COUNT, .target = &sample.rows, .help = "rows of x (default 64)"},
      {.name = "cols", .kind = WEFT_OPTION_COUNT, .target = &sample.cols, .help = "columns of x (default 256)"},
      {.name = "hidden",
       .kind = WEFT_OPTION_COUNT,
       .target = &sample.hidden,
       .help = "width inside; rows of a table, experts, taps (default 512)"},
      {.name = "heads", .kind = WEFT_OPTION_COUNT, .target = &sample.heads, .help = "query heads (default 8)"},
      {.name = "kv-heads", .kind = WEFT_OPTION_COUNT, .target = &sample.kv_heads, .help = "key heads (default 2)"},
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
      WEFT_NEW_FILE_OPTION(file),
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
               "weft new " name " --rows 4 --cols 96 -o part.json", argc, argv);                                       \
  }
WEFT_SAMPLES(VERB)
#undef VERB

int weft_new_decoder(int argc, char **argv) {
  weft_decoder_options decoder = {.layers = 2,
                                  .width = 128,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .hidden = 256,
                                  .vocabulary = 96,
                                  .context = 128,
                                  .prompt = 32,
                                  .eps_nano = 10000};
  const char *dtype = "fp32", *file = "-";
#define COUNT(option, field, text)                                                                                     \
  { .name = option, .kind = WEFT_OPTION_COUNT, .target = &decoder.field, .help = text }
  const weft_option options[] = {
      COUNT("layers", layers, "layers (default 2)"),
      COUNT("d-model", width, "width of the model (default 128)"),
      COUNT("heads", heads, "query heads (default 4)"),
      COUNT("kv-heads", kv_heads, "key and value heads (default 2)"),
      COUNT("head-size", head_size, "columns of a head (default d-model / heads)"),
      COUNT("ffn", hidden, "width inside the network (default 256)"),
      COUNT("vocab", vocabulary, "tokens there are (default 96)"),
      COUNT("context", context, "positions that are kept (default 128)"),
      COUNT("prompt", prompt, "tokens of the prompt (default 32)"),
      {.name = "eps",
       .kind = WEFT_OPTION_COUNT,
       .target = &decoder.eps_nano,
       .argument = "N",
       .help = "eps of the norms in billionths (default 10000)"},
      {.name = "dtype",
       .kind = WEFT_OPTION_CHOICE,
       .target = &dtype,
       .choices = "fp32|bf16|fp16",
       .help = "format of matrices (default fp32)"},
      {.name = "trip",
       .kind = WEFT_OPTION_FLAG,
       .target = &decoder.trip,
       .help = "take the position from the input pos, and read values up to it only: run with --advance pos"},
      {.name = "name", .kind = WEFT_OPTION_TEXT, .target = &decoder.name, .help = "name of the program"},
      WEFT_NEW_FILE_OPTION(file),
      {0}};
#undef COUNT
  const weft_usage usage = {
      .synopsis = "new decoder [options]",
      .about =
          "Writes a decoder-only transformer that makes one token a step, keys and values kept as states: after the\n"
          "prompt it goes on with the most likely token. Run it with --steps; the state text holds what follows\n"
          "each position.",
      .example = "weft new decoder --layers 2 --d-model 128 --heads 4 --kv-heads 2 --ffn 256 --vocab 96 -o lm.json",
      .options = options,
      .least = 0,
      .most = 0};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  decoder.dtype = weft_format_by_name(dtype);
  weft_diag *diag = weft_diag_new();
  weft_graph *graph = NULL;
  weft_status status = diag ? weft_graph_new_decoder(&decoder, &graph, diag) : WEFT_UNAVAILABLE;
  if (status == WEFT_OK) status = weft_new_write(graph, file, diag);
  weft_graph_free(graph);
  return weft_tool_finish(status, diag, &arguments);
}
