/* The way from a file to per-chip programs. */
#include "pipeline.h"
#include "paths.h"
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

weft_status weft_tool_read(const char *path, weft_program **program, weft_diag *diag) {
  weft_tool_step("reading");
  weft_status status = weft_program_read_file(path, program, diag);
  weft_tool_step("validating");
  if (status == WEFT_OK) status = weft_program_validate(*program, 0, NULL, diag);
  if (status != WEFT_OK) {
    weft_program_free(*program);
    *program = NULL;
  }
  return status;
}

weft_status weft_tool_write(const char *path, const weft_program *program, weft_diag *diag) {
  weft_tool_step("writing");
  weft_text text = {0};
  weft_program_write(program, &text);
  weft_tool_step_end();
  weft_status status =
      text.failed ? weft_error_memory(diag) : weft_write_file(path, text.data, text.length, false, diag);
  weft_text_free(&text);
  return status;
}

/* ---- sharding -------------------------------------------------------------------------------------------------------
 */

static weft_status parse_mesh(const weft_machine_options *options, weft_mesh *mesh, weft_diag *diag) {
  if (options->mesh && options->chips_said)
    return weft_error(diag, WEFT_USAGE, "--chips N is a mesh of one axis: give one of them",
                      "both --mesh and --chips are given");
  if (options->mesh) return weft_mesh_parse(options->mesh, mesh, diag);
  char text[40];
  snprintf(text, sizeof text, "chip=%llu", (unsigned long long)(options->chips_said ? options->chips : 1));
  return weft_mesh_parse(text, mesh, diag);
}

static weft_status parse_requests(const weft_option_list *list, weft_shard_request *requests, weft_arena *arena,
                                  weft_diag *diag) {
  for (uint64_t i = 0; i < list->count; i++) {
    const char *equals = strchr(list->items[i], '=');
    if (!equals || equals == list->items[i])
      return weft_error(diag, WEFT_USAGE, "write TENSOR=SPEC, e.g. --shard w1=cols@x",
                        "--shard %s has no tensor and sharding", list->items[i]);
    requests[i].tensor = weft_arena_string(arena, list->items[i], (size_t)(equals - list->items[i]));
    requests[i].spec = equals + 1;
    if (!requests[i].tensor) return weft_error_memory(diag);
  }
  return WEFT_OK;
}

static weft_status partition(const weft_graph *graph, const weft_machine_options *options, const weft_mesh *mesh,
                             const weft_target *target, weft_program **machine, weft_text *report, weft_diag *diag) {
  weft_arena *arena = weft_arena_new();
  weft_shard_request *requests = arena ? WEFT_NEW_ARRAY(arena, weft_shard_request, options->shards.count) : NULL;
  weft_graph *sharded = NULL;
  weft_status status = requests ? parse_requests(&options->shards, requests, arena, diag) : weft_error_memory(diag);
  if (status == WEFT_OK) {
    const weft_partition_options partition_options = {.mesh = *mesh,
                                                      .shards = requests,
                                                      .shard_count = options->shards.count,
                                                      .split = options->split,
                                                      .explain = options->explain};
    status = weft_partition(graph, &partition_options, target, &sharded, report, diag);
  }
  if (status == WEFT_OK) status = weft_graph_lower(sharded, machine, diag);
  weft_graph_free(sharded);
  weft_arena_free(arena);
  return status;
}

