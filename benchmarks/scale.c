/* Programs of the size of a 27B model: one layer planned and proven for a mesh of 10 x 12 sites; all 64 layers made a
 * program for 8 chips; how the times of planning and splitting grow with the layers. */
#include "bench.h"

#include "weft/graph.h"
#include "weft/partition.h"
#include "weft/plan.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHIPS = 8 };

static const char widths[] = "--d-model 5120 --heads 32 --kv-heads 8 --ffn 17408 --vocab 248320 --dtype bf16";

/* ---- commands ------------------------------------------------------------------------------------------------------
 */

/* Starts a command and waits for it: its seconds and its peak bytes. */
static bool run(const char *const *arguments, double *seconds, double *bytes) {
  double begun = bench_seconds();
  pid_t child = fork();
  if (child == 0) {
    char log[700];
    snprintf(log, sizeof log, "%s/command.txt", bench_folder());
    if (freopen(log, "w", stdout)) execv(arguments[0], (char *const *)arguments);
    _exit(127);
  }
  int status;
  struct rusage usage;
  if (child < 0 || wait4(child, &status, 0, &usage) != child) return false;
  *seconds = bench_seconds() - begun;
  *bytes = (double)usage.ru_maxrss * 1024;
  return status == 0;
}

typedef struct figure_names {
  const char *what, *time, *memory;
} figure_names;

static bool measure(bench *b, const char *const *arguments, uint32_t times, const figure_names *names) {
  bench_pair time = {.count = times}, memory = {.count = times};
  for (uint32_t i = 0; i < times; i++)
    if (!run(arguments, &time.weft[i], &memory.weft[i])) {
      fprintf(stderr, "scale: %s %s failed\n", arguments[0], arguments[1]);
      return false;
    }
  char what[64];
  bench_report(b, &(bench_row){.figure = names->time, .what = names->what, .unit = "s", .scale = 1}, &time);
  snprintf(what, sizeof what, "  its peak memory");
  bench_report(b, &(bench_row){.figure = names->memory, .what = what, .unit = "MB", .scale = 1e-6}, &memory);
  return true;
}

/* ---- one layer on many sites ---------------------------------------------------------------------------------------
 */

/* A part like mesh-8x8, its sites' memory included, with more sites. */
static bool write_target(const char *path) {
  static const char text[] =
      "{\"name\": \"mesh-12x10\", \"about\": \"10 x 12 sites\", \"mesh\": {\"cols\": 12, \"rows\": 10},\n"
      "\"tile\": {\"rows\": 32, \"cols\": 32}, \"local_bytes\": 1431552, \"chip_bytes\": 0, \"acc_tiles\": 8,\n"
      "\"mem_banks\": 1, \"movement_engines\": 2,\n"
      "\"handshakes\": [\"Fifo\", \"Semaphore\", \"Barrier\", \"ValidReady\", \"Token\"],\n"
      "\"interconnects\": [\"PointToPoint\", \"RowMulticast\", \"ColMulticast\", \"ChipLink\"],\n"
      "\"formats\": [\"Int8\", \"Int16\", \"Int32\", \"Int64\", \"Fp8\", \"Bf16\", \"Fp16\", \"Fp32\"],\n"
      "\"flops_per_second\": {\"Int8\": 2.6e14, \"Int16\": 6.5e13, \"Int32\": 1.6e13, \"Int64\": 4e12, \"Fp8\": "
      "2.6e14,\n"
      "\"Bf16\": 1.3e14, \"Fp16\": 1.3e14, \"Fp32\": 3.3e13},\n"
      "\"dram_bytes_per_second\": 2.88e11, \"link_bytes_per_second\": 1.25e10, \"link_latency_seconds\": 1e-6,\n"
      "\"op_seconds\": 5e-6}\n";
  return weft_write_file(path, text, sizeof text - 1, false, NULL) == WEFT_OK;
}

/* Stages and ops of the schedule, for the heading of its rows. */
static bool count_schedule(const char *path, char *what, size_t size) {
  weft_program *program = NULL;
  if (weft_program_read_file(path, &program, NULL) != WEFT_OK) return false;
  weft_certificate certificate = {0};
  bool ok = weft_certify(program, &certificate, NULL) == WEFT_OK;
  snprintf(what, size, "certify it: %d stages, %d ops", (int)program->stage_count, (int)certificate.ops);
  weft_program_free(program);
  return ok;
}

static bool one_layer(bench *b) {
  char model[600], target[600], planned[600], what[64];
  snprintf(model, sizeof model, "%s/layer.json", bench_folder());
  snprintf(target, sizeof target, "%s/mesh-12x10.json", bench_folder());
  snprintf(planned, sizeof planned, "%s/planned.json", bench_folder());
  const char *size = b->quick ? "--d-model 640 --heads 4 --kv-heads 2 --ffn 1400 --vocab 700 --dtype bf16" : widths;
  if (!write_target(target) || !bench_command("'%s' new decoder --layers 1 %s -o %s", b->weft, size, model))
    return false;
  const char *const plan[] = {b->weft, "plan", model, "--target", target, "-o", planned, NULL};
  const char *const certify[] = {b->weft, "certify", planned, NULL};
  uint32_t times = b->quick ? 1 : 5;
  if (!measure(b, plan, times, &(figure_names){"weft plan, one layer and the head, 120 sites", NULL, NULL}))
    return false;
  return count_schedule(planned, what, sizeof what) &&
         measure(b, certify, times, &(figure_names){what, "layer_certify", "layer_memory"});
}

