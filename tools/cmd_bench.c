/* weft bench: runs the benchmark programs, each beside its peer, and says which figures are reached. */
#include "bench_records.h"
#include "options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct bench_group {
  const char *name;
  int ranks[3]; /**< of each mpirun, ended by 0; none: no MPI */
  const char *help;
} bench_group;

static const bench_group groups[] = {
    {"matmul", {0}, "products beside OpenBLAS and BLIS"},
    {"allreduce", {2, 4}, "all-reduce in the fixed order beside MPI_Allreduce"},
    {"distributed", {2}, "one product on two ranks beside its local products and ScaLAPACK"},
    {"shards", {0}, "shards of HDF5 files beside plain reads"},
    {"step", {0}, "a step of the digits network beside three OpenBLAS calls, by chips"},
    {"compile", {0}, "compile time of the digits network by chips"},
    {"spatial", {0}, "a 100 MB program read, validated and written, beside yajl"},
    {"scale", {0}, "a 27B model: one layer on 120 sites, 64 layers on 8 chips, growth"},
    {"samples", {0}, "parts of transformers: time by chips, error, equal bits"},
    {"dataflow", {0}, "MLIR text beside mlir-opt; lowering, simulation and C of token graphs"},
};
enum { GROUP_COUNT = sizeof groups / sizeof *groups };

/** What the command line says, and where the programs are. */
typedef struct bench_plan {
  bool quick, chosen[GROUP_COUNT];
  uint64_t repeat;
  char command[PATH_MAX], programs[PATH_MAX + 32], csv[PATH_MAX];
  char *skipped; /**< lines GROUP PACKAGE...: left out when weft was built */
  char reason[200];
} bench_plan;

/* ---- finding the programs ------------------------------------------------------------------------------------------
 */

/** Beside the command: in the build tree, or in libexec of the installation. */
static weft_status find_programs(bench_plan *plan, weft_diag *diag) {
  static const char *const places[] = {"benchmarks", "libexec/weft"};
  ssize_t length = readlink("/proc/self/exe", plan->command, sizeof plan->command - 1);
  char root[PATH_MAX];
  if (length <= 0) length = 0;
  plan->command[length] = 0;
  strcpy(root, plan->command);
  for (int up = 0; up < 2; up++) {
    char *slash = strrchr(root, '/');
    if (slash) *slash = 0;
  }
  for (int i = 0; i < 2; i++) {
    snprintf(plan->programs, sizeof plan->programs, "%s/%s", root, places[i]);
    if (access(plan->programs, R_OK | X_OK) == 0) break;
    plan->programs[0] = 0;
  }
  if (!plan->programs[0])
    return weft_error(diag, WEFT_UNAVAILABLE, "configure with -DWEFT_BENCHMARKS=ON and build",
                      "this weft was built without its benchmarks");
  weft_text path = {0};
  weft_text_printf(&path, "%s/skipped.txt", plan->programs);
  if (!path.failed && access(path.data, R_OK) == 0) weft_read_file(path.data, &plan->skipped, &(size_t){0}, diag);
  weft_text_free(&path);
  return WEFT_OK;
}

/** The packages that a group was left out for; NULL when it was not. */
static const char *packages_for(bench_plan *plan, const char *group) {
  size_t length = strlen(group);
  for (const char *line = plan->skipped; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
    if (strncmp(line, group, length) != 0 || line[length] != ' ') continue;
    snprintf(plan->reason, sizeof plan->reason, "%.*s not installed", (int)strcspn(line + length + 1, "\n"),
             line + length + 1);
    return plan->reason;
  }
  return NULL;
}

static const char *reason_for(void *context, const char *group) {
  bench_plan *plan = context;
  for (int i = 0; i < GROUP_COUNT; i++)
    if (plan->chosen[i] && strcmp(groups[i].name, group) == 0) {
      const char *packages = packages_for(plan, group);
      return packages ? packages : plan->quick ? "--quick does not judge" : "its program failed";
    }
  return NULL;
}

/* ---- running them --------------------------------------------------------------------------------------------------
 */

static int wait_for(pid_t child) {
  int status;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/** The program's table goes to standard output, its rows to plan->csv. */
static int run_program(const bench_plan *plan, const bench_group *group, int ranks) {
  char program[PATH_MAX + 80], count[16];
  snprintf(program, sizeof program, "%s/weft-bench-%s", plan->programs, group->name);
  snprintf(count, sizeof count, "%d", ranks);
  if (access(program, X_OK) != 0) {
    weft_tool_error("./demo builds only what it needs: ninja -C build/default builds all", "%s is not built", program);
    return 127;
  }
  const char *arguments[24];
  int n = 0;
  if (ranks) {
    const char *const launch[] = {"mpirun",    "-n",
                                  count,       "--oversubscribe",
                                  "--bind-to", "none",
                                  "-x",        "OMP_NUM_THREADS=1",
                                  "-x",        "OPENBLAS_NUM_THREADS=1"};
    for (size_t i = 0; i < sizeof launch / sizeof *launch; i++) arguments[n++] = launch[i];
    if (geteuid() == 0) arguments[n++] = "--allow-run-as-root";
  }
  const char *const rest[] = {program, "--csv", plan->csv, "--weft", plan->command, plan->quick ? "--quick" : NULL,
                              NULL};
  for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) arguments[n++] = rest[i];
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    execvp(arguments[0], (char *const *)(uintptr_t)arguments);
    fprintf(stderr, "weft: %s could not be started\n", arguments[0]);
    _exit(127);
  }
  return wait_for(child);
}

