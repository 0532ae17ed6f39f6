/* weft new: sample programs. */
#include "new_sample.h"
#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/** What both kinds take. */
typedef struct request {
  const char *dtype, *name, *input, *output, *file, *requant;
  bool bias, relu, relu_last;
  uint64_t segments;
  weft_option_list ranges;
  const char *layers;      /**< mlp */
  uint64_t batch, m, k, n; /**< mlp; gemm */
} request;

/** The lists of a request, read; everything is freed by free_lists. */
typedef struct lists {
  uint64_t *layers;
  uint32_t layer_count;
  int64_t *multipliers;
  uint32_t *shifts;
  uint32_t requant_count;
  weft_named_range *ranges;
  char *names; /**< of the ranges */
} lists;

static void free_lists(lists *l) {
  free(l->layers);
  free(l->multipliers);
  free(l->shifts);
  free(l->ranges);
  free(l->names);
}

/* ---- reading lists ------------------------------------------------------------------------------------------------
 */

static uint32_t commas(const char *text) {
  uint32_t count = 0;
  for (; *text; text++) count += *text == ',';
  return count;
}

/** Reads a number that ends at `end`, a character, or at the end of the text; moves past it. */
static bool read_signed(const char **text, char end, int64_t *value) {
  char *stop;
  errno = 0;
  long long number = strtoll(*text, &stop, 10);
  if (errno || stop == *text || (*stop != end && *stop != '\0') || **text == ' ' || **text == '+') return false;
  *value = number;
  *text = *stop ? stop + 1 : stop;
  return end != ':' || *stop == ':';
}

static bool read_layers(const char *text, lists *l) {
  l->layers = calloc((size_t)commas(text) + 1, sizeof *l->layers);
  if (!l->layers) return false;
  for (;;) {
    int64_t width;
    if (!read_signed(&text, ',', &width) || width < 0) return false;
    l->layers[l->layer_count++] = (uint64_t)width;
    if (!*text) return text[-1] != ',';
  }
}

static bool read_requant(const char *text, lists *l) {
  size_t room = (size_t)commas(text) + 1;
  l->multipliers = calloc(room, sizeof *l->multipliers);
  l->shifts = calloc(room, sizeof *l->shifts);
  if (!l->multipliers || !l->shifts) return false;
  for (;;) {
    int64_t shift;
    if (!read_signed(&text, ':', &l->multipliers[l->requant_count]) || !read_signed(&text, ',', &shift) || shift < 0 ||
        shift > 63)
      return false;
    l->shifts[l->requant_count++] = (uint32_t)shift;
    if (!*text) return text[-1] != ',';
  }
}

static bool read_ranges(const weft_option_list *list, lists *l) {
  size_t length = 1;
  for (uint64_t i = 0; i < list->count; i++) length += strlen(list->items[i]) + 1;
  l->ranges = calloc(list->count + 1, sizeof *l->ranges);
  l->names = calloc(length, 1);
  if (!l->ranges || !l->names) return false;
  char *name = l->names;
  for (uint64_t i = 0; i < list->count; i++) {
    const char *equals = strrchr(list->items[i], '=');
    if (!equals || equals == list->items[i]) return false;
    memcpy(name, list->items[i], (size_t)(equals - list->items[i]));
    const char *text = equals + 1;
    l->ranges[i].name = name;
    if (!read_signed(&text, ':', &l->ranges[i].low) || !read_signed(&text, '\0', &l->ranges[i].high) || *text)
      return false;
    name += strlen(name) + 1;
  }
  return true;
}

/* ---- making -------------------------------------------------------------------------------------------------------
 */

static weft_status make_mlp(const request *r, const lists *l, weft_graph **graph, weft_diag *diag) {
  const weft_mlp_options options = {.layers = l->layers,
                                    .layer_count = l->layer_count,
                                    .batch = r->batch,
                                    .dtype = weft_format_by_name(r->dtype),
                                    .bias = r->bias,
                                    .relu = r->relu,
                                    .relu_last = r->relu_last,
                                    .requant_m = l->multipliers,
                                    .requant_s = l->shifts,
                                    .requant_count = l->requant_count,
                                    .segments = (uint32_t)r->segments,
                                    .name = r->name,
                                    .input_name = r->input,
                                    .ranges = l->ranges,
                                    .range_count = (uint32_t)r->ranges.count};
  return weft_graph_new_mlp(&options, r->output, graph, diag);
}

static void gemm_range(weft_graph *graph, const lists *l, uint32_t count, uint32_t value, int64_t low, int64_t high) {
  for (uint32_t i = 0; value != WEFT_NONE && i < count; i++)
    if (strcmp(l->ranges[i].name, graph->values[value].name) == 0) {
      low = l->ranges[i].low;
      high = l->ranges[i].high;
    }
  weft_graph_range(graph, value, low, high);
}

static uint32_t gemm_integers(weft_graph *graph, const request *r, const lists *l, uint32_t c) {
  if (!l->requant_count) return r->relu ? weft_graph_relu(graph, "relu", c) : c;
  uint32_t scaled = weft_graph_requant(graph, "requant", c, l->multipliers[0], l->shifts[0]);
  return weft_graph_clamp(graph, "clamp", scaled, r->relu ? 0 : -128, 127, WEFT_INT8);
}