/* ---- all layers on 8 chips -----------------------------------------------------------------------------------------
 */

static bool all_layers(bench *b) {
  char model[600], out[600];
  snprintf(model, sizeof model, "%s/model.json", bench_folder());
  snprintf(out, sizeof out, "%s/model", bench_folder());
  if (!bench_command("'%s' new decoder --layers %d %s -o %s", b->weft, b->quick ? 1 : 64, widths, model)) return false;
  const char *const compile[] = {b->weft, "compile", model, "--chips", "8", "-o", out, NULL};
  figure_names names = {"weft compile, 64 layers for 8 chips", "layers_compile", "layers_memory"};
  if (b->quick) names.what = "weft compile, one layer for 8 chips";
  if (!measure(b, compile, b->quick ? 1 : 3, &names)) return false;
  bench_pair ninja = {.count = 1};
  double begun = bench_seconds();
  if (!bench_command("ninja -C %s", out)) return false;
  ninja.weft[0] = bench_seconds() - begun;
  bench_report(b, &(bench_row){.figure = "layers_ninja", .what = "  ninja on its C", .unit = "s", .scale = 1}, &ninja);
  return true;
}

/* ---- growth --------------------------------------------------------------------------------------------------------
 */

static weft_program *machine_of(uint64_t layers, weft_diag *diag) {
  const weft_decoder_options options = {.layers = layers,
                                        .width = 512,
                                        .heads = 8,
                                        .kv_heads = 8,
                                        .hidden = 512,
                                        .vocabulary = 512,
                                        .context = 64,
                                        .prompt = 4,
                                        .eps_nano = 10000,
                                        .dtype = WEFT_BF16};
  weft_partition_options partition = {.split = "columns"};
  weft_graph *graph = NULL, *sharded = NULL;
  weft_program *program = NULL;
  weft_target target;
  weft_status status = weft_target_load("cpu", &target, diag);
  if (status == WEFT_OK) status = weft_graph_new_decoder(&options, &graph, diag);
  if (status == WEFT_OK) status = weft_mesh_parse("chip=8", &partition.mesh, diag);
  if (status == WEFT_OK) status = weft_partition(graph, &partition, &target, &sharded, NULL, diag);
  if (status == WEFT_OK) status = weft_graph_lower(sharded, &program, diag);
  weft_graph_free(sharded);
  weft_graph_free(graph);
  return status == WEFT_OK ? program : NULL;
}

enum { PLAN, SPLIT, MEMORY, QUANTITIES };

static const bench_quantity quantities[QUANTITIES] = {
    [PLAN] = {"plan", "plan_linear", "ms", 1e3},
    [SPLIT] = {"split over 8 chips", "split_linear", "ms", 1e3},
    [MEMORY] = {"memory of the planned program", NULL, "MB", 1e-6},
};

/* A decoder of that many layers. */
static bool grow(uint64_t layers, double *values, uint64_t *stages) {
  weft_diag *diag = weft_diag_new();
  weft_program *machine = machine_of(layers, diag), *planned = NULL, *programs[CHIPS] = {0};
  weft_target target;
  weft_status status = machine ? weft_target_load("cpu", &target, diag) : WEFT_INVALID;
  if (status == WEFT_OK && !(planned = weft_program_clone(machine))) status = WEFT_UNAVAILABLE;
  double times[3] = {bench_seconds()};
  const weft_options options = {.stop_after = "synthesize_handshakes"};
  if (status == WEFT_OK) status = weft_plan(planned, &target, &options, diag);
  times[1] = bench_seconds();
  if (status == WEFT_OK) status = weft_split(machine, CHIPS, programs, diag);
  if (status == WEFT_OK) status = weft_split_check((const weft_program *const *)programs, CHIPS, diag);
  times[2] = bench_seconds();
  values[PLAN] = times[1] - times[0];
  values[SPLIT] = times[2] - times[1];
  values[MEMORY] = planned ? (double)weft_arena_bytes(planned->arena) : 0;
  *stages = planned ? planned->stage_count : 0;
  for (uint32_t c = 0; c < CHIPS; c++) weft_program_free(programs[c]);
  weft_program_free(planned);
  weft_program_free(machine);
  for (uint64_t i = 0; i < weft_diag_count(diag); i++) fprintf(stderr, "scale: %s\n", weft_diag_message(diag, i)->text);
  weft_diag_free(diag);
  return status == WEFT_OK;
}

static bool measure_growth(bench *b) {
  const bench_growth growth = {.quantities = quantities,
                               .quantity_count = QUANTITIES,
                               .least = b->quick ? 1 : 3,
                               .sizes = b->quick ? 2 : 5,
                               .rounds = b->quick ? 1 : 7};
  return bench_measure_growth(b, &growth);
}

int main(int argc, char **argv) {
  if (bench_is_sample(argc, argv)) return bench_sample(argv[2], grow);
  bench_environment(argv);
  bench b;
  if (!bench_begin(&b, "scale", 0, argc, argv)) return 2;
  if (!bench_folder()) return 3;
  bench_heading(&b, "a decoder of the widths of a 27B model", "weft itself on half of the stages", NULL);
  bool ok = one_layer(&b) && all_layers(&b) && measure_growth(&b);
  int status = bench_end(&b);
  return ok ? status : 3;
}
