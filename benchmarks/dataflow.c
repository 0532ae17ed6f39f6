/* The dataflow front end: MLIR text read and printed beside mlir-opt, lowering and publication as they grow, the token
 * simulator, and C from a lowered graph beside the loop written by hand. */
#include "bench.h"

#include "weft/dataflow_abi.h"
#include "weft/dataflow_run.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOPS = 24500, QUICK_LOOPS = 200, GROWN = 8, ELEMENTS = 1 << 20, QUICK_ELEMENTS = 1 << 10 };

/* ---- programs ------------------------------------------------------------------------------------------------------
 */

typedef struct room {
  weft_mlir_context *context;
  weft_diag *diag;
} room;

static bool open_room(room *r) {
  *r = (room){.context = weft_mlir_context_new(), .diag = weft_diag_new()};
  return r->context && r->diag && weft_mlir_register_standard(r->context, r->diag) == WEFT_OK &&
         weft_dataflow_register(r->context, r->diag) == WEFT_OK;
}

static void close_room(room *r) {
  weft_mlir_context_free(r->context);
  weft_diag_free(r->diag);
}

static weft_mlir_file *parse_text(room *r, const weft_text *text) {
  weft_mlir_file *file = NULL;
  if (text->failed ||
      weft_mlir_parse(r->context, "bench.mlir", text->data, text->length, false, &file, r->diag) != WEFT_OK)
    fprintf(stderr, "weft: %s\n", weft_diag_count(r->diag) ? weft_diag_message(r->diag, 0)->text : "out of memory");
  return file;
}

static const char dot_text[] =
    "func.func @dot(%n: index, %a: memref<?xi32>, %b: memref<?xi32>) -> i32 {\n"
    "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %z = arith.constant 0 : i32\n"
    "  %s = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %z) -> (i32) {\n"
    "    %x = memref.load %a[%i] : memref<?xi32>\n    %y = memref.load %b[%i] : memref<?xi32>\n"
    "    %p = arith.muli %x, %y : i32\n    %t = arith.addi %sum, %p : i32\n    scf.yield %t : i32\n  }\n"
    "  return %s : i32\n}\n";

/* A loop with a branch and two accesses: 11 ops. */
static void put_loop(weft_text *text, uint64_t k) {
  unsigned long long n = k;
  weft_text_printf(text,
                   "    scf.for %%i%llu = %%c0 to %%n step %%c1 {\n"
                   "      %%v%llu = memref.load %%a[%%i%llu] : memref<?xi32>\n"
                   "      %%w%llu = arith.addi %%v%llu, %%x : i32\n"
                   "      %%p%llu = arith.cmpi slt, %%w%llu, %%x : i32\n"
                   "      %%r%llu = scf.if %%p%llu -> (i32) {\n"
                   "        %%m%llu = arith.muli %%w%llu, %%v%llu : i32\n        scf.yield %%m%llu : i32\n"
                   "      } else {\n        scf.yield %%v%llu : i32\n      }\n"
                   "      memref.store %%r%llu, %%a[%%i%llu] : memref<?xi32>\n    }\n",
                   n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n);
}

static void put_graph(weft_text *text, uint64_t loops) {
  weft_text_puts(text,
                 "dataflow.graph private @g(%start: none, %n: index, %x: i32, %a: memref<?xi32>) -> () attributes "
                 "{input_segments = array<i32: 2, 0, 1>, result_segments = array<i32: 0, 0, 0>} {\n"
                 "    %c0 = arith.constant 0 : index\n    %c1 = arith.constant 1 : index\n");
  for (uint64_t k = 0; k < loops; k++) put_loop(text, k);
  weft_text_puts(text, "    dataflow.graph.return %start : none\n}\n");
}

/* A thread with a region a loop. */
static void put_thread(weft_text *text, uint64_t loops) {
  weft_text_puts(text, "dataflow.thread private @t domain(#dataflow.thread_domain<dense>)(%N: index, %X: i32, %A: "
                       "memref<?xi32>) ctrl (%start: none) {\n");
  for (uint64_t k = 0; k < loops; k++) {
    weft_text_puts(text, "  \"loom.spatial_region\"(%N, %X, %A) <{operandSegmentSizes = array<i32: 2, 0, 1, 0>, "
                         "resultSegmentSizes = array<i32: 0, 0>}> ({\n  ^bb0(%n: index, %x: i32, %a: memref<?xi32>):\n"
                         "    %c0 = arith.constant 0 : index\n    %c1 = arith.constant 1 : index\n");
    put_loop(text, k);
    weft_text_printf(text,
                     "    \"loom.spatial_yield\"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()\n"
                     "  }) {graph_name = \"g%llu\", source_maps = []} : (index, i32, memref<?xi32>) -> ()\n",
                     (unsigned long long)k);
  }
  weft_text_puts(text, "  dataflow.thread.yield\n}\n");
}