static weft_status check_gemm(const request *r, const lists *l, weft_format dtype, weft_diag *diag) {
  if (l->requant_count > 1) return weft_error(diag, WEFT_USAGE, NULL, "a product takes one requant");
  if (dtype != WEFT_INT8 && (l->requant_count || r->ranges.count))
    return weft_error(diag, WEFT_USAGE, "use --dtype int8", "requant and ranges are for integers");
  for (uint64_t i = 0; i < r->ranges.count; i++)
    if (strcmp(l->ranges[i].name, r->input) != 0 && strcmp(l->ranges[i].name, "B") != 0 &&
        strcmp(l->ranges[i].name, "bias") != 0)
      return weft_error(diag, WEFT_USAGE, "datasets are A, B and bias",
                        "a range for '%s', which the product does not read", l->ranges[i].name);
  return WEFT_OK;
}

static weft_status make_gemm(const request *r, const lists *l, weft_graph **out, weft_diag *diag) {
  const weft_format dtype = weft_format_by_name(r->dtype);
  const uint64_t a_extents[] = {r->m, r->k}, b_extents[] = {r->k, r->n};
  weft_status status = check_gemm(r, l, dtype, diag);
  if (status != WEFT_OK) return status;
  weft_graph *graph = *out = weft_graph_new(r->name, diag);
  if (!graph) return weft_error_memory(diag);
  weft_graph_section(graph, "gemm");
  uint32_t a = weft_graph_input(graph, r->input, dtype, 2, a_extents),
           b = weft_graph_param(graph, "B", dtype, 2, b_extents);
  uint32_t bias = WEFT_NONE, range_count = (uint32_t)r->ranges.count;
  if (r->bias) bias = weft_graph_param(graph, "bias", dtype == WEFT_INT8 ? WEFT_INT32 : WEFT_FP32, 1, &r->n);
  if (dtype == WEFT_INT8) {
    gemm_range(graph, l, range_count, a, -128, 127);
    gemm_range(graph, l, range_count, b, -128, 127);
    if (r->bias) gemm_range(graph, l, range_count, bias, -65536, 65536);
  }
  uint32_t c = weft_graph_matmul(graph, "matmul", a, b);
  if (c != WEFT_NONE && r->segments && dtype != WEFT_INT8)
    graph->ops[graph->values[c].producer].segments = (uint32_t)r->segments;
  if (r->bias) c = weft_graph_bias(graph, "bias", c, bias);
  if (dtype == WEFT_INT8) {
    c = gemm_integers(graph, r, l, c);
  } else if (r->relu) {
    c = weft_graph_relu(graph, "relu", c);
  }
  weft_graph_output(graph, c, r->output);
  return weft_graph_check(graph, diag);
}

/* ---- the commands -------------------------------------------------------------------------------------------------
 */

typedef weft_status (*maker)(const request *, const lists *, weft_graph **, weft_diag *);

static int run(int argc, char **argv, request *r, const weft_usage *usage, maker make) {
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(usage, argc, argv, &arguments, &exit_code)) {
    weft_option_list_free(&r->ranges);
    return exit_code;
  }
  lists l = {0};
  exit_code = make == make_mlp && !r->layers ? weft_tool_misuse(usage, "--layers is missing") : -1;
  if (exit_code < 0 && r->layers && !read_layers(r->layers, &l))
    exit_code = weft_tool_misuse(usage, "--layers takes widths like 784,256,10, not `%s`", r->layers);
  if (exit_code < 0 && r->requant && !read_requant(r->requant, &l))
    exit_code = weft_tool_misuse(usage, "--requant takes m:s pairs like 17878:23,16623:22, not `%s`", r->requant);
  if (exit_code < 0 && !read_ranges(&r->ranges, &l)) exit_code = weft_tool_misuse(usage, "--range takes NAME=LOW:HIGH");
  if (exit_code < 0 && r->segments > WEFT_MAX_SEGMENTS)
    exit_code = weft_tool_misuse(usage, "--segments is at most %d", WEFT_MAX_SEGMENTS);
  if (exit_code < 0) {
    weft_diag *diag = weft_diag_new();
    weft_graph *graph = NULL;
    weft_status status = diag ? make(r, &l, &graph, diag) : WEFT_UNAVAILABLE;
    if (status == WEFT_OK) status = weft_new_write(graph, r->file, diag);
    weft_graph_free(graph);
    exit_code = weft_tool_finish(status, diag, &arguments);
  }
  free_lists(&l);
  weft_option_list_free(&r->ranges);
  return exit_code;
}

