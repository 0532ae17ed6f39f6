/* weft holds: a postcondition over a module before and after a pass. */
#include "options.h"
#include "weft/dataflow.h"
#include "weft/grammar.h"

#include <inttypes.h>
#include <stdio.h>

/** Exit status when an expression of the postcondition has no value. */
enum { NO_VALUE = 4 };

typedef struct holds_options {
  const char *input, *output;
  weft_postcondition_options evaluation;
} holds_options;

typedef struct programs {
  weft_mlir_context *context;
  weft_mlir_file *input, *output;
} programs;

static weft_status read_programs(const holds_options *options, programs *p, weft_diag *diag) {
  p->context = weft_mlir_context_new();
  if (!p->context) return weft_error_memory(diag);
  weft_status status = weft_mlir_register_standard(p->context, diag);
  if (!status) status = weft_dataflow_register(p->context, diag);
  if (!status && options->input) status = weft_mlir_read(p->context, options->input, &p->input, diag);
  if (!status) status = weft_mlir_read(p->context, options->output, &p->output, diag);
  return status;
}

static void free_programs(programs *p) {
  weft_mlir_file_free(p->input);
  weft_mlir_file_free(p->output);
  weft_mlir_context_free(p->context);
}

static const char *const verdicts[] = {"holds", "fails", "has no value"};

/* Module by module: the first of the input with the first of the output, and so on. */
static weft_status judge(const weft_postcondition *post, const programs *p, const holds_options *options,
                         weft_verdict *worst, weft_diag *diag) {
  uint64_t count = p->output->module_count;
  if (p->input && p->input->module_count != count)
    return weft_error(diag, WEFT_INVALID, NULL, "%s holds %" PRIu64 " modules and %s %" PRIu64, options->input,
                      p->input->module_count, options->output, count);
  weft_status status = WEFT_OK;
  *worst = WEFT_VERDICT_HOLDS;
  for (uint64_t i = 0; i < count && !status; i++) {
    weft_postcondition_side input = {.module = p->input ? p->input->modules[i] : NULL, .file = options->input};
    weft_postcondition_side output = {.module = p->output->modules[i], .file = options->output};
    weft_verdict verdict;
    status = weft_postcondition_evaluate(post, p->context, input, output, &options->evaluation, &verdict, diag);
    if (status) break;
    if (count == 1)
      printf("%s %s\n", weft_postcondition_name(post), verdicts[verdict]);
    else
      printf("%s %s for module %" PRIu64 "\n", weft_postcondition_name(post), verdicts[verdict], i + 1);
    if (verdict > *worst) *worst = verdict;
  }
  return status;
}

static weft_status run(const char *path, const holds_options *options, weft_verdict *worst, weft_diag *diag) {
  weft_postcondition *post = NULL;
  programs p = {0};
  weft_status status = weft_postcondition_read(path, &post, diag);
  if (!status) status = read_programs(options, &p, diag);
  if (!status) status = judge(post, &p, options, worst, diag);
  free_programs(&p);
  weft_postcondition_free(post);
  return status;
}

int weft_cmd_holds(int argc, char **argv) {
  holds_options o = {0};
  const weft_option options[] = {{.name = "input",
                                  .kind = WEFT_OPTION_TEXT,
                                  .target = &o.input,
                                  .argument = "FILE",
                                  .help = "the program before the pass"},
                                 {.name = "output",
                                  .kind = WEFT_OPTION_TEXT,
                                  .target = &o.output,
                                  .argument = "FILE",
                                  .help = "the program after it"},
                                 {.name = "failures",
                                  .kind = WEFT_OPTION_COUNT,
                                  .target = &o.evaluation.failures,
                                  .help = "most failing clauses told (20)"},
                                 {.name = "steps",
                                  .kind = WEFT_OPTION_COUNT,
                                  .target = &o.evaluation.steps,
                                  .help = "most expressions evaluated (2^33)"},
                                 {0}};
  const weft_usage usage = {
      .synopsis = "holds POSTCONDITION --output FILE [options]",
      .about = "Evaluates a postcondition (.spct) over the MLIR modules before and after a pass, module by module.\n"
               "Exit status 0: it holds; 1: it fails, each false clause told with the op it is false for; 4: an\n"
               "expression has no value, as an index out of range.",
      .example = "echo 'func.func @at(%i: index, %m: memref<4xi32>) -> i32 {\n"
                 "  %x = memref.load %m[%i] : memref<4xi32> return %x : i32 }' > at.mlir\n"
                 "weft lower at.mlir -o lowered.mlir\n"
                 "echo 'postcondition lowered { language v0; vocabulary mlir = mlir.generic@1; constraints {\n"
                 "  assert nothing_is_lost: cardinality(output.operations) > 0; } }' > lowered.spct\n"
                 "weft holds lowered.spct --input at.mlir --output lowered.mlir",
      .options = options,
      .least = 1,
      .most = 1};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  if (!o.output) return weft_tool_misuse(&usage, "--output is missing");
  weft_diag *diag = weft_diag_new();
  weft_verdict worst = WEFT_VERDICT_HOLDS;
  weft_status status = run(arguments.items[0], &o, &worst, diag);
  if (!status && worst == WEFT_VERDICT_FAILS) status = WEFT_INVALID;
  exit_code = weft_tool_finish(status, diag, &arguments);
  return !status && worst == WEFT_VERDICT_ERROR ? NO_VALUE : exit_code;
}
