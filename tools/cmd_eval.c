/* weft eval: the reference evaluator. */
#include "options.h"
#include "progress.h"
#include "weft/graph.h"
#include "weft/plan.h"
#include "weft/tensor_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct request {
  const char *in, *out, *order, *target, *advance;
  bool graph, schedule;
  uint64_t seed, steps;
} request;

static weft_status run_schedule(weft_program *program, const request *r, const weft_array_set *in, weft_array_set *out,
                                weft_diag *diag) {
  weft_target target;
  const weft_options planning = {.stop_after = "synthesize_handshakes"};
  const weft_evaluate_options options = {
      .random = strcmp(r->order, "random") == 0, .seed = r->seed, .steps = r->steps, .advance = r->advance};
  weft_status status = WEFT_OK;
  if (weft_program_phase(program) < WEFT_PHASE_SCHEDULED) {
    status = weft_target_load(r->target, &target, diag);
    if (!status) status = weft_plan(program, &target, &planning, diag);
  }
  return status ? status : weft_evaluate(program, &options, in, out, diag);
}

/** A Template that can be lifted is interpreted as a graph; anything else runs op by op. Orders are a schedule's. */
static weft_status run(weft_program *program, const request *r, const weft_array_set *in, weft_array_set *out,
                       weft_diag *diag) {
  bool as_schedule = r->schedule || strcmp(r->order, "random") == 0;
  weft_graph *graph = NULL;
  if (!as_schedule && (r->graph || weft_program_phase(program) == WEFT_PHASE_TEMPLATE)) {
    weft_diag *lifting = r->graph ? diag : weft_diag_new();
    weft_status status = weft_graph_lift(program, &graph, lifting);
    if (!r->graph) weft_diag_free(lifting);
    if (status && (r->graph || status != WEFT_INVALID)) return status;
    if (!status) {
      status = weft_graph_interpret_steps(graph, r->steps, r->advance, in, out, diag);
      weft_graph_free(graph);
      return status;
    }
  }
  return run_schedule(program, r, in, out, diag);
}

static const char *role_of(const weft_program *program, const char *dataset) {
  for (uint64_t t = 0; t < program->tensor_count; t++) {
    const weft_tensor *tensor = &program->tensors[t];
    if (tensor->role != WEFT_ROLE_OUTPUT && tensor->role != WEFT_ROLE_STATE) continue;
    if (strcmp(tensor->has_shard ? tensor->shard.of : tensor->name, dataset) == 0)
      return weft_tensor_role_name(tensor->role);
  }
  return NULL;
}

/** The same file as an emitted program writes: equal results are equal files. */
static weft_status write_results(const char *path, const weft_program *program, const weft_array_set *set,
                                 weft_diag *diag) {
  weft_tensor_writer *writer;
  weft_status status = weft_tensor_writer_create(path, &writer, diag);
  if (status) return status;
  for (uint64_t i = 0; i < set->count && !status; i++) {
    const weft_array *a = &set->items[i];
    status =
        weft_tensor_writer_declare(writer, a->name, a->dtype, a->rank, a->extents, role_of(program, a->name), diag);
  }
  if (!status) status = weft_tensor_writer_attribute(writer, "arithmetic", WEFT_ARITHMETIC_VERSION, diag);
  for (uint64_t i = 0; i < set->count && !status; i++) {
    const weft_array *a = &set->items[i];
    uint64_t rows, cols;
    weft_plane_extents(a->rank, a->extents, &rows, &cols);
    status = weft_tensor_writer_write(writer, a->name, 0, rows, 0, cols, a->data, cols, diag);
  }
  if (!status) return weft_tensor_writer_commit(writer, diag);
  weft_tensor_writer_abandon(writer);
  return status;
}

static bool is_same_file(const char *a, const char *b) {
  struct stat of_a, of_b;
  return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

static weft_status evaluate(const char *path, const request *r, weft_diag *diag) {
  if (is_same_file(r->in, r->out))
    return weft_error_at(diag, WEFT_USAGE, (weft_place){.file = r->out}, "give the results a file of their own",
                         "the results would replace the input");
  weft_tool_step("reading");
  weft_program *program = NULL;
  weft_array_set in = {0}, out = {0};
  weft_status status = weft_program_read_file(path, &program, diag);
  if (!status) status = weft_array_set_read(r->in, &in, diag);
  weft_tool_step("evaluating");
  if (!status) status = run(program, r, &in, &out, diag);
  if (!status) status = write_results(r->out, program, &out, diag);
  weft_array_set_free(&in);
  weft_array_set_free(&out);
  weft_program_free(program);
  return status;
}

int weft_cmd_eval(int argc, char **argv) {
  request r = {.order = "fixed", .target = "cpu", .steps = 1};
  const weft_option options[] = {
      {.name = "in",
       .kind = WEFT_OPTION_TEXT,
       .target = &r.in,
       .argument = "A.h5",
       .help = "the tensors the program reads"},
      {.name = "out", .kind = WEFT_OPTION_TEXT, .target = &r.out, .argument = "B.h5", .help = "where its results go"},
      {.name = "graph",
       .kind = WEFT_OPTION_FLAG,
       .target = &r.graph,
       .help = "lift the program and interpret its graph"},
      {.name = "schedule",
       .kind = WEFT_OPTION_FLAG,
       .target = &r.schedule,
       .help = "plan the program and run its schedule op by op"},
      {.name = "target",
       .kind = WEFT_OPTION_TEXT,
       .target = &r.target,
       .argument = "NAME",
       .help = "what --schedule plans for (cpu)"},
      {.name = "order",
       .kind = WEFT_OPTION_CHOICE,
       .target = &r.order,
       .choices = "fixed|random",
       .help = "how the engines of a schedule take turns"},
      {.name = "seed", .kind = WEFT_OPTION_COUNT, .target = &r.seed, .help = "of a random order"},
      {.name = "steps", .kind = WEFT_OPTION_COUNT, .target = &r.steps, .help = "runs, chaining the states (1)"},
      {.name = "advance",
       .kind = WEFT_OPTION_TEXT,
       .target = &r.advance,
       .argument = "NAME",
       .help = "an input of integers, such as a position, that is one greater at every step"},
      {0}};
  const weft_usage usage = {
      .synopsis = "eval FILE --in A.h5 --out B.h5",
      .about = "Runs a program with the reference evaluator: slow, exact, the oracle. A Template is interpreted as a "
               "graph, or,\n"
               "where it is none, planned; a Scheduled program runs op by op. It faults where hardware would go wrong "
               "silently.",
      .example = "weft new mlp --layers 784,256,10 --batch 32 -o digits.json && weft tensor make --program digits.json "
                 "--seed 1 -o in.h5\n"
                 "weft eval digits.json --in in.h5 --out out.h5",
      .options = options,
      .least = 1,
      .most = 1};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  if (!r.in || !r.out) return weft_tool_misuse(&usage, "--in and --out name the files");
  if (r.graph && (r.schedule || strcmp(r.order, "random") == 0))
    return weft_tool_misuse(&usage, "a graph has no schedule or order");
  weft_diag *diag = weft_diag_new();
  weft_status status = diag ? evaluate(arguments.items[0], &r, diag) : WEFT_UNAVAILABLE;
  return weft_tool_finish(status, diag, &arguments);
}