static weft_status run_group(bench_plan *plan, const bench_group *group, uint64_t run, weft_bench_records *records,
                             weft_diag *diag) {
  const char *packages = packages_for(plan, group->name);
  if (packages) {
    printf("%s: skipped: %s (tools/setup.sh --benchmarks, then configure and build again)\n\n", group->name, packages);
    return WEFT_OK;
  }
  for (int i = 0; i == 0 || group->ranks[i]; i++) {
    unlink(plan->csv);
    int code = run_program(plan, group, group->ranks[i]);
    if (code != 0)
      return weft_error(diag, WEFT_UNAVAILABLE, "its own messages are above", "the benchmark '%s' ended with status %d",
                        group->name, code);
    weft_status status = weft_bench_records_read(records, plan->csv, run, diag);
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}

/** One that fails does not keep the others from running. */
static weft_status run_groups(bench_plan *plan, weft_bench_records *records, weft_diag *diag) {
  unsetenv("OPENBLAS_CORETYPE");
  unsetenv("OPENBLAS_L2_SIZE");
  snprintf(plan->csv, sizeof plan->csv, "%s/weft-bench-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
  int file = mkstemp(plan->csv);
  if (file < 0)
    return weft_error(diag, WEFT_UNAVAILABLE, "set TMPDIR to a folder that can be written",
                      "no file could be made for the rows");
  close(file);
  weft_status status = WEFT_OK;
  for (uint64_t run = 0; run < plan->repeat; run++)
    for (int i = 0; i < GROUP_COUNT; i++) {
      if (!plan->chosen[i]) continue;
      weft_status one = run_group(plan, &groups[i], run, records, diag);
      if (one != WEFT_OK) status = one;
    }
  unlink(plan->csv);
  return status;
}

/* ---- the command ---------------------------------------------------------------------------------------------------
 */

static bool choose(bench_plan *plan, const weft_arguments *arguments, const char **unknown) {
  for (int a = 0; a < arguments->count; a++) {
    bool found = false;
    for (int i = 0; i < GROUP_COUNT; i++) {
      if (strcmp(arguments->items[a], "all") != 0 && strcmp(arguments->items[a], groups[i].name) != 0) continue;
      found = plan->chosen[i] = true;
    }
    *unknown = arguments->items[a];
    if (!found) return false;
  }
  return true;
}

static void describe(weft_text *text) {
  weft_text_puts(
      text,
      "Runs benchmarks: weft beside the best other library, in turn, in one run. Prints one table a group, then the\n"
      "figures to reach. Groups:\n");
  for (int i = 0; i < GROUP_COUNT; i++) weft_text_printf(text, "  %-12s %s\n", groups[i].name, groups[i].help);
  weft_text_puts(text, "  all          every group");
}

static weft_status bench(bench_plan *plan, const char *csv, const char *plot, weft_diag *diag) {
  weft_bench_records records = {.arena = weft_arena_new()};
  weft_text table = {0};
  if (!records.arena) return weft_error_memory(diag);
  weft_status status = find_programs(plan, diag);
  if (status == WEFT_OK) {
    status = run_groups(plan, &records, diag);
    weft_bench_figures(&records, plan->repeat, reason_for, plan, &table);
    if (table.data) fputs(table.data, stdout);
  }
  weft_status other = WEFT_OK;
  if (csv && records.count) other = weft_write_file(csv, records.csv.data, records.csv.length, false, diag);
  if (plot && records.count && other == WEFT_OK) other = weft_bench_plot(&records, plot, diag);
  free(plan->skipped);
  weft_text_free(&table);
  weft_text_free(&records.csv);
  weft_arena_free(records.arena);
  return status == WEFT_OK ? other : status;
}

int weft_cmd_bench(int argc, char **argv) {
  bench_plan plan = {.repeat = 1};
  const char *csv = NULL, *plot = NULL, *unknown = NULL;
  const weft_option options[] = {{.name = "csv",
                                  .kind = WEFT_OPTION_TEXT,
                                  .target = &csv,
                                  .argument = "FILE",
                                  .help = "write the rows, with least and greatest values"},
                                 {.name = "plot",
                                  .kind = WEFT_OPTION_TEXT,
                                  .target = &plot,
                                  .argument = "FILE",
                                  .help = "draw the rows with gnuplot: FILE.svg or FILE.png"},
                                 {.name = "repeat",
                                  .kind = WEFT_OPTION_COUNT,
                                  .target = &plan.repeat,
                                  .help = "run everything N times and count how often each figure is reached"},
                                 {.name = "quick",
                                  .kind = WEFT_OPTION_FLAG,
                                  .target = &plan.quick,
                                  .help = "small and few: whether the benchmarks work, not how fast weft is"},
                                 {0}};
  weft_text about = {0};
  describe(&about);
  const weft_usage usage = {.synopsis = "bench GROUP...|all [options]",
                            .about = about.data ? about.data : "",
                            .example = "weft bench matmul allreduce --csv figures.csv --plot figures.svg",
                            .options = options,
                            .least = 1,
                            .most = -1};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) {
    weft_text_free(&about);
    return exit_code;
  }
  if (!choose(&plan, &arguments, &unknown))
    exit_code = weft_tool_misuse(&usage, "there is no group `%s`", unknown);
  else if (plot && !weft_bench_picture(plot))
    exit_code = weft_tool_misuse(&usage, "--plot %s: a picture's name ends in .svg or .png", plot);
  else if (plan.repeat < 1 || plan.repeat > 1000)
    exit_code = weft_tool_misuse(&usage, "--repeat takes a number from 1 to 1000");
  else {
    weft_diag *diag = weft_diag_new();
    exit_code = weft_tool_finish(diag ? bench(&plan, csv, plot, diag) : WEFT_UNAVAILABLE, diag, &arguments);
  }
  weft_text_free(&about);
  return exit_code;
}