static uint64_t count_ops(const weft_mlir_op *root) {
  uint64_t count = 0;
  for (const weft_mlir_op *op = weft_mlir_next(root, NULL); op; op = weft_mlir_next(root, op)) count++;
  return count;
}

/* ---- text ----------------------------------------------------------------------------------------------------------
 */

/* Reads and prints in a process of its own. */
static int in_child(const char *path, const char *output) {
  room r;
  weft_mlir_file *file = NULL;
  weft_text text = {0};
  if (!open_room(&r) || weft_mlir_read(r.context, path, &file, r.diag) != WEFT_OK) return 1;
  weft_mlir_print_file(file, (weft_mlir_print_options){.generic = true}, &text);
  return text.failed || weft_write_file(output, text.data, text.length, false, r.diag) != WEFT_OK;
}

typedef struct child {
  char *const *arguments;
  double peak; /* bytes */
  bool failed;
} child;

static void run_child(void *context) {
  child *c = context;
  pid_t process = fork();
  if (process == 0) {
    execv(c->arguments[0], c->arguments);
    _exit(127);
  }
  int status = 1;
  struct rusage usage;
  memset(&usage, 0, sizeof usage);
  if (process < 0 || wait4(process, &status, 0, &usage) != process || status != 0) c->failed = true;
  if ((double)usage.ru_maxrss * 1024 > c->peak) c->peak = (double)usage.ru_maxrss * 1024;
}

/* A file of generic form of about 50 MB. */
static bool write_text(room *r, bool quick, const char *path, double *bytes) {
  weft_text text = {0}, generic = {0};
  put_graph(&text, quick ? QUICK_LOOPS : LOOPS);
  weft_mlir_file *file = parse_text(r, &text);
  if (!file) return false;
  weft_mlir_op *module = file->modules[0];
  bool good = weft_lower(r->context, file->arena, module, "bench.mlir", r->diag) == WEFT_OK;
  weft_mlir_print_to_text(module, (weft_mlir_print_options){.generic = true}, &generic);
  good = good && !generic.failed && weft_write_file(path, generic.data, generic.length, false, r->diag) == WEFT_OK;
  *bytes = (double)generic.length;
  weft_mlir_file_free(file);
  weft_text_free(&text);
  weft_text_free(&generic);
  return good;
}

static bool measure_text(bench *b, room *r) {
  char path[512], ours[512], theirs[512], what[64];
  double bytes = 0;
  const char *folder = bench_folder();
  if (!folder) return false;
  snprintf(path, sizeof path, "%s/large.mlir", folder);
  snprintf(ours, sizeof ours, "%s/ours.mlir", folder);
  snprintf(theirs, sizeof theirs, "%s/theirs.mlir", folder);
  if (!write_text(r, b->quick, path, &bytes)) return false;
  char *weft_arguments[] = {(char *)"/proc/self/exe", (char *)"--text", path, ours, NULL};
  child weft = {.arguments = weft_arguments};
  bench_pair pair = {.count = b->quick ? 1 : 3}, memory = {.count = 1};
  snprintf(what, sizeof what, "read and print %d MB of generic form", (int)(bytes / 1e6));
#ifdef WEFT_BENCH_MLIR_OPT
  char *peer_arguments[] = {(char *)WEFT_BENCH_MLIR_OPT,
                            (char *)"--allow-unregistered-dialect",
                            (char *)"--mlir-print-op-generic",
                            path,
                            (char *)"-o",
                            theirs,
                            NULL};
  child peer = {.arguments = peer_arguments};
  const char *peer_name = "mlir-opt";
#else
  child peer = {.failed = false};
  const char *peer_name = NULL;
#endif
  for (uint32_t i = 0; i < pair.count; i++) {
    double begun = bench_seconds();
    run_child(&weft);
    pair.weft[i] = bench_seconds() - begun;
    if (!peer_name) continue;
    begun = bench_seconds();
    run_child(&peer);
    pair.peer[i] = bench_seconds() - begun;
  }
  memory.weft[0] = weft.peak;
  memory.peer[0] = peer.peak;
  bench_report(b,
               &(bench_row){.figure = peer_name ? "mlir_text" : NULL,
                            .what = what,
                            .peer = peer_name,
                            .unit = "MB/s",
                            .amount = bytes / 1e6},
               &pair);
  bench_report(b,
               &(bench_row){.figure = peer_name ? "mlir_memory" : NULL,
                            .what = "its peak memory",
                            .peer = peer_name,
                            .unit = "MB",
                            .scale = 1e-6},
               &memory);
  return !weft.failed && !peer.failed;
}