weft_status weft_tool_shard(weft_program *program, const weft_machine_options *options, const weft_target *target,
                            weft_program **machine, weft_text *report, weft_diag *diag) {
  weft_mesh mesh;
  weft_status status = parse_mesh(options, &mesh, diag);
  if (status != WEFT_OK) return status;
  uint32_t have = weft_program_chips(program), want = weft_mesh_chips(&mesh);
  bool said = options->mesh || options->chips_said;
  *machine = program;
  if (have > 1 || program->chips > 1) {
    if (said && want != (program->chips ? program->chips : have))
      return weft_error(diag, WEFT_INVALID, "shard the program of one chip it was made from",
                        "'%s' is a program of %u chips already, not of %u", program->name,
                        program->chips ? program->chips : have, want);
    return WEFT_OK;
  }
  if (want <= 1 && options->shards.count == 0 && !options->split) return WEFT_OK;
  weft_tool_step("sharding");
  weft_graph *graph = NULL;
  status = weft_graph_lift(program, &graph, diag);
  if (status == WEFT_OK) {
    *machine = NULL;
    status = partition(graph, options, &mesh, target, machine, report, diag);
  } else if (status == WEFT_INVALID) {
    weft_diag_add(diag, WEFT_ERROR, (weft_place){0}, "run it on one chip: leave out --chips and --mesh",
                  "'%s' cannot be sharded over %u chips", program->name, want);
  }
  weft_graph_free(graph);
  return status;
}

/* ---- proving and splitting
 * ---------------------------------------------------------------------------------------------- */

weft_status weft_tool_prove(const weft_program *machine, const weft_target *target, weft_program **planned,
                            weft_diag *diag) {
  if (planned) *planned = NULL;
  weft_program *copy = weft_program_clone(machine);
  if (!copy) return weft_error_memory(diag);
  const weft_options options = {0};
  weft_status status = weft_plan(copy, target, &options, diag);
  if (status == WEFT_OK && planned)
    *planned = copy;
  else
    weft_program_free(copy);
  return status;
}

typedef struct prove_job {
  weft_program **programs;
  const weft_target *target;
  weft_diag **diags;
  weft_status *statuses;
} prove_job;

static void prove_one(void *context, uint64_t index) {
  prove_job *job = context;
  if (job->programs[index]->stage_count == 0) return;
  job->statuses[index] = weft_tool_prove(job->programs[index], job->target, NULL, job->diags[index]);
}

static void move_messages(weft_diag *to, const weft_diag *from, uint64_t chip) {
  for (uint64_t i = 0; i < weft_diag_count(from); i++) {
    const weft_message *message = weft_diag_message(from, i);
    if (message->severity == WEFT_ERROR)
      weft_diag_add(to, WEFT_ERROR, message->place, message->hint, "chip %llu: %s", (unsigned long long)chip,
                    message->text);
  }
}

/** The certificate of every chip, in parallel; the first chip that fails is the one reported. */
static weft_status prove_chips(weft_program **programs, uint32_t chips, const weft_target *target, weft_diag *diag) {
  prove_job job = {programs, target, calloc(chips, sizeof(weft_diag *)), calloc(chips, sizeof(weft_status))};
  weft_status status = job.diags && job.statuses ? WEFT_OK : weft_error_memory(diag);
  for (uint32_t c = 0; status == WEFT_OK && c < chips; c++)
    if (!(job.diags[c] = weft_diag_new())) status = weft_error_memory(diag);
  if (status == WEFT_OK) weft_parallel_for(chips, 0, prove_one, &job);
  for (uint32_t c = 0; status == WEFT_OK && c < chips; c++) {
    status = job.statuses[c];
    if (status != WEFT_OK) move_messages(diag, job.diags[c], c);
  }
  for (uint32_t c = 0; job.diags && c < chips; c++) weft_diag_free(job.diags[c]);
  free(job.diags);
  free(job.statuses);
  return status;
}

weft_status weft_tool_split(const weft_program *machine, const weft_target *target, weft_program ***programs,
                            uint32_t *chips, weft_diag *diag) {
  *chips = machine->chips ? machine->chips : weft_program_chips(machine);
  if (*chips == 0) *chips = 1;
  *programs = calloc(*chips, sizeof **programs);
  if (!*programs) return weft_error_memory(diag);
  if (*chips == 1) {
    (*programs)[0] = weft_program_clone(machine);
    return (*programs)[0] ? WEFT_OK : weft_error_memory(diag);
  }
  weft_tool_step("splitting");
  weft_status status = weft_split(machine, *chips, *programs, diag);
  if (status == WEFT_OK) status = weft_split_check((const weft_program *const *)*programs, *chips, diag);
  weft_tool_step("proving the program of each chip");
  if (status == WEFT_OK) status = prove_chips(*programs, *chips, target, diag);
  return status;
}