#define SHARED_OPTIONS(r)                                                                                              \
  {.name = "dtype",                                                                                                    \
   .kind = WEFT_OPTION_CHOICE,                                                                                         \
   .target = &(r).dtype,                                                                                               \
   .choices = "fp32|bf16|int8",                                                                                        \
   .help = "format of inputs and weights (default fp32)"},                                                             \
      {.name = "bias", .kind = WEFT_OPTION_FLAG, .target = &(r).bias, .help = "add a bias"},                           \
      {.name = "requant",                                                                                              \
       .kind = WEFT_OPTION_TEXT,                                                                                       \
       .target = &(r).requant,                                                                                         \
       .argument = "M:S,...",                                                                                          \
       .help = "int8: floor(x * M / 2^S), then a clamp, a layer"},                                                     \
      {.name = "range",                                                                                                \
       .kind = WEFT_OPTION_LIST,                                                                                       \
       .target = &(r).ranges,                                                                                          \
       .argument = "NAME=LOW:HIGH",                                                                                    \
       .help = "int8: declared range of a dataset"},                                                                   \
      {.name = "segments",                                                                                             \
       .kind = WEFT_OPTION_COUNT,                                                                                      \
       .target = &(r).segments,                                                                                        \
       .help = "segments of every float product (default: by the rule)"},                                              \
      {.name = "name", .kind = WEFT_OPTION_TEXT, .target = &(r).name, .help = "name of the program"},                  \
      {.name = "input",                                                                                                \
       .kind = WEFT_OPTION_TEXT,                                                                                       \
       .target = &(r).input,                                                                                           \
       .argument = "NAME",                                                                                             \
       .help = "dataset of the input"},                                                                                \
      {.name = "output",                                                                                               \
       .kind = WEFT_OPTION_TEXT,                                                                                       \
       .target = &(r).output,                                                                                          \
       .argument = "NAME",                                                                                             \
       .help = "dataset of the result"},                                                                               \
      WEFT_NEW_FILE_OPTION((r).file)

static int new_mlp(int argc, char **argv) {
  request r = {.dtype = "fp32", .name = "mlp", .input = "x", .output = "logits", .file = "-", .batch = 1};
  const weft_option options[] = {
      {.name = "layers",
       .kind = WEFT_OPTION_TEXT,
       .target = &r.layers,
       .argument = "N,N,...",
       .help = "widths from input to result"},
      {.name = "batch", .kind = WEFT_OPTION_COUNT, .target = &r.batch, .help = "rows of the input (default 1)"},
      {.name = "relu", .kind = WEFT_OPTION_FLAG, .target = &r.relu, .help = "ReLU after every layer but the last"},
      {.name = "relu-last", .kind = WEFT_OPTION_FLAG, .target = &r.relu_last, .help = "ReLU after the last layer"},
      SHARED_OPTIONS(r),
      {0}};
  const weft_usage usage = {
      .synopsis = "new mlp [options]",
      .about =
          "Writes a network of matrix products: logits = relu(x @ w1 + b1) @ w2 + b2 and so on, one section a layer.\n"
          "Datasets: x, w1, b1, w2, b2... bf16: weights and hidden layers Bf16, biases and result Fp32. int8: biases\n"
          "Int32, every requantised layer ends in a clamp, a last layer without requant is Int32.",
      .example = "weft new mlp --layers 784,256,256,10 --batch 1000 --bias --relu --input x_test -o digits.json\n"
                 "weft new mlp --layers 784,256,10 --batch 1000 --dtype int8 --bias --relu --requant 17878:23 -o "
                 "digits-int8.json",
      .options = options,
      .least = 0,
      .most = 0};
  return run(argc, argv, &r, &usage, make_mlp);
}

static int new_gemm(int argc, char **argv) {
  request r = {.dtype = "fp32", .name = "gemm", .input = "A", .output = "C", .file = "-", .m = 64, .k = 96, .n = 64};
  const weft_option options[] = {
      {.name = "m", .kind = WEFT_OPTION_COUNT, .target = &r.m, .help = "rows of A and C (default 64)"},
      {.name = "k", .kind = WEFT_OPTION_COUNT, .target = &r.k, .help = "columns of A, rows of B (default 96)"},
      {.name = "n", .kind = WEFT_OPTION_COUNT, .target = &r.n, .help = "columns of B and C (default 64)"},
      {.name = "relu", .kind = WEFT_OPTION_FLAG, .target = &r.relu, .help = "ReLU of the result"},
      SHARED_OPTIONS(r),
      {0}};
  const weft_usage usage = {
      .synopsis = "new gemm [options]",
      .about = "Writes a matrix product C = A @ B, with a bias and an epilogue if wanted. Any extents, also 0 and 1.",
      .example = "weft new gemm --m 64 --k 96 --n 64 --dtype bf16 -o gemm.json",
      .options = options,
      .least = 0,
      .most = 0};
  return run(argc, argv, &r, &usage, make_gemm);
}

int weft_cmd_new(int argc, char **argv) {
  static const weft_verb verbs[] = {
    {"gemm", new_gemm, "a matrix product"},
    {"mlp", new_mlp, "a network of matrix products"},
#define ROW(id, name, help) {name, weft_new_##id, help},
    WEFT_SAMPLES(ROW)
#undef ROW
        {"decoder", weft_new_decoder, "a transformer that makes one token a step"},
    {0}
  };
  return weft_verbs_run("new", verbs, argc, argv);
}