/* ---- growth --------------------------------------------------------------------------------------------------------
 */

/* Seconds of lowering or publishing; the ops there were before. */
static double transform(uint64_t loops, bool publish, uint64_t *ops) {
  room r;
  weft_text text = {0};
  double seconds = -1;
  if (!open_room(&r)) return -1;
  if (publish)
    put_thread(&text, loops);
  else
    put_graph(&text, loops);
  weft_mlir_file *file = parse_text(&r, &text);
  if (file) {
    weft_mlir_op *module = file->modules[0];
    *ops = count_ops(module);
    double begun = bench_seconds();
    weft_status status = publish ? weft_publish(r.context, file->arena, module, "bench.mlir", r.diag)
                                 : weft_lower(r.context, file->arena, module, "bench.mlir", r.diag);
    if (status == WEFT_OK) seconds = bench_seconds() - begun;
  }
  weft_mlir_file_free(file);
  weft_text_free(&text);
  close_room(&r);
  return seconds;
}

/* A million ops beside eight times an eighth of them. */
static bool measure_growth(bench *b, bool publish) {
  uint64_t most = b->quick ? 1600 : publish ? 72000 : 100000, ops = 0, fewer = 0;
  bench_pair pair = {.count = b->quick ? 1 : 3};
  for (uint32_t i = 0; i < pair.count; i++) {
    pair.weft[i] = transform(most, publish, &ops);
    pair.peer[i] = GROWN * transform(most / GROWN, publish, &fewer);
    if (pair.weft[i] < 0 || pair.peer[i] < 0) return false;
  }
  char what[64], peer[64];
  snprintf(what, sizeof what, "%s %llu ops", publish ? "publish" : "lower", (unsigned long long)ops);
  snprintf(peer, sizeof peer, "8 x %llu ops", (unsigned long long)fewer);
  bench_report(b,
               &(bench_row){.figure = publish ? "publish_linear" : "lower_linear",
                            .what = what,
                            .peer = peer,
                            .unit = "ns/op",
                            .scale = 1e9 / (double)ops},
               &pair);
  return true;
}

/* ---- the dot product -----------------------------------------------------------------------------------------------
 */

typedef struct dot {
  weft_memory memories[2];
  weft_binding inputs[3];
  weft_simulator *simulator;
  uint64_t firings, result;
  bool failed;
} dot;

static void simulate(void *context) {
  dot *d = context;
  if (weft_simulator_start(d->simulator, d->inputs, 3, NULL, 0, NULL) != WEFT_OK ||
      weft_simulator_run(d->simulator, UINT64_MAX) != WEFT_RUN_DONE ||
      !weft_simulator_result(d->simulator, 0, &d->result))
    d->failed = true;
  d->firings = weft_simulator_report(d->simulator)->steps;
}

static bool measure_simulator(bench *b, const weft_mlir_op *graph, weft_diag *diag) {
  uint64_t count = b->quick ? QUICK_ELEMENTS : ELEMENTS;
  dot d = {.inputs = {{.word = count}, {.buffer = &d.memories[0]}, {.buffer = &d.memories[1]}}};
  uint64_t *words = calloc(count, sizeof *words);
  const weft_mlir_type *element = weft_mlir_function_type(graph)->inputs[1]->element;
  bool good = words && weft_simulator_new(graph, "bench.mlir", NULL, &d.simulator, diag) == WEFT_OK;
  if (good) {
    for (uint64_t i = 0; i < count; i++) words[i] = i % 7;
    for (int i = 0; i < 2; i++) d.memories[i] = (weft_memory){.element = element, .count = count, .words = words};
    bench_pair pair;
    bench_measure(b, &(bench_work){simulate, &d, 1}, NULL, &pair);
    bench_report(b,
                 &(bench_row){.figure = "sim_firing",
                              .what = "a firing, dot product, capacity 2",
                              .unit = "ns",
                              .scale = 1e9 / (double)d.firings},
                 &pair);
  }
  weft_simulator_free(d.simulator);
  free(words);
  return good && !d.failed;
}

typedef struct compiled {
  const weft_df_entry *entry;
  int32_t (*plain)(int64_t, const int32_t *, const int32_t *);
  int32_t *a, *b;
  int64_t count;
  uint64_t result;
  int32_t plain_result;
  bool failed;
} compiled;