void weft_tool_free_programs(weft_program **programs, uint32_t chips) {
  for (uint32_t c = 0; programs && c < chips; c++) weft_program_free(programs[c]);
  free(programs);
}

weft_status weft_tool_generate(const weft_program *machine, const weft_target *target, const char *directory,
                               uint64_t threads, weft_codegen_report *report, weft_diag *diag) {
  weft_program *planned = NULL, **programs = NULL;
  uint32_t chips = 0;
  weft_tool_paths paths;
  weft_tool_step("planning and proving");
  weft_status status = weft_tool_prove(machine, target, &planned, diag);
  if (status == WEFT_OK) status = weft_tool_split(machine, target, &programs, &chips, diag);
  if (status == WEFT_OK) status = weft_tool_paths_find(&paths, diag);
  if (status == WEFT_OK) {
    weft_codegen_options options = {
        .paths = paths.codegen, .threads = (int)weft_min_u64(threads, 1024), .scheduled = chips == 1 ? planned : NULL};
    weft_tool_step("generating");
    status = weft_codegen((const weft_program *const *)programs, chips, directory, &options, report, diag);
    weft_tool_paths_free(&paths);
  }
  weft_tool_free_programs(programs, chips);
  weft_program_free(planned);
  return status;
}

/* ---- the whole way
 * ---------------------------------------------------------------------------------------------------- */

static void print_report(const char *directory, const weft_program *machine, const weft_codegen_report *report) {
  uint32_t chips = machine->chips ? machine->chips : 1;
  printf("%s: %u chip%s, %u class%s, %llu lines of C%s\n", directory, chips, chips == 1 ? "" : "s", report->classes,
         report->classes == 1 ? "" : "es", (unsigned long long)report->lines,
         report->walked ? " (runs through the table-driven walk)" : "");
  weft_text quoted = {0};
  weft_text_shell(&quoted, directory);
  if (!quoted.failed) printf("next: ninja -C %s\n", quoted.data);
  weft_text_free(&quoted);
}

/** A schedule of weft's own is taken back to its Template, which the steps that follow start from. One that has none
 * stays as it is when it is for one chip: it will be walked. */
static weft_status to_template(weft_program **program, const weft_target *target, weft_diag *diag) {
  if (weft_program_phase(*program) < WEFT_PHASE_SCHEDULED) return WEFT_OK;
  weft_program *template = NULL;
  bool one_chip = weft_program_chips(*program) <= 1 && (*program)->chips <= 1;
  weft_status status = weft_program_template(*program, target, &template, one_chip ? NULL : diag);
  if (status != WEFT_OK) return one_chip && status == WEFT_INVALID ? WEFT_OK : status;
  weft_program_free(*program);
  *program = template;
  return WEFT_OK;
}

weft_status weft_tool_compile(const char *path, const weft_machine_options *options, const char *directory,
                              uint64_t threads, weft_diag *diag) {
  weft_program *program = NULL, *machine = NULL;
  weft_target target;
  weft_text report_text = {0};
  weft_status status = weft_target_load(options->target ? options->target : "cpu", &target, diag);
  if (status == WEFT_OK) status = weft_tool_read(path, &program, diag);
  if (status == WEFT_OK) status = weft_program_check_datasets(program, diag);
  if (status == WEFT_OK) status = to_template(&program, &target, diag);
  if (status == WEFT_OK) status = weft_tool_shard(program, options, &target, &machine, &report_text, diag);
  if (status == WEFT_OK) {
    weft_codegen_report report;
    status = weft_tool_generate(machine, &target, directory, threads, &report, diag);
    weft_tool_step_end();
    weft_tool_print(stdout, &report_text);
    if (status == WEFT_OK) print_report(directory, machine, &report);
  }
  weft_text_free(&report_text);
  if (machine != program) weft_program_free(machine);
  weft_program_free(program);
  return status;
}