static void run_emitted(void *context) {
  compiled *c = context;
  weft_df_env env = {0};
  weft_df_memory memories[2] = {{c->a, (uint64_t)c->count, NULL}, {c->b, (uint64_t)c->count, NULL}};
  weft_df_memory *given[2] = {&memories[0], &memories[1]};
  uint64_t value = (uint64_t)c->count;
  if (c->entry->run(&env, &value, given, NULL, &c->result)) c->failed = true;
}

static void run_plain(void *context) {
  compiled *c = context;
  c->plain_result = c->plain(c->count, c->a, c->b);
}

static const char plain_text[] =
    "\n__attribute__((visibility(\"default\"), noinline)) int32_t plain_dot(int64_t n, const "
    "int32_t *a, const int32_t *b) {\n  uint32_t sum = 0;\n  for (int64_t i = 0; i < n; "
    "i++) sum += (uint32_t)a[i] * (uint32_t)b[i];\n  return (int32_t)sum;\n}\n";

static bool measure_emitted(bench *b, room *r, weft_mlir_op *module) {
  weft_text text = {0};
  char path[512];
  const char *folder = bench_folder();
  if (!folder || weft_emit_c(r->context, module, "bench.mlir", NULL, &text, r->diag) != WEFT_OK) return false;
  weft_text_puts(&text, plain_text);
  snprintf(path, sizeof path, "%s/dot.c", folder);
  bool good = weft_write_file(path, text.data, text.length, false, r->diag) == WEFT_OK &&
              bench_command("cc -std=gnu17 -O2 -ffp-contract=off -w -shared -fPIC -I'%s' -o %s/dot.so %s/dot.c",
                            WEFT_BENCH_INCLUDE, folder, folder);
  weft_text_free(&text);
  snprintf(path, sizeof path, "%s/dot.so", folder);
  void *library = good ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library) return false;
  compiled c = {.count = b->quick ? QUICK_ELEMENTS : 1 << 14, .entry = dlsym(library, "weft_df_entries")};
  *(void **)&c.plain = dlsym(library, "plain_dot");
  c.a = bench_memory((size_t)c.count * sizeof *c.a);
  c.b = bench_memory((size_t)c.count * sizeof *c.b);
  for (int64_t i = 0; i < c.count; i++) c.a[i] = (int32_t)i * 7, c.b[i] = 1 - (int32_t)i;
  bench_pair pair;
  bench_measure(b, &(bench_work){run_emitted, &c, 1}, &(bench_work){run_plain, &c, 1}, &pair);
  bench_report(b,
               &(bench_row){.figure = "emitted_dot",
                            .what = "C of the lowered dot product, 16k elements",
                            .peer = "the loop in C",
                            .unit = "us",
                            .scale = 1e6},
               &pair);
  good = !c.failed && (int32_t)c.result == c.plain_result;
  dlclose(library);
  return good;
}

static bool measure_dot(bench *b, room *r) {
  weft_text text = {0};
  weft_text_puts(&text, dot_text);
  weft_mlir_file *file = parse_text(r, &text);
  bool good = file && weft_lower(r->context, file->arena, file->modules[0], "bench.mlir", r->diag) == WEFT_OK;
  good = good && measure_simulator(b, weft_mlir_lookup(file->modules[0], "dot"), r->diag) &&
         measure_emitted(b, r, file->modules[0]);
  weft_mlir_file_free(file);
  weft_text_free(&text);
  return good;
}

int main(int argc, char **argv) {
  bench b;
  room r;
  if (argc == 4 && strcmp(argv[1], "--text") == 0) return in_child(argv[2], argv[3]);
  if (!bench_begin(&b, "dataflow", 0, argc, argv) || !open_room(&r)) return 1;
#ifdef WEFT_BENCH_MLIR_OPT
  bench_heading(&b, "MLIR text, lowering, simulation and C of the dataflow front end", WEFT_BENCH_MLIR_OPT, NULL);
#else
  bench_heading(&b, "MLIR text, lowering, simulation and C of the dataflow front end", "no mlir-opt is installed",
                NULL);
#endif
  bool good = measure_text(&b, &r) && measure_growth(&b, false) && measure_growth(&b, true) && measure_dot(&b, &r);
  if (!good)
    fprintf(stderr, "weft: the benchmark failed: %s\n",
            weft_diag_count(r.diag) ? weft_diag_message(r.diag, 0)->text : "see above");
  close_room(&r);
  int code = bench_end(&b);
  return good ? code : 1;
}
